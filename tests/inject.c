/* SPDX-License-Identifier: MIT */
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FDS = 32 * 1024,
	INJECTIONS = 64,
	PATH_SIZE = 256,
};

static struct injection {
	char path[PATH_SIZE];
	char call[16];
	int err;
} injections[INJECTIONS];

static unsigned n_injections, n_hits;
static char fd_path[FDS][PATH_SIZE]; /* below the last directory opened */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void inject_add(const char *path, const char *call, int err)
{
	struct injection *in = &injections[n_injections++];

	snprintf(in->path, sizeof(in->path), "%s", path);
	snprintf(in->call, sizeof(in->call), "%s", call);
	in->err = err;
}

void inject_clear(void)
{
	n_injections = 0;
}

unsigned inject_hits(void)
{
	return n_hits;
}

int inject_errno(const char *name)
{
	static const struct {
		const char *name;
		int err;
	} names[] = {
	    {"ENOENT", ENOENT}, {"ESRCH", ESRCH},   {"EACCES", EACCES},
	    {"EPERM", EPERM},	{"EMFILE", EMFILE}, {"ENFILE", ENFILE},
	    {"EIO", EIO},	{"EINTR", EINTR},   {"ENOMEM", ENOMEM},
	    {"ESPIPE", ESPIPE}, {"EINVAL", EINVAL}, {"empty", 0},
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, name) == 0)
			return names[i].err;
	return -1;
}

/* What is to become of a call on this path: -1 as always, else an errno. */
static int fate(const char *path, const char *call)
{
	size_t n = strlen(path);

	for (unsigned i = 0; i < n_injections; i++) {
		const struct injection *in = &injections[i];
		size_t m = strlen(in->path);

		if (strcmp(in->call, call) || n < m ||
		    strcmp(path + n - m, in->path) ||
		    (n > m && path[n - m - 1] != '/'))
			continue;
		__atomic_fetch_add(&n_hits, 1, __ATOMIC_RELAXED);
		return in->err;
	}
	return -1;
}

static void join_path(char *buf, int dirfd, const char *path)
{
	pthread_mutex_lock(&lock);
	if (path[0] != '/' && dirfd >= 0 && dirfd < FDS)
		snprintf(buf, PATH_SIZE, "%.120s/%.120s", fd_path[dirfd], path);
	else
		snprintf(buf, PATH_SIZE, "%.240s", path);
	pthread_mutex_unlock(&lock);
}

static void note_fd(int fd, const char *path)
{
	if (fd < 0 || fd >= FDS)
		return;
	pthread_mutex_lock(&lock);
	snprintf(fd_path[fd], PATH_SIZE, "%.240s", path);
	pthread_mutex_unlock(&lock);
}

int __real_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat64(int dirfd, const char *path, int flags, ...);

static int open_at(int dirfd, const char *path, int flags)
{
	char whole[PATH_SIZE];
	int err, fd;

	join_path(whole, dirfd, path);
	err = fate(whole, "open");
	if (err > 0) {
		errno = err;
		return -1;
	}
	fd = __real_openat(dirfd, path, flags, 0);
	note_fd(fd, whole);
	return fd;
}

int __wrap_openat(int dirfd, const char *path, int flags, ...)
{
	return open_at(dirfd, path, flags);
}

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	return open_at(dirfd, path, flags);
}

/* A descriptor that is moved takes its path along. */
int __real_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...);

static int move_fd(int fd, int cmd, long arg)
{
	char path[PATH_SIZE] = "";
	int r = __real_fcntl(fd, cmd, arg);

	if (cmd == F_DUPFD_CLOEXEC && r >= 0) {
		join_path(path, fd, "");
		path[strlen(path) ? strlen(path) - 1 : 0] = '\0';
		note_fd(r, path);
	}
	return r;
}

int __wrap_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	long arg;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	return move_fd(fd, cmd, arg);
}

int __wrap_fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	long arg;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	return move_fd(fd, cmd, arg);
}

static int fate_of_fd(int fd, const char *call)
{
	char path[PATH_SIZE];

	join_path(path, fd, "");
	path[strlen(path) ? strlen(path) - 1 : 0] = '\0';
	return fate(path, call);
}

ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	int err = fate_of_fd(fd, "read");

	if (err < 0)
		return __real_read(fd, buf, n);
	errno = err;
	return err ? -1 : 0;
}

ssize_t __real_pread(int fd, void *buf, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t at);

ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t at)
{
	int err = fate_of_fd(fd, "pread");

	if (err < 0)
		err = fate_of_fd(fd, "read");
	if (err < 0)
		return __real_pread(fd, buf, n, at);
	errno = err;
	return err ? -1 : 0;
}

ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t at)
{
	return __wrap_pread(fd, buf, n, at);
}

ssize_t __real_readlinkat(int dirfd, const char *path, char *buf, size_t n);
ssize_t __wrap_readlinkat(int dirfd, const char *path, char *buf, size_t n);

ssize_t __wrap_readlinkat(int dirfd, const char *path, char *buf, size_t n)
{
	char whole[PATH_SIZE];
	int err;

	join_path(whole, dirfd, path);
	err = fate(whole, "readlink");
	if (err < 0)
		return __real_readlinkat(dirfd, path, buf, n);
	errno = err;
	return -1;
}

int __real_fstatat(int dirfd, const char *path, struct stat *st, int flags);
int __wrap_fstatat(int dirfd, const char *path, struct stat *st, int flags);
int __wrap_fstatat64(int dirfd, const char *path, struct stat *st, int flags);

int __wrap_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	char whole[PATH_SIZE];
	int err;

	join_path(whole, dirfd, path);
	err = fate(whole, "stat");
	if (err < 0)
		return __real_fstatat(dirfd, path, st, flags);
	errno = err;
	return -1;
}

int __wrap_fstatat64(int dirfd, const char *path, struct stat *st, int flags)
{
	return __wrap_fstatat(dirfd, path, st, flags);
}
