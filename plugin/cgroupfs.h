/* SPDX-License-Identifier: MIT */
/*
 * What the kernel counts of a whole cgroup: memory, CPU, I/O, pressure. Of
 * version 2, and memory, CPU and processes of version 1 where the controller
 * is there. It knows no process and no group of ours, and what it tells must
 * never be summed with values of processes: both are the same bytes.
 *
 * A read is one pread(2) of a kept descriptor into a buffer on the stack.
 * Invariant: a value in ret->have was told by this cgroup in this read; a file
 * that is missing, empty or says "max" gives none.
 */
#pragma once

#include "base.h"
#include "cgroupsum.h"
#include "guard.h"
#include "keptfd.h"

enum cgroupfs_tree {
	CGROUPFS_UNIFIED,
	CGROUPFS_V1_MEMORY,
	CGROUPFS_V1_CPU,
	CGROUPFS_V1_CPUACCT,
	CGROUPFS_V1_PIDS,
	CGROUPFS_N_TREES,
};

enum {
	CGROUPFS_N_FILES = 14,
};

struct cgroupfs {
	int tree_fd[CGROUPFS_N_TREES]; /* -1 where it is not mounted */
	struct keptfd *kept;
	struct guard *guard; /* of the thread that reads now; may be NULL */
};

/* One cgroup. All zeros is none. */
struct cgroupfs_group {
	char *path[CGROUPFS_N_TREES]; /* below tree_fd; NULL: not to be read */
	int fd[CGROUPFS_N_FILES];     /* -1: not open */
	uint32_t missing;	      /* bit per file */
	uint64_t id; /* another one under the same name has another */
};

/*
 * `root` is /sys/fs/cgroup. Descriptors are kept within the budget of `kept`,
 * or all if it is NULL. Returns 0, or PROC_ABSENT if nothing is mounted there.
 */
int cgroupfs_open(struct cgroupfs *fs, const char *root, struct keptfd *kept);
void cgroupfs_close(struct cgroupfs *fs);

/*
 * The cgroup of a process by its /proc/PID/cgroup. The root of a hierarchy
 * is none: it stands for the host. Returns 0, PROC_ABSENT if it is in none, or
 * -ENOMEM; then *g is empty.
 */
int cgroupfs_enter(struct cgroupfs *fs, struct cgroupfs_group *g,
		   struct str proc_cgroup);
void cgroupfs_leave(struct cgroupfs *fs, struct cgroupfs_group *g);

/*
 * Reads what of `wanted` there is. Returns 0; PROC_GONE if the cgroup was
 * removed (one of the same name is another one: enter again); or -EMFILE and
 * the like, which say nothing of the cgroup.
 */
int cgroupfs_read(struct cgroupfs *fs, struct cgroupfs_group *g,
		  uint32_t wanted, struct cgroupfs_values *ret);
