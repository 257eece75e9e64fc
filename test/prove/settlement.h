/* settlement.h: after admission (D5-D10, D14), and where the units go (C4, C5, D7, E2). */
#ifndef LL_PROVE_SETTLEMENT_H
#define LL_PROVE_SETTLEMENT_H

#include "transition.h"
#include "usage.h"

/* ---- units that come back ------------------------------------------------ */

/*@ // units that come back to the head from elsewhere, in their order: deficit, debt, available (C5)
	logic integer lacking(LLPair p, integer units) = \min(units, p.head.deficit);
	logic integer beyond(LLPair p, integer units) = units - lacking(p, units);
	logic integer refills(LLPair p, LLPolicy y, integer units) =
		\min(beyond(p, units) - paid(p, beyond(p, units)), y.cap - p.head.available);
	logic integer burns(LLPair p, LLPolicy y, integer units) =
		beyond(p, units) - paid(p, beyond(p, units)) - refills(p, y, units);

	predicate reminted(LLPair x, LLPair y, LLPolicy policy, integer units) =
		y.older_debt == x.older_debt - paid_older(x, beyond(x, units)) &&
		y.older_repaid == x.older_repaid + paid_older(x, beyond(x, units)) &&
		y.head.overdraft_repaid == x.head.overdraft_repaid + paid_own(x, beyond(x, units)) &&
		y.head.minted == x.head.minted + paid_own(x, beyond(x, units)) + refills(x, policy, units) &&
		y.head.available == x.head.available + refills(x, policy, units) &&
		y.head.burned == x.head.burned + burns(x, policy, units) &&
		y.head.deficit == x.head.deficit - lacking(x, units);

	// units that come back to the head that held them: its debt, available, the rest un-minted (C4)
	logic integer repays(LLBudget b, integer units) = \min(units, debt(b));
	logic integer over(LLBudget b, LLPolicy y, integer units) =
		\max(0, units - repays(b, units) - (y.cap - b.available));

	predicate home(LLBudget x, LLBudget y, LLPolicy policy, integer units) =
		same_account(x, y) && x.spent == y.spent && x.overdraft_issued == y.overdraft_issued &&
		x.retired_for_emergency == y.retired_for_emergency && x.deficit == y.deficit &&
		x.purged_spent == y.purged_spent && y.reserved == x.reserved - units &&
		y.overdraft_repaid == x.overdraft_repaid + repays(x, units) &&
		y.minted == x.minted - over(x, policy, units) && y.burned == x.burned + over(x, policy, units) &&
		y.available == x.available + units - repays(x, units) - over(x, policy, units);
*/

/*@ requires \valid(p) && \valid_read(policy) && \separated(p, policy);
	requires units >= 0 && signs(p->head) && older_signs(*p) && p->head.available <= policy->cap;
	assigns p->older_debt, p->older_repaid, p->head.minted, p->head.overdraft_repaid,
		p->head.available, p->head.burned, p->head.deficit;
	ensures line != p->head.line ==> \result && same_pair(\old(*p), *p);
	ensures \result && line == p->head.line ==> reminted(\old(*p), *p, *policy, units);
	ensures !\result ==> \old(p->older_repaid) + units > INT64_MAX || \old(p->head.burned) + units > INT64_MAX ||
		came(\old(p->head)) + units > INT64_MAX || went(\old(p->head)) + units > INT64_MAX; */
extern bool ll_remint(LLPair *p, LLUnits units, int64_t line, const LLPolicy *policy);

/* ---- steps that move no balance ------------------------------------------ */

/*@ requires \valid(reservation) && \valid_read(policy) && \separated(reservation, policy);
	requires state(reservation->state) && policy->execution_ttl >= 0;
	assigns reservation->state, reservation->expires_at;
	// a compare-and-set (D5)
	ensures moved(\result) <==> \old(reservation->state) == LL_RESERVED &&
		operation == LL_OPERATION_FREE && now < \old(reservation->expires_at);
	ensures moved(\result) ==> reservation->state == LL_STARTED &&
		reservation->expires_at == \min(INT64_MAX, now + policy->execution_ttl);
	ensures !moved(\result) ==> same_reservation(\old(*reservation), *reservation);
	ensures \result.replayed <==> operation == LL_OPERATION_SAME &&
		replays(\old(reservation->state), LL_EVENT_START);
	ensures \result.replayed ==> \result.outcome == LL_ACCEPTED;
	ensures operation == LL_OPERATION_OTHER ==> says(\result, LL_CONFLICT, LL_DIM_OPERATION);
	ensures \old(reservation->state) == LL_RESERVED && operation != LL_OPERATION_OTHER &&
		now >= \old(reservation->expires_at) ==> says(\result, LL_REFUSED, LL_DIM_EXPIRED);
	ensures !accepts(\old(reservation->state), LL_EVENT_START) && operation != LL_OPERATION_OTHER ==>
		judged(\result, \old(reservation->state), LL_EVENT_START);
	ensures no_wait(\result) && !\result.overflow; */
extern LLVerdict ll_start(LLReservation *reservation, const LLPolicy *policy,
						  LLOperation operation, LLTime now);

/*@ requires \valid(reservation) && state(reservation->state);
	assigns reservation->state;
	// by its operation's caller at any time, by a sweep when it is due (D10)
	ensures moved(\result) <==> \old(reservation->state) == LL_STARTED &&
		(by_caller ==> operation == LL_OPERATION_SAME) && (!by_caller ==> now >= reservation->expires_at);
	ensures reservation->state == (MOVED ? LL_USAGE_UNKNOWN : \old(reservation->state));
	ensures \result.replayed ==> \old(reservation->state) == LL_USAGE_UNKNOWN &&
		(!by_caller || operation == LL_OPERATION_SAME);
	ensures by_caller && operation == LL_OPERATION_OTHER ==>
		says(\result, LL_CONFLICT, LL_DIM_OPERATION);
	ensures no_wait(\result) && !\result.overflow; */
extern LLVerdict ll_report_unknown(LLReservation *reservation, LLOperation operation,
								   bool by_caller, LLTime now);

/*@ requires \valid(reservation) && state(reservation->state);
	assigns reservation->progress_units;
	// the figure never falls, and binds nothing but a running execution (D10)
	ensures running(reservation->state) && operation == LL_OPERATION_SAME ==>
		reservation->progress_units == \max(units, \old(reservation->progress_units));
	ensures !(running(reservation->state) && operation == LL_OPERATION_SAME) ==>
		reservation->progress_units == \old(reservation->progress_units);
	ensures \result.outcome == LL_ACCEPTED <==>
		running(reservation->state) && operation == LL_OPERATION_SAME;
	ensures \result.outcome == LL_ACCEPTED ==>
		(\result.replayed <==> reservation->progress_units == \old(reservation->progress_units));
	ensures settled(reservation->state) && operation == LL_OPERATION_SAME ==>
		says(\result, LL_REFUSED, LL_DIM_SETTLED);
	ensures no_wait(\result) && !\result.overflow; */
extern LLVerdict ll_report_progress(LLReservation *reservation, LLOperation operation, LLUnits units);

/*@ requires \valid(reservation);
	assigns reservation->claimed_until;
	ensures \result <==> reservation->state == LL_USAGE_UNKNOWN && \old(reservation->claimed_until) <= now;
	ensures reservation->claimed_until == (\result ? until : \old(reservation->claimed_until)); */
extern bool ll_claim_unknown(LLReservation *reservation, LLTime now, LLTime until);

/*@ requires \valid(reservation) && state(reservation->state);
	assigns reservation->state;
	ensures moved(\result) <==> \old(reservation->state) == LL_RESERVED && now >= reservation->expires_at;
	ensures reservation->state == (MOVED ? LL_EXPIRING : \old(reservation->state));
	ensures \result.outcome == LL_ACCEPTED <==> moved(\result) || \old(reservation->state) == LL_EXPIRING;
	ensures \result.replayed <==> \old(reservation->state) == LL_EXPIRING;
	ensures no_wait(\result) && !\result.overflow; */
extern LLVerdict ll_expire_claim(LLReservation *reservation, LLTime now);

/* ---- the end of a reservation -------------------------------------------- */

/*@ // the head holds the reservation's units, or a closed budget does (C2)
	predicate held(LLPair p, integer units) = 0 <= units <= p.head.reserved;
	predicate held_closed(LLPair p, LLBudget closed, integer units) =
		conserved(closed) && 0 <= units <= closed.reserved && closed.reserved <= p.older_reserved;

	// `units` left what a closed budget had reserved, `used` of them spent (C5)
	predicate left(LLBudget x, LLBudget y, integer units, integer used) =
		same_account(x, y) && y.reserved == x.reserved - units && y.spent == x.spent + used &&
		y.available == x.available + units - used && x.minted == y.minted &&
		x.overdraft_issued == y.overdraft_issued && x.overdraft_repaid == y.overdraft_repaid &&
		x.retired_for_emergency == y.retired_for_emergency && x.burned == y.burned &&
		x.deficit == y.deficit && x.purged_spent == y.purged_spent;

	// the fields of a pair that no end of a reservation moves
	predicate keeps(LLPair x, LLPair y) =
		same_account(x.head, y.head) && same_time(x, y) &&
		x.head.retired_for_emergency == y.head.retired_for_emergency &&
		x.head.purged_spent == y.head.purged_spent;
*/

/*@ requires \valid(pair) && \valid(reservation) && (closed == \null || \valid(closed));
	requires \separated(pair, closed, reservation, policy);
	requires state(reservation->state);
	// where nothing moves, nothing else is asked for
	requires reservation->state == LL_RESERVED ==> \valid_read(policy) && policy(*policy) && sound(*pair, *policy);
	requires reservation->state == LL_RESERVED && closed == \null ==> held(*pair, reservation->reserved_units);
	requires reservation->state == LL_RESERVED && closed != \null ==>
		held_closed(*pair, *closed, reservation->reserved_units);
	assigns *pair, *closed, reservation->state;
	ensures \result.outcome == LL_ACCEPTED <==> accepts(\old(reservation->state), LL_EVENT_RELEASE);
	ensures \result.overflow || judged(\result, \old(reservation->state), LL_EVENT_RELEASE);
	ensures reservation->state == (MOVED ? LL_RELEASED : \old(reservation->state));
	ensures !moved(\result) ==> same_pair(\old(*pair), *pair);
	ensures !moved(\result) && closed != \null ==> same_budget(\old(*closed), *closed);
	ensures moved(\result) ==> \old(reservation->state) == LL_RESERVED && sound(*pair, *policy) &&
		keeps(\old(*pair), *pair) && pair->frozen == \old(pair->frozen);
	ensures moved(\result) && closed == \null ==> same_older(\old(*pair), *pair) &&
		home(\old(pair->head), pair->head, *policy, reservation->reserved_units);
	ensures moved(\result) && closed != \null ==> conserved(*closed) &&
		left(\old(*closed), *closed, reservation->reserved_units, 0) &&
		pair->older_reserved == \old(pair->older_reserved) - reservation->reserved_units &&
		pair->head.reserved == \old(pair->head.reserved) && pair->head.spent == \old(pair->head.spent) &&
		pair->head.overdraft_issued == \old(pair->head.overdraft_issued);
	ensures moved(\result) && closed != \null && closed->line != pair->head.line ==>
		same_budget(\old(pair->head), pair->head) && pair->older_debt == \old(pair->older_debt);
	ensures moved(\result) && closed != \null && closed->line == pair->head.line ==>
		reminted(\old(*pair), *pair, *policy, reservation->reserved_units); */
extern LLVerdict ll_release(LLPair *pair, LLBudget *closed, LLReservation *reservation,
							const LLPolicy *policy);

/*@ requires \valid(pair) && \valid(reservation) && (closed == \null || \valid(closed));
	requires \separated(pair, closed, reservation, policy);
	requires state(reservation->state);
	// where nothing moves, nothing else is asked for
	requires reservation->state == LL_EXPIRING ==> \valid_read(policy) && policy(*policy) && sound(*pair, *policy);
	requires reservation->state == LL_EXPIRING && closed == \null ==> held(*pair, reservation->reserved_units);
	requires reservation->state == LL_EXPIRING && closed != \null ==>
		held_closed(*pair, *closed, reservation->reserved_units);
	assigns *pair, *closed, reservation->state;
	ensures \result.outcome == LL_ACCEPTED <==> accepts(\old(reservation->state), LL_EVENT_EXPIRE);
	ensures \result.overflow || judged(\result, \old(reservation->state), LL_EVENT_EXPIRE);
	ensures reservation->state == (MOVED ? LL_EXPIRED : \old(reservation->state));
	ensures !moved(\result) ==> same_pair(\old(*pair), *pair);
	ensures !moved(\result) && closed != \null ==> same_budget(\old(*closed), *closed);
	ensures moved(\result) ==> \old(reservation->state) == LL_EXPIRING && sound(*pair, *policy) &&
		keeps(\old(*pair), *pair) && pair->frozen == \old(pair->frozen);
	ensures moved(\result) && closed == \null ==> same_older(\old(*pair), *pair) &&
		home(\old(pair->head), pair->head, *policy, reservation->reserved_units);
	ensures moved(\result) && closed != \null ==> conserved(*closed) &&
		left(\old(*closed), *closed, reservation->reserved_units, 0) &&
		pair->older_reserved == \old(pair->older_reserved) - reservation->reserved_units &&
		pair->head.reserved == \old(pair->head.reserved) && pair->head.spent == \old(pair->head.spent) &&
		pair->head.overdraft_issued == \old(pair->head.overdraft_issued);
	ensures moved(\result) && closed != \null && closed->line != pair->head.line ==>
		same_budget(\old(pair->head), pair->head) && pair->older_debt == \old(pair->older_debt);
	ensures moved(\result) && closed != \null && closed->line == pair->head.line ==>
		reminted(\old(*pair), *pair, *policy, reservation->reserved_units); */
extern LLVerdict ll_expire_finish(LLPair *pair, LLBudget *closed, LLReservation *reservation,
							const LLPolicy *policy);

/*@ // what a settlement of `actual` units leaves; the same on both ways
	predicate figures(LLReservation x, LLReservation y, integer actual) =
		y.actual_units == actual && y.excess_units == \max(0, actual - x.reserved_units) &&
		0 <= y.overdraft_units <= y.excess_units &&
		y.state == (y.overdraft_units > 0 ? LL_SETTLED_WITH_DEBT : LL_SETTLED) &&
		y.reserved_units == x.reserved_units && y.progress_units == x.progress_units &&
		y.expires_at == x.expires_at && y.claimed_until == x.claimed_until;

	// units of a reservation that were not used, and units used beyond it
	logic integer unused(LLReservation r, integer actual) = \max(0, r.reserved_units - actual);
	logic integer excess(LLReservation r, integer actual) = \max(0, actual - r.reserved_units);
*/

/*@ requires \valid(pair) && \valid(reservation) && (closed == \null || \valid(closed));
	requires \valid_read(own) && \valid_read(policy) && \valid_read(settlement);
	requires \separated(pair, closed, reservation, own, policy, settlement);
	requires state(reservation->state) && 0 <= settlement->actual;
	// where nothing is settled, nothing else is asked for
	requires running(reservation->state) ==> policy(*policy) && sound(*pair, *policy);
	requires running(reservation->state) && closed == \null ==> held(*pair, reservation->reserved_units);
	requires running(reservation->state) && closed != \null ==>
		held_closed(*pair, *closed, reservation->reserved_units);
	assigns *pair, *closed, *reservation;
	// D6: once, by its operation; a repeat is the same answer, other figures are a conflict
	ensures moved(\result) ==> running(\old(reservation->state)) &&
		settlement->operation == LL_OPERATION_SAME &&
		(settlement->attested ==> settlement->actual >= reservation->progress_units);
	ensures running(\old(reservation->state)) && settlement->operation == LL_OPERATION_SAME &&
		!(settlement->attested && settlement->actual < reservation->progress_units) ==>
		moved(\result) || \result.overflow;
	ensures \result.replayed ==> settled(\old(reservation->state)) &&
		settlement->operation == LL_OPERATION_SAME && settlement->same_receipt &&
		settlement->actual == reservation->actual_units;
	ensures settled(\old(reservation->state)) && settlement->operation == LL_OPERATION_SAME &&
		!\result.replayed ==> says(\result, LL_CONFLICT, LL_DIM_FIGURES);
	ensures !accepts(\old(reservation->state), LL_EVENT_SETTLE) ==>
		judged(\result, \old(reservation->state), LL_EVENT_SETTLE);
	ensures no_wait(\result);
	ensures !moved(\result) ==> same_pair(\old(*pair), *pair) &&
		same_reservation(\old(*reservation), *reservation);
	ensures !moved(\result) && closed != \null ==> same_budget(\old(*closed), *closed);
	ensures moved(\result) ==> figures(\old(*reservation), *reservation, settlement->actual);
	ensures moved(\result) ==> conserved(pair->head);
	ensures moved(\result) ==> sound(*pair, *policy) && keeps(\old(*pair), *pair);
	ensures moved(\result) ==> (pair->frozen <==> \old(pair->frozen) ||
		settlement->actual > own->hard_limit || overdrawn(*pair, *policy, reservation->excess_units));
	// D7: the head's available units first, the rest is debt
	ensures moved(\result) ==>
		pair->head.overdraft_issued == \old(pair->head.overdraft_issued) + reservation->overdraft_units;
	ensures moved(\result) && reservation->overdraft_units > 0 ==> pair->head.available == 0;
	// the head held it (C4)
	ensures moved(\result) && closed == \null ==> same_older(\old(*pair), *pair) &&
		pair->head.reserved == \old(pair->head.reserved) - reservation->reserved_units &&
		pair->head.spent == \old(pair->head.spent) + settlement->actual;
	ensures moved(\result) && closed == \null ==> pair->head.overdraft_repaid ==
		\old(pair->head.overdraft_repaid) + repays(\old(pair->head), unused(*reservation, settlement->actual));
	ensures moved(\result) && closed == \null ==> pair->head.minted ==
		\old(pair->head.minted) - over(\old(pair->head), *policy, unused(*reservation, settlement->actual));
	ensures moved(\result) && closed == \null ==> pair->head.burned ==
		\old(pair->head.burned) + over(\old(pair->head), *policy, unused(*reservation, settlement->actual));
	ensures moved(\result) && closed == \null ==> pair->head.available == \old(pair->head.available) +
		unused(*reservation, settlement->actual) -
		repays(\old(pair->head), unused(*reservation, settlement->actual)) -
		over(\old(pair->head), *policy, unused(*reservation, settlement->actual)) -
		(reservation->excess_units - reservation->overdraft_units);
	// a closed budget held it (C5): its own part stays there, the excess is the head's
	ensures moved(\result) && closed != \null ==> conserved(*closed) &&
		left(\old(*closed), *closed, reservation->reserved_units,
			 settlement->actual - reservation->excess_units);
	ensures moved(\result) && closed != \null ==>
		pair->older_reserved == \old(pair->older_reserved) - reservation->reserved_units &&
		pair->head.reserved == \old(pair->head.reserved) &&
		pair->head.spent == \old(pair->head.spent) + reservation->excess_units;
	ensures moved(\result) && closed != \null && (closed->line != pair->head.line ||
		reservation->excess_units > 0) ==> pair->older_debt == \old(pair->older_debt) &&
		pair->head.minted == \old(pair->head.minted) && pair->head.burned == \old(pair->head.burned) &&
		pair->head.available == \old(pair->head.available) -
			(reservation->excess_units - reservation->overdraft_units);
	ensures moved(\result) && closed != \null && closed->line == pair->head.line &&
		reservation->excess_units == 0 ==>
		reminted(\old(*pair), *pair, *policy, unused(*reservation, settlement->actual)); */
extern LLVerdict ll_settle(LLPair *pair, LLBudget *closed, LLReservation *reservation,
						   const LLPolicy *own, const LLPolicy *policy,
						   const LLSettlement *settlement);

#ifdef PROVE_SETTLEMENT

/*@ requires state(state) && event(event);
	assigns \nothing;
	ensures judged(\result, state, event); */
static LLVerdict judge(LLState state, LLEvent event);

/*@ assigns \nothing;
	ensures says(\result, outcome, dimension) && !\result.replayed && no_wait(\result); */
static LLVerdict say(LLOutcome outcome, LLDimension dimension);

/*@ assigns \nothing;
	ensures \result.overflow && \result.outcome == verdict.outcome &&
		\result.dimension == verdict.dimension && (\result.replayed <==> verdict.replayed);
	ensures no_wait(verdict) ==> no_wait(\result); */
static LLVerdict overflowed(LLVerdict verdict);

/*@ requires \valid(head) && \valid_read(policy) && \separated(head, policy);
	requires signs(*head) && 0 <= units <= head->reserved && head->available <= policy->cap;
	assigns head->reserved, head->overdraft_repaid, head->minted, head->burned, head->available;
	ensures \result ==> home(\old(*head), *head, *policy, units); */
static bool come_home(LLBudget *head, LLUnits units, const LLPolicy *policy);

/*@ requires \valid(p) && \valid_read(policy) && (closed == \null || \valid(closed));
	requires \separated(p, closed, policy);
	requires signs(p->head) && older_signs(*p) && p->head.available <= policy->cap && 0 <= units;
	requires closed == \null ==> units <= p->head.reserved;
	requires closed != \null ==> units <= closed->reserved && units <= p->older_reserved && 0 <= closed->available;
	assigns p->head, p->older_debt, p->older_repaid, p->older_reserved, closed->reserved, closed->available;
	ensures \result && closed == \null ==> same_older(\old(*p), *p) &&
		home(\old(p->head), p->head, *policy, units);
	ensures \result && closed != \null ==> closed->reserved == \old(closed->reserved) - units &&
		closed->available == \old(closed->available) + units &&
		p->older_reserved == \old(p->older_reserved) - units &&
		same_account(\old(p->head), p->head) && p->head.reserved == \old(p->head.reserved) &&
		p->head.spent == \old(p->head.spent) && p->head.purged_spent == \old(p->head.purged_spent) &&
		p->head.retired_for_emergency == \old(p->head.retired_for_emergency) &&
		p->head.overdraft_issued == \old(p->head.overdraft_issued);
	ensures \result && closed != \null && closed->line != p->head.line ==>
		same_budget(\old(p->head), p->head) && p->older_debt == \old(p->older_debt) &&
		p->older_repaid == \old(p->older_repaid);
	ensures \result && closed != \null && closed->line == p->head.line ==>
		reminted(\old(*p), *p, *policy, units); */
static bool give_back(LLPair *p, LLBudget *closed, LLUnits units, const LLPolicy *policy);

/*@ requires \valid(p) && (closed == \null || \valid(closed)) && \separated(p, closed);
	requires 0 <= units;
	requires closed == \null ==> units <= p->head.reserved && 0 <= p->head.spent;
	requires closed != \null ==> units <= closed->reserved && units <= p->older_reserved && 0 <= closed->spent;
	assigns p->head.reserved, p->head.spent, p->older_reserved, closed->reserved, closed->spent;
	ensures \result && closed == \null ==> p->head.reserved == \old(p->head.reserved) - units &&
		p->head.spent == \old(p->head.spent) + units && p->older_reserved == \old(p->older_reserved);
	ensures \result && closed != \null ==> closed->reserved == \old(closed->reserved) - units &&
		closed->spent == \old(closed->spent) + units &&
		p->older_reserved == \old(p->older_reserved) - units &&
		p->head.reserved == \old(p->head.reserved) && p->head.spent == \old(p->head.spent); */
static bool spend(LLPair *p, LLBudget *closed, LLUnits units);

/*@ requires \valid(pair) && \valid(reservation) && (closed == \null || \valid(closed));
	requires \separated(pair, closed, reservation, policy);
	requires state(reservation->state);
	requires event == LL_EVENT_RELEASE || event == LL_EVENT_EXPIRE;
	// where nothing moves, nothing else is asked for
	requires next(reservation->state, event) != reservation->state ==> \valid_read(policy) && policy(*policy) && sound(*pair, *policy);
	requires next(reservation->state, event) != reservation->state && closed == \null ==> held(*pair, reservation->reserved_units);
	requires next(reservation->state, event) != reservation->state && closed != \null ==>
		held_closed(*pair, *closed, reservation->reserved_units);
	assigns *pair, *closed, reservation->state;
	ensures \result.outcome == LL_ACCEPTED <==> accepts(\old(reservation->state), event);
	ensures \result.overflow || judged(\result, \old(reservation->state), event);
	ensures reservation->state == (MOVED ? next(\old(reservation->state), event) : \old(reservation->state));
	ensures !moved(\result) ==> same_pair(\old(*pair), *pair);
	ensures !moved(\result) && closed != \null ==> same_budget(\old(*closed), *closed);
	ensures moved(\result) ==> next(\old(reservation->state), event) != \old(reservation->state) && sound(*pair, *policy) &&
		keeps(\old(*pair), *pair) && pair->frozen == \old(pair->frozen);
	ensures moved(\result) && closed == \null ==> same_older(\old(*pair), *pair) &&
		home(\old(pair->head), pair->head, *policy, reservation->reserved_units);
	ensures moved(\result) && closed != \null ==> conserved(*closed) &&
		left(\old(*closed), *closed, reservation->reserved_units, 0) &&
		pair->older_reserved == \old(pair->older_reserved) - reservation->reserved_units &&
		pair->head.reserved == \old(pair->head.reserved) && pair->head.spent == \old(pair->head.spent) &&
		pair->head.overdraft_issued == \old(pair->head.overdraft_issued);
	ensures moved(\result) && closed != \null && closed->line != pair->head.line ==>
		same_budget(\old(pair->head), pair->head) && pair->older_debt == \old(pair->older_debt);
	ensures moved(\result) && closed != \null && closed->line == pair->head.line ==>
		reminted(\old(*pair), *pair, *policy, reservation->reserved_units); */
static LLVerdict leave(LLPair *pair, LLBudget *closed, LLReservation *reservation,
					   const LLPolicy *policy, LLEvent event);
#endif

#endif							/* LL_PROVE_SETTLEMENT_H */
