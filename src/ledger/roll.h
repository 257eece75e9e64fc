/*
 * roll.h
 *	  Bringing a pair to the present: epochs that are due, generations that
 *	  took over, refill (A3, B5, C4, E2).
 *
 * Decides nothing itself: it calls the transitions of src/core in the order of
 * time.  Knows no PostgreSQL, so that the model tests run the same code.
 */
#ifndef LL_LEDGER_ROLL_H
#define LL_LEDGER_ROLL_H

#include "core/core.h"
#include "core/periods.h"

/* Called for each budget that closes, in opening order. */
typedef void (*LLCloseFn) (void *arg, const LLBudget *closed, LLTime closed_at);

extern LLTime ll_period_of(const LLPeriods *periods, LLTime instant);
extern LLTime ll_period_after(const LLPeriods *periods, LLTime epoch, int64_t n);
extern bool ll_roll(LLPair *pair, const LLReign *reigns, int count, LLTime clock,
					LLCloseFn close, void *arg);

#endif							/* LL_LEDGER_ROLL_H */
