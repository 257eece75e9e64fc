/*
 * driver.h
 *	  The gate's driver: what its parts share.
 *
 * An interleaving is played from a plan: who the actors are, what each of them
 * does, in which order the steps are sent, and what goes wrong on the way.  A
 * plan has no raw numbers and no names of this run, so its text is what a
 * history shows, what --replay takes, and what the identity of the interleaving
 * is the hash of.
 *
 *	  draw.c	 makes a plan from a seed
 *	  plan.c	 a plan as text, and back; its hash
 *	  call.c	 the calls, their arguments and amounts; the policies
 *	  play.c	 plays a plan on connections, and writes its history
 *	  lane.c	 the databases of a lane, its groups and its auditor
 *	  session.c	 one connection, asynchronous
 *	  server.c	 the server, and how it is made to fail
 *	  tally.c	 hashes and counters that outlive the run
 *	  driver.c	 options, the loop, the end
 */
#ifndef GATE_DRIVER_H
#define GATE_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <libpq-fe.h>

typedef int64_t Instant;		/* microseconds since 1970-01-01 00:00 UTC */

#define SECOND		INT64_C(1000000)

#define ACTORS		6			/* at most, of one interleaving */
#define STEPS		72
#define ITEMS		6			/* reservations, operations, shards: numbered from 1 */
#define CALLS		400			/* of one interleaving, questions included */

/* ---- random numbers: splitmix64 ------------------------------------------ */

typedef struct Random
{
	uint64_t	state;
} Random;

extern uint64_t draw(Random *random);
extern int	roll(Random *random, int sides);	/* 0 .. sides - 1 */

/* ---- text that grows ------------------------------------------------------ */

typedef struct Text
{
	char	   *data;
	size_t		length;
	size_t		size;
} Text;

extern void text_add(Text *text, const char *format,...) __attribute__((format(printf, 2, 3)));
extern void text_add_bytes(Text *text, const char *bytes, size_t length);
extern void text_add_field(Text *text, const char *value);	/* a tab, and the value escaped */
extern void text_clear(Text *text);

extern void fail(const char *format,...) __attribute__((format(printf, 1, 2), noreturn));

/* ---- policies, amounts, calls (call.c) ------------------------------------ */

typedef struct Policy
{
	const char *name;			/* of its route as well */
	const char *refill;			/* continuous, window, none */
	int64_t		cap;
	int64_t		refill_units;
	Instant		refill_interval;
	Instant		epoch;
	int64_t		largest_reservation;
	int64_t		largest_outstanding;	/* 0: no limit */
	int64_t		hard_limit;
	int64_t		maximum_overdraft;
	Instant		hold_ttl;
	Instant		execution_ttl;
	int			share;			/* 0: no shards */
	Instant		shard_ttl;
	bool		real;			/* short enough to be waited for */
} Policy;

extern const Policy policies[];
extern const int policy_count;

extern int	policy_by_name(const char *name);
extern Instant policy_since(const Policy *policy);
extern void policy_document(Text *text, const Policy *policy, const char *route);

typedef enum Amount
{
	AMOUNT_ZERO, AMOUNT_ONE, AMOUNT_FEW, AMOUNT_TENTH, AMOUNT_THIRD, AMOUNT_HALF, AMOUNT_OVER_HALF,
	AMOUNT_LARGEST, AMOUNT_WHOLE, AMOUNT_OVER, AMOUNT_DEBT, AMOUNT_LIMIT, AMOUNT_BREACH, AMOUNT_BIGINT,
	AMOUNTS
} Amount;

extern const char *const amount_names[AMOUNTS];
extern int64_t amount_units(Amount amount, const Policy *policy);

typedef enum Database
{
	LEDGER, GATEWAY, GATEWAY2, DATABASES
} Database;

extern const char *const database_names[DATABASES];

typedef enum CallKind
{
	CALL_RESERVE, CALL_RESERVE_START, CALL_RESERVE_DEADLINE,
	CALL_START, CALL_SETTLE, CALL_RELEASE, CALL_REPORT_UNKNOWN, CALL_PROGRESS, CALL_EXTEND, CALL_EXTEND_UNTIL,
	CALL_GET, CALL_RESOLVE,
	CALL_RECORD, CALL_IMPORT, CALL_BUDGET, CALL_REPAY, CALL_GRANT, CALL_FREEZE, CALL_UNFREEZE,
	CALL_CLAIM, CALL_FINISH, CALL_EXPIRE, CALL_EXECUTIONS, CALL_CLAIM_UNKNOWN, CALL_REPAY_DEBTORS,
	CALL_PUBLISH,
	CALL_ISSUE, CALL_SIGN, CALL_RECONCILE, CALL_WRITE_OFF, CALL_ANNOUNCE,
	CALL_ACCEPT, CALL_SHARD_RESERVE, CALL_SHARD_RESERVE_START, CALL_SHARD_START, CALL_SHARD_SETTLE,
	CALL_SHARD_RELEASE, CALL_SHARD_UNKNOWN, CALL_SEAL, CALL_CUT, CALL_REPORT, CALL_RENEW, CALL_SWEEP_SHARDS,
	CALL_ACCEPT2, CALL_SHARD_RESERVE2,
	CALL_KINDS
} CallKind;

/*
 * `args` has a letter for each argument of the function:
 *	  s subject, r route, i reservation, u units, d digest, o operation, e extension,
 *	  v operation that was never reserved, g grant, x reason, n batch, l lease, c who claims, D deadline, U until,
 *	  h shard, w gateway, E envelope of a shard, R envelope of a report, B boot,
 *	  j document, k source, a before any route, . NULL
 */
typedef struct CallForm
{
	const char *name;			/* in a plan */
	const char *function;
	const char *args;
	Database	database;
	bool		receipt;		/* answers with a receipt */
	bool		once;			/* the same again is the same answer */
} CallForm;

extern const CallForm call_forms[CALL_KINDS];

/* ---- plans (plan.c, draw.c) ------------------------------------------------ */

typedef enum StepKind
{
	STEP_CALL, STEP_COMMIT, STEP_ROLLBACK, STEP_ROLLBACK_TO, STEP_CLOCK
} StepKind;

typedef enum Level
{
	LEVEL_NONE, LEVEL_READ_COMMITTED, LEVEL_REPEATABLE_READ, LEVEL_SERIALIZABLE, LEVELS
} Level;

extern const char *const level_names[LEVELS];

typedef enum Fault
{
	FAULT_NONE,
	FAULT_LOST_REQUEST,			/* never sent */
	FAULT_LOST_REPLY,			/* the answer is read and thrown away */
	FAULT_CUT,					/* the connection is closed once the call was sent */
	FAULT_DUPLICATE,			/* this step repeats another one at once */
	FAULT_LATE_DUPLICATE,		/* or later */
	FAULT_CANCEL,				/* as pg_cancel_backend does */
	FAULT_TERMINATE,			/* as pg_terminate_backend does */
	FAULT_CLOCK_BACK,			/* the clock of this call is behind */
	FAULT_PARTITION_REQUEST,	/* the ledger is out of reach for a while: requests are lost */
	FAULT_PARTITION_REPLY,		/* or replies are */
	FAULTS
} Fault;

extern const char *const fault_names[FAULTS];

typedef enum ClockStep
{
	CLOCK_TICK, CLOCK_HOLD, CLOCK_PAST_HOLD, CLOCK_EPOCH, CLOCK_EXECUTION, CLOCK_LONG, CLOCK_STEPS
} ClockStep;

extern const char *const clock_names[CLOCK_STEPS];

typedef struct Step
{
	StepKind	kind;
	int			actor;			/* from 1 */
	CallKind	call;
	int			item;			/* from 1; 0: the call has none */
	Amount		amount;
	bool		other;			/* another operation or digest than the item's own */
	Level		begin;			/* opens a transaction first */
	bool		savepoint;		/* sets one first */
	Fault		fault;
	ClockStep	clock;
} Step;

typedef struct Plan
{
	int			scenario;
	int			policy;
	int			actors;
	int			steps;
	Step		step[STEPS];
	uint64_t	hash;
} Plan;

typedef struct Scenario
{
	const char *name;
	int			weight;
	const char *about;
} Scenario;

extern const Scenario scenarios[];
extern const int scenario_count;

extern void plan_draw(Plan *plan, Random *random, bool real);
extern void plan_text(Text *text, const Plan *plan);
extern void plan_hash(Plan *plan);
extern bool plan_read(Plan *plan, const char *text, const char **problem);

/* ---- the server (server.c) -------------------------------------------------- */

typedef struct Server
{
	char		folder[256];
	bool		workers;		/* background workers do what is due */
} Server;

/* With the virtual clock nothing moves but what is called; the other one has workers. */
enum
{
	VIRTUAL, REAL, SERVERS
};

extern Server servers[SERVERS];

extern void servers_start(const char *root);
extern void server_kill_and_start(Server *server);
extern void server_wait(Server *server);	/* until it takes connections again */
extern void servers_stop(void);
extern void server_flush(Server *server, bool on);	/* fsync */
extern void server_fail_flush(int which);	/* the which'th flush of the log from now */
extern bool server_flush_failed(void);
extern void server_make_key(Server *server, const char *name, char *public_line, size_t size);

/* ---- one connection (session.c) ---------------------------------------------- */

typedef enum Command
{
	COMMAND_PREPARE, COMMAND_CLOCK, COMMAND_BEGIN, COMMAND_SAVEPOINT, COMMAND_CALL,
	COMMAND_COMMIT, COMMAND_ROLLBACK, COMMAND_ROLLBACK_TO
} Command;

#define COMMANDS	8			/* in one flush */

typedef struct Session
{
	struct Lane *lane;
	int			actor;			/* from 1; 0: the lane's own questions */
	Database	database;
	PGconn	   *conn;			/* NULL: not connected */
	int			pid;			/* of the backend */
	int			stat;			/* /proc/<pid>/stat, open */
	bool		prepared[CALL_KINDS];
	Instant		clock;			/* limitledger.clock_override; 0: none, -1: not known */

	Command		command[COMMANDS];	/* sent, not answered yet */
	int			commands;
	int			answered;
	bool		busy;
	int			asleep;			/* how often it was seen so since it was sent something */
	int			call;			/* the call under way; 0: none */

	int			transaction;	/* open one; 0: none */
	Level		level;
	bool		aborted;		/* an error came in it */
	bool		savepoint;		/* one is set in it */
	bool		ending;			/* its COMMIT is under way */
	bool		failed;			/* what was sent last had an error */
	Instant		new_clock;		/* that was sent along */
	bool		cancel;			/* cancel the call once it waits for a lock */
} Session;

extern bool session_connect(Session *session, const char *database);
extern void session_close(Session *session);
extern bool session_asleep(Session *session);
extern PGconn *connect_to(const Server *server, const char *database);
extern void sql_do(PGconn *conn, const char *format,...) __attribute__((format(printf, 2, 3)));
extern char *sql_value(PGconn *conn, const char *format,...) __attribute__((format(printf, 2, 3)));

/* ---- lanes (lane.c) ------------------------------------------------------------ */

typedef enum Outcome
{
	OUTCOME_NONE, OUTCOME_SENT, OUTCOME_DONE, OUTCOME_ERROR, OUTCOME_LOST, OUTCOME_UNSENT
} Outcome;

typedef struct Call
{
	Step		step;
	int			transaction;
	bool		question;
	bool		repeated;		/* asked again already */
	bool		rolled_back;	/* its transaction, or savepoint, did not stay */
	bool		in_transaction;
	Outcome		outcome;
	bool		accepted;
	char		state[24];
	char		operation[16];
} Call;

typedef struct Lane
{
	int			number;
	bool		real;
	Server	   *server;
	Random		random;
	char		database[DATABASES][32];
	Session		session[ACTORS + 1][DATABASES];
	int			made;			/* how often its databases were made */

	/* the interleaving that is played */
	bool		playing;
	Plan		plan;
	int64_t		number_played;
	char		subject[48];
	char		route[56];
	Instant		clock;
	Instant		sleep_until;	/* of the driver's clock */
	bool		sent[STEPS];
	int			calls;
	Call		call[CALLS + 1];	/* from 1 */
	int			transactions;
	int			questions;		/* 0: not at rest yet; then the stage */
	int			asked;			/* where in the stage */
	int			item_stage[ITEMS + 1];
	int			shard_stage[ITEMS + 1];
	bool		sweep;
	bool		skipping[ACTORS + 1];	/* the transaction is gone: what is left of it is not sent */
	int			ghosts[16];		/* backends whose connection was cut */
	int			ghost_count;
	Instant		moved;			/* when it last made progress */
	int64_t		generation[64];	/* published here, and told to the auditor */
	int			document[64];	/* and the number of its document */
	int			published;
	char	   *shard_envelope[ITEMS + 1];
	char	   *report_envelope[ITEMS + 1];
	char		boot[64];		/* of the gateway, as the ledger was told */
	bool		boot_old;		/* the server was started since */
	Text		history;		/* of this interleaving */

	/* its groups: the one that is written, and those that wait for the auditor */
	int			groups;
	struct Group *group;
	FILE	   *file;
	struct Group *waiting;		/* the oldest first */
	bool		stopping;		/* takes no new plan */

	/* its auditor */
	struct Auditor *auditor;
} Lane;

extern Lane *lanes;
extern int	lane_count;

extern void lanes_make(void);	/* the templates, then the lanes */
extern void lane_open(Lane *lane);	/* its databases, anew */
extern void lane_end_interleaving(Lane *lane);
extern void lane_end_group(Lane *lane);
extern void lane_read_auditor(Lane *lane);
extern void lane_start_auditor(Lane *lane);
extern void lane_stop_auditor(Lane *lane);	/* once it has answered all it was asked */
extern bool lane_rests(const Lane *lane);	/* nothing is played, nothing waits for the auditor */

/* ---- what was done (tally.c) ------------------------------------------------------ */

typedef struct Group
{
	struct Group *next;
	char		path[400];
	bool		asked;			/* of the auditor */
	int			count;
	uint64_t   *hash;
	int64_t		scenario[32];
	int64_t		fault[32];
	int64_t		named[32];
} Group;

typedef struct Tally
{
	int64_t		interleavings;	/* distinct, played to their end and judged */
	int64_t		repeats;		/* drawn again, and not played again */
	int64_t		calls;
	int64_t		crash_recoveries;
	int64_t		flush_failures;
	int64_t		discrepancies;
	int64_t		overspends;
	int64_t		second_reservations;
	int64_t		duplicate_consumptions;
	int64_t		unrecorded_debts;
	int64_t		scenario[32];
	int64_t		fault[32];
	int64_t		named[32];		/* the faults that the gate names */
} Tally;

extern Tally tally;
extern const char *const named_faults[];
extern const int named_fault_count;

extern void tally_open(const char *state);
extern bool tally_claim(uint64_t hash);	/* false: it was there before */
extern void tally_name_faults(const Lane *lane, Group *group);
extern void tally_group(const Group *group);
extern void tally_save(void);
extern void tally_print(void);

/* ---- playing (play.c) ------------------------------------------------------------ */

extern void play_begin(Lane *lane, const Plan *plan);
extern void play_on(Lane *lane);	/* sends what may be sent */
extern void play_read(Session *session);	/* its socket has something */
extern void play_lost(Session *session);	/* its connection is gone */
extern void play_server_fault(Lane *lane, const char *fault);
extern void play_policies(Text *text);
extern bool play_watches(const Lane *lane);	/* a call may be waiting for a lock */

/* ---- options, time ---------------------------------------------------------------- */

typedef struct Options
{
	double		minutes;
	int64_t		interleavings;
	int			lanes;
	int			real_lanes;
	uint64_t	seed;
	int			crashes;
	int			flush_failures;
	const char *auditor;
	const char *state;
	const char *histories;
	const char *replay;
	const char *root;
	int			group;
	int			remake;
	bool		keep;
	bool		first;
} Options;

extern Options options;
extern Instant now_of_driver(void);
extern void watch(Session *session);	/* adds its socket to the loop */
extern void watch_auditor(Lane *lane, int file);

#endif							/* GATE_DRIVER_H */
