/* SPDX-License-Identifier: MIT */
/*
 * What a person reads of groups: one row for each, with rates out of two
 * ticks in a row, in an order that can be chosen. It is fed with the very
 * values that leave for collectd, so it knows no process and no monitor, and
 * nothing of how a number looks as text.
 *
 * Invariant: what was not told in a tick is absent, never 0; a rate is absent
 * unless both ticks told its counter.
 */
#pragma once

#include "base.h"
#include "group.h"

enum board_value {
	BOARD_CPU, /* percent of one processor */
	BOARD_RSS, /* bytes, like the next ones */
	BOARD_PSS,
	BOARD_SWAP,
	BOARD_PROCESSES,
	BOARD_THREADS,
	BOARD_READ, /* bytes per second, like the next ones */
	BOARD_WRITE,
	BOARD_IO,     /* both */
	BOARD_FAULTS, /* per second */
	BOARD_FDS,
	BOARD_AGE, /* seconds, of the oldest member */
	BOARD_GPU, /* percent, of the engine that is busiest */
	BOARD_N,
	BOARD_NAME = BOARD_N, /* to sort by, only */
};

struct board_row {
	char *name;
	unsigned have; /* bit per value */
	double value[BOARD_N];

	/* Of the values whose counters are told. */
	unsigned counted, was_counted;
	uint64_t count[BOARD_N], last[BOARD_N];
	bool told; /* in this tick */
};

struct board {
	struct board_row *row; /* in the order in which they were told first */
	size_t n_rows, cap;
	size_t *order; /* indices of row[] as they are to be shown */
	size_t order_cap;
	size_t at; /* the row that was told last */
	uint64_t now_ns, last_ns;
	int error;
};

/* An order of rows; the largest first, but names from A to Z. */
struct board_order {
	enum board_value by;
	bool reverse;
};

void board_init(struct board *b);
void board_done(struct board *b);

/* A tick begins; mono_ns is its time. */
void board_begin(struct board *b, uint64_t mono_ns);

/* A value_fn; arg is the board. What proctally says of itself is left out. */
void board_take(void *arg, const struct value_out *v);

/*
 * The tick is over: rates are known, and groups of which nothing was told
 * leave. Returns 0 or -ENOMEM.
 */
int board_end(struct board *b);

/*
 * Fills order[]. Groups without members come last unless it is by name, and
 * among the others those without the value. What is equal is in the order of
 * CPU, then RSS, then name.
 */
void board_sort(struct board *b, const struct board_order *o);

static inline bool board_has(const struct board_row *row, enum board_value v)
{
	return row->have & 1u << v;
}

/* True if any row has it. */
bool board_tells(const struct board *b, enum board_value v);

/* False if it is told that the group has no member. */
bool board_is_inhabited(const struct board_row *row);
