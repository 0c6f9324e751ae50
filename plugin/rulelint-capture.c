/* SPDX-License-Identifier: MIT */
/*
 * What patterns capture by name, and nobody uses. By an alias one pattern
 * stands in several rules, and one of them may use what others do not.
 */
#include "rulelint-internal.h"

#include "name.h"
#include "rulefile-value.h"

#include <stdio.h>

enum {
	RULE_STEPS = 64, /* to look for a place in one rule */
};

/* Who could use what is captured. */
struct user {
	const struct name *name; /* NULL: the rule has none */
	bool excepted;		 /* it stands below `not` */
	enum diag_level level;
};

/* Does a pattern of these terms stand at the place of that one? */
static bool stands_in(const struct lint *l, const struct lint_cond *c,
		      const struct matcher *m)
{
	for (size_t i = 0; i < c->terms->n_terms; i++) {
		const struct rule_term *t = &c->terms->term[i];

		for (size_t j = 0; j < t->n_items; j++)
			if (t->item[j].line == m->line &&
			    t->item[j].column == m->column)
				return true;
		for (uint64_t kin = t->kin; kin; kin &= kin - 1)
			if (stands_in(l, l->kin[__builtin_ctzll(kin)].own, m))
				return true;
	}
	return false;
}

/* By an alias one pattern stands in several rules; one may use it. */
static bool is_used_elsewhere(struct lint *l, const struct matcher *m,
			      struct str capture)
{
	if (!lint_spend(l, l->rs->n_rules))
		return true;
	for (size_t i = 0; i < l->rs->n_rules; i++) {
		const struct name *name = l->rs->rule[i].name;

		if (!name || !name_uses_capture(name, capture))
			continue;
		if (!lint_spend(l, RULE_STEPS) ||
		    stands_in(l, l->rule[i].own, m))
			return true;
	}
	return false;
}

/* A pattern can use what it captured; what does so is not looked into. */
static bool refers_to_itself(const struct matcher *m)
{
	static const struct str signs[] = {
	    {"(?P=", 4}, {"(?P>", 4}, {"(?&", 3},
	    {"(?(", 3},	 {"\\k", 2},  {"\\g", 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (memmem(m->text, m->text_len, signs[i].s, signs[i].n))
			return true;
	return false;
}

static bool is_unused(struct lint *l, const struct matcher *m,
		      const struct user *user, unsigned i)
{
	struct str capture = matcher_capture_name(m, i);

	/* Several groups of a pattern may have one name; they are sorted. */
	if (i > 0 && str_eq(capture, matcher_capture_name(m, i - 1)))
		return false;
	if (user->name && !user->excepted &&
	    name_uses_capture(user->name, capture))
		return false;
	return !is_used_elsewhere(l, m, capture);
}

static void tell(struct lint *l, const struct matcher *m,
		 const struct user *user, struct str first, unsigned n)
{
	char more[32] = "";

	if (n > 1)
		snprintf(more, sizeof(more), " and %u more", n - 1);
	if (user->name && !user->excepted)
		diag_add(l->d, user->level, m->line, m->column,
			 "no name uses the capture \"%.*s\"%s; write "
			 "{{.Matches.%.*s}} into the name of the rule, or "
			 "(?:...) into the pattern",
			 EXCERPT(first), more, EXCERPT(first));
	else
		diag_add(l->d, user->level, m->line, m->column,
			 "no name can use the capture \"%.*s\"%s of %s; write "
			 "(?:...) into the pattern",
			 EXCERPT(first), more,
			 user->excepted ? "an exception"
					: "a rule without a name");
}

static void check_pattern(struct lint *l, const struct matcher *m,
			  const struct user *user)
{
	struct str first = STR("");
	unsigned n = 0;

	if (!m->n_names || refers_to_itself(m))
		return;
	for (unsigned i = 0; i < m->n_names; i++)
		if (is_unused(l, m, user, i) && n++ == 0)
			first = matcher_capture_name(m, i);
	if (n > 0)
		tell(l, m, user, first, n);
}

static void check_mapping(struct lint *l, const struct lint_mapping *m,
			  const struct user *user)
{
	for (size_t i = 0; i <= m->n_not; i++) {
		const struct rule_terms *terms = m->own[i].terms;
		struct user here = *user;

		here.excepted |= i > 0;
		for (size_t j = 0; j < terms->n_terms; j++) {
			const struct rule_term *t = &terms->term[j];

			for (size_t k = 0; k < t->n_items; k++)
				check_pattern(l, &t->item[k], &here);
			for (uint64_t kin = t->kin; kin; kin &= kin - 1)
				check_mapping(l, &l->kin[__builtin_ctzll(kin)],
					      &here);
		}
	}
}

/* Files of process-exporter have captures that only tell what they take. */
void lint_captures(struct lint *l)
{
	for (size_t i = 0; i < l->rs->n_rules; i++) {
		const struct rule *r = &l->rs->rule[i];
		struct user user = {
		    .name = r->name,
		    .level = r->exporter ? DIAG_NOTE : DIAG_WARNING,
		};

		check_mapping(l, &l->rule[i], &user);
	}
}
