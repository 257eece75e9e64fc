/*
 * jws.c
 *	  Sealing and opening the outer form (G3).
 *
 * The header is never parsed.  For each trusted key there is one header that
 * an envelope of this type may have; the received one equals it, byte for
 * byte, or there is no envelope.  So no sender chooses an algorithm or a key
 * form.  The payload is not touched before the signature over the received
 * bytes was verified.
 */
#include "jws.h"

#include <string.h>

#include <sodium.h>

#include "base64.h"

#define HEADER_TEXT_SIZE	(LL_BASE64_LENGTH(LL_HEADER_MAX) + 1)

/* The three parts of an envelope, and what is signed: the first two as they are. */
typedef struct Parts
{
	LLSpan		header;
	LLSpan		payload;
	LLSpan		signature;
	LLSpan		input;
} Parts;

static size_t
append(char *text, size_t at, const char *more)
{
	size_t		length = strlen(more);

	memcpy(text + at, more, length);
	return at + length;
}

/* write_header writes the one header of a key and type; its length, or 0. */
static size_t
write_header(const char *type, const char *kid, char text[HEADER_TEXT_SIZE])
{
	char		json[LL_HEADER_MAX];
	size_t		length = 0;

	if (!ll_kid_valid(kid))
		return 0;
	length = append(json, length, "{\"alg\":\"EdDSA\",\"kid\":\"");
	length = append(json, length, kid);
	length = append(json, length, "\",\"typ\":\"");
	length = append(json, length, type);
	length = append(json, length, "\"}");
	ll_base64_write(text, json, length);
	return LL_BASE64_LENGTH(length);
}

/* ll_jws_sign signs with Ed25519, which needs no randomness: same bytes, same text. */
void
ll_jws_sign(LLSpan input, const LLSecretKey *key, char text[LL_SIGNATURE_TEXT + 1])
{
	unsigned char signature[LL_SIGNATURE_BYTES];

	crypto_sign_detached(signature, NULL, (const unsigned char *) input.data, input.length,
						 key->bytes);
	ll_base64_write(text, signature, sizeof(signature));
}

/* ll_jws_seal writes an envelope of `type` around a payload. */
LLEnvelopeError
ll_jws_seal(const char *type, LLSpan payload, const LLSecretKey *key, LLBuffer *out)
{
	char		header[HEADER_TEXT_SIZE];
	size_t		first = write_header(type, key->kid, header);
	size_t		second = LL_BASE64_LENGTH(payload.length);
	size_t		signature = first + 1 + second + 1;

	if (sodium_init() < 0)
		return LL_ENVELOPE_LIBRARY;
	if (first == 0)
		return LL_ENVELOPE_KID;
	if (out->size < signature + LL_SIGNATURE_TEXT + 1)
		return LL_ENVELOPE_ROOM;
	memcpy(out->data, header, first);
	out->data[first] = '.';
	ll_base64_write(out->data + first + 1, payload.data, payload.length);
	ll_jws_sign((LLSpan) {out->data, signature - 1}, key, out->data + signature);
	out->data[signature - 1] = '.';
	out->length = signature + LL_SIGNATURE_TEXT;
	return LL_ENVELOPE_NONE;
}

/* split finds the two dots, and no third one. */
static bool
split(LLSpan envelope, Parts *parts)
{
	const char *end = envelope.data + envelope.length;
	const char *one = envelope.length > 0 ? memchr(envelope.data, '.', envelope.length) : NULL;
	const char *two = one != NULL ? memchr(one + 1, '.', (size_t) (end - one - 1)) : NULL;

	if (two == NULL || memchr(two + 1, '.', (size_t) (end - two - 1)) != NULL)
		return false;
	parts->header = (LLSpan) {envelope.data, (size_t) (one - envelope.data)};
	parts->payload = (LLSpan) {one + 1, (size_t) (two - one - 1)};
	parts->signature = (LLSpan) {two + 1, (size_t) (end - two - 1)};
	parts->input = (LLSpan) {envelope.data, (size_t) (two - envelope.data)};
	return true;
}

/* find_key returns the place of the key whose header this is, or -1. */
static int
find_key(const char *type, LLSpan header, LLTrust trust)
{
	char		expected[HEADER_TEXT_SIZE];

	for (int i = 0; i < trust.count; i++)
	{
		size_t		length = write_header(type, trust.keys[i].kid, expected);

		if (length > 0 && header.length == length && memcmp(header.data, expected, length) == 0)
			return i;
	}
	return -1;
}

/* verify tells whether the key has signed the first two parts. */
static LLEnvelopeError
verify(const Parts *parts, const LLPublicKey *key)
{
	unsigned char signature[LL_SIGNATURE_BYTES];
	size_t		length;

	if (!ll_base64_read(parts->signature, signature, sizeof(signature), &length) ||
		length != sizeof(signature))
		return LL_ENVELOPE_SIGNATURE_FORM;
	if (crypto_sign_verify_detached(signature, (const unsigned char *) parts->input.data,
									parts->input.length, key->bytes) != 0)
		return LL_ENVELOPE_SIGNATURE;
	return LL_ENVELOPE_NONE;
}

/* ll_jws_open gives the payload of an envelope of `type` that a trusted key signed. */
LLEnvelopeError
ll_jws_open(const char *type, LLSpan envelope, LLTrust trust, LLBuffer *payload, int *signer)
{
	LLEnvelopeError error;
	Parts		parts;

	if (sodium_init() < 0)
		return LL_ENVELOPE_LIBRARY;
	if (!split(envelope, &parts))
		return LL_ENVELOPE_PARTS;
	*signer = find_key(type, parts.header, trust);
	if (*signer < 0)
		return LL_ENVELOPE_HEADER;
	error = verify(&parts, &trust.keys[*signer]);
	if (error != LL_ENVELOPE_NONE)
		return error;
	if (payload->size < parts.payload.length / 4 * 3 + 2)
		return LL_ENVELOPE_ROOM;
	if (!ll_base64_read(parts.payload, payload->data, payload->size, &payload->length))
		return LL_ENVELOPE_PAYLOAD_FORM;
	return LL_ENVELOPE_NONE;
}
