/*
 * core.h
 *	  Everything that src/core decides, in the order of a reservation's life.
 *
 * Each function is one transition: no loop, no allocation, no clock.  On a
 * refusal, a conflict, a replay or an overflow the structs are unchanged.
 * Functions that return bool return false on overflow alone.
 */
#ifndef LL_CORE_H
#define LL_CORE_H

#include "outcome.h"
#include "transition.h"
#include "types.h"

/* ---- conservation.c: what must hold whenever a budget is written -------- */

extern bool ll_budget_conserved(const LLBudget *budget);	/* C1 and its signs */
extern bool ll_pair_sound(const LLPair *pair, const LLPolicy *policy);	/* C1, C4, E2, B5 */
extern LLUnits ll_budget_room(const LLBudget *budget);	/* -1: overflowed */
extern LLUnits ll_budget_debt(const LLBudget *budget);
extern LLUnits ll_pair_debt(const LLPair *pair);

/* ---- refill.c, repayment.c: time and debt ------------------------------- */

/* ll_refill_accrue mints what fell due up to `to`; debt first (C4, E2). */
extern bool ll_refill_accrue(LLPair *pair, const LLPolicy *policy, LLTime to);

/* ll_repay_pair pays up to `units` of debt, oldest first; *used says how much (E2). */
extern bool ll_repay_pair(LLPair *pair, LLUnits units, LLUnits *used);

/* ll_repay_closed books a part of older_repaid on one closed budget (E2). */
extern bool ll_repay_closed(LLPair *pair, LLBudget *closed);

/*
 * ll_refill_reset says when the pair will be full again by refill alone, in
 * the wait fields of a verdict (J1).
 */
extern LLVerdict ll_refill_reset(const LLPair *pair, const LLPolicy *policy);

/* ll_refill_wait says when `short_units` more will have been refilled (D4). */
extern void ll_refill_wait(const LLPair *pair, const LLPolicy *policy,
						   LLUnits short_units, LLVerdict *verdict);

/* ---- epoch.c: a budget closes, the next one opens (B5) ------------------ */

/* ll_period_start aligns an instant to fixed periods (A4). */
extern LLTime ll_period_start(LLTime instant, LLTime length, LLTime origin);

/* ll_epoch_open_first opens a pair's first budget at the cap (B2, B3). */
extern void ll_epoch_open_first(LLPair *pair, const LLPolicy *policy,
								LLTime epoch, LLTime now);

/*
 * ll_epoch_open_next opens the period that starts at `epoch`; `missed` whole
 * windows passed unopened before it and pay debt (E2).  *closed is the budget
 * that ended.
 */
extern bool ll_epoch_open_next(LLPair *pair, const LLPolicy *policy,
							   LLTime epoch, int64_t missed, LLBudget *closed);

/*
 * ll_epoch_open_generation moves the pair from `old` to `new` (B5);
 * `same_periods`: their epochs have the same length and boundaries.
 */
extern bool ll_epoch_open_generation(LLPair *pair, const LLPolicy *old,
									 const LLPolicy *new, bool same_periods,
									 LLTime epoch, LLBudget *closed);

/*
 * ll_remint mints units of another budget's line into the head: deficit, debt,
 * available within the cap; those of a window that ended lapse (C5, G6).
 */
extern bool ll_remint(LLPair *pair, LLUnits units, int64_t line, const LLPolicy *policy);

/* ll_exceed books units on the head: available first, the rest is debt (D7). */
extern bool ll_exceed(LLPair *pair, LLUnits units, const LLPolicy *policy, LLUnits *debt);

/* ---- admission.c -------------------------------------------------------- */

typedef struct LLRequest
{
	LLUnits		units;			/* at least 1 */
	LLTime		deadline;		/* the caller's; LL_TIME_MAX: none (D9) */
	bool		region_matches;
	bool		estimator_accepted;
	bool		draining;		/* the generation admits no more (B6) */
	bool		route_frozen;	/* an operator has stopped the route (D8) */
	bool		quarantined;	/* the ledger may be a copy, and is to admit nothing (G7) */
	bool		start;			/* start at once (D5) */
} LLRequest;

/*
 * ll_admit decides one new request on a pair that has been brought to `now`,
 * and takes the units (D2, D3).  ll_admission_judge is the same decision with
 * nothing taken.
 */
extern LLVerdict ll_admission_judge(const LLPair *pair, const LLPolicy *policy,
									const LLRequest *request, LLTime now);
extern LLVerdict ll_admit(LLPair *pair, const LLPolicy *policy,
						  const LLRequest *request, LLTime now,
						  LLReservation *reservation);

/* ---- settlement.c: after admission -------------------------------------- */

/* How a call's operation id relates to the one that is stored. */
typedef enum LLOperation
{
	LL_OPERATION_FREE,			/* bound to nothing */
	LL_OPERATION_SAME,			/* bound to this reservation */
	LL_OPERATION_OTHER,			/* this reservation is bound to another one */
	LL_OPERATION_ELSEWHERE		/* it is bound to something else */
} LLOperation;

/* ll_start is the compare-and-set RESERVED -> STARTED (D5). */
extern LLVerdict ll_start(LLReservation *reservation, const LLPolicy *policy,
						  LLOperation operation, LLTime now);

/* ll_report_unknown: STARTED -> USAGE_UNKNOWN, by the caller or when due (D10). */
extern LLVerdict ll_report_unknown(LLReservation *reservation,
								   LLOperation operation, bool by_caller,
								   LLTime now);

typedef struct LLSettlement
{
	LLUnits		actual;			/* at least 0 */
	LLOperation operation;
	bool		same_receipt;	/* on a replay: the same receipt digest */
	bool		attested;		/* by an operator, as a last resort (D10) */
} LLSettlement;

/*
 * ll_settle spends the actual units and gives the difference back (D6-D8).
 * `closed` is the reservation's own budget when that is no longer the head,
 * else NULL.  `own` is its policy, `policy` the head's.
 */
extern LLVerdict ll_settle(LLPair *pair, LLBudget *closed,
						   LLReservation *reservation, const LLPolicy *own,
						   const LLPolicy *policy, const LLSettlement *settlement);

/* ll_release: RESERVED -> RELEASED, units back (D9). */
extern LLVerdict ll_release(LLPair *pair, LLBudget *closed,
							LLReservation *reservation, const LLPolicy *policy);

/* ll_expire_claim and ll_expire_finish: RESERVED -> EXPIRING -> EXPIRED (D14). */
extern LLVerdict ll_expire_claim(LLReservation *reservation, LLTime now);
extern LLVerdict ll_expire_finish(LLPair *pair, LLBudget *closed,
								  LLReservation *reservation, const LLPolicy *policy);

/* ll_report_progress records what an execution has used so far (D10). */
extern LLVerdict ll_report_progress(LLReservation *reservation,
									LLOperation operation, LLUnits units);

/*
 * ll_claim_unknown leases unknown usage to one reconciler, until `until`; false:
 * it is not unknown, or another lease runs (D10).  No balance moves, and no
 * settlement asks who has claimed.
 */
extern bool ll_claim_unknown(LLReservation *reservation, LLTime now, LLTime until);

typedef struct LLExtension
{
	LLUnits		units;			/* more of them, at least 0 */
	LLTime		expires_at;		/* a later deadline; an earlier one moves nothing */
	bool		head;			/* the reservation's own budget is the head */
	bool		draining;
	bool		route_frozen;
	bool		quarantined;
} LLExtension;

/*
 * ll_extend gives a running hold or execution more units or a later deadline,
 * decided like a new reserve (D13).  `own` is the policy of the reservation,
 * `policy` the head's.
 */
extern LLVerdict ll_extend(LLPair *pair, LLReservation *reservation,
						   const LLPolicy *own, const LLPolicy *policy,
						   const LLExtension *extension, LLTime now);

/* ---- usage.c: what no reservation covers, and operators ------------------ */

/*
 * ll_record_usage books usage that was never reserved (D12).  What is
 * `imported` was spent under another limiter, by no single execution (B2).
 */
extern LLVerdict ll_record_usage(LLPair *pair, const LLPolicy *policy, LLUnits units,
								 bool imported);

/*
 * ll_grant mints what an operator grants: debt, deficit, available within the
 * cap; *granted says how much took effect (E3).
 */
extern LLVerdict ll_grant(LLPair *pair, const LLPolicy *policy, LLUnits units,
						  LLUnits *granted);

/* ll_freeze stops admission; ll_unfreeze opens again, once the debt is zero (D8). */
extern LLVerdict ll_freeze(LLPair *pair);
extern LLVerdict ll_unfreeze(LLPair *pair);

/* ---- emergency.c: shards, on the side of the ledger (G) ------------------ */

typedef struct LLIssue
{
	LLUnits		units;			/* at least 1 */
	LLUnits		outstanding;	/* in shards of the pair that are not settled */
	LLUnits		largest_share;	/* of those and these, what the policy allows; 0: no shards */
	bool		draining;
	bool		route_frozen;
} LLIssue;

/* ll_issue_shard moves units from available into a shard (G2). */
extern LLVerdict ll_issue_shard(LLPair *pair, const LLPolicy *policy, const LLIssue *issue);

/* What one report did at the centre. */
typedef struct LLReconciled
{
	LLUnits		excess;			/* booked on the head by it (D7) */
	LLUnits		confirmed;
	LLUnits		reminted;
} LLReconciled;

/*
 * ll_reconcile_shard takes in the next report of a shard: `receipted` is what its
 * receipts say was used, `breach` that one of them used more than its hard limit.
 */
extern LLVerdict ll_reconcile_shard(LLPair *pair, const LLPolicy *policy,
									LLIssuedShard *issued, const LLShard *reported,
									LLUnits receipted, bool breach, LLReconciled *done);

/* ll_shard_settled: nothing of it is left to come back, or to be waited for (B6). */
extern bool ll_shard_settled(const LLIssuedShard *issued);

/* ---- local.c: shards, on the side of the gateway (G) --------------------- */

/* ll_shard_conserved checks G1 and that no side of it is negative. */
extern bool ll_shard_conserved(const LLShard *shard);

typedef struct LLLocalRequest
{
	LLUnits		units;			/* at least 1 */
	LLTime		deadline;		/* the caller's; LL_TIME_MAX: none (D9) */
	LLUnits		largest_reservation;
	LLTime		shard_expires_at;
	LLTime		hold_ttl;
	bool		quarantined;	/* and to admit nothing then (G7) */
} LLLocalRequest;

/* ll_local_reserve takes units from the shard; no hold outlives it (G4). */
extern LLVerdict ll_local_reserve(LLShard *shard, const LLLocalRequest *request, LLTime now,
								  LLReservation *reservation);

/*
 * ll_local_settle spends the actual units, once.  What exceeds the reservation
 * takes what the shard has available first; the rest is excess (D7, G1).
 */
extern LLVerdict ll_local_settle(LLShard *shard, LLReservation *reservation,
								 const LLSettlement *settlement);

/* ll_local_release and ll_local_expire give a hold back, in one step (D9, D14). */
extern LLVerdict ll_local_release(LLShard *shard, LLReservation *reservation);
extern LLVerdict ll_local_expire(LLShard *shard, LLReservation *reservation, LLTime now);

/* ll_local_seal retires what is available; what comes back later is retired, too (G6). */
extern void ll_local_seal(LLShard *shard);

/* ll_local_boot: what an earlier boot held may have run, so its usage is unknown (G5). */
extern bool ll_local_boot(LLReservation *reservation);

/* ll_local_transition_allows judges a stored row of the gateway, as C3 does. */
extern bool ll_local_transition_allows(LLState from, LLState to);

/* ---- rollout.c ----------------------------------------------------------- */

/* ll_rollout_bucket: 0 to 99, of a route, or of one subject on it (B4). */
extern int	ll_rollout_bucket(const char *route, size_t route_length,
							  const char *subject, size_t subject_length);

/* ---- purge.c: what ended long enough ago (D15) --------------------------- */

/* ll_purge_due: what ended at that instant has been kept for its retention. */
extern bool ll_purge_due(LLTime ended_at, LLTime retention, LLTime now);

/* ll_purge_spent books units whose rows are deleted; false: more than was spent. */
extern bool ll_purge_spent(LLBudget *budget, LLUnits units);

/* ll_purge_budget: a closed budget holds nothing, owes nothing, and all that it spent is purged. */
extern bool ll_purge_budget(const LLBudget *closed);

#endif							/* LL_CORE_H */
