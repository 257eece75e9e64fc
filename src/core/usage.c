/*
 * usage.c
 *	  Usage that no reservation covers (B2, D7, D12), and what operators do about
 *	  it (D8, E3).
 */
#include "arith.h"
#include "core.h"

/*
 * ll_exceed books units that no reservation covers on the head: available
 * first, the rest is debt.  All of it is recorded, whatever the policy allows (D7, D8).
 */
bool
ll_exceed(LLPair *p, LLUnits units, const LLPolicy *policy, LLUnits *debt)
{
	LLUnits		covered = ll_min(units, p->head.available);

	*debt = units - covered;
	if (units == 0)
		return true;
	if (*debt > INT64_MAX - p->older_debt - ll_budget_debt(&p->head) ||
		*debt > INT64_MAX - p->head.overdraft_issued || units > INT64_MAX - p->head.spent)
		return false;
	p->head.overdraft_issued += *debt;
	p->head.spent += units;
	p->head.available -= covered;
	if (ll_pair_debt(p) > policy->maximum_overdraft)
		p->frozen = true;
	return true;
}

/* ll_record_usage books usage that was never reserved; nothing that ran is lost (D12). */
LLVerdict
ll_record_usage(LLPair *pair, const LLPolicy *policy, LLUnits units, bool imported)
{
	LLVerdict	verdict = {LL_ACCEPTED, LL_DIM_NONE, false, false, LL_WAIT_NONE, 0, 0};
	LLPair		p = *pair;
	LLUnits		debt;

	if (!ll_exceed(&p, units, policy, &debt) || ll_budget_room(&p.head) < 0)
	{
		verdict.overflow = true;
		return verdict;
	}
	if (units > policy->hard_limit && !imported)
		p.frozen = true;
	*pair = p;
	return verdict;
}

/*
 * ll_grant mints what an operator grants: it pays debt, then fills a deficit,
 * then available up to the cap.  What is left over is not granted (E3, C4).
 */
LLVerdict
ll_grant(LLPair *pair, const LLPolicy *policy, LLUnits units, LLUnits *granted)
{
	LLVerdict	verdict = {LL_ACCEPTED, LL_DIM_NONE, false, false, LL_WAIT_NONE, 0, 0};
	LLPair		p = *pair;
	LLUnits		paid;
	LLUnits		filled;
	LLUnits		minted;

	if (!ll_repay_pair(&p, units, &paid))
	{
		verdict.overflow = true;
		return verdict;
	}
	filled = ll_min(units - paid, p.head.deficit);
	minted = ll_min(units - paid - filled, policy->cap - p.head.available);
	if (minted > ll_budget_room(&p.head))
	{
		verdict.overflow = true;
		return verdict;
	}
	p.head.deficit -= filled;
	p.head.minted += minted;
	p.head.available += minted;
	*pair = p;
	*granted = paid + filled + minted;
	return verdict;
}

/* ll_freeze stops admission for the pair; settlement goes on (D8). */
LLVerdict
ll_freeze(LLPair *pair)
{
	LLVerdict	verdict = {LL_ACCEPTED, LL_DIM_NONE, false, false, LL_WAIT_NONE, 0, 0};

	verdict.replayed = pair->frozen;
	pair->frozen = true;
	return verdict;
}

/* ll_unfreeze opens a frozen pair again, once its debt is zero (D8). */
LLVerdict
ll_unfreeze(LLPair *pair)
{
	LLVerdict	verdict = {LL_ACCEPTED, LL_DIM_NONE, false, false, LL_WAIT_NONE, 0, 0};

	verdict.replayed = !pair->frozen;
	if (pair->frozen && ll_pair_debt(pair) > 0)
	{
		verdict.outcome = LL_REFUSED;
		verdict.dimension = LL_DIM_DEBT;
		return verdict;
	}
	pair->frozen = false;
	return verdict;
}
