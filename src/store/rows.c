/*
 * rows.c
 *	  Rows <-> structs.  See rows.h.
 */
#include "postgres.h"

#include "rows.h"

#include "access/stratnum.h"
#include "access/tableam.h"
#include "board.h"
#include "columns.h"
#include "errors.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/snapmgr.h"
#include "values.h"

/* ll_text_compare orders texts byte for byte (A1). */
int
ll_text_compare(Datum a, Datum b)
{
	int			la = VARSIZE_ANY_EXHDR(DatumGetPointer(a));
	int			lb = VARSIZE_ANY_EXHDR(DatumGetPointer(b));
	int			order = memcmp(VARDATA_ANY(DatumGetPointer(a)),
							   VARDATA_ANY(DatumGetPointer(b)), Min(la, lb));

	return order != 0 ? order : la - lb;
}

/* ll_bytes_equal compares two texts or byteas. */
bool
ll_bytes_equal(Datum a, Datum b)
{
	return ll_text_compare(a, b) == 0;
}

/* ll_text_is compares a text with one word. */
bool
ll_text_is(Datum text, const char *word)
{
	size_t		length = strlen(word);

	return VARSIZE_ANY_EXHDR(DatumGetPointer(text)) == length &&
		memcmp(VARDATA_ANY(DatumGetPointer(text)), word, length) == 0;
}

/* ll_copy_varlena copies a value out of a slot that is about to change. */
Datum
ll_copy_varlena(Datum value)
{
	return value == 0 ? 0 : datumCopy(value, false, -1);
}

/* ll_find reads the row that a unique key names, if there is one. */
bool
ll_find(LLIndexId index, Snapshot snapshot, ScanKey keys, int nkeys, TupleTableSlot *slot)
{
	LLScan	   *scan = ll_scan_begin(index, snapshot, keys, nkeys);
	bool		found = ll_scan_last(scan, slot);

	ll_scan_end(scan);
	return found;
}

/* ---- budgets ------------------------------------------------------------ */

static void
read_budget(TupleTableSlot *slot, LLBudget *b, LLLineage *lineage)
{
	slot_getallattrs(slot);
	b->generation = ll_int8_of(slot, LL_BUDGET_GENERATION);
	b->epoch = ll_int8_of(slot, LL_BUDGET_EPOCH);
	b->line = ll_int8_of(slot, LL_BUDGET_LINE);
	b->whole = DatumGetBool(slot->tts_values[LL_BUDGET_WHOLE]);
	b->carried = ll_int8_of(slot, LL_BUDGET_CARRIED);
	b->deficit = ll_int8_of(slot, LL_BUDGET_DEFICIT);
	b->opening = ll_int8_of(slot, LL_BUDGET_OPENING);
	b->minted = ll_int8_of(slot, LL_BUDGET_MINTED);
	b->overdraft_issued = ll_int8_of(slot, LL_BUDGET_OVERDRAFT_ISSUED);
	b->available = ll_int8_of(slot, LL_BUDGET_AVAILABLE);
	b->reserved = ll_int8_of(slot, LL_BUDGET_RESERVED);
	b->spent = ll_int8_of(slot, LL_BUDGET_SPENT);
	b->retired_for_emergency = ll_int8_of(slot, LL_BUDGET_RETIRED_FOR_EMERGENCY);
	b->overdraft_repaid = ll_int8_of(slot, LL_BUDGET_OVERDRAFT_REPAID);
	b->burned = ll_int8_of(slot, LL_BUDGET_BURNED);
	b->purged_spent = ll_int8_of(slot, LL_BUDGET_PURGED_SPENT);

	lineage->opened_at = ll_int8_of(slot, LL_BUDGET_OPENED_AT);
	lineage->follows = !slot->tts_isnull[LL_BUDGET_FOLLOWS_GENERATION];
	lineage->follows_generation = lineage->follows ? ll_int8_of(slot, LL_BUDGET_FOLLOWS_GENERATION) : 0;
	lineage->follows_epoch = lineage->follows ? ll_int8_of(slot, LL_BUDGET_FOLLOWS_EPOCH) : 0;
}

static void
put_budget(Datum *values, bool *nulls, const LLHead *head, const LLBudget *b,
		   const LLLineage *lineage)
{
	memset(nulls, false, LL_BUDGET_NATTS * sizeof(bool));
	values[LL_BUDGET_SUBJECT] = head->subject;
	values[LL_BUDGET_ROUTE] = head->route;
	values[LL_BUDGET_GENERATION] = Int64GetDatum(b->generation);
	values[LL_BUDGET_EPOCH] = TimestampTzGetDatum(b->epoch);
	values[LL_BUDGET_OPENED_AT] = TimestampTzGetDatum(lineage->opened_at);
	values[LL_BUDGET_LINE] = Int64GetDatum(b->line);
	values[LL_BUDGET_WHOLE] = BoolGetDatum(b->whole);
	nulls[LL_BUDGET_FOLLOWS_GENERATION] = !lineage->follows;
	values[LL_BUDGET_FOLLOWS_GENERATION] = Int64GetDatum(lineage->follows_generation);
	nulls[LL_BUDGET_FOLLOWS_EPOCH] = !lineage->follows;
	values[LL_BUDGET_FOLLOWS_EPOCH] = TimestampTzGetDatum(lineage->follows_epoch);
	values[LL_BUDGET_CARRIED] = Int64GetDatum(b->carried);
	values[LL_BUDGET_DEFICIT] = Int64GetDatum(b->deficit);
	values[LL_BUDGET_OPENING] = Int64GetDatum(b->opening);
	values[LL_BUDGET_MINTED] = Int64GetDatum(b->minted);
	values[LL_BUDGET_OVERDRAFT_ISSUED] = Int64GetDatum(b->overdraft_issued);
	values[LL_BUDGET_AVAILABLE] = Int64GetDatum(b->available);
	values[LL_BUDGET_RESERVED] = Int64GetDatum(b->reserved);
	values[LL_BUDGET_SPENT] = Int64GetDatum(b->spent);
	values[LL_BUDGET_RETIRED_FOR_EMERGENCY] = Int64GetDatum(b->retired_for_emergency);
	values[LL_BUDGET_OVERDRAFT_REPAID] = Int64GetDatum(b->overdraft_repaid);
	values[LL_BUDGET_BURNED] = Int64GetDatum(b->burned);
	values[LL_BUDGET_PURGED_SPENT] = Int64GetDatum(b->purged_spent);
}

static void
read_head(LLHead *head)
{
	TupleTableSlot *slot = head->slot;

	memset(&head->pair, 0, sizeof(head->pair));
	read_budget(slot, &head->pair.head, &head->lineage);
	head->pair.older_debt = ll_int8_of(slot, LL_HEAD_OLDER_DEBT);
	head->pair.older_reserved = ll_int8_of(slot, LL_HEAD_OLDER_RESERVED);
	head->pair.remainder = ll_int8_of(slot, LL_HEAD_REMAINDER);
	head->pair.seen_at = ll_int8_of(slot, LL_HEAD_SEEN_AT);
	head->pair.accrued_at = ll_int8_of(slot, LL_HEAD_ACCRUED_AT);
	head->frozen_at = ll_time_of(slot, LL_HEAD_FROZEN_AT);
	head->frozen_reason = ll_varlena_of(slot, LL_HEAD_FROZEN_REASON);
	head->pair.frozen = head->frozen_at != LL_NO_TIME;
	head->exists = true;
}

static void
put_head(Datum *values, bool *nulls, const LLHead *head)
{
	put_budget(values, nulls, head, &head->pair.head, &head->lineage);
	nulls[LL_HEAD_OLDER_DEBT] = false;
	values[LL_HEAD_OLDER_DEBT] = Int64GetDatum(head->pair.older_debt);
	nulls[LL_HEAD_OLDER_RESERVED] = false;
	values[LL_HEAD_OLDER_RESERVED] = Int64GetDatum(head->pair.older_reserved);
	nulls[LL_HEAD_REMAINDER] = false;
	values[LL_HEAD_REMAINDER] = Int64GetDatum(head->pair.remainder);
	ll_put_time(values, nulls, LL_HEAD_SEEN_AT, head->pair.seen_at);
	ll_put_time(values, nulls, LL_HEAD_ACCRUED_AT, head->pair.accrued_at);
	ll_put_time(values, nulls, LL_HEAD_FROZEN_AT, head->frozen_at);
	ll_put_varlena(values, nulls, LL_HEAD_FROZEN_REASON, head->frozen_reason);
}

/* ll_head_peek reads the head of (subject, route) without a lock. */
bool
ll_head_peek(LLHead *head, Snapshot snapshot)
{
	ScanKeyData key[2];

	if (head->slot == NULL)
		head->slot = ll_table_slot(LL_TABLE_HEAD);
	ll_key_text(&key[0], 1, head->subject);
	ll_key_text(&key[1], 2, head->route);
	head->exists = ll_find(LL_INDEX_HEAD, snapshot, key, 2, head->slot);
	if (head->exists)
	{
		ExecMaterializeSlot(head->slot);
		read_head(head);
	}
	return head->exists;
}

/* ll_head_lock locks the head that a peek has found, and reads what it locked. */
LLLock
ll_head_lock(LLHead *head, Snapshot snapshot, LockWaitPolicy policy)
{
	LLLock		lock = ll_row_lock(LL_TABLE_HEAD, head->slot, snapshot, policy, &head->moved);

	if (lock == LL_LOCK_TAKEN && head->moved)
		read_head(head);
	return lock;
}

/* ll_head_insert makes a pair's first row; false if somebody else did, or has just tried. */
bool
ll_head_insert(const LLHead *head)
{
	Datum		values[LL_HEAD_NATTS];
	bool		nulls[LL_HEAD_NATTS];

	put_head(values, nulls, head);
	return ll_row_insert_lock(LL_TABLE_HEAD, values, nulls);
}

void
ll_head_update(const LLHead *head)
{
	Datum		values[LL_HEAD_NATTS];
	bool		nulls[LL_HEAD_NATTS];

	put_head(values, nulls, head);
	ll_row_update(LL_TABLE_HEAD, head->slot, values, nulls);
}

/* ll_head_forget takes back a row that this very call has made. */
void
ll_head_forget(const LLHead *head)
{
	ll_row_forget(LL_TABLE_HEAD, &head->slot->tts_tid);
}

/* ---- shadows (B7) ------------------------------------------------------- */

/*
 * ll_shadow_lock locks the shadow's row of a pair, and reads it.  LL_LOCK_GONE:
 * it has none.
 */
LLLock
ll_shadow_lock(LLShadow *shadow, int64 generation, LockWaitPolicy policy)
{
	LLHead	   *head = &shadow->head;
	Snapshot	snapshot = ll_snapshot_take();
	ScanKeyData key[3];
	LLLock		lock = LL_LOCK_GONE;

	head->slot = ll_table_slot(LL_TABLE_SHADOW);
	ll_key_text(&key[0], 1, head->subject);
	ll_key_text(&key[1], 2, head->route);
	ll_key_int8(&key[2], 3, generation);
	if (ll_find(LL_INDEX_SHADOW, snapshot, key, 3, head->slot))
		lock = ll_row_lock(LL_TABLE_SHADOW, head->slot, snapshot, policy, NULL);
	ll_snapshot_drop(snapshot);
	if (lock != LL_LOCK_TAKEN)
		return lock;
	read_head(head);
	for (int i = 0; i < LL_HAPPENED_COUNT; i++)
	{
		shadow->would_admit[i] = ll_int8_of(head->slot, LL_SHADOW_COUNTS + i);
		shadow->would_reject[i] = ll_int8_of(head->slot, LL_SHADOW_COUNTS + LL_HAPPENED_COUNT + i);
	}
	return lock;
}

static void
put_shadow(Datum *values, bool *nulls, const LLShadow *shadow)
{
	put_head(values, nulls, &shadow->head);
	for (int i = 0; i < LL_HAPPENED_COUNT; i++)
	{
		int			admit = LL_SHADOW_COUNTS + i;
		int			reject = admit + LL_HAPPENED_COUNT;

		nulls[admit] = nulls[reject] = false;
		values[admit] = Int64GetDatum(shadow->would_admit[i]);
		values[reject] = Int64GetDatum(shadow->would_reject[i]);
	}
}

/* ll_shadow_insert makes its first row; false if somebody else did, or with LockWaitSkip is about to. */
bool
ll_shadow_insert(const LLShadow *shadow, LockWaitPolicy policy)
{
	Datum		values[LL_SHADOW_NATTS];
	bool		nulls[LL_SHADOW_NATTS];

	put_shadow(values, nulls, shadow);
	return ll_row_insert(LL_TABLE_SHADOW, values, nulls, policy, NULL);
}

void
ll_shadow_update(const LLShadow *shadow)
{
	Datum		values[LL_SHADOW_NATTS];
	bool		nulls[LL_SHADOW_NATTS];

	put_shadow(values, nulls, shadow);
	ll_row_update(LL_TABLE_SHADOW, shadow->head.slot, values, nulls);
}

/* ---- closed budgets ----------------------------------------------------- */

/* ll_closed_read fills the struct from its slot. */
void
ll_closed_read(LLClosed *closed)
{
	TupleTableSlot *slot = closed->slot;

	read_budget(slot, &closed->budget, &closed->lineage);
	closed->closed_at = ll_int8_of(slot, LL_CLOSED_CLOSED_AT);
	closed->closing_available = ll_int8_of(slot, LL_CLOSED_CLOSING_AVAILABLE);
	closed->changed_at = ll_int8_of(slot, LL_CLOSED_CHANGED_AT);
	closed->follows_purged = DatumGetBool(slot->tts_values[LL_CLOSED_FOLLOWS_PURGED]);
	closed->dirty = false;
}

static void
put_closed(Datum *values, bool *nulls, const LLHead *head, const LLClosed *closed)
{
	put_budget(values, nulls, head, &closed->budget, &closed->lineage);
	ll_put_time(values, nulls, LL_CLOSED_CLOSED_AT, closed->closed_at);
	nulls[LL_CLOSED_CLOSING_AVAILABLE] = false;
	values[LL_CLOSED_CLOSING_AVAILABLE] = Int64GetDatum(closed->closing_available);
	ll_put_time(values, nulls, LL_CLOSED_CHANGED_AT, closed->changed_at);
	nulls[LL_CLOSED_FOLLOWS_PURGED] = false;
	values[LL_CLOSED_FOLLOWS_PURGED] = BoolGetDatum(closed->follows_purged);
}

/*
 * ll_closed_lock locks one closed budget of a pair whose head is locked, so it
 * never waits for another call of ours.
 */
bool
ll_closed_lock(const LLHead *head, int64 generation, TimestampTz epoch, LLClosed *closed)
{
	ScanKeyData key[4];
	Snapshot	snapshot = ll_snapshot_take();
	bool		found;

	closed->slot = ll_table_slot(LL_TABLE_CLOSED);
	ll_key_text(&key[0], 1, head->subject);
	ll_key_text(&key[1], 2, head->route);
	ll_key_int8(&key[2], 3, generation);
	ll_key_time(&key[3], 4, BTEqualStrategyNumber, epoch);
	found = ll_find(LL_INDEX_CLOSED, snapshot, key, 4, closed->slot) &&
		ll_row_lock(LL_TABLE_CLOSED, closed->slot, snapshot, LockWaitBlock, NULL) == LL_LOCK_TAKEN;
	ll_snapshot_drop(snapshot);
	if (found)
		ll_closed_read(closed);
	return found;
}

/* ll_closed_debtors_lock locks the pair's closed budgets that owe, oldest first (E2). */
List *
ll_closed_debtors_lock(const LLHead *head)
{
	ScanKeyData key[2];
	Snapshot	snapshot = ll_snapshot_take();
	List	   *debtors = NIL;
	LLScan	   *scan;
	bool		more = true;

	ll_key_text(&key[0], 1, head->subject);
	ll_key_text(&key[1], 2, head->route);
	scan = ll_scan_begin(LL_INDEX_CLOSED_DEBT, snapshot, key, 2);
	while (more)
	{
		LLClosed   *closed = palloc0(sizeof(LLClosed));

		closed->slot = ll_table_slot(LL_TABLE_CLOSED);
		more = ll_scan_next(scan, closed->slot);
		if (more && ll_row_lock(LL_TABLE_CLOSED, closed->slot, snapshot, LockWaitBlock, NULL) == LL_LOCK_TAKEN)
		{
			ll_closed_read(closed);
			debtors = lappend(debtors, closed);
		}
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	return debtors;
}

void
ll_closed_insert(const LLHead *head, const LLClosed *closed)
{
	Datum		values[LL_CLOSED_NATTS];
	bool		nulls[LL_CLOSED_NATTS];

	put_closed(values, nulls, head, closed);
	if (!ll_row_insert(LL_TABLE_CLOSED, values, nulls, LockWaitBlock, NULL))
		ll_broken("B5", "a budget that closes was closed before");
}

void
ll_closed_update(const LLHead *head, const LLClosed *closed)
{
	Datum		values[LL_CLOSED_NATTS];
	bool		nulls[LL_CLOSED_NATTS];

	put_closed(values, nulls, head, closed);
	ll_row_update(LL_TABLE_CLOSED, closed->slot, values, nulls);
}

/* ---- reservations ------------------------------------------------------- */

/* ll_reservation_read fills the struct from its slot. */
void
ll_reservation_read(LLReservationRow *row)
{
	TupleTableSlot *slot = row->slot;
	Datum		state;

	slot_getallattrs(slot);
	row->subject = slot->tts_values[LL_RESERVATION_SUBJECT];
	row->id = slot->tts_values[LL_RESERVATION_ID];
	row->route = ll_varlena_of(slot, LL_RESERVATION_ROUTE);
	row->generation = row->route ? ll_int8_of(slot, LL_RESERVATION_GENERATION) : 0;
	row->epoch = ll_time_of(slot, LL_RESERVATION_EPOCH);
	state = slot->tts_values[LL_RESERVATION_STATE];
	if (!ll_state_parse(VARDATA_ANY(DatumGetPointer(state)),
						VARSIZE_ANY_EXHDR(DatumGetPointer(state)), &row->state.state))
		ll_broken("D1", "a stored reservation has a state that the table does not know");
	row->asked_units = row->route ? ll_int8_of(slot, LL_RESERVATION_ASKED_UNITS) : 0;
	row->state.reserved_units = ll_int8_of(slot, LL_RESERVATION_RESERVED_UNITS);
	row->state.actual_units = slot->tts_isnull[LL_RESERVATION_ACTUAL_UNITS]
		? 0 : ll_int8_of(slot, LL_RESERVATION_ACTUAL_UNITS);
	row->state.excess_units = ll_int8_of(slot, LL_RESERVATION_EXCESS_UNITS);
	row->state.overdraft_units = 0;
	row->state.expires_at = ll_int8_of(slot, LL_RESERVATION_EXPIRES_AT);
	row->digest = slot->tts_values[LL_RESERVATION_DIGEST];
	row->operation = ll_varlena_of(slot, LL_RESERVATION_OPERATION);
	row->priority = DatumGetInt32(slot->tts_values[LL_RESERVATION_PRIORITY]);
	row->reserved_at = ll_int8_of(slot, LL_RESERVATION_RESERVED_AT);
	row->started_at = ll_time_of(slot, LL_RESERVATION_STARTED_AT);
	row->unknown_at = ll_time_of(slot, LL_RESERVATION_UNKNOWN_AT);
	row->ended_at = ll_time_of(slot, LL_RESERVATION_ENDED_AT);
	row->excess_generation = slot->tts_isnull[LL_RESERVATION_EXCESS_GENERATION]
		? 0 : ll_int8_of(slot, LL_RESERVATION_EXCESS_GENERATION);
	row->excess_epoch = ll_time_of(slot, LL_RESERVATION_EXCESS_EPOCH);
	row->receipt_digest = ll_varlena_of(slot, LL_RESERVATION_RECEIPT_DIGEST);
	row->receipt_source = ll_varlena_of(slot, LL_RESERVATION_RECEIPT_SOURCE);
	row->state.progress_units = ll_int8_of(slot, LL_RESERVATION_PROGRESS_UNITS);
	row->shadow_generation = slot->tts_isnull[LL_RESERVATION_SHADOW_GENERATION]
		? 0 : ll_int8_of(slot, LL_RESERVATION_SHADOW_GENERATION);
	row->shadow_line = slot->tts_isnull[LL_RESERVATION_SHADOW_LINE]
		? 0 : ll_int8_of(slot, LL_RESERVATION_SHADOW_LINE);
	row->claimed_by = ll_varlena_of(slot, LL_RESERVATION_CLAIMED_BY);
	row->state.claimed_until = ll_time_of(slot, LL_RESERVATION_CLAIMED_UNTIL);
}

static void
put_reservation(Datum *values, bool *nulls, const LLReservationRow *row)
{
	LLState		state = row->state.state;
	bool		settled = state == LL_SETTLED || state == LL_SETTLED_WITH_DEBT;

	memset(nulls, false, LL_RESERVATION_NATTS * sizeof(bool));
	values[LL_RESERVATION_SUBJECT] = row->subject;
	values[LL_RESERVATION_ID] = row->id;
	ll_put_varlena(values, nulls, LL_RESERVATION_ROUTE, row->route);
	nulls[LL_RESERVATION_GENERATION] = row->route == 0;
	values[LL_RESERVATION_GENERATION] = Int64GetDatum(row->generation);
	nulls[LL_RESERVATION_EPOCH] = row->route == 0;
	values[LL_RESERVATION_EPOCH] = TimestampTzGetDatum(row->epoch);
	values[LL_RESERVATION_STATE] = CStringGetTextDatum(ll_state_name(state));
	nulls[LL_RESERVATION_ASKED_UNITS] = row->route == 0;
	values[LL_RESERVATION_ASKED_UNITS] = Int64GetDatum(row->asked_units);
	values[LL_RESERVATION_RESERVED_UNITS] = Int64GetDatum(row->state.reserved_units);
	nulls[LL_RESERVATION_ACTUAL_UNITS] = !settled;
	values[LL_RESERVATION_ACTUAL_UNITS] = Int64GetDatum(row->state.actual_units);
	values[LL_RESERVATION_DIGEST] = row->digest;
	ll_put_varlena(values, nulls, LL_RESERVATION_OPERATION, row->operation);
	values[LL_RESERVATION_PRIORITY] = Int32GetDatum(row->priority);
	values[LL_RESERVATION_EXPIRES_AT] = TimestampTzGetDatum(row->state.expires_at);
	values[LL_RESERVATION_RESERVED_AT] = TimestampTzGetDatum(row->reserved_at);
	ll_put_time(values, nulls, LL_RESERVATION_STARTED_AT, row->started_at);
	ll_put_time(values, nulls, LL_RESERVATION_UNKNOWN_AT, row->unknown_at);
	ll_put_time(values, nulls, LL_RESERVATION_ENDED_AT, row->ended_at);
	values[LL_RESERVATION_EXCESS_UNITS] = Int64GetDatum(row->state.excess_units);
	nulls[LL_RESERVATION_EXCESS_GENERATION] = row->state.excess_units == 0;
	values[LL_RESERVATION_EXCESS_GENERATION] = Int64GetDatum(row->excess_generation);
	nulls[LL_RESERVATION_EXCESS_EPOCH] = row->state.excess_units == 0;
	values[LL_RESERVATION_EXCESS_EPOCH] = TimestampTzGetDatum(row->excess_epoch);
	ll_put_varlena(values, nulls, LL_RESERVATION_RECEIPT_DIGEST, row->receipt_digest);
	ll_put_varlena(values, nulls, LL_RESERVATION_RECEIPT_SOURCE, row->receipt_source);
	values[LL_RESERVATION_PROGRESS_UNITS] = Int64GetDatum(row->state.progress_units);
	nulls[LL_RESERVATION_SHADOW_GENERATION] = row->shadow_generation == 0;
	values[LL_RESERVATION_SHADOW_GENERATION] = Int64GetDatum(row->shadow_generation);
	nulls[LL_RESERVATION_SHADOW_LINE] = row->shadow_generation == 0;
	values[LL_RESERVATION_SHADOW_LINE] = Int64GetDatum(row->shadow_line);
	ll_put_varlena(values, nulls, LL_RESERVATION_CLAIMED_BY, row->claimed_by);
	nulls[LL_RESERVATION_CLAIMED_UNTIL] = row->claimed_by == 0;
	values[LL_RESERVATION_CLAIMED_UNTIL] = TimestampTzGetDatum(row->state.claimed_until);
}

/* ll_reservation_peek reads a reservation without a lock. */
bool
ll_reservation_peek(LLReservationRow *row, Datum subject, Datum id, Snapshot snapshot)
{
	ScanKeyData key[2];

	if (row->slot == NULL)
		row->slot = ll_table_slot(LL_TABLE_RESERVATION);
	ll_key_text(&key[0], 1, subject);
	ll_key_text(&key[1], 2, id);
	if (!ll_find(LL_INDEX_RESERVATION, snapshot, key, 2, row->slot))
		return false;
	ExecMaterializeSlot(row->slot);
	ll_reservation_read(row);
	return true;
}

/* ll_reservation_look is a peek whose result is used before the next look. */
bool
ll_reservation_look(LLReservationRow *row, Datum subject, Datum id, Snapshot snapshot)
{
	memset(row, 0, sizeof(*row));
	row->slot = ll_table_scratch(LL_TABLE_RESERVATION);
	return ll_reservation_peek(row, subject, id, snapshot);
}

/*
 * ll_reservation_exists tells whether any row is there under this id, the row
 * of a transaction that has not ended included: the original of a retry,
 * perhaps, that no snapshot of ours shows yet (D3).
 */
bool
ll_reservation_exists(Datum subject, Datum id)
{
	SnapshotData dirty;
	LLReservationRow row;

	InitDirtySnapshot(dirty);
	return ll_reservation_look(&row, subject, id, &dirty);
}

/* ll_reservation_lock locks a row that was found, and reads what it locked. */
LLLock
ll_reservation_lock(LLReservationRow *row, Snapshot snapshot, LockWaitPolicy policy)
{
	bool		moved;
	LLLock		lock = ll_row_lock(LL_TABLE_RESERVATION, row->slot, snapshot, policy, &moved);

	if (lock == LL_LOCK_TAKEN)
		ll_reservation_read(row);
	return lock;
}

/* note_deadline tells the workers what time will end, once this has committed (D14). */
static void
note_deadline(const LLReservationRow *row)
{
	LLState		state = row->state.state;

	if (state == LL_RESERVED || state == LL_EXPIRING || state == LL_STARTED)
		ll_board_note(LL_WORKER_EXPIRY, row->state.expires_at);
}

/* ll_reservation_insert writes a new row; false if the id is taken. */
bool
ll_reservation_insert(const LLReservationRow *row)
{
	Datum		values[LL_RESERVATION_NATTS];
	bool		nulls[LL_RESERVATION_NATTS];

	note_deadline(row);
	put_reservation(values, nulls, row);
	return ll_row_insert(LL_TABLE_RESERVATION, values, nulls, LockWaitBlock, NULL);
}

void
ll_reservation_update(const LLReservationRow *row)
{
	Datum		values[LL_RESERVATION_NATTS];
	bool		nulls[LL_RESERVATION_NATTS];

	note_deadline(row);
	put_reservation(values, nulls, row);
	ll_row_update(LL_TABLE_RESERVATION, row->slot, values, nulls);
}

/* the rows beside a reservation that go with it: false if one of them is in use */
static bool
each_companion(const LLReservationRow *row, Snapshot snapshot, bool delete)
{
	ScanKeyData key[2];
	TupleTableSlot *slot = ll_table_scratch(LL_TABLE_EXTENSION);
	bool		free = true;
	LLScan	   *scan;

	ll_key_text(&key[0], 1, row->subject);
	ll_key_text(&key[1], 2, row->id);
	scan = ll_scan_begin(LL_INDEX_EXTENSION, snapshot, key, 2);
	while (free && ll_scan_next(scan, slot))
	{
		free = ll_row_claim(LL_TABLE_EXTENSION, slot, snapshot) == LL_LOCK_TAKEN;
		if (free && delete)
			ll_row_delete(LL_TABLE_EXTENSION, slot);
	}
	ll_scan_end(scan);
	if (row->operation == 0 || !free)
		return free;

	slot = ll_table_scratch(LL_TABLE_OPERATION);
	ll_key_text(&key[1], 2, row->operation);
	if (!ll_find(LL_INDEX_OPERATION, snapshot, key, 2, slot))
		return true;
	free = ll_row_claim(LL_TABLE_OPERATION, slot, snapshot) == LL_LOCK_TAKEN;
	if (free && delete)
		ll_row_delete(LL_TABLE_OPERATION, slot);
	return free;
}

/*
 * ll_reservation_claim locks a reservation that has ended, its operation and
 * its extensions, so that they can be deleted.  It waits for nobody; false:
 * somebody uses one of them, or the row is gone.
 */
bool
ll_reservation_claim(LLReservationRow *row, Snapshot snapshot)
{
	if (ll_row_claim(LL_TABLE_RESERVATION, row->slot, snapshot) != LL_LOCK_TAKEN)
		return false;
	ll_reservation_read(row);
	return ll_state_terminal(row->state.state) && each_companion(row, snapshot, false);
}

/* ll_reservation_delete deletes a claimed reservation and what goes with it (D15). */
void
ll_reservation_delete(const LLReservationRow *row, Snapshot snapshot)
{
	if (!each_companion(row, snapshot, true))
		ll_broken("F1", "a claimed row was taken by another transaction");
	ll_row_delete(LL_TABLE_RESERVATION, row->slot);
}

/* ll_ids_begin scans the ids of a subject from `first` to `last`, in their order. */
LLScan *
ll_ids_begin(Datum subject, Datum first, Datum last, Snapshot snapshot)
{
	ScanKeyData key[3];

	ll_key_text(&key[0], 1, subject);
	ll_key_text_from(&key[1], 2, first);
	ll_key_text_to(&key[2], 2, last);
	return ll_scan_begin(LL_INDEX_RESERVATION, snapshot, key, 3);
}

/* ll_ids_next gives the next id, valid until the next look. */
bool
ll_ids_next(LLScan *scan, Datum *id)
{
	TupleTableSlot *slot = ll_table_scratch(LL_TABLE_RESERVATION);
	bool		null;

	if (!ll_scan_next(scan, slot))
		return false;
	*id = slot_getattr(slot, LL_RESERVATION_ID + 1, &null);
	return true;
}

/*
 * ll_due_begin scans rows of one state whose time is up, over all pairs.  A
 * scan that begins at `from` (0: at the beginning) does not have to walk past
 * what earlier batches have left dead, which somebody's old snapshot may keep.
 */
LLScan *
ll_due_begin(LLIndexId index, TimestampTz from, TimestampTz until, Snapshot snapshot)
{
	ScanKeyData key[2];

	ll_key_time(&key[0], 1, BTLessEqualStrategyNumber, until);
	if (from != 0)
		ll_key_time(&key[1], 1, BTGreaterStrategyNumber, from - 1);
	return ll_scan_begin(index, snapshot, key, from != 0 ? 2 : 1);
}

/*
 * ll_claimable_begin scans unknown usage that nobody has claimed, the oldest
 * first; or that whose lease has lapsed, in the order in which it did (D10).
 */
LLScan *
ll_claimable_begin(bool lapsed, TimestampTz now, Snapshot snapshot)
{
	ScanKeyData key;

	if (lapsed)
		ll_key_time(&key, 1, BTLessEqualStrategyNumber, now);
	else
		ll_key_null(&key, 1);
	return ll_scan_begin(LL_INDEX_CLAIMABLE, snapshot, &key, 1);
}

/* ll_due_after_begin scans rows of one state whose time comes later. */
LLScan *
ll_due_after_begin(LLIndexId index, TimestampTz after, Snapshot snapshot)
{
	ScanKeyData key;

	ll_key_time(&key, 1, BTGreaterStrategyNumber, after);
	return ll_scan_begin(index, snapshot, &key, 1);
}

/* ll_pair_due_begin scans RESERVED and EXPIRING rows of one pair, likewise. */
LLScan *
ll_pair_due_begin(const LLHead *head, TimestampTz from, TimestampTz until, Snapshot snapshot)
{
	ScanKeyData key[4];

	ll_key_text(&key[0], 1, head->subject);
	ll_key_text(&key[1], 2, head->route);
	ll_key_time(&key[2], 3, BTLessEqualStrategyNumber, until);
	if (from != 0)
		ll_key_time(&key[3], 3, BTGreaterStrategyNumber, from - 1);
	return ll_scan_begin(LL_INDEX_PAIR_DUE, snapshot, key, from != 0 ? 4 : 3);
}

/*
 * ll_aged_begin scans the rows of one generation from an instant on, in the
 * order of time; generation 0 has the fences, which are under no policy.
 */
LLScan *
ll_aged_begin(LLIndexId index, int64 generation, TimestampTz from, Snapshot snapshot)
{
	ScanKeyData key[2];

	if (generation == 0)
		ll_key_null(&key[0], 1);
	else
		ll_key_int8(&key[0], 1, generation);
	ll_key_time(&key[1], 2, BTGreaterEqualStrategyNumber, from);
	return ll_scan_begin(index, snapshot, key, 2);
}

/* ll_aged_from_begin scans the rows of one generation and all that follow it. */
LLScan *
ll_aged_from_begin(LLIndexId index, int64 generation, Snapshot snapshot)
{
	ScanKeyData key;

	ll_key_int8_from(&key, 1, generation);
	return ll_scan_begin(index, snapshot, &key, 1);
}

/* ll_aged_next gives the next row, and where in the order it is. */
bool
ll_aged_next(LLScan *scan, TupleTableSlot *slot, int64 *generation, TimestampTz *at)
{
	static const int columns[LL_TABLE_COUNT][2] = {
		[LL_TABLE_CLOSED] = {LL_BUDGET_FOLLOWS_GENERATION, LL_BUDGET_OPENED_AT},
		[LL_TABLE_RESERVATION] = {LL_RESERVATION_GENERATION, LL_RESERVATION_ENDED_AT},
		[LL_TABLE_OPERATION] = {LL_OPERATION_GENERATION, LL_OPERATION_BOUND_AT},
	};
	const int  *column;

	if (!ll_scan_next(scan, slot))
		return false;
	slot_getallattrs(slot);
	column = columns[ll_scan_table(scan)];
	*generation = slot->tts_isnull[column[0]] ? 0 : ll_int8_of(slot, column[0]);
	*at = ll_int8_of(slot, column[1]);
	return true;
}

/* ---- operations --------------------------------------------------------- */

/* ll_operation_read fills the struct from a slot. */
void
ll_operation_read(LLOperationRow *row, TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	row->reservation = ll_varlena_of(slot, LL_OPERATION_RESERVATION);
	row->bound_at = ll_int8_of(slot, LL_OPERATION_BOUND_AT);
	row->route = ll_varlena_of(slot, LL_OPERATION_ROUTE);
	row->usage_units = row->route ? ll_int8_of(slot, LL_OPERATION_USAGE_UNITS) : 0;
	row->generation = row->route ? ll_int8_of(slot, LL_OPERATION_GENERATION) : 0;
	row->epoch = ll_time_of(slot, LL_OPERATION_EPOCH);
}

/* ll_operation_look tells what an operation is bound to, until the next look. */
bool
ll_operation_look(LLOperationRow *row, Datum subject, Datum id, Snapshot snapshot)
{
	ScanKeyData key[2];
	TupleTableSlot *slot = ll_table_scratch(LL_TABLE_OPERATION);

	ll_key_text(&key[0], 1, subject);
	ll_key_text(&key[1], 2, id);
	if (!ll_find(LL_INDEX_OPERATION, snapshot, key, 2, slot))
		return false;
	ll_operation_read(row, slot);
	return true;
}

/* ll_operation_insert binds an operation; false if it is bound already. */
bool
ll_operation_insert(Datum subject, Datum id, const LLOperationRow *row, ItemPointer tid)
{
	Datum		values[LL_OPERATION_NATTS];
	bool		nulls[LL_OPERATION_NATTS] = {false};

	values[LL_OPERATION_SUBJECT] = subject;
	values[LL_OPERATION_ID] = id;
	ll_put_varlena(values, nulls, LL_OPERATION_RESERVATION, row->reservation);
	values[LL_OPERATION_BOUND_AT] = TimestampTzGetDatum(row->bound_at);
	nulls[LL_OPERATION_USAGE_UNITS] = row->route == 0;
	values[LL_OPERATION_USAGE_UNITS] = Int64GetDatum(row->usage_units);
	ll_put_varlena(values, nulls, LL_OPERATION_ROUTE, row->route);
	nulls[LL_OPERATION_GENERATION] = row->route == 0;
	values[LL_OPERATION_GENERATION] = Int64GetDatum(row->generation);
	nulls[LL_OPERATION_EPOCH] = row->route == 0;
	values[LL_OPERATION_EPOCH] = TimestampTzGetDatum(row->epoch);
	return ll_row_insert(LL_TABLE_OPERATION, values, nulls, LockWaitBlock, tid);
}

/* ll_operation_bind binds an operation to a reservation. */
bool
ll_operation_bind(Datum subject, Datum id, Datum reservation, TimestampTz at, ItemPointer tid)
{
	LLOperationRow row = {0};

	row.reservation = reservation;
	row.bound_at = at;
	row.epoch = LL_NO_TIME;
	return ll_operation_insert(subject, id, &row, tid);
}

/* ll_operation_forget takes back a binding of this very call. */
void
ll_operation_forget(ItemPointer tid)
{
	ll_row_forget(LL_TABLE_OPERATION, tid);
}

/* ---- extensions and grants ---------------------------------------------- */

/* ll_extension_look tells what was asked for under an extension id. */
bool
ll_extension_look(LLExtensionRow *row, Datum subject, Datum reservation, Datum id,
				  Snapshot snapshot)
{
	ScanKeyData key[3];
	TupleTableSlot *slot = ll_table_scratch(LL_TABLE_EXTENSION);

	ll_key_text(&key[0], 1, subject);
	ll_key_text(&key[1], 2, reservation);
	ll_key_text(&key[2], 3, id);
	if (!ll_find(LL_INDEX_EXTENSION, snapshot, key, 3, slot))
		return false;
	slot_getallattrs(slot);
	row->units = ll_int8_of(slot, LL_EXTENSION_UNITS);
	row->expires_at = ll_time_of(slot, LL_EXTENSION_EXPIRES_AT);
	return true;
}

/* ll_extension_insert records an extension; its reservation row is locked. */
bool
ll_extension_insert(Datum subject, Datum reservation, Datum id, const LLExtensionRow *row,
					TimestampTz at)
{
	Datum		values[LL_EXTENSION_NATTS];
	bool		nulls[LL_EXTENSION_NATTS] = {false};

	values[LL_EXTENSION_SUBJECT] = subject;
	values[LL_EXTENSION_RESERVATION] = reservation;
	values[LL_EXTENSION_ID] = id;
	values[LL_EXTENSION_UNITS] = Int64GetDatum(row->units);
	ll_put_time(values, nulls, LL_EXTENSION_EXPIRES_AT, row->expires_at);
	values[LL_EXTENSION_EXTENDED_AT] = TimestampTzGetDatum(at);
	return ll_row_insert(LL_TABLE_EXTENSION, values, nulls, LockWaitBlock, NULL);
}

/* ll_grant_look tells what was granted under a grant id. */
bool
ll_grant_look(LLGrantRow *row, Datum subject, Datum route, Datum id, Snapshot snapshot)
{
	ScanKeyData key[3];
	TupleTableSlot *slot = ll_table_scratch(LL_TABLE_GRANT);

	ll_key_text(&key[0], 1, subject);
	ll_key_text(&key[1], 2, route);
	ll_key_text(&key[2], 3, id);
	if (!ll_find(LL_INDEX_GRANT, snapshot, key, 3, slot))
		return false;
	slot_getallattrs(slot);
	row->units = ll_int8_of(slot, LL_GRANT_UNITS);
	row->granted_units = ll_int8_of(slot, LL_GRANT_GRANTED_UNITS);
	return true;
}

/* ll_grant_insert records a grant; its pair is locked. */
bool
ll_grant_insert(Datum subject, Datum route, Datum id, const LLGrantRow *row, Datum reason,
				TimestampTz at)
{
	Datum		values[LL_GRANT_NATTS];
	bool		nulls[LL_GRANT_NATTS] = {false};

	values[LL_GRANT_SUBJECT] = subject;
	values[LL_GRANT_ROUTE] = route;
	values[LL_GRANT_ID] = id;
	values[LL_GRANT_UNITS] = Int64GetDatum(row->units);
	values[LL_GRANT_GRANTED_UNITS] = Int64GetDatum(row->granted_units);
	values[LL_GRANT_GRANTED_AT] = TimestampTzGetDatum(at);
	values[LL_GRANT_ACTOR] = CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
	values[LL_GRANT_REASON] = reason;
	return ll_row_insert(LL_TABLE_GRANT, values, nulls, LockWaitBlock, NULL);
}

/* ---- operators' actions ------------------------------------------------- */

/* ll_action_insert records what an operator did, and why. */
void
ll_action_insert(TimestampTz at, const char *action, Datum subject, Datum route, Datum reason)
{
	Datum		values[LL_ACTION_NATTS];
	bool		nulls[LL_ACTION_NATTS] = {false};

	values[LL_ACTION_ID] = DirectFunctionCall1(gen_random_uuid, (Datum) 0);
	values[LL_ACTION_ACTED_AT] = TimestampTzGetDatum(at);
	values[LL_ACTION_ACTOR] = CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
	values[LL_ACTION_ACTION] = CStringGetTextDatum(action);
	values[LL_ACTION_SUBJECT] = subject;
	values[LL_ACTION_ROUTE] = route;
	values[LL_ACTION_REASON] = reason;
	(void) ll_row_insert(LL_TABLE_ACTION, values, nulls, LockWaitBlock, NULL);
}
