/* admission.h: the one place where capacity is given out (D2, D3, D13, E1). */
#ifndef LL_PROVE_ADMISSION_H
#define LL_PROVE_ADMISSION_H

#include "refill.h"
#include "transition.h"

/*@ // what the pair holds reserved at one time
	logic integer outstanding(LLPair p) = p.older_reserved + p.head.reserved;

	// D3: admitted if and only if nothing stands against it
	predicate admissible(LLPair p, LLPolicy y, LLRequest r, integer now) =
		r.region_matches && r.estimator_accepted && now < r.deadline &&
		r.units <= y.largest_reservation && r.units <= y.cap && r.units <= y.largest_outstanding &&
		!r.draining && !p.frozen && !r.route_frozen && !r.quarantined &&
		(y.largest_outstanding < INT64_MAX ==> outstanding(p) + r.units <= y.largest_outstanding) &&
		pair_debt(p) == 0 && r.units <= p.head.available;

	// units moved from available to reserved, and nothing else
	predicate took(LLPair x, LLPair y, integer units) =
		same_account(x.head, y.head) && same_older(x, y) && same_time(x, y) && x.frozen == y.frozen &&
		y.head.available == x.head.available - units && y.head.reserved == x.head.reserved + units &&
		x.head.minted == y.head.minted && x.head.overdraft_issued == y.head.overdraft_issued &&
		x.head.spent == y.head.spent &&
		x.head.retired_for_emergency == y.head.retired_for_emergency &&
		x.head.overdraft_repaid == y.head.overdraft_repaid && x.head.burned == y.head.burned &&
		x.head.deficit == y.head.deficit && x.head.purged_spent == y.head.purged_spent;
*/

/*@ requires \valid_read(pair) && \valid_read(policy) && \valid_read(request);
	requires sound(*pair, *policy) && policy(*policy) && 0 <= request->units;
	assigns \nothing;
	ensures \result.outcome == LL_ACCEPTED <==> admissible(*pair, *policy, *request, now);
	ensures \result.outcome == LL_ACCEPTED || \result.outcome == LL_REFUSED;
	ensures \result.outcome == LL_ACCEPTED ==> \result.dimension == LL_DIM_NONE && no_wait(\result);
	ensures \result.outcome == LL_REFUSED ==> \result.dimension != LL_DIM_NONE;
	ensures !\result.replayed && !\result.overflow;
	// E1, and a wait that is told only where units are wanting (D4)
	ensures \result.dimension == LL_DIM_DEBT ==> pair_debt(*pair) > 0;
	ensures \result.dimension == LL_DIM_AVAILABLE ==>
		pair_debt(*pair) == 0 && request->units > pair->head.available;
	ensures \result.wait == LL_WAIT_REFILL ==>
		\result.dimension == LL_DIM_DEBT || \result.dimension == LL_DIM_AVAILABLE; */
extern LLVerdict ll_admission_judge(const LLPair *pair, const LLPolicy *policy,
									const LLRequest *request, LLTime now);

/*@ requires \valid(pair) && \valid_read(policy) && \valid_read(request) && \valid(reservation);
	requires \separated(pair, policy, request, reservation);
	requires sound(*pair, *policy) && policy(*policy) && 1 <= request->units;
	assigns pair->head.available, pair->head.reserved, *reservation;
	ensures moved(\result) ==> admissible(\old(*pair), *policy, *request, now);
	ensures moved(\result) ==> took(\old(*pair), *pair, request->units) && sound(*pair, *policy);
	ensures moved(\result) ==> outstanding(*pair) <= INT64_MAX &&
		reservation->state == (request->start ? LL_STARTED : LL_RESERVED) &&
		reservation->reserved_units == request->units && reservation->actual_units == 0 &&
		reservation->excess_units == 0 && reservation->overdraft_units == 0 &&
		reservation->progress_units == 0 && reservation->claimed_until == 0 &&
		reservation->expires_at ==
			\min(INT64_MAX, now + (request->start ? policy->execution_ttl : policy->hold_ttl));
	ensures !moved(\result) ==> same_pair(\old(*pair), *pair) &&
		same_reservation(\old(*reservation), *reservation);
	ensures \result.overflow <==> admissible(\old(*pair), *policy, *request, now) &&
		outstanding(\old(*pair)) + request->units > INT64_MAX;
	ensures !\result.replayed && (\result.outcome == LL_ACCEPTED || \result.outcome == LL_REFUSED);
	ensures \result.outcome == LL_REFUSED <==> !admissible(\old(*pair), *policy, *request, now); */
extern LLVerdict ll_admit(LLPair *pair, const LLPolicy *policy, const LLRequest *request,
						  LLTime now, LLReservation *reservation);

/*@ // D13: decided like a new reserve of the units that are added
	predicate extensible(LLPair p, LLReservation r, LLPolicy own, LLPolicy y, LLExtension e, integer now) =
		(r.state == LL_RESERVED || r.state == LL_STARTED) && now < r.expires_at &&
		e.expires_at <= \min(INT64_MAX, now + (r.state == LL_STARTED ? own.execution_ttl : own.hold_ttl)) &&
		(e.units > 0 ==> e.head && r.reserved_units + e.units <= y.largest_reservation &&
		 r.reserved_units + e.units <= y.cap && r.reserved_units + e.units <= y.largest_outstanding) &&
		now < INT64_MAX && e.units <= y.largest_reservation && e.units <= y.cap &&
		e.units <= y.largest_outstanding && !e.draining && !p.frozen && !e.route_frozen && !e.quarantined &&
		(y.largest_outstanding < INT64_MAX ==> outstanding(p) + e.units <= y.largest_outstanding) &&
		pair_debt(p) == 0 && e.units <= p.head.available;
*/

/*@ requires \valid(pair) && \valid(reservation) && \valid_read(own) && \valid_read(policy) &&
		\valid_read(extension) && \separated(pair, reservation, own, policy, extension);
	requires sound(*pair, *policy) && policy(*policy) && policy(*own) && 0 <= extension->units;
	requires state(reservation->state) && 0 <= reservation->reserved_units;
	assigns pair->head.available, pair->head.reserved, reservation->reserved_units, reservation->expires_at;
	ensures moved(\result) ==>
		extensible(\old(*pair), \old(*reservation), *own, *policy, *extension, now);
	ensures extensible(\old(*pair), \old(*reservation), *own, *policy, *extension, now) ==>
		moved(\result) || (\result.overflow && outstanding(*pair) + extension->units > INT64_MAX);
	ensures moved(\result) ==> took(\old(*pair), *pair, extension->units) && sound(*pair, *policy);
	ensures moved(\result) ==>
		reservation->reserved_units == \old(reservation->reserved_units) + extension->units &&
		reservation->expires_at == \max(\old(reservation->expires_at), extension->expires_at);
	ensures !moved(\result) ==> same_pair(\old(*pair), *pair) &&
		same_reservation(\old(*reservation), *reservation);
	ensures !\result.replayed && (\result.outcome == LL_ACCEPTED || \result.outcome == LL_REFUSED); */
extern LLVerdict ll_extend(LLPair *pair, LLReservation *reservation, const LLPolicy *own,
						   const LLPolicy *policy, const LLExtension *extension, LLTime now);

#ifdef PROVE_ADMISSION

/*@ assigns \nothing;
	ensures says(\result, LL_REFUSED, dimension) && !\result.replayed;
	ensures \result.wait == wait && \result.wait_until == 0 && \result.wait_windows == 0; */
static LLVerdict refuse(LLDimension dimension, LLWait wait);

#endif

#endif							/* LL_PROVE_ADMISSION_H */
