/* SPDX-License-Identifier: MIT */
/*
 * Makes processes that live for a moment: three services with children of
 * three kinds, as many a second as wanted, and what they used as the kernel
 * tells the services themselves.
 *
 *	storm RATE SECONDS [quick]
 *
 * The services are called PID-program, PID-fork and PID-shell, with our own
 * number, and wait for a line on standard input. When all of their children
 * ended, there is a line for each: its name, user and system
 * time of its children and of itself in microseconds, and how many there were.
 * They live on until standard input ends. "quick": children that do nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	N_SERVICES = 3,
	SPIN_US = 1500,
	PAGES = 64,
	PAGE = 4096,
	STACK = 16384,
};

extern char **environ;

static uint64_t now_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t in_us(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

static void run_program(char *const *argv)
{
	pid_t pid;

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) == 0)
		wait_for(pid);
}

static void program(void)
{
	static char path[] = "/bin/true";
	char *argv[] = {path, NULL};

	run_program(argv);
}

static void shell(void)
{
	static char path[] = "/bin/sh", option[] = "-c";
	static char text[] = "/bin/true; :";
	char *argv[] = {path, option, text, NULL};

	run_program(argv);
}

/* Never execs; works in its own time and in the kernel's. */
static void fork_and_work(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		uint64_t until =
		    now_ns(CLOCK_PROCESS_CPUTIME_ID) + SPIN_US * 1000;
		char *m = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (size_t i = 0; m != MAP_FAILED && i < PAGES; i++)
			m[i * PAGE] = 1;
		while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
			;
		_exit(0);
	}
	if (pid > 0)
		wait_for(pid);
}

static int end_at_once(void *arg)
{
	(void)arg;
	_exit(0);
}

static void end_quickly(void)
{
	static char stack[STACK] __attribute__((aligned(16)));
	pid_t pid = clone(end_at_once, stack + sizeof(stack),
			  CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);

	if (pid > 0)
		wait_for(pid);
}

static const struct kind {
	const char *name;
	void (*one)(void);
} kinds[N_SERVICES] = {
    {"program", program},
    {"fork", fork_and_work},
    {"shell", shell},
};

/* If the host is too slow it takes longer. */
static void make(void (*one)(void), double rate, uint64_t n)
{
	uint64_t began = now_ns(CLOCK_MONOTONIC);

	for (uint64_t i = 0; i < n; i++) {
		uint64_t due = began + (uint64_t)((double)i / rate * 1e9);
		struct timespec ts = {
		    .tv_sec = (time_t)(due / 1000000000),
		    .tv_nsec = (long)(due % 1000000000),
		};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		one();
	}
}

static void serve(const struct kind *kind, void (*one)(void), double rate,
		  double seconds, int go)
{
	uint64_t n = (uint64_t)(rate * seconds + 0.5);
	struct rusage children, self;
	char name[16], c;

	snprintf(name, sizeof(name), "%d-%s", (int)getppid(), kind->name);
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go, &c, 1) != 1)
		_exit(1);
	make(one, rate, n);
	getrusage(RUSAGE_CHILDREN, &children);
	getrusage(RUSAGE_SELF, &self);
	printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
	       "\n",
	       name, in_us(children.ru_utime), in_us(children.ru_stime),
	       in_us(self.ru_utime), in_us(self.ru_stime), n);
	fflush(stdout);
	while (read(go, &c, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	double rate = argc > 1 ? atof(argv[1]) / N_SERVICES : 0;
	double seconds = argc > 2 ? atof(argv[2]) : 0;
	int go[2];
	char line[16];

	if (rate <= 0 || seconds <= 0 || pipe(go) < 0) {
		fprintf(stderr, "usage: storm RATE SECONDS [quick]\n");
		return 1;
	}
	for (unsigned i = 0; i < N_SERVICES; i++) {
		if (fork() == 0) {
			close(go[1]);
			serve(&kinds[i], argc > 3 ? end_quickly : kinds[i].one,
			      rate, seconds, go[0]);
		}
	}
	puts("ready");
	fflush(stdout);
	if (read(STDIN_FILENO, line, sizeof(line)) > 0 &&
	    write(go[1], "ggg", N_SERVICES) == N_SERVICES)
		while (read(STDIN_FILENO, line, sizeof(line)) > 0)
			;
	close(go[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}
