/*
 * rollout.c
 *	  Which part of the traffic a canary takes in (B4).
 *
 * The bucket of a key is a number of 0 to 99 that never changes: a canary of n
 * percent takes in the buckets below n, so what is in stays in as n grows.
 */
#include "core.h"

#define FNV_OFFSET	UINT64_C(14695981039346656037)
#define FNV_PRIME	UINT64_C(1099511628211)

static uint64_t
mix_bytes(uint64_t hash, const char *bytes, size_t length)
{
	/*@ loop invariant 0 <= i <= length && (i == 0 ==> hash == \at(hash, Pre));
		loop assigns i, hash;
		loop variant length - i; */
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char) bytes[i]) * FNV_PRIME;
	return hash;
}

/*
 * ll_rollout_bucket puts a route, or one subject on it, into one of a hundred
 * buckets: FNV-1a over the route and, behind a zero byte, which no text holds,
 * the subject; its last bits spread, since FNV's are weak.
 */
int
ll_rollout_bucket(const char *route, size_t route_length,
				  const char *subject, size_t subject_length)
{
	uint64_t	hash = mix_bytes(FNV_OFFSET, route, route_length);

	if (subject != 0)
		hash = mix_bytes(mix_bytes(hash, "", 1), subject, subject_length);
	hash = (hash ^ (hash >> 33)) * UINT64_C(0xff51afd7ed558ccd);
	hash ^= hash >> 33;
	return (int) (hash % 100);
}
