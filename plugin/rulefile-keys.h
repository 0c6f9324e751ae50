/* SPDX-License-Identifier: MIT */
/*
 * Inside rulefile: what the loader carries along and the walk over a mapping
 * by a table of its keys.
 *
 * Loading functions return 0, -EINVAL (told in the diag; loading goes on with
 * what stands beside it) or -ENOMEM (loading ends).
 */
#pragma once

#include "base.h"
#include "diag.h"
#include "rule.h"
#include "yamltree.h"

enum {
	KEYS_MAX = 40, /* of one mapping */
};

struct loader {
	struct diag *d;
	struct ruleset *rs;
	const char *prefix;  /* of names in this view, or NULL */
	unsigned max_groups; /* of rules in this view; 0: the usual number */
	const struct yaml_node *tests;
	bool has_app; /* the view "app" has its rules */
	bool has_managers, has_interpreters;
	bool is_exporter;    /* the file is one of process-exporter */
	bool lenient;	     /* unknown keys are warnings */
	unsigned n_patterns; /* that were compiled */
	unsigned n_kin;	     /* mappings of kin that are open */
};

/* One key of a mapping. */
struct key_row {
	const char *name;
	int (*load)(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value);
};

/*
 * One more pattern is to be compiled, which may take 10 KiB. By aliases a
 * small file can have more of them than there is memory. Tells of the first
 * that is too many, and returns -EINVAL from there on.
 */
int patterns_count(struct loader *l, const struct yaml_node *place);

/* The names of the keys that one mapping may have. */
struct key_names {
	const char *v[KEYS_MAX];
	size_t n;
};

void key_names_add(struct key_names *names, const char *name);

/* The value of a key, or NULL; *ret_key may be given, too. */
const struct yaml_node *key_find(const struct yaml_node *mapping,
				 const char *name,
				 const struct yaml_node **ret_key);

/*
 * Tells of a value that is no mapping and of each key that is not in the
 * names. `key` is NULL for the root.
 */
int keys_check(struct loader *l, const struct yaml_node *key,
	       const struct yaml_node *mapping, const struct key_names *names);

/* Loads what is there of the rows, in their order, not in that of the file. */
int keys_load(struct loader *l, void *into, const struct yaml_node *mapping,
	      const struct key_row *rows, size_t n_rows);

/* Both of the above for a mapping that has no other keys. */
int mapping_load(struct loader *l, void *into, const struct yaml_node *key,
		 const struct yaml_node *mapping, const struct key_row *rows,
		 size_t n_rows);

/* What `collect` sets, as far as it is given. */
struct collect_into {
	collect_mask *keys;
	struct pss_policy *pss;
	uint32_t *pss_budget_ppm; /* NULL in rules: it is one for all */
};

int collect_load(struct loader *l, const struct collect_into *into,
		 const struct yaml_node *key, const struct yaml_node *value);
