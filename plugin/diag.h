/* SPDX-License-Identifier: MIT */
/*
 * Messages about a text file, each with its place: FILE:LINE:COLUMN. It does
 * not know what kind of file that is and never prints: the caller does.
 *
 * Invariant: lines and columns are 1-based; 0 means that the message is about
 * the file as a whole.
 */
#pragma once

#include "base.h"

/* What weighs most comes first, and stays if there is no room for all. */
enum diag_level {
	DIAG_ERROR,
	DIAG_WARNING,
	DIAG_NOTE,
};

enum {
	DIAG_MSG_MAX = 50, /* what goes beyond is counted in n_dropped */
};

struct diag_msg {
	enum diag_level level;
	unsigned line, column;
	char *text;
};

struct diag {
	char *file;
	struct diag_msg *msg;
	size_t n_msgs, cap;
	size_t n_errors, n_warnings;
	size_t n_dropped;
};

/* `file` is copied; it is what messages begin with. */
void diag_init(struct diag *d, const char *file);
void diag_done(struct diag *d);

/* Adds one message; out of memory it is counted in n_dropped. */
void diag_add(struct diag *d, enum diag_level level, unsigned line,
	      unsigned column, const char *fmt, ...) _printf_(5, 6);

/* Orders the messages by place; those of one place keep their order. */
void diag_sort(struct diag *d);

/*
 * Writes message i as "FILE:LINE:COLUMN: error: text" without a line feed.
 * Returns what snprintf does.
 */
int diag_format(const struct diag *d, size_t i, char *buf, size_t size);
