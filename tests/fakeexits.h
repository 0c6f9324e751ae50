/* SPDX-License-Identifier: MIT */
/*
 * A kernel whose exit records a test writes. The test program is linked with
 * --wrap for the functions of exits-pump.h, so that the code that takes them
 * is what is installed.
 */
#pragma once

#include "base.h"

/* From now on there are records, of processes of any root. */
void fakeexits_on(void);
void fakeexits_off(void);

/*
 * One more for the next tick, from a line: PID "comm" key=value ...; the tick
 * is at `now`. False if it is not understood.
 */
bool fakeexits_add(const char *line, const struct moment *now);

/* So many more were lost. */
void fakeexits_lose(unsigned n);
