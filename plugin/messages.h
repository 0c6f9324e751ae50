/* SPDX-License-Identifier: MIT */
/*
 * Prints what there is to say of a file on stderr, for the command. It does not
 * know what the messages are about.
 *
 * Invariant: standard output is left to the results.
 */
#pragma once

#include "diag.h"

/* One line for each message, and how many there was no room for. */
void messages_print(const struct diag *d);
