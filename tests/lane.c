/* SPDX-License-Identifier: MIT */
/* The worker thread and its queue, with jobs that hang in a pipe. */
#include "lane.h"
#include "tap.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum {
	PATIENCE_MS = 20,
	LONG_MS = 20000, /* long enough on any machine */
};

struct job {
	struct lane_job job; /* first */
	int number;
	int read_fd; /* hangs in a read of this one; -1: does not */
	atomic_int *n_run, *n_released;
};

/* In which order jobs ran. */
static atomic_int n_order;
static int order[64];

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
	struct timespec ts = {.tv_nsec = ms * 1000000};

	nanosleep(&ts, NULL);
}

/* True once *n has reached `want`; gives up after LONG_MS. */
static bool reaches(atomic_int *n, int want)
{
	uint64_t until = now_ms() + LONG_MS;

	while (atomic_load(n) < want && now_ms() < until)
		pause_ms(1);
	return atomic_load(n) == want;
}

static void run(struct lane_job *lj)
{
	struct job *j = (struct job *)lj;
	char byte;
	int at = atomic_fetch_add(&n_order, 1);

	order[at % (int)ARRAY_SIZE(order)] = j->number;
	atomic_fetch_add(j->n_run, 1);
	while (j->read_fd >= 0 && read(j->read_fd, &byte, 1) < 0 &&
	       errno == EINTR)
		;
}

static void release(struct lane_job *lj)
{
	struct job *j = (struct job *)lj;
	atomic_int *n_released = j->n_released;

	free(j);
	atomic_fetch_add(n_released, 1);
}

struct fixture {
	struct lane *lane;
	int hang[2]; /* a pipe: jobs hang at one end, we let go at the other */
	atomic_int n_run, n_released;
	int n_submitted, n_taken;
};

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	atomic_store(&n_order, 0);
	check_int(pipe(f->hang), 0);
	f->lane = lane_open("test-lane", LANE_STUCK_MAX);
	check(f->lane);
}

static void submit(struct fixture *f, bool hangs)
{
	struct job *j = calloc(1, sizeof(*j));

	j->job.run = run;
	j->job.release = release;
	j->number = f->n_submitted++;
	j->read_fd = hangs ? f->hang[0] : -1;
	j->n_run = &f->n_run;
	j->n_released = &f->n_released;
	check_int(lane_submit(f->lane, &j->job), 0);
}

static bool wait_all(struct fixture *f, unsigned timeout_ms)
{
	return lane_wait(f->lane, timeout_ms * NSEC_PER_MSEC,
			 PATIENCE_MS * NSEC_PER_MSEC);
}

/* Number of the next finished job, or -1. */
static int take(struct fixture *f)
{
	struct job *j = (struct job *)lane_take(f->lane);
	int number = j ? j->number : -1;

	f->n_taken += j != NULL;
	free(j);
	return number;
}

static void let_go(struct fixture *f, unsigned n)
{
	while (n--)
		check_int(write(f->hang[1], "x", 1), 1);
}

/* Workers that were left behind are waited for, so that no test sees them. */
static void teardown(struct fixture *f)
{
	while (take(f) >= 0)
		;
	close(f->hang[1]);
	lane_close(f->lane);
	check(reaches(&f->n_released, f->n_submitted - f->n_taken));
	close(f->hang[0]);
}

/* Waits until so many jobs have begun. */
static void wait_begun(struct fixture *f, int n)
{
	check(reaches(&f->n_run, n));
}

/* Until a worker has been in its job for longer than the patience. */
static void outwait_patience(void)
{
	pause_ms(2 * PATIENCE_MS);
}

static void in_order(void)
{
	struct fixture f;

	setup(&f);
	for (int i = 0; i < 50; i++)
		submit(&f, false);
	check(wait_all(&f, LONG_MS));
	check_u64(lane_pending(f.lane), 0);
	for (int i = 0; i < 50; i++) {
		check_int(order[i], i);
		check_int(take(&f), i);
	}
	check_int(take(&f), -1);
	check_int(f.n_run, 50);
	check_int(f.n_released, 0);
	lane_close(f.lane);
	close(f.hang[0]);
	close(f.hang[1]);
}

static void nothing_to_do(void)
{
	struct fixture f;
	uint64_t start;

	setup(&f);
	start = now_ms();
	check(wait_all(&f, LONG_MS));
	check(now_ms() - start < LONG_MS / 2);
	check_int(take(&f), -1);
	check(lane_close(f.lane));
	check(lane_close(NULL));
	close(f.hang[0]);
	close(f.hang[1]);
}

static void timeout(void)
{
	struct fixture f;
	uint64_t start, took;

	setup(&f);
	submit(&f, true);
	wait_begun(&f, 1);
	start = now_ms();
	/* With patience for more than it waits. */
	check(!lane_wait(f.lane, 100 * NSEC_PER_MSEC, LONG_MS * NSEC_PER_MSEC));
	took = now_ms() - start;
	check(took >= 99);
	check(took < 2000);
	check_u64(lane_pending(f.lane), 1);
	check_u64(lane_stuck(f.lane), 0);
	let_go(&f, 1);
	check(lane_wait(f.lane, LONG_MS * NSEC_PER_MSEC,
			LONG_MS * NSEC_PER_MSEC));
	check_int(take(&f), 0);
	teardown(&f);
}

static void replaced(void)
{
	struct fixture f;
	uint64_t start;

	setup(&f);
	submit(&f, true);
	for (int i = 0; i < 10; i++)
		submit(&f, false);
	start = now_ms();
	/* All that can end has ended, which is not all. */
	check(!wait_all(&f, LONG_MS));
	check(now_ms() - start < LONG_MS / 2);
	check_u64(lane_stuck(f.lane), 1);
	check_u64(lane_pending(f.lane), 1);
	for (int i = 1; i <= 10; i++)
		check_int(take(&f), i);
	check_int(take(&f), -1);

	/* The late answer is one all the same, and its worker leaves. */
	let_go(&f, 1);
	for (uint64_t until = now_ms() + LONG_MS;
	     lane_stuck(f.lane) && now_ms() < until;)
		pause_ms(1);
	check_u64(lane_stuck(f.lane), 0);
	check_u64(lane_pending(f.lane), 0);
	check_int(take(&f), 0);
	submit(&f, false);
	check(wait_all(&f, LONG_MS));
	check_int(take(&f), 11);
	teardown(&f);
}

static void rests(void)
{
	struct fixture f;
	uint64_t start;

	setup(&f);
	for (int i = 0; i < 6; i++)
		submit(&f, true);
	submit(&f, false);
	start = now_ms();
	check(!wait_all(&f, LONG_MS));
	check(now_ms() - start < LONG_MS / 2);
	check_u64(lane_stuck(f.lane), LANE_STUCK_MAX);
	check_int(f.n_run, LANE_STUCK_MAX);
	check_u64(lane_pending(f.lane), 7);

	/* It rests: nothing more is begun, and nobody waits for it. */
	outwait_patience();
	start = now_ms();
	check(!wait_all(&f, LONG_MS));
	check(now_ms() - start < LONG_MS / 2);
	check_int(f.n_run, LANE_STUCK_MAX);

	/* One returns: the next job hangs in its place. */
	let_go(&f, 1);
	for (uint64_t until = now_ms() + LONG_MS;
	     f.n_run < LANE_STUCK_MAX + 1 && now_ms() < until;) {
		wait_all(&f, 10);
		pause_ms(1);
	}
	check_int(f.n_run, LANE_STUCK_MAX + 1);
	check(take(&f) >= 0);

	/* All return: the rest is done. */
	let_go(&f, 5);
	for (uint64_t until = now_ms() + LONG_MS;
	     lane_pending(f.lane) && now_ms() < until;) {
		wait_all(&f, 10);
		pause_ms(1);
	}
	check_int(f.n_run, 7);
	check_u64(lane_stuck(f.lane), 0);
	for (int i = 0; i < 6; i++)
		check(take(&f) >= 0);
	check_int(take(&f), -1);
	teardown(&f);
}

static void count_told(void *arg, const struct lane_job *lj)
{
	unsigned *told = arg;

	told[((const struct job *)lj)->number]++;
}

static void told_once(void)
{
	struct fixture f;
	unsigned told[3] = {0};

	setup(&f);
	submit(&f, true);
	submit(&f, true);
	wait_begun(&f, 1);
	lane_watch(f.lane, LONG_MS * NSEC_PER_MSEC, count_told, told);
	check_u64(told[0], 0); /* not yet */
	outwait_patience();
	lane_watch(f.lane, PATIENCE_MS * NSEC_PER_MSEC, count_told, told);
	check_u64(told[0], 1);
	check_u64(lane_stuck(f.lane), 1);
	wait_begun(&f, 2); /* the watch replaced the worker */
	outwait_patience();
	for (int i = 0; i < 5; i++)
		lane_watch(f.lane, PATIENCE_MS * NSEC_PER_MSEC, count_told,
			   told);
	check_u64(told[0], 1);
	check_u64(told[1], 1);
	check_u64(lane_stuck(f.lane), 2);
	teardown(&f);
	check_u64(told[0] + told[1], 2);
}

static void close_leaves_stuck(void)
{
	struct fixture f;
	uint64_t start, took;

	setup(&f);
	submit(&f, false);
	check(wait_all(&f, LONG_MS));
	submit(&f, true); /* runs */
	submit(&f, true); /* runs after the first was given up */
	submit(&f, false);
	check(!wait_all(&f, LONG_MS));
	submit(&f, true);
	wait_begun(&f, 5);
	submit(&f, true); /* stays in the queue */

	/* One runs and is not yet given up, two are stuck. */
	start = now_ms();
	check(!lane_close(f.lane));
	took = now_ms() - start;
	check(took < 1000);

	/* Those that are done or did not begin are released at once. */
	check_int(f.n_run, 5);
	check_int(f.n_released, 3);

	/* The others by their workers, who are the last to know the lane. */
	close(f.hang[1]);
	check(reaches(&f.n_released, 6));
	check_int(f.n_run, 5);
	close(f.hang[0]);
}

static void close_waits_for_brief(void)
{
	struct fixture f;

	setup(&f);
	submit(&f, true);
	wait_begun(&f, 1);
	let_go(&f, 1);
	check(lane_close(f.lane));
	check_int(f.n_released, 1);
	close(f.hang[0]);
	close(f.hang[1]);
}

static unsigned count_entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Threads that ended disappear a moment after they were joined or left. */
static bool threads_fall_to(unsigned n)
{
	uint64_t until = now_ms() + LONG_MS;

	while (count_entries("/proc/self/task") > n && now_ms() < until)
		pause_ms(1);
	return count_entries("/proc/self/task") <= n;
}

static void many_rounds(void)
{
	unsigned n_threads = count_entries("/proc/self/task");
	unsigned n_fds = count_entries("/proc/self/fd");
	struct fixture f;

	for (int i = 0; i < 1000; i++) {
		memset(&f, 0, sizeof(f));
		f.hang[0] = -1;
		f.lane = lane_open("rounds", LANE_STUCK_MAX);
		for (int k = 0; k < i % 4; k++)
			submit(&f, false);
		if (i % 2)
			check(wait_all(&f, LONG_MS));
		check(lane_close(f.lane));
		/* What ran or not: each was released by somebody, once. */
		check_int(f.n_released, i % 4);
	}
	check(threads_fall_to(n_threads));
	check_u64(count_entries("/proc/self/fd"), n_fds);
}

struct look {
	struct lane_job job;
	sigset_t blocked;
	char name[16];
};

static void look_around(struct lane_job *lj)
{
	struct look *l = (struct look *)lj;

	pthread_sigmask(SIG_SETMASK, NULL, &l->blocked);
	pthread_getname_np(pthread_self(), l->name, sizeof(l->name));
}

static void free_look(struct lane_job *lj)
{
	free(lj);
}

static void bystander(void)
{
	struct lane *lane = lane_open("a-rather-long-name", LANE_STUCK_MAX);
	struct look *l = calloc(1, sizeof(*l));
	sigset_t before, after;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	l->job.run = look_around;
	l->job.release = free_look;
	check_int(lane_submit(lane, &l->job), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	check(sigismember(&after, SIGTERM) == sigismember(&before, SIGTERM));
	check(lane_wait(lane, LONG_MS * NSEC_PER_MSEC, NSEC_PER_SEC));
	l = (struct look *)lane_take(lane);
	check(l);
	if (l) {
		check(sigismember(&l->blocked, SIGTERM));
		check(sigismember(&l->blocked, SIGUSR1));
		check(strlen(l->name) <= 15);
		/* The name is given a moment after the thread began. */
	}
	free(l);
	check(lane_close(lane));
}

int main(void)
{
	TEST("jobs are done in order, each once", in_order);
	TEST("an idle lane keeps nobody waiting", nothing_to_do);
	TEST("waiting ends at its timeout", timeout);
	TEST("a worker that hangs is replaced and the queue goes on", replaced);
	TEST("with four stuck the lane rests, and goes on when one returns",
	     rests);
	TEST("each job that hangs is told once", told_once);
	TEST("closing does not wait for who hangs; they release their jobs",
	     close_leaves_stuck);
	TEST("closing waits for a job that ends soon", close_waits_for_brief);
	TEST("a thousand lanes leave no thread and no descriptor", many_rounds);
	TEST("a worker takes no signal from the daemon", bystander);
	return tap_done();
}
