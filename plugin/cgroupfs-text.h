/* SPDX-License-Identifier: MIT */
/*
 * Parses the files below /sys/fs/cgroup, and finds in /proc/PID/cgroup which
 * of them are a process's. Pure text work on whole texts; the formats are
 * those of Documentation/admin-guide/cgroup-v2.rst of Linux 6.18.
 *
 * Invariant: no byte outside the text is looked at; what a line does not say
 * in that form is not found, and never a value. "max" is none.
 */
#pragma once

#include "base.h"

/* One number. */
bool cgroupfs_parse_number(struct str text, uint64_t *ret);

/* The number in the line "KEY NUMBER". */
bool cgroupfs_parse_key(struct str text, const char *key, uint64_t *ret);

/* Sum of the numbers of all lines "NAME NUMBER"; false if there is none. */
bool cgroupfs_parse_regions(struct str text, uint64_t *ret);

/* Sum of KEY=NUMBER over all lines "DEVICE KEY=NUMBER ..."; as above. */
bool cgroupfs_parse_io(struct str text, const char *key, uint64_t *ret);

/* NUMBER of "KIND ... total=NUMBER", microseconds. */
bool cgroupfs_parse_pressure(struct str text, const char *kind, uint64_t *ret);

/*
 * The path in a hierarchy: that with the given controller, or the unified one
 * if `controller` is "". False if there is no such line, or the path leads out
 * of what we see.
 */
bool cgroupfs_parse_path(struct str text, const char *controller,
			 struct str *ret);
