/* SPDX-License-Identifier: MIT */
/*
 * From libyaml's events to a tree. libyaml's own document API is not used: it
 * accepts duplicate keys and forgets how a scalar was quoted. What YAML allows
 * and a rule file does not is refused here, as far as an event alone shows it.
 */
#include "yamltree-internal.h"

#include "yamltree-explain.h"

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

static void refuse_tag(struct builder *b, const yaml_char_t *tag,
		       yaml_mark_t mark)
{
	static const char yaml[] = "tag:yaml.org,2002:";
	const char *text = (const char *)tag;

	if (!tag)
		return;
	if (!strncmp(text, yaml, strlen(yaml)))
		yamltree_error(
		    b, mark,
		    "tags are not allowed: leave \"!!%.*s\" out, and "
		    "quote what must be a text",
		    YAMLTREE_EXCERPT_MAX, text + strlen(yaml));
	else
		yamltree_error(b, mark,
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
		yamltree_error(b, e->start_mark,
			       "a no-break space (U+00A0) is no blank to YAML: "
			       "type the blanks of this line anew");
	if (str_begins(text, STR("\xe2\x80")) && text.n > 2 &&
	    (unsigned char)text.s[2] >= 0x98 &&
	    (unsigned char)text.s[2] <= 0x9f)
		yamltree_error(b, e->start_mark,
			       "\"%.3s\" is no quote to YAML: write \" or '",
			       text.s);
}

/* `comm: &x` is nothing with an anchor; it was meant to be a text. */
static void refuse_empty_anchor(struct builder *b, const yaml_event_t *e)
{
	if (e->data.scalar.anchor && e->data.scalar.length == 0 &&
	    e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		yamltree_error(b, e->start_mark,
			       "an anchor of nothing; quote a text that begins "
			       "with \"&\"");
}

static int add_document(struct builder *b, yaml_mark_t mark)
{
	if (b->had_document) {
		yamltree_error(b, mark, "more than one document in the file");
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
		return yamltree_add_alias(b, (const char *)e->data.alias.anchor,
					  mark);
	case YAML_SCALAR_EVENT:
		refuse_tag(b, e->data.scalar.tag, mark);
		refuse_empty_anchor(b, e);
		refuse_look_alike(b, e);
		return yamltree_add_text(
		    b,
		    (struct str){(const char *)e->data.scalar.value,
				 e->data.scalar.length},
		    e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
		    e->data.scalar.anchor, mark);
	case YAML_SEQUENCE_START_EVENT:
		refuse_tag(b, e->data.sequence_start.tag, mark);
		return yamltree_open(b, YAML_SEQUENCE,
				     e->data.sequence_start.anchor, mark);
	case YAML_MAPPING_START_EVENT:
		refuse_tag(b, e->data.mapping_start.tag, mark);
		return yamltree_open(b, YAML_MAPPING,
				     e->data.mapping_start.anchor, mark);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return yamltree_close(b);
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
