/*
 * history.c
 *	  Reads a history: ../history.md says what is in it.
 */
#include "auditor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
	FIELDS_MAX = 256
};

static const struct
{
	const char *name;
	Function	function;
}			functions[] = {
	{"reserve_capacity", F_RESERVE}, {"start_reservation", F_START}, {"settle_usage", F_SETTLE},
	{"release_reservation", F_RELEASE}, {"report_usage_unknown", F_REPORT_UNKNOWN},
	{"report_progress", F_REPORT_PROGRESS}, {"extend_reservation", F_EXTEND},
	{"record_usage", F_RECORD_USAGE}, {"import_usage", F_IMPORT_USAGE},
	{"get_reservation", F_GET}, {"resolve_reservation", F_RESOLVE},
	{"reserve_capacity_batch", F_RESERVE_BATCH}, {"start_reservation_batch", F_START_BATCH},
	{"settle_usage_batch", F_SETTLE_BATCH}, {"release_reservation_batch", F_RELEASE_BATCH},
	{"record_usage_batch", F_RECORD_BATCH}, {"get_budget", F_GET_BUDGET},
	{"repay_debt", F_REPAY}, {"grant_capacity", F_GRANT}, {"freeze", F_FREEZE},
	{"unfreeze", F_UNFREEZE}, {"freeze_route", F_FREEZE_ROUTE},
	{"unfreeze_route", F_UNFREEZE_ROUTE}, {"claim_expiring", F_CLAIM_EXPIRING},
	{"finish_expiring", F_FINISH_EXPIRING}, {"expire_reservations", F_EXPIRE_RESERVATIONS},
	{"expire_executions", F_EXPIRE_EXECUTIONS}, {"maintain", F_MAINTAIN},
	{"repay_debtors", F_REPAY_DEBTORS}, {"claim_unknown_usage", F_CLAIM_UNKNOWN},
	{"publish_policy", F_PUBLISH}, {"issue_emergency_shard", F_ISSUE},
	{"sign_emergency_shard", F_SIGN}, {"reconcile_emergency_shard", F_RECONCILE},
	{"write_off_shard", F_WRITE_OFF}, {"accept_emergency_shard", F_ACCEPT},
	{"shard_reserve", F_SHARD_RESERVE}, {"shard_start", F_SHARD_START},
	{"shard_settle", F_SHARD_SETTLE}, {"shard_release", F_SHARD_RELEASE},
	{"shard_report_unknown", F_SHARD_REPORT_UNKNOWN}, {"seal_shard", F_SEAL},
	{"cut_shard_report", F_CUT_REPORT}
};

static Function
function_of(const char *name)
{
	if (strncmp(name, "limitledger.", 12) == 0)
		name += 12;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].name, name) == 0)
			return functions[i].function;
	return F_OTHER;
}

bool
is_receipt(Function f, int *first)
{
	*first = f >= F_RESERVE_BATCH && f <= F_RECORD_BATCH ? 1 : 0;
	return f <= F_RECORD_BATCH || (f >= F_SHARD_RESERVE && f <= F_SHARD_REPORT_UNKNOWN);
}

const char *
argument(const Call *call, int n)
{
	return n < call->arguments ? call->argument[n] : NULL;
}

const char *
column(const Call *call, int row, int n)
{
	return row < call->rows && n < call->row[row].columns ? call->row[row].column[n] : NULL;
}

int64_t
number_of(const char *text, int64_t when_null)
{
	return text == NULL ? when_null : strtoll(text, NULL, 10);
}

bool
truth(const char *text)
{
	return text != NULL && text[0] == 't';
}

int
array_of(const char *p, char ***element)
{
	int			count = 0;

	*element = NULL;
	if (p == NULL || *p != '{')
		return 0;
	for (p++; *p != '\0' && *p != '}';)
	{
		bool		quoted = *p == '"';
		char	   *to = arena_text(p, strlen(p));
		char	   *start = to;

		if (quoted)
			for (p++; *p != '\0' && *p != '"'; p++)
			{
				if (*p == '\\' && p[1] != '\0')
					p++;
				*to++ = *p;
			}
		else
			while (*p != '\0' && *p != ',' && *p != '}')
				*to++ = *p++;
		*to = '\0';
		if (quoted && *p == '"')
			p++;
		*PUSH(*element, count) = !quoted && strcmp(start, "NULL") == 0 ? NULL : start;
		if (*p == ',')
			p++;
	}
	return count;
}

Fate
fate_of(const Interleaving *in, const Call *call)
{
	const Transaction *t = &in->transaction[call->transaction];
	Fate		fate = t->fate;

	if (call->end == END_ERROR)
		return UNDONE;
	/* What a savepoint took back is undone whatever becomes of the transaction (F5). */
	for (int i = 0; i < t->steps; i++)
		if (t->step[i].kind == STEP_ROLLBACK_TO && t->step[i].at > call->sent)
			for (int j = i - 1; j >= 0; j--)
				if (t->step[j].kind == STEP_SAVEPOINT && t->step[j].name == t->step[i].name)
				{
					if (t->step[j].at < call->sent)
						return UNDONE;
					break;
				}
	return fate;
}

/* ---- lines --------------------------------------------------------------- */

/* split takes a line apart in place. */
static int
split(char *line, char **field)
{
	int			count = 0;
	char	   *p = line;

	for (;;)
	{
		char	   *to = p;

		if (count == FIELDS_MAX)
			return -1;
		field[count] = p;
		for (; *p != '\0' && *p != '\t'; p++)
			if (*p == '\\' && p[1] != '\0')
			{
				p++;
				if (*p == 'N' && to == field[count] && (p[1] == '\t' || p[1] == '\0'))
					field[count] = NULL;
				*to++ = *p == 't' ? '\t' : *p == 'n' ? '\n' : *p;
			}
			else
				*to++ = *p;
		count++;
		if (*p == '\0')
		{
			*to = '\0';
			return count;
		}
		*to = '\0';
		p++;
	}
}

static Transaction *
transaction(Interleaving *in, int number)
{
	Transaction *t;

	for (int i = in->transactions - 1; i >= 0; i--)
		if (in->transaction[i].number == number)
			return &in->transaction[i];
	t = PUSH(in->transaction, in->transactions);
	*t = (Transaction) {.number = number, .end = INT32_MAX};
	return t;
}

static const char *
read_policy(History *h, char **f, int fields, int line)
{
	Policy	   *p;

	if (fields < 17)
		return "a policy wants 18 fields";
	p = PUSH(h->policy, h->policies);
	*p = (Policy) {
		.route = word(f[1]), .generation = number_of(f[2], 0), .subject = word(f[3]),
		.since = number_of(f[4], 0), .cap = number_of(f[6], 0), .units = number_of(f[7], 0),
		.interval = number_of(f[8], 1), .epoch = number_of(f[9], 0),
		.largest = number_of(f[10], NEVER), .outstanding = number_of(f[11], NEVER),
		.hard_limit = number_of(f[12], NEVER), .maximum_overdraft = number_of(f[13], NEVER),
		.hold_ttl = number_of(f[14], NEVER), .execution_ttl = number_of(f[15], NEVER),
		.share = number_of(f[16], 0), .shard_ttl = fields > 17 ? number_of(f[17], NEVER) : NEVER,
		.line = line
	};
	if (f[5] == NULL || (strcmp(f[5], "continuous") != 0 && strcmp(f[5], "window") != 0 &&
						 strcmp(f[5], "none") != 0))
		return "an unknown kind of refill";
	p->kind = f[5][0] == 'c' ? CONTINUOUS : f[5][0] == 'w' ? WINDOW : NONE;
	if (p->epoch <= 0 || p->cap <= 0 || p->interval <= 0)
		return "a policy without cap, interval or epoch";
	return NULL;
}

static const char *
read_call(Interleaving *in, char **f, int fields, int line)
{
	Call	   *c;
	Transaction *t;
	Step	   *s;

	if (fields < 7 || f[6] == NULL || f[1] == NULL)
		return "a call wants 7 fields";
	t = transaction(in, (int) number_of(f[3], 0));
	c = PUSH(in->call, in->calls);
	*c = (Call) {
		.number = (int) number_of(f[1], 0), .actor = word(f[2]),
		.transaction = (int) (t - in->transaction), .clock = number_of(f[4], NO_CLOCK),
		.gateway = f[5] != NULL && strncmp(f[5], "gateway", 7) == 0,
		.elsewhere = f[5] != NULL && strcmp(f[5], "gateway2") == 0, .function = function_of(f[6]),
		.name = arena_text(f[6], strlen(f[6])), .arguments = fields - 7, .sent = line,
		.back = INT32_MAX
	};
	c->argument = arena_new(sizeof(char *) * (size_t) (c->arguments + 1));
	for (int i = 0; i < c->arguments; i++)
		c->argument[i] = f[i + 7] == NULL ? NULL : arena_text(f[i + 7], strlen(f[i + 7]));
	s = PUSH(t->step, t->steps);
	*s = (Step) {.kind = STEP_CALL, .call = in->calls - 1, .at = line};
	return NULL;
}

static const char *
read_answer(Interleaving *in, char **f, int fields, int line)
{
	Call	   *c = NULL;
	Row		   *r;
	Transaction *t;

	if (fields < 3 || f[1] == NULL || f[2] == NULL)
		return "an answer wants 3 fields";
	for (int i = in->calls - 1; i >= 0 && c == NULL; i--)
		if (in->call[i].number == (int) number_of(f[1], 0))
			c = &in->call[i];
	if (c == NULL)
		return "an answer to no call";
	if (c->end != END_NONE)
		return "an answer after the answer's end";
	if (strcmp(f[2], "row") == 0)
	{
		r = PUSH(c->row, c->rows);
		r->columns = fields - 3;
		r->column = arena_new(sizeof(char *) * (size_t) (fields - 2));
		for (int i = 3; i < fields; i++)
			r->column[i - 3] = f[i] == NULL ? NULL : arena_text(f[i], strlen(f[i]));
		return NULL;
	}
	t = &in->transaction[c->transaction];
	c->back = line;
	if (strcmp(f[2], "done") == 0)
		c->end = END_DONE;
	else if (strcmp(f[2], "error") == 0)
	{
		c->end = END_ERROR;
		c->sqlstate = fields > 3 && f[3] != NULL ? arena_text(f[3], strlen(f[3])) : "";
	}
	else if (strcmp(f[2], "lost") == 0)
		c->end = END_LOST;
	else
		return "an unknown kind of answer";
	if (t->is_explicit)
		return NULL;
	/* A connection that the server ends may have had its commit. */
	t->fate = c->end == END_DONE ? COMMITTED : c->end == END_LOST ? MAYBE
		: strncmp(c->sqlstate, "57P", 3) == 0 || strncmp(c->sqlstate, "08", 2) == 0 ? MAYBE : UNDONE;
	t->end = t->fate == MAYBE ? INT32_MAX : line;
	return NULL;
}

static const char *
read_transaction(Interleaving *in, char **f, int fields, int line)
{
	Transaction *t;
	const char *what;

	if (fields < 4 || f[3] == NULL)
		return "a transaction wants 4 fields";
	t = transaction(in, (int) number_of(f[1], 0));
	what = f[3];
	t->is_explicit = true;
	if (strcmp(what, "begin") == 0)
	{
		t->begins = line;
		t->one_snapshot = fields > 4 && f[4] != NULL && strcmp(f[4], "read-committed") != 0;
		return NULL;
	}
	if (strcmp(what, "commit") == 0)
		t->commit_sent = true;
	else if (strcmp(what, "rollback") == 0)
		t->commit_sent = false;
	else if (strcmp(what, "committed") == 0)
	{
		t->fate = COMMITTED;
		t->end = line;
	}
	else if (strcmp(what, "rolledback") == 0)
	{
		t->fate = UNDONE;
		t->end = line;
	}
	else if (strcmp(what, "failed") == 0)
	{
		bool		cut = fields > 4 && f[4] != NULL &&
			(strncmp(f[4], "57P", 3) == 0 || strncmp(f[4], "08", 2) == 0);

		t->fate = cut && t->commit_sent ? MAYBE : UNDONE;
		t->end = t->fate == MAYBE ? INT32_MAX : line;
	}
	else if (strcmp(what, "lost") == 0)
	{
		t->fate = t->commit_sent ? MAYBE : UNDONE;
		t->end = t->fate == MAYBE ? INT32_MAX : line;
	}
	else if (strcmp(what, "savepoint") == 0 || strcmp(what, "rollback to") == 0)
	{
		Step	   *s = PUSH(t->step, t->steps);

		*s = (Step) {
			.kind = what[0] == 's' ? STEP_SAVEPOINT : STEP_ROLLBACK_TO,
			.name = fields > 4 ? word(f[4]) : 0, .at = line
		};
	}
	else
		return "an unknown step of a transaction";
	return NULL;
}

/* finish settles what the lines left open: who is not told, does not know. */
static const char *
finish(Interleaving *in, int line)
{
	const char *why = NULL;

	in->ends = line;
	for (int i = 0; i < in->transactions; i++)
	{
		Transaction *t = &in->transaction[i];

		if (t->fate == OPEN)
		{
			t->fate = t->is_explicit && !t->commit_sent ? UNDONE : MAYBE;
			if (t->fate == UNDONE)
				t->end = line;
		}
	}
	for (int i = 0; i < in->calls; i++)
		if (in->call[i].end == END_NONE)
			why = "a call that does not end";
	return why;
}

bool
history_read(const char *name, History *h)
{
	FILE	   *file = fopen(name, "r");
	char	   *line = NULL;
	size_t		room = 0;
	ssize_t		length;
	int			number = 0;
	bool		grouped = true;
	Interleaving *in = NULL;
	static char *field[FIELDS_MAX];

	*h = (History) {.name = name};
	if (file == NULL)
		return false;
	while ((length = getline(&line, &room, file)) > 0)
	{
		const char *why = NULL;
		int			fields;

		number++;
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		if ((fields = split(line, field)) < 1)
			why = "too many fields";
		else if (number == 1 && (field[0] == NULL || strcmp(field[0], "V") != 0 || fields < 2 ||
								 number_of(field[1], 0) != 1))
			why = "not a history of version 1";
		else if (field[0] == NULL || strlen(field[0]) != 1)
			why = "an unknown kind of line";
		else
			switch (field[0][0])
			{
				case 'V':
					h->lane = (int) number_of(fields > 2 ? field[2] : NULL, 0);
					break;
				case 'P':
					why = read_policy(h, field, fields, number);
					break;
				case 'I':
					if (in != NULL)
						why = "an interleaving within another";
					else if (fields < 7)
						why = "an interleaving wants 8 fields";
					else
					{
						in = PUSH(h->interleaving, h->interleavings);
						*in = (Interleaving) {
							.number = text_of(word(field[1])), .subject = word(field[3]),
							.route = word(field[4]),
							.is_virtual = field[5] != NULL && strcmp(field[5], "virtual") == 0,
							.scenario = text_of(word(field[6])), .begins = number
						};
						grouped = false;
					}
					break;
				case '>':
				case '<':
				case 'x':
				case '.':
					if (in == NULL)
						why = "outside of an interleaving";
					else if (field[0][0] == '>')
						why = read_call(in, field, fields, number);
					else if (field[0][0] == '<')
						why = read_answer(in, field, fields, number);
					else if (field[0][0] == 'x')
						why = read_transaction(in, field, fields, number);
					else
					{
						why = finish(in, number);
						in = NULL;
					}
					break;
				case 'G':
					grouped = true;
					break;
				case 'S':
				case '!':
				case 'Q':
					break;
				default:
					why = "an unknown kind of line";
			}
		if (why != NULL && h->malformed == 0)
		{
			h->malformed = number;
			h->why = why;
		}
	}
	if (h->malformed == 0 && (number == 0 || in != NULL || !grouped))
	{
		h->malformed = number + 1;
		h->why = in != NULL ? "the interleaving does not end" : number == 0 ? "an empty file"
			: "the group does not end";
	}
	if (in != NULL)
		finish(in, number);
	free(line);
	fclose(file);
	return true;
}
