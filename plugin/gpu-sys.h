/* SPDX-License-Identifier: MIT */
/*
 * Small files and links of /sys that the GPU backends share, below a root
 * descriptor. It knows where the kernel puts things, and no backend.
 *
 * Nothing here wakes a device, and nothing is opened but files of /sys and
 * /proc: who opens a device node becomes its client.
 */
#pragma once

#include "base.h"

/*
 * The first line of a small file, terminated, without its end. Returns its
 * length or a negative errno.
 */
int gpu_sys_read(int dir_fd, const char *path, char *buf, size_t size);

/* The last component of where a link points to. Returns as above. */
int gpu_sys_link(int dir_fd, const char *path, char *buf, size_t size);

/* A number in decimal. Returns 0 or a negative errno. */
int gpu_sys_number(int dir_fd, const char *path, uint64_t *ret);

/* A directory; or a negative errno. */
int gpu_sys_open_dir(int dir_fd, const char *path);

typedef void gpu_sys_entry_fn(void *arg, int dir_fd, const char *name);

/* Calls fn for each entry of an open directory; without one for none. */
void gpu_sys_each(int dir_fd, gpu_sys_entry_fn *fn, void *arg);

enum gpu_power {
	GPU_POWER_ON, /* or there is no power management */
	GPU_POWER_ASLEEP,
	GPU_POWER_CHANGES, /* it falls asleep or wakes up */
};

/* From the text of power/runtime_status; rtpm_status_str(), Linux 6.18. */
enum gpu_power gpu_sys_parse_power(const char *status);

/* Of the device whose directory is `dir`; without the file: GPU_POWER_ON. */
enum gpu_power gpu_sys_power(int dir_fd, const char *dir);

/* True if the kernel may suspend that device when nobody uses it. */
bool gpu_sys_may_sleep(int dir_fd, const char *dir);

/*
 * True if the namespace of that process is the first one, whose PIDs are what
 * drivers tell. `process` is "self", or "1" for what numbers below that root of
 * proc mean.
 */
bool gpu_sys_is_first_pidns(int proc_fd, const char *process);
