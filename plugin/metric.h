/* SPDX-License-Identifier: MIT */
/*
 * THE table: each value that proctally can report is one row of metrics[].
 * A row says where the value is read, in which unit, how it is folded into a
 * group and under which collectd type it leaves. A new value from a file that
 * is read already is one new row and no other code.
 *
 * It does not know how files are read, which rules exist or what collectd is.
 * Invariant: rows that share (type, instance) are neighbours and belong to
 * one collect key; the rows with a value of their own per process come first.
 */
#pragma once

#include "base.h"

/* What a user switches under `collect:`. */
enum collect_key {
	COLLECT_CPU,
	COLLECT_REAPED,
	COLLECT_EXITED,
	COLLECT_MEMORY,
	COLLECT_RSS_SPLIT,
	COLLECT_SWAP,
	COLLECT_PSS,
	COLLECT_COUNT,
	COLLECT_STATE,
	COLLECT_FAULTS,
	COLLECT_IO,
	COLLECT_FDS,
	COLLECT_FD_LIMIT,
	COLLECT_CTX,
	COLLECT_UPTIME,
	COLLECT_STARTS,
	COLLECT_GPU,
	COLLECT_CGROUP,
	COLLECT_DELAY,
	COLLECT_N,
};

/* One bit per collect key. */
typedef uint32_t collect_mask;

struct collect_def {
	const char *name;
	bool on; /* by default */
};

extern const struct collect_def collect_defs[COLLECT_N];

collect_mask collect_default(void);

/* Where the value of one process is read. */
enum metric_source {
	SOURCE_STAT,   /* /proc/PID/stat, `field` */
	SOURCE_STATUS, /* /proc/PID/status, `key` */
	SOURCE_FDS,    /* number of entries of /proc/PID/fd */
	SOURCE_LIMITS, /* "Max open files" of /proc/PID/limits against FDS */
	SOURCE_TASKS,  /* /proc/PID/task/TID/status of every thread, `key` */
	SOURCE_IO,     /* /proc/PID/io, `key` */
	SOURCE_DELAY,  /* see delay.h, in its order; `key` is a name */
	SOURCE_NONE,   /* known without reading: membership, state, age */
	SOURCE_N,
};

enum metric_unit {
	UNIT_NONE,
	UNIT_TICKS, /* of sysconf(_SC_CLK_TCK); leaves as microseconds */
	UNIT_PAGES, /* of sysconf(_SC_PAGESIZE); leaves as bytes */
	UNIT_KIB,   /* leaves as bytes */
	UNIT_NSEC,  /* leaves as milliseconds */
	UNIT_PPM,   /* millionths; leaves as percent */
};

enum metric_fold {
	FOLD_COUNTER, /* growth of each member, accumulated for ever */
	FOLD_EXITED,  /* the part of CPU time that exit records told of */
	FOLD_BIRTHS,  /* members that joined by being born, accumulated */
	FOLD_SUM,     /* sum over the members that have the value */
	FOLD_WORST,   /* largest member */
	FOLD_MEMBERS, /* number of members */
	FOLD_STATE,   /* members whose state letter is in `key` */
	FOLD_OLDEST,  /* age in seconds of the oldest member */
	FOLD_NEWEST,  /* age in seconds of the newest member */

	/* Of members' readings of smaps_rollup, see pss.h. */
	FOLD_PSS,
	FOLD_USS,
	FOLD_SWAP_PSS,
	FOLD_MAPS,     /* their mappings, where smaps itself is read */
	FOLD_PSS_READ, /* members that rest on a reading */

	/* Of GPUs, see gpusum.h: one value for each device and engine. */
	FOLD_GPU_TIME, /* milliseconds that they were busy, accumulated */
	FOLD_GPU_PERCENT,
	FOLD_GPU_MEMORY,
	FOLD_GPU_CLIENTS, /* one number, as the next ones */
	FOLD_GPU_SHARED,  /* clients that others hold as well */
	FOLD_GPU_UNSEEN,  /* members whose use nobody can measure */

	/* Of the cgroup that a group is, see cgroupsum.h: all of that type. */
	FOLD_CGROUP,
	FOLD_CGROUP_COUNT,
};

struct metric {
	enum collect_key collect;
	enum metric_source source;
	unsigned field; /* SOURCE_STAT: number as in proc(5), from 1 */
	/* SOURCE_STATUS, _IO, _TASKS, _DELAY: key; FOLD_STATE: letters */
	const char *key;
	enum metric_unit unit;
	enum metric_fold fold;
	const char *type;     /* collectd type */
	const char *instance; /* collectd type_instance, or NULL */
	const char *ds;	      /* name of the data source within the type */
};

enum {
	METRIC_N_STORED = 27, /* rows that keep a value in each process */
	METRIC_N = 57,
};

/* One bit per stored row. */
typedef uint64_t metric_mask;

#define METRIC_BIT(row) (UINT64_C(1) << (row))

extern const struct metric metrics[METRIC_N];

/* True for rows that leave as DERIVE; the others leave as GAUGE. */
static inline bool metric_is_counter(const struct metric *m)
{
	return m->fold == FOLD_COUNTER || m->fold == FOLD_EXITED ||
	       m->fold == FOLD_BIRTHS || m->fold == FOLD_GPU_TIME ||
	       m->fold == FOLD_CGROUP_COUNT;
}

/* Number of rows, from `row` on, that leave as one value list. */
unsigned metric_list_length(unsigned row);

/* The stored rows that these keys need. */
metric_mask metric_wanted(collect_mask keys);

/* The stored rows of one source. */
metric_mask metric_rows(enum metric_source source);

/* The stored rows that are counters. */
metric_mask metric_counters(void);

/* Scale of raw values of this host. */
struct metric_scale {
	long ticks_per_second; /* sysconf(_SC_CLK_TCK) */
	long page_size;	       /* sysconf(_SC_PAGESIZE), bytes */
};

/* A raw counter in the unit in which it leaves; wraps never (saturates). */
uint64_t metric_scale_counter(const struct metric *m,
			      const struct metric_scale *s, uint64_t raw);

/* A raw gauge in the unit in which it leaves. */
double metric_scale_gauge(const struct metric *m, const struct metric_scale *s,
			  uint64_t raw);

/*
 * What leaves: one value list. Strings are borrowed and live until the
 * callback returns.
 */
enum {
	VALUE_LIST_MAX = 2,
};

struct value_out {
	const char *group;    /* collectd plugin_instance */
	const char *type;     /* collectd type */
	const char *instance; /* collectd type_instance or NULL */
	bool derive;	      /* u[] counts, else d[] holds */
	unsigned n;
	const char *ds[VALUE_LIST_MAX];
	union {
		uint64_t u[VALUE_LIST_MAX];
		double d[VALUE_LIST_MAX];
	};
};
