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

/* Fixed periods are aligned to Monday, 2001-01-01 00:00 UTC (A4). */
#define LL_PERIOD_ORIGIN	INT64_C(31622400000000)

typedef struct LLPeriods LLPeriods;

/* How the epochs of a policy fall: of one length, or by a calendar. */
struct LLPeriods
{
	LLTime		length;			/* 0: by the calendar's functions */
	const char *calendar;		/* names unit and time zone, for comparison */
	LLTime		(*start_of) (const LLPeriods *periods, LLTime instant);
	LLTime		(*nth_after) (const LLPeriods *periods, LLTime epoch, int64_t n);
	int64_t		(*between) (const LLPeriods *periods, LLTime from, LLTime to);
};

/* One generation's rule over a pair, from the instant at which it took over. */
typedef struct LLReign
{
	const LLPolicy *policy;
	const LLPeriods *periods;
	LLTime		since;
} LLReign;

/* Called for each budget that closes, in opening order. */
typedef void (*LLCloseFn) (void *arg, const LLBudget *closed, LLTime closed_at);

extern LLTime ll_period_of(const LLPeriods *periods, LLTime instant);
extern LLTime ll_period_after(const LLPeriods *periods, LLTime epoch, int64_t n);
extern bool ll_roll(LLPair *pair, const LLReign *reigns, int count, LLTime clock,
					LLCloseFn close, void *arg);

#endif							/* LL_LEDGER_ROLL_H */
