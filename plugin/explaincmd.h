/* SPDX-License-Identifier: MIT */
/*
 * `proctally explain`: reads the host as the plugin would, until every process
 * has its group, and prints why those that were asked for have theirs.
 */
#pragma once

#include "base.h"
#include "monitor.h"

struct explaincmd_options {
	struct monitor_options monitor;
	const char *view; /* NULL: all */
	bool brief;	  /* one line for each process and view */
};

/* `pids` are as they were typed. An exit status; 2 if one is no number. */
int explaincmd_run(const struct explaincmd_options *o, char *const *pids,
		   int n_pids);
