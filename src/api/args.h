/*
 * args.h
 *	  Arguments of the SQL functions: checked, or an error that names the field.
 */
#ifndef LL_API_ARGS_H
#define LL_API_ARGS_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "fmgr.h"

/* A value that may be NULL, with the name that errors call it by. */
typedef struct LLArg
{
	const char *name;
	Datum		value;
	bool		null;
	int			element;		/* of a batch, from 1; 0: not a batch */
	Oid			function;		/* whose argument it is */
} LLArg;

/* The arrays of a batch, element by element. */
typedef struct LLArray
{
	const char *name;
	bool		given;
	int			count;
	Datum	   *values;
	bool	   *nulls;
	Oid			function;
} LLArray;

#define LL_MAX_BATCH	100000

extern void ll_refuse_bound(FunctionCallInfo fcinfo, const char *call);
extern LLArg ll_arg(FunctionCallInfo fcinfo, int number, const char *name);
extern LLArray ll_array(FunctionCallInfo fcinfo, int number, const char *name,
						Oid type, bool mandatory);
extern int	ll_array_count(const LLArray *first, ...);
extern LLArg ll_array_arg(const LLArray *array, int index);

extern Datum ll_arg_text(LLArg arg);
extern Datum ll_arg_reported(LLArg arg);
extern Datum ll_arg_subject(LLArg arg);
extern Datum ll_arg_value(LLArg arg);
extern Datum ll_arg_optional_text(LLArg arg);
extern Datum ll_arg_reason(LLArg arg);
extern int64 ll_arg_units(LLArg arg, int64 least);
extern Datum ll_arg_digest(LLArg arg);
extern Datum ll_arg_optional_digest(LLArg arg);
extern TimestampTz ll_arg_optional_time(LLArg arg);
extern bool ll_arg_flag(LLArg arg);
extern int32 ll_arg_batch_limit(LLArg arg);
extern int64 ll_arg_lease(LLArg arg);
extern Datum ll_arg_source(LLArg arg);

#endif							/* LL_API_ARGS_H */
