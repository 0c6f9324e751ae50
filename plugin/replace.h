/* SPDX-License-Identifier: MIT */
/*
 * A file that is replaced as a whole: who reads it sees the old one or the new
 * one and nothing between. It is written below another name in the same
 * directory, which begins with a dot, and then renamed. It does not know what
 * is written.
 *
 * Invariant: nothing but a regular file is ever replaced.
 */
#pragma once

#include "base.h"

#include <limits.h>

enum {
	REPLACE_NO_FILE = 1, /* there is something else by that name */
};

struct replace {
	const char *path; /* borrowed */
	char temp[PATH_MAX];
	int fd; /* to be written to */
};

/* Returns 0, REPLACE_NO_FILE or a negative errno; after 0 one of those below
 * has to follow. */
int replace_begin(struct replace *f, const char *path);

/* Puts it in its place. Returns 0 or a negative errno. */
int replace_commit(struct replace *f);

/* Leaves what was there. */
void replace_abandon(struct replace *f);
