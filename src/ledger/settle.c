/*
 * settle.c
 *	  settle_usage and release_reservation: units come back exactly once (D6-D9).
 *
 *	  read the reservations, to learn their pairs
 *	  lock the heads in key order, read the clock, roll
 *	  lock the reservation rows in key order
 *	  decide one after the other, write rows, write each budget once
 *
 * A reservation that has ended never changes again, so it is answered as read,
 * without a lock.  Lost reply: the same figures get the same receipt.  Crash
 * before the commit: still STARTED, units still held; after it: settled, and a
 * retry is a replay.  Settle against settle, release or expiry: one locks the
 * row first, the other finds what became of it.  New epoch or generation
 * meanwhile: the closed budget keeps what it spent, what comes back is minted
 * into the head (C5).  A figure that an operator attests is recorded with who
 * did it, in the same transaction (D10).
 */
#include "postgres.h"

#include "ledger.h"
#include "store/clock.h"
#include "errors.h"
#include "utils/builtins.h"

static int
by_id(const void *a, const void *b)
{
	const LLSettleElement *x = *(LLSettleElement *const *) a;
	const LLSettleElement *y = *(LLSettleElement *const *) b;
	int			order = ll_pair_compare(x->subject, x->id, y->subject, y->id);

	return order != 0 ? order : x->index - y->index;
}

/* elements whose reservation is open, by pair; the others last */
static int
by_pair(const void *a, const void *b)
{
	const LLSettleElement *x = *(LLSettleElement *const *) a;
	const LLSettleElement *y = *(LLSettleElement *const *) b;
	bool		open_x = x->row != NULL && !ll_state_terminal(x->row->state.state);
	bool		open_y = y->row != NULL && !ll_state_terminal(y->row->state.state);
	int			order = 0;

	if (open_x != open_y)
		return open_x ? -1 : 1;
	if (open_x)
		order = ll_pair_compare(x->subject, x->row->route, y->subject, y->row->route);
	return order != 0 ? order : x->index - y->index;
}

/* find_rows reads the reservations; an id that comes twice shares one row. */
static void
find_rows(LLSettleElement **by_key, int count, Snapshot snapshot)
{
	for (int i = 0; i < count; i++)
	{
		LLSettleElement *e = by_key[i];

		if (i > 0 && ll_pair_compare(by_key[i - 1]->subject, by_key[i - 1]->id,
									 e->subject, e->id) == 0)
		{
			e->row = by_key[i - 1]->row;
			continue;
		}
		e->row = palloc0(sizeof(LLReservationRow));
		if (!ll_reservation_peek(e->row, e->subject, e->id, snapshot))
			e->row = NULL;
	}
}

/* lock_pairs locks the heads of the open reservations, in key order (F1). */
static void
lock_pairs(LLSettleElement **by_pair_key, int count, LockWaitPolicy policy)
{
	for (int i = 0; i < count; i++)
	{
		LLSettleElement *e = by_pair_key[i];
		LLLock		lock;

		if (e->row == NULL || ll_state_terminal(e->row->state.state))
			break;
		if (i > 0 && ll_pair_compare(by_pair_key[i - 1]->subject, by_pair_key[i - 1]->row->route,
									 e->subject, e->row->route) == 0)
		{
			e->work = by_pair_key[i - 1]->work;
			e->passed_by = by_pair_key[i - 1]->passed_by;
			e->faulty = by_pair_key[i - 1]->faulty;
			continue;
		}
		e->work = palloc(sizeof(LLPairWork));
		/* the row's slot is about to be locked: keep the route apart from it */
		ll_pair_init(e->work, e->subject, ll_copy_varlena(e->row->route));
		e->faulty = ll_faulty(e->subject, e->work->head.route);
		lock = e->faulty ? LL_LOCK_BUSY : ll_pair_find_and_lock(e->work, policy);
		if (lock == LL_LOCK_GONE)
			ll_broken("B3", "the pair of a reservation has no head");
		e->passed_by = lock == LL_LOCK_BUSY;
		if (!e->passed_by)
			ll_pair_present(e->work);
	}
}

/*
 * lock_rows locks the reservations of the locked pairs, in key order.  One that
 * another call has ended while this one waited for its pair may even have been
 * purged since, if its retention is shorter than that wait (D15).
 */
static void
lock_rows(LLSettleElement **by_key, int count, LockWaitPolicy policy, Snapshot snapshot)
{
	LLReservationRow *locked = NULL;
	LLLock		lock = LL_LOCK_TAKEN;

	for (int i = 0; i < count; i++)
	{
		LLSettleElement *e = by_key[i];

		if (e->work == NULL || e->passed_by)
			continue;
		if (e->row != locked)
			lock = ll_reservation_lock(e->row, snapshot, policy);
		locked = e->row;
		e->passed_by = lock == LL_LOCK_BUSY;
		if (lock == LL_LOCK_GONE)
			e->row = NULL;
	}
}

/* settle decides one settlement on its row and budgets. */
static LLVerdict
settle(LLSettleElement *e, LLPairWork *work, LLClosed *own)
{
	LLReservationRow *row = e->row;
	LLSettlement settlement;
	LLVerdict	verdict;
	const LLPolicy *policy = &ll_policy_get(row->generation)->policy;
	LLPair		unused = {0};

	settlement.actual = e->actual;
	settlement.operation = row->operation == 0 ? LL_OPERATION_FREE
		: ll_bytes_equal(row->operation, e->operation) ? LL_OPERATION_SAME : LL_OPERATION_OTHER;
	settlement.same_receipt = e->receipt_digest == 0 || row->receipt_digest == 0
		? e->receipt_digest == row->receipt_digest
		: ll_bytes_equal(e->receipt_digest, row->receipt_digest);
	settlement.attested = e->attested;
	verdict = ll_settle(work != NULL ? &work->head.pair : &unused,
						own != NULL ? &own->budget : NULL, &row->state,
						policy, work != NULL ? ll_pair_policy(work) : policy, &settlement);
	if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
		return verdict;

	if (work->head.pair.frozen && work->breach == NULL)
		work->breach = e->actual > policy->hard_limit
			? "an execution used more than its hard limit"
			: "the debt exceeded the maximum overdraft";
	if (e->attested)
		ll_action_insert(work->head.pair.seen_at, "attest_usage", row->subject, row->route,
						 CStringGetTextDatum(psprintf("%lld units for reservation %s", (long long) e->actual,
													  TextDatumGetCString(row->id))));
	row->receipt_digest = e->receipt_digest;
	row->receipt_source = e->source;
	if (row->state.excess_units > 0)
	{
		row->excess_generation = work->head.pair.head.generation;
		row->excess_epoch = work->head.pair.head.epoch;
	}
	return verdict;
}

/* release decides one release. */
static LLVerdict
release(LLSettleElement *e, LLPairWork *work, LLClosed *own)
{
	LLPair		unused = {0};

	return ll_release(work != NULL ? &work->head.pair : &unused,
					  own != NULL ? &own->budget : NULL, &e->row->state,
					  work != NULL ? ll_pair_policy(work) : NULL);
}

/* decide answers one element. */
static void
decide(LLSettleElement *e, LLReceipt *receipt)
{
	LLPairWork *work = e->work;
	LLClosed   *own = NULL;
	LLVerdict	verdict;

	if (e->row == NULL)
	{
		ll_receipt_answer(receipt, ll_say(LL_UNKNOWN, LL_DIM_RESERVATION), ll_clock_now());
		return;
	}
	if (e->row->route == 0)
		verdict = e->release ? ll_replayed() : ll_say(LL_REFUSED, LL_DIM_NOT_STARTED);
	else
	{
		if (work != NULL)
		{
			ll_faulty_here(e->subject, work->head.route);
			own = ll_pair_budget(work, e->row->generation, e->row->epoch);
		}
		verdict = e->release ? release(e, work, own) : settle(e, work, own);
	}
	if (verdict.overflow)
		ll_overflow("the pair's budget");
	if (verdict.outcome == LL_ACCEPTED && !verdict.replayed)
	{
		e->row->ended_at = work->head.pair.seen_at;
		e->moved = true;
		work->changed = true;
		ll_shadow_settle(work, e->row, e->release ? 0 : e->actual);
		if (own != NULL)
			own->dirty = true;
	}
	if (work == NULL)
	{
		ll_receipt_stored(receipt, verdict, e->row);
		return;
	}
	ll_receipt_answer(receipt, verdict, work->clock);
	ll_receipt_reservation(receipt, e->row);
	ll_receipt_pair(receipt, work);
}

/* ll_settle_or_release ends a batch of reservations. */
void
ll_settle_or_release(LLSettleElement *elements, int count, LockWaitPolicy policy,
					 LLReceipt *receipts)
{
	LLSettleElement **by_key = palloc(sizeof(LLSettleElement *) * count);
	LLSettleElement **pairs = palloc(sizeof(LLSettleElement *) * count);
	Snapshot	snapshot = ll_snapshot_take();

	for (int i = 0; i < count; i++)
	{
		elements[i].index = i;
		by_key[i] = pairs[i] = &elements[i];
	}
	qsort(by_key, count, sizeof(LLSettleElement *), by_id);
	find_rows(by_key, count, snapshot);
	qsort(pairs, count, sizeof(LLSettleElement *), by_pair);
	lock_pairs(pairs, count, policy);
	lock_rows(by_key, count, policy, snapshot);
	ll_snapshot_drop(snapshot);

	for (int i = 0; i < count; i++)
		if (!elements[i].passed_by)
			decide(&elements[i], &receipts[i]);

	for (int i = 0; i < count; i++)
		if (by_key[i]->moved)
		{
			ll_faulty_here(by_key[i]->subject, by_key[i]->work->head.route);
			ll_reservation_update(by_key[i]->row);
		}
	for (int i = 0; i < count; i++)
		if (pairs[i]->work != NULL && (i == 0 || pairs[i]->work != pairs[i - 1]->work))
		{
			ll_faulty_here(pairs[i]->subject, pairs[i]->work->head.route);
			ll_pair_write(pairs[i]->work);
		}
}
