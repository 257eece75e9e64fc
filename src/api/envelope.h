/*
 * envelope.h
 *	  Envelopes for those who decide about what is in them (G3, G6).
 */
#ifndef LL_API_ENVELOPE_H
#define LL_API_ENVELOPE_H

#include "postgres.h"

#include "envelope/envelope.h"
#include "fmgr.h"

/* What opening found out, beside the document. */
typedef struct LLOpened
{
	const char *word;			/* of docs/envelope.md; empty: the envelope is sound */
	const char *member;			/* at fault, or NULL */
	char		kid[LL_KID_MAX + 1];	/* of the key that its header names; empty: none that is trusted */
	Datum		gateway;		/* text: whose key that is; 0: the ledger's, or none */
} LLOpened;

/*
 * ll_open_report opens a signed report for the function under way; true: it is
 * sound.  Only keys of gateways that are trusted at the ledger's clock count.
 * The receipts are palloc'ed; texts are in the encoding of the database.  Not
 * to be called inside of a script.
 */
extern bool ll_open_report(FunctionCallInfo fcinfo, Datum envelope,
						   LLReportDocument *report, LLOpened *opened);

#endif							/* LL_API_ENVELOPE_H */
