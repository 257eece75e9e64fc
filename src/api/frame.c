/*
 * frame.c
 *	  What the calls of the ledger and of a gateway have in common: run, confirm,
 *	  count, answer.
 */
#include "postgres.h"

#include "frame.h"

#include "answer.h"

/* ll_frame is one with room for a receipt of each element. */
LLFrame
ll_frame(void *elements, int count)
{
	LLFrame		frame = {0};

	frame.elements = elements;
	frame.count = count;
	frame.receipts = palloc(sizeof(LLReceipt) * Max(count, 1));
	return frame;
}

/* ll_frame_run runs a script that may write; its answer is durable with the commit. */
void
ll_frame_run(FunctionCallInfo fcinfo, void (*script) (void *arg), LLFrame *frame)
{
	ll_run(fcinfo->flinfo->fn_oid, script, frame);
	ll_confirm(frame->receipts, frame->count);
}

/* ll_frame_answer and ll_frame_answer_all hand the receipts out, and count them. */
Datum
ll_frame_answer(LLCall which, const LLFrame *frame)
{
	ll_count(which, &frame->receipts->verdict);
	return ll_answer_receipt(frame->receipts);
}

Datum
ll_frame_answer_all(FunctionCallInfo fcinfo, LLCall which, const LLFrame *frame)
{
	ll_count_receipts(which, frame->receipts, frame->count);
	return ll_answer_receipts(fcinfo, frame->receipts, frame->count);
}
