/* SPDX-License-Identifier: MIT */
/*
 * A lane: one worker thread and a queue, for calls that may block for as long
 * as somebody else likes. The caller never waits longer than it says. It does
 * not know what a job does.
 *
 * When a worker is stuck in a job, a replacement goes on with the queue; at
 * most so many as was said at its opening may be stuck, then the lane rests
 * until one comes back. Closing never waits for a stuck worker: what it may
 * still touch (its job, the lane) is freed by it, or by nobody. Invariant: a
 * job is with the caller, in the queue, in one worker, or done; only its holder
 * touches it.
 */
#pragma once

#include "base.h"

struct lane;

enum {
	LANE_STUCK_MAX = 4,	/* the usual number of stuck workers */
	LANE_QUEUE_MAX = 16384, /* jobs; a lane that rests is not filled */
};

/*
 * The owner embeds this in a job of its own, made with malloc(). run() is
 * called in the worker; release() frees the job, and is called instead of
 * handing it back if the lane was closed meanwhile.
 */
struct lane_job {
	void (*run)(struct lane_job *job);
	void (*release)(struct lane_job *job);
	struct lane_job *next;
	uint64_t limit_ns;   /* lane_watch() takes it for stuck no sooner */
	uint64_t started_ns; /* CLOCK_MONOTONIC; for the lane only */
	bool told;	     /* reported as stalled; for the lane only */
};

/*
 * `name` is that of the threads, at most 15 bytes; with stuck_max workers
 * stuck the lane rests. NULL if out of memory.
 */
struct lane *lane_open(const char *name, unsigned stuck_max);

/*
 * Stops it; waits at most 100 ms. Returns false if a stuck worker is left
 * behind: what its job uses must then stay as it is.
 */
bool lane_close(struct lane *lane);

/*
 * Queues a job. Never blocks. Returns 0; -EAGAIN if the queue is full; or
 * another negative errno (no thread).
 */
int lane_submit(struct lane *lane, struct lane_job *job);

/*
 * Waits until the queue is empty and nothing runs that may still end, but no
 * longer than timeout_ns. A worker that is in one job for longer than
 * patience_ns meanwhile is replaced. Returns true if all is done.
 */
bool lane_wait(struct lane *lane, uint64_t timeout_ns, uint64_t patience_ns);

/* Takes one finished job back, or NULL. */
struct lane_job *lane_take(struct lane *lane);

/*
 * Looks for jobs that have been running for longer than limit_ns and tells
 * each once through fn (with the lane locked: fn must not call the lane);
 * replaces their workers.
 */
void lane_watch(struct lane *lane, uint64_t limit_ns,
		void (*fn)(void *arg, const struct lane_job *job), void *arg);

/* Counts every worker that is in a job as stuck, however short it is. */
void lane_give_up(struct lane *lane);

/* Jobs queued or running now. */
size_t lane_pending(struct lane *lane);

/* Workers stuck now. */
unsigned lane_stuck(struct lane *lane);
