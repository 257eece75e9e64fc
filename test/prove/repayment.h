/* repayment.h: units that pay debt (E2). */
#ifndef LL_PROVE_REPAYMENT_H
#define LL_PROVE_REPAYMENT_H

#include "conservation.h"

/*@ // what of `units` goes to older budgets, and what to the head
	logic integer paid_older(LLPair p, integer units) = \min(units, p.older_debt);
	logic integer paid_own(LLPair p, integer units) = \min(units - paid_older(p, units), debt(p.head));
	logic integer paid(LLPair p, integer units) = paid_older(p, units) + paid_own(p, units);

	predicate repaid(LLPair x, LLPair y, integer units) =
		y.older_debt == x.older_debt - paid_older(x, units) &&
		y.older_repaid == x.older_repaid + paid_older(x, units) &&
		y.head.minted == x.head.minted + paid_own(x, units) &&
		y.head.overdraft_repaid == x.head.overdraft_repaid + paid_own(x, units);
*/

/*@ requires \valid(pair) && \valid(used) && \separated(pair, used);
	requires units >= 0 && signs(pair->head) && older_signs(*pair);
	assigns pair->older_debt, pair->older_repaid, pair->head.minted, pair->head.overdraft_repaid, *used;
	ensures !\result ==> same_pair(\old(*pair), *pair) && *used == \old(*used);
	ensures !\result <==> paid_own(\old(*pair), units) > room(\old(pair->head)) ||
		\old(pair->older_repaid) + paid_older(\old(*pair), units) > INT64_MAX;
	ensures \result ==> repaid(\old(*pair), *pair, units) && *used == paid(\old(*pair), units);
	ensures *used == \min(units, pair_debt(\old(*pair))) || !\result;
	ensures conserved(\old(pair->head)) ==> conserved(pair->head); */
extern bool ll_repay_pair(LLPair *pair, LLUnits units, LLUnits *used);

/*@ requires \valid(pair) && \valid(closed) && \separated(pair, closed);
	requires conserved(*closed) && older_signs(*pair);
	assigns pair->older_repaid, closed->minted, closed->overdraft_repaid;
	ensures conserved(*closed);
	ensures !\result ==> same_pair(\old(*pair), *pair) && same_budget(\old(*closed), *closed);
	ensures !\result <==> came(\old(*closed)) + \min(\old(pair->older_repaid), debt(\old(*closed))) > INT64_MAX;
	ensures \result ==> closed->minted - \old(closed->minted) ==
		\min(\old(pair->older_repaid), debt(\old(*closed)));
	ensures closed->overdraft_repaid - \old(closed->overdraft_repaid) ==
		closed->minted - \old(closed->minted);
	ensures closed->minted - \old(closed->minted) == \old(pair->older_repaid) - pair->older_repaid; */
extern bool ll_repay_closed(LLPair *pair, LLBudget *closed);

#endif							/* LL_PROVE_REPAYMENT_H */
