/*
 * What has been kept long enough, and what may be forgotten of a budget (D15).
 */
#include "fixture.h"

static const struct
{
	const char *name;
	LLTime		ended_at;
	LLTime		retention;
	LLTime		now;
	bool		due;
}			instants[] = {
	{"a unit of time too early", 100, 10, 109, false},
	{"at the instant", 100, 10, 110, true},
	{"later", 100, 10, 1000, true},
	{"nothing to be kept for", 100, 0, 100, true},
	{"the clock stepped back behind the end", 100, 10, 99, false},
	{"the longest retention", 100, MAX, MAX - 1, false},
	{"before the origin of time", -1000, 10, -990, true},
	{"from before the origin to after it", -1000, 2000, 999, false},
};

static const struct
{
	const char *name;
	LLUnits		spent;
	LLUnits		purged;
	LLUnits		units;
	bool		booked;
}			sums[] = {
	{"a part", 10, 0, 4, true},
	{"the rest", 10, 4, 6, true},
	{"nothing", 10, 10, 0, true},
	{"more than was spent", 10, 4, 7, false},
	{"of nothing", 0, 0, 1, false},
	{"the largest sum", MAX, 1, MAX - 1, true},
	{"above the largest sum", MAX, 2, MAX - 1, false},
};

static const struct
{
	const char *name;
	LLBudget	budget;
	bool		may_go;
}			budgets[] = {
	{"nothing ever happened in it", {COLUMNS(10, 0, 0, 10, 0, 0, 0, 0)}, true},
	{"all that it spent is purged", {COLUMNS(10, 0, 0, 3, 0, 7, 0, 0), .purged_spent = 7}, true},
	{"a unit of it is told by a row", {COLUMNS(10, 0, 0, 3, 0, 7, 0, 0), .purged_spent = 6}, false},
	{"it holds", {COLUMNS(10, 0, 0, 9, 1, 0, 0, 0)}, false},
	{"it owes", {COLUMNS(10, 0, 2, 0, 0, 12, 0, 0), .purged_spent = 12}, false},
	{"it owes the rest", {COLUMNS(10, 1, 2, 0, 0, 12, 0, 1), .purged_spent = 12}, false},
	{"it has repaid", {COLUMNS(10, 2, 2, 0, 0, 12, 0, 2), .purged_spent = 12}, true},
	{"some of it went to a shard", {COLUMNS(10, 0, 0, 9, 0, 0, 1, 0)}, false},
};

int
main(void)
{
	for (int i = 0; i < LENGTH(instants); i++)
		ok(ll_purge_due(instants[i].ended_at, instants[i].retention, instants[i].now) ==
		   instants[i].due, "due: %s", instants[i].name);
	for (int i = 0; i < LENGTH(sums); i++)
	{
		LLBudget	budget = {.spent = sums[i].spent, .purged_spent = sums[i].purged};
		LLUnits		after = sums[i].purged + (sums[i].booked ? sums[i].units : 0);

		ok(ll_purge_spent(&budget, sums[i].units) == sums[i].booked &&
		   budget.spent == sums[i].spent && budget.purged_spent == after,
		   "spent: %s", sums[i].name);
	}
	for (int i = 0; i < LENGTH(budgets); i++)
		ok(conserved(&budgets[i].budget) &&
		   ll_purge_budget(&budgets[i].budget) == budgets[i].may_go,
		   "budget: %s", budgets[i].name);
	return done_testing();
}
