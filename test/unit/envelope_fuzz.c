/*
 * The fuzzer's target, for a moment and without the fuzzer: its seeds, and the
 * same changes of them in each run.  `make fuzz` is the long way.
 */
#include "../fuzz/envelope.c"

#define ROUNDS 2000

static uint64_t state = 1;

/* next is xorshift64*: repeatable everywhere. */
static uint32_t
next(uint32_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t) ((state * UINT64_C(2685821657736338717)) >> 33) % below;
}

/* alter makes up to three changes of bytes behind the first; the new length. */
static size_t
alter(char *bytes, size_t length)
{
	for (uint32_t changes = 1 + next(3); changes > 0; changes--)
	{
		size_t		at = 1 + next((uint32_t) length - 1);
		size_t		some = 1 + next(8);

		if (some > length - at)
			some = length - at;
		switch (next(4))
		{
			case 0:
				bytes[at] = (char) next(256);
				break;
			case 1:				/* some bytes are gone */
				memmove(bytes + at, bytes + at + some, length - at - some);
				length -= some;
				break;
			case 2:				/* or there twice */
				memmove(bytes + at + some, bytes + at, length - at);
				length += some;
				break;
			case 3:				/* or those of another place */
				memmove(bytes + at, bytes + 1 + next((uint32_t) (length - some)), some);
				break;
		}
		if (length < 2)
			return length;
	}
	return length;
}

int
main(void)
{
	for (int i = 0; i < SEED_COUNT; i++)
	{
		char		sound[SEED_MAX];
		char		bytes[SEED_MAX];
		size_t		length = seed(i, sound);
		long		before = fuzz_accepted;

		LLVMFuzzerTestOneInput((const uint8_t *) sound, length);
		ok(fuzz_accepted == before + (i == 7 ? 0 : 1), "seed %d is %s", i, i == 7 ? "for another type" : "accepted");
		for (int round = 0; round < ROUNDS; round++)
		{
			memcpy(bytes, sound, length);
			LLVMFuzzerTestOneInput((const uint8_t *) bytes, alter(bytes, length));
		}
		ok(true, "%d changes of it keep their promise, %ld of them accepted", ROUNDS, fuzz_accepted - before - (i != 7));
	}
	return done_testing();
}
