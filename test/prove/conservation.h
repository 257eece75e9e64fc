/* conservation.h: what must hold whenever a budget is written (C1, C4, B5, E2). */
#ifndef LL_PROVE_CONSERVATION_H
#define LL_PROVE_CONSERVATION_H

#include "arith.h"

/*@ requires \valid_read(budget);
	assigns \nothing;
	ensures \result <==> conserved(*budget); */
extern bool ll_budget_conserved(const LLBudget *budget);

/*@ requires \valid_read(pair) && \valid_read(policy);
	assigns \nothing;
	ensures \result <==> writable(*pair, *policy); */
extern bool ll_pair_sound(const LLPair *pair, const LLPolicy *policy);

/*@ requires \valid_read(budget) && signs(*budget);
	assigns \nothing;
	ensures \result == room(*budget); */
extern LLUnits ll_budget_room(const LLBudget *budget);

/*@ requires \valid_read(budget) && 0 <= budget->overdraft_repaid <= budget->overdraft_issued;
	assigns \nothing;
	ensures \result == debt(*budget); */
extern LLUnits ll_budget_debt(const LLBudget *budget);

/*@ requires \valid_read(pair) && 0 <= pair->head.overdraft_repaid <= pair->head.overdraft_issued;
	assigns \nothing;
	ensures \result == \min(INT64_MAX, pair_debt(*pair)); */
extern LLUnits ll_pair_debt(const LLPair *pair);

#ifdef PROVE_CONSERVATION

/*@ requires \valid_read(b) && signs(*b) && \valid(came) && \valid(went) && \separated(b, came, went);
	assigns *came, *went;
	ensures \result <==> came(*b) <= INT64_MAX && went(*b) <= INT64_MAX;
	ensures \result ==> *came == came(*b) && *went == went(*b); */
static bool sides(const LLBudget *b, LLUnits *came, LLUnits *went);

#endif

#endif							/* LL_PROVE_CONSERVATION_H */
