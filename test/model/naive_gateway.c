/*
 * naive_gateway.c
 *	  The naive model's gateway, and what must hold of shards on both sides.  See
 *	  naive.h.
 */
#include "naive.h"

#include <string.h>

#include "naive_answer.h"

static Number
smaller(Number a, Number b)
{
	return a < b ? a : b;
}

NaiveShard *
naive_shard(Naive *m, int id)
{
	for (int i = 0; i < m->shards; i++)
		if (m->shard[i].id == id)
			return &m->shard[i];
	return NULL;
}

NaiveReport *
naive_report(Naive *m, int shard, int number)
{
	for (int i = 0; i < m->reports; i++)
		if (m->report[i].shard == shard && m->report[i].number == number)
			return &m->report[i];
	return NULL;
}

Figures
naive_figures(const NaiveFigures *f)
{
	return (Figures) {
		.allocated = (int64_t) f->allocated,.available = (int64_t) f->available,
		.reserved = (int64_t) f->reserved,.spent = (int64_t) f->spent,
		.retired = (int64_t) f->retired,.excess = (int64_t) f->excess,.sealed = f->sealed
	};
}

static NaiveItem *
find(Naive *m, int id)
{
	for (int i = 0; i < m->items; i++)
		if (m->item[i].id == id)
			return &m->item[i];
	return NULL;
}

/* elsewhere tells whether the gateway knows an operation of something else (D5). */
static bool
elsewhere(const Naive *m, const NaiveItem *item, int operation)
{
	for (int i = 0; i < m->items; i++)
		if (&m->item[i] != item && m->item[i].operation == operation)
			return true;
	return false;
}

static Number
now(const Naive *m, const NaiveShard *s)
{
	return m->clock > s->seen ? m->clock : s->seen;
}

/* give_back: what leaves a sealed shard never comes back to it (G6). */
static void
give_back(NaiveShard *s, Number units)
{
	s->gateway.reserved -= units;
	if (s->gateway.sealed)
		s->gateway.retired += units;
	else
		s->gateway.available += units;
}

static void
seal(NaiveShard *s)
{
	s->gateway.retired += s->gateway.available;
	s->gateway.available = 0;
	s->gateway.sealed = true;
}

/* why_not says why a shard gives no units (G4, E1, D9). */
static Answer
why_not(const Naive *m, const NaiveShard *s, const Call *call)
{
	const NaiveFigures *g = &s->gateway;

	if (call->deadline != NO_LIMIT && now(m, s) >= call->deadline)
		return refused("deadline", "never");
	if (call->units > m->policy[m->budget[s->budget].policy].largest)
		return refused("largest_reservation", "never");
	if (g->excess > 0)
		return refused("excess", "operator");
	if (g->sealed)
		return refused("sealed", "operator");
	if (now(m, s) >= s->expires)
		return refused("shard_expired", "operator");
	if (call->units > g->available + g->reserved)	/* no release can bring as many */
		return refused("available", "operator");
	return call->units > g->available ? refused("available", "release") : accepted();
}

static Answer
reserve(Naive *m, const Call *call)
{
	NaiveShard *s = naive_shard(m, call->shard);
	const Document *p = &m->policy[m->budget[s->budget].policy];
	Answer		a = why_not(m, s, call);

	if (call->operation != 0 && elsewhere(m, NULL, call->operation))
		return conflict("operation_elsewhere");
	if (strcmp(a.outcome, "ACCEPTED") != 0)
		return a;
	s->seen = now(m, s);
	s->gateway.available -= call->units;
	s->gateway.reserved += call->units;
	m->item[m->items++] = (NaiveItem) {
		.id = call->id,.shard = call->shard,.units = call->units,
		.operation = call->operation,.state = call->operation != 0 ? STARTED : RESERVED,
		/* G4: no hold outlives its shard, an execution may */
		.expires = call->operation != 0 ? s->seen + p->execution_ttl
			: smaller(s->seen + p->hold_ttl, s->expires)
	};
	return a;
}

static Answer
settle(Naive *m, const Call *call)
{
	NaiveItem  *item = find(m, call->id);
	NaiveShard *s;
	Number		own;
	Number		covered;

	if (item == NULL)
		return unknown();
	if (item->operation == 0 && item->state != USAGE_UNKNOWN)
		return refused("not_started", "");
	if (item->operation == 0 && elsewhere(m, item, call->operation))
		return conflict("operation_elsewhere");
	if (item->operation != 0 && item->operation != call->operation)
		return conflict("operation");
	if (item->state == SETTLED || item->state == SETTLED_WITH_DEBT)
		return item->actual == call->units && item->receipt == call->digest
			? replayed() : conflict("figures");
	s = naive_shard(m, item->shard);
	s->seen = now(m, s);
	own = smaller(call->units, item->units);
	give_back(s, item->units - own);
	item->excess = call->units - own;
	covered = smaller(item->excess, s->gateway.available);	/* D7: available first */
	item->overdraft = item->excess - covered;
	s->gateway.reserved -= own;
	s->gateway.available -= covered;
	s->gateway.spent += own + covered;
	s->gateway.excess += item->overdraft;
	item->operation = call->operation;	/* G5: the receipt binds what a boot left */
	item->actual = call->units;
	item->receipt = call->digest;
	item->state = item->overdraft > 0 ? SETTLED_WITH_DEBT : SETTLED;
	return accepted();
}

/* ended is what release and expire say of an item that is no hold. */
static Answer
ended(const NaiveItem *item)
{
	switch (item->state)
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

/* end is release and expire (D9, D14). */
static Answer
end(Naive *m, const Call *call)
{
	NaiveItem  *item = find(m, call->id);
	bool		release = call->name == GATEWAY_RELEASE;
	NaiveShard *s;

	if (item == NULL)
		return unknown();
	s = naive_shard(m, item->shard);
	if (release && item->state == RELEASED)
		return replayed();
	if (item->state != RESERVED)
		return ended(item);
	if (!release && now(m, s) < item->expires)
		return refused("not_due", "");
	s->seen = now(m, s);
	item->state = release ? RELEASED : EXPIRED;
	give_back(s, item->units);
	return accepted();
}

/* boot: nobody can tell what ran, and nothing more is spent (G5). */
static Answer
boot(Naive *m)
{
	for (int i = 0; i < m->shards; i++)
		if (!m->shard[i].legacy)
		{
			m->shard[i].seen = now(m, &m->shard[i]);
			seal(&m->shard[i]);
		}
	for (int i = 0; i < m->items; i++)
		if (m->item[i].state == RESERVED || m->item[i].state == STARTED)
			m->item[i].state = USAGE_UNKNOWN;
	return accepted();
}

/* report cuts the next one: the figures, and receipts that none has carried (G6). */
static Answer
report(Naive *m, const Call *call)
{
	NaiveShard *s = naive_shard(m, call->shard);
	int			left = call->receipts;

	s->cut++;
	m->report[m->reports++] = (NaiveReport) {
		.shard = s->id,.number = s->cut,.cut = naive_figures(&s->gateway)
	};
	for (int i = 0; i < m->items && left > 0; i++)
	{
		NaiveItem  *item = &m->item[i];

		if (item->shard != s->id || item->report != 0 ||
			(item->state != SETTLED && item->state != SETTLED_WITH_DEBT))
			continue;
		item->report = s->cut;
		left--;
	}
	return accepted();
}

Answer
naive_gateway_call(Naive *m, const Call *call)
{
	NaiveShard *s = naive_shard(m, call->shard);

	if (call->name == GATEWAY_RESERVE)
		return reserve(m, call);
	if (call->name == GATEWAY_SETTLE)
		return settle(m, call);
	if (call->name == GATEWAY_RELEASE || call->name == GATEWAY_EXPIRE)
		return end(m, call);
	if (call->name == GATEWAY_BOOT)
		return boot(m);
	if (call->name == REPORT)
		return report(m, call);
	if (s->gateway.sealed)
		return replayed();
	s->seen = now(m, s);
	seal(s);
	return accepted();
}

/* ---- the rules, after each step ------------------------------------------ */

#define RULE(holds, name)	do { if (!(holds)) return name; } while (0)

/* equation is G1, of either side. */
static bool
equation(const NaiveFigures *f)
{
	return f->allocated == f->available + f->reserved + f->spent + f->retired &&
		f->available >= 0 && f->reserved >= 0 && f->spent >= 0 && f->retired >= 0 &&
		f->excess >= 0 && (!f->sealed || f->available == 0);
}

/* falls tells whether something fell that never falls (G6). */
static bool
falls(const NaiveFigures *f, const NaiveFigures *was)
{
	return f->allocated != was->allocated || f->spent < was->spent || f->retired < was->retired ||
		f->excess < was->excess || (was->sealed && !f->sealed);
}

static bool
same(const NaiveFigures *a, const NaiveFigures *b)
{
	return !falls(a, b) && !falls(b, a) && a->available == b->available && a->reserved == b->reserved;
}

/* check_items: what is held against a shard adds up to its figures (C2, G1, G4). */
static const char *
check_items(const Naive *m, const Naive *before, const NaiveShard *s)
{
	Number		reserved = 0;
	Number		used = 0;
	Number		known = 0;

	for (int i = 0; i < m->items; i++)
	{
		const NaiveItem *item = &m->item[i];
		const NaiveItem *was = i < before->items ? &before->item[i] : item;
		bool		settled = item->state == SETTLED || item->state == SETTLED_WITH_DEBT;

		if (item->shard != s->id)
			continue;
		if (item->state == RESERVED || item->state == STARTED || item->state == USAGE_UNKNOWN)
			reserved += item->units;
		used += settled ? item->actual : 0;
		known += settled && item->report > 0 && item->report <= s->reconciled ? item->actual : 0;
		RULE(item->state != RESERVED || item->expires <= s->expires, "G4 a hold outlives its shard");
		RULE(item->state != EXPIRING, "G4 expires in one step");
		RULE(was->report == 0 || item->report == was->report, "G6 a receipt in two reports");
		RULE(was->operation == 0 || item->operation == was->operation, "G5 operation");
	}
	RULE(s->gateway.reserved == reserved, "G1 reserved");
	RULE(s->gateway.spent + s->gateway.excess == used, "G1 spent");
	RULE(s->legacy || s->receipted == known, "G6 receipted");
	return NULL;
}

/* check_confirmed: nothing comes back that can still be used, or that was given up (G6). */
static const char *
check_confirmed(const NaiveShard *s, const NaiveShard *was)
{
	const NaiveFigures *g = &s->gateway;
	const NaiveFigures *l = &s->last;

	RULE(s->reminted >= was->reminted && s->confirmed >= was->confirmed &&
		 s->receipted >= was->receipted, "G6 never falls");
	RULE(s->reminted <= s->confirmed && s->confirmed <= l->retired &&
		 l->retired <= s->gateway.allocated - l->spent, "G6 confirmed");
	RULE(s->reminted - was->reminted <= s->confirmed - was->confirmed, "G6 reminted");
	RULE(s->confirmed == 0 || l->sealed || s->legacy, "G6 the seal");
	RULE(s->confirmed == was->confirmed || s->receipted == l->spent + l->excess, "G6 receipts");
	RULE(!was->written_off || s->confirmed == was->confirmed, "G6 a write-off comes back");
	RULE(s->booked == l->excess, "D7 excess, once");
	RULE(s->receipted <= l->spent + l->excess, "G6 less used than the receipts say");
	if (s->legacy || s->lied)
		return NULL;
	RULE(s->confirmed <= g->allocated - g->spent - g->reserved - g->available,
		 "G6 what the gateway can still use");
	RULE(s->booked <= g->excess, "D7 excess that nobody used");
	RULE(!falls(g, l), "G6 a report is ahead of its gateway");
	return NULL;
}

const char *
naive_check_shards(const Naive *m, const Naive *before, const Call *call)
{
	bool		gateway = call->name >= GATEWAY_RESERVE;

	for (int i = 0; i < m->shards; i++)
	{
		const NaiveShard *s = &m->shard[i];
		const NaiveShard *was = i < before->shards ? &before->shard[i] : s;
		const char *broken;

		RULE(equation(&s->gateway) && equation(&s->last), "G1");
		RULE(!falls(&s->gateway, &was->gateway) && !falls(&s->last, &was->last), "G6 falls");
		RULE(!gateway || same(&s->last, &was->last), "G4 a gateway at the ledger");
		RULE(gateway || same(&s->gateway, &was->gateway), "G4 the ledger at a gateway");
		RULE(s->settled || !was->settled, "G6 settled");
		RULE(s->seen >= was->seen, "A3 of a shard");
		broken = check_items(m, before, s);
		if (broken == NULL)
			broken = check_confirmed(s, was);
		if (broken != NULL)
			return broken;
	}
	return NULL;
}

/* ---- for comparison ------------------------------------------------------ */

void
naive_show_shard(const Naive *m, int index, ShardView *view)
{
	const NaiveShard *s = &m->shard[index];

	*view = (ShardView) {
		.id = s->id,.budget = s->budget,.legacy = s->legacy,.seen_at = (int64_t) s->seen,
		.expires_at = (int64_t) s->expires,.cut = s->cut,.reconciled = s->reconciled,
		.receipted = (int64_t) s->receipted,.confirmed = (int64_t) s->confirmed,
		.reminted = (int64_t) s->reminted,.written_off = s->written_off,.settled = s->settled,
		.gateway = naive_figures(&s->gateway),.last = naive_figures(&s->last)
	};
}

void
naive_show_item(const Naive *m, int index, ItemView *view)
{
	static const char *const names[NAIVE_STATES] = {
		"RESERVED", "STARTED", "USAGE_UNKNOWN", "EXPIRING",
		"SETTLED", "SETTLED_WITH_DEBT", "RELEASED", "EXPIRED"
	};
	const NaiveItem *item = &m->item[index];

	*view = (ItemView) {
		.id = item->id,.shard = item->shard,.operation = item->operation,
		.receipt = item->receipt,.report = item->report,.reserved_units = (int64_t) item->units,
		.actual_units = (int64_t) item->actual,.excess_units = (int64_t) item->excess,
		.overdraft_units = (int64_t) item->overdraft,.expires_at = (int64_t) item->expires,
		.state = names[item->state]
	};
}

void
naive_show_report(const Naive *m, int index, ReportView *view)
{
	const NaiveReport *r = &m->report[index];

	*view = (ReportView) {
		.shard = r->shard,.number = r->number,.taken = r->taken,.cut = r->cut,.booked = r->booked
	};
}
