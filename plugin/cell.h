/* SPDX-License-Identifier: MIT */
/*
 * One value as a short text for a person, and texts of strangers as they may
 * be shown: names of processes hold any bytes, and a terminal obeys some of
 * them. It knows the locale (LC_CTYPE) and no table.
 *
 * Invariant: what leaves cell_text() has printable characters of this locale
 * alone and takes exactly the columns that it says.
 */
#pragma once

#include "base.h"

enum {
	CELL_SIZE = 24, /* room for any number */
};

/* Writes a number of at most 6 columns, unless it is beyond all measure. */
typedef void cell_fn(double v, char buf[CELL_SIZE]);

cell_fn cell_percent; /* 12.3 */
cell_fn cell_bytes;   /* 1.5G; steps of 1024 */
cell_fn cell_count;   /* 1234, 12.3M; steps of 1000 */
cell_fn cell_age;     /* of seconds: 45s, 12m30s, 5h02m, 3d04h, 400d */

/* Returned widths are columns; buf ends in a NUL. */
enum {
	CELL_TEXT_MAX = 512, /* columns */
	CELL_TEXT_SIZE = CELL_TEXT_MAX * 6 + 1,
};

/*
 * Writes a text without what could steer a terminal: control characters,
 * characters without a width and bytes that are none become "?". What is
 * longer than `width` is cut and ends in "+". Returns the columns taken.
 */
int cell_text(struct str text, int width, char *buf, size_t size);
