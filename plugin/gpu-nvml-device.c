/* SPDX-License-Identifier: MIT */
#include "gpu-nvml-internal.h"
#include "gpu-sys.h"

#include <stdio.h>

enum {
	PATH_SIZE = 320,
};

struct gpu_nvml_device *gpu_nvml_add_device(struct gpu_nvml *n)
{
	struct gpu_nvml_device *v;

	if (n->n_devices == GPU_DEVICES_MAX ||
	    array_reserve(&n->device, &n->device_cap, n->n_devices + 1,
			  sizeof(*v)) < 0)
		return NULL;
	v = &n->device[n->n_devices];
	*v = (struct gpu_nvml_device){
	    .index = (unsigned)n->n_devices++,
	    .state = GPU_STATE_OK,
	};
	return v;
}

static void list_device(void *arg, int dir_fd _unused_, const char *name)
{
	struct gpu_nvml *n = arg;
	struct gpu_nvml_device *v = NULL;

	/* "0000:01:00.0", among "bind", "module" and the like. */
	if (!strchr(name, ':') || strlen(name) >= sizeof(v->name))
		return;
	for (size_t i = 0; i < n->n_devices && !v; i++)
		if (strcmp(n->device[i].name, name) == 0)
			v = &n->device[i];
	if (!v)
		v = gpu_nvml_add_device(n);
	if (!v)
		return;
	strcpy(v->name, name);
	v->is_listed = true;
}

bool gpu_nvml_list_devices(struct gpu_nvml *n)
{
	_cleanup_close_ int fd = -1;
	bool some = false;

	if (n->opt.sys_fd >= 0)
		fd = gpu_sys_open_dir(n->opt.sys_fd, "bus/pci/drivers/nvidia");
	if (fd < 0)
		return false;
	for (size_t i = 0; i < n->n_devices; i++)
		n->device[i].is_listed = false;
	gpu_sys_each(fd, list_device, n);
	for (size_t i = 0; i < n->n_devices; i++)
		some |= n->device[i].is_listed;
	n->listed_ns = n->now.mono_ns;
	return some;
}

bool gpu_nvml_look_at_power(struct gpu_nvml *n)
{
	bool is_known = false, is_on = false;
	char dir[PATH_SIZE];

	for (size_t i = 0; i < n->n_devices; i++) {
		struct gpu_nvml_device *v = &n->device[i];

		if (!v->is_listed || !v->name[0] || n->opt.sys_fd < 0)
			continue;
		snprintf(dir, sizeof(dir), "bus/pci/devices/%s", v->name);
		v->is_asleep =
		    gpu_sys_power(n->opt.sys_fd, dir) != GPU_POWER_ON;
		/* Who sleeps does nothing: there is nothing to ask later. */
		if (v->is_asleep && v->asked_ns)
			v->asked_ns = n->now.mono_ns;
		is_known = true;
		is_on |= !v->is_asleep;
	}
	return !is_known || is_on;
}

bool gpu_nvml_may_rest(const struct gpu_nvml *n)
{
	bool may_sleep = false;
	char dir[PATH_SIZE];

	if (n->never_rests || n->n_devices == 0 || n->opt.sys_fd < 0)
		return false;
	for (size_t i = 0; i < n->n_devices; i++) {
		const struct gpu_nvml_device *v = &n->device[i];

		if (!v->is_listed)
			continue;
		if (v->is_busy ||
		    (!v->is_asleep && v->idle_ticks < GPU_NVML_IDLE_TICKS))
			return false;
		snprintf(dir, sizeof(dir), "bus/pci/devices/%s", v->name);
		may_sleep |= gpu_sys_may_sleep(n->opt.sys_fd, dir);
	}
	return may_sleep;
}
