/*
 * trace.c
 *	  Interleavings as text: written, replayed, made shorter.
 *
 *	# a comment
 *	setup NAME
 *	amounts name=value ...
 *	allow name=value ...
 *	one step a line, in the words of step_text()
 *
 * The figures stand in the trace, so that it stays the same when setups change.
 * A step that the world does not allow at its place is an error in a replay; in
 * making a trace shorter it is left out.
 */
#include <stdlib.h>

#include "explore.h"

#define TEXT	96

typedef struct Trace
{
	int			length;
	char		text[LENGTH][TEXT];
} Trace;

static void
write_figures(FILE *out, const char *word, const int *figure, const char *const *name, int count)
{
	fprintf(out, "%s", word);
	for (int i = 0; i < count; i++)
		if (figure[i] != 0)
			fprintf(out, " %s=%d", name[i], figure[i]);
	fprintf(out, "\n");
}

/* to_text goes along the path once more, since what a step is called depends on the world. */
static void
to_text(const Path *path, Trace *trace)
{
	World		worlds[2];
	int			here = 0;

	world_open(&worlds[0]);
	trace->length = path->length;
	for (int i = 0; i < path->length; i++)
	{
		Deed		deed;

		step_text(&worlds[here], path->step[i], trace->text[i], TEXT);
		world_copy(&worlds[1 - here], &worlds[here]);
		here = 1 - here;
		take_step(&worlds[here], path->step[i], &deed);
	}
}

void
trace_write(FILE *out, const Path *path)
{
	Trace	   *trace = malloc(sizeof(Trace));

	to_text(path, trace);
	fprintf(out, "# %s (%s): %s\n", path->finding.check != NULL ? path->finding.check : "sound",
			path->finding.rule != NULL ? path->finding.rule : "all",
			path->finding.check != NULL ? counter_name(path->finding.counter) : "nothing broke");
	fprintf(out, "setup %s\n", setup.name);
	write_figures(out, "amounts", (const int *) &setup.amounts, amount_name, AMOUNT_COUNT);
	write_figures(out, "allow", (const int *) &setup.allow, allowance_name, ALLOWANCE_COUNT);
	for (int i = 0; i < trace->length; i++)
		fprintf(out, "%s\n", trace->text[i]);
	free(trace);
}

/* find_step finds a step by its words among those that the world allows. */
static bool
find_step(const World *w, const char *words, Step *found)
{
	Step		step[STEPS];
	int			count = steps_of(w, step);

	for (int i = 0; i < count; i++)
	{
		char		text[TEXT];

		step_text(w, step[i], text, sizeof(text));
		if (strcmp(text, words) == 0)
		{
			*found = step[i];
			return true;
		}
	}
	return false;
}

/*
 * follow takes the steps of a trace, then all to the end.  What the world does
 * not allow it leaves out, or, if `strict`, gives up there and returns false.
 */
static bool
follow(const Trace *trace, bool strict, bool show, Path *path)
{
	static World worlds[2];
	int			here = 0;
	long		steps = 0;

	*path = (Path) {0};
	world_open(&worlds[0]);
	for (int i = 0; i < trace->length; i++)
	{
		Step		step;

		if (!find_step(&worlds[here], trace->text[i], &step))
		{
			if (!strict)
				continue;
			fprintf(stderr, "explore: not allowed here: %s\n", trace->text[i]);
			return false;
		}
		if (show)
			printf("# %3d  %s\n", i + 1, trace->text[i]);
		path->step[path->length++] = step;
		path->finding = judged_step(&worlds[here], &worlds[1 - here], step);
		if (path->finding.check != NULL)
			return true;
		here = 1 - here;
	}
	path->finding = quiesce(&worlds[here], &steps);
	if (show)
		printf("# then all to the end, %ld steps\n", steps);
	return true;
}

/* still_fails: the same check, with some steps left out. */
static bool
still_fails(const Trace *trace, const char *check, Path *shorter)
{
	return follow(trace, false, false, shorter) && shorter->finding.check != NULL &&
		strcmp(shorter->finding.check, check) == 0;
}

/* without copies a trace and leaves out `count` steps from `from` on. */
static void
without(Trace *to, const Trace *from_trace, int from, int count)
{
	to->length = 0;
	for (int i = 0; i < from_trace->length; i++)
		if (i < from || i >= from + count)
			memcpy(to->text[to->length++], from_trace->text[i], TEXT);
}

void
trace_shrink(Path *path)
{
	Trace	   *best = malloc(sizeof(Trace));
	Trace	   *trial = malloc(sizeof(Trace));
	const char *check = path->finding.check;
	Path	   *shorter = malloc(sizeof(Path));

	to_text(path, best);
	for (int part = best->length; part >= 1; part = part > 1 ? (part + 1) / 2 : 0)
		for (int from = 0; from < best->length;)
		{
			without(trial, best, from, part);
			if (still_fails(trial, check, shorter))
			{
				*path = *shorter;
				to_text(path, best);	/* what was not allowed is gone, too */
			}
			else
				from += part;
		}
	free(best);
	free(trial);
	free(shorter);
}

/* read_figures reads name=value pairs; false: one of them has no such name. */
static bool
read_figures(char *line, int *figure, const char *const *name, int count)
{
	for (char *word = strtok(line, " \n"); word != NULL; word = strtok(NULL, " \n"))
	{
		char	   *value = strchr(word, '=');
		int			i = 0;

		if (value == NULL)
			return false;
		*value++ = '\0';
		while (i < count && strcmp(name[i], word) != 0)
			i++;
		if (i == count)
			return false;
		figure[i] = atoi(value);
	}
	return true;
}

static bool
read_trace(FILE *in, Trace *trace)
{
	static char name[32];
	Setup		read = {.name = name,.covers = "a trace"};
	char		line[1024];

	trace->length = 0;
	while (fgets(line, sizeof(line), in) != NULL)
	{
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#' || line[0] == '\0' || sscanf(line, "setup %31s", name) == 1)
			continue;
		if (strncmp(line, "amounts", 7) == 0)
		{
			if (!read_figures(line + 7, (int *) &read.amounts, amount_name, AMOUNT_COUNT))
				return false;
			continue;
		}
		if (strncmp(line, "allow", 5) == 0)
		{
			if (!read_figures(line + 5, (int *) &read.allow, allowance_name, ALLOWANCE_COUNT))
				return false;
			continue;
		}
		if (trace->length == LENGTH || strlen(line) >= TEXT)
			return false;
		strcpy(trace->text[trace->length++], line);
	}
	if (read.amounts.clients < 1 || read.amounts.cap < 1)
		return false;
	setup_use(&read);
	return true;
}

bool
trace_replay(const char *file, bool show, Finding *finding)
{
	Trace	   *trace = malloc(sizeof(Trace));
	Path	   *path = malloc(sizeof(Path));
	FILE	   *in = fopen(file, "r");
	bool		done = false;

	if (in == NULL)
		perror(file);
	else if (!read_trace(in, trace))
		fprintf(stderr, "explore: %s is no trace\n", file);
	else
		done = follow(trace, true, show, path);
	if (in != NULL)
		fclose(in);
	if (done)
		*finding = path->finding;
	free(trace);
	free(path);
	return done;
}
