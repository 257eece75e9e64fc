/*
 * binding.c
 *	  Which subjects the login of this session may name.  See binding.h.
 *
 * The login is the session user: neither SET ROLE nor a function with its
 * owner's rights is a way out.  Its bindings are kept per backend, since
 * nearly every login has none: any write to their table tells every backend (a
 * trigger invalidates the table's relation cache entry), and the news is taken
 * in when a call begins.  A binding that commits later is one that this call
 * came before.
 *
 * Takes no lock but that on the table, for reading, when it looks anew.
 */
#include "postgres.h"

#include "binding.h"

#include "columns.h"
#include "miscadmin.h"
#include "rows.h"
#include "table.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

static struct
{
	MemoryContext context;		/* of the subjects */
	bool		stale;			/* a binding changed, or nothing was read yet */
	Oid			relid;
	Oid			login;			/* whose bindings these are */
	bool		bound;
	int			count;
	int			room;
	Datum	   *subjects;		/* in bytewise order */
}			cache = {.stale = true};

static void
on_relcache(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == cache.relid)
		cache.stale = true;
}

/* ll_binding_init listens to writes of the table of bindings. */
void
ll_binding_init(void)
{
	CacheRegisterRelcacheCallback(on_relcache, (Datum) 0);
}

/* ll_binding_nobody gives the subject that there is nothing of. */
Datum
ll_binding_nobody(void)
{
	return CStringGetTextDatum("");
}

static void
keep(Datum subject)
{
	MemoryContext old = MemoryContextSwitchTo(cache.context);

	if (cache.count == cache.room)
	{
		cache.room = Max(8, cache.room * 2);
		cache.subjects = cache.subjects == NULL
			? palloc(sizeof(Datum) * cache.room)
			: repalloc(cache.subjects, sizeof(Datum) * cache.room);
	}
	cache.subjects[cache.count++] = ll_copy_varlena(subject);
	MemoryContextSwitchTo(old);
}

/*
 * read_rows reads the bindings of the login.  A role is bound by any row that
 * was not freed, be it one of a subject that was taken from it: the last
 * unbinding leaves it nothing, not everything.  A role that was dropped while
 * its session goes on has nothing left either.
 */
static void
read_rows(Oid login)
{
	Snapshot	snapshot = ll_snapshot_take();
	TupleTableSlot *slot = ll_table_slot(LL_TABLE_BINDING);
	ScanKeyData key;
	LLScan	   *scan;

	ll_key_oid(&key, 1, login);
	scan = ll_scan_begin(LL_INDEX_BINDING, snapshot, &key, 1);
	while (ll_scan_next(scan, slot))
	{
		slot_getallattrs(slot);
		if (ll_text_is(slot->tts_values[LL_BINDING_STATE], "freed"))
			continue;
		cache.bound = true;
		if (ll_text_is(slot->tts_values[LL_BINDING_STATE], "bound"))
			keep(slot->tts_values[LL_BINDING_SUBJECT]);
	}
	ll_scan_end(scan);
	ll_snapshot_drop(snapshot);
	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(login)))
		cache.bound = true;
}

static void
load(void *arg)
{
	Oid			login = GetSessionUserId();

	if (cache.context == NULL)
		cache.context = AllocSetContextCreate(TopMemoryContext, "limitledger bindings",
											  ALLOCSET_SMALL_SIZES);
	MemoryContextReset(cache.context);
	cache.subjects = NULL;
	cache.count = cache.room = 0;
	cache.bound = false;
	cache.login = InvalidOid;	/* until all is read */
	cache.relid = RelationGetRelid(ll_table(LL_TABLE_BINDING));
	cache.stale = false;		/* what commits from here on says so again */
	read_rows(login);
	cache.login = login;
}

/* ll_binding_begin takes in what has been committed; `function` is the one called. */
void
ll_binding_begin(Oid function)
{
	AcceptInvalidationMessages();
	if (cache.stale || cache.login != GetSessionUserId())
		ll_store_run(function, load, NULL);
}

/* ll_binding_bound tells whether the login is bound, if only to nothing. */
bool
ll_binding_bound(void)
{
	return cache.bound;
}

/* ll_binding_reaches tells whether the login may name the subject. */
bool
ll_binding_reaches(Datum subject)
{
	int			low = 0;
	int			high = cache.count;

	if (!cache.bound)
		return true;
	while (low < high)
	{
		int			middle = low + (high - low) / 2;
		int			order = ll_text_compare(subject, cache.subjects[middle]);

		if (order == 0)
			return true;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}
