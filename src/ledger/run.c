/*
 * run.c
 *	  The frame of every call: the store opened, the policies at hand.
 */
#include "postgres.h"

#include "ledger.h"
#include "store/clock.h"
#include "store/durability.h"

typedef struct Frame
{
	void		(*script) (void *arg);
	void	   *arg;
} Frame;

static void
run(void *arg)
{
	Frame	   *frame = arg;

	ll_policy_begin();
	frame->script(frame->arg);
}

/*
 * ll_run runs one script for the SQL function `function`, beside whose tables
 * it works.  After an error nothing of the frame is left.
 */
void
ll_run(Oid function, void (*script) (void *arg), void *arg)
{
	Frame		frame = {script, arg};

	ll_store_run(function, run, &frame);
}

/* ll_now is the clock that decisions are made by (A3). */
TimestampTz
ll_now(void)
{
	return ll_clock_now();
}

/* ll_confirm sees to it that a replay without a lock is as durable as its original (F4). */
void
ll_confirm(const LLReceipt *receipts, int count)
{
	for (int i = 0; i < count; i++)
		if (receipts[i].verdict.outcome == LL_ACCEPTED && receipts[i].verdict.replayed)
		{
			ll_durability_confirm();
			return;
		}
}

/* ll_confirm_others waits until what others have committed is as durable as it gets (F4). */
void
ll_confirm_others(void)
{
	ll_durability_await();
}

/* ll_count counts one answer, when it is given: it stays so if its transaction rolls back. */
void
ll_count(LLCall call, const LLVerdict *verdict)
{
	ll_counters_add(call, ll_answer_of(verdict), 1);
}

/* ll_count_receipts counts those of a batch, a run of equal ones at once. */
void
ll_count_receipts(LLCall call, const LLReceipt *receipts, int count)
{
	int			from = 0;

	for (int i = 1; i <= count; i++)
		if (i == count || ll_answer_of(&receipts[i].verdict) != ll_answer_of(&receipts[from].verdict))
		{
			ll_counters_add(call, ll_answer_of(&receipts[from].verdict), i - from);
			from = i;
		}
}

/* ll_counts reads what was counted in this database; false: nothing is. */
bool
ll_counts(LLCounts *counts)
{
	return ll_counters_read(counts);
}
