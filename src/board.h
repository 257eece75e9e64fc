/*
 * board.h
 *	  What is due next in which database: shared by sessions and workers.
 *
 * Only a preloaded library has a board.  A session that commits a deadline
 * lowers the instant at which the database's worker has to be there; workers
 * and their launcher read it, and write down what they did.  Nothing that the
 * ledger decides rests on it (J4).
 *
 * Why no wake-up is lost: a worker clears its due instant before it looks into
 * the tables, and a session lowers it after its rows can be seen.  Whatever the
 * look has missed was committed after it began, and lowers what was cleared.
 * A session wakes the worker that it sees, or the launcher; a worker that
 * leaves wakes the launcher, which then reads what the session has lowered.
 * A deadline of a transaction that rolled back (a savepoint, say) wakes
 * somebody for nothing.
 *
 * Locks: `lock` covers all but due_at, which is atomic.  In the common case,
 * that something else is due sooner, a commit reads one word.
 */
#ifndef LL_BOARD_H
#define LL_BOARD_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/lwlock.h"

#define LL_BOARD_DATABASES	512

#define LL_NEVER	PG_INT64_MAX	/* as an instant */
#define LL_AT_ONCE	PG_INT64_MIN

typedef enum LLWorkerKind
{
	LL_WORKER_EXPIRY,
	LL_WORKER_REPAYMENT
} LLWorkerKind;
#define LL_WORKER_KINDS	(LL_WORKER_REPAYMENT + 1)

/* What workers do, in the order in which they do it. */
typedef enum LLJobId
{
	LL_JOB_CLAIM,
	LL_JOB_FINISH,
	LL_JOB_EXECUTIONS,
	LL_JOB_SHARDS,
	LL_JOB_REPAY,
	LL_JOB_PURGE_RESERVATIONS,
	LL_JOB_PURGE_USAGE,
	LL_JOB_PURGE_BUDGETS,
	LL_JOB_AUDIT
} LLJobId;
#define LL_JOBS	(LL_JOB_AUDIT + 1)

/* Whether the extension is in a database. */
typedef enum LLPresence
{
	LL_UNPROBED,
	LL_MISSING,
	LL_PRESENT
} LLPresence;

/* One worker of a database, running or not. */
typedef struct LLBoardWorker
{
	pg_atomic_uint64 due_at;	/* by the ledger's clock: when something may be due */

	/* by the server's clock */
	TimestampTz wake_at;		/* when it has to be there in any case */
	TimestampTz start_after;	/* it is not started again before */
	TimestampTz left_at;		/* when the last one left */

	bool		registered;		/* the launcher has asked for it */
	pid_t		pid;			/* 0: none */
	Latch	   *latch;
	int			doing;			/* the job whose step runs, plus 1; 0: none */
	int			failures;		/* how often in a row it died */
} LLBoardWorker;

/* What one job did in a database. */
typedef struct LLBoardJob
{
	TimestampTz next_at;		/* not before, by the server's clock; 0: when due */
	TimestampTz last_run_at;	/* of a step that did something, or of an audit */
	int64		last_rows;
	int64		total_rows;
	int64		late_us;		/* how long after its deadline the last work began */
	int			failures;		/* in a row */
	int			last_error;		/* SQLSTATE, as packed by MAKE_SQLSTATE */
	TimestampTz last_error_at;
} LLBoardJob;

typedef struct LLBoardDatabase
{
	Oid			database;		/* InvalidOid: not in use */
	LLPresence	presence;
	bool		changed;		/* an extension of it changed: look again */
	TimestampTz known_since;	/* if the extension is present */
	TimestampTz probe_at;		/* if the extension is missing */
	TimestampTz away_until;		/* no worker may be there: somebody drops or copies it */
	LLBoardWorker worker[LL_WORKER_KINDS];
	LLBoardJob	job[LL_JOBS];
	char		audited[260];	/* up to this subject; "": not begun */
	int64		discrepancies;	/* that this audit has found so far */
} LLBoardDatabase;

typedef struct LLBoard
{
	LWLock	   *lock;
	pid_t		launcher_pid;	/* 0: none */
	Latch	   *launcher;
	bool		rescan;			/* databases came or went */
	bool		full;			/* there are more than it has room for */
	bool		crowded;		/* somebody waits for a worker to leave */
	LLBoardDatabase database[LL_BOARD_DATABASES];
} LLBoard;

extern LLBoard *ll_board;		/* NULL: the library was not preloaded */

extern const char *ll_worker_type(LLWorkerKind kind);
extern const char *ll_job_name(LLJobId job);
extern LLWorkerKind ll_job_kind(LLJobId job);

extern void ll_board_init(void);
extern void ll_board_mute(void);
extern void ll_board_note(LLWorkerKind kind, TimestampTz at);
extern void ll_board_note_extension(void);
extern void ll_board_note_databases(void);

extern LLBoardDatabase *ll_board_find(Oid database);
extern void ll_board_wake_launcher(void);
extern bool ll_board_lower(LLBoardWorker *worker, TimestampTz at);

static inline TimestampTz
ll_board_due(LLBoardWorker *worker)
{
	return (TimestampTz) pg_atomic_read_u64(&worker->due_at);
}

#endif							/* LL_BOARD_H */
