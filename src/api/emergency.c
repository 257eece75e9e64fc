/*
 * emergency.c
 *	  Shards on the side of the ledger, as SQL calls (G, B8).
 */
#include "postgres.h"

#include "answer.h"
#include "args.h"
#include "canonical.h"
#include "catalog/pg_type.h"
#include "envelope.h"
#include "envelope/payload.h"
#include "errors.h"
#include "ledger/emergency.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(limitledger_issue_emergency_shard);
PG_FUNCTION_INFO_V1(limitledger_reconcile_emergency_shard);
PG_FUNCTION_INFO_V1(limitledger_write_off_shard);
PG_FUNCTION_INFO_V1(limitledger_grant_legacy_share);
PG_FUNCTION_INFO_V1(limitledger_report_legacy_share);
PG_FUNCTION_INFO_V1(limitledger_envelope_subject);
PG_FUNCTION_INFO_V1(limitledger_envelope_confirm);

typedef struct Call
{
	LLIssueRequest issue;
	LLReportRequest report;
	Datum		reason;
	LLEmergencyAnswer answer;
} Call;

/* A row that is being put together, column after column. */
typedef struct Row
{
	Datum		values[16];
	bool		nulls[16];
	int			count;
	bool		all_null;		/* what comes is about something that is not there */
} Row;

static void
put(Row *row, Datum value, bool null)
{
	Assert(row->count < (int) lengthof(row->values));
	row->values[row->count] = value;
	row->nulls[row->count++] = null || row->all_null;
}

static void
put_units(Row *row, LLUnits units)
{
	put(row, Int64GetDatum(units), false);
}

static void
put_time(Row *row, TimestampTz at)
{
	put(row, TimestampTzGetDatum(at), at == LL_NO_TIME);
}

/* begin_row starts with the outcome; what stands about the shard follows. */
static Row
begin_row(const LLEmergencyAnswer *answer)
{
	Row			row = {0};
	bool		null;
	Datum		dimension = ll_answer_text(ll_dimension_info(answer->verdict.dimension)->name, &null);

	put(&row, CStringGetTextDatum(ll_outcome_name(answer->verdict.outcome)), false);
	put(&row, dimension, null);
	put(&row, BoolGetDatum(answer->verdict.replayed), false);
	return row;
}

/* put_pair adds what became of the pair: debt, available, admission, time. */
static void
put_pair(Row *row, const LLEmergencyAnswer *answer)
{
	const LLPairWork *work = &answer->work;

	row->all_null = work->reigns.ruling == NULL;
	put_units(row, ll_pair_debt(&work->head.pair));
	put_units(row, work->head.pair.head.available);
	put(row, row->all_null ? (Datum) 0 : CStringGetTextDatum(ll_admission_name(work)), false);
	row->all_null = false;
	put_time(row, work->reigns.ruling == NULL ? ll_now() : work->clock);
}

/* ---- issue -------------------------------------------------------------- */

static void
run_issue(void *arg)
{
	Call	   *call = arg;

	ll_issue_emergency(&call->issue, &call->answer);
}

static Datum
answer_issue(FunctionCallInfo fcinfo, LLCall which, const LLEmergencyAnswer *answer)
{
	Row			row = begin_row(answer);
	const LLEmergencyRow *shard = &answer->shard;

	ll_count(which, &answer->verdict);
	row.all_null = !answer->found;
	put_units(&row, shard->generation);
	put_time(&row, shard->epoch);
	if (which == LL_CALL_ISSUE_SHARD)
	{
		put_units(&row, shard->fence);
		put_time(&row, shard->issued_at);
		put_time(&row, shard->expires_at);
	}
	row.all_null = false;
	put_pair(&row, answer);
	return ll_answer_row(fcinfo, row.values, row.nulls);
}

/*
 * limitledger_issue_emergency_shard moves units, at least 1, from available into
 * a shard of one gateway (G2).  It signs nothing (G8).
 */
Datum
limitledger_issue_emergency_shard(PG_FUNCTION_ARGS)
{
	Call		call = {0};

	ll_answer_writes("issue_emergency_shard()");
	call.issue.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.issue.route = ll_arg_text(ll_arg(fcinfo, 1, "route"));
	call.issue.shard_id = ll_arg_text(ll_arg(fcinfo, 2, "shard_id"));
	call.issue.gateway = ll_arg_text(ll_arg(fcinfo, 3, "gateway"));
	call.issue.units = ll_arg_units(ll_arg(fcinfo, 4, "units"), 1);
	ll_run(fcinfo->flinfo->fn_oid, run_issue, &call);
	return answer_issue(fcinfo, LL_CALL_ISSUE_SHARD, &call.answer);
}

/* limitledger_grant_legacy_share does so for the old limiter, which gets no envelope (B8). */
Datum
limitledger_grant_legacy_share(PG_FUNCTION_ARGS)
{
	Call		call = {0};

	ll_answer_writes("grant_legacy_share()");
	call.issue.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.issue.route = ll_arg_text(ll_arg(fcinfo, 1, "route"));
	call.issue.shard_id = ll_arg_text(ll_arg(fcinfo, 2, "share_id"));
	call.issue.units = ll_arg_units(ll_arg(fcinfo, 3, "units"), 1);
	call.issue.reason = ll_arg_reason(ll_arg(fcinfo, 4, "reason"));
	ll_run(fcinfo->flinfo->fn_oid, run_issue, &call);
	return answer_issue(fcinfo, LL_CALL_GRANT_LEGACY, &call.answer);
}

/* ---- reconcile ---------------------------------------------------------- */

static void
run_reconcile(void *arg)
{
	Call	   *call = arg;

	ll_reconcile_emergency(&call->report, &call->answer);
}

static void
run_legacy(void *arg)
{
	Call	   *call = arg;

	ll_reconcile_legacy(&call->report, &call->answer);
}

/* put_report adds what the report did. */
static void
put_report(Row *row, const LLEmergencyAnswer *answer)
{
	const LLReconciled *done = &answer->report.done;

	row->all_null = answer->verdict.outcome != LL_ACCEPTED;
	put_units(row, done->excess);
	put_units(row, done->confirmed);
	put_units(row, done->reminted);
	row->all_null = !answer->found;
	put(row, BoolGetDatum(answer->shard.settled_at != LL_NO_TIME), false);
	row->all_null = false;
	put_pair(row, answer);
}

/* read_report takes the document over; its receipts, too. */
static void
read_report(LLReportRequest *request, const LLReportDocument *document)
{
	request->shard_id = CStringGetTextDatum(document->shard);
	memcpy(request->boot_epoch.data, document->boot_epoch, UUID_LEN);
	request->fence = document->fence;
	request->sequence = document->sequence;
	request->figures = (LLShard)
	{
		.allocated = document->allocated, .available = document->local_available,
			.reserved = document->local_reserved, .spent = document->local_spent,
			.retired = document->local_retired, .excess = document->local_excess,
			.sealed = document->sealed
	};
	request->receipts = palloc(sizeof(LLShardReceipt) * Max(document->receipt_count, 1));
	request->receipt_count = document->receipt_count;
	for (int i = 0; i < document->receipt_count; i++)
	{
		const LLReportReceipt *receipt = &document->receipts[i];

		request->receipts[i] = (LLShardReceipt)
		{
			.reservation = CStringGetTextDatum(receipt->reservation),
				.operation = receipt->operation[0] == '\0' ? 0 : CStringGetTextDatum(receipt->operation),
				.state = receipt->state, .reserved_units = receipt->reserved_units,
				.actual_units = receipt->actual_units
		};
	}
}

/* digest_of: a document has one sequence of bytes, whoever has signed them (G6). */
static Datum
digest_of(const LLReportDocument *document)
{
	LLBuffer	payload = {palloc(LL_REPORT_PAYLOAD_MAX), LL_REPORT_PAYLOAD_MAX, 0};

	if (ll_report_write(document, &payload).error != LL_ENVELOPE_NONE)
		ll_broken("G3", "a report that was read can't be written");
	return ll_digest_bytes(payload.data, payload.length);
}

/* what is wrong with an envelope: the word, and the member that it is about */
static Datum
detail_of(const LLOpened *opened)
{
	return CStringGetTextDatum(opened->member == NULL ? opened->word
							   : psprintf("%s: %s", opened->word, opened->member));
}

/*
 * limitledger_reconcile_emergency_shard takes in a gateway's signed report (G6).
 * What is wrong with an envelope is a refusal, with the word and the member.
 */
Datum
limitledger_reconcile_emergency_shard(PG_FUNCTION_ARGS)
{
	Call		call = {0};
	LLReportDocument document = {0};
	LLOpened	opened = {0};
	Row			row;
	bool		sound;

	ll_answer_writes("reconcile_emergency_shard()");
	call.report.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	sound = ll_open_report(fcinfo, ll_arg_value(ll_arg(fcinfo, 1, "report")), &document, &opened);
	if (sound)
	{
		read_report(&call.report, &document);
		call.report.gateway = CStringGetTextDatum(document.gateway);
		call.report.digest = digest_of(&document);
	}
	if (!sound)
		call.answer.verdict = ll_say(LL_REFUSED, LL_DIM_ENVELOPE);
	else if (!ll_bytes_equal(opened.gateway, call.report.gateway))
		call.answer.verdict = ll_say(LL_REFUSED, LL_DIM_GATEWAY);
	else
		ll_run(fcinfo->flinfo->fn_oid, run_reconcile, &call);
	ll_count(LL_CALL_RECONCILE_SHARD, &call.answer.verdict);

	row = begin_row(&call.answer);
	put(&row, sound ? (Datum) 0 : detail_of(&opened), sound);
	row.all_null = !sound;
	put(&row, call.report.shard_id, false);
	put(&row, Int64GetDatum(call.report.sequence), false);
	put_report(&row, &call.answer);
	return ll_answer_row(fcinfo, row.values, row.nulls);
}

/* read_receipts takes the old limiter's receipts out of three arrays; an operation comes once. */
static void
read_receipts(FunctionCallInfo fcinfo, LLReportRequest *request)
{
	LLArray		operations = ll_array(fcinfo, 2, "operation_ids", TEXTOID, true);
	LLArray		reserved = ll_array(fcinfo, 3, "reserved_units", INT8OID, true);
	LLArray		actual = ll_array(fcinfo, 4, "actual_units", INT8OID, true);
	int			count = ll_array_count(&operations, &reserved, &actual, NULL);

	request->receipts = palloc(sizeof(LLShardReceipt) * Max(count, 1));
	request->receipt_count = count;
	for (int i = 0; i < count; i++)
	{
		LLShardReceipt *receipt = &request->receipts[i];

		receipt->operation = receipt->reservation = ll_arg_text(ll_array_arg(&operations, i));
		receipt->state = LL_SETTLED;
		receipt->reserved_units = ll_arg_units(ll_array_arg(&reserved, i), 0);
		receipt->actual_units = ll_arg_units(ll_array_arg(&actual, i), 0);
	}
}

static int
by_reservation(const void *a, const void *b)
{
	return ll_text_compare(((const LLShardReceipt *) a)->reservation,
						   ((const LLShardReceipt *) b)->reservation);
}

/* limitledger_report_legacy_share books receipts of the old limiter, each once (B8). */
Datum
limitledger_report_legacy_share(PG_FUNCTION_ARGS)
{
	Call		call = {0};
	LLReportRequest *report = &call.report;
	Row			row;

	ll_answer_writes("report_legacy_share()");
	report->subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	report->shard_id = ll_arg_text(ll_arg(fcinfo, 1, "share_id"));
	read_receipts(fcinfo, report);
	qsort(report->receipts, report->receipt_count, sizeof(LLShardReceipt), by_reservation);
	for (int i = 1; i < report->receipt_count; i++)
		if (ll_bytes_equal(report->receipts[i - 1].reservation, report->receipts[i].reservation))
			ereport(ERROR,
					(errcode(LL_ERRCODE_ARRAY_ARGUMENT),
					 errmsg("operation_ids must differ from one another"),
					 errdetail("One of them comes twice."),
					 errhint("Give one receipt for each operation.")));
	ll_run(fcinfo->flinfo->fn_oid, run_legacy, &call);
	ll_count(LL_CALL_REPORT_LEGACY, &call.answer.verdict);

	row = begin_row(&call.answer);
	put_report(&row, &call.answer);
	return ll_answer_row(fcinfo, row.values, row.nulls);
}

/* ---- write-off ---------------------------------------------------------- */

static void
run_write_off(void *arg)
{
	Call	   *call = arg;

	ll_write_off_emergency(call->issue.subject, call->issue.shard_id, call->reason, &call->answer);
}

/* limitledger_write_off_shard gives up what a gateway, or the old limiter, never reports (G6). */
Datum
limitledger_write_off_shard(PG_FUNCTION_ARGS)
{
	Call		call = {0};
	const LLIssuedShard *state = &call.answer.shard.state;
	Row			row;

	ll_answer_writes("write_off_shard()");
	call.issue.subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	call.issue.shard_id = ll_arg_text(ll_arg(fcinfo, 1, "shard_id"));
	call.reason = ll_arg_reason(ll_arg(fcinfo, 2, "reason"));
	ll_run(fcinfo->flinfo->fn_oid, run_write_off, &call);
	ll_count(LL_CALL_WRITE_OFF_SHARD, &call.answer.verdict);

	row = begin_row(&call.answer);
	row.all_null = !call.answer.found;
	put_units(&row, state->last.allocated - state->last.spent - state->confirmed);
	put_time(&row, call.answer.shard.written_off_at);
	return ll_answer_row(fcinfo, row.values, row.nulls);
}

/* ---- what signing asks first ---------------------------------------------- */

/*
 * limitledger_envelope_subject checks what names a shard, and gives the subject
 * that the login may name (I1).  Signing looks at the witness, and so writes.
 */
Datum
limitledger_envelope_subject(PG_FUNCTION_ARGS)
{
	Datum		subject;

	ll_answer_writes("a call that signs");
	subject = ll_arg_subject(ll_arg(fcinfo, 0, "subject"));
	(void) ll_arg_text(ll_arg(fcinfo, 1, "shard_id"));
	PG_RETURN_DATUM(subject);
}

/*
 * limitledger_envelope_confirm waits until what others have committed is as durable
 * as it gets: an envelope must not outlive its row (F4, G8).
 */
Datum
limitledger_envelope_confirm(PG_FUNCTION_ARGS)
{
	ll_confirm_others();
	PG_RETURN_VOID();
}
