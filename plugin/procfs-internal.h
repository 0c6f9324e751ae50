/* SPDX-License-Identifier: MIT */
/*
 * What the parts of procfs.h share: procfs.c (the root, the list, clocks),
 * procfs-pid.c (texts and descriptors of one process), procfs-links.c (its fd
 * directory and its exe link) and procfs-task.c (its threads). Nobody else
 * includes it.
 *
 * Invariant: every path is below the root or below a directory opened there.
 */
#pragma once

#include "procfs.h"

enum {
	/* "4194304/task/4194304/smaps_rollup" and more */
	PROCFS_PATH_SIZE = 64,
};

/* Negative errno of a failed call, or the outcome that it means. */
int procfs_outcome(int err);

/* The numeric names of an open directory, in its order, to *list. */
int procfs_list_numbers(struct procfs *fs, int dir_fd, pid_t **list, size_t *n,
			size_t *cap);

/*
 * "PID/NAME", "PID/task/TID/NAME" if there is a tid, or the rest of it below an
 * open directory, into buf of PROCFS_PATH_SIZE bytes. Returns buf.
 */
const char *procfs_path(char *buf, const struct procfs_pid *p, pid_t tid,
			const char *name);

/* What that path is relative to. */
int procfs_at(const struct procfs *fs, const struct procfs_pid *p);

/*
 * Comes back from a guarded call; or, if it was given up meanwhile, takes
 * along what belongs to it alone and does not return.
 */
void procfs_come_back(struct guard *g, char *buf, int own_fd);

/*
 * Reads a file of the process, or of one thread, as procfs_read() does. Where
 * it may be kept its descriptor goes to *keep_in.
 */
int procfs_read_path(struct procfs *fs, struct procfs_pid *p, pid_t tid,
		     const char *name, int *keep_in, struct str *ret);
