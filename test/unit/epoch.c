/*
 * A budget closes and the next one opens: each case of the carry (A4, B2, B5, E2, E4).
 */
#include "fixture.h"

enum
{
	SEEN = 1500,
	AT = 1400,					/* refill and epochs applied up to here */
	OLD_EPOCH = 1000,
	EPOCH = 2000
};

#define CONTINUOUS(cap_, units, interval) \
	.refill = LL_REFILL_CONTINUOUS, .cap = cap_, .refill_units = units, .refill_interval = interval
#define WINDOW(quota)	.refill = LL_REFILL_WINDOW, .cap = quota
#define NONE(cap_)		.refill = LL_REFILL_NONE, .cap = cap_

/* Heads under generation 7, in line 4. */
#define HEAD(...) \
	.head = {.generation = 7, .epoch = OLD_EPOCH, .line = 4, COLUMNS(__VA_ARGS__)}
#define WHOLE(missing, ...) \
	.head = {.generation = 7, .epoch = OLD_EPOCH, .line = 4, .whole = true, .deficit = missing, \
		COLUMNS(__VA_ARGS__)}

/* What opens: nothing but its opening is in it. */
typedef struct Opens
{
	LLUnits		carried;
	LLUnits		opening;
	LLUnits		deficit;
	int			new_lines;
	bool		whole;
	LLUnits		older_debt;
	LLUnits		older_repaid;
	LLUnits		older_reserved;
	int64_t		remainder;
} Opens;

/* want_opened checks the pair after a roll that closed `was`. */
static void
want_opened(const LLPair *pair, const LLPair *was, int64_t generation, const Opens *opens)
{
	LLPair		after = {
		.head = {
			.generation = generation, .epoch = EPOCH, .opening = opens->opening,
			.available = opens->opening, .carried = opens->carried, .deficit = opens->deficit,
			.line = was->head.line + opens->new_lines, .whole = opens->whole
		},
		.older_debt = opens->older_debt, .older_repaid = opens->older_repaid,
		.older_reserved = opens->older_reserved, .remainder = opens->remainder,
		.seen_at = SEEN, .accrued_at = AT, .frozen = was->frozen
	};

	want_pair(pair, &after);
}

/* ---- the first budget (B2, B3) ------------------------------------------- */

static void
first(void)
{
	static const struct
	{
		const char *name;
		LLPolicy	policy;
		bool		whole;
	}			rows[] = {
		{"B2: continuous opens at the cap", {.generation = 7, CONTINUOUS(10, 3, 2)}, false},
		{"B2: window opens with its quota", {.generation = 7, WINDOW(10)}, true},
		{"B2: none opens at the cap", {.generation = 7, NONE(10)}, false},
		{"A2: the largest cap", {.generation = MAX, NONE(MAX)}, false},
	};

	for (int i = 0; i < LENGTH(rows); i++)
	{
		LLUnits		cap = rows[i].policy.cap;
		LLPair		pair;
		LLPair		after = {
			.head = {
				.generation = rows[i].policy.generation, .epoch = EPOCH, .opening = cap,
				.available = cap, .carried = cap, .line = 1, .whole = rows[i].whole
			},
			.seen_at = SEEN, .accrued_at = SEEN
		};

		memset(&pair, 0xA5, sizeof(pair));
		ll_epoch_open_first(&pair, &rows[i].policy, EPOCH, SEEN);
		want_pair(&pair, &after);
		want("sound", ll_pair_sound(&pair, &rows[i].policy), true);
		row_ends(rows[i].name);
	}
}

/* ---- the next epoch of one policy (B5, E2) ------------------------------- */

static const struct
{
	const char *name;
	LLPolicy	policy;
	LLPair		before;
	int64_t		missed;
	LLUnits		paid_by_closed;	/* to its own debt, before it closed */
	Opens		opens;
}			next_rows[] = {
	{"B5: continuous carries what is available, and the fraction",
		{.generation = 7, CONTINUOUS(10, 3, 2)},
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0), .remainder = 1}, 0, 0,
		{.carried = 4, .opening = 4, .remainder = 1}},
	{"B5: full stays full", {.generation = 7, CONTINUOUS(10, 3, 2)},
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 0, 0,
		{.carried = 10, .opening = 10}},
	{"B5: none carries what is available", {.generation = 7, NONE(10)},
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0)}, 0, 0,
		{.carried = 4, .opening = 4}},
	{"B5: none, nothing left", {.generation = 7, NONE(10)},
		{HEAD(10, 0, 0, 0, 0, 10, 0, 0)}, 0, 0,
		{.carried = 0}},
	{"C2: what is reserved stays in the closed budget", {.generation = 7, NONE(10)},
		{HEAD(10, 0, 0, 4, 5, 1, 0, 0), .older_reserved = 2}, 0, 0,
		{.carried = 4, .opening = 4, .older_reserved = 7}},
	{"E4: so does debt, which stays owed", {.generation = 7, NONE(10)},
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 2}, 0, 0,
		{.older_debt = 5}},
	{"E4: continuous too", {.generation = 7, CONTINUOUS(10, 3, 2)},
		{HEAD(10, 1, 3, 0, 0, 13, 0, 1), .older_debt = 2, .remainder = 1}, 0, 0,
		{.older_debt = 4, .remainder = 1}},
	{"D8: a frozen pair stays frozen", {.generation = 7, NONE(10)},
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0), .frozen = true}, 0, 0,
		{.carried = 4, .opening = 4}},

	{"B5: a window opens with its quota", {.generation = 7, WINDOW(10)},
		{WHOLE(0, 10, 0, 0, 4, 0, 6, 0, 0)}, 0, 0,
		{.carried = 10, .opening = 10, .new_lines = 1, .whole = true}},
	{"B5: whatever it was before", {.generation = 7, WINDOW(10)},
		{HEAD(10, 0, 0, 4, 5, 1, 0, 0)}, 0, 0,
		{.carried = 10, .opening = 10, .new_lines = 1, .whole = true, .older_reserved = 5}},
	{"B5: and the deficit ends", {.generation = 7, WINDOW(10)},
		{WHOLE(3, 0, 0, 0, 0, 0, 0, 0, 0)}, 0, 0,
		{.carried = 10, .opening = 10, .new_lines = 1, .whole = true}},
	{"E2: debt takes its share of the quota", {.generation = 7, WINDOW(10)},
		{WHOLE(0, 10, 0, 3, 0, 0, 13, 0, 0)}, 0, 0,
		{.carried = 10, .opening = 7, .new_lines = 1, .whole = true, .older_repaid = 3}},
	{"E2: all of it", {.generation = 7, WINDOW(10)},
		{WHOLE(0, 10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 9}, 0, 0,
		{.carried = 10, .opening = 0, .new_lines = 1, .whole = true, .older_debt = 2,
			.older_repaid = 10}},
	{"E2: exactly all of it", {.generation = 7, WINDOW(10)},
		{WHOLE(0, 10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 7}, 0, 0,
		{.carried = 10, .opening = 0, .new_lines = 1, .whole = true, .older_repaid = 10}},
	{"E2: a window that passed unopened pays first", {.generation = 7, WINDOW(10)},
		{WHOLE(0, 10, 0, 3, 0, 0, 13, 0, 0)}, 1, 3,
		{.carried = 10, .opening = 10, .new_lines = 1, .whole = true}},
	{"E2: three of them, the oldest debt first", {.generation = 7, WINDOW(10)},
		{WHOLE(0, 10, 0, 27, 0, 0, 37, 0, 0), .older_debt = 8}, 3, 22,
		{.carried = 10, .opening = 5, .new_lines = 1, .whole = true, .older_repaid = 13}},
	{"E2: what they have left over lapses", {.generation = 7, WINDOW(10)},
		{WHOLE(0, 10, 0, 0, 2, 0, 8, 0, 0)}, 3, 0,
		{.carried = 10, .opening = 10, .new_lines = 1, .whole = true}},
	{"E2: just enough of them", {.generation = 7, WINDOW(10)},
		{WHOLE(0, 10, 0, 20, 0, 0, 30, 0, 0)}, 2, 20,
		{.carried = 10, .opening = 10, .new_lines = 1, .whole = true}},
	{"E2: one unit more than they pay", {.generation = 7, WINDOW(10)},
		{WHOLE(0, 10, 0, 21, 0, 0, 31, 0, 0)}, 2, 20,
		{.carried = 10, .opening = 9, .new_lines = 1, .whole = true, .older_repaid = 1}},
	{"A2: the largest number of them", {.generation = 7, WINDOW(10)},
		{WHOLE(0, 10, 0, 21, 0, 0, 31, 0, 0), .older_debt = 4}, MAX, 21,
		{.carried = 10, .opening = 10, .new_lines = 1, .whole = true, .older_repaid = 4}},
	{"A2: of the largest quota", {.generation = 7, WINDOW(MAX)},
		{WHOLE(0, 10, 0, 21, 0, 0, 31, 0, 0)}, MAX, 21,
		{.carried = MAX, .opening = MAX, .new_lines = 1, .whole = true}},
	{"B5: unopened epochs bring nothing without a quota", {.generation = 7, CONTINUOUS(10, 3, 2)},
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, 5, 0,
		{.older_debt = 3}},
};

static void
next(void)
{
	for (int i = 0; i < LENGTH(next_rows); i++)
	{
		LLPair		pair = next_rows[i].before;
		LLBudget	after = pair.head;
		LLBudget	closed;
		LLPair		was;

		pair.seen_at = SEEN;
		pair.accrued_at = AT;
		was = pair;
		after.minted += next_rows[i].paid_by_closed;
		after.overdraft_repaid += next_rows[i].paid_by_closed;
		want("result", ll_epoch_open_next(&pair, &next_rows[i].policy, EPOCH,
										  next_rows[i].missed, &closed), true);
		want_budget("closed", &closed, &after);
		want_opened(&pair, &was, 7, &next_rows[i].opens);
		row_ends(next_rows[i].name);
	}
}

/* ---- another generation (B5) --------------------------------------------- */

static const struct
{
	const char *name;
	LLPolicy	old;
	LLPolicy	new;
	bool		same_periods;
	LLPair		before;
	Opens		opens;
}			generation_rows[] = {
	/* continuous and none: min(cap, available) */
	{"B5: continuous, a larger cap is not filled", {CONTINUOUS(10, 3, 2)}, {CONTINUOUS(20, 3, 2)},
		true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0)},
		{.carried = 7, .opening = 7}},
	{"B5: continuous, a smaller cap cuts", {CONTINUOUS(10, 3, 2)}, {CONTINUOUS(5, 3, 2)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0)},
		{.carried = 5, .opening = 5}},
	{"B5: continuous, exactly the cap", {CONTINUOUS(10, 3, 2)}, {CONTINUOUS(7, 3, 2)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0)},
		{.carried = 7, .opening = 7}},
	{"B5: none, a larger cap", {NONE(10)}, {NONE(20)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0)},
		{.carried = 7, .opening = 7}},
	{"B5: none, a smaller cap", {NONE(10)}, {NONE(5)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0)},
		{.carried = 5, .opening = 5}},
	{"C2: what is reserved stays behind", {NONE(10)}, {NONE(20)}, true,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0), .older_reserved = 1},
		{.carried = 4, .opening = 4, .older_reserved = 7}},
	{"E4: debt stays owed", {CONTINUOUS(10, 3, 2)}, {CONTINUOUS(99, 3, 2)}, true,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 2, .frozen = true},
		{.older_debt = 5}},

	/* the fraction, as a part of a unit, rounded down */
	{"B5: the fraction under the same rate", {CONTINUOUS(10, 3, 5)}, {CONTINUOUS(10, 3, 5)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0), .remainder = 4},
		{.carried = 7, .opening = 7, .remainder = 4}},
	{"B5: the fraction is of a unit, not of a time: other units", {CONTINUOUS(10, 3, 5)},
		{CONTINUOUS(10, 1, 5)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0), .remainder = 4},
		{.carried = 7, .opening = 7, .remainder = 4}},
	{"B5: half a unit is half a unit", {CONTINUOUS(10, 1, 2)}, {CONTINUOUS(10, 1, 60)}, false,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0), .remainder = 1},
		{.carried = 7, .opening = 7, .remainder = 30}},
	{"B5: half of three, rounded down", {CONTINUOUS(10, 1, 2)}, {CONTINUOUS(10, 1, 3)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0), .remainder = 1},
		{.carried = 7, .opening = 7, .remainder = 1}},
	{"B5: 59 of 60, in halves", {CONTINUOUS(10, 1, 60)}, {CONTINUOUS(10, 1, 2)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0), .remainder = 59},
		{.carried = 7, .opening = 7, .remainder = 1}},
	{"B5: 59 of 60, in wholes", {CONTINUOUS(10, 1, 60)}, {CONTINUOUS(10, 1, 1)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0), .remainder = 59},
		{.carried = 7, .opening = 7}},
	{"A2: the largest intervals", {CONTINUOUS(10, 1, MAX)}, {CONTINUOUS(10, 1, MAX - 1)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0), .remainder = MAX - 1},
		{.carried = 7, .opening = 7, .remainder = MAX - 2}},
	{"C4: dropped where the new bucket is full", {CONTINUOUS(10, 1, 2)}, {CONTINUOUS(5, 1, 2)},
		true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0), .remainder = 1},
		{.carried = 5, .opening = 5}},
	{"C4: kept in debt", {CONTINUOUS(10, 1, 2)}, {CONTINUOUS(5, 1, 2)}, true,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0), .remainder = 1},
		{.older_debt = 3, .remainder = 1}},
	{"B5: no fraction goes to a window", {CONTINUOUS(10, 1, 2)}, {WINDOW(10)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0), .remainder = 1},
		{.carried = 7, .opening = 7}},
	{"B5: nor to none", {CONTINUOUS(10, 1, 2)}, {NONE(10)}, true,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0), .remainder = 1},
		{.carried = 7, .opening = 7}},

	/* window after window, the same window, whole: the change of quota */
	{"B5: quota up", {WINDOW(10)}, {WINDOW(15)}, true,
		{WHOLE(0, 10, 0, 0, 4, 0, 6, 0, 0)},
		{.carried = 9, .opening = 9, .whole = true}},
	{"B5: quota down", {WINDOW(10)}, {WINDOW(8)}, true,
		{WHOLE(0, 10, 0, 0, 4, 0, 6, 0, 0)},
		{.carried = 2, .opening = 2, .whole = true}},
	{"B5: the same quota", {WINDOW(10)}, {WINDOW(10)}, true,
		{WHOLE(0, 10, 0, 0, 4, 0, 6, 0, 0)},
		{.carried = 4, .opening = 4, .whole = true}},
	{"B5: down to exactly what was used", {WINDOW(10)}, {WINDOW(6)}, true,
		{WHOLE(0, 10, 0, 0, 4, 0, 6, 0, 0)},
		{.carried = 0, .whole = true}},
	{"B5: down below what was used: a deficit", {WINDOW(10)}, {WINDOW(3)}, true,
		{WHOLE(0, 10, 0, 0, 4, 0, 6, 0, 0)},
		{.deficit = 3, .whole = true}},
	{"B5: what is held counts as used", {WINDOW(10)}, {WINDOW(3)}, true,
		{WHOLE(0, 10, 0, 0, 4, 6, 0, 0, 0)},
		{.deficit = 3, .whole = true, .older_reserved = 6}},
	{"B5: up again, out of the deficit", {WINDOW(3)}, {WINDOW(10)}, true,
		{WHOLE(3, 0, 0, 0, 0, 0, 0, 0, 0)},
		{.carried = 4, .opening = 4, .whole = true}},
	{"B5: up, exactly out of it", {WINDOW(3)}, {WINDOW(6)}, true,
		{WHOLE(3, 0, 0, 0, 0, 0, 0, 0, 0)},
		{.whole = true}},
	{"B5: up, still in it", {WINDOW(3)}, {WINDOW(5)}, true,
		{WHOLE(3, 0, 0, 0, 0, 0, 0, 0, 0)},
		{.deficit = 1, .whole = true}},
	{"B5: the same quota, still in it", {WINDOW(3)}, {WINDOW(3)}, true,
		{WHOLE(3, 0, 0, 0, 0, 0, 0, 0, 0)},
		{.deficit = 3, .whole = true}},
	{"B5: down, deeper in it", {WINDOW(3)}, {WINDOW(1)}, true,
		{WHOLE(3, 0, 0, 0, 0, 0, 0, 0, 0)},
		{.deficit = 5, .whole = true}},
	{"E2: debt takes its share of the change", {WINDOW(10)}, {WINDOW(15)}, true,
		{WHOLE(0, 10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 1},
		{.carried = 5, .opening = 1, .whole = true, .older_repaid = 4}},
	{"E2: all of it", {WINDOW(10)}, {WINDOW(15)}, true,
		{WHOLE(0, 10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 4},
		{.carried = 5, .whole = true, .older_debt = 2, .older_repaid = 5}},
	{"E2: out of a deficit, then debt", {WINDOW(3)}, {WINDOW(8)}, true,
		{WHOLE(2, 0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 4},
		{.carried = 3, .whole = true, .older_debt = 1, .older_repaid = 3}},
	{"E4: debt and deficit", {WINDOW(10)}, {WINDOW(7)}, true,
		{WHOLE(0, 10, 0, 2, 0, 0, 12, 0, 0)},
		{.deficit = 3, .whole = true, .older_debt = 2}},
	{"A2: from the largest quota to the least", {WINDOW(MAX)}, {WINDOW(1)}, true,
		{WHOLE(0, MAX, 0, 0, 0, 0, MAX, 0, 0)},
		{.deficit = MAX - 1, .whole = true}},
	{"A2: and back", {WINDOW(1)}, {WINDOW(MAX)}, true,
		{WHOLE(MAX - 1, 0, 0, 0, 0, 0, 0, 0, 0)},
		{.whole = true}},

	/* window after window, but not the same: min(cap, available) */
	{"B5: another epoch length", {WINDOW(10)}, {WINDOW(15)}, false,
		{WHOLE(0, 10, 0, 0, 4, 0, 6, 0, 0)},
		{.carried = 4, .opening = 4}},
	{"B5: another length, a smaller quota", {WINDOW(10)}, {WINDOW(3)}, false,
		{WHOLE(0, 10, 0, 0, 4, 0, 6, 0, 0)},
		{.carried = 3, .opening = 3}},
	{"B5: another length, and the deficit ends", {WINDOW(3)}, {WINDOW(15)}, false,
		{WHOLE(3, 0, 0, 0, 0, 0, 0, 0, 0)},
		{.carried = 0}},
	{"B5: another kind or length came between", {WINDOW(10)}, {WINDOW(15)}, true,
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0)},
		{.carried = 4, .opening = 4}},

	/* another kind: min(cap, available), the deficit ends */
	{"B5: continuous to window", {CONTINUOUS(10, 1, 2)}, {WINDOW(15)}, true,
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0)},
		{.carried = 4, .opening = 4}},
	{"B5: none to window, a smaller quota", {NONE(10)}, {WINDOW(3)}, true,
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0)},
		{.carried = 3, .opening = 3}},
	{"B5: window to continuous", {WINDOW(10)}, {CONTINUOUS(15, 1, 2)}, true,
		{WHOLE(0, 10, 0, 0, 4, 0, 6, 0, 0)},
		{.carried = 4, .opening = 4}},
	{"B5: window to none, a smaller cap", {WINDOW(10)}, {NONE(3)}, true,
		{WHOLE(0, 10, 0, 0, 4, 0, 6, 0, 0)},
		{.carried = 3, .opening = 3}},
	{"B5: window in deficit to continuous", {WINDOW(3)}, {CONTINUOUS(15, 1, 2)}, true,
		{WHOLE(3, 0, 0, 0, 0, 0, 0, 0, 0)},
		{.carried = 0}},
	{"B5: window in deficit to none", {WINDOW(3)}, {NONE(15)}, true,
		{WHOLE(3, 0, 0, 0, 0, 0, 0, 0, 0)},
		{.carried = 0}},
};

static void
generations(void)
{
	for (int i = 0; i < LENGTH(generation_rows); i++)
	{
		LLPolicy	old = generation_rows[i].old;
		LLPolicy	new = generation_rows[i].new;
		LLPair		pair = generation_rows[i].before;
		LLBudget	closed;
		LLPair		was;

		old.generation = 7;
		new.generation = 8;
		pair.seen_at = SEEN;
		pair.accrued_at = AT;
		was = pair;
		want("result", ll_epoch_open_generation(&pair, &old, &new, generation_rows[i].same_periods,
												EPOCH, &closed), true);
		want_budget("closed", &closed, &was.head);
		want_opened(&pair, &was, 8, &generation_rows[i].opens);
		row_ends(generation_rows[i].name);
	}
}

/*
 * chains: within one window, any chain of quotas leaves what a window with the
 * last quota would have, less what was used; publishing is never free capacity.
 */
static void
chains(void)
{
	static const LLUnits quotas[] = {1, 4, 10, 17};
	LLPolicy	a = {.generation = 7, WINDOW(10)};
	LLPolicy	b = {.generation = 8, WINDOW(0)};
	LLPolicy	c = {.generation = 9, WINDOW(0)};
	LLBudget	closed;

	for (LLUnits used = 0; used <= 10; used++)
		for (int i = 0; i < LENGTH(quotas); i++)
			for (int j = 0; j < LENGTH(quotas); j++)
			{
				LLPair		pair = {WHOLE(0, 10, 0, 0, 10 - used, 0, used, 0, 0)};

				b.cap = quotas[i];
				c.cap = quotas[j];
				want("result", ll_epoch_open_generation(&pair, &a, &b, true, EPOCH, &closed), true);
				want("after one", pair.head.available - pair.head.deficit, b.cap - used);
				want("result", ll_epoch_open_generation(&pair, &b, &c, true, EPOCH, &closed), true);
				want("after two", pair.head.available - pair.head.deficit, c.cap - used);
				want("one of the two", pair.head.available == 0 || pair.head.deficit == 0, true);
			}
	row_ends("B5: any chain of quotas: the last one less what was used");
}

/* ---- sums beyond bigint (A2) --------------------------------------------- */

static void
overflows(void)
{
	static const struct
	{
		const char *name;
		LLPolicy	policy;
		LLPair		pair;
	}			rows[] = {
		{"A2: debts", {.generation = 7, NONE(10)},
			{HEAD(0, 0, 2, 0, 0, 2, 0, 0), .older_debt = MAX - 1}},
		{"A2: what is reserved", {.generation = 7, NONE(10)},
			{HEAD(2, 0, 0, 0, 2, 0, 0, 0), .older_reserved = MAX - 1}},
		{"A2: repayments of this call", {.generation = 7, WINDOW(10)},
			{WHOLE(0, 0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 10, .older_repaid = MAX - 9}},
	};
	LLPolicy	window = {.generation = 7, WINDOW(10)};
	LLPair		minted = {WHOLE(0, 0, MAX - 1, 1, 0, 0, MAX, 0, 0)};
	LLPolicy	new = {.generation = 8, WINDOW(12)};
	LLBudget	closed;
	LLBudget	untouched;
	Bytes		before;

	memset(&closed, 0x5A, sizeof(closed));
	memcpy(&untouched, &closed, sizeof(closed));
	for (int i = 0; i < LENGTH(rows); i++)
	{
		LLPair		pair;

		memcpy(&pair, &rows[i].pair, sizeof(pair));
		take_bytes(&before, &pair, &closed, NULL);
		want("next", ll_epoch_open_next(&pair, &rows[i].policy, EPOCH, 0, &closed), false);
		want_unchanged(&before, &pair, &closed, NULL);
		if (rows[i].policy.refill == LL_REFILL_NONE)
		{
			want("generation", ll_epoch_open_generation(&pair, &rows[i].policy, &new, false, EPOCH,
													   &closed), false);
			want_unchanged(&before, &pair, &closed, NULL);
		}
		row_ends(rows[i].name);
	}
	take_bytes(&before, &minted, &closed, NULL);
	want("next", ll_epoch_open_next(&minted, &window, EPOCH, 1, &closed), false);
	want_unchanged(&before, &minted, &closed, NULL);
	row_ends("A2: minted by a window that passed unopened");
	want("closed", memcmp(&closed, &untouched, sizeof(closed)), 0);
	row_ends("A2: and no closed budget was handed out");
}

/* ---- fixed periods (A4) -------------------------------------------------- */

static void
periods(void)
{
	static const struct
	{
		LLTime		instant;
		LLTime		length;
		LLTime		origin;
		LLTime		start;
	}			rows[] = {
		{0, 10, 0, 0}, {9, 10, 0, 0}, {10, 10, 0, 10}, {-1, 10, 0, -10}, {-10, 10, 0, -10},
		{-11, 10, 0, -20}, {7, 10, 7, 7}, {6, 10, 7, -3}, {17, 10, 7, 17}, {16, 10, 7, 7},
		{-4, 10, 7, -13}, {5, 1, 0, 5}, {MAX, MAX, 0, MAX}, {MAX - 1, MAX, 0, 0},
		{MAX, 2, 0, MAX - 1}
	};

	for (int i = 0; i < LENGTH(rows); i++)
		ok(ll_period_start(rows[i].instant, rows[i].length, rows[i].origin) == rows[i].start,
		   "A4: periods of %lld from %lld: %lld is in the one from %lld",
		   (long long) rows[i].length,
		   (long long) rows[i].origin, (long long) rows[i].instant, (long long) rows[i].start);
}

int
main(void)
{
	first();
	next();
	generations();
	chains();
	overflows();
	periods();
	return done_testing();
}
