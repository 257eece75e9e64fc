/*
 * emergency.c
 *	  Shards on the side of the ledger: units go out once, and come back only as
 *	  far as reports prove that they can never be used (G2, G6).
 */
#include "arith.h"
#include "core.h"

static LLVerdict
say(LLOutcome outcome, LLDimension dimension)
{
	LLVerdict	verdict = {outcome, dimension, false, false, LL_WAIT_NONE, 0, 0};

	return verdict;
}

/* ll_issue_shard moves units from available to retired_for_emergency; a pair that is not sound gives none. */
LLVerdict
ll_issue_shard(LLPair *pair, const LLPolicy *policy, const LLIssue *issue)
{
	LLBudget   *head = &pair->head;
	LLVerdict	verdict = say(LL_ACCEPTED, LL_DIM_NONE);

	if (issue->draining)
		return say(LL_REFUSED, LL_DIM_DRAINING);
	if (issue->largest_share == 0)
		return say(LL_REFUSED, LL_DIM_EMERGENCY_MODE);
	if (pair->frozen || issue->route_frozen)
		return say(LL_REFUSED, LL_DIM_FROZEN);
	if (issue->units > policy->cap)
		return say(LL_REFUSED, LL_DIM_CAP);
	if (issue->units > issue->largest_share - ll_min(issue->outstanding, issue->largest_share))
		return say(LL_REFUSED, LL_DIM_EMERGENCY_SHARE);
	if (ll_pair_debt(pair) > 0)
		return say(LL_REFUSED, LL_DIM_DEBT);
	if (issue->units > head->available)
		return say(LL_REFUSED, LL_DIM_AVAILABLE);
	head->available -= issue->units;
	head->retired_for_emergency += issue->units;
	return verdict;
}

/* judge_report compares a report with the one before: what never falls has not fallen. */
static LLVerdict
judge_report(const LLIssuedShard *issued, const LLShard *reported)
{
	const LLShard *last = &issued->last;

	if (reported->allocated != last->allocated || !ll_shard_conserved(reported))
		return say(LL_REFUSED, LL_DIM_CONSERVATION);
	if (reported->spent < last->spent || reported->excess < last->excess ||
		reported->retired < last->retired || (last->sealed && !reported->sealed))
		return say(LL_REFUSED, LL_DIM_FALLS);
	return say(LL_ACCEPTED, LL_DIM_NONE);
}

/*
 * ll_reconcile_shard books the growth of a report, its excess first, so that
 * units which come back can pay for it.  Units are confirmed unused only by a
 * sealed report whose receipts account for all that was used: a part of them is
 * still to come otherwise.  What is spent or unknown stays retired (G6).
 */
LLVerdict
ll_reconcile_shard(LLPair *pair, const LLPolicy *policy, LLIssuedShard *issued,
				   const LLShard *reported, LLUnits receipted, bool breach,
				   LLReconciled *done)
{
	LLVerdict	verdict = judge_report(issued, reported);
	LLIssuedShard i = *issued;
	LLPair		p = *pair;
	LLReconciled growth = {0, 0, 0};
	LLUnits		used;
	LLUnits		debt;
	LLUnits		minted;
	LLUnits		repaid;

	if (verdict.outcome != LL_ACCEPTED)
		return verdict;
	used = reported->spent;
	verdict.overflow = true;
	if (!ll_add(&used, reported->excess) || !ll_add(&i.receipted, receipted))
		return verdict;
	verdict.overflow = false;
	if (i.receipted > used)
		return say(LL_REFUSED, LL_DIM_RECEIPTS);

	growth.excess = reported->excess - i.last.excess;
	if ((reported->sealed || i.legacy) && i.receipted == used && !i.written_off)
		growth.confirmed = reported->retired - i.confirmed;
	i.last = *reported;
	i.confirmed += growth.confirmed;

	verdict.overflow = true;
	if (!ll_exceed(&p, growth.excess, policy, &debt))
		return verdict;
	minted = p.head.minted;
	repaid = p.older_repaid;
	if (!ll_remint(&p, growth.confirmed, i.line, policy) || ll_budget_room(&p.head) < 0)
		return verdict;
	verdict.overflow = false;
	growth.reminted = (p.head.minted - minted) + (p.older_repaid - repaid);
	i.reminted += growth.reminted;
	if (breach)
		p.frozen = true;

	*pair = p;
	*issued = i;
	*done = growth;
	return verdict;
}

/* ll_shard_settled tells whether a shard is through: written off, or nothing of it is open or unproven. */
bool
ll_shard_settled(const LLIssuedShard *issued)
{
	const LLShard *last = &issued->last;

	return issued->written_off ||
		(last->available == 0 && last->reserved == 0 && issued->confirmed == last->retired &&
		 issued->receipted - last->spent == last->excess);
}
