/*
 * canonical.h
 *	  The canonical form of a JSON value, and digests (A5).
 */
#ifndef LL_API_CANONICAL_H
#define LL_API_CANONICAL_H

#include "lib/stringinfo.h"
#include "utils/jsonb.h"

/* ll_canonical_write appends the canonical form of `json`, in UTF-8. */
extern void ll_canonical_write(StringInfo out, Jsonb *json);

extern Datum ll_digest_bytes(const char *data, size_t length);

#endif							/* LL_API_CANONICAL_H */
