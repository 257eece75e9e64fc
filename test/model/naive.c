/*
 * naive.c
 *	  See naive.h.
 */
#include "naive.h"

#include <stddef.h>
#include <string.h>

#include "naive_answer.h"

/* Epochs are aligned to Monday 2001-01-01 00:00 UTC, in microseconds of 2000 (A4). */
static const Number ORIGIN = (Number) 366 * 24 * 60 * 60 * 1000000;

/* What a line may use is counted in sixtieths: every interval divides 60. */
enum
{
	PARTS = 60
};

static const Number LARGEST = INT64_MAX;

static Number
smaller(Number a, Number b)
{
	return a < b ? a : b;
}

static NaiveBudget *
head(Naive *m)
{
	return &m->budget[m->budgets - 1];
}

static const NaiveBudget *
const_head(const Naive *m)
{
	return &m->budget[m->budgets - 1];
}

static const Document *
policy_of_head(const Naive *m)
{
	return &m->policy[const_head(m)->policy];
}

/* Debt: overdraft_issued less overdraft_repaid, over all budgets of the pair. */
static Number
debt(const Naive *m)
{
	Number		sum = 0;

	for (int i = 0; i < m->budgets; i++)
		sum += m->budget[i].issued - m->budget[i].repaid;
	return sum;
}

/* What the pair holds reserved, over all its budgets (B2: largest outstanding). */
static Number
outstanding(const Naive *m)
{
	Number		sum = 0;

	for (int i = 0; i < m->budgets; i++)
		sum += m->budget[i].reserved;
	return sum;
}

/* fits tells whether every column and sum is a bigint (A2). */
static bool
fits(const Naive *m)
{
	for (int i = 0; i < m->budgets; i++)
	{
		const NaiveBudget *b = &m->budget[i];

		if (b->opening + b->minted + b->issued > LARGEST || b->burned > LARGEST)
			return false;
	}
	for (int i = 0; i < m->shards; i++)
	{
		const NaiveShard *s = &m->shard[i];

		if (s->gateway.excess > LARGEST || s->last.spent + s->last.excess > LARGEST ||
			s->receipted > LARGEST)
			return false;
	}
	return debt(m) <= LARGEST && outstanding(m) <= LARGEST;
}

/* copy copies what is in use. */
static void
copy(Naive *to, const Naive *from)
{
	memcpy(to, from, offsetof(Naive, since));
	memcpy(to->since, from->since, sizeof(from->since[0]) * (size_t) from->policies);
	memcpy(to->policy, from->policy, sizeof(from->policy[0]) * (size_t) from->policies);
	memcpy(to->line, from->line, sizeof(from->line[0]) * (size_t) (const_head(from)->line + 1));
	memcpy(to->budget, from->budget, sizeof(from->budget[0]) * (size_t) from->budgets);
	memcpy(to->reservation, from->reservation,
		   sizeof(from->reservation[0]) * (size_t) from->reservations);
	memcpy(to->record, from->record, sizeof(from->record[0]) * (size_t) from->records);
	memcpy(to->shard, from->shard, sizeof(from->shard[0]) * (size_t) from->shards);
	memcpy(to->item, from->item, sizeof(from->item[0]) * (size_t) from->items);
	memcpy(to->report, from->report, sizeof(from->report[0]) * (size_t) from->reports);
}

/* ---- epochs (A4) --------------------------------------------------------- */

/* next_epoch gives the end of the epoch that begins at `start`, the n-th of the pattern. */
static Number
next_epoch(const Document *policy, Number start, int *n)
{
	Number		end = start + policy->epoch[*n];

	*n = (*n + 1) % PATTERN;
	return end;
}

/* epoch_of walks from the origin to the epoch that holds the instant. */
static Number
epoch_of(const Document *policy, Number instant, int *n)
{
	Number		start = ORIGIN;

	*n = 0;
	while (start > instant)
	{
		*n = (*n + PATTERN - 1) % PATTERN;
		start -= policy->epoch[*n];
	}
	while (start + policy->epoch[*n] <= instant)
		start = next_epoch(policy, start, n);
	return start;
}

static bool
same_epochs(const Document *a, const Document *b)
{
	return memcmp(a->epoch, b->epoch, sizeof(a->epoch)) == 0;
}

/* ---- time brings capacity (B5, C4, E2) ----------------------------------- */

/* repay pays debt, the oldest budget first; returns what was used (E2). */
static Number
repay(Naive *m, Number units, Number *paid)
{
	Number		used = 0;

	for (int i = 0; i < m->budgets; i++)
	{
		NaiveBudget *b = &m->budget[i];
		Number		part = smaller(units - used, b->issued - b->repaid);

		b->minted += part;		/* the two grow together */
		b->repaid += part;
		used += part;
	}
	*paid += used;
	if (used > 0)
		m->wrote = true;
	return used;
}

/* open_budget closes the head and opens the next one with what it takes over. */
static void
open_budget(Naive *m, int policy, Number net, int line, bool whole)
{
	NaiveBudget b = {0};
	const Document *p = &m->policy[policy];
	Number		share;
	int			n;

	if (m->budgets > 0)			/* B5: a closed budget never opens again */
		head(m)->closing = head(m)->available - head(m)->deficit;
	b.policy = policy;
	b.epoch = epoch_of(p, m->at, &n);
	b.line = line;
	b.whole = whole;
	b.carried = net < 0 ? 0 : smaller(net, p->cap);
	b.deficit = net < 0 ? -net : 0;
	share = repay(m, b.carried, &m->line[line].paid);	/* B5: after debt */
	b.opening = b.available = b.carried - share;
	m->budget[m->budgets++] = b;
	m->wrote = true;
}

/* new_line begins a window with its quota (C5). */
static int
new_line(Naive *m, Number quota)
{
	int			line = m->budgets > 0 ? head(m)->line + 1 : 1;

	m->line[line].allowance = quota * PARTS;
	m->line[line].paid = 0;
	m->line[line].granted = 0;
	return line;
}

/* tick is one tick of continuous refill (C4). */
static void
tick(Naive *m)
{
	NaiveBudget *b = head(m);
	const Document *p = &m->policy[b->policy];
	Number		room = p->cap - b->available + debt(m);
	Number		whole;
	Number		rest;

	m->line[b->line].allowance += (Number) p->units * (PARTS / p->interval);
	m->remainder += p->units;
	whole = m->remainder / p->interval;
	m->remainder %= p->interval;
	if (whole >= room)			/* full and free of debt: the fraction is dropped */
	{
		whole = room;
		m->remainder = 0;
	}
	rest = whole - repay(m, whole, &m->line[b->line].paid); /* E2: debt first */
	b->minted += rest;
	b->available += rest;
}

/* advance applies one policy up to an instant, and opens the epoch that holds it. */
static void
advance(Naive *m, Number to)
{
	const Document *p = policy_of_head(m);
	Number		epoch;
	Number		start;
	Number		came;
	int			n;

	if (to <= m->at)			/* A3: a step back mints nothing */
		return;
	came = head(m)->opening + head(m)->minted + head(m)->issued + debt(m);
	if (p->kind == CONTINUOUS && p->cap - head(m)->available + came > LARGEST)
		m->capped = true;
	for (; m->at < to; m->at++)
		if (p->kind == CONTINUOUS)
			tick(m);
	epoch = epoch_of(p, to, &n);
	if (epoch <= head(m)->epoch)
		return;
	if (p->kind != WINDOW)		/* B5: what is available goes on */
	{
		open_budget(m, head(m)->policy, head(m)->available, head(m)->line, false);
		return;
	}
	epoch_of(p, head(m)->epoch, &n);
	for (start = next_epoch(p, head(m)->epoch, &n); start < epoch; start = next_epoch(p, start, &n))
		repay(m, p->cap, &m->paid_unopened);	/* E2: windows that passed unopened */
	open_budget(m, head(m)->policy, p->cap, new_line(m, p->cap), true);
}

/* take_over moves the pair to the next generation, at the instant m->at (B5). */
static void
take_over(Naive *m, int policy)
{
	NaiveBudget *b = head(m);
	const Document *old = &m->policy[b->policy];
	const Document *new = &m->policy[policy];
	Number		change = (Number) new->cap - old->cap;

	if (old->kind == WINDOW && new->kind == WINDOW && same_epochs(old, new) && b->whole)
	{
		m->line[b->line].allowance += change * PARTS;
		open_budget(m, policy, b->available - b->deficit + change, b->line, true);
	}
	else						/* any other change: what is available, no deficit */
	{
		m->line[b->line].allowance += b->deficit * PARTS;
		open_budget(m, policy, b->available, b->line, false);
	}
	if (old->kind == CONTINUOUS && new->kind == CONTINUOUS) /* as a part of a unit */
		m->remainder = m->remainder * new->interval / old->interval;
	else
		m->remainder = 0;
	if (head(m)->available == new->cap && debt(m) == 0)
		m->remainder = 0;
	m->draining = false;		/* it was the older generation that drained (B6) */
}

/* roll is what every call on a balance begins with: "opens a due epoch" (B5). */
static void
roll(Naive *m)
{
	if (m->clock > m->seen)
		m->seen = m->clock;		/* A3 */
	while (m->in_force < m->policies - 1)
	{
		m->in_force++;
		advance(m, smaller(m->since[m->in_force], m->seen));
		take_over(m, m->in_force);
	}
	advance(m, m->seen);
	m->strained = m->strained || !fits(m);
}

/* ---- units that come back, units in excess (C4, C5, D7, D8) -------------- */

/* come_back returns units to the head; what exceeds the cap is un-minted (C4). */
static void
come_back(Naive *m, Number units)
{
	NaiveBudget *h = head(m);
	Number		part = smaller(units, h->issued - h->repaid);
	Number		over;

	h->repaid += part;			/* E2: available and repaid exchange */
	m->line[h->line].paid += part;
	h->available += units - part;
	over = h->available - smaller(h->available, policy_of_head(m)->cap);
	h->available -= over;		/* refilled during the hold */
	h->minted -= over;
	h->burned += over;
}

/*
 * remint mints units of a closed budget, or of a shard, into the head: what C5
 * says, in its order.  Returns what was minted.
 */
static Number
remint(Naive *m, Number units)
{
	NaiveBudget *h = head(m);
	Number		part = smaller(units, h->deficit);
	Number		paid;

	h->deficit -= part;			/* deficit first */
	units -= part;
	paid = repay(m, units, &m->line[h->line].paid);	/* then debt */
	units -= paid;
	part = smaller(units, policy_of_head(m)->cap - h->available);
	h->minted += part;			/* then available within the cap */
	h->available += part;
	h->burned += units - part;
	return paid + part;
}

static void
give_back(Naive *m, int index, Number units)
{
	NaiveBudget *b = &m->budget[index];

	b->reserved -= units;
	if (b == head(m))
		come_back(m, units);
	else
	{
		b->available += units;	/* C5: stays in the closing balance ... */
		if (b->line == head(m)->line)
			remint(m, units);	/* ... or lapses: a window opened with its quota */
	}
	m->strained = m->strained || !fits(m);
}

/* exceed books units that no reservation covers; returns what became debt (D7, D8). */
static Number
exceed(Naive *m, Number units)
{
	NaiveBudget *h = head(m);
	Number		covered = smaller(units, h->available);

	h->available -= covered;
	h->issued += units - covered;
	h->spent += units;
	if (debt(m) > policy_of_head(m)->maximum_overdraft)
		m->frozen = true;
	return units - covered;
}

/* ---- the calls (D) ------------------------------------------------------- */

static NaiveReservation *
find(Naive *m, int id)
{
	for (int i = 0; i < m->reservations; i++)
		if (m->reservation[i].id == id)
			return &m->reservation[i];
	return NULL;
}

/* roll_for rolls the pair of a reservation; a fence has none. */
static void
roll_for(Naive *m, const NaiveReservation *r)
{
	if (r->budget >= 0)
		roll(m);
}

/* recorded finds what stands under an id of a call's own. */
static const NaiveRecord *
recorded(const Naive *m, CallName call, int id, int key)
{
	for (int i = 0; i < m->records; i++)
		if (m->record[i].call == call && m->record[i].id == id && m->record[i].key == key)
			return &m->record[i];
	return NULL;
}

/* elsewhere tells whether an operation is bound to something else (D5, D12). */
static bool
elsewhere(const Naive *m, const NaiveReservation *r, int operation)
{
	for (int i = 0; i < m->reservations; i++)
		if (&m->reservation[i] != r && m->reservation[i].operation == operation)
			return true;
	return recorded(m, RECORD_USAGE, 0, operation) != NULL;
}

/* A3: deadlines are judged by the latest instant that the pair has seen. */
static Number
now(const Naive *m)
{
	return m->clock > m->seen ? m->clock : m->seen;
}

/* ticks_until counts ticks of refill until `units` could be admitted (D4). */
static Number
ticks_until(const Naive *m, Number units)
{
	const Document *p = policy_of_head(m);
	Number		owed = debt(m);
	Number		missing = owed + units - const_head(m)->available;
	Number		fraction = m->remainder;
	Number		ticks = 0;
	Number		start = const_head(m)->epoch;
	Number		left;
	int			n;

	if (p->kind == CONTINUOUS)
	{
		while (missing > 0)
		{
			ticks++;
			fraction += p->units;
			missing -= fraction / p->interval;
			fraction %= p->interval;
		}
		return m->at + ticks - m->clock;
	}
	epoch_of(p, start, &n);
	do							/* each window pays debt first (E2) */
	{
		start = next_epoch(p, start, &n);
		left = p->cap - smaller(p->cap, owed);
		owed -= smaller(p->cap, owed);
	} while (owed > 0 || left < units);
	return start - m->clock;
}

/*
 * capacity says why `units` more can't be admitted now (D3), and how long (D4),
 * to a reservation that has so many `in_all`.
 */
static Answer
capacity(const Naive *m, Number units, Number in_all)
{
	const Document *p = policy_of_head(m);
	Answer		a;

	if (units > 0 && in_all > p->largest)
		return refused("largest_reservation", "never");
	if (units > 0 && in_all > p->cap)
		return refused("cap", "never");
	if (units > 0 && in_all > p->outstanding)
		return refused("largest_outstanding", "never");
	if (m->draining)			/* B6 */
		return refused("draining", "operator");
	if (m->frozen || m->route_frozen)	/* D8 */
		return refused("frozen", "operator");
	if (p->outstanding != NO_LIMIT && outstanding(m) + units > p->outstanding)
		return refused("largest_outstanding", "release");
	if (debt(m) == 0 && units <= const_head(m)->available)	/* E1 */
		return accepted();
	a = refused(debt(m) > 0 ? "debt" : "available", p->kind == NONE ? "release" : "refill");
	if (p->kind != NONE)
		a.wait = (int64_t) ticks_until(m, units);
	return a;
}

/* admission says so of a new request. */
static Answer
admission(const Naive *m, const Call *call)
{
	if (call->wrong_region)
		return refused("region", "never");
	if (call->wrong_estimator)
		return refused("estimator", "never");
	if (call->deadline != NO_LIMIT && m->seen >= call->deadline)	/* D9 */
		return refused("deadline", "never");
	return capacity(m, call->units, call->units);
}

/* waits tells whether a refused caller may be admitted later, without an operator. */
static bool
waits(const Answer *a)
{
	return strcmp(a->wait_kind, "refill") == 0 || strcmp(a->wait_kind, "release") == 0;
}

static void
claim_due(Naive *m)
{
	for (int i = 0; i < m->reservations; i++)
	{
		NaiveReservation *r = &m->reservation[i];

		if (r->state == RESERVED && now(m) >= r->expires)
		{
			r->state = EXPIRING;
			m->wrote = true;
		}
	}
}

static void
finish_expiring(Naive *m)
{
	for (int i = 0; i < m->reservations; i++)
	{
		NaiveReservation *r = &m->reservation[i];

		if (r->state == EXPIRING)
		{
			r->state = EXPIRED;
			give_back(m, r->budget, r->units);
			m->wrote = true;
		}
	}
}

static Answer
reserve(Naive *m, const Call *call)
{
	NaiveReservation *r = find(m, call->id);
	Answer		a;

	roll(m);
	if (r != NULL)				/* D2; a fence knows the digest alone (D11) */
		return r->digest == call->digest && (r->budget < 0 || r->asked == call->units)
			? replayed() : conflict("request");
	if (call->operation != 0 && elsewhere(m, NULL, call->operation))
		return conflict("operation_elsewhere");
	a = admission(m, call);
	if (waits(&a))
	{
		claim_due(m);			/* D14: ends due holds before it refuses */
		finish_expiring(m);
		a = admission(m, call);
	}
	if (strcmp(a.outcome, "ACCEPTED") != 0)
		return a;				/* D3: nothing written, the id not burned */
	head(m)->available -= call->units;
	head(m)->reserved += call->units;
	r = &m->reservation[m->reservations++];
	*r = (NaiveReservation) {
		.id = call->id,.budget = m->budgets - 1,.asked = call->units,.units = call->units,
		.digest = call->digest,.excess_budget = -1,.state = RESERVED
	};
	r->expires = m->seen + policy_of_head(m)->hold_ttl;
	if (call->operation != 0)	/* D5: started at once */
	{
		r->state = STARTED;
		r->operation = call->operation;
		r->expires = m->seen + policy_of_head(m)->execution_ttl;
	}
	return a;
}

static Answer
start(Naive *m, const Call *call)
{
	NaiveReservation *r = find(m, call->id);

	if (r == NULL)
		return unknown();
	if (r->operation != 0)		/* D5: same operation, same answer */
		return r->operation == call->operation ? replayed() : conflict("operation");
	if (r->state == RELEASED)
		return refused("released", "");
	if (r->state != RESERVED || now(m) >= r->expires)	/* late, sweep or no sweep */
		return refused("expired", "");
	if (elsewhere(m, r, call->operation))
		return conflict("operation_elsewhere");
	r->state = STARTED;
	r->operation = call->operation;
	r->expires = now(m) + m->policy[m->budget[r->budget].policy].execution_ttl;
	return accepted();
}

static Answer
settle(Naive *m, const Call *call)
{
	NaiveReservation *r = find(m, call->id);
	Number		own;

	if (r == NULL)
		return unknown();
	roll_for(m, r);
	if (r->operation == 0)		/* D6: nothing can have run */
		return refused("not_started", "");
	if (r->operation != call->operation)
		return conflict("operation");
	if (r->state == SETTLED || r->state == SETTLED_WITH_DEBT)	/* D6: once */
		return r->actual == call->units && r->receipt == call->digest
			? replayed() : conflict("figures");
	if (call->attested && call->units < r->progress)	/* D10: that much is known */
		return refused("progress", "");
	own = smaller(call->units, r->units);
	r->actual = call->units;
	r->receipt = call->digest;
	r->excess = call->units - own;
	m->budget[r->budget].reserved -= own;	/* D6: spends the actual ... */
	m->budget[r->budget].spent += own;
	give_back(m, r->budget, r->units - own);	/* ... gives back the difference */
	if (r->excess > 0)			/* D7: borne by the head */
	{
		r->excess_budget = m->budgets - 1;
		r->overdraft = exceed(m, r->excess);
	}
	if (call->units > m->policy[m->budget[r->budget].policy].hard_limit)
		m->frozen = true;		/* D8 */
	r->state = r->overdraft > 0 ? SETTLED_WITH_DEBT : SETTLED;
	return accepted();
}

static Answer
release(Naive *m, const Call *call)
{
	NaiveReservation *r = find(m, call->id);

	if (r == NULL)
		return unknown();
	roll_for(m, r);
	switch (r->state)
	{
		case RESERVED:
			r->state = RELEASED;
			give_back(m, r->budget, r->units);
			return accepted();
		case RELEASED:
			return replayed();
		case STARTED:			/* D9: cancelled does not mean stopped */
		case USAGE_UNKNOWN:
			return refused("already_started", "");
		case SETTLED:
		case SETTLED_WITH_DEBT:
			return refused("settled", "");
		case EXPIRING:
		case EXPIRED:
			break;
	}
	return refused("expired", "");
}

static Answer
report_unknown(Naive *m, const Call *call)
{
	NaiveReservation *r = find(m, call->id);

	if (r == NULL)
		return unknown();
	if (r->operation == 0)
		return refused("not_started", "");
	if (call->by_caller && r->operation != call->operation)
		return conflict("operation");
	if (r->state == USAGE_UNKNOWN)
		return replayed();
	if (r->state != STARTED)
		return refused("settled", "");
	if (!call->by_caller && now(m) < r->expires)	/* D10: the execution TTL */
		return refused("not_due", "");
	r->state = USAGE_UNKNOWN;	/* the units stay reserved */
	return accepted();
}

/* not_a_hold is what the two halves of an expiry say of a row that is not theirs. */
static Answer
not_a_hold(const NaiveReservation *r)
{
	switch (r->state)
	{
		case STARTED:
		case USAGE_UNKNOWN:
			return refused("already_started", "");
		case SETTLED:
		case SETTLED_WITH_DEBT:
			return refused("settled", "");
		case RELEASED:
			return refused("released", "");
		case RESERVED:
		case EXPIRING:
		case EXPIRED:
			break;
	}
	return refused("expired", "");
}

static Answer
claim(Naive *m, const Call *call)
{
	NaiveReservation *r = find(m, call->id);

	if (r == NULL)
		return unknown();
	if (r->state == EXPIRING)
		return replayed();
	if (r->state != RESERVED)
		return not_a_hold(r);
	if (now(m) < r->expires)
		return refused("not_due", "");
	r->state = EXPIRING;		/* D14, first half: no balance moves */
	return accepted();
}

static Answer
finish(Naive *m, const Call *call)
{
	NaiveReservation *r = find(m, call->id);

	if (r == NULL)
		return unknown();
	roll_for(m, r);
	if (r->state == EXPIRED)
		return replayed();
	if (r->state == RESERVED)
		return refused("not_due", "");
	if (r->state != EXPIRING)
		return not_a_hold(r);
	r->state = EXPIRED;			/* D14, second half; also after a crash */
	give_back(m, r->budget, r->units);
	return accepted();
}

static Answer
resolve(Naive *m, const Call *call)
{
	if (find(m, call->id) != NULL)
		return replayed();
	m->reservation[m->reservations++] = (NaiveReservation) {	/* D11: a fence */
		.id = call->id,.budget = -1,.digest = call->digest,.excess_budget = -1,
		.expires = now(m),.state = RELEASED
	};
	return accepted();
}

static Answer
freeze(Naive *m)
{
	roll(m);
	if (m->frozen)
		return replayed();
	m->frozen = true;			/* D8: an operator's */
	return accepted();
}

static Answer
unfreeze(Naive *m)
{
	roll(m);
	if (!m->frozen)
		return replayed();
	if (debt(m) > 0)			/* D8: only once the debt is zero */
		return refused("debt", "");
	m->frozen = false;
	return accepted();
}

/* extension says why a reservation can't be extended now (D13). */
static Answer
extension(const Naive *m, const NaiveReservation *r, const Call *call)
{
	const Document *own;

	switch (r->state)
	{
		case RESERVED:
		case STARTED:
			break;
		case USAGE_UNKNOWN:
			return refused("already_started", "");
		case SETTLED:
		case SETTLED_WITH_DEBT:
			return refused("settled", "");
		case RELEASED:
			return refused("released", "");
		case EXPIRING:
		case EXPIRED:
			return refused("expired", "");
	}
	if (m->seen >= r->expires)	/* "before it runs out", sweep or no sweep */
		return refused("expired", "");
	own = &m->policy[m->budget[r->budget].policy];
	if (call->deadline != NO_LIMIT && call->deadline - m->seen >
		(r->state == STARTED ? own->execution_ttl : own->hold_ttl))
		return refused("ttl", "never");
	if (call->units > 0 && r->budget != m->budgets - 1)
		return refused("closed_budget", "never");
	return capacity(m, call->units, r->units + call->units);	/* "like a new reserve" */
}

static Answer
extend(Naive *m, const Call *call)
{
	NaiveReservation *r = find(m, call->id);
	const NaiveRecord *known = recorded(m, EXTEND, call->id, call->key);
	Answer		a;

	if (r == NULL)
		return unknown();
	roll_for(m, r);
	if (known != NULL)
		return known->units == call->units && known->deadline == call->deadline
			? replayed() : conflict("extension");
	a = extension(m, r, call);
	if (waits(&a))
	{
		claim_due(m);			/* D14 */
		finish_expiring(m);
		a = extension(m, r, call);
	}
	if (strcmp(a.outcome, "ACCEPTED") != 0)
		return a;
	m->budget[r->budget].available -= call->units;
	m->budget[r->budget].reserved += call->units;
	r->units += call->units;
	if (call->deadline != NO_LIMIT && call->deadline > r->expires)
		r->expires = call->deadline;
	m->record[m->records++] = (NaiveRecord) {
		.call = EXTEND,.id = call->id,.key = call->key,.units = call->units,
		.deadline = call->deadline
	};
	return a;
}

/* report_progress: D10, never falling; no balance moves. */
static Answer
report_progress(Naive *m, const Call *call)
{
	NaiveReservation *r = find(m, call->id);

	if (r == NULL)
		return unknown();
	if (r->operation == 0)
		return refused("not_started", "");
	if (r->operation != call->operation)
		return conflict("operation");
	if (r->state != STARTED && r->state != USAGE_UNKNOWN)
		return refused("settled", "");
	if (call->units <= r->progress)
		return replayed();
	r->progress = call->units;
	return accepted();
}

/* record_usage: D12, for what ran without a reservation. */
static Answer
record_usage(Naive *m, const Call *call)
{
	const NaiveRecord *known = recorded(m, RECORD_USAGE, 0, call->operation);

	roll(m);
	if (known != NULL)
		return known->units == call->units ? replayed() : conflict("figures");
	if (elsewhere(m, NULL, call->operation))
		return conflict("operation_elsewhere");
	exceed(m, call->units);
	if (call->units > policy_of_head(m)->hard_limit && !call->imported)	/* D8, B2 */
		m->frozen = true;
	m->record[m->records++] = (NaiveRecord) {
		.call = RECORD_USAGE,.key = call->operation,.units = call->units,.budget = m->budgets - 1
	};
	return accepted();
}

/* grant: E3, in its order: debt, deficit, available within the cap. */
static Answer
grant(Naive *m, const Call *call)
{
	const NaiveRecord *known = recorded(m, GRANT, 0, call->key);
	NaiveBudget *h;
	Number		left = call->units;
	Number		part;

	roll(m);
	if (known != NULL)
		return known->units == call->units ? replayed() : conflict("grant");
	h = head(m);
	left -= repay(m, left, &m->line[h->line].paid);
	part = smaller(left, h->deficit);
	h->deficit -= part;
	left -= part;
	part = smaller(left, policy_of_head(m)->cap - h->available);
	h->minted += part;
	h->available += part;
	left -= part;				/* what finds no room is not granted */
	m->line[h->line].allowance += (call->units - left) * PARTS;
	m->line[h->line].granted += call->units - left;
	m->record[m->records++] = (NaiveRecord) {
		.call = GRANT,.key = call->key,.units = call->units,.granted = call->units - left
	};
	return accepted();
}

/* ---- shards, at the ledger (G, B8) --------------------------------------- */

/* in_shards: what gateways may still spend, or have not accounted for (G2). */
static Number
in_shards(const Naive *m)
{
	Number		sum = 0;

	for (int i = 0; i < m->shards; i++)
		if (!m->shard[i].legacy && !m->shard[i].settled)
			sum += m->shard[i].gateway.allocated;
	return sum;
}

/* unhealthy says why a pair gives no units away (G2). */
static Answer
unhealthy(const Naive *m, const Call *call)
{
	const Document *p = policy_of_head(m);
	Number		share = (Number) p->cap * p->share / 100;

	if (m->draining)
		return refused("draining", "");
	if (!call->legacy && share == 0)
		return refused("emergency_mode", "");
	if (m->frozen || m->route_frozen)
		return refused("frozen", "");
	if (call->units > p->cap)
		return refused("cap", "");
	if (!call->legacy && in_shards(m) + call->units > share)
		return refused("emergency_share", "");
	if (debt(m) > 0)
		return refused("debt", "");
	return call->units > const_head(m)->available ? refused("available", "") : accepted();
}

static Answer
issue(Naive *m, const Call *call)
{
	NaiveShard *s = naive_shard(m, call->shard);
	Answer		a;

	roll(m);
	if (s != NULL)
		return s->gateway.allocated == call->units && s->legacy == call->legacy
			? replayed() : conflict("shard");
	a = unhealthy(m, call);
	if (strcmp(a.outcome, "ACCEPTED") != 0)
		return a;
	head(m)->available -= call->units;
	head(m)->retired += call->units;
	s = &m->shard[m->shards++];
	*s = (NaiveShard) {
		.id = call->shard,.budget = m->budgets - 1,.legacy = call->legacy,.seen = m->clock,
		.expires = m->seen + policy_of_head(m)->shard_ttl,
		.gateway = {.allocated = call->units,.available = call->units}
	};
	s->last = s->gateway;
	return a;
}

/* book takes in figures and receipts that were found in order (G6, D7, D8). */
static void
book(Naive *m, NaiveShard *s, const NaiveFigures *f, Number largest, NaiveRecord *record)
{
	Number		more = f->excess - s->last.excess;

	s->last = *f;
	record->units = more;
	record->budget = m->budgets - 1;
	if (more > 0)				/* D7: like any usage, once */
		exceed(m, more);
	s->booked += more;
	m->strained = m->strained || !fits(m);
	if ((f->sealed || s->legacy) && s->receipted == f->spent + f->excess && !s->written_off)
	{
		more = f->retired - s->confirmed;
		s->confirmed += more;	/* proven unused */
		if (more > 0 && m->budget[s->budget].line == head(m)->line)
			s->reminted += remint(m, more);
	}
	if (largest > m->policy[m->budget[s->budget].policy].hard_limit)
		m->frozen = true;		/* D8 */
	if (f->available == 0 && f->reserved == 0 && s->confirmed == f->retired &&
		s->receipted == f->spent + f->excess)
		s->settled = true;
	m->record[m->records++] = *record;
}

static Answer
reconcile(Naive *m, const Call *call)
{
	NaiveShard *s = naive_shard(m, call->shard);
	NaiveReport *report = naive_report(m, call->shard, call->key);
	const Figures *c = &call->figures;
	NaiveFigures f = {
		c->allocated, c->available, c->reserved, c->spent, c->retired, c->excess, c->sealed
	};
	NaiveRecord record = {.call = RECONCILE,.id = call->shard,.key = call->key};
	Number		largest = 0;
	Number		sum = 0;

	if (s == NULL || s->legacy)
		return (Answer) {.outcome = "UNKNOWN",.dimension = "emergency_shard",.wait_kind = ""};
	roll(m);
	if (call->key <= s->reconciled)
		return memcmp(&report->booked, c, sizeof(*c)) == 0 ? replayed() : conflict("report");
	if (call->key != s->reconciled + 1)
		return refused("sequence", "");
	for (int i = 0; i < m->items; i++)
		if (m->item[i].shard == s->id && m->item[i].report == call->key)
		{
			sum += m->item[i].actual;
			largest = m->item[i].actual > largest ? m->item[i].actual : largest;
		}
	m->strained = m->strained || sum > LARGEST || s->receipted + sum > LARGEST ||
		f.spent + f.excess > LARGEST;
	if (f.allocated != s->gateway.allocated || f.available < 0 || f.reserved < 0 || f.spent < 0 ||
		f.retired < 0 || f.excess < 0 || (f.sealed && f.available > 0) ||
		f.allocated != f.available + f.reserved + f.spent + f.retired)
		return refused("conservation", "");
	if (f.spent < s->last.spent || f.retired < s->last.retired || f.excess < s->last.excess ||
		f.sealed < s->last.sealed)
		return refused("falls", "");
	if (s->receipted + sum > f.spent + f.excess)
		return refused("receipts", "");
	s->receipted += sum;
	s->reconciled = call->key;
	s->lied = s->lied || memcmp(&report->cut, c, sizeof(*c)) != 0;
	report->taken = true;
	report->booked = *c;
	book(m, s, &f, largest, &record);
	return accepted();
}

/* legacy_receipt: an operation takes what it had reserved; the rest stays retired (B8). */
static Answer
legacy_receipt(Naive *m, const Call *call)
{
	NaiveShard *s = naive_shard(m, call->shard);
	const NaiveRecord *known = recorded(m, LEGACY_RECEIPT, call->shard, call->operation);
	NaiveRecord record = {.call = LEGACY_RECEIPT,.id = call->shard,.key = call->operation};
	NaiveFigures f;
	Number		took;
	Number		within;

	if (s == NULL || !s->legacy)
		return (Answer) {.outcome = "UNKNOWN",.dimension = "emergency_shard",.wait_kind = ""};
	roll(m);
	if (known != NULL)
		return known->granted == call->units && known->reserved == call->reserved
			? replayed() : conflict("figures");
	f = s->last;
	took = smaller(call->reserved, f.available);	/* no more is there */
	within = smaller(call->units, took);
	f.available -= took;
	f.spent += within;
	f.retired += took - within;
	f.excess += call->units - within;
	s->receipted += call->units;
	s->reconciled++;
	record.reserved = call->reserved;
	record.granted = call->units;
	book(m, s, &f, call->units, &record);
	return accepted();
}

/* write_off gives a shard up: its units stay retired (G6). */
static Answer
write_off(Naive *m, const Call *call)
{
	NaiveShard *s = naive_shard(m, call->shard);

	roll(m);
	if (s->settled)
		return replayed();
	s->written_off = s->settled = true;
	return accepted();
}

static Answer
publish(Naive *m, const Call *call)
{
	m->policy[m->policies] = call->document;
	m->since[m->policies++] = m->clock; /* B5: the pair moves at its next call */
	return accepted();
}

static Answer
decide(Naive *m, const Call *call)
{
	switch (call->name)
	{
		case RESERVE:
			return reserve(m, call);
		case START:
			return start(m, call);
		case SETTLE:
			return settle(m, call);
		case RELEASE:
			return release(m, call);
		case REPORT_UNKNOWN:
			return report_unknown(m, call);
		case CLAIM:
			return claim(m, call);
		case FINISH:
			return finish(m, call);
		case RESOLVE:
			return resolve(m, call);
		case REPAY:				/* E3: driven by the worker */
			roll(m);
			return accepted();
		case UNFREEZE:
			return unfreeze(m);
		case FREEZE:
			return freeze(m);
		case DRAIN:				/* B6 */
			m->draining = true;
			return accepted();
		case FREEZE_ROUTE:		/* D8 */
		case UNFREEZE_ROUTE:
			m->route_frozen = call->name == FREEZE_ROUTE;
			return accepted();
		case PUBLISH:
			return publish(m, call);
		case EXTEND:
			return extend(m, call);
		case REPORT_PROGRESS:
			return report_progress(m, call);
		case RECORD_USAGE:
			return record_usage(m, call);
		case GRANT:
			return grant(m, call);
		case ISSUE:
			return issue(m, call);
		case RECONCILE:
			return reconcile(m, call);
		case WRITE_OFF:
			return write_off(m, call);
		case LEGACY_RECEIPT:
			return legacy_receipt(m, call);
		case GATEWAY_RESERVE:
		case GATEWAY_SETTLE:
		case GATEWAY_RELEASE:
		case GATEWAY_EXPIRE:
		case GATEWAY_SEAL:
		case GATEWAY_BOOT:
		case REPORT:
			return naive_gateway_call(m, call);
	}
	return unknown();
}

void
naive_open(Naive *m, const Document *policy, int64_t clock)
{
	m->clock = m->seen = m->at = clock;
	m->remainder = m->paid_unopened = 0;
	m->frozen = m->draining = m->route_frozen = m->wrote = m->strained = m->capped = false;
	m->policies = 1;
	m->in_force = m->budgets = m->reservations = m->records = 0;
	m->shards = m->items = m->reports = 0;
	m->policy[0] = *policy;
	m->since[0] = clock;
	/* B2: at the cap */
	open_budget(m, 0, policy->cap, new_line(m, policy->cap), policy->kind == WINDOW);
}

Answer
naive_call(Naive *m, Naive *before, const Call *call)
{
	Answer		a;

	m->wrote = m->strained = m->capped = false;
	copy(before, m);
	a = decide(m, call);
	a.strained = m->strained || !fits(m);
	a.capped = m->capped;
	a.wrote = m->wrote || (strcmp(a.outcome, "ACCEPTED") == 0 && !a.replayed);
	if (a.wrote && !fits(m))
	{
		a.outcome = a.dimension = a.wait_kind = "";
		a.overflow = true;
		a.wrote = a.replayed = false;
		a.wait = 0;
	}
	if (!a.wrote || a.overflow)
		copy(m, before);		/* D3, D6, A2: no row is written */
	return a;
}

void
naive_undo(Naive *m, const Naive *before)
{
	copy(m, before);
}

int64_t
naive_ticks_until_full(const Naive *m)
{
	const Document *p = policy_of_head(m);

	if (p->kind == NONE)
		return debt(m) == 0 && const_head(m)->available == p->cap ? 0 : -1;
	return (int64_t) (ticks_until(m, p->cap) + m->clock - m->at);
}

/* ---- the rules, after each step ------------------------------------------ */

#define RULE(holds, name)	do { if (!(holds)) return name; } while (0)

/* check_budgets: C1 and its signs, C3, C4, E2 and what B5 says of each opening. */
static const char *
check_budgets(const Naive *m, const Naive *before)
{
	for (int i = 0; i < m->budgets; i++)
	{
		const NaiveBudget *b = &m->budget[i];
		const NaiveBudget *was = i < before->budgets ? &before->budget[i] : b;
		const NaiveBudget *last = i > 0 ? b - 1 : NULL;

		RULE(b->opening + b->minted + b->issued ==
			 b->available + b->reserved + b->spent + b->retired + b->repaid, "C1");
		RULE(b->opening >= 0 && b->minted >= 0 && b->issued >= 0 && b->available >= 0 &&
			 b->reserved >= 0 && b->spent >= 0 && b->retired >= 0 && b->repaid >= 0, "C1 signs");
		RULE(b->issued >= b->repaid && b->burned >= 0 && b->deficit >= 0, "signs");
		RULE(b->opening == was->opening && b->carried == was->carried &&
			 b->epoch == was->epoch && b->policy == was->policy && b->line == was->line,
			 "C3 fixed while the budget lives");
		RULE(b->spent >= was->spent && b->issued >= was->issued && b->repaid >= was->repaid &&
			 b->retired >= was->retired && b->burned >= was->burned, "C3 never falls");
		RULE(i >= before->budgets - 1 ||
			 (b->available >= was->available && b->minted >= was->minted &&
			  b->issued == was->issued && b->deficit == was->deficit),
			 "B5 a closed budget never opens again");
		RULE(b->opening <= b->carried && b->carried <= m->policy[b->policy].cap, "B5 opening");
		if (last == NULL)
			continue;
		for (int j = i >= before->budgets ? 0 : i; j < i; j++)
			RULE(m->budget[j].policy != b->policy || m->budget[j].epoch < b->epoch,
				 "B5 one budget an epoch and generation");
		if (b->line == last->line)
		{
			Number		most = last->closing;

			if (b->whole)
				most += m->policy[b->policy].cap - (Number) m->policy[last->policy].cap;
			RULE(b->carried <= (most > 0 ? most : 0), "B5 carry");
		}
		else
			RULE(b->line == last->line + 1 && b->carried == m->policy[b->policy].cap &&
				 m->policy[b->policy].kind == WINDOW && b->policy == last->policy &&
				 b->epoch > last->epoch, "B5 new window");
	}
	return NULL;
}

static bool
holds(NaiveState s)
{
	return s == RESERVED || s == EXPIRING || s == STARTED || s == USAGE_UNKNOWN;
}

/* moves tells whether a stored state may follow another (D1). */
static bool
moves(NaiveState from, NaiveState to)
{
	return from == to
		|| (from == RESERVED && (to == STARTED || to == RELEASED || to == EXPIRING))
		|| (from == STARTED && (to == USAGE_UNKNOWN || to == SETTLED || to == SETTLED_WITH_DEBT))
		|| (from == USAGE_UNKNOWN && (to == SETTLED || to == SETTLED_WITH_DEBT))
		|| (from == EXPIRING && to == EXPIRED);
}

/* check_reservations: C2, C3, D1, and what only its own call may change (D10, D13). */
static const char *
check_reservations(const Naive *m, const Naive *before, const Call *call)
{
	bool		ends_holds = call->name == RESERVE || call->name == EXTEND;
	Number		held[BUDGETS_MAX];
	Number		spent[BUDGETS_MAX];
	Number		issued[BUDGETS_MAX];

	memset(held, 0, sizeof(held[0]) * (size_t) m->budgets);
	memset(spent, 0, sizeof(spent[0]) * (size_t) m->budgets);
	memset(issued, 0, sizeof(issued[0]) * (size_t) m->budgets);
	for (int i = 0; i < m->reservations; i++)
	{
		const NaiveReservation *r = &m->reservation[i];
		const NaiveReservation *was = i < before->reservations ? &before->reservation[i] : NULL;

		if (r->budget >= 0 && holds(r->state))
			held[r->budget] += r->units;
		if (r->state == SETTLED || r->state == SETTLED_WITH_DEBT)
		{
			spent[r->budget] += smaller(r->actual, r->units);
			if (r->excess > 0)
				spent[r->excess_budget] += r->excess;
		}
		if (was == NULL)
			continue;
		/* A due hold is claimed and finished within one reserve or extend (D14). */
		RULE(moves(was->state, r->state) ||
			 (ends_holds && was->state == RESERVED && r->state == EXPIRED), "D1 transition");
		RULE(r->id == was->id && r->budget == was->budget && r->asked == was->asked &&
			 r->digest == was->digest && (was->operation == 0 || r->operation == was->operation),
			 "C3 identity");
		RULE(holds(was->state) || memcmp(r, was, sizeof(*r)) == 0, "C3 terminal");
		RULE(r->units == was->units || (call->name == EXTEND && call->id == r->id &&
										r->units == was->units + call->units), "D13 units");
		RULE(r->expires == was->expires || (call->name == START && call->id == r->id) ||
			 (call->name == EXTEND && call->id == r->id && r->expires == call->deadline &&
			  r->expires > was->expires), "D13 deadline");
		RULE(r->progress == was->progress ||
			 (call->name == REPORT_PROGRESS && call->id == r->id && r->progress > was->progress),
			 "D10 progress never falls");
		RULE(r->state == was->state || !call->attested || r->actual >= r->progress,
			 "D10 attested below the progress");
	}
	for (int i = 0; i < m->records; i++)
	{
		if (m->record[i].call == RECORD_USAGE || m->record[i].call == RECONCILE ||
			m->record[i].call == LEGACY_RECEIPT)
			spent[m->record[i].budget] += m->record[i].units;
		RULE(i >= before->records ||
			 memcmp(&m->record[i], &before->record[i], sizeof(m->record[i])) == 0,
			 "D12, D13, E3 recorded once");
		RULE(m->record[i].call != GRANT || m->record[i].granted <= m->record[i].units, "E3 granted");
	}
	for (int i = 0; i < m->shards; i++)
		issued[m->shard[i].budget] += m->shard[i].gateway.allocated;
	for (int i = 0; i < m->budgets; i++)
	{
		RULE(m->budget[i].retired == issued[i], "G2 retired");
		RULE(m->budget[i].reserved == held[i], "C2 reserved");
		RULE(m->budget[i].spent == spent[i], "C2 spent");
	}
	return NULL;
}

/* check_operations: an operation that this call bound stands for one thing (D5, D12). */
static const char *
check_operations(const Naive *m, const Call *call)
{
	int			bound = recorded(m, RECORD_USAGE, 0, call->operation) != NULL;

	for (int i = 0; i < m->reservations; i++)
		bound += m->reservation[i].operation == call->operation;
	RULE(call->operation == 0 || bound <= 1, "D12 one operation, two things");
	return NULL;
}

/* check_operator: what opens a frozen pair, and calls that move no balance (D5, D8, D10). */
static const char *
check_operator(const Naive *m, const Naive *before, const Call *call)
{
	bool		moves_none = call->name == START || call->name == REPORT_PROGRESS ||
		call->name == REPORT_UNKNOWN || call->name == CLAIM || call->name == RESOLVE ||
		call->name >= GATEWAY_RESERVE;

	RULE(!before->frozen || m->frozen || (call->name == UNFREEZE && debt(m) == 0), "D8 unfreeze");
	RULE(!moves_none || (m->budgets == before->budgets &&
						 memcmp(m->budget, before->budget,
								sizeof(m->budget[0]) * (size_t) m->budgets) == 0),
		 "D5, D10, G4 a balance moved");
	return NULL;
}

/*
 * check_bound: carry-over is never free capacity (B5).  For each line, what its
 * budgets have spent less the overdraft, hold, have in shards and not confirmed
 * unused, and what the line has paid to debts, and what the head can still spend less its deficit, is at most what
 * the line opened with + elapsed time * rate + changes of quota + grants.
 */
static const char *
check_bound(const Naive *m)
{
	const NaiveBudget *h = const_head(m);
	Number		confirmed[BUDGETS_MAX];
	Number		repaid = 0;
	Number		paid = m->paid_unopened;
	Number		used = 0;

	memset(confirmed, 0, sizeof(confirmed[0]) * (size_t) m->budgets);
	for (int i = 0; i < m->shards; i++)
		confirmed[m->shard[i].budget] += m->shard[i].confirmed;
	for (int i = 0; i < m->budgets; i++)
	{
		const NaiveBudget *b = &m->budget[i];
		bool		ends = b == h || b[1].line != b->line;

		repaid += b->repaid;
		used += b->spent - b->issued + b->reserved + b->retired - confirmed[i];
		if (!ends)
			continue;
		used += m->line[b->line].paid - b->deficit + (b == h ? b->available : 0);
		RULE(used * PARTS <= m->line[b->line].allowance, "B5 bound");
		RULE(b != h || !h->whole || used <= policy_of_head(m)->cap + m->line[b->line].granted,
			 "B5 window");
		paid += m->line[b->line].paid;
		used = 0;
	}
	RULE(repaid == paid, "E2 each repayment has one source");
	return NULL;
}

const char *
naive_check(const Naive *m, const Naive *before, const Call *call, const Answer *answer)
{
	const NaiveBudget *h = const_head(m);
	const char *broken = check_budgets(m, before);

	if (broken == NULL)
		broken = check_reservations(m, before, call);
	if (broken == NULL)
		broken = check_operations(m, call);
	if (broken == NULL)
		broken = check_operator(m, before, call);
	if (broken == NULL)
		broken = check_bound(m);
	if (broken == NULL)
		broken = naive_check_shards(m, before, call);
	if (broken != NULL)
		return broken;
	RULE(h->available <= policy_of_head(m)->cap, "C4 cap");
	RULE(debt(m) == 0 || h->available == 0, "E2 debt leaves nothing available");
	RULE(h->deficit == 0 || (h->whole && h->available == 0 && h->reserved == 0), "B5 deficit");
	RULE(m->seen >= before->seen && m->at >= before->at, "A3");
	RULE(m->at <= m->seen, "A3 refill ahead of the clock");
	if ((call->name == RESERVE || call->name == EXTEND) && answer->wrote && !answer->overflow &&
		strcmp(answer->outcome, "ACCEPTED") == 0 && !answer->replayed)
		RULE(debt(m) == 0 && !m->frozen && !m->route_frozen && !m->draining &&
			 outstanding(m) <= policy_of_head(m)->outstanding, "E1");
	RULE(strcmp(answer->wait_kind, "refill") != 0 || answer->wait > 0, "D4 wait");
	return NULL;
}

/* ---- for comparison ------------------------------------------------------ */

void
naive_show_pair(const Naive *m, PairView *view)
{
	const NaiveBudget *h = const_head(m);

	*view = (PairView) {
		.budgets = m->budgets,.reservations = m->reservations,.records = m->records,
		.shards = m->shards,.items = m->items,.reports = m->reports,
		.debt = (int64_t) debt(m),
		.older_debt = (int64_t) (debt(m) - (h->issued - h->repaid)),
		.older_reserved = (int64_t) (outstanding(m) - h->reserved),.older_repaid = 0,
		.seen_at = (int64_t) m->seen,.accrued_at = (int64_t) m->at,
		.remainder = (int64_t) m->remainder,.frozen = m->frozen,.draining = m->draining,
		.route_frozen = m->route_frozen,
		.pending = m->policies - 1 - m->in_force
	};
}

void
naive_show_budget(const Naive *m, int index, BudgetView *view)
{
	const NaiveBudget *b = &m->budget[index];

	*view = (BudgetView) {
		.generation = m->policy[b->policy].generation,.epoch = (int64_t) b->epoch,
		.opening = (int64_t) b->opening,.minted = (int64_t) b->minted,
		.overdraft_issued = (int64_t) b->issued,.available = (int64_t) b->available,
		.reserved = (int64_t) b->reserved,.spent = (int64_t) b->spent,
		.retired_for_emergency = (int64_t) b->retired,.overdraft_repaid = (int64_t) b->repaid,
		.burned = (int64_t) b->burned,.carried = (int64_t) b->carried,
		.deficit = (int64_t) b->deficit,.purged_spent = 0,.line = b->line,.whole = b->whole
	};
}

void
naive_show_reservation(const Naive *m, int index, ReservationView *view)
{
	static const char *const names[NAIVE_STATES] = {
		"RESERVED", "STARTED", "USAGE_UNKNOWN", "EXPIRING",
		"SETTLED", "SETTLED_WITH_DEBT", "RELEASED", "EXPIRED"
	};
	const NaiveReservation *r = &m->reservation[index];

	*view = (ReservationView) {
		.id = r->id,.budget = r->budget,.asked = (int64_t) r->asked,.digest = r->digest,
		.operation = r->operation,.receipt = r->receipt,.reserved_units = (int64_t) r->units,
		.actual_units = (int64_t) r->actual,.excess_units = (int64_t) r->excess,
		.overdraft_units = (int64_t) r->overdraft,.progress_units = (int64_t) r->progress,
		.excess_budget = r->excess_budget,.expires_at = (int64_t) r->expires,
		.state = names[r->state]
	};
}

void
naive_show_record(const Naive *m, int index, RecordView *view)
{
	const NaiveRecord *record = &m->record[index];

#define FIELD(name)	view->name = (int64_t) record->name;
	RECORD_FIELDS(FIELD)
#undef FIELD
}
