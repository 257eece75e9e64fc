/*
 * json.c
 *	  Strings of the canonical form, and what is written as a string: units,
 *	  boot epochs; instants are in instant.c.
 *
 * What cannot be written in the form is written in some other, which the
 * reader then refuses: the reader alone knows what is allowed.
 */
#include "json.h"

#include <string.h>

/* ll_json_fault notes a fault; false, so that readers can return it. */
bool
ll_json_fault(LLReader *reader, LLEnvelopeError error)
{
	reader->fault.error = error;
	return false;
}

/* ll_json_next tells whether these bytes come next, and if so reads them. */
bool
ll_json_next(LLReader *reader, const char *bytes)
{
	size_t		length = strlen(bytes);

	if ((size_t) (reader->end - reader->at) < length || memcmp(reader->at, bytes, length) != 0)
		return false;
	reader->at += length;
	return true;
}

/* ll_json_write writes bytes as they are. */
void
ll_json_write(LLWriter *writer, const char *bytes)
{
	size_t		length = strlen(bytes);

	if ((size_t) (writer->end - writer->at) < length)
	{
		writer->full = true;
		return;
	}
	memcpy(writer->at, bytes, length);
	writer->at += length;
}

/*
 * spell writes the one canonical spelling of a byte of a string: itself, a
 * short escape, or \u00 and two lower-case digits (RFC 8785, 3.2.2.2).
 */
static void
spell(unsigned char byte, char spelling[7])
{
	static const char digits[] = "0123456789abcdef";
	static const char shorts[] = "\b\t\n\f\r\"\\";
	static const char letters[] = "btnfr\"\\";
	const char *found = byte != 0 ? strchr(shorts, byte) : NULL;

	memset(spelling, 0, 7);
	if (found != NULL)
	{
		spelling[0] = '\\';
		spelling[1] = letters[found - shorts];
	}
	else if (byte < 0x20)
	{
		memcpy(spelling, "\\u00", 4);
		spelling[4] = digits[byte >> 4];
		spelling[5] = digits[byte & 15];
	}
	else
		spelling[0] = (char) byte;
}

/* read_escape reads what spell() writes; a NUL has no spelling here. */
static bool
read_escape(LLReader *reader, char *byte)
{
	char		spelling[7];

	for (int c = 1; c <= '\\'; c++)
	{
		spell((unsigned char) c, spelling);
		if (spelling[0] == '\\' && ll_json_next(reader, spelling))
		{
			*byte = (char) c;
			return true;
		}
	}
	return ll_json_fault(reader, LL_ENVELOPE_CHARACTER);
}

/* sequence_length gives the bytes of the character that starts here, 0 if it is none. */
static size_t
sequence_length(const char *at, const char *end)
{
	const unsigned char *p = (const unsigned char *) at;
	size_t		length = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 :
		p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
	unsigned char least = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
	unsigned char most = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;

	if ((size_t) (end - at) < length)
		return 0;
	if (length > 1 && (p[1] < least || p[1] > most))
		return 0;
	for (size_t i = 2; i < length; i++)
		if (p[i] < 0x80 || p[i] > 0xBF)
			return 0;
	return length;
}

/* read_character reads one character of a string into `text`; its length, 0 for a fault. */
static size_t
read_character(LLReader *reader, char text[4])
{
	size_t		length;

	if (*reader->at == '\\')
		return read_escape(reader, text) ? 1 : 0;
	if ((unsigned char) *reader->at < 0x20)
	{
		ll_json_fault(reader, LL_ENVELOPE_CHARACTER);
		return 0;
	}
	length = sequence_length(reader->at, reader->end);
	if (length == 0)
		ll_json_fault(reader, LL_ENVELOPE_UTF8);
	memcpy(text, reader->at, length);
	reader->at += length;
	return length;
}

/* ll_json_read_text reads a string of 1 to LL_TEXT_MAX bytes (A1). */
bool
ll_json_read_text(LLReader *reader, LLText text)
{
	size_t		length = 0;
	size_t		more;
	char		character[4];

	if (!ll_json_next(reader, "\""))
		return ll_json_fault(reader, LL_ENVELOPE_TEXT);
	while (!ll_json_next(reader, "\""))
	{
		if (reader->at == reader->end)
			return ll_json_fault(reader, LL_ENVELOPE_SYNTAX);
		more = read_character(reader, character);
		if (more == 0)
			return false;
		if (length + more > LL_TEXT_MAX)
			return ll_json_fault(reader, LL_ENVELOPE_TEXT);
		memcpy(text + length, character, more);
		length += more;
	}
	text[length] = '\0';
	return length > 0 || ll_json_fault(reader, LL_ENVELOPE_TEXT);
}

/* ll_json_write_text writes a string, no more than a byte above LL_TEXT_MAX of it. */
void
ll_json_write_text(LLWriter *writer, const char *text)
{
	size_t		length = strnlen(text, LL_TEXT_MAX + 1);
	char		spelling[7];

	ll_json_write(writer, "\"");
	for (size_t i = 0; i < length; i++)
	{
		spell((unsigned char) text[i], spelling);
		ll_json_write(writer, spelling);
	}
	ll_json_write(writer, "\"");
}

/* ll_json_read_units reads a string of digits without a leading zero (A2). */
bool
ll_json_read_units(LLReader *reader, LLUnits least, LLUnits *units)
{
	LLUnits		value = 0;
	const char *first;

	if (!ll_json_next(reader, "\""))
		return ll_json_fault(reader, LL_ENVELOPE_NUMBER);
	for (first = reader->at; reader->at < reader->end; reader->at++)
	{
		int			digit = *reader->at - '0';

		if (digit < 0 || digit > 9)
			break;
		if (value > (LL_UNITS_MAX - digit) / 10)
			return ll_json_fault(reader, LL_ENVELOPE_NUMBER);
		value = value * 10 + digit;
	}
	if (reader->at == first || (*first == '0' && reader->at != first + 1) || value < least ||
		!ll_json_next(reader, "\""))
		return ll_json_fault(reader, LL_ENVELOPE_NUMBER);
	*units = value;
	return true;
}

/* ll_json_write_units writes such a string; one that does not open if it is negative. */
void
ll_json_write_units(LLWriter *writer, LLUnits units)
{
	char		digits[20] = {0};
	int			at = sizeof(digits) - 1;

	do
		digits[--at] = (char) ('0' + units % 10);
	while ((units /= 10) > 0);
	ll_json_write(writer, "\"");
	ll_json_write(writer, digits + at);
	ll_json_write(writer, "\"");
}

static int
hexadecimal(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* ll_json_read_boot reads a UUID (RFC 9562) of any kind, in lower case. */
bool
ll_json_read_boot(LLReader *reader, unsigned char boot[LL_BOOT_BYTES])
{
	if (!ll_json_next(reader, "\""))
		return ll_json_fault(reader, LL_ENVELOPE_BOOT);
	for (int i = 0; i < LL_BOOT_BYTES; i++)
	{
		int			high;
		int			low;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && !ll_json_next(reader, "-"))
			return ll_json_fault(reader, LL_ENVELOPE_BOOT);
		if (reader->end - reader->at < 2)
			return ll_json_fault(reader, LL_ENVELOPE_BOOT);
		high = hexadecimal(reader->at[0]);
		low = hexadecimal(reader->at[1]);
		if (high < 0 || low < 0)
			return ll_json_fault(reader, LL_ENVELOPE_BOOT);
		boot[i] = (unsigned char) (high * 16 + low);
		reader->at += 2;
	}
	return ll_json_next(reader, "\"") || ll_json_fault(reader, LL_ENVELOPE_BOOT);
}

/* ll_json_write_boot writes such a UUID. */
void
ll_json_write_boot(LLWriter *writer, const unsigned char boot[LL_BOOT_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	char		pair[3] = {0};

	ll_json_write(writer, "\"");
	for (int i = 0; i < LL_BOOT_BYTES; i++)
	{
		if (i == 4 || i == 6 || i == 8 || i == 10)
			ll_json_write(writer, "-");
		pair[0] = digits[boot[i] >> 4];
		pair[1] = digits[boot[i] & 15];
		ll_json_write(writer, pair);
	}
	ll_json_write(writer, "\"");
}

/* ll_json_read_flag reads true or false. */
bool
ll_json_read_flag(LLReader *reader, bool *flag)
{
	*flag = ll_json_next(reader, "true");
	return *flag || ll_json_next(reader, "false") || ll_json_fault(reader, LL_ENVELOPE_FLAG);
}
