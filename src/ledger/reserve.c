/*
 * reserve.c
 *	  reserve_capacity: the sole point of admission (D2, D3).
 *
 *	  lock the heads, in key order
 *	  for each pair: read the clock, roll, decide its elements one by one
 *	  bind operations, in key order
 *	  insert reservations, in key order
 *	  write each budget once
 *
 * Lost reply: the same id finds the row and gets its receipt.  Crash before
 * the commit: nothing happened.  Same id at once on one pair: the second waits
 * for the head and then finds the row.  Same id at once on two pairs: the
 * insertion of the second waits for the first, finds its key, and the units it
 * had taken go back in memory.  Clock back: seen_at decides.  Publish
 * meanwhile: read after the lock, or this call came first.
 */
#include "postgres.h"

#include "errors.h"
#include "ledger.h"
#include "miscadmin.h"
#include "store/clock.h"

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
		e->over = row->state.state == LL_RELEASED || row->state.state == LL_EXPIRING ||
			row->state.state == LL_EXPIRED;
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

/* request_of puts an element's question to a generation: the ruling one, or a shadow. */
static LLRequest
request_of(const LLReserveElement *e, const LLPolicyRow *ruling)
{
	LLRequest	request;

	request.units = e->units;
	request.deadline = e->deadline == LL_NO_TIME ? LL_TIME_MAX : e->deadline;
	request.region_matches = ll_policy_in_region(ruling, e->region);
	request.estimator_accepted = ll_policy_accepts(ruling, e->estimator);
	request.draining = ruling->draining;
	request.route_frozen = e->work->reigns.frozen_reason != 0;
	request.quarantined = ll_recovery_stops_admission();
	request.start = e->start_operation != 0;
	return request;
}

/* renew replaces a snapshot by one that shows what this call has written. */
static void
renew(Snapshot *snapshot)
{
	ll_snapshot_drop(*snapshot);
	*snapshot = ll_snapshot_take();
}

/*
 * admit decides, and ends due holds of the pair before it lets a refusal stand
 * (D14).  Every head of the batch is locked by then, so what is locked here
 * waits for nobody.
 */
static LLVerdict
admit(LLReserveElement *e, Snapshot *snapshot)
{
	LLPairWork *work = e->work;
	LLRequest	request = request_of(e, work->reigns.ruling);
	LLVerdict	verdict;

	for (;;)
	{
		verdict = ll_admit(&work->head.pair, ll_pair_policy(work), &request,
						   work->head.pair.seen_at, &e->row.state);
		if (verdict.overflow)
			ll_overflow("reserved");
		if (verdict.outcome != LL_REFUSED || !ll_holds_matter(&verdict) ||
			!work->locked || work->no_hold_due)
			return verdict;
		if (ll_end_due_holds(work))
			renew(snapshot);
		else
			work->no_hold_due = true;
	}
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
	*e->id_holder = e;
	if (e->start_operation != 0)
		*e->operation_holder = e;
	work->taken++;
}

/*
 * untake gives the units back, as a release would, when the row turned out to
 * be impossible; what a shadow made of it goes back as well (B7).
 */
static void
untake(LLReserveElement *e)
{
	LLReservation hold = e->row.state;

	hold.state = LL_RESERVED;
	if (ll_release(&e->work->head.pair, NULL, &hold, ll_pair_policy(e->work)).overflow)
		ll_overflow("available");
	e->admitted = false;
	*e->id_holder = NULL;
	if (e->start_operation != 0)
		*e->operation_holder = NULL;
	ll_shadow_unjudge(e->work, &e->judgement, e->units);
	e->work->taken--;
	e->work->rewrite |= e->work->created;
}

/*
 * answer_uncovered answers where no policy is in force.  With a shadow the
 * caller's own limiter decides, unless an operator has stopped it all (B7, D8).
 */
static void
answer_uncovered(LLReserveElement *e, LLReceipt *receipt)
{
	const LLPairWork *work = e->work;
	LLVerdict	verdict = ll_say(LL_REFUSED, LL_DIM_NO_POLICY);

	verdict.wait = LL_WAIT_OPERATOR;
	if (work->reigns.shadow == NULL)
		answer_refused(e, verdict, receipt);
	else if (work->reigns.frozen_reason != 0 || work->head.pair.frozen)
	{
		verdict.dimension = LL_DIM_FROZEN;
		answer_refused(e, verdict, receipt);
	}
	else
	{
		answer_refused(e, ll_say(LL_UNENFORCED, LL_DIM_SHADOW), receipt);
		receipt->generation = work->reigns.shadow->generation;
	}
}

/* decide_element answers one element on a pair that is present. */
static void
decide_element(LLReserveElement *e, Snapshot *snapshot, LLReceipt *receipt)
{
	LLReservationRow stored;
	LLOperationRow bound;
	LLVerdict	verdict;

	if (*e->id_holder != NULL)
	{
		/* answered when that one is written; the pair is as it is now */
		e->echo_of = *e->id_holder;
		ll_receipt_answer(receipt, ll_replayed(), e->work->clock);
		ll_receipt_pair(receipt, e->work);
		return;
	}
	if (!e->new_id && ll_reservation_look(&stored, e->subject, e->id, *snapshot))
	{
		answer_stored(e, &stored, receipt);
		return;
	}
	if (!ll_policy_covers(&e->work->reigns))
	{
		answer_uncovered(e, receipt);
		return;
	}
	if (e->start_operation != 0 &&
		(*e->operation_holder != NULL ||
		 ll_operation_look(&bound, e->subject, e->start_operation, *snapshot)))
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
	ll_receipt_answer(receipt, verdict, e->work->clock);
	ll_receipt_reservation(receipt, &e->row);
	ll_receipt_pair(receipt, e->work);
}

/* decide_pair answers the elements of one pair, in their order. */
static void
decide_pair(LLReserveElement **elements, int count, Snapshot *snapshot, LLReceipt *receipts)
{
	ll_faulty_here(elements[0]->subject, elements[0]->route);
	ll_pair_present(elements[0]->work);
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		decide_element(elements[i], snapshot, &receipts[elements[i]->index]);
	}
}

/* ---- the refusal that does not wait (D3) -------------------------------- */

/* a hold of the pair is due: the next reserve that needs its units ends it */
static bool
hold_is_due(const LLPairWork *work, Snapshot snapshot)
{
	LLScan	   *scan = ll_pair_due_begin(&work->head, 0, work->head.pair.seen_at, snapshot);
	bool		due = ll_scan_next(scan, ll_table_scratch(LL_TABLE_RESERVATION));

	ll_scan_end(scan);
	return due;
}

/*
 * refuse_plainly answers without the lock, if the answer is a refusal that no
 * event could change: what is due was counted, and nothing is there to be
 * ended, opened or repaid.  The id goes first, and an original that may be in
 * flight is waited for, not refused.  A shadow is asked under the lock, so a
 * pair that has one is refused here only if the lock is busy, with its shadow
 * passed by (B7).
 */
static bool
refuse_plainly(LLReserveElement *e, Snapshot snapshot, bool busy, LLReceipt *receipt)
{
	LLPairWork *work = e->work;
	LLReservationRow stored;
	LLRequest	request;
	LLVerdict	verdict;

	ll_pair_present(work);
	if (!ll_policy_covers(&work->reigns) || ll_pair_rolled(work) ||
		(work->reigns.shadow != NULL && !busy))
		return false;
	request = request_of(e, work->reigns.ruling);
	verdict = ll_admission_judge(&work->head.pair, ll_pair_policy(work), &request,
								 work->head.pair.seen_at);
	if (verdict.outcome != LL_REFUSED ||
		(ll_holds_matter(&verdict) && hold_is_due(work, snapshot)))
		return false;
	if (ll_reservation_look(&stored, e->subject, e->id, snapshot))
		answer_stored(e, &stored, receipt);
	else if (ll_reservation_exists(e->subject, e->id))
		return false;
	else
		answer_refused(e, verdict, receipt);
	work->reigns.shadow = NULL;
	return true;
}

/*
 * replay_plainly answers a repeated request by its committed row, so that it
 * does not wait for a lock that it needs nothing from (F5).
 */
static bool
replay_plainly(LLReserveElement *e, Snapshot snapshot, LLReceipt *receipt)
{
	LLReservationRow stored;
	LLPairWork	look = *e->work;
	LLPairWork *work = e->work;

	if (!ll_reservation_look(&stored, e->subject, e->id, snapshot))
		return false;
	e->work = &look;
	ll_pair_present(&look);
	answer_stored(e, &stored, receipt);
	e->work = work;
	return true;
}

/* ---- one pair ----------------------------------------------------------- */

/* begin_pair gives the elements of one pair their common work, with nothing done. */
static void
begin_pair(LLPairWork *work, LLReserveElement **elements, int count)
{
	ll_pair_init(work, elements[0]->subject, elements[0]->route);
	for (int i = 0; i < count; i++)
	{
		if (elements[i]->admitted && elements[i]->work == work)
		{
			*elements[i]->id_holder = NULL;
			if (elements[i]->start_operation != 0)
				*elements[i]->operation_holder = NULL;
		}
		elements[i]->work = work;
		elements[i]->passed_by = false;
		elements[i]->faulty = false;
		elements[i]->admitted = false;
		elements[i]->over = false;
		elements[i]->echo_of = NULL;
		elements[i]->judgement = (LLJudgement) {0};
	}
}

/*
 * pass_by leaves a pair that is locked, is being made, or made a group fail, to
 * the callers of its elements.
 */
static void
pass_by(LLPairWork *work, LLReserveElement **elements, int count, bool faulty)
{
	begin_pair(work, elements, count);
	for (int i = 0; i < count; i++)
	{
		elements[i]->passed_by = true;
		elements[i]->faulty = faulty;
	}
	work->decided = true;
}

/*
 * lock_pair locks the pair of some elements.  One that has no head yet is
 * decided in memory: only an admission makes the row, and if another session
 * makes it at the same instant, its row is locked instead.  A single element
 * may get its refusal here, without the lock.
 */
static void
lock_pair(LLReserveElement **elements, int count, bool alone, LockWaitPolicy policy,
		  LLReceipt *receipts)
{
	LLPairWork *work = palloc(sizeof(LLPairWork));

	if (ll_faulty(elements[0]->subject, elements[0]->route))
	{
		pass_by(work, elements, count, true);
		return;
	}
	for (;;)
	{
		Snapshot	snapshot = ll_snapshot_take();

		CHECK_FOR_INTERRUPTS();
		begin_pair(work, elements, count);
		if (ll_pair_find(work, snapshot))
		{
			LLReceipt  *receipt = &receipts[elements[0]->index];
			LLPairWork	found = *work;
			LLLock		lock = LL_LOCK_GONE;
			bool		shadowed;

			work->decided = alone && refuse_plainly(elements[0], snapshot, false, receipt);
			shadowed = work->reigns.shadow != NULL;
			if (!work->decided)
			{
				*work = found;
				lock = ll_pair_lock(work, snapshot, alone ? LockWaitSkip : policy);
			}
			if (lock == LL_LOCK_BUSY && alone)
				work->decided = replay_plainly(elements[0], snapshot, receipt) ||
					(shadowed && refuse_plainly(elements[0], snapshot, true, receipt));
			if (lock == LL_LOCK_BUSY && !work->decided)
				*work = found;
			ll_snapshot_drop(snapshot);
			if (lock == LL_LOCK_BUSY && !work->decided)
			{
				if (policy == LockWaitSkip)
					pass_by(work, elements, count, false);
				else
					lock = ll_pair_find_and_lock(work, LockWaitBlock);
			}
			if (work->decided || lock == LL_LOCK_TAKEN)
				return;
			continue;
		}
		decide_pair(elements, count, &snapshot, receipts);
		ll_snapshot_drop(snapshot);
		work->decided = true;
		if (work->taken == 0 || ll_pair_create(work, policy))
			return;
		if (policy == LockWaitSkip)
		{
			pass_by(work, elements, count, false);
			return;
		}
	}
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

/* elements that start at once, by operation; the others last */
static int
by_operation(const void *a, const void *b)
{
	const LLReserveElement *x = *(LLReserveElement *const *) a;
	const LLReserveElement *y = *(LLReserveElement *const *) b;
	int			order;

	if (x->start_operation == 0 || y->start_operation == 0)
		return (x->start_operation == 0) - (y->start_operation == 0);
	order = ll_pair_compare(x->subject, x->start_operation, y->subject, y->start_operation);
	return order != 0 ? order : x->index - y->index;
}

/* link_holders gives all elements with one id, or one operation, one cell. */
static void
link_holders(LLReserveElement **ids, LLReserveElement **operations, int count)
{
	LLReserveElement **cells = palloc0(sizeof(LLReserveElement *) * count * 2);

	for (int i = 0; i < count; i++)
		ids[i]->id_holder = i > 0 &&
			ll_pair_compare(ids[i - 1]->subject, ids[i - 1]->id,
							ids[i]->subject, ids[i]->id) == 0
			? ids[i - 1]->id_holder : &cells[i];
	for (int i = 0; i < count && operations[i]->start_operation != 0; i++)
		operations[i]->operation_holder = i > 0 &&
			ll_pair_compare(operations[i - 1]->subject, operations[i - 1]->start_operation,
							operations[i]->subject, operations[i]->start_operation) == 0
			? operations[i - 1]->operation_holder : &cells[count + i];
}

/*
 * find_new_ids reads the stored ids between the first and the last of one
 * subject's elements.  Ids that grow with time have few or none there, and one
 * descent of the index then answers for all; where there are many, the
 * elements look for themselves.
 */
static void
find_new_ids(LLReserveElement **ids, int count, Snapshot snapshot)
{
	LLScan	   *scan = ll_ids_begin(ids[0]->subject, ids[0]->id, ids[count - 1]->id, snapshot);
	int			left = count / 4;
	int			at = 0;
	Datum		id;
	bool	   *stored = palloc0(sizeof(bool) * count);
	bool		more;

	while ((more = ll_ids_next(scan, &id)) && left-- > 0)
		for (int order = -1; at < count && order <= 0; at += order <= 0)
		{
			order = ll_text_compare(ids[at]->id, id);
			stored[at] = order == 0;
		}
	ll_scan_end(scan);
	for (int i = 0; i < count && !more; i++)
		ids[i]->new_id = !stored[i];
}

/* ---- all or nothing ----------------------------------------------------- */

/* longer_wait keeps, of two refusals, the wait that a caller of both has to bear. */
static void
longer_wait(LLReceipt *longest, const LLReceipt *refusal)
{
	if (refusal->verdict.wait > longest->verdict.wait)
		longest->retry_after_ms = -1;
	if (refusal->verdict.wait >= longest->verdict.wait)
	{
		longest->verdict.wait = refusal->verdict.wait;
		longest->retry_after_ms = Max(longest->retry_after_ms, refusal->retry_after_ms);
	}
}

/* withdraw answers an element that would be admitted, were it not for another one. */
static void
withdraw(LLReserveElement *e, const LLReceipt *longest, LLReceipt *receipt)
{
	LLVerdict	verdict = ll_say(LL_REFUSED, LL_DIM_REQUIRE_ALL);

	e->echo_of = NULL;
	answer_refused(e, verdict, receipt);
	receipt->verdict.wait = longest->verdict.wait;
	receipt->retry_after_ms = longest->retry_after_ms;
}

/*
 * all_or_nothing takes back what was admitted, if any limit said no (J2).  Each
 * element that refused says why and for how long; the others carry the longest
 * wait.  An element whose hold was given back, expired or fenced before gets
 * its receipt, but it holds nothing: beside it no other one is admitted, now
 * or ever under these ids.
 */
static void
all_or_nothing(LLReserveElement *elements, int count, LLReceipt *receipts)
{
	LLReceipt	longest = {0};
	bool		refused = false;
	bool	   *withdrawn = palloc0(sizeof(bool) * count);

	longest.retry_after_ms = -1;
	for (int i = 0; i < count; i++)
		if (elements[i].echo_of != NULL &&
			!same_request(&elements[i], &elements[i].echo_of->row))
		{
			/* one id for two requests: known already, so nothing is taken for either */
			elements[i].echo_of = NULL;
			answer_refused(&elements[i], ll_say(LL_CONFLICT, LL_DIM_REQUEST), &receipts[i]);
		}
	for (int i = 0; i < count; i++)
		if (elements[i].echo_of == NULL && receipts[i].verdict.outcome != LL_ACCEPTED &&
			receipts[i].verdict.outcome != LL_UNENFORCED)
		{
			refused = true;
			longer_wait(&longest, &receipts[i]);
		}
		else if (elements[i].over)
		{
			refused = true;
			longest.verdict.wait = LL_WAIT_NEVER;
			longest.retry_after_ms = -1;
		}
	if (!refused)
		return;
	for (int i = 0; i < count; i++)
	{
		withdrawn[i] = elements[i].admitted || elements[i].echo_of != NULL;
		if (elements[i].admitted)
			untake(&elements[i]);
	}
	for (int i = 0; i < count; i++)
		if (withdrawn[i])
			withdraw(&elements[i], &longest, &receipts[i]);
}

/* a race that would leave a part: the whole is to be repeated */
static void
not_all(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to concurrent use of a reservation id or operation"),
			 errdetail("All elements of the batch were required, and one of them was taken meanwhile."),
			 errhint("Repeat the transaction with the same ids.")));
}

/* ---- shadows (B7) -------------------------------------------------------- */

/*
 * ask_shadows asks, once all is decided, what the shadows would have said of
 * the requests that were admitted, refused or left to the caller, pair by pair.
 */
static void
ask_shadows(LLReserveElement **pairs, int count, LockWaitPolicy policy, const LLReceipt *receipts)
{
	bool		locked = policy == LockWaitSkip;

	for (int i = 0; i < count; i++)
		locked |= pairs[i]->work->locked;
	for (int i = 0; i < count; i++)
	{
		LLReserveElement *e = pairs[i];
		LLOutcome	outcome = receipts[e->index].verdict.outcome;
		LLHappened	happened = e->admitted ? LL_HAPPENED_ADMITTED
			: outcome == LL_UNENFORCED ? LL_HAPPENED_UNENFORCED : LL_HAPPENED_REFUSED;
		LLRequest	request;

		if (e->passed_by || e->work->reigns.shadow == NULL ||
			!(e->admitted || outcome == LL_REFUSED || outcome == LL_UNENFORCED))
			continue;
		e->work->beside_locked = locked;
		request = request_of(e, e->work->reigns.shadow);
		ll_faulty_here(e->subject, e->route);
		e->judgement = ll_shadow_judge(e->work, &request, happened, e->admitted ? &e->row : NULL);
	}
}

/* ---- writing ------------------------------------------------------------ */

/* was_refused_for tells whether an element was refused what another one had taken. */
static bool
was_refused_for(const LLReserveElement *taker, const LLReserveElement *e, const LLVerdict *verdict)
{
	if (e->passed_by || e->admitted || e->echo_of != NULL)
		return false;
	return (e->work == taker->work && e->index > taker->index && ll_holds_matter(verdict)) ||
		(e->start_operation != 0 && e->operation_holder == taker->operation_holder &&
		 verdict->dimension == LL_DIM_OPERATION_ELSEWHERE);
}

/*
 * withdraw_passed passes by an element that was taken already, and those that
 * were refused its units, or the operation that it was to bind: nobody has taken
 * either.
 */
static void
withdraw_passed(LLReserveElement *e, LLReserveElement **elements, int count,
				const LLReceipt *receipts)
{
	e->passed_by = true;
	for (int i = 0; i < count; i++)
		if (was_refused_for(e, elements[i], &receipts[elements[i]->index].verdict))
		{
			elements[i]->passed_by = true;
			ll_shadow_unjudge(elements[i]->work, &elements[i]->judgement, elements[i]->units);
		}
}

/*
 * bind_operations binds the operations of elements that start at once, in key
 * order.  What another transaction has bound meanwhile is a conflict, and
 * takes nothing.
 */
static void
bind_operations(LLReserveElement **operations, int count, LLBatch batch, LLReceipt *receipts)
{
	for (int i = 0; i < count && operations[i]->start_operation != 0; i++)
	{
		LLReserveElement *e = operations[i];

		if (!e->admitted)
			continue;
		ll_faulty_here(e->subject, e->route);
		if (ll_operation_bind(e->subject, e->start_operation, e->id,
							  e->row.started_at, batch.policy, &e->operation_tid))
			continue;
		if (batch.require_all)
			not_all();
		untake(e);
		if (batch.policy == LockWaitSkip)
			withdraw_passed(e, operations, count, receipts);
		else
			answer_refused(e, ll_say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE),
						   &receipts[e->index]);
	}
}

/* answer_taken answers an element whose id another transaction has used meanwhile. */
static void
answer_taken(LLReserveElement *e, LLReceipt *receipt)
{
	LLReservationRow stored;
	Snapshot	snapshot;
	bool		found;

	ll_store_step();
	snapshot = ll_snapshot_take();
	found = ll_reservation_look(&stored, e->subject, e->id, snapshot);
	ll_snapshot_drop(snapshot);
	if (!found)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent use of a reservation id or operation"),
				 errhint("Repeat the transaction with the same ids.")));
	answer_stored(e, &stored, receipt);
}

/*
 * insert_row inserts the row of an admitted element.  If another transaction
 * has used the id on another pair meanwhile, the element took nothing: its
 * units and its operation go back, and it is answered by what is stored.
 */
static bool
insert_row(LLReserveElement *e, LLBatch batch, LLReceipt *receipt)
{
	ll_faulty_here(e->subject, e->route);
	if (ll_reservation_insert(&e->row, batch.policy))
		return true;
	if (batch.require_all)
		not_all();
	untake(e);
	if (e->start_operation != 0)
		ll_operation_forget(&e->operation_tid);
	if (batch.policy == LockWaitSkip)
		return false;
	answer_taken(e, receipt);
	return true;
}

/* answer_echo answers an element by the row of the one whose id it repeats. */
static void
answer_echo(LLReserveElement *e, LLReceipt *receipt)
{
	LLReceipt	then = *receipt;

	e->passed_by = e->echo_of->passed_by;
	if (e->passed_by)
		return;
	if (e->echo_of->admitted)
		answer_stored(e, &e->echo_of->row, receipt);
	else
		answer_taken(e, receipt);
	if (receipt->verdict.outcome == LL_ACCEPTED)
	{
		receipt->available = then.available;
		receipt->reset_at = then.reset_at;
	}
}

/* the elements of one pair begin at `first` and end before what this returns */
static int
pair_end(LLReserveElement **pairs, int first, int count)
{
	int			next = first + 1;

	while (next < count &&
		   ll_pair_compare(pairs[first]->subject, pairs[first]->route,
						   pairs[next]->subject, pairs[next]->route) == 0)
		next++;
	return next;
}

/* likewise, those of one subject */
static int
subject_end(LLReserveElement **ids, int first, int count)
{
	int			next = first + 1;

	while (next < count && ll_text_compare(ids[first]->subject, ids[next]->subject) == 0)
		next++;
	return next;
}

/* How many elements of one subject make reading a range of ids worth while. */
#define IDS_AT_ONCE		8

/*
 * ll_reserve decides a batch; with require_all, all of it or nothing.  Elements
 * that were refused because of one that later turned out to be a conflict stay
 * refused, which errs on the safe side.
 */
void
ll_reserve(LLReserveElement *elements, int count, LLBatch batch, LLReceipt *receipts)
{
	LLReserveElement **ids = palloc(sizeof(LLReserveElement *) * count);
	LLReserveElement **operations = palloc(sizeof(LLReserveElement *) * count);
	LLReserveElement **pairs = palloc(sizeof(LLReserveElement *) * count);
	Snapshot	snapshot;

	for (int i = 0; i < count; i++)
	{
		elements[i].index = i;
		ids[i] = operations[i] = pairs[i] = &elements[i];
	}
	qsort(ids, count, sizeof(LLReserveElement *), by_id);
	qsort(operations, count, sizeof(LLReserveElement *), by_operation);
	qsort(pairs, count, sizeof(LLReserveElement *), by_pair);
	link_holders(ids, operations, count);

	for (int first = 0, end; first < count; first = end)
	{
		end = pair_end(pairs, first, count);
		lock_pair(&pairs[first], end - first, count == 1, batch.policy, receipts);
	}
	snapshot = ll_snapshot_take();	/* newer than every lock (F5) */
	for (int first = 0, end; first < count; first = end)
	{
		end = subject_end(ids, first, count);
		if (end - first >= IDS_AT_ONCE)
			find_new_ids(&ids[first], end - first, snapshot);
	}
	for (int first = 0, end; first < count; first = end)
	{
		end = pair_end(pairs, first, count);
		if (!pairs[first]->work->decided)
			decide_pair(&pairs[first], end - first, &snapshot, receipts);
	}
	ll_snapshot_drop(snapshot);

	if (batch.require_all)
		all_or_nothing(elements, count, receipts);

	ask_shadows(pairs, count, batch.policy, receipts);
	bind_operations(operations, count, batch, receipts);
	for (int i = 0; i < count; i++)
		if (ids[i]->admitted && !insert_row(ids[i], batch, &receipts[ids[i]->index]))
			withdraw_passed(ids[i], operations, count, receipts);
	for (int i = 0; i < count; i++)
		if (elements[i].echo_of != NULL)
			answer_echo(&elements[i], &receipts[i]);

	for (int i = 0; i < count; i++)
		if (i == 0 || pairs[i]->work != pairs[i - 1]->work)
		{
			ll_faulty_here(pairs[i]->subject, pairs[i]->route);
			if (pairs[i]->work->locked)
				ll_pair_write(pairs[i]->work);
			else
				ll_shadow_write(pairs[i]->work);
		}
}

/*
 * ll_refuse answers one request without the lock of its pair, if that is possible
 * (D3).  False: it has to be decided.
 */
bool
ll_refuse(LLReserveElement *e, LLReceipt *receipt)
{
	LLPairWork *work = palloc(sizeof(LLPairWork));
	Snapshot	snapshot = ll_snapshot_take();
	bool		refused;

	begin_pair(work, &e, 1);
	refused = ll_pair_find(work, snapshot) && refuse_plainly(e, snapshot, false, receipt);
	ll_snapshot_drop(snapshot);
	return refused;
}
