/*
 * clock.c
 *	  The ledger's clock: the server's, or the one that a test has set.
 *
 * Read after the lock was obtained, never the transaction's start, never the
 * client's (A3).  limitledger.clock_override is for tests and for superusers.
 */
#include "postgres.h"

#include "clock.h"
#include "utils/datetime.h"
#include "utils/guc.h"

static char *clock_override = NULL;
static TimestampTz override_at = 0;

/* has_explicit_zone: an instant must not depend on the session's TimeZone. */
static bool
has_explicit_zone(const char *text)
{
	size_t		length = strlen(text);
	const char *sign;

	if (length > 1 && (text[length - 1] == 'Z' || text[length - 1] == 'z'))
		return true;
	sign = strrchr(text, '+');
	if (sign == NULL)
		sign = strrchr(text, '-');
	return sign != NULL && strchr(text, ':') != NULL && sign > strchr(text, ':');
}

static bool
check_clock_override(char **newval, void **extra, GucSource source)
{
	char		buffer[MAXDATELEN * 2];
	char	   *field[MAXDATEFIELDS];
	int			type[MAXDATEFIELDS];
	int			fields;
	int			dtype;
	int			tz;
	struct pg_tm tm;
	fsec_t		fsec;
	TimestampTz instant = 0;

	if (*newval != NULL && **newval != '\0')
	{
		if (!has_explicit_zone(*newval) ||
			ParseDateTime(*newval, buffer, sizeof(buffer), field, type,
						  MAXDATEFIELDS, &fields) != 0 ||
			DecodeDateTime(field, type, fields, &dtype, &tm, &fsec, &tz) != 0 ||
			dtype != DTK_DATE || tm2timestamp(&tm, fsec, &tz, &instant) != 0)
		{
			GUC_check_errdetail("It must be empty or an instant with an explicit UTC offset.");
			GUC_check_errhint("For example 2026-07-19 14:00:00+00.");
			return false;
		}
	}
	*extra = malloc(sizeof(TimestampTz));
	if (*extra == NULL)
		return false;
	*(TimestampTz *) *extra = instant;
	return true;
}

static void
assign_clock_override(const char *newval, void *extra)
{
	override_at = extra != NULL ? *(TimestampTz *) extra : 0;
}

/* ll_clock_init defines the setting. */
void
ll_clock_init(void)
{
	DefineCustomStringVariable("limitledger.clock_override",
							   "Replaces the ledger's clock in this session, for tests.",
							   "Empty: the server's clock. Else an instant with a UTC offset, at which the clock stands still.",
							   &clock_override, "", PGC_SUSET, GUC_NOT_IN_SAMPLE,
							   check_clock_override, assign_clock_override, NULL);
}

/* ll_clock_now reads the clock. */
TimestampTz
ll_clock_now(void)
{
	if (clock_override != NULL && clock_override[0] != '\0')
		return override_at;
	return GetCurrentTimestamp();
}
