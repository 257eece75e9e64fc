/*
 * expire.c
 *	  Holds and executions whose time has run out (D10, D14).
 *
 *	  claim:   lock due RESERVED rows (skip locked), RESERVED -> EXPIRING
 *	  finish:  lock a head (skip locked), its EXPIRING rows (skip locked),
 *	           EXPIRING -> EXPIRED, give back, write the budget once
 *
 * Nothing here waits for a lock, so a sweep that holds reservation rows can't
 * close a circle with a call that holds the head.  What is locked is left to
 * the next run.  Crash between claim and finish: the rows stay EXPIRING, which
 * no start can touch, and any later finish takes them.  Start against claim:
 * one of them locks the row first; the row that the claim locks is read again,
 * so a choice made on an old version is never acted on.
 */
#include "postgres.h"

#include "core/arith.h"
#include "errors.h"
#include "ledger.h"
#include "miscadmin.h"
#include "store/clock.h"

/* How many due holds one reserve ends at a time before it looks again. */
#define DUE_AT_ONCE		500

/* claim moves one locked row, if it is still due. */
static bool
claim(LLReservationRow *row, TimestampTz now)
{
	LLVerdict	verdict = ll_expire_claim(&row->state, now);

	if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
		return false;
	ll_reservation_update(row);
	return true;
}

/* claim_pair claims due holds of a pair whose head is locked. */
static int64
claim_pair(LLPairWork *work, int64 limit)
{
	Snapshot	snapshot = ll_snapshot_take();
	TimestampTz now = work->head.pair.seen_at;
	LLScan	   *scan = ll_pair_due_begin(&work->head, 0, now, snapshot);
	LLReservationRow row = {0};
	int64		claimed = 0;

	row.slot = ll_table_slot(LL_TABLE_RESERVATION);
	while (claimed < limit && ll_scan_next(scan, row.slot))
		if (ll_reservation_lock(&row, snapshot, LockWaitSkip) == LL_LOCK_TAKEN &&
			claim(&row, now))
			claimed++;
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	ll_store_step();
	return claimed;
}

/* A pair with claimed holds, and when the first and the last of them were due. */
typedef struct DuePair
{
	Datum		subject;
	Datum		route;
	TimestampTz from;			/* 0: from the beginning */
	TimestampTz until;
} DuePair;

/*
 * finish_pair ends claimed holds of a pair whose head is locked: those that
 * were due between two instants.
 */
static int64
finish_pair(LLPairWork *work, const DuePair *due, int64 limit, LLUnits *units)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLScan	   *scan = ll_pair_due_begin(&work->head, due->from, due->until, snapshot);
	LLReservationRow row = {0};
	int64		expired = 0;

	row.slot = ll_table_slot(LL_TABLE_RESERVATION);
	while (expired < limit && ll_scan_next(scan, row.slot))
	{
		LLClosed   *own;
		LLVerdict	verdict;

		ll_reservation_read(&row);
		if (row.state.state != LL_EXPIRING ||
			ll_reservation_lock(&row, snapshot, LockWaitSkip) != LL_LOCK_TAKEN)
			continue;
		own = ll_pair_budget(work, row.generation, row.epoch);
		verdict = ll_expire_finish(&work->head.pair, own != NULL ? &own->budget : NULL,
								   &row.state, ll_pair_policy(work));
		if (verdict.overflow)
			ll_overflow("the pair's budget");
		if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
			continue;
		row.ended_at = work->head.pair.seen_at;
		ll_reservation_update(&row);
		ll_shadow_settle(work, &row, 0);
		if (own != NULL)
			own->dirty = true;
		work->changed = true;
		*units = ll_add_capped(*units, row.state.reserved_units);
		expired++;
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	ll_store_step();
	return expired;
}

/* ll_holds_matter tells whether due holds may stand in the way of an admission. */
bool
ll_holds_matter(const LLVerdict *verdict)
{
	return verdict->outcome == LL_REFUSED &&
		(verdict->dimension == LL_DIM_AVAILABLE || verdict->dimension == LL_DIM_DEBT ||
		 (verdict->dimension == LL_DIM_LARGEST_OUTSTANDING && verdict->wait != LL_WAIT_NEVER));
}

/*
 * ll_end_due_holds ends some due holds of a locked pair, so that a reserve is
 * right with no worker running.  False: there was none that could be ended.
 */
bool
ll_end_due_holds(LLPairWork *work)
{
	DuePair		due = {.until = work->head.pair.seen_at};
	LLUnits		units = 0;

	(void) claim_pair(work, DUE_AT_ONCE);
	return finish_pair(work, &due, DUE_AT_ONCE, &units) > 0;
}

/* lock_due locks a row that a sweep has found, if it is not to be passed by. */
static bool
lock_due(LLReservationRow *row, Snapshot snapshot)
{
	ll_reservation_read(row);
	return !ll_faulty(row->subject, row->route) &&
		ll_reservation_lock(row, snapshot, LockWaitSkip) == LL_LOCK_TAKEN;
}

/* ll_claim_expiring claims due holds of any pair; it locks no budget. */
void
ll_claim_expiring(int32 limit, LLExpiry *expiry)
{
	Snapshot	snapshot = ll_snapshot_take();
	TimestampTz now = ll_clock_now();
	LLScan	   *scan = ll_due_begin(LL_INDEX_RESERVED, expiry->from, now, snapshot);
	LLReservationRow row = {0};

	row.slot = ll_table_slot(LL_TABLE_RESERVATION);
	while (expiry->claimed < limit && ll_scan_next(scan, row.slot))
		if (lock_due(&row, snapshot) && claim(&row, now) && expiry->claimed++ == 0)
			expiry->oldest_at = row.state.expires_at;
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	ll_store_step();
}

static int
by_pair(const void *a, const void *b)
{
	const DuePair *x = a;
	const DuePair *y = b;

	return ll_pair_compare(x->subject, x->route, y->subject, y->route);
}

/*
 * next_pairs reads on in the scan, for at most `limit` rows of pairs that were
 * not met before, and adds their pairs in key order behind the `met` that were.
 * Returns how many there are now.
 */
static int
next_pairs(LLScan *scan, LLReservationRow *row, DuePair **pairs, int met, int limit)
{
	int			count = met;
	int			kept = met;

	*pairs = *pairs == NULL ? palloc(sizeof(DuePair) * limit)
		: repalloc(*pairs, sizeof(DuePair) * (met + limit));
	while (count < met + limit && ll_scan_next(scan, row->slot))
	{
		DuePair    *pair = &(*pairs)[count];

		ll_reservation_read(row);
		*pair = (DuePair) {row->subject, row->route, row->state.expires_at, row->state.expires_at};
		if (bsearch(pair, *pairs, met, sizeof(DuePair), by_pair) != NULL)
			continue;
		pair->subject = ll_copy_varlena(row->subject);
		pair->route = ll_copy_varlena(row->route);
		count++;
	}
	qsort(*pairs + met, count - met, sizeof(DuePair), by_pair);
	for (int i = met; i < count; i++)
	{
		if (kept > met && by_pair(&(*pairs)[kept - 1], &(*pairs)[i]) == 0)
		{
			(*pairs)[kept - 1].from = ll_min((*pairs)[kept - 1].from, (*pairs)[i].from);
			(*pairs)[kept - 1].until = ll_max((*pairs)[kept - 1].until, (*pairs)[i].until);
		}
		else
			(*pairs)[kept++] = (*pairs)[i];
	}
	return kept;
}

/*
 * ll_finish_expiring gives back what was claimed, pair by pair.  A pair that
 * is locked is passed by, and does not use up the limit (F3).
 */
void
ll_finish_expiring(int32 limit, LLExpiry *expiry)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLScan	   *scan = ll_due_begin(LL_INDEX_EXPIRING, expiry->from, LL_TIME_MAX, snapshot);
	LLReservationRow row = {0};
	DuePair    *pairs = NULL;
	int			met = 0;
	int			count;

	row.slot = ll_table_slot(LL_TABLE_RESERVATION);
	while (expiry->expired < limit &&
		   (count = next_pairs(scan, &row, &pairs, met, limit)) > met)
	{
		for (int i = met; met == 0 && i < count; i++)
			expiry->oldest_at = i == 0 ? pairs[i].from : ll_min(expiry->oldest_at, pairs[i].from);
		for (int i = met; i < count && expiry->expired < limit; i++)
		{
			LLPairWork	work;

			CHECK_FOR_INTERRUPTS();
			if (ll_faulty(pairs[i].subject, pairs[i].route))
				continue;
			ll_pair_init(&work, pairs[i].subject, pairs[i].route);
			if (ll_pair_find_and_lock(&work, LockWaitSkip) != LL_LOCK_TAKEN)
				continue;
			ll_pair_present(&work);
			expiry->expired += finish_pair(&work, &pairs[i], limit - expiry->expired,
										   &expiry->expired_units);
			ll_pair_write(&work);
		}
		qsort(pairs, count, sizeof(DuePair), by_pair);
		met = count;
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
}

/* ll_expire_executions: past its deadline nobody knows what an execution used (D10). */
void
ll_expire_executions(int32 limit, LLExpiry *expiry)
{
	Snapshot	snapshot = ll_snapshot_take();
	TimestampTz now = ll_clock_now();
	LLScan	   *scan = ll_due_begin(LL_INDEX_STARTED, expiry->from, now, snapshot);
	LLReservationRow row = {0};

	row.slot = ll_table_slot(LL_TABLE_RESERVATION);
	while (expiry->unknown < limit && ll_scan_next(scan, row.slot))
	{
		LLVerdict	verdict;

		if (!lock_due(&row, snapshot))
			continue;
		verdict = ll_report_unknown(&row.state, LL_OPERATION_SAME, false, now);
		if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
			continue;
		row.unknown_at = now;
		ll_reservation_update(&row);
		if (expiry->unknown++ == 0)
			expiry->oldest_at = row.state.expires_at;
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
}

/* the index that lists rows of a state by their deadline */
static LLIndexId
index_of(LLState state)
{
	if (state == LL_RESERVED)
		return LL_INDEX_RESERVED;
	return state == LL_STARTED ? LL_INDEX_STARTED : LL_INDEX_EXPIRING;
}

/*
 * ll_next_due tells what is due in RESERVED, STARTED or EXPIRING, and when the
 * next row will be.  An EXPIRING row is due whatever its deadline.
 */
LLDue
ll_next_due(LLState state, TimestampTz from)
{
	Snapshot	snapshot = ll_snapshot_take();
	TimestampTz now = state == LL_EXPIRING ? LL_TIME_MAX : ll_clock_now();
	LLDue		due = {false, LL_TIME_MAX};
	LLReservationRow row = {.slot = ll_table_slot(LL_TABLE_RESERVATION)};
	LLScan	   *scan = ll_due_begin(index_of(state), from, now, snapshot);

	due.now = ll_scan_next(scan, row.slot);
	ll_scan_end(scan);
	if (state != LL_EXPIRING)
	{
		scan = ll_due_after_begin(index_of(state), now, snapshot);
		if (ll_scan_next(scan, row.slot))
		{
			ll_reservation_read(&row);
			due.next_at = row.state.expires_at;
		}
		ll_scan_end(scan);
	}
	ll_snapshot_drop(snapshot);
	return due;
}
