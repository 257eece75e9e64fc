/*
 * rows.h
 *	  Rows <-> structs.
 *
 * A row to decide on is handed out only after its lock was taken; the *_peek
 * functions read without one and say so in their name.  Nothing here decides.
 */
#ifndef LL_STORE_ROWS_H
#define LL_STORE_ROWS_H

#include "postgres.h"

#include "core/core.h"
#include "nodes/pg_list.h"
#include "table.h"
#include "utils/timestamp.h"

#define LL_NO_TIME	DT_NOBEGIN

/* A budget beside its numbers: where it belongs and what it followed. */
typedef struct LLLineage
{
	TimestampTz opened_at;
	bool		follows;
	int64		follows_generation;
	TimestampTz follows_epoch;
} LLLineage;

/* The head of a pair (F1). */
typedef struct LLHead
{
	Datum		subject;
	Datum		route;
	LLPair		pair;
	LLLineage	lineage;
	TimestampTz frozen_at;
	Datum		frozen_reason;	/* text, or 0 */
	TupleTableSlot *slot;		/* the row, if it exists */
	bool		exists;
	bool		moved;			/* the lock found another version than the scan */
} LLHead;

/* A closed budget; slot is NULL while it has no row yet. */
typedef struct LLClosed
{
	LLBudget	budget;
	LLLineage	lineage;
	TimestampTz closed_at;
	LLUnits		closing_available;
	TimestampTz changed_at;		/* no reservation of it has ended later */
	bool		follows_purged; /* the budget that it follows is purged (D15) */
	TupleTableSlot *slot;
	bool		dirty;
} LLClosed;

/* What happened to a request that a shadow was asked about (B7). */
typedef enum LLHappened
{
	LL_HAPPENED_ADMITTED,
	LL_HAPPENED_REFUSED,
	LL_HAPPENED_UNENFORCED
} LLHappened;
#define LL_HAPPENED_COUNT	(LL_HAPPENED_UNENFORCED + 1)

/* A shadow's budget of a pair: its head, and how often it would have admitted and rejected. */
typedef struct LLShadow
{
	LLHead		head;
	int64		would_admit[LL_HAPPENED_COUNT];
	int64		would_reject[LL_HAPPENED_COUNT];
} LLShadow;

/* One limitReservation.v1. */
typedef struct LLReservationRow
{
	Datum		subject;
	Datum		id;
	Datum		route;			/* 0: a fence (D11), which has no budget */
	int64		generation;
	TimestampTz epoch;
	LLReservation state;
	LLUnits		asked_units;
	Datum		digest;
	Datum		operation;		/* text, or 0 */
	int32		priority;
	TimestampTz reserved_at;
	TimestampTz started_at;
	TimestampTz unknown_at;
	TimestampTz ended_at;
	int64		excess_generation;
	TimestampTz excess_epoch;
	Datum		receipt_digest; /* bytea, or 0 */
	Datum		receipt_source; /* text, or 0 */
	int64		shadow_generation;	/* 0: none took its units (B7) */
	int64		shadow_line;
	Datum		claimed_by;		/* text, or 0: nobody has claimed it */
	TupleTableSlot *slot;
} LLReservationRow;

/* What an operation is bound to: a reservation, or usage on a route's budget. */
typedef struct LLOperationRow
{
	Datum		reservation;	/* or 0 */
	TimestampTz bound_at;
	LLUnits		usage_units;
	Datum		route;			/* or 0 */
	int64		generation;
	TimestampTz epoch;
} LLOperationRow;

typedef struct LLExtensionRow
{
	LLUnits		units;
	TimestampTz expires_at;		/* LL_NO_TIME: as it was */
} LLExtensionRow;

typedef struct LLGrantRow
{
	LLUnits		units;
	LLUnits		granted_units;
} LLGrantRow;

extern int	ll_text_compare(Datum a, Datum b);
extern bool ll_bytes_equal(Datum a, Datum b);
extern bool ll_text_is(Datum text, const char *word);
extern Datum ll_copy_varlena(Datum value);

extern bool ll_head_peek(LLHead *head, Snapshot snapshot);
extern LLLock ll_head_lock(LLHead *head, Snapshot snapshot, LockWaitPolicy policy);
extern bool ll_head_insert(const LLHead *head);
extern void ll_head_update(const LLHead *head);
extern void ll_head_forget(const LLHead *head);

extern LLLock ll_shadow_lock(LLShadow *shadow, int64 generation, LockWaitPolicy policy);
extern bool ll_shadow_insert(const LLShadow *shadow, LockWaitPolicy policy);
extern void ll_shadow_update(const LLShadow *shadow);

extern void ll_closed_read(LLClosed *closed);
extern bool ll_closed_lock(const LLHead *head, int64 generation, TimestampTz epoch, LLClosed *closed);
extern List *ll_closed_debtors_lock(const LLHead *head);
extern void ll_closed_insert(const LLHead *head, const LLClosed *closed);
extern void ll_closed_update(const LLHead *head, const LLClosed *closed);

extern bool ll_reservation_peek(LLReservationRow *row, Datum subject, Datum id, Snapshot snapshot);
extern bool ll_reservation_look(LLReservationRow *row, Datum subject, Datum id, Snapshot snapshot);
extern bool ll_reservation_exists(Datum subject, Datum id);
extern LLLock ll_reservation_lock(LLReservationRow *row, Snapshot snapshot, LockWaitPolicy policy);
extern bool ll_reservation_insert(const LLReservationRow *row);
extern void ll_reservation_update(const LLReservationRow *row);
extern void ll_reservation_read(LLReservationRow *row);
extern LLScan *ll_ids_begin(Datum subject, Datum first, Datum last, Snapshot snapshot);
extern bool ll_ids_next(LLScan *scan, Datum *id);
extern bool ll_reservation_claim(LLReservationRow *row, Snapshot snapshot);
extern void ll_reservation_delete(const LLReservationRow *row, Snapshot snapshot);
extern LLScan *ll_due_begin(LLIndexId index, TimestampTz from, TimestampTz until,
							Snapshot snapshot);
extern LLScan *ll_claimable_begin(bool lapsed, TimestampTz now, Snapshot snapshot);
extern LLScan *ll_due_after_begin(LLIndexId index, TimestampTz after, Snapshot snapshot);
extern LLScan *ll_pair_due_begin(const LLHead *head, TimestampTz from, TimestampTz until,
								 Snapshot snapshot);

/* Rows in the order of (generation, instant): of one generation, 0 for fences, or from one on. */
extern LLScan *ll_aged_begin(LLIndexId index, int64 generation, TimestampTz from, Snapshot snapshot);
extern LLScan *ll_aged_from_begin(LLIndexId index, int64 generation, Snapshot snapshot);
extern bool ll_aged_next(LLScan *scan, TupleTableSlot *slot, int64 *generation, TimestampTz *at);

extern void ll_operation_read(LLOperationRow *row, TupleTableSlot *slot);
extern bool ll_operation_look(LLOperationRow *row, Datum subject, Datum id, Snapshot snapshot);
extern bool ll_operation_insert(Datum subject, Datum id, const LLOperationRow *row, ItemPointer tid);
extern bool ll_operation_bind(Datum subject, Datum id, Datum reservation, TimestampTz at,
							  ItemPointer tid);
extern void ll_operation_forget(ItemPointer tid);

extern bool ll_extension_look(LLExtensionRow *row, Datum subject, Datum reservation, Datum id,
							  Snapshot snapshot);
extern bool ll_extension_insert(Datum subject, Datum reservation, Datum id,
								const LLExtensionRow *row, TimestampTz at);
extern bool ll_grant_look(LLGrantRow *row, Datum subject, Datum route, Datum id, Snapshot snapshot);
extern bool ll_grant_insert(Datum subject, Datum route, Datum id, const LLGrantRow *row,
							Datum reason, TimestampTz at);

extern void ll_action_insert(TimestampTz at, const char *action, Datum subject, Datum route, Datum reason);

#endif							/* LL_STORE_ROWS_H */
