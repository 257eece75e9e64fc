/*
 * answer.c
 *	  Rows that go out.  See answer.h.
 *
 * The shape of a receipt is made once per backend: looking it up in the
 * catalogue would cost more than the decision.
 */
#include "postgres.h"

#include "answer.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

/* The columns of sql/receipt.inc, in their order. */
enum
{
	R_OUTCOME, R_DIMENSION, R_STATE, R_REPLAYED, R_GENERATION, R_EPOCH,
	R_RESERVED_UNITS, R_ACTUAL_UNITS, R_OPERATION, R_EXPIRES_AT, R_LEDGER_AT,
	R_AVAILABLE, R_CAP, R_RESET_AT, R_RETRY_AFTER_MS, R_RETRY_KIND,
	R_HARD_LIMIT, R_EXCESS_UNITS, R_EXCESS_GENERATION, R_EXCESS_EPOCH,
	R_NATTS
};

static const struct
{
	const char *name;
	Oid			type;
}			receipt_columns[R_NATTS] = {
	[R_OUTCOME] = {"outcome", TEXTOID},
	[R_DIMENSION] = {"dimension", TEXTOID},
	[R_STATE] = {"state", TEXTOID},
	[R_REPLAYED] = {"replayed", BOOLOID},
	[R_GENERATION] = {"generation", INT8OID},
	[R_EPOCH] = {"epoch", TIMESTAMPTZOID},
	[R_RESERVED_UNITS] = {"reserved_units", INT8OID},
	[R_ACTUAL_UNITS] = {"actual_units", INT8OID},
	[R_OPERATION] = {"operation", TEXTOID},
	[R_EXPIRES_AT] = {"expires_at", TIMESTAMPTZOID},
	[R_LEDGER_AT] = {"ledger_at", TIMESTAMPTZOID},
	[R_AVAILABLE] = {"available", INT8OID},
	[R_CAP] = {"cap", INT8OID},
	[R_RESET_AT] = {"reset_at", TIMESTAMPTZOID},
	[R_RETRY_AFTER_MS] = {"retry_after_ms", INT8OID},
	[R_RETRY_KIND] = {"retry_kind", TEXTOID},
	[R_HARD_LIMIT] = {"hard_limit", INT8OID},
	[R_EXCESS_UNITS] = {"excess_units", INT8OID},
	[R_EXCESS_GENERATION] = {"excess_generation", INT8OID},
	[R_EXCESS_EPOCH] = {"excess_epoch", TIMESTAMPTZOID},
};

static TupleDesc receipt_desc = NULL;

/* ll_answer_writes refuses a writing call where nothing may be written (25006). */
void
ll_answer_writes(const char *call)
{
	PreventCommandIfReadOnly(call);
	PreventCommandIfParallelMode(call);
	PreventCommandDuringRecovery(call);
}

static TupleDesc
receipt_shape(void)
{
	MemoryContext old;
	TupleDesc	desc;

	if (receipt_desc != NULL)
		return receipt_desc;
	old = MemoryContextSwitchTo(TopMemoryContext);
	desc = CreateTemplateTupleDesc(R_NATTS);
	for (int i = 0; i < R_NATTS; i++)
		TupleDescInitEntry(desc, i + 1, receipt_columns[i].name,
						   receipt_columns[i].type, -1, 0);
	receipt_desc = BlessTupleDesc(desc);
	MemoryContextSwitchTo(old);
	return receipt_desc;
}

/* ll_answer_text makes a text of a word that may be missing. */
Datum
ll_answer_text(const char *text, bool *null)
{
	*null = text == NULL;
	return text == NULL ? (Datum) 0 : CStringGetTextDatum(text);
}

static Datum
time_or_null(TimestampTz at, bool *null)
{
	*null = at == LL_NO_TIME || at == PG_INT64_MAX;
	return TimestampTzGetDatum(at);
}

static Datum
units_or_null(int64 units, bool *null)
{
	*null = units < 0;
	return Int64GetDatum(units);
}

static Datum
generation_or_null(int64 generation, bool *null)
{
	*null = generation == 0;
	return Int64GetDatum(generation);
}

static void
fill_receipt(const LLReceipt *r, Datum *v, bool *n)
{
	memset(n, false, R_NATTS * sizeof(bool));
	v[R_OUTCOME] = ll_answer_text(ll_outcome_name(r->verdict.outcome), &n[R_OUTCOME]);
	v[R_DIMENSION] = ll_answer_text(ll_dimension_info(r->verdict.dimension)->name, &n[R_DIMENSION]);
	v[R_STATE] = ll_answer_text(r->state, &n[R_STATE]);
	v[R_REPLAYED] = BoolGetDatum(r->verdict.replayed);
	v[R_GENERATION] = generation_or_null(r->generation, &n[R_GENERATION]);
	v[R_EPOCH] = time_or_null(r->epoch, &n[R_EPOCH]);
	v[R_RESERVED_UNITS] = units_or_null(r->reserved_units, &n[R_RESERVED_UNITS]);
	v[R_ACTUAL_UNITS] = units_or_null(r->actual_units, &n[R_ACTUAL_UNITS]);
	v[R_OPERATION] = r->operation;
	n[R_OPERATION] = r->operation == 0;
	v[R_EXPIRES_AT] = time_or_null(r->expires_at, &n[R_EXPIRES_AT]);
	v[R_LEDGER_AT] = time_or_null(r->ledger_at, &n[R_LEDGER_AT]);
	v[R_AVAILABLE] = units_or_null(r->available, &n[R_AVAILABLE]);
	v[R_CAP] = units_or_null(r->cap, &n[R_CAP]);
	v[R_RESET_AT] = time_or_null(r->reset_at, &n[R_RESET_AT]);
	v[R_RETRY_AFTER_MS] = units_or_null(r->retry_after_ms, &n[R_RETRY_AFTER_MS]);
	v[R_RETRY_KIND] = ll_answer_text(ll_wait_name(r->verdict.wait), &n[R_RETRY_KIND]);
	v[R_HARD_LIMIT] = units_or_null(r->hard_limit, &n[R_HARD_LIMIT]);
	v[R_EXCESS_UNITS] = units_or_null(r->excess_units, &n[R_EXCESS_UNITS]);
	v[R_EXCESS_GENERATION] = generation_or_null(r->excess_generation, &n[R_EXCESS_GENERATION]);
	v[R_EXCESS_EPOCH] = time_or_null(r->excess_epoch, &n[R_EXCESS_EPOCH]);
}

/* ll_answer_receipt returns one receipt as a row. */
Datum
ll_answer_receipt(const LLReceipt *receipt)
{
	Datum		values[R_NATTS];
	bool		nulls[R_NATTS];

	fill_receipt(receipt, values, nulls);
	return HeapTupleGetDatum(heap_form_tuple(receipt_shape(), values, nulls));
}

/* ll_answer_receipts returns a batch, each row led by its element, from 1. */
Datum
ll_answer_receipts(FunctionCallInfo fcinfo, const LLReceipt *receipts, int count)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		values[R_NATTS + 1];
	bool		nulls[R_NATTS + 1];

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < count; i++)
	{
		values[0] = Int32GetDatum(i + 1);
		nulls[0] = false;
		fill_receipt(&receipts[i], &values[1], &nulls[1]);
		tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* ll_answer_row returns one row of a function that is not called in a hurry. */
Datum
ll_answer_row(FunctionCallInfo fcinfo, const Datum *values, const bool *nulls)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the function must be called where a row is expected")));
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), (Datum *) values, (bool *) nulls));
}
