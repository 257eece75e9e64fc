/*
 * witness.c
 *	  The witness file.  See witness.h.
 *
 * Everything is judged by descriptors, so that nobody can put another file or
 * folder in place between the check and the reading.  A new content takes the
 * old one's place by rename: a reader sees one or the other, a crash leaves one
 * or the other.  Writers take turns by a lock on the file (flock), which also
 * holds between servers on one host; it is never kept longer than one write.
 */
#include "witness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"

#define FORM		"limitledger-witness-v1"
#define UUID_TEXT	36
#define LINE_MAX_LENGTH	(sizeof(FORM) + 18 + LL_WITNESS_INCARNATIONS * (UUID_TEXT + 1) + 1)
#define NEW_SUFFIX	".new"

/* ll_witness_meaning says what is wrong, in words. */
const char *
ll_witness_meaning(LLWitnessProblem problem)
{
	static const char *const meanings[] = {
#define X(name, meaning) meaning,
		LL_WITNESS_PROBLEM_LIST(X)
#undef X
	};

	return meanings[problem];
}

/* ll_witness_names tells whether an incarnation is among those of the file. */
bool
ll_witness_names(const LLWitness *witness, const pg_uuid_t *incarnation)
{
	for (int i = 0; i < witness->count; i++)
		if (memcmp(&witness->incarnation[i], incarnation, sizeof(pg_uuid_t)) == 0)
			return true;
	return false;
}

/* ---- the line ----------------------------------------------------------- */

static char *
write_uuid(char *at, const pg_uuid_t *uuid)
{
	static const char hex[] = "0123456789abcdef";

	for (int i = 0; i < UUID_LEN; i++)
	{
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = hex[uuid->data[i] >> 4];
		*at++ = hex[uuid->data[i] & 15];
	}
	return at;
}

/* write_line gives the one text of a witness, and its length. */
static int
write_line(const LLWitness *witness, char line[LINE_MAX_LENGTH + 1])
{
	char	   *at = line + snprintf(line, LINE_MAX_LENGTH, FORM " %X/%X", LSN_FORMAT_ARGS(witness->lsn));

	for (int i = 0; i < witness->count; i++)
	{
		*at++ = ' ';
		at = write_uuid(at, &witness->incarnation[i]);
	}
	*at++ = '\n';
	return (int) (at - line);
}

static int
hex_value(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* read_uuid reads digits, wherever hyphens stand: the caller compares the whole. */
static void
read_uuid(const char *text, pg_uuid_t *uuid)
{
	int			digits = 0;

	memset(uuid, 0, sizeof(*uuid));
	for (; *text != '\0' && digits < 2 * UUID_LEN; text++)
		if (hex_value(*text) >= 0)
		{
			uuid->data[digits / 2] |= hex_value(*text) << (digits % 2 == 0 ? 4 : 0);
			digits++;
		}
}

/*
 * read_line takes a line apart, and holds what it found against the line that
 * would be written for it: no two texts are one witness.
 */
static bool
read_line(const char *line, int length, LLWitness *witness)
{
	char		again[LINE_MAX_LENGTH + 1];
	char		uuid[LL_WITNESS_INCARNATIONS][UUID_TEXT + 1];
	unsigned int high;
	unsigned int low;
	int			found = sscanf(line, FORM " %8X/%8X %36s %36s", &high, &low, uuid[0], uuid[1]);

	memset(witness, 0, sizeof(*witness));
	if (found < 3)
		return false;
	witness->lsn = ((uint64) high << 32) | low;
	witness->count = found - 2;
	for (int i = 0; i < witness->count; i++)
		read_uuid(uuid[i], &witness->incarnation[i]);
	if (write_line(witness, again) == length && memcmp(line, again, length) == 0)
		return true;
	witness->count = 0;
	return false;
}

/* ---- the file ----------------------------------------------------------- */

static bool
same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * judge_place climbs from the folder to the root and looks for the data folder,
 * by device and inode: no spelling of a path and no link hides it.
 */
static LLWitnessProblem
judge_place(int folder)
{
	struct stat data;
	struct stat at;
	struct stat above;
	int			here = dup(folder);

	if (here < 0 || stat(DataDir, &data) != 0 || fstat(here, &at) != 0)
	{
		if (here >= 0)
			close(here);
		return LL_WITNESS_FOLDER;
	}
	for (;;)
	{
		int			up;

		if (same_file(&at, &data))
		{
			close(here);
			return LL_WITNESS_INSIDE;
		}
		up = openat(here, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(here);
		if (up < 0)
			return LL_WITNESS_FOLDER;
		if (fstat(up, &above) != 0 || same_file(&above, &at))
		{
			close(up);
			return LL_WITNESS_NONE;
		}
		here = up;
		at = above;
	}
}

/* open_folder opens the folder of a path, and finds the name within it. */
static LLWitnessProblem
open_folder(const char *path, int *folder, const char **name)
{
	char		above[MAXPGPATH];
	const char *slash = strrchr(path, '/');
	LLWitnessProblem problem;

	if (slash == NULL || slash[1] == '\0' || strlen(path) + sizeof(NEW_SUFFIX) > MAXPGPATH)
		return LL_WITNESS_FOLDER;
	strlcpy(above, path, slash - path + 1 + (slash == path));
	*name = slash + 1;
	*folder = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*folder < 0)
		return LL_WITNESS_FOLDER;
	problem = judge_place(*folder);
	if (problem != LL_WITNESS_NONE)
		close(*folder);
	return problem;
}

/* judge_file says what is wrong with what was opened, but for its content. */
static LLWitnessProblem
judge_file(int fd)
{
	struct stat file;

	if (fstat(fd, &file) != 0)
		return LL_WITNESS_READ;
	if (!S_ISREG(file.st_mode))
		return LL_WITNESS_KIND;
	if (file.st_uid != geteuid())
		return LL_WITNESS_OWNER;
	if ((file.st_mode & 07177) != 0)
		return LL_WITNESS_MODE;
	if (file.st_nlink > 1)		/* the other name may be in the data folder */
		return LL_WITNESS_LINKED;
	return LL_WITNESS_NONE;
}

/* open_file opens and judges it; O_NONBLOCK: a pipe in its place keeps nobody waiting. */
static LLWitnessProblem
open_file(int folder, const char *name, int mode, int *fd)
{
	LLWitnessProblem problem;

	*fd = openat(folder, name, mode | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	if (*fd < 0)
		return errno == ENOENT ? LL_WITNESS_MISSING
			: errno == ELOOP ? LL_WITNESS_SYMLINK
			: errno == EISDIR ? LL_WITNESS_KIND
			: mode & O_CREAT ? LL_WITNESS_WRITE : LL_WITNESS_READ;
	problem = judge_file(*fd);
	if (problem != LL_WITNESS_NONE)
		close(*fd);
	return problem;
}

static LLWitnessProblem
read_file(int fd, LLWitness *witness)
{
	char		line[LINE_MAX_LENGTH + 2];	/* a byte that is too many, and NUL */
	ssize_t		length;

	memset(witness, 0, sizeof(*witness));
	do
		length = pread(fd, line, LINE_MAX_LENGTH + 1, 0);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return LL_WITNESS_READ;
	line[length] = '\0';
	return length > LINE_MAX_LENGTH || !read_line(line, (int) length, witness)
		? LL_WITNESS_FORM : LL_WITNESS_NONE;
}

LLWitnessProblem
ll_witness_read(const char *path, LLWitness *witness)
{
	const char *name;
	int			folder;
	int			fd;
	LLWitnessProblem problem = open_folder(path, &folder, &name);

	if (problem != LL_WITNESS_NONE)
		return problem;
	problem = open_file(folder, name, O_RDONLY, &fd);
	close(folder);
	if (problem != LL_WITNESS_NONE)
		return problem;
	problem = read_file(fd, witness);
	close(fd);
	return problem;
}

/*
 * take_turn locks the file without waiting.  Whoever had it before may have put
 * another one in its place: then this lock is on a file that is gone.
 */
static LLWitnessProblem
take_turn(const LLWitnessFile *file)
{
	struct stat opened;
	struct stat there;

	if (flock(file->file, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK || errno == EINTR ? LL_WITNESS_BUSY : LL_WITNESS_WRITE;
	if (fstat(file->file, &opened) != 0)
		return LL_WITNESS_READ;
	if (fstatat(file->folder, file->name, &there, AT_SYMLINK_NOFOLLOW) != 0 ||
		!same_file(&opened, &there))
		return LL_WITNESS_BUSY;
	return LL_WITNESS_NONE;
}

LLWitnessProblem
ll_witness_lock(LLWitnessFile *file, const char *path, bool create, LLWitness *witness)
{
	LLWitnessProblem problem = open_folder(path, &file->folder, &file->name);

	if (problem != LL_WITNESS_NONE)
		return problem;
	problem = open_file(file->folder, file->name, O_RDWR | (create ? O_CREAT : 0), &file->file);
	if (problem != LL_WITNESS_NONE)
	{
		close(file->folder);
		return problem;
	}
	problem = take_turn(file);
	if (problem == LL_WITNESS_NONE)
		problem = read_file(file->file, witness);
	if (problem == LL_WITNESS_FORM && create)
		problem = LL_WITNESS_NONE;
	if (problem != LL_WITNESS_NONE)
		ll_witness_unlock(file);
	return problem;
}

/* ll_witness_unlock lets the next one in: a lock ends with its descriptor. */
void
ll_witness_unlock(LLWitnessFile *file)
{
	int			problem = errno;

	close(file->file);
	close(file->folder);
	errno = problem;
}

/* put writes a new file and has it on disk. */
static bool
put(int folder, const char *name, const char *line, int length)
{
	int			fd;
	bool		done;
	int			problem;

	if (unlinkat(folder, name, 0) != 0 && errno != ENOENT)
		return false;
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	errno = 0;
	done = write(fd, line, length) == length && fsync(fd) == 0;
	problem = errno == 0 ? ENOSPC : errno;	/* a short write */
	if (close(fd) != 0 && done)
		return false;
	errno = problem;
	return done;
}

/* ll_witness_write replaces the file that is locked; on disk when it returns. */
LLWitnessProblem
ll_witness_write(const LLWitnessFile *file, const LLWitness *witness)
{
	char		line[LINE_MAX_LENGTH + 1];
	char		name[MAXPGPATH];
	int			problem;

	snprintf(name, sizeof(name), "%s" NEW_SUFFIX, file->name);
	if (put(file->folder, name, line, write_line(witness, line)) &&
		renameat(file->folder, name, file->folder, file->name) == 0)
		return fsync(file->folder) == 0 ? LL_WITNESS_NONE : LL_WITNESS_WRITE;
	problem = errno;
	(void) unlinkat(file->folder, name, 0);
	errno = problem;
	return LL_WITNESS_WRITE;
}
