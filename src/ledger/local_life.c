/*
 * local_life.c
 *	  shard_start, shard_report_unknown, shard_settle and shard_release: what a
 *	  gateway does with what it has reserved (D5-D10, G4).
 *
 *	  start, unknown: lock the reservation row, decide, bind the operation, write
 *	  settle, release: read the reservations, lock their shards in key order, lock
 *	  the rows in key order, bind what a boot left unbound, decide, write rows,
 *	  write each shard once
 *
 * Each of them begins with the boot, so that an item of an earlier one is of
 * unknown usage before anybody decides about it.  What has ended never changes,
 * and is answered as read.  Lost reply: the same figures get the same receipt.
 * Crash before the commit: as before the call.  Settle against seal: whoever
 * locks the shard first; what comes back later is retired.
 */
#include "postgres.h"

#include "local.h"

#include "errors.h"
#include "store/clock.h"
#include "utils/builtins.h"

/* ---- start and unknown --------------------------------------------------- */

/*
 * lock_row finds a reservation and locks it, unless it has ended.  False: there
 * is none.
 */
static bool
lock_row(LLShardReservationRow *row, Datum subject, Datum id)
{
	Snapshot	snapshot = ll_snapshot_take();
	bool		found = ll_shard_reservation_peek(row, subject, id, snapshot);

	if (found && !ll_state_terminal(row->state.state))
		found = ll_shard_reservation_lock(row, snapshot, LockWaitBlock) == LL_LOCK_TAKEN;
	ll_snapshot_drop(snapshot);
	return found;
}

/* begin_row does what start and unknown have in common before they decide. */
static bool
begin_row(LLShardReservationRow *row, LLLocalShard *shard, LLReceipt *receipt,
		  Datum subject, Datum id)
{
	LLBoot		boot;

	(void) ll_boot(false, LockWaitBlock, &boot);
	if (!lock_row(row, subject, id))
	{
		ll_local_receipt(receipt, ll_say(LL_UNKNOWN, LL_DIM_RESERVATION), NULL, NULL);
		return false;
	}
	ll_local_shard_of(shard, row);
	return true;
}

/*
 * start decides on a locked row.  One that a boot made unknown was never
 * started, and can't be any more; nor can a hold of another boot (G5).
 */
static LLVerdict
start(LLShardReservationRow *row, const LLLocalShard *shard, Datum operation)
{
	LLPolicy	policy = {.execution_ttl = shard->execution_ttl};
	LLReservation before = row->state;
	TimestampTz now = ll_local_now(shard);
	LLVerdict	verdict;

	if ((before.state == LL_USAGE_UNKNOWN && row->operation == 0) ||
		(before.state == LL_RESERVED && !ll_boot_rules(shard)))
		return ll_say(LL_REFUSED, LL_DIM_BOOT_EPOCH);
	verdict = ll_start(&row->state, &policy, ll_local_relate(row, operation), now);
	if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
		return verdict;
	if (!ll_shard_operation_bind(row->subject, operation, row->id, NULL))
	{
		row->state = before;
		return ll_say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE);
	}
	row->operation = operation;
	row->started_at = now;
	ll_shard_reservation_update(row);
	return verdict;
}

/* ll_shard_start is the compare-and-set RESERVED -> STARTED, on a gateway (D5). */
void
ll_shard_start(Datum subject, Datum id, Datum operation, LLReceipt *receipt)
{
	LLShardReservationRow row;
	LLLocalShard shard;
	LLVerdict	verdict;

	if (!begin_row(&row, &shard, receipt, subject, id))
		return;
	verdict = start(&row, &shard, operation);
	ll_local_receipt(receipt, verdict, &shard, &row);
}

/*
 * ll_shard_report_unknown: nobody knows what the execution used (D10).  Of an
 * item that a boot made unknown before its start that is known already.
 */
void
ll_shard_report_unknown(Datum subject, Datum id, Datum operation, LLReceipt *receipt)
{
	LLShardReservationRow row;
	LLLocalShard shard;
	LLOperation relation;
	LLVerdict	verdict;
	TimestampTz now;

	if (!begin_row(&row, &shard, receipt, subject, id))
		return;
	now = ll_local_now(&shard);
	relation = ll_local_relate(&row, operation);
	if (row.state.state == LL_USAGE_UNKNOWN && relation == LL_OPERATION_FREE)
		relation = LL_OPERATION_SAME;
	verdict = ll_report_unknown(&row.state, relation, true, now);
	if (verdict.outcome == LL_ACCEPTED && !verdict.replayed)
	{
		row.unknown_at = now;
		ll_shard_reservation_update(&row);
	}
	ll_local_receipt(receipt, verdict, &shard, &row);
}

/* ---- settle and release: locks ------------------------------------------- */

static int
by_id(const void *a, const void *b)
{
	const LLShardSettle *x = *(LLShardSettle *const *) a;
	const LLShardSettle *y = *(LLShardSettle *const *) b;
	int			order = ll_pair_compare(x->subject, x->id, y->subject, y->id);

	return order != 0 ? order : x->index - y->index;
}

static int
by_operation(const void *a, const void *b)
{
	const LLShardSettle *x = *(LLShardSettle *const *) a;
	const LLShardSettle *y = *(LLShardSettle *const *) b;

	if (x->release || y->release)
		return x->release != y->release ? x->release - y->release : x->index - y->index;
	return ll_pair_compare(x->subject, x->operation, y->subject, y->operation);
}

/* elements whose reservation is open, in the order of the locks of their shards; the others last */
static int
by_shard(const void *a, const void *b)
{
	const LLShardSettle *x = *(LLShardSettle *const *) a;
	const LLShardSettle *y = *(LLShardSettle *const *) b;
	int			order;

	if (x->shard == NULL || y->shard == NULL)
		return (x->shard == NULL) - (y->shard == NULL);
	order = ll_pair_compare(x->subject, x->shard->route, y->subject, y->shard->route);
	if (order != 0)
		return order;
	return x->shard->fence < y->shard->fence ? -1 : x->shard->fence > y->shard->fence;
}

/* find_rows reads the reservations, and the shards of the open ones; an id that comes twice shares them. */
static void
find_rows(LLShardSettle **by_key, int count, Snapshot snapshot)
{
	for (int i = 0; i < count; i++)
	{
		LLShardSettle *e = by_key[i];

		if (i > 0 && ll_pair_compare(by_key[i - 1]->subject, by_key[i - 1]->id,
									 e->subject, e->id) == 0)
		{
			e->same_id = by_key[i - 1]->same_id;
			e->row = by_key[i - 1]->row;
			e->shard = by_key[i - 1]->shard;
			continue;
		}
		e->same_id = e;
		e->row = palloc(sizeof(LLShardReservationRow));
		if (!ll_shard_reservation_peek(e->row, e->subject, e->id, snapshot))
			e->row = NULL;
		else if (!ll_state_terminal(e->row->state.state))
		{
			e->shard = palloc(sizeof(LLLocalShard));
			ll_local_shard_of(e->shard, e->row);
		}
	}
}

/* lock_shards locks each shard once, and gives all its elements the one struct. */
static void
lock_shards(LLShardSettle **by_lock, int count, Snapshot snapshot)
{
	for (int i = 0; i < count && by_lock[i]->shard != NULL; i++)
	{
		if (i > 0 && by_shard(&by_lock[i - 1], &by_lock[i]) == 0)
			by_lock[i]->shard = by_lock[i - 1]->shard;
		else if (ll_local_shard_lock(by_lock[i]->shard, snapshot, LockWaitBlock) != LL_LOCK_TAKEN)
			ll_broken("G1", "a shard of this gateway vanished");
	}
}

/* lock_rows locks the reservations of locked shards, in key order. */
static void
lock_rows(LLShardSettle **by_key, int count, Snapshot snapshot)
{
	LLShardReservationRow *locked = NULL;

	for (int i = 0; i < count; i++)
	{
		LLShardSettle *e = by_key[i];

		if (e->shard == NULL || e->row == locked)
			continue;
		if (ll_shard_reservation_lock(e->row, snapshot, LockWaitBlock) != LL_LOCK_TAKEN)
			ll_broken("C3", "a reservation of this gateway vanished");
		locked = e->row;
	}
}

/* ---- settle and release: decisions --------------------------------------- */

/*
 * claims tells whether the element is the first one to name an item that is bound
 * to nothing, by an operation that is not bound either.
 */
static bool
claims(LLShardSettle *e, Snapshot snapshot)
{
	if (e->release || e->shard == NULL || e->row->state.state != LL_USAGE_UNKNOWN ||
		e->row->operation != 0 || e->same_id->id_claimed || e->same_operation->operation_claimed ||
		ll_shard_operation_look(e->subject, e->operation, snapshot) != 0)
		return false;
	e->same_id->id_claimed = e->same_operation->operation_claimed = true;
	return true;
}

/*
 * bind_all binds the operations of settlements of what a boot left unbound, in key
 * order, before anything is decided.  What is bound already is left to the decision.
 */
static void
bind_all(LLShardSettle *elements, LLShardSettle **operations, int count)
{
	Snapshot	snapshot = ll_snapshot_take();

	for (int i = 0; i < count; i++)
		operations[i]->same_operation = i > 0 && by_operation(&operations[i - 1], &operations[i]) == 0
			? operations[i - 1]->same_operation : operations[i];
	for (int i = 0; i < count; i++)
		elements[i].binds = claims(&elements[i], snapshot);
	ll_snapshot_drop(snapshot);
	for (int i = 0; i < count && !operations[i]->release; i++)
	{
		LLShardSettle *e = operations[i];

		if (!e->binds)
			continue;
		e->binds = ll_shard_operation_bind(e->subject, e->operation, e->row->id, NULL);
		if (e->binds)
			e->row->operation = e->operation;
	}
	ll_store_step();
}

/* an item whose first settlement in the batch could not bind it: the whole is to be repeated */
static void
not_bound(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to concurrent use of an operation"),
			 errhint("Repeat the transaction with the same ids.")));
}

/* settle decides one settlement. */
static LLVerdict
settle(LLShardSettle *e)
{
	LLShardReservationRow *row = e->row;
	LLShard		unused = {0};
	LLSettlement settlement = {
		.actual = e->actual,
		.operation = e->binds ? LL_OPERATION_FREE : ll_local_relate(row, e->operation),
		.same_receipt = e->receipt_digest == 0 || row->receipt_digest == 0
			? e->receipt_digest == row->receipt_digest
			: ll_bytes_equal(e->receipt_digest, row->receipt_digest),
		.attested = e->attested
	};
	LLVerdict	verdict;

	if (row->state.state == LL_USAGE_UNKNOWN && !e->binds && settlement.operation == LL_OPERATION_FREE)
		not_bound();
	verdict = ll_local_settle(e->shard != NULL ? &e->shard->figures : &unused, &row->state, &settlement);
	if (verdict.overflow || verdict.outcome != LL_ACCEPTED || verdict.replayed)
		return verdict;
	if (e->attested)
		ll_action_insert(ll_local_now(e->shard), "attest_usage", row->subject, e->shard->route,
						 CStringGetTextDatum(psprintf("%lld units for reservation %s", (long long) e->actual,
													  TextDatumGetCString(row->id))));
	row->receipt_digest = e->receipt_digest;
	row->receipt_source = e->source;
	e->binds = false;
	return verdict;
}

/* decide answers one element. */
static void
decide(LLShardSettle *e, LLReceipt *receipt)
{
	LLShard		unused = {0};
	LLVerdict	verdict;

	if (e->row == NULL)
	{
		ll_local_receipt(receipt, ll_say(LL_UNKNOWN, LL_DIM_RESERVATION), NULL, NULL);
		return;
	}
	verdict = e->release
		? ll_local_release(e->shard != NULL ? &e->shard->figures : &unused, &e->row->state)
		: settle(e);
	if (verdict.overflow)
		ll_overflow("the excess of the shard");
	if (e->shard == NULL)
	{
		ll_local_stored(receipt, verdict, e->row);
		return;
	}
	if (verdict.outcome == LL_ACCEPTED && !verdict.replayed)
	{
		e->row->ended_at = ll_local_now(e->shard);
		e->shard->seen_at = e->row->ended_at;
		e->shard->changed = true;
		e->moved = true;
	}
	ll_local_receipt(receipt, verdict, e->shard, e->row);
}

/* write_all writes the rows that have moved, and each shard that has changed once. */
static void
write_all(LLShardSettle **by_key, LLShardSettle **by_lock, int count)
{
	for (int i = 0; i < count; i++)
		if (by_key[i]->moved)
			ll_shard_reservation_update(by_key[i]->row);
	for (int i = 0; i < count && by_lock[i]->shard != NULL; i++)
		if (by_lock[i]->shard->changed)
			ll_local_shard_write(by_lock[i]->shard);
}

/* ll_shard_settle_or_release ends a batch of reservations of this gateway. */
void
ll_shard_settle_or_release(LLShardSettle *elements, int count, LLReceipt *receipts)
{
	LLShardSettle **by_key = palloc(sizeof(LLShardSettle *) * count);
	LLShardSettle **by_lock = palloc(sizeof(LLShardSettle *) * count);
	LLShardSettle **operations = palloc(sizeof(LLShardSettle *) * count);
	Snapshot	snapshot;
	LLBoot		boot;

	(void) ll_boot(false, LockWaitBlock, &boot);
	for (int i = 0; i < count; i++)
	{
		elements[i].index = i;
		by_key[i] = by_lock[i] = operations[i] = &elements[i];
	}
	snapshot = ll_snapshot_take();
	qsort(by_key, count, sizeof(LLShardSettle *), by_id);
	find_rows(by_key, count, snapshot);
	qsort(by_lock, count, sizeof(LLShardSettle *), by_shard);
	lock_shards(by_lock, count, snapshot);
	lock_rows(by_key, count, snapshot);
	ll_snapshot_drop(snapshot);
	qsort(operations, count, sizeof(LLShardSettle *), by_operation);
	bind_all(elements, operations, count);

	for (int i = 0; i < count; i++)
		decide(&elements[i], &receipts[i]);
	write_all(by_key, by_lock, count);
}
