/*
 * Settle, release and expire: where the units go (C4, C5, D6-D9, D14, E2).
 */
#include "fixture.h"

enum
{
	EXPIRES = 1234
};

/* cap 10, hard limit 20, maximum overdraft 5 */
static const LLPolicy policy = {
	.generation = 7, .refill = LL_REFILL_CONTINUOUS, .cap = 10, .refill_units = 3,
	.refill_interval = 2, .hard_limit = 20, .maximum_overdraft = 5
};
static const LLPolicy strict = {
	.generation = 6, .refill = LL_REFILL_CONTINUOUS, .cap = 4, .refill_units = 3,
	.refill_interval = 2, .hard_limit = 8, .maximum_overdraft = 0
};
static const LLPolicy endless = {
	.generation = 7, .refill = LL_REFILL_NONE, .cap = MAX, .hard_limit = MAX,
	.maximum_overdraft = MAX
};

#define HEAD(...)	.head = {.generation = 7, .line = 2, COLUMNS(__VA_ARGS__)}
#define CLOSED(...)	{.generation = 6, .line = 2, COLUMNS(__VA_ARGS__)}
#define LAPSED(...)	{.generation = 6, .line = 1, COLUMNS(__VA_ARGS__)}
#define HELD(state_, units)	{.state = LL_##state_, .reserved_units = units, .expires_at = EXPIRES}
#define ENDED(state_, units, used, over, debt) \
	{.state = LL_##state_, .reserved_units = units, .actual_units = used, .excess_units = over, \
		.overdraft_units = debt, .expires_at = EXPIRES}
#define USED(n)		{.actual = n, .operation = LL_OPERATION_SAME, .same_receipt = true}
#define ATTESTED(n)	{.actual = n, .operation = LL_OPERATION_SAME, .same_receipt = true, \
	.attested = true}
#define HELD_AT(state_, units, used) \
	{.state = LL_##state_, .reserved_units = units, .progress_units = used, .expires_at = EXPIRES}
#define ENDED_AT(state_, units, actual, over, debt, used) \
	{.state = LL_##state_, .reserved_units = units, .actual_units = actual, .excess_units = over, \
		.overdraft_units = debt, .progress_units = used, .expires_at = EXPIRES}

typedef struct Settle
{
	const char *name;
	const LLPolicy *own;		/* NULL: `policy` */
	const LLPolicy *now;		/* of the head; NULL: `policy` */
	LLPair		before;
	LLBudget	closed;			/* generation 0: the head is the reservation's own */
	LLReservation held;
	LLSettlement settlement;
	LLVerdict	says;
	LLPair		after;
	LLBudget	closed_after;
	LLReservation ended;
} Settle;

static const Settle settles[] = {
	/* D6: spends the actual, gives back the difference */
	{"D6: under", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(2), ADMITTED,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED(SETTLED, 6, 2, 0, 0)},
	{"D6: zero is a figure", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(0), ADMITTED,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, {0}, ENDED(SETTLED, 6, 0, 0, 0)},
	{"D6: exact", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(6), ADMITTED,
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0)}, {0}, ENDED(SETTLED, 6, 6, 0, 0)},
	{"D6: what others hold stays held", 0, 0,
		{HEAD(10, 0, 0, 1, 9, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(2), ADMITTED,
		{HEAD(10, 0, 0, 5, 3, 2, 0, 0)}, {0}, ENDED(SETTLED, 6, 2, 0, 0)},
	{"D10: an unknown one, by its receipt", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(USAGE_UNKNOWN, 6),
		USED(2), ADMITTED,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED(SETTLED, 6, 2, 0, 0)},
	{"D8: a frozen pair settles, and stays frozen", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0), .frozen = true}, {0}, HELD(STARTED, 6),
		USED(2), ADMITTED,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0), .frozen = true}, {0}, ENDED(SETTLED, 6, 2, 0, 0)},

	/* C4: the cap; what was refilled during the hold is un-minted */
	{"C4: just up to the cap", 0, 0,
		{HEAD(10, 3, 0, 7, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(3), ADMITTED,
		{HEAD(10, 3, 0, 10, 0, 3, 0, 0)}, {0}, ENDED(SETTLED, 6, 3, 0, 0)},
	{"C4: one unit above it", 0, 0,
		{HEAD(10, 3, 0, 7, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(2), ADMITTED,
		{.head = {.generation = 7, .line = 2, COLUMNS(10, 2, 0, 10, 0, 2, 0, 0), .burned = 1}}, {0},
		ENDED(SETTLED, 6, 2, 0, 0)},
	{"C4: all that was minted", 0, 0,
		{.head = {.generation = 7, .line = 2, COLUMNS(10, 3, 0, 7, 6, 0, 0, 0), .burned = 4}}, {0},
		HELD(STARTED, 6),
		USED(0), ADMITTED,
		{.head = {.generation = 7, .line = 2, COLUMNS(10, 0, 0, 10, 0, 0, 0, 0), .burned = 7}}, {0},
		ENDED(SETTLED, 6, 0, 0, 0)},

	/* E2: units that come back pay the head's own debt first */
	{"E2: debt in part", 0, 0,
		{HEAD(10, 0, 3, 0, 6, 7, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(4), ADMITTED,
		{HEAD(10, 0, 3, 0, 0, 11, 0, 2)}, {0}, ENDED(SETTLED, 6, 4, 0, 0)},
	{"E2: debt, and the rest is available", 0, 0,
		{HEAD(10, 0, 3, 0, 6, 7, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(1), ADMITTED,
		{HEAD(10, 0, 3, 2, 0, 8, 0, 3)}, {0}, ENDED(SETTLED, 6, 1, 0, 0)},
	{"E2: what was repaid before counts", 0, 0,
		{HEAD(10, 2, 3, 0, 6, 7, 0, 2)}, {0}, HELD(STARTED, 6),
		USED(1), ADMITTED,
		{HEAD(10, 2, 3, 4, 0, 8, 0, 3)}, {0}, ENDED(SETTLED, 6, 1, 0, 0)},
	{"E2, C4: debt, then the cap, then un-minted", 0, 0,
		{HEAD(10, 10, 3, 0, 14, 9, 0, 0)}, {0}, HELD(STARTED, 14),
		USED(0), ADMITTED,
		{.head = {.generation = 7, .line = 2, COLUMNS(10, 9, 3, 10, 0, 9, 0, 3), .burned = 1}}, {0},
		ENDED(SETTLED, 14, 0, 0, 0)},

	/* D7: above the reservation */
	{"D7: covered by what is available", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(9), ADMITTED,
		{HEAD(10, 0, 0, 1, 0, 9, 0, 0)}, {0}, ENDED(SETTLED, 6, 9, 3, 0)},
	{"D7: covered by all of it", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(10), ADMITTED,
		{HEAD(10, 0, 0, 0, 0, 10, 0, 0)}, {0}, ENDED(SETTLED, 6, 10, 4, 0)},
	{"D7: a unit above that is debt", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(11), ADMITTED,
		{HEAD(10, 0, 1, 0, 0, 11, 0, 0)}, {0}, ENDED(SETTLED_WITH_DEBT, 6, 11, 5, 1)},
	{"D7: an unknown one too", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(USAGE_UNKNOWN, 6),
		USED(13), ADMITTED,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, {0}, ENDED(SETTLED_WITH_DEBT, 6, 13, 7, 3)},
	{"D7: debt on debt", 0, 0,
		{HEAD(10, 0, 2, 0, 6, 6, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(9), ADMITTED,
		{HEAD(10, 0, 5, 0, 0, 15, 0, 0)}, {0}, ENDED(SETTLED_WITH_DEBT, 6, 9, 3, 3)},

	/* D8: breaches freeze, and all of it is recorded */
	{"D8: at the maximum overdraft", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(15), ADMITTED,
		{HEAD(10, 0, 5, 0, 0, 15, 0, 0)}, {0}, ENDED(SETTLED_WITH_DEBT, 6, 15, 9, 5)},
	{"D8: a unit above it", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(16), ADMITTED,
		{HEAD(10, 0, 6, 0, 0, 16, 0, 0), .frozen = true}, {0},
		ENDED(SETTLED_WITH_DEBT, 6, 16, 10, 6)},
	{"D8: the debt of the pair counts", 0, 0,
		{HEAD(6, 0, 0, 0, 6, 0, 0, 0), .older_debt = 4}, {0}, HELD(STARTED, 6),
		USED(8), ADMITTED,
		{HEAD(6, 0, 2, 0, 0, 8, 0, 0), .older_debt = 4, .frozen = true}, {0},
		ENDED(SETTLED_WITH_DEBT, 6, 8, 2, 2)},
	{"D8: less what was repaid", 0, 0,
		{HEAD(10, 2, 4, 0, 6, 8, 0, 2)}, {0}, HELD(STARTED, 6),
		USED(9), ADMITTED,
		{HEAD(10, 2, 7, 0, 0, 17, 0, 2)}, {0}, ENDED(SETTLED_WITH_DEBT, 6, 9, 3, 3)},
	{"D8: the maximum is the head's", &policy, &strict,
		{.head = {.generation = 6, .line = 2, COLUMNS(4, 0, 0, 0, 4, 0, 0, 0)}}, {0},
		HELD(STARTED, 4),
		USED(5), ADMITTED,
		{.head = {.generation = 6, .line = 2, COLUMNS(4, 0, 1, 0, 0, 5, 0, 0)}, .frozen = true},
		{0}, ENDED(SETTLED_WITH_DEBT, 4, 5, 1, 1)},
	{"D8: at the hard limit", &strict, &policy,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(8), ADMITTED,
		{HEAD(10, 0, 0, 2, 0, 8, 0, 0)}, {0}, ENDED(SETTLED, 6, 8, 2, 0)},
	{"D8: a unit above it, though covered", &strict, &policy,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(9), ADMITTED,
		{HEAD(10, 0, 0, 1, 0, 9, 0, 0), .frozen = true}, {0}, ENDED(SETTLED, 6, 9, 3, 0)},
	{"D8: above it within the reservation", &strict, &policy,
		{HEAD(10, 0, 0, 0, 10, 0, 0, 0)}, {0}, HELD(STARTED, 10),
		USED(9), ADMITTED,
		{HEAD(10, 0, 0, 1, 0, 9, 0, 0), .frozen = true}, {0}, ENDED(SETTLED, 10, 9, 0, 0)},
	{"D8: the hard limit is the reservation's own", &policy, &strict,
		{.head = {.generation = 6, .line = 2, COLUMNS(10, 0, 0, 0, 10, 0, 0, 0)}}, {0},
		HELD(STARTED, 10),
		USED(9), ADMITTED,
		{.head = {.generation = 6, .line = 2, COLUMNS(10, 0, 0, 1, 0, 9, 0, 0)}}, {0},
		ENDED(SETTLED, 10, 9, 0, 0)},
	{"D8: a garbage figure is recorded in full", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(MAX), ADMITTED,
		{HEAD(10, 0, MAX - 10, 0, 0, MAX, 0, 0), .frozen = true}, {0},
		ENDED(SETTLED_WITH_DEBT, 6, MAX, MAX - 6, MAX - 10)},

	/* C5: a closed budget, same line: its balance stays, minted into the head */
	{"C5: under", 0, 0,
		{HEAD(4, 0, 0, 4, 0, 0, 0, 0), .older_reserved = 6}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0),
		HELD(STARTED, 6),
		USED(2), ADMITTED,
		{HEAD(4, 4, 0, 8, 0, 0, 0, 0)}, CLOSED(10, 0, 0, 8, 0, 2, 0, 0),
		ENDED(SETTLED, 6, 2, 0, 0)},
	{"C5: exact", 0, 0,
		{HEAD(4, 0, 0, 4, 0, 0, 0, 0), .older_reserved = 7}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0),
		HELD(STARTED, 6),
		USED(6), ADMITTED,
		{HEAD(4, 0, 0, 4, 0, 0, 0, 0), .older_reserved = 1}, CLOSED(10, 0, 0, 4, 0, 6, 0, 0),
		ENDED(SETTLED, 6, 6, 0, 0)},
	{"C5: up to the head's cap, the rest is burned", 0, 0,
		{HEAD(4, 4, 0, 8, 0, 0, 0, 0), .older_reserved = 6}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0),
		HELD(STARTED, 6),
		USED(1), ADMITTED,
		{.head = {.generation = 7, .line = 2, COLUMNS(4, 6, 0, 10, 0, 0, 0, 0), .burned = 3}},
		CLOSED(10, 0, 0, 9, 0, 1, 0, 0), ENDED(SETTLED, 6, 1, 0, 0)},
	{"C5: the deficit first", 0, 0,
		{.head = {.generation = 7, .line = 2, .whole = true, .deficit = 3}, .older_reserved = 6},
		CLOSED(10, 0, 0, 4, 6, 0, 0, 0), HELD(STARTED, 6),
		USED(2), ADMITTED,
		{.head = {.generation = 7, .line = 2, .whole = true, COLUMNS(0, 1, 0, 1, 0, 0, 0, 0)}},
		CLOSED(10, 0, 0, 8, 0, 2, 0, 0), ENDED(SETTLED, 6, 2, 0, 0)},
	{"C5: the deficit in part, nothing is minted", 0, 0,
		{.head = {.generation = 7, .line = 2, .whole = true, .deficit = 5}, .older_reserved = 6},
		CLOSED(10, 0, 0, 4, 6, 0, 0, 0), HELD(STARTED, 6),
		USED(2), ADMITTED,
		{.head = {.generation = 7, .line = 2, .whole = true, .deficit = 1}},
		CLOSED(10, 0, 0, 8, 0, 2, 0, 0), ENDED(SETTLED, 6, 2, 0, 0)},
	{"E2: then older debt, minted where it is", 0, 0,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 3, .older_reserved = 6},
		CLOSED(10, 0, 0, 0, 6, 4, 0, 0), HELD(STARTED, 6),
		USED(2), ADMITTED,
		{HEAD(0, 1, 0, 1, 0, 0, 0, 0), .older_repaid = 3}, CLOSED(10, 0, 0, 4, 0, 6, 0, 0),
		ENDED(SETTLED, 6, 2, 0, 0)},
	{"E2: the closed budget's own debt is booked like any other", 0, 0,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 3, .older_reserved = 6},
		CLOSED(10, 0, 3, 0, 6, 7, 0, 0), HELD(STARTED, 6),
		USED(4), ADMITTED,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 1, .older_repaid = 2},
		CLOSED(10, 0, 3, 2, 0, 11, 0, 0), ENDED(SETTLED, 6, 4, 0, 0)},
	{"E2: then the head's", 0, 0,
		{HEAD(0, 0, 3, 0, 0, 3, 0, 0), .older_reserved = 6}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0),
		HELD(STARTED, 6),
		USED(2), ADMITTED,
		{HEAD(0, 4, 3, 1, 0, 3, 0, 3)}, CLOSED(10, 0, 0, 8, 0, 2, 0, 0),
		ENDED(SETTLED, 6, 2, 0, 0)},
	{"C5: deficit, older debt, own debt, available, in this order", 0, 0,
		{.head = {.generation = 7, .line = 2, .whole = true, .deficit = 1,
			COLUMNS(0, 0, 1, 0, 0, 1, 0, 0)},
			.older_debt = 1, .older_reserved = 6}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0),
		HELD(STARTED, 6),
		USED(2), ADMITTED,
		{.head = {.generation = 7, .line = 2, .whole = true, COLUMNS(0, 2, 1, 1, 0, 1, 0, 1)},
			.older_repaid = 1}, CLOSED(10, 0, 0, 8, 0, 2, 0, 0), ENDED(SETTLED, 6, 2, 0, 0)},

	/* C5: a window has opened with its quota since: they lapse */
	{"C5: lapsed", 0, 0,
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0), .older_reserved = 6}, LAPSED(10, 0, 0, 4, 6, 0, 0, 0),
		HELD(STARTED, 6),
		USED(2), ADMITTED,
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0)}, LAPSED(10, 0, 0, 8, 0, 2, 0, 0),
		ENDED(SETTLED, 6, 2, 0, 0)},
	{"C5: nor do they pay debt", 0, 0,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 2, .older_reserved = 6},
		LAPSED(10, 0, 0, 4, 6, 0, 0, 0), HELD(STARTED, 6),
		USED(2), ADMITTED,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 2}, LAPSED(10, 0, 0, 8, 0, 2, 0, 0),
		ENDED(SETTLED, 6, 2, 0, 0)},
	{"C5: nor fill a deficit", 0, 0,
		{.head = {.generation = 7, .line = 2, .whole = true, .deficit = 3}, .older_reserved = 6},
		LAPSED(10, 0, 0, 4, 6, 0, 0, 0), HELD(STARTED, 6),
		USED(2), ADMITTED,
		{.head = {.generation = 7, .line = 2, .whole = true, .deficit = 3}},
		LAPSED(10, 0, 0, 8, 0, 2, 0, 0), ENDED(SETTLED, 6, 2, 0, 0)},

	/* D7: excess of a closed budget is the head's */
	{"D7: borne by the head", 0, 0,
		{HEAD(4, 0, 0, 4, 0, 0, 0, 0), .older_reserved = 6}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0),
		HELD(STARTED, 6),
		USED(8), ADMITTED,
		{HEAD(4, 0, 0, 2, 0, 2, 0, 0)}, CLOSED(10, 0, 0, 4, 0, 6, 0, 0),
		ENDED(SETTLED, 6, 8, 2, 0)},
	{"D7: and its debt", 0, 0,
		{HEAD(4, 0, 0, 4, 0, 0, 0, 0), .older_reserved = 6}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0),
		HELD(STARTED, 6),
		USED(13), ADMITTED,
		{HEAD(4, 0, 3, 0, 0, 7, 0, 0)}, CLOSED(10, 0, 0, 4, 0, 6, 0, 0),
		ENDED(SETTLED_WITH_DEBT, 6, 13, 7, 3)},
	{"D7: of an ended window too", 0, 0,
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0), .older_reserved = 6}, LAPSED(10, 0, 0, 4, 6, 0, 0, 0),
		HELD(STARTED, 6),
		USED(8), ADMITTED,
		{HEAD(10, 0, 0, 2, 0, 8, 0, 0)}, LAPSED(10, 0, 0, 4, 0, 6, 0, 0),
		ENDED(SETTLED, 6, 8, 2, 0)},
	{"D8: the closed budget's debt counts for the freeze", 0, 0,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 4, .older_reserved = 6},
		CLOSED(10, 0, 4, 0, 6, 8, 0, 0), HELD(STARTED, 6),
		USED(8), ADMITTED,
		{HEAD(0, 0, 2, 0, 0, 2, 0, 0), .older_debt = 4, .frozen = true},
		CLOSED(10, 0, 4, 0, 0, 14, 0, 0), ENDED(SETTLED_WITH_DEBT, 6, 8, 2, 2)},

	/* A2: up to the largest number */
	{"A2: the largest spent", 0, &endless,
		{HEAD(MAX, 0, 0, 1, 6, MAX - 7, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(7), ADMITTED,
		{HEAD(MAX, 0, 0, 0, 0, MAX, 0, 0)}, {0}, ENDED(SETTLED, 6, 7, 1, 0)},
	{"A2: all of the largest reservation comes back", &endless, &endless,
		{HEAD(MAX, 0, 0, 0, MAX, 0, 0, 0)}, {0}, HELD(STARTED, MAX),
		USED(0), ADMITTED,
		{HEAD(MAX, 0, 0, MAX, 0, 0, 0, 0)}, {0}, ENDED(SETTLED, MAX, 0, 0, 0)},
	{"A2: all of it was used", &endless, &endless,
		{HEAD(MAX, 0, 0, 0, MAX, 0, 0, 0)}, {0}, HELD(STARTED, MAX),
		USED(MAX), ADMITTED,
		{HEAD(MAX, 0, 0, 0, 0, MAX, 0, 0)}, {0}, ENDED(SETTLED, MAX, MAX, 0, 0)},

	/* A2: beyond it */
	{"A2: spent beyond bigint", 0, &endless,
		{HEAD(MAX, 0, 0, 0, 6, MAX - 6, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(7), OVERFLOWS},
	{"A2: overdraft_issued beyond bigint", 0, &endless,
		{HEAD(6, 0, MAX - 6, 0, 6, 0, 0, MAX - 6)}, {0}, HELD(STARTED, 6),
		USED(13), OVERFLOWS},
	{"A2: one side of C1 beyond bigint, no column", 0, &endless,
		{HEAD(MAX, 0, 0, 0, 8, MAX - 8, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(8), OVERFLOWS},
	{"A2: a garbage figure beside what others hold", 0, 0,
		{HEAD(10, 0, 0, 2, 8, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(MAX), OVERFLOWS},
	{"A2: the pair's debt beyond bigint", 0, &endless,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = MAX - 1, .older_reserved = 6},
		CLOSED(10, 0, 0, 4, 6, 0, 0, 0), HELD(STARTED, 6),
		USED(8), OVERFLOWS},
	{"A2: burned beyond bigint", 0, 0,
		{.head = {.generation = 7, .line = 2, COLUMNS(10, 3, 0, 7, 6, 0, 0, 0), .burned = MAX}},
		{0}, HELD(STARTED, 6),
		USED(0), OVERFLOWS},
	{"A2: burned beyond bigint, from a closed budget", 0, 0,
		{.head = {.generation = 7, .line = 2, COLUMNS(10, 0, 0, 10, 0, 0, 0, 0), .burned = MAX},
			.older_reserved = 6}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0), HELD(STARTED, 6),
		USED(0), OVERFLOWS},
	{"A2: minted beyond bigint, from a closed budget", 0, &endless,
		{HEAD(0, MAX - 3, 0, 0, 0, MAX - 3, 0, 0), .older_reserved = 6},
		CLOSED(10, 0, 0, 4, 6, 0, 0, 0), HELD(STARTED, 6),
		USED(0), OVERFLOWS},
	{"A2: more to un-mint than was minted: no such state, nothing written", 0, 0,
		{HEAD(13, 0, 0, 7, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		USED(0), OVERFLOWS},

	/* D6: once */
	{"D6: the same figures again", 0, 0,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED(SETTLED, 6, 2, 0, 0),
		USED(2), REPLAYED},
	{"D6: the same, after debt", 0, 0,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, {0}, ENDED(SETTLED_WITH_DEBT, 6, 13, 7, 3),
		USED(13), REPLAYED},
	{"D6: the same, after its budget closed", 0, 0,
		{HEAD(4, 0, 0, 4, 0, 0, 0, 0)}, CLOSED(10, 0, 0, 8, 0, 2, 0, 0), ENDED(SETTLED, 6, 2, 0, 0),
		USED(2), REPLAYED},
	{"D6: zero again", 0, 0,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, {0}, ENDED(SETTLED, 6, 0, 0, 0),
		USED(0), REPLAYED},
	{"D6: other units", 0, 0,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED(SETTLED, 6, 2, 0, 0),
		USED(3), CONFLICT(FIGURES)},
	{"D6: other units, after debt", 0, 0,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, {0}, ENDED(SETTLED_WITH_DEBT, 6, 13, 7, 3),
		USED(2), CONFLICT(FIGURES)},
	{"D6: zero instead", 0, 0,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED(SETTLED, 6, 2, 0, 0),
		USED(0), CONFLICT(FIGURES)},
	{"D6: another receipt", 0, 0,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED(SETTLED, 6, 2, 0, 0),
		{.actual = 2, .operation = LL_OPERATION_SAME}, CONFLICT(FIGURES)},
	{"D6: another operation, settled", 0, 0,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED(SETTLED, 6, 2, 0, 0),
		{.actual = 2, .operation = LL_OPERATION_OTHER, .same_receipt = true}, CONFLICT(OPERATION)},
	{"D6: another operation, started", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		{.actual = 2, .operation = LL_OPERATION_OTHER, .same_receipt = true}, CONFLICT(OPERATION)},
	{"D6: another operation, unknown", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(USAGE_UNKNOWN, 6),
		{.actual = 2, .operation = LL_OPERATION_OTHER, .same_receipt = true}, CONFLICT(OPERATION)},
	{"D6: an operation bound elsewhere", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		{.actual = 2, .operation = LL_OPERATION_ELSEWHERE, .same_receipt = true},
		CONFLICT(OPERATION)},
	{"D6: an operation bound to nothing", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(STARTED, 6),
		{.actual = 2, .operation = LL_OPERATION_FREE, .same_receipt = true}, CONFLICT(OPERATION)},
	/* D10: an operator attests, as a last resort; not below what was reported */
	{"D10: attested at the progress", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD_AT(USAGE_UNKNOWN, 6, 2),
		ATTESTED(2), ADMITTED,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED_AT(SETTLED, 6, 2, 0, 0, 2)},
	{"D10: attested above it", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD_AT(USAGE_UNKNOWN, 6, 2),
		ATTESTED(3), ADMITTED,
		{HEAD(10, 0, 0, 7, 0, 3, 0, 0)}, {0}, ENDED_AT(SETTLED, 6, 3, 0, 0, 2)},
	{"D10: attested a unit below it", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD_AT(USAGE_UNKNOWN, 6, 2),
		ATTESTED(1), REFUSED(PROGRESS)},
	{"D10: attested zero, a unit reported", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD_AT(USAGE_UNKNOWN, 6, 1),
		ATTESTED(0), REFUSED(PROGRESS)},
	{"D10: attested zero, nothing reported", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD_AT(USAGE_UNKNOWN, 6, 0),
		ATTESTED(0), ADMITTED,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, {0}, ENDED_AT(SETTLED, 6, 0, 0, 0, 0)},
	{"D10: attested below it, of a closed budget", 0, 0,
		{HEAD(4, 0, 0, 4, 0, 0, 0, 0), .older_reserved = 6}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0),
		HELD_AT(USAGE_UNKNOWN, 6, 3),
		ATTESTED(2), REFUSED(PROGRESS)},
	{"D10: attested below it, still started", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD_AT(STARTED, 6, 2),
		ATTESTED(1), REFUSED(PROGRESS)},
	{"D10: attested below a progress above the reservation", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD_AT(USAGE_UNKNOWN, 6, 9),
		ATTESTED(8), REFUSED(PROGRESS)},
	{"D10, D7: attested at such a progress", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD_AT(USAGE_UNKNOWN, 6, 9),
		ATTESTED(9), ADMITTED,
		{HEAD(10, 0, 0, 1, 0, 9, 0, 0)}, {0}, ENDED_AT(SETTLED, 6, 9, 3, 0, 9)},
	{"A2: attested a unit below the largest progress", 0, &endless,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD_AT(USAGE_UNKNOWN, 6, MAX),
		ATTESTED(MAX - 1), REFUSED(PROGRESS)},
	{"D6: the execution's own receipt may say less than was reported", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD_AT(STARTED, 6, 5),
		USED(2), ADMITTED,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED_AT(SETTLED, 6, 2, 0, 0, 5)},
	{"D6: attested again", 0, 0,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED_AT(SETTLED, 6, 2, 0, 0, 2),
		ATTESTED(2), REPLAYED},
	{"D6: attested what the execution had settled below its progress", 0, 0,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED_AT(SETTLED, 6, 2, 0, 0, 5),
		ATTESTED(2), REPLAYED},
	{"D6: attested otherwise, once settled", 0, 0,
		{HEAD(10, 0, 0, 8, 0, 2, 0, 0)}, {0}, ENDED_AT(SETTLED, 6, 2, 0, 0, 2),
		ATTESTED(1), CONFLICT(FIGURES)},
	{"D6: attested for another operation, and below its progress", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD_AT(USAGE_UNKNOWN, 6, 2),
		{.actual = 1, .operation = LL_OPERATION_OTHER, .same_receipt = true, .attested = true},
		CONFLICT(OPERATION)},
	{"D6: attested what was never started", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(RESERVED, 6),
		ATTESTED(2), REFUSED(NOT_STARTED)},

	{"D6: an unknown id", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(ABSENT, 0),
		USED(2), NOBODY},
	{"D6: not started", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(RESERVED, 6),
		USED(2), REFUSED(NOT_STARTED)},
	{"D6: not started, whatever the operation", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(RESERVED, 6),
		{.actual = 2, .operation = LL_OPERATION_FREE}, REFUSED(NOT_STARTED)},
	{"D6: expiring", 0, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, HELD(EXPIRING, 6),
		USED(2), REFUSED(NOT_STARTED)},
	{"D6: released", 0, 0,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, {0}, HELD(RELEASED, 6),
		USED(2), REFUSED(NOT_STARTED)},
	{"D6: expired", 0, 0,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, {0}, HELD(EXPIRED, 6),
		USED(2), REFUSED(NOT_STARTED)},
};

static void
settle(void)
{
	for (int i = 0; i < LENGTH(settles); i++)
	{
		const Settle *row = &settles[i];
		LLPair		pair = row->before;
		LLBudget	budget = row->closed;
		LLReservation reservation = row->held;
		LLBudget   *closed = row->closed.generation != 0 ? &budget : NULL;
		Bytes		before;
		LLVerdict	says;

		want("C1 of the row itself", conserved(&row->before.head) && conserved(&row->closed), true);
		take_bytes(&before, &pair, closed, &reservation);
		says = ll_settle(&pair, closed, &reservation, row->own != NULL ? row->own : &policy,
						 row->now != NULL ? row->now : &policy, &row->settlement);
		want_verdict(&says, &row->says);
		if (took_effect(&row->says))
		{
			want_pair(&pair, &row->after);
			if (closed != NULL)
				want_budget("closed", closed, &row->closed_after);
			want_reservation(&reservation, &row->ended);
		}
		else
			want_unchanged(&before, &pair, closed, &reservation);
		row_ends(row->name);
	}
}

/* ---- release and expire: the units of a hold come back ------------------- */

typedef struct Leave
{
	const char *name;
	const LLPolicy *now;
	LLPair		before;
	LLBudget	closed;
	LLUnits		held;
	LLPair		after;			/* generation 0: overflow, nothing moves */
	LLBudget	closed_after;
} Leave;

static const Leave leaves[] = {
	{"all of it comes back", 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, 6,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, {0}},
	{"beside others", 0,
		{HEAD(10, 0, 0, 1, 9, 0, 0, 0)}, {0}, 6,
		{HEAD(10, 0, 0, 7, 3, 0, 0, 0)}, {0}},
	{"a fence holds nothing", 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}, 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0)}, {0}},
	{"C4: up to the cap, the rest un-minted", 0,
		{HEAD(10, 3, 0, 7, 6, 0, 0, 0)}, {0}, 6,
		{.head = {.generation = 7, .line = 2, COLUMNS(10, 0, 0, 10, 0, 0, 0, 0), .burned = 3}},
		{0}},
	{"E2: debt first", 0,
		{HEAD(10, 0, 4, 0, 6, 8, 0, 0)}, {0}, 6,
		{HEAD(10, 0, 4, 2, 0, 8, 0, 4)}, {0}},
	{"D8: frozen, they come back all the same", 0,
		{HEAD(10, 0, 0, 4, 6, 0, 0, 0), .frozen = true}, {0}, 6,
		{HEAD(10, 0, 0, 10, 0, 0, 0, 0), .frozen = true}, {0}},
	{"C5: closed, the same line", 0,
		{HEAD(4, 0, 0, 4, 0, 0, 0, 0), .older_reserved = 6}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0), 6,
		{HEAD(4, 6, 0, 10, 0, 0, 0, 0)}, CLOSED(10, 0, 0, 10, 0, 0, 0, 0)},
	{"C5: closed, lapsed", 0,
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0), .older_reserved = 8}, LAPSED(10, 0, 0, 4, 6, 0, 0, 0), 6,
		{HEAD(10, 0, 0, 4, 0, 6, 0, 0), .older_reserved = 2}, LAPSED(10, 0, 0, 10, 0, 0, 0, 0)},
	{"C5: closed, its available may exceed the head's cap", &strict,
		{.head = {.generation = 6, .line = 2, COLUMNS(4, 0, 0, 4, 0, 0, 0, 0)},
			.older_reserved = 6}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0), 6,
		{.head = {.generation = 6, .line = 2, COLUMNS(4, 0, 0, 4, 0, 0, 0, 0), .burned = 6}},
		CLOSED(10, 0, 0, 10, 0, 0, 0, 0)},
	{"A2: the largest number", &endless,
		{HEAD(MAX, 0, 0, 0, MAX, 0, 0, 0)}, {0}, MAX,
		{HEAD(MAX, 0, 0, MAX, 0, 0, 0, 0)}, {0}},
	{"A2: minted beyond bigint", &endless,
		{HEAD(0, MAX - 3, 0, 0, 0, MAX - 3, 0, 0), .older_reserved = 6},
		CLOSED(10, 0, 0, 4, 6, 0, 0, 0), 6,
		{.head = {.generation = 0}}, {0}},
	{"A2: one side of C1 beyond bigint", &endless,
		{HEAD(MAX, 0, 0, 0, 0, MAX, 0, 0), .older_reserved = 6}, CLOSED(10, 0, 0, 4, 6, 0, 0, 0), 6,
		{.head = {.generation = 0}}, {0}},
	{"A2: burned beyond bigint", 0,
		{.head = {.generation = 7, .line = 2, COLUMNS(10, 3, 0, 7, 6, 0, 0, 0), .burned = MAX - 2}},
		{0}, 6,
		{.head = {.generation = 0}}, {0}},
};

/* leave runs one row as a release and as the end of an expiry. */
static void
leave(void)
{
	for (int i = 0; i < LENGTH(leaves); i++)
		for (int expiry = 0; expiry <= 1; expiry++)
		{
			const Leave *row = &leaves[i];
			const LLPolicy *now = row->now != NULL ? row->now : &policy;
			LLPair		pair = row->before;
			LLBudget	budget = row->closed;
			LLBudget   *closed = row->closed.generation != 0 ? &budget : NULL;
			LLReservation reservation = {
				.state = expiry ? LL_EXPIRING : LL_RESERVED, .reserved_units = row->held,
				.expires_at = EXPIRES
			};
			LLReservation ended = reservation;
			bool		overflows = row->after.head.generation == 0;
			LLVerdict	expected = {.outcome = LL_ACCEPTED, .overflow = overflows};
			Bytes		before;
			LLVerdict	says;
			char		name[100];

			want("C1 of the row itself",
				 conserved(&row->before.head) && conserved(&row->closed), true);
			take_bytes(&before, &pair, closed, &reservation);
			says = expiry ? ll_expire_finish(&pair, closed, &reservation, now)
				: ll_release(&pair, closed, &reservation, now);
			want_verdict(&says, &expected);
			if (overflows)
				want_unchanged(&before, &pair, closed, &reservation);
			else
			{
				ended.state = expiry ? LL_EXPIRED : LL_RELEASED;
				want_pair(&pair, &row->after);
				if (closed != NULL)
					want_budget("closed", closed, &row->closed_after);
				want_reservation(&reservation, &ended);
			}
			snprintf(name, sizeof(name), "%s: %s", expiry ? "D14 expire" : "D9 release", row->name);
			row_ends(name);
		}
}

int
main(void)
{
	settle();
	leave();
	return done_testing();
}
