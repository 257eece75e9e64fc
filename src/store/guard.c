/*
 * guard.c
 *	  Row triggers: they refuse what no call does, whoever tries (C3).
 *
 * The calls of this extension never trip them, and a row is deleted by them
 * alone: the store says which one, while it does so (D15).  They are the fourth guard of
 * one identity, after the decision, the check before the write and the CHECK
 * constraint, and the only one that sees a movement rather than a row.
 * Loading rows (COPY, a restore) is not a movement and is let through;
 * verify_conservation() judges what was loaded.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "board.h"
#include "columns.h"
#include "core/transition.h"
#include "durability.h"
#include "errors.h"
#include "fmgr.h"
#include "guard.h"
#include "table.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(limitledger_guard_head);
PG_FUNCTION_INFO_V1(limitledger_guard_closed);
PG_FUNCTION_INFO_V1(limitledger_guard_reservation);
PG_FUNCTION_INFO_V1(limitledger_guard_bound);
PG_FUNCTION_INFO_V1(limitledger_policy_changed);

/* ll_guard_refuse ends the transaction, and shows no values. */
void
ll_guard_refuse(Relation relation, const char *rule, const char *what)
{
	ereport(ERROR,
			(errcode(LL_ERRCODE_MOVEMENT),
			 errmsg("%s", what),
			 errdetail("Rule %s guards table \"%s\".", rule, RelationGetRelationName(relation)),
			 errhint("Change the ledger through its functions only.")));
}

/*
 * ll_guard_begin checks how the trigger was fired and takes both rows apart.  True: a
 * purge deletes the row, and there is no second one (D15).
 */
bool
ll_guard_begin(FunctionCallInfo fcinfo, LLMovement *m)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	bool		purge;
	int			natts;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("a guard of limitledger must be called as a trigger")));
	purge = TRIGGER_FIRED_BY_DELETE(trigger->tg_event) &&
		ll_row_deleting(RelationGetRelid(trigger->tg_relation), &trigger->tg_trigtuple->t_self);
	if (!purge && !TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
		ll_guard_refuse(trigger->tg_relation, "C3", "rows of the ledger are not deleted by hand");

	m->desc = RelationGetDescr(trigger->tg_relation);
	natts = m->desc->natts;
	m->was = palloc(sizeof(Datum) * natts * 2);
	m->is = m->was + natts;
	m->was_null = palloc(sizeof(bool) * natts * 2);
	m->is_null = m->was_null + natts;
	heap_deform_tuple(trigger->tg_trigtuple, m->desc, m->was, m->was_null);
	if (!purge)
		heap_deform_tuple(trigger->tg_newtuple, m->desc, m->is, m->is_null);
	return purge;
}

/*
 * ll_guard_noted does so for a table that SQL functions write, too, and that is
 * never purged: its writes are as durable as a call's (F4).  False: the row is new.
 */
bool
ll_guard_noted(FunctionCallInfo fcinfo, LLMovement *m)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	ll_durability_note();
	if (CALLED_AS_TRIGGER(fcinfo) && TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		return false;
	if (ll_guard_begin(fcinfo, m))
		ll_guard_refuse(trigger->tg_relation, "C3", "rows of this table are not purged");
	return true;
}

/* ll_guard_same tells whether a column keeps its value. */
bool
ll_guard_same(const LLMovement *m, int column)
{
	Form_pg_attribute attribute = TupleDescAttr(m->desc, column);

	if (m->was_null[column] || m->is_null[column])
		return m->was_null[column] == m->is_null[column];
	return datum_image_eq(m->was[column], m->is[column], attribute->attbyval, attribute->attlen);
}

bool
ll_guard_all_same(const LLMovement *m, const int *columns, int count)
{
	for (int i = 0; i < count; i++)
		if (!ll_guard_same(m, columns[i]))
			return false;
	return true;
}

bool
ll_guard_falls(const LLMovement *m, int column)
{
	return DatumGetInt64(m->is[column]) < DatumGetInt64(m->was[column]);
}

bool
ll_guard_any_falls(const LLMovement *m, const int *columns, int count)
{
	for (int i = 0; i < count; i++)
		if (ll_guard_falls(m, columns[i]))
			return true;
	return false;
}

/* ll_guard_state reads a column of states. */
LLState
ll_guard_state(Relation relation, Datum value)
{
	LLState		state = LL_ABSENT;

	if (!ll_state_parse(VARDATA_ANY(DatumGetPointer(value)),
						VARSIZE_ANY_EXHDR(DatumGetPointer(value)), &state))
		ll_guard_refuse(relation, "D1", "there is no such state");
	return state;
}

/* the counters of one budget that never fall */
static bool
counter_falls(const LLMovement *m)
{
	return ANY_FALLS(m, LL_BUDGET_SPENT, LL_BUDGET_OVERDRAFT_ISSUED, LL_BUDGET_OVERDRAFT_REPAID,
					 LL_BUDGET_RETIRED_FOR_EMERGENCY, LL_BUDGET_BURNED, LL_BUDGET_PURGED_SPENT);
}

/*
 * limitledger_guard_head: within one budget its opening stays and its counters
 * never fall; the next budget follows the one before, and is not older.
 */
Datum
limitledger_guard_head(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	LLMovement	m;

	if (ll_guard_begin(fcinfo, &m))
		ll_guard_refuse(trigger->tg_relation, "D15", "the head of a pair is not purged");
	if (!SAME(&m, LL_BUDGET_SUBJECT, LL_BUDGET_ROUTE))
		ll_guard_refuse(trigger->tg_relation, "C3", "the identity of a budget does not change");
	if (ANY_FALLS(&m, LL_HEAD_SEEN_AT, LL_HEAD_ACCRUED_AT))
		ll_guard_refuse(trigger->tg_relation, "A3", "the time of a pair does not go back");
	if (SAME(&m, LL_BUDGET_GENERATION, LL_BUDGET_EPOCH))
	{
		if (!SAME(&m, LL_BUDGET_OPENED_AT, LL_BUDGET_LINE, LL_BUDGET_WHOLE, LL_BUDGET_CARRIED,
				  LL_BUDGET_OPENING, LL_BUDGET_FOLLOWS_GENERATION, LL_BUDGET_FOLLOWS_EPOCH))
			ll_guard_refuse(trigger->tg_relation, "C3", "the opening of a budget does not change");
		if (counter_falls(&m))
			ll_guard_refuse(trigger->tg_relation, "C3", "what was spent, issued, repaid or retired does not fall");
	}
	else if (ANY_FALLS(&m, LL_BUDGET_GENERATION, LL_BUDGET_OPENED_AT, LL_BUDGET_LINE) ||
			 m.is_null[LL_BUDGET_FOLLOWS_GENERATION])
		ll_guard_refuse(trigger->tg_relation, "B5", "a budget follows the one before it");
	return PointerGetDatum(trigger->tg_newtuple);
}

static int64
units_before(const LLMovement *m, int column)
{
	return DatumGetInt64(m->was[column]);
}

/* wound_up: nothing of the budget is held, owed, or told by another row any more. */
static bool
wound_up(const LLMovement *m)
{
	return units_before(m, LL_BUDGET_RESERVED) == 0 && units_before(m, LL_BUDGET_RETIRED_FOR_EMERGENCY) == 0 &&
		units_before(m, LL_BUDGET_OVERDRAFT_ISSUED) == units_before(m, LL_BUDGET_OVERDRAFT_REPAID) &&
		units_before(m, LL_BUDGET_SPENT) == units_before(m, LL_BUDGET_PURGED_SPENT);
}

/* limitledger_guard_closed: a closed budget only winds up, and is purged after that. */
Datum
limitledger_guard_closed(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	LLMovement	m;

	if (ll_guard_begin(fcinfo, &m))
	{
		if (!wound_up(&m))
			ll_guard_refuse(trigger->tg_relation, "D15", "a budget that holds or owes is not purged");
		return PointerGetDatum(trigger->tg_trigtuple);
	}
	if (!SAME(&m, LL_BUDGET_SUBJECT, LL_BUDGET_ROUTE, LL_BUDGET_GENERATION, LL_BUDGET_EPOCH,
			  LL_BUDGET_OPENED_AT, LL_BUDGET_LINE, LL_BUDGET_WHOLE, LL_BUDGET_CARRIED,
			  LL_BUDGET_OPENING, LL_BUDGET_DEFICIT, LL_BUDGET_FOLLOWS_GENERATION,
			  LL_BUDGET_FOLLOWS_EPOCH, LL_CLOSED_CLOSED_AT, LL_CLOSED_CLOSING_AVAILABLE))
		ll_guard_refuse(trigger->tg_relation, "B5", "a closed budget does not open again");
	if (counter_falls(&m) ||
		ANY_FALLS(&m, LL_BUDGET_AVAILABLE, LL_BUDGET_MINTED, LL_CLOSED_CHANGED_AT) ||
		DatumGetInt64(m.is[LL_BUDGET_RESERVED]) > units_before(&m, LL_BUDGET_RESERVED))
		ll_guard_refuse(trigger->tg_relation, "C3", "a closed budget only winds up");
	if (DatumGetBool(m.was[LL_CLOSED_FOLLOWS_PURGED]) && !SAME(&m, LL_CLOSED_FOLLOWS_PURGED))
		ll_guard_refuse(trigger->tg_relation, "D15", "what was purged does not come back");
	return PointerGetDatum(trigger->tg_newtuple);
}

/* a claim is new, or ends later than the one before it */
static bool
lease_grows(const LLMovement *m)
{
	return !m->is_null[LL_RESERVATION_CLAIMED_UNTIL] &&
		(m->was_null[LL_RESERVATION_CLAIMED_UNTIL] ||
		 DatumGetTimestampTz(m->is[LL_RESERVATION_CLAIMED_UNTIL]) >
		 DatumGetTimestampTz(m->was[LL_RESERVATION_CLAIMED_UNTIL]));
}

/*
 * limitledger_guard_reservation: identity stays, states move along the
 * transition table only, and what has ended does not change.
 */
Datum
limitledger_guard_reservation(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	LLMovement	m;
	LLState		was;
	LLState		is;
	bool		purge = ll_guard_begin(fcinfo, &m);

	was = ll_guard_state(trigger->tg_relation, m.was[LL_RESERVATION_STATE]);
	if (purge)
	{
		if (!ll_state_terminal(was))
			ll_guard_refuse(trigger->tg_relation, "D15", "a reservation that has not ended is not purged");
		return PointerGetDatum(trigger->tg_trigtuple);
	}
	is = ll_guard_state(trigger->tg_relation, m.is[LL_RESERVATION_STATE]);
	if (!SAME(&m, LL_RESERVATION_SUBJECT, LL_RESERVATION_ID, LL_RESERVATION_ROUTE,
			  LL_RESERVATION_GENERATION, LL_RESERVATION_EPOCH, LL_RESERVATION_ASKED_UNITS,
			  LL_RESERVATION_DIGEST, LL_RESERVATION_RESERVED_AT))
		ll_guard_refuse(trigger->tg_relation, "C3", "the identity of a reservation does not change");
	if (ll_state_terminal(was))
		ll_guard_refuse(trigger->tg_relation, "C3", "a reservation that has ended does not change");
	if (was != is && !ll_transition_allows(was, is))
		ll_guard_refuse(trigger->tg_relation, "D1", "no event moves a reservation so");
	if (ANY_FALLS(&m, LL_RESERVATION_PROGRESS_UNITS, LL_RESERVATION_RESERVED_UNITS))
		ll_guard_refuse(trigger->tg_relation, "C3", "what was reserved or used so far does not fall");
	if (was == is && ll_guard_falls(&m, LL_RESERVATION_EXPIRES_AT))
		ll_guard_refuse(trigger->tg_relation, "A3", "a deadline does not move earlier");
	if (!m.was_null[LL_RESERVATION_OPERATION] && !SAME(&m, LL_RESERVATION_OPERATION))
		ll_guard_refuse(trigger->tg_relation, "D5", "a bound operation does not change");
	if (!SAME(&m, LL_RESERVATION_CLAIMED_BY, LL_RESERVATION_CLAIMED_UNTIL) &&
		(was != LL_USAGE_UNKNOWN || is != LL_USAGE_UNKNOWN || !lease_grows(&m)))
		ll_guard_refuse(trigger->tg_relation, "D10", "only unknown usage is claimed, and no lease is cut short or handed on");
	return PointerGetDatum(trigger->tg_newtuple);
}

/*
 * limitledger_guard_bound: what was bound or recorded stays as it was written,
 * until it is purged along with its reservation, or after its own retention.
 */
Datum
limitledger_guard_bound(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	LLMovement	m;

	if (ll_guard_begin(fcinfo, &m))
		return PointerGetDatum(trigger->tg_trigtuple);
	ll_guard_refuse(trigger->tg_relation, "C3", "a record of the ledger does not change");
}

/*
 * limitledger_policy_changed tells every backend, at commit, to look again at
 * which generations rule (B5).  A publish is as durable as a call (F4).
 */
Datum
limitledger_policy_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("policy_changed must be called as a trigger")));
	ll_durability_note();
	ll_board_note(LL_WORKER_REPAYMENT, LL_AT_ONCE);	/* pairs that owe may be paid sooner now */
	CacheInvalidateRelcache(trigger->tg_relation);
	return PointerGetDatum(NULL);
}
