/* SPDX-License-Identifier: MIT */
/*
 * What proctally says of itself, in the group `_self`: one row each in a
 * table. It knows the figures, not where they come from.
 *
 * Invariant: what is not known is SELFSTAT_ABSENT and not told; a 0 is one.
 */
#pragma once

#include "base.h"
#include "group.h"

#define SELF_GROUP "_self"

struct selfstat {
	uint64_t processes, groups, kept_fds, stalled;
	uint64_t reads, reads_saved;
	uint64_t unreadable_stat, unreadable_io, unreadable_fds;
	uint64_t unreadable_status, unreadable_limits, unreadable_tasks;
	uint64_t unreadable_pss, pss_oldest_ns;
	uint64_t unreadable_gpu, gpu_clients, gpu_stalls;
	uint64_t unreadable_exe, unreadable_cgroup, unreadable_cmdline;
	uint64_t stalls, regex_limits, anomalies, parse_errors, failed_reads;
	uint64_t groups_refused;
	uint64_t exit_records, exits, exits_lost, exits_unsettled;
	uint64_t rules_ok, rules_generation;
	uint64_t tick_wall_ns, tick_cpu_ns;
};

/* The types that selfstat_emit() uses; the last one's type is NULL. */
struct selfstat_type {
	const char *type, *ds;
};

extern const struct selfstat_type selfstat_types[];

/*
 * Tells all figures but those of SELFSTAT_ABSENT: of files that nobody asked
 * for it is not known whether they could be read.
 */
#define SELFSTAT_ABSENT UINT64_MAX

void selfstat_emit(const struct selfstat *s, value_fn *fn, void *arg);
