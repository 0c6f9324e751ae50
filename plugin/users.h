/* SPDX-License-Identifier: MIT */
/*
 * Names of user or group ids, from one passwd(5) or group(5) file read as a
 * whole: no name service is asked, so nothing can block on a network. It knows
 * no process.
 *
 * Invariant: a lookup reads memory only; the file is read again when its
 * mtime, size or inode changes and users_refresh() is called.
 */
#pragma once

#include "base.h"

struct users;

enum users_kind {
	USERS_PASSWD,
	USERS_GROUP,
};

/*
 * `dirfd` and `path` name the file as in openat(2); both must outlive the
 * table. Nothing is read yet. Returns NULL if out of memory.
 */
struct users *users_new(enum users_kind kind, int dirfd, const char *path);
void users_free(struct users *u);

/*
 * Looks whether the file changed and reads it if so. A missing file is an
 * empty table. Returns 1 if names may have changed, 0 if not, or a negative
 * errno (the old names stay).
 */
int users_refresh(struct users *u);

/*
 * The name of an id; without one, its decimal digits in buf (>= 12 bytes).
 * It is good until the next users_refresh().
 */
struct str users_name(const struct users *u, uint32_t uid, char *buf,
		      size_t size);
