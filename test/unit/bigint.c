/*
 * Every transition at the end of bigint (A2, C1): random states made of the
 * edge figures, each conserved before the call.  Afterwards it is conserved and
 * every sum is a bigint, or the call says overflow and no byte has moved.
 */
#include "fixture.h"

enum
{
	ROUNDS = 30000				/* of each transition */
};

static uint64_t chance_state = 1;

static uint64_t
chance(void)
{
	uint64_t	z = (chance_state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* edge gives a figure of 0 to `most`, mostly at one of its ends. */
static LLUnits
edge(LLUnits most)
{
	uint64_t	far = chance() % ((uint64_t) most + 1);

	switch (chance() % 8)
	{
		case 0:
		case 1:
			return 0;
		case 2:
			return most < 1 ? most : 1;
		case 3:
			return most;
		case 4:
			return most < 1 ? 0 : most - 1;
		case 5:
			return most / 2;
		case 6:
			return (LLUnits) (far >> (chance() % 63));
		default:
			return (LLUnits) far;
	}
}

/* random_budget splits one sum on both sides of C1. */
static LLBudget
random_budget(LLUnits available, LLUnits reserved)
{
	LLBudget	b = {.generation = 7, .line = 1 + (int64_t) (chance() % 2)};
	LLUnits		sum = available;
	LLUnits		owes;

	b.available = available;
	b.reserved = edge(reserved <= MAX - sum ? reserved : MAX - sum);
	sum += b.reserved;
	b.spent = edge(MAX - sum);
	sum += b.spent;
	b.retired_for_emergency = edge((MAX - sum) / 2);
	sum += b.retired_for_emergency;
	b.overdraft_repaid = edge(MAX - sum);
	sum += b.overdraft_repaid;
	/* What is available leaves no debt (E2); debt was spent (D7). */
	owes = available > 0 ? 0 : edge(b.spent);
	b.overdraft_issued = b.overdraft_repaid + owes;
	b.opening = edge(sum - b.overdraft_issued);
	b.minted = sum - b.overdraft_issued - b.opening;
	b.burned = edge(MAX);
	return b;
}

typedef struct State
{
	LLPolicy	policy;
	LLPolicy	next;
	LLPair		pair;
	LLBudget	closed;
	LLReservation reservation;
} State;

static LLPolicy
random_policy(int64_t generation)
{
	LLPolicy	p = {.generation = generation, .refill = (LLRefill) (chance() % 3)};

	p.cap = 1 + edge(MAX - 1);
	p.largest_reservation = 1 + edge(p.cap - 1);
	p.largest_outstanding = chance() % 2 ? LL_UNITS_MAX : 1 + edge(MAX - 1);
	p.hard_limit = 1 + edge(MAX - 1);
	p.maximum_overdraft = edge(MAX);
	p.hold_ttl = 1 + edge(MAX - 1);
	p.execution_ttl = 1 + edge(MAX - 1);
	if (p.refill == LL_REFILL_CONTINUOUS)
	{
		p.refill_units = 1 + edge(MAX - 1);
		p.refill_interval = 1 + edge(MAX - 1);
	}
	return p;
}

/* random_state is sound under its policy; the reservation is held by the head or by `closed`. */
static State
random_state(void)
{
	State		s = {.policy = random_policy(7), .next = random_policy(8)};
	LLPair	   *p = &s.pair;

	p->head = random_budget(chance() % 2 ? 0 : edge(s.policy.cap), MAX);
	if (p->head.available == 0)
		p->older_debt = edge(MAX - ll_budget_debt(&p->head));
	if (s.policy.refill == LL_REFILL_WINDOW)
	{
		p->head.whole = chance() % 2;
		if (p->head.whole && p->head.available == 0)
			p->head.deficit = edge(MAX - s.policy.cap);
	}
	s.closed = random_budget(edge(MAX), MAX);
	s.closed.generation = 6;
	p->older_reserved = s.closed.reserved + edge(MAX - s.closed.reserved);
	if (p->older_reserved > MAX - p->head.reserved)	/* one sum with what the head holds */
		p->older_reserved = MAX - p->head.reserved;
	if (p->older_reserved < s.closed.reserved)
	{
		s.closed.spent += s.closed.reserved;
		s.closed.reserved = 0;
	}
	p->accrued_at = edge(MAX);
	p->seen_at = p->accrued_at;
	if (s.policy.refill == LL_REFILL_CONTINUOUS)
		p->remainder = edge(s.policy.refill_interval - 1);
	return s;
}

typedef enum Transition
{
	ACCRUE, OPEN_NEXT, OPEN_GENERATION, REPAY_PAIR, REPAY_CLOSED, ADMIT, EXTEND, SETTLE, RELEASE,
	EXPIRE, RECORD_USAGE, GRANT
} Transition;
#define TRANSITIONS	(GRANT + 1)

static const char *const names[TRANSITIONS] = {
	"accrue", "open the next epoch", "open a generation", "repay the pair", "repay a closed budget",
	"admit", "extend", "settle", "release", "expire", "record usage", "grant"
};

/* call does one transition; false: overflow, refused or unchanged by rule. */
static bool
call(Transition transition, State *s, LLBudget *closed, bool *overflow)
{
	LLSettlement settlement = {
		.operation = LL_OPERATION_SAME, .same_receipt = true, .attested = chance() % 2
	};
	LLExtension extension = {.head = closed == NULL};
	LLRequest	request = {
		.deadline = LL_TIME_MAX, .region_matches = true, .estimator_accepted = true,
		.start = chance() % 2
	};
	LLVerdict	v = {.outcome = LL_ACCEPTED};
	LLTime		was = s->pair.accrued_at;
	LLTime		to = edge(MAX);
	LLUnits		used;
	LLBudget	ended;
	bool		fits = true;

	switch (transition)
	{
		case ACCRUE:
			/* What the budget can't hold stays due: that is its overflow. */
			fits = ll_refill_accrue(&s->pair, &s->policy, to) &&
				(to <= was || s->pair.accrued_at == to);
			break;
		case OPEN_NEXT:
			fits = ll_epoch_open_next(&s->pair, &s->policy, edge(MAX), edge(MAX), &ended);
			if (fits)
				want("closed conserved", ll_budget_conserved(&ended), true);
			break;
		case OPEN_GENERATION:
			fits = ll_epoch_open_generation(&s->pair, &s->policy, &s->next, chance() % 2,
											edge(MAX), &ended);
			if (fits)
				want("closed conserved", ll_budget_conserved(&ended), true);
			break;
		case REPAY_PAIR:
			fits = ll_repay_pair(&s->pair, edge(MAX), &used);
			break;
		case REPAY_CLOSED:
			fits = ll_repay_closed(&s->pair, &s->closed);
			break;
		case ADMIT:
			request.units = 1 + edge(s->pair.head.available > 0 ? s->pair.head.available - 1 : 0);
			v = ll_admit(&s->pair, &s->policy, &request, s->pair.accrued_at, &s->reservation);
			break;
		case EXTEND:
			extension.units = edge(s->pair.head.available);
			extension.expires_at = edge(MAX);
			v = ll_extend(&s->pair, &s->reservation, &s->policy, &s->policy, &extension,
						  edge(s->reservation.expires_at));
			break;
		case SETTLE:
			settlement.actual = edge(MAX);
			v = ll_settle(&s->pair, closed, &s->reservation, &s->policy, &s->policy, &settlement);
			break;
		case RELEASE:
			v = ll_release(&s->pair, closed, &s->reservation, &s->policy);
			break;
		case EXPIRE:
			v = ll_expire_finish(&s->pair, closed, &s->reservation, &s->policy);
			break;
		case RECORD_USAGE:
			v = ll_record_usage(&s->pair, &s->policy, edge(MAX), false);
			break;
		case GRANT:
			to = edge(MAX);
			used = -1;
			v = ll_grant(&s->pair, &s->policy, to, &used);
			want("granted", v.overflow ? used == -1 : used >= 0 && used <= to, true);
			break;
	}
	*overflow = !fits || v.overflow;
	return fits && took_effect(&v);
}

/* sums are bigints, in the head, the closed budget and the pair. */
static void
want_sums(const State *s)
{
	want("head: C1 and bigint", conserved(&s->pair.head), true);
	want("head: ll_budget_conserved", ll_budget_conserved(&s->pair.head), true);
	want("closed: C1 and bigint", conserved(&s->closed), true);
	want("closed: ll_budget_conserved", ll_budget_conserved(&s->closed), true);
	want("the pair's debt is a bigint",
		 s->pair.older_debt <= MAX - ll_budget_debt(&s->pair.head), true);
	want("what it holds is a bigint", s->pair.older_reserved <= MAX - s->pair.head.reserved, true);
	want("counters", s->pair.older_debt >= 0 && s->pair.older_reserved >= 0 &&
		 s->pair.older_repaid >= 0 && s->pair.head.burned >= 0 && s->pair.head.deficit >= 0, true);
}

static LLReservation
held_by(const LLBudget *budget, Transition transition)
{
	static const LLState states[TRANSITIONS] = {
		[EXTEND] = LL_RESERVED, [SETTLE] = LL_STARTED, [RELEASE] = LL_RESERVED,
		[EXPIRE] = LL_EXPIRING
	};

	return (LLReservation) {
		.state = states[transition], .reserved_units = edge(budget->reserved),
		.progress_units = edge(MAX), .expires_at = edge(MAX)
	};
}

/* show tells where a round went wrong. */
static void
show(const State *s, Transition t, int round)
{
	const LLBudget *h = &s->pair.head;

	note("  %s, round %d, head: opening %lld minted %lld issued %lld available %lld reserved %lld",
		 names[t], round, (long long) h->opening, (long long) h->minted,
		 (long long) h->overdraft_issued, (long long) h->available, (long long) h->reserved);
	note("  spent %lld retired %lld repaid %lld burned %lld, older_debt %lld", (long long) h->spent,
		 (long long) h->retired_for_emergency, (long long) h->overdraft_repaid,
		 (long long) h->burned, (long long) s->pair.older_debt);
}

/* try runs one transition on one random state; it tells whether it overflowed. */
static bool
try(Transition t, int round, long *effects)
{
	State		s = random_state();
	LLBudget   *closed = chance() % 2 ? &s.closed : NULL;
	Bytes		before;
	bool		overflow;

	s.reservation = held_by(closed != NULL ? &s.closed : &s.pair.head, t);
	if (t == REPAY_CLOSED)
		s.pair.older_repaid = edge(MAX);
	take_bytes(&before, &s.pair, &s.closed, &s.reservation);
	if (call(t, &s, closed, &overflow))
	{
		(*effects)++;
		want_sums(&s);
	}
	else
		want_unchanged(&before, &s.pair, &s.closed, &s.reservation);
	if (row_differences > 0)
		show(&s, t, round);
	return overflow;
}

int
main(void)
{
	for (int t = 0; t < TRANSITIONS; t++)
	{
		/* What this one sums is bounded by what the pair holds before. */
		bool		never = t == OPEN_GENERATION;
		long		effects = 0;
		long		overflows = 0;
		char		name[100];

		for (int round = 0; round < ROUNDS && row_differences == 0; round++)
			overflows += try((Transition) t, round, &effects);
		note("%s: %ld took effect, %ld overflowed", names[t], effects, overflows);
		if (row_differences == 0)
		{
			want("it took effect", effects > ROUNDS / 30, true);
			want("it overflowed", never ? overflows == 0 : overflows > ROUNDS / 300, true);
		}
		snprintf(name, sizeof(name), "A2 %s: conserved in bigint, or overflow and no byte moved",
				 names[t]);
		row_ends(name);
	}
	return done_testing();
}
