/* SPDX-License-Identifier: MIT */
/*
 * What a process used that no tick saw, and nothing of it twice: from the
 * record of its end, what was counted of it before, and what its parent was
 * charged for it. Pure arithmetic: it reads nothing and knows no group.
 *
 * In each tick, after the processes were sampled:
 *
 *	ledger_begin()
 *	ledger_left() for each that left the table and has no record yet
 *	ledger_reaped() for each whose cutime or cstime grew
 *	ledger_take() for each record, in the order they came
 *	ledger_charge() for each, in the same order
 *	ledger_end()
 *
 * Children come before their parents. Who wants to know the parent's group
 * first looks at them backwards, between taking and charging.
 *
 * A record ends before its process does, see exitrec.h. The kernel adds the
 * exact sum to the parent that waits: that sum less what was counted of the
 * children is given out by ledger_end(). Invariant: no more is given out than
 * what the records of the same parent's children leave open, so one record is
 * never counted for more than its cpu_max_ns.
 */
#pragma once

#include "base.h"
#include "exitrec.h"
#include "pidmap.h"

/* What the caller counted of a process, whoever counted before it included. */
struct ledger_process {
	uint32_t pid;
	uint32_t n_threads;
	uint64_t start_ns; /* CLOCK_BOOTTIME, rounded down to 10 ms or less */
	uint64_t lived_ns; /* CLOCK_BOOTTIME when it was seen to live; or 0 */
	uint64_t user_ns, system_ns;		   /* as of stat */
	uint64_t reaped_user_ns, reaped_system_ns; /* cutime and cstime */
	uint64_t clock_ns; /* its CPU clock at that time, or 0 */
	bool is_ending; /* it was in its exit by then, as its record is not */
	uint64_t value[EXIT_N_VALUES]; /* the counters that were read */
	uint32_t have;
	void *ref; /* the caller's */
};

enum ledger_kind {
	/* Of one that the caller knows: what was not counted yet. */
	LEDGER_LAST_SLICE,
	LEDGER_WHOLE_LIFE, /* it came and went between two ticks */
	LEDGER_NOTHING,	   /* lived before we looked: nothing to count */
	/*
	 * A kernel before 5.19 does not tell whether this is a process. If no
	 * process with threads has the same parent and user: clear EXIT_UNSURE
	 * and ask again.
	 */
	LEDGER_UNSURE,
};

struct ledger_slice {
	enum ledger_kind kind;
	bool was_gone; /* given to ledger_left() before; it is forgotten now */
	void *ref;     /* LEDGER_LAST_SLICE: of that process */
	uint64_t user_ns, system_ns;
	uint64_t value[EXIT_N_VALUES];
	uint32_t have;
	/* For ledger_charge(): all that it and its children used, as known. */
	uint64_t total_user_ns, total_system_ns;
	uint64_t reaped_user_ns, reaped_system_ns;
};

struct ledger_counts {
	uint64_t n_anomalies;	 /* counters that had fallen */
	uint64_t n_unsettled;	 /* processes whose record never came */
	uint64_t n_strangers;	 /* records of old processes nobody knew */
	uint64_t given_ns;	 /* given out by ledger_end() */
	uint64_t unexplained_ns; /* reaped by a parent, but by no record */
};

/* Called when a process given to ledger_left() is forgotten unsettled. */
typedef void ledger_release_fn(void *arg, void *ref);

struct ledger {
	ledger_release_fn *release;
	void *arg;
	struct moment now, since; /* of this tick and the last */
	uint64_t first_ns;	  /* CLOCK_BOOTTIME of the first tick */
	uint64_t late_ns;	  /* records are taken so long after `now` */
	uint32_t tick;
	bool clock_was_set;
	struct pidmap gone, parents;
	struct ledger_counts counts;
};

void ledger_init(struct ledger *l, ledger_release_fn *release, void *arg);
void ledger_done(struct ledger *l);

/*
 * `now` is no more than 2 s before the records are taken, unless ledger_late()
 * says how long: we may be stopped in between. Records of the first
 * tick are of processes that ended before they were sampled: they are
 * LEDGER_NOTHING.
 */
void ledger_begin(struct ledger *l, const struct moment *now);

void ledger_late(struct ledger *l, uint64_t ns);

/* Left the table, and no record was matched with it so far. */
void ledger_left(struct ledger *l, const struct ledger_process *p);

/*
 * What is to be counted for a record. `live` is the process of that number in
 * the caller's table, or NULL. If ret->kind is LEDGER_LAST_SLICE and not
 * was_gone, it was `live`: it is not to be sampled any more, and not to be
 * given to ledger_left().
 *
 * A process that is in its exit when it is first seen must never be sampled:
 * its record came or will come.
 */
void ledger_take(struct ledger *l, const struct exitrec *r,
		 const struct ledger_process *live, struct ledger_slice *ret);

/*
 * Notes to whom it was counted: a number of the caller's that means the same
 * until ledger_end(). Not for LEDGER_UNSURE.
 */
void ledger_charge(struct ledger *l, const struct exitrec *r,
		   const struct ledger_slice *slice, uint32_t account);

/*
 * The cutime and cstime of a process grew by so much, or it is new and all of
 * it is growth because it was born after the first tick.
 */
void ledger_reaped(struct ledger *l, uint32_t pid, uint64_t user_ns,
		   uint64_t system_ns);

/* CPU time that is missing in the records of an account. */
typedef void ledger_give_fn(void *arg, uint32_t account, uint64_t user_ns,
			    uint64_t system_ns);
void ledger_end(struct ledger *l, ledger_give_fn *give, void *arg);
