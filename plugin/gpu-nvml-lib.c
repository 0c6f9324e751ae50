/* SPDX-License-Identifier: MIT */
#include "gpu-nvml-lib.h"

#include <dlfcn.h>
#include <stdio.h>

enum {
	TRIES = 3, /* while the number of processes grows */
	FIRST_ROWS = 64,
	FILL = 0xAA,
	/* Sizes of a process in the versions of its structure. */
	STRIDE_V1 = 16,
	STRIDE_V2 = 24,
	STRIDE_V3_LONG = 32, /* drivers 535.43 to 535.98 */
	STRIDE_MAX = 40,
};

/* How far a sample's time may be ahead of ours, or before the last query. */
#define SLACK_US UINT64_C(5000000)

static void *symbol(const struct nvml_lib *lib, const char *name)
{
	return dlsym(lib->handle, name);
}

/*
 * The second version never changed; the third did under one name, and is
 * measured.
 */
static void find_lists(struct nvml_lib *lib)
{
	static const char *const names[NVML_N_LISTS] = {
	    [NVML_COMPUTE] = "nvmlDeviceGetComputeRunningProcesses",
	    [NVML_GRAPHICS] = "nvmlDeviceGetGraphicsRunningProcesses",
	    [NVML_MPS] = "nvmlDeviceGetMPSComputeRunningProcesses",
	};
	static const struct {
		const char *suffix;
		unsigned version;
	} versions[] = {{"_v2", 2}, {"_v3", 3}, {"", 1}};
	char name[64];

	for (size_t i = 0; i < NVML_N_LISTS; i++)
		for (size_t k = 0; k < ARRAY_SIZE(versions) && !lib->list[i];
		     k++) {
			snprintf(name, sizeof(name), "%s%s", names[i],
				 versions[k].suffix);
			*(void **)&lib->list[i] = symbol(lib, name);
			lib->list_version[i] = versions[k].version;
		}
}

struct nvml_lib *nvml_lib_new(void)
{
	struct nvml_lib *lib = calloc(1, sizeof(*lib));

	if (lib)
		atomic_init(&lib->n_refs, 1);
	return lib;
}

struct nvml_lib *nvml_lib_get(struct nvml_lib *lib)
{
	atomic_fetch_add(&lib->n_refs, 1);
	return lib;
}

void nvml_lib_put(struct nvml_lib *lib)
{
	if (lib && atomic_fetch_sub(&lib->n_refs, 1) == 1)
		free(lib);
}

int nvml_lib_open(struct nvml_lib *lib, const char *path)
{
	lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib->handle)
		return NVML_NO_LIBRARY;
	const struct {
		const char *name;
		void **fn;
	} functions[] = {
	    {"nvmlInit_v2", (void **)&lib->init},
	    {"nvmlShutdown", (void **)&lib->shutdown},
	    {"nvmlDeviceGetCount_v2", (void **)&lib->count},
	    {"nvmlDeviceGetHandleByIndex_v2", (void **)&lib->by_index},
	    {"nvmlDeviceGetHandleByPciBusId_v2", (void **)&lib->by_bus_id},
	    {"nvmlDeviceGetPciInfo_v3", (void **)&lib->pci_info},
	    {"nvmlDeviceGetMigMode", (void **)&lib->mig_mode},
	    {"nvmlDeviceGetMaxMigDeviceCount", (void **)&lib->mig_count},
	    {"nvmlDeviceGetMigDeviceHandleByIndex",
	     (void **)&lib->mig_by_index},
	    {"nvmlDeviceGetProcessUtilization", (void **)&lib->utilization},
	};
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		*functions[i].fn = symbol(lib, functions[i].name);
	find_lists(lib);
	return lib->init ? NVML_SUCCESS : NVML_NO_LIBRARY;
}

/* After these nothing more is asked of the device. */
static bool is_fatal(int r)
{
	return r == NVML_UNINITIALIZED || r == NVML_GPU_IS_LOST ||
	       r == NVML_RESET_REQUIRED || r == NVML_NO_MEMORY ||
	       r == NVML_UNKNOWN;
}

static int reserve(struct nvml_query *q, size_t bytes)
{
	return array_reserve(&q->buf, &q->buf_cap, bytes, 1) < 0
		   ? NVML_NO_MEMORY
		   : NVML_SUCCESS;
}

static struct nvml_row *row_of(struct nvml_query *q, unsigned pid,
			       unsigned instance)
{
	for (size_t i = 0; i < q->n_rows; i++)
		if (q->row[i].pid == pid && q->row[i].instance == instance)
			return &q->row[i];
	if (q->n_rows == NVML_ROWS_MAX ||
	    array_reserve(&q->row, &q->row_cap, q->n_rows + 1,
			  sizeof(*q->row)) < 0)
		return NULL;
	q->row[q->n_rows] = (struct nvml_row){.pid = pid, .instance = instance};
	return &q->row[q->n_rows++];
}

/* Where a call of the third version stopped writing tells its structure. */
static size_t measure_stride(const char *buf, size_t size, unsigned n)
{
	size_t end = size;

	while (end > 0 && (unsigned char)buf[end - 1] == FILL)
		end--;
	return end > (size_t)n * STRIDE_V2 ? STRIDE_V3_LONG : STRIDE_V2;
}

/* A process in two lists has one memory: it is not added up. */
static void take_process(struct nvml_query *q, const char *at, size_t stride,
			 unsigned instance)
{
	unsigned pid, gpu_instance = NVML_WHOLE;
	unsigned long long bytes;
	struct nvml_row *row;

	memcpy(&pid, at, sizeof(pid));
	memcpy(&bytes, at + 8, sizeof(bytes));
	if (stride >= STRIDE_V2)
		memcpy(&gpu_instance, at + 16, sizeof(gpu_instance));
	if (instance == NVML_WHOLE)
		instance = gpu_instance;
	row = pid ? row_of(q, pid, instance) : NULL;
	if (!row)
		return;
	row->is_listed = true;
	/* Sentinels for "not available" (nvml.h; DCGM's are smaller). */
	if (bytes >= INT64_MAX - 15)
		return;
	row->has_bytes = true;
	row->bytes = MAX(row->bytes, (uint64_t)bytes);
}

static int take_list(const struct nvml_lib *lib, struct nvml_query *q,
		     nvml_device device, enum nvml_list_kind kind,
		     unsigned instance)
{
	unsigned version = lib->list_version[kind];
	unsigned room = FIRST_ROWS, n = 0;
	size_t stride = version == 1 ? STRIDE_V1 : STRIDE_V2;
	int r = NVML_INSUFFICIENT_SIZE;

	for (int i = 0; i < TRIES && r == NVML_INSUFFICIENT_SIZE; i++) {
		if (i > 0)
			room = MIN(2 * n + 5, (unsigned)NVML_ROWS_MAX);
		r = reserve(q, (size_t)room * STRIDE_MAX);
		if (r)
			return r;
		memset(q->buf, FILL, (size_t)room * STRIDE_MAX);
		n = room;
		r = lib->list[kind](device, &n, q->buf);
	}
	if (r)
		return r;
	n = MIN(n, room);
	if (version == 3)
		stride = measure_stride(q->buf, (size_t)room * STRIDE_MAX, n);
	for (unsigned i = 0; i < n; i++)
		take_process(q, q->buf + i * stride, stride, instance);
	return NVML_SUCCESS;
}

/* One list alone may be missing, and it is not the same on each device. */
static int take_lists(const struct nvml_lib *lib, struct nvml_query *q,
		      nvml_device device, unsigned instance)
{
	int first = NVML_NOT_SUPPORTED;

	for (unsigned i = 0; i < NVML_N_LISTS; i++) {
		int r;

		if (!lib->list[i])
			continue;
		r = take_list(lib, q, device, (enum nvml_list_kind)i, instance);
		if (is_fatal(r))
			return r;
		if (r == NVML_SUCCESS || first == NVML_NOT_SUPPORTED)
			first = r;
	}
	return first;
}

/* Each part of a divided device tells its own processes. */
static int take_parts(const struct nvml_lib *lib, struct nvml_query *q)
{
	unsigned n = 0;
	bool some = false;
	int r;

	r = lib->mig_count && lib->mig_by_index ? lib->mig_count(q->device, &n)
						: NVML_NOT_SUPPORTED;
	if (is_fatal(r))
		return r;
	for (unsigned i = 0; r == NVML_SUCCESS && i < n; i++) {
		nvml_device part = NULL;
		int err = lib->mig_by_index(q->device, i, &part);

		if (err == NVML_SUCCESS)
			err = take_lists(lib, q, part, i);
		if (is_fatal(err))
			return err;
		some |= err == NVML_SUCCESS;
	}
	/* With the right to watch all, the whole tells the same. */
	return some ? NVML_SUCCESS : take_lists(lib, q, q->device, NVML_WHOLE);
}

static bool is_believable(const struct nvml_query *q,
			  const struct nvml_sample *s)
{
	uint64_t oldest = q->since_us;

	if (oldest == 0 && q->now_us > q->window_ns / 1000 + SLACK_US)
		oldest = q->now_us - q->window_ns / 1000 - SLACK_US;
	return s->pid && s->time_us > oldest &&
	       s->time_us <= q->now_us + SLACK_US && s->sm <= 100 &&
	       s->memory <= 100 && s->encoder <= 100 && s->decoder <= 100;
}

static void take_sample(struct nvml_query *q, const struct nvml_sample *s)
{
	struct nvml_row *row;

	if (!is_believable(q, s))
		return;
	q->last_us = MAX(q->last_us, (uint64_t)s->time_us);
	row = row_of(q, s->pid, NVML_WHOLE);
	if (!row)
		return;
	row->n_samples++;
	row->sm += s->sm;
	row->encoder += s->encoder;
	row->decoder += s->decoder;
}

static int take_utilization(const struct nvml_lib *lib, struct nvml_query *q)
{
	unsigned room = FIRST_ROWS, n = 0;
	int r = NVML_INSUFFICIENT_SIZE;

	for (int i = 0; i < TRIES && r == NVML_INSUFFICIENT_SIZE; i++) {
		if (i > 0)
			room = MIN(2 * n + 5, (unsigned)NVML_ROWS_MAX);
		r = reserve(q, (size_t)room * sizeof(struct nvml_sample));
		if (r)
			return r;
		memset(q->buf, 0, (size_t)room * sizeof(struct nvml_sample));
		n = room;
		r = lib->utilization(q->device, (struct nvml_sample *)q->buf,
				     &n, q->since_us);
	}
	/* Nobody used it: that is an answer. */
	q->has_utilization = r == NVML_SUCCESS || r == NVML_NOT_FOUND;
	if (r == NVML_SUCCESS)
		for (unsigned i = 0; i < MIN(n, room); i++)
			take_sample(q, (const struct nvml_sample *)q->buf + i);
	return is_fatal(r) ? r : NVML_SUCCESS;
}

/* "00000000:0B:00.0" as /sys has it: "0000:0b:00.0". */
static void set_bus_id(struct nvml_query *q, const struct nvml_pci_info *info)
{
	const char *from = info->bus_id;
	size_t n = strnlen(from, sizeof(info->bus_id) - 1);

	if (n == 16 && memcmp(from, "0000", 4) == 0) {
		from += 4;
		n -= 4;
	}
	for (size_t i = 0; i < n; i++)
		q->bus_id[i] = (char)(from[i] >= 'A' && from[i] <= 'F'
					  ? from[i] - 'A' + 'a'
					  : from[i]);
	q->bus_id[n] = '\0';
}

static int find_device(const struct nvml_lib *lib, struct nvml_query *q)
{
	struct nvml_pci_info info = {0};
	int r;

	if (q->bus_id[0])
		return lib->by_bus_id ? lib->by_bus_id(q->bus_id, &q->device)
				      : NVML_FUNCTION_NOT_FOUND;
	if (!lib->by_index || !lib->pci_info)
		return NVML_FUNCTION_NOT_FOUND;
	r = lib->by_index(q->index, &q->device);
	if (r == NVML_SUCCESS)
		r = lib->pci_info(q->device, &info);
	if (r == NVML_SUCCESS)
		set_bus_id(q, &info);
	else
		q->device = NULL;
	return r;
}

static int query(const struct nvml_lib *lib, struct nvml_query *q)
{
	unsigned mig = 0, pending = 0;
	int r = q->device ? NVML_SUCCESS : find_device(lib, q);

	if (r == NVML_SUCCESS && lib->mig_mode) {
		r = lib->mig_mode(q->device, &mig, &pending);
		q->is_mig = r == NVML_SUCCESS && mig == 1;
		r = is_fatal(r) ? r : NVML_SUCCESS;
	}
	if (r == NVML_SUCCESS)
		r = q->is_mig ? take_parts(lib, q)
			      : take_lists(lib, q, q->device, NVML_WHOLE);
	if ((r == NVML_SUCCESS || r == NVML_NOT_SUPPORTED) && !q->is_mig &&
	    lib->utilization) {
		int err = take_utilization(lib, q);

		if (is_fatal(err))
			r = err;
		else if (q->has_utilization)
			r = NVML_SUCCESS;
	}
	return r;
}

void nvml_query_run(const struct nvml_lib *lib, struct nvml_query *q)
{
	q->is_mig = q->has_utilization = false;
	q->last_us = 0;
	q->n_rows = 0;
	q->result = query(lib, q);
}

void nvml_query_done(struct nvml_query *q)
{
	free(q->row);
	free(q->buf);
}
