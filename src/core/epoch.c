/*
 * epoch.c
 *	  A budget closes and the next one opens, so that no roll, publish or
 *	  rollback is free capacity (B5, E2, E4).
 *
 * The closed budget keeps its balance and its equation.  What the new one
 * takes over pays debt first; what remains is its opening.
 */
#include "arith.h"
#include "core.h"

/* ll_period_start gives the start of the fixed period that holds the instant. */
LLTime
ll_period_start(LLTime instant, LLTime length, LLTime origin)
{
	LLTime		offset = instant - origin;
	LLTime		into = offset % length;

	if (into < 0)
		into += length;
	return instant - into;
}

/*
 * take_over closes p->head and opens the next budget with `carried` units.
 * The line tells whether units of the closed budget may still come back here:
 * a window that opens with its quota begins a new one (C5).
 */
static bool
take_over(LLPair *p, const LLPolicy *policy, LLTime epoch, LLUnits carried,
		  LLUnits deficit, bool new_line, bool whole, LLBudget *closed)
{
	LLBudget	next = {0};
	LLUnits		share;

	*closed = p->head;
	if (!ll_add(&p->older_debt, ll_budget_debt(closed)) ||
		!ll_add(&p->older_reserved, closed->reserved))
		return false;
	share = ll_min(carried, p->older_debt);
	if (!ll_add(&p->older_repaid, share))
		return false;
	p->older_debt -= share;
	next.generation = policy->generation;
	next.epoch = epoch;
	next.carried = carried;
	next.opening = carried - share;
	next.available = carried - share;
	next.deficit = deficit;
	next.line = closed->line + (new_line ? 1 : 0);
	next.whole = whole;
	p->head = next;
	return true;
}

/* ll_epoch_open_first opens a pair's first budget at the cap (B2, B3). */
void
ll_epoch_open_first(LLPair *pair, const LLPolicy *policy, LLTime epoch, LLTime now)
{
	LLPair		p = {0};

	p.head.generation = policy->generation;
	p.head.epoch = epoch;
	p.head.carried = policy->cap;
	p.head.opening = policy->cap;
	p.head.available = policy->cap;
	p.head.line = 1;
	p.head.whole = policy->refill == LL_REFILL_WINDOW;
	p.seen_at = now;
	p.accrued_at = now;
	*pair = p;
}

/*
 * ll_epoch_open_next opens the next period of the same policy.  A window opens
 * with its quota, and each whole window that nobody opened has paid debt with
 * its own; the other kinds carry what is available.
 */
bool
ll_epoch_open_next(LLPair *pair, const LLPolicy *policy, LLTime epoch,
				   int64_t missed, LLBudget *closed)
{
	LLPair		p = *pair;
	LLBudget	ended;
	LLUnits		debt = ll_pair_debt(pair);
	LLUnits		paid;

	if (policy->refill == LL_REFILL_WINDOW)
	{
		/* missed x cap, capped at the debt without the product */
		paid = missed > debt / policy->cap ? debt : missed * policy->cap;
		if (!ll_repay_pair(&p, paid, &paid) ||
			!take_over(&p, policy, epoch, policy->cap, 0, true, true, &ended))
			return false;
	}
	else if (!take_over(&p, policy, epoch, ll_min(policy->cap, p.head.available),
						0, false, false, &ended))
		return false;
	*pair = p;
	*closed = ended;
	return true;
}

/*
 * ll_epoch_open_generation moves the pair to another policy.  Within one
 * window only the change of quota counts, and what is missing below zero stays
 * as a deficit; any other change carries what is available.  The fraction of a
 * unit is converted as a part of a unit.
 */
bool
ll_epoch_open_generation(LLPair *pair, const LLPolicy *old, const LLPolicy *new,
						 bool same_periods, LLTime epoch, LLBudget *closed)
{
	LLPair		p = *pair;
	LLBudget	ended;
	bool		whole = old->refill == LL_REFILL_WINDOW &&
		new->refill == LL_REFILL_WINDOW && same_periods && p.head.whole;
	LLUnits		net = p.head.available;
	int64_t		rest;

	if (whole)
		net = net - p.head.deficit + (new->cap - old->cap);
	if (!take_over(&p, new, epoch, ll_max(0, ll_min(new->cap, net)),
				   ll_max(0, -net), false, whole, &ended))
		return false;
	if (old->refill == LL_REFILL_CONTINUOUS && new->refill == LL_REFILL_CONTINUOUS)
		p.remainder = ll_divide_product(p.remainder, new->refill_interval, 0,
										old->refill_interval, &rest);
	else
		p.remainder = 0;
	if (p.head.available == new->cap && ll_pair_debt(&p) == 0)
		p.remainder = 0;
	*pair = p;
	*closed = ended;
	return true;
}
