/*
 * explore.h
 *	  Searching through worlds: to the end, at random, along a trace.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdio.h>

#include "world.h"

/* An interleaving: the steps taken so far, and what the last of them broke. */
typedef struct Path
{
	int			length;
	Step		step[LENGTH];
	Finding		finding;
} Path;

/* What was searched. */
typedef struct Tally
{
	uint64_t	states;			/* distinct */
	uint64_t	steps;			/* taken and judged */
	uint64_t	complete;		/* interleavings taken to their end, all distinct */
	uint64_t	repeated;		/* at random: taken to the end once more */
	unsigned __int128 schedules;	/* through all states: counted, not taken */
	bool		exhausted;
} Tally;

/* ---- search.c ------------------------------------------------------------ */

/* search_all explores the setup to its end; false: something broke, see path. */
extern bool search_all(Tally *tally, uint64_t most_states, Path *path);

/* search_random takes interleavings until so many are distinct or the time is up. */
extern bool search_random(Tally *tally, uint64_t seed, uint64_t interleavings, double seconds,
						  bool drawn, Path *path);

extern double seconds_now(void);

/* ---- trace.c ------------------------------------------------------------- */

/* trace_write writes the setup and the steps as text. */
extern void trace_write(FILE *out, const Path *path);

/*
 * trace_replay takes the steps of a file, and then all to the end; false: the
 * file can't be read.  With `show` it prints each step.
 */
extern bool trace_replay(const char *file, bool show, Finding *finding);

/* trace_shrink leaves out steps as long as the same check fails. */
extern void trace_shrink(Path *path);

#endif							/* EXPLORE_H */
