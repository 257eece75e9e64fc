/*
 * shards.h
 *	  Rows of the ledger's side of shards <-> structs (G).
 *
 * A shard is locked under the head of its pair, a gateway before it.
 */
#ifndef LL_STORE_SHARDS_H
#define LL_STORE_SHARDS_H

#include "postgres.h"

#include "nodes/pg_list.h"
#include "rows.h"
#include "utils/uuid.h"

/* One emergencyShard.v1 that was issued, or a share of the old limiter (B8). */
typedef struct LLEmergencyRow
{
	Datum		subject;
	Datum		id;
	Datum		route;
	int64		generation;		/* of the budget that gave the units */
	TimestampTz epoch;
	Datum		gateway;		/* 0: the old limiter's; then no boot, fence, expiry */
	pg_uuid_t	boot_epoch;
	int64		fence;
	TimestampTz issued_at;
	TimestampTz expires_at;
	uint64		issued_by;		/* the transaction (G8) */
	Datum		actor;
	int64		sequence;		/* of the last report */
	LLIssuedShard state;
	TimestampTz written_off_at;
	Datum		written_off_reason;
	TimestampTz settled_at;
	TupleTableSlot *slot;
} LLEmergencyRow;

typedef struct LLGatewayRow
{
	Datum		gateway;
	bool		booted;
	pg_uuid_t	boot_epoch;
	int64		last_fence;
	TupleTableSlot *slot;
} LLGatewayRow;

/* What one report did, and on which budget. */
typedef struct LLReportRow
{
	int64		sequence;
	Datum		digest;			/* bytea; 0: the old limiter signs nothing */
	LLReconciled done;
} LLReportRow;

/* How one reservation of a shard ended. */
typedef struct LLShardReceipt
{
	Datum		reservation;
	Datum		operation;		/* or 0 */
	LLState		state;
	LLUnits		reserved_units;
	LLUnits		actual_units;	/* settled states only, else -1 */
} LLShardReceipt;

extern bool ll_emergency_look(LLEmergencyRow *row, Datum subject, Datum id, Snapshot snapshot);
extern bool ll_emergency_lock(LLEmergencyRow *row, Snapshot snapshot);
extern void ll_emergency_insert(const LLEmergencyRow *row);
extern void ll_emergency_update(const LLEmergencyRow *row);
extern LLUnits ll_emergency_outstanding(Datum subject, Datum route);

extern List *ll_legacy_others(const LLEmergencyRow *row);

extern bool ll_gateway_lock(LLGatewayRow *row, Datum gateway);
extern void ll_gateway_fence(const LLGatewayRow *row);

extern bool ll_report_look(LLReportRow *report, const LLEmergencyRow *shard, int64 sequence);
extern void ll_report_insert(const LLReportRow *report, const LLEmergencyRow *shard,
							 const LLHead *head);
extern bool ll_receipt_look(LLShardReceipt *receipt, const LLEmergencyRow *shard, Datum reservation);
extern void ll_receipt_insert(const LLShardReceipt *receipt, const LLEmergencyRow *shard);

#endif							/* LL_STORE_SHARDS_H */
