/*
 * driver.c
 *	  Options, the loop over all lanes, and the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

#define STUCK	(10 * SECOND)	/* without progress: a lane hangs */

Options		options = {.minutes = 0, .interleavings = 0, .lanes = 6, .real_lanes = 1, .seed = 1, .group = 300, .remake = 30};

static int	loop;				/* epoll */
static volatile sig_atomic_t interrupted;
static bool started;

/* ---- small things ------------------------------------------------------------------ */

void
fail(const char *format,...)
{
	va_list		args;

	fputs("driver: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	if (started)
	{
		started = false;
		servers_stop();
	}
	exit(2);
}

void
text_add_bytes(Text *text, const char *bytes, size_t length)
{
	if (text->length + length + 1 > text->size)
	{
		text->size = 2 * (text->length + length + 1);
		text->data = realloc(text->data, text->size);
		if (text->data == NULL)
			abort();
	}
	memcpy(text->data + text->length, bytes, length);
	text->length += length;
	text->data[text->length] = '\0';
}

void
text_add(Text *text, const char *format,...)
{
	char		buffer[1024];
	va_list		args;
	int			length;

	va_start(args, format);
	length = vsnprintf(buffer, sizeof(buffer), format, args);
	va_end(args);
	if (length < (int) sizeof(buffer))
		text_add_bytes(text, buffer, length);
	else
	{
		char	   *longer = malloc(length + 1);

		va_start(args, format);
		vsnprintf(longer, length + 1, format, args);
		va_end(args);
		text_add_bytes(text, longer, length);
		free(longer);
	}
}

/* text_add_field adds a tab and a value, as the history writes one. */
void
text_add_field(Text *text, const char *value)
{
	text_add_bytes(text, "\t", 1);
	if (value == NULL)
	{
		text_add_bytes(text, "\\N", 2);
		return;
	}
	for (const char *from = value;; from++)
	{
		size_t		plain = strcspn(from, "\t\n\\");

		text_add_bytes(text, from, plain);
		from += plain;
		if (*from == '\0')
			return;
		text_add_bytes(text, *from == '\t' ? "\\t" : *from == '\n' ? "\\n" : "\\\\", 2);
	}
}

void
text_clear(Text *text)
{
	text->length = 0;
	if (text->data != NULL)
		text->data[0] = '\0';
}

Instant
now_of_driver(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * SECOND + now.tv_nsec / 1000;
}

/* ---- the loop ------------------------------------------------------------------------ */

/* A session, or an auditor: that is marked by the lowest bit. */
void
watch(Session *session)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = session};

	if (epoll_ctl(loop, EPOLL_CTL_ADD, PQsocket(session->conn), &event) != 0)
		fail("epoll: %s", strerror(errno));
}

void
watch_auditor(Lane *lane, int file)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uintptr_t) lane | 1};

	if (epoll_ctl(loop, EPOLL_CTL_ADD, file, &event) != 0)
		fail("epoll: %s", strerror(errno));
}

/* next_plan gives a lane something that nobody has played. */
static void
next_plan(Lane *lane)
{
	Plan		plan;

	do
		plan_draw(&plan, &lane->random, lane->real);
	while (!tally_claim(plan.hash));
	play_begin(lane, &plan);
}

static void
report_stuck(Lane *lane)
{
	fprintf(stderr, "\nlane %d makes no progress; its history:\n%s", lane->number, lane->history.data);
	fail("lane %d hangs", lane->number);
}

/* one_turn goes around once: what has come is read, what may be sent is sent. */
static void
one_turn(void)
{
	struct epoll_event events[64];
	struct timespec wait = {0, 200 * 1000 * 1000};
	int			count;
	Instant		now;

	for (int n = 0; n < lane_count; n++)
		if (play_watches(&lanes[n]))
			wait.tv_nsec = 50 * 1000;
	count = epoll_pwait2(loop, events, 64, &wait, NULL);
	for (int i = 0; i < count; i++)
	{
		if (events[i].data.u64 & 1)
			lane_read_auditor((Lane *) (uintptr_t) (events[i].data.u64 & ~UINT64_C(1)));
		else
			play_read(events[i].data.ptr);
	}
	now = now_of_driver();
	for (int n = 0; n < lane_count; n++)
	{
		Lane	   *lane = &lanes[n];

		if (lane->playing)
		{
			play_on(lane);
			if (lane->playing && now - lane->moved > STUCK && lane->sleep_until < now)
				report_stuck(lane);
		}
		if (!lane->playing && !lane->stopping)
		{
			if (lane->group == NULL && lane->groups >= lane->made * options.remake)
			{
				if (lane->waiting != NULL)
					continue;	/* its rows are being read */
				lane_open(lane);
			}
			next_plan(lane);
			play_on(lane);
		}
	}
}

/* ---- faults of the server --------------------------------------------------------------- */

/* The server has ended under all sessions: what it has still said is read, the rest is lost. */
static void
lose_all(const Server *server, const char *fault)
{
	for (int n = 0; n < lane_count; n++)
	{
		if (lanes[n].server != server)
			continue;
		play_server_fault(&lanes[n], fault);
		for (int actor = 0; actor <= ACTORS; actor++)
			for (int i = 0; i < DATABASES; i++)
			{
				play_read(&lanes[n].session[actor][i]);
				play_lost(&lanes[n].session[actor][i]);
			}
	}
}

static void
run_for(Instant length)
{
	Instant		end = now_of_driver() + length;

	while (now_of_driver() < end)
		one_turn();
}

static void
auditors(const Server *server, bool run)
{
	for (int n = 0; n < lane_count; n++)
		if (lanes[n].server != server)
			continue;
		else if (run)
			lane_start_auditor(&lanes[n]);
		else
			lane_stop_auditor(&lanes[n]);
}

static void
checkpoint(Server *server)
{
	PGconn	   *conn = connect_to(server, "postgres");

	if (conn == NULL)
		fail("no connection");
	sql_do(conn, "CHECKPOINT");
	PQfinish(conn);
}

/* crash_server kills the postmaster while all lanes are at work. */
static void
crash_server(Server *server)
{
	checkpoint(server);
	auditors(server, false);
	run_for(20000 + roll(&lanes[0].random, 20000));
	server_kill_and_start(server);
	lose_all(server, "crash");
	tally.crash_recoveries++;
	auditors(server, true);
}

/* fail_flush lets a flush of the log fail while all lanes are at work. */
static void
fail_flush(Server *server)
{
	Instant		end;

	checkpoint(server);				/* so that the recovery has little to do */
	auditors(server, false);
	run_for(5000);
	server_fail_flush(1 + roll(&lanes[0].random, 40));
	end = now_of_driver() + 10 * SECOND;
	while (!server_flush_failed())
	{
		one_turn();
		if (now_of_driver() > end)
			fail("no flush failed: is sync.so in the server?");
	}
	server_fail_flush(0);
	usleep(20000);
	server_wait(server);
	lose_all(server, "flush fails");
	tally.flush_failures++;
	auditors(server, true);
}

/* ---- the run -------------------------------------------------------------------------------- */

static int64_t
findings(void)
{
	return tally.discrepancies + tally.overspends + tally.second_reservations +
		tally.duplicate_consumptions + tally.unrecorded_debts;
}

/* ends_early: somebody has had enough. */
static bool
ends_early(void)
{
	return interrupted || (options.first && findings() > 0);
}

static void
progress(Instant begun, int64_t before, bool last)
{
	static Instant shown;
	Instant		now = now_of_driver();
	double		seconds = (double) (now - begun) / SECOND;
	bool		terminal = isatty(2);

	if (!last && now - shown < (terminal ? SECOND : 10 * SECOND))
		return;
	shown = now;
	fprintf(stderr, "%s%02d:%02d  %" PRId64 " distinct  %" PRId64 " repeated  %.0f/s  %" PRId64 " recoveries  %" PRId64 " findings%s",
			terminal ? "\r" : "", (int) seconds / 60, (int) seconds % 60, tally.interleavings, tally.repeats,
			seconds > 0 ? (double) (tally.interleavings - before) / seconds : 0,
			tally.crash_recoveries + tally.flush_failures, findings(), terminal && !last ? "\033[K" : "\n");
}

/* come_to_rest plays what is begun to its end, and waits until it is judged. */
static void
come_to_rest(void)
{
	bool		rests;

	for (int n = 0; n < lane_count; n++)
		lanes[n].stopping = true;
	do
	{
		rests = true;
		one_turn();
		for (int n = 0; n < lane_count; n++)
		{
			if (!lanes[n].playing)
				lane_end_group(&lanes[n]);
			rests &= lane_rests(&lanes[n]);
		}
	}
	while (!rests);
}

static void
run_all(void)
{
	Instant		begun = now_of_driver();
	Instant		length = (Instant) (options.minutes * 60 * SECOND);
	int64_t		before = tally.interleavings;
	int			crashes = 0;

	for (;;)
	{
		Instant		passed = now_of_driver() - begun;
		double		part = length > 0 ? (double) passed / length : 0;

		if (options.interleavings > 0)
		{
			double		done = (double) (tally.interleavings - before) / options.interleavings;

			part = done > part ? done : part;
		}
		if (ends_early() || part >= 1)
			break;
		one_turn();
		progress(begun, before, false);
		if (crashes < options.crashes && part > (crashes + 0.5) / options.crashes)
		{
			/* Every fourth is that of the server with workers. */
			crash_server(&servers[crashes % 4 == 3 && options.real_lanes > 0 ? REAL : VIRTUAL]);
			crashes++;
		}
	}
	if (options.flush_failures > 0 && !ends_early())
	{
		server_flush(&servers[VIRTUAL], true);
		for (int i = 0; i < options.flush_failures && !ends_early(); i++)
		{
			run_for(SECOND / 5);
			fail_flush(&servers[VIRTUAL]);
			progress(begun, before, false);
		}
		server_flush(&servers[VIRTUAL], false);
	}
	come_to_rest();
	progress(begun, before, true);
	printf("seconds=%.1f\nper_second=%.1f\n", (double) (now_of_driver() - begun) / SECOND,
		   (double) (tally.interleavings - before) * SECOND / (now_of_driver() - begun));
}

/* replay plays one plan, alone. */
static void
replay(const char *path)
{
	Text		text = {0};
	char		line[1024];
	FILE	   *file = fopen(path, "r");
	const char *problem;
	Plan		plan;

	if (file == NULL)
		fail("%s can't be read: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file) != NULL)
		text_add(&text, "%s", line);
	fclose(file);
	if (!plan_read(&plan, text.data, &problem))
		fail("%s: %s", path, problem);
	for (int n = 0; n < lane_count; n++)
		lanes[n].stopping = true;
	play_begin(&lanes[policies[plan.policy].real ? options.lanes : 0], &plan);
	play_on(&lanes[policies[plan.policy].real ? options.lanes : 0]);
	come_to_rest();
	fputs(lanes[policies[plan.policy].real ? options.lanes : 0].history.data, stdout);
}

static void
list_all(void)
{
	int			weights = 0;

	for (int i = 0; i < scenario_count; i++)
		weights += scenarios[i].weight;
	for (int i = 0; i < scenario_count; i++)
		printf("scenario  %-14s %2d%%  %s\n", scenarios[i].name, (100 * scenarios[i].weight + weights / 2) / weights, scenarios[i].about);
	for (int i = 1; i < FAULTS; i++)
		printf("fault     %s\n", fault_names[i]);
	printf("fault     crash\nfault     flush fails\n");
	for (int i = 0; i < named_fault_count; i++)
		printf("counted   gate_%s\n", named_faults[i]);
}

static void
usage(FILE *out)
{
	fputs("driver: plays interleavings on a real server, for an auditor to judge\n"
		  "\n"
		  "  --minutes N          how long, or\n"
		  "  --interleavings N    how many distinct ones\n"
		  "  --lanes N            with the virtual clock (6), each with databases of its own\n"
		  "  --real-lanes N       with the server's clock and background workers (1)\n"
		  "  --seed N             (1)\n"
		  "  --crashes N          how often the postmaster is killed (0)\n"
		  "  --flush-failures N   how often a flush of the log fails (0)\n"
		  "  --auditor PROGRAM    judges the histories; without, nothing is judged\n"
		  "  --histories DIR      where they are written (build/gate/histories)\n"
		  "  --first              stop at the first finding\n"
		  "  --keep               keep those that nothing was found in\n"
		  "  --group N            interleavings in a history (300)\n"
		  "  --state DIR          keep hashes and counters there, and go on from them\n"
		  "  --replay FILE        play one plan, and print its history\n"
		  "  --root DIR           of the project, for its tools (.)\n"
		  "  --list               scenarios and faults\n"
		  "\n"
		  "At the end it prints name=value, a line each. The exit status is 0 if nothing was\n"
		  "found, 1 if something was, 2 if the run could not be made.\n", out);
}

static void
on_interrupt(int signal)
{
	(void) signal;
	interrupted = 1;
}

static double
number(const char *name, const char *value)
{
	char	   *end;
	double		n = value != NULL ? strtod(value, &end) : -1;

	if (value == NULL || *end != '\0' || n < 0)
		fail("%s takes a number", name);
	return n;
}

int
main(int argc, char **argv)
{
	char		root[PATH_MAX];

	options.root = ".";
	options.histories = "build/gate/histories";
	for (int i = 1; i < argc; i++)
	{
		const char *name = argv[i];
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
			return usage(stdout), 0;
		if (strcmp(name, "--list") == 0)
			return list_all(), 0;
		if (strcmp(name, "--keep") == 0)
		{
			options.keep = true;
			continue;
		}
		if (strcmp(name, "--first") == 0)
		{
			options.first = true;
			continue;
		}
		i++;
		if (strcmp(name, "--minutes") == 0)
			options.minutes = number(name, value);
		else if (strcmp(name, "--interleavings") == 0)
			options.interleavings = (int64_t) number(name, value);
		else if (strcmp(name, "--lanes") == 0)
			options.lanes = (int) number(name, value);
		else if (strcmp(name, "--real-lanes") == 0)
			options.real_lanes = (int) number(name, value);
		else if (strcmp(name, "--seed") == 0)
			options.seed = (uint64_t) number(name, value);
		else if (strcmp(name, "--crashes") == 0)
			options.crashes = (int) number(name, value);
		else if (strcmp(name, "--flush-failures") == 0)
			options.flush_failures = (int) number(name, value);
		else if (strcmp(name, "--group") == 0)
			options.group = (int) number(name, value);
		else if (strcmp(name, "--auditor") == 0 && value != NULL)
			options.auditor = value;
		else if (strcmp(name, "--histories") == 0 && value != NULL)
			options.histories = value;
		else if (strcmp(name, "--state") == 0 && value != NULL)
			options.state = value;
		else if (strcmp(name, "--replay") == 0 && value != NULL)
			options.replay = value;
		else if (strcmp(name, "--root") == 0 && value != NULL)
			options.root = value;
		else
			return usage(stderr), 2;
	}
	if (options.lanes < 1 || options.group < 1 || (options.minutes == 0 && options.interleavings == 0 && options.replay == NULL))
		return usage(stderr), 2;
	if (mkdir(options.histories, 0755) != 0 && errno != EEXIST)
		fail("%s can't be made: %s", options.histories, strerror(errno));
	if (realpath(options.root, root) == NULL)
		fail("no %s", options.root);
	tally_open(options.state);
	loop = epoll_create1(EPOLL_CLOEXEC);
	signal(SIGINT, on_interrupt);
	signal(SIGTERM, on_interrupt);
	signal(SIGPIPE, SIG_IGN);

	servers_start(root);
	started = true;
	lanes_make();
	if (options.replay != NULL)
		replay(options.replay);
	else
		run_all();
	for (int n = 0; n < lane_count; n++)
		lane_stop_auditor(&lanes[n]);
	tally_save();
	started = false;
	servers_stop();
	if (options.replay == NULL)
		tally_print();
	return findings() > 0;
}
