/*
 * spec.c
 *	  See spec.h.  Each step cites its rule in docs/rules.md.
 */
#include "spec.h"

#include <string.h>

typedef __int128 Wide;

/* Fixed epochs are counted from Monday 2001-01-01 00:00 UTC (A4). */
#define ORIGIN		INT64_C(978307200000000)

/* The ledger's instants are bigint as well, of microseconds since 2000. */
#define LAST_INSTANT	((Wide) INT64_MAX + INT64_C(946684800000000))

static int64_t
smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static Wide
smaller_wide(Wide a, Wide b)
{
	return a < b ? a : b;
}

static int64_t
larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* add adds within a bigint; what leaves it is an error, and nothing is written (A2). */
static void
add(World *w, int64_t *to, int64_t units)
{
	if (__builtin_add_overflow(*to, units, to))
		w->overflow = true;
}

/* ---- answers ------------------------------------------------------------- */

static Answer
accepted(int pair, int reservation)
{
	return (Answer) {
		.outcome = "ACCEPTED", .wait = -1, .wrote = true, .pair = pair, .reservation = reservation
	};
}

static Answer
replayed(int pair, int reservation)
{
	return (Answer) {
		.outcome = "ACCEPTED", .wait = -1, .replayed = true, .pair = pair, .reservation = reservation
	};
}

static Answer
no(const char *outcome, const char *dimension, int pair, int reservation)
{
	return (Answer) {
		.outcome = outcome, .dimension = dimension, .wait = -1, .pair = pair,
		.reservation = reservation
	};
}

static Answer
refused(const char *dimension, const char *kind, int pair, int reservation)
{
	Answer		a = no("REFUSED", dimension, pair, reservation);

	a.wait_kind = kind;
	return a;
}

/* ---- the state ----------------------------------------------------------- */

void
spec_copy(Spec *to, const Spec *from)
{
	memcpy(to, from, offsetof(Spec, pair));
	memcpy(to->pair, from->pair, sizeof(from->pair[0]) * (size_t) from->pairs);
	memcpy(to->budget, from->budget, sizeof(from->budget[0]) * (size_t) from->budgets);
	memcpy(to->reservation, from->reservation,
		   sizeof(from->reservation[0]) * (size_t) from->reservations);
	memcpy(to->record, from->record, sizeof(from->record[0]) * (size_t) from->records);
}

static uint64_t
mix(uint64_t h, const void *data, size_t size)
{
	const char *p = data;
	uint64_t	part;

	for (; size >= sizeof(part); p += sizeof(part), size -= sizeof(part))
	{
		memcpy(&part, p, sizeof(part));
		h = (h ^ part) * UINT64_C(0x9E3779B97F4A7C15);
		h ^= h >> 29;
	}
	return h;
}

/* The order in which rows were made is of no account: their hashes are added. */
uint64_t
spec_hash(const Spec *s)
{
	uint64_t	h = mix(UINT64_C(14695981039346656037), s->frozen_route, sizeof(s->frozen_route));
	uint64_t	sum = 0;

	h = mix(h, s->pair, sizeof(s->pair[0]) * (size_t) s->pairs);
	h = mix(h, s->budget, sizeof(s->budget[0]) * (size_t) s->budgets);
	for (int i = 0; i < s->reservations; i++)
		sum += mix(1, &s->reservation[i], sizeof(s->reservation[i]));
	for (int i = 0; i < s->records; i++)
		sum += mix(2, &s->record[i], sizeof(s->record[i]));
	return h * 31 + sum + (uint64_t) s->published;
}

static SpecBudget *
head(Spec *s, int pair)
{
	return &s->budget[s->pair[pair].head];
}

static const Policy *
policy_of(const World *w, const SpecBudget *b)
{
	return &w->history->policy[b->policy];
}

int64_t
spec_debt(const Spec *s, int pair)
{
	int64_t		sum = 0;

	for (int i = 0; i < s->budgets; i++)
		if (s->budget[i].pair == pair)
			sum += s->budget[i].issued - s->budget[i].repaid;
	return sum;
}

int64_t
spec_outstanding(const Spec *s, int pair)
{
	int64_t		sum = 0;

	for (int i = 0; i < s->budgets; i++)
		if (s->budget[i].pair == pair)
			sum += s->budget[i].reserved;
	return sum;
}

static int
find(const Spec *s, int subject, int id)
{
	for (int i = 0; i < s->reservations; i++)
		if (s->reservation[i].id == id && s->reservation[i].subject == subject)
			return i;
	return -1;
}

static const SpecRecord *
recorded(const Spec *s, RecordKind kind, int subject, int pair, int id, int key)
{
	for (int i = 0; i < s->records; i++)
	{
		const SpecRecord *r = &s->record[i];

		if (r->kind == (int) kind && r->subject == subject && r->id == id && r->key == key &&
			(pair < 0 || r->pair == pair))
			return r;
	}
	return NULL;
}

static SpecReservation *
new_reservation(Spec *s, World *w)
{
	if (s->reservations == RESERVATIONS_MAX)
	{
		w->too_big = true;
		s->reservations--;
	}
	s->reservation[s->reservations] = (SpecReservation) {.pair = -1, .budget = -1, .excess_budget = -1};
	return &s->reservation[s->reservations++];
}

static SpecRecord *
new_record(Spec *s, World *w, RecordKind kind, int subject, int pair, int id, int key)
{
	if (s->records == RECORDS_MAX)
	{
		w->too_big = true;
		s->records--;
	}
	s->record[s->records] = (SpecRecord) {
		.kind = (int) kind, .subject = subject, .pair = pair, .id = id, .key = key, .budget = -1,
		.deadline = NEVER
	};
	return &s->record[s->records++];
}

/* elsewhere tells whether an operation is bound to something else (D5, D12). */
static bool
elsewhere(const Spec *s, int subject, int reservation, int operation)
{
	for (int i = 0; i < s->reservations; i++)
		if (i != reservation && s->reservation[i].subject == subject &&
			s->reservation[i].operation == operation)
			return true;
	return recorded(s, USAGE, subject, -1, 0, operation) != NULL;
}

static bool
route_frozen(const Spec *s, int route)
{
	for (int i = 0; i < s->routes; i++)
		if (s->frozen_route[i] == route)
			return true;
	return false;
}

/* ---- time brings capacity (B5, C4, E2) ----------------------------------- */

static int64_t
epoch_of(const Policy *p, int64_t instant)
{
	int64_t		since = instant - ORIGIN;

	return instant - ((since % p->epoch) + p->epoch) % p->epoch;
}

/* repay pays debt, the oldest budget first; returns what was used (E2). */
static int64_t
repay(Spec *s, int pair, int64_t units, bool *wrote)
{
	int64_t		used = 0;

	for (int i = 0; i < s->budgets && used < units; i++)
	{
		SpecBudget *b = &s->budget[i];
		int64_t		part = b->pair == pair ? smaller(units - used, b->issued - b->repaid) : 0;

		b->minted += part;
		b->repaid += part;
		used += part;
	}
	if (used > 0)
		*wrote = true;
	return used;
}

/* open_budget closes the head and opens the next one with what it takes over (B5). */
static void
open_budget(Spec *s, World *w, int pair, int policy, int64_t at, int64_t net, int line, bool whole, bool *wrote)
{
	SpecPair   *pr = &s->pair[pair];
	const Policy *p = &w->history->policy[policy];
	SpecBudget	b = {.pair = pair, .policy = policy, .line = line, .whole = whole};

	if (pr->exists)
		head(s, pair)->closing = head(s, pair)->available;
	b.epoch = epoch_of(p, at);
	b.carried = net < 0 ? 0 : smaller(net, p->cap);
	b.deficit = net < 0 ? -net : 0;
	b.opening = b.available = b.carried - repay(s, pair, b.carried, wrote);
	if (s->budgets == BUDGETS_MAX)
	{
		w->too_big = true;
		return;
	}
	pr->head = s->budgets;
	s->budget[s->budgets++] = b;
	*wrote = true;
}

/*
 * accrue mints what continuous refill brought since the last time (C4).  What the budget
 * can't hold any more stays due, for the next one (A2).
 */
static void
accrue(Spec *s, World *w, int pair, int64_t to, bool *wrote)
{
	SpecPair   *pr = &s->pair[pair];
	SpecBudget *b = head(s, pair);
	const Policy *p = policy_of(w, b);
	Wide		parts = (Wide) (to - pr->at) * p->units + pr->remainder;
	Wide		room = (Wide) p->cap - b->available + spec_debt(s, pair);
	Wide		whole = smaller_wide(parts / p->interval, room);
	int64_t		rest;

	if (whole > (Wide) INT64_MAX - b->opening - b->minted - b->issued)
		return;
	/* full and free of debt: the fraction is dropped */
	pr->remainder = whole == room ? 0 : (int64_t) (parts % p->interval);
	pr->at = to;
	rest = (int64_t) whole - repay(s, pair, (int64_t) whole, wrote);
	b->minted += rest;
	b->available += rest;
}

/* advance applies one policy up to an instant, and opens the epoch that holds it. */
static void
advance(Spec *s, World *w, int pair, int64_t to, bool *wrote)
{
	SpecPair   *pr = &s->pair[pair];
	SpecBudget *b = head(s, pair);
	const Policy *p = policy_of(w, b);
	int64_t		epoch;

	if (to <= pr->at)			/* A3: a step back mints nothing */
		return;
	if (p->kind == CONTINUOUS)
		accrue(s, w, pair, to, wrote);
	else
		pr->at = to;
	epoch = epoch_of(p, to);
	if (epoch <= b->epoch)
		return;
	if (p->kind != WINDOW)		/* B5: what is available goes on */
	{
		open_budget(s, w, pair, b->policy, to, b->available, b->line, false, wrote);
		return;
	}
	for (int64_t start = b->epoch + p->epoch; start < epoch; start += p->epoch)
		if (repay(s, pair, p->cap, wrote) == 0) /* E2: windows that passed unopened */
			break;
	open_budget(s, w, pair, b->policy, to, p->cap, b->line + 1, true, wrote);
}

/* take_over moves the pair to the next generation, at an instant (B5). */
static void
take_over(Spec *s, World *w, int pair, int policy, int64_t at, bool *wrote)
{
	SpecPair   *pr = &s->pair[pair];
	SpecBudget *b = head(s, pair);
	const Policy *old = policy_of(w, b);
	const Policy *new = &w->history->policy[policy];

	if (old->kind == WINDOW && new->kind == WINDOW && old->epoch == new->epoch && b->whole)
		open_budget(s, w, pair, policy, at, b->available - b->deficit + new->cap - old->cap,
					b->line, true, wrote);
	else						/* any other change: what is available, no deficit */
		open_budget(s, w, pair, policy, at, b->available, b->line, false, wrote);
	if (old->kind == CONTINUOUS && new->kind == CONTINUOUS)
		pr->remainder = (int64_t) ((Wide) pr->remainder * new->interval / old->interval);
	else
		pr->remainder = 0;
	if (head(s, pair)->available == new->cap && spec_debt(s, pair) == 0)
		pr->remainder = 0;
	pr->in_force = policy;
}

/*
 * next_policy finds the one that rules a pair after `last` (-1: from the first on).
 * An exact one takes its subject from a wildcard for good (B2).
 */
static int
next_policy(const Spec *s, const World *w, const SpecPair *pr, int last)
{
	const History *h = w->history;
	int			star = word("*");
	bool		exact = last >= 0 && h->policy[last].subject != star;
	int			best = -1;

	for (int i = 0; i < h->policies; i++)
	{
		const Policy *p = &h->policy[i];

		if (p->route != pr->route || (p->subject != pr->subject && (p->subject != star || exact)))
			continue;
		if (p->line > w->begins &&
			!(i - w->first_published < 31 &&
			  ((s->published & ~(pr->exists ? w->hidden : w->hidden_first)) >> (i - w->first_published) & 1)))
			continue;
		if (last >= 0 && p->generation <= h->policy[last].generation)
			continue;
		if (best < 0 || p->generation < h->policy[best].generation)
			best = i;
	}
	return best;
}

/* first_policy is the one in force when a pair is opened (B3). */
static int
first_policy(const Spec *s, const World *w, const SpecPair *pr)
{
	int			policy = next_policy(s, w, pr, -1);
	int			next;

	while (policy >= 0 && (next = next_policy(s, w, pr, policy)) >= 0)
		policy = next;
	return policy;
}

/* roll is what every call on a balance begins with: "opens what is due" (B5). */
static void
roll(Spec *s, World *w, int pair, bool *wrote)
{
	SpecPair   *pr = &s->pair[pair];
	int			next;

	pr->seen = larger(pr->seen, w->clock);	/* A3 */
	while ((next = next_policy(s, w, pr, pr->in_force)) >= 0)
	{
		int64_t		at = larger(smaller(w->history->policy[next].since, pr->seen), pr->at);

		advance(s, w, pair, at, wrote);
		take_over(s, w, pair, next, at, wrote);
	}
	advance(s, w, pair, pr->seen, wrote);
}

/* pair_of finds or begins a pair; -1 if no policy rules it. */
static int
pair_of(Spec *s, World *w, int subject, int route)
{
	SpecPair   *pr;
	int			i;

	for (i = 0; i < s->pairs; i++)
		if (s->pair[i].subject == subject && s->pair[i].route == route)
			return i;
	if (s->pairs == PAIRS_MAX)
	{
		w->too_big = true;
		return -1;
	}
	pr = &s->pair[s->pairs];
	*pr = (SpecPair) {.subject = subject, .route = route, .head = -1, .in_force = -1};
	if (first_policy(s, w, pr) < 0)
		return -1;
	return s->pairs++;
}

/*
 * enter brings a pair to the present, opening it if it has no row (B3): by the
 * policy that rules it now, with its cap (B2).
 */
static void
enter(Spec *s, World *w, int pair, bool *wrote)
{
	SpecPair   *pr = &s->pair[pair];
	const Policy *p;
	bool		opened;			/* is no reason to keep a pair that a refusal made */

	if (pr->exists)
	{
		roll(s, w, pair, wrote);
		return;
	}
	pr->in_force = first_policy(s, w, pr);
	p = &w->history->policy[pr->in_force];
	pr->seen = pr->at = w->clock;
	pr->remainder = 0;
	open_budget(s, w, pair, pr->in_force, pr->at, p->cap, 1, p->kind == WINDOW, &opened);
	pr->exists = true;
}

int64_t
spec_available(const Spec *s, World *w, int pair, int64_t *debt, bool *frozen)
{
	Spec		copy;
	bool		wrote = false;

	spec_copy(&copy, s);
	enter(&copy, w, pair, &wrote);
	if (debt != NULL)
		*debt = spec_debt(&copy, pair);
	if (frozen != NULL)
		*frozen = copy.pair[pair].frozen || route_frozen(&copy, copy.pair[pair].route);
	return head(&copy, pair)->available;
}

int
spec_present(Spec *s, World *w, int subject, int route)
{
	int			pair = pair_of(s, w, subject, route);
	bool		wrote = false;

	if (pair >= 0)
		enter(s, w, pair, &wrote);
	return pair;
}

/* ---- units that come back, units in excess (C4, C5, D7, D8) -------------- */

/* come_back returns units to the head; what exceeds the cap is un-minted (C4). */
static void
come_back(Spec *s, World *w, int pair, int64_t units)
{
	SpecBudget *h = head(s, pair);
	int64_t		part = smaller(units, h->issued - h->repaid);
	int64_t		over;

	h->repaid += part;			/* E2: available and repaid exchange */
	h->available += units - part;
	over = larger(h->available - policy_of(w, h)->cap, 0);
	h->available -= over;
	h->minted -= over;
	h->burned += over;
}

/* remint mints units of a closed budget into the head, in the order of C5. */
static void
remint(Spec *s, World *w, int pair, int64_t units, bool *wrote)
{
	SpecBudget *h = head(s, pair);
	int64_t		part = smaller(units, h->deficit);

	h->deficit -= part;
	units -= part;
	units -= repay(s, pair, units, wrote);
	part = smaller(units, policy_of(w, h)->cap - h->available);
	h->minted += part;
	h->available += part;
	h->burned += units - part;
}

static void
give_back(Spec *s, World *w, const SpecReservation *r, int64_t units, bool *wrote)
{
	SpecBudget *b = &s->budget[r->budget];

	b->reserved -= units;
	if (r->budget == s->pair[r->pair].head)
	{
		come_back(s, w, r->pair, units);
		return;
	}
	b->available += units;		/* C5: stays in the closing balance ... */
	if (b->line == head(s, r->pair)->line)
		remint(s, w, r->pair, units, wrote);	/* ... or lapses */
}

/* exceed books units that no reservation covers; returns what became debt (D7, D8). */
static int64_t
exceed(Spec *s, World *w, int pair, int64_t units)
{
	SpecBudget *h = head(s, pair);
	int64_t		covered = smaller(units, h->available);

	h->available -= covered;
	add(w, &h->issued, units - covered);
	add(w, &h->spent, units);
	if (w->overflow)
		return 0;
	if (spec_debt(s, pair) > policy_of(w, h)->maximum_overdraft)
		s->pair[pair].frozen = true;
	return units - covered;
}

/* ---- the calls (D) ------------------------------------------------------- */

/* A3: deadlines are judged by the latest instant that the pair has seen. */
static int64_t
now(const Spec *s, const World *w, const SpecReservation *r)
{
	return r->pair < 0 ? w->clock : larger(w->clock, s->pair[r->pair].seen);
}

/* wait counts until `units` could be admitted by refill alone (D4). */
static int64_t
wait_for(const Spec *s, const World *w, int pair, int64_t units)
{
	const SpecPair *pr = &s->pair[pair];
	const SpecBudget *h = &s->budget[pr->head];
	const Policy *p = policy_of(w, h);
	int64_t		owed = spec_debt(s, pair);
	int64_t		start = h->epoch;
	int64_t		left;

	if (p->kind == CONTINUOUS)
	{
		Wide		parts = ((Wide) owed + units - h->available) * p->interval - pr->remainder;
		Wide		until = pr->at + (parts + p->units - 1) / p->units;

		return (int64_t) (smaller_wide(until, LAST_INSTANT) - w->clock);
	}
	do							/* each window pays debt first (E2) */
	{
		start += p->epoch;
		left = p->cap - smaller(p->cap, owed);
		owed -= smaller(p->cap, owed);
	} while (owed > 0 || left < units);
	return start - w->clock;
}

/* capacity says why `units` more can't be admitted, to one that has so many in all (D3). */
static Answer
capacity(const Spec *s, const World *w, int pair, int64_t units, Wide in_all, int reservation)
{
	const SpecPair *pr = &s->pair[pair];
	const SpecBudget *h = &s->budget[pr->head];
	const Policy *p = policy_of(w, h);
	int64_t		owed = spec_debt(s, pair);
	Answer		a;

	if (units > 0 && in_all > p->largest)
		return refused("largest_reservation", "never", pair, reservation);
	if (units > 0 && in_all > p->cap)
		return refused("cap", "never", pair, reservation);
	if (units > 0 && in_all > p->outstanding)
		return refused("largest_outstanding", "never", pair, reservation);
	if (pr->frozen || route_frozen(s, pr->route))	/* D8 */
		return refused("frozen", "operator", pair, reservation);
	if (p->outstanding != NEVER && (Wide) spec_outstanding(s, pair) + units > p->outstanding)
		return refused("largest_outstanding", "release", pair, reservation);
	if (owed == 0 && units <= h->available)	/* E1 */
		return accepted(pair, reservation);
	a = refused(owed > 0 ? "debt" : "available", p->kind == NONE ? "release" : "refill", pair,
				reservation);
	if (p->kind != NONE)
		a.wait = wait_for(s, w, pair, units);
	return a;
}

static bool
is_accepted(const Answer *a)
{
	return a->outcome[0] == 'A';
}

/* waits tells whether a refused caller may be admitted later, without an operator. */
static bool
waits(const Answer *a)
{
	return a->wait_kind != NULL &&
		(strcmp(a->wait_kind, "refill") == 0 || strcmp(a->wait_kind, "release") == 0);
}

/* passed tells whether the next choice goes the other way: a due row is locked, say (D14). */
static bool
passed(World *w)
{
	int			n = w->due++;

	return n < 64 && (w->skips >> n & 1) != 0;
}

/* end_due claims and finishes holds that have run out; returns how many. */
static int
end_due(Spec *s, World *w, int pair, bool claim, bool finish, int64_t *claimed, int64_t *units,
		bool *wrote)
{
	int			ended = 0;

	for (int i = 0; i < s->reservations; i++)
	{
		SpecReservation *r = &s->reservation[i];

		if (r->pair < 0 || (pair >= 0 && r->pair != pair))
			continue;
		/* A sweep looks for rows before it knows their pairs: by the clock as it stands. */
		if (!((r->state == RESERVED && claim && (pair < 0 ? w->clock : now(s, w, r)) >= r->expires) ||
			  (r->state == EXPIRING && finish)))
			continue;
		if (passed(w))
			continue;
		if (r->state == RESERVED)
		{
			r->state = EXPIRING;
			(*claimed)++;
			w->ended = true;
		}
		if (!finish || (pair < 0 && claim && passed(w)))	/* the head may be locked, too */
			continue;
		roll(s, w, r->pair, wrote);
		r->state = EXPIRED;
		give_back(s, w, r, r->units, wrote);
		*units += r->units;
		w->ended = true;
		ended++;
	}
	return ended;
}

static void
end_due_of(Spec *s, World *w, int pair, bool *wrote)
{
	int64_t		claimed = 0;
	int64_t		units = 0;

	end_due(s, w, pair, true, true, &claimed, &units, wrote);
}

static Answer
reserve(Spec *s, World *w, const Op *op, bool *wrote)
{
	int			pair = pair_of(s, w, op->subject, op->route);
	int			i = find(s, op->subject, op->id);
	SpecReservation *r = i < 0 ? NULL : &s->reservation[i];
	SpecBudget *h;
	Answer		a;

	if (pair >= 0)
		enter(s, w, pair, wrote);
	if (r != NULL && r->pair < 0 && op->unmet)
		r = NULL;
	/*
	 * A fence is met when the row is inserted, if it was not there when the id was looked
	 * up: what was done for the admission by then, holds that were ended, stays (D14).
	 */
	if (r != NULL && r->pair < 0 && pair >= 0 && w->overlaps)
	{
		a = capacity(s, w, pair, op->units, op->units, -1);
		if (waits(&a) && passed(w))
			end_due_of(s, w, pair, wrote);
	}
	if (r != NULL)				/* D2; a fence knows the digest alone (D11) */
		return r->digest == op->digest && (r->pair < 0 || (r->asked == op->units && r->pair == pair))
			? replayed(pair, i) : no("CONFLICT", "request", -1, i);
	if (pair < 0)
		return refused("no_policy", "operator", -1, -1);
	if (op->key != 0 && elsewhere(s, op->subject, -1, op->key))
		return no("CONFLICT", "operation_elsewhere", pair, -1);
	if (op->deadline != NEVER && s->pair[pair].seen >= op->deadline)	/* D9 */
		return refused("deadline", "never", pair, -1);
	a = capacity(s, w, pair, op->units, op->units, -1);
	if (waits(&a))
	{
		end_due_of(s, w, pair, wrote);	/* D14 */
		a = capacity(s, w, pair, op->units, op->units, -1);
	}
	if (!is_accepted(&a))
		return a;				/* D3 */
	h = head(s, pair);
	h->available -= op->units;
	h->reserved += op->units;
	a.reservation = s->reservations;
	r = new_reservation(s, w);
	*r = (SpecReservation) {
		.subject = op->subject, .id = op->id, .pair = pair, .budget = s->pair[pair].head,
		.asked = op->units, .units = op->units, .digest = op->digest, .excess_budget = -1,
		.state = RESERVED, .expires = s->pair[pair].seen + policy_of(w, h)->hold_ttl
	};
	if (op->key != 0)			/* D5: started at once */
	{
		r->state = STARTED;
		r->operation = op->key;
		r->expires = s->pair[pair].seen + policy_of(w, h)->execution_ttl;
	}
	return a;
}

static Answer
unknown(void)
{
	return no("UNKNOWN", "reservation", -1, -1);
}

static Answer
start(Spec *s, World *w, const Op *op)
{
	int			i = find(s, op->subject, op->id);
	SpecReservation *r = i < 0 ? NULL : &s->reservation[i];
	int64_t		at;
	int64_t		ttl;

	if (i < 0)
		return unknown();
	if (r->operation != 0)		/* D5 */
		return r->operation == op->key ? replayed(r->pair, i) : no("CONFLICT", "operation", r->pair, i);
	if (r->state == RELEASED)
		return refused("released", NULL, r->pair, i);
	/*
	 * It locks no pair: what others make the pair see before its commit, it had not seen.
	 * Its deadline tells what it had; without one, perhaps its own clock alone.
	 */
	at = now(s, w, r);
	ttl = r->pair < 0 ? 0 : policy_of(w, &s->budget[r->budget])->execution_ttl;
	if (op->deadline != NEVER && op->deadline - ttl >= w->clock && op->deadline - ttl < at)
		at = op->deadline - ttl;
	if (op->deadline == NEVER && w->overlaps && at > w->clock && passed(w))
		at = w->clock;
	if (r->state != RESERVED || at >= r->expires)
		return refused("expired", NULL, r->pair, i);
	if (elsewhere(s, op->subject, i, op->key))
		return no("CONFLICT", "operation_elsewhere", r->pair, i);
	r->state = STARTED;
	r->operation = op->key;
	r->expires = at + ttl;
	return accepted(r->pair, i);
}

static Answer
settle(Spec *s, World *w, const Op *op, bool *wrote)
{
	int			i = find(s, op->subject, op->id);
	SpecReservation *r = i < 0 ? NULL : &s->reservation[i];
	int64_t		own;
	int64_t		overdraft = 0;

	if (i < 0)
		return unknown();
	if (r->pair >= 0)
		roll(s, w, r->pair, wrote);
	if (r->operation == 0)		/* D6: nothing can have run */
		return refused("not_started", NULL, r->pair, i);
	if (r->operation != op->key)
		return no("CONFLICT", "operation", r->pair, i);
	if (r->state == SETTLED || r->state == SETTLED_WITH_DEBT)
		return r->actual == op->units && r->receipt == op->digest
			? replayed(r->pair, i) : no("CONFLICT", "figures", r->pair, i);
	if (op->attested && op->units < r->progress)	/* D10 */
		return refused("progress", NULL, r->pair, i);
	own = smaller(op->units, r->units);
	r->actual = op->units;
	r->receipt = op->digest;
	r->excess = op->units - own;
	s->budget[r->budget].reserved -= own;
	s->budget[r->budget].spent += own;
	give_back(s, w, r, r->units - own, wrote);
	if (r->excess > 0)			/* D7 */
	{
		r->excess_budget = s->pair[r->pair].head;
		overdraft = exceed(s, w, r->pair, r->excess);
	}
	if (op->units > policy_of(w, &s->budget[r->budget])->hard_limit)
		s->pair[r->pair].frozen = true;	/* D8 */
	r->state = overdraft > 0 ? SETTLED_WITH_DEBT : SETTLED;
	return accepted(r->pair, i);
}

static const char *
why_ended(const SpecReservation *r)
{
	switch (r->state)
	{
		case STARTED:
		case USAGE_UNKNOWN:
			return "already_started";
		case SETTLED:
		case SETTLED_WITH_DEBT:
			return "settled";
		case RELEASED:
			return "released";
		default:
			return "expired";
	}
}

static Answer
release(Spec *s, World *w, const Op *op, bool *wrote)
{
	int			i = find(s, op->subject, op->id);
	SpecReservation *r = i < 0 ? NULL : &s->reservation[i];

	if (i < 0)
		return unknown();
	if (r->pair >= 0)
		roll(s, w, r->pair, wrote);
	if (r->state == RELEASED)
		return replayed(r->pair, i);
	if (r->state != RESERVED)	/* D9 */
		return refused(why_ended(r), NULL, r->pair, i);
	r->state = RELEASED;
	give_back(s, w, r, r->units, wrote);
	return accepted(r->pair, i);
}

static Answer
report(Spec *s, const Op *op)
{
	int			i = find(s, op->subject, op->id);
	SpecReservation *r = i < 0 ? NULL : &s->reservation[i];

	if (i < 0)
		return unknown();
	if (r->operation == 0)
		return refused("not_started", NULL, r->pair, i);
	if (r->operation != op->key)
		return no("CONFLICT", "operation", r->pair, i);
	if (r->state != STARTED && r->state != USAGE_UNKNOWN)
		return refused("settled", NULL, r->pair, i);
	if (op->function == F_REPORT_PROGRESS)	/* D10: never falls */
	{
		if (op->units <= r->progress)
			return replayed(r->pair, i);
		r->progress = op->units;
		return accepted(r->pair, i);
	}
	if (r->state == USAGE_UNKNOWN)
		return replayed(r->pair, i);
	r->state = USAGE_UNKNOWN;	/* the units stay reserved */
	return accepted(r->pair, i);
}

static Answer
extension(const Spec *s, const World *w, int i, const Op *op)
{
	const SpecReservation *r = &s->reservation[i];
	const Policy *own = r->pair < 0 ? NULL : policy_of(w, &s->budget[r->budget]);
	int64_t		seen = r->pair < 0 ? 0 : s->pair[r->pair].seen;

	if (r->state != RESERVED && r->state != STARTED)
		return refused(why_ended(r), NULL, r->pair, i);
	if (seen >= r->expires)
		return refused("expired", NULL, r->pair, i);
	if (op->deadline != NEVER &&
		op->deadline - seen > (r->state == STARTED ? own->execution_ttl : own->hold_ttl))
		return refused("ttl", "never", r->pair, i);
	if (op->units > 0 && r->budget != s->pair[r->pair].head)
		return refused("closed_budget", "never", r->pair, i);
	return capacity(s, w, r->pair, op->units, (Wide) r->units + op->units, i);
}

static Answer
extend(Spec *s, World *w, const Op *op, bool *wrote)
{
	static Spec before;
	int			i = find(s, op->subject, op->id);
	SpecReservation *r = i < 0 ? NULL : &s->reservation[i];
	const SpecRecord *known;
	SpecRecord *record;
	Answer		a;

	if (i < 0)
		return unknown();
	spec_copy(&before, s);
	if (r->pair >= 0)
		roll(s, w, r->pair, wrote);
	known = recorded(s, EXTENSION, op->subject, -1, op->id, op->key);
	if (known != NULL)
		return known->units == op->units && known->deadline == op->deadline
			? replayed(r->pair, i) : no("CONFLICT", "extension", r->pair, i);
	a = extension(s, w, i, op);
	if (waits(&a))
	{
		end_due_of(s, w, r->pair, wrote);
		a = extension(s, w, i, op);
	}
	if (!is_accepted(&a))
		return a;
	if (op->units == 0 && !w->ended)	/* a deadline is the reservation's alone: no budget is written */
	{
		memcpy(s->pair, before.pair, sizeof(s->pair));
		memcpy(s->budget, before.budget, sizeof(s->budget));
		s->budgets = before.budgets;
	}
	s->budget[r->budget].available -= op->units;
	s->budget[r->budget].reserved += op->units;
	r->units += op->units;
	if (op->deadline != NEVER && op->deadline > r->expires)
		r->expires = op->deadline;
	record = new_record(s, w, EXTENSION, op->subject, r->pair, op->id, op->key);
	record->units = op->units;
	record->deadline = op->deadline;
	return a;
}

static Answer
record_usage(Spec *s, World *w, const Op *op, bool *wrote)
{
	int			pair = pair_of(s, w, op->subject, op->route);
	const SpecRecord *known = recorded(s, USAGE, op->subject, -1, 0, op->key);
	SpecRecord *record;
	bool		opened;

	if (pair < 0)
		return refused("no_policy", "operator", -1, -1);
	opened = s->pair[pair].exists;
	enter(s, w, pair, wrote);
	if (known != NULL)			/* D12: other figures or another route are a conflict */
		return known->units == op->units && known->pair == pair
			? replayed(pair, -1) : no("CONFLICT", "figures", pair, -1);
	if (elsewhere(s, op->subject, -1, op->key))
		return no("CONFLICT", "operation_elsewhere", pair, -1);
	if (op->function == F_IMPORT_USAGE && opened)	/* B2: it opens the pair, or books nothing */
		return refused("opened", "never", pair, -1);
	exceed(s, w, pair, op->units);
	if (op->units > policy_of(w, head(s, pair))->hard_limit && op->function != F_IMPORT_USAGE)
		s->pair[pair].frozen = true;
	record = new_record(s, w, USAGE, op->subject, pair, 0, op->key);
	record->units = op->units;
	record->budget = s->pair[pair].head;
	return accepted(pair, -1);
}

/* grant: E3, in its order: debt, deficit, available within the cap. */
static Answer
grant(Spec *s, World *w, const Op *op, bool *wrote)
{
	int			pair = pair_of(s, w, op->subject, op->route);
	const SpecRecord *known;
	SpecRecord *record;
	SpecBudget *h;
	int64_t		left = op->units;
	int64_t		part;
	Answer		a;

	if (pair < 0)
		return refused("no_policy", NULL, -1, -1);
	enter(s, w, pair, wrote);
	known = recorded(s, GRANT, op->subject, pair, 0, op->key);
	if (known != NULL)
	{
		a = known->units == op->units ? replayed(pair, -1) : no("CONFLICT", "grant", pair, -1);
		a.number = known->granted;
		return a;
	}
	h = head(s, pair);
	left -= repay(s, pair, left, wrote);
	part = smaller(left, h->deficit);
	h->deficit -= part;
	left -= part;
	part = smaller(left, policy_of(w, h)->cap - h->available);
	h->minted += part;
	h->available += part;
	left -= part;
	record = new_record(s, w, GRANT, op->subject, pair, 0, op->key);
	record->units = op->units;
	record->granted = op->units - left;
	a = accepted(pair, -1);
	a.number = record->granted;
	return a;
}

static Answer
freeze(Spec *s, World *w, const Op *op, bool *wrote)
{
	int			pair = pair_of(s, w, op->subject, op->route);
	bool		frozen;

	if (op->function == F_FREEZE && pair < 0)
		return refused("no_policy", NULL, -1, -1);
	if (pair < 0 || !(op->function == F_FREEZE || s->pair[pair].exists))
		return no("UNKNOWN", "pair", -1, -1);
	frozen = s->pair[pair].exists && s->pair[pair].frozen;
	enter(s, w, pair, wrote);
	if (op->function == F_FREEZE)
	{
		s->pair[pair].frozen = true;
		return frozen ? replayed(pair, -1) : accepted(pair, -1);
	}
	if (!frozen)
		return replayed(pair, -1);
	if (spec_debt(s, pair) > 0)	/* D8 */
		return refused("debt", NULL, pair, -1);
	s->pair[pair].frozen = false;
	return accepted(pair, -1);
}

static Answer
freeze_route(Spec *s, World *w, const Op *op)
{
	bool		frozen = route_frozen(s, op->route);
	Answer		a = accepted(-1, -1);

	if (op->function == F_FREEZE_ROUTE && !frozen)
	{
		if (s->routes == ROUTES_MAX)
			w->too_big = true;
		else
			s->frozen_route[s->routes++] = op->route;
	}
	if (op->function == F_UNFREEZE_ROUTE && frozen)
		for (int i = 0; i < s->routes; i++)
			if (s->frozen_route[i] == op->route)
			{
				s->frozen_route[i] = s->frozen_route[--s->routes];
				s->frozen_route[s->routes] = 0;
			}
	a.number = frozen;			/* already_frozen, was_frozen */
	return a;
}

static Answer
repay_debt(Spec *s, World *w, const Op *op, bool *wrote)
{
	int			pair = pair_of(s, w, op->subject, op->route);
	int64_t		debt;
	Answer		a;

	if (pair < 0 || !s->pair[pair].exists)
		return no("UNKNOWN", "pair", -1, -1);
	debt = spec_debt(s, pair);
	enter(s, w, pair, wrote);
	a = accepted(pair, -1);
	a.number = debt - spec_debt(s, pair);
	a.wrote = *wrote;			/* refill alone is not written */
	return a;
}

/* sweep is the housekeeping that may pass by whatever is locked (D14, D10). */
static Answer
sweep(Spec *s, World *w, const Op *op, bool *wrote)
{
	Answer		a = accepted(-1, -1);

	if (op->function == F_EXPIRE_EXECUTIONS)
	{
		for (int i = 0; i < s->reservations; i++)
		{
			SpecReservation *r = &s->reservation[i];

			if (r->pair < 0 || r->state != STARTED || w->clock < r->expires || passed(w))
				continue;
			r->state = USAGE_UNKNOWN;
			a.number++;
		}
		return a;
	}
	a.number2 = end_due(s, w, -1, op->function != F_FINISH_EXPIRING,
						op->function != F_CLAIM_EXPIRING, &a.number, &(int64_t) {0}, wrote);
	if (op->function == F_FINISH_EXPIRING)
		a.number = a.number2;
	return a;
}

/* repay_debtors brings pairs that owe to the present, those that are not locked (E3). */
static Answer
repay_debtors(Spec *s, World *w, bool *wrote)
{
	static Spec before;
	Answer		a = accepted(-1, -1);
	bool		due;

	for (int p = 0; p < s->pairs; p++)
	{
		int64_t		debt = s->pair[p].exists ? spec_debt(s, p) : 0;

		if (debt == 0 || passed(w))
			continue;
		spec_copy(&before, s);
		due = false;
		enter(s, w, p, &due);
		if (!due)				/* refill alone is not written */
		{
			spec_copy(s, &before);
			continue;
		}
		*wrote = true;
		if (debt > spec_debt(s, p))
			a.number++;
		a.number2 += debt - spec_debt(s, p);
	}
	return a;
}

static Answer
publish(Spec *s, World *w, const Op *op)
{
	for (int i = 0; i < w->history->policies; i++)
		if (i >= w->first_published && i - w->first_published < 31 &&
			w->history->policy[i].line > op->id && w->history->policy[i].line < op->key)
			s->published |= 1 << (i - w->first_published);
	return accepted(-1, -1);
}

static Answer
decide(Spec *s, World *w, const Op *op, bool *wrote)
{
	switch (op->function)
	{
		case F_RESERVE:
			return reserve(s, w, op, wrote);
		case F_START:
			return start(s, w, op);
		case F_SETTLE:
			return settle(s, w, op, wrote);
		case F_RELEASE:
			return release(s, w, op, wrote);
		case F_REPORT_UNKNOWN:
		case F_REPORT_PROGRESS:
			return report(s, op);
		case F_EXTEND:
			return extend(s, w, op, wrote);
		case F_RECORD_USAGE:
		case F_IMPORT_USAGE:
			return record_usage(s, w, op, wrote);
		case F_GET:
			{
				int			i = find(s, op->subject, op->id);

				return i < 0 ? unknown() : replayed(s->reservation[i].pair, i);
			}
		case F_RESOLVE:
			{
				int			i = find(s, op->subject, op->id);
				SpecReservation *r;

				if (i >= 0)
					return s->reservation[i].digest == op->digest
						? replayed(s->reservation[i].pair, i) : no("CONFLICT", "request", -1, i);
				r = new_reservation(s, w);	/* D11: a fence */
				r->subject = op->subject;
				r->id = op->id;
				r->digest = op->digest;
				r->state = RELEASED;
				r->expires = w->clock;
				return accepted(-1, s->reservations - 1);
			}
		case F_GRANT:
			return grant(s, w, op, wrote);
		case F_FREEZE:
		case F_UNFREEZE:
			return freeze(s, w, op, wrote);
		case F_FREEZE_ROUTE:
		case F_UNFREEZE_ROUTE:
			return freeze_route(s, w, op);
		case F_REPAY:
			return repay_debt(s, w, op, wrote);
		case F_CLAIM_EXPIRING:
		case F_FINISH_EXPIRING:
		case F_EXPIRE_RESERVATIONS:
		case F_EXPIRE_EXECUTIONS:
			return sweep(s, w, op, wrote);
		case F_REPAY_DEBTORS:
			return repay_debtors(s, w, wrote);
		case F_CLAIM_UNKNOWN:	/* D10: a promise between reconcilers, no balance moves */
			return replayed(-1, -1);
		case F_PUBLISH:
			return publish(s, w, op);
		case F_GET_BUDGET:
			{
				int			pair = pair_of(s, w, op->subject, op->route);

				return replayed(pair, -1);
			}
		default:
			return unknown();
	}
}

/* fits tells whether every column and sum is a bigint (A2). */
static bool
fits(const Spec *s)
{
	for (int i = 0; i < s->budgets; i++)
	{
		const SpecBudget *b = &s->budget[i];

		if ((Wide) b->opening + b->minted + b->issued > INT64_MAX || b->burned < 0)
			return false;
	}
	for (int p = 0; p < s->pairs; p++)
	{
		Wide		debt = 0;
		Wide		reserved = 0;

		for (int i = 0; i < s->budgets; i++)
			if (s->budget[i].pair == p)
			{
				debt += (Wide) s->budget[i].issued - s->budget[i].repaid;
				reserved += s->budget[i].reserved;
			}
		if (debt > INT64_MAX || reserved > INT64_MAX)
			return false;
	}
	return true;
}

/*
 * A refused or repeated call keeps nothing, not even the passing of time, unless holds
 * that had run out were ended on the way (D3).
 */
Answer
spec_call(Spec *s, World *w, const Op *op)
{
	static Spec before;
	bool		wrote = false;
	Answer		a;

	spec_copy(&before, s);
	w->overflow = false;
	w->ended = false;
	a = decide(s, w, op, &wrote);
	if (w->overflow || ((a.wrote || w->ended) && !fits(s)))
	{
		spec_copy(s, &before);
		return no("OVERFLOW", NULL, -1, -1);
	}
	if (!a.wrote && !w->ended)
	{
		SpecPair	asked = a.pair < 0 ? (SpecPair) {0} : s->pair[a.pair];

		spec_copy(s, &before);
		if (a.pair >= s->pairs)	/* a pair without a row, which the answer is about */
			s->pair[s->pairs++] = (SpecPair) {
				.subject = asked.subject, .route = asked.route, .head = -1, .in_force = -1
			};
	}
	a.wrote = a.wrote || w->ended;
	return a;
}

void
spec_require_all(Spec *s, World *w, const Op *op, int ops, Answer *answer)
{
	static Spec before;
	bool		all = true;
	int64_t		longest = -1;

	spec_copy(&before, s);
	for (int i = 0; i < ops; i++)
	{
		answer[i] = spec_call(s, w, &op[i]);
		all = all && answer[i].outcome[0] == 'A';
		longest = larger(longest, answer[i].wait);
	}
	if (all)
		return;
	spec_copy(s, &before);
	for (int i = 0; i < ops; i++)
	{
		if (answer[i].outcome[0] == 'A' && !answer[i].replayed)
			answer[i] = refused("require_all", NULL, answer[i].pair, -1);
		else if (answer[i].reservation >= before.reservations)
			answer[i].reservation = -1;
		answer[i].wrote = false;
	}
}

/* ---- calls as they were sent --------------------------------------------- */

static Op
op(Function f, const char *subject, const char *route, const char *id, const char *key,
   const char *units, const char *digest)
{
	return (Op) {
		.function = f, .subject = word(subject), .route = word(route), .id = word(id),
		.key = word(key), .units = number_of(units, 0), .digest = word_of_digest(digest),
		.deadline = NEVER
	};
}

static bool
is_operator(const char *source)
{
	return source != NULL && strcmp(source, "operator") == 0;
}

static int
batch(const Call *c, Op *ops)
{
	static const Function single[] = {F_RESERVE, F_START, F_SETTLE, F_RELEASE, F_RECORD_USAGE};
	Function	f = single[c->function - F_RESERVE_BATCH];
	char	  **a[10] = {NULL};
	int			n[10] = {0};
	int			count;

#define AT(column)	(a[column] != NULL && i < n[column] ? a[column][i] : NULL)
	for (int i = 0; i < 10; i++)
		n[i] = array_of(argument(c, i), &a[i]);
	count = n[0];
	if (count > OPS_MAX)
		return 0;
	for (int i = 0; i < count; i++)
		switch (f)
		{
			case F_RESERVE:
				ops[i] = op(f, AT(0), AT(1), AT(2), AT(9), AT(3), AT(4));
				ops[i].deadline = number_of(AT(7), NEVER);
				break;
			case F_START:
				ops[i] = op(f, AT(0), NULL, AT(1), AT(2), NULL, NULL);
				break;
			case F_SETTLE:
				ops[i] = op(f, AT(0), NULL, AT(1), AT(2), AT(3), AT(4));
				ops[i].attested = is_operator(AT(5));
				break;
			case F_RELEASE:
				ops[i] = op(f, AT(0), NULL, AT(1), NULL, NULL, NULL);
				break;
			default:
				ops[i] = op(f, AT(0), AT(1), NULL, AT(2), AT(3), NULL);
		}
#undef AT
	return count;
}

int
ops_of(const Call *c, Op *ops)
{
	const char *a0 = argument(c, 0);
	const char *a1 = argument(c, 1);
	const char *a2 = argument(c, 2);
	const char *a3 = argument(c, 3);
	Function	f = c->function;

	switch (f)
	{
		case F_RESERVE:
			*ops = op(f, a0, a1, a2, argument(c, 9), a3, argument(c, 4));
			ops->deadline = number_of(argument(c, 7), NEVER);
			return argument(c, 5) == NULL && argument(c, 6) == NULL ? 1 : 0;
		case F_SHARD_RESERVE:
			*ops = op(f, a0, a1, a2, argument(c, 6), a3, argument(c, 4));
			return 1;
		case F_START:
		case F_REPORT_UNKNOWN:
		case F_SHARD_START:
		case F_SHARD_REPORT_UNKNOWN:
			*ops = op(f, a0, NULL, a1, a2, NULL, NULL);
			if (f == F_START)
				ops->deadline = number_of(column(c, 0, R_EXPIRES), NEVER);
			return 1;
		case F_REPORT_PROGRESS:
			*ops = op(f, a0, NULL, a1, a2, a3, NULL);
			return 1;
		case F_SETTLE:
		case F_SHARD_SETTLE:
			*ops = op(f, a0, NULL, a1, a2, a3, argument(c, 4));
			ops->attested = is_operator(argument(c, 5));
			return 1;
		case F_RELEASE:
		case F_SHARD_RELEASE:
		case F_GET:
			*ops = op(f, a0, NULL, a1, NULL, NULL, NULL);
			return 1;
		case F_RESOLVE:
			*ops = op(f, a0, NULL, a1, NULL, NULL, a2);
			return 1;
		case F_EXTEND:
			*ops = op(f, a0, NULL, a1, a2, a3, NULL);
			ops->deadline = number_of(argument(c, 4), NEVER);
			return 1;
		case F_RECORD_USAGE:
		case F_IMPORT_USAGE:
		case F_GRANT:
			*ops = op(f, a0, a1, NULL, a2, a3, NULL);
			return 1;
		case F_GET_BUDGET:
		case F_REPAY:
		case F_FREEZE:
		case F_UNFREEZE:
			*ops = op(f, a0, a1, NULL, NULL, NULL, NULL);
			return 1;
		case F_FREEZE_ROUTE:
		case F_UNFREEZE_ROUTE:
			*ops = op(f, NULL, a0, NULL, NULL, NULL, NULL);
			return 1;
		case F_CLAIM_EXPIRING:
		case F_FINISH_EXPIRING:
		case F_EXPIRE_RESERVATIONS:
		case F_EXPIRE_EXECUTIONS:
		case F_REPAY_DEBTORS:
		case F_CLAIM_UNKNOWN:
			*ops = op(f, NULL, NULL, NULL, NULL, a0, NULL);
			return 1;
		case F_PUBLISH:
			*ops = op(f, NULL, NULL, NULL, NULL, NULL, NULL);
			ops->id = c->sent;	/* the policy is told between call and answer */
			ops->key = c->back;
			return c->end != END_LOST ? 1 : 0;
		case F_RESERVE_BATCH:
		case F_START_BATCH:
		case F_SETTLE_BATCH:
		case F_RELEASE_BATCH:
		case F_RECORD_BATCH:
			return batch(c, ops);
		default:
			return 0;
	}
}
