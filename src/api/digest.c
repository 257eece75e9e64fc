/*
 * digest.c
 *	  canonical_json() and request_digest(): what identifies a request (A5, D2).
 *
 * Pure functions of their argument.
 */
#include "postgres.h"

#include <sodium.h>

#include "api/canonical.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(limitledger_canonical_json);
PG_FUNCTION_INFO_V1(limitledger_request_digest);

/* limitledger_canonical_json returns the canonical form in the server's encoding. */
Datum
limitledger_canonical_json(PG_FUNCTION_ARGS)
{
	StringInfoData canonical;

	initStringInfo(&canonical);
	ll_canonical_write(&canonical, PG_GETARG_JSONB_P(0));
	PG_RETURN_TEXT_P(cstring_to_text(pg_any_to_server(canonical.data, canonical.len, PG_UTF8)));
}

/* limitledger_request_digest returns the SHA-256 of the canonical form in UTF-8. */
Datum
limitledger_request_digest(PG_FUNCTION_ARGS)
{
	StringInfoData canonical;
	bytea	   *digest = palloc(VARHDRSZ + crypto_hash_sha256_BYTES);

	initStringInfo(&canonical);
	ll_canonical_write(&canonical, PG_GETARG_JSONB_P(0));
	SET_VARSIZE(digest, VARHDRSZ + crypto_hash_sha256_BYTES);
	crypto_hash_sha256((unsigned char *) VARDATA(digest),
					   (const unsigned char *) canonical.data, canonical.len);
	PG_RETURN_BYTEA_P(digest);
}
