/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's management library, as far as processes go: finds it at run time,
 * calls what it has, in whichever version of its structures, and believes no
 * row that cannot be true. It knows no lane, no power and no process of ours.
 *
 * Any call may block for ever: all of this is for workers of a lane, and what
 * a call writes to is of the query alone. Invariant: the library is never
 * unloaded, for a call may still be in it.
 */
#pragma once

#include <stdatomic.h>

#include "gpu.h"

/* Outcomes of the library that are handled, by their numbers in nvml.h. */
enum {
	NVML_SUCCESS = 0,
	NVML_UNINITIALIZED = 1,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_VERSION_MISMATCH = 18,
	NVML_UNKNOWN = 999,
	/* Ours. */
	NVML_NO_LIBRARY = -1,
	NVML_NO_MEMORY = -2,
};

typedef struct nvml_handle *nvml_device;

/* struct nvmlPciInfo of nvml.h */
struct nvml_pci_info {
	char bus_id_legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

/* struct nvmlProcessUtilizationSample of nvml.h */
struct nvml_sample {
	unsigned pid;
	unsigned long long time_us;
	unsigned sm, memory, encoder, decoder; /* percent */
};

enum nvml_list_kind {
	NVML_COMPUTE,
	NVML_GRAPHICS,
	NVML_MPS,
	NVML_N_LISTS,
};

typedef int nvml_list_fn(nvml_device device, unsigned *n, void *infos);

/* Functions that are missing are NULL. */
struct nvml_lib {
	atomic_uint n_refs;
	void *handle;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *n);
	int (*by_index)(unsigned index, nvml_device *device);
	int (*by_bus_id)(const char *bus_id, nvml_device *device);
	int (*pci_info)(nvml_device device, struct nvml_pci_info *info);
	int (*mig_mode)(nvml_device device, unsigned *now, unsigned *pending);
	int (*mig_count)(nvml_device device, unsigned *n);
	int (*mig_by_index)(nvml_device device, unsigned index,
			    nvml_device *mig);
	int (*utilization)(nvml_device device, struct nvml_sample *samples,
			   unsigned *n, unsigned long long since_us);
	nvml_list_fn *list[NVML_N_LISTS];
	unsigned list_version[NVML_N_LISTS]; /* 1, 2 or 3 */
};

/* Nothing loaded yet; NULL if out of memory. Calls that hang have a share. */
struct nvml_lib *nvml_lib_new(void);
struct nvml_lib *nvml_lib_get(struct nvml_lib *lib);
void nvml_lib_put(struct nvml_lib *lib);

/* Returns NVML_SUCCESS or NVML_NO_LIBRARY. Does not initialize it. */
int nvml_lib_open(struct nvml_lib *lib, const char *path);

/* One process on one device. */
struct nvml_row {
	unsigned pid;
	unsigned instance; /* part of a divided device, or NVML_WHOLE */
	bool is_listed;	   /* by a list of processes */
	bool has_bytes;
	uint64_t bytes;
	unsigned n_samples;
	uint64_t sm, encoder, decoder; /* sums of percents */
};

#define NVML_WHOLE UINT32_MAX

enum {
	NVML_ROWS_MAX = 4096,
};

/* What is asked of one device, and what it answered. */
struct nvml_query {
	/* The question. */
	char bus_id[32]; /* or empty: by index */
	unsigned index;
	nvml_device device; /* NULL: to be found first */
	uint64_t since_us;  /* samples up to then are known */
	uint64_t now_us;    /* CLOCK_REALTIME */
	uint64_t window_ns; /* since the last query; 0: the first one */

	/* The answer. */
	int result;
	bool is_mig, has_utilization;
	uint64_t last_us; /* of the youngest sample; 0: there was none */
	size_t n_rows, row_cap;
	struct nvml_row *row;
	size_t buf_cap;
	char *buf;
};

/* Asks. Whatever the library returned is in q->result. */
void nvml_query_run(const struct nvml_lib *lib, struct nvml_query *q);
void nvml_query_done(struct nvml_query *q);
