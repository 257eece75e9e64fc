/*
 * Bringing a pair to the present: due epochs, generations that took over,
 * refill, in the order of time (A3, A4, B5, C4, E2).
 */
#include "fixture.h"

#include "ledger/roll.h"

/* Instants are counted from the origin of fixed periods. */
#define T(n)	(LL_PERIOD_ORIGIN + (n))

/* ---- a calendar with months of 10, 9 and 11 ticks, and another one ------- */

static const LLTime months[] = {10, 9, 11};

/* month_start walks from the origin to the start of a month, by its number. */
static LLTime
month_start(int64_t number)
{
	LLTime		start = LL_PERIOD_ORIGIN;

	for (int64_t i = 0; i < number; i++)
		start += months[i % 3];
	for (int64_t i = -1; i >= number; i--)
		start -= months[((i % 3) + 3) % 3];
	return start;
}

static int64_t
month_of(LLTime instant)
{
	int64_t		number = -6;

	while (month_start(number + 1) <= instant)
		number++;
	return number;
}

static LLTime
calendar_start_of(const LLPeriods *periods, LLTime instant)
{
	(void) periods;
	return month_start(month_of(instant));
}

static LLTime
calendar_nth_after(const LLPeriods *periods, LLTime epoch, int64_t n)
{
	(void) periods;
	return month_start(month_of(epoch) + n);
}

static int64_t
calendar_between(const LLPeriods *periods, LLTime from, LLTime to)
{
	(void) periods;
	return month_of(to) - month_of(from);
}

#define CALENDAR(name)	{.calendar = name, .start_of = calendar_start_of, \
	.nth_after = calendar_nth_after, .between = calendar_between}

static const LLPeriods tens = {.length = 10};
static const LLPeriods tens_again = {.length = 10};
static const LLPeriods fives = {.length = 5};
static const LLPeriods berlin = CALENDAR("month Europe/Berlin");
static const LLPeriods berlin_again = CALENDAR("month Europe/Berlin");
static const LLPeriods paris = CALENDAR("month Europe/Paris");
static const LLPeriods longer = CALENDAR("month Europe/Berlin-West");

static void
periods(void)
{
	static const struct
	{
		const LLPeriods *periods;
		LLTime		instant;
		LLTime		start;
	}			starts[] = {
		{&tens, T(0), T(0)}, {&tens, T(9), T(0)}, {&tens, T(10), T(10)}, {&tens, T(-1), T(-10)},
		{&tens, T(-10), T(-10)}, {&tens, 0, -LL_PERIOD_ORIGIN % 10}, {&fives, T(9), T(5)},
		{&berlin, T(9), T(0)}, {&berlin, T(10), T(10)}, {&berlin, T(18), T(10)},
		{&berlin, T(19), T(19)}, {&berlin, T(29), T(19)}, {&berlin, T(30), T(30)},
		{&berlin, T(-1), T(-11)}
	};
	static const struct
	{
		const LLPeriods *periods;
		LLTime		epoch;
		int64_t		n;
		LLTime		start;
	}			afters[] = {
		{&tens, T(0), 0, T(0)}, {&tens, T(0), 1, T(10)}, {&tens, T(20), 3, T(50)},
		{&tens, T(-10), 1, T(0)},
		{&tens, 0, MAX / 10, MAX / 10 * 10}, {&tens, 0, MAX / 10 + 1, LL_TIME_MAX},
		{&tens, 7, MAX / 10, MAX / 10 * 10 + 7}, {&tens, 8, MAX / 10, LL_TIME_MAX},
		{&tens, -10, MAX / 10, MAX / 10 * 10 - 10}, {&tens, T(0), MAX, LL_TIME_MAX},
		{&berlin, T(0), 1, T(10)}, {&berlin, T(0), 2, T(19)}, {&berlin, T(10), 2, T(30)}
	};

	for (int i = 0; i < LENGTH(starts); i++)
		ok(ll_period_of(starts[i].periods, starts[i].instant) == starts[i].start,
		   "A4: the epoch of an instant, %d", i);
	for (int i = 0; i < LENGTH(afters); i++)
		ok(ll_period_after(afters[i].periods, afters[i].epoch, afters[i].n) == afters[i].start,
		   "A4: the n-th epoch after one, %d", i);
}

/* ---- rolls --------------------------------------------------------------- */

enum
{
	REIGNS = 4,
	CLOSED = 4
};

typedef struct Reign
{
	const LLPolicy *policy;
	const LLPeriods *periods;
	LLTime		since;
} Reign;

typedef struct Row
{
	const char *name;
	LLPair		before;
	Reign		reigns[REIGNS];
	LLTime		clock;
	LLPair		after;
	/* What closed: generation, epoch, available at the close, when. */
	struct
	{
		int64_t		generation;
		LLTime		epoch;
		LLUnits		available;
		LLTime		at;
	}			closed[CLOSED];
} Row;

/* One unit a tick, and one in four; quotas of 10, 6 and 15; no refill. */
static const LLPolicy c1 = {
	.generation = 1, .refill = LL_REFILL_CONTINUOUS, .cap = 10, .refill_units = 1,
	.refill_interval = 1
};
static const LLPolicy c2 = {
	.generation = 2, .refill = LL_REFILL_CONTINUOUS, .cap = 10, .refill_units = 1,
	.refill_interval = 4
};
static const LLPolicy w1 = {.generation = 1, .refill = LL_REFILL_WINDOW, .cap = 10};
static const LLPolicy w2 = {.generation = 2, .refill = LL_REFILL_WINDOW, .cap = 6};
static const LLPolicy w3 = {.generation = 3, .refill = LL_REFILL_WINDOW, .cap = 15};
static const LLPolicy n1 = {.generation = 1, .refill = LL_REFILL_NONE, .cap = 10};
static const LLPolicy n3 = {.generation = 3, .refill = LL_REFILL_NONE, .cap = 20};

#define HEAD(g, e, ...)	.generation = g, .epoch = T(e), .line = 1, COLUMNS(__VA_ARGS__)
#define SECOND(g, e, ...)	.generation = g, .epoch = T(e), .line = 2, COLUMNS(__VA_ARGS__)
#define SEEN(seen, at)	.seen_at = T(seen), .accrued_at = T(at)

static const Row rows[] = {
	/* within an epoch */
	{"C4: refill up to the clock",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(2, 2)},
		{{&c1, &tens, 0}}, T(5),
		{.head = {HEAD(1, 0, 10, 3, 0, 5, 8, 0, 0, 0)}, SEEN(5, 5)},
		{{0}}},
	{"A3: the clock stepped back: nothing, and the latest instant is kept",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(5, 5)},
		{{&c1, &tens, 0}}, T(-20),
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(5, 5)},
		{{0}}},
	{"A3: seen without refill: refill follows what was seen",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(7, 4)},
		{{&c1, &tens, 0}}, T(5),
		{.head = {HEAD(1, 0, 10, 3, 0, 5, 8, 0, 0, 0)}, SEEN(7, 7)},
		{{0}}},
	{"B5: the last tick of an epoch opens nothing",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(8, 8)},
		{{&n1, &tens, 0}}, T(9),
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(9, 9)},
		{{0}}},

	/* epochs */
	{"B5: the first tick of the next opens it",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(9, 9)},
		{{&n1, &tens, 0}}, T(10),
		{.head = {HEAD(1, 10, 2, 0, 0, 2, 0, 0, 0, 0), .carried = 2}, .older_reserved = 8,
			SEEN(10, 10)},
		{{1, T(0), 2, T(10)}}},
	{"B5: refill first, in the budget that ends",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(8, 8)},
		{{&c1, &tens, 0}}, T(12),
		{.head = {HEAD(1, 10, 6, 0, 0, 6, 0, 0, 0, 0), .carried = 6}, .older_reserved = 8,
			SEEN(12, 12)},
		{{1, T(0), 6, T(12)}}},
	{"B5: epochs in between have no budget of their own",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(8, 8)},
		{{&n1, &tens, 0}}, T(77),
		{.head = {HEAD(1, 70, 2, 0, 0, 2, 0, 0, 0, 0), .carried = 2}, .older_reserved = 8,
			SEEN(77, 77)},
		{{1, T(0), 2, T(77)}}},
	{"B5: a window opens with its quota, in a new line",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0), .whole = true}, SEEN(9, 9)},
		{{&w1, &tens, 0}}, T(10),
		{.head = {SECOND(1, 10, 10, 0, 0, 10, 0, 0, 0, 0), .carried = 10, .whole = true},
			.older_reserved = 8, SEEN(10, 10)},
		{{1, T(0), 2, T(10)}}},
	{"E2: no window passed unopened",
		{.head = {HEAD(1, 0, 10, 0, 25, 0, 0, 35, 0, 0), .whole = true}, SEEN(9, 9)},
		{{&w1, &tens, 0}}, T(19),
		{.head = {.generation = 1, .epoch = T(10), .line = 2, .carried = 10, .whole = true},
			.older_debt = 15, .older_repaid = 10, SEEN(19, 19)},
		{{1, T(0), 0, T(19)}}},
	{"E2: two windows passed unopened, and pay",
		{.head = {HEAD(1, 0, 10, 0, 25, 0, 0, 35, 0, 0), .whole = true}, SEEN(9, 9)},
		{{&w1, &tens, 0}}, T(30),
		{.head = {SECOND(1, 30, 5, 0, 0, 5, 0, 0, 0, 0), .carried = 10, .whole = true},
			.older_repaid = 5, SEEN(30, 30)},
		{{1, T(0), 0, T(30)}}},
	{"A4: months of a calendar: two passed unopened",
		{.head = {HEAD(1, 0, 10, 0, 25, 0, 0, 35, 0, 0), .whole = true}, SEEN(9, 9)},
		{{&w1, &berlin, 0}}, T(30),
		{.head = {SECOND(1, 30, 5, 0, 0, 5, 0, 0, 0, 0), .carried = 10, .whole = true},
			.older_repaid = 5, SEEN(30, 30)},
		{{1, T(0), 0, T(30)}}},
	{"A4: one",
		{.head = {HEAD(1, 0, 10, 0, 25, 0, 0, 35, 0, 0), .whole = true}, SEEN(9, 9)},
		{{&w1, &berlin, 0}}, T(29),
		{.head = {.generation = 1, .epoch = T(19), .line = 2, .carried = 10, .whole = true},
			.older_debt = 5, .older_repaid = 10, SEEN(29, 29)},
		{{1, T(0), 0, T(29)}}},

	/* generations */
	{"B5: the old rule up to the switch, the new one after it",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(1, 1)},
		{{&c1, &tens, 0}, {&c2, &tens, T(4)}}, T(8),
		{.head = {HEAD(2, 0, 5, 1, 0, 6, 0, 0, 0, 0), .carried = 5}, .older_reserved = 8,
			SEEN(8, 8)},
		{{1, T(0), 5, T(4)}}},
	{"B5: an epoch that began before the switch opens first",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0), .whole = true}, SEEN(9, 9)},
		{{&w1, &tens, 0}, {&w2, &tens, T(12)}}, T(13),
		{.head = {SECOND(2, 10, 6, 0, 0, 6, 0, 0, 0, 0), .carried = 6, .whole = true},
			.older_reserved = 8, SEEN(13, 13)},
		{{1, T(0), 2, T(12)}, {1, T(10), 10, T(12)}}},
	{"B5: and one that begins after it, under the new rule",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0), .whole = true}, SEEN(3, 3)},
		{{&w1, &tens, 0}, {&w2, &tens, T(5)}}, T(13),
		{.head = {SECOND(2, 10, 6, 0, 0, 6, 0, 0, 0, 0), .carried = 6, .whole = true},
			.older_reserved = 8, SEEN(13, 13)},
		{{1, T(0), 2, T(5)}, {2, T(0), 0, T(13)}}},
	{"B5: several at once, in their order",
		{.head = {HEAD(1, 0, 10, 0, 0, 7, 3, 0, 0, 0), .whole = true}, SEEN(3, 3)},
		{{&w1, &tens, 0}, {&w2, &tens, T(5)}, {&w3, &tens_again, T(6)}}, T(7),
		{.head = {HEAD(3, 0, 12, 0, 0, 12, 0, 0, 0, 0), .carried = 12, .whole = true},
			.older_reserved = 3, SEEN(7, 7)},
		{{1, T(0), 7, T(5)}, {2, T(0), 3, T(6)}}},
	{"B5: through a deficit and out of it",
		{.head = {HEAD(1, 0, 10, 0, 0, 1, 9, 0, 0, 0), .whole = true}, SEEN(3, 3)},
		{{&w1, &tens, 0}, {&w2, &tens, T(5)}, {&w3, &tens_again, T(6)}}, T(7),
		{.head = {HEAD(3, 0, 6, 0, 0, 6, 0, 0, 0, 0), .carried = 6, .whole = true},
			.older_reserved = 9, SEEN(7, 7)},
		{{1, T(0), 1, T(5)}, {2, T(0), 0, T(6)}}},
	{"A3: a switch that lies ahead of the clock happens now",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(4, 4)},
		{{&c1, &tens, 0}, {&n3, &tens, T(60)}}, T(6),
		{.head = {HEAD(3, 0, 4, 0, 0, 4, 0, 0, 0, 0), .carried = 4}, .older_reserved = 8,
			SEEN(6, 6)},
		{{1, T(0), 4, T(6)}}},
	{"A3: one that lies behind, at the latest instant",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(4, 4)},
		{{&c1, &tens, 0}, {&n3, &tens, T(1)}}, T(2),
		{.head = {HEAD(3, 0, 2, 0, 0, 2, 0, 0, 0, 0), .carried = 2}, .older_reserved = 8,
			SEEN(4, 4)},
		{{1, T(0), 2, T(4)}}},
	{"B5: the new generation's own epoch",
		{.head = {HEAD(1, 0, 10, 0, 0, 2, 8, 0, 0, 0)}, SEEN(4, 4)},
		{{&n1, &tens, 0}, {&n3, &fives, T(7)}}, T(8),
		{.head = {HEAD(3, 5, 2, 0, 0, 2, 0, 0, 0, 0), .carried = 2}, .older_reserved = 8,
			SEEN(8, 8)},
		{{1, T(0), 2, T(7)}}},
	{"B5: another length is no change of quota",
		{.head = {HEAD(1, 0, 10, 0, 0, 7, 3, 0, 0, 0), .whole = true}, SEEN(1, 1)},
		{{&w1, &tens, 0}, {&w3, &fives, T(3)}}, T(4),
		{.head = {HEAD(3, 0, 7, 0, 0, 7, 0, 0, 0, 0), .carried = 7}, .older_reserved = 3,
			SEEN(4, 4)},
		{{1, T(0), 7, T(3)}}},
	{"B5: a calendar after a length is none either",
		{.head = {HEAD(1, 0, 10, 0, 0, 7, 3, 0, 0, 0), .whole = true}, SEEN(1, 1)},
		{{&w1, &tens, 0}, {&w3, &berlin, T(3)}}, T(4),
		{.head = {HEAD(3, 0, 7, 0, 0, 7, 0, 0, 0, 0), .carried = 7}, .older_reserved = 3,
			SEEN(4, 4)},
		{{1, T(0), 7, T(3)}}},
	{"B5: the same calendar is",
		{.head = {HEAD(1, 0, 10, 0, 0, 7, 3, 0, 0, 0), .whole = true}, SEEN(1, 1)},
		{{&w1, &berlin, 0}, {&w3, &berlin_again, T(3)}}, T(4),
		{.head = {HEAD(3, 0, 12, 0, 0, 12, 0, 0, 0, 0), .carried = 12, .whole = true},
			.older_reserved = 3, SEEN(4, 4)},
		{{1, T(0), 7, T(3)}}},
	{"B5: another time zone is not",
		{.head = {HEAD(1, 0, 10, 0, 0, 7, 3, 0, 0, 0), .whole = true}, SEEN(1, 1)},
		{{&w1, &berlin, 0}, {&w3, &paris, T(3)}}, T(4),
		{.head = {HEAD(3, 0, 7, 0, 0, 7, 0, 0, 0, 0), .carried = 7}, .older_reserved = 3,
			SEEN(4, 4)},
		{{1, T(0), 7, T(3)}}},
	{"B5: nor one whose name begins alike",
		{.head = {HEAD(1, 0, 10, 0, 0, 7, 3, 0, 0, 0), .whole = true}, SEEN(1, 1)},
		{{&w1, &berlin, 0}, {&w3, &longer, T(3)}}, T(4),
		{.head = {HEAD(3, 0, 7, 0, 0, 7, 0, 0, 0, 0), .carried = 7}, .older_reserved = 3,
			SEEN(4, 4)},
		{{1, T(0), 7, T(3)}}},
	{"E4: debt goes with the pair through all of it",
		{.head = {HEAD(1, 0, 10, 0, 30, 0, 0, 40, 0, 0), .whole = true}, SEEN(3, 3),
			.frozen = true},
		{{&w1, &tens, 0}, {&n3, &tens, T(15)}}, T(40),
		{.head = {.generation = 3, .epoch = T(40), .line = 2}, .older_debt = 20,
			.older_repaid = 10, SEEN(40, 40), .frozen = true},
		{{1, T(0), 0, T(15)}, {1, T(10), 0, T(15)}, {3, T(10), 0, T(40)}}},
};

typedef struct Closings
{
	const Row  *row;
	int			count;
} Closings;

static void
note_closed(void *arg, const LLBudget *closed, LLTime closed_at)
{
	Closings   *c = arg;

	if (c->row != NULL && c->count < CLOSED)
	{
		want("closed.generation", closed->generation, c->row->closed[c->count].generation);
		want("closed.epoch", closed->epoch, c->row->closed[c->count].epoch);
		want("closed.available", closed->available, c->row->closed[c->count].available);
		want("closed at", closed_at, c->row->closed[c->count].at);
	}
	c->count++;
}

static int
reigns_of(const Row *row, LLReign *reigns)
{
	int			count = 0;

	for (; count < REIGNS && row->reigns[count].policy != NULL; count++)
		reigns[count] = (LLReign) {
			.policy = row->reigns[count].policy,.periods = row->reigns[count].periods,
			.since = row->reigns[count].since
		};
	return count;
}

static void
rolls(void)
{
	for (int i = 0; i < LENGTH(rows); i++)
	{
		LLReign		reigns[REIGNS];
		int			count = reigns_of(&rows[i], reigns);
		Closings	closings = {.row = &rows[i]};
		LLPair		pair = rows[i].before;
		int			expected = 0;

		while (expected < CLOSED && rows[i].closed[expected].generation != 0)
			expected++;
		want("result", ll_roll(&pair, reigns, count, rows[i].clock, note_closed, &closings), true);
		want("budgets closed", closings.count, expected);
		want_pair(&pair, &rows[i].after);
		row_ends(rows[i].name);

		/* The same instant again: nothing more. */
		closings.count = 0;
		want("again", ll_roll(&pair, &reigns[count - 1], 1, rows[i].clock, note_closed, &closings),
			 true);
		want("budgets closed again", closings.count, 0);
		want_pair(&pair, &rows[i].after);
		row_ends("  and the same instant again changes nothing");
	}
}

/* overflow: the caller learns of it, wherever in the roll it was. */
static void
overflows(void)
{
	static const struct
	{
		const char *name;
		LLPair		pair;
		Reign		reigns[REIGNS];
	}			bad[] = {
		{"A2: in the refill",
			{.head = {HEAD(1, 0, 0, 0, 0, 0, 0, 0, 0, 0)}, .older_debt = 5, .older_repaid = MAX - 4},
			{{&c1, &tens, 0}}},
		{"A2: in an epoch",
			{.head = {HEAD(1, 0, 2, 0, 0, 0, 2, 0, 0, 0)}, .older_reserved = MAX - 1},
			{{&n1, &tens, 0}}},
		{"A2: in the old rule of a switch",
			{.head = {HEAD(1, 0, 0, 0, 0, 0, 0, 0, 0, 0)}, .older_debt = 3, .older_repaid = MAX - 1},
			{{&c1, &tens, 0}, {&n3, &tens, T(4)}}},
		{"A2: in the switch",
			{.head = {HEAD(1, 0, 2, 0, 0, 0, 2, 0, 0, 0)}, .older_reserved = MAX - 1},
			{{&n1, &tens, 0}, {&n3, &tens, T(4)}}},
	};

	for (int i = 0; i < LENGTH(bad); i++)
	{
		Row			row = {.before = bad[i].pair};
		LLReign		reigns[REIGNS];
		Closings	closings = {.row = NULL};
		LLPair		pair = bad[i].pair;
		int			count;

		memcpy(row.reigns, bad[i].reigns, sizeof(row.reigns));
		count = reigns_of(&row, reigns);
		pair.seen_at = pair.accrued_at = T(1);
		want("result", ll_roll(&pair, reigns, count, T(15), note_closed, &closings), false);
		row_ends(bad[i].name);
	}
}

int
main(void)
{
	periods();
	rolls();
	overflows();
	return done_testing();
}
