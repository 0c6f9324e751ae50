/* SPDX-License-Identifier: MIT */
/*
 * See faults.h. With FAULTS_PRELOAD it is the library: PROCTALLY_FAULTS names
 * a file of two lines, of CONTROL_LINE bytes each. Whoever tests writes into
 * the first which calls are to fail: "0", none; "7", each seventh; "1 ENOMEM",
 * each of those that may fail so. Into the second the library writes how many
 * failed.
 */
#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	ERRS_MAX = 14,
};

static const struct fault_kind {
	const char *name;
	int err[ERRS_MAX];
} kinds[FAULT_N] = {
    [FAULT_OPEN] = {"open",
		    {EMFILE, ENFILE, ENOMEM, EINTR, EAGAIN, EACCES, EPERM,
		     ENOENT, ESRCH, EIO}},
    [FAULT_READ] = {"read",
		    {EINTR, EAGAIN, ENOMEM, EACCES, EPERM, ESRCH, EIO,
		     FAULT_SHORT, FAULT_EMPTY}},
    [FAULT_PREAD] = {"pread",
		     {EINTR, EAGAIN, ENOMEM, EACCES, EPERM, ESRCH, EIO, EINVAL,
		      ESPIPE, FAULT_SHORT, FAULT_EMPTY}},
    [FAULT_GETDENTS] = {"getdents",
			{EINTR, ENOMEM, EIO, EINVAL, ENOENT, FAULT_EMPTY}},
    [FAULT_LSEEK] = {"lseek", {EINVAL, EIO, ESPIPE}},
    [FAULT_STAT] = {"stat",
		    {EINTR, ENOMEM, EACCES, ENOENT, ESRCH, EIO, ENOSYS}},
    [FAULT_STATX] = {"statx", {EINTR, ENOMEM, EACCES, ENOENT, EIO, ENOSYS}},
    [FAULT_READLINK] = {"readlink",
			{EINTR, ENOMEM, EACCES, ENOENT, ESRCH, EIO, EINVAL}},
    [FAULT_FCNTL] = {"fcntl", {EMFILE, EINVAL, EINTR}},
    [FAULT_CLOSE] = {"close", {EINTR, EIO}},
    [FAULT_ACCESS] = {"access", {EACCES, ENOENT, EIO, ENOMEM}},
    [FAULT_CLOCK] = {"clock", {EINVAL, ESRCH, EPERM, ENOSYS, EINTR}},
    [FAULT_KCMP] = {"kcmp", {EPERM, ENOSYS, ESRCH}},
    [FAULT_RLIMIT] = {"rlimit", {EPERM, EINVAL}},
    [FAULT_MEMORY] = {"memory", {ENOMEM}},
    [FAULT_THREAD] = {"thread", {EAGAIN, ENOMEM, EPERM}},
    [FAULT_WAIT] = {"wait", {EINTR}},
    [FAULT_POLL] = {"poll", {EINTR, ENOMEM, EINVAL}},
    [FAULT_SOCKET] = {"socket", {EMFILE, ENFILE, ENOMEM, EPERM, EAFNOSUPPORT}},
    [FAULT_SEND] = {"send", {EINTR, EAGAIN, ENOBUFS, EPERM, ECONNREFUSED}},
    [FAULT_RECV] = {"recv", {EINTR, EAGAIN, ENOBUFS, ENOMEM}},
};

const char *fault_name(enum fault_call call)
{
	return kinds[call].name;
}

const char *fault_err_name(int err)
{
	return err == FAULT_SHORT   ? "short"
	       : err == FAULT_EMPTY ? "empty"
				    : strerrorname_np(err);
}

int fault_err(enum fault_call call, unsigned i)
{
	return i < ERRS_MAX ? kinds[call].err[i] : 0;
}

/* What is to become of this call: 0, an errno, or a FAULT_. */
static int fate(enum fault_call call, const void *caller);

#ifdef FAULTS_PRELOAD

/*
 * Each call goes to the next library's. All are looked up before any is made,
 * and before there are threads.
 */
#define DEFINE(ret, name, params)                                              \
	static __typeof__(ret(*) params) real_##name;                          \
	__attribute__((constructor(LOOK_UP))) static void find_##name(void)    \
	{                                                                      \
		*(void **)&real_##name = dlsym(RTLD_NEXT, #name);              \
	}                                                                      \
	__attribute__((visibility("default"))) ret name params;                \
	ret name params
#define REAL(name) real_##name

enum {
	CONTROL_LINE = 32,
};

/* Of constructors; those without a number come later. */
#define LOOK_UP 101

static char *control;
static atomic_uint n_calls, n_failed, n_kind[FAULT_N];

__attribute__((constructor)) static void open_control(void)
{
	const char *path = getenv("PROCTALLY_FAULTS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	control = mmap(NULL, 2 * CONTROL_LINE, PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);
	if (control == MAP_FAILED)
		control = NULL;
	close(fd);
}

static bool is_of_plugin(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname &&
	       strstr(info.dli_fname, "/proctally.so");
}

/* One after the other, or the one that is wanted; 0 if it does not fail so. */
static int next_err(enum fault_call call, const char *wanted)
{
	unsigned n = 0;

	for (; n < ERRS_MAX && kinds[call].err[n]; n++)
		if (strcmp(fault_err_name(kinds[call].err[n]), wanted) == 0)
			return kinds[call].err[n];
	return *wanted ? 0 : kinds[call].err[n_kind[call]++ % n];
}

static int fate(enum fault_call call, const void *caller)
{
	char wanted[CONTROL_LINE] = "";
	unsigned every = 0;
	int err;

	if (control)
		sscanf(control, "%u %31[A-Z]", &every, wanted);
	if (!every || !is_of_plugin(caller) || ++n_calls % every)
		return 0;
	err = next_err(call, wanted);
	if (err == 0)
		return 0;
	snprintf(control + CONTROL_LINE, CONTROL_LINE, "%-*u", CONTROL_LINE - 1,
		 ++n_failed);
	control[2 * CONTROL_LINE - 1] = '\n';
	return err;
}

#else

#define DEFINE(ret, name, params)                                              \
	ret __real_##name params;                                              \
	ret __wrap_##name params;                                              \
	ret __wrap_##name params
#define REAL(name) __real_##name

static struct {
	atomic_bool armed;
	enum fault_call call;
	unsigned n;
	int err;
	atomic_uint calls[FAULT_N], failed;
} fault;

static int fate(enum fault_call call, const void *caller)
{
	unsigned n;

	(void)caller;
	if (!fault.armed)
		return 0;
	n = ++fault.calls[call];
	if (fault.call != call || (fault.n && fault.n != n))
		return 0;
	/* Nobody is interrupted for ever, nor does a queue overflow so. */
	if (!fault.n && (fault.err == EINTR || fault.err == ENOBUFS) &&
	    n % 2 == 0)
		return 0;
	fault.failed++;
	return fault.err;
}

void fault_arm(enum fault_call call, unsigned n, int err)
{
	fault.call = call;
	fault.n = n;
	fault.err = err;
	fault.failed = 0;
	for (unsigned i = 0; i < FAULT_N; i++)
		fault.calls[i] = 0;
	fault.armed = true;
}

unsigned fault_disarm(void)
{
	fault.armed = false;
	return fault.failed;
}

unsigned fault_calls(enum fault_call call)
{
	return fault.calls[call];
}

#endif

#define FATE(call) fate(call, __builtin_return_address(0))

static int fail(int err)
{
	errno = err;
	return -1;
}

/* --- Files; their names in the C library have a 64 where there is one --- */

DEFINE(int, open64, (const char *path, int flags, ...))
{
	int err = FATE(FAULT_OPEN);
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return err ? fail(err) : REAL(open64)(path, flags, mode);
}

DEFINE(int, openat64, (int dir, const char *path, int flags, ...))
{
	int err = FATE(FAULT_OPEN);
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return err ? fail(err) : REAL(openat64)(dir, path, flags, mode);
}

DEFINE(ssize_t, read, (int fd, void *buf, size_t n))
{
	int err = FATE(FAULT_READ);
	ssize_t got;

	if (err > 0)
		return fail(err);
	got = err == FAULT_EMPTY ? 0 : REAL(read)(fd, buf, n);
	return err == FAULT_SHORT ? (got + 1) / 2 : got;
}

DEFINE(ssize_t, pread64, (int fd, void *buf, size_t n, off_t at))
{
	int err = FATE(FAULT_PREAD);
	ssize_t got;

	if (err > 0)
		return fail(err);
	got = err == FAULT_EMPTY ? 0 : REAL(pread64)(fd, buf, n, at);
	return err == FAULT_SHORT ? (got + 1) / 2 : got;
}

DEFINE(ssize_t, getdents64, (int fd, void *buf, size_t n))
{
	int err = FATE(FAULT_GETDENTS);

	if (err)
		return err > 0 ? fail(err) : 0;
	return REAL(getdents64)(fd, buf, n);
}

DEFINE(off_t, lseek64, (int fd, off_t at, int whence))
{
	int err = FATE(FAULT_LSEEK);

	return err ? fail(err) : REAL(lseek64)(fd, at, whence);
}

DEFINE(int, stat64, (const char *path, struct stat64 *st))
{
	int err = FATE(FAULT_STAT);

	return err ? fail(err) : REAL(stat64)(path, st);
}

DEFINE(int, fstat64, (int fd, struct stat64 *st))
{
	int err = FATE(FAULT_STAT);

	return err ? fail(err) : REAL(fstat64)(fd, st);
}

DEFINE(int, fstatat64,
       (int dir, const char *path, struct stat64 *st, int flags))
{
	int err = FATE(FAULT_STAT);

	return err ? fail(err) : REAL(fstatat64)(dir, path, st, flags);
}

DEFINE(int, statx,
       (int dir, const char *path, int flags, unsigned mask, struct statx *stx))
{
	int err = FATE(FAULT_STATX);

	return err ? fail(err) : REAL(statx)(dir, path, flags, mask, stx);
}

DEFINE(ssize_t, readlinkat, (int dir, const char *path, char *buf, size_t n))
{
	int err = FATE(FAULT_READLINK);

	return err ? fail(err) : REAL(readlinkat)(dir, path, buf, n);
}

DEFINE(int, fcntl64, (int fd, int cmd, ...))
{
	int err = FATE(FAULT_FCNTL);
	va_list ap;
	long arg;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	return err ? fail(err) : REAL(fcntl64)(fd, cmd, arg);
}

DEFINE(int, close, (int fd))
{
	int err = FATE(FAULT_CLOSE), r = REAL(close)(fd);

	return err ? fail(err) : r;
}

DEFINE(int, faccessat, (int dir, const char *path, int mode, int flags))
{
	int err = FATE(FAULT_ACCESS);

	return err ? fail(err) : REAL(faccessat)(dir, path, mode, flags);
}

/* --- What else a process has --- */

/*
 * A daemon's other calls may have six, and where there are fewer nobody looks
 * at the rest; a test makes none but ours.
 */
static unsigned n_args_of(long n)
{
#ifdef FAULTS_PRELOAD
	(void)n;
	return 6;
#else
	return n == SYS_clock_gettime ? 2 : n == SYS_kcmp ? 5 : 4;
#endif
}

DEFINE(long, syscall, (long n, ...))
{
	long arg[6] = {0};
	va_list ap;
	int err = 0;

	va_start(ap, n);
	for (unsigned i = 0; i < n_args_of(n); i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (n == SYS_clock_gettime)
		err = FATE(FAULT_CLOCK);
	else if (n == SYS_openat2)
		err = FATE(FAULT_OPEN);
	else if (n == SYS_kcmp)
		err = FATE(FAULT_KCMP);
	if (err)
		return fail(err);
	return REAL(syscall)(n, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

DEFINE(int, getrlimit64, (__rlimit_resource_t what, struct rlimit64 *rl))
{
	int err = FATE(FAULT_RLIMIT);

	return err ? fail(err) : REAL(getrlimit64)(what, rl);
}

DEFINE(int, setrlimit64, (__rlimit_resource_t what, const struct rlimit64 *rl))
{
	int err = FATE(FAULT_RLIMIT);

	return err ? fail(err) : REAL(setrlimit64)(what, rl);
}

DEFINE(int, poll, (struct pollfd * fd, nfds_t n, int timeout))
{
	int err = FATE(FAULT_POLL);

	return err ? fail(err) : REAL(poll)(fd, n, timeout);
}

DEFINE(int, socket, (int domain, int type, int protocol))
{
	int err = FATE(FAULT_SOCKET);

	return err ? fail(err) : REAL(socket)(domain, type, protocol);
}

DEFINE(int, setsockopt,
       (int fd, int level, int name, const void *val, socklen_t n))
{
	int err = FATE(FAULT_SOCKET);

	return err ? fail(err) : REAL(setsockopt)(fd, level, name, val, n);
}

DEFINE(ssize_t, send, (int fd, const void *buf, size_t n, int flags))
{
	int err = FATE(FAULT_SEND);

	return err ? fail(err) : REAL(send)(fd, buf, n, flags);
}

DEFINE(ssize_t, recv, (int fd, void *buf, size_t n, int flags))
{
	int err = FATE(FAULT_RECV);

	return err ? fail(err) : REAL(recv)(fd, buf, n, flags);
}

DEFINE(int, recvmmsg,
       (int fd, struct mmsghdr *msg, unsigned n, int flags,
	struct timespec *timeout))
{
	int err = FATE(FAULT_RECV);

	return err ? fail(err) : REAL(recvmmsg)(fd, msg, n, flags, timeout);
}

/* --- Threads; these return the errno --- */

DEFINE(int, pthread_create,
       (pthread_t * thread, const pthread_attr_t *attr, void *(*fn)(void *),
	void *arg))
{
	int err = FATE(FAULT_THREAD);

	return err ? err : REAL(pthread_create)(thread, attr, fn, arg);
}

DEFINE(int, pthread_cond_timedwait,
       (pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
	const struct timespec *restrict until))
{
	if (FATE(FAULT_WAIT))
		return 0;
	return REAL(pthread_cond_timedwait)(cond, mutex, until);
}

/* --- Memory --- */

DEFINE(void *, mmap64,
       (void *at, size_t n, int prot, int flags, int fd, off_t offset))
{
	int err = FATE(FAULT_MEMORY);

	if (err) {
		fail(err);
		return MAP_FAILED;
	}
	return REAL(mmap64)(at, n, prot, flags, fd, offset);
}

DEFINE(void *, mremap, (void *at, size_t old_n, size_t n, int flags, ...))
{
	int err = FATE(FAULT_MEMORY);

	if (err) {
		fail(err);
		return MAP_FAILED;
	}
	return REAL(mremap)(at, old_n, n, flags);
}

/* What looks up symbols may ask for some of this itself. */
#ifndef FAULTS_PRELOAD

#define MEMORY(name, params, args)                                             \
	DEFINE(void *, name, params)                                           \
	{                                                                      \
		if (FATE(FAULT_MEMORY)) {                                      \
			errno = ENOMEM;                                        \
			return NULL;                                           \
		}                                                              \
		return REAL(name) args;                                        \
	}

MEMORY(malloc, (size_t n), (n))
MEMORY(calloc, (size_t n, size_t size), (n, size))
MEMORY(realloc, (void *p, size_t n), (p, n))
MEMORY(reallocarray, (void *p, size_t n, size_t size), (p, n, size))

DEFINE(char *, strdup, (const char *s))
{
	return FATE(FAULT_MEMORY) ? errno = ENOMEM, NULL : REAL(strdup)(s);
}

DEFINE(char *, strndup, (const char *s, size_t n))
{
	return FATE(FAULT_MEMORY) ? errno = ENOMEM, NULL : REAL(strndup)(s, n);
}

DEFINE(int, vasprintf, (char **p, const char *fmt, va_list ap))
{
	return FATE(FAULT_MEMORY) ? fail(ENOMEM) : REAL(vasprintf)(p, fmt, ap);
}

DEFINE(int, asprintf, (char **p, const char *fmt, ...))
{
	va_list ap;
	int r;

	if (FATE(FAULT_MEMORY))
		return fail(ENOMEM);
	va_start(ap, fmt);
	r = REAL(vasprintf)(p, fmt, ap);
	va_end(ap);
	return r;
}

#endif
