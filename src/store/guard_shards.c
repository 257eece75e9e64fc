/*
 * guard_shards.c
 *	  Row triggers of what shards, gateways and keys stand in (C3, G).
 *
 * What SQL functions write is as durable as a call: its guard says so (F4).
 */
#include "postgres.h"

#include "clock.h"
#include "columns.h"
#include "guard.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(limitledger_guard_shard);
PG_FUNCTION_INFO_V1(limitledger_guard_gateway);
PG_FUNCTION_INFO_V1(limitledger_guard_trusted_key);

/* set_once: a value, once there, stays. */
static bool
set_once(const LLMovement *m, int column)
{
	return m->was_null[column] || ll_guard_same(m, column);
}

/* limitledger_guard_shard: what was issued stays, and what was reported never falls (G1, G6). */
Datum
limitledger_guard_shard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	LLMovement	m;

	if (ll_guard_begin(fcinfo, &m))
		ll_guard_refuse(trigger->tg_relation, "D15", "a shard is not purged");
	if (!SAME(&m, LL_EMERGENCY_SUBJECT, LL_EMERGENCY_SHARD_ID, LL_EMERGENCY_ROUTE,
			  LL_EMERGENCY_GENERATION, LL_EMERGENCY_EPOCH, LL_EMERGENCY_LINE, LL_EMERGENCY_GATEWAY,
			  LL_EMERGENCY_BOOT_EPOCH, LL_EMERGENCY_FENCE, LL_EMERGENCY_ALLOCATED_UNITS,
			  LL_EMERGENCY_ISSUED_AT, LL_EMERGENCY_EXPIRES_AT, LL_EMERGENCY_ISSUED_BY,
			  LL_EMERGENCY_ACTOR))
		ll_guard_refuse(trigger->tg_relation, "C3", "the identity of a shard does not change");
	if (ANY_FALLS(&m, LL_EMERGENCY_SEQUENCE, LL_EMERGENCY_LOCAL_SPENT, LL_EMERGENCY_LOCAL_RETIRED,
				  LL_EMERGENCY_LOCAL_EXCESS, LL_EMERGENCY_RECEIPTED_UNITS,
				  LL_EMERGENCY_CONFIRMED_UNITS, LL_EMERGENCY_REMINTED_UNITS))
		ll_guard_refuse(trigger->tg_relation, "G6", "what was reported of a shard does not fall");
	if ((DatumGetBool(m.was[LL_EMERGENCY_SEALED]) && !SAME(&m, LL_EMERGENCY_SEALED)) ||
		!set_once(&m, LL_EMERGENCY_WRITTEN_OFF_AT) ||
		!set_once(&m, LL_EMERGENCY_WRITTEN_OFF_REASON) || !set_once(&m, LL_EMERGENCY_SETTLED_AT))
		ll_guard_refuse(trigger->tg_relation, "G6", "a shard that is sealed, written off or settled stays so");
	return PointerGetDatum(trigger->tg_newtuple);
}

/*
 * limitledger_guard_gateway: a fence is never given out twice (G2).  Who writes
 * through SQL is as durable as a call (F4).
 */
Datum
limitledger_guard_gateway(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	LLMovement	m;

	if (!ll_guard_noted(fcinfo, &m))
		return PointerGetDatum(trigger->tg_trigtuple);
	if (!SAME(&m, LL_GATEWAY_ID))
		ll_guard_refuse(trigger->tg_relation, "C3", "the identity of a gateway does not change");
	if (ANY_FALLS(&m, LL_GATEWAY_LAST_FENCE))
		ll_guard_refuse(trigger->tg_relation, "G2", "the fence of a gateway does not fall");
	return PointerGetDatum(trigger->tg_newtuple);
}

/* ended: the life of a key was over before this moment. */
static bool
ended(const LLMovement *m)
{
	return !m->was_null[LL_TRUSTED_KEY_TRUSTED_UNTIL] &&
		DatumGetTimestampTz(m->was[LL_TRUSTED_KEY_TRUSTED_UNTIL]) <= ll_clock_now();
}

/*
 * limitledger_guard_trusted_key: an id stands for one key of one owner for
 * ever, and a key that has lost its trust does not get it back (G3).  A change
 * of trust is as durable as a call (F4).
 */
Datum
limitledger_guard_trusted_key(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	LLMovement	m;

	if (!ll_guard_noted(fcinfo, &m))
		return PointerGetDatum(trigger->tg_trigtuple);
	if (!SAME(&m, LL_TRUSTED_KEY_KID, LL_TRUSTED_KEY_PUBLIC_KEY, LL_TRUSTED_KEY_GATEWAY,
			  LL_TRUSTED_KEY_TRUSTED_FROM))
		ll_guard_refuse(trigger->tg_relation, "G3", "an id stands for one key of one owner for ever");
	if (!SAME(&m, LL_TRUSTED_KEY_TRUSTED_UNTIL) && ended(&m))
		ll_guard_refuse(trigger->tg_relation, "G3", "a key that lost its trust does not get it back");
	return PointerGetDatum(trigger->tg_newtuple);
}
