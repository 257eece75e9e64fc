/*
 * local.h
 *	  Rows <-> structs, on the side of a gateway (G4, G5).
 *
 * As in rows.h: what is decided on is read after its lock, and only what says
 * peek or look in its name reads without one.
 */
#ifndef LL_STORE_LOCAL_H
#define LL_STORE_LOCAL_H

#include "postgres.h"

#include "rows.h"
#include "utils/uuid.h"

/* Which gateway this database is. */
typedef struct LLLocalGateway
{
	pg_uuid_t	boot_epoch;
	TimestampTz booted_at;
	bool		present;		/* the boot is of this start of the server, in this database */
	TupleTableSlot *slot;
} LLLocalGateway;

/* A shard that was accepted, and what of it cannot change. */
typedef struct LLLocalShard
{
	Datum		subject;
	Datum		id;
	Datum		route;
	int64		generation;
	TimestampTz epoch;
	pg_uuid_t	boot_epoch;
	int64		fence;
	LLUnits		largest_reservation;
	LLUnits		hard_limit;
	LLTime		hold_ttl;
	LLTime		execution_ttl;
	TimestampTz expires_at;
	LLShard		figures;		/* G1 */
	TimestampTz sealed_at;
	Datum		sealed_by;		/* text, or 0 */
	TimestampTz seen_at;		/* latest instant seen (A3) */
	TupleTableSlot *slot;
	bool		changed;		/* to be written */
} LLLocalShard;

/* A reservation against one. */
typedef struct LLShardReservationRow
{
	Datum		subject;
	Datum		id;
	Datum		shard_id;
	LLReservation state;
	Datum		digest;
	Datum		operation;		/* text, or 0 */
	TimestampTz reserved_at;
	TimestampTz started_at;
	TimestampTz unknown_at;
	TimestampTz ended_at;
	Datum		receipt_digest; /* bytea, or 0 */
	Datum		receipt_source; /* text, or 0 */
	int64		sequence;		/* of the report that tells of its end; 0: none */
	TupleTableSlot *slot;
} LLShardReservationRow;

extern bool ll_local_gateway_peek(LLLocalGateway *gateway, Snapshot snapshot);
extern LLLock ll_local_gateway_lock(LLLocalGateway *gateway, Snapshot snapshot, LockWaitPolicy policy);
extern void ll_local_gateway_boot(LLLocalGateway *gateway, TimestampTz at);

extern bool ll_local_shard_peek(LLLocalShard *shard, Datum subject, Datum id, Snapshot snapshot);
extern bool ll_local_shard_last(LLLocalShard *shard, Datum subject, Datum route, Snapshot snapshot);
extern LLLock ll_local_shard_lock(LLLocalShard *shard, Snapshot snapshot, LockWaitPolicy policy);
extern void ll_local_shard_update(const LLLocalShard *shard);

/* Shards that are not sealed, in the order of their locks: of one pair, above a fence, or all. */
extern LLScan *ll_local_open_begin(Datum subject, Datum route, int64 above, Snapshot snapshot);
extern LLScan *ll_local_open_all_begin(Snapshot snapshot);
extern bool ll_local_shard_next(LLScan *scan, LLLocalShard *shard);

extern bool ll_shard_reservation_peek(LLShardReservationRow *row, Datum subject, Datum id,
									  Snapshot snapshot);
extern bool ll_shard_reservation_look(LLShardReservationRow *row, Datum subject, Datum id,
									  Snapshot snapshot);
extern LLLock ll_shard_reservation_lock(LLShardReservationRow *row, Snapshot snapshot,
										LockWaitPolicy policy);
extern bool ll_shard_reservation_insert(const LLShardReservationRow *row);
extern void ll_shard_reservation_update(const LLShardReservationRow *row);

/* What is RESERVED or STARTED, by its deadline: in one shard, or in all of them. */
extern LLScan *ll_shard_held_begin(const LLLocalShard *shard, TimestampTz until, Snapshot snapshot);
extern LLScan *ll_shard_due_begin(TimestampTz until, Snapshot snapshot);
extern LLScan *ll_shard_due_after_begin(TimestampTz after, Snapshot snapshot);
extern bool ll_shard_reservation_next(LLScan *scan, LLShardReservationRow *row);

/* What an operation is bound to; 0: nothing.  Valid until the next look. */
extern Datum ll_shard_operation_look(Datum subject, Datum id, Snapshot snapshot);
extern bool ll_shard_operation_bind(Datum subject, Datum id, Datum reservation, ItemPointer tid);
extern void ll_shard_operation_forget(ItemPointer tid);

#endif							/* LL_STORE_LOCAL_H */
