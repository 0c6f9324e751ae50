/* SPDX-License-Identifier: MIT */
/*
 * Inside rulefile: the keys that select processes, wherever they stand: in a
 * rule, below `not`, below `parent` and `ancestor`.
 */
#pragma once

#include "base.h"
#include "rule.h"
#include "rulefile-keys.h"
#include "yamltree.h"

/* Adds the names of all these keys. */
void terms_add_names(struct key_names *names);

/*
 * Loads what is there of these keys into empty terms. `rule` is the mapping of
 * the rule that they belong to, for messages.
 */
int terms_load(struct loader *l, const struct yaml_node *rule,
	       struct rule_terms *terms, const struct yaml_node *mapping);

/* A mapping or a list of mappings below `not`. */
int exceptions_load(struct loader *l, const struct yaml_node *rule,
		    const struct yaml_node *key, const struct yaml_node *value,
		    struct rule_terms * * not, size_t *n_not);

/* A text or a list of texts for one key. */
int items_load(struct loader *l, const struct yaml_node *rule,
	       struct rule_terms *terms, enum rule_key k,
	       const struct yaml_node *key, const struct yaml_node *value);

/* There is a limit to what one list holds; whoever reads one may rely on it. */
int items_check_count(struct loader *l, const struct yaml_node *list);

/* A list of patterns for whole names, beside what stands in *list. */
int matchers_load(struct loader *l, const struct yaml_node *key,
		  const struct yaml_node *value, struct matcher **list,
		  size_t *n, size_t *cap);
