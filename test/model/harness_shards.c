/*
 * harness_shards.c
 *	  The harness of shards: a ledger that issues and reconciles, and its gateway,
 *	  a database of its own.  See harness.h.
 *
 * Keeps numbers of reports, receipts and operations, as tables would; every
 * figure is the core's.
 */
#include "harness.h"

#include <string.h>

#include "core/arith.h"

static const LLVerdict overflow = {.outcome = LL_ACCEPTED,.overflow = true};

static LLVerdict
say(LLOutcome outcome, LLDimension dimension, bool replayed)
{
	return (LLVerdict) {.outcome = outcome,.dimension = dimension,.replayed = replayed};
}

static ShardRow *
find_shard(Ledger *l, int id)
{
	for (int i = 0; i < l->shards; i++)
		if (l->shard[i].id == id)
			return &l->shard[i];
	return NULL;
}

static ItemRow *
find_item(Ledger *l, int id)
{
	for (int i = 0; i < l->items; i++)
		if (l->item[i].id == id)
			return &l->item[i];
	return NULL;
}

static const LLPolicy *
policy_of(int64_t generation)
{
	int			i = 0;

	while (ledger_policy[i].policy.generation != generation)
		i++;
	return &ledger_policy[i].policy;
}

static Figures
figures_of(const LLShard *s)
{
	return (Figures) {
		.allocated = s->allocated,.available = s->available,.reserved = s->reserved,
		.spent = s->spent,.retired = s->retired,.excess = s->excess,.sealed = s->sealed
	};
}

/* ---- one decision of the core, and the bytes that it may touch ----------- */

typedef struct Touched
{
	LLPair		pair;
	LLIssuedShard issued;
	LLShard		gateway;
	LLReservation r;
} Touched;

static void
touch(Touched *t, const Ledger *l, const ShardRow *shard, const ItemRow *item)
{
	memset(t, 0, sizeof(*t));
	memcpy(&t->pair, &l->pair, sizeof(t->pair));
	if (shard != NULL)
	{
		memcpy(&t->issued, &shard->state, sizeof(t->issued));
		memcpy(&t->gateway, &shard->gateway, sizeof(t->gateway));
	}
	if (item != NULL)
		memcpy(&t->r, &item->r, sizeof(t->r));
}

/* took_effect: anything else has left every byte as it was. */
static bool
took_effect(Ledger *l, const ShardRow *shard, const ItemRow *item, const Touched *before,
			const LLVerdict *v)
{
	Touched		after;

	if (v->outcome == LL_ACCEPTED && !v->replayed && !v->overflow)
		return true;
	touch(&after, l, shard, item);
	if (memcmp(before, &after, sizeof(after)) != 0)
		l->broken = "changed by a call that took no effect";
	return false;
}

/* ---- at the ledger ------------------------------------------------------- */

static LLVerdict
issue(Ledger *l, const Call *call)
{
	const Frozen *f = &ledger_policy[l->in_force];
	const ShardRow *known = find_shard(l, call->shard);
	LLIssue		asked = {
		.units = call->units,.draining = l->draining,.route_frozen = l->route_frozen,
		.largest_share = call->legacy ? LL_UNITS_MAX
			: f->policy.cap / 100 * f->share + f->policy.cap % 100 * f->share / 100
	};
	Touched		before;
	LLVerdict	v;

	if (known != NULL)
		return known->state.last.allocated == call->units && known->state.legacy == call->legacy
			? say(LL_ACCEPTED, LL_DIM_NONE, true) : say(LL_CONFLICT, LL_DIM_SHARD, false);
	for (int i = 0; i < l->shards && !call->legacy; i++)
		if (!l->shard[i].state.legacy && !l->shard[i].settled)
			asked.outstanding = ll_add_capped(asked.outstanding, l->shard[i].state.last.allocated);
	touch(&before, l, NULL, NULL);
	v = ll_issue_shard(&l->pair, &f->policy, &asked);
	if (took_effect(l, NULL, NULL, &before, &v))
		l->shard[l->shards++] = (ShardRow) {
			.id = call->shard,.budget = l->closed_count,.generation = l->pair.head.generation,
			.seen_at = l->clock,.expires_at = l->pair.seen_at + f->shard_ttl,
			.state = {
				.last = {.allocated = call->units,.available = call->units},
				.line = l->pair.head.line,.legacy = call->legacy
			},
			.gateway = {.allocated = call->units,.available = call->units}
		};
	return v;
}

/* take_in puts figures to the core, and writes down what it did. */
static LLVerdict
take_in(Ledger *l, ShardRow *shard, const LLShard *figures, LLUnits receipted, LLUnits largest,
		Record record)
{
	bool		breach = largest > policy_of(shard->generation)->hard_limit;
	LLReconciled done = {0};
	Touched		before;
	LLVerdict	v;

	touch(&before, l, shard, NULL);
	v = ll_reconcile_shard(&l->pair, &ledger_policy[l->in_force].policy, &shard->state, figures,
						   receipted, breach, &done);
	if (!took_effect(l, shard, NULL, &before, &v))
		return v;
	shard->reconciled++;
	shard->settled = shard->settled || ll_shard_settled(&shard->state);
	record.units = done.excess;
	record.budget = l->closed_count;
	l->record[l->records++] = record;
	return v;
}

static LLVerdict
reconcile(Ledger *l, const Call *call)
{
	const Figures *f = &call->figures;
	ShardRow   *shard = find_shard(l, call->shard);
	LLShard		figures = {
		f->allocated, f->available, f->reserved, f->spent, f->retired, f->excess, f->sealed != 0
	};
	ReportRow  *report = l->report;
	LLUnits		sum = 0;
	LLUnits		largest = 0;
	LLVerdict	v;

	while (report->shard != call->shard || report->number != call->key)
		report++;
	if (call->key <= shard->reconciled)
		return memcmp(&report->booked, f, sizeof(*f)) == 0
			? say(LL_ACCEPTED, LL_DIM_NONE, true) : say(LL_CONFLICT, LL_DIM_REPORT, false);
	if (call->key != shard->reconciled + 1)
		return say(LL_REFUSED, LL_DIM_SEQUENCE, false);
	for (int i = 0; i < l->items; i++)
	{
		const ItemRow *item = &l->item[i];

		if (item->shard != call->shard || item->report != call->key)
			continue;
		if (!ll_add(&sum, item->r.actual_units))
			return overflow;
		largest = ll_max(largest, item->r.actual_units);
	}
	v = take_in(l, shard, &figures, sum, largest,
				(Record) {.call = RECONCILE,.id = call->shard,.key = call->key});
	if (v.outcome == LL_ACCEPTED && !v.overflow)
	{
		report->taken = true;
		report->booked = *f;
	}
	return v;
}

static LLVerdict
legacy_receipt(Ledger *l, const Call *call)
{
	ShardRow   *shard = find_shard(l, call->shard);
	LLShard		figures = shard->state.last;
	LLUnits		reserved = ll_min(call->reserved, figures.available);
	LLUnits		within = ll_min(call->units, reserved);

	for (int i = 0; i < l->records; i++)
	{
		const Record *known = &l->record[i];

		if (known->call == LEGACY_RECEIPT && known->id == call->shard &&
			known->key == call->operation)
			return known->granted == call->units && known->reserved == call->reserved
				? say(LL_ACCEPTED, LL_DIM_NONE, true) : say(LL_CONFLICT, LL_DIM_FIGURES, false);
	}
	figures.available -= reserved;
	figures.spent += within;
	figures.retired += reserved - within;
	if (!ll_add(&figures.excess, call->units - within))
		return overflow;
	return take_in(l, shard, &figures, call->units, call->units, (Record) {
		.call = LEGACY_RECEIPT,.id = call->shard,.key = call->operation,
		.reserved = call->reserved,.granted = call->units
	});
}

static LLVerdict
write_off(ShardRow *shard)
{
	LLVerdict	v = say(LL_ACCEPTED, LL_DIM_NONE, shard->settled);

	if (!shard->settled)
	{
		shard->state.written_off = true;
		shard->settled = ll_shard_settled(&shard->state);
	}
	return v;
}

bool
ledger_has_shard(Ledger *l, const Call *call)
{
	const ShardRow *shard = find_shard(l, call->shard);

	return call->name == ISSUE || (shard != NULL &&
								   (call->name == WRITE_OFF || shard->state.legacy ==
									(call->name == LEGACY_RECEIPT)));
}

LLVerdict
ledger_shard_call(Ledger *l, const Call *call)
{
	if (!ledger_has_shard(l, call))
		return say(LL_UNKNOWN, LL_DIM_EMERGENCY_SHARD, false);
	if (call->name == ISSUE)
		return issue(l, call);
	if (call->name == RECONCILE)
		return reconcile(l, call);
	if (call->name == LEGACY_RECEIPT)
		return legacy_receipt(l, call);
	return write_off(find_shard(l, call->shard));
}

/* ---- at the gateway ------------------------------------------------------ */

static LLTime
now(const Ledger *l, const ShardRow *shard)
{
	return ll_max(l->clock, shard->seen_at);
}

/* relate tells how an operation id relates to what the gateway has stored. */
static LLOperation
relate(const Ledger *l, const ItemRow *item, int operation)
{
	if (item != NULL && item->operation != 0)
		return item->operation == operation ? LL_OPERATION_SAME : LL_OPERATION_OTHER;
	for (int i = 0; i < l->items; i++)
		if (l->item[i].operation == operation)
			return LL_OPERATION_ELSEWHERE;
	return LL_OPERATION_FREE;
}

static LLVerdict
reserve(Ledger *l, const Call *call)
{
	ShardRow   *shard = find_shard(l, call->shard);
	const LLPolicy *policy = policy_of(shard->generation);
	LLLocalRequest request = {
		.units = call->units,.deadline = call->deadline,
		.largest_reservation = policy->largest_reservation,
		.shard_expires_at = shard->expires_at,.hold_ttl = policy->hold_ttl
	};
	ItemRow		item = {.id = call->id,.shard = call->shard,.operation = call->operation};
	LLTime		at = now(l, shard);
	Touched		before;
	LLVerdict	v;

	if (call->operation != 0 && relate(l, NULL, call->operation) != LL_OPERATION_FREE)
		return say(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE, false);
	touch(&before, l, shard, &item);
	v = ll_local_reserve(&shard->gateway, &request, at, &item.r);
	if (!took_effect(l, shard, &item, &before, &v))
		return v;
	shard->seen_at = at;
	if (call->operation != 0 &&
		ll_start(&item.r, policy, LL_OPERATION_FREE, at).outcome != LL_ACCEPTED)
		l->broken = "a hold that was made now can't be started (D5)";
	l->item[l->items++] = item;
	return v;
}

/* on_item decides about one item: settle, release, expire. */
static LLVerdict
on_item(Ledger *l, const Call *call, ItemRow *item)
{
	ShardRow   *shard = find_shard(l, item->shard);
	LLSettlement settlement = {
		.actual = call->units,.operation = relate(l, item, call->operation),
		.same_receipt = item->receipt == call->digest
	};
	LLTime		at = now(l, shard);
	LLState		was = item->r.state;
	Touched		before;
	LLVerdict	v;

	touch(&before, l, shard, item);
	v = call->name == GATEWAY_SETTLE ? ll_local_settle(&shard->gateway, &item->r, &settlement)
		: call->name == GATEWAY_RELEASE ? ll_local_release(&shard->gateway, &item->r)
		: ll_local_expire(&shard->gateway, &item->r, at);
	if (!took_effect(l, shard, item, &before, &v))
		return v;
	if (!ll_local_transition_allows(was, item->r.state))
		l->broken = "a transition that is not stored (C3)";
	shard->seen_at = at;
	if (call->name == GATEWAY_SETTLE)
	{
		item->operation = call->operation;
		item->receipt = call->digest;
	}
	return v;
}

static void
boot(Ledger *l)
{
	for (int i = 0; i < l->items; i++)
	{
		LLState		was = l->item[i].r.state;

		if (ll_local_boot(&l->item[i].r) && !ll_local_transition_allows(was, l->item[i].r.state))
			l->broken = "a transition that is not stored (C3)";
	}
	for (int i = 0; i < l->shards; i++)
		if (!l->shard[i].state.legacy)
		{
			l->shard[i].seen_at = now(l, &l->shard[i]);
			ll_local_seal(&l->shard[i].gateway);
		}
}

/* cut makes the next report, with some of the receipts that none has carried. */
static void
cut(Ledger *l, ShardRow *shard, int receipts)
{
	shard->cut++;
	l->report[l->reports++] = (ReportRow) {
		.shard = shard->id,.number = shard->cut,.cut = figures_of(&shard->gateway)
	};
	for (int i = 0; i < l->items && receipts > 0; i++)
	{
		ItemRow    *item = &l->item[i];

		if (item->shard == shard->id && item->report == 0 &&
			(item->r.state == LL_SETTLED || item->r.state == LL_SETTLED_WITH_DEBT))
		{
			item->report = shard->cut;
			receipts--;
		}
	}
}

LLVerdict
ledger_gateway_call(Ledger *l, const Call *call)
{
	ItemRow    *item = find_item(l, call->id);
	ShardRow   *shard = find_shard(l, call->shard);
	bool		sealed;

	if (call->name == GATEWAY_RESERVE)
		return reserve(l, call);
	if (call->name == GATEWAY_SETTLE || call->name == GATEWAY_RELEASE ||
		call->name == GATEWAY_EXPIRE)
		return item != NULL ? on_item(l, call, item)
			: say(LL_UNKNOWN, LL_DIM_RESERVATION, false);
	if (call->name == GATEWAY_BOOT)
		boot(l);
	if (call->name == REPORT)
		cut(l, shard, call->receipts);
	if (call->name != GATEWAY_SEAL)
		return say(LL_ACCEPTED, LL_DIM_NONE, false);
	sealed = shard->gateway.sealed;
	if (!sealed)
		shard->seen_at = now(l, shard);
	ll_local_seal(&shard->gateway); /* again, it changes nothing */
	return say(LL_ACCEPTED, LL_DIM_NONE, sealed);
}

/* ledger_shards_sound asks the core's own predicate, as a caller does before a write. */
bool
ledger_shards_sound(const Ledger *l)
{
	for (int i = 0; i < l->shards; i++)
		if (!ll_shard_conserved(&l->shard[i].gateway) ||
			!ll_shard_conserved(&l->shard[i].state.last))
			return false;
	return true;
}

/* ---- for comparison ------------------------------------------------------ */

void
ledger_show_shard(const Ledger *l, int index, ShardView *view)
{
	const ShardRow *s = &l->shard[index];

	*view = (ShardView) {
		.id = s->id,.budget = s->budget,.legacy = s->state.legacy,.seen_at = s->seen_at,
		.expires_at = s->expires_at,.cut = s->cut,.reconciled = s->reconciled,
		.receipted = s->state.receipted,.confirmed = s->state.confirmed,
		.reminted = s->state.reminted,.written_off = s->state.written_off,.settled = s->settled,
		.gateway = figures_of(&s->gateway),.last = figures_of(&s->state.last)
	};
}

void
ledger_show_item(const Ledger *l, int index, ItemView *view)
{
	const ItemRow *item = &l->item[index];

	*view = (ItemView) {
		.id = item->id,.shard = item->shard,.operation = item->operation,
		.receipt = item->receipt,.report = item->report,
		.reserved_units = item->r.reserved_units,.actual_units = item->r.actual_units,
		.excess_units = item->r.excess_units,.overdraft_units = item->r.overdraft_units,
		.expires_at = item->r.expires_at,.state = ll_state_name(item->r.state)
	};
}

void
ledger_show_report(const Ledger *l, int index, ReportView *view)
{
	const ReportRow *r = &l->report[index];

	*view = (ReportView) {
		.shard = r->shard,.number = r->number,.taken = r->taken,.cut = r->cut,.booked = r->booked
	};
}
