/*
 * The closed lists of what a call can answer: never reordered, never reused.
 */
#include "fixture.h"

/* In their order: word, outcome, kind of wait where it is fixed, rule. */
static const struct
{
	const char *name;
	const char *outcome;
	const char *wait;
	const char *rule;
}			dimensions[] = {
	{"", "ACCEPTED", "", "D2"},
	{"no_policy", "REFUSED", "operator", "B2"},
	{"region", "REFUSED", "never", "B2"},
	{"estimator", "REFUSED", "never", "B2"},
	{"deadline", "REFUSED", "never", "D9"},
	{"draining", "REFUSED", "operator", "B6"},
	{"frozen", "REFUSED", "operator", "D8"},
	{"largest_reservation", "REFUSED", "never", "B2"},
	{"cap", "REFUSED", "never", "B2"},
	{"largest_outstanding", "REFUSED", "release", "C4"},
	{"debt", "REFUSED", "refill", "E1"},
	{"available", "REFUSED", "refill", "D3"},
	{"not_started", "REFUSED", "", "D6"},
	{"already_started", "REFUSED", "", "D9"},
	{"expired", "REFUSED", "", "D5"},
	{"released", "REFUSED", "", "D9"},
	{"settled", "REFUSED", "", "D6"},
	{"not_due", "REFUSED", "", "D14"},
	{"request", "CONFLICT", "", "D2"},
	{"operation", "CONFLICT", "", "D5"},
	{"operation_elsewhere", "CONFLICT", "", "D5"},
	{"figures", "CONFLICT", "", "D6"},
	{"reservation", "UNKNOWN", "", "D11"},
	{"pair", "UNKNOWN", "", "B3"},
	{"ttl", "REFUSED", "never", "D13"},
	{"closed_budget", "REFUSED", "never", "D13"},
	{"progress", "REFUSED", "", "D10"},
	{"extension", "CONFLICT", "", "D13"},
	{"grant", "CONFLICT", "", "E3"},
	{"require_all", "REFUSED", "refill", "J2"},
	{"opened", "REFUSED", "never", "B2"},
	{"shadow", "UNENFORCED", "", "B7"},
	{"emergency_mode", "REFUSED", "operator", "G2"},
	{"emergency_share", "REFUSED", "operator", "G2"},
	{"recovery", "REFUSED", "operator", "G7"},
	{"standby", "REFUSED", "operator", "G2"},
	{"gateway", "REFUSED", "operator", "G2"},
	{"boot_epoch", "REFUSED", "operator", "G5"},
	{"fence", "REFUSED", "", "G4"},
	{"not_committed", "REFUSED", "", "G8"},
	{"envelope", "REFUSED", "", "G3"},
	{"shard_expired", "REFUSED", "operator", "G4"},
	{"sealed", "REFUSED", "operator", "G6"},
	{"excess", "REFUSED", "operator", "E1"},
	{"no_shard", "REFUSED", "operator", "G4"},
	{"sequence", "REFUSED", "", "G6"},
	{"conservation", "REFUSED", "", "G1"},
	{"falls", "REFUSED", "", "G6"},
	{"receipts", "REFUSED", "", "G6"},
	{"shard", "CONFLICT", "", "G2"},
	{"report", "CONFLICT", "", "G6"},
	{"emergency_shard", "UNKNOWN", "", "G6"},
};

static const char *const outcomes[] = {"ACCEPTED", "REFUSED", "CONFLICT", "UNKNOWN", "UNENFORCED"};
static const char *const waits[] = {"", "refill", "release", "operator", "never"};

static bool
same(const char *a, const char *b)
{
	return strcmp(a != NULL ? a : "", b) == 0;
}

int
main(void)
{
	ok(LENGTH(outcomes) == LL_OUTCOME_COUNT, "all outcomes are listed here");
	for (int i = 0; i < LENGTH(outcomes); i++)
		ok(same(ll_outcome_name((LLOutcome) i), outcomes[i]), "outcome %d is %s", i, outcomes[i]);

	ok(LENGTH(waits) == LL_WAIT_COUNT, "all kinds of wait are listed here");
	for (int i = 0; i < LENGTH(waits); i++)
		ok(same(ll_wait_name((LLWait) i), waits[i]), "wait %d is '%s'", i, waits[i]);

	ok(LENGTH(dimensions) == LL_DIMENSION_COUNT, "all dimensions are listed here");
	for (int i = 0; i < LENGTH(dimensions); i++)
	{
		const LLDimensionInfo *info = ll_dimension_info((LLDimension) i);

		ok(same(info->name, dimensions[i].name) &&
		   same(ll_outcome_name(info->outcome), dimensions[i].outcome) &&
		   same(ll_wait_name(info->wait), dimensions[i].wait) &&
		   same(info->rule, dimensions[i].rule) && info->meaning != NULL,
		   "dimension %d is '%s': %s, wait '%s', %s", i, dimensions[i].name,
		   dimensions[i].outcome, dimensions[i].wait, dimensions[i].rule);
	}
	return done_testing();
}
