/* SPDX-License-Identifier: MIT */
/*
 * GPUs in a tick: whose descriptors are looked at, what the backends say of
 * whom, and which groups that goes to. It knows processes and groups, and
 * neither drivers (gpu-host.h) nor how a group adds up (gpusum.h).
 *
 * Invariant: where no driver can answer or no group wants it nothing is done
 * for any process; nothing here waits but gpuread_finish(), no longer than
 * MONITOR_WAIT_NS together with the rest of the tick.
 */
#pragma once

#include "monitor-internal.h"

void gpuread_init(struct monitor *m);

/* Never waits for a driver. */
void gpuread_close(struct monitor *m);

/* When every process has its group: looks at descriptors, begins to read. */
void gpuread_begin(struct monitor *m);

/* Before series are given: takes what was read. */
void gpuread_finish(struct monitor *m);

/* Adds what processes use to their groups; call while folding. */
void gpuread_fold(struct monitor *m);

/* What members are compared by for `top: {by: gpu}`. */
uint64_t gpuread_rank(const struct monitor *m, const struct proc *p);

/* The busiest engine of a process in percent; false if it has none. */
bool gpuread_percent(const struct monitor *m, const struct proc *p,
		     double *ret);

/* For `_self`. */
void gpuread_emit_self(const struct monitor *m, value_fn *emit, void *arg);
void gpuread_count_self(struct monitor *m);

/* Tells what a person should know of it. */
void gpuread_notice(struct monitor *m);

/*
 * Between gpuread.c, gpuread-look.c (whose descriptors are looked at) and
 * gpuread-self.c: nobody else calls these.
 */
bool gpuread_is_wanted(const struct monitor *m, const struct proc *p);

/* Brings what is known of processes in line with their table. */
int gpuread_follow_table(struct monitor *m);

/*
 * A runner_fn. In a thread that may be given up; then it is called again and
 * goes on.
 */
void gpuread_look_at_all(void *arg, struct guard *g);

/* What is known of that process, or NULL. */
struct gpu_seen *gpuread_find_seen(const struct monitor *m, pid_t pid,
				   uint64_t start);

/* Forgets what is known of all of them. */
void gpuread_forget_all(struct monitor *m);
