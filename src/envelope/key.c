/*
 * key.c
 *	  The two text forms of a key, and the file of the secret one (G3).
 *
 * The file is judged by its descriptor, so that nobody can put another file in
 * its place between the check and the reading.  What was read of it is wiped
 * before any function returns.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* O_NOFOLLOW, O_CLOEXEC, realpath */
#endif

#include "key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base64.h"

#define KEY_TEXT	LL_BASE64_LENGTH(LL_SEED_BYTES)	/* a public key is as long */

static const char *const words[LL_KEY_ERROR_COUNT] = {
#define X(name, word, meaning) word,
	LL_KEY_ERROR_LIST(X)
#undef X
};

static const char *const meanings[LL_KEY_ERROR_COUNT] = {
#define X(name, word, meaning) meaning,
	LL_KEY_ERROR_LIST(X)
#undef X
};

/* ll_key_error_name gives the word of an error, empty for none. */
const char *
ll_key_error_name(LLKeyError error)
{
	return words[error];
}

/* ll_key_error_meaning says what the word means. */
const char *
ll_key_error_meaning(LLKeyError error)
{
	return meanings[error];
}

static bool
kid_character(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		(c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

/* ll_kid_valid tells whether a text, at most a byte too long, can be a key id. */
bool
ll_kid_valid(const char *kid)
{
	size_t		length = strnlen(kid, LL_KID_MAX + 1);

	for (size_t i = 0; i < length; i++)
		if (!kid_character(kid[i]))
			return false;
	return length >= 1 && length <= LL_KID_MAX;
}

/*
 * read_line takes "FORM KID KEY" apart, of which KEY is 32 bytes.  Base64 is
 * strict: no padding, nothing behind, and no two texts for the same bytes.
 */
static LLKeyError
read_line(LLSpan line, const char *form, char *kid, unsigned char *bytes)
{
	size_t		prefix = strlen(form) + 1;
	size_t		length;
	size_t		got;

	if (line.length < prefix + 1 + KEY_TEXT ||
		memcmp(line.data, form, prefix - 1) != 0 || line.data[prefix - 1] != ' ' ||
		line.data[line.length - KEY_TEXT - 1] != ' ')
		return LL_KEY_FORM;
	length = line.length - prefix - 1 - KEY_TEXT;
	if (length > LL_KID_MAX)
		return LL_KEY_KID;
	memcpy(kid, line.data + prefix, length);
	kid[length] = '\0';
	if (strlen(kid) != length || !ll_kid_valid(kid))
		return LL_KEY_KID;
	if (!ll_base64_read((LLSpan) {line.data + line.length - KEY_TEXT, KEY_TEXT},
						bytes, LL_SEED_BYTES, &got) || got != LL_SEED_BYTES)
		return LL_KEY_FORM;
	return LL_KEY_NONE;
}

/* ll_public_key_read reads a line of a trust list. */
LLKeyError
ll_public_key_read(LLSpan line, LLPublicKey *key)
{
	LLKeyError	error = LL_KEY_LIBRARY;

	if (sodium_init() >= 0)
		error = read_line(line, LL_PUBLIC_FORM, key->kid, key->bytes);
	if (error == LL_KEY_NONE && crypto_core_ed25519_is_valid_point(key->bytes) != 1)
		error = LL_KEY_POINT;
	if (error != LL_KEY_NONE)
		memset(key, 0, sizeof(*key));
	return error;
}

/* ll_public_key_write writes such a line, NUL-terminated. */
LLKeyError
ll_public_key_write(const LLPublicKey *key, char line[LL_KEY_LINE_MAX + 1])
{
	size_t		prefix = strlen(LL_PUBLIC_FORM " ");
	size_t		length = strnlen(key->kid, LL_KID_MAX + 1);

	if (!ll_kid_valid(key->kid))
		return LL_KEY_KID;
	memcpy(line, LL_PUBLIC_FORM " ", prefix);
	memcpy(line + prefix, key->kid, length);
	line[prefix + length] = ' ';
	ll_base64_write(line + prefix + length + 1, key->bytes, LL_PUBLIC_BYTES);
	return LL_KEY_NONE;
}

/* ll_key_public gives the half of a secret key that others may know. */
void
ll_key_public(const LLSecretKey *key, LLPublicKey *public_key)
{
	memcpy(public_key->kid, key->kid, sizeof(public_key->kid));
	memcpy(public_key->bytes, key->bytes + LL_SEED_BYTES, LL_PUBLIC_BYTES);
}

/* ll_key_wipe leaves nothing of a key. */
void
ll_key_wipe(LLSecretKey *key)
{
	sodium_memzero(key, sizeof(*key));
}

/* judge_file says what is wrong with what was opened, but for its content. */
static LLKeyError
judge_file(const struct stat *file)
{
	if (!S_ISREG(file->st_mode))
		return LL_KEY_KIND;
	if (file->st_uid != geteuid())
		return LL_KEY_OWNER;
	if ((file->st_mode & 07177) != 0)
		return LL_KEY_MODE;
	if (file->st_nlink != 1)	/* the other name may be in the data folder */
		return LL_KEY_LINKED;
	return LL_KEY_NONE;
}

static bool
same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * judge_place climbs from the file to the root and looks for the data folder.
 * Folders are compared by device and inode: no spelling of a path, link or
 * second mount of the folder hides it.
 */
static LLKeyError
judge_place(const char *path, const struct stat *file, const char *data_folder)
{
	char		resolved[PATH_MAX];
	struct stat folder;
	struct stat at;
	char	   *slash;

	if (data_folder == NULL)
		return LL_KEY_NONE;
	if (stat(data_folder, &folder) != 0 || realpath(path, resolved) == NULL ||
		stat(resolved, &at) != 0 || !same_file(&at, file))
		return LL_KEY_MOVED;
	while ((slash = strrchr(resolved, '/')) != NULL && resolved[1] != '\0')
	{
		slash[slash == resolved ? 1 : 0] = '\0';
		if (stat(resolved, &at) != 0)
			return LL_KEY_MOVED;
		if (same_file(&at, &folder))
			return LL_KEY_INSIDE;
	}
	return LL_KEY_NONE;
}

/* read_all fills the buffer up to the end of the file; -1 with errno. */
static ssize_t
read_all(int fd, char *buffer, size_t size)
{
	size_t		length = 0;
	ssize_t		got = 1;

	while (length < size && got != 0)
	{
		got = read(fd, buffer + length, size - length);
		if (got < 0 && errno != EINTR)
			return -1;
		length += got > 0 ? (size_t) got : 0;
	}
	return (ssize_t) length;
}

/* read_secret reads the one line that is all of the file. */
static LLKeyError
read_secret(int fd, const struct stat *file, LLSecretKey *key)
{
	char		line[LL_KEY_LINE_MAX + 2];	/* its end, and a byte that is too many */
	unsigned char seed[LL_SEED_BYTES];
	unsigned char public_bytes[LL_PUBLIC_BYTES];
	ssize_t		length = read_all(fd, line, sizeof(line));
	LLKeyError	error = LL_KEY_FORM;

	if (length < 0)
		error = LL_KEY_READ;
	else if (length == file->st_size && length >= 1 && line[length - 1] == '\n')
		error = read_line((LLSpan) {line, (size_t) length - 1}, LL_SECRET_FORM, key->kid, seed);
	if (error == LL_KEY_NONE)
		crypto_sign_seed_keypair(public_bytes, key->bytes, seed);
	sodium_memzero(seed, sizeof(seed));
	sodium_memzero(line, sizeof(line));
	return error;
}

/*
 * ll_key_read opens, judges, reads.  O_NONBLOCK: a pipe in the file's place is
 * opened at once and then refused; without it nobody would ever come back.
 */
LLKeyError
ll_key_read(const char *path, const char *data_folder, LLSecretKey *key)
{
	struct stat file;
	LLKeyError	error;
	int			problem;
	int			fd;

	memset(key, 0, sizeof(*key));
	if (sodium_init() < 0)
		return LL_KEY_LIBRARY;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ELOOP ? LL_KEY_SYMLINK : LL_KEY_OPEN;
	error = fstat(fd, &file) != 0 ? LL_KEY_READ : judge_file(&file);
	if (error == LL_KEY_NONE)
		error = judge_place(path, &file, data_folder);
	if (error == LL_KEY_NONE)
		error = read_secret(fd, &file, key);
	problem = errno;
	close(fd);
	errno = problem;
	if (error != LL_KEY_NONE)
		ll_key_wipe(key);
	return error;
}
