/* SPDX-License-Identifier: MIT */
/*
 * Counts the memory that the code under test takes from the kernel by pages.
 * The test program is linked with --wrap for mmap, mremap and munmap; what
 * libraries take is not counted.
 */
#pragma once

#include "base.h"

/* How often some was taken or given back so far. */
uint64_t mapcount_calls(void);

/* What there is now, in whole pages. */
uint64_t mapcount_bytes(void);
