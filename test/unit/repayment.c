/*
 * Units that pay debt: the oldest budget first (E2).
 */
#include "fixture.h"

typedef struct Row
{
	const char *name;
	LLPair		before;
	LLUnits		units;
	LLPair		after;
	LLUnits		used;
} Row;

#define HEAD(...)	.head = {.generation = 7, COLUMNS(__VA_ARGS__), .line = 1}

static const Row rows[] = {
	{"no debt", {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 5, {HEAD(10, 0, 0, 10, 0, 0, 0, 0)}, 0},
	{"no units", {HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 2}, 0,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 2}, 0},
	{"its own debt: minted and repaid grow together",
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, 2, {HEAD(10, 2, 3, 0, 0, 13, 0, 2)}, 2},
	{"no more than it owes", {HEAD(10, 0, 3, 0, 0, 13, 0, 0)}, 9, {HEAD(10, 3, 3, 0, 0, 13, 0, 3)},
		3},
	{"what was repaid is not repaid again", {HEAD(10, 2, 3, 0, 0, 13, 0, 2)}, 9,
		{HEAD(10, 3, 3, 0, 0, 13, 0, 3)}, 1},
	{"older debt first", {HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 4}, 4,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_repaid = 4}, 4},
	{"older debt in part", {HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 4}, 3,
		{HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 1, .older_repaid = 3}, 3},
	{"then its own", {HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 4}, 6,
		{HEAD(10, 2, 3, 0, 0, 13, 0, 2), .older_repaid = 4}, 6},
	{"both in full", {HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 4, .older_repaid = 1}, 99,
		{HEAD(10, 3, 3, 0, 0, 13, 0, 3), .older_repaid = 5}, 7},
	{"the largest number", {HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_debt = MAX}, MAX,
		{HEAD(0, 0, 0, 0, 0, 0, 0, 0), .older_repaid = MAX}, MAX},
};

static const struct
{
	const char *name;
	LLPair		pair;
	LLUnits		units;
}			overflows[] = {
	{"A2: minted beyond bigint", {HEAD(0, MAX - 1, 1, 0, 0, MAX, 0, 0), .older_debt = 4}, 9},
	{"A2: older_repaid beyond bigint", {HEAD(10, 0, 3, 0, 0, 13, 0, 0), .older_debt = 4,
			.older_repaid = MAX - 3}, 9},
};

/* A closed budget's part of older_repaid. */
static const struct
{
	const char *name;
	LLUnits		repaid;
	LLBudget	before;
	LLUnits		left;
	LLBudget	after;
}			closed[] = {
	{"closed: nothing was repaid", 0, {COLUMNS(10, 0, 3, 0, 0, 13, 0, 0)}, 0,
		{COLUMNS(10, 0, 3, 0, 0, 13, 0, 0)}},
	{"closed: owes nothing", 5, {COLUMNS(10, 3, 3, 0, 0, 13, 0, 3)}, 5,
		{COLUMNS(10, 3, 3, 0, 0, 13, 0, 3)}},
	{"closed: in part", 2, {COLUMNS(10, 0, 3, 0, 0, 13, 0, 0)}, 0,
		{COLUMNS(10, 2, 3, 0, 0, 13, 0, 2)}},
	{"closed: in full, the rest is for the next", 5, {COLUMNS(10, 1, 3, 0, 0, 13, 0, 1)}, 3,
		{COLUMNS(10, 3, 3, 0, 0, 13, 0, 3)}},
	{"closed: its balance stays", 5, {COLUMNS(10, 0, 3, 4, 2, 7, 0, 0)}, 2,
		{COLUMNS(10, 3, 3, 4, 2, 7, 0, 3)}},
};

int
main(void)
{
	LLBudget	full = {COLUMNS(0, MAX - 1, 1, 0, 0, MAX, 0, 0)};
	LLPair		owes = {.older_repaid = 1};
	Bytes		before;

	for (int i = 0; i < LENGTH(rows); i++)
	{
		LLPair		pair = rows[i].before;
		LLUnits		used = -1;

		want("result", ll_repay_pair(&pair, rows[i].units, &used), true);
		want("used", used, rows[i].used);
		want_pair(&pair, &rows[i].after);
		row_ends(rows[i].name);
	}
	for (int i = 0; i < LENGTH(overflows); i++)
	{
		LLPair		pair;
		LLUnits		used = -1;

		memcpy(&pair, &overflows[i].pair, sizeof(pair));
		take_bytes(&before, &pair, NULL, NULL);
		want("result", ll_repay_pair(&pair, overflows[i].units, &used), false);
		want("used", used, -1);
		want_unchanged(&before, &pair, NULL, NULL);
		row_ends(overflows[i].name);
	}
	for (int i = 0; i < LENGTH(closed); i++)
	{
		LLPair		pair = {.older_repaid = closed[i].repaid, .older_debt = 6};
		LLBudget	budget = closed[i].before;

		want("result", ll_repay_closed(&pair, &budget), true);
		want("left", pair.older_repaid, closed[i].left);
		want("older_debt", pair.older_debt, 6);
		want_budget("closed", &budget, &closed[i].after);
		row_ends(closed[i].name);
	}
	take_bytes(&before, &owes, &full, NULL);
	want("result", ll_repay_closed(&owes, &full), false);
	want_unchanged(&before, &owes, &full, NULL);
	row_ends("A2: closed: minted beyond bigint");
	return done_testing();
}
