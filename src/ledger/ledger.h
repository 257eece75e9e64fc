/*
 * ledger.h
 *	  The transaction scripts: lock, read, decide, check, write.
 *
 * Every script serves one element and a thousand by the same path.  Elements
 * come in with their arguments checked; each goes out with one receipt.
 *
 * Those that are told to skip what is locked wait for nobody: an element that
 * would have to wait is passed by instead, with nothing done for it and nothing
 * said in its receipt.
 */
#ifndef LL_LEDGER_LEDGER_H
#define LL_LEDGER_LEDGER_H

#include "postgres.h"

#include "pair.h"
#include "store/binding.h"
#include "store/counters.h"
#include "store/recovery.h"

/* What a call returns about a reservation (J1).  0, -1 and LL_NO_TIME: NULL. */
typedef struct LLReceipt
{
	LLVerdict	verdict;
	const char *state;
	int64		generation;
	TimestampTz epoch;
	LLUnits		reserved_units;
	LLUnits		actual_units;
	Datum		operation;
	TimestampTz expires_at;
	TimestampTz ledger_at;
	LLUnits		available;
	LLUnits		cap;
	TimestampTz reset_at;
	int64		retry_after_ms;
	LLUnits		hard_limit;
	LLUnits		excess_units;
	int64		excess_generation;
	TimestampTz excess_epoch;
} LLReceipt;

/* run.c */
extern void ll_run(Oid function, void (*script) (void *arg), void *arg);
extern TimestampTz ll_now(void);
extern void ll_confirm(const LLReceipt *receipts, int count);
extern void ll_confirm_others(void);
extern void ll_count(LLCall call, const LLVerdict *verdict);
extern void ll_count_receipts(LLCall call, const LLReceipt *receipts, int count);
extern bool ll_counts(LLCounts *counts);

/* receipt.c */
extern void ll_receipt_answer(LLReceipt *receipt, LLVerdict verdict, TimestampTz at);
extern void ll_receipt_pair(LLReceipt *receipt, const LLPairWork *work);
extern void ll_receipt_reservation(LLReceipt *receipt, const LLReservationRow *row);
extern void ll_receipt_stored(LLReceipt *receipt, LLVerdict verdict, const LLReservationRow *row);
extern TimestampTz ll_receipt_reset_at(const LLPairWork *work);
extern LLVerdict ll_say(LLOutcome outcome, LLDimension dimension);
extern LLVerdict ll_replayed(void);

/* reserve.c */

/* How the elements of a reserve belong together. */
typedef struct LLBatch
{
	bool		require_all;	/* all of them or none (J2) */
	LockWaitPolicy policy;		/* LockWaitSkip only without require_all */
} LLBatch;

typedef struct LLReserveElement
{
	Datum		subject;
	Datum		route;
	Datum		id;
	LLUnits		units;
	Datum		digest;			/* bytea of 32 bytes */
	Datum		region;			/* or 0 */
	Datum		estimator;		/* bytea of 32 bytes, or 0 */
	TimestampTz deadline;		/* LL_NO_TIME: none */
	bool		has_priority;
	int32		priority;
	Datum		start_operation;	/* or 0 */

	/* worked out by the script */
	int			index;
	LLPairWork *work;
	LLReservationRow row;
	bool		passed_by;		/* it would have had to wait: it has no receipt */
	bool		faulty;			/* it was, because its pair made a group fail */
	bool		admitted;
	bool		over;			/* what stands under its id holds nothing any more */
	bool		new_id;			/* no row under the id: seen at once for many */
	struct LLReserveElement *echo_of;	/* the element whose id it repeats */
	struct LLReserveElement **id_holder;	/* who was admitted under the id, if
											 * any: one cell for all that carry it */
	struct LLReserveElement **operation_holder; /* likewise */
	ItemPointerData operation_tid;
	LLJudgement judgement;		/* of a shadow */
} LLReserveElement;

extern void ll_reserve(LLReserveElement *elements, int count, LLBatch batch, LLReceipt *receipts);
extern bool ll_refuse(LLReserveElement *e, LLReceipt *receipt);

/* start.c */
typedef struct LLStartElement
{
	Datum		subject;
	Datum		id;
	Datum		operation;
	int			index;
	LLReservationRow *row;
	struct LLStartElement **operation_holder;	/* who binds the operation, if
												 * any: one cell for all that name it */
	bool		passed_by;
	bool		faulty;
	bool		moved;			/* to be written */
	LLReservation before;
} LLStartElement;

extern void ll_start_reservations(LLStartElement *elements, int count, LockWaitPolicy policy,
								  LLReceipt *receipts);
extern void ll_report_usage_unknown(Datum subject, Datum id, Datum operation, LLReceipt *receipt);
extern void ll_report_usage_progress(Datum subject, Datum id, Datum operation, LLUnits units,
									 LLReceipt *receipt);

/* extend.c */
extern void ll_extend_reservation(Datum subject, Datum id, Datum extension_id,
								  const LLExtensionRow *asked, LLReceipt *receipt);

/* usage.c */
typedef struct LLUsageElement
{
	Datum		subject;
	Datum		route;
	Datum		operation;
	LLUnits		units;
	int			index;
	LLPairWork *work;
} LLUsageElement;

extern void ll_record_unreserved(LLUsageElement *elements, int count, bool import,
								 LLReceipt *receipts);

/* settle.c */
typedef struct LLSettleElement
{
	Datum		subject;
	Datum		id;
	bool		release;		/* else: settle */
	Datum		operation;
	LLUnits		actual;
	Datum		receipt_digest; /* bytea of 32 bytes, or 0 */
	Datum		source;			/* text */
	bool		attested;		/* source is an operator (D10) */
	int			index;
	LLReservationRow *row;
	LLPairWork *work;
	bool		passed_by;
	bool		faulty;
	bool		moved;
} LLSettleElement;

extern void ll_settle_or_release(LLSettleElement *elements, int count, LockWaitPolicy policy,
								 LLReceipt *receipts);

/* resolve.c */
extern void ll_get_reservation(Datum subject, Datum id, LLReceipt *receipt);
extern void ll_resolve_reservation(Datum subject, Datum id, Datum digest, LLReceipt *receipt);

/* expire.c */
typedef struct LLExpiry
{
	int64		claimed;
	int64		expired;
	LLUnits		expired_units;
	int64		unknown;
	TimestampTz from;			/* passes over earlier deadlines; 0: over none */
	TimestampTz oldest_at;		/* deadline of the first row that was due */
} LLExpiry;

/* What stands in a state that time ends. */
typedef struct LLDue
{
	bool		now;			/* something is due, or claimed */
	TimestampTz next_at;		/* the next deadline; LL_TIME_MAX: none */
} LLDue;

extern bool ll_holds_matter(const LLVerdict *verdict);
extern bool ll_end_due_holds(LLPairWork *work);
extern void ll_claim_expiring(int32 limit, LLExpiry *expiry);
extern void ll_finish_expiring(int32 limit, LLExpiry *expiry);
extern void ll_expire_executions(int32 limit, LLExpiry *expiry);
extern LLDue ll_next_due(LLState state, TimestampTz from);

/* claim.c */
typedef struct LLClaim
{
	Datum		subject;
	Datum		id;
	Datum		route;
	Datum		operation;
	LLUnits		reserved_units;
	LLUnits		progress_units;
	LLUnits		hard_limit;
	TimestampTz unknown_at;
	TimestampTz claimed_until;
} LLClaim;

typedef struct LLClaims
{
	Datum		reconciler;		/* text: who claims */
	int64		lease;			/* microseconds */
	int32		limit;
	LLClaim    *claim;			/* room for `limit` of them */
	int			count;
} LLClaims;

extern void ll_claim_unknown_usage(LLClaims *claims);

/* budget.c */
typedef struct LLBudgetAnswer
{
	LLVerdict	verdict;
	LLUnits		repaid_units;
	LLUnits		granted_units;
	LLUnits		due_units;
	LLPairWork	work;
	bool		found;
} LLBudgetAnswer;

typedef struct LLDebtors
{
	int64		pairs;
	LLUnits		repaid_units;
	Datum		last_subject;	/* 0: that was the end */
	Datum		last_route;
	TimestampTz next_at;		/* when one of those that still owe can be repaid */
	bool		busy;			/* one of them was locked */
} LLDebtors;

extern const char *ll_admission_name(const LLPairWork *work);
extern void ll_get_budget(Datum subject, Datum route, LLBudgetAnswer *answer);
extern void ll_repay_debt(Datum subject, Datum route, LLBudgetAnswer *answer);
extern void ll_freeze_pair(Datum subject, Datum route, Datum reason, LLBudgetAnswer *answer);
extern void ll_grant_capacity(Datum subject, Datum route, Datum grant_id, LLUnits units,
							  Datum reason, LLBudgetAnswer *answer);
extern void ll_unfreeze_pair(Datum subject, Datum route, Datum reason, LLBudgetAnswer *answer);
extern void ll_repay_debtors(int32 limit, Datum after_subject, Datum after_route, LLDebtors *debtors);

/* purge.c: one bounded step, in the order of (generation, instant) */
typedef struct LLPurge
{
	int32		limit;
	int64		from_generation;	/* 0: from the first on, the fences */
	TimestampTz from_instant;
	int64		purged;
	LLUnits		units;			/* that the purged rows had spent */
	bool		more;			/* it stopped for its limit: go on at */
	int64		next_generation;
	TimestampTz next_instant;
} LLPurge;

extern void ll_purge_reservations(LLPurge *purge);
extern void ll_purge_usage(LLPurge *purge);
extern void ll_purge_budgets(LLPurge *purge);

/* faulty.c */
extern void ll_faulty_begin(int job);
extern void ll_faulty_end(void);
extern bool ll_faulty(Datum subject, Datum route);
extern void ll_faulty_here(Datum subject, Datum route);
extern bool ll_faulty_add(void);
extern void ll_faulty_forget(int job, bool all);
extern int	ll_faulty_count(int job);

#endif							/* LL_LEDGER_LEDGER_H */
