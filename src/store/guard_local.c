/*
 * guard_local.c
 *	  Row triggers of the tables of a gateway (C3, F4).
 *
 * As in guard.c; but nothing here is ever deleted.  Some of these tables are
 * written by SQL functions, so an insertion is noted, too: it is as durable as
 * that of a call.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "board.h"
#include "columns.h"
#include "commands/trigger.h"
#include "core/core.h"
#include "durability.h"
#include "fmgr.h"
#include "guard.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(limitledger_guard_local_gateway);
PG_FUNCTION_INFO_V1(limitledger_guard_local_shard);
PG_FUNCTION_INFO_V1(limitledger_guard_shard_reservation);
PG_FUNCTION_INFO_V1(limitledger_guard_local_record);

/* limitledger_guard_local_gateway: which gateway it is stays; boots and fences only come after one another. */
Datum
limitledger_guard_local_gateway(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	LLMovement	m;

	if (!ll_guard_noted(fcinfo, &m))
		return PointerGetDatum(trigger->tg_trigtuple);
	if (!SAME(&m, LL_LOCAL_GATEWAY_ONLY_ONE, LL_LOCAL_GATEWAY_ID))
		ll_guard_refuse(trigger->tg_relation, "G4", "a gateway does not become another one");
	if (ANY_FALLS(&m, LL_LOCAL_GATEWAY_LAST_FENCE))
		ll_guard_refuse(trigger->tg_relation, "G4", "a fence does not fall");
	if (ANY_FALLS(&m, LL_LOCAL_GATEWAY_BOOTED_AT) ||
		(SAME(&m, LL_LOCAL_GATEWAY_BOOT_EPOCH) &&
		 !SAME(&m, LL_LOCAL_GATEWAY_SERVER_STARTED, LL_LOCAL_GATEWAY_DATABASE_OID,
			   LL_LOCAL_GATEWAY_RELATION_OID, LL_LOCAL_GATEWAY_BOOTED_AT)))
		ll_guard_refuse(trigger->tg_relation, "G5", "a boot epoch is of one start of the server");
	return PointerGetDatum(trigger->tg_newtuple);
}

/*
 * limitledger_guard_local_shard: what was accepted stays, what was used or retired
 * does not come back, and a seal is for good.
 */
Datum
limitledger_guard_local_shard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	LLMovement	m;

	if (!ll_guard_noted(fcinfo, &m))
	{
		bool		null;
		Datum		ends = heap_getattr(trigger->tg_trigtuple, LL_LOCAL_SHARD_EXPIRES_AT + 1,
										RelationGetDescr(trigger->tg_relation), &null);

		if (!null)
			ll_board_note(LL_WORKER_EXPIRY, DatumGetTimestampTz(ends));
		return PointerGetDatum(trigger->tg_trigtuple);
	}
	for (int column = 0; column < LL_LOCAL_SHARD_LOCAL_AVAILABLE; column++)
		if (!ll_guard_same(&m, column))
			ll_guard_refuse(trigger->tg_relation, "C3", "what was accepted does not change");
	if (ANY_FALLS(&m, LL_LOCAL_SHARD_LOCAL_SPENT, LL_LOCAL_SHARD_LOCAL_RETIRED,
				  LL_LOCAL_SHARD_LOCAL_EXCESS))
		ll_guard_refuse(trigger->tg_relation, "C3", "what was spent, retired or exceeded does not fall");
	if (!m.was_null[LL_LOCAL_SHARD_SEALED_AT] &&
		!SAME(&m, LL_LOCAL_SHARD_SEALED_AT, LL_LOCAL_SHARD_SEALED_BY))
		ll_guard_refuse(trigger->tg_relation, "G6", "a seal is not taken back");
	if (ANY_FALLS(&m, LL_LOCAL_SHARD_SEEN_AT))
		ll_guard_refuse(trigger->tg_relation, "A3", "the time of a shard does not go back");
	if (ANY_FALLS(&m, LL_LOCAL_SHARD_LAST_SEQUENCE))
		ll_guard_refuse(trigger->tg_relation, "G6", "the number of a report does not fall");
	return PointerGetDatum(trigger->tg_newtuple);
}

/* only_reported: nothing changes but the number of the report, once */
static bool
only_reported(const LLMovement *m)
{
	for (int column = 0; column < LL_SHARD_RESERVATION_SEQUENCE; column++)
		if (!ll_guard_same(m, column))
			return false;
	return m->was_null[LL_SHARD_RESERVATION_SEQUENCE] || ll_guard_same(m, LL_SHARD_RESERVATION_SEQUENCE);
}

/*
 * limitledger_guard_shard_reservation: identity stays, states move as on a gateway
 * only, and what has ended changes in nothing but that it was reported, once.
 */
Datum
limitledger_guard_shard_reservation(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	LLMovement	m;
	LLState		was;
	LLState		is;

	if (!ll_guard_noted(fcinfo, &m))
		return PointerGetDatum(trigger->tg_trigtuple);
	was = ll_guard_state(trigger->tg_relation, m.was[LL_SHARD_RESERVATION_STATE]);
	is = ll_guard_state(trigger->tg_relation, m.is[LL_SHARD_RESERVATION_STATE]);
	if (!SAME(&m, LL_SHARD_RESERVATION_SUBJECT, LL_SHARD_RESERVATION_RESERVATION_ID,
			  LL_SHARD_RESERVATION_SHARD_ID, LL_SHARD_RESERVATION_RESERVED_UNITS,
			  LL_SHARD_RESERVATION_REQUEST_DIGEST, LL_SHARD_RESERVATION_RESERVED_AT))
		ll_guard_refuse(trigger->tg_relation, "C3", "the identity of a reservation does not change");
	if (ll_state_terminal(was) && !only_reported(&m))
		ll_guard_refuse(trigger->tg_relation, "C3", "a reservation that has ended does not change");
	if (was != is && !ll_local_transition_allows(was, is))
		ll_guard_refuse(trigger->tg_relation, "D1", "no event moves a reservation so");
	if (was == is && ANY_FALLS(&m, LL_SHARD_RESERVATION_EXPIRES_AT))
		ll_guard_refuse(trigger->tg_relation, "A3", "a deadline does not move earlier");
	if (!m.was_null[LL_SHARD_RESERVATION_OPERATION_ID] && !SAME(&m, LL_SHARD_RESERVATION_OPERATION_ID))
		ll_guard_refuse(trigger->tg_relation, "D5", "a bound operation does not change");
	return PointerGetDatum(trigger->tg_newtuple);
}

/* limitledger_guard_local_record: what was bound or reported stays as it was written. */
Datum
limitledger_guard_local_record(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	LLMovement	m;

	if (ll_guard_noted(fcinfo, &m))
		ll_guard_refuse(trigger->tg_relation, "C3", "a record of a gateway does not change");
	return PointerGetDatum(trigger->tg_trigtuple);
}
