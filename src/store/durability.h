/*
 * durability.h
 *	  What a transaction owes once it has written to the ledger (F4, F5).
 */
#ifndef LL_STORE_DURABILITY_H
#define LL_STORE_DURABILITY_H

extern void ll_durability_init(void);
extern void ll_durability_note(void);
extern void ll_durability_confirm(void);
extern void ll_durability_await(void);
extern bool ll_durability_standby(void);

#endif							/* LL_STORE_DURABILITY_H */
