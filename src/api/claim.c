/*
 * claim.c
 *	  Unknown usage for reconcilers, as an SQL call.
 */
#include "postgres.h"

#include "answer.h"
#include "args.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(limitledger_claim_unknown_usage);

static void
run_claim_unknown(void *arg)
{
	ll_claim_unknown_usage(arg);
}

static void
put_claim(ReturnSetInfo *set, const LLClaim *claim)
{
	bool		nulls[9] = {false};
	Datum		values[9] = {
		claim->subject, claim->id, claim->route, claim->operation,
		Int64GetDatum(claim->reserved_units), Int64GetDatum(claim->progress_units),
		Int64GetDatum(claim->hard_limit), TimestampTzGetDatum(claim->unknown_at),
		TimestampTzGetDatum(claim->claimed_until)
	};

	tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
}

/*
 * limitledger_claim_unknown_usage leases up to batch_limit unknown items to one
 * reconciler, the oldest first; it moves no balance and waits for nobody (D10).
 */
Datum
limitledger_claim_unknown_usage(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	LLClaims	claims = {0};

	ll_answer_writes("claim_unknown_usage()");
	ll_binding_begin(fcinfo->flinfo->fn_oid);	/* it names no subject: those it meets are passed by */
	claims.limit = ll_arg_batch_limit(ll_arg(fcinfo, 0, "batch_limit"));
	claims.lease = ll_arg_lease(ll_arg(fcinfo, 1, "lease"));
	claims.reconciler = ll_arg_optional_text(ll_arg(fcinfo, 2, "reconciler"));
	if (claims.reconciler == 0)
		claims.reconciler = CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
	claims.claim = palloc(sizeof(LLClaim) * claims.limit);
	ll_run(fcinfo->flinfo->fn_oid, run_claim_unknown, &claims);
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < claims.count; i++)
		put_claim(set, &claims.claim[i]);
	return (Datum) 0;
}
