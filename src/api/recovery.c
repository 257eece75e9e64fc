/*
 * recovery.c
 *	  Whether this database is the original, as SQL calls (G7).
 */
#include "postgres.h"

#include "answer.h"
#include "args.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

PG_FUNCTION_INFO_V1(limitledger_recovery_status);
PG_FUNCTION_INFO_V1(limitledger_recovery_look);
PG_FUNCTION_INFO_V1(limitledger_recovery_acknowledge);

typedef struct Call
{
	Datum		actor;
	Datum		reason;
	LLRecoveryView view;
	LLRecovery	status;
	pg_uuid_t	incarnation;
} Call;

static void
run_status(void *arg)
{
	Call	   *call = arg;

	ll_recovery_show(&call->view);
}

static void
run_look(void *arg)
{
	Call	   *call = arg;

	call->status = ll_recovery_look();
}

static void
run_acknowledge(void *arg)
{
	Call	   *call = arg;

	ll_recovery_acknowledge(call->actor, call->reason, &call->view, &call->incarnation);
}

/* limitledger_recovery_status shows how it stands, on a standby too. */
Datum
limitledger_recovery_status(PG_FUNCTION_ARGS)
{
	Call		call = {0};
	const LLRecoveryView *view = &call.view;
	Datum		values[5];
	bool		nulls[5];

	ll_run(fcinfo->flinfo->fn_oid, run_status, &call);
	values[0] = ll_answer_text(view->standby ? "standby" : ll_recovery_name(view->status), &nulls[0]);
	values[1] = ll_answer_text(view->detail, &nulls[1]);
	values[2] = UUIDPGetDatum(&view->incarnation);
	values[3] = Int32GetDatum((int32) view->timeline);
	values[4] = TimestampTzGetDatum(view->acknowledged_at);
	nulls[2] = nulls[3] = nulls[4] = !view->acknowledged;
	return ll_answer_row(fcinfo, values, nulls);
}

/* limitledger_recovery_look is the look of calls that write, for those written in SQL. */
Datum
limitledger_recovery_look(PG_FUNCTION_ARGS)
{
	Call		call = {0};

	ll_answer_writes("recovery_look()");
	ll_run(fcinfo->flinfo->fn_oid, run_look, &call);
	PG_RETURN_TEXT_P(cstring_to_text(ll_recovery_name(call.status)));
}

/* limitledger_recovery_acknowledge does the part of acknowledge_recovery that has the file. */
Datum
limitledger_recovery_acknowledge(PG_FUNCTION_ARGS)
{
	Call		call = {0};
	Datum		values[2];
	bool		nulls[2] = {false};

	ll_answer_writes("acknowledge_recovery()");
	call.actor = PG_GETARG_DATUM(0);
	call.reason = PG_GETARG_DATUM(1);
	ll_run(fcinfo->flinfo->fn_oid, run_acknowledge, &call);
	values[0] = CStringGetTextDatum(ll_recovery_name(call.view.status));
	values[1] = UUIDPGetDatum(&call.incarnation);
	return ll_answer_row(fcinfo, values, nulls);
}
