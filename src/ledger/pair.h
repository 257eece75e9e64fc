/*
 * pair.h
 *	  A pair under work: found, locked, brought to the present, written once.
 *
 * Lock order of every call (F1): heads in bytewise (subject, route) order,
 * closed budgets of a locked head, reservation rows in (subject, id) order,
 * new operation rows in (subject, operation) order, new reservation rows in
 * (subject, id) order.  Sweeps take nothing that they would have to wait for.
 */
#ifndef LL_LEDGER_PAIR_H
#define LL_LEDGER_PAIR_H

#include "postgres.h"

#include "nodes/pg_list.h"
#include "roll.h"
#include "store/policy.h"
#include "store/rows.h"

typedef struct LLPairWork
{
	LLHead		head;
	LLReigns	reigns;			/* the last one rules */
	TimestampTz clock;			/* read after the lock (A3) */
	LLUnits		debt_before;
	LLUnits		repaid_before;	/* of the head, as stored */
	List	   *closings;		/* LLClosed *, closed by this call */
	List	   *closed;			/* LLClosed *, locked rows */
	bool		locked;
	bool		created;		/* the head's row was made by this call */
	bool		decided;		/* all its elements were, while it was created */
	bool		no_hold_due;	/* that could be ended, at this instant */
	int			taken;			/* elements admitted */
	bool		rewrite;		/* the created row is no longer what was decided */
	bool		changed;		/* a decision moved something else */
	LLShadow   *shadow;			/* locked and evaluated by this call (B7) */
	bool		beside_locked;	/* the call holds the lock of another pair */
	const char *breach;			/* why a decision froze the pair */
} LLPairWork;

extern void ll_pair_init(LLPairWork *work, Datum subject, Datum route);
extern bool ll_pair_find(LLPairWork *work, Snapshot snapshot);
extern LLLock ll_pair_lock(LLPairWork *work, Snapshot snapshot, LockWaitPolicy policy);
extern LLLock ll_pair_find_and_lock(LLPairWork *work, LockWaitPolicy policy);
extern void ll_pair_present(LLPairWork *work);
extern void ll_pair_look(LLPairWork *work, Datum subject, Datum route);
extern bool ll_pair_rolled(const LLPairWork *work);
extern TimestampTz ll_pair_relief_at(const LLPairWork *work);
extern bool ll_pair_create(LLPairWork *work, LockWaitPolicy policy);
extern bool ll_pair_open(LLPairWork *work);
extern LLClosed *ll_pair_budget(LLPairWork *work, int64 generation, TimestampTz epoch);
extern void ll_pair_write(LLPairWork *work);
extern int	ll_pair_compare(Datum subject_a, Datum route_a, Datum subject_b, Datum route_b);

/* shadow.c */

/* What a shadow said of a request, so that it can be taken back. */
typedef struct LLJudgement
{
	bool		asked;
	bool		would_admit;
	LLHappened	happened;
} LLJudgement;

extern LLJudgement ll_shadow_judge(LLPairWork *work, LLRequest *request, LLHappened happened,
								   LLReservationRow *admitted);
extern void ll_shadow_unjudge(LLPairWork *work, LLJudgement *judgement, LLUnits units);
extern void ll_shadow_settle(LLPairWork *work, const LLReservationRow *row, LLUnits used);
extern void ll_shadow_spend(LLPairWork *work, LLUnits units);
extern void ll_shadow_write(LLPairWork *work);

/* ll_pair_policy gives the policy that rules the pair now. */
static inline const LLPolicy *
ll_pair_policy(const LLPairWork *work)
{
	return &work->reigns.ruling->policy;
}

#endif							/* LL_LEDGER_PAIR_H */
