/* SPDX-License-Identifier: MIT */
/*
 * The pidfiles of the rules, looked at in each tick. They are where the rules
 * say, perhaps on a server that does not answer: so a thread of the runner
 * looks at them, and may be given up.
 */
#include "classify-internal.h"

#define PIDFILE_NS (100 * NSEC_PER_MSEC) /* then a file is given up */

enum {
	PIDFILES_HANG_MAX = 4, /* threads that may be lost in them */
};

/* Reads anew what has changed of the files that name processes. */
static void look_at_pidfiles(void *arg, struct guard *g)
{
	struct classifier *c = arg;
	struct pidfile_look *l = &c->look;

	for (; l->at < c->rules->n_pidfiles; l->at++) {
		struct rule_pidfile *file = &c->rules->pidfile[l->at];
		struct file_seen *seen = &c->pidfile_seen[l->at];

		if (!seen->hangs)
			l->changed |= pidfile_refresh(
			    c->fs->root_fd, file->path, seen, &file->pid, g);
	}
}

/* One that hangs takes a thread with it, so there must not be many. */
static bool pass_over(void *arg)
{
	struct classifier *c = arg;
	struct pidfile_look *l = &c->look;

	if (!l->hangs)
		l->hangs = c->rules->pidfile[l->at].path;
	c->pidfile_seen[l->at++].hangs = true;
	return ++l->n_hang < PIDFILES_HANG_MAX;
}

bool classify_refresh_pidfiles(struct classifier *c, struct runner *runner)
{
	size_t n = c->rules->n_pidfiles;

	c->look.at = 0;
	c->look.changed = false;
	c->look.hangs = NULL;
	if (n && lane_stuck(runner->lane) == 0) {
		c->look.n_hang = 0;
		for (size_t i = 0; i < n; i++)
			c->pidfile_seen[i].hangs = false;
	}
	/* Without a thread they name whom they named. */
	if (n && c->look.n_hang < PIDFILES_HANG_MAX)
		runner_run(runner, look_at_pidfiles, pass_over, c, PIDFILE_NS);
	return c->look.changed;
}
