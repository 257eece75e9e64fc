/*
 * usage.c
 *	  record_usage, what ran without a reservation (D12), and import_usage, what
 *	  was spent under another limiter (B2).
 *
 *	  lock the heads, in key order, and bring each pair to the present
 *	  book and bind the operations, in key order
 *	  write each budget once
 *
 * Lost reply: the same operation and figures get the same answer.  Twice at
 * once: the second waits for the head, or for the operation's row, and finds
 * it.  An operation that a reservation is bound to is a conflict, and so is a
 * reservation's start with an operation that was recorded here.  An import
 * opens the pair: whoever opened it first, import or reserve, an import that
 * comes later books nothing.
 */
#include "postgres.h"

#include "errors.h"
#include "ledger.h"
#include "miscadmin.h"

/* answer_bound: the operation is bound already. */
static LLVerdict
answer_bound(const LLOperationRow *bound, const LLUsageElement *e)
{
	if (bound->reservation != 0)
		return ll_say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE);
	if (bound->usage_units != e->units || ll_text_compare(bound->route, e->route) != 0)
		return ll_say(LL_CONFLICT, LL_DIM_FIGURES);
	return ll_replayed();
}

static bool
look(LLOperationRow *bound, const LLUsageElement *e)
{
	Snapshot	snapshot = ll_snapshot_take();
	bool		found = ll_operation_look(bound, e->subject, e->operation, snapshot);

	ll_snapshot_drop(snapshot);
	return found;
}

/* bind stores the usage under its operation; false: that was bound meanwhile, on another pair. */
static bool
bind(const LLUsageElement *e, LLOperationRow *row)
{
	const LLPair *pair = &e->work->head.pair;

	row->reservation = 0;
	row->bound_at = pair->seen_at;
	row->usage_units = e->units;
	row->route = e->route;
	row->generation = pair->head.generation;
	row->epoch = pair->head.epoch;
	return ll_operation_insert(e->subject, e->operation, row, NULL);
}

/* book spends the units on the head and binds the operation to them. */
static LLVerdict
book(const LLUsageElement *e, bool import, LLOperationRow *row)
{
	LLPairWork *work = e->work;
	LLPair		before = work->head.pair;
	LLVerdict	verdict;

	verdict = ll_record_usage(&work->head.pair, ll_pair_policy(work), e->units, import);
	if (verdict.overflow)
		ll_overflow("spent");
	if (bind(e, row))
	{
		ll_shadow_spend(work, e->units);
		work->changed = true;
		work->breach = e->units > ll_pair_policy(work)->hard_limit && !import
			? "an execution used more than its hard limit"
			: "the debt exceeded the maximum overdraft";
		return verdict;
	}
	work->head.pair = before;
	if (!look(row, e))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent use of an operation"),
				 errhint("Repeat the transaction with the same ids.")));
	return answer_bound(row, e);
}

/* decide answers one element on a pair that is present. */
static LLVerdict
decide(const LLUsageElement *e, bool import, LLOperationRow *row)
{
	LLVerdict	verdict;

	if (look(row, e))
		return answer_bound(row, e);
	if (e->work->reigns.ruling == NULL)
	{
		verdict = ll_say(LL_REFUSED, LL_DIM_NO_POLICY);
		verdict.wait = LL_WAIT_OPERATOR;
		return verdict;
	}
	if (import && (!e->work->created || e->work->changed))
	{
		verdict = ll_say(LL_REFUSED, LL_DIM_OPENED);
		verdict.wait = LL_WAIT_NEVER;
		return verdict;
	}
	return book(e, import, row);
}

static void
answer(const LLUsageElement *e, bool import, LLReceipt *receipt)
{
	LLOperationRow row = {0};
	LLVerdict	verdict = decide(e, import, &row);

	ll_receipt_answer(receipt, verdict, e->work->clock);
	receipt->state = NULL;		/* there is no reservation */
	if (e->work->reigns.ruling == NULL)
		return;
	if (row.route != 0)
	{
		receipt->operation = e->operation;
		receipt->actual_units = row.usage_units;
		receipt->generation = row.generation;
		receipt->epoch = row.epoch;
	}
	ll_receipt_pair(receipt, e->work);
}

static int
by_pair(const void *a, const void *b)
{
	const LLUsageElement *x = *(LLUsageElement *const *) a;
	const LLUsageElement *y = *(LLUsageElement *const *) b;
	int			order = ll_pair_compare(x->subject, x->route, y->subject, y->route);

	return order != 0 ? order : x->index - y->index;
}

static int
by_operation(const void *a, const void *b)
{
	const LLUsageElement *x = *(LLUsageElement *const *) a;
	const LLUsageElement *y = *(LLUsageElement *const *) b;
	int			order = ll_pair_compare(x->subject, x->operation, y->subject, y->operation);

	return order != 0 ? order : x->index - y->index;
}

/* open_pairs locks every pair, and makes the head of one that has none. */
static void
open_pairs(LLUsageElement **pairs, int count)
{
	for (int i = 0; i < count; i++)
	{
		LLUsageElement *e = pairs[i];

		CHECK_FOR_INTERRUPTS();
		if (i > 0 && ll_pair_compare(pairs[i - 1]->subject, pairs[i - 1]->route,
									 e->subject, e->route) == 0)
		{
			e->work = pairs[i - 1]->work;
			continue;
		}
		e->work = palloc(sizeof(LLPairWork));
		ll_pair_init(e->work, e->subject, e->route);
		(void) ll_pair_open(e->work);
	}
}

/* ll_record_unreserved books usage that was never reserved here; what is imported opens its pair. */
void
ll_record_unreserved(LLUsageElement *elements, int count, bool import, LLReceipt *receipts)
{
	LLUsageElement **pairs = palloc(sizeof(LLUsageElement *) * count);
	LLUsageElement **operations = palloc(sizeof(LLUsageElement *) * count);

	for (int i = 0; i < count; i++)
	{
		elements[i].index = i;
		pairs[i] = operations[i] = &elements[i];
	}
	qsort(pairs, count, sizeof(LLUsageElement *), by_pair);
	qsort(operations, count, sizeof(LLUsageElement *), by_operation);

	open_pairs(pairs, count);
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		answer(operations[i], import, &receipts[operations[i]->index]);
		ll_store_step();
	}
	for (int i = 0; i < count; i++)
		if ((i == 0 || pairs[i]->work != pairs[i - 1]->work) && pairs[i]->work->locked)
			ll_pair_write(pairs[i]->work);
}
