/* SPDX-License-Identifier: MIT */
/*
 * What the kernel counts of a whole cgroup, as a group has it: which values
 * there are, how counters go on when the cgroup is another one, and under
 * which types of collectd they leave. It knows no file; these values are
 * never summed with those of processes, for both are the same bytes.
 *
 * Invariant: a counter never falls, whatever cgroup comes after another.
 */
#pragma once

#include "base.h"
#include "metric.h"

enum cgroupfs_value {
	CGROUPFS_MEMORY, /* bytes */
	CGROUPFS_SWAP,
	CGROUPFS_CPU_US,
	CGROUPFS_PERIODS,
	CGROUPFS_THROTTLED, /* periods */
	CGROUPFS_THROTTLED_US,
	CGROUPFS_PIDS,
	CGROUPFS_READ_BYTES, /* of all devices, stacked ones each */
	CGROUPFS_WRITE_BYTES,
	CGROUPFS_READ_OPS,
	CGROUPFS_WRITE_OPS,
	CGROUPFS_DMEM, /* bytes in regions of all devices */
	CGROUPFS_CPU_SOME_US,
	CGROUPFS_CPU_FULL_US,
	CGROUPFS_MEMORY_SOME_US,
	CGROUPFS_MEMORY_FULL_US,
	CGROUPFS_IO_SOME_US,
	CGROUPFS_IO_FULL_US,
	CGROUPFS_N_VALUES,
};

#define CGROUPFS_BIT(value) (UINT32_C(1) << (value))

struct cgroupfs_values {
	uint64_t value[CGROUPFS_N_VALUES];
	uint32_t have;
};

struct cgroupsum {
	uint64_t value[CGROUPFS_N_VALUES]; /* counters: what they grew by */
	uint32_t have;			   /* told in this tick */
};

/* Which cgroup `now` is of, seen from the reading before. */
enum cgroupsum_whose {
	CGROUPSUM_FIRST,   /* what it had before is nobody's growth */
	CGROUPSUM_SAME,	   /* a counter that falls lost a part: no growth */
	CGROUPSUM_RENEWED, /* of the same name: it began at 0 meanwhile */
};

/* Takes a reading; `last` is the one before, and becomes this one. */
void cgroupsum_take(struct cgroupsum *s, enum cgroupsum_whose whose,
		    const struct cgroupfs_values *now,
		    struct cgroupfs_values *last);

/*
 * Fills in the next value list of that type, from *at on, which begins at 0:
 * instance, data sources and values. False if there is none any more.
 */
bool cgroupsum_next(const struct cgroupsum *s, const char *type, size_t *at,
		    struct value_out *out);
