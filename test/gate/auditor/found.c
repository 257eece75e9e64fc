/*
 * found.c
 *	  What was found, and the counters that it feeds.
 */
#include "auditor.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct Entry
{
	const char *name;
	Counter		counter;
	const char *rule;
	const char *says;
} Entry;

static const Entry entries[CHECK_COUNT] = {
#define ENTRY(name, counter, rule, says)	{#name, counter, rule, says},
	CHECKS(ENTRY)
#undef ENTRY
};

static const char *const counter_name[COUNTERS] = {
	"discrepancies", "overspends", "second_reservations", "duplicate_consumptions",
	"unrecorded_debts"
};

static int	count[COUNTERS];
static int	total;

/* Everything that is found is a discrepancy; some of it feeds a counter besides. */
void
found(Check check, const Interleaving *in, const char *format, ...)
{
	va_list		args;

	printf("found %s %s ", entries[check].name, in != NULL ? in->number : "-");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	count[DISCREPANCIES]++;
	if (entries[check].counter != DISCREPANCIES)
		count[entries[check].counter]++;
	total++;
}

void
list_checks(void)
{
	for (int i = 0; i < CHECK_COUNT; i++)
		printf("%-19s %-3s %-23s %s\n", entries[i].name, entries[i].rule,
			   counter_name[entries[i].counter], entries[i].says);
}

void
counts_reset(void)
{
	for (int i = 0; i < COUNTERS; i++)
		count[i] = 0;
}

const int *
counts(void)
{
	return count;
}

int
total_found(void)
{
	return total;
}
