/*
 * envelope.c
 *	  Signed envelopes as SQL calls of the inside: opened by the keys of
 *	  trusted_key, sealed by that of signing.c (G3, G6).
 *
 * No role is granted any of them: what is in an envelope is worth something
 * only together with what the caller knows of shards.  Documents are UTF-8,
 * whatever the database is; a text of another encoding is converted on its way.
 */
#include "postgres.h"

#include "envelope.h"

#include "access/detoast.h"
#include "answer.h"
#include "args.h"
#include "catalog/pg_type.h"
#include "core/transition.h"
#include "errors.h"
#include "ledger/trust.h"
#include "mb/pg_wchar.h"
#include "signing.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

PG_FUNCTION_INFO_V1(limitledger_open_emergency_shard);
PG_FUNCTION_INFO_V1(limitledger_envelope_open_report);
PG_FUNCTION_INFO_V1(limitledger_seal_emergency_shard);
PG_FUNCTION_INFO_V1(limitledger_envelope_seal_report);
PG_FUNCTION_INFO_V1(limitledger_envelope_public_key);

/* ---- Values on their way in and out -------------------------------------- */

/* put_text takes a text or an id of 1 to 256 bytes, in UTF-8 as well. */
static void
put_text(LLText to, LLArg arg)
{
	Datum		text = ll_arg_text(arg);
	int			length = VARSIZE_ANY_EXHDR(DatumGetPointer(text));
	char	   *utf8 = pg_server_to_any(VARDATA_ANY(DatumGetPointer(text)), length, PG_UTF8);

	if (utf8 != VARDATA_ANY(DatumGetPointer(text)))
		length = strlen(utf8);
	if (length > LL_TEXT_MAX)
		ereport(ERROR,
				(errcode(LL_ERRCODE_TEXT_ARGUMENT),
				 errmsg("%s must have 1 to %d bytes in UTF-8", arg.name, LL_TEXT_MAX),
				 errdetail("It has %d.", length),
				 errhint("Envelopes are UTF-8; take a shorter name.")));
	memcpy(to, utf8, length);
	to[length] = '\0';
}

/* localize brings a text of a document into the encoding of the database. */
static bool
localize(LLText text)
{
	size_t		length = strlen(text);
	char	   *local = pg_any_to_server(text, length, PG_UTF8);

	if (local == text)
		return true;
	length = strlen(local);
	if (length > LL_TEXT_MAX)
		return false;
	memcpy(text, local, length + 1);
	return true;
}

static Datum
not_null(LLArg arg)
{
	if (arg.null)
		ereport(ERROR,
				(errcode(LL_ERRCODE_NULL_ARGUMENT),
				 errmsg("%s must not be NULL", arg.name),
				 errdetail("NULL is neither zero nor a default here."),
				 errhint("Pass a value for it.")));
	return arg.value;
}

/* take_duration takes an interval in microseconds; a day is 24 hours, a month is no duration. */
static LLTime
take_duration(LLArg arg)
{
	const Interval *interval = DatumGetIntervalP(not_null(arg));
	int64		days = (int64) interval->day * USECS_PER_DAY;	/* fits: a day is below 2^37 */
	int64		length;

	if (interval->month != 0 || pg_add_s64_overflow(days, interval->time, &length) || length < 1)
		ereport(ERROR,
				(errcode(LL_ERRCODE_OTHER_ARGUMENT),
				 errmsg("%s must be a duration above zero, without months", arg.name),
				 errdetail("A month has no length of its own."),
				 errhint("Give days, hours, minutes or seconds.")));
	return length;
}

static Datum
give_duration(LLTime length)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->day = length / USECS_PER_DAY;
	interval->time = length % USECS_PER_DAY;
	return IntervalPGetDatum(interval);
}

static void
put_boot(unsigned char boot[LL_BOOT_BYTES], LLArg arg)
{
	memcpy(boot, DatumGetUUIDP(not_null(arg))->data, LL_BOOT_BYTES);
}

static Datum
give_boot(const unsigned char boot[LL_BOOT_BYTES])
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	memcpy(uuid->data, boot, LL_BOOT_BYTES);
	return UUIDPGetDatum(uuid);
}

/* ---- Opening ------------------------------------------------------------- */

static void
run_trust(void *arg)
{
	ll_trust_read(arg);
}

/* trust_of makes the trust list of the keys that were read, which have their places in it. */
static LLTrust
trust_of(const LLTrusted *trusted)
{
	LLPublicKey *keys = palloc0(sizeof(LLPublicKey) * Max(trusted->count, 1));

	for (int i = 0; i < trusted->count; i++)
	{
		const void *kid = DatumGetPointer(trusted->keys[i].kid);
		const void *bytes = DatumGetPointer(trusted->keys[i].public_key);

		/* one that is none, written past trust_key(), stays empty, and no header names it */
		if (VARSIZE_ANY_EXHDR(kid) > LL_KID_MAX || VARSIZE_ANY_EXHDR(bytes) != LL_PUBLIC_BYTES)
			continue;
		memcpy(keys[i].kid, VARDATA_ANY(kid), VARSIZE_ANY_EXHDR(kid));
		memcpy(keys[i].bytes, VARDATA_ANY(bytes), LL_PUBLIC_BYTES);
	}
	return (LLTrust) {keys, trusted->count};
}

/* too_long judges the length before a byte is fetched or decompressed. */
static bool
too_long(Datum envelope, size_t bound)
{
	return toast_raw_datum_size(envelope) - VARHDRSZ > bound;
}

static LLSpan
span_of(Datum envelope)
{
	text	   *bytes = DatumGetTextPP(envelope);

	return (LLSpan) {VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes)};
}

/* note writes down what opening has found; true: the envelope is sound. */
static bool
note(LLOpened *opened, LLFault fault, const LLTrusted *trusted, const char *kid, int signer)
{
	opened->word = ll_envelope_error_name(fault.error);
	opened->member = fault.member;
	if (signer >= 0)
	{
		strlcpy(opened->kid, kid, sizeof(opened->kid));
		opened->gateway = trusted->keys[signer].gateway;
	}
	return fault.error == LL_ENVELOPE_NONE;
}

static LLFault
localize_report(LLReportDocument *report)
{
	bool		fits = localize(report->shard) && localize(report->gateway);

	for (int i = 0; fits && i < report->receipt_count; i++)
		fits = localize(report->receipts[i].reservation) &&
			(report->receipts[i].operation[0] == '\0' || localize(report->receipts[i].operation));
	return (LLFault) {fits ? LL_ENVELOPE_NONE : LL_ENVELOPE_TEXT, NULL};
}

bool
ll_open_report(FunctionCallInfo fcinfo, Datum envelope, LLReportDocument *report, LLOpened *opened)
{
	LLTrusted	trusted = {.of_gateways = true};
	LLFault		fault = {LL_ENVELOPE_LENGTH, NULL};
	LLTrust		trust = {NULL, 0};
	int			signer = -1;

	memset(opened, 0, sizeof(*opened));
	memset(report, 0, sizeof(*report));
	if (!too_long(envelope, LL_REPORT_ENVELOPE_MAX))
	{
		LLSpan		bytes = span_of(envelope);
		LLBuffer	scratch = {palloc(bytes.length + 1), bytes.length + 1, 0};

		ll_run(fcinfo->flinfo->fn_oid, run_trust, &trusted);
		trust = trust_of(&trusted);
		report->receipts = palloc(sizeof(LLReportReceipt) * LL_RECEIPTS_MAX);
		report->receipt_size = LL_RECEIPTS_MAX;
		fault = ll_report_open(bytes, trust, &scratch, report, &signer);
		pfree(scratch.data);
	}
	if (fault.error == LL_ENVELOPE_NONE)
		fault = localize_report(report);
	return note(opened, fault, &trusted, signer >= 0 ? trust.keys[signer].kid : "", signer);
}

/* open_shard does the same for an emergencyShard.v1, by the ledger's own keys (G4). */
static bool
open_shard(FunctionCallInfo fcinfo, Datum envelope, LLShardDocument *shard, LLOpened *opened)
{
	LLTrusted	trusted = {.of_gateways = false};
	LLFault		fault = {LL_ENVELOPE_LENGTH, NULL};
	LLTrust		trust = {NULL, 0};
	int			signer = -1;

	memset(opened, 0, sizeof(*opened));
	if (!too_long(envelope, LL_SHARD_ENVELOPE_MAX))
	{
		ll_run(fcinfo->flinfo->fn_oid, run_trust, &trusted);
		trust = trust_of(&trusted);
		fault = ll_shard_open(span_of(envelope), trust, shard, &signer);
	}
	if (fault.error == LL_ENVELOPE_NONE &&
		!(localize(shard->shard) && localize(shard->subject) && localize(shard->route) &&
		  localize(shard->gateway)))
		fault.error = LL_ENVELOPE_TEXT;
	return note(opened, fault, &trusted, signer >= 0 ? trust.keys[signer].kid : "", signer);
}

/* The columns of open_emergency_shard, in their order. */
enum
{
	S_PROBLEM, S_MEMBER, S_KID, S_SHARD_ID, S_SUBJECT, S_ROUTE, S_GENERATION, S_EPOCH,
	S_ALLOCATED_UNITS, S_GATEWAY, S_BOOT_EPOCH, S_FENCE, S_ISSUED_AT, S_EXPIRES_AT,
	S_HOLD_TTL, S_EXECUTION_TTL, S_HARD_EXECUTION_LIMIT, S_LARGEST_RESERVATION,
	S_NATTS
};

static void
give_shard(const LLShardDocument *shard, Datum *values, bool *nulls)
{
	values[S_SHARD_ID] = CStringGetTextDatum(shard->shard);
	values[S_SUBJECT] = CStringGetTextDatum(shard->subject);
	values[S_ROUTE] = CStringGetTextDatum(shard->route);
	values[S_GENERATION] = Int64GetDatum(shard->policy_generation);
	values[S_EPOCH] = TimestampTzGetDatum(shard->accounting_epoch);
	values[S_ALLOCATED_UNITS] = Int64GetDatum(shard->allocated);
	values[S_GATEWAY] = CStringGetTextDatum(shard->gateway);
	values[S_BOOT_EPOCH] = give_boot(shard->boot_epoch);
	values[S_FENCE] = Int64GetDatum(shard->fence);
	values[S_ISSUED_AT] = TimestampTzGetDatum(shard->issued_at);
	values[S_EXPIRES_AT] = TimestampTzGetDatum(shard->expires_at);
	values[S_HOLD_TTL] = give_duration(shard->hold_ttl);
	values[S_EXECUTION_TTL] = give_duration(shard->execution_ttl);
	values[S_HARD_EXECUTION_LIMIT] = Int64GetDatum(shard->hard_execution_limit);
	values[S_LARGEST_RESERVATION] = Int64GetDatum(shard->largest_reservation);
	memset(&nulls[S_SHARD_ID], false, sizeof(bool) * (S_NATTS - S_SHARD_ID));
}

/*
 * limitledger_open_emergency_shard verifies an envelope and takes it apart, or
 * says in `problem` what is wrong with it (G4).  Whether it is for this gateway,
 * this boot and this hour is for its caller to decide.  Errors: LL101.
 */
Datum
limitledger_open_emergency_shard(PG_FUNCTION_ARGS)
{
	LLShardDocument shard;
	LLOpened	opened;
	Datum		values[S_NATTS] = {0};
	bool		nulls[S_NATTS];
	bool		sound;

	memset(nulls, true, sizeof(nulls));
	sound = open_shard(fcinfo, not_null(ll_arg(fcinfo, 0, "envelope")), &shard, &opened);
	values[S_PROBLEM] = ll_answer_text(sound ? NULL : opened.word, &nulls[S_PROBLEM]);
	values[S_MEMBER] = ll_answer_text(opened.member, &nulls[S_MEMBER]);
	values[S_KID] = ll_answer_text(opened.kid[0] != '\0' ? opened.kid : NULL, &nulls[S_KID]);
	if (sound)
		give_shard(&shard, values, nulls);
	return ll_answer_row(fcinfo, values, nulls);
}

/*
 * limitledger_envelope_open_report does so for a report, and shows what a
 * reconciling call is given: for whoever asks why one was refused.  Errors: LL101.
 */
Datum
limitledger_envelope_open_report(PG_FUNCTION_ARGS)
{
	LLReportDocument report;
	LLOpened	opened;
	Datum		values[11] = {0};
	bool		nulls[11];
	bool		sound = ll_open_report(fcinfo, not_null(ll_arg(fcinfo, 0, "envelope")), &report, &opened);

	memset(nulls, true, sizeof(nulls));
	values[0] = ll_answer_text(sound ? NULL : opened.word, &nulls[0]);
	values[1] = ll_answer_text(opened.member, &nulls[1]);
	values[2] = ll_answer_text(opened.kid[0] != '\0' ? opened.kid : NULL, &nulls[2]);
	values[3] = opened.gateway;
	nulls[3] = opened.gateway == 0;
	if (sound)
	{
		values[4] = CStringGetTextDatum(report.gateway);
		values[5] = CStringGetTextDatum(report.shard);
		values[6] = give_boot(report.boot_epoch);
		values[7] = Int64GetDatum(report.fence);
		values[8] = Int64GetDatum(report.sequence);
		values[9] = BoolGetDatum(report.sealed);
		values[10] = Int32GetDatum(report.receipt_count);
		memset(&nulls[4], false, sizeof(bool) * 7);
	}
	return ll_answer_row(fcinfo, values, nulls);
}

/* ---- Sealing ------------------------------------------------------------- */

/* A document, and where it is written. */
typedef struct Sealing
{
	const LLShardDocument *shard;
	const LLReportDocument *report;
	LLBuffer	scratch;
	LLBuffer	out;
} Sealing;

static LLFault
seal_shard(const LLSecretKey *key, void *arg)
{
	Sealing    *sealing = arg;

	return ll_shard_seal(sealing->shard, key, &sealing->out);
}

static LLFault
seal_report(const LLSecretKey *key, void *arg)
{
	Sealing    *sealing = arg;

	return ll_report_seal(sealing->report, key, &sealing->scratch, &sealing->out);
}

/* answer_sealed signs, and returns the id of the key and the envelope. */
static Datum
answer_sealed(FunctionCallInfo fcinfo, LLSealer seal, Sealing *sealing)
{
	char		kid[LL_KID_MAX + 1];
	LLFault		fault = ll_sign(seal, sealing, kid);
	Datum		values[2];
	bool		nulls[2] = {false};

	if (fault.error != LL_ENVELOPE_NONE)
		ereport(ERROR,
				(errcode(LL_ERRCODE_OTHER_ARGUMENT),
				 errmsg("the document can't be signed%s%s", fault.member != NULL ? ": " : "",
						fault.member != NULL ? fault.member : ""),
				 errdetail("%s: %s.", ll_envelope_error_name(fault.error), ll_envelope_error_meaning(fault.error)),
				 errhint("Nobody could open it; docs/envelope.md has the kinds of its members.")));
	values[0] = CStringGetTextDatum(kid);
	values[1] = PointerGetDatum(cstring_to_text_with_len(sealing->out.data, sealing->out.length));
	return ll_answer_row(fcinfo, values, nulls);
}

/*
 * limitledger_seal_emergency_shard signs an emergencyShard.v1 (G3).  Its caller
 * has made sure that the row is committed (G8).  Errors: LL101, LL102, LL103,
 * LL106, LL401.
 */
Datum
limitledger_seal_emergency_shard(PG_FUNCTION_ARGS)
{
	LLShardDocument shard;
	Sealing		sealing = {.shard = &shard};

	memset(&shard, 0, sizeof(shard));
	put_text(shard.shard, ll_arg(fcinfo, 0, "shard_id"));
	put_text(shard.subject, ll_arg(fcinfo, 1, "subject"));
	put_text(shard.route, ll_arg(fcinfo, 2, "route"));
	shard.policy_generation = ll_arg_units(ll_arg(fcinfo, 3, "generation"), 1);
	shard.accounting_epoch = DatumGetTimestampTz(not_null(ll_arg(fcinfo, 4, "epoch")));
	shard.allocated = ll_arg_units(ll_arg(fcinfo, 5, "allocated_units"), 1);
	put_text(shard.gateway, ll_arg(fcinfo, 6, "gateway"));
	put_boot(shard.boot_epoch, ll_arg(fcinfo, 7, "boot_epoch"));
	shard.fence = ll_arg_units(ll_arg(fcinfo, 8, "fence"), 1);
	shard.issued_at = DatumGetTimestampTz(not_null(ll_arg(fcinfo, 9, "issued_at")));
	shard.expires_at = DatumGetTimestampTz(not_null(ll_arg(fcinfo, 10, "expires_at")));
	shard.hold_ttl = take_duration(ll_arg(fcinfo, 11, "hold_ttl"));
	shard.execution_ttl = take_duration(ll_arg(fcinfo, 12, "execution_ttl"));
	shard.hard_execution_limit = ll_arg_units(ll_arg(fcinfo, 13, "hard_execution_limit"), 1);
	shard.largest_reservation = ll_arg_units(ll_arg(fcinfo, 14, "largest_reservation"), 1);

	sealing.out = (LLBuffer) {palloc(LL_SHARD_ENVELOPE_MAX + 1), LL_SHARD_ENVELOPE_MAX + 1, 0};
	return answer_sealed(fcinfo, seal_shard, &sealing);
}

static int
by_reservation(const void *a, const void *b)
{
	return strcmp(((const LLReportReceipt *) a)->reservation, ((const LLReportReceipt *) b)->reservation);
}

/* put_receipts takes the receipts of a report, and puts them in the order of their UTF-8. */
static void
put_receipts(FunctionCallInfo fcinfo, int first, LLReportDocument *report)
{
	LLArray		reservations = ll_array(fcinfo, first, "reservation_ids", TEXTOID, true);
	LLArray		operations = ll_array(fcinfo, first + 1, "operation_ids", TEXTOID, true);
	LLArray		states = ll_array(fcinfo, first + 2, "states", TEXTOID, true);
	LLArray		reserved = ll_array(fcinfo, first + 3, "reserved_units", INT8OID, true);
	LLArray		actual = ll_array(fcinfo, first + 4, "actual_units", INT8OID, true);
	int			count = ll_array_count(&reservations, &operations, &states, &reserved, &actual, NULL);

	report->receipts = palloc0(sizeof(LLReportReceipt) * Max(count, 1));
	report->receipt_size = report->receipt_count = count;
	for (int i = 0; i < count; i++)
	{
		LLReportReceipt *receipt = &report->receipts[i];
		Datum		state = ll_arg_text(ll_array_arg(&states, i));

		put_text(receipt->reservation, ll_array_arg(&reservations, i));
		if (!operations.nulls[i])
			put_text(receipt->operation, ll_array_arg(&operations, i));
		if (!ll_state_parse(VARDATA_ANY(DatumGetPointer(state)), VARSIZE_ANY_EXHDR(DatumGetPointer(state)),
							&receipt->state))
			receipt->state = LL_ABSENT;	/* which does not open, and so is not signed */
		receipt->reserved_units = ll_arg_units(ll_array_arg(&reserved, i), 0);
		receipt->actual_units = actual.nulls[i] ? LL_NO_UNITS : ll_arg_units(ll_array_arg(&actual, i), 0);
	}
	qsort(report->receipts, count, sizeof(LLReportReceipt), by_reservation);
}

/*
 * limitledger_envelope_seal_report signs a shardReport.v1 of figures and
 * receipts that its caller has read (G6).  Errors: as for a shard.
 */
Datum
limitledger_envelope_seal_report(PG_FUNCTION_ARGS)
{
	LLReportDocument report;
	Sealing		sealing = {.report = &report};
	size_t		payload;

	memset(&report, 0, sizeof(report));
	put_text(report.shard, ll_arg(fcinfo, 0, "shard_id"));
	put_text(report.gateway, ll_arg(fcinfo, 1, "gateway"));
	put_boot(report.boot_epoch, ll_arg(fcinfo, 2, "boot_epoch"));
	report.fence = ll_arg_units(ll_arg(fcinfo, 3, "fence"), 1);
	report.sequence = ll_arg_units(ll_arg(fcinfo, 4, "sequence"), 1);
	report.sealed = ll_arg_flag(ll_arg(fcinfo, 5, "sealed"));
	report.allocated = ll_arg_units(ll_arg(fcinfo, 6, "allocated_units"), 1);
	report.local_available = ll_arg_units(ll_arg(fcinfo, 7, "local_available"), 0);
	report.local_reserved = ll_arg_units(ll_arg(fcinfo, 8, "local_reserved"), 0);
	report.local_spent = ll_arg_units(ll_arg(fcinfo, 9, "local_spent"), 0);
	report.local_retired = ll_arg_units(ll_arg(fcinfo, 10, "local_retired"), 0);
	report.local_excess = ll_arg_units(ll_arg(fcinfo, 11, "local_excess"), 0);
	put_receipts(fcinfo, 12, &report);

	/* room for the receipts that there are, at their longest */
	payload = LL_REPORT_PAYLOAD_MAX - (size_t) LL_RECEIPT_MAX * Max(LL_RECEIPTS_MAX - report.receipt_count, 0);
	sealing.scratch = (LLBuffer) {palloc(payload), payload, 0};
	sealing.out.size = LL_ENVELOPE_MAX(payload) + 1;
	sealing.out.data = palloc(sealing.out.size);
	return answer_sealed(fcinfo, seal_report, &sealing);
}

/* ---- Public keys ---------------------------------------------------------- */

/* looks_secret: somebody has pasted the other line, which is a secret no more. */
static bool
looks_secret(LLSpan line)
{
	size_t		prefix = strlen(LL_SECRET_FORM);

	return line.length >= prefix && memcmp(line.data, LL_SECRET_FORM, prefix) == 0;
}

/*
 * limitledger_envelope_public_key takes the line of a public key apart.
 * Errors: LL101, LL402, which shows nothing of the line.
 */
Datum
limitledger_envelope_public_key(PG_FUNCTION_ARGS)
{
	LLSpan		line = span_of(not_null(ll_arg(fcinfo, 0, "public_key")));
	LLPublicKey key;
	LLKeyError	error;
	Datum		values[2];
	bool		nulls[2] = {false};

	if (line.length > 0 && line.data[line.length - 1] == '\n')	/* as psql's :'variable' brings it */
		line.length--;
	error = ll_public_key_read(line, &key);
	if (error != LL_KEY_NONE)
		ereport(ERROR,
				(errcode(LL_ERRCODE_PUBLIC_KEY),
				 errmsg("public_key must be the line of a public key"),
				 errhidestmt(looks_secret(line)),	/* not into the log by our doing */
				 errdetail("%s: %s.", ll_key_error_name(error), ll_key_error_meaning(error)),
				 looks_secret(line)
				 ? errhint("It is the line of a secret key, which by now may be in a history and in a log: make a new key.")
				 : errhint("tools/make-signing-key prints it, and signing_key_id() where the key is.")));
	values[0] = CStringGetTextDatum(key.kid);
	values[1] = PointerGetDatum(cstring_to_text_with_len((const char *) key.bytes, LL_PUBLIC_BYTES));
	return ll_answer_row(fcinfo, values, nulls);
}
