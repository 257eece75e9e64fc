/*
 * table.h
 *	  Executor-level access to the ledger's own tables.
 *
 * A call opens the store, works, and closes it; relations are opened on first
 * use and keep their locks to the end of the transaction.  Compiled CHECKs,
 * index descriptions and triggers are kept per backend and rebuilt when the
 * relation cache says that a table has changed, so that no catalogue number
 * outlives a DROP EXTENSION.  CHECKs, triggers and indexes run on every write.
 */
#ifndef LL_STORE_TABLE_H
#define LL_STORE_TABLE_H

#include "postgres.h"

#include "access/htup.h"
#include "access/skey.h"
#include "executor/tuptable.h"
#include "nodes/lockoptions.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

typedef enum LLTableId
{
	LL_TABLE_HEAD,
	LL_TABLE_CLOSED,
	LL_TABLE_RESERVATION,
	LL_TABLE_OPERATION,
	LL_TABLE_POLICY,
	LL_TABLE_ACTION,
	LL_TABLE_EXTENSION,
	LL_TABLE_GRANT,
	LL_TABLE_FROZEN_ROUTE,
	LL_TABLE_SHADOW,
	LL_TABLE_BINDING,
	LL_TABLE_GATEWAY,
	LL_TABLE_EMERGENCY_SHARD,
	LL_TABLE_SHARD_REPORT,
	LL_TABLE_SHARD_RECEIPT,
	LL_TABLE_LOCAL_GATEWAY,
	LL_TABLE_LOCAL_SHARD,
	LL_TABLE_SHARD_RESERVATION,
	LL_TABLE_SHARD_OPERATION,
	LL_TABLE_TRUSTED_KEY,
	LL_TABLE_INCARNATION
} LLTableId;
#define LL_TABLE_COUNT	(LL_TABLE_INCARNATION + 1)

typedef enum LLIndexId
{
	LL_INDEX_HEAD,				/* subject, route */
	LL_INDEX_HEAD_DEBT,
	LL_INDEX_CLOSED,			/* subject, route, generation, epoch */
	LL_INDEX_CLOSED_DEBT,
	LL_INDEX_CLOSED_FOLLOWED,	/* follows_generation, opened_at */
	LL_INDEX_RESERVATION,		/* subject, reservation_id */
	LL_INDEX_RESERVED,			/* expires_at, of one state each */
	LL_INDEX_EXPIRING,
	LL_INDEX_STARTED,
	LL_INDEX_CLAIMABLE,			/* claimed_until, unknown_at */
	LL_INDEX_PAIR_DUE,			/* subject, route, expires_at */
	LL_INDEX_ENDED,				/* generation, ended_at */
	LL_INDEX_OPERATION,			/* subject, operation_id */
	LL_INDEX_OPERATION_USAGE,	/* generation, bound_at */
	LL_INDEX_POLICY,			/* generation */
	LL_INDEX_POLICY_PAIR,		/* route, subject, generation */
	LL_INDEX_EXTENSION,			/* subject, reservation_id, extension_id */
	LL_INDEX_GRANT,				/* subject, route, grant_id */
	LL_INDEX_FROZEN_ROUTE,		/* route */
	LL_INDEX_SHADOW,			/* subject, route, generation */
	LL_INDEX_BINDING,			/* role, subject */
	LL_INDEX_GATEWAY,			/* gateway */
	LL_INDEX_EMERGENCY_SHARD,	/* subject, shard_id */
	LL_INDEX_EMERGENCY_OPEN,	/* subject, route */
	LL_INDEX_SHARD_REPORT,		/* subject, shard_id, sequence */
	LL_INDEX_SHARD_RECEIPT,		/* subject, shard_id, reservation_id */
	LL_INDEX_LOCAL_GATEWAY,		/* only_one */
	LL_INDEX_LOCAL_SHARD,		/* subject, shard_id */
	LL_INDEX_LOCAL_OPEN,		/* subject, route, fence */
	LL_INDEX_LOCAL_PAIR,		/* likewise, of all */
	LL_INDEX_SHARD_RESERVATION, /* subject, reservation_id */
	LL_INDEX_SHARD_HELD,		/* subject, shard_id, expires_at */
	LL_INDEX_SHARD_DUE,			/* expires_at */
	LL_INDEX_SHARD_OPERATION,	/* subject, operation_id */
	LL_INDEX_TRUSTED_KEY,		/* kid */
	LL_INDEX_INCARNATION		/* only_one */
} LLIndexId;
#define LL_INDEX_COUNT	(LL_INDEX_INCARNATION + 1)

/* What became of an attempt to lock a row. */
typedef enum LLLock
{
	LL_LOCK_TAKEN,
	LL_LOCK_BUSY,				/* LockWaitSkip only */
	LL_LOCK_GONE
} LLLock;

typedef struct LLScan LLScan;

extern void ll_store_init(void);
extern void ll_store_run(Oid function, void (*script) (void *arg), void *arg);
extern void ll_store_step(void);

extern Relation ll_table(LLTableId table);
extern TupleTableSlot *ll_table_slot(LLTableId table);
extern TupleTableSlot *ll_table_scratch(LLTableId table);
extern uint64 ll_table_version(void);

/* Reading: an index scan under a snapshot.  A key is a column of the index, from 1. */
extern Snapshot ll_snapshot_take(void);
extern void ll_snapshot_drop(Snapshot snapshot);
extern LLScan *ll_scan_begin(LLIndexId index, Snapshot snapshot, ScanKey keys, int nkeys);
extern bool ll_scan_next(LLScan *scan, TupleTableSlot *slot);
extern bool ll_scan_last(LLScan *scan, TupleTableSlot *slot);
extern void ll_scan_end(LLScan *scan);
extern LLTableId ll_scan_table(const LLScan *scan);
extern void ll_key_text(ScanKey key, AttrNumber column, Datum value);
extern void ll_key_text_from(ScanKey key, AttrNumber column, Datum value);
extern void ll_key_text_to(ScanKey key, AttrNumber column, Datum value);
extern void ll_key_oid(ScanKey key, AttrNumber column, Oid value);
extern void ll_key_int8(ScanKey key, AttrNumber column, int64 value);
extern void ll_key_int8_from(ScanKey key, AttrNumber column, int64 value);
extern void ll_key_null(ScanKey key, AttrNumber column);
extern void ll_key_time(ScanKey key, AttrNumber column, StrategyNumber strategy, int64 value);

/* Locking: the slot then holds the newest version, the only one to decide on (F5). */
extern LLLock ll_row_lock(LLTableId table, TupleTableSlot *slot, Snapshot snapshot,
						  LockWaitPolicy policy, bool *moved);
extern LLLock ll_row_claim(LLTableId table, TupleTableSlot *slot, Snapshot snapshot);

/* Writing.  ll_row_insert returns false if the primary key exists and nothing was written. */
extern bool ll_row_insert(LLTableId table, Datum *values, bool *nulls, LockWaitPolicy policy,
						  ItemPointer tid);
extern bool ll_row_insert_lock(LLTableId table, Datum *values, bool *nulls);
extern void ll_row_forget(LLTableId table, ItemPointer tid);
extern void ll_row_update(LLTableId table, TupleTableSlot *locked, Datum *values, bool *nulls);
extern void ll_row_delete(LLTableId table, TupleTableSlot *claimed);
extern bool ll_row_deleting(Oid relid, ItemPointer tid);

#endif							/* LL_STORE_TABLE_H */
