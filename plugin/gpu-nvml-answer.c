/* SPDX-License-Identifier: MIT */
#include "gpu-nvml-internal.h"

enum gpu_state gpu_nvml_state_of(int result)
{
	switch (result) {
	case NVML_SUCCESS:
	case NVML_NOT_SUPPORTED:
		return GPU_STATE_OK;
	case NVML_NO_LIBRARY:
	case NVML_DRIVER_NOT_LOADED:
		return GPU_STATE_MISSING;
	case NVML_NO_PERMISSION:
	case NVML_UNKNOWN: /* the control group denies the device */
		return GPU_STATE_DENIED;
	case NVML_GPU_IS_LOST:
	case NVML_RESET_REQUIRED:
		return GPU_STATE_LOST;
	case NVML_VERSION_MISMATCH:
		return GPU_STATE_MISMATCH;
	default:
		return GPU_STATE_FAILED;
	}
}

static void set_engine(struct gpu_reading *r, struct str name, uint64_t sum,
		       unsigned n_samples, uint64_t window_ns)
{
	double part = n_samples ? (double)sum / 100.0 / (double)n_samples : 0.0;

	r->engine[r->n_engines++] = (struct gpu_engine){
	    .name = name,
	    .has = GPU_GROWN,
	    .capacity = 1,
	    .busy_ns = (uint64_t)(part * (double)window_ns),
	    .window_ns = window_ns,
	};
}

static void add_user(struct gpu_nvml_device *v, int client,
		     const struct gpu_holder *h)
{
	if (array_reserve(&v->user, &v->user_cap, v->n_users + 1,
			  sizeof(*v->user)) == 0)
		v->user[v->n_users++] =
		    (struct gpu_nvml_user){client, h->pid, h->start};
}

/* What a process has on a device: the rows of its parts, added up. */
static void take_row(struct gpu_nvml *n, struct gpu *g,
		     struct gpu_nvml_device *v, const struct nvml_query *q,
		     size_t first)
{
	struct gpu_reading r = {
	    .driver = STR("nvidia"),
	    .device = str_of(v->name),
	    .kind = GPU_ID_NVML,
	    .read_ns = v->query_ns,
	};
	struct nvml_row sum = q->row[first];
	uint64_t window_ns = MIN(q->window_ns, GPU_NVML_WINDOW_MAX_NS);
	struct gpu_holder h;
	int client;

	for (size_t i = first + 1; i < q->n_rows; i++) {
		const struct nvml_row *row = &q->row[i];

		if (row->pid != sum.pid)
			continue;
		sum.is_listed |= row->is_listed;
		sum.has_bytes |= row->has_bytes;
		sum.bytes += row->bytes;
		sum.n_samples += row->n_samples;
		sum.sm += row->sm;
		sum.encoder += row->encoder;
		sum.decoder += row->decoder;
	}
	/* Elsewhere the two lists may tell numbers of different namespaces. */
	if (!n->opt.first_pids && !(sum.is_listed && sum.n_samples))
		return;
	if (sum.pid > INT32_MAX ||
	    !n->opt.find(n->opt.find_arg, (pid_t)sum.pid, &h)) {
		n->counts.n_unknown++;
		return;
	}
	r.id = gpu_process_id(&h);
	if (q->has_utilization && window_ns) {
		set_engine(&r, STR("sm"), sum.sm, sum.n_samples, window_ns);
		set_engine(&r, STR("encode"), sum.encoder, sum.n_samples,
			   window_ns);
		set_engine(&r, STR("decode"), sum.decoder, sum.n_samples,
			   window_ns);
	}
	if (sum.has_bytes) {
		r.region[0] = (struct gpu_region){
		    .name = STR("vram"),
		    .has = 1u << GPU_SIZE_RESIDENT,
		};
		r.region[0].bytes[GPU_SIZE_RESIDENT] = sum.bytes;
		r.n_regions = 1;
	}
	client = gpu_take(g, -1, &r, 0);
	if (client >= 0)
		add_user(v, client, &h);
}

static bool is_first_of_pid(const struct nvml_query *q, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (q->row[i].pid == q->row[at].pid)
			return false;
	return true;
}

/* Who only holds memory does not keep it busy. */
static bool is_used(const struct nvml_query *q)
{
	for (size_t i = 0; i < q->n_rows; i++)
		if (!q->has_utilization || q->row[i].sm || q->row[i].encoder ||
		    q->row[i].decoder)
			return true;
	return false;
}

void gpu_nvml_take_answer(struct gpu_nvml *n, struct gpu *g, struct nvml_job *j)
{
	struct gpu_nvml_device *v = &n->device[j->device];
	struct nvml_query *q = &j->query;

	v->is_busy = v->is_stuck = false;
	if (j->generation != n->generation)
		q->device = NULL;
	v->state = gpu_nvml_state_of(q->result);
	v->n_users = 0;
	if (q->result == NVML_UNINITIALIZED) {
		n->phase = GPU_NVML_ABSENT;
		n->state = GPU_STATE_FAILED;
		n->retry_ns = n->now.mono_ns + GPU_NVML_RETRY_NS;
	}
	if (v->state != GPU_STATE_OK) {
		/* It may come back as another one. */
		q->device = NULL;
		v->retry_ns = n->now.mono_ns + GPU_NVML_RETRY_NS;
		v->asked_ns = v->since_us = 0;
		return;
	}
	strcpy(v->name, q->bus_id);
	v->answer_tick = n->tick;
	for (size_t i = 0; i < q->n_rows; i++)
		if (is_first_of_pid(q, i))
			take_row(n, g, v, q, i);
	v->since_us = MAX(v->since_us, q->last_us);
	v->asked_ns = v->query_ns;
	v->idle_ticks = is_used(q) ? 0 : v->idle_ticks + 1;
}

/*
 * What the last answer was stands while the next one is only late, and while
 * nobody is asked so that the device can sleep.
 */
static bool does_stand(const struct gpu_nvml *n,
		       const struct gpu_nvml_device *v)
{
	if (v->is_stuck || v->state != GPU_STATE_OK)
		return false;
	return v->is_asleep || n->phase == GPU_NVML_ENDS ||
	       n->phase == GPU_NVML_RESTS || n->phase == GPU_NVML_BEGINS ||
	       n->tick - v->answer_tick <= 1;
}

void gpu_nvml_hold_all(struct gpu_nvml *n, struct gpu *g)
{
	for (size_t i = 0; i < n->n_devices; i++) {
		struct gpu_nvml_device *v = &n->device[i];

		/* Who is not held is forgotten there: numbers are reused. */
		if (!does_stand(n, v))
			v->n_users = 0;
		for (size_t k = 0; k < v->n_users;) {
			struct gpu_holder h;

			if (!n->opt.find(n->opt.find_arg, v->user[k].pid, &h) ||
			    h.start != v->user[k].start) {
				v->user[k] = v->user[--v->n_users];
				continue;
			}
			gpu_hold(g, v->user[k].client, &h);
			gpu_stands(g, v->user[k++].client);
		}
	}
}
