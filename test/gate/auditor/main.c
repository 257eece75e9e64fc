/*
 * main.c
 *	  auditor: see usage.
 */
#include "auditor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
"auditor: judges what the gate's driver wrote down.\n"
"\n"
"  auditor LEDGER [GATEWAY]   connection strings; names of histories on stdin\n"
"  auditor --offline FILE...  without the tables\n"
"  auditor --list             the checks: name, rule, counter, what must hold\n"
"\n"
"For each history: a line `found CHECK INTERLEAVING text` for whatever does not hold,\n"
"then `audited FILE interleavings=N discrepancies=N overspends=N\n"
"second_reservations=N duplicate_consumptions=N unrecorded_debts=N ordered=N`.\n"
"`ordered` is for how many interleavings an order of the transactions was looked for.\n"
"The exit status is 0 if nothing was found, 1 if something was.\n";

static void
audit(const char *name)
{
	History		h;
	Tables		t = {0};
	int			ordered = 0;
	const int  *n;

	arena_reset();
	counts_reset();
	if (!history_read(name, &h))
	{
		fprintf(stderr, "auditor: %s can't be read\n", name);
		exit(2);
	}
	if (h.malformed != 0)
		found(CHECK_history, NULL, "line %d: %s", h.malformed, h.why);
	tables_read(&h, &t);
	if (t.read)
	{
		judge_stored(&h, &t);
		judge_shards(&h, &t);
	}
	for (int i = 0; i < h.interleavings; i++)
	{
		judge_told(&h, &h.interleaving[i], &t);
		if (judge_order(&h, &h.interleaving[i], &t))
			ordered++;
	}
	n = counts();
	printf("audited %s interleavings=%d discrepancies=%d overspends=%d second_reservations=%d "
		   "duplicate_consumptions=%d unrecorded_debts=%d ordered=%d\n", name, h.interleavings,
		   n[DISCREPANCIES], n[OVERSPENDS], n[SECOND_RESERVATIONS], n[DUPLICATE_CONSUMPTIONS],
		   n[UNRECORDED_DEBTS], ordered);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	static char name[4096];

	if (argc < 2 || strcmp(argv[1], "--help") == 0)
	{
		fputs(usage, argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : 0;
	}
	if (strcmp(argv[1], "--list") == 0)
	{
		list_checks();
		return 0;
	}
	if (strcmp(argv[1], "--offline") == 0)
	{
		for (int i = 2; i < argc; i++)
			audit(argv[i]);
		return total_found() > 0;
	}
	if (argv[1][0] == '-' || argc > 3)
	{
		fputs(usage, stderr);
		return 2;
	}
	tables_connect(argv[1], argc > 2 ? argv[2] : NULL);
	while (fgets(name, sizeof(name), stdin) != NULL)
	{
		name[strcspn(name, "\n")] = '\0';
		if (name[0] != '\0')
			audit(name);
	}
	return total_found() > 0;
}
