/*
 * conservation.c
 *	  What must hold whenever a budget is written (C1, C4, B5, E2).
 *
 * Every caller asks these before a write; CHECK constraints ask the same of
 * the row, the trigger of the movement, verify_conservation() of the database.
 */
#include "arith.h"
#include "core.h"

/* ll_budget_debt is what this budget has issued and not been repaid. */
LLUnits
ll_budget_debt(const LLBudget *budget)
{
	return budget->overdraft_issued - budget->overdraft_repaid;
}

/* ll_pair_debt is the debt over all budgets of the pair, capped at int64. */
LLUnits
ll_pair_debt(const LLPair *pair)
{
	return ll_add_capped(pair->older_debt, ll_budget_debt(&pair->head));
}

/* sides adds up what came and what went; false: a sum leaves int64. */
static bool
sides(const LLBudget *b, LLUnits *came, LLUnits *went)
{
	*came = b->opening;
	*went = b->available;
	return ll_add(came, b->minted) && ll_add(came, b->overdraft_issued) &&
		ll_add(went, b->reserved) && ll_add(went, b->spent) &&
		ll_add(went, b->retired_for_emergency) && ll_add(went, b->overdraft_repaid);
}

/* ll_budget_room is how many units may still come before a sum overflows (A2). */
LLUnits
ll_budget_room(const LLBudget *budget)
{
	LLUnits		came;
	LLUnits		went;

	return sides(budget, &came, &went) ? LL_UNITS_MAX - ll_max(came, went) : -1;
}

/* ll_budget_conserved checks C1 and that no side of it is negative. */
bool
ll_budget_conserved(const LLBudget *b)
{
	LLUnits		came;
	LLUnits		went;

	if (b->opening < 0 || b->minted < 0 || b->overdraft_issued < 0 ||
		b->available < 0 || b->reserved < 0 || b->spent < 0 ||
		b->retired_for_emergency < 0 || b->overdraft_repaid < 0)
		return false;
	if (b->overdraft_repaid > b->overdraft_issued || b->burned < 0 || b->deficit < 0)
		return false;
	if (b->purged_spent < 0 || b->purged_spent > b->spent)
		return false;
	return sides(b, &came, &went) && came == went;
}

/* ll_pair_sound checks a pair as it may be written under its head's policy. */
bool
ll_pair_sound(const LLPair *pair, const LLPolicy *policy)
{
	const LLBudget *head = &pair->head;

	if (!ll_budget_conserved(head) || head->generation != policy->generation)
		return false;
	if (pair->older_debt < 0 || pair->older_reserved < 0 || pair->older_repaid != 0)
		return false;
	if (head->available > policy->cap)	/* C4 */
		return false;
	if (head->available > 0 && ll_pair_debt(pair) > 0)	/* E2 */
		return false;
	if (head->deficit > 0 && (!head->whole || head->available > 0))	/* B5 */
		return false;
	return pair->remainder == 0 ||
		(policy->refill == LL_REFILL_CONTINUOUS && pair->remainder > 0 &&
		 pair->remainder < policy->refill_interval);
}
