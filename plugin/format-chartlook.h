/* SPDX-License-Identifier: MIT */
/*
 * How a chart of a type looks in Netdata: its title, its unit and how the
 * numbers get there. It knows collectd's types, no values and no protocol.
 *
 * Invariant: a type without a row of its own has a look as well.
 */
#pragma once

#include "base.h"

struct chartlook {
	const char *title, *unit;
	const char *shape;  /* line, area or stacked */
	unsigned divisor;   /* makes the unit of the value */
	unsigned precision; /* parts of the value's unit that are kept */
	unsigned priority;  /* its place in the menu, rising */
};

/* `type` becomes the title where there is no other. */
struct chartlook chartlook_of(const char *type, bool derive);
