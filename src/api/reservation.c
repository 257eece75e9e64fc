/*
 * reservation.c
 *	  The life of a reservation, as SQL calls: arguments in, script, receipt out.
 */
#include "postgres.h"

#include "answer.h"
#include "args.h"
#include "catalog/pg_type.h"
#include "errors.h"
#include "frame.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(limitledger_reserve_capacity);
PG_FUNCTION_INFO_V1(limitledger_reserve_capacity_batch);
PG_FUNCTION_INFO_V1(limitledger_start_reservation);
PG_FUNCTION_INFO_V1(limitledger_start_reservation_batch);
PG_FUNCTION_INFO_V1(limitledger_settle_usage);
PG_FUNCTION_INFO_V1(limitledger_settle_usage_batch);
PG_FUNCTION_INFO_V1(limitledger_release_reservation);
PG_FUNCTION_INFO_V1(limitledger_release_reservation_batch);
PG_FUNCTION_INFO_V1(limitledger_report_usage_unknown);
PG_FUNCTION_INFO_V1(limitledger_report_progress);
PG_FUNCTION_INFO_V1(limitledger_extend_reservation);
PG_FUNCTION_INFO_V1(limitledger_record_usage);
PG_FUNCTION_INFO_V1(limitledger_record_usage_batch);
PG_FUNCTION_INFO_V1(limitledger_import_usage);
PG_FUNCTION_INFO_V1(limitledger_import_usage_batch);
PG_FUNCTION_INFO_V1(limitledger_get_reservation);
PG_FUNCTION_INFO_V1(limitledger_resolve_reservation);

/* ---- reserve ------------------------------------------------------------ */

/* The arguments of a reserve, in the order of its SQL declaration. */
static const char *const reserve_names[] = {
	"subject", "route", "reservation_id", "units", "digest", "region",
	"estimator_digest", "deadline", "priority", "start_operation"
};
static const char *const reserve_batch_names[] = {
	"subjects", "routes", "reservation_ids", "units", "digests", "regions",
	"estimator_digests", "deadlines", "priorities", "start_operations"
};
static const Oid reserve_types[] = {
	TEXTOID, TEXTOID, TEXTOID, INT8OID, BYTEAOID, TEXTOID,
	BYTEAOID, TIMESTAMPTZOID, INT4OID, TEXTOID
};
#define RESERVE_ARGS		((int) lengthof(reserve_names))
#define RESERVE_MANDATORY	5

static void
check_reserve(LLReserveElement *e, const LLArg *arg)
{
	e->subject = ll_arg_subject(arg[0]);
	e->route = ll_arg_text(arg[1]);
	e->id = ll_arg_text(arg[2]);
	e->units = ll_arg_units(arg[3], 1);
	e->digest = ll_arg_digest(arg[4]);
	e->region = ll_arg_optional_text(arg[5]);
	e->estimator = ll_arg_optional_digest(arg[6]);
	e->deadline = ll_arg_optional_time(arg[7]);
	e->has_priority = !arg[8].null;
	e->priority = e->has_priority ? DatumGetInt32(arg[8].value) : 0;
	e->start_operation = ll_arg_optional_text(arg[9]);
}

static void
run_reserve(void *arg)
{
	LLFrame    *call = arg;

	ll_reserve(call->elements, call->count, call->require_all, call->receipts);
}

/*
 * limitledger_reserve_capacity admits one request, or refuses it (D2, D3).
 * Units: at least 1.  A refusal is a row; errors are for bad arguments.
 */
Datum
limitledger_reserve_capacity(PG_FUNCTION_ARGS)
{
	LLReserveElement element = {0};
	LLArg		arg[RESERVE_ARGS];
	LLFrame		call = ll_frame(&element, 1);

	ll_answer_writes("reserve_capacity()");
	for (int i = 0; i < RESERVE_ARGS; i++)
		arg[i] = ll_arg(fcinfo, i, reserve_names[i]);
	check_reserve(&element, arg);
	ll_frame_run(fcinfo, run_reserve, &call);
	return ll_frame_answer(LL_CALL_RESERVE, &call);
}

/* limitledger_reserve_capacity_batch admits many; each pair is locked once (J2). */
Datum
limitledger_reserve_capacity_batch(PG_FUNCTION_ARGS)
{
	LLArray		array[RESERVE_ARGS];
	LLArg		arg[RESERVE_ARGS];
	LLReserveElement *elements;
	LLFrame		call;
	int			count = 0;

	ll_answer_writes("reserve_capacity_batch()");
	for (int i = 0; i < RESERVE_ARGS; i++)
	{
		array[i] = ll_array(fcinfo, i, reserve_batch_names[i], reserve_types[i],
							i < RESERVE_MANDATORY);
		count = ll_array_count(&array[0], &array[i], NULL);
	}
	elements = palloc0(sizeof(LLReserveElement) * Max(count, 1));
	for (int e = 0; e < count; e++)
	{
		for (int i = 0; i < RESERVE_ARGS; i++)
			arg[i] = ll_array_arg(&array[i], e);
		check_reserve(&elements[e], arg);
	}
	call = ll_frame(elements, count);
	call.require_all = ll_arg_flag(ll_arg(fcinfo, RESERVE_ARGS, "require_all"));
	ll_frame_run(fcinfo, run_reserve, &call);
	return ll_frame_answer_all(fcinfo, LL_CALL_RESERVE, &call);
}

/* ---- start -------------------------------------------------------------- */

static void
run_start(void *arg)
{
	LLFrame    *call = arg;

	ll_start_reservations(call->elements, call->count, call->receipts);
}

/* limitledger_start_reservation: RESERVED -> STARTED, binding the operation (D5). */
Datum
limitledger_start_reservation(PG_FUNCTION_ARGS)
{
	LLStartElement element = {0};
	LLFrame		call = ll_frame(&element, 1);

	ll_answer_writes("start_reservation()");
	element.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	element.id = ll_arg_text(ll_arg(fcinfo, 1, "reservation_id"));
	element.operation = ll_arg_text(ll_arg(fcinfo, 2, "operation_id"));
	ll_frame_run(fcinfo, run_start, &call);
	return ll_frame_answer(LL_CALL_START, &call);
}

Datum
limitledger_start_reservation_batch(PG_FUNCTION_ARGS)
{
	LLArray		subjects = ll_array(fcinfo, 0, "subjects", TEXTOID, true);
	LLArray		ids = ll_array(fcinfo, 1, "reservation_ids", TEXTOID, true);
	LLArray		operations = ll_array(fcinfo, 2, "operation_ids", TEXTOID, true);
	int			count = ll_array_count(&subjects, &ids, &operations, NULL);
	LLStartElement *elements = palloc0(sizeof(LLStartElement) * Max(count, 1));
	LLFrame		call = ll_frame(elements, count);

	ll_answer_writes("start_reservation_batch()");
	for (int i = 0; i < count; i++)
	{
		elements[i].subject = ll_arg_subject(ll_array_arg(&subjects, i));
		elements[i].id = ll_arg_text(ll_array_arg(&ids, i));
		elements[i].operation = ll_arg_text(ll_array_arg(&operations, i));
	}
	ll_frame_run(fcinfo, run_start, &call);
	return ll_frame_answer_all(fcinfo, LL_CALL_START, &call);
}

/* ---- settle and release ------------------------------------------------- */

static void
run_settle(void *arg)
{
	LLFrame    *call = arg;

	ll_settle_or_release(call->elements, call->count, call->receipts);
}

static void
check_settle(LLSettleElement *e, LLArg subject, LLArg id, LLArg operation,
			 LLArg actual, LLArg digest, LLArg source)
{
	e->subject = ll_arg_subject(subject);
	e->id = ll_arg_text(id);
	e->operation = ll_arg_text(operation);
	e->actual = ll_arg_units(actual, 0);
	e->receipt_digest = ll_arg_optional_digest(digest);
	e->source = ll_arg_source(source);
	e->attested = ll_text_is(e->source, "operator");
}

/*
 * limitledger_settle_usage spends the actual units and gives the difference
 * back, once (D6).  Units: at least 0; NULL is an error, not zero.  Settling
 * what was never started is misuse by an executor, and so an error.
 */
Datum
limitledger_settle_usage(PG_FUNCTION_ARGS)
{
	LLSettleElement element = {0};
	LLFrame		call = ll_frame(&element, 1);

	ll_answer_writes("settle_usage()");
	check_settle(&element, ll_arg(fcinfo, 0, "subject"), ll_arg(fcinfo, 1, "reservation_id"),
				 ll_arg(fcinfo, 2, "operation_id"), ll_arg(fcinfo, 3, "actual"),
				 ll_arg(fcinfo, 4, "receipt_digest"), ll_arg(fcinfo, 5, "source"));
	ll_frame_run(fcinfo, run_settle, &call);
	if (call.receipts->verdict.dimension == LL_DIM_NOT_STARTED)
		ereport(ERROR,
				(errcode(LL_ERRCODE_NOT_STARTED),
				 errmsg("reservation_id names a reservation that was not started"),
				 errdetail("Its state is %s; nothing was booked.", call.receipts->state),
				 errhint("Call start_reservation first, and run only what it accepts.")));
	return ll_frame_answer(LL_CALL_SETTLE, &call);
}

Datum
limitledger_settle_usage_batch(PG_FUNCTION_ARGS)
{
	LLArray		subjects = ll_array(fcinfo, 0, "subjects", TEXTOID, true);
	LLArray		ids = ll_array(fcinfo, 1, "reservation_ids", TEXTOID, true);
	LLArray		operations = ll_array(fcinfo, 2, "operation_ids", TEXTOID, true);
	LLArray		actuals = ll_array(fcinfo, 3, "actuals", INT8OID, true);
	LLArray		digests = ll_array(fcinfo, 4, "receipt_digests", BYTEAOID, false);
	LLArray		sources = ll_array(fcinfo, 5, "sources", TEXTOID, false);
	int			count = ll_array_count(&subjects, &ids, &operations, &actuals,
									   &digests, &sources, NULL);
	LLSettleElement *elements = palloc0(sizeof(LLSettleElement) * Max(count, 1));
	LLFrame		call = ll_frame(elements, count);

	ll_answer_writes("settle_usage_batch()");
	for (int i = 0; i < count; i++)
		check_settle(&elements[i], ll_array_arg(&subjects, i), ll_array_arg(&ids, i),
					 ll_array_arg(&operations, i), ll_array_arg(&actuals, i),
					 ll_array_arg(&digests, i), ll_array_arg(&sources, i));
	ll_frame_run(fcinfo, run_settle, &call);
	return ll_frame_answer_all(fcinfo, LL_CALL_SETTLE, &call);
}

/* limitledger_release_reservation: RESERVED -> RELEASED, units back (D9). */
Datum
limitledger_release_reservation(PG_FUNCTION_ARGS)
{
	LLSettleElement element = {0};
	LLFrame		call = ll_frame(&element, 1);

	ll_answer_writes("release_reservation()");
	element.release = true;
	element.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	element.id = ll_arg_text(ll_arg(fcinfo, 1, "reservation_id"));
	ll_frame_run(fcinfo, run_settle, &call);
	return ll_frame_answer(LL_CALL_RELEASE, &call);
}

Datum
limitledger_release_reservation_batch(PG_FUNCTION_ARGS)
{
	LLArray		subjects = ll_array(fcinfo, 0, "subjects", TEXTOID, true);
	LLArray		ids = ll_array(fcinfo, 1, "reservation_ids", TEXTOID, true);
	int			count = ll_array_count(&subjects, &ids, NULL);
	LLSettleElement *elements = palloc0(sizeof(LLSettleElement) * Max(count, 1));
	LLFrame		call = ll_frame(elements, count);

	ll_answer_writes("release_reservation_batch()");
	for (int i = 0; i < count; i++)
	{
		elements[i].release = true;
		elements[i].subject = ll_arg_subject(ll_array_arg(&subjects, i));
		elements[i].id = ll_arg_text(ll_array_arg(&ids, i));
	}
	ll_frame_run(fcinfo, run_settle, &call);
	return ll_frame_answer_all(fcinfo, LL_CALL_RELEASE, &call);
}

/* ---- unknown, get, resolve ---------------------------------------------- */

static void
run_unknown(void *arg)
{
	LLFrame    *call = arg;

	ll_report_usage_unknown(call->subject, call->id, call->other, call->receipts);
}

static void
run_get(void *arg)
{
	LLFrame    *call = arg;

	ll_get_reservation(call->subject, call->id, call->receipts);
}

static void
run_resolve(void *arg)
{
	LLFrame    *call = arg;

	ll_resolve_reservation(call->subject, call->id, call->other, call->receipts);
}

/* limitledger_report_usage_unknown: STARTED -> USAGE_UNKNOWN; units stay held (D10). */
Datum
limitledger_report_usage_unknown(PG_FUNCTION_ARGS)
{
	LLFrame		call = ll_frame(NULL, 1);

	ll_answer_writes("report_usage_unknown()");
	call.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.id = ll_arg_text(ll_arg(fcinfo, 1, "reservation_id"));
	call.other = ll_arg_text(ll_arg(fcinfo, 2, "operation_id"));
	ll_frame_run(fcinfo, run_unknown, &call);
	return ll_frame_answer(LL_CALL_REPORT_UNKNOWN, &call);
}

/* limitledger_get_reservation answers by id; it decides nothing, so it is not counted (D11). */
Datum
limitledger_get_reservation(PG_FUNCTION_ARGS)
{
	LLFrame		call = ll_frame(NULL, 1);

	call.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.id = ll_arg_text(ll_arg(fcinfo, 1, "reservation_id"));
	ll_run(fcinfo->flinfo->fn_oid, run_get, &call);
	return ll_answer_receipt(call.receipts);
}

/* limitledger_resolve_reservation is the final word after a lost reply (D11). */
Datum
limitledger_resolve_reservation(PG_FUNCTION_ARGS)
{
	LLFrame		call = ll_frame(NULL, 1);

	ll_answer_writes("resolve_reservation()");
	call.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.id = ll_arg_text(ll_arg(fcinfo, 1, "reservation_id"));
	call.other = ll_arg_digest(ll_arg(fcinfo, 2, "digest"));
	ll_frame_run(fcinfo, run_resolve, &call);
	return ll_frame_answer(LL_CALL_RESOLVE, &call);
}

/* ---- long work ---------------------------------------------------------- */

static void
run_progress(void *arg)
{
	LLFrame    *call = arg;

	ll_report_usage_progress(call->subject, call->id, call->other, call->units, call->receipts);
}

static void
run_extend(void *arg)
{
	LLFrame    *call = arg;

	ll_extend_reservation(call->subject, call->id, call->other, &call->extension, call->receipts);
}

/* limitledger_report_progress records units used so far, at least 0; never falling (D10). */
Datum
limitledger_report_progress(PG_FUNCTION_ARGS)
{
	LLFrame		call = ll_frame(NULL, 1);

	ll_answer_writes("report_progress()");
	call.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.id = ll_arg_text(ll_arg(fcinfo, 1, "reservation_id"));
	call.other = ll_arg_text(ll_arg(fcinfo, 2, "operation_id"));
	call.units = ll_arg_units(ll_arg(fcinfo, 3, "units"), 0);
	ll_frame_run(fcinfo, run_progress, &call);
	return ll_frame_answer(LL_CALL_REPORT_PROGRESS, &call);
}

/*
 * limitledger_extend_reservation gives more units, at least 0, or a later
 * deadline, or both (D13).
 */
Datum
limitledger_extend_reservation(PG_FUNCTION_ARGS)
{
	LLFrame		call = ll_frame(NULL, 1);

	ll_answer_writes("extend_reservation()");
	call.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.id = ll_arg_text(ll_arg(fcinfo, 1, "reservation_id"));
	call.other = ll_arg_text(ll_arg(fcinfo, 2, "extension_id"));
	call.extension.units = ll_arg_units(ll_arg(fcinfo, 3, "units"), 0);
	call.extension.expires_at = ll_arg_optional_time(ll_arg(fcinfo, 4, "until"));
	if (call.extension.units == 0 && call.extension.expires_at == LL_NO_TIME)
		ereport(ERROR,
				(errcode(LL_ERRCODE_OTHER_ARGUMENT),
				 errmsg("units or until must say what to extend"),
				 errdetail("There are 0 units and no later deadline."),
				 errhint("Pass more units, a later deadline, or both.")));
	ll_frame_run(fcinfo, run_extend, &call);
	return ll_frame_answer(LL_CALL_EXTEND, &call);
}

/* ---- usage that nobody reserved (B2, D12) -------------------------------- */

static void
run_record(void *arg)
{
	LLFrame    *call = arg;

	ll_record_unreserved(call->elements, call->count, false, call->receipts);
}

static void
run_import(void *arg)
{
	LLFrame    *call = arg;

	ll_record_unreserved(call->elements, call->count, true, call->receipts);
}

static void
check_usage(LLUsageElement *e, LLArg subject, LLArg route, LLArg operation, LLArg units)
{
	e->subject = ll_arg_subject(subject);
	e->route = ll_arg_text(route);
	e->operation = ll_arg_text(operation);
	e->units = ll_arg_units(units, 0);
}

static Datum
usage(FunctionCallInfo fcinfo, const char *name, LLCall which, void (*script) (void *arg))
{
	LLUsageElement element = {0};
	LLFrame		call = ll_frame(&element, 1);

	ll_answer_writes(name);
	check_usage(&element, ll_arg(fcinfo, 0, "subject"), ll_arg(fcinfo, 1, "route"),
				ll_arg(fcinfo, 2, "operation_id"), ll_arg(fcinfo, 3, "units"));
	ll_frame_run(fcinfo, script, &call);
	return ll_frame_answer(which, &call);
}

static Datum
usage_batch(FunctionCallInfo fcinfo, const char *name, LLCall which, void (*script) (void *arg))
{
	LLArray		subjects = ll_array(fcinfo, 0, "subjects", TEXTOID, true);
	LLArray		routes = ll_array(fcinfo, 1, "routes", TEXTOID, true);
	LLArray		operations = ll_array(fcinfo, 2, "operation_ids", TEXTOID, true);
	LLArray		units = ll_array(fcinfo, 3, "units", INT8OID, true);
	int			count = ll_array_count(&subjects, &routes, &operations, &units, NULL);
	LLUsageElement *elements = palloc0(sizeof(LLUsageElement) * Max(count, 1));
	LLFrame		call = ll_frame(elements, count);

	ll_answer_writes(name);
	for (int i = 0; i < count; i++)
		check_usage(&elements[i], ll_array_arg(&subjects, i), ll_array_arg(&routes, i),
					ll_array_arg(&operations, i), ll_array_arg(&units, i));
	ll_frame_run(fcinfo, script, &call);
	return ll_frame_answer_all(fcinfo, which, &call);
}

/* limitledger_record_usage books units, at least 0, that were never reserved (D12). */
Datum
limitledger_record_usage(PG_FUNCTION_ARGS)
{
	return usage(fcinfo, "record_usage()", LL_CALL_RECORD, run_record);
}

Datum
limitledger_record_usage_batch(PG_FUNCTION_ARGS)
{
	return usage_batch(fcinfo, "record_usage_batch()", LL_CALL_RECORD, run_record);
}

/* limitledger_import_usage opens a pair with units, at least 0, spent elsewhere (B2). */
Datum
limitledger_import_usage(PG_FUNCTION_ARGS)
{
	return usage(fcinfo, "import_usage()", LL_CALL_IMPORT, run_import);
}

Datum
limitledger_import_usage_batch(PG_FUNCTION_ARGS)
{
	return usage_batch(fcinfo, "import_usage_batch()", LL_CALL_IMPORT, run_import);
}
