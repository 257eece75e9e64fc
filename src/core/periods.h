/*
 * periods.h
 *	  How epochs fall in time (A4), and which policy rules from when (B5).
 *
 * Fixed lengths are plain arithmetic.  Calendars need time zones, which core
 * does not know: whoever has them brings the three functions.
 */
#ifndef LL_CORE_PERIODS_H
#define LL_CORE_PERIODS_H

#include "types.h"

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

#endif							/* LL_CORE_PERIODS_H */
