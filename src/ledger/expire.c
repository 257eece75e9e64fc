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
#include "ledger.h"
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
	LLScan	   *scan = ll_pair_due_begin(&work->head, now, snapshot);
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

/* finish_pair ends claimed holds of a pair whose head is locked. */
static int64
finish_pair(LLPairWork *work, int64 limit, LLUnits *units)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLScan	   *scan = ll_pair_due_begin(&work->head, LL_TIME_MAX, snapshot);
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
		if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
			continue;
		row.ended_at = work->head.pair.seen_at;
		ll_reservation_update(&row);
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

/*
 * ll_end_due_holds ends some due holds of a locked pair, so that a reserve is
 * right with no worker running.  False: there was none that could be ended.
 */
bool
ll_end_due_holds(LLPairWork *work)
{
	LLUnits		units = 0;

	(void) claim_pair(work, DUE_AT_ONCE);
	return finish_pair(work, DUE_AT_ONCE, &units) > 0;
}

/* ll_claim_expiring claims due holds of any pair; it locks no budget. */
void
ll_claim_expiring(int32 limit, LLExpiry *expiry)
{
	Snapshot	snapshot = ll_snapshot_take();
	TimestampTz now = ll_clock_now();
	LLScan	   *scan = ll_due_begin(LL_RESERVED, now, snapshot);
	LLReservationRow row = {0};

	row.slot = ll_table_slot(LL_TABLE_RESERVATION);
	while (expiry->claimed < limit && ll_scan_next(scan, row.slot))
		if (ll_reservation_lock(&row, snapshot, LockWaitSkip) == LL_LOCK_TAKEN &&
			claim(&row, now))
			expiry->claimed++;
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	ll_store_step();
}

static int
by_pair(const ListCell *a, const ListCell *b)
{
	const LLPairWork *x = lfirst(a);
	const LLPairWork *y = lfirst(b);

	return ll_pair_compare(x->head.subject, x->head.route, y->head.subject, y->head.route);
}

/* pairs_expiring lists the pairs of the oldest claimed rows, each once, in key order. */
static List *
pairs_expiring(int32 limit)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLScan	   *scan = ll_due_begin(LL_EXPIRING, LL_TIME_MAX, snapshot);
	LLReservationRow row = {0};
	List	   *rows = NIL;
	List	   *pairs = NIL;
	ListCell   *cell;

	row.slot = ll_table_slot(LL_TABLE_RESERVATION);
	for (int32 n = 0; n < limit && ll_scan_next(scan, row.slot); n++)
	{
		LLPairWork *work = palloc(sizeof(LLPairWork));

		ll_reservation_read(&row);
		ll_pair_init(work, ll_copy_varlena(row.subject), ll_copy_varlena(row.route));
		rows = lappend(rows, work);
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	list_sort(rows, by_pair);
	foreach(cell, rows)
		if (pairs == NIL || by_pair(list_last_cell(pairs), cell) != 0)
			pairs = lappend(pairs, lfirst(cell));
	return pairs;
}

/* ll_finish_expiring gives back what was claimed, pair by pair. */
void
ll_finish_expiring(int32 limit, LLExpiry *expiry)
{
	ListCell   *cell;

	foreach(cell, pairs_expiring(limit))
	{
		LLPairWork *work = lfirst(cell);

		if (ll_pair_find_and_lock(work, LockWaitSkip) != LL_LOCK_TAKEN)
			continue;
		ll_pair_present(work);
		expiry->expired += finish_pair(work, limit, &expiry->expired_units);
		ll_pair_write(work);
	}
}

/* ll_expire_executions: past its deadline nobody knows what an execution used (D10). */
void
ll_expire_executions(int32 limit, LLExpiry *expiry)
{
	Snapshot	snapshot = ll_snapshot_take();
	TimestampTz now = ll_clock_now();
	LLScan	   *scan = ll_due_begin(LL_STARTED, now, snapshot);
	LLReservationRow row = {0};

	row.slot = ll_table_slot(LL_TABLE_RESERVATION);
	while (expiry->unknown < limit && ll_scan_next(scan, row.slot))
	{
		LLVerdict	verdict;

		if (ll_reservation_lock(&row, snapshot, LockWaitSkip) != LL_LOCK_TAKEN)
			continue;
		verdict = ll_report_unknown(&row.state, LL_OPERATION_SAME, false, now);
		if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
			continue;
		row.unknown_at = now;
		ll_reservation_update(&row);
		expiry->unknown++;
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
}
