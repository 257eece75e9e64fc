/*
 * transition.h
 *	  The only judge of how a reservation's state may move (D1, C3).
 *
 * transitions() prints the table, the row trigger asks it, the decisions ask
 * it, a test compares it with docs/protocol.md.
 */
#ifndef LL_CORE_TRANSITION_H
#define LL_CORE_TRANSITION_H

#include "outcome.h"
#include "types.h"

typedef enum LLEvent
{
	LL_EVENT_RESERVE,
	LL_EVENT_START,
	LL_EVENT_SETTLE,
	LL_EVENT_RELEASE,
	LL_EVENT_REPORT_UNKNOWN,
	LL_EVENT_CLAIM,				/* an expiry task claims a due hold */
	LL_EVENT_EXPIRE,			/* and finishes it */
	LL_EVENT_RESOLVE			/* the final word after a lost reply (D11) */
} LLEvent;
#define LL_EVENT_COUNT	(LL_EVENT_RESOLVE + 1)

/* What one (state, event) pair leads to. */
typedef struct LLTransition
{
	LLOutcome	outcome;
	LLDimension dimension;		/* why not, unless ACCEPTED */
	LLState		next;			/* same state: nothing moves (a replay) */
	LLState		next_with_debt;	/* after a settle that made debt */
	const char *rule;
} LLTransition;

extern const LLTransition *ll_transition(LLState state, LLEvent event);
extern bool ll_transition_allows(LLState from, LLState to);
extern bool ll_state_holds(LLState state);	/* counts in reserved (C2) */
extern bool ll_state_terminal(LLState state);
extern const char *ll_state_name(LLState state);
extern bool ll_state_parse(const char *name, uint64_t length, LLState *state);
extern const char *ll_event_name(LLEvent event);

#endif							/* LL_CORE_TRANSITION_H */
