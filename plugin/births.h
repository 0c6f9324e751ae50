/* SPDX-License-Identifier: MIT */
/*
 * Tells whether processes can have been born since the last look, and among
 * which numbers, so that /proc need not be listed when nobody was. It knows
 * two files of /proc, no process.
 *
 * The kernel counts every task that it attaches ("processes" in /proc/stat;
 * total_forks, kernel/fork.c) and hands out numbers in a cycle (the last
 * field of /proc/loadavg; alloc_pid(), kernel/pid.c; Linux 6.18). Both are
 * read before any process is looked at. A task gets its number a moment
 * before it is attached: so numbers are looked at again the next time.
 * Invariant: BIRTHS_NONE is certain. BIRTHS_AMONG can miss a process that
 * asked for its own number (clone3(2), set_tid), that took longer than two
 * looks to be attached, or that hides behind a whole cycle of failed forks;
 * each for no longer than BIRTHS_TRUST_NS: then /proc is listed again.
 */
#pragma once

#include "base.h"
#include "procfs.h"

#define BIRTHS_TRUST_NS (60 * NSEC_PER_SEC)

enum births_answer {
	BIRTHS_UNKNOWN, /* list /proc */
	BIRTHS_NONE,	/* nobody was born */
	BIRTHS_AMONG,	/* look at the numbers from first to last */
};

struct births {
	bool known; /* the figures below are of an earlier look */
	uint64_t forks;
	pid_t last_pid, last_pid_before;
	uint64_t listed_ns; /* when /proc was listed */
};

/*
 * `now_ns` is CLOCK_MONOTONIC, `enough` the number of candidates beyond which
 * listing is cheaper. After BIRTHS_UNKNOWN the caller lists /proc.
 */
enum births_answer births_look(struct births *b, struct procfs *fs,
			       uint64_t now_ns, unsigned enough,
			       pid_t *ret_first, pid_t *ret_last);
