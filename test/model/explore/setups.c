/*
 * setups.c
 *	  Who there is, with which figures and faults; and figures drawn at random.
 *
 * Each setup is small enough to be explored to its end.  Together they have
 * every kind of actor, call and fault.  The last ones are larger, for runs at
 * random.
 */
#include "world.h"

#define NAME(name)	#name,
const char *const allowance_name[] = {ALLOWANCES(NAME)};
const char *const amount_name[] = {AMOUNTS(NAME)};

Setup		setup;
LLPolicy	setup_policy[POLICIES];
LLPeriods	setup_periods[POLICIES];

enum
{
	CONTINUOUS = LL_REFILL_CONTINUOUS,
	WINDOW = LL_REFILL_WINDOW,
	NONE = LL_REFILL_NONE
};

/* A small bucket. */
#define SMALL	.cap = 10,.largest = 10,.hard_limit = 15

static const Setup setups[] = {
	{
		"retry", "two gateways, one free place; requests, replies and duplicates go astray",
		.allow = {.lose = 2,.duplicate = 1,.late = 1,.retry = 1,.tick = 3},
		.amounts = {
			SMALL,.kind = NONE,.interval = 1,.epoch = 40,.overdraft = 4,.hold_ttl = 2,
			.execution_ttl = 2,.granted = 20,.clients = 2,.executors = 0,.resolve = 1,
			.units1 = 6,.units2 = 6
		}
	},
	{
		"rivals", "two executors start one reservation; its client cancels; a sweep is due",
		.allow = {.lose = 1,.duplicate = 1,.late = 1,.cancel = 1,.foreign = 1,.tick = 3,.back = 1},
		.amounts = {
			SMALL,.kind = NONE,.interval = 1,.epoch = 40,.overdraft = 4,.hold_ttl = 2,
			.execution_ttl = 2,.granted = 20,.clients = 1,.executors = 2,.rivals = 1,
			.units1 = 6,.run1 = 4,.run2 = 6
		}
	},
	{
		"crash", "the server dies while a transaction holds the pair; starts pass it by",
		.allow = {.crash = 2,.lose = 1,.tick = 3,.cancel = 1},
		.amounts = {
			SMALL,.kind = NONE,.interval = 1,.epoch = 40,.overdraft = 4,.hold_ttl = 2,
			.execution_ttl = 2,.granted = 20,.clients = 2,.executors = 2,.locks = 1,
			.units1 = 6,.units2 = 6,.run1 = 4,.run2 = 7
		}
	},
	{
		"debt", "work above its reservation; repayment by refill and by a grant; a freeze",
		.allow = {.lose = 1,.retry = 1,.tick = 3,.grant = 2,.unfreeze = 1},
		.amounts = {
			SMALL,.interval = 1,.epoch = 40,.overdraft = 4,.hold_ttl = 2,
			.execution_ttl = 2,.clients = 2,.executors = 2,.at_once = 1,.kind = CONTINUOUS,
			.refill = 2,.units1 = 6,.units2 = 4,.run1 = 4,.run2 = 14,.run3 = 17,
			.granted = 5
		}
	},
	{
		"window", "windows end under holds, executions and debt; the clock steps back",
		.allow = {.lose = 1,.back = 1,.tick = 5},
		.amounts = {
			SMALL,.interval = 1,.overdraft = 4,.granted = 20,.clients = 2,.executors = 2,
			.kind = WINDOW,.epoch = 2,.hold_ttl = 3,.execution_ttl = 3,.units1 = 6,
			.units2 = 4,.run1 = 3,.run2 = 12
		}
	},
	{
		"generation", "a generation takes over while reservations of the older one go on",
		.allow = {.lose = 1,.late = 1,.publish = 1,.tick = 3},
		.amounts = {
			SMALL,.epoch = 40,.overdraft = 4,.hold_ttl = 2,.execution_ttl = 2,
			.granted = 20,.clients = 2,.executors = 2,.kind = CONTINUOUS,.refill = 1,
			.interval = 2,.next_kind = CONTINUOUS,.next_cap = 7,.next_refill = 2,
			.next_interval = 3,.next_epoch = 40,.units1 = 6,.units2 = 4,.run1 = 3,
			.run2 = 8
		}
	},
	{
		"quota", "the quota of a window is lowered while it is held and used",
		.allow = {.lose = 1,.publish = 1,.tick = 4,.retry = 1},
		.amounts = {
			SMALL,.interval = 1,.overdraft = 4,.hold_ttl = 2,.execution_ttl = 2,
			.granted = 20,.clients = 2,.executors = 1,.kind = WINDOW,.epoch = 3,
			.next_kind = WINDOW,.next_cap = 5,.next_epoch = 3,.units1 = 6,.units2 = 3,
			.run1 = 2,.run2 = 9
		}
	},
	{
		"unknown", "executors forget; two reconcilers claim; an operator attests; a stream reports",
		.allow = {
			.lose = 1,.restart = 1,.forget = 1,.progress = 1,.lease = 2,.attest = 1,.tick = 3
		},
		.amounts = {
			SMALL,.kind = NONE,.interval = 1,.epoch = 40,.overdraft = 4,.hold_ttl = 2,
			.execution_ttl = 2,.granted = 20,.clients = 1,.executors = 1,.units1 = 6,
			.run1 = 4,.run2 = 9
		}
	},
	{
		"shared", "two executions of one operation id: only one of them may run",
		.allow = {.lose = 1,.duplicate = 1,.restart = 1,.tick = 1},
		.amounts = {
			SMALL,.kind = NONE,.interval = 1,.epoch = 40,.overdraft = 4,.hold_ttl = 2,
			.execution_ttl = 2,.granted = 20,.clients = 2,.executors = 2,.shared = 1,
			.units1 = 3,.units2 = 3,.run1 = 2
		}
	},
	{
		"extend", "more units and a later deadline, against expiry and a neighbour",
		.allow = {.lose = 1,.late = 1,.extend = 1,.tick = 3,.publish = 1},
		.amounts = {
			SMALL,.kind = NONE,.interval = 1,.epoch = 40,.overdraft = 4,.hold_ttl = 2,
			.execution_ttl = 2,.granted = 20,.clients = 2,.executors = 1,.units1 = 4,
			.units2 = 5,.more = 2,.run1 = 5,.next_kind = NONE,.next_cap = 10,
			.next_epoch = 40,.outstanding = 10
		}
	},
	{
		"outside", "usage without a reservation, twice; an operation that is bound to it; deadlines",
		.allow = {.lose = 1,.late = 1,.record = 2,.tick = 3,.freeze = 1,.unfreeze = 1},
		.amounts = {
			SMALL,.interval = 1,.epoch = 40,.hold_ttl = 2,.execution_ttl = 2,.granted = 20,
			.clients = 2,.executors = 2,.kind = CONTINUOUS,.refill = 1,.deadline = 1,
			.recorded = 7,.shared = 2,.units1 = 6,.units2 = 3,.run1 = 3,.overdraft = 20
		}
	},
	{
		"shard", "a shard is issued, accepted, spent, sealed, reported; everything comes twice",
		.allow = {
			.issue = 1,.again = 1,.seal = 1,.report = 2,.tick = 2
		},
		.amounts = {
			SMALL,.kind = NONE,.interval = 1,.epoch = 40,.overdraft = 4,.hold_ttl = 2,
			.execution_ttl = 2,.granted = 20,.clients = 2,.executors = 1,.local = 3,
			.same_gateway = 1,.share = 8,.shard1 = 6,.shard_ttl = 3,.units1 = 3,
			.units2 = 3,.run1 = 2,.run2 = 8
		}
	},
	{
		"excess", "work above what a shard has; then units come back, and a third client asks",
		.allow = {.lose = 1,.issue = 1,.report = 1,.tick = 1},
		.amounts = {
			SMALL,.kind = NONE,.interval = 1,.epoch = 40,.overdraft = 4,.hold_ttl = 2,
			.execution_ttl = 2,.granted = 20,.clients = 3,.executors = 1,.local = 3,
			.same_gateway = 1,.share = 8,.shard1 = 4,.shard_ttl = 3,.units1 = 2,.units2 = 2,
			.units3 = 2,.run1 = 8
		}
	},
	{
		"boot", "a gateway restarts; what its boot before held is unknown; envelopes go astray",
		.allow = {
			.boot = 1,.issue = 2,.foreign = 1,.seal = 1,.report = 1,.tick = 1
		},
		.amounts = {
			SMALL,.kind = NONE,.interval = 1,.epoch = 40,.overdraft = 4,.hold_ttl = 2,
			.execution_ttl = 2,.granted = 20,.clients = 1,.executors = 1,.local = 3,
			.same_gateway = 1,.share = 8,.shard1 = 4,.shard2 = 4,.shard_ttl = 3,
			.units1 = 3,.units2 = 2,.run1 = 2
		}
	},
	{
		"partition", "a gateway is cut off and goes on with its shard; the ledger goes on without",
		.allow = {.cut = 1,.issue = 1,.seal = 1,.report = 1,.tick = 2,.write_off = 1},
		.amounts = {
			SMALL,.kind = NONE,.interval = 1,.epoch = 40,.overdraft = 4,.hold_ttl = 2,
			.execution_ttl = 2,.granted = 20,.clients = 2,.executors = 1,.local = 4,
			.share = 8,.shard1 = 5,.shard_ttl = 3,.units1 = 4,.units2 = 5,.run1 = 3
		}
	},
	{
		"wide", "four at once, nothing lost: every order of two gateways and two executors",
		.allow = {.tick = 4,.cancel = 1},
		.amounts = {
			SMALL,.epoch = 40,.overdraft = 4,.hold_ttl = 2,.execution_ttl = 2,
			.granted = 20,.clients = 2,.executors = 2,.kind = CONTINUOUS,.refill = 3,
			.interval = 2,.units1 = 6,.units2 = 6,.run1 = 2,.run2 = 9
		}
	},
};

#define SETUP_COUNT	((int) (sizeof(setups) / sizeof(setups[0])))

const Setup *
setup_at(int index)
{
	return index < SETUP_COUNT ? &setups[index] : NULL;
}

const Setup *
setup_named(const char *name)
{
	for (int i = 0; i < SETUP_COUNT; i++)
		if (strcmp(setups[i].name, name) == 0)
			return &setups[i];
	return NULL;
}

static void
freeze_policy(int i, int kind, int cap, int refill, int interval, int epoch)
{
	const Amounts *a = &setup.amounts;

	setup_policy[i] = (LLPolicy) {
		.generation = i + 1,.refill = (LLRefill) kind,.cap = cap,
		.refill_units = kind == CONTINUOUS ? refill : 0,
		.refill_interval = kind == CONTINUOUS ? interval : 0,
		.largest_reservation = a->largest < cap ? a->largest : cap,
		.largest_outstanding = a->outstanding > 0 ? a->outstanding : LL_UNITS_MAX,
		.hard_limit = a->hard_limit,.maximum_overdraft = a->overdraft,
		.hold_ttl = a->hold_ttl,.execution_ttl = a->execution_ttl
	};
	setup_periods[i] = (LLPeriods) {.length = epoch};
}

/* setup_use makes one the setup of all that follows. */
void
setup_use(const Setup *chosen)
{
	const Amounts *a = &setup.amounts;

	setup = *chosen;
	freeze_policy(0, a->kind, a->cap, a->refill, a->interval, a->epoch);
	freeze_policy(1, a->next_kind, a->next_cap, a->next_refill, a->next_interval, a->next_epoch);
}

/*
 * setup_draw makes up who there is, the figures and how many faults of each
 * kind may come; some kinds do not come at all, so that others are seen alone.
 */
void
setup_draw(uint64_t (*random) (uint64_t below))
{
	static const int kinds[] = {CONTINUOUS, CONTINUOUS, WINDOW, NONE};
	Amounts		a = {0};
	Allowances	l = {0};
	Setup		drawn = {.name = "drawn",.covers = "figures and faults drawn at random"};
	bool		shards = random(3) == 0;

#define BETWEEN(low, high)	((int) ((low) + random((high) - (low) + 1)))
#define SOME(most)			(random(2) == 0 ? 0 : BETWEEN(1, most))
	a.clients = BETWEEN(1, CLIENTS);
	a.executors = BETWEEN(1, EXECUTORS);
	a.rivals = random(4) == 0;
	a.locks = random(3) == 0;
	a.at_once = random(4) == 0;
	a.resolve = random(2) == 0;
	a.deadline = SOME(3);
	a.same_gateway = random(2) == 0;
	a.shared = random(6) == 0 ? BETWEEN(1, 2) : 0;
	a.kind = kinds[random(4)];
	a.next_kind = kinds[random(4)];
	a.cap = BETWEEN(4, 20);
	a.next_cap = BETWEEN(4, 20);
	a.refill = BETWEEN(1, 4);
	a.next_refill = BETWEEN(1, 4);
	a.interval = BETWEEN(1, 3);
	a.next_interval = BETWEEN(1, 3);
	a.epoch = random(2) == 0 ? 40 : BETWEEN(2, 5);
	a.next_epoch = random(2) == 0 ? a.epoch : BETWEEN(2, 5);
	a.largest = BETWEEN(3, 12);
	a.outstanding = random(3) == 0 ? BETWEEN(4, 15) : 0;
	a.hard_limit = BETWEEN(8, 20);
	a.overdraft = BETWEEN(0, 10);
	a.hold_ttl = BETWEEN(1, 3);
	a.execution_ttl = BETWEEN(1, 3);
	a.units1 = BETWEEN(1, 8);
	a.units2 = BETWEEN(1, 8);
	a.units3 = BETWEEN(1, 8);
	a.run1 = BETWEEN(0, 8);
	a.run2 = BETWEEN(0, 16);
	a.run3 = BETWEEN(0, 24);
	a.more = BETWEEN(0, 4);
	a.granted = BETWEEN(1, 12);
	a.recorded = BETWEEN(0, 12);
	l.lose = SOME(3);
	l.duplicate = SOME(2);
	l.late = SOME(2);
	l.crash = a.locks ? SOME(2) : 0;
	l.restart = SOME(2);
	l.back = SOME(2);
	l.tick = BETWEEN(0, 8);
	l.retry = SOME(2);
	l.cancel = SOME(1);
	l.extend = SOME(2);
	l.progress = SOME(2);
	l.forget = SOME(1);
	l.lease = SOME(3);
	l.attest = SOME(1);
	l.publish = random(3) == 0;
	l.freeze = random(4) == 0;
	l.unfreeze = SOME(2);
	l.grant = random(3) == 0 ? 2 : 0;
	l.record = random(4) == 0 ? 2 : 0;
	l.foreign = SOME(2);
	if (shards)
	{
		a.local = BETWEEN(1, 4);
		a.shard1 = BETWEEN(1, 8);
		a.shard2 = BETWEEN(1, 8);
		a.share = BETWEEN(4, 12);
		a.shard_ttl = BETWEEN(2, 6);
		l.issue = BETWEEN(1, 3);
		l.again = SOME(2);
		l.boot = SOME(2);
		l.cut = SOME(2);
		l.seal = SOME(2);
		l.report = SOME(3);
		l.write_off = random(6) == 0;
	}
	drawn.allow = l;
	drawn.amounts = a;
	setup_use(&drawn);
}

/* world_open is where every interleaving begins. */
void
world_open(World *w)
{
	const int  *allow = (const int *) &setup.allow;

	memset(w, 0, sizeof(*w));
	w->clock = w->latest = w->switched_at = BASE;
	for (int i = 0; i < ALLOWANCE_COUNT; i++)
		w->left[i] = allow[i];
	for (int i = 0; i < ACTORS; i++)
		if ((i < CLIENTS && i >= setup.amounts.clients) ||
			(i >= CLIENTS && i < CLIENTS + EXECUTORS && i - CLIENTS >= setup.amounts.executors))
			w->actor[i].phase = DONE;
	for (int i = 0; i < IDS; i++)
		w->ghost[i].told_actual = -1;
	for (int i = 0; i < GATEWAYS; i++)
		w->gateway[i].boot = 1;
	ledger_open(&w->ledger);
}
