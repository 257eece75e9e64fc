/*
 * plan.c
 *	  A plan as text, and back.
 *
 *	  contention continuous 4
 *	  1 reserve 1 half
 *	  2 begin serializable reserve 2 over-half : lost reply
 *	  0 clock hold
 *	  2 commit
 *
 * The first line has the scenario, the policy and the number of actors; then
 * comes one line per step, in the order in which they are sent.
 */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

const char *const level_names[LEVELS] = {"", "read-committed", "repeatable-read", "serializable"};

const char *const fault_names[FAULTS] = {
	"", "lost request", "lost reply", "cut", "duplicate", "late duplicate", "cancel", "terminate",
	"clock back", "partition request", "partition reply"
};

const char *const clock_names[CLOCK_STEPS] = {"tick", "hold", "past-hold", "epoch", "execution", "long"};

static bool
has_letter(CallKind call, const char *letters)
{
	return strpbrk(call_forms[call].args, letters) != NULL;
}

/* plan_text writes a plan, a line per step. */
void
plan_text(Text *text, const Plan *plan)
{
	text_add(text, "%s %s %d\n", scenarios[plan->scenario].name, policies[plan->policy].name, plan->actors);
	for (int i = 0; i < plan->steps; i++)
	{
		const Step *step = &plan->step[i];

		switch (step->kind)
		{
			case STEP_CLOCK:
				text_add(text, "0 clock %s\n", clock_names[step->clock]);
				continue;
			case STEP_COMMIT:
				text_add(text, "%d commit\n", step->actor);
				continue;
			case STEP_ROLLBACK:
				text_add(text, "%d rollback\n", step->actor);
				continue;
			case STEP_ROLLBACK_TO:
				text_add(text, "%d rollback-to\n", step->actor);
				continue;
			case STEP_CALL:
				break;
		}
		text_add(text, "%d", step->actor);
		if (step->begin != LEVEL_NONE)
			text_add(text, " begin %s", level_names[step->begin]);
		if (step->savepoint)
			text_add(text, " savepoint");
		text_add(text, " %s", call_forms[step->call].name);
		if (step->item > 0)
			text_add(text, " %d", step->item);
		if (has_letter(step->call, "u"))
			text_add(text, " %s", amount_names[step->amount]);
		if (step->other)
			text_add(text, " other");
		if (step->fault != FAULT_NONE)
			text_add(text, " : %s", fault_names[step->fault]);
		text_add(text, "\n");
	}
}

/* plan_hash sets the identity: FNV-1a over the text, its bits then mixed. */
void
plan_hash(Plan *plan)
{
	static Text text;
	uint64_t	hash = UINT64_C(0xCBF29CE484222325);
	Random		mixer;

	text_clear(&text);
	plan_text(&text, plan);
	for (size_t i = 0; i < text.length; i++)
		hash = (hash ^ (unsigned char) text.data[i]) * UINT64_C(0x100000001B3);
	mixer.state = hash;
	plan->hash = draw(&mixer);
	if (plan->hash == 0)
		plan->hash = 1;			/* 0 is an empty place of the table of hashes */
}

static int
find_name(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

static int
find_call(const char *name)
{
	for (int i = 0; i < CALL_KINDS; i++)
		if (strcmp(call_forms[i].name, name) == 0)
			return i;
	return -1;
}

/* read_step reads one line of a plan; NULL, or what is wrong with it. */
static const char *
read_step(Step *step, char *line)
{
	char	   *fault = strstr(line, " : ");
	char	   *save = NULL;
	char	   *word;
	int			found;

	memset(step, 0, sizeof(*step));
	if (fault != NULL)
	{
		*fault = '\0';
		found = find_name(fault_names, FAULTS, fault + 3);
		if (found <= 0)
			return "no such fault";
		step->fault = found;
	}
	word = strtok_r(line, " ", &save);
	if (word == NULL)
		return "empty";
	step->actor = atoi(word);
	if (step->actor < 0 || step->actor > ACTORS)
		return "no such actor";
	word = strtok_r(NULL, " ", &save);
	if (word != NULL && strcmp(word, "clock") == 0)
	{
		step->kind = STEP_CLOCK;
		word = strtok_r(NULL, " ", &save);
		found = word == NULL ? -1 : find_name(clock_names, CLOCK_STEPS, word);
		step->clock = found;
		return found < 0 ? "no such step of the clock" : NULL;
	}
	if (step->actor == 0)
		return "nobody's step";
	if (word != NULL && strcmp(word, "begin") == 0)
	{
		word = strtok_r(NULL, " ", &save);
		found = word == NULL ? -1 : find_name(level_names, LEVELS, word);
		if (found <= 0)
			return "no such level";
		step->begin = found;
		word = strtok_r(NULL, " ", &save);
	}
	if (word != NULL && strcmp(word, "savepoint") == 0)
	{
		step->savepoint = true;
		word = strtok_r(NULL, " ", &save);
	}
	if (word == NULL)
		return "no call";
	if (strcmp(word, "commit") == 0)
		step->kind = STEP_COMMIT;
	else if (strcmp(word, "rollback") == 0)
		step->kind = STEP_ROLLBACK;
	else if (strcmp(word, "rollback-to") == 0)
		step->kind = STEP_ROLLBACK_TO;
	else
	{
		found = find_call(word);
		if (found < 0)
			return "no such call";
		step->kind = STEP_CALL;
		step->call = found;
	}
	while ((word = strtok_r(NULL, " ", &save)) != NULL)
	{
		if (strcmp(word, "other") == 0)
			step->other = true;
		else if (word[0] >= '1' && word[0] <= '0' + ITEMS && word[1] == '\0')
			step->item = word[0] - '0';
		else
		{
			found = find_name(amount_names, AMOUNTS, word);
			if (found < 0)
				return "no such amount";
			step->amount = found;
		}
	}
	if (step->kind == STEP_CALL && step->item == 0 && has_letter(step->call, "ioevghEj"))
		return "the call needs an item";
	return NULL;
}

/* plan_read reads what plan_text has written. */
bool
plan_read(Plan *plan, const char *text, const char **problem)
{
	char		line[256];
	char		scenario[64];
	char		policy[64];

	memset(plan, 0, sizeof(*plan));
	if (sscanf(text, "%63s %63s %d", scenario, policy, &plan->actors) != 3)
	{
		*problem = "the first line must have scenario, policy and actors";
		return false;
	}
	plan->scenario = -1;
	for (int i = 0; i < scenario_count; i++)
		if (strcmp(scenarios[i].name, scenario) == 0)
			plan->scenario = i;
	plan->policy = policy_by_name(policy);
	if (plan->scenario < 0 || plan->policy < 0 || plan->actors < 1 || plan->actors > ACTORS)
	{
		*problem = "no such scenario, policy or number of actors";
		return false;
	}
	while ((text = strchr(text, '\n')) != NULL && *++text != '\0')
	{
		size_t		length = strcspn(text, "\n");

		if (length == 0)
			continue;
		if (length >= sizeof(line) || plan->steps == STEPS)
		{
			*problem = "too long";
			return false;
		}
		memcpy(line, text, length);
		line[length] = '\0';
		*problem = read_step(&plan->step[plan->steps++], line);
		if (*problem != NULL)
			return false;
	}
	plan_hash(plan);
	return true;
}
