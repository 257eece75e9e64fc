/*
 * claim.c
 *	  claim_unknown_usage: unknown items for a reconciler, oldest first (D10).
 *
 *	  merge the two ends of one index: items that nobody has claimed, and items
 *	  whose lease has lapsed; lock the older one (skip locked), read it again,
 *	  write the claim
 *
 * Nothing here waits for a lock, and no budget is touched.  A row lock would be
 * no claim, since a reconciler asks the provider between two transactions; the
 * lease is a column.  Two reconcilers at once: each skips the rows that the
 * other has locked, and finds the lease of those that it was too late for.
 * Crash before the commit: nothing is claimed; after it, the reconciler's
 * items come back when its lease ends.  Claim against settle: settle waits for
 * the row, and does not ask who has claimed it; the claim skips a row that is
 * being settled.
 */
#include "postgres.h"

#include "core/arith.h"
#include "ledger.h"
#include "miscadmin.h"
#include "store/clock.h"

/* How many lapsed items are put in order: ten times the batch, within bounds. */
#define LOOK_AT_LEAST	1000
#define LOOK_AT_MOST	100000
#define LOOK_TIMES		10

/* An item whose lease has lapsed. */
typedef struct Lapsed
{
	ItemPointerData tid;
	TimestampTz unknown_at;
} Lapsed;

/* What may be claimed: a scan of what nobody has, and a list of what has lapsed. */
typedef struct Queue
{
	LLScan	   *scan;
	LLReservationRow fresh;
	bool		more;			/* the scan stands at a row */
	Lapsed	   *lapsed;
	int			count;
	int			next;
} Queue;

static int
by_age(const void *a, const void *b)
{
	const Lapsed *x = a;
	const Lapsed *y = b;

	return x->unknown_at != y->unknown_at ? (x->unknown_at < y->unknown_at ? -1 : 1)
		: ItemPointerCompare((ItemPointer) &x->tid, (ItemPointer) &y->tid);
}

/*
 * find_lapsed lists what has lapsed, the oldest first.  The index has it by the
 * ends of leases, which may differ in length, so it is put in order here, as
 * far as a bounded look goes.
 */
static void
find_lapsed(Queue *queue, TimestampTz now, int limit, Snapshot snapshot)
{
	int			look = Max(LOOK_AT_LEAST, Min(limit, LOOK_AT_MOST / LOOK_TIMES) * LOOK_TIMES);
	LLScan	   *scan = ll_claimable_begin(true, now, snapshot);
	LLReservationRow row = {0};
	int			room = 64;

	row.slot = ll_table_slot(LL_TABLE_RESERVATION);
	queue->lapsed = palloc(sizeof(Lapsed) * room);
	while (queue->count < look && ll_scan_next(scan, row.slot))
	{
		CHECK_FOR_INTERRUPTS();
		ll_reservation_read(&row);
		if (!ll_binding_reaches(row.subject))
			continue;
		if (queue->count == room)
			queue->lapsed = repalloc(queue->lapsed, sizeof(Lapsed) * (room *= 2));
		queue->lapsed[queue->count++] = (Lapsed) {row.slot->tts_tid, row.unknown_at};
	}
	ll_scan_end(scan);
	qsort(queue->lapsed, queue->count, sizeof(Lapsed), by_age);
}

static void
advance(Queue *queue)
{
	do
	{
		CHECK_FOR_INTERRUPTS();
		queue->more = ll_scan_next(queue->scan, queue->fresh.slot);
		if (queue->more)
			ll_reservation_read(&queue->fresh);
	} while (queue->more && !ll_binding_reaches(queue->fresh.subject));
}

/* lock_next locks the oldest item that is left; false: it is somebody else's by now. */
static bool
lock_next(Queue *queue, LLReservationRow *row, Snapshot snapshot)
{
	bool		lapsed = queue->next < queue->count &&
		(!queue->more || queue->lapsed[queue->next].unknown_at <= queue->fresh.unknown_at);

	row->slot->tts_tid = lapsed ? queue->lapsed[queue->next].tid : queue->fresh.slot->tts_tid;
	if (lapsed)
		queue->next++;
	else
		advance(queue);
	return ll_reservation_lock(row, snapshot, LockWaitSkip) == LL_LOCK_TAKEN;
}

/* note keeps what the reconciler needs; the row's slot moves on. */
static void
note(const LLReservationRow *row, LLClaim *claim)
{
	claim->subject = ll_copy_varlena(row->subject);
	claim->id = ll_copy_varlena(row->id);
	claim->route = ll_copy_varlena(row->route);
	claim->operation = ll_copy_varlena(row->operation);
	claim->reserved_units = row->state.reserved_units;
	claim->progress_units = row->state.progress_units;
	claim->hard_limit = ll_policy_get(row->generation)->policy.hard_limit;
	claim->unknown_at = row->unknown_at;
	claim->claimed_until = row->state.claimed_until;
}

/*
 * ll_claim_unknown_usage claims up to `limit` items, the oldest first.  A login
 * that is bound to subjects passes those of others by, before a row is locked (I1).
 */
void
ll_claim_unknown_usage(LLClaims *claims)
{
	Snapshot	snapshot = ll_snapshot_take();
	TimestampTz now = ll_clock_now();
	TimestampTz until = ll_add_capped(now, claims->lease);
	Queue		queue = {0};
	LLReservationRow row = {0};

	find_lapsed(&queue, now, claims->limit, snapshot);
	queue.fresh.slot = ll_table_slot(LL_TABLE_RESERVATION);
	queue.scan = ll_claimable_begin(false, now, snapshot);
	advance(&queue);
	row.slot = ll_table_slot(LL_TABLE_RESERVATION);
	while (claims->count < claims->limit && (queue.more || queue.next < queue.count))
	{
		CHECK_FOR_INTERRUPTS();
		ExecClearTuple(row.slot);
		if (!lock_next(&queue, &row, snapshot) || !ll_claim_unknown(&row.state, now, until))
			continue;
		row.claimed_by = claims->reconciler;
		ll_reservation_update(&row);
		note(&row, &claims->claim[claims->count++]);
	}
	ll_scan_end(queue.scan);
	ll_snapshot_drop(snapshot);
}
