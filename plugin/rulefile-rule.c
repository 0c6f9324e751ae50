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
#include "rulefile-value.h"

enum {
	ITEMS_MAX = 1000,
	COMM_MAX = 15, /* TASK_COMM_LEN - 1; kernel threads have more */
};

struct rule_loader {
	struct rule *rule;
	const struct yaml_node *node;
	bool unknown_keys;
	bool bad_terms;
	bool bad_action;
};

static void names_add_terms(struct key_names *names)
{
	for (size_t i = 0; i < RULE_KEY_N; i++)
		key_names_add(names, rule_keys[i].name);
}

int name_text(struct loader *l, const struct yaml_node *key,
	      const struct yaml_node *value, struct str *ret)
{
	return value_text(l->d, key, value, "", ret);
}

/* The item that was added last; there must be one. */
static const struct matcher *last_item(const struct rule_terms *terms,
				       enum rule_key key)
{
	const struct rule_term *t = terms->term;

	while (t->key != key)
		t++;
	return &t->item[t->n_items - 1];
}

static void warn_long_comm(struct loader *l, const struct rule_loader *rl,
			   const struct rule_terms *terms,
			   const struct yaml_node *value)
{
	const struct yaml_node *name = yaml_node_get(rl->node, "name");
	const struct matcher *m = last_item(terms, RULE_COMM);
	struct str text = {m->text, m->text_len};

	if (rl->rule->terms.kernel != KERNEL_NO || m->kind != MATCHER_EXACT ||
	    text.n <= COMM_MAX)
		return;
	if (name && name->kind == YAML_SCALAR)
		diag_add(l->d, DIAG_WARNING, value->line, value->column,
			 "rule \"%.*s\": comm \"%.*s\" is longer than %d bytes "
			 "and matches no process; use exe or cmdline",
			 EXCERPT(name->text), EXCERPT(text), COMM_MAX);
	else
		diag_add(l->d, DIAG_WARNING, value->line, value->column,
			 "rule of line %u: comm \"%.*s\" is longer than %d "
			 "bytes and matches no process; use exe or cmdline",
			 rl->node->line, EXCERPT(text), COMM_MAX);
}

/* One item of a key that selects, checked as a value and not as a pattern. */
static int check_item(struct loader *l, enum rule_key k,
		      const struct yaml_node *key, const struct yaml_node *item,
		      struct str *ret)
{
	uint64_t number;

	if (rule_keys[k].plain == MATCHER_NUMBER) {
		*ret = item->text;
		return value_number(l->d, key, item, 0, UINT32_MAX, &number);
	}
	if (k == RULE_USER)
		return value_text(l->d, key, item, ", or use uid", ret);
	return value_text(l->d, key, item, k == RULE_COMM ? "" : NULL, ret);
}

static int load_item(struct loader *l, struct rule_loader *rl,
		     struct rule_terms *terms, enum rule_key k,
		     const struct yaml_node *key, const struct yaml_node *item)
{
	struct str text;
	int r = check_item(l, k, key, item, &text);

	if (!r)
		r = rule_terms_add(terms, k, text, l->d, item->line,
				   item->column);
	if (!r && k == RULE_COMM)
		warn_long_comm(l, rl, terms, item);
	return r;
}

static int check_count(struct loader *l, const struct yaml_node *list)
{
	const struct yaml_node *beyond;

	if (list->n_children <= ITEMS_MAX)
		return 0;
	beyond = list->child[ITEMS_MAX];
	diag_add(l->d, DIAG_ERROR, beyond->line, beyond->column,
		 "more than %d items", ITEMS_MAX);
	return -EINVAL;
}

static int load_items(struct loader *l, struct rule_loader *rl,
		      struct rule_terms *terms, enum rule_key k,
		      const struct yaml_node *key,
		      const struct yaml_node *value)
{
	int result = 0;

	if (value->kind == YAML_SCALAR)
		return load_item(l, rl, terms, k, key, value);
	if (value->kind != YAML_SEQUENCE || value->n_children == 0)
		return value_refuse(l->d, key, value,
				    value->kind == YAML_SEQUENCE
					? "a text or a list with one item "
					  "or more"
					: "a text or a list of texts");
	result = check_count(l, value);
	if (result)
		return result;
	for (size_t i = 0; i < value->n_children; i++) {
		int r = load_item(l, rl, terms, k, key, value->child[i]);

		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	return result;
}

static int load_kernel(struct loader *l, struct rule_terms *terms,
		       const struct yaml_node *mapping)
{
	const struct yaml_node *key, *value;
	bool yes;

	value = key_find(mapping, rule_keys[RULE_KERNEL].name, &key);
	if (!value)
		return 0;
	if (value->kind == YAML_SCALAR && str_eq(value->text, STR("any"))) {
		terms->kernel = KERNEL_EITHER;
		return 0;
	}
	if (!value_is_bool(value, &yes))
		return value_refuse(l->d, key, value, "true, false or any");
	terms->kernel = yes ? KERNEL_YES : KERNEL_NO;
	return 0;
}

static int load_any(struct loader *l, struct rule_terms *terms,
		    const struct yaml_node *mapping)
{
	const struct yaml_node *key, *value;
	bool yes = false;

	value = key_find(mapping, rule_keys[RULE_ANY].name, &key);
	if (!value)
		return 0;
	if (!value_is_bool(value, &yes) || !yes)
		return value_refuse(l->d, key, value, "true, or be left out");
	terms->any = true;
	return 0;
}

/* All keys that select, of a rule or of a mapping below `not`. */
static int load_terms(struct loader *l, struct rule_loader *rl,
		      struct rule_terms *terms, const struct yaml_node *mapping)
{
	int result = load_kernel(l, terms, mapping);
	int r = load_any(l, terms, mapping);

	if (r)
		result = r;
	for (unsigned k = 0; k < RULE_KEY_N; k++) {
		const struct yaml_node *key, *value;

		if (k == RULE_KERNEL || k == RULE_ANY)
			continue;
		value = key_find(mapping, rule_keys[k].name, &key);
		if (!value)
			continue;
		r = load_items(l, rl, terms, (enum rule_key)k, key, value);
		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	return result;
}

static int load_not_item(struct loader *l, struct rule_loader *rl,
			 struct rule_terms *terms, const struct yaml_node *key,
			 const struct yaml_node *mapping)
{
	struct key_names names = {0};
	int r, result;

	/* What the rule says of kernel threads has been said. */
	terms->kernel = KERNEL_EITHER;
	names_add_terms(&names);
	result = keys_check(l, key, mapping, &names);
	if (mapping->kind != YAML_MAPPING)
		return result;
	r = load_terms(l, rl, terms, mapping);
	if (r || result)
		return r ? r : result;
	if (terms->n_terms || terms->any || terms->kernel != KERNEL_EITHER)
		return 0;
	diag_add(l->d, DIAG_ERROR, mapping->line, mapping->column,
		 "\"not\" has no key that selects processes");
	return -EINVAL;
}

static int load_not(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value)
{
	struct rule_loader *rl = into;
	struct rule *rule = rl->rule;
	struct rule_terms *list;
	bool is_list = value->kind == YAML_SEQUENCE;
	size_t n = is_list ? value->n_children : 1;
	int result = 0;

	if (n == 0)
		return value_refuse(l->d, key, value,
				    "a mapping or a list with one or more");
	if (is_list)
		result = check_count(l, value);
	if (result)
		return result;
	list = calloc(n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	rule->not = list;
	for (size_t i = 0; i < n; i++) {
		int r = load_not_item(l, rl, &list[rule->n_not++], key,
				      is_list ? value->child[i] : value);

		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	return result;
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

	return collect_load(l, &rl->rule->collect, key, value);
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
	return name_compile(text, rule->capture, rule->n_captures, l->d,
			    value->line, value->column, &rule->name);
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
			 "the rule has no key that selects processes; \"any: "
			 "true\" selects all");
		r = -EINVAL;
	}
	if (!rl->bad_action && rl->rule->action == ACTION_GROUP && !has_name) {
		diag_add(l->d, DIAG_ERROR, node->line, node->column,
			 "the rule has no name; only \"action: drop\" and "
			 "\"action: leave\" go without");
		r = -EINVAL;
	}
	return r;
}

static int collect_captures(struct loader *l, const struct rule_loader *rl)
{
	int r = rule_collect_captures(rl->rule);

	if (r != -E2BIG)
		return r;
	diag_add(l->d, DIAG_ERROR, rl->node->line, rl->node->column,
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
	    {"name", load_name},
	};
	struct rule_loader rl = {.rule = rule, .node = node};
	struct key_names names = {0};
	int r, result = 0;

	if (node->kind != YAML_MAPPING) {
		diag_add(l->d, DIAG_ERROR, node->line, node->column,
			 "a rule is a mapping of keys");
		return -EINVAL;
	}
	rule->line = node->line;
	rule->column = node->column;
	rule->collect = l->rs->collect;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		key_names_add(&names, rows[i].name);
	names_add_terms(&names);
	rl.unknown_keys = keys_check(l, NULL, node, &names);

	r = load_terms(l, &rl, &rule->terms, node);
	if (!r)
		r = collect_captures(l, &rl);
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
	return r ? r : result;
}
