/*
 * load.c
 *	  Many clients at once: what bench/peers lets each peer serve.
 *
 *	  load TARGET PEER WORKLOAD CLIENTS SECONDS RUN [BYSTANDERS PACE]
 *
 * One thread, epoll, a connection for each client, which sends its next call when
 * it has the answer to the last one.  PostgreSQL by libpq with prepared
 * statements, Redis by its own protocol, so that all peers pay for the same
 * client.  A call is one row of `scripts` below: one or more statements, in one
 * transaction or several.  Each answer is checked; a wrong one ends the run.
 * BYSTANDERS more clients reserve from pairs of their own, PACE calls a second in
 * all (0: as fast as they can).
 *
 * Prints one line for the clients and one for the bystanders: calls per second and
 * latency within SECONDS, after a warm-up; and the units of all calls that took any,
 * so that the peer's books can be held against them.  RUN makes the ids unique.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#define UNITS			10
#define USED			7		/* of them, in a full life */
#define MANY_PAIRS		10000
#define ZIPF_PAIRS		100000
#define BATCH			1000
#define DUPLICATES		0.2
#define WARM_UP			0.25	/* of the seconds measured, and at least */
#define WARM_CALLS		2		/* of each client: the first ones fill the backend's caches */
#define MAX_STEPS		5
#define MAX_PARAMS		5
#define MAX_CLIENTS		256
#define PATIENCE		30		/* seconds without any answer */

#define countof(array)	((int) (sizeof(array) / sizeof((array)[0])))

typedef struct Client Client;
typedef struct Params Params;

/* One round trip of a call. */
typedef struct Step
{
	const char *sql;			/* NULL: `fill` writes it, as a simple query */
	void		(*fill) (Client *client, Params *params);
	void		(*check) (Client *client, PGresult *result);
} Step;

/* What a peer does for a workload. */
typedef struct Script
{
	const char *peer;
	const char *workload;		/* NULL: every one of single reserves */
	Step		steps[MAX_STEPS];
} Script;

struct Params
{
	int			count;
	const char *values[MAX_PARAMS];
	int			lengths[MAX_PARAMS];
	int			formats[MAX_PARAMS];
};

/* Latencies by powers of two, each in 64 parts: within 1.6 %. */
#define PARTS			64
#define POWERS			40
typedef struct Group
{
	int			clients;
	const Script *script;
	const char *workload;
	double		pace;			/* calls a second of one client; 0: no pause */
	uint64_t	calls;			/* while it was measured */
	double		waited;			/* seconds, the sum of their latencies */
	uint64_t	units;			/* taken for good, at any time */
	uint32_t	histogram[POWERS * PARTS];
} Group;

struct Client
{
	Group	   *group;
	PGconn	   *conn;			/* NULL: Redis */
	int			fd;
	uint32_t	events;
	int			step;
	bool		waiting;		/* for an answer */
	uint64_t	answered;		/* calls so far */
	double		sent_at;
	double		due_at;			/* when it is paced */

	/* The present call. */
	bool		repeated;
	bool		made;			/* there is one to repeat */
	uint32_t	pair;
	char		subject[24];
	char		id[40];
	char		operation[40];
	unsigned char digest[32];

	/* Between two round trips. */
	PGresult   *result;			/* of the statement that is not done yet */
	char		text[128];
	long long	available;
	char	   *arrays[MAX_PARAMS];
	char		reply[256];
	size_t		reply_length;
};

static Client clients[MAX_CLIENTS];
static Group groups[2];
static int	client_count;
static int	epoll_fd;
static int	run;
static bool measuring;
static bool stopping;
static char script_sha[41];
static double *zipf_sums;

static void fail(const char *format,...) __attribute__((format(printf, 1, 2), noreturn));

static void
fail(const char *format,...)
{
	va_list		args;

	fputs("load: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

/* ---- latencies ----------------------------------------------------------- */

static void
histogram_add(Group *group, double seconds)
{
	uint64_t	ns = (uint64_t) (seconds * 1e9) + PARTS;
	int			power = 63 - __builtin_clzll(ns);	/* at least 6 */
	int			slot = (power - 6) * PARTS + (int) ((ns >> (power - 6)) & (PARTS - 1));

	group->histogram[slot < POWERS * PARTS ? slot : POWERS * PARTS - 1]++;
}

/* percentile returns milliseconds. */
static double
percentile(const Group *group, double share)
{
	uint64_t	left = (uint64_t) (share * (double) group->calls);

	for (int slot = 0; slot < POWERS * PARTS; slot++)
	{
		if (group->histogram[slot] > left)
			return (ldexp(PARTS + slot % PARTS + 0.5, slot / PARTS) - PARTS) / 1e6;
		left -= group->histogram[slot];
	}
	return 0;
}

/* ---- requests ------------------------------------------------------------ */

/* next_random: splitmix64, another sequence for each run. */
static uint64_t
next_random(void)
{
	static uint64_t state;
	uint64_t	z;

	if (state == 0)
		state = (uint64_t) run << 40;
	z = (state += UINT64_C(0x9E3779B97F4A7C15));
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static double
next_share(void)
{
	return (double) (next_random() >> 11) * 0x1p-53;
}

static void
zipf_init(void)
{
	double		sum = 0;

	zipf_sums = malloc(ZIPF_PAIRS * sizeof(double));
	if (zipf_sums == NULL)
		fail("out of memory");
	for (int i = 0; i < ZIPF_PAIRS; i++)
		zipf_sums[i] = sum += 1.0 / (i + 1);
}

static uint32_t
zipf_next(void)
{
	double		at = next_share() * zipf_sums[ZIPF_PAIRS - 1];
	int			low = 0;
	int			high = ZIPF_PAIRS - 1;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (zipf_sums[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t) low;
}

static uint32_t
pair_next(const char *workload)
{
	if (strcmp(workload, "uniform") == 0 || strcmp(workload, "duplicates") == 0 || strcmp(workload, "batch_spread") == 0)
		return (uint32_t) (next_random() % MANY_PAIRS);
	if (strcmp(workload, "zipf") == 0)
		return zipf_next();
	return 0;
}

/* id_make gives ids as a gateway makes them: growing, with a random end. */
static void
id_make(char *id, size_t size)
{
	static unsigned long number;

	snprintf(id, size, "rl-%06d%08lX%08X", run, ++number, (unsigned) next_random());
}

static void
digest_make(unsigned char *digest)
{
	for (int at = 0; at < 32; at += 8)
	{
		uint64_t	bits = next_random();

		memcpy(digest + at, &bits, 8);
	}
}

static void
request_make(Client *client)
{
	const char *workload = client->group->workload;

	client->repeated = client->made && strcmp(workload, "duplicates") == 0 && next_share() < DUPLICATES;
	client->made = true;
	if (client->repeated)
		return;
	client->pair = pair_next(workload);
	snprintf(client->subject, sizeof(client->subject), "tenant-%u", client->pair);
	id_make(client->id, sizeof(client->id));
	snprintf(client->operation, sizeof(client->operation), "op-%s", client->id + 3);
	digest_make(client->digest);
}

/* ---- parameters ---------------------------------------------------------- */

static void
param(Params *params, const char *value, int length, int format)
{
	params->values[params->count] = value;
	params->lengths[params->count] = length;
	params->formats[params->count++] = format;
}

static void
fill_reserve(Client *client, Params *params)
{
	param(params, client->subject, 0, 0);
	param(params, client->id, 0, 0);
	param(params, (const char *) client->digest, sizeof(client->digest), 1);
}

static void
fill_operation(Client *client, Params *params)
{
	param(params, client->subject, 0, 0);
	param(params, client->id, 0, 0);
	param(params, client->operation, 0, 0);
}

static void
fill_subject(Client *client, Params *params)
{
	param(params, client->subject, 0, 0);
}

static void
fill_nothing(Client *client, Params *params)
{
	(void) client;
	(void) params;
}

static void
fill_lock(Client *client, Params *params)
{
	(void) params;
	snprintf(client->text, sizeof(client->text),
			 "BEGIN; SELECT pg_advisory_xact_lock(%u)", client->pair);
}

static void
fill_write(Client *client, Params *params)
{
	snprintf(client->text, sizeof(client->text), "%lld", client->available - UNITS);
	param(params, client->subject, 0, 0);
	param(params, client->text, 0, 0);
}

static char *
put_int32(char *at, uint32_t value)
{
	value = htonl(value);
	memcpy(at, &value, 4);
	return at + 4;
}

static char *
put_bytes(char *at, const void *bytes, size_t length)
{
	at = put_int32(at, (uint32_t) length);
	memcpy(at, bytes, length);
	return at + length;
}

/* fill_batch makes the arrays in the binary form; before the clock of the call runs. */
static void
fill_batch(Client *client, Params *params)
{
	static const uint32_t types[MAX_PARAMS] = {25, 25, 25, 20, 17};	/* text, text, text, int8, bytea */
	char	   *at[MAX_PARAMS];

	for (int i = 0; i < MAX_PARAMS; i++)
	{
		if (client->arrays[i] == NULL && (client->arrays[i] = malloc(20 + BATCH * 64)) == NULL)
			fail("out of memory");
		at[i] = put_int32(put_int32(put_int32(client->arrays[i], 1), 0), types[i]);
		at[i] = put_int32(put_int32(at[i], BATCH), 1);
	}
	for (int row = 0; row < BATCH; row++)
	{
		uint64_t	units = htobe64(UNITS);

		request_make(client);
		at[0] = put_bytes(at[0], client->subject, strlen(client->subject));
		at[1] = put_bytes(at[1], "open", 4);
		at[2] = put_bytes(at[2], client->id, strlen(client->id));
		at[3] = put_bytes(at[3], &units, sizeof(units));
		at[4] = put_bytes(at[4], client->digest, sizeof(client->digest));
	}
	for (int i = 0; i < MAX_PARAMS; i++)
		param(params, client->arrays[i], (int) (at[i] - client->arrays[i]), 1);
}

/* ---- answers ------------------------------------------------------------- */

static void
check_row(PGresult *result, const char *first, const char *second)
{
	if (PQntuples(result) != 1 || strcmp(PQgetvalue(result, 0, 0), first) != 0 ||
		(second != NULL && strcmp(PQgetvalue(result, 0, 1), second) != 0))
		fail("the answer is %s %s instead of %s %s",
			 PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "no row",
			 PQntuples(result) == 1 && PQnfields(result) > 1 ? PQgetvalue(result, 0, 1) : "",
			 first, second == NULL ? "" : second);
}

static void
check_reserve(Client *client, PGresult *result)
{
	check_row(result, "ACCEPTED", client->repeated ? "t" : "f");
	client->group->units += client->repeated ? 0 : UNITS;
}

static void
check_refusal(Client *client, PGresult *result)
{
	(void) client;
	check_row(result, "REFUSED", "f");
}

static void
check_step(Client *client, PGresult *result)
{
	(void) client;
	check_row(result, "ACCEPTED", "f");
}

static void
check_settle(Client *client, PGresult *result)
{
	check_row(result, "ACCEPTED", "f");
	client->group->units += USED;
}

static void
check_one(Client *client, PGresult *result)
{
	(void) client;
	check_row(result, "1", NULL);
}

static void
check_taken(Client *client, PGresult *result)
{
	if (PQntuples(result) != 1)
		fail("%d rows were updated instead of 1", PQntuples(result));
	client->group->units += UNITS;
}

static void
check_not_taken(Client *client, PGresult *result)
{
	(void) client;
	if (PQntuples(result) != 0)
		fail("a full pair gave units");
}

static void
check_nothing(Client *client, PGresult *result)
{
	(void) client;
	(void) result;
}

static void
check_read(Client *client, PGresult *result)
{
	if (PQntuples(result) != 1)
		fail("no bucket of %s", client->subject);
	client->available = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	if (client->available < UNITS)
		fail("the bucket of %s is empty", client->subject);
}

static void
check_written(Client *client, PGresult *result)
{
	if (strcmp(PQcmdTuples(result), "1") != 0)
		fail("no bucket was updated");
	client->group->units += UNITS;
}

static void
check_batch(Client *client, PGresult *result)
{
	check_row(result, "1000", NULL);
	client->group->units += UNITS * BATCH;
}

static void
check_insert(Client *client, PGresult *result)
{
	if (strcmp(PQcmdTuples(result), "1000") != 0)
		fail("%s rows were inserted", PQcmdTuples(result));
	client->group->units += UNITS * BATCH;
}

/* ---- what each peer does ------------------------------------------------- */

#define OF(schema, call) "SELECT outcome, replayed, state, dimension, retry_after_ms FROM " schema "." call
#define RESERVE(schema, route) \
	{OF(schema, "reserve_capacity($1, '" route "', $2, 10, $3)"), fill_reserve
#define LIFE(schema) \
	RESERVE(schema, "open"), check_step}, \
	{OF(schema, "start_reservation($1, $2, $3)"), fill_operation, check_step}, \
	{OF(schema, "settle_usage($1, $2, $3, 7)"), fill_operation, check_settle}
#define SINGLE(peer, schema) \
	{peer, "life", {LIFE(schema)}}, \
	{peer, "refusal", {RESERVE(schema, "full"), check_refusal}}}, \
	{peer, NULL, {RESERVE(schema, "open"), check_reserve}}}
#define BATCHES(peer, workload) \
	{peer, workload, {{"SELECT count(*) FROM limitledger.reserve_capacity_batch($1, $2, $3, $4, $5)" \
		" WHERE outcome = 'ACCEPTED' AND NOT replayed", fill_batch, check_batch}}}
#define INSERT(workload) \
	{"insert", workload, {{"INSERT INTO bench_insert.reservation (subject, route, reservation_id, generation," \
		" epoch, state, asked_units, reserved_units, request_digest, priority, expires_at, reserved_at)" \
		" SELECT a.subject, a.route, a.id, 1, '2026-01-01', 'RESERVED', a.units, a.units, a.digest, 0," \
		" now() + interval '1 day', now()" \
		" FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[])" \
		" AS a (subject, route, id, units, digest)", fill_batch, check_insert}}}
#define UPDATE(table) \
	{"UPDATE bench_update." table " SET available = available - 10, reserved = reserved + 10" \
	 " WHERE subject = $1 AND available >= 10 RETURNING available", fill_subject

static const Script scripts[] = {
	BATCHES("direct", "batch_hot"),
	BATCHES("direct", "batch_spread"),
	BATCHES("grouped", "batch_hot"),
	BATCHES("grouped", "batch_spread"),
	INSERT("batch_hot"),
	INSERT("batch_spread"),
	SINGLE("direct", "limitledger"),
	SINGLE("grouped", "limitledger"),
	SINGLE("plpgsql", "bench_baseline"),
	{"update", "refusal", {UPDATE("full_budget"), check_not_taken}}},
	{"update", NULL, {UPDATE("budget"), check_taken}}},
	{"advisory", NULL, {
		{NULL, fill_lock, check_nothing},
		{"SELECT available FROM bench_advisory.bucket WHERE subject = $1", fill_subject, check_read},
		{"UPDATE bench_advisory.bucket SET available = $2 WHERE subject = $1", fill_write, check_written},
	{"COMMIT", fill_nothing, check_nothing}}},
	{"select1", NULL, {{"SELECT 1", fill_nothing, check_one}}},
	{"redis", NULL, {{NULL, NULL, NULL}}},
};

static const Script *
script_of(const char *peer, const char *workload)
{
	for (int i = 0; i < countof(scripts); i++)
		if (strcmp(scripts[i].peer, peer) == 0 &&
			(scripts[i].workload == NULL || strcmp(scripts[i].workload, workload) == 0))
			return &scripts[i];
	fail("%s knows no %s", peer, workload);
}

/*
 * What Redis does: an idempotency record and the balance, in one step.  There is
 * no refill and no deadline in it.
 */
static const char redis_script[] =
"local stored = redis.call('GET', KEYS[2]) "
"if stored then if stored == ARGV[2] then return 2 else return -1 end end "
"local units = tonumber(ARGV[1]) "
"if tonumber(redis.call('HGET', KEYS[1], 'available') or '0') < units then return 0 end "
"redis.call('HINCRBY', KEYS[1], 'available', -units) "
"redis.call('HINCRBY', KEYS[1], 'reserved', units) "
"redis.call('SET', KEYS[2], ARGV[2], 'EX', 86400) "
"return 1";

/* ---- the two protocols --------------------------------------------------- */

static void
watch(Client *client, uint32_t events)
{
	struct epoll_event event = {.events = events,.data.ptr = client};

	if (client->events != events &&
		epoll_ctl(epoll_fd, client->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, client->fd, &event) != 0)
		fail("epoll: %s", strerror(errno));
	client->events = events;
}

static void
flush(Client *client)
{
	int			left = PQflush(client->conn);

	if (left < 0)
		fail("%s", PQerrorMessage(client->conn));
	watch(client, left > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void
postgres_send(Client *client)
{
	const Step *step = &client->group->script->steps[client->step];
	Params		params = {0};
	char		name[16];
	int			sent;

	step->fill(client, &params);
	snprintf(name, sizeof(name), "s%d", client->step);
	if (client->step == 0)
		client->sent_at = now();
	if (step->sql == NULL)
		sent = PQsendQuery(client->conn, client->text);
	else
		sent = PQsendQueryPrepared(client->conn, name, params.count, params.values,
								   params.lengths, params.formats, 0);
	if (!sent)
		fail("%s", PQerrorMessage(client->conn));
	flush(client);
}

/* postgres_receive returns whether the answer was complete; of several statements, the last one's counts. */
static bool
postgres_receive(Client *client)
{
	if (!PQconsumeInput(client->conn))
		fail("%s", PQerrorMessage(client->conn));
	while (!PQisBusy(client->conn))
	{
		PGresult   *result = PQgetResult(client->conn);

		if (result == NULL)
		{
			client->group->script->steps[client->step].check(client, client->result);
			PQclear(client->result);
			client->result = NULL;
			return true;
		}
		if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
			fail("%s", PQresultErrorMessage(result));
		PQclear(client->result);
		client->result = result;
	}
	return false;
}

static void
postgres_open(Client *client, const char *conninfo, const char *peer)
{
	const Script *script = client->group->script;
	char		name[16];

	client->conn = PQconnectdb(conninfo);
	if (PQstatus(client->conn) != CONNECTION_OK)
		fail("%s", PQerrorMessage(client->conn));
	if (strcmp(peer, "grouped") == 0)
	{
		PGresult   *result = PQexec(client->conn, "SET limitledger.grouped = on");

		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			fail("%s", PQerrorMessage(client->conn));
		PQclear(result);
	}
	for (int i = 0; i < MAX_STEPS && script->steps[i].fill != NULL; i++)
	{
		PGresult   *result;

		if (script->steps[i].sql == NULL)
			continue;
		snprintf(name, sizeof(name), "s%d", i);
		result = PQprepare(client->conn, name, script->steps[i].sql, 0, NULL);
		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			fail("%s", PQerrorMessage(client->conn));
		PQclear(result);
	}
	client->fd = PQsocket(client->conn);
	if (PQsetnonblocking(client->conn, 1) != 0)
		fail("%s", PQerrorMessage(client->conn));
}

static void
redis_write(Client *client, const char *bytes, size_t length)
{
	if (write(client->fd, bytes, length) != (ssize_t) length)
		fail("redis takes nothing: %s", strerror(errno));
}

static void
redis_send(Client *client)
{
	char		bytes[512];
	char		key[64];
	int			length;

	snprintf(key, sizeof(key), "budget:%s%s",
			 client->subject, strcmp(client->group->workload, "refusal") == 0 ? ":full" : "");
	length = snprintf(bytes, sizeof(bytes),
					  "*7\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n$2\r\n10\r\n$32\r\n",
					  script_sha, strlen(key), key, strlen(client->id), client->id);
	memcpy(bytes + length, client->digest, 32);
	memcpy(bytes + length + 32, "\r\n", 2);
	client->sent_at = now();
	redis_write(client, bytes, (size_t) length + 34);
	watch(client, EPOLLIN);
}

/* redis_line reads on until a line is there, without its end. */
static bool
redis_line(Client *client)
{
	ssize_t		got = read(client->fd, client->reply + client->reply_length,
						   sizeof(client->reply) - 1 - client->reply_length);

	if (got <= 0)
		fail("redis is gone");
	client->reply_length += (size_t) got;
	if (client->reply[client->reply_length - 1] != '\n')
		return false;
	client->reply[client->reply_length] = '\0';
	client->reply_length = 0;
	return true;
}

static bool
redis_receive(Client *client)
{
	const char *right = strcmp(client->group->workload, "refusal") == 0 ? ":0\r\n" :
		client->repeated ? ":2\r\n" : ":1\r\n";

	if (!redis_line(client))
		return false;
	if (strcmp(client->reply, right) != 0)
		fail("redis answers %s instead of %s", client->reply, right);
	if (right[1] == '1')
		client->group->units += UNITS;
	return true;
}

static void
redis_open(Client *client, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char		bytes[1024];
	int			length;

	client->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (client->fd < 0 || connect(client->fd, (struct sockaddr *) &address, sizeof(address)) != 0)
		fail("no redis at %s: %s", path, strerror(errno));
	if (script_sha[0] != '\0')
		return;
	length = snprintf(bytes, sizeof(bytes), "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
					  sizeof(redis_script) - 1, redis_script);
	redis_write(client, bytes, (size_t) length);
	while (!redis_line(client));
	if (sscanf(client->reply, "$40\r\n%40s", script_sha) != 1)
		fail("redis takes no script: %s", client->reply);
}

/* ---- the loop ------------------------------------------------------------ */

static void
call_send(Client *client)
{
	if (client->step == 0)
		request_make(client);
	client->waiting = true;
	if (client->conn != NULL)
		postgres_send(client);
	else
		redis_send(client);
}

/* call_next sends the next call, or waits until it is due. */
static void
call_next(Client *client, double at)
{
	if (stopping)
		return;
	if (client->group->pace == 0 || client->due_at <= at)
		call_send(client);
}

static void
call_answered(Client *client)
{
	Group	   *group = client->group;
	double		at;

	if (!(client->conn != NULL ? postgres_receive(client) : redis_receive(client)))
	{
		if (client->conn != NULL)
			flush(client);
		return;
	}
	client->waiting = false;
	if (client->conn != NULL && client->step + 1 < MAX_STEPS &&
		group->script->steps[client->step + 1].fill != NULL)
	{
		client->step++;
		call_send(client);
		return;
	}
	client->step = 0;
	client->answered++;
	at = now();
	if (measuring)
	{
		group->calls++;
		group->waited += at - client->sent_at;
		histogram_add(group, at - client->sent_at);
	}
	/* A paced client that is late does not catch up: what it missed is lost rate. */
	if (group->pace > 0)
		client->due_at = fmax(client->due_at + 1 / group->pace, at);
	call_next(client, at);
}

/* paced sends what is due and returns the milliseconds until the next. */
static int
paced(double at, int most)
{
	double		next = at + most / 1000.0;

	if (groups[1].pace == 0 || stopping)
		return most;
	for (int i = groups[0].clients; i < client_count; i++)
		if (!clients[i].waiting)
		{
			call_next(&clients[i], at);
			if (!clients[i].waiting && clients[i].due_at < next)
				next = clients[i].due_at;
		}
	return (int) ceil((next - at) * 1000);
}

static bool
any_waiting(void)
{
	for (int i = 0; i < client_count; i++)
		if (clients[i].waiting)
			return true;
	return false;
}

/* serve goes on until `end`, or, when stopping, until nobody waits any more. */
static void
serve(double end)
{
	struct epoll_event events[MAX_CLIENTS];
	double		heard = now();

	for (;;)
	{
		double		at = now();
		int			timeout;
		int			count;

		if (stopping ? !any_waiting() : at >= end)
			return;
		timeout = paced(at, stopping ? 100 : (int) fmin(100, ceil((end - at) * 1000)));
		count = epoll_wait(epoll_fd, events, MAX_CLIENTS, timeout);
		if (count > 0)
			heard = at;
		else if (at > heard + PATIENCE)
			fail("no answer for %d seconds", PATIENCE);
		for (int i = 0; i < count; i++)
			call_answered(events[i].data.ptr);
	}
}

static bool
all_warm(void)
{
	for (int i = 0; i < client_count; i++)
		if (clients[i].answered < WARM_CALLS)
			return false;
	return true;
}

static void
report(const char *who, const Group *group, double seconds)
{
	printf("%s calls=%llu rate=%.1f p50=%.3f p99=%.3f mean=%.3f units=%llu\n", who,
		   (unsigned long long) group->calls, (double) group->calls / seconds,
		   percentile(group, 0.5), percentile(group, 0.99),
		   group->calls == 0 ? 0 : group->waited * 1000 / (double) group->calls,
		   (unsigned long long) group->units);
}

int
main(int argc, char **argv)
{
	double		seconds;
	double		began;
	const char *peer;

	if (argc != 7 && argc != 9)
		fail("usage: load TARGET PEER WORKLOAD CLIENTS SECONDS RUN [BYSTANDERS PACE]");
	peer = argv[2];
	groups[0].workload = argv[3];
	groups[0].script = script_of(peer, argv[3]);
	groups[0].clients = atoi(argv[4]);
	seconds = strtod(argv[5], NULL);
	run = atoi(argv[6]);
	if (argc == 9)
	{
		/* Those who ask for other pairs while a load is on are served by the ledger. */
		const char *bystander = strcmp(peer, "select1") == 0 ? "direct" : peer;

		groups[1].workload = "uniform";
		groups[1].script = script_of(bystander, "uniform");
		groups[1].clients = atoi(argv[7]);
		groups[1].pace = strtod(argv[8], NULL) / groups[1].clients;
	}
	client_count = groups[0].clients + groups[1].clients;
	if (client_count < 1 || client_count > MAX_CLIENTS || seconds <= 0 || run < 1)
		fail("1 to %d clients, some seconds, a run from 1", MAX_CLIENTS);

	zipf_init();
	epoll_fd = epoll_create1(0);
	for (int i = 0; i < client_count; i++)
	{
		clients[i].group = &groups[i >= groups[0].clients];
		if (strcmp(peer, "redis") == 0)
			redis_open(&clients[i], argv[1]);
		else
			postgres_open(&clients[i], argv[1], peer);
	}

	began = now();
	for (int i = 0; i < client_count; i++)
	{
		clients[i].due_at = began + next_share() * 0.01;
		call_next(&clients[i], began);
	}
	serve(began + seconds * WARM_UP);
	while (!all_warm())
		serve(now() + 0.01);
	measuring = true;
	began = now();
	serve(began + seconds);
	measuring = false;
	seconds = now() - began;
	stopping = true;
	serve(0);

	report("clients", &groups[0], seconds);
	if (groups[1].clients > 0)
		report("bystanders", &groups[1], seconds);
	for (int i = 0; i < client_count; i++)
		if (clients[i].conn != NULL)
			PQfinish(clients[i].conn);
	return 0;
}
