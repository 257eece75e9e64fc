/*
 * roll.c
 *	  Bringing a pair to the present.  See roll.h.
 */
#include "roll.h"

#include "core/arith.h"

/* ll_period_of gives the start of the epoch that holds the instant. */
LLTime
ll_period_of(const LLPeriods *periods, LLTime instant)
{
	return periods->length > 0
		? ll_period_start(instant, periods->length, LL_PERIOD_ORIGIN)
		: periods->start_of(periods, instant);
}

/* ll_period_after gives the start of the n-th epoch after this one, capped. */
LLTime
ll_period_after(const LLPeriods *periods, LLTime epoch, int64_t n)
{
	if (periods->length == 0)
		return periods->nth_after(periods, epoch, n);
	if (n > (LL_TIME_MAX - ll_max(epoch, 0)) / periods->length)
		return LL_TIME_MAX;
	return epoch + n * periods->length;
}

/* periods_equal tells whether two policies have the same epochs (B5). */
static bool
periods_equal(const LLPeriods *a, const LLPeriods *b)
{
	const char *x = a->calendar;
	const char *y = b->calendar;

	if (a->length != b->length)
		return false;
	if (a->length > 0)
		return true;
	while (*x != '\0' && *x == *y)
		x++, y++;
	return *x == *y;
}

/*
 * advance refills up to `to` and opens the epoch that holds it, if that has
 * begun since.  Only the epoch of `to` opens: windows in between have no row
 * of their own, but what they pay is paid.
 */
static bool
advance(LLPair *pair, const LLReign *reign, LLTime to, LLCloseFn close, void *arg)
{
	LLBudget	closed;
	LLTime		epoch;
	int64_t		missed = 0;

	if (to <= pair->accrued_at)
		return true;
	if (!ll_refill_accrue(pair, reign->policy, to))
		return false;
	epoch = ll_period_of(reign->periods, to);
	if (epoch <= pair->head.epoch)
		return true;
	if (reign->policy->refill == LL_REFILL_WINDOW)
		missed = (reign->periods->length > 0
				  ? (epoch - pair->head.epoch) / reign->periods->length
				  : reign->periods->between(reign->periods, pair->head.epoch, epoch)) - 1;
	if (!ll_epoch_open_next(pair, reign->policy, epoch, missed, &closed))
		return false;
	close(arg, &closed, to);
	return ll_refill_accrue(pair, reign->policy, to);	/* what the old one could not hold */
}

/*
 * ll_roll brings the pair to the clock.  reigns[0] rules the head now, the
 * others took over since, in the order of their instants: the pair accrues
 * under each up to the next.  A clock that stepped back changes nothing.
 * Returns false on overflow; the caller then discards the pair.
 */
bool
ll_roll(LLPair *pair, const LLReign *reigns, int count, LLTime clock,
		LLCloseFn close, void *arg)
{
	pair->seen_at = ll_max(pair->seen_at, clock);
	for (int i = 1; i < count; i++)
	{
		const LLReign *new = &reigns[i];
		LLBudget	closed;

		if (!advance(pair, &reigns[i - 1], ll_min(new->since, pair->seen_at), close, arg) ||
			!ll_epoch_open_generation(pair, reigns[i - 1].policy, new->policy,
									  periods_equal(reigns[i - 1].periods, new->periods),
									  ll_period_of(new->periods, pair->accrued_at),
									  &closed))
			return false;
		close(arg, &closed, pair->accrued_at);
	}
	return advance(pair, &reigns[count - 1], pair->seen_at, close, arg);
}
