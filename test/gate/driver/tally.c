/*
 * tally.c
 *	  What was done: the hashes of all interleavings, and counters.
 *
 * With --state both outlive the run.  Hashes are appended, and the counters
 * replaced, when a group has been judged: what a killed run was playing is
 * played again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"

#define PLACES	(INT64_C(1) << 23)	/* of the table of hashes */

Tally		tally;

/* The faults that the gate names, and what counts as one of them. */
enum
{
	TWO_GATEWAYS, STARTED_OR_EXPIRED, ABOVE_RESERVED, LOST_REPAYMENT, PARTITION, SHARD_TWICE, OLD_SHARD_AGAIN,
	RECOVERED_TWICE, LOST_REFUND, CROSS_GENERATION, NAMED
};
const char *const named_faults[] = {
	[TWO_GATEWAYS] = "two_gateways_reserve_at_once",
	[STARTED_OR_EXPIRED] = "started_against_expired",
	[ABOVE_RESERVED] = "actual_above_reserved",
	[LOST_REPAYMENT] = "lost_repayment_ack",
	[PARTITION] = "ledger_partition",
	[SHARD_TWICE] = "two_gateways_reuse_a_shard",
	[OLD_SHARD_AGAIN] = "old_shard_after_restart",
	[RECOVERED_TWICE] = "unused_capacity_recovered_twice",
	[LOST_REFUND] = "lost_refund_ack",
	[CROSS_GENERATION] = "cross_generation",
};
const int	named_fault_count = NAMED;

static uint64_t *places;
static int64_t used;
static char folder[300];
static FILE *hashes;

static bool
insert(uint64_t hash)
{
	uint64_t	place = hash & (PLACES - 1);

	while (places[place] != 0)
	{
		if (places[place] == hash)
			return false;
		place = (place + 1) & (PLACES - 1);
	}
	if (++used > PLACES / 4 * 3)
		fail("the table of hashes is full");
	places[place] = hash;
	return true;
}

/* One name for each counter, in the state file and at the end. */
static void
each_counter(void (*visit) (const char *name, int64_t *value, void *arg), void *arg)
{
	char		name[96];

	visit("interleavings_real", &tally.interleavings, arg);
	visit("repeats", &tally.repeats, arg);
	visit("calls", &tally.calls, arg);
	visit("crash_recoveries", &tally.crash_recoveries, arg);
	visit("flush_failures", &tally.flush_failures, arg);
	visit("discrepancies", &tally.discrepancies, arg);
	visit("overspends", &tally.overspends, arg);
	visit("second_reservations", &tally.second_reservations, arg);
	visit("duplicate_consumptions", &tally.duplicate_consumptions, arg);
	visit("unrecorded_debts", &tally.unrecorded_debts, arg);
	for (int i = 0; i < scenario_count; i++)
	{
		snprintf(name, sizeof(name), "scenario_%s", scenarios[i].name);
		visit(name, &tally.scenario[i], arg);
	}
	for (int i = 1; i < FAULTS; i++)
	{
		snprintf(name, sizeof(name), "fault_%s", fault_names[i]);
		visit(name, &tally.fault[i], arg);
	}
	for (int i = 0; i < NAMED; i++)
	{
		snprintf(name, sizeof(name), "gate_%s", named_faults[i]);
		visit(name, &tally.named[i], arg);
	}
}

static void
underline(char *name)
{
	for (; *name != '\0'; name++)
		if (*name == ' ' || *name == '-')
			*name = '_';
}

static void
write_counter(const char *name, int64_t *value, void *arg)
{
	char		line[96];

	snprintf(line, sizeof(line), "%s", name);
	underline(line);
	fprintf(arg, "%s=%" PRId64 "\n", line, *value);
}

typedef struct Read
{
	char		name[96];
	int64_t		value;
} Read;

static void
read_counter(const char *name, int64_t *value, void *arg)
{
	Read	   *read = arg;
	char		line[96];

	snprintf(line, sizeof(line), "%s", name);
	underline(line);
	if (strcmp(line, read->name) == 0)
		*value = read->value;
}

/* tally_open takes up what an earlier run has left. */
void
tally_open(const char *state)
{
	char		path[400];
	char		line[200];
	FILE	   *counters;
	uint64_t	hash;

	places = calloc(PLACES, sizeof(*places));
	if (places == NULL)
		fail("no memory for the hashes");
	if (state == NULL)
		return;
	snprintf(folder, sizeof(folder), "%s", state);
	if (mkdir(folder, 0755) != 0 && errno != EEXIST)
		fail("%s can't be made: %s", folder, strerror(errno));
	snprintf(path, sizeof(path), "%s/counters", folder);
	counters = fopen(path, "r");
	while (counters != NULL && fgets(line, sizeof(line), counters) != NULL)
	{
		Read		read;

		if (sscanf(line, "%95[^=]=%" SCNd64, read.name, &read.value) == 2)
			each_counter(read_counter, &read);
	}
	if (counters != NULL)
		fclose(counters);
	snprintf(path, sizeof(path), "%s/hashes", folder);
	hashes = fopen(path, "a+b");
	if (hashes == NULL)
		fail("%s can't be written: %s", path, strerror(errno));
	tally.interleavings = 0;	/* the hashes say */
	rewind(hashes);
	while (fread(&hash, sizeof(hash), 1, hashes) == 1)
		if (hash != 0 && insert(hash))
			tally.interleavings++;
	if (fseek(hashes, 0, SEEK_END) == 0 && ftell(hashes) % (long) sizeof(hash) != 0 &&
		ftruncate(fileno(hashes), ftell(hashes) / (long) sizeof(hash) * (long) sizeof(hash)) != 0)
		fail("%s ends in the middle of a hash", path);
}

/* tally_claim: nobody has played this one yet. */
bool
tally_claim(uint64_t hash)
{
	if (insert(hash))
		return true;
	tally.repeats++;
	return false;
}

/* tally_name_faults counts what an interleaving had of the faults that the gate names. */
void
tally_name_faults(const Lane *lane, Group *group)
{
	bool		seen[NAMED] = {false};
	int			first_reserve = 0;
	int			renews = 0;
	int			accepts = 0;
	int			reconciled[ITEMS + 1] = {0};
	int			publishes = 0;
	bool		started = false;

	for (int i = 1; i <= lane->calls; i++)
	{
		const Call *call = &lane->call[i];
		const Step *step = &call->step;
		bool		lost = call->outcome == OUTCOME_LOST;

		switch (step->call)
		{
			case CALL_RESERVE:
			case CALL_RESERVE_START:
			case CALL_RESERVE_DEADLINE:
				if (first_reserve != 0 && first_reserve != step->actor)
					seen[TWO_GATEWAYS] = true;
				first_reserve = step->actor;
				seen[CROSS_GENERATION] |= publishes > 1;
				break;
			case CALL_START:
				started = true;
				break;
			case CALL_CLAIM:
			case CALL_FINISH:
			case CALL_EXPIRE:
				seen[STARTED_OR_EXPIRED] |= started;
				break;
			case CALL_SETTLE:
				seen[ABOVE_RESERVED] |= strcmp(call->state, "SETTLED_WITH_DEBT") == 0;
				seen[LOST_REFUND] |= lost;
				seen[CROSS_GENERATION] |= publishes > 1;
				break;
			case CALL_RELEASE:
				seen[LOST_REFUND] |= lost;
				break;
			case CALL_REPAY:
			case CALL_GRANT:
				seen[LOST_REPAYMENT] |= lost;
				break;
			case CALL_PUBLISH:
				publishes += call->outcome == OUTCOME_DONE;
				break;
			case CALL_ACCEPT2:
				seen[SHARD_TWICE] |= lane->shard_envelope[step->item] != NULL;
				break;
			case CALL_RENEW:
				renews += !call->question;
				break;
			case CALL_ACCEPT:
				seen[OLD_SHARD_AGAIN] |= renews > 0 && accepts > 0;
				accepts++;
				break;
			case CALL_SHARD_RESERVE:
				seen[OLD_SHARD_AGAIN] |= renews > 0 && accepts > 0;
				break;
			case CALL_RECONCILE:
				seen[RECOVERED_TWICE] |= call->accepted && reconciled[step->item]++ > 0;
				break;
			default:
				break;
		}
		seen[PARTITION] |= step->fault == FAULT_PARTITION_REPLY;
	}
	for (int i = 0; i < lane->plan.steps; i++)
		seen[PARTITION] |= lane->plan.step[i].fault == FAULT_PARTITION_REQUEST;
	for (int i = 0; i < NAMED; i++)
		group->named[i] += seen[i];
}

/* tally_group counts a group that was judged. */
void
tally_group(const Group *group)
{
	tally.interleavings += group->count;
	for (int i = 0; i < 32; i++)
	{
		tally.scenario[i] += group->scenario[i];
		tally.fault[i] += group->fault[i];
		tally.named[i] += group->named[i];
	}
	if (hashes != NULL)
	{
		fwrite(group->hash, sizeof(*group->hash), group->count, hashes);
		if (fflush(hashes) != 0)
			fail("the hashes can't be written: %s", strerror(errno));
		tally_save();
	}
}

/* tally_save replaces the counters. */
void
tally_save(void)
{
	char		path[400];
	char		next[400];
	FILE	   *counters;

	if (folder[0] == '\0')
		return;
	snprintf(path, sizeof(path), "%s/counters", folder);
	snprintf(next, sizeof(next), "%s/counters.next", folder);
	counters = fopen(next, "w");
	if (counters == NULL)
		fail("%s can't be written: %s", next, strerror(errno));
	each_counter(write_counter, counters);
	if (fclose(counters) != 0 || rename(next, path) != 0)
		fail("%s can't be written: %s", path, strerror(errno));
}

/* tally_print prints name=value. */
void
tally_print(void)
{
	each_counter(write_counter, stdout);
}
