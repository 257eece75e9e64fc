/*
 * canonical.h
 *	  The canonical form of a JSON value (A5).
 */
#ifndef LL_API_CANONICAL_H
#define LL_API_CANONICAL_H

#include "lib/stringinfo.h"
#include "utils/jsonb.h"

/* ll_canonical_write appends the canonical form of `json`, in UTF-8. */
extern void ll_canonical_write(StringInfo out, Jsonb *json);

#endif							/* LL_API_CANONICAL_H */
