/*
 * sync.c
 *	  Lets one flush of the write-ahead log fail.
 *
 * Preloaded into a server (LD_PRELOAD).  GATE_SYNC names a file with one int32:
 * N > 0 lets the N'th flush of the log from now fail with EIO, which leaves -1
 * there.  The server panics then, after it may have written the commit record:
 * nobody knows whether that transaction has committed before the recovery says.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic int32_t none;
static _Atomic int32_t *left = &none;
static int	(*next_fdatasync) (int);
static int	(*next_fsync) (int);

__attribute__((constructor)) static void
sync_init(void)
{
	const char *path = getenv("GATE_SYNC");
	int			file;
	void	   *page;

	next_fdatasync = (int (*) (int)) dlsym(RTLD_NEXT, "fdatasync");
	next_fsync = (int (*) (int)) dlsym(RTLD_NEXT, "fsync");
	if (path == NULL || (file = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return;
	page = mmap(NULL, sizeof(*left), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (page != MAP_FAILED)
		left = page;
}

/* fails: this flush is the one, and it is one of the log. */
static int
fails(int file)
{
	char		link[32];
	char		path[512];
	ssize_t		length;
	int32_t		before = atomic_load(left);

	if (before <= 0)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return 0;
	path[length] = '\0';
	if (strstr(path, "/pg_wal/") == NULL)
		return 0;
	while (before > 0 && !atomic_compare_exchange_weak(left, &before, before == 1 ? -1 : before - 1))
		;
	if (before != 1)
		return 0;
	errno = EIO;
	return 1;
}

int
fdatasync(int file)
{
	return fails(file) ? -1 : next_fdatasync(file);
}

int
fsync(int file)
{
	return fails(file) ? -1 : next_fsync(file);
}
