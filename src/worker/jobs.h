/*
 * jobs.h
 *	  What a worker does, one short step a job.
 */
#ifndef LL_WORKER_JOBS_H
#define LL_WORKER_JOBS_H

#include "postgres.h"

#include "worker.h"

/* A worker's view of its database.  What has to outlive a step is in `context`. */
typedef struct LLWork
{
	MemoryContext context;
	LLBoardDatabase *board;

	/* the extension, as the step under way has found it */
	Oid			extension;
	char	   *schema;
	Oid			owner;
	Oid			function;		/* one of its functions */

	TimestampTz sweep_from[LL_JOBS];	/* where a backlog goes on; 0: at the beginning */

	/* where the walk over the pairs that owe has come, and what it has seen */
	char	   *after_subject;
	char	   *after_route;
	TimestampTz debt_due_at;
	bool		debt_left;

	/* where each purge goes on, if it stopped for its limit: a generation, and an instant in it */
	struct
	{
		bool		going;
		int64		generation;
		TimestampTz instant;
	}			purge[LL_JOBS];
} LLWork;

/* What a step says. */
typedef struct LLStep
{
	int64		rows;			/* that it did */
	bool		more;			/* go on at once */
	bool		left;			/* something is due, but locked */
	TimestampTz due_at;			/* the next one, by the ledger's clock */
	TimestampTz next_at;		/* not before, by the server's clock; 0: when due */
	int64		late_us;		/* how long after its deadline the work began */
	bool		done;			/* worth noting though it did nothing */
} LLStep;

typedef struct LLJob
{
	bool		by_interval;	/* not by deadlines */
	void		(*step) (LLWork *work, LLStep *step);
} LLJob;

extern const LLJob ll_jobs[LL_JOBS];

extern bool ll_find_extension(LLWork *work);

#endif							/* LL_WORKER_JOBS_H */
