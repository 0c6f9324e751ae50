/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the monitor share: monitor.c (one interval), place.c
 * (processes into groups), fold.c (what a group uses), reload.c (the rule
 * file), notice.c (what a person should know) and explain.c (why a process is
 * where it is). Nobody else includes it.
 *
 * Invariant: what a process grew by is counted to the group that it is in
 * before it is moved to another one.
 */
#pragma once

#include <sys/types.h>
#include <time.h>

#include "cgroupread.h"
#include "classify.h"
#include "delay.h"
#include "diag.h"
#include "gpu-host.h"
#include "exits-pump.h"
#include "group.h"
#include "ledger.h"
#include "monitor.h"
#include "procfs.h"
#include "pssplan.h"
#include "proctab.h"
#include "residual.h"
#include "rulefile.h"
#include "runner.h"
#include "selfstat.h"
#include "smaps.h"

enum {
	EVENTS_MAX = 64,
	STALLS_MAX = 16, /* told by one look at the lane */
};

/*
 * What tells that a file is another one than before, or may be read now: the
 * time of change covers that of modification.
 */
struct file_mark {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec ctime;
	bool there;
};

/* States that were told, so that each is told once. */
struct told {
	bool hidepid, kept_full, failed_reads, exe, groups, no_pss, pss;
	bool no_exits, exits_lost;
	uint32_t denied;	 /* bit per source */
	uint64_t pss_refused_ns; /* since when some are; 0: none is */
};

struct stall {
	pid_t pid;
	uint64_t start;
	bool cmdline; /* or its memory map */
};

/* Of pssread.c. */
struct pssread {
	struct pssplan plan;
	struct smaps_host host;
	unsigned rss_row, swap_row;
	bool asked;	 /* some group wants it */
	size_t n_wanted; /* processes of which a group wants it */
};

/* What is remembered of a process that could use a GPU. */
struct gpu_seen {
	pid_t pid;
	bool is_asked;	   /* it is wanted, and was seen since */
	bool was_unwanted; /* once: what it has is not what it was seen to do */
	bool is_back;	   /* what it did meanwhile is nobody's */
	uint64_t start;
	struct gpu_mark mark;
};

/* Labels of a series of the backends; negative: none. */
struct gpuread_label {
	int main, shared;
};

/* Of gpuread.c. */
struct gpuread {
	struct gpu_host host;
	bool is_open; /* some group wants it */
	int sys_fd;
	uint64_t opened_ns; /* CLOCK_BOOTTIME */
	unsigned fds_row, threads_row;
	struct gpu_seen *seen; /* by ascending pid */
	size_t n_seen, seen_cap;
	uint32_t *fresh; /* entries of the process table */
	size_t fresh_cap;
	size_t at, entry_at; /* where the looks are */
	bool has_results;
	struct gpuread_label label[GPU_SERIES_MAX];
	unsigned n_labelled;
	uint64_t n_clients;
	uint64_t n_stalls; /* of hosts that were closed */
	uint32_t told[8];  /* by backend: bit per state */
	bool told_denied, told_missing;
};

/* Of exitread.c: groups that count the same, one per view. */
struct account {
	uint32_t number;
	struct group *group[RULE_VIEWS_MAX];
};

struct exitread {
	bool is_open;
	bool was_tried; /* with the rules that are in use */
	int outcome;	/* of that */
	struct pump pump;
	struct ledger ledger;
	struct exepath exes;
	uint8_t row[EXIT_N_VALUES]; /* of metrics[]; METRIC_N if none */
	metric_mask unmeasured;	    /* rows that this kernel has no value of */
	unsigned cpu_row[2], reaped_row[2], threads_row;
	unsigned n_ticks;
	uint64_t n_records, n_lost;

	/*
	 * Of one tick: first those of the last one whose parent was not known
	 * by then, then those that came.
	 */
	struct exitrec *held;
	size_t n_held, held_cap;
	const struct exitrec *came;
	size_t n;		  /* of both */
	struct exitread_end *end; /* one for each */
	size_t end_cap;
	struct proc_place *place; /* of whole lives, n_views each */
	size_t n_places, place_cap;
	unsigned n_spare;	/* for bulk_is_spare() */
	struct pidmap by_pid;	/* records that were placed */
	struct pidmap accounts; /* groups by a number of ours */
	struct proc *newborn;	/* a place to put one together */
	size_t newborn_views;
};

#define MONITOR_HANG_NS (50 * NSEC_PER_MSEC) /* then a call is given up */

/* How far the guarded part of a tick has come, so that it can go on. */
enum monitor_step {
	STEP_SAMPLE,
	STEP_PLACE,	   /* look after the lane first */
	STEP_PLACE_EARLY,  /* take answers of earlier ticks */
	STEP_PLACE_FRESH,  /* those who need a group */
	STEP_PLACE_AGAIN,  /* those with answers, or who waited for others */
	STEP_PLACE_WAIT,   /* for answers; take them */
	STEP_PLACE_LAST,   /* as STEP_PLACE_AGAIN */
	STEP_PLACE_ANYHOW, /* who goes on waiting */
	STEP_DONE,
};

struct monitor {
	char *rules_path, *proc_path, *sys_path;
	struct file_mark rules_mark;
	bool rules_looked;     /* the mark is of some earlier look */
	bool lacks_groups;     /* static ones, for want of memory */
	bool rules_missed;     /* could not be read; that is repeated */
	struct ruleset *rules; /* NULL until a file was good */
	struct procfs fs;
	struct proctab tab;
	struct groups groups;
	struct pssread pss;
	struct residual residual;
	struct gpuread gpu;
	struct exitread exits;
	struct cgroupread cgroups;
	struct delay delay;
	bool delay_wanted; /* some rule collects it */
	struct classifier classifier;
	struct runner runner; /* whose thread reads the processes' files */
	struct moment now;
	uint64_t began_ns;    /* CLOCK_BOOTTIME of that, by our own clock */
	uint64_t body_cpu_ns; /* CPU time of that thread in the last tick */
	uint64_t waited_ns;   /* for lanes, in this tick */

	/* Where the guarded part of a tick is. */
	enum monitor_step step;
	size_t at;		    /* index within the step */
	struct proc_entry *reading; /* the process that is being read */
	struct growth growth;	    /* of it, not yet counted */
	bool moving;		    /* it is on its way to moving_to */
	struct proc_place moving_to[RULE_VIEWS_MAX];
	struct answer *answer; /* that is being used */
	bool is_passed; /* somebody was passed by whose answer came now */
	struct answer *answers;	     /* to be used */
	struct answer *held_answers; /* to be used again, in the next pass */

	/* Of one tick; indices of the process table's entries. */
	uint32_t *fresh; /* whose group has to be found */
	size_t n_fresh, fresh_cap;
	uint32_t *waiting; /* for an answer of the lane, or for an ancestor */
	size_t n_waiting, waiting_cap;
	size_t n_kept; /* of them, those who go on waiting, in this pass */
	struct candidate *candidate; /* of series.c */
	size_t n_candidates, candidate_cap;
	uint64_t last_tick_ns; /* CLOCK_MONOTONIC */
	struct stall stall[STALLS_MAX];
	size_t n_stalls;

	struct selfstat self;
	struct told told;
	struct monitor_event event[EVENTS_MAX];
	size_t first_event, n_events;
};

enum {
	MONITOR_N_REFUSABLE = 5,
};

/* Sources that may be refused; one row each. */
extern const struct monitor_refusable {
	enum metric_source source;
	size_t count;	   /* offset in struct selfstat */
	const char *what;  /* for people */
	const char *needs; /* the end of what is told, or empty */
} monitor_refusable[MONITOR_N_REFUSABLE];

static inline uint64_t *monitor_refusals(struct selfstat *self, size_t i)
{
	return (uint64_t *)((char *)self + monitor_refusable[i].count);
}

/* Queues an event; beyond EVENTS_MAX in one tick it is lost. */
void monitor_tell(struct monitor *m, enum monitor_level level, const char *fmt,
		  ...) _printf_(3, 4);

/* Loads the rule file if it is another one than at the last look. */
void monitor_reload(struct monitor *m);

/*
 * Finds groups for fresh processes and for those whose answers came, from
 * m->step on.
 */
void monitor_place(struct monitor *m);

/* The answer that is being used is not needed any more. */
void monitor_drop_answer(struct monitor *m, struct proc_entry *e);

/* A runner_stuck_fn: who is being read is left alone until it runs again. */
bool monitor_leave_hanging(void *arg);

/* Puts right a move that was given up in its middle. */
void monitor_end_move(struct monitor *m);

/* Takes the answers that the lane has ready, to the end of m->answers. */
void monitor_take_answers(struct monitor *m);

/* Two views never share a group: it would count its members twice. */
void monitor_keep_to_view(const struct monitor *m, size_t view,
			  struct placing_in *in);

/* The name that a template gives without a process. */
void monitor_static_name(const struct name *n, struct name_result *ret);

/* Adds up what each group uses now. */
void monitor_fold(struct monitor *m);

/* Looks at a tick's figures and tells what is new. */
void monitor_notice(struct monitor *m);

/*
 * The places of a process that the classifier placed. Returns 0 or -ENOMEM.
 */
int monitor_find_places(struct monitor *m, const struct proc *p,
			struct placing *pl, struct proc_place *ret);

/* Adds what a process grew by to its groups, once. */
void monitor_count(struct monitor *m, struct proc *p, struct growth *growth);

/* The rows that any of its groups wants. */
metric_mask monitor_wanted(const struct monitor *m, const struct proc *p);
