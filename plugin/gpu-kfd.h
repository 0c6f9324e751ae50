/* SPDX-License-Identifier: MIT */
/*
 * The backend for compute processes of AMD GPUs: what the kernel's KFD tells
 * of them in /sys/class/kfd/kfd/proc. It knows no descriptor and no process
 * table, and reads only what is an atomic read in the kernel: nothing that
 * waits for a queue or touches the hardware. /dev/kfd is never opened: who
 * does is a client.
 *
 * Memory here is a part of what fdinfo tells, and counts only where fdinfo
 * tells nothing. How busy these queues keep a GPU is told by nobody. Invariant:
 * that is said (has_unseen), it is never a 0.
 */
#pragma once

#include "gpu.h"

enum {
	GPU_KFD_NODES_MAX = 64,
};

#define GPU_KFD_TABLE_NS (60 * NSEC_PER_SEC) /* devices are listed anew */

struct gpu_kfd_options {
	int sys_fd;	 /* root of sys; stays the caller's */
	bool first_pids; /* PIDs are those of the first namespace, as here */
	gpu_find_fn *find;
	void *find_arg;
};

struct gpu_kfd_node {
	uint64_t gpu_id;
	char name[GPU_NAME_SIZE]; /* PCI address; empty: we may not know */
};

struct gpu_kfd {
	struct gpu_kfd_options opt;
	int proc_fd; /* its directory of processes, or -1 */
	bool is_listed;
	uint64_t listed_ns;
	struct gpu_kfd_node node[GPU_KFD_NODES_MAX];
	size_t n_nodes;
	uint64_t now_ns;
	uint64_t n_processes; /* that use a GPU, in the last tick */
	uint64_t n_refused;   /* GPUs beyond the bound */
};

void gpu_kfd_open(struct gpu_kfd *k, const struct gpu_kfd_options *o);
void gpu_kfd_close(struct gpu_kfd *k);

/* Begins a tick: looks for the directory and the devices when it is time. */
void gpu_kfd_begin(struct gpu_kfd *k, const struct moment *now);

/* Reads all processes. */
void gpu_kfd_finish(struct gpu_kfd *k, struct gpu *g);

enum gpu_state gpu_kfd_state(const struct gpu_kfd *k);
