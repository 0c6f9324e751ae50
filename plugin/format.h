/* SPDX-License-Identifier: MIT */
/*
 * The output formats of `proctally dump`: how the values of a tick are written
 * down. One format is one function, in a file of its own, and one row of the
 * table in format.c; one that has to arrange the values of a tick anew has
 * hooks beside it. It knows value lists and a buffer, not where that is
 * written to, nor what a group or a process is.
 *
 * Invariant: what is not a finite number is never written, counters never
 * exceed INT64_MAX, and a tick with no more values than those before
 * allocates nothing.
 */
#pragma once

#include "base.h"
#include "metric.h"
#include "outbuf.h"

struct format;

struct format_writer {
	const struct format *format;
	const char *host; /* borrowed */
	double interval_s;
	struct outbuf *out; /* of this tick */
	struct moment now;  /* one stamp for all values of a tick */
	int error;	    /* of this tick: 0 or a negative errno */
	void *state;	    /* of the format's hooks */
};

/* The format of that name, or NULL. */
const struct format *format_find(const char *name);

/* The formats one after the other, the default first; NULL after the last. */
const struct format *format_at(size_t i);

const char *format_name(const struct format *f);

/* False if a tick cannot be understood without those before it. */
bool format_stands_alone(const struct format *f);

/* `host` must live as long as the writer. Returns 0 or -ENOMEM. */
int format_open(struct format_writer *w, const struct format *f,
		const char *host, double interval_s);
void format_close(struct format_writer *w);

/* A tick is one begin, values as they come, and one end. */
void format_begin(struct format_writer *w, struct outbuf *out,
		  const struct moment *now);

/* Takes one value list; a value_fn of group.h, with the writer as `arg`. */
void format_value(void *arg, const struct value_out *v);

/* Returns 0, or -ENOMEM if something is missing; the buffer is not flushed. */
int format_end(struct format_writer *w);
