/*
 * ledger.c
 *	  The ledger's transaction scripts, over rows in memory.
 *
 * As src/ledger does it: lock the pair, bring it to the present, lock and read
 * the rows, let core decide, write.  What took no effect writes nothing, unless
 * the roll itself is worth keeping.  A start, an unknown usage, progress, a
 * claim and a fence lock no pair.
 */
#include "world.h"

#include "core/arith.h"

/* ---- lock, roll, write --------------------------------------------------- */

static void
keep_closed(void *arg, const LLBudget *closed, LLTime closed_at)
{
	Ledger	   *l = arg;

	(void) closed_at;
	l->closed[l->closed_count++] = *closed;
	l->rolled = true;
}

static const LLPolicy *
head_policy(const Ledger *l)
{
	return &setup_policy[l->in_force];
}

/* own_policy is that of the budget that a row was reserved in. */
static const LLPolicy *
own_policy(const Ledger *l, const Row *row)
{
	int64_t		generation = row->budget >= 0 && row->budget < l->closed_count
		? l->closed[row->budget].generation : l->pair.head.generation;

	return &setup_policy[generation - 1];
}

static LLBudget *
closed_of(Ledger *l, const Row *row)
{
	return row->budget >= 0 && row->budget < l->closed_count ? &l->closed[row->budget] : NULL;
}

/* roll brings the pair to the clock; false on overflow. */
static bool
roll(Ledger *l, LLTime clock)
{
	LLReign		reigns[POLICIES];
	LLUnits		debt = ll_pair_debt(&l->pair);
	int			count = l->policies - l->in_force;

	for (int i = 0; i < count; i++)
		reigns[i] = (LLReign) {
			.policy = &setup_policy[l->in_force + i],.periods = &setup_periods[l->in_force + i],
			.since = l->in_force + i > 0 ? l->since : BASE
		};
	if (!ll_roll(&l->pair, reigns, count, clock, keep_closed, l))
		return false;
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

static LLTime
now_of(const Ledger *l, LLTime clock)
{
	return ll_max(clock, l->pair.seen_at);
}

static LLVerdict
verdict(LLOutcome outcome, LLDimension dimension, bool replayed)
{
	return (LLVerdict) {.outcome = outcome,.dimension = dimension,.replayed = replayed};
}

static const LLVerdict overflow = {.outcome = LL_ACCEPTED,.overflow = true};

static bool
took_effect(const LLVerdict *v)
{
	return v->outcome == LL_ACCEPTED && !v->replayed && !v->overflow;
}

/* relate tells how an operation id relates to what is stored. */
static LLOperation
relate(const Ledger *l, const Row *row, int operation)
{
	if (row->operation != 0)
		return row->operation == operation ? LL_OPERATION_SAME : LL_OPERATION_OTHER;
	for (int i = 0; i < IDS; i++)
		if (l->row[i].operation == operation)
			return LL_OPERATION_ELSEWHERE;
	return operation == RECORDED && l->recorded >= 0
		? LL_OPERATION_ELSEWHERE : LL_OPERATION_FREE;
}

/* ---- the calls of actors ------------------------------------------------- */

/*
 * claim_due claims what is due.  A sweep chose its rows before it locked them,
 * so that any of them may be in any state by now: core is asked about all.
 */
static bool
claim_due(Ledger *l, LLTime now)
{
	bool		claimed = false;

	for (int i = 0; i < IDS; i++)
	{
		LLVerdict	v = ll_expire_claim(&l->row[i].r, now);

		claimed |= took_effect(&v);
	}
	return claimed;
}

/* finish_claimed ends what was claimed; the pair is locked. */
static LLVerdict
finish_claimed(Ledger *l)
{
	LLVerdict	all = verdict(LL_ACCEPTED, LL_DIM_NONE, true);

	for (int i = 0; i < IDS; i++)
	{
		Row		   *row = &l->row[i];
		LLVerdict	v = ll_expire_finish(&l->pair, closed_of(l, row), &row->r, head_policy(l));

		if (v.overflow)
			return overflow;
		if (took_effect(&v))
			all.replayed = false;
	}
	return all;
}

static LLVerdict
reserve(Ledger *l, const Message *m)
{
	Row		   *row = &l->row[m->id];
	LLRequest	request = {
		.units = m->units,.deadline = m->until >= 0 ? BASE + m->until : LL_TIME_MAX,
		.region_matches = true,.estimator_accepted = true,.start = m->operation != 0
	};
	LLVerdict	v;

	if (row->r.state != LL_ABSENT)
		return row->budget < 0 || row->asked == m->units
			? verdict(LL_ACCEPTED, LL_DIM_NONE, true)
			: verdict(LL_CONFLICT, LL_DIM_REQUEST, false);
	if (request.start && relate(l, row, m->operation) == LL_OPERATION_ELSEWHERE)
		return verdict(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE, false);
	v = ll_admit(&l->pair, head_policy(l), &request, l->pair.seen_at, &row->r);
	if (v.wait == LL_WAIT_REFILL || v.wait == LL_WAIT_RELEASE)
	{
		/* due holds of the pair may stand in its way (D14) */
		bool		due = claim_due(l, l->pair.seen_at);
		LLVerdict	finished = finish_claimed(l);

		if (finished.overflow)
			return overflow;
		l->rolled |= due || !finished.replayed;
		v = ll_admit(&l->pair, head_policy(l), &request, l->pair.seen_at, &row->r);
	}
	if (!took_effect(&v))
		return v;
	row->budget = l->closed_count;
	row->excess_budget = -1;
	row->asked = m->units;
	row->operation = m->operation;
	return v;
}

static LLVerdict
start(Ledger *l, const Message *m, LLTime clock)
{
	Row		   *row = &l->row[m->id];
	LLVerdict	v = ll_start(&row->r, own_policy(l, row), relate(l, row, m->operation),
							 now_of(l, clock));

	if (took_effect(&v))
		row->operation = m->operation;
	return v;
}

static LLVerdict
settle(Ledger *l, const Message *m, bool attested)
{
	Row		   *row = &l->row[m->id];
	LLSettlement settlement = {
		.actual = m->units,.operation = relate(l, row, m->operation),.same_receipt = true,
		.attested = attested
	};
	LLVerdict	v = ll_settle(&l->pair, closed_of(l, row), &row->r, own_policy(l, row),
							  head_policy(l), &settlement);

	if (!took_effect(&v))
		return v;
	row->attested = attested;
	if (row->r.excess_units > 0)
		row->excess_budget = l->closed_count;
	return v;
}

static LLVerdict
extend(Ledger *l, const Message *m)
{
	Row		   *row = &l->row[m->id];
	LLExtension extension = {
		.units = m->units,.expires_at = BASE + m->until,.head = row->budget == l->closed_count
	};
	LLVerdict	v;

	if (row->r.state == LL_ABSENT)
		return verdict(LL_UNKNOWN, LL_DIM_RESERVATION, false);
	if (row->extended)
		return verdict(LL_ACCEPTED, LL_DIM_NONE, true);
	v = ll_extend(&l->pair, &row->r, own_policy(l, row), head_policy(l), &extension,
				  l->pair.seen_at);
	row->extended = took_effect(&v);
	return v;
}

static LLVerdict
resolve(Ledger *l, const Message *m, LLTime clock)
{
	Row		   *row = &l->row[m->id];
	LLState		state = row->r.state;
	const LLTransition *t = ll_transition(state, LL_EVENT_RESOLVE);

	if (state == LL_ABSENT)		/* a fence (D11) */
		*row = (Row) {
			.budget = -1,.excess_budget = -1,.asked = m->units,
			.r = {.state = t->next,.expires_at = now_of(l, clock)}
		};
	return verdict(t->outcome, t->dimension, state != LL_ABSENT);
}

bool
ledger_locks(const Ledger *l, const Message *m)
{
	switch ((CallName) m->call)
	{
		case RESERVE:
			return true;
		case SETTLE:
		case RELEASE:
		case EXTEND:
			return l->row[m->id].r.state != LL_ABSENT && l->row[m->id].budget >= 0;
		case START:
		case UNKNOWN:
		case PROGRESS:
		case RESOLVE:
			break;
	}
	return false;
}

static LLVerdict
decide(Ledger *l, const Message *m, LLTime clock)
{
	Row		   *row = &l->row[m->id];

	if (ledger_locks(l, m) && !roll(l, clock))
		return overflow;
	switch ((CallName) m->call)
	{
		case RESERVE:
			return reserve(l, m);
		case START:
			return start(l, m, clock);
		case SETTLE:
			return settle(l, m, false);
		case RELEASE:
			return ll_release(&l->pair, closed_of(l, row), &row->r, head_policy(l));
		case UNKNOWN:
			return ll_report_unknown(&row->r, relate(l, row, m->operation), true,
									 now_of(l, clock));
		case PROGRESS:
			return ll_report_progress(&row->r, relate(l, row, m->operation), m->units);
		case EXTEND:
			return extend(l, m);
		case RESOLVE:
			return resolve(l, m, clock);
	}
	return overflow;
}

/* ---- transactions -------------------------------------------------------- */

static void
ledger_copy(Ledger *to, const Ledger *from)
{
	memcpy(to, from, offsetof(Ledger, closed) +
		   sizeof(LLBudget) * (size_t) from->closed_count);
}

static Ledger undo;

static void
begin(Ledger *l)
{
	l->rolled = false;
	ledger_copy(&undo, l);
}

/* commit keeps what took effect, or what the roll did. */
static Answer
commit(Ledger *l, const Row *row, LLVerdict v)
{
	Answer		a = {
		.outcome = v.outcome,.dimension = v.dimension,.replayed = v.replayed,
		.overflow = v.overflow
	};

	if (!v.overflow && !book(l))
		a.overflow = true;
	if (a.overflow || (!took_effect(&v) && !l->rolled))
		ledger_copy(l, &undo);
	l->rolled = false;
	if (row != NULL)
	{
		a.state = row->r.state;
		a.reserved = row->r.reserved_units;
		a.actual = row->r.actual_units;
		a.operation = row->operation;
	}
	return a;
}

Answer
ledger_call(Ledger *l, const Message *m, LLTime clock)
{
	begin(l);
	return commit(l, &l->row[m->id], decide(l, m, clock));
}

/* ledger_lease claims the first unknown usage that no lease is on (D10). */
Answer
ledger_lease(Ledger *l, LLTime clock, int *id)
{
	begin(l);
	for (*id = 0; *id < IDS; ++*id)
		if (ll_claim_unknown(&l->row[*id].r, now_of(l, clock), now_of(l, clock) + 2))
			return commit(l, &l->row[*id], verdict(LL_ACCEPTED, LL_DIM_NONE, false));
	return commit(l, NULL, verdict(LL_REFUSED, LL_DIM_NOT_DUE, false));
}

static LLVerdict
end_executions(Ledger *l, LLTime clock)
{
	LLVerdict	all = verdict(LL_ACCEPTED, LL_DIM_NONE, true);

	for (int i = 0; i < IDS; i++)
	{
		LLVerdict	v = ll_report_unknown(&l->row[i].r, LL_OPERATION_SAME, false,
										  now_of(l, clock));

		if (took_effect(&v))
			all.replayed = false;
	}
	return all;
}

static LLVerdict
record(Ledger *l)
{
	LLVerdict	v;

	if (l->recorded >= 0)
		return verdict(LL_ACCEPTED, LL_DIM_NONE, true);
	for (int i = 0; i < IDS; i++)
		if (l->row[i].operation == RECORDED)
			return verdict(LL_CONFLICT, LL_DIM_OPERATION_ELSEWHERE, false);
	v = ll_record_usage(&l->pair, head_policy(l), setup.amounts.recorded, false);
	if (took_effect(&v))
	{
		l->recorded = setup.amounts.recorded;
		l->recorded_budget = l->closed_count;
	}
	return v;
}

static LLVerdict
grant(Ledger *l)
{
	LLUnits		granted = 0;
	LLVerdict	v;

	if (l->grant_stored)
		return verdict(LL_ACCEPTED, LL_DIM_NONE, true);
	v = ll_grant(&l->pair, head_policy(l), setup.amounts.granted, &granted);
	if (took_effect(&v))
	{
		l->granted += granted;
		l->grant_stored = true;
	}
	return v;
}

static LLVerdict
issue(Ledger *l, const World *w, int number)
{
	Issued	   *shard = &l->shard[number];
	LLIssue		asked = {
		.units = number == 0 ? setup.amounts.shard1 : setup.amounts.shard2,
		.largest_share = setup.amounts.share
	};
	LLVerdict	v;

	if (shard->there)
		return verdict(LL_ACCEPTED, LL_DIM_NONE, true);
	for (int i = 0; i < SHARDS; i++)
		if (l->shard[i].there && !l->shard[i].settled)
			asked.outstanding += l->shard[i].state.last.allocated;
	v = ll_issue_shard(&l->pair, head_policy(l), &asked);
	if (took_effect(&v))
		*shard = (Issued) {
			.state = {
				.last = {.allocated = asked.units,.available = asked.units},
				.line = l->pair.head.line
			},
			.there = true,.gateway = gateway_of(number),.boot = w->gateway[gateway_of(number)].boot,
			.fence = number + 1,.policy = l->in_force,
			.expires_at = l->pair.seen_at + setup.amounts.shard_ttl
		};
	return v;
}

static LLVerdict
write_off(Issued *shard)
{
	if (shard->settled)
		return verdict(LL_ACCEPTED, LL_DIM_NONE, true);
	shard->state.written_off = true;
	shard->settled = ll_shard_settled(&shard->state);
	return verdict(LL_ACCEPTED, LL_DIM_NONE, false);
}

/* reconcile takes in a report whose signature is right. */
static LLVerdict
reconcile(Ledger *l, Issued *shard, int number, const Report *report)
{
	LLShard		figures = {
		report->allocated, report->available, report->reserved, report->spent, report->retired,
		report->excess, report->sealed
	};
	LLReconciled done = {0, 0, 0};
	LLVerdict	v;

	if (number <= shard->reconciled)
		return verdict(LL_ACCEPTED, LL_DIM_NONE, true);
	if (number != shard->reconciled + 1)
		return verdict(LL_REFUSED, LL_DIM_SEQUENCE, false);
	v = ll_reconcile_shard(&l->pair, head_policy(l), &shard->state, &figures,
						   report->receipted, report->breach, &done);
	if (!took_effect(&v))
		return v;
	shard->reconciled = number;
	shard->excess[number] = done.excess;
	shard->budget[number] = l->closed_count;
	shard->settled = shard->settled || ll_shard_settled(&shard->state);
	return v;
}

Answer
ledger_reconcile(Ledger *l, int shard, int number, const Report *report, LLTime clock)
{
	begin(l);
	return commit(l, NULL, roll(l, clock) ? reconcile(l, &l->shard[shard], number, report)
				  : overflow);
}

/* decide_step: what sweeps and operators do, one transaction each. */
static LLVerdict
decide_step(Ledger *l, const World *w, Step step)
{
	Message		m = {
		.id = step.who,.operation = l->row[step.who % IDS].operation,.units = step.what
	};
	bool		claimed;

	if (step.kind != CLAIM && step.kind != END_EXECUTIONS && step.kind != PUBLISH &&
		!roll(l, w->clock))
		return overflow;
	switch ((StepKind) step.kind)
	{
		case CLAIM:
			claimed = claim_due(l, now_of(l, w->clock));
			return verdict(LL_ACCEPTED, LL_DIM_NONE, !claimed);
		case FINISH:
			return finish_claimed(l);
		case END_EXECUTIONS:
			return end_executions(l, w->clock);
		case ATTEST:
			return settle(l, &m, true);
		case PUBLISH:
			l->policies = POLICIES;
			l->since = w->clock;
			return verdict(LL_ACCEPTED, LL_DIM_NONE, false);
		case FREEZE:
			return ll_freeze(&l->pair);
		case UNFREEZE:
			return ll_unfreeze(&l->pair);
		case GRANT:
			return grant(l);
		case RECORD:
			return record(l);
		case ISSUE:
			return issue(l, w, step.who);
		case WRITE_OFF:
			return write_off(&l->shard[step.who]);
		case REPAY:				/* the roll did it */
		case SEND: case TAKE: case TIME_OUT: case LOCK: case RUN: case GO_LOST: case TICK:
		case STEP_BACK: case CRASH: case CUT: case HEAL: case LEASE: case RECONCILE:
		case ACCEPT: case SEAL: case BOOT: case LOCAL_SWEEP: case LOCAL_RECEIPT: case REPORT:
			break;
	}
	return verdict(LL_ACCEPTED, LL_DIM_NONE, false);
}

Answer
ledger_step(Ledger *l, const World *w, Step step)
{
	begin(l);
	return commit(l, step.kind == ATTEST ? &l->row[step.who] : NULL, decide_step(l, w, step));
}

/* ledger_open makes the pair at its first budget (B3). */
void
ledger_open(Ledger *l)
{
	memset(l, 0, sizeof(*l));
	ll_epoch_open_first(&l->pair, &setup_policy[0],
						ll_period_of(&setup_periods[0], BASE), BASE);
	l->policies = 1;
	l->recorded = -1;
}
