/*
 * More units or a later deadline, before a reservation runs out (D13).
 */
#include "fixture.h"

enum
{
	NOW = 1000,
	SOON = NOW + 10				/* when the reservation of a row runs out */
};

static const LLPolicy continuous = {
	.generation = 7, .refill = LL_REFILL_CONTINUOUS, .cap = 10, .refill_units = 3,
	.refill_interval = 2, .largest_reservation = 8, .largest_outstanding = LL_UNITS_MAX,
	.hard_limit = 20, .maximum_overdraft = 50, .hold_ttl = 30, .execution_ttl = 60
};
static const LLPolicy limited = {
	.generation = 7, .refill = LL_REFILL_CONTINUOUS, .cap = 10, .refill_units = 3,
	.refill_interval = 2, .largest_reservation = 8, .largest_outstanding = 12,
	.hard_limit = 20, .maximum_overdraft = 50, .hold_ttl = 30, .execution_ttl = 60
};
/* Its largest reservation lies above its cap, its largest outstanding below. */
static const LLPolicy narrow = {
	.generation = 7, .refill = LL_REFILL_NONE, .cap = 10, .largest_reservation = 12,
	.largest_outstanding = 3, .hard_limit = 20, .maximum_overdraft = 50, .hold_ttl = 5,
	.execution_ttl = 5
};
static const LLPolicy window = {
	.generation = 7, .refill = LL_REFILL_WINDOW, .cap = 10, .largest_reservation = 12,
	.largest_outstanding = LL_UNITS_MAX, .hard_limit = 20, .maximum_overdraft = 50,
	.hold_ttl = 30, .execution_ttl = 60
};
static const LLPolicy none = {
	.generation = 7, .refill = LL_REFILL_NONE, .cap = 10, .largest_reservation = 12,
	.largest_outstanding = LL_UNITS_MAX, .hard_limit = 20, .maximum_overdraft = 50,
	.hold_ttl = 30, .execution_ttl = 60
};
static const LLPolicy endless = {
	.generation = 7, .refill = LL_REFILL_NONE, .cap = MAX, .largest_reservation = MAX,
	.largest_outstanding = LL_UNITS_MAX, .hard_limit = MAX, .maximum_overdraft = MAX,
	.hold_ttl = LL_TIME_MAX, .execution_ttl = LL_TIME_MAX
};

#define WAITS(why, how) \
	{.outcome = LL_REFUSED, .dimension = LL_DIM_##why, .wait = LL_WAIT_##how}
#define WAITS_UNTIL(why, instant) \
	{.outcome = LL_REFUSED, .dimension = LL_DIM_##why, .wait = LL_WAIT_REFILL, \
		.wait_until = instant}
#define WAITS_WINDOWS(why, n) \
	{.outcome = LL_REFUSED, .dimension = LL_DIM_##why, .wait = LL_WAIT_REFILL, \
		.wait_windows = n}

/* A pair with so many available and reserved, and one that owes and holds 3. */
#define PAIR(a, r)	.head = {.generation = 7, COLUMNS((a) + (r), 0, 0, a, r, 0, 0, 0), .line = 1}, \
	.seen_at = NOW, .accrued_at = NOW
#define OWES(n)	.head = {.generation = 7, COLUMNS(10, 0, n, 0, 3, 7 + (n), 0, 0), .line = 1}, \
	.seen_at = NOW, .accrued_at = NOW
#define HELD(state_, units, until) \
	{.state = LL_##state_, .reserved_units = units, .expires_at = until}

/* More units, a later deadline (0: as it is); the same of a budget that has closed. */
#define MORE(n, until)		{.units = n, .expires_at = until, .head = true}
#define CLOSED(n, until)	{.units = n, .expires_at = until, .head = false}

typedef struct Row
{
	const char *name;
	const LLPolicy *own;		/* NULL: `policy` */
	const LLPolicy *policy;
	LLPair		before;
	LLReservation held;
	LLExtension extension;
	LLVerdict	says;
	/* If it was extended: */
	LLUnits		available;
	LLUnits		reserved;
	LLReservation after;
} Row;

static const Row rows[] = {
	/* more units, taken like a new reserve's */
	{"D13: more units of a hold", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(2, 0), ADMITTED, 2, 8, HELD(RESERVED, 5, SOON)},
	{"D13: more units of an execution", 0, &continuous, {PAIR(4, 6)}, HELD(STARTED, 3, SOON),
		MORE(2, 0), ADMITTED, 2, 8, HELD(STARTED, 5, SOON)},
	{"D13: all that is available", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(4, 0), ADMITTED, 0, 10, HELD(RESERVED, 7, SOON)},
	{"A2: the least", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(1, 0), ADMITTED, 3, 7, HELD(RESERVED, 4, SOON)},
	{"B2: together the largest reservation", 0, &continuous, {PAIR(7, 3)}, HELD(RESERVED, 3, SOON),
		MORE(5, 0), ADMITTED, 2, 8, HELD(RESERVED, 8, SOON)},
	{"B2: together the cap", 0, &none, {PAIR(7, 3)}, HELD(RESERVED, 3, SOON),
		MORE(7, 0), ADMITTED, 0, 10, HELD(RESERVED, 10, SOON)},
	{"C4: up to the largest outstanding", 0, &limited, {PAIR(4, 6), .older_reserved = 3},
		HELD(RESERVED, 3, SOON), MORE(3, 0), ADMITTED, 1, 9, HELD(RESERVED, 6, SOON)},
	{"C4: no limit on what is outstanding", 0, &continuous, {PAIR(4, 6), .older_reserved = 1000},
		HELD(RESERVED, 3, SOON), MORE(3, 0), ADMITTED, 1, 9, HELD(RESERVED, 6, SOON)},
	{"D13: what was reported and what others hold stays", 0, &continuous, {PAIR(4, 6)},
		{.state = LL_STARTED, .reserved_units = 3, .progress_units = 2, .expires_at = SOON},
		MORE(1, 0), ADMITTED, 3, 7,
		{.state = LL_STARTED, .reserved_units = 4, .progress_units = 2, .expires_at = SOON}},
	{"D13: the limits are the head's, not its own policy's", &narrow, &continuous, {PAIR(4, 6)},
		HELD(RESERVED, 3, SOON), MORE(4, 0), ADMITTED, 0, 10, HELD(RESERVED, 7, SOON)},

	/* a later deadline, within the TTL from now */
	{"D13: a later deadline", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(0, SOON + 1), ADMITTED, 4, 6, HELD(RESERVED, 3, SOON + 1)},
	{"D13: a hold, to the end of its TTL", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(0, NOW + 30), ADMITTED, 4, 6, HELD(RESERVED, 3, NOW + 30)},
	{"D13: an execution, to the end of its TTL", 0, &continuous, {PAIR(4, 6)},
		HELD(STARTED, 3, SOON), MORE(0, NOW + 60), ADMITTED, 4, 6, HELD(STARTED, 3, NOW + 60)},
	{"D13: the TTL is its own policy's", &continuous, &narrow, {PAIR(7, 3)},
		HELD(RESERVED, 3, SOON), MORE(0, NOW + 30), ADMITTED, 7, 3, HELD(RESERVED, 3, NOW + 30)},
	{"D13: both", 0, &continuous, {PAIR(4, 6)}, HELD(STARTED, 3, SOON),
		MORE(4, NOW + 60), ADMITTED, 0, 10, HELD(STARTED, 7, NOW + 60)},
	{"D13: neither", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(0, 0), ADMITTED, 4, 6, HELD(RESERVED, 3, SOON)},
	{"A3: no deadline moves earlier", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(0, SOON - 1), ADMITTED, 4, 6, HELD(RESERVED, 3, SOON)},
	{"A3: nor does it with more units", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(1, 1), ADMITTED, 3, 7, HELD(RESERVED, 4, SOON)},
	{"D13: a tick before it runs out", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, NOW + 1),
		MORE(2, NOW + 2), ADMITTED, 2, 8, HELD(RESERVED, 5, NOW + 2)},
	{"D13: nothing is available and nothing asked for", 0, &continuous, {PAIR(0, 6)},
		HELD(RESERVED, 3, SOON), MORE(0, SOON + 1), ADMITTED, 0, 6, HELD(RESERVED, 3, SOON + 1)},
	{"D13: a later deadline in a closed budget", 0, &continuous, {PAIR(4, 0), .older_reserved = 6},
		HELD(STARTED, 3, SOON), CLOSED(0, NOW + 60), ADMITTED, 4, 0, HELD(STARTED, 3, NOW + 60)},
	{"D13: the size limits judge units that are added", 0, &continuous,
		{PAIR(4, 0), .older_reserved = 9}, HELD(STARTED, 9, SOON), CLOSED(0, SOON + 1), ADMITTED,
		4, 0, HELD(STARTED, 9, SOON + 1)},
	{"D13: and so does the cap", 0, &none, {PAIR(4, 0), .older_reserved = 11},
		HELD(STARTED, 11, SOON), CLOSED(0, SOON + 1), ADMITTED,
		4, 0, HELD(STARTED, 11, SOON + 1)},

	/* A2: up to the largest number */
	{"A2: the largest reservation", 0, &endless, {PAIR(MAX - 3, 3)}, HELD(RESERVED, 3, SOON),
		MORE(MAX - 3, LL_TIME_MAX), ADMITTED, 0, MAX, HELD(RESERVED, MAX, LL_TIME_MAX)},
	{"A2: by one", 0, &endless, {PAIR(1, MAX - 1)}, HELD(STARTED, MAX - 1, LL_TIME_MAX - 1),
		MORE(1, LL_TIME_MAX), ADMITTED, 0, MAX, HELD(STARTED, MAX, LL_TIME_MAX)},
	{"A2: by nothing", 0, &endless, {PAIR(0, MAX)}, HELD(STARTED, MAX, SOON),
		MORE(0, LL_TIME_MAX), ADMITTED, 0, MAX, HELD(STARTED, MAX, LL_TIME_MAX)},
	{"A2: as much at once as a bigint", 0, &endless, {PAIR(2, 5), .older_reserved = MAX - 7},
		HELD(RESERVED, 3, SOON), MORE(2, 0), ADMITTED, 0, 7, HELD(RESERVED, 5, SOON)},
	{"A2: more at once than a bigint", 0, &endless, {PAIR(2, 5), .older_reserved = MAX - 6},
		HELD(RESERVED, 3, SOON), MORE(2, SOON + 1), OVERFLOWS},
	{"A2: more in the head than a bigint", 0, &endless, {PAIR(2, MAX - 2), .older_reserved = MAX},
		HELD(RESERVED, 3, SOON), MORE(1, SOON + 1), OVERFLOWS},

	/* it has run out, or ended */
	{"D13: at its deadline, no sweep came", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, NOW),
		MORE(2, SOON), REFUSED(EXPIRED)},
	{"D13: after it", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, NOW - 1),
		MORE(2, SOON), REFUSED(EXPIRED)},
	{"D13: an execution at its deadline", 0, &continuous, {PAIR(4, 6)}, HELD(STARTED, 3, NOW),
		MORE(0, SOON), REFUSED(EXPIRED)},
	{"D13: expiring", 0, &continuous, {PAIR(4, 6)}, HELD(EXPIRING, 3, SOON),
		MORE(2, 0), REFUSED(EXPIRED)},
	{"D13: expired", 0, &continuous, {PAIR(4, 6)}, HELD(EXPIRED, 3, SOON),
		MORE(2, 0), REFUSED(EXPIRED)},
	{"D13: released", 0, &continuous, {PAIR(4, 6)}, HELD(RELEASED, 3, SOON),
		MORE(2, 0), REFUSED(RELEASED)},
	{"D13: settled", 0, &continuous, {PAIR(4, 6)}, HELD(SETTLED, 3, SOON),
		MORE(2, 0), REFUSED(SETTLED)},
	{"D13: settled with debt", 0, &continuous, {PAIR(4, 6)}, HELD(SETTLED_WITH_DEBT, 3, SOON),
		MORE(2, 0), REFUSED(SETTLED)},
	{"D13: its usage is unknown", 0, &continuous, {PAIR(4, 6)}, HELD(USAGE_UNKNOWN, 3, SOON),
		MORE(2, 0), REFUSED(ALREADY_STARTED)},
	{"D13: its usage is unknown, a deadline alone", 0, &continuous, {PAIR(4, 6)},
		HELD(USAGE_UNKNOWN, 3, SOON), MORE(0, SOON + 1), REFUSED(ALREADY_STARTED)},

	/* limits of its own */
	{"D13: a hold, a tick past its TTL", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(0, NOW + 31), WAITS(TTL, NEVER)},
	{"D13: an execution, a tick past its TTL", 0, &continuous, {PAIR(4, 6)},
		HELD(STARTED, 3, SOON), MORE(2, NOW + 61), WAITS(TTL, NEVER)},
	{"D13: past its own TTL, not the head's", &narrow, &continuous, {PAIR(4, 6)},
		HELD(RESERVED, 3, NOW + 1), MORE(0, NOW + 6), WAITS(TTL, NEVER)},
	{"A2: the largest deadline, past a TTL", 0, &continuous, {PAIR(4, 6)},
		HELD(RESERVED, 3, SOON), MORE(0, LL_TIME_MAX), WAITS(TTL, NEVER)},
	{"D13: a unit more in a closed budget", 0, &continuous, {PAIR(4, 0), .older_reserved = 6},
		HELD(STARTED, 3, SOON), CLOSED(1, 0), WAITS(CLOSED_BUDGET, NEVER)},
	{"D13: a unit more and a later deadline in a closed budget", 0, &continuous,
		{PAIR(4, 0), .older_reserved = 6}, HELD(STARTED, 3, SOON), CLOSED(1, SOON + 1),
		WAITS(CLOSED_BUDGET, NEVER)},
	{"B2: together a unit above the largest reservation", 0, &continuous, {PAIR(7, 3)},
		HELD(RESERVED, 3, SOON), MORE(6, 0), WAITS(LARGEST_RESERVATION, NEVER)},
	{"B2: together a unit above the cap", 0, &none, {PAIR(8, 3)}, HELD(RESERVED, 3, SOON),
		MORE(8, 0), WAITS(CAP, NEVER)},
	{"B2: a unit, though its own is above the largest reservation by now", 0, &continuous,
		{PAIR(1, 9)}, HELD(STARTED, 9, SOON), MORE(1, 0), WAITS(LARGEST_RESERVATION, NEVER)},
	{"A2: together more than a bigint", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(MAX, 0), WAITS(LARGEST_RESERVATION, NEVER)},

	/* what a new reserve of the added units would meet */
	{"C4: the units alone above the largest outstanding", 0, &narrow, {PAIR(9, 1)},
		HELD(RESERVED, 1, SOON), MORE(4, 0), WAITS(LARGEST_OUTSTANDING, NEVER)},
	{"C4: together a unit above it: no release helps", 0, &narrow, {PAIR(9, 1)},
		HELD(RESERVED, 1, SOON), MORE(3, 0), WAITS(LARGEST_OUTSTANDING, NEVER)},
	{"A2: together more than a bigint, and nothing limits", 0, &endless, {PAIR(4, 6)},
		HELD(RESERVED, 3, SOON), MORE(MAX, 0), WAITS(LARGEST_RESERVATION, NEVER)},
	{"C4: a unit above the largest outstanding", 0, &limited, {PAIR(4, 6), .older_reserved = 3},
		HELD(RESERVED, 3, SOON), MORE(4, 0), WAITS(LARGEST_OUTSTANDING, RELEASE)},
	{"C4: more is outstanding than a later policy allows, no unit is added", 0, &limited,
		{PAIR(4, 6), .older_reserved = 7}, HELD(RESERVED, 3, SOON), MORE(0, SOON + 1),
		WAITS(LARGEST_OUTSTANDING, RELEASE)},
	{"B6: draining", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		{.units = 2, .head = true, .draining = true}, WAITS(DRAINING, OPERATOR)},
	{"D8: the route frozen", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		{.units = 2, .head = true, .route_frozen = true}, WAITS(FROZEN, OPERATOR)},
	{"G7: quarantined", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		{.units = 2, .head = true, .quarantined = true}, WAITS(RECOVERY, OPERATOR)},
	{"B6: draining, a deadline alone", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		{.expires_at = SOON + 1, .head = true, .draining = true}, WAITS(DRAINING, OPERATOR)},
	{"D8: frozen", 0, &continuous, {PAIR(4, 6), .frozen = true}, HELD(RESERVED, 3, SOON),
		MORE(2, 0), WAITS(FROZEN, OPERATOR)},
	{"D8: frozen, a deadline alone", 0, &continuous, {PAIR(4, 6), .frozen = true},
		HELD(STARTED, 3, SOON), MORE(0, SOON + 1), WAITS(FROZEN, OPERATOR)},
	{"E1: its own debt and the units", 0, &continuous, {OWES(3)}, HELD(RESERVED, 3, SOON),
		MORE(5, 0), WAITS_UNTIL(DEBT, NOW + 6)},
	{"E1: an older debt", 0, &continuous, {OWES(0), .older_debt = 3}, HELD(RESERVED, 3, SOON),
		MORE(5, 0), WAITS_UNTIL(DEBT, NOW + 6)},
	{"E1: a unit of debt, a deadline alone", 0, &continuous, {OWES(1)}, HELD(RESERVED, 3, SOON),
		MORE(0, SOON + 1), WAITS_UNTIL(DEBT, NOW + 1)},
	{"E1: debt, a deadline alone, in a closed budget", 0, &continuous,
		{.head = {.generation = 7, COLUMNS(0, 0, 3, 0, 0, 3, 0, 0)}, .older_reserved = 3,
			.accrued_at = NOW},
		HELD(STARTED, 3, SOON), CLOSED(0, SOON + 1), WAITS_UNTIL(DEBT, NOW + 2)},
	{"E2: one window pays the debt, a deadline alone", 0, &window, {OWES(10)},
		HELD(RESERVED, 3, SOON), MORE(0, SOON + 1), WAITS_WINDOWS(DEBT, 1)},
	{"E2: it takes two", 0, &window, {OWES(11)}, HELD(RESERVED, 3, SOON),
		MORE(0, SOON + 1), WAITS_WINDOWS(DEBT, 2)},
	{"E1: debt without refill", 0, &none, {OWES(1)}, HELD(RESERVED, 3, SOON),
		MORE(0, SOON + 1), WAITS(DEBT, RELEASE)},
	{"D3: a unit short", 0, &continuous, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(5, 0), WAITS_UNTIL(AVAILABLE, NOW + 1)},
	{"D4: the fraction that is there counts", 0, &continuous, {PAIR(3, 6), .remainder = 1},
		HELD(RESERVED, 3, SOON), MORE(5, 0), WAITS_UNTIL(AVAILABLE, NOW + 1)},
	{"D3: a unit short of a window", 0, &window, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(5, 0), WAITS_WINDOWS(AVAILABLE, 1)},
	{"D3: a unit short without refill", 0, &none, {PAIR(4, 6)}, HELD(RESERVED, 3, SOON),
		MORE(5, 0), WAITS(AVAILABLE, RELEASE)},
	{"A2: the largest debt", 0, &window,
		{.head = {.generation = 7, COLUMNS(0, 0, MAX, 0, 0, MAX, 0, 0)}, .older_debt = 5,
			.older_reserved = 3},
		HELD(RESERVED, 3, SOON), CLOSED(0, SOON + 1), WAITS_WINDOWS(DEBT, MAX / 10 + 1)},
};

static void
every_row(void)
{
	for (int i = 0; i < LENGTH(rows); i++)
	{
		const Row  *row = &rows[i];
		const LLPolicy *own = row->own != NULL ? row->own : row->policy;
		LLPair		pair = row->before;
		LLPair		after = row->before;
		LLReservation reservation = row->held;
		LLVerdict	says;
		Bytes		before;

		want("C1 of the row itself", conserved(&row->before.head), true);
		take_bytes(&before, &pair, NULL, &reservation);
		says = ll_extend(&pair, &reservation, own, row->policy, &row->extension, NOW);
		want_verdict(&says, &row->says);
		if (took_effect(&row->says))
		{
			after.head.available = row->available;
			after.head.reserved = row->reserved;
			want_pair(&pair, &after);
			want_reservation(&reservation, &row->after);
		}
		else
			want_unchanged(&before, &pair, NULL, &reservation);
		row_ends(row->name);
	}
}

/* No such reservation: whoever looks it up answers, the core takes nothing. */
static void
absent(void)
{
	LLPair		pair = {PAIR(4, 6)};
	LLReservation reservation = HELD(ABSENT, 0, SOON);
	LLExtension extension = MORE(2, 0);
	Bytes		before;
	LLVerdict	says;

	take_bytes(&before, &pair, NULL, &reservation);
	says = ll_extend(&pair, &reservation, &continuous, &continuous, &extension, NOW);
	want("accepted", says.outcome == LL_ACCEPTED, false);
	want_unchanged(&before, &pair, NULL, &reservation);
	row_ends("D13: an unknown id takes nothing");
}

/*
 * An extension that breaks everything, mended step by step: each step meets the
 * next dimension.  What no waiting can change comes first.
 */
static const struct
{
	const char *mended;
	LLDimension meets;
	LLWait		wait;
}			steps[] = {
	{"nothing", LL_DIM_RELEASED, LL_WAIT_NONE},
	{"its state", LL_DIM_EXPIRED, LL_WAIT_NONE},
	{"its deadline", LL_DIM_TTL, LL_WAIT_NEVER},
	{"the later deadline", LL_DIM_CLOSED_BUDGET, LL_WAIT_NEVER},
	{"its budget", LL_DIM_LARGEST_RESERVATION, LL_WAIT_NEVER},
	{"the largest reservation", LL_DIM_CAP, LL_WAIT_NEVER},
	{"the cap", LL_DIM_LARGEST_OUTSTANDING, LL_WAIT_NEVER},
	{"the largest outstanding", LL_DIM_DRAINING, LL_WAIT_OPERATOR},
	{"draining", LL_DIM_FROZEN, LL_WAIT_OPERATOR},
	{"the freeze", LL_DIM_LARGEST_OUTSTANDING, LL_WAIT_RELEASE},
	{"what is outstanding", LL_DIM_DEBT, LL_WAIT_REFILL},
	{"the debt", LL_DIM_AVAILABLE, LL_WAIT_REFILL},
	{"what is available", LL_DIM_NONE, LL_WAIT_NONE},
};

static void
in_order(void)
{
	static const LLPolicy policy = {
		.generation = 7, .refill = LL_REFILL_CONTINUOUS, .cap = 10, .refill_units = 3,
		.refill_interval = 2, .largest_reservation = 15, .largest_outstanding = 8, .hold_ttl = 30
	};

	for (int i = 0; i < LENGTH(steps); i++)
	{
		LLPair		pair = {
			.head = {.generation = 7, COLUMNS(10, 0, 2, 0, 5, 7, 0, 0)}, .older_debt = 1,
			.older_reserved = i < 10 ? 1 : 0, .frozen = i < 9, .accrued_at = NOW
		};
		LLReservation reservation = {
			.state = i < 1 ? LL_RELEASED : LL_RESERVED, .reserved_units = 1,
			.expires_at = i < 2 ? NOW : SOON
		};
		LLExtension extension = {
			.units = i < 5 ? 15 : i < 6 ? 14 : i < 7 ? 9 : 3,
			.expires_at = i < 3 ? NOW + 31 : NOW + 30, .head = i >= 4, .draining = i < 8
		};
		LLVerdict	says;

		if (i >= 11)			/* repaid, and nothing available */
		{
			pair.older_debt = 0;
			pair.head = (LLBudget) {.generation = 7, COLUMNS(10, 2, 2, 0, 5, 7, 0, 2)};
		}
		if (i >= 12)
			pair.head = (LLBudget) {.generation = 7, COLUMNS(10, 5, 2, 3, 5, 7, 0, 2)};
		says = ll_extend(&pair, &reservation, &policy, &policy, &extension, NOW);
		ok(says.dimension == steps[i].meets && says.wait == steps[i].wait &&
		   (says.outcome == LL_ACCEPTED) == (steps[i].meets == LL_DIM_NONE),
		   "D13: %s mended, it meets %s", steps[i].mended,
		   i == LENGTH(steps) - 1 ? "nothing" : ll_dimension_info(steps[i].meets)->name);
	}
}

int
main(void)
{
	every_row();
	absent();
	in_order();
	return done_testing();
}
