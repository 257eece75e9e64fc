/*
 * fixture.h
 *	  Rows of a unit table: a state before, one call, the state after.
 *
 * A row is one test.  want_*() notes each difference, row_ends() prints the
 * line.  Every budget of a table is checked by C1 as it is written there, so
 * that a slip of the pen in a row shows as one.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <stddef.h>
#include <string.h>

#include "core/core.h"
#include "tap.h"

/* A row names what matters to it; the rest is zero. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define MAX		INT64_MAX
#define LENGTH(array)	(int) (sizeof(array) / sizeof((array)[0]))

/* The equation C1, in its own order. */
#define COLUMNS(o, m, i, a, r, s, e, p) \
	.opening = o, .minted = m, .overdraft_issued = i, \
	.available = a, .reserved = r, .spent = s, .retired_for_emergency = e, .overdraft_repaid = p

/* Verdicts. */
#define ADMITTED		{.outcome = LL_ACCEPTED}
#define REPLAYED		{.outcome = LL_ACCEPTED, .replayed = true}
#define REFUSED(why)	{.outcome = LL_REFUSED, .dimension = LL_DIM_##why}
#define CONFLICT(why)	{.outcome = LL_CONFLICT, .dimension = LL_DIM_##why}
#define NOBODY			{.outcome = LL_UNKNOWN, .dimension = LL_DIM_RESERVATION}
#define OVERFLOWS		{.outcome = LL_ACCEPTED, .overflow = true}

static int row_differences;

static inline void
want(const char *what, int64_t got, int64_t expected)
{
	if (got == expected)
		return;
	row_differences++;
	note("  %s: got %lld, expected %lld", what, (long long) got, (long long) expected);
}

/* row_ends reports the row whose wants came before it. */
static inline void
row_ends(const char *name)
{
	ok(row_differences == 0, "%s", name);
	row_differences = 0;
}

#define WANT(which, got, expected, field) \
	do { \
		char what_[80]; \
		snprintf(what_, sizeof(what_), "%s.%s", which, #field); \
		want(what_, (got)->field, (expected)->field); \
	} while (0)

/* conserved is C1 again, in 128 bits and independent of src/core; both sides are bigints. */
static inline bool
conserved(const LLBudget *b)
{
	__int128	came = (__int128) b->opening + b->minted + b->overdraft_issued;
	__int128	went = (__int128) b->available + b->reserved + b->spent + b->retired_for_emergency +
		b->overdraft_repaid;

	return came == went && came <= MAX;
}

static inline void
want_budget(const char *which, const LLBudget *got, const LLBudget *expected)
{
	WANT(which, got, expected, generation);
	WANT(which, got, expected, epoch);
	WANT(which, got, expected, opening);
	WANT(which, got, expected, minted);
	WANT(which, got, expected, overdraft_issued);
	WANT(which, got, expected, available);
	WANT(which, got, expected, reserved);
	WANT(which, got, expected, spent);
	WANT(which, got, expected, retired_for_emergency);
	WANT(which, got, expected, overdraft_repaid);
	WANT(which, got, expected, burned);
	WANT(which, got, expected, carried);
	WANT(which, got, expected, deficit);
	WANT(which, got, expected, purged_spent);
	WANT(which, got, expected, line);
	WANT(which, got, expected, whole);
	want("C1 of the row itself", conserved(expected), true);
}

static inline void
want_pair(const LLPair *got, const LLPair *expected)
{
	want_budget("head", &got->head, &expected->head);
	WANT("pair", got, expected, older_debt);
	WANT("pair", got, expected, older_reserved);
	WANT("pair", got, expected, older_repaid);
	WANT("pair", got, expected, seen_at);
	WANT("pair", got, expected, accrued_at);
	WANT("pair", got, expected, remainder);
	WANT("pair", got, expected, frozen);
}

static inline void
want_reservation(const LLReservation *got, const LLReservation *expected)
{
	WANT("reservation", got, expected, state);
	WANT("reservation", got, expected, reserved_units);
	WANT("reservation", got, expected, actual_units);
	WANT("reservation", got, expected, excess_units);
	WANT("reservation", got, expected, overdraft_units);
	WANT("reservation", got, expected, progress_units);
	WANT("reservation", got, expected, expires_at);
	WANT("reservation", got, expected, claimed_until);
}

/* want_verdict: where a sum overflowed nothing else of the verdict counts. */
static inline void
want_verdict(const LLVerdict *got, const LLVerdict *expected)
{
	WANT("verdict", got, expected, overflow);
	if (expected->overflow)
		return;
	WANT("verdict", got, expected, outcome);
	WANT("verdict", got, expected, dimension);
	WANT("verdict", got, expected, replayed);
	WANT("verdict", got, expected, wait);
	WANT("verdict", got, expected, wait_until);
	WANT("verdict", got, expected, wait_windows);
}

/*
 * Bytes: what a call may touch, as it was.  want_unchanged() compares all of
 * it, padding included: on a refusal, a conflict, a replay or an overflow
 * nothing may have moved.
 */
typedef struct Bytes
{
	LLPair		pair;
	LLBudget	closed;
	LLReservation reservation;
} Bytes;

static inline void
take_bytes(Bytes *b, const LLPair *pair, const LLBudget *closed, const LLReservation *reservation)
{
	memset(b, 0, sizeof(*b));
	if (pair != NULL)
		memcpy(&b->pair, pair, sizeof(b->pair));
	if (closed != NULL)
		memcpy(&b->closed, closed, sizeof(b->closed));
	if (reservation != NULL)
		memcpy(&b->reservation, reservation, sizeof(b->reservation));
}

static inline bool
took_effect(const LLVerdict *v)
{
	return v->outcome == LL_ACCEPTED && !v->replayed && !v->overflow;
}

static inline void
want_unchanged(const Bytes *before, const LLPair *pair, const LLBudget *closed,
			   const LLReservation *reservation)
{
	Bytes		after;

	take_bytes(&after, pair, closed, reservation);
	want("bytes changed by a call that took no effect",
		 memcmp(before, &after, sizeof(after)) != 0, false);
}

#endif							/* FIXTURE_H */
