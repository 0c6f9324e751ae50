/* SPDX-License-Identifier: MIT */
/*
 * `proctally dump`: prints what the plugin would dispatch, from the same core,
 * one tick after the other. It knows the formats by their interface alone.
 *
 * Invariant: a file that is to be replaced is replaced by a whole tick, or not.
 */
#pragma once

#include "base.h"
#include "format.h"
#include "monitor.h"

struct dump_options {
	struct monitor_options monitor;
	const struct format *format;
	const char *output; /* file to replace in each tick; NULL: stdout */
	double interval_s;
	unsigned long count; /* ticks; 0: for ever */
	bool residual;	     /* a table of CPU time instead of the values */
};

/* Runs until `count` ticks are done or a signal comes; an exit status. */
int dump_run(const struct dump_options *o);
