/*
 * rows.c
 *	  Reads what the tables hold of the subjects of a history, in one snapshot.
 */
#include "auditor.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#define POSTGRES_EPOCH	INT64_C(946684800000000)

static PGconn *ledger;
static PGconn *gateway;
static const char *ledger_string;
static const char *gateway_string;

static const char *const states[] = {
	"RESERVED", "STARTED", "USAGE_UNKNOWN", "EXPIRING", "SETTLED", "SETTLED_WITH_DEBT", "RELEASED",
	"EXPIRED"
};

ReservationState
state_of(const char *text)
{
	for (int i = 0; text != NULL && i < NO_STATE; i++)
		if (strcmp(states[i], text) == 0)
			return i;
	return NO_STATE;
}

const char *
state_name(ReservationState state)
{
	return state < NO_STATE ? states[state] : "of no state";
}

/* open_connection connects, or connects again if the server was away. */
static void
open_connection(PGconn **conn, const char *conninfo)
{
	if (*conn != NULL && PQstatus(*conn) == CONNECTION_OK)
		return;
	if (*conn != NULL)
		PQfinish(*conn);
	*conn = PQconnectdb(conninfo);
	if (PQstatus(*conn) != CONNECTION_OK)
	{
		fprintf(stderr, "auditor: %s", PQerrorMessage(*conn));
		exit(2);
	}
}

void
tables_connect(const char *ledger_conninfo, const char *gateway_conninfo)
{
	ledger_string = ledger_conninfo;
	gateway_string = gateway_conninfo;
	open_connection(&ledger, ledger_string);
	if (gateway_string != NULL)
		open_connection(&gateway, gateway_string);
}

static PGresult *
query(PGconn *conn, const char *sql, const char *subjects)
{
	const char *values[1] = {subjects};
	PGresult   *result = PQexecParams(conn, sql, subjects != NULL ? 1 : 0, NULL, values, NULL, NULL, 1);

	if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
	{
		fprintf(stderr, "auditor: %s", PQerrorMessage(conn));
		exit(2);
	}
	return result;
}

/* A field in the binary form: bigint, integer, boolean and instants as numbers. */
static int64_t
number_at(const PGresult *r, int row, int column, int64_t when_null)
{
	const char *value = PQgetvalue(r, row, column);
	uint64_t	wide;
	uint32_t	narrow;

	if (PQgetisnull(r, row, column))
		return when_null;
	switch (PQgetlength(r, row, column))
	{
		case 1:
			return value[0];
		case 4:
			memcpy(&narrow, value, sizeof(narrow));
			return (int32_t) be32toh(narrow);
		default:
			memcpy(&wide, value, sizeof(wide));
			return (int64_t) be64toh(wide) + (PQftype(r, column) == 1184 ? POSTGRES_EPOCH : 0);
	}
}

/* Texts, and bytes as hexadecimal digits. */
static int
word_at(const PGresult *r, int row, int column)
{
	const unsigned char *value = (const unsigned char *) PQgetvalue(r, row, column);
	char		digits[2 * 64 + 1];
	int			length = PQgetlength(r, row, column);

	if (PQgetisnull(r, row, column))
		return 0;
	if (PQftype(r, column) != 17 && PQftype(r, column) != 2950)
		return word((const char *) value);
	for (int i = 0; i < length && i < 64; i++)
		snprintf(digits + 2 * i, 3, "%02x", value[i]);
	return word(digits);
}

/* The next field of the row that a loop below is at. */
#define NUMBER(field)	row->field = number_at(r, i, at++, 0)
#define NULLABLE(field)	row->field = number_at(r, i, at++, -1)
#define WORD(field)		row->field = word_at(r, i, at++)
#define FLAG(field)		row->field = number_at(r, i, at++, 0) != 0
#define STATE(field)	row->field = state_of(PQgetvalue(r, i, at++))
#define EACH_ROW(conn, sql, array, count) \
	r = query(conn, sql, subjects); \
	count = PQntuples(r); \
	array = arena_new(sizeof(*array) * (size_t) (count + 1)); \
	at = 0; \
	for (int i = 0; i < count || (PQclear(r), false); i++, at = 0)

#define BUDGET_COLUMNS \
	"generation, epoch, opened_at, line, follows_generation, follows_epoch, carried, deficit, opening, " \
	"minted, overdraft_issued, available, reserved, spent, retired_for_emergency, overdraft_repaid, " \
	"burned, purged_spent, whole"

static void
read_ledger(Tables *t, const char *subjects)
{
	PGresult   *r;
	int			at;

	EACH_ROW(ledger,
			 "SELECT subject, route, true, " BUDGET_COLUMNS ", false, older_debt, older_reserved, remainder,"
			 " seen_at, accrued_at, frozen_at IS NOT NULL, NULL::timestamptz AS closed_at, 0::bigint"
			 " FROM limitledger.head_budget WHERE subject = ANY ($1)"
			 " UNION ALL SELECT subject, route, false, " BUDGET_COLUMNS ", follows_purged, 0, 0, 0, NULL, NULL,"
			 " false, closed_at, closing_available FROM limitledger.closed_budget WHERE subject = ANY ($1)"
			 " ORDER BY 1, 2, 3, 4, 5", t->budget, t->budgets)
	{
		BudgetRow  *row = &t->budget[i];

		WORD(subject);
		WORD(route);
		FLAG(head);
		NUMBER(generation);
		NUMBER(epoch);
		NUMBER(opened_at);
		NUMBER(line);
		NULLABLE(follows_generation);
		NUMBER(follows_epoch);
		NUMBER(carried);
		NUMBER(deficit);
		NUMBER(opening);
		NUMBER(minted);
		NUMBER(issued);
		NUMBER(available);
		NUMBER(reserved);
		NUMBER(spent);
		NUMBER(retired);
		NUMBER(repaid);
		NUMBER(burned);
		NUMBER(purged);
		FLAG(whole);
		FLAG(follows_purged);
		NUMBER(older_debt);
		NUMBER(older_reserved);
		NUMBER(remainder);
		NUMBER(seen_at);
		NUMBER(accrued_at);
		FLAG(frozen);
		NUMBER(closed_at);
		NUMBER(closing);
	}
	EACH_ROW(ledger,
			 "SELECT subject, reservation_id, route, generation, epoch, state, asked_units, reserved_units,"
			 " actual_units, request_digest, operation_id, expires_at, excess_units, excess_generation,"
			 " excess_epoch, progress_units, receipt_digest"
			 " FROM limitledger.reservation WHERE subject = ANY ($1)", t->reservation, t->reservations)
	{
		ReservationRow *row = &t->reservation[i];

		WORD(subject);
		WORD(id);
		WORD(route);
		NUMBER(generation);
		NUMBER(epoch);
		STATE(state);
		NUMBER(asked);
		NUMBER(reserved);
		NULLABLE(actual);
		WORD(digest);
		WORD(operation);
		NUMBER(expires);
		NUMBER(excess);
		NUMBER(excess_generation);
		NUMBER(excess_epoch);
		NUMBER(progress);
		WORD(receipt);
	}
	EACH_ROW(ledger,
			 "SELECT subject, operation_id, reservation_id, route, usage_units, generation, epoch"
			 " FROM limitledger.operation WHERE subject = ANY ($1)", t->operation, t->operations)
	{
		OperationRow *row = &t->operation[i];

		WORD(subject);
		WORD(operation);
		WORD(id);
		WORD(route);
		NUMBER(units);
		NUMBER(generation);
		NUMBER(epoch);
	}
	EACH_ROW(ledger,
			 "SELECT subject, reservation_id, extension_id, units FROM limitledger.extension"
			 " WHERE subject = ANY ($1)", t->extension, t->extensions)
	{
		ExtensionRow *row = &t->extension[i];

		WORD(subject);
		WORD(id);
		WORD(extension);
		NUMBER(units);
	}
	EACH_ROW(ledger,
			 "SELECT subject, route, grant_id, units, granted_units FROM limitledger.capacity_grant"
			 " WHERE subject = ANY ($1)", t->grant, t->grants)
	{
		GrantRow   *row = &t->grant[i];

		WORD(subject);
		WORD(route);
		WORD(grant);
		NUMBER(units);
		NUMBER(granted);
	}
	EACH_ROW(ledger,
			 "SELECT subject, shard_id, route, gateway, boot_epoch, generation, epoch, fence, allocated_units,"
			 " expires_at, sequence, local_available, local_reserved, local_spent, local_retired, local_excess,"
			 " receipted_units, confirmed_units, reminted_units, sealed, written_off_at IS NOT NULL,"
			 " settled_at IS NOT NULL FROM limitledger.emergency_shard WHERE subject = ANY ($1)",
			 t->shard, t->shards)
	{
		ShardRow   *row = &t->shard[i];

		WORD(subject);
		WORD(shard);
		WORD(route);
		WORD(gateway);
		WORD(boot);
		NUMBER(generation);
		NUMBER(epoch);
		NUMBER(fence);
		NUMBER(allocated);
		NUMBER(expires);
		NUMBER(sequence);
		NUMBER(available);
		NUMBER(reserved);
		NUMBER(spent);
		NUMBER(retired);
		NUMBER(excess);
		NUMBER(receipted);
		NUMBER(confirmed);
		NUMBER(reminted);
		FLAG(sealed);
		FLAG(written_off);
		FLAG(settled);
	}
	if (t->shards == 0)
		return;
	EACH_ROW(ledger,
			 "SELECT subject, shard_id, route, sequence, generation, epoch, excess_units, confirmed_units,"
			 " reminted_units FROM limitledger.shard_report WHERE subject = ANY ($1)", t->report, t->reports)
	{
		ReportRow  *row = &t->report[i];

		WORD(subject);
		WORD(shard);
		WORD(route);
		NUMBER(sequence);
		NUMBER(generation);
		NUMBER(epoch);
		NUMBER(excess);
		NUMBER(confirmed);
		NUMBER(reminted);
	}
	EACH_ROW(ledger,
			 "SELECT subject, shard_id, reservation_id, sequence, state, operation_id, reserved_units,"
			 " actual_units FROM limitledger.shard_receipt WHERE subject = ANY ($1)", t->receipt, t->receipts)
	{
		ReceiptRow *row = &t->receipt[i];

		WORD(subject);
		WORD(shard);
		WORD(id);
		NUMBER(sequence);
		STATE(state);
		WORD(operation);
		NUMBER(reserved);
		NULLABLE(actual);
	}
}

static void
read_gateway(Tables *t, const char *subjects)
{
	PGresult   *r;
	int			at;

	EACH_ROW(gateway,
			 "SELECT subject, shard_id, route, boot_epoch, fence, allocated_units, expires_at, local_available,"
			 " local_reserved, local_spent, local_retired, local_excess, last_sequence, sealed_at IS NOT NULL"
			 " FROM limitledger.local_shard WHERE subject = ANY ($1)", t->local_shard, t->local_shards)
	{
		LocalShardRow *row = &t->local_shard[i];

		WORD(subject);
		WORD(shard);
		WORD(route);
		WORD(boot);
		NUMBER(fence);
		NUMBER(allocated);
		NUMBER(expires);
		NUMBER(available);
		NUMBER(reserved);
		NUMBER(spent);
		NUMBER(retired);
		NUMBER(excess);
		NUMBER(sequence);
		FLAG(sealed);
	}
	EACH_ROW(gateway,
			 "SELECT subject, reservation_id, shard_id, state, reserved_units, actual_units, excess_units,"
			 " request_digest, operation_id, expires_at, sequence"
			 " FROM limitledger.shard_reservation WHERE subject = ANY ($1)", t->item, t->items)
	{
		ItemRow    *row = &t->item[i];

		WORD(subject);
		WORD(id);
		WORD(shard);
		STATE(state);
		NUMBER(reserved);
		NULLABLE(actual);
		NUMBER(excess);
		WORD(digest);
		WORD(operation);
		NUMBER(expires);
		NUMBER(sequence);
	}
	EACH_ROW(gateway,
			 "SELECT subject, shard_id, sequence, local_available, local_reserved, local_spent, local_retired,"
			 " local_excess, sealed FROM limitledger.local_report WHERE subject = ANY ($1)",
			 t->local_report, t->local_reports)
	{
		LocalReportRow *row = &t->local_report[i];

		WORD(subject);
		WORD(shard);
		NUMBER(sequence);
		NUMBER(available);
		NUMBER(reserved);
		NUMBER(spent);
		NUMBER(retired);
		NUMBER(excess);
		FLAG(sealed);
	}
}

/* subjects_of writes an array literal of the subjects that a history is about. */
static char *
subjects_of(const History *h)
{
	size_t		size = 3;
	char	   *literal;
	char	   *to;

	for (int i = 0; i < h->interleavings; i++)
		size += 2 * strlen(text_of(h->interleaving[i].subject)) + 3;
	to = literal = arena_new(size);
	*to++ = '{';
	for (int i = 0; i < h->interleavings; i++)
	{
		if (i > 0)
			*to++ = ',';
		*to++ = '"';
		for (const char *p = text_of(h->interleaving[i].subject); *p != '\0'; p++)
		{
			if (*p == '"' || *p == '\\')
				*to++ = '\\';
			*to++ = *p;
		}
		*to++ = '"';
	}
	*to++ = '}';
	*to = '\0';
	return literal;
}

void
tables_read(const History *history, Tables *t)
{
	const char *subjects = subjects_of(history);

	memset(t, 0, sizeof(*t));
	if (ledger_string == NULL)
		return;
	open_connection(&ledger, ledger_string);
	PQclear(query(ledger, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL));
	read_ledger(t, subjects);
	PQclear(query(ledger, "COMMIT", NULL));
	t->read = true;
	if (gateway_string == NULL || t->shards == 0)
		return;
	open_connection(&gateway, gateway_string);
	PQclear(query(gateway, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL));
	read_gateway(t, subjects);
	PQclear(query(gateway, "COMMIT", NULL));
	t->gateway_read = true;
}

const ReservationRow *
stored_reservation(const Tables *t, int subject, int id)
{
	for (int i = 0; i < t->reservations; i++)
		if (t->reservation[i].id == id && t->reservation[i].subject == subject)
			return &t->reservation[i];
	return NULL;
}

const OperationRow *
stored_operation(const Tables *t, int subject, int operation)
{
	for (int i = 0; i < t->operations; i++)
		if (t->operation[i].operation == operation && t->operation[i].subject == subject)
			return &t->operation[i];
	return NULL;
}
