/* SPDX-License-Identifier: MIT */
/*
 * What the files of the formats share: their functions, and how a text is
 * made safe. It knows no format's syntax.
 *
 * Invariant: a format's function gets finite numbers only, and counters that
 * fit into an int64_t.
 */
#pragma once

#include "format.h"

typedef void format_fn(struct format_writer *w, const struct value_out *v);

/* For a format that cannot write a value list down as soon as it comes. */
struct format_hooks {
	size_t state_size;		      /* zeroed before the first tick */
	void (*end)(struct format_writer *w); /* after a tick's last value */
	void (*done)(void *state);
};

struct format {
	const char *name;
	format_fn *value;
	const struct format_hooks *hooks; /* or NULL */
	bool goes_on; /* a tick builds on what those before it said */
};

format_fn format_putval, format_influx, format_graphite, format_prometheus,
    format_netdata;

extern const struct format_hooks format_prometheus_hooks, format_netdata_hooks;

enum {
	FORMAT_TEXT = 512, /* room for any text that has been made safe */
};

/*
 * Copies a text, cut to what fits. Control characters become '_'; characters
 * of `special` become '_' too, or get a backslash in front of them.
 */
void format_replace(char *buf, size_t size, const char *text,
		    const char *special);
void format_escape(char *buf, size_t size, const char *text,
		   const char *special);
