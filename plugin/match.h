/* SPDX-License-Identifier: MIT */
/*
 * `proctally match`: one table of what the groups use, and which processes no
 * rule takes.
 */
#pragma once

#include "base.h"
#include "monitor.h"

struct match_options {
	struct monitor_options monitor;
	double interval_s; /* between the two ticks */
};

/* An exit status. */
int match_run(const struct match_options *o);
