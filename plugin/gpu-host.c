/* SPDX-License-Identifier: MIT */
#include "gpu-host.h"
#include "clocks.h"
#include "gpu-sys.h"

#include <stdio.h>

static int open_drm(struct gpu_host *h, const struct gpu_host_options *o)
{
	struct gpu_drm_options drm = {
	    .proc_fd = o->proc_fd,
	    .sys_fd = o->sys_fd,
	    .kept = o->kept,
	    .is_real = o->is_real,
	    .same_pids = o->same_pids,
	    .find = o->find,
	    .find_arg = o->find_arg,
	};

	return gpu_drm_open(&h->drm, &drm);
}

static bool close_drm(struct gpu_host *h)
{
	return gpu_drm_close(&h->drm);
}

static void begin_drm(struct gpu_host *h, const struct moment *now)
{
	gpu_drm_begin(&h->drm, now);
}

static void read_drm(struct gpu_host *h)
{
	gpu_drm_read(&h->drm, &h->use);
}

static void finish_drm(struct gpu_host *h, uint64_t wait_ns)
{
	gpu_drm_finish(&h->drm, &h->use, wait_ns);
}

static enum gpu_state state_of_drm(const struct gpu_host *h, char *what,
				   size_t size)
{
	return gpu_drm_state(&h->drm, &h->use, what, size);
}

/*
 * The library tells PIDs of the first namespace, or of ours. Below a proc of
 * another namespace they would be somebody else's.
 */
static int open_nvml(struct gpu_host *h, const struct gpu_host_options *o)
{
	struct gpu_nvml_options nvml = {
	    .library = o->nvml,
	    .proc_fd = o->is_real && !o->same_pids ? -1 : o->proc_fd,
	    .sys_fd = o->sys_fd,
	    .first_pids =
		!o->is_real || gpu_sys_is_first_pidns(o->proc_fd, "self"),
	    .find = o->find,
	    .find_arg = o->find_arg,
	};

	return gpu_nvml_open(&h->nvml, &nvml);
}

static bool close_nvml(struct gpu_host *h)
{
	return gpu_nvml_close(&h->nvml);
}

static void begin_nvml(struct gpu_host *h, const struct moment *now)
{
	gpu_nvml_begin(&h->nvml, now);
}

static void finish_nvml(struct gpu_host *h, uint64_t wait_ns)
{
	gpu_nvml_finish(&h->nvml, &h->use, wait_ns);
}

static enum gpu_state state_of_nvml(const struct gpu_host *h, char *what,
				    size_t size)
{
	return gpu_nvml_state(&h->nvml, what, size);
}

static int open_kfd(struct gpu_host *h, const struct gpu_host_options *o)
{
	struct gpu_kfd_options kfd = {
	    .sys_fd = o->sys_fd,
	    .first_pids =
		!o->is_real || gpu_sys_is_first_pidns(o->proc_fd, "1") ||
		(o->same_pids && gpu_sys_is_first_pidns(o->proc_fd, "self")),
	    .find = o->find,
	    .find_arg = o->find_arg,
	};

	gpu_kfd_open(&h->kfd, &kfd);
	return 0;
}

static bool close_kfd(struct gpu_host *h)
{
	gpu_kfd_close(&h->kfd);
	return true;
}

static void begin_kfd(struct gpu_host *h, const struct moment *now)
{
	gpu_kfd_begin(&h->kfd, now);
}

static void finish_kfd(struct gpu_host *h, uint64_t wait_ns _unused_)
{
	gpu_kfd_finish(&h->kfd, &h->use);
}

static enum gpu_state state_of_kfd(const struct gpu_host *h, char *what,
				   size_t size)
{
	snprintf(what, size, "%s", "");
	return gpu_kfd_state(&h->kfd);
}

static void read_nothing(struct gpu_host *h _unused_)
{
}

static const struct {
	const char *name;
	int (*open)(struct gpu_host *h, const struct gpu_host_options *o);
	bool (*close)(struct gpu_host *h);
	void (*begin)(struct gpu_host *h, const struct moment *now);
	void (*read)(struct gpu_host *h);
	void (*finish)(struct gpu_host *h, uint64_t wait_ns);
	enum gpu_state (*state)(const struct gpu_host *h, char *what,
				size_t size);
} backends[] = {
    {"drm", open_drm, close_drm, begin_drm, read_drm, finish_drm, state_of_drm},
    {"nvml", open_nvml, close_nvml, begin_nvml, read_nothing, finish_nvml,
     state_of_nvml},
    {"kfd", open_kfd, close_kfd, begin_kfd, read_nothing, finish_kfd,
     state_of_kfd},
};

int gpu_host_open(struct gpu_host *h, const struct gpu_host_options *o)
{
	*h = (struct gpu_host){0};
	gpu_init(&h->use);
	for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
		int r = backends[i].open(h, o);

		if (r < 0) {
			while (i-- > 0)
				backends[i].close(h);
			return r;
		}
	}
	return 0;
}

bool gpu_host_close(struct gpu_host *h)
{
	bool all = true;

	for (size_t i = 0; i < ARRAY_SIZE(backends); i++)
		all &= backends[i].close(h);
	gpu_done(&h->use);
	return all;
}

void gpu_host_begin(struct gpu_host *h, const struct moment *now)
{
	gpu_begin(&h->use);
	for (size_t i = 0; i < ARRAY_SIZE(backends); i++)
		backends[i].begin(h, now);
}

void gpu_host_read(struct gpu_host *h)
{
	for (size_t i = 0; i < ARRAY_SIZE(backends); i++)
		backends[i].read(h);
}

int gpu_host_finish(struct gpu_host *h, uint64_t wait_ns)
{
	uint64_t begun_ns = clocks_read(CLOCK_MONOTONIC);

	for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
		uint64_t spent_ns = clocks_read(CLOCK_MONOTONIC) - begun_ns;

		backends[i].finish(h,
				   wait_ns > spent_ns ? wait_ns - spent_ns : 0);
	}
	return gpu_end(&h->use);
}

bool gpu_host_health(const struct gpu_host *h, size_t i, struct gpu_health *ret)
{
	if (i >= ARRAY_SIZE(backends))
		return false;
	ret->backend = backends[i].name;
	ret->state = backends[i].state(h, ret->what, sizeof(ret->what));
	return true;
}
