/* usage.h: usage that no reservation covers, and operators (B2, D7, D8, D12, E3). */
#ifndef LL_PROVE_USAGE_H
#define LL_PROVE_USAGE_H

#include "repayment.h"

/*@ // the part of used units that becomes debt (D7)
	logic integer owed(LLPair p, integer units) = units - \min(units, p.head.available);

	// `units` were used of the head with no reservation; all else stayed
	predicate exceeded(LLPair x, LLPair y, integer units) =
		same_account(x.head, y.head) && same_older(x, y) && same_time(x, y) &&
		y.head.available == x.head.available - (units - owed(x, units)) &&
		y.head.overdraft_issued == x.head.overdraft_issued + owed(x, units) &&
		y.head.spent == x.head.spent + units &&
		x.head.minted == y.head.minted && x.head.reserved == y.head.reserved &&
		x.head.retired_for_emergency == y.head.retired_for_emergency &&
		x.head.overdraft_repaid == y.head.overdraft_repaid && x.head.burned == y.head.burned &&
		x.head.deficit == y.head.deficit && x.head.purged_spent == y.head.purged_spent;

	// what is owed passes the maximum overdraft (D8)
	predicate overdrawn(LLPair p, LLPolicy y, integer units) =
		units > 0 && pair_debt(p) > y.maximum_overdraft;
*/

/*@ requires \valid(p) && \valid_read(policy) && \valid(debt) && \separated(p, policy, debt);
	requires units >= 0 && signs(p->head) && older_signs(*p);
	assigns p->head.overdraft_issued, p->head.spent, p->head.available, p->frozen, *debt;
	ensures *debt == owed(\old(*p), units);
	ensures !\result ==> same_pair(\old(*p), *p);
	ensures !\result ==> pair_debt(*p) + *debt > INT64_MAX ||
		p->head.overdraft_issued + *debt > INT64_MAX || p->head.spent + units > INT64_MAX;
	ensures \result ==> exceeded(\old(*p), *p, units);
	ensures \result ==> (p->frozen <==> \old(p->frozen) || overdrawn(*p, *policy, units)); */
extern bool ll_exceed(LLPair *p, LLUnits units, const LLPolicy *policy, LLUnits *debt);

/*@ requires \valid(pair) && \valid_read(policy) && \separated(pair, policy);
	requires units >= 0 && sound(*pair, *policy) && policy(*policy);
	assigns *pair;
	ensures sound(*pair, *policy);
	ensures \result.outcome == LL_ACCEPTED && \result.dimension == LL_DIM_NONE;
	ensures no_wait(\result) && !\result.replayed;
	ensures \result.overflow ==> same_pair(\old(*pair), *pair);
	ensures \result.overflow ==> pair_debt(*pair) + units > INT64_MAX || came(pair->head) + units > INT64_MAX;
	ensures !\result.overflow ==> exceeded(\old(*pair), *pair, units);
	ensures !\result.overflow ==> (pair->frozen <==> \old(pair->frozen) ||
		overdrawn(*pair, *policy, units) || (units > policy->hard_limit && !imported)); */
extern LLVerdict ll_record_usage(LLPair *pair, const LLPolicy *policy, LLUnits units, bool imported);

/*@ // of what an operator grants, what is left for a deficit and then for available (E3)
	logic integer fills(LLPair p, integer units) =
		\min(units - paid(p, units), p.head.deficit);
	logic integer mints(LLPair p, LLPolicy y, integer units) =
		\min(units - paid(p, units) - fills(p, units), y.cap - p.head.available);
*/

/*@ requires \valid(pair) && \valid_read(policy) && \valid(granted) && \separated(pair, policy, granted);
	requires units >= 0 && sound(*pair, *policy) && policy(*policy);
	assigns *pair, *granted;
	ensures sound(*pair, *policy);
	ensures \result.outcome == LL_ACCEPTED && \result.dimension == LL_DIM_NONE;
	ensures no_wait(\result) && !\result.replayed;
	ensures \result.overflow ==> same_pair(\old(*pair), *pair) && *granted == \old(*granted);
	ensures \result.overflow ==> came(pair->head) + units > INT64_MAX ||
		pair->older_repaid + units > INT64_MAX;
	ensures !\result.overflow ==> 0 <= *granted <= units && *granted ==
		paid(\old(*pair), units) + fills(\old(*pair), units) + mints(\old(*pair), *policy, units);
	ensures !\result.overflow ==> pair_debt(*pair) == pair_debt(\old(*pair)) - paid(\old(*pair), units);
	ensures !\result.overflow ==> pair->older_debt == \old(pair->older_debt) - paid_older(\old(*pair), units);
	ensures !\result.overflow ==>
		pair->older_repaid == \old(pair->older_repaid) + paid_older(\old(*pair), units);
	ensures !\result.overflow ==> pair->head.deficit == \old(pair->head.deficit) - fills(\old(*pair), units);
	ensures !\result.overflow ==>
		pair->head.available == \old(pair->head.available) + mints(\old(*pair), *policy, units);
	ensures !\result.overflow ==> pair->head.minted == \old(pair->head.minted) +
		paid_own(\old(*pair), units) + mints(\old(*pair), *policy, units);
	ensures !\result.overflow ==> pair->head.overdraft_repaid ==
		\old(pair->head.overdraft_repaid) + paid_own(\old(*pair), units);
	ensures same_account(\old(pair->head), pair->head) && same_time(\old(*pair), *pair) &&
		pair->frozen == \old(pair->frozen) && pair->older_reserved == \old(pair->older_reserved) &&
		pair->head.overdraft_issued == \old(pair->head.overdraft_issued) &&
		pair->head.reserved == \old(pair->head.reserved) && pair->head.spent == \old(pair->head.spent) &&
		pair->head.retired_for_emergency == \old(pair->head.retired_for_emergency) &&
		pair->head.burned == \old(pair->head.burned) &&
		pair->head.purged_spent == \old(pair->head.purged_spent); */
extern LLVerdict ll_grant(LLPair *pair, const LLPolicy *policy, LLUnits units, LLUnits *granted);

/*@ requires \valid(pair);
	assigns pair->frozen;
	ensures says(\result, LL_ACCEPTED, LL_DIM_NONE) && no_wait(\result);
	ensures pair->frozen && (\result.replayed <==> \old(pair->frozen)); */
extern LLVerdict ll_freeze(LLPair *pair);

/*@ requires \valid(pair) && signs(pair->head) && older_signs(*pair);
	assigns pair->frozen;
	ensures \old(pair->frozen) && pair_debt(*pair) > 0 ==>
		says(\result, LL_REFUSED, LL_DIM_DEBT) && pair->frozen;
	ensures \old(pair->frozen) && pair_debt(*pair) == 0 ==> moved(\result) && !pair->frozen;
	ensures !\old(pair->frozen) ==>
		says(\result, LL_ACCEPTED, LL_DIM_NONE) && \result.replayed && !pair->frozen;
	ensures no_wait(\result) && !\result.overflow; */
extern LLVerdict ll_unfreeze(LLPair *pair);

#endif							/* LL_PROVE_USAGE_H */
