/*
 * arith.h
 *	  Checked arithmetic on units and instants (A2).
 *
 * Operands are never negative unless said otherwise.  Comparisons before the
 * operation, not builtins, so that a prover can follow them.  The two
 * functions with a 128-bit intermediate are the only ones that need it.
 */
#ifndef LL_CORE_ARITH_H
#define LL_CORE_ARITH_H

#include <stdbool.h>
#include <stdint.h>

static inline int64_t
ll_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t
ll_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ll_add adds b to *a, or returns false and leaves it. */
static inline bool
ll_add(int64_t *a, int64_t b)
{
	if (*a > INT64_MAX - b)
		return false;
	*a += b;
	return true;
}

/* ll_add_capped adds, and stays at the largest value instead of passing it. */
static inline int64_t
ll_add_capped(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

#ifndef __FRAMAC__				/* which has no 128 bits; test/prove */

/*
 * ll_divide_product divides a * b + carry by divisor, carry < divisor, and
 * keeps the remainder.  A quotient beyond int64 is capped, with remainder 0.
 */
static inline int64_t
ll_divide_product(int64_t a, int64_t b, int64_t carry, int64_t divisor,
				  int64_t *remainder)
{
	unsigned __int128 product = (unsigned __int128) (uint64_t) a * (uint64_t) b
		+ (uint64_t) carry;
	unsigned __int128 quotient = product / (uint64_t) divisor;

	if (quotient > INT64_MAX)
	{
		*remainder = 0;
		return INT64_MAX;
	}
	*remainder = (int64_t) (product % (uint64_t) divisor);
	return (int64_t) quotient;
}

/*
 * ll_ticks_until gives the smallest number of ticks after which
 * ticks * rate + have reaches need * interval; have < interval, need >= 1.
 */
static inline int64_t
ll_ticks_until(int64_t need, int64_t interval, int64_t have, int64_t rate)
{
	unsigned __int128 missing = (unsigned __int128) (uint64_t) need * (uint64_t) interval
		- (uint64_t) have;
	unsigned __int128 ticks = (missing + (uint64_t) rate - 1) / (uint64_t) rate;

	return ticks > INT64_MAX ? INT64_MAX : (int64_t) ticks;
}

#endif

#endif							/* LL_CORE_ARITH_H */
