/* SPDX-License-Identifier: MIT */
#include "runner.h"
#include "clocks.h"

#include <fcntl.h>
#include <stdio.h>

#define POLL_NS (10 * NSEC_PER_MSEC) /* how often a call is looked at */

/* Belongs to its thread once that was abandoned. */
struct runner_job {
	struct lane_job job; /* for the lane */
	struct guard guard;
	atomic_int tid; /* of the thread that runs it */
	runner_fn *work;
	void *arg;
};

static void run_job(struct lane_job *job)
{
	struct runner_job *j = (struct runner_job *)job;

	_Static_assert(offsetof(struct runner_job, job) == 0, "same address");
	atomic_store(&j->tid, gettid());
	if (setjmp(j->guard.env) == 0)
		j->work(j->arg, &j->guard);
}

static void release_job(struct lane_job *job)
{
	free(job);
}

int runner_open(struct runner *r, const char *name)
{
	*r = (struct runner){.lane = lane_open(name, RUNNER_STUCK_MAX)};
	return r->lane ? 0 : -ENOMEM;
}

bool runner_close(struct runner *r)
{
	bool all = lane_close(r->lane);

	free(r->job);
	*r = (struct runner){0};
	return all;
}

/* Takes back what the lane is done with: our job, and lost ones that came. */
static bool take_back(struct runner *r, const struct runner_job *wanted)
{
	struct lane_job *job;
	bool done = false;

	while ((job = lane_take(r->lane))) {
		if (job == &wanted->job)
			done = true;
		else
			free(job);
	}
	return done;
}

/*
 * On a busy host a thread may be in a call only because it does not get a
 * processor. That is no hanging, and its state says so.
 */
static bool is_runnable(pid_t tid)
{
	char path[64], text[512];
	_cleanup_close_ int fd = -1;
	const char *end;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] == 'R';
}

/* Waits for the end of the work. False if one call took too long. */
static bool watch(struct runner *r, struct runner_job *j, uint64_t patience_ns)
{
	unsigned call = 0;
	uint64_t since = 0;

	for (;;) {
		unsigned now;

		lane_wait(r->lane, POLL_NS, UINT64_MAX);
		if (take_back(r, j))
			return true;
		now = guard_call(&j->guard);
		if (!now || now != call || is_runnable(atomic_load(&j->tid)))
			since = clocks_read(CLOCK_MONOTONIC);
		else if (clocks_read(CLOCK_MONOTONIC) - since >= patience_ns &&
			 guard_abandon(&j->guard))
			return false;
		call = now;
	}
}

int runner_run(struct runner *r, runner_fn *work, runner_stuck_fn *stuck,
	       void *arg, uint64_t patience_ns)
{
	for (;;) {
		struct runner_job *j = r->job;
		int err;

		if (lane_stuck(r->lane) >= RUNNER_STUCK_MAX)
			return -EAGAIN;
		if (!j)
			j = calloc(1, sizeof(*j));
		if (!j)
			return -ENOMEM;
		r->job = j;
		j->job =
		    (struct lane_job){.run = run_job, .release = release_job};
		atomic_store(&j->guard.state, GUARD_RUNS);
		j->work = work;
		j->arg = arg;
		err = lane_submit(r->lane, &j->job);
		if (err < 0)
			return err;
		if (watch(r, j, patience_ns))
			return 0;
		r->job = NULL; /* its thread frees it when it comes back */
		lane_give_up(r->lane);
		if (!stuck(arg))
			return -EAGAIN;
	}
}
