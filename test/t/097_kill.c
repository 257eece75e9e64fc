/*
 * 097_kill.c
 *	  The load of 097_kill.pl: clients that use a ledger until it breaks under
 *	  them, and that write down, word for word, what they were told.
 *
 *	  097_kill CONNINFO SESSIONS SEED LOG
 *
 * Commands come on stdin, a line each:
 *	  round    every session connects, repeats the call whose answer it has not
 *			   got, then makes new ones until its connection breaks.  Prints
 *			   "ready" and the pids of the backends once all are connected, and
 *			   "broken <calls>" once all connections are gone
 *	  finish   every session ends what it has open.  Prints "finished"
 *
 * The log has a line for each call: what was asked, then the answer, or "lost".
 * A line is written when the answer is there, so nothing stands in it that was
 * not acknowledged.  It is complete whenever "broken" or "finished" is printed.
 * A session has one call under way at a time, so each id is used by one session.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libpq-fe.h>

#define SUBJECTS		3
#define MAX_SESSIONS	32
#define MAX_OPEN		5		/* reservations of one session at a time */
#define REMEMBERED		16		/* calls that a session may repeat */
#define PARAMS			5
#define TOLD			9		/* columns of an answer */
#define CONNECT_TRIES	6000	/* of 10 ms */

typedef enum CallKind
{
	RESERVE, RESERVE_AND_START, RESOLVE, START, EXTEND, REPORT_UNKNOWN, SETTLE, RELEASE,
	RECORD, GRANT, CLAIM, FINISH, EXECUTIONS, REPAY,
} CallKind;

/* The parameters of all calls: subject, route, id, units, operation (or the like). */
#define RECEIPT \
	"SELECT outcome, dimension, state, replayed, reserved_units, actual_units, operation," \
	" (extract(epoch FROM expires_at) * 1000000)::bigint," \
	" (extract(epoch FROM ledger_at) * 1000000)::bigint FROM limitledger."
#define SWEEP(columns) \
	"SELECT 'ACCEPTED', NULL, NULL, NULL, " columns ", NULL, NULL, NULL FROM limitledger."
#define DIGEST "sha256(convert_to($3, 'UTF8'))"

static const struct
{
	const char *name;
	const char *sql;
}			kinds[] = {
	[RESERVE] = {"reserve", RECEIPT "reserve_capacity($1, $2, $3, $4::bigint, " DIGEST ")"},
	[RESERVE_AND_START] = {"reserve_and_start", RECEIPT
		"reserve_capacity($1, $2, $3, $4::bigint, " DIGEST ", start_operation => $5)"},
	[RESOLVE] = {"resolve", RECEIPT "resolve_reservation($1, $3, " DIGEST ")"},
	[START] = {"start", RECEIPT "start_reservation($1, $3, $5)"},
	[EXTEND] = {"extend", RECEIPT "extend_reservation($1, $3, $5, $4::bigint)"},
	[REPORT_UNKNOWN] = {"report_unknown", RECEIPT "report_usage_unknown($1, $3, $5)"},
	[SETTLE] = {"settle", RECEIPT "settle_usage($1, $3, $5, $4::bigint)"},
	[RELEASE] = {"release", RECEIPT "release_reservation($1, $3)"},
	[RECORD] = {"record", RECEIPT "record_usage($1, $2, $5, $4::bigint)"},
	[GRANT] = {"grant", "SELECT outcome, dimension, NULL, replayed, granted_units, NULL, NULL, NULL, NULL"
		" FROM limitledger.grant_capacity($1, $2, $5, $4::bigint, 'more is needed')"},
	[CLAIM] = {"claim", SWEEP("claimed, NULL") "claim_expiring(20)"},
	[FINISH] = {"finish", SWEEP("expired, expired_units") "finish_expiring(20)"},
	[EXECUTIONS] = {"executions", SWEEP("unknown, NULL") "expire_executions(20)"},
	[REPAY] = {"repay", "SELECT outcome, dimension, NULL, NULL, repaid_units, NULL, NULL, NULL, NULL"
		" FROM limitledger.repay_debt($1, $2)"},
};

typedef enum Trial
{
	FIRST, AFTER_LOSS, REPEAT		/* as the log says it: 0, 1, 2 */
} Trial;

typedef struct Call
{
	CallKind	kind;
	int			subject;
	bool		brief;			/* the route on which holds run out soon */
	char		id[24];
	long		units;
	char		operation[32];
} Call;

/* A reservation that a session goes on with, as its last receipt showed it. */
typedef struct Item
{
	Call		reserve;
	char		state[24];
	long		units;
	int			extensions;
} Item;

typedef struct Session
{
	int			number;
	uint64_t	random;
	PGconn	   *conn;
	int			backend;		/* its pid */
	long		made;			/* ids */
	long		answered;		/* calls, in this round */
	bool		owes_call;		/* `pending` has been asked and not been answered */
	Call		pending;
	Item		open[MAX_OPEN];
	int			open_count;
	Call		past[REMEMBERED];	/* calls that were accepted */
	long		past_count;
} Session;

static const char *conninfo;
static FILE *answers;			/* the log */
static Session sessions[MAX_SESSIONS];
static int	session_count;
static bool finishing;
static pthread_barrier_t connected;

static void fail(const char *format,...) __attribute__((format(printf, 1, 2), noreturn));

static void
fail(const char *format,...)
{
	va_list		args;

	fputs("097_kill: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* roll returns 0 .. sides - 1: splitmix64, a stream for each session. */
static int
roll(Session *s, int sides)
{
	uint64_t	z = (s->random += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return (int) ((z ^ (z >> 31)) % (uint64_t) sides);
}

/* ---- one call ------------------------------------------------------------ */

/* write_answer adds a line to the log; stdio keeps the lines of threads apart. */
static void
write_answer(const Session *s, const Call *call, Trial trial, const char *answer)
{
	fprintf(answers, "%d\t%s\ts%d\t%s\t%s\t%ld\t%s\t%d\t%s\n", s->number, kinds[call->kind].name,
			call->subject, call->brief ? "brief" : "steady", call->id, call->units,
			call->operation, (int) trial, answer);
}

static void
write_told(const Session *s, const Call *call, Trial trial, const PGresult *result)
{
	char		line[512];
	int			length = 0;

	for (int column = 0; column < TOLD; column++)
		length += snprintf(line + length, sizeof(line) - length, "%s%s",
						   column == 0 ? "" : "\t", PQgetvalue(result, 0, column));
	write_answer(s, call, trial, line);
}

/* ask makes a call and logs what came of it; NULL: the connection is gone. */
static PGresult *
ask(Session *s, const Call *call, Trial trial)
{
	static const Oid types[PARAMS] = {25, 25, 25, 25, 25};	/* text */
	char		subject[8];
	char		units[24];
	char		error[256];
	const char *values[PARAMS] = {subject, call->brief ? "brief" : "steady", call->id, units, call->operation};
	PGresult   *result;

	snprintf(subject, sizeof(subject), "s%d", call->subject);
	snprintf(units, sizeof(units), "%ld", call->units);
	result = PQexecParams(s->conn, kinds[call->kind].sql, PARAMS, types, values, NULL, NULL, 0);
	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
	{
		s->answered++;
		write_told(s, call, trial, result);
		return result;
	}
	if (PQstatus(s->conn) == CONNECTION_OK)
	{
		const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

		/* The last word of a server that ends: 57P01, 57P02.  Without a state it was libpq's own. */
		if (state != NULL && strncmp(state, "57P", 3) != 0)
		{
			snprintf(error, sizeof(error), "error\t%s", state);
			write_answer(s, call, trial, error);
			fail("%s: %s", kinds[call->kind].name, PQerrorMessage(s->conn));
		}
	}
	write_answer(s, call, trial, "lost");
	PQclear(result);
	return NULL;
}

/* ---- what a session does next -------------------------------------------- */

static void
drop(Session *s, Item *item)
{
	*item = s->open[--s->open_count];
}

/* find returns the open reservation that a call is about. */
static Item *
find(Session *s, const Call *call)
{
	for (int i = 0; i < s->open_count; i++)
		if (strcmp(s->open[i].reserve.id, call->id) == 0)
			return &s->open[i];
	return NULL;
}

static bool
is_open(const char *state)
{
	return strcmp(state, "RESERVED") == 0 || strcmp(state, "STARTED") == 0 ||
		strcmp(state, "USAGE_UNKNOWN") == 0;
}

/* learn takes over what the receipt of a call says about its reservation. */
static void
learn(Session *s, const Call *call, const PGresult *result)
{
	bool		accepted = strcmp(PQgetvalue(result, 0, 0), "ACCEPTED") == 0;
	const char *dimension = PQgetvalue(result, 0, 1);
	const char *state = PQgetvalue(result, 0, 2);
	Item	   *item = find(s, call);

	if (accepted && call->kind <= GRANT)
		s->past[s->past_count++ % REMEMBERED] = *call;
	if (call->kind > RELEASE)
		return;
	if (item == NULL && accepted && call->kind <= RESOLVE && is_open(state))
	{
		item = &s->open[s->open_count++];
		memset(item, 0, sizeof(*item));
		item->reserve = *call;
	}
	if (item == NULL)
		return;
	if (!is_open(state) || (strcmp(state, "RESERVED") == 0 && strcmp(dimension, "expired") == 0))
	{
		drop(s, item);
		return;
	}
	snprintf(item->state, sizeof(item->state), "%s", state);
	item->units = strtol(PQgetvalue(result, 0, 4), NULL, 10);
}

/* perform makes a call; false: it is still to be answered, in the next round. */
static bool
perform(Session *s, const Call *call, Trial trial)
{
	PGresult   *result = ask(s, call, trial);

	if (result == NULL)
	{
		/* A repeat of what was answered before is owed to nobody. */
		if (trial != REPEAT && call->kind < CLAIM)
		{
			s->pending = *call;
			s->owes_call = true;
		}
		return false;
	}
	if (trial != REPEAT)
		learn(s, call, result);
	PQclear(result);
	return true;
}

/* ask_again repeats the call that was lost, or resolves the id for good. */
static bool
ask_again(Session *s)
{
	Call		call = s->pending;

	if (!s->owes_call)
		return true;
	s->owes_call = false;
	if ((call.kind == RESERVE || call.kind == RESERVE_AND_START) && roll(s, 3) == 0)
		call.kind = RESOLVE;
	return perform(s, &call, AFTER_LOSS);
}

/* new_call is a call about nothing that exists yet. */
static Call
new_call(Session *s, CallKind kind, int most_units)
{
	Call		call = {.kind = kind, .subject = roll(s, SUBJECTS), .brief = roll(s, 2) == 0};

	s->made++;
	snprintf(call.id, sizeof(call.id), "r%d-%ld", s->number, s->made);
	snprintf(call.operation, sizeof(call.operation), "o%d-%ld", s->number, s->made);
	call.units = 1 + roll(s, most_units);
	return call;
}

/* settlement says what was used: mostly less, now and then more than was reserved. */
static Call
settlement(Session *s, const Item *item)
{
	Call		call = item->reserve;

	call.kind = SETTLE;
	call.units = roll(s, 10) == 0 ? item->units + roll(s, 30) : roll(s, (int) item->units + 1);
	return call;
}

static Call
extension(Session *s, Item *item)
{
	Call		call = item->reserve;

	call.kind = EXTEND;
	call.units = 1 + roll(s, 10);
	snprintf(call.operation, sizeof(call.operation), "e%d", ++item->extensions);
	return call;
}

/* go_on takes one open reservation a step further. */
static bool
go_on(Session *s)
{
	Item	   *item = &s->open[roll(s, s->open_count)];
	Call		call = item->reserve;
	int			dice = roll(s, 20);

	if (strcmp(item->state, "RESERVED") == 0)
	{
		if (dice < 2)
			call = extension(s, item);
		else if (dice < 5)
			call.kind = RELEASE;
		else if (dice < 8 && call.brief)
		{
			drop(s, item);		/* forgotten: it runs out */
			return true;
		}
		else
			call.kind = START;
	}
	else if (strcmp(item->state, "STARTED") == 0 && dice < 5)
	{
		if (dice < 3)
			call = extension(s, item);
		else
			call.kind = REPORT_UNKNOWN;
	}
	else
		call = settlement(s, item);
	return perform(s, &call, FIRST);
}

/* step makes one call of a client's day. */
static bool
step(Session *s)
{
	int			dice = roll(s, 100);
	Call		call;

	if (dice < 5 && s->past_count > 0)
	{
		int			known = s->past_count < REMEMBERED ? (int) s->past_count : REMEMBERED;

		return perform(s, &s->past[roll(s, known)], REPEAT);
	}
	if (dice < 10)
		call = new_call(s, RECORD, 30);
	else if (dice < 12)
	{
		call = new_call(s, GRANT, 50);
		call.brief = false;
	}
	else if (dice < 20 || (s->number == 0 && dice < 50))
		call = new_call(s, CLAIM + roll(s, REPAY - CLAIM + 1), 1);
	else if (s->open_count == 0 || (s->open_count < MAX_OPEN && dice < 55))
		call = new_call(s, dice % 4 == 0 ? RESERVE_AND_START : RESERVE, 40);
	else
		return go_on(s);
	return perform(s, &call, FIRST);
}

/* end_all settles what runs and releases what does not. */
static bool
end_all(Session *s)
{
	while (s->open_count > 0)
	{
		Item	   *item = &s->open[0];
		Call		call = item->reserve;

		if (strcmp(item->state, "RESERVED") == 0)
			call.kind = RELEASE;
		else
			call = settlement(s, item);
		if (!perform(s, &call, FIRST))
			return false;
	}
	return true;
}

/* ---- rounds -------------------------------------------------------------- */

static PGconn *
connection(void)
{
	for (int tries = 0; tries < CONNECT_TRIES; tries++)
	{
		PGconn	   *conn = PQconnectdb(conninfo);

		if (PQstatus(conn) == CONNECTION_OK)
			return conn;
		PQfinish(conn);
		usleep(10000);
	}
	fail("no connection");
}

/* be_quiet: what a server says while it goes down is no news here. */
static void
be_quiet(void *arg, const char *message)
{
	(void) arg;
	(void) message;
}

static void *
session_run(void *arg)
{
	Session    *s = arg;
	bool		answered;

	s->answered = 0;
	s->conn = connection();
	s->backend = PQbackendPID(s->conn);
	PQsetNoticeProcessor(s->conn, be_quiet, NULL);
	pthread_barrier_wait(&connected);
	answered = ask_again(s);
	if (finishing)
	{
		if (!answered || !end_all(s))
			fail("the server ended while all was to be finished");
	}
	else
		while (answered)
			answered = step(s);
	PQfinish(s->conn);
	return NULL;
}

static void
run(bool finish)
{
	pthread_t	threads[MAX_SESSIONS];
	long		calls = 0;

	finishing = finish;
	for (int i = 0; i < session_count; i++)
		if (pthread_create(&threads[i], NULL, session_run, &sessions[i]) != 0)
			fail("no thread");
	pthread_barrier_wait(&connected);
	if (!finish)
	{
		printf("ready");
		for (int i = 0; i < session_count; i++)
			printf(" %d", sessions[i].backend);
		printf("\n");
	}
	for (int i = 0; i < session_count; i++)
	{
		pthread_join(threads[i], NULL);
		calls += sessions[i].answered;
	}
	if (fflush(answers) != 0)
		fail("the log can't be written");
	if (finish)
		printf("finished\n");
	else
		printf("broken %ld\n", calls);
}

int
main(int argc, char **argv)
{
	char		command[16];

	if (argc != 5)
		fail("usage: 097_kill CONNINFO SESSIONS SEED LOG");
	conninfo = argv[1];
	session_count = atoi(argv[2]);
	if (session_count < 1 || session_count > MAX_SESSIONS)
		fail("1 to %d sessions", MAX_SESSIONS);
	answers = fopen(argv[4], "w");
	if (answers == NULL)
		fail("%s can't be written", argv[4]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	pthread_barrier_init(&connected, NULL, (unsigned) session_count + 1);
	for (int i = 0; i < session_count; i++)
	{
		sessions[i].number = i;
		sessions[i].random = strtoull(argv[3], NULL, 10) * 1000 + (uint64_t) i;
	}
	while (fgets(command, sizeof(command), stdin) != NULL)
		run(strcmp(command, "finish\n") == 0);
	return 0;
}
