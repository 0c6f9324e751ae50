/* SPDX-License-Identifier: MIT */
/*
 * What the parts of ruletest share: ruletest-process.c loads what a test says
 * of a process and its parents, ruletest.c has the rules place them. Nobody
 * else includes it.
 *
 * Invariant: a process that was loaded needs no file and no host to be placed.
 */
#pragma once

#include "inherit.h"
#include "name.h"
#include "rulefile-keys.h"
#include "ruletest.h"

enum {
	RULETEST_GENERATIONS_MAX = 16,
};

/* One made-up process; what its strings point into is its own. */
struct process {
	struct subject subject;
	char *raw, *argv0, *cgroup_text;
	struct kin_text text[RULE_CAPTURES_MAX];
	size_t n_texts;
	uint64_t traits;
	struct heritage heritage;
	struct name_result name;
	const struct rule *rule; /* that took it, or its ancestor */
};

/* A test: a process and its ancestors, [0] the one it is about. */
struct test {
	struct loader *l;
	struct process line[RULETEST_GENERATIONS_MAX];
	size_t n;
	size_t view;
	const struct yaml_node *expect;
};

/*
 * The mapping of one process, and of the parent below it. Returns 0, -EINVAL
 * (told in the diag) or -ENOMEM.
 */
int ruletest_load_process(struct test *t, const struct yaml_node *key,
			  const struct yaml_node *node);
