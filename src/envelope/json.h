/*
 * json.h
 *	  The canonical JSON (RFC 8785) of the few kinds of value that a payload
 *	  has: a strict reader, and a writer of the one form that it reads.
 *
 * There is no number: every integer is a string of decimal digits, so that no
 * reader makes a double of it (J1).  Each ll_json_read_ function reads one
 * value or notes the first fault and returns false; after that the reader is
 * of no further use.  The writer goes on without room and says so at the end.
 */
#ifndef LL_ENVELOPE_JSON_H
#define LL_ENVELOPE_JSON_H

#include "envelope.h"

typedef struct LLReader
{
	const char *at;
	const char *end;
	LLFault		fault;
} LLReader;

typedef struct LLWriter
{
	char	   *at;
	char	   *end;
	bool		full;
} LLWriter;

extern bool ll_json_fault(LLReader *reader, LLEnvelopeError error);

/* ll_json_next tells whether these bytes come next, and if so reads them. */
extern bool ll_json_next(LLReader *reader, const char *bytes);

extern bool ll_json_read_text(LLReader *reader, LLText text);
extern bool ll_json_read_units(LLReader *reader, LLUnits least, LLUnits *units);
extern bool ll_json_read_instant(LLReader *reader, LLTime *instant);
extern bool ll_json_read_boot(LLReader *reader, unsigned char boot[LL_BOOT_BYTES]);
extern bool ll_json_read_flag(LLReader *reader, bool *flag);

extern void ll_json_write(LLWriter *writer, const char *bytes);
extern void ll_json_write_text(LLWriter *writer, const char *text);
extern void ll_json_write_units(LLWriter *writer, LLUnits units);
extern void ll_json_write_instant(LLWriter *writer, LLTime instant);
extern void ll_json_write_boot(LLWriter *writer, const unsigned char boot[LL_BOOT_BYTES]);

#endif							/* LL_ENVELOPE_JSON_H */
