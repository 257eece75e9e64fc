/*
 * local.c
 *	  The calls of a gateway: what it does with the shards that it was given, as SQL
 *	  calls (G4, G5).  Receipts have the columns of reserve_capacity.
 */
#include "postgres.h"

#include "answer.h"
#include "args.h"
#include "catalog/pg_type.h"
#include "errors.h"
#include "frame.h"
#include "ledger/local.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(limitledger_shard_reserve);
PG_FUNCTION_INFO_V1(limitledger_shard_reserve_batch);
PG_FUNCTION_INFO_V1(limitledger_shard_start);
PG_FUNCTION_INFO_V1(limitledger_shard_settle);
PG_FUNCTION_INFO_V1(limitledger_shard_settle_batch);
PG_FUNCTION_INFO_V1(limitledger_shard_release);
PG_FUNCTION_INFO_V1(limitledger_shard_report_unknown);
PG_FUNCTION_INFO_V1(limitledger_seal_shard);
PG_FUNCTION_INFO_V1(limitledger_sweep_shards);
PG_FUNCTION_INFO_V1(limitledger_local_boot);
PG_FUNCTION_INFO_V1(limitledger_local_begin);

/* ---- reserve ------------------------------------------------------------ */

/* The arguments of a reserve, in the order of its SQL declaration. */
static const char *const reserve_names[] = {
	"subject", "route", "reservation_id", "units", "digest", "deadline", "start_operation"
};
static const char *const reserve_batch_names[] = {
	"subjects", "routes", "reservation_ids", "units", "digests", "deadlines", "start_operations"
};
static const Oid reserve_types[] = {
	TEXTOID, TEXTOID, TEXTOID, INT8OID, BYTEAOID, TIMESTAMPTZOID, TEXTOID
};
#define RESERVE_ARGS		((int) lengthof(reserve_names))
#define RESERVE_MANDATORY	5

static void
check_reserve(LLShardReserve *e, const LLArg *arg)
{
	e->subject = ll_arg_subject(arg[0]);
	e->route = ll_arg_text(arg[1]);
	e->id = ll_arg_reported(arg[2]);
	e->units = ll_arg_units(arg[3], 1);
	e->digest = ll_arg_digest(arg[4]);
	e->deadline = ll_arg_optional_time(arg[5]);
	e->start_operation = arg[6].null ? (Datum) 0 : ll_arg_reported(arg[6]);
}

static void
run_reserve(void *arg)
{
	LLFrame    *call = arg;

	ll_shard_reserve(call->elements, call->count, call->receipts);
}

/* limitledger_shard_reserve admits one request against shards, or refuses it.  Units: at least 1. */
Datum
limitledger_shard_reserve(PG_FUNCTION_ARGS)
{
	LLShardReserve element = {0};
	LLArg		arg[RESERVE_ARGS];
	LLFrame		call = ll_frame(&element, 1);

	ll_answer_writes("shard_reserve()");
	for (int i = 0; i < RESERVE_ARGS; i++)
		arg[i] = ll_arg(fcinfo, i, reserve_names[i]);
	check_reserve(&element, arg);
	ll_frame_run(fcinfo, run_reserve, &call);
	return ll_frame_answer(LL_CALL_SHARD_RESERVE, &call);
}

/* limitledger_shard_reserve_batch admits many; each shard is locked once (J2). */
Datum
limitledger_shard_reserve_batch(PG_FUNCTION_ARGS)
{
	LLArray		array[RESERVE_ARGS];
	LLArg		arg[RESERVE_ARGS];
	LLShardReserve *elements;
	LLFrame		call;
	int			count = 0;

	ll_answer_writes("shard_reserve_batch()");
	for (int i = 0; i < RESERVE_ARGS; i++)
	{
		array[i] = ll_array(fcinfo, i, reserve_batch_names[i], reserve_types[i],
							i < RESERVE_MANDATORY);
		count = ll_array_count(&array[0], &array[i], NULL);
	}
	elements = palloc0(sizeof(LLShardReserve) * Max(count, 1));
	for (int e = 0; e < count; e++)
	{
		for (int i = 0; i < RESERVE_ARGS; i++)
			arg[i] = ll_array_arg(&array[i], e);
		check_reserve(&elements[e], arg);
	}
	call = ll_frame(elements, count);
	ll_frame_run(fcinfo, run_reserve, &call);
	return ll_frame_answer_all(fcinfo, LL_CALL_SHARD_RESERVE, &call);
}

/* ---- start and unknown --------------------------------------------------- */

static void
run_start(void *arg)
{
	LLFrame    *call = arg;

	ll_shard_start(call->subject, call->id, call->other, call->receipts);
}

static void
run_unknown(void *arg)
{
	LLFrame    *call = arg;

	ll_shard_report_unknown(call->subject, call->id, call->other, call->receipts);
}

/* by_operation is what start and unknown have in common. */
static Datum
by_operation(FunctionCallInfo fcinfo, LLCall which, void (*script) (void *arg))
{
	LLFrame		call = ll_frame(NULL, 1);

	call.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.id = ll_arg_text(ll_arg(fcinfo, 1, "reservation_id"));
	call.other = ll_arg_reported(ll_arg(fcinfo, 2, "operation_id"));
	ll_frame_run(fcinfo, script, &call);
	return ll_frame_answer(which, &call);
}

/* limitledger_shard_start: RESERVED -> STARTED, binding the operation (D5). */
Datum
limitledger_shard_start(PG_FUNCTION_ARGS)
{
	ll_answer_writes("shard_start()");
	return by_operation(fcinfo, LL_CALL_SHARD_START, run_start);
}

/* limitledger_shard_report_unknown: STARTED -> USAGE_UNKNOWN; units stay held (D10). */
Datum
limitledger_shard_report_unknown(PG_FUNCTION_ARGS)
{
	ll_answer_writes("shard_report_unknown()");
	return by_operation(fcinfo, LL_CALL_SHARD_REPORT_UNKNOWN, run_unknown);
}

/* ---- settle and release -------------------------------------------------- */

static void
run_settle(void *arg)
{
	LLFrame    *call = arg;

	ll_shard_settle_or_release(call->elements, call->count, call->receipts);
}

static void
check_settle(LLShardSettle *e, const LLArg *arg)
{
	e->subject = ll_arg_subject(arg[0]);
	e->id = ll_arg_text(arg[1]);
	e->operation = ll_arg_reported(arg[2]);
	e->actual = ll_arg_units(arg[3], 0);
	e->receipt_digest = ll_arg_optional_digest(arg[4]);
	e->source = ll_arg_source(arg[5]);
	e->attested = ll_text_is(e->source, "operator");
}

static const char *const settle_names[] = {
	"subject", "reservation_id", "operation_id", "actual", "receipt_digest", "source"
};
static const char *const settle_batch_names[] = {
	"subjects", "reservation_ids", "operation_ids", "actuals", "receipt_digests", "sources"
};
static const Oid settle_types[] = {TEXTOID, TEXTOID, TEXTOID, INT8OID, BYTEAOID, TEXTOID};
#define SETTLE_ARGS			((int) lengthof(settle_names))
#define SETTLE_MANDATORY	4

/*
 * limitledger_shard_settle spends the actual units, at least 0, once (D6).
 * Settling what was never started is misuse by an executor, and so an error.
 */
Datum
limitledger_shard_settle(PG_FUNCTION_ARGS)
{
	LLShardSettle element = {0};
	LLArg		arg[SETTLE_ARGS];
	LLFrame		call = ll_frame(&element, 1);

	ll_answer_writes("shard_settle()");
	for (int i = 0; i < SETTLE_ARGS; i++)
		arg[i] = ll_arg(fcinfo, i, settle_names[i]);
	check_settle(&element, arg);
	ll_frame_run(fcinfo, run_settle, &call);
	if (call.receipts->verdict.dimension == LL_DIM_NOT_STARTED)
		ereport(ERROR,
				(errcode(LL_ERRCODE_NOT_STARTED),
				 errmsg("reservation_id names a reservation that was not started"),
				 errdetail("Its state is %s; nothing was booked.", call.receipts->state),
				 errhint("Call shard_start first, and run only what it accepts.")));
	return ll_frame_answer(LL_CALL_SHARD_SETTLE, &call);
}

Datum
limitledger_shard_settle_batch(PG_FUNCTION_ARGS)
{
	LLArray		array[SETTLE_ARGS];
	LLArg		arg[SETTLE_ARGS];
	LLShardSettle *elements;
	LLFrame		call;
	int			count = 0;

	ll_answer_writes("shard_settle_batch()");
	for (int i = 0; i < SETTLE_ARGS; i++)
	{
		array[i] = ll_array(fcinfo, i, settle_batch_names[i], settle_types[i], i < SETTLE_MANDATORY);
		count = ll_array_count(&array[0], &array[i], NULL);
	}
	elements = palloc0(sizeof(LLShardSettle) * Max(count, 1));
	for (int e = 0; e < count; e++)
	{
		for (int i = 0; i < SETTLE_ARGS; i++)
			arg[i] = ll_array_arg(&array[i], e);
		check_settle(&elements[e], arg);
	}
	call = ll_frame(elements, count);
	ll_frame_run(fcinfo, run_settle, &call);
	return ll_frame_answer_all(fcinfo, LL_CALL_SHARD_SETTLE, &call);
}

/* limitledger_shard_release: RESERVED -> RELEASED, units back (D9). */
Datum
limitledger_shard_release(PG_FUNCTION_ARGS)
{
	LLShardSettle element = {0};
	LLFrame		call = ll_frame(&element, 1);

	ll_answer_writes("shard_release()");
	element.release = true;
	element.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	element.id = ll_arg_text(ll_arg(fcinfo, 1, "reservation_id"));
	ll_frame_run(fcinfo, run_settle, &call);
	return ll_frame_answer(LL_CALL_SHARD_RELEASE, &call);
}

/* ---- how a shard ends ---------------------------------------------------- */

typedef struct SealCall
{
	Datum		subject;
	Datum		id;
	LLSealed	sealed;
} SealCall;

static void
run_seal(void *arg)
{
	SealCall   *call = arg;

	ll_seal_local_shard(call->subject, call->id, &call->sealed);
	call->sealed.sealed_by = ll_copy_varlena(call->sealed.sealed_by);
}

/* limitledger_seal_shard retires what a shard has available, for good (G6). */
Datum
limitledger_seal_shard(PG_FUNCTION_ARGS)
{
	SealCall	call = {0};
	Datum		values[7];
	bool		nulls[7] = {false};
	bool		known;

	ll_answer_writes("seal_shard()");
	call.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.id = ll_arg_text(ll_arg(fcinfo, 1, "shard_id"));
	ll_run(fcinfo->flinfo->fn_oid, run_seal, &call);
	known = call.sealed.verdict.outcome == LL_ACCEPTED;
	values[0] = ll_answer_text(ll_outcome_name(call.sealed.verdict.outcome), &nulls[0]);
	values[1] = ll_answer_text(ll_dimension_info(call.sealed.verdict.dimension)->name, &nulls[1]);
	values[2] = BoolGetDatum(call.sealed.verdict.replayed);
	values[3] = Int64GetDatum(call.sealed.retired_units);
	values[4] = Int64GetDatum(call.sealed.reserved);
	values[5] = call.sealed.sealed_by;
	values[6] = TimestampTzGetDatum(call.sealed.sealed_at);
	nulls[3] = nulls[4] = nulls[5] = nulls[6] = !known;
	return ll_answer_row(fcinfo, values, nulls);
}

static void
run_sweep(void *arg)
{
	ll_sweep_local_shards(arg);
}

/* limitledger_sweep_shards ends what time ends, in one bounded batch. */
Datum
limitledger_sweep_shards(PG_FUNCTION_ARGS)
{
	LLShardSweep sweep = {0};
	Datum		values[3];
	bool		nulls[3] = {false};

	ll_answer_writes("sweep_shards()");
	ll_refuse_bound(fcinfo, "sweep_shards()");
	sweep.limit = ll_arg_batch_limit(ll_arg(fcinfo, 0, "batch_limit"));
	ll_run(fcinfo->flinfo->fn_oid, run_sweep, &sweep);
	values[0] = Int64GetDatum(sweep.expired);
	values[1] = Int64GetDatum(sweep.unknown);
	values[2] = Int64GetDatum(sweep.sealed);
	return ll_answer_row(fcinfo, values, nulls);
}

/* ---- steps of the calls that are written in SQL --------------------------- */

typedef struct BootCall
{
	bool		renew;
	LLBootResult result;
	LLBoot		boot;
} BootCall;

static void
run_boot(void *arg)
{
	BootCall   *call = arg;

	call->result = ll_boot(call->renew, LockWaitBlock, &call->boot);
	if (call->result == LL_BOOT_NONE)
		ereport(ERROR,
				(errcode(LL_ERRCODE_GATEWAY),
				 errmsg("this database is no gateway"),
				 errdetail("No gateway was opened in it."),
				 errhint("Call open_gateway first, or go to the database that is the gateway.")));
}

/* limitledger_local_boot begins a boot if one is due, or in any case (G5). */
Datum
limitledger_local_boot(PG_FUNCTION_ARGS)
{
	BootCall	call = {0};
	Datum		values[3];
	bool		nulls[3] = {false};

	ll_answer_writes("a call of a gateway");
	call.renew = PG_GETARG_BOOL(0);
	ll_run(fcinfo->flinfo->fn_oid, run_boot, &call);
	values[0] = UUIDPGetDatum(&call.boot.boot_epoch);
	values[1] = Int64GetDatum(call.boot.sealed);
	values[2] = Int64GetDatum(call.boot.unknown);
	return ll_answer_row(fcinfo, values, nulls);
}

static void
run_begin(void *arg)
{
	LLBoot		boot;

	(void) ll_boot(false, LockWaitBlock, &boot);
}

/*
 * limitledger_local_begin checks the arguments of a call about one shard, begins a
 * boot if one is due, and gives the subject that the call is about (I1).
 */
Datum
limitledger_local_begin(PG_FUNCTION_ARGS)
{
	Datum		subject;

	ll_answer_writes("a call of a gateway");
	subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	(void) ll_arg_text(ll_arg(fcinfo, 1, "shard_id"));
	ll_run(fcinfo->flinfo->fn_oid, run_begin, NULL);
	PG_RETURN_DATUM(subject);
}
