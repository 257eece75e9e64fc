/*
 * auditor.h
 *	  The judge of what the gate's driver wrote down: what is shared by its parts.
 *
 * Knows nothing of src/ and of the driver but ../history.md, docs/rules.md and the
 * tables.  history.c reads a history, rows.c the tables, spec.c decides calls one
 * after the other by the rules, search.c looks for an order of the transactions in
 * which it would have given the same answers and left the same rows, told.c holds
 * single answers against each other and against the rows, stored.c the rows
 * against each other.
 */
#ifndef GATE_AUDITOR_H
#define GATE_AUDITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER		INT64_MAX	/* an instant, or no limit */
#define NO_CLOCK	INT64_MIN

/* ---- memory and words (words.c) ------------------------------------------ */

/* All of a file is given back at once. */
extern void *arena_new(size_t size);
extern char *arena_text(const char *text, size_t length);
extern void arena_reset(void);

/* grow makes room for one more element of an array that lives in the arena. */
extern void *grow(void *array, int count, size_t size);
#define PUSH(array, count)	((array) = grow(array, count, sizeof(*(array))), &(array)[(count)++])

/* A word is a text by number: equal if the numbers are; 0 is NULL. */
extern int	word(const char *text);
extern int	word_of_digest(const char *text);
extern const char *text_of(int word);

/* ---- the history (history.c) --------------------------------------------- */

typedef enum Function
{
	F_RESERVE, F_START, F_SETTLE, F_RELEASE, F_REPORT_UNKNOWN, F_REPORT_PROGRESS, F_EXTEND,
	F_RECORD_USAGE, F_IMPORT_USAGE, F_GET, F_RESOLVE,
	F_RESERVE_BATCH, F_START_BATCH, F_SETTLE_BATCH, F_RELEASE_BATCH, F_RECORD_BATCH,
	F_GET_BUDGET, F_REPAY, F_GRANT, F_FREEZE, F_UNFREEZE, F_FREEZE_ROUTE, F_UNFREEZE_ROUTE,
	F_CLAIM_EXPIRING, F_FINISH_EXPIRING, F_EXPIRE_RESERVATIONS, F_EXPIRE_EXECUTIONS,
	F_REPAY_DEBTORS, F_CLAIM_UNKNOWN, F_MAINTAIN, F_PUBLISH,
	F_ISSUE, F_SIGN, F_RECONCILE, F_WRITE_OFF,
	F_ACCEPT, F_SHARD_RESERVE, F_SHARD_START, F_SHARD_SETTLE, F_SHARD_RELEASE,
	F_SHARD_REPORT_UNKNOWN, F_SEAL, F_CUT_REPORT,
	F_OTHER
} Function;

typedef enum End
{
	END_NONE, END_DONE, END_ERROR, END_LOST
} End;

typedef struct Row
{
	int			columns;
	char	  **column;			/* NULL: a NULL */
} Row;

typedef struct Call
{
	int			number;
	int			actor;
	int			transaction;	/* its place in Interleaving.transaction */
	int64_t		clock;			/* or NO_CLOCK */
	bool		gateway;
	bool		elsewhere;		/* at a gateway that got no shard, whose tables are not read */
	Function	function;
	const char *name;
	int			arguments;
	char	  **argument;
	int			rows;
	Row		   *row;
	End			end;
	const char *sqlstate;
	int			sent;			/* its lines, which are the only time there is */
	int			back;
} Call;

typedef enum Fate
{
	OPEN, COMMITTED, UNDONE, MAYBE
} Fate;

typedef enum StepKind
{
	STEP_CALL, STEP_SAVEPOINT, STEP_ROLLBACK_TO
} StepKind;

typedef struct Step
{
	StepKind	kind;
	int			call;			/* its place in Interleaving.call, or */
	int			name;			/* of the savepoint */
	int			at;				/* line */
} Step;

typedef struct Transaction
{
	int			number;
	bool		is_explicit;
	bool		commit_sent;
	bool		one_snapshot;	/* REPEATABLE READ or above: readers may see it at its begin */
	int			begins;			/* line */
	Fate		fate;
	int			end;			/* line of its acknowledgement */
	int			steps;
	Step	   *step;
} Transaction;

typedef enum Kind
{
	CONTINUOUS, WINDOW, NONE
} Kind;

typedef struct Policy
{
	int			route;
	int			subject;
	int64_t		generation;
	int64_t		since;
	Kind		kind;
	int64_t		cap;
	int64_t		units;
	int64_t		interval;
	int64_t		epoch;
	int64_t		largest;
	int64_t		outstanding;
	int64_t		hard_limit;
	int64_t		maximum_overdraft;
	int64_t		hold_ttl;
	int64_t		execution_ttl;
	int64_t		share;
	int64_t		shard_ttl;
	int			line;
} Policy;

typedef struct Interleaving
{
	const char *number;
	int			subject;
	int			route;
	bool		is_virtual;
	const char *scenario;
	int			begins;			/* its lines */
	int			ends;
	int			calls;
	Call	   *call;
	int			transactions;
	Transaction *transaction;
} Interleaving;

typedef struct History
{
	const char *name;
	int			lane;
	int			policies;
	Policy	   *policy;
	int			interleavings;
	Interleaving *interleaving;
	int			malformed;		/* line, or 0 */
	const char *why;
} History;

/* history_read reads a file into *history; false if it can't be opened. */
extern bool history_read(const char *name, History *history);

extern const char *argument(const Call *call, int n);
extern const char *column(const Call *call, int row, int n);
extern int64_t number_of(const char *text, int64_t when_null);
extern bool truth(const char *text);

/* array_of takes an array literal apart; NULL elements are NULL. */
extern int	array_of(const char *literal, char ***element);

/* took_effect tells whether a call's work stands; MAYBE: nobody knows. */
extern Fate fate_of(const Interleaving *in, const Call *call);

/* is_receipt tells whether the columns of an answer are those of a receipt, and from which on. */
extern bool is_receipt(Function f, int *first);

/* The columns of a receipt. */
enum
{
	R_OUTCOME, R_DIMENSION, R_STATE, R_REPLAYED, R_GENERATION, R_EPOCH, R_RESERVED, R_ACTUAL,
	R_OPERATION, R_EXPIRES, R_LEDGER_AT, R_AVAILABLE, R_CAP, R_RESET, R_RETRY, R_RETRY_KIND,
	R_HARD_LIMIT, R_EXCESS, R_EXCESS_GENERATION, R_EXCESS_EPOCH, R_COLUMNS
};

/* ---- the tables (rows.c) ------------------------------------------------- */

typedef enum ReservationState
{
	RESERVED, STARTED, USAGE_UNKNOWN, EXPIRING, SETTLED, SETTLED_WITH_DEBT, RELEASED, EXPIRED,
	NO_STATE
} ReservationState;

extern ReservationState state_of(const char *text);
extern const char *state_name(ReservationState state);

typedef struct BudgetRow
{
	int			subject;
	int			route;
	bool		head;
	int64_t		generation, epoch, opened_at, line, follows_generation, follows_epoch, carried,
				deficit, opening, minted, issued, available, reserved, spent, retired, repaid,
				burned, purged;
	bool		whole;
	bool		follows_purged;
	/* of the head */
	int64_t		older_debt, older_reserved, remainder, seen_at, accrued_at;
	bool		frozen;
	/* of a closed one */
	int64_t		closed_at, closing;
} BudgetRow;

typedef struct ReservationRow
{
	int			subject;
	int			id;
	int			route;			/* 0: a fence */
	int64_t		generation, epoch;
	ReservationState state;
	int64_t		asked, reserved, actual;	/* actual: -1 is NULL */
	int			digest;
	int			operation;
	int64_t		expires, excess, excess_generation, excess_epoch, progress;
	int			receipt;
} ReservationRow;

typedef struct OperationRow
{
	int			subject;
	int			operation;
	int			id;				/* of the reservation, or 0: */
	int			route;
	int64_t		units, generation, epoch;
} OperationRow;

typedef struct ExtensionRow
{
	int			subject;
	int			id;
	int			extension;
	int64_t		units;
} ExtensionRow;

typedef struct GrantRow
{
	int			subject;
	int			route;
	int			grant;
	int64_t		units, granted;
} GrantRow;

typedef struct ShardRow
{
	int			subject;
	int			shard;
	int			route;
	int			gateway;
	int			boot;
	int64_t		generation, epoch, fence, allocated, expires, sequence, available, reserved,
				spent, retired, excess, receipted, confirmed, reminted;
	bool		sealed, written_off, settled;
} ShardRow;

typedef struct ReportRow
{
	int			subject;
	int			shard;
	int			route;
	int64_t		sequence, generation, epoch, excess, confirmed, reminted;
} ReportRow;

typedef struct ReceiptRow
{
	int			subject;
	int			shard;
	int			id;
	int64_t		sequence;
	ReservationState state;
	int			operation;
	int64_t		reserved, actual;
} ReceiptRow;

/* At the gateway. */
typedef struct LocalShardRow
{
	int			subject;
	int			shard;
	int			route;
	int			boot;
	int64_t		fence, allocated, expires, available, reserved, spent, retired, excess, sequence;
	bool		sealed;
} LocalShardRow;

typedef struct ItemRow
{
	int			subject;
	int			id;
	int			shard;
	ReservationState state;
	int64_t		reserved, actual, excess;
	int			digest;
	int			operation;
	int64_t		expires, sequence;
} ItemRow;

typedef struct LocalReportRow
{
	int			subject;
	int			shard;
	int64_t		sequence, available, reserved, spent, retired, excess;
	bool		sealed;
} LocalReportRow;

typedef struct Tables
{
	bool		read;			/* false: --offline */
	bool		gateway_read;
	int			budgets;
	BudgetRow  *budget;			/* of a pair in opening order, the head last */
	int			reservations;
	ReservationRow *reservation;
	int			operations;
	OperationRow *operation;
	int			extensions;
	ExtensionRow *extension;
	int			grants;
	GrantRow   *grant;
	int			shards;
	ShardRow   *shard;
	int			reports;
	ReportRow  *report;
	int			receipts;
	ReceiptRow *receipt;
	int			local_shards;
	LocalShardRow *local_shard;
	int			items;
	ItemRow    *item;
	int			local_reports;
	LocalReportRow *local_report;
} Tables;

extern void tables_connect(const char *ledger, const char *gateway);
extern void tables_read(const History *history, Tables *tables);

/* ---- what was found (found.c) -------------------------------------------- */

typedef enum Counter
{
	DISCREPANCIES, OVERSPENDS, SECOND_RESERVATIONS, DUPLICATE_CONSUMPTIONS, UNRECORDED_DEBTS,
	COUNTERS
} Counter;

#define CHECKS(C) \
	C(history, DISCREPANCIES, "-", "the history can be read, and each call in it ends") \
	C(equation, DISCREPANCIES, "C1", "opening + minted + issued = available + reserved + spent + retired + repaid") \
	C(sign, OVERSPENDS, "C1", "none of the eight is negative, and repaid is at most issued") \
	C(reserved, DISCREPANCIES, "C2", "reserved is what the budget's open reservations hold") \
	C(spent, DISCREPANCIES, "C2", "spent is what settlements, recorded usage, excess and purges say") \
	C(older, DISCREPANCIES, "C2", "the head counts the debt and the holds of its closed budgets") \
	C(cap, OVERSPENDS, "C4", "available is at most the cap") \
	C(carry, DISCREPANCIES, "B5", "a budget carries what the one before it left, no more") \
	C(suspended, DISCREPANCIES, "E2", "a pair that owes has nothing available") \
	C(binding, DISCREPANCIES, "D5", "an operation stands for one reservation or one usage, and says so") \
	C(orphan, DISCREPANCIES, "C2", "each row names a budget, a reservation or a shard that exists") \
	C(excess, UNRECORDED_DEBTS, "D7", "excess is actual less reserved, in full, and a debt was issued") \
	C(overdraft, UNRECORDED_DEBTS, "D7", "what a pair used unreserved is in its spent and, uncovered, in its debt") \
	C(second_reservation, SECOND_RESERVATIONS, "D2", "an id takes units once") \
	C(lost_reservation, DISCREPANCIES, "D2", "what was acknowledged is stored, as it was told") \
	C(unexplained, DISCREPANCIES, "D3", "each row was asked for by a call that may have committed") \
	C(refused_row, DISCREPANCIES, "D3", "what was refused, conflicted or rolled back left nothing") \
	C(second_start, DISCREPANCIES, "D5", "an operation starts once, and a reservation under one operation") \
	C(started_expired, DISCREPANCIES, "D5", "a start that was acknowledged is never expired or released") \
	C(second_settlement, DISCREPANCIES, "D6", "a reservation is settled once, with the figures of its receipt") \
	C(second_refund, DISCREPANCIES, "D6", "units of a reservation come back once, by one way") \
	C(unknown_freed, DISCREPANCIES, "D10", "units of unknown usage stay reserved until a receipt") \
	C(state_order, DISCREPANCIES, "D1", "states that were seen one after the other follow one another") \
	C(receipt, DISCREPANCIES, "D2", "a receipt that is told again is the same") \
	C(second_usage, DISCREPANCIES, "D12", "recorded usage, extensions and grants happen once per id") \
	C(torn, DISCREPANCIES, "F5", "of a transaction all calls stand or none") \
	C(order, DISCREPANCIES, "F1", "the answers and rows fit one order of the transactions") \
	C(admitted_beyond, OVERSPENDS, "C1", "in no order of the transactions was that much available") \
	C(admitted_in_debt, DISCREPANCIES, "E1", "in no order of the transactions was the pair out of debt") \
	C(rows_differ, DISCREPANCIES, "C1", "an order fits the answers, but none of them the rows") \
	C(shard_equation, DISCREPANCIES, "G1", "allocated = available + reserved + spent + retired, on both sides, none negative") \
	C(shard_retired, OVERSPENDS, "G2", "a budget retired what its shards were given") \
	C(shard_figures, DISCREPANCIES, "G1", "a shard's figures are those of its reservations") \
	C(shard_twice, DUPLICATE_CONSUMPTIONS, "G4", "a shard is spent by the gateway and boot that it was issued to, under a fence of its own") \
	C(shard_unissued, DUPLICATE_CONSUMPTIONS, "G4", "no gateway spends a shard, or more units, that the ledger did not issue") \
	C(minted_twice, DUPLICATE_CONSUMPTIONS, "G6", "what comes back of a shard is retired on both sides, and minted once") \
	C(shard_unknown, DUPLICATE_CONSUMPTIONS, "G5", "what a gateway can still use, or of which nobody knows, has not come back") \
	C(shard_receipt, DISCREPANCIES, "G6", "receipts and reports of a shard are those of its gateway") \
	C(shard_excess, UNRECORDED_DEBTS, "G6", "excess that was reported is booked, once") \
	C(error, DISCREPANCIES, "J1", "no call failed by an internal error or a broken invariant")

typedef enum Check
{
#define CHECK_NAME(name, counter, rule, says)	CHECK_##name,
	CHECKS(CHECK_NAME)
#undef CHECK_NAME
	CHECK_COUNT
} Check;

/* found prints one finding and counts it; in may be NULL. */
extern void found(Check check, const Interleaving *in, const char *format, ...)
			__attribute__((format(printf, 3, 4)));
extern void list_checks(void);
extern void counts_reset(void);
extern const int *counts(void);
extern int	total_found(void);

/* ---- the judges ---------------------------------------------------------- */

extern void judge_stored(const History *history, const Tables *tables);
extern void judge_told(const History *history, const Interleaving *in, const Tables *tables);
extern void judge_shards(const History *history, const Tables *tables);

/* judge_order returns whether it looked for an order: whether it knows all calls. */
extern bool judge_order(const History *history, const Interleaving *in, const Tables *tables);

/* Where an index of rows by subject begins; -1: none (rows.c). */
extern const ReservationRow *stored_reservation(const Tables *tables, int subject, int id);
extern const OperationRow *stored_operation(const Tables *tables, int subject, int operation);

#endif							/* GATE_AUDITOR_H */
