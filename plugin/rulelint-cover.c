/* SPDX-License-Identifier: MIT */
/*
 * Rules that nothing can reach. A mapping covers another if what the other
 * takes, it takes too: each of its keys must be implied by one of the other,
 * and each of its exceptions by an exception of the other.
 *
 * "wide" is always who should cover, "narrow" who should be covered.
 */
#include "rulelint-internal.h"

#include <stdio.h>

enum {
	MATCH_STEPS = 32, /* what PCRE2 takes for a short text */
	PAIR_STEPS = 4,	  /* to look at two rules that are not in the cache */
	LINES_SHOWN = 4,
};

/* A mapping, or only those of its processes that meet one item. */
struct narrow {
	const struct lint_cond *cond;
	const struct rule_term *term; /* NULL: all of them */
	size_t item;
};

/* One key with its items. */
struct side {
	const struct rule_term *term;
	const struct shape *shape;
	size_t first, end; /* of the items */
};

static bool is_same_pattern(const struct matcher *a, const struct matcher *b)
{
	return a->kind == b->kind && a->ignore_case == b->ignore_case &&
	       str_eq((struct str){a->text, a->text_len},
		      (struct str){b->text, b->text_len});
}

static bool matches(struct lint *l, const struct matcher *m, struct str text)
{
	if (!lint_spend(l, MATCH_STEPS + text.n * text.n / 64))
		return false;
	return matcher_match(m, text, l->rs->scratch) == MATCHER_YES;
}

static bool text_covers(struct lint *l, const struct matcher *wide,
			const struct shape *wide_shape, struct str text)
{
	uint16_t token[MATCHER_PATTERN_MAX];
	struct shape narrow = {.token = token, .n = text.n};

	for (size_t i = 0; i < text.n; i++)
		token[i] = (unsigned char)text.s[i];
	return shape_covers(wide_shape, &narrow) &&
	       (wide_shape->exact || matches(l, wide, text));
}

/*
 * An item of `exe` with a slash is compared with the whole argument, others
 * with the base name, which is plain to see unless there is a blank.
 */
static bool base_covers(struct lint *l, const struct matcher *wide,
			const struct shape *wide_shape,
			const struct matcher *narrow)
{
	struct str text = {narrow->text, narrow->text_len};
	const char *slash;

	if (narrow->kind != MATCHER_EXACT || wide->has_slash ||
	    memchr(text.s, ' ', text.n))
		return false;
	slash = memrchr(text.s, '/', text.n);
	text.n -= (size_t)(slash + 1 - text.s);
	text.s = slash + 1;
	return text.n && text_covers(l, wide, wide_shape, text);
}

static bool item_covers(struct lint *l, const struct side *wide, size_t i,
			const struct side *narrow, size_t j)
{
	const struct matcher *w = &wide->term->item[i];
	const struct matcher *n = &narrow->term->item[j];
	const struct shape *ws = &wide->shape[i], *ns = &narrow->shape[j];

	if (w->kind == MATCHER_NUMBER)
		return w->number == n->number;
	if (!lint_spend(l, 1 + ws->n * ns->n / 1024))
		return false;
	if (wide->term->key == RULE_EXE && w->has_slash != n->has_slash)
		return base_covers(l, w, ws, n);
	if (!shape_covers(ws, ns))
		return false;
	if (ws->exact || is_same_pattern(w, n))
		return true;
	return n->kind == MATCHER_EXACT &&
	       matches(l, w, (struct str){n->text, n->text_len});
}

/* Is this item of wide, or one of all, implied by that one of narrow? */
static bool covers_item(struct lint *l, const struct side *wide, size_t first,
			size_t end, const struct side *narrow, size_t j)
{
	for (size_t i = first; i < end; i++)
		if (item_covers(l, wide, i, narrow, j))
			return true;
	return false;
}

/* Are these items of wide, one of which must match, implied by narrow? */
static bool items_cover(struct lint *l, const struct side *wide, size_t first,
			size_t end, const struct side *narrow)
{
	bool all = rule_keys[narrow->term->key].all;

	for (size_t j = narrow->first; j < narrow->end; j++)
		if (covers_item(l, wide, first, end, narrow, j) == all)
			return all;
	return !all;
}

static bool mapping_covers(struct lint *l, const struct lint_mapping *wide,
			   const struct lint_mapping *narrow,
			   const struct narrow *part);

/* Whoever has one trait of narrow must have one of wide. */
static bool kin_covers(struct lint *l, uint64_t wide, uint64_t narrow)
{
	for (; narrow; narrow &= narrow - 1) {
		const struct lint_mapping *n = &l->kin[__builtin_ctzll(narrow)];
		struct narrow all = {.cond = n->own};
		uint64_t left = wide;

		while (left && !mapping_covers(
				   l, &l->kin[__builtin_ctzll(left)], n, &all))
			left &= left - 1;
		if (!left)
			return false;
	}
	return true;
}

static bool term_covers(struct lint *l, const struct side *wide,
			const struct side *narrow)
{
	if (rule_keys[wide->term->key].item == ITEM_KIN)
		return kin_covers(l, wide->term->kin, narrow->term->kin);
	if (!rule_keys[wide->term->key].all)
		return items_cover(l, wide, wide->first, wide->end, narrow);
	for (size_t i = wide->first; i < wide->end; i++)
		if (!items_cover(l, wide, i, i + 1, narrow))
			return false;
	return true;
}

/* Does a term of narrow imply that one? */
static bool cond_implies(struct lint *l, const struct side *wide,
			 const struct narrow *narrow)
{
	const struct rule_terms *terms = narrow->cond->terms;
	const struct shape *shape = narrow->cond->shape;

	for (size_t i = 0; i < terms->n_terms; i++) {
		const struct rule_term *t = &terms->term[i];
		struct side side = {t, shape, 0, t->n_items};

		if (t == narrow->term) {
			side.first = narrow->item;
			side.end = narrow->item + 1;
		}
		if (lint_gives(t->key) & lint_wants(wide->term->key) &&
		    term_covers(l, wide, &side))
			return true;
		shape += t->n_items;
	}
	return false;
}

static bool cond_covers(struct lint *l, const struct lint_cond *wide,
			const struct narrow *narrow)
{
	const struct rule_terms *terms = wide->terms;
	const struct shape *shape = wide->shape;

	if (wide->wants & ~narrow->cond->gives || !lint_spend(l, PAIR_STEPS))
		return false;
	if (terms->kernel != KERNEL_EITHER &&
	    terms->kernel != narrow->cond->terms->kernel)
		return false;
	if (!terms->n_terms && !terms->any && terms->kernel == KERNEL_EITHER)
		return false;
	for (size_t i = 0; i < terms->n_terms; i++) {
		const struct rule_term *t = &terms->term[i];
		struct side side = {t, shape, 0, t->n_items};

		if (!cond_implies(l, &side, narrow))
			return false;
		shape += t->n_items;
	}
	return true;
}

static bool is_excepted(struct lint *l, const struct lint_cond *except,
			const struct lint_mapping *narrow)
{
	struct narrow all = {.cond = except};

	for (size_t i = 1; i <= narrow->n_not; i++)
		if (cond_covers(l, &narrow->own[i], &all))
			return true;
	return false;
}

static bool mapping_covers(struct lint *l, const struct lint_mapping *wide,
			   const struct lint_mapping *narrow,
			   const struct narrow *part)
{
	if (!cond_covers(l, wide->own, part))
		return false;
	for (size_t i = 1; i <= wide->n_not; i++)
		if (!is_excepted(l, &wide->own[i], narrow))
			return false;
	return true;
}

/* The first rule from `first` on that covers rule i; i if none before it. */
static size_t find_cover(struct lint *l, size_t first, size_t i,
			 const struct narrow *part)
{
	size_t j = first;

	while (j < i && l->steps > 0 &&
	       !mapping_covers(l, &l->rule[j], &l->rule[i], part))
		j++;
	return l->steps > 0 ? j : i;
}

/* The first list of which one item has to match; NULL if there is none. */
static const struct rule_term *first_list(const struct rule_terms *terms)
{
	for (size_t i = 0; i < terms->n_terms; i++)
		if (terms->term[i].n_items > 1 &&
		    !rule_keys[terms->term[i].key].all)
			return &terms->term[i];
	return NULL;
}

/* Each item is covered, by whichever rule: lists the lines of these. */
static bool list_covers(struct lint *l, size_t first, size_t i,
			struct narrow *part, char *buf, size_t size)
{
	unsigned line[LINES_SHOWN], n = 0;
	size_t len = 0;

	for (part->item = 0; part->item < part->term->n_items; part->item++) {
		size_t j = find_cover(l, first, i, part);
		unsigned k = 0, known = MIN(n, (unsigned)LINES_SHOWN);

		if (j == i)
			return false;
		while (k < known && line[k] != l->rs->rule[j].line)
			k++;
		if (k == known && n++ < LINES_SHOWN)
			line[k] = l->rs->rule[j].line;
	}
	for (unsigned k = 0; k < MIN(n, (unsigned)LINES_SHOWN); k++)
		len += (size_t)snprintf(buf + len, size - len, "%s%u",
					k ? ", " : "", line[k]);
	snprintf(buf + len, size - len, "%s", n > LINES_SHOWN ? ", ..." : "");
	return true;
}

static void check_rule(struct lint *l, size_t first, size_t i)
{
	const struct rule *rule = &l->rs->rule[i];
	struct narrow part = {
	    .cond = l->rule[i].own,
	    .term = first_list(&rule->terms),
	};
	struct narrow all = {.cond = l->rule[i].own};
	char lines[64];
	size_t j = find_cover(l, first, i, &part);

	/* What does not cover one item does not cover all of them. */
	if (j == i)
		return;
	if (part.term)
		j = find_cover(l, j, i, &all);
	if (j < i)
		diag_add(l->d, DIAG_WARNING, rule->line, rule->column,
			 "the rule takes nothing: the rule of line %u takes "
			 "all that it could; put it above that one, or remove "
			 "it",
			 l->rs->rule[j].line);
	else if (list_covers(l, first, i, &part, lines, sizeof(lines)))
		diag_add(l->d, DIAG_WARNING, rule->line, rule->column,
			 "the rule takes nothing: the rules of lines %s take "
			 "all that it could; put it above those, or remove it",
			 lines);
}

void lint_unreachable(struct lint *l)
{
	for (size_t v = 0; v < l->rs->n_views; v++) {
		const struct rule_view *view = &l->rs->view[v];

		for (size_t i = 0; i < view->n_rules && l->steps > 0; i++)
			check_rule(l, view->first, view->first + i);
	}
}
