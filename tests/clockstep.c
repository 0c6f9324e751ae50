/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into collectd by tests/soak-daemons: the time of day is off by as
 * many seconds as the text in the file that PROCTALLY_CLOCK names says. The
 * host's own clock is not touched.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
	TEXT_SIZE = 32,
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

__attribute__((visibility("default"))) int clock_gettime(clockid_t id,
							 struct timespec *ts)
{
	int r = real_clock_gettime(id, ts);

	if (r == 0 && id == CLOCK_REALTIME && offset)
		ts->tv_sec += atol(offset);
	return r;
}
