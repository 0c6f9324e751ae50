/* SPDX-License-Identifier: MIT */
/*
 * Asks the rules about one process: turns it into a subject, reads what the
 * rules want to know of it, and says which group it belongs to. Command lines
 * are read in a lane, because that may block; until the answer is there the
 * rules are asked without it. It does not know groups, only their names.
 *
 * Invariant: nothing here blocks, and one process has at most one read on
 * its way (PROC_AWAITS).
 */
#pragma once

#include "base.h"
#include "lane.h"
#include "name.h"
#include "proctab.h"
#include "rule.h"
#include "users.h"

struct classifier {
	struct procfs *fs;
	struct users *users;
	struct lane *lane;
	int lane_root_fd;      /* the root for workers; outlives stuck ones */
	struct ruleset *rules; /* borrowed */
	struct moment now;
	int64_t booted_ns; /* CLOCK_REALTIME at boot, but for jitter */

	/* The process that is being asked about. */
	struct subject subject;
	struct proc *proc;
	char user[16];
	char *cgroup_text, *exe_text, *argv0_text;

	bool unsure;	 /* something could not be read for our own want */
	unsigned denied; /* SUBJECT_BIT()s that were refused */

	uint64_t n_unreadable_exe, n_unreadable_cgroup, n_unreadable_cmdline;
};

/* Where a process belongs. */
struct placing {
	bool pending; /* an answer on its way may change it */
	bool dropped; /* counted nowhere */
	bool unsure;  /* a read failed for our own want: ask again */
	struct name_result name;
	collect_mask collect;
};

/* An answer of the lane: bytes of a command line. */
struct answer {
	struct lane_job job; /* for the lane */
	int root_fd;
	pid_t pid, live_tid;
	uint64_t start; /* with pid: whose it is */
	size_t max;	/* bytes at most */
	int result;	/* 0, or an outcome or errno of procfs_read_cmdline() */
	char *text;
	size_t n;
};

/* Returns 0 or a negative errno. */
int classifier_open(struct classifier *c, struct procfs *fs);
void classifier_close(struct classifier *c);

/* True if names of users changed, and a rule asks for them. */
bool classifier_refresh(struct classifier *c);

/*
 * Asks the rules. `answer` is the process's command line if it was read, else
 * NULL: then it is asked for if a rule wants it, and `pending` is set. The
 * directory of the process should be entered.
 */
void classify(struct classifier *c, struct proc *p, struct answer *answer,
	      struct placing *ret);

/* The next answer, or NULL; to be freed with answer_free(). */
struct answer *classifier_take(struct classifier *c);
void answer_free(struct answer *a);
