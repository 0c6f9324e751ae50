/* SPDX-License-Identifier: MIT */
/*
 * `proctally dump`: prints what the plugin would dispatch, from the same core.
 * One output format is one function and one row of formats[].
 */
#pragma once

#include "base.h"
#include "monitor.h"

struct dump_options {
	struct monitor_options monitor;
	const char *format; /* NULL: putval */
	double interval_s;
	unsigned long count; /* ticks; 0: for ever */
};

/* True if there is such an output format. */
bool dump_knows_format(const char *name);

/* Runs until `count` ticks are done or a signal comes; an exit status. */
int dump_run(const struct dump_options *o);
