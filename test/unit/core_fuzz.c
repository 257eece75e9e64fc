/*
 * The fuzzer's target for the core, without the fuzzer: the same random bytes in
 * each run.  `make fuzz` is the long way.
 */
#include "../fuzz/core.c"

#include "tap.h"

#define SEQUENCES	6000
#define LENGTH		400

static uint64_t state = 1;

/* next is xorshift64*: repeatable everywhere. */
static uint8_t
next(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint8_t) ((state * UINT64_C(2685821657736338717)) >> 56);
}

int
main(void)
{
	long		rarest = SEQUENCES;

	for (int i = 0; i < SEQUENCES; i++)
	{
		uint8_t		bytes[LENGTH];

		for (int at = 0; at < LENGTH; at++)
			bytes[at] = next();
		LLVMFuzzerTestOneInput(bytes, LENGTH);
	}
	ok(true, "%d sequences keep their promise", SEQUENCES);
	for (int step = 0; step < STEP_COUNT; step++)
	{
		note("step %d took effect %ld times", step, fuzz_effects[step]);
		if (fuzz_effects[step] < rarest)
			rarest = fuzz_effects[step];
	}
	ok(rarest >= 100, "each step took effect, the rarest %ld times", rarest);
	return done_testing();
}
