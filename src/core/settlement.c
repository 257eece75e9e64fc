/*
 * settlement.c
 *	  What happens to a reservation after it was admitted (D5-D10, D14), and
 *	  where its units go (C4, C5, D7, E2).
 *
 * Each function asks the transition table first.  Work is done on copies that
 * replace the originals at the end, after the last thing that can fail.
 */
#include "arith.h"
#include "core.h"

/* judge turns the table's entry into a verdict. */
static LLVerdict
judge(LLState state, LLEvent event)
{
	const LLTransition *t = ll_transition(state, event);
	LLVerdict	verdict = {t->outcome, t->dimension, false, false, LL_WAIT_NONE, 0, 0};

	verdict.replayed = t->outcome == LL_ACCEPTED && t->next == state;
	return verdict;
}

static LLVerdict
say(LLOutcome outcome, LLDimension dimension)
{
	LLVerdict	verdict = {outcome, dimension, false, false, LL_WAIT_NONE, 0, 0};

	return verdict;
}

static LLVerdict
overflowed(LLVerdict verdict)
{
	verdict.overflow = true;
	return verdict;
}

/*
 * ll_remint brings units of a closed budget, or of a shard, back to the head:
 * deficit, then debt, then available within the cap.  Units of a window that
 * ended lapse (C5, G6).
 */
bool
ll_remint(LLPair *p, LLUnits units, int64_t line, const LLPolicy *policy)
{
	LLUnits		part;
	LLUnits		rest;

	if (line != p->head.line)
		return true;
	part = ll_min(units, p->head.deficit);
	p->head.deficit -= part;
	rest = units - part;
	if (!ll_repay_pair(p, rest, &part))
		return false;
	rest -= part;
	part = ll_min(rest, policy->cap - p->head.available);
	if (!ll_add(&p->head.minted, part) || !ll_add(&p->head.burned, rest - part))
		return false;
	p->head.available += part;
	return true;
}

/*
 * come_home returns units to the head that held them: they pay its debt, then
 * fill it up to the cap; what exceeds the cap was refilled while they were held,
 * and is un-minted (C4).
 */
static bool
come_home(LLBudget *head, LLUnits units, const LLPolicy *policy)
{
	LLUnits		part;
	LLUnits		over;

	head->reserved -= units;
	part = ll_min(units, ll_budget_debt(head));
	head->overdraft_repaid += part;
	over = ll_max(0, units - part - (policy->cap - head->available));
	if (over > head->minted || !ll_add(&head->burned, over))
		return false;
	head->available += units - part - over;
	head->minted -= over;
	return true;
}

/* give_back returns units that were reserved and not used (C4, C5). */
static bool
give_back(LLPair *p, LLBudget *closed, LLUnits units, const LLPolicy *policy)
{
	if (closed != 0)
	{
		closed->reserved -= units;
		p->older_reserved -= units;
		return ll_add(&closed->available, units) &&
			ll_remint(p, units, closed->line, policy);
	}
	return come_home(&p->head, units, policy);
}

/* spend moves units of the reservation to spent, where it was reserved. */
static bool
spend(LLPair *p, LLBudget *closed, LLUnits units)
{
	LLBudget   *own = closed != 0 ? closed : &p->head;

	own->reserved -= units;
	if (closed != 0)
		p->older_reserved -= units;
	return ll_add(&own->spent, units);
}

/* ll_start is the compare-and-set RESERVED -> STARTED (D5). */
LLVerdict
ll_start(LLReservation *reservation, const LLPolicy *policy,
		 LLOperation operation, LLTime now)
{
	LLVerdict	verdict = judge(reservation->state, LL_EVENT_START);

	if (operation == LL_OPERATION_OTHER ||
		(verdict.replayed && operation != LL_OPERATION_SAME))
		return say(LL_CONFLICT, LL_DIM_OPERATION);
	if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
		return verdict;
	if (now >= reservation->expires_at) /* late, even if no sweep came by */
		return say(LL_REFUSED, LL_DIM_EXPIRED);
	if (operation != LL_OPERATION_FREE)
		return say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE);
	reservation->state = LL_STARTED;
	reservation->expires_at = ll_add_capped(now, policy->execution_ttl);
	return verdict;
}

/*
 * ll_report_unknown: nobody knows what the execution used.  The units stay
 * reserved; only an operation's receipt ends it (D10).
 */
LLVerdict
ll_report_unknown(LLReservation *reservation, LLOperation operation,
				  bool by_caller, LLTime now)
{
	LLVerdict	verdict = judge(reservation->state, LL_EVENT_REPORT_UNKNOWN);

	if (by_caller && (operation == LL_OPERATION_OTHER ||
					  (verdict.outcome == LL_ACCEPTED && operation != LL_OPERATION_SAME)))
		return say(LL_CONFLICT, LL_DIM_OPERATION);
	if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
		return verdict;
	if (!by_caller && now < reservation->expires_at)
		return say(LL_REFUSED, LL_DIM_NOT_DUE);
	reservation->state = LL_USAGE_UNKNOWN;
	return verdict;
}

/*
 * ll_report_progress: a stream says what it has used so far.  The figure never
 * falls, a lower one changes nothing, and no balance moves (D10).
 */
LLVerdict
ll_report_progress(LLReservation *reservation, LLOperation operation, LLUnits units)
{
	LLVerdict	verdict = judge(reservation->state, LL_EVENT_SETTLE);

	if (verdict.outcome != LL_ACCEPTED)
		return verdict;
	if (operation != LL_OPERATION_SAME)
		return say(LL_CONFLICT, LL_DIM_OPERATION);
	if (verdict.replayed)
		return say(LL_REFUSED, LL_DIM_SETTLED);
	verdict.replayed = units <= reservation->progress_units;
	reservation->progress_units = ll_max(units, reservation->progress_units);
	return verdict;
}

/*
 * ll_claim_unknown leases unknown usage to one reconciler.  A lease that has
 * lapsed, because its reconciler crashed or found nothing out, is no claim.
 */
bool
ll_claim_unknown(LLReservation *reservation, LLTime now, LLTime until)
{
	if (reservation->state != LL_USAGE_UNKNOWN || reservation->claimed_until > now)
		return false;
	reservation->claimed_until = until;
	return true;
}

/*
 * ll_settle spends the actual units and gives the difference back, once.  A
 * repeat with the same figures is the same answer, other figures are a
 * conflict.  Excess is borne by the head, and may freeze the pair (D6-D8).
 */
LLVerdict
ll_settle(LLPair *pair, LLBudget *closed, LLReservation *reservation,
		  const LLPolicy *own, const LLPolicy *policy,
		  const LLSettlement *settlement)
{
	LLVerdict	verdict = judge(reservation->state, LL_EVENT_SETTLE);
	LLUnits		actual = settlement->actual;
	LLUnits		within = ll_min(actual, reservation->reserved_units);
	LLReservation r = *reservation;
	LLPair		p = *pair;
	LLBudget	c = {0};
	LLBudget   *older = closed != 0 ? &c : 0;

	if (verdict.outcome != LL_ACCEPTED)
		return verdict;
	if (settlement->operation != LL_OPERATION_SAME)
		return say(LL_CONFLICT, LL_DIM_OPERATION);
	if (verdict.replayed)
		return actual == r.actual_units && settlement->same_receipt
			? verdict : say(LL_CONFLICT, LL_DIM_FIGURES);

	if (settlement->attested && actual < r.progress_units)
		return say(LL_REFUSED, LL_DIM_PROGRESS);

	if (closed != 0)
		c = *closed;
	r.actual_units = actual;
	r.excess_units = actual - within;
	if (!spend(&p, older, within) ||
		!give_back(&p, older, r.reserved_units - within, policy) ||
		!ll_exceed(&p, r.excess_units, policy, &r.overdraft_units) ||
		ll_budget_room(&p.head) < 0 || (closed != 0 && ll_budget_room(&c) < 0))
		return overflowed(verdict);
	if (actual > own->hard_limit)
		p.frozen = true;
	r.state = r.overdraft_units > 0
		? ll_transition(reservation->state, LL_EVENT_SETTLE)->next_with_debt
		: ll_transition(reservation->state, LL_EVENT_SETTLE)->next;

	*pair = p;
	if (closed != 0)
		*closed = c;
	*reservation = r;
	return verdict;
}

/* leave ends a hold that was never started; all its units come back. */
static LLVerdict
leave(LLPair *pair, LLBudget *closed, LLReservation *reservation,
	  const LLPolicy *policy, LLEvent event)
{
	LLVerdict	verdict = judge(reservation->state, event);
	LLPair		p = *pair;
	LLBudget	c = {0};

	if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
		return verdict;
	if (closed != 0)
		c = *closed;
	if (!give_back(&p, closed != 0 ? &c : 0, reservation->reserved_units, policy) ||
		ll_budget_room(&p.head) < 0 || (closed != 0 && ll_budget_room(&c) < 0))
		return overflowed(verdict);
	*pair = p;
	if (closed != 0)
		*closed = c;
	reservation->state = ll_transition(reservation->state, event)->next;
	return verdict;
}

/* ll_release: RESERVED -> RELEASED (D9). */
LLVerdict
ll_release(LLPair *pair, LLBudget *closed, LLReservation *reservation,
		   const LLPolicy *policy)
{
	return leave(pair, closed, reservation, policy, LL_EVENT_RELEASE);
}

/*
 * ll_expire_claim: RESERVED -> EXPIRING.  From here on a start is refused, and
 * no balance has moved yet (D14).
 */
LLVerdict
ll_expire_claim(LLReservation *reservation, LLTime now)
{
	LLVerdict	verdict = judge(reservation->state, LL_EVENT_CLAIM);

	if (verdict.outcome != LL_ACCEPTED || verdict.replayed)
		return verdict;
	if (now < reservation->expires_at)
		return say(LL_REFUSED, LL_DIM_NOT_DUE);
	reservation->state = LL_EXPIRING;
	return verdict;
}

/* ll_expire_finish: EXPIRING -> EXPIRED, units back (D14). */
LLVerdict
ll_expire_finish(LLPair *pair, LLBudget *closed, LLReservation *reservation,
				 const LLPolicy *policy)
{
	return leave(pair, closed, reservation, policy, LL_EVENT_EXPIRE);
}
