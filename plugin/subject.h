/* SPDX-License-Identifier: MIT */
/*
 * One process as rules and names see it: a bag of borrowed texts, filled
 * source by source and only as far as somebody asks. It does not know where
 * the owner reads them, no rule and no file.
 *
 * Invariant: a source is asked for once; its bit stands in at most one of
 * have, absent and pending.
 */
#pragma once

#include "base.h"

#include <sys/types.h>

/* What has to be read to know something of a process; cheapest first. */
enum subject_source {
	SUBJECT_STAT,	 /* comm, kernel */
	SUBJECT_KIN,	 /* traits of its parent and ancestors */
	SUBJECT_OWNER,	 /* uid, gid, user, group */
	SUBJECT_CGROUP,	 /* cgroup, unit, slice, container, pod */
	SUBJECT_EXE,	 /* exe_path */
	SUBJECT_CMDLINE, /* argv0, exe, script, cmdline; may be late */
	SUBJECT_N,
};

#define SUBJECT_BIT(source) (1u << (source))

/* A process that others know by its traits. */
struct subject_kin {
	pid_t pid;
	struct str comm;
	const struct kin_text *text; /* what was captured on it */
	size_t n_texts;
};

struct kin_text {
	unsigned trait;
	struct str name, value;
};

/*
 * All strings are borrowed; an empty one says that the process has no such
 * thing. The owner fills `have` with what is known at once, and fetch() fills
 * in one source when it is asked: it sets the source's bit in have, absent
 * (cannot be read; does not match) or pending (asked for, not answered yet;
 * does not match now). A fetch() that sets none of them, or is NULL, means
 * absent.
 */
struct subject {
	unsigned have, absent, pending; /* SUBJECT_BIT()s */
	void (*fetch)(struct subject *s, enum subject_source source);
	void *arg; /* fetch's own */

	pid_t pid;
	uint64_t start_time; /* seconds since the epoch; for {{.StartTime}} */
	uint32_t start_ns;   /* and nanoseconds */

	struct str comm;
	bool kernel; /* is a kernel thread */
	uint32_t uid, gid;
	struct str user, group; /* names of uid and gid, or decimal digits */
	struct str cgroup, unit, slice, container, pod;
	struct str cgroup_file; /* all of /proc/PID/cgroup */
	struct str exe_path; /* target of the exe link, without " (deleted)" */
	struct str cmdline; /* argv joined by blanks, control bytes as blanks */
	struct str argv0;   /* first argument as it is */
	struct str exe;	    /* base name of argv0 */
	struct str script;  /* what an interpreter runs, without its suffix */

	/* Bit per trait: its parent has it, one of its ancestors does. */
	uint64_t parent_traits, ancestor_traits;
	/* The nearest process that has one of these traits; true if any. */
	bool (*find_kin)(struct subject *s, bool parent, uint64_t traits,
			 struct subject_kin *ret);
};

/* Makes sure that a source was asked for; true if its fields are there. */
bool subject_need(struct subject *s, enum subject_source source);

/*
 * Splits the raw bytes of /proc/PID/cmdline, `n` of them in `raw`, in place:
 * fills argv0, exe, script and cmdline of the subject. `argv0_buf` receives
 * argv[0] before blanks replace its control bytes; it must hold `argv0_size`
 * bytes. The strings point into both buffers. The caller sets the source's bit.
 *
 * A process that rewrote its title has one argument with blanks in it; its
 * exe then keeps all that follows the last "/" before the first blank.
 */
void subject_set_cmdline(struct subject *s, char *raw, size_t n,
			 char *argv0_buf, size_t argv0_size);

/* The last element of a path, as Go's filepath.Base() finds it. */
struct str subject_go_base(struct str path);

/*
 * Cuts what the kernel appends to the name of a workqueue worker, which
 * changes from read to read ("kworker/0:1H-kblockd"), so that the name is
 * stable. Source: wq_worker_comm() in kernel/workqueue.c, Linux 6.18.
 */
struct str subject_stable_comm(struct str comm, bool workqueue_worker);
