/*
 * call.c
 *	  The calls that actors make, the amounts they name, and the policies that
 *	  decide about them.
 */
#include <inttypes.h>
#include <string.h>

#include "driver.h"

#define MINUTE	(60 * SECOND)
#define HOUR	(60 * MINUTE)
#define MS		INT64_C(1000)
#define VAST	INT64_C(3000000000000000000)	/* three of them overflow with a little more */

/*
 * Wildcard policies: each interleaving has a subject of its own under one of
 * them.  Those that are `real` run out within milliseconds.
 */
const Policy policies[] = {
	{"continuous", "continuous", 1000, 10, SECOND, HOUR, 1000, 0, 2000, 500, 30 * SECOND, 10 * MINUTE, 0, 0, false},
	{"fraction", "continuous", 60, 7, 3 * SECOND, HOUR, 40, 50, 60, 0, 20 * SECOND, 5 * MINUTE, 0, 0, false},
	{"outstanding", "continuous", 1000, 100, MINUTE, HOUR, 600, 800, 900, 300, 30 * SECOND, 10 * MINUTE, 0, 0, false},
	{"window", "window", 1000, 0, 0, MINUTE, 1000, 0, 2000, 500, 30 * SECOND, 10 * MINUTE, 0, 0, false},
	{"narrow", "window", 300, 0, 0, 10 * SECOND, 200, 250, 300, 0, 30 * SECOND, MINUTE, 0, 0, false},
	{"none", "none", 1000, 0, 0, HOUR, 1000, 0, 1500, 300, 30 * SECOND, 10 * MINUTE, 0, 0, false},
	{"vast", "none", VAST, 0, 0, HOUR, VAST, 0, INT64_MAX, VAST, 30 * SECOND, 10 * MINUTE, 0, 0, false},
	{"shard", "continuous", 1000, 10, SECOND, HOUR, 500, 0, 600, 500, 30 * SECOND, 10 * MINUTE, 60, 5 * MINUTE, false},
	{"real-continuous", "continuous", 1000, 100, 10 * MS, HOUR, 1000, 0, 2000, 500, 12 * MS, 15 * MS, 0, 0, true},
	{"real-window", "window", 500, 0, 0, SECOND, 500, 0, 600, 200, 8 * MS, 20 * MS, 0, 0, true},
	{"real-none", "none", 1000, 0, 0, HOUR, 600, 700, 700, 0, 6 * MS, 10 * MS, 0, 0, true},
};
const int	policy_count = sizeof(policies) / sizeof(policies[0]);

const char *const amount_names[AMOUNTS] = {
	"zero", "one", "few", "tenth", "third", "half", "over-half",
	"largest", "whole", "over", "debt", "limit", "breach", "bigint"
};

const char *const database_names[DATABASES] = {"ledger", "gateway", "gateway2"};

const CallForm call_forms[CALL_KINDS] = {
	[CALL_RESERVE] = {"reserve", "reserve_capacity", "sriud.....", LEDGER, true, true},
	[CALL_RESERVE_START] = {"reserve-start", "reserve_capacity", "sriud....o", LEDGER, true, true},
	[CALL_RESERVE_DEADLINE] = {"reserve-deadline", "reserve_capacity", "sriud..D..", LEDGER, true, true},
	[CALL_START] = {"start", "start_reservation", "sio", LEDGER, true, true},
	[CALL_SETTLE] = {"settle", "settle_usage", "siou.k", LEDGER, true, true},
	[CALL_RELEASE] = {"release", "release_reservation", "si", LEDGER, true, true},
	[CALL_REPORT_UNKNOWN] = {"unknown", "report_usage_unknown", "sio", LEDGER, true, true},
	[CALL_PROGRESS] = {"progress", "report_progress", "siou", LEDGER, true, true},
	[CALL_EXTEND] = {"extend", "extend_reservation", "sieu.", LEDGER, true, true},
	[CALL_EXTEND_UNTIL] = {"extend-until", "extend_reservation", "sieuU", LEDGER, true, true},
	[CALL_GET] = {"get", "get_reservation", "si", LEDGER, true, false},
	[CALL_RESOLVE] = {"resolve", "resolve_reservation", "sid", LEDGER, true, true},
	[CALL_RECORD] = {"record", "record_usage", "srvu", LEDGER, true, true},
	[CALL_IMPORT] = {"import", "import_usage", "srvu", LEDGER, true, true},
	[CALL_BUDGET] = {"budget", "get_budget", "sr", LEDGER, false, false},
	[CALL_REPAY] = {"repay", "repay_debt", "sr", LEDGER, false, false},
	[CALL_GRANT] = {"grant", "grant_capacity", "srgux", LEDGER, false, true},
	[CALL_FREEZE] = {"freeze", "freeze", "srx", LEDGER, false, false},
	[CALL_UNFREEZE] = {"unfreeze", "unfreeze", "srx", LEDGER, false, false},
	[CALL_CLAIM] = {"claim", "claim_expiring", "n", LEDGER, false, false},
	[CALL_FINISH] = {"finish", "finish_expiring", "n", LEDGER, false, false},
	[CALL_EXPIRE] = {"expire", "expire_reservations", "n", LEDGER, false, false},
	[CALL_EXECUTIONS] = {"executions", "expire_executions", "n", LEDGER, false, false},
	[CALL_CLAIM_UNKNOWN] = {"claim-unknown", "claim_unknown_usage", "nlc", LEDGER, false, false},
	[CALL_REPAY_DEBTORS] = {"repay-debtors", "repay_debtors", "nsa", LEDGER, false, false},
	[CALL_PUBLISH] = {"publish", "publish_policy", "j", LEDGER, false, true},
	[CALL_ISSUE] = {"issue", "issue_emergency_shard", "srhwu", LEDGER, false, true},
	[CALL_SIGN] = {"sign", "sign_emergency_shard", "sh", LEDGER, false, false},
	[CALL_RECONCILE] = {"reconcile", "reconcile_emergency_shard", "sR", LEDGER, false, true},
	[CALL_WRITE_OFF] = {"write-off", "write_off_shard", "shx", LEDGER, false, true},
	[CALL_ANNOUNCE] = {"announce", "announce_boot", "wB", LEDGER, false, false},
	[CALL_ACCEPT] = {"accept", "accept_emergency_shard", "E", GATEWAY, false, true},
	[CALL_SHARD_RESERVE] = {"shard-reserve", "shard_reserve", "sriud..", GATEWAY, true, true},
	[CALL_SHARD_RESERVE_START] = {"shard-reserve-start", "shard_reserve", "sriud.o", GATEWAY, true, true},
	[CALL_SHARD_START] = {"shard-start", "shard_start", "sio", GATEWAY, true, true},
	[CALL_SHARD_SETTLE] = {"shard-settle", "shard_settle", "siou.k", GATEWAY, true, true},
	[CALL_SHARD_RELEASE] = {"shard-release", "shard_release", "si", GATEWAY, true, true},
	[CALL_SHARD_UNKNOWN] = {"shard-unknown", "shard_report_unknown", "sio", GATEWAY, true, true},
	[CALL_SEAL] = {"seal", "seal_shard", "sh", GATEWAY, false, true},
	[CALL_CUT] = {"cut", "cut_shard_report", "sh", GATEWAY, false, false},
	[CALL_REPORT] = {"report", "report_shard", "sh.", GATEWAY, false, false},
	[CALL_RENEW] = {"renew", "renew_boot", "x", GATEWAY, false, false},
	[CALL_SWEEP_SHARDS] = {"sweep-shards", "sweep_shards", "n", GATEWAY, false, false},
	[CALL_ACCEPT2] = {"accept2", "accept_emergency_shard", "E", GATEWAY2, false, true},
	[CALL_SHARD_RESERVE2] = {"shard-reserve2", "shard_reserve", "sriud..", GATEWAY2, true, true},
};

int
policy_by_name(const char *name)
{
	for (int i = 0; i < policy_count; i++)
		if (strcmp(policies[i].name, name) == 0)
			return i;
	return -1;
}

/* policy_since: a year before the clock of virtual interleavings begins, or long ago. */
Instant
policy_since(const Policy *policy)
{
	return (policy->real ? INT64_C(1577836800) : INT64_C(4070908800)) * SECOND;
}

/* policy_document writes an admissionBudget.v1. */
void
policy_document(Text *text, const Policy *policy, const char *route)
{
	bool		continuous = strcmp(policy->refill, "continuous") == 0;
	bool		window = strcmp(policy->refill, "window") == 0;

	text_add(text, "{\"schema\": \"admissionBudget.v1\", \"subject\": \"*\", \"route\": \"%s\","
			 " \"region\": \"*\", \"unit\": \"units\", \"refill\": {\"kind\": \"%s\"", route, policy->refill);
	if (continuous)
		text_add(text, ", \"units\": %" PRId64 ", \"interval\": \"%" PRId64 " us\"",
				 policy->refill_units, policy->refill_interval);
	if (window)
		text_add(text, ", \"quota\": %" PRId64 "}", policy->cap);
	else
		text_add(text, "}, \"burst\": %" PRId64, policy->cap);
	text_add(text, ", \"epoch\": {\"length\": \"%" PRId64 " us\"}, \"estimatorDigests\": [],"
			 " \"largestReservation\": %" PRId64 ", \"hardExecutionLimit\": %" PRId64 ", \"maximumOverdraft\": %" PRId64
			 ", \"holdTtl\": \"%" PRId64 " us\", \"executionTtl\": \"%" PRId64 " us\", \"retention\": \"1 day\","
			 " \"priority\": 0, \"weight\": 1, \"fairnessBudget\": 0",
			 policy->epoch, policy->largest_reservation, policy->hard_limit, policy->maximum_overdraft,
			 policy->hold_ttl, policy->execution_ttl);
	if (policy->largest_outstanding > 0)
		text_add(text, ", \"largestOutstanding\": %" PRId64, policy->largest_outstanding);
	if (policy->share > 0)
		text_add(text, ", \"emergencyMode\": \"enabled\", \"emergencyShare\": %d, \"shardTtl\": \"%" PRId64 " us\"",
				 policy->share, policy->shard_ttl);
	text_add(text, "}");
}

/* amount_units: what an amount means under a policy. */
int64_t
amount_units(Amount amount, const Policy *policy)
{
	int64_t		cap = policy->cap;

	switch (amount)
	{
		case AMOUNT_ZERO:
			return 0;
		case AMOUNT_ONE:
			return 1;
		case AMOUNT_FEW:
			return 3;
		case AMOUNT_TENTH:
			return cap / 10;
		case AMOUNT_THIRD:
			return cap / 3;
		case AMOUNT_HALF:
			return cap / 2;
		case AMOUNT_OVER_HALF:
			return cap / 2 + 1;
		case AMOUNT_LARGEST:
			return policy->largest_reservation;
		case AMOUNT_WHOLE:
			return cap;
		case AMOUNT_OVER:
			return cap < INT64_MAX ? cap + 1 : cap;
		case AMOUNT_DEBT:
			return cap < INT64_MAX / 4 ? cap + policy->maximum_overdraft / 2 + 1 : cap;
		case AMOUNT_LIMIT:
			return policy->hard_limit;
		case AMOUNT_BREACH:
			return policy->hard_limit < INT64_MAX ? policy->hard_limit + 1 : INT64_MAX;
		case AMOUNT_BIGINT:
			return INT64_MAX - 1;
		case AMOUNTS:
			break;
	}
	return 0;
}
