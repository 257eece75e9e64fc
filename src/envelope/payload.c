/*
 * payload.c
 *	  emergencyShard.v1 and shardReport.v1, member by member (G2, G6).
 *
 * One table of members a document, in the order in which RFC 8785 puts them.
 * The reader knows which member has to come next, so that one document has one
 * sequence of bytes, and a member that is missing, unknown, elsewhere or twice
 * ends the reading.
 */
#include "payload.h"

#include <string.h>

#include "core/transition.h"
#include "json.h"

typedef enum Kind
{
	KIND_TEXT,
	KIND_TEXT_OR_NULL,
	KIND_UNITS,					/* from 0 */
	KIND_UNITS_OR_NULL,
	KIND_POSITIVE,				/* from 1: units, microseconds, or the number of something */
	KIND_INSTANT,
	KIND_BOOT,
	KIND_FLAG,
	KIND_STATE,
	KIND_RECEIPTS,
	KIND_SCHEMA
} Kind;

typedef struct Member
{
	const char *name;
	Kind		kind;
	size_t		offset;			/* in the document's struct */
	const char *schema;			/* KIND_SCHEMA: what it must say */
} Member;

typedef struct Members
{
	const Member *members;
	int			count;
} Members;

#define SHARD(name, kind, field)	{name, KIND_##kind, offsetof(LLShardDocument, field), NULL}
#define REPORT(name, kind, field)	{name, KIND_##kind, offsetof(LLReportDocument, field), NULL}
#define RECEIPT(name, kind, field)	{name, KIND_##kind, offsetof(LLReportReceipt, field), NULL}
#define LIST(members)				{members, sizeof(members) / sizeof((members)[0])}

static const Member shard_members[] = {
	SHARD("accountingEpoch", INSTANT, accounting_epoch),
	SHARD("allocatedUnits", POSITIVE, allocated),
	SHARD("bootEpoch", BOOT, boot_epoch),
	SHARD("executionTtl", POSITIVE, execution_ttl),
	SHARD("expiresAt", INSTANT, expires_at),
	SHARD("fence", POSITIVE, fence),
	SHARD("gateway", TEXT, gateway),
	SHARD("hardExecutionLimit", POSITIVE, hard_execution_limit),
	SHARD("holdTtl", POSITIVE, hold_ttl),
	SHARD("issuedAt", INSTANT, issued_at),
	SHARD("largestReservation", POSITIVE, largest_reservation),
	SHARD("policyGeneration", POSITIVE, policy_generation),
	SHARD("route", TEXT, route),
	{"schema", KIND_SCHEMA, 0, LL_SHARD_TYPE},
	SHARD("shard", TEXT, shard),
	SHARD("subject", TEXT, subject)
};

static const Member report_members[] = {
	REPORT("allocatedUnits", POSITIVE, allocated),
	REPORT("bootEpoch", BOOT, boot_epoch),
	REPORT("fence", POSITIVE, fence),
	REPORT("gateway", TEXT, gateway),
	REPORT("localAvailable", UNITS, local_available),
	REPORT("localExcess", UNITS, local_excess),
	REPORT("localReserved", UNITS, local_reserved),
	REPORT("localRetired", UNITS, local_retired),
	REPORT("localSpent", UNITS, local_spent),
	REPORT("receipts", RECEIPTS, receipts),
	{"schema", KIND_SCHEMA, 0, LL_REPORT_TYPE},
	REPORT("sealed", FLAG, sealed),
	REPORT("sequence", POSITIVE, sequence),
	REPORT("shard", TEXT, shard)
};

static const Member receipt_members[] = {
	RECEIPT("actualUnits", UNITS_OR_NULL, actual_units),
	RECEIPT("operationId", TEXT_OR_NULL, operation),
	RECEIPT("reservation", TEXT, reservation),
	RECEIPT("reservedUnits", UNITS, reserved_units),
	RECEIPT("state", STATE, state)
};

static const Members shard_list = LIST(shard_members);
static const Members report_list = LIST(report_members);
static const Members receipt_list = LIST(receipt_members);

static bool read_object(LLReader *reader, Members list, void *document);
static void write_object(LLWriter *writer, Members list, const void *document);

/* ---- Reading ----------------------------------------------------------- */

/* read_state reads the word of a state that does not change any more (C3). */
static bool
read_state(LLReader *reader, LLState *state)
{
	LLText		word;

	if (!ll_json_read_text(reader, word) || !ll_state_parse(word, strlen(word), state) ||
		!ll_state_terminal(*state))
		return ll_json_fault(reader, LL_ENVELOPE_STATE);
	return true;
}

/* has_its_figures: settled ones were used by an operation, others by none (D6, D9). */
static bool
has_its_figures(const LLReportReceipt *receipt)
{
	bool		settled = receipt->state == LL_SETTLED || receipt->state == LL_SETTLED_WITH_DEBT;

	return (receipt->actual_units != LL_NO_UNITS) == settled &&
		(receipt->operation[0] != '\0') == settled;
}

/* read_receipt reads one receipt; `before` is the reservation of the one before it. */
static bool
read_receipt(LLReader *reader, LLReportDocument *report, LLText before)
{
	LLReportReceipt receipt;

	reader->fault.member = "receipts";
	if (report->receipt_count == LL_RECEIPTS_MAX)
		return ll_json_fault(reader, LL_ENVELOPE_COUNT);
	memset(&receipt, 0, sizeof(receipt));
	if (!read_object(reader, receipt_list, &receipt))
		return false;
	reader->fault.member = "state";
	if (!has_its_figures(&receipt))
		return ll_json_fault(reader, LL_ENVELOPE_FIGURES);
	reader->fault.member = "reservation";
	if (strcmp(before, receipt.reservation) >= 0)
		return ll_json_fault(reader, LL_ENVELOPE_ORDER);
	memcpy(before, receipt.reservation, sizeof(receipt.reservation));
	reader->fault.member = "receipts";
	if (report->receipts != NULL)
	{
		if (report->receipt_count >= report->receipt_size)
			return ll_json_fault(reader, LL_ENVELOPE_ROOM);
		report->receipts[report->receipt_count] = receipt;
	}
	report->receipt_count++;
	return true;
}

/* read_receipts reads the array, which may be empty. */
static bool
read_receipts(LLReader *reader, LLReportDocument *report)
{
	LLText		before = "";

	report->receipt_count = 0;
	if (!ll_json_next(reader, "["))
		return ll_json_fault(reader, LL_ENVELOPE_SYNTAX);
	if (ll_json_next(reader, "]"))
		return true;
	do
		if (!read_receipt(reader, report, before))
			return false;
	while (ll_json_next(reader, ","));
	return ll_json_next(reader, "]") || ll_json_fault(reader, LL_ENVELOPE_SYNTAX);
}

/* read_schema holds the document against the type that the header names. */
static bool
read_schema(LLReader *reader, const char *schema)
{
	LLText		word;

	if (!ll_json_read_text(reader, word) || strcmp(word, schema) != 0)
		return ll_json_fault(reader, LL_ENVELOPE_SCHEMA);
	return true;
}

/* read_value reads the value of one member into its field. */
static bool
read_value(LLReader *reader, const Member *member, void *document)
{
	void	   *field = (char *) document + member->offset;

	switch (member->kind)
	{
		case KIND_TEXT_OR_NULL:
			*(char *) field = '\0';
			return ll_json_next(reader, "null") || ll_json_read_text(reader, field);
		case KIND_TEXT:
			return ll_json_read_text(reader, field);
		case KIND_UNITS_OR_NULL:
			*(LLUnits *) field = LL_NO_UNITS;
			return ll_json_next(reader, "null") || ll_json_read_units(reader, 0, field);
		case KIND_UNITS:
			return ll_json_read_units(reader, 0, field);
		case KIND_POSITIVE:
			return ll_json_read_units(reader, 1, field);
		case KIND_INSTANT:
			return ll_json_read_instant(reader, field);
		case KIND_BOOT:
			return ll_json_read_boot(reader, field);
		case KIND_FLAG:
			return ll_json_read_flag(reader, field);
		case KIND_STATE:
			return read_state(reader, field);
		case KIND_RECEIPTS:
			return read_receipts(reader, document);
		case KIND_SCHEMA:
			return read_schema(reader, member->schema);
	}
	return ll_json_fault(reader, LL_ENVELOPE_SYNTAX);
}

/* place_of finds a name in the table, -1 if it is not there. */
static int
place_of(Members list, const char *name)
{
	for (int i = 0; i < list.count; i++)
		if (strcmp(list.members[i].name, name) == 0)
			return i;
	return -1;
}

/* read_name reads a name and its colon, and expects that of member `next`. */
static bool
read_name(LLReader *reader, Members list, int next)
{
	LLText		name;
	int			place;

	if (!ll_json_read_text(reader, name))
		return ll_json_fault(reader, LL_ENVELOPE_SYNTAX);
	place = place_of(list, name);
	if (place < 0)
		return ll_json_fault(reader, LL_ENVELOPE_MEMBER_UNKNOWN);
	reader->fault.member = list.members[place].name;
	if (place < next)
		return ll_json_fault(reader, LL_ENVELOPE_MEMBER_TWICE);
	reader->fault.member = list.members[next].name;
	if (place > next)
		return ll_json_fault(reader, LL_ENVELOPE_MEMBER_MISSING);
	return ll_json_next(reader, ":") || ll_json_fault(reader, LL_ENVELOPE_SYNTAX);
}

/*
 * read_object reads all members and the braces around them.  The member at
 * fault stays noted; one that stands behind the last is never the next one.
 */
static bool
read_object(LLReader *reader, Members list, void *document)
{
	if (!ll_json_next(reader, "{"))
		return ll_json_fault(reader, LL_ENVELOPE_SYNTAX);
	for (int next = 0; next < list.count; next++)
	{
		reader->fault.member = list.members[next].name;
		if (ll_json_next(reader, "}"))
			return ll_json_fault(reader, LL_ENVELOPE_MEMBER_MISSING);
		reader->fault.member = NULL;
		if (next > 0 && !ll_json_next(reader, ","))
			return ll_json_fault(reader, LL_ENVELOPE_SYNTAX);
		if (!read_name(reader, list, next) || !read_value(reader, &list.members[next], document))
			return false;
	}
	reader->fault.member = NULL;
	if (ll_json_next(reader, ","))
		return read_name(reader, list, list.count);
	return ll_json_next(reader, "}") || ll_json_fault(reader, LL_ENVELOPE_SYNTAX);
}

/* read_document reads an object and the end behind it. */
static LLFault
read_document(LLSpan payload, Members list, void *document)
{
	LLReader	reader = {payload.data, payload.data + payload.length, {LL_ENVELOPE_NONE, NULL}};

	if (read_object(&reader, list, document) && reader.at != reader.end)
		reader.fault.error = LL_ENVELOPE_TRAILING;
	return reader.fault;
}

/* ll_shard_read reads an emergencyShard.v1. */
LLFault
ll_shard_read(LLSpan payload, LLShardDocument *shard)
{
	LLFault		fault = read_document(payload, shard_list, shard);

	if (fault.error == LL_ENVELOPE_NONE && shard->expires_at <= shard->issued_at)
		fault = (LLFault) {LL_ENVELOPE_LIFE, "expiresAt"};
	return fault;
}

/* ll_report_read reads a shardReport.v1. */
LLFault
ll_report_read(LLSpan payload, LLReportDocument *report)
{
	return read_document(payload, report_list, report);
}

/* ---- Writing ----------------------------------------------------------- */

/* write_state writes the word; nothing, which does not open, if there is none. */
static void
write_state(LLWriter *writer, LLState state)
{
	bool		known = (unsigned int) state < LL_STATE_COUNT;

	ll_json_write_text(writer, known ? ll_state_name(state) : "");
}

static void
write_receipts(LLWriter *writer, const LLReportDocument *report)
{
	ll_json_write(writer, "[");
	for (int i = 0; i < report->receipt_count; i++)
	{
		if (i > 0)
			ll_json_write(writer, ",");
		write_object(writer, receipt_list, &report->receipts[i]);
	}
	ll_json_write(writer, "]");
}

/* write_value writes one member's field, the reverse of read_value. */
static void
write_value(LLWriter *writer, const Member *member, const void *document)
{
	const void *field = (const char *) document + member->offset;

	switch (member->kind)
	{
		case KIND_TEXT_OR_NULL:
			if (*(const char *) field == '\0')
				ll_json_write(writer, "null");
			else
				ll_json_write_text(writer, field);
			break;
		case KIND_TEXT:
			ll_json_write_text(writer, field);
			break;
		case KIND_UNITS_OR_NULL:
			if (*(const LLUnits *) field == LL_NO_UNITS)
				ll_json_write(writer, "null");
			else
				ll_json_write_units(writer, *(const LLUnits *) field);
			break;
		case KIND_UNITS:
		case KIND_POSITIVE:
			ll_json_write_units(writer, *(const LLUnits *) field);
			break;
		case KIND_INSTANT:
			ll_json_write_instant(writer, *(const LLTime *) field);
			break;
		case KIND_BOOT:
			ll_json_write_boot(writer, field);
			break;
		case KIND_FLAG:
			ll_json_write(writer, *(const bool *) field ? "true" : "false");
			break;
		case KIND_STATE:
			write_state(writer, *(const LLState *) field);
			break;
		case KIND_RECEIPTS:
			write_receipts(writer, document);
			break;
		case KIND_SCHEMA:
			ll_json_write_text(writer, member->schema);
			break;
	}
}

static void
write_object(LLWriter *writer, Members list, const void *document)
{
	for (int i = 0; i < list.count; i++)
	{
		ll_json_write(writer, i > 0 ? "," : "{");
		ll_json_write_text(writer, list.members[i].name);
		ll_json_write(writer, ":");
		write_value(writer, &list.members[i], document);
	}
	ll_json_write(writer, "}");
}

static LLFault
write_document(Members list, const void *document, LLBuffer *payload)
{
	LLWriter	writer = {payload->data, payload->data + payload->size, false};

	write_object(&writer, list, document);
	payload->length = (size_t) (writer.at - payload->data);
	return (LLFault) {writer.full ? LL_ENVELOPE_ROOM : LL_ENVELOPE_NONE, NULL};
}

/* ll_shard_write writes an emergencyShard.v1. */
LLFault
ll_shard_write(const LLShardDocument *shard, LLBuffer *payload)
{
	return write_document(shard_list, shard, payload);
}

/* ll_report_write writes a shardReport.v1, if its array can be as long as it says. */
LLFault
ll_report_write(const LLReportDocument *report, LLBuffer *payload)
{
	if (report->receipt_count < 0 || report->receipt_count > LL_RECEIPTS_MAX)
		return (LLFault) {LL_ENVELOPE_COUNT, "receipts"};
	return write_document(report_list, report, payload);
}
