/* SPDX-License-Identifier: MIT */
/*
 * From datagrams of the taskstats family to processes that ended: takes the
 * netlink frames off and adds the threads of a process up. It opens nothing
 * and knows no group.
 *
 * Threads of one process leave on several CPUs at once, so the last one's
 * record can overtake another's. A process with threads is therefore held back
 * for a little while: until gather_flush(), until its parent ends, or until
 * too many are held. Invariant: a process is told of once, after every child
 * of its that ended before it.
 */
#pragma once

#include "base.h"
#include "exitrec.h"
#include "pidmap.h"

typedef void exits_fn(void *arg, const struct exitrec *r);

enum {
	GATHER_HELD_MAX = 64,
	GATHER_PROCESSES_MAX = 32768, /* living ones, of which threads ended */
};

struct gather_counts {
	uint64_t n_tasks;     /* threads and processes that were told of */
	uint64_t n_processes; /* handed on */
	uint64_t n_bad;	      /* that could not be read */
	uint64_t n_no_room;   /* threads that could not be added up */
};

struct gather {
	exits_fn *fn;
	void *arg;
	struct pidmap processes;
	uint32_t held[GATHER_HELD_MAX]; /* in the order of their end */
	unsigned n_held;
	struct gather_counts counts;
};

void gather_init(struct gather *g, exits_fn *fn, void *arg);
void gather_done(struct gather *g);

/* Takes one datagram; other messages in it are passed over. */
void gather_datagram(struct gather *g, unsigned family, struct str bytes);

/* Hands on what is held. */
void gather_flush(struct gather *g);

/*
 * Forgets processes that do not live any more, of which the last word was
 * lost. `lives` is asked about each of which threads ended.
 */
typedef bool gather_lives_fn(void *arg, uint32_t pid);
void gather_sweep(struct gather *g, gather_lives_fn *lives, void *arg);
