/* SPDX-License-Identifier: MIT */
/*
 * Processes that ended, in an interval of the monitor: takes the kernel's
 * records, has the ledger say what was not counted yet, and counts that in
 * the groups: of those who were known in the groups that they were in, of
 * those who came and went in the groups that the rules give them.
 *
 * Invariant: what a record tells is counted in one group of each view at
 * most, and once.
 */
#pragma once

#include "monitor-internal.h"

/* What came of one record. */
struct exitread_end {
	enum ledger_kind kind;
	bool was_gone;
	bool waits;	/* for the next tick, in which its parent is known */
	uint32_t left;	/* 1 + number of one who left, or 0 */
	uint32_t entry; /* 1 + index of one in the table, or 0 */
	uint32_t place; /* of a whole life that was not seen: its first place */
	uint64_t traits;
	uint64_t total_user_ns, total_system_ns;
	uint64_t reaped_user_ns, reaped_system_ns;
};

/* Begins to listen, or ends that, as the rules say. */
void exitread_open(struct monitor *m);
void exitread_close(struct monitor *m);

/* Before any process is sampled. */
void exitread_begin(struct monitor *m);

/* Notes what a process grew by. */
void exitread_count(struct monitor *m, const struct proc *p,
		    const struct growth *growth);

/* When all were sampled and placed. */
void exitread_take(struct monitor *m);

/* Groups in which something may be counted yet are not to be forgotten. */
void exitread_hold(struct monitor *m);

/* Figures for `_self`, and what a person should know. */
void exitread_tell(struct monitor *m);

/* From here on for the parts of exitread alone. */

/* Ticks of stat in ns. */
uint64_t exitread_ns(const struct monitor *m, uint64_t ticks);

/* Tells the ledger who left the table. */
void exitread_leave(struct monitor *m);

/*
 * Asks the ledger what a record is, into end[i]; counts the last slice of a
 * process that was counted before.
 */
void exitread_take_one(struct monitor *m, size_t i);

/* Counts a whole life, and notes for whom a record was counted. */
void exitread_settle(struct monitor *m, size_t i);

/* As ledger_give_fn. */
void exitread_give(void *arg, uint32_t account, uint64_t user_ns,
		   uint64_t system_ns);

/* Somebody from whom something is inherited. */
struct exitread_kin {
	uint32_t pid, ppid;
	uint64_t start; /* no later than this, ticks since boot */
	const char *comm;
	bool kernel;
	uint64_t traits;
	const struct proc_place *place; /* one per view */
};

/*
 * Of a number: the process that ended next after those that were placed
 * before, or one that lives and began by then. False if there is none.
 */
bool exitread_find_kin(struct monitor *m, uint32_t pid, uint64_t start,
		       struct exitread_kin *ret);

/* Of all those of a tick. */
const struct exitrec *exitread_record(const struct monitor *m, size_t i);

/* The places of a record that was counted, or is to be. */
const struct proc_place *exitread_places(const struct monitor *m, size_t i);

/* The process of a record that was seen, or NULL. */
struct proc *exitread_proc(const struct monitor *m, size_t i);

/*
 * Finds the places of whole lives, parents before their children. Those wait
 * whose parents are not known, but who did not wait before.
 */
void exitread_place(struct monitor *m);
