/* rollout.h: which part of the traffic a canary takes in (B4). */
#ifndef LL_PROVE_ROLLOUT_H
#define LL_PROVE_ROLLOUT_H

#include "rules.h"

/*@ requires \valid_read(route + (0 .. route_length - 1));
	requires subject == \null || \valid_read(subject + (0 .. subject_length - 1));
	assigns \nothing;
	ensures 0 <= \result <= 99; */
extern int ll_rollout_bucket(const char *route, size_t route_length,
							 const char *subject, size_t subject_length);

#ifdef PROVE_ROLLOUT

/*@ requires \valid_read(bytes + (0 .. length - 1));
	assigns \nothing;
	ensures length == 0 ==> \result == hash; */
static uint64_t mix_bytes(uint64_t hash, const char *bytes, size_t length);

#endif

#endif							/* LL_PROVE_ROLLOUT_H */
