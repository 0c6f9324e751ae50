/* SPDX-License-Identifier: MIT */
/*
 * `proctally dump --residual`: CPU time of the host beside that of the groups,
 * as a table for people. It knows two sums and a buffer.
 *
 * Invariant: a share is told of what was used, never of nothing.
 */
#pragma once

#include "monitor.h"
#include "outbuf.h"

/* Of the interval that ends now, and of all since the first reading. */
void dump_residual(struct outbuf *out, double tick_s, double total_s,
		   const struct monitor_cpu *tick,
		   const struct monitor_cpu *total);
