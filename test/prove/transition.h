/* transition.h: the table of every (state, event) pair (D1, C3). */
#ifndef LL_PROVE_TRANSITION_H
#define LL_PROVE_TRANSITION_H

#include "rules.h"

/*@ predicate entry(LLTransition t, integer s, integer e) =
		(accepts(s, e) ==> t.outcome == LL_ACCEPTED && t.dimension == LL_DIM_NONE) &&
		(!accepts(s, e) ==> t.outcome == (s == LL_ABSENT ? LL_UNKNOWN : LL_REFUSED) &&
		 t.dimension == why_not(s, e)) &&
		t.next == next(s, e) &&
		t.next_with_debt == (next(s, e) == LL_SETTLED && s != LL_SETTLED ? LL_SETTLED_WITH_DEBT : next(s, e));
*/

/*@ requires state(state) && event(event);
	assigns \nothing;
	ensures \valid_read(\result);
	// a row of the table each
	ensures state == LL_ABSENT ==> entry(*\result, LL_ABSENT, event);
	ensures state == LL_RESERVED ==> entry(*\result, LL_RESERVED, event);
	ensures state == LL_STARTED ==> entry(*\result, LL_STARTED, event);
	ensures state == LL_USAGE_UNKNOWN ==> entry(*\result, LL_USAGE_UNKNOWN, event);
	ensures state == LL_EXPIRING ==> entry(*\result, LL_EXPIRING, event);
	ensures state == LL_SETTLED ==> entry(*\result, LL_SETTLED, event);
	ensures state == LL_SETTLED_WITH_DEBT ==> entry(*\result, LL_SETTLED_WITH_DEBT, event);
	ensures state == LL_RELEASED ==> entry(*\result, LL_RELEASED, event);
	ensures state == LL_EXPIRED ==> entry(*\result, LL_EXPIRED, event); */
extern const LLTransition *ll_transition(LLState state, LLEvent event);

/*@ requires state(from) && state(to);
	assigns \nothing;
	ensures \result <==>
		(from == LL_ABSENT && (to == LL_RESERVED || to == LL_RELEASED)) ||
		(from == LL_RESERVED && (to == LL_STARTED || to == LL_RELEASED || to == LL_EXPIRING)) ||
		(from == LL_STARTED && (to == LL_USAGE_UNKNOWN || settled(to))) ||
		(from == LL_USAGE_UNKNOWN && settled(to)) ||
		(from == LL_EXPIRING && to == LL_EXPIRED); */
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
