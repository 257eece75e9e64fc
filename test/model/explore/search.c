/*
 * search.c
 *	  All interleavings of a small setup, and some of a large one.
 *
 * search_all goes depth first and keeps the key of each world that it has seen
 * with the number of ways from there to the end, so that it counts schedules
 * without taking all of them.  search_random takes each of its interleavings to
 * the end, and keeps its key, so that no repeat is counted.
 */
#include <stdlib.h>
#include <time.h>

#include "explore.h"

double
seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

/* progress says every five seconds how far it has come. */
static void
progress(const Tally *t, double began, const char *what)
{
	static double last;
	double		now = seconds_now();

	if (now - last < 5)
		return;
	if (last > began)
		fprintf(stderr, "# %s: %llu states, %llu interleavings, %llu steps, %.1f million steps/s\n",
				what, (unsigned long long) t->states, (unsigned long long) t->complete,
				(unsigned long long) t->steps, (double) t->steps / (now - began) / 1e6);
	last = now;
}

/* ---- worlds that were seen ----------------------------------------------- */

typedef struct Seen
{
	uint64_t	key;			/* 0: free */
	uint64_t	ways_low;		/* to the end; 0: it is being explored */
	uint64_t	ways_high;
} Seen;

#define IS_END	(UINT64_C(1) << 63) /* in ways_high: nothing may happen any more */

static Seen *seen;
static uint64_t seen_size;
static uint64_t seen_count;

static Seen *
slot_of(uint64_t key)
{
	uint64_t	i = key & (seen_size - 1);

	while (seen[i].key != 0 && seen[i].key != key)
		i = (i + 1) & (seen_size - 1);
	return &seen[i];
}

static void *
allocate(uint64_t count, size_t size)
{
	void	   *memory = calloc(count, size);

	if (memory == NULL)
	{
		fprintf(stderr, "explore: out of memory\n");
		exit(2);
	}
	return memory;
}

static void
make_room(void)
{
	Seen	   *old = seen;
	uint64_t	size = seen_size;

	if (seen_count < seen_size / 10 * 7)
		return;
	seen_size = size > 0 ? size * 2 : 1 << 16;
	seen = allocate(seen_size, sizeof(Seen));
	for (uint64_t i = 0; i < size; i++)
		if (old[i].key != 0)
			*slot_of(old[i].key) = old[i];
	free(old);
}

/* ---- to the end ---------------------------------------------------------- */

typedef unsigned __int128 Ways;

static const Ways most_ways = ~(Ways) 0 >> 1;

static Tally *tally_now;
static Path *path_now;
static uint64_t states_limit;
static double search_began;

static bool
broken(Finding finding)
{
	if (finding.check == NULL)
		return false;
	path_now->finding = finding;
	return true;
}

/* end_world: nothing may happen any more; everybody finishes, on a copy. */
static bool
end_world(World *w, Ways *ways)
{
	long		steps = 0;
	bool		sound = !broken(quiesce(w, &steps));

	tally_now->steps += (uint64_t) steps;
	tally_now->complete++;
	*ways = 1;
	return sound;
}

static bool explore(World *w, uint64_t key, Ways *ways);

/* explore_steps goes on by each step; false: something broke, or it is too much. */
static bool
explore_steps(const World *w, uint64_t key, const Step *step, int count, Ways *ways)
{
	World		next;

	*ways = 0;
	for (int i = 0; i < count; i++)
	{
		Ways		more = 0;
		uint64_t	next_key;
		Seen	   *known;

		if (path_now->length == LENGTH)
			return !broken((Finding) {"too_long", "liveness", COUNTER_discrepancies});
		path_now->step[path_now->length++] = step[i];
		tally_now->steps++;
		if (broken(judged_step(w, &next, step[i])))
			return false;
		next_key = world_key(&next);
		if (next_key == key)	/* it changed nothing */
		{
			path_now->length--;
			continue;
		}
		known = slot_of(next_key);
		if (known->key == 0)
		{
			if (!explore(&next, next_key, &more))
				return false;
		}
		else
		{
			more = (Ways) (known->ways_high & ~IS_END) << 64 | known->ways_low;
			if (more == 0)		/* it leads back to where it came from */
				return !broken((Finding) {"circle", "liveness", COUNTER_discrepancies});
			tally_now->complete += (known->ways_high & IS_END) != 0;
		}
		*ways = more > most_ways - *ways ? most_ways : *ways + more;
		path_now->length--;
	}
	return true;
}

static bool
explore(World *w, uint64_t key, Ways *ways)
{
	Step		step[STEPS];
	int			count = steps_of(w, step);
	Seen	   *slot;
	bool		is_end;

	if (seen_count >= states_limit)
		return tally_now->exhausted = false;
	make_room();
	slot_of(key)->key = key;
	seen_count++;
	if ((seen_count & 0xffff) == 0)
	{
		tally_now->states = seen_count;
		progress(tally_now, search_began, setup.name);
	}
	if (count > 0 && !explore_steps(w, key, step, count, ways))
		return false;
	is_end = count == 0 || *ways == 0;	/* or no step changes anything */
	if (is_end && !end_world(w, ways))
		return false;
	slot = slot_of(key);
	slot->ways_low = (uint64_t) *ways;
	slot->ways_high = (uint64_t) (*ways >> 64) | (is_end ? IS_END : 0);
	return true;
}

bool
search_all(Tally *tally, uint64_t most_states, Path *path)
{
	World		w;
	Ways		ways = 0;
	bool		sound;

	*tally = (Tally) {.exhausted = true};
	*path = (Path) {0};
	tally_now = tally;
	path_now = path;
	states_limit = most_states;
	search_began = seconds_now();
	seen_size = seen_count = 0;
	seen = NULL;
	make_room();
	world_open(&w);
	sound = explore(&w, world_key(&w), &ways) || path->finding.check == NULL;
	tally->states = seen_count;
	tally->schedules = ways;
	free(seen);
	seen = NULL;
	return sound;
}

/* ---- at random ----------------------------------------------------------- */

static uint64_t random_state;

static uint64_t
draw(void)
{
	uint64_t	z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t
draw_below(uint64_t below)
{
	return (uint64_t) (((unsigned __int128) draw() * below) >> 64);
}

/* Keys of the interleavings that were taken; grows up to a gigabyte. */
static uint64_t *taken;
static uint64_t taken_size;
static uint64_t taken_count;

#define MOST_TAKEN	(UINT64_C(1) << 27)

static uint64_t *
taken_slot(uint64_t key)
{
	uint64_t	i = key & (taken_size - 1);

	while (taken[i] != 0 && taken[i] != key)
		i = (i + 1) & (taken_size - 1);
	return &taken[i];
}

/* is_new tells whether an interleaving was never taken; what can't be kept is not counted. */
static bool
is_new(uint64_t key)
{
	uint64_t   *slot;

	if (taken_count >= taken_size / 10 * 8 && taken_size < MOST_TAKEN)
	{
		uint64_t   *old = taken;
		uint64_t	size = taken_size;

		taken_size = size > 0 ? size * 2 : 1 << 16;
		taken = allocate(taken_size, sizeof(uint64_t));
		for (uint64_t i = 0; i < size; i++)
			if (old[i] != 0)
				*taken_slot(old[i]) = old[i];
		free(old);
	}
	if (taken_count >= taken_size / 10 * 8)
		return false;
	slot = taken_slot(key);
	if (*slot == key)
		return false;
	*slot = key;
	taken_count++;
	return true;
}

static uint64_t
stir(uint64_t hash, uint64_t value)
{
	unsigned __int128 product = (unsigned __int128) (hash ^ value) *
		UINT64_C(0x9fb21c651e98df25);

	return (uint64_t) product ^ (uint64_t) (product >> 64) ^ (hash << 5 | hash >> 59);
}

/* setup_key: the figures and the faults are a part of an interleaving. */
static uint64_t
setup_key(void)
{
	const int  *amount = (const int *) &setup.amounts;
	const int  *allow = (const int *) &setup.allow;
	uint64_t	key = UINT64_C(0x243f6a8885a308d3);

	for (int i = 0; i < AMOUNT_COUNT; i++)
		key = stir(key, (uint64_t) amount[i] + 1);
	for (int i = 0; i < ALLOWANCE_COUNT; i++)
		key = stir(key, (uint64_t) allow[i] + 1);
	return key;
}

/* one takes one interleaving to its end; false: something broke. */
static bool
one(Tally *tally, Path *path)
{
	static World worlds[2];
	World	   *here = &worlds[0];
	World	   *next = &worlds[1];
	uint64_t	key = setup_key();
	long		steps = 0;

	path->length = 0;
	world_open(here);
	for (;;)
	{
		Step		step[STEPS];
		int			count = steps_of(here, step);
		World	   *left = here;
		Step		chosen;

		if (count == 0)
			break;
		if (path->length == LENGTH)
			return !broken((Finding) {"never_ends", "liveness", COUNTER_discrepancies});
		chosen = step[draw_below((uint64_t) count)];
		path->step[path->length++] = chosen;
		key = stir(key, (uint64_t) chosen.kind << 24 | (uint64_t) chosen.who << 16 |
				   (uint64_t) chosen.what << 8 | chosen.how);
		tally->steps++;
		if (broken(judged_step(here, next, chosen)))
			return false;
		here = next;
		next = left;
	}
	if (broken(quiesce(here, &steps)))
		return false;
	tally->steps += (uint64_t) steps;
	if (is_new(key | 1))
		tally->complete++;
	else
		tally->repeated++;
	return true;
}

bool
search_random(Tally *tally, uint64_t seed, uint64_t interleavings, double seconds, bool drawn,
			  Path *path)
{
	double		until = seconds > 0 ? seconds_now() + seconds : 0;

	*tally = (Tally) {0};
	*path = (Path) {0};
	tally_now = tally;
	path_now = path;
	random_state = seed;
	search_began = seconds_now();
	for (uint64_t n = 0; interleavings == 0 || tally->complete < interleavings; n++)
	{
		if (drawn)
			setup_draw(draw_below);
		if (!one(tally, path))
			return false;
		if ((n & 0xff) != 0)
			continue;
		progress(tally, search_began, "at random");
		if (until > 0 && seconds_now() >= until)
			break;
	}
	return true;
}
