/*
 * local_reserve.c
 *	  shard_reserve: admission against shards, with no ledger in reach (G4).
 *
 *	  begin a boot, if the server was started since (G5)
 *	  a request that was committed before: answer by its row
 *	  lock the open shards of each pair, in the order of keys and fences
 *	  for each element: the first shard that has enough; before a refusal for
 *	  want of units, holds that are due are ended
 *	  bind operations, insert reservations, each in key order
 *	  write each shard once
 *
 * Lost reply: the same id finds its row, whatever has become of its shard.
 * Crash before the commit: nothing happened.  Same id at once on one pair: the
 * second waits for the shard and then finds the row.  On two pairs: its insertion
 * waits, finds the key, and the units go back in memory.  Seal or boot meanwhile:
 * the shard is found sealed under its lock.  Clock back: seen_at decides.
 */
#include "postgres.h"

#include "local.h"

#include "errors.h"
#include "miscadmin.h"
#include "store/clock.h"
#include "store/recovery.h"

/* How many rows that are due one reserve ends at a time before it looks again. */
#define DUE_AT_ONCE		500

/* ---- what is stored under the id ---------------------------------------- */

/* answer_stored: the receipt that stands, or a conflict that shows nothing of it (D2). */
static void
answer_stored(const LLShardReserve *e, const LLShardReservationRow *row, LLReceipt *receipt)
{
	LLLocalShard shard;

	ll_local_shard_of(&shard, row);
	if (ll_bytes_equal(e->digest, row->digest) && e->units == row->state.reserved_units &&
		ll_text_compare(e->route, shard.route) == 0)
	{
		ll_local_receipt(receipt, ll_replayed(), &shard, row);
		return;
	}
	ll_local_receipt(receipt, ll_say(LL_CONFLICT, LL_DIM_REQUEST), NULL, NULL);
	receipt->state = ll_state_name(row->state.state);
}

static void
answer_refused(LLShardReserve *e, LLVerdict verdict, LLReceipt *receipt)
{
	ll_local_receipt(receipt, verdict, e->shard, NULL);
	receipt->state = "REQUESTED";
}

/* replay answers by what is committed under the id; false: nothing is. */
static bool
replay(const LLShardReserve *e, Snapshot snapshot, LLReceipt *receipt)
{
	LLShardReservationRow stored;

	if (!ll_shard_reservation_look(&stored, e->subject, e->id, snapshot))
		return false;
	answer_stored(e, &stored, receipt);
	return true;
}

/* ---- locks --------------------------------------------------------------- */

/*
 * lock_above locks the open shards of a pair above a fence.  True: it met any, so
 * that there may be more which came while it waited; they have higher fences.
 */
static bool
lock_above(LLLocalPair *pair, const LLShardReserve *e, int64 *above)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLScan	   *scan = ll_local_open_begin(e->subject, e->route, *above, snapshot);
	bool		met = false;

	for (;;)
	{
		LLLocalShard *shard = palloc(sizeof(LLLocalShard));

		if (!ll_local_shard_next(scan, shard))
			break;
		met = true;
		*above = shard->fence;
		if (ll_local_shard_lock(shard, snapshot, LockWaitBlock) != LL_LOCK_TAKEN)
			ll_broken("G1", "a shard of this gateway vanished");
		if (!shard->figures.sealed)
			pair->shards = lappend(pair->shards, shard);
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	return met;
}

/* lock_pair locks all that some elements of one pair may be given. */
static void
lock_pair(LLShardReserve **elements, int count)
{
	LLLocalPair *pair = palloc0(sizeof(LLLocalPair));
	int64		above = 0;

	CHECK_FOR_INTERRUPTS();
	while (lock_above(pair, elements[0], &above))
		;
	if (pair->shards == NIL)
	{
		LLLocalShard *last = palloc(sizeof(LLLocalShard));
		Snapshot	snapshot = ll_snapshot_take();

		if (ll_local_shard_last(last, elements[0]->subject, elements[0]->route, snapshot))
			pair->last = last;
		ll_snapshot_drop(snapshot);
	}
	for (int i = 0; i < count; i++)
		elements[i]->pair = pair;
}

/* ---- deciding ------------------------------------------------------------ */

/* at is the pair's instant, for one of its shards. */
static TimestampTz
at(const LLLocalPair *pair, const LLLocalShard *shard)
{
	return Max(pair->clock, shard->seen_at);
}

/* expire_due ends what is due in one locked shard; true: units came back. */
static bool
expire_due(const LLLocalPair *pair, LLLocalShard *shard)
{
	Snapshot	snapshot = ll_snapshot_take();
	TimestampTz now = at(pair, shard);
	LLScan	   *scan = ll_shard_held_begin(shard, now, snapshot);
	LLShardReservationRow row = {0};
	int			ended = 0;
	bool		came_back = false;

	while (ended < DUE_AT_ONCE && ll_shard_reservation_next(scan, &row))
	{
		LLVerdict	verdict;

		if (ll_shard_reservation_lock(&row, snapshot, LockWaitSkip) != LL_LOCK_TAKEN)
			continue;
		verdict = row.state.state == LL_RESERVED
			? ll_local_expire(&shard->figures, &row.state, now)
			: ll_report_unknown(&row.state, LL_OPERATION_SAME, false, now);
		if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
			continue;
		if (row.state.state == LL_EXPIRED)
			row.ended_at = now;
		else
			row.unknown_at = now;
		came_back |= row.state.state == LL_EXPIRED;
		ll_shard_reservation_update(&row);
		shard->changed = true;
		ended++;
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	ll_store_step();
	return came_back || ended == DUE_AT_ONCE;
}

/* end_due_holds does so in all shards of a pair (D14). */
static bool
end_due_holds(LLLocalPair *pair)
{
	ListCell   *cell;
	bool		came_back = false;

	foreach(cell, pair->shards)
		came_back |= expire_due(pair, lfirst(cell));
	return came_back;
}

/* ask puts the request to one shard. */
static LLVerdict
ask(LLShardReserve *e, LLLocalShard *shard)
{
	LLLocalRequest request = {
		.units = e->units,
		.deadline = e->deadline == LL_NO_TIME ? LL_TIME_MAX : e->deadline,
		.largest_reservation = shard->largest_reservation,
		.shard_expires_at = shard->expires_at,
		.hold_ttl = shard->hold_ttl,
		.quarantined = ll_recovery_stops_admission(),
	};

	return ll_local_reserve(&shard->figures, &request, at(e->pair, shard), &e->row.state);
}

/* of two refusals, the one that says more: what waiting may change, then what is for ever */
static int
weight(const LLVerdict *verdict)
{
	switch (verdict->wait)
	{
		case LL_WAIT_RELEASE:
			return 4;
		case LL_WAIT_NEVER:
			return 2;
		case LL_WAIT_NONE:
		case LL_WAIT_REFILL:
		case LL_WAIT_OPERATOR:
			break;
	}
	return verdict->dimension == LL_DIM_AVAILABLE ? 3 : 1;
}

/* why_none says why a pair has no open shard. */
static LLVerdict
why_none(LLShardReserve *e)
{
	LLVerdict	verdict = ll_say(LL_REFUSED, LL_DIM_NO_SHARD);

	e->shard = e->pair->last;
	verdict.wait = LL_WAIT_OPERATOR;
	if (e->shard != NULL)
		verdict.dimension = at(e->pair, e->shard) >= e->shard->expires_at ? LL_DIM_SHARD_EXPIRED
			: e->shard->figures.sealed ? LL_DIM_SEALED : LL_DIM_BOOT_EPOCH;
	return verdict;
}

/*
 * try takes the units from the first shard of the pair that has enough.  A shard
 * with excess of its own stops the whole pair (E1).
 */
static LLVerdict
try(LLShardReserve *e)
{
	LLVerdict	best = why_none(e);
	ListCell   *cell;

	foreach(cell, e->pair->shards)
	{
		LLLocalShard *shard = lfirst(cell);

		if (shard->figures.excess > 0)
		{
			e->shard = shard;
			return ask(e, shard);
		}
	}
	foreach(cell, e->pair->shards)
	{
		LLLocalShard *shard = lfirst(cell);
		LLVerdict	verdict = ask(e, shard);

		if (verdict.outcome != LL_ACCEPTED && cell != list_head(e->pair->shards) &&
			weight(&verdict) <= weight(&best))
			continue;
		best = verdict;
		e->shard = shard;
		if (verdict.outcome == LL_ACCEPTED)
			break;
	}
	return best;
}

/*
 * admit decides, and ends due holds before it lets a want of units stand; what
 * comes after is read in a snapshot that shows their end.
 */
static LLVerdict
admit(LLShardReserve *e, Snapshot *snapshot)
{
	LLLocalPair *pair = e->pair;
	LLVerdict	verdict;

	for (;;)
	{
		verdict = try(e);
		if (verdict.dimension != LL_DIM_AVAILABLE || pair->no_hold_due)
			return verdict;
		pair->no_hold_due = !end_due_holds(pair);
		ll_snapshot_drop(*snapshot);
		*snapshot = ll_snapshot_take();
	}
}

/* take makes the row of an admitted element, started at once if it asks for that (D5). */
static void
take(LLShardReserve *e)
{
	LLShardReservationRow *row = &e->row;
	TimestampTz now = at(e->pair, e->shard);
	LLPolicy	policy = {.execution_ttl = e->shard->execution_ttl};

	row->subject = e->subject;
	row->id = e->id;
	row->shard_id = e->shard->id;
	row->digest = e->digest;
	row->reserved_at = now;
	row->started_at = row->unknown_at = row->ended_at = LL_NO_TIME;
	if (e->start_operation != 0)
	{
		(void) ll_start(&row->state, &policy, LL_OPERATION_FREE, now);
		row->operation = e->start_operation;
		row->started_at = now;
		*e->operation_holder = e;
	}
	e->shard->changed = true;
	e->admitted = true;
	*e->id_holder = e;
}

/* untake gives the units back when the row turned out to be impossible. */
static void
untake(LLShardReserve *e)
{
	LLReservation hold = e->row.state;

	hold.state = LL_RESERVED;
	(void) ll_local_release(&e->shard->figures, &hold);
	e->admitted = false;
	*e->id_holder = NULL;
	if (e->start_operation != 0)
		*e->operation_holder = NULL;
}

/* decide answers one element; its pair is locked. */
static void
decide(LLShardReserve *e, Snapshot *snapshot, LLReceipt *receipt)
{
	LLVerdict	verdict;

	if (*e->id_holder != NULL)
	{
		e->echo_of = *e->id_holder; /* answered when that one is written */
		return;
	}
	if (replay(e, *snapshot, receipt))
		return;
	if (e->start_operation != 0 &&
		(*e->operation_holder != NULL ||
		 ll_shard_operation_look(e->subject, e->start_operation, *snapshot) != 0))
	{
		answer_refused(e, ll_say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE), receipt);
		return;
	}
	verdict = admit(e, snapshot);
	if (verdict.outcome != LL_ACCEPTED)
	{
		answer_refused(e, verdict, receipt);
		return;
	}
	take(e);
	ll_local_receipt(receipt, verdict, e->shard, &e->row);
}

/*
 * decide_pair answers the elements of one locked pair, in their order.  A shard
 * of another boot is left out: no seal has reached it, which no call brings about.
 */
static void
decide_pair(LLShardReserve **elements, int count, Snapshot *snapshot, LLReceipt *receipts)
{
	LLLocalPair *pair = elements[0]->pair;
	ListCell   *cell;

	pair->clock = ll_clock_now();
	foreach(cell, pair->shards)
		if (!ll_boot_rules(lfirst(cell)))
		{
			pair->last = lfirst(cell);
			pair->shards = foreach_delete_current(pair->shards, cell);
		}
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		decide(elements[i], snapshot, &receipts[elements[i]->index]);
	}
}

/* ---- orders -------------------------------------------------------------- */

static int
by_pair(const void *a, const void *b)
{
	const LLShardReserve *x = *(LLShardReserve *const *) a;
	const LLShardReserve *y = *(LLShardReserve *const *) b;
	int			order = ll_pair_compare(x->subject, x->route, y->subject, y->route);

	return order != 0 ? order : x->index - y->index;
}

static int
by_id(const void *a, const void *b)
{
	const LLShardReserve *x = *(LLShardReserve *const *) a;
	const LLShardReserve *y = *(LLShardReserve *const *) b;
	int			order = ll_pair_compare(x->subject, x->id, y->subject, y->id);

	return order != 0 ? order : x->index - y->index;
}

/* elements that start at once, by operation; the others last */
static int
by_operation(const void *a, const void *b)
{
	const LLShardReserve *x = *(LLShardReserve *const *) a;
	const LLShardReserve *y = *(LLShardReserve *const *) b;
	int			order;

	if (x->start_operation == 0 || y->start_operation == 0)
		return (x->start_operation == 0) - (y->start_operation == 0);
	order = ll_pair_compare(x->subject, x->start_operation, y->subject, y->start_operation);
	return order != 0 ? order : x->index - y->index;
}

/* link_holders gives all elements with one id, or one operation, one cell. */
static void
link_holders(LLShardReserve **ids, LLShardReserve **operations, int count)
{
	LLShardReserve **cells = palloc0(sizeof(LLShardReserve *) * count * 2);

	for (int i = 0; i < count; i++)
		ids[i]->id_holder = i > 0 &&
			ll_pair_compare(ids[i - 1]->subject, ids[i - 1]->id, ids[i]->subject, ids[i]->id) == 0
			? ids[i - 1]->id_holder : &cells[i];
	for (int i = 0; i < count && operations[i]->start_operation != 0; i++)
		operations[i]->operation_holder = i > 0 &&
			ll_pair_compare(operations[i - 1]->subject, operations[i - 1]->start_operation,
							operations[i]->subject, operations[i]->start_operation) == 0
			? operations[i - 1]->operation_holder : &cells[count + i];
}

/* the elements of one pair begin at `first` and end before what this returns */
static int
pair_end(LLShardReserve **pairs, int first, int count)
{
	int			next = first + 1;

	while (next < count &&
		   ll_pair_compare(pairs[first]->subject, pairs[first]->route,
						   pairs[next]->subject, pairs[next]->route) == 0)
		next++;
	return next;
}

/* ---- writing ------------------------------------------------------------- */

/* bind_operations: what another transaction has bound meanwhile is a conflict, and takes nothing. */
static void
bind_operations(LLShardReserve **operations, int count, LLReceipt *receipts)
{
	for (int i = 0; i < count && operations[i]->start_operation != 0; i++)
	{
		LLShardReserve *e = operations[i];

		if (!e->admitted ||
			ll_shard_operation_bind(e->subject, e->start_operation, e->id, &e->operation_tid))
			continue;
		untake(e);
		answer_refused(e, ll_say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE), &receipts[e->index]);
	}
}

/* answer_taken answers an element whose id another transaction has used meanwhile. */
static void
answer_taken(const LLShardReserve *e, LLReceipt *receipt)
{
	Snapshot	snapshot;
	bool		found;

	ll_store_step();
	snapshot = ll_snapshot_take();
	found = replay(e, snapshot, receipt);
	ll_snapshot_drop(snapshot);
	if (!found)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent use of a reservation id or operation"),
				 errhint("Repeat the transaction with the same ids.")));
}

/* insert_row inserts the row of an admitted element; taken meanwhile, it took nothing. */
static void
insert_row(LLShardReserve *e, LLReceipt *receipt)
{
	if (ll_shard_reservation_insert(&e->row))
		return;
	untake(e);
	if (e->start_operation != 0)
		ll_shard_operation_forget(&e->operation_tid);
	answer_taken(e, receipt);
}

/* write_pair writes the shards of a pair that have changed. */
static void
write_pair(LLLocalPair *pair)
{
	ListCell   *cell;

	foreach(cell, pair->shards)
	{
		LLLocalShard *shard = lfirst(cell);

		if (!shard->changed)
			continue;
		shard->seen_at = at(pair, shard);
		ll_local_shard_write(shard);
	}
}

/* decide_all locks all pairs, then decides all elements. */
static void
decide_all(LLShardReserve **pairs, int count, LLReceipt *receipts)
{
	Snapshot	snapshot;

	for (int first = 0, end; first < count; first = end)
	{
		end = pair_end(pairs, first, count);
		lock_pair(&pairs[first], end - first);
	}
	snapshot = ll_snapshot_take();	/* newer than every lock (F5) */
	for (int first = 0, end; first < count; first = end)
	{
		end = pair_end(pairs, first, count);
		decide_pair(&pairs[first], end - first, &snapshot, receipts);
	}
	ll_snapshot_drop(snapshot);
}

/* replay_plainly answers a repeated request that waits for nothing (F5). */
static bool
replay_plainly(const LLShardReserve *e, LLReceipt *receipt)
{
	Snapshot	snapshot = ll_snapshot_take();
	bool		replayed = replay(e, snapshot, receipt);

	ll_snapshot_drop(snapshot);
	return replayed;
}

/* ll_shard_reserve decides a batch against the shards of this gateway. */
void
ll_shard_reserve(LLShardReserve *elements, int count, LLReceipt *receipts)
{
	LLShardReserve **ids = palloc(sizeof(LLShardReserve *) * count);
	LLShardReserve **operations = palloc(sizeof(LLShardReserve *) * count);
	LLShardReserve **pairs = palloc(sizeof(LLShardReserve *) * count);
	LLBoot		boot;

	(void) ll_boot(false, LockWaitBlock, &boot);
	if (count == 1 && replay_plainly(&elements[0], &receipts[0]))
		return;
	for (int i = 0; i < count; i++)
	{
		elements[i].index = i;
		ids[i] = operations[i] = pairs[i] = &elements[i];
	}
	qsort(ids, count, sizeof(LLShardReserve *), by_id);
	qsort(operations, count, sizeof(LLShardReserve *), by_operation);
	qsort(pairs, count, sizeof(LLShardReserve *), by_pair);
	link_holders(ids, operations, count);
	decide_all(pairs, count, receipts);

	bind_operations(operations, count, receipts);
	for (int i = 0; i < count; i++)
		if (ids[i]->admitted)
			insert_row(ids[i], &receipts[ids[i]->index]);
	for (int first = 0; first < count; first = pair_end(pairs, first, count))
		write_pair(pairs[first]->pair);
	for (int i = 0; i < count; i++)
		if (elements[i].echo_of != NULL)
			answer_taken(&elements[i], &receipts[i]);
}
