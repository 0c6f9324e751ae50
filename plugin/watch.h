/* SPDX-License-Identifier: MIT */
/*
 * A monitor, and what a person wants to see of it: the board of groups and
 * the roster of processes, as the last tick left them. It knows no terminal.
 *
 * Invariant: board, roster and figures are of one and the same tick.
 */
#pragma once

#include "base.h"
#include "board.h"
#include "monitor.h"
#include "roster.h"
#include "rule.h"

struct watch {
	struct monitor *monitor;
	struct board board;
	struct roster roster;
	struct monitor_figures figures;
	const char *views[RULE_VIEWS_MAX + 1]; /* their names, and NULL */
	struct moment now;		       /* of the last tick */
	uint64_t cost_ns;		       /* its CPU time */
	unsigned n_ticks;
};

/* Returns 0, or a negative errno and has told it. */
int watch_open(struct watch *w, const struct monitor_options *o);
void watch_close(struct watch *w);

/* One tick. Returns 0 or a negative errno. */
int watch_tick(struct watch *w);

typedef bool watch_fn(const struct monitor_member *m, const char *group);

/*
 * Lets the roster show those processes for which `wants` holds in that view.
 * Returns 0 or -ENOMEM.
 */
int watch_show_some(struct watch *w, size_t view, watch_fn *wants,
		    const char *group);

/* The same for the members of a group, of whatever view it is. */
int watch_show_group(struct watch *w, const char *group);
