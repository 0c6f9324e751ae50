/* SPDX-License-Identifier: MIT */
/*
 * What time it is: for the callers of the core, and for deadlines of lanes. It
 * knows no clocks of other processes; those are in procfs.h.
 *
 * Invariant: it keeps nothing from call to call.
 */
#pragma once

#include <time.h>

#include "base.h"

static inline uint64_t clocks_read(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline struct moment clocks_now(void)
{
	return (struct moment){
	    .mono_ns = clocks_read(CLOCK_MONOTONIC),
	    .boot_ns = clocks_read(CLOCK_BOOTTIME),
	    .real_ns = clocks_read(CLOCK_REALTIME),
	};
}

/* CPU time of the calling thread and of the whole process, ns. */
static inline uint64_t clocks_thread_cpu(void)
{
	return clocks_read(CLOCK_THREAD_CPUTIME_ID);
}

static inline uint64_t clocks_process_cpu(void)
{
	return clocks_read(CLOCK_PROCESS_CPUTIME_ID);
}
