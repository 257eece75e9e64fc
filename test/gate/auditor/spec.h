/*
 * spec.h
 *	  The ledger as a plain machine that does one call after the other.
 *
 * Written from docs/rules.md alone: a state of a few pairs in arrays, and what each
 * call makes of it.  Nothing waits here, nothing is lost, and no call is refused
 * without its lock; search.c asks whether what happened is as if it had been so.
 */
#ifndef GATE_SPEC_H
#define GATE_SPEC_H

#include "auditor.h"

enum
{
	PAIRS_MAX = 6, BUDGETS_MAX = 48, RESERVATIONS_MAX = 64, RECORDS_MAX = 64, ROUTES_MAX = 4,
	SHARDS_MAX = 8, OPS_MAX = 64
};

typedef struct SpecBudget
{
	int			pair;			/* -1: it was never written */
	int			policy;			/* its place in History.policy */
	int			line;			/* grows when a window opens with its quota (C5) */
	int			whole;			/* its line is a quota and changes of it, no more */
	int64_t		epoch, opening, minted, issued, available, reserved, spent, retired, repaid,
				burned, carried, deficit, closing;
} SpecBudget;

typedef struct SpecPair
{
	int			subject;
	int			route;
	int			exists;
	int			frozen;
	int			head;			/* its place in Spec.budget */
	int			in_force;		/* its place in History.policy */
	int64_t		seen, at, remainder;
} SpecPair;

typedef struct SpecReservation
{
	int			subject;
	int			id;
	int			pair;			/* -1: a fence (D11) */
	int			budget;
	int			digest;
	int			operation;
	int			receipt;
	int			state;
	int			excess_budget;
	int			unused;			/* no padding: states are compared by their bytes */
	int64_t		asked, units, actual, excess, expires, progress;
} SpecReservation;

/* What is stored under an id of its own. */
typedef enum RecordKind
{
	EXTENSION, USAGE, GRANT, SHARD
} RecordKind;

typedef struct SpecRecord
{
	int			kind;
	int			subject;
	int			pair;
	int			id;				/* of the reservation that was extended, else 0 */
	int			key;			/* of the extension or grant, the operation, the shard */
	int			budget;
	int64_t		units, granted, deadline;
} SpecRecord;

typedef struct Spec
{
	int			pairs;
	int			budgets;
	int			reservations;
	int			records;
	int			routes;			/* that are frozen */
	int			frozen_route[ROUTES_MAX];
	int			published;		/* policies that were published on the way, by bits */
	SpecPair	pair[PAIRS_MAX];
	SpecBudget	budget[BUDGETS_MAX];
	SpecReservation reservation[RESERVATIONS_MAX];
	SpecRecord	record[RECORDS_MAX];
} Spec;

/* What one call, or one element of a batch, asks for. */
typedef struct Op
{
	Function	function;
	int			subject;
	int			route;
	int			id;
	int			key;			/* operation, extension, grant, shard */
	int			digest;
	int64_t		units;
	int64_t		deadline;
	bool		attested;		/* by an operator (D10) */
	bool		unmet;			/* a fence under its id came after it was looked up */
} Op;

typedef struct Answer
{
	const char *outcome;
	const char *dimension;		/* or NULL */
	const char *wait_kind;		/* or NULL */
	int64_t		wait;			/* microseconds; -1: not known */
	bool		replayed;
	bool		wrote;
	int			reservation;	/* its place in Spec.reservation, or -1 */
	int			pair;			/* or -1 */
	int64_t		number;			/* granted, repaid, expired... */
	int64_t		number2;
} Answer;

/* What the search knows beside the state: skips is the set of what goes the other way where others may be met. */
typedef struct World
{
	const History *history;
	int			first_published;	/* policies from this one on come into force by their publish */
	int			begins;			/* policies before this line are in force */
	int64_t		clock;
	uint64_t	skips;
	bool		overlaps;		/* other transactions are open meanwhile */
	int			due;			/* choices that there were, counted by the call */
	bool		too_big;
	bool		ended;			/* holds were ended on the way (D14) */
	int			hidden;			/* policies that were not there yet when the lock was taken */
	int			hidden_first;	/* nor when a first row was there, which is a pair's lock itself */
	bool		overflow;		/* a sum left bigint (A2) */
} World;

/* ops_of takes a call apart; 0 if the specification does not know it. */
extern int	ops_of(const Call *call, Op *op);

extern void spec_copy(Spec *to, const Spec *from);
extern uint64_t spec_hash(const Spec *s);
extern bool spec_same(const Spec *a, const Spec *b);

/* spec_call does one call, or an element of one. */
extern Answer spec_call(Spec *s, World *w, const Op *op);

/* spec_batch does a batch of reserves that are all or nothing (J2). */
extern void spec_require_all(Spec *s, World *w, const Op *op, int ops, Answer *answer);

/* spec_available is what a pair has available now, refill that is due counted in. */
extern int64_t spec_available(const Spec *s, World *w, int pair, int64_t *debt, bool *frozen);

/* spec_present brings a pair to the present in a copy, for a reader. */
extern int	spec_present(Spec *s, World *w, int subject, int route);

extern int64_t spec_debt(const Spec *s, int pair);
extern int64_t spec_outstanding(const Spec *s, int pair);

#endif							/* GATE_SPEC_H */
