/* SPDX-License-Identifier: MIT */
/* Inside rulefile: the loading of one rule. */
#pragma once

#include "base.h"
#include "rule.h"
#include "rulefile-keys.h"
#include "yamltree.h"

/* A text for a name template; plain words that YAML reads otherwise are not. */
int name_text(struct loader *l, const struct yaml_node *key,
	      const struct yaml_node *value, struct str *ret);

/* One item of `rules` into a zeroed rule. */
int rule_load(struct loader *l, const struct yaml_node *node,
	      struct rule *rule);
