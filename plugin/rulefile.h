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
 * Reads a file of at most 1 MiB. Returns 0; -EINVAL with errors in d (an
 * unreadable file is one, too, with its errno in the text); or -ENOMEM or
 * another errno that says nothing of the file: later it may do.
 */
int rulefile_load(const char *path, struct diag *d, struct ruleset **ret);

/* The same from memory; d names the file. */
int rulefile_parse(struct str text, struct diag *d, struct ruleset **ret);
