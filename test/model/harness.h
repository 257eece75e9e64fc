/*
 * harness.h
 *	  A ledger in memory: src/core and ll_roll with arrays for tables.
 *
 * Does what a transaction script does and decides nothing: lock (a copy), roll,
 * read, decide, write.  The copy replaces the ledger only if the call took
 * effect, or if its roll opened a budget, repaid debt or ended a due hold.
 */
#ifndef MODEL_HARNESS_H
#define MODEL_HARNESS_H

#include "call.h"
#include "core/core.h"
#include "ledger/roll.h"

/* A policy as the ledger's cache would hold it. */
typedef struct Frozen
{
	LLPolicy	policy;
	LLPeriods	periods;		/* first, so that a calendar finds its pattern */
	int64_t		pattern[PATTERN];
	char		calendar[24];
	LLTime		since;
	int64_t		share;			/* of shards, in percent (G2) */
	int64_t		shard_ttl;
} Frozen;

/* A row of the reservation table. */
typedef struct Row
{
	int			id;
	int			budget;			/* in opening order; -1: a fence */
	int64_t		asked;
	int			digest;
	int			operation;
	int			receipt;
	int			excess_budget;
	LLReservation r;
} Row;

/* A row of the tables of extensions, recorded usage, grants, what shards reported. */
typedef struct Record
{
	CallName	call;
	int			id;				/* of the reservation that was extended, else 0 */
	int			key;			/* of the extension or grant, or the operation */
	int64_t		units;
	int64_t		deadline;		/* of an extension */
	int			budget;			/* that bore the usage */
	int64_t		granted;
	int64_t		reserved;		/* of a receipt of the old limiter */
} Record;

/* A shard's row at the ledger, and the one at its gateway. */
typedef struct ShardRow
{
	int			id;
	int			budget;			/* in opening order */
	int64_t		generation;
	int			reconciled;		/* number of the last report */
	bool		settled;
	LLIssuedShard state;
	/* at the gateway */
	LLShard		gateway;
	LLTime		seen_at;
	LLTime		expires_at;
	int			cut;			/* number of the last report */
} ShardRow;

/* A row of the gateway's reservations. */
typedef struct ItemRow
{
	int			id;
	int			shard;
	int			operation;
	int			receipt;
	int			report;			/* that carries its receipt */
	LLReservation r;
} ItemRow;

/* A report: what the gateway signed, and what the ledger took in. */
typedef struct ReportRow
{
	int			shard;
	int			number;
	bool		taken;
	Figures		cut;
	Figures		booked;
} ReportRow;

typedef struct Ledger
{
	int64_t		clock;
	LLPair		pair;
	bool		draining;
	bool		route_frozen;
	bool		rolled;			/* this call's roll is worth keeping */
	int			in_force;		/* the policy of the head */
	int			closed_count;
	int			rows;
	int			records;
	int			shards;
	int			items;
	int			reports;
	int			policies;
	const char *broken;			/* what this call did that no call may do */
	LLBudget	closed[BUDGETS_MAX];
	Row			row[LENGTH_MAX];
	Record		record[LENGTH_MAX];
	ShardRow	shard[LENGTH_MAX];
	ItemRow		item[LENGTH_MAX];
	ReportRow	report[LENGTH_MAX];
} Ledger;

/* Policies never change, so that copies of a ledger share them. */
extern Frozen ledger_policy[POLICIES_MAX];

extern void ledger_open(Ledger *l, const Document *policy, int64_t clock);
extern Answer ledger_call(Ledger *l, const Call *call);

/* ledger_admits asks a twin that has waited: would these units be admitted? */
extern bool ledger_admits(const Ledger *l, int64_t units, int64_t wait);

/* ledger_ticks_until_full is what a receipt's reset says; -1: nobody knows. */
extern int64_t ledger_ticks_until_full(const Ledger *l);
extern bool ledger_full(const Ledger *l, int64_t wait);

/* ledger_late_is_early compares one roll with many small ones (C4). */
extern bool ledger_late_is_early(const Ledger *l, int64_t ticks);

extern void ledger_show_pair(const Ledger *l, PairView *view);
extern void ledger_show_budget(const Ledger *l, int index, BudgetView *view);
extern void ledger_show_reservation(const Ledger *l, int index, ReservationView *view);
extern void ledger_show_record(const Ledger *l, int index, RecordView *view);
extern void ledger_show_shard(const Ledger *l, int index, ShardView *view);
extern void ledger_show_item(const Ledger *l, int index, ItemView *view);
extern void ledger_show_report(const Ledger *l, int index, ReportView *view);

/* ---- harness_shards.c ---------------------------------------------------- */

/* ledger_has_shard: a call about a shard that is there locks its pair (G6). */
extern bool ledger_has_shard(Ledger *l, const Call *call);
extern LLVerdict ledger_shard_call(Ledger *l, const Call *call);
extern LLVerdict ledger_gateway_call(Ledger *l, const Call *call);
extern bool ledger_shards_sound(const Ledger *l);

#endif							/* MODEL_HARNESS_H */
