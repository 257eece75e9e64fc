/*
 * purge.c
 *	  The steps of retention, as SQL calls (D15).
 */
#include "postgres.h"

#include "answer.h"
#include "args.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(limitledger_purge_reservations);
PG_FUNCTION_INFO_V1(limitledger_purge_usage);
PG_FUNCTION_INFO_V1(limitledger_purge_budgets);

static void
run_reservations(void *arg)
{
	ll_purge_reservations(arg);
}

static void
run_usage(void *arg)
{
	ll_purge_usage(arg);
}

static void
run_budgets(void *arg)
{
	ll_purge_budgets(arg);
}

/* step runs one of them from where the caller says, and says where to go on. */
static Datum
step(FunctionCallInfo fcinfo, const char *name, void (*script) (void *arg))
{
	LLPurge		purge = {0};
	Datum		values[4];
	bool		nulls[4] = {false};

	ll_answer_writes(name);
	ll_refuse_bound(fcinfo, name);
	purge.limit = ll_arg_batch_limit(ll_arg(fcinfo, 0, "batch_limit"));
	purge.from_generation = PG_ARGISNULL(1) ? 0 : PG_GETARG_INT64(1);
	purge.from_instant = PG_ARGISNULL(2) ? LL_NO_TIME : PG_GETARG_TIMESTAMPTZ(2);
	ll_run(fcinfo->flinfo->fn_oid, script, &purge);
	values[0] = Int64GetDatum(purge.purged);
	values[1] = Int64GetDatum(purge.units);
	values[2] = Int64GetDatum(purge.next_generation);
	values[3] = TimestampTzGetDatum(purge.next_instant);
	nulls[2] = nulls[3] = !purge.more;
	return ll_answer_row(fcinfo, values, nulls);
}

/* limitledger_purge_reservations deletes reservations that ended long enough ago. */
Datum
limitledger_purge_reservations(PG_FUNCTION_ARGS)
{
	return step(fcinfo, "purge_reservations()", run_reservations);
}

/* limitledger_purge_usage deletes records of usage that was never reserved. */
Datum
limitledger_purge_usage(PG_FUNCTION_ARGS)
{
	return step(fcinfo, "purge_usage()", run_usage);
}

/* limitledger_purge_budgets deletes closed budgets that no row tells of. */
Datum
limitledger_purge_budgets(PG_FUNCTION_ARGS)
{
	return step(fcinfo, "purge_budgets()", run_budgets);
}
