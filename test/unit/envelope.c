/*
 * Envelopes: what they are, byte for byte, and one row for each way in which
 * one is refused (G3).
 */
#include "envelope.h"

/* ---- What is known ---------------------------------------------------------- */

/* RFC 8037, A.4: the primitive, under the example's own header. */
static void
rfc_8037(void)
{
	static const char input[] = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
	LLSecretKey key = seeded("rfc", RFC_SEED);
	LLPublicKey public_key;
	char		line[LL_KEY_LINE_MAX + 1];
	char		signature[LL_SIGNATURE_TEXT + 1];

	ll_key_public(&key, &public_key);
	ll_public_key_write(&public_key, line);
	ok(strcmp(line, LL_PUBLIC_FORM " rfc " RFC_PUBLIC) == 0, "RFC 8037 A.2: the public key");
	ll_jws_sign(span(input), &key, signature);
	ok(strcmp(signature, "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5B"
			  "hVsPt9g7sVvpAr_MuM0KAg") == 0, "RFC 8037 A.4: the signature");
}

static bool
same_shard(const LLShardDocument *a, const LLShardDocument *b)
{
	return strcmp(a->shard, b->shard) == 0 && strcmp(a->subject, b->subject) == 0 &&
		strcmp(a->route, b->route) == 0 && a->policy_generation == b->policy_generation &&
		a->accounting_epoch == b->accounting_epoch && a->allocated == b->allocated &&
		strcmp(a->gateway, b->gateway) == 0 &&
		memcmp(a->boot_epoch, b->boot_epoch, LL_BOOT_BYTES) == 0 && a->fence == b->fence &&
		a->issued_at == b->issued_at && a->expires_at == b->expires_at &&
		a->hold_ttl == b->hold_ttl && a->execution_ttl == b->execution_ttl &&
		a->hard_execution_limit == b->hard_execution_limit &&
		a->largest_reservation == b->largest_reservation;
}

static bool
same_receipt(const LLReportReceipt *a, const LLReportReceipt *b)
{
	return strcmp(a->reservation, b->reservation) == 0 && strcmp(a->operation, b->operation) == 0 &&
		a->state == b->state && a->reserved_units == b->reserved_units &&
		a->actual_units == b->actual_units;
}

static bool
same_report(const LLReportDocument *a, const LLReportDocument *b)
{
	bool		same = strcmp(a->shard, b->shard) == 0 && strcmp(a->gateway, b->gateway) == 0 &&
		memcmp(a->boot_epoch, b->boot_epoch, LL_BOOT_BYTES) == 0 && a->fence == b->fence &&
		a->sequence == b->sequence && a->sealed == b->sealed && a->allocated == b->allocated &&
		a->local_available == b->local_available && a->local_reserved == b->local_reserved &&
		a->local_spent == b->local_spent && a->local_retired == b->local_retired &&
		a->local_excess == b->local_excess && a->receipt_count == b->receipt_count;

	for (int i = 0; same && i < a->receipt_count; i++)
		same = same_receipt(&a->receipts[i], &b->receipts[i]);
	return same;
}

/* The two known envelopes, there and back. */
static void
known(void)
{
	static char bytes[LL_SHARD_ENVELOPE_MAX + 1];
	static char more[LL_SHARD_ENVELOPE_MAX + 1];
	LLBuffer	out = {bytes, sizeof(bytes), 0};
	LLBuffer	scratch = {more, sizeof(more), 0};
	LLSecretKey centre = signing_key(SHARD);
	LLSecretKey gateway = signing_key(REPORT);
	char	   *shard_envelope = the_envelope(SHARD);
	char	   *report_envelope = the_envelope(REPORT);
	LLReportReceipt receipts[4];
	LLShardDocument shard;
	LLReportDocument report = {.receipts = receipts, .receipt_size = 4};
	int			signer = 0;

	ok(ll_shard_seal(&a_shard, &centre, &out).error == LL_ENVELOPE_NONE &&
	   strcmp(bytes, shard_envelope) == 0 && out.length == strlen(bytes),
	   "an emergencyShard.v1 is sealed as it is written here");
	ok(ll_shard_open(span(shard_envelope), trusted(SHARD), &shard, &signer).error == LL_ENVELOPE_NONE &&
	   same_shard(&shard, &a_shard), "and opens to what was sealed");
	ok(signer == 1, "and says which key has signed");
	ok(ll_report_seal(&a_report, &gateway, &scratch, &out).error == LL_ENVELOPE_NONE &&
	   strcmp(bytes, report_envelope) == 0 && out.length == strlen(bytes),
	   "a shardReport.v1 is sealed as it is written here");
	ok(ll_report_open(span(report_envelope), trusted(REPORT), &scratch, &report, &signer).error ==
	   LL_ENVELOPE_NONE && same_report(&report, &a_report) && signer == 1, "and opens to what was sealed");
	free(shard_envelope);
	free(report_envelope);
}

/* Every byte that a text can have, and the longest of all. */
static void
texts(void)
{
	static char bytes[LL_SHARD_ENVELOPE_MAX + 1];
	LLBuffer	out = {bytes, sizeof(bytes), 0};
	LLSecretKey key = signing_key(SHARD);
	LLShardDocument shard = a_shard;
	LLShardDocument again;
	int			signer;

	for (int c = 1; c < 128; c++)
		shard.subject[c - 1] = (char) c;
	strcpy(shard.subject + 127, "\xC2\x80\xE2\x82\xAC\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF");
	ok(ll_shard_seal(&shard, &key, &out).error == LL_ENVELOPE_NONE &&
	   ll_shard_open((LLSpan) {bytes, out.length}, trusted(SHARD), &again, &signer).error == LL_ENVELOPE_NONE &&
	   same_shard(&shard, &again), "every character but NUL goes through unchanged");
}

static const struct
{
	const char *text;
	LLTime		instant;
}			instants[] = {
	{"0001-01-01T00:00:00.000000Z", INT64_C(-63082281600000000)},
	{"1600-02-29T12:00:00.000001Z", INT64_C(-12617639999999999)},
	{"1900-02-28T23:59:59.999999Z", INT64_C(-3150576000000001)},
	{"1999-12-31T23:59:59.999999Z", -1},
	{"2000-01-01T00:00:00.000000Z", 0},
	{"2000-02-29T00:00:00.000000Z", INT64_C(5097600000000)},
	{"2024-12-31T23:59:59.500000Z", INT64_C(789004799500000)},
	{"2026-07-19T14:30:00.250000Z", INT64_C(837786600250000)},
	{"2100-03-01T00:00:00.000000Z", INT64_C(3160857600000000)},
	{"9999-12-31T23:59:59.999999Z", INT64_C(252455615999999999)},
};

static void
known_instants(void)
{
	LLShardDocument shard;
	LLShardDocument read;
	char		bytes[LL_SHARD_PAYLOAD_MAX];
	LLBuffer	payload = {bytes, sizeof(bytes), 0};

	for (int i = 0; i < LENGTH(instants); i++)
	{
		char		member[64];

		shard = a_shard;
		shard.accounting_epoch = instants[i].instant;
		snprintf(member, sizeof(member), "{\"accountingEpoch\":\"%s\",", instants[i].text);
		ll_shard_write(&shard, &payload);
		ok(strncmp(bytes, member, strlen(member)) == 0 &&
		   ll_shard_read((LLSpan) {bytes, payload.length}, &read).error == LL_ENVELOPE_NONE &&
		   read.accounting_epoch == instants[i].instant, "%s", instants[i].text);
	}
}

/* Days in a row, more than the 146097 after which the calendar repeats. */
static void
calendar(void)
{
	LLShardDocument shard = a_shard;
	LLShardDocument read;
	char		bytes[LL_SHARD_PAYLOAD_MAX];
	char		before[64] = "";
	LLBuffer	payload = {bytes, sizeof(bytes), 0};
	int			wrong = 0;

	for (int64_t day = -75000; day < 75000; day++)
	{
		shard.accounting_epoch = day * INT64_C(86400000000) - 1;
		ll_shard_write(&shard, &payload);
		wrong += strncmp(before, bytes, 46) >= 0 ||
			ll_shard_read((LLSpan) {bytes, payload.length}, &read).error != LL_ENVELOPE_NONE ||
			read.accounting_epoch != shard.accounting_epoch;
		memcpy(before, bytes, 46);
	}
	ok(wrong == 0, "150000 days in a row are written in order, and read back");
}

/* ---- The largest ------------------------------------------------------------- */

static void
fill(LLText text, int number)
{
	memset(text, 1, LL_TEXT_MAX);
	text[LL_TEXT_MAX] = '\0';
	text[0] = (char) (1 + number / 30);
	text[1] = (char) (1 + number % 30);
}

static void
largest_shard(void)
{
	static char bytes[LL_SHARD_ENVELOPE_MAX + 2];
	LLBuffer	out = {bytes, LL_SHARD_ENVELOPE_MAX + 1, 0};
	LLSecretKey key = signing_key(SHARD);
	LLShardDocument shard = a_shard;
	LLShardDocument again;
	LLPublicKey public_key;
	int			signer;

	memset(key.kid, 'k', LL_KID_MAX);
	key.kid[LL_KID_MAX] = '\0';
	ll_key_public(&key, &public_key);
	fill(shard.shard, 1);
	fill(shard.subject, 2);
	fill(shard.route, 3);
	fill(shard.gateway, 4);
	shard.policy_generation = shard.fence = shard.allocated = shard.hold_ttl = shard.execution_ttl =
		shard.hard_execution_limit = shard.largest_reservation = LL_UNITS_MAX;
	ok(ll_shard_seal(&shard, &key, &out).error == LL_ENVELOPE_NONE && out.length <= LL_SHARD_ENVELOPE_MAX &&
	   ll_shard_open((LLSpan) {bytes, out.length}, (LLTrust) {&public_key, 1}, &again, &signer).error ==
	   LL_ENVELOPE_NONE && same_shard(&shard, &again), "the largest emergencyShard.v1 fits");
	note("it has %zu of %d bytes", out.length, LL_SHARD_ENVELOPE_MAX);
	memset(bytes + out.length, 'A', sizeof(bytes) - out.length);
	ok(ll_shard_open((LLSpan) {bytes, LL_SHARD_ENVELOPE_MAX + 1}, (LLTrust) {&public_key, 1}, &again,
					 &signer).error == LL_ENVELOPE_LENGTH, "a byte above the bound is too long");
	ok(ll_shard_open((LLSpan) {bytes, LL_SHARD_ENVELOPE_MAX}, (LLTrust) {&public_key, 1}, &again,
					 &signer).error == LL_ENVELOPE_SIGNATURE_FORM, "at the bound it is judged by its form");
}

static void
largest_report(void)
{
	static char bytes[LL_REPORT_ENVELOPE_MAX + 1];
	static char more[LL_REPORT_ENVELOPE_MAX];
	static LLReportReceipt receipts[LL_RECEIPTS_MAX + 1];
	static LLReportReceipt read[LL_RECEIPTS_MAX];
	LLBuffer	out = {bytes, sizeof(bytes), 0};
	LLBuffer	scratch = {more, LL_REPORT_PAYLOAD_MAX, 0};
	LLSecretKey key = signing_key(REPORT);
	LLReportDocument report = a_report;
	LLReportDocument again = {.receipts = read, .receipt_size = LL_RECEIPTS_MAX};
	int			signer;

	fill(report.shard, 1);
	fill(report.gateway, 2);
	report.fence = report.sequence = report.allocated = report.local_available = report.local_reserved =
		report.local_spent = report.local_retired = report.local_excess = LL_UNITS_MAX;
	report.sealed = false;
	report.receipts = receipts;
	for (int i = 0; i <= LL_RECEIPTS_MAX; i++)
	{
		receipts[i] = (LLReportReceipt) {.state = LL_SETTLED_WITH_DEBT, .reserved_units = LL_UNITS_MAX,
			.actual_units = LL_UNITS_MAX};
		fill(receipts[i].reservation, i);
		fill(receipts[i].operation, 0);
	}
	report.receipt_count = LL_RECEIPTS_MAX;
	ok(ll_report_seal(&report, &key, &scratch, &out).error == LL_ENVELOPE_NONE &&
	   out.length <= LL_REPORT_ENVELOPE_MAX, "the largest shardReport.v1 fits");
	note("it has %zu of %d bytes", out.length, LL_REPORT_ENVELOPE_MAX);
	scratch.size = sizeof(more);
	ok(ll_report_open((LLSpan) {bytes, out.length}, trusted(REPORT), &scratch, &again, &signer).error ==
	   LL_ENVELOPE_NONE && same_report(&report, &again), "and opens");
	again.receipt_size--;
	ok(ll_report_open((LLSpan) {bytes, out.length}, trusted(REPORT), &scratch, &again, &signer).error ==
	   LL_ENVELOPE_ROOM, "an array that is too short is said, not written over");
	ok(ll_report_open((LLSpan) {bytes, LL_REPORT_ENVELOPE_MAX + 1}, trusted(REPORT), &scratch, &again,
					  &signer).error == LL_ENVELOPE_LENGTH, "a byte above the bound is too long");
	report.receipt_count++;
	ok(ll_report_seal(&report, &key, &scratch, &out).error == LL_ENVELOPE_COUNT, "a receipt too many is not sealed");
}

/* ---- Refused: the form ------------------------------------------------------- */

#define A_HEADER(alg)	"{\"alg\":\"" alg "\",\"kid\":\"centre-1\",\"typ\":\"emergencyShard.v1\"}"

/* Headers that no key has; the signature over each of them is sound. */
static const struct
{
	const char *name;
	const char *header;
}			headers[] = {
	{"no algorithm", A_HEADER("none")},
	{"none, in capitals", A_HEADER("None")},
	{"HS256", A_HEADER("HS256")},
	{"another case of the algorithm", A_HEADER("EDDSA")},
	{"another curve's algorithm", A_HEADER("ES256")},
	{"the later name of the algorithm", A_HEADER("Ed25519")},
	{"another type", "{\"alg\":\"EdDSA\",\"kid\":\"centre-1\",\"typ\":\"shardReport.v1\"}"},
	{"the type of a token", "{\"alg\":\"EdDSA\",\"kid\":\"centre-1\",\"typ\":\"JWT\"}"},
	{"no type", "{\"alg\":\"EdDSA\",\"kid\":\"centre-1\"}"},
	{"no key id", "{\"alg\":\"EdDSA\",\"typ\":\"emergencyShard.v1\"}"},
	{"an empty key id", "{\"alg\":\"EdDSA\",\"kid\":\"\",\"typ\":\"emergencyShard.v1\"}"},
	{"a key id that nobody trusts", "{\"alg\":\"EdDSA\",\"kid\":\"centre-9\",\"typ\":\"emergencyShard.v1\"}"},
	{"a key id in another case", "{\"alg\":\"EdDSA\",\"kid\":\"Centre-1\",\"typ\":\"emergencyShard.v1\"}"},
	{"the start of a key id", "{\"alg\":\"EdDSA\",\"kid\":\"centre-\",\"typ\":\"emergencyShard.v1\"}"},
	{"more than a key id", "{\"alg\":\"EdDSA\",\"kid\":\"centre-11\",\"typ\":\"emergencyShard.v1\"}"},
	{"members in another order", "{\"kid\":\"centre-1\",\"alg\":\"EdDSA\",\"typ\":\"emergencyShard.v1\"}"},
	{"white space", "{\"alg\": \"EdDSA\",\"kid\":\"centre-1\",\"typ\":\"emergencyShard.v1\"}"},
	{"white space at the end", SHARD_HEADER " "},
	{"an escape for a letter", "{\"alg\":\"\\u0045dDSA\",\"kid\":\"centre-1\",\"typ\":\"emergencyShard.v1\"}"},
	{"a member twice", "{\"alg\":\"EdDSA\",\"alg\":\"EdDSA\",\"kid\":\"centre-1\",\"typ\":\"emergencyShard.v1\"}"},
	{"a key of its own", "{\"alg\":\"EdDSA\",\"jwk\":{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"" RFC_PUBLIC "\"},"
	"\"kid\":\"centre-1\",\"typ\":\"emergencyShard.v1\"}"},
	{"an extension", "{\"alg\":\"EdDSA\",\"b64\":false,\"crit\":[\"b64\"],\"kid\":\"centre-1\","
	"\"typ\":\"emergencyShard.v1\"}"},
	{"no object", "[]"},
	{"nothing", ""},
};

static void
refused_headers(void)
{
	LLSecretKey key = signing_key(SHARD);

	for (int i = 0; i < LENGTH(headers); i++)
	{
		char	   *envelope = sign_any(headers[i].header, span(SHARD_PAYLOAD), &key);
		LLFault		fault = open_any(SHARD, span(envelope), trusted(SHARD));

		ok(fault.error == LL_ENVELOPE_HEADER, "header: %s (%s)", headers[i].name,
		   ll_envelope_error_name(fault.error));
		free(envelope);
	}
}

/* What is done to the known envelope H.P.S; a letter is a part, the rest stands as it is. */
static const struct
{
	const char *name;
	const char *form;
	LLEnvelopeError error;
}			forms[] = {
	{"as it is", "H.P.S", LL_ENVELOPE_NONE},
	{"nothing", "", LL_ENVELOPE_PARTS},
	{"one part", "H", LL_ENVELOPE_PARTS},
	{"two parts", "H.P", LL_ENVELOPE_PARTS},
	{"four parts", "H.P.S.S", LL_ENVELOPE_PARTS},
	{"a dot at the end", "H.P.S.", LL_ENVELOPE_PARTS},
	{"a dot at the start", ".H.P.S", LL_ENVELOPE_PARTS},
	{"the form of an encryption", "H.P.S.P.S", LL_ENVELOPE_PARTS},
	{"no header", ".P.S", LL_ENVELOPE_HEADER},
	{"parts in another order", "P.H.S", LL_ENVELOPE_HEADER},
	{"parts in reverse", "S.P.H", LL_ENVELOPE_HEADER},
	{"white space before", " H.P.S", LL_ENVELOPE_HEADER},
	{"padding of the header", "H=.P.S", LL_ENVELOPE_HEADER},
	{"no payload", "H..S", LL_ENVELOPE_SIGNATURE},
	{"the header for a payload", "H.H.S", LL_ENVELOPE_SIGNATURE},
	{"padding of the payload", "H.P=.S", LL_ENVELOPE_SIGNATURE},
	{"a line end in the payload", "H.P\n.S", LL_ENVELOPE_SIGNATURE},
	{"no signature", "H.P.", LL_ENVELOPE_SIGNATURE_FORM},
	{"the payload for a signature", "H.P.P", LL_ENVELOPE_SIGNATURE_FORM},
	{"a signature twice", "H.P.SS", LL_ENVELOPE_SIGNATURE_FORM},
	{"padding of the signature", "H.P.S==", LL_ENVELOPE_SIGNATURE_FORM},
	{"a line end behind", "H.P.S\n", LL_ENVELOPE_SIGNATURE_FORM},
	{"a letter behind", "H.P.SA", LL_ENVELOPE_SIGNATURE_FORM},
};

static void
refused_forms(void)
{
	char	   *envelope = the_envelope(SHARD);
	char	   *payload = strchr(envelope, '.') + 1;
	char	   *signature = strrchr(envelope, '.') + 1;
	char		bytes[8192];

	for (int i = 0; i < LENGTH(forms); i++)
	{
		LLFault		fault;
		size_t		at = 0;

		for (const char *c = forms[i].form; *c != '\0'; c++)
		{
			const char *from = *c == 'H' ? envelope : *c == 'P' ? payload : *c == 'S' ? signature : c;
			size_t		length = *c == 'H' ? (size_t) (payload - envelope) - 1
				: *c == 'P' ? (size_t) (signature - payload) - 1 : *c == 'S' ? strlen(signature) : 1;

			memcpy(bytes + at, from, length);
			at += length;
		}
		fault = open_any(SHARD, (LLSpan) {bytes, at}, trusted(SHARD));
		ok(fault.error == forms[i].error, "form: %s (%s)", forms[i].name, ll_envelope_error_name(fault.error));
	}
	free(envelope);
}

/* A signature has one text: no other byte in any place of it, no bits left over. */
static void
one_signature(void)
{
	char	   *envelope = the_envelope(REPORT);
	LLTrust		trust = trusted(REPORT);
	int			other = 0;

	for (char *c = strrchr(envelope, '.') + 1; *c != '\0'; c++)
	{
		char		right = *c;

		for (int byte = 0; byte < 256; byte++)
		{
			*c = (char) byte;
			other += *c != right && open_any(REPORT, span(envelope), trust).error == LL_ENVELOPE_NONE;
		}
		*c = right;
	}
	ok(other == 0, "no other byte in the signature opens");
	free(envelope);
}

/* The order of the group, added to S: the equation still holds, the signature is another. */
static void
malleable(void)
{
	static const unsigned char order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
		0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10};
	char	   *envelope = the_envelope(SHARD);
	char	   *signature = strrchr(envelope, '.') + 1;
	unsigned char bytes[LL_SIGNATURE_BYTES];
	size_t		length;

	sodium_base642bin(bytes, sizeof(bytes), signature, strlen(signature), NULL, &length, NULL,
					  sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	sodium_add(bytes + 32, order, sizeof(order));
	encode(signature, (const char *) bytes, sizeof(bytes));
	ok(open_any(SHARD, span(envelope), trusted(SHARD)).error == LL_ENVELOPE_SIGNATURE,
	   "S plus the order of the group does not verify");
	free(envelope);
}

static void
refused_keys(void)
{
	LLSecretKey other = seeded("centre-1", OTHER_SEED);
	char	   *forged = sign_any(SHARD_HEADER, span(SHARD_PAYLOAD), &other);
	char	   *shard = the_envelope(SHARD);
	char	   *report = the_envelope(REPORT);
	LLTrust		all = trusted(SHARD);
	LLPublicKey weak = {"centre-1", {1}};	/* the neutral point, of order 1 */
	LLPublicKey nameless = {""};

	ok(open_any(SHARD, span(forged), all).error == LL_ENVELOPE_SIGNATURE, "key: another one under the trusted id");
	ok(open_any(SHARD, span(shard), (LLTrust) {all.keys, 1}).error == LL_ENVELOPE_HEADER, "key: trusted no more");
	ok(open_any(SHARD, span(shard), (LLTrust) {NULL, 0}).error == LL_ENVELOPE_HEADER, "key: none is trusted");
	ok(open_any(SHARD, span(shard), (LLTrust) {&nameless, 1}).error == LL_ENVELOPE_HEADER, "key: one without an id");
	ok(open_any(SHARD, span(shard), (LLTrust) {&weak, 1}).error == LL_ENVELOPE_SIGNATURE, "key: a point of small order");
	ok(open_any(REPORT, span(report), all).error == LL_ENVELOPE_HEADER, "key: the centre's list for a report");
	ok(open_any(REPORT, span(shard), all).error == LL_ENVELOPE_HEADER, "type: a shard is no report");
	ok(open_any(SHARD, span(report), trusted(REPORT)).error == LL_ENVELOPE_HEADER, "type: a report is no shard");
	free(forged);
	free(shard);
	free(report);
}

/* Payloads that are no base64url, soundly signed as they stand. */
static const struct
{
	const char *name;
	const char *payload;
}			encodings[] = {
	{"padding", "e30="},
	{"the other alphabet", "e3+/"},
	{"one character", "e"},
	{"one character without bits", "A"},
	{"bits left over", "e31"},
	{"a space", "e3 0"},
	{"a line end", "e30\n"},
	{"a byte that some take for -", "e3\xAD\xAD"},
	{"a byte that some take for _", "e3\xDF\xDF"},
};

static void
refused_encodings(void)
{
	LLSecretKey key = signing_key(SHARD);

	for (int i = 0; i < LENGTH(encodings); i++)
	{
		char		envelope[512];
		char	   *end = encode(envelope, SHARD_HEADER, strlen(SHARD_HEADER));
		LLFault		fault;

		end += sprintf(end, ".%s", encodings[i].payload);
		ll_jws_sign((LLSpan) {envelope, (size_t) (end - envelope)}, &key, end + 1);
		*end = '.';
		fault = open_any(SHARD, span(envelope), trusted(SHARD));
		ok(fault.error == LL_ENVELOPE_PAYLOAD_FORM, "base64: %s (%s)", encodings[i].name,
		   ll_envelope_error_name(fault.error));
	}
}

/* ---- Refused: the payload ---------------------------------------------------- */

#define X16			"xxxxxxxxxxxxxxxx"
#define X64			X16 X16 X16 X16
#define FIRST		"{\"actualUnits\":\"25\",\"operationId\":\"op-1\",\"reservation\":\"r-1\"," \
	"\"reservedUnits\":\"40\",\"state\":\"SETTLED\"}"

/* In the known payload `gone` becomes `come`; then it is signed by the right key. */
static const struct
{
	const char *name;
	Type		type;
	const char *gone;
	const char *come;
	LLEnvelopeError error;
	const char *member;
}			payloads[] = {
	{"as it is", SHARD, "", "", LL_ENVELOPE_NONE},
	{"as it is", REPORT, "", "", LL_ENVELOPE_NONE},

	/* white space, structure */
	{"a space before", SHARD, "{", " {", LL_ENVELOPE_SYNTAX},
	{"a byte order mark", SHARD, "{", "\xEF\xBB\xBF{", LL_ENVELOPE_SYNTAX},
	{"a space behind a colon", SHARD, "\"fence\":", "\"fence\": ", LL_ENVELOPE_NUMBER, "fence"},
	{"a space before a colon", SHARD, "\"fence\":", "\"fence\" :", LL_ENVELOPE_SYNTAX, "fence"},
	{"a line end behind a comma", SHARD, "\",\"fence\"", "\",\n\"fence\"", LL_ENVELOPE_SYNTAX},
	{"a space before a comma", SHARD, "\",\"fence\"", "\" ,\"fence\"", LL_ENVELOPE_SYNTAX},
	{"a space before the end", SHARD, "\"tenant-a\"}", "\"tenant-a\" }", LL_ENVELOPE_SYNTAX},
	{"two commas", SHARD, ",\"fence\"", ",,\"fence\"", LL_ENVELOPE_SYNTAX},
	{"a comma at the end", SHARD, "\"tenant-a\"}", "\"tenant-a\",}", LL_ENVELOPE_SYNTAX},
	{"a comment", SHARD, ",\"fence\"", ",/**/\"fence\"", LL_ENVELOPE_SYNTAX},
	{"an array", SHARD, SHARD_PAYLOAD, "[" SHARD_PAYLOAD "]", LL_ENVELOPE_SYNTAX},
	{"empty", SHARD, SHARD_PAYLOAD, "", LL_ENVELOPE_SYNTAX},
	{"cut in a name", SHARD, "ject\":\"tenant-a\"}", "", LL_ENVELOPE_SYNTAX},
	{"cut in a text", SHARD, "a\"}", "", LL_ENVELOPE_SYNTAX, "subject"},
	{"cut in an escape", SHARD, "a\"}", "\\", LL_ENVELOPE_CHARACTER, "subject"},
	{"cut before the brace", SHARD, "a\"}", "a\"", LL_ENVELOPE_SYNTAX},

	/* trailing data */
	{"a line end behind", SHARD, "a\"}", "a\"}\n", LL_ENVELOPE_TRAILING},
	{"a control character behind", SHARD, "a\"}", "a\"}\1", LL_ENVELOPE_TRAILING},
	{"a brace behind", SHARD, "a\"}", "a\"}}", LL_ENVELOPE_TRAILING},
	{"another document behind", SHARD, "a\"}", "a\"}" SHARD_PAYLOAD, LL_ENVELOPE_TRAILING},

	/* members */
	{"an empty object", SHARD, SHARD_PAYLOAD, "{}", LL_ENVELOPE_MEMBER_MISSING, "accountingEpoch"},
	{"a member in the middle is missing", SHARD, "\"fence\":\"3\",", "", LL_ENVELOPE_MEMBER_MISSING, "fence"},
	{"the last member is missing", SHARD, ",\"subject\":\"tenant-a\"", "", LL_ENVELOPE_MEMBER_MISSING, "subject"},
	{"two members in the other order", SHARD, "\"fence\":\"3\",\"gateway\":\"gw-eu-1\"",
	"\"gateway\":\"gw-eu-1\",\"fence\":\"3\"", LL_ENVELOPE_MEMBER_MISSING, "fence"},
	{"a member twice", SHARD, "\"fence\":\"3\"", "\"fence\":\"3\",\"fence\":\"3\"", LL_ENVELOPE_MEMBER_TWICE, "fence"},
	{"a member twice, other value", SHARD, "\"allocatedUnits\":\"100\"",
	"\"allocatedUnits\":\"100\",\"allocatedUnits\":\"999\"", LL_ENVELOPE_MEMBER_TWICE, "allocatedUnits"},
	{"a member again at the end", SHARD, "a\"}", "a\",\"allocatedUnits\":\"999\"}", LL_ENVELOPE_MEMBER_TWICE,
	"allocatedUnits"},
	{"the last member again", SHARD, "a\"}", "a\",\"subject\":\"b\"}", LL_ENVELOPE_MEMBER_TWICE, "subject"},
	{"an unknown member", SHARD, ",\"fence\"", ",\"extra\":\"1\",\"fence\"", LL_ENVELOPE_MEMBER_UNKNOWN},
	{"an unknown member at the end", SHARD, "a\"}", "a\",\"zone\":\"1\"}", LL_ENVELOPE_MEMBER_UNKNOWN},
	{"a member in another case", SHARD, "\"fence\"", "\"Fence\"", LL_ENVELOPE_MEMBER_UNKNOWN},
	{"a member with an escape too many", SHARD, "\"fence\"", "\"\\u0066ence\"", LL_ENVELOPE_SYNTAX},
	{"a member without a name", SHARD, "\"fence\"", "\"\"", LL_ENVELOPE_SYNTAX},
	{"a name without quotes", SHARD, "\"fence\"", "fence", LL_ENVELOPE_SYNTAX},
	{"a member of the other document", SHARD, "\"fence\":", "\"sequence\":", LL_ENVELOPE_MEMBER_UNKNOWN},
	{"the other document", SHARD, SHARD_PAYLOAD, REPORT_PAYLOAD, LL_ENVELOPE_MEMBER_MISSING, "accountingEpoch"},
	{"another version", SHARD, "emergencyShard.v1", "emergencyShard.v2", LL_ENVELOPE_SCHEMA, "schema"},
	{"another schema", SHARD, "emergencyShard.v1", "shardReport.v1", LL_ENVELOPE_SCHEMA, "schema"},

	/* texts */
	{"an empty text", SHARD, "\"tenant-a\"", "\"\"", LL_ENVELOPE_TEXT, "subject"},
	{"a text of 256 bytes", SHARD, "tenant-a", X64 X64 X64 X64, LL_ENVELOPE_NONE},
	{"a text of 257 bytes", SHARD, "tenant-a", X64 X64 X64 X64 "x", LL_ENVELOPE_TEXT, "subject"},
	{"a text of 257 bytes with its last character", SHARD, "tenant-a", X64 X64 X64 X64 "\xC3\xA4", LL_ENVELOPE_TEXT,
	"subject"},
	{"null for a text", SHARD, "\"tenant-a\"", "null", LL_ENVELOPE_TEXT, "subject"},
	{"a number for a text", SHARD, "\"tenant-a\"", "1", LL_ENVELOPE_TEXT, "subject"},
	{"single quotes", SHARD, "\"tenant-a\"", "'tenant-a'", LL_ENVELOPE_TEXT, "subject"},
	{"a line end in a text", SHARD, "tenant-a", "tenant\na", LL_ENVELOPE_CHARACTER, "subject"},
	{"a control character in a text", SHARD, "tenant-a", "tenant\x1F", LL_ENVELOPE_CHARACTER, "subject"},
	{"a NUL in a text", SHARD, "tenant-a", "tenant\\u0000", LL_ENVELOPE_CHARACTER, "subject"},
	{"a letter as an escape", SHARD, "tenant-a", "tenant-\\u0061", LL_ENVELOPE_CHARACTER, "subject"},
	{"a line end as a long escape", SHARD, "tenant-a", "\\u000a", LL_ENVELOPE_CHARACTER, "subject"},
	{"a long escape in capitals", SHARD, "tenant-a", "\\u001F", LL_ENVELOPE_CHARACTER, "subject"},
	{"a long escape", SHARD, "tenant-a", "\\u001f", LL_ENVELOPE_NONE},
	{"a short escape", SHARD, "tenant-a", "\\n\\\"\\\\", LL_ENVELOPE_NONE},
	{"a slash as an escape", SHARD, "chat/gpt", "chat\\/gpt", LL_ENVELOPE_CHARACTER, "route"},
	{"an escape that nobody knows", SHARD, "tenant-a", "\\x41", LL_ENVELOPE_CHARACTER, "subject"},
	{"a surrogate pair as escapes", SHARD, "tenant-a", "\\ud83d\\ude00", LL_ENVELOPE_CHARACTER, "subject"},
	{"characters of two to four bytes", SHARD, "tenant-a", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", LL_ENVELOPE_NONE},
	{"half a character", SHARD, "tenant-a", "\xE2\x82", LL_ENVELOPE_UTF8, "subject"},
	{"half a character at the end", SHARD, "tenant-a\"}", "\xF0\x9F\x98", LL_ENVELOPE_UTF8, "subject"},
	{"a byte in the middle of none", SHARD, "tenant-a", "\x80", LL_ENVELOPE_UTF8, "subject"},
	{"a character longer than need be", SHARD, "tenant-a", "\xC0\xAF", LL_ENVELOPE_UTF8, "subject"},
	{"a longer one", SHARD, "tenant-a", "\xE0\x9F\xBF", LL_ENVELOPE_UTF8, "subject"},
	{"a still longer one", SHARD, "tenant-a", "\xF0\x8F\xBF\xBF", LL_ENVELOPE_UTF8, "subject"},
	{"a surrogate", SHARD, "tenant-a", "\xED\xA0\x80", LL_ENVELOPE_UTF8, "subject"},
	{"above the last character", SHARD, "tenant-a", "\xF4\x90\x80\x80", LL_ENVELOPE_UTF8, "subject"},
	{"a byte that UTF-8 does not have", SHARD, "tenant-a", "\xFF", LL_ENVELOPE_UTF8, "subject"},

	/* units and numbers */
	{"a number without quotes", SHARD, "\"100\"", "100", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"a leading zero", SHARD, "\"100\"", "\"0100\"", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"a sign", SHARD, "\"100\"", "\"+100\"", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"a negative number", SHARD, "\"100\"", "\"-100\"", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"a fraction", SHARD, "\"100\"", "\"100.0\"", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"an exponent", SHARD, "\"100\"", "\"1e2\"", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"no digits", SHARD, "\"100\"", "\"\"", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"a space in a number", SHARD, "\"100\"", "\"100 \"", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"an escape for a digit", SHARD, "\"100\"", "\"\\u003100\"", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"no units", SHARD, "\"100\"", "\"0\"", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"one unit", SHARD, "\"100\"", "\"1\"", LL_ENVELOPE_NONE},
	{"the most units", SHARD, "\"100\"", "\"9223372036854775807\"", LL_ENVELOPE_NONE},
	{"a unit more", SHARD, "\"100\"", "\"9223372036854775808\"", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"ten times the most", SHARD, "\"100\"", "\"92233720368547758070\"", LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"fence 0", SHARD, "\"3\"", "\"0\"", LL_ENVELOPE_NUMBER, "fence"},
	{"no time to hold", SHARD, "\"holdTtl\":\"30000000\"", "\"holdTtl\":\"0\"", LL_ENVELOPE_NUMBER, "holdTtl"},
	{"a microsecond to hold", SHARD, "\"30000000\"", "\"1\"", LL_ENVELOPE_NONE},
	{"a duration as an interval", SHARD, "\"30000000\"", "\"00:00:30\"", LL_ENVELOPE_NUMBER, "holdTtl"},
	{"a duration without quotes", SHARD, "\"30000000\"", "30000000", LL_ENVELOPE_NUMBER, "holdTtl"},
	{"a duration below zero", SHARD, "\"600000000\"", "\"-1\"", LL_ENVELOPE_NUMBER, "executionTtl"},
	{"a duration beyond all", SHARD, "\"600000000\"", "\"9223372036854775808\"", LL_ENVELOPE_NUMBER, "executionTtl"},
	{"no units to an execution", SHARD, "\"5000\"", "\"0\"", LL_ENVELOPE_NUMBER, "hardExecutionLimit"},
	{"no units to a reservation", SHARD, "\"40\"", "\"0\"", LL_ENVELOPE_NUMBER, "largestReservation"},
	{"no limit of an execution", SHARD, "\"hardExecutionLimit\":\"5000\",", "", LL_ENVELOPE_MEMBER_MISSING, "hardExecutionLimit"},
	{"no time of an execution", SHARD, "\"executionTtl\":\"600000000\",", "", LL_ENVELOPE_MEMBER_MISSING, "executionTtl"},
	{"no time of a hold", SHARD, "\"holdTtl\":\"30000000\",", "", LL_ENVELOPE_MEMBER_MISSING, "holdTtl"},
	{"no largest reservation", SHARD, "\"largestReservation\":\"40\",", "", LL_ENVELOPE_MEMBER_MISSING, "largestReservation"},
	{"the document as it was before these four", SHARD, "\"executionTtl\":\"600000000\",\"expiresAt\":\"2026-07-19T14:30:00.250000Z\","
	"\"fence\":\"3\",\"gateway\":\"gw-eu-1\",\"hardExecutionLimit\":\"5000\",\"holdTtl\":\"30000000\",",
	"\"expiresAt\":\"2026-07-19T14:30:00.250000Z\",\"fence\":\"3\",\"gateway\":\"gw-eu-1\",", LL_ENVELOPE_MEMBER_MISSING, "executionTtl"},
	{"generation 0", SHARD, "\"12\"", "\"0\"", LL_ENVELOPE_NUMBER, "policyGeneration"},
	{"sequence 0", REPORT, "\"sequence\":\"2\"", "\"sequence\":\"0\"", LL_ENVELOPE_NUMBER, "sequence"},
	{"00", REPORT, "\"localAvailable\":\"0\"", "\"localAvailable\":\"00\"", LL_ENVELOPE_NUMBER, "localAvailable"},
	{"-0", REPORT, "\"localAvailable\":\"0\"", "\"localAvailable\":\"-0\"", LL_ENVELOPE_NUMBER, "localAvailable"},
	{"null for units", REPORT, "\"localExcess\":\"10\"", "\"localExcess\":null", LL_ENVELOPE_NUMBER, "localExcess"},

	/* instants */
	{"no fraction", SHARD, "14:30:00.250000Z", "14:30:00Z", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"a shorter fraction", SHARD, "14:30:00.250000Z", "14:30:00.250Z", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"a longer fraction", SHARD, "14:30:00.250000Z", "14:30:00.2500000Z", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"an offset", SHARD, "14:30:00.250000Z", "14:30:00.250000+00:00", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"a small z", SHARD, "14:30:00.250000Z", "14:30:00.250000z", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"a small t", SHARD, "19T14:30", "19t14:30", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"a blank between", SHARD, "19T14:30", "19 14:30", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"month 0", SHARD, "2026-07-19T14:30", "2026-00-19T14:30", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"month 13", SHARD, "2026-07-19T14:30", "2026-13-19T14:30", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"day 0", SHARD, "2026-07-19T14:30", "2026-07-00T14:30", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"day 31 of a month of 30", SHARD, "2026-07-19T14:30", "2026-09-31T14:30", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"February 29", SHARD, "2026-07-19T14:30", "2027-02-29T14:30", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"February 29 of 2100", SHARD, "2026-07-19T14:30", "2100-02-29T14:30", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"February 29 of a leap year", SHARD, "2026-07-19T14:30", "2028-02-29T14:30", LL_ENVELOPE_NONE},
	{"hour 24", SHARD, "T14:30:00.25", "T24:00:00.25", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"minute 60", SHARD, "T14:30:00.25", "T14:60:00.25", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"a leap second", SHARD, "T14:30:00.25", "T23:59:60.25", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"year 0", SHARD, "{\"accountingEpoch\":\"2026", "{\"accountingEpoch\":\"0000", LL_ENVELOPE_INSTANT, "accountingEpoch"},
	{"year 1", SHARD, "{\"accountingEpoch\":\"2026", "{\"accountingEpoch\":\"0001", LL_ENVELOPE_NONE},
	{"a number for an instant", SHARD, "\"2026-07-19T14:30:00.250000Z\"", "1784471400", LL_ENVELOPE_INSTANT, "expiresAt"},
	{"it expires as it is issued", SHARD, "14:30:00.250000Z", "14:00:00.000000Z", LL_ENVELOPE_LIFE, "expiresAt"},
	{"it expires before it is issued", SHARD, "14:30:00.250000Z", "13:30:00.000000Z", LL_ENVELOPE_LIFE, "expiresAt"},
	{"it lives a microsecond", SHARD, "14:30:00.250000Z", "14:00:00.000001Z", LL_ENVELOPE_NONE},

	/* boot epochs */
	{"capitals in a UUID", SHARD, "6f1c2b9a", "6F1C2B9A", LL_ENVELOPE_BOOT, "bootEpoch"},
	{"a UUID without hyphens", SHARD, "6f1c2b9a-0d47-", "6f1c2b9a0d47", LL_ENVELOPE_BOOT, "bootEpoch"},
	{"a UUID in braces", SHARD, "\"6f1c2b9a", "\"{6f1c2b9a", LL_ENVELOPE_BOOT, "bootEpoch"},
	{"a UUID that is too short", SHARD, "c4d5\"", "c4\"", LL_ENVELOPE_BOOT, "bootEpoch"},
	{"a UUID that is too long", SHARD, "c4d5\"", "c4d500\"", LL_ENVELOPE_BOOT, "bootEpoch"},
	{"no hexadecimal digit", SHARD, "6f1c2b9a", "6f1c2b9g", LL_ENVELOPE_BOOT, "bootEpoch"},

	/* the flag */
	{"a flag as a text", REPORT, "\"sealed\":true", "\"sealed\":\"true\"", LL_ENVELOPE_FLAG, "sealed"},
	{"a flag as a number", REPORT, "\"sealed\":true", "\"sealed\":1", LL_ENVELOPE_FLAG, "sealed"},
	{"a flag in capitals", REPORT, "\"sealed\":true", "\"sealed\":True", LL_ENVELOPE_FLAG, "sealed"},
	{"a longer word", REPORT, "\"sealed\":true", "\"sealed\":trueish", LL_ENVELOPE_SYNTAX},
	{"the other flag", REPORT, "\"sealed\":true", "\"sealed\":false", LL_ENVELOPE_NONE},

	/* receipts */
	{"null for receipts", REPORT, "\"receipts\":[", "\"receipts\":null,[", LL_ENVELOPE_SYNTAX, "receipts"},
	{"a comma at the end of receipts", REPORT, "\"EXPIRED\"}]", "\"EXPIRED\"},]", LL_ENVELOPE_SYNTAX, "receipts"},
	{"receipts without an end", REPORT, "\"EXPIRED\"}]", "\"EXPIRED\"}", LL_ENVELOPE_SYNTAX, "receipts"},
	{"a text for a receipt", REPORT, FIRST, "\"r-1\"", LL_ENVELOPE_SYNTAX, "receipts"},
	{"a receipt twice", REPORT, FIRST, FIRST "," FIRST, LL_ENVELOPE_ORDER, "reservation"},
	{"receipts that do not ascend", REPORT, "\"r-2\"", "\"r-0\"", LL_ENVELOPE_ORDER, "reservation"},
	{"in the order of bytes, not of letters", REPORT, "\"r-1\"", "\"R-1\"", LL_ENVELOPE_NONE},
	{"a byte above the letters comes last", REPORT, "\"r-4\"", "\"\xC3\xA4\"", LL_ENVELOPE_NONE},
	{"a receipt lacks its state", REPORT, ",\"state\":\"SETTLED\"", "", LL_ENVELOPE_MEMBER_MISSING, "state"},
	{"a receipt lacks its units", REPORT, "\"reservedUnits\":\"40\",", "", LL_ENVELOPE_MEMBER_MISSING, "reservedUnits"},
	{"a receipt has a member twice", REPORT, "{\"actualUnits\":\"25\"", "{\"actualUnits\":\"25\",\"actualUnits\":\"0\"",
	LL_ENVELOPE_MEMBER_TWICE, "actualUnits"},
	{"a receipt has a member too many", REPORT, "\"SETTLED\"}", "\"SETTLED\",\"subject\":\"b\"}",
	LL_ENVELOPE_MEMBER_UNKNOWN, NULL},
	{"a state that is not final", REPORT, "\"SETTLED\"", "\"STARTED\"", LL_ENVELOPE_STATE, "state"},
	{"unknown usage is no receipt", REPORT, "\"SETTLED\"", "\"USAGE_UNKNOWN\"", LL_ENVELOPE_STATE, "state"},
	{"a state that is none", REPORT, "\"SETTLED\"", "\"SETTLEMENT\"", LL_ENVELOPE_STATE, "state"},
	{"a state in small letters", REPORT, "\"SETTLED\"", "\"settled\"", LL_ENVELOPE_STATE, "state"},
	{"null for a state", REPORT, "\"SETTLED\"", "null", LL_ENVELOPE_STATE, "state"},
	{"settled without its usage", REPORT, "\"25\",\"operationId\"", "null,\"operationId\"", LL_ENVELOPE_FIGURES, "state"},
	{"settled without its operation", REPORT, "\"op-1\"", "null", LL_ENVELOPE_FIGURES, "state"},
	{"released with usage", REPORT, "{\"actualUnits\":null", "{\"actualUnits\":\"0\"", LL_ENVELOPE_FIGURES, "state"},
	{"released by an operation", REPORT, "\"operationId\":null", "\"operationId\":\"op\"", LL_ENVELOPE_FIGURES, "state"},
	{"an empty operation", REPORT, "\"op-1\"", "\"\"", LL_ENVELOPE_TEXT, "operationId"},
	{"settled at zero", REPORT, "{\"actualUnits\":\"25\"", "{\"actualUnits\":\"0\"", LL_ENVELOPE_NONE},
	{"no receipts", REPORT, "\"receipts\":[" FIRST ",", "\"receipts\":[", LL_ENVELOPE_NONE},
	{"sums that do not add up are for the ledger to judge", REPORT, "\"localSpent\":\"55\"", "\"localSpent\":\"56\"",
	LL_ENVELOPE_NONE},
};

/* change replaces the first `gone` of the known payload; to be freed. */
static char *
change(Type type, const char *gone, const char *come)
{
	const char *known_payload = type == SHARD ? SHARD_PAYLOAD : REPORT_PAYLOAD;
	const char *at = strstr(known_payload, gone);
	char	   *changed = malloc(strlen(known_payload) + strlen(come) + 1);

	if (at == NULL)
		abort();
	sprintf(changed, "%.*s%s%s", (int) (at - known_payload), known_payload, come, at + strlen(gone));
	return changed;
}

static void
refused_payloads(void)
{
	for (int i = 0; i < LENGTH(payloads); i++)
	{
		Type		type = payloads[i].type;
		LLSecretKey key = signing_key(type);
		char	   *payload = change(type, payloads[i].gone, payloads[i].come);
		char	   *envelope = sign_any(type == SHARD ? SHARD_HEADER : REPORT_HEADER, span(payload), &key);
		LLFault		fault = open_any(type, span(envelope), trusted(type));

		if (!ok(fault.error == payloads[i].error &&
				strcmp(fault.member ? fault.member : "", payloads[i].member ? payloads[i].member : "") == 0,
				"%s: %s", type_names[type], payloads[i].name))
			note("%s in %s", ll_envelope_error_name(fault.error), fault.member ? fault.member : "no member");
		free(payload);
		free(envelope);
	}
}

/* A report may have no receipts at all, and not 1001. */
static void
receipts_counted(void)
{
	LLSecretKey key = signing_key(REPORT);
	size_t		size = strlen(REPORT_PAYLOAD) + 1001 * (strlen(FIRST) + 8);

	for (int count = 0; count <= 1001; count += count == 0 ? 1000 : 1)
	{
		char	   *payload = malloc(size);
		char	   *envelope;
		int			at = sprintf(payload, "%.*s", (int) (strstr(REPORT_PAYLOAD, FIRST) - REPORT_PAYLOAD), REPORT_PAYLOAD);
		LLFault		fault;

		for (int i = 0; i < count; i++)
			at += sprintf(payload + at, "%s{\"actualUnits\":\"25\",\"operationId\":\"op-1\",\"reservation\":\"r-%05d\","
						  "\"reservedUnits\":\"40\",\"state\":\"SETTLED\"}", i > 0 ? "," : "", i);
		sprintf(payload + at, "%s", strstr(REPORT_PAYLOAD, "],\"schema\""));
		envelope = sign_any(REPORT_HEADER, span(payload), &key);
		fault = open_any(REPORT, span(envelope), trusted(REPORT));
		ok(fault.error == (count > 1000 ? LL_ENVELOPE_COUNT : LL_ENVELOPE_NONE), "%d receipts: %s", count,
		   fault.error == LL_ENVELOPE_NONE ? "open" : ll_envelope_error_name(fault.error));
		free(payload);
		free(envelope);
	}
}

/* ---- Refused: to be sealed --------------------------------------------------- */

/* spoil makes one fault in a sound document; the rows below say which it is. */
static void
spoil(int row, LLShardDocument *shard, LLReportDocument *report, LLSecretKey *key)
{
	switch (row)
	{
		case 0:
			shard->subject[0] = '\0';
			break;
		case 1:
			memset(shard->route, 'x', sizeof(shard->route));	/* and no NUL */
			break;
		case 2:
			strcpy(shard->gateway, "\xFF");
			break;
		case 3:
			shard->allocated = 0;
			break;
		case 4:
			shard->fence = INT64_MIN;
			break;
		case 5:
			shard->accounting_epoch = INT64_MAX;
			break;
		case 6:
			shard->accounting_epoch = INT64_MIN;
			break;
		case 7:
			shard->expires_at = shard->issued_at;
			break;
		case 8:
			strcpy(key->kid, "a\"b");
			break;
		case 9:
			report->local_spent = -1;
			break;
		case 10:
			report->receipts[0].state = LL_USAGE_UNKNOWN;
			break;
		case 11:
			report->receipts[0].state = (LLState) 99;
			break;
		case 12:
			report->receipts[0].actual_units = LL_NO_UNITS;
			break;
		case 13:
			report->receipts[1] = report->receipts[0];
			break;
		case 14:
			report->receipt_count = -1;
			break;
		case 15:
			report->receipts[0].reserved_units = INT64_MIN;
			break;
		case 16:
			shard->hold_ttl = 0;
			break;
		case 17:
			shard->execution_ttl = -1;
			break;
		case 18:
			shard->hard_execution_limit = 0;
			break;
		case 19:
			shard->largest_reservation = INT64_MIN;
			break;
	}
}

static const struct
{
	const char *name;
	Type		type;
	LLEnvelopeError error;
	const char *member;
}			spoilt[] = {
	{"an empty text", SHARD, LL_ENVELOPE_TEXT, "subject"},
	{"a text without its end", SHARD, LL_ENVELOPE_TEXT, "route"},
	{"no UTF-8", SHARD, LL_ENVELOPE_UTF8, "gateway"},
	{"no units", SHARD, LL_ENVELOPE_NUMBER, "allocatedUnits"},
	{"a negative fence", SHARD, LL_ENVELOPE_NUMBER, "fence"},
	{"an instant beyond the years", SHARD, LL_ENVELOPE_INSTANT, "accountingEpoch"},
	{"an instant before the years", SHARD, LL_ENVELOPE_INSTANT, "accountingEpoch"},
	{"expired at once", SHARD, LL_ENVELOPE_LIFE, "expiresAt"},
	{"a key id that would end its string", SHARD, LL_ENVELOPE_KID, NULL},
	{"negative units", REPORT, LL_ENVELOPE_NUMBER, "localSpent"},
	{"usage that is unknown", REPORT, LL_ENVELOPE_STATE, "state"},
	{"a state that is none", REPORT, LL_ENVELOPE_STATE, "state"},
	{"settled without its usage", REPORT, LL_ENVELOPE_FIGURES, "state"},
	{"a reservation twice", REPORT, LL_ENVELOPE_ORDER, "reservation"},
	{"fewer than no receipts", REPORT, LL_ENVELOPE_COUNT, "receipts"},
	{"a receipt of negative units", REPORT, LL_ENVELOPE_NUMBER, "reservedUnits"},
	{"no time to hold", SHARD, LL_ENVELOPE_NUMBER, "holdTtl"},
	{"less than no time to execute", SHARD, LL_ENVELOPE_NUMBER, "executionTtl"},
	{"no units to an execution", SHARD, LL_ENVELOPE_NUMBER, "hardExecutionLimit"},
	{"negative units to a reservation", SHARD, LL_ENVELOPE_NUMBER, "largestReservation"},
};

static void
refused_to_seal(void)
{
	static char bytes[LL_SHARD_ENVELOPE_MAX + 1];
	static char more[LL_SHARD_ENVELOPE_MAX];

	for (int i = 0; i < LENGTH(spoilt); i++)
	{
		LLBuffer	out = {bytes, sizeof(bytes), 0};
		LLBuffer	scratch = {more, sizeof(more), 0};
		LLSecretKey key = signing_key(spoilt[i].type);
		LLShardDocument shard = a_shard;
		LLReportDocument report = a_report;
		LLReportReceipt receipts[4];
		LLFault		fault;

		memcpy(receipts, some_receipts, sizeof(receipts));
		report.receipts = receipts;
		spoil(i, &shard, &report, &key);
		memset(bytes, 0, sizeof(bytes));
		fault = spoilt[i].type == SHARD ? ll_shard_seal(&shard, &key, &out)
			: ll_report_seal(&report, &key, &scratch, &out);
		if (!ok(fault.error == spoilt[i].error && bytes[0] == '\0' && out.length == 0 &&
				strcmp(fault.member ? fault.member : "", spoilt[i].member ? spoilt[i].member : "") == 0,
				"not sealed: %s", spoilt[i].name))
			note("%s in %s", ll_envelope_error_name(fault.error), fault.member ? fault.member : "no member");
	}
}

/* Each buffer that is too small is said to be, and nothing is written behind it. */
static void
rooms(void)
{
	char	   *shard = the_envelope(SHARD);
	char	   *report = the_envelope(REPORT);
	LLSecretKey centre = signing_key(SHARD);
	LLSecretKey gateway = signing_key(REPORT);
	size_t		need = strlen(shard) + 1;
	int			wrong = 0;

	for (size_t size = 0; size <= need; size++)
	{
		LLBuffer	out = {malloc(size + 1), size, 0};
		LLFault		fault = ll_shard_seal(&a_shard, &centre, &out);

		wrong += fault.error != (size < need ? LL_ENVELOPE_ROOM : LL_ENVELOPE_NONE);
		free(out.data);
	}
	ok(wrong == 0, "no buffer for an envelope is passed");

	wrong = 0;
	for (size_t size = 0; size <= strlen(REPORT_PAYLOAD); size++)
	{
		char		bytes[4096];
		LLBuffer	out = {bytes, sizeof(bytes), 0};
		LLBuffer	scratch = {malloc(size + 1), size, 0};
		LLReportDocument read = {.receipts = NULL};
		int			signer;

		wrong += ll_report_seal(&a_report, &gateway, &scratch, &out).error !=
			(size < strlen(REPORT_PAYLOAD) ? LL_ENVELOPE_ROOM : LL_ENVELOPE_NONE);
		wrong += ll_report_open(span(report), trusted(REPORT), &scratch, &read, &signer).error != LL_ENVELOPE_ROOM
			&& size < strlen(REPORT_PAYLOAD);
		free(scratch.data);
	}
	ok(wrong == 0, "no scratch for a payload is passed");
	free(shard);
	free(report);
}

/* The words are a closed list: each there, none twice. */
static void
words(void)
{
	int			same = 0;

	for (int i = 0; i < LL_ENVELOPE_ERROR_COUNT; i++)
		for (int j = 0; j < i; j++)
			same += strcmp(ll_envelope_error_name((LLEnvelopeError) i), ll_envelope_error_name((LLEnvelopeError) j)) == 0 ||
				strcmp(ll_envelope_error_meaning((LLEnvelopeError) i), ll_envelope_error_meaning((LLEnvelopeError) j)) == 0;
	ok(same == 0 && LL_ENVELOPE_ERROR_COUNT == 28, "28 words, no two of them the same");
}

int
main(void)
{
	rfc_8037();
	known();
	texts();
	known_instants();
	calendar();
	largest_shard();
	largest_report();
	refused_headers();
	refused_forms();
	one_signature();
	malleable();
	refused_keys();
	refused_encodings();
	refused_payloads();
	receipts_counted();
	refused_to_seal();
	rooms();
	words();
	return done_testing();
}
