/*
 * play.c
 *	  Plays a plan: sends its steps in their order, and writes the history.
 *
 * A step is sent once everything before it has been answered, or waits for a
 * lock.  A call can wait only while another transaction is open, so only then
 * is the backend looked at: it has read its call and sleeps.  Steps of an actor
 * whose call waits are put off until it is answered; the others go on.
 */
#include <ctype.h>
#include <endian.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

/* 2100-01-04, a Monday: no background worker finds anything due there. */
#define BASE	(INT64_C(4102704000) * SECOND)

#define POSTGRES_EPOCH	(INT64_C(946684800) * SECOND)

#define EACH_SESSION(lane, session) \
	for (Session *session = &(lane)->session[0][0]; session <= &(lane)->session[ACTORS][DATABASES - 1]; session++)

static void call_ended(Lane *lane, Session *session, Outcome outcome);

/* ---- the history ----------------------------------------------------------- */

static void
write_fault(Lane *lane, int actor, const char *fault, int call)
{
	if (actor == 0)
		text_add(&lane->history, "!\tserver\t%s\t", fault);
	else
		text_add(&lane->history, "!\t%d\t%s\t", actor, fault);
	if (call > 0)
		text_add(&lane->history, "%d\n", call);
	else
		text_add(&lane->history, "\\N\n");
}

static void
write_transaction(Lane *lane, const Session *session, const char *event, const char *more)
{
	text_add(&lane->history, "x\t%d\t%d\t%s%s%s\n", session->transaction, session->actor, event,
			 more != NULL ? "\t" : "", more != NULL ? more : "");
}

/* play_server_fault notes what happened to the server in the middle of it. */
void
play_server_fault(Lane *lane, const char *fault)
{
	lane->boot_old = true;
	if (lane->playing)
		write_fault(lane, 0, fault, 0);
}

static void
instant_text(Instant instant, char *text, size_t size)
{
	time_t		seconds = instant / SECOND;
	struct tm	parts;
	size_t		length;

	gmtime_r(&seconds, &parts);
	length = strftime(text, size, "%Y-%m-%d %H:%M:%S", &parts);
	snprintf(text + length, size - length, ".%06d+00", (int) (instant % SECOND));
}

/* write_policy tells the auditor of a policy that came into force. */
static void
write_policy(Text *text, const Policy *policy, const char *route, const char *generation, Instant since)
{
	text_add(text, "P\t%s\t%s\t*\t%" PRId64 "\t%s\t%" PRId64, route, generation, since, policy->refill, policy->cap);
	if (policy->refill_units > 0)
		text_add(text, "\t%" PRId64 "\t%" PRId64, policy->refill_units, policy->refill_interval);
	else
		text_add(text, "\t\\N\t\\N");
	text_add(text, "\t%" PRId64 "\t%" PRId64, policy->epoch, policy->largest_reservation);
	if (policy->largest_outstanding > 0)
		text_add(text, "\t%" PRId64, policy->largest_outstanding);
	else
		text_add(text, "\t\\N");
	text_add(text, "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64, policy->hard_limit,
			 policy->maximum_overdraft, policy->hold_ttl, policy->execution_ttl);
	if (policy->share > 0)
		text_add(text, "\t%d\t%" PRId64 "\n", policy->share, policy->shard_ttl);
	else
		text_add(text, "\t\\N\t\\N\n");
}

/* play_policies writes those that every lane begins with. */
void
play_policies(Text *text)
{
	for (int i = 0; i < policy_count; i++)
	{
		char		generation[16];

		snprintf(generation, sizeof(generation), "%d", i + 1);
		write_policy(text, &policies[i], policies[i].name, generation, policy_since(&policies[i]));
	}
}

/* ---- arguments --------------------------------------------------------------- */

typedef struct Argument
{
	const char *sent;			/* as the server reads it; NULL */
	const char *written;		/* as the history has it, if that differs */
	char		buffer[96];
	char		other[40];
} Argument;

/* The document that a number stands for: the plan's own policy, then others. */
static const Policy *
numbered_policy(const Plan *plan, int number)
{
	int			place = plan->policy;

	while (number > 1)
	{
		place = (place + 1) % policy_count;
		if (!policies[place].real && policies[place].cap < INT64_MAX)
			number--;
	}
	return &policies[place];
}

static void
make_argument(Lane *lane, const Step *step, char letter, Instant clock, Argument *argument)
{
	const Policy *policy = &policies[lane->plan.policy];
	Instant		instant;

	argument->sent = argument->buffer;
	argument->written = NULL;
	switch (letter)
	{
		case 's':
			argument->sent = lane->subject;
			break;
		case 'r':
			argument->sent = lane->route;
			break;
		case 'i':
			snprintf(argument->buffer, sizeof(argument->buffer), "r%d", step->item);
			break;
		case 'u':
			snprintf(argument->buffer, sizeof(argument->buffer), "%" PRId64, amount_units(step->amount, policy));
			break;
		case 'd':
			memcpy(argument->buffer, "\\x", 2);
			for (int i = 0; i < 32; i++)
				snprintf(argument->buffer + 2 + 2 * i, 3, "%02x", step->item + (step->other ? 0x80 : 0));
			argument->written = argument->buffer + 2;
			break;
		case 'o':
			snprintf(argument->buffer, sizeof(argument->buffer), "%c%d", step->other ? 'p' : 'o', step->item);
			break;
		case 'v':
		case 'e':
		case 'g':
			snprintf(argument->buffer, sizeof(argument->buffer), "%c%d", letter == 'v' ? 'u' : letter, step->item);
			break;
		case 'x':
			argument->sent = "the gate";
			break;
		case 'n':
			argument->sent = "100";
			break;
		case 'l':
			argument->sent = "1 minute";
			break;
		case 'a':
			argument->sent = " ";
			break;
		case 'k':
			argument->sent = "executor";
			break;
		case 'c':
			snprintf(argument->buffer, sizeof(argument->buffer), "actor %d", step->actor);
			break;
		case 'D':
		case 'U':
			instant = (clock != 0 ? clock : now_of_driver()) +
				(letter == 'D' ? (step->other ? -SECOND : policy->hold_ttl / 2) : policy->hold_ttl * 3 / 4);
			instant_text(instant, argument->buffer, sizeof(argument->buffer));
			snprintf(argument->other, sizeof(argument->other), "%" PRId64, instant);
			argument->written = argument->other;
			break;
		case 'h':
			snprintf(argument->buffer, sizeof(argument->buffer), "s%d", step->item);
			break;
		case 'w':
			argument->sent = "gw";
			break;
		case 'E':
			argument->sent = lane->shard_envelope[step->item] != NULL ? lane->shard_envelope[step->item] : "none";
			break;
		case 'R':
			argument->sent = lane->report_envelope[step->item] != NULL ? lane->report_envelope[step->item] : "none";
			break;
		case 'B':
			argument->sent = lane->boot;
			break;
		case 'j':
			{
				static Text document;

				text_clear(&document);
				policy_document(&document, numbered_policy(&lane->plan, step->item), lane->route);
				argument->sent = document.data;
			}
			break;
		default:
			argument->sent = NULL;
			break;
	}
}

/* ---- sending -------------------------------------------------------------------- */

static bool
connected(Lane *lane, Session *session)
{
	if (session->conn != NULL)
		return true;
	for (int tries = 0; tries < 400; tries++)
	{
		if (session_connect(session, lane->database[session->database]))
			return true;
		usleep(25000);
	}
	fail("lane %d: no connection to %s", lane->number, lane->database[session->database]);
}

static void
add_command(Session *session, Command command, int sent)
{
	if (sent == 1)
		session->command[session->commands++] = command;
}

static void
send_text(Session *session, Command command, const char *sql)
{
	add_command(session, command, PQsendQueryParams(session->conn, sql, 0, NULL, NULL, NULL, NULL, 0));
}

/* flush_session ends what is sent at once; false: the connection is gone. */
static bool
flush_session(Session *session)
{
	session->busy = true;
	session->asleep = 0;
	session->failed = false;
	session->answered = 0;
	if (PQpipelineSync(session->conn) != 1 || PQflush(session->conn) < 0)
	{
		play_lost(session);
		return false;
	}
	return true;
}

static void
send_call(Lane *lane, Session *session, const Step *step, bool question)
{
	const CallForm *form = &call_forms[step->call];
	Instant		clock = lane->real ? 0 : lane->clock - (step->fault == FAULT_CLOCK_BACK ? 5 * SECOND : 0);
	int			count = (int) strlen(form->args);
	Argument	arguments[12];
	const char *values[12];
	char		name[16];
	Call	   *call;
	int			number;

	if (lane->calls == CALLS)
		fail("lane %d: too many calls in one interleaving", lane->number);
	connected(lane, session);
	number = ++lane->calls;
	call = &lane->call[number];
	memset(call, 0, sizeof(*call));
	call->step = *step;
	call->question = question;
	call->outcome = OUTCOME_SENT;
	session->commands = 0;
	session->call = number;
	snprintf(name, sizeof(name), "c%d", (int) step->call);

	/* BEGIN comes first: with a level, nothing may have been looked at before it. */
	if (step->begin != LEVEL_NONE && session->transaction == 0)
	{
		static const char *const begins[LEVELS] = {"", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ",
			"BEGIN ISOLATION LEVEL SERIALIZABLE"};

		session->transaction = ++lane->transactions;
		session->level = step->begin;
		session->savepoint = false;
		send_text(session, COMMAND_BEGIN, begins[step->begin]);
		write_transaction(lane, session, "begin", level_names[step->begin]);
	}
	if (!session->prepared[step->call])
	{
		char		sql[256];
		int			length = snprintf(sql, sizeof(sql), "SELECT * FROM limitledger.%s(", form->function);

		for (int i = 1; i <= count; i++)
			length += snprintf(sql + length, sizeof(sql) - length, "%s$%d", i > 1 ? ", " : "", i);
		snprintf(sql + length, sizeof(sql) - length, ")");
		add_command(session, COMMAND_PREPARE, PQsendPrepare(session->conn, name, sql, 0, NULL));
	}
	session->new_clock = clock;
	if (session->clock != clock)
	{
		char		sql[96] = "SET limitledger.clock_override = '";

		if (clock != 0)
			instant_text(clock, sql + strlen(sql), sizeof(sql) - strlen(sql));
		strcat(sql, "'");
		send_text(session, COMMAND_CLOCK, sql);
	}
	if (step->savepoint && session->transaction != 0)
	{
		send_text(session, COMMAND_SAVEPOINT, "SAVEPOINT s");
		session->savepoint = true;
		write_transaction(lane, session, "savepoint", "s");
	}
	call->in_transaction = session->transaction != 0;
	call->transaction = call->in_transaction ? session->transaction : ++lane->transactions;

	text_add(&lane->history, ">\t%d\t%d\t%d\t", number, session->actor, call->transaction);
	if (clock != 0)
		text_add(&lane->history, "%" PRId64, clock);
	else
		text_add(&lane->history, "\\N");
	text_add(&lane->history, "\t%s\t%s", database_names[form->database], form->function);
	for (int i = 0; i < count; i++)
	{
		make_argument(lane, step, form->args[i], clock, &arguments[i]);
		values[i] = arguments[i].sent;
		text_add_field(&lane->history, arguments[i].written != NULL ? arguments[i].written : arguments[i].sent);
	}
	text_add(&lane->history, "\n");
	add_command(session, COMMAND_CALL, PQsendQueryPrepared(session->conn, name, count, values, NULL, NULL, 1));
	lane->moved = now_of_driver();
	if (!flush_session(session))
		return;

	/* What goes wrong with a call that was sent. */
	switch (step->fault)
	{
		case FAULT_CUT:
			write_fault(lane, step->actor, fault_names[step->fault], number);
			if (lane->ghost_count < (int) (sizeof(lane->ghosts) / sizeof(lane->ghosts[0])))
				lane->ghosts[lane->ghost_count++] = session->pid;
			play_lost(session);
			break;
		case FAULT_TERMINATE:
			write_fault(lane, step->actor, fault_names[step->fault], number);
			kill(session->pid, SIGTERM);
			break;
		case FAULT_CANCEL:
			write_fault(lane, step->actor, fault_names[step->fault], number);
			session->cancel = true;
			kill(session->pid, SIGINT);
			break;
		case FAULT_NONE:
		case FAULT_LOST_REQUEST:
		case FAULT_PARTITION_REQUEST:
			break;
		default:
			write_fault(lane, step->actor, fault_names[step->fault], number);
			break;
	}
}

/* send_end sends COMMIT, ROLLBACK or ROLLBACK TO. */
static void
send_end(Lane *lane, Session *session, StepKind kind)
{
	session->commands = 0;
	session->call = 0;
	switch (kind)
	{
		case STEP_COMMIT:
			send_text(session, COMMAND_COMMIT, "COMMIT");
			session->ending = true;
			write_transaction(lane, session, "commit", NULL);
			break;
		case STEP_ROLLBACK_TO:
			send_text(session, COMMAND_ROLLBACK_TO, "ROLLBACK TO s");
			break;
		default:
			send_text(session, COMMAND_ROLLBACK, "ROLLBACK");
			write_transaction(lane, session, "rollback", NULL);
			break;
	}
	lane->moved = now_of_driver();
	flush_session(session);
}

/* ---- answers ----------------------------------------------------------------------- */

static uint64_t
big_endian(const char *bytes)
{
	uint64_t	value;

	memcpy(&value, bytes, sizeof(value));
	return be64toh(value);
}

/* A value in the binary form, as the history writes it. */
static void
write_value(Text *text, const PGresult *result, int row, int column)
{
	const char *value = PQgetvalue(result, row, column);
	int			length = PQgetlength(result, row, column);
	uint32_t	number;

	if (PQgetisnull(result, row, column))
	{
		text_add(text, "\t\\N");
		return;
	}
	switch (PQftype(result, column))
	{
		case 16:				/* boolean */
			text_add(text, "\t%s", value[0] ? "t" : "f");
			break;
		case 20:				/* bigint */
			text_add(text, "\t%" PRId64, (int64_t) big_endian(value));
			break;
		case 23:				/* integer */
			memcpy(&number, value, sizeof(number));
			text_add(text, "\t%d", (int) be32toh(number));
			break;
		case 1184:				/* timestamptz */
			text_add(text, "\t%" PRId64, (int64_t) big_endian(value) + POSTGRES_EPOCH);
			break;
		case 17:				/* bytea */
		case 2950:				/* uuid */
			text_add(text, "\t");
			for (int i = 0; i < length; i++)
				text_add(text, "%02x", (unsigned char) value[i]);
			break;
		default:
			text_add_field(text, value);
			break;
	}
}

static const char *
column(const PGresult *result, const char *name)
{
	int			number = PQfnumber(result, name);

	return number < 0 || PQgetisnull(result, 0, number) ? NULL : PQgetvalue(result, 0, number);
}

static void
keep(char **place, const char *value)
{
	if (value == NULL)
		return;
	free(*place);
	*place = strdup(value);
}

/*
 * tell_policy tells of one that was published in this interleaving: each publication,
 * and what was found `again` unless it has been told.  A number whose publication was
 * rolled back is given to the next one, so the last that was told of a number stands.
 */
static void
tell_policy(Lane *lane, int number, int64_t generation, Instant since, bool again)
{
	char		text[24];

	for (int i = lane->published; again && i-- > 0;)
		if (lane->generation[i] == generation)
		{
			if (lane->document[i] == number)
				return;
			break;
		}
	if (lane->published == (int) (sizeof(lane->generation) / sizeof(lane->generation[0])))
		fail("lane %d: too many policies", lane->number);
	lane->document[lane->published] = number;
	lane->generation[lane->published++] = generation;
	snprintf(text, sizeof(text), "%" PRId64, generation);
	write_policy(&lane->history, numbered_policy(&lane->plan, number), lane->route, text, since);
}

/*
 * find_policies tells of those whose publication was answered to nobody.  They
 * are read from the ledger: another one may have followed before it was asked again.
 */
static void
find_policies(Lane *lane)
{
	bool		lost = false;
	PGconn	   *conn;

	for (int i = 1; i <= lane->calls; i++)
		lost |= lane->call[i].step.call == CALL_PUBLISH && lane->call[i].outcome == OUTCOME_LOST;
	if (!lost)
		return;
	conn = connect_to(lane->server, lane->database[LEDGER]);
	if (conn == NULL)
		fail("lane %d: no connection", lane->number);
	for (int number = 1; number <= 4; number++)
	{
		static Text sql;
		PGresult   *result;

		text_clear(&sql);
		text_add(&sql, "SELECT generation, (extract(epoch FROM active_at) * 1000000)::bigint FROM limitledger.policy"
				 " WHERE route = '%s' AND active_at IS NOT NULL AND document - 'policyGeneration' = '", lane->route);
		policy_document(&sql, numbered_policy(&lane->plan, number), lane->route);
		text_add(&sql, "'::jsonb ORDER BY generation");
		result = PQexec(conn, sql.data);
		if (PQresultStatus(result) != PGRES_TUPLES_OK)
			fail("lane %d: %s", lane->number, PQerrorMessage(conn));
		for (int i = 0; i < PQntuples(result); i++)
			tell_policy(lane, number, strtoll(PQgetvalue(result, i, 0), NULL, 10),
						strtoll(PQgetvalue(result, i, 1), NULL, 10), true);
		PQclear(result);
	}
	PQfinish(conn);
}

/* learn takes from an answer what later steps need. */
static void
learn(Lane *lane, Call *call, const PGresult *result)
{
	const CallForm *form = &call_forms[call->step.call];
	const char *value;

	if (PQntuples(result) == 0)
		return;
	if (form->receipt)
	{
		call->accepted = strcmp(PQgetvalue(result, 0, 0), "ACCEPTED") == 0;
		snprintf(call->state, sizeof(call->state), "%s", PQgetvalue(result, 0, 2));
		snprintf(call->operation, sizeof(call->operation), "%s", PQgetvalue(result, 0, 8));
		return;
	}
	value = column(result, "outcome");
	call->accepted = value != NULL && strcmp(value, "ACCEPTED") == 0;
	switch (call->step.call)
	{
		case CALL_SIGN:
			keep(&lane->shard_envelope[call->step.item], column(result, "envelope"));
			break;
		case CALL_REPORT:
			keep(&lane->report_envelope[call->step.item], column(result, "envelope"));
			break;
		case CALL_RECONCILE:
			value = column(result, "settled");
			snprintf(call->state, sizeof(call->state), "%s", value != NULL && value[0] ? "settled" : "");
			break;
		case CALL_RENEW:
			value = column(result, "boot_epoch");
			if (value != NULL)
				for (int i = 0; i < 16; i++)
					snprintf(lane->boot + 2 * i, 3, "%02x", (unsigned char) value[i]);
			break;
		case CALL_PUBLISH:
			{
				const char *again = column(result, "already_published");

				value = column(result, "active_at");
				call->accepted = true;
				if (value != NULL)
					tell_policy(lane, call->step.item, (int64_t) big_endian(PQgetvalue(result, 0, 0)),
								(int64_t) big_endian(value) + POSTGRES_EPOCH, again != NULL && again[0]);
			}
			break;
		default:
			break;
	}
}

static bool
reply_is_lost(const Call *call)
{
	return call->step.fault == FAULT_LOST_REPLY || call->step.fault == FAULT_PARTITION_REPLY;
}

static void
answer(Lane *lane, Session *session, const PGresult *result)
{
	Call	   *call = &lane->call[session->call];

	if (reply_is_lost(call))
		return;					/* read, and thrown away */
	for (int row = 0; row < PQntuples(result); row++)
	{
		text_add(&lane->history, "<\t%d\trow", session->call);
		for (int i = 0; i < PQnfields(result); i++)
			write_value(&lane->history, result, row, i);
		text_add(&lane->history, "\n");
	}
	learn(lane, call, result);
}

/* A transaction has ended: what was called in it stands, or does not. */
static void
transaction_ended(Lane *lane, Session *session, bool stands, bool known)
{
	for (int i = 1; i <= lane->calls; i++)
	{
		Call	   *call = &lane->call[i];

		if (!call->in_transaction || call->transaction != session->transaction)
			continue;
		if (!known && call->outcome == OUTCOME_DONE)
			call->outcome = OUTCOME_LOST;
		else if (!stands)
			call->rolled_back = true;
	}
	session->transaction = 0;
	session->aborted = session->ending = session->savepoint = false;
}

static void
command_done(Lane *lane, Session *session, Command command, const PGresult *result)
{
	switch (command)
	{
		case COMMAND_PREPARE:
			session->prepared[lane->call[session->call].step.call] = true;
			break;
		case COMMAND_CLOCK:
			session->clock = session->new_clock;
			break;
		case COMMAND_CALL:
			answer(lane, session, result);
			break;
		case COMMAND_COMMIT:
			{
				bool		committed = strcmp(PQcmdStatus((PGresult *) result), "COMMIT") == 0;

				write_transaction(lane, session, committed ? "committed" : "rolledback", NULL);
				transaction_ended(lane, session, committed, true);
				if (!committed)
					session->clock = -1;
			}
			break;
		case COMMAND_ROLLBACK:
			write_transaction(lane, session, "rolledback", NULL);
			transaction_ended(lane, session, false, true);
			session->clock = -1;	/* SET goes back with it */
			break;
		case COMMAND_ROLLBACK_TO:
			write_transaction(lane, session, "rollback to", "s");
			for (int i = lane->calls; i > 0; i--)
			{
				Call	   *call = &lane->call[i];

				if (call->transaction != session->transaction)
					continue;
				call->rolled_back = true;
				if (call->step.savepoint)
					break;
			}
			session->aborted = false;
			session->clock = -1;
			break;
		case COMMAND_BEGIN:
		case COMMAND_SAVEPOINT:
			break;
	}
}

/* call_failed writes an error; one that ends the connection says nothing about the call. */
static void
call_failed(Lane *lane, Session *session, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	if (state == NULL || severity == NULL || strcmp(severity, "ERROR") != 0)
		return;
	session->failed = true;
	session->clock = -1;
	if (session->call > 0 && session->command[session->answered - 1] != COMMAND_CALL)
		session->savepoint = false; /* a cancel came before the call: it may not be set */
	if (session->call > 0 && reply_is_lost(&lane->call[session->call]))
	{
		text_add(&lane->history, "<\t%d\tlost\n", session->call);
		call_ended(lane, session, OUTCOME_LOST);
	}
	else if (session->call > 0)
	{
		text_add(&lane->history, "<\t%d\terror\t%s", session->call, state);
		text_add_field(&lane->history, message);
		text_add(&lane->history, "\n");
		call_ended(lane, session, OUTCOME_ERROR);
	}
	else if (session->ending)
	{
		write_transaction(lane, session, "failed", state);
		transaction_ended(lane, session, false, true);
	}
	else
		fail("lane %d: %s %s", lane->number, state, message);
}

static void
call_ended(Lane *lane, Session *session, Outcome outcome)
{
	lane->call[session->call].outcome = outcome;
	session->cancel = false;
}

/* All that was sent last has been answered. */
static void
session_answered(Lane *lane, Session *session)
{
	session->busy = false;
	lane->moved = now_of_driver();
	if (session->call > 0 && !session->failed)
	{
		bool		lost = reply_is_lost(&lane->call[session->call]);

		text_add(&lane->history, "<\t%d\t%s\n", session->call, lost ? "lost" : "done");
		call_ended(lane, session, lost ? OUTCOME_LOST : OUTCOME_DONE);
	}
	session->call = 0;
	if (session->transaction != 0 && PQtransactionStatus(session->conn) == PQTRANS_INERROR)
		session->aborted = true;
	if (session->transaction != 0 && PQtransactionStatus(session->conn) == PQTRANS_IDLE)
	{
		/* The cancel met BEGIN. */
		write_transaction(lane, session, "rolledback", NULL);
		transaction_ended(lane, session, false, true);
		lane->skipping[session->actor] = true;
	}
}

/* play_read takes what a socket has. */
void
play_read(Session *session)
{
	Lane	   *lane = session->lane;

	if (session->conn == NULL)
		return;
	if (PQconsumeInput(session->conn) == 0)
	{
		play_lost(session);
		return;
	}
	while (session->busy && !PQisBusy(session->conn))
	{
		PGresult   *result = PQgetResult(session->conn);

		if (result == NULL)
			continue;
		switch (PQresultStatus(result))
		{
			case PGRES_COMMAND_OK:
			case PGRES_TUPLES_OK:
				command_done(lane, session, session->command[session->answered++], result);
				break;
			case PGRES_FATAL_ERROR:
				session->answered++;
				call_failed(lane, session, result);
				break;
			case PGRES_PIPELINE_ABORTED:
				session->answered++;
				break;
			case PGRES_PIPELINE_SYNC:
				session_answered(lane, session);
				break;
			default:
				fail("an answer of an unknown kind");
		}
		PQclear(result);
		if (PQstatus(session->conn) == CONNECTION_BAD)
		{
			play_lost(session);
			return;
		}
	}
	if (!session->busy && PQstatus(session->conn) == CONNECTION_BAD)
		play_lost(session);
}

/* play_lost: nothing more comes on this connection. */
void
play_lost(Session *session)
{
	Lane	   *lane = session->lane;

	if (session->conn == NULL)
		return;
	if (session->call > 0 && session->busy && lane->call[session->call].outcome == OUTCOME_SENT)
	{
		text_add(&lane->history, "<\t%d\tlost\n", session->call);
		call_ended(lane, session, OUTCOME_LOST);
	}
	if (session->transaction != 0)
	{
		write_transaction(lane, session, "lost", NULL);
		if (!session->ending)
			lane->skipping[session->actor] = true;
		transaction_ended(lane, session, false, !session->ending);
	}
	session->call = 0;
	session_close(session);
	lane->moved = now_of_driver();
}

/* ---- what comes next ----------------------------------------------------------------- */

/* others_open: a call of this session may have to wait for another transaction. */
static bool
others_open(Lane *lane, const Session *self)
{
	if (lane->ghost_count > 0)
		return true;
	EACH_SESSION(lane, session)
		if (session != self && session->conn != NULL && (session->transaction != 0 || session->busy))
			return true;
	return false;
}

/* settled: all that was sent is answered, or waits for a lock. */
static bool
settled(Lane *lane)
{
	EACH_SESSION(lane, session)
	{
		if (!session->busy)
			continue;
		if (!others_open(lane, session) || !session_asleep(session))
			return false;
		if (session->cancel)
		{
			session->cancel = false;
			kill(session->pid, SIGINT);
			return false;
		}
	}
	return true;
}

static bool
actor_busy(Lane *lane, int actor)
{
	for (int i = 0; i < DATABASES; i++)
		if (lane->session[actor][i].busy)
			return true;
	return false;
}

static Session *
open_transaction(Lane *lane, int actor)
{
	for (int i = 0; i < DATABASES; i++)
		if (lane->session[actor][i].transaction != 0)
			return &lane->session[actor][i];
	return NULL;
}

static void
move_clock(Lane *lane, ClockStep step)
{
	const Policy *policy = &policies[lane->plan.policy];

	if (lane->real)
	{
		static const Instant waits[CLOCK_STEPS] = {1000, 0, 1, 5000, 0, 12000};
		Instant		wait = step == CLOCK_HOLD || step == CLOCK_PAST_HOLD ? policy->hold_ttl + waits[step]
			: step == CLOCK_EXECUTION ? policy->execution_ttl : waits[step];

		lane->sleep_until = now_of_driver() + wait;
		return;
	}
	switch (step)
	{
		case CLOCK_TICK:
			lane->clock += SECOND;
			break;
		case CLOCK_HOLD:
			lane->clock += policy->hold_ttl;
			break;
		case CLOCK_PAST_HOLD:
			lane->clock += policy->hold_ttl + 1;
			break;
		case CLOCK_EPOCH:
			lane->clock += policy->epoch - lane->clock % policy->epoch;
			break;
		case CLOCK_EXECUTION:
			lane->clock += policy->execution_ttl;
			break;
		case CLOCK_LONG:
			lane->clock += 3 * policy->epoch + SECOND / 3;
			break;
		case CLOCK_STEPS:
			break;
	}
}

/* perform does one step; what of it can't be done any more is passed over. */
static void
perform(Lane *lane, const Step *step)
{
	Session    *transaction;

	if (step->kind == STEP_CLOCK)
	{
		move_clock(lane, step->clock);
		return;
	}
	transaction = open_transaction(lane, step->actor);
	if (step->kind != STEP_CALL)
	{
		if (step->kind != STEP_ROLLBACK_TO)
			lane->skipping[step->actor] = false;
		if (transaction != NULL && (step->kind != STEP_ROLLBACK_TO || transaction->savepoint))
			send_end(lane, transaction, step->kind);
		return;
	}
	if (lane->skipping[step->actor] || (transaction != NULL && transaction->aborted))
		return;
	if (step->fault == FAULT_LOST_REQUEST || step->fault == FAULT_PARTITION_REQUEST)
	{
		write_fault(lane, step->actor, fault_names[step->fault], 0);
		return;
	}
	send_call(lane, &lane->session[step->actor][call_forms[step->call].database], step, false);
}

/* next_step is the first that was not sent and whose actor is free; NULL: none. */
static const Step *
next_step(Lane *lane)
{
	bool		waiting[ACTORS + 1] = {false};

	for (int actor = 1; actor <= lane->plan.actors; actor++)
		waiting[actor] = actor_busy(lane, actor);
	for (int i = 0; i < lane->plan.steps; i++)
	{
		const Step *step = &lane->plan.step[i];

		if (lane->sent[i])
			continue;
		if (step->kind != STEP_CLOCK && waiting[step->actor])
			continue;
		lane->sent[i] = true;
		return step;
	}
	return NULL;
}

static bool
ghosts_alive(Lane *lane)
{
	for (int i = 0; i < lane->ghost_count;)
	{
		if (kill(lane->ghosts[i], 0) != 0)
			lane->ghosts[i] = lane->ghosts[--lane->ghost_count];
		else
			i++;
	}
	return lane->ghost_count > 0;
}

/* ---- questions: at rest, what is unknown is resolved and what is open is ended ---------- */

static void
ask(Lane *lane, CallKind kind, int item, const char *operation, Amount amount)
{
	Step		step = {.kind = STEP_CALL, .actor = 1, .call = kind, .item = item, .amount = amount};

	step.other = operation != NULL && operation[0] == 'p';
	send_call(lane, &lane->session[1][call_forms[kind].database], &step, true);
}

static void
ask_again(Lane *lane, Call *call)
{
	Step		step = call->step;

	call->repeated = true;
	step.fault = FAULT_NONE;
	step.begin = LEVEL_NONE;
	step.savepoint = false;
	if ((step.call == CALL_RESERVE || step.call == CALL_RESERVE_START) && step.item % 2 == 0)
		step.call = CALL_RESOLVE;
	send_call(lane, &lane->session[step.actor][call_forms[step.call].database], &step, true);
}

/* A call about an item of the database; the last one, if `last`. */
static bool
uses_item(Lane *lane, int item, Database database)
{
	for (int i = 1; i <= lane->calls; i++)
		if (lane->call[i].step.item == item && call_forms[lane->call[i].step.call].database == database &&
			strchr(call_forms[lane->call[i].step.call].args, 'i') != NULL)
			return true;
	return false;
}

static bool
used_call(Lane *lane, CallKind kind, int item)
{
	for (int i = 1; i <= lane->calls; i++)
		if (lane->call[i].step.call == kind && (item == 0 || lane->call[i].step.item == item))
			return true;
	return false;
}

/* end_item takes one reservation to its end; true: it has asked something. */
static bool
end_item(Lane *lane, int item)
{
	const Call *told = &lane->call[lane->calls];

	switch (lane->item_stage[item]++)
	{
		case 0:
			ask(lane, CALL_GET, item, NULL, 0);
			return true;
		case 1:
			if (strcmp(told->state, "RESERVED") == 0)
			{
				ask(lane, CALL_RELEASE, item, NULL, 0);
				return true;
			}
			if (strcmp(told->state, "STARTED") == 0 || strcmp(told->state, "USAGE_UNKNOWN") == 0)
			{
				ask(lane, CALL_SETTLE, item, told->operation, lane->plan.hash >> item & 1 ? AMOUNT_FEW : AMOUNT_ZERO);
				return true;
			}
			lane->sweep |= strcmp(told->state, "EXPIRING") == 0;
			return false;
		case 2:
			lane->sweep |= strcmp(told->state, "RESERVED") == 0 || strcmp(told->state, "EXPIRING") == 0;
			return false;
		default:
			return false;
	}
}

/* end_local does so on the gateway, where there is nothing to be read by. */
static bool
end_local(Lane *lane, int item)
{
	const Call *told = &lane->call[lane->calls];

	switch (lane->item_stage[item]++)
	{
		case 0:
			ask(lane, CALL_SHARD_RELEASE, item, NULL, 0);
			return true;
		case 1:
			if (strcmp(told->state, "STARTED") == 0 || strcmp(told->state, "USAGE_UNKNOWN") == 0)
			{
				ask(lane, CALL_SHARD_SETTLE, item, told->operation, lane->plan.hash >> item & 1 ? AMOUNT_FEW : AMOUNT_ZERO);
				return true;
			}
			return false;
		default:
			return false;
	}
}

/* end_shard reports a shard until the ledger has settled it, or writes it off. */
static bool
end_shard(Lane *lane, int item)
{
	const Call *told = &lane->call[lane->calls];

	switch (lane->shard_stage[item]++)
	{
		case 0:
			ask(lane, CALL_SEAL, item, NULL, 0);
			return true;
		case 1:
			ask(lane, CALL_CUT, item, NULL, 0);
			return true;
		case 2:
			ask(lane, CALL_REPORT, item, NULL, 0);
			return true;
		case 3:
			ask(lane, CALL_RECONCILE, item, NULL, 0);
			return true;
		case 4:
			if (strcmp(told->state, "settled") == 0)
				return false;
			ask(lane, CALL_WRITE_OFF, item, NULL, 0);
			return true;
		default:
			return false;
	}
}

/* question asks one; false: there is none left. */
static bool
question(Lane *lane)
{
	bool		shards = policies[lane->plan.policy].share > 0;

	/* The answer to a question was lost, or cancelled late: it is asked again. */
	if (lane->calls > 0 && lane->call[lane->calls].question)
	{
		Call	   *last = &lane->call[lane->calls];

		if (last->outcome == OUTCOME_LOST || (last->outcome == OUTCOME_ERROR && last->step.call == CALL_GET))
		{
			Step		step = last->step;

			last->repeated = true;
			send_call(lane, &lane->session[step.actor][call_forms[step.call].database], &step, true);
			return true;
		}
	}
	for (;; lane->questions++, lane->asked = 0)
		switch (lane->questions)
		{
			case 1:				/* what is not known */
				while (++lane->asked <= lane->calls)
				{
					Call	   *call = &lane->call[lane->asked];

					if (call->outcome == OUTCOME_LOST && !call->question && !call->repeated && call_forms[call->step.call].once)
					{
						ask_again(lane, call);
						return true;
					}
				}
				break;
			case 2:				/* what is open */
				for (int item = 1; item <= ITEMS; item++)
					while (lane->item_stage[item] < 3 && uses_item(lane, item, LEDGER))
						if (end_item(lane, item))
							return true;
				memset(lane->item_stage, 0, sizeof(lane->item_stage));
				break;
			case 3:
				if (lane->sweep && lane->asked++ == 0)
				{
					ask(lane, CALL_EXPIRE, 0, NULL, 0);
					return true;
				}
				break;
			case 4:
				for (int item = 1; shards && item <= ITEMS; item++)
					while (lane->item_stage[item] < 2 && uses_item(lane, item, GATEWAY))
						if (end_local(lane, item))
							return true;
				break;
			case 5:
				for (int item = 1; shards && item <= ITEMS; item++)
					while (lane->shard_stage[item] < 5 && used_call(lane, CALL_ISSUE, item))
						if (end_shard(lane, item))
							return true;
				break;
			case 6:				/* what was told last about each item is told again */
				while (++lane->asked <= ITEMS)
				{
					for (int i = lane->calls; i > 0; i--)
					{
						Call	   *call = &lane->call[i];

						if (call->step.item != lane->asked || call->question || call->rolled_back || !call->accepted ||
							call->outcome != OUTCOME_DONE || !call_forms[call->step.call].once || call->step.call == CALL_RESOLVE ||
							call->step.call == CALL_PUBLISH || call->repeated)
							continue;
						call->repeated = true;
						{
							Step		step = call->step;

							step.fault = FAULT_NONE;
							step.begin = LEVEL_NONE;
							step.savepoint = false;
							send_call(lane, &lane->session[step.actor][call_forms[step.call].database], &step, true);
						}
						return true;
					}
				}
				break;
			case 7:
				/* The next shard needs a boot that the ledger knows. */
				if (shards && lane->asked < 2 && (lane->asked > 0 || lane->boot_old || used_call(lane, CALL_RENEW, 0)))
				{
					ask(lane, lane->asked++ == 0 ? CALL_RENEW : CALL_ANNOUNCE, 0, NULL, 0);
					lane->boot_old = false;
					return true;
				}
				break;
			case 8:
				if (lane->asked++ == 0)
				{
					ask(lane, CALL_BUDGET, 0, NULL, 0);
					return true;
				}
				break;
			default:
				return false;
		}
}

/* ---- an interleaving -------------------------------------------------------------------- */

/* play_begin takes a plan as the lane's next. */
void
play_begin(Lane *lane, const Plan *plan)
{
	static Text text;
	const char *line;

	lane->plan = *plan;
	lane->number_played++;
	snprintf(lane->subject, sizeof(lane->subject), "%d-%d-%07" PRId64, lane->number, lane->made, lane->number_played);
	if (strcmp(scenarios[plan->scenario].name, "generations") == 0)
		snprintf(lane->route, sizeof(lane->route), "g-%s", lane->subject);
	else
		snprintf(lane->route, sizeof(lane->route), "%s", policies[plan->policy].name);
	lane->clock = BASE;
	lane->sleep_until = 0;
	memset(lane->sent, 0, sizeof(lane->sent));
	memset(lane->item_stage, 0, sizeof(lane->item_stage));
	memset(lane->shard_stage, 0, sizeof(lane->shard_stage));
	memset(lane->skipping, 0, sizeof(lane->skipping));
	lane->calls = lane->transactions = lane->questions = lane->asked = 0;
	lane->sweep = false;
	lane->published = 0;
	for (int i = 0; i <= ITEMS; i++)
	{
		free(lane->shard_envelope[i]);
		free(lane->report_envelope[i]);
		lane->shard_envelope[i] = lane->report_envelope[i] = NULL;
	}
	lane->moved = now_of_driver();
	lane->playing = true;

	text_clear(&lane->history);
	text_add(&lane->history, "I\t%" PRId64 "\t%016" PRIx64 "\t%s\t%s\t%s\t%s\t%s\n", lane->number_played, plan->hash,
			 lane->subject, lane->route, lane->real ? "real" : "virtual", scenarios[plan->scenario].name,
			 policies[plan->policy].name);
	text_clear(&text);
	plan_text(&text, plan);
	for (line = text.data; *line != '\0'; line += strcspn(line, "\n") + 1)
		text_add(&lane->history, "S\t%.*s\n", (int) strcspn(line, "\n"), line);
}

bool
play_watches(const Lane *lane)
{
	if (!lane->playing)
		return false;
	if (lane->sleep_until != 0 || lane->ghost_count > 0)
		return true;
	for (int actor = 0; actor <= ACTORS; actor++)
		for (int i = 0; i < DATABASES; i++)
			if (lane->session[actor][i].busy && others_open((Lane *) lane, &lane->session[actor][i]))
				return true;
	return false;
}

/* play_on goes as far as it gets without waiting. */
void
play_on(Lane *lane)
{
	while (lane->playing)
	{
		const Step *step;
		bool		busy = false;

		if (lane->sleep_until != 0 && now_of_driver() < lane->sleep_until)
			return;
		lane->sleep_until = 0;
		ghosts_alive(lane);
		if (!settled(lane))
			return;
		if (lane->questions == 0)
		{
			step = next_step(lane);
			if (step != NULL)
			{
				perform(lane, step);
				continue;
			}
		}
		EACH_SESSION(lane, session)
			busy |= session->busy;
		if (busy || lane->ghost_count > 0)
			return;
		if (lane->questions == 0)
		{
			bool		open = false;

			EACH_SESSION(lane, session)
				if (session->transaction != 0 && !open)
				{
					send_end(lane, session, STEP_ROLLBACK);
					open = true;
				}
			if (open)
				continue;
			text_add(&lane->history, "Q\n");
			lane->questions = 1;
		}
		if (!question(lane))
		{
			find_policies(lane);
			text_add(&lane->history, ".\n");
			lane->playing = false;
			lane_end_interleaving(lane);
			return;
		}
	}
}
