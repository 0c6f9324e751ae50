/* SPDX-License-Identifier: MIT */
/*
 * Arrays that are large for a short time, as after a storm of exits: of pages
 * that come from the kernel and go back to it. In the heap of the program that
 * we are in they would leave holes, which stay. It does not know what an
 * element is.
 *
 * Invariant: what is mapped is `cap` elements, rounded up to whole pages.
 */
#pragma once

#include "base.h"

/*
 * Makes room for `need` elements of `size` bytes, at most a page each, as
 * array_reserve() does. What is new is zero. Returns 0 or -ENOMEM; the array is
 * untouched on failure.
 */
int bulk_reserve(void *arrayp, size_t *cap, size_t need, size_t size);

/* Gives all of it back. */
void bulk_free(void *arrayp, size_t *cap, size_t size);
