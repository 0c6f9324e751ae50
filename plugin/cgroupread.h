/* SPDX-License-Identifier: MIT */
/*
 * Which cgroup each group is, and what the kernel counts of that. A group has
 * values as long as all its members are in one cgroup. Nothing is opened, not
 * even the file system, before some group collects it.
 *
 * Invariant: in a steady tick no memory is allocated, and each file takes one
 * pread(2) of a kept descriptor.
 */
#pragma once

#include "cgroupfs.h"
#include "group.h"
#include "procfs.h"
#include "rule.h"

struct monitor;
struct proc_entry;

/* The cgroup that a group is. */
struct cgroup_use {
	bool is_needed;	 /* some group has it, in this tick */
	bool is_several; /* members are in different ones, or one is not told */
	uint32_t
	    member;    /* index of an entry in it; UINT32_MAX: there is none */
	uint32_t hash; /* of that one's /proc/PID/cgroup */
	bool hangs;    /* its files: a thread was lost in one */
	bool is_entered;  /* the next ones are of that cgroup */
	uint32_t of_hash; /* 0: of none so far */
	uint64_t id;
	struct cgroupfs_group at;
	struct cgroupfs_values last;
	enum cgroupsum_whose whose; /* what is read next, beside `last` */
};

struct cgroupread {
	struct cgroupfs fs;
	bool is_open, is_missing, told_missing;
	struct cgroup_use **use;
	size_t n_used, cap;
	size_t at;	 /* group that is read now */
	unsigned n_hang; /* threads lost since none was */
};

/*
 * Learns the cgroup of a process that has come to its groups, if one of these
 * wants it and the rules did not ask. A guarded call.
 */
void cgroupread_join(struct monitor *m, struct proc_entry *e);

/* Reads all; when each process has its groups. */
void cgroupread_run(struct monitor *m);

/* The rules changed: what was missing may be there now. */
void cgroupread_adopt(struct monitor *m);

void cgroupread_close(struct monitor *m);
