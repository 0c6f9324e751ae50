/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the NVML backend share: gpu-nvml.c (when the library is
 * called), gpu-nvml-device.c (which devices there are, who of them sleeps) and
 * gpu-nvml-answer.c (what an answer is worth). Nobody else includes it.
 */
#pragma once

#include "gpu-nvml-lib.h"
#include "gpu-nvml.h"

enum nvml_what {
	NVML_BEGIN, /* load and initialize the library */
	NVML_QUERY,
	NVML_END, /* shut it down */
};

/* Belongs to the lane while it is there. */
struct nvml_job {
	struct lane_job job;
	enum nvml_what what;
	struct nvml_lib *lib; /* its share of it */

	/* NVML_QUERY */
	unsigned device;
	unsigned generation; /* of the library's handles */
	struct nvml_query query;

	/* NVML_BEGIN */
	bool is_loaded, wants_count;
	unsigned n_devices;
	int result;
	char path[]; /* of the library */
};

/* One more; NULL if there are too many. */
struct gpu_nvml_device *gpu_nvml_add_device(struct gpu_nvml *n);

/* Which devices the driver has. Returns false if /sys does not say. */
bool gpu_nvml_list_devices(struct gpu_nvml *n);

/* Who sleeps, and may not be asked? Returns false if all do. */
bool gpu_nvml_look_at_power(struct gpu_nvml *n);

/* True if an open library may be all that keeps a device awake. */
bool gpu_nvml_may_rest(const struct gpu_nvml *n);

enum gpu_state gpu_nvml_state_of(int result);

/* Takes what a device answered. */
void gpu_nvml_take_answer(struct gpu_nvml *n, struct gpu *g,
			  struct nvml_job *j);

/* Says who uses the devices, as far as that is known still. */
void gpu_nvml_hold_all(struct gpu_nvml *n, struct gpu *g);
