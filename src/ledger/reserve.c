/*
 * reserve.c
 *	  reserve_capacity: the sole point of admission (D2, D3).
 *
 *	  for each pair, in key order:  lock the head, read the clock, roll,
 *	                                decide its elements one after the other
 *	  bind operations, in key order
 *	  insert reservations, in key order
 *	  write each budget once
 *
 * Lost reply: the same id finds the row and gets its receipt.  Crash before
 * the commit: nothing happened.  Same id at once on one pair: the second waits
 * for the head and then finds the row.  Same id at once on two pairs: the
 * insertion of the second waits for the first, finds its key, and the units it
 * had taken go back in memory.  Clock back: seen_at decides.  Publish
 * meanwhile: read after the lock, or this call came first.  Client gone while
 * waiting: the lock is never taken.
 */
#include "postgres.h"

#include "ledger.h"
#include "store/clock.h"
#include "errors.h"

/* ---- what is stored under the id ---------------------------------------- */

/*
 * same_request tells whether the stored row stands for this request.  A fence
 * knows the digest alone (D11).
 */
static bool
same_request(const LLReserveElement *e, const LLReservationRow *row)
{
	return ll_bytes_equal(e->digest, row->digest) &&
		(row->route == 0 ||
		 (e->units == row->asked_units && ll_text_compare(e->route, row->route) == 0));
}

/* answer_stored: the receipt that stands, or a conflict that shows nothing of it (D2). */
static void
answer_stored(LLReserveElement *e, const LLReservationRow *row, LLReceipt *receipt)
{
	if (same_request(e, row))
	{
		ll_receipt_answer(receipt, ll_replayed(), e->work->clock);
		ll_receipt_reservation(receipt, row);
		ll_receipt_pair(receipt, e->work);
		return;
	}
	ll_receipt_answer(receipt, ll_say(LL_CONFLICT, LL_DIM_REQUEST), e->work->clock);
	receipt->state = ll_state_name(row->state.state);
}

static void
answer_refused(LLReserveElement *e, LLVerdict verdict, LLReceipt *receipt)
{
	ll_receipt_answer(receipt, verdict, e->work->clock);
	receipt->state = "REQUESTED";
	ll_receipt_pair(receipt, e->work);
}

/* ---- deciding ----------------------------------------------------------- */

static LLRequest
request_of(const LLReserveElement *e)
{
	const LLPolicyRow *ruling = e->work->reigns.ruling;
	LLRequest	request;

	request.units = e->units;
	request.deadline = e->deadline == LL_NO_TIME ? LL_TIME_MAX : e->deadline;
	request.region_matches = ll_policy_in_region(ruling, e->region);
	request.estimator_accepted = ll_policy_accepts(ruling, e->estimator);
	request.draining = ruling->draining;
	request.start = e->start_operation != 0;
	return request;
}

/* due holds may stand in the way of these */
static bool
holds_matter(const LLVerdict *verdict)
{
	return verdict->dimension == LL_DIM_AVAILABLE || verdict->dimension == LL_DIM_DEBT ||
		(verdict->dimension == LL_DIM_LARGEST_OUTSTANDING && verdict->wait != LL_WAIT_NEVER);
}

/* admit decides, and ends due holds of the pair before it lets a refusal stand (D14). */
static LLVerdict
admit(LLReserveElement *e)
{
	LLPairWork *work = e->work;
	LLRequest	request = request_of(e);
	LLVerdict	verdict;

	do
	{
		verdict = ll_admit(&work->head.pair, ll_pair_policy(work), &request,
						   work->head.pair.seen_at, &e->row.state);
	} while (verdict.outcome == LL_REFUSED && holds_matter(&verdict) && work->locked &&
			 ll_end_due_holds(work));
	if (verdict.overflow)
		ll_overflow("reserved");
	return verdict;
}

/* take makes the row of an admitted element. */
static void
take(LLReserveElement *e)
{
	LLPairWork *work = e->work;
	LLReservationRow *row = &e->row;

	row->subject = e->subject;
	row->id = e->id;
	row->route = e->route;
	row->generation = work->head.pair.head.generation;
	row->epoch = work->head.pair.head.epoch;
	row->asked_units = e->units;
	row->digest = e->digest;
	row->operation = e->start_operation;
	row->priority = e->has_priority ? e->priority : work->reigns.ruling->priority;
	row->reserved_at = work->head.pair.seen_at;
	row->started_at = e->start_operation ? work->head.pair.seen_at : LL_NO_TIME;
	row->unknown_at = LL_NO_TIME;
	row->ended_at = LL_NO_TIME;
	row->excess_epoch = LL_NO_TIME;
	e->admitted = true;
	work->changed = true;
}

/* untake undoes it, exactly, when the row turned out to be impossible. */
static void
untake(LLReserveElement *e)
{
	e->work->head.pair.head.available += e->row.state.reserved_units;
	e->work->head.pair.head.reserved -= e->row.state.reserved_units;
	e->admitted = false;
}

/* the row of an element of this very batch that was admitted under the same id */
static LLReservationRow *
admitted_twin(LLReserveElement *e)
{
	for (LLReserveElement *twin = e->twin; twin != NULL; twin = twin->twin)
		if (twin->admitted)
			return &twin->row;
	return NULL;
}

/* decide_element answers one element on a pair that is present. */
static void
decide_element(LLReserveElement *e, Snapshot snapshot, LLReceipt *receipt)
{
	LLReservationRow *twin = admitted_twin(e);
	LLReservationRow stored;
	Datum		bound;
	LLVerdict	verdict;

	if (twin != NULL)
	{
		answer_stored(e, twin, receipt);
		return;
	}
	if (ll_reservation_look(&stored, e->subject, e->id, snapshot))
	{
		answer_stored(e, &stored, receipt);
		return;
	}
	if (e->work->reigns.ruling == NULL)
	{
		verdict = ll_say(LL_REFUSED, LL_DIM_NO_POLICY);
		verdict.wait = LL_WAIT_OPERATOR;
		answer_refused(e, verdict, receipt);
		return;
	}
	if (e->start_operation != 0 &&
		ll_operation_peek(e->subject, e->start_operation, &bound, snapshot))
	{
		answer_refused(e, ll_say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE), receipt);
		return;
	}
	verdict = admit(e);
	if (verdict.outcome != LL_ACCEPTED)
	{
		answer_refused(e, verdict, receipt);
		return;
	}
	take(e);
	ll_receipt_answer(receipt, verdict, e->work->clock);
	ll_receipt_reservation(receipt, &e->row);
	ll_receipt_pair(receipt, e->work);
}

/* ---- the refusal that does not wait (D3) -------------------------------- */

/* a hold of the pair is due: the next reserve that needs its units ends it */
static bool
hold_is_due(const LLPairWork *work, Snapshot snapshot)
{
	LLScan	   *scan = ll_pair_due_begin(&work->head, work->head.pair.seen_at, snapshot);
	bool		due = ll_scan_next(scan, ll_table_scratch(LL_TABLE_RESERVATION));

	ll_scan_end(scan);
	return due;
}

/*
 * refuse_plainly answers without the lock, if the answer is a refusal that no
 * event could change: what is due was counted, and nothing is there to be
 * ended, opened or repaid.  The id goes first, and an original in flight is
 * waited for, not refused.
 */
static bool
refuse_plainly(LLReserveElement *e, Snapshot snapshot, LLReceipt *receipt)
{
	LLPairWork *work = e->work;
	LLReservationRow stored;
	LLRequest	request;
	LLVerdict	verdict;

	if (work->reigns.ruling == NULL || ll_pair_rolled(work))
		return false;
	request = request_of(e);
	verdict = ll_admission_judge(&work->head.pair, ll_pair_policy(work), &request,
								 work->head.pair.seen_at);
	if (verdict.outcome != LL_REFUSED ||
		(holds_matter(&verdict) && hold_is_due(work, snapshot)))
		return false;
	if (ll_reservation_look(&stored, e->subject, e->id, snapshot))
	{
		answer_stored(e, &stored, receipt);
		return true;
	}
	if (ll_reservation_in_flight(e->subject, e->id))
		return false;
	answer_refused(e, verdict, receipt);
	return true;
}

/* ---- one pair ----------------------------------------------------------- */

/*
 * decide_pair locks the pair of some elements and decides them in their order.
 * A pair without a head is decided in memory first: only an admission makes
 * the row, and if another session makes it at the same instant, all is decided
 * again under its lock.
 */
static void
decide_pair(LLReserveElement **elements, int count, bool alone, LLReceipt *receipts)
{
	LLPairWork *work = palloc(sizeof(LLPairWork));
	Snapshot	snapshot;
	bool		admitted;

	for (;;)
	{
		ll_pair_init(work, elements[0]->subject, elements[0]->route);
		for (int i = 0; i < count; i++)
		{
			elements[i]->work = work;
			elements[i]->admitted = false;
		}

		snapshot = ll_snapshot_take();
		if (ll_pair_find(work, snapshot))
		{
			if (alone)
			{
				LLHead		found = work->head;

				ll_pair_present(work);
				if (refuse_plainly(elements[0], snapshot, &receipts[elements[0]->index]))
					break;
				ll_pair_init(work, found.subject, found.route);
				work->head = found;
			}
			if (ll_pair_lock(work, snapshot, LockWaitBlock) == LL_LOCK_GONE)
			{
				ll_snapshot_drop(snapshot);
				continue;
			}
			if (work->head.moved)
			{
				/* who was before us may have used our ids */
				ll_snapshot_drop(snapshot);
				snapshot = ll_snapshot_take();
			}
		}
		ll_pair_present(work);

		admitted = false;
		for (int i = 0; i < count; i++)
		{
			decide_element(elements[i], snapshot, &receipts[elements[i]->index]);
			admitted |= elements[i]->admitted;
		}
		if (work->head.exists || !admitted)
			break;
		if (ll_pair_create(work))
		{
			ll_snapshot_drop(snapshot);
			snapshot = ll_snapshot_take();
			if (!ll_pair_find(work, snapshot) ||
				ll_pair_lock(work, snapshot, LockWaitBlock) != LL_LOCK_TAKEN)
				ll_broken("B3", "a new head vanished");
			break;
		}
		ll_snapshot_drop(snapshot);
	}
	ll_snapshot_drop(snapshot);
}

/* ---- orders ------------------------------------------------------------- */

static int
by_pair(const void *a, const void *b)
{
	const LLReserveElement *x = *(LLReserveElement *const *) a;
	const LLReserveElement *y = *(LLReserveElement *const *) b;
	int			order = ll_pair_compare(x->subject, x->route, y->subject, y->route);

	return order != 0 ? order : x->index - y->index;
}

static int
by_id(const void *a, const void *b)
{
	const LLReserveElement *x = *(LLReserveElement *const *) a;
	const LLReserveElement *y = *(LLReserveElement *const *) b;
	int			order = ll_pair_compare(x->subject, x->id, y->subject, y->id);

	return order != 0 ? order : x->index - y->index;
}

static int
by_operation(const void *a, const void *b)
{
	const LLReserveElement *x = *(LLReserveElement *const *) a;
	const LLReserveElement *y = *(LLReserveElement *const *) b;
	int			order = ll_pair_compare(x->subject, x->start_operation,
										y->subject, y->start_operation);

	return order != 0 ? order : x->index - y->index;
}

/* link_twins chains the elements of a batch that carry the same id. */
static void
link_twins(LLReserveElement **by_key, int count)
{
	for (int i = 1; i < count; i++)
		if (ll_pair_compare(by_key[i - 1]->subject, by_key[i - 1]->id,
							by_key[i]->subject, by_key[i]->id) == 0)
			by_key[i]->twin = by_key[i - 1];
}

/* ---- writing ------------------------------------------------------------ */

/*
 * bind_operations binds the operations of elements that start at once.  What
 * is bound by somebody else meanwhile is a conflict, and takes nothing.
 */
static void
bind_operations(LLReserveElement **elements, int count, LLReceipt *receipts)
{
	LLReserveElement **starting = palloc(sizeof(LLReserveElement *) * count);
	int			n = 0;

	for (int i = 0; i < count; i++)
		if (elements[i]->admitted && elements[i]->start_operation != 0)
			starting[n++] = elements[i];
	qsort(starting, n, sizeof(LLReserveElement *), by_operation);
	for (int i = 0; i < n; i++)
	{
		LLReserveElement *e = starting[i];

		if (ll_operation_insert(e->subject, e->start_operation, e->id,
								e->row.started_at, &e->operation_tid))
			continue;
		untake(e);
		answer_refused(e, ll_say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE),
					   &receipts[e->index]);
	}
}

/*
 * insert_row inserts the row of an admitted element.  If another transaction
 * has used the id on another pair meanwhile, the element took nothing: its
 * units and its operation go back, and it is answered by what is stored.
 */
static void
insert_row(LLReserveElement *e, LLReceipt *receipt)
{
	LLReservationRow stored;
	Snapshot	snapshot;

	if (ll_reservation_insert(&e->row))
		return;
	untake(e);
	if (e->start_operation != 0)
		ll_operation_forget(&e->operation_tid);
	snapshot = ll_snapshot_take();
	if (!ll_reservation_look(&stored, e->subject, e->id, snapshot))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to a concurrent use of the reservation id"),
				 errhint("Repeat the transaction with the same id.")));
	ll_snapshot_drop(snapshot);
	answer_stored(e, &stored, receipt);
}

/*
 * ll_reserve decides a batch.  No admitted element is reported before its row
 * is written; elements that were refused because of one that later turned out
 * to be a conflict stay refused, which errs on the safe side.
 */
void
ll_reserve(LLReserveElement *elements, int count, LLReceipt *receipts)
{
	LLReserveElement **order = palloc(sizeof(LLReserveElement *) * count);
	int			first;

	for (int i = 0; i < count; i++)
	{
		elements[i].index = i;
		order[i] = &elements[i];
	}
	if (count > 1)
	{
		qsort(order, count, sizeof(LLReserveElement *), by_id);
		link_twins(order, count);
		qsort(order, count, sizeof(LLReserveElement *), by_pair);
	}
	for (first = 0; first < count;)
	{
		int			next = first + 1;

		while (next < count && ll_pair_compare(order[first]->subject, order[first]->route,
											   order[next]->subject, order[next]->route) == 0)
			next++;
		decide_pair(&order[first], next - first, count == 1, receipts);
		first = next;
	}

	bind_operations(order, count, receipts);
	if (count > 1)
		qsort(order, count, sizeof(LLReserveElement *), by_id);
	for (int i = 0; i < count; i++)
		if (order[i]->admitted)
			insert_row(order[i], &receipts[order[i]->index]);

	if (count > 1)
		qsort(order, count, sizeof(LLReserveElement *), by_pair);
	for (int i = 0; i < count; i++)
		if ((i == 0 || order[i]->work != order[i - 1]->work) && order[i]->work->locked)
			ll_pair_write(order[i]->work);
}
