/* SPDX-License-Identifier: MIT */
/*
 * Counts heap allocations of the whole program, for bench. It stands before
 * malloc() and hands everything on; builds with sanitizers, which do the same,
 * go without it.
 */
#pragma once

#include "base.h"

/* Allocations so far (malloc, calloc, realloc), or 0 if they are not counted.
 */
uint64_t alloccount_calls(void);

/* Bytes in use now, as mallinfo2(3) tells. */
uint64_t alloccount_bytes(void);
