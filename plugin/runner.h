/* SPDX-License-Identifier: MIT */
/*
 * Runs work that makes guarded calls in a worker of a lane, and watches it.
 * When one call does not return, its thread is abandoned and the work is
 * begun again by another one: it has to go on where it was. It does not know
 * the work.
 *
 * Invariant: at most one thread that was not abandoned does the work.
 */
#pragma once

#include "base.h"
#include "guard.h"
#include "lane.h"

/* The work: g is to be entered and left around each call that may hang. */
typedef void runner_fn(void *arg, struct guard *g);

/*
 * In the caller's thread, after a thread was abandoned: puts right what it
 * left half done. Returns false if the work cannot go on.
 */
typedef bool runner_stuck_fn(void *arg);

struct runner_job;

struct runner {
	struct lane *lane;
	struct runner_job *job; /* kept from run to run */
};

enum {
	RUNNER_STUCK_MAX = 16, /* threads that may be lost in calls at a time */
};

/* Returns 0 or -ENOMEM. */
int runner_open(struct runner *r, const char *name);

/* Returns false if an abandoned thread is left behind. */
bool runner_close(struct runner *r);

/*
 * Runs the work to its end. A call that takes longer than patience_ns is
 * given up. Returns 0; -EAGAIN if too many threads are lost or the work could
 * not go on; or another negative errno if no thread could be had.
 */
int runner_run(struct runner *r, runner_fn *work, runner_stuck_fn *stuck,
	       void *arg, uint64_t patience_ns);
