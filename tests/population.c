/* SPDX-License-Identifier: MIT */
/*
 * Makes a population of processes for benchmarks:
 *
 *	population IDLE ACTIVE FDS [MIB [SECONDS]]
 *
 * IDLE processes sleep for good, or wake up once in SECONDS; ACTIVE ones wake
 * up 50 times a second and do a little. Each has FDS descriptors open, and all
 * share MIB of memory. Prints "ready PID" when all are
 * there, the PID being its own, and stays until its standard input ends; then
 * every one of them is gone before it returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void be_active(void)
{
	const struct timespec nap = {.tv_nsec = 20 * 1000 * 1000};

	for (;;) {
		volatile unsigned x = 0;

		for (unsigned i = 0; i < 20000; i++)
			x += i;
		nanosleep(&nap, NULL);
	}
}

static void be_member(int active, int n_fds, int seconds, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	prctl(PR_SET_NAME, active ? "pop-active" : "pop-idle");
	close(0);
	for (int i = 0; i < n_fds; i++)
		if (open("/dev/null", O_RDONLY) < 0)
			break;
	if (active)
		be_active();
	for (;;)
		seconds ? (int)sleep((unsigned)seconds) : pause();
}

/* In 4 KiB pages, as databases and runtimes have them at worst. */
static void fill_memory(size_t size)
{
	char *p = size ? mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
		       : NULL;

	if (p == MAP_FAILED) {
		perror("population: mmap");
		exit(1);
	}
	if (!p)
		return;
	madvise(p, size, MADV_NOHUGEPAGE);
	memset(p, 1, size);
}

static int number(const char *s, int max)
{
	char *end;
	long v = strtol(s, &end, 10);

	if (*end || v < 0 || v > max) {
		fprintf(stderr, "population: not a usable number: %s\n", s);
		exit(2);
	}
	return (int)v;
}

int main(int argc, char **argv)
{
	int n_idle, n_active, n_fds, seconds, n = 0;
	pid_t *child, self = getpid();
	char c;

	if (argc < 4 || argc > 6) {
		fprintf(stderr, "usage: population IDLE ACTIVE FDS "
				"[MIB [SECONDS]]\n");
		return 2;
	}
	n_idle = number(argv[1], 100000);
	n_active = number(argv[2], 100000);
	n_fds = number(argv[3], 1000);
	fill_memory((size_t)number(argc > 4 ? argv[4] : "0", 1024) << 20);
	seconds = number(argc > 5 ? argv[5] : "0", 3600);
	child = calloc((size_t)(n_idle + n_active) + 1, sizeof(*child));
	if (!child)
		return 1;
	for (int i = 0; i < n_idle + n_active; i++) {
		pid_t pid = fork();

		if (pid == 0)
			be_member(i >= n_idle, n_fds, seconds, self);
		if (pid < 0) {
			perror("population: fork");
			break;
		}
		child[n++] = pid;
	}
	/* The last ones are still getting ready. */
	usleep(500 * 1000);
	printf("ready %d %d\n", (int)self, n);
	fflush(stdout);
	while (read(0, &c, 1) > 0 || errno == EINTR)
		errno = 0;
	for (int i = 0; i < n; i++)
		kill(child[i], SIGKILL);
	for (int i = 0; i < n; i++)
		waitpid(child[i], NULL, 0);
	free(child);
	return n == n_idle + n_active ? 0 : 1;
}
