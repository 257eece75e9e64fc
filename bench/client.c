/*
 * client.c
 *	  The measuring side of bench/run: one session, one call after the other.
 *
 * CPU is that of the backend process alone, user and system, read in
 * nanoseconds from its CPU clock (clock_getcpuclockid) before and after a
 * series of calls.  Nothing is subtracted.  What is compared takes short turns
 * with the same ids, so that both sides see the same machine and tables of the
 * same size.  A figure is a median over rounds.
 */
#define _GNU_SOURCE				/* CLOCK_MONOTONIC, clock_getcpuclockid */
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#define ROUNDS			7
#define MAX_PARAMS		5
#define TURN_CALLS		100		/* of one side before the other's turn */
#define WARM_UP_CALLS	1000
#define CPU_CALLS		20000	/* of each side in a round, at most */
#define REFUSAL_CALLS	5000
#define FLUSHED_CALLS	2000
#define LIFE_CALLS		5000
#define BATCH_TURNS		20
#define LARGEST_BATCH	10000

/* Shares of the time, at most; what is left is spare. */
#define WARM_UP_SHARE	0.03
#define CPU_SHARE		0.25
#define REFUSAL_SHARE	0.08
#define FLUSHED_SHARE	0.12
#define BATCH_SHARE		0.12
#define RELAXED_SHARE	0.06
#define LIFE_SHARE		0.08

#define GOAL_CPU		0.75	/* at most */
#define GOAL_BATCH		15.0	/* at least */

#define countof(array)	((int) (sizeof(array) / sizeof((array)[0])))

/* One request: a fresh id, with a digest and an operation of its own. */
typedef struct Request
{
	char		id[32];
	char		operation[32];
	unsigned char digest[32];
} Request;

typedef struct Params
{
	int			count;
	const char *values[MAX_PARAMS];
	int			lengths[MAX_PARAMS];
	int			formats[MAX_PARAMS];
} Params;

/* One kind of call: its prepared statement, arguments, and the only right answer. */
typedef struct Call
{
	const char *name;
	const char *sql;
	void		(*fill) (const Request *request, Params *params);
	const char *outcome;		/* NULL: no receipt */
} Call;

/* What series of calls took, in sum. */
typedef struct Cost
{
	int			calls;
	double		cpu;			/* seconds of the backend */
	double		wall;			/* seconds seen by the client */
} Cost;

/* A value a round. */
typedef struct Spread
{
	double		values[ROUNDS];
	double		median;
	double		min;
	double		max;
} Spread;

static PGconn *conn;
static clockid_t backend_clock;
static double time_limit;		/* seconds, of the whole client */
static uint64_t requests_made;

/* ---- small things -------------------------------------------------------- */

static void fail(const char *format,...) __attribute__((format(printf, 1, 2), noreturn));

static void
fail(const char *format,...)
{
	va_list		args;

	fputs("bench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static double
seconds_of(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		fail("the backend's CPU clock can't be read");
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

static double
wall_seconds(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

static void
spread_summarize(Spread *spread)
{
	double		sorted[ROUNDS];

	memcpy(sorted, spread->values, sizeof(sorted));
	qsort(sorted, ROUNDS, sizeof(double), compare_doubles);
	spread->median = sorted[ROUNDS / 2];
	spread->min = sorted[0];
	spread->max = sorted[ROUNDS - 1];
}

static double
cpu_us(const Cost *cost)
{
	return cost->cpu * 1e6 / cost->calls;
}

static double
wall_us(const Cost *cost)
{
	return cost->wall * 1e6 / cost->calls;
}

static void *
allocate(size_t size)
{
	void	   *memory = malloc(size);

	if (memory == NULL)
		fail("out of memory");
	return memory;
}

/* slice_end is when a round that has this share of the time must end. */
static double
slice_end(double share)
{
	return wall_seconds() + share / ROUNDS * time_limit;
}

/* out_of_time ends a run that would go beyond its limit, whatever it waits for. */
static void
out_of_time(int signal_number)
{
	static const char message[] = "bench: not done within BENCH_MINUTES; give it more\n";

	(void) signal_number;
	if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0)
		_exit(2);
	_exit(1);
}

/* ---- requests ------------------------------------------------------------ */

/* next_random: splitmix64, so that every run asks the same. */
static uint64_t
next_random(void)
{
	static uint64_t state = 42;
	uint64_t	z = (state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* requests_make gives ids as a gateway makes them: growing, with a random end. */
static void
requests_make(Request *requests, int count)
{
	for (int i = 0; i < count; i++)
	{
		Request    *request = &requests[i];
		unsigned long long number = ++requests_made;

		snprintf(request->id, sizeof(request->id), "rl-01J%08llX%015llX",
				 number, (unsigned long long) next_random() >> 4);
		snprintf(request->operation, sizeof(request->operation), "op-%s", request->id + 3);
		for (size_t at = 0; at < sizeof(request->digest); at += sizeof(uint64_t))
		{
			uint64_t	bits = next_random();

			memcpy(request->digest + at, &bits, sizeof(bits));
		}
	}
}

static void
param_text(Params *params, const char *value)
{
	params->values[params->count] = value;
	params->lengths[params->count] = 0;
	params->formats[params->count++] = 0;
}

static void
fill_reserve(const Request *request, Params *params)
{
	param_text(params, request->id);
	params->values[params->count] = (const char *) request->digest;
	params->lengths[params->count] = sizeof(request->digest);
	params->formats[params->count++] = 1;
}

static void
fill_operation(const Request *request, Params *params)
{
	param_text(params, request->id);
	param_text(params, request->operation);
}

static void
fill_nothing(const Request *request, Params *params)
{
	(void) request;
	(void) params;
}

enum
{
	NOTHING,
	RESERVE_OURS, RESERVE_THEIRS,
	REFUSAL_OURS, REFUSAL_THEIRS,
	START, SETTLE
};

static const Call calls[] = {
	[NOTHING] = {"nothing", "SELECT 1", fill_nothing, NULL},
	[RESERVE_OURS] = {"reserve_ours",
		"SELECT * FROM limitledger.reserve_capacity('bench', 'open', $1, 10, $2)",
	fill_reserve, "ACCEPTED"},
	[RESERVE_THEIRS] = {"reserve_theirs",
		"SELECT * FROM bench_baseline.reserve_capacity('bench', 'open', $1, 10, $2)",
	fill_reserve, "ACCEPTED"},
	[REFUSAL_OURS] = {"refusal_ours",
		"SELECT * FROM limitledger.reserve_capacity('bench', 'full', $1, 10, $2)",
	fill_reserve, "REFUSED"},
	[REFUSAL_THEIRS] = {"refusal_theirs",
		"SELECT * FROM bench_baseline.reserve_capacity('bench', 'full', $1, 10, $2)",
	fill_reserve, "REFUSED"},
	[START] = {"start",
		"SELECT * FROM limitledger.start_reservation('bench', $1, $2)",
	fill_operation, "ACCEPTED"},
	[SETTLE] = {"settle",
		"SELECT * FROM limitledger.settle_usage('bench', $1, $2, 7)",
	fill_operation, "ACCEPTED"},
};

/* What is compared: ours, theirs; and for reference the least that a call can cost. */
static const int reserve_sides[] = {RESERVE_OURS, RESERVE_THEIRS, NOTHING};
static const int refusal_sides[] = {REFUSAL_OURS, REFUSAL_THEIRS};

/* ---- the session --------------------------------------------------------- */

static PGresult *
require(PGresult *result, ExecStatusType status, const char *what)
{
	if (PQresultStatus(result) != status)
		fail("%s: %s", what, PQerrorMessage(conn));
	return result;
}

static void
execute(const char *sql)
{
	PQclear(require(PQexec(conn, sql), PGRES_COMMAND_OK, sql));
}

static long
count_of(const char *sql)
{
	PGresult   *result = require(PQexec(conn, sql), PGRES_TUPLES_OK, sql);
	long		count = strtol(PQgetvalue(result, 0, 0), NULL, 10);

	PQclear(result);
	return count;
}

static void
session_open(const char *conninfo)
{
	conn = PQconnectdb(conninfo);
	if (PQstatus(conn) != CONNECTION_OK)
		fail("%s", PQerrorMessage(conn));
	if (clock_getcpuclockid(PQbackendPID(conn), &backend_clock) != 0)
		fail("the backend has no CPU clock here");

	for (int i = 0; i < countof(calls); i++)
		PQclear(require(PQprepare(conn, calls[i].name, calls[i].sql, 0, NULL),
						PGRES_COMMAND_OK, calls[i].sql));
	PQclear(require(PQprepare(conn, "batch",
							  "SELECT * FROM limitledger.reserve_capacity_batch($1, $2, $3, $4, $5)",
							  0, NULL), PGRES_COMMAND_OK, "batch"));
}

/* durability: whether a call's answer waits for the disk (F4). */
static void
durability(bool flushed)
{
	execute(flushed ? "SET synchronous_commit = on" : "SET synchronous_commit = off");
	execute(flushed ? "SET limitledger.durability_required = on"
			: "SET limitledger.durability_required = off");
}

static void
check_outcomes(PGresult *result, const char *name, const char *outcome, int rows)
{
	int			column = PQfnumber(result, "outcome");

	if (PQntuples(result) != rows || column < 0)
		fail("%s: %d rows instead of %d", name, PQntuples(result), rows);
	for (int row = 0; row < rows; row++)
		if (strcmp(PQgetvalue(result, row, column), outcome) != 0)
			fail("%s: row %d says %s instead of %s", name, row + 1,
				 PQgetvalue(result, row, column), outcome);
}

/*
 * series makes one call for each request, one transaction each, and adds them to
 * `cost`; their single times, in microseconds, go to `latencies` unless NULL.
 */
static void
series(int which, const Request *requests, int count, Cost *cost, double *latencies)
{
	const Call *call = &calls[which];
	double		cpu = seconds_of(backend_clock);

	for (int i = 0; i < count; i++)
	{
		Params		params = {0};
		PGresult   *result;
		double		from;
		double		took;

		call->fill(&requests[i], &params);
		from = wall_seconds();
		result = PQexecPrepared(conn, call->name, params.count, params.values,
								params.lengths, params.formats, 0);
		took = wall_seconds() - from;
		cost->wall += took;
		if (latencies != NULL)
			latencies[i] = took * 1e6;

		require(result, PGRES_TUPLES_OK, call->name);
		if (call->outcome != NULL)
			check_outcomes(result, call->name, call->outcome, 1);
		PQclear(result);
	}
	cost->cpu += seconds_of(backend_clock) - cpu;
	cost->calls += count;
}

/* ---- batches ------------------------------------------------------------- */

/* array_of writes a one-dimensional array in the text form that drivers send. */
static char *
array_of(const Request *requests, int count, void (*element) (char *, const Request *))
{
	char	   *array = allocate((size_t) count * 80 + 3);
	char	   *at = array;

	for (int i = 0; i < count; i++)
	{
		*at++ = i == 0 ? '{' : ',';
		element(at, &requests[i]);
		at += strlen(at);
	}
	strcpy(at, "}");
	return array;
}

static void
element_subject(char *at, const Request *request)
{
	(void) request;
	strcpy(at, "bench");
}

static void
element_route(char *at, const Request *request)
{
	(void) request;
	strcpy(at, "open");
}

static void
element_id(char *at, const Request *request)
{
	strcpy(at, request->id);
}

static void
element_units(char *at, const Request *request)
{
	(void) request;
	strcpy(at, "10");
}

static void
element_digest(char *at, const Request *request)
{
	at += sprintf(at, "\"\\\\x");
	for (size_t i = 0; i < sizeof(request->digest); i++)
		at += sprintf(at, "%02x", request->digest[i]);
	strcpy(at, "\"");
}

/* batch makes one call of `size` rows and adds them to `cost`, a row a call. */
static void
batch(Request *requests, int size, Cost *cost)
{
	char	   *arrays[MAX_PARAMS];
	PGresult   *result;
	double		cpu;
	double		from;

	requests_make(requests, size);
	arrays[0] = array_of(requests, size, element_subject);
	arrays[1] = array_of(requests, size, element_route);
	arrays[2] = array_of(requests, size, element_id);
	arrays[3] = array_of(requests, size, element_units);
	arrays[4] = array_of(requests, size, element_digest);

	cpu = seconds_of(backend_clock);
	from = wall_seconds();
	result = PQexecPrepared(conn, "batch", MAX_PARAMS, (const char *const *) arrays,
							NULL, NULL, 0);
	cost->wall += wall_seconds() - from;
	cost->cpu += seconds_of(backend_clock) - cpu;
	cost->calls += size;

	require(result, PGRES_TUPLES_OK, "reserve_capacity_batch");
	check_outcomes(result, "reserve_capacity_batch", "ACCEPTED", size);
	PQclear(result);
	for (int i = 0; i < MAX_PARAMS; i++)
		free(arrays[i]);
}

/* ---- what is measured ---------------------------------------------------- */

/* The batch sizes, and how often each is called in one turn. */
static const struct
{
	int			size;
	int			calls;
}			batch_plan[] = {{1, 50}, {10, 10}, {100, 5}, {1000, 1}, {LARGEST_BATCH, 1}};

#define BATCH_SIZES		countof(batch_plan)
#define BATCH_OF_GOAL	3		/* 1,000 rows */

static struct
{
	/* backend CPU of a call, microseconds */
	Spread		cpu[countof(calls)];
	Spread		cpu_ratio;		/* ours by theirs, round by round */
	Spread		refusal_ratio;
	Spread		cpu_row;		/* of a row in a batch of 1,000 */
	/* full durability */
	Spread		rate[2];
	double	   *latencies[2];	/* microseconds */
	int			latency_count;
	Spread		single_rate;
	Spread		batch_rate[BATCH_SIZES];
	Spread		batch_ratio[BATCH_SIZES];
	/* the same without waiting for the disk */
	Spread		relaxed_single_rate;
	Spread		relaxed_batch_rate;
	Spread		relaxed_batch_ratio;
}			results;

/*
 * turns measures several kinds of calls on the same requests, in short turns,
 * so that whatever else the machine does falls on all of them alike.
 */
static void
turns(const int *sides, int count, Request *requests, int most, double share,
	  Cost *costs, double **latencies)
{
	double		end = slice_end(share);

	memset(costs, 0, count * sizeof(Cost));
	for (int turn = 0; turn * TURN_CALLS < most && (turn == 0 || wall_seconds() < end); turn++)
	{
		requests_make(requests, TURN_CALLS);
		for (int i = 0; i < count; i++)
		{
			int			side = (turn + i) % count;

			series(sides[side], requests, TURN_CALLS, &costs[side],
				   latencies == NULL ? NULL : latencies[side] + turn * TURN_CALLS);
		}
	}
}

/* check_plans: plpgsql gets the index scans that it deserves. */
static void
check_plans(void)
{
	count_of("SELECT pg_stat_force_next_flush()");
	if (count_of("SELECT max(seq_scan) FROM pg_stat_user_tables"
				 " WHERE schemaname = 'bench_baseline'"
				 " AND relname IN ('head_budget', 'reservation')") > TURN_CALLS)
		fail("the baseline scans whole tables: its plans are not worth a comparison");
}

/*
 * CPU without flushes: with them, each call would carry the kernel's share of
 * an fdatasync, equal on both sides but as uneven as the disk.
 */
static void
measure_cpu(Request *requests)
{
	Cost		costs[3];

	durability(false);
	turns(reserve_sides, 3, requests, WARM_UP_CALLS, WARM_UP_SHARE * ROUNDS, costs, NULL);
	turns(refusal_sides, 2, requests, WARM_UP_CALLS, WARM_UP_SHARE * ROUNDS, costs, NULL);
	check_plans();

	for (int round = 0; round < ROUNDS; round++)
	{
		turns(reserve_sides, 3, requests, CPU_CALLS, CPU_SHARE, costs, NULL);
		results.cpu[NOTHING].values[round] = cpu_us(&costs[2]);
		results.cpu[RESERVE_OURS].values[round] = cpu_us(&costs[0]);
		results.cpu[RESERVE_THEIRS].values[round] = cpu_us(&costs[1]);
		results.cpu_ratio.values[round] = cpu_us(&costs[0]) / cpu_us(&costs[1]);
		fprintf(stderr, "cpu      round %d of %d: %d calls, reserve %.1f us, plpgsql %.1f us",
				round + 1, ROUNDS, costs[0].calls, cpu_us(&costs[0]), cpu_us(&costs[1]));

		turns(refusal_sides, 2, requests, REFUSAL_CALLS, REFUSAL_SHARE, costs, NULL);
		results.cpu[REFUSAL_OURS].values[round] = cpu_us(&costs[0]);
		results.cpu[REFUSAL_THEIRS].values[round] = cpu_us(&costs[1]);
		results.refusal_ratio.values[round] = cpu_us(&costs[0]) / cpu_us(&costs[1]);
		fprintf(stderr, "; refusal %.1f us, plpgsql %.1f us\n",
				cpu_us(&costs[0]), cpu_us(&costs[1]));
	}
}

static void
measure_latency(Request *requests)
{
	Cost		costs[2];
	double	   *latencies[2];

	durability(true);
	turns(reserve_sides, 2, requests, TURN_CALLS, 0, costs, NULL);
	for (int side = 0; side < 2; side++)
		results.latencies[side] = allocate(sizeof(double) * ROUNDS * FLUSHED_CALLS);

	for (int round = 0; round < ROUNDS; round++)
	{
		for (int side = 0; side < 2; side++)
			latencies[side] = results.latencies[side] + results.latency_count;
		turns(reserve_sides, 2, requests, FLUSHED_CALLS, FLUSHED_SHARE, costs, latencies);
		results.latency_count += costs[0].calls;
		for (int side = 0; side < 2; side++)
			results.rate[side].values[round] = 1e6 / wall_us(&costs[side]);
		fprintf(stderr, "flushed  round %d of %d: %d calls, reserve %.0f us, plpgsql %.0f us\n",
				round + 1, ROUNDS, costs[0].calls, wall_us(&costs[0]), wall_us(&costs[1]));
	}
}

/* check_alike: until here both sides' tables have grown in step. */
static void
check_alike(void)
{
	if (count_of("SELECT count(*) FROM ("
				 "(SELECT route, state, count(*), sum(reserved_units)"
				 " FROM limitledger.reservation GROUP BY 1, 2"
				 " EXCEPT SELECT route, state, count(*), sum(reserved_units)"
				 " FROM bench_baseline.reservation GROUP BY 1, 2)"
				 " UNION ALL "
				 "(SELECT route, subject, reserved, spent FROM limitledger.head_budget"
				 " EXCEPT SELECT route, subject, reserved, spent FROM bench_baseline.head_budget)"
				 ") AS difference") != 0)
		fail("the two sides hold different reservations or balances");
}

/* One-row calls and batches of each size take turns, like the two sides above. */
static void
measure_batches(Request *requests)
{
	durability(true);
	for (int round = 0; round < ROUNDS; round++)
	{
		double		end = slice_end(BATCH_SHARE);
		Cost		single = {0};
		Cost		rows[BATCH_SIZES] = {{0}};

		for (int turn = 0; turn < BATCH_TURNS && (turn == 0 || wall_seconds() < end); turn++)
		{
			requests_make(requests, TURN_CALLS);
			series(RESERVE_OURS, requests, TURN_CALLS, &single, NULL);
			for (int i = 0; i < BATCH_SIZES; i++)
				for (int call = 0; call < batch_plan[i].calls; call++)
					batch(requests, batch_plan[i].size, &rows[i]);
		}
		results.single_rate.values[round] = 1e6 / wall_us(&single);
		for (int i = 0; i < BATCH_SIZES; i++)
		{
			results.batch_rate[i].values[round] = 1e6 / wall_us(&rows[i]);
			results.batch_ratio[i].values[round] = wall_us(&single) / wall_us(&rows[i]);
		}
		fprintf(stderr, "batches  round %d of %d: one-row calls %.0f/s, 1,000 a call %.0f/s\n",
				round + 1, ROUNDS, results.single_rate.values[round],
				results.batch_rate[BATCH_OF_GOAL].values[round]);
	}
}

static void
measure_relaxed_batches(Request *requests)
{
	durability(false);
	for (int round = 0; round < ROUNDS; round++)
	{
		double		end = slice_end(RELAXED_SHARE);
		Cost		single = {0};
		Cost		rows = {0};

		for (int turn = 0; turn < BATCH_TURNS && (turn == 0 || wall_seconds() < end); turn++)
		{
			requests_make(requests, TURN_CALLS);
			series(RESERVE_OURS, requests, TURN_CALLS, &single, NULL);
			batch(requests, batch_plan[BATCH_OF_GOAL].size, &rows);
		}
		results.relaxed_single_rate.values[round] = 1e6 / wall_us(&single);
		results.relaxed_batch_rate.values[round] = 1e6 / wall_us(&rows);
		results.relaxed_batch_ratio.values[round] = wall_us(&single) / wall_us(&rows);
		results.cpu_row.values[round] = cpu_us(&rows);
	}
}

/* measure_life takes reservations through start and settle; the reserve is not counted. */
static void
measure_life(Request *requests)
{
	durability(false);
	for (int round = 0; round < ROUNDS; round++)
	{
		double		end = slice_end(LIFE_SHARE);
		Cost		reserve = {0};
		Cost		start = {0};
		Cost		settle = {0};

		while (start.calls < LIFE_CALLS && (start.calls == 0 || wall_seconds() < end))
		{
			requests_make(requests, TURN_CALLS);
			series(RESERVE_OURS, requests, TURN_CALLS, &reserve, NULL);
			series(START, requests, TURN_CALLS, &start, NULL);
			series(SETTLE, requests, TURN_CALLS, &settle, NULL);
		}
		results.cpu[START].values[round] = cpu_us(&start);
		results.cpu[SETTLE].values[round] = cpu_us(&settle);
		fprintf(stderr, "life     round %d of %d: %d calls, start %.1f us, settle %.1f us\n",
				round + 1, ROUNDS, start.calls, cpu_us(&start), cpu_us(&settle));
	}
}

/* ---- the table ----------------------------------------------------------- */

static void
print_row(const char *label, Spread *spread, int decimals)
{
	spread_summarize(spread);
	printf("  %-44s %11.*f   (%.*f .. %.*f)\n", label, decimals, spread->median,
		   decimals, spread->min, decimals, spread->max);
}

static void
print_latency(const char *label, double *latencies, Spread *rate)
{
	int			count = results.latency_count;

	qsort(latencies, count, sizeof(double), compare_doubles);
	spread_summarize(rate);
	printf("  %-44s %11.0f %10.0f %10.0f   (%.0f .. %.0f)\n", label,
		   latencies[count / 2], latencies[(int) (count * 0.99)],
		   rate->median, rate->min, rate->max);
}

static void
print_batch(const char *label, Spread *rate, Spread *ratio)
{
	spread_summarize(rate);
	spread_summarize(ratio);
	printf("  %-44s %11.0f %10.2f   (%.2f .. %.2f)\n", label,
		   rate->median, ratio->median, ratio->min, ratio->max);
}

static void
print_tables(void)
{
	char		label[64];

	printf("\nMedians of %d interleaved rounds, (least .. most).\n", ROUNDS);
	printf("\n%-46s %11s\n", "Backend CPU of one call, no flush", "us");
	print_row("SELECT 1, for reference", &results.cpu[NOTHING], 2);
	print_row("reserve_capacity", &results.cpu[RESERVE_OURS], 2);
	print_row("  in plpgsql", &results.cpu[RESERVE_THEIRS], 2);
	print_row("  relative to plpgsql", &results.cpu_ratio, 3);
	print_row("a row of a batch of 1000", &results.cpu_row, 2);
	print_row("refusal", &results.cpu[REFUSAL_OURS], 2);
	print_row("  in plpgsql", &results.cpu[REFUSAL_THEIRS], 2);
	print_row("  relative to plpgsql", &results.refusal_ratio, 3);
	print_row("start_reservation", &results.cpu[START], 2);
	print_row("settle_usage", &results.cpu[SETTLE], 2);

	printf("\n%-46s %11s %10s %10s\n", "One call, flushed to disk", "p50 us", "p99 us", "calls/s");
	print_latency("reserve_capacity", results.latencies[0], &results.rate[0]);
	print_latency("  in plpgsql", results.latencies[1], &results.rate[1]);

	printf("\n%-46s %11s %10s\n", "One session, flushed to disk", "rows/s", "times");
	print_row("one-row calls", &results.single_rate, 0);
	for (int i = 0; i < BATCH_SIZES; i++)
	{
		snprintf(label, sizeof(label), "batch of %d", batch_plan[i].size);
		print_batch(label, &results.batch_rate[i], &results.batch_ratio[i]);
	}
	printf("\n%-46s %11s %10s\n", "One session, no flush", "rows/s", "times");
	print_row("one-row calls", &results.relaxed_single_rate, 0);
	print_batch("batch of 1000", &results.relaxed_batch_rate, &results.relaxed_batch_ratio);
}

/* print_figures ends the run: one line a figure; false if a goal is missed. */
static bool
print_figures(void)
{
	double		cpu = results.cpu_ratio.median;
	double		batch = results.batch_ratio[BATCH_OF_GOAL].median;

	printf("\nfigure=reserve_cpu_vs_plpgsql value=%.3f goal=%.2f\n", cpu, GOAL_CPU);
	printf("figure=batch_vs_single value=%.1f goal=%.0f\n", batch, GOAL_BATCH);
	return cpu <= GOAL_CPU && batch >= GOAL_BATCH;
}

int
main(int argc, char **argv)
{
	Request    *requests;

	if (argc != 3)
		fail("usage: client CONNINFO SECONDS");
	time_limit = strtod(argv[2], NULL);
	if (time_limit < 1)
		fail("no time is left");
	signal(SIGALRM, out_of_time);
	alarm((unsigned) time_limit);
	requests = allocate(sizeof(Request) * LARGEST_BATCH);

	session_open(argv[1]);
	measure_cpu(requests);
	measure_latency(requests);
	check_alike();
	measure_batches(requests);
	measure_relaxed_batches(requests);
	measure_life(requests);
	fputs("audit    verify_conservation()\n", stderr);
	if (count_of("SELECT count(*) FROM limitledger.verify_conservation()") != 0)
		fail("verify_conservation() has found discrepancies");
	PQfinish(conn);

	print_tables();
	if (fflush(stdout) != 0 || !print_figures())
		return 1;
	free(requests);
	free(results.latencies[0]);
	free(results.latencies[1]);
	return 0;
}
