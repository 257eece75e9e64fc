/*
 * purge.c
 *	  What has been kept long enough (D15).
 *
 * A purge moves no balance.  It replaces what rows say by one figure of the
 * budget that spent it, so that C2 goes on holding, and lets a closed budget
 * go only once nothing is told of it by any row but its own.
 */
#include "core.h"

/*
 * ll_purge_due tells whether the retention has passed.  Instants are within the
 * range of timestamps, so their difference does not overflow.
 */
bool
ll_purge_due(LLTime ended_at, LLTime retention, LLTime now)
{
	return ended_at <= now && now - ended_at >= retention;
}

/* ll_purge_spent moves units that reservations or usage had spent to purged_spent. */
bool
ll_purge_spent(LLBudget *budget, LLUnits units)
{
	if (units > budget->spent - budget->purged_spent)
		return false;
	budget->purged_spent += units;
	return true;
}

/* ll_purge_budget tells whether nothing hangs on a closed budget any more. */
bool
ll_purge_budget(const LLBudget *closed)
{
	return closed->reserved == 0 && ll_budget_debt(closed) == 0 &&
		closed->retired_for_emergency == 0 && closed->spent == closed->purged_spent;
}
