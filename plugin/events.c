/* SPDX-License-Identifier: MIT */
#include "events.h"

#include <stdio.h>

void events_print(struct monitor *m)
{
	struct monitor_event e;

	while (monitor_take_event(m, &e))
		if (e.level != MONITOR_INFO)
			fprintf(stderr, "proctally: %s\n", e.text);
}
