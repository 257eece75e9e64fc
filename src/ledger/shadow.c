/*
 * shadow.c
 *	  What a generation would have decided, beside the one that decides (B7).
 *
 * The shadow has a budget of its own, evaluated in the same call by the same
 * code of src/core.  It holds nothing: what it would have admitted it spends at
 * once as asked for, and settlement, release and expiry of the real reservation
 * correct that figure.  What ran nowhere, since the enforced generation refused
 * it, or was left to the caller's own limiter, counts as used in full.
 *
 * It changes no decision and no balance, and keeps nobody waiting: a shadow's
 * row that somebody else has locked, or is about to make, is passed by.  Only
 * where no policy is in force is a pair without a head locked by that row, and
 * not by a call that holds the lock of another pair.
 */
#include "postgres.h"

#include "pair.h"

#include "core/arith.h"
#include "miscadmin.h"

/* a budget of a shadow that closes is forgotten: its debt and its numbers go on in the head */
static void
forget_closed(void *arg, const LLBudget *closed, LLTime closed_at)
{
}

/* present brings the shadow to the instant of the call. */
static bool
present(LLShadow *shadow, const LLPolicyRow *row, TimestampTz clock)
{
	LLPair	   *pair = &shadow->head.pair;
	LLReign		reign = {&row->policy, &row->periods, clock};

	if (!ll_roll(pair, &reign, 1, clock, forget_closed, NULL))
		return false;
	pair->older_repaid = 0;		/* to budgets that nobody keeps */
	return true;
}

/* open_first makes the budget that a shadow begins with, in memory. */
static void
open_first(LLShadow *shadow, const LLPolicyRow *row, TimestampTz clock)
{
	ll_epoch_open_first(&shadow->head.pair, &row->policy, ll_period_of(&row->periods, clock), clock);
	shadow->head.lineage.opened_at = clock;
}

/*
 * find gives the shadow of a pair, locked and present; NULL: it is locked by
 * somebody else, or beyond what numbers hold.
 */
static LLShadow *
find(LLPairWork *work, const LLPolicyRow *row)
{
	LLShadow   *shadow = work->shadow;
	LockWaitPolicy policy = work->locked || work->beside_locked || ll_policy_covers(&work->reigns)
		? LockWaitSkip : LockWaitBlock;

	while (shadow == NULL)
	{
		LLLock		lock;

		CHECK_FOR_INTERRUPTS();
		shadow = palloc0(sizeof(LLShadow));
		shadow->head.subject = work->head.subject;
		shadow->head.route = work->head.route;
		shadow->head.frozen_at = LL_NO_TIME;
		lock = ll_shadow_lock(shadow, row->generation, policy);
		if (lock == LL_LOCK_BUSY)
			return NULL;
		if (lock == LL_LOCK_GONE)
		{
			open_first(shadow, row, work->clock);
			if (ll_shadow_insert(shadow, policy))
				ll_store_step();
			else if (policy == LockWaitSkip)
				return NULL;
			shadow = NULL;		/* ours or theirs: locked in the next round */
		}
	}
	if (!present(shadow, row, work->clock))
		return NULL;
	work->shadow = shadow;
	return shadow;
}

/*
 * ll_shadow_judge asks the shadow about a request whose fate is known.  What it
 * would have admitted is noted in the row of an admitted one, if there is one.
 */
LLJudgement
ll_shadow_judge(LLPairWork *work, LLRequest *request, LLHappened happened, LLReservationRow *admitted)
{
	const LLPolicyRow *row = work->reigns.shadow;
	LLShadow   *shadow = find(work, row);
	LLJudgement judgement = {false, false, happened};
	LLPair		pair;

	if (shadow == NULL)
		return judgement;
	judgement.asked = true;

	/* what the pair really holds counts for the largest outstanding */
	pair = shadow->head.pair;
	if (work->reigns.ruling != NULL)
		pair.older_reserved = work->head.pair.older_reserved + work->head.pair.head.reserved -
			(admitted != NULL ? request->units : 0);
	if (ll_admission_judge(&pair, &row->policy, request, pair.seen_at).outcome != LL_ACCEPTED ||
		ll_record_usage(&shadow->head.pair, &row->policy, request->units, true).overflow)
	{
		shadow->would_reject[happened]++;
		return judgement;
	}
	judgement.would_admit = true;
	shadow->would_admit[happened]++;
	if (admitted != NULL)
	{
		admitted->shadow_generation = row->generation;
		admitted->shadow_line = shadow->head.pair.head.line;
	}
	return judgement;
}

/*
 * give_back takes `units` out of what the head has spent, as if they had been held
 * until now and were released.  What was spent in an epoch that has closed is
 * minted, since nobody keeps that one.
 */
static void
give_back(LLPair *pair, const LLPolicy *policy, LLUnits units)
{
	LLPair		p = *pair;
	LLReservation hold = {LL_RESERVED};
	LLUnits		given;

	hold.reserved_units = ll_min(units, p.head.spent);
	p.head.spent -= hold.reserved_units;
	p.head.reserved += hold.reserved_units;
	if (!ll_release(&p, NULL, &hold, policy).overflow &&
		!ll_grant(&p, policy, units - hold.reserved_units, &given).overflow)
		*pair = p;
}

/*
 * ll_shadow_unjudge takes back what this call made a shadow say of a request
 * that was not answered like that after all.
 */
void
ll_shadow_unjudge(LLPairWork *work, LLJudgement *judgement, LLUnits units)
{
	LLShadow   *shadow = work->shadow;

	if (!judgement->asked)
		return;
	if (judgement->would_admit)
	{
		shadow->would_admit[judgement->happened]--;
		give_back(&shadow->head.pair, &work->reigns.shadow->policy, units);
	}
	else
		shadow->would_reject[judgement->happened]--;
	judgement->asked = false;
}

/*
 * ll_shadow_settle corrects what a shadow has spent for a reservation that ends
 * with `used` units.  Units of a window that has passed lapse, as real ones do (C5).
 */
void
ll_shadow_settle(LLPairWork *work, const LLReservationRow *row, LLUnits used)
{
	const LLPolicyRow *policy = work->reigns.shadow;
	LLShadow   *shadow;
	LLPair	   *pair;

	if (row->shadow_generation == 0 || policy == NULL ||
		policy->generation != row->shadow_generation)
		return;					/* it is no shadow any more */
	shadow = find(work, policy);
	if (shadow == NULL)
		return;
	pair = &shadow->head.pair;
	if (used > row->asked_units)
		(void) ll_record_usage(pair, &policy->policy, used - row->asked_units, true);
	else if (policy->policy.refill != LL_REFILL_WINDOW || pair->head.line == row->shadow_line)
		give_back(pair, &policy->policy, row->asked_units - used);
	pair->frozen = false;		/* a shadow has no operator who would open it */
}

/* ll_shadow_spend books usage that was never reserved (D12). */
void
ll_shadow_spend(LLPairWork *work, LLUnits units)
{
	LLShadow   *shadow = work->reigns.shadow != NULL ? find(work, work->reigns.shadow) : NULL;

	if (shadow == NULL)
		return;
	(void) ll_record_usage(&shadow->head.pair, &work->reigns.shadow->policy, units, true);
	shadow->head.pair.frozen = false;
}

/* ll_shadow_write writes what this call made of the shadow. */
void
ll_shadow_write(LLPairWork *work)
{
	if (work->shadow != NULL)
		ll_shadow_update(work->shadow);
	work->shadow = NULL;
}
