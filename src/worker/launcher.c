/*
 * launcher.c
 *	  Starts workers where something is due.
 *
 * One process, connected to no database: it reads pg_database, which all
 * databases share, and the board.  Whether a database has the extension only a
 * session in it can see: the first worker that goes there looks, and leaves if
 * it is missing.  It is looked for again once an extension of that database
 * has changed (ddl.c), once somebody has written to a ledger there, or after
 * limitledger.worker_probe_interval.
 *
 * It sleeps until the next instant at which a worker has to be somewhere, or
 * until its latch is set.  Who is due and can't be started, for there are
 * limitledger.worker_limit workers or no free slot of max_worker_processes,
 * waits for the one that leaves next; workers see `crowded` and leave early.
 * Who has waited longest goes first.
 *
 * It starts when recovery has ended, so a standby has none and a promotion
 * brings it along.  Templates and databases that allow no connection are left
 * alone.
 */
#include "postgres.h"

#include "worker.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "ledger/ledger.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "settings.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define LONGEST_SLEEP	(60 * USECS_PER_SEC)	/* so that a clock that jumps is noticed */
#define LONGEST_PAUSE	(60 * USECS_PER_SEC)	/* before a worker that failed is tried again */

static BackgroundWorkerHandle *handles[LL_BOARD_DATABASES][LL_WORKER_KINDS];

/* max_worker_processes may be used up by others. */
static int	refusals = 0;		/* in a row */
static TimestampTz try_after = 0;

/* ll_launcher_init registers the launcher; for _PG_init while preloading. */
void
ll_launcher_init(void)
{
	BackgroundWorker worker = {0};

	strlcpy(worker.bgw_name, "limitledger launcher", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "limitledger launcher", BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "limitledger", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "limitledger_launcher_main", BGW_MAXLEN);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 5;
	RegisterBackgroundWorker(&worker);
}

/* ---- which databases there are ------------------------------------------ */

/* read_databases lists those that a worker may enter, in `context`. */
static List *
read_databases(MemoryContext context)
{
	List	   *found = NIL;
	Relation	relation;
	TableScanDesc scan;
	HeapTuple	tuple;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	relation = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(relation, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);
		MemoryContext old;

		if (database->datistemplate || !database->datallowconn)
			continue;
		old = MemoryContextSwitchTo(context);
		found = lappend_oid(found, database->oid);
		MemoryContextSwitchTo(old);
	}
	table_endscan(scan);
	table_close(relation, AccessShareLock);
	PopActiveSnapshot();
	CommitTransactionCommand();
	return found;
}

static bool
in_use(const LLBoardDatabase *entry)
{
	for (int kind = 0; kind < LL_WORKER_KINDS; kind++)
		if (entry->worker[kind].registered || entry->worker[kind].pid != 0)
			return true;
	return false;
}

/* clear makes an entry new; the lock is held. */
static void
clear(LLBoardDatabase *entry, Oid database)
{
	entry->presence = LL_UNPROBED;
	entry->changed = false;
	entry->probe_at = entry->away_until = 0;
	memset(entry->job, 0, sizeof(entry->job));
	entry->audited[0] = '\0';
	entry->discrepancies = 0;
	for (int kind = 0; kind < LL_WORKER_KINDS; kind++)
	{
		LLBoardWorker *worker = &entry->worker[kind];

		pg_atomic_write_u64(&worker->due_at, (uint64) LL_NEVER);
		worker->wake_at = LL_NEVER;
		worker->start_after = worker->left_at = 0;
		worker->failures = 0;
	}
	entry->database = database;
}

/* rescan makes the board list the databases that there are. */
static void
rescan(void)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *databases;
	ListCell   *cell;
	bool		full = false;
	bool		known;

	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	ll_board->rescan = false;
	LWLockRelease(ll_board->lock);
	databases = read_databases(context);

	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LL_BOARD_DATABASES; i++)
	{
		LLBoardDatabase *entry = &ll_board->database[i];

		if (!OidIsValid(entry->database) || list_member_oid(databases, entry->database))
			continue;
		if (in_use(entry))
		{
			/* on its way there, or out: when it has ended */
			entry->away_until = LL_NEVER;
			ll_board->rescan = true;
		}
		else
			entry->database = InvalidOid;
	}
	foreach(cell, databases)
	{
		LLBoardDatabase *entry = ll_board_find(lfirst_oid(cell));

		if (entry != NULL)
			continue;
		entry = ll_board_find(InvalidOid);
		if (entry != NULL)
			clear(entry, lfirst_oid(cell));
		full |= entry == NULL;
	}
	known = ll_board->full;
	ll_board->full = full;
	LWLockRelease(ll_board->lock);
	if (full && !known)
		ereport(LOG,
				(errmsg("limitledger watches %d databases, and there are more", LL_BOARD_DATABASES),
				 errhint("In the others CALL maintain() from cron.")));
	list_free(databases);
}

/* ---- who has to be where ------------------------------------------------ */

/* pause_after says how long to wait after so many failures in a row. */
static int64
pause_after(int failures)
{
	return Min(LONGEST_PAUSE, USECS_PER_SEC << Min(failures - 1, 10));
}

/* until_start says in how many us this worker has to be started; the lock is held. */
static int64
until_start(LLBoardDatabase *entry, LLWorkerKind kind, TimestampTz now, TimestampTz ledger_now)
{
	LLBoardWorker *worker = &entry->worker[kind];
	int64		left = USECS_PER_DAY;

	if (entry->changed)
	{
		entry->changed = false;
		if (entry->presence == LL_MISSING)
			entry->presence = LL_UNPROBED;
		else
			for (int other = 0; other < LL_WORKER_KINDS; other++)
				(void) ll_board_lower(&entry->worker[other], LL_AT_ONCE);
	}
	switch (entry->presence)
	{
		case LL_UNPROBED:
			if (kind == LL_WORKER_EXPIRY)
				left = 0;
			break;
		case LL_MISSING:
			if (kind == LL_WORKER_EXPIRY)
				left = ll_left(entry->probe_at, now);
			break;
		case LL_PRESENT:
			left = Min(ll_left(ll_board_due(worker), ledger_now), ll_left(worker->wake_at, now));
			break;
	}
	left = Max(left, ll_left(worker->start_after, now));
	return Max(left, ll_left(entry->away_until, now));
}

/*
 * running looks after a worker that was asked for.  One that ended before it
 * had entered the board could not be started, or could not connect.
 */
static bool
running(int i, LLWorkerKind kind, TimestampTz now)
{
	LLBoardWorker *worker = &ll_board->database[i].worker[kind];
	BackgroundWorkerHandle *handle = handles[i][kind];
	pid_t		pid;

	if (handle == NULL)
		return worker->pid != 0;
	if (GetBackgroundWorkerPid(handle, &pid) != BGWH_STOPPED)
		return true;
	pfree(handle);
	handles[i][kind] = NULL;
	if (worker->registered)
	{
		worker->registered = false;
		worker->failures++;
		worker->start_after = now + pause_after(worker->failures);
	}
	return false;
}

typedef struct Plan
{
	int			count;			/* workers that run */
	bool		any;			/* somebody is due: */
	LLErrand	errand;
	TimestampTz left_at;
	int64		sleep;			/* us until the next one is */
} Plan;

/* make_room tells the workers that somebody waits; the lock is held. */
static void
make_room(bool crowded)
{
	bool		news = crowded && !ll_board->crowded;

	ll_board->crowded = crowded;
	for (int i = 0; news && i < LL_BOARD_DATABASES; i++)
		for (int kind = 0; kind < LL_WORKER_KINDS; kind++)
			if (ll_board->database[i].worker[kind].latch != NULL)
				SetLatch(ll_board->database[i].worker[kind].latch);
}

/* plan looks over the whole board. */
static Plan
plan(void)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz ledger_now = ll_now();
	Plan		p = {.sleep = LONGEST_SLEEP};

	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LL_BOARD_DATABASES; i++)
	{
		LLBoardDatabase *entry = &ll_board->database[i];

		for (int kind = 0; kind < LL_WORKER_KINDS && OidIsValid(entry->database); kind++)
		{
			int64		left;

			if (running(i, kind, now))
			{
				p.count++;
				continue;
			}
			left = until_start(entry, kind, now, ledger_now);
			p.sleep = left > 0 ? Min(p.sleep, left) : p.sleep;
			if (left > 0 || (p.any && p.left_at <= entry->worker[kind].left_at))
				continue;
			p.any = true;
			p.errand = (LLErrand) {i, entry->database, kind};
			p.left_at = entry->worker[kind].left_at;
		}
	}
	make_room(p.any && (p.count >= ll_worker_limit || try_after > now));
	LWLockRelease(ll_board->lock);
	return p;
}

/* start registers one worker; false: the server has no room for it. */
static bool
start(const LLErrand *errand)
{
	LLBoardWorker *state = &ll_board->database[errand->entry].worker[errand->kind];
	BackgroundWorker worker = {0};
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	bool		registered;

	snprintf(worker.bgw_name, BGW_MAXLEN, "%s for database %u",
			 ll_worker_type(errand->kind), errand->database);
	strlcpy(worker.bgw_type, ll_worker_type(errand->kind), BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "limitledger", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "limitledger_worker_main", BGW_MAXLEN);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	memcpy(worker.bgw_extra, errand, sizeof(*errand));

	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	state->registered = true;
	LWLockRelease(ll_board->lock);
	registered = RegisterDynamicBackgroundWorker(&worker, &handles[errand->entry][errand->kind]);
	if (!registered)
	{
		handles[errand->entry][errand->kind] = NULL;
		LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
		state->registered = false;
		LWLockRelease(ll_board->lock);
	}
	MemoryContextSwitchTo(old);
	return registered;
}

/* start_due starts who is due, and says how long there is nothing more to do. */
static int64
start_due(void)
{
	for (;;)
	{
		TimestampTz now = GetCurrentTimestamp();
		Plan		p = plan();

		if (!p.any || p.count >= ll_worker_limit)
			return p.sleep;
		if (try_after > now)
			return Min(p.sleep, try_after - now);
		if (start(&p.errand))
		{
			refusals = 0;
			continue;
		}
		if (refusals++ == 0)
			ereport(LOG,
					(errmsg("limitledger can't start a worker: all slots of max_worker_processes are taken"),
					 errhint("It is tried again. The ledger is right without workers.")));
		try_after = now + pause_after(refusals);
	}
}

/* after gives the end of an interval that begins now; 0 seconds: never */
static TimestampTz
after(int seconds)
{
	return seconds == 0 ? LL_NEVER : GetCurrentTimestamp() + seconds * USECS_PER_SEC;
}

static void
sooner(LLBoardJob *job, TimestampTz at)
{
	job->next_at = Min(job->next_at, at);
}

/*
 * reschedule takes in other intervals of the purge and the audit where no
 * worker runs that could.
 */
static void
reschedule(void)
{
	TimestampTz audit = after(ll_audit_interval);
	TimestampTz purge = after(ll_purge_interval);

	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	for (int i = 0; i < LL_BOARD_DATABASES; i++)
	{
		LLBoardDatabase *entry = &ll_board->database[i];
		LLBoardWorker *worker = &entry->worker[LL_WORKER_REPAYMENT];

		if (!OidIsValid(entry->database) || entry->presence != LL_PRESENT)
			continue;
		sooner(&entry->job[LL_JOB_AUDIT], audit);
		sooner(&entry->job[LL_JOB_PURGE_RESERVATIONS], purge);
		sooner(&entry->job[LL_JOB_PURGE_USAGE], purge);
		sooner(&entry->job[LL_JOB_PURGE_BUDGETS], purge);
		worker->wake_at = Min(worker->wake_at, Min(audit, purge));
		if (worker->latch != NULL)
			SetLatch(worker->latch);
	}
	LWLockRelease(ll_board->lock);
}

/* ---- the process -------------------------------------------------------- */

static void
leave(int code, Datum arg)
{
	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	ll_board->launcher = NULL;
	ll_board->launcher_pid = 0;
	LWLockRelease(ll_board->lock);
}

static void
enter(void)
{
	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	ll_board->launcher = MyLatch;
	ll_board->launcher_pid = MyProcPid;
	ll_board->rescan = true;
	/* the one before may have died in between: who was registered has entered, or never will */
	for (int i = 0; i < LL_BOARD_DATABASES; i++)
		for (int kind = 0; kind < LL_WORKER_KINDS; kind++)
			ll_board->database[i].worker[kind].registered = false;
	LWLockRelease(ll_board->lock);
	before_shmem_exit(leave, (Datum) 0);
}

/* limitledger_launcher_main is the launcher. */
void
limitledger_launcher_main(Datum arg)
{
	TimestampTz scanned_at = 0;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGINT, SIG_IGN);	/* it runs nothing that could be cancelled */
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	enter();

	while (!ShutdownRequestPending)
	{
		int64		sleep = LONGEST_SLEEP;

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			reschedule();
		}
		if (ll_workers_on)
		{
			if (ll_board->rescan || ll_left(scanned_at + ll_worker_probe_interval * USECS_PER_SEC,
											GetCurrentTimestamp()) == 0)
			{
				scanned_at = GetCurrentTimestamp();
				rescan();
			}
			pgstat_report_activity(STATE_RUNNING, "starting workers");
			sleep = start_due();
		}
		pgstat_report_activity(STATE_IDLE, ll_workers_on ? "waiting for what is due next"
							   : "limitledger.workers is off");
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Max(1, (sleep + 999) / 1000), PG_WAIT_EXTENSION);
	}
	proc_exit(1);				/* 0 would mean that it is never wanted again */
}
