/*
 * binding.c
 *	  Calls about the ledger as a whole, and logins that are bound (I1).
 */
#include "postgres.h"

#include "args.h"
#include "ledger/ledger.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(limitledger_binding_refuse);

/*
 * ll_refuse_bound ends a call that is about no one subject, such as a sweep, if
 * the login is bound: it would reach what the login may not name.
 */
void
ll_refuse_bound(FunctionCallInfo fcinfo, const char *call)
{
	ll_binding_begin(fcinfo->flinfo->fn_oid);
	if (ll_binding_bound())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("%s is not for a login that is bound to subjects", call),
				 errdetail("It is about the ledger as a whole."),
				 errhint("Call it from a login that no bind_subject has bound.")));
}

/* limitledger_binding_refuse does so for calls that are written in SQL. */
Datum
limitledger_binding_refuse(PG_FUNCTION_ARGS)
{
	ll_refuse_bound(fcinfo, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	PG_RETURN_VOID();
}
