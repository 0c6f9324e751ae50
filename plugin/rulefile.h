/* SPDX-License-Identifier: MIT */
/*
 * Turns a rule file into a rule set, or into messages that say where and what
 * is wrong. A file loads whole or not at all. It knows the grammar of
 * proctally(5), no process and no collectd.
 *
 * Invariant: a rule set that comes out is sealed and has no error in the diag;
 * warnings and notes may stand there.
 */
#pragma once

#include "base.h"
#include "diag.h"
#include "rule.h"

/*
 * Reads a file of at most 1 MiB. Returns 0; -EINVAL if it will not do as long
 * as it stays as it is; or another negative errno if it could not be read, or
 * memory was out: then it may do later without having changed. Errors are in
 * d, but for -ENOMEM while it was parsed.
 */
int rulefile_load(const char *path, struct diag *d, struct ruleset **ret);

/* The same from memory; d names the file. */
int rulefile_parse(struct str text, struct diag *d, struct ruleset **ret);
