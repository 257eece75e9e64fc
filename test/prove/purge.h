/* purge.h: what has been kept long enough (D15). */
#ifndef LL_PROVE_PURGE_H
#define LL_PROVE_PURGE_H

#include "conservation.h"

/*@ requires now - ended_at <= INT64_MAX;
	assigns \nothing;
	ensures \result <==> ended_at <= now && ended_at + retention <= now; */
extern bool ll_purge_due(LLTime ended_at, LLTime retention, LLTime now);

/*@ requires \valid(budget) && conserved(*budget) && 0 <= units;
	assigns budget->purged_spent;
	ensures conserved(*budget);
	ensures \result <==> \old(budget->purged_spent) + units <= budget->spent;
	ensures budget->purged_spent == \old(budget->purged_spent) + (\result ? units : 0); */
extern bool ll_purge_spent(LLBudget *budget, LLUnits units);

/*@ requires \valid_read(closed) && conserved(*closed);
	assigns \nothing;
	ensures \result <==> closed->reserved == 0 && debt(*closed) == 0 &&
		closed->retired_for_emergency == 0 && closed->spent == closed->purged_spent; */
extern bool ll_purge_budget(const LLBudget *closed);

#endif							/* LL_PROVE_PURGE_H */
