/*
 * tap.h
 *	  Just enough of the Test Anything Protocol.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_count;
static int tap_failures;

/* note prints a comment; what is wrong comes before the line that says so. */
__attribute__((format(printf, 1, 2), unused)) static void
note(const char *format, ...)
{
	va_list		args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* ok reports one test. */
__attribute__((format(printf, 2, 3), unused)) static bool
ok(bool pass, const char *format, ...)
{
	va_list		args;

	tap_failures += !pass;
	printf("%s %d - ", pass ? "ok" : "not ok", ++tap_count);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	return pass;
}

/* done_testing prints the plan; its result is the program's. */
__attribute__((unused)) static int
done_testing(void)
{
	printf("1..%d\n", tap_count);
	return tap_failures > 0 || tap_count == 0;
}

#endif							/* TAP_H */
