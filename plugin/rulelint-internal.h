/* SPDX-License-Identifier: MIT */
/*
 * Inside rulelint: the rule set as the checks walk over it. Conditions are
 * those of rules, of what stands below `parent` and `ancestor`, and of `not`
 * in either; each has the shapes of its items beside them.
 *
 * Invariant: nothing of the rule set is changed but its scratch space.
 */
#pragma once

#include "rulelint.h"
#include "rulelint-shape.h"

/* The keys of one mapping. */
struct lint_cond {
	const struct rule_terms *terms;
	struct shape *shape;   /* of the items, one term after the other */
	unsigned gives, wants; /* lint_gives(), lint_wants() of its keys */
};

/* A rule, or what stands below `parent` or `ancestor`. */
struct lint_mapping {
	struct lint_cond *own; /* the exceptions come right after it */
	size_t n_not;
};

struct lint {
	const struct ruleset *rs;
	struct diag *d;
	struct lint_mapping *rule, *kin; /* as in rs */
	struct lint_cond *cond;
	size_t n_conds;
	struct shape *shape;
	size_t n_shapes;
	uint64_t steps; /* that may still be taken; one is some 10 ns */
};

/* False if it would be too much. */
static inline bool lint_spend(struct lint *l, uint64_t steps)
{
	bool enough = l->steps >= steps;

	l->steps -= enough ? steps : l->steps;
	return enough;
}

/* Bits of what a key needs another rule to have, if that rule is to imply it.
 */
static inline unsigned lint_wants(enum rule_key key)
{
	return 1u << (key == RULE_CMDLINE_ALL ? RULE_CMDLINE : key);
}

/* And of what it has: a parent is an ancestor. */
static inline unsigned lint_gives(enum rule_key key)
{
	return lint_wants(key) |
	       (key == RULE_PARENT ? lint_wants(RULE_ANCESTOR) : 0);
}

/* One item, as the patterns check it. */
struct lint_item {
	const char *name; /* of the key, as the file spells it */
	enum rule_key key;
	const struct matcher *m;
	const struct shape *shape;
	enum rule_kernel kernel; /* the processes that it is tried on */
	bool exporter; /* its rule is one of process-exporter: no prefixes */
};

/* Patterns that match nothing, or not what they seem to. */
void lint_pattern(struct lint *l, const struct lint_item *item);

/* Rules that take nothing, as those before them take it. */
void lint_unreachable(struct lint *l);

/* What patterns capture and no name uses. */
void lint_captures(struct lint *l);
