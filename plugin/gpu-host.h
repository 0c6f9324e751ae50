/* SPDX-License-Identifier: MIT */
/*
 * All backends of one host as one: what the monitor calls. A new backend is a
 * file of its own and one line in gpu-host.c. It knows no process table and no
 * group: processes go in by number and start, and come out so, with what they
 * used.
 *
 * In each tick: gpu_host_begin(); gpu_drm_ran() for every process that ran, and
 * gpu_drm_look() where it says so; gpu_drm_next() and a look until it has no
 * more; gpu_host_read(); gpu_host_finish(); the results in `use`. Invariant: no
 * call here waits for a driver, but gpu_host_finish() for as long as it is
 * told.
 */
#pragma once

#include "gpu-drm.h"
#include "gpu-kfd.h"
#include "gpu-nvml.h"

struct gpu_host_options {
	int proc_fd, sys_fd; /* roots; they stay the caller's. sys may be -1 */
	struct keptfd *kept; /* budget; stays the caller's */
	bool is_real;	     /* proc is a procfs */
	bool same_pids;	     /* and its numbers are ours */
	const char *nvml;    /* another library; NULL: GPU_NVML_LIBRARY */
	gpu_find_fn *find;
	void *find_arg;
};

struct gpu_host {
	struct gpu use;
	struct gpu_drm drm;
	struct gpu_nvml nvml;
	struct gpu_kfd kfd;
};

/* Returns 0 or -ENOMEM. */
int gpu_host_open(struct gpu_host *h, const struct gpu_host_options *o);

/*
 * Never waits for a driver. Returns false if a thread is left behind in one;
 * what it uses is its own.
 */
bool gpu_host_close(struct gpu_host *h);

void gpu_host_begin(struct gpu_host *h, const struct moment *now);

/* Has everything read that is known; call after the looks. */
void gpu_host_read(struct gpu_host *h);

/*
 * Takes what was read, waiting no longer than wait_ns for all backends
 * together. Returns 0, or -ENOMEM: then there are no results.
 */
int gpu_host_finish(struct gpu_host *h, uint64_t wait_ns);

/* How a backend is. */
struct gpu_health {
	const char *backend;
	enum gpu_state state;
	char what[GPU_NAME_SIZE]; /* the device, where it is one */
};

/* Of the i-th backend; false if there are no more. */
bool gpu_host_health(const struct gpu_host *h, size_t i,
		     struct gpu_health *ret);
