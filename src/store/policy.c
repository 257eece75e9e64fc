/*
 * policy.c
 *	  Frozen policies, kept per backend.  See policy.h.
 *
 * A document never changes, so it may be kept.  What may change is which
 * generations are active and which routes are frozen: any write to either
 * table tells every backend (a trigger invalidates the table's relation cache
 * entry).  The news is read after the pair's lock was taken, and the pair is
 * looked up anew; a publish or a freeze that commits later is one that this
 * call came before (B5, D8).
 *
 * Within one call memory only grows, since the call holds pointers; it is
 * given back when the next one begins.
 */
#include "postgres.h"

#include "policy.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "binding.h"
#include "catalog/pg_type.h"
#include "columns.h"
#include "common/hashfn.h"
#include "core/arith.h"
#include "errors.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "rows.h"
#include "storage/lmgr.h"
#include "table.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(limitledger_policy_await);

/* Pairs that one backend remembers; beyond it forgets them all and starts over. */
#define PAIRS_KEPT	50000

typedef struct PairKey
{
	const char *subject;
	const char *route;
	int			subject_length;
	int			route_length;
} PairKey;

/* A generation that ever ruled a pair, and the instant at which it took over. */
typedef struct Ruler
{
	LLPolicyRow *row;
	TimestampTz since;
} Ruler;

/* All of them, oldest first; the shadow, if any; why the route is frozen, if it is. */
typedef struct PairEntry
{
	PairKey		key;
	int			count;
	Ruler	   *rulers;
	LLPolicyRow *shadow;
	Datum		frozen_reason;
} PairEntry;

static struct
{
	MemoryContext context;		/* all below */
	HTAB	   *policies;		/* generation -> LLPolicyRow */
	HTAB	   *pairs;			/* PairKey -> PairEntry */
	uint64		version;		/* of the tables that it was read from */
	bool		stale;			/* a generation or a freeze was published or moved */
}			cache;

static bool stale_at_start = false;
static Oid	policy_relid = InvalidOid;
static Oid	frozen_route_relid = InvalidOid;

/* ---- the cache ---------------------------------------------------------- */

static uint32
hash_pair(const void *key, Size size)
{
	const PairKey *k = key;

	return hash_combine(hash_bytes((const unsigned char *) k->subject, k->subject_length),
						hash_bytes((const unsigned char *) k->route, k->route_length));
}

static int
compare_pair(const void *a, const void *b, Size size)
{
	const PairKey *x = a;
	const PairKey *y = b;

	return !(x->subject_length == y->subject_length && x->route_length == y->route_length &&
			 memcmp(x->subject, y->subject, x->subject_length) == 0 &&
			 memcmp(x->route, y->route, x->route_length) == 0);
}

static PairKey
pair_key(Datum subject, Datum route)
{
	PairKey		key;

	key.subject = VARDATA_ANY(DatumGetPointer(subject));
	key.subject_length = VARSIZE_ANY_EXHDR(DatumGetPointer(subject));
	key.route = VARDATA_ANY(DatumGetPointer(route));
	key.route_length = VARSIZE_ANY_EXHDR(DatumGetPointer(route));
	return key;
}

static void
on_relcache(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == policy_relid || relid == frozen_route_relid)
		cache.stale = stale_at_start = true;
}

/* ll_policy_init listens to writes of both tables. */
void
ll_policy_init(void)
{
	CacheRegisterRelcacheCallback(on_relcache, (Datum) 0);
}

static HTAB *
make_pairs(void)
{
	HASHCTL		control = {0};

	control.keysize = sizeof(PairKey);
	control.entrysize = sizeof(PairEntry);
	control.hash = hash_pair;
	control.match = compare_pair;
	control.hcxt = cache.context;
	return hash_create("limitledger pairs", 256, &control,
					   HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_CONTEXT);
}

/* ll_policy_begin prepares the cache for a call; no pointer of an older one is left. */
void
ll_policy_begin(void)
{
	HASHCTL		control = {0};

	if (cache.context != NULL && !stale_at_start && cache.version == ll_table_version() &&
		hash_get_num_entries(cache.pairs) < PAIRS_KEPT)
		return;
	if (cache.context == NULL)
		cache.context = AllocSetContextCreate(TopMemoryContext, "limitledger policies",
											  ALLOCSET_DEFAULT_SIZES);
	cache.version = 0;			/* until all is well */
	cache.stale = stale_at_start = false;
	MemoryContextReset(cache.context);
	policy_relid = RelationGetRelid(ll_table(LL_TABLE_POLICY));
	frozen_route_relid = RelationGetRelid(ll_table(LL_TABLE_FROZEN_ROUTE));
	control.keysize = sizeof(int64);
	control.entrysize = sizeof(LLPolicyRow);
	control.hcxt = cache.context;
	cache.policies = hash_create("limitledger policies", 64, &control,
								 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	cache.pairs = make_pairs();
	cache.version = ll_table_version();
}

/*
 * ll_policy_changed takes in what other sessions have committed meanwhile.  To
 * be called after each lock: an open relation alone processes no news.
 */
void
ll_policy_changed(void)
{
	AcceptInvalidationMessages();
	if (cache.stale)
	{
		cache.stale = false;
		cache.pairs = make_pairs();
	}
}

/* ---- calendar epochs (A4) ----------------------------------------------- */

#define row_of(periods_)	((LLPolicyRow *) ((char *) (periods_) - offsetof(LLPolicyRow, periods)))

/* the policy's local time of an instant */
static Timestamp
to_local(const LLPolicyRow *row, TimestampTz instant)
{
	return DatumGetTimestamp(DirectFunctionCall2(timestamptz_zone,
												 CStringGetTextDatum(row->time_zone),
												 TimestampTzGetDatum(instant)));
}

/* local midnight of the period that holds the instant, in the policy's zone */
static Timestamp
local_start(const LLPolicyRow *row, TimestampTz instant)
{
	return DatumGetTimestamp(DirectFunctionCall2(timestamp_trunc,
												 CStringGetTextDatum(row->months ? "month" : "day"),
												 TimestampGetDatum(to_local(row, instant))));
}

/*
 * from_local gives the instant of a local time.  Where clocks go back over
 * midnight a local time comes twice; a period starts with the first of them.
 */
static TimestampTz
from_local(const LLPolicyRow *row, Timestamp local)
{
	TimestampTz instant = DatumGetTimestampTz(DirectFunctionCall2(timestamp_zone,
																  CStringGetTextDatum(row->time_zone),
																  TimestampGetDatum(local)));
	TimestampTz day_before = instant - USECS_PER_DAY;
	TimestampTz earlier = local - (to_local(row, day_before) - day_before);

	return earlier < instant && to_local(row, earlier) == local ? earlier : instant;
}

/* n periods after a local start; a local day may have 23 or 25 hours */
static Timestamp
local_after(const LLPolicyRow *row, Timestamp local, int64 n)
{
	Interval	step = {0};

	if (row->months)
		step.month = n;
	else
		step.day = n;
	return DatumGetTimestamp(DirectFunctionCall2(timestamp_pl_interval,
												 TimestampGetDatum(local),
												 IntervalPGetDatum(&step)));
}

static LLTime
calendar_start_of(const LLPeriods *periods, LLTime instant)
{
	LLPolicyRow *row = row_of(periods);
	Timestamp	local;

	if (instant >= row->cached_from && instant < row->cached_to)
		return row->cached_from;
	local = local_start(row, instant);
	row->cached_from = row->cached_to = 0;
	row->cached_to = from_local(row, local_after(row, local, 1));
	row->cached_from = from_local(row, local);
	return row->cached_from;
}

static LLTime
calendar_nth_after(const LLPeriods *periods, LLTime epoch, int64_t n)
{
	LLPolicyRow *row = row_of(periods);

	if (n > 1000000)
		return LL_TIME_MAX;
	return from_local(row, local_after(row, local_start(row, epoch), n));
}

static int64_t
calendar_between(const LLPeriods *periods, LLTime from, LLTime to)
{
	LLPolicyRow *row = row_of(periods);
	Timestamp	a = local_start(row, from);
	Timestamp	b = local_start(row, to);
	struct pg_tm x;
	struct pg_tm y;
	fsec_t		fsec;

	if (!row->months)
		return (b - a) / USECS_PER_DAY;
	if (timestamp2tm(a, NULL, &x, &fsec, NULL, NULL) != 0 ||
		timestamp2tm(b, NULL, &y, &fsec, NULL, NULL) != 0)
		ll_broken("A4", "an epoch is out of the range of timestamps");
	return (int64_t) (y.tm_year - x.tm_year) * 12 + (y.tm_mon - x.tm_mon);
}

/* ---- rows --------------------------------------------------------------- */

static LLTime
duration(TupleTableSlot *slot, int column)
{
	Interval   *interval = DatumGetIntervalP(slot->tts_values[column]);

	return interval->time + (int64) interval->day * USECS_PER_DAY;
}

static void
read_periods(LLPolicyRow *row, TupleTableSlot *slot)
{
	memset(&row->periods, 0, sizeof(row->periods));
	row->cached_from = row->cached_to = 0;
	row->time_zone = NULL;
	if (!slot->tts_isnull[LL_POLICY_EPOCH_LENGTH])
	{
		row->periods.length = duration(slot, LL_POLICY_EPOCH_LENGTH);
		return;
	}
	row->months = ll_text_is(slot->tts_values[LL_POLICY_EPOCH_CALENDAR], "month");
	row->time_zone = TextDatumGetCString(slot->tts_values[LL_POLICY_EPOCH_TIME_ZONE]);
	row->periods.calendar = psprintf("%s %s", row->months ? "month" : "day", row->time_zone);
	row->periods.start_of = calendar_start_of;
	row->periods.nth_after = calendar_nth_after;
	row->periods.between = calendar_between;
}

static void
read_digests(LLPolicyRow *row, TupleTableSlot *slot)
{
	bool	   *nulls;

	deconstruct_array(DatumGetArrayTypeP(slot->tts_values[LL_POLICY_ESTIMATOR_DIGESTS]),
					  BYTEAOID, -1, false, TYPALIGN_INT, &row->digest, &nulls, &row->digests);
}

/*
 * read_canary takes in the steps of a canary; more may have been added (B4).  Those
 * that are known stay where they are, since a row is met anew with every pair.
 */
static void
read_canary(LLPolicyRow *row, TupleTableSlot *slot)
{
	ArrayType  *array = DatumGetArrayTypeP(slot->tts_values[LL_POLICY_CANARY_PERCENTS]);
	Datum	   *percents;
	Datum	   *since;
	bool	   *nulls;
	int			steps;

	if (row->canary_steps == ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)))
		return;
	deconstruct_array(array, INT4OID, sizeof(int32), true, TYPALIGN_INT, &percents, &nulls, &steps);
	deconstruct_array(DatumGetArrayTypeP(slot->tts_values[LL_POLICY_CANARY_SINCE]),
					  TIMESTAMPTZOID, sizeof(TimestampTz), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  &since, &nulls, &row->canary_steps);
	if (steps != row->canary_steps)
		ll_broken("B4", "a canary has steps without an instant");
	row->canary_by_pair = steps > 0 && ll_text_is(slot->tts_values[LL_POLICY_CANARY_BY], "pair");
	row->canary_percents = MemoryContextAlloc(cache.context, sizeof(int32) * Max(steps, 1));
	row->canary_since = MemoryContextAlloc(cache.context, sizeof(TimestampTz) * Max(steps, 1));
	for (int i = 0; i < steps; i++)
	{
		row->canary_percents[i] = DatumGetInt32(percents[i]);
		row->canary_since[i] = DatumGetTimestampTz(since[i]);
	}
}

/* remember keeps a row; it is read once, and its stage every time. */
static LLPolicyRow *
remember(TupleTableSlot *slot)
{
	int64		generation;
	LLPolicyRow *row;
	bool		found;
	MemoryContext old;

	slot_getallattrs(slot);
	generation = DatumGetInt64(slot->tts_values[LL_POLICY_GENERATION]);
	row = hash_search(cache.policies, &generation, HASH_ENTER, &found);
	row->active_at = slot->tts_isnull[LL_POLICY_ACTIVE_AT]
		? LL_NO_TIME : DatumGetTimestampTz(slot->tts_values[LL_POLICY_ACTIVE_AT]);
	row->retired_at = slot->tts_isnull[LL_POLICY_RETIRED_AT]
		? LL_NO_TIME : DatumGetTimestampTz(slot->tts_values[LL_POLICY_RETIRED_AT]);
	row->shadowing = ll_text_is(slot->tts_values[LL_POLICY_STAGE], "shadow") ||
		ll_text_is(slot->tts_values[LL_POLICY_STAGE], "canary");
	row->draining = !row->shadowing && !ll_text_is(slot->tts_values[LL_POLICY_STAGE], "active");

	/* An error below must not leave half a row behind: see ll_policy_begin. */
	cache.version = 0;
	if (!found)
		row->canary_steps = -1;
	if (!slot->tts_isnull[LL_POLICY_CANARY_BY] || !found)
		read_canary(row, slot);
	if (found)
	{
		cache.version = ll_table_version();
		return row;
	}
	old = MemoryContextSwitchTo(cache.context);
	memset(&row->policy, 0, sizeof(row->policy));
	row->policy.generation = generation;
	row->policy.refill = ll_text_is(slot->tts_values[LL_POLICY_REFILL_KIND], "continuous")
		? LL_REFILL_CONTINUOUS
		: ll_text_is(slot->tts_values[LL_POLICY_REFILL_KIND], "window")
		? LL_REFILL_WINDOW : LL_REFILL_NONE;
	row->policy.cap = DatumGetInt64(slot->tts_values[LL_POLICY_CAP]);
	row->policy.refill_units = DatumGetInt64(slot->tts_values[LL_POLICY_REFILL_UNITS]);
	row->policy.refill_interval = duration(slot, LL_POLICY_REFILL_INTERVAL);
	row->policy.largest_reservation = DatumGetInt64(slot->tts_values[LL_POLICY_LARGEST_RESERVATION]);
	row->policy.largest_outstanding = slot->tts_isnull[LL_POLICY_LARGEST_OUTSTANDING]
		? LL_UNITS_MAX : DatumGetInt64(slot->tts_values[LL_POLICY_LARGEST_OUTSTANDING]);
	row->policy.hard_limit = DatumGetInt64(slot->tts_values[LL_POLICY_HARD_EXECUTION_LIMIT]);
	row->policy.maximum_overdraft = DatumGetInt64(slot->tts_values[LL_POLICY_MAXIMUM_OVERDRAFT]);
	row->policy.hold_ttl = duration(slot, LL_POLICY_HOLD_TTL);
	row->policy.execution_ttl = duration(slot, LL_POLICY_EXECUTION_TTL);
	row->priority = DatumGetInt32(slot->tts_values[LL_POLICY_PRIORITY]);
	row->retention = duration(slot, LL_POLICY_RETENTION);
	row->emergency_share = 0;
	row->shard_ttl = 0;
	if (!slot->tts_isnull[LL_POLICY_EMERGENCY_SHARE])
	{
		row->emergency_share = DatumGetInt32(slot->tts_values[LL_POLICY_EMERGENCY_SHARE]);
		row->shard_ttl = duration(slot, LL_POLICY_SHARD_TTL);
	}
	row->wildcard = ll_text_is(slot->tts_values[LL_POLICY_SUBJECT], "*");
	row->region = ll_copy_varlena(slot->tts_values[LL_POLICY_REGION]);
	read_periods(row, slot);
	read_digests(row, slot);
	MemoryContextSwitchTo(old);
	cache.version = ll_table_version();
	return row;
}

/* ll_policy_get gives one generation, which a stored row names. */
LLPolicyRow *
ll_policy_get(int64 generation)
{
	LLPolicyRow *row = hash_search(cache.policies, &generation, HASH_FIND, NULL);
	ScanKeyData key;
	Snapshot	snapshot;
	TupleTableSlot *slot;
	LLScan	   *scan;

	if (row != NULL)
		return row;
	slot = ll_table_scratch(LL_TABLE_POLICY);
	snapshot = ll_snapshot_take();
	ll_key_int8(&key, 1, generation);
	scan = ll_scan_begin(LL_INDEX_POLICY, snapshot, &key, 1);
	if (!ll_scan_next(scan, slot))
		ll_broken("B1", "the generation of a stored row has no policy");
	row = remember(slot);
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	return row;
}

/*
 * ll_policy_longest_retention gives the longest retention of the generations
 * that are not retired: that of fences, which are under none of them.  False:
 * there is no such generation.  It reads them all.
 */
bool
ll_policy_longest_retention(LLTime *retention)
{
	TupleTableSlot *slot = ll_table_scratch(LL_TABLE_POLICY);
	Snapshot	snapshot = ll_snapshot_take();
	bool		found = false;
	ScanKeyData key;
	LLScan	   *scan;

	ll_key_int8_from(&key, 1, 0);
	scan = ll_scan_begin(LL_INDEX_POLICY, snapshot, &key, 1);
	while (ll_scan_next(scan, slot))
	{
		slot_getallattrs(slot);
		if (ll_text_is(slot->tts_values[LL_POLICY_STAGE], "retired"))
			continue;
		*retention = found ? Max(*retention, duration(slot, LL_POLICY_RETENTION))
			: duration(slot, LL_POLICY_RETENTION);
		found = true;
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	return found;
}

/* ---- which generations rule a pair -------------------------------------- */

/*
 * since_when tells from which instant on a generation takes a pair in: that of
 * the first step of its canary that does, else that of its activation (B4).
 */
static TimestampTz
since_when(const LLPolicyRow *row, const PairKey *key)
{
	int			bucket;

	if (row->canary_steps == 0)
		return row->active_at;
	bucket = ll_rollout_bucket(key->route, key->route_length,
							   row->canary_by_pair ? key->subject : NULL, key->subject_length);
	for (int i = 0; i < row->canary_steps; i++)
		if (bucket < row->canary_percents[i])
			return row->canary_since[i];
	return row->active_at;
}

/* What is known of a pair while it is looked up. */
typedef struct Lookup
{
	PairKey		key;
	Snapshot	snapshot;
	List	   *rulers;			/* Ruler * */
	LLPolicyRow *exact_shadow;	/* the newest of each kind */
	LLPolicyRow *wildcard_shadow;
} Lookup;

/* load_rows adds the generations of (route, subject), oldest first. */
static void
load_rows(Lookup *lookup, Datum route, Datum subject)
{
	ScanKeyData key[2];
	TupleTableSlot *slot = ll_table_scratch(LL_TABLE_POLICY);
	LLScan	   *scan;

	ll_key_text(&key[0], 1, route);
	ll_key_text(&key[1], 2, subject);
	scan = ll_scan_begin(LL_INDEX_POLICY_PAIR, lookup->snapshot, key, 2);
	while (ll_scan_next(scan, slot))
	{
		LLPolicyRow *row = remember(slot);
		Ruler	   *ruler = palloc(sizeof(Ruler));

		*ruler = (Ruler) {row, since_when(row, &lookup->key)};
		if (ruler->since != LL_NO_TIME)
			lookup->rulers = lappend(lookup->rulers, ruler);
		else if (row->shadowing)
			*(row->wildcard ? &lookup->wildcard_shadow : &lookup->exact_shadow) = row;
	}
	ll_scan_end(scan);
}

/*
 * shadow_of chooses the shadow that is evaluated for a pair (B7): one of its
 * own, else a wildcard's, and that only where no policy of its own is in force.
 */
static LLPolicyRow *
shadow_of(const Lookup *lookup, const Ruler *rulers, int count)
{
	const LLPolicyRow *ruling = count > 0 ? rulers[count - 1].row : NULL;
	LLPolicyRow *shadow = lookup->exact_shadow;

	if (shadow == NULL &&
		(ruling == NULL || ruling->wildcard || ruling->retired_at != LL_NO_TIME))
		shadow = lookup->wildcard_shadow;
	return shadow != NULL && (ruling == NULL || shadow->generation > ruling->generation)
		? shadow : NULL;
}

static int
by_generation(const ListCell *a, const ListCell *b)
{
	const Ruler *x = lfirst(a);
	const Ruler *y = lfirst(b);

	return x->row->generation < y->row->generation ? -1 : x->row->generation > y->row->generation;
}

/* drop_wildcards takes out those that would have taken over at `since` or later. */
static int
drop_wildcards(const Ruler *rulers, int count, TimestampTz since)
{
	while (count > 0 && rulers[count - 1].row->wildcard && rulers[count - 1].since >= since)
		count--;
	return count;
}

/*
 * order_rulers keeps those that ever ruled the pair.  Once an exact policy is
 * active, wildcard generations pass the pair by (B2), until it is retired:
 * from that instant on the newest one that was published after it rules,
 * unless that had been retired before (B4).  Switches and retirements of a
 * route have one order in time, so what comes later adds to this list and
 * never changes what a pair has followed already.
 */
static int
order_rulers(List *found, Ruler *rulers)
{
	const LLPolicyRow *exact = NULL;	/* the newest one so far */
	int			count = 0;
	ListCell   *cell;

	list_sort(found, by_generation);
	foreach(cell, found)
	{
		LLPolicyRow *row = ((Ruler *) lfirst(cell))->row;
		TimestampTz since = ((Ruler *) lfirst(cell))->since;

		if (!row->wildcard)
		{
			count = drop_wildcards(rulers, count, since);
			exact = row;
		}
		else if (exact != NULL)
		{
			if (exact->retired_at == LL_NO_TIME)
				continue;
			since = Max(since, exact->retired_at);
			count = drop_wildcards(rulers, count, since);
			if (row->retired_at != LL_NO_TIME && row->retired_at <= since)
				continue;
		}
		rulers[count++] = (Ruler) {row, since};
	}
	return count;
}

/* load_freeze gives the reason why a route is frozen; 0: it is not (D8). */
static Datum
load_freeze(Datum route, Snapshot snapshot)
{
	ScanKeyData key;
	TupleTableSlot *slot = ll_table_scratch(LL_TABLE_FROZEN_ROUTE);
	LLScan	   *scan;
	Datum		reason = 0;

	ll_key_text(&key, 1, route);
	scan = ll_scan_begin(LL_INDEX_FROZEN_ROUTE, snapshot, &key, 1);
	if (ll_scan_next(scan, slot))
	{
		slot_getallattrs(slot);
		reason = ll_copy_varlena(slot->tts_values[LL_FROZEN_ROUTE_REASON]);
	}
	ll_scan_end(scan);
	return reason;
}

static PairEntry *
load_pair(Datum subject, Datum route)
{
	Lookup		lookup = {.key = pair_key(subject, route),.snapshot = ll_snapshot_take()};
	PairKey		key = lookup.key;
	Datum		frozen_reason;
	PairEntry  *entry;
	bool		found;
	MemoryContext old;

	load_rows(&lookup, route, subject);
	load_rows(&lookup, route, CStringGetTextDatum("*"));
	frozen_reason = load_freeze(route, lookup.snapshot);
	ll_snapshot_drop(lookup.snapshot);

	cache.version = 0;			/* an error here leaves half an entry */
	old = MemoryContextSwitchTo(cache.context);
	entry = hash_search(cache.pairs, &key, HASH_ENTER, &found);
	entry->key.subject = memcpy(palloc(key.subject_length + 1), key.subject, key.subject_length);
	entry->key.route = memcpy(palloc(key.route_length + 1), key.route, key.route_length);
	entry->rulers = palloc(sizeof(Ruler) * Max(list_length(lookup.rulers), 1));
	entry->count = order_rulers(lookup.rulers, entry->rulers);
	entry->shadow = shadow_of(&lookup, entry->rulers, entry->count);
	entry->frozen_reason = ll_copy_varlena(frozen_reason);
	MemoryContextSwitchTo(old);
	cache.version = ll_table_version();
	return entry;
}

/*
 * ll_policy_reigns tells which generations rule a pair whose head is under
 * `head_generation` (0: it has no head), from that one to the present one.  A
 * pair without a head is under no policy if the last one is retired.  Nobody is
 * under none, not even under a wildcard (I1).
 */
LLReigns
ll_policy_reigns(Datum subject, Datum route, int64 head_generation)
{
	PairKey		key = pair_key(subject, route);
	PairEntry  *entry;
	LLReigns	reigns = {0};
	int			first;

	if (ll_binding_is_nobody(subject))
		return reigns;
	entry = hash_search(cache.pairs, &key, HASH_FIND, NULL);
	if (entry == NULL)
		entry = load_pair(subject, route);
	reigns.shadow = entry->shadow;
	reigns.frozen_reason = entry->frozen_reason;
	first = entry->count;
	while (first > 0 && entry->rulers[first - 1].row->generation > head_generation)
		first--;
	if (head_generation == 0)	/* the present one alone */
	{
		if (entry->count == 0 || entry->rulers[entry->count - 1].row->retired_at != LL_NO_TIME)
			return reigns;
		first = entry->count - 1;
	}

	reigns.reign = palloc(sizeof(LLReign) * (entry->count - first + 1));
	if (head_generation != 0)
	{
		reigns.ruling = ll_policy_get(head_generation);
		reigns.reign[reigns.count++] = (LLReign)
		{
			&reigns.ruling->policy, &reigns.ruling->periods, reigns.ruling->active_at
		};
	}
	for (; first < entry->count; first++)
	{
		reigns.ruling = entry->rulers[first].row;
		reigns.reign[reigns.count++] = (LLReign)
		{
			&reigns.ruling->policy, &reigns.ruling->periods, entry->rulers[first].since
		};
	}
	return reigns;
}

/* ll_policy_in_region tells whether a call from this region is meant (B2). */
bool
ll_policy_in_region(const LLPolicyRow *row, Datum region)
{
	return ll_text_is(row->region, "*") || (region != 0 && ll_bytes_equal(row->region, region));
}

/* ll_policy_accepts tells whether the estimator is one of the accepted ones (B2). */
bool
ll_policy_accepts(const LLPolicyRow *row, Datum estimator_digest)
{
	for (int i = 0; i < row->digests; i++)
		if (estimator_digest != 0 && ll_bytes_equal(row->digest[i], estimator_digest))
			return true;
	return row->digests == 0;
}

/* ---- retiring a generation ---------------------------------------------- */

/* stale tells whether any transaction has ended since a snapshot was taken. */
static bool
stale(const SnapshotData *snapshot)
{
	const SnapshotData *now = GetLatestSnapshot();

	return now->xmax != snapshot->xmax || now->xcnt != snapshot->xcnt;
}

/*
 * limitledger_policy_await waits for all transactions that have written to a
 * table so far.  A call decides under a policy after it opened the heads, and
 * keeps their table's lock to its end: one that came before a generation was
 * drained and has not committed yet is among them.  Nobody queues behind this
 * wait (F3).  What is read next must be newer than it, which no statement of a
 * transaction with one snapshot can promise (F5).
 */
Datum
limitledger_policy_await(PG_FUNCTION_ARGS)
{
	LOCKTAG		written;

	SET_LOCKTAG_RELATION(written, MyDatabaseId, PG_GETARG_OID(0));
	WaitForLockers(written, ShareLock, false);
	if (IsolationUsesXactSnapshot() && stale(GetTransactionSnapshot()))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errhint("Repeat the transaction.")));
	PG_RETURN_VOID();
}
