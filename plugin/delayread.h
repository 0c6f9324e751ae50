/* SPDX-License-Identifier: MIT */
/*
 * Opens what tells of delays as soon as some rule collects them, and says once
 * what is missing. The process table asks delay.h for each process that ran;
 * how that is answered is not known here.
 *
 * Invariant: where no rule collects delays, nothing is open.
 */
#pragma once

struct monitor;

/* The rules changed. */
void delayread_adopt(struct monitor *m);
