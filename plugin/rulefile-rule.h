/* SPDX-License-Identifier: MIT */
/* Inside rulefile: the loading of one rule. */
#pragma once

#include "base.h"
#include "rule.h"
#include "rulefile-keys.h"
#include "yamltree.h"

enum {
	RULE_MAX_GROUPS = 200, /* distinct names, unless a rule says so */
};

/* A text for a name template; plain words that YAML reads otherwise are not. */
int name_text(struct loader *l, const struct yaml_node *key,
	      const struct yaml_node *value, struct str *ret);

/* Compiles a name; in views other than app it gets the view's in front. */
int name_load(struct loader *l, struct str text, char *const *captures,
	      unsigned n_captures, const struct yaml_node *place,
	      struct name **ret);

/* Learns what the patterns of a rule capture; `place` is told if too much. */
int rule_load_captures(struct loader *l, const struct yaml_node *place,
		       struct rule *rule);

/* How many generations of children join. */
int children_load(struct loader *l, const struct yaml_node *key,
		  const struct yaml_node *value, uint8_t *ret);

/* What a finished rule does with names that are too many. */
int rule_set_overflow(struct loader *l, struct rule *rule);

/* One item of `rules` into a zeroed rule. */
int rule_load(struct loader *l, const struct yaml_node *node,
	      struct rule *rule);
