/*
 * refill.c
 *	  Units that time brings (C4), and how long until it has brought enough
 *	  (D4).
 */
#include "arith.h"
#include "core.h"

/*
 * ll_refill_accrue mints what fell due between accrued_at and `to`: debt
 * first, then available up to the cap.  The fraction of a unit is kept, so one
 * late call gives what many early ones would have given; it is dropped only
 * when the bucket is full and free of debt.  An instant that lies behind mints
 * nothing (A3).  What a budget can't hold any more (A2) stays due, for the next
 * one.
 */
bool
ll_refill_accrue(LLPair *pair, const LLPolicy *policy, LLTime to)
{
	LLPair		p = *pair;
	LLUnits		due;
	LLUnits		room;
	LLUnits		repaid;

	if (to <= pair->accrued_at)
		return true;
	p.accrued_at = to;
	if (policy->refill == LL_REFILL_CONTINUOUS)
	{
		room = ll_add_capped(policy->cap - p.head.available, ll_pair_debt(pair));
		due = ll_divide_product(to - pair->accrued_at, policy->refill_units,
								p.remainder, policy->refill_interval, &p.remainder);
		if (due >= room)
		{
			due = room;
			p.remainder = 0;
		}
		if (due > ll_budget_room(&p.head))	/* at the end of int64 */
			return true;
		if (!ll_repay_pair(&p, due, &repaid) || !ll_add(&p.head.minted, due - repaid))
			return false;
		p.head.available += due - repaid;
	}
	*pair = p;
	return true;
}

/* ll_refill_wait says when `short_units` (at least 1) more will have come. */
void
ll_refill_wait(const LLPair *pair, const LLPolicy *policy, LLUnits short_units,
			   LLVerdict *verdict)
{
	verdict->wait_until = 0;
	verdict->wait_windows = 0;
	switch (policy->refill)
	{
		case LL_REFILL_CONTINUOUS:
			verdict->wait = LL_WAIT_REFILL;
			verdict->wait_until =
				ll_add_capped(pair->accrued_at,
							  ll_ticks_until(short_units, policy->refill_interval,
											 pair->remainder, policy->refill_units));
			break;
		case LL_REFILL_WINDOW:
			/* Each window brings its quota anew: debt takes from it first. */
			verdict->wait = LL_WAIT_REFILL;
			verdict->wait_windows =
				ll_add_capped(short_units, pair->head.available) / policy->cap +
				(ll_add_capped(short_units, pair->head.available) % policy->cap != 0);
			break;
		case LL_REFILL_NONE:
			verdict->wait = LL_WAIT_RELEASE;
			break;
	}
}

/* ll_refill_reset says when the pair will be full again by refill alone. */
LLVerdict
ll_refill_reset(const LLPair *pair, const LLPolicy *policy)
{
	LLVerdict	verdict = {LL_ACCEPTED, LL_DIM_NONE, false, false, LL_WAIT_NONE, 0, 0};
	LLUnits		missing = ll_add_capped(policy->cap - pair->head.available,
										ll_pair_debt(pair));

	if (missing > 0 || policy->refill == LL_REFILL_WINDOW)
		ll_refill_wait(pair, policy, missing, &verdict);
	return verdict;
}
