/* SPDX-License-Identifier: MIT */
#include "format-promname.h"
#include "selfstat.h"

#include <ctype.h>
#include <stdio.h>

/*
 * `instance` "*" is any instance, which then stands for the '*' in the name
 * and in the value of the label. A later row serves what no earlier one takes.
 */
struct row {
	const char *type, *instance, *ds;
	const char *name;
	const char *label, *label_value;
	unsigned divisor;
	const char *help;
};

#define USEC PROMNAME_PARTS
#define MSEC 1000

/* clang-format off */
static const struct row rows[] = {
	{ "ps_cputime", NULL, "user", "cpu_seconds", "mode", "user", USEC, "CPU time used." },
	{ "ps_cputime", NULL, "syst", "cpu_seconds", "mode", "system", USEC, "CPU time used." },
	{ "ps_cputime", "*", "user", "*_cpu_seconds", "mode", "user", USEC, "CPU time of the kind that the name says." },
	{ "ps_cputime", "*", "syst", "*_cpu_seconds", "mode", "system", USEC, "CPU time of the kind that the name says." },
	{ "ps_rss", NULL, "value", "memory_resident_bytes", NULL, NULL, 1, "Resident memory; what is shared counts for each process." },
	{ "ps_vm", NULL, "value", "memory_virtual_bytes", NULL, NULL, 1, "Address space." },
	{ "memory", "*", "value", "memory_*_bytes", NULL, NULL, 1, "Memory of the kind that the name says." },
	{ "ps_count", NULL, "processes", "processes", NULL, NULL, 1, "Processes." },
	{ "ps_count", NULL, "threads", "threads", NULL, NULL, 1, "Threads." },
	{ "ps_state", "*", "value", "processes_in_state", "state", "*", 1, "Processes by the state of their first thread." },
	{ "ps_pagefaults", NULL, "minflt", "page_faults", "kind", "minor", 1, "Page faults." },
	{ "ps_pagefaults", NULL, "majflt", "page_faults", "kind", "major", 1, "Page faults." },
	{ "disk_octets", NULL, "read", "disk_read_bytes", NULL, NULL, 1, "Bytes fetched from storage." },
	{ "disk_octets", NULL, "write", "disk_written_bytes", NULL, NULL, 1, "Bytes sent to storage." },
	{ "io_octets", NULL, "rx", "io_read_bytes", NULL, NULL, 1, "Bytes that read calls returned." },
	{ "io_octets", NULL, "tx", "io_written_bytes", NULL, NULL, 1, "Bytes that write calls took." },
	{ "disk_octets", "*", "read", "*_disk_read_bytes", NULL, NULL, 1, "Bytes fetched from storage, as the kernel counts it for the kind that the name says." },
	{ "disk_octets", "*", "write", "*_disk_written_bytes", NULL, NULL, 1, "Bytes sent to storage, as the kernel counts it for the kind that the name says." },
	{ "disk_ops", "*", "read", "*_disk_reads", NULL, NULL, 1, "Requests to storage for reading." },
	{ "disk_ops", "*", "write", "*_disk_writes", NULL, NULL, 1, "Requests to storage for writing." },
	{ "ps_disk_ops", NULL, "read", "read_calls", NULL, NULL, 1, "Read calls." },
	{ "ps_disk_ops", NULL, "write", "write_calls", NULL, NULL, 1, "Write calls." },
	{ "file_handles", NULL, "value", "open_fds", NULL, NULL, 1, "Open file descriptors." },
	{ "file_handles", "*", "value", "*_fds", NULL, NULL, 1, "File descriptors of the kind that the name says." },
	{ "contextswitch", "*", "value", "context_switches", "kind", "*", 1, "Context switches." },
	{ "uptime", "*", "value", "*_process_age_seconds", NULL, NULL, 1, "Age of the oldest or newest process." },
	{ "total_operations", "starts", "value", "process_starts", NULL, NULL, 1, "Processes that were started." },
	{ "total_operations", "counter_anomalies", "value", "anomalies", NULL, NULL, 1, "Counters of processes that stepped back." },
	{ "total_operations", "*", "value", "*", NULL, NULL, 1, "Number of times." },
	{ "total_time_in_ms", "*", "value", "*_seconds", NULL, NULL, MSEC, "Time spent." },
	{ "percent", "*", "value", "*_ratio", NULL, NULL, 100, "Share of the whole." },
	{ "duration", "*", "seconds", "*_seconds", NULL, NULL, 1, "Time taken the last time." },
	{ "count", "*", "value", "*", NULL, NULL, 1, "Number at present." },
	{ "gauge", "cpu_residual", "value", "cpu_residual_seconds", NULL, NULL, 1, "CPU time of the host less that of all groups since the last time; may be negative." },
	{ "gauge", "cpu_residual_all", "value", "cpu_residual_all_seconds", NULL, NULL, 1, "CPU time of the host less that of all groups since the first time; may be negative." },
	{ "gauge", "*", "value", "*", NULL, NULL, 1, "Value at present." },
};
/* clang-format on */

bool promname_is_self(const struct value_out *v)
{
	return strcmp(v->group, SELF_GROUP) == 0;
}

static bool row_serves(const struct row *row, const struct value_out *v,
		       unsigned i)
{
	if (strcmp(row->type, v->type) != 0 || strcmp(row->ds, v->ds[i]) != 0)
		return false;
	if (!row->instance || !v->instance)
		return row->instance == v->instance;
	return strcmp(row->instance, "*") == 0 ||
	       strcmp(row->instance, v->instance) == 0;
}

static const struct row *find_row(const struct value_out *v, unsigned i)
{
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
		if (row_serves(&rows[k], v, i))
			return &rows[k];
	return NULL;
}

/* Puts the instance in the place of '*'. */
static void fill_in(char *buf, size_t size, const char *pattern,
		    const char *instance)
{
	size_t at = strcspn(pattern, "*");

	snprintf(buf, size, "%.*s%s%s", (int)at, pattern,
		 pattern[at] ? instance : "",
		 pattern[at] ? pattern + at + 1 : "");
}

static void clean_name(char *s)
{
	for (; *s; s++)
		*s = isalnum((unsigned char)*s)
			 ? (char)tolower((unsigned char)*s)
			 : '_';
}

/* Made of what there is: TYPE, TYPE_INSTANCE, TYPE_INSTANCE_DS. */
static void derive_name(const struct value_out *v, unsigned i,
			const char *instance, char *buf, size_t size)
{
	bool plain = strcmp(v->ds[i], "value") == 0;

	snprintf(buf, size, "%s%s%s%s%s", v->type, *instance ? "_" : "",
		 instance, plain ? "" : "_", plain ? "" : v->ds[i]);
}

/* A label for what of the instance is not in the name. */
static void split_instance(const struct value_out *v, const struct row *row,
			   char *head, size_t size, struct promname *ret)
{
	const char *instance = v->instance ? v->instance : "";
	const char *dash = strchr(instance, '-');
	bool split = dash && dash > instance && dash[1] && !ret->label &&
		     !(row && !strchr(row->name, '*'));

	snprintf(head, size, "%.*s",
		 split ? (int)(dash - instance) : (int)strlen(instance),
		 instance);
	if (!split)
		return;
	ret->label = "part";
	snprintf(ret->label_value, sizeof(ret->label_value), "%s", dash + 1);
}

void promname_make(const struct value_out *v, unsigned i, struct promname *ret)
{
	const struct row *row = find_row(v, i);
	char name[PROMNAME_MAX - 32], head[PROMNAME_MAX / 2];

	*ret = (struct promname){
	    .divisor = row ? row->divisor : 1,
	    .label = row ? row->label : NULL,
	};
	if (ret->label)
		fill_in(ret->label_value, sizeof(ret->label_value),
			row->label_value, v->instance);
	split_instance(v, row, head, sizeof(head), ret);
	if (row)
		fill_in(name, sizeof(name), row->name, head);
	else
		derive_name(v, i, head, name, sizeof(name));
	snprintf(ret->name, sizeof(ret->name), "proctally_%s%s%s",
		 promname_is_self(v) ? "self_" : "", name,
		 v->derive ? "_total" : "");
	clean_name(ret->name);
	if (row)
		snprintf(ret->help, sizeof(ret->help), "%s", row->help);
	else
		snprintf(ret->help, sizeof(ret->help), "%s of the type %s.",
			 v->ds[i], v->type);
}
