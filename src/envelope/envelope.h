/*
 * envelope.h
 *	  Signed envelopes: emergencyShard.v1 from the ledger to a gateway, and
 *	  shardReport.v1 back (G2, G3, G6).
 *
 * JWS compact (RFC 7515) with EdDSA over Ed25519 (RFC 8037); docs/envelope.md
 * has each byte.  Nothing here knows PostgreSQL, keeps anything or allocates:
 * documents and buffers are the caller's.  Nothing here decides about units or
 * time: whether a shard has expired, whether a report's figures add up (G1) and
 * whether a key is still alive is for those who call.
 *
 * Texts are UTF-8.  LLTime is microseconds since 2000-01-01 00:00:00 UTC.
 */
#ifndef LL_ENVELOPE_ENVELOPE_H
#define LL_ENVELOPE_ENVELOPE_H

#include "core/types.h"
#include "key.h"

#define LL_TEXT_MAX			256	/* bytes of a subject, route or id (A1) */
#define LL_BOOT_BYTES		16
#define LL_RECEIPTS_MAX		1000
#define LL_NO_UNITS			(-1)

#define LL_SHARD_TYPE		"emergencyShard.v1"
#define LL_REPORT_TYPE		"shardReport.v1"

/*
 * The bounds, such that every document fits whose fields are within theirs:
 * a character takes up to six bytes.  A test builds the largest of each.
 */
#define LL_HEADER_MAX			(50 + LL_KID_MAX)
#define LL_SIGNATURE_BYTES		64
#define LL_RECEIPT_MAX			(2 * 6 * LL_TEXT_MAX + 160)
#define LL_SHARD_PAYLOAD_MAX	(4 * 6 * LL_TEXT_MAX + 640)
#define LL_REPORT_PAYLOAD_MAX	(2 * 6 * LL_TEXT_MAX + 512 + LL_RECEIPTS_MAX * LL_RECEIPT_MAX)
#define LL_ENVELOPE_MAX(payload) \
	(LL_BASE64_LENGTH(LL_HEADER_MAX) + 1 + LL_BASE64_LENGTH(payload) + 1 + \
	 LL_BASE64_LENGTH(LL_SIGNATURE_BYTES))
#define LL_SHARD_ENVELOPE_MAX	LL_ENVELOPE_MAX(LL_SHARD_PAYLOAD_MAX)
#define LL_REPORT_ENVELOPE_MAX	LL_ENVELOPE_MAX(LL_REPORT_PAYLOAD_MAX)

/* Where something is written: `size` bytes, of which `length` are taken. */
typedef struct LLBuffer
{
	char	   *data;
	size_t		size;
	size_t		length;
} LLBuffer;

/* The keys that may have signed; no two of them have one id. */
typedef struct LLTrust
{
	const LLPublicKey *keys;
	int			count;
} LLTrust;

typedef char LLText[LL_TEXT_MAX + 1];	/* NUL-terminated, never empty */

/* One emergencyShard.v1.  The last four are the policy's: a gateway has none (G4). */
typedef struct LLShardDocument
{
	LLText		shard;
	LLText		subject;
	LLText		route;
	int64_t		policy_generation;
	LLTime		accounting_epoch;
	LLUnits		allocated;
	LLText		gateway;
	unsigned char boot_epoch[LL_BOOT_BYTES];
	int64_t		fence;
	LLTime		issued_at;
	LLTime		expires_at;
	LLTime		hold_ttl;		/* microseconds */
	LLTime		execution_ttl;
	LLUnits		hard_execution_limit;
	LLUnits		largest_reservation;
} LLShardDocument;

/* How one reservation of a shard ended. */
typedef struct LLReportReceipt
{
	LLText		reservation;
	LLText		operation;		/* settled states only, else empty */
	LLState		state;			/* a final one */
	LLUnits		reserved_units;
	LLUnits		actual_units;	/* settled states only, else LL_NO_UNITS */
} LLReportReceipt;

/* One shardReport.v1.  Its receipts ascend bytewise by reservation, each once. */
typedef struct LLReportDocument
{
	LLText		shard;
	LLText		gateway;
	unsigned char boot_epoch[LL_BOOT_BYTES];
	int64_t		fence;
	int64_t		sequence;
	bool		sealed;
	LLUnits		allocated;
	LLUnits		local_available;
	LLUnits		local_reserved;
	LLUnits		local_spent;
	LLUnits		local_retired;
	LLUnits		local_excess;
	LLReportReceipt *receipts;	/* the caller's array */
	int			receipt_size;	/* and how many it can take */
	int			receipt_count;
} LLReportDocument;

/* The closed list of what may be wrong with an envelope: name, word, meaning. */
#define LL_ENVELOPE_ERROR_LIST(X) \
	X(NONE, "", "the envelope is sound") \
	/* before anything of the payload is looked at, in this order */ \
	X(LENGTH, "length", "longer than an envelope of its type can be") \
	X(PARTS, "parts", "not three parts with a dot between each two") \
	X(HEADER, "header", "the header is not, byte for byte, the one that a trusted key has for this type") \
	X(SIGNATURE_FORM, "signature_form", "the signature is not 64 bytes in strict base64url") \
	X(SIGNATURE, "signature", "the signature does not verify with the key that the header names") \
	X(PAYLOAD_FORM, "payload_form", "the payload is not strict base64url") \
	/* in the payload, signed as it is */ \
	X(SYNTAX, "syntax", "not the JSON that stands here in the canonical form") \
	X(MEMBER_UNKNOWN, "member_unknown", "a member that the type does not have") \
	X(MEMBER_TWICE, "member_twice", "a member for the second time") \
	X(MEMBER_MISSING, "member_missing", "a member is not there, or not in its place") \
	X(TRAILING, "trailing", "something follows the document") \
	X(SCHEMA, "schema", "the document is of another type than the header says") \
	X(TEXT, "text", "not a string of 1 to 256 bytes") \
	X(CHARACTER, "character", "a character of a string is not written in its one canonical way") \
	X(UTF8, "utf8", "a string is not UTF-8") \
	X(NUMBER, "number", "not a whole number in its range, as a string of its decimal digits") \
	X(INSTANT, "instant", "not an instant in UTC with six decimals of the second") \
	X(BOOT, "boot", "not a UUID in lower case") \
	X(FLAG, "flag", "neither true nor false") \
	X(LIFE, "life", "the expiry is not after the issue") \
	X(STATE, "state", "not the final state of a reservation") \
	X(FIGURES, "figures", "units or operation where the state has none, or none where it has") \
	X(ORDER, "order", "receipts that do not ascend by reservation, each once") \
	X(COUNT, "count", "more than 1000 receipts") \
	/* of the caller */ \
	X(ROOM, "room", "the caller's buffer is too small") \
	X(KID, "kid", "the key id is not 1 to 64 of the characters A-Z a-z 0-9 . _ -") \
	X(LIBRARY, "library", "libsodium can't be initialised")

typedef enum LLEnvelopeError
{
#define X(name, word, meaning) LL_ENVELOPE_##name,
	LL_ENVELOPE_ERROR_LIST(X)
#undef X
} LLEnvelopeError;
#define LL_ENVELOPE_ERROR_COUNT	(LL_ENVELOPE_LIBRARY + 1)

/* What is wrong, and in which member of the payload, if it is in a known one. */
typedef struct LLFault
{
	LLEnvelopeError error;
	const char *member;
} LLFault;

extern const char *ll_envelope_error_name(LLEnvelopeError error);
extern const char *ll_envelope_error_meaning(LLEnvelopeError error);

/*
 * Sealing writes an envelope, NUL-terminated; a buffer of ..._ENVELOPE_MAX + 1
 * is enough for any.  A document that would not open is not signed.  `scratch`
 * holds the payload meanwhile: LL_REPORT_PAYLOAD_MAX is enough.
 */
extern LLFault ll_shard_seal(const LLShardDocument *shard, const LLSecretKey *key,
							 LLBuffer *out);
extern LLFault ll_report_seal(const LLReportDocument *report, const LLSecretKey *key,
							  LLBuffer *scratch, LLBuffer *out);

/*
 * Opening fills the document, or says what is wrong and leaves it undefined.
 * `signer` becomes the place in the trust list of the key that has signed.
 * `scratch` of the envelope's length is enough.
 */
extern LLFault ll_shard_open(LLSpan envelope, LLTrust trust,
							 LLShardDocument *shard, int *signer);
extern LLFault ll_report_open(LLSpan envelope, LLTrust trust, LLBuffer *scratch,
							  LLReportDocument *report, int *signer);

#endif							/* LL_ENVELOPE_ENVELOPE_H */
