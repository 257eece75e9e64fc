/*
 * local.h
 *	  The transaction scripts of a gateway: shards that it was given, spent by
 *	  itself (G4, G5).
 *
 * Lock order: local_gateway, by what begins a boot; shards by (subject, route,
 * fence); reservation rows by (subject, id); new operation rows by (subject,
 * operation); new reservation rows by (subject, id).  A start, and a report of
 * unknown usage, lock their reservation row alone.  Sweeps take nothing that
 * they would have to wait for.
 */
#ifndef LL_LEDGER_LOCAL_H
#define LL_LEDGER_LOCAL_H

#include "postgres.h"

#include "ledger.h"
#include "store/local.h"

/* local_boot.c: what every call begins with (G5) */
typedef enum LLBootResult
{
	LL_BOOT_PRESENT,
	LL_BOOT_BEGUN,				/* by this call */
	LL_BOOT_BUSY,				/* somebody else begins one; LockWaitSkip only */
	LL_BOOT_NONE				/* this database is no gateway */
} LLBootResult;

typedef struct LLBoot
{
	pg_uuid_t	boot_epoch;
	int64		sealed;			/* shards, by this call */
	int64		unknown;		/* reservations */
} LLBoot;

extern LLBootResult ll_boot(bool renew, LockWaitPolicy policy, LLBoot *boot);
extern bool ll_boot_rules(const LLLocalShard *shard);

/* local_receipt.c */
extern TimestampTz ll_local_now(const LLLocalShard *shard);
extern void ll_local_receipt(LLReceipt *receipt, LLVerdict verdict, const LLLocalShard *shard,
							 const LLShardReservationRow *row);
extern void ll_local_stored(LLReceipt *receipt, LLVerdict verdict, const LLShardReservationRow *row);
extern void ll_local_shard_of(LLLocalShard *shard, const LLShardReservationRow *row);
extern LLOperation ll_local_relate(const LLShardReservationRow *row, Datum operation);
extern void ll_local_shard_write(LLLocalShard *shard);

/* local_reserve.c */
typedef struct LLLocalPair
{
	List	   *shards;			/* LLLocalShard *, open and locked, by fence */
	LLLocalShard *last;			/* the pair's last one, if none is open */
	TimestampTz clock;			/* read after the locks (A3) */
	bool		no_hold_due;	/* that could be ended, at this instant */
} LLLocalPair;

typedef struct LLShardReserve
{
	Datum		subject;
	Datum		route;
	Datum		id;
	LLUnits		units;
	Datum		digest;			/* bytea of 32 bytes */
	TimestampTz deadline;		/* LL_NO_TIME: none */
	Datum		start_operation;	/* or 0 */

	/* worked out by the script */
	int			index;
	LLLocalPair *pair;
	LLLocalShard *shard;		/* that gave the units, or said why not; or NULL */
	LLShardReservationRow row;
	bool		admitted;
	struct LLShardReserve *echo_of; /* the element whose id it repeats */
	struct LLShardReserve **id_holder;	/* who was admitted under the id: one
										 * cell for all that carry it */
	struct LLShardReserve **operation_holder;	/* likewise */
	ItemPointerData operation_tid;
} LLShardReserve;

extern void ll_shard_reserve(LLShardReserve *elements, int count, LLReceipt *receipts);

/* local_life.c */
typedef struct LLShardSettle
{
	Datum		subject;
	Datum		id;
	bool		release;		/* else: settle */
	Datum		operation;
	LLUnits		actual;
	Datum		receipt_digest; /* bytea of 32 bytes, or 0 */
	Datum		source;			/* text */
	bool		attested;		/* source is an operator (D10) */
	int			index;
	LLShardReservationRow *row;
	LLLocalShard *shard;
	bool		binds;			/* an item that a boot made unknown before its start (D1) */
	struct LLShardSettle *same_id;	/* the first one, by key, that names the reservation */
	struct LLShardSettle *same_operation;	/* likewise the operation */
	bool		id_claimed;		/* of those two: one of their kind binds */
	bool		operation_claimed;
	bool		moved;
} LLShardSettle;

extern void ll_shard_start(Datum subject, Datum id, Datum operation, LLReceipt *receipt);
extern void ll_shard_report_unknown(Datum subject, Datum id, Datum operation, LLReceipt *receipt);
extern void ll_shard_settle_or_release(LLShardSettle *elements, int count, LLReceipt *receipts);

/* local_seal.c */
typedef struct LLSealed
{
	LLVerdict	verdict;
	LLUnits		retired_units;	/* by this call */
	TimestampTz sealed_at;
	Datum		sealed_by;
	LLUnits		reserved;		/* still open, or of unknown usage */
} LLSealed;

typedef struct LLShardSweep
{
	int32		limit;
	int64		expired;
	int64		unknown;
	int64		sealed;
	TimestampTz oldest_at;		/* deadline of the first thing that was due; LL_TIME_MAX: none */
	TimestampTz next_at;		/* the next deadline; LL_TIME_MAX: none */
	bool		left;			/* something is due, but locked */
	bool		more;			/* it stopped for its limit */
} LLShardSweep;

extern void ll_seal_local_shard(Datum subject, Datum id, LLSealed *sealed);
extern void ll_sweep_local_shards(LLShardSweep *sweep);

#endif							/* LL_LEDGER_LOCAL_H */
