/* epoch.h: a budget closes, the next one opens (A4, B5, E2, E4). */
#ifndef LL_PROVE_EPOCH_H
#define LL_PROVE_EPOCH_H

#include "repayment.h"

/*@ requires 0 < length && INT64_MIN <= instant - origin <= INT64_MAX;
	requires INT64_MIN <= instant - length && INT64_MIN <= instant - origin - length;
	assigns \nothing;
	ensures \result <= instant < \result + length;
	ensures (\result - origin) % length == 0; */
extern LLTime ll_period_start(LLTime instant, LLTime length, LLTime origin);

/*@ requires \valid(pair) && \valid_read(policy) && \separated(pair, policy) && policy(*policy);
	assigns *pair;
	ensures sound(*pair, *policy) && pair->older_repaid == 0 && pair_debt(*pair) == 0;
	ensures pair->head.opening == policy->cap && pair->head.available == policy->cap &&
		pair->head.carried == policy->cap && pair->head.reserved == 0 && pair->head.minted == 0 &&
		pair->head.epoch == epoch && pair->head.line == 1;
	ensures pair->seen_at == now && pair->accrued_at == now && !pair->frozen; */
extern void ll_epoch_open_first(LLPair *pair, const LLPolicy *policy, LLTime epoch, LLTime now);

/*@ // x closes with its balance, and y opens with `carried` less what older debt takes (B5, E2)
	logic integer share(LLPair x, integer carried) = \min(carried, pair_debt(x));

	predicate opened(LLPair x, LLPair y, LLPolicy policy, integer epoch, integer carried,
					 integer deficit, integer line, integer whole) =
		y.head.generation == policy.generation && y.head.epoch == epoch &&
		y.head.carried == carried && y.head.opening == carried - share(x, carried) &&
		y.head.available == carried - share(x, carried) && y.head.minted == 0 &&
		y.head.overdraft_issued == 0 && y.head.reserved == 0 && y.head.spent == 0 &&
		y.head.retired_for_emergency == 0 && y.head.overdraft_repaid == 0 && y.head.burned == 0 &&
		y.head.purged_spent == 0 && y.head.deficit == deficit && y.head.line == line &&
		(y.head.whole <==> whole != 0) &&
		y.older_debt == pair_debt(x) - share(x, carried) &&
		y.older_reserved == x.older_reserved + x.head.reserved &&
		y.older_repaid == x.older_repaid + share(x, carried) &&
		y.seen_at == x.seen_at && y.accrued_at == x.accrued_at && y.frozen == x.frozen;
*/

/*@ requires \valid(pair) && \valid_read(policy) && \valid(closed) && \separated(pair, policy, closed);
	requires sound(*pair, *policy) && policy(*policy) && 0 <= missed && pair->head.line < INT64_MAX;
	assigns *pair, *closed;
	ensures sound(*pair, *policy);
	ensures !\result ==> same_pair(\old(*pair), *pair) && same_budget(\old(*closed), *closed);
	// the closed budget keeps its balance and its equation
	ensures \result ==> conserved(*closed) && closed->available == \old(pair->head.available) &&
		closed->reserved == \old(pair->head.reserved) && closed->spent == \old(pair->head.spent) &&
		same_account(\old(pair->head), *closed);
	ensures \result && policy->refill != LL_REFILL_WINDOW ==> same_budget(\old(pair->head), *closed) &&
		opened(\old(*pair), *pair, *policy, epoch, \old(pair->head.available), 0,
			   \old(pair->head.line), 0);
	// E2, E4: no debt is forgotten, and each missed window has paid its quota
	ensures \result && policy->refill == LL_REFILL_WINDOW ==>
		pair_debt(*pair) == \max(0, pair_debt(\old(*pair)) - (missed + 1) * policy->cap) &&
		pair->head.carried == policy->cap && pair->head.deficit == 0 && pair->head.whole &&
		pair->head.line == \old(pair->head.line) + 1 && pair->head.epoch == epoch &&
		pair->head.available == pair->head.opening &&
		pair->head.available == \max(0, policy->cap -
			\max(0, pair_debt(\old(*pair)) - missed * policy->cap));
	ensures \result ==> pair->head.reserved == 0 && pair->head.spent == 0 && pair->head.minted == 0 &&
		pair->older_reserved == \old(pair->older_reserved) + \old(pair->head.reserved);
	ensures pair->seen_at == \old(pair->seen_at) && pair->accrued_at == \old(pair->accrued_at) &&
		pair->frozen == \old(pair->frozen) && pair->remainder == \old(pair->remainder); */
extern bool ll_epoch_open_next(LLPair *pair, const LLPolicy *policy, LLTime epoch,
							   int64_t missed, LLBudget *closed);

/*@ // within one window only the change of quota counts (B5)
	predicate within_window(LLPair p, LLPolicy old, LLPolicy new, integer same_periods) =
		old.refill == LL_REFILL_WINDOW && new.refill == LL_REFILL_WINDOW && same_periods != 0 && p.head.whole;
*/

/*@ requires \valid(pair) && \valid_read(old) && \valid_read(new) && \valid(closed) &&
		\separated(pair, old, new, closed);
	requires sound(*pair, *old) && policy(*old) && policy(*new);
	requires INT64_MIN < pair->head.available - pair->head.deficit + (new->cap - old->cap);
	assigns *pair, *closed;
	ensures \result ==> sound(*pair, *new);
	ensures !\result ==> same_pair(\old(*pair), *pair) && same_budget(\old(*closed), *closed);
	ensures \result ==> same_budget(\old(pair->head), *closed) && conserved(*closed);
	ensures \result && within_window(\old(*pair), *old, *new, same_periods) ==>
		opened(\old(*pair), *pair, *new, epoch,
			   \max(0, \old(pair->head.available) - \old(pair->head.deficit) + new->cap - old->cap),
			   \max(0, \old(pair->head.deficit) - \old(pair->head.available) - new->cap + old->cap),
			   \old(pair->head.line), 1);
	ensures \result && !within_window(\old(*pair), *old, *new, same_periods) ==>
		opened(\old(*pair), *pair, *new, epoch, \min(new->cap, \old(pair->head.available)), 0,
			   \old(pair->head.line), 0);
	// E4: a publish forgets no debt; what is paid came out of what was carried
	ensures \result ==> pair_debt(*pair) + pair->older_repaid ==
		pair_debt(\old(*pair)) + \old(pair->older_repaid);
	// the fraction stays the same share of a unit, rounded down
	ensures \result && pair->remainder != 0 ==> old->refill == LL_REFILL_CONTINUOUS &&
		new->refill == LL_REFILL_CONTINUOUS &&
		pair->remainder == \old(pair->remainder) * new->refill_interval / old->refill_interval; */
extern bool ll_epoch_open_generation(LLPair *pair, const LLPolicy *old, const LLPolicy *new,
									 bool same_periods, LLTime epoch, LLBudget *closed);

#ifdef PROVE_EPOCH

/*@ requires \valid(p) && \valid_read(policy) && \valid(closed) && \separated(p, policy, closed);
	requires signs(p->head) && older_signs(*p) && 0 <= carried;
	requires new_line ==> p->head.line < INT64_MAX;
	assigns *p, *closed;
	ensures \result ==> same_budget(\old(p->head), *closed) && p->remainder == \old(p->remainder) &&
		opened(\old(*p), *p, *policy, epoch, carried, deficit,
			   \old(p->head.line) + (new_line ? 1 : 0), whole); */
static bool take_over(LLPair *p, const LLPolicy *policy, LLTime epoch, LLUnits carried,
					  LLUnits deficit, bool new_line, bool whole, LLBudget *closed);

#endif

#endif							/* LL_PROVE_EPOCH_H */
