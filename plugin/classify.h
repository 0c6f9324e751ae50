/* SPDX-License-Identifier: MIT */
/*
 * Asks the rules about one process: turns it into a subject, reads what the
 * rules want to know of it, and says which group it belongs to. Command lines
 * are read in a lane, because that may block; until the answer is there the
 * rules are asked without it. It does not know groups, only their names.
 *
 * Invariant: nothing here blocks, and one process has at most one read on
 * its way (PROC_AWAITS).
 */
#pragma once

#include "base.h"
#include "exepath.h"
#include "lane.h"
#include "name.h"
#include "pidfile.h"
#include "proctab.h"
#include "pssplan.h"
#include "rule.h"
#include "runner.h"
#include "smaps.h"
#include "users.h"

/* Texts of the process that is being asked about. */
enum classify_text {
	TEXT_CGROUP,
	TEXT_EXE,
	TEXT_CMDLINE,
	TEXT_ARGV0,
	TEXT_N,
};

struct text_buffer {
	char *s;
	size_t size;
};

struct placing_in;

/* What the record of its end says of a process that nobody saw. */
struct classify_record {
	uint32_t uid, gid;
	bool kernel;
	const char *exe_path; /* NULL: not known */
	uint64_t parent_traits, ancestor_traits;
	/* Where it goes in a view that no rule of it takes; false: `other`. */
	bool (*inherit)(void *arg, size_t view, struct placing_in *ret);
	void *arg;
};

struct classifier {
	struct procfs *fs;
	struct proctab *tab;
	struct users *users, *user_groups;
	struct lane *lane;
	struct exepath *exes;  /* learns what exe links say; or NULL */
	int lane_root_fd;      /* the root for workers; outlives stuck ones */
	struct ruleset *rules; /* borrowed */
	struct file_seen *pidfile_seen; /* one per pidfile of the rules */
	struct pidfile_look {
		size_t at;	 /* the one that is looked at */
		unsigned n_hang; /* that were given up meanwhile */
		bool changed;
		const char *hangs; /* the first of them, to be told of */
	} look;
	struct moment now;
	int64_t booted_ns; /* CLOCK_REALTIME at boot, but for jitter */

	/* The process that is being asked about. */
	struct subject subject;
	struct proc_entry *entry;
	struct proc *proc;
	bool entered; /* its descriptors were made sure of, with outcome: */
	int lost;     /* 0, or what proctab_look_again() returned */
	const struct classify_record *record; /* NULL: it lives */
	bool anyhow; /* do not wait for what is on its way */
	char user[16], group[16];
	struct text_buffer text[TEXT_N];

	bool unsure;	 /* something could not be read for our own want */
	bool passed_by;	 /* somebody who is not decided yet was passed by */
	bool walked;	 /* it was looked for whom it inherits from */
	unsigned denied; /* SUBJECT_BIT()s that were refused */
	int outcome[SUBJECT_N]; /* of its reads: 0, PROC_* or an errno */

	/* Answers to be used again, so that asking allocates nothing. */
	struct answers {
		struct answer *first;
		unsigned n;
	} spare, spare_bare; /* of command lines; of smaps, without a text */

	/* Whose traits somebody wants to know; indices of entries. */
	uint32_t *want;
	size_t n_want, want_cap;

	uint64_t n_unreadable_exe, n_unreadable_cgroup, n_unreadable_cmdline;
};

/* Where a process belongs in one view. */
struct placing_in {
	enum {
		PLACING_NAME, /* the group of that name */
		PLACING_HEIR, /* the group that an ancestor is in */
		PLACING_KEEP, /* where it is: who handed that on is gone */
		PLACING_DROP, /* counted nowhere */
	} kind;
	struct name_result name; /* PLACING_NAME */
	collect_mask collect;
	struct group *group; /* PLACING_HEIR */
	struct heritage heritage;
	const struct rule *rule; /* that says so; NULL if none does */
	bool is_other;		 /* it is the view's `other` */
};

struct placing {
	bool pending;  /* what is on its way may change it */
	bool unsure;   /* a read failed for our own want: ask again */
	bool may_move; /* what was decided on is not seen in stat */
	int lost;      /* not 0: nothing was learned; as c->lost */
	struct placing_in in[RULE_VIEWS_MAX];
};

/* A read that may block and what came of it: a command line, or smaps. */
struct answer {
	struct lane_job job; /* for the lane */
	void (*run)(struct answer *a);
	int root_fd;
	pid_t pid, live_tid;
	uint64_t start; /* with pid: whose it is */
	size_t max;	/* bytes at most */
	int result;	/* 0, or an outcome or errno of procfs_read_cmdline() */
	char *text;
	size_t n, size;	     /* of the text, of its room */
	struct answer *next; /* for who keeps several */

	/* Of smaps, see pssread.c. */
	enum smaps_file file;
	struct pss_ask ask;
	struct smaps smaps;
	uint64_t cost_ns;
};

/* Returns 0 or a negative errno. */
int classifier_open(struct classifier *c, struct proctab *tab);
void classifier_close(struct classifier *c);

/*
 * The rules change. What they need is made first, NULL if out of memory; then
 * nothing can fail.
 */
struct file_seen *classifier_prepare(const struct ruleset *rules);
void classifier_adopt(struct classifier *c, struct ruleset *rules,
		      struct file_seen *prepared);

/*
 * Looks at the files that rules ask for beside those of processes: names of
 * users and groups, pidfiles. True if some process may belong elsewhere now.
 * A pidfile that keeps its reader waiting names whom it named, and is looked
 * at again when no thread of the runner hangs any more; c->look.hangs is set
 * when one was given up.
 */
bool classifier_refresh(struct classifier *c, struct runner *runner);

/*
 * Asks the rules. `answer` is the process's command line if it was read, else
 * NULL: then it is asked for if a rule wants it, and `pending` is set, as it
 * is while an ancestor is not decided. `anyhow` goes without what is pending.
 * The directory of the process is entered if something there is read.
 */
void classify(struct classifier *c, struct proc_entry *e,
	      const struct answer *answer, bool anyhow, struct placing *ret);

/*
 * The same of one that came and went: `e` has its number, name, start and
 * parent. What the record does not say no rule matches; a name that needs it
 * is not asked for where there is something to inherit. *ret_traits are those
 * of its own.
 */
void classify_by_record(struct classifier *c, struct proc_entry *e,
			const struct classify_record *record,
			struct placing *ret, uint64_t *ret_traits);

/*
 * Learns of a process what others ask for: right after classify(), or without
 * it. Returns false if it has to wait for an answer; c->lost is set as there.
 */
bool classify_traits(struct classifier *c, struct proc_entry *e, bool anyhow);

/*
 * A read of a process, for the lane: the caller fills in what it is of and
 * submits it. It has no text. NULL if out of memory.
 */
struct answer *classifier_new_answer(struct classifier *c,
				     const struct proc *p);

/* Takes it over, whatever comes. Returns 0 or a negative errno. */
int classifier_submit(struct classifier *c, struct answer *a);

/* Is it a command line? */
bool answer_is_cmdline(const struct answer *a);

/* The next answer, or NULL; to be given back with classifier_put(). */
struct answer *classifier_take(struct classifier *c);
void classifier_put(struct classifier *c, struct answer *a);
