/*
 * call.h
 *	  What the random run says to both models, and what they answer.
 *
 * Plain numbers and words, so that neither side learns anything of the other's
 * types: the naive model knows no header of src/, and the harness around
 * src/core knows nothing of the naive model.
 */
#ifndef MODEL_CALL_H
#define MODEL_CALL_H

#include <stdbool.h>
#include <stdint.h>

enum
{
	LENGTH_MAX = 400,			/* events in one sequence */
	BUDGETS_MAX = 3 * LENGTH_MAX,	/* each event opens an epoch, each publish two */
	POLICIES_MAX = LENGTH_MAX + 2,
	PATTERN = 3					/* epoch lengths that repeat, see Document */
};

#define NO_LIMIT	INT64_MAX

typedef enum Kind
{
	CONTINUOUS, WINDOW, NONE
} Kind;
#define KINDS	(NONE + 1)

/* One admissionBudget.v1, as far as balances depend on it (B2). */
typedef struct Document
{
	int64_t		generation;
	Kind		kind;
	int64_t		cap;			/* burst or quota */
	int64_t		units;			/* continuous: so many units are refilled ... */
	int64_t		interval;		/* ... every so many ticks */
	int64_t		epoch[PATTERN]; /* lengths of the epochs, one after the other and
								 * again; all equal: a fixed length, else a
								 * calendar (A4) */
	int64_t		largest;
	int64_t		outstanding;	/* or NO_LIMIT */
	int64_t		hard_limit;
	int64_t		maximum_overdraft;
	int64_t		hold_ttl;
	int64_t		execution_ttl;
	int64_t		share;			/* percent of the cap that may be in shards (G2) */
	int64_t		shard_ttl;
} Document;

typedef enum CallName
{
	RESERVE, START, SETTLE, RELEASE, REPORT_UNKNOWN, CLAIM, FINISH, RESOLVE,
	REPAY, UNFREEZE, FREEZE, DRAIN, PUBLISH, EXTEND, REPORT_PROGRESS, RECORD_USAGE, GRANT,
	FREEZE_ROUTE, UNFREEZE_ROUTE,
	/* of shards, at the ledger */
	ISSUE, RECONCILE, WRITE_OFF, LEGACY_RECEIPT,
	/* at the gateway, which moves no balance of the ledger */
	GATEWAY_RESERVE, GATEWAY_SETTLE, GATEWAY_RELEASE, GATEWAY_EXPIRE, GATEWAY_SEAL,
	GATEWAY_BOOT, REPORT
} CallName;
#define CALLS	(REPORT + 1)

/* The figures of a shard, as its gateway holds or reports them (G1). */
#define FIGURE_FIELDS(F) \
	F(allocated) F(available) F(reserved) F(spent) F(retired) F(excess) F(sealed)

#define MEMBER(name)	int64_t name;
typedef struct Figures
{
	FIGURE_FIELDS(MEMBER)
} Figures;

typedef struct Call
{
	CallName	name;
	int			id;				/* of the reservation, here or at the gateway */
	int			key;			/* of the extension or the grant; a report's number */
	int			shard;
	int64_t		units;			/* asked for, or actually used */
	int			digest;			/* of the request, or of the receipt */
	int			operation;		/* 0: none */
	int			receipts;		/* report: so many of them at most */
	int64_t		deadline;		/* the caller's; of an extension the later one;
								 * or NO_LIMIT */
	bool		wrong_region;
	bool		wrong_estimator;
	bool		by_caller;		/* report_unknown: not by the sweep */
	bool		attested;		/* settle: by an operator (D10) */
	bool		imported;		/* record_usage: spent under another limiter (B2) */
	bool		legacy;			/* issue: a share of the old limiter (B8) */
	int64_t		reserved;		/* legacy_receipt: what the operation had reserved */
	Figures		figures;		/* reconcile: as they arrive, true or not */
	Document	document;		/* of a publish */
} Call;

typedef struct Answer
{
	const char *outcome;		/* ACCEPTED, REFUSED, CONFLICT, UNKNOWN */
	const char *dimension;		/* which rule said no, or "" */
	const char *wait_kind;		/* or "" */
	int64_t		wait;			/* ticks from what the clock shows (D4) */
	bool		replayed;
	bool		overflow;		/* nothing else counts then (A2) */
	bool		strained;		/* naive only: see naive_call */
	bool		capped;			/* naive only: see naive_call */
	bool		wrote;			/* more than the passing of time was kept */
} Answer;

/*
 * What both sides show of a budget, a pair, a reservation, and a record: what
 * is stored under an id of its own, be it an extension of a reservation (D13),
 * usage without one (D12), a grant (E3), a report (G6) or a receipt of the old
 * limiter (B8).  Of a shard both the gateway's figures and the ledger's, of what
 * is held against it, and of the reports that were cut.
 */
#define BUDGET_FIELDS(F) \
	F(generation) F(epoch) F(opening) F(minted) F(overdraft_issued) \
	F(available) F(reserved) F(spent) F(retired_for_emergency) \
	F(overdraft_repaid) F(burned) F(carried) F(deficit) F(purged_spent) \
	F(line) F(whole)
#define PAIR_FIELDS(F) \
	F(budgets) F(reservations) F(records) F(shards) F(items) F(reports) F(debt) F(older_debt) F(older_reserved) \
	F(older_repaid) F(seen_at) F(accrued_at) F(remainder) F(frozen) \
	F(draining) F(route_frozen) F(pending)
#define RESERVATION_FIELDS(F) \
	F(id) F(budget) F(asked) F(digest) F(operation) F(receipt) \
	F(reserved_units) F(actual_units) F(excess_units) F(overdraft_units) \
	F(progress_units) F(excess_budget) F(expires_at)
#define RECORD_FIELDS(F) \
	F(call) F(id) F(key) F(units) F(deadline) F(budget) F(granted) F(reserved)
#define SHARD_FIELDS(F) \
	F(id) F(budget) F(legacy) F(seen_at) F(expires_at) F(cut) \
	F(reconciled) F(receipted) F(confirmed) F(reminted) F(written_off) F(settled)
#define ITEM_FIELDS(F) \
	F(id) F(shard) F(operation) F(receipt) F(report) F(reserved_units) F(actual_units) \
	F(excess_units) F(overdraft_units) F(expires_at)
#define REPORT_FIELDS(F) \
	F(shard) F(number) F(taken)

typedef struct BudgetView
{
	BUDGET_FIELDS(MEMBER)
} BudgetView;

typedef struct PairView
{
	PAIR_FIELDS(MEMBER)
} PairView;

typedef struct ReservationView
{
	RESERVATION_FIELDS(MEMBER)
	const char *state;
} ReservationView;

typedef struct RecordView
{
	RECORD_FIELDS(MEMBER)
} RecordView;

typedef struct ShardView
{
	SHARD_FIELDS(MEMBER)
	Figures		gateway;
	Figures		last;			/* as reconciled last */
} ShardView;

typedef struct ItemView
{
	ITEM_FIELDS(MEMBER)
	const char *state;
} ItemView;

typedef struct ReportView
{
	REPORT_FIELDS(MEMBER)
	Figures		cut;			/* as the gateway reports them */
	Figures		booked;			/* as they arrived */
} ReportView;
#undef MEMBER

#endif							/* MODEL_CALL_H */
