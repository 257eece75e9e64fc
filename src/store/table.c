/*
 * table.c
 *	  Executor-level access to the ledger's own tables.  See table.h.
 *
 * Lock order is the business of src/ledger; this file never waits but in
 * ll_row_lock and in ll_row_insert, for a transaction that inserts the same
 * primary key.  Both waits are seen by the deadlock detector and end with
 * lock_timeout.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "durability.h"
#include "columns.h"
#include "errors.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "table.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

static const struct
{
	const char *name;
	int			natts;
}			table_shapes[LL_TABLE_COUNT] = {
	[LL_TABLE_HEAD] = {"head_budget", LL_HEAD_NATTS},
	[LL_TABLE_CLOSED] = {"closed_budget", LL_CLOSED_NATTS},
	[LL_TABLE_RESERVATION] = {"reservation", LL_RESERVATION_NATTS},
	[LL_TABLE_OPERATION] = {"operation", LL_OPERATION_NATTS},
	[LL_TABLE_POLICY] = {"policy", LL_POLICY_NATTS},
	[LL_TABLE_ACTION] = {"operator_action", LL_ACTION_NATTS},
	[LL_TABLE_EXTENSION] = {"extension", LL_EXTENSION_NATTS},
	[LL_TABLE_GRANT] = {"capacity_grant", LL_GRANT_NATTS},
	[LL_TABLE_FROZEN_ROUTE] = {"frozen_route", LL_FROZEN_ROUTE_NATTS},
	[LL_TABLE_SHADOW] = {"shadow_budget", LL_SHADOW_NATTS},
	[LL_TABLE_BINDING] = {"subject_binding", LL_BINDING_NATTS},
	[LL_TABLE_GATEWAY] = {"gateway", LL_GATEWAY_NATTS},
	[LL_TABLE_EMERGENCY_SHARD] = {"emergency_shard", LL_EMERGENCY_NATTS},
	[LL_TABLE_SHARD_REPORT] = {"shard_report", LL_SHARD_REPORT_NATTS},
	[LL_TABLE_SHARD_RECEIPT] = {"shard_receipt", LL_SHARD_RECEIPT_NATTS},
	[LL_TABLE_LOCAL_GATEWAY] = {"local_gateway", LL_LOCAL_GATEWAY_NATTS},
	[LL_TABLE_LOCAL_SHARD] = {"local_shard", LL_LOCAL_SHARD_NATTS},
	[LL_TABLE_SHARD_RESERVATION] = {"shard_reservation", LL_SHARD_RESERVATION_NATTS},
	[LL_TABLE_SHARD_OPERATION] = {"shard_operation", LL_SHARD_OPERATION_NATTS},
	[LL_TABLE_TRUSTED_KEY] = {"trusted_key", LL_TRUSTED_KEY_NATTS},
	[LL_TABLE_INCARNATION] = {"incarnation", LL_INCARNATION_NATTS},
};

static const struct
{
	LLTableId	table;
	const char *name;
}			index_names[LL_INDEX_COUNT] = {
	[LL_INDEX_HEAD] = {LL_TABLE_HEAD, "head_budget_pkey"},
	[LL_INDEX_HEAD_DEBT] = {LL_TABLE_HEAD, "head_budget_debt"},
	[LL_INDEX_CLOSED] = {LL_TABLE_CLOSED, "closed_budget_pkey"},
	[LL_INDEX_CLOSED_DEBT] = {LL_TABLE_CLOSED, "closed_budget_debt"},
	[LL_INDEX_CLOSED_FOLLOWED] = {LL_TABLE_CLOSED, "closed_budget_followed"},
	[LL_INDEX_RESERVATION] = {LL_TABLE_RESERVATION, "reservation_pkey"},
	[LL_INDEX_RESERVED] = {LL_TABLE_RESERVATION, "reservation_reserved"},
	[LL_INDEX_EXPIRING] = {LL_TABLE_RESERVATION, "reservation_expiring"},
	[LL_INDEX_STARTED] = {LL_TABLE_RESERVATION, "reservation_started"},
	[LL_INDEX_CLAIMABLE] = {LL_TABLE_RESERVATION, "reservation_claimable"},
	[LL_INDEX_PAIR_DUE] = {LL_TABLE_RESERVATION, "reservation_pair_due"},
	[LL_INDEX_ENDED] = {LL_TABLE_RESERVATION, "reservation_ended"},
	[LL_INDEX_OPERATION] = {LL_TABLE_OPERATION, "operation_pkey"},
	[LL_INDEX_OPERATION_USAGE] = {LL_TABLE_OPERATION, "operation_usage"},
	[LL_INDEX_POLICY] = {LL_TABLE_POLICY, "policy_pkey"},
	[LL_INDEX_POLICY_PAIR] = {LL_TABLE_POLICY, "policy_pair"},
	[LL_INDEX_EXTENSION] = {LL_TABLE_EXTENSION, "extension_pkey"},
	[LL_INDEX_GRANT] = {LL_TABLE_GRANT, "capacity_grant_pkey"},
	[LL_INDEX_FROZEN_ROUTE] = {LL_TABLE_FROZEN_ROUTE, "frozen_route_pkey"},
	[LL_INDEX_SHADOW] = {LL_TABLE_SHADOW, "shadow_budget_pkey"},
	[LL_INDEX_BINDING] = {LL_TABLE_BINDING, "subject_binding_pkey"},
	[LL_INDEX_GATEWAY] = {LL_TABLE_GATEWAY, "gateway_pkey"},
	[LL_INDEX_EMERGENCY_SHARD] = {LL_TABLE_EMERGENCY_SHARD, "emergency_shard_pkey"},
	[LL_INDEX_EMERGENCY_OPEN] = {LL_TABLE_EMERGENCY_SHARD, "emergency_shard_open"},
	[LL_INDEX_SHARD_REPORT] = {LL_TABLE_SHARD_REPORT, "shard_report_pkey"},
	[LL_INDEX_SHARD_RECEIPT] = {LL_TABLE_SHARD_RECEIPT, "shard_receipt_pkey"},
	[LL_INDEX_LOCAL_GATEWAY] = {LL_TABLE_LOCAL_GATEWAY, "local_gateway_pkey"},
	[LL_INDEX_LOCAL_SHARD] = {LL_TABLE_LOCAL_SHARD, "local_shard_pkey"},
	[LL_INDEX_LOCAL_OPEN] = {LL_TABLE_LOCAL_SHARD, "local_shard_open"},
	[LL_INDEX_LOCAL_PAIR] = {LL_TABLE_LOCAL_SHARD, "local_shard_pair"},
	[LL_INDEX_SHARD_RESERVATION] = {LL_TABLE_SHARD_RESERVATION, "shard_reservation_pkey"},
	[LL_INDEX_SHARD_HELD] = {LL_TABLE_SHARD_RESERVATION, "shard_reservation_open"},
	[LL_INDEX_SHARD_DUE] = {LL_TABLE_SHARD_RESERVATION, "shard_reservation_due"},
	[LL_INDEX_SHARD_OPERATION] = {LL_TABLE_SHARD_OPERATION, "shard_operation_pkey"},
	[LL_INDEX_TRUSTED_KEY] = {LL_TABLE_TRUSTED_KEY, "trusted_key_pkey"},
	[LL_INDEX_INCARNATION] = {LL_TABLE_INCARNATION, "incarnation_pkey"},
};

/* One table, as this backend knows it; the relation is open during a call. */
typedef struct LLTable
{
	Oid			relid;
	Relation	relation;		/* NULL: not opened by this call */
	ResultRelInfo *writer;		/* compiled CHECKs, indexes, triggers; built on first use */
	int			indexes;
	Oid		   *index_oids;		/* in the order of writer */
	List	   *arbiter;		/* the primary key */
	TupleDesc	desc;			/* of slots: a copy, since a pin for each of many slots is slow */
	bool		indexes_open;
	TupleTableSlot *row;		/* the row to be written, this call */
	TupleTableSlot *scratch;	/* for a look, this call */
} LLTable;

static struct
{
	MemoryContext context;		/* of all below */
	bool		known;			/* all was looked up */
	EState	   *estate;
	Oid			schema;
	LLTable		table[LL_TABLE_COUNT];
	Oid			index[LL_INDEX_COUNT];
	MemoryContext call;			/* of the call under way */
	bool		stale;			/* a cache said so; looked at when a call begins
								 * and after each table's lock */
	bool		learning;		/* names are being looked up */
	bool		busy;			/* a call is under way */
	Oid			deleting;		/* the row that a call is deleting, for the guards */
	ItemPointerData deleting_tid;
	uint64		version;		/* of what is known; others cache against it */
}			store;

/* ---- what this backend knows -------------------------------------------- */

/*
 * on_relcache: a table of ours, or all, may have changed.  Only a note: the
 * call under way holds locks and goes on with what it has.
 */
static void
on_relcache(Datum arg, Oid relid)
{
	if (relid == InvalidOid || store.learning)
		store.stale = true;
	for (int i = 0; i < LL_TABLE_COUNT && !store.stale; i++)
	{
		const LLTable *t = &store.table[i];

		store.stale = t->relid == relid;
		/* some access methods keep pointers to their index's entry between calls */
		for (int n = 0; n < t->indexes && !store.stale; n++)
			store.stale = t->index_oids[n] == relid;
	}
}

/* on_function: a trigger's function may have changed; compiled calls are dropped. */
static void
on_function(Datum arg, int cache, uint32 hash)
{
	store.stale = true;
}

/* ll_store_init listens to the caches of relations and functions. */
void
ll_store_init(void)
{
	CacheRegisterRelcacheCallback(on_relcache, (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, on_function, (Datum) 0);
}

/* ll_table_version changes whenever table identities are looked up anew. */
uint64
ll_table_version(void)
{
	return store.version;
}

static void
forget(void)
{
	MemoryContext context = store.context;

	store.context = NULL;
	store.known = false;
	store.busy = false;
	store.deleting = InvalidOid;
	for (int i = 0; i < LL_TABLE_COUNT; i++)
		store.table[i].indexes = 0;
	if (context != NULL)
		MemoryContextDelete(context);
}

/* find_index looks up one of our indexes by name. */
static void
find_index(LLIndexId index)
{
	store.index[index] = get_relname_relid(index_names[index].name, store.schema);
	if (!OidIsValid(store.index[index]))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("limitledger's index \"%s\" does not exist", index_names[index].name),
				 errhint("Create the extension again, or the index with its definition.")));
}

/*
 * learn looks up our tables beside the function that was called.  What changes
 * while it looks is noticed by ll_table, which looks again under the lock.
 */
static void
learn(Oid function)
{
	MemoryContext old;

	forget();
	store.context = AllocSetContextCreate(TopMemoryContext, "limitledger store",
										  ALLOCSET_DEFAULT_SIZES);
	memset(store.table, 0, sizeof(store.table));
	store.stale = false;
	store.learning = true;
	store.known = false;
	store.version++;
	store.schema = get_func_namespace(function);
	for (int i = 0; i < LL_TABLE_COUNT; i++)
	{
		store.table[i].relid = get_relname_relid(table_shapes[i].name, store.schema);
		if (!OidIsValid(store.table[i].relid))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("limitledger's table \"%s\" does not exist", table_shapes[i].name),
					 errhint("The extension may just have been dropped.")));
	}
	for (int i = 0; i < LL_INDEX_COUNT; i++)
		find_index(i);
	old = MemoryContextSwitchTo(store.context);
	store.estate = CreateExecutorState();
	(void) GetPerTupleExprContext(store.estate);
	MemoryContextSwitchTo(old);
	store.learning = false;
	store.known = true;
}

/*
 * learn_again is for a table that changed between the look and its lock: what
 * was compiled for it is dropped.  The next call begins from scratch.
 */
static void
learn_again(LLTableId table)
{
	store.table[table].writer = NULL;
	store.table[table].desc = NULL;
	for (int i = 0; i < LL_INDEX_COUNT; i++)
		if (index_names[i].table == table)
			find_index(i);
}

static void
end_call(void)
{
	for (int i = 0; i < LL_TABLE_COUNT; i++)
	{
		LLTable    *t = &store.table[i];

		if (t->indexes_open)
			for (int n = 0; n < t->indexes; n++)
				index_close(t->writer->ri_IndexRelationDescs[n], NoLock);
		t->indexes_open = false;
		t->row = NULL;
		t->scratch = NULL;
		if (t->writer != NULL)
		{
			/* made for triggers, in the list that is reset below */
			t->writer->ri_TrigOldSlot = NULL;
			t->writer->ri_TrigNewSlot = NULL;
			t->writer->ri_ReturningSlot = NULL;
		}
		if (t->relation != NULL)
			table_close(t->relation, NoLock);
		t->relation = NULL;
	}
	ExecResetTupleTable(store.estate->es_tupleTable, true);
	store.estate->es_tupleTable = NIL;
	list_free(store.estate->es_opened_result_relations);
	store.estate->es_opened_result_relations = NIL;
	ResetPerTupleExprContext(store.estate);
	store.busy = false;
}

/*
 * ll_store_run runs one script with the store open.  After an error nothing of
 * what is known is trusted: open relations and pins die with the transaction,
 * and the next call starts from the catalogue.
 */
void
ll_store_run(Oid function, void (*script) (void *arg), void *arg)
{
	if (store.busy)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("limitledger functions can't be called from a trigger on the ledger's tables")));
	if (!store.known || store.stale)
		learn(function);
	store.busy = true;
	store.call = CurrentMemoryContext;
	PG_TRY();
	{
		script(arg);
	}
	PG_CATCH();
	{
		forget();
		PG_RE_THROW();
	}
	PG_END_TRY();
	end_call();
	ll_store_step();
}

/* ll_store_step makes what was written visible to what follows. */
void
ll_store_step(void)
{
	CommandCounterIncrement();
}

/* has_shape: our columns, and behind them none but dropped ones. */
static bool
has_shape(TupleDesc desc, int natts)
{
	if (desc->natts < natts)
		return false;
	for (int i = 0; i < desc->natts; i++)
		if (TupleDescAttr(desc, i)->attisdropped != (i >= natts))
			return false;
	return true;
}

/* ll_table opens a table for this call. */
Relation
ll_table(LLTableId table)
{
	LLTable    *t = &store.table[table];

	if (t->relation == NULL)
	{
		/* What operators set is only read here, so that they block no call (F3). */
		LOCKMODE	mode = table == LL_TABLE_POLICY || table == LL_TABLE_FROZEN_ROUTE ||
			table == LL_TABLE_BINDING ||
			RecoveryInProgress()
			? AccessShareLock : RowExclusiveLock;

		t->relation = try_table_open(t->relid, mode);
		if (t->relation == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("limitledger's table \"%s\" was dropped meanwhile", table_shapes[table].name)));
		if (!has_shape(RelationGetDescr(t->relation), table_shapes[table].natts))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("limitledger's table \"%s\" has other columns than its library knows", table_shapes[table].name),
					 errhint("Library and SQL objects are of different versions, or the table was altered by hand.")));
		if (store.stale)
			learn_again(table);
	}
	return t->relation;
}

/* call_slot makes a slot whose pins do not outlive the call: see end_call. */
static TupleTableSlot *
call_slot(LLTable *t, const TupleTableSlotOps *ops)
{
	MemoryContext old = MemoryContextSwitchTo(store.estate->es_query_cxt);
	TupleTableSlot *slot;

	if (t->desc == NULL)
		t->desc = CreateTupleDescCopyConstr(RelationGetDescr(t->relation));
	slot = ExecInitExtraTupleSlot(store.estate, t->desc, ops);

	MemoryContextSwitchTo(old);
	return slot;
}

/* ll_table_slot makes a slot that can hold a stored row of the table. */
TupleTableSlot *
ll_table_slot(LLTableId table)
{
	Relation	relation = ll_table(table);

	return call_slot(&store.table[table], table_slot_callbacks(relation));
}

/*
 * ll_table_scratch gives the one slot per table for a look whose result is
 * used up before the next look.
 */
TupleTableSlot *
ll_table_scratch(LLTableId table)
{
	LLTable    *t = &store.table[table];

	if (t->scratch == NULL)
		t->scratch = ll_table_slot(table);
	return t->scratch;
}

/* ---- reading ------------------------------------------------------------ */

struct LLScan
{
	LLTableId	table;
	Relation	index;
	IndexScanDesc desc;
};

/* ll_snapshot_take sees everything that is committed at this moment. */
Snapshot
ll_snapshot_take(void)
{
	return RegisterSnapshot(GetLatestSnapshot());
}

void
ll_snapshot_drop(Snapshot snapshot)
{
	UnregisterSnapshot(snapshot);
}

void
ll_key_text(ScanKey key, AttrNumber column, Datum value)
{
	ScanKeyEntryInitialize(key, 0, column, BTEqualStrategyNumber, InvalidOid,
						   C_COLLATION_OID, F_TEXTEQ, value);
}

/* ll_key_text_from and ll_key_text_to compare with >= and <=. */
void
ll_key_text_from(ScanKey key, AttrNumber column, Datum value)
{
	ScanKeyEntryInitialize(key, 0, column, BTGreaterEqualStrategyNumber, InvalidOid,
						   C_COLLATION_OID, F_TEXT_GE, value);
}

void
ll_key_text_to(ScanKey key, AttrNumber column, Datum value)
{
	ScanKeyEntryInitialize(key, 0, column, BTLessEqualStrategyNumber, InvalidOid,
						   C_COLLATION_OID, F_TEXT_LE, value);
}

void
ll_key_oid(ScanKey key, AttrNumber column, Oid value)
{
	ScanKeyEntryInitialize(key, 0, column, BTEqualStrategyNumber, InvalidOid,
						   InvalidOid, F_OIDEQ, ObjectIdGetDatum(value));
}

void
ll_key_int8(ScanKey key, AttrNumber column, int64 value)
{
	ScanKeyEntryInitialize(key, 0, column, BTEqualStrategyNumber, InvalidOid,
						   InvalidOid, F_INT8EQ, Int64GetDatum(value));
}

/* ll_key_int8_from compares with >=. */
void
ll_key_int8_from(ScanKey key, AttrNumber column, int64 value)
{
	ScanKeyEntryInitialize(key, 0, column, BTGreaterEqualStrategyNumber, InvalidOid,
						   InvalidOid, F_INT8GE, Int64GetDatum(value));
}

/* ll_key_null asks for NULL. */
void
ll_key_null(ScanKey key, AttrNumber column)
{
	ScanKeyEntryInitialize(key, SK_ISNULL | SK_SEARCHNULL, column, InvalidStrategy,
						   InvalidOid, InvalidOid, InvalidOid, (Datum) 0);
}

/* ll_key_time compares with =, <= or >= an instant. */
void
ll_key_time(ScanKey key, AttrNumber column, StrategyNumber strategy, int64 value)
{
	Oid			function = strategy == BTEqualStrategyNumber ? F_TIMESTAMPTZ_EQ
		: strategy == BTLessEqualStrategyNumber ? F_TIMESTAMPTZ_LE : F_TIMESTAMPTZ_GE;

	ScanKeyEntryInitialize(key, 0, column, strategy, InvalidOid, InvalidOid,
						   function, Int64GetDatum(value));
}

LLScan *
ll_scan_begin(LLIndexId index, Snapshot snapshot, ScanKey keys, int nkeys)
{
	Relation	relation = ll_table(index_names[index].table);
	LLScan	   *scan = palloc(sizeof(LLScan));

	CHECK_FOR_INTERRUPTS();
	scan->table = index_names[index].table;
	scan->index = index_open(store.index[index], AccessShareLock);
	scan->desc = index_beginscan(relation, scan->index, snapshot, nkeys, 0);
	index_rescan(scan->desc, keys, nkeys, NULL, 0);
	return scan;
}

bool
ll_scan_next(LLScan *scan, TupleTableSlot *slot)
{
	return index_getnext_slot(scan->desc, ForwardScanDirection, slot);
}

/*
 * ll_scan_last finds the row of a whole unique key, which is one row with many
 * versions if it is hot.  While an old snapshot keeps them, the table grows at
 * its end, and equal keys lie in the index in the order of places: so from the
 * end the present version comes first, and from the front it comes last.
 */
bool
ll_scan_last(LLScan *scan, TupleTableSlot *slot)
{
	return index_getnext_slot(scan->desc, BackwardScanDirection, slot);
}

void
ll_scan_end(LLScan *scan)
{
	index_endscan(scan->desc);
	index_close(scan->index, NoLock);
	pfree(scan);
}

/* ll_scan_table tells which table a scan gives rows of. */
LLTableId
ll_scan_table(const LLScan *scan)
{
	return scan->table;
}

/* ---- locking ------------------------------------------------------------ */

/* How a row is locked. */
typedef struct LLRowLock
{
	LockTupleMode mode;
	LockWaitPolicy policy;
} LLRowLock;

static LLLock
lock_row(LLTableId table, TupleTableSlot *slot, Snapshot snapshot, LLRowLock how, bool *moved)
{
	Relation	relation = ll_table(table);
	ItemPointerData found = slot->tts_tid;
	TM_FailureData failure;
	TM_Result	result;

	result = table_tuple_lock(relation, &found, snapshot, slot,
							  GetCurrentCommandId(false), how.mode, how.policy,
							  TUPLE_LOCK_FLAG_FIND_LAST_VERSION, &failure);
	switch (result)
	{
		case TM_Ok:
			break;
		case TM_WouldBlock:
			return LL_LOCK_BUSY;
		case TM_Deleted:
			return LL_LOCK_GONE;
		default:
			ll_broken("F5", "a row was changed by the command that locks it");
	}
	ll_durability_note();
	if (moved != NULL)
		*moved = failure.traversed;
	if (IsolationUsesXactSnapshot() && table != LL_TABLE_SHADOW &&
		!table_tuple_satisfies_snapshot(relation, slot, GetTransactionSnapshot()))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errhint("Repeat the transaction with the same ids.")));
	/* a copy, so that a large batch does not pin a large part of the buffers */
	ExecMaterializeSlot(slot);
	return LL_LOCK_TAKEN;
}

/*
 * ll_row_lock locks the newest version of the row in the slot and leaves that
 * version there; *moved tells whether it is another than the one that was
 * found.  At REPEATABLE READ and above a version that the transaction's
 * snapshot can't see is a serialization failure, never something to decide on
 * (F5).  Nothing is decided on a shadow's row, so that one is taken as it is (B7).
 */
LLLock
ll_row_lock(LLTableId table, TupleTableSlot *slot, Snapshot snapshot,
			LockWaitPolicy policy, bool *moved)
{
	LLRowLock	how = {LockTupleNoKeyExclusive, policy};

	return lock_row(table, slot, snapshot, how, moved);
}

/*
 * ll_row_claim locks a row so that it can be deleted, without waiting.  A row
 * that is another than the one that was found counts as busy.
 */
LLLock
ll_row_claim(LLTableId table, TupleTableSlot *slot, Snapshot snapshot)
{
	LLRowLock	how = {LockTupleExclusive, LockWaitSkip};
	bool		moved = false;
	LLLock		lock = lock_row(table, slot, snapshot, how, &moved);

	return lock == LL_LOCK_TAKEN && moved ? LL_LOCK_BUSY : lock;
}

/* ---- writing ------------------------------------------------------------ */

/* writer prepares a table for writes: once per backend, then once per call. */
static ResultRelInfo *
writer(LLTable *t, Relation relation)
{
	ResultRelInfo *w = t->writer;
	MemoryContext old;

	if (t->indexes_open)
		return w;
	if (w == NULL)
	{
		old = MemoryContextSwitchTo(store.context);
		w = makeNode(ResultRelInfo);
		InitResultRelInfo(w, relation, 0, NULL, 0);
		ExecOpenIndices(w, true);
		t->index_oids = palloc(sizeof(Oid) * Max(w->ri_NumIndices, 1));
		t->indexes = w->ri_NumIndices;
		for (int i = 0; i < t->indexes; i++)
		{
			t->index_oids[i] = RelationGetRelid(w->ri_IndexRelationDescs[i]);
			if (w->ri_IndexRelationDescs[i]->rd_index->indisprimary)
				t->arbiter = list_make1_oid(t->index_oids[i]);
		}
		/* a trigger keeps what it caches as long as we keep the trigger */
		for (int i = 0; w->ri_TrigDesc != NULL && i < w->ri_TrigDesc->numtriggers; i++)
			fmgr_info_cxt(w->ri_TrigDesc->triggers[i].tgfoid, &w->ri_TrigFunctions[i],
						  store.context);
		t->writer = w;
		MemoryContextSwitchTo(old);
	}
	else
	{
		w->ri_RelationDesc = relation;
		for (int i = 0; i < t->indexes; i++)
			w->ri_IndexRelationDescs[i] = index_open(t->index_oids[i], RowExclusiveLock);
	}
	t->indexes_open = true;

	/* where AFTER triggers look for it */
	old = MemoryContextSwitchTo(store.estate->es_query_cxt);
	store.estate->es_opened_result_relations =
		lappend(store.estate->es_opened_result_relations, w);
	MemoryContextSwitchTo(old);
	return w;
}

/* new_row puts the values into the slot from which the table is written. */
static TupleTableSlot *
new_row(LLTable *t, Relation relation, Datum *values, bool *nulls)
{
	int			ours = table_shapes[t - store.table].natts;
	int			natts = RelationGetDescr(relation)->natts;

	if (t->row == NULL)
		t->row = call_slot(t, &TTSOpsVirtual);
	ExecClearTuple(t->row);
	memcpy(t->row->tts_values, values, ours * sizeof(Datum));
	memcpy(t->row->tts_isnull, nulls, ours * sizeof(bool));
	memset(t->row->tts_isnull + ours, true, (natts - ours) * sizeof(bool));
	ExecStoreVirtualTuple(t->row);
	t->row->tts_tableOid = RelationGetRelid(relation);
	return t->row;
}

static void
begin_write(void)
{
	ll_durability_note();
	store.estate->es_output_cid = GetCurrentCommandId(true);
	AfterTriggerBeginQuery();
}

static void
end_write(void)
{
	AfterTriggerEndQuery(store.estate);
	ResetPerTupleExprContext(store.estate);
}

static void
no_trigger_may_skip(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
			 errmsg("a trigger suppressed a write of limitledger"),
			 errhint("Remove the trigger from the ledger's table.")));
}

/* insert_speculatively inserts, unless another row has the primary key. */
static bool
insert_speculatively(LLTable *t, Relation relation, ResultRelInfo *w, TupleTableSlot *slot,
					 List **recheck)
{
	EState	   *estate = store.estate;
	bool		conflict = false;
	uint32		token = SpeculativeInsertionLockAcquire(GetCurrentTransactionId());

	table_tuple_insert_speculative(relation, slot, estate->es_output_cid, 0, NULL, token);
	*recheck = ExecInsertIndexTuples(w, slot, estate, false, true, &conflict, t->arbiter);
	table_tuple_complete_speculative(relation, slot, token, !conflict);
	SpeculativeInsertionLockRelease(GetCurrentTransactionId());
	return !conflict;
}

/*
 * insert inserts a row, unless its primary key is there: then it returns false.
 * It waits for a transaction that has inserted the same key and has not ended;
 * with LockWaitSkip it does not, and returns false for that one, too.  The
 * insertion is speculative, so that a race ends in an answer and not in a unique
 * violation that would need a subtransaction.
 */
static bool
insert(LLTableId table, Datum *values, bool *nulls, LockWaitPolicy policy, bool after_wait,
	   ItemPointer tid)
{
	Relation	relation = ll_table(table);
	LLTable    *t = &store.table[table];
	ResultRelInfo *w = writer(t, relation);
	TupleTableSlot *slot = new_row(t, relation, values, nulls);
	EState	   *estate = store.estate;
	List	   *recheck;
	bool		inserted;
	ItemPointerData other;

	CHECK_FOR_INTERRUPTS();
	begin_write();
	if (w->ri_TrigDesc && w->ri_TrigDesc->trig_insert_before_row &&
		!ExecBRInsertTriggers(estate, w, slot))
		no_trigger_may_skip();
	ExecConstraints(w, slot, estate);
	while (!(inserted = insert_speculatively(t, relation, w, slot, &recheck)))
	{
		/* waits for whoever is there to end; true: it has gone with its row */
		if (policy == LockWaitSkip ||
			!ExecCheckIndexConstraints(w, slot, estate, &other, t->arbiter) || !after_wait)
			break;
		CHECK_FOR_INTERRUPTS();
	}
	if (inserted)
		ExecARInsertTriggers(estate, w, slot, recheck, NULL);
	end_write();
	if (tid != NULL)
		*tid = slot->tts_tid;
	return inserted;
}

bool
ll_row_insert(LLTableId table, Datum *values, bool *nulls, LockWaitPolicy policy,
			  ItemPointer tid)
{
	return insert(table, values, nulls, policy, true, tid);
}

/*
 * ll_row_insert_lock inserts a row that is itself the lock of what was decided:
 * after a wait, however that ended, it returns false, so that the caller reads
 * and decides anew (F5).
 */
bool
ll_row_insert_lock(LLTableId table, Datum *values, bool *nulls)
{
	return insert(table, values, nulls, LockWaitBlock, false, NULL);
}

/*
 * ll_row_forget removes a row that this very call has inserted and that nobody
 * else has seen.  No trigger fires: there was no such row.
 */
void
ll_row_forget(LLTableId table, ItemPointer tid)
{
	TM_FailureData failure;

	ll_store_step();
	if (table_tuple_delete(ll_table(table), tid, GetCurrentCommandId(true),
						   store.estate->es_snapshot, InvalidSnapshot, true,
						   &failure, false) != TM_Ok)
		ll_broken("F1", "a row of this call was changed by another transaction");
}

/* ll_row_update replaces a row that this transaction has locked. */
void
ll_row_update(LLTableId table, TupleTableSlot *locked, Datum *values, bool *nulls)
{
	Relation	relation = ll_table(table);
	LLTable    *t = &store.table[table];
	ResultRelInfo *w = writer(t, relation);
	TupleTableSlot *slot = new_row(t, relation, values, nulls);
	ItemPointerData tid = locked->tts_tid;
	EState	   *estate = store.estate;
	HeapTuple	before = NULL;
	List	   *recheck = NIL;
	TM_FailureData failure;
	LockTupleMode mode;
	bool		indexes;

	CHECK_FOR_INTERRUPTS();
	begin_write();
	if (w->ri_TrigDesc && (w->ri_TrigDesc->trig_update_before_row ||
						   w->ri_TrigDesc->trig_update_after_row))
		before = ExecFetchSlotHeapTuple(locked, false, NULL);
	if (w->ri_TrigDesc && w->ri_TrigDesc->trig_update_before_row &&
		!ExecBRUpdateTriggers(estate, NULL, w, NULL, before, slot, &failure))
		no_trigger_may_skip();
	ExecConstraints(w, slot, estate);
	if (table_tuple_update(relation, &tid, slot, estate->es_output_cid,
						   estate->es_snapshot, InvalidSnapshot, true,
						   &failure, &mode, &indexes) != TM_Ok)
		ll_broken("F1", "a locked row was changed by another transaction");
	if (indexes)
		recheck = ExecInsertIndexTuples(w, slot, estate, true, false, NULL, NIL);
	ExecARUpdateTriggers(estate, w, NULL, NULL, NULL, before, slot, recheck, NULL, false);
	end_write();
}

/*
 * ll_row_delete deletes a row that this transaction has claimed.  The guards
 * let this one row through, while its triggers run (C3).
 */
void
ll_row_delete(LLTableId table, TupleTableSlot *claimed)
{
	Relation	relation = ll_table(table);
	ResultRelInfo *w = writer(&store.table[table], relation);
	EState	   *estate = store.estate;
	ItemPointerData tid = claimed->tts_tid;
	HeapTuple	before = ExecFetchSlotHeapTuple(claimed, false, NULL);
	TM_FailureData failure;

	CHECK_FOR_INTERRUPTS();
	begin_write();
	store.deleting = RelationGetRelid(relation);
	store.deleting_tid = tid;
	if (w->ri_TrigDesc && w->ri_TrigDesc->trig_delete_before_row &&
		!ExecBRDeleteTriggers(estate, NULL, w, NULL, before, NULL))
		no_trigger_may_skip();
	store.deleting = InvalidOid;
	if (table_tuple_delete(relation, &tid, estate->es_output_cid, estate->es_snapshot,
						   InvalidSnapshot, true, &failure, false) != TM_Ok)
		ll_broken("F1", "a claimed row was changed by another transaction");
	ExecARDeleteTriggers(estate, w, NULL, before, NULL, false);
	end_write();
}

/* ll_row_deleting tells a guard whether it is this row that a call is deleting. */
bool
ll_row_deleting(Oid relid, ItemPointer tid)
{
	return store.deleting == relid && ItemPointerEquals(&store.deleting_tid, tid);
}
