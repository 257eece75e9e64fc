/*
 * local_seal.c
 *	  How shards end on their gateway: by an operator's seal, or by time (G6).
 *
 * The sweep waits for no lock: what is locked is left to the next run.  It begins
 * a boot like any other call, unless somebody else is about to.
 */
#include "postgres.h"

#include "local.h"

#include "errors.h"
#include "miscadmin.h"
#include "store/clock.h"
#include "utils/builtins.h"

/* seal seals a locked shard that is open. */
static void
seal(LLLocalShard *shard, const char *by)
{
	shard->seen_at = ll_local_now(shard);
	shard->sealed_at = shard->seen_at;
	shard->sealed_by = CStringGetTextDatum(by);
	ll_local_seal(&shard->figures);
	ll_local_shard_write(shard);
}

/* ll_seal_local_shard ends a shard for good; again, it changes nothing. */
void
ll_seal_local_shard(Datum subject, Datum id, LLSealed *sealed)
{
	LLBoot		boot;
	LLLocalShard shard;
	Snapshot	snapshot;
	bool		found;

	memset(sealed, 0, sizeof(*sealed));
	sealed->sealed_at = LL_NO_TIME;
	(void) ll_boot(false, LockWaitBlock, &boot);
	snapshot = ll_snapshot_take();
	found = ll_local_shard_peek(&shard, subject, id, snapshot) &&
		ll_local_shard_lock(&shard, snapshot, LockWaitBlock) == LL_LOCK_TAKEN;
	ll_snapshot_drop(snapshot);
	if (!found)
	{
		sealed->verdict = ll_say(LL_UNKNOWN, LL_DIM_EMERGENCY_SHARD);
		return;
	}
	sealed->verdict = shard.figures.sealed ? ll_replayed() : ll_say(LL_ACCEPTED, LL_DIM_NONE);
	if (!shard.figures.sealed)
	{
		sealed->retired_units = shard.figures.available;
		seal(&shard, "operator");
	}
	sealed->sealed_at = shard.sealed_at;
	sealed->sealed_by = shard.sealed_by;
	sealed->reserved = shard.figures.reserved;
}

/* ---- the sweep ------------------------------------------------------------ */

/* A shard that the sweep has met: locked by it, or busy. */
typedef struct Met
{
	LLLocalShard shard;
	bool		locked;
} Met;

/* meet gives the shard of a row, locked if nobody else has it. */
static Met *
meet(List **all, const LLShardReservationRow *row)
{
	Snapshot	snapshot;
	Met		   *met;
	ListCell   *cell;

	foreach(cell, *all)
	{
		met = lfirst(cell);
		if (ll_pair_compare(met->shard.subject, met->shard.id, row->subject, row->shard_id) == 0)
			return met;
	}
	met = palloc(sizeof(Met));
	snapshot = ll_snapshot_take();
	ll_local_shard_of(&met->shard, row);
	met->locked = ll_local_shard_lock(&met->shard, snapshot, LockWaitSkip) == LL_LOCK_TAKEN;
	ll_snapshot_drop(snapshot);
	*all = lappend(*all, met);
	return met;
}

/* end_hold gives a hold that is due back to its shard; false: one of them is locked. */
static bool
end_hold(Met *met, LLShardReservationRow *row, Snapshot snapshot, LLShardSweep *sweep)
{
	TimestampTz now;

	if (!met->locked || ll_shard_reservation_lock(row, snapshot, LockWaitSkip) != LL_LOCK_TAKEN)
		return false;
	now = ll_local_now(&met->shard);
	if (ll_local_expire(&met->shard.figures, &row->state, now).outcome != LL_ACCEPTED)
		return true;
	row->ended_at = now;
	ll_shard_reservation_update(row);
	met->shard.seen_at = now;
	met->shard.changed = true;
	sweep->expired++;
	return true;
}

/* end_execution: past its deadline nobody knows what it used; its shard is not touched (D10). */
static bool
end_execution(LLShardReservationRow *row, Snapshot snapshot, LLShardSweep *sweep)
{
	LLLocalShard shard;
	TimestampTz now;
	LLVerdict	verdict;

	if (ll_shard_reservation_lock(row, snapshot, LockWaitSkip) != LL_LOCK_TAKEN)
		return false;
	ll_local_shard_of(&shard, row);
	now = ll_local_now(&shard);
	verdict = ll_report_unknown(&row->state, LL_OPERATION_SAME, false, now);
	if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
		return true;
	row->unknown_at = now;
	ll_shard_reservation_update(row);
	sweep->unknown++;
	return true;
}

/* end_due ends holds and executions that are due. */
static void
end_due(LLShardSweep *sweep, TimestampTz until)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLScan	   *scan = ll_shard_due_begin(until, snapshot);
	LLShardReservationRow row = {0};
	List	   *all = NIL;
	ListCell   *cell;

	while (sweep->expired + sweep->unknown < sweep->limit && ll_shard_reservation_next(scan, &row))
	{
		CHECK_FOR_INTERRUPTS();
		sweep->oldest_at = Min(sweep->oldest_at, row.state.expires_at);
		if (!(row.state.state == LL_RESERVED ? end_hold(meet(&all, &row), &row, snapshot, sweep)
			  : end_execution(&row, snapshot, sweep)))
			sweep->left = true;
	}
	ll_scan_end(scan);
	foreach(cell, all)
	{
		Met		   *met = lfirst(cell);

		if (met->shard.changed)
			ll_local_shard_write(&met->shard);
	}
	ll_snapshot_drop(snapshot);
	ll_store_step();
}

/* seal_expired seals shards that have run out; what they still hold is retired when it comes back. */
static void
seal_expired(LLShardSweep *sweep)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLScan	   *scan = ll_local_open_all_begin(snapshot);
	LLLocalShard shard;

	while (sweep->sealed < sweep->limit && ll_local_shard_next(scan, &shard))
	{
		CHECK_FOR_INTERRUPTS();
		if (ll_local_now(&shard) < shard.expires_at)
		{
			sweep->next_at = Min(sweep->next_at, shard.expires_at);
			continue;
		}
		sweep->oldest_at = Min(sweep->oldest_at, shard.expires_at);
		if (ll_local_shard_lock(&shard, snapshot, LockWaitSkip) != LL_LOCK_TAKEN)
			sweep->left = true;
		else if (!shard.figures.sealed)
		{
			seal(&shard, "expiry");
			sweep->sealed++;
		}
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	ll_store_step();
}

/* look_ahead notes when the next hold or execution will be due. */
static void
look_ahead(LLShardSweep *sweep, TimestampTz after)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLScan	   *scan = ll_shard_due_after_begin(after, snapshot);
	LLShardReservationRow row = {0};

	if (ll_shard_reservation_next(scan, &row))
		sweep->next_at = Min(sweep->next_at, row.state.expires_at);
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
}

/* ll_sweep_local_shards does one bounded batch of what time ends on a gateway. */
void
ll_sweep_local_shards(LLShardSweep *sweep)
{
	LLBoot		boot;
	LLBootResult result = ll_boot(false, LockWaitSkip, &boot);
	TimestampTz now = ll_clock_now();

	sweep->oldest_at = sweep->next_at = LL_TIME_MAX;
	sweep->left = result == LL_BOOT_BUSY;
	sweep->unknown = boot.unknown;
	sweep->sealed = boot.sealed;
	if (result == LL_BOOT_BUSY || result == LL_BOOT_NONE)
		return;
	end_due(sweep, now);
	seal_expired(sweep);
	look_ahead(sweep, now);
	sweep->more = sweep->expired + sweep->unknown >= sweep->limit || sweep->sealed >= sweep->limit;
}
