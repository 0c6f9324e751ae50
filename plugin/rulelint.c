/* SPDX-License-Identifier: MIT */
/*
 * The walk over a rule set, and what is said of the names of groups. Single
 * patterns are looked at in rulelint-pattern.c, what they capture in
 * rulelint-capture.c, rules that nothing can reach in rulelint-cover.c.
 */
#include "rulelint-internal.h"

#include "name.h"
#include "rulefile-rule.h"

enum {
	STEPS_MAX = 10000000, /* less than 0.1 s */
};

static size_t count_items(const struct rule_terms *terms)
{
	size_t n = 0;

	for (size_t i = 0; i < terms->n_terms; i++)
		n += terms->term[i].n_items;
	return n;
}

static void count_mapping(struct lint *l, const struct rule_terms *terms,
			  const struct rule_terms * not, size_t n_not)
{
	l->n_conds += 1 + n_not;
	l->n_shapes += count_items(terms);
	for (size_t i = 0; i < n_not; i++)
		l->n_shapes += count_items(&not [i]);
}

static int make_cond(struct lint *l, const struct rule_terms *terms)
{
	struct lint_cond *c = &l->cond[l->n_conds++];

	*c = (struct lint_cond){terms, &l->shape[l->n_shapes], 0, 0};
	for (size_t i = 0; i < terms->n_terms; i++) {
		const struct rule_term *t = &terms->term[i];

		c->gives |= lint_gives(t->key);
		c->wants |= lint_wants(t->key);
		for (size_t j = 0; j < t->n_items; j++) {
			struct shape *s = &l->shape[l->n_shapes++];

			if (rule_keys[t->key].item == ITEM_TEXT &&
			    shape_init(s, &t->item[j]))
				return -ENOMEM;
		}
	}
	return 0;
}

static int make_mapping(struct lint *l, const struct rule_terms *terms,
			const struct rule_terms * not, size_t n_not,
			struct lint_mapping *ret)
{
	*ret = (struct lint_mapping){&l->cond[l->n_conds], n_not};
	if (make_cond(l, terms))
		return -ENOMEM;
	for (size_t i = 0; i < n_not; i++)
		if (make_cond(l, &not [i]))
			return -ENOMEM;
	return 0;
}

static void lint_done(struct lint *l)
{
	for (size_t i = 0; i < l->n_shapes; i++)
		shape_done(&l->shape[i]);
	free(l->shape);
	free(l->cond);
	free(l->rule);
	free(l->kin);
}

/* Everything is counted first, as addresses are kept. */
static int lint_init(struct lint *l, const struct ruleset *rs, struct diag *d)
{
	int r = 0;

	*l = (struct lint){.rs = rs, .d = d, .steps = STEPS_MAX};
	for (size_t i = 0; i < rs->n_rules; i++)
		count_mapping(l, &rs->rule[i].terms, rs->rule[i].not,
			      rs->rule[i].n_not);
	for (size_t i = 0; i < rs->n_kin; i++)
		count_mapping(l, &rs->kin[i].terms, rs->kin[i].not,
			      rs->kin[i].n_not);
	l->rule = calloc(rs->n_rules + 1, sizeof(*l->rule));
	l->kin = calloc(rs->n_kin + 1, sizeof(*l->kin));
	l->cond = calloc(l->n_conds + 1, sizeof(*l->cond));
	l->shape = calloc(l->n_shapes + 1, sizeof(*l->shape));
	l->n_conds = l->n_shapes = 0;
	if (!l->rule || !l->kin || !l->cond || !l->shape)
		return -ENOMEM;
	for (size_t i = 0; i < rs->n_rules && !r; i++)
		r = make_mapping(l, &rs->rule[i].terms, rs->rule[i].not,
				 rs->rule[i].n_not, &l->rule[i]);
	for (size_t i = 0; i < rs->n_kin && !r; i++)
		r = make_mapping(l, &rs->kin[i].terms, rs->kin[i].not,
				 rs->kin[i].n_not, &l->kin[i]);
	return r;
}

static const char *name_of_key(enum rule_key key, bool exporter)
{
	if (exporter && key == RULE_CMDLINE_ALL)
		key = RULE_CMDLINE;
	return rule_keys[key].name;
}

static void check_cond(struct lint *l, const struct lint_cond *c,
		       enum rule_kernel kernel, bool exporter)
{
	const struct rule_terms *terms = c->terms;
	const struct shape *shape = c->shape;

	if (kernel == KERNEL_EITHER)
		kernel = terms->kernel;
	for (size_t i = 0; i < terms->n_terms; i++) {
		const struct rule_term *t = &terms->term[i];
		struct lint_item item = {
		    .name = name_of_key(t->key, exporter),
		    .key = t->key,
		    .kernel = kernel,
		    .exporter = exporter,
		};

		for (size_t j = 0; j < t->n_items; j++) {
			item.m = &t->item[j];
			item.shape = shape++;
			if (rule_keys[t->key].item == ITEM_TEXT)
				lint_pattern(l, &item);
		}
	}
}

static void check_patterns(struct lint *l, const struct lint_mapping *m,
			   bool exporter)
{
	for (size_t i = 0; i <= m->n_not; i++)
		check_cond(l, &m->own[i], m->own->terms->kernel, exporter);
}

/* A list of names that belongs to no rule; a default one stands nowhere. */
static int check_list(struct lint *l, const char *name, enum rule_key key,
		      const struct matcher *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct shape shape;
		struct lint_item item = {
		    .name = name,
		    .key = key,
		    .m = &list[i],
		    .shape = &shape,
		    .kernel = KERNEL_EITHER,
		};

		if (!list[i].line)
			continue;
		if (shape_init(&shape, &list[i]))
			return -ENOMEM;
		lint_pattern(l, &item);
		shape_done(&shape);
	}
	return 0;
}

/* A group's name and who names it. */
struct naming {
	char text[NAME_MAX_LEN + 1];
	size_t rule;
};

static int by_text(const void *a, const void *b)
{
	const struct naming *x = a, *y = b;
	int r = strcmp(x->text, y->text);

	return r ? r : (x->rule > y->rule) - (x->rule < y->rule);
}

/*
 * Rules side by side are how an "or" is written, unless one list would do: of
 * the one key that both have.
 */
static bool is_or(const struct lint *l, size_t i, size_t j)
{
	const struct lint_mapping *a = &l->rule[i], *b = &l->rule[j];

	return i + 1 == j &&
	       (a->own->gives != b->own->gives || a->own->terms->n_terms != 1 ||
		b->own->terms->n_terms != 1 || a->n_not || b->n_not);
}

static int check_names(struct lint *l)
{
	const struct rule *rule = l->rs->rule;
	_cleanup_free_ struct naming *all =
	    calloc(l->rs->n_rules + 1, sizeof(*all));
	const char *told = "";
	size_t n = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < l->rs->n_rules; i++) {
		struct name_result clean;
		struct subject none = {0};

		if (!rule[i].name || !name_is_static(rule[i].name))
			continue;
		name_expand(rule[i].name, &none, NULL, &clean);
		memcpy(all[n].text, clean.text, sizeof(all[n].text));
		all[n++].rule = i;
	}
	qsort(all, n, sizeof(all[0]), by_text);
	for (size_t i = 1; i < n; i++) {
		const struct rule *a = &rule[all[i - 1].rule];
		const struct rule *b = &rule[all[i].rule];

		if (strcmp(all[i].text, all[i - 1].text) ||
		    !strcmp(all[i].text, told) ||
		    is_or(l, all[i - 1].rule, all[i].rule))
			continue;
		told = all[i].text;
		diag_add(l->d, DIAG_NOTE, b->line, b->column,
			 "the rule of line %u names the group \"%s\", too: "
			 "what both take is counted together; rename one if "
			 "that is not meant",
			 a->line, told);
	}
	return 0;
}

/* A number that the file gives, to one rule or to all of a view. */
static void check_max_groups(struct lint *l)
{
	const struct ruleset *rs = l->rs;

	for (size_t i = 0; i < rs->n_rules; i++) {
		const struct rule *r = &rs->rule[i];

		if (!r->overflow || r->max_groups == RULE_MAX_GROUPS ||
		    r->max_groups <= rs->limits.groups)
			continue;
		diag_add(l->d, DIAG_NOTE, r->line, r->column,
			 "max_groups is %u, but all rules together make %u "
			 "groups at most; raise limits.groups or lower "
			 "max_groups",
			 r->max_groups, rs->limits.groups);
	}
}

static int check_all(struct lint *l)
{
	const struct ruleset *rs = l->rs;
	int r;

	for (size_t i = 0; i < rs->n_rules; i++)
		check_patterns(l, &l->rule[i], rs->rule[i].exporter);
	for (size_t i = 0; i < rs->n_kin; i++)
		check_patterns(l, &l->kin[i], false);
	r = check_list(l, "managers", RULE_COMM, rs->manager, rs->n_managers);
	if (!r)
		r = check_list(l, "interpreters", RULE_EXE, rs->interpreter,
			       rs->n_interpreters);
	if (r)
		return r;
	lint_unreachable(l);
	lint_captures(l);
	check_max_groups(l);
	return check_names(l);
}

int rulelint_run(const struct ruleset *rs, struct diag *d)
{
	struct lint l;
	int r = lint_init(&l, rs, d);

	if (!r)
		r = check_all(&l);
	lint_done(&l);
	return r;
}
