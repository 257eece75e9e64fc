/*
 * draw.c
 *	  Makes a plan from a seed: the programs of the actors, the order in which
 *	  their steps are sent, and what goes wrong.
 *
 * Each actor has a role, and four or five calls that such a role makes.  Then
 * some of the calls are put into transactions, the programs are merged, the
 * clock is moved, and faults are drawn at a rate that is drawn as well.
 */
#include <string.h>

#include "driver.h"

enum
{
	CONTENTION, SAME_ID, EXPIRY, DEBT, UNKNOWN, EXTENSION, EPOCHS, GENERATIONS, SHARDS, OLD_SHARD, MIXED
};

const Scenario scenarios[] = {
	[CONTENTION] = {"contention", 16, "gateways reserve at once what fits for one of them"},
	[SAME_ID] = {"same-id", 12, "gateways and executors use the same ids, for the same or for other requests"},
	[EXPIRY] = {"expiry", 16, "holds and executions run out while they are started, settled, released, swept"},
	[DEBT] = {"debt", 16, "more was used than reserved; refill, repayment and grants pay it, a breach freezes"},
	[UNKNOWN] = {"unknown", 12, "nobody knows what was used; reconcilers claim it and settle"},
	[EXTENSION] = {"extension", 8, "units and deadlines are extended as they run out"},
	[EPOCHS] = {"epochs", 10, "epochs and windows end under what is open"},
	[GENERATIONS] = {"generations", 3, "policies are published under what is open"},
	[SHARDS] = {"shards", 3, "two gateways and one shard: spent, sealed, reported, reconciled twice"},
	[OLD_SHARD] = {"old-shard", 1, "a shard of a boot that is over is shown and spent again"},
	[MIXED] = {"mixed", 12, "all roles"},
};
const int	scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);

typedef enum Role
{
	ROLE_GATEWAY, ROLE_EXECUTOR, ROLE_SWEEPER, ROLE_RECONCILER, ROLE_REPAYER, ROLE_OPERATOR,
	ROLE_PUBLISHER, ROLE_CENTRE, ROLE_SPENDER, ROLE_RIVAL, ROLE_REPORTER, ROLE_REBOOTER, ROLES
} Role;

/* What a role does: calls, each as often as it is named. */
static const CallKind habits[ROLES][16] = {
	[ROLE_GATEWAY] = {CALL_RESERVE, CALL_RESERVE, CALL_RESERVE, CALL_RESERVE_START, CALL_RESERVE_DEADLINE,
		CALL_RELEASE, CALL_RELEASE, CALL_RESOLVE, CALL_GET, CALL_START, CALL_SETTLE, CALL_RESERVE,
		CALL_RELEASE, CALL_RESERVE_START, CALL_BUDGET, CALL_EXTEND},
	[ROLE_EXECUTOR] = {CALL_START, CALL_START, CALL_START, CALL_SETTLE, CALL_SETTLE, CALL_SETTLE, CALL_SETTLE,
		CALL_PROGRESS, CALL_EXTEND, CALL_EXTEND_UNTIL, CALL_REPORT_UNKNOWN, CALL_REPORT_UNKNOWN,
		CALL_START, CALL_SETTLE, CALL_RECORD, CALL_GET},
	[ROLE_SWEEPER] = {CALL_CLAIM, CALL_FINISH, CALL_EXPIRE, CALL_EXECUTIONS, CALL_CLAIM, CALL_FINISH, CALL_EXPIRE,
		CALL_EXECUTIONS, CALL_REPAY_DEBTORS, CALL_CLAIM, CALL_FINISH, CALL_EXPIRE, CALL_EXECUTIONS, CALL_CLAIM,
		CALL_FINISH, CALL_REPAY_DEBTORS},
	[ROLE_RECONCILER] = {CALL_CLAIM_UNKNOWN, CALL_CLAIM_UNKNOWN, CALL_SETTLE, CALL_SETTLE, CALL_SETTLE, CALL_RESOLVE,
		CALL_REPORT_UNKNOWN, CALL_GET, CALL_CLAIM_UNKNOWN, CALL_SETTLE, CALL_RECORD, CALL_EXECUTIONS,
		CALL_CLAIM_UNKNOWN, CALL_SETTLE, CALL_RESOLVE, CALL_REPORT_UNKNOWN},
	[ROLE_REPAYER] = {CALL_REPAY, CALL_REPAY, CALL_REPAY, CALL_GRANT, CALL_GRANT, CALL_REPAY_DEBTORS, CALL_BUDGET,
		CALL_RESERVE, CALL_REPAY, CALL_GRANT, CALL_UNFREEZE, CALL_REPAY, CALL_RESERVE, CALL_GRANT, CALL_REPAY, CALL_BUDGET},
	[ROLE_OPERATOR] = {CALL_FREEZE, CALL_UNFREEZE, CALL_GRANT, CALL_RECORD, CALL_FREEZE, CALL_UNFREEZE, CALL_BUDGET,
		CALL_SETTLE, CALL_GRANT, CALL_UNFREEZE, CALL_FREEZE, CALL_RESOLVE, CALL_RECORD, CALL_UNFREEZE, CALL_IMPORT, CALL_REPAY},
	[ROLE_PUBLISHER] = {CALL_PUBLISH, CALL_PUBLISH, CALL_PUBLISH, CALL_BUDGET, CALL_RESERVE, CALL_REPAY, CALL_GRANT, CALL_PUBLISH,
		CALL_PUBLISH, CALL_RESERVE, CALL_SETTLE, CALL_RELEASE, CALL_FREEZE, CALL_UNFREEZE, CALL_RECORD, CALL_PUBLISH},
	[ROLE_CENTRE] = {CALL_RESERVE, CALL_SETTLE, CALL_RECORD, CALL_GRANT, CALL_ISSUE, CALL_SIGN, CALL_RECONCILE, CALL_WRITE_OFF,
		CALL_RESERVE_START, CALL_RECONCILE, CALL_REPAY, CALL_ISSUE, CALL_SIGN, CALL_RECONCILE, CALL_RECORD, CALL_BUDGET},
	[ROLE_SPENDER] = {CALL_ACCEPT, CALL_SHARD_RESERVE, CALL_SHARD_RESERVE, CALL_SHARD_RESERVE_START, CALL_SHARD_START,
		CALL_SHARD_START, CALL_SHARD_SETTLE, CALL_SHARD_SETTLE, CALL_SHARD_RELEASE, CALL_SHARD_UNKNOWN,
		CALL_SHARD_RESERVE, CALL_SHARD_RESERVE_START, CALL_SHARD_SETTLE, CALL_SHARD_START, CALL_SHARD_SETTLE, CALL_SWEEP_SHARDS},
	[ROLE_RIVAL] = {CALL_ACCEPT2, CALL_SHARD_RESERVE2, CALL_ACCEPT, CALL_SHARD_RESERVE, CALL_ACCEPT2, CALL_SHARD_RESERVE2,
		CALL_RECONCILE, CALL_SHARD_RESERVE_START, CALL_ACCEPT2, CALL_SHARD_RESERVE2, CALL_ACCEPT, CALL_SHARD_SETTLE,
		CALL_ACCEPT2, CALL_SHARD_RESERVE2, CALL_SHARD_RELEASE, CALL_SHARD_RESERVE},
	[ROLE_REPORTER] = {CALL_SEAL, CALL_CUT, CALL_REPORT, CALL_RECONCILE, CALL_CUT, CALL_REPORT, CALL_RECONCILE, CALL_RECONCILE,
		CALL_SEAL, CALL_CUT, CALL_REPORT, CALL_RECONCILE, CALL_CUT, CALL_REPORT, CALL_RECONCILE, CALL_REPORT},
	[ROLE_REBOOTER] = {CALL_RENEW, CALL_ACCEPT, CALL_SHARD_RESERVE, CALL_ANNOUNCE, CALL_RENEW, CALL_ACCEPT, CALL_SHARD_SETTLE,
		CALL_ANNOUNCE, CALL_SIGN, CALL_CUT, CALL_REPORT, CALL_RECONCILE, CALL_SHARD_RESERVE, CALL_SHARD_SETTLE, CALL_RENEW, CALL_ACCEPT},
};

/* Who meets in a scenario: four of them, and sometimes the fifth. */
static const Role casts[][5] = {
	[CONTENTION] = {ROLE_GATEWAY, ROLE_GATEWAY, ROLE_GATEWAY, ROLE_EXECUTOR, ROLE_SWEEPER},
	[SAME_ID] = {ROLE_GATEWAY, ROLE_GATEWAY, ROLE_EXECUTOR, ROLE_EXECUTOR, ROLE_GATEWAY},
	[EXPIRY] = {ROLE_GATEWAY, ROLE_EXECUTOR, ROLE_SWEEPER, ROLE_GATEWAY, ROLE_SWEEPER},
	[DEBT] = {ROLE_GATEWAY, ROLE_EXECUTOR, ROLE_REPAYER, ROLE_GATEWAY, ROLE_OPERATOR},
	[UNKNOWN] = {ROLE_GATEWAY, ROLE_EXECUTOR, ROLE_RECONCILER, ROLE_RECONCILER, ROLE_SWEEPER},
	[EXTENSION] = {ROLE_GATEWAY, ROLE_EXECUTOR, ROLE_EXECUTOR, ROLE_SWEEPER, ROLE_GATEWAY},
	[EPOCHS] = {ROLE_GATEWAY, ROLE_EXECUTOR, ROLE_GATEWAY, ROLE_REPAYER, ROLE_SWEEPER},
	[GENERATIONS] = {ROLE_PUBLISHER, ROLE_GATEWAY, ROLE_EXECUTOR, ROLE_GATEWAY, ROLE_REPAYER},
	[SHARDS] = {ROLE_CENTRE, ROLE_SPENDER, ROLE_RIVAL, ROLE_REPORTER, ROLE_SPENDER},
	[OLD_SHARD] = {ROLE_CENTRE, ROLE_SPENDER, ROLE_REBOOTER, ROLE_REPORTER, ROLE_RIVAL},
	[MIXED] = {ROLE_GATEWAY, ROLE_EXECUTOR, ROLE_GATEWAY, ROLE_RECONCILER, ROLE_OPERATOR},
};

static const Amount asked[] = {AMOUNT_HALF, AMOUNT_HALF, AMOUNT_OVER_HALF, AMOUNT_OVER_HALF, AMOUNT_THIRD, AMOUNT_TENTH,
	AMOUNT_LARGEST, AMOUNT_WHOLE, AMOUNT_ONE, AMOUNT_FEW, AMOUNT_OVER, AMOUNT_BIGINT};
static const Amount used[] = {AMOUNT_ZERO, AMOUNT_ONE, AMOUNT_TENTH, AMOUNT_THIRD, AMOUNT_HALF, AMOUNT_OVER_HALF,
	AMOUNT_HALF, AMOUNT_WHOLE, AMOUNT_OVER, AMOUNT_DEBT, AMOUNT_LIMIT, AMOUNT_BREACH};
static const Amount used_much[] = {AMOUNT_HALF, AMOUNT_OVER_HALF, AMOUNT_WHOLE, AMOUNT_OVER, AMOUNT_DEBT, AMOUNT_DEBT, AMOUNT_BREACH, AMOUNT_ZERO};
static const Amount few[] = {AMOUNT_ONE, AMOUNT_FEW, AMOUNT_TENTH, AMOUNT_THIRD, AMOUNT_HALF, AMOUNT_ZERO};
static const Amount granted[] = {AMOUNT_ONE, AMOUNT_TENTH, AMOUNT_HALF, AMOUNT_WHOLE, AMOUNT_OVER, AMOUNT_BIGINT};
static const Amount in_shard[] = {AMOUNT_ONE, AMOUNT_FEW, AMOUNT_TENTH, AMOUNT_TENTH, AMOUNT_THIRD, AMOUNT_HALF};

#define PICK(random, list) ((list)[roll(random, sizeof(list) / sizeof((list)[0]))])

/* splitmix64: every state gives a good number, so seeds may be neighbours. */
uint64_t
draw(Random *random)
{
	uint64_t	z = (random->state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

int
roll(Random *random, int sides)
{
	return (int) (draw(random) % (uint64_t) sides);
}

/*
 * draw_amount: `usual` is what most requests for an item ask for, so that most of
 * them are the same request.
 */
static Amount
draw_amount(Random *random, int scenario, CallKind call, Amount usual)
{
	switch (call)
	{
		case CALL_RESERVE:
		case CALL_RESERVE_START:
		case CALL_RESERVE_DEADLINE:
			if (scenario == SHARDS || scenario == OLD_SHARD)
				return PICK(random, few);
			return roll(random, 8) != 0 ? usual : PICK(random, asked);
		case CALL_SETTLE:
		case CALL_RECORD:
		case CALL_IMPORT:
			return scenario == DEBT ? PICK(random, used_much) : PICK(random, used);
		case CALL_GRANT:
			return PICK(random, granted);
		case CALL_ISSUE:
			return roll(random, 8) == 0 ? AMOUNT_WHOLE : PICK(random, in_shard);
		case CALL_SHARD_RESERVE:
		case CALL_SHARD_RESERVE_START:
		case CALL_SHARD_RESERVE2:
			return PICK(random, in_shard);
		case CALL_SHARD_SETTLE:
			return roll(random, 6) == 0 ? AMOUNT_BREACH : roll(random, 3) == 0 ? PICK(random, used) : PICK(random, in_shard);
		default:
			return PICK(random, few);
	}
}

/*
 * draw_call makes one call of a role.  `own` is the item that the actor has most
 * to do with; items are shared, so that somebody else has to do with it, too.
 */
static Step
draw_call(Random *random, int scenario, Role role, int own, const Amount *usual)
{
	Step		step = {.kind = STEP_CALL, .call = habits[role][roll(random, 16)]};
	const char *args = call_forms[step.call].args;
	bool		shard = strchr(args, 'h') != NULL || strchr(args, 'E') != NULL || strchr(args, 'R') != NULL;

	if (step.call == CALL_PUBLISH)
		step.item = 1 + roll(random, 4);
	else if (shard)
		step.item = roll(random, 4) == 0 ? 2 : 1;
	else if (strpbrk(args, "ioevg") != NULL)
		step.item = roll(random, 3) == 0 ? 1 + roll(random, 4) : own;
	if (strchr(args, 'u') != NULL)
		step.amount = draw_amount(random, scenario, step.call, usual[step.item]);
	if (step.item > 0 && roll(random, scenario == SAME_ID ? 5 : 16) == 0 && strpbrk(args, "od") != NULL)
		step.other = true;
	return step;
}

/* opening is the first call of a role, where there is one that the rest needs. */
static void
opening(Random *random, Role role, int own, const Amount *usual, Step *step)
{
	static const CallKind reserves[] = {CALL_RESERVE, CALL_RESERVE, CALL_RESERVE, CALL_RESERVE_START};

	if (role == ROLE_GATEWAY)
	{
		step->call = PICK(random, reserves);
		step->item = own;
		step->amount = usual[own];
		step->other = false;
	}
	else if (role == ROLE_EXECUTOR && roll(random, 2) == 0)
	{
		step->call = CALL_START;
		step->item = own;
		step->other = false;
	}
}

/*
 * in_transactions puts a part of a program between BEGIN and COMMIT or ROLLBACK,
 * now and then with a savepoint that is rolled back.  A transaction has calls to
 * one database.
 */
static int
in_transactions(Random *random, Step *program, int count)
{
	int			first = roll(random, count);
	int			last = first;
	int			longest = 1 + roll(random, 3);
	Database	database = call_forms[program[first].call].database;
	int			dice = roll(random, 8);
	int			savepoint = -1;
	Step		end = {.kind = dice == 0 ? STEP_ROLLBACK : STEP_COMMIT, .actor = program[0].actor};

	while (last + 1 < count && last - first < longest && call_forms[program[last + 1].call].database == database)
		last++;
	dice = roll(random, 6);
	program[first].begin = dice == 0 ? LEVEL_SERIALIZABLE : dice == 1 ? LEVEL_REPEATABLE_READ : LEVEL_READ_COMMITTED;
	if (last > first && roll(random, 4) == 0)
	{
		savepoint = first + 1 + roll(random, last - first);
		program[savepoint].savepoint = true;
	}
	memmove(&program[last + 2], &program[last + 1], (count - last - 1) * sizeof(Step));
	program[last + 1] = end;
	count++;
	if (savepoint >= 0)
	{
		int			at = savepoint + 1 + roll(random, last - savepoint + 1);

		end.kind = STEP_ROLLBACK_TO;
		memmove(&program[at + 1], &program[at], (count - at) * sizeof(Step));
		program[at] = end;
		count++;
	}
	return count;
}

static Fault
draw_fault(Random *random)
{
	static const Fault often[] = {FAULT_LOST_REQUEST, FAULT_LOST_REPLY, FAULT_LOST_REPLY, FAULT_LOST_REPLY,
		FAULT_DUPLICATE, FAULT_DUPLICATE, FAULT_LATE_DUPLICATE, FAULT_LATE_DUPLICATE, FAULT_CLOCK_BACK, FAULT_CANCEL};

	/* Rare, since a new connection costs the server as much as many calls. */
	if (roll(random, 100) == 0)
		return roll(random, 2) == 0 ? FAULT_CUT : FAULT_TERMINATE;
	return PICK(random, often);
}

/* insert puts a step into the schedule. */
static void
insert(Plan *plan, int at, Step step)
{
	if (plan->steps == STEPS)
		return;
	memmove(&plan->step[at + 1], &plan->step[at], (plan->steps - at) * sizeof(Step));
	plan->step[at] = step;
	plan->steps++;
}

/* repeat puts the same call again behind step `at`, by the same actor. */
static void
repeat(Plan *plan, int at, Fault fault, int behind)
{
	Step		again = plan->step[at];

	again.fault = fault;
	again.begin = LEVEL_NONE;
	again.savepoint = false;
	insert(plan, behind, again);
}

/* draw_faults lets something go wrong, at a rate of its own for each plan. */
static void
draw_faults(Random *random, Plan *plan)
{
	static const int rates[] = {0, 20, 12, 8, 5};
	int			rate = PICK(random, rates);

	for (int i = 0; rate > 0 && i < plan->steps; i++)
	{
		Step	   *step = &plan->step[i];
		Fault		fault;

		if (step->kind != STEP_CALL || step->fault != FAULT_NONE || roll(random, rate) != 0)
			continue;
		fault = draw_fault(random);
		if (fault == FAULT_DUPLICATE)
			repeat(plan, i, fault, i + 1);
		else if (fault == FAULT_LATE_DUPLICATE)
			repeat(plan, i, fault, i + 1 + roll(random, plan->steps - i));
		else
		{
			step->fault = fault;
			/* Who got no answer asks again, now or later; or never. */
			if (fault != FAULT_CLOCK_BACK && roll(random, 3) != 0)
				repeat(plan, i, FAULT_NONE, i + 1 + roll(random, plan->steps - i));
		}
	}
	/* A partition: an actor can't reach the ledger, or can't hear it, for some steps. */
	if (roll(random, 12) == 0)
	{
		int			actor = 1 + roll(random, plan->actors);
		int			left = 2 + roll(random, 3);
		Fault		fault = roll(random, 2) == 0 ? FAULT_PARTITION_REQUEST : FAULT_PARTITION_REPLY;

		for (int i = roll(random, plan->steps); i < plan->steps && left > 0; i++)
			if (plan->step[i].kind == STEP_CALL && plan->step[i].actor == actor && plan->step[i].fault == FAULT_NONE &&
				call_forms[plan->step[i].call].database == LEDGER)
			{
				plan->step[i].fault = fault;
				left--;
			}
	}
}

/* draw_clock moves the clock at some places, to where something is due or a little later. */
static void
draw_clock(Random *random, Plan *plan, int from)
{
	static const ClockStep usual[] = {CLOCK_TICK, CLOCK_TICK, CLOCK_HOLD, CLOCK_PAST_HOLD, CLOCK_EPOCH, CLOCK_EXECUTION};
	static const ClockStep expiring[] = {CLOCK_HOLD, CLOCK_HOLD, CLOCK_PAST_HOLD, CLOCK_PAST_HOLD, CLOCK_EXECUTION, CLOCK_TICK};
	static const ClockStep epochs[] = {CLOCK_EPOCH, CLOCK_EPOCH, CLOCK_EPOCH, CLOCK_TICK, CLOCK_LONG, CLOCK_HOLD};
	int			count = roll(random, 3);

	if (plan->scenario == EXPIRY || plan->scenario == EPOCHS || plan->scenario == EXTENSION || policies[plan->policy].real)
		count++;
	while (count-- > 0)
	{
		Step		step = {.kind = STEP_CLOCK};

		step.clock = plan->scenario == EXPIRY || plan->scenario == EXTENSION ? PICK(random, expiring)
			: plan->scenario == EPOCHS ? PICK(random, epochs) : PICK(random, usual);
		insert(plan, from + roll(random, plan->steps - from + 1), step);
	}
}

static int
draw_policy(Random *random, int scenario, bool real)
{
	static const char *const windows[] = {"window", "window", "narrow", "continuous", "fraction"};
	int			policy;

	if (scenario == SHARDS || scenario == OLD_SHARD)
		return policy_by_name("shard");
	if (scenario == EPOCHS && !real)
		return policy_by_name(PICK(random, windows));
	do
		policy = roll(random, policy_count);
	while (policies[policy].real != real || policies[policy].share > 0);
	return policy;
}

/* plan_draw makes a plan. */
void
plan_draw(Plan *plan, Random *random, bool real)
{
	Step		program[ACTORS + 1][16];
	int			length[ACTORS + 1];
	int			place[ACTORS + 1];
	int			total = 0;
	int			weights = 0;
	int			dice;
	int			from;
	bool		shards;
	Amount		usual[ITEMS + 1];
	int			owns = 1;

	memset(plan, 0, sizeof(*plan));
	for (int i = 0; i < scenario_count; i++)
		weights += scenarios[i].weight;
	do
	{
		dice = roll(random, weights);
		for (plan->scenario = 0; dice >= scenarios[plan->scenario].weight; plan->scenario++)
			dice -= scenarios[plan->scenario].weight;
		shards = plan->scenario == SHARDS || plan->scenario == OLD_SHARD;
	}
	while (real && (shards || plan->scenario == GENERATIONS));
	plan->policy = draw_policy(random, plan->scenario, real);
	plan->actors = roll(random, 5) == 0 ? 5 : 4;

	/* What the rest needs comes first, and in order. */
	if (plan->scenario == GENERATIONS)
		plan->step[plan->steps++] = (Step) {.kind = STEP_CALL, .actor = 1, .call = CALL_PUBLISH, .item = 1};
	if (shards)
	{
		plan->step[plan->steps++] = (Step) {.kind = STEP_CALL, .actor = 1, .call = CALL_ISSUE, .item = 1, .amount = PICK(random, in_shard)};
		plan->step[plan->steps++] = (Step) {.kind = STEP_CALL, .actor = 1, .call = CALL_SIGN, .item = 1};
		if (roll(random, 3) != 0)
			plan->step[plan->steps++] = (Step) {.kind = STEP_CALL, .actor = 2, .call = CALL_ACCEPT, .item = 1};
	}
	from = plan->steps;
	for (int item = 0; item <= ITEMS; item++)
		usual[item] = roll(random, 3) == 0 ? PICK(random, asked) : asked[roll(random, 6)];

	for (int actor = 1; actor <= plan->actors; actor++)
	{
		Role		role = casts[plan->scenario][actor - 1];
		int			own = plan->scenario == SAME_ID ? 1 : 1 + roll(random, 3);

		/* Mostly an actor has to do with what the first one reserves. */
		if (actor > 1 && role != ROLE_GATEWAY && roll(random, 4) != 0)
			own = owns;
		if (actor == 1)
			owns = own;

		length[actor] = 4 + (roll(random, 6) == 0);
		for (int i = 0; i < length[actor]; i++)
		{
			program[actor][i] = draw_call(random, plan->scenario, role, own, usual);
			if (i == 0)
				opening(random, role, own, usual, &program[actor][i]);
			program[actor][i].actor = actor;
		}
		if (roll(random, 5) < 2)
			length[actor] = in_transactions(random, program[actor], length[actor]);
		place[actor] = 0;
		total += length[actor];
	}

	/* In most plans something is reserved before the rest begins, else few calls would find it. */
	for (int actor = 1; actor <= plan->actors; actor++)
		if (casts[plan->scenario][actor - 1] == ROLE_GATEWAY && program[actor][0].begin == LEVEL_NONE && roll(random, 5) < 3)
		{
			plan->step[plan->steps++] = program[actor][place[actor]++];
			total--;
		}

	/* Then any order that keeps each program's own is as likely as any other. */
	while (total > 0)
	{
		int			actor = 1;

		dice = roll(random, total);
		while (dice >= length[actor] - place[actor])
		{
			dice -= length[actor] - place[actor];
			actor++;
		}
		plan->step[plan->steps++] = program[actor][place[actor]++];
		total--;
	}
	draw_faults(random, plan);
	draw_clock(random, plan, from);
	plan_hash(plan);
}
