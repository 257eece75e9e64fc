/*
 * pair.c
 *	  A pair under work.  See pair.h.
 *
 * Crash points: everything a call does is one transaction, so a crash between
 * any two lines leaves either all of it or nothing.
 */
#include "postgres.h"

#include "pair.h"

#include "board.h"
#include "store/clock.h"
#include "errors.h"
#include "miscadmin.h"
#include "utils/builtins.h"

/* ll_pair_compare orders pairs as their locks are taken. */
int
ll_pair_compare(Datum subject_a, Datum route_a, Datum subject_b, Datum route_b)
{
	int			order = ll_text_compare(subject_a, subject_b);

	return order != 0 ? order : ll_text_compare(route_a, route_b);
}

void
ll_pair_init(LLPairWork *work, Datum subject, Datum route)
{
	memset(work, 0, sizeof(*work));
	work->head.subject = subject;
	work->head.route = route;
	work->head.frozen_at = LL_NO_TIME;
}

/* ll_pair_find reads the head without a lock; false if the pair has none yet. */
bool
ll_pair_find(LLPairWork *work, Snapshot snapshot)
{
	return ll_head_peek(&work->head, snapshot);
}

/*
 * ll_pair_lock locks the head that was found.  Who waits here finds, after the
 * wait, the newest version and nothing older (F5).
 */
LLLock
ll_pair_lock(LLPairWork *work, Snapshot snapshot, LockWaitPolicy policy)
{
	LLLock		lock = ll_head_lock(&work->head, snapshot, policy);

	work->locked = lock == LL_LOCK_TAKEN;
	return lock;
}

/* ll_pair_find_and_lock does both; LL_LOCK_GONE: the pair has no head. */
LLLock
ll_pair_find_and_lock(LLPairWork *work, LockWaitPolicy policy)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLLock		lock = ll_pair_find(work, snapshot)
		? ll_pair_lock(work, snapshot, policy) : LL_LOCK_GONE;

	ll_snapshot_drop(snapshot);
	return lock;
}

/* close_budget keeps a budget that ended, until it is written (B5). */
static void
close_budget(void *arg, const LLBudget *budget, LLTime closed_at)
{
	LLPairWork *work = arg;
	LLClosed   *closed = palloc0(sizeof(LLClosed));

	closed->budget = *budget;
	closed->lineage = work->head.lineage;
	closed->closed_at = closed_at;
	closed->closing_available = budget->available;
	work->closings = lappend(work->closings, closed);

	work->head.lineage.opened_at = closed_at;
	work->head.lineage.follows = true;
	work->head.lineage.follows_generation = budget->generation;
	work->head.lineage.follows_epoch = budget->epoch;
}

/*
 * ll_pair_present reads the clock, takes in what was published meanwhile, and
 * brings the pair to this instant.  A pair without a head is opened in memory;
 * without a policy, reigns.ruling stays NULL.
 */
void
ll_pair_present(LLPairWork *work)
{
	LLHead	   *head = &work->head;

	ll_policy_changed();
	work->clock = ll_clock_now();
	work->reigns = ll_policy_reigns(head->subject, head->route,
									head->exists ? head->pair.head.generation : 0);
	if (work->reigns.ruling == NULL)
		return;
	if (head->exists)
	{
		work->debt_before = ll_pair_debt(&head->pair);
		work->repaid_before = head->pair.head.overdraft_repaid;
		if (!ll_roll(&head->pair, work->reigns.reign, work->reigns.count,
					 work->clock, close_budget, work))
			ll_overflow("the pair's budget");
		return;
	}
	ll_epoch_open_first(&head->pair, ll_pair_policy(work),
						ll_period_of(&work->reigns.ruling->periods, work->clock),
						work->clock);
	head->lineage.opened_at = work->clock;
}

/*
 * ll_pair_look shows the pair of a stored reservation as of now, without a
 * lock: for what a caller may know of it, not to decide on.
 */
void
ll_pair_look(LLPairWork *work, Datum subject, Datum route)
{
	Snapshot	snapshot = ll_snapshot_take();

	ll_pair_init(work, subject, route);
	if (!ll_pair_find(work, snapshot))
		ll_broken("B3", "the pair of a reservation has no head");
	ll_snapshot_drop(snapshot);
	ll_pair_present(work);
}

/*
 * ll_pair_rolled tells whether bringing the pair here opened a budget or
 * repaid debt.  A call that is refused writes none of it: a later one computes
 * the same from what is stored (C4, E2).
 */
bool
ll_pair_rolled(const LLPairWork *work)
{
	return work->closings != NIL || work->head.pair.older_repaid > 0 ||
		work->head.pair.head.overdraft_repaid != work->repaid_before;
}

/*
 * ll_pair_relief_at says when time alone does more for a pair that owes: refill
 * has paid all of its debt, or an epoch ends (E2).  LL_TIME_MAX: it owes nothing.
 */
TimestampTz
ll_pair_relief_at(const LLPairWork *work)
{
	const LLPair *pair = &work->head.pair;
	LLUnits		debt = ll_pair_debt(pair);
	LLVerdict	verdict = {0};
	TimestampTz at;

	if (debt == 0)
		return LL_TIME_MAX;
	at = ll_period_after(&work->reigns.ruling->periods, pair->head.epoch, 1);
	if (ll_pair_policy(work)->refill == LL_REFILL_CONTINUOUS)
	{
		ll_refill_wait(pair, ll_pair_policy(work), debt, &verdict);
		at = Min(at, verdict.wait_until);
	}
	return at;
}

/*
 * ll_pair_create makes the first row of a pair that was opened and decided in
 * memory.  The row is ours alone until we commit.  False: somebody else was
 * first (B3).
 */
bool
ll_pair_create(LLPairWork *work)
{
	if (!ll_head_insert(&work->head))
		return false;
	ll_store_step();
	if (ll_pair_find_and_lock(work, LockWaitBlock) != LL_LOCK_TAKEN)
		ll_broken("B3", "a new head vanished");
	work->created = true;
	return true;
}

/*
 * ll_pair_open locks the pair and brings it to the present, and makes its head
 * if it has none.  False: no policy covers it.
 */
bool
ll_pair_open(LLPairWork *work)
{
	Datum		subject = work->head.subject;
	Datum		route = work->head.route;

	for (;;)
	{
		LLLock		lock = ll_pair_find_and_lock(work, LockWaitBlock);

		if (lock == LL_LOCK_GONE)
			ll_pair_init(work, subject, route);
		ll_pair_present(work);
		if (work->reigns.ruling == NULL)
			return false;
		if (lock == LL_LOCK_TAKEN || ll_pair_create(work))
			return true;
		CHECK_FOR_INTERRUPTS();
		ll_pair_init(work, subject, route);
	}
}

/* the entry of a list of closed budgets with this key */
static LLClosed *
among(List *budgets, int64 generation, TimestampTz epoch)
{
	ListCell   *cell;

	foreach(cell, budgets)
	{
		LLClosed   *closed = lfirst(cell);

		if (closed->budget.generation == generation && closed->budget.epoch == epoch)
			return closed;
	}
	return NULL;
}

/* ll_pair_budget gives the budget that a reservation belongs to; NULL: the head. */
LLClosed *
ll_pair_budget(LLPairWork *work, int64 generation, TimestampTz epoch)
{
	const LLBudget *head = &work->head.pair.head;
	LLClosed   *closed;

	if (head->generation == generation && head->epoch == epoch)
		return NULL;
	closed = among(work->closings, generation, epoch);
	if (closed == NULL)
		closed = among(work->closed, generation, epoch);
	if (closed == NULL)
	{
		closed = palloc0(sizeof(LLClosed));
		if (!ll_closed_lock(&work->head, generation, epoch, closed))
			ll_broken("C2", "the budget of a reservation does not exist");
		work->closed = lappend(work->closed, closed);
	}
	return closed;
}

static int
by_opening(const ListCell *a, const ListCell *b)
{
	const LLBudget *x = &((LLClosed *) lfirst(a))->budget;
	const LLBudget *y = &((LLClosed *) lfirst(b))->budget;

	if (x->generation != y->generation)
		return x->generation < y->generation ? -1 : 1;
	return x->epoch < y->epoch ? -1 : x->epoch > y->epoch;
}

/* repay_closed books what this call has paid to older budgets, oldest first (E2). */
static void
repay_closed(LLPairWork *work)
{
	ListCell   *cell;

	if (work->head.pair.older_repaid == 0)
		return;
	foreach(cell, ll_closed_debtors_lock(&work->head))
	{
		LLClosed   *debtor = lfirst(cell);

		if (among(work->closed, debtor->budget.generation, debtor->budget.epoch) == NULL)
			work->closed = lappend(work->closed, debtor);
	}
	list_sort(work->closed, by_opening);
	foreach(cell, list_concat_copy(work->closed, work->closings))
	{
		LLClosed   *closed = lfirst(cell);
		LLUnits		before = work->head.pair.older_repaid;

		if (!ll_repay_closed(&work->head.pair, &closed->budget))
			ll_overflow("minted");
		if (work->head.pair.older_repaid != before)
			closed->dirty = true;
	}
	if (work->head.pair.older_repaid != 0)
		ll_broken("E2", "debt was repaid that no budget owes");
}

/*
 * ll_pair_write writes what this call made of the pair: each budget once.  The
 * rules are checked here, before the write, so that a broken one shows no
 * values; CHECK and trigger check them again.
 */
void
ll_pair_write(LLPairWork *work)
{
	LLHead	   *head = &work->head;
	ListCell   *cell;

	ll_shadow_write(work);
	if (work->created && work->taken == 0 && !work->changed)
	{
		/* nothing was admitted after all: then there is no such pair */
		ll_head_forget(head);
		return;
	}
	if (!work->changed && !work->rewrite && (work->taken == 0 || work->created))
		return;
	repay_closed(work);
	if (head->pair.frozen && head->frozen_at == LL_NO_TIME)
	{
		head->frozen_at = head->pair.seen_at;
		head->frozen_reason = CStringGetTextDatum(work->breach);
	}
	if (!ll_pair_sound(&head->pair, ll_pair_policy(work)))
		ll_broken("C1", "a budget would not add up");

	foreach(cell, work->closings)
	{
		LLClosed   *closed = lfirst(cell);

		if (!ll_budget_conserved(&closed->budget))
			ll_broken("C1", "a closed budget would not add up");
		closed->changed_at = head->pair.seen_at;
		ll_closed_insert(head, closed);
	}
	foreach(cell, work->closed)
	{
		LLClosed   *closed = lfirst(cell);

		if (!closed->dirty)
			continue;
		if (!ll_budget_conserved(&closed->budget))
			ll_broken("C1", "a closed budget would not add up");
		closed->changed_at = Max(closed->changed_at, head->pair.seen_at);
		ll_closed_update(head, closed);
	}
	ll_head_update(head);
	ll_board_note(LL_WORKER_REPAYMENT, ll_pair_relief_at(work));
}
