/*
 * admission.c
 *	  The admission worker: the calls of many sessions, decided together.
 *
 *	  take what is queued
 *	  one transaction: settle and release, reserve, start
 *	  commit, which flushes
 *	  answer, and wake the callers
 *
 * While one group is flushed the next one gathers; nobody waits for company.
 * The scripts are those of the direct calls (src/ledger), told to skip what is
 * locked: a call that would have to wait stays queued and is tried again, with
 * growing pauses, while others go on; its session takes it back when it has had
 * enough.  If a group fails, nothing of it was done, and each of its sessions
 * makes its call directly: that is where an error belongs that is a caller's
 * own.  The pair at which it failed is passed by for a while, so that it does
 * not fail others again (F3).
 *
 * Crash points: before the commit, nothing happened; behind it, before the
 * answers, a session that gets its call back repeats it by the same id, which
 * is a replay.  A wait for a synchronous standby that was cut short is followed
 * by no answer either, so that the session waits by itself (F4).
 */
#include "postgres.h"

#include "jobs.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "queue.h"
#include "settings.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define SHORTEST_RETRY	(1 * INT64CONST(1000))	/* us; of what was locked */
#define LONGEST_RETRY	(16 * INT64CONST(1000))
#define TURN			(1 * USECS_PER_SEC) /* of a worker, if others wait for its place */

/* A group, and within it the calls of one kind. */
typedef struct Group
{
	LLSlot	  **slots;
	int			count;

	LLGrouped	kind;
	LLSlot	  **of_kind;
	int			chosen;
	LLReceipt  *receipts;
} Group;

/* ---- one group ----------------------------------------------------------- */

/*
 * decided writes down the receipt of one call, unless it was passed by.  Nobody
 * is kept waiting for a pair that made a group fail.
 */
static void
decided(Group *group, int i, bool passed_by, bool faulty)
{
	if (passed_by)
		group->of_kind[i]->fate = faulty ? LL_FATE_GIVEN_BACK : LL_FATE_OPEN;
	else
		ll_queue_decide(group->of_kind[i], &group->receipts[i]);
}

static void
run_settle(void *arg)
{
	Group	   *group = arg;
	LLSettleElement *elements = palloc(sizeof(LLSettleElement) * group->chosen);

	for (int i = 0; i < group->chosen; i++)
		elements[i] = group->of_kind[i]->element.settle;
	ll_settle_or_release(elements, group->chosen, LockWaitSkip, group->receipts);
	for (int i = 0; i < group->chosen; i++)
		decided(group, i, elements[i].passed_by, elements[i].faulty);
}

static void
run_reserve(void *arg)
{
	Group	   *group = arg;
	LLReserveElement *elements = palloc(sizeof(LLReserveElement) * group->chosen);
	LLBatch		batch = {false, LockWaitSkip};

	for (int i = 0; i < group->chosen; i++)
		elements[i] = group->of_kind[i]->element.reserve;
	ll_reserve(elements, group->chosen, batch, group->receipts);
	for (int i = 0; i < group->chosen; i++)
		decided(group, i, elements[i].passed_by, elements[i].faulty);
}

static void
run_start(void *arg)
{
	Group	   *group = arg;
	LLStartElement *elements = palloc(sizeof(LLStartElement) * group->chosen);

	for (int i = 0; i < group->chosen; i++)
		elements[i] = group->of_kind[i]->element.start;
	ll_start_reservations(elements, group->chosen, LockWaitSkip, group->receipts);
	for (int i = 0; i < group->chosen; i++)
		decided(group, i, elements[i].passed_by, elements[i].faulty);
}

/* decide_group decides all of a group in the transaction that is open. */
static void
decide_group(LLWork *work, void *arg)
{
	static void (*const scripts[LL_GROUPED_KINDS]) (void *arg) = {
		[LL_GROUPED_SETTLE] = run_settle,
		[LL_GROUPED_RESERVE] = run_reserve,
		[LL_GROUPED_START] = run_start
	};
	Group	   *group = arg;
	LLReceipt  *receipts = palloc0(sizeof(LLReceipt) * group->count);

	group->of_kind = palloc(sizeof(LLSlot *) * group->count);
	group->receipts = receipts;
	ll_faulty_begin(LL_JOBS);
	for (LLGrouped kind = 0; kind < LL_GROUPED_KINDS; kind++)
	{
		group->chosen = 0;
		for (int i = 0; i < group->count; i++)
			if (group->slots[i]->kind == kind)
				group->of_kind[group->chosen++] = group->slots[i];
		if (group->chosen > 0)
			ll_run(work->function, scripts[kind], group);
		group->receipts += group->chosen;
	}
	ll_faulty_end();
	/* a cancelled wait for a standby would look like one that was confirmed */
	ll_past_cancel();
	ll_confirm(receipts, group->count);
}

/* give_back has every call of a group made by its session. */
static void
give_back(Group *group)
{
	for (int i = 0; i < group->count; i++)
		group->slots[i]->fate = LL_FATE_GIVEN_BACK;
}

/*
 * fail looks at the error of a group.  True: a pair is at fault, and is passed
 * by from now on.  Else the worker leaves, and is started again after a pause:
 * what it met may take time.
 */
static bool
fail(ErrorData *error)
{
	bool		pair = ll_at_fault(error) && ll_faulty_add();

	ereport(LOG,
			(errcode(error->sqlerrcode),
			 errmsg("%s: a group failed: %s", ll_worker_type(LL_WORKER_ADMISSION), error->message),
			 pair ? errdetail("Its pair is passed by for a while; all others go on.")
			 : errdetail("Each of its calls is made by its session, and so are others until the worker is back.")));
	return pair;
}

/* What became of a group. */
typedef enum Outcome
{
	DONE,
	FAILED,
	NO_EXTENSION
} Outcome;

static Outcome
do_group(Group *group)
{
	bool		here;
	ErrorData  *error = ll_attempt(decide_group, group, &here);
	Outcome		outcome = here ? DONE : NO_EXTENSION;

	if (error == NULL && here && !ProcDiePending)
	{
		ll_faulty_forget(LL_JOBS, false);
		return DONE;
	}
	give_back(group);
	if (error != NULL)
	{
		if (ll_welcome() && error->sqlerrcode != ERRCODE_QUERY_CANCELED && !fail(error))
			outcome = FAILED;
		FreeErrorData(error);
	}
	return outcome;
}

/* ---- the worker ------------------------------------------------------------ */

/* clear_due comes before the queue is opened: who found it closed may ask anew. */
static void
clear_due(LLBoardWorker *self)
{
	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	(void) pg_atomic_exchange_u64(&self->due_at, (uint64) LL_NEVER);
	self->wake_at = LL_NEVER;
	LWLockRelease(ll_board->lock);
}

/* rest sleeps until something is pushed, or for so long. */
static void
rest(int64 us)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 (Max(us, 0) + 999) / 1000, PG_WAIT_EXTENSION);
}

/*
 * ll_serve_calls serves the queue of this database until the worker has to leave, or
 * nobody has called for limitledger.worker_linger.  False: it leaves because of
 * an error.
 */
bool
ll_serve_calls(LLBoardWorker *self, int entry)
{
	TimestampTz since = GetCurrentTimestamp();
	TimestampTz called_at = since;
	TimestampTz retry_at = 0;
	int64		retry = SHORTEST_RETRY;
	int			passed = 0;		/* calls that wait for a lock */
	bool		resting = true;
	Group		group = {0};

	clear_due(self);
	ll_queue_open(entry);
	group.slots = MemoryContextAlloc(TopMemoryContext, sizeof(LLSlot *) * ll_queue_slots());
	for (;;)
	{
		TimestampTz now;
		bool		again;

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ll_take_in_settings())
			ll_queue_refresh();
		if (!ll_welcome())
			return true;

		now = GetCurrentTimestamp();
		again = passed > 0 && now >= retry_at;
		group.count = ll_queue_take(group.slots, again);
		if (again && group.count == 0)
			passed = 0;			/* all of them have left */
		if (ll_board->crowded && (group.count == 0 || now >= since + TURN))
			return true;
		if (group.count > 0)
		{
			Outcome		outcome;

			if (resting)
				pgstat_report_activity(STATE_RUNNING, "deciding calls");
			resting = false;
			outcome = do_group(&group);
			passed = ll_queue_done();
			if (outcome == NO_EXTENSION)
				ll_set_presence(false);
			if (outcome != DONE)
				return outcome == NO_EXTENSION;
			called_at = now;
			retry = passed == 0 ? SHORTEST_RETRY
				: now >= retry_at ? Min(retry * 2, LONGEST_RETRY) : retry;
			if (now >= retry_at)
				retry_at = now + retry;
			continue;
		}
		/* woken, and not for a call: by DDL, perhaps */
		if (resting && passed == 0 && !ll_look())
		{
			ll_set_presence(false);
			return true;
		}
		if (passed == 0 && now >= called_at + ll_worker_linger * INT64CONST(1000))
			return true;
		if (!resting)
		{
			pgstat_report_stat(true);
			pgstat_report_activity(STATE_IDLE, "waiting for calls");
		}
		resting = true;
		rest(passed > 0 ? retry_at - now
			 : called_at + ll_worker_linger * INT64CONST(1000) - now);
	}
}
