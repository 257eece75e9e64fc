/*
 * policy.h
 *	  Frozen policies, kept per backend, and which of them rules a pair (B).
 *	  Beside them, the routes that an operator has frozen (D8).
 */
#ifndef LL_STORE_POLICY_H
#define LL_STORE_POLICY_H

#include "postgres.h"

#include "core/core.h"
#include "core/periods.h"
#include "rows.h"
#include "utils/timestamp.h"

/* One generation.  All but its stage, as of the last look, is frozen. */
typedef struct LLPolicyRow
{
	int64		generation;		/* hash key */
	LLPolicy	policy;
	LLPeriods	periods;
	TimestampTz active_at;		/* LL_NO_TIME: not yet */
	TimestampTz retired_at;		/* LL_NO_TIME: not yet */
	bool		wildcard;
	bool		draining;		/* or retired */
	bool		shadowing;		/* shadow, or canary: for whom it has not taken in (B7) */
	bool		canary_by_pair; /* else by route (B4) */
	int			canary_steps;
	int32	   *canary_percents;
	TimestampTz *canary_since;
	int32		priority;
	LLTime		retention;		/* of what has ended (D15) */
	int32		emergency_share;	/* percent of the cap, 0: no shards (G2) */
	LLTime		shard_ttl;
	Datum		region;			/* text; '*': any */
	int			digests;		/* accepted estimators; 0: any */
	Datum	   *digest;			/* bytea */

	/* calendar epochs only */
	const char *time_zone;
	bool		months;
	TimestampTz cached_from;	/* the epoch looked up last */
	TimestampTz cached_to;
} LLPolicyRow;

/*
 * The generations that rule or ruled a pair, oldest first; the last one rules.
 * One that is retired goes on ruling the balance of a pair that has nothing to
 * fall to: see ll_policy_covers.
 */
typedef struct LLReigns
{
	int			count;
	LLReign    *reign;
	LLPolicyRow *ruling;		/* NULL: no policy, and no head */
	LLPolicyRow *shadow;		/* evaluated beside it (B7); NULL: none */
	Datum		frozen_reason;	/* why the route is frozen (D8); 0: it is not */
} LLReigns;

extern void ll_policy_init(void);
extern void ll_policy_begin(void);
extern void ll_policy_changed(void);
extern LLReigns ll_policy_reigns(Datum subject, Datum route, int64 head_generation);
extern LLPolicyRow *ll_policy_get(int64 generation);
extern bool ll_policy_longest_retention(LLTime *retention);
extern bool ll_policy_in_region(const LLPolicyRow *row, Datum region);
extern bool ll_policy_accepts(const LLPolicyRow *row, Datum estimator_digest);

/* ll_policy_covers tells whether a policy decides new requests of the pair (B2, B4). */
static inline bool
ll_policy_covers(const LLReigns *reigns)
{
	return reigns->ruling != NULL && reigns->ruling->retired_at == LL_NO_TIME;
}

#endif							/* LL_STORE_POLICY_H */
