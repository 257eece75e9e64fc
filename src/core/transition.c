/*
 * transition.c
 *	  The table of every (state, event) pair (D1).
 *
 * A row that keeps the state and says ACCEPTED is a replay: the same call came
 * twice, or its reply was lost.  Nothing else in the source decides how a
 * state may move.
 */
#include "transition.h"

#define MOVE(to, rule)			{LL_ACCEPTED, LL_DIM_NONE, to, to, rule}
#define SETTLE(rule)			{LL_ACCEPTED, LL_DIM_NONE, LL_SETTLED, LL_SETTLED_WITH_DEBT, rule}
#define REPLAY(state, rule)		{LL_ACCEPTED, LL_DIM_NONE, state, state, rule}
#define NO(state, why, rule)	{LL_REFUSED, why, state, state, rule}
#define NOBODY(rule)			{LL_UNKNOWN, LL_DIM_RESERVATION, LL_ABSENT, LL_ABSENT, rule}

static const LLTransition table[LL_STATE_COUNT][LL_EVENT_COUNT] = {
	[LL_ABSENT] = {
		[LL_EVENT_RESERVE] = MOVE(LL_RESERVED, "D2"),
		[LL_EVENT_START] = NOBODY("D5"),
		[LL_EVENT_SETTLE] = NOBODY("D6"),
		[LL_EVENT_RELEASE] = NOBODY("D9"),
		[LL_EVENT_REPORT_UNKNOWN] = NOBODY("D10"),
		[LL_EVENT_CLAIM] = NOBODY("D14"),
		[LL_EVENT_EXPIRE] = NOBODY("D14"),
		[LL_EVENT_RESOLVE] = MOVE(LL_RELEASED, "D11"),
	},
	[LL_RESERVED] = {
		[LL_EVENT_RESERVE] = REPLAY(LL_RESERVED, "D2"),
		[LL_EVENT_START] = MOVE(LL_STARTED, "D5"),
		[LL_EVENT_SETTLE] = NO(LL_RESERVED, LL_DIM_NOT_STARTED, "D6"),
		[LL_EVENT_RELEASE] = MOVE(LL_RELEASED, "D9"),
		[LL_EVENT_REPORT_UNKNOWN] = NO(LL_RESERVED, LL_DIM_NOT_STARTED, "D10"),
		[LL_EVENT_CLAIM] = MOVE(LL_EXPIRING, "D14"),
		[LL_EVENT_EXPIRE] = NO(LL_RESERVED, LL_DIM_NOT_DUE, "D14"),
		[LL_EVENT_RESOLVE] = REPLAY(LL_RESERVED, "D11"),
	},
	[LL_STARTED] = {
		[LL_EVENT_RESERVE] = REPLAY(LL_STARTED, "D2"),
		[LL_EVENT_START] = REPLAY(LL_STARTED, "D5"),
		[LL_EVENT_SETTLE] = SETTLE("D6"),
		[LL_EVENT_RELEASE] = NO(LL_STARTED, LL_DIM_ALREADY_STARTED, "D9"),
		[LL_EVENT_REPORT_UNKNOWN] = MOVE(LL_USAGE_UNKNOWN, "D10"),
		[LL_EVENT_CLAIM] = NO(LL_STARTED, LL_DIM_ALREADY_STARTED, "D14"),
		[LL_EVENT_EXPIRE] = NO(LL_STARTED, LL_DIM_ALREADY_STARTED, "D14"),
		[LL_EVENT_RESOLVE] = REPLAY(LL_STARTED, "D11"),
	},
	[LL_USAGE_UNKNOWN] = {
		[LL_EVENT_RESERVE] = REPLAY(LL_USAGE_UNKNOWN, "D2"),
		[LL_EVENT_START] = REPLAY(LL_USAGE_UNKNOWN, "D5"),
		[LL_EVENT_SETTLE] = SETTLE("D10"),
		[LL_EVENT_RELEASE] = NO(LL_USAGE_UNKNOWN, LL_DIM_ALREADY_STARTED, "D9"),
		[LL_EVENT_REPORT_UNKNOWN] = REPLAY(LL_USAGE_UNKNOWN, "D10"),
		[LL_EVENT_CLAIM] = NO(LL_USAGE_UNKNOWN, LL_DIM_ALREADY_STARTED, "D14"),
		[LL_EVENT_EXPIRE] = NO(LL_USAGE_UNKNOWN, LL_DIM_ALREADY_STARTED, "D14"),
		[LL_EVENT_RESOLVE] = REPLAY(LL_USAGE_UNKNOWN, "D11"),
	},
	[LL_EXPIRING] = {
		[LL_EVENT_RESERVE] = REPLAY(LL_EXPIRING, "D2"),
		[LL_EVENT_START] = NO(LL_EXPIRING, LL_DIM_EXPIRED, "D5"),
		[LL_EVENT_SETTLE] = NO(LL_EXPIRING, LL_DIM_NOT_STARTED, "D6"),
		[LL_EVENT_RELEASE] = NO(LL_EXPIRING, LL_DIM_EXPIRED, "D9"),
		[LL_EVENT_REPORT_UNKNOWN] = NO(LL_EXPIRING, LL_DIM_NOT_STARTED, "D10"),
		[LL_EVENT_CLAIM] = REPLAY(LL_EXPIRING, "D14"),
		[LL_EVENT_EXPIRE] = MOVE(LL_EXPIRED, "D14"),
		[LL_EVENT_RESOLVE] = REPLAY(LL_EXPIRING, "D11"),
	},
	[LL_SETTLED] = {
		[LL_EVENT_RESERVE] = REPLAY(LL_SETTLED, "D2"),
		[LL_EVENT_START] = REPLAY(LL_SETTLED, "D5"),
		[LL_EVENT_SETTLE] = REPLAY(LL_SETTLED, "D6"),
		[LL_EVENT_RELEASE] = NO(LL_SETTLED, LL_DIM_SETTLED, "D9"),
		[LL_EVENT_REPORT_UNKNOWN] = NO(LL_SETTLED, LL_DIM_SETTLED, "D10"),
		[LL_EVENT_CLAIM] = NO(LL_SETTLED, LL_DIM_SETTLED, "D14"),
		[LL_EVENT_EXPIRE] = NO(LL_SETTLED, LL_DIM_SETTLED, "D14"),
		[LL_EVENT_RESOLVE] = REPLAY(LL_SETTLED, "D11"),
	},
	[LL_SETTLED_WITH_DEBT] = {
		[LL_EVENT_RESERVE] = REPLAY(LL_SETTLED_WITH_DEBT, "D2"),
		[LL_EVENT_START] = REPLAY(LL_SETTLED_WITH_DEBT, "D5"),
		[LL_EVENT_SETTLE] = REPLAY(LL_SETTLED_WITH_DEBT, "D6"),
		[LL_EVENT_RELEASE] = NO(LL_SETTLED_WITH_DEBT, LL_DIM_SETTLED, "D9"),
		[LL_EVENT_REPORT_UNKNOWN] = NO(LL_SETTLED_WITH_DEBT, LL_DIM_SETTLED, "D10"),
		[LL_EVENT_CLAIM] = NO(LL_SETTLED_WITH_DEBT, LL_DIM_SETTLED, "D14"),
		[LL_EVENT_EXPIRE] = NO(LL_SETTLED_WITH_DEBT, LL_DIM_SETTLED, "D14"),
		[LL_EVENT_RESOLVE] = REPLAY(LL_SETTLED_WITH_DEBT, "D11"),
	},
	[LL_RELEASED] = {
		[LL_EVENT_RESERVE] = REPLAY(LL_RELEASED, "D2"),
		[LL_EVENT_START] = NO(LL_RELEASED, LL_DIM_RELEASED, "D5"),
		[LL_EVENT_SETTLE] = NO(LL_RELEASED, LL_DIM_NOT_STARTED, "D6"),
		[LL_EVENT_RELEASE] = REPLAY(LL_RELEASED, "D9"),
		[LL_EVENT_REPORT_UNKNOWN] = NO(LL_RELEASED, LL_DIM_NOT_STARTED, "D10"),
		[LL_EVENT_CLAIM] = NO(LL_RELEASED, LL_DIM_RELEASED, "D14"),
		[LL_EVENT_EXPIRE] = NO(LL_RELEASED, LL_DIM_RELEASED, "D14"),
		[LL_EVENT_RESOLVE] = REPLAY(LL_RELEASED, "D11"),
	},
	[LL_EXPIRED] = {
		[LL_EVENT_RESERVE] = REPLAY(LL_EXPIRED, "D2"),
		[LL_EVENT_START] = NO(LL_EXPIRED, LL_DIM_EXPIRED, "D5"),
		[LL_EVENT_SETTLE] = NO(LL_EXPIRED, LL_DIM_NOT_STARTED, "D6"),
		[LL_EVENT_RELEASE] = NO(LL_EXPIRED, LL_DIM_EXPIRED, "D9"),
		[LL_EVENT_REPORT_UNKNOWN] = NO(LL_EXPIRED, LL_DIM_NOT_STARTED, "D10"),
		[LL_EVENT_CLAIM] = NO(LL_EXPIRED, LL_DIM_EXPIRED, "D14"),
		[LL_EVENT_EXPIRE] = REPLAY(LL_EXPIRED, "D14"),
		[LL_EVENT_RESOLVE] = REPLAY(LL_EXPIRED, "D11"),
	},
};

static const char *const state_names[LL_STATE_COUNT] = {
	[LL_ABSENT] = "RESERVATION_UNKNOWN",
	[LL_RESERVED] = "RESERVED",
	[LL_STARTED] = "STARTED",
	[LL_USAGE_UNKNOWN] = "USAGE_UNKNOWN",
	[LL_EXPIRING] = "EXPIRING",
	[LL_SETTLED] = "SETTLED",
	[LL_SETTLED_WITH_DEBT] = "SETTLED_WITH_DEBT",
	[LL_RELEASED] = "RELEASED",
	[LL_EXPIRED] = "EXPIRED",
};

static const char *const event_names[LL_EVENT_COUNT] = {
	[LL_EVENT_RESERVE] = "reserve",
	[LL_EVENT_START] = "start",
	[LL_EVENT_SETTLE] = "settle",
	[LL_EVENT_RELEASE] = "release",
	[LL_EVENT_REPORT_UNKNOWN] = "report_unknown",
	[LL_EVENT_CLAIM] = "claim",
	[LL_EVENT_EXPIRE] = "expire",
	[LL_EVENT_RESOLVE] = "resolve",
};

/* ll_transition gives the entry for one state and event. */
const LLTransition *
ll_transition(LLState state, LLEvent event)
{
	return &table[state][event];
}

/* ll_transition_allows tells whether any event moves a stored row so (C3). */
bool
ll_transition_allows(LLState from, LLState to)
{
	/*@ loop invariant 0 <= event <= LL_EVENT_COUNT;
		loop invariant \forall integer e; 0 <= e < event ==>
			!(table[from][e].outcome == LL_ACCEPTED && table[from][e].next != from &&
			  (table[from][e].next == to || table[from][e].next_with_debt == to));
		loop assigns event;
		loop variant LL_EVENT_COUNT - event; */
	for (int event = 0; event < LL_EVENT_COUNT; event++)
	{
		const LLTransition *t = &table[from][event];

		if (t->outcome == LL_ACCEPTED && t->next != from &&
			(t->next == to || t->next_with_debt == to))
			return true;
	}
	return false;
}

/* ll_state_holds tells whether the units count in reserved (C2). */
bool
ll_state_holds(LLState state)
{
	return state == LL_RESERVED || state == LL_STARTED ||
		state == LL_USAGE_UNKNOWN || state == LL_EXPIRING;
}

/* ll_state_terminal tells whether the row will never change again (C3). */
bool
ll_state_terminal(LLState state)
{
	return state == LL_SETTLED || state == LL_SETTLED_WITH_DEBT ||
		state == LL_RELEASED || state == LL_EXPIRED;
}

/* ll_state_name gives the word that rows and receipts carry. */
const char *
ll_state_name(LLState state)
{
	return state_names[state];
}

/* ll_state_parse reads such a word, not NUL-terminated; false if it is none. */
bool
ll_state_parse(const char *name, uint64_t length, LLState *state)
{
	for (int s = LL_ABSENT + 1; s < LL_STATE_COUNT; s++)
	{
		uint64_t	i = 0;

		while (i < length && state_names[s][i] != '\0' && state_names[s][i] == name[i])
			i++;
		if (i == length && state_names[s][i] == '\0')
		{
			*state = (LLState) s;
			return true;
		}
	}
	return false;
}

/* ll_event_name gives the word that transitions() prints. */
const char *
ll_event_name(LLEvent event)
{
	return event_names[event];
}
