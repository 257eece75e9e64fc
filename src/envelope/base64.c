/*
 * base64.c
 *	  Writing is libsodium's, in constant time, since a key may be written.
 *	  Reading is ours: libsodium 1.0.18 takes the bytes 0xAD and 0xDF for "-"
 *	  and "_" where char is signed, so that one signature would have many texts.
 */
#include "base64.h"

#include <sodium.h>

/* ll_base64_write: libsodium ends the program if a text does not fit; this one does. */
void
ll_base64_write(char *text, const void *bytes, size_t length)
{
	sodium_bin2base64(text, LL_BASE64_LENGTH(length) + 1, bytes, length,
					  sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* six_bits gives the value of a character, -1 if it has none. */
static int
six_bits(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26
		: c >= '0' && c <= '9' ? c - '0' + 52 : c == '-' ? 62 : c == '_' ? 63 : -1;
}

/* ll_base64_read takes no padding, no other character, and no bits left over. */
bool
ll_base64_read(LLSpan text, void *bytes, size_t size, size_t *length)
{
	unsigned char *out = bytes;
	unsigned int bits = 0;
	int			count = 0;
	size_t		written = 0;

	if (text.length % 4 == 1 || text.length / 4 * 3 + text.length % 4 * 3 / 4 > size)
		return false;
	for (size_t i = 0; i < text.length; i++)
	{
		int			value = six_bits(text.data[i]);

		if (value < 0)
			return false;
		bits = bits << 6 | (unsigned int) value;
		count += 6;
		if (count >= 8)
		{
			count -= 8;
			out[written++] = (unsigned char) (bits >> count);
			bits &= (1U << count) - 1;
		}
	}
	*length = written;
	return bits == 0;
}
