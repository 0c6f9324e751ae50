/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the classifier share: classify.c (one process and its
 * texts) and classify-kin.c (who it comes from). Nobody else includes it.
 */
#pragma once

#include "classify.h"

/* SUBJECT_KIN: traits of those it comes from. */
void classify_fetch_kin(struct classifier *c, struct subject *s);
bool classify_find_kin(struct subject *s, bool parent, uint64_t traits,
		       struct subject_kin *ret);

/* Keeps what was learned; out of memory: as if no text had been captured. */
void classify_set_traits(struct proc *p, const struct rule_traits *traits);

/*
 * Where a process goes in a view that no rule of it takes. False if that is
 * its `other`.
 */
bool classify_inherit(struct classifier *c, size_t view,
		      struct placing_in *ret);
