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
