/*
 * explore.c
 *	  The whole protocol in memory, in every order that a bound allows, and then
 *	  at random.
 *
 * Without options it is a short test that prints TAP: some setups to their end,
 * some interleavings at random, the traces that are kept.  See usage().
 */
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "explore.h"

#define GOAL			UINT64_C(10000000)
#define MOST_STATES		UINT64_C(20000000)
#define SHORT_STATES	UINT64_C(50000)	/* of a setup that the short test takes */
#define SHORT_RANDOM	UINT64_C(100000)

static Tally total;
static uint64_t found[COUNTER_COUNT];

static void
usage(FILE *out)
{
	fputs("usage: explore [option ...]\n"
		  "  (none)            a short test, as TAP\n"
		  "  --all             every setup to its end, then at random up to the goal\n"
		  "  --config NAME     one setup to its end (and at random, if asked for)\n"
		  "  --interleavings N at random, until so many are distinct\n"
		  "  --seconds S       at random, for so long\n"
		  "  --seed N          of what is random; printed in any case\n"
		  "  --traces FOLDER   where a failure is written (build/model)\n"
		  "  --replay FILE     take the steps of a trace\n"
		  "  --list            the setups\n"
		  "  --help            this\n"
		  "\n"
		  "Exit status: 0 if nothing broke, 1 if a check failed, 2 for anything else.\n", out);
}

typedef struct Options
{
	bool		all;
	bool		random;
	const Setup *only;
	uint64_t	interleavings;
	double		seconds;
	uint64_t	seed;
	const char *traces;
} Options;

/* ---- a failure ----------------------------------------------------------- */

static const char *
write_trace(const Path *path, const char *folder, const char *suffix)
{
	static char name[512];
	FILE	   *out;

	snprintf(name, sizeof(name), "%s/%s%s.trace", folder, path->finding.check, suffix);
	out = fopen(name, "w");
	if (out == NULL)
	{
		perror(name);
		exit(2);
	}
	trace_write(out, path);
	fclose(out);
	return name;
}

/* report_failure writes the trace as it was, and the shortest that fails so. */
static void
report_failure(Path *path, const char *folder, uint64_t interleavings)
{
	Finding		finding = path->finding;

	found[finding.counter]++;
	printf("# FAILED: check %s (%s), counter %s, setup %s, after %llu interleavings, %d steps\n",
		   finding.check, finding.rule, counter_name(finding.counter), setup.name,
		   (unsigned long long) interleavings, path->length);
	printf("# as it was: %s\n", write_trace(path, folder, ".long"));
	trace_shrink(path);
	printf("# shrunk to %d steps: %s\n", path->length, write_trace(path, folder, ""));
	printf("# again: build/model/explore --replay %s/%s.trace\n", folder, finding.check);
	trace_write(stdout, path);
	fflush(stdout);
}

/* ---- parts of a run ------------------------------------------------------ */

static void
add_tally(const Tally *t)
{
	total.states += t->states;
	total.steps += t->steps;
	total.complete += t->complete;
	total.repeated += t->repeated;
}

/* big writes a count of schedules, which may be beyond 64 bits. */
static const char *
big(unsigned __int128 n)
{
	static char text[48];

	if (n < (unsigned __int128) 1 << 63)
		snprintf(text, sizeof(text), "%llu", (unsigned long long) n);
	else if (n == ~(unsigned __int128) 0 >> 1)
		snprintf(text, sizeof(text), "more than 1.7e38");
	else
		snprintf(text, sizeof(text), "%.3Le", (long double) n);
	return text;
}

/* run_setup explores one to its end. */
static bool
run_setup(const Setup *s, uint64_t most_states, const char *folder, Tally *t)
{
	static Path path;
	double		began = seconds_now();
	bool		sound;

	setup_use(s);
	sound = search_all(t, most_states, &path);
	printf("# %-10s %9llu states  %11llu steps taken  %9llu interleavings to their end  "
		   "%s schedules  %.1f s%s\n", s->name, (unsigned long long) t->states,
		   (unsigned long long) t->steps, (unsigned long long) t->complete, big(t->schedules),
		   seconds_now() - began, !sound ? "  FAILED" : t->exhausted ? "" : "  NOT TO ITS END");
	fflush(stdout);
	if (!sound)
		report_failure(&path, folder, total.complete + t->complete);
	add_tally(t);
	return sound;
}

static bool
run_random(const Options *o, uint64_t interleavings, double seconds)
{
	static Path path;
	Tally		t;
	double		began = seconds_now();
	bool		sound;

	printf("# at random, seed %llu\n", (unsigned long long) o->seed);
	fflush(stdout);
	if (o->only != NULL)
		setup_use(o->only);
	sound = search_random(&t, o->seed, interleavings, seconds, o->only == NULL, &path);
	printf("# at random: %llu distinct interleavings, %llu repeated, %llu steps taken, %.1f s\n",
		   (unsigned long long) t.complete, (unsigned long long) t.repeated,
		   (unsigned long long) t.steps, seconds_now() - began);
	if (!sound)
		report_failure(&path, o->traces, total.complete + t.complete);
	add_tally(&t);
	return sound;
}

/* ---- the long run -------------------------------------------------------- */

static void
print_figures(void)
{
	printf("figure=interleavings_modelled value=%llu goal=%llu\n",
		   (unsigned long long) total.complete, (unsigned long long) GOAL);
	printf("figure=distinct_states value=%llu goal=1\n", (unsigned long long) total.states);
	for (int c = 0; c < COUNTER_COUNT; c++)
		printf("figure=%s value=%llu goal=0\n", counter_name(c), (unsigned long long) found[c]);
}

static int
run_long(const Options *o)
{
	double		began = seconds_now();
	bool		sound = true;
	bool		exhausted = true;
	uint64_t	wanted = o->interleavings;
	Tally		t;

	for (int i = 0; setup_at(i) != NULL && sound; i++)
		if (o->all || o->only == setup_at(i))
		{
			sound = run_setup(setup_at(i), MOST_STATES, o->traces, &t);
			exhausted &= !sound || t.exhausted;
		}
	if (wanted == 0 && o->seconds == 0)
		wanted = total.complete < GOAL ? GOAL - total.complete : 1;
	if (sound && (o->all || o->random))
		sound = run_random(o, wanted, o->seconds);
	printf("# %llu steps taken and judged, %llu interleavings repeated, %.1f s\n",
		   (unsigned long long) total.steps, (unsigned long long) total.repeated,
		   seconds_now() - began);
	print_figures();
	return !sound ? 1 : exhausted ? 0 : 2;
}

/* ---- the short test ------------------------------------------------------ */

static int tests;
static int failures;

static void
ok(bool pass, const char *what, const char *name)
{
	failures += !pass;
	printf("%s %d - %s%s\n", pass ? "ok" : "not ok", ++tests, what, name);
	fflush(stdout);
}

/* replay_kept takes the traces that faults once failed on: the source as it is stands them. */
static void
replay_kept(void)
{
	glob_t		kept;

	if (glob("test/model/traces/*.trace", 0, NULL, &kept) != 0)
		return;
	for (size_t i = 0; i < kept.gl_pathc; i++)
	{
		Finding		finding = {NULL, NULL, 0};
		bool		done = trace_replay(kept.gl_pathv[i], false, &finding);

		found[finding.counter] += finding.check != NULL;
		ok(done && finding.check == NULL, "replayed: ", kept.gl_pathv[i]);
	}
	globfree(&kept);
}

/* run_short ends with the first failure: what comes after would fail alike. */
static int
run_short(const Options *o)
{
	Tally		t;
	bool		sound = run_random(o, SHORT_RANDOM, 0);

	ok(sound, "at random", "");
	for (int i = 0; setup_at(i) != NULL && sound; i++)
	{
		sound = run_setup(setup_at(i), SHORT_STATES, o->traces, &t);
		ok(sound, t.exhausted ? "to its end: " : "as far as a short test goes: ", setup_at(i)->name);
	}
	if (sound)
		replay_kept();
	print_figures();
	printf("1..%d\n", tests);
	return failures > 0;
}

/* ---- options ------------------------------------------------------------- */

static int
replay(const char *file)
{
	Finding		finding;

	if (!trace_replay(file, true, &finding))
		return 2;
	if (finding.check == NULL)
	{
		printf("ok 1 - %s: nothing broke\n1..1\n", file);
		return 0;
	}
	printf("not ok 1 - %s: check %s (%s), counter %s\n1..1\n", file, finding.check, finding.rule,
		   counter_name(finding.counter));
	return 1;
}

static int
list(void)
{
	for (int i = 0; setup_at(i) != NULL; i++)
		printf("%-10s %s\n", setup_at(i)->name, setup_at(i)->covers);
	return 0;
}

/* number reads a whole number, or ends the program. */
static uint64_t
number(const char *option, const char *text)
{
	char	   *end;
	uint64_t	value = strtoull(text, &end, 10);

	if (*text == '\0' || *text == '-' || *end != '\0')
	{
		fprintf(stderr, "explore: %s takes a number, not %s\n", option, text);
		exit(2);
	}
	return value;
}

int
main(int argc, char **argv)
{
	Options		o = {.seed = 20010101,.traces = access("build/model", W_OK) == 0 ? "build/model" : "."};

	for (int i = 1; i < argc; i++)
	{
		const char *option = argv[i];
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(option, "--help") == 0)
		{
			usage(stdout);
			return 0;
		}
		if (strcmp(option, "--list") == 0)
			return list();
		if (strcmp(option, "--all") == 0)
		{
			o.all = true;
			continue;
		}
		if (value == NULL)
		{
			usage(stderr);
			return 2;
		}
		i++;
		if (strcmp(option, "--replay") == 0)
			return replay(value);
		if (strcmp(option, "--seed") == 0)
			o.seed = number(option, value);
		else if (strcmp(option, "--interleavings") == 0)
		{
			o.interleavings = number(option, value);
			o.random = true;
		}
		else if (strcmp(option, "--seconds") == 0)
		{
			o.seconds = (double) number(option, value);
			o.random = true;
		}
		else if (strcmp(option, "--traces") == 0)
			o.traces = value;
		else if (strcmp(option, "--config") == 0 && (o.only = setup_named(value)) != NULL)
			continue;
		else
		{
			usage(stderr);
			return 2;
		}
	}
	return o.all || o.random || o.only != NULL ? run_long(&o) : run_short(&o);
}
