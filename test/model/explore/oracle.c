/*
 * oracle.c
 *	  The judge of every step: what must hold in every world, and between one
 *	  world and the next.
 *
 * Knows the structs of src/core and calls nothing of it: the arithmetic is
 * written anew, and so is how a reservation may move.  What really ran and what
 * was told to whom is in the ghost record, which no script reads.
 *
 * C1 alone is not enough, since any figures can be made to add up: sums over
 * rows, signs, and the bound of all that can ever be used stand beside it.
 */
#include "world.h"

#define NAME(name)	#name,

static const char *const counters[] = {COUNTERS(NAME)};

const char *
counter_name(Counter counter)
{
	return counters[counter];
}

/* The first check that fails ends the judgement. */
#define CHECK(name, rule, counter, condition) \
	do { \
		if (!(condition)) \
			return (Finding) {#name, rule, COUNTER_##counter}; \
	} while (0)

#define FIRST(finding) \
	do { \
		Finding		first = finding; \
		if (first.check != NULL) \
			return first; \
	} while (0)

static const Finding well = {NULL, NULL, 0};

/* ---- words of the oracle's own ------------------------------------------- */

#define BIT(state)	(1u << (state))

static const unsigned holding =
	BIT(LL_RESERVED) | BIT(LL_STARTED) | BIT(LL_USAGE_UNKNOWN) | BIT(LL_EXPIRING);
static const unsigned settled = BIT(LL_SETTLED) | BIT(LL_SETTLED_WITH_DEBT);
static const unsigned ran_or_may = BIT(LL_STARTED) | BIT(LL_USAGE_UNKNOWN) | BIT(LL_SETTLED) |
	BIT(LL_SETTLED_WITH_DEBT);

/* Where a row may be after one transaction; both halves of an expiry may be in one. */
static const unsigned moves[LL_STATE_COUNT] = {
	[LL_ABSENT] = BIT(LL_RESERVED) | BIT(LL_STARTED) | BIT(LL_RELEASED),
	[LL_RESERVED] = BIT(LL_STARTED) | BIT(LL_RELEASED) | BIT(LL_EXPIRING) | BIT(LL_EXPIRED),
	[LL_STARTED] = BIT(LL_USAGE_UNKNOWN) | BIT(LL_SETTLED) | BIT(LL_SETTLED_WITH_DEBT),
	[LL_USAGE_UNKNOWN] = BIT(LL_SETTLED) | BIT(LL_SETTLED_WITH_DEBT),
	[LL_EXPIRING] = BIT(LL_EXPIRED),
};

/* How far along its life a state is; what was told never goes back. */
static const int rank[LL_STATE_COUNT] = {
	[LL_ABSENT] = 0,[LL_RESERVED] = 1,[LL_STARTED] = 2,[LL_EXPIRING] = 2,[LL_USAGE_UNKNOWN] = 3,
	[LL_SETTLED] = 4,[LL_SETTLED_WITH_DEBT] = 4,[LL_RELEASED] = 4,[LL_EXPIRED] = 4
};

static bool
in(LLState state, unsigned set)
{
	return (BIT(state) & set) != 0;
}

static int64_t
larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static const LLBudget *
budget_at(const Ledger *l, int i)
{
	return i < l->closed_count ? &l->closed[i] : &l->pair.head;
}

static int64_t
owed(const LLBudget *b)
{
	return b->overdraft_issued - b->overdraft_repaid;
}

/* Sums over all budgets of the pair. */
typedef struct Sums
{
	int64_t		reserved;
	int64_t		spent;
	int64_t		issued;
	int64_t		repaid;
	int64_t		debt;
	int64_t		retired;
	int64_t		burned;
} Sums;

static Sums
sums_of(const Ledger *l)
{
	Sums		s = {0};

	for (int i = 0; i <= l->closed_count; i++)
	{
		const LLBudget *b = budget_at(l, i);

		s.reserved += b->reserved;
		s.spent += b->spent;
		s.issued += b->overdraft_issued;
		s.repaid += b->overdraft_repaid;
		s.debt += owed(b);
		s.retired += b->retired_for_emergency;
		s.burned += b->burned;
	}
	return s;
}

/* ---- the ledger's balances ----------------------------------------------- */

static Finding
check_budget(const LLBudget *b)
{
	int64_t		came = b->opening + b->minted + b->overdraft_issued;
	int64_t		went = b->available + b->reserved + b->spent + b->retired_for_emergency +
		b->overdraft_repaid;

	CHECK(equation, "C1", discrepancies, came == went);
	CHECK(available_sign, "C1", overspends, b->available >= 0);
	CHECK(signs, "C1", discrepancies, b->opening >= 0 && b->minted >= 0 &&
		  b->overdraft_issued >= 0 && b->reserved >= 0 && b->spent >= 0 &&
		  b->retired_for_emergency >= 0 && b->overdraft_repaid >= 0 && b->burned >= 0 &&
		  b->deficit >= 0 && owed(b) >= 0);
	return well;
}

/* check_rows compares the two sums of a budget with the rows that it stands for (C2). */
static Finding
check_rows(const Ledger *l, const Deed *deed, const Ledger *before)
{
	int64_t		reserved[CLOSED + 1] = {0};
	int64_t		spent[CLOSED + 1] = {0};
	bool		twice = deed->called && deed->step.kind == TAKE && deed->message.call == RESERVE &&
		before->row[deed->message.id].r.state != LL_ABSENT;

	for (int i = 0; i < IDS; i++)
	{
		const Row  *row = &l->row[i];

		if (row->r.state == LL_ABSENT || row->budget < 0)
			continue;
		if (in(row->r.state, holding))
			reserved[row->budget] += row->r.reserved_units;
		if (!in(row->r.state, settled))
			continue;
		spent[row->budget] += row->r.actual_units - row->r.excess_units;
		if (row->r.excess_units > 0)
			spent[row->excess_budget] += row->r.excess_units;
	}
	if (l->recorded > 0)
		spent[l->recorded_budget] += l->recorded;
	for (int s = 0; s < SHARDS; s++)
		for (int n = 1; n <= l->shard[s].reconciled; n++)
			spent[l->shard[s].budget[n]] += l->shard[s].excess[n];
	for (int i = 0; i <= l->closed_count; i++)
	{
		if (twice)
			CHECK(second_debit, "D2", second_reservations,
				  budget_at(l, i)->reserved == reserved[i]);
		CHECK(reserved_is_open, "C2", discrepancies, budget_at(l, i)->reserved == reserved[i]);
		CHECK(spent_is_used, "C2", discrepancies, budget_at(l, i)->spent == spent[i]);
	}
	return well;
}

static Finding
check_pair(const Ledger *l)
{
	const LLPair *p = &l->pair;
	const LLPolicy *policy = &setup_policy[l->in_force];
	int64_t		debt = 0;
	int64_t		reserved = 0;

	for (int i = 0; i < l->closed_count; i++)
	{
		debt += owed(&l->closed[i]);
		reserved += l->closed[i].reserved;
	}
	CHECK(older_debt, "E4", unrecorded_debts, p->older_debt == debt && p->older_repaid == 0);
	CHECK(older_reserved, "C2", discrepancies, p->older_reserved == reserved);
	debt += owed(&p->head);
	CHECK(cap, "C4", overspends, p->head.available <= policy->cap);
	CHECK(debt_takes_all, "E2", overspends, debt == 0 || p->head.available == 0);
	CHECK(deficit, "B5", discrepancies, p->head.deficit == 0 ||
		  (p->head.whole && p->head.available == 0));
	CHECK(head_generation, "B5", discrepancies, p->head.generation == policy->generation);
	CHECK(fraction, "C4", discrepancies, p->remainder == 0 ||
		  (p->remainder > 0 && p->remainder < policy->refill_interval));
	CHECK(carried, "B5", discrepancies, p->head.opening <= p->head.carried);
	return well;
}

static int64_t
refilled(const LLPolicy *policy, LLTime ticks)
{
	return policy->refill != LL_REFILL_CONTINUOUS || ticks <= 0 ? 0
		: (ticks * policy->refill_units + policy->refill_interval - 1) / policy->refill_interval;
}

/* windows counts those that begin in (from, to]. */
static int64_t
windows(int policy, LLTime from, LLTime to)
{
	return setup_policy[policy].refill != LL_REFILL_WINDOW || to <= from ? 0
		: (to - BASE) / setup_periods[policy].length - (from - BASE) / setup_periods[policy].length;
}

/*
 * supply is all that can ever have been given out by this clock: the first
 * bucket, refill, windows, grants, a quota that was raised.  Refill that found
 * the bucket full is counted as well.
 */
static int64_t
supply(const World *w)
{
	const Ledger *l = &w->ledger;
	bool		switched = l->policies > 1;
	LLTime		until = switched ? w->switched_at : w->latest;
	int64_t		units = setup_policy[0].cap + l->granted;

	units += refilled(&setup_policy[0], until - BASE) +
		windows(0, BASE, until) * setup_policy[0].cap;
	if (!switched)
		return units;
	units += refilled(&setup_policy[1], w->latest - w->switched_from) +
		windows(1, w->switched_from, w->latest) * setup_policy[1].cap;
	/* a budget that the first policy opens late is one more window of it */
	units += larger(0, setup_policy[1].cap - setup_policy[0].cap);
	return units;
}

/* in_use is all that is given out or can be: in hand, held, spent, in shards. */
static int64_t
in_use(const Ledger *l, const Sums *s)
{
	int64_t		units = l->pair.head.available + s->reserved + s->spent - s->debt;

	for (int i = 0; i < SHARDS; i++)
		if (l->shard[i].there)
			units += l->shard[i].state.last.allocated - l->shard[i].state.reminted;
	return units;
}

static Finding
check_supply(const World *w, const Sums *s)
{
	const Ledger *l = &w->ledger;
	int64_t		used = in_use(l, s);

	CHECK(supply, "B5, C4", overspends, used <= supply(w));
	/* without refill no unit gets lost, either: what is not in use was burned */
	if (l->policies == 1 && setup_policy[0].refill == LL_REFILL_NONE)
	{
		int64_t		burned = s->burned;

		for (int i = 0; i < SHARDS; i++)
			if (l->shard[i].there)	/* is in use until it is minted again */
				burned -= l->shard[i].state.confirmed - l->shard[i].state.reminted;
		CHECK(lost_units, "C1", discrepancies, used + burned == supply(w));
	}
	return well;
}

/* check_growth: what never falls has not fallen, and debt is paid oldest first. */
static Finding
check_growth(const Ledger *before, const Ledger *after)
{
	bool		older_owes = false;

	CHECK(seen_at, "A3", discrepancies, after->pair.seen_at >= before->pair.seen_at &&
		  after->pair.accrued_at >= before->pair.accrued_at &&
		  after->pair.accrued_at <= after->pair.seen_at);
	CHECK(history, "B5", discrepancies, after->closed_count >= before->closed_count);
	for (int i = 0; i <= before->closed_count; i++)
	{
		const LLBudget *b = budget_at(before, i);
		const LLBudget *a = budget_at(after, i);

		CHECK(opening_fixed, "C3", discrepancies, a->opening == b->opening &&
			  a->generation == b->generation && a->epoch == b->epoch);
		CHECK(never_falls, "C3", discrepancies, a->spent >= b->spent &&
			  a->retired_for_emergency >= b->retired_for_emergency &&
			  a->overdraft_repaid >= b->overdraft_repaid && a->burned >= b->burned);
		CHECK(debt_forgotten, "E4", unrecorded_debts, a->overdraft_issued >= b->overdraft_issued);
		/* what is minted pays the oldest first; units that come back pay where they were */
		CHECK(oldest_first, "E2", discrepancies, !older_owes ||
			  a->overdraft_repaid == b->overdraft_repaid || a->minted == b->minted);
		older_owes |= owed(a) > 0;
	}
	return well;
}

/* check_lapse: units of a window that has ended are not minted into the next one. */
static Finding
check_lapse(const Ledger *before, const Ledger *after, const Deed *deed)
{
	bool		same = before->closed_count == after->closed_count;

	if (after->policies > 1 || setup_policy[0].refill != LL_REFILL_WINDOW ||
		deed->step.kind == GRANT || deed->step.kind == RECONCILE)
		return well;
	CHECK(lapsed, "C5", overspends,
		  after->pair.head.minted <= (same ? before->pair.head.minted : 0));
	return well;
}

/* ---- reservations -------------------------------------------------------- */

/* The rows of one reservation around a step. */
typedef struct Move
{
	const Row  *was;
	const Row  *is;
	const Ghost *ghost;
	const LLPolicy *policy;		/* of its own budget */
	LLTime		now;			/* the ledger's, or the shard's */
	bool		local;
} Move;

/* check_terms: the amounts and instants of a row that did not move. */
static Finding
check_terms(const Move *m, const Deed *deed)
{
	const LLReservation *b = &m->was->r;
	const LLReservation *a = &m->is->r;
	bool		extended = m->is->extended && !m->was->extended;

	CHECK(progress_falls, "D10", discrepancies, a->progress_units >= b->progress_units);
	if (a->state != b->state)
		return well;
	CHECK(terms, "D2", second_reservations, a->reserved_units == b->reserved_units +
		  (extended ? deed->message.units : 0));
	CHECK(deadline_earlier, "A3", discrepancies, a->expires_at >= b->expires_at);
	CHECK(deadline_moves, "D13", discrepancies, extended || a->expires_at == b->expires_at);
	CHECK(figures_fixed, "C3", duplicate_consumptions, a->actual_units == b->actual_units &&
		  a->excess_units == b->excess_units && a->overdraft_units == b->overdraft_units &&
		  (b->state == LL_USAGE_UNKNOWN || m->is->operation == m->was->operation) &&
		  m->is->budget == m->was->budget);
	if (!extended)
		return well;
	CHECK(extended_late, "D13", overspends, m->now < b->expires_at &&
		  (b->state == LL_RESERVED || b->state == LL_STARTED));
	CHECK(extended_too_far, "D13", discrepancies, a->expires_at == b->expires_at ||
		  a->expires_at <= m->now + (b->state == LL_STARTED ? m->policy->execution_ttl
									 : m->policy->hold_ttl));
	return well;
}

static Finding
check_settled(const Move *m, const Deed *deed)
{
	const LLReservation *a = &m->is->r;
	int64_t		over = larger(0, a->actual_units - a->reserved_units);
	bool		came = deed->step.kind == TAKE;

	CHECK(settled_by_receipt, "D10", overspends, (came && deed->message.call == SETTLE) ||
		  deed->step.kind == ATTEST || deed->step.kind == LOCAL_RECEIPT);
	CHECK(figures, "D6", unrecorded_debts, !came || a->actual_units == deed->message.units);
	CHECK(reserved_kept, "D6", discrepancies, a->reserved_units == m->was->r.reserved_units);
	CHECK(excess, "D7", unrecorded_debts, a->excess_units == over && a->overdraft_units >= 0 &&
		  a->overdraft_units <= over);
	CHECK(debt_shown, "D7", unrecorded_debts,
		  (a->state == LL_SETTLED_WITH_DEBT) == (a->overdraft_units > 0));
	CHECK(attested_below_progress, "D10", unrecorded_debts, !m->is->attested ||
		  a->actual_units >= a->progress_units);
	CHECK(true_usage, "D10", unrecorded_debts, m->is->attested ||
		  a->actual_units == m->ghost->ran);
	CHECK(receipt_of_another, "D6", duplicate_consumptions, !came ||
		  m->is->operation == deed->message.operation);
	CHECK(own_receipt, "D6", duplicate_consumptions, m->was->operation == 0 ||
		  m->was->operation == m->is->operation);
	return well;
}

/* check_move judges how one row moved. */
static Finding
check_move(const Move *m, const Deed *deed)
{
	LLState		from = m->was->r.state;
	LLState		to = m->is->r.state;
	LLTime		due = m->was->r.expires_at;
	bool		boot = deed->step.kind == BOOT && to == LL_USAGE_UNKNOWN &&
		(from == LL_RESERVED || from == LL_STARTED);

	FIRST(check_terms(m, deed));
	if (from == to)
		return well;
	CHECK(vanished, "C3", second_reservations, to != LL_ABSENT);
	CHECK(ended_twice, "C3", duplicate_consumptions, rank[from] < 4);
	CHECK(unknown_is_not_unused, "D10", overspends, from != LL_USAGE_UNKNOWN || in(to, settled));
	CHECK(running_work_freed, "D9", overspends, from != LL_STARTED || in(to, ran_or_may));
	CHECK(started_after_expiry, "D14", overspends, from != LL_EXPIRING || to == LL_EXPIRED);
	CHECK(transition, "D1", discrepancies, in(to, moves[from]) || (m->local && boot));
	if (from == LL_RESERVED && to == LL_STARTED)
	{
		CHECK(started_late, "D5", overspends, m->now < due);
		CHECK(bound, "D5", duplicate_consumptions, m->is->operation == deed->message.operation &&
			  m->is->operation != 0);
	}
	if (to == LL_EXPIRING || to == LL_EXPIRED)
		CHECK(expired_early, "D14", discrepancies, from == LL_EXPIRING || m->now >= due);
	if (to == LL_USAGE_UNKNOWN &&
		(deed->step.kind == END_EXECUTIONS || deed->step.kind == LOCAL_SWEEP))
		CHECK(ended_early, "D10", discrepancies, m->now >= due);
	if (to == LL_RELEASED || to == LL_EXPIRED)
		CHECK(freed_and_ran, "D9", overspends, m->ghost->runs == 0);
	if (in(to, settled))
		FIRST(check_settled(m, deed));
	return well;
}

/* check_truth: rows against what really ran, and against what was told. */
static Finding
check_truth(const Row *row, const Ghost *was, const Ghost *is)
{
	CHECK(runs_once, "D5", duplicate_consumptions, is->runs <= 1);
	CHECK(one_runner, "D5", duplicate_consumptions, was->runner == 0 || was->runner == is->runner);
	CHECK(told_to_run, "D5", overspends, is->runner == 0 ||
		  (in(row->r.state, ran_or_may) && row->operation == is->runner));
	CHECK(told_stands, "D2", discrepancies, rank[row->r.state] >= rank[(int) is->told] &&
		  rank[(int) is->told] >= rank[(int) was->told]);
	CHECK(told_figures, "D6", duplicate_consumptions, is->told_actual < 0 ||
		  row->r.actual_units == is->told_actual);
	return well;
}

/* ---- admission ----------------------------------------------------------- */

/* check_admission: units were given out just now, by a reserve, an extension or a shard. */
static Finding
check_admission(const World *before, const World *after, int64_t debt)
{
	const LLPair *p = &after->ledger.pair;

	CHECK(admission_in_debt, "E1", overspends, debt == 0);
	CHECK(admission_while_frozen, "D8", overspends, !p->frozen && !before->ledger.pair.frozen);
	return well;
}

static Finding
check_reserve(const World *after, const Deed *deed, const Row *row, LLTime now)
{
	const LLPolicy *policy = &setup_policy[after->ledger.in_force];
	int64_t		outstanding = after->ledger.pair.older_reserved + after->ledger.pair.head.reserved;
	LLTime		ttl = row->r.state == LL_STARTED ? policy->execution_ttl : policy->hold_ttl;

	CHECK(units, "D2", second_reservations, deed->message.call == EXTEND ||
		  row->r.reserved_units == deed->message.units);
	CHECK(after_deadline, "D9", overspends, deed->message.until < 0 ||
		  deed->message.call == EXTEND || deed->now < BASE + deed->message.until);
	CHECK(largest_reservation, "B2", overspends,
		  row->r.reserved_units <= policy->largest_reservation);
	CHECK(largest_outstanding, "B2", overspends, outstanding <= policy->largest_outstanding);
	CHECK(hold_ends, "D2", discrepancies, deed->message.call == EXTEND ||
		  row->r.expires_at == now + ttl);
	return well;
}

/* ---- what a call answers ------------------------------------------------- */

static bool
free_operation(const Ledger *l, int id, int operation)
{
	for (int i = 0; i < IDS; i++)
		if (i != id && l->row[i].operation == operation)
			return false;
	return operation != RECORDED || l->recorded < 0;
}

/*
 * check_answer: a repeat gets its receipt, a call that is due takes effect, and
 * what is answered is what is stored.
 */
static Finding
check_answer(const Move *m, const Deed *deed, bool free)
{
	const Answer *a = &deed->answer;
	LLState		from = m->was->r.state;
	LLState		to = m->is->r.state;
	bool		accepted = a->outcome == LL_ACCEPTED;
	bool		same = m->was->operation == deed->message.operation;

	CHECK(overflow, "A2", discrepancies, !a->overflow);
	CHECK(refusal_moves, "D3", discrepancies, accepted || from == to);
	CHECK(answered_as_stored, "D2", discrepancies, a->state == to && a->actual == m->is->r.actual_units);
	switch ((CallName) deed->message.call)
	{
		case RESERVE:
			CHECK(receipt_again, "D2", second_reservations, from == LL_ABSENT ||
				  (accepted && a->replayed && to == from));
			break;
		case START:
			CHECK(told_of_another, "D5", duplicate_consumptions, !accepted ||
				  m->is->operation == deed->message.operation);
			CHECK(started_nothing, "D5", overspends, !accepted || in(to, ran_or_may));
			CHECK(start_refused, "D5", discrepancies, accepted || from != LL_RESERVED || !free ||
				  m->now >= m->was->r.expires_at);
			CHECK(start_again, "D5", discrepancies, accepted || !same || !in(from, ran_or_may));
			break;
		case SETTLE:
			CHECK(other_figures, "D6", duplicate_consumptions, !accepted ||
				  (in(to, settled) && m->is->r.actual_units == deed->message.units &&
				   m->is->operation == deed->message.operation));
			CHECK(receipt_refused, "D6", unrecorded_debts, accepted || !same ||
				  (from != LL_STARTED && from != LL_USAGE_UNKNOWN));
			break;
		case RELEASE:
			CHECK(released_nothing, "D9", discrepancies, !accepted || to == LL_RELEASED);
			CHECK(release_refused, "D9", discrepancies, accepted ||
				  (from != LL_RESERVED && from != LL_RELEASED));
			break;
		case UNKNOWN:
			CHECK(unknown_refused, "D10", discrepancies, accepted || !same || from != LL_STARTED);
			break;
		case PROGRESS:
			CHECK(progress_refused, "D10", discrepancies, accepted || !same ||
				  (from != LL_STARTED && from != LL_USAGE_UNKNOWN));
			CHECK(progress_lost, "D10", unrecorded_debts, !accepted ||
				  m->is->r.progress_units >= deed->message.units);
			break;
		case RESOLVE:
			CHECK(resolved_nothing, "D11", discrepancies, accepted && to != LL_ABSENT);
			CHECK(fence_holds, "D11", second_reservations, from != LL_ABSENT ||
				  (to == LL_RELEASED && m->is->r.reserved_units == 0));
			break;
		case EXTEND:
			break;
	}
	return well;
}

/* ---- shards -------------------------------------------------------------- */

static Finding
check_figures(const LLShard *s)
{
	CHECK(shard_equation, "G1", discrepancies,
		  s->allocated == s->available + s->reserved + s->spent + s->retired);
	CHECK(shard_available_sign, "G1", overspends, s->available >= 0);
	CHECK(shard_signs, "G1", discrepancies, s->allocated >= 0 && s->reserved >= 0 &&
		  s->spent >= 0 && s->retired >= 0 && s->excess >= 0);
	CHECK(sealed_is_empty, "G6", overspends, !s->sealed || s->available == 0);
	return well;
}

/* check_local judges one shard at its gateway, and its items. */
static Finding
check_local(const World *before, const World *after, int s)
{
	const Local *b = &before->local[s];
	const Local *a = &after->local[s];
	int64_t		reserved = 0;
	int64_t		used = 0;

	if (!a->accepted)
		return well;
	FIRST(check_figures(&a->shard));
	CHECK(accepted_once, "G4", duplicate_consumptions, !b->accepted ||
		  (a->shard.allocated == b->shard.allocated && a->boot == b->boot));
	CHECK(shard_never_falls, "G6", duplicate_consumptions, a->shard.spent >= b->shard.spent &&
		  a->shard.retired >= b->shard.retired && a->shard.excess >= b->shard.excess &&
		  a->shard.sealed >= b->shard.sealed);
	CHECK(boot_is_over, "G5", overspends, a->shard.sealed ||
		  a->boot == after->gateway[after->ledger.shard[s].gateway].boot);
	for (int i = 0; i < CLIENTS; i++)
	{
		const Row  *item = &after->item[i];

		if (item->r.state == LL_ABSENT || item->budget != s)
			continue;
		CHECK(item_of_another_boot, "G5", overspends,
			  a->boot == after->gateway[after->ledger.shard[s].gateway].boot ||
			  (item->r.state != LL_RESERVED && item->r.state != LL_STARTED));
		reserved += in(item->r.state, holding) ? item->r.reserved_units : 0;
		used += in(item->r.state, settled) ? item->r.actual_units : 0;
	}
	CHECK(shard_reserved, "G1", duplicate_consumptions, a->shard.reserved == reserved);
	CHECK(shard_used, "G1", unrecorded_debts, a->shard.spent + a->shard.excess == used);
	return well;
}

/* check_reserved_locally: no hold outlives its shard, and a sealed one gives none. */
static Finding
check_reserved_locally(const World *before, const World *after, const Row *item)
{
	const Local *b = &before->local[item->budget];
	const Issued *shard = &after->ledger.shard[item->budget];

	CHECK(sealed_gives_nothing, "G6", overspends, !b->shard.sealed);
	CHECK(excess_stops, "E1", overspends, b->shard.excess == 0);
	CHECK(shard_has_expired, "G4", overspends, after->clock < shard->expires_at);
	CHECK(outlives_shard, "G4", overspends, item->r.expires_at <= shard->expires_at);
	return well;
}

/* check_issued judges one shard at the ledger, against its gateway. */
static Finding
check_issued(const World *before, const World *after, int s)
{
	const Issued *b = &before->ledger.shard[s];
	const Issued *a = &after->ledger.shard[s];
	const LLShard *last = &a->state.last;
	const LLShard *local = &after->local[s].shard;
	int64_t		excess = 0;

	if (!a->there)
		return well;
	FIRST(check_figures(last));
	for (int n = 1; n <= a->reconciled; n++)
		excess += a->excess[n];
	CHECK(excess_booked_once, "G6", duplicate_consumptions, excess == last->excess);
	CHECK(reminted, "G6", overspends, a->state.reminted <= a->state.confirmed &&
		  a->state.confirmed <= last->retired);
	CHECK(reminted_in_use, "G6", overspends, a->state.reminted == 0 ||
		  a->state.reminted + local->available + local->reserved + local->spent <= local->allocated);
	CHECK(report_falls, "G6", discrepancies, !b->there ||
		  (last->spent >= b->state.last.spent && last->excess >= b->state.last.excess &&
		   last->retired >= b->state.last.retired && last->sealed >= b->state.last.sealed));
	if (b->there && a->state.confirmed > b->state.confirmed)
	{
		CHECK(confirmed_unsealed, "G6", overspends, last->sealed);
		CHECK(confirmed_without_receipts, "G6", overspends,
			  a->state.receipted == last->spent + last->excess);
		CHECK(confirmed_written_off, "G6", overspends, !b->state.written_off);
	}
	CHECK(settled_shard, "B6", discrepancies, !a->settled || a->state.written_off ||
		  (last->available == 0 && last->reserved == 0 && a->state.confirmed == last->retired));
	return well;
}

static Finding
check_issue(const World *after, int s)
{
	int64_t		outstanding = 0;

	for (int i = 0; i < SHARDS; i++)
		if (after->ledger.shard[i].there && (i == s || !after->ledger.shard[i].settled))
			outstanding += after->ledger.shard[i].state.last.allocated;
	CHECK(share, "G2", overspends, outstanding <= setup.amounts.share);
	return well;
}

static Finding
check_shards(const World *before, const World *after, const Sums *sums)
{
	int64_t		retired = 0;

	for (int s = 0; s < SHARDS; s++)
	{
		FIRST(check_issued(before, after, s));
		FIRST(check_local(before, after, s));
		if (after->ledger.shard[s].there)
			retired += after->ledger.shard[s].state.last.allocated;
	}
	CHECK(retired_is_issued, "G2", discrepancies, sums->retired == retired);
	return well;
}

/* ---- the whole ----------------------------------------------------------- */

/* check_debt: debt grows by what exceeded, and a breach freezes. */
static Finding
check_debt(const World *before, const World *after, const Deed *deed, const Sums *was,
		   const Sums *is)
{
	const LLPolicy *policy = &setup_policy[after->ledger.in_force];
	int64_t		grown = is->issued - was->issued;
	int64_t		expected = 0;
	bool		breach = false;
	bool		froze = after->ledger.pair.frozen;

	for (int i = 0; i < IDS; i++)
	{
		const Row  *b = &before->ledger.row[i];
		const Row  *a = &after->ledger.row[i];

		if (a->r.state == b->r.state || !in(a->r.state, settled))
			continue;
		expected += a->r.overdraft_units;
		breach |= a->r.actual_units > setup_policy[budget_at(&after->ledger, a->budget)->generation - 1].hard_limit;
	}
	if (deed->step.kind == RECORD || deed->step.kind == RECONCILE)
	{
		CHECK(debt_of_usage, "D12", unrecorded_debts, grown >= 0 && grown <= is->spent - was->spent);
		breach = deed->step.kind == RECORD && is->spent > was->spent &&
			setup.amounts.recorded > policy->hard_limit;
	}
	else
		CHECK(debt_recorded, "D7", unrecorded_debts, grown == expected);
	breach |= grown > 0 && is->debt > policy->maximum_overdraft;
	CHECK(breach_freezes, "D8", overspends, !breach || froze);
	CHECK(thawed, "D8", overspends, froze || !before->ledger.pair.frozen ||
		  (deed->step.kind == UNFREEZE && is->debt == 0));
	CHECK(grant_once, "E3", overspends, !before->ledger.grant_stored ||
		  after->ledger.granted == before->ledger.granted);
	return well;
}

static Finding
check_lease(const World *before, const World *after, const Deed *deed)
{
	const Actor *a = &after->actor[deed->step.who];

	if (deed->answer.outcome != LL_ACCEPTED)
		return well;
	CHECK(leased_twice, "D10", duplicate_consumptions,
		  before->ledger.row[a->item].r.claimed_until <= larger(deed->now, before->ledger.pair.seen_at) &&
		  before->ledger.row[a->item].r.state == LL_USAGE_UNKNOWN);
	return well;
}

/* check_rows_moved judges every reservation of the ledger, and what was answered. */
static Finding
check_rows_moved(const World *before, const World *after, const Deed *deed, const Sums *sums)
{
	LLTime		now = larger(deed->now, before->ledger.pair.seen_at);
	bool		given = deed->step.kind == ISSUE && after->ledger.shard[deed->step.who].there &&
		!before->ledger.shard[deed->step.who].there;

	for (int i = 0; i < IDS; i++)
	{
		const Row  *b = &before->ledger.row[i];
		const Row  *a = &after->ledger.row[i];
		int			generation = a->budget >= 0 ? budget_at(&after->ledger, a->budget)->generation : 1;
		Move		move = {
			.was = b,.is = a,.ghost = &after->ghost[i],
			.policy = &setup_policy[generation - 1],.now = now
		};
		bool		taken = b->r.state == LL_ABSENT && in(a->r.state, holding);

		FIRST(check_move(&move, deed));
		for (int j = 0; j < i; j++)
			CHECK(operation_twice, "D5", duplicate_consumptions, a->operation == 0 ||
				  a->operation != after->ledger.row[j].operation);
		CHECK(operation_recorded, "D12", duplicate_consumptions, a->operation != RECORDED ||
			  after->ledger.recorded < 0);
		if (taken || (a->extended && !b->extended && deed->message.units > 0))
		{
			FIRST(check_reserve(after, deed, a, now));
			given = true;
		}
		CHECK(extension_in_debt, "D13", overspends, !a->extended || b->extended ||
			  (sums->debt == 0 && !after->ledger.pair.frozen));
		if (deed->step.kind == TAKE && deed->message.id == i)
			FIRST(check_answer(&move, deed, free_operation(&before->ledger, i, deed->message.operation)));
	}
	if (given)
		FIRST(check_admission(before, after, sums->debt));
	return well;
}

static Finding
check_ledger(const World *before, const World *after, const Deed *deed)
{
	const Ledger *l = &after->ledger;
	Sums		was = sums_of(&before->ledger);
	Sums		is = sums_of(l);

	CHECK(answer_overflow, "A2", discrepancies, !deed->answer.overflow);
	FIRST(check_rows_moved(before, after, deed, &is));
	for (int i = 0; i <= l->closed_count; i++)
		FIRST(check_budget(budget_at(l, i)));
	FIRST(check_rows(l, deed, &before->ledger));
	FIRST(check_pair(l));
	FIRST(check_growth(&before->ledger, l));
	FIRST(check_lapse(&before->ledger, l, deed));
	FIRST(check_debt(before, after, deed, &was, &is));
	FIRST(check_shards(before, after, &is));
	if (deed->step.kind == ISSUE && !before->ledger.shard[deed->step.who].there)
		FIRST(check_issue(after, deed->step.who));
	if (deed->step.kind == LEASE)
		FIRST(check_lease(before, after, deed));
	return check_supply(after, &is);
}

static Finding
check_gateways(const World *before, const World *after, const Deed *deed)
{
	Sums		sums = sums_of(&after->ledger);

	CHECK(local_overflow, "A2", discrepancies, !deed->answer.overflow);
	for (int i = 0; i < CLIENTS; i++)
	{
		const Row  *b = &before->item[i];
		const Row  *a = &after->item[i];
		Move		move = {
			.was = b,.is = a,.ghost = &after->ghost[i],.local = true,
			.policy = &setup_policy[after->ledger.shard[a->budget].policy],
			.now = larger(deed->now, before->local[a->budget].seen_at)
		};

		FIRST(check_move(&move, deed));
		if (b->r.state == LL_ABSENT && a->r.state != LL_ABSENT)
			FIRST(check_reserved_locally(before, after, a));
		if (deed->step.kind == TAKE && deed->message.id == i)
		{
			bool		free = true;

			for (int j = 0; j < CLIENTS; j++)
				free &= j == i || before->item[j].operation != deed->message.operation;
			FIRST(check_answer(&move, deed, free));
		}
	}
	return check_shards(before, after, &sums);
}

Finding
oracle_step(const World *before, const World *after, const Deed *deed)
{
	if (deed->called)
		FIRST(check_ledger(before, after, deed));
	if (deed->local)
		FIRST(check_gateways(before, after, deed));
	for (int i = 0; i < setup.amounts.clients; i++)
		FIRST(check_truth(after->actor[i].local ? &after->item[i] : &after->ledger.row[i],
						  &before->ghost[i], &after->ghost[i]));
	return well;
}

/* oracle_end: all has ended, and all that ran is booked, once. */
Finding
oracle_end(const World *w)
{
	const Ledger *l = &w->ledger;
	Sums		sums = sums_of(l);

	CHECK(message_left, "liveness", discrepancies, w->messages == 0);
	for (int i = 0; i < ACTORS; i++)
		CHECK(actor_stuck, "liveness", discrepancies, w->actor[i].phase == DONE ||
			  w->actor[i].phase == IDLE || w->actor[i].phase == REFUSED ||
			  w->actor[i].phase == GIVEN);
	for (int i = 0; i < IDS; i++)
		CHECK(row_stuck, "liveness", discrepancies, l->row[i].r.state == LL_ABSENT ||
			  rank[l->row[i].r.state] == 4);
	for (int i = 0; i < setup.amounts.clients; i++)
	{
		const Row  *row = w->actor[i].local ? &w->item[i] : &l->row[i];

		CHECK(item_stuck, "liveness", discrepancies, row->r.state == LL_ABSENT ||
			  rank[row->r.state] == 4);
		CHECK(unbooked, "D10", unrecorded_debts, w->ghost[i].runs == 0 || row->attested ||
			  (in(row->r.state, settled) && row->r.actual_units == w->ghost[i].ran));
	}
	CHECK(held_at_the_end, "liveness", discrepancies, sums.reserved == 0);
	CHECK(debt_at_the_end, "E3", discrepancies, sums.debt == 0);
	CHECK(frozen_at_the_end, "D8", discrepancies, !l->pair.frozen);
	for (int s = 0; s < SHARDS; s++)
		CHECK(shard_at_the_end, "B6", discrepancies, !l->shard[s].there || l->shard[s].settled);
	CHECK(nothing_admits, "liveness", discrepancies, l->pair.head.available < 1 ||
		  l->row[IDS - 1].r.state == LL_RELEASED);
	return well;
}
