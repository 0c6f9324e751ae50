/* SPDX-License-Identifier: MIT */
#include "format-chartlook.h"

enum {
	PRIORITY = 90000, /* behind what Netdata knows by itself */
	KIB = 1024,
	MIB = 1024 * 1024,
};

/* Counters are drawn by their growth per second. */
/* clang-format off */
static const struct row {
	const char *type, *title, *unit, *shape;
	unsigned divisor, precision;
} rows[] = {
	{ "ps_cputime", "CPU time; 100% is one processor", "percentage", "stacked", 10000, 1 },
	{ "ps_rss", "Resident memory", "MiB", "area", MIB, 1 },
	{ "memory", "Memory by kind", "MiB", "line", MIB, 1 },
	{ "ps_vm", "Address space", "MiB", "area", MIB, 1 },
	{ "ps_count", "Processes and threads", "number", "line", 1, 1 },
	{ "ps_state", "Processes by state", "processes", "stacked", 1, 1 },
	{ "total_operations", "Events", "events/s", "line", 1, 1 },
	{ "ps_pagefaults", "Page faults", "faults/s", "line", 1, 1 },
	{ "disk_octets", "Bytes from and to storage", "KiB/s", "line", KIB, 1 },
	{ "io_octets", "Bytes read and written", "KiB/s", "line", KIB, 1 },
	{ "ps_disk_ops", "Read and write calls", "calls/s", "line", 1, 1 },
	{ "disk_ops", "Requests to storage", "requests/s", "line", 1, 1 },
	{ "file_handles", "Open files", "files", "area", 1, 1 },
	{ "percent", "Share", "percentage", "line", 1, 1000 },
	{ "contextswitch", "Context switches", "switches/s", "line", 1, 1 },
	{ "total_time_in_ms", "Busy time", "percentage", "line", 10, 1 },
	{ "uptime", "Age of processes", "seconds", "line", 1, 1000 },
	{ "duration", "Duration", "seconds", "line", 1, 1000000 },
	{ "count", "Count", "number", "line", 1, 1000 },
	{ "gauge", "State", "value", "line", 1, 1000 },
};
/* clang-format on */

struct chartlook chartlook_of(const char *type, bool derive)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].type, type) == 0)
			return (struct chartlook){
			    .title = rows[i].title,
			    .unit = rows[i].unit,
			    .shape = rows[i].shape,
			    .divisor = rows[i].divisor,
			    .precision = derive ? 1 : rows[i].precision,
			    .priority = PRIORITY + (unsigned)i,
			};
	return (struct chartlook){
	    .title = type,
	    .unit = derive ? "per second" : "value",
	    .shape = "line",
	    .divisor = 1,
	    .precision = derive ? 1 : 1000,
	    .priority = PRIORITY + ARRAY_SIZE(rows),
	};
}
