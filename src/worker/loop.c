/*
 * loop.c
 *	  A worker in its database: it does its jobs, waits, leaves.
 *
 * In rounds: a step of each of its jobs, each in a transaction of its own, until
 * none has anything left that is due.  Then it sleeps on its latch until the
 * next instant at which one has.  If that is further away than
 * limitledger.worker_linger it writes the instant on the board and leaves, so
 * that a database with nothing to do has no session of ours; the launcher sends
 * another in time.  What is due and locked is tried again, with growing pauses.
 *
 * A step that fails is rolled back.  It is repeated at once without the pair at
 * which it failed; if there is none, its job alone rests for a while, and the
 * others go on (F3).  The log has the first failure of a job and, if it lasts, a line a
 * minute.  If a step finds no extension, the worker says so on the board and
 * leaves.
 *
 * It leaves between two steps: if it is asked to (ddl.c also cancels the step
 * under way), if limitledger.workers was switched off, and if others wait for a
 * slot: at once if it only waits, else after a second.  SIGTERM ends it at once, as any session; what the step under way has
 * done is rolled back, and the launcher sends another.
 */
#include "postgres.h"

#include "jobs.h"

#include "access/xact.h"
#include "catalog/pg_extension.h"
#include "ledger/ledger.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "settings.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define LONGEST_NAP		(60 * USECS_PER_SEC)
#define SHORTEST_RETRY	(50 * INT64CONST(1000)) /* of what was locked */
#define LONGEST_RETRY	(1 * USECS_PER_SEC)
#define SHORTEST_REST	(1 * USECS_PER_SEC) /* of a job that failed */
#define LONGEST_REST	(60 * USECS_PER_SEC)
#define SOONEST_LOOK	(10 * USECS_PER_SEC)
#define TURN			(1 * USECS_PER_SEC) /* of a worker, if others wait */
#define START_GAP		(500 * INT64CONST(1000))	/* between one that leaves and the next */
#define LOG_GAP			(60 * USECS_PER_SEC)	/* between two reports of one job's failure */

static LLErrand errand;
static LLBoardDatabase *entry;	/* of this worker's database */
static LLBoardWorker *self;
static bool left_in_order = false;

static LLWork work;
static TimestampTz job_due_at[LL_JOBS]; /* as its last step said */
static TimestampTz logged_at[LL_JOBS];
static volatile sig_atomic_t stepping = false;

/* ---- coming and going ---------------------------------------------------- */

/*
 * leave runs however the worker ends.  The latch goes before the launcher is
 * woken, so that what a session lowers from now on is seen by one of the two.
 */
static void
leave(int code, Datum arg)
{
	TimestampTz now = GetCurrentTimestamp();

	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	self->pid = 0;
	self->latch = NULL;
	self->doing = 0;
	self->left_at = now;
	self->start_after = now + START_GAP;
	if (left_in_order)
		self->failures = 0;
	else
	{
		self->start_after = now + (Min(LONGEST_REST, SHORTEST_REST << Min(self->failures, 10)));
		self->failures++;
		ll_board_lower(self, LL_AT_ONCE);
	}
	ll_board_wake_launcher();
	LWLockRelease(ll_board->lock);
}

/* enter takes the place that the launcher has kept; false: it is not wanted any more. */
static bool
enter(void)
{
	bool		wanted;

	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	entry = &ll_board->database[errand.entry];
	self = &entry->worker[errand.kind];
	self->registered = false;
	wanted = entry->database == errand.database && self->pid == 0 &&
		entry->away_until <= GetCurrentTimestamp();
	if (wanted)
	{
		self->pid = MyProcPid;
		self->latch = MyLatch;
	}
	LWLockRelease(ll_board->lock);
	if (wanted)
		before_shmem_exit(leave, (Datum) 0);
	return wanted;
}

static void
set(const char *name, const char *value)
{
	SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
}

/*
 * settle_down makes the session what a step expects, whatever was set for the
 * database.  A table that somebody has locked ends a step soon: other jobs may
 * not need it.
 */
static void
settle_down(void)
{
	set("search_path", "pg_catalog, pg_temp");
	set("default_transaction_isolation", "read committed");
	set("default_transaction_read_only", "off");
	set("default_transaction_deferrable", "off");
	set("lock_timeout", "1s");
	set("statement_timeout", "0");
	set("session_replication_role", "origin");
	ll_board_mute();
	work.context = TopMemoryContext;
	work.board = entry;
	for (int job = 0; job < LL_JOBS; job++)
		job_due_at[job] = LL_NEVER;
}

/* welcome tells whether the worker may stay. */
static bool
welcome(void)
{
	return ll_workers_on && entry->away_until <= GetCurrentTimestamp();
}

/* on_cancel cancels the step under way; between two steps there is nothing to cancel. */
static void
on_cancel(SIGNAL_ARGS)
{
	if (stepping)
		StatementCancelHandler(postgres_signal_arg);
}

/* ---- one step ------------------------------------------------------------- */

/* set_presence writes down whether the extension is here. */
static void
set_presence(bool present)
{
	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	if (present && entry->presence != LL_PRESENT)
	{
		entry->known_since = GetCurrentTimestamp();
		/* what is due nobody has looked at yet */
		for (int kind = 0; kind < LL_WORKER_KINDS; kind++)
			if (kind != errand.kind)
				ll_board_lower(&entry->worker[kind], LL_AT_ONCE);
		ll_board_wake_launcher();
	}
	if (!present)
	{
		entry->probe_at = GetCurrentTimestamp() + ll_worker_probe_interval * USECS_PER_SEC;
		memset(entry->job, 0, sizeof(entry->job));
		entry->audited[0] = '\0';
		entry->discrepancies = 0;
		for (int kind = 0; kind < LL_WORKER_KINDS; kind++)
		{
			pg_atomic_write_u64(&entry->worker[kind].due_at, (uint64) LL_NEVER);
			entry->worker[kind].wake_at = LL_NEVER;
		}
	}
	entry->presence = present ? LL_PRESENT : LL_MISSING;
	LWLockRelease(ll_board->lock);
}

/* begin opens the transaction of a step; false: the extension is not here. */
static bool
begin(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	return ll_find_extension(&work);
}

static void
end(void)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(false);
}

/* look tells whether the extension is here, in a transaction of its own. */
static bool
look(void)
{
	bool		here = begin();

	end();
	return here;
}

/*
 * hold keeps DROP EXTENSION out until the step ends: it locks the extension before
 * anything of it, as that does, so that neither ever waits for the other with
 * something in hand.  False: it is gone by now.
 */
static bool
hold(void)
{
	Oid			extension;

	do
	{
		extension = work.extension;
		LockDatabaseObject(ExtensionRelationId, extension, 0, AccessShareLock);
		/* who waited sees what was committed meanwhile */
		PopActiveSnapshot();
		PushActiveSnapshot(GetTransactionSnapshot());
		if (!ll_find_extension(&work))
			return false;
	} while (work.extension != extension);
	return true;
}

/* do_step does one step of a job as the extension's owner; false: no extension. */
static bool
do_step(LLJobId job, LLStep *step)
{
	Oid			user;
	int			context;

	if (!begin() || !hold())
	{
		end();
		return false;
	}
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(work.owner, context | SECURITY_LOCAL_USERID_CHANGE);
	ll_faulty_begin(job);
	ll_jobs[job].step(&work, step);
	ll_faulty_end();
	/* the owner still: what a trigger has put off to the commit runs in there */
	end();
	SetUserIdAndSecContext(user, context);
	return true;
}

/* note writes down what a step did. */
static void
note(LLJobId job, const LLStep *step)
{
	LLBoardJob *line = &entry->job[job];

	ll_faulty_forget(job, !step->more);
	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	if (ll_faulty_count(job) == 0)
		line->failures = 0;
	line->next_at = step->next_at;
	if (step->rows > 0 || step->done)
	{
		line->last_run_at = GetCurrentTimestamp();
		line->last_rows = step->rows;
		line->total_rows += step->rows;
		line->late_us = step->late_us;
	}
	LWLockRelease(ll_board->lock);
	job_due_at[job] = step->due_at;
}

/*
 * at_fault tells whether an error may be that of the pair under work: not one
 * of locks, resources, cancels, or of a table that is not there.
 */
static bool
at_fault(const ErrorData *error)
{
	switch (ERRCODE_TO_CATEGORY(error->sqlerrcode))
	{
		case ERRCODE_TRANSACTION_ROLLBACK:
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE:
		case ERRCODE_OPERATOR_INTERVENTION:
		case ERRCODE_SYSTEM_ERROR:
			return false;
	}
	return error->sqlerrcode != ERRCODE_UNDEFINED_TABLE;
}

/*
 * fail writes down that a step failed.  It passes by the pair at which it did
 * and goes on at once; if there is none, its job rests.  A failure that is the
 * extension's end is none.
 */
static void
fail(LLJobId job, ErrorData *error, LLStep *step)
{
	LLBoardJob *line = &entry->job[job];
	TimestampTz now = GetCurrentTimestamp();

	step->more = at_fault(error) && ll_faulty_add();

	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	line->next_at = step->more ? 0
		: now + Min(LONGEST_REST, SHORTEST_REST << Min(line->failures, 10));
	line->failures++;
	line->last_error = error->sqlerrcode;
	line->last_error_at = now;
	LWLockRelease(ll_board->lock);
	job_due_at[job] = LL_NEVER;
	/* once is DDL: the new extension is seen a moment before the news that the old tables are gone */
	if (error->sqlerrcode == ERRCODE_UNDEFINED_TABLE && line->failures == 1)
		return;
	if (now < logged_at[job] + LOG_GAP && logged_at[job] != 0)
		return;
	logged_at[job] = now;
	ereport(LOG,
			(errcode(error->sqlerrcode),
			 errmsg("%s: step %s failed: %s", ll_worker_type(errand.kind), ll_job_name(job),
					error->message),
			 step->more
			 ? errdetail("Its pair is passed by for a while; all others go on.")
			 : errdetail("It is tried again; the other steps go on.")));
}

/*
 * try_step does one step and survives its error.  False: the extension is gone.
 */
static bool
try_step(LLJobId job, LLStep *step)
{
	MemoryContext context = CurrentMemoryContext;
	ErrorData  *volatile error = NULL;
	volatile bool here = true;
	Oid			extension;

	*step = (LLStep) {.due_at = LL_NEVER};
	pgstat_report_activity(STATE_RUNNING, ll_job_name(job));
	self->doing = job + 1;
	PG_TRY();
	{
		stepping = true;
		here = do_step(job, step);
		stepping = false;
	}
	PG_CATCH();
	{
		stepping = false;
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		HOLD_INTERRUPTS();
		FlushErrorState();
		AbortCurrentTransaction();
		RESUME_INTERRUPTS();
		MemoryContextSwitchTo(context);
	}
	PG_END_TRY();
	QueryCancelPending = false;
	self->doing = 0;

	if (error == NULL)
	{
		if (here)
			note(job, step);
		return here;
	}
	*step = (LLStep) {.due_at = LL_NEVER};
	work.after_subject = work.after_route = NULL;
	extension = work.extension;
	here = !welcome() || look();
	if (here && extension != work.extension)
		step->more = true;		/* dropped and created again under the step's feet */
	else if (here && welcome())
		fail(job, error, step);
	FreeErrorData(error);
	return here;
}

/* ---- rounds ---------------------------------------------------------------- */

typedef struct Round
{
	bool		more;			/* go on at once */
	bool		left;			/* something due is locked */
	int64		rows;
} Round;

/* round does a step of each job that is not resting; false: the extension is gone. */
static bool
one_round(Round *round)
{
	*round = (Round) {0};
	for (int job = 0; job < LL_JOBS && welcome(); job++)
	{
		LLStep		step;

		if (ll_job_kind(job) != errand.kind || ll_left(entry->job[job].next_at, GetCurrentTimestamp()) > 0)
			continue;
		CHECK_FOR_INTERRUPTS();
		if (!try_step(job, &step))
			return false;
		round->more |= step.more;
		round->left |= step.left;
		round->rows += step.rows;
	}
	return true;
}

/* next_due is the earliest deadline that a job knows of, by the ledger's clock. */
static TimestampTz
next_due(void)
{
	TimestampTz at = LL_NEVER;

	for (int job = 0; job < LL_JOBS; job++)
		if (ll_job_kind(job) == errand.kind)
			at = Min(at, job_due_at[job]);
	return at;
}

/* next_wake is when an interval ends or a job has rested, by the server's clock. */
static TimestampTz
next_wake(void)
{
	TimestampTz at = LL_NEVER;

	for (int job = 0; job < LL_JOBS; job++)
		if (ll_job_kind(job) == errand.kind &&
			(entry->job[job].next_at != 0 || ll_jobs[job].by_interval))
			at = Min(at, entry->job[job].next_at);
	return at;
}

/*
 * look_again_in says after how long the worker looks in even if nobody told it
 * of anything: rows that a restore has copied speak for nobody.  A database
 * that is new is looked into more often.
 */
static int64
look_again_in(TimestampTz now)
{
	return Min(ll_worker_probe_interval * USECS_PER_SEC, Max(now - entry->known_since, SOONEST_LOOK));
}

/*
 * clear_due comes before a round: what is committed from here on, and the
 * round may not see, is lowered anew.
 */
static void
clear_due(void)
{
	(void) pg_atomic_exchange_u64(&self->due_at, (uint64) LL_NEVER);
	if (entry->changed)
	{
		LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
		entry->changed = false;
		LWLockRelease(ll_board->lock);
	}
}

/* until_next writes down when the next round is due, and says how far away that is, in us. */
static int64
until_next(void)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz wake_at = Min(next_wake(), now + look_again_in(now));

	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	self->wake_at = wake_at;
	LWLockRelease(ll_board->lock);
	(void) ll_board_lower(self, next_due());
	return Min(ll_left(ll_board_due(self), ll_now()), ll_left(wake_at, now));
}

/* nap sleeps, but no longer than it may take to notice that a clock was set. */
static void
nap(int64 us)
{
	pgstat_report_stat(true);
	pgstat_report_activity(STATE_IDLE, "waiting for what is due next");
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Max(1, (Min(us, LONGEST_NAP) + 999) / 1000), PG_WAIT_EXTENSION);
}

static void
take_in_settings(void)
{
	if (!ConfigReloadPending)
		return;
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
}

/*
 * serve works until the worker has to leave.  A round that did something, or
 * that a commit has asked for, is followed by the next look at once.
 */
static void
serve(void)
{
	TimestampTz since = GetCurrentTimestamp();
	int64		retry = SHORTEST_RETRY;

	for (;;)
	{
		Round		round;
		int64		left;

		ResetLatch(MyLatch);	/* before anything that a waker may have changed is read */
		CHECK_FOR_INTERRUPTS();
		take_in_settings();
		if (!welcome())
			break;
		clear_due();
		if (!one_round(&round))
		{
			set_presence(false);
			return;
		}
		if (entry->presence != LL_PRESENT)
			set_presence(true);

		left = round.more ? 0 : until_next();
		if (round.left && left > 0)
		{
			retry = round.rows > 0 ? SHORTEST_RETRY : Min(retry * 2, LONGEST_RETRY);
			left = Min(left, retry);
		}
		if (ll_board->crowded &&
			(left > 0 || ll_left(since + TURN, GetCurrentTimestamp()) == 0))
		{
			if (left == 0 || round.left)
				(void) ll_board_lower(self, LL_AT_ONCE);
			return;
		}
		if (left > Max(ll_worker_linger * INT64CONST(1000), LONGEST_RETRY * round.left))
			return;
		if (left > 0)
			nap(left);
	}
	/* asked to leave: whoever comes next begins with a look */
	(void) ll_board_lower(self, LL_AT_ONCE);
}

/* limitledger_worker_main is a worker. */
void
limitledger_worker_main(Datum arg)
{
	memcpy(&errand, MyBgworkerEntry->bgw_extra, sizeof(errand));
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGINT, on_cancel);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	if (!enter())
		proc_exit(0);
	BackgroundWorkerInitializeConnectionByOid(errand.database, InvalidOid, 0);
	settle_down();
	serve();
	left_in_order = true;
	proc_exit(0);
}
