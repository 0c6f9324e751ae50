/* SPDX-License-Identifier: MIT */
/*
 * What a person reads of single processes: one entry for each, with its CPU
 * rate out of two ticks in a row; and sums of those that have a name in
 * common. It knows no group but by its name and asks the monitor nothing: it
 * is fed.
 *
 * Invariant: entries are in the order of their pids; a pid that was reused
 * begins anew.
 */
#pragma once

#include "base.h"
#include "board.h"
#include "monitor.h"

struct roster_entry {
	struct monitor_member member; /* its strings live until the next tick */
	bool has_cpu;		      /* the rate, that is */
	double cpu;		      /* percent of one processor */
};

struct roster {
	struct roster_entry *entry, *last;
	size_t n_entries, cap, n_last, last_cap;
	size_t last_at; /* how far the last tick's entries were passed */
	size_t *shown;	/* indices of entry[], those that were chosen */
	size_t n_shown, shown_cap;
	struct moment now, before; /* `before` is zero in the first tick */
	double cpu;		   /* of all, percent of one processor */
	bool has_cpu;
	int error;
};

/* Entries of one comm, added up. */
struct roster_sum {
	const char *comm;
	size_t n;
	double cpu;
	uint64_t rss_bytes;
	bool has_cpu, has_rss;
};

void roster_init(struct roster *r);
void roster_done(struct roster *r);

/* A tick begins. */
void roster_begin(struct roster *r, const struct moment *now);

/* A member_fn; arg is the roster. Members come by ascending pid. */
void roster_take(void *arg, const struct monitor_member *m);

/* The tick is over. Returns 0 or -ENOMEM. */
int roster_end(struct roster *r);

/* Nothing is shown; then add pids to what is. Returns 0 or -ENOMEM. */
void roster_show_none(struct roster *r);
int roster_show(struct roster *r, pid_t pid);

/*
 * Sorts what is shown, by CPU, RSS or name (of which there is comm alone);
 * by CPU where there is no such value. The largest first, names from A to Z.
 */
void roster_sort(struct roster *r, const struct board_order *o);

/*
 * Sums of what is shown, one for each comm, the largest CPU first, then RSS,
 * then number, then by comm. The caller frees *ret. Returns 0 or -ENOMEM.
 */
int roster_sums(const struct roster *r, struct roster_sum **ret, size_t *ret_n);
