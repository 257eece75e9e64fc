/*
 * seeds.h
 *	  What the fuzzer starts from: the known documents and envelopes, each
 *	  behind the byte that says what is done with it.
 */
#ifndef SEEDS_H
#define SEEDS_H

#include "../unit/envelope.h"

/* What is done with the bytes that follow. */
typedef enum Aim
{
	AIM_OPEN_SHARD,				/* opened as an envelope */
	AIM_OPEN_REPORT,
	AIM_READ_SHARD,				/* read as a payload, soundly signed, and opened */
	AIM_READ_REPORT,
	AIM_HEADER,					/* a header in front of the known payload, soundly signed */
	AIM_KEY,					/* a line of a trust list */
	AIM_BASE64
} Aim;
#define AIM_COUNT	(AIM_BASE64 + 1)

/* More of a document than the known ones have: escapes, UTF-8, the largest numbers. */
#define SEED_SHARD \
	"{\"accountingEpoch\":\"0001-01-01T00:00:00.000000Z\",\"allocatedUnits\":\"9223372036854775807\"," \
	"\"bootEpoch\":\"ffffffff-ffff-ffff-ffff-ffffffffffff\"," \
	"\"executionTtl\":\"9223372036854775807\",\"expiresAt\":\"9999-12-31T23:59:59.999999Z\",\"fence\":\"1\"," \
	"\"gateway\":\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\",\"hardExecutionLimit\":\"9223372036854775807\",\"holdTtl\":\"1\"," \
	"\"issuedAt\":\"2028-02-29T23:59:59.000001Z\",\"largestReservation\":\"1\",\"policyGeneration\":\"1\"," \
	"\"route\":\"\\b\\t\\n\\f\\r\\\"\\\\/\\u0001\\u001f\",\"schema\":\"emergencyShard.v1\",\"shard\":\" \"," \
	"\"subject\":\"x\"}"

#define SEED_REPORT \
	"{\"allocatedUnits\":\"1\",\"bootEpoch\":\"00000000-0000-0000-0000-000000000000\"," \
	"\"fence\":\"1\",\"gateway\":\"g\",\"localAvailable\":\"1\",\"localExcess\":\"0\"," \
	"\"localReserved\":\"0\",\"localRetired\":\"0\",\"localSpent\":\"0\",\"receipts\":[]," \
	"\"schema\":\"shardReport.v1\",\"sealed\":false,\"sequence\":\"1\",\"shard\":\"s\"}"

#define SEED_COUNT	10
#define SEED_MAX	4096

/* seed writes one of them, and returns its length. */
__attribute__((unused)) static size_t
seed(int number, char bytes[SEED_MAX])
{
	static const struct
	{
		Aim			aim;
		const char *text;		/* NULL: the known envelope */
	}			seeds[SEED_COUNT] = {
		{AIM_OPEN_SHARD, NULL},
		{AIM_OPEN_REPORT, NULL},
		{AIM_READ_SHARD, SHARD_PAYLOAD},
		{AIM_READ_SHARD, SEED_SHARD},
		{AIM_READ_REPORT, REPORT_PAYLOAD},
		{AIM_READ_REPORT, SEED_REPORT},
		{AIM_HEADER, SHARD_HEADER},
		{AIM_HEADER, REPORT_HEADER},
		{AIM_KEY, LL_PUBLIC_FORM " centre-1 " RFC_PUBLIC},
		{AIM_BASE64, RFC_SEED},
	};
	char	   *envelope = seeds[number].text == NULL ? the_envelope(number == 0 ? SHARD : REPORT) : NULL;
	const char *text = envelope != NULL ? envelope : seeds[number].text;
	size_t		length = strlen(text);

	bytes[0] = (char) seeds[number].aim;
	memcpy(bytes + 1, text, length);
	free(envelope);
	return length + 1;
}

#endif							/* SEEDS_H */
