/*
 * server.c
 *	  The server of the run, and how it is made to fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"

Server		servers[SERVERS] = {[REAL] = {.workers = true}};

static char own_folder[64];		/* of the driver: what the server may read, but does not own */
static volatile int32_t *sync_fault;
static const char *tools;

/* run_line runs a command and returns its first line. */
static bool
run_line(char *line, size_t size, const char *format,...) __attribute__((format(printf, 3, 4)));

static bool
run_line(char *line, size_t size, const char *format,...)
{
	char		command[2048];
	va_list		args;
	FILE	   *out;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	out = popen(command, "r");
	if (out == NULL || fgets(line, (int) size, out) == NULL)
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return out != NULL && pclose(out) == 0;
}

/* What tools/server is called with, so that the server has sync.so in it. */
static void
preload(char *text, size_t size)
{
	snprintf(text, size, "GATE_SYNC=%s/flush LD_PRELOAD=%s/sync.so", own_folder, own_folder);
}

/*
 * start_one starts a server with tools/server.  It does without fsync: what dies
 * here are processes, never the machine, so the system's cache has it all.
 */
static void
start_one(Server *server)
{
	char		environment[256];

	preload(environment, sizeof(environment));
	if (!run_line(server->folder, sizeof(server->folder),
				  "%s %s/tools/server start fsync=off full_page_writes=off autovacuum=off jit=off"
				  " shared_buffers=256MB max_wal_size=16GB checkpoint_timeout=1h wal_level=minimal max_wal_senders=0"
				  " max_connections=200 max_worker_processes=24 deadlock_timeout=15ms update_process_title=off"
				  " plan_cache_mode=force_generic_plan track_activities=off track_counts=off"
				  " log_min_messages=fatal log_min_error_statement=panic log_checkpoints=off%s",
				  environment, tools,
				  server->workers ? " shared_preload_libraries=limitledger limitledger.worker_limit=12" : ""))
		fail("the server did not start");
}

/* servers_start starts both, with a file that makes a flush of one fail. */
void
servers_start(const char *root)
{
	char		path[128];
	char		line[256];
	int			file;

	tools = root;
	strcpy(own_folder, "/tmp/gate.XXXXXX");
	if (mkdtemp(own_folder) == NULL || chmod(own_folder, 0755) != 0)
		fail("no folder: %s", strerror(errno));
	snprintf(path, sizeof(path), "%s/flush", own_folder);
	file = open(path, O_RDWR | O_CREAT, 0666);
	if (file < 0 || fchmod(file, 0666) != 0 || ftruncate(file, sizeof(int32_t)) != 0)
		fail("%s can't be made: %s", path, strerror(errno));
	sync_fault = mmap(NULL, sizeof(int32_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (!run_line(line, sizeof(line), "cp %s/build/gate/sync.so %s/", root, own_folder))
		fail("no %s/build/gate/sync.so", root);

	for (int i = 0; i < SERVERS; i++)
		if (i == VIRTUAL || options.real_lanes > 0)
			start_one(&servers[i]);
}

void
servers_stop(void)
{
	char		line[16];

	for (int i = 0; i < SERVERS; i++)
		if (servers[i].folder[0] != '\0')
			run_line(line, sizeof(line), "%s/tools/server stop %s", tools, servers[i].folder);
	run_line(line, sizeof(line), "rm -r %s", own_folder);
}

/* server_kill_and_start kills the postmaster, as nothing else would end it, and starts it again. */
void
server_kill_and_start(Server *server)
{
	char		environment[256];
	char		path[300];
	char		line[256];
	FILE	   *file;
	int			pid = 0;

	snprintf(path, sizeof(path), "%s/data/postmaster.pid", server->folder);
	file = fopen(path, "r");
	if (file == NULL || fscanf(file, "%d", &pid) != 1 || pid <= 1)
		fail("no pid in %s", path);
	fclose(file);
	if (kill(pid, SIGKILL) != 0)
		fail("the server can't be killed: %s", strerror(errno));
	while (kill(pid, 0) == 0)
		usleep(5000);
	preload(environment, sizeof(environment));
	/* Its children end on their own; while one is left, no other server may start. */
	for (int tries = 0; tries < 100; tries++)
	{
		if (run_line(line, sizeof(line), "%s %s/tools/server crash %s 2>/dev/null", environment, tools, server->folder))
			return;
		usleep(50000);
	}
	fail("the server does not start again, see %s/server.log", server->folder);
}

void
server_wait(Server *server)
{
	for (int tries = 0; tries < 1200; tries++)
	{
		PGconn	   *conn = connect_to(server, "postgres");

		if (conn != NULL)
		{
			PQfinish(conn);
			return;
		}
		usleep(25000);
	}
	fail("the server takes no connections any more, see %s/server.log", server->folder);
}

void
server_flush(Server *server, bool on)
{
	PGconn	   *conn = connect_to(server, "postgres");

	if (conn == NULL)
		fail("no connection");
	sql_do(conn, "ALTER SYSTEM SET fsync = %s", on ? "on" : "off");
	sql_do(conn, "SELECT pg_reload_conf()");
	sql_do(conn, "SELECT pg_sleep(0.2)");
	PQfinish(conn);
}

void
server_fail_flush(int which)
{
	*sync_fault = which;
}

bool
server_flush_failed(void)
{
	return *sync_fault == -1;
}

/* server_make_key makes a signing key that the server reads; `public_line` is for those who trust it. */
void
server_make_key(Server *server, const char *name, char *public_line, size_t size)
{
	if (!run_line(public_line, size,
				  "if [ $(id -u) = 0 ]; then as='runuser -u postgres --'; fi; cd / && $as %s/tools/make-signing-key %s/%s.key %s",
				  tools, server->folder, name, name))
		fail("no key was made");
}
