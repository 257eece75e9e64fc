/*
 * local_boot.c
 *	  A gateway's boots: what an earlier one held can't be spent again (G5).
 *
 *	  lock local_gateway, look again, draw a boot epoch
 *	  lock the shards that are open, or hold something, in key order
 *	  for each: what is RESERVED or STARTED becomes USAGE_UNKNOWN, then seal it
 *
 * All of it is one transaction, that of the first call after a start of the
 * server.  Two that come at once: the second waits for local_gateway and finds
 * the boot begun.  Rolled back, or crashed before the commit: the next call
 * begins one, under another epoch, and nobody has seen the first.  A call that
 * had looked before a renewal meets its seal under the shard's lock, or is
 * waited for by it.
 */
#include "postgres.h"

#include "local.h"

#include "errors.h"
#include "miscadmin.h"
#include "store/clock.h"
#include "utils/builtins.h"

static int
by_lock(const ListCell *a, const ListCell *b)
{
	const LLLocalShard *x = lfirst(a);
	const LLLocalShard *y = lfirst(b);
	int			order = ll_pair_compare(x->subject, x->route, y->subject, y->route);

	if (order != 0)
		return order;
	return x->fence < y->fence ? -1 : x->fence > y->fence;
}

static bool
same_shard(const LLLocalShard *shard, const LLShardReservationRow *row)
{
	return ll_pair_compare(shard->subject, shard->id, row->subject, row->shard_id) == 0;
}

/*
 * affected lists the shards that are open, and the sealed ones that still hold
 * something which is not of unknown usage.  Nothing is added to either meanwhile:
 * accepting waits for local_gateway, and a sealed shard gives nothing out.
 */
static List *
affected(Snapshot snapshot)
{
	List	   *shards = NIL;
	LLShardReservationRow row = {0};
	LLScan	   *scan = ll_local_open_all_begin(snapshot);

	for (;;)
	{
		LLLocalShard *shard = palloc(sizeof(LLLocalShard));

		if (!ll_local_shard_next(scan, shard))
			break;
		shards = lappend(shards, shard);
	}
	ll_scan_end(scan);

	scan = ll_shard_due_begin(LL_TIME_MAX, snapshot);
	while (ll_shard_reservation_next(scan, &row))
	{
		LLLocalShard *shard = NULL;
		ListCell   *cell;

		foreach(cell, shards)
			if (same_shard(lfirst(cell), &row))
				shard = lfirst(cell);
		if (shard != NULL)
			continue;
		shard = palloc(sizeof(LLLocalShard));
		ll_local_shard_of(shard, &row);
		shards = lappend(shards, shard);
	}
	ll_scan_end(scan);
	list_sort(shards, by_lock);
	return shards;
}

/* end_items makes what a locked shard holds of unknown usage. */
static int64
end_items(LLLocalShard *shard, TimestampTz now)
{
	Snapshot	snapshot = ll_snapshot_take();	/* newer than the lock (F5) */
	LLScan	   *scan = ll_shard_held_begin(shard, LL_TIME_MAX, snapshot);
	LLShardReservationRow row = {0};
	int64		unknown = 0;

	while (ll_shard_reservation_next(scan, &row))
		if (ll_shard_reservation_lock(&row, snapshot, LockWaitBlock) == LL_LOCK_TAKEN &&
			ll_local_boot(&row.state))
		{
			row.unknown_at = now;
			ll_shard_reservation_update(&row);
			unknown++;
		}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	return unknown;
}

/* begin ends what the boot before held.  local_gateway is locked. */
static void
begin(LLLocalGateway *gateway, LLBoot *boot)
{
	Snapshot	snapshot = ll_snapshot_take();
	ListCell   *cell;

	ll_local_gateway_boot(gateway, ll_clock_now());
	foreach(cell, affected(snapshot))
	{
		LLLocalShard *shard = lfirst(cell);
		TimestampTz now;

		CHECK_FOR_INTERRUPTS();
		if (ll_local_shard_lock(shard, snapshot, LockWaitBlock) != LL_LOCK_TAKEN)
			ll_broken("G1", "a shard of this gateway vanished");
		now = ll_local_now(shard);
		boot->unknown += end_items(shard, now);
		shard->seen_at = now;
		if (!shard->figures.sealed)
		{
			ll_local_seal(&shard->figures);
			shard->sealed_at = now;
			shard->sealed_by = CStringGetTextDatum("boot");
			boot->sealed++;
		}
		ll_local_shard_write(shard);
	}
	ll_snapshot_drop(snapshot);
	ll_store_step();
}

/*
 * ll_boot sees to it that the gateway's boot is of this start of the server; with
 * `renew` it begins a new one in any case.
 */
LLBootResult
ll_boot(bool renew, LockWaitPolicy policy, LLBoot *boot)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLLocalGateway gateway;
	LLBootResult result = LL_BOOT_PRESENT;

	memset(boot, 0, sizeof(*boot));
	if (!ll_local_gateway_peek(&gateway, snapshot))
		result = LL_BOOT_NONE;
	else if (renew || !gateway.present)
	{
		LLLock		lock = ll_local_gateway_lock(&gateway, snapshot, policy);

		if (lock == LL_LOCK_GONE)
			ll_broken("G5", "the gateway's row vanished");
		if (lock == LL_LOCK_BUSY)
			result = LL_BOOT_BUSY;
		else if (renew || !gateway.present)
			result = LL_BOOT_BEGUN;
	}
	ll_snapshot_drop(snapshot);
	if (result == LL_BOOT_BEGUN)
		begin(&gateway, boot);
	if (result != LL_BOOT_NONE)
		boot->boot_epoch = gateway.boot_epoch;
	return result;
}

/*
 * ll_boot_rules tells whether a shard is of the present boot, by what is committed
 * now: asked once its lock is held, or that of its reservation.
 */
bool
ll_boot_rules(const LLLocalShard *shard)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLLocalGateway gateway;
	bool		rules = ll_local_gateway_peek(&gateway, snapshot) && gateway.present &&
		memcmp(&gateway.boot_epoch, &shard->boot_epoch, sizeof(pg_uuid_t)) == 0;

	ll_snapshot_drop(snapshot);
	return rules;
}
