/* SPDX-License-Identifier: MIT */
/*
 * Makes a population of processes for benchmarks:
 *
 *	population IDLE ACTIVE FDS
 *
 * IDLE processes sleep for good, ACTIVE ones wake up 50 times a second and do
 * a little; each has FDS descriptors open. Prints "ready PID" when all are
 * there, the PID being its own, and stays until its standard input ends; then
 * every one of them is gone before it returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

static void be_member(int active, int n_fds, pid_t parent)
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
		pause();
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
	int n_idle, n_active, n_fds, n = 0;
	pid_t *child, self = getpid();
	char c;

	if (argc != 4) {
		fprintf(stderr, "usage: population IDLE ACTIVE FDS\n");
		return 2;
	}
	n_idle = number(argv[1], 100000);
	n_active = number(argv[2], 100000);
	n_fds = number(argv[3], 1000);
	child = calloc((size_t)(n_idle + n_active) + 1, sizeof(*child));
	if (!child)
		return 1;
	for (int i = 0; i < n_idle + n_active; i++) {
		pid_t pid = fork();

		if (pid == 0)
			be_member(i >= n_idle, n_fds, self);
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
