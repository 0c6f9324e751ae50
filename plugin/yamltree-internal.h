/* SPDX-License-Identifier: MIT */
/*
 * What the parts of yamltree.h share: yamltree.c (the tree, and libyaml's
 * events) and yamltree-build.c (what each event adds to the tree, within its
 * limits). Nobody else includes it.
 *
 * An alias becomes a pointer to what it stands for, so a tree may be reached
 * by more ways than it has nodes. Every node therefore knows how large and
 * how deep it is with its aliases followed; the limits hold for those sizes,
 * and whoever walks the tree needs no limit of its own.
 *
 * Invariant: the collections in open[] are a path from the root downwards.
 */
#pragma once

#include "yamltree.h"

#include <yaml.h>

enum {
	/* Of what a message quotes. */
	YAMLTREE_EXCERPT_MAX = 60,
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

/* A mistake at that place. */
_printf_(3, 4) void yamltree_error(struct builder *b, yaml_mark_t mark,
				   const char *fmt, ...);

/*
 * Each adds to the innermost collection that is open. Returns 0, also if it
 * told a mistake behind which the rest can be read; -EINVAL with an error told;
 * or -ENOMEM.
 */
int yamltree_add_text(struct builder *b, struct str text, bool plain,
		      const yaml_char_t *anchor, yaml_mark_t mark);
int yamltree_add_alias(struct builder *b, const char *name, yaml_mark_t mark);
int yamltree_open(struct builder *b, enum yaml_kind kind,
		  const yaml_char_t *anchor, yaml_mark_t mark);

/* Ends the innermost one; 0 or -ENOMEM. */
int yamltree_close(struct builder *b);
