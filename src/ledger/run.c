/*
 * run.c
 *	  The frame of every call: the store opened, the policies at hand.
 */
#include "postgres.h"

#include "ledger.h"
#include "store/clock.h"

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
