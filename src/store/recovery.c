/*
 * recovery.c
 *	  Whether this database is the original.  See recovery.h.
 *
 * A look compares three things: what the row of `incarnation` says of where it
 * lives (server, database, table, data folder, timeline) with where it is; its
 * incarnation with those of the witness file; and the position of the
 * write-ahead log with the one that the file has seen.
 *
 * The first look after a start of the server replaces the incarnation, so that
 * of two copies that see one file only one goes on.  In order: the row is
 * locked; the file names the old one and the new one; the row is written; the
 * transaction commits; the file names the new one alone.  A crash or a
 * ROLLBACK before the commit leaves the old one in both, a crash behind it the
 * new one in both, and the next look tidies the file up.
 *
 * No look waits for another transaction (F3).  The row is read as committed, without a
 * lock; if the file does not name what was read, the row is read again, since
 * the file is never ahead of the row by more than the new name.  Whoever wants
 * to replace the incarnation and finds the row locked leaves that to the one who
 * has the lock.  Changes of the file follow from what is in it, under its lock,
 * so nobody writes back what somebody else has replaced.
 */
#include "postgres.h"

#include "recovery.h"

#include "access/sysattr.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "clock.h"
#include "columns.h"
#include "commands/trigger.h"
#include "durability.h"
#include "errors.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "rows.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "table.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/wait_event.h"
#include "witness.h"

PG_FUNCTION_INFO_V1(limitledger_guard_incarnation);

/* How long a call, and a commit, wait for their turn at the file. */
#define TURN_MS			10000
#define COMMIT_TURN_MS	1000

static char *witness_file = NULL;
static bool admit_in_recovery = true;
static bool writing_row = false;	/* for the guard of the table */

/* The row, as it was read. */
typedef struct Row
{
	bool		found;
	bool		ours;			/* this transaction wrote it */
	TupleTableSlot *slot;
	pg_uuid_t	incarnation;
	int64		system_identifier;
	Oid			database_oid;
	Oid			table_oid;
	char		data_folder[MAXPGPATH];
	TimeLineID	timeline;
	TimestampTz server_started;
	TimestampTz acknowledged_at;
} Row;

/* One look at row and file. */
typedef struct Look
{
	Row			row;
	LLWitness	witness;
	LLRecovery	status;
	const char *detail;
	bool		unnamed;		/* it failed because the file names others */
} Look;

/*
 * The incarnation that this transaction has put beside the old one, in the
 * file and in its row.  Like the note of durability.c it follows savepoints.
 */
static struct
{
	int			level;			/* nesting level whose work it is; 0: none */
	char		path[MAXPGPATH];
	pg_uuid_t	incarnation;
}			pending;

/* What was found about admission, once per transaction. */
static struct
{
	LocalTransactionId transaction;
	bool		stops;
}			admission;

static bool
same_uuid(const pg_uuid_t *a, const pg_uuid_t *b)
{
	return memcmp(a, b, sizeof(pg_uuid_t)) == 0;
}

/* ll_recovery_name gives the word for a status. */
const char *
ll_recovery_name(LLRecovery status)
{
	static const char *const names[] = {
		[LL_RECOVERY_NORMAL] = "normal",[LL_RECOVERY_UNSET] = "unset",
		[LL_RECOVERY_PROMOTED] = "promoted",[LL_RECOVERY_QUARANTINED] = "quarantined"
	};

	return names[status];
}

/* here resolves the data folder; empty: it can't be told, and equals nothing. */
static void
here(char folder[MAXPGPATH])
{
	char	   *resolved = realpath(DataDir, NULL);

	strlcpy(folder, resolved != NULL && strlen(resolved) < MAXPGPATH ? resolved : "", MAXPGPATH);
	free(resolved);
}

static bool
file_is_set(void)
{
	return witness_file != NULL && witness_file[0] != '\0';
}

/* ---- the row ------------------------------------------------------------ */

static void
take_row(Row *row)
{
	Datum	   *values;
	bool		null;

	slot_getallattrs(row->slot);
	values = row->slot->tts_values;
	row->found = true;
	row->ours = TransactionIdIsCurrentTransactionId(
		DatumGetTransactionId(slot_getsysattr(row->slot, MinTransactionIdAttributeNumber, &null)));
	row->incarnation = *DatumGetUUIDP(values[LL_INCARNATION_ID]);
	row->system_identifier = DatumGetInt64(values[LL_INCARNATION_SYSTEM_IDENTIFIER]);
	row->database_oid = DatumGetObjectId(values[LL_INCARNATION_DATABASE_OID]);
	row->table_oid = DatumGetObjectId(values[LL_INCARNATION_TABLE_OID]);
	text_to_cstring_buffer(DatumGetTextPP(values[LL_INCARNATION_DATA_FOLDER]),
						   row->data_folder, MAXPGPATH);
	row->timeline = (TimeLineID) DatumGetInt32(values[LL_INCARNATION_TIMELINE]);
	row->server_started = DatumGetTimestampTz(values[LL_INCARNATION_SERVER_STARTED]);
	row->acknowledged_at = DatumGetTimestampTz(values[LL_INCARNATION_ACKNOWLEDGED_AT]);
}

/* read_row reads it as it is committed, or was written by this transaction. */
static void
read_row(Row *row, Snapshot snapshot)
{
	LLScan	   *scan = ll_scan_begin(LL_INDEX_INCARNATION, snapshot, NULL, 0);

	if (row->slot == NULL)
		row->slot = ll_table_slot(LL_TABLE_INCARNATION);
	row->found = ll_scan_next(scan, row->slot);
	ll_scan_end(scan);
	if (row->found)
		take_row(row);
}

/* ---- judging ------------------------------------------------------------ */

/* say is the answer of a look, until something worse is found. */
static void
say(Look *look, LLRecovery status, const char *detail)
{
	look->status = status;
	look->detail = detail;
}

/* judge_row holds the row against where it is; true: nothing speaks against it. */
static bool
judge_row(Look *look)
{
	const Row  *row = &look->row;

	if (!row->found)
		say(look, LL_RECOVERY_UNSET, file_is_set()
			? "no incarnation was acknowledged in this database"
			: "limitledger.witness_file is not set, and no incarnation was acknowledged");
	else if (row->system_identifier != (int64) GetSystemIdentifier())
		say(look, LL_RECOVERY_QUARANTINED, "the ledger was acknowledged on another server");
	else if (row->database_oid != MyDatabaseId)
		say(look, LL_RECOVERY_QUARANTINED, "the ledger was acknowledged in another database");
	else if (row->table_oid != RelationGetRelid(ll_table(LL_TABLE_INCARNATION)))
		say(look, LL_RECOVERY_QUARANTINED, "the ledger was restored from a dump");
	else if (!file_is_set())
		say(look, LL_RECOVERY_UNSET, "limitledger.witness_file is not set");
	else
		return true;
	return false;
}

/*
 * judge_place comes last: a promoted standby has a data folder of its own, and
 * is promoted, while a copy that is started beside its original has its
 * timeline.
 */
static void
judge_place(Look *look)
{
	char		folder[MAXPGPATH];

	here(folder);
	if (look->row.timeline != GetWALInsertionTimeLine())
		say(look, LL_RECOVERY_PROMOTED, "the server is on another timeline than was acknowledged");
	else if (folder[0] == '\0' || strcmp(folder, look->row.data_folder) != 0)
		say(look, LL_RECOVERY_QUARANTINED, "the data folder is another one than was acknowledged: a copy, or moved");
	else
		say(look, LL_RECOVERY_NORMAL, NULL);
}

/* judge_witness holds the row against what the file says. */
static void
judge_witness(Look *look)
{
	look->unnamed = !ll_witness_names(&look->witness, &look->row.incarnation);
	if (look->unnamed)
		say(look, LL_RECOVERY_QUARANTINED, "the witness file names another incarnation: another copy goes on, or this one is an older state");
	else if (look->witness.lsn > GetFlushRecPtr(NULL))
		say(look, LL_RECOVERY_QUARANTINED, "the write-ahead log ends before what the witness file has seen: this is an older state");
	else
		judge_place(look);
}

/*
 * examine reads row and file until both are of one moment: while somebody
 * replaces the incarnation, the file may drop what the row was read as.
 */
static void
examine(Look *look)
{
	pg_uuid_t	before;
	bool		again = false;

	do
	{
		Snapshot	snapshot = ll_snapshot_take();
		LLWitnessProblem problem;

		CHECK_FOR_INTERRUPTS();
		before = look->row.incarnation;
		read_row(&look->row, snapshot);
		ll_snapshot_drop(snapshot);
		look->unnamed = false;
		if (!judge_row(look) ||
			(again && same_uuid(&before, &look->row.incarnation)))
			return;
		problem = ll_witness_read(witness_file, &look->witness);
		if (problem == LL_WITNESS_NONE)
			judge_witness(look);
		else
			say(look, LL_RECOVERY_QUARANTINED, ll_witness_meaning(problem));
		again = look->unnamed;
	} while (again);
}

/* ---- writing the file --------------------------------------------------- */

static void pg_attribute_noreturn()
unusable(LLWitnessProblem problem)
{
	bool		system = problem == LL_WITNESS_FOLDER || problem == LL_WITNESS_READ ||
		problem == LL_WITNESS_WRITE;

	ereport(ERROR,
			(errcode(LL_ERRCODE_WITNESS),
			 errmsg("limitledger.witness_file can't be used"),
			 system ? errdetail("Found that %s: %m.", ll_witness_meaning(problem))
			 : errdetail("Found that %s.", ll_witness_meaning(problem)),
			 errhint("The server's user must be able to write the file and its folder, outside the data folder. Nothing was done: repeat the call.")));
}

/* lock_file waits for its turn, as long as others take to write a line. */
static void
lock_file(LLWitnessFile *file, const char *path, bool create, LLWitness *witness)
{
	LLWitnessProblem problem;
	int			waited = 0;

	while ((problem = ll_witness_lock(file, path, create, witness)) == LL_WITNESS_BUSY &&
		   waited++ < TURN_MS)
	{
		CHECK_FOR_INTERRUPTS();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 1,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	if (problem != LL_WITNESS_NONE)
		unusable(problem);
}

static void
write_file(LLWitnessFile *file, const LLWitness *witness)
{
	LLWitnessProblem problem = ll_witness_write(file, witness);

	ll_witness_unlock(file);
	if (problem != LL_WITNESS_NONE)
		unusable(problem);
}

/*
 * forward lets the file follow the write-ahead log, and drops the name that
 * the row had before.  False: the file has ceased to name the row's.
 */
static bool
forward(const Row *row)
{
	LLWitnessFile file;
	LLWitness	witness;

	lock_file(&file, witness_file, false, &witness);
	if (!ll_witness_names(&witness, &row->incarnation))
	{
		ll_witness_unlock(&file);
		return false;
	}
	if (!row->ours && same_uuid(&row->incarnation, &witness.incarnation[witness.count - 1]))
	{
		witness.incarnation[0] = row->incarnation;
		witness.count = 1;
	}
	witness.lsn = Max(witness.lsn, GetFlushRecPtr(NULL));
	write_file(&file, &witness);
	return true;
}

/* note_pending remembers what the commit has to settle, if it comes. */
static void
note_pending(const pg_uuid_t *incarnation)
{
	pending.level = GetCurrentTransactionNestLevel();
	strlcpy(pending.path, witness_file, MAXPGPATH);
	pending.incarnation = *incarnation;
	ForceSyncCommit();			/* or the file would be ahead of what a crash leaves */
}

/*
 * settle_pending makes the file name the new incarnation alone, once it is
 * committed.  What hinders it is left to the next look: both names stand.
 */
static void
settle_pending(void)
{
	LLWitnessFile file;
	LLWitness	witness;
	LLWitnessProblem problem;
	int			waited = 0;

	while ((problem = ll_witness_lock(&file, pending.path, false, &witness)) == LL_WITNESS_BUSY &&
		   waited++ < COMMIT_TURN_MS)
		pg_usleep(1000);
	if (problem != LL_WITNESS_NONE)
		return;
	if (ll_witness_names(&witness, &pending.incarnation))
	{
		witness.incarnation[0] = pending.incarnation;
		witness.count = 1;
		witness.lsn = GetFlushRecPtr(NULL);
		(void) ll_witness_write(&file, &witness);
	}
	ll_witness_unlock(&file);
}

static void
on_transaction(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			if (pending.level > 0)
				settle_pending();
			pending.level = 0;
			break;
		case XACT_EVENT_ABORT:
			pending.level = 0;
			break;
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			break;
	}
}

static void
on_subtransaction(SubXactEvent event, SubTransactionId id,
				  SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();

	if (event == SUBXACT_EVENT_COMMIT_SUB && pending.level == level)
		pending.level = level - 1;
	else if (event == SUBXACT_EVENT_ABORT_SUB && pending.level >= level)
		pending.level = 0;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		admission.transaction = InvalidLocalTransactionId;
}

/* ---- replacing the incarnation ------------------------------------------ */

/*
 * name_beside puts a new incarnation into the file, beside the one that stands
 * if this does not commit: the row's, else whatever the file names.  False, and
 * nothing done: the file does not name the row's, and was to.
 */
static bool
name_beside(const Row *row, const pg_uuid_t *incarnation, bool acknowledged)
{
	LLWitnessFile file;
	LLWitness	witness;
	bool		named;

	lock_file(&file, witness_file, acknowledged, &witness);
	named = row->found && ll_witness_names(&witness, &row->incarnation);
	if (!named && !acknowledged)
	{
		ll_witness_unlock(&file);
		return false;
	}
	if (named && !row->ours)	/* ours is the new one, and may not stand */
		witness.incarnation[0] = row->incarnation;
	witness.lsn = witness.count > 0 ? Min(witness.lsn, GetFlushRecPtr(NULL)) : GetFlushRecPtr(NULL);
	witness.count = Min(witness.count, 1);
	if (!ll_witness_names(&witness, incarnation))
		witness.incarnation[witness.count++] = *incarnation;
	write_file(&file, &witness);
	return true;
}

static void
new_incarnation(pg_uuid_t *incarnation)
{
	*incarnation = *DatumGetUUIDP(DirectFunctionCall1(gen_random_uuid, (Datum) 0));
}

/* put writes the row; false: another transaction has made one meanwhile. */
static bool
put(const Row *row, Datum *values)
{
	bool		nulls[LL_INCARNATION_NATTS] = {false};
	bool		done = true;

	writing_row = true;
	PG_TRY();
	{
		if (row->found)
			ll_row_update(LL_TABLE_INCARNATION, row->slot, values, nulls);
		else
			done = ll_row_insert(LL_TABLE_INCARNATION, values, nulls, LockWaitBlock, NULL);
	}
	PG_FINALLY();
	{
		writing_row = false;
	}
	PG_END_TRY();
	return done;
}

/*
 * replace gives the ledger a new incarnation, on the row that this transaction has
 * locked.  False: the row is another one by now, so look again.
 */
static bool
replace(Look *look)
{
	const Row  *row = &look->row;
	Datum		values[LL_INCARNATION_NATTS];
	pg_uuid_t	next;

	new_incarnation(&next);
	if (row->server_started == PgStartTime || !name_beside(row, &next, false))
		return false;
	memcpy(values, row->slot->tts_values, sizeof(values));
	values[LL_INCARNATION_ID] = UUIDPGetDatum(&next);
	values[LL_INCARNATION_SERVER_STARTED] = TimestampTzGetDatum(PgStartTime);
	(void) put(row, values);
	note_pending(&next);
	ll_store_step();
	return true;
}

/*
 * follow is what a look that found all in agreement writes: a new incarnation
 * after a start of the server, else the file alone.  False: look again.
 */
static bool
follow(Look *look)
{
	Snapshot	snapshot;
	LLLock		lock;

	if (look->row.server_started == PgStartTime)
		return forward(&look->row);
	snapshot = ll_snapshot_take();
	read_row(&look->row, snapshot);
	lock = look->row.found
		? ll_row_lock(LL_TABLE_INCARNATION, look->row.slot, snapshot, LockWaitSkip, NULL)
		: LL_LOCK_GONE;
	ll_snapshot_drop(snapshot);
	if (lock == LL_LOCK_BUSY)
		return forward(&look->row);
	if (lock == LL_LOCK_GONE)
		return false;
	take_row(&look->row);
	return replace(look);
}

LLRecovery
ll_recovery_look(void)
{
	Look		look = {0};

	if (RecoveryInProgress())
		return LL_RECOVERY_UNSET;
	do
	{
		CHECK_FOR_INTERRUPTS();
		examine(&look);
	} while (look.status == LL_RECOVERY_NORMAL && !XactReadOnly && !follow(&look));
	return look.status;
}

/* ---- reading ------------------------------------------------------------ */

static void
show(const Look *look, LLRecoveryView *view)
{
	view->status = look->status;
	view->detail = look->detail;
	view->acknowledged = look->row.found;
	view->incarnation = look->row.incarnation;
	view->timeline = look->row.timeline;
	view->acknowledged_at = look->row.acknowledged_at;
}

/* ll_recovery_show tells how it stands, and writes nothing. */
void
ll_recovery_show(LLRecoveryView *view)
{
	Look		look = {0};

	memset(view, 0, sizeof(*view));
	if (RecoveryInProgress())
	{
		Snapshot	snapshot = ll_snapshot_take();

		read_row(&look.row, snapshot);
		ll_snapshot_drop(snapshot);
		view->standby = true;
	}
	else
		examine(&look);
	show(&look, view);
}

/*
 * ll_recovery_stops_admission tells whether this ledger is quarantined and to
 * admit nothing then.  It looks once per transaction, and not at all while
 * limitledger.admit_in_recovery is on.
 */
bool
ll_recovery_stops_admission(void)
{
	LLRecoveryView view;

	if (admit_in_recovery)
		return false;
	if (admission.transaction != MyProc->lxid)
	{
		ll_recovery_show(&view);
		admission.stops = view.status == LL_RECOVERY_QUARANTINED;
		admission.transaction = MyProc->lxid;
	}
	return admission.stops;
}

/* ---- an operator's word ------------------------------------------------- */

/* lock_row waits for the row, if there is one. */
static void
lock_row(Look *look)
{
	LLLock		lock;

	do
	{
		Snapshot	snapshot = ll_snapshot_take();

		CHECK_FOR_INTERRUPTS();
		read_row(&look->row, snapshot);
		lock = look->row.found
			? ll_row_lock(LL_TABLE_INCARNATION, look->row.slot, snapshot, LockWaitBlock, NULL)
			: LL_LOCK_TAKEN;
		ll_snapshot_drop(snapshot);
	} while (lock == LL_LOCK_GONE);
	if (look->row.found)
		take_row(&look->row);
}

/* fill makes the row of this place and moment. */
static void
fill(Datum *values, const pg_uuid_t *incarnation, Datum actor, Datum reason)
{
	char		folder[MAXPGPATH];

	here(folder);
	values[LL_INCARNATION_ONLY_ONE] = BoolGetDatum(true);
	values[LL_INCARNATION_ID] = UUIDPGetDatum(incarnation);
	values[LL_INCARNATION_SYSTEM_IDENTIFIER] = Int64GetDatum((int64) GetSystemIdentifier());
	values[LL_INCARNATION_DATABASE_OID] = ObjectIdGetDatum(MyDatabaseId);
	values[LL_INCARNATION_TABLE_OID] = ObjectIdGetDatum(RelationGetRelid(ll_table(LL_TABLE_INCARNATION)));
	values[LL_INCARNATION_DATA_FOLDER] = CStringGetTextDatum(folder);
	values[LL_INCARNATION_TIMELINE] = Int32GetDatum((int32) GetWALInsertionTimeLine());
	values[LL_INCARNATION_SERVER_STARTED] = TimestampTzGetDatum(PgStartTime);
	values[LL_INCARNATION_ACKNOWLEDGED_AT] = TimestampTzGetDatum(ll_clock_now());
	values[LL_INCARNATION_ACTOR] = actor;
	values[LL_INCARNATION_REASON] = reason;
}

void
ll_recovery_acknowledge(Datum actor, Datum reason, LLRecoveryView *before, pg_uuid_t *incarnation)
{
	Look		look = {0};
	Datum		values[LL_INCARNATION_NATTS];

	if (!file_is_set())
		ereport(ERROR,
				(errcode(LL_ERRCODE_WITNESS),
				 errmsg("limitledger.witness_file is not set"),
				 errdetail("Without a witness nobody can tell this database from a copy of it."),
				 errhint("As a superuser: ALTER DATABASE ... SET limitledger.witness_file = '/path/outside/the/data/folder'; then call it in a new session.")));
	lock_row(&look);
	ll_recovery_show(before);
	/* this transaction's own new name will do: nobody has seen it yet */
	if (pending.level > 0 && look.row.ours)
		*incarnation = look.row.incarnation;
	else
		new_incarnation(incarnation);
	fill(values, incarnation, actor, reason);
	if (!put(&look.row, values))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errhint("Repeat the transaction.")));
	(void) name_beside(&look.row, incarnation, true);
	if (pending.level == 0)
		note_pending(incarnation);
	strlcpy(pending.path, witness_file, MAXPGPATH);
	admission.transaction = InvalidLocalTransactionId;
	ll_store_step();
}

/* ---- guard and settings ------------------------------------------------- */

/*
 * limitledger_guard_incarnation: only the functions above change the row, or
 * what it says could be made to fit a copy.  Loading a dump is let through: the
 * row then names a table that is not this one.
 */
Datum
limitledger_guard_incarnation(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("a guard of limitledger must be called as a trigger")));
	if (!writing_row && !TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		ereport(ERROR,
				(errcode(LL_ERRCODE_MOVEMENT),
				 errmsg("the incarnation of a ledger is not changed by hand"),
				 errdetail("Rule G7 guards table \"%s\".", RelationGetRelationName(trigger->tg_relation)),
				 errhint("acknowledge_recovery() makes this database the original.")));
	if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		ll_durability_note();
	return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event)
						   ? trigger->tg_newtuple : trigger->tg_trigtuple);
}

static bool
check_witness_file(char **newval, void **extra, GucSource source)
{
	if (*newval == NULL || **newval == '\0')
		return true;
	if (**newval != '/' || (*newval)[strlen(*newval) - 1] == '/' || strlen(*newval) > MAXPGPATH - 8)
	{
		GUC_check_errdetail("It must be empty or the absolute path of a file.");
		return false;
	}
	return true;
}

/* ll_recovery_init defines the settings and listens to transactions. */
void
ll_recovery_init(void)
{
	DefineCustomStringVariable("limitledger.witness_file",
							   "Sets the file that tells this database from copies of it.",
							   "An absolute path outside the data folder, one file for each database. Empty: nobody can tell.",
							   &witness_file, "", PGC_SUSET, GUC_SUPERUSER_ONLY,
							   check_witness_file, NULL, NULL);
	DefineCustomBoolVariable("limitledger.admit_in_recovery",
							 "Lets a quarantined ledger go on admitting.",
							 "Off: reserves and extensions are refused until acknowledge_recovery().",
							 &admit_in_recovery, true, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	RegisterXactCallback(on_transaction, NULL);
	RegisterSubXactCallback(on_subtransaction, NULL);
}
