/* SPDX-License-Identifier: MIT */
/*
 * The `tests` of a rule file: processes that somebody made up, and the group
 * that each must come to. They go through the same matching, inheritance and
 * naming as real ones. It knows no /proc.
 *
 * Invariant: a rule set is the same after its tests as before.
 */
#pragma once

#include "base.h"
#include "diag.h"
#include "rule.h"
#include "yamltree.h"

/*
 * Runs the list of tests on a sealed rule set. Each that fails, and each
 * mistake in them, is an error in d at its place. So is it if they take more
 * than three seconds of CPU time, which is looked at between two processes:
 * whoever loads the file waits for them. Returns 0, -EINVAL or -ENOMEM.
 */
int ruletest_run(struct ruleset *rs, const struct yaml_node *tests,
		 struct diag *d);
