/*
 * wide.c
 *	  The two functions of arith.h that need 128 bits, compared with the same
 *	  figures computed of 32-bit digits and by long division.
 *
 * The proof of src/core assumes their contracts; this holds them against
 * something that shares no code with them.  Edge figures in all combinations,
 * then random ones.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/arith.h"

enum
{
	ROUNDS = 2000000
};

typedef struct Wide
{
	uint32_t	digit[4];		/* the lowest first */
} Wide;

/* multiply_add gives a * b + c, as on paper. */
static Wide
multiply_add(uint64_t a, uint64_t b, uint64_t c)
{
	uint32_t	x[2] = {(uint32_t) a, (uint32_t) (a >> 32)};
	uint32_t	y[2] = {(uint32_t) b, (uint32_t) (b >> 32)};
	Wide		w = {{(uint32_t) c, (uint32_t) (c >> 32), 0, 0}};

	for (int i = 0; i < 2; i++)
	{
		uint64_t	carry = 0;

		for (int j = 0; j < 2; j++)
		{
			carry += w.digit[i + j] + (uint64_t) x[i] * y[j];
			w.digit[i + j] = (uint32_t) carry;
			carry >>= 32;
		}
		for (int k = i + 2; k < 4; k++)
		{
			carry += w.digit[k];
			w.digit[k] = (uint32_t) carry;
			carry >>= 32;
		}
	}
	return w;
}

/* compare orders two of them. */
static int
compare(Wide a, Wide b)
{
	for (int i = 3; i >= 0; i--)
		if (a.digit[i] != b.digit[i])
			return a.digit[i] < b.digit[i] ? -1 : 1;
	return 0;
}

/* divide is long division, bit by bit; a quotient beyond int64 is INT64_MAX, with no remainder. */
static int64_t
divide(Wide w, uint64_t divisor, int64_t *remainder)
{
	uint64_t	quotient = 0;
	uint64_t	rest = 0;
	bool		beyond = false;

	for (int bit = 127; bit >= 0; bit--)
	{
		rest = rest << 1 | (w.digit[bit / 32] >> (bit % 32) & 1);
		beyond = beyond || (quotient >> 62) != 0;
		quotient <<= 1;
		if (rest >= divisor)
		{
			rest -= divisor;
			quotient |= 1;
		}
	}
	*remainder = beyond ? 0 : (int64_t) rest;
	return beyond ? INT64_MAX : (int64_t) quotient;
}

static int64_t failures;
static int64_t compared;

static void
divide_product(int64_t a, int64_t b, int64_t carry, int64_t divisor)
{
	int64_t		rest = -1;
	int64_t		got_rest = -1;
	int64_t		want = divide(multiply_add((uint64_t) a, (uint64_t) b, (uint64_t) carry),
							  (uint64_t) divisor, &rest);
	int64_t		got = ll_divide_product(a, b, carry, divisor, &got_rest);

	compared++;
	if (got != want || got_rest != rest)
	{
		failures++;
		fprintf(stderr, "wide: (%lld * %lld + %lld) / %lld\n", (long long) a, (long long) b,
				(long long) carry, (long long) divisor);
	}
}

/* At that many ticks enough is there, unless capped, and one tick earlier it is not. */
static void
ticks_until(int64_t need, int64_t interval, int64_t have, int64_t rate)
{
	int64_t		ticks = ll_ticks_until(need, interval, have, rate);
	Wide		wanted = multiply_add((uint64_t) need, (uint64_t) interval, 0);
	bool		good = ticks >= 1 &&
		compare(multiply_add((uint64_t) ticks - 1, (uint64_t) rate, (uint64_t) have), wanted) < 0 &&
		(ticks == INT64_MAX ||
		 compare(multiply_add((uint64_t) ticks, (uint64_t) rate, (uint64_t) have), wanted) >= 0);

	compared++;
	if (!good)
	{
		failures++;
		fprintf(stderr, "wide: %lld units at %lld every %lld, %lld there\n", (long long) need,
				(long long) rate, (long long) interval, (long long) have);
	}
}

static void
both(int64_t a, int64_t b, int64_t c, int64_t d)
{
	int64_t		divisor = d > 0 ? d : 1;
	int64_t		carry = c % divisor;

	divide_product(a, b, carry, divisor);
	ticks_until(a > 0 ? a : 1, divisor, carry, b > 0 ? b : 1);
}

static uint64_t state = 1;

/* chance gives a figure of 0 to INT64_MAX, of any length. */
static int64_t
chance(void)
{
	uint64_t	z = (state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	z ^= z >> 31;
	return (int64_t) ((z >> 1) >> (state >> 20) % 63);
}

int
main(void)
{
	static const int64_t edge[] = {
		0, 1, 2, 3, 1000000, INT64_C(0x7fffffff), INT64_C(0x80000000), INT64_C(0xffffffff),
		INT64_C(0x100000000), INT64_MAX / 2, INT64_MAX / 2 + 1, INT64_MAX - 1, INT64_MAX
	};
	int			edges = sizeof(edge) / sizeof(edge[0]);

	for (int i = 0; i < edges * edges * edges * edges; i++)
		both(edge[i % edges], edge[i / edges % edges], edge[i / edges / edges % edges],
			 edge[i / edges / edges / edges]);
	for (int i = 0; i < ROUNDS; i++)
		both(chance(), chance(), chance(), chance());
	printf("compared %lld figures of 128-bit arithmetic, %lld wrong\n", (long long) compared, (long long) failures);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
