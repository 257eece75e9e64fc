/*
 * args.c
 *	  Arguments of the SQL functions.  See args.h.
 *
 * Errors name the field, and the element of a batch, but show no values: a
 * subject or an id may be a secret of its caller.
 */
#include "postgres.h"

#include "args.h"

#include <stdarg.h>

#include "catalog/pg_type.h"
#include "errors.h"
#include "ledger/ledger.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#define LL_TEXT_BYTES	256
#define LL_REASON_BYTES	256
#define LL_DIGEST_BYTES	32
#define LL_DIGEST_PREFIX "sha256:"

/* where: "units" or "units, element 7" */
static const char *
where(LLArg arg)
{
	return arg.element == 0 ? arg.name : psprintf("%s, element %d", arg.name, arg.element);
}

/* ll_arg takes one argument as it comes. */
LLArg
ll_arg(FunctionCallInfo fcinfo, int number, const char *name)
{
	LLArg		arg = {name, (Datum) 0, PG_ARGISNULL(number), 0, fcinfo->flinfo->fn_oid};

	if (!arg.null)
		arg.value = PG_GETARG_DATUM(number);
	return arg;
}

static void
not_null(LLArg arg)
{
	if (arg.null)
		ereport(ERROR,
				(errcode(LL_ERRCODE_NULL_ARGUMENT),
				 errmsg("%s must not be NULL", where(arg)),
				 errdetail("NULL is neither zero nor a default here."),
				 errhint("Pass a value for it.")));
}

static Datum
check_text(LLArg arg)
{
	Datum		text = PointerGetDatum(PG_DETOAST_DATUM_PACKED(arg.value));
	int			length = VARSIZE_ANY_EXHDR(DatumGetPointer(text));

	if (length < 1 || length > LL_TEXT_BYTES)
		ereport(ERROR,
				(errcode(LL_ERRCODE_TEXT_ARGUMENT),
				 errmsg("%s must have 1 to %d bytes", where(arg), LL_TEXT_BYTES),
				 errdetail("It has %d.", length),
				 errhint("Names and ids are compared byte for byte and never cut; hash a longer one.")));
	return text;
}

/* ll_arg_text takes a route or an id: 1 to 256 bytes (A1). */
Datum
ll_arg_text(LLArg arg)
{
	not_null(arg);
	return check_text(arg);
}

/*
 * ll_arg_reported takes an id that a report will carry: in a database of another
 * encoding it has to fit, and to be text, in UTF-8 as well, or its shard could
 * never be reported (G6).
 */
Datum
ll_arg_reported(LLArg arg)
{
	Datum		text = ll_arg_text(arg);
	int			length = VARSIZE_ANY_EXHDR(DatumGetPointer(text));
	char	   *utf8 = pg_server_to_any(VARDATA_ANY(DatumGetPointer(text)), length, PG_UTF8);

	if (utf8 != VARDATA_ANY(DatumGetPointer(text)))
		length = strlen(utf8);
	if (length > LL_TEXT_BYTES)
		ereport(ERROR,
				(errcode(LL_ERRCODE_TEXT_ARGUMENT),
				 errmsg("%s must have 1 to %d bytes in UTF-8", where(arg), LL_TEXT_BYTES),
				 errdetail("It has %d.", length),
				 errhint("Reports are UTF-8, and names and ids are never cut; hash a longer one.")));
	return text;
}

/*
 * ll_arg_subject takes a subject; "*" stands for all of them in policies only.
 * Every call about a subject gets it here, so this is where the login's bindings
 * are asked: a subject that it may not name becomes one that there is nothing of
 * (I1).  All elements of a batch are judged by the bindings of one moment.
 */
Datum
ll_arg_subject(LLArg arg)
{
	Datum		text = ll_arg_text(arg);

	if (VARSIZE_ANY_EXHDR(DatumGetPointer(text)) == 1 && *VARDATA_ANY(DatumGetPointer(text)) == '*')
		ereport(ERROR,
				(errcode(LL_ERRCODE_TEXT_ARGUMENT),
				 errmsg("%s must not be \"*\"", where(arg)),
				 errdetail("\"*\" is reserved for policies that cover every subject of a route."),
				 errhint("Pass the subject itself; the policy is found by the ledger.")));
	if (arg.element <= 1)
		ll_binding_begin(arg.function);
	return ll_binding_reaches(text) ? text : ll_binding_nobody();
}

/* ll_arg_value takes a value as it came: its reader judges it, and may not fetch all of it. */
Datum
ll_arg_value(LLArg arg)
{
	not_null(arg);
	return arg.value;
}

/* ll_arg_optional_text takes a text or nothing (0). */
Datum
ll_arg_optional_text(LLArg arg)
{
	return arg.null ? (Datum) 0 : check_text(arg);
}

/* ll_arg_reason takes what an operator wants to be remembered. */
Datum
ll_arg_reason(LLArg arg)
{
	Datum		text;

	not_null(arg);
	text = PointerGetDatum(PG_DETOAST_DATUM_PACKED(arg.value));
	if (VARSIZE_ANY_EXHDR(DatumGetPointer(text)) < 1 ||
		VARSIZE_ANY_EXHDR(DatumGetPointer(text)) > LL_REASON_BYTES)
		ereport(ERROR,
				(errcode(LL_ERRCODE_OTHER_ARGUMENT),
				 errmsg("%s must have 1 to %d bytes", where(arg), LL_REASON_BYTES),
				 errdetail("It has %d.", (int) VARSIZE_ANY_EXHDR(DatumGetPointer(text))),
				 errhint("Say why, for whoever reads operator_actions later.")));
	return text;
}

/* ll_arg_units takes units, at least `least` (A2). */
int64
ll_arg_units(LLArg arg, int64 least)
{
	int64		units;

	not_null(arg);
	units = DatumGetInt64(arg.value);
	if (units < least)
		ereport(ERROR,
				(errcode(LL_ERRCODE_UNITS_ARGUMENT),
				 errmsg("%s must be at least %lld", where(arg), (long long) least),
				 errdetail("It is %lld.", (long long) units),
				 errhint("Units are whole numbers of type bigint, up to 9223372036854775807.")));
	return units;
}

static bool
hex_digit(char c, int *value)
{
	if (c >= '0' && c <= '9')
		*value = c - '0';
	else if (c >= 'a' && c <= 'f')
		*value = c - 'a' + 10;
	else if (c >= 'A' && c <= 'F')
		*value = c - 'A' + 10;
	else
		return false;
	return true;
}

/* the 32 bytes behind "sha256:" and 64 hexadecimal digits, or NULL */
static bytea *
parse_digest(const char *text, int length)
{
	int			prefix = strlen(LL_DIGEST_PREFIX);
	bytea	   *digest;

	if (length != prefix + 2 * LL_DIGEST_BYTES || memcmp(text, LL_DIGEST_PREFIX, prefix) != 0)
		return NULL;
	digest = palloc(VARHDRSZ + LL_DIGEST_BYTES);
	SET_VARSIZE(digest, VARHDRSZ + LL_DIGEST_BYTES);
	for (int i = 0; i < LL_DIGEST_BYTES; i++)
	{
		int			high;
		int			low;

		if (!hex_digit(text[prefix + 2 * i], &high) || !hex_digit(text[prefix + 2 * i + 1], &low))
			return NULL;
		VARDATA(digest)[i] = (char) (high << 4 | low);
	}
	return digest;
}

static Datum
check_digest(LLArg arg)
{
	Datum		value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(arg.value));
	int			length = VARSIZE_ANY_EXHDR(DatumGetPointer(value));
	bytea	   *parsed;

	if (length == LL_DIGEST_BYTES)
		return value;
	parsed = parse_digest(VARDATA_ANY(DatumGetPointer(value)), length);
	if (parsed == NULL)
		ereport(ERROR,
				(errcode(LL_ERRCODE_DIGEST_ARGUMENT),
				 errmsg("%s must be a SHA-256 digest", where(arg)),
				 errdetail("Neither 32 bytes nor \"sha256:\" and 64 hexadecimal digits: it has %d bytes.", length),
				 errhint("request_digest(jsonb) computes one.")));
	return PointerGetDatum(parsed);
}

/* ll_arg_digest takes a digest: 32 bytes, or sha256:<64 hex> (A5). */
Datum
ll_arg_digest(LLArg arg)
{
	not_null(arg);
	return check_digest(arg);
}

/* ll_arg_optional_digest takes a digest or nothing (0). */
Datum
ll_arg_optional_digest(LLArg arg)
{
	return arg.null ? (Datum) 0 : check_digest(arg);
}

/* ll_arg_optional_time takes an instant or nothing. */
TimestampTz
ll_arg_optional_time(LLArg arg)
{
	if (arg.null)
		return LL_NO_TIME;
	/* -infinity is a deadline that has passed, not a missing one */
	return Max(DatumGetTimestampTz(arg.value), LL_NO_TIME + 1);
}

/* ll_arg_flag takes a yes or no. */
bool
ll_arg_flag(LLArg arg)
{
	not_null(arg);
	return DatumGetBool(arg.value);
}

/* ll_arg_batch_limit takes the size of a bounded batch. */
int32
ll_arg_batch_limit(LLArg arg)
{
	int32		limit;

	not_null(arg);
	limit = DatumGetInt32(arg.value);
	if (limit < 1 || limit > LL_MAX_BATCH)
		ereport(ERROR,
				(errcode(LL_ERRCODE_OTHER_ARGUMENT),
				 errmsg("%s must be between 1 and %d", where(arg), LL_MAX_BATCH),
				 errdetail("It is %d.", limit),
				 errhint("Call again until nothing is left; each call is one bounded piece of work.")));
	return limit;
}

/* beyond any lease, and far from an overflow */
#define LL_LEASE_FAR_DAYS	10000
#define LL_LEASE_FAR		(LL_LEASE_FAR_DAYS * USECS_PER_DAY / 2)

/* ll_arg_lease takes how long a claim holds, in microseconds: 1 second to 1 day (D10). */
int64
ll_arg_lease(LLArg arg)
{
	const Interval *lease;
	int64		length;

	not_null(arg);
	lease = DatumGetIntervalP(arg.value);
	/* a month has no length of its own */
	length = lease->month != 0 || lease->time < -LL_LEASE_FAR || lease->time > LL_LEASE_FAR ? -1
		: Min(Max(lease->day, -LL_LEASE_FAR_DAYS), LL_LEASE_FAR_DAYS) * USECS_PER_DAY + lease->time;
	if (length < USECS_PER_SEC || length > USECS_PER_DAY)
		ereport(ERROR,
				(errcode(LL_ERRCODE_OTHER_ARGUMENT),
				 errmsg("%s must be between 1 second and 1 day", where(arg)),
				 errdetail("A lease is how long a crashed reconciler's items wait for another one."),
				 errhint("Leave it out for 5 minutes; take longer ones for slow providers.")));
	return length;
}

/* ll_arg_source takes who vouches for the figures (D6, D10). */
Datum
ll_arg_source(LLArg arg)
{
	static const char *const sources[] = {"executor", "reconciler", "operator"};
	Datum		source = arg.null ? CStringGetTextDatum(sources[0])
		: PointerGetDatum(PG_DETOAST_DATUM_PACKED(arg.value));

	for (int i = 0; i < (int) lengthof(sources); i++)
		if (ll_text_is(source, sources[i]))
			return source;
	ereport(ERROR,
			(errcode(LL_ERRCODE_OTHER_ARGUMENT),
			 errmsg("%s must be executor, reconciler or operator", arg.name),
			 errdetail("It says who vouches for the actual units."),
			 errhint("Leave it out for the executor itself.")));
}

/* ---- batches ------------------------------------------------------------ */

/* ll_array takes one array of a batch. */
LLArray
ll_array(FunctionCallInfo fcinfo, int number, const char *name, Oid type, bool mandatory)
{
	LLArg		arg = ll_arg(fcinfo, number, name);
	LLArray		array = {name, false, 0, NULL, NULL, arg.function};
	ArrayType  *value;
	int16		length;
	bool		by_value;
	char		align;

	if (mandatory)
		not_null(arg);
	if (arg.null)
		return array;
	value = DatumGetArrayTypeP(arg.value);
	if (ARR_NDIM(value) > 1)
		ereport(ERROR,
				(errcode(LL_ERRCODE_ARRAY_ARGUMENT),
				 errmsg("%s must be an array of one dimension", name),
				 errdetail("It has %d dimensions.", ARR_NDIM(value)),
				 errhint("Pass parallel arrays, one value per element.")));
	get_typlenbyvalalign(type, &length, &by_value, &align);
	deconstruct_array(value, type, length, by_value, align,
					  &array.values, &array.nulls, &array.count);
	array.given = true;
	return array;
}

/* ll_array_count checks that all given arrays are of one length; ends with NULL. */
int
ll_array_count(const LLArray *first, ...)
{
	va_list		others;
	const LLArray *other;

	if (first->count > LL_MAX_BATCH)
		ereport(ERROR,
				(errcode(LL_ERRCODE_ARRAY_ARGUMENT),
				 errmsg("%s must have at most %d elements", first->name, LL_MAX_BATCH),
				 errdetail("It has %d.", first->count),
				 errhint("Split the batch.")));
	va_start(others, first);
	while ((other = va_arg(others, const LLArray *)) != NULL)
		if (other->given && other->count != first->count)
		{
			va_end(others);
			ereport(ERROR,
					(errcode(LL_ERRCODE_ARRAY_ARGUMENT),
					 errmsg("%s must have as many elements as %s", other->name, first->name),
					 errdetail("They have %d and %d.", other->count, first->count),
					 errhint("Pass parallel arrays, one value per element.")));
		}
	va_end(others);
	return first->count;
}

/* ll_array_arg gives one element as an argument of its own. */
LLArg
ll_array_arg(const LLArray *array, int index)
{
	LLArg		arg = {array->name, (Datum) 0, true, index + 1, array->function};

	if (array->given && !array->nulls[index])
	{
		arg.null = false;
		arg.value = array->values[index];
	}
	return arg;
}
