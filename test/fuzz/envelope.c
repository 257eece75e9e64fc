/*
 * What any bytes may do to src/envelope: be refused, or be the one form of
 * what they say.  `make fuzz` runs it under libFuzzer and the sanitizers;
 * test/unit/envelope_fuzz.c runs it for a moment in each `make check`.
 *
 * A broken promise ends the program, so that the fuzzer keeps the bytes.
 */
#include "seeds.h"

#include "envelope/base64.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* How many inputs were more than refused, for whoever asks. */
static long fuzz_accepted;

static void
promise(bool kept)
{
	if (!kept)
		abort();
}

static bool
equal(LLSpan a, LLSpan b)
{
	return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

/* open_signed opens bytes that their key has signed: as they were read, or too long. */
static void
open_signed(Type type, LLSpan payload, LLFault read)
{
	LLSecretKey key = signing_key(type);
	char	   *envelope = sign_any(type == SHARD ? SHARD_HEADER : REPORT_HEADER, payload, &key);
	LLFault		opened = open_any(type, span(envelope), trusted(type));

	free(envelope);
	promise(opened.error == read.error || opened.error == LL_ENVELOPE_LENGTH);
}

/* read_payload reads bytes as a document.  What is accepted is written again as the same bytes. */
static void
read_payload(Type type, LLSpan payload)
{
	static LLReportReceipt receipts[LL_RECEIPTS_MAX];
	static char more[1 << 16];
	LLShardDocument shard;
	LLReportDocument report = {.receipts = receipts, .receipt_size = LL_RECEIPTS_MAX};
	LLBuffer	again = {more, sizeof(more), 0};
	LLFault		fault = type == SHARD ? ll_shard_read(payload, &shard) : ll_report_read(payload, &report);

	/* signing is slow: what was refused is signed now and then */
	if (fault.error == LL_ENVELOPE_NONE || payload.length % 16 == 0)
		open_signed(type, payload, fault);
	if (fault.error != LL_ENVELOPE_NONE)
		return;
	fuzz_accepted++;
	fault = type == SHARD ? ll_shard_write(&shard, &again) : ll_report_write(&report, &again);
	promise(fault.error == LL_ENVELOPE_NONE && equal((LLSpan) {more, again.length}, payload));
}

/* sign_header puts a header in front of the known payload: only the known one opens. */
static void
sign_header(LLSpan header)
{
	LLSecretKey key = signing_key(SHARD);
	char	   *text = calloc(1, header.length + 1);
	char	   *envelope;
	LLFault		fault;

	memcpy(text, header.data, header.length);
	envelope = sign_any(text, span(SHARD_PAYLOAD), &key);
	fault = open_any(SHARD, span(envelope), trusted(SHARD));
	promise((fault.error == LL_ENVELOPE_NONE) == (strcmp(text, SHARD_HEADER) == 0));
	promise(fault.error == LL_ENVELOPE_NONE || fault.error == LL_ENVELOPE_HEADER ||
			fault.error == LL_ENVELOPE_SIGNATURE);	/* the id of a trusted key that did not sign */
	fuzz_accepted += fault.error == LL_ENVELOPE_NONE;
	free(envelope);
	free(text);
}

static void
read_key(LLSpan line)
{
	LLPublicKey key;
	char		again[LL_KEY_LINE_MAX + 1];

	if (ll_public_key_read(line, &key) != LL_KEY_NONE)
		return;
	fuzz_accepted++;
	promise(ll_public_key_write(&key, again) == LL_KEY_NONE && equal(span(again), line));
}

static void
read_base64(LLSpan text)
{
	char	   *bytes = malloc(text.length + 1);
	char	   *again = malloc(text.length * 2 + 8);
	size_t		length;

	if (ll_base64_read(text, bytes, text.length, &length))
	{
		fuzz_accepted++;
		ll_base64_write(again, bytes, length);
		promise(equal(span(again), text));
	}
	free(bytes);
	free(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	   *exact;
	LLSpan		bytes;

	if (size == 0)
		return 0;
	exact = malloc(size);		/* ends where the bytes end, whoever calls */
	memcpy(exact, data + 1, size - 1);
	bytes = (LLSpan) {exact, size - 1};
	switch ((Aim) (data[0] % AIM_COUNT))
	{
		case AIM_OPEN_SHARD:
			fuzz_accepted += open_any(SHARD, bytes, trusted(SHARD)).error == LL_ENVELOPE_NONE;
			break;
		case AIM_OPEN_REPORT:
			fuzz_accepted += open_any(REPORT, bytes, trusted(REPORT)).error == LL_ENVELOPE_NONE;
			break;
		case AIM_READ_SHARD:
			read_payload(SHARD, bytes);
			break;
		case AIM_READ_REPORT:
			read_payload(REPORT, bytes);
			break;
		case AIM_HEADER:
			sign_header(bytes);
			break;
		case AIM_KEY:
			read_key(bytes);
			break;
		case AIM_BASE64:
			read_base64(bytes);
			break;
	}
	free(exact);
	return 0;
}
