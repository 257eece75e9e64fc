/*
 * outcome.h
 *	  The closed lists of what a call can answer.
 *
 * The outcome says what happened, the dimension which rule said no.  Both are
 * printed by the SQL function outcomes() and compared with the documentation
 * by a test.  Never reorder, never reuse.
 */
#ifndef LL_CORE_OUTCOME_H
#define LL_CORE_OUTCOME_H

#include "types.h"

typedef enum LLOutcome
{
	LL_ACCEPTED,				/* took effect, now or (replayed) earlier */
	LL_REFUSED,					/* nothing written; decided afresh next time */
	LL_CONFLICT,				/* contradicts what is stored; nothing written */
	LL_UNKNOWN,					/* this ledger holds no such reservation */
	LL_UNENFORCED				/* nothing written: the caller's own limiter decides */
} LLOutcome;
#define LL_OUTCOME_COUNT	(LL_UNENFORCED + 1)

typedef enum LLDimension
{
	LL_DIM_NONE,
	/* refusals of admission; those that no waiting changes are looked at first */
	LL_DIM_NO_POLICY,
	LL_DIM_REGION,
	LL_DIM_ESTIMATOR,
	LL_DIM_DEADLINE,
	LL_DIM_DRAINING,
	LL_DIM_FROZEN,
	LL_DIM_LARGEST_RESERVATION,
	LL_DIM_CAP,
	LL_DIM_LARGEST_OUTSTANDING,
	LL_DIM_DEBT,
	LL_DIM_AVAILABLE,
	/* refusals of a later step */
	LL_DIM_NOT_STARTED,
	LL_DIM_ALREADY_STARTED,
	LL_DIM_EXPIRED,
	LL_DIM_RELEASED,
	LL_DIM_SETTLED,
	LL_DIM_NOT_DUE,				/* of the sweeps */
	/* conflicts */
	LL_DIM_REQUEST,				/* same id, other digest, route or units */
	LL_DIM_OPERATION,			/* bound to another operation */
	LL_DIM_OPERATION_ELSEWHERE,	/* the operation is bound to something else */
	LL_DIM_FIGURES,				/* settled with other units or receipt */
	/* no such thing */
	LL_DIM_RESERVATION,
	LL_DIM_PAIR,
	/* of later calls; the list above is never reordered */
	LL_DIM_TTL,
	LL_DIM_CLOSED_BUDGET,
	LL_DIM_PROGRESS,
	LL_DIM_EXTENSION,
	LL_DIM_GRANT,
	LL_DIM_REQUIRE_ALL,
	LL_DIM_OPENED,
	LL_DIM_SHADOW,
	/* shards: the ledger's side, the gateway's, and what a report may be wrong in */
	LL_DIM_EMERGENCY_MODE,
	LL_DIM_EMERGENCY_SHARE,
	LL_DIM_RECOVERY,
	LL_DIM_STANDBY,
	LL_DIM_GATEWAY,
	LL_DIM_BOOT_EPOCH,
	LL_DIM_FENCE,
	LL_DIM_NOT_COMMITTED,
	LL_DIM_ENVELOPE,
	LL_DIM_SHARD_EXPIRED,
	LL_DIM_SEALED,
	LL_DIM_EXCESS,
	LL_DIM_NO_SHARD,
	LL_DIM_SEQUENCE,
	LL_DIM_CONSERVATION,
	LL_DIM_FALLS,
	LL_DIM_RECEIPTS,
	LL_DIM_SHARD,
	LL_DIM_REPORT,
	LL_DIM_EMERGENCY_SHARD
} LLDimension;
#define LL_DIMENSION_COUNT	(LL_DIM_EMERGENCY_SHARD + 1)

/* What a refused caller waits for (D4). */
typedef enum LLWait
{
	LL_WAIT_NONE,
	LL_WAIT_REFILL,				/* an upper bound is known */
	LL_WAIT_RELEASE,			/* until somebody gives units back */
	LL_WAIT_OPERATOR,			/* until an operator acts */
	LL_WAIT_NEVER				/* this request can't be admitted */
} LLWait;
#define LL_WAIT_COUNT	(LL_WAIT_NEVER + 1)

typedef struct LLDimensionInfo
{
	const char *name;			/* as SQL prints it, NULL for none */
	LLOutcome	outcome;
	LLWait		wait;			/* kind of wait it comes with, where it is fixed */
	const char *rule;
	const char *meaning;
} LLDimensionInfo;

extern const char *ll_outcome_name(LLOutcome outcome);
extern const char *ll_wait_name(LLWait wait);
extern const LLDimensionInfo *ll_dimension_info(LLDimension dimension);

/*
 * A verdict on one call.  `overflow` means a sum would leave int64: nothing
 * was changed and the caller raises an error (A2).
 */
typedef struct LLVerdict
{
	LLOutcome	outcome;
	LLDimension dimension;
	bool		replayed;
	bool		overflow;
	LLWait		wait;
	LLTime		wait_until;		/* LL_WAIT_REFILL, continuous: the instant */
	int64_t		wait_windows;	/* LL_WAIT_REFILL, window: how many epochs after
								 * the head's; else 0 */
} LLVerdict;

#endif							/* LL_CORE_OUTCOME_H */
