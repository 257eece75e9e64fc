/*
 * settings.h
 *	  How background workers behave.  docs/operations.md says what for.
 */
#ifndef LL_WORKER_SETTINGS_H
#define LL_WORKER_SETTINGS_H

#include "postgres.h"

extern bool ll_workers_on;
extern int	ll_worker_limit;
extern int	ll_worker_batch;
extern int	ll_worker_linger;	/* ms */
extern int	ll_worker_probe_interval;	/* s */
extern int	ll_purge_interval;	/* s; 0: none */
extern int	ll_audit_interval;	/* s; 0: none */

extern void ll_settings_init(void);

#endif							/* LL_WORKER_SETTINGS_H */
