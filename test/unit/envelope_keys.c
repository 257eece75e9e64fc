/*
 * The file of a signing key: what it has to be, and one row for each way in
 * which it is not (G3).
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "envelope.h"

#define LINE	LL_SECRET_FORM " centre-1 " RFC_SEED "\n"
#define KID64	"abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"

static char folder[] = "/tmp/limitledger-keys.XXXXXX";
static char path[64];

/* put makes the file anew. */
static void
put(const char *content, size_t length, mode_t mode)
{
	int			fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || write(fd, content, length) != (ssize_t) length || fchmod(fd, mode) != 0 || close(fd) != 0)
		abort();
}

static bool
wiped(const LLSecretKey *key)
{
	return sodium_is_zero((const unsigned char *) key, sizeof(*key)) == 1;
}

/* refused reads the file and expects an error, and nothing left of a key. */
static void
refused(LLKeyError error, const char *data_folder, const char *what)
{
	LLSecretKey key;
	LLKeyError	got;

	memset(&key, 'x', sizeof(key));
	got = ll_key_read(path, data_folder, &key);
	ok(got == error && (error == LL_KEY_NONE || wiped(&key)), "%s (%s)", what,
	   got == LL_KEY_NONE ? "read" : ll_key_error_name(got));
	ll_key_wipe(&key);
}

static void
sound(void)
{
	LLSecretKey key;
	LLSecretKey expected = seeded("centre-1", RFC_SEED);

	put(LINE, strlen(LINE), 0600);
	ok(ll_key_read(path, NULL, &key) == LL_KEY_NONE && memcmp(&key, &expected, sizeof(key)) == 0,
	   "a key of mode 0600 is read");
	ll_key_wipe(&key);
	ok(wiped(&key), "and wiped");
	put(LINE, strlen(LINE), 0400);
	refused(LL_KEY_NONE, NULL, "a key of mode 0400 is read");
}

static const struct
{
	const char *name;
	const char *content;
	LLKeyError	error;
}			contents[] = {
	{"the longest key id", LL_SECRET_FORM " " KID64 " " RFC_SEED "\n", LL_KEY_NONE},
	{"the shortest key id", LL_SECRET_FORM " k " RFC_SEED "\n", LL_KEY_NONE},
	{"a key id that is too long", LL_SECRET_FORM " x" KID64 " " RFC_SEED "\n", LL_KEY_KID},
	{"no key id", LL_SECRET_FORM "  " RFC_SEED "\n", LL_KEY_KID},
	{"a blank in the key id", LL_SECRET_FORM " a b " RFC_SEED "\n", LL_KEY_KID},
	{"a quote in the key id", LL_SECRET_FORM " a\" " RFC_SEED "\n", LL_KEY_KID},
	{"a letter beyond ASCII", LL_SECRET_FORM " \xC3\xA4 " RFC_SEED "\n", LL_KEY_KID},
	{"empty", "", LL_KEY_FORM},
	{"a line end alone", "\n", LL_KEY_FORM},
	{"no end of line", LL_SECRET_FORM " centre-1 " RFC_SEED, LL_KEY_FORM},
	{"the end of line of another system", LL_SECRET_FORM " centre-1 " RFC_SEED "\r\n", LL_KEY_FORM},
	{"an empty line behind", LINE "\n", LL_KEY_FORM},
	{"another key behind", LINE LINE, LL_KEY_FORM},
	{"a comment before", "# key\n" LINE, LL_KEY_FORM},
	{"a short key", LL_SECRET_FORM " centre-1 nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2\n", LL_KEY_FORM},
	{"a long key", LL_SECRET_FORM " centre-1 " RFC_SEED "A\n", LL_KEY_FORM},
	{"a padded key", LL_SECRET_FORM " centre-1 " RFC_SEED "=\n", LL_KEY_FORM},
	{"bits left over", LL_SECRET_FORM " centre-1 nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2B\n", LL_KEY_FORM},
	{"the other alphabet", LL_SECRET_FORM " centre-1 nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A\n", LL_KEY_FORM},
	{"a byte that some take for _", LL_SECRET_FORM " centre-1 nWGxne\xDF" "9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A\n", LL_KEY_FORM},
	{"a public key", LL_PUBLIC_FORM " centre-1 " RFC_PUBLIC "\n", LL_KEY_FORM},
	{"another version", "limitledger-ed25519-secret-v2 centre-1 " RFC_SEED "\n", LL_KEY_FORM},
	{"a tab between", LL_SECRET_FORM "\tcentre-1\t" RFC_SEED "\n", LL_KEY_FORM},
	{"the form of OpenSSL", "-----BEGIN PRIVATE KEY-----\n"
	"MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n", LL_KEY_FORM},
};

static void
refused_contents(void)
{
	char		bytes[200];

	for (int i = 0; i < LENGTH(contents); i++)
	{
		put(contents[i].content, strlen(contents[i].content), 0600);
		refused(contents[i].error, NULL, contents[i].name);
	}
	memcpy(bytes, LINE, sizeof(LINE));
	bytes[strlen(LL_SECRET_FORM) + 2] = '\0';
	put(bytes, strlen(LINE), 0600);
	refused(LL_KEY_KID, NULL, "a NUL in the key id");
	put(LINE, strlen(LINE), 0600);
	if (truncate(path, 1 << 20) != 0)
		abort();
	refused(LL_KEY_FORM, NULL, "a megabyte of NULs behind");
	for (size_t length = 0; length < strlen(LINE); length++)
	{
		LLSecretKey key;

		put(LINE, length, 0600);
		if (ll_key_read(path, NULL, &key) != LL_KEY_FORM || !wiped(&key))
			ok(false, "cut at %zu", length);
	}
	ok(true, "cut anywhere");
}

static void
refused_modes(void)
{
	static const mode_t modes[] = {0644, 0640, 0604, 0601, 0610, 0602, 0660, 0700, 04600, 02600, 01600};

	for (int i = 0; i < LENGTH(modes); i++)
	{
		char		name[32];

		snprintf(name, sizeof(name), "mode %04o", (unsigned int) modes[i]);
		put(LINE, strlen(LINE), modes[i]);
		refused(LL_KEY_MODE, NULL, name);
	}
	if (geteuid() != 0)
		return;
	put(LINE, strlen(LINE), 0600);
	if (chown(path, 65534, (gid_t) -1) != 0)
		abort();
	refused(LL_KEY_OWNER, NULL, "a file of another user");
}

static void
refused_kinds(void)
{
	char		real[80];
	LLSecretKey key;

	unlink(path);
	refused(LL_KEY_OPEN, NULL, "no file");
	ok(ll_key_read(path, NULL, &key) == LL_KEY_OPEN && errno == ENOENT, "and errno says so");
	snprintf(real, sizeof(real), "%s.real", path);
	put(LINE, strlen(LINE), 0600);
	if (rename(path, real) != 0 || symlink(real, path) != 0)
		abort();
	refused(LL_KEY_SYMLINK, NULL, "a symbolic link to a sound key");
	unlink(path);
	if (link(real, path) != 0)
		abort();
	refused(LL_KEY_LINKED, NULL, "a second name of a sound key");
	unlink(real);
	refused(LL_KEY_NONE, NULL, "which alone is sound");
	unlink(path);
	if (mkdir(path, 0600) != 0)
		abort();
	refused(LL_KEY_KIND, NULL, "a folder");
	rmdir(path);
	if (mkfifo(path, 0600) != 0)
		abort();
	refused(LL_KEY_KIND, NULL, "a pipe, at once");
	unlink(path);
}

/* The data folder in several spellings; the file lies in inner/deep of it, or beside it. */
static void
refused_places(void)
{
	char		inner[40];
	char		deep[48];
	char		alias[40];
	char		missing[48];

	snprintf(inner, sizeof(inner), "%s/data", folder);
	snprintf(deep, sizeof(deep), "%s/deep", inner);
	snprintf(alias, sizeof(alias), "%s/alias", folder);
	snprintf(missing, sizeof(missing), "%s/none", folder);
	if (mkdir(inner, 0700) != 0 || mkdir(deep, 0700) != 0 || symlink(inner, alias) != 0)
		abort();

	put(LINE, strlen(LINE), 0600);
	refused(LL_KEY_NONE, inner, "beside the data folder");
	refused(LL_KEY_INSIDE, folder, "in the data folder");
	refused(LL_KEY_INSIDE, "/", "somewhere below it");
	refused(LL_KEY_MOVED, missing, "a data folder that is not there");
	unlink(path);

	snprintf(path, sizeof(path), "%s/key", deep);
	put(LINE, strlen(LINE), 0600);
	refused(LL_KEY_INSIDE, inner, "deep in the data folder");
	refused(LL_KEY_INSIDE, alias, "deep in it, and it is named by a link");
	snprintf(path, sizeof(path), "%s/deep/../deep/key", alias);
	refused(LL_KEY_INSIDE, inner, "deep in it, by a winding path");
	unlink(path);

	/* data-old begins like data, and is another folder */
	snprintf(path, sizeof(path), "%s/data-old", folder);
	put(LINE, strlen(LINE), 0600);
	refused(LL_KEY_NONE, inner, "beside a data folder whose name begins alike");
	unlink(path);
	unlink(alias);
	rmdir(deep);
	rmdir(inner);
	snprintf(path, sizeof(path), "%s/key", folder);
}

static const struct
{
	const char *name;
	const char *line;
	LLKeyError	error;
}			lines[] = {
	{"a public key", LL_PUBLIC_FORM " centre-1 " RFC_PUBLIC, LL_KEY_NONE},
	{"with an end of line", LL_PUBLIC_FORM " centre-1 " RFC_PUBLIC "\n", LL_KEY_FORM},
	{"a secret key", LL_SECRET_FORM " centre-1 " RFC_SEED, LL_KEY_FORM},
	{"cut", LL_PUBLIC_FORM " centre-1 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUR", LL_KEY_FORM},
	{"nothing", "", LL_KEY_FORM},
	{"no form", "centre-1 " RFC_PUBLIC, LL_KEY_FORM},
	{"a key id with a slash", LL_PUBLIC_FORM " a/b " RFC_PUBLIC, LL_KEY_KID},
	{"the neutral point", LL_PUBLIC_FORM " k AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", LL_KEY_POINT},
	{"zero", LL_PUBLIC_FORM " k AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", LL_KEY_POINT},
	{"no point of the curve", LL_PUBLIC_FORM " k AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", LL_KEY_POINT},
};

static void
public_lines(void)
{
	for (int i = 0; i < LENGTH(lines); i++)
	{
		LLPublicKey key;
		LLKeyError	error = ll_public_key_read(span(lines[i].line), &key);
		char		again[LL_KEY_LINE_MAX + 1] = "";

		if (error == LL_KEY_NONE)
			ll_public_key_write(&key, again);
		ok(error == lines[i].error && (error != LL_KEY_NONE || strcmp(again, lines[i].line) == 0),
		   "public: %s (%s)", lines[i].name, ll_key_error_name(error));
	}
}

int
main(void)
{
	if (mkdtemp(folder) == NULL)
		abort();
	snprintf(path, sizeof(path), "%s/key", folder);
	sound();
	refused_contents();
	refused_modes();
	refused_kinds();
	refused_places();
	public_lines();
	unlink(path);
	ok(rmdir(folder) == 0, "nothing is left behind");
	return done_testing();
}
