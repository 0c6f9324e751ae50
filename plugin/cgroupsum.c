/* SPDX-License-Identifier: MIT */
#include "cgroupsum.h"

struct row {
	const char *type, *instance;
	unsigned divisor;
	unsigned n;
	struct {
		enum cgroupfs_value value;
		const char *ds;
	} part[VALUE_LIST_MAX];
};

#define ONE(value)                                                             \
	{                                                                      \
		{                                                              \
			CGROUPFS_##value, "value"                              \
		}                                                              \
	}
#define TWO(a, ds_a, b, ds_b)                                                  \
	{                                                                      \
		{CGROUPFS_##a, ds_a},                                          \
		{                                                              \
			CGROUPFS_##b, ds_b                                     \
		}                                                              \
	}
#define MSEC 1000 /* of microseconds */

/* clang-format off */
static const struct row rows[] = {
	{ "memory", "cgroup", 1, 1, ONE(MEMORY) },
	{ "memory", "cgroup_swap", 1, 1, ONE(SWAP) },
	{ "memory", "cgroup_dmem", 1, 1, ONE(DMEM) },
	{ "count", "cgroup_pids", 1, 1, ONE(PIDS) },
	{ "total_time_in_ms", "cgroup_cpu", MSEC, 1, ONE(CPU_US) },
	{ "total_time_in_ms", "cgroup_throttled", MSEC, 1, ONE(THROTTLED_US) },
	{ "total_time_in_ms", "cgroup_cpu_some", MSEC, 1, ONE(CPU_SOME_US) },
	{ "total_time_in_ms", "cgroup_cpu_full", MSEC, 1, ONE(CPU_FULL_US) },
	{ "total_time_in_ms", "cgroup_memory_some", MSEC, 1, ONE(MEMORY_SOME_US) },
	{ "total_time_in_ms", "cgroup_memory_full", MSEC, 1, ONE(MEMORY_FULL_US) },
	{ "total_time_in_ms", "cgroup_io_some", MSEC, 1, ONE(IO_SOME_US) },
	{ "total_time_in_ms", "cgroup_io_full", MSEC, 1, ONE(IO_FULL_US) },
	{ "total_operations", "cgroup_periods", 1, 1, ONE(PERIODS) },
	{ "total_operations", "cgroup_throttled", 1, 1, ONE(THROTTLED) },
	{ "disk_octets", "cgroup", 1, 2, TWO(READ_BYTES, "read", WRITE_BYTES, "write") },
	{ "disk_ops", "cgroup", 1, 2, TWO(READ_OPS, "read", WRITE_OPS, "write") },
};
/* clang-format on */

#define GAUGES                                                                 \
	(CGROUPFS_BIT(CGROUPFS_MEMORY) | CGROUPFS_BIT(CGROUPFS_SWAP) |         \
	 CGROUPFS_BIT(CGROUPFS_DMEM) | CGROUPFS_BIT(CGROUPFS_PIDS))

static uint64_t growth_of(uint64_t now, uint64_t was,
			  enum cgroupsum_whose whose)
{
	/* All of it is new, also where it is more than the last one had. */
	if (whose == CGROUPSUM_RENEWED)
		return now;
	return now > was ? now - was : 0;
}

void cgroupsum_take(struct cgroupsum *s, enum cgroupsum_whose whose,
		    const struct cgroupfs_values *now,
		    struct cgroupfs_values *last)
{
	for (uint32_t have = now->have; have; have &= have - 1) {
		unsigned i = (unsigned)__builtin_ctz(have);
		bool known =
		    whose != CGROUPSUM_FIRST && last->have & CGROUPFS_BIT(i);

		if (CGROUPFS_BIT(i) & GAUGES)
			s->value[i] = now->value[i];
		else if (known)
			s->value[i] +=
			    growth_of(now->value[i], last->value[i], whose);
		last->value[i] = now->value[i];
	}
	if (whose == CGROUPSUM_FIRST)
		last->have = 0;
	last->have |= now->have;
	s->have = now->have;
}

static bool fill_in(const struct row *row, const struct cgroupsum *s,
		    struct value_out *out)
{
	out->instance = row->instance;
	out->n = row->n;
	for (unsigned k = 0; k < row->n; k++) {
		unsigned i = row->part[k].value;
		uint64_t v = s->value[i] / row->divisor;

		if (!(s->have & CGROUPFS_BIT(i)))
			return false;
		out->ds[k] = row->part[k].ds;
		out->derive = !(CGROUPFS_BIT(i) & GAUGES);
		if (out->derive)
			out->u[k] = v;
		else
			out->d[k] = (double)v;
	}
	return true;
}

bool cgroupsum_next(const struct cgroupsum *s, const char *type, size_t *at,
		    struct value_out *out)
{
	while (*at < ARRAY_SIZE(rows)) {
		const struct row *row = &rows[(*at)++];

		if (strcmp(row->type, type) == 0 && fill_in(row, s, out))
			return true;
	}
	return false;
}
