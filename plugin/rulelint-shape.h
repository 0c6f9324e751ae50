/* SPDX-License-Identifier: MIT */
/*
 * Inside rulelint: what texts a pattern takes, as a row of tokens: a byte, any
 * byte, any number of any bytes. Plain texts and globs are such rows; of a
 * regular expression as much is read as can be read for certain. It knows no
 * rule and no key.
 *
 * Invariant: a shape takes every text that its pattern takes. Only one that is
 * exact takes no other.
 */
#pragma once

#include "base.h"
#include "matcher.h"

enum {
	SHAPE_ANY = 256, /* one byte of any value; below that, the byte */
	SHAPE_STAR,	 /* any number of them; never two in a row */
};

/* Why a pattern can match no text at all. */
enum shape_fault {
	SHAPE_FINE,
	SHAPE_LATE_BEGIN, /* "^" behind text */
	SHAPE_EARLY_END,  /* "$" before text */
};

struct shape {
	uint16_t *token;
	size_t n, cap;
	bool exact;
	bool literal; /* exact, and one text is all that it takes */
	bool fold;    /* a small letter stands for the capital, too */
	enum shape_fault fault;
};

/* Of any matcher but one of a number. Returns 0 or -ENOMEM. */
int shape_init(struct shape *s, const struct matcher *m);
void shape_done(struct shape *s);

/*
 * Does `wide` take every text that `narrow` takes? Only a yes is certain, and
 * that as far as wide is exact.
 */
bool shape_covers(const struct shape *wide, const struct shape *narrow);

/* Adds a token, in a form that one language has one row. 0 or -ENOMEM. */
int shape_push(struct shape *s, unsigned token);

/* Makes an empty, exact shape that of a regular expression. 0 or -ENOMEM. */
int shape_read_regex(struct shape *s, struct str regex);
