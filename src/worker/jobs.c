/*
 * jobs.c
 *	  What a worker does: the steps of maintain(), and the audit.
 *
 * A step runs in a transaction of its own, as the owner of the extension, does
 * one bounded batch, waits for no row, and says when there will be more.  What
 * it finds locked it leaves, so that a pair which an idle client holds delays
 * no other (F3).  A job is a line of ll_jobs, and one of board.c.
 */
#include "postgres.h"

#include "jobs.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "errors.h"
#include "executor/spi.h"
#include "ledger/ledger.h"
#include "ledger/local.h"
#include "miscadmin.h"
#include "parser/parse_func.h"
#include "settings.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* Debt that refill pays bit by bit is written down at least this often. */
#define REPAY_INTERVAL	(60 * USECS_PER_SEC)

/* The walk over all pairs that owe begins no sooner than this after the last. */
#define REPAY_PAUSE		(1 * USECS_PER_SEC)

/* The audit rests this many times as long as it works. */
#define AUDIT_SHARE		9

/*
 * ll_find_extension looks the extension up, by its name alone: it may have been
 * dropped, created or updated since the last step.  False: it is not there.
 */
bool
ll_find_extension(LLWork *work)
{
	Relation	relation = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			schema = InvalidOid;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum("limitledger"));
	scan = systable_beginscan(relation, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		work->extension = ((Form_pg_extension) GETSTRUCT(tuple))->oid;
		schema = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
		work->owner = ((Form_pg_extension) GETSTRUCT(tuple))->extowner;
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);

	work->schema = OidIsValid(schema) ? get_namespace_name(schema) : NULL;
	if (work->schema == NULL)
		return false;
	work->function = LookupFuncName(list_make2(makeString(work->schema),
											   makeString("ledger_clock")), 0, NULL, true);
	return OidIsValid(work->function);
}

/* ---- holds and executions (D10, D14) ------------------------------------- */

typedef struct Sweep
{
	void		(*sweep) (int32 limit, LLExpiry *expiry);
	LLState		state;			/* of the rows that it looks for */
	LLExpiry	expiry;
	LLDue		due;
} Sweep;

static void
run_sweep(void *arg)
{
	Sweep	   *s = arg;

	s->sweep(ll_worker_batch, &s->expiry);
	s->due = ll_next_due(s->state, s->expiry.from);
}

/*
 * sweep does one batch.  While a backlog lasts, the next batch begins where this
 * one did: what lies before is dead.  Once it is worked off, a batch looks at
 * everything again, so that what was locked, or came late, is not forgotten.
 */
static void
sweep(LLWork *work, LLStep *step, LLJobId job, Sweep *s)
{
	TimestampTz now = ll_now();

	s->expiry.oldest_at = LL_NEVER;
	s->expiry.from = work->sweep_from[job];
	work->sweep_from[job] = 0;	/* if this fails */
	ll_run(work->function, run_sweep, s);
	step->rows = s->expiry.claimed + s->expiry.expired + s->expiry.unknown;
	step->more = step->rows >= ll_worker_batch || s->expiry.from != 0;
	if (step->rows >= ll_worker_batch)
		work->sweep_from[job] = s->expiry.oldest_at;
	step->left = !step->more && s->due.now;
	step->due_at = s->due.next_at;
	if (step->rows > 0 && s->expiry.oldest_at < now)
		step->late_us = now - s->expiry.oldest_at;
}

static void
claim(LLWork *work, LLStep *step)
{
	Sweep		s = {.sweep = ll_claim_expiring, .state = LL_RESERVED};

	sweep(work, step, LL_JOB_CLAIM, &s);
}

static void
finish(LLWork *work, LLStep *step)
{
	Sweep		s = {.sweep = ll_finish_expiring, .state = LL_EXPIRING};

	sweep(work, step, LL_JOB_FINISH, &s);
}

static void
executions(LLWork *work, LLStep *step)
{
	Sweep		s = {.sweep = ll_expire_executions, .state = LL_STARTED};

	sweep(work, step, LL_JOB_EXECUTIONS, &s);
}

/* ---- shards of a gateway (G5, G6) ------------------------------------------ */

static void
run_shards(void *arg)
{
	ll_sweep_local_shards(arg);
}

/* shards ends what time ends on a gateway, and begins its boot after a start of the server. */
static void
shards(LLWork *work, LLStep *step)
{
	LLShardSweep s = {.limit = ll_worker_batch};
	TimestampTz now = ll_now();

	ll_run(work->function, run_shards, &s);
	step->rows = s.expired + s.unknown + s.sealed;
	step->more = s.more;
	step->left = !s.more && s.left;
	step->due_at = s.next_at;
	if (step->rows > 0 && s.oldest_at < now)
		step->late_us = now - s.oldest_at;
}

/* ---- debt (E2, E3) -------------------------------------------------------- */

typedef struct Repayment
{
	Datum		subject;
	Datum		route;
	LLDebtors	debtors;
} Repayment;

static void
run_repayment(void *arg)
{
	Repayment  *r = arg;

	ll_repay_debtors(ll_worker_batch, r->subject, r->route, &r->debtors);
}

static char *
keep(LLWork *work, char **old, Datum value)
{
	if (*old != NULL)
		pfree(*old);
	return value == 0 ? NULL : MemoryContextStrdup(work->context, TextDatumGetCString(value));
}

/*
 * repay walks over all pairs that owe, a batch a step.  The next walk is due
 * when refill has freed the first pair of its debt, or an epoch of one ends;
 * and soon, if a pair was locked.
 */
static void
repay(LLWork *work, LLStep *step)
{
	Repayment	r = {0};

	r.subject = CStringGetTextDatum(work->after_subject != NULL ? work->after_subject : "");
	r.route = CStringGetTextDatum(work->after_route != NULL ? work->after_route : "");
	if (work->after_subject == NULL)
	{
		work->debt_due_at = LL_NEVER;
		work->debt_left = false;
	}
	r.debtors.next_at = LL_NEVER;
	ll_run(work->function, run_repayment, &r);
	work->after_subject = keep(work, &work->after_subject, r.debtors.last_subject);
	work->after_route = keep(work, &work->after_route, r.debtors.last_route);
	work->debt_due_at = Min(work->debt_due_at, r.debtors.next_at);
	work->debt_left |= r.debtors.busy;

	step->rows = r.debtors.pairs;
	step->more = work->after_subject != NULL;
	if (step->more)
		return;
	step->left = work->debt_left;
	step->due_at = work->debt_due_at;
	if (step->due_at != LL_NEVER)
	{
		TimestampTz now = ll_now();

		step->due_at = Min(Max(step->due_at, now + REPAY_PAUSE), now + REPAY_INTERVAL);
	}
}

/* ---- retention (D15) ------------------------------------------------------- */

typedef struct Purge
{
	void		(*script) (LLPurge *purge);
	LLPurge		purge;
} Purge;

static void
run_purge(void *arg)
{
	Purge	   *p = arg;

	p->script(&p->purge);
}

/*
 * purge goes on where its last step stopped for its limit, so that it does not
 * read again what no vacuum has removed yet.  What it left locked comes with
 * the next purge.
 */
static void
purge(LLWork *work, LLStep *step, LLJobId job, void (*script) (LLPurge *purge))
{
	Purge		p = {.script = script};

	step->next_at = LL_NEVER;
	if (ll_purge_interval == 0)
		return;
	p.purge.limit = ll_worker_batch;
	p.purge.from_generation = work->purge[job].going ? work->purge[job].generation : 0;
	p.purge.from_instant = work->purge[job].going ? work->purge[job].instant : LL_NO_TIME;
	ll_run(work->function, run_purge, &p);
	work->purge[job].going = p.purge.more;
	work->purge[job].generation = p.purge.next_generation;
	work->purge[job].instant = p.purge.next_instant;
	step->rows = p.purge.purged;
	step->more = p.purge.more;
	step->next_at = GetCurrentTimestamp() + (p.purge.more ? 0 : ll_purge_interval * USECS_PER_SEC);
}

static void
purge_reservations(LLWork *work, LLStep *step)
{
	purge(work, step, LL_JOB_PURGE_RESERVATIONS, ll_purge_reservations);
}

static void
purge_usage(LLWork *work, LLStep *step)
{
	purge(work, step, LL_JOB_PURGE_USAGE, ll_purge_usage);
}

static void
purge_budgets(LLWork *work, LLStep *step)
{
	purge(work, step, LL_JOB_PURGE_BUDGETS, ll_purge_budgets);
}

/* ---- the audit (C2) -------------------------------------------------------- */

/* one row of one statement over our own schema; its first value, or NULL */
static char *
ask(LLWork *work, const char *sql, int count, const char *const *arguments)
{
	Oid			types[2] = {TEXTOID, TEXTOID};
	Datum		values[2] = {0};
	char		nulls[3] = "nn";
	StringInfoData statement;

	for (int i = 0; i < count; i++)
		if (arguments[i] != NULL)
		{
			values[i] = CStringGetTextDatum(arguments[i]);
			nulls[i] = ' ';
		}
	initStringInfo(&statement);
	appendStringInfo(&statement, sql, quote_identifier(work->schema));
	if (SPI_execute_with_args(statement.data, count, types, values, nulls, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "limitledger's worker could not ask: %s", statement.data);
	return SPI_processed == 0 ? NULL
		: SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

/* report_audit tells the log what a whole audit has found: rules, and no values (I2). */
static void
report_audit(int64 discrepancies, const char *rules)
{
	if (discrepancies > 0)
		ereport(WARNING,
				(errcode(LL_ERRCODE_INVARIANT),
				 errmsg("limitledger: the audit of database \"%s\" found %lld discrepancies",
						get_database_name(MyDatabaseId), (long long) discrepancies),
				 errdetail("Rules: %s.", rules),
				 errhint("SELECT * FROM verify_conservation() in that database.")));
}

/*
 * audit proves the rules for the next subjects.  A snapshot a batch, and most
 * of the time none, so that no audit holds back a vacuum or takes a core.  How
 * far it has come is on the board: it outlives the worker.
 */
static void
audit(LLWork *work, LLStep *step)
{
	TimestampTz from = GetCurrentTimestamp();
	TimestampTz to;
	const char *range[2] = {work->board->audited[0] != '\0' ? work->board->audited : NULL, NULL};
	char	   *found;
	char	   *rules;

	step->next_at = LL_NEVER;
	if (ll_audit_interval == 0)
		return;
	SPI_connect();
	range[1] = ask(work, psprintf("SELECT subject FROM ("
								  "(SELECT subject FROM %%1$s.head_budget WHERE subject > coalesce($1, '') ORDER BY subject LIMIT %1$d)"
								  " UNION ALL "
								  "(SELECT subject FROM %%1$s.local_shard WHERE subject > coalesce($1, '') ORDER BY subject LIMIT %1$d)"
								  ") AS s ORDER BY subject OFFSET %2$d LIMIT 1",
								  ll_worker_batch, ll_worker_batch - 1), 1, range);
	found = ask(work, "SELECT count(*) FROM %s.verify_subjects($1, $2)", 2, range);
	work->board->discrepancies += strtoi64(found, NULL, 10);
	rules = strcmp(found, "0") == 0 ? NULL
		: ask(work, "SELECT string_agg(DISTINCT rule, ', ') FROM %s.verify_subjects($1, $2)", 2, range);
	report_audit(strtoi64(found, NULL, 10), rules);
	strlcpy(work->board->audited, range[1] != NULL ? range[1] : "", sizeof(work->board->audited));
	SPI_finish();

	to = GetCurrentTimestamp();
	step->next_at = to + (work->board->audited[0] != '\0'
						  ? Min(AUDIT_SHARE * (to - from), USECS_PER_SEC)
						  : ll_audit_interval * USECS_PER_SEC);
	step->done = work->board->audited[0] == '\0';
	if (step->done)
	{
		step->rows = work->board->discrepancies;
		work->board->discrepancies = 0;
	}
}

const LLJob ll_jobs[LL_JOBS] = {
	[LL_JOB_CLAIM] = {false, claim},
	[LL_JOB_FINISH] = {false, finish},
	[LL_JOB_EXECUTIONS] = {false, executions},
	[LL_JOB_SHARDS] = {false, shards},
	[LL_JOB_REPAY] = {false, repay},
	[LL_JOB_PURGE_RESERVATIONS] = {true, purge_reservations},
	[LL_JOB_PURGE_USAGE] = {true, purge_usage},
	[LL_JOB_PURGE_BUDGETS] = {true, purge_budgets},
	[LL_JOB_AUDIT] = {true, audit},
};
