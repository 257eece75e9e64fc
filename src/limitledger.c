/*
 * limitledger.c
 *	  What the library brings along, as a list of nouns.
 */
#include "postgres.h"

#include "fmgr.h"
#include "store/binding.h"
#include "store/clock.h"
#include "store/counters.h"
#include "store/durability.h"
#include "store/policy.h"
#include "store/table.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	ll_clock_init();
	ll_durability_init();
	ll_counters_init();
	ll_store_init();
	ll_policy_init();
	ll_binding_init();
	MarkGUCPrefixReserved("limitledger");
}
