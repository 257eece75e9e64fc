/*
 * resolve.c
 *	  get_reservation and resolve_reservation: after a lost reply (D11).
 *
 * get reads what is committed.  resolve is the final word: the insertion of
 * its fence waits for any transaction that is using the id, so afterwards the
 * id either has its receipt or can never take anything.  It needs no pair.
 */
#include "postgres.h"

#include "ledger.h"
#include "store/clock.h"

/* ll_get_reservation answers by id, or RESERVATION_UNKNOWN. */
void
ll_get_reservation(Datum subject, Datum id, LLReceipt *receipt)
{
	LLReservationRow row = {0};
	Snapshot	snapshot = ll_snapshot_take();

	if (ll_reservation_peek(&row, subject, id, snapshot))
		ll_receipt_stored(receipt, ll_replayed(), &row);
	else
		ll_receipt_answer(receipt, ll_say(LL_UNKNOWN, LL_DIM_RESERVATION), ll_clock_now());
	ll_snapshot_drop(snapshot);
}

/* fence makes the row that a late original will find: released, nothing held. */
static LLReservationRow
fence(Datum subject, Datum id, Datum digest)
{
	LLReservationRow row = {0};
	TimestampTz now = ll_clock_now();

	row.subject = subject;
	row.id = id;
	row.epoch = LL_NO_TIME;
	row.state.state = ll_transition(LL_ABSENT, LL_EVENT_RESOLVE)->next;
	row.state.expires_at = now;
	row.digest = digest;
	row.reserved_at = now;
	row.ended_at = now;
	row.started_at = LL_NO_TIME;
	row.unknown_at = LL_NO_TIME;
	row.excess_epoch = LL_NO_TIME;
	return row;
}

/*
 * ll_resolve_reservation returns the receipt, or fences the id.  Of a subject
 * that the login may not name nothing is known, and nothing is fenced (I1): the
 * answer is no promise.
 */
void
ll_resolve_reservation(Datum subject, Datum id, Datum digest, LLReceipt *receipt)
{
	if (ll_binding_is_nobody(subject))
	{
		ll_receipt_answer(receipt, ll_say(LL_UNKNOWN, LL_DIM_RESERVATION), ll_clock_now());
		return;
	}
	for (;;)
	{
		LLReservationRow row = {0};
		Snapshot	snapshot = ll_snapshot_take();
		bool		found = ll_reservation_peek(&row, subject, id, snapshot);

		ll_snapshot_drop(snapshot);
		if (found && ll_bytes_equal(row.digest, digest))
		{
			ll_receipt_stored(receipt, ll_replayed(), &row);
			return;
		}
		if (found)
		{
			ll_receipt_answer(receipt, ll_say(LL_CONFLICT, LL_DIM_REQUEST), ll_clock_now());
			receipt->state = ll_state_name(row.state.state);
			return;
		}
		row = fence(subject, id, digest);
		if (ll_reservation_insert(&row))
		{
			ll_receipt_stored(receipt, ll_say(LL_ACCEPTED, LL_DIM_NONE), &row);
			return;
		}
		/* somebody else had it in flight, and has committed by now: look again */
	}
}
