/* SPDX-License-Identifier: MIT */
/*
 * A table by process number, of entries that the caller lays out: each begins
 * with a uint32_t, which holds the number. Open addressing in one block, so
 * that a steady tick allocates nothing. It does not know what an entry means,
 * nor whether a number was given to another process since.
 *
 * Invariant: there are never more than `max` entries. Adding and removing
 * moves entries: pointers into the table end with it.
 */
#pragma once

#include "base.h"

struct pidmap {
	size_t size; /* of an entry */
	size_t n, max;
	size_t cap;	   /* slots: a power of two, or 0 */
	unsigned n_sparse; /* sweeps since which it is much too large */
	unsigned char *slot;
};

void pidmap_init(struct pidmap *m, size_t size, size_t max);
void pidmap_done(struct pidmap *m);

/* The entry of that number, or NULL. 0 is no number. */
void *pidmap_find(const struct pidmap *m, uint32_t pid);

/*
 * The entry of that number, made of zeros if there is none. NULL if there are
 * `max` others already, or no memory.
 */
void *pidmap_add(struct pidmap *m, uint32_t pid);

/* Removes an entry of this table. */
void pidmap_remove(struct pidmap *m, void *entry);

/*
 * Shows every entry once or twice and removes those that are not to be kept.
 * keep() must not change the table. One that stays much too large, after a
 * storm, becomes smaller.
 */
typedef bool pidmap_keep_fn(void *arg, void *entry);
void pidmap_sweep(struct pidmap *m, pidmap_keep_fn *keep, void *arg);
