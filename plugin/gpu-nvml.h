/* SPDX-License-Identifier: MIT */
/*
 * The backend for NVIDIA's driver, by way of its management library. It
 * decides when that is loaded, which device is asked, and what an answer is
 * worth; every call into it is made in a lane of its own, one job per device.
 *
 * Invariant: a device that does not answer is asked nothing more until it
 * does, by its name; a suspended one is not asked, and where all are idle and
 * may be suspended the library is shut down so that they can; closing waits for
 * none.
 */
#pragma once

#include "gpu.h"
#include "lane.h"

#define GPU_NVML_LIBRARY "libnvidia-ml.so.1"

#define GPU_NVML_RETRY_NS (60 * NSEC_PER_SEC) /* after a failure */
#define GPU_NVML_STUCK_NS NSEC_PER_SEC
/* What a process did is told for no longer than this by one answer. */
#define GPU_NVML_WINDOW_MAX_NS (60 * NSEC_PER_SEC)

enum {
	GPU_NVML_IDLE_TICKS = 6, /* without a process, before it rests */
};

struct gpu_nvml_options {
	const char *library; /* NULL: GPU_NVML_LIBRARY; stays the caller's */
	int proc_fd, sys_fd; /* roots; they stay the caller's. sys may be -1 */
	bool first_pids;     /* our PIDs are those of the first namespace */
	gpu_find_fn *find;
	void *find_arg;
};

enum gpu_nvml_phase {
	GPU_NVML_ABSENT, /* not looked for, or not there, or refused */
	GPU_NVML_BEGINS, /* its initialization is under way */
	GPU_NVML_RUNS,
	GPU_NVML_ENDS,	/* its end is under way */
	GPU_NVML_RESTS, /* all devices sleep, or shall be let to */
};

struct nvml_lib;
struct nvml_job;

/* A process on a device, as the last answer had it. */
struct gpu_nvml_user {
	int client;
	pid_t pid;
	uint64_t start;
};

struct gpu_nvml_device {
	char name[32]; /* PCI address; empty until it is known */
	unsigned index;
	bool is_listed, is_asleep, is_stuck;
	enum gpu_state state;
	uint64_t retry_ns; /* it is not asked before */
	uint64_t since_us; /* up to here its samples are known */
	uint64_t asked_ns; /* CLOCK_MONOTONIC of the last good query; 0: none */
	uint64_t query_ns; /* of the one that is under way */
	uint32_t idle_ticks; /* in which nobody used it */
	uint32_t answer_tick;
	struct nvml_job *job;
	bool is_busy; /* the job is in the lane: it may not be touched */
	struct gpu_nvml_user *user;
	size_t n_users, user_cap;
};

struct gpu_nvml_counts {
	uint64_t n_queries, n_stalls;
	uint64_t n_unknown; /* rows of processes that are not there */
};

struct gpu_nvml {
	struct gpu_nvml_options opt;
	struct lane *lane;
	struct nvml_lib *lib;
	struct nvml_job *job; /* that initializes or ends it */
	bool is_busy;	      /* as with a device */
	enum gpu_nvml_phase phase;
	enum gpu_state state; /* of the library */
	uint64_t retry_ns, listed_ns, rest_ns;
	unsigned generation; /* of its handles: one per initialization */
	bool is_loaded, is_by_index;
	bool has_slept;	  /* somebody, since it rests */
	bool never_rests; /* resting did not let them sleep */
	uint32_t tick;
	struct moment now;
	struct gpu_nvml_device *device;
	size_t n_devices, device_cap;
	struct gpu_nvml_counts counts;
};

/* Returns 0 or -ENOMEM. The library is loaded later, in the lane. */
int gpu_nvml_open(struct gpu_nvml *n, const struct gpu_nvml_options *o);

/* Never waits for a stuck call. False if one is left behind. */
bool gpu_nvml_close(struct gpu_nvml *n);

/* Begins a tick: asks every device that may be asked, in the lane. */
void gpu_nvml_begin(struct gpu_nvml *n, const struct moment *now);

/*
 * Takes the answers, waiting no longer than wait_ns for them. What comes too
 * late is taken in the next tick.
 */
void gpu_nvml_finish(struct gpu_nvml *n, struct gpu *g, uint64_t wait_ns);

/* How it is, and in `what` of which device. */
enum gpu_state gpu_nvml_state(const struct gpu_nvml *n, char *what,
			      size_t size);
