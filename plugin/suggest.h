/* SPDX-License-Identifier: MIT */
/*
 * "Did you mean ...?": the word of a list that lies closest to a mistyped one.
 * It knows no list of its own and is for messages only, never for a decision.
 *
 * Invariant: what it returns is an element of the list that was given.
 */
#pragma once

#include "base.h"

/*
 * Returns the word that the fewest typing mistakes turn into `word` (a byte
 * put in, left out or changed, two neighbours swapped; upper and lower case
 * are one), or NULL if each is too far away: more than one mistake in three
 * bytes. The first of several equally close ones wins.
 */
const char *suggest_closest(struct str word, const char *const *words,
			    size_t n);
