/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into collectd by tests/soak-daemons: the time of day is off by as
 * many seconds as the text in the file that PROCTALLY_CLOCK names says. The
 * host's own clock is not touched.
 *
 * It also has malloc give back what it keeps free, every few seconds, so that
 * the resident memory of the daemon is what is in use. Without that it is the
 * most that was ever queued at once in collectd, and grows whenever chance has
 * it that a little more is.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
	TEXT_SIZE = 32,
	TRIM_S = 5,
};

static int (*real_clock_gettime)(clockid_t id, struct timespec *ts);
static const char *offset;

__attribute__((constructor)) static void find_all(void)
{
	const char *path = getenv("PROCTALLY_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *p;

	*(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	if (fd < 0)
		return;
	p = mmap(NULL, TEXT_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		offset = p;
	close(fd);
}

static void trim(void)
{
	static _Atomic time_t last;
	struct timespec now;
	time_t was = last;

	if (real_clock_gettime(CLOCK_MONOTONIC, &now) == 0 &&
	    now.tv_sec - was >= TRIM_S &&
	    atomic_compare_exchange_strong(&last, &was, now.tv_sec))
		malloc_trim(0);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id,
							 struct timespec *ts)
{
	int r = real_clock_gettime(id, ts);

	if (r == 0 && id == CLOCK_REALTIME && offset) {
		ts->tv_sec += atol(offset);
		trim();
	}
	return r;
}
