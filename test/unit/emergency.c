/*
 * Shards on the side of the ledger: what leaves the pair, and what comes back (G2, G6, B8).
 */
#include "fixture.h"

/* cap 100, hard limit 200, maximum overdraft 5; the second has windows */
static const LLPolicy policy = {
	.generation = 7, .refill = LL_REFILL_NONE, .cap = 100, .hard_limit = 200,
	.maximum_overdraft = 5
};

#define HEAD(...)	.head = {.generation = 7, .line = 2, COLUMNS(__VA_ARGS__)}
#define FULL		{HEAD(100, 0, 0, 100, 0, 0, 0, 0)}

/* ---- issue --------------------------------------------------------------- */

typedef struct Issued
{
	const char *name;
	LLPair		before;
	LLIssue		issue;
	LLVerdict	says;
	LLPair		after;			/* of an admission; else as before */
} Issued;

static const Issued issues[] = {
	{"G2: available goes into the shard", FULL, {.units = 40, .largest_share = 50}, ADMITTED,
		{HEAD(100, 0, 0, 60, 0, 0, 40, 0)}},
	{"G2: the largest share", FULL, {.units = 50, .largest_share = 50}, ADMITTED,
		{HEAD(100, 0, 0, 50, 0, 0, 50, 0)}},
	{"G2: a unit more", FULL, {.units = 51, .largest_share = 50}, REFUSED(EMERGENCY_SHARE)},
	{"G2: what is out counts", FULL, {.units = 11, .largest_share = 50, .outstanding = 40},
		REFUSED(EMERGENCY_SHARE)},
	{"G2: and leaves the rest", FULL, {.units = 10, .largest_share = 50, .outstanding = 40}, ADMITTED,
		{HEAD(100, 0, 0, 90, 0, 0, 10, 0)}},
	{"G2: more is out than a new policy allows", FULL, {.units = 1, .largest_share = 50, .outstanding = 60},
		REFUSED(EMERGENCY_SHARE)},
	{"G2: all of it", FULL, {.units = 100, .largest_share = 100}, ADMITTED,
		{HEAD(100, 0, 0, 0, 0, 0, 100, 0)}},
	{"G2: no mode, no shard", FULL, {.units = 1}, REFUSED(EMERGENCY_MODE)},
	{"B6: draining", FULL, {.units = 1, .largest_share = 50, .draining = true}, REFUSED(DRAINING)},
	{"B2: above the cap", FULL, {.units = 101, .largest_share = MAX}, REFUSED(CAP)},
	{"D8: a frozen pair", {HEAD(100, 0, 0, 100, 0, 0, 0, 0), .frozen = true},
		{.units = 1, .largest_share = 50}, REFUSED(FROZEN)},
	{"D8: a frozen route", FULL, {.units = 1, .largest_share = 50, .route_frozen = true}, REFUSED(FROZEN)},
	{"E1: debt", {HEAD(100, 0, 1, 0, 0, 101, 0, 0)}, {.units = 1, .largest_share = 50}, REFUSED(DEBT)},
	{"E1: debt of an older budget", {HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = 1},
		{.units = 1, .largest_share = 50}, REFUSED(DEBT)},
	{"G2: not enough available", {HEAD(100, 0, 0, 9, 91, 0, 0, 0)}, {.units = 10, .largest_share = 50},
		REFUSED(AVAILABLE)},
};

static void
run_issues(void)
{
	for (int i = 0; i < LENGTH(issues); i++)
	{
		const Issued *t = &issues[i];
		LLPair		pair = t->before;
		LLVerdict	said = ll_issue_shard(&pair, &policy, &t->issue);
		const LLPair *after = t->says.outcome == LL_ACCEPTED ? &t->after : &t->before;

		want("outcome", said.outcome, t->says.outcome);
		want("dimension", said.dimension, t->says.dimension);
		want_budget("head", &pair.head, &after->head);
		want("conserved", conserved(&pair.head), true);
		row_ends(t->name);
	}
}

/* ---- reconcile ----------------------------------------------------------- */

#define SHARD(a, r, s, t, x)	.allocated = 100, .available = a, .reserved = r, .spent = s, \
	.retired = t, .excess = x
#define SEALED					.sealed = true

typedef struct Reported
{
	const char *name;
	LLPair		before;
	LLIssuedShard issued;
	LLShard		report;
	LLUnits		receipted;
	bool		breach;
	LLVerdict	says;
	LLPair		after;
	LLReconciled done;
	LLUnits		confirmed;		/* of the shard, after it */
	bool		settled;
} Reported;

/* the pair gave 100 of 100 away, and has been refilled with 20 by an operator */
#define OUT		{HEAD(100, 20, 0, 20, 0, 0, 100, 0)}
#define NEW		{.line = 2, .last = {SHARD(100, 0, 0, 0, 0)}}

static const Reported reports[] = {
	{"G6: before the seal nothing comes back", OUT, NEW, {SHARD(30, 10, 60, 0, 0)}, 60, false, ADMITTED,
		OUT, {0, 0, 0}, 0, false},
	{"G6: not even what is said to be retired", OUT, NEW, {SHARD(20, 10, 60, 10, 0)}, 60, false, ADMITTED,
		OUT, {0, 0, 0}, 0, false},
	{"G6: the seal confirms what was available", OUT, NEW, {SHARD(0, 10, 60, 30, 0), SEALED}, 60, false,
		ADMITTED, {HEAD(100, 50, 0, 50, 0, 0, 100, 0)}, {0, 30, 30}, 30, false},
	{"G6: not while receipts are missing", OUT, NEW, {SHARD(0, 10, 60, 30, 0), SEALED}, 59, false,
		ADMITTED, OUT, {0, 0, 0}, 0, false},
	{"G6: they come with the next report", OUT,
		{.line = 2, .last = {SHARD(0, 10, 60, 30, 0), SEALED}, .receipted = 59},
		{SHARD(0, 10, 60, 30, 0), SEALED}, 1, false,
		ADMITTED, {HEAD(100, 50, 0, 50, 0, 0, 100, 0)}, {0, 30, 30}, 30, false},
	{"G6: only the growth", {HEAD(100, 50, 0, 50, 0, 0, 100, 0)},
		{.line = 2, .last = {SHARD(0, 10, 60, 30, 0), SEALED}, .receipted = 60, .confirmed = 30, .reminted = 30},
		{SHARD(0, 0, 64, 36, 0), SEALED}, 4, false,
		ADMITTED, {HEAD(100, 56, 0, 56, 0, 0, 100, 0)}, {0, 6, 6}, 36, true},
	{"G6: within the cap, the rest is burned", {HEAD(100, 90, 0, 90, 0, 0, 100, 0)}, NEW,
		{SHARD(0, 0, 60, 40, 0), SEALED}, 60, false,
		ADMITTED, {.head = {.generation = 7, .line = 2, COLUMNS(100, 100, 0, 100, 0, 0, 100, 0), .burned = 30}},
		{0, 40, 10}, 40, true},
	{"G6: debt first", {HEAD(100, 0, 30, 0, 0, 30, 100, 0)}, NEW, {SHARD(0, 0, 60, 40, 0), SEALED}, 60, false,
		ADMITTED, {HEAD(100, 40, 30, 10, 0, 30, 100, 30)}, {0, 40, 40}, 40, true},
	{"C5: a window that ended lapses", {.head = {.generation = 7, .line = 3, COLUMNS(100, 0, 0, 50, 0, 50, 0, 0)}},
		NEW, {SHARD(0, 0, 60, 40, 0), SEALED}, 60, false,
		ADMITTED, {.head = {.generation = 7, .line = 3, COLUMNS(100, 0, 0, 50, 0, 50, 0, 0)}},
		{0, 40, 0}, 40, true},
	{"D7: excess takes what is available", OUT, NEW, {SHARD(0, 0, 100, 0, 15)}, 115, false,
		ADMITTED, {HEAD(100, 20, 0, 5, 0, 15, 100, 0)}, {15, 0, 0}, 0, true},
	{"D7: and makes debt of the rest", OUT, NEW, {SHARD(0, 0, 100, 0, 25)}, 125, false,
		ADMITTED, {HEAD(100, 20, 5, 0, 0, 25, 100, 0)}, {25, 0, 0}, 0, true},
	{"D8: beyond the maximum overdraft it freezes", OUT, NEW, {SHARD(0, 0, 100, 0, 26)}, 126, false,
		ADMITTED, {HEAD(100, 20, 6, 0, 0, 26, 100, 0), .frozen = true}, {26, 0, 0}, 0, true},
	{"D8: an execution beyond its hard limit, too", OUT, NEW, {SHARD(40, 0, 60, 0, 0)}, 60, true,
		ADMITTED, {HEAD(100, 20, 0, 20, 0, 0, 100, 0), .frozen = true}, {0, 0, 0}, 0, false},
	{"D7: only the growth of it", {HEAD(100, 20, 0, 5, 0, 15, 100, 0)},
		{.line = 2, .last = {SHARD(0, 0, 100, 0, 15)}, .receipted = 115}, {SHARD(0, 0, 100, 0, 17)}, 2, false,
		ADMITTED, {HEAD(100, 20, 0, 3, 0, 17, 100, 0)}, {2, 0, 0}, 0, true},
	{"G6: excess is booked before units come back", {HEAD(100, 0, 0, 0, 0, 0, 100, 0)}, NEW,
		{SHARD(0, 0, 60, 40, 4), SEALED}, 64, false,
		ADMITTED, {HEAD(100, 40, 4, 36, 0, 4, 100, 4)}, {4, 40, 40}, 40, true},
	{"G6: written off, nothing is minted", OUT, {.line = 2, .last = {SHARD(100, 0, 0, 0, 0)}, .written_off = true},
		{SHARD(0, 0, 60, 40, 3), SEALED}, 63, false,
		ADMITTED, {HEAD(100, 20, 0, 17, 0, 3, 100, 0)}, {3, 0, 0}, 0, true},
	{"B8: the old limiter's units come back without a seal", OUT,
		{.line = 2, .last = {SHARD(100, 0, 0, 0, 0)}, .legacy = true}, {SHARD(50, 0, 20, 30, 0)}, 20, false,
		ADMITTED, {HEAD(100, 50, 0, 50, 0, 0, 100, 0)}, {0, 30, 30}, 30, false},

	/* refused, and nothing moves */
	{"G1: too little", OUT, NEW, {SHARD(0, 10, 60, 29, 0), SEALED}, 60, false, REFUSED(CONSERVATION)},
	{"G1: too much", OUT, NEW, {SHARD(0, 10, 60, 31, 0), SEALED}, 60, false, REFUSED(CONSERVATION)},
	{"G1: another allocation", OUT, NEW,
		{.allocated = 101, .available = 101}, 0, false, REFUSED(CONSERVATION)},
	{"G1: sealed with units available", OUT, NEW, {SHARD(10, 0, 60, 30, 0), SEALED}, 60, false,
		REFUSED(CONSERVATION)},
	{"G1: a sum beyond bigint", OUT, {.line = 2, .last = {.allocated = MAX, .available = MAX}},
		{.allocated = MAX, .available = MAX, .reserved = MAX}, 0, false, REFUSED(CONSERVATION)},
	{"G6: spent falls", OUT, {.line = 2, .last = {SHARD(0, 0, 60, 40, 0)}}, {SHARD(0, 0, 59, 41, 0)}, 0, false,
		REFUSED(FALLS)},
	{"G6: retired falls", OUT, {.line = 2, .last = {SHARD(0, 0, 60, 40, 0)}}, {SHARD(0, 0, 61, 39, 0)}, 0, false,
		REFUSED(FALLS)},
	{"G6: excess falls", OUT, {.line = 2, .last = {SHARD(0, 0, 60, 40, 2)}}, {SHARD(0, 0, 60, 40, 1)}, 0, false,
		REFUSED(FALLS)},
	{"G6: a seal is taken back", OUT, {.line = 2, .last = {SHARD(0, 0, 60, 40, 0), SEALED}},
		{SHARD(0, 0, 60, 40, 0)}, 0, false, REFUSED(FALLS)},
	{"G6: receipts beyond what was used", OUT, NEW, {SHARD(0, 10, 60, 30, 0), SEALED}, 61, false,
		REFUSED(RECEIPTS)},
};

static void
run_reports(void)
{
	for (int i = 0; i < LENGTH(reports); i++)
	{
		const Reported *t = &reports[i];
		LLPair		pair = t->before;
		LLIssuedShard issued = t->issued;
		LLReconciled done = {0, 0, 0};
		LLVerdict	said = ll_reconcile_shard(&pair, &policy, &issued, &t->report, t->receipted,
											  t->breach, &done);
		bool		accepted = t->says.outcome == LL_ACCEPTED;
		const LLPair *after = accepted ? &t->after : &t->before;

		want("outcome", said.outcome, t->says.outcome);
		want("dimension", said.dimension, t->says.dimension);
		want("overflow", said.overflow, false);
		want_budget("head", &pair.head, &after->head);
		want("frozen", pair.frozen, after->frozen);
		want("conserved", conserved(&pair.head), true);
		WANT("done", &done, &t->done, excess);
		WANT("done", &done, &t->done, confirmed);
		WANT("done", &done, &t->done, reminted);
		want("confirmed", issued.confirmed, accepted ? t->confirmed : t->issued.confirmed);
		if (accepted)
		{
			want("settled", ll_shard_settled(&issued), t->settled);
			want("receipted", issued.receipted, t->issued.receipted + t->receipted);
			want("reported", memcmp(&issued.last, &t->report, sizeof(LLShard)), 0);
		}
		else
			want("unchanged", memcmp(&issued, &t->issued, sizeof(issued)), 0);
		row_ends(t->name);
	}
}

/* A sum that would leave bigint: the caller raises an error, and nothing has moved. */
typedef struct Overflow
{
	const char *name;
	LLPair		before;
	LLIssuedShard issued;
	LLShard		report;
	LLUnits		receipted;
} Overflow;

static const Overflow overflows[] = {
	{"A2: an excess beyond bigint", {HEAD(100, 0, MAX - 110, 0, 0, MAX - 110, 100, 0)}, NEW,
		{SHARD(0, 0, 100, 0, 200)}, 300},
	{"A2: spent and excess, together beyond bigint", OUT, NEW, {SHARD(0, 0, 100, 0, MAX)}, 0},
	{"A2: receipts beyond bigint", OUT, {.line = 2, .last = {SHARD(0, 0, 100, 0, 0)}, .receipted = 1},
		{SHARD(0, 0, 100, 0, 0)}, MAX},
	{"A2: what is burned, beyond bigint",
		{.head = {.generation = 7, .line = 2, COLUMNS(200, 0, 0, 100, 0, 0, 100, 0), .burned = MAX}}, NEW,
		{SHARD(0, 0, 60, 40, 0), SEALED}, 60},
};

static void
run_overflows(void)
{
	for (int i = 0; i < LENGTH(overflows); i++)
	{
		const Overflow *t = &overflows[i];
		LLPair		pair = t->before;
		LLIssuedShard issued = t->issued;
		LLReconciled done = {0, 0, 0};

		want("overflow", ll_reconcile_shard(&pair, &policy, &issued, &t->report, t->receipted, false,
											&done).overflow, true);
		want_budget("head", &pair.head, &t->before.head);
		want("unchanged", memcmp(&issued, &t->issued, sizeof(issued)), 0);
		row_ends(t->name);
	}
}

/* What the pair has minted and repaid may leave bigint together; what a report adds is counted apart. */
static void
run_counts(void)
{
	const LLUnits much = MAX / 4 * 3;
	LLPair		pair = {HEAD(0, much, 0, 0, 0, much - 100, 100, 0), .older_repaid = much};
	LLIssuedShard issued = NEW;
	const LLShard report = {SHARD(0, 0, 60, 40, 0), SEALED};
	LLReconciled done = {0, 0, 0};

	want("outcome", ll_reconcile_shard(&pair, &policy, &issued, &report, 60, false, &done).outcome, LL_ACCEPTED);
	want("reminted", done.reminted, 40);
	row_ends("A2: minted and repaid, together beyond bigint");
}

int
main(void)
{
	run_issues();
	run_reports();
	run_overflows();
	run_counts();
	return done_testing();
}
