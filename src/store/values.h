/*
 * values.h
 *	  Columns <-> values, for the files that map rows: 0 and LL_NO_TIME are NULL.
 */
#ifndef LL_STORE_VALUES_H
#define LL_STORE_VALUES_H

#include "postgres.h"

#include "rows.h"
#include "table.h"

static inline int64
ll_int8_of(TupleTableSlot *slot, int column)
{
	return DatumGetInt64(slot->tts_values[column]);
}

/* ll_time_of reads a nullable instant. */
static inline TimestampTz
ll_time_of(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? LL_NO_TIME : DatumGetTimestampTz(slot->tts_values[column]);
}

/* ll_varlena_of reads a nullable text or bytea. */
static inline Datum
ll_varlena_of(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? (Datum) 0 : slot->tts_values[column];
}

static inline void
ll_put_time(Datum *values, bool *nulls, int column, TimestampTz at)
{
	nulls[column] = at == LL_NO_TIME;
	values[column] = TimestampTzGetDatum(at);
}

static inline void
ll_put_varlena(Datum *values, bool *nulls, int column, Datum value)
{
	nulls[column] = value == 0;
	values[column] = value;
}

extern bool ll_find(LLIndexId index, Snapshot snapshot, ScanKey keys, int nkeys,
					TupleTableSlot *slot);

#endif							/* LL_STORE_VALUES_H */
