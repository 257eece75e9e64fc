/*
 * random.c
 *	  Random calls to the ledger and to the naive model, compared after each.
 *
 * Every verdict, every field of every budget, pair and reservation must be the
 * same on both sides, and every rule must hold.  A sequence depends on its seed
 * alone, so a failure is shown with the line that repeats it.  Prints TAP; what
 * did not happen often enough to be tested is a failure too.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "naive.h"

enum
{
	EVENTS = 1000000,
	LENGTH = 120,
	REMEMBERED = 24,			/* calls that may be repeated */
	ENOUGH = 100000				/* events after which everything should have happened */
};

/* ---- what happened ------------------------------------------------------- */

#define FACTS(F) \
	F(epochs_opened, "epochs opened, what was available carried") \
	F(windows_opened, "windows opened with their quota") \
	F(unopened_paid, "calls in which windows that passed unopened paid debt") \
	F(switches_whole, "generations opened within their window") \
	F(switches_other, "generations opened otherwise") \
	F(several_pending, "calls that met several generations at once") \
	F(rates_changed, "fractions of a unit carried to another rate") \
	F(debts_made, "settlements that made debt") \
	F(older_debt_repaid, "repayments to closed budgets") \
	F(own_debt_repaid, "repayments to the head") \
	F(deficits, "budgets opened in deficit") \
	F(deficits_filled, "deficits filled by units that came back") \
	F(usage_covered, "recorded usage that was covered by what was available") \
	F(usage_in_debt, "recorded usage that made debt") \
	F(frozen_by_usage, "pairs frozen by recorded usage") \
	F(older_granted, "grants that paid debts of closed budgets") \
	F(debt_granted, "grants that paid the head's debt") \
	F(deficit_granted, "grants that filled a deficit") \
	F(available_granted, "grants that were available at once") \
	F(grants_cut, "grants cut at the cap") \
	F(units_added, "extensions that added units") \
	F(deadlines_moved, "extensions that moved a deadline") \
	F(closed_moved, "extensions that moved a deadline in a closed budget") \
	F(deadlines_kept, "extensions whose deadline was no later one") \
	F(holds_ended_by_extend, "due holds ended by an extend") \
	F(let_in_by_due_holds, "extensions that due holds made room for") \
	F(asked_still, "reserves replayed by what was asked, after an extension") \
	F(attested, "settlements attested at or above a progress") \
	F(below_progress, "settlements below the progress by the execution's own receipt") \
	F(debt_and_deficit, "moments in debt and deficit") \
	F(closed_came_back, "returns to a closed budget, minted into the head") \
	F(lapsed, "returns to a closed budget that lapsed") \
	F(unminted, "returns above the cap, un-minted") \
	F(frozen_by_breach, "pairs frozen by a breach") \
	F(holds_ended, "due holds ended by a reserve") \
	F(kept_nothing, "calls that kept nothing, not even time") \
	F(refused_yet_kept, "refusals whose roll was kept") \
	F(stepped_back, "clock steps back") \
	F(late_is_early, "times one late roll gave what many early ones gave") \
	F(waits_proved, "stated waits proved by a twin, by refill") \
	F(windows_waited, "stated waits proved by a twin, by windows") \
	F(share_freed, "shards issued in the share that a settled one left") \
	F(covered_here, "excess at a gateway that the shard had available") \
	F(excess_here, "excess at a gateway above its shard") \
	F(retired_late, "units that came back to a sealed shard") \
	F(sealed_by_boot, "open shards sealed by a boot") \
	F(unknown_by_boot, "boots that made usage unknown") \
	F(bound_by_receipt, "operations bound by their receipt, after a boot") \
	F(parts_of_receipts, "reports that left receipts for the next one") \
	F(waited_for_receipts, "sealed reports that confirmed nothing before all receipts came") \
	F(waited_for_seal, "unsealed reports with units retired or to come") \
	F(open_confirmed, "sealed reports confirmed while usage was still open") \
	F(units_reminted, "reports that minted units of a shard again") \
	F(reminted_later, "reports that minted them again in a later budget of the line") \
	F(remint_paid, "reports whose units paid debt") \
	F(remint_burned, "reports whose units found the head full") \
	F(shards_lapsed, "reports whose units lapsed, as their window had ended") \
	F(excess_covered, "reports whose excess was covered by what was available") \
	F(excess_in_debt, "reports whose excess became debt") \
	F(excess_repaid_at_once, "reports whose units paid for their own excess") \
	F(frozen_by_shard, "pairs frozen by a report") \
	F(late_reports, "late reports after a write-off") \
	F(late_excess, "excess of a shard that was written off, booked") \
	F(late_retired, "units of a shard that was written off, kept retired") \
	F(shards_settled, "shards settled by their report") \
	F(lies_taken, "reports taken in that were not as they were cut") \
	F(legacy_reminted, "units of the old limiter minted again") \
	F(legacy_above, "receipts of the old limiter above its share") \
	F(repeats, "exact repeats") \
	F(contradictions, "repeats with other figures") \
	F(capped, "sequences ended because refill met the end of bigint") \
	F(overflows, "calls refused because a sum would overflow")

#define NAME(name, text)	name,
#define TEXT(name, text)	text,
typedef enum Fact
{
	FACTS(NAME)
	FACT_COUNT
} Fact;
static const char *const fact_text[] = {FACTS(TEXT)};
static long facts[FACT_COUNT];

static const char *const call_name[CALLS] = {
	[RESERVE] = "reserve",[START] = "start",[SETTLE] = "settle",[RELEASE] = "release",
	[REPORT_UNKNOWN] = "report_unknown",[CLAIM] = "claim",[FINISH] = "finish",
	[RESOLVE] = "resolve",[REPAY] = "repay",[UNFREEZE] = "unfreeze",[FREEZE] = "freeze",
	[DRAIN] = "drain",[PUBLISH] = "publish",[EXTEND] = "extend",
	[REPORT_PROGRESS] = "report_progress",[RECORD_USAGE] = "record_usage",[GRANT] = "grant",
	[FREEZE_ROUTE] = "freeze_route",[UNFREEZE_ROUTE] = "unfreeze_route",
	[ISSUE] = "issue",[RECONCILE] = "reconcile",[WRITE_OFF] = "write_off",
	[LEGACY_RECEIPT] = "legacy_receipt",[GATEWAY_RESERVE] = "gateway_reserve",
	[GATEWAY_SETTLE] = "gateway_settle",[GATEWAY_RELEASE] = "gateway_release",
	[GATEWAY_EXPIRE] = "gateway_expire",[GATEWAY_SEAL] = "gateway_seal",
	[GATEWAY_BOOT] = "gateway_boot",[REPORT] = "report"
};

/* By call and dimension; a replay counts in the last column. */
static long answers[CALLS][LL_DIMENSION_COUNT + 1];

/* What must have been answered: the dimensions, "" for accepted, "=" for replayed. */
static const char *const must_happen[CALLS] = {
	[RESERVE] = ",=,request,region,estimator,deadline,draining,frozen,largest_reservation,cap,"
	"largest_outstanding,debt,available,operation_elsewhere",
	[START] = ",=,expired,released,operation,operation_elsewhere,reservation",
	[SETTLE] = ",=,not_started,operation,figures,progress,reservation",
	[RELEASE] = ",=,already_started,expired,settled,reservation",
	[REPORT_UNKNOWN] = ",=,not_started,settled,not_due,operation,reservation",
	[CLAIM] = ",=,not_due,already_started,settled,released,expired,reservation",
	[FINISH] = ",=,not_due,already_started,settled,released,reservation",
	[RESOLVE] = ",=",[UNFREEZE] = ",=,debt",[REPAY] = "",[FREEZE] = ",=",[DRAIN] = "",
	[PUBLISH] = "",
	[EXTEND] = ",=,expired,released,already_started,settled,ttl,closed_budget,"
	"largest_reservation,cap,largest_outstanding,draining,frozen,debt,available,extension,"
	"reservation",
	[REPORT_PROGRESS] = ",=,not_started,operation,settled,reservation",
	[RECORD_USAGE] = ",=,figures,operation_elsewhere",[GRANT] = ",=,grant",
	[FREEZE_ROUTE] = "",[UNFREEZE_ROUTE] = "",
	[ISSUE] = ",=,shard,draining,emergency_mode,frozen,cap,emergency_share,debt,available",
	[RECONCILE] = ",=,report,sequence,conservation,falls,receipts,emergency_shard",
	[WRITE_OFF] = ",=",[LEGACY_RECEIPT] = ",=,figures,emergency_shard",
	[GATEWAY_RESERVE] = ",deadline,largest_reservation,excess,sealed,shard_expired,available,"
	"operation_elsewhere",
	[GATEWAY_SETTLE] = ",=,not_started,operation,operation_elsewhere,figures,reservation",
	[GATEWAY_RELEASE] = ",=,already_started,expired,settled,reservation",
	[GATEWAY_EXPIRE] = ",not_due,already_started,settled,released,expired,reservation",
	[GATEWAY_SEAL] = ",=",[GATEWAY_BOOT] = "",[REPORT] = ""
};

/* column_of finds the column of an answer that both sides gave. */
static int
column_of(const Answer *a)
{
	int			d;

	if (a->replayed)
		return LL_DIMENSION_COUNT;
	if (a->dimension[0] == '\0')
		return 0;
	for (d = 1; strcmp(ll_dimension_info((LLDimension) d)->name, a->dimension) != 0; d++)
		;
	return d;
}

static const char *
column_name(int column)
{
	if (column == LL_DIMENSION_COUNT)
		return "=";
	return column == 0 ? "" : ll_dimension_info((LLDimension) column)->name;
}

/* ---- chance: SplitMix64 -------------------------------------------------- */

static uint64_t chance_state;

static uint64_t
chance(void)
{
	uint64_t	z = (chance_state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* between gives a number from low to high, both included. */
static int64_t
between(int64_t low, int64_t high)
{
	return low + (int64_t) (chance() % ((uint64_t) (high - low) + 1));
}

static bool
one_in(int n)
{
	return between(1, n) == 1;
}

#define ONE_OF(array)	(array)[between(0, (int64_t) (sizeof(array) / sizeof((array)[0])) - 1)]

/* ---- one sequence -------------------------------------------------------- */

typedef struct Run
{
	int64_t		seed;
	int			event;
	bool		ended;
	int64_t		clock;
	bool		kinds[KINDS];	/* that this sequence publishes */
	int			shape;			/* of its epochs */
	bool		huge;			/* units near the end of bigint (A2); waits and twins,
								 * where sums are capped, are not compared then */
	bool		shards;			/* it issues some */
	int			next_id;
	int			next_shard;
	int			next_operation;
	int			next_key;		/* of an extension or a grant */
	int			remembered;
	Call		memory[REMEMBERED];	/* calls that took effect */
	Call		call;			/* the present one */
	const char *expected;		/* its outcome, where known before */
	bool		expected_replay;
	Answer		naive_said;
	Answer		ledger_said;
} Run;

static Run	run;
static Naive naive;
static Naive before;
static Ledger ledger;

/* random_amounts: small, so that limits meet often. */
static void
random_amounts(Document *d)
{
	static const int64_t caps[] = {5, 8, 10, 10, 20};
	static const int64_t rates[][2] = {{1, 1}, {2, 1}, {1, 3}, {3, 2}, {7, 5}, {1, 10}, {1, 60}};
	static const int64_t hard_limits[] = {12, 99, 99};
	static const int64_t overdrafts[] = {0, 8, 99, 99, 99};
	const int64_t *rate = ONE_OF(rates);

	d->cap = ONE_OF(caps);
	d->units = rate[0];
	d->interval = rate[1];
	d->largest = one_in(4) ? 4 : one_in(8) ? d->cap + 2 : d->cap;
	d->outstanding = one_in(2) ? NO_LIMIT : one_in(2) ? d->cap : one_in(8) ? 4 : 2 * d->cap;
	d->hard_limit = ONE_OF(hard_limits);
	d->maximum_overdraft = ONE_OF(overdrafts);
}

/* huge_amounts: near the end of bigint, so that sums leave it (A2). */
static void
huge_amounts(Document *d)
{
	static const int64_t caps[] = {
		INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, INT64_MAX / 2 + 1, INT64_MAX / 3, INT64_MAX / 64
	};
	static const int64_t parts[] = {1, 1, 3, 7, 50};
	static const int64_t intervals[] = {1, 2, 3, 60};

	d->cap = ONE_OF(caps);
	d->units = d->cap / ONE_OF(parts);
	d->interval = ONE_OF(intervals);
	d->largest = d->cap;
	d->outstanding = one_in(2) ? NO_LIMIT : d->cap;
	d->hard_limit = ONE_OF(caps);
	d->maximum_overdraft = ONE_OF(caps);
}

static Document
random_document(int64_t generation)
{
	static const int64_t epochs[][PATTERN] = {
		{10, 10, 10}, {50, 50, 50}, {40, 50, 45}, {10, 10, 10}, {50, 50, 50}, {5, 5, 5},
		{10, 9, 11}, {10, 9, 11}, {5, 7, 6}
	};
	static const int64_t hold_ttls[] = {3, 6, 15, 40};
	static const int64_t execution_ttls[] = {4, 10, 30};
	static const int64_t shares[] = {0, 20, 50, 75, 100, 100};
	static const int64_t shard_ttls[] = {5, 30, 100, 200};
	Document	d = {.generation = generation};

	do
		d.kind = (Kind) between(0, KINDS - 1);
	while (!run.kinds[d.kind]);
	if (run.huge)
		huge_amounts(&d);
	else
		random_amounts(&d);
	memcpy(d.epoch, run.shape < 3 ? epochs[run.shape] : ONE_OF(epochs), sizeof(d.epoch));
	d.hold_ttl = ONE_OF(hold_ttls);
	d.execution_ttl = ONE_OF(execution_ttls);
	d.share = ONE_OF(shares);
	d.shard_ttl = ONE_OF(shard_ttls);
	return d;
}

static void
begin(int64_t seed)
{
	static const bool mixes[][KINDS] = {
		/* continuous, window, none */
		{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, {1, 1, 0}, {0, 1, 1}
	};
	Document	first;

	memset(&run, 0, sizeof(run));
	run.seed = seed;
	chance_state = (uint64_t) seed;
	memcpy(run.kinds, ONE_OF(mixes), sizeof(run.kinds));
	run.shape = (int) between(0, 5);
	run.huge = one_in(8);
	run.shards = one_in(2);
	run.next_id = run.next_shard = run.next_operation = run.next_key = 1;
	run.clock = LL_PERIOD_ORIGIN + between(-30, 40);
	first = random_document(1);
	naive_open(&naive, &first, run.clock);
	ledger_open(&ledger, &first, run.clock);
}

/* ---- choosing a call ----------------------------------------------------- */

/* wanted tells whether a call would do something with a reservation. */
static bool
wanted(CallName name, const NaiveReservation *r)
{
	switch (name)
	{
		case START:
		case RELEASE:
		case CLAIM:
			return r->state == RESERVED;
		case SETTLE:
		case REPORT_PROGRESS:
			return r->state == STARTED || r->state == USAGE_UNKNOWN;
		case REPORT_UNKNOWN:
			return r->state == STARTED;
		case EXTEND:
			return (r->state == RESERVED || r->state == STARTED) && r->expires > run.clock;
		case FINISH:
			return r->state == EXPIRING;
		case RESERVE:
		case RESOLVE:
		case REPAY:
		case UNFREEZE:
		case FREEZE:
		case DRAIN:
		case FREEZE_ROUTE:
		case UNFREEZE_ROUTE:
		case PUBLISH:
		case RECORD_USAGE:
		case GRANT:
		case ISSUE:
		case RECONCILE:
		case WRITE_OFF:
		case LEGACY_RECEIPT:
		case GATEWAY_RESERVE:
		case GATEWAY_SETTLE:
		case GATEWAY_RELEASE:
		case GATEWAY_EXPIRE:
		case GATEWAY_SEAL:
		case GATEWAY_BOOT:
		case REPORT:
			break;
	}
	return false;
}

/* some_reservation: mostly a wanted one, else one of the last; NULL: there is none. */
static const NaiveReservation *
some_reservation(CallName name)
{
	const NaiveReservation *choice = NULL;
	int			count = 0;

	if (naive.reservations == 0)
		return NULL;
	if (!one_in(5))
		for (int i = 0; i < naive.reservations; i++)
			if (wanted(name, &naive.reservation[i]) && one_in(++count))
				choice = &naive.reservation[i];
	if (choice == NULL)
		choice = &naive.reservation[naive.reservations -
									between(1, naive.reservations < 8 ? naive.reservations : 8)];
	return choice;
}

/* some_units asks for what often fits. */
static int64_t
some_units(void)
{
	int64_t		cap = naive.policy[naive.budget[naive.budgets - 1].policy].cap;

	if (!run.huge)
		return one_in(4) ? between(1, 11) : between(1, cap);
	return one_in(10) ? INT64_MAX : one_in(4) ? cap : 1 + between(0, cap / 4);
}

static Call
new_reserve(const NaiveReservation *r)
{
	return (Call) {
		.name = RESERVE,.id = run.next_id++,.units = some_units(),.digest = (int) between(1, 3),
		.deadline = one_in(10) ? run.clock + between(-2, 4) : NO_LIMIT,
		.wrong_region = one_in(50),.wrong_estimator = one_in(50),
		.operation = !one_in(4) ? 0 : one_in(20) && r != NULL ? r->operation : run.next_operation++
	};
}

/* some_actual is what an execution used of so many units, or above them. */
static int64_t
some_actual(int64_t units)
{
	int64_t		actual;

	switch (between(0, 6))
	{
		case 0:
			actual = 0;
			break;
		case 1:
			actual = units;
			break;
		case 2:
		case 3:
			actual = units + (run.huge ? between(0, INT64_MAX - units) >> between(0, 8)
							  : between(1, 12));
			break;
		default:
			actual = between(0, units);
			break;
	}
	return actual;
}

static Call
new_settle(const NaiveReservation *r)
{
	return (Call) {
		.name = SETTLE,.id = r->id,.units = some_actual((int64_t) r->units),.digest = (int) between(0, 2),
		.attested = one_in(3),
		.operation = one_in(12) ? run.next_operation++ : r->operation
	};
}

/* new_extend: units, a later deadline or both, seldom more than the TTL allows. */
static Call
new_extend(const NaiveReservation *r)
{
	const Document *own = &naive.policy[r->budget < 0 ? 0 : naive.budget[r->budget].policy];
	int64_t		ttl = r->state == STARTED ? own->execution_ttl : own->hold_ttl;
	int64_t		deadline = NO_LIMIT;
	int64_t		units = one_in(3) ? 0 : run.huge ? some_units() : between(1, one_in(3) ? 11 : 3);

	if (units == 0 || one_in(3))
		deadline = one_in(20) ? NO_LIMIT : run.clock + (one_in(2) ? ttl : between(-2, ttl + 1));
	return (Call) {
		.name = EXTEND,.id = r->id,.key = run.next_key++,.units = units,.deadline = deadline
	};
}

/* new_progress: mostly a little more, sometimes less, or more than is reserved. */
static Call
new_progress(const NaiveReservation *r)
{
	int64_t		units = (int64_t) r->units;

	return (Call) {
		.name = REPORT_PROGRESS,.id = r->id,
		.units = one_in(8) && units < INT64_MAX - 3 ? units + between(1, 3)
			: one_in(20) ? 0 : between(0, units),
		.operation = one_in(12) ? run.next_operation++ : r->operation
	};
}

/* new_usage: seldom under an operation that is known already. */
static Call
new_usage(void)
{
	const NaiveReservation *r = some_reservation(SETTLE);
	const NaiveRecord *record = &naive.record[naive.records > 0 ? between(0, naive.records - 1) : 0];
	Call		call = {.name = RECORD_USAGE,.units = one_in(3) ? between(1, 12) : between(1, 3)};

	call.imported = one_in(4);
	if (run.huge)
		call.units = one_in(20) ? INT64_MAX : some_units();
	if (one_in(10) && r != NULL && r->operation != 0)
		call.operation = r->operation;
	else if (one_in(10) && naive.records > 0 && record->call == RECORD_USAGE)
		call.operation = record->key;
	else
		call.operation = run.next_operation++;
	return call;
}

static Call
new_publish(void)
{
	Call		call = {.name = PUBLISH,.document = random_document(naive.policies + 1)};

	if (one_in(3))				/* B4: a rollback is older content, new generation */
	{
		call.document = naive.policy[between(0, naive.policies - 1)];
		call.document.generation = naive.policies + 1;
	}
	return call;
}

/* some_operation: its own or a new one, seldom another's, of a reservation or not. */
static int
some_operation(const NaiveReservation *r)
{
	const NaiveReservation *other = some_reservation(SETTLE);
	const NaiveRecord *record = &naive.record[naive.records > 0 ? between(0, naive.records - 1) : 0];

	if (one_in(20) && naive.records > 0 && record->call == RECORD_USAGE)
		return record->key;
	if (r->operation != 0 && !one_in(4))
		return r->operation;
	return one_in(10) && other->operation != 0 ? other->operation : run.next_operation++;
}

/* ---- shards -------------------------------------------------------------- */

/* wants tells whether a call would do something with a shard. */
static bool
wants(CallName name, const NaiveShard *s)
{
	if (name == GATEWAY_RESERVE)
		return !s->gateway.sealed && s->expires > run.clock && s->gateway.available > 0;
	if (name == GATEWAY_SEAL)
		return !s->gateway.sealed;
	if (name == REPORT)
		return s->cut == s->reconciled && !s->settled;
	if (name == RECONCILE)
		return s->cut > s->reconciled;
	return !s->settled;
}

/* some_shard: mostly one that the call would do something with; NULL: there is none. */
static const NaiveShard *
some_shard(CallName name, bool legacy)
{
	const NaiveShard *choice = NULL;
	bool		any = one_in(6);
	int			count = 0;

	for (int i = 0; i < naive.shards; i++)
		if (naive.shard[i].legacy == legacy && (any || wants(name, &naive.shard[i])) &&
			one_in(++count))
			choice = &naive.shard[i];
	return choice;
}

/* some_item: mostly one that the call would do something with. */
static const NaiveItem *
some_item(CallName name)
{
	const NaiveItem *choice = NULL;
	bool		any = one_in(5);
	int			count = 0;

	for (int i = 0; i < naive.items; i++)
	{
		NaiveState	state = naive.item[i].state;
		bool		wanted = name == GATEWAY_SETTLE ? state == STARTED || state == USAGE_UNKNOWN
			: state == RESERVED;

		if ((any || wanted) && one_in(++count))
			choice = &naive.item[i];
	}
	return choice;
}

static int
operation_of_an_item(void)
{
	const NaiveItem *item = some_item(GATEWAY_SETTLE);

	return one_in(12) && item != NULL && item->operation != 0
		? item->operation : run.next_operation++;
}

static Call
new_issue(void)
{
	const Document *p = &naive.policy[naive.budget[naive.budgets - 1].policy];
	int64_t		share = p->cap / 100 * p->share + p->cap % 100 * p->share / 100;

	return (Call) {
		.name = ISSUE,.shard = run.next_shard++,.legacy = one_in(6),
		.units = share == 0 || one_in(5) ? some_units() : between(1, share)
	};
}

/* tamper changes a figure of a report, or takes from one what it gives to another. */
static void
tamper(Figures *f)
{
	int64_t	   *figure[] = {
		&f->allocated, &f->available, &f->reserved, &f->spent, &f->retired, &f->excess
	};
	int64_t		by = one_in(2) ? 1 : -1;

	if (one_in(8) && f->allocated < INT64_MAX)	/* more than it was given, and adds up */
	{
		f->allocated++;
		f->retired++;
		return;
	}
	if (one_in(4) && f->spent > 0)	/* what was used is to come back */
	{
		f->spent--;
		f->retired++;
		return;
	}
	for (int n = (int) between(1, 2); n > 0; n--, by = -by)
	{
		int64_t    *one = ONE_OF(figure);

		if (*one < INT64_MAX)
			*one += by;
	}
	if (one_in(8))
		f->sealed = !f->sealed;
}

/* deliver sends a report: mostly the next one, else any; seldom not as it was cut. */
static bool
deliver(Call *call)
{
	const NaiveShard *s = some_shard(RECONCILE, false);
	const NaiveReport *report;

	if (one_in(50) && (s = some_shard(RECONCILE, true)) != NULL)
	{
		*call = (Call) {.name = RECONCILE,.shard = s->id,.key = 1};
		return true;
	}
	if (s == NULL || s->cut == 0)
		return false;
	*call = (Call) {
		.name = RECONCILE,.shard = s->id,
		.key = one_in(6) || s->reconciled == s->cut ? (int) between(1, s->cut) : s->reconciled + 1
	};
	report = naive_report(&naive, s->id, call->key);
	call->figures = report->taken ? report->booked : report->cut;
	if (one_in(10))
		tamper(&call->figures);
	return true;
}

static Call
new_legacy_receipt(const NaiveShard *s)
{
	int64_t		left = (int64_t) s->last.available;
	int64_t		reserved = one_in(8) && left < 100 ? left + between(1, 3) : between(0, left);

	if (!run.huge && one_in(2))
		reserved = between(0, reserved < 3 ? reserved : 3);
	return (Call) {
		.name = LEGACY_RECEIPT,.shard = s->id,.operation = run.next_operation++,
		.reserved = reserved,.units = one_in(3) ? some_actual(reserved) : between(0, reserved)
	};
}

static Call
new_gateway_reserve(const NaiveShard *s)
{
	int64_t		left = (int64_t) s->gateway.available;

	return (Call) {
		.name = GATEWAY_RESERVE,.id = run.next_id++,.shard = s->id,
		.units = one_in(8) ? some_units() : 1 + between(0, run.huge || left < 4 ? left / 2 : 3),
		.deadline = one_in(10) ? run.clock + between(-2, 4) : NO_LIMIT,
		.operation = one_in(3) ? 0 : operation_of_an_item()
	};
}

/* on_item ends what is held at the gateway. */
static bool
on_item(Call *call)
{
	const NaiveItem *item = some_item(call->name);

	if (item == NULL && !one_in(10))
		return false;
	call->id = item == NULL || one_in(40) ? -1 : item->id;
	if (call->name != GATEWAY_SETTLE)
		return true;
	call->units = some_actual(item != NULL ? (int64_t) item->units : 1);
	call->digest = (int) between(0, 2);
	if (item != NULL && item->state == USAGE_UNKNOWN && item->operation == 0 && one_in(5))
		item = &naive.item[between(0, naive.items - 1)];	/* perhaps another's operation */
	call->operation = item == NULL || item->operation == 0 || one_in(12)
		? operation_of_an_item() : item->operation;
	return true;
}

/* choose_shard_call completes a call about shards; false: there is none to be about. */
static bool
choose_shard_call(Call *call)
{
	CallName	name = call->name;
	const NaiveShard *s = some_shard(name, name == LEGACY_RECEIPT ? !one_in(20)
									 : name == WRITE_OFF && one_in(4));

	*call = (Call) {.name = name};
	if (name == ISSUE)
		*call = new_issue();
	else if (name == RECONCILE)
		return deliver(call);
	else if (name == GATEWAY_SETTLE || name == GATEWAY_RELEASE || name == GATEWAY_EXPIRE)
		return on_item(call);
	else if (s == NULL)
		return false;
	else if (name == LEGACY_RECEIPT)
		*call = new_legacy_receipt(s);
	else if (name == GATEWAY_RESERVE)
		*call = new_gateway_reserve(s);
	else
		*call = (Call) {
			.name = name,.shard = s->id,.receipts = one_in(4) ? (int) between(0, 1) : LENGTH_MAX
		};
	return true;
}

/* hurry: a deficit lasts for its window alone, so units of shards are called in. */
static CallName
hurry(CallName name)
{
	static const CallName in_turn[] = {GATEWAY_SEAL, REPORT, RECONCILE, RECONCILE};

	if (naive.shards == 0 || naive.budget[naive.budgets - 1].deficit == 0 || one_in(3))
		return name;
	return ONE_OF(in_turn);
}

/* repeat sends a call again, or contradicts it (D2, D5, D6, D12, D13, E3). */
static bool
repeat(Call *call)
{
	bool		contradict = one_in(3);

	if (run.remembered == 0)
		return false;
	*call = run.memory[between(0, (run.remembered < REMEMBERED ? run.remembered : REMEMBERED) - 1)];
	run.expected = contradict ? "CONFLICT" : "ACCEPTED";
	run.expected_replay = !contradict;
	if (contradict && (call->name == RELEASE || call->name == RESOLVE ||
					   call->name == GATEWAY_RELEASE))
		return false;
	facts[contradict ? contradictions : repeats]++;
	if (!contradict)
		return true;
	if (call->name == RECONCILE)
		call->figures.reserved--;
	else if (call->name == START ||
			 ((call->name == SETTLE || call->name == GATEWAY_SETTLE) && one_in(3)))
		call->operation = run.next_operation++;
	else if (call->name == EXTEND && one_in(2))
		call->deadline = call->deadline == NO_LIMIT ? run.clock : call->deadline + 1;
	else if ((call->name == RESERVE || call->name == SETTLE ||
			  call->name == GATEWAY_SETTLE) && one_in(2))
		call->digest++;
	else
		call->units -= call->units > 1 ? 1 : -1;
	return true;
}

/* choose_call makes the next call; false: this event is time alone. */
static bool
choose_call(Call *call)
{
	static const struct
	{
		CallName	name;
		int			weight;
	}			table[] = {
		{RESERVE, 240}, {START, 130}, {SETTLE, 130}, {RELEASE, 45}, {REPORT_UNKNOWN, 35},
		{CLAIM, 40}, {FINISH, 30}, {RESOLVE, 12}, {REPAY, 20}, {UNFREEZE, 30}, {FREEZE, 3},
		{DRAIN, 3}, {PUBLISH, 40}, {EXTEND, 90}, {REPORT_PROGRESS, 40}, {RECORD_USAGE, 25},
		{GRANT, 20}, {FREEZE_ROUTE, 3}, {UNFREEZE_ROUTE, 30}, {CALLS, 60},	/* CALLS: a repeat */
		{ISSUE, 120}, {RECONCILE, 200}, {WRITE_OFF, 8}, {LEGACY_RECEIPT, 30},
		{GATEWAY_RESERVE, 160}, {GATEWAY_SETTLE, 200}, {GATEWAY_RELEASE, 25},
		{GATEWAY_EXPIRE, 30}, {GATEWAY_SEAL, 60}, {GATEWAY_BOOT, 12}, {REPORT, 200}
	};
	const NaiveReservation *r;
	int64_t		ticket = 0;
	int			i = 0;

	for (size_t n = 0; n < sizeof(table) / sizeof(table[0]); n++)
		if (run.shards || table[n].name < ISSUE || table[n].name == CALLS)
			ticket += table[n].weight;
	ticket = between(0, ticket - 1);
	run.expected = NULL;
	while (ticket >= table[i].weight)
		ticket -= table[i++].weight;
	if (table[i].name == CALLS)
		return repeat(call);
	*call = (Call) {.name = hurry(table[i].name)};
	if (call->name >= ISSUE)
		return choose_shard_call(call);
	r = some_reservation(call->name);
	*call = (Call) {.name = call->name,.id = one_in(40) || r == NULL ? -1 : r->id};
	switch (call->name)
	{
		case RESERVE:
			*call = new_reserve(r);
			return true;
		case SETTLE:
			if (call->id > 0)
				*call = new_settle(r);
			else
				call->operation = run.next_operation++;
			return true;
		case START:
		case REPORT_UNKNOWN:
			call->operation = call->id > 0 ? some_operation(r) : run.next_operation++;
			call->by_caller = one_in(2);
			return true;
		case EXTEND:
			if (call->id > 0)
				*call = new_extend(r);
			else
				call->deadline = run.clock;
			return true;
		case REPORT_PROGRESS:
			if (call->id > 0)
				*call = new_progress(r);
			else
				call->operation = run.next_operation++;
			return true;
		case RECORD_USAGE:
			*call = new_usage();
			return true;
		case GRANT:
			call->id = 0;
			call->key = run.next_key++;
			call->units = some_units();
			return true;
		case RESOLVE:
			call->digest = (int) between(1, 3);
			if (one_in(2))
				call->id = run.next_id++;
			return call->id > 0;
		case PUBLISH:
			*call = new_publish();
			return true;
		case RELEASE:
		case CLAIM:
		case FINISH:
		case REPAY:
		case UNFREEZE:
		case FREEZE:
		case DRAIN:
		case FREEZE_ROUTE:
		case UNFREEZE_ROUTE:
		case ISSUE:
		case RECONCILE:
		case WRITE_OFF:
		case LEGACY_RECEIPT:
		case GATEWAY_RESERVE:
		case GATEWAY_SETTLE:
		case GATEWAY_RELEASE:
		case GATEWAY_EXPIRE:
		case GATEWAY_SEAL:
		case GATEWAY_BOOT:
		case REPORT:
			break;
	}
	return true;
}

/* ---- failure ------------------------------------------------------------- */

static void
print_document(const Document *d)
{
	static const char *const kinds[KINDS] = {"continuous", "window", "none"};

	printf("#   policy %d: %s cap %lld, %lld every %lld, epochs %lld/%lld/%lld, largest %lld, "
		   "outstanding %lld, hard limit %lld, overdraft %lld, ttl %lld/%lld, "
		   "shards %lld%% for %lld\n",
		   (int) d->generation, kinds[d->kind], (long long) d->cap, (long long) d->units,
		   (long long) d->interval, (long long) d->epoch[0], (long long) d->epoch[1],
		   (long long) d->epoch[2], (long long) d->largest,
		   d->outstanding == NO_LIMIT ? -1LL : (long long) d->outstanding,
		   (long long) d->hard_limit, (long long) d->maximum_overdraft,
		   (long long) d->hold_ttl, (long long) d->execution_ttl, (long long) d->share,
		   (long long) d->shard_ttl);
}

static void
print_answer(const char *side, const Answer *a)
{
	printf("#   %-6s said %s %s%s%s, wait %s %lld%s\n", side, a->outcome, a->dimension,
		   a->replayed ? " replayed" : "", a->overflow ? " overflow" : "",
		   a->wait_kind, (long long) a->wait, a->wrote ? ", wrote" : "");
}

#define PRINT(name) \
	if (n.name != l.name) \
		printf("\n#       %s %lld, ledger %lld  <<<", \
			   #name, (long long) n.name, (long long) l.name); \
	else if (n.name != 0) \
		printf(" %s %lld", #name, (long long) n.name);

static void
print_figures(const char *whose, const Figures *a, const Figures *b)
{
	Figures		n = *a;
	Figures		l = *b;

	printf("\n#     %s:", whose);
	FIGURE_FIELDS(PRINT)
}

static void
print_shards(int shards, int items, int reports)
{
	for (int i = 0; i < shards; i++)
	{
		ShardView	n;
		ShardView	l;

		naive_show_shard(&naive, i, &n);
		ledger_show_shard(&ledger, i, &l);
		printf("\n#   shard %d, naive:", i);
		SHARD_FIELDS(PRINT)
		print_figures("gateway", &n.gateway, &l.gateway);
		print_figures("last", &n.last, &l.last);
	}
	for (int i = 0; i < items; i++)
	{
		ItemView	n;
		ItemView	l;

		naive_show_item(&naive, i, &n);
		ledger_show_item(&ledger, i, &l);
		printf("\n#   item %d, naive: %s", i, n.state);
		if (strcmp(n.state, l.state) != 0)
			printf(", ledger %s  <<<", l.state);
		ITEM_FIELDS(PRINT)
	}
	for (int i = 0; i < reports; i++)
	{
		ReportView	n;
		ReportView	l;

		naive_show_report(&naive, i, &n);
		ledger_show_report(&ledger, i, &l);
		printf("\n#   report %d, naive:", i);
		REPORT_FIELDS(PRINT)
		print_figures("cut", &n.cut, &l.cut);
		if (n.taken || l.taken)
			print_figures("booked", &n.booked, &l.booked);
	}
}

static void
print_states(void)
{
	int			budgets;
	int			rows;
	int			records;
	int			shards;
	int			items;
	int			reports;

	{
		PairView	n;
		PairView	l;

		naive_show_pair(&naive, &n);
		ledger_show_pair(&ledger, &l);
		printf("#   pair, naive:");
		PAIR_FIELDS(PRINT)
		budgets = (int) (n.budgets < l.budgets ? n.budgets : l.budgets);
		rows = (int) (n.reservations < l.reservations ? n.reservations : l.reservations);
		records = (int) (n.records < l.records ? n.records : l.records);
		shards = (int) (n.shards < l.shards ? n.shards : l.shards);
		items = (int) (n.items < l.items ? n.items : l.items);
		reports = (int) (n.reports < l.reports ? n.reports : l.reports);
	}
	for (int i = 0; i < budgets; i++)
	{
		BudgetView	n;
		BudgetView	l;

		naive_show_budget(&naive, i, &n);
		ledger_show_budget(&ledger, i, &l);
		printf("\n#   budget %d, naive:", i);
		BUDGET_FIELDS(PRINT)
	}
	for (int i = 0; i < rows; i++)
	{
		ReservationView n;
		ReservationView l;

		naive_show_reservation(&naive, i, &n);
		ledger_show_reservation(&ledger, i, &l);
		printf("\n#   reservation %d, naive: %s", i, n.state);
		if (strcmp(n.state, l.state) != 0)
			printf(", ledger %s  <<<", l.state);
		RESERVATION_FIELDS(PRINT)
	}
	for (int i = 0; i < records; i++)
	{
		RecordView	n;
		RecordView	l;

		naive_show_record(&naive, i, &n);
		ledger_show_record(&ledger, i, &l);
		printf("\n#   record %d, naive:", i);
		RECORD_FIELDS(PRINT)
	}
	print_shards(shards, items, reports);
	printf("\n");
}

/* fail tells what broke, how to see it again, and what both sides hold. */
static bool
fail(const char *what)
{
	const Call *c = &run.call;

	printf("not ok 1 - %s\n", what);
	printf("#   seed %lld, event %d; again with: --seed %lld --events %d --length %d\n",
		   (long long) run.seed, run.event, (long long) run.seed, run.event + 1, run.event + 1);
	printf("#   clock %lld: %s id %d, key %d, units %lld, digest %d, operation %d, "
		   "deadline %lld%s%s%s%s\n",
		   (long long) run.clock, call_name[c->name], c->id, c->key, (long long) c->units,
		   c->digest, c->operation, c->deadline == NO_LIMIT ? -1LL : (long long) c->deadline,
		   c->by_caller ? ", by the caller" : "", c->attested ? ", attested" : "",
		   c->wrong_region ? ", wrong region" : "", c->wrong_estimator ? ", wrong estimator" : "");
	if (c->name >= ISSUE)
		printf("#   shard %d%s, receipts %d, reserved %lld, figures %lld = %lld + %lld + %lld + %lld, "
			   "excess %lld%s\n", c->shard, c->legacy ? " of the old limiter" : "", c->receipts,
			   (long long) c->reserved, (long long) c->figures.allocated,
			   (long long) c->figures.available, (long long) c->figures.reserved,
			   (long long) c->figures.spent, (long long) c->figures.retired,
			   (long long) c->figures.excess, c->figures.sealed ? ", sealed" : "");
	print_answer("naive", &run.naive_said);
	print_answer("ledger", &run.ledger_said);
	for (int i = 0; i < naive.policies; i++)
		print_document(&naive.policy[i]);
	print_states();
	return false;
}

/* ---- comparison ---------------------------------------------------------- */

static bool
same_answer(void)
{
	const Answer *n = &run.naive_said;
	const Answer *l = &run.ledger_said;

	return strcmp(n->outcome, l->outcome) == 0 && strcmp(n->dimension, l->dimension) == 0 &&
		strcmp(n->wait_kind, l->wait_kind) == 0 && (n->wait == l->wait || run.huge) &&
		n->replayed == l->replayed && n->overflow == l->overflow && n->wrote == l->wrote;
}

static bool
same_shards(const PairView *p)
{
	for (int i = 0; i < p->shards; i++)
	{
		ShardView	n;
		ShardView	l;

		naive_show_shard(&naive, i, &n);
		ledger_show_shard(&ledger, i, &l);
		if (memcmp(&n, &l, sizeof(n)) != 0)
			return false;
	}
	for (int i = 0; i < p->items; i++)
	{
		ItemView	n;
		ItemView	l;

		naive_show_item(&naive, i, &n);
		ledger_show_item(&ledger, i, &l);
		if (strcmp(n.state, l.state) != 0 || memcmp(&n, &l, offsetof(ItemView, state)) != 0)
			return false;
	}
	for (int i = 0; i < p->reports; i++)
	{
		ReportView	n;
		ReportView	l;

		naive_show_report(&naive, i, &n);
		ledger_show_report(&ledger, i, &l);
		if (memcmp(&n, &l, sizeof(n)) != 0)
			return false;
	}
	return true;
}

static bool
same_states(void)
{
	PairView	pn;
	PairView	pl;

	naive_show_pair(&naive, &pn);
	ledger_show_pair(&ledger, &pl);
	if (memcmp(&pn, &pl, sizeof(pn)) != 0)
		return false;
	for (int i = 0; i < pn.budgets; i++)
	{
		BudgetView	n;
		BudgetView	l;

		naive_show_budget(&naive, i, &n);
		ledger_show_budget(&ledger, i, &l);
		if (memcmp(&n, &l, sizeof(n)) != 0)
			return false;
	}
	for (int i = 0; i < pn.reservations; i++)
	{
		ReservationView n;
		ReservationView l;

		naive_show_reservation(&naive, i, &n);
		ledger_show_reservation(&ledger, i, &l);
		if (strcmp(n.state, l.state) != 0 ||
			memcmp(&n, &l, offsetof(ReservationView, state)) != 0)
			return false;
	}
	for (int i = 0; i < pn.records; i++)
	{
		RecordView	n;
		RecordView	l;

		naive_show_record(&naive, i, &n);
		ledger_show_record(&ledger, i, &l);
		if (memcmp(&n, &l, sizeof(n)) != 0)
			return false;
	}
	return same_shards(&pn);
}

static const NaiveReservation *
reservation_of(const Naive *m, int id)
{
	for (int i = 0; i < m->reservations; i++)
		if (m->reservation[i].id == id)
			return &m->reservation[i];
	return NULL;
}

/* count_extension notes what an extend did. */
static void
count_extension(bool accepted, long ended)
{
	const NaiveReservation *r = reservation_of(&naive, run.call.id);
	const NaiveReservation *was = reservation_of(&before, run.call.id);

	facts[holds_ended_by_extend] += ended;
	if (!accepted)
		return;
	facts[let_in_by_due_holds] += ended > 0;
	facts[units_added] += r->units > was->units;
	facts[deadlines_moved] += r->expires > was->expires;
	facts[closed_moved] += r->expires > was->expires && r->budget < naive.budgets - 1;
	facts[deadlines_kept] += run.call.deadline != NO_LIMIT && r->expires == was->expires;
}

/* count_operators notes what recorded usage or a grant did to the head, unless that is new. */
static void
count_operators(const NaiveBudget *h, const NaiveBudget *old, Number older_repaid)
{
	if (run.call.name == RECORD_USAGE)
	{
		facts[usage_covered] += h->issued == old->issued;
		facts[usage_in_debt] += h->issued > old->issued;
		facts[frozen_by_usage] += naive.frozen && !before.frozen;
	}
	if (run.call.name != GRANT)
		return;
	facts[older_granted] += older_repaid > 0;
	facts[debt_granted] += h->repaid > old->repaid;
	facts[deficit_granted] += h->deficit < old->deficit;
	facts[available_granted] += h->available > old->available;
	facts[grants_cut] += naive.record[naive.records - 1].granted < run.call.units;
}

/* count_settlement notes how one stands to the progress. */
static void
count_settlement(void)
{
	const NaiveReservation *r = reservation_of(&naive, run.call.id);

	facts[attested] += run.call.attested && r->progress > 0;
	facts[below_progress] += r->actual < r->progress;
}

/* count_report notes what figures did that the ledger took in. */
static void
count_report(const NaiveShard *s, const NaiveShard *was, const NaiveBudget *old)
{
	const NaiveBudget *h = &naive.budget[before.budgets - 1];
	Number		confirmed = s->confirmed - was->confirmed;
	Number		excess = s->booked - was->booked;
	bool		still = naive.budgets == before.budgets;	/* it opened no budget */

	if (s->legacy)
	{
		facts[legacy_reminted] += s->reminted > was->reminted;
		facts[legacy_above] += excess > 0;
		return;
	}
	facts[units_reminted] += s->reminted > was->reminted;
	facts[reminted_later] += s->reminted > was->reminted && s->budget < naive.budgets - 1;
	facts[remint_paid] += still && s->reminted > was->reminted && h->repaid > old->repaid;
	facts[remint_burned] += still && h->burned > old->burned;
	facts[shards_lapsed] += confirmed > 0 &&
		naive.budget[s->budget].line != naive.budget[naive.budgets - 1].line;
	facts[waited_for_receipts] += s->last.sealed && !s->written_off && confirmed == 0 &&
		s->last.retired > s->confirmed;
	facts[waited_for_seal] += !s->last.sealed && s->last.available > 0 &&
		s->receipted == s->last.spent + s->last.excess;
	facts[open_confirmed] += confirmed > 0 && s->last.reserved > 0;
	facts[excess_covered] += still && excess > 0 && h->issued == old->issued;
	facts[excess_in_debt] += still && excess > 0 && h->issued > old->issued;
	facts[excess_repaid_at_once] += still && h->issued > old->issued && h->repaid > old->repaid;
	facts[frozen_by_shard] += naive.frozen && !before.frozen;
	facts[late_reports] += s->written_off;
	facts[late_excess] += s->written_off && excess > 0;
	facts[late_retired] += s->written_off && s->last.sealed && s->last.retired > was->last.retired;
	facts[shards_settled] += s->settled && !was->settled;
	facts[lies_taken] += s->lied && !was->lied;
}

/* count_shards notes what an accepted call about shards did. */
static void
count_shards(void)
{
	const Call *c = &run.call;
	int			open = 0;
	int			sealed = 0;
	int			unknown = 0;

	for (int i = 0; i < before.items; i++)
	{
		const NaiveItem *item = &naive.item[i];
		const NaiveItem *was = &before.item[i];

		unknown += item->state != was->state && item->state == USAGE_UNKNOWN;
		facts[bound_by_receipt] += was->state == USAGE_UNKNOWN && was->operation != item->operation;
		facts[covered_here] += was->state != item->state && item->excess > item->overdraft;
		facts[excess_here] += was->overdraft < item->overdraft;
		open += c->name == REPORT && item->shard == c->shard && item->report == 0 &&
			(item->state == SETTLED || item->state == SETTLED_WITH_DEBT);
	}
	for (int i = 0; i < before.shards; i++)
	{
		const NaiveShard *s = &naive.shard[i];
		const NaiveShard *was = &before.shard[i];

		sealed += s->gateway.sealed && !was->gateway.sealed;
		facts[retired_late] += was->gateway.sealed && s->gateway.retired > was->gateway.retired;
		facts[share_freed] += c->name == ISSUE && s->settled && !s->written_off && !s->legacy;
		if (s->reconciled > was->reconciled)
			count_report(s, was, &before.budget[before.budgets - 1]);
	}
	facts[parts_of_receipts] += open > 0;
	facts[sealed_by_boot] += c->name == GATEWAY_BOOT ? sealed : 0;
	facts[unknown_by_boot] += c->name == GATEWAY_BOOT && unknown > 0;
}

/* count_facts notes what this call did, from the naive side. */
static void
count_facts(void)
{
	const NaiveBudget *h = &naive.budget[naive.budgets - 1];
	const NaiveBudget *old = &before.budget[before.budgets - 1];
	const NaiveBudget *closed = &naive.budget[before.budgets - 1];
	const Answer *a = &run.naive_said;
	bool		accepted = strcmp(a->outcome, "ACCEPTED") == 0 && !a->replayed;
	Number		older_repaid = 0;
	long		ended = 0;

	answers[run.call.name][column_of(a)]++;
	for (int i = before.budgets; i < naive.budgets; i++)
	{
		const NaiveBudget *b = &naive.budget[i];
		const Document *now = &naive.policy[b->policy];
		const Document *was = &naive.policy[b[-1].policy];

		if (b->policy != b[-1].policy)
			facts[b->whole ? switches_whole : switches_other]++;
		else
			facts[b->whole ? windows_opened : epochs_opened]++;
		facts[deficits] += b->deficit > 0;
		facts[rates_changed] += i == naive.budgets - 1 && b->policy != b[-1].policy &&
			now->kind == CONTINUOUS && was->kind == CONTINUOUS &&
			now->interval != was->interval && naive.remainder > 0;
	}
	for (int i = 0; i < before.budgets - 1; i++)
	{
		older_repaid += naive.budget[i].repaid - before.budget[i].repaid;
		if (naive.budget[i].available > before.budget[i].available)
			facts[naive.budget[i].line == h->line ? closed_came_back : lapsed]++;
	}
	facts[several_pending] += naive.in_force - before.in_force > 1;
	facts[unopened_paid] += naive.paid_unopened > before.paid_unopened;
	facts[older_debt_repaid] += older_repaid > 0;
	facts[own_debt_repaid] += closed->repaid > old->repaid;
	facts[deficits_filled] += naive.budgets == before.budgets && h->deficit < old->deficit &&
		run.call.name != GRANT;
	facts[debt_and_deficit] += h->deficit > 0 && h->issued > h->repaid;
	facts[debts_made] += run.call.name == SETTLE && a->wrote && h->issued > old->issued;
	facts[unminted] += naive.budgets == before.budgets && h->burned > old->burned;
	facts[frozen_by_breach] += run.call.name == SETTLE && naive.frozen && !before.frozen;
	for (int i = 0; i < before.reservations; i++)
		ended += naive.reservation[i].state != before.reservation[i].state;
	if (run.call.name == RESERVE)
	{
		const NaiveReservation *r = reservation_of(&naive, run.call.id);

		facts[holds_ended] += ended;
		facts[asked_still] += a->replayed && r->units > r->asked;
	}
	if (run.call.name == EXTEND)
		count_extension(accepted, ended);
	if (run.call.name == SETTLE && accepted)
		count_settlement();
	if (accepted && run.call.name >= ISSUE)
		count_shards();
	if (accepted && naive.budgets == before.budgets)
		count_operators(h, old, older_repaid);
	facts[kept_nothing] += !a->wrote;
	facts[refused_yet_kept] += a->wrote && strcmp(a->outcome, "REFUSED") == 0;
}

/* ---- one event ----------------------------------------------------------- */

/* check_wait: a caller that waits exactly that long is admitted, not before (D4). */
static bool
check_wait(void)
{
	const Answer *a = &run.ledger_said;

	if (strcmp(a->wait_kind, "refill") != 0 || run.huge)
		return true;
	if (!ledger_admits(&ledger, run.call.units, a->wait))
		return fail("D4: refused after the stated wait");
	if (ledger_admits(&ledger, run.call.units, a->wait - 1))
		return fail("D4: admitted before the stated wait");
	facts[ledger_policy[ledger.in_force].policy.refill == LL_REFILL_WINDOW
		  ? windows_waited : waits_proved]++;
	return true;
}

/* check_reset: the reset of a receipt says when the pair is full by refill alone (J1). */
static bool
check_reset(void)
{
	int64_t		ticks = ledger_ticks_until_full(&ledger);

	if (run.huge)
		return true;
	if (ticks != naive_ticks_until_full(&naive))
		return fail("J1: reset differs");
	if (ticks >= 0 && !ledger_full(&ledger, ticks))
		return fail("J1: not full at the reset");
	return true;
}

static void
remember(void)
{
	const Call *c = &run.call;

	if (run.naive_said.replayed || strcmp(run.naive_said.outcome, "ACCEPTED") != 0)
		return;
	if (c->name == RESERVE || c->name == START || c->name == SETTLE || c->name == RELEASE ||
		c->name == RESOLVE || c->name == EXTEND || c->name == RECORD_USAGE || c->name == GRANT ||
		c->name == ISSUE || c->name == RECONCILE || c->name == LEGACY_RECEIPT ||
		c->name == GATEWAY_SETTLE || c->name == GATEWAY_RELEASE)
		run.memory[run.remembered++ % REMEMBERED] = *c;
}

static bool
do_call(void)
{
	const char *broken;

	naive.clock = ledger.clock = run.clock;
	run.naive_said = naive_call(&naive, &before, &run.call);
	run.ledger_said = ledger_call(&ledger, &run.call);
	if (run.naive_said.capped)	/* nothing more to compare in this sequence */
	{
		facts[capped]++;
		run.ended = true;
		return true;
	}
	if (run.ledger_said.overflow && run.naive_said.strained)
	{
		run.naive_said = run.ledger_said;
		naive_undo(&naive, &before);
	}
	if (!same_answer())
		return fail("the two answer differently");
	if (!same_states())
		return fail("the two hold different states");
	if (ledger.broken != NULL)
		return fail(ledger.broken);
	broken = naive_check(&naive, &before, &run.call, &run.naive_said);
	if (broken != NULL)
		return fail(broken);
	if (run.naive_said.overflow)
	{
		facts[overflows]++;
		return true;
	}
	if (run.expected != NULL && (strcmp(run.expected, run.naive_said.outcome) != 0 ||
								 run.expected_replay != run.naive_said.replayed))
		return fail("a repeat is not the same answer, or a contradiction no conflict");
	count_facts();
	remember();
	return check_wait() && check_reset();
}

/* pass_time: mostly a little, sometimes long, seldom back (A3). */
static bool
pass_time(void)
{
	static const int64_t steps[] = {1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 5, 5, 8, 8, 30};
	static const int64_t back[] = {1, 5, 30};
	int64_t		step = one_in(100) ? between(100, 300) : ONE_OF(steps);

	if (one_in(30))
	{
		run.clock -= ONE_OF(back);
		facts[stepped_back]++;
		return true;
	}
	naive.clock = ledger.clock = run.clock;
	if (step < 50 && one_in(4) && !run.huge && naive.in_force == naive.policies - 1)
	{
		if (!ledger_late_is_early(&ledger, step))
			return fail("C4: one late roll differs from many early ones");
		facts[late_is_early]++;
	}
	run.clock += step;
	return true;
}

static bool
one_event(void)
{
	if (one_in(5) || !choose_call(&run.call))
		return pass_time();
	return do_call();
}

/* ---- the whole ----------------------------------------------------------- */

static void
print_counts(void)
{
	for (int c = 0; c < CALLS; c++)
		for (int d = 0; d <= LL_DIMENSION_COUNT; d++)
			if (answers[c][d] > 0)
				printf("# %9ld  %s %s\n", answers[c][d], call_name[c],
					   d == 0 ? "accepted" : d == LL_DIMENSION_COUNT ? "replayed" : column_name(d));
	for (int f = 0; f < FACT_COUNT; f++)
		printf("# %9ld  %s\n", facts[f], fact_text[f]);
}

/* listed tells whether a comma-separated list has the word. */
static bool
listed(const char *list, const char *word)
{
	size_t		length = strlen(word);

	for (;;)
	{
		if (strncmp(list, word, length) == 0 && (list[length] == ',' || list[length] == '\0'))
			return true;
		list = strchr(list, ',');
		if (list == NULL)
			return false;
		list++;
	}
}

/* report prints a test for each thing that must have happened. */
static int
report(long events, long sequences)
{
	int			test = 1;
	int			missing = 0;

	printf("ok 1 - %ld events in %ld sequences: every answer, field and rule\n", events, sequences);
	print_counts();
	if (events < ENOUGH)
	{
		printf("1..1\n");
		return 0;
	}
	for (int c = 0; c < CALLS; c++)
		for (int d = 0; d <= LL_DIMENSION_COUNT; d++)
		{
			bool		seen = answers[c][d] > 0;

			if (!listed(must_happen[c], column_name(d)) && !seen)
				continue;
			missing += !seen;
			printf("%s %d - it happened: %s %s\n", seen ? "ok" : "not ok", ++test, call_name[c],
				   d == 0 ? "accepted" : d == LL_DIMENSION_COUNT ? "replayed" : column_name(d));
		}
	for (int f = 0; f < FACT_COUNT; f++)
	{
		missing += facts[f] == 0;
		printf("%s %d - it happened: %s\n", facts[f] > 0 ? "ok" : "not ok", ++test, fact_text[f]);
	}
	printf("1..%d\n", test);
	return missing > 0;
}

static void
usage(FILE *out)
{
	fprintf(out, "usage: run [--seed N] [--events N] [--length N]\n"
			"  --seed N    of the first sequence, default 1; each has the next number\n"
			"  --events N  in all, default %d\n"
			"  --length N  events in one sequence, default %d, at most %d\n",
			EVENTS, LENGTH, LENGTH_MAX);
}

int
main(int argc, char **argv)
{
	long long	seed = 1;
	long long	events = EVENTS;
	long long	length = LENGTH;
	long long	done = 0;
	long		sequences = 0;

	for (int i = 1; i < argc; i++)
	{
		long long  *value = strcmp(argv[i], "--seed") == 0 ? &seed
			: strcmp(argv[i], "--events") == 0 ? &events
			: strcmp(argv[i], "--length") == 0 ? &length : NULL;
		char	   *end = "";

		if (value != NULL && i + 1 < argc)
			*value = strtoll(argv[++i], &end, 10);
		if (strcmp(argv[i], "--help") == 0)
		{
			usage(stdout);
			return 0;
		}
		if (value == NULL || *end != '\0' || events < 1 || length < 1 || length > LENGTH_MAX)
		{
			usage(stderr);
			return 2;
		}
	}
	printf("# seed %lld\n", seed);
	for (; done < events; sequences++)
	{
		begin(seed + sequences);
		for (run.event = 0; run.event < length && done < events && !run.ended;
			 run.event++, done++)
			if (!one_event())
			{
				printf("1..1\n");
				return 1;
			}
	}
	return report((long) done, sequences);
}
