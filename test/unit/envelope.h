/*
 * envelope.h
 *	  Keys, documents and envelopes that are known byte for byte.
 *
 * The key is the example of RFC 8037, appendix A, so that everybody can make
 * these envelopes anew.  docs/envelope.md shows the same ones.
 */
#ifndef TEST_ENVELOPE_H
#define TEST_ENVELOPE_H

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "envelope/envelope.h"
#include "envelope/jws.h"
#include "envelope/payload.h"
#include "tap.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define LENGTH(array)	(int) (sizeof(array) / sizeof((array)[0]))

#define RFC_SEED	"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
#define RFC_PUBLIC	"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
#define OTHER_SEED	"TM0Imyj_ltqdtsNG7BFOD1uKMZ81q6Yk2oz27U-4pvs"	/* RFC 8032, 7.1, test 2 */

#define BOOT	{0x6f, 0x1c, 0x2b, 0x9a, 0x0d, 0x47, 0x4c, 0x1e, \
				 0x9b, 0x52, 0x3e, 0x8a, 0x77, 0x10, 0xc4, 0xd5}

static const LLShardDocument a_shard = {
	.shard = "shard-7", .subject = "tenant-a", .route = "chat/gpt",
	.policy_generation = 12, .accounting_epoch = INT64_C(837734400000000),
	.allocated = 100, .gateway = "gw-eu-1", .boot_epoch = BOOT, .fence = 3,
	.issued_at = INT64_C(837784800000000), .expires_at = INT64_C(837786600250000),
	.hold_ttl = 30000000, .execution_ttl = 600000000,
	.hard_execution_limit = 5000, .largest_reservation = 40
};

static LLReportReceipt some_receipts[] = {
	{"r-1", "op-1", LL_SETTLED, 40, 25},
	{"r-2", "", LL_RELEASED, 10, LL_NO_UNITS},
	{"r-3", "op-3", LL_SETTLED_WITH_DEBT, 10, 40},
	{"r-4", "", LL_EXPIRED, 5, LL_NO_UNITS}
};

static const LLReportDocument a_report = {
	.shard = "shard-7", .gateway = "gw-eu-1", .boot_epoch = BOOT, .fence = 3,
	.sequence = 2, .sealed = true, .allocated = 100, .local_available = 0,
	.local_reserved = 20, .local_spent = 55, .local_retired = 25, .local_excess = 10,
	.receipts = some_receipts, .receipt_size = 4, .receipt_count = 4
};

#define SHARD_HEADER	"{\"alg\":\"EdDSA\",\"kid\":\"centre-1\",\"typ\":\"emergencyShard.v1\"}"
#define REPORT_HEADER	"{\"alg\":\"EdDSA\",\"kid\":\"gw-eu-1.a\",\"typ\":\"shardReport.v1\"}"

#define SHARD_PAYLOAD \
	"{\"accountingEpoch\":\"2026-07-19T00:00:00.000000Z\",\"allocatedUnits\":\"100\"," \
	"\"bootEpoch\":\"6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5\"," \
	"\"executionTtl\":\"600000000\",\"expiresAt\":\"2026-07-19T14:30:00.250000Z\",\"fence\":\"3\"," \
	"\"gateway\":\"gw-eu-1\",\"hardExecutionLimit\":\"5000\",\"holdTtl\":\"30000000\"," \
	"\"issuedAt\":\"2026-07-19T14:00:00.000000Z\",\"largestReservation\":\"40\",\"policyGeneration\":\"12\"," \
	"\"route\":\"chat/gpt\",\"schema\":\"emergencyShard.v1\",\"shard\":\"shard-7\"," \
	"\"subject\":\"tenant-a\"}"

#define REPORT_PAYLOAD \
	"{\"allocatedUnits\":\"100\",\"bootEpoch\":\"6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5\"," \
	"\"fence\":\"3\",\"gateway\":\"gw-eu-1\",\"localAvailable\":\"0\",\"localExcess\":\"10\"," \
	"\"localReserved\":\"20\",\"localRetired\":\"25\",\"localSpent\":\"55\",\"receipts\":[" \
	"{\"actualUnits\":\"25\",\"operationId\":\"op-1\",\"reservation\":\"r-1\",\"reservedUnits\":\"40\",\"state\":\"SETTLED\"}," \
	"{\"actualUnits\":null,\"operationId\":null,\"reservation\":\"r-2\",\"reservedUnits\":\"10\",\"state\":\"RELEASED\"}," \
	"{\"actualUnits\":\"40\",\"operationId\":\"op-3\",\"reservation\":\"r-3\",\"reservedUnits\":\"10\",\"state\":\"SETTLED_WITH_DEBT\"}," \
	"{\"actualUnits\":null,\"operationId\":null,\"reservation\":\"r-4\",\"reservedUnits\":\"5\",\"state\":\"EXPIRED\"}]," \
	"\"schema\":\"shardReport.v1\",\"sealed\":true,\"sequence\":\"2\",\"shard\":\"shard-7\"}"

/* Which of the two documents a row is about. */
typedef enum Type
{
	SHARD,
	REPORT
} Type;

static const char *const type_names[] = {LL_SHARD_TYPE, LL_REPORT_TYPE};

__attribute__((unused)) static LLSpan
span(const char *text)
{
	return (LLSpan) {text, strlen(text)};
}

/* seeded makes the key of a seed. */
__attribute__((unused)) static LLSecretKey
seeded(const char *kid, const char *seed)
{
	LLSecretKey key = {""};
	unsigned char bytes[LL_SEED_BYTES];
	unsigned char public_bytes[LL_PUBLIC_BYTES];
	size_t		length;

	if (sodium_init() < 0 ||
		sodium_base642bin(bytes, sizeof(bytes), seed, strlen(seed), NULL, &length, NULL,
						  sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
		length != sizeof(bytes))
		abort();
	memcpy(key.kid, kid, strlen(kid) + 1);
	crypto_sign_seed_keypair(public_bytes, key.bytes, bytes);
	return key;
}

/* signing_key is the one that signs documents of a type. */
__attribute__((unused)) static LLSecretKey
signing_key(Type type)
{
	static LLSecretKey keys[2];

	if (keys[type].kid[0] == '\0')
		keys[type] = seeded(type == SHARD ? "centre-1" : "gw-eu-1.a", RFC_SEED);
	return keys[type];
}

/* trusted is a list of three keys, the right one in the middle. */
__attribute__((unused)) static LLTrust
trusted(Type type)
{
	static LLPublicKey keys[2][3];

	if (keys[type][0].kid[0] == '\0')
	{
		LLSecretKey right = signing_key(type);
		LLSecretKey before = seeded("old", OTHER_SEED);
		LLSecretKey after = seeded("centre-2", OTHER_SEED);

		ll_key_public(&before, &keys[type][0]);
		ll_key_public(&right, &keys[type][1]);
		ll_key_public(&after, &keys[type][2]);
	}
	return (LLTrust) {keys[type], 3};
}

/* encode appends base64url to a text and returns its end. */
__attribute__((unused)) static char *
encode(char *end, const char *bytes, size_t length)
{
	sodium_bin2base64(end, LL_BASE64_LENGTH(length) + 1, (const unsigned char *) bytes, length,
					  sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	return end + strlen(end);
}

/*
 * sign_any makes an envelope of any header and any payload, soundly signed; to
 * be freed.
 */
__attribute__((unused)) static char *
sign_any(const char *header, LLSpan payload, const LLSecretKey *key)
{
	char	   *envelope = malloc(2 * (strlen(header) + payload.length) + 200);
	char	   *end = encode(envelope, header, strlen(header));

	*end++ = '.';
	end = encode(end, payload.data, payload.length);
	ll_jws_sign((LLSpan) {envelope, (size_t) (end - envelope)}, key, end + 1);
	*end = '.';
	return envelope;
}

/* open_any opens what should be of a type, into documents that nobody looks at. */
__attribute__((unused)) static LLFault
open_any(Type type, LLSpan envelope, LLTrust trust)
{
	static char bytes[LL_REPORT_ENVELOPE_MAX];
	static LLReportReceipt receipts[LL_RECEIPTS_MAX];
	LLBuffer	scratch = {bytes, sizeof(bytes), 0};
	LLShardDocument shard;
	LLReportDocument report = {.receipts = receipts, .receipt_size = LL_RECEIPTS_MAX};
	int			signer;

	return type == SHARD ? ll_shard_open(envelope, trust, &shard, &signer)
		: ll_report_open(envelope, trust, &scratch, &report, &signer);
}

/* the_envelope is the known one of a type; to be freed. */
__attribute__((unused)) static char *
the_envelope(Type type)
{
	LLSecretKey key = signing_key(type);

	return type == SHARD ? sign_any(SHARD_HEADER, span(SHARD_PAYLOAD), &key)
		: sign_any(REPORT_HEADER, span(REPORT_PAYLOAD), &key);
}

#endif							/* TEST_ENVELOPE_H */
