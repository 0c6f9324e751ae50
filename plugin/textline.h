/* SPDX-License-Identifier: MIT */
/*
 * A line of text in the making, for people. Texts of strangers (names and
 * arguments of processes hold any bytes) are taken in as a terminal may show
 * them. It knows UTF-8 and no locale, and prints nothing itself.
 *
 * Invariant: what textline_add() adds is UTF-8 without a character that
 * steers a terminal; each byte that could not stay is \xHH.
 */
#pragma once

#include "base.h"

/* All zeros is an empty one. `s` is terminated once something was added. */
struct textline {
	char *s;
	size_t n, cap;
	bool lost; /* memory was out: something is missing */
};

void textline_done(struct textline *t);

void textline_printf(struct textline *t, const char *fmt, ...) _printf_(2, 3);

/* Adds a text of a stranger. */
void textline_add(struct textline *t, struct str text);

/*
 * The same in double quotes; of a text of more than `max` bytes only the
 * beginning, and how many bytes it has.
 */
void textline_quote(struct textline *t, struct str text, size_t max);

/* Empties it, but for `lost`. */
static inline void textline_clear(struct textline *t)
{
	t->n = 0;
}
