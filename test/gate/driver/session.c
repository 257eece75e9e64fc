/*
 * session.c
 *	  One connection: opened, closed, and looked at while it waits.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/sockios.h>

#include "driver.h"

/* What a server says while it goes down is no news here. */
static void
be_quiet(void *arg, const char *message)
{
	(void) arg;
	(void) message;
}

/* connect_to opens a connection for the driver's own work; NULL: there is none. */
PGconn *
connect_to(const Server *server, const char *database)
{
	char		conninfo[512];
	PGconn	   *conn;

	/* The lock time-out is the last net: nothing here waits that long on purpose. */
	snprintf(conninfo, sizeof(conninfo),
			 "host=%s user=postgres dbname=%s application_name=gate options='-c lock_timeout=20s'", server->folder, database);
	conn = PQconnectdb(conninfo);
	if (PQstatus(conn) != CONNECTION_OK)
	{
		PQfinish(conn);
		return NULL;
	}
	PQsetNoticeProcessor(conn, be_quiet, NULL);
	return conn;
}

bool
session_connect(Session *session, const char *database)
{
	char		path[64];

	session->conn = connect_to(session->lane->server, database);
	if (session->conn == NULL)
		return false;
	if (PQsetnonblocking(session->conn, 1) != 0 || PQenterPipelineMode(session->conn) != 1)
		fail("no asynchronous connection: %s", PQerrorMessage(session->conn));
	session->pid = PQbackendPID(session->conn);
	snprintf(path, sizeof(path), "/proc/%d/stat", session->pid);
	session->stat = open(path, O_RDONLY | O_CLOEXEC);
	memset(session->prepared, 0, sizeof(session->prepared));
	session->clock = -1;
	session->busy = session->aborted = session->ending = session->savepoint = session->cancel = false;
	session->commands = session->answered = 0;
	session->transaction = session->call = 0;
	watch(session);
	return true;
}

void
session_close(Session *session)
{
	if (session->conn == NULL)
		return;
	PQfinish(session->conn);
	session->conn = NULL;
	close(session->stat);
	session->busy = false;
}

/*
 * session_asleep: the backend has read all that was sent and sleeps.  As it has
 * not answered, it waits for a lock.  Two looks must agree: it may have slept for
 * an instant only.
 */
bool
session_asleep(Session *session)
{
	char		stat[512];
	int			unread = 0;
	ssize_t		length;
	char	   *name_end;

	if (ioctl(PQsocket(session->conn), SIOCOUTQ, &unread) != 0 || unread > 0)
	{
		session->asleep = 0;
		return false;
	}
	length = pread(session->stat, stat, sizeof(stat) - 1, 0);
	if (length <= 0)
		return false;			/* it is gone: its socket will say so */
	stat[length] = '\0';
	name_end = strrchr(stat, ')');
	if (name_end == NULL || name_end[2] != 'S')
		session->asleep = 0;
	else
		session->asleep++;
	return session->asleep > 1;
}

static PGresult *
sql_run(PGconn *conn, const char *format, va_list args)
{
	static Text sql;
	char		part[16384];
	PGresult   *result;

	text_clear(&sql);
	vsnprintf(part, sizeof(part), format, args);
	text_add(&sql, "%s", part);
	result = PQexec(conn, sql.data);
	if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
		fail("%s: %s", sql.data, PQerrorMessage(conn));
	return result;
}

/* sql_do runs a command of the driver's own. */
void
sql_do(PGconn *conn, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	PQclear(sql_run(conn, format, args));
	va_end(args);
}

/* sql_value returns the one value of a query, to be freed. */
char *
sql_value(PGconn *conn, const char *format,...)
{
	va_list		args;
	PGresult   *result;
	char	   *value;

	va_start(args, format);
	result = sql_run(conn, format, args);
	va_end(args);
	value = strdup(PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
	PQclear(result);
	return value;
}
