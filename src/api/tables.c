/*
 * tables.c
 *	  The protocol's tables, printed by the code that obeys them, and how often
 *	  each answer was given.
 */
#include "postgres.h"

#include "answer.h"
#include "core/transition.h"
#include "funcapi.h"
#include "errors.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(limitledger_transitions);
PG_FUNCTION_INFO_V1(limitledger_outcomes);
PG_FUNCTION_INFO_V1(limitledger_sqlstates);
PG_FUNCTION_INFO_V1(limitledger_count_decisions);

/* put adds one row of words, some of them missing. */
static void
put(ReturnSetInfo *set, const char *const *words, int count)
{
	Datum		values[8];
	bool		nulls[8];

	Assert(count <= (int) lengthof(values));
	for (int i = 0; i < count; i++)
		values[i] = ll_answer_text(words[i], &nulls[i]);
	tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
}

static char *
lower_case(const char *name)
{
	char	   *copy = pstrdup(name);

	for (char *c = copy; *c != '\0'; c++)
		*c = pg_ascii_tolower((unsigned char) *c);
	return copy;
}

/* limitledger_transitions prints every (state, event) pair (D1). */
Datum
limitledger_transitions(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int state = 0; state < LL_STATE_COUNT; state++)
		for (int event = 0; event < LL_EVENT_COUNT; event++)
		{
			const LLTransition *t = ll_transition(state, event);
			const char *words[] = {
				state == LL_ABSENT && event == LL_EVENT_RESERVE ? "REQUESTED" : ll_state_name(state),
				ll_event_name(event),
				ll_outcome_name(t->outcome),
				ll_dimension_info(t->dimension)->name,
				ll_state_name(t->next),
				t->next_with_debt != t->next ? ll_state_name(t->next_with_debt) : NULL,
				t->rule
			};

			put(set, words, lengthof(words));
		}
	return (Datum) 0;
}

/* limitledger_outcomes prints the closed list of answers (D3). */
Datum
limitledger_outcomes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int dimension = 0; dimension < LL_DIMENSION_COUNT; dimension++)
	{
		const LLDimensionInfo *info = ll_dimension_info(dimension);
		const char *words[] = {
			ll_outcome_name(info->outcome), info->name, ll_wait_name(info->wait),
			info->rule, info->meaning
		};

		put(set, words, lengthof(words));
	}
	return (Datum) 0;
}

/* limitledger_sqlstates prints SQLSTATE class LL. */
Datum
limitledger_sqlstates(PG_FUNCTION_ARGS)
{
	static const struct
	{
		int			code;
		const char *name;
		const char *meaning;
	}			errors[] = {
#define X(name, c, t, o, meaning) {LL_ERRCODE_##name, #name, meaning},
		LL_ERROR_LIST(X)
#undef X
	};
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < (int) lengthof(errors); i++)
	{
		char	   *name = lower_case(errors[i].name);
		const char *words[] = {unpack_sql_state(errors[i].code), name, errors[i].meaning};

		put(set, words, lengthof(words));
	}
	return (Datum) 0;
}

/* limitledger_count_decisions prints how often each call has given each answer here. */
Datum
limitledger_count_decisions(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	LLCounts	counts;

	InitMaterializedSRF(fcinfo, 0);
	if (!ll_counts(&counts))
		return (Datum) 0;
	for (int call = 0; call < LL_CALL_COUNT; call++)
		for (int answer = 0; answer < LL_ANSWER_COUNT; answer++)
		{
			bool		replayed = answer == LL_ANSWER_REPLAYED;
			const LLDimensionInfo *info = ll_dimension_info(replayed ? LL_DIM_NONE : answer);
			Datum		values[6];
			bool		nulls[6] = {false};

			if (counts.answers[call][answer] == 0)
				continue;
			values[0] = CStringGetTextDatum(ll_call_name(call));
			values[1] = CStringGetTextDatum(ll_outcome_name(info->outcome));
			values[2] = ll_answer_text(info->name, &nulls[2]);
			values[3] = BoolGetDatum(replayed);
			values[4] = Int64GetDatum((int64) counts.answers[call][answer]);
			values[5] = TimestampTzGetDatum(counts.since);
			tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
		}
	return (Datum) 0;
}
