/*
 * signing.h
 *	  The key that signs here: a file that a setting names (G3).
 */
#ifndef LL_API_SIGNING_H
#define LL_API_SIGNING_H

#include "postgres.h"

#include "envelope/envelope.h"

/* What is done with the key.  It may neither keep the key nor raise an error. */
typedef LLFault (*LLSealer) (const LLSecretKey *key, void *arg);

extern void ll_signing_init(void);
extern LLFault ll_sign(LLSealer seal, void *arg, char kid[LL_KID_MAX + 1]);

#endif							/* LL_API_SIGNING_H */
