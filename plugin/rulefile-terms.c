/* SPDX-License-Identifier: MIT */
/*
 * Keys that select. They come from rule_keys[] in rule.c: a new matcher needs
 * no line here unless its items are something new.
 *
 * Invariant: what is wrong with one item does not hide what is wrong with the
 * next.
 */
#include "rulefile-terms.h"

#include "rulefile-value.h"

#include <stdio.h>

enum {
	ITEMS_MAX = 1000,
	COMM_MAX = 15, /* TASK_COMM_LEN - 1; kernel threads have more */
};

void terms_add_names(struct key_names *names)
{
	for (size_t i = 0; i < RULE_KEY_N; i++)
		key_names_add(names, rule_keys[i].name);
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

static void warn_long_comm(struct loader *l, const struct yaml_node *rule,
			   const struct rule_terms *terms,
			   const struct yaml_node *value)
{
	const struct yaml_node *name = yaml_node_get(rule, "name");
	const struct matcher *m = last_item(terms, RULE_COMM);
	struct str text = {m->text, m->text_len};
	const char *fate = "matches no process; use exe or cmdline";
	char who[EXCERPT_MAX + 16];

	if (m->kind != MATCHER_EXACT || text.n <= COMM_MAX)
		return;
	if (l->n_kin && terms->kernel == KERNEL_EITHER)
		fate = "matches kernel threads alone; use exe or cmdline, or "
		       "say \"kernel: true\"";
	if (name && name->kind == YAML_SCALAR)
		snprintf(who, sizeof(who), "rule \"%.*s\"",
			 EXCERPT(name->text));
	else
		snprintf(who, sizeof(who), "rule of line %u", rule->line);
	diag_add(l->d, DIAG_WARNING, value->line, value->column,
		 "%s: comm \"%.*s\" is longer than %d bytes and %s", who,
		 EXCERPT(text), COMM_MAX, fate);
}

/* Kernel threads have longer names, and these terms may mean one. */
static bool may_be_kernel(const struct loader *l, const struct yaml_node *rule,
			  const struct rule_terms *terms)
{
	const struct yaml_node *kernel = yaml_node_get(rule, "kernel");
	bool yes;

	/* What the rule says is about the process, not about its kin. */
	if (l->n_kin)
		return terms->kernel == KERNEL_YES;
	return kernel && (!value_is_bool(kernel, &yes) || yes);
}

/* One item of a key that selects, checked as a value and not as a pattern. */
static int check_item(struct loader *l, enum rule_key k,
		      const struct yaml_node *key, const struct yaml_node *item,
		      struct str *ret)
{
	uint64_t number;

	if (rule_keys[k].item == ITEM_NUMBER) {
		*ret = item->text;
		return value_number(l->d, key, item, 0, UINT32_MAX, &number);
	}
	if (k == RULE_USER)
		return value_text(l->d, key, item, ", or use uid", ret);
	if (k == RULE_GROUP)
		return value_text(l->d, key, item, ", or use gid", ret);
	return value_text(l->d, key, item, k == RULE_COMM ? "" : NULL, ret);
}

static int load_pidfile(struct loader *l, struct rule_terms *terms,
			const struct yaml_node *key,
			const struct yaml_node *item, struct str path)
{
	int r;

	if (path.s[0] != '/' || memchr(path.s, '\0', path.n))
		return value_refuse(l->d, key, item, "an absolute path");
	if (memchr(path.s, '*', path.n))
		diag_add(
		    l->d, DIAG_WARNING, item->line, item->column,
		    "pidfile: \"%.*s\" is one path: \"*\" stands for itself; "
		    "list the files",
		    EXCERPT(path));
	r = rule_terms_add_pidfile(l->rs, terms, path);
	if (r != -E2BIG)
		return r;
	diag_add(l->d, DIAG_ERROR, item->line, item->column,
		 "more than %d pidfiles in all rules", RULE_PIDFILES_MAX);
	return -EINVAL;
}

static int load_item(struct loader *l, const struct yaml_node *rule,
		     struct rule_terms *terms, enum rule_key k,
		     const struct yaml_node *key, const struct yaml_node *item)
{
	struct str text;
	int r = check_item(l, k, key, item, &text);

	if (r)
		return r;
	if (k == RULE_PIDFILE)
		return load_pidfile(l, terms, key, item, text);
	r = patterns_count(l, item);
	if (!r)
		r = rule_terms_add(terms, k, text, l->d, item->line,
				   item->column);
	if (!r && k == RULE_COMM && !may_be_kernel(l, rule, terms))
		warn_long_comm(l, rule, terms, item);
	return r;
}

int items_check_count(struct loader *l, const struct yaml_node *list)
{
	const struct yaml_node *beyond;

	if (list->n_children <= ITEMS_MAX)
		return 0;
	beyond = list->child[ITEMS_MAX];
	diag_add(l->d, DIAG_ERROR, beyond->line, beyond->column,
		 "more than %d items", ITEMS_MAX);
	return -EINVAL;
}

int items_load(struct loader *l, const struct yaml_node *rule,
	       struct rule_terms *terms, enum rule_key k,
	       const struct yaml_node *key, const struct yaml_node *value)
{
	int result = 0;

	if (value->kind == YAML_SCALAR)
		return load_item(l, rule, terms, k, key, value);
	if (value->kind != YAML_SEQUENCE || value->n_children == 0)
		return value_refuse(l->d, key, value,
				    value->kind == YAML_SEQUENCE
					? "a text or a list with one item "
					  "or more"
					: "a text or a list of texts");
	result = items_check_count(l, value);
	if (result)
		return result;
	for (size_t i = 0; i < value->n_children; i++) {
		int r = load_item(l, rule, terms, k, key, value->child[i]);

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

static bool selects_nothing(const struct rule_terms *terms)
{
	return !terms->n_terms && !terms->any && terms->kernel == KERNEL_EITHER;
}

/* A mapping about something other than the process that the rule takes. */
static int load_mapping(struct loader *l, const struct yaml_node *rule,
			const struct yaml_node *key,
			const struct yaml_node *mapping,
			struct rule_terms *terms, bool has_not)
{
	struct key_names names = {0};
	int r, result;

	/* What the rule says of kernel threads has been said. */
	terms->kernel = KERNEL_EITHER;
	terms_add_names(&names);
	if (has_not)
		key_names_add(&names, "not");
	result = keys_check(l, key, mapping, &names);
	if (mapping->kind != YAML_MAPPING)
		return result;
	r = terms_load(l, rule, terms, mapping);
	if (r || result)
		return r ? r : result;
	if (!selects_nothing(terms))
		return 0;
	diag_add(l->d, DIAG_ERROR, mapping->line, mapping->column,
		 "\"%.*s\" has no key that selects processes, as comm, exe, "
		 "cmdline, user or unit",
		 EXCERPT(key->text));
	return -EINVAL;
}

/* One mapping below parent or ancestor; those within it come first. */
static int load_kin_item(struct loader *l, const struct yaml_node *rule,
			 struct rule_terms *terms, enum rule_key k,
			 const struct yaml_node *key,
			 const struct yaml_node *mapping)
{
	const struct yaml_node *not_key, *not_value;
	struct rule_kin kin = {0}, *added;
	int r;

	l->n_kin++;
	r = load_mapping(l, rule, key, mapping, &kin.terms, true);
	if (r != -ENOMEM && mapping->kind == YAML_MAPPING) {
		not_value = key_find(mapping, "not", &not_key);
		if (not_value) {
			int e = exceptions_load(l, rule, not_key, not_value,
						&kin.not, &kin.n_not);

			r = e ? e : r;
		}
	}
	l->n_kin--;
	/* Good or bad, it hangs on the rule set from now on. */
	added = ruleset_add_kin(l->rs);
	if (!added)
		return -ENOMEM;
	*added = kin;
	if (r)
		return r;
	if (l->rs->n_kin > RULE_KIN_MAX + 1)
		return -EINVAL; /* it was told */
	if (l->rs->n_kin > RULE_KIN_MAX) {
		diag_add(l->d, DIAG_ERROR, mapping->line, mapping->column,
			 "more than %d mappings below \"parent\" and "
			 "\"ancestor\" in all rules",
			 RULE_KIN_MAX);
		return -EINVAL;
	}
	return rule_terms_add_kin(terms, k, l->rs->n_kin - 1);
}

static int load_kin(struct loader *l, const struct yaml_node *rule,
		    struct rule_terms *terms, enum rule_key k,
		    const struct yaml_node *key, const struct yaml_node *value)
{
	int result = 0;

	if (value->kind != YAML_SEQUENCE)
		return load_kin_item(l, rule, terms, k, key, value);
	if (value->n_children == 0)
		return value_refuse(l->d, key, value,
				    "a mapping or a list with one or more");
	for (size_t i = 0; i < value->n_children; i++) {
		int r = load_kin_item(l, rule, terms, k, key, value->child[i]);

		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	return result;
}

int terms_load(struct loader *l, const struct yaml_node *rule,
	       struct rule_terms *terms, const struct yaml_node *mapping)
{
	int result = load_kernel(l, terms, mapping);
	int r = load_any(l, terms, mapping);

	if (r)
		result = r;
	for (unsigned k = 0; k < RULE_KEY_N; k++) {
		const struct yaml_node *key, *value;
		enum rule_item item = rule_keys[k].item;

		value = key_find(mapping, rule_keys[k].name, &key);
		if (!value || item == ITEM_SWITCH)
			continue;
		r = (item == ITEM_KIN ? load_kin : items_load)(
		    l, rule, terms, (enum rule_key)k, key, value);
		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	return result;
}

int exceptions_load(struct loader *l, const struct yaml_node *rule,
		    const struct yaml_node *key, const struct yaml_node *value,
		    struct rule_terms * * not, size_t *n_not)
{
	struct rule_terms *list;
	bool is_list = value->kind == YAML_SEQUENCE;
	size_t n = is_list ? value->n_children : 1;
	int result = 0;

	if (n == 0)
		return value_refuse(l->d, key, value,
				    "a mapping or a list with one or more");
	if (is_list)
		result = items_check_count(l, value);
	if (result)
		return result;
	list = calloc(n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	*not = list;
	for (size_t i = 0; i < n; i++) {
		int r = load_mapping(l, rule, key,
				     is_list ? value->child[i] : value,
				     &list[(*n_not)++], false);

		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	return result;
}

static int load_matcher(struct loader *l, const struct yaml_node *key,
			const struct yaml_node *item, struct matcher **list,
			size_t *n, size_t *cap)
{
	struct str text;
	char word[64];
	int r = value_text(l->d, key, item, "", &text);

	if (r)
		return r;
	if (array_reserve(list, cap, *n + 1, sizeof(**list)))
		return -ENOMEM;
	snprintf(word, sizeof(word), "%.*s", EXCERPT(key->text));
	r = matcher_init(&(*list)[*n], word, MATCHER_EXACT, text, l->d,
			 item->line, item->column);
	if (!r)
		++*n;
	return r;
}

int matchers_load(struct loader *l, const struct yaml_node *key,
		  const struct yaml_node *value, struct matcher **list,
		  size_t *n, size_t *cap)
{
	bool is_list = value->kind == YAML_SEQUENCE;
	int result = 0;

	if (value->kind == YAML_MAPPING)
		return value_refuse(l->d, key, value,
				    "a text or a list of texts");
	if (is_list)
		result = items_check_count(l, value);
	if (result)
		return result;
	for (size_t i = 0; i < (is_list ? value->n_children : 1); i++) {
		int r = load_matcher(l, key, is_list ? value->child[i] : value,
				     list, n, cap);

		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	return result;
}
