/*
 * board.c
 *	  What is due next in which database.  See board.h.
 */
#include "postgres.h"

#include "board.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#define TRANCHE	"limitledger"

LLBoard    *ll_board = NULL;

static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

/* What this transaction has to say once it has committed. */
static struct
{
	bool		any;
	TimestampTz due_at[LL_WORKER_KINDS];
	bool		extension;		/* an extension came, changed or went */
	bool		databases;		/* databases did */
}			noted = {.due_at = {LL_NEVER, LL_NEVER}};

static bool muted = false;

/* A job bears the name of the call that does the same by hand. */
static const struct
{
	const char *name;
	LLWorkerKind kind;
}			jobs[LL_JOBS] = {
	[LL_JOB_CLAIM] = {"claim_expiring", LL_WORKER_EXPIRY},
	[LL_JOB_FINISH] = {"finish_expiring", LL_WORKER_EXPIRY},
	[LL_JOB_EXECUTIONS] = {"expire_executions", LL_WORKER_EXPIRY},
	[LL_JOB_SHARDS] = {"sweep_shards", LL_WORKER_EXPIRY},
	[LL_JOB_REPAY] = {"repay_debtors", LL_WORKER_REPAYMENT},
	[LL_JOB_PURGE_RESERVATIONS] = {"purge_reservations", LL_WORKER_REPAYMENT},
	[LL_JOB_PURGE_USAGE] = {"purge_usage", LL_WORKER_REPAYMENT},
	[LL_JOB_PURGE_BUDGETS] = {"purge_budgets", LL_WORKER_REPAYMENT},
	[LL_JOB_AUDIT] = {"verify_conservation", LL_WORKER_REPAYMENT},
};

/* ll_worker_type names a kind as pg_stat_activity shows it. */
const char *
ll_worker_type(LLWorkerKind kind)
{
	static const char *const types[LL_WORKER_KINDS] = {
		[LL_WORKER_EXPIRY] = "limitledger expiry",
		[LL_WORKER_REPAYMENT] = "limitledger repayment"
	};

	return types[kind];
}

const char *
ll_job_name(LLJobId job)
{
	return jobs[job].name;
}

/* ll_job_kind says whose job it is. */
LLWorkerKind
ll_job_kind(LLJobId job)
{
	return jobs[job].kind;
}

static void
request(void)
{
	if (previous_request != NULL)
		previous_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(LLBoard)));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

static void
startup(void)
{
	bool		found;

	if (previous_startup != NULL)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	ll_board = ShmemInitStruct("limitledger board", sizeof(LLBoard), &found);
	if (!found)
	{
		memset(ll_board, 0, sizeof(LLBoard));
		ll_board->lock = &GetNamedLWLockTranche(TRANCHE)->lock;
		ll_board->rescan = true;
		for (int i = 0; i < LL_BOARD_DATABASES; i++)
			for (int kind = 0; kind < LL_WORKER_KINDS; kind++)
				pg_atomic_init_u64(&ll_board->database[i].worker[kind].due_at, LL_NEVER);
	}
	LWLockRelease(AddinShmemInitLock);
}

/* ll_board_find gives the entry of a database, or NULL. */
LLBoardDatabase *
ll_board_find(Oid database)
{
	static int	last = 0;		/* a session stays in its database */

	if (ll_board->database[last].database == database)
		return &ll_board->database[last];
	for (int i = 0; i < LL_BOARD_DATABASES; i++)
		if (ll_board->database[i].database == database)
		{
			last = i;
			return &ll_board->database[i];
		}
	return NULL;
}

/* ll_board_wake_launcher wants the lock held: a latch is read under it. */
void
ll_board_wake_launcher(void)
{
	if (ll_board->launcher != NULL)
		SetLatch(ll_board->launcher);
}

/* ll_board_lower makes something due earlier; false: it was as early already. */
bool
ll_board_lower(LLBoardWorker *worker, TimestampTz at)
{
	uint64		seen = pg_atomic_read_u64(&worker->due_at);

	while (at < (TimestampTz) seen)
		if (pg_atomic_compare_exchange_u64(&worker->due_at, &seen, (uint64) at))
			return true;
	return false;
}

static void
announce_due(LLBoardDatabase *database, LLWorkerKind kind)
{
	LLBoardWorker *worker = &database->worker[kind];

	if (!ll_board_lower(worker, noted.due_at[kind]))
		return;
	LWLockAcquire(ll_board->lock, LW_SHARED);
	if (worker->latch != NULL)
		SetLatch(worker->latch);
	else
		ll_board_wake_launcher();
	LWLockRelease(ll_board->lock);
}

/* announce tells what was noted, now that everybody can see the rows. */
static void
announce(void)
{
	LLBoardDatabase *database = ll_board_find(MyDatabaseId);
	bool		look = noted.extension || noted.databases;

	for (int kind = 0; kind < LL_WORKER_KINDS; kind++)
		if (database != NULL && noted.due_at[kind] != LL_NEVER)
			announce_due(database, kind);
	/* A ledger that nobody knew of?  Say so once. */
	if (database == NULL)
		look |= !ll_board->rescan && !ll_board->full;
	else
		look |= database->presence != LL_PRESENT && !database->changed;
	if (!look)
		return;
	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	ll_board->rescan |= noted.databases || database == NULL;
	if (database != NULL)
	{
		database->changed = true;
		for (int kind = 0; kind < LL_WORKER_KINDS; kind++)
			if (database->worker[kind].latch != NULL)
				SetLatch(database->worker[kind].latch);
	}
	ll_board_wake_launcher();
	LWLockRelease(ll_board->lock);
}

/* on_transaction runs after the commit: nothing in it may fail. */
static void
on_transaction(XactEvent event, void *arg)
{
	if (!noted.any || ll_board == NULL)
		return;
	if (event == XACT_EVENT_COMMIT)
		announce();
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
	{
		noted.any = noted.extension = noted.databases = false;
		for (int kind = 0; kind < LL_WORKER_KINDS; kind++)
			noted.due_at[kind] = LL_NEVER;
	}
}

/* ll_board_init asks for the board's memory; for _PG_init while preloading. */
void
ll_board_init(void)
{
	previous_request = shmem_request_hook;
	shmem_request_hook = request;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = startup;
	RegisterXactCallback(on_transaction, NULL);
}

/* ll_board_mute is for workers, which know what they have left to do. */
void
ll_board_mute(void)
{
	muted = true;
}

/* ll_board_note: if this transaction commits, something is due at this instant. */
void
ll_board_note(LLWorkerKind kind, TimestampTz at)
{
	if (ll_board == NULL || muted || at >= noted.due_at[kind])
		return;
	noted.any = true;
	noted.due_at[kind] = at;
}

/* ll_board_note_extension: if it commits, an extension came, changed or went. */
void
ll_board_note_extension(void)
{
	noted.any = noted.extension = true;
}

/* ll_board_note_databases: if it commits, databases came or went. */
void
ll_board_note_databases(void)
{
	noted.any = noted.databases = true;
}
