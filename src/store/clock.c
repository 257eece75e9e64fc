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

/*
 * plain_form copies an instant with an explicit UTC offset in digits and
 * punctuation alone: ISO 8601's T and Z become a space and +00.  Letters would
 * be looked up in tables of abbreviations, which a worker does not have while
 * it takes over its leader's settings, and no instant may depend on a
 * session's TimeZone.
 */
static bool
plain_form(const char *text, char *plain, size_t size)
{
	size_t		length = strlen(text);
	const char *time;

	if (length + 3 > size)
		return false;
	strlcpy(plain, text, size);
	if (length > 0 && (plain[length - 1] == 'Z' || plain[length - 1] == 'z'))
		strlcpy(plain + length - 1, "+00", size - length + 1);
	if (length > 10 && (plain[10] == 'T' || plain[10] == 't'))
		plain[10] = ' ';
	if (strspn(plain, "0123456789-+:. ") != strlen(plain) ||
		strspn(plain, "0123456789") < 4 || plain[4] != '-')	/* the year first */
		return false;
	time = strchr(plain, ':');
	return time != NULL && strpbrk(time, "+-") != NULL;
}

static bool
check_clock_override(char **newval, void **extra, GucSource source)
{
	char		plain[MAXDATELEN];
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
		if (!plain_form(*newval, plain, sizeof(plain)) ||
			ParseDateTime(plain, buffer, sizeof(buffer), field, type,
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
