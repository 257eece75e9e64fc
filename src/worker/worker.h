/*
 * worker.h
 *	  What _PG_init and the background workers know of one another.
 *
 * The launcher (launcher.c) starts, for a database in which something is due,
 * up to two workers (loop.c); each does its jobs (jobs.c) and leaves.  DDL that
 * needs a database without sessions asks them to leave (ddl.c).
 */
#ifndef LL_WORKER_WORKER_H
#define LL_WORKER_WORKER_H

#include "postgres.h"

#include "board.h"

/* What the launcher tells a worker, in bgw_extra. */
typedef struct LLErrand
{
	int			entry;			/* of the board */
	Oid			database;
	LLWorkerKind kind;
} LLErrand;

extern void ll_launcher_init(void);
extern void ll_ddl_init(void);

extern PGDLLEXPORT void limitledger_launcher_main(Datum arg);
extern PGDLLEXPORT void limitledger_worker_main(Datum arg);

/* ll_left says how long, in us, until an instant; a day stands for anything longer. */
static inline int64
ll_left(TimestampTz at, TimestampTz now)
{
	if (at <= now)
		return 0;
	return at >= now + USECS_PER_DAY ? USECS_PER_DAY : at - now;
}

#endif							/* LL_WORKER_WORKER_H */
