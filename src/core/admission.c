/*
 * admission.c
 *	  The one place where capacity is given out (D2, D3, E1).
 */
#include "arith.h"
#include "core.h"

static LLVerdict
refuse(LLDimension dimension, LLWait wait)
{
	LLVerdict	verdict = {LL_REFUSED, dimension, false, false, wait, 0, 0};

	return verdict;
}

/*
 * ll_admission_judge decides one new request on a pair that was brought to
 * `now`, and takes nothing.  Limits that no waiting can change come first, so
 * that a caller is never told to wait in vain.
 */
LLVerdict
ll_admission_judge(const LLPair *pair, const LLPolicy *policy,
				   const LLRequest *request, LLTime now)
{
	LLVerdict	verdict = {LL_ACCEPTED, LL_DIM_NONE, false, false, LL_WAIT_NONE, 0, 0};
	LLUnits		debt = ll_pair_debt(pair);
	LLUnits		outstanding = ll_add_capped(pair->older_reserved, pair->head.reserved);

	if (!request->region_matches)
		return refuse(LL_DIM_REGION, LL_WAIT_NEVER);
	if (!request->estimator_accepted)
		return refuse(LL_DIM_ESTIMATOR, LL_WAIT_NEVER);
	if (now >= request->deadline)	/* D9 */
		return refuse(LL_DIM_DEADLINE, LL_WAIT_NEVER);
	if (request->units > policy->largest_reservation)
		return refuse(LL_DIM_LARGEST_RESERVATION, LL_WAIT_NEVER);
	if (request->units > policy->cap)
		return refuse(LL_DIM_CAP, LL_WAIT_NEVER);
	if (request->units > policy->largest_outstanding)
		return refuse(LL_DIM_LARGEST_OUTSTANDING, LL_WAIT_NEVER);
	if (request->draining)		/* B6 */
		return refuse(LL_DIM_DRAINING, LL_WAIT_OPERATOR);
	if (pair->frozen || request->route_frozen)	/* D8 */
		return refuse(LL_DIM_FROZEN, LL_WAIT_OPERATOR);
	if (request->quarantined)	/* G7 */
		return refuse(LL_DIM_RECOVERY, LL_WAIT_OPERATOR);
	if (policy->largest_outstanding < LL_UNITS_MAX &&
		outstanding > policy->largest_outstanding - request->units)
		return refuse(LL_DIM_LARGEST_OUTSTANDING, LL_WAIT_RELEASE);
	if (debt == 0 && request->units <= pair->head.available)
		return verdict;

	/* E1: with debt nothing is admitted, and nothing is available either. */
	verdict = refuse(debt > 0 ? LL_DIM_DEBT : LL_DIM_AVAILABLE, LL_WAIT_NONE);
	ll_refill_wait(pair, policy,
				   ll_add_capped(debt, request->units - pair->head.available), &verdict);
	return verdict;
}

/* ll_admit decides, and takes the units of an accepted request. */
LLVerdict
ll_admit(LLPair *pair, const LLPolicy *policy, const LLRequest *request,
		 LLTime now, LLReservation *reservation)
{
	LLVerdict	verdict = ll_admission_judge(pair, policy, request, now);
	LLReservation taken = {.state = LL_RESERVED};

	if (verdict.outcome != LL_ACCEPTED)
		return verdict;
	if (pair->head.reserved > INT64_MAX - pair->older_reserved ||
		request->units > INT64_MAX - pair->older_reserved - pair->head.reserved)
	{
		verdict.overflow = true;
		return verdict;
	}
	pair->head.available -= request->units;
	pair->head.reserved += request->units;

	taken.reserved_units = request->units;
	taken.expires_at = ll_add_capped(now, policy->hold_ttl);
	if (request->start)
	{
		taken.state = LL_STARTED;
		taken.expires_at = ll_add_capped(now, policy->execution_ttl);
	}
	*reservation = taken;
	return verdict;
}

/*
 * ll_extend gives a hold or an execution that has not run out more units or a
 * later deadline.  It is decided like a new reserve of the units that are
 * added, while the limits of one reservation count its units together (D13).
 */
LLVerdict
ll_extend(LLPair *pair, LLReservation *reservation, const LLPolicy *own,
		  const LLPolicy *policy, const LLExtension *extension, LLTime now)
{
	LLTime		ttl = reservation->state == LL_STARTED ? own->execution_ttl : own->hold_ttl;
	LLUnits		has = reservation->reserved_units;
	LLRequest	request = {
		.units = extension->units,.deadline = LL_TIME_MAX,
		.region_matches = true,.estimator_accepted = true,
		.draining = extension->draining,.route_frozen = extension->route_frozen,
		.quarantined = extension->quarantined
	};
	LLVerdict	verdict;

	if (reservation->state != LL_RESERVED && reservation->state != LL_STARTED)
		return refuse(reservation->state == LL_RELEASED ? LL_DIM_RELEASED
					  : reservation->state == LL_EXPIRING || reservation->state == LL_EXPIRED
					  ? LL_DIM_EXPIRED
					  : reservation->state == LL_USAGE_UNKNOWN ? LL_DIM_ALREADY_STARTED
					  : LL_DIM_SETTLED, LL_WAIT_NONE);
	if (now >= reservation->expires_at)
		return refuse(LL_DIM_EXPIRED, LL_WAIT_NONE);
	if (extension->expires_at > ll_add_capped(now, ttl))
		return refuse(LL_DIM_TTL, LL_WAIT_NEVER);
	if (extension->units > 0 && !extension->head)
		return refuse(LL_DIM_CLOSED_BUDGET, LL_WAIT_NEVER);
	if (extension->units > 0 && extension->units > policy->largest_reservation - has)
		return refuse(LL_DIM_LARGEST_RESERVATION, LL_WAIT_NEVER);
	if (extension->units > 0 && extension->units > policy->cap - has)
		return refuse(LL_DIM_CAP, LL_WAIT_NEVER);
	if (extension->units > 0 && extension->units > policy->largest_outstanding - has)
		return refuse(LL_DIM_LARGEST_OUTSTANDING, LL_WAIT_NEVER);
	verdict = ll_admission_judge(pair, policy, &request, now);
	if (verdict.outcome != LL_ACCEPTED)
		return verdict;
	if (extension->units > INT64_MAX - pair->older_reserved - pair->head.reserved)
	{
		verdict.overflow = true;
		return verdict;
	}
	pair->head.available -= extension->units;
	pair->head.reserved += extension->units;
	reservation->reserved_units += extension->units;
	reservation->expires_at = ll_max(reservation->expires_at, extension->expires_at);
	return verdict;
}
