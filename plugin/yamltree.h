/* SPDX-License-Identifier: MIT */
/*
 * One YAML document as a tree in which every node knows its place. The only
 * user of libyaml. It is strict about YAML itself (duplicate keys, tags, more
 * than one document, depth, size, aliases) and knows nothing of rules.
 *
 * Invariant: a tree is whole or not there at all; each mistake is in the diag
 * with a line and a column.
 */
#pragma once

#include "base.h"
#include "diag.h"

enum {
	YAMLTREE_BYTES_MAX = 1024 * 1024,
	YAMLTREE_DEPTH_MAX = 16,
	YAMLTREE_NODES_MAX =
	    100 * 1000, /* aliases counted as what they stand for */
};

enum yaml_kind {
	YAML_SCALAR,
	YAML_SEQUENCE,
	YAML_MAPPING,
};

struct yaml_node {
	enum yaml_kind kind;
	unsigned line, column; /* 1-based */
	/* scalar */
	struct str text; /* terminated by a NUL beyond n; may hold NULs */
	bool plain;	 /* neither quoted nor a block scalar */
	/* sequence: items; mapping: key, value, key, value ... */
	struct yaml_node **child;
	size_t n_children;
};

struct yaml_tree;

/*
 * Parses one document. Returns 0; -EINVAL with at least one error in d; or
 * -ENOMEM. An empty document is an error.
 */
int yaml_tree_parse(struct str text, struct diag *d, struct yaml_tree **ret);
void yaml_tree_free(struct yaml_tree *t);
const struct yaml_node *yaml_tree_root(const struct yaml_tree *t);

/* The value of a key of a mapping, or NULL. */
const struct yaml_node *yaml_node_get(const struct yaml_node *mapping,
				      const char *key);

/* Of all texts in it and how they hang together. */
uint64_t yaml_node_hash(const struct yaml_node *node);

/*
 * Names what YAML 1.1 reads a plain scalar as ("a boolean", "null",
 * "a number"), or NULL if it is a text.
 */
const char *yaml_node_trap(const struct yaml_node *scalar);
