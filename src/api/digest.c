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

/* ll_digest_bytes gives the SHA-256 of some bytes, as a bytea. */
Datum
ll_digest_bytes(const char *data, size_t length)
{
	bytea	   *digest = palloc(VARHDRSZ + crypto_hash_sha256_BYTES);

	SET_VARSIZE(digest, VARHDRSZ + crypto_hash_sha256_BYTES);
	crypto_hash_sha256((unsigned char *) VARDATA(digest), (const unsigned char *) data, length);
	return PointerGetDatum(digest);
}

/* limitledger_request_digest returns the SHA-256 of the canonical form in UTF-8. */
Datum
limitledger_request_digest(PG_FUNCTION_ARGS)
{
	StringInfoData canonical;

	initStringInfo(&canonical);
	ll_canonical_write(&canonical, PG_GETARG_JSONB_P(0));
	PG_RETURN_DATUM(ll_digest_bytes(canonical.data, canonical.len));
}
