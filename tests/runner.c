/* SPDX-License-Identifier: MIT */
/*
 * Work whose calls may hang: a list of pipes is read one after the other, and
 * some of them nobody writes to.
 */
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "runner.h"
#include "tap.h"

enum {
	ITEMS = 40,
	PATIENCE_MS = 30,
};

struct items {
	int pipe[ITEMS][2];
	unsigned at;
	unsigned n_done, n_given_up;
	bool stop; /* the work cannot go on once it was given up */
};

static void items_open(struct items *it)
{
	*it = (struct items){0};
	for (unsigned i = 0; i < ITEMS; i++)
		check_int(pipe2(it->pipe[i], O_CLOEXEC), 0);
}

static void items_close(struct items *it)
{
	for (unsigned i = 0; i < ITEMS; i++) {
		close(it->pipe[i][0]);
		close(it->pipe[i][1]);
	}
}

static void let_go(struct items *it, unsigned i)
{
	check_int(write(it->pipe[i][1], "x", 1), 1);
}

static void work(void *arg, struct guard *g)
{
	struct items *it = arg;

	while (it->at < ITEMS) {
		int fd = it->pipe[it->at++][0];
		char c;

		guard_enter(g);
		(void)!read(fd, &c, 1);
		if (!guard_leave(g))
			guard_quit(g);
		it->n_done++;
	}
}

static bool stuck(void *arg)
{
	struct items *it = arg;

	it->n_given_up++;
	return !it->stop;
}

static int run(struct runner *r, struct items *it)
{
	return runner_run(r, work, stuck, it, PATIENCE_MS * NSEC_PER_MSEC);
}

/* Lost threads come back as soon as they can. */
static bool all_come_back(struct runner *r)
{
	for (unsigned i = 0; i < 500 && lane_stuck(r->lane) > 0; i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	return lane_stuck(r->lane) == 0;
}

static void nothing_hangs(void)
{
	struct runner r;
	struct items it;

	items_open(&it);
	check_int(runner_open(&r, "test"), 0);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < ITEMS; i++)
			let_go(&it, i);
		it.at = 0;
		check_int(run(&r, &it), 0);
	}
	check_int(it.n_done, 3 * ITEMS);
	check_int(it.n_given_up, 0);
	check(runner_close(&r));
	items_close(&it);
}

static void some_hang(void)
{
	struct runner r;
	struct items it;

	items_open(&it);
	check_int(runner_open(&r, "test"), 0);
	for (unsigned i = 0; i < ITEMS; i++)
		if (i % 10 != 3)
			let_go(&it, i);
	check_int(run(&r, &it), 0);
	check_int(it.n_done, ITEMS - 4);
	check_int(it.n_given_up, 4);
	check_int(lane_stuck(r.lane), 4);
	for (unsigned i = 3; i < ITEMS; i += 10)
		let_go(&it, i);
	check(all_come_back(&r));
	/* Who came back late has done nothing more. */
	check_int(it.n_done, ITEMS - 4);
	for (unsigned i = 0; i < ITEMS; i++)
		let_go(&it, i);
	it.at = 0;
	check_int(run(&r, &it), 0);
	check_int(it.n_done, 2 * ITEMS - 4);
	check(runner_close(&r));
	items_close(&it);
}

static void too_many_hang(void)
{
	struct runner r;
	struct items it;

	items_open(&it);
	check_int(runner_open(&r, "test"), 0);
	check_int(run(&r, &it), -EAGAIN);
	check_int(it.n_given_up, RUNNER_STUCK_MAX);
	check_int(it.at, RUNNER_STUCK_MAX);
	it.at = 0;
	check_int(run(&r, &it), -EAGAIN);
	check_int(it.at, 0);
	for (unsigned i = 0; i < ITEMS; i++)
		let_go(&it, i);
	check(all_come_back(&r));
	/* Those that hung have taken the first bytes. */
	it.at = RUNNER_STUCK_MAX;
	check_int(run(&r, &it), 0);
	check_int(it.n_done, ITEMS - RUNNER_STUCK_MAX);
	check(runner_close(&r));
	items_close(&it);
}

static void cannot_go_on(void)
{
	struct runner r;
	struct items it;

	items_open(&it);
	it.stop = true;
	check_int(runner_open(&r, "test"), 0);
	check_int(run(&r, &it), -EAGAIN);
	check_int(it.n_given_up, 1);
	let_go(&it, 0);
	check(all_come_back(&r));
	check(runner_close(&r));
	items_close(&it);
}

static void closed_while_one_hangs(void)
{
	struct timespec before, after;
	struct runner r;
	struct items it;

	items_open(&it);
	it.stop = true;
	check_int(runner_open(&r, "test"), 0);
	check_int(run(&r, &it), -EAGAIN);
	clock_gettime(CLOCK_MONOTONIC, &before);
	check(!runner_close(&r));
	clock_gettime(CLOCK_MONOTONIC, &after);
	check(after.tv_sec - before.tv_sec <= 1);
	let_go(&it, 0);
	/* It frees what was left to it; LeakSanitizer would tell. */
	nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	items_close(&it);
}

static void slow_but_running(void *arg, struct guard *g)
{
	unsigned *n = arg;
	struct timespec from, now;

	guard_enter(g);
	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - from.tv_sec) * 1000 +
		   (now.tv_nsec - from.tv_nsec) / 1000000 <
	       5 * PATIENCE_MS);
	if (!guard_leave(g))
		guard_quit(g);
	++*n;
}

static bool never_stuck(_unused_ void *arg)
{
	tap_fail(__FILE__, __LINE__, "given up");
	return true;
}

static void busy(void)
{
	struct runner r;
	unsigned n = 0;

	check_int(runner_open(&r, "test"), 0);
	check_int(runner_run(&r, slow_but_running, never_stuck, &n,
			     PATIENCE_MS * NSEC_PER_MSEC),
		  0);
	check_int(n, 1);
	check(runner_close(&r));
}

int main(void)
{
	TEST("work that does not hang is done by one thread", nothing_hangs);
	TEST("calls that hang are given up, and the work goes on", some_hang);
	TEST("when too many threads are lost the work rests", too_many_hang);
	TEST("work that cannot go on is left", cannot_go_on);
	TEST("closing does not wait for who hangs", closed_while_one_hangs);
	TEST("who runs is not given up, however long it takes", busy);
	return tap_done();
}
