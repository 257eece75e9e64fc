/*
 * local.c
 *	  Rows <-> structs, on the side of a gateway.  See local.h.
 *
 * What cannot change is written back from the row that was locked.
 */
#include "postgres.h"

#include "local.h"

#include "access/stratnum.h"
#include "board.h"
#include "columns.h"
#include "errors.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "values.h"

/* the row that a scan over a unique key finds, if any */
static bool
find(LLIndexId index, Snapshot snapshot, ScanKey keys, int nkeys, TupleTableSlot *slot)
{
	LLScan	   *scan = ll_scan_begin(index, snapshot, keys, nkeys);
	bool		found = ll_scan_last(scan, slot);

	ll_scan_end(scan);
	return found;
}

/* as_stored copies the row that was locked, for an update to change. */
static void
as_stored(TupleTableSlot *slot, Datum *values, bool *nulls, int natts)
{
	slot_getallattrs(slot);
	memcpy(values, slot->tts_values, sizeof(Datum) * natts);
	memcpy(nulls, slot->tts_isnull, sizeof(bool) * natts);
}

/* ---- the gateway and its boot ------------------------------------------- */

static void
read_gateway(LLLocalGateway *gateway)
{
	TupleTableSlot *slot = gateway->slot;

	slot_getallattrs(slot);
	gateway->boot_epoch = *DatumGetUUIDP(slot->tts_values[LL_LOCAL_GATEWAY_BOOT_EPOCH]);
	gateway->booted_at = ll_int8_of(slot, LL_LOCAL_GATEWAY_BOOTED_AT);
	gateway->present =
		ll_int8_of(slot, LL_LOCAL_GATEWAY_SERVER_STARTED) == PgStartTime &&
		DatumGetObjectId(slot->tts_values[LL_LOCAL_GATEWAY_DATABASE_OID]) == MyDatabaseId &&
		DatumGetObjectId(slot->tts_values[LL_LOCAL_GATEWAY_RELATION_OID]) ==
		RelationGetRelid(ll_table(LL_TABLE_LOCAL_GATEWAY));
}

/* ll_local_gateway_peek reads which gateway this is; false: none. */
bool
ll_local_gateway_peek(LLLocalGateway *gateway, Snapshot snapshot)
{
	ScanKeyData key;

	gateway->slot = ll_table_slot(LL_TABLE_LOCAL_GATEWAY);
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_BOOLEQ, BoolGetDatum(true));
	if (!find(LL_INDEX_LOCAL_GATEWAY, snapshot, &key, 1, gateway->slot))
		return false;
	read_gateway(gateway);
	return true;
}

/* ll_local_gateway_lock locks the row that a peek has found, and reads it anew. */
LLLock
ll_local_gateway_lock(LLLocalGateway *gateway, Snapshot snapshot, LockWaitPolicy policy)
{
	LLLock		lock = ll_row_lock(LL_TABLE_LOCAL_GATEWAY, gateway->slot, snapshot, policy, NULL);

	if (lock == LL_LOCK_TAKEN)
		read_gateway(gateway);
	return lock;
}

/* ll_local_gateway_boot gives the locked gateway a new boot epoch, which no other one repeats (G5). */
void
ll_local_gateway_boot(LLLocalGateway *gateway, TimestampTz at)
{
	Datum		values[LL_LOCAL_GATEWAY_NATTS];
	bool		nulls[LL_LOCAL_GATEWAY_NATTS];

	/* random bits of the operating system, so that a clone does not draw the same */
	gateway->boot_epoch = *DatumGetUUIDP(DirectFunctionCall1(gen_random_uuid, (Datum) 0));
	gateway->booted_at = Max(at, gateway->booted_at);
	gateway->present = true;
	as_stored(gateway->slot, values, nulls, LL_LOCAL_GATEWAY_NATTS);
	values[LL_LOCAL_GATEWAY_BOOT_EPOCH] = UUIDPGetDatum(&gateway->boot_epoch);
	values[LL_LOCAL_GATEWAY_SERVER_STARTED] = TimestampTzGetDatum(PgStartTime);
	values[LL_LOCAL_GATEWAY_DATABASE_OID] = ObjectIdGetDatum(MyDatabaseId);
	values[LL_LOCAL_GATEWAY_RELATION_OID] =
		ObjectIdGetDatum(RelationGetRelid(ll_table(LL_TABLE_LOCAL_GATEWAY)));
	values[LL_LOCAL_GATEWAY_BOOTED_AT] = TimestampTzGetDatum(gateway->booted_at);
	ll_row_update(LL_TABLE_LOCAL_GATEWAY, gateway->slot, values, nulls);
}

/* ---- shards ------------------------------------------------------------- */

/* an interval of days and less; a month, which no envelope carries, counts 30 days */
static LLTime
duration(TupleTableSlot *slot, int column)
{
	Interval   *interval = DatumGetIntervalP(slot->tts_values[column]);

	return interval->time +
		((int64) interval->day + (int64) interval->month * DAYS_PER_MONTH) * USECS_PER_DAY;
}

static void
read_shard(LLLocalShard *shard)
{
	TupleTableSlot *slot = shard->slot;

	slot_getallattrs(slot);
	shard->subject = slot->tts_values[LL_LOCAL_SHARD_SUBJECT];
	shard->id = slot->tts_values[LL_LOCAL_SHARD_SHARD_ID];
	shard->route = slot->tts_values[LL_LOCAL_SHARD_ROUTE];
	shard->generation = ll_int8_of(slot, LL_LOCAL_SHARD_GENERATION);
	shard->epoch = ll_int8_of(slot, LL_LOCAL_SHARD_EPOCH);
	shard->boot_epoch = *DatumGetUUIDP(slot->tts_values[LL_LOCAL_SHARD_BOOT_EPOCH]);
	shard->fence = ll_int8_of(slot, LL_LOCAL_SHARD_FENCE);
	shard->largest_reservation = ll_int8_of(slot, LL_LOCAL_SHARD_LARGEST_RESERVATION);
	shard->hard_limit = ll_int8_of(slot, LL_LOCAL_SHARD_HARD_EXECUTION_LIMIT);
	shard->hold_ttl = duration(slot, LL_LOCAL_SHARD_HOLD_TTL);
	shard->execution_ttl = duration(slot, LL_LOCAL_SHARD_EXECUTION_TTL);
	shard->expires_at = ll_int8_of(slot, LL_LOCAL_SHARD_EXPIRES_AT);
	shard->figures.allocated = ll_int8_of(slot, LL_LOCAL_SHARD_ALLOCATED_UNITS);
	shard->figures.available = ll_int8_of(slot, LL_LOCAL_SHARD_LOCAL_AVAILABLE);
	shard->figures.reserved = ll_int8_of(slot, LL_LOCAL_SHARD_LOCAL_RESERVED);
	shard->figures.spent = ll_int8_of(slot, LL_LOCAL_SHARD_LOCAL_SPENT);
	shard->figures.retired = ll_int8_of(slot, LL_LOCAL_SHARD_LOCAL_RETIRED);
	shard->figures.excess = ll_int8_of(slot, LL_LOCAL_SHARD_LOCAL_EXCESS);
	shard->sealed_at = ll_time_of(slot, LL_LOCAL_SHARD_SEALED_AT);
	shard->sealed_by = ll_varlena_of(slot, LL_LOCAL_SHARD_SEALED_BY);
	shard->figures.sealed = shard->sealed_at != LL_NO_TIME;
	shard->seen_at = ll_int8_of(slot, LL_LOCAL_SHARD_SEEN_AT);
	shard->changed = false;
}

/* ll_local_shard_peek reads a shard without a lock. */
bool
ll_local_shard_peek(LLLocalShard *shard, Datum subject, Datum id, Snapshot snapshot)
{
	ScanKeyData key[2];

	shard->slot = ll_table_slot(LL_TABLE_LOCAL_SHARD);
	ll_key_text(&key[0], 1, subject);
	ll_key_text(&key[1], 2, id);
	if (!find(LL_INDEX_LOCAL_SHARD, snapshot, key, 2, shard->slot))
		return false;
	ExecMaterializeSlot(shard->slot);
	read_shard(shard);
	return true;
}

/* ll_local_shard_last reads the shard of a pair that was accepted last, sealed or not. */
bool
ll_local_shard_last(LLLocalShard *shard, Datum subject, Datum route, Snapshot snapshot)
{
	ScanKeyData key[2];

	shard->slot = ll_table_slot(LL_TABLE_LOCAL_SHARD);
	ll_key_text(&key[0], 1, subject);
	ll_key_text(&key[1], 2, route);
	if (!find(LL_INDEX_LOCAL_PAIR, snapshot, key, 2, shard->slot))
		return false;
	ExecMaterializeSlot(shard->slot);
	read_shard(shard);
	return true;
}

/* ll_local_shard_lock locks a shard that was found, and reads what it locked. */
LLLock
ll_local_shard_lock(LLLocalShard *shard, Snapshot snapshot, LockWaitPolicy policy)
{
	LLLock		lock = ll_row_lock(LL_TABLE_LOCAL_SHARD, shard->slot, snapshot, policy, NULL);

	if (lock == LL_LOCK_TAKEN)
		read_shard(shard);
	return lock;
}

/* ll_local_shard_update writes what can change of a locked shard. */
void
ll_local_shard_update(const LLLocalShard *shard)
{
	Datum		values[LL_LOCAL_SHARD_NATTS];
	bool		nulls[LL_LOCAL_SHARD_NATTS];

	as_stored(shard->slot, values, nulls, LL_LOCAL_SHARD_NATTS);
	values[LL_LOCAL_SHARD_LOCAL_AVAILABLE] = Int64GetDatum(shard->figures.available);
	values[LL_LOCAL_SHARD_LOCAL_RESERVED] = Int64GetDatum(shard->figures.reserved);
	values[LL_LOCAL_SHARD_LOCAL_SPENT] = Int64GetDatum(shard->figures.spent);
	values[LL_LOCAL_SHARD_LOCAL_RETIRED] = Int64GetDatum(shard->figures.retired);
	values[LL_LOCAL_SHARD_LOCAL_EXCESS] = Int64GetDatum(shard->figures.excess);
	ll_put_time(values, nulls, LL_LOCAL_SHARD_SEALED_AT, shard->sealed_at);
	ll_put_varlena(values, nulls, LL_LOCAL_SHARD_SEALED_BY, shard->sealed_by);
	values[LL_LOCAL_SHARD_SEEN_AT] = TimestampTzGetDatum(shard->seen_at);
	ll_row_update(LL_TABLE_LOCAL_SHARD, shard->slot, values, nulls);
}

/* ll_local_open_begin scans the open shards of a pair with a fence above `above`. */
LLScan *
ll_local_open_begin(Datum subject, Datum route, int64 above, Snapshot snapshot)
{
	ScanKeyData key[3];

	ll_key_text(&key[0], 1, subject);
	ll_key_text(&key[1], 2, route);
	ll_key_int8_from(&key[2], 3, above + 1);
	return ll_scan_begin(LL_INDEX_LOCAL_OPEN, snapshot, key, 3);
}

/* ll_local_open_all_begin scans the open shards of all pairs. */
LLScan *
ll_local_open_all_begin(Snapshot snapshot)
{
	return ll_scan_begin(LL_INDEX_LOCAL_OPEN, snapshot, NULL, 0);
}

/* ll_local_shard_next gives the next one, in a slot of its own. */
bool
ll_local_shard_next(LLScan *scan, LLLocalShard *shard)
{
	shard->slot = ll_table_slot(LL_TABLE_LOCAL_SHARD);
	if (!ll_scan_next(scan, shard->slot))
		return false;
	ExecMaterializeSlot(shard->slot);
	read_shard(shard);
	return true;
}

/* ---- reservations ------------------------------------------------------- */

static void
read_reservation(LLShardReservationRow *row)
{
	TupleTableSlot *slot = row->slot;
	Datum		state;

	slot_getallattrs(slot);
	memset(&row->state, 0, sizeof(row->state));
	row->subject = slot->tts_values[LL_SHARD_RESERVATION_SUBJECT];
	row->id = slot->tts_values[LL_SHARD_RESERVATION_RESERVATION_ID];
	row->shard_id = slot->tts_values[LL_SHARD_RESERVATION_SHARD_ID];
	state = slot->tts_values[LL_SHARD_RESERVATION_STATE];
	if (!ll_state_parse(VARDATA_ANY(DatumGetPointer(state)),
						VARSIZE_ANY_EXHDR(DatumGetPointer(state)), &row->state.state))
		ll_broken("D1", "a stored reservation has a state that the table does not know");
	row->state.reserved_units = ll_int8_of(slot, LL_SHARD_RESERVATION_RESERVED_UNITS);
	row->state.actual_units = slot->tts_isnull[LL_SHARD_RESERVATION_ACTUAL_UNITS]
		? 0 : ll_int8_of(slot, LL_SHARD_RESERVATION_ACTUAL_UNITS);
	row->state.excess_units = ll_int8_of(slot, LL_SHARD_RESERVATION_EXCESS_UNITS);
	row->state.expires_at = ll_int8_of(slot, LL_SHARD_RESERVATION_EXPIRES_AT);
	row->digest = slot->tts_values[LL_SHARD_RESERVATION_REQUEST_DIGEST];
	row->operation = ll_varlena_of(slot, LL_SHARD_RESERVATION_OPERATION_ID);
	row->reserved_at = ll_int8_of(slot, LL_SHARD_RESERVATION_RESERVED_AT);
	row->started_at = ll_time_of(slot, LL_SHARD_RESERVATION_STARTED_AT);
	row->unknown_at = ll_time_of(slot, LL_SHARD_RESERVATION_UNKNOWN_AT);
	row->ended_at = ll_time_of(slot, LL_SHARD_RESERVATION_ENDED_AT);
	row->receipt_digest = ll_varlena_of(slot, LL_SHARD_RESERVATION_RECEIPT_DIGEST);
	row->receipt_source = ll_varlena_of(slot, LL_SHARD_RESERVATION_RECEIPT_SOURCE);
	row->sequence = slot->tts_isnull[LL_SHARD_RESERVATION_SEQUENCE]
		? 0 : ll_int8_of(slot, LL_SHARD_RESERVATION_SEQUENCE);
}

static void
put_reservation(Datum *values, bool *nulls, const LLShardReservationRow *row)
{
	LLState		state = row->state.state;

	memset(nulls, false, LL_SHARD_RESERVATION_NATTS * sizeof(bool));
	values[LL_SHARD_RESERVATION_SUBJECT] = row->subject;
	values[LL_SHARD_RESERVATION_RESERVATION_ID] = row->id;
	values[LL_SHARD_RESERVATION_SHARD_ID] = row->shard_id;
	values[LL_SHARD_RESERVATION_STATE] = CStringGetTextDatum(ll_state_name(state));
	values[LL_SHARD_RESERVATION_RESERVED_UNITS] = Int64GetDatum(row->state.reserved_units);
	nulls[LL_SHARD_RESERVATION_ACTUAL_UNITS] = state != LL_SETTLED && state != LL_SETTLED_WITH_DEBT;
	values[LL_SHARD_RESERVATION_ACTUAL_UNITS] = Int64GetDatum(row->state.actual_units);
	values[LL_SHARD_RESERVATION_EXCESS_UNITS] = Int64GetDatum(row->state.excess_units);
	values[LL_SHARD_RESERVATION_REQUEST_DIGEST] = row->digest;
	ll_put_varlena(values, nulls, LL_SHARD_RESERVATION_OPERATION_ID, row->operation);
	values[LL_SHARD_RESERVATION_EXPIRES_AT] = TimestampTzGetDatum(row->state.expires_at);
	values[LL_SHARD_RESERVATION_RESERVED_AT] = TimestampTzGetDatum(row->reserved_at);
	ll_put_time(values, nulls, LL_SHARD_RESERVATION_STARTED_AT, row->started_at);
	ll_put_time(values, nulls, LL_SHARD_RESERVATION_UNKNOWN_AT, row->unknown_at);
	ll_put_time(values, nulls, LL_SHARD_RESERVATION_ENDED_AT, row->ended_at);
	ll_put_varlena(values, nulls, LL_SHARD_RESERVATION_RECEIPT_DIGEST, row->receipt_digest);
	ll_put_varlena(values, nulls, LL_SHARD_RESERVATION_RECEIPT_SOURCE, row->receipt_source);
	nulls[LL_SHARD_RESERVATION_SEQUENCE] = row->sequence == 0;
	values[LL_SHARD_RESERVATION_SEQUENCE] = Int64GetDatum(row->sequence);
}

static bool
find_reservation(LLShardReservationRow *row, Datum subject, Datum id, Snapshot snapshot)
{
	ScanKeyData key[2];

	ll_key_text(&key[0], 1, subject);
	ll_key_text(&key[1], 2, id);
	return find(LL_INDEX_SHARD_RESERVATION, snapshot, key, 2, row->slot);
}

/* ll_shard_reservation_peek reads a reservation without a lock. */
bool
ll_shard_reservation_peek(LLShardReservationRow *row, Datum subject, Datum id, Snapshot snapshot)
{
	row->slot = ll_table_slot(LL_TABLE_SHARD_RESERVATION);
	if (!find_reservation(row, subject, id, snapshot))
		return false;
	ExecMaterializeSlot(row->slot);
	read_reservation(row);
	return true;
}

/* ll_shard_reservation_look is a peek whose result is used before the next look. */
bool
ll_shard_reservation_look(LLShardReservationRow *row, Datum subject, Datum id, Snapshot snapshot)
{
	row->slot = ll_table_scratch(LL_TABLE_SHARD_RESERVATION);
	if (!find_reservation(row, subject, id, snapshot))
		return false;
	read_reservation(row);
	return true;
}

/* ll_shard_reservation_lock locks a row that was found, and reads what it locked. */
LLLock
ll_shard_reservation_lock(LLShardReservationRow *row, Snapshot snapshot, LockWaitPolicy policy)
{
	LLLock		lock = ll_row_lock(LL_TABLE_SHARD_RESERVATION, row->slot, snapshot, policy, NULL);

	if (lock == LL_LOCK_TAKEN)
		read_reservation(row);
	return lock;
}

/* note_deadline tells the worker what time will end, once this has committed. */
static void
note_deadline(const LLShardReservationRow *row)
{
	if (row->state.state == LL_RESERVED || row->state.state == LL_STARTED)
		ll_board_note(LL_WORKER_EXPIRY, row->state.expires_at);
}

/* ll_shard_reservation_insert writes a new row; false if the id is taken. */
bool
ll_shard_reservation_insert(const LLShardReservationRow *row)
{
	Datum		values[LL_SHARD_RESERVATION_NATTS];
	bool		nulls[LL_SHARD_RESERVATION_NATTS];

	note_deadline(row);
	put_reservation(values, nulls, row);
	return ll_row_insert(LL_TABLE_SHARD_RESERVATION, values, nulls, LockWaitBlock, NULL);
}

void
ll_shard_reservation_update(const LLShardReservationRow *row)
{
	Datum		values[LL_SHARD_RESERVATION_NATTS];
	bool		nulls[LL_SHARD_RESERVATION_NATTS];

	note_deadline(row);
	put_reservation(values, nulls, row);
	ll_row_update(LL_TABLE_SHARD_RESERVATION, row->slot, values, nulls);
}

/* ll_shard_held_begin scans what one shard holds and is due at an instant, in that order. */
LLScan *
ll_shard_held_begin(const LLLocalShard *shard, TimestampTz until, Snapshot snapshot)
{
	ScanKeyData key[3];

	ll_key_text(&key[0], 1, shard->subject);
	ll_key_text(&key[1], 2, shard->id);
	ll_key_time(&key[2], 3, BTLessEqualStrategyNumber, until);
	return ll_scan_begin(LL_INDEX_SHARD_HELD, snapshot, key, 3);
}

/* ll_shard_due_begin scans what all shards hold and is due at an instant. */
LLScan *
ll_shard_due_begin(TimestampTz until, Snapshot snapshot)
{
	ScanKeyData key;

	ll_key_time(&key, 1, BTLessEqualStrategyNumber, until);
	return ll_scan_begin(LL_INDEX_SHARD_DUE, snapshot, &key, 1);
}

/* ll_shard_due_after_begin scans what comes due later. */
LLScan *
ll_shard_due_after_begin(TimestampTz after, Snapshot snapshot)
{
	ScanKeyData key;

	ll_key_time(&key, 1, BTGreaterEqualStrategyNumber, after + 1);
	return ll_scan_begin(LL_INDEX_SHARD_DUE, snapshot, &key, 1);
}

/* ll_shard_reservation_next gives the next row of such a scan, in the slot of the row. */
bool
ll_shard_reservation_next(LLScan *scan, LLShardReservationRow *row)
{
	if (row->slot == NULL)
		row->slot = ll_table_slot(LL_TABLE_SHARD_RESERVATION);
	if (!ll_scan_next(scan, row->slot))
		return false;
	read_reservation(row);
	return true;
}

/* ---- operations --------------------------------------------------------- */

/* ll_shard_operation_look tells which reservation an operation is bound to; 0: none. */
Datum
ll_shard_operation_look(Datum subject, Datum id, Snapshot snapshot)
{
	ScanKeyData key[2];
	TupleTableSlot *slot = ll_table_scratch(LL_TABLE_SHARD_OPERATION);

	ll_key_text(&key[0], 1, subject);
	ll_key_text(&key[1], 2, id);
	if (!find(LL_INDEX_SHARD_OPERATION, snapshot, key, 2, slot))
		return (Datum) 0;
	slot_getallattrs(slot);
	return slot->tts_values[LL_SHARD_OPERATION_RESERVATION_ID];
}

/* ll_shard_operation_bind binds an operation; false if it is bound already. */
bool
ll_shard_operation_bind(Datum subject, Datum id, Datum reservation, ItemPointer tid)
{
	Datum		values[LL_SHARD_OPERATION_NATTS];
	bool		nulls[LL_SHARD_OPERATION_NATTS] = {false};

	values[LL_SHARD_OPERATION_SUBJECT] = subject;
	values[LL_SHARD_OPERATION_OPERATION_ID] = id;
	values[LL_SHARD_OPERATION_RESERVATION_ID] = reservation;
	return ll_row_insert(LL_TABLE_SHARD_OPERATION, values, nulls, LockWaitBlock, tid);
}

/* ll_shard_operation_forget takes back a binding of this very call. */
void
ll_shard_operation_forget(ItemPointer tid)
{
	ll_row_forget(LL_TABLE_SHARD_OPERATION, tid);
}
