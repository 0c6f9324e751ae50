/* SPDX-License-Identifier: MIT */
/*
 * One interval: list, gate, sample, classify, fold, emit. Owns everything
 * below it. Time is a parameter and emitting is a callback: it knows neither
 * collectd nor a terminal, and never logs. What a person should know is an
 * event, and each state is told once.
 *
 * Invariant: monitor_tick() does not wait for longer than MONITOR_WAIT_NS plus
 * 50 ms for each process or cgroup that newly hangs, and 100 ms for each
 * pidfile, whatever these do.
 */
#pragma once

#include <sys/types.h>

#include "base.h"
#include "group.h"
#include "metric.h"

struct monitor;

#define MONITOR_WAIT_NS (100 * NSEC_PER_MSEC)

struct monitor_options {
	const char *rules_path;	   /* copied */
	const char *proc_path;	   /* copied; NULL: /proc */
	const char *sys_path;	   /* copied; NULL: /sys */
	struct metric_scale scale; /* zeros: of this host */
};

enum monitor_level {
	MONITOR_INFO,
	MONITOR_WARNING,
	MONITOR_ERROR,
};

struct monitor_event {
	enum monitor_level level;
	char text[480];
};

/* What the last tick cost, for `_self`; the caller measures it. */
struct monitor_cost {
	uint64_t wall_ns, cpu_ns;
};

/*
 * Returns 0; or a negative errno if the proc root is unusable or memory is
 * out. Rules that are missing or wrong are an event of the first tick.
 */
int monitor_open(const struct monitor_options *o, struct monitor **ret);

/* Never waits for a stuck read. NULL is accepted. */
void monitor_free(struct monitor *m);

/*
 * One interval. Returns 0, or a negative errno if the processes could not be
 * listed; what could be told then was told.
 */
int monitor_tick(struct monitor *m, const struct moment *now, value_fn *emit,
		 void *arg);

/* The next event that nobody took yet; false if there is none. */
bool monitor_take_event(struct monitor *m, struct monitor_event *ret);

void monitor_set_cost(struct monitor *m, const struct monitor_cost *cost);

/* Figures for the command's bench. */
struct monitor_figures {
	uint64_t n_processes;
	uint64_t n_looked;     /* processes read in the last tick */
	uint64_t n_calls;      /* system calls for processes so far */
	uint64_t n_idle_calls; /* of them: listing and clocks */
	uint64_t n_groups;
	/* So far, for the sake of GPUs alone. */
	uint64_t n_gpu_calls;		 /* system calls for processes */
	uint64_t n_gpu_looks, n_gpu_fds; /* tables; their descriptors */
	bool gate;
};

void monitor_get_figures(const struct monitor *m, struct monitor_figures *ret);

/* The same of PSS; the first four are numbers of processes. */
struct monitor_pss {
	uint64_t n_wanted; /* that have memory and a group that wants it */
	uint64_t n_known;  /* of them: that stand for what was read */
	uint64_t n_refused, n_large;
	uint64_t n_read;    /* readings so far */
	uint64_t cpu_ns;    /* that attempts took so far */
	double read_gib;    /* RSS of what was read so far */
	double fixed_us;    /* CPU time of a reading, and for each GiB */
	double gib_us;	    /* of RSS, as it was found to be */
	double budget;	    /* share of one CPU, 0 to 1 */
	uint64_t oldest_ns; /* age of the oldest reading */
	uint64_t unread_ns; /* longest that one waits for its first */
};

void monitor_get_pss(const struct monitor *m, struct monitor_pss *ret);

/*
 * CPU time in microseconds: of the host, and what the groups of one view
 * counted. Interrupts are part of the system's time; what the hypervisor took
 * (steal) is no part of the host's.
 */
struct monitor_cpu {
	uint64_t host_user, host_system;
	uint64_t groups_user, groups_system;
	uint64_t interrupts, steal;
};

static inline int64_t monitor_cpu_residual(const struct monitor_cpu *cpu)
{
	return (int64_t)(cpu->host_user + cpu->host_system) -
	       (int64_t)(cpu->groups_user + cpu->groups_system);
}

/*
 * Of the last tick and since the first. False if that tick has none: it was
 * the first, or /proc/stat was unreadable.
 */
bool monitor_get_cpu(const struct monitor *m, struct monitor_cpu *ret_tick,
		     struct monitor_cpu *ret_total);

/* One process, for those who show it; strings live until the next tick. */
struct monitor_member {
	pid_t pid;
	uint64_t start_ns;  /* CLOCK_BOOTTIME; with pid: who it is */
	const char *comm;   /* may hold any byte */
	const char *group;  /* NULL: in none (yet) */
	const char *series; /* of its own beside that; or NULL */
	bool dropped;	    /* it is counted nowhere */
	bool other;	    /* no rule took it, nor an ancestor of it */
	char state;
	bool has_cpu, has_rss, has_gpu;
	double gpu;	 /* percent of its busiest engine */
	uint64_t cpu_us; /* since it started */
	uint64_t rss_bytes;
};

typedef void member_fn(void *arg, const struct monitor_member *m);

/*
 * Tells the processes as the last tick left them, by ascending pid; those of
 * which nothing could be read are left out. Views count from 0 in the order of
 * the rule file. Returns false if there is no such view.
 */
bool monitor_each_member(const struct monitor *m, size_t view, member_fn *fn,
			 void *arg);

/* "app" is that of the rules outside `views`; NULL if there is no such view. */
const char *monitor_view_name(const struct monitor *m, size_t view);

/* False until a rule file was good. */
bool monitor_has_rules(const struct monitor *m);
