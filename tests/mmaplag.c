/* SPDX-License-Identifier: MIT */
/*
 * How long mmap(2) and munmap(2) take in a process of some size while others
 * read its memory map, for benchmarks:
 *
 *	mmaplag MIB
 *
 * Fills MIB of memory in 4 KiB pages and prints "ready PID". Each line of its
 * standard input is a number of seconds for which a thread maps and unmaps a
 * page, 2,000 times a second; then the number of calls and the slowest one in
 * microseconds are printed. Ends with its standard input.
 *
 * Where it may, the thread runs before all others, so that it does not measure
 * how it waits for a processor.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct lag {
	double seconds;
	unsigned long n_calls;
	uint64_t slowest_ns;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void note(struct lag *l, uint64_t since_ns)
{
	uint64_t took = now_ns() - since_ns;

	l->n_calls++;
	if (took > l->slowest_ns)
		l->slowest_ns = took;
}

static void *measure(void *arg)
{
	const struct timespec nap = {.tv_nsec = 500 * 1000};
	const struct sched_param first = {.sched_priority = 1};
	struct lag *l = arg;
	uint64_t end = now_ns() + (uint64_t)(l->seconds * 1e9);

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	while (now_ns() < end) {
		uint64_t begin = now_ns();
		char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			break;
		note(l, begin);
		begin = now_ns();
		munmap(p, 4096);
		note(l, begin);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	size_t size = argc == 2 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	char line[64], *memory;

	if (!size) {
		fprintf(stderr, "usage: mmaplag MIB\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED ||
	    madvise(memory, size, MADV_NOHUGEPAGE) < 0) {
		perror("mmaplag");
		return 1;
	}
	memset(memory, 1, size);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		struct lag l = {.seconds = atof(line)};
		pthread_t thread;

		if (pthread_create(&thread, NULL, measure, &l) != 0)
			return 1;
		pthread_join(thread, NULL);
		printf("%lu %.0f\n", l.n_calls, (double)l.slowest_ns / 1e3);
		fflush(stdout);
	}
	return 0;
}
