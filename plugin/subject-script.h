/* SPDX-License-Identifier: MIT */
/*
 * What an interpreter runs, by the arguments that it was given. Each one reads
 * its options in its own way: `-e` is a program for perl and a switch for sh.
 * It knows no process, and not which programs the rules call interpreters.
 *
 * Invariant: what is on the command line as a program is never taken for the
 * name of one.
 */
#pragma once

#include "base.h"

/*
 * The base name of the script without its suffix; of `python3 -m MODULE` that
 * is the module. `exe` is the base name of the interpreter, `rest` are its
 * arguments with a NUL after each but the last. Empty if there is no script.
 */
struct str script_find(struct str exe, struct str rest);
