/* SPDX-License-Identifier: MIT */
/*
 * Prints the events of a monitor on stderr, for the command.
 */
#pragma once

#include "monitor.h"

/* Information is left out: it is for logs. */
void events_print(struct monitor *m);
