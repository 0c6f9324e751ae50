/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the classifier share: classify.c (what the rules say of one
 * process), classify-fetch.c (its texts), classify-answer.c (those that come
 * from the lane), classify-kin.c (who it comes from) and classify-pidfile.c;
 * and what explain.c goes through in the same steps. Nobody else includes it.
 *
 * Invariant: all that is asked between two classify_begin() is of one process.
 */
#pragma once

#include "classify.h"

/* Makes it the process that is being asked about; reads nothing. */
void classify_begin(struct classifier *c, struct proc_entry *e,
		    const struct answer *answer, bool anyhow);

/* What one view's rules say of it: placing->in[view], pending. */
void classify_in(struct classifier *c, size_t view, struct placing *placing);

/* Reads what one source says of it; the subject's `arg` is the classifier. */
void classify_fetch(struct subject *s, enum subject_source source);

/* Its command line was read. The answer stays: it may have to be used again. */
void classify_take_answer(struct classifier *c, const struct answer *a);

/*
 * Puts a read of its command line on its way. Returns 0 or a negative errno.
 */
int classify_ask_cmdline(struct classifier *c, struct proc *p);

/* Those that are kept for later. */
void classify_free_answers(struct classifier *c);

/* A walk up the chain of parents, as far as groups are inherited. */
struct kin_walk {
	struct proc *at;
	unsigned distance; /* from the first to `at` */
};

enum kin_step {
	KIN_END,     /* no parent is there, or it was far enough; `at` stays */
	KIN_INIT,    /* at process 1, which hands nothing on */
	KIN_MANAGER, /* at a manager: neither does it */
	KIN_ASK,     /* at one that may hand its group on */
};

/* Goes to the parent; after anything but KIN_ASK the walk is at its end. */
enum kin_step classify_step_up(struct classifier *c, struct kin_walk *w);

/* SUBJECT_KIN: traits of those it comes from. */
void classify_fetch_kin(struct classifier *c, struct subject *s);
bool classify_find_kin(struct subject *s, bool parent, uint64_t traits,
		       struct subject_kin *ret);

/* Keeps what was learned; out of memory: as if no text had been captured. */
void classify_set_traits(struct proc *p, const struct rule_traits *traits);

/*
 * Where a process goes in a view that no rule of it takes. False if that is
 * its `other`.
 */
bool classify_inherit(struct classifier *c, size_t view,
		      struct placing_in *ret);

/* True if one of them names another process now; see classifier_refresh(). */
bool classify_refresh_pidfiles(struct classifier *c, struct runner *runner);
