/* SPDX-License-Identifier: MIT */
/*
 * Tables of keys. A key that is in no table is told at its place, with the
 * one that it was probably meant to be.
 *
 * It knows no key but those under `collect`, which are the rows of
 * collect_defs[] and stand in rules and in defaults.
 * Invariant: rows are loaded in the order of their table.
 */
#include "rulefile-keys.h"

#include "rulefile-value.h"
#include "suggest.h"

void key_names_add(struct key_names *names, const char *name)
{
	if (names->n < KEYS_MAX)
		names->v[names->n++] = name;
}

static bool key_is_known(const struct key_names *names, struct str key)
{
	for (size_t i = 0; i < names->n; i++)
		if (str_eq(key, str_of(names->v[i])))
			return true;
	return false;
}

const struct yaml_node *key_find(const struct yaml_node *mapping,
				 const char *name,
				 const struct yaml_node **ret_key)
{
	for (size_t i = 0; i + 1 < mapping->n_children; i += 2) {
		if (!str_eq(mapping->child[i]->text, str_of(name)))
			continue;
		if (ret_key)
			*ret_key = mapping->child[i];
		return mapping->child[i + 1];
	}
	return NULL;
}

int keys_check(struct loader *l, const struct yaml_node *key,
	       const struct yaml_node *mapping, const struct key_names *names)
{
	int r = 0;

	if (mapping->kind != YAML_MAPPING)
		return value_refuse(l->d, key, mapping, "a mapping");
	for (size_t i = 0; i < mapping->n_children; i += 2) {
		const struct yaml_node *k = mapping->child[i];
		const char *closest;

		if (key_is_known(names, k->text))
			continue;
		closest = suggest_closest(k->text, names->v, names->n);
		diag_add(l->d, l->lenient ? DIAG_WARNING : DIAG_ERROR, k->line,
			 k->column, "unknown key \"%.*s\"%s%s%s",
			 EXCERPT(k->text), closest ? " (did you mean \"" : "",
			 closest ? closest : "", closest ? "\"?)" : "");
		if (!l->lenient)
			r = -EINVAL;
	}
	return r;
}

int keys_load(struct loader *l, void *into, const struct yaml_node *mapping,
	      const struct key_row *rows, size_t n_rows)
{
	int result = 0;

	for (size_t i = 0; i < n_rows; i++) {
		const struct yaml_node *key, *value;
		int r;

		value = key_find(mapping, rows[i].name, &key);
		if (!value)
			continue;
		r = rows[i].load(l, into, key, value);
		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	return result;
}

int mapping_load(struct loader *l, void *into, const struct yaml_node *key,
		 const struct yaml_node *mapping, const struct key_row *rows,
		 size_t n_rows)
{
	struct key_names names = {0};
	int r, result;

	for (size_t i = 0; i < n_rows; i++)
		key_names_add(&names, rows[i].name);
	result = keys_check(l, key, mapping, &names);
	if (mapping->kind != YAML_MAPPING)
		return result;
	r = keys_load(l, into, mapping, rows, n_rows);
	return r ? r : result;
}

int collect_load(struct loader *l, void *into, const struct yaml_node *key,
		 const struct yaml_node *value)
{
	collect_mask *mask = into;
	struct key_names names = {0};
	int r;

	for (size_t i = 0; i < COLLECT_N; i++)
		key_names_add(&names, collect_defs[i].name);
	r = keys_check(l, key, value, &names);
	if (value->kind != YAML_MAPPING)
		return r;
	for (size_t i = 0; i < COLLECT_N; i++) {
		const struct yaml_node *k, *v;
		bool on;

		v = key_find(value, collect_defs[i].name, &k);
		if (!v)
			continue;
		if (value_bool(l->d, k, v, &on))
			r = -EINVAL;
		else if (on)
			*mask |= (collect_mask)1 << i;
		else
			*mask &= ~((collect_mask)1 << i);
	}
	return r;
}
