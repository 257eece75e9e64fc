/*
 * Units that time brings (C4, E2, A3), and how long until it has (D4, J1).
 */
#include "fixture.h"

enum
{
	NOW = 1000
};

/* 3 units every 2 ticks, 1 unit every 3 ticks. */
static const LLPolicy fast = {
	.generation = 7, .refill = LL_REFILL_CONTINUOUS, .cap = 10, .refill_units = 3,
	.refill_interval = 2, .largest_reservation = 10, .largest_outstanding = LL_UNITS_MAX
};
static const LLPolicy slow = {
	.generation = 7, .refill = LL_REFILL_CONTINUOUS, .cap = 10, .refill_units = 1,
	.refill_interval = 3, .largest_reservation = 10, .largest_outstanding = LL_UNITS_MAX
};
static const LLPolicy endless = {
	.generation = 7, .refill = LL_REFILL_CONTINUOUS, .cap = MAX, .refill_units = MAX,
	.refill_interval = 1, .largest_reservation = MAX, .largest_outstanding = LL_UNITS_MAX
};
static const LLPolicy window = {
	.generation = 7, .refill = LL_REFILL_WINDOW, .cap = 10, .largest_reservation = 10,
	.largest_outstanding = LL_UNITS_MAX
};
static const LLPolicy none = {
	.generation = 7, .refill = LL_REFILL_NONE, .cap = 10, .largest_reservation = 10,
	.largest_outstanding = LL_UNITS_MAX
};

typedef struct Row
{
	const char *name;
	const LLPolicy *policy;
	LLPair		before;
	LLTime		to;
	LLPair		after;			/* accrued_at apart, which is `to` */
} Row;

#define HEAD(...)	.head = {.generation = 7, COLUMNS(__VA_ARGS__), .line = 1}

static const Row rows[] = {
	/* C4: whole units, the fraction kept */
	{"C4: exactly two ticks", &fast,
		{HEAD(10, 0, 0, 2, 8, 0, 0, 0)}, NOW + 2,
		{HEAD(10, 3, 0, 5, 8, 0, 0, 0)}},
	{"C4: one tick, half a unit is kept", &fast,
		{HEAD(10, 0, 0, 2, 8, 0, 0, 0)}, NOW + 1,
		{HEAD(10, 1, 0, 3, 8, 0, 0, 0), .remainder = 1}},
	{"C4: and comes with the next tick", &fast,
		{HEAD(10, 1, 0, 3, 8, 0, 0, 0), .remainder = 1}, NOW + 1,
		{HEAD(10, 3, 0, 5, 8, 0, 0, 0)}},
	{"C4: less than a unit", &slow,
		{HEAD(10, 0, 0, 2, 8, 0, 0, 0)}, NOW + 2,
		{HEAD(10, 0, 0, 2, 8, 0, 0, 0), .remainder = 2}},
	{"C4: a third makes it whole", &slow,
		{HEAD(10, 0, 0, 2, 8, 0, 0, 0), .remainder = 2}, NOW + 1,
		{HEAD(10, 1, 0, 3, 8, 0, 0, 0)}},
	{"C4: one unit below the cap keeps the fraction", &fast,
		{HEAD(10, 0, 0, 5, 5, 0, 0, 0)}, NOW + 3,
		{HEAD(10, 4, 0, 9, 5, 0, 0, 0), .remainder = 1}},

	/* C4: full */
	{"C4: up to the cap, the fraction is dropped", &fast,
		{HEAD(10, 0, 0, 6, 4, 0, 0, 0)}, NOW + 3,
		{HEAD(10, 4, 0, 10, 4, 0, 0, 0)}},
	{"C4: beyond the cap nothing is minted", &fast,
		{HEAD(10, 0, 0, 8, 2, 0, 0, 0)}, NOW + 100,
		{HEAD(10, 2, 0, 10, 2, 0, 0, 0)}},
	{"C4: a full bucket mints nothing", &fast,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, NOW + 1,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}},
	{"C4: a full bucket drops the fraction", &slow,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0), .remainder = 2}, NOW + 1,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}},

	/* E2: debt first; a bucket in debt is not full */
	{"E2: its own debt, in part", &fast,
		{HEAD(10, 0, 5, 0, 0, 15, 0, 0)}, NOW + 2,
		{HEAD(10, 3, 5, 0, 0, 15, 0, 3)}},
	{"E2: its own debt, and the rest is available", &fast,
		{HEAD(10, 0, 5, 0, 0, 15, 0, 0)}, NOW + 5,
		{HEAD(10, 7, 5, 2, 0, 15, 0, 5), .remainder = 1}},
	{"E2: exactly its own debt", &fast,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, NOW + 2,
		{HEAD(10, 3, 3, 0, 0, 13, 0, 3)}},
	{"E2: an older debt is minted there, not here", &fast,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 5}, NOW + 2,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 2, .older_repaid = 3}},
	{"E2: the older debt, then its own, then available", &fast,
		{HEAD(0, 0, 2, 0, 0, 2, 0, 0), .older_debt = 2}, NOW + 4,
		{HEAD(0, 4, 2, 2, 0, 2, 0, 2), .older_repaid = 2}},
	{"E2: a fraction is kept in debt", &fast,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 5}, NOW + 1,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 4, .older_repaid = 1, .remainder = 1}},
	{"E2: debt and bucket full at once", &fast,
		{HEAD(0, 0, 2, 0, 0, 2, 0, 0), .older_debt = 3}, NOW + 11,
		{HEAD(0, 12, 2, 10, 0, 2, 0, 2), .older_repaid = 3}},
	{"E2: adds to what this call has repaid", &fast,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 5, .older_repaid = 4}, NOW + 2,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 2, .older_repaid = 7}},

	/* The other kinds: time passes and brings nothing */
	{"B2: a window mints nothing by time", &window,
		{HEAD(10, 0, 0, 2, 8, 0, 0, 0)}, NOW + 100,
		{HEAD(10, 0, 0, 2, 8, 0, 0, 0)}},
	{"B2: nor does none", &none,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, NOW + 100,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0)}},

	/* A2 */
	{"A2: the largest elapsed time", &fast,
		{HEAD(10, 0, 0, 2, 8, 0, 0, 0), .remainder = 1}, LL_TIME_MAX,
		{HEAD(10, 8, 0, 10, 8, 0, 0, 0)}},
	{"A2: debt and cap beyond bigint: it is repaid all the same", &fast,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = MAX}, NOW + 2,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = MAX - 3, .older_repaid = 3}},
	{"A2: the largest cap", &endless,
		{HEAD(MAX, 0, 0, 0, 0, MAX, 0, 0), .older_debt = 0}, NOW,
		{HEAD(MAX, 0, 0, 0, 0, MAX, 0, 0)}},
	{"A2: into an empty head", &endless,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0)}, NOW + 1,
		{HEAD(0, MAX, 0, MAX, 0, 0, 0, 0)}},
};

static void
accrual(void)
{
	for (int i = 0; i < LENGTH(rows); i++)
	{
		const Row  *row = &rows[i];
		LLPair		pair = row->before;
		LLPair		after = row->after;

		pair.seen_at = after.seen_at = NOW + 7;
		pair.accrued_at = NOW;
		after.accrued_at = row->to;
		want("result", ll_refill_accrue(&pair, row->policy, row->to), true);
		want_pair(&pair, &after);
		row_ends(row->name);
	}
}

/* nothing_happens: an instant that lies behind, and sums beyond bigint. */
static void
nothing_happens(void)
{
	static const struct
	{
		const char *name;
		const LLPolicy *policy;
		LLPair		pair;
		LLTime		to;
		bool		result;
	}			still[] = {
		{"A3: the same instant", &fast, {HEAD(10, 0, 0, 2, 8, 0, 0, 0), .remainder = 1}, NOW, true},
		{"A3: a tick back", &fast, {HEAD(10, 0, 0, 2, 8, 0, 0, 0), .remainder = 1}, NOW - 1, true},
		{"A3: far back", &fast, {HEAD(10, 0, 0, 2, 8, 0, 0, 0), .remainder = 1}, 0, true},
		{"A3: back, with debt", &fast, {HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 2}, 0, true},
		{"A3: back, full, the fraction stays", &slow,
			{HEAD(10, 0, 0, 10, 0, 0, 0, 0), .remainder = 2}, 0, true},
		{"A2: minted beyond bigint: stays due, for the next budget", &fast,
			{HEAD(0, MAX, 0, 0, 0, MAX, 0, 0)}, NOW + 2, true},
		{"A2: minted beyond bigint, by repaying its debt: stays due", &fast,
			{HEAD(0, MAX - 1, 1, 0, 0, MAX, 0, 0)}, NOW + 2, true},
		{"A2: the two sides of C1 beyond bigint: stays due", &endless,
			{HEAD(MAX, 0, 0, 0, 0, MAX, 0, 0)}, NOW + 1, true},
		{"A2: repaid to closed budgets beyond bigint", &fast,
			{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 3, .older_repaid = MAX}, NOW + 2, false},
	};

	for (int i = 0; i < LENGTH(still); i++)
	{
		LLPair		pair;
		Bytes		before;

		want("C1 of the row itself", conserved(&still[i].pair.head), true);
		memcpy(&pair, &still[i].pair, sizeof(pair));
		pair.accrued_at = NOW;
		take_bytes(&before, &pair, NULL, NULL);
		want("result", ll_refill_accrue(&pair, still[i].policy, still[i].to), still[i].result);
		want_unchanged(&before, &pair, NULL, NULL);
		row_ends(still[i].name);
	}
}

/* late_is_early: one late call gives what any number of early ones would have given (C4). */
static void
late_is_early(void)
{
	static const LLPair starts[] = {
		{HEAD(10, 0, 0, 2, 8, 0, 0, 0)}, {HEAD(10, 0, 0, 2, 8, 0, 0, 0), .remainder = 1},
		{HEAD(10, 0, 0, 9, 1, 0, 0, 0), .remainder = 1},
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0), .remainder = 1}, {HEAD(10, 0, 5, 0, 0, 15, 0, 0)},
		{HEAD(0, 0, 2, 0, 0, 2, 0, 0), .older_debt = 4, .remainder = 1},
	};

	for (LLUnits units = 1; units <= 4; units++)
		for (LLTime interval = 2; interval <= 7; interval++)
			for (int s = 0; s < LENGTH(starts); s++)
				for (int step = 1; step <= 5; step++)
				{
					LLPolicy	policy = fast;
					LLPair		late = starts[s];
					LLPair		early = starts[s];

					policy.refill_units = units;
					policy.refill_interval = interval;
					for (LLTime t = step; t <= 60; t += step)
						want("early", ll_refill_accrue(&early, &policy, t), true);
					want("late", ll_refill_accrue(&late, &policy, early.accrued_at), true);
					want_pair(&late, &early);
				}
	row_ends("C4: one late call gives what many early ones would have given");
}

/* admits tells what a pair would say once time has passed. */
static bool
admits(LLPair pair, const LLPolicy *policy, const LLRequest *request, LLTime now)
{
	ll_refill_accrue(&pair, policy, now);
	return ll_admission_judge(&pair, policy, request, now).outcome == LL_ACCEPTED;
}

/* wait_is_exact asks for each number of units on one pair. */
static void
wait_is_exact(const LLPair *pair, const LLPolicy *policy)
{
	for (LLUnits units = 1; units <= 10; units++)
	{
		LLRequest	request = {
			.units = units, .deadline = LL_TIME_MAX, .region_matches = true,
			.estimator_accepted = true
		};
		LLVerdict	says = ll_admission_judge(pair, policy, &request, NOW);

		if (says.outcome == LL_ACCEPTED)
			continue;
		want("kind", says.wait, LL_WAIT_REFILL);
		want("later than now", says.wait_until > NOW, true);
		want("admitted after the wait", admits(*pair, policy, &request, says.wait_until), true);
		want("not before", admits(*pair, policy, &request, says.wait_until - 1), false);
	}
}

/* stated_waits: exact, for every small state (D4). */
static void
stated_waits(void)
{
	static const LLPolicy *const policies[] = {&fast, &slow};

	for (int p = 0; p < LENGTH(policies); p++)
		for (int64_t rest = 0; rest < policies[p]->refill_interval; rest++)
		{
			for (LLUnits available = 0; available <= 10; available++)
				wait_is_exact(&(LLPair) {
					HEAD(10, 0, 0, available, 0, 10 - available, 0, 0), .remainder = rest,
					.seen_at = NOW, .accrued_at = NOW
				}, policies[p]);
			for (LLUnits own = 0; own <= 5; own++)
				for (LLUnits older = 0; older <= 5; older++)
					wait_is_exact(&(LLPair) {
						HEAD(10, 0, own, 0, 0, 10 + own, 0, 0), .older_debt = older,
						.remainder = rest, .seen_at = NOW, .accrued_at = NOW
					}, policies[p]);
		}
	row_ends("D4: who waits exactly the stated wait is admitted, and a tick earlier is not");
}

/* When a pair will be full by refill alone (J1). */
static void
resets(void)
{
	static const struct
	{
		const char *name;
		const LLPolicy *policy;
		LLPair		pair;
		LLWait		wait;
		LLTime		until;
		int64_t		windows;
	}			full[] = {
		{"J1: full already", &fast, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, LL_WAIT_NONE, 0, 0},
		{"J1: 8 missing at 3 every 2 ticks", &fast, {HEAD(10, 0, 0, 2, 8, 0, 0, 0)},
			LL_WAIT_REFILL, NOW + 6, 0},
		{"J1: less a fraction", &slow, {HEAD(10, 0, 0, 9, 1, 0, 0, 0), .remainder = 2},
			LL_WAIT_REFILL, NOW + 1, 0},
		{"J1: debt and cap", &fast, {HEAD(10, 0, 2, 0, 0, 12, 0, 0), .older_debt = 3},
			LL_WAIT_REFILL, NOW + 10, 0},
		{"J1: the next window", &window, {HEAD(10, 0, 0, 2, 8, 0, 0, 0)}, LL_WAIT_REFILL, 0, 1},
		{"J1: a full window too", &window, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, LL_WAIT_REFILL, 0, 1},
		{"J1: a window that pays debt is not full", &window,
			{HEAD(10, 0, 2, 0, 0, 12, 0, 0)}, LL_WAIT_REFILL, 0, 2},
		{"J1: a window that does nothing but pay", &window,
			{HEAD(10, 0, 10, 0, 0, 20, 0, 0)}, LL_WAIT_REFILL, 0, 2},
		{"J1: and one more unit", &window,
			{HEAD(10, 0, 10, 0, 0, 20, 0, 0), .older_debt = 1}, LL_WAIT_REFILL, 0, 3},
		{"J1: none, full", &none, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, LL_WAIT_NONE, 0, 0},
		{"J1: none, not full", &none, {HEAD(10, 0, 0, 2, 8, 0, 0, 0)}, LL_WAIT_RELEASE, 0, 0},
	};

	for (int i = 0; i < LENGTH(full); i++)
	{
		LLPair		pair = full[i].pair;
		LLVerdict	says;

		pair.accrued_at = NOW;
		says = ll_refill_reset(&pair, full[i].policy);
		want("outcome", says.outcome, LL_ACCEPTED);
		want("wait", says.wait, full[i].wait);
		want("wait_until", says.wait_until, full[i].until);
		want("wait_windows", says.wait_windows, full[i].windows);
		row_ends(full[i].name);
	}
}

int
main(void)
{
	accrual();
	nothing_happens();
	late_is_early();
	stated_waits();
	resets();
	return done_testing();
}
