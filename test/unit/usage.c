/*
 * What no reservation covers (D7, D8, D12), and what an operator grants (E3).
 */
#include "fixture.h"

/* cap 10, hard limit 20, maximum overdraft 5 */
static const LLPolicy policy = {
	.generation = 7, .refill = LL_REFILL_CONTINUOUS, .cap = 10, .refill_units = 3,
	.refill_interval = 2, .hard_limit = 20, .maximum_overdraft = 5
};
static const LLPolicy strict = {
	.generation = 7, .refill = LL_REFILL_WINDOW, .cap = 10, .hard_limit = 3,
	.maximum_overdraft = 0
};
static const LLPolicy none = {
	.generation = 7, .refill = LL_REFILL_NONE, .cap = 10, .hard_limit = 20,
	.maximum_overdraft = 5
};
static const LLPolicy endless = {
	.generation = 7, .refill = LL_REFILL_NONE, .cap = MAX, .hard_limit = MAX,
	.maximum_overdraft = MAX
};

#define HEAD(...)	.head = {.generation = 7, .line = 2, COLUMNS(__VA_ARGS__)}
#define WINDOW(less, ...) \
	.head = {.generation = 7, .line = 2, .whole = true, .deficit = less, COLUMNS(__VA_ARGS__)}

/* ---- usage without a reservation ----------------------------------------- */

typedef struct Usage
{
	const char *name;
	const LLPolicy *policy;		/* NULL: `policy` */
	LLPair		before;
	LLUnits		units;
	LLVerdict	says;
	LLPair		after;
	LLUnits		debt;			/* how much of it became debt */
	bool		imported;
} Usage;

static const Usage usages[] = {
	/* available first, debt of the rest */
	{"D12: a part of what is available", 0, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 3, ADMITTED,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0)}, 0},
	{"A2: the least", 0, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 1, ADMITTED,
		{HEAD(10, 0, 0, 9, 0, 1, 0, 0)}, 0},
	{"A2: nothing", 0, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 0, ADMITTED,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 0},
	{"A2: nothing, in debt beyond the maximum", &strict, {HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, 0,
		ADMITTED, {HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, 0},
	{"D12: all of it", 0, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 10, ADMITTED,
		{HEAD(10, 0, 0, 0, 0, 10, 0, 0)}, 0},
	{"D12: a unit above that is debt", 0, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 11, ADMITTED,
		{HEAD(10, 0, 1, 0, 0, 11, 0, 0)}, 1},
	{"D12: nothing is available", 0, {HEAD(10, 0, 0, 0, 0, 10, 0, 0)}, 1, ADMITTED,
		{HEAD(10, 0, 1, 0, 0, 11, 0, 0)}, 1},
	{"D12: debt on debt", 0, {HEAD(10, 0, 2, 0, 0, 12, 0, 0)}, 3, ADMITTED,
		{HEAD(10, 0, 5, 0, 0, 15, 0, 0)}, 3},
	{"D12: what is held stays held", 0, {HEAD(10, 0, 0, 4, 6, 0, 0, 0), .older_reserved = 2}, 5,
		ADMITTED, {HEAD(10, 0, 1, 0, 6, 5, 0, 0), .older_reserved = 2}, 1},
	{"D12: a fraction and a deficit stay", 0,
		{WINDOW(3, 0, 0, 0, 0, 0, 0, 0, 0), .remainder = 1}, 2, ADMITTED,
		{WINDOW(3, 0, 0, 2, 0, 0, 2, 0, 0), .remainder = 1}, 2},
	{"D12: an older debt stays with its budget", 0,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 2}, 3, ADMITTED,
		{HEAD(0, 0, 3, 0, 0, 3, 0, 0), .older_debt = 2}, 3},

	/* D8: breaches freeze, and all of it is recorded */
	{"D8: at the maximum overdraft", 0, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 15, ADMITTED,
		{HEAD(10, 0, 5, 0, 0, 15, 0, 0)}, 5},
	{"D8: a unit above it", 0, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 16, ADMITTED,
		{HEAD(10, 0, 6, 0, 0, 16, 0, 0), .frozen = true}, 6},
	{"D8: the debt of the pair counts", 0, {HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 5}, 1,
		ADMITTED, {HEAD(0, 0, 1, 0, 0, 1, 0, 0), .older_debt = 5, .frozen = true}, 1},
	{"D8: less what was repaid", 0, {HEAD(10, 4, 6, 0, 0, 16, 0, 4)}, 3, ADMITTED,
		{HEAD(10, 4, 9, 0, 0, 19, 0, 4)}, 3},
	{"D8: at the hard limit", &strict, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 3, ADMITTED,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0)}, 0},
	{"D8: a unit above it, though covered", &strict, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 4, ADMITTED,
		{HEAD(10, 0, 0, 6, 0, 4, 0, 0), .frozen = true}, 0},
	{"B2: an import is no execution", &strict, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 4, ADMITTED,
		{HEAD(10, 0, 0, 6, 0, 4, 0, 0)}, 0, true},
	{"B2: above the cap it is debt", 0, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 15, ADMITTED,
		{HEAD(10, 0, 5, 0, 0, 15, 0, 0)}, 5, true},
	{"B2: and freezes above the maximum overdraft", 0, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 16, ADMITTED,
		{HEAD(10, 0, 6, 0, 0, 16, 0, 0), .frozen = true}, 6, true},
	{"D8: a frozen pair records, and stays frozen", 0,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0), .frozen = true}, 3, ADMITTED,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0), .frozen = true}, 0},

	/* A2: up to the largest number, and beyond it */
	{"D8: a garbage figure is recorded in full", 0, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, MAX, ADMITTED,
		{HEAD(10, 0, MAX - 10, 0, 0, MAX, 0, 0), .frozen = true}, MAX - 10},
	{"A2: the largest number, covered", &endless, {HEAD(MAX, 0, 0, MAX, 0, 0, 0, 0)}, MAX, ADMITTED,
		{HEAD(MAX, 0, 0, 0, 0, MAX, 0, 0)}, 0},
	{"A2: the largest debt", &endless, {HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = MAX - 1}, 1,
		ADMITTED, {HEAD(0, 0, 1, 0, 0, 1, 0, 0), .older_debt = MAX - 1}, 1},
	{"A2: a unit above it", &endless, {HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = MAX}, 1,
		OVERFLOWS},
	{"A2: the largest number, one available", &endless, {HEAD(MAX, 0, 0, 1, 0, MAX - 1, 0, 0)}, 1,
		ADMITTED, {HEAD(MAX, 0, 0, 0, 0, MAX, 0, 0)}, 0},
	{"A2: spent beyond bigint", &endless, {HEAD(MAX, 0, 0, 0, 0, MAX, 0, 0)}, 1, OVERFLOWS},
	{"A2: spent beyond bigint, in part covered", &endless,
		{HEAD(MAX, 0, 0, 1, 0, MAX - 1, 0, 0)}, 2, OVERFLOWS},
	{"A2: overdraft_issued beyond bigint", &endless,
		{HEAD(0, 0, MAX, 0, 0, 0, 0, MAX)}, 1, OVERFLOWS},
	{"A2: one side of C1 beyond bigint, no column", &endless,
		{HEAD(MAX, 0, 0, 0, 1, MAX - 1, 0, 0)}, 1, OVERFLOWS},
	{"A2: a garbage figure beside what is held", 0, {HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, MAX,
		OVERFLOWS},
};

static void
record_usage(void)
{
	for (int i = 0; i < LENGTH(usages); i++)
	{
		const Usage *row = &usages[i];
		LLPair		pair = row->before;
		Bytes		before;
		LLVerdict	says;
		char		name[100];

		want("C1 of the row itself", conserved(&row->before.head), true);
		take_bytes(&before, &pair, NULL, NULL);
		says = ll_record_usage(&pair, row->policy != NULL ? row->policy : &policy, row->units,
							   row->imported);
		want_verdict(&says, &row->says);
		if (took_effect(&row->says))
			want_pair(&pair, &row->after);
		else
			want_unchanged(&before, &pair, NULL, NULL);
		snprintf(name, sizeof(name), "record_usage: %s", row->name);
		row_ends(name);
	}
}

/*
 * ll_exceed is the part that a settlement shares: the same units, without the
 * hard limit of an execution.  The sum of a side of C1 is its callers' to ask.
 */
static void
exceed(void)
{
	for (int i = 0; i < LENGTH(usages); i++)
	{
		const Usage *row = &usages[i];
		const LLPolicy *now = row->policy != NULL ? row->policy : &policy;
		LLPair		pair = row->before;
		LLPair		after = row->after;
		LLUnits		debt = 77;
		char		name[100];

		Bytes		before;

		if (row->says.overflow)
		{
			take_bytes(&before, &pair, NULL, NULL);
			if (!ll_exceed(&pair, row->units, now, &debt))
				want_unchanged(&before, &pair, NULL, NULL);
			snprintf(name, sizeof(name), "exceed: %s", row->name);
			row_ends(name);
			continue;
		}
		if (row->debt == 0)		/* frozen for the hard limit alone, if at all */
			after.frozen = row->before.frozen;
		want("it fits", ll_exceed(&pair, row->units, now, &debt), true);
		want("debt", debt, row->debt);
		want_pair(&pair, &after);
		snprintf(name, sizeof(name), "exceed: %s", row->name);
		row_ends(name);
	}
}

/* ---- what an operator grants --------------------------------------------- */

typedef struct Grant
{
	const char *name;
	const LLPolicy *policy;		/* NULL: `policy` */
	LLPair		before;
	LLUnits		units;
	LLVerdict	says;
	LLPair		after;
	LLUnits		granted;
} Grant;

static const Grant grants[] = {
	/* available, within the cap */
	{"E3: available", 0, {HEAD(10, 0, 0, 4, 0, 6, 0, 0)}, 3, ADMITTED,
		{HEAD(10, 3, 0, 7, 0, 6, 0, 0)}, 3},
	{"A2: the least", 0, {HEAD(10, 0, 0, 4, 0, 6, 0, 0)}, 1, ADMITTED,
		{HEAD(10, 1, 0, 5, 0, 6, 0, 0)}, 1},
	{"A2: nothing", 0, {HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 2}, 0, ADMITTED,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 2}, 0},
	{"C4: up to the cap", 0, {HEAD(10, 0, 0, 4, 0, 6, 0, 0)}, 6, ADMITTED,
		{HEAD(10, 6, 0, 10, 0, 6, 0, 0)}, 6},
	{"C4: a unit above it is not granted", 0, {HEAD(10, 0, 0, 4, 0, 6, 0, 0)}, 7, ADMITTED,
		{HEAD(10, 6, 0, 10, 0, 6, 0, 0)}, 6},
	{"C4: full", 0, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 5, ADMITTED,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 0},
	{"C4: what is held leaves room up to the cap", 0, {HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, 9, ADMITTED,
		{HEAD(10, 6, 0, 10, 6, 0, 0, 0)}, 6},
	{"E3: the only way out where nothing refills", &none, {HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, 5,
		ADMITTED, {HEAD(10, 5, 3, 2, 0, 13, 0, 3)}, 5},
	{"C4: the fraction of a unit stays", 0,
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0), .remainder = 1}, 6, ADMITTED,
		{HEAD(10, 6, 0, 10, 0, 6, 0, 0), .remainder = 1}, 6},
	{"D8: a frozen pair stays frozen", 0,
		{HEAD(10, 0, 1, 0, 0, 11, 0, 0), .frozen = true}, 3, ADMITTED,
		{HEAD(10, 3, 1, 2, 0, 11, 0, 1), .frozen = true}, 3},

	/* debt first, the oldest before the head's */
	{"E2: the head's debt in part", 0, {HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, 2, ADMITTED,
		{HEAD(10, 2, 3, 0, 0, 13, 0, 2)}, 2},
	{"E2: all of it and no more", 0, {HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, 3, ADMITTED,
		{HEAD(10, 3, 3, 0, 0, 13, 0, 3)}, 3},
	{"E2: what was repaid before counts", 0, {HEAD(10, 2, 3, 0, 0, 13, 0, 2)}, 4, ADMITTED,
		{HEAD(10, 6, 3, 3, 0, 13, 0, 3)}, 4},
	{"E2: older debt in part", 0, {HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 4}, 3, ADMITTED,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 1, .older_repaid = 3}, 3},
	{"E2: older debt, then the head's", 0, {HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 4}, 6,
		ADMITTED, {HEAD(10, 2, 3, 0, 0, 13, 0, 2), .older_repaid = 4}, 6},
	{"E2: beside what this call has paid", 0,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 4, .older_repaid = 2}, 3, ADMITTED,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 1, .older_repaid = 5}, 3},

	/* then a deficit, which is nothing minted */
	{"E3: the deficit in part", &strict, {WINDOW(5, 0, 0, 0, 0, 0, 0, 0, 0)}, 4, ADMITTED,
		{WINDOW(1, 0, 0, 0, 0, 0, 0, 0, 0)}, 4},
	{"E3: all of it and no more", &strict, {WINDOW(5, 0, 0, 0, 0, 0, 0, 0, 0)}, 5, ADMITTED,
		{WINDOW(0, 0, 0, 0, 0, 0, 0, 0, 0)}, 5},
	{"E3: the deficit, then available", &strict, {WINDOW(5, 0, 0, 0, 0, 0, 0, 0, 0)}, 7, ADMITTED,
		{WINDOW(0, 0, 2, 0, 2, 0, 0, 0, 0)}, 7},
	{"E3: debt before the deficit", &strict, {WINDOW(5, 0, 0, 3, 0, 0, 3, 0, 0)}, 3, ADMITTED,
		{WINDOW(5, 0, 3, 3, 0, 0, 3, 0, 3)}, 3},
	{"E3: older debt, own debt, deficit, available, in this order", &strict,
		{WINDOW(1, 0, 0, 1, 0, 0, 1, 0, 0), .older_debt = 1}, 4, ADMITTED,
		{WINDOW(0, 0, 2, 1, 1, 0, 1, 0, 1), .older_repaid = 1}, 4},
	{"E3: and the cap ends it", &strict,
		{WINDOW(1, 0, 0, 1, 0, 0, 1, 0, 0), .older_debt = 1}, 14, ADMITTED,
		{WINDOW(0, 0, 11, 1, 10, 0, 1, 0, 1), .older_repaid = 1}, 13},

	/* A2: up to the largest number, and beyond it */
	{"A2: the largest number, within a cap", 0, {HEAD(10, 0, 0, 4, 0, 6, 0, 0)}, MAX, ADMITTED,
		{HEAD(10, 6, 0, 10, 0, 6, 0, 0)}, 6},
	{"A2: all of the largest number", &endless, {HEAD(0, 0, 0, 0, 0, 0, 0, 0)}, MAX, ADMITTED,
		{HEAD(0, MAX, 0, MAX, 0, 0, 0, 0)}, MAX},
	{"A2: the largest debt", &endless, {HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = MAX}, MAX,
		ADMITTED, {HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_repaid = MAX}, MAX},
	{"A2: the largest deficit", &endless, {WINDOW(MAX, 0, 0, 0, 0, 0, 0, 0, 0)}, MAX, ADMITTED,
		{WINDOW(0, 0, 0, 0, 0, 0, 0, 0, 0)}, MAX},
	{"A2: minted up to bigint", &endless, {HEAD(0, MAX - 1, 0, 0, 0, MAX - 1, 0, 0)}, 1, ADMITTED,
		{HEAD(0, MAX, 0, 1, 0, MAX - 1, 0, 0)}, 1},
	{"A2: minted beyond bigint", &endless, {HEAD(0, MAX, 0, 0, 0, MAX, 0, 0)}, 1, OVERFLOWS},
	{"A2: one side of C1 beyond bigint, no column", &endless,
		{HEAD(MAX - 1, 0, 0, 0, 0, MAX - 1, 0, 0)}, 2, OVERFLOWS},
	{"A2: the head's debt, and no room for it", &endless,
		{HEAD(MAX - 3, 0, 3, 0, 0, MAX, 0, 0)}, 1, OVERFLOWS},
	{"A2: older debt is paid, then no room", &endless,
		{HEAD(MAX, 0, 0, 0, 0, MAX, 0, 0), .older_debt = 2}, 3, OVERFLOWS},
	{"A2: a deficit is filled, then no room", &endless,
		{WINDOW(2, MAX, 0, 0, 0, 0, MAX, 0, 0)}, 3, OVERFLOWS},
	{"A2: what this call has paid beyond bigint", &endless,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 1, .older_repaid = MAX}, 1, OVERFLOWS},
};

static void
grant(void)
{
	for (int i = 0; i < LENGTH(grants); i++)
	{
		const Grant *row = &grants[i];
		LLPair		pair = row->before;
		LLUnits		granted = 77;
		Bytes		before;
		LLVerdict	says;
		char		name[100];

		want("C1 of the row itself", conserved(&row->before.head), true);
		take_bytes(&before, &pair, NULL, NULL);
		says = ll_grant(&pair, row->policy != NULL ? row->policy : &policy, row->units, &granted);
		want_verdict(&says, &row->says);
		want("granted", granted, row->says.overflow ? 77 : row->granted);
		if (took_effect(&row->says))
			want_pair(&pair, &row->after);
		else
			want_unchanged(&before, &pair, NULL, NULL);
		snprintf(name, sizeof(name), "grant: %s", row->name);
		row_ends(name);
	}
}

int
main(void)
{
	record_usage();
	exceed();
	grant();
	return done_testing();
}
