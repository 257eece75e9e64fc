/*
 * budget.c
 *	  Pairs: what stands, what is owed, who may go on (C, D8, E).
 */
#include "postgres.h"

#include "core/arith.h"
#include "ledger.h"
#include "store/columns.h"
#include "errors.h"

/* ll_admission_name says whether the pair admits, in one word. */
const char *
ll_admission_name(const LLPairWork *work)
{
	if (work->head.pair.frozen || work->reigns.frozen_reason != 0)
		return "frozen";
	if (!ll_policy_covers(&work->reigns))
		return "no_policy";
	if (work->reigns.ruling->draining)
		return "draining";
	return ll_pair_debt(&work->head.pair) > 0 ? "suspended" : "open";
}

/* what due holds still hold: the next reserve that needs it ends them (D14) */
static LLUnits
due_units(const LLPairWork *work, Snapshot snapshot)
{
	LLReservationRow row = {0};
	LLUnits		units = 0;
	LLScan	   *scan;

	row.slot = ll_table_slot(LL_TABLE_RESERVATION);
	scan = ll_pair_due_begin(&work->head, 0, work->head.pair.seen_at, snapshot);
	while (ll_scan_next(scan, row.slot))
	{
		ll_reservation_read(&row);
		units = ll_add_capped(units, row.state.reserved_units);
	}
	ll_scan_end(scan);
	return units;
}

/*
 * ll_get_budget shows the pair as of now, with refill and epochs that are due
 * counted in and nothing written.  A pair that no call has met yet shows what
 * its first one would find.
 */
void
ll_get_budget(Datum subject, Datum route, LLBudgetAnswer *answer)
{
	Snapshot	snapshot = ll_snapshot_take();

	ll_pair_init(&answer->work, subject, route);
	(void) ll_pair_find(&answer->work, snapshot);
	ll_pair_present(&answer->work);
	answer->found = answer->work.reigns.ruling != NULL;
	if (answer->work.head.exists)
		answer->due_units = due_units(&answer->work, snapshot);
	ll_snapshot_drop(snapshot);
}

/*
 * ll_repay_debt lets what is due pay the debt, and writes it (E2, E3).  A lost
 * reply repeats nothing: what was paid is no longer owed.
 */
void
ll_repay_debt(Datum subject, Datum route, LLBudgetAnswer *answer)
{
	LLPairWork *work = &answer->work;

	ll_pair_init(work, subject, route);
	answer->verdict = ll_say(LL_UNKNOWN, LL_DIM_PAIR);
	if (ll_pair_find_and_lock(work, LockWaitBlock) != LL_LOCK_TAKEN)
		return;
	answer->found = true;
	ll_pair_present(work);
	answer->repaid_units = work->debt_before - ll_pair_debt(&work->head.pair);
	answer->verdict = ll_say(LL_ACCEPTED, LL_DIM_NONE);
	answer->verdict.replayed = answer->repaid_units == 0;
	work->changed = ll_pair_rolled(work);
	ll_pair_write(work);
}

/* no_policy: operators can only act on a pair that a policy covers. */
static void
no_policy(LLBudgetAnswer *answer)
{
	answer->found = false;
	answer->verdict = ll_say(LL_REFUSED, LL_DIM_NO_POLICY);
}

/* ll_freeze_pair stops a pair's admission, and records who did it and why (D8). */
void
ll_freeze_pair(Datum subject, Datum route, Datum reason, LLBudgetAnswer *answer)
{
	LLPairWork *work = &answer->work;

	ll_pair_init(work, subject, route);
	answer->found = ll_pair_open(work);
	if (!answer->found)
	{
		no_policy(answer);
		return;
	}
	answer->verdict = ll_freeze(&work->head.pair);
	if (!answer->verdict.replayed)
	{
		work->head.frozen_at = work->head.pair.seen_at;
		work->head.frozen_reason = reason;
		work->changed = true;
		ll_action_insert(work->head.pair.seen_at, "freeze", subject, route, reason);
	}
	ll_pair_write(work);
}

/*
 * ll_grant_capacity mints what an operator grants, once per grant id: debt,
 * then deficit, then available within the cap (E3).  What found no room was
 * not granted, and a repeat does not try again.
 */
void
ll_grant_capacity(Datum subject, Datum route, Datum grant_id, LLUnits units, Datum reason,
				  LLBudgetAnswer *answer)
{
	LLPairWork *work = &answer->work;
	LLGrantRow	grant;
	Snapshot	snapshot;

	ll_pair_init(work, subject, route);
	answer->found = ll_pair_open(work);
	if (!answer->found)
	{
		no_policy(answer);
		return;
	}
	snapshot = ll_snapshot_take();
	if (ll_grant_look(&grant, subject, route, grant_id, snapshot))
	{
		answer->verdict = grant.units == units ? ll_replayed() : ll_say(LL_CONFLICT, LL_DIM_GRANT);
		answer->granted_units = grant.granted_units;
	}
	else
	{
		answer->verdict = ll_grant(&work->head.pair, ll_pair_policy(work), units,
								   &answer->granted_units);
		if (answer->verdict.overflow)
			ll_overflow("minted");
		grant.units = units;
		grant.granted_units = answer->granted_units;
		if (!ll_grant_insert(subject, route, grant_id, &grant, reason, work->head.pair.seen_at))
			ll_broken("E3", "a grant was recorded without its pair's lock");
		work->changed = true;
	}
	ll_snapshot_drop(snapshot);
	ll_pair_write(work);
}

/* ll_unfreeze_pair opens a frozen pair and records who did it and why (D8). */
void
ll_unfreeze_pair(Datum subject, Datum route, Datum reason, LLBudgetAnswer *answer)
{
	LLPairWork *work = &answer->work;

	ll_pair_init(work, subject, route);
	answer->verdict = ll_say(LL_UNKNOWN, LL_DIM_PAIR);
	if (ll_pair_find_and_lock(work, LockWaitBlock) != LL_LOCK_TAKEN)
		return;
	answer->found = true;
	ll_pair_present(work);
	answer->verdict = ll_unfreeze(&work->head.pair);
	if (answer->verdict.outcome == LL_ACCEPTED && !answer->verdict.replayed)
	{
		work->head.frozen_at = LL_NO_TIME;
		work->head.frozen_reason = 0;
		work->changed = true;
		ll_action_insert(work->head.pair.seen_at, "unfreeze", subject, route, reason);
	}
	ll_pair_write(work);
}

/*
 * ll_repay_debtors does so for pairs that owe, a bounded number in key order,
 * and skips those that are locked.
 */
void
ll_repay_debtors(int32 limit, Datum after_subject, Datum after_route, LLDebtors *debtors)
{
	Snapshot	snapshot = ll_snapshot_take();
	TupleTableSlot *slot = ll_table_slot(LL_TABLE_HEAD);
	ScanKeyData key;
	LLScan	   *scan;
	int32		met = 0;

	ll_key_text_from(&key, 1, after_subject);
	scan = ll_scan_begin(LL_INDEX_HEAD_DEBT, snapshot, &key, 1);
	while (met < limit && ll_scan_next(scan, slot))
	{
		LLPairWork *work = palloc(sizeof(LLPairWork));
		LLUnits		repaid;

		slot_getallattrs(slot);
		if (ll_pair_compare(slot->tts_values[LL_BUDGET_SUBJECT], slot->tts_values[LL_BUDGET_ROUTE],
							after_subject, after_route) <= 0)
			continue;
		met++;
		debtors->last_subject = ll_copy_varlena(slot->tts_values[LL_BUDGET_SUBJECT]);
		debtors->last_route = ll_copy_varlena(slot->tts_values[LL_BUDGET_ROUTE]);
		ll_pair_init(work, debtors->last_subject, debtors->last_route);
		if (ll_faulty(debtors->last_subject, debtors->last_route) ||
			ll_pair_find_and_lock(work, LockWaitSkip) != LL_LOCK_TAKEN)
		{
			debtors->busy = true;
			continue;
		}
		ll_pair_present(work);
		debtors->next_at = Min(debtors->next_at, ll_pair_relief_at(work));
		repaid = work->debt_before - ll_pair_debt(&work->head.pair);
		debtors->pairs += repaid > 0;
		debtors->repaid_units = ll_add_capped(debtors->repaid_units, repaid);
		work->changed = ll_pair_rolled(work);
		ll_pair_write(work);
	}
	if (met < limit)
		debtors->last_subject = debtors->last_route = 0;
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
}
