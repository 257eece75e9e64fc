/*
 * What must hold whenever a budget is written (C1, C4, B5, E2).
 */
#include "fixture.h"

static const LLPolicy continuous = {
	.generation = 1, .refill = LL_REFILL_CONTINUOUS, .cap = 10, .refill_units = 3,
	.refill_interval = 2
};
static const LLPolicy window = {.generation = 1, .refill = LL_REFILL_WINDOW, .cap = 10};
static const LLPolicy none = {.generation = 1, .refill = LL_REFILL_NONE, .cap = 10};

static const struct
{
	const char *name;
	LLBudget	budget;
	bool		conserved;
	LLUnits		debt;
}			budgets[] = {
	{"nothing at all", {COLUMNS(0, 0, 0, 0, 0, 0, 0, 0)}, true, 0},
	{"every column", {COLUMNS(10, 7, 5, 4, 3, 9, 2, 4)}, true, 1},
	{"a unit too many came", {COLUMNS(11, 7, 5, 4, 3, 9, 2, 4)}, false, 1},
	{"a unit too many went", {COLUMNS(10, 7, 5, 4, 3, 10, 2, 4)}, false, 1},
	{"opening negative", {COLUMNS(-1, 2, 0, 1, 0, 0, 0, 0)}, false, 0},
	{"minted negative", {COLUMNS(2, -1, 0, 1, 0, 0, 0, 0)}, false, 0},
	{"overdraft_issued negative", {COLUMNS(2, 0, -1, 1, 0, 0, 0, 0)}, false, -1},
	{"available negative", {COLUMNS(0, 0, 0, -1, 1, 0, 0, 0)}, false, 0},
	{"reserved negative", {COLUMNS(0, 0, 0, 1, -1, 0, 0, 0)}, false, 0},
	{"spent negative", {COLUMNS(0, 0, 0, 1, 0, -1, 0, 0)}, false, 0},
	{"retired negative", {COLUMNS(0, 0, 0, 1, 0, 0, -1, 0)}, false, 0},
	{"overdraft_repaid negative", {COLUMNS(0, 0, 0, 1, 0, 0, 0, -1)}, false, 1},
	{"more repaid than issued", {COLUMNS(1, 0, 0, 0, 0, 0, 0, 1)}, false, -1},
	{"as much repaid as issued", {COLUMNS(1, 0, 1, 0, 0, 1, 0, 1)}, true, 0},
	{"burned negative", {COLUMNS(1, 0, 0, 1, 0, 0, 0, 0), .burned = -1}, false, 0},
	{"deficit negative", {COLUMNS(1, 0, 0, 1, 0, 0, 0, 0), .deficit = -1}, false, 0},
	{"purged negative", {COLUMNS(1, 0, 0, 1, 0, 0, 0, 0), .purged_spent = -1}, false, 0},
	{"all is purged", {COLUMNS(1, 0, 0, 0, 0, 1, 0, 0), .purged_spent = 1}, true, 0},
	{"more purged than spent", {COLUMNS(2, 0, 0, 1, 0, 1, 0, 0), .purged_spent = 2}, false, 0},
	{"the largest number", {COLUMNS(MAX, 0, 0, MAX, 0, 0, 0, 0)}, true, 0},
	{"the largest sums", {COLUMNS(MAX - 1, 1, 0, 0, 1, MAX - 1, 0, 0)}, true, 0},
	{"sums beyond bigint, equal", {COLUMNS(MAX, 1, 0, MAX, 1, 0, 0, 0)}, false, 0},
	{"sums beyond bigint, from issued", {COLUMNS(MAX, 0, 1, MAX, 0, 1, 0, 0)}, false, 1},
	{"sums beyond bigint, from reserved", {COLUMNS(MAX, 0, 0, MAX, 1, 0, 0, 0)}, false, 0},
	{"sums beyond bigint, from spent", {COLUMNS(MAX, 0, 0, MAX, 0, 1, 0, 0)}, false, 0},
	{"sums beyond bigint, from repaid", {COLUMNS(MAX - 1, 0, 1, MAX, 0, 0, 0, 1)}, false, 0},
	{"sums beyond bigint, from retired", {COLUMNS(MAX, 0, 0, MAX, 0, 0, 2, 0)}, false, 0},
	{"the largest debt", {COLUMNS(0, 0, MAX, 0, 0, MAX, 0, 0)}, true, MAX},
};

#define SOUND_HEAD	.generation = 1, COLUMNS(10, 0, 0, 4, 6, 0, 0, 0), .line = 1

static const struct
{
	const char *name;
	const LLPolicy *policy;
	LLPair		pair;
	bool		sound;
}			pairs[] = {
	{"sound", &continuous, {.head = {SOUND_HEAD}}, true},
	{"not conserved", &continuous, {.head = {.generation = 1, COLUMNS(10, 0, 0, 4, 5, 0, 0, 0)}},
		false},
	{"another generation", &continuous, {.head = {.generation = 2,
		COLUMNS(4, 0, 0, 4, 0, 0, 0, 0)}}, false},
	{"at the cap", &continuous, {.head = {.generation = 1, COLUMNS(10, 0, 0, 10, 0, 0, 0, 0)}},
		true},
	{"C4: above the cap", &continuous, {.head = {.generation = 1,
		COLUMNS(11, 0, 0, 11, 0, 0, 0, 0)}}, false},
	{"older_debt negative", &continuous, {.head = {SOUND_HEAD}, .older_debt = -1}, false},
	{"older_reserved negative", &continuous, {.head = {SOUND_HEAD}, .older_reserved = -1}, false},
	{"repayments not booked", &continuous, {.head = {SOUND_HEAD}, .older_repaid = 1}, false},
	{"E2: available beside an older debt", &continuous, {.head = {SOUND_HEAD}, .older_debt = 1},
		false},
	{"E2: available beside its own debt", &continuous,
		{.head = {.generation = 1, COLUMNS(10, 0, 1, 1, 0, 10, 0, 0)}}, false},
	{"E2: a debt repaid leaves available", &continuous,
		{.head = {.generation = 1, COLUMNS(10, 0, 1, 1, 0, 9, 0, 1)}}, true},
	{"E2: debt and nothing available", &continuous,
		{.head = {.generation = 1, COLUMNS(10, 0, 1, 0, 0, 11, 0, 0)}, .older_debt = 3}, true},
	{"B5: a deficit of a whole window", &window,
		{.head = {.generation = 1, .deficit = 2, .whole = true}}, true},
	{"B5: a deficit outside one", &window, {.head = {.generation = 1, .deficit = 2}}, false},
	{"B5: a deficit beside available", &window,
		{.head = {.generation = 1, COLUMNS(1, 0, 0, 1, 0, 0, 0, 0), .deficit = 2, .whole = true}},
		false},
	{"C4: a fraction", &continuous, {.head = {SOUND_HEAD}, .remainder = 1}, true},
	{"C4: a fraction that is a unit", &continuous, {.head = {SOUND_HEAD}, .remainder = 2}, false},
	{"C4: a fraction below zero", &continuous, {.head = {SOUND_HEAD}, .remainder = -1}, false},
	{"C4: a fraction of a window", &window, {.head = {SOUND_HEAD}, .remainder = 1}, false},
	{"C4: a fraction without refill", &none, {.head = {SOUND_HEAD}, .remainder = 1}, false},
};

static const struct
{
	LLUnits		older;
	LLUnits		issued;
	LLUnits		repaid;
	LLUnits		debt;
}			debts[] = {
	{0, 0, 0, 0}, {3, 0, 0, 3}, {0, 5, 1, 4}, {3, 5, 1, 7}, {MAX, 0, 0, MAX}, {0, MAX, 0, MAX},
	{MAX - 1, 1, 0, MAX}, {MAX, 1, 0, MAX}, {MAX, MAX, 0, MAX}
};

int
main(void)
{
	for (int i = 0; i < LENGTH(budgets); i++)
		ok(ll_budget_conserved(&budgets[i].budget) == budgets[i].conserved &&
		   ll_budget_debt(&budgets[i].budget) == budgets[i].debt,
		   "budget: %s", budgets[i].name);
	for (int i = 0; i < LENGTH(pairs); i++)
		ok(ll_pair_sound(&pairs[i].pair, pairs[i].policy) == pairs[i].sound,
		   "pair: %s", pairs[i].name);
	for (int i = 0; i < LENGTH(debts); i++)
	{
		LLPair		pair = {
			.head = {.overdraft_issued = debts[i].issued, .overdraft_repaid = debts[i].repaid},
			.older_debt = debts[i].older
		};

		ok(ll_pair_debt(&pair) == debts[i].debt, "debt of a pair, capped: %lld",
		   (long long) debts[i].debt);
	}
	return done_testing();
}
