/* SPDX-License-Identifier: MIT */
/*
 * Makes chosen calls of the core fail, and tells which were made. The test
 * programs that use it are linked with --wrap for the calls below, so that the
 * code under test is what is installed, and everything else works as always.
 *
 * A path names every path that ends in it (whole components); "" is any.
 */
#pragma once

#include <stdbool.h>

/*
 * Calls by name: "open", "read" and "pread" (read is pread, too), "readlink",
 * "stat", and "keep": moving a descriptor to a high number.
 *
 * The call fails with `err`; 0 means that a read gives no bytes, and
 * INJECT_NOTHING that the call works as always. The last one said of a path
 * counts, and after `times` calls (0: for ever) the one before it.
 */
enum {
	INJECT_NOTHING = -1,
	INJECT_UNKNOWN = -2,
};

void inject_add(const char *path, const char *call, int err, unsigned times);
void inject_clear(void);

/* The errno of a name such as "EACCES"; "empty" is 0, "ok" INJECT_NOTHING. */
int inject_errno(const char *name);

/* Calls made on that path since inject_forget(), failed ones included. */
unsigned inject_calls(const char *path, const char *call);
void inject_forget(void);
