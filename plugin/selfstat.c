/* SPDX-License-Identifier: MIT */
#include "selfstat.h"

struct row {
	size_t offset; /* of a uint64_t in struct selfstat */
	bool derive;
	double scale; /* of a gauge */
	const char *type, *instance, *ds;
};

#define GAUGE(field, type, instance)                                           \
	{                                                                      \
		offsetof(struct selfstat, field), false, 1, type, instance,    \
		    "value"                                                    \
	}
#define TOTAL(field, instance)                                                 \
	{                                                                      \
		offsetof(struct selfstat, field), true, 1, "total_operations", \
		    instance, "value"                                          \
	}
#define SECONDS(field, instance)                                               \
	{                                                                      \
		offsetof(struct selfstat, field), false, 1e-9, "duration",     \
		    instance, "seconds"                                        \
	}

static const struct row rows[] = {
    GAUGE(processes, "count", "processes"),
    GAUGE(groups, "count", "groups"),
    GAUGE(kept_fds, "file_handles", "kept"),
    GAUGE(stalled, "count", "stalled"),
    TOTAL(reads, "reads"),
    TOTAL(reads_saved, "reads_saved"),
    GAUGE(unreadable_stat, "count", "unreadable_stat"),
    GAUGE(unreadable_io, "count", "unreadable_io"),
    GAUGE(unreadable_fds, "count", "unreadable_fds"),
    GAUGE(unreadable_status, "count", "unreadable_status"),
    GAUGE(unreadable_limits, "count", "unreadable_limits"),
    GAUGE(unreadable_tasks, "count", "unreadable_tasks"),
    GAUGE(unreadable_pss, "count", "unreadable_pss"),
    GAUGE(unreadable_gpu, "count", "unreadable_gpu"),
    GAUGE(gpu_clients, "count", "gpu_clients"),
    TOTAL(gpu_stalls, "gpu_stalls"),
    TOTAL(unreadable_exe, "unreadable_exe"),
    TOTAL(unreadable_cgroup, "unreadable_cgroup"),
    TOTAL(unreadable_cmdline, "unreadable_cmdline"),
    TOTAL(stalls, "stalls"),
    TOTAL(regex_limits, "regex_limits"),
    TOTAL(anomalies, "counter_anomalies"),
    TOTAL(parse_errors, "parse_errors"),
    TOTAL(failed_reads, "failed_reads"),
    TOTAL(groups_refused, "groups_refused"),
    GAUGE(exit_records, "gauge", "exit_records"),
    TOTAL(exits, "exits"),
    TOTAL(exits_lost, "exits_lost"),
    TOTAL(exits_unsettled, "exits_unsettled"),
    GAUGE(rules_ok, "gauge", "rules_ok"),
    GAUGE(rules_generation, "gauge", "rules_generation"),
    SECONDS(pss_oldest_ns, "pss_oldest"),
    SECONDS(tick_wall_ns, "tick_wall"),
    SECONDS(tick_cpu_ns, "tick_cpu"),
};

const struct selfstat_type selfstat_types[] = {
    {"count", "value"},	     {"file_handles", "value"},
    {"duration", "seconds"}, {"total_operations", "value"},
    {"gauge", "value"},	     {NULL, NULL},
};

void selfstat_emit(const struct selfstat *s, value_fn *fn, void *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		uint64_t v = *(const uint64_t *)((const char *)s + row->offset);
		struct value_out out = {
		    .group = SELF_GROUP,
		    .type = row->type,
		    .instance = row->instance,
		    .derive = row->derive,
		    .n = 1,
		    .ds = {row->ds},
		};

		if (v == SELFSTAT_ABSENT)
			continue;
		if (row->derive)
			out.u[0] = v;
		else
			out.d[0] = (double)v * row->scale;
		fn(arg, &out);
	}
}
