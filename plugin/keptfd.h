/* SPDX-License-Identifier: MIT */
/*
 * Keeps descriptors open from tick to tick without being a bad neighbour in
 * somebody else's process: they are moved to high numbers, because libraries
 * beside us still use select(); the descriptor table is grown once in
 * advance, because growing it step by step stalls a threaded process each
 * time (expand_files() waits for an RCU grace period; fs/file.c, Linux 6.18);
 * and there is a budget. It does not know what the descriptors are for.
 *
 * Invariant: every kept descriptor is >= base, and none is added beyond the
 * budget.
 */
#pragma once

#include "base.h"

enum {
	KEPTFD_BASE = 4096,	  /* lowest number of a kept descriptor */
	KEPTFD_BUDGET_MAX = 4096, /* default at most */
};

struct keptfd {
	unsigned budget; /* descriptors that may be kept at a time */
	unsigned n_kept;
	int base;
	bool full; /* there was no room at some time */
	unsigned budget_wanted, n_processes;
	bool automatic;
};

/*
 * `wanted` descriptors may be kept; with `automatic` as many as suit the
 * number of processes and the hard limit, but no more than KEPTFD_BUDGET_MAX.
 * Nothing is changed before keptfd_provide().
 */
void keptfd_init(struct keptfd *k, bool automatic, unsigned wanted);

/* Changes what is wanted; takes effect at the next keptfd_provide(). */
void keptfd_want(struct keptfd *k, bool automatic, unsigned wanted);

/*
 * Sets the budget for a number of processes, raising the soft limit on
 * descriptors as far as needed, never beyond the hard one (getrlimit(2)).
 * What cannot be had makes the budget smaller. Cheap when nothing changed.
 */
void keptfd_provide(struct keptfd *k, unsigned n_processes);

/*
 * Moves a descriptor that is open for good out of the low numbers, if the
 * limits allow; it does not count against the budget.
 */
void keptfd_park(int *fd);

/* True if one more may be kept. */
bool keptfd_has_room(struct keptfd *k);

/*
 * Moves a descriptor to a high number and counts it. On success *fd is the
 * new number and 0 is returned; else *fd is as it was and must be closed
 * after use (-ENOSPC: budget, or what fcntl(2) said).
 */
int keptfd_keep(struct keptfd *k, int *fd);

/* Closes a kept descriptor and sets it to -1; -1 is accepted. */
void keptfd_close(struct keptfd *k, int *fd);
