/* SPDX-License-Identifier: MIT */
/* Inside rulefile: views, and what a view has of its own. */
#pragma once

#include "base.h"
#include "rule.h"
#include "rulefile-keys.h"
#include "yamltree.h"

/* The list of rules of a view; `into` is the struct rule_view. */
int view_load_rules(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value);

/* What no rule of it takes. */
int view_load_other(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value);

/* The mapping `views`; sets l->has_app if "app" is among them. */
int views_load(struct loader *l, void *into, const struct yaml_node *key,
	       const struct yaml_node *value);

/* What only the whole file shows: names of one view that look like another's.
 */
int views_check(struct loader *l, const struct yaml_node *root);
