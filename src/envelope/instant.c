/*
 * instant.c
 *	  Instants as RFC 3339 text in UTC with six decimals, years 1 to 9999 (A4).
 *
 * One instant has one text.  A second 60 does not exist here: the ledger's
 * clock does not know it either.
 */
#include "json.h"

#include <string.h>

#define SECOND	INT64_C(1000000)
#define MINUTE	(60 * SECOND)
#define HOUR	(60 * MINUTE)
#define DAY		(24 * HOUR)

/* Days from 0000-03-01, where the reckoning below starts, to 2000-01-01. */
#define ORIGIN	INT64_C(730425)

#define YEARS_400	INT64_C(146097)	/* their days */

/* "YYYY-MM-DDTHH:MM:SS.ffffffZ" in quotes: 9 stands for a digit */
static const char form[] = "\"9999-99-99T99:99:99.999999Z\"";

/*
 * days_before counts the days from the origin to a date.  A year begins in
 * March here, so that the leap day is its last; 153 days are five months.
 */
static int64_t
days_before(int64_t year, int64_t month, int64_t day)
{
	int64_t		y = month <= 2 ? year - 1 : year;
	int64_t		m = month <= 2 ? month + 9 : month - 3;

	return y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - ORIGIN;
}

/* date_of is the reverse of days_before; the day is counted from 0000-03-01. */
static void
date_of(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
	int64_t		d = days % YEARS_400;
	int64_t		y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
	int64_t		m;

	d -= y * 365 + y / 4 - y / 100;
	m = (5 * d + 2) / 153;
	*day = d - (153 * m + 2) / 5 + 1;
	*month = m < 10 ? m + 3 : m - 9;
	*year = days / YEARS_400 * 400 + y + (*month <= 2 ? 1 : 0);
}

/* number reads digits of the text, which are known to be digits. */
static int64_t
number(const char *text, int from, int digits)
{
	int64_t		value = 0;

	for (int i = from; i < from + digits; i++)
		value = value * 10 + text[i] - '0';
	return value;
}

/* matches tells whether the text has the form, digit for digit. */
static bool
matches(const char *text)
{
	for (size_t i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == '9' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return false;
	return true;
}

/* exists tells whether the calendar has such a date, and the clock such a time. */
static bool
exists(const char *text)
{
	static const int64_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int64_t		year = number(text, 1, 4);
	int64_t		month = number(text, 6, 2);
	int64_t		day = number(text, 9, 2);
	bool		leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return year >= 1 && month >= 1 && month <= 12 && day >= 1 &&
		day <= lengths[month - 1] + (leap && month == 2 ? 1 : 0) &&
		number(text, 12, 2) < 24 && number(text, 15, 2) < 60 && number(text, 18, 2) < 60;
}

/* ll_json_read_instant reads a text of the form that names an instant. */
bool
ll_json_read_instant(LLReader *reader, LLTime *instant)
{
	const char *text = reader->at;

	if ((size_t) (reader->end - text) < sizeof(form) - 1 || !matches(text) || !exists(text))
		return ll_json_fault(reader, LL_ENVELOPE_INSTANT);
	*instant = days_before(number(text, 1, 4), number(text, 6, 2), number(text, 9, 2)) * DAY +
		number(text, 12, 2) * HOUR + number(text, 15, 2) * MINUTE +
		number(text, 18, 2) * SECOND + number(text, 21, 6);
	reader->at += sizeof(form) - 1;
	return true;
}

static void
put(char *text, int from, int digits, int64_t value)
{
	for (int i = from + digits - 1; i >= from; i--, value /= 10)
		text[i] = (char) ('0' + value % 10);
}

/* ll_json_write_instant writes such a text; one that does not open outside the years. */
void
ll_json_write_instant(LLWriter *writer, LLTime instant)
{
	char		text[sizeof(form)];
	int64_t		days = instant / DAY;
	int64_t		rest = instant % DAY;
	int64_t		year = 0;
	int64_t		month = 0;
	int64_t		day = 0;

	if (rest < 0)
	{
		days--;
		rest += DAY;
	}
	if (days + ORIGIN >= 0)
		date_of(days + ORIGIN, &year, &month, &day);
	if (year < 1 || year > 9999)
		year = 0;
	memcpy(text, form, sizeof(form));
	put(text, 1, 4, year);
	put(text, 6, 2, month);
	put(text, 9, 2, day);
	put(text, 12, 2, rest / HOUR);
	put(text, 15, 2, rest % HOUR / MINUTE);
	put(text, 18, 2, rest % MINUTE / SECOND);
	put(text, 21, 6, rest % SECOND);
	ll_json_write(writer, text);
}
