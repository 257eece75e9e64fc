/*
 * faulty.c
 *	  Pairs that made a step of a worker fail, and are passed by for a while (F3).
 *
 * A step is a batch of many pairs in one transaction, in the order in which
 * they are due, so an error in one pair would roll back the others, every time
 * anew.  A step says which pair it is about to change; if it fails, the worker
 * takes that one out and repeats the rest.  A group of calls does the same.  Each pair that fails costs one step
 * that is rolled back, and another one whenever it is tried again.
 *
 * Of this process alone: a session passes nobody by, and a worker that has just
 * come tries everybody.
 */
#include "postgres.h"

#include "ledger.h"
#include "utils/timestamp.h"

#define FAULTY_PAIRS	64
#define NAME_BYTES		256		/* of a subject or a route, at most */
#define SHORTEST_REST	(1 * USECS_PER_SEC)
#define LONGEST_REST	(60 * USECS_PER_SEC)

typedef struct Faulty
{
	int			job;
	int			subject_size;
	int			route_size;
	char		name[2 * NAME_BYTES];	/* the subject, and behind it the route */
	int			times;			/* that it has failed in a row */
	TimestampTz until;
	bool		tried;			/* by the step under way */
} Faulty;

static Faulty faulty[FAULTY_PAIRS];
static int	count = 0;
static Faulty under_work;
static bool watching = false;	/* a step of a worker runs */
static bool known = false;		/* which pair it is about to change */

/* drop_stale forgets pairs that nobody has asked for since they might be tried again. */
static void
drop_stale(TimestampTz before)
{
	int			kept = 0;

	for (int i = 0; i < count; i++)
		if (faulty[i].until >= before)
			faulty[kept++] = faulty[i];
	count = kept;
}

/* ll_faulty_begin is called when a step of this job begins. */
void
ll_faulty_begin(int job)
{
	watching = true;
	known = false;
	under_work = (Faulty) {.job = job};
	if (count > 0)
		drop_stale(GetCurrentTimestamp() - LONGEST_REST);
	for (int i = 0; i < count; i++)
		faulty[i].tried = false;
}

/* ll_faulty_end: what fails from here on, as a commit may, is no pair's fault. */
void
ll_faulty_end(void)
{
	watching = known = false;
}

/* name notes the pair under work; false: it has none of our names. */
static bool
name(Datum subject, Datum route)
{
	under_work.subject_size = VARSIZE_ANY_EXHDR(DatumGetPointer(subject));
	under_work.route_size = route == 0 ? 0 : VARSIZE_ANY_EXHDR(DatumGetPointer(route));
	if (under_work.subject_size > NAME_BYTES || under_work.route_size > NAME_BYTES)
		return false;
	memcpy(under_work.name, VARDATA_ANY(DatumGetPointer(subject)), under_work.subject_size);
	if (route != 0)
		memcpy(under_work.name + under_work.subject_size,
			   VARDATA_ANY(DatumGetPointer(route)), under_work.route_size);
	return true;
}

/* find gives the entry of the pair under work, or NULL. */
static Faulty *
find(void)
{
	for (int i = 0; i < count; i++)
		if (faulty[i].job == under_work.job &&
			faulty[i].subject_size == under_work.subject_size &&
			faulty[i].route_size == under_work.route_size &&
			memcmp(faulty[i].name, under_work.name,
				   under_work.subject_size + under_work.route_size) == 0)
			return &faulty[i];
	return NULL;
}

/*
 * ll_faulty comes before a step changes anything of a pair; a fence has no
 * route.  True: the pair is to be passed by.
 */
bool
ll_faulty(Datum subject, Datum route)
{
	Faulty	   *entry;

	if (!watching)
		return false;
	known = name(subject, route);
	entry = known ? find() : NULL;
	if (entry == NULL)
		return false;
	if (entry->until > GetCurrentTimestamp())
	{
		known = false;
		return true;
	}
	entry->tried = true;
	return false;
}

/* ll_faulty_here: what fails from here on is the fault of this pair, which is not passed by. */
void
ll_faulty_here(Datum subject, Datum route)
{
	if (watching)
		known = name(subject, route);
}

/* ll_faulty_add: the step failed at its pair; false: at none, or too many have. */
bool
ll_faulty_add(void)
{
	Faulty	   *entry = known ? find() : NULL;

	if (known && entry == NULL && count < FAULTY_PAIRS)
	{
		entry = &faulty[count++];
		*entry = under_work;
	}
	ll_faulty_end();
	if (entry == NULL)
		return false;
	entry->until = GetCurrentTimestamp() +
		Min(LONGEST_REST, SHORTEST_REST << Min(entry->times, 10));
	entry->times++;
	return true;
}

/*
 * ll_faulty_forget: a step succeeded, and so did the pairs that it has tried
 * again.  Who was to be tried and was not met, though the step met all that is
 * due, has nothing due any more.
 */
void
ll_faulty_forget(int job, bool all)
{
	TimestampTz now = GetCurrentTimestamp();
	int			kept = 0;

	for (int i = 0; i < count; i++)
		if (faulty[i].job != job || (!faulty[i].tried && (!all || faulty[i].until > now)))
			faulty[kept++] = faulty[i];
	count = kept;
}

/* ll_faulty_count tells how many pairs a job passes by. */
int
ll_faulty_count(int job)
{
	int			found = 0;

	for (int i = 0; i < count; i++)
		found += faulty[i].job == job;
	return found;
}
