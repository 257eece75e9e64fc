/*
 * naive.h
 *	  A second model of one pair, made from the rules alone.
 *
 * Shares neither code nor header with src/.  Slow and obvious on purpose:
 * budgets and reservations in plain arrays, 128-bit numbers that never
 * overflow, time applied tick by tick, every wait found by counting.  Each step
 * cites its rule in docs/rules.md.
 *
 * Chosen here where the rules are silent:
 * - limits that no waiting can change are looked at before draining and freeze;
 * - a fraction is dropped by an accrual that finds or leaves the bucket full,
 *   not by a return that fills it;
 * - a refused or repeated call keeps nothing, not even the passing of time,
 *   unless an epoch opened, debt was repaid or a due hold ended in it;
 * - a due hold is ended by reserve and by extend only where waiting could help;
 * - an extension takes a deadline within its own policy's TTL from now, and an
 *   earlier one than it has changes nothing;
 * - the limits of one reservation judge all units of an extended one, but not
 *   where no unit is added;
 * - recorded usage is one execution under the hard limit of the head's policy;
 * - a gateway is one for all shards, has each from its issue on, and ends no due
 *   hold on its own; a report takes the receipts in the order of the items.
 */
#ifndef MODEL_NAIVE_H
#define MODEL_NAIVE_H

#include "call.h"

typedef __int128 Number;

typedef enum NaiveState
{
	RESERVED, STARTED, USAGE_UNKNOWN, EXPIRING, SETTLED, SETTLED_WITH_DEBT, RELEASED, EXPIRED
} NaiveState;
#define NAIVE_STATES	(EXPIRED + 1)

typedef struct NaiveBudget
{
	int			policy;			/* its place in Naive.policy */
	Number		epoch;
	Number		opening;
	Number		minted;
	Number		issued;
	Number		available;
	Number		reserved;
	Number		spent;
	Number		retired;
	Number		repaid;
	Number		burned;
	Number		carried;		/* taken over before debt had its share (B5) */
	Number		deficit;		/* used above a quota that was lowered (B5) */
	Number		closing;		/* available less deficit when it closed (B5) */
	int			line;			/* grows when a window opens with its quota (C5) */
	bool		whole;			/* its line is a quota and changes of it, no more */
} NaiveBudget;

typedef struct NaiveReservation
{
	int			id;
	int			budget;			/* in opening order; -1: a fence (D11) */
	Number		asked;
	int			digest;
	int			operation;
	int			receipt;
	Number		units;
	Number		actual;
	Number		excess;
	Number		overdraft;
	Number		progress;		/* used so far, as reported (D10) */
	int			excess_budget;
	Number		expires;
	NaiveState	state;
} NaiveReservation;

/* What is stored under an id of its own: an extension, usage, a grant. */
typedef struct NaiveRecord
{
	CallName	call;
	int			id;				/* of the reservation that was extended, else 0 */
	int			key;			/* of the extension or grant, or the operation */
	Number		units;
	Number		deadline;		/* of an extension */
	int			budget;			/* that bore the usage */
	Number		granted;		/* what of a grant found room */
	Number		reserved;		/* by the operation of an old limiter's receipt */
} NaiveRecord;

typedef struct NaiveFigures
{
	Number		allocated;
	Number		available;
	Number		reserved;
	Number		spent;
	Number		retired;
	Number		excess;
	bool		sealed;
} NaiveFigures;

/* A shard: what its gateway holds, and what the ledger knows of it (G). */
typedef struct NaiveShard
{
	int			id;
	int			budget;			/* that gave the units */
	bool		legacy;			/* the old limiter's share (B8) */
	/* at the gateway */
	NaiveFigures gateway;
	Number		seen;			/* the latest instant that it has seen (A3) */
	Number		expires;
	int			cut;			/* number of the last report */
	/* at the ledger */
	NaiveFigures last;			/* as reconciled last */
	int			reconciled;		/* number of that report */
	Number		receipted;
	Number		booked;			/* excess, on the pair's heads */
	Number		confirmed;
	Number		reminted;
	bool		written_off;
	bool		settled;
	bool		lied;			/* a report was taken in that was not as it was cut */
} NaiveShard;

/* What is held against a shard. */
typedef struct NaiveItem
{
	int			id;
	int			shard;
	int			operation;
	int			receipt;
	int			report;			/* its receipt went with this one; 0: with none yet */
	Number		units;
	Number		actual;
	Number		excess;
	Number		overdraft;
	Number		expires;
	NaiveState	state;
} NaiveItem;

/* A report that was cut.  It stays, so that it can be delivered late and often. */
typedef struct NaiveReport
{
	int			shard;
	int			number;
	bool		taken;			/* by the ledger, with these figures: */
	Figures		booked;
	Figures		cut;
} NaiveReport;

/* For the bound of B5 only: what a line may use, and what it paid to debts. */
typedef struct NaiveLine
{
	Number		allowance;		/* in parts of a unit, see naive.c */
	Number		paid;
	Number		granted;
} NaiveLine;

typedef struct Naive
{
	Number		clock;			/* what the server's clock shows */
	Number		seen;			/* the latest instant that the pair has seen (A3) */
	Number		at;				/* refill and epochs are applied up to here */
	Number		remainder;		/* fraction of a unit, times the interval (C4) */
	bool		frozen;
	bool		draining;
	bool		route_frozen;	/* by an operator (D8) */
	bool		wrote;			/* by this call: more than the passing of time */
	bool		strained;		/* in this call some sum was no bigint */
	bool		capped;			/* and refill met the end of bigint, see naive_call */
	Number		paid_unopened;	/* by windows that nobody opened (E2) */
	int			policies;
	int			in_force;		/* the last policy that the pair has moved to */
	int			budgets;
	int			reservations;
	int			records;
	int			shards;
	int			items;
	int			reports;
	Number		since[POLICIES_MAX];
	Document	policy[POLICIES_MAX];
	NaiveLine	line[BUDGETS_MAX + 1];
	NaiveBudget budget[BUDGETS_MAX];	/* opening order; the last is the head */
	NaiveReservation reservation[LENGTH_MAX];
	NaiveRecord record[LENGTH_MAX];
	NaiveShard	shard[LENGTH_MAX];
	NaiveItem	item[LENGTH_MAX];
	NaiveReport report[LENGTH_MAX];
} Naive;

/* naive_open makes the pair, at its first call (B3). */
extern void naive_open(Naive *m, const Document *policy, int64_t clock);

/*
 * naive_call does one call; *before receives the state that it met.  A call that
 * would write a sum beyond bigint answers overflow (A2).  Where a sum left bigint
 * only on the way, the answer says strained: a ledger may then overflow too.
 * Where refill could pass the end of bigint, it says capped: how much of it is
 * minted now and how much later is then not asked (C4).
 */
extern Answer naive_call(Naive *m, Naive *before, const Call *call);

/* naive_undo takes back a call that the ledger ended with overflow. */
extern void naive_undo(Naive *m, const Naive *before);

/* naive_check names the rule that this step broke, or returns NULL. */
extern const char *naive_check(const Naive *m, const Naive *before, const Call *call,
							   const Answer *answer);

/* naive_ticks_until_full counts how long refill alone takes; -1: never. */
extern int64_t naive_ticks_until_full(const Naive *m);

extern void naive_show_pair(const Naive *m, PairView *view);
extern void naive_show_budget(const Naive *m, int index, BudgetView *view);
extern void naive_show_reservation(const Naive *m, int index, ReservationView *view);
extern void naive_show_record(const Naive *m, int index, RecordView *view);
extern void naive_show_shard(const Naive *m, int index, ShardView *view);
extern void naive_show_item(const Naive *m, int index, ItemView *view);
extern void naive_show_report(const Naive *m, int index, ReportView *view);

/* ---- naive_gateway.c: the gateway's side of shards (G1, G4-G6) ----------- */

extern NaiveShard *naive_shard(Naive *m, int id);
extern NaiveReport *naive_report(Naive *m, int shard, int number);

/* naive_figures are the gateway's, as a report carries them. */
extern Figures naive_figures(const NaiveFigures *f);

extern Answer naive_gateway_call(Naive *m, const Call *call);

/* naive_check_shards names the rule of shards that this step broke, or returns NULL. */
extern const char *naive_check_shards(const Naive *m, const Naive *before, const Call *call);

#endif							/* MODEL_NAIVE_H */
