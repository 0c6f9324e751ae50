/* SPDX-License-Identifier: MIT */
/*
 * Groups: named accumulators. Counters grow by what each member grew and
 * never step back, whoever leaves, moves or is reloaded; gauges are summed
 * anew in each tick. It knows metric rows, no process, no rule, no file.
 *
 * Invariant: the total of a counter row never falls while the group lives.
 */
#pragma once

#include "base.h"
#include "cgroupsum.h"
#include "gpusum.h"
#include "metric.h"
#include "pss.h"

enum {
	GROUP_NAME_SIZE = 64,
};

struct group {
	char name[GROUP_NAME_SIZE];
	collect_mask collect;
	metric_mask wanted; /* stored rows that `collect` needs */
	bool is_stale;	    /* what it collects is what older rules said */
	bool is_static;	    /* stays and is reported without members */
	bool is_series;	    /* of one process at a time */
	bool is_silent;	    /* not told of while it has no member */
	uint64_t n_members;
	uint64_t raw_hash; /* of the name before it was made safe; 0: none */
	bool told_merged;  /* that several names became this one */
	uint32_t rule;	   /* 1 + index of the rule whose cap it counts to */
	uint64_t idle_since_ns; /* 0 while it has members */
	uint64_t total[METRIC_N];
	uint64_t exited_ns[2]; /* user, system: CPU time by exit records */
	bool is_awaited;       /* something may be counted yet: it stays */
	uint64_t have;	       /* bit per row: some member gave it */
	uint64_t first_start, last_start; /* ticks since boot */
	struct group_sum {
		bool counts;	     /* it is one of those that are summed */
		uint64_t seen[2];    /* its CPU time, user and system, then */
		uint64_t seen_ns[2]; /* and that by exit records */
	} sum;			     /* of residual.h */
	struct pss_sum pss;
	struct gpusum gpu;
	struct cgroupsum cgroup;
	struct cgroup_use *cgroup_use; /* of cgroupread.h */
};

/* What group_fold() wants to know of a member. */
struct group_member {
	const uint64_t *value; /* by stored row */
	metric_mask have;
	char state;
	uint64_t start;		       /* ticks since boot */
	const struct pss_reading *pss; /* NULL: nobody asks for it */
	struct pss_now pss_now;
};

struct groups {
	struct group **group; /* in order of creation */
	size_t n_groups, cap;
	void *by_name;		   /* of search.h */
	uint8_t state_row[128];	   /* row of a state letter, METRIC_N if none */
	metric_mask summed, worst; /* stored gauge rows by their fold */
	bool no_pss;		   /* the host gives none */
	struct gpusum_labels gpu_labels;
	bool has_exits; /* it gave exit records */
};

/* Hands one value list on; `v` lives until it returns. */
typedef void value_fn(void *arg, const struct value_out *v);

void groups_init(struct groups *gs);
void groups_done(struct groups *gs);

/* The group of that name, or NULL. */
struct group *groups_find(struct groups *gs, const char *name);

/*
 * The group of that name, made if there is none. Several rules may share a
 * name: it collects what any of them wants. NULL if out of memory.
 */
struct group *groups_get(struct groups *gs, const char *name,
			 collect_mask collect);

/* Forgets groups that are not static and idle for timeout_ns or longer. */
void groups_expire(struct groups *gs, uint64_t now_ns, uint64_t timeout_ns);

/* Adds growth of a counter row. */
static inline void group_count(struct group *g, unsigned row, uint64_t grown)
{
	if (__builtin_add_overflow(g->total[row], grown, &g->total[row]))
		g->total[row] = UINT64_MAX;
	g->have |= METRIC_BIT(row);
}

/* Adds CPU time that was not seen in stat. */
static inline void group_count_exited(struct group *g, uint64_t user_ns,
				      uint64_t system_ns)
{
	g->exited_ns[0] += user_ns;
	g->exited_ns[1] += system_ns;
}

/* Counts one more birth. */
void group_count_birth(struct group *g);

/* Gauges start from nothing. */
void groups_begin(struct groups *gs);

/* Adds one member to the gauges. */
void groups_fold(struct groups *gs, struct group *g,
		 const struct group_member *m);

/* Notes which groups are idle; call after the last fold of a tick. */
void groups_end(struct groups *gs, uint64_t now_ns);

/*
 * Tells every value of every group, rows in the order of the table. `boot_ns`
 * is CLOCK_BOOTTIME. What no member could give is not told.
 */
void groups_emit(const struct groups *gs, const struct metric_scale *scale,
		 uint64_t boot_ns, value_fn *fn, void *arg);
