/* SPDX-License-Identifier: MIT */
/*
 * What can be said of a rule set that has no mistake and yet may not do what
 * was meant: rules that nothing can reach, patterns that no text can match,
 * texts that look like patterns. It knows the meaning of keys and names, no
 * YAML and no process.
 *
 * Invariant: a warning is certain. What a rule does is never guessed from how
 * processes usually are, only from what they can be.
 */
#pragma once

#include "base.h"
#include "diag.h"
#include "rule.h"

/*
 * Adds warnings and notes about a sealed rule set to d, each with its place;
 * never an error. The work is bounded: in a very large rule set the search for
 * unreachable rules ends early. Returns 0 or -ENOMEM.
 */
int rulelint_run(const struct ruleset *rs, struct diag *d);
