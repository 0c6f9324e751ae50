/* SPDX-License-Identifier: MIT */
#include "clocks.h"
#include "gpu-nvml-internal.h"

#include <fcntl.h>
#include <stdio.h>

enum {
	WORKERS = 4, /* calls that may be stuck before all rest */
};

int gpu_nvml_open(struct gpu_nvml *n, const struct gpu_nvml_options *o)
{
	*n = (struct gpu_nvml){
	    .opt = *o,
	    .lane = lane_open("proctally-nvml", WORKERS),
	    .lib = nvml_lib_new(),
	};
	if (n->lane && n->lib)
		return 0;
	gpu_nvml_close(n);
	return -ENOMEM;
}

static void free_job(struct nvml_job *j)
{
	if (!j)
		return;
	nvml_query_done(&j->query);
	nvml_lib_put(j->lib);
	free(j);
}

static void release_job(struct lane_job *job)
{
	free_job((struct nvml_job *)job);
}

/* The library is not unloaded and not shut down: a call may be in it. */
bool gpu_nvml_close(struct gpu_nvml *n)
{
	bool all = lane_close(n->lane);

	if (!n->is_busy)
		free_job(n->job);
	for (size_t i = 0; i < n->n_devices; i++) {
		struct gpu_nvml_device *v = &n->device[i];

		if (!v->is_busy)
			free_job(v->job);
		free(v->user);
	}
	free(n->device);
	nvml_lib_put(n->lib);
	*n = (struct gpu_nvml){0};
	return all;
}

static void run_job(struct lane_job *job)
{
	struct nvml_job *j = (struct nvml_job *)job;

	_Static_assert(offsetof(struct nvml_job, job) == 0, "same address");
	switch (j->what) {
	case NVML_BEGIN:
		j->result = NVML_SUCCESS;
		if (!j->is_loaded)
			j->result = nvml_lib_open(j->lib, j->path);
		j->is_loaded = j->result == NVML_SUCCESS;
		if (j->result == NVML_SUCCESS)
			j->result = j->lib->init();
		j->n_devices = 0;
		if (j->result == NVML_SUCCESS && j->wants_count &&
		    j->lib->count)
			j->result = j->lib->count(&j->n_devices);
		break;
	case NVML_QUERY:
		nvml_query_run(j->lib, &j->query);
		break;
	case NVML_END:
		j->result =
		    j->lib->shutdown ? j->lib->shutdown() : NVML_SUCCESS;
		break;
	}
}

static struct nvml_job *new_job(struct gpu_nvml *n)
{
	const char *path = n->opt.library ? n->opt.library : GPU_NVML_LIBRARY;
	struct nvml_job *j = calloc(1, sizeof(*j) + strlen(path) + 1);

	if (!j)
		return NULL;
	strcpy(j->path, path);
	j->lib = nvml_lib_get(n->lib);
	return j;
}

static bool submit(struct gpu_nvml *n, struct nvml_job *j, enum nvml_what what,
		   bool *is_busy)
{
	j->job = (struct lane_job){.run = run_job, .release = release_job};
	j->what = what;
	*is_busy = true;
	if (lane_submit(n->lane, &j->job) < 0)
		*is_busy = false;
	return *is_busy;
}

/* Initializes the library, if there is a driver and a device that is awake. */
static void try_to_begin(struct gpu_nvml *n)
{
	bool is_listed;

	n->retry_ns = n->now.mono_ns + GPU_NVML_RETRY_NS;
	if (faccessat(n->opt.proc_fd, "driver/nvidia/version", F_OK, 0) < 0) {
		n->state = GPU_STATE_MISSING;
		return;
	}
	is_listed = gpu_nvml_list_devices(n);
	if (is_listed && !gpu_nvml_look_at_power(n)) {
		n->phase = GPU_NVML_RESTS;
		n->has_slept = true;
		return;
	}
	if (!n->job)
		n->job = new_job(n);
	if (!n->job)
		return;
	n->job->wants_count = !is_listed;
	n->job->is_loaded = n->is_loaded;
	if (submit(n, n->job, NVML_BEGIN, &n->is_busy))
		n->phase = GPU_NVML_BEGINS;
}

/*
 * While it rests the devices are let to fall asleep. If none does it was in
 * vain, and is not tried again.
 */
static void rest(struct gpu_nvml *n)
{
	bool is_on = gpu_nvml_look_at_power(n);

	n->has_slept |= !is_on;
	if (!is_on)
		return;
	if (!n->has_slept) {
		if (n->now.mono_ns - n->rest_ns < GPU_NVML_RETRY_NS)
			return;
		n->never_rests = true;
	}
	n->phase = GPU_NVML_ABSENT;
	try_to_begin(n);
}

static void ask(struct gpu_nvml *n, unsigned number)
{
	struct gpu_nvml_device *v = &n->device[number];
	struct nvml_query *q;

	if (!v->job)
		v->job = new_job(n);
	if (!v->job)
		return;
	v->job->device = number;
	q = &v->job->query;
	strcpy(q->bus_id, v->name);
	q->index = v->index;
	q->now_us = n->now.real_ns / 1000;
	v->job->generation = n->generation;
	/* The clock was set back: nothing would be new for long. */
	if (v->since_us > q->now_us + 5000000)
		v->since_us = 0;
	q->since_us = v->since_us;
	q->window_ns = v->asked_ns ? n->now.mono_ns - v->asked_ns : 0;
	v->query_ns = n->now.mono_ns;
	if (submit(n, v->job, NVML_QUERY, &v->is_busy))
		n->counts.n_queries++;
}

static void ask_all(struct gpu_nvml *n)
{
	if (!n->is_by_index &&
	    n->now.mono_ns - n->listed_ns >= GPU_NVML_RETRY_NS)
		gpu_nvml_list_devices(n);
	gpu_nvml_look_at_power(n);
	if (gpu_nvml_may_rest(n)) {
		if (n->job && submit(n, n->job, NVML_END, &n->is_busy))
			n->phase = GPU_NVML_ENDS;
		return;
	}
	for (size_t i = 0; i < n->n_devices; i++) {
		struct gpu_nvml_device *v = &n->device[i];

		if (v->is_listed && !v->is_asleep && !v->is_busy &&
		    n->now.mono_ns >= v->retry_ns)
			ask(n, (unsigned)i);
	}
}

void gpu_nvml_begin(struct gpu_nvml *n, const struct moment *now)
{
	n->tick++;
	n->now = *now;
	switch (n->phase) {
	case GPU_NVML_ABSENT:
		if (now->mono_ns >= n->retry_ns)
			try_to_begin(n);
		break;
	case GPU_NVML_RUNS:
		ask_all(n);
		break;
	case GPU_NVML_RESTS:
		rest(n);
		break;
	case GPU_NVML_BEGINS:
	case GPU_NVML_ENDS:
		break;
	}
}

/* The library forgot its devices: their handles are void. */
static void forget_handles(struct gpu_nvml *n)
{
	for (size_t i = 0; i < n->n_devices; i++) {
		struct gpu_nvml_device *v = &n->device[i];

		if (v->job && !v->is_busy)
			v->job->query.device = NULL;
		v->asked_ns = v->since_us = 0;
		v->idle_ticks = 0;
	}
}

static void take_begin(struct gpu_nvml *n, const struct nvml_job *j)
{
	n->is_loaded = j->is_loaded;
	n->state = gpu_nvml_state_of(j->result);
	if (j->result != NVML_SUCCESS) {
		n->phase = GPU_NVML_ABSENT;
		return;
	}
	n->phase = GPU_NVML_RUNS;
	n->generation++;
	n->is_by_index = j->wants_count;
	forget_handles(n);
	while (j->wants_count && n->n_devices < j->n_devices &&
	       gpu_nvml_add_device(n))
		;
	if (j->wants_count)
		for (size_t i = 0; i < n->n_devices; i++)
			n->device[i].is_listed = i < j->n_devices;
}

static void take_end(struct gpu_nvml *n)
{
	forget_handles(n);
	n->phase = GPU_NVML_RESTS;
	n->has_slept = false;
	n->rest_ns = n->now.mono_ns;
}

static void mark_stuck(void *arg, const struct lane_job *job)
{
	struct gpu_nvml *n = arg;
	const struct nvml_job *j = (const struct nvml_job *)job;

	n->counts.n_stalls++;
	if (j->what == NVML_QUERY)
		n->device[j->device].is_stuck = true;
	else
		n->state = GPU_STATE_STUCK;
}

/* Returns true if the library can be asked from now on. */
static bool collect(struct gpu_nvml *n, struct gpu *g, uint64_t wait_ns)
{
	size_t n_jobs = lane_pending(n->lane);
	struct lane_job *job;
	bool has_begun = false;

	if (n_jobs)
		lane_wait(n->lane, wait_ns, wait_ns / n_jobs + 1);
	while ((job = lane_take(n->lane))) {
		struct nvml_job *j = (struct nvml_job *)job;

		if (j->what != NVML_QUERY)
			n->is_busy = false;
		if (j->what == NVML_BEGIN) {
			take_begin(n, j);
			has_begun = n->phase == GPU_NVML_RUNS;
		} else if (j->what == NVML_END)
			take_end(n);
		else
			gpu_nvml_take_answer(n, g, j);
	}
	return has_begun;
}

void gpu_nvml_finish(struct gpu_nvml *n, struct gpu *g, uint64_t wait_ns)
{
	uint64_t begun_ns = clocks_read(CLOCK_MONOTONIC), spent_ns;

	/* Two readings are then enough for a share of the time between. */
	if (collect(n, g, wait_ns)) {
		ask_all(n);
		spent_ns = clocks_read(CLOCK_MONOTONIC) - begun_ns;
		collect(n, g, wait_ns > spent_ns ? wait_ns - spent_ns : 0);
	}
	lane_watch(n->lane, GPU_NVML_STUCK_NS, mark_stuck, n);
	gpu_nvml_hold_all(n, g);
}

enum gpu_state gpu_nvml_state(const struct gpu_nvml *n, char *what, size_t size)
{
	const struct gpu_nvml_device *bad = NULL;

	snprintf(what, size, "%s", "");
	if (n->phase == GPU_NVML_RESTS)
		return GPU_STATE_RESTING;
	if (n->state != GPU_STATE_OK)
		return n->state;
	for (size_t i = 0; i < n->n_devices; i++) {
		const struct gpu_nvml_device *v = &n->device[i];

		if (v->is_listed && (v->is_stuck || v->state != GPU_STATE_OK) &&
		    (!bad || v->is_stuck))
			bad = v;
	}
	if (!bad)
		return GPU_STATE_OK;
	snprintf(what, size, "%s", bad->name);
	return bad->is_stuck ? GPU_STATE_STUCK : bad->state;
}
