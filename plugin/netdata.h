/* SPDX-License-Identifier: MIT */
/*
 * `proctally import-netdata`: an apps_groups.conf of Netdata's apps.plugin as
 * a rule file. It splits the file into words as Netdata does, oddities
 * included, and says in comments of the rule file what has no equal there. It
 * knows the text of both files; no process, and no reader of YAML.
 *
 * Invariant: nothing is written if the file has an error; and the first rule
 * that holds for a process names the group of the first pattern that matches
 * it in Netdata.
 */
#pragma once

#include "base.h"
#include "diag.h"
#include "outbuf.h"

/*
 * Converts `text`, which comes from a file of the name `file` without its
 * directory. Returns 0, -EINVAL (told in d) or -ENOMEM; o is not flushed.
 */
int netdata_convert(struct str text, const char *file, struct diag *d,
		    struct outbuf *o);

/*
 * The call: the file at `path` to standard output. Messages go to stderr as a
 * compiler's do. Returns 0, or 1 on any error.
 */
int netdata_run(const char *path);
