/*
 * Envelopes that were altered on their way: all refused, whatever the change
 * (G3).  Then payloads that were altered before their key signed them: refused,
 * or read as what they say, and written again as the same bytes.
 */
#include "envelope.h"

/* What is tried for one type of envelope, and how it went. */
typedef struct Trial
{
	Type		type;
	LLTrust		trust;
	char	   *sound;			/* the known envelope */
	size_t		length;
	char	   *bytes;			/* an altered one */
	int			tried;
	int			opened;
	int			by_error[LL_ENVELOPE_ERROR_COUNT];
} Trial;

/* judge opens the altered bytes, from memory that ends where they end. */
static void
judge(Trial *trial, size_t length)
{
	char	   *exact = malloc(length > 0 ? length : 1);
	LLFault		fault;

	memcpy(exact, trial->bytes, length);
	fault = open_any(trial->type, (LLSpan) {exact, length}, trial->trust);
	trial->tried++;
	trial->opened += fault.error == LL_ENVELOPE_NONE;
	trial->by_error[fault.error]++;
	free(exact);
}

static void
bits(Trial *trial)
{
	for (size_t i = 0; i < trial->length * 8; i++)
	{
		memcpy(trial->bytes, trial->sound, trial->length);
		trial->bytes[i / 8] = (char) (trial->bytes[i / 8] ^ 1 << i % 8);
		judge(trial, trial->length);
	}
}

static void
truncations(Trial *trial)
{
	memcpy(trial->bytes, trial->sound, trial->length);
	for (size_t length = 0; length < trial->length; length++)
		judge(trial, length);
	for (size_t from = 1; from < trial->length; from++)
	{
		memcpy(trial->bytes, trial->sound + from, trial->length - from);
		judge(trial, trial->length - from);
	}
}

static void
deletions(Trial *trial)
{
	for (size_t i = 0; i < trial->length; i++)
	{
		memcpy(trial->bytes, trial->sound, i);
		memcpy(trial->bytes + i, trial->sound + i + 1, trial->length - i - 1);
		judge(trial, trial->length - 1);
	}
}

static void
insertions(Trial *trial)
{
	static const char inserted[] = {'A', '_', '.', '=', ' ', '\n', '\0'};

	for (size_t i = 0; i <= trial->length; i++)
		for (int c = 0; c < LENGTH(inserted); c++)
		{
			memcpy(trial->bytes, trial->sound, i);
			trial->bytes[i] = inserted[c];
			memcpy(trial->bytes + i + 1, trial->sound + i, trial->length - i);
			judge(trial, trial->length + 1);
		}
}

static void
swaps(Trial *trial)
{
	for (size_t i = 0; i + 1 < trial->length; i++)
	{
		memcpy(trial->bytes, trial->sound, trial->length);
		trial->bytes[i] = trial->sound[i + 1];
		trial->bytes[i + 1] = trial->sound[i];
		if (trial->sound[i] != trial->sound[i + 1])
			judge(trial, trial->length);
	}
}

static void
altered_on_the_way(Type type)
{
	Trial		trial = {type, trusted(type), the_envelope(type)};

	trial.length = strlen(trial.sound);
	trial.bytes = malloc(trial.length + 1);
	memcpy(trial.bytes, trial.sound, trial.length);
	judge(&trial, trial.length);
	ok(trial.opened == 1, "%s opens as it is", type_names[type]);
	trial.tried = trial.opened = 0;
	bits(&trial);
	truncations(&trial);
	deletions(&trial);
	insertions(&trial);
	swaps(&trial);
	ok(trial.opened == 0 && trial.tried >= 10000, "%s: %d altered envelopes, %d opened", type_names[type],
	   trial.tried, trial.opened);
	for (int i = 0; i < LL_ENVELOPE_ERROR_COUNT; i++)
		if (trial.by_error[i] > 0 && i != LL_ENVELOPE_NONE)
			note("%6d %s", trial.by_error[i], ll_envelope_error_name((LLEnvelopeError) i));
	free(trial.sound);
	free(trial.bytes);
}

/* ---- Altered before it was signed ---------------------------------------------- */

/* same_again tells whether an altered payload is refused, or is its own one form. */
static bool
same_again(Type type, const char *payload, size_t length, bool *accepted)
{
	char		bytes[4096];
	LLBuffer	again = {bytes, sizeof(bytes), 0};
	LLReportReceipt receipts[8];
	LLShardDocument shard;
	LLReportDocument report = {.receipts = receipts, .receipt_size = 8};
	LLSpan		altered = {payload, length};
	LLFault		fault = type == SHARD ? ll_shard_read(altered, &shard) : ll_report_read(altered, &report);

	*accepted = fault.error == LL_ENVELOPE_NONE;
	if (!*accepted)
		return true;
	fault = type == SHARD ? ll_shard_write(&shard, &again) : ll_report_write(&report, &again);
	return fault.error == LL_ENVELOPE_NONE && again.length == length && memcmp(bytes, payload, length) == 0;
}

static void
altered_before(Type type)
{
	const char *sound = type == SHARD ? SHARD_PAYLOAD : REPORT_PAYLOAD;
	size_t		length = strlen(sound);
	int			tried = 0;
	int			accepted = 0;
	int			wrong = 0;

	for (size_t i = 0; i < length; i++)
		for (int c = 0; c < 256; c++)
		{
			char	   *exact = malloc(length);
			bool		open;

			memcpy(exact, sound, length);
			exact[i] = (char) c;
			wrong += !same_again(type, exact, length, &open);
			accepted += open;
			tried++;
			free(exact);
		}
	for (size_t cut = 0; cut < length; cut++)
	{
		char	   *exact = malloc(cut > 0 ? cut : 1);
		bool		open;

		memcpy(exact, sound, cut);
		wrong += !same_again(type, exact, cut, &open) || open;
		tried++;
		free(exact);
	}
	ok(wrong == 0 && accepted > 0 && accepted < tried,
	   "%s: %d altered payloads, %d are other documents, each with one form", type_names[type], tried, accepted);
}

int
main(void)
{
	altered_on_the_way(SHARD);
	altered_on_the_way(REPORT);
	altered_before(SHARD);
	altered_before(REPORT);
	return done_testing();
}
