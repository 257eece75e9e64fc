/*
 * quiesce.c
 *	  The end of an interleaving: all faults stop, everybody finishes.
 *
 * Nothing here decides what a step does; it chooses among the steps that the
 * world allows, lets time pass, and brings in what the network still holds.
 * Afterwards nothing may be left that no call can move.
 */
#include "world.h"

#define LONG_ENOUGH		200		/* steps; more is going round in a circle */

static World worlds[2];
static World *here = &worlds[0];
static World *there = &worlds[1];
static long steps_taken;

static const Finding well = {NULL, NULL, 0};
static const Finding circle = {"never_ends", "liveness", COUNTER_discrepancies};

#define TRY(finding) \
	do { \
		Finding		tried = finding; \
		if (tried.check != NULL) \
			return tried; \
	} while (0)

static Finding
go(Step step)
{
	Finding		finding = judged_step(here, there, step);
	World	   *left = here;

	here = there;
	there = left;
	steps_taken++;
	return finding;
}

/* in_the_network: a message that nobody waits for stays there for now. */
static bool
in_the_network(Step step)
{
	return (step.kind == TAKE || step.kind == LOCK) && here->message[step.who].late &&
		!here->message[step.who].locked;
}

/* finish takes whatever the world allows, until it allows nothing. */
static Finding
finish(bool deliver_late)
{
	for (int taken = 0; taken < LONG_ENOUGH; taken++)
	{
		Step		step[STEPS];
		int			count = steps_of(here, step);
		int			i = 0;

		while (i < count && !deliver_late && in_the_network(step[i]))
			i++;
		if (i == count)
			return well;
		TRY(go(step[i]));
	}
	return circle;
}

static void
pass_time(int ticks)
{
	here->clock = here->latest += ticks;
}

/* run_out lets everything become due, and end. */
static Finding
run_out(bool deliver_late)
{
	for (int i = 0; i < 3; i++)
	{
		memset(here->left, 0, sizeof(here->left));
		here->left[offsetof(Allowances, lease) / sizeof(int)] = 2 * IDS;
		TRY(finish(deliver_late));
		pass_time(setup.amounts.hold_ttl + setup.amounts.execution_ttl + 2);
	}
	return well;
}

/* close_shard seals a shard, reports it to its end, and reconciles; or gives it up. */
static Finding
close_shard(uint8_t s)
{
	Local	   *local = &here->local[s];

	if (!here->ledger.shard[s].there)
		return well;
	if (!local->accepted)
		return go((Step) {WRITE_OFF, s, 0, 0});
	if (!local->shard.sealed)
		TRY(go((Step) {SEAL, s, 0, 0}));
	TRY(run_out(false));
	if (here->local[s].cut < REPORTS)
		TRY(go((Step) {REPORT, s, CLIENTS, 0}));
	while (here->ledger.shard[s].reconciled < here->local[s].cut)
	{
		uint8_t		next = here->ledger.shard[s].reconciled + 1;

		TRY(go((Step) {RECONCILE, s, next, next}));
		if (here->ledger.shard[s].reconciled < next)
			return circle;
	}
	return well;
}

/* repay waits for refill, then grants, each time under another id. */
static Finding
repay(void)
{
	pass_time(100);
	TRY(go((Step) {REPAY, 0, 0, 0}));
	for (int i = 0; i < LONG_ENOUGH; i++)
	{
		const LLPair *p = &here->ledger.pair;

		if (p->older_debt == 0 && p->head.overdraft_issued == p->head.overdraft_repaid)
			break;
		here->ledger.grant_stored = false;
		TRY(go((Step) {GRANT, 0, 0, 0}));
	}
	if (here->ledger.pair.frozen)
		TRY(go((Step) {UNFREEZE, 0, 0, 0}));
	return well;
}

/* ask_once_more: a pair that has units and owes none admits a new request. */
static Finding
ask_once_more(void)
{
	Message		m = {
		.actor = CLIENTS + EXECUTORS,.call = RESERVE,.id = IDS - 1,.units = 1,.until = -1,.late = 1
	};

	for (int call = 0; call < 2; call++)
	{
		if (here->ledger.pair.head.available < 1 && call == 0)
			return well;
		here->message[here->messages++] = m;
		TRY(go((Step) {TAKE, 0, ANSWERED, 0}));
		m.call = RELEASE;
	}
	return well;
}

static Finding
end(void)
{
	for (int g = 0; g < GATEWAYS; g++)
		here->gateway[g].cut = false;
	TRY(run_out(false));
	TRY(run_out(true));
	for (int s = 0; s < SHARDS; s++)
		TRY(close_shard(s));
	TRY(repay());
	TRY(ask_once_more());
	return oracle_end(here);
}

Finding
quiesce(World *w, long *taken)
{
	Finding		finding;

	steps_taken = 0;
	world_copy(here, w);
	finding = end();
	*taken += steps_taken;
	return finding;
}
