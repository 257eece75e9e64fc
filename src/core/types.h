/*
 * types.h
 *	  The plain structs that src/core decides about.
 *
 * Nothing in this folder knows PostgreSQL, a clock, memory allocation or I/O.
 * A caller hands in structs and an instant; a function either changes the
 * structs and says so, or leaves every byte of them as it was.  Rule numbers
 * (A1 ... J5) are those of docs/rules.md.
 *
 * Time is microseconds since any fixed origin, read by the caller after it
 * obtained the pair's lock (A3).  Units are int64 and never negative.
 */
#ifndef LL_CORE_TYPES_H
#define LL_CORE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t LLUnits;
typedef int64_t LLTime;

#define LL_UNITS_MAX	INT64_MAX
#define LL_TIME_MAX		INT64_MAX

/* How a pair's capacity comes back (B2). */
typedef enum LLRefill
{
	LL_REFILL_CONTINUOUS,		/* `refill_units` every `refill_interval` */
	LL_REFILL_WINDOW,			/* the quota, once an epoch */
	LL_REFILL_NONE				/* never by itself */
} LLRefill;

/* What a decision needs of a frozen admissionBudget.v1 (B2). */
typedef struct LLPolicy
{
	int64_t		generation;
	LLRefill	refill;
	LLUnits		cap;			/* burst, or the quota of a window */
	LLUnits		refill_units;	/* continuous only, else 0 */
	LLTime		refill_interval;	/* continuous only, else 0 */
	LLUnits		largest_reservation;
	LLUnits		largest_outstanding;	/* LL_UNITS_MAX: no limit */
	LLUnits		hard_limit;		/* units of one execution (D8) */
	LLUnits		maximum_overdraft;	/* of the pair (D8) */
	LLTime		hold_ttl;
	LLTime		execution_ttl;
} LLPolicy;

/* One accounting period of a pair under one generation: the equation C1. */
typedef struct LLBudget
{
	int64_t		generation;
	LLTime		epoch;			/* its start instant (A4) */
	LLUnits		opening;
	LLUnits		minted;
	LLUnits		overdraft_issued;
	LLUnits		available;
	LLUnits		reserved;
	LLUnits		spent;
	LLUnits		retired_for_emergency;
	LLUnits		overdraft_repaid;
	LLUnits		burned;			/* un-minted at the cap, beside the equation (C4) */
	LLUnits		carried;		/* what it took over, before debt had its share (B5) */
	LLUnits		deficit;		/* used above a quota that was lowered (B5) */
	LLUnits		purged_spent;	/* spent by reservations since purged (D15) */
	int64_t		line;			/* grows when a window opens with its quota (C5) */
	bool		whole;			/* its line is a quota and changes of it, no more (B5) */
} LLBudget;

/*
 * A pair as its lock shows it: the head budget, and the sums over the closed
 * ones.  `older_repaid` is what this call has paid to closed budgets; the
 * caller books it there, oldest first, before it commits (E2).
 */
typedef struct LLPair
{
	LLBudget	head;
	LLUnits		older_debt;
	LLUnits		older_reserved;
	LLUnits		older_repaid;
	LLTime		seen_at;		/* latest instant seen (A3) */
	LLTime		accrued_at;		/* refill and epochs applied up to here */
	int64_t		remainder;		/* elapsed x units below the interval (C4) */
	bool		frozen;			/* by a breach or an operator (D8) */
} LLPair;

/* States that a reservation can be stored in (D1), and "no row". */
typedef enum LLState
{
	LL_ABSENT,					/* REQUESTED before, RESERVATION_UNKNOWN after */
	LL_RESERVED,
	LL_STARTED,
	LL_USAGE_UNKNOWN,
	LL_EXPIRING,
	LL_SETTLED,
	LL_SETTLED_WITH_DEBT,
	LL_RELEASED,
	LL_EXPIRED
} LLState;
#define LL_STATE_COUNT	(LL_EXPIRED + 1)

/* One limitReservation.v1, as far as a decision reads or writes it. */
typedef struct LLReservation
{
	LLState		state;
	LLUnits		reserved_units;
	LLUnits		actual_units;	/* settled states only */
	LLUnits		excess_units;	/* borne by the head of that moment (D7) */
	LLUnits		overdraft_units;	/* the part of it that became debt */
	LLUnits		progress_units; /* used so far, as reported (D10) */
	LLTime		expires_at;		/* hold, then execution deadline */
	LLTime		claimed_until;	/* of a reconciler's lease on unknown usage (D10) */
} LLReservation;

/*
 * What a shard was given has become of it: the equation G1.  The gateway keeps
 * it, its reports carry it, the ledger keeps the last one that it reconciled.
 */
typedef struct LLShard
{
	LLUnits		allocated;
	LLUnits		available;
	LLUnits		reserved;
	LLUnits		spent;
	LLUnits		retired;		/* can never be used again */
	LLUnits		excess;			/* used above all that, beside the equation */
	bool		sealed;			/* nothing can be reserved any more (G6) */
} LLShard;

/* What the ledger keeps of a shard beside that. */
typedef struct LLIssuedShard
{
	LLShard		last;			/* as reconciled last */
	int64_t		line;			/* of the budget that gave the units (C5) */
	LLUnits		receipted;		/* what all receipts so far say was used */
	LLUnits		confirmed;		/* units that are proven unused */
	LLUnits		reminted;		/* what of these was minted again */
	bool		written_off;
	bool		legacy;			/* the old limiter's: what comes back is not reserved again (B8) */
} LLIssuedShard;

#endif							/* LL_CORE_TYPES_H */
