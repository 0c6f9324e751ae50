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
};

static int load_list(struct loader *l, struct item *item, enum rule_key k,
		     const struct yaml_node *key, const struct yaml_node *value)
{
	return items_load(l, item->node, &item->rule->terms, k, key, value);
}

static int load_comm(struct loader *l, void *into, const struct yaml_node *key,
		     const struct yaml_node *value)
{
	return load_list(l, into, RULE_COMM, key, value);
}

static int load_exe(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value)
{
	return load_list(l, into, RULE_EXE, key, value);
}

static int load_cmdline(struct loader *l, void *into,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	return load_list(l, into, RULE_CMDLINE_ALL, key, value);
}

static int load_name(struct loader *l, struct item *item)
{
	const struct yaml_node *key, *value;
	struct rule *rule = item->rule;
	struct str text = STR("{{.ExeBase}}");
	int r = rule_collect_captures(l->rs, rule);

	if (r)
		return r;
	value = key_find(item->node, "name", &key);
	if (value)
		r = name_text(l, key, value, &text);
	if (r)
		return r;
	return name_load(l, text, rule->capture, rule->n_captures,
			 value ? value : item->node, &rule->name);
}

static int load_item(struct loader *l, const struct yaml_node *node)
{
	static const struct key_row rows[] = {
	    {"comm", load_comm},
	    {"exe", load_exe},
	    {"cmdline", load_cmdline},
	};
	struct key_names names = {.v = {"name"}, .n = 1};
	struct item item = {.node = node};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		key_names_add(&names, rows[i].name);
	r = keys_check(l, NULL, node, &names);
	if (r)
		return r;
	item.rule = ruleset_add_rule(l->rs);
	if (!item.rule)
		return -ENOMEM;
	item.rule->line = node->line;
	item.rule->column = node->column;
	item.rule->collect = l->rs->collect;
	item.rule->terms.kernel = KERNEL_EITHER;
	r = keys_load(l, &item, node, rows, ARRAY_SIZE(rows));
	if (r)
		return r;
	/* One without any selector takes whatever comes. */
	item.rule->terms.any = item.rule->terms.n_terms == 0;
	r = load_name(l, &item);
	return r ? r : rule_set_overflow(item.rule);
}

int process_names_load(struct loader *l, void *into,
		       const struct yaml_node *key,
		       const struct yaml_node *value)
{
	struct ruleset *rs = into;
	struct rule_view *view = &rs->view[0];
	int result = 0;

	l->is_exporter = l->has_app = true;
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
