/* SPDX-License-Identifier: MIT */
/*
 * Items and mappings of a rule as they stand in its file, but for their order
 * and for what YAML knows beside.
 */
#include "explain-internal.h"

#include <inttypes.h>

enum {
	ITEM_SHOWN_MAX = 80, /* bytes of an item */
	DEPTH_MAX = 4,	     /* of mappings within each other */
};

const char *explain_key(const struct explain *x, enum rule_key key)
{
	if (x->rule && x->rule->exporter && key == RULE_CMDLINE_ALL)
		key = RULE_CMDLINE;
	return rule_keys[key].name;
}

/* Items of process-exporter were given a prefix when they were loaded. */
static struct str item_text(const struct explain *x, const struct matcher *m)
{
	struct str text = matcher_source(m);
	const char *colon = text.n ? memchr(text.s, ':', text.n) : NULL;

	if (x->rule && x->rule->exporter && colon)
		text = (struct str){colon + 1,
				    text.n - (size_t)(colon + 1 - text.s)};
	return text;
}

void explain_put_item(struct explain *x, const struct rule_term *t, size_t i)
{
	const struct matcher *m = &t->item[i];
	struct str text;

	switch (rule_keys[t->key].item) {
	case ITEM_NUMBER:
		textline_printf(&x->line, "%" PRIu32, m->number);
		return;
	case ITEM_PIDFILE:
		text = str_of(x->m->rules->pidfile[m->number].path);
		break;
	default:
		text = item_text(x, m);
		break;
	}
	textline_quote(&x->line, text, ITEM_SHOWN_MAX);
}

void explain_put_items(struct explain *x, const struct rule_term *t)
{
	for (size_t i = 0; i < MIN(t->n_items, (size_t)EXPLAIN_LIST_MAX); i++) {
		if (i > 0)
			textline_printf(&x->line, ", ");
		explain_put_item(x, t, i);
	}
	if (t->n_items > EXPLAIN_LIST_MAX)
		textline_printf(&x->line, " and %zu more",
				t->n_items - EXPLAIN_LIST_MAX);
}

void explain_put_kin(struct explain *x, const struct rule_term *t,
		     unsigned depth)
{
	const char *between = "";

	for (uint64_t bits = t->kin; bits; bits &= bits - 1) {
		const struct rule_kin *k =
		    &x->m->rules->kin[__builtin_ctzll(bits)];

		textline_printf(&x->line, "%s", between);
		explain_put_mapping(x, &k->terms, k->not, k->n_not, depth + 1);
		between = " or ";
	}
}

static void put_term(struct explain *x, const struct rule_term *t,
		     unsigned depth)
{
	bool is_list = !explain_is_kin(t) && t->n_items > 1;

	textline_printf(&x->line, "%s: %s", explain_key(x, t->key),
			is_list ? "[" : "");
	if (explain_is_kin(t))
		explain_put_kin(x, t, depth);
	else
		explain_put_items(x, t);
	textline_printf(&x->line, "%s", is_list ? "]" : "");
}

void explain_put_mapping(struct explain *x, const struct rule_terms *terms,
			 const struct rule_terms * not, size_t n_not,
			 unsigned depth)
{
	const char *between = "";

	if (depth > DEPTH_MAX) {
		textline_printf(&x->line, "{...}");
		return;
	}
	textline_printf(&x->line, "{");
	if (terms->kernel != KERNEL_EITHER) {
		textline_printf(&x->line, "kernel: %s",
				terms->kernel == KERNEL_YES ? "true" : "false");
		between = ", ";
	}
	if (terms->any) {
		textline_printf(&x->line, "%sany: true", between);
		between = ", ";
	}
	for (size_t i = 0; i < terms->n_terms; i++) {
		textline_printf(&x->line, "%s", between);
		put_term(x, &terms->term[i], depth);
		between = ", ";
	}
	for (size_t i = 0; i < n_not; i++) {
		textline_printf(&x->line, "%snot: ", between);
		explain_put_mapping(x, &not [i], NULL, 0, depth + 1);
		between = ", ";
	}
	textline_printf(&x->line, "}");
}
