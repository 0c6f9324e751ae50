/* SPDX-License-Identifier: MIT */
/*
 * How long a process had to wait: for a CPU, for block I/O, for pages that are
 * swapped out. The kernel is asked by taskstats over generic netlink, because
 * that alone tells of all threads of a process together, those that ended
 * included: /proc/PID/schedstat and field 42 of /proc/PID/stat are of the
 * first thread, and swap-in is in neither. It knows no group.
 *
 * Needs CAP_NET_ADMIN, and the initial PID and network namespaces
 * (kernel/taskstats.c, Linux 6.18). Invariant: a question and its answer are
 * one send(2) and one recv(2) that does not wait.
 */
#pragma once

#include <sys/types.h>

#include "base.h"
#include "guard.h"

enum delay_value {
	DELAY_CPU, /* on the run queue */
	DELAY_BLKIO,
	DELAY_SWAPIN,
	DELAY_N,
};

/* Outcomes of delay_open(): why nothing is told here. */
enum {
	DELAY_MISSING = 1, /* the kernel has no taskstats */
	DELAY_DENIED = 2,  /* no CAP_NET_ADMIN */
};

struct delay {
	int fd; /* -1: not open */
	unsigned family;
	uint32_t seq;  /* of the last question */
	uint32_t have; /* bit per value that the kernel measures */
};

/* Nothing open yet; delay_close() is safe. */
void delay_init(struct delay *d);

/* Returns 0, one of the outcomes above or a negative errno. */
int delay_open(struct delay *d);
void delay_close(struct delay *d);

/*
 * Nanoseconds since the process began, of what the kernel measures. A guarded
 * call. Returns 0, PROC_GONE, PROC_DENIED or a negative errno.
 */
int delay_read(struct delay *d, struct guard *guard, pid_t pid,
	       uint64_t ret[DELAY_N]);
