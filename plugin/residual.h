/* SPDX-License-Identifier: MIT */
/*
 * The proof that nothing is lost: the CPU time that the host used, by
 * /proc/stat, beside what the groups of the view "app" counted meanwhile (of
 * the first view where there is no such view). It asks groups for their totals
 * and does not know who counted, so that nobody can be forgotten.
 *
 * Invariant: both sums never fall, whatever groups come, go or are reloaded;
 * their difference is the residual, which may: /proc/stat is counted in
 * another way than processes are, and a tick reads one before the other.
 */
#pragma once

#include "base.h"
#include "group.h"
#include "procfs.h"

struct monitor;

enum {
	RESIDUAL_USER,
	RESIDUAL_SYSTEM,
	RESIDUAL_N,
};

/* Raw units: host ticks, and that of the group's row. */
struct residual_span {
	struct procfs_host_cpu host;
	uint64_t groups[RESIDUAL_N];
	uint64_t exited_ns[RESIDUAL_N]; /* beside that, by exit records */
};

struct residual {
	bool has_begun; /* the first tick was; the totals are known */
	bool has_tick;	/* this one is known, too */
	struct procfs_host_cpu last;
	struct residual_span tick, total;
};

/* What was used since the last call; when all that is counted was counted. */
void residual_take(struct monitor *m);

void residual_emit(const struct monitor *m, value_fn *fn, void *arg);
