/*
 * queue.h
 *	  Calls on their way to the admission worker of their database.
 *
 * Only a preloaded library has queues.  A session that asks for it
 * (limitledger.grouped) puts its call into its slot, pushes the slot, and
 * sleeps on its latch; the worker (worker/admission.c) decides a whole group in
 * one transaction and answers after the commit.  docs/grouped.md has the whole
 * story.
 *
 * Who owns a slot:
 *
 *	  FREE		 its session
 *	  QUEUED	 nobody: the session may abandon it, the worker may take it
 *	  TAKEN		 the worker, which is deciding
 *	  ANSWERED	 its session
 *	  ABANDONED	 the worker, or whoever empties the queue: the session has left
 *
 * Every change of the state is one compare-and-swap, and no lock is taken.
 */
#ifndef LL_QUEUE_H
#define LL_QUEUE_H

#include "postgres.h"

#include "ledger/ledger.h"
#include "port/atomics.h"

/* The calls that go in groups, in the order in which a group is decided: units come back first. */
typedef enum LLGrouped
{
	LL_GROUPED_SETTLE,			/* and release */
	LL_GROUPED_RESERVE,
	LL_GROUPED_START
} LLGrouped;
#define LL_GROUPED_KINDS	(LL_GROUPED_START + 1)

typedef enum LLSlotState
{
	LL_SLOT_FREE,
	LL_SLOT_QUEUED,
	LL_SLOT_TAKEN,
	LL_SLOT_ANSWERED,
	LL_SLOT_ABANDONED
} LLSlotState;

/* What became of a call in a group. */
typedef enum LLFate
{
	LL_FATE_OPEN,				/* passed by: it is tried again */
	LL_FATE_DECIDED,
	LL_FATE_GIVEN_BACK			/* nothing was decided: the session does it itself */
} LLFate;

/* Room for the longest arguments that a call may have: five names or ids and two digests. */
#define LL_SLOT_BYTES	2048
#define LL_SLOT_NAME	264		/* a name or an id, with its header */
#define LL_SLOT_STATE	32

/* One call and its receipt.  Datums point into the slot itself. */
typedef struct LLSlot
{
	pg_atomic_uint32 state;
	uint32		next;			/* in the queue: the number of a slot, plus 1; 0: the last */

	Oid			database;		/* of its session */
	uint32		manner;			/* likewise: see queue.c */
	TimestampTz until;			/* so long it may stay in the queue */
	LLGrouped	kind;
	union
	{
		LLReserveElement reserve;
		LLStartElement start;
		LLSettleElement settle;
	}			element;
	int			used;
	char		text[LL_SLOT_BYTES];

	LLFate		fate;
	LLReceipt	receipt;
	char		state_name[LL_SLOT_STATE];
	char		operation[LL_SLOT_NAME];
} LLSlot;

extern void ll_queue_init(void);
extern void ll_queue_preload(void);

/* What a session does. */
extern bool ll_queue_wanted(void);
extern bool ll_queue_call(LLGrouped kind, const void *element, LLReceipt *receipt);

/* What the worker does: open; take, decide, done, again and again; close. */
extern void ll_queue_open(int entry);
extern void ll_queue_refresh(void);
extern int	ll_queue_slots(void);
extern int	ll_queue_take(LLSlot **group, bool again);
extern void ll_queue_decide(LLSlot *slot, const LLReceipt *receipt);
extern int	ll_queue_done(void);
extern void ll_queue_close(void);

#endif							/* LL_QUEUE_H */
