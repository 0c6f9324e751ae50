/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets share. A target is one file: it names itself and takes
 * one input at a time, from libFuzzer ("make fuzz") or from its corpus
 * (replay.c, "make check"). What an input must not do ends the program, so
 * that both notice.
 *
 * Invariant: an input is told by its bytes alone; nothing is kept from one to
 * the next.
 */
#pragma once

#include "base.h"

#include <stdio.h>

/* Its inputs are in tests/fuzz/corpus/NAME/. */
extern const char fuzz_target[];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_check(cond)                                                       \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__,       \
				__LINE__, #cond);                              \
			abort();                                               \
		}                                                              \
	} while (0)

/* A part of a text that is all in `whole`, or empty. */
static inline bool fuzz_is_within(struct str part, struct str whole)
{
	return part.n == 0 || (part.s >= whole.s && part.n <= whole.n &&
			       part.s + part.n <= whole.s + whole.n);
}
