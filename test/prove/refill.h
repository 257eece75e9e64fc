/* refill.h: units that time brings (C4), and how long until it has brought enough (D4). */
#ifndef LL_PROVE_REFILL_H
#define LL_PROVE_REFILL_H

#include "repayment.h"

/*@ // what fell due by the clock alone, and what the pair has room for
	logic integer accrued(LLPair p, LLPolicy y, integer to) =
		((to - p.accrued_at) * y.refill_units + p.remainder) / y.refill_interval;
	logic integer space(LLPair p, LLPolicy y) = y.cap - p.head.available + pair_debt(p);
	logic integer due(LLPair p, LLPolicy y, integer to) = \min(\min(INT64_MAX, space(p, y)), accrued(p, y, to));
*/

/*@ requires \valid(pair) && \valid_read(policy) && \separated(pair, policy);
	requires sound(*pair, *policy) && policy(*policy);
	requires to - pair->accrued_at <= INT64_MAX;
	assigns *pair;
	ensures sound(*pair, *policy);
	// A3: time never goes back, and an instant that lies behind mints nothing
	ensures pair->accrued_at == \old(pair->accrued_at) || pair->accrued_at == to > \old(pair->accrued_at);
	ensures pair->accrued_at == \old(pair->accrued_at) ==> same_pair(\old(*pair), *pair);
	ensures to <= \old(pair->accrued_at) ==> \result;
	ensures !\result ==> same_pair(\old(*pair), *pair);
	ensures same_account(\old(pair->head), pair->head) && pair->seen_at == \old(pair->seen_at) &&
		pair->frozen == \old(pair->frozen) && pair->older_reserved == \old(pair->older_reserved) &&
		pair->head.overdraft_issued == \old(pair->head.overdraft_issued) &&
		pair->head.reserved == \old(pair->head.reserved) && pair->head.spent == \old(pair->head.spent) &&
		pair->head.retired_for_emergency == \old(pair->head.retired_for_emergency) &&
		pair->head.burned == \old(pair->head.burned) && pair->head.deficit == \old(pair->head.deficit) &&
		pair->head.purged_spent == \old(pair->head.purged_spent);
	ensures policy->refill != LL_REFILL_CONTINUOUS ==> same_budget(\old(pair->head), pair->head) &&
		same_older(\old(*pair), *pair) && pair->remainder == \old(pair->remainder);
	// C4, E2: what is due, debt first
	ensures policy->refill == LL_REFILL_CONTINUOUS && pair->accrued_at > \old(pair->accrued_at) ==>
		pair->older_debt == \old(pair->older_debt) - paid_older(\old(*pair), due(\old(*pair), *policy, to)) &&
		pair->older_repaid == \old(pair->older_repaid) + paid_older(\old(*pair), due(\old(*pair), *policy, to)) &&
		pair->head.overdraft_repaid ==
			\old(pair->head.overdraft_repaid) + paid_own(\old(*pair), due(\old(*pair), *policy, to));
	ensures policy->refill == LL_REFILL_CONTINUOUS && pair->accrued_at > \old(pair->accrued_at) ==>
		pair->head.minted - \old(pair->head.minted) + pair->older_repaid - \old(pair->older_repaid) ==
			due(\old(*pair), *policy, to) &&
		pair->head.available == \old(pair->head.available) + due(\old(*pair), *policy, to) -
			paid(\old(*pair), due(\old(*pair), *policy, to));
	// the fraction is kept, unless the pair is full and free of debt
	ensures policy->refill == LL_REFILL_CONTINUOUS && pair->accrued_at > \old(pair->accrued_at) &&
		accrued(\old(*pair), *policy, to) < space(\old(*pair), *policy) <= INT64_MAX ==>
		due(\old(*pair), *policy, to) * policy->refill_interval + pair->remainder ==
			(to - \old(pair->accrued_at)) * policy->refill_units + \old(pair->remainder);
	ensures policy->refill == LL_REFILL_CONTINUOUS && pair->accrued_at > \old(pair->accrued_at) &&
		accrued(\old(*pair), *policy, to) >= space(\old(*pair), *policy) ==>
		pair->remainder == 0 &&
		(space(\old(*pair), *policy) <= INT64_MAX ==> pair->head.available == policy->cap && pair_debt(*pair) == 0); */
extern bool ll_refill_accrue(LLPair *pair, const LLPolicy *policy, LLTime to);

/*@ requires \valid_read(pair) && \valid_read(policy) && \valid(verdict) && \separated(pair, policy, verdict);
	requires sound(*pair, *policy) && policy(*policy) && 0 <= short_units;
	requires policy->refill == LL_REFILL_CONTINUOUS ==> 1 <= short_units;
	assigns verdict->wait, verdict->wait_until, verdict->wait_windows;
	ensures verdict->wait == (policy->refill == LL_REFILL_NONE ? LL_WAIT_RELEASE : LL_WAIT_REFILL);
	ensures policy->refill != LL_REFILL_CONTINUOUS ==> verdict->wait_until == 0;
	ensures policy->refill != LL_REFILL_WINDOW ==> verdict->wait_windows == 0;
	ensures policy->refill == LL_REFILL_CONTINUOUS ==> verdict->wait_until > pair->accrued_at || verdict->wait_until == INT64_MAX;
	// D4: at that instant enough has come, and one tick earlier it has not
	ensures policy->refill == LL_REFILL_CONTINUOUS && verdict->wait_until < INT64_MAX &&
		verdict->wait_until - pair->accrued_at < INT64_MAX ==>
		(verdict->wait_until - pair->accrued_at) * policy->refill_units + pair->remainder >=
			short_units * policy->refill_interval;
	ensures policy->refill == LL_REFILL_CONTINUOUS && verdict->wait_until < INT64_MAX ==>
		(verdict->wait_until - pair->accrued_at - 1) * policy->refill_units + pair->remainder <
			short_units * policy->refill_interval;
	// each window brings its quota anew
	ensures policy->refill == LL_REFILL_WINDOW && short_units + pair->head.available <= INT64_MAX ==>
		verdict->wait_windows * policy->cap >= short_units + pair->head.available;
	ensures policy->refill == LL_REFILL_WINDOW ==>
		(verdict->wait_windows - 1) * policy->cap < short_units + pair->head.available; */
extern void ll_refill_wait(const LLPair *pair, const LLPolicy *policy, LLUnits short_units,
						   LLVerdict *verdict);

/*@ requires \valid_read(pair) && \valid_read(policy) && sound(*pair, *policy) && policy(*policy);
	assigns \nothing;
	ensures says(\result, LL_ACCEPTED, LL_DIM_NONE) && !\result.replayed;
	ensures space(*pair, *policy) == 0 && policy->refill != LL_REFILL_WINDOW ==> no_wait(\result);
	ensures space(*pair, *policy) > 0 || policy->refill == LL_REFILL_WINDOW ==>
		\result.wait == (policy->refill == LL_REFILL_NONE ? LL_WAIT_RELEASE : LL_WAIT_REFILL); */
extern LLVerdict ll_refill_reset(const LLPair *pair, const LLPolicy *policy);

#endif							/* LL_PROVE_REFILL_H */
