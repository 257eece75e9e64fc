/*
 * A shard on its gateway: reserve, settle, release, expire, seal and boot, against
 * what was allocated and nothing else (G1, G4, G5, G6).
 */
#include "fixture.h"

enum
{
	EXPIRES = 1000,				/* the shard */
	HOLD = 100,
	ENDS = 500					/* a hold */
};

#define SHARD(n, a, r, s, t, x) \
	{.allocated = n, .available = a, .reserved = r, .spent = s, .retired = t, .excess = x}
#define SEALED(n, r, s, t, x) \
	{.allocated = n, .reserved = r, .spent = s, .retired = t, .excess = x, .sealed = true}
#define HELD(state_, units)	{.state = LL_##state_, .reserved_units = units, .expires_at = ENDS}
#define ENDED(state_, units, used, over, debt) \
	{.state = LL_##state_, .reserved_units = units, .actual_units = used, .excess_units = over, \
		.overdraft_units = debt, .expires_at = ENDS}
#define WAITS(why, what) {.outcome = LL_REFUSED, .dimension = LL_DIM_##why, .wait = LL_WAIT_##what}

/* G1 again, in 128 bits and independent of src/core */
static bool
adds_up(const LLShard *s)
{
	return (__int128) s->available + s->reserved + s->spent + s->retired == s->allocated &&
		s->available >= 0 && s->reserved >= 0 && s->spent >= 0 && s->retired >= 0 &&
		s->excess >= 0 && !(s->sealed && s->available > 0);
}

static void
want_shard(const LLShard *got, const LLShard *expected)
{
	WANT("shard", got, expected, allocated);
	WANT("shard", got, expected, available);
	WANT("shard", got, expected, reserved);
	WANT("shard", got, expected, spent);
	WANT("shard", got, expected, retired);
	WANT("shard", got, expected, excess);
	WANT("shard", got, expected, sealed);
	want("G1 of the row itself", adds_up(expected), true);
	want("G1 as the core sees it", ll_shard_conserved(got), true);
}

/* what a call may touch, byte for byte */
typedef struct Image
{
	LLShard		shard;
	LLReservation reservation;
} Image;

static Image
image_of(const LLShard *shard, const LLReservation *reservation)
{
	Image		image;

	memset(&image, 0, sizeof(image));
	memcpy(&image.shard, shard, sizeof(image.shard));
	memcpy(&image.reservation, reservation, sizeof(image.reservation));
	return image;
}

static void
want_as_it_was(const LLVerdict *v, const Image *before, const LLShard *shard,
			   const LLReservation *reservation)
{
	Image		after = image_of(shard, reservation);

	if (!took_effect(v))
		want("bytes changed by a call that took no effect",
			 memcmp(before, &after, sizeof(after)) != 0, false);
}

/* ---- reserve ------------------------------------------------------------ */

typedef struct Reserve
{
	const char *name;
	LLShard		before;
	LLUnits		units;
	LLTime		now;
	LLTime		deadline;		/* 0: none */
	LLVerdict	says;
	LLShard		after;			/* if it is admitted */
	LLTime		hold_ends;
	bool		quarantined;
} Reserve;

static const Reserve reserves[] = {
	{"G4: takes what is available", SHARD(100, 60, 20, 15, 5, 0), 40, 10, 0, ADMITTED,
	SHARD(100, 20, 60, 15, 5, 0), 110},
	{"G4: all of it", SHARD(100, 60, 20, 15, 5, 0), 50, 10, 0, ADMITTED,
	SHARD(100, 10, 70, 15, 5, 0), 110},
	{"G4: a hold ends with its shard at the latest", SHARD(100, 100, 0, 0, 0, 0), 1, 950, 0, ADMITTED,
	SHARD(100, 99, 1, 0, 0, 0), EXPIRES},
	{"G4: one instant before it has run out", SHARD(100, 100, 0, 0, 0, 0), 1, 999, 0, ADMITTED,
	SHARD(100, 99, 1, 0, 0, 0), EXPIRES},
	{"D9: before the deadline", SHARD(100, 100, 0, 0, 0, 0), 1, 10, 11, ADMITTED,
	SHARD(100, 99, 1, 0, 0, 0), 110},
	{"no wait is longer than time", SHARD(MAX, MAX, 0, 0, 0, 0), 50, 10, 0, ADMITTED,
	SHARD(MAX, MAX - 50, 50, 0, 0, 0), 110},

	/* each refusal stands before all that follow it */
	{"D9: at the deadline, before all others", SEALED(10, 0, 10, 0, 5), 51, EXPIRES, EXPIRES,
	WAITS(DEADLINE, NEVER), {0}, 0},
	{"B2: over the largest reservation", SEALED(10, 0, 10, 0, 5), 51, EXPIRES, 0,
	WAITS(LARGEST_RESERVATION, NEVER), {0}, 0},
	{"E1: a shard with excess", SEALED(10, 0, 10, 0, 5), 50, EXPIRES, 0, WAITS(EXCESS, OPERATOR), {0}, 0},
	{"E1: excess beside units that came back", SHARD(10, 5, 0, 5, 0, 1), 1, 10, 0,
	WAITS(EXCESS, OPERATOR), {0}, 0},
	{"G7: a shard that may be a copy", SEALED(10, 0, 0, 10, 0), 50, EXPIRES, 0, WAITS(RECOVERY, OPERATOR),
	{0}, 0, true},
	{"G7: even with units to give", SHARD(10, 10, 0, 0, 0, 0), 1, 10, 0, WAITS(RECOVERY, OPERATOR), {0}, 0, true},
	{"G6: a sealed one", SEALED(10, 0, 0, 10, 0), 50, EXPIRES, 0, WAITS(SEALED, OPERATOR), {0}, 0},
	{"G4: one that has run out, at that instant", SHARD(10, 10, 0, 0, 0, 0), 50, EXPIRES, 0,
	WAITS(SHARD_EXPIRED, OPERATOR), {0}, 0},
	{"D3: not enough, and all of it may come back", SHARD(100, 10, 40, 50, 0, 0), 50, 10, 0,
	WAITS(AVAILABLE, RELEASE), {0}, 0},
	{"D4: not enough, and it can't come back", SHARD(100, 10, 39, 50, 1, 0), 50, 10, 0,
	WAITS(AVAILABLE, OPERATOR), {0}, 0},
};

static void
test_reserves(void)
{
	for (int i = 0; i < LENGTH(reserves); i++)
	{
		const Reserve *t = &reserves[i];
		LLShard		shard = t->before;
		LLReservation made;
		LLReservation expected = {.state = LL_RESERVED, .reserved_units = t->units, .expires_at = t->hold_ends};
		LLLocalRequest request = {
			.units = t->units, .deadline = t->deadline == 0 ? LL_TIME_MAX : t->deadline,
			.largest_reservation = 50, .shard_expires_at = EXPIRES, .hold_ttl = HOLD,
			.quarantined = t->quarantined
		};
		Image		before;
		LLVerdict	v;

		memset(&made, 0x5a, sizeof(made));
		before = image_of(&shard, &made);
		v = ll_local_reserve(&shard, &request, t->now, &made);
		want_verdict(&v, &t->says);
		want_as_it_was(&v, &before, &shard, &made);
		want_shard(&shard, took_effect(&v) ? &t->after : &t->before);
		if (took_effect(&v))
			want_reservation(&made, &expected);
		row_ends(t->name);
	}
}

/* ---- settle ------------------------------------------------------------- */

typedef struct Settle
{
	const char *name;
	LLShard		before;
	LLReservation held;
	LLSettlement settlement;
	LLVerdict	says;
	LLShard		after;
	LLReservation ended;
} Settle;

#define BY(operation_, n)	{.actual = n, .operation = LL_OPERATION_##operation_, .same_receipt = true}

static const Settle settles[] = {
	{"D6: under", SHARD(100, 20, 60, 20, 0, 0), HELD(STARTED, 40), BY(SAME, 30), ADMITTED,
	SHARD(100, 30, 20, 50, 0, 0), ENDED(SETTLED, 40, 30, 0, 0)},
	{"D6: zero is a figure", SHARD(100, 20, 60, 20, 0, 0), HELD(STARTED, 40), BY(SAME, 0), ADMITTED,
	SHARD(100, 60, 20, 20, 0, 0), ENDED(SETTLED, 40, 0, 0, 0)},
	{"D6: exact", SHARD(100, 20, 60, 20, 0, 0), HELD(STARTED, 40), BY(SAME, 40), ADMITTED,
	SHARD(100, 20, 20, 60, 0, 0), ENDED(SETTLED, 40, 40, 0, 0)},
	{"D7: excess takes what is available first", SHARD(100, 20, 60, 20, 0, 0), HELD(STARTED, 40),
		BY(SAME, 55), ADMITTED,
	SHARD(100, 5, 20, 75, 0, 0), ENDED(SETTLED, 40, 55, 15, 0)},
	{"D7: to the last unit it is no debt", SHARD(100, 20, 60, 20, 0, 0), HELD(STARTED, 40),
		BY(SAME, 60), ADMITTED,
	SHARD(100, 0, 20, 80, 0, 0), ENDED(SETTLED, 40, 60, 20, 0)},
	{"D7: the rest is excess, beside the equation", SHARD(100, 20, 60, 20, 0, 3), HELD(STARTED, 40),
		BY(SAME, 61), ADMITTED,
	SHARD(100, 0, 20, 80, 0, 4), ENDED(SETTLED_WITH_DEBT, 40, 61, 21, 1)},
	{"G6: what comes back to a sealed shard is retired", SEALED(100, 60, 20, 20, 0), HELD(STARTED, 40),
		BY(SAME, 30), ADMITTED,
	SEALED(100, 20, 50, 30, 0), ENDED(SETTLED, 40, 30, 0, 0)},
	{"G6: and retired units cover no excess", SEALED(100, 60, 20, 20, 0), HELD(STARTED, 40),
		BY(SAME, 41), ADMITTED,
	SEALED(100, 20, 60, 20, 1), ENDED(SETTLED_WITH_DEBT, 40, 41, 1, 1)},
	{"D10: an unknown one, by its operation", SEALED(100, 60, 20, 20, 0), HELD(USAGE_UNKNOWN, 40),
		BY(SAME, 30), ADMITTED,
	SEALED(100, 20, 50, 30, 0), ENDED(SETTLED, 40, 30, 0, 0)},
	{"G5: one that a boot made unknown, by the receipt that binds it", SEALED(100, 60, 20, 20, 0),
		HELD(USAGE_UNKNOWN, 40), BY(FREE, 30), ADMITTED,
	SEALED(100, 20, 50, 30, 0), ENDED(SETTLED, 40, 30, 0, 0)},
	{"D6: again, the same figures", SHARD(100, 30, 20, 50, 0, 0), ENDED(SETTLED, 40, 30, 0, 0),
		BY(SAME, 30), REPLAYED, SHARD(100, 30, 20, 50, 0, 0), ENDED(SETTLED, 40, 30, 0, 0)},
	{"D6: again, other figures", SHARD(100, 30, 20, 50, 0, 0), ENDED(SETTLED, 40, 30, 0, 0),
		BY(SAME, 31), CONFLICT(FIGURES), SHARD(100, 30, 20, 50, 0, 0), ENDED(SETTLED, 40, 30, 0, 0)},
	{"D6: again, another receipt", SHARD(100, 30, 20, 50, 0, 0), ENDED(SETTLED, 40, 30, 0, 0),
		{.actual = 30, .operation = LL_OPERATION_SAME}, CONFLICT(FIGURES),
	SHARD(100, 30, 20, 50, 0, 0), ENDED(SETTLED, 40, 30, 0, 0)},
	{"D5: another operation", SHARD(100, 20, 60, 20, 0, 0), HELD(STARTED, 40), BY(OTHER, 30),
	CONFLICT(OPERATION), SHARD(100, 20, 60, 20, 0, 0), HELD(STARTED, 40)},
	{"D5: a started one is bound, so a free one is another", SHARD(100, 20, 60, 20, 0, 0),
		HELD(STARTED, 40), BY(FREE, 30), CONFLICT(OPERATION),
	SHARD(100, 20, 60, 20, 0, 0), HELD(STARTED, 40)},
	{"D5: one that is bound elsewhere", SEALED(100, 60, 20, 20, 0), HELD(USAGE_UNKNOWN, 40),
		BY(ELSEWHERE, 30), CONFLICT(OPERATION_ELSEWHERE),
	SEALED(100, 60, 20, 20, 0), HELD(USAGE_UNKNOWN, 40)},
	{"D6: never started", SHARD(100, 20, 60, 20, 0, 0), HELD(RESERVED, 40), BY(FREE, 30),
	REFUSED(NOT_STARTED), SHARD(100, 20, 60, 20, 0, 0), HELD(RESERVED, 40)},
	{"D6: released", SHARD(100, 60, 20, 20, 0, 0), HELD(RELEASED, 40), BY(FREE, 30),
	REFUSED(NOT_STARTED), SHARD(100, 60, 20, 20, 0, 0), HELD(RELEASED, 40)},
	{"D6: expired", SHARD(100, 60, 20, 20, 0, 0), HELD(EXPIRED, 40), BY(FREE, 30),
	REFUSED(NOT_STARTED), SHARD(100, 60, 20, 20, 0, 0), HELD(EXPIRED, 40)},
	{"A2: excess beyond int64 changes nothing", SHARD(100, 0, 40, 60, 0, 50), HELD(STARTED, 40),
		BY(SAME, MAX), OVERFLOWS, SHARD(100, 0, 40, 60, 0, 50), HELD(STARTED, 40)},
	{"A2: nor what was spent and the excess together", SHARD(100, 0, 40, 60, 0, 0), HELD(STARTED, 40),
		BY(SAME, MAX - 59), OVERFLOWS, SHARD(100, 0, 40, 60, 0, 0), HELD(STARTED, 40)},
	{"A2: up to there it is booked", SHARD(100, 0, 40, 60, 0, 40), HELD(STARTED, 40),
		BY(SAME, MAX - 100), ADMITTED,
	SHARD(100, 0, 0, 100, 0, MAX - 100), ENDED(SETTLED_WITH_DEBT, 40, MAX - 100, MAX - 140, MAX - 140)},
};

static void
test_settles(void)
{
	for (int i = 0; i < LENGTH(settles); i++)
	{
		const Settle *t = &settles[i];
		LLShard		shard = t->before;
		LLReservation reservation = t->held;
		Image		before = image_of(&shard, &reservation);
		LLVerdict	v = ll_local_settle(&shard, &reservation, &t->settlement);

		want_verdict(&v, &t->says);
		want_as_it_was(&v, &before, &shard, &reservation);
		want_shard(&shard, &t->after);
		want_reservation(&reservation, &t->ended);
		row_ends(t->name);
	}
}

/* ---- release and expire ------------------------------------------------- */

typedef struct Leave
{
	const char *name;
	LLShard		before;
	LLReservation held;
	LLTime		now;			/* 0: a release */
	LLVerdict	says;
	LLShard		after;
	LLState		ends;
} Leave;

static const Leave leaves[] = {
	{"D9: a release gives back", SHARD(100, 20, 60, 20, 0, 0), HELD(RESERVED, 40), 0, ADMITTED,
	SHARD(100, 60, 20, 20, 0, 0), LL_RELEASED},
	{"G6: to a sealed shard for good", SEALED(100, 60, 20, 20, 0), HELD(RESERVED, 40), 0, ADMITTED,
	SEALED(100, 20, 20, 60, 0), LL_RELEASED},
	{"D9: once", SHARD(100, 60, 20, 20, 0, 0), HELD(RELEASED, 40), 0, REPLAYED,
	SHARD(100, 60, 20, 20, 0, 0), LL_RELEASED},
	{"D9: not after the start", SHARD(100, 20, 60, 20, 0, 0), HELD(STARTED, 40), 0,
	REFUSED(ALREADY_STARTED), SHARD(100, 20, 60, 20, 0, 0), LL_STARTED},
	{"G5: nor what a boot made unknown", SHARD(100, 20, 60, 20, 0, 0), HELD(USAGE_UNKNOWN, 40), 0,
	REFUSED(ALREADY_STARTED), SHARD(100, 20, 60, 20, 0, 0), LL_USAGE_UNKNOWN},
	{"D9: nor after the end", SHARD(100, 60, 20, 20, 0, 0), HELD(EXPIRED, 40), 0,
	REFUSED(EXPIRED), SHARD(100, 60, 20, 20, 0, 0), LL_EXPIRED},
	{"D14: an expiry gives back", SHARD(100, 20, 60, 20, 0, 0), HELD(RESERVED, 40), ENDS, ADMITTED,
	SHARD(100, 60, 20, 20, 0, 0), LL_EXPIRED},
	{"G6: likewise for good", SEALED(100, 60, 20, 20, 0), HELD(RESERVED, 40), ENDS, ADMITTED,
	SEALED(100, 20, 20, 60, 0), LL_EXPIRED},
	{"D14: not before its time", SHARD(100, 20, 60, 20, 0, 0), HELD(RESERVED, 40), ENDS - 1,
	REFUSED(NOT_DUE), SHARD(100, 20, 60, 20, 0, 0), LL_RESERVED},
	{"D14: not what was started", SHARD(100, 20, 60, 20, 0, 0), HELD(STARTED, 40), ENDS,
	REFUSED(ALREADY_STARTED), SHARD(100, 20, 60, 20, 0, 0), LL_STARTED},
	{"D14: once", SHARD(100, 60, 20, 20, 0, 0), HELD(EXPIRED, 40), ENDS,
	REFUSED(EXPIRED), SHARD(100, 60, 20, 20, 0, 0), LL_EXPIRED},
};

static void
test_leaves(void)
{
	for (int i = 0; i < LENGTH(leaves); i++)
	{
		const Leave *t = &leaves[i];
		LLShard		shard = t->before;
		LLReservation reservation = t->held;
		Image		before = image_of(&shard, &reservation);
		LLVerdict	v = t->now == 0 ? ll_local_release(&shard, &reservation)
			: ll_local_expire(&shard, &reservation, t->now);

		want_verdict(&v, &t->says);
		want_as_it_was(&v, &before, &shard, &reservation);
		want_shard(&shard, &t->after);
		want("state", reservation.state, t->ends);
		row_ends(t->name);
	}
}

/* ---- seal and boot ------------------------------------------------------- */

static void
test_seal(void)
{
	LLShard		shard = SHARD(100, 40, 30, 20, 10, 7);
	LLShard		sealed = SEALED(100, 30, 20, 50, 7);

	ll_local_seal(&shard);
	want_shard(&shard, &sealed);
	row_ends("G6: a seal retires what is available, for good");
	ll_local_seal(&shard);
	want_shard(&shard, &sealed);
	row_ends("G6: again, it changes nothing");
}

static void
test_boot(void)
{
	for (int state = LL_RESERVED; state < LL_STATE_COUNT; state++)
	{
		LLReservation reservation = {.state = (LLState) state, .reserved_units = 5, .expires_at = ENDS};
		bool		open = state == LL_RESERVED || state == LL_STARTED;

		want("moved", ll_local_boot(&reservation), open);
		want("state", reservation.state, open ? LL_USAGE_UNKNOWN : state);
		want("units", reservation.reserved_units, 5);
		row_ends(ll_state_name((LLState) state));
	}
}

/* ---- G1 as a judge, and the table of movements --------------------------- */

static void
test_conserved(void)
{
	static const struct
	{
		const char *name;
		LLShard		shard;
		bool		good;
	}			cases[] = {
		{"G1: adds up", SHARD(100, 40, 30, 20, 10, 7), true},
		{"G1: at the end of bigint", SHARD(MAX, MAX, 0, 0, 0, MAX), true},
		{"G1: one too few", SHARD(100, 40, 30, 20, 9, 0), false},
		{"G1: one too many", SHARD(100, 40, 30, 20, 11, 0), false},
		{"G1: beyond bigint, from reserved", SHARD(MAX, MAX, MAX, 0, 0, 0), false},
		{"G1: from spent", SHARD(MAX, MAX, 0, 1, 0, 0), false},
		{"G1: from retired", SHARD(MAX, MAX, 0, 0, 1, 0), false},
		{"G1: nothing is negative: allocated", SHARD(-1, 0, 0, 0, 0, 0), false},
		{"G1: available", SHARD(10, -1, 11, 0, 0, 0), false},
		{"G1: reserved", SHARD(10, 11, -1, 0, 0, 0), false},
		{"G1: spent", SHARD(10, 11, 0, -1, 0, 0), false},
		{"G1: retired", SHARD(10, 11, 0, 0, -1, 0), false},
		{"G1: excess", SHARD(10, 10, 0, 0, 0, -1), false},
		{"G6: a sealed shard has nothing available",
		{.allocated = 10, .available = 1, .retired = 9, .sealed = true}, false},
	};

	for (int i = 0; i < LENGTH(cases); i++)
	{
		want("conserved", ll_shard_conserved(&cases[i].shard), cases[i].good);
		row_ends(cases[i].name);
	}
}

static void
test_movements(void)
{
	want("RESERVED to EXPIRED", ll_local_transition_allows(LL_RESERVED, LL_EXPIRED), true);
	want("RESERVED to USAGE_UNKNOWN", ll_local_transition_allows(LL_RESERVED, LL_USAGE_UNKNOWN), true);
	want("RESERVED to SETTLED", ll_local_transition_allows(LL_RESERVED, LL_SETTLED), false);
	want("USAGE_UNKNOWN to RESERVED", ll_local_transition_allows(LL_USAGE_UNKNOWN, LL_RESERVED), false);
	want("USAGE_UNKNOWN to STARTED", ll_local_transition_allows(LL_USAGE_UNKNOWN, LL_STARTED), false);
	want("STARTED to EXPIRED", ll_local_transition_allows(LL_STARTED, LL_EXPIRED), false);
	for (int from = LL_RESERVED; from < LL_STATE_COUNT; from++)
		for (int to = LL_RESERVED; to < LL_STATE_COUNT; to++)
			if (ll_transition_allows((LLState) from, (LLState) to) || ll_state_terminal((LLState) from))
				want("as the ledger has it", ll_local_transition_allows((LLState) from, (LLState) to),
					 ll_transition_allows((LLState) from, (LLState) to));
	row_ends("D1: two steps that only a gateway makes, and no other");
}

int
main(void)
{
	test_reserves();
	test_settles();
	test_leaves();
	test_seal();
	test_boot();
	test_conserved();
	test_movements();
	return done_testing();
}
