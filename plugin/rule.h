/* SPDX-License-Identifier: MIT */
/*
 * Rules over a borrowed `struct subject`. A rule set is built by the loader
 * (rulefile) and is constant from then on but for its counters. This module
 * knows neither /proc nor YAML: what a subject lacks it asks for through the
 * subject's own fetch function, cheapest source first, and only while a rule
 * that could still win needs it.
 *
 * Invariant: bytes, not characters. No input is rejected for its encoding.
 */
#pragma once

#include "base.h"
#include "diag.h"
#include "matcher.h"
#include "metric.h"
#include "subject.h"

struct name;

/* The keys of a rule; each is one row of rule_keys[] in rule.c. */
enum rule_key {
	RULE_COMM,
	RULE_KERNEL,
	RULE_UID,
	RULE_USER,
	RULE_CGROUP,
	RULE_UNIT,
	RULE_SLICE,
	RULE_CONTAINER,
	RULE_EXE_PATH,
	RULE_EXE,
	RULE_CMDLINE,
	RULE_CMDLINE_ALL,
	RULE_ANY,
	RULE_KEY_N,
};

struct rule_key_def {
	const char *name;
	enum subject_source source;
	enum matcher_kind plain; /* what text without a prefix means */
	bool all;		 /* every item must match; else one of them */
	size_t field; /* offset of the str in struct subject, if it is one */
};

extern const struct rule_key_def rule_keys[RULE_KEY_N];

enum rule_action {
	ACTION_GROUP,
	ACTION_DROP,
	ACTION_LEAVE,
};

enum rule_kernel {
	KERNEL_NO,
	KERNEL_YES,
	KERNEL_EITHER,
};

/* One key with its items. */
struct rule_term {
	enum rule_key key;
	struct matcher *item;
	size_t n_items, cap;
};

/*
 * A conjunction of conditions, as stands in a rule or below `not`. One with
 * nothing in it (no term, any not set, KERNEL_EITHER) never holds.
 */
struct rule_terms {
	struct rule_term *term; /* sorted by cost of their source */
	size_t n_terms, cap;
	bool any;
	enum rule_kernel kernel;
};

enum {
	RULE_CAPTURES_MAX = 16, /* names that the patterns of a rule capture */
};

struct rule {
	struct rule_terms terms;
	struct rule_terms * not ; /* none of them may hold */
	size_t n_not;
	enum rule_action action;
	struct name *name; /* NULL unless ACTION_GROUP */
	collect_mask collect;
	unsigned line, column;
	char *capture[RULE_CAPTURES_MAX]; /* names of the captures */
	unsigned n_captures;

	/* Counted while matching. */
	uint64_t n_regex_limit; /* matches that were cut off */
	bool told_regex_limit;	/* the monitor said so */
};

struct rule_limits {
	unsigned groups;   /* distinct groups in all */
	size_t cmdline;	   /* bytes of a command line that are matched */
	unsigned kept_fds; /* 0: auto */
	bool kept_fds_set;
};

struct ruleset {
	struct rule *rule;
	size_t n_rules;
	struct name *other;   /* NULL: what no rule takes is dropped */
	collect_mask collect; /* of `other`, and the default of rules */
	struct rule_limits limits;
	bool gate;
	uint64_t refresh_ns; /* how often idle processes are looked at */
	unsigned sources;    /* SUBJECT_BIT()s that a rule or a name asks for */
	struct matcher_scratch *scratch; /* made once, when sealed */

	/* Counted while matching. */
	uint64_t n_regex_limit; /* matches that were cut off */
};

/*
 * An empty rule set with all defaults; NULL if out of memory. Freeing one
 * frees all that hangs from it, names and captures included, and takes NULL
 * and half-built ones.
 */
struct ruleset *ruleset_new(void);
void ruleset_free(struct ruleset *rs);

/*
 * Appends one item to a term list, compiling it. `text` may have a prefix
 * (glob:, re:, exact:, iglob:, ire:); for the key kernel it is "true", "false"
 * or "any", for the key any "true". Mistakes are added to `d` at line and
 * column. Returns 0, -EINVAL (told in d) or -ENOMEM.
 */
int rule_terms_add(struct rule_terms *terms, enum rule_key key, struct str text,
		   struct diag *d, unsigned line, unsigned column);

/*
 * Fills capture[] from the named groups of the rule's own patterns, not those
 * below `not`; each name once. To be called when all patterns are there and
 * before the rule's name is compiled; it may be called again. Returns 0,
 * -E2BIG if there are more than RULE_CAPTURES_MAX, or -ENOMEM.
 */
int rule_collect_captures(struct rule *r);

/*
 * Last step of building: sorts terms, collects captures and sources, makes
 * the scratch space. Returns 0 or a negative errno.
 */
int ruleset_seal(struct ruleset *rs);

struct rule_capture {
	struct str name;
	struct str value;
};

/* What a rule set says of a subject. */
struct rule_verdict {
	const struct rule *rule; /* NULL: no rule took it */
	enum rule_action action; /* ACTION_LEAVE if no rule took it */
	bool pending; /* a source that is still pending could change this */
	struct rule_capture capture[RULE_CAPTURES_MAX];
	unsigned n_captures;
};

/*
 * Finds the first rule that holds. Never blocks, allocates nothing.
 *
 * What is absent or empty matches no pattern: `.*` does not take a process
 * without a command line, so that kernel threads and zombies do not land in a
 * catch-all by accident. comm alone may be empty.
 *
 * A term whose source is pending counts as one that does not hold, also below
 * `not`; the verdict is pending unless something else decides the same way.
 *
 * Captures are those of the items that matched, of several for one term the
 * first; an optional group that took no part is empty. They point into the
 * subject's strings. Where two patterns of a rule capture the same name the
 * one that is matched later wins, unless it took nothing.
 */
void ruleset_match(struct ruleset *rs, struct subject *s,
		   struct rule_verdict *ret);
