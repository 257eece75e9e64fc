/*
 * trust.c
 *	  The keys that are trusted now, for those who open envelopes (G3).
 *
 * Read at the ledger's clock in a snapshot of its own, with no row locked: a
 * key that is distrusted by a call that commits later is one that this
 * opening came before.  There are few keys, so all of them are looked at.
 */
#include "postgres.h"

#include "trust.h"

#include "ledger.h"
#include "store/clock.h"
#include "store/columns.h"

/* lives tells whether a key is still trusted: not from the instant on that ends its life. */
static bool
lives(TupleTableSlot *slot, TimestampTz now)
{
	return slot->tts_isnull[LL_TRUSTED_KEY_TRUSTED_UNTIL] ||
		now < DatumGetTimestampTz(slot->tts_values[LL_TRUSTED_KEY_TRUSTED_UNTIL]);
}

static void
keep(LLTrusted *trusted, TupleTableSlot *slot)
{
	LLTrustedKey *key;

	if (trusted->count == trusted->room)
	{
		trusted->room = Max(8, trusted->room * 2);
		trusted->keys = trusted->keys == NULL
			? palloc(sizeof(LLTrustedKey) * trusted->room)
			: repalloc(trusted->keys, sizeof(LLTrustedKey) * trusted->room);
	}
	key = &trusted->keys[trusted->count++];
	key->kid = ll_copy_varlena(slot->tts_values[LL_TRUSTED_KEY_KID]);
	key->public_key = ll_copy_varlena(slot->tts_values[LL_TRUSTED_KEY_PUBLIC_KEY]);
	key->gateway = slot->tts_isnull[LL_TRUSTED_KEY_GATEWAY] ? (Datum) 0
		: ll_copy_varlena(slot->tts_values[LL_TRUSTED_KEY_GATEWAY]);
}

/* ll_trust_read lists the keys that are alive and of the kind that is asked for. */
void
ll_trust_read(LLTrusted *trusted)
{
	Snapshot	snapshot = ll_snapshot_take();
	TupleTableSlot *slot = ll_table_slot(LL_TABLE_TRUSTED_KEY);
	LLScan	   *scan = ll_scan_begin(LL_INDEX_TRUSTED_KEY, snapshot, NULL, 0);
	TimestampTz now = ll_clock_now();

	while (ll_scan_next(scan, slot))
	{
		slot_getallattrs(slot);
		if (slot->tts_isnull[LL_TRUSTED_KEY_GATEWAY] != trusted->of_gateways && lives(slot, now))
			keep(trusted, slot);
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
}
