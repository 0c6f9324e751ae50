/* SPDX-License-Identifier: MIT */
/*
 * What a value is called in Prometheus: snake case, base units, "_total" for
 * counters, what can be added up in one family and told apart by a label. The
 * usual values have a row in a table; what has none gets a name made of its
 * type, instance and data source, so that a new row in metrics[] is enough for
 * it to come out. Of an instance like "gpu-card0" only what precedes the dash
 * is in the name; the rest is a label.
 *
 * Invariant: a name is proctally_[a-z0-9_]+ and that of a counter ends in
 * "_total". It depends on nothing but type, instance, data source and whether
 * the value is proctally's own.
 */
#pragma once

#include "base.h"
#include "metric.h"

enum {
	PROMNAME_MAX = 256,
	PROMNAME_PARTS = 1000000, /* the smallest part of a base unit */
};

struct promname {
	char name[PROMNAME_MAX];
	char help[PROMNAME_MAX];
	const char *label; /* beside that of the group, or NULL */
	char label_value[PROMNAME_MAX];
	unsigned divisor; /* of PROMNAME_PARTS; makes the base unit */
};

/* True for what proctally says of itself: it has no group there. */
bool promname_is_self(const struct value_out *v);

/* The name of the i-th data source of a value list. */
void promname_make(const struct value_out *v, unsigned i, struct promname *ret);
