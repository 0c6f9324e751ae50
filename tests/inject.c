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
	INJECTIONS = 256,
	CALLS = 16 * 1024,
	PATH_SIZE = 256,
};

struct call {
	char path[PATH_SIZE];
	char call[12];
};

static struct injection {
	struct call on;
	int err;
	unsigned left; /* 0: for ever */
} injections[INJECTIONS];

static unsigned n_injections;
static struct call calls[CALLS]; /* since inject_forget() */
static unsigned n_calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void inject_add(const char *path, const char *call, int err, unsigned times)
{
	struct injection *in;

	pthread_mutex_lock(&lock);
	if (n_injections < INJECTIONS) {
		in = &injections[n_injections++];
		snprintf(in->on.path, sizeof(in->on.path), "%s", path);
		snprintf(in->on.call, sizeof(in->on.call), "%s", call);
		in->err = err;
		in->left = times;
	}
	pthread_mutex_unlock(&lock);
}

void inject_clear(void)
{
	pthread_mutex_lock(&lock);
	n_injections = 0;
	pthread_mutex_unlock(&lock);
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
	    {"ESPIPE", ESPIPE}, {"EINVAL", EINVAL}, {"EAGAIN", EAGAIN},
	    {"ENODEV", ENODEV}, {"empty", 0},	    {"ok", INJECT_NOTHING},
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, name) == 0)
			return names[i].err;
	return INJECT_UNKNOWN;
}

static bool is_named(const struct call *name, const char *path,
		     const char *call)
{
	size_t n = strlen(path), m = strlen(name->path);

	return strcmp(name->call, call) == 0 && n >= m &&
	       strcmp(path + n - m, name->path) == 0 &&
	       (n == m || m == 0 || path[n - m - 1] == '/');
}

unsigned inject_calls(const char *path, const char *call)
{
	struct call name;
	unsigned n = 0;

	snprintf(name.path, sizeof(name.path), "%s", path);
	snprintf(name.call, sizeof(name.call), "%s", call);
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < n_calls; i++)
		n += is_named(&name, calls[i].path, calls[i].call);
	pthread_mutex_unlock(&lock);
	return n;
}

void inject_forget(void)
{
	pthread_mutex_lock(&lock);
	n_calls = 0;
	pthread_mutex_unlock(&lock);
}

/* What is to become of a call on this path. */
static int fate(const char *path, const char *call)
{
	int err = INJECT_NOTHING;

	pthread_mutex_lock(&lock);
	if (n_calls < CALLS) {
		struct call *c = &calls[n_calls++];

		strcpy(c->path, path);
		strcpy(c->call, call);
	}
	for (unsigned i = n_injections; i-- > 0;) {
		struct injection *in = &injections[i];

		if (!is_named(&in->on, path, call))
			continue;
		err = in->err;
		if (in->left && --in->left == 0) {
			n_injections--;
			memmove(in, in + 1,
				(n_injections - i) * sizeof(injections[0]));
		}
		break;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* The kernel knows what a descriptor is of, also a moved one. */
static void path_of_fd(char *buf, int fd)
{
	static const char suffix[] = " (deleted)";
	const size_t cut = sizeof(suffix) - 1;
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, buf, PATH_SIZE - 1);
	if (n < 0)
		n = 0;
	if ((size_t)n > cut && memcmp(buf + n - cut, suffix, cut) == 0)
		n -= (ssize_t)cut;
	buf[n] = '\0';
}

static int fate_of_fd(int fd, const char *call)
{
	char path[PATH_SIZE];

	path_of_fd(path, fd);
	return fate(path, call);
}

static int fate_at(int dirfd, const char *name, const char *call)
{
	char dir[PATH_SIZE] = "", path[PATH_SIZE];

	if (name[0] != '/')
		path_of_fd(dir, dirfd);
	snprintf(path, sizeof(path), "%.180s/%.70s", dir, name);
	return fate(path, call);
}

static int fail(int err)
{
	errno = err;
	return -1;
}

int __real_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat64(int dirfd, const char *path, int flags, ...);

int __wrap_openat(int dirfd, const char *path, int flags, ...)
{
	int err = fate_at(dirfd, path, "open");

	return err > 0 ? fail(err) : __real_openat(dirfd, path, flags, 0);
}

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	return __wrap_openat(dirfd, path, flags);
}

int __real_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...);

static int move_fd(int fd, int cmd, long arg)
{
	int err = INJECT_NOTHING;

	if (cmd == F_DUPFD_CLOEXEC && arg > 0)
		err = fate_of_fd(fd, "keep");
	return err > 0 ? fail(err) : __real_fcntl(fd, cmd, arg);
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

ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	int err = fate_of_fd(fd, "read");

	if (err == INJECT_NOTHING)
		return __real_read(fd, buf, n);
	return err ? fail(err) : 0;
}

ssize_t __real_pread(int fd, void *buf, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t at);

ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t at)
{
	int err = fate_of_fd(fd, "pread");

	if (err == INJECT_NOTHING)
		err = fate_of_fd(fd, "read");
	if (err == INJECT_NOTHING)
		return __real_pread(fd, buf, n, at);
	return err ? fail(err) : 0;
}

ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t at)
{
	return __wrap_pread(fd, buf, n, at);
}

ssize_t __real_readlinkat(int dirfd, const char *path, char *buf, size_t n);
ssize_t __wrap_readlinkat(int dirfd, const char *path, char *buf, size_t n);

ssize_t __wrap_readlinkat(int dirfd, const char *path, char *buf, size_t n)
{
	int err = fate_at(dirfd, path, "readlink");

	return err > 0 ? fail(err) : __real_readlinkat(dirfd, path, buf, n);
}

int __real_fstatat(int dirfd, const char *path, struct stat *st, int flags);
int __wrap_fstatat(int dirfd, const char *path, struct stat *st, int flags);
int __wrap_fstatat64(int dirfd, const char *path, struct stat *st, int flags);

int __wrap_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	int err = fate_at(dirfd, path, "stat");

	return err > 0 ? fail(err) : __real_fstatat(dirfd, path, st, flags);
}

int __wrap_fstatat64(int dirfd, const char *path, struct stat *st, int flags)
{
	return __wrap_fstatat(dirfd, path, st, flags);
}
