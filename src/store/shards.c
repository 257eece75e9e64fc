/*
 * shards.c
 *	  Rows of the ledger's side of shards <-> structs.  See shards.h.
 */
#include "postgres.h"

#include "shards.h"

#include "columns.h"
#include "core/arith.h"
#include "errors.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "values.h"

/* ---- shards ------------------------------------------------------------- */

static void
read_emergency(LLEmergencyRow *row)
{
	TupleTableSlot *slot = row->slot;
	LLIssuedShard *state = &row->state;

	slot_getallattrs(slot);
	row->subject = slot->tts_values[LL_EMERGENCY_SUBJECT];
	row->id = slot->tts_values[LL_EMERGENCY_SHARD_ID];
	row->route = slot->tts_values[LL_EMERGENCY_ROUTE];
	row->generation = ll_int8_of(slot, LL_EMERGENCY_GENERATION);
	row->epoch = ll_int8_of(slot, LL_EMERGENCY_EPOCH);
	row->gateway = ll_varlena_of(slot, LL_EMERGENCY_GATEWAY);
	memset(&row->boot_epoch, 0, sizeof(row->boot_epoch));
	row->fence = 0;
	if (row->gateway != 0)
	{
		row->boot_epoch = *DatumGetUUIDP(slot->tts_values[LL_EMERGENCY_BOOT_EPOCH]);
		row->fence = ll_int8_of(slot, LL_EMERGENCY_FENCE);
	}
	row->issued_at = ll_int8_of(slot, LL_EMERGENCY_ISSUED_AT);
	row->expires_at = ll_time_of(slot, LL_EMERGENCY_EXPIRES_AT);
	row->issued_by = DatumGetUInt64(slot->tts_values[LL_EMERGENCY_ISSUED_BY]);
	row->actor = slot->tts_values[LL_EMERGENCY_ACTOR];
	row->sequence = ll_int8_of(slot, LL_EMERGENCY_SEQUENCE);
	row->written_off_at = ll_time_of(slot, LL_EMERGENCY_WRITTEN_OFF_AT);
	row->written_off_reason = ll_varlena_of(slot, LL_EMERGENCY_WRITTEN_OFF_REASON);
	row->settled_at = ll_time_of(slot, LL_EMERGENCY_SETTLED_AT);

	state->last.allocated = ll_int8_of(slot, LL_EMERGENCY_ALLOCATED_UNITS);
	state->last.available = ll_int8_of(slot, LL_EMERGENCY_LOCAL_AVAILABLE);
	state->last.reserved = ll_int8_of(slot, LL_EMERGENCY_LOCAL_RESERVED);
	state->last.spent = ll_int8_of(slot, LL_EMERGENCY_LOCAL_SPENT);
	state->last.retired = ll_int8_of(slot, LL_EMERGENCY_LOCAL_RETIRED);
	state->last.excess = ll_int8_of(slot, LL_EMERGENCY_LOCAL_EXCESS);
	state->last.sealed = DatumGetBool(slot->tts_values[LL_EMERGENCY_SEALED]);
	state->line = ll_int8_of(slot, LL_EMERGENCY_LINE);
	state->receipted = ll_int8_of(slot, LL_EMERGENCY_RECEIPTED_UNITS);
	state->confirmed = ll_int8_of(slot, LL_EMERGENCY_CONFIRMED_UNITS);
	state->reminted = ll_int8_of(slot, LL_EMERGENCY_REMINTED_UNITS);
	state->written_off = row->written_off_at != LL_NO_TIME;
	state->legacy = row->gateway == 0;
}

static void
put_emergency(Datum *values, bool *nulls, const LLEmergencyRow *row)
{
	const LLIssuedShard *state = &row->state;

	memset(nulls, false, LL_EMERGENCY_NATTS * sizeof(bool));
	values[LL_EMERGENCY_SUBJECT] = row->subject;
	values[LL_EMERGENCY_SHARD_ID] = row->id;
	values[LL_EMERGENCY_ROUTE] = row->route;
	values[LL_EMERGENCY_GENERATION] = Int64GetDatum(row->generation);
	values[LL_EMERGENCY_EPOCH] = TimestampTzGetDatum(row->epoch);
	values[LL_EMERGENCY_LINE] = Int64GetDatum(state->line);
	ll_put_varlena(values, nulls, LL_EMERGENCY_GATEWAY, row->gateway);
	nulls[LL_EMERGENCY_BOOT_EPOCH] = nulls[LL_EMERGENCY_FENCE] = row->gateway == 0;
	values[LL_EMERGENCY_BOOT_EPOCH] = UUIDPGetDatum(&row->boot_epoch);
	values[LL_EMERGENCY_FENCE] = Int64GetDatum(row->fence);
	values[LL_EMERGENCY_ALLOCATED_UNITS] = Int64GetDatum(state->last.allocated);
	values[LL_EMERGENCY_ISSUED_AT] = TimestampTzGetDatum(row->issued_at);
	ll_put_time(values, nulls, LL_EMERGENCY_EXPIRES_AT, row->expires_at);
	values[LL_EMERGENCY_ISSUED_BY] = UInt64GetDatum(row->issued_by);
	values[LL_EMERGENCY_ACTOR] = row->actor;
	values[LL_EMERGENCY_SEQUENCE] = Int64GetDatum(row->sequence);
	values[LL_EMERGENCY_SEALED] = BoolGetDatum(state->last.sealed);
	values[LL_EMERGENCY_LOCAL_AVAILABLE] = Int64GetDatum(state->last.available);
	values[LL_EMERGENCY_LOCAL_RESERVED] = Int64GetDatum(state->last.reserved);
	values[LL_EMERGENCY_LOCAL_SPENT] = Int64GetDatum(state->last.spent);
	values[LL_EMERGENCY_LOCAL_RETIRED] = Int64GetDatum(state->last.retired);
	values[LL_EMERGENCY_LOCAL_EXCESS] = Int64GetDatum(state->last.excess);
	values[LL_EMERGENCY_RECEIPTED_UNITS] = Int64GetDatum(state->receipted);
	values[LL_EMERGENCY_CONFIRMED_UNITS] = Int64GetDatum(state->confirmed);
	values[LL_EMERGENCY_REMINTED_UNITS] = Int64GetDatum(state->reminted);
	ll_put_time(values, nulls, LL_EMERGENCY_WRITTEN_OFF_AT, row->written_off_at);
	ll_put_varlena(values, nulls, LL_EMERGENCY_WRITTEN_OFF_REASON, row->written_off_reason);
	ll_put_time(values, nulls, LL_EMERGENCY_SETTLED_AT, row->settled_at);
}

/* ll_emergency_look reads a shard without a lock. */
bool
ll_emergency_look(LLEmergencyRow *row, Datum subject, Datum id, Snapshot snapshot)
{
	ScanKeyData key[2];

	if (row->slot == NULL)
		row->slot = ll_table_slot(LL_TABLE_EMERGENCY_SHARD);
	ll_key_text(&key[0], 1, subject);
	ll_key_text(&key[1], 2, id);
	if (!ll_find(LL_INDEX_EMERGENCY_SHARD, snapshot, key, 2, row->slot))
		return false;
	ExecMaterializeSlot(row->slot);
	read_emergency(row);
	return true;
}

/* ll_emergency_lock locks a shard that was found, and reads what it locked. */
bool
ll_emergency_lock(LLEmergencyRow *row, Snapshot snapshot)
{
	if (ll_row_lock(LL_TABLE_EMERGENCY_SHARD, row->slot, snapshot, LockWaitBlock, NULL) != LL_LOCK_TAKEN)
		return false;
	read_emergency(row);
	return true;
}

void
ll_emergency_insert(const LLEmergencyRow *row)
{
	Datum		values[LL_EMERGENCY_NATTS];
	bool		nulls[LL_EMERGENCY_NATTS];

	put_emergency(values, nulls, row);
	if (!ll_row_insert(LL_TABLE_EMERGENCY_SHARD, values, nulls, LockWaitBlock, NULL))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent use of a shard id"),
				 errhint("Repeat the transaction with the same ids.")));
}

void
ll_emergency_update(const LLEmergencyRow *row)
{
	Datum		values[LL_EMERGENCY_NATTS];
	bool		nulls[LL_EMERGENCY_NATTS];

	put_emergency(values, nulls, row);
	ll_row_update(LL_TABLE_EMERGENCY_SHARD, row->slot, values, nulls);
}

/*
 * ll_emergency_outstanding sums up the shards of a locked pair that gateways may
 * still spend, or have not accounted for.
 */
LLUnits
ll_emergency_outstanding(Datum subject, Datum route)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLEmergencyRow row = {0};
	LLUnits		units = 0;
	ScanKeyData key[2];
	LLScan	   *scan;

	row.slot = ll_table_scratch(LL_TABLE_EMERGENCY_SHARD);
	ll_key_text(&key[0], 1, subject);
	ll_key_text(&key[1], 2, route);
	scan = ll_scan_begin(LL_INDEX_EMERGENCY_OPEN, snapshot, key, 2);
	while (ll_scan_next(scan, row.slot))
	{
		read_emergency(&row);
		if (!row.state.legacy)
			units = ll_add_capped(units, row.state.last.allocated);
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	return units;
}

/*
 * ll_legacy_others lists the ids of the old limiter's other shares of a subject.
 * Two that are reported at once on two routes may miss each other.
 */
List *
ll_legacy_others(const LLEmergencyRow *row)
{
	Snapshot	snapshot = ll_snapshot_take();
	LLEmergencyRow other = {0};
	List	   *ids = NIL;
	ScanKeyData key;
	LLScan	   *scan;

	other.slot = ll_table_scratch(LL_TABLE_EMERGENCY_SHARD);
	ll_key_text(&key, 1, row->subject);
	scan = ll_scan_begin(LL_INDEX_EMERGENCY_SHARD, snapshot, &key, 1);
	while (ll_scan_next(scan, other.slot))
	{
		CHECK_FOR_INTERRUPTS();
		read_emergency(&other);
		if (other.state.legacy && !ll_bytes_equal(other.id, row->id))
			ids = lappend(ids, DatumGetPointer(ll_copy_varlena(other.id)));
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	return ids;
}

/* ---- gateways ----------------------------------------------------------- */

/* ll_gateway_lock locks a gateway that is registered, for its fence. */
bool
ll_gateway_lock(LLGatewayRow *row, Datum gateway)
{
	Snapshot	snapshot = ll_snapshot_take();
	ScanKeyData key;
	bool		locked;

	row->slot = ll_table_slot(LL_TABLE_GATEWAY);
	ll_key_text(&key, 1, gateway);
	locked = ll_find(LL_INDEX_GATEWAY, snapshot, &key, 1, row->slot) &&
		ll_row_lock(LL_TABLE_GATEWAY, row->slot, snapshot, LockWaitBlock, NULL) == LL_LOCK_TAKEN;
	ll_snapshot_drop(snapshot);
	if (!locked)
		return false;
	slot_getallattrs(row->slot);
	row->gateway = row->slot->tts_values[LL_GATEWAY_ID];
	row->booted = !row->slot->tts_isnull[LL_GATEWAY_BOOT_EPOCH];
	if (row->booted)
		row->boot_epoch = *DatumGetUUIDP(row->slot->tts_values[LL_GATEWAY_BOOT_EPOCH]);
	row->last_fence = ll_int8_of(row->slot, LL_GATEWAY_LAST_FENCE);
	return true;
}

/* ll_gateway_fence writes the fence that was given out last. */
void
ll_gateway_fence(const LLGatewayRow *row)
{
	Datum		values[LL_GATEWAY_NATTS];
	bool		nulls[LL_GATEWAY_NATTS];

	memcpy(values, row->slot->tts_values, sizeof(values));
	memcpy(nulls, row->slot->tts_isnull, sizeof(nulls));
	values[LL_GATEWAY_LAST_FENCE] = Int64GetDatum(row->last_fence);
	ll_row_update(LL_TABLE_GATEWAY, row->slot, values, nulls);
}

/* ---- reports and receipts ----------------------------------------------- */

/* ll_report_look tells what was reconciled under a number. */
bool
ll_report_look(LLReportRow *report, const LLEmergencyRow *shard, int64 sequence)
{
	Snapshot	snapshot = ll_snapshot_take();
	TupleTableSlot *slot = ll_table_scratch(LL_TABLE_SHARD_REPORT);
	ScanKeyData key[3];
	bool		found;

	ll_key_text(&key[0], 1, shard->subject);
	ll_key_text(&key[1], 2, shard->id);
	ll_key_int8(&key[2], 3, sequence);
	found = ll_find(LL_INDEX_SHARD_REPORT, snapshot, key, 3, slot);
	ll_snapshot_drop(snapshot);
	if (!found)
		return false;
	slot_getallattrs(slot);
	report->sequence = sequence;
	report->digest = ll_varlena_of(slot, LL_SHARD_REPORT_DIGEST);
	report->done.excess = ll_int8_of(slot, LL_SHARD_REPORT_EXCESS_UNITS);
	report->done.confirmed = ll_int8_of(slot, LL_SHARD_REPORT_CONFIRMED_UNITS);
	report->done.reminted = ll_int8_of(slot, LL_SHARD_REPORT_REMINTED_UNITS);
	return true;
}

/* ll_report_insert records a report; its shard is locked. */
void
ll_report_insert(const LLReportRow *report, const LLEmergencyRow *shard, const LLHead *head)
{
	Datum		values[LL_SHARD_REPORT_NATTS];
	bool		nulls[LL_SHARD_REPORT_NATTS] = {false};

	values[LL_SHARD_REPORT_SUBJECT] = shard->subject;
	values[LL_SHARD_REPORT_SHARD_ID] = shard->id;
	values[LL_SHARD_REPORT_SEQUENCE] = Int64GetDatum(report->sequence);
	ll_put_varlena(values, nulls, LL_SHARD_REPORT_DIGEST, report->digest);
	values[LL_SHARD_REPORT_RECONCILED_AT] = TimestampTzGetDatum(head->pair.seen_at);
	values[LL_SHARD_REPORT_ROUTE] = shard->route;
	values[LL_SHARD_REPORT_GENERATION] = Int64GetDatum(head->pair.head.generation);
	values[LL_SHARD_REPORT_EPOCH] = TimestampTzGetDatum(head->pair.head.epoch);
	values[LL_SHARD_REPORT_EXCESS_UNITS] = Int64GetDatum(report->done.excess);
	values[LL_SHARD_REPORT_CONFIRMED_UNITS] = Int64GetDatum(report->done.confirmed);
	values[LL_SHARD_REPORT_REMINTED_UNITS] = Int64GetDatum(report->done.reminted);
	if (!ll_row_insert(LL_TABLE_SHARD_REPORT, values, nulls, LockWaitBlock, NULL))
		ll_broken("G6", "a report was reconciled without its shard's lock");
}

/* ll_receipt_look tells how a reservation of the shard was said to have ended. */
bool
ll_receipt_look(LLShardReceipt *receipt, const LLEmergencyRow *shard, Datum reservation)
{
	Snapshot	snapshot = ll_snapshot_take();
	TupleTableSlot *slot = ll_table_scratch(LL_TABLE_SHARD_RECEIPT);
	ScanKeyData key[3];
	bool		found;

	ll_key_text(&key[0], 1, shard->subject);
	ll_key_text(&key[1], 2, shard->id);
	ll_key_text(&key[2], 3, reservation);
	found = ll_find(LL_INDEX_SHARD_RECEIPT, snapshot, key, 3, slot);
	ll_snapshot_drop(snapshot);
	if (!found)
		return false;
	slot_getallattrs(slot);
	receipt->reserved_units = ll_int8_of(slot, LL_SHARD_RECEIPT_RESERVED_UNITS);
	receipt->actual_units = slot->tts_isnull[LL_SHARD_RECEIPT_ACTUAL_UNITS]
		? -1 : ll_int8_of(slot, LL_SHARD_RECEIPT_ACTUAL_UNITS);
	return true;
}

/* ll_receipt_insert records one; its shard is locked, and `sequence` is its report. */
void
ll_receipt_insert(const LLShardReceipt *receipt, const LLEmergencyRow *shard)
{
	Datum		values[LL_SHARD_RECEIPT_NATTS];
	bool		nulls[LL_SHARD_RECEIPT_NATTS] = {false};

	values[LL_SHARD_RECEIPT_SUBJECT] = shard->subject;
	values[LL_SHARD_RECEIPT_SHARD_ID] = shard->id;
	values[LL_SHARD_RECEIPT_RESERVATION_ID] = receipt->reservation;
	values[LL_SHARD_RECEIPT_SEQUENCE] = Int64GetDatum(shard->sequence);
	values[LL_SHARD_RECEIPT_STATE] = CStringGetTextDatum(ll_state_name(receipt->state));
	ll_put_varlena(values, nulls, LL_SHARD_RECEIPT_OPERATION_ID, receipt->operation);
	values[LL_SHARD_RECEIPT_RESERVED_UNITS] = Int64GetDatum(receipt->reserved_units);
	nulls[LL_SHARD_RECEIPT_ACTUAL_UNITS] = receipt->actual_units < 0;
	values[LL_SHARD_RECEIPT_ACTUAL_UNITS] = Int64GetDatum(receipt->actual_units);
	if (!ll_row_insert(LL_TABLE_SHARD_RECEIPT, values, nulls, LockWaitBlock, NULL))
		ll_broken("G6", "a receipt was booked without its shard's lock");
}
