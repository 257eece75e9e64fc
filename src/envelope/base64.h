/*
 * base64.h
 *	  Base64url without padding (RFC 4648, 5), in its one form.
 */
#ifndef LL_ENVELOPE_BASE64_H
#define LL_ENVELOPE_BASE64_H

#include "key.h"

/* ll_base64_write writes bytes as LL_BASE64_LENGTH(length) characters and a NUL. */
extern void ll_base64_write(char *text, const void *bytes, size_t length);

/* ll_base64_read is the reverse; false if the text is any other, or `size` is too small. */
extern bool ll_base64_read(LLSpan text, void *bytes, size_t size, size_t *length);

#endif							/* LL_ENVELOPE_BASE64_H */
