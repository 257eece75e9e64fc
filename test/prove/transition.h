/* transition.h: the table of every (state, event) pair (D1, C3). */
#ifndef LL_PROVE_TRANSITION_H
#define LL_PROVE_TRANSITION_H

#include "rules.h"

/*@ // In numbers, not of an LLTransition: a goal then reads four of them, not the whole memory.
	predicate entry(integer outcome, integer dimension, integer to, integer to_with_debt, integer s, integer e) =
		(accepts(s, e) ==> outcome == LL_ACCEPTED && dimension == LL_DIM_NONE) &&
		(!accepts(s, e) ==> outcome == (s == LL_ABSENT ? LL_UNKNOWN : LL_REFUSED) &&
		 dimension == why_not(s, e)) &&
		to == next(s, e) &&
		to_with_debt == (next(s, e) == LL_SETTLED && s != LL_SETTLED ? LL_SETTLED_WITH_DEBT : next(s, e));
*/

/* One goal for each entry: with both indices constant the table's initializer decides it. */
#define ENTRY(s, e) \
	ensures state == s && event == e ==> \
		entry(\result->outcome, \result->dimension, \result->next, \result->next_with_debt, s, e);
#define ROW(s) \
	ENTRY(s, LL_EVENT_RESERVE) \
	ENTRY(s, LL_EVENT_START) \
	ENTRY(s, LL_EVENT_SETTLE) \
	ENTRY(s, LL_EVENT_RELEASE) \
	ENTRY(s, LL_EVENT_REPORT_UNKNOWN) \
	ENTRY(s, LL_EVENT_CLAIM) \
	ENTRY(s, LL_EVENT_EXPIRE) \
	ENTRY(s, LL_EVENT_RESOLVE)

/*@ requires state(state) && event(event);
	assigns \nothing;
	ensures \valid_read(\result);
	ROW(LL_ABSENT)
	ROW(LL_RESERVED)
	ROW(LL_STARTED)
	ROW(LL_USAGE_UNKNOWN)
	ROW(LL_EXPIRING)
	ROW(LL_SETTLED)
	ROW(LL_SETTLED_WITH_DEBT)
	ROW(LL_RELEASED)
	ROW(LL_EXPIRED) */
extern const LLTransition *ll_transition(LLState state, LLEvent event);

/*@ requires state(from) && state(to);
	assigns \nothing;
	ensures from == LL_ABSENT ==> (\result <==> to == LL_RESERVED || to == LL_RELEASED);
	ensures from == LL_RESERVED ==> (\result <==> to == LL_STARTED || to == LL_RELEASED || to == LL_EXPIRING);
	ensures from == LL_STARTED ==> (\result <==> to == LL_USAGE_UNKNOWN || settled(to));
	ensures from == LL_USAGE_UNKNOWN ==> (\result <==> settled(to));
	ensures from == LL_EXPIRING ==> (\result <==> to == LL_EXPIRED);
	ensures from == LL_SETTLED ==> !\result;
	ensures from == LL_SETTLED_WITH_DEBT ==> !\result;
	ensures from == LL_RELEASED ==> !\result;
	ensures from == LL_EXPIRED ==> !\result; */
extern bool ll_transition_allows(LLState from, LLState to);

/*@ requires state(state);
	assigns \nothing;
	ensures \result <==> state != LL_ABSENT && !ended(state); */
extern bool ll_state_holds(LLState state);

/*@ requires state(state);
	assigns \nothing;
	ensures \result <==> ended(state); */
extern bool ll_state_terminal(LLState state);

#endif							/* LL_PROVE_TRANSITION_H */
