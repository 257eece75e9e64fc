/*
 * harness.c
 *	  See harness.h.
 */
#include "harness.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

Frozen		ledger_policy[POLICIES_MAX];

/* ---- a calendar: epochs of uneven length (A4) ---------------------------- */

static const Frozen *
frozen_of(const LLPeriods *periods)
{
	return (const Frozen *) ((const char *) periods - offsetof(Frozen, periods));
}

/* locate gives the start of the epoch that holds an instant, and its number. */
static LLTime
locate(const LLPeriods *periods, LLTime instant, int64_t *number)
{
	const int64_t *pattern = frozen_of(periods)->pattern;
	LLTime		cycle = pattern[0] + pattern[1] + pattern[2];
	LLTime		start = ll_period_start(instant, cycle, LL_PERIOD_ORIGIN);
	int			i = 0;

	*number = (start - LL_PERIOD_ORIGIN) / cycle * PATTERN;
	while (start + pattern[i] <= instant)
		start += pattern[i++];
	*number += i;
	return start;
}

static LLTime
calendar_start_of(const LLPeriods *periods, LLTime instant)
{
	int64_t		number;

	return locate(periods, instant, &number);
}

static int64_t
calendar_between(const LLPeriods *periods, LLTime from, LLTime to)
{
	int64_t		first;
	int64_t		last;

	locate(periods, from, &first);
	locate(periods, to, &last);
	return last - first;
}

static LLTime
calendar_nth_after(const LLPeriods *periods, LLTime epoch, int64_t n)
{
	const int64_t *pattern = frozen_of(periods)->pattern;
	int64_t		number;
	LLTime		start = locate(periods, epoch, &number);

	for (; n > 0; n--, number++)
		start += pattern[((number % PATTERN) + PATTERN) % PATTERN];
	return start;
}

/* ---- policies ------------------------------------------------------------ */

/* freeze_document is what publishing does: the document becomes a policy. */
static void
freeze_document(Frozen *f, const Document *d, LLTime since)
{
	static const LLRefill kinds[KINDS] = {
		[CONTINUOUS] = LL_REFILL_CONTINUOUS,[WINDOW] = LL_REFILL_WINDOW,[NONE] = LL_REFILL_NONE
	};
	bool		continuous = d->kind == CONTINUOUS;
	bool		fixed = d->epoch[0] == d->epoch[1] && d->epoch[1] == d->epoch[2];

	memset(f, 0, sizeof(*f));
	f->policy = (LLPolicy) {
		.generation = d->generation,.refill = kinds[d->kind],.cap = d->cap,
		.refill_units = continuous ? d->units : 0,
		.refill_interval = continuous ? d->interval : 0,
		.largest_reservation = d->largest,.largest_outstanding = d->outstanding,
		.hard_limit = d->hard_limit,.maximum_overdraft = d->maximum_overdraft,
		.hold_ttl = d->hold_ttl,.execution_ttl = d->execution_ttl
	};
	f->since = since;
	f->share = d->share;
	f->shard_ttl = d->shard_ttl;
	if (fixed)
	{
		f->periods.length = d->epoch[0];
		return;
	}
	memcpy(f->pattern, d->epoch, sizeof(f->pattern));
	snprintf(f->calendar, sizeof(f->calendar), "%d/%d/%d",
			 (int) d->epoch[0], (int) d->epoch[1], (int) d->epoch[2]);
	f->periods = (LLPeriods) {
		.calendar = f->calendar,.start_of = calendar_start_of,
		.nth_after = calendar_nth_after,.between = calendar_between
	};
}

static const LLPolicy *
head_policy(const Ledger *l)
{
	return &ledger_policy[l->in_force].policy;
}

/* policy_of finds the policy of the budget that a row was reserved in. */
static const LLPolicy *
policy_of(const Ledger *l, const Row *row)
{
	int64_t		generation = row->budget < l->closed_count
		? l->closed[row->budget].generation : l->pair.head.generation;
	int			i = 0;

	while (ledger_policy[i].policy.generation != generation)
		i++;
	return &ledger_policy[i].policy;
}

/* ---- lock, roll, write --------------------------------------------------- */

static void
copy(Ledger *to, const Ledger *from)
{
	memcpy(to, from, offsetof(Ledger, closed));
	memcpy(to->closed, from->closed, sizeof(from->closed[0]) * (size_t) from->closed_count);
	memcpy(to->row, from->row, sizeof(from->row[0]) * (size_t) from->rows);
	memcpy(to->record, from->record, sizeof(from->record[0]) * (size_t) from->records);
	memcpy(to->shard, from->shard, sizeof(from->shard[0]) * (size_t) from->shards);
	memcpy(to->item, from->item, sizeof(from->item[0]) * (size_t) from->items);
	memcpy(to->report, from->report, sizeof(from->report[0]) * (size_t) from->reports);
}

static bool
same(const Ledger *a, const Ledger *b)
{
	return memcmp(a, b, offsetof(Ledger, closed)) == 0 &&
		memcmp(a->closed, b->closed, sizeof(a->closed[0]) * (size_t) a->closed_count) == 0 &&
		memcmp(a->row, b->row, sizeof(a->row[0]) * (size_t) a->rows) == 0 &&
		memcmp(a->record, b->record, sizeof(a->record[0]) * (size_t) a->records) == 0 &&
		memcmp(a->shard, b->shard, sizeof(a->shard[0]) * (size_t) a->shards) == 0 &&
		memcmp(a->item, b->item, sizeof(a->item[0]) * (size_t) a->items) == 0 &&
		memcmp(a->report, b->report, sizeof(a->report[0]) * (size_t) a->reports) == 0;
}

static void
keep_closed(void *arg, const LLBudget *closed, LLTime closed_at)
{
	Ledger	   *l = arg;

	if (closed_at > l->pair.seen_at || closed_at < closed->epoch)
		l->broken = "closed outside its time";
	l->closed[l->closed_count++] = *closed;
	l->rolled = true;
}

/* roll brings the pair to the clock; false on overflow. */
static bool
roll(Ledger *l)
{
	LLReign		reigns[POLICIES_MAX];
	LLUnits		debt = ll_pair_debt(&l->pair);
	int			count = l->policies - l->in_force;

	for (int i = 0; i < count; i++)
	{
		const Frozen *f = &ledger_policy[l->in_force + i];

		reigns[i] = (LLReign) {.policy = &f->policy,.periods = &f->periods,.since = f->since};
	}
	if (!ll_roll(&l->pair, reigns, count, l->clock, keep_closed, l))
		return false;
	if (count > 1)
		l->draining = false;	/* it was the older generation that drained */
	l->in_force = l->policies - 1;
	if (ll_pair_debt(&l->pair) != debt)
		l->rolled = true;
	return true;
}

/* book writes what was paid to closed budgets, oldest first; false on overflow (E2). */
static bool
book(Ledger *l)
{
	for (int i = 0; i < l->closed_count && l->pair.older_repaid > 0; i++)
		if (!ll_repay_closed(&l->pair, &l->closed[i]))
			return false;
	return true;
}

/* sound asks the core's own predicates, as a caller does before a write. */
static bool
sound(const Ledger *l)
{
	for (int i = 0; i < l->closed_count; i++)
		if (!ll_budget_conserved(&l->closed[i]))
			return false;
	return ll_pair_sound(&l->pair, head_policy(l)) && ledger_shards_sound(l);
}

/* ---- one decision of the core, and the bytes that it may touch ----------- */

typedef struct Touched
{
	LLPair		pair;
	LLBudget	closed;
	LLReservation r;
} Touched;

static LLBudget *
closed_of(Ledger *l, const Row *row)
{
	return row->budget >= 0 && row->budget < l->closed_count ? &l->closed[row->budget] : NULL;
}

static void
touch(Touched *t, const Ledger *l, const Row *row)
{
	memset(t, 0, sizeof(*t));
	memcpy(&t->pair, &l->pair, sizeof(t->pair));
	if (row->budget >= 0 && row->budget < l->closed_count)
		memcpy(&t->closed, &l->closed[row->budget], sizeof(t->closed));
	memcpy(&t->r, &row->r, sizeof(t->r));
}

static bool
took_effect(const LLVerdict *v)
{
	return v->outcome == LL_ACCEPTED && !v->replayed && !v->overflow;
}

/* unchanged: a refusal, a conflict or a replay has left every byte as it was. */
static void
unchanged(Ledger *l, const Row *row, const Touched *before, const LLVerdict *v)
{
	Touched		after;

	touch(&after, l, row);
	if (!took_effect(v) && memcmp(before, &after, sizeof(after)) != 0)
		l->broken = "changed by a call that took no effect";
}

/* ---- the calls ----------------------------------------------------------- */

static Row *
find(Ledger *l, int id)
{
	for (int i = 0; i < l->rows; i++)
		if (l->row[i].id == id)
			return &l->row[i];
	return NULL;
}

/* nobody stands in for the row that is not there. */
static Row *
nobody(void)
{
	static Row	row;

	row = (Row) {.budget = -1,.r = {.state = LL_ABSENT}};
	return &row;
}

/* recorded finds what stands under an id of a call's own. */
static Record *
recorded(Ledger *l, CallName call, int id, int key)
{
	for (int i = 0; i < l->records; i++)
		if (l->record[i].call == call && l->record[i].id == id && l->record[i].key == key)
			return &l->record[i];
	return NULL;
}

/* bound_to_usage tells whether an operation was recorded without a reservation (D12). */
static bool
bound_to_usage(const Ledger *l, int operation)
{
	for (int i = 0; i < l->records; i++)
		if (l->record[i].call == RECORD_USAGE && l->record[i].key == operation)
			return true;
	return false;
}

/* relate tells how an operation id relates to what is stored. */
static LLOperation
relate(const Ledger *l, const Row *row, int operation)
{
	if (row->operation != 0)
		return row->operation == operation ? LL_OPERATION_SAME : LL_OPERATION_OTHER;
	for (int i = 0; i < l->rows; i++)
		if (l->row[i].operation == operation)
			return LL_OPERATION_ELSEWHERE;
	return bound_to_usage(l, operation) ? LL_OPERATION_ELSEWHERE : LL_OPERATION_FREE;
}

static LLTime
now(const Ledger *l)
{
	return l->clock > l->pair.seen_at ? l->clock : l->pair.seen_at;
}

static LLVerdict
verdict(LLOutcome outcome, LLDimension dimension, bool replayed)
{
	return (LLVerdict) {.outcome = outcome,.dimension = dimension,.replayed = replayed};
}

static const LLVerdict overflow = {.outcome = LL_ACCEPTED,.overflow = true};

static LLVerdict
finish(Ledger *l, Row *row)
{
	Touched		before;
	LLVerdict	v;

	touch(&before, l, row);
	v = ll_expire_finish(&l->pair, closed_of(l, row), &row->r, head_policy(l));
	unchanged(l, row, &before, &v);
	return v;
}

static LLVerdict
claim(Ledger *l, Row *row)
{
	Touched		before;
	LLVerdict	v;

	touch(&before, l, row);
	v = ll_expire_claim(&row->r, now(l));
	unchanged(l, row, &before, &v);
	return v;
}

/* end_due_holds does both halves of an expiry; false on overflow (D14). */
static bool
end_due_holds(Ledger *l)
{
	for (int i = 0; i < l->rows; i++)
	{
		Row		   *row = &l->row[i];
		LLVerdict	v;

		if (row->r.state == LL_RESERVED)
			claim(l, row);
		if (row->r.state != LL_EXPIRING)
			continue;
		v = finish(l, row);
		if (v.overflow)
			return false;
		l->rolled = true;
	}
	return true;
}

static LLVerdict
admit(Ledger *l, const Call *call, Row *row)
{
	LLRequest	request = {
		.units = call->units,.deadline = call->deadline,
		.region_matches = !call->wrong_region,.estimator_accepted = !call->wrong_estimator,
		.draining = l->draining,.route_frozen = l->route_frozen,.start = call->operation != 0
	};
	LLVerdict	plain = ll_admission_judge(&l->pair, head_policy(l), &request, l->pair.seen_at);
	Touched		before;
	LLVerdict	v;

	touch(&before, l, row);
	v = ll_admit(&l->pair, head_policy(l), &request, l->pair.seen_at, &row->r);
	unchanged(l, row, &before, &v);
	if (!v.overflow && (plain.outcome != v.outcome || plain.dimension != v.dimension ||
						plain.wait != v.wait || plain.wait_until != v.wait_until ||
						plain.wait_windows != v.wait_windows))
		l->broken = "a plain refusal decides otherwise";
	return v;
}

static LLVerdict
reserve(Ledger *l, const Call *call)
{
	Row		   *row = find(l, call->id);
	LLVerdict	v;

	if (row != NULL)
		return row->digest == call->digest && (row->budget < 0 || row->asked == call->units)
			? verdict(LL_ACCEPTED, LL_DIM_NONE, true)
			: verdict(LL_CONFLICT, LL_DIM_REQUEST, false);
	row = nobody();
	if (call->operation != 0 && relate(l, row, call->operation) == LL_OPERATION_ELSEWHERE)
		return verdict(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE, false);
	v = admit(l, call, row);
	if (v.wait == LL_WAIT_REFILL || v.wait == LL_WAIT_RELEASE)
	{
		if (!end_due_holds(l))
			return overflow;
		v = admit(l, call, row);
	}
	if (!took_effect(&v))
		return v;
	row->id = call->id;
	row->budget = l->closed_count;
	row->asked = call->units;
	row->digest = call->digest;
	row->operation = call->operation;
	row->excess_budget = -1;
	l->row[l->rows++] = *row;
	return v;
}

static LLVerdict
start(Ledger *l, const Call *call, Row *row)
{
	LLOperation operation = relate(l, row, call->operation);
	Touched		before;
	LLVerdict	v;

	touch(&before, l, row);
	v = ll_start(&row->r, row->budget >= 0 ? policy_of(l, row) : head_policy(l),
				 operation, now(l));
	unchanged(l, row, &before, &v);
	if (took_effect(&v))
		row->operation = call->operation;
	return v;
}

static LLVerdict
settle(Ledger *l, const Call *call, Row *row)
{
	LLSettlement settlement = {
		.actual = call->units,.operation = relate(l, row, call->operation),
		.same_receipt = row->receipt == call->digest,.attested = call->attested
	};
	Touched		before;
	LLVerdict	v;

	touch(&before, l, row);
	v = ll_settle(&l->pair, closed_of(l, row), &row->r,
				  row->budget >= 0 ? policy_of(l, row) : head_policy(l),
				  head_policy(l), &settlement);
	unchanged(l, row, &before, &v);
	if (took_effect(&v))
	{
		row->receipt = call->digest;
		if (row->r.excess_units > 0)
			row->excess_budget = l->closed_count;
	}
	return v;
}

static LLVerdict
release(Ledger *l, Row *row)
{
	Touched		before;
	LLVerdict	v;

	touch(&before, l, row);
	v = ll_release(&l->pair, closed_of(l, row), &row->r, head_policy(l));
	unchanged(l, row, &before, &v);
	return v;
}

static LLVerdict
report_unknown(Ledger *l, const Call *call, Row *row)
{
	Touched		before;
	LLVerdict	v;

	touch(&before, l, row);
	v = ll_report_unknown(&row->r, relate(l, row, call->operation), call->by_caller, now(l));
	unchanged(l, row, &before, &v);
	return v;
}

static LLVerdict
resolve(Ledger *l, const Call *call)
{
	const Row  *row = find(l, call->id);
	const LLTransition *t = ll_transition(row != NULL ? row->r.state : LL_ABSENT, LL_EVENT_RESOLVE);

	if (row == NULL)			/* a fence (D11) */
		l->row[l->rows++] = (Row) {
			.id = call->id,.budget = -1,.digest = call->digest,.excess_budget = -1,
			.r = {.state = t->next,.expires_at = now(l)}
		};
	return verdict(t->outcome, t->dimension, row != NULL);
}

static LLVerdict
freeze(Ledger *l, CallName call)
{
	Row		   *row = nobody();
	Touched		before;
	LLVerdict	v;

	touch(&before, l, row);
	v = call == FREEZE ? ll_freeze(&l->pair) : ll_unfreeze(&l->pair);
	unchanged(l, row, &before, &v);
	return v;
}

static LLVerdict
extend_once(Ledger *l, const Call *call, Row *row)
{
	LLExtension extension = {
		.units = call->units,.expires_at = call->deadline == NO_LIMIT ? 0 : call->deadline,
		.head = row->budget == l->closed_count,.draining = l->draining,
		.route_frozen = l->route_frozen
	};
	Touched		before;
	LLVerdict	v;

	touch(&before, l, row);
	v = ll_extend(&l->pair, &row->r, row->budget >= 0 ? policy_of(l, row) : head_policy(l),
				  head_policy(l), &extension, l->pair.seen_at);
	unchanged(l, row, &before, &v);
	return v;
}

static LLVerdict
extend(Ledger *l, const Call *call, Row *row)
{
	const Record *known = recorded(l, EXTEND, call->id, call->key);
	LLVerdict	v;

	if (row->id == 0)
		return verdict(LL_UNKNOWN, LL_DIM_RESERVATION, false);
	if (known != NULL)
		return known->units == call->units && known->deadline == call->deadline
			? verdict(LL_ACCEPTED, LL_DIM_NONE, true)
			: verdict(LL_CONFLICT, LL_DIM_EXTENSION, false);
	v = extend_once(l, call, row);
	if (v.wait == LL_WAIT_REFILL || v.wait == LL_WAIT_RELEASE)
	{
		if (!end_due_holds(l))
			return overflow;
		v = extend_once(l, call, row);
	}
	if (took_effect(&v))
		l->record[l->records++] = (Record) {
			.call = EXTEND,.id = call->id,.key = call->key,.units = call->units,
			.deadline = call->deadline
		};
	return v;
}

static LLVerdict
report_progress(Ledger *l, const Call *call, Row *row)
{
	Touched		before;
	LLVerdict	v;

	touch(&before, l, row);
	v = ll_report_progress(&row->r, relate(l, row, call->operation), call->units);
	unchanged(l, row, &before, &v);
	return v;
}

static LLVerdict
record_usage(Ledger *l, const Call *call)
{
	const Record *known = recorded(l, RECORD_USAGE, 0, call->operation);
	Row		   *row = nobody();
	Touched		before;
	LLVerdict	v;

	if (known != NULL)
		return known->units == call->units ? verdict(LL_ACCEPTED, LL_DIM_NONE, true)
			: verdict(LL_CONFLICT, LL_DIM_FIGURES, false);
	if (relate(l, row, call->operation) == LL_OPERATION_ELSEWHERE)
		return verdict(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE, false);
	touch(&before, l, row);
	v = ll_record_usage(&l->pair, head_policy(l), call->units, call->imported);
	unchanged(l, row, &before, &v);
	if (took_effect(&v))
		l->record[l->records++] = (Record) {
			.call = RECORD_USAGE,.key = call->operation,.units = call->units,
			.budget = l->closed_count
		};
	return v;
}

static LLVerdict
grant(Ledger *l, const Call *call)
{
	const Record *known = recorded(l, GRANT, 0, call->key);
	Row		   *row = nobody();
	LLUnits		granted = -1;
	Touched		before;
	LLVerdict	v;

	if (known != NULL)
		return known->units == call->units ? verdict(LL_ACCEPTED, LL_DIM_NONE, true)
			: verdict(LL_CONFLICT, LL_DIM_GRANT, false);
	touch(&before, l, row);
	v = ll_grant(&l->pair, head_policy(l), call->units, &granted);
	unchanged(l, row, &before, &v);
	if (took_effect(&v))
		l->record[l->records++] = (Record) {
			.call = GRANT,.key = call->key,.units = call->units,.granted = granted
		};
	return v;
}

/* locks_pair tells whether a call takes the pair's lock, and so rolls it (B5). */
static bool
locks_pair(Ledger *l, const Call *call, const Row *row)
{
	switch (call->name)
	{
		case RESERVE:
		case REPAY:
		case UNFREEZE:
		case FREEZE:
		case RECORD_USAGE:
		case GRANT:
			return true;
		case SETTLE:
		case RELEASE:
		case FINISH:
		case EXTEND:
			return row->budget >= 0;
		case START:
		case REPORT_UNKNOWN:
		case REPORT_PROGRESS:
		case CLAIM:
		case RESOLVE:
		case DRAIN:
		case PUBLISH:
		case FREEZE_ROUTE:
		case UNFREEZE_ROUTE:
		case GATEWAY_RESERVE:
		case GATEWAY_SETTLE:
		case GATEWAY_RELEASE:
		case GATEWAY_EXPIRE:
		case GATEWAY_SEAL:
		case GATEWAY_BOOT:
		case REPORT:
			break;
		case ISSUE:
		case RECONCILE:
		case WRITE_OFF:
		case LEGACY_RECEIPT:
			return ledger_has_shard(l, call);
	}
	return false;
}

static LLVerdict
decide(Ledger *l, const Call *call)
{
	Row		   *row = find(l, call->id);

	if (row == NULL)
		row = nobody();
	if (locks_pair(l, call, row) && !roll(l))
		return overflow;
	switch (call->name)
	{
		case RESERVE:
			return reserve(l, call);
		case START:
			return start(l, call, row);
		case SETTLE:
			return settle(l, call, row);
		case RELEASE:
			return release(l, row);
		case REPORT_UNKNOWN:
			return report_unknown(l, call, row);
		case CLAIM:
			return claim(l, row);
		case FINISH:
			return finish(l, row);
		case RESOLVE:
			return resolve(l, call);
		case UNFREEZE:
		case FREEZE:
			return freeze(l, call->name);
		case EXTEND:
			return extend(l, call, row);
		case REPORT_PROGRESS:
			return report_progress(l, call, row);
		case RECORD_USAGE:
			return record_usage(l, call);
		case GRANT:
			return grant(l, call);
		case ISSUE:
		case RECONCILE:
		case WRITE_OFF:
		case LEGACY_RECEIPT:
			return ledger_shard_call(l, call);
		case GATEWAY_RESERVE:
		case GATEWAY_SETTLE:
		case GATEWAY_RELEASE:
		case GATEWAY_EXPIRE:
		case GATEWAY_SEAL:
		case GATEWAY_BOOT:
		case REPORT:
			return ledger_gateway_call(l, call);
		case DRAIN:
			l->draining = true;
			break;
		case FREEZE_ROUTE:
		case UNFREEZE_ROUTE:
			l->route_frozen = call->name == FREEZE_ROUTE;
			break;
		case PUBLISH:
			freeze_document(&ledger_policy[l->policies++], &call->document, l->clock);
			break;
		case REPAY:
			break;
	}
	return verdict(LL_ACCEPTED, LL_DIM_NONE, false);
}

/* wait_of counts a wait from what the clock shows (D4). */
static int64_t
wait_of(const Ledger *l, const LLVerdict *v)
{
	if (v->wait != LL_WAIT_REFILL)
		return 0;
	if (v->wait_windows > 0)
		return ll_period_after(&ledger_policy[l->in_force].periods, l->pair.head.epoch,
							   v->wait_windows) - l->clock;
	return v->wait_until - l->clock;
}

void
ledger_open(Ledger *l, const Document *policy, int64_t clock)
{
	const Frozen *f = &ledger_policy[0];

	freeze_document(&ledger_policy[0], policy, clock);
	memset(l, 0, offsetof(Ledger, closed));
	l->clock = clock;
	l->policies = 1;
	ll_epoch_open_first(&l->pair, &f->policy, ll_period_of(&f->periods, clock), clock);
}

Answer
ledger_call(Ledger *l, const Call *call)
{
	static Ledger work;
	static Ledger before;
	const char *dimension;
	const char *kind;
	LLVerdict	v;
	Answer		a;

	l->rolled = false;
	l->broken = NULL;
	copy(&work, l);
	copy(&before, l);
	v = decide(&work, call);
	if (v.overflow || !book(&work))
	{
		l->broken = work.broken;
		return (Answer) {.outcome = "",.dimension = "",.wait_kind = "",.overflow = true};
	}
	dimension = ll_dimension_info(v.dimension)->name;
	kind = ll_wait_name(v.wait);
	a = (Answer) {
		.outcome = ll_outcome_name(v.outcome),.dimension = dimension != NULL ? dimension : "",
		.wait_kind = kind != NULL ? kind : "",.replayed = v.replayed,.wait = wait_of(&work, &v),
		.wrote = took_effect(&v) || work.rolled
	};
	if (a.wrote && !sound(&work))
		work.broken = "not sound (C1, C4, E2, B5)";
	if (work.pair.older_repaid != 0)
		work.broken = "a repayment that no closed budget owed (E2)";
	if (a.wrote)
		copy(l, &work);
	else if (!same(l, &before))
		work.broken = "written by a call that took no effect";
	l->broken = work.broken;
	return a;
}

/* ---- twins --------------------------------------------------------------- */

static void
forget_closed(void *arg, const LLBudget *closed, LLTime closed_at)
{
	(void) arg;
	(void) closed;
	(void) closed_at;
}

/* twin gives the pair as it would be after a wait with no traffic. */
static bool
twin(const Ledger *l, int64_t wait, LLPair *pair)
{
	const Frozen *f = &ledger_policy[l->in_force];
	LLReign		reign = {.policy = &f->policy,.periods = &f->periods,.since = f->since};

	*pair = l->pair;
	return ll_roll(pair, &reign, 1, l->clock + wait, forget_closed, NULL);
}

bool
ledger_admits(const Ledger *l, int64_t units, int64_t wait)
{
	LLRequest	request = {
		.units = units,.deadline = LL_TIME_MAX,.region_matches = true,.estimator_accepted = true
	};
	LLPair		pair;

	return twin(l, wait, &pair) &&
		ll_admission_judge(&pair, head_policy(l), &request, pair.seen_at).outcome == LL_ACCEPTED;
}

int64_t
ledger_ticks_until_full(const Ledger *l)
{
	LLVerdict	v = ll_refill_reset(&l->pair, head_policy(l));

	if (v.wait == LL_WAIT_RELEASE)
		return -1;
	if (v.wait == LL_WAIT_NONE)
		return 0;
	return wait_of(l, &v) + l->clock - l->pair.accrued_at;
}

bool
ledger_full(const Ledger *l, int64_t wait)
{
	LLPair		pair;

	return twin(l, l->pair.accrued_at + wait - l->clock, &pair) &&
		ll_pair_debt(&pair) == 0 && pair.head.available == head_policy(l)->cap;
}

bool
ledger_late_is_early(const Ledger *l, int64_t ticks)
{
	const Frozen *f = &ledger_policy[l->in_force];
	LLReign		reign = {.policy = &f->policy,.periods = &f->periods,.since = f->since};
	LLPair		late;
	LLPair		early = l->pair;

	if (!twin(l, ticks, &late))
		return false;
	for (int64_t i = 1; i <= ticks; i++)
		if (!ll_roll(&early, &reign, 1, l->clock + i, forget_closed, NULL))
			return false;
	return late.head.available == early.head.available && late.remainder == early.remainder &&
		ll_pair_debt(&late) == ll_pair_debt(&early) && late.head.epoch == early.head.epoch &&
		late.head.deficit == early.head.deficit && late.seen_at == early.seen_at &&
		late.older_reserved + late.head.reserved == early.older_reserved + early.head.reserved;
}

/* ---- for comparison ------------------------------------------------------ */

void
ledger_show_pair(const Ledger *l, PairView *view)
{
	const LLPair *p = &l->pair;

	*view = (PairView) {
		.budgets = l->closed_count + 1,.reservations = l->rows,.records = l->records,
		.shards = l->shards,.items = l->items,.reports = l->reports,
		.debt = ll_pair_debt(p),
		.older_debt = p->older_debt,.older_reserved = p->older_reserved,
		.older_repaid = p->older_repaid,.seen_at = p->seen_at,.accrued_at = p->accrued_at,
		.remainder = p->remainder,.frozen = p->frozen,.draining = l->draining,
		.route_frozen = l->route_frozen,
		.pending = l->policies - 1 - l->in_force
	};
}

void
ledger_show_budget(const Ledger *l, int index, BudgetView *view)
{
	const LLBudget *b = index < l->closed_count ? &l->closed[index] : &l->pair.head;

#define FIELD(name)	view->name = b->name;
	BUDGET_FIELDS(FIELD)
#undef FIELD
}

void
ledger_show_reservation(const Ledger *l, int index, ReservationView *view)
{
	const Row  *row = &l->row[index];

	*view = (ReservationView) {
		.id = row->id,.budget = row->budget,.asked = row->asked,.digest = row->digest,
		.operation = row->operation,.receipt = row->receipt,
		.reserved_units = row->r.reserved_units,.actual_units = row->r.actual_units,
		.excess_units = row->r.excess_units,.overdraft_units = row->r.overdraft_units,
		.progress_units = row->r.progress_units,.excess_budget = row->excess_budget,
		.expires_at = row->r.expires_at,.state = ll_state_name(row->r.state)
	};
}

void
ledger_show_record(const Ledger *l, int index, RecordView *view)
{
	const Record *record = &l->record[index];

#define FIELD(name)	view->name = (int64_t) record->name;
	RECORD_FIELDS(FIELD)
#undef FIELD
}
