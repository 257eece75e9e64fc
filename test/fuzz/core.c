/*
 * What any sequence of calls may do to a pair and its shards: keep the equations
 * and their signs (C1, G1), or leave every byte as it was.
 *
 * Bytes become policies and then calls of src/core, each on what the one before
 * left, with amounts from one unit to the end of bigint.  The oracle shares no
 * arithmetic with the core: it adds up in 128 bits.  `make fuzz` runs it under
 * libFuzzer; test/unit/core_fuzz.c runs the same sequences in each `make check`.
 *
 * A broken promise ends the program, so that the fuzzer keeps the bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

#define POLICIES	4
#define BUDGETS		8
#define ROWS		4

typedef enum Step
{
	STEP_RESERVE, STEP_START, STEP_SETTLE, STEP_RELEASE, STEP_CLAIM, STEP_FINISH, STEP_UNKNOWN, STEP_PROGRESS,
	STEP_EXTEND, STEP_USAGE, STEP_GRANT, STEP_FREEZE, STEP_UNFREEZE, STEP_WAIT, STEP_EPOCH, STEP_GENERATION,
	STEP_ISSUE, STEP_LOCAL_RESERVE, STEP_LOCAL_START, STEP_LOCAL_SETTLE, STEP_LOCAL_RELEASE, STEP_LOCAL_EXPIRE,
	STEP_SEAL, STEP_BOOT, STEP_REPORT, STEP_LIE, STEP_COUNT
} Step;

/* A reservation, and the budget that holds it: its place among the closed ones, or BUDGETS for the head. */
typedef struct Held
{
	LLReservation r;
	int			budget;
	int			policy;
} Held;

typedef struct World
{
	LLPolicy	policy[POLICIES];
	int			in_force;
	LLPair		pair;
	LLBudget	closed[BUDGETS];
	int			closed_count;
	Held		row[ROWS];
	LLTime		now;
	__int128	used;			/* all that was settled, recorded or in excess of the shard */
	LLShard		gateway;
	LLIssuedShard issued;
	bool		lied;			/* the ledger was told what the gateway does not know */
	LLReservation item[ROWS];
} World;

typedef struct Bytes
{
	const uint8_t *at;
	const uint8_t *end;
} Bytes;

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* How often each step took effect, for whoever asks. */
static long fuzz_effects[STEP_COUNT];

static void
promise(bool kept)
{
	if (!kept)
		abort();
}

static uint8_t
take(Bytes *bytes)
{
	return bytes->at < bytes->end ? *bytes->at++ : 0;
}

/* amount is small, or of any size, or at the end of bigint. */
static int64_t
amount(Bytes *bytes)
{
	uint8_t		kind = take(bytes);

	if (kind < 160)
		return kind % 32;
	if (kind < 224)
		return (int64_t) (take(bytes) + 1) << (kind % 55);
	return INT64_MAX - kind % 32;
}

static int64_t
positive(Bytes *bytes)
{
	int64_t		n = amount(bytes);

	return n == 0 ? 1 : n;
}

/* ---- what must hold ------------------------------------------------------- */

static void
check_budget(const LLBudget *b)
{
	__int128	came = (__int128) b->opening + b->minted + b->overdraft_issued;
	__int128	went = (__int128) b->available + b->reserved + b->spent + b->retired_for_emergency +
		b->overdraft_repaid;

	promise(came == went && came <= INT64_MAX);
	promise(b->opening >= 0 && b->minted >= 0 && b->overdraft_issued >= 0 && b->available >= 0 &&
			b->reserved >= 0 && b->spent >= 0 && b->retired_for_emergency >= 0 && b->overdraft_repaid >= 0);
	promise(b->overdraft_repaid <= b->overdraft_issued && b->burned >= 0 && b->deficit >= 0);
}

static void
check_shard(const LLShard *s)
{
	promise((__int128) s->available + s->reserved + s->spent + s->retired == s->allocated);
	promise(s->available >= 0 && s->reserved >= 0 && s->spent >= 0 && s->retired >= 0 && s->excess >= 0);
	promise((__int128) s->spent + s->excess <= INT64_MAX && !(s->sealed && s->available > 0));
}

static void
check(const World *w)
{
	const LLPolicy *policy = &w->policy[w->in_force];
	__int128	debt = 0;
	__int128	spent = w->pair.head.spent;
	__int128	older = 0;
	__int128	held[BUDGETS + 1] = {0};
	__int128	items = 0;

	check_budget(&w->pair.head);
	promise(ll_pair_sound(&w->pair, policy));
	for (int i = 0; i < ROWS; i++)
	{
		if (ll_state_holds(w->row[i].r.state))
			held[w->row[i].budget] += w->row[i].r.reserved_units;
		if (ll_state_holds(w->item[i].state))
			items += w->item[i].reserved_units;
	}
	for (int i = 0; i < w->closed_count; i++)
	{
		check_budget(&w->closed[i]);
		debt += w->closed[i].overdraft_issued - w->closed[i].overdraft_repaid;
		spent += w->closed[i].spent;
		older += w->closed[i].reserved;
		promise(held[i] == w->closed[i].reserved);	/* C2 */
	}
	promise(held[BUDGETS] == w->pair.head.reserved);
	promise(debt == w->pair.older_debt && older == w->pair.older_reserved);
	promise(spent == w->used);
	promise(w->pair.head.available <= policy->cap);
	promise(w->pair.head.available == 0 ||
			debt + w->pair.head.overdraft_issued - w->pair.head.overdraft_repaid == 0);	/* E2 */

	check_shard(&w->gateway);
	check_shard(&w->issued.last);
	promise(items == w->gateway.reserved);
	promise(w->issued.reminted >= 0 && w->issued.reminted <= w->issued.confirmed &&
			w->issued.confirmed <= w->issued.last.retired);
	promise(w->issued.receipted <= (__int128) w->issued.last.spent + w->issued.last.excess);
}

/* ---- one call ------------------------------------------------------------- */

static bool
moved(LLVerdict v)
{
	promise(v.outcome >= LL_ACCEPTED && v.outcome < LL_OUTCOME_COUNT);
	promise(v.overflow || (v.outcome == LL_ACCEPTED) == (v.dimension == LL_DIM_NONE));
	return v.outcome == LL_ACCEPTED && !v.replayed && !v.overflow;
}

/* close keeps the budget that ended; what it held is held there from now on. */
static void
close_head(World *w, const LLBudget *ended)
{
	for (int i = 0; i < ROWS; i++)
		if (w->row[i].budget == BUDGETS)
			w->row[i].budget = w->closed_count;
	w->closed[w->closed_count++] = *ended;
}

static LLSettlement
settlement(Bytes *bytes)
{
	LLSettlement s = {.actual = amount(bytes)};
	uint8_t		how = take(bytes);

	s.operation = how % 8 == 0 ? (LLOperation) (how / 8 % 4) : LL_OPERATION_SAME;
	s.same_receipt = how < 128;
	s.attested = how % 16 == 1;
	return s;
}

/* report tells the ledger what the gateway has; a lie changes one figure of it. */
static bool
report(World *w, Bytes *bytes, bool lie)
{
	LLShard		said = w->gateway;
	__int128	used = (__int128) said.spent + said.excess;
	LLUnits		receipted = (LLUnits) (used - w->issued.receipted);
	LLReconciled done;
	uint8_t		how = take(bytes);

	if (used < w->issued.receipted || (how % 4 == 0 && receipted > 0))
		receipted /= 2;
	if (lie)
	{
		LLUnits    *figure[] = {&said.available, &said.reserved, &said.spent, &said.retired, &said.excess,
		&receipted};

		*figure[how % 6] = amount(bytes);
		if (how >= 128)
			*figure[(how + 1) % 6] = amount(bytes);
		said.sealed ^= how % 32 == 0;
	}
	if (receipted < 0)
		return false;
	if (!moved(ll_reconcile_shard(&w->pair, &w->policy[w->in_force], &w->issued, &said, receipted,
								  how % 16 == 3, &done)))
		return false;
	promise(done.excess >= 0 && done.confirmed >= 0 && done.reminted >= 0 && done.reminted <= done.confirmed);
	w->used += done.excess;
	w->lied |= lie;
	return true;
}

/* make takes one step; false: nothing may have moved. */
static bool
make(World *w, Step step, Bytes *bytes)
{
	const LLPolicy *policy = &w->policy[w->in_force];
	uint8_t		which = take(bytes);
	Held	   *row = &w->row[which % ROWS];
	LLReservation *item = &w->item[which % ROWS];
	LLBudget   *closed = row->budget == BUDGETS ? NULL : &w->closed[row->budget];
	LLUnits		had = row->r.reserved_units;
	LLBudget	ended;
	LLUnits		done;

	switch (step)
	{
		case STEP_RESERVE:
			{
				LLRequest	request = {.units = positive(bytes), .deadline = LL_TIME_MAX, .region_matches = true,
				.estimator_accepted = true, .start = which >= 128};
				LLUnits		available = w->pair.head.available;

				if (ll_state_holds(row->r.state) || !moved(ll_admit(&w->pair, policy, &request, w->now, &row->r)))
					return false;
				promise(request.units <= available && ll_pair_debt(&w->pair) == 0 && !w->pair.frozen);
				row->budget = BUDGETS;
				row->policy = w->in_force;
				return true;
			}
		case STEP_START:
			return moved(ll_start(&row->r, &w->policy[row->policy],
								  which < 224 ? LL_OPERATION_FREE : (LLOperation) (which % 4), w->now));
		case STEP_SETTLE:
			{
				LLSettlement s = settlement(bytes);

				if (!moved(ll_settle(&w->pair, closed, &row->r, &w->policy[row->policy], policy, &s)))
					return false;
				promise(row->r.actual_units == s.actual && (s.actual <= had) == (row->r.excess_units == 0));
				w->used += s.actual;
				return true;
			}
		case STEP_RELEASE:
			return moved(ll_release(&w->pair, closed, &row->r, policy));
		case STEP_CLAIM:
			return moved(ll_expire_claim(&row->r, w->now));
		case STEP_FINISH:
			return moved(ll_expire_finish(&w->pair, closed, &row->r, policy));
		case STEP_UNKNOWN:
			return moved(ll_report_unknown(&row->r, LL_OPERATION_SAME, which < 128, w->now));
		case STEP_PROGRESS:
			return moved(ll_report_progress(&row->r, LL_OPERATION_SAME, amount(bytes)));
		case STEP_EXTEND:
			{
				LLExtension extension = {.units = amount(bytes), .expires_at = w->now + take(bytes),
				.head = row->budget == BUDGETS};

				return moved(ll_extend(&w->pair, &row->r, &w->policy[row->policy], policy, &extension, w->now));
			}
		case STEP_USAGE:
			done = amount(bytes);
			if (!moved(ll_record_usage(&w->pair, policy, done, which < 64)))
				return false;
			w->used += done;
			return true;
		case STEP_GRANT:
			{
				LLUnits		units = positive(bytes);

				if (!moved(ll_grant(&w->pair, policy, units, &done)))
					return false;
				promise(done >= 0 && done <= units);
				return true;
			}
		case STEP_FREEZE:
			return moved(ll_freeze(&w->pair));
		case STEP_UNFREEZE:
			return moved(ll_unfreeze(&w->pair));
		case STEP_WAIT:
			w->now += amount(bytes) >> 2;
			w->now = w->now > INT64_MAX / 2 || w->now < 0 ? INT64_MAX / 2 : w->now;
			w->pair.seen_at = w->now;
			return ll_refill_accrue(&w->pair, policy, w->now);
		case STEP_EPOCH:
			if (w->closed_count == BUDGETS ||
				!ll_epoch_open_next(&w->pair, policy, w->now, amount(bytes), &ended))
				return false;
			close_head(w, &ended);
			return true;
		case STEP_GENERATION:
			if (w->closed_count == BUDGETS || w->in_force + 1 == POLICIES ||
				!ll_epoch_open_generation(&w->pair, policy, policy + 1, which < 128, w->now, &ended))
				return false;
			w->in_force++;
			close_head(w, &ended);
			return true;

			/* a pair gives one shard a sequence */
		case STEP_ISSUE:
			{
				LLIssue		issue = {.units = positive(bytes), .largest_share = LL_UNITS_MAX};

				if (w->issued.last.allocated > 0 || !moved(ll_issue_shard(&w->pair, policy, &issue)))
					return false;
				w->gateway = (LLShard) {.allocated = issue.units, .available = issue.units};
				w->issued = (LLIssuedShard) {.last = w->gateway, .line = w->pair.head.line, .legacy = which >= 224};
				return true;
			}
		case STEP_LOCAL_RESERVE:
			{
				LLLocalRequest request = {.units = positive(bytes), .deadline = LL_TIME_MAX,
				.largest_reservation = LL_UNITS_MAX, .shard_expires_at = LL_TIME_MAX, .hold_ttl = which};
				LLUnits		available = w->gateway.available;

				if (ll_state_holds(item->state) || !moved(ll_local_reserve(&w->gateway, &request, w->now, item)))
					return false;
				promise(request.units <= available && !w->gateway.sealed && w->gateway.excess == 0);
				return true;
			}
		case STEP_LOCAL_START:
			return moved(ll_start(item, policy, LL_OPERATION_FREE, w->now));
		case STEP_LOCAL_SETTLE:
			{
				LLSettlement s = settlement(bytes);

				return moved(ll_local_settle(&w->gateway, item, &s));
			}
		case STEP_LOCAL_RELEASE:
			return moved(ll_local_release(&w->gateway, item));
		case STEP_LOCAL_EXPIRE:
			return moved(ll_local_expire(&w->gateway, item, w->now));
		case STEP_SEAL:
			ll_local_seal(&w->gateway);
			return true;
		case STEP_BOOT:
			return ll_local_boot(item);
		case STEP_REPORT:
			return !w->lied && report(w, bytes, false);
		case STEP_LIE:
			return report(w, bytes, true);
		case STEP_COUNT:
			break;
	}
	abort();
}

/* settle_older books what the call has paid to closed budgets, oldest first (E2). */
static bool
settle_older(World *w)
{
	for (int i = 0; i < w->closed_count && w->pair.older_repaid > 0; i++)
		if (!ll_repay_closed(&w->pair, &w->closed[i]))
			return false;
	promise(w->pair.older_repaid == 0);
	return true;
}

/* choose reads the next step.  What ends a budget, or admission to it, is rarer than what lives there. */
static Step
choose(Bytes *bytes)
{
	static const bool ends[STEP_COUNT] = {[STEP_USAGE] = true,[STEP_FREEZE] = true,[STEP_EPOCH] = true,
	[STEP_GENERATION] = true,[STEP_SEAL] = true,[STEP_LIE] = true};
	uint8_t		byte = take(bytes);
	Step		step = (Step) (byte % STEP_COUNT);

	return ends[step] && byte >= 2 * STEP_COUNT ? (Step) (STEP_RESERVE + byte / STEP_COUNT % 3) : step;
}

static void
read_policy(LLPolicy *policy, int64_t generation, Bytes *bytes)
{
	policy->generation = generation;
	policy->refill = (LLRefill) (take(bytes) % 3);
	policy->cap = positive(bytes);
	if (policy->refill == LL_REFILL_CONTINUOUS)
	{
		policy->refill_units = positive(bytes);
		policy->refill_interval = positive(bytes);
	}
	policy->largest_reservation = policy->cap;
	policy->largest_outstanding = LL_UNITS_MAX;
	policy->hard_limit = positive(bytes);
	policy->maximum_overdraft = amount(bytes);
	policy->hold_ttl = positive(bytes);
	policy->execution_ttl = positive(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static World w;
	static World before;
	Bytes		bytes = {data, data + size};

	memset(&w, 0, sizeof(w));
	for (int i = 0; i < POLICIES; i++)
		read_policy(&w.policy[i], i + 1, &bytes);
	ll_epoch_open_first(&w.pair, &w.policy[0], 0, 0);
	for (int i = 0; i < ROWS; i++)
		w.row[i].budget = BUDGETS;
	check(&w);
	while (bytes.at < bytes.end)
	{
		Step		step = choose(&bytes);
		bool		effect;

		memcpy(&before, &w, sizeof(w));
		effect = make(&w, step, &bytes);
		if (!effect && step != STEP_WAIT)
			promise(memcmp(&before, &w, sizeof(w)) == 0);
		if (effect && settle_older(&w))
			fuzz_effects[step]++;
		else
			memcpy(&w, &before, sizeof(w));	/* as a transaction that ends in an error */
		check(&w);
	}
	return 0;
}
