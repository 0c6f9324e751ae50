/* SPDX-License-Identifier: MIT */
/*
 * `proctally bench`: what a tick costs on this host, beside a bare loop that
 * makes the same system calls on the same processes and does nothing else.
 */
#pragma once

#include "monitor.h"

struct bench_options {
	struct monitor_options monitor; /* rules_path NULL: one group of all */
	unsigned count;			/* ticks that are measured */
	double pause_s; /* between them, so that something runs */
};

/*
 * Rules for who gave none: one group of everything. Returns their path, good
 * as long as *ret_fd is open, or NULL.
 */
const char *bench_rules(int *ret_fd, char *path, size_t size);

/*
 * What it costs to look for descriptors of GPUs; rules_path is not used, and
 * without a sys_path there is one with a GPU.
 */
int bench_gpu_run(const struct bench_options *o);

/* What PSS costs on this host; as bench_run(). */
int bench_pss_run(const struct bench_options *o);

/* Prints lines of "name value"; an exit status. */
int bench_run(const struct bench_options *o);
