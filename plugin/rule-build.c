/* SPDX-License-Identifier: MIT */
/*
 * Building a rule set: memory, compiling of items, and the sealing that makes
 * it fit to be asked. What is asked of it is in rule.c.
 */
#include "rule.h"

#include "name.h"

enum {
	GROUPS_DEFAULT = 500,
	CMDLINE_DEFAULT = 64 * 1024,
	REFRESH_DEFAULT_S = 60,
	RECHECK_DEFAULT_S = 60,
	IDLE_DEFAULT_S = 600,
};

static int new_other(struct name **ret)
{
	struct diag d;
	int r;

	diag_init(&d, "");
	r = name_compile(STR("other"), NULL, 0, &d, 0, 0, ret);
	diag_done(&d);
	return r;
}

struct ruleset *ruleset_new(void)
{
	struct ruleset *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return NULL;
	if (new_other(&rs->view[0].other)) {
		free(rs);
		return NULL;
	}
	rs->n_views = 1;
	rs->collect = rs->view[0].collect = collect_default();
	rs->pss = rs->view[0].pss = (struct pss_policy){
	    .every_ns = PSS_EVERY_NS,
	    .max_age_ns = PSS_MAX_AGE_NS,
	    .max_rss = PSS_MAX_RSS,
	};
	rs->pss_budget_ppm = PSS_BUDGET_PPM;
	rs->children = CHILDREN_ALL;
	rs->limits.groups = GROUPS_DEFAULT;
	rs->limits.cmdline = CMDLINE_DEFAULT;
	rs->gate = true;
	rs->refresh_ns = REFRESH_DEFAULT_S * NSEC_PER_SEC;
	rs->recheck_ns = RECHECK_DEFAULT_S * NSEC_PER_SEC;
	rs->idle_ns = IDLE_DEFAULT_S * NSEC_PER_SEC;
	return rs;
}

static void terms_done(struct rule_terms *terms)
{
	for (size_t i = 0; i < terms->n_terms; i++) {
		struct rule_term *t = &terms->term[i];

		for (size_t j = 0; j < t->n_items; j++)
			matcher_done(&t->item[j]);
		free(t->item);
	}
	free(terms->term);
}

static void exceptions_done(struct rule_terms *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		terms_done(&list[i]);
	free(list);
}

static void matchers_done(struct matcher *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		matcher_done(&m[i]);
	free(m);
}

static void rule_done(struct rule *r)
{
	terms_done(&r->terms);
	exceptions_done(r->not, r->n_not);
	name_free(r->name);
	name_free(r->overflow);
	for (unsigned i = 0; i < r->n_captures; i++)
		free(r->capture[i]);
}

void ruleset_free(struct ruleset *rs)
{
	if (!rs)
		return;
	for (size_t i = 0; i < rs->n_rules; i++)
		rule_done(&rs->rule[i]);
	free(rs->rule);
	for (size_t i = 0; i < RULE_VIEWS_MAX; i++) {
		free(rs->view[i].name);
		name_free(rs->view[i].other);
	}
	for (size_t i = 0; i < rs->n_kin; i++) {
		terms_done(&rs->kin[i].terms);
		exceptions_done(rs->kin[i].not, rs->kin[i].n_not);
	}
	free(rs->kin);
	for (size_t i = 0; i < rs->n_pidfiles; i++)
		free(rs->pidfile[i].path);
	free(rs->pidfile);
	matchers_done(rs->manager, rs->n_managers);
	matchers_done(rs->interpreter, rs->n_interpreters);
	matcher_scratch_free(rs->scratch);
	free(rs);
}

/* The keys that are no comparison with a text or a number. */
static int add_switch(struct rule_terms *terms, enum rule_key key,
		      struct str text, struct diag *d, unsigned line,
		      unsigned column)
{
	static const struct {
		struct str word;
		enum rule_kernel kernel;
	} words[] = {
	    {{"true", 4}, KERNEL_YES},
	    {{"false", 5}, KERNEL_NO},
	    {{"any", 3}, KERNEL_EITHER},
	};

	if (key == RULE_ANY && str_eq(text, STR("true"))) {
		terms->any = true;
		return 0;
	}
	for (size_t i = 0; key == RULE_KERNEL && i < ARRAY_SIZE(words); i++) {
		if (!str_eq(text, words[i].word))
			continue;
		terms->kernel = words[i].kernel;
		return 0;
	}
	diag_add(d, DIAG_ERROR, line, column, "%s: \"%.*s\" is not %s",
		 rule_keys[key].name, (int)MIN(text.n, (size_t)40), text.s,
		 key == RULE_ANY ? "true" : "true, false or any");
	return -EINVAL;
}

static int term_of(struct rule_terms *terms, enum rule_key key,
		   struct rule_term **ret)
{
	for (size_t i = 0; i < terms->n_terms; i++) {
		if (terms->term[i].key != key)
			continue;
		*ret = &terms->term[i];
		return 0;
	}
	if (array_reserve(&terms->term, &terms->cap, terms->n_terms + 1,
			  sizeof(terms->term[0])))
		return -ENOMEM;
	*ret = &terms->term[terms->n_terms++];
	**ret = (struct rule_term){.key = key};
	return 0;
}

int rule_terms_add(struct rule_terms *terms, enum rule_key key, struct str text,
		   struct diag *d, unsigned line, unsigned column)
{
	const struct rule_key_def *def = &rule_keys[key];
	struct rule_term *t;
	struct matcher m;
	int r;

	if (key == RULE_KERNEL || key == RULE_ANY)
		return add_switch(terms, key, text, d, line, column);

	r = matcher_init(&m, def->name, def->plain, text, d, line, column);
	if (r)
		return r;
	if (term_of(terms, key, &t) ||
	    array_reserve(&t->item, &t->cap, t->n_items + 1,
			  sizeof(t->item[0]))) {
		matcher_done(&m);
		return -ENOMEM;
	}
	t->item[t->n_items++] = m;
	return 0;
}

int rule_terms_add_empty(struct rule_terms *terms, enum rule_key key)
{
	struct rule_term *t;

	return term_of(terms, key, &t);
}

int rule_terms_add_pidfile(struct ruleset *rs, struct rule_terms *terms,
			   struct str path)
{
	struct matcher m = {.kind = MATCHER_NUMBER};
	struct rule_term *t;
	size_t i = 0;

	while (i < rs->n_pidfiles && !str_eq(str_of(rs->pidfile[i].path), path))
		i++;
	if (i == RULE_PIDFILES_MAX)
		return -E2BIG;
	if (i == rs->n_pidfiles) {
		char *copy = strndup(path.s, path.n);

		if (!copy || array_reserve(&rs->pidfile, &rs->pidfile_cap,
					   i + 1, sizeof(rs->pidfile[0]))) {
			free(copy);
			return -ENOMEM;
		}
		rs->pidfile[rs->n_pidfiles++] =
		    (struct rule_pidfile){.path = copy};
	}
	m.number = (uint32_t)i;
	if (term_of(terms, RULE_PIDFILE, &t) ||
	    array_reserve(&t->item, &t->cap, t->n_items + 1,
			  sizeof(t->item[0])))
		return -ENOMEM;
	t->item[t->n_items++] = m;
	return 0;
}

int rule_terms_add_kin(struct rule_terms *terms, enum rule_key key, size_t kin)
{
	struct rule_term *t;

	if (term_of(terms, key, &t))
		return -ENOMEM;
	t->kin |= UINT64_C(1) << kin;
	return 0;
}

struct rule *ruleset_add_rule(struct ruleset *rs)
{
	struct rule *r;

	if (array_reserve(&rs->rule, &rs->cap, rs->n_rules + 1,
			  sizeof(rs->rule[0])))
		return NULL;
	r = &rs->rule[rs->n_rules++];
	*r = (struct rule){.children = rs->children, .pss = rs->pss};
	return r;
}

struct rule_kin *ruleset_add_kin(struct ruleset *rs)
{
	struct rule_kin *k;

	if (array_reserve(&rs->kin, &rs->kin_cap, rs->n_kin + 1,
			  sizeof(rs->kin[0])))
		return NULL;
	k = &rs->kin[rs->n_kin++];
	*k = (struct rule_kin){.terms.kernel = KERNEL_EITHER};
	return k;
}

static int add_defaults(struct matcher **list, size_t *n, size_t *cap,
			const char *const *words, size_t n_words)
{
	struct diag d;
	int r = 0;

	diag_init(&d, "");
	for (size_t i = 0; r == 0 && i < n_words; i++) {
		if (array_reserve(list, cap, *n + 1, sizeof(**list)))
			r = -ENOMEM;
		else
			r = matcher_init(&(*list)[*n], "", MATCHER_EXACT,
					 str_of(words[i]), &d, 0, 0);
		if (r == 0)
			++*n;
	}
	diag_done(&d);
	return r;
}

/* Those that start what has nothing to do with them. */
int ruleset_default_managers(struct ruleset *rs)
{
	static const char *const words[] = {
	    "systemd", "init",	    "glob:containerd-shim*",
	    "tini",    "dumb-init", "docker-init",
	    "cron",    "crond",	    "sshd",
	};

	return add_defaults(&rs->manager, &rs->n_managers, &rs->manager_cap,
			    words, ARRAY_SIZE(words));
}

int ruleset_default_interpreters(struct ruleset *rs)
{
	static const char *const words[] = {
	    "sh",	  "bash",	  "dash",	"zsh",
	    "ksh",	  "glob:python*", "glob:pypy*", "glob:perl*",
	    "glob:ruby*", "glob:php*",	  "node",	"nodejs",
	    "bun",	  "deno",	  "glob:lua*",	"glob:tclsh*",
	    "Rscript",
	};

	return add_defaults(&rs->interpreter, &rs->n_interpreters,
			    &rs->interpreter_cap, words, ARRAY_SIZE(words));
}

static int add_capture(struct rule *r, struct str name)
{
	char *copy;

	for (unsigned i = 0; i < r->n_captures; i++)
		if (str_eq(str_of(r->capture[i]), name))
			return 0;
	if (r->n_captures == RULE_CAPTURES_MAX)
		return -E2BIG;
	copy = strndup(name.s, name.n);
	if (!copy)
		return -ENOMEM;
	r->capture[r->n_captures++] = copy;
	return 0;
}

static int collect_captures(const struct ruleset *rs, struct rule *r,
			    const struct rule_terms *terms)
{
	for (size_t i = 0; i < terms->n_terms; i++) {
		const struct rule_term *t = &terms->term[i];
		int e = 0;

		for (size_t j = 0; j < t->n_items; j++) {
			const struct matcher *m = &t->item[j];

			for (unsigned k = 0; !e && k < m->n_names; k++)
				e = add_capture(r, matcher_capture_name(m, k));
		}
		for (uint64_t kin = t->kin; !e && kin; kin &= kin - 1) {
			unsigned k = (unsigned)__builtin_ctzll(kin);

			e = collect_captures(rs, r, &rs->kin[k].terms);
		}
		if (e)
			return e;
	}
	return 0;
}

int rule_collect_captures(const struct ruleset *rs, struct rule *r)
{
	return collect_captures(rs, r, &r->terms);
}

/* An insertion sort, as terms of one source are to keep their order. */
static void sort_terms(struct rule_terms *terms)
{
	for (size_t i = 1; i < terms->n_terms; i++) {
		struct rule_term t = terms->term[i];
		size_t j = i;

		for (; j > 0 && rule_keys[terms->term[j - 1].key].source >
				    rule_keys[t.key].source;
		     j--)
			terms->term[j] = terms->term[j - 1];
		terms->term[j] = t;
	}
}

/* What matching will need. */
struct needs {
	unsigned sources;  /* SUBJECT_BIT()s */
	unsigned n_groups; /* of the pattern that has most */
};

static void seal_matchers(const struct matcher *m, size_t n,
			  struct needs *needs)
{
	for (size_t i = 0; i < n; i++)
		needs->n_groups = MAX(needs->n_groups, matcher_n_groups(&m[i]));
}

/* Sorts, and adds up what matching these terms will need. */
static void seal_terms(struct rule_terms *terms, struct needs *needs)
{
	sort_terms(terms);
	if (terms->kernel != KERNEL_EITHER)
		needs->sources |= SUBJECT_BIT(SUBJECT_STAT);
	for (size_t i = 0; i < terms->n_terms; i++) {
		const struct rule_term *t = &terms->term[i];

		needs->sources |= SUBJECT_BIT(rule_keys[t->key].source);
		seal_matchers(t->item, t->n_items, needs);
	}
}

static void seal_conditions(struct rule_terms *terms, struct rule_terms * not,
			    size_t n_not, struct needs *needs)
{
	seal_terms(terms, needs);
	for (size_t i = 0; i < n_not; i++)
		seal_terms(&not [i], needs);
}

static int seal_rules(struct ruleset *rs, struct needs *needs)
{
	for (size_t i = 0; i < rs->n_rules; i++) {
		struct rule *r = &rs->rule[i];
		int e;

		seal_conditions(&r->terms, r->not, r->n_not, needs);
		e = rule_collect_captures(rs, r);
		if (e)
			return e;
		if (r->name)
			needs->sources |= name_sources(r->name);
		rs->has_series |= r->series.by != SERIES_NONE;
	}
	return 0;
}

int ruleset_seal(struct ruleset *rs)
{
	struct needs needs = {0};
	int r = seal_rules(rs, &needs);

	if (r)
		return r;
	for (size_t i = 0; i < rs->n_kin; i++)
		seal_conditions(&rs->kin[i].terms, rs->kin[i].not,
				rs->kin[i].n_not, &needs);
	seal_matchers(rs->manager, rs->n_managers, &needs);
	seal_matchers(rs->interpreter, rs->n_interpreters, &needs);
	if (rs->n_views == 1)
		rs->view[0].n_rules = rs->n_rules;
	for (size_t i = 0; i < rs->n_views; i++)
		if (rs->view[i].other)
			needs.sources |= name_sources(rs->view[i].other);

	matcher_scratch_free(rs->scratch);
	rs->scratch = matcher_scratch_new(needs.n_groups);
	if (!rs->scratch)
		return -ENOMEM;
	rs->sources = needs.sources;
	return 0;
}
