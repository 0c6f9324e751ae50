/* SPDX-License-Identifier: MIT */
/*
 * `proctally top`: a table of groups that is drawn anew after each tick, in
 * a terminal; or one table after the other where there is none.
 */
#pragma once

#include "base.h"
#include "monitor.h"

struct top_options {
	struct monitor_options monitor;
	double interval_s;
	unsigned long count; /* tables; 0: for ever */
};

/* Runs until a key, a signal or `count` ends it; an exit status. */
int top_run(const struct top_options *o);
