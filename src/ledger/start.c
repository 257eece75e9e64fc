/*
 * start.c
 *	  start_reservation, report_progress and report_usage_unknown: the steps
 *	  that move no balance (D5, D10).
 *
 *	  lock the reservation row, read the clock, decide, bind the operation,
 *	  write the row
 *
 * They lock the reservation row only; the head is read unlocked, for the
 * latest instant it has seen and for what the caller may know of its pair.
 * Start against expiry: whoever locks the row first wins, and the other finds
 * its new state.  Lost reply: the same operation gets the same answer.  Crash
 * before the commit: still RESERVED, and nothing is bound.  Two executors: the
 * second waits for the row and finds another operation bound.
 */
#include "postgres.h"

#include "ledger.h"
#include "store/clock.h"

/*
 * relate tells how the operation of a call relates to what is stored, or about
 * to be stored by this very batch.
 */
static LLOperation
relate(const LLReservationRow *row, Datum operation, bool held)
{
	LLOperationRow bound;
	Snapshot	snapshot;
	bool		found;

	if (row->operation != 0)
		return ll_bytes_equal(row->operation, operation) ? LL_OPERATION_SAME : LL_OPERATION_OTHER;
	if (held)
		return LL_OPERATION_ELSEWHERE;
	snapshot = ll_snapshot_take();
	found = ll_operation_look(&bound, row->subject, operation, snapshot);
	ll_snapshot_drop(snapshot);
	return found ? LL_OPERATION_ELSEWHERE : LL_OPERATION_FREE;
}

static int
by_id(const void *a, const void *b)
{
	const LLStartElement *x = *(LLStartElement *const *) a;
	const LLStartElement *y = *(LLStartElement *const *) b;
	int			order = ll_pair_compare(x->subject, x->id, y->subject, y->id);

	return order != 0 ? order : x->index - y->index;
}

static int
by_operation(const void *a, const void *b)
{
	const LLStartElement *x = *(LLStartElement *const *) a;
	const LLStartElement *y = *(LLStartElement *const *) b;
	int			order = ll_pair_compare(x->subject, x->operation, y->subject, y->operation);

	return order != 0 ? order : x->index - y->index;
}

/*
 * lock_rows finds and locks the rows, in key order.  An id that comes twice
 * shares one row, so that its second element meets what the first one did.
 */
static void
lock_rows(LLStartElement **by_key, int count, LockWaitPolicy policy)
{
	Snapshot	snapshot = ll_snapshot_take();

	for (int i = 0; i < count; i++)
	{
		LLStartElement *e = by_key[i];
		LLLock		lock = LL_LOCK_TAKEN;

		if (i > 0 && ll_pair_compare(by_key[i - 1]->subject, by_key[i - 1]->id,
									 e->subject, e->id) == 0)
		{
			e->row = by_key[i - 1]->row;
			e->passed_by = by_key[i - 1]->passed_by;
			e->faulty = by_key[i - 1]->faulty;
			continue;
		}
		e->row = palloc0(sizeof(LLReservationRow));
		if (!ll_reservation_peek(e->row, e->subject, e->id, snapshot))
			e->row = NULL;
		else if (!ll_state_terminal(e->row->state.state))
		{
			e->faulty = ll_faulty(e->subject, e->row->route);
			lock = e->faulty ? LL_LOCK_BUSY : ll_reservation_lock(e->row, snapshot, policy);
		}
		if (lock == LL_LOCK_GONE)
			e->row = NULL;
		e->passed_by = lock == LL_LOCK_BUSY;
	}
	ll_snapshot_drop(snapshot);
}

/* decide answers one element; a start that is possible is done in memory. */
static void
decide(LLStartElement *e, LLReceipt *receipt)
{
	LLReservationRow *row = e->row;
	LLVerdict	verdict;
	LLPairWork	work;
	TimestampTz now;

	if (row == NULL)
	{
		ll_receipt_answer(receipt, ll_say(LL_UNKNOWN, LL_DIM_RESERVATION), ll_clock_now());
		return;
	}
	if (row->route == 0)
	{
		ll_receipt_stored(receipt, ll_say(LL_REFUSED, LL_DIM_RELEASED), row);
		return;
	}
	ll_faulty_here(row->subject, row->route);
	ll_pair_look(&work, row->subject, row->route);
	now = work.head.pair.seen_at;	/* not before anything the pair has seen (A3) */
	e->before = row->state;
	verdict = ll_start(&row->state, &ll_policy_get(row->generation)->policy,
					   relate(row, e->operation, *e->operation_holder != NULL), now);
	if (verdict.outcome == LL_ACCEPTED && !verdict.replayed)
	{
		row->operation = e->operation;
		row->started_at = now;
		e->moved = true;
		*e->operation_holder = e;
	}
	ll_receipt_answer(receipt, verdict, work.clock);
	ll_receipt_reservation(receipt, row);
	ll_receipt_pair(receipt, &work);
}

/*
 * bind binds the operation of a start.  If another transaction has bound it
 * meanwhile, the start is undone, for all elements that were answered by it; one
 * that was refused because of it would have to be decided anew.  With
 * LockWaitSkip all of them are passed by.
 */
static void
bind(LLStartElement *e, LLStartElement *elements, int count, LockWaitPolicy policy,
	 LLReceipt *receipts)
{
	LLReservationRow *row = e->row;
	ItemPointerData tid;

	ll_faulty_here(row->subject, row->route);
	if (ll_operation_bind(e->subject, e->operation, e->id, row->started_at, policy, &tid))
		return;
	row->state = e->before;
	row->operation = 0;
	row->started_at = LL_NO_TIME;
	e->moved = false;
	for (int i = 0; i < count; i++)
		if (policy == LockWaitSkip)
			elements[i].passed_by |= elements[i].row == row ||
				elements[i].operation_holder == e->operation_holder;
		else if (elements[i].row == row && receipts[i].verdict.dimension == LL_DIM_OPERATION)
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("could not serialize access due to concurrent use of an operation"),
					 errhint("Repeat the transaction with the same ids.")));
		else if (elements[i].row == row && receipts[i].verdict.outcome == LL_ACCEPTED)
			ll_receipt_stored(&receipts[i], ll_say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE), row);
}

/* link_holders gives all elements with one operation one cell. */
static void
link_holders(LLStartElement **by_operation_key, int count)
{
	LLStartElement **cells = palloc0(sizeof(LLStartElement *) * count);

	for (int i = 0; i < count; i++)
		by_operation_key[i]->operation_holder = i > 0 &&
			ll_pair_compare(by_operation_key[i - 1]->subject, by_operation_key[i - 1]->operation,
							by_operation_key[i]->subject, by_operation_key[i]->operation) == 0
			? by_operation_key[i - 1]->operation_holder : &cells[i];
}

/* ll_start_reservations starts a batch (D5). */
void
ll_start_reservations(LLStartElement *elements, int count, LockWaitPolicy policy,
					  LLReceipt *receipts)
{
	LLStartElement **by_key = palloc(sizeof(LLStartElement *) * count);
	LLStartElement **operations = palloc(sizeof(LLStartElement *) * count);

	for (int i = 0; i < count; i++)
	{
		elements[i].index = i;
		by_key[i] = operations[i] = &elements[i];
	}
	qsort(by_key, count, sizeof(LLStartElement *), by_id);
	qsort(operations, count, sizeof(LLStartElement *), by_operation);
	link_holders(operations, count);
	lock_rows(by_key, count, policy);
	for (int i = 0; i < count; i++)
		if (!elements[i].passed_by)
			decide(&elements[i], &receipts[i]);
	for (int i = 0; i < count; i++)
		if (operations[i]->moved)
			bind(operations[i], elements, count, policy, receipts);
	for (int i = 0; i < count; i++)
		if (by_key[i]->moved)
		{
			ll_faulty_here(by_key[i]->subject, by_key[i]->row->route);
			ll_reservation_update(by_key[i]->row);
		}
}

/* How an execution reports: what it has used so far, or that nobody knows. */
typedef struct Report
{
	Datum		operation;
	bool		unknown;
	LLUnits		units;
} Report;

/* report decides on a locked row and writes it. */
static LLVerdict
report(LLReservationRow *row, const Report *said, TimestampTz now)
{
	LLOperation operation = relate(row, said->operation, false);
	LLVerdict	verdict = said->unknown
		? ll_report_unknown(&row->state, operation, true, now)
		: ll_report_progress(&row->state, operation, said->units);

	if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
		return verdict;
	if (said->unknown)
		row->unknown_at = now;
	ll_reservation_update(row);
	return verdict;
}

static void
lock_and_report(Datum subject, Datum id, const Report *said, LLReceipt *receipt)
{
	LLStartElement element = {0};
	LLStartElement *order = &element;
	LLReservationRow *row;
	LLVerdict	verdict;
	LLPairWork	work;

	element.subject = subject;
	element.id = id;
	lock_rows(&order, 1, LockWaitBlock);
	row = element.row;
	if (row == NULL)
	{
		ll_receipt_answer(receipt, ll_say(LL_UNKNOWN, LL_DIM_RESERVATION), ll_clock_now());
		return;
	}
	if (row->route == 0)
	{
		ll_receipt_stored(receipt, ll_say(LL_REFUSED, LL_DIM_NOT_STARTED), row);
		return;
	}
	ll_pair_look(&work, row->subject, row->route);
	verdict = report(row, said, work.head.pair.seen_at);
	ll_receipt_answer(receipt, verdict, work.clock);
	ll_receipt_reservation(receipt, row);
	ll_receipt_pair(receipt, &work);
}

/* ll_report_usage_unknown: the caller does not know what the execution used (D10). */
void
ll_report_usage_unknown(Datum subject, Datum id, Datum operation, LLReceipt *receipt)
{
	Report		said = {operation, true, 0};

	lock_and_report(subject, id, &said, receipt);
}

/* ll_report_usage_progress: what the execution has used so far (D10). */
void
ll_report_usage_progress(Datum subject, Datum id, Datum operation, LLUnits units,
						 LLReceipt *receipt)
{
	Report		said = {operation, false, units};

	lock_and_report(subject, id, &said, receipt);
}
