/*
 * canonical.c
 *	  The canonical form of a JSON value, after RFC 8785 (A5).
 *
 * Whoever writes the same value gets the same bytes: no white space, members
 * in the order of their names' UTF-16 code units, strings with the fewest
 * escapes, numbers as ECMAScript writes them.  A number that is no double is
 * refused (LL108), because another reader would take it for its neighbour.
 *
 * Reads its argument and nothing else; takes no lock.
 */
#include "postgres.h"

#include <math.h>

#include "api/canonical.h"
#include "common/shortest_dec.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "errors.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/numeric.h"

/* The significant digits of a number above zero: 0.DIGITS x 10^point. */
typedef struct Decimal
{
	char		digits[DOUBLE_SHORTEST_DECIMAL_LEN];
	int			count;			/* neither the first nor the last is '0' */
	int			point;
} Decimal;

typedef struct Member
{
	char	   *name;			/* in UTF-8 */
	JsonbValue	value;
} Member;

static void write_value(StringInfo out, const JsonbValue *value);

/* ---- numbers -------------------------------------------------------------- */

/* read_decimal takes the digits out of an unsigned text like 12.5 or 1e-07. */
static Decimal
read_decimal(const char *text)
{
	Decimal		decimal = {.count = 0, .point = 0};
	bool		fraction = false;

	for (; *text != '\0' && *text != 'e'; text++)
	{
		if (*text == '.')
			fraction = true;
		else if (decimal.count == 0 && *text == '0')
			decimal.point -= fraction;
		else
		{
			decimal.digits[decimal.count++] = *text;
			decimal.point += !fraction;
		}
	}
	if (*text == 'e')
		decimal.point += atoi(text + 1);
	while (decimal.count > 0 && decimal.digits[decimal.count - 1] == '0')
		decimal.count--;
	return decimal;
}

/*
 * shortest_decimal finds the fewest digits that read back as `number`, and of
 * those the nearest: ECMAScript's Number::toString.
 *
 * PostgreSQL's own shortest output does without a decimal that lies half way
 * between two doubles, such as 1e23, because not every reader rounds it to the
 * even one.  ECMAScript takes it.  Only such a decimal can be shorter, and it is
 * then the one that rounding to that length yields.
 */
static Decimal
shortest_decimal(double number)
{
	char		text[DOUBLE_SHORTEST_DECIMAL_LEN + 7];
	Decimal		decimal;

	double_to_shortest_decimal_buf(number, text);
	decimal = read_decimal(text);
	while (decimal.count > 1)
	{
		snprintf(text, sizeof(text), "%.*e", decimal.count - 2, number);
		if (strtod(text, NULL) != number)
			break;
		decimal = read_decimal(text);
	}
	return decimal;
}

static void
write_zeros(StringInfo out, int count)
{
	while (count-- > 0)
		appendStringInfoChar(out, '0');
}

/* write_decimal lays the digits out as ECMAScript does. */
static void
write_decimal(StringInfo out, const Decimal *decimal)
{
	const char *digits = decimal->digits;
	int			count = decimal->count;
	int			point = decimal->point;

	if (point < -5 || point > 21)
	{
		appendStringInfoChar(out, digits[0]);
		if (count > 1)
			appendStringInfo(out, ".%.*s", count - 1, digits + 1);
		appendStringInfo(out, "e%+d", point - 1);
	}
	else if (point <= 0)
	{
		appendStringInfoString(out, "0.");
		write_zeros(out, -point);
		appendBinaryStringInfo(out, digits, count);
	}
	else if (point < count)
		appendStringInfo(out, "%.*s.%.*s", point, digits, count - point, digits + point);
	else
	{
		appendBinaryStringInfo(out, digits, count);
		write_zeros(out, point - count);
	}
}

/* refuse_number raises LL108; `nearest` is the double's text, NULL if there is none. */
static void
refuse_number(Numeric number, const char *nearest)
{
	char	   *text = numeric_normalize(number);
	bool		cut = strlen(text) > 40;

	ereport(ERROR,
			(errcode(LL_ERRCODE_NOT_CANONICAL),
			 errmsg("request has a number without a canonical form"),
			 nearest != NULL
			 ? errdetail("%.40s%s is no double; the nearest one is %s.", text, cut ? "..." : "", nearest)
			 : errdetail("%.40s%s is beyond the range of a double.", text, cut ? "..." : ""),
			 errhint("Send the number as a string.")));
}

static void
write_number(StringInfo out, Numeric number)
{
	double		nearest = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
															 NumericGetDatum(number)));
	int			start = out->len;
	Datum		read_back;

	if (isinf(nearest))
		refuse_number(number, NULL);

	if (nearest == 0)
		appendStringInfoChar(out, '0');
	else
	{
		Decimal		decimal = shortest_decimal(fabs(nearest));

		if (nearest < 0)
			appendStringInfoChar(out, '-');
		write_decimal(out, &decimal);
	}

	read_back = DirectFunctionCall3(numeric_in, CStringGetDatum(out->data + start),
									ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	if (!DatumGetBool(DirectFunctionCall2(numeric_eq, read_back, NumericGetDatum(number))))
		refuse_number(number, out->data + start);
}

/* ---- strings, arrays, objects ---------------------------------------------- */

/* utf8_of returns a string of jsonb, zero-terminated: it holds no zero itself. */
static char *
utf8_of(const JsonbValue *string)
{
	char	   *text = pnstrdup(string->val.string.val, string->val.string.len);

	return pg_server_to_any(text, string->val.string.len, PG_UTF8);
}

static void
write_array(StringInfo out, JsonbContainer *array)
{
	JsonbIterator *iterator = JsonbIteratorInit(array);
	JsonbIteratorToken token;
	JsonbValue	value;
	const char *separator = "";

	appendStringInfoChar(out, '[');
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token != WJB_ELEM)
			continue;
		appendStringInfoString(out, separator);
		write_value(out, &value);
		separator = ",";
	}
	appendStringInfoChar(out, ']');
}

/*
 * utf16_rank orders the bytes of UTF-8 as UTF-16 orders what they lead to: the
 * surrogates of U+10000 and above (lead bytes F0 to F4) come before U+E000 to
 * U+FFFF (EE and EF).
 */
static int
utf16_rank(unsigned char byte)
{
	return byte == 0xEE || byte == 0xEF ? byte + 0x10 : byte;
}

static int
compare_names(const void *left, const void *right)
{
	const unsigned char *a = (const unsigned char *) ((const Member *) left)->name;
	const unsigned char *b = (const unsigned char *) ((const Member *) right)->name;

	while (*a != '\0' && *a == *b)
		a++, b++;
	return utf16_rank(*a) - utf16_rank(*b);
}

static void
write_object(StringInfo out, JsonbContainer *object)
{
	JsonbIterator *iterator = JsonbIteratorInit(object);
	Member	   *members = palloc(sizeof(Member) * (JsonContainerSize(object) + 1));
	JsonbIteratorToken token;
	JsonbValue	value;
	int			count = 0;

	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			members[count].name = utf8_of(&value);
		else if (token == WJB_VALUE)
			members[count++].value = value;
	}
	qsort(members, count, sizeof(Member), compare_names);

	appendStringInfoChar(out, '{');
	for (int i = 0; i < count; i++)
	{
		if (i > 0)
			appendStringInfoChar(out, ',');
		escape_json(out, members[i].name);
		appendStringInfoChar(out, ':');
		write_value(out, &members[i].value);
	}
	appendStringInfoChar(out, '}');
}

static void
write_value(StringInfo out, const JsonbValue *value)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();

	switch (value->type)
	{
		case jbvNull:
			appendStringInfoString(out, "null");
			break;
		case jbvBool:
			appendStringInfoString(out, value->val.boolean ? "true" : "false");
			break;
		case jbvNumeric:
			write_number(out, value->val.numeric);
			break;
		case jbvString:
			escape_json(out, utf8_of(value));
			break;
		case jbvBinary:
			if (JsonContainerIsObject(value->val.binary.data))
				write_object(out, value->val.binary.data);
			else
				write_array(out, value->val.binary.data);
			break;
		case jbvArray:
		case jbvObject:
		case jbvDatetime:
			elog(ERROR, "unexpected jsonb value of type %d", (int) value->type);
	}
}

void
ll_canonical_write(StringInfo out, Jsonb *json)
{
	JsonbValue	value;

	if (JB_ROOT_IS_SCALAR(json))
		(void) JsonbExtractScalar(&json->root, &value);
	else
	{
		value.type = jbvBinary;
		value.val.binary.data = &json->root;
		value.val.binary.len = VARSIZE(json) - VARHDRSZ;
	}
	write_value(out, &value);
}
