/*
 * lane.c
 *	  The databases of a lane, its groups and its auditor.
 *
 * A lane has a ledger and two gateways, each a database of its own, so that a
 * sweep of one lane never meets rows of another.  After some groups they are
 * made anew, from a template: tables that grow would slow the run.
 *
 * A group is a file of histories.  The auditor reads its subjects' rows while
 * the lane plays the next group, and answers by a line for each file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

struct Auditor
{
	pid_t		pid;
	FILE	   *to;
	int			from;
	Text		read;
	Text		findings;		/* of the file that it is at */
};

Lane	   *lanes;
int			lane_count;

static char key[SERVERS][2][256];	/* public lines: of the ledgers, of the gateways */

/* ---- databases ---------------------------------------------------------------- */

static PGconn *
connection(const Server *server, const char *database)
{
	PGconn	   *conn = connect_to(server, database);

	if (conn == NULL)
		fail("no connection to %s", database);
	return conn;
}

static void
make_templates(Server *server)
{
	PGconn	   *conn = connection(server, "postgres");
	char		clock[64];

	sql_do(conn, "CREATE DATABASE gate_gateway");
	sql_do(conn, "CREATE DATABASE gate_ledger");
	PQfinish(conn);
	conn = connection(server, "gate_gateway");
	sql_do(conn, "CREATE EXTENSION limitledger");
	PQfinish(conn);
	conn = connection(server, "gate_ledger");
	sql_do(conn, "CREATE EXTENSION limitledger");
	for (int i = 0; i < policy_count; i++)
	{
		Text		document = {0};
		char	   *generation;

		policy_document(&document, &policies[i], policies[i].name);
		snprintf(clock, sizeof(clock), "%s", policies[i].real ? "2020-01-01 00:00:00+00" : "2099-01-01 00:00:00+00");
		sql_do(conn, "SET limitledger.clock_override = '%s'", clock);
		generation = sql_value(conn, "SELECT generation FROM limitledger.publish_policy('%s')", document.data);
		if (atoi(generation) != i + 1)
			fail("policy %s got generation %s", policies[i].name, generation);
		free(generation);
		free(document.data);
	}
	PQfinish(conn);
	server_make_key(server, "ledger", key[server - servers][0], sizeof(key[0][0]));
	server_make_key(server, "gateway", key[server - servers][1], sizeof(key[0][0]));
}

/* Each side knows the other, and each database that it is no copy. */
static void
introduce(Lane *lane)
{
	static const char *const gateways[DATABASES] = {NULL, "gw", "gw2"};
	PGconn	   *ledger = connection(lane->server, lane->database[LEDGER]);

	sql_do(ledger, "SELECT limitledger.acknowledge_recovery('the gate')");
	for (int i = GATEWAY; i < DATABASES; i++)
	{
		PGconn	   *conn = connection(lane->server, lane->database[i]);
		char	   *boot;

		sql_do(conn, "SELECT limitledger.acknowledge_recovery('the gate')");
		boot = sql_value(conn, "SELECT boot_epoch FROM limitledger.open_gateway('%s')", gateways[i]);
		sql_do(conn, "SELECT limitledger.trust_key('%s')", key[lane->server - servers][0]);
		if (i == GATEWAY)
		{
			sql_do(ledger, "SELECT limitledger.register_gateway('%s', '%s')", gateways[i], key[lane->server - servers][1]);
			sql_do(ledger, "SELECT limitledger.announce_boot('%s', '%s')", gateways[i], boot);
			snprintf(lane->boot, sizeof(lane->boot), "%s", boot);
		}
		free(boot);
		PQfinish(conn);
	}
	PQfinish(ledger);
}

/* lane_open makes the databases of a lane, anew if they are there. */
void
lane_open(Lane *lane)
{
	PGconn	   *conn;

	for (int actor = 0; actor <= ACTORS; actor++)
		for (int i = 0; i < DATABASES; i++)
			session_close(&lane->session[actor][i]);
	lane_stop_auditor(lane);
	conn = connection(lane->server, "postgres");
	lane->made++;
	for (int i = 0; i < DATABASES; i++)
	{
		if (lane->database[i][0] != '\0')
			sql_do(conn, "DROP DATABASE %s WITH (FORCE)", lane->database[i]);
		snprintf(lane->database[i], sizeof(lane->database[i]), "%s_%d_%d", database_names[i], lane->number, lane->made);
		sql_do(conn, "CREATE DATABASE %s TEMPLATE %s", lane->database[i], i == LEDGER ? "gate_ledger" : "gate_gateway");
		sql_do(conn, "ALTER DATABASE %s SET limitledger.witness_file = '%s/%s.witness'",
			   lane->database[i], lane->server->folder, lane->database[i]);
		sql_do(conn, "ALTER DATABASE %s SET limitledger.signing_key_file = '%s/%s.key'",
			   lane->database[i], lane->server->folder, i == LEDGER ? "ledger" : "gateway");
	}
	PQfinish(conn);
	introduce(lane);
	lane_start_auditor(lane);
}

void
lanes_make(void)
{
	lane_count = options.lanes + options.real_lanes;
	lanes = calloc(lane_count, sizeof(*lanes));
	for (int i = 0; i < SERVERS; i++)
		if (servers[i].folder[0] != '\0')
			make_templates(&servers[i]);
	for (int n = 0; n < lane_count; n++)
	{
		Lane	   *lane = &lanes[n];

		lane->number = n + 1;
		lane->real = n >= options.lanes;
		lane->server = &servers[lane->real ? REAL : VIRTUAL];
		/* A run that goes on must not draw again what it has drawn. */
		lane->random.state = options.seed * 1000003 + n + (uint64_t) tally.interleavings * 7919;
		for (int actor = 0; actor <= ACTORS; actor++)
			for (int i = 0; i < DATABASES; i++)
			{
				lane->session[actor][i].lane = lane;
				lane->session[actor][i].actor = actor;
				lane->session[actor][i].database = i;
			}
		lane_open(lane);
	}
}

/* ---- groups --------------------------------------------------------------------- */

static void
begin_group(Lane *lane)
{
	Text		head = {0};
	Group	   *group = calloc(1, sizeof(*group));

	group->hash = calloc(options.group, sizeof(*group->hash));
	snprintf(group->path, sizeof(group->path), "%s/lane-%d-group-%d.history", options.histories, lane->number, ++lane->groups);
	lane->group = group;
	lane->file = fopen(group->path, "w");
	if (lane->file == NULL)
		fail("%s can't be written: %s", group->path, strerror(errno));
	text_add(&head, "V\t1\t%d\t%" PRIu64 "\n", lane->number, options.seed);
	play_policies(&head);
	fwrite(head.data, 1, head.length, lane->file);
	free(head.data);
}

/* lane_end_interleaving adds one that has come to rest to the group. */
void
lane_end_interleaving(Lane *lane)
{
	Group	   *group;

	if (lane->group == NULL)
		begin_group(lane);
	group = lane->group;
	fwrite(lane->history.data, 1, lane->history.length, lane->file);
	group->hash[group->count++] = lane->plan.hash;
	group->scenario[lane->plan.scenario]++;
	for (int i = 0; i < lane->plan.steps; i++)
		if (lane->plan.step[i].fault != FAULT_NONE)
			group->fault[lane->plan.step[i].fault]++;
	tally_name_faults(lane, group);
	tally.calls += lane->calls;
	if (group->count == options.group)
		lane_end_group(lane);
}

static void judged(Lane *lane, const char *line);

/* ask_auditor hands it what it has not been asked yet. */
static void
ask_auditor(Lane *lane)
{
	for (Group *group = lane->waiting; group != NULL; group = group->next)
		if (!group->asked && lane->auditor != NULL)
		{
			group->asked = true;
			fprintf(lane->auditor->to, "%s\n", group->path);
			if (fflush(lane->auditor->to) != 0)
				fail("lane %d: the auditor is gone", lane->number);
		}
	/* Without an auditor nothing is judged, and what was played counts. */
	while (options.auditor == NULL && lane->waiting != NULL)
		judged(lane, NULL);
}

/* lane_end_group closes the file; its rows may be read now. */
void
lane_end_group(Lane *lane)
{
	Group	  **last = &lane->waiting;

	if (lane->group == NULL)
		return;
	fprintf(lane->file, "G\t%d\n", lane->groups);
	if (fclose(lane->file) != 0)
		fail("%s can't be written: %s", lane->group->path, strerror(errno));
	while (*last != NULL)
		last = &(*last)->next;
	*last = lane->group;
	lane->group = NULL;
	ask_auditor(lane);
}

bool
lane_rests(const Lane *lane)
{
	return !lane->playing && lane->waiting == NULL && lane->group == NULL;
}

/* ---- the auditor ------------------------------------------------------------------ */

void
lane_start_auditor(Lane *lane)
{
	struct Auditor *auditor;
	int			to[2];
	int			from[2];

	if (options.auditor == NULL)
		return;
	auditor = calloc(1, sizeof(*auditor));
	if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
		fail("no pipe: %s", strerror(errno));
	auditor->pid = fork();
	if (auditor->pid == 0)
	{
		char		conninfo[DATABASES][400];

		for (int i = 0; i < DATABASES; i++)
			snprintf(conninfo[i], sizeof(conninfo[i]), "host=%s user=postgres dbname=%s", lane->server->folder, lane->database[i]);
		dup2(to[0], 0);
		dup2(from[1], 1);
		execl(options.auditor, options.auditor, conninfo[LEDGER], conninfo[GATEWAY], (char *) NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	auditor->to = fdopen(to[1], "w");
	auditor->from = from[0];
	lane->auditor = auditor;
	watch_auditor(lane, auditor->from);
	for (Group *group = lane->waiting; group != NULL; group = group->next)
		group->asked = false;
	ask_auditor(lane);
}

/* keep_traces writes the plan of each interleaving that something was found in. */
static void
keep_traces(const Group *group, const char *findings)
{
	for (const char *line = findings; *line != '\0'; line += strcspn(line, "\n") + 1)
	{
		char		path[450];
		char		check[64];
		char		history[65536];
		int64_t		number;
		int64_t		at = 0;
		FILE	   *in;
		FILE	   *out = NULL;

		if (sscanf(line, "found %63s %" SCNd64, check, &number) != 2)
			continue;
		in = fopen(group->path, "r");
		if (in == NULL)
			return;
		snprintf(path, sizeof(path), "%.*s-%" PRId64 ".trace", (int) (strlen(group->path) - strlen(".history")),
				 group->path, number);
		while (fgets(history, sizeof(history), in) != NULL)
		{
			if (sscanf(history, "I\t%" SCNd64, &at) == 1 && at == number)
				out = fopen(path, "w");
			else if (history[0] == 'S' && at == number && out != NULL)
				fputs(history + 2, out);
		}
		if (out != NULL)
			fclose(out);
		fclose(in);
		fprintf(stderr, "\n%.*s\n  %s: %s\n", (int) strcspn(line, "\n"), line, "again with --replay", path);
	}
}

/* judged takes the auditor's word about the oldest group that waits; NULL: nobody has judged. */
static void
judged(Lane *lane, const char *line)
{
	Group	   *group = lane->waiting;
	int64_t		found[6];
	char		path[400];

	if (group == NULL)
		fail("lane %d: the auditor answers about nothing", lane->number);
	if (line != NULL)
	{
		int64_t		sum;

		if (sscanf(line, "audited %399s interleavings=%" SCNd64 " discrepancies=%" SCNd64 " overspends=%" SCNd64
				   " second_reservations=%" SCNd64 " duplicate_consumptions=%" SCNd64 " unrecorded_debts=%" SCNd64,
				   path, &found[0], &found[1], &found[2], &found[3], &found[4], &found[5]) != 7 ||
			strcmp(path, group->path) != 0)
			fail("lane %d: not an auditor's answer: %s", lane->number, line);
		if (found[0] != group->count)
			fail("lane %d: the auditor saw %" PRId64 " interleavings of %d in %s", lane->number, found[0], group->count, path);
		tally.discrepancies += found[1];
		tally.overspends += found[2];
		tally.second_reservations += found[3];
		tally.duplicate_consumptions += found[4];
		tally.unrecorded_debts += found[5];
		sum = found[1] + found[2] + found[3] + found[4] + found[5];
		if (sum > 0)
			keep_traces(group, lane->auditor->findings.data != NULL ? lane->auditor->findings.data : "");
		else if (!options.keep)
			unlink(group->path);
		text_clear(&lane->auditor->findings);
	}
	else if (!options.keep)
		unlink(group->path);
	lane->waiting = group->next;
	tally_group(group);
	free(group->hash);
	free(group);
}

/* lane_read_auditor takes what the auditor has said, line by line. */
void
lane_read_auditor(Lane *lane)
{
	struct Auditor *auditor = lane->auditor;
	char		bytes[65536];
	ssize_t		length;
	char	   *line;
	char	   *end;

	if (auditor == NULL)
		return;
	length = read(auditor->from, bytes, sizeof(bytes));
	if (length <= 0)
		fail("lane %d: the auditor has ended", lane->number);
	text_add_bytes(&auditor->read, bytes, length);
	line = auditor->read.data;
	while ((end = memchr(line, '\n', auditor->read.data + auditor->read.length - line)) != NULL)
	{
		*end = '\0';
		if (strncmp(line, "found ", 6) == 0)
			text_add(&auditor->findings, "%s\n", line);
		else
			judged(lane, line);
		line = end + 1;
	}
	auditor->read.length -= line - auditor->read.data;
	memmove(auditor->read.data, line, auditor->read.length);
}

/* lane_stop_auditor lets it answer what it was asked, and ends it. */
void
lane_stop_auditor(Lane *lane)
{
	struct Auditor *auditor = lane->auditor;
	bool		open = false;

	if (auditor == NULL)
		return;
	for (Group *group = lane->waiting; group != NULL; group = group->next)
		open |= group->asked;
	while (open)
	{
		lane_read_auditor(lane);
		open = false;
		for (Group *group = lane->waiting; group != NULL; group = group->next)
			open |= group->asked;
	}
	fclose(auditor->to);
	close(auditor->from);
	waitpid(auditor->pid, NULL, 0);
	free(auditor->read.data);
	free(auditor->findings.data);
	free(auditor);
	lane->auditor = NULL;
}
