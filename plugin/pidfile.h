/* SPDX-License-Identifier: MIT */
/*
 * Files that name a process, as daemons leave them in /run. It knows no
 * process and no rule.
 *
 * Invariant: what is no decimal number of a process names none.
 */
#pragma once

#include "base.h"
#include "guard.h"

#include <sys/stat.h>

/* What tells that a file is another one than before. */
struct file_seen {
	struct stat st;
	bool exists;
	bool hangs; /* the caller gave up on it */
};

/*
 * Reads the file anew if it changed. `path` is absolute; it is looked for
 * below the directory above root_fd, which is the root of the host. *pid is 0
 * while it names no process. Returns true if *pid changed. A missing file
 * names none; one that cannot be read, or is no plain file, neither. Calls
 * that may hang are made between guard_enter() and guard_leave() of g, which
 * may be NULL.
 */
bool pidfile_refresh(int root_fd, const char *path, struct file_seen *seen,
		     pid_t *pid, struct guard *g);
