/*
 * rollout.c
 *	  Which part of the traffic a canary takes in (B4).
 *
 * Fails when: a bucket changes from one build to the next, so that what is in
 * would leave; the parts are not the percents that were asked for; or two keys
 * with the same bytes, cut elsewhere, are one.
 */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "fixture.h"

static int
bucket(const char *route, const char *subject)
{
	return ll_rollout_bucket(route, strlen(route), subject, subject != NULL ? strlen(subject) : 0);
}

/* Computed by hand from the definition: they may never change. */
static const struct
{
	const char *route;
	const char *subject;
	int			bucket;
}			known[] = {
	{"", NULL, 58},
	{"chat", NULL, 93},
	{"embed", NULL, 95},
	{"chat", "t1", 20},
	{"chat", "t2", 15},
	{"chatt", "1", 82},
	{"r\xc3\xa9sum\xc3\xa9", "\xe2\x82\xac", 13},
};

/* the parts that a canary by pair takes in of 100,000 subjects, at 1, 10, 50 and 99 percent */
static void
parts(void)
{
	static const int percents[] = {1, 10, 50, 99};
	int			in[LENGTH(percents)] = {0};
	char		subject[32];

	for (int n = 0; n < 100000; n++)
	{
		int			b;

		snprintf(subject, sizeof(subject), "tenant-%d", n);
		b = bucket("chat", subject);
		for (int i = 0; i < LENGTH(percents); i++)
			in[i] += b < percents[i];
	}
	for (int i = 0; i < LENGTH(percents); i++)
	{
		/* six standard deviations of a fair draw */
		double		p = percents[i] / 100.0;
		double		off = in[i] - 100000 * p;

		ok(off * off < 36 * 100000 * p * (1 - p), "%d %% of the pairs are %d of 100000", percents[i], in[i]);
	}
}

int
main(void)
{
	for (int i = 0; i < LENGTH(known); i++)
		ok(bucket(known[i].route, known[i].subject) == known[i].bucket, "\"%s\" \"%s\" is in %d, as ever",
		   known[i].route, known[i].subject != NULL ? known[i].subject : "-", bucket(known[i].route, known[i].subject));
	parts();
	return done_testing();
}
