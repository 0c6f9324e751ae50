/* SPDX-License-Identifier: MIT */
/*
 * Arrays that are large for a short time, as after a storm of exits: of pages
 * that come from the kernel and go back to it. In the heap of the program that
 * we are in they would leave holes, which stay. It does not know what an
 * element is.
 *
 * Invariant: what is mapped is `cap` elements, rounded up to whole pages. The
 * number that was asked for comes to the same pages as the `cap` that was
 * given, so that either may be handed back.
 */
#pragma once

#include "base.h"

/*
 * Makes room for `need` elements of `size` bytes, at most a page each, as
 * array_reserve() does; what is larger is asked for in bytes. What is new is
 * zero. Returns 0 or -ENOMEM; the array is untouched on failure.
 */
int bulk_reserve(void *arrayp, size_t *cap, size_t need, size_t size);

/*
 * Gives back what is beyond the first `need` elements, as far as it is whole
 * pages. It all stays if the kernel will not have it.
 */
void bulk_trim(void *arrayp, size_t *cap, size_t need, size_t size);

/* Gives all of it back. */
void bulk_free(void *arrayp, size_t *cap, size_t size);

/*
 * To be asked once in a tick, of an array of which `used` elements were needed
 * in it. True when little of it was for so long that the storm is over;
 * *n_calm counts towards that.
 */
bool bulk_is_spare(unsigned *n_calm, size_t used, size_t cap);
