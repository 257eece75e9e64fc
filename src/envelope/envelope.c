/*
 * envelope.c
 *	  Documents into envelopes and back: length, form, signature, payload, in
 *	  this order (G3).
 *
 * Before it is signed, a payload is read as its receiver will read it: what is
 * wrong with a document shows here, and no key ever signs what does not open.
 */
#include "envelope.h"

#include "jws.h"
#include "payload.h"

static const char *const words[LL_ENVELOPE_ERROR_COUNT] = {
#define X(name, word, meaning) word,
	LL_ENVELOPE_ERROR_LIST(X)
#undef X
};

static const char *const meanings[LL_ENVELOPE_ERROR_COUNT] = {
#define X(name, word, meaning) meaning,
	LL_ENVELOPE_ERROR_LIST(X)
#undef X
};

/* ll_envelope_error_name gives the word of an error, empty for none. */
const char *
ll_envelope_error_name(LLEnvelopeError error)
{
	return words[error];
}

/* ll_envelope_error_meaning says what the word means. */
const char *
ll_envelope_error_meaning(LLEnvelopeError error)
{
	return meanings[error];
}

static LLSpan
written(const LLBuffer *buffer)
{
	return (LLSpan) {buffer->data, buffer->length};
}

static LLFault
fault_of(LLEnvelopeError error)
{
	return (LLFault) {error, NULL};
}

/* ll_shard_seal writes, judges and signs an emergencyShard.v1. */
LLFault
ll_shard_seal(const LLShardDocument *shard, const LLSecretKey *key, LLBuffer *out)
{
	char		bytes[LL_SHARD_PAYLOAD_MAX];
	LLBuffer	payload = {bytes, sizeof(bytes), 0};
	LLShardDocument again;
	LLFault		fault = ll_shard_write(shard, &payload);

	if (fault.error == LL_ENVELOPE_NONE)
		fault = ll_shard_read(written(&payload), &again);
	if (fault.error == LL_ENVELOPE_NONE)
		fault = fault_of(ll_jws_seal(LL_SHARD_TYPE, written(&payload), key, out));
	return fault;
}

/* ll_report_seal writes, judges and signs a shardReport.v1. */
LLFault
ll_report_seal(const LLReportDocument *report, const LLSecretKey *key,
			   LLBuffer *scratch, LLBuffer *out)
{
	LLReportDocument again = {.receipts = NULL};
	LLFault		fault = ll_report_write(report, scratch);

	if (fault.error == LL_ENVELOPE_NONE)
		fault = ll_report_read(written(scratch), &again);
	if (fault.error == LL_ENVELOPE_NONE)
		fault = fault_of(ll_jws_seal(LL_REPORT_TYPE, written(scratch), key, out));
	return fault;
}

/* ll_shard_open opens an envelope with an emergencyShard.v1. */
LLFault
ll_shard_open(LLSpan envelope, LLTrust trust, LLShardDocument *shard, int *signer)
{
	char		bytes[LL_SHARD_ENVELOPE_MAX];
	LLBuffer	payload = {bytes, sizeof(bytes), 0};
	LLEnvelopeError error = LL_ENVELOPE_LENGTH;

	*signer = -1;
	if (envelope.length <= LL_SHARD_ENVELOPE_MAX)
		error = ll_jws_open(LL_SHARD_TYPE, envelope, trust, &payload, signer);
	if (error != LL_ENVELOPE_NONE)
		return fault_of(error);
	return ll_shard_read(written(&payload), shard);
}

/* ll_report_open opens an envelope with a shardReport.v1. */
LLFault
ll_report_open(LLSpan envelope, LLTrust trust, LLBuffer *scratch,
			   LLReportDocument *report, int *signer)
{
	LLEnvelopeError error = LL_ENVELOPE_LENGTH;

	*signer = -1;
	if (envelope.length <= LL_REPORT_ENVELOPE_MAX)
		error = ll_jws_open(LL_REPORT_TYPE, envelope, trust, scratch, signer);
	if (error != LL_ENVELOPE_NONE)
		return fault_of(error);
	return ll_report_read(written(scratch), report);
}
