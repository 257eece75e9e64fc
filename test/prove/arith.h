/* arith.h: checked arithmetic (A2). */
#ifndef LL_PROVE_ARITH_H
#define LL_PROVE_ARITH_H

#include "rules.h"
#include "core/arith.h"

/*@ assigns \nothing;
	ensures \result == \min(a, b); */
static inline int64_t ll_min(int64_t a, int64_t b);

/*@ assigns \nothing;
	ensures \result == \max(a, b); */
static inline int64_t ll_max(int64_t a, int64_t b);

/*@ requires \valid(a) && b >= 0;
	assigns *a;
	ensures \result <==> \old(*a) + b <= INT64_MAX;
	ensures *a == \old(*a) + (\result ? b : 0); */
static inline bool ll_add(int64_t *a, int64_t b);

/*@ requires b >= 0;
	assigns \nothing;
	ensures \result == \min(INT64_MAX, a + b); */
static inline int64_t ll_add_capped(int64_t a, int64_t b);

/* The two with a 128-bit intermediate are assumed here, and compared by wide.c. */

/*@ requires a >= 0 && b >= 0 && 0 <= carry < divisor && \valid(remainder);
	assigns *remainder;
	ensures 0 <= \result && 0 <= *remainder < divisor;
	ensures \result == \min(INT64_MAX, (a * b + carry) / divisor);
	ensures (a * b + carry) / divisor <= INT64_MAX ==>
		\result * divisor + *remainder == a * b + carry;
	ensures (a * b + carry) / divisor > INT64_MAX ==> *remainder == 0; */
static inline int64_t ll_divide_product(int64_t a, int64_t b, int64_t carry, int64_t divisor,
										int64_t *remainder);

/*@ requires need >= 1 && 0 <= have < interval && rate >= 1;
	assigns \nothing;
	ensures 1 <= \result;
	ensures \result < INT64_MAX ==> \result * rate + have >= need * interval;
	ensures (\result - 1) * rate + have < need * interval; */
static inline int64_t ll_ticks_until(int64_t need, int64_t interval, int64_t have, int64_t rate);

#endif							/* LL_PROVE_ARITH_H */
