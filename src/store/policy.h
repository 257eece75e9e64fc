/*
 * policy.h
 *	  Frozen policies, kept per backend, and which of them rules a pair (B).
 */
#ifndef LL_STORE_POLICY_H
#define LL_STORE_POLICY_H

#include "postgres.h"

#include "core/core.h"
#include "core/periods.h"
#include "utils/timestamp.h"

/* One generation.  All but `draining` is frozen. */
typedef struct LLPolicyRow
{
	int64		generation;		/* hash key */
	LLPolicy	policy;
	LLPeriods	periods;
	TimestampTz active_at;		/* LL_NO_TIME: not yet */
	bool		wildcard;
	bool		draining;		/* as of the last look */
	int32		priority;
	Datum		region;			/* text; '*': any */
	int			digests;		/* accepted estimators; 0: any */
	Datum	   *digest;			/* bytea */

	/* calendar epochs only */
	const char *time_zone;
	bool		months;
	TimestampTz cached_from;	/* the epoch looked up last */
	TimestampTz cached_to;
} LLPolicyRow;

/* The generations that rule or ruled a pair, oldest first; the last one rules. */
typedef struct LLReigns
{
	int			count;
	LLReign    *reign;
	LLPolicyRow *ruling;		/* NULL: no policy covers the pair */
} LLReigns;

extern void ll_policy_init(void);
extern void ll_policy_begin(void);
extern void ll_policy_changed(void);
extern LLReigns ll_policy_reigns(Datum subject, Datum route, int64 head_generation);
extern LLPolicyRow *ll_policy_get(int64 generation);
extern bool ll_policy_in_region(const LLPolicyRow *row, Datum region);
extern bool ll_policy_accepts(const LLPolicyRow *row, Datum estimator_digest);

#endif							/* LL_STORE_POLICY_H */
