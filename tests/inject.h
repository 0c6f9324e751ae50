/* SPDX-License-Identifier: MIT */
/*
 * Makes chosen calls of the core fail. The test programs that use it are
 * linked with --wrap for the calls below, so that the code under test is what
 * is installed, and everything else works as always.
 */
#pragma once

#include <stdbool.h>

/* Calls by name: "open", "read" (pread, too), "readlink", "stat". */

/*
 * The call fails with `err` on every path that ends in `path` (whole
 * components); err 0 means that a read gives no bytes.
 */
void inject_add(const char *path, const char *call, int err);
void inject_clear(void);

/* Number of calls that were made to fail, for tests that want to be sure. */
unsigned inject_hits(void);

/* The errno of a name such as "EACCES", or -1. */
int inject_errno(const char *name);
