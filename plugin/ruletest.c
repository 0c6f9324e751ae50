/* SPDX-License-Identifier: MIT */
#include "ruletest-internal.h"

#include "clocks.h"
#include "rulefile-value.h"

#include <stdio.h>

enum {
	BUDGET_S = 3, /* CPU time of all tests: collectd waits for them */
};

/* When the tests began. */
struct budget {
	uint64_t begin_ns;
};

static bool budget_is_spent(const struct budget *b)
{
	return clocks_thread_cpu() - b->begin_ns >= BUDGET_S * NSEC_PER_SEC;
}

static void test_done(struct test *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->line[i].raw);
		free(t->line[i].argv0);
		free(t->line[i].cgroup_text);
	}
}

static void learn_traits(struct test *t, size_t i)
{
	struct ruleset *rs = t->l->rs;
	struct process *p = &t->line[i];
	struct rule_traits traits;

	if (i + 1 < t->n) {
		const struct process *up = &t->line[i + 1];

		p->subject.parent_traits = up->traits;
		p->subject.ancestor_traits = up->traits;
		if (!ruleset_is_manager(rs, up->subject.comm))
			p->subject.ancestor_traits |=
			    up->subject.ancestor_traits;
	}
	p->subject.have |= SUBJECT_BIT(SUBJECT_KIN);
	ruleset_traits(rs, &p->subject, &traits);
	p->traits = traits.holds;
	for (unsigned k = 0; k < traits.n_captures; k++)
		p->text[p->n_texts++] = (struct kin_text){
		    traits.capture[k].trait,
		    traits.capture[k].text.name,
		    traits.capture[k].text.value,
		};
}

/* What no rule takes. */
static void inherit(struct test *t, size_t i)
{
	struct ruleset *rs = t->l->rs;
	const struct name *other = rs->view[t->view].other;
	struct process *p = &t->line[i];

	for (size_t up = i + 1; up < t->n; up++) {
		const struct process *from = &t->line[up];
		enum inherit_step step;

		if (ruleset_is_manager(rs, from->subject.comm) ||
		    (from->subject.pid == 1 && !rs->init_gives))
			break;
		step = inherit_from(&from->heritage, (unsigned)(up - i));
		if (step == INHERIT_GO_ON)
			continue;
		p->heritage = inherit_take(&from->heritage, (unsigned)(up - i));
		if (step == INHERIT_DROP)
			p->heritage.how = HERITAGE_DROPPED;
		p->name = from->name;
		p->rule = from->rule;
		return;
	}
	p->heritage.how = HERITAGE_OTHER;
	if (other)
		name_expand(other, &p->subject, NULL, &p->name);
	else
		strcpy(p->name.text, "drop");
}

static void place(struct test *t, size_t i)
{
	struct process *p = &t->line[i];
	struct rule_verdict v;

	learn_traits(t, i);
	ruleset_match(t->l->rs, t->view, &p->subject, &v);
	p->rule = v.rule;
	p->heritage = (struct heritage){0};
	switch (v.action) {
	case ACTION_GROUP:
		p->heritage.how = HERITAGE_MATCHED;
		p->heritage.children = v.rule->children;
		name_expand(v.rule->name, &p->subject, &v, &p->name);
		break;
	case ACTION_DROP:
		p->heritage.how = HERITAGE_DROPPED;
		strcpy(p->name.text, "drop");
		break;
	case ACTION_LEAVE:
		inherit(t, i);
		break;
	}
}

static int judge(struct test *t)
{
	const struct process *p = &t->line[0];
	const struct yaml_node *e = t->expect;
	char why[64] = "no rule takes it";

	if (str_eq(e->text, str_of(p->name.text)))
		return 0;
	if (p->rule)
		snprintf(why, sizeof(why), "by the rule of line %u%s",
			 p->rule->line, p->heritage.depth ? ", inherited" : "");
	diag_add(t->l->d, DIAG_ERROR, e->line, e->column,
		 "test failed: the process comes to \"%s\" (%s), not to "
		 "\"%.*s\"",
		 p->name.text, why, EXCERPT(e->text));
	return -EINVAL;
}

static int find_view(struct loader *l, const struct yaml_node *node,
		     size_t *ret)
{
	const struct yaml_node *key, *value = key_find(node, "view", &key);
	struct str name = value ? value->text : STR("app");
	char want[256];
	size_t n = 0;

	for (size_t i = 0; i < l->rs->n_views; i++) {
		const char *own = l->rs->view[i].name;

		if (str_eq(name, str_of(own ? own : "app"))) {
			*ret = i;
			return 0;
		}
	}
	*ret = 0;
	if (!value)
		return 0;
	for (size_t i = 0; i < l->rs->n_views; i++) {
		const char *own = l->rs->view[i].name;

		n += (size_t)snprintf(want + n, sizeof(want) - n, "%s%s",
				      i ? ", " : "the name of a view (",
				      own ? own : "app");
	}
	snprintf(want + n, sizeof(want) - n, ")");
	return value_refuse(l->d, key, value, want);
}

static int load_expect(struct test *t, const struct yaml_node *node)
{
	struct loader *l = t->l;
	const struct yaml_node *key;
	struct str text;

	t->expect = key_find(node, "expect", &key);
	if (t->expect)
		return value_text(l->d, key, t->expect, "", &text);
	diag_add(l->d, DIAG_ERROR, node->line, node->column,
		 "a test needs \"expect\": the name of a group, or drop");
	return -EINVAL;
}

/* The rule whose patterns were cut off most often; NULL if none was. */
static const struct rule *find_costly(const struct ruleset *rs)
{
	const struct rule *most = NULL;

	for (size_t i = 0; i < rs->n_rules; i++)
		if (rs->rule[i].n_regex_limit >
		    (most ? most->n_regex_limit : 0))
			most = &rs->rule[i];
	return most;
}

static int tell_spent(struct loader *l, const struct yaml_node *node)
{
	const struct rule *costly = find_costly(l->rs);
	char where[96] = "";

	if (costly)
		snprintf(where, sizeof(where),
			 ": a pattern of the rule of line %u takes too many "
			 "steps",
			 costly->line);
	diag_add(l->d, DIAG_ERROR, node->line, node->column,
		 "the tests up to this one took %d s of CPU time, which is all "
		 "that they may%s",
		 BUDGET_S, where);
	return -EINVAL;
}

static int run_test(struct loader *l, const struct budget *b,
		    const struct yaml_node *node)
{
	_cleanup_(test_done) struct test t = {.l = l};
	int r = ruletest_load_process(&t, NULL, node), e = 0;

	if (r == -ENOMEM || node->kind != YAML_MAPPING)
		return r;
	/* What is missing may be what was written in another way. */
	if (!r || yaml_node_get(node, "expect"))
		e = load_expect(&t, node);
	if (!r && !e)
		r = find_view(l, node, &t.view);
	if (r || e)
		return r ? r : e;
	for (size_t i = t.n; i-- > 0;) {
		if (budget_is_spent(b))
			return 0; /* the caller tells it */
		place(&t, i);
	}
	return judge(&t);
}

int ruletest_run(struct ruleset *rs, const struct yaml_node *tests,
		 struct diag *d)
{
	struct loader l = {.d = d, .rs = rs};
	const struct budget budget = {clocks_thread_cpu()};
	int result = 0;

	if (tests->kind != YAML_SEQUENCE) {
		diag_add(d, DIAG_ERROR, tests->line, tests->column,
			 "\"tests\" must be a list of mappings");
		return -EINVAL;
	}
	for (size_t i = 0; i < tests->n_children; i++) {
		const struct yaml_node *node = tests->child[i];
		int r = run_test(&l, &budget, node);

		for (size_t k = 0; k < rs->n_pidfiles; k++)
			rs->pidfile[k].pid = 0;
		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
		if (budget_is_spent(&budget)) {
			result = tell_spent(&l, node);
			break;
		}
	}
	for (size_t i = 0; i < rs->n_rules; i++)
		rs->rule[i].n_regex_limit = 0;
	rs->n_regex_limit = 0;
	return result;
}
