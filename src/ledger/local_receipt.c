/*
 * local_receipt.c
 *	  What the scripts of a gateway share: its time, its receipts, its writes.
 */
#include "postgres.h"

#include "local.h"

#include "errors.h"
#include "store/clock.h"

/* ll_local_now reads the clock; a shard has never seen a later instant (A3). */
TimestampTz
ll_local_now(const LLLocalShard *shard)
{
	return Max(ll_clock_now(), shard->seen_at);
}

/* ll_local_shard_of reads the shard that a reservation is held against. */
void
ll_local_shard_of(LLLocalShard *shard, const LLShardReservationRow *row)
{
	Snapshot	snapshot = ll_snapshot_take();

	if (!ll_local_shard_peek(shard, row->subject, row->shard_id, snapshot))
		ll_broken("G1", "the shard of a reservation does not exist");
	ll_snapshot_drop(snapshot);
}

/* the part of a receipt that tells of the reservation */
static void
put_reservation(LLReceipt *receipt, const LLShardReservationRow *row)
{
	LLState		state = row->state.state;

	receipt->state = ll_state_name(state);
	receipt->reserved_units = row->state.reserved_units;
	receipt->expires_at = row->state.expires_at;
	receipt->operation = ll_copy_varlena(row->operation);
	if (state != LL_SETTLED && state != LL_SETTLED_WITH_DEBT)
		return;
	/* which budget bears an excess the ledger decides, when it is reported */
	receipt->actual_units = row->state.actual_units;
	receipt->excess_units = row->state.excess_units;
}

/*
 * ll_local_receipt fills a receipt: of a shard, and of a reservation against it,
 * either of which may be missing.
 */
void
ll_local_receipt(LLReceipt *receipt, LLVerdict verdict, const LLLocalShard *shard,
				 const LLShardReservationRow *row)
{
	ll_receipt_answer(receipt, verdict, ll_clock_now());
	if (shard != NULL)
	{
		receipt->generation = shard->generation;
		receipt->epoch = shard->epoch;
		receipt->available = shard->figures.available;
		receipt->cap = shard->figures.allocated;
		receipt->hard_limit = shard->hard_limit;
	}
	if (row != NULL)
		put_reservation(receipt, row);
}

/* ll_local_stored answers by a row that no lock of this call holds. */
void
ll_local_stored(LLReceipt *receipt, LLVerdict verdict, const LLShardReservationRow *row)
{
	LLLocalShard shard;

	ll_local_shard_of(&shard, row);
	ll_local_receipt(receipt, verdict, &shard, row);
}

/* ll_local_relate tells how the operation of a call relates to what is stored. */
LLOperation
ll_local_relate(const LLShardReservationRow *row, Datum operation)
{
	Snapshot	snapshot;
	bool		bound;

	if (row->operation != 0)
		return ll_bytes_equal(row->operation, operation) ? LL_OPERATION_SAME : LL_OPERATION_OTHER;
	snapshot = ll_snapshot_take();
	bound = ll_shard_operation_look(row->subject, operation, snapshot) != 0;
	ll_snapshot_drop(snapshot);
	return bound ? LL_OPERATION_ELSEWHERE : LL_OPERATION_FREE;
}

/* ll_local_shard_write writes a locked shard, if it adds up. */
void
ll_local_shard_write(LLLocalShard *shard)
{
	if (!ll_shard_conserved(&shard->figures))
		ll_broken("G1", "a shard would not add up");
	ll_local_shard_update(shard);
	shard->changed = false;
}
