/* SPDX-License-Identifier: MIT */
/*
 * Whether processes are found without listing /proc. On a real kernel; other
 * processes may be born meanwhile, so that tests about nobody being born try
 * several times.
 */
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"
#include "proctab.h"
#include "tap.h"

enum {
	TRIES = 200,
};

static struct procfs fs;
static struct proctab tab;
static struct moment now;

static void tick(void)
{
	now.mono_ns += NSEC_PER_SEC;
	now.boot_ns += NSEC_PER_SEC;
	check_int(proctab_list(&tab, &now), 0);
	check_int(proctab_gate(&tab, &now), 0);
	for (size_t i = 0; i < tab.n_due; i++) {
		struct growth growth;
		struct proc_entry *e = &tab.entry[tab.due[i]];

		proctab_look(&tab, e, &growth);
		proctab_leave(&tab, e->proc);
	}
}

static bool is_there(pid_t pid)
{
	for (size_t i = 0; i < tab.n_procs; i++)
		if (tab.entry[i].pid == pid &&
		    !(tab.entry[i].proc->flags & PROC_IS_GONE))
			return true;
	return false;
}

/* Did the tick get along without a listing? */
static bool tick_without_listing(void)
{
	uint64_t before = fs.counts.n_listing;

	tick();
	return fs.counts.n_listing == before;
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void nobody_born(void)
{
	bool seen = false;

	for (unsigned i = 0; i < TRIES && !seen; i++)
		seen = tick_without_listing();
	check(seen);
	check(is_there(getpid()));
}

static void born(void)
{
	bool seen = false;

	for (unsigned i = 0; i < TRIES && !seen; i++) {
		pid_t pid = start_child();

		seen = tick_without_listing();
		check(is_there(pid));
		end_child(pid);
		tick();
		check(!is_there(pid));
	}
	check(seen);
}

static void *sleep_for_good(_unused_ void *arg)
{
	pause();
	return NULL;
}

static void threads(void)
{
	pthread_t thread;
	pid_t tid;

	check_int(pthread_create(&thread, NULL, sleep_for_good, NULL), 0);
	tick();
	for (tid = getpid() + 1; tid < getpid() + 100; tid++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/task/%d", (int)tid);
		if (access(path, F_OK) == 0)
			check(!is_there(tid));
	}
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

static void many_born(void)
{
	uint64_t before;

	tick();
	before = fs.counts.n_listing;
	/* More numbers than there are processes: then listing is cheaper. */
	for (size_t i = 0; i < tab.n_procs + 200; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	tick();
	check(fs.counts.n_listing > before);
}

/* A free number far from those that are given in turn. */
static pid_t free_number(void)
{
	pid_t mine = getpid();

	for (pid_t pid = mine > 20000 ? 5000 : 30000;; pid++)
		if (kill(pid, 0) < 0 && errno == ESRCH)
			return pid;
}

static void own_number(void)
{
	pid_t want = free_number();
	struct clone_args args = {.exit_signal = SIGCHLD,
				  .set_tid = (uint64_t)(uintptr_t)&want,
				  .set_tid_size = 1};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0) {
		pause();
		_exit(0);
	}
	if (pid < 0) {
		tap_skip("clone3 with set_tid: %s", strerror(errno));
		return;
	}
	now.mono_ns += BIRTHS_TRUST_NS;
	tick();
	check(is_there((pid_t)pid));
	end_child((pid_t)pid);
}

static void reused_number(void)
{
	bool seen = false;

	for (unsigned i = 0; i < TRIES && !seen; i++) {
		pid_t want = start_child(), again;
		struct clone_args args = {.exit_signal = SIGCHLD,
					  .set_tid = (uint64_t)(uintptr_t)&want,
					  .set_tid_size = 1};
		const struct proc *before;

		tick();
		before = NULL;
		for (size_t k = 0; k < tab.n_procs; k++)
			if (tab.entry[k].pid == want)
				before = tab.entry[k].proc;
		check(before != NULL);
		end_child(want);
		/* Starts are told in hundredths of a second. */
		usleep(20000);
		again = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
		if (again == 0) {
			pause();
			_exit(0);
		}
		if (again < 0) {
			tap_skip("clone3 with set_tid: %s", strerror(errno));
			return;
		}
		seen = tick_without_listing();
		for (size_t k = 0; k < tab.n_procs; k++)
			if (tab.entry[k].pid == want)
				check(tab.entry[k].proc->flags & PROC_BORN);
		end_child(again);
	}
}

int main(void)
{
	struct procfs_options o = {.root = "/proc"};
	struct timespec ts;

	if (procfs_open(&fs, &o) < 0 || !fs.has_clocks) {
		TEST("processes are found by their clocks", nobody_born);
		return tap_done();
	}
	proctab_init(&tab, &fs);
	clock_gettime(CLOCK_BOOTTIME, &ts);
	now.boot_ns = (uint64_t)ts.tv_sec * NSEC_PER_SEC - 10 * NSEC_PER_SEC;
	now.mono_ns = now.boot_ns;
	tick();
	tick();
	TEST("without births nothing is listed, and nobody is lost",
	     nobody_born);
	TEST("one who is born is found, one who ends leaves, without a listing",
	     born);
	TEST("a new thread is no process", threads);
	TEST("after very many births /proc is listed", many_born);
	TEST("one who chose its number is found by the next listing",
	     own_number);
	TEST("a number that is used again within a tick is another process",
	     reused_number);
	proctab_done(&tab);
	procfs_close(&fs);
	return tap_done();
}
