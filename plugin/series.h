/* SPDX-License-Identifier: MIT */
/*
 * Series of single processes beside those of their groups, where a rule has
 * `per_process`. Each is a group of its own with one member, named
 * GROUP.NUMBER: a slot that is reused, or the process's number. It knows
 * places and growth, and reads nothing.
 *
 * Invariant: a slot is held by one process at a time, and what is counted in
 * it is what that process did while it held the slot.
 */
#pragma once

#include "monitor-internal.h"

/* What is kept of a process that may have a series. */
struct member {
	struct growth growth; /* of this tick */
	struct member_series {
		struct group *of;     /* the group that it is a member of */
		struct group *series; /* NULL: it has none now */
		uint32_t number;
	} in[RULE_VIEWS_MAX];
};

/* Called when p->place[] changed: makes, keeps or frees what it needs. */
void series_join(struct monitor *m, struct proc *p);

/* The views changed: in[i] is what in[from[i]] was before. */
void series_remap(struct proc *p, size_t n, const int *from);

/* Notes what a process grew by. */
void series_count(struct proc *p, const struct growth *growth);

/* The rows that the choice among members needs. */
metric_mask series_wanted(const struct monitor *m, const struct proc *p);

/* A rule wants the name: it is the rule's group now, members get another. */
void series_yield(struct monitor *m, struct group *g);

/* Once in a tick, before folding: who has a series? Counts into it. */
void series_assign(struct monitor *m);
