/*
 * extend.c
 *	  extend_reservation: more units or a later deadline, before it runs out (D13).
 *
 *	  lock the head, read the clock, roll; lock the reservation row; decide like
 *	  a reserve; record the extension id, write the row and the budget
 *
 * Lost reply: the same extension id gets the same answer, also after the
 * reservation has ended.  Extend against expiry: whoever locks the row first
 * wins.  New epoch or generation meanwhile: the deadline can still move, units
 * can't be added to a budget that has closed.
 */
#include "postgres.h"

#include "errors.h"
#include "ledger.h"
#include "store/clock.h"

/* stored_answer: what stands under the extension id, if anything. */
static bool
stored_answer(const LLReservationRow *row, Datum extension_id, const LLExtensionRow *asked,
			  LLVerdict *verdict)
{
	LLExtensionRow stored;
	Snapshot	snapshot = ll_snapshot_take();
	bool		found = ll_extension_look(&stored, row->subject, row->id, extension_id, snapshot);

	ll_snapshot_drop(snapshot);
	if (found)
		*verdict = stored.units == asked->units && stored.expires_at == asked->expires_at
			? ll_replayed() : ll_say(LL_CONFLICT, LL_DIM_EXTENSION);
	return found;
}

/* extend decides and writes, on a locked row of a locked pair. */
static LLVerdict
extend(LLPairWork *work, LLReservationRow *row, Datum extension_id, const LLExtensionRow *asked)
{
	LLExtension extension = {0};
	LLVerdict	verdict;

	if (stored_answer(row, extension_id, asked, &verdict))
		return verdict;
	extension.units = asked->units;
	extension.expires_at = asked->expires_at;	/* LL_NO_TIME is before any other */
	extension.head = ll_pair_budget(work, row->generation, row->epoch) == NULL;
	extension.draining = work->reigns.ruling->draining;
	extension.route_frozen = work->reigns.frozen_reason != 0;
	extension.quarantined = ll_recovery_stops_admission();
	do
	{
		verdict = ll_extend(&work->head.pair, &row->state,
							&ll_policy_get(row->generation)->policy, ll_pair_policy(work),
							&extension, work->head.pair.seen_at);
	} while (ll_holds_matter(&verdict) && ll_end_due_holds(work));
	if (verdict.overflow)
		ll_overflow("reserved");
	if (verdict.outcome == LL_ACCEPTED)
	{
		if (!ll_extension_insert(row->subject, row->id, extension_id, asked,
								 work->head.pair.seen_at))
			ll_broken("D13", "an extension was recorded without its reservation's lock");
		ll_reservation_update(row);
		work->changed |= asked->units > 0;
	}
	ll_pair_write(work);
	return verdict;
}

/* ll_extend_reservation extends one reservation. */
void
ll_extend_reservation(Datum subject, Datum id, Datum extension_id,
					  const LLExtensionRow *asked, LLReceipt *receipt)
{
	LLReservationRow row = {0};
	LLPairWork	work;
	LLVerdict	verdict;
	Snapshot	snapshot = ll_snapshot_take();

	if (!ll_reservation_peek(&row, subject, id, snapshot))
	{
		ll_snapshot_drop(snapshot);
		ll_receipt_answer(receipt, ll_say(LL_UNKNOWN, LL_DIM_RESERVATION), ll_clock_now());
		return;
	}
	if (row.route == 0)
	{
		ll_snapshot_drop(snapshot);
		ll_receipt_stored(receipt, ll_say(LL_REFUSED, LL_DIM_RELEASED), &row);
		return;
	}
	ll_pair_init(&work, subject, ll_copy_varlena(row.route));
	if (ll_pair_find_and_lock(&work, LockWaitBlock) != LL_LOCK_TAKEN)
		ll_broken("B3", "the pair of a reservation has no head");
	ll_pair_present(&work);
	if (ll_reservation_lock(&row, snapshot, LockWaitBlock) != LL_LOCK_TAKEN)
	{
		/* ended and purged while this call waited (D15) */
		ll_snapshot_drop(snapshot);
		ll_receipt_answer(receipt, ll_say(LL_UNKNOWN, LL_DIM_RESERVATION), work.clock);
		return;
	}
	ll_snapshot_drop(snapshot);
	verdict = extend(&work, &row, extension_id, asked);
	ll_receipt_answer(receipt, verdict, work.clock);
	ll_receipt_reservation(receipt, &row);
	ll_receipt_pair(receipt, &work);
}
