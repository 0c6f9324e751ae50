/* SPDX-License-Identifier: MIT */
/*
 * What the parts of an explanation share: explain.c (finds and reads the
 * process), explain-show.c (what it is), explain-rule.c (why rules hold or do
 * not), explain-item.c (how their items read) and explain-place.c (from whom,
 * under which name, and the result). Nobody else includes it.
 *
 * Invariant: explain.c alone reads files; all others look at what the
 * classifier's subject has.
 */
#pragma once

#include "classify-internal.h"
#include "explain.h"
#include "monitor-internal.h"
#include "textline.h"

enum {
	EXPLAIN_VALUE_MAX = 100, /* bytes of a value that a reason repeats */
	EXPLAIN_LIST_MAX = 8,	 /* of many items, or ancestors */
};

struct explain {
	struct monitor *m;
	struct proc_entry *entry; /* NULL: no process of that number */
	struct proc *p;		  /* its process */
	pid_t asked;		  /* that number; of a thread of p, perhaps */
	pid_t owner;		  /* process that thread is of, or 0 */
	struct answer *answer;	  /* its command line */
	bool hangs;		  /* whoever reads its files is kept waiting */
	int outcome;		  /* of opening it: 0, PROC_* or an errno */
	struct rule_verdict verdict; /* of the view that is explained */
	const struct rule *rule;     /* that is explained */
	explain_fn *fn;
	void *arg;
	struct textline line;
};

/* Hands the line on and begins a new one. */
void explain_end(struct explain *x);

static inline struct subject *explain_subject(struct explain *x)
{
	return &x->m->classifier.subject;
}

static inline bool explain_is_kin(const struct rule_term *t)
{
	return rule_keys[t->key].item == ITEM_KIN;
}

/* "900 (bash)" */
void explain_who(struct explain *x, const struct proc *p);

/* What keeps us from a source, to follow its name: "cannot be read: ..." */
void explain_put_missing(struct explain *x, enum subject_source source);

/* The name of a key as the file has it. */
const char *explain_key(const struct explain *x, enum rule_key key);

/* An item of a key; all of them; what stands below parent or ancestor. */
void explain_put_item(struct explain *x, const struct rule_term *t, size_t i);
void explain_put_items(struct explain *x, const struct rule_term *t);
void explain_put_kin(struct explain *x, const struct rule_term *t,
		     unsigned depth);

/* {comm: "a", user: ["b", "c"]}; `depth` is that of mappings around it. */
void explain_put_mapping(struct explain *x, const struct rule_terms *terms,
			 const struct rule_terms * not, size_t n_not,
			 unsigned depth);

/* Whose thread it is, if that was asked for. */
void explain_owner(struct explain *x);

/* What is known of the process. */
void explain_show(struct explain *x);

/* The rules of a view as far as they are asked; x->verdict is of the last. */
void explain_rules(struct explain *x, size_t view);

/* The rest of a view, after explain_rules(), up to its result. */
void explain_place(struct explain *x, size_t view);

/* The result and its cause in one line, for those who need no more. */
void explain_answer(struct explain *x, size_t view);

/* The result alone. */
void explain_group(struct explain *x, size_t view);
