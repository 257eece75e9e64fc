/*
 * budget.c
 *	  Pairs and sweeps, as SQL calls.
 */
#include "postgres.h"

#include "answer.h"
#include "args.h"
#include "core/arith.h"
#include "funcapi.h"
#include "errors.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(limitledger_get_budget);
PG_FUNCTION_INFO_V1(limitledger_repay_debt);
PG_FUNCTION_INFO_V1(limitledger_freeze);
PG_FUNCTION_INFO_V1(limitledger_unfreeze);
PG_FUNCTION_INFO_V1(limitledger_grant_capacity);
PG_FUNCTION_INFO_V1(limitledger_claim_expiring);
PG_FUNCTION_INFO_V1(limitledger_finish_expiring);
PG_FUNCTION_INFO_V1(limitledger_expire_reservations);
PG_FUNCTION_INFO_V1(limitledger_expire_executions);
PG_FUNCTION_INFO_V1(limitledger_repay_debtors);
PG_FUNCTION_INFO_V1(limitledger_ledger_clock);

typedef struct Call
{
	Datum		subject;
	Datum		route;
	Datum		reason;
	Datum		grant_id;
	LLUnits		units;
	LLBudgetAnswer answer;
	int32		limit;
	LLExpiry	expiry;
	LLDebtors	debtors;
} Call;

static void
run_get_budget(void *arg)
{
	Call	   *call = arg;
	LLHead	   *head = &call->answer.work.head;

	ll_get_budget(call->subject, call->route, &call->answer);
	/* the pair's own, else that of its route */
	if (head->frozen_reason == 0)
		head->frozen_reason = call->answer.work.reigns.frozen_reason;
	head->frozen_reason = ll_copy_varlena(head->frozen_reason);
}

/* limitledger_get_budget shows a pair as of now; no row without a policy. */
Datum
limitledger_get_budget(PG_FUNCTION_ARGS)
{
	static const char *const kinds[] = {
		[LL_REFILL_CONTINUOUS] = "continuous", [LL_REFILL_WINDOW] = "window",
		[LL_REFILL_NONE] = "none"
	};
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	Call		call = {0};
	const LLPairWork *work = &call.answer.work;
	const LLPair *pair = &work->head.pair;
	const LLBudget *b = &pair->head;
	TimestampTz reset_at;
	Datum		values[21];
	bool		nulls[21] = {false};
	int			i = 0;

	call.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.route = ll_arg_text(ll_arg(fcinfo, 1, "route"));
	ll_run(fcinfo->flinfo->fn_oid, run_get_budget, &call);
	InitMaterializedSRF(fcinfo, 0);
	if (!call.answer.found)
		return (Datum) 0;

	values[i++] = Int64GetDatum(b->generation);
	values[i++] = TimestampTzGetDatum(b->epoch);
	values[i++] = CStringGetTextDatum(kinds[ll_pair_policy(work)->refill]);
	values[i++] = Int64GetDatum(ll_pair_policy(work)->cap);
	values[i++] = Int64GetDatum(b->opening);
	values[i++] = Int64GetDatum(b->minted);
	values[i++] = Int64GetDatum(b->overdraft_issued);
	values[i++] = Int64GetDatum(b->available);
	values[i++] = Int64GetDatum(b->reserved);
	values[i++] = Int64GetDatum(b->spent);
	values[i++] = Int64GetDatum(b->retired_for_emergency);
	values[i++] = Int64GetDatum(b->overdraft_repaid);
	values[i++] = Int64GetDatum(b->burned);
	values[i++] = Int64GetDatum(b->deficit);
	values[i++] = Int64GetDatum(ll_pair_debt(pair));
	values[i++] = Int64GetDatum(ll_add_capped(pair->older_reserved, b->reserved));
	values[i++] = Int64GetDatum(call.answer.due_units);
	values[i++] = CStringGetTextDatum(ll_admission_name(work));
	nulls[i] = work->head.frozen_reason == 0;
	values[i++] = work->head.frozen_reason;
	reset_at = ll_receipt_reset_at(work);
	nulls[i] = reset_at == LL_NO_TIME || reset_at == LL_TIME_MAX;
	values[i++] = TimestampTzGetDatum(reset_at);
	values[i++] = TimestampTzGetDatum(work->clock);
	Assert(i == lengthof(values));
	tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
	return (Datum) 0;
}

static void
run_repay_debt(void *arg)
{
	Call	   *call = arg;

	ll_repay_debt(call->subject, call->route, &call->answer);
}

/* the outcome of a call about a pair; the rest is NULL if there is no such pair */
static void
answer_outcome(const LLBudgetAnswer *answer, Datum *values, bool *nulls, int columns)
{
	values[0] = CStringGetTextDatum(ll_outcome_name(answer->verdict.outcome));
	values[1] = ll_answer_text(ll_dimension_info(answer->verdict.dimension)->name, &nulls[1]);
	for (int i = 2; i < columns; i++)
		nulls[i] = !answer->found;
}

/* limitledger_repay_debt lets what is due pay the pair's debt (E2, E3). */
Datum
limitledger_repay_debt(PG_FUNCTION_ARGS)
{
	Call		call = {0};
	const LLPairWork *work = &call.answer.work;
	Datum		values[7] = {0};
	bool		nulls[7] = {false};

	ll_answer_writes("repay_debt()");
	call.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.route = ll_arg_text(ll_arg(fcinfo, 1, "route"));
	ll_run(fcinfo->flinfo->fn_oid, run_repay_debt, &call);
	ll_count(LL_CALL_REPAY, &call.answer.verdict);
	answer_outcome(&call.answer, values, nulls, 7);
	if (call.answer.found)
	{
		values[2] = Int64GetDatum(call.answer.repaid_units);
		values[3] = Int64GetDatum(ll_pair_debt(&work->head.pair));
		values[4] = Int64GetDatum(work->head.pair.head.available);
		values[5] = CStringGetTextDatum(ll_admission_name(work));
		values[6] = TimestampTzGetDatum(work->clock);
	}
	return ll_answer_row(fcinfo, values, nulls);
}

static void
run_freeze(void *arg)
{
	Call	   *call = arg;

	ll_freeze_pair(call->subject, call->route, call->reason, &call->answer);
}

static void
run_unfreeze(void *arg)
{
	Call	   *call = arg;

	ll_unfreeze_pair(call->subject, call->route, call->reason, &call->answer);
}

/* what freeze and unfreeze take and answer alike */
static Datum
answer_freezing(FunctionCallInfo fcinfo, const char *name, LLCall which, void (*script) (void *arg))
{
	Call		call = {0};
	const LLPairWork *work = &call.answer.work;
	Datum		values[6] = {0};
	bool		nulls[6] = {false};

	ll_answer_writes(name);
	call.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.route = ll_arg_text(ll_arg(fcinfo, 1, "route"));
	call.reason = ll_arg_reason(ll_arg(fcinfo, 2, "reason"));
	ll_run(fcinfo->flinfo->fn_oid, script, &call);
	ll_count(which, &call.answer.verdict);
	answer_outcome(&call.answer, values, nulls, 6);
	if (call.answer.found)
	{
		values[2] = Int64GetDatum(ll_pair_debt(&work->head.pair));
		values[3] = Int64GetDatum(work->head.pair.head.available);
		values[4] = CStringGetTextDatum(ll_admission_name(work));
		values[5] = TimestampTzGetDatum(work->clock);
	}
	return ll_answer_row(fcinfo, values, nulls);
}

/* limitledger_freeze stops a pair's admission, for a recorded reason (D8). */
Datum
limitledger_freeze(PG_FUNCTION_ARGS)
{
	return answer_freezing(fcinfo, "freeze()", LL_CALL_FREEZE, run_freeze);
}

/* limitledger_unfreeze opens a frozen pair, for a recorded reason (D8). */
Datum
limitledger_unfreeze(PG_FUNCTION_ARGS)
{
	return answer_freezing(fcinfo, "unfreeze()", LL_CALL_UNFREEZE, run_unfreeze);
}

static void
run_grant(void *arg)
{
	Call	   *call = arg;

	ll_grant_capacity(call->subject, call->route, call->grant_id, call->units, call->reason,
					  &call->answer);
}

/* limitledger_grant_capacity mints units, at least 1, once per grant id (E3). */
Datum
limitledger_grant_capacity(PG_FUNCTION_ARGS)
{
	Call		call = {0};
	const LLPairWork *work = &call.answer.work;
	Datum		values[8] = {0};
	bool		nulls[8] = {false};

	ll_answer_writes("grant_capacity()");
	call.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.route = ll_arg_text(ll_arg(fcinfo, 1, "route"));
	call.grant_id = ll_arg_text(ll_arg(fcinfo, 2, "grant_id"));
	call.units = ll_arg_units(ll_arg(fcinfo, 3, "units"), 1);
	call.reason = ll_arg_reason(ll_arg(fcinfo, 4, "reason"));
	ll_run(fcinfo->flinfo->fn_oid, run_grant, &call);
	ll_count(LL_CALL_GRANT, &call.answer.verdict);
	answer_outcome(&call.answer, values, nulls, 8);
	if (call.answer.found)
	{
		values[2] = BoolGetDatum(call.answer.verdict.replayed);
		values[3] = Int64GetDatum(call.answer.granted_units);
		values[4] = Int64GetDatum(ll_pair_debt(&work->head.pair));
		values[5] = Int64GetDatum(work->head.pair.head.available);
		values[6] = CStringGetTextDatum(ll_admission_name(work));
		values[7] = TimestampTzGetDatum(work->clock);
	}
	return ll_answer_row(fcinfo, values, nulls);
}

/* ---- sweeps ------------------------------------------------------------- */

static void
run_claim(void *arg)
{
	Call	   *call = arg;

	ll_claim_expiring(call->limit, &call->expiry);
}

static void
run_finish(void *arg)
{
	Call	   *call = arg;

	ll_finish_expiring(call->limit, &call->expiry);
}

static void
run_expire(void *arg)
{
	run_claim(arg);
	run_finish(arg);
}

static void
run_executions(void *arg)
{
	Call	   *call = arg;

	ll_expire_executions(call->limit, &call->expiry);
}

static LLExpiry
sweep(FunctionCallInfo fcinfo, const char *name, void (*script) (void *arg))
{
	Call		call = {0};

	ll_answer_writes(name);
	ll_refuse_bound(fcinfo, name);
	call.limit = ll_arg_batch_limit(ll_arg(fcinfo, 0, "batch_limit"));
	ll_run(fcinfo->flinfo->fn_oid, script, &call);
	return call.expiry;
}

/* limitledger_claim_expiring: due RESERVED rows -> EXPIRING; locks no budget (D14). */
Datum
limitledger_claim_expiring(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(sweep(fcinfo, "claim_expiring()", run_claim).claimed);
}

/* limitledger_finish_expiring: EXPIRING -> EXPIRED, units back, pair by pair (D14). */
Datum
limitledger_finish_expiring(PG_FUNCTION_ARGS)
{
	LLExpiry	expiry = sweep(fcinfo, "finish_expiring()", run_finish);
	Datum		values[2] = {Int64GetDatum(expiry.expired), Int64GetDatum(expiry.expired_units)};
	bool		nulls[2] = {false};

	return ll_answer_row(fcinfo, values, nulls);
}

/* limitledger_expire_reservations does both. */
Datum
limitledger_expire_reservations(PG_FUNCTION_ARGS)
{
	LLExpiry	expiry = sweep(fcinfo, "expire_reservations()", run_expire);
	Datum		values[3] = {
		Int64GetDatum(expiry.claimed), Int64GetDatum(expiry.expired),
		Int64GetDatum(expiry.expired_units)
	};
	bool		nulls[3] = {false};

	return ll_answer_row(fcinfo, values, nulls);
}

/* limitledger_expire_executions: past their deadline, STARTED -> USAGE_UNKNOWN (D10). */
Datum
limitledger_expire_executions(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(sweep(fcinfo, "expire_executions()", run_executions).unknown);
}

static void
run_debtors(void *arg)
{
	Call	   *call = arg;

	ll_repay_debtors(call->limit, call->subject, call->route, &call->debtors);
}

/* limitledger_repay_debtors repays a bounded number of pairs, in key order (E3). */
Datum
limitledger_repay_debtors(PG_FUNCTION_ARGS)
{
	Call		call = {0};
	Datum		values[4];
	bool		nulls[4] = {false};

	ll_answer_writes("repay_debtors()");
	ll_refuse_bound(fcinfo, "repay_debtors()");
	call.limit = ll_arg_batch_limit(ll_arg(fcinfo, 0, "batch_limit"));
	call.subject = PG_ARGISNULL(1) ? CStringGetTextDatum("") : PointerGetDatum(PG_GETARG_TEXT_PP(1));
	call.route = PG_ARGISNULL(2) ? CStringGetTextDatum("") : PointerGetDatum(PG_GETARG_TEXT_PP(2));
	ll_run(fcinfo->flinfo->fn_oid, run_debtors, &call);
	values[0] = Int64GetDatum(call.debtors.pairs);
	values[1] = Int64GetDatum(call.debtors.repaid_units);
	values[2] = call.debtors.last_subject;
	values[3] = call.debtors.last_route;
	nulls[2] = nulls[3] = call.debtors.last_subject == 0;
	return ll_answer_row(fcinfo, values, nulls);
}

/* limitledger_ledger_clock shows the clock that decisions are made by (A3). */
Datum
limitledger_ledger_clock(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(ll_now());
}
