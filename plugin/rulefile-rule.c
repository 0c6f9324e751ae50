/* SPDX-License-Identifier: MIT */
/*
 * One rule of a rule file. The keys that select processes come from
 * rule_keys[] in rule.c: a new matcher needs no line here. A name is compiled
 * last, as it may use what the patterns capture.
 *
 * Invariant: one message for one mistake. What could only repeat one (a rule
 * whose single pattern is misspelled has no pattern) is not looked for.
 */
#include "rulefile-rule.h"

#include "name.h"
#include "rulefile-keys.h"
#include "rulefile-terms.h"
#include "rulefile-value.h"

#include <stdio.h>

enum {
	MAX_GROUPS_MAX = 100000,
	SERIES_N_MAX = 1000,
};

struct rule_loader {
	struct rule *rule;
	const struct yaml_node *node;
	bool unknown_keys;
	bool bad_terms;
	bool bad_action;
};

int name_text(struct loader *l, const struct yaml_node *key,
	      const struct yaml_node *value, struct str *ret)
{
	return value_text(l->d, key, value, "", ret);
}

static int load_not(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value)
{
	struct rule_loader *rl = into;

	return exceptions_load(l, rl->node, key, value, &rl->rule->not,
			       &rl->rule->n_not);
}

static int load_action(struct loader *l, void *into,
		       const struct yaml_node *key,
		       const struct yaml_node *value)
{
	static const char *const words[] = {
	    [ACTION_GROUP] = "group",
	    [ACTION_DROP] = "drop",
	    [ACTION_LEAVE] = "leave",
	};
	struct rule_loader *rl = into;
	size_t i;
	int r = value_word(l->d, key, value, words, ARRAY_SIZE(words),
			   "group, drop or leave", &i);

	rl->bad_action = r;
	if (!r)
		rl->rule->action = (enum rule_action)i;
	return r;
}

static int load_rule_collect(struct loader *l, void *into,
			     const struct yaml_node *key,
			     const struct yaml_node *value)
{
	struct rule_loader *rl = into;
	const struct collect_into c = {&rl->rule->collect, &rl->rule->pss,
				       NULL};

	return collect_load(l, &c, key, value);
}

int children_load(struct loader *l, const struct yaml_node *key,
		  const struct yaml_node *value, uint8_t *ret)
{
	const char *want = "inherit, none, or a number of generations from 1 "
			   "to 254";
	struct str text = value->text;
	unsigned n = 0;

	if (value->kind != YAML_SCALAR)
		return value_refuse(l->d, key, value, want);
	if (str_eq(text, STR("inherit")) || str_eq(text, STR("none"))) {
		*ret = text.s[0] == 'i' ? CHILDREN_ALL : CHILDREN_NONE;
		return 0;
	}
	for (size_t i = 0; i < text.n && n <= CHILDREN_DEPTH_MAX; i++) {
		if (text.s[i] < '0' || text.s[i] > '9' ||
		    (i == 0 && text.s[i] == '0'))
			return value_refuse(l->d, key, value, want);
		n = n * 10 + (unsigned)(text.s[i] - '0');
	}
	if (n == 0 || n > CHILDREN_DEPTH_MAX)
		return value_refuse(l->d, key, value, want);
	*ret = (uint8_t)n;
	return 0;
}

static int load_children(struct loader *l, void *into,
			 const struct yaml_node *key,
			 const struct yaml_node *value)
{
	struct rule_loader *rl = into;

	return children_load(l, key, value, &rl->rule->children);
}

static int load_by(struct loader *l, void *into, const struct yaml_node *key,
		   const struct yaml_node *value)
{
	static const char *const words[] = {
	    [SERIES_NONE] = "none",
	    [SERIES_SLOT] = "slot",
	    [SERIES_PID] = "pid",
	};
	struct series_policy *series = into;
	size_t i;
	int r = value_word(l->d, key, value, words, ARRAY_SIZE(words),
			   "slot, pid or none", &i);

	if (!r)
		series->by = (enum series_by)i;
	return r;
}

static int load_top_by(struct loader *l, void *into,
		       const struct yaml_node *key,
		       const struct yaml_node *value)
{
	static const char *const words[] = {
	    [TOP_ALL] = "start", [TOP_CPU] = "cpu", [TOP_RSS] = "rss",
	    [TOP_PSS] = "pss",	 [TOP_IO] = "io",   [TOP_GPU] = "gpu",
	};
	struct series_policy *series = into;
	size_t i;
	int r = value_word(l->d, key, value, words, ARRAY_SIZE(words),
			   "cpu, rss, pss, io, gpu or start", &i);

	if (!r)
		series->top = (enum series_top)i;
	return r;
}

static int load_top_n(struct loader *l, void *into, const struct yaml_node *key,
		      const struct yaml_node *value)
{
	struct series_policy *series = into;
	uint64_t n;
	int r = value_number(l->d, key, value, 1, SERIES_N_MAX, &n);

	if (!r)
		series->n = (unsigned)n;
	return r;
}

static int load_top(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value)
{
	static const struct key_row rows[] = {
	    {"by", load_top_by},
	    {"n", load_top_n},
	};
	int r = mapping_load(l, into, key, value, rows, ARRAY_SIZE(rows));

	if (r)
		return r;
	if (key_find(value, "by", NULL) && key_find(value, "n", NULL))
		return 0;
	diag_add(l->d, DIAG_ERROR, value->line, value->column,
		 "\"top\" needs both \"by\" and \"n\"");
	return -EINVAL;
}

static int load_min_rss(struct loader *l, void *into,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	static const struct value_range range = {
	    0,
	    UINT64_C(1) << 60,
	    "a size from 0B on",
	};
	struct series_policy *series = into;

	return value_size(l->d, key, value, &range, &series->min_rss);
}

static int load_min_cpu(struct loader *l, void *into,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	struct series_policy *series = into;

	return value_percent(l->d, key, value, &series->min_cpu);
}

static int load_min_age(struct loader *l, void *into,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	static const struct value_range range = {
	    0,
	    UINT64_C(366) * 24 * 3600 * NSEC_PER_SEC,
	    "a duration up to a year",
	};
	struct series_policy *series = into;

	return value_duration(l->d, key, value, &range, &series->min_age_ns);
}

static int load_per_process(struct loader *l, void *into,
			    const struct yaml_node *key,
			    const struct yaml_node *value)
{
	static const struct key_row rows[] = {
	    {"by", load_by},	       {"top", load_top},
	    {"min_rss", load_min_rss}, {"min_cpu", load_min_cpu},
	    {"min_age", load_min_age},
	};
	struct rule_loader *rl = into;

	rl->rule->series.by = SERIES_SLOT;
	return mapping_load(l, &rl->rule->series, key, value, rows,
			    ARRAY_SIZE(rows));
}

static int load_max_groups(struct loader *l, void *into,
			   const struct yaml_node *key,
			   const struct yaml_node *value)
{
	struct rule_loader *rl = into;
	uint64_t n;
	int r = value_number(l->d, key, value, 1, MAX_GROUPS_MAX, &n);

	if (!r)
		rl->rule->max_groups = (unsigned)n;
	return r;
}

int name_load(struct loader *l, struct str text, char *const *captures,
	      unsigned n_captures, const struct yaml_node *place,
	      struct name **ret)
{
	_cleanup_free_ char *whole = NULL;
	int n;

	if (!l->prefix)
		return name_compile(text, captures, n_captures, l->d,
				    place->line, place->column, ret);
	n = asprintf(&whole, "%s.%.*s", l->prefix, (int)text.n, text.s);
	if (n < 0) {
		whole = NULL;
		return -ENOMEM;
	}
	return name_compile((struct str){whole, (size_t)n}, captures,
			    n_captures, l->d, place->line, place->column, ret);
}

static int load_name(struct loader *l, void *into, const struct yaml_node *key,
		     const struct yaml_node *value)
{
	struct rule_loader *rl = into;
	struct rule *rule = rl->rule;
	struct str text;
	int r = name_text(l, key, value, &text);

	if (r || rl->bad_action)
		return r;
	if (rule->action != ACTION_GROUP) {
		diag_add(l->d, DIAG_ERROR, key->line, key->column,
			 "a rule that drops or leaves has no name");
		return -EINVAL;
	}
	/* A capture may be missing only because its pattern is wrong. */
	if (rl->unknown_keys || rl->bad_terms)
		return 0;
	r = name_load(l, text, rule->capture, rule->n_captures, value,
		      &rule->name);
	if (r)
		return r;
	if (!(name_sources(rule->name) & SUBJECT_BIT(SUBJECT_KIN)) ||
	    yaml_node_get(rl->node, "parent") ||
	    yaml_node_get(rl->node, "ancestor"))
		return 0;
	diag_add(l->d, DIAG_ERROR, value->line, value->column,
		 "{{.Ancestor}} needs the key \"parent\" or \"ancestor\"");
	return -EINVAL;
}

/* The name of the group for what is too many. */
static int load_overflow(struct loader *l, void *into,
			 const struct yaml_node *key,
			 const struct yaml_node *value)
{
	struct rule_loader *rl = into;
	struct str text;
	int r = name_text(l, key, value, &text);

	if (r)
		return r;
	r = name_load(l, text, NULL, 0, value, &rl->rule->overflow);
	if (r || name_is_static(rl->rule->overflow))
		return r;
	return value_refuse(l->d, key, value, "a name without a {{token}}");
}

int rule_set_overflow(struct loader *l, struct rule *rule)
{
	_cleanup_free_ char *text = NULL;
	struct str literal;
	struct diag d;
	int n, r;

	if (!rule->max_groups)
		rule->max_groups =
		    l->max_groups ? l->max_groups : RULE_MAX_GROUPS;
	if (!rule->name || name_is_static(rule->name) || rule->overflow)
		return 0;
	literal = name_prefix(rule->name);
	n = asprintf(&text, "%.*sother", (int)literal.n, literal.s);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	diag_init(&d, "");
	/* Only there may a name begin with "_". */
	r = (rule->exporter ? name_compile_exporter : name_compile)(
	    (struct str){text, (size_t)n}, NULL, 0, &d, 0, 0, &rule->overflow);
	diag_done(&d);
	return r;
}

static bool selects_something(const struct rule_loader *rl)
{
	for (size_t k = 0; k < RULE_KEY_N; k++) {
		if (!yaml_node_get(rl->node, rule_keys[k].name))
			continue;
		if (k != RULE_KERNEL || rl->rule->terms.kernel == KERNEL_YES)
			return true;
	}
	return false;
}

/* Keys that say something of groups, where there are none. */
static int check_group_keys(struct loader *l, const struct rule_loader *rl)
{
	static const struct {
		const char *name;
		bool needs_token; /* in the rule's name */
	} keys[] = {
	    {"children", false},  {"collect", false}, {"per_process", false},
	    {"max_groups", true}, {"overflow", true},
	};
	const struct rule *rule = rl->rule;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys) && !rl->bad_action; i++) {
		const struct yaml_node *key;

		if (!key_find(rl->node, keys[i].name, &key))
			continue;
		if (rule->action != ACTION_GROUP)
			diag_add(l->d, DIAG_ERROR, key->line, key->column,
				 "a rule that drops or leaves has no \"%s\"",
				 keys[i].name);
		else if (keys[i].needs_token && rule->name &&
			 name_is_static(rule->name))
			diag_add(l->d, DIAG_ERROR, key->line, key->column,
				 "\"%s\" needs a name with a {{token}}: this "
				 "rule makes one group",
				 keys[i].name);
		else
			continue;
		r = -EINVAL;
	}
	return r;
}

/* What no single key can say. */
static int check_rule(struct loader *l, const struct rule_loader *rl)
{
	const struct yaml_node *node = rl->node;
	bool has_name = yaml_node_get(node, "name");
	int r = 0;

	if (rl->unknown_keys)
		return 0;
	if (!rl->bad_terms && !selects_something(rl)) {
		diag_add(l->d, DIAG_ERROR, node->line, node->column,
			 "the rule has no key that selects processes, as comm, "
			 "exe, cmdline, user or unit; \"any: true\" selects "
			 "all");
		r = -EINVAL;
	}
	if (!rl->bad_action && rl->rule->action == ACTION_GROUP && !has_name) {
		diag_add(l->d, DIAG_ERROR, node->line, node->column,
			 "the rule has no name; only \"action: drop\" and "
			 "\"action: leave\" go without");
		r = -EINVAL;
	}
	return check_group_keys(l, rl) ? -EINVAL : r;
}

int rule_load_captures(struct loader *l, const struct yaml_node *place,
		       struct rule *rule)
{
	int r = rule_collect_captures(l->rs, rule);

	if (r != -E2BIG)
		return r;
	diag_add(l->d, DIAG_ERROR, place->line, place->column,
		 "more than %d named captures in one rule", RULE_CAPTURES_MAX);
	return -EINVAL;
}

int rule_load(struct loader *l, const struct yaml_node *node, struct rule *rule)
{
	/* In this order: a name needs the action and the captures. */
	static const struct key_row rows[] = {
	    {"action", load_action},
	    {"not", load_not},
	    {"collect", load_rule_collect},
	    {"children", load_children},
	    {"per_process", load_per_process},
	    {"max_groups", load_max_groups},
	    {"name", load_name},
	    {"overflow", load_overflow},
	};
	struct rule_loader rl = {.rule = rule, .node = node};
	struct key_names names = {0};
	int r, result = 0;

	if (node->kind != YAML_MAPPING) {
		bool is_text = node->kind == YAML_SCALAR && node->text.n;

		diag_add(l->d, DIAG_ERROR, node->line, node->column,
			 "a rule is a mapping, as {name: web, comm: nginx}%s",
			 is_text ? "; a \": \" is behind each key, with its "
				   "blank"
				 : "");
		return -EINVAL;
	}
	rule->line = node->line;
	rule->column = node->column;
	rule->hash = yaml_node_hash(node);
	rule->collect = l->rs->collect;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		key_names_add(&names, rows[i].name);
	terms_add_names(&names);
	rl.unknown_keys = keys_check(l, NULL, node, &names);

	r = terms_load(l, node, &rule->terms, node);
	if (!r)
		r = rule_load_captures(l, node, rule);
	if (r == -ENOMEM)
		return r;
	rl.bad_terms = r;
	if (r || rl.unknown_keys)
		result = -EINVAL;
	r = keys_load(l, &rl, node, rows, ARRAY_SIZE(rows));
	if (r == -ENOMEM)
		return r;
	if (r)
		result = r;
	r = check_rule(l, &rl);
	if (r || result)
		return r ? r : result;
	return rule_set_overflow(l, rule);
}
