/*
 * repayment.c
 *	  Units that pay debt: the oldest budget first, before anything is
 *	  available again (E2).
 *
 * minted and overdraft_repaid grow together.  What the closed budgets receive
 * is summed in older_repaid; ll_repay_closed books it budget by budget, and
 * because the order is fixed the sum says all.
 */
#include "arith.h"
#include "core.h"

/* ll_repay_pair pays up to `units` of the pair's debt; *used says how much. */
bool
ll_repay_pair(LLPair *pair, LLUnits units, LLUnits *used)
{
	LLUnits		older = ll_min(units, pair->older_debt);
	LLUnits		own = ll_min(units - older, ll_budget_debt(&pair->head));

	if (own > ll_budget_room(&pair->head) || pair->older_repaid > INT64_MAX - older)
		return false;
	pair->older_debt -= older;
	pair->older_repaid += older;
	pair->head.minted += own;
	pair->head.overdraft_repaid += own;
	*used = older + own;
	return true;
}

/* ll_repay_closed books on one closed budget its part of older_repaid. */
bool
ll_repay_closed(LLPair *pair, LLBudget *closed)
{
	LLUnits		part = ll_min(pair->older_repaid, ll_budget_debt(closed));

	if (part > ll_budget_room(closed))
		return false;
	closed->minted += part;
	closed->overdraft_repaid += part;
	pair->older_repaid -= part;
	return true;
}
