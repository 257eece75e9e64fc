/*
 * counters.h
 *	  How often each call has given each answer, in shared memory.
 *
 * There only if the library was preloaded; else counting does nothing, and
 * nothing is there to be read.
 */
#ifndef LL_STORE_COUNTERS_H
#define LL_STORE_COUNTERS_H

#include "postgres.h"

#include "core/outcome.h"
#include "utils/timestamp.h"

/* The calls that answer with an outcome, by the name that is shown; a batch counts as its call. */
#define LL_CALL_LIST(X) \
	X(RESERVE, "reserve_capacity") \
	X(START, "start_reservation") \
	X(SETTLE, "settle_usage") \
	X(RELEASE, "release_reservation") \
	X(REPORT_UNKNOWN, "report_usage_unknown") \
	X(REPORT_PROGRESS, "report_progress") \
	X(EXTEND, "extend_reservation") \
	X(RECORD, "record_usage") \
	X(IMPORT, "import_usage") \
	X(RESOLVE, "resolve_reservation") \
	X(REPAY, "repay_debt") \
	X(GRANT, "grant_capacity") \
	X(FREEZE, "freeze") \
	X(UNFREEZE, "unfreeze") \
	X(ISSUE_SHARD, "issue_emergency_shard") \
	X(RECONCILE_SHARD, "reconcile_emergency_shard") \
	X(WRITE_OFF_SHARD, "write_off_shard") \
	X(GRANT_LEGACY, "grant_legacy_share") \
	X(REPORT_LEGACY, "report_legacy_share") \
	X(SHARD_RESERVE, "shard_reserve") \
	X(SHARD_START, "shard_start") \
	X(SHARD_SETTLE, "shard_settle") \
	X(SHARD_RELEASE, "shard_release") \
	X(SHARD_REPORT_UNKNOWN, "shard_report_unknown")

typedef enum LLCall
{
#define X(name, shown) LL_CALL_##name,
	LL_CALL_LIST(X)
#undef X
	LL_CALL_COUNT
} LLCall;

/* An answer is its dimension, which has one outcome; a replay is one of its own. */
#define LL_ANSWER_REPLAYED	LL_DIMENSION_COUNT
#define LL_ANSWER_COUNT		(LL_DIMENSION_COUNT + 1)

static inline int
ll_answer_of(const LLVerdict *verdict)
{
	return verdict->replayed ? LL_ANSWER_REPLAYED : (int) verdict->dimension;
}

/* What this database has answered since the server started. */
typedef struct LLCounts
{
	TimestampTz since;
	uint64		answers[LL_CALL_COUNT][LL_ANSWER_COUNT];
} LLCounts;

extern void ll_counters_init(void);
extern void ll_counters_add(LLCall call, int answer, uint64 times);
extern bool ll_counters_read(LLCounts *counts);
extern const char *ll_call_name(LLCall call);

#endif							/* LL_STORE_COUNTERS_H */
