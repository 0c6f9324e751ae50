/* SPDX-License-Identifier: MIT */
/*
 * What it costs to read smaps_rollup of a process that was not read yet: a
 * fixed part and one for each KiB of RSS. Both are learned from readings; how
 * far they are from what was assumed at first depends on the processor, on
 * huge pages and on the number of mappings. It knows no process.
 *
 * Invariant: a cost is more than nothing, and does not fall as RSS grows.
 */
#pragma once

#include "base.h"

/* Sums of weighted readings, later ones weigh more. All zeros: none. */
struct psscost {
	double n, x, xx, y, xy;	 /* x: KiB of RSS, y: CPU time, us */
	double fixed_us, kib_us; /* what follows from them */
};

void psscost_init(struct psscost *c);

/* Takes a reading: RSS in KiB, and its CPU time. */
void psscost_learn(struct psscost *c, double rss_kib, double cost_us);

/* Microseconds of CPU time. */
static inline double psscost_predict(const struct psscost *c, double rss_kib)
{
	return c->fixed_us + c->kib_us * rss_kib;
}
