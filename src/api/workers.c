/*
 * workers.c
 *	  What the background workers of this database did, as rows.
 *
 * Reads the board alone: no table, and a lock that is held for microseconds.
 */
#include "postgres.h"

#include "board.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(limitledger_worker_status);

/* status says in a word how a job stands; entry is NULL if nobody was here. */
static const char *
status(const LLBoardDatabase *entry, LLJobId job)
{
	const LLBoardWorker *worker;

	if (ll_board == NULL)
		return "not_preloaded";
	if (strcmp(GetConfigOption("limitledger.workers", false, false), "on") != 0)
		return "off";
	if (entry == NULL || entry->presence != LL_PRESENT)
		return "unknown";
	worker = &entry->worker[ll_job_kind(job)];
	if (entry->job[job].failures > 0)
		return "failing";
	if (worker->pid == 0)
		return "away";
	return worker->doing == job + 1 ? "working" : "waiting";
}

/* next_at is the earlier of the worker's deadline and the job's own interval. */
static TimestampTz
next_at(LLBoardDatabase *entry, LLJobId job)
{
	TimestampTz own = entry->job[job].next_at;

	return own != 0 ? own : ll_board_due(&entry->worker[ll_job_kind(job)]);
}

static void
put_time(Datum *value, bool *null, TimestampTz at)
{
	*null = at == 0 || at == LL_NEVER || at == LL_AT_ONCE;
	*value = TimestampTzGetDatum(at);
}

/* put_line adds the row of one job. */
static void
put_line(ReturnSetInfo *set, LLBoardDatabase *entry, LLJobId job)
{
	static const LLBoardJob nothing = {0};
	const LLBoardJob *line = entry != NULL ? &entry->job[job] : &nothing;
	pid_t		pid = entry != NULL ? entry->worker[ll_job_kind(job)].pid : 0;
	Interval	lag = {.time = line->late_us};
	Datum		values[12];
	bool		nulls[12] = {false};

	values[0] = CStringGetTextDatum(ll_job_name(job));
	values[1] = CStringGetTextDatum(ll_worker_type(ll_job_kind(job)));
	values[2] = Int32GetDatum(pid);
	nulls[2] = pid == 0;
	values[3] = CStringGetTextDatum(status(entry, job));
	put_time(&values[4], &nulls[4], entry != NULL ? next_at(entry, job) : 0);
	put_time(&values[5], &nulls[5], line->last_run_at);
	values[6] = Int64GetDatum(line->last_rows);
	nulls[6] = nulls[5];
	values[7] = Int64GetDatum(line->total_rows);
	values[8] = IntervalPGetDatum(&lag);
	nulls[8] = line->late_us == 0;
	values[9] = Int32GetDatum(line->failures);
	put_time(&values[11], &nulls[11], line->last_error_at);
	nulls[10] = nulls[11];
	values[10] = nulls[10] ? (Datum) 0 : CStringGetTextDatum(unpack_sql_state(line->last_error));
	tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
}

/* limitledger_worker_status shows a row for each job. */
Datum
limitledger_worker_status(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	LLBoardDatabase *found;
	LLBoardDatabase *entry = palloc(sizeof(LLBoardDatabase));
	bool		known = false;

	InitMaterializedSRF(fcinfo, 0);
	if (ll_board != NULL)
	{
		/* a copy: nothing that may fail runs under the lock */
		LWLockAcquire(ll_board->lock, LW_SHARED);
		found = ll_board_find(MyDatabaseId);
		known = found != NULL;
		if (known)
			memcpy(entry, found, sizeof(*entry));
		LWLockRelease(ll_board->lock);
	}
	for (int job = 0; job < LL_JOBS; job++)
		put_line(set, known ? entry : NULL, job);
	return (Datum) 0;
}
