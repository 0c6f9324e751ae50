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
#include "rulefile-where.h"
#include "suggest.h"

#include <stdio.h>

enum {
	PATTERNS_MAX = 20000,
};

int patterns_count(struct loader *l, const struct yaml_node *place)
{
	if (++l->n_patterns == PATTERNS_MAX + 1)
		diag_add(l->d, DIAG_ERROR, place->line, place->column,
			 "more than %d patterns in all rules", PATTERNS_MAX);
	return l->n_patterns > PATTERNS_MAX ? -EINVAL : 0;
}

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

/* `comm, exe and cmdline` */
static void list_names(const struct key_names *names, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < names->n && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s",
				      i == 0		  ? ""
				      : i + 1 == names->n ? " and "
							  : ", ",
				      names->v[i]);
}

/* With what lets the user find the right one, or the right place. */
static void tell_unknown(struct loader *l, const struct yaml_node *key,
			 const struct key_names *names)
{
	const char *where = where_key_belongs(key->text);
	const char *closest = suggest_closest(key->text, names->v, names->n);
	enum diag_level level = l->lenient ? DIAG_WARNING : DIAG_ERROR;
	/* A test says otherwise what a rule asks for. */
	bool is_test = key_is_known(names, STR("start_time"));
	char known[600], hint[700];

	if (closest) {
		snprintf(hint, sizeof(hint), " (did you mean \"%s\"?)",
			 closest);
	} else {
		list_names(names, known, sizeof(known));
		snprintf(hint, sizeof(hint), "; known here: %s", known);
	}
	if (memmem(key->text.s, key->text.n, "\xc2\xa0", 2))
		diag_add(l->d, level, key->line, key->column,
			 "key \"%.*s\" has a no-break space (U+00A0) in it, "
			 "which is no blank to YAML: type the blanks anew",
			 EXCERPT(key->text));
	else if (str_eq(key->text, STR("<<")))
		diag_add(l->d, level, key->line, key->column,
			 "\"<<\" does not merge here: write the keys out, or "
			 "use an alias for a whole value, as \"comm: *list\"");
	else if (where)
		diag_add(l->d, level, key->line, key->column,
			 "\"%.*s\" does not belong here, but %s%s",
			 EXCERPT(key->text), where,
			 closest || is_test ? hint : "");
	else
		diag_add(l->d, level, key->line, key->column,
			 "unknown key \"%.*s\"%s", EXCERPT(key->text), hint);
}

int keys_check(struct loader *l, const struct yaml_node *key,
	       const struct yaml_node *mapping, const struct key_names *names)
{
	char want[64];
	int r = 0;

	if (mapping->kind != YAML_MAPPING) {
		snprintf(want, sizeof(want), "a mapping, as {%s: ...}",
			 names->v[0]);
		return value_refuse(l->d, key, mapping, want);
	}
	for (size_t i = 0; i < mapping->n_children; i += 2) {
		const struct yaml_node *k = mapping->child[i];

		if (key_is_known(names, k->text))
			continue;
		tell_unknown(l, k, names);
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

static int load_every(struct loader *l, void *into, const struct yaml_node *key,
		      const struct yaml_node *value)
{
	static const struct value_range range = {
	    NSEC_PER_SEC,
	    24 * 3600 * NSEC_PER_SEC,
	    "a duration from 1s to 24h",
	};
	const struct collect_into *c = into;

	return value_duration(l->d, key, value, &range, &c->pss->every_ns);
}

static int load_max_age(struct loader *l, void *into,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	static const struct value_range range = {
	    NSEC_PER_SEC,
	    24 * 3600 * NSEC_PER_SEC,
	    "a duration from 1s to 24h",
	};
	const struct collect_into *c = into;

	return value_duration(l->d, key, value, &range, &c->pss->max_age_ns);
}

static int load_max_rss(struct loader *l, void *into,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	static const struct value_range range = {
	    0,
	    UINT64_C(1) << 50,
	    "a size up to 1048576GiB",
	};
	const struct collect_into *c = into;

	return value_size(l->d, key, value, &range, &c->pss->max_rss);
}

static int load_budget(struct loader *l, void *into,
		       const struct yaml_node *key,
		       const struct yaml_node *value)
{
	const struct collect_into *c = into;
	double percent;
	int r;

	if (!c->pss_budget_ppm) {
		diag_add(l->d, DIAG_ERROR, key->line, key->column,
			 "\"budget\" is one for all rules: it stands in "
			 "\"defaults\"");
		return -EINVAL;
	}
	r = value_percent(l->d, key, value, &percent);
	if (!r && percent > 100)
		return value_refuse(l->d, key, value,
				    "percent of one CPU, up to 100%");
	if (!r)
		*c->pss_budget_ppm = (uint32_t)(percent * 1e4);
	return r;
}

/* A switch, or what it takes; that switches on. */
static int load_pss(struct loader *l, const struct collect_into *into,
		    const struct yaml_node *key, const struct yaml_node *value,
		    bool *ret_on)
{
	static const struct key_row rows[] = {
	    {"every", load_every},
	    {"max_age", load_max_age},
	    {"max_rss", load_max_rss},
	    {"budget", load_budget},
	};
	struct collect_into c = *into;

	if (value->kind == YAML_MAPPING) {
		*ret_on = true;
		return mapping_load(l, &c, key, value, rows, ARRAY_SIZE(rows));
	}
	if (value_is_bool(value, ret_on))
		return 0;
	return value_refuse(l->d, key, value,
			    "on, off or a mapping such as {every: 60s}");
}

/* "auto" and true switch on; true says that there is one. */
static int load_gpu(struct loader *l, const struct yaml_node *key,
		    const struct yaml_node *value, bool *ret_on)
{
	if (value->kind == YAML_SCALAR && str_eq(value->text, STR("auto"))) {
		*ret_on = true;
		return 0;
	}
	if (!value_is_bool(value, ret_on))
		return value_refuse(l->d, key, value, "true, false or auto");
	l->rs->gpu_is_expected |= *ret_on;
	return 0;
}

int collect_load(struct loader *l, const struct collect_into *into,
		 const struct yaml_node *key, const struct yaml_node *value)
{
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
		int e;

		v = key_find(value, collect_defs[i].name, &k);
		if (!v)
			continue;
		e = i == COLLECT_PSS   ? load_pss(l, into, k, v, &on)
		    : i == COLLECT_GPU ? load_gpu(l, k, v, &on)
				       : value_bool(l->d, k, v, &on);
		if (e)
			r = e;
		else if (on)
			*into->keys |= (collect_mask)1 << i;
		else
			*into->keys &= ~((collect_mask)1 << i);
	}
	return r;
}
