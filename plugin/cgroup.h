/* SPDX-License-Identifier: MIT */
/*
 * Reads the text of /proc/PID/cgroup: which path the process is in and what
 * systemd, the container runtimes and Kubernetes say by it. Pure text work:
 * it opens no file and knows no rule.
 *
 * Invariant: every str points into the text that was given.
 */
#pragma once

#include "base.h"

struct cgroup_names {
	struct str path;      /* after the second colon; "/" at the root */
	struct str unit;      /* "nginx.service", "session-3.scope"; or empty */
	struct str slice;     /* innermost slice above the unit; or empty */
	struct str container; /* 64 hex digits, or the name of an LXC guest */
	struct str pod;	      /* Kubernetes pod UID as the path spells it */
};

/*
 * Parses the whole file. Of several hierarchies the unified one is taken
 * unless it says "/", then name=systemd, then the first that is not "/".
 * Returns 0, or -EBADMSG if no line has the form id:controllers:path.
 */
int cgroup_parse(struct str text, struct cgroup_names *ret);

/* Whether a path's component, such as "a.service", is a unit or a slice. */
bool cgroup_is_unit(struct str component);
bool cgroup_is_slice(struct str component);
