/*
 * trust.h
 *	  Whose signatures count at this moment (G3).
 */
#ifndef LL_LEDGER_TRUST_H
#define LL_LEDGER_TRUST_H

#include "postgres.h"

/* A key that is trusted now. */
typedef struct LLTrustedKey
{
	Datum		kid;
	Datum		public_key;		/* bytea */
	Datum		gateway;		/* text; 0: the ledger's own, which signs shards */
} LLTrustedKey;

typedef struct LLTrusted
{
	bool		of_gateways;	/* which are asked for: those of gateways, or the ledger's */
	LLTrustedKey *keys;
	int			count;
	int			room;
} LLTrusted;

extern void ll_trust_read(LLTrusted *trusted);

#endif							/* LL_LEDGER_TRUST_H */
