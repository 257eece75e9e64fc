/*
 * clock.h
 *	  The ledger's clock (A3).
 */
#ifndef LL_STORE_CLOCK_H
#define LL_STORE_CLOCK_H

#include "postgres.h"
#include "utils/timestamp.h"

extern void ll_clock_init(void);
extern TimestampTz ll_clock_now(void);

#endif							/* LL_STORE_CLOCK_H */
