/*
 * world.h
 *	  The protocol as a state and the steps that lead out of it.
 *
 * A world is everything that decides what may happen next: the ledger's rows,
 * the gateways' rows, what each actor knows, the messages in flight, how many
 * faults are left, and the ghost record of what really ran and what was told.
 * src/core decides; ledger.c and gateway.c are the transaction scripts around
 * it; steps.c says which steps a world allows and takes one; oracle.c, which
 * knows the structs of core and none of its functions, judges each step.
 *
 * Small fixed arrays, so that a world is copied and hashed in no time.
 */
#ifndef EXPLORE_WORLD_H
#define EXPLORE_WORLD_H

#include <stddef.h>
#include <string.h>

#include "core/core.h"
#include "ledger/roll.h"

enum
{
	CLIENTS = 3,				/* each has one reservation, of its own number */
	EXECUTORS = 3,
	RECONCILERS = 2,
	ACTORS = CLIENTS + EXECUTORS + RECONCILERS,
	IDS = CLIENTS + 1,			/* one is for the last question, see quiesce() */
	GATEWAYS = 2,
	SHARDS = 2,
	REPORTS = 3,
	POLICIES = 2,
	CLOSED = 24,
	MESSAGES = 12,
	STEPS = 160,				/* that one world may allow */
	LENGTH = 400,				/* of one interleaving */
	RECORDED = EXECUTORS + 1	/* the operation of usage without a reservation */
};

#define BASE	LL_PERIOD_ORIGIN	/* tick 0 */

/* How often each fault, and each deed that nobody waits for, may still happen. */
#define ALLOWANCES(A) \
	A(lose) A(duplicate) A(late) A(crash) A(restart) A(boot) A(cut) A(back) A(tick) \
	A(retry) A(cancel) A(extend) A(progress) A(forget) A(lease) A(attest) \
	A(publish) A(freeze) A(unfreeze) A(grant) A(record) \
	A(issue) A(again) A(foreign) A(seal) A(report) A(write_off)

/* The figures of a setup; what is not given is zero. */
#define AMOUNTS(A) \
	A(clients) A(executors) A(rivals) A(local) A(locks) A(at_once) A(resolve) A(deadline) \
	A(kind) A(cap) A(refill) A(interval) A(epoch) A(largest) A(outstanding) \
	A(hard_limit) A(overdraft) A(hold_ttl) A(execution_ttl) \
	A(next_kind) A(next_cap) A(next_refill) A(next_interval) A(next_epoch) \
	A(units1) A(units2) A(units3) A(run1) A(run2) A(run3) A(more) A(granted) A(recorded) \
	A(share) A(shard1) A(shard2) A(shard_ttl) A(same_gateway) A(shared)

#define MEMBER(name)	int name;
typedef struct Allowances
{
	ALLOWANCES(MEMBER)
} Allowances;

typedef struct Amounts
{
	AMOUNTS(MEMBER)
} Amounts;

#define ALLOWANCE_COUNT	((int) (sizeof(Allowances) / sizeof(int)))
#define AMOUNT_COUNT	((int) (sizeof(Amounts) / sizeof(int)))

extern const char *const allowance_name[];
extern const char *const amount_name[];

/* Who there is, with which figures and faults.  Nothing of it changes in a run. */
typedef struct Setup
{
	const char *name;
	const char *covers;
	Allowances	allow;
	Amounts		amounts;
} Setup;

/* What follows from the figures. */
extern Setup setup;
extern LLPolicy setup_policy[POLICIES];
extern LLPeriods setup_periods[POLICIES];

/* ---- the ledger's rows --------------------------------------------------- */

typedef struct Row
{
	LLReservation r;			/* ABSENT: no row */
	int8_t		budget;			/* in opening order; -1: a fence.  At a gateway the shard */
	int8_t		excess_budget;
	int8_t		asked;
	int8_t		operation;		/* 0: none */
	bool		extended;		/* its one extension id is stored */
	bool		attested;
	int8_t		report;			/* that carries the receipt, at a gateway */
} Row;

/* A shard's row at the ledger. */
typedef struct Issued
{
	LLIssuedShard state;
	bool		there;
	bool		settled;
	int8_t		gateway;
	int8_t		boot;
	int8_t		fence;
	int8_t		policy;
	int8_t		reconciled;		/* number of the last report */
	LLTime		expires_at;
	int16_t		excess[REPORTS + 1];	/* booked by each report ... */
	int8_t		budget[REPORTS + 1];	/* ... and where */
} Issued;

typedef struct Ledger
{
	LLPair		pair;
	Row			row[IDS];
	Issued		shard[SHARDS];
	LLTime		since;			/* of the second policy */
	int16_t		recorded;		/* usage without a reservation; -1: none yet */
	int16_t		granted;		/* in sum */
	bool		grant_stored;	/* under its id */
	int8_t		recorded_budget;
	int8_t		policies;
	int8_t		in_force;
	int8_t		closed_count;
	bool		rolled;			/* this call's roll is worth keeping */
	LLBudget	closed[CLOSED]; /* last, so that a copy stops behind what is there */
} Ledger;

/* ---- the gateways' rows -------------------------------------------------- */

typedef struct Report
{
	int16_t		allocated;
	int16_t		available;
	int16_t		reserved;
	int16_t		spent;
	int16_t		retired;
	int16_t		excess;
	int16_t		receipted;		/* what its receipts say was used */
	bool		sealed;
	bool		breach;
} Report;

typedef struct Local
{
	LLShard		shard;
	bool		accepted;
	int8_t		boot;			/* of its gateway, when it was accepted */
	int8_t		cut;			/* number of the last report */
	LLTime		seen_at;
	Report		report[REPORTS + 1];
} Local;

typedef struct Gateway
{
	int8_t		boot;
	int8_t		fence;			/* the highest that it has seen */
	bool		cut;			/* off from the ledger */
} Gateway;

/* ---- actors and messages ------------------------------------------------- */

typedef enum CallName
{
	RESERVE, START, SETTLE, RELEASE, UNKNOWN, PROGRESS, EXTEND, RESOLVE
} CallName;

typedef enum Phase
{
	IDLE,
	/* of a client */
	RESERVING, RESOLVING, HOLDS, RELEASING, EXTENDING, GIVEN, REFUSED,
	/* of an executor */
	STARTING, MAY_RUN, RAN, REPORTING_PROGRESS, SETTLING, FORGOT, REPORTING_UNKNOWN,
	/* of a reconciler: SETTLING, or */
	CLAIMED,
	DONE
} Phase;

typedef struct Actor
{
	uint8_t		phase;
	uint8_t		lost;			/* no reply came: it does not know */
	uint8_t		local;			/* a client that asked its gateway */
	uint8_t		item;			/* what a reconciler has claimed */
} Actor;

typedef struct Message
{
	uint8_t		actor;
	uint8_t		call;
	uint8_t		id;
	uint8_t		operation;
	int8_t		units;
	int8_t		until;			/* the caller's deadline, or that of an extension; -1: none */
	uint8_t		late;			/* nobody waits for its reply any more */
	uint8_t		locked;			/* its transaction holds the pair */
} Message;

/* What really happened, whatever rows say; by reservation. */
typedef struct Ghost
{
	int8_t		runs;
	int8_t		ran;			/* units */
	int8_t		runner;			/* the operation that was told to run */
	int8_t		told;			/* the furthest state that anybody was told */
	int8_t		told_actual;	/* and what it was settled with; -1: not told */
} Ghost;

typedef struct World
{
	LLTime		clock;
	LLTime		latest;			/* that any clock has shown */
	LLTime		locked_at;		/* the clock that the transaction with the lock has read */
	LLTime		switched_at;	/* `latest` when the second policy was published ... */
	LLTime		switched_from;	/* ... and the earliest clock at which it may have taken over */
	uint8_t		left[ALLOWANCE_COUNT];
	Actor		actor[ACTORS];
	Ghost		ghost[IDS];
	int8_t		locked_policies;	/* that the transaction with the lock sees */
	int8_t		messages;
	Message		message[MESSAGES];
	Gateway		gateway[GATEWAYS];
	Local		local[SHARDS];
	Row			item[CLIENTS];	/* of the gateways */
	Ledger		ledger;
} World;

/* What a call answered. */
typedef struct Answer
{
	LLOutcome	outcome;
	LLDimension dimension;
	LLState		state;
	bool		replayed;
	bool		overflow;
	LLUnits		reserved;
	LLUnits		actual;
	int			operation;
} Answer;

/* ---- steps --------------------------------------------------------------- */

typedef enum StepKind
{
	SEND, TAKE, TIME_OUT, LOCK, RUN, GO_LOST,
	TICK, STEP_BACK, CRASH, CUT, HEAL,
	CLAIM, FINISH, END_EXECUTIONS, REPAY,
	LEASE, ATTEST, PUBLISH, FREEZE, UNFREEZE, GRANT, RECORD,
	ISSUE, WRITE_OFF, RECONCILE,
	ACCEPT, SEAL, BOOT, LOCAL_SWEEP, LOCAL_RECEIPT, REPORT
} StepKind;
#define STEP_KINDS	(REPORT + 1)

/* How a message is taken. */
typedef enum Manner
{
	ANSWERED, REPLY_LOST, REQUEST_LOST, DUPLICATED
} Manner;

typedef struct Step
{
	uint8_t		kind;
	uint8_t		who;			/* actor, message, gateway, shard or row, by kind */
	uint8_t		what;
	uint8_t		how;
} Step;

/* What one step did, for the oracle. */
typedef struct Deed
{
	Step		step;
	bool		called;			/* a transaction of the ledger ... */
	bool		local;			/* ... or of a gateway */
	Message		message;		/* the call, if it came as one */
	Answer		answer;
	LLTime		now;			/* the clock that it read */
} Deed;

extern int	steps_of(const World *w, Step *step);
extern void take_step(World *w, Step step, Deed *deed);
extern int	step_text(const World *w, Step step, char *text, size_t size);

/* ---- setups -------------------------------------------------------------- */

extern const Setup *setup_named(const char *name);
extern const Setup *setup_at(int index);
extern void setup_use(const Setup *chosen);
extern int	units_of(int client);
extern void setup_draw(uint64_t (*random) (uint64_t below));
extern void world_open(World *w);

static inline void
world_copy(World *to, const World *from)
{
	memcpy(to, from, offsetof(World, ledger.closed) +
		   sizeof(LLBudget) * (size_t) from->ledger.closed_count);
}

extern uint64_t world_key(const World *w);

static inline int
gateway_of(int client)
{
	return setup.amounts.same_gateway ? 0 : client % GATEWAYS;
}

/* With rivals, executors compete for one reservation. */
static inline int
target_of(int executor)
{
	return setup.amounts.rivals ? executor / 2 : executor % setup.amounts.clients;
}

/* ---- the scripts --------------------------------------------------------- */

extern void ledger_open(Ledger *l);
extern Answer ledger_call(Ledger *l, const Message *m, LLTime clock);
extern bool ledger_locks(const Ledger *l, const Message *m);
extern Answer ledger_step(Ledger *l, const World *w, Step step);
extern Answer ledger_lease(Ledger *l, LLTime clock, int *id);
extern Answer ledger_reconcile(Ledger *l, int shard, int number, const Report *report, LLTime clock);

extern Answer gateway_call(World *w, const Message *m);
extern Answer gateway_step(World *w, Step step);
extern int	gateway_unreported(const World *w, int shard);

/* ---- the oracle ---------------------------------------------------------- */

/* The five counters, and the checks that feed them. */
#define COUNTERS(C) \
	C(discrepancies) C(overspends) C(second_reservations) C(duplicate_consumptions) \
	C(unrecorded_debts)

#define NUMBER(name)	COUNTER_##name,
typedef enum Counter
{
	COUNTERS(NUMBER)
	COUNTER_COUNT
} Counter;

typedef struct Finding
{
	const char *check;			/* NULL: all is well */
	const char *rule;
	Counter		counter;
} Finding;

extern Finding oracle_step(const World *before, const World *after, const Deed *deed);
extern Finding oracle_end(const World *w);
extern const char *counter_name(Counter counter);

/* quiesce stops all faults, lets everybody finish, and asks whether all ended. */
extern Finding quiesce(World *w, long *taken);

/* judged_step takes one step into another world and judges it. */
static inline Finding
judged_step(const World *from, World *to, Step step)
{
	Deed		deed;

	world_copy(to, from);
	take_step(to, step, &deed);
	return oracle_step(from, to, &deed);
}

#endif							/* EXPLORE_WORLD_H */
