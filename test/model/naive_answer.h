/*
 * naive_answer.h
 *	  The words that the naive model answers with.
 */
#ifndef MODEL_NAIVE_ANSWER_H
#define MODEL_NAIVE_ANSWER_H

#include "call.h"

static inline Answer
accepted(void)
{
	return (Answer) {.outcome = "ACCEPTED", .dimension = "", .wait_kind = ""};
}

static inline Answer
replayed(void)
{
	Answer		a = accepted();

	a.replayed = true;
	return a;
}

static inline Answer
refused(const char *dimension, const char *wait_kind)
{
	return (Answer) {.outcome = "REFUSED", .dimension = dimension, .wait_kind = wait_kind};
}

static inline Answer
conflict(const char *dimension)
{
	return (Answer) {.outcome = "CONFLICT", .dimension = dimension, .wait_kind = ""};
}

static inline Answer
unknown(void)
{
	return (Answer) {.outcome = "UNKNOWN", .dimension = "reservation", .wait_kind = ""};
}

#endif							/* MODEL_NAIVE_ANSWER_H */
