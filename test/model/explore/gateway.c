/*
 * gateway.c
 *	  A gateway's transaction scripts, over rows in memory: shards that it has
 *	  accepted, and the reservations that it made against them (G4-G6).
 *
 * A gateway is a database of its own.  Nothing here looks at the ledger's rows,
 * but for the envelope of a shard, which is what the ledger has signed.
 */
#include "world.h"

#include "core/arith.h"

static LLVerdict
verdict(LLOutcome outcome, LLDimension dimension, bool replayed)
{
	return (LLVerdict) {.outcome = outcome,.dimension = dimension,.replayed = replayed};
}

static bool
took_effect(const LLVerdict *v)
{
	return v->outcome == LL_ACCEPTED && !v->replayed && !v->overflow;
}

static Answer
answer(LLVerdict v, const Row *item)
{
	Answer		a = {
		.outcome = v.outcome,.dimension = v.dimension,.replayed = v.replayed,
		.overflow = v.overflow
	};

	if (item != NULL)
	{
		a.state = item->r.state;
		a.reserved = item->r.reserved_units;
		a.actual = item->r.actual_units;
		a.operation = item->operation;
	}
	return a;
}

static LLOperation
relate(const World *w, const Row *item, int operation)
{
	if (item->operation != 0)
		return item->operation == operation ? LL_OPERATION_SAME : LL_OPERATION_OTHER;
	for (int i = 0; i < CLIENTS; i++)
		if (w->item[i].operation == operation)
			return LL_OPERATION_ELSEWHERE;
	return LL_OPERATION_FREE;
}

static const LLPolicy *
policy_of(const World *w, int shard)
{
	return &setup_policy[w->ledger.shard[shard].policy];
}

static LLTime
now_of(const World *w, const Local *local)
{
	return ll_max(w->clock, local->seen_at);
}

static LLVerdict
reserve(World *w, const Message *m)
{
	LLVerdict	v = verdict(LL_REFUSED, LL_DIM_NO_SHARD, false);
	Row		   *item = &w->item[m->id];

	if (item->r.state != LL_ABSENT)
		return verdict(LL_ACCEPTED, LL_DIM_NONE, true);
	for (int s = 0; s < SHARDS; s++)
	{
		const Issued *shard = &w->ledger.shard[s];
		Local	   *local = &w->local[s];
		LLLocalRequest request = {
			.units = m->units,.deadline = m->until >= 0 ? BASE + m->until : LL_TIME_MAX,
			.largest_reservation = policy_of(w, s)->largest_reservation,
			.shard_expires_at = shard->expires_at,.hold_ttl = policy_of(w, s)->hold_ttl
		};

		if (!local->accepted || shard->gateway != gateway_of(m->id) ||
			local->boot != w->gateway[shard->gateway].boot)
			continue;
		v = ll_local_reserve(&local->shard, &request, now_of(w, local), &item->r);
		if (!took_effect(&v))
			continue;
		local->seen_at = now_of(w, local);
		item->budget = s;
		item->asked = m->units;
		return v;
	}
	return v;
}

Answer
gateway_call(World *w, const Message *m)
{
	Row		   *item = &w->item[m->id];
	Local	   *local = &w->local[item->budget];
	LLSettlement settlement = {
		.actual = m->units,.operation = relate(w, item, m->operation),.same_receipt = true
	};
	LLVerdict	v = verdict(LL_UNKNOWN, LL_DIM_RESERVATION, false);

	if (m->call == RESERVE)
		return answer(reserve(w, m), item);
	if (item->r.state == LL_ABSENT)
		return answer(v, item);
	switch ((CallName) m->call)
	{
		case START:
			v = ll_start(&item->r, policy_of(w, item->budget), settlement.operation,
						 now_of(w, local));
			break;
		case SETTLE:
			v = ll_local_settle(&local->shard, &item->r, &settlement);
			break;
		case RELEASE:
			v = ll_local_release(&local->shard, &item->r);
			break;
		case UNKNOWN:
			v = ll_report_unknown(&item->r, settlement.operation, true, now_of(w, local));
			break;
		case RESERVE:
		case PROGRESS:
		case EXTEND:
		case RESOLVE:
			break;
	}
	if (took_effect(&v))
	{
		local->seen_at = now_of(w, local);
		if (m->call == START || m->call == SETTLE)
			item->operation = m->operation;
	}
	return answer(v, item);
}

/* accept takes the envelope of a shard, if it is for this gateway, now (G4). */
static LLVerdict
accept(World *w, int s, int g)
{
	const Issued *shard = &w->ledger.shard[s];
	Gateway    *gateway = &w->gateway[g];
	Local	   *local = &w->local[s];

	if (shard->gateway != g)
		return verdict(LL_REFUSED, LL_DIM_GATEWAY, false);
	if (local->accepted)
		return verdict(LL_ACCEPTED, LL_DIM_NONE, true);
	if (shard->boot != gateway->boot)
		return verdict(LL_REFUSED, LL_DIM_BOOT_EPOCH, false);
	if (shard->fence <= gateway->fence)
		return verdict(LL_REFUSED, LL_DIM_FENCE, false);
	if (w->clock >= shard->expires_at)
		return verdict(LL_REFUSED, LL_DIM_SHARD_EXPIRED, false);
	gateway->fence = shard->fence;
	local->accepted = true;
	local->boot = shard->boot;
	local->shard = (LLShard) {
		.allocated = shard->state.last.allocated,.available = shard->state.last.allocated
	};
	local->seen_at = w->clock;
	return verdict(LL_ACCEPTED, LL_DIM_NONE, false);
}

/* boot: nobody can tell what the boot before was about (G5). */
static LLVerdict
boot(World *w, int g)
{
	w->gateway[g].boot++;
	for (int i = 0; i < CLIENTS; i++)
		if (w->ledger.shard[w->item[i].budget].gateway == g)
			ll_local_boot(&w->item[i].r);
	for (int s = 0; s < SHARDS; s++)
		if (w->local[s].accepted && w->ledger.shard[s].gateway == g)
		{
			ll_local_seal(&w->local[s].shard);
			w->local[s].seen_at = now_of(w, &w->local[s]);
		}
	return verdict(LL_ACCEPTED, LL_DIM_NONE, false);
}

static bool
unreported(const World *w, int shard, int i)
{
	const Row  *item = &w->item[i];

	return item->r.state != LL_ABSENT && item->budget == shard && item->report == 0 &&
		(item->r.state == LL_SETTLED || item->r.state == LL_SETTLED_WITH_DEBT);
}

/* gateway_unreported counts receipts that no report has carried. */
int
gateway_unreported(const World *w, int shard)
{
	int			count = 0;

	for (int i = 0; i < CLIENTS; i++)
		count += unreported(w, shard, i);
	return count;
}

/* cut makes the next report, with at most so many receipts. */
static LLVerdict
cut(World *w, int s, int receipts)
{
	Local	   *local = &w->local[s];
	const LLShard *f = &local->shard;
	Report	   *report = &local->report[++local->cut];

	*report = (Report) {
		.allocated = f->allocated,.available = f->available,.reserved = f->reserved,
		.spent = f->spent,.retired = f->retired,.excess = f->excess,.sealed = f->sealed
	};
	for (int i = 0; i < CLIENTS && receipts > 0; i++)
		if (unreported(w, s, i))
		{
			w->item[i].report = local->cut;
			report->receipted += w->item[i].r.actual_units;
			report->breach |= w->item[i].r.actual_units > policy_of(w, s)->hard_limit;
			receipts--;
		}
	return verdict(LL_ACCEPTED, LL_DIM_NONE, false);
}

/* sweep ends due holds and executions.  As at the ledger, a row may be in any state by now. */
static LLVerdict
sweep(World *w)
{
	LLVerdict	all = verdict(LL_ACCEPTED, LL_DIM_NONE, true);

	for (int i = 0; i < CLIENTS; i++)
	{
		Local	   *local = &w->local[w->item[i].budget];
		LLTime		now = now_of(w, local);
		LLVerdict	v = ll_local_expire(&local->shard, &w->item[i].r, now);

		if (!took_effect(&v))
			v = ll_report_unknown(&w->item[i].r, LL_OPERATION_SAME, false, now);
		if (!took_effect(&v))
			continue;
		local->seen_at = now_of(w, local);
		all.replayed = false;
	}
	return all;
}

Answer
gateway_step(World *w, Step step)
{
	switch ((StepKind) step.kind)
	{
		case ACCEPT:
			return answer(accept(w, step.who, step.what), NULL);
		case SEAL:
			ll_local_seal(&w->local[step.who].shard);
			break;
		case BOOT:
			return answer(boot(w, step.who), NULL);
		case LOCAL_SWEEP:
			return answer(sweep(w), NULL);
		case REPORT:
			return answer(cut(w, step.who, step.what), NULL);
		case LOCAL_RECEIPT:
			return gateway_call(w, &(Message) {
				.call = SETTLE,.id = step.who,.operation = step.what,
				.units = w->ghost[step.who].ran
			});
		case SEND: case TAKE: case TIME_OUT: case LOCK: case RUN: case GO_LOST: case TICK:
		case STEP_BACK: case CRASH: case CUT: case HEAL: case CLAIM: case FINISH:
		case END_EXECUTIONS: case REPAY: case LEASE: case ATTEST: case PUBLISH: case FREEZE:
		case UNFREEZE: case GRANT: case RECORD: case ISSUE: case WRITE_OFF: case RECONCILE:
			break;
	}
	return answer(verdict(LL_ACCEPTED, LL_DIM_NONE, false), NULL);
}
