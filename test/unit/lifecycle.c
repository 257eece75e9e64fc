/*
 * Calls that decide by the state of one reservation: start, report_unknown,
 * report_progress, claim, release, expire (D5, D9, D10, D14); and freeze and
 * unfreeze (D8).  Every state, every relation of the operation, before, at and
 * after the deadline.
 */
#include "fixture.h"

enum
{
	EXPIRES = 1000,
	TTL = 60
};

static const LLPolicy policy = {
	.generation = 7, .refill = LL_REFILL_NONE, .cap = 10, .hold_ttl = 30, .execution_ttl = TTL
};

/* What is told of a state; the same for each instant and operation unless a row says more. */
typedef struct Rule
{
	LLState		state;
	LLVerdict	start;
	LLVerdict	unknown;
	LLVerdict	progress;		/* of more than was reported */
	LLVerdict	claim;
	LLVerdict	release;
	LLVerdict	expire;
	bool		bound;			/* an operation is bound to it */
} Rule;

static const Rule rules[] = {
	{LL_ABSENT, NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, false},
	{LL_RESERVED, ADMITTED, REFUSED(NOT_STARTED), REFUSED(NOT_STARTED), ADMITTED, ADMITTED,
		REFUSED(NOT_DUE), false},
	{LL_STARTED, REPLAYED, ADMITTED, ADMITTED, REFUSED(ALREADY_STARTED),
		REFUSED(ALREADY_STARTED), REFUSED(ALREADY_STARTED), true},
	{LL_USAGE_UNKNOWN, REPLAYED, REPLAYED, ADMITTED, REFUSED(ALREADY_STARTED),
		REFUSED(ALREADY_STARTED), REFUSED(ALREADY_STARTED), true},
	{LL_EXPIRING, REFUSED(EXPIRED), REFUSED(NOT_STARTED), REFUSED(NOT_STARTED), REPLAYED,
		REFUSED(EXPIRED), ADMITTED, false},
	{LL_SETTLED, REPLAYED, REFUSED(SETTLED), REFUSED(SETTLED), REFUSED(SETTLED), REFUSED(SETTLED),
		REFUSED(SETTLED), true},
	{LL_SETTLED_WITH_DEBT, REPLAYED, REFUSED(SETTLED), REFUSED(SETTLED), REFUSED(SETTLED),
		REFUSED(SETTLED), REFUSED(SETTLED), true},
	{LL_RELEASED, REFUSED(RELEASED), REFUSED(NOT_STARTED), REFUSED(NOT_STARTED),
		REFUSED(RELEASED), REPLAYED, REFUSED(RELEASED), false},
	{LL_EXPIRED, REFUSED(EXPIRED), REFUSED(NOT_STARTED), REFUSED(NOT_STARTED), REFUSED(EXPIRED),
		REFUSED(EXPIRED), REPLAYED, false},
};

static const char *const operations[] = {
	"bound to nothing", "its own", "another's than its own", "bound elsewhere"
};
static const struct
{
	const char *name;
	LLTime		now;
}			instants[] = {{"before", EXPIRES - 1}, {"at", EXPIRES}, {"after", EXPIRES + 1}};

static LLReservation
reservation_in(LLState state)
{
	LLReservation r = {.state = state, .reserved_units = 6, .expires_at = EXPIRES};

	if (state == LL_ABSENT)
		r = (LLReservation) {.state = LL_ABSENT};
	if (state == LL_SETTLED || state == LL_SETTLED_WITH_DEBT)
		r.actual_units = 2;
	return r;
}

/* possible: a reservation without an operation has none of its own, nor another's. */
static bool
possible(const Rule *rule, LLOperation operation)
{
	return rule->bound || operation == LL_OPERATION_FREE || operation == LL_OPERATION_ELSEWHERE;
}

/*
 * misnamed: whoever asks should say "another's than its own" of a second
 * operation.  What it says else must not be taken for the bound one.
 */
static bool
misnamed(const Rule *rule, LLOperation operation)
{
	return rule->bound && (operation == LL_OPERATION_FREE || operation == LL_OPERATION_ELSEWHERE);
}

/* D5: the compare-and-set RESERVED -> STARTED. */
static void
start(void)
{
	for (int s = 0; s < LENGTH(rules); s++)
		for (int o = 0; o < LENGTH(operations); o++)
			for (int t = 0; t < LENGTH(instants); t++)
			{
				const Rule *rule = &rules[s];
				LLOperation operation = (LLOperation) o;
				LLReservation r = reservation_in(rule->state);
				LLReservation started = r;
				LLVerdict	expected = rule->start;
				LLVerdict	says;
				Bytes		before;
				char		name[160];

				if (!possible(rule, operation))
					continue;
				if (rule->bound && operation != LL_OPERATION_SAME)	/* a second operation */
					expected = (LLVerdict) CONFLICT(OPERATION);
				if (rule->state == LL_RESERVED && instants[t].now >= EXPIRES)	/* no sweep came */
					expected = (LLVerdict) REFUSED(EXPIRED);
				else if (rule->state == LL_RESERVED && operation == LL_OPERATION_ELSEWHERE)
					expected = (LLVerdict) CONFLICT(OPERATION_ELSEWHERE);

				take_bytes(&before, NULL, NULL, &r);
				says = ll_start(&r, &policy, operation, instants[t].now);
				if (misnamed(rule, operation))
					want("accepted", says.outcome == LL_ACCEPTED, false);
				else
					want_verdict(&says, &expected);
				if (took_effect(&says))
				{
					started.state = LL_STARTED;
					started.expires_at = instants[t].now + TTL;
					want_reservation(&r, &started);
				}
				else
					want_unchanged(&before, NULL, NULL, &r);
				snprintf(name, sizeof(name), "D5 start: %s, operation %s, %s its deadline",
						 ll_state_name(rule->state), operations[o], instants[t].name);
				row_ends(name);
			}
}

static void
start_of_the_longest(void)
{
	LLPolicy	longest = policy;
	LLReservation r = {.state = LL_RESERVED, .reserved_units = 6, .expires_at = LL_TIME_MAX};
	LLReservation started = {.state = LL_STARTED, .reserved_units = 6, .expires_at = LL_TIME_MAX};
	LLVerdict	says;
	LLVerdict	expected = ADMITTED;

	longest.execution_ttl = LL_TIME_MAX;
	says = ll_start(&r, &longest, LL_OPERATION_FREE, LL_TIME_MAX - 1);
	want_verdict(&says, &expected);
	want_reservation(&r, &started);
	row_ends("A2 start: the execution deadline is capped");
}

/* D10: by the caller at any time, by the sweep when the execution TTL has passed. */
static void
unknown(void)
{
	for (int s = 0; s < LENGTH(rules); s++)
		for (int o = 0; o < LENGTH(operations); o++)
			for (int t = 0; t < LENGTH(instants); t++)
				for (int by_caller = 0; by_caller <= 1; by_caller++)
				{
					const Rule *rule = &rules[s];
					LLOperation operation = (LLOperation) o;
					LLReservation r = reservation_in(rule->state);
					LLReservation moved = r;
					LLVerdict	expected = rule->unknown;
					LLVerdict	says;
					Bytes		before;
					char		name[160];

					if (!possible(rule, operation))
						continue;
					if (by_caller && rule->bound && operation != LL_OPERATION_SAME)
						expected = (LLVerdict) CONFLICT(OPERATION);
					if (!by_caller && rule->state == LL_STARTED && instants[t].now < EXPIRES)
						expected = (LLVerdict) REFUSED(NOT_DUE);

					take_bytes(&before, NULL, NULL, &r);
					says = ll_report_unknown(&r, operation, by_caller, instants[t].now);
					if (by_caller && misnamed(rule, operation))
						want("accepted", says.outcome == LL_ACCEPTED, false);
					else
						want_verdict(&says, &expected);
					if (took_effect(&says))
					{
						moved.state = LL_USAGE_UNKNOWN;	/* the units stay, and the deadline */
						want_reservation(&r, &moved);
					}
					else
						want_unchanged(&before, NULL, NULL, &r);
					snprintf(name, sizeof(name),
							 "D10 unknown: %s, operation %s, %s its deadline, by %s",
							 ll_state_name(rule->state), operations[o], instants[t].name,
							 by_caller ? "the caller" : "the sweep");
					row_ends(name);
				}
}

/* D10: what a stream has used so far; a figure never falls, and no balance is at hand to move. */
static void
progress(void)
{
	static const struct
	{
		LLUnits		stored;
		LLUnits		said;
		bool		grows;
	}			figures[] = {
		{0, 0, false}, {0, 1, true}, {0, MAX, true}, {1, 0, false}, {1, 1, false}, {1, 2, true},
		{5, 4, false}, {6, 7, true},	/* more than the 6 that it holds */
		{MAX - 1, MAX, true}, {MAX, MAX - 1, false}, {MAX, MAX, false}
	};

	for (int s = 0; s < LENGTH(rules); s++)
		for (int o = 0; o < LENGTH(operations); o++)
			for (int f = 0; f < LENGTH(figures); f++)
			{
				const Rule *rule = &rules[s];
				LLOperation operation = (LLOperation) o;
				LLReservation r = reservation_in(rule->state);
				LLReservation grown;
				LLVerdict	expected = rule->progress;
				LLVerdict	says;
				Bytes		before;
				char		name[160];

				if (!possible(rule, operation))
					continue;
				r.progress_units = figures[f].stored;
				grown = r;
				grown.progress_units = figures[f].said;
				if (rule->bound && operation != LL_OPERATION_SAME)
					expected = (LLVerdict) CONFLICT(OPERATION);
				if (took_effect(&expected) && !figures[f].grows)
					expected = (LLVerdict) REPLAYED;

				take_bytes(&before, NULL, NULL, &r);
				says = ll_report_progress(&r, operation, figures[f].said);
				want_verdict(&says, &expected);
				if (took_effect(&says))
					want_reservation(&r, &grown);
				else
					want_unchanged(&before, NULL, NULL, &r);
				snprintf(name, sizeof(name), "D10 progress: %s, operation %s, %lld after %lld",
						 ll_state_name(rule->state), operations[o], (long long) figures[f].said,
						 (long long) figures[f].stored);
				row_ends(name);
			}
}

/* D14, first half: RESERVED -> EXPIRING, no balance moves. */
static void
claim(void)
{
	for (int s = 0; s < LENGTH(rules); s++)
		for (int t = 0; t < LENGTH(instants); t++)
		{
			const Rule *rule = &rules[s];
			LLReservation r = reservation_in(rule->state);
			LLReservation moved = r;
			LLVerdict	expected = rule->claim;
			LLVerdict	says;
			Bytes		before;
			char		name[100];

			if (rule->state == LL_RESERVED && instants[t].now < EXPIRES)
				expected = (LLVerdict) REFUSED(NOT_DUE);
			take_bytes(&before, NULL, NULL, &r);
			says = ll_expire_claim(&r, instants[t].now);
			want_verdict(&says, &expected);
			if (took_effect(&says))
			{
				moved.state = LL_EXPIRING;
				want_reservation(&r, &moved);
			}
			else
				want_unchanged(&before, NULL, NULL, &r);
			snprintf(name, sizeof(name), "D14 claim: %s, %s its deadline",
					 ll_state_name(rule->state), instants[t].name);
			row_ends(name);
		}
}

/* D10: a reconciler's lease, in every state, before another one, while it runs and after it. */
static void
claim_unknown(void)
{
	static const struct
	{
		const char *name;
		LLTime		claimed_until;
		bool		free;
	}			leases[] = {
		{"never claimed", INT64_MIN, true}, {"with a lease that has lapsed", EXPIRES - 1, true},
		{"with a lease that ends now", EXPIRES, true}, {"with a lease that runs", EXPIRES + 1, false},
	};

	for (int s = 0; s < LENGTH(rules); s++)
		for (int l = 0; l < LENGTH(leases); l++)
		{
			LLReservation r = reservation_in(rules[s].state);
			LLReservation claimed;
			bool		expected = rules[s].state == LL_USAGE_UNKNOWN && leases[l].free;
			char		name[100];

			r.claimed_until = leases[l].claimed_until;
			claimed = r;
			if (expected)
				claimed.claimed_until = EXPIRES + 50;
			want("claimed", ll_claim_unknown(&r, EXPIRES, EXPIRES + 50), expected);
			want_reservation(&r, &claimed);
			snprintf(name, sizeof(name), "D10 claim: %s, %s", ll_state_name(rules[s].state), leases[l].name);
			row_ends(name);
		}
}

/* D9 and D14, second half, from every state, in the head and in a closed budget. */
static void
leave(void)
{
	for (int s = 0; s < LENGTH(rules); s++)
		for (int expiry = 0; expiry <= 1; expiry++)
			for (int in_closed = 0; in_closed <= 1; in_closed++)
			{
				const Rule *rule = &rules[s];
				LLReservation r = reservation_in(rule->state);
				LLPair		pair = {
					.head = {.generation = 7, COLUMNS(10, 0, 0, 4, 6, 0, 0, 0)}, .older_reserved = 6
				};
				LLBudget	budget = {.generation = 6, COLUMNS(10, 0, 0, 4, 6, 0, 0, 0)};
				LLBudget   *closed = in_closed ? &budget : NULL;
				LLVerdict	expected = expiry ? rule->expire : rule->release;
				LLVerdict	says;
				Bytes		before;
				char		name[100];

				take_bytes(&before, &pair, closed, &r);
				says = expiry ? ll_expire_finish(&pair, closed, &r, &policy)
					: ll_release(&pair, closed, &r, &policy);
				want_verdict(&says, &expected);
				if (took_effect(&says))
				{
					want("state", r.state, expiry ? LL_EXPIRED : LL_RELEASED);
					want("available", pair.head.available, 10);
				}
				else
					want_unchanged(&before, &pair, closed, &r);
				snprintf(name, sizeof(name), "%s: %s, of %s", expiry ? "D14 expire" : "D9 release",
						 ll_state_name(rule->state), in_closed ? "a closed budget" : "the head");
				row_ends(name);
			}
}

/* D8: an operator's, once the debt is zero. */
static void
unfreeze(void)
{
	static const struct
	{
		const char *name;
		LLPair		pair;
		LLVerdict	says;
	}			rows[] = {
		{"D8 unfreeze: no debt", {.frozen = true}, ADMITTED},
		{"D8 unfreeze: a debt that was repaid",
			{.head = {COLUMNS(10, 3, 3, 0, 0, 13, 0, 3)}, .frozen = true}, ADMITTED},
		{"D8 unfreeze: a unit of debt",
			{.head = {COLUMNS(10, 0, 1, 0, 0, 11, 0, 0)}, .frozen = true},
			REFUSED(DEBT)},
		{"D8 unfreeze: a unit of an older debt", {.older_debt = 1, .frozen = true}, REFUSED(DEBT)},
		{"D8 unfreeze: the largest debts",
			{.head = {.overdraft_issued = MAX}, .older_debt = MAX, .frozen = true}, REFUSED(DEBT)},
		{"D8 unfreeze: not frozen", {.frozen = false}, REPLAYED},
		{"D8 unfreeze: not frozen, in debt", {.older_debt = 1}, REPLAYED},
	};

	for (int i = 0; i < LENGTH(rows); i++)
	{
		LLPair		pair;
		LLPair		open = rows[i].pair;
		LLVerdict	says;
		Bytes		before;

		memcpy(&pair, &rows[i].pair, sizeof(pair));
		take_bytes(&before, &pair, NULL, NULL);
		says = ll_unfreeze(&pair);
		want_verdict(&says, &rows[i].says);
		open.frozen = false;
		if (took_effect(&says))
			want_pair(&pair, &open);
		else
			want_unchanged(&before, &pair, NULL, NULL);
		row_ends(rows[i].name);
	}
}

/* D8: an operator's, at any time. */
static void
freeze(void)
{
	static const struct
	{
		const char *name;
		LLPair		pair;
		LLVerdict	says;
	}			rows[] = {
		{"D8 freeze: an open pair",
			{.head = {COLUMNS(10, 0, 0, 4, 6, 0, 0, 0)}, .remainder = 1}, ADMITTED},
		{"D8 freeze: one in debt",
			{.head = {COLUMNS(10, 0, 1, 0, 0, 11, 0, 0)}, .older_debt = 1}, ADMITTED},
		{"D8 freeze: frozen already", {.frozen = true}, REPLAYED},
		{"D8 freeze: frozen already, in debt",
			{.head = {COLUMNS(10, 0, 1, 0, 0, 11, 0, 0)}, .frozen = true}, REPLAYED},
	};

	for (int i = 0; i < LENGTH(rows); i++)
	{
		LLPair		pair;
		LLPair		shut = rows[i].pair;
		LLVerdict	says;
		Bytes		before;

		memcpy(&pair, &rows[i].pair, sizeof(pair));
		take_bytes(&before, &pair, NULL, NULL);
		says = ll_freeze(&pair);
		want_verdict(&says, &rows[i].says);
		shut.frozen = true;
		if (took_effect(&says))
			want_pair(&pair, &shut);
		else
			want_unchanged(&before, &pair, NULL, NULL);
		row_ends(rows[i].name);
	}
}

int
main(void)
{
	start();
	start_of_the_longest();
	unknown();
	progress();
	claim();
	claim_unknown();
	leave();
	freeze();
	unfreeze();
	return done_testing();
}
