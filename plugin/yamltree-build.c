/* SPDX-License-Identifier: MIT */
/*
 * How a tree grows, node by node, and no further than its limits. A mapping is
 * looked through for keys that are there twice when it ends.
 */
#include "yamltree-internal.h"

#include <stdarg.h>
#include <stdio.h>

enum {
	/* Looked up one by one, so there must not be many. */
	ANCHORS_MAX = 1000,
	/* Text with aliases followed; regexes are compiled from it. */
	TEXT_MAX = 4 * YAMLTREE_BYTES_MAX,
};

_printf_(3, 4) void yamltree_error(struct builder *b, yaml_mark_t mark,
				   const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	diag_add(b->d, DIAG_ERROR, (unsigned)mark.line + 1,
		 (unsigned)mark.column + 1, "%s", text);
	b->last_error = mark.line;
}

/* Counts what comes into the document, itself or through an alias. */
static int builder_count(struct builder *b, yaml_mark_t mark, size_t n_nodes,
			 size_t n_bytes)
{
	b->n_nodes += n_nodes;
	b->n_bytes += n_bytes;
	if (b->n_nodes > YAMLTREE_NODES_MAX) {
		yamltree_error(
		    b, mark,
		    "more than %d values, aliases counted as what they "
		    "stand for",
		    YAMLTREE_NODES_MAX);
		return -EINVAL;
	}
	if (b->n_bytes > TEXT_MAX) {
		yamltree_error(b, mark,
			       "more than %d bytes of text, aliases counted as "
			       "what they stand for",
			       TEXT_MAX);
		return -EINVAL;
	}
	return 0;
}

static bool wants_key(const struct node *parent)
{
	return parent && parent->pub.kind == YAML_MAPPING &&
	       parent->pub.n_children % 2 == 0;
}

static struct node *builder_parent(const struct builder *b)
{
	return b->depth ? b->open[b->depth - 1] : NULL;
}

/* `{{.Comm}}` without quotes is a mapping whose key is a mapping. */
static void refuse_key(struct builder *b, const struct node *parent,
		       const struct node *n, yaml_mark_t mark)
{
	const struct yaml_node *p = &parent->pub, *k = &n->pub;

	if (k->kind == YAML_MAPPING && p->n_children == 0 &&
	    p->line == k->line && p->column + 1 == k->column)
		yamltree_error(b, mark,
			       "quote a text with {{...}}, as in name: "
			       "\"{{.Comm}}\"");
	else
		yamltree_error(b, mark,
			       "a key must be a text; quote a text that begins "
			       "with \"{\" or \"[\"");
}

/* Hangs a node below the innermost open collection. */
static int builder_attach(struct builder *b, struct node *n, yaml_mark_t mark)
{
	struct node *parent = builder_parent(b);
	int r;

	if (!parent) {
		b->tree->root = n;
		return 0;
	}
	if (wants_key(parent) && n->pub.kind != YAML_SCALAR) {
		refuse_key(b, parent, n, mark);
		return -EINVAL;
	}
	r = array_reserve(&parent->pub.child, &parent->cap,
			  parent->pub.n_children + 1,
			  sizeof(parent->pub.child[0]));
	if (r)
		return r;
	parent->pub.child[parent->pub.n_children++] = &n->pub;
	return 0;
}

static int node_new(struct builder *b, enum yaml_kind kind, yaml_mark_t mark,
		    struct node **ret)
{
	struct yaml_tree *t = b->tree;
	struct node *n;
	int r = array_reserve(&t->node, &t->cap, t->n_nodes + 1,
			      sizeof(t->node[0]));

	if (r)
		return r;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->pub.kind = kind;
	n->pub.line = (unsigned)mark.line + 1;
	n->pub.column = (unsigned)mark.column + 1;
	n->n_nodes = 1;
	t->node[t->n_nodes++] = n;
	*ret = n;
	return 0;
}

static int node_set_anchor(struct builder *b, struct node *n,
			   const yaml_char_t *anchor, yaml_mark_t mark)
{
	int r;

	if (!anchor)
		return 0;
	if (b->n_anchored == ANCHORS_MAX) {
		yamltree_error(b, mark, "more than %d anchors", ANCHORS_MAX);
		return -EINVAL;
	}
	r = array_reserve(&b->anchored, &b->cap_anchored, b->n_anchored + 1,
			  sizeof(b->anchored[0]));
	if (r)
		return r;
	n->anchor = strdup((const char *)anchor);
	if (!n->anchor)
		return -ENOMEM;
	b->anchored[b->n_anchored++] = n;
	return 0;
}

int yamltree_add_text(struct builder *b, struct str text, bool plain,
		      const yaml_char_t *anchor, yaml_mark_t mark)
{
	struct node *n;
	char *copy;
	int r = builder_count(b, mark, 1, text.n);

	if (!r)
		r = node_new(b, YAML_SCALAR, mark, &n);
	if (r)
		return r;
	copy = malloc(text.n + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text.s, text.n);
	copy[text.n] = '\0';
	n->pub.text = (struct str){copy, text.n};
	n->pub.plain = plain;
	n->n_bytes = text.n;
	r = node_set_anchor(b, n, anchor, mark);
	return r ? r : builder_attach(b, n, mark);
}

int yamltree_open(struct builder *b, enum yaml_kind kind,
		  const yaml_char_t *anchor, yaml_mark_t mark)
{
	struct node *n;
	size_t n_nodes = b->n_nodes, n_bytes = b->n_bytes;
	int r = builder_count(b, mark, 1, 0);

	if (r)
		return r;
	if (b->depth == YAMLTREE_DEPTH_MAX) {
		yamltree_error(b, mark, "nested deeper than %d",
			       YAMLTREE_DEPTH_MAX);
		return -EINVAL;
	}
	r = node_new(b, kind, mark, &n);
	if (!r)
		r = node_set_anchor(b, n, anchor, mark);
	if (!r)
		r = builder_attach(b, n, mark);
	if (r)
		return r;
	n->n_nodes = n_nodes;
	n->n_bytes = n_bytes;
	n->height = 1;
	n->open = true;
	b->open[b->depth++] = n;
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct yaml_node *x = *(struct yaml_node *const *)a;
	const struct yaml_node *y = *(struct yaml_node *const *)b;
	int r = memcmp(x->text.s, y->text.s, MIN(x->text.n, y->text.n));

	if (r)
		return r;
	if (x->text.n != y->text.n)
		return x->text.n < y->text.n ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->column < y->column ? -1 : x->column > y->column;
}

/* Sorted, so that a file full of keys costs no square of their number. */
static int find_duplicates(struct builder *b, const struct yaml_node *mapping)
{
	size_t n = mapping->n_children / 2, first = 0;
	_cleanup_free_ struct yaml_node **key = calloc(n + 1, sizeof(*key));

	if (!key)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		key[i] = mapping->child[2 * i];
	qsort(key, n, sizeof(*key), compare_keys);
	for (size_t i = 1; i < n; i++) {
		yaml_mark_t mark = {0, key[i]->line - 1, key[i]->column - 1};

		if (!str_eq(key[first]->text, key[i]->text)) {
			first = i;
			continue;
		}
		yamltree_error(
		    b, mark, "duplicate key \"%.*s\" (lines %u and %u)",
		    (int)MIN(key[i]->text.n, (size_t)YAMLTREE_EXCERPT_MAX),
		    key[i]->text.s, key[first]->line, key[i]->line);
	}
	return 0;
}

int yamltree_close(struct builder *b)
{
	struct node *n = b->open[--b->depth];
	struct node *parent = builder_parent(b);

	n->open = false;
	n->n_nodes = b->n_nodes - n->n_nodes;
	n->n_bytes = b->n_bytes - n->n_bytes;
	if (parent)
		parent->height = MAX(parent->height, n->height + 1);
	return n->pub.kind == YAML_MAPPING ? find_duplicates(b, &n->pub) : 0;
}

static struct node *find_anchor(const struct builder *b, const char *name)
{
	for (size_t i = b->n_anchored; i-- > 0;)
		if (!strcmp(b->anchored[i]->anchor, name))
			return b->anchored[i];
	return NULL;
}

int yamltree_add_alias(struct builder *b, const char *name, yaml_mark_t mark)
{
	struct node *n = find_anchor(b, name), *parent = builder_parent(b);
	int r;

	if (!n) {
		yamltree_error(b, mark,
			       "unknown alias \"*%.*s\"; write a pattern that "
			       "begins with \"*\" as \"glob:*...\", in quotes",
			       YAMLTREE_EXCERPT_MAX, name);
		return yamltree_add_text(b, STR(""), false, NULL, mark);
	}
	if (n->open) {
		yamltree_error(b, mark, "alias \"*%.*s\" stands within itself",
			       YAMLTREE_EXCERPT_MAX, name);
		return -EINVAL;
	}
	/* A key has a place of its own: duplicates are told there. */
	if (wants_key(parent) && n->pub.kind == YAML_SCALAR)
		return yamltree_add_text(b, n->pub.text, n->pub.plain, NULL,
					 mark);

	r = builder_count(b, mark, n->n_nodes, n->n_bytes);
	if (r)
		return r;
	if (b->depth + n->height > YAMLTREE_DEPTH_MAX) {
		yamltree_error(b, mark, "nested deeper than %d",
			       YAMLTREE_DEPTH_MAX);
		return -EINVAL;
	}
	if (parent)
		parent->height = MAX(parent->height, n->height + 1);
	return builder_attach(b, n, mark);
}
