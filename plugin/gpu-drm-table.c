/* SPDX-License-Identifier: MIT */
#include "gpu-drm-internal.h"
#include "gpu-sys.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>

enum {
	PATH_SIZE = 320, /* "class/accel/", a name, and a file */
};

/*
 * Drivers whose fdinfo says nothing of clients, up to Linux 7.1: they have no
 * show_fdinfo. Any other is asked, and found out to be mute if it is.
 */
static const char *const silent_drivers[] = {
    /* GPUs */
    "nvidia", "nouveau", "nova", "nova-drm", "nova_drm", "NovaDrm", "radeon",
    "lima", "vc4", "vc4-drm", "vc4_drm", "powervr", "imagination", "tyr",
    "virtio_gpu", "virtio-pci", "vmwgfx", "qxl",
    /* displays */
    "ast", "mgag200", "bochs", "bochs-drm", "bochs_drm", "cirrus",
    "cirrus-qemu", "hibmc-drm", "hyperv_drm", "simple-framebuffer", "simpledrm",
    "efi-framebuffer", "efidrm", "vesadrm", "vesa-framebuffer", "ofdrm",
    "of-display", "vkms", "vgem", "faux_driver", "udl", "gm12u320", "gma500",
    "evdi", "xen-drm-front", "vboxvideo", "loongson",
    /* accelerators */
    "qaic", "habanalabs", "rocket", "ethosu", "ethos-u"};

static bool is_silent(const char *driver)
{
	for (size_t i = 0; i < ARRAY_SIZE(silent_drivers); i++)
		if (strcmp(driver, silent_drivers[i]) == 0)
			return true;
	return false;
}

static struct gpu_drm_device *device_for(struct gpu_drm *d, const char *driver,
					 const char *name)
{
	struct gpu_drm_device *v;

	for (size_t i = 0; i < d->n_devices; i++) {
		v = &d->device[i];
		if (strcmp(v->driver, driver) == 0 &&
		    strcmp(v->name, name) == 0)
			return v;
	}
	if (d->n_devices == GPU_DEVICES_MAX ||
	    array_reserve(&d->device, &d->device_cap, d->n_devices + 1,
			  sizeof(*v)) < 0)
		return NULL;
	v = &d->device[d->n_devices++];
	*v = (struct gpu_drm_device){.power_fd = -1};
	strcpy(v->driver, driver);
	strcpy(v->name, name);
	return v;
}

/* "226:128" as a device number. */
static bool parse_node(const char *text, size_t n, uint64_t *ret)
{
	const char *at = text, *end = text + n;
	uint64_t major, minor;

	if (!proctext_number(&at, end, &major) || at == end || *at++ != ':' ||
	    !proctext_number(&at, end, &minor) || at != end ||
	    major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	*ret = makedev((unsigned)major, (unsigned)minor);
	return true;
}

static void open_power(struct gpu_drm *d, struct gpu_drm_device *v,
		       const char *dir)
{
	char path[PATH_SIZE + 32];

	if (v->power_fd >= 0)
		return;
	snprintf(path, sizeof(path), "%s/device/power/runtime_status", dir);
	v->power_fd = openat(d->opt.sys_fd, path, O_RDONLY | O_CLOEXEC);
	keptfd_park(&v->power_fd);
}

struct listing {
	struct gpu_drm *d;
	const char *class;
};

/* An entry of the class: a node, a connector, or something else. */
static void take_node(void *arg, int dir_fd _unused_, const char *name)
{
	const struct listing *l = arg;
	struct gpu_drm *d = l->d;
	char dir[PATH_SIZE], path[PATH_SIZE + 32], text[64];
	char driver[GPU_WORD_SIZE], device[GPU_NAME_SIZE];
	struct gpu_drm_device *v;
	uint64_t node;
	int n;

	snprintf(dir, sizeof(dir), "%s/%s", l->class, name);
	snprintf(path, sizeof(path), "%s/dev", dir);
	n = gpu_sys_read(d->opt.sys_fd, path, text, sizeof(text));
	if (n < 0 || !parse_node(text, (size_t)n, &node))
		return;
	snprintf(path, sizeof(path), "%s/device", dir);
	if (gpu_sys_link(d->opt.sys_fd, path, device, sizeof(device)) < 0)
		return;
	/* Devices of no bus have no driver there; they go by their names. */
	snprintf(path, sizeof(path), "%s/device/driver", dir);
	if (gpu_sys_link(d->opt.sys_fd, path, driver, sizeof(driver)) < 0)
		snprintf(driver, sizeof(driver), "%.*s",
			 (int)sizeof(driver) - 1, device);
	if (is_silent(driver))
		return;
	v = device_for(d, driver, device);
	if (!v || v->n_nodes == GPU_DRM_NODES_MAX)
		return;
	v->is_listed = true;
	v->node[v->n_nodes++] = node;
	open_power(d, v, dir);
}

static void list_class(struct gpu_drm *d, const char *class)
{
	_cleanup_close_ int fd = gpu_sys_open_dir(d->opt.sys_fd, class);
	struct listing l = {d, class};

	gpu_sys_each(fd, take_node, &l);
}

void gpu_drm_list_devices(struct gpu_drm *d)
{
	for (size_t i = 0; i < d->n_devices; i++) {
		d->device[i].is_listed = false;
		d->device[i].n_nodes = 0;
	}
	list_class(d, "class/drm");
	list_class(d, "class/accel");
	for (size_t i = 0; i < d->n_devices; i++) {
		struct gpu_drm_device *v = &d->device[i];

		if (v->is_listed)
			continue;
		/* If it comes again, its driver may be another one. */
		v->is_mute = v->has_answered = false;
		v->n_silent = 0;
		base_closep(&v->power_fd);
		v->power_fd = -1;
	}
}

int gpu_drm_device_of(const struct gpu_drm *d, unsigned major, unsigned minor)
{
	uint64_t node = makedev(major, minor);

	for (size_t i = 0; i < d->n_devices; i++) {
		const struct gpu_drm_device *v = &d->device[i];

		for (unsigned k = 0; k < v->n_nodes; k++)
			if (v->node[k] == node)
				return gpu_drm_is_wanted(v) ? (int)i : -1;
	}
	return -1;
}
