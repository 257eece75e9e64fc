/*
 * local.c
 *	  Shards on the side of the gateway: reserve, settle, release, expire against
 *	  what was allocated, and nothing else (G1, G4, G5).
 *
 * Start and unknown usage move no balance: ll_start and ll_report_unknown serve
 * here as well.
 */
#include "arith.h"
#include "core.h"

static LLVerdict
say(LLOutcome outcome, LLDimension dimension, LLWait wait)
{
	LLVerdict	verdict = {outcome, dimension, false, false, wait, 0, 0};

	return verdict;
}

/* judge turns the table's entry into a verdict. */
static LLVerdict
judge(LLState state, LLEvent event)
{
	const LLTransition *t = ll_transition(state, event);
	LLVerdict	verdict = say(t->outcome, t->dimension, LL_WAIT_NONE);

	verdict.replayed = t->outcome == LL_ACCEPTED && t->next == state;
	return verdict;
}

/* ll_shard_conserved checks G1; a sealed shard has nothing available. */
bool
ll_shard_conserved(const LLShard *s)
{
	LLUnits		sum = s->available;

	if (s->allocated < 0 || s->available < 0 || s->reserved < 0 || s->spent < 0 ||
		s->retired < 0 || s->excess < 0 || (s->sealed && s->available > 0))
		return false;
	return ll_add(&sum, s->reserved) && ll_add(&sum, s->spent) && ll_add(&sum, s->retired) &&
		sum == s->allocated;
}

/*
 * ll_local_reserve takes units.  A hold ends with its shard at the latest: after
 * that nothing may start that the ledger does not know of.
 */
LLVerdict
ll_local_reserve(LLShard *shard, const LLLocalRequest *request, LLTime now,
				 LLReservation *reservation)
{
	LLTime		hold_ends = ll_add_capped(now, request->hold_ttl);

	if (now >= request->deadline)
		return say(LL_REFUSED, LL_DIM_DEADLINE, LL_WAIT_NEVER);
	if (request->units > request->largest_reservation)
		return say(LL_REFUSED, LL_DIM_LARGEST_RESERVATION, LL_WAIT_NEVER);
	if (shard->excess > 0)
		return say(LL_REFUSED, LL_DIM_EXCESS, LL_WAIT_OPERATOR);
	if (request->quarantined)	/* G7 */
		return say(LL_REFUSED, LL_DIM_RECOVERY, LL_WAIT_OPERATOR);
	if (shard->sealed)
		return say(LL_REFUSED, LL_DIM_SEALED, LL_WAIT_OPERATOR);
	if (now >= request->shard_expires_at)
		return say(LL_REFUSED, LL_DIM_SHARD_EXPIRED, LL_WAIT_OPERATOR);
	if (request->units > shard->available)	/* more than can come back needs another shard */
		return say(LL_REFUSED, LL_DIM_AVAILABLE,
				   request->units > shard->available + shard->reserved
				   ? LL_WAIT_OPERATOR : LL_WAIT_RELEASE);
	shard->available -= request->units;
	shard->reserved += request->units;
	reservation->state = ll_transition(LL_ABSENT, LL_EVENT_RESERVE)->next;
	reservation->reserved_units = request->units;
	reservation->actual_units = 0;
	reservation->excess_units = 0;
	reservation->overdraft_units = 0;
	reservation->progress_units = 0;
	reservation->expires_at = ll_min(hold_ends, request->shard_expires_at);
	reservation->claimed_until = 0;
	return say(LL_ACCEPTED, LL_DIM_NONE, LL_WAIT_NONE);
}

/* give_back returns units that were reserved and not used: to a sealed shard for good (G6). */
static void
give_back(LLShard *shard, LLUnits units)
{
	shard->reserved -= units;
	if (shard->sealed)
		shard->retired += units;
	else
		shard->available += units;
}

/*
 * ll_local_settle spends what was used.  An item that a boot made unknown before
 * it started is bound by the receipt (D1).
 */
LLVerdict
ll_local_settle(LLShard *shard, LLReservation *reservation, const LLSettlement *settlement)
{
	LLVerdict	verdict = judge(reservation->state, LL_EVENT_SETTLE);
	LLUnits		actual = settlement->actual;
	LLUnits		within = ll_min(actual, reservation->reserved_units);
	LLUnits		over = actual - within;
	LLUnits		covered;

	if (verdict.outcome != LL_ACCEPTED)
		return verdict;
	if (settlement->operation == LL_OPERATION_ELSEWHERE)
		return say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE, LL_WAIT_NONE);
	if (settlement->operation == LL_OPERATION_OTHER ||
		(settlement->operation == LL_OPERATION_FREE && reservation->state != LL_USAGE_UNKNOWN))
		return say(LL_CONFLICT, LL_DIM_OPERATION, LL_WAIT_NONE);
	if (verdict.replayed)
		return actual == reservation->actual_units && settlement->same_receipt
			? verdict : say(LL_CONFLICT, LL_DIM_FIGURES, LL_WAIT_NONE);

	covered = ll_min(over, shard->available);
	/* what a report says was used, spent and excess together, is a bigint, too (A2) */
	if (over - covered > LL_UNITS_MAX - shard->excess - (shard->spent + within + covered))
	{
		verdict.overflow = true;
		return verdict;
	}
	give_back(shard, reservation->reserved_units - within);
	shard->reserved -= within;
	shard->available -= covered;
	shard->spent += within + covered;
	shard->excess += over - covered;
	reservation->actual_units = actual;
	reservation->excess_units = over;
	reservation->overdraft_units = over - covered;
	reservation->state = over > covered
		? ll_transition(reservation->state, LL_EVENT_SETTLE)->next_with_debt
		: ll_transition(reservation->state, LL_EVENT_SETTLE)->next;
	return verdict;
}

/* ll_local_release: RESERVED -> RELEASED (D9). */
LLVerdict
ll_local_release(LLShard *shard, LLReservation *reservation)
{
	LLVerdict	verdict = judge(reservation->state, LL_EVENT_RELEASE);

	if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
		return verdict;
	give_back(shard, reservation->reserved_units);
	reservation->state = ll_transition(reservation->state, LL_EVENT_RELEASE)->next;
	return verdict;
}

/*
 * ll_local_expire: RESERVED -> EXPIRED.  The shard's lock is held throughout, so
 * the step in between (EXPIRING) is nobody's to see (D14).
 */
LLVerdict
ll_local_expire(LLShard *shard, LLReservation *reservation, LLTime now)
{
	LLVerdict	verdict = ll_expire_claim(reservation, now);

	if (verdict.outcome != LL_ACCEPTED)
		return verdict;
	give_back(shard, reservation->reserved_units);
	reservation->state = ll_transition(reservation->state, LL_EVENT_EXPIRE)->next;
	return verdict;
}

/* ll_local_seal retires what is left; again, it changes nothing. */
void
ll_local_seal(LLShard *shard)
{
	shard->retired += shard->available;
	shard->available = 0;
	shard->sealed = true;
}

/* ll_local_boot: whoever held it is gone, and nobody can tell what ran. */
bool
ll_local_boot(LLReservation *reservation)
{
	if (reservation->state != LL_RESERVED && reservation->state != LL_STARTED)
		return false;
	reservation->state = LL_USAGE_UNKNOWN;
	return true;
}

/* ll_local_transition_allows: as the table has it, and the two steps that only a gateway makes. */
bool
ll_local_transition_allows(LLState from, LLState to)
{
	return ll_transition_allows(from, to) ||
		(from == LL_RESERVED && (to == LL_EXPIRED || to == LL_USAGE_UNKNOWN));
}
