/* SPDX-License-Identifier: MIT */
/*
 * Processes out of the lines of an input, for match.c: one and its ancestors.
 * What no line says of a process cannot be read of it.
 *
 *	comm TEXT	cmdline TEXT	exe TEXT	cgroup TEXT
 *	user TEXT	group TEXT	uid NUMBER	gid NUMBER
 *	pid NUMBER	start NUMBER	kernel		pidfile
 *	late SOURCES	times NUMBER
 *
 * Lines of cmdline and cgroup add up, with a line feed between; "times"
 * repeats the command line; "pidfile" says that all pidfiles name it. SOURCES
 * are letters: k kin, o owner, c cgroup, e exe, a command line.
 *
 * Invariant: a source is fetched once for each process_begin().
 */
#pragma once

#include "rule.h"

enum {
	FAMILY_MAX = 4,
};

struct process {
	struct subject subject;
	unsigned given, late;	 /* SUBJECT_BIT()s: what its lines say */
	unsigned waits, fetched; /* the same since process_begin() */
	struct str comm, user, group, exe_path;
	bool kernel, is_in_pidfile;
	uint32_t uid, gid, pid;
	uint64_t start_time;
	char *cgroup, *cmdline; /* as they are read; owned */
	size_t cgroup_n, cmdline_n;
	char *raw, *argv0; /* the copy that was split; owned */
	struct family *family;

	uint64_t parent_traits, ancestor_traits, traits;
	struct kin_text text[RULE_CAPTURES_MAX];
	size_t n_texts;
};

struct family {
	struct process line[FAMILY_MAX]; /* a process, its parent, ... */
	size_t n;
	struct ruleset *rules;
};

/* `text` must outlive the family. */
void family_init(struct family *f, struct str text);
void family_done(struct family *f);

/* Tells process i what its ancestors are; after process_set_traits() there. */
void family_hand_down(struct family *f, size_t i, struct ruleset *rs);

/* Fills the subject anew; sources in `late` will be pending. */
void process_begin(struct process *p, unsigned late);

void process_set_traits(struct process *p, const struct rule_traits *traits);

/* Does it point into a text of this process or of an ancestor? */
bool process_has_text(const struct process *p, struct str text);
