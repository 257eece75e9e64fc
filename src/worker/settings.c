/*
 * settings.c
 *	  How background workers behave.  All of it follows a reload.
 */
#include "postgres.h"

#include "settings.h"
#include "utils/guc.h"

bool		ll_workers_on = true;
int			ll_worker_limit = 4;
int			ll_worker_batch = 1000;
int			ll_worker_linger = 5000;
int			ll_worker_probe_interval = 3600;
int			ll_purge_interval = 60;
int			ll_audit_interval = 600;

/* ll_settings_init defines them, workers or no workers, so that a reader finds them. */
void
ll_settings_init(void)
{
	DefineCustomBoolVariable("limitledger.workers",
							 "Lets background workers do what is due.",
							 "Only with limitledger in shared_preload_libraries. Off: they leave.",
							 &ll_workers_on, true, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("limitledger.worker_limit",
							"Sets how many workers may run at the same time, over all databases.",
							"The launcher not counted. max_worker_processes has to allow them.",
							&ll_worker_limit, 4, 1, 1024, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("limitledger.worker_batch",
							"Sets how many rows or pairs a worker does in one transaction.",
							NULL,
							&ll_worker_batch, 1000, 1, 100000, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("limitledger.worker_linger",
							"Sets how long a worker waits in its database for what is due next.",
							"If that is further away, it leaves, and comes back in time.",
							&ll_worker_linger, 5000, 0, 3600000, PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("limitledger.worker_probe_interval",
							"Sets how often a database without the extension is looked at again.",
							"Besides the look after CREATE EXTENSION.",
							&ll_worker_probe_interval, 3600, 1, 86400, PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
	DefineCustomIntVariable("limitledger.purge_interval",
							"Sets the time between two purges of a database by its worker.",
							"A purge goes on until nothing is left that is kept too long. 0: a worker purges nothing.",
							&ll_purge_interval, 60, 0, 604800, PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
	DefineCustomIntVariable("limitledger.audit_interval",
							"Sets the time between two audits of a database by its worker.",
							"0: a worker audits nothing.",
							&ll_audit_interval, 600, 0, 604800, PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
}
