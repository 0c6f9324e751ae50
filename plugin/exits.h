/* SPDX-License-Identifier: MIT */
/*
 * Processes that ended, as the kernel tells of them: taskstats over generic
 * netlink. A socket of its own gathers records by itself; exits_drain() takes
 * what has come and never waits. It knows no group and no process table.
 *
 * Needs CAP_NET_ADMIN, and the initial PID, user and network namespaces:
 * records go nowhere else (kernel/taskstats.c). Invariant: after exits_open()
 * said 0 every end of a process is told of or counted as lost.
 */
#pragma once

#include "base.h"
#include "exits-gather.h"

/* Outcomes of exits_open(): why there are no records here. */
enum {
	EXITS_MISSING = 1, /* the kernel has no taskstats */
	EXITS_DENIED = 2,  /* no CAP_NET_ADMIN */
	EXITS_INSIDE = 3,  /* not in the initial namespaces */
};

struct exits_options {
	size_t buffer;	   /* bytes of kernel memory at first; 0: as usual */
	size_t buffer_max; /* it is doubled up to this; 0: as usual */
	const char *cpus;  /* NULL: /sys/devices/system/cpu/possible */
};

enum {
	EXITS_RECORD_COST = 1280,    /* in the buffer; of Linux 6.18, 64 bits */
	EXITS_BUFFER = 16 << 20,     /* 13,000 records */
	EXITS_BUFFER_MAX = 64 << 20, /* 52,000 */
};

struct exits {
	int fd;		/* readable when there are records; -1: not open */
	bool has_drops; /* the kernel counts what it dropped */
	unsigned family;
	char cpus[256];
	size_t buffer, buffer_max; /* of the socket, bytes */
	uint32_t drops;
	uint64_t n_lost; /* messages; at least so many without has_drops */
	uint64_t n_drains, n_full; /* at which more than half was used */
	struct gather gather;
	struct exits_batch *batch;
};

/* Nothing open yet; exits_close() is safe. */
void exits_init(struct exits *x);

/*
 * Begins to listen. fn is called by exits_drain(). Starts one thread, which
 * ends at once, to see whether its end is told of. Returns 0, one of the
 * outcomes above or a negative errno.
 */
int exits_open(struct exits *x, const struct exits_options *o, exits_fn *fn,
	       void *arg);
void exits_close(struct exits *x);

/*
 * Tells of every process that ended before this call, children before their
 * parents. To be called by one thread at a time. Returns 0 or a negative
 * errno: then what was told of is right, and more may come at the next call.
 */
int exits_drain(struct exits *x);
