/*
 * jws.h
 *	  The outer form of an envelope: JWS compact, EdDSA, one header per key.
 */
#ifndef LL_ENVELOPE_JWS_H
#define LL_ENVELOPE_JWS_H

#include "envelope.h"

#define LL_SIGNATURE_TEXT	LL_BASE64_LENGTH(LL_SIGNATURE_BYTES)

/* ll_jws_sign writes the third part for the two parts before it, with a NUL. */
extern void ll_jws_sign(LLSpan input, const LLSecretKey *key,
						char text[LL_SIGNATURE_TEXT + 1]);

extern LLEnvelopeError ll_jws_seal(const char *type, LLSpan payload,
								   const LLSecretKey *key, LLBuffer *out);
extern LLEnvelopeError ll_jws_open(const char *type, LLSpan envelope, LLTrust trust,
								   LLBuffer *payload, int *signer);

#endif							/* LL_ENVELOPE_JWS_H */
