/* SPDX-License-Identifier: MIT */
/*
 * PSS in a tick: tells the planner of every process that a group wants it of,
 * hands what is to be read to the lane, and takes what came of it. It knows
 * neither how smaps is read (smaps.h) nor who comes next (pssplan.h).
 *
 * Invariant: nothing here waits; a reading that does not come back leaves its
 * process with the value that it had.
 */
#pragma once

#include "monitor-internal.h"

/* Finds out what this kernel has. */
void pssread_open(struct monitor *m);
void pssread_close(struct monitor *m);

/* What rules say of it changed. */
void pssread_adopt(struct monitor *m);

/* Once in a tick, when every process has its group. */
void pssread_plan(struct monitor *m);

/* An answer came; p is NULL if its process ended meanwhile. */
void pssread_take(struct monitor *m, struct proc *p, const struct answer *a);

/* What stands for a process in its groups; false if it has no memory. */
bool pssread_now(struct monitor *m, const struct proc *p, struct pss_now *ret);
