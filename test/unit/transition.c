/*
 * The table of every (state, event) pair (D1, C3), row by row, and the closed
 * list of states.
 */
#include "fixture.h"

typedef struct Row
{
	const char *state;
	const char *event;
	const char *outcome;
	const char *dimension;		/* "": none */
	const char *next;
	const char *with_debt;		/* after a settle that made debt */
	const char *rule;
} Row;

#define UNKNOWN_ROW(event, rule) \
	{"RESERVATION_UNKNOWN", event, "UNKNOWN", "reservation", \
		"RESERVATION_UNKNOWN", "RESERVATION_UNKNOWN", rule}
#define MOVES(state, event, to, rule)		{state, event, "ACCEPTED", "", to, to, rule}
#define STAYS(state, event, rule)			{state, event, "ACCEPTED", "", state, state, rule}
#define NO(state, event, dimension, rule)	{state, event, "REFUSED", dimension, state, state, rule}

static const Row rows[] = {
	MOVES("RESERVATION_UNKNOWN", "reserve", "RESERVED", "D2"),
	UNKNOWN_ROW("start", "D5"),
	UNKNOWN_ROW("settle", "D6"),
	UNKNOWN_ROW("release", "D9"),
	UNKNOWN_ROW("report_unknown", "D10"),
	UNKNOWN_ROW("claim", "D14"),
	UNKNOWN_ROW("expire", "D14"),
	MOVES("RESERVATION_UNKNOWN", "resolve", "RELEASED", "D11"),

	STAYS("RESERVED", "reserve", "D2"),
	MOVES("RESERVED", "start", "STARTED", "D5"),
	NO("RESERVED", "settle", "not_started", "D6"),
	MOVES("RESERVED", "release", "RELEASED", "D9"),
	NO("RESERVED", "report_unknown", "not_started", "D10"),
	MOVES("RESERVED", "claim", "EXPIRING", "D14"),
	NO("RESERVED", "expire", "not_due", "D14"),
	STAYS("RESERVED", "resolve", "D11"),

	STAYS("STARTED", "reserve", "D2"),
	STAYS("STARTED", "start", "D5"),
	{"STARTED", "settle", "ACCEPTED", "", "SETTLED", "SETTLED_WITH_DEBT", "D6"},
	NO("STARTED", "release", "already_started", "D9"),
	MOVES("STARTED", "report_unknown", "USAGE_UNKNOWN", "D10"),
	NO("STARTED", "claim", "already_started", "D14"),
	NO("STARTED", "expire", "already_started", "D14"),
	STAYS("STARTED", "resolve", "D11"),

	STAYS("USAGE_UNKNOWN", "reserve", "D2"),
	STAYS("USAGE_UNKNOWN", "start", "D5"),
	{"USAGE_UNKNOWN", "settle", "ACCEPTED", "", "SETTLED", "SETTLED_WITH_DEBT", "D10"},
	NO("USAGE_UNKNOWN", "release", "already_started", "D9"),
	STAYS("USAGE_UNKNOWN", "report_unknown", "D10"),
	NO("USAGE_UNKNOWN", "claim", "already_started", "D14"),
	NO("USAGE_UNKNOWN", "expire", "already_started", "D14"),
	STAYS("USAGE_UNKNOWN", "resolve", "D11"),

	STAYS("EXPIRING", "reserve", "D2"),
	NO("EXPIRING", "start", "expired", "D5"),
	NO("EXPIRING", "settle", "not_started", "D6"),
	NO("EXPIRING", "release", "expired", "D9"),
	NO("EXPIRING", "report_unknown", "not_started", "D10"),
	STAYS("EXPIRING", "claim", "D14"),
	MOVES("EXPIRING", "expire", "EXPIRED", "D14"),
	STAYS("EXPIRING", "resolve", "D11"),

	STAYS("SETTLED", "reserve", "D2"),
	STAYS("SETTLED", "start", "D5"),
	STAYS("SETTLED", "settle", "D6"),
	NO("SETTLED", "release", "settled", "D9"),
	NO("SETTLED", "report_unknown", "settled", "D10"),
	NO("SETTLED", "claim", "settled", "D14"),
	NO("SETTLED", "expire", "settled", "D14"),
	STAYS("SETTLED", "resolve", "D11"),

	STAYS("SETTLED_WITH_DEBT", "reserve", "D2"),
	STAYS("SETTLED_WITH_DEBT", "start", "D5"),
	STAYS("SETTLED_WITH_DEBT", "settle", "D6"),
	NO("SETTLED_WITH_DEBT", "release", "settled", "D9"),
	NO("SETTLED_WITH_DEBT", "report_unknown", "settled", "D10"),
	NO("SETTLED_WITH_DEBT", "claim", "settled", "D14"),
	NO("SETTLED_WITH_DEBT", "expire", "settled", "D14"),
	STAYS("SETTLED_WITH_DEBT", "resolve", "D11"),

	STAYS("RELEASED", "reserve", "D2"),
	NO("RELEASED", "start", "released", "D5"),
	NO("RELEASED", "settle", "not_started", "D6"),
	STAYS("RELEASED", "release", "D9"),
	NO("RELEASED", "report_unknown", "not_started", "D10"),
	NO("RELEASED", "claim", "released", "D14"),
	NO("RELEASED", "expire", "released", "D14"),
	STAYS("RELEASED", "resolve", "D11"),

	STAYS("EXPIRED", "reserve", "D2"),
	NO("EXPIRED", "start", "expired", "D5"),
	NO("EXPIRED", "settle", "not_started", "D6"),
	NO("EXPIRED", "release", "expired", "D9"),
	NO("EXPIRED", "report_unknown", "not_started", "D10"),
	NO("EXPIRED", "claim", "expired", "D14"),
	STAYS("EXPIRED", "expire", "D14"),
	STAYS("EXPIRED", "resolve", "D11"),
};

/* The moves of D1; what is not here never happens (C3). */
static const char *const moves[][2] = {
	{"RESERVATION_UNKNOWN", "RESERVED"},
	{"RESERVATION_UNKNOWN", "RELEASED"},	/* fenced */
	{"RESERVED", "STARTED"},
	{"RESERVED", "RELEASED"},
	{"RESERVED", "EXPIRING"},
	{"STARTED", "USAGE_UNKNOWN"},
	{"STARTED", "SETTLED"},
	{"STARTED", "SETTLED_WITH_DEBT"},
	{"USAGE_UNKNOWN", "SETTLED"},
	{"USAGE_UNKNOWN", "SETTLED_WITH_DEBT"},
	{"EXPIRING", "EXPIRED"},
};

static const char *
text(const char *s)
{
	return s != NULL ? s : "";
}

static void
every_pair(void)
{
	bool		seen[LL_STATE_COUNT][LL_EVENT_COUNT] = {{false}};
	int			count = 0;

	for (int i = 0; i < LENGTH(rows); i++)
	{
		const Row  *row = &rows[i];

		for (int s = 0; s < LL_STATE_COUNT; s++)
			for (int e = 0; e < LL_EVENT_COUNT; e++)
			{
				const LLTransition *t = ll_transition((LLState) s, (LLEvent) e);

				if (strcmp(row->state, ll_state_name((LLState) s)) != 0 ||
					strcmp(row->event, ll_event_name((LLEvent) e)) != 0)
					continue;
				count += !seen[s][e];
				seen[s][e] = true;
				ok(strcmp(ll_outcome_name(t->outcome), row->outcome) == 0 &&
				   strcmp(text(ll_dimension_info(t->dimension)->name), row->dimension) == 0 &&
				   strcmp(ll_state_name(t->next), row->next) == 0 &&
				   strcmp(ll_state_name(t->next_with_debt), row->with_debt) == 0 &&
				   strcmp(t->rule, row->rule) == 0,
				   "%s + %s: %s %s, %s (%s)", row->state, row->event, row->outcome,
				   row->dimension, row->next, row->rule);
			}
	}
	ok(count == LL_STATE_COUNT * LL_EVENT_COUNT && count == LENGTH(rows),
	   "every pair has its row, once");
}

static void
every_move(void)
{
	for (int from = 0; from < LL_STATE_COUNT; from++)
		for (int to = 0; to < LL_STATE_COUNT; to++)
		{
			const char *a = ll_state_name((LLState) from);
			const char *b = ll_state_name((LLState) to);
			bool		allowed = false;

			for (int i = 0; i < LENGTH(moves); i++)
				allowed = allowed || (strcmp(moves[i][0], a) == 0 && strcmp(moves[i][1], b) == 0);
			ok(ll_transition_allows((LLState) from, (LLState) to) == allowed,
			   "%s -> %s is %s", a, b, allowed ? "allowed" : "no move");
		}
}

static void
kinds_of_state(void)
{
	static const struct
	{
		const char *name;
		bool		holds;
		bool		terminal;
	}			states[] = {
		{"RESERVATION_UNKNOWN", false, false}, {"RESERVED", true, false}, {"STARTED", true, false},
		{"USAGE_UNKNOWN", true, false}, {"EXPIRING", true, false}, {"SETTLED", false, true},
		{"SETTLED_WITH_DEBT", false, true}, {"RELEASED", false, true}, {"EXPIRED", false, true}
	};

	ok(LENGTH(states) == LL_STATE_COUNT, "nine states");
	for (int s = 0; s < LL_STATE_COUNT; s++)
	{
		LLState		state = (LLState) s;
		bool		leaves = false;

		for (int to = 0; to < LL_STATE_COUNT; to++)
			leaves = leaves || ll_transition_allows(state, (LLState) to);
		ok(strcmp(ll_state_name(state), states[s].name) == 0, "state %d is %s", s, states[s].name);
		ok(ll_state_holds(state) == states[s].holds, "%s holds units: %d (C2)",
		   states[s].name, states[s].holds);
		ok(ll_state_terminal(state) == states[s].terminal && leaves != states[s].terminal,
		   "%s is terminal: %d (C3)", states[s].name, states[s].terminal);
	}
}

static void
parse(void)
{
	/* The name and how much of it counts: stored text has no terminator. */
	static const struct
	{
		const char *name;
		uint64_t	length;
		int			state;		/* -1: no such word */
	}			words[] = {
		{"RESERVED", 8, LL_RESERVED}, {"STARTED", 7, LL_STARTED},
		{"USAGE_UNKNOWN", 13, LL_USAGE_UNKNOWN}, {"EXPIRING", 8, LL_EXPIRING},
		{"SETTLED", 7, LL_SETTLED}, {"SETTLED_WITH_DEBT", 17, LL_SETTLED_WITH_DEBT},
		{"RELEASED", 8, LL_RELEASED}, {"EXPIRED", 7, LL_EXPIRED},
		{"SETTLED_WITH_DEBT", 7, LL_SETTLED}, {"EXPIREDx", 7, LL_EXPIRED},
		{"RESERVATION_UNKNOWN", 19, -1},	/* an answer, never stored */
		{"SETTLED_", 8, -1}, {"RESERVE", 7, -1}, {"RESERVEDx", 9, -1}, {"reserved", 8, -1},
		{"RESERVED\0", 9, -1}, {"", 0, -1}, {"\0", 1, -1}
	};

	for (int i = 0; i < LENGTH(words); i++)
	{
		LLState		state = LL_ABSENT;
		bool		parsed = ll_state_parse(words[i].name, words[i].length, &state);

		ok(words[i].state < 0 ? !parsed && state == LL_ABSENT
		   : parsed && state == (LLState) words[i].state,
		   "parse %d bytes of \"%s\"", (int) words[i].length, words[i].name);
	}
}

int
main(void)
{
	every_pair();
	every_move();
	kinds_of_state();
	parse();
	return done_testing();
}
