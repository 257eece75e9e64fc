/*
 * purge.c
 *	  What ended long enough ago is deleted, and its budget keeps the sum (D15).
 *
 *	  reservations, usage:  read due rows in the order of (generation, instant);
 *	      for each pair lock the head (skip locked), claim and delete the rows,
 *	      add what they had spent to purged_spent, write each budget once
 *	  budgets:  read those that are followed by a closed one in the same order;
 *	      lock the heads (skip locked), then delete from each pair's oldest on
 *
 * A row that spent nothing needs no budget, so it needs no head either.
 * Nothing here waits: what somebody else uses is left to the next run, so a
 * purge closes no circle with a call (F1, F3).  Each step is one transaction;
 * a crash leaves all of it or nothing.  Purge against purge: the head, or the
 * row, is had by one, and the other passes by.  Purge against replay: a replay
 * reads the committed row, until the deletion has committed; after that the id
 * is as new.  An older snapshot, such as that of a dump, sees rows and budgets
 * as they were, in the same sums.
 *
 * Where a step stopped for its limit it says where to go on, so that a run
 * does not read again what it has deleted and no vacuum has removed yet.
 */
#include "postgres.h"

#include "core/arith.h"
#include "errors.h"
#include "ledger.h"
#include "miscadmin.h"
#include "store/clock.h"
#include "store/columns.h"

/* One row to be deleted, and what it had spent on its budget. */
typedef struct Due
{
	int64		generation;		/* where it is in the order */
	TimestampTz at;
	Datum		subject;
	Datum		route;			/* 0: a fence */
	LLReservationRow row;		/* a reservation, or */
	TupleTableSlot *usage;		/* usage that was never reserved, or */
	LLClosed   *follower;		/* the closed budget that follows the one to go */
	LLUnits		units;
	int64		own_generation;
	TimestampTz own_epoch;
	bool		alone;			/* it spent nothing: no budget is touched */
	bool		done;
} Due;

/* Due rows, in the order of (generation, instant). */
typedef struct Walk
{
	LLIndexId	index;
	Snapshot	snapshot;
	TimestampTz now;
	LLScan	   *scan;
	bool		within;			/* the scan ends with its generation */
	int64		generation;		/* that it is in; 0: fences */
	bool		met;			/* a row of it, and so the next two are known */
	bool		kept;			/* rows of it are never due */
	LLTime		retention;
	int			entered;		/* generations, and how many may be */
	int			limit;
	bool		stopped;		/* before the next one */
} Walk;

static void
walk_begin(Walk *walk, LLIndexId index, const LLPurge *purge)
{
	memset(walk, 0, sizeof(*walk));
	walk->index = index;
	walk->limit = purge->limit;
	walk->snapshot = ll_snapshot_take();
	walk->now = ll_clock_now();
	walk->generation = purge->from_generation;
	walk->within = true;
	walk->scan = ll_aged_begin(index, purge->from_generation, purge->from_instant, walk->snapshot);
}

static void
walk_end(Walk *walk)
{
	ll_scan_end(walk->scan);
	ll_snapshot_drop(walk->snapshot);
}

/* walk_enter goes on with the next generation that has rows. */
static void
walk_enter(Walk *walk)
{
	walk->generation++;
	walk->met = false;
	walk->entered++;
	ll_scan_end(walk->scan);
	walk->scan = ll_aged_from_begin(walk->index, walk->generation, walk->snapshot);
	walk->within = false;
}

/* walk_meet learns the retention; a fence is kept as long as any generation asks for. */
static void
walk_meet(Walk *walk, int64 generation)
{
	walk->generation = generation;
	walk->met = true;
	walk->kept = false;
	if (generation != 0)
		walk->retention = ll_policy_get(generation)->retention;
	else
		walk->kept = !ll_policy_longest_retention(&walk->retention);
}

/*
 * walk_next gives the next due row.  The first row that is not due ends its
 * generation, and the next one is entered.
 */
static bool
walk_next(Walk *walk, TupleTableSlot *slot, TimestampTz *at)
{
	for (;;)
	{
		int64		generation;

		CHECK_FOR_INTERRUPTS();
		if (!ll_aged_next(walk->scan, slot, &generation, at))
		{
			if (!walk->within)
				return false;
			walk_enter(walk);
			continue;
		}
		walk->stopped = walk->entered > walk->limit;
		if (walk->stopped)
		{
			walk->generation = generation;
			return false;
		}
		if (!walk->met || generation != walk->generation)
			walk_meet(walk, generation);
		if (!walk->kept && ll_purge_due(*at, walk->retention, walk->now))
			return true;
		walk_enter(walk);
	}
}

/* ---- reservations and usage ---------------------------------------------- */

static void
read_reservation(Due *item, TupleTableSlot *slot)
{
	item->row.slot = slot;
	ll_reservation_read(&item->row);
	/* the slot is about to be locked: keep the pair apart from it */
	item->subject = ll_copy_varlena(item->row.subject);
	item->route = ll_copy_varlena(item->row.route);
	item->units = ll_min(item->row.state.actual_units, item->row.state.reserved_units);
	item->own_generation = item->row.generation;
	item->own_epoch = item->row.epoch;
	item->alone = item->units == 0 && item->row.state.excess_units == 0;
}

static void
read_usage(Due *item, TupleTableSlot *slot)
{
	LLOperationRow row;

	ll_operation_read(&row, slot);
	item->usage = slot;
	item->subject = ll_copy_varlena(slot->tts_values[LL_OPERATION_SUBJECT]);
	item->route = ll_copy_varlena(row.route);
	item->units = row.usage_units;
	item->own_generation = row.generation;
	item->own_epoch = row.epoch;
	item->alone = row.usage_units == 0;
}

static void
read_follower(Due *item, TupleTableSlot *slot)
{
	item->follower = palloc0(sizeof(LLClosed));
	item->follower->slot = slot;
	ll_closed_read(item->follower);
	item->subject = slot->tts_values[LL_BUDGET_SUBJECT];
	item->route = slot->tts_values[LL_BUDGET_ROUTE];
	item->own_generation = item->follower->lineage.follows_generation;
	item->own_epoch = item->follower->lineage.follows_epoch;
}

/* those that spent nothing first, then by pair, then by budget in opening order, then by id */
static int
by_pair(const void *a, const void *b)
{
	const Due *x = a;
	const Due *y = b;
	int			order;

	if (x->alone || y->alone)
		return y->alone - x->alone;
	order = ll_pair_compare(x->subject, x->route, y->subject, y->route);
	if (order == 0 && x->own_generation != y->own_generation)
		order = x->own_generation < y->own_generation ? -1 : 1;
	if (order == 0 && x->own_epoch != y->own_epoch)
		order = x->own_epoch < y->own_epoch ? -1 : 1;
	return order != 0 || x->row.id == 0 ? order : ll_text_compare(x->row.id, y->row.id);
}

/* collect reads at most `limit` due rows. */
static int
collect(Walk *walk, LLTableId table, int limit, Due *items)
{
	int			count;

	for (count = 0; count < limit; count++)
	{
		Due	   *item = &items[count];
		TupleTableSlot *slot = ll_table_slot(table);

		if (!walk_next(walk, slot, &item->at))
			break;
		ExecMaterializeSlot(slot);
		slot_getallattrs(slot);
		item->generation = walk->generation;
		if (table == LL_TABLE_CLOSED)
			read_follower(item, slot);
		else if (table == LL_TABLE_OPERATION)
			read_usage(item, slot);
		else
			read_reservation(item, slot);
	}
	return count;
}

/* pair_end: the items of one pair begin at `first` and end before what this returns */
static int
pair_end(const Due *items, int first, int count)
{
	int			next = first + 1;

	while (next < count && ll_pair_compare(items[first].subject, items[first].route,
										   items[next].subject, items[next].route) == 0)
		next++;
	return next;
}

/*
 * go_on says where the next step begins, if this one stopped for its limit: at
 * the last instant again, since more rows may have ended in it, unless one that
 * did could not be purged.
 */
static void
go_on(LLPurge *purge, const Walk *walk, const Due *items, int count)
{
	const Due *last = NULL;

	purge->more = walk->stopped || count == purge->limit;
	purge->next_generation = walk->generation;
	purge->next_instant = LL_NO_TIME;
	if (!purge->more || walk->stopped)
		return;
	for (int i = 0; i < count; i++)
		if (last == NULL || items[i].generation > last->generation ||
			(items[i].generation == last->generation && items[i].at > last->at))
			last = &items[i];
	purge->next_instant = last->at;
	for (int i = 0; i < count; i++)
		if (!items[i].done && items[i].generation == last->generation && items[i].at == last->at)
			purge->next_instant = last->at + 1;
}

/* delete claims and deletes one row; false: somebody uses it, or it is gone. */
static bool
delete(Due *item, Snapshot snapshot)
{
	CHECK_FOR_INTERRUPTS();
	if (item->usage != NULL)
	{
		item->done = ll_row_claim(LL_TABLE_OPERATION, item->usage, snapshot) == LL_LOCK_TAKEN;
		if (item->done)
			ll_row_delete(LL_TABLE_OPERATION, item->usage);
		return item->done;
	}
	item->done = ll_reservation_claim(&item->row, snapshot);
	if (item->done)
		ll_reservation_delete(&item->row, snapshot);
	return item->done;
}

/* book adds units to what is purged of one budget of the locked pair. */
static void
book(LLPairWork *work, int64 generation, TimestampTz epoch, LLUnits units, LLPurge *purge)
{
	LLClosed   *closed;

	if (units == 0)
		return;
	closed = ll_pair_budget(work, generation, epoch);
	if (!ll_purge_spent(closed != NULL ? &closed->budget : &work->head.pair.head, units))
		ll_broken("C2", "a budget has spent less than its reservations");
	if (closed != NULL)
		closed->dirty = true;
	else
		work->changed = true;
	purge->units = ll_add_capped(purge->units, units);
}

/* write_books writes each budget once: nothing of it moved but purged_spent. */
static void
write_books(LLPairWork *work)
{
	ListCell   *cell;

	foreach(cell, work->closed)
	{
		LLClosed   *closed = lfirst(cell);

		if (!closed->dirty)
			continue;
		if (!ll_budget_conserved(&closed->budget))
			ll_broken("C1", "a closed budget would not add up");
		ll_closed_update(&work->head, closed);
	}
	if (!work->changed)
		return;
	if (!ll_budget_conserved(&work->head.pair.head))
		ll_broken("C1", "a budget would not add up");
	ll_head_update(&work->head);
}

/* purge_pair purges rows of one pair, if its head is free. */
static void
purge_pair(Due *items, int count, Snapshot snapshot, LLPurge *purge)
{
	LLPairWork	work;

	if (ll_faulty(items[0].subject, items[0].route))
		return;
	ll_pair_init(&work, items[0].subject, items[0].route);
	if (ll_pair_find_and_lock(&work, LockWaitSkip) != LL_LOCK_TAKEN)
		return;
	for (int i = 0; i < count; i++)
	{
		const LLReservationRow *row = &items[i].row;

		if (!delete(&items[i], snapshot))
			continue;
		book(&work, items[i].own_generation, items[i].own_epoch, items[i].units, purge);
		book(&work, row->excess_generation, row->excess_epoch, row->state.excess_units, purge);
	}
	write_books(&work);
}

/* purge_rows purges at most `limit` due rows that an index leads to. */
static void
purge_rows(LLIndexId index, LLTableId table, LLPurge *purge)
{
	Due	   *items = palloc0(sizeof(Due) * purge->limit);
	Walk		walk;
	int			count;
	int			end;

	walk_begin(&walk, index, purge);
	count = collect(&walk, table, purge->limit, items);
	qsort(items, count, sizeof(Due), by_pair);
	for (int i = 0; i < count; i = end)
	{
		end = items[i].alone ? i + 1 : pair_end(items, i, count);
		if (!items[i].alone)
			purge_pair(&items[i], end - i, walk.snapshot, purge);
		else if (!ll_faulty(items[i].subject, items[i].route))
			(void) delete(&items[i], walk.snapshot);
		for (int n = i; n < end; n++)
			purge->purged += items[n].done;
	}
	go_on(purge, &walk, items, count);
	walk_end(&walk);
}

/* ll_purge_reservations purges reservations that have ended, fences among them. */
void
ll_purge_reservations(LLPurge *purge)
{
	purge_rows(LL_INDEX_ENDED, LL_TABLE_RESERVATION, purge);
}

/* ll_purge_usage purges usage that was never reserved. */
void
ll_purge_usage(LLPurge *purge)
{
	purge_rows(LL_INDEX_OPERATION_USAGE, LL_TABLE_OPERATION, purge);
}

/* ---- closed budgets ------------------------------------------------------- */

/* A step over closed budgets, once their heads are locked. */
typedef struct Closing
{
	Snapshot	snapshot;		/* newer than the locks */
	TimestampTz now;
	List	   *known;			/* Stored *, of the generations met so far */
	LLPurge    *purge;
} Closing;

typedef struct Stored
{
	int64		generation;
	TimestampTz since;			/* its oldest row is of this instant */
} Stored;

static TimestampTz
oldest(LLIndexId index, LLTableId table, int64 generation, Snapshot snapshot)
{
	LLScan	   *scan = ll_aged_begin(index, generation, LL_NO_TIME, snapshot);
	TimestampTz at;

	if (!ll_aged_next(scan, ll_table_scratch(table), &generation, &at))
		at = LL_TIME_MAX;
	ll_scan_end(scan);
	return at;
}

/* stored_since looks once for each generation; LL_TIME_MAX: nothing is stored. */
static TimestampTz
stored_since(Closing *step, int64 generation)
{
	ListCell   *cell;
	Stored	   *stored;

	foreach(cell, step->known)
	{
		stored = lfirst(cell);
		if (stored->generation == generation)
			return stored->since;
	}
	stored = palloc(sizeof(Stored));
	stored->generation = generation;
	stored->since = ll_min(oldest(LL_INDEX_ENDED, LL_TABLE_RESERVATION, generation, step->snapshot),
						   oldest(LL_INDEX_OPERATION_USAGE, LL_TABLE_OPERATION, generation, step->snapshot));
	step->known = lappend(step->known, stored);
	return stored->since;
}

/*
 * may_go tells whether a closed budget can be purged.  What ended or was
 * recorded in it did so no later than changed_at, so if all that is stored of
 * its generation is younger, no row tells of it any more.
 */
static bool
may_go(Closing *step, const LLClosed *closed)
{
	int64		generation = closed->budget.generation;

	return ll_purge_budget(&closed->budget) &&
		ll_purge_due(closed->changed_at, ll_policy_get(generation)->retention, step->now) &&
		closed->changed_at < stored_since(step, generation);
}

/* is_oldest: the budget follows none that is there; `next` follows what was just purged. */
static bool
is_oldest(const LLClosed *closed, const LLClosed *next)
{
	return !closed->lineage.follows || closed->follows_purged ||
		(next != NULL && next->budget.generation == closed->budget.generation &&
		 next->budget.epoch == closed->budget.epoch);
}

/*
 * purge_chain purges closed budgets of one locked pair, from its oldest on.
 * The one that is then the oldest says that it follows a purged one, so that
 * the audit can tell it from one whose predecessor is missing (B5).  The
 * budget that the head follows is none of the items: it stays.
 */
static void
purge_chain(Closing *step, const LLHead *head, Due *items, int count)
{
	LLClosed   *next = NULL;

	for (int i = 0; i < count; i++)
	{
		LLClosed	closed = {0};

		if (!ll_closed_lock(head, items[i].own_generation, items[i].own_epoch, &closed) ||
			!is_oldest(&closed, next) || !may_go(step, &closed) ||
			ll_row_claim(LL_TABLE_CLOSED, closed.slot, step->snapshot) != LL_LOCK_TAKEN)
			break;
		ll_row_delete(LL_TABLE_CLOSED, closed.slot);
		items[i].done = true;
		step->purge->purged++;
		step->purge->units = ll_add_capped(step->purge->units, closed.budget.spent);
		next = items[i].follower;
	}
	if (next == NULL)
		return;
	if (!ll_closed_lock(head, next->budget.generation, next->budget.epoch, next))
		ll_broken("B5", "a closed budget vanished under the lock of its pair");
	next->follows_purged = true;
	ll_closed_update(head, next);
}

/*
 * ll_purge_budgets purges closed budgets that no row tells of.  All heads are
 * locked before it looks what is stored: nothing of these pairs can end or be
 * recorded from there on.
 */
void
ll_purge_budgets(LLPurge *purge)
{
	Due	   *items = palloc0(sizeof(Due) * purge->limit);
	LLPairWork *works = palloc0(sizeof(LLPairWork) * purge->limit);
	Closing		step = {0};
	Walk		walk;
	int			count;

	walk_begin(&walk, LL_INDEX_CLOSED_FOLLOWED, purge);
	count = collect(&walk, LL_TABLE_CLOSED, purge->limit, items);
	qsort(items, count, sizeof(Due), by_pair);
	for (int i = 0; i < count; i = pair_end(items, i, count))
	{
		ll_pair_init(&works[i], items[i].subject, items[i].route);
		if (!ll_faulty(items[i].subject, items[i].route))
			(void) ll_pair_find_and_lock(&works[i], LockWaitSkip);
	}
	step.snapshot = ll_snapshot_take();
	step.now = walk.now;
	step.purge = purge;
	for (int i = 0, end; i < count; i = end)
	{
		end = pair_end(items, i, count);
		if (works[i].locked && !ll_faulty(items[i].subject, items[i].route))
			purge_chain(&step, &works[i].head, &items[i], end - i);
	}
	ll_snapshot_drop(step.snapshot);
	go_on(purge, &walk, items, count);
	walk_end(&walk);
}
