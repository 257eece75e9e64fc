/*
 * src/envelope on the command line, for 066_envelope.pl: standard input in,
 * standard output out, the word of an error and status 1 if there is one.
 *
 *	  errors					the closed lists: kind, word, meaning
 *	  bounds					the longest envelopes
 *	  public KEYFILE [FOLDER]	the public line of a secret key, not in FOLDER
 *	  seal TYPE KEYFILE			payload in, envelope out
 *	  open TYPE LINE ...		envelope in, payload out; LINEs are trusted
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "envelope/envelope.h"
#include "envelope/payload.h"

static char input[LL_REPORT_ENVELOPE_MAX + 1];
static char output[LL_REPORT_ENVELOPE_MAX + 1];
static char more[LL_REPORT_ENVELOPE_MAX];
static LLReportReceipt receipts[LL_RECEIPTS_MAX];

static int
fail(const char *word, const char *member)
{
	printf("%s%s%s\n", word, member != NULL ? " " : "", member != NULL ? member : "");
	return 1;
}

static int
errors(void)
{
	for (int i = 1; i < LL_ENVELOPE_ERROR_COUNT; i++)
		printf("envelope | %s | %s\n", ll_envelope_error_name((LLEnvelopeError) i),
			   ll_envelope_error_meaning((LLEnvelopeError) i));
	for (int i = 1; i < LL_KEY_ERROR_COUNT; i++)
		printf("key | %s | %s\n", ll_key_error_name((LLKeyError) i), ll_key_error_meaning((LLKeyError) i));
	return 0;
}

static int
bounds(void)
{
	printf("%s | %d\n%s | %d\n", LL_SHARD_TYPE, LL_SHARD_ENVELOPE_MAX, LL_REPORT_TYPE, LL_REPORT_ENVELOPE_MAX);
	return 0;
}

static int
public_line(const char *path, const char *data_folder)
{
	char		line[LL_KEY_LINE_MAX + 1];
	LLSecretKey key;
	LLPublicKey public_key;
	LLKeyError	error = ll_key_read(path, data_folder, &key);

	if (error != LL_KEY_NONE)
		return fail(ll_key_error_name(error), NULL);
	ll_key_public(&key, &public_key);
	ll_key_wipe(&key);
	ll_public_key_write(&public_key, line);
	puts(line);
	return 0;
}

static LLFault
seal(bool shard, LLSpan payload, const LLSecretKey *key, LLBuffer *out)
{
	LLShardDocument the_shard;
	LLReportDocument report = {.receipts = receipts, .receipt_size = LL_RECEIPTS_MAX};
	LLBuffer	scratch = {more, sizeof(more), 0};
	LLFault		fault = shard ? ll_shard_read(payload, &the_shard) : ll_report_read(payload, &report);

	if (fault.error != LL_ENVELOPE_NONE)
		return fault;
	return shard ? ll_shard_seal(&the_shard, key, out) : ll_report_seal(&report, key, &scratch, out);
}

static LLFault
open_and_write(bool shard, LLSpan envelope, LLTrust trust, LLBuffer *out)
{
	LLShardDocument the_shard;
	LLReportDocument report = {.receipts = receipts, .receipt_size = LL_RECEIPTS_MAX};
	LLBuffer	scratch = {more, sizeof(more), 0};
	int			signer;
	LLFault		fault = shard ? ll_shard_open(envelope, trust, &the_shard, &signer)
		: ll_report_open(envelope, trust, &scratch, &report, &signer);

	if (fault.error != LL_ENVELOPE_NONE)
		return fault;
	return shard ? ll_shard_write(&the_shard, out) : ll_report_write(&report, out);
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	bool		shard = argc > 2 && strcmp(argv[2], LL_SHARD_TYPE) == 0;
	LLBuffer	out = {output, sizeof(output), 0};
	LLFault		fault = {LL_ENVELOPE_NONE, NULL};
	LLSpan		in;

	if (strcmp(what, "errors") == 0)
		return errors();
	if (strcmp(what, "bounds") == 0)
		return bounds();
	if (strcmp(what, "public") == 0 && argc > 2)
		return public_line(argv[2], argv[3]);
	in = (LLSpan) {input, fread(input, 1, sizeof(input), stdin)};
	if (strcmp(what, "seal") == 0 && argc == 4)
	{
		LLSecretKey key;
		LLKeyError	error = ll_key_read(argv[3], NULL, &key);

		if (error != LL_KEY_NONE)
			return fail(ll_key_error_name(error), NULL);
		fault = seal(shard, in, &key, &out);
		ll_key_wipe(&key);
	}
	else if (strcmp(what, "open") == 0 && argc > 3)
	{
		LLPublicKey keys[8];
		int			count = 0;

		for (int i = 3; i < argc && count < 8; i++)
			if (ll_public_key_read((LLSpan) {argv[i], strlen(argv[i])}, &keys[count++]) != LL_KEY_NONE)
				return fail("trust", NULL);
		fault = open_and_write(shard, in, (LLTrust) {keys, count}, &out);
	}
	else
		return 2;
	if (fault.error != LL_ENVELOPE_NONE)
		return fail(ll_envelope_error_name(fault.error), fault.member);
	fwrite(output, 1, out.length, stdout);
	return 0;
}
