/* SPDX-License-Identifier: MIT */
/*
 * Records of processes that ended, for a caller who comes once in a tick. As
 * long as the socket's buffer lasts for that there is no more to it; if it was
 * too small, a thread empties it ten times a second into memory of ours, which
 * holds four times as many records as the kernel's. It ends when it was not
 * needed for a while.
 *
 * Invariant: what was lost, for want of either memory, is counted in n_lost.
 */
#pragma once

#include <pthread.h>

#include "exits.h"

enum {
	PUMP_RECORDS_MAX = 250000, /* 70 MB, twice */
};

struct pump {
	struct exits exits;
	size_t records_max;
	/* The lock is for what is above and for these. */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	bool runs, stop;
	struct exitrec *record; /* as they came */
	size_t n, cap;
	uint64_t n_no_room;
	/* Of the caller's thread: what was taken. */
	struct exitrec *taken;
	size_t taken_cap;
	uint64_t n_lost_before;
	unsigned n_calm;  /* ticks in which the thread was not needed */
	unsigned n_spare; /* for bulk_is_spare(), which says: */
	bool is_spare;	  /* a storm is over */
};

/* What the caller may want to tell. */
struct pump_state {
	uint64_t n_lost; /* messages, since the opening */
	uint64_t n_bad;
	bool has_thread;
};

/* Nothing open yet; pump_close() is safe. */
void pump_init(struct pump *p);

/* As exits_open(). */
int pump_open(struct pump *p, const struct exits_options *o);
void pump_close(struct pump *p);

/*
 * Every process that ended before this call, children before their parents;
 * it lives until the next call. Returns 0 or a negative errno: then there are
 * those that were heard of, and more may come.
 */
int pump_take(struct pump *p, const struct exitrec **ret_record, size_t *ret_n);

struct pump_state pump_look(struct pump *p);

/* As gather_sweep(); to be called now and then. */
void pump_sweep(struct pump *p, gather_lives_fn *lives, void *arg);
