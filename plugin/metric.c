/* SPDX-License-Identifier: MIT */
#include "metric.h"

const struct collect_def collect_defs[COLLECT_N] = {
    [COLLECT_CPU] = {"cpu", true},
    [COLLECT_REAPED] = {"reaped", false},
    [COLLECT_EXITED] = {"exited", false},
    [COLLECT_MEMORY] = {"memory", true},
    [COLLECT_RSS_SPLIT] = {"rss_split", false},
    [COLLECT_SWAP] = {"swap", true},
    [COLLECT_PSS] = {"pss", true},
    [COLLECT_COUNT] = {"count", true},
    [COLLECT_STATE] = {"state", true},
    [COLLECT_FAULTS] = {"faults", true},
    [COLLECT_IO] = {"io", true},
    [COLLECT_FDS] = {"fds", true},
    [COLLECT_FD_LIMIT] = {"fd_limit", false},
    [COLLECT_CTX] = {"ctx", false},
    [COLLECT_UPTIME] = {"uptime", true},
    [COLLECT_STARTS] = {"starts", true},
    [COLLECT_GPU] = {"gpu", true},
    [COLLECT_CGROUP] = {"cgroup", false},
    [COLLECT_DELAY] = {"delay", false},
};

#define STAT(n) SOURCE_STAT, n, NULL
#define KEY(source, key) SOURCE_##source, 0, key
#define READ(source) SOURCE_##source, 0, NULL
#define KNOWN(key) SOURCE_NONE, 0, key

/*
 * Fields of stat and keys of status, io and limits: proc(5), and
 * fs/proc/array.c, fs/proc/base.c, fs/proc/task_mmu.c of Linux 6.18.
 */
/* clang-format off */
const struct metric metrics[METRIC_N] = {
	{ COLLECT_CPU, STAT(14), UNIT_TICKS, FOLD_COUNTER, "ps_cputime", NULL, "user" },
	{ COLLECT_CPU, STAT(15), UNIT_TICKS, FOLD_COUNTER, "ps_cputime", NULL, "syst" },
	{ COLLECT_REAPED, STAT(16), UNIT_TICKS, FOLD_COUNTER, "ps_cputime", "reaped", "user" },
	{ COLLECT_REAPED, STAT(17), UNIT_TICKS, FOLD_COUNTER, "ps_cputime", "reaped", "syst" },
	{ COLLECT_MEMORY, STAT(24), UNIT_PAGES, FOLD_SUM, "ps_rss", NULL, "value" },
	{ COLLECT_MEMORY, STAT(23), UNIT_NONE, FOLD_SUM, "ps_vm", NULL, "value" },
	{ COLLECT_RSS_SPLIT, KEY(STATUS, "RssAnon"), UNIT_KIB, FOLD_SUM, "memory", "anon", "value" },
	{ COLLECT_RSS_SPLIT, KEY(STATUS, "RssFile"), UNIT_KIB, FOLD_SUM, "memory", "file", "value" },
	{ COLLECT_RSS_SPLIT, KEY(STATUS, "RssShmem"), UNIT_KIB, FOLD_SUM, "memory", "shmem", "value" },
	{ COLLECT_SWAP, KEY(STATUS, "VmSwap"), UNIT_KIB, FOLD_SUM, "memory", "swap", "value" },
	{ COLLECT_COUNT, KNOWN(NULL), UNIT_NONE, FOLD_MEMBERS, "ps_count", NULL, "processes" },
	{ COLLECT_COUNT, STAT(20), UNIT_NONE, FOLD_SUM, "ps_count", NULL, "threads" },
	{ COLLECT_FAULTS, STAT(10), UNIT_NONE, FOLD_COUNTER, "ps_pagefaults", NULL, "minflt" },
	{ COLLECT_FAULTS, STAT(12), UNIT_NONE, FOLD_COUNTER, "ps_pagefaults", NULL, "majflt" },
	{ COLLECT_IO, KEY(IO, "read_bytes"), UNIT_NONE, FOLD_COUNTER, "disk_octets", NULL, "read" },
	{ COLLECT_IO, KEY(IO, "write_bytes"), UNIT_NONE, FOLD_COUNTER, "disk_octets", NULL, "write" },
	{ COLLECT_IO, KEY(IO, "rchar"), UNIT_NONE, FOLD_COUNTER, "io_octets", NULL, "rx" },
	{ COLLECT_IO, KEY(IO, "wchar"), UNIT_NONE, FOLD_COUNTER, "io_octets", NULL, "tx" },
	{ COLLECT_IO, KEY(IO, "syscr"), UNIT_NONE, FOLD_COUNTER, "ps_disk_ops", NULL, "read" },
	{ COLLECT_IO, KEY(IO, "syscw"), UNIT_NONE, FOLD_COUNTER, "ps_disk_ops", NULL, "write" },
	{ COLLECT_FDS, READ(FDS), UNIT_NONE, FOLD_SUM, "file_handles", NULL, "value" },
	{ COLLECT_FD_LIMIT, READ(LIMITS), UNIT_PPM, FOLD_WORST, "percent", "fd_limit", "value" },
	{ COLLECT_CTX, KEY(TASKS, "voluntary_ctxt_switches"), UNIT_NONE, FOLD_COUNTER, "contextswitch", "voluntary", "value" },
	{ COLLECT_CTX, KEY(TASKS, "nonvoluntary_ctxt_switches"), UNIT_NONE, FOLD_COUNTER, "contextswitch", "involuntary", "value" },
	{ COLLECT_DELAY, KEY(DELAY, "cpu"), UNIT_NSEC, FOLD_COUNTER, "total_time_in_ms", "delay_cpu", "value" },
	{ COLLECT_DELAY, KEY(DELAY, "blkio"), UNIT_NSEC, FOLD_COUNTER, "total_time_in_ms", "delay_blkio", "value" },
	{ COLLECT_DELAY, KEY(DELAY, "swapin"), UNIT_NSEC, FOLD_COUNTER, "total_time_in_ms", "delay_swapin", "value" },
	{ COLLECT_EXITED, KNOWN(NULL), UNIT_NONE, FOLD_EXITED, "ps_cputime", "exited", "user" },
	{ COLLECT_EXITED, KNOWN(NULL), UNIT_NONE, FOLD_EXITED, "ps_cputime", "exited", "syst" },
	{ COLLECT_PSS, KNOWN(NULL), UNIT_NONE, FOLD_PSS, "memory", "pss", "value" },
	{ COLLECT_PSS, KNOWN(NULL), UNIT_NONE, FOLD_USS, "memory", "uss", "value" },
	{ COLLECT_PSS, KNOWN(NULL), UNIT_NONE, FOLD_SWAP_PSS, "memory", "swap_pss", "value" },
	{ COLLECT_PSS, KNOWN(NULL), UNIT_NONE, FOLD_MAPS, "count", "maps", "value" },
	{ COLLECT_PSS, KNOWN(NULL), UNIT_NONE, FOLD_PSS_READ, "count", "pss_read", "value" },
	{ COLLECT_STATE, KNOWN("R"), UNIT_NONE, FOLD_STATE, "ps_state", "running", "value" },
	{ COLLECT_STATE, KNOWN("S"), UNIT_NONE, FOLD_STATE, "ps_state", "sleeping", "value" },
	{ COLLECT_STATE, KNOWN("D"), UNIT_NONE, FOLD_STATE, "ps_state", "blocked", "value" },
	{ COLLECT_STATE, KNOWN("ZX"), UNIT_NONE, FOLD_STATE, "ps_state", "zombies", "value" },
	{ COLLECT_STATE, KNOWN("Tt"), UNIT_NONE, FOLD_STATE, "ps_state", "stopped", "value" },
	{ COLLECT_STATE, KNOWN("IP"), UNIT_NONE, FOLD_STATE, "ps_state", "idle", "value" },
	{ COLLECT_UPTIME, KNOWN(NULL), UNIT_NONE, FOLD_OLDEST, "uptime", "oldest", "value" },
	{ COLLECT_UPTIME, KNOWN(NULL), UNIT_NONE, FOLD_NEWEST, "uptime", "newest", "value" },
	{ COLLECT_STARTS, KNOWN(NULL), UNIT_NONE, FOLD_BIRTHS, "total_operations", "starts", "value" },
	{ COLLECT_GPU, KNOWN(NULL), UNIT_NONE, FOLD_GPU_TIME, "total_time_in_ms", "gpu-", "value" },
	{ COLLECT_GPU, KNOWN(NULL), UNIT_NONE, FOLD_GPU_PERCENT, "percent", "gpu-", "value" },
	{ COLLECT_GPU, KNOWN(NULL), UNIT_NONE, FOLD_GPU_MEMORY, "memory", "gpu-", "value" },
	{ COLLECT_GPU, KNOWN(NULL), UNIT_NONE, FOLD_GPU_CLIENTS, "count", "gpu_clients", "value" },
	{ COLLECT_GPU, KNOWN(NULL), UNIT_NONE, FOLD_GPU_SHARED, "count", "gpu_shared", "value" },
	{ COLLECT_GPU, KNOWN(NULL), UNIT_NONE, FOLD_GPU_UNSEEN, "count", "gpu_unmeasured", "value" },
	{ COLLECT_CGROUP, KNOWN(NULL), UNIT_NONE, FOLD_CGROUP, "memory", "cgroup", "value" },
	{ COLLECT_CGROUP, KNOWN(NULL), UNIT_NONE, FOLD_CGROUP, "count", "cgroup_pids", "value" },
	{ COLLECT_CGROUP, KNOWN(NULL), UNIT_NONE, FOLD_CGROUP_COUNT, "total_time_in_ms", "cgroup_cpu", "value" },
	{ COLLECT_CGROUP, KNOWN(NULL), UNIT_NONE, FOLD_CGROUP_COUNT, "total_operations", "cgroup_periods", "value" },
	{ COLLECT_CGROUP, KNOWN(NULL), UNIT_NONE, FOLD_CGROUP_COUNT, "disk_octets", "cgroup", "read" },
	{ COLLECT_CGROUP, KNOWN(NULL), UNIT_NONE, FOLD_CGROUP_COUNT, "disk_octets", "cgroup", "write" },
	{ COLLECT_CGROUP, KNOWN(NULL), UNIT_NONE, FOLD_CGROUP_COUNT, "disk_ops", "cgroup", "read" },
	{ COLLECT_CGROUP, KNOWN(NULL), UNIT_NONE, FOLD_CGROUP_COUNT, "disk_ops", "cgroup", "write" },
};
/* clang-format on */

collect_mask collect_default(void)
{
	collect_mask mask = 0;

	for (unsigned i = 0; i < COLLECT_N; i++)
		if (collect_defs[i].on)
			mask |= (collect_mask)1 << i;
	return mask;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

unsigned metric_list_length(unsigned row)
{
	unsigned n = 1;

	while (row + n < METRIC_N && n < VALUE_LIST_MAX &&
	       same_text(metrics[row].type, metrics[row + n].type) &&
	       same_text(metrics[row].instance, metrics[row + n].instance))
		n++;
	return n;
}

metric_mask metric_wanted(collect_mask keys)
{
	metric_mask mask = 0;

	for (unsigned i = 0; i < METRIC_N_STORED; i++)
		if (keys & ((collect_mask)1 << metrics[i].collect))
			mask |= METRIC_BIT(i);
	return mask;
}

metric_mask metric_rows(enum metric_source source)
{
	metric_mask mask = 0;

	for (unsigned i = 0; i < METRIC_N_STORED; i++)
		if (metrics[i].source == source)
			mask |= METRIC_BIT(i);
	return mask;
}

metric_mask metric_counters(void)
{
	metric_mask mask = 0;

	for (unsigned i = 0; i < METRIC_N_STORED; i++)
		if (metrics[i].fold == FOLD_COUNTER)
			mask |= METRIC_BIT(i);
	return mask;
}

static uint64_t scale_up(uint64_t raw, uint64_t by)
{
	uint64_t v;

	return __builtin_mul_overflow(raw, by, &v) ? UINT64_MAX : v;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
	uint64_t v;

	return __builtin_add_overflow(a, b, &v) ? UINT64_MAX : v;
}

uint64_t metric_scale_counter(const struct metric *m,
			      const struct metric_scale *s, uint64_t raw)
{
	uint64_t hz = (uint64_t)s->ticks_per_second;

	switch (m->unit) {
	case UNIT_TICKS:
		return add_up(scale_up(raw / hz, 1000000),
			      raw % hz * 1000000 / hz);
	case UNIT_PAGES:
		return scale_up(raw, (uint64_t)s->page_size);
	case UNIT_KIB:
		return scale_up(raw, 1024);
	case UNIT_NSEC:
		return raw / NSEC_PER_MSEC;
	case UNIT_NONE:
	case UNIT_PPM:
		break;
	}
	return raw;
}

double metric_scale_gauge(const struct metric *m, const struct metric_scale *s,
			  uint64_t raw)
{
	if (m->unit == UNIT_PPM)
		return (double)raw / 1e4;
	return (double)metric_scale_counter(m, s, raw);
}
