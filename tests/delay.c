/* SPDX-License-Identifier: MIT */
/*
 * Delays of real processes, beside what /proc tells of each thread. Two that
 * share a processor have to wait for it; stopped, their counts stand still.
 */
#include "delay.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "clocks.h"
#include "monitor.h"
#include "proctext.h"
#include "tap.h"

enum {
	PATIENCE = 6000, /* times 10 ms */
	WAITED_MS = 50,
};

static struct delay d;

/* Returns false, and skips the test, where nobody tells. */
static bool can_open(void)
{
	int r = delay_open(&d);

	if (r == DELAY_MISSING)
		tap_skip("no taskstats here");
	else if (r == DELAY_DENIED)
		tap_skip("not CAP_NET_ADMIN");
	else if (r == 0 && !(d.have & 1u << DELAY_CPU))
		tap_skip("the kernel does not count turns");
	else
		check_int(r, 0);
	return r == 0 && d.have & 1u << DELAY_CPU;
}

static void *burn(_unused_ void *arg)
{
	for (volatile unsigned i = 0;; i++)
		;
	return NULL;
}

/* Somebody else's thread that is gone stays in the sum of its process. */
static void *burn_shortly(_unused_ void *arg)
{
	uint64_t until = clocks_thread_cpu() + 30 * NSEC_PER_MSEC;

	while (clocks_thread_cpu() < until)
		;
	return NULL;
}

/* On one and the same processor; with a second thread, and one that ended. */
static pid_t start(bool threads)
{
	int owner = getpid();
	pid_t pid = fork();
	pthread_t t;
	cpu_set_t one;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != owner)
		_exit(1);
	prctl(PR_SET_NAME, "delaytest");
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (threads) {
		pthread_create(&t, NULL, burn_shortly, NULL);
		pthread_create(&t, NULL, burn, NULL);
	}
	/* It waits for itself, too: two threads want the same processor. */
	burn(NULL);
	_exit(0);
}

static void stop(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	check_int(waitpid(pid, &status, WUNTRACED), pid);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The second number of schedstat of a thread; nanoseconds. */
static uint64_t waited(pid_t pid, pid_t tid)
{
	unsigned long long ran, waited = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid,
		 (int)tid);
	f = fopen(path, "re");
	check(f && fscanf(f, "%llu %llu", &ran, &waited) == 2);
	if (f)
		fclose(f);
	return waited;
}

static uint64_t delay_of(pid_t pid)
{
	uint64_t v[DELAY_N] = {0};

	check_int(delay_read(&d, NULL, pid, v), 0);
	return v[DELAY_CPU];
}

static void await(pid_t pid, uint64_t ms)
{
	for (unsigned i = 0; i < PATIENCE; i++) {
		if (delay_of(pid) >= ms * NSEC_PER_MSEC)
			return;
		usleep(10000);
	}
}

static void one_thread(void)
{
	pid_t pid, other;
	uint64_t v[DELAY_N];

	if (!can_open())
		return;
	pid = start(false);
	other = start(true);
	await(pid, 1);
	stop(other);
	stop(pid);
	check(delay_of(pid) > 0);
	check_u64(delay_of(pid), waited(pid, pid));
	end(other);
	end(pid);
	check_int(delay_read(&d, NULL, pid, v), PROC_GONE);
	delay_close(&d);
}

static void threads(void)
{
	pid_t pid;
	uint64_t first, all;

	if (!can_open())
		return;
	pid = start(true);
	await(pid, WAITED_MS);
	stop(pid);
	first = waited(pid, pid);
	all = delay_of(pid);
	check(all >= WAITED_MS * NSEC_PER_MSEC);
	/* The first thread is a part of it; what /proc/PID has is no more. */
	check(all > first);
	end(pid);
	delay_close(&d);
}

/* --- Through the monitor --- */

static struct {
	bool has_cpu, has_blkio, has_records;
	uint64_t cpu_ms, n_anomalies;
} seen;

static void take(_unused_ void *arg, const struct value_out *v)
{
	if (strcmp(v->type, "gauge") == 0 &&
	    strcmp(v->instance, "exit_records") == 0)
		seen.has_records = v->d[0] > 0;
	if (v->instance && strcmp(v->instance, "counter_anomalies") == 0)
		seen.n_anomalies = v->u[0];
	if (strcmp(v->group, "tested") != 0 ||
	    strcmp(v->type, "total_time_in_ms") != 0)
		return;
	if (strcmp(v->instance, "delay_cpu") == 0) {
		seen.has_cpu = true;
		seen.cpu_ms = v->u[0];
		check(v->derive);
	}
	seen.has_blkio |= strcmp(v->instance, "delay_blkio") == 0;
}

static unsigned tick(struct monitor *m, const char *event)
{
	struct moment now = clocks_now();
	struct monitor_event e;
	unsigned n = 0;

	seen.has_cpu = seen.has_blkio = false;
	check_int(monitor_tick(m, &now, take, NULL), 0);
	while (monitor_take_event(m, &e))
		n += strstr(e.text, event) != NULL;
	return n;
}

/* One that no tick sees. */
static void short_life(struct monitor *m)
{
	uint64_t before = seen.cpu_ms, waited_ns;
	pid_t pid = start(true);

	await(pid, WAITED_MS);
	stop(pid);
	waited_ns = delay_of(pid);
	end(pid);
	tick(m, "");
	check(seen.cpu_ms >= before + waited_ns / NSEC_PER_MSEC);
	check_int(seen.has_blkio, d.have >> DELAY_BLKIO & 1);
}

/* The kernel tells 0 of it, which is no counter that fell. */
static void zombie(struct monitor *m)
{
	pid_t pid = start(false), other = start(true);
	siginfo_t info;

	await(pid, 1);
	tick(m, "");
	kill(pid, SIGKILL);
	check_int(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	tick(m, "");
	check(seen.has_cpu);
	check_u64(seen.n_anomalies, 0);
	end(pid);
	end(other);
}

static void of_a_group(void)
{
	static const char rules[] = "rules:\n"
				    "- {name: tested, comm: delaytest, "
				    "collect: {delay: true}}\n";
	char path[] = "/tmp/proctally-delay.XXXXXX";
	struct monitor_options o = {.rules_path = path};
	struct monitor *m = NULL;
	uint64_t before, after;
	bool has_io;
	pid_t pid;
	int fd;

	if (!can_open())
		return;
	has_io = d.have >> DELAY_BLKIO & 1;
	fd = mkostemp(path, O_CLOEXEC);
	check(write(fd, rules, sizeof(rules) - 1) == sizeof(rules) - 1);
	close(fd);
	pid = start(true);
	await(pid, 1);
	stop(pid);
	before = delay_of(pid);
	check_int(monitor_open(&o, &m), 0);
	check_int(tick(m, "kernel.task_delayacct=1"), !has_io);
	/* What was before is nobody's growth. */
	check(seen.has_cpu);
	check_u64(seen.cpu_ms, 0);
	kill(pid, SIGCONT);
	await(pid, before / NSEC_PER_MSEC + WAITED_MS);
	stop(pid);
	after = delay_of(pid);
	check_int(tick(m, "delay"), 0);
	check(seen.has_cpu);
	check_int(seen.has_blkio, has_io);
	check_u64(seen.cpu_ms, (after - before) / NSEC_PER_MSEC);
	end(pid);
	tick(m, "");
	check(seen.cpu_ms >= (after - before) / NSEC_PER_MSEC);
	if (seen.has_records)
		short_life(m);
	zombie(m);
	monitor_free(m);
	unlink(path);
	delay_close(&d);
}

int main(void)
{
	TEST("the wait of a thread for a processor is what /proc says",
	     one_thread);
	TEST("all threads of a process count, those that ended, too", threads);
	TEST("a group has what its members waited, seen by a tick or not",
	     of_a_group);
	return tap_done();
}
