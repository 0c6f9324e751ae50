/* SPDX-License-Identifier: MIT */
/*
 * Inside rulefile: where the keys of a rule file belong, for messages about
 * one that stands elsewhere. It decides nothing: what a mapping takes is in
 * the table that it is loaded by.
 *
 * Invariant: places are told as an English phrase that follows "belongs".
 */
#pragma once

#include "base.h"

/* As `under "limits"`; NULL if no mapping has such a key. */
const char *where_key_belongs(struct str key);
