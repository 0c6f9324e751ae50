/* SPDX-License-Identifier: MIT */
/*
 * Building a rule set and asking it about a subject. Terms of a rule are
 * tried in the order of what it costs to learn the value, and the first that
 * fails ends the rule: most processes are told apart by comm alone, and then
 * nothing else is read.
 *
 * It does not know where rules come from (rulefile) nor how a text is
 * compared (matcher).
 */
#include "rule.h"

#include "name.h"

enum {
	GROUPS_DEFAULT = 500,
	CMDLINE_DEFAULT = 64 * 1024,
	REFRESH_DEFAULT_S = 60,
};

#define FIELD(name) offsetof(struct subject, name)

const struct rule_key_def rule_keys[RULE_KEY_N] = {
    [RULE_COMM] = {"comm", SUBJECT_STAT, MATCHER_EXACT, false, FIELD(comm)},
    [RULE_KERNEL] = {"kernel", SUBJECT_STAT, MATCHER_EXACT, false, 0},
    [RULE_UID] = {"uid", SUBJECT_OWNER, MATCHER_NUMBER, false, 0},
    [RULE_USER] = {"user", SUBJECT_OWNER, MATCHER_EXACT, false, FIELD(user)},
    [RULE_CGROUP] = {"cgroup", SUBJECT_CGROUP, MATCHER_REGEX, false,
		     FIELD(cgroup)},
    [RULE_UNIT] = {"unit", SUBJECT_CGROUP, MATCHER_EXACT, false, FIELD(unit)},
    [RULE_SLICE] = {"slice", SUBJECT_CGROUP, MATCHER_EXACT, false,
		    FIELD(slice)},
    [RULE_CONTAINER] = {"container", SUBJECT_CGROUP, MATCHER_EXACT, false,
			FIELD(container)},
    [RULE_EXE_PATH] = {"exe_path", SUBJECT_EXE, MATCHER_EXACT, false,
		       FIELD(exe_path)},
    [RULE_EXE] = {"exe", SUBJECT_CMDLINE, MATCHER_EXACT, false, FIELD(exe)},
    [RULE_CMDLINE] = {"cmdline", SUBJECT_CMDLINE, MATCHER_REGEX, false,
		      FIELD(cmdline)},
    [RULE_CMDLINE_ALL] = {"cmdline_all", SUBJECT_CMDLINE, MATCHER_REGEX, true,
			  FIELD(cmdline)},
    [RULE_ANY] = {"any", SUBJECT_STAT, MATCHER_EXACT, false, 0},
};

/* The outcome of a term, of a rule. */
enum truth {
	HOLDS_NOT,
	HOLDS,
	HOLDS_MAYBE, /* a source is pending, and nothing else fails */
};

/* One call of ruleset_match(). */
struct asking {
	struct ruleset *rules;
	struct rule *rule;
	struct subject *subject;
	struct rule_verdict *verdict; /* takes the captures; NULL below `not` */
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
	if (new_other(&rs->other)) {
		free(rs);
		return NULL;
	}
	rs->collect = collect_default();
	rs->limits.groups = GROUPS_DEFAULT;
	rs->limits.cmdline = CMDLINE_DEFAULT;
	rs->gate = true;
	rs->refresh_ns = REFRESH_DEFAULT_S * NSEC_PER_SEC;
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

static void rule_done(struct rule *r)
{
	terms_done(&r->terms);
	for (size_t i = 0; i < r->n_not; i++)
		terms_done(&r->not [i]);
	free(r->not );
	name_free(r->name);
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
	name_free(rs->other);
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

int rule_collect_captures(struct rule *r)
{
	for (size_t i = 0; i < r->terms.n_terms; i++) {
		const struct rule_term *t = &r->terms.term[i];

		for (size_t j = 0; j < t->n_items; j++) {
			const struct matcher *m = &t->item[j];

			for (unsigned k = 0; k < m->n_names; k++) {
				int e =
				    add_capture(r, matcher_capture_name(m, k));

				if (e)
					return e;
			}
		}
	}
	return 0;
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

/* Sorts, and adds up what matching these terms will need. */
static void seal_terms(struct rule_terms *terms, unsigned *sources,
		       unsigned *n_groups)
{
	sort_terms(terms);
	if (terms->kernel != KERNEL_EITHER)
		*sources |= SUBJECT_BIT(SUBJECT_STAT);
	for (size_t i = 0; i < terms->n_terms; i++) {
		const struct rule_term *t = &terms->term[i];

		*sources |= SUBJECT_BIT(rule_keys[t->key].source);
		for (size_t j = 0; j < t->n_items; j++)
			*n_groups =
			    MAX(*n_groups, matcher_n_groups(&t->item[j]));
	}
}

int ruleset_seal(struct ruleset *rs)
{
	unsigned n_groups = 0, sources = 0;

	for (size_t i = 0; i < rs->n_rules; i++) {
		struct rule *r = &rs->rule[i];
		int e;

		seal_terms(&r->terms, &sources, &n_groups);
		for (size_t j = 0; j < r->n_not; j++)
			seal_terms(&r->not [j], &sources, &n_groups);
		e = rule_collect_captures(r);
		if (e)
			return e;
		if (r->name)
			sources |= name_sources(r->name);
	}
	if (rs->other)
		sources |= name_sources(rs->other);

	matcher_scratch_free(rs->scratch);
	rs->scratch = matcher_scratch_new(n_groups);
	if (!rs->scratch)
		return -ENOMEM;
	rs->sources = sources;
	return 0;
}

static void set_capture(struct rule_verdict *v, struct str name,
			struct str value)
{
	for (unsigned i = 0; i < v->n_captures; i++) {
		if (!str_eq(v->capture[i].name, name))
			continue;
		/* (?J) gives several groups of one pattern the same name. */
		if (value.n > 0)
			v->capture[i].value = value;
		return;
	}
	if (v->n_captures < RULE_CAPTURES_MAX)
		v->capture[v->n_captures++] =
		    (struct rule_capture){name, value};
}

static void take_captures(const struct asking *a, const struct matcher *m,
			  struct str value)
{
	for (unsigned i = 0; a->verdict && i < m->n_names; i++)
		set_capture(a->verdict, matcher_capture_name(m, i),
			    matcher_capture(m, i, value, a->rules->scratch));
}

static bool item_matches(const struct asking *a, enum rule_key key,
			 const struct matcher *m)
{
	const struct subject *s = a->subject;
	struct str value;

	if (m->kind == MATCHER_NUMBER)
		return s->uid == m->number;

	value = *(const struct str *)((const char *)s + rule_keys[key].field);
	if (key == RULE_EXE && m->has_slash)
		value = s->argv0;
	if (value.n == 0 && key != RULE_COMM)
		return false;

	switch (matcher_match(m, value, a->rules->scratch)) {
	case MATCHER_YES:
		take_captures(a, m, value);
		return true;
	case MATCHER_CUT:
		a->rules->n_regex_limit++;
		a->rule->n_regex_limit++;
		return false;
	case MATCHER_NO:
		break;
	}
	return false;
}

static bool term_holds(const struct asking *a, const struct rule_term *t)
{
	bool all = rule_keys[t->key].all;

	for (size_t i = 0; i < t->n_items; i++)
		if (item_matches(a, t->key, &t->item[i]) != all)
			return !all;
	return all;
}

/* Asks for a source; HOLDS says that it is there. */
static enum truth need(struct subject *s, enum subject_source source)
{
	if (subject_need(s, source))
		return HOLDS;
	return s->pending & SUBJECT_BIT(source) ? HOLDS_MAYBE : HOLDS_NOT;
}

static enum truth kernel_holds(const struct asking *a, enum rule_kernel wanted)
{
	enum truth there;

	if (wanted == KERNEL_EITHER)
		return HOLDS;
	there = need(a->subject, SUBJECT_STAT);
	if (there != HOLDS)
		return there;
	return a->subject->kernel == (wanted == KERNEL_YES) ? HOLDS : HOLDS_NOT;
}

static enum truth terms_hold(const struct asking *a,
			     const struct rule_terms *terms)
{
	enum truth all = kernel_holds(a, terms->kernel);

	if (!terms->n_terms && !terms->any && terms->kernel == KERNEL_EITHER)
		return HOLDS_NOT;
	if (all == HOLDS_NOT)
		return HOLDS_NOT;
	for (size_t i = 0; i < terms->n_terms; i++) {
		const struct rule_term *t = &terms->term[i];
		enum truth there = need(a->subject, rule_keys[t->key].source);

		/* One that waits is passed over: a later one may fail. */
		if (there == HOLDS_MAYBE)
			all = HOLDS_MAYBE;
		else if (there == HOLDS_NOT || !term_holds(a, t))
			return HOLDS_NOT;
	}
	return all;
}

/* HOLDS_MAYBE: an exception may yet turn out to apply. */
static enum truth exceptions_hold(const struct asking *a)
{
	struct asking below = *a;
	enum truth any = HOLDS_NOT;

	below.verdict = NULL;
	for (size_t i = 0; i < a->rule->n_not; i++) {
		enum truth t = terms_hold(&below, &a->rule->not [i]);

		if (t == HOLDS)
			return HOLDS;
		if (t == HOLDS_MAYBE)
			any = HOLDS_MAYBE;
	}
	return any;
}

void ruleset_match(struct ruleset *rs, struct subject *s,
		   struct rule_verdict *ret)
{
	struct asking a = {.rules = rs, .subject = s, .verdict = ret};

	ret->rule = NULL;
	ret->action = ACTION_LEAVE;
	ret->pending = false;
	ret->n_captures = 0;

	for (size_t i = 0; i < rs->n_rules; i++) {
		enum truth holds, except;

		a.rule = &rs->rule[i];
		ret->n_captures = 0;
		holds = terms_hold(&a, &a.rule->terms);
		if (holds == HOLDS_NOT)
			continue;
		except = exceptions_hold(&a);
		if (except == HOLDS)
			continue;
		if (holds == HOLDS_MAYBE || except == HOLDS_MAYBE)
			ret->pending = true;
		if (holds != HOLDS)
			continue;
		ret->rule = a.rule;
		ret->action = a.rule->action;
		return;
	}
	ret->n_captures = 0;
}
