/*
 * counters.c
 *	  Answers, counted in shared memory.  See counters.h.
 *
 * A block of counters per database, in a fixed board that is made when the
 * library is preloaded.  A backend looks its block up once and keeps the
 * pointer; from then on an answer is one atomic addition, no lock and no row.
 * A database keeps its block until it is dropped and another one needs the
 * place, so the lock is held for a look or a change of the board only.  When
 * no place is left, the databases that came later are not counted.
 */
#include "postgres.h"

#include "counters.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/syscache.h"

#define DATABASES	32
#define TRANCHE		"limitledger counters"

typedef struct Block
{
	Oid			database;		/* InvalidOid: free */
	pg_atomic_uint64 answers[LL_CALL_COUNT][LL_ANSWER_COUNT];
} Block;

typedef struct Board
{
	TimestampTz since;			/* when this memory was made */
	LWLock	   *lock;			/* of the blocks' databases */
	Block		block[DATABASES];
} Board;

static Board *board = NULL;		/* NULL: not preloaded */
static Block *mine = NULL;
static bool looked = false;
static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

static void
request(void)
{
	if (previous_request != NULL)
		previous_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(Board)));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

static void
clear(Block *block)
{
	for (int call = 0; call < LL_CALL_COUNT; call++)
		for (int answer = 0; answer < LL_ANSWER_COUNT; answer++)
			pg_atomic_init_u64(&block->answers[call][answer], 0);
}

/* startup makes the board, at the start of the server and after a crash of a backend. */
static void
startup(void)
{
	bool		found;

	if (previous_startup != NULL)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	board = ShmemInitStruct(TRANCHE, sizeof(Board), &found);
	if (!found)
	{
		board->since = GetCurrentTimestamp();
		board->lock = &GetNamedLWLockTranche(TRANCHE)->lock;
		for (int i = 0; i < DATABASES; i++)
		{
			board->block[i].database = InvalidOid;
			clear(&board->block[i]);
		}
	}
	LWLockRelease(AddinShmemInitLock);
}

/* ll_counters_init asks for the board, if there is still time to. */
void
ll_counters_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = startup;
}

/* take gives a block to this database; another database's only if that is `gone`. */
static Block *
take(Oid gone)
{
	Block	   *free_block = NULL;

	LWLockAcquire(board->lock, LW_EXCLUSIVE);
	for (int i = 0; i < DATABASES; i++)
	{
		Block	   *block = &board->block[i];

		if (block->database == MyDatabaseId)
		{
			LWLockRelease(board->lock);
			return block;
		}
		if (free_block == NULL && block->database == gone)
			free_block = block;
	}
	if (free_block != NULL)
	{
		clear(free_block);
		free_block->database = MyDatabaseId;
	}
	LWLockRelease(board->lock);
	return free_block;
}

/* a database on the board that does not exist any more */
static Oid
dropped_database(void)
{
	Oid			databases[DATABASES];

	LWLockAcquire(board->lock, LW_SHARED);
	for (int i = 0; i < DATABASES; i++)
		databases[i] = board->block[i].database;
	LWLockRelease(board->lock);
	for (int i = 0; i < DATABASES; i++)
		if (!SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(databases[i])))
			return databases[i];
	return InvalidOid;
}

/*
 * find looks this database's block up.  A backend that found no place does not
 * look again.
 */
static Block *
find(void)
{
	Block	   *block = take(InvalidOid);
	Oid			gone = block == NULL ? dropped_database() : InvalidOid;

	if (OidIsValid(gone))
		block = take(gone);
	looked = true;
	return block;
}

/* ll_counters_add counts an answer that was given `times` times. */
void
ll_counters_add(LLCall call, int answer, uint64 times)
{
	if (unlikely(!looked && board != NULL))
		mine = find();
	if (mine != NULL)
		pg_atomic_fetch_add_u64(&mine->answers[call][answer], (int64) times);
}

/* ll_counters_read copies what was counted; false: nothing is. */
bool
ll_counters_read(LLCounts *counts)
{
	if (board == NULL)
		return false;
	if (!looked)
		mine = find();
	if (mine == NULL)
		return false;
	counts->since = board->since;
	for (int call = 0; call < LL_CALL_COUNT; call++)
		for (int answer = 0; answer < LL_ANSWER_COUNT; answer++)
			counts->answers[call][answer] = pg_atomic_read_u64(&mine->answers[call][answer]);
	return true;
}

/* ll_call_name is how the function is called in SQL. */
const char *
ll_call_name(LLCall call)
{
	static const char *const names[LL_CALL_COUNT] = {
#define X(name, shown) [LL_CALL_##name] = shown,
		LL_CALL_LIST(X)
#undef X
	};

	return names[call];
}
