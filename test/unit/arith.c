/*
 * Checked arithmetic at its edges: 0, 1, INT64_MAX (A2).
 */
#include "fixture.h"

#include "core/arith.h"

static void
sums(void)
{
	static const struct
	{
		int64_t		a;
		int64_t		b;
		int64_t		sum;		/* -1: beyond bigint */
	}			rows[] = {
		{0, 0, 0}, {1, 0, 1}, {0, 1, 1}, {MAX, 0, MAX}, {0, MAX, MAX}, {MAX - 1, 1, MAX},
		{1, MAX - 1, MAX}, {MAX, 1, -1}, {1, MAX, -1}, {MAX - 1, 2, -1}, {MAX, MAX, -1},
		{MAX / 2, MAX / 2 + 1, MAX}, {MAX / 2 + 1, MAX / 2 + 1, -1}
	};

	for (int i = 0; i < LENGTH(rows); i++)
	{
		int64_t		a = rows[i].a;
		bool		fits = ll_add(&a, rows[i].b);

		ok(rows[i].sum >= 0 ? fits && a == rows[i].sum : !fits && a == rows[i].a,
		   "add %lld + %lld", (long long) rows[i].a, (long long) rows[i].b);
		ok(ll_add_capped(rows[i].a, rows[i].b) == (rows[i].sum >= 0 ? rows[i].sum : MAX),
		   "add, capped, %lld + %lld", (long long) rows[i].a, (long long) rows[i].b);
	}
	ok(ll_min(1, 2) == 1 && ll_min(2, 1) == 1 && ll_max(1, 2) == 2 && ll_max(2, 1) == 2 &&
	   ll_min(3, 3) == 3 && ll_max(3, 3) == 3, "min and max");
}

static void
products(void)
{
	static const struct
	{
		int64_t		a;
		int64_t		b;
		int64_t		carry;
		int64_t		divisor;
		int64_t		quotient;
		int64_t		remainder;
	}			rows[] = {
		{0, 0, 0, 1, 0, 0}, {0, MAX, 0, 1, 0, 0}, {7, 3, 0, 2, 10, 1}, {7, 3, 1, 2, 11, 0},
		{1, 1, 0, 1, 1, 0}, {1, 1, 0, MAX, 0, 1}, {MAX, 1, 0, 1, MAX, 0},
		{MAX, MAX, 0, MAX, MAX, 0},
		{MAX, MAX, MAX - 1, MAX, MAX, MAX - 1},
		{MAX, 2, 0, 2, MAX, 0}, {MAX, 2, 1, 2, MAX, 1},
		{MAX, 2, 0, 1, MAX, 0},	/* capped: the remainder goes with it */
		{MAX, MAX, 0, 1, MAX, 0}, {MAX, MAX, MAX - 2, MAX - 1, MAX, 0},
		{MAX - 1, 1, MAX - 1, MAX, 1, MAX - 2}
	};

	for (int i = 0; i < LENGTH(rows); i++)
	{
		int64_t		remainder = -1;
		int64_t		quotient = ll_divide_product(rows[i].a, rows[i].b, rows[i].carry,
												 rows[i].divisor, &remainder);

		ok(quotient == rows[i].quotient && remainder == rows[i].remainder,
		   "(%lld * %lld + %lld) / %lld", (long long) rows[i].a, (long long) rows[i].b,
		   (long long) rows[i].carry, (long long) rows[i].divisor);
	}
}

static void
ticks(void)
{
	static const struct
	{
		int64_t		need;
		int64_t		interval;
		int64_t		have;
		int64_t		rate;
		int64_t		ticks;
	}			rows[] = {
		{1, 1, 0, 1, 1}, {1, 2, 0, 1, 2}, {1, 2, 1, 1, 1}, {3, 2, 0, 3, 2}, {2, 2, 0, 3, 2},
		{2, 2, 1, 3, 1}, {1, 3, 2, 1, 1}, {1, 1, 0, MAX, 1}, {MAX, 1, 0, 1, MAX},
		{MAX, 1, 0, MAX, 1}, {MAX, MAX, 0, MAX, MAX}, {MAX, 2, 0, 1, MAX},
		{MAX, MAX, MAX - 1, 1, MAX}
	};

	for (int i = 0; i < LENGTH(rows); i++)
		ok(ll_ticks_until(rows[i].need, rows[i].interval, rows[i].have, rows[i].rate) ==
		   rows[i].ticks,
		   "%lld units at %lld every %lld, %lld parts there: %lld ticks", (long long) rows[i].need,
		   (long long) rows[i].rate, (long long) rows[i].interval, (long long) rows[i].have,
		   (long long) rows[i].ticks);

	/* One tick less is too few, for all small figures. */
	for (int64_t need = 1; need <= 6; need++)
		for (int64_t interval = 1; interval <= 6; interval++)
			for (int64_t have = 0; have < interval; have++)
				for (int64_t rate = 1; rate <= 6; rate++)
				{
					int64_t		t = ll_ticks_until(need, interval, have, rate);

					want("enough", t * rate + have >= need * interval, true);
					want("tight", (t - 1) * rate + have < need * interval, true);
				}
	row_ends("the smallest number of ticks that is enough");
}

int
main(void)
{
	sums();
	products();
	ticks();
	return done_testing();
}
