/* SPDX-License-Identifier: MIT */
/*
 * A file of process-exporter means here what it means there: an item is a
 * rule, all patterns of `cmdline` must match, `comm` and `exe` are exact, a
 * name may be missing, kernel threads are not kept apart, and children of a
 * process join it whoever it is.
 *
 * Source: the README of ncabatoff/process-exporter and its config package.
 */
#include "rulefile-exporter.h"

#include "name.h"
#include "rulefile-rule.h"
#include "rulefile-terms.h"
#include "rulefile-value.h"

enum {
	ITEMS_MAX = 10000,
};

struct item {
	struct rule *rule;
	const struct yaml_node *node;
	bool has_selector;
};

/* Go's YAML follows "<<" to further keys. */
static const struct yaml_node *find(const struct yaml_node *mapping,
				    const char *name,
				    const struct yaml_node **ret_key)
{
	const struct yaml_node *value = key_find(mapping, name, ret_key);
	const struct yaml_node *merged = yaml_node_get(mapping, "<<");

	if (value || !merged)
		return value;
	if (merged->kind == YAML_MAPPING)
		return find(merged, name, ret_key);
	for (size_t i = 0;
	     merged->kind == YAML_SEQUENCE && !value && i < merged->n_children;
	     i++)
		if (merged->child[i]->kind == YAML_MAPPING)
			value = find(merged->child[i], name, ret_key);
	return value;
}

static bool is_null(const struct yaml_node *value)
{
	const char *trap =
	    value->kind == YAML_SCALAR ? yaml_node_trap(value) : NULL;

	return (trap && strcmp(trap, "null") == 0) ||
	       (value->kind == YAML_SCALAR && value->plain &&
		value->text.n == 0);
}

/* A text as it stands, without prefixes of ours. */
static int add_text(struct loader *l, struct item *item, enum rule_key k,
		    const struct yaml_node *key, const struct yaml_node *value)
{
	_cleanup_free_ char *text = NULL;
	const char *prefix = k == RULE_CMDLINE_ALL ? "re:" : "exact:";
	size_t n = strlen(prefix);

	if (value->kind != YAML_SCALAR)
		return value_refuse(l->d, key, value, "a text");
	if (patterns_count(l, value))
		return -EINVAL;
	text = malloc(n + 2 * value->text.n + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, prefix, n);
	if (k == RULE_CMDLINE_ALL) {
		n += matcher_from_re2(value->text, text + n);
	} else {
		memcpy(text + n, value->text.s, value->text.n);
		n += value->text.n;
	}
	return rule_terms_add(&item->rule->terms, k, (struct str){text, n},
			      l->d, value->line, value->column);
}

/* Of two paths with one base name only the later counts there. */
static bool is_replaced(const struct yaml_node *list, size_t i)
{
	struct str base = subject_go_base(list->child[i]->text);

	for (size_t j = i + 1; j < list->n_children; j++)
		if (str_eq(base, subject_go_base(list->child[j]->text)))
			return true;
	return false;
}

static int load_list(struct loader *l, struct item *item, enum rule_key k)
{
	const struct yaml_node *key, *value;
	int result = 0;

	value = find(item->node, rule_keys[k].name, &key);
	if (k == RULE_CMDLINE_ALL)
		value = find(item->node, "cmdline", &key);
	if (!value || is_null(value))
		return 0;
	item->has_selector = true;
	if (value->kind == YAML_SCALAR)
		return add_text(l, item, k, key, value);
	if (value->kind != YAML_SEQUENCE)
		return value_refuse(l->d, key, value, "a list of texts");
	if (value->n_children == 0)
		return rule_terms_add_empty(&item->rule->terms, k);
	result = items_check_count(l, value);
	if (result)
		return result;
	for (size_t i = 0; i < value->n_children; i++) {
		int r;

		if (k == RULE_EXE && is_replaced(value, i)) {
			diag_add(l->d, DIAG_WARNING, value->child[i]->line,
				 value->child[i]->column,
				 "a later item has the same base name and "
				 "counts instead of this one");
			continue;
		}
		r = add_text(l, item, k, key, value->child[i]);
		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	return result;
}

static int load_name(struct loader *l, struct item *item)
{
	const struct yaml_node *key, *value;
	struct rule *rule = item->rule;
	struct str text = STR("");
	int r = rule_load_captures(l, item->node, rule);

	if (r)
		return r;
	value = find(item->node, "name", &key);
	if (value && value->kind != YAML_SCALAR)
		return value_refuse(l->d, key, value, "a text");
	if (value && !is_null(value))
		text = value->text;
	if (!value)
		value = item->node;
	return name_compile_exporter(text, rule->capture, rule->n_captures,
				     l->d, value->line, value->column,
				     &rule->name);
}

static int load_item(struct loader *l, const struct yaml_node *node)
{
	static const enum rule_key keys[] = {RULE_COMM, RULE_EXE,
					     RULE_CMDLINE_ALL};
	struct key_names names = {.v = {"name", "comm", "exe", "cmdline", "<<"},
				  .n = 5};
	struct item item = {.node = node};
	int r = keys_check(l, NULL, node, &names), result = 0;

	if (r)
		return r;
	item.rule = ruleset_add_rule(l->rs);
	if (!item.rule)
		return -ENOMEM;
	item.rule->exporter = true;
	item.rule->line = node->line;
	item.rule->column = node->column;
	item.rule->collect = l->rs->collect;
	item.rule->terms.kernel = KERNEL_EITHER;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		r = load_list(l, &item, keys[i]);
		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	if (!item.has_selector) {
		diag_add(l->d, DIAG_ERROR, node->line, node->column,
			 "the item needs \"comm\", \"exe\" or \"cmdline\"");
		return -EINVAL;
	}
	if (result)
		return result;
	r = load_name(l, &item);
	return r ? r : rule_set_overflow(l, item.rule);
}

int process_names_load(struct loader *l, void *into,
		       const struct yaml_node *key,
		       const struct yaml_node *value)
{
	struct ruleset *rs = into;
	struct rule_view *view = &rs->view[0];
	int result = 0;

	l->is_exporter = l->has_app = true;
	if (is_null(value))
		return 0;
	if (value->kind != YAML_SEQUENCE || value->n_children > ITEMS_MAX)
		return value_refuse(l->d, key, value,
				    "a list of up to 10000 items");
	view->first = rs->n_rules;
	for (size_t i = 0; i < value->n_children; i++) {
		int r = load_item(l, value->child[i]);

		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	view->n_rules = rs->n_rules - view->first;
	return result;
}
