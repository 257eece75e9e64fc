/*
 * key.h
 *	  Ed25519 keys: how they are named, written down, read and wiped (G3).
 *
 * A secret key lives in a file of its owner and, while something is signed, in
 * one LLSecretKey, which its reader wipes.  docs/envelope.md has the two text
 * forms.  Nothing in this folder compares secrets, so that no comparison needs
 * constant time; libsodium signs and verifies in constant time.
 */
#ifndef LL_ENVELOPE_KEY_H
#define LL_ENVELOPE_KEY_H

#include <stdbool.h>
#include <stddef.h>

#define LL_KID_MAX			64
#define LL_PUBLIC_BYTES		32
#define LL_SEED_BYTES		32
#define LL_SECRET_BYTES		64	/* seed and public key, as libsodium keeps them */

/* Base64url without padding: characters for n bytes. */
#define LL_BASE64_LENGTH(n)	(((n) * 4 + 2) / 3)

#define LL_SECRET_FORM		"limitledger-ed25519-secret-v1"
#define LL_PUBLIC_FORM		"limitledger-ed25519-public-v1"

/* The longest line of either form, without its end. */
#define LL_KEY_LINE_MAX \
	(sizeof(LL_SECRET_FORM) + LL_KID_MAX + 1 + LL_BASE64_LENGTH(LL_SEED_BYTES))

/* What is read: bytes that end where they end, not at a NUL. */
typedef struct LLSpan
{
	const char *data;
	size_t		length;
} LLSpan;

typedef struct LLPublicKey
{
	char		kid[LL_KID_MAX + 1];
	unsigned char bytes[LL_PUBLIC_BYTES];
} LLPublicKey;

typedef struct LLSecretKey
{
	char		kid[LL_KID_MAX + 1];
	unsigned char bytes[LL_SECRET_BYTES];
} LLSecretKey;

/* The closed list of what may be wrong with a key: name, word, meaning. */
#define LL_KEY_ERROR_LIST(X) \
	X(NONE, "", "the key is sound") \
	X(OPEN, "open", "the file can't be opened") \
	X(SYMLINK, "symlink", "the path names a symbolic link") \
	X(KIND, "kind", "the path names no regular file") \
	X(OWNER, "owner", "the file belongs to another user than the one that reads it") \
	X(MODE, "mode", "the file's mode allows more than 0600") \
	X(LINKED, "linked", "the file has a second name") \
	X(MOVED, "moved", "the path names another file by now, or where it leads can't be told") \
	X(INSIDE, "inside", "the file is inside the data folder, so each backup would hold it") \
	X(READ, "read", "the file can't be read") \
	X(FORM, "form", "the text is not one line of the documented form, and nothing else") \
	X(KID, "kid", "the key id is not 1 to 64 of the characters A-Z a-z 0-9 . _ -") \
	X(POINT, "point", "the public key is no point of the curve that verifies") \
	X(LIBRARY, "library", "libsodium can't be initialised")

typedef enum LLKeyError
{
#define X(name, word, meaning) LL_KEY_##name,
	LL_KEY_ERROR_LIST(X)
#undef X
} LLKeyError;
#define LL_KEY_ERROR_COUNT	(LL_KEY_LIBRARY + 1)

extern const char *ll_key_error_name(LLKeyError error);
extern const char *ll_key_error_meaning(LLKeyError error);

extern bool ll_kid_valid(const char *kid);

/*
 * ll_key_read reads the signing key in `path`.  `data_folder` is a folder that
 * must not hold it, NULL for none.  After OPEN or READ, errno says why.  The
 * caller wipes the key as soon as it has signed; after an error it is wiped.
 */
extern LLKeyError ll_key_read(const char *path, const char *data_folder,
							  LLSecretKey *key);
extern void ll_key_wipe(LLSecretKey *key);

/* ll_key_public gives the half of a secret key that others may know. */
extern void ll_key_public(const LLSecretKey *key, LLPublicKey *public_key);

/* The line for trust lists, without an end of line; read and written. */
extern LLKeyError ll_public_key_read(LLSpan line, LLPublicKey *key);
extern LLKeyError ll_public_key_write(const LLPublicKey *key,
									  char line[LL_KEY_LINE_MAX + 1]);

#endif							/* LL_ENVELOPE_KEY_H */
