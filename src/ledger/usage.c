/*
 * usage.c
 *	  record_usage: what ran without a reservation (D12).
 *
 *	  lock the head, read the clock, roll; book; bind the operation; write
 *
 * Lost reply: the same operation and figures get the same answer.  Twice at
 * once: the second waits for the head, or for the operation's row, and finds
 * it.  An operation that a reservation is bound to is a conflict, and so is a
 * reservation's start with an operation that was recorded here.
 */
#include "postgres.h"

#include "errors.h"
#include "ledger.h"

/* answer_bound: the operation is bound already. */
static LLVerdict
answer_bound(const LLOperationRow *bound, Datum route, LLUnits units)
{
	if (bound->reservation != 0)
		return ll_say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE);
	if (bound->usage_units != units || ll_text_compare(bound->route, route) != 0)
		return ll_say(LL_CONFLICT, LL_DIM_FIGURES);
	return ll_replayed();
}

static bool
look(LLOperationRow *bound, Datum subject, Datum operation)
{
	Snapshot	snapshot = ll_snapshot_take();
	bool		found = ll_operation_look(bound, subject, operation, snapshot);

	ll_snapshot_drop(snapshot);
	return found;
}

/* record books the usage on the head and binds the operation to it. */
static LLVerdict
record(LLPairWork *work, Datum operation, LLUnits units, LLOperationRow *row)
{
	LLPair		before = work->head.pair;
	LLVerdict	verdict;

	if (look(row, work->head.subject, operation))
		return answer_bound(row, work->head.route, units);
	verdict = ll_record_usage(&work->head.pair, ll_pair_policy(work), units);
	if (verdict.overflow)
		ll_overflow("spent");
	row->reservation = 0;
	row->bound_at = work->head.pair.seen_at;
	row->usage_units = units;
	row->route = work->head.route;
	row->generation = work->head.pair.head.generation;
	row->epoch = work->head.pair.head.epoch;
	if (ll_operation_insert(work->head.subject, operation, row, NULL))
	{
		work->changed = true;
		work->breach = units > ll_pair_policy(work)->hard_limit
			? "an execution used more than its hard limit"
			: "the debt exceeded the maximum overdraft";
		return verdict;
	}
	/* bound meanwhile, on another pair of the subject */
	work->head.pair = before;
	if (!look(row, work->head.subject, operation))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent use of an operation"),
				 errhint("Repeat the transaction with the same ids.")));
	return answer_bound(row, work->head.route, units);
}

/* ll_record_unreserved records usage that was never reserved. */
void
ll_record_unreserved(Datum subject, Datum route, Datum operation, LLUnits units,
					 LLReceipt *receipt)
{
	LLPairWork	work;
	LLOperationRow row = {0};
	LLVerdict	verdict;

	ll_pair_init(&work, subject, route);
	if (!ll_pair_open(&work))
	{
		verdict = ll_say(LL_REFUSED, LL_DIM_NO_POLICY);
		verdict.wait = LL_WAIT_OPERATOR;
		if (look(&row, subject, operation))	/* it was recorded, elsewhere */
			verdict = answer_bound(&row, route, units);
		ll_receipt_answer(receipt, verdict, work.clock);
		receipt->state = NULL;
		return;
	}
	verdict = record(&work, operation, units, &row);
	ll_receipt_answer(receipt, verdict, work.clock);
	receipt->state = NULL;		/* there is no reservation */
	if (verdict.dimension != LL_DIM_OPERATION_ELSEWHERE)
	{
		receipt->operation = operation;
		receipt->actual_units = row.usage_units;
		receipt->generation = row.generation;
		receipt->epoch = row.epoch;
	}
	ll_receipt_pair(receipt, &work);
	ll_pair_write(&work);
}
