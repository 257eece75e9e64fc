/*
 * One new request on a pair that was brought to the present (D2, D3, D4, D9, E1).
 */
#include "fixture.h"

enum
{
	NOW = 1000
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
static const LLPolicy window = {
	.generation = 7, .refill = LL_REFILL_WINDOW, .cap = 10, .largest_reservation = 10,
	.largest_outstanding = LL_UNITS_MAX, .hard_limit = 20, .maximum_overdraft = 50,
	.hold_ttl = 30, .execution_ttl = 60
};
static const LLPolicy none = {
	.generation = 7, .refill = LL_REFILL_NONE, .cap = 10, .largest_reservation = 10,
	.largest_outstanding = LL_UNITS_MAX, .hard_limit = 20, .maximum_overdraft = 50,
	.hold_ttl = 30, .execution_ttl = 60
};
static const LLPolicy endless = {
	.generation = 7, .refill = LL_REFILL_NONE, .cap = MAX, .largest_reservation = MAX,
	.largest_outstanding = LL_UNITS_MAX, .hard_limit = MAX, .maximum_overdraft = MAX,
	.hold_ttl = LL_TIME_MAX, .execution_ttl = LL_TIME_MAX
};
static const LLPolicy endless_refill = {
	.generation = 7, .refill = LL_REFILL_CONTINUOUS, .cap = MAX, .refill_units = 1,
	.refill_interval = 2, .largest_reservation = MAX, .largest_outstanding = LL_UNITS_MAX,
	.hard_limit = MAX, .maximum_overdraft = MAX, .hold_ttl = 1, .execution_ttl = 1
};

/* Where nothing else is said: the right region and estimator, no deadline. */
#define ASK(n)			ASK_AS(n, LL_TIME_MAX, true, true)
#define ASK_BY(n, when)	ASK_AS(n, when, true, true)
#define ASK_AS(n, when, region, estimator) \
	.units = n, .deadline = when, .region_matches = region, .estimator_accepted = estimator
#define WAITS(why, how) \
	{.outcome = LL_REFUSED, .dimension = LL_DIM_##why, .wait = LL_WAIT_##how}
#define WAITS_UNTIL(why, instant) \
	{.outcome = LL_REFUSED, .dimension = LL_DIM_##why, .wait = LL_WAIT_REFILL, \
		.wait_until = instant}
#define WAITS_WINDOWS(why, n) \
	{.outcome = LL_REFUSED, .dimension = LL_DIM_##why, .wait = LL_WAIT_REFILL, \
		.wait_windows = n}

#define HELD(state_, units, until) \
	{.state = LL_##state_, .reserved_units = units, .expires_at = until}

/* A pair with 4 available and 6 reserved, and one that owes. */
#define FOUR	.head = {.generation = 7, COLUMNS(10, 0, 0, 4, 6, 0, 0, 0), .line = 1}, \
	.seen_at = NOW, .accrued_at = NOW
#define OWES(n)	.head = {.generation = 7, COLUMNS(10, 0, n, 0, 0, 10 + (n), 0, 0), .line = 1}, \
	.seen_at = NOW, .accrued_at = NOW

typedef struct Row
{
	const char *name;
	const LLPolicy *policy;
	LLPair		before;
	LLRequest	request;
	LLVerdict	says;
	/* If it was admitted: */
	LLUnits		available;
	LLUnits		reserved;
	LLReservation reservation;
} Row;

static const Row rows[] = {
	/* D2: what is admitted */
	{"D2: a part of what is available", &continuous, {FOUR}, {ASK(3)}, ADMITTED,
		1, 9, HELD(RESERVED, 3, NOW + 30)},
	{"D2: all of it", &continuous, {FOUR}, {ASK(4)}, ADMITTED,
		0, 10, HELD(RESERVED, 4, NOW + 30)},
	{"A2: the least", &continuous, {FOUR}, {ASK(1)}, ADMITTED,
		3, 7, HELD(RESERVED, 1, NOW + 30)},
	{"D5: started at once, under the execution TTL", &continuous, {FOUR}, {ASK(3), .start = true},
		ADMITTED, 1, 9, HELD(STARTED, 3, NOW + 60)},
	{"D9: a tick before the deadline", &continuous, {FOUR},
		{ASK_BY(3, NOW + 1)}, ADMITTED, 1, 9, HELD(RESERVED, 3, NOW + 30)},
	{"B2: the largest reservation", &continuous,
		{.head = {.generation = 7, COLUMNS(10, 0, 0, 10, 0, 0, 0, 0)}}, {ASK(8)}, ADMITTED,
		2, 8, HELD(RESERVED, 8, NOW + 30)},
	{"C4: up to the largest outstanding", &limited, {FOUR, .older_reserved = 3}, {ASK(3)}, ADMITTED,
		1, 9, HELD(RESERVED, 3, NOW + 30)},
	{"C4: no limit on what is outstanding", &continuous, {FOUR, .older_reserved = 1000}, {ASK(3)},
		ADMITTED, 1, 9, HELD(RESERVED, 3, NOW + 30)},
	{"E1: a debt that was repaid", &continuous,
		{.head = {.generation = 7, COLUMNS(10, 5, 3, 2, 0, 13, 0, 3)}}, {ASK(2)}, ADMITTED,
		0, 2, HELD(RESERVED, 2, NOW + 30)},
	{"A2: the largest number, TTLs capped", &endless,
		{.head = {.generation = 7, COLUMNS(MAX, 0, 0, MAX, 0, 0, 0, 0)}}, {ASK(MAX)}, ADMITTED,
		0, MAX, HELD(RESERVED, MAX, LL_TIME_MAX)},

	/* D3: what is refused, each dimension */
	{"B2: wrong region", &continuous, {FOUR}, {ASK_AS(3, LL_TIME_MAX, false, true)},
		WAITS(REGION, NEVER)},
	{"B2: stale estimator", &continuous, {FOUR}, {ASK_AS(3, LL_TIME_MAX, true, false)},
		WAITS(ESTIMATOR, NEVER)},
	{"D9: at the deadline", &continuous, {FOUR}, {ASK_BY(3, NOW)}, WAITS(DEADLINE, NEVER)},
	{"D9: after it", &continuous, {FOUR}, {ASK_BY(3, NOW - 1)}, WAITS(DEADLINE, NEVER)},
	{"B2: one above the largest reservation", &continuous,
		{.head = {.generation = 7, COLUMNS(10, 0, 0, 10, 0, 0, 0, 0)}}, {ASK(9)},
		WAITS(LARGEST_RESERVATION, NEVER)},
	{"B6: draining", &continuous, {FOUR}, {ASK(3), .draining = true}, WAITS(DRAINING, OPERATOR)},
	{"D8: frozen", &continuous, {FOUR, .frozen = true}, {ASK(3)}, WAITS(FROZEN, OPERATOR)},
	{"D8: the route frozen", &continuous, {FOUR}, {ASK(3), .route_frozen = true}, WAITS(FROZEN, OPERATOR)},
	{"G7: quarantined", &continuous, {FOUR}, {ASK(3), .quarantined = true}, WAITS(RECOVERY, OPERATOR)},
	{"G7: frozen and quarantined", &continuous, {FOUR, .frozen = true}, {ASK(3), .quarantined = true},
		WAITS(FROZEN, OPERATOR)},
	{"C4: one above the largest outstanding", &limited, {FOUR, .older_reserved = 3}, {ASK(4)},
		WAITS(LARGEST_OUTSTANDING, RELEASE)},
	{"A2: more at once than a bigint", &endless,
		{.head = {.generation = 7, COLUMNS(MAX, 0, 0, 2, MAX - 2, 0, 0, 0)}, .older_reserved = 1},
		{ASK(2)}, OVERFLOWS},
	{"A2: more in the head than a bigint", &endless,
		{.head = {.generation = 7, COLUMNS(MAX, 0, 0, 2, MAX - 2, 0, 0, 0)}, .older_reserved = MAX},
		{ASK(1)}, OVERFLOWS},
	{"A2: as much at once as a bigint", &endless,
		{.head = {.generation = 7, COLUMNS(MAX, 0, 0, 2, MAX - 2, 0, 0, 0)}}, {ASK(2)}, ADMITTED,
		0, MAX, HELD(RESERVED, 2, LL_TIME_MAX)},

	/* D4: continuous, 3 units every 2 ticks: rounded up to the tick */
	{"D4: 1 short: 2/3 of a tick", &continuous, {FOUR}, {ASK(5)}, WAITS_UNTIL(AVAILABLE, NOW + 1)},
	{"D4: 2 short: 4/3", &continuous, {FOUR}, {ASK(6)}, WAITS_UNTIL(AVAILABLE, NOW + 2)},
	{"D4: 3 short: exactly 2", &continuous, {FOUR}, {ASK(7)}, WAITS_UNTIL(AVAILABLE, NOW + 2)},
	{"D4: 4 short: 8/3", &continuous, {FOUR}, {ASK(8)}, WAITS_UNTIL(AVAILABLE, NOW + 3)},
	{"D4: the fraction that is there counts", &continuous, {FOUR, .remainder = 1}, {ASK(6)},
		WAITS_UNTIL(AVAILABLE, NOW + 1)},
	{"D4: from where refill was applied, not from the call", &continuous,
		{.head = {.generation = 7, COLUMNS(10, 0, 0, 4, 6, 0, 0, 0)}, .seen_at = NOW,
			.accrued_at = NOW + 5},
		{ASK(5)}, WAITS_UNTIL(AVAILABLE, NOW + 6)},
	{"D4: capped", &endless_refill, {.head = {.generation = 7}, .accrued_at = NOW}, {ASK(MAX)},
		WAITS_UNTIL(AVAILABLE, LL_TIME_MAX)},

	/* D4: window, a quota of 10 */
	{"D4: the next window", &window, {FOUR}, {ASK(10)}, WAITS_WINDOWS(AVAILABLE, 1)},
	{"D4: nothing is there", &window,
		{.head = {.generation = 7, COLUMNS(10, 0, 0, 0, 10, 0, 0, 0)}},
		{ASK(1)}, WAITS_WINDOWS(AVAILABLE, 1)},

	/* D4: none */
	{"D4: no refill rule", &none, {FOUR}, {ASK(5)}, WAITS(AVAILABLE, RELEASE)},

	/* E1, E2: debt first */
	{"E1: its own debt, a unit", &continuous, {OWES(1)}, {ASK(1)}, WAITS_UNTIL(DEBT, NOW + 2)},
	{"E1: its own debt and the units", &continuous, {OWES(3)}, {ASK(6)},
		WAITS_UNTIL(DEBT, NOW + 6)},
	{"E1: an older debt", &continuous, {OWES(0), .older_debt = 3}, {ASK(6)},
		WAITS_UNTIL(DEBT, NOW + 6)},
	{"E1: both", &continuous, {OWES(2), .older_debt = 1}, {ASK(6)}, WAITS_UNTIL(DEBT, NOW + 6)},
	{"E2: one window pays both", &window, {OWES(3)}, {ASK(7)}, WAITS_WINDOWS(DEBT, 1)},
	{"E2: one unit too many for it", &window, {OWES(3)}, {ASK(8)}, WAITS_WINDOWS(DEBT, 2)},
	{"E2: several windows", &window, {OWES(25)}, {ASK(5)}, WAITS_WINDOWS(DEBT, 3)},
	{"E2: and one more", &window, {OWES(25)}, {ASK(6)}, WAITS_WINDOWS(DEBT, 4)},
	{"E1: debt beside available, though no such state is sound", &continuous,
		{.head = {.generation = 7, COLUMNS(10, 0, 2, 4, 0, 8, 0, 0)}, .accrued_at = NOW}, {ASK(4)},
		WAITS_UNTIL(DEBT, NOW + 2)},
	{"E1: debt without refill", &none, {OWES(3)}, {ASK(1)}, WAITS(DEBT, RELEASE)},
	{"A2: the largest debt", &window,
		{.head = {.generation = 7, COLUMNS(0, 0, MAX, 0, 0, MAX, 0, 0)}, .older_debt = 5},
		{ASK(10)},
		WAITS_WINDOWS(DEBT, MAX / 10 + 1)},
};

static void
every_row(void)
{
	for (int i = 0; i < LENGTH(rows); i++)
	{
		const Row  *row = &rows[i];
		LLPair		pair = row->before;
		LLPair		after = row->before;
		LLReservation reservation = {.state = LL_ABSENT, .reserved_units = 77};
		LLVerdict	judged = ll_admission_judge(&pair, row->policy, &row->request, NOW);
		LLVerdict	says;
		Bytes		before;

		take_bytes(&before, &pair, NULL, &reservation);
		says = ll_admit(&pair, row->policy, &row->request, NOW, &reservation);
		want_verdict(&says, &row->says);
		if (!row->says.overflow)	/* the same decision, but it takes nothing */
			want_verdict(&judged, &row->says);
		if (took_effect(&says))
		{
			after.head.available = row->available;
			after.head.reserved = row->reserved;
			want_pair(&pair, &after);
			want_reservation(&reservation, &row->reservation);
		}
		else
			want_unchanged(&before, &pair, NULL, &reservation);
		row_ends(row->name);
	}
}

/*
 * A request that breaks everything, mended step by step: each step meets the
 * next dimension.  What no waiting can change comes first.
 */
static const struct
{
	const char *mended;
	LLDimension meets;
	LLWait		wait;
}			steps[] = {
	{"nothing", LL_DIM_REGION, LL_WAIT_NEVER},
	{"the region", LL_DIM_ESTIMATOR, LL_WAIT_NEVER},
	{"the estimator", LL_DIM_DEADLINE, LL_WAIT_NEVER},
	{"the deadline", LL_DIM_LARGEST_RESERVATION, LL_WAIT_NEVER},
	{"the largest reservation", LL_DIM_CAP, LL_WAIT_NEVER},
	{"the cap", LL_DIM_LARGEST_OUTSTANDING, LL_WAIT_NEVER},
	{"the largest outstanding", LL_DIM_DRAINING, LL_WAIT_OPERATOR},
	{"draining", LL_DIM_FROZEN, LL_WAIT_OPERATOR},
	{"the freeze", LL_DIM_LARGEST_OUTSTANDING, LL_WAIT_RELEASE},
	{"what is outstanding", LL_DIM_DEBT, LL_WAIT_REFILL},
	{"the debt", LL_DIM_AVAILABLE, LL_WAIT_REFILL},
	{"what is available", LL_DIM_NONE, LL_WAIT_NONE},
};

/* at_step is the request on the pair after so many steps. */
static void
at_step(int step, LLPair *pair, LLRequest *request)
{
	*pair = (LLPair) {
		.head = {.generation = 7, COLUMNS(10, 0, 2, 0, 5, 7, 0, 0)}, .older_debt = 1,
		.older_reserved = step < 9 ? 1 : 0, .frozen = step < 8, .accrued_at = NOW
	};
	*request = (LLRequest) {
		.units = step < 4 ? 20 : step < 5 ? 15 : step < 6 ? 10 : step < 9 ? 9 : 4,
		.deadline = step < 3 ? NOW : NOW + 1, .region_matches = step >= 1,
		.estimator_accepted = step >= 2, .draining = step < 7
	};
	if (step >= 10)				/* repaid, and nothing available */
	{
		pair->older_debt = 0;
		pair->head = (LLBudget) {.generation = 7, COLUMNS(10, 2, 2, 0, 5, 7, 0, 2)};
	}
	if (step >= 11)
		pair->head = (LLBudget) {.generation = 7, COLUMNS(10, 6, 2, 4, 5, 7, 0, 2)};
}

static void
in_order(void)
{
	static const LLPolicy policy = {
		.generation = 7, .refill = LL_REFILL_CONTINUOUS, .cap = 10, .refill_units = 3,
		.refill_interval = 2, .largest_reservation = 15, .largest_outstanding = 9, .hold_ttl = 30
	};

	for (int i = 0; i < LENGTH(steps); i++)
	{
		LLPair		pair;
		LLRequest	request;
		LLReservation reservation;
		LLVerdict	says;

		at_step(i, &pair, &request);
		says = ll_admit(&pair, &policy, &request, NOW, &reservation);
		ok(says.dimension == steps[i].meets && says.wait == steps[i].wait &&
		   (says.outcome == LL_ACCEPTED) == (steps[i].meets == LL_DIM_NONE),
		   "D3: %s mended, it meets %s", steps[i].mended,
		   i == LENGTH(steps) - 1 ? "nothing" : ll_dimension_info(steps[i].meets)->name);
	}
}

int
main(void)
{
	every_row();
	in_order();
	return done_testing();
}
