/*
 * limitledger.c
 *	  What the library brings along, as a list of nouns.
 */
#include "postgres.h"

#include "api/signing.h"
#include "board.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "store/binding.h"
#include "store/clock.h"
#include "store/counters.h"
#include "store/durability.h"
#include "store/policy.h"
#include "store/recovery.h"
#include "store/table.h"
#include "utils/guc.h"
#include "worker/settings.h"
#include "worker/worker.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

/* What needs shared memory and processes: workers are an offer, never a need (J4). */
static void
preload(void)
{
	ll_board_init();
	ll_launcher_init();
	ll_ddl_init();
}

void
_PG_init(void)
{
	ll_clock_init();
	ll_durability_init();
	ll_counters_init();
	ll_store_init();
	ll_policy_init();
	ll_binding_init();
	ll_signing_init();
	ll_recovery_init();
	ll_settings_init();
	if (process_shared_preload_libraries_in_progress && !IsBinaryUpgrade)
		preload();
	MarkGUCPrefixReserved("limitledger");
}
