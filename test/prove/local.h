/* local.h: shards on the side of the gateway (G1, G4-G7). */
#ifndef LL_PROVE_LOCAL_H
#define LL_PROVE_LOCAL_H

#include "arith.h"
#include "transition.h"

/*@ // G1
	predicate shard(LLShard s) =
		0 <= s.allocated && 0 <= s.available && 0 <= s.reserved && 0 <= s.spent && 0 <= s.retired &&
		0 <= s.excess && (s.sealed ==> s.available == 0) &&
		s.allocated == s.available + s.reserved + s.spent + s.retired;

	// and what its own report has to hold: all that was used is a bigint (A2)
	predicate kept(LLShard s) = shard(s) && s.spent + s.excess <= INT64_MAX;

	predicate same_shard(LLShard x, LLShard y) =
		x.allocated == y.allocated && x.available == y.available && x.reserved == y.reserved &&
		x.spent == y.spent && x.retired == y.retired && x.excess == y.excess && x.sealed == y.sealed;

	// units that were reserved came back: to a sealed shard for good (G6)
	predicate returned(LLShard x, LLShard y, integer units) =
		x.allocated == y.allocated && x.spent == y.spent && x.excess == y.excess &&
		x.sealed == y.sealed && y.reserved == x.reserved - units &&
		y.available == x.available + (x.sealed ? 0 : units) &&
		y.retired == x.retired + (x.sealed ? units : 0);
*/

/*@ requires \valid_read(shard);
	assigns \nothing;
	ensures \result <==> shard(*shard); */
extern bool ll_shard_conserved(const LLShard *shard);

/*@ // G4, G6, G7, E1
	predicate local_admissible(LLShard s, LLLocalRequest r, integer now) =
		now < r.deadline && r.units <= r.largest_reservation && s.excess == 0 && !r.quarantined &&
		!s.sealed && now < r.shard_expires_at && r.units <= s.available;
*/

/*@ requires \valid(shard) && \valid_read(request) && \valid(reservation);
	requires \separated(shard, request, reservation);
	requires kept(*shard) && 1 <= request->units && 0 <= request->hold_ttl;
	assigns shard->available, shard->reserved, *reservation;
	ensures kept(*shard);
	ensures moved(\result) <==> local_admissible(\old(*shard), *request, now);
	ensures moved(\result) || \result.outcome == LL_REFUSED;
	ensures !\result.replayed && !\result.overflow;
	ensures shard->available == \old(shard->available) - (MOVED ? request->units : 0);
	ensures shard->reserved == \old(shard->reserved) + (MOVED ? request->units : 0);
	ensures !moved(\result) ==> same_reservation(\old(*reservation), *reservation);
	ensures moved(\result) ==> reservation->state == LL_RESERVED &&
		reservation->reserved_units == request->units && reservation->actual_units == 0 &&
		reservation->excess_units == 0 && reservation->overdraft_units == 0 &&
		reservation->progress_units == 0 && reservation->claimed_until == 0;
	// no hold outlives its shard
	ensures moved(\result) ==> reservation->expires_at ==
		\min(request->shard_expires_at, now + request->hold_ttl); */
extern LLVerdict ll_local_reserve(LLShard *shard, const LLLocalRequest *request, LLTime now,
								  LLReservation *reservation);

/*@ requires \valid(shard) && \valid(reservation) && \valid_read(settlement);
	requires \separated(shard, reservation, settlement);
	requires kept(*shard) && state(reservation->state) && 0 <= settlement->actual;
	requires running(reservation->state) ==> 0 <= reservation->reserved_units <= shard->reserved;
	assigns *shard, *reservation;
	ensures kept(*shard);
	ensures shard->allocated == \old(shard->allocated) && shard->sealed == \old(shard->sealed);
	ensures no_wait(\result);
	ensures moved(\result) ==> running(\old(reservation->state)) &&
		(settlement->operation == LL_OPERATION_SAME ||
		 (settlement->operation == LL_OPERATION_FREE && \old(reservation->state) == LL_USAGE_UNKNOWN));
	ensures running(\old(reservation->state)) && settlement->operation == LL_OPERATION_SAME ==>
		moved(\result) || \result.overflow;
	ensures \result.replayed ==> settled(reservation->state) && settlement->same_receipt &&
		settlement->actual == reservation->actual_units;
	ensures settled(\old(reservation->state)) && !\result.replayed ==> \result.outcome == LL_CONFLICT;
	ensures !moved(\result) ==> same_shard(\old(*shard), *shard) &&
		same_reservation(\old(*reservation), *reservation);
	// what exceeds the reservation takes what is available first; the rest is excess (D7)
	ensures moved(\result) ==>
		shard->reserved == \old(shard->reserved) - reservation->reserved_units &&
		shard->spent + shard->excess == \old(shard->spent) + \old(shard->excess) + settlement->actual &&
		shard->excess == \old(shard->excess) +
			\max(0, settlement->actual - reservation->reserved_units - \old(shard->available));
	ensures moved(\result) ==> shard->retired == \old(shard->retired) +
		(shard->sealed ? \max(0, reservation->reserved_units - settlement->actual) : 0);
	ensures moved(\result) ==> reservation->actual_units == settlement->actual &&
		reservation->excess_units == \max(0, settlement->actual - reservation->reserved_units) &&
		reservation->overdraft_units == shard->excess - \old(shard->excess) &&
		reservation->state == (reservation->overdraft_units > 0 ? LL_SETTLED_WITH_DEBT : LL_SETTLED) &&
		reservation->reserved_units == \old(reservation->reserved_units) &&
		reservation->progress_units == \old(reservation->progress_units) &&
		reservation->expires_at == \old(reservation->expires_at) &&
		reservation->claimed_until == \old(reservation->claimed_until); */
extern LLVerdict ll_local_settle(LLShard *shard, LLReservation *reservation,
								 const LLSettlement *settlement);

/*@ requires \valid(shard) && \valid(reservation) && \separated(shard, reservation);
	requires kept(*shard) && state(reservation->state);
	requires reservation->state == LL_RESERVED ==> 0 <= reservation->reserved_units <= shard->reserved;
	assigns *shard, reservation->state;
	ensures kept(*shard) && judged(\result, \old(reservation->state), LL_EVENT_RELEASE);
	ensures reservation->state == (MOVED ? LL_RELEASED : \old(reservation->state));
	ensures moved(\result) ==> \old(reservation->state) == LL_RESERVED;
	ensures returned(\old(*shard), *shard, MOVED ? reservation->reserved_units : 0); */
extern LLVerdict ll_local_release(LLShard *shard, LLReservation *reservation);

/*@ requires \valid(shard) && \valid(reservation) && \separated(shard, reservation);
	requires kept(*shard) && state(reservation->state) && reservation->state != LL_EXPIRING;
	requires reservation->state == LL_RESERVED ==> 0 <= reservation->reserved_units <= shard->reserved;
	assigns *shard, reservation->state;
	ensures kept(*shard) && no_wait(\result) && !\result.overflow && !\result.replayed;
	ensures moved(\result) <==> \old(reservation->state) == LL_RESERVED && now >= reservation->expires_at;
	ensures reservation->state == (MOVED ? LL_EXPIRED : \old(reservation->state));
	ensures returned(\old(*shard), *shard, MOVED ? reservation->reserved_units : 0); */
extern LLVerdict ll_local_expire(LLShard *shard, LLReservation *reservation, LLTime now);

/*@ requires \valid(shard) && kept(*shard);
	assigns shard->retired, shard->available, shard->sealed;
	ensures kept(*shard) && shard->sealed && shard->available == 0;
	ensures shard->retired == \old(shard->retired) + \old(shard->available); */
extern void ll_local_seal(LLShard *shard);

/*@ requires \valid(reservation);
	assigns reservation->state;
	ensures \result <==> \old(reservation->state) == LL_RESERVED || \old(reservation->state) == LL_STARTED;
	ensures reservation->state == (\result ? LL_USAGE_UNKNOWN : \old(reservation->state)); */
extern bool ll_local_boot(LLReservation *reservation);

/*@ requires state(from) && state(to);
	assigns \nothing;
	ensures \result <==>
		(from == LL_ABSENT && (to == LL_RESERVED || to == LL_RELEASED)) ||
		(from == LL_RESERVED && (to == LL_STARTED || to == LL_RELEASED || to == LL_EXPIRING ||
								 to == LL_EXPIRED || to == LL_USAGE_UNKNOWN)) ||
		(from == LL_STARTED && (to == LL_USAGE_UNKNOWN || settled(to))) ||
		(from == LL_USAGE_UNKNOWN && settled(to)) ||
		(from == LL_EXPIRING && to == LL_EXPIRED); */
extern bool ll_local_transition_allows(LLState from, LLState to);

#ifdef PROVE_LOCAL

#include "settlement.h"

/*@ assigns \nothing;
	ensures says(\result, outcome, dimension) && !\result.replayed;
	ensures \result.wait == wait && \result.wait_until == 0 && \result.wait_windows == 0; */
static LLVerdict say(LLOutcome outcome, LLDimension dimension, LLWait wait);

/*@ requires state(state) && event(event);
	assigns \nothing;
	ensures judged(\result, state, event); */
static LLVerdict judge(LLState state, LLEvent event);

/*@ requires \valid(shard) && kept(*shard) && 0 <= units <= shard->reserved;
	assigns shard->reserved, shard->available, shard->retired;
	ensures kept(*shard) && returned(\old(*shard), *shard, units); */
static void give_back(LLShard *shard, LLUnits units);

#endif

#endif							/* LL_PROVE_LOCAL_H */
