/*
 * ddl.c
 *	  What DDL means for the workers; only in a preloaded library.
 *
 * DROP DATABASE, ALTER DATABASE RENAME or SET TABLESPACE and CREATE DATABASE
 * TEMPLATE need a database that nobody is in.  They ask our workers to leave
 * and keep the launcher away until they are done; the server then waits for
 * whoever is on the way out, as it does for anybody.
 *
 * CREATE, ALTER and DROP of an extension, by whatever command, make the workers
 * look again once they have committed.
 */
#include "postgres.h"

#include "worker.h"

#include <signal.h>

#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define AWAY		(10 * USECS_PER_MINUTE) /* if the command never says that it is done */
#define PATIENCE	(2 * USECS_PER_SEC)

static ProcessUtility_hook_type previous_utility = NULL;
static object_access_hook_type previous_access = NULL;

/* the database that the statement needs for itself, or NULL */
static const char *
wanted_alone(Node *statement)
{
	ListCell   *cell;

	if (IsA(statement, DropdbStmt))
		return ((DropdbStmt *) statement)->dbname;
	if (IsA(statement, RenameStmt) && ((RenameStmt *) statement)->renameType == OBJECT_DATABASE)
		return ((RenameStmt *) statement)->subname;
	if (IsA(statement, AlterDatabaseStmt))
	{
		foreach(cell, ((AlterDatabaseStmt *) statement)->options)
			if (strcmp(((DefElem *) lfirst(cell))->defname, "tablespace") == 0)
				return ((AlterDatabaseStmt *) statement)->dbname;
	}
	if (IsA(statement, CreatedbStmt))
	{
		foreach(cell, ((CreatedbStmt *) statement)->options)
		{
			DefElem    *option = lfirst(cell);

			if (strcmp(option->defname, "template") == 0 && option->arg != NULL)
				return defGetString(option);
		}
	}
	return NULL;
}

/* ask wakes the workers of an entry and cancels what they do; the lock is held. */
static bool
ask(LLBoardDatabase *entry)
{
	bool		there = false;

	for (int kind = 0; kind < LL_WORKER_KINDS; kind++)
	{
		LLBoardWorker *worker = &entry->worker[kind];

		if (worker->pid == 0)
			continue;
		there = true;
		SetLatch(worker->latch);
		kill(worker->pid, SIGINT);
	}
	return there;
}

/*
 * send_away asks the workers of a database to leave, waits a little, and keeps
 * others from coming.  Returns false if there is nobody to send.
 */
static bool
send_away(Oid database)
{
	TimestampTz ends_at = GetCurrentTimestamp() + PATIENCE;
	bool		there = true;

	while (there && GetCurrentTimestamp() < ends_at)
	{
		LLBoardDatabase *entry;

		LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
		entry = ll_board_find(database);
		if (entry != NULL)
			entry->away_until = GetCurrentTimestamp() + AWAY;
		there = entry != NULL && ask(entry);
		LWLockRelease(ll_board->lock);
		if (entry == NULL)
			return false;
		if (!there)
			break;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

/* let_back opens the database to workers again, if it is still there. */
static void
let_back(Oid database)
{
	LLBoardDatabase *entry;

	LWLockAcquire(ll_board->lock, LW_EXCLUSIVE);
	entry = ll_board_find(database);
	if (entry != NULL)
		entry->away_until = 0;
	ll_board->rescan = true;
	ll_board_wake_launcher();
	LWLockRelease(ll_board->lock);
}

static void
utility(PlannedStmt *statement, const char *query, bool read_only,
		ProcessUtilityContext context, ParamListInfo params,
		QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	ProcessUtility_hook_type next = previous_utility != NULL
		? previous_utility : standard_ProcessUtility;
	const char *name = ll_board != NULL ? wanted_alone(statement->utilityStmt) : NULL;
	Oid			database = name != NULL ? get_database_oid(name, true) : InvalidOid;

	/* who may not do it gets the server's answer, and disturbs nobody */
	if (!OidIsValid(database) || !pg_database_ownercheck(database, GetUserId()) ||
		!send_away(database))
	{
		next(statement, query, read_only, context, params, environment, dest, completion);
		return;
	}
	PG_TRY();
	{
		next(statement, query, read_only, context, params, environment, dest, completion);
	}
	PG_CATCH();
	{
		let_back(database);
		PG_RE_THROW();
	}
	PG_END_TRY();
	/* one that was dropped is taken off the board, and nobody goes there until then */
	if (!IsA(statement->utilityStmt, DropdbStmt))
		let_back(database);
}

static void
on_access(ObjectAccessType type, Oid class, Oid object, int sub, void *arg)
{
	if (previous_access != NULL)
		previous_access(type, class, object, sub, arg);
	if (type != OAT_POST_CREATE && type != OAT_POST_ALTER && type != OAT_DROP)
		return;
	if (class == ExtensionRelationId)
		ll_board_note_extension();
	else if (class == DatabaseRelationId)
		ll_board_note_databases();
}

/* ll_ddl_init puts the hooks in; for _PG_init while preloading. */
void
ll_ddl_init(void)
{
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
	previous_access = object_access_hook;
	object_access_hook = on_access;
}
