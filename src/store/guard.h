/*
 * guard.h
 *	  What the row triggers of C3 share: the movement of a row, and the refusal.
 */
#ifndef LL_STORE_GUARD_H
#define LL_STORE_GUARD_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "commands/trigger.h"
#include "core/types.h"
#include "fmgr.h"
#include "utils/rel.h"

/* The row before and after. */
typedef struct LLMovement
{
	TupleDesc	desc;
	Datum	   *was;
	Datum	   *is;
	bool	   *was_null;
	bool	   *is_null;
} LLMovement;

extern void ll_guard_refuse(Relation relation, const char *rule, const char *what) pg_attribute_noreturn();
extern bool ll_guard_begin(FunctionCallInfo fcinfo, LLMovement *m);
extern bool ll_guard_noted(FunctionCallInfo fcinfo, LLMovement *m);
extern bool ll_guard_same(const LLMovement *m, int column);
extern bool ll_guard_all_same(const LLMovement *m, const int *columns, int count);
extern bool ll_guard_falls(const LLMovement *m, int column);
extern bool ll_guard_any_falls(const LLMovement *m, const int *columns, int count);
extern LLState ll_guard_state(Relation relation, Datum value);

#define SAME(m, ...) \
	ll_guard_all_same((m), (const int[]) {__VA_ARGS__}, lengthof(((const int[]) {__VA_ARGS__})))
#define ANY_FALLS(m, ...) \
	ll_guard_any_falls((m), (const int[]) {__VA_ARGS__}, lengthof(((const int[]) {__VA_ARGS__})))

#endif							/* LL_STORE_GUARD_H */
