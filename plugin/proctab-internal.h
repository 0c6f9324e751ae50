/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the process table share: proctab.c (who exists),
 * proctab-gate.c (who ran), proctab-left.c (who left), look.c (stat and
 * identity) and sample.c (the other files). Nobody else includes it.
 *
 * Invariant: a counter of a process grows in proc_take() alone, which hands on
 * by how much, and never falls.
 */
#pragma once

#include "proctab.h"

/* One process without a name yet; NULL if out of memory. */
struct proc *proc_new(const struct proctab *t, pid_t pid);

/* Takes a name of less than PROC_COMM_SIZE bytes; false if out of memory. */
bool proc_set_comm(struct proc *p, struct str comm);

/* Closes its descriptors, too. */
void proc_free(struct proctab *t, struct proc *p);

/* Takes what an entry has; it is freed, or kept as one that left. */
void proctab_leave_table(struct proctab *t, const struct proc_entry *e);

void proctab_free_left(struct proctab *t);

/* Was it seen to have run since the last tick? Without the gate: always. */
static inline bool proc_has_run(const struct proctab *t, const struct proc *p)
{
	return p->ran_tick == t->tick;
}

static inline bool proc_is_zombie(const struct proc *p)
{
	return p->state == 'Z' || p->state == 'X';
}

/*
 * Takes raw values. A counter seen first counts whole if the process was
 * born before our eyes, else it is a baseline. One that falls keeps its
 * baseline until it has caught up: utime and stime are scaled against each
 * other and may dip (cputime_adjust(), kernel/sched/cputime.c, Linux 6.18).
 */
void proc_take(struct proctab *t, struct proc *p, metric_mask found,
	       const uint64_t *now, struct growth *g);

/* It is not there any more; it leaves the table at the next list. */
void proc_mark_gone(struct proctab *t, struct proc *p);

/* Are clocks asked, or is everybody looked at? */
bool proctab_uses_gate(const struct proctab *t);

/*
 * The CPU clock of a process, as procfs_clock() gives it. A thread's number has
 * none, but for our own thread: its number is taken for the process's
 * (pid_for_clock(), kernel/time/posix-cpu-timers.c, Linux 6.18).
 */
int proctab_read_clock(struct proctab *t, pid_t pid, uint64_t *ret_ns);

/* Is it the turn of a process? They are spread by their numbers. */
static inline bool proctab_is_turn(const struct proctab_turns *turns, pid_t pid)
{
	uint32_t hash = (uint32_t)pid * 2654435761u;
	uint32_t phase = (uint32_t)((uint64_t)hash * turns->period_s >> 32);
	uint32_t at = turns->into_s + phase;

	if (at >= turns->period_s)
		at -= turns->period_s;
	return at < turns->passed_s;
}
