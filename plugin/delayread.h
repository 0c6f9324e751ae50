/* SPDX-License-Identifier: MIT */
/*
 * Opens what tells of delays as soon as some rule collects them, and says once
 * what is missing. The process table asks it for each process that ran.
 */
#pragma once

struct monitor;

/* The rules changed. */
void delayread_adopt(struct monitor *m);
