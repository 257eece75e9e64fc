/*
 * rules.h
 *	  The words of the contracts: the rules of docs/rules.md as predicates.
 *
 * The contracts stand here and not in src/core, so that core.h stays readable:
 * each header of this folder names the prototypes of the core file of the same
 * name and says what they promise, and run puts it in front of that file.
 * Frama-C merges the contract of a prototype with its definition.
 *
 * Contracts count in mathematical integers, so no sum in them overflows.
 */
#ifndef LL_PROVE_RULES_H
#define LL_PROVE_RULES_H

#include "core/core.h"

/* ---- C1: the equation and its signs -------------------------------------- */

/*@ logic integer came(LLBudget b) = b.opening + b.minted + b.overdraft_issued;

	logic integer went(LLBudget b) =
		b.available + b.reserved + b.spent + b.retired_for_emergency + b.overdraft_repaid;

	logic integer debt(LLBudget b) = b.overdraft_issued - b.overdraft_repaid;

	// how much may still come before a sum leaves int64; -1: it has (A2)
	logic integer room(LLBudget b) =
		\max(came(b), went(b)) <= INT64_MAX ? INT64_MAX - \max(came(b), went(b)) : -1;

	logic integer pair_debt(LLPair p) = p.older_debt + debt(p.head);

	predicate signs(LLBudget b) =
		0 <= b.opening && 0 <= b.minted && 0 <= b.available && 0 <= b.reserved &&
		0 <= b.retired_for_emergency && 0 <= b.overdraft_repaid <= b.overdraft_issued &&
		0 <= b.burned && 0 <= b.deficit && 0 <= b.purged_spent <= b.spent;

	predicate conserved(LLBudget b) = signs(b) && came(b) == went(b) && came(b) <= INT64_MAX;
*/

/* ---- what holds of a pair from its first budget on ----------------------- */

/*@ predicate older_signs(LLPair p) =
		0 <= p.older_debt && 0 <= p.older_reserved && 0 <= p.older_repaid;

	// The fraction of a unit is one, and only continuous refill has it (C4).
	predicate fraction(LLPair p, LLPolicy y) =
		p.remainder == 0 ||
		(y.refill == LL_REFILL_CONTINUOUS && 0 < p.remainder < y.refill_interval);

	// What ll_pair_sound asks at each write.
	predicate writable(LLPair p, LLPolicy y) =
		conserved(p.head) && p.head.generation == y.generation &&
		0 <= p.older_debt && 0 <= p.older_reserved && p.older_repaid == 0 &&
		p.head.available <= y.cap &&
		(p.head.available > 0 ==> pair_debt(p) <= 0) &&
		(p.head.deficit > 0 ==> p.head.whole && p.head.available == 0) &&
		fraction(p, y);

	// The same between two writes, and what makes it inductive: nothing is
	// reserved from a head as long as the pair owes for older budgets or the
	// head lacks units, since such a head opened empty and admits nothing.
	predicate sound(LLPair p, LLPolicy y) =
		conserved(p.head) && p.head.generation == y.generation && older_signs(p) &&
		p.head.available <= y.cap &&										// C4
		(p.head.available > 0 ==> pair_debt(p) == 0) &&						// E2
		(p.head.deficit > 0 ==> p.head.whole && p.head.available == 0) &&	// B5
		(p.head.whole ==> y.refill == LL_REFILL_WINDOW) &&
		(p.older_debt > 0 || p.head.deficit > 0 ==> p.head.reserved == 0) &&
		fraction(p, y);

	// What the CHECK constraints of limitledger.policy say of a policy (B2).
	predicate policy(LLPolicy y) =
		0 < y.cap && 0 < y.largest_reservation <= y.cap && 0 < y.largest_outstanding &&
		0 < y.hard_limit && 0 <= y.maximum_overdraft && 0 < y.hold_ttl && 0 < y.execution_ttl &&
		(y.refill == LL_REFILL_CONTINUOUS || y.refill == LL_REFILL_WINDOW ||
		 y.refill == LL_REFILL_NONE) &&
		(y.refill == LL_REFILL_CONTINUOUS ==> 0 < y.refill_units && 0 < y.refill_interval);
*/

/* ---- what stayed as it was: x before, y after ---------------------------- */

/*@ // what no transition of an open budget may touch
	predicate same_account(LLBudget x, LLBudget y) =
		x.generation == y.generation && x.epoch == y.epoch && x.opening == y.opening &&
		x.carried == y.carried && x.line == y.line && x.whole == y.whole;

	predicate same_budget(LLBudget x, LLBudget y) =
		same_account(x, y) && x.minted == y.minted && x.overdraft_issued == y.overdraft_issued &&
		x.available == y.available && x.reserved == y.reserved && x.spent == y.spent &&
		x.retired_for_emergency == y.retired_for_emergency &&
		x.overdraft_repaid == y.overdraft_repaid && x.burned == y.burned &&
		x.deficit == y.deficit && x.purged_spent == y.purged_spent;

	predicate same_older(LLPair x, LLPair y) =
		x.older_debt == y.older_debt && x.older_reserved == y.older_reserved &&
		x.older_repaid == y.older_repaid;

	predicate same_time(LLPair x, LLPair y) =
		x.seen_at == y.seen_at && x.accrued_at == y.accrued_at && x.remainder == y.remainder;

	predicate same_pair(LLPair x, LLPair y) =
		same_budget(x.head, y.head) && same_older(x, y) && same_time(x, y) && x.frozen == y.frozen;

	predicate same_reservation(LLReservation x, LLReservation y) =
		x.state == y.state && x.reserved_units == y.reserved_units &&
		x.actual_units == y.actual_units && x.excess_units == y.excess_units &&
		x.overdraft_units == y.overdraft_units && x.progress_units == y.progress_units &&
		x.expires_at == y.expires_at && x.claimed_until == y.claimed_until;
*/

/* ---- D1: how a state moves ----------------------------------------------- */

/*@ predicate state(integer s) = LL_ABSENT <= s <= LL_EXPIRED;

	predicate event(integer e) = LL_EVENT_RESERVE <= e <= LL_EVENT_RESOLVE;

	predicate settled(integer s) = s == LL_SETTLED || s == LL_SETTLED_WITH_DEBT;

	predicate running(integer s) = s == LL_STARTED || s == LL_USAGE_UNKNOWN;

	predicate ended(integer s) = settled(s) || s == LL_RELEASED || s == LL_EXPIRED;

	// where a state leads; a settlement without debt
	logic integer next(integer s, integer e) =
		s == LL_ABSENT && e == LL_EVENT_RESERVE ? LL_RESERVED :
		s == LL_ABSENT && e == LL_EVENT_RESOLVE ? LL_RELEASED :
		s == LL_RESERVED && e == LL_EVENT_START ? LL_STARTED :
		s == LL_RESERVED && e == LL_EVENT_RELEASE ? LL_RELEASED :
		s == LL_RESERVED && e == LL_EVENT_CLAIM ? LL_EXPIRING :
		s == LL_EXPIRING && e == LL_EVENT_EXPIRE ? LL_EXPIRED :
		s == LL_STARTED && e == LL_EVENT_REPORT_UNKNOWN ? LL_USAGE_UNKNOWN :
		(s == LL_STARTED || s == LL_USAGE_UNKNOWN) && e == LL_EVENT_SETTLE ? LL_SETTLED : s;

	// the same call came twice, or its reply was lost
	predicate replays(integer s, integer e) =
		s != LL_ABSENT &&
		(e == LL_EVENT_RESERVE || e == LL_EVENT_RESOLVE ||
		 (e == LL_EVENT_START && (running(s) || settled(s))) ||
		 (e == LL_EVENT_SETTLE && settled(s)) ||
		 (e == LL_EVENT_RELEASE && s == LL_RELEASED) ||
		 (e == LL_EVENT_REPORT_UNKNOWN && s == LL_USAGE_UNKNOWN) ||
		 (e == LL_EVENT_CLAIM && s == LL_EXPIRING) ||
		 (e == LL_EVENT_EXPIRE && s == LL_EXPIRED));

	predicate accepts(integer s, integer e) = next(s, e) != s || replays(s, e);

	logic integer why_not(integer s, integer e) =
		s == LL_ABSENT ? LL_DIM_RESERVATION :
		s == LL_SETTLED || s == LL_SETTLED_WITH_DEBT ? LL_DIM_SETTLED :
		s == LL_STARTED || s == LL_USAGE_UNKNOWN ? LL_DIM_ALREADY_STARTED :
		e == LL_EVENT_SETTLE || e == LL_EVENT_REPORT_UNKNOWN ? LL_DIM_NOT_STARTED :
		s == LL_RESERVED ? LL_DIM_NOT_DUE :
		s == LL_RELEASED ? LL_DIM_RELEASED : LL_DIM_EXPIRED;
*/

/* ---- what a verdict says ------------------------------------------------- */

/*@ predicate says(LLVerdict v, integer outcome, integer dimension) =
		v.outcome == outcome && v.dimension == dimension && !v.overflow;

	// no word of a wait
	predicate no_wait(LLVerdict v) =
		v.wait == LL_WAIT_NONE && v.wait_until == 0 && v.wait_windows == 0;

	// the table's own answer
	predicate judged(LLVerdict v, integer s, integer e) =
		no_wait(v) && !v.overflow &&
		(accepts(s, e) ==> v.outcome == LL_ACCEPTED && v.dimension == LL_DIM_NONE) &&
		(!accepts(s, e) ==>
		 v.outcome == (s == LL_ABSENT ? LL_UNKNOWN : LL_REFUSED) && v.dimension == why_not(s, e)) &&
		(v.replayed <==> replays(s, e));

	// took effect just now
	predicate moved(LLVerdict v) = v.outcome == LL_ACCEPTED && !v.replayed && !v.overflow;
*/

/* moved(\result) as a term, where a conditional asks for one */
#define MOVED (\result.outcome == LL_ACCEPTED && \result.replayed == 0 && \result.overflow == 0)

#endif							/* LL_PROVE_RULES_H */
