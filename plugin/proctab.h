/* SPDX-License-Identifier: MIT */
/*
 * The live processes: who they are, whether they ran, what they use. Reads
 * as little as possible: a process whose CPU clock stands still is not read.
 * It knows no rules; a group is a pointer that it stores for the monitor.
 *
 * Identity is (pid, start ticks). Invariant: a raw counter of a process never
 * falls in `value`; what it grew by is handed out exactly once.
 */
#pragma once

#include "base.h"
#include "births.h"
#include "inherit.h"
#include "metric.h"
#include "procfs.h"
#include "pss.h"

struct delay;
struct group;

enum {
	PROC_COMM_SIZE = 64,  /* kernel threads have up to 63 bytes */
	PROC_COMM_SHORT = 16, /* all others are within this */
};

enum proc_flag {
	PROC_NEW = 1 << 0,	  /* not placed in a group yet */
	PROC_BORN = 1 << 1,	  /* started after our first tick */
	PROC_KERNEL = 1 << 2,	  /* kernel thread */
	PROC_RENAMED = 1 << 3,	  /* comm, owner or cgroup changed */
	PROC_IS_GONE = 1 << 4,	  /* leaves the table at the next list */
	PROC_AWAITS = 1 << 5,	  /* a lane read for it is on its way */
	PROC_IS_STALLED = 1 << 6, /* it is stuck: until it comes back */
	PROC_HANGS = 1 << 7,	  /* its files hung: until it runs again */
	PROC_LOOK_AGAIN = 1 << 8, /* at the next gate, whether it runs or not */
	PROC_UID_KNOWN = 1 << 9,  /* uid and gid were read before */
	PROC_CGROUP_KNOWN = 1 << 10, /* cgroup_hash was read before */
	PROC_COMM_IS_LONG = 1 << 11,
	PROC_WANTS_TRAITS = 1 << 12, /* somebody below it asked for them */
	PROC_TRAITS_KNOWN = 1 << 13,
	PROC_MAY_MOVE = 1 << 14, /* by what stat does not show */
	PROC_HANG_TOLD = 1 << 15,
	PROC_IS_QUEUED = 1 << 16, /* the monitor's, as is the next one */
	PROC_IS_ANSWERED = 1 << 17,
	PROC_IS_PASSED = 1 << 18, /* its answer changes things below it */
	/*
	 * Its counters stand still: its record tells of the rest. Who was in
	 * its exit when it was first seen waits for the record of it all.
	 */
	PROC_ENDING = 1 << 19,
	PROC_ENDED = 1 << 20,  /* the record came */
	PROC_MISSED = 1 << 21, /* it ran, and was not read whole */
	PROC_EXITS = 1 << 22,  /* at the last look its leader was in its exit */
};

struct proc_tasks; /* per thread counters; only where asked for */

/* What others ask of it, once somebody did. */
struct proc_traits {
	uint64_t holds;
	size_t n_texts;
	struct kin_text text[]; /* and what they point to behind */
};

/*
 * Where a process is in one view. The table keeps it for the monitor and does
 * not look at it.
 */
struct proc_place {
	struct group *group; /* NULL: none yet, or dropped */
	uint32_t rule;	     /* 1 + index of the rule that took it, or 0 */
	struct heritage heritage;
	bool overflow; /* its name was one too many: it stays there */
};

struct proc {
	struct procfs_pid at;
	uint32_t flags;	 /* enum proc_flag */
	pid_t ppid;	 /* when it was looked at last */
	uint64_t start;	 /* ticks since boot */
	uint64_t *value; /* by row, behind the places; n_values of the table */
	metric_mask have;
	struct proc_tasks *tasks;
	struct proc_traits *traits; /* NULL: none that holds */
	struct member *member;	    /* series of its own, of the monitor */
	struct pss_reading pss;	    /* the monitor's */
	uint32_t stack; /* hash of where it begins: another one after exec */
	uint32_t uid, gid, cgroup_hash;
	uint32_t ran_tick; /* last tick in which it was seen to have run */
	uint8_t denied;	   /* bit per source that was refused */
	uint8_t worth;	   /* PROCFS_KEEP()s: what it has read in each tick */
	uint8_t refused;   /* the classifier's: bit per text that was refused */
	char state;
	union {
		char brief[PROC_COMM_SHORT];
		char *whole; /* PROC_COMM_IS_LONG */
	} comm;
	struct proc_place place[]; /* one per view */
};

static inline const char *proc_comm(const struct proc *p)
{
	return p->flags & PROC_COMM_IS_LONG ? p->comm.whole : p->comm.brief;
}

struct proc_entry {
	pid_t pid;
	uint32_t looked_s; /* CLOCK_MONOTONIC of the last look */
	uint64_t clock;	   /* CPU clock at the last look, ns */
	struct proc *proc;
};

struct proctab_counts {
	uint64_t n_saved;     /* looks that the gate saved */
	uint64_t n_anomalies; /* raw counters that fell */
	uint64_t n_bad;	      /* stat texts that could not be parsed */
	uint64_t n_failed;    /* reads that failed for our own want (EMFILE) */
};

struct proctab_options {
	bool gate;	     /* where the root allows it */
	uint64_t refresh_ns; /* how often idle processes are looked at */
	bool owner;	     /* watch uids: a rule asks for them */
	bool cgroup;	     /* watch cgroups: a rule asks for them */
	uint64_t recheck_ns; /* younger ones are asked about when they ran */
};

/* Whose turn is it in this tick, of what each process has once in a period? */
struct proctab_turns {
	uint32_t period_s;
	uint32_t into_s;   /* how far the period has come */
	uint32_t passed_s; /* since the tick before */
};

struct proctab {
	struct procfs *fs;
	struct proctab_options opt;
	size_t n_views;
	size_t n_values; /* rows of which a process keeps a value, at most */
	struct births births;
	struct delay *delay; /* the monitor's; NULL: nobody tells */
	struct proc_entry *entry, *spare; /* by ascending pid */
	size_t n_procs, cap, spare_cap;
	uint32_t *due; /* indices of entries to be looked at in this tick */
	size_t n_due, due_cap;
	uint32_t tick;
	uint64_t first_tick_start; /* first tick, in ticks since boot */
	uint64_t reclaim_count;
	uint32_t reclaim_s;	/* CLOCK_MONOTONIC when it last moved */
	uint32_t host_looked_s; /* and when the host was looked at */
	uint32_t now_s;		/* CLOCK_MONOTONIC */
	struct proctab_turns refresh, look_again;
	uint64_t young_start; /* who started later is young; ticks since boot */
	bool has_swap;
	bool nobody_hangs; /* every thread that was given up came back */
	struct proc_tasks *task_scratch;
	pid_t own_pid, own_tid; /* of the thread that makes this tick */
	size_t n_gone;		/* entries that leave at the next list */
	metric_mask rows[SOURCE_N], counters, swap_rows;

	/*
	 * Who left, while somebody keeps them: by a number that stays until
	 * proctab_let_go(), with proc NULL where there is none.
	 */
	bool keeps_left;
	struct proc_entry *left;
	size_t n_left, left_cap;
	uint32_t *left_now; /* who left since n_left_now was made 0 */
	size_t n_left_now, left_now_cap;
	uint32_t left_free; /* 1 + the number of a free place, or 0 */

	size_t hand; /* where the search for idle kept descriptors goes on */
	struct proctab_counts counts;
};

/* By how much counters grew; rows outside `rows` did not. */
struct growth {
	metric_mask rows;
	uint64_t by[METRIC_N_STORED];
};

void proctab_init(struct proctab *t, struct procfs *fs);
void proctab_done(struct proctab *t);

/*
 * Which processes exist? Drops who left, adds who is new. /proc is listed
 * only if somebody can have been born; who left, the clocks tell. Returns 0
 * or a negative errno.
 */
int proctab_list(struct proctab *t, const struct moment *now);

/* Which of them ran, or are to be looked at for another reason? Into due[]. */
int proctab_gate(struct proctab *t, const struct moment *now);

/*
 * Reads stat of a due process, and what goes with it. Sets PROC_RENAMED if
 * the rules have to be asked again. Returns 0, PROC_GONE, or a negative errno
 * or PROC_ABSENT if nothing could be learned this time.
 */
int proctab_look(struct proctab *t, struct proc_entry *e,
		 struct growth *ret_growth);

/*
 * Reads the other files of a process that the rows in `wanted` need. What
 * cannot be read has no value. Call between proctab_look() and
 * proctab_leave().
 */
void proctab_sample(struct proctab *t, struct proc_entry *e, metric_mask wanted,
		    struct growth *ret_growth);

/*
 * Forgets what is known of rows that are not in `wanted`: if they are wanted
 * again one day, they begin anew.
 */
void proctab_forget(struct proctab *t, struct proc *p, metric_mask wanted);

/* Lets go of what is not kept. */
void proctab_leave(struct proctab *t, struct proc *p);

/*
 * Makes sure that the descriptors are those of this very process when some
 * time has passed since proctab_look(). Returns 0 or as that does.
 */
int proctab_look_again(struct proctab *t, struct proc_entry *e);

/* The rules changed: at the next gate every process is due and asked about. */
void proctab_ask_again(struct proctab *t);

/*
 * Nothing was learned of a process: at the next gate it is due, whether it
 * runs or not. `r` is the negative errno or outcome that was the reason.
 */
void proctab_try_again(struct proctab *t, struct proc_entry *e, int r);

/* The process that has that number now, or NULL. */
struct proc_entry *proctab_find_pid(struct proctab *t, pid_t pid);

/* The process of that identity, or NULL. */
struct proc_entry *proctab_find(struct proctab *t, pid_t pid, uint64_t start);

/*
 * Its parent, or NULL: there is none, it ended before this tick, or cannot be
 * seen. A number that was given to a younger process since is nobody's parent.
 */
struct proc_entry *proctab_parent(struct proctab *t, const struct proc *p);

/*
 * Is the value of rows of SOURCE_TASKS that of its whole life, not what it
 * was seen to grow by?
 */
bool proctab_tasks_are_whole(const struct proc *p);

/* Forgets one who left. */
void proctab_let_go(struct proctab *t, uint32_t number);

/* Does it have its groups, and does what stat says count there? */
static inline bool proc_is_counted(const struct proc *p)
{
	return p->start && !(p->flags & (PROC_NEW | PROC_ENDING | PROC_ENDED));
}

/*
 * From now on there are n views; from[i] is what view i was before, or -1.
 * Values are kept of the first n_values rows, or of more, if more are kept of
 * those who are there. Returns 0, or -ENOMEM with nothing changed.
 */
int proctab_set_views(struct proctab *t, size_t n, const int *from,
		      size_t n_values);
