/*
 * queue.c
 *	  Calls on their way to the admission worker.  See queue.h.
 *
 * A slot for each process of the server, and a queue for each database of the
 * board: a stack of slots that callers push one by one and the worker takes as
 * a whole, so that a push never meets a pop of a single slot (no ABA).
 *
 * Why nobody waits for ever: a caller pushes and then reads whether there is a
 * worker; a worker that leaves says so and then empties the queue.  One of the
 * two sees the other, and whoever empties the queue answers what is in it.
 * What the worker has in hand when it ends it gives back (ll_queue_close runs
 * after its transaction was rolled back).  Only the end of the whole server
 * keeps a worker from doing so.
 */
#include "postgres.h"

#include "queue.h"

#include "access/xact.h"
#include "board.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "store/clock.h"
#include "store/durability.h"
#include "store/recovery.h"
#include "store/table.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* How long a call may stay in the queue before its session does it itself. */
#define PATIENCE	1000		/* ms */

/* The queue of one database.  Callers and worker write all of it all the time: a line of its own. */
typedef union Queue
{
	struct
	{
		pg_atomic_uint32 first; /* the number of a slot, plus 1; 0: empty */
		pg_atomic_uint32 worker;	/* the number of its process, plus 1; 0: none */
		pg_atomic_uint32 manner;	/* how it decides: see manner() */
	};
	char		line[PG_CACHE_LINE_SIZE];
} Queue;

typedef struct Board
{
	int			slots;
	Queue		queue[LL_BOARD_DATABASES];
	LLSlot		slot[FLEXIBLE_ARRAY_MEMBER];
} Board;

static Board *board = NULL;		/* NULL: not preloaded */
static bool grouped = false;	/* the setting */

static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

/* ---- the memory ---------------------------------------------------------- */

static Size
size(void)
{
	return add_size(offsetof(Board, slot), mul_size(MaxBackends, sizeof(LLSlot)));
}

static void
request(void)
{
	if (previous_request != NULL)
		previous_request();
	RequestAddinShmemSpace(MAXALIGN(size()));
}

static void
startup(void)
{
	bool		found;

	if (previous_startup != NULL)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	board = ShmemInitStruct("limitledger queues", size(), &found);
	if (!found)
	{
		board->slots = MaxBackends;
		for (int i = 0; i < LL_BOARD_DATABASES; i++)
		{
			pg_atomic_init_u32(&board->queue[i].first, 0);
			pg_atomic_init_u32(&board->queue[i].worker, 0);
			pg_atomic_init_u32(&board->queue[i].manner, 0);
		}
		for (int i = 0; i < board->slots; i++)
			pg_atomic_init_u32(&board->slot[i].state, LL_SLOT_FREE);
	}
	LWLockRelease(AddinShmemInitLock);
}

/* ll_queue_init defines the setting, queues or no queues, so that a reader finds it. */
void
ll_queue_init(void)
{
	DefineCustomBoolVariable("limitledger.grouped",
							 "Hands calls to the admission worker, which decides many in one transaction.",
							 "Only with limitledger in shared_preload_libraries. On: a call stands whatever becomes of its caller's transaction.",
							 &grouped, false, PGC_USERSET, 0, NULL, NULL, NULL);
}

/* ll_queue_preload asks for the memory; for _PG_init while preloading. */
void
ll_queue_preload(void)
{
	previous_request = shmem_request_hook;
	shmem_request_hook = request;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = startup;
}

/* ---- what both sides do --------------------------------------------------- */

static uint32
number(const LLSlot *slot)
{
	return slot - board->slot + 1;
}

static LLSlot *
numbered(uint32 number)
{
	return number == 0 ? NULL : &board->slot[number - 1];
}

/* the process that a slot belongs to */
static Latch *
latch_of(const LLSlot *slot)
{
	return &ProcGlobal->allProcs[slot - board->slot].procLatch;
}

/* change moves a slot from one state to another; false: it was in none of that. */
static bool
change(LLSlot *slot, LLSlotState from, LLSlotState to)
{
	uint32		seen = from;

	return pg_atomic_compare_exchange_u32(&slot->state, &seen, to);
}

/* finish answers a slot that was in state `from`, or frees it if its session has left. */
static void
finish(LLSlot *slot, LLSlotState from)
{
	if (change(slot, from, LL_SLOT_ANSWERED))
		SetLatch(latch_of(slot));
	else
		(void) change(slot, LL_SLOT_ABANDONED, LL_SLOT_FREE);
}

/* give_back_all empties a queue that has no worker. */
static void
give_back_all(Queue *queue)
{
	LLSlot	   *slot = numbered(pg_atomic_exchange_u32(&queue->first, 0));

	while (slot != NULL)
	{
		LLSlot	   *next = numbered(slot->next);

		slot->fate = LL_FATE_GIVEN_BACK;
		finish(slot, LL_SLOT_QUEUED);
		slot = next;
	}
}

/*
 * manner sums up the settings on which a decision or its durability rests.  A
 * session of another manner than the worker's calls directly.  0: so does any
 * session of this one.
 */
static uint32
manner(void)
{
	if (ll_clock_overridden() || !ll_durability_is_required() ||
		SessionReplicationRole != SESSION_REPLICATION_ROLE_ORIGIN)
		return 0;
	return (ll_recovery_manner() << 3 | (uint32) Max(synchronous_commit, SYNCHRONOUS_COMMIT_ON)) + 1;
}

/* ---- the session ------------------------------------------------------------ */

/* abandon leaves the slot to the worker; true: which may have decided, or be about to. */
static bool
abandon(LLSlot *slot)
{
	for (;;)
	{
		if (change(slot, LL_SLOT_QUEUED, LL_SLOT_ABANDONED))
			return false;
		if (change(slot, LL_SLOT_TAKEN, LL_SLOT_ABANDONED))
			return true;
		/* given back, it may have been committed before its worker ended */
		if (change(slot, LL_SLOT_ANSWERED, LL_SLOT_FREE))
			return true;
		if (pg_atomic_read_u32(&slot->state) == LL_SLOT_FREE ||
			pg_atomic_read_u32(&slot->state) == LL_SLOT_ABANDONED)
			return false;
		/* the worker has just returned it to the queue, or taken it */
	}
}

static LLSlot *
own_slot(void)
{
	return &board->slot[MyProc->pgprocno];
}

/* on_exit_abandon is for a session that is terminated while it waits. */
static void
on_exit_abandon(int code, Datum arg)
{
	(void) abandon(own_slot());
}

/* my_queue gives the queue of this database; NULL: it is not on the board. */
static Queue *
my_queue(LLBoardDatabase **entry)
{
	*entry = ll_board_find(MyDatabaseId);
	return *entry == NULL ? NULL : &board->queue[*entry - ll_board->database];
}

/* ask_for_worker has the launcher start one. */
static void
ask_for_worker(LLBoardDatabase *entry)
{
	if (!ll_board_lower(&entry->worker[LL_WORKER_ADMISSION], LL_AT_ONCE))
		return;
	LWLockAcquire(ll_board->lock, LW_SHARED);
	ll_board_wake_launcher();
	LWLockRelease(ll_board->lock);
}

/*
 * eligible tells whether this call may be decided apart from its transaction.
 * One that has written anything would have its own rows not seen, or its locks
 * met by the worker; one with a snapshot of its own has to be held against it.
 */
static bool
eligible(void)
{
	return !TransactionIdIsValid(GetTopTransactionIdIfAny()) &&
		!IsolationUsesXactSnapshot() && !ll_store_in_use() && IsNormalProcessingMode();
}

/* keep copies an argument into the slot; false: there is no room. */
static bool
keep(LLSlot *slot, Datum *value)
{
	Size		length;

	if (*value == 0)
		return true;
	length = VARSIZE_ANY(DatumGetPointer(*value));
	if (length > LL_SLOT_BYTES - slot->used)
		return false;
	memcpy(slot->text + slot->used, DatumGetPointer(*value), length);
	*value = PointerGetDatum(slot->text + slot->used);
	slot->used = Min(MAXALIGN(slot->used + length), LL_SLOT_BYTES);
	return true;
}

/* put copies the whole call. */
static bool
put(LLSlot *slot, LLGrouped kind, const void *element)
{
	LLReserveElement *r = &slot->element.reserve;
	LLStartElement *s = &slot->element.start;
	LLSettleElement *e = &slot->element.settle;

	slot->kind = kind;
	slot->used = 0;
	switch (kind)
	{
		case LL_GROUPED_RESERVE:
			*r = *(const LLReserveElement *) element;
			return keep(slot, &r->subject) && keep(slot, &r->route) && keep(slot, &r->id) &&
				keep(slot, &r->digest) && keep(slot, &r->region) &&
				keep(slot, &r->estimator) && keep(slot, &r->start_operation);
		case LL_GROUPED_START:
			*s = *(const LLStartElement *) element;
			return keep(slot, &s->subject) && keep(slot, &s->id) && keep(slot, &s->operation);
		case LL_GROUPED_SETTLE:
			*e = *(const LLSettleElement *) element;
			/* who attests is recorded, and the worker is somebody else */
			return !e->attested && keep(slot, &e->subject) && keep(slot, &e->id) &&
				keep(slot, &e->operation) && keep(slot, &e->receipt_digest) &&
				keep(slot, &e->source);
	}
	return false;
}

static void
push(Queue *queue, LLSlot *slot)
{
	uint32		first = pg_atomic_read_u32(&queue->first);

	do
		slot->next = first;
	while (!pg_atomic_compare_exchange_u32(&queue->first, &first, number(slot)));
}

/*
 * rethrow_unknown raises the error that has ended the wait again, with a word
 * about the call, which may take effect all the same.
 */
static void
rethrow_unknown(MemoryContext context)
{
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	FlushErrorState();
	error->detail = pstrdup("The call was being decided with others: whether it takes effect is not known.");
	error->hint = pstrdup("Ask again by the same id.");
	ReThrowError(error);
}

/*
 * await sleeps until the slot is answered.  False: it has been in the queue for
 * so long that the session takes it back.  One that is being tried at that
 * moment is given back by the worker, unless it is decided.
 */
static bool
await(LLSlot *slot)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		while (pg_atomic_read_u32(&slot->state) != LL_SLOT_ANSWERED)
		{
			long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), slot->until);

			if (left == 0 && change(slot, LL_SLOT_QUEUED, LL_SLOT_ABANDONED))
				break;
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 left > 0 ? left : PATIENCE, PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
		}
	}
	PG_CATCH();
	{
		if (abandon(slot))
			rethrow_unknown(context);
		PG_RE_THROW();
	}
	PG_END_TRY();
	pg_read_barrier();
	return pg_atomic_read_u32(&slot->state) == LL_SLOT_ANSWERED;
}

/* The texts of a receipt.  Their room is there before the call is, so that no answer is lost for it. */
typedef struct Texts
{
	char		state_name[LL_SLOT_STATE];
	char		operation[LL_SLOT_NAME];
} Texts;

/* read_receipt copies the answer out of the slot. */
static void
read_receipt(const LLSlot *slot, LLReceipt *receipt, Texts *texts)
{
	*receipt = slot->receipt;
	strlcpy(texts->state_name, slot->state_name, sizeof(texts->state_name));
	receipt->state = texts->state_name;
	if (receipt->operation != 0)
	{
		memcpy(texts->operation, slot->operation, VARSIZE_ANY(slot->operation));
		receipt->operation = PointerGetDatum(texts->operation);
	}
}

/* ll_queue_wanted tells whether this session asks for groups. */
bool
ll_queue_wanted(void)
{
	return grouped && board != NULL;
}

/*
 * ll_queue_call has the admission worker decide a call.  False: it has decided
 * nothing, for whatever reason, and the call is to be made directly.
 */
bool
ll_queue_call(LLGrouped kind, const void *element, LLReceipt *receipt)
{
	static bool known = false;
	LLBoardDatabase *entry;
	Queue	   *queue;
	LLSlot	   *slot;
	uint32		worker;
	uint32		mine;
	Texts	   *texts;
	bool		answered;

	if (!ll_queue_wanted() || !eligible())
		return false;
	queue = my_queue(&entry);
	if (queue == NULL)
		return false;
	worker = pg_atomic_read_u32(&queue->worker);
	if (worker == 0)
	{
		ask_for_worker(entry);
		return false;
	}
	slot = own_slot();
	mine = manner();
	/* one that was abandoned is not ours before the worker has seen it */
	if (mine == 0 || pg_atomic_read_u32(&queue->manner) != mine ||
		pg_atomic_read_u32(&slot->state) != LL_SLOT_FREE ||
		!put(slot, kind, element))
		return false;
	slot->database = MyDatabaseId;
	slot->manner = mine;
	slot->until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), PATIENCE);
	texts = palloc(sizeof(Texts));
	if (!known)
		before_shmem_exit(on_exit_abandon, (Datum) 0);
	known = true;

	pg_atomic_write_u32(&slot->state, LL_SLOT_QUEUED);
	push(queue, slot);
	worker = pg_atomic_read_u32(&queue->worker);
	if (worker == 0)
		give_back_all(queue);
	else
		SetLatch(&ProcGlobal->allProcs[worker - 1].procLatch);

	if (!await(slot))
		return false;
	answered = slot->fate == LL_FATE_DECIDED;
	if (answered)
		read_receipt(slot, receipt, texts);
	pg_write_barrier();
	pg_atomic_write_u32(&slot->state, LL_SLOT_FREE);
	return answered;
}

/* ---- the worker ------------------------------------------------------------- */

static Queue *served = NULL;	/* the queue of this worker */

/* What it has collected and not answered, in the order in which it came. */
static struct
{
	LLSlot	   *slot;
	bool		taken;			/* for the group under way */
}		   *hand = NULL;
static int	in_hand = 0;
static int	tried = 0;			/* so many of them, the first ones, were in a group before */

/* ll_queue_open lets callers in.  Who opens sees to it that ll_queue_close runs, however it ends. */
void
ll_queue_open(int entry)
{
	if (hand == NULL)
		hand = MemoryContextAlloc(TopMemoryContext, sizeof(*hand) * board->slots);
	in_hand = tried = 0;
	served = &board->queue[entry];
	ll_queue_refresh();
	pg_atomic_exchange_u32(&served->worker, MyProc->pgprocno + 1);
}

/* ll_queue_refresh says anew how this worker decides. */
void
ll_queue_refresh(void)
{
	pg_atomic_write_u32(&served->manner, manner());
}

/* ll_queue_slots is how many calls there can be at the same time. */
int
ll_queue_slots(void)
{
	return board->slots;
}

/* collect takes what was pushed, the last one first, and puts it in the order in which it came. */
static void
collect(void)
{
	LLSlot	   *slot = pg_atomic_read_u32(&served->first) == 0 ? NULL
		: numbered(pg_atomic_exchange_u32(&served->first, 0));
	int			count = 0;

	for (LLSlot *s = slot; s != NULL; s = numbered(s->next))
		count++;
	in_hand += count;
	for (int i = in_hand; slot != NULL; slot = numbered(slot->next))
	{
		hand[--i].slot = slot;
		hand[i].taken = false;
	}
}

/*
 * ll_queue_take takes the calls that came since, and those that were passed by
 * if `again`.  Returns how many there are.  A call of another manner, or of
 * another database whose place on the board is ours by now, is given back.
 */
int
ll_queue_take(LLSlot **group, bool again)
{
	int			kept = 0;
	int			count = 0;
	int			passed = again ? 0 : tried;
	uint32		ours = pg_atomic_read_u32(&served->manner);

	collect();
	for (int i = 0; i < in_hand; i++)
	{
		LLSlot	   *slot = hand[i].slot;

		if (i >= passed)
		{
			if (!change(slot, LL_SLOT_QUEUED, LL_SLOT_TAKEN))
			{
				(void) change(slot, LL_SLOT_ABANDONED, LL_SLOT_FREE);
				continue;
			}
			if (slot->database != MyDatabaseId || slot->manner != ours)
			{
				slot->fate = LL_FATE_GIVEN_BACK;
				finish(slot, LL_SLOT_TAKEN);
				continue;
			}
			slot->fate = LL_FATE_OPEN;
			group[count++] = slot;
			hand[i].taken = true;
		}
		hand[kept++] = hand[i];
	}
	in_hand = kept;
	tried = Min(tried, kept);
	return count;
}

/* ll_queue_decide writes a receipt down, while its texts are there; it is shown by ll_queue_done. */
void
ll_queue_decide(LLSlot *slot, const LLReceipt *receipt)
{
	slot->fate = LL_FATE_DECIDED;
	slot->receipt = *receipt;
	slot->receipt.state = NULL;
	strlcpy(slot->state_name, receipt->state, sizeof(slot->state_name));
	if (receipt->operation != 0)
		memcpy(slot->operation, DatumGetPointer(receipt->operation),
			   VARSIZE_ANY(DatumGetPointer(receipt->operation)));
}

/*
 * ll_queue_done answers the group that was taken, each call by its fate, and
 * says how many have to be tried again.
 */
int
ll_queue_done(void)
{
	TimestampTz now = GetCurrentTimestamp();
	int			kept = 0;

	for (int i = 0; i < in_hand; i++)
	{
		LLSlot	   *slot = hand[i].slot;

		if (hand[i].taken)
		{
			hand[i].taken = false;
			if (slot->fate == LL_FATE_OPEN && now >= slot->until)
				slot->fate = LL_FATE_GIVEN_BACK;
			if (slot->fate != LL_FATE_OPEN)
			{
				finish(slot, LL_SLOT_TAKEN);
				continue;
			}
			if (!change(slot, LL_SLOT_TAKEN, LL_SLOT_QUEUED))
			{
				(void) change(slot, LL_SLOT_ABANDONED, LL_SLOT_FREE);
				continue;
			}
		}
		hand[kept++] = hand[i];
	}
	in_hand = tried = kept;
	return kept;
}

/* ll_queue_close lets nobody in any more, and gives back what is queued or in hand. */
void
ll_queue_close(void)
{
	if (served == NULL)
		return;
	pg_atomic_exchange_u32(&served->worker, 0);
	for (int i = 0; i < in_hand; i++)
	{
		hand[i].slot->fate = LL_FATE_GIVEN_BACK;
		finish(hand[i].slot, hand[i].taken ? LL_SLOT_TAKEN : LL_SLOT_QUEUED);
	}
	in_hand = 0;
	give_back_all(served);
	served = NULL;
}
