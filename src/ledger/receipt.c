/*
 * receipt.c
 *	  Filling receipts.  See ledger.h.
 */
#include "postgres.h"

#include "core/arith.h"
#include "ledger.h"
#include "store/clock.h"

/* ll_say makes a verdict with no wait. */
LLVerdict
ll_say(LLOutcome outcome, LLDimension dimension)
{
	LLVerdict	verdict = {0};

	verdict.outcome = outcome;
	verdict.dimension = dimension;
	return verdict;
}

/* ll_replayed: nothing was done, this is what stands (D2). */
LLVerdict
ll_replayed(void)
{
	LLVerdict	verdict = ll_say(LL_ACCEPTED, LL_DIM_NONE);

	verdict.replayed = true;
	return verdict;
}

/* ll_receipt_answer starts a receipt: all NULL but the verdict and the time. */
void
ll_receipt_answer(LLReceipt *receipt, LLVerdict verdict, TimestampTz at)
{
	memset(receipt, 0, sizeof(*receipt));
	receipt->verdict = verdict;
	receipt->state = ll_state_name(LL_ABSENT);
	receipt->epoch = LL_NO_TIME;
	receipt->reserved_units = -1;
	receipt->actual_units = -1;
	receipt->expires_at = LL_NO_TIME;
	receipt->ledger_at = at;
	receipt->available = -1;
	receipt->cap = -1;
	receipt->reset_at = LL_NO_TIME;
	receipt->retry_after_ms = -1;
	receipt->hard_limit = -1;
	receipt->excess_units = -1;
	receipt->excess_epoch = LL_NO_TIME;
}

/* the instant that a verdict's wait ends, LL_NO_TIME where none is known */
static TimestampTz
wait_end(const LLPairWork *work, const LLVerdict *verdict)
{
	if (verdict->wait != LL_WAIT_REFILL)
		return LL_NO_TIME;
	if (verdict->wait_windows > 0)
		return ll_period_after(&work->reigns.ruling->periods,
							   work->head.pair.head.epoch, verdict->wait_windows);
	return verdict->wait_until;
}

/* ll_receipt_reset_at: when the pair is full again by refill alone (J1). */
TimestampTz
ll_receipt_reset_at(const LLPairWork *work)
{
	LLVerdict	verdict = ll_refill_reset(&work->head.pair, ll_pair_policy(work));

	return verdict.wait == LL_WAIT_NONE ? work->clock : wait_end(work, &verdict);
}

/*
 * ll_receipt_pair adds what the caller may know of its own pair, and the wait
 * of a refusal: an upper bound, counted from what the clock shows, rounded up
 * to the millisecond (D4).
 */
void
ll_receipt_pair(LLReceipt *receipt, const LLPairWork *work)
{
	TimestampTz until;

	receipt->ledger_at = work->clock;
	if (work->reigns.ruling == NULL)
		return;
	if (receipt->generation == 0)
	{
		receipt->generation = work->head.pair.head.generation;
		receipt->epoch = work->head.pair.head.epoch;
	}
	receipt->available = work->head.pair.head.available;
	receipt->cap = ll_pair_policy(work)->cap;
	receipt->reset_at = ll_receipt_reset_at(work);
	until = wait_end(work, &receipt->verdict);
	if (until != LL_NO_TIME)
	{
		int64		micros = ll_max(1, until - work->clock);

		receipt->retry_after_ms = micros / 1000 + (micros % 1000 != 0);
	}
}

/* ll_receipt_reservation adds what is stored under the id. */
void
ll_receipt_reservation(LLReceipt *receipt, const LLReservationRow *row)
{
	LLState		state = row->state.state;

	receipt->state = ll_state_name(state);
	receipt->reserved_units = row->state.reserved_units;
	receipt->expires_at = row->state.expires_at;
	if (row->route == 0)		/* a fence */
		return;
	receipt->generation = row->generation;
	receipt->epoch = row->epoch;
	receipt->operation = ll_copy_varlena(row->operation);
	receipt->hard_limit = ll_policy_get(row->generation)->policy.hard_limit;
	if (state != LL_SETTLED && state != LL_SETTLED_WITH_DEBT)
		return;
	receipt->actual_units = row->state.actual_units;
	receipt->excess_units = row->state.excess_units;
	if (row->state.excess_units > 0)
	{
		receipt->excess_generation = row->excess_generation;
		receipt->excess_epoch = row->excess_epoch;
	}
}

/* ll_receipt_stored answers by a row that no lock of this call holds. */
void
ll_receipt_stored(LLReceipt *receipt, LLVerdict verdict, const LLReservationRow *row)
{
	LLPairWork	work;

	ll_receipt_answer(receipt, verdict, ll_clock_now());
	ll_receipt_reservation(receipt, row);
	if (row->route == 0)		/* a fence has no pair */
		return;
	ll_pair_look(&work, row->subject, row->route);
	ll_receipt_pair(receipt, &work);
}
