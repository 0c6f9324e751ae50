/* SPDX-License-Identifier: MIT */
/*
 * From libyaml's events to a tree. libyaml's own document API is not used: it
 * accepts duplicate keys and forgets how a scalar was quoted.
 *
 * An alias becomes a pointer to what it stands for, so a tree may be reached
 * by more ways than it has nodes. Every node therefore knows how large and
 * how deep it is with its aliases followed; the limits hold for those sizes,
 * and whoever walks the tree needs no limit of its own.
 *
 * Invariant: the collections in open[] are a path from the root downwards.
 */
#include "yamltree.h"

#include "yamltree-explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

enum {
	/* Looked up one by one, so there must not be many. */
	ANCHORS_MAX = 1000,
	/* Text with aliases followed; regexes are compiled from it. */
	TEXT_MAX = 4 * YAMLTREE_BYTES_MAX,
	EXCERPT_MAX = 60,
};

struct node {
	struct yaml_node pub; /* first: a pointer to it is one to the node */
	size_t cap;
	char *anchor;
	/* With aliases followed; while the node is open, counts before it. */
	size_t n_nodes, n_bytes;
	unsigned height; /* collections on the longest way down, itself too */
	bool open;
};

struct yaml_tree {
	struct node **node; /* all of them, to free them */
	size_t n_nodes, cap;
	struct node *root;
};

struct builder {
	yaml_parser_t parser;
	struct str text;
	struct diag *d;
	struct yaml_tree *tree;
	struct node *open[YAMLTREE_DEPTH_MAX];
	unsigned depth;
	struct node **anchored; /* in the order of the text */
	size_t n_anchored, cap_anchored;
	size_t n_nodes, n_bytes;
	size_t last_error; /* line of it, from 0; SIZE_MAX: none */
	bool had_document;
};

static void node_free(struct node *n)
{
	free((char *)n->pub.text.s);
	free(n->pub.child);
	free(n->anchor);
	free(n);
}

void yaml_tree_free(struct yaml_tree *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_nodes; i++)
		node_free(t->node[i]);
	free(t->node);
	free(t);
}

const struct yaml_node *yaml_tree_root(const struct yaml_tree *t)
{
	return &t->root->pub;
}

static uint64_t hash_node(uint64_t h, const struct yaml_node *node)
{
	size_t head[] = {node->kind, node->text.n, node->n_children};

	h = hash_more(h, (struct str){(const char *)head, sizeof(head)});
	h = hash_more(h, node->text);
	for (size_t i = 0; i < node->n_children; i++)
		h = hash_node(h, node->child[i]);
	return h;
}

uint64_t yaml_node_hash(const struct yaml_node *node)
{
	return hash_node(HASH_NOTHING, node);
}

const struct yaml_node *yaml_node_get(const struct yaml_node *mapping,
				      const char *key)
{
	for (size_t i = 0; i + 1 < mapping->n_children; i += 2)
		if (str_eq(mapping->child[i]->text, str_of(key)))
			return mapping->child[i + 1];
	return NULL;
}

_printf_(3, 4) static void build_error(struct builder *b, yaml_mark_t mark,
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

static int explain(struct builder *b)
{
	if (b->parser.error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	/* `*x y` is an unknown alias already: one message for one mistake. */
	if (b->parser.error == YAML_READER_ERROR ||
	    b->parser.problem_mark.line != b->last_error)
		yamltree_explain(&b->parser, b->text, b->d);
	return -EINVAL;
}

/* Counts what comes into the document, itself or through an alias. */
static int builder_count(struct builder *b, yaml_mark_t mark, size_t n_nodes,
			 size_t n_bytes)
{
	b->n_nodes += n_nodes;
	b->n_bytes += n_bytes;
	if (b->n_nodes > YAMLTREE_NODES_MAX) {
		build_error(b, mark,
			    "more than %d values, aliases counted as what they "
			    "stand for",
			    YAMLTREE_NODES_MAX);
		return -EINVAL;
	}
	if (b->n_bytes > TEXT_MAX) {
		build_error(b, mark,
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
		build_error(b, mark,
			    "quote a text with {{...}}, as in name: "
			    "\"{{.Comm}}\"");
	else
		build_error(b, mark,
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
		build_error(b, mark, "more than %d anchors", ANCHORS_MAX);
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

static int add_text(struct builder *b, struct str text, bool plain,
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

static int open_collection(struct builder *b, enum yaml_kind kind,
			   const yaml_char_t *anchor, yaml_mark_t mark)
{
	struct node *n;
	size_t n_nodes = b->n_nodes, n_bytes = b->n_bytes;
	int r = builder_count(b, mark, 1, 0);

	if (r)
		return r;
	if (b->depth == YAMLTREE_DEPTH_MAX) {
		build_error(b, mark, "nested deeper than %d",
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
		build_error(b, mark, "duplicate key \"%.*s\" (lines %u and %u)",
			    (int)MIN(key[i]->text.n, (size_t)EXCERPT_MAX),
			    key[i]->text.s, key[first]->line, key[i]->line);
	}
	return 0;
}

static int close_collection(struct builder *b)
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

static int add_alias(struct builder *b, const char *name, yaml_mark_t mark)
{
	struct node *n = find_anchor(b, name), *parent = builder_parent(b);
	int r;

	if (!n) {
		build_error(b, mark,
			    "unknown alias \"*%.*s\"; write a pattern that "
			    "begins with \"*\" as \"glob:*...\", in quotes",
			    EXCERPT_MAX, name);
		return add_text(b, STR(""), false, NULL, mark);
	}
	if (n->open) {
		build_error(b, mark, "alias \"*%.*s\" stands within itself",
			    EXCERPT_MAX, name);
		return -EINVAL;
	}
	/* A key has a place of its own: duplicates are told there. */
	if (wants_key(parent) && n->pub.kind == YAML_SCALAR)
		return add_text(b, n->pub.text, n->pub.plain, NULL, mark);

	r = builder_count(b, mark, n->n_nodes, n->n_bytes);
	if (r)
		return r;
	if (b->depth + n->height > YAMLTREE_DEPTH_MAX) {
		build_error(b, mark, "nested deeper than %d",
			    YAMLTREE_DEPTH_MAX);
		return -EINVAL;
	}
	if (parent)
		parent->height = MAX(parent->height, n->height + 1);
	return builder_attach(b, n, mark);
}

static void refuse_tag(struct builder *b, const yaml_char_t *tag,
		       yaml_mark_t mark)
{
	static const char yaml[] = "tag:yaml.org,2002:";
	const char *text = (const char *)tag;

	if (!tag)
		return;
	if (!strncmp(text, yaml, strlen(yaml)))
		build_error(b, mark,
			    "tags are not allowed: leave \"!!%.*s\" out, and "
			    "quote what must be a text",
			    EXCERPT_MAX, text + strlen(yaml));
	else
		build_error(b, mark,
			    "tags are not allowed; quote a text that begins "
			    "with \"!\"");
}

/* What looks like a blank or a quote, and is none to YAML. */
static void refuse_look_alike(struct builder *b, const yaml_event_t *e)
{
	struct str text = {(const char *)e->data.scalar.value,
			   e->data.scalar.length};

	if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return;
	if (str_begins(text, STR("\xc2\xa0")))
		build_error(b, e->start_mark,
			    "a no-break space (U+00A0) is no blank to YAML: "
			    "type the blanks of this line anew");
	if (str_begins(text, STR("\xe2\x80")) && text.n > 2 &&
	    (unsigned char)text.s[2] >= 0x98 &&
	    (unsigned char)text.s[2] <= 0x9f)
		build_error(b, e->start_mark,
			    "\"%.3s\" is no quote to YAML: write \" or '",
			    text.s);
}

/* `comm: &x` is nothing with an anchor; it was meant to be a text. */
static void refuse_empty_anchor(struct builder *b, const yaml_event_t *e)
{
	if (e->data.scalar.anchor && e->data.scalar.length == 0 &&
	    e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		build_error(b, e->start_mark,
			    "an anchor of nothing; quote a text that begins "
			    "with \"&\"");
}

static int add_document(struct builder *b, yaml_mark_t mark)
{
	if (b->had_document) {
		build_error(b, mark, "more than one document in the file");
		return -EINVAL;
	}
	b->had_document = true;
	return 0;
}

static int add_event(struct builder *b, const yaml_event_t *e)
{
	yaml_mark_t mark = e->start_mark;

	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		return add_document(b, mark);
	case YAML_ALIAS_EVENT:
		return add_alias(b, (const char *)e->data.alias.anchor, mark);
	case YAML_SCALAR_EVENT:
		refuse_tag(b, e->data.scalar.tag, mark);
		refuse_empty_anchor(b, e);
		refuse_look_alike(b, e);
		return add_text(b,
				(struct str){(const char *)e->data.scalar.value,
					     e->data.scalar.length},
				e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
				e->data.scalar.anchor, mark);
	case YAML_SEQUENCE_START_EVENT:
		refuse_tag(b, e->data.sequence_start.tag, mark);
		return open_collection(b, YAML_SEQUENCE,
				       e->data.sequence_start.anchor, mark);
	case YAML_MAPPING_START_EVENT:
		refuse_tag(b, e->data.mapping_start.tag, mark);
		return open_collection(b, YAML_MAPPING,
				       e->data.mapping_start.anchor, mark);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return close_collection(b);
	default:
		return 0;
	}
}

static int build(struct builder *b)
{
	bool end = false;

	while (!end) {
		yaml_event_t e;
		int r;

		if (!yaml_parser_parse(&b->parser, &e))
			return explain(b);
		end = e.type == YAML_STREAM_END_EVENT;
		r = add_event(b, &e);
		yaml_event_delete(&e);
		if (r)
			return r;
	}
	return 0;
}

static bool is_null(const struct node *n)
{
	const char *trap;

	if (!n)
		return true;
	trap = n->pub.kind == YAML_SCALAR ? yaml_node_trap(&n->pub) : NULL;
	return trap && !strcmp(trap, "null");
}

/* What can be said of a text before any of it is read as YAML. */
static int check_bytes(struct str text, struct diag *d)
{
	if (text.n > YAMLTREE_BYTES_MAX) {
		diag_add(d, DIAG_ERROR, 0, 0, "larger than 1 MiB");
		return -EINVAL;
	}
	if (str_begins(text, STR("\xff\xfe")) ||
	    str_begins(text, STR("\xfe\xff"))) {
		diag_add(d, DIAG_ERROR, 1, 1,
			 "the file is UTF-16; save it as UTF-8");
		return -EINVAL;
	}
	return 0;
}

int yaml_tree_parse(struct str text, struct diag *d, struct yaml_tree **ret)
{
	struct builder b = {.text = text, .d = d, .last_error = SIZE_MAX};
	size_t n_errors = d->n_errors;
	int r = check_bytes(text, d);

	if (r)
		return r;
	b.tree = calloc(1, sizeof(*b.tree));
	if (!b.tree)
		return -ENOMEM;
	if (!yaml_parser_initialize(&b.parser)) {
		yaml_tree_free(b.tree);
		return -ENOMEM;
	}
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text.s,
				     text.n);
	r = build(&b);
	yaml_parser_delete(&b.parser);
	free(b.anchored);

	if (!r && is_null(b.tree->root))
		diag_add(d, DIAG_ERROR, 1, 1,
			 "the file is empty: it has no rules");
	if (!r && d->n_errors > n_errors)
		r = -EINVAL;
	if (r)
		yaml_tree_free(b.tree);
	else
		*ret = b.tree;
	return r;
}
