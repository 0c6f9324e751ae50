/* SPDX-License-Identifier: MIT */
#include "fakenvml.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Set by the build: 1, 2 or 3. */
#ifndef FAKE_VERSION
#define FAKE_VERSION 2
#endif

#define EXPORT __attribute__((visibility("default")))

enum {
	SUCCESS = 0,
	UNINITIALIZED = 1,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7,
};

extern fake_nvml_pointer fake_nvml;
EXPORT fake_nvml_pointer fake_nvml;

static struct fake_device *device_of(const struct fake_handle *h)
{
	return &h->fake->device[h->device];
}

/* Every call comes through here, with its name. */
static int enter(struct fake_nvml *f, const char *name,
		 const struct fake_handle *h)
{
	const char *hang = atomic_load(&f->hang);
	char byte;

	atomic_fetch_add(&f->n_calls, 1);
	if (h)
		atomic_fetch_add(&device_of(h)->n_calls, 1);
	if (hang && strcmp(hang, name) == 0 &&
	    (f->hang_device < 0 || !h || f->hang_device == (int)h->device)) {
		atomic_fetch_add(&f->n_hanging, 1);
		while (read(f->hang_fd, &byte, 1) < 0 && errno == EINTR)
			;
		atomic_fetch_sub(&f->n_hanging, 1);
	}
	if (atomic_load(&f->n_init) == atomic_load(&f->n_shutdown) &&
	    strcmp(name, "nvmlInit_v2") != 0)
		return UNINITIALIZED;
	return h ? device_of(h)->result : SUCCESS;
}

static unsigned long long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (unsigned long long)ts.tv_sec * 1000000 +
	       (unsigned long long)ts.tv_nsec / 1000;
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void)
{
	struct fake_nvml *f = atomic_load(&fake_nvml);
	int r = enter(f, "nvmlInit_v2", NULL);

	if (r == SUCCESS)
		r = f->init_result;
	if (r == SUCCESS)
		atomic_fetch_add(&f->n_init, 1);
	return r;
}

EXPORT int nvmlShutdown(void);
EXPORT int nvmlShutdown(void)
{
	struct fake_nvml *f = atomic_load(&fake_nvml);
	int r = enter(f, "nvmlShutdown", NULL);

	if (r == SUCCESS)
		atomic_fetch_add(&f->n_shutdown, 1);
	return r;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *n);
EXPORT int nvmlDeviceGetCount_v2(unsigned *n)
{
	struct fake_nvml *f = atomic_load(&fake_nvml);
	int r = enter(f, "nvmlDeviceGetCount_v2", NULL);

	if (r == SUCCESS)
		*n = f->n_devices;
	return r;
}

static int give_handle(struct fake_nvml *f, const char *name, unsigned i,
		       void **ret)
{
	int r;

	f->whole[i] = (struct fake_handle){f, i, -1};
	r = enter(f, name, &f->whole[i]);
	if (r == SUCCESS)
		*ret = &f->whole[i];
	return r;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **ret);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **ret)
{
	struct fake_nvml *f = atomic_load(&fake_nvml);

	if (i >= f->n_devices)
		return INVALID_ARGUMENT;
	return give_handle(f, "nvmlDeviceGetHandleByIndex_v2", i, ret);
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **ret);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **ret)
{
	struct fake_nvml *f = atomic_load(&fake_nvml);

	for (unsigned i = 0; i < f->n_devices; i++)
		if (strcasecmp(f->device[i].bus_id, bus_id) == 0)
			return give_handle(
			    f, "nvmlDeviceGetHandleByPciBusId_v2", i, ret);
	return NOT_FOUND;
}

struct pci_info {
	char bus_id_legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

EXPORT int nvmlDeviceGetPciInfo_v3(void *handle, struct pci_info *info);
EXPORT int nvmlDeviceGetPciInfo_v3(void *handle, struct pci_info *info)
{
	int r = enter(((struct fake_handle *)handle)->fake,
		      "nvmlDeviceGetPciInfo_v3", handle);

	if (r == SUCCESS)
		snprintf(info->bus_id, sizeof(info->bus_id), "0000%s",
			 device_of(handle)->bus_id);
	return r;
}

EXPORT int nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *next);
EXPORT int nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *next)
{
	int r = enter(((struct fake_handle *)handle)->fake,
		      "nvmlDeviceGetMigMode", handle);

	if (r == SUCCESS && !device_of(handle)->n_parts)
		return NOT_SUPPORTED;
	if (r == SUCCESS)
		*now = *next = device_of(handle)->is_mig;
	return r;
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *n);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *n)
{
	int r = enter(((struct fake_handle *)handle)->fake,
		      "nvmlDeviceGetMaxMigDeviceCount", handle);

	if (r == SUCCESS)
		*n = 7;
	return r;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned i,
					       void **ret);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned i,
					       void **ret)
{
	struct fake_handle *h = handle;
	struct fake_nvml *f = h->fake;
	int r = enter(f, "nvmlDeviceGetMigDeviceHandleByIndex", h);

	if (r == SUCCESS && i >= device_of(handle)->n_parts)
		return NOT_FOUND;
	if (r == SUCCESS) {
		f->part[h->device][i] =
		    (struct fake_handle){f, h->device, (int)i};
		*ret = &f->part[h->device][i];
	}
	return r;
}

static void put(const struct fake_nvml *f, char *to,
		const struct fake_process *p)
{
	unsigned pid = p->pid;
	unsigned long long bytes = p->bytes;
	unsigned instance = p->instance, compute = p->instance;

	memcpy(to, &pid, 4);
	memcpy(to + 8, &bytes, 8);
	if (FAKE_VERSION == 1)
		return;
	memcpy(to + 16, &instance, 4);
	memcpy(to + 20, &compute, 4);
	if (FAKE_VERSION == 3 && f->long_rows)
		memset(to + 24, 0, 8); /* protected memory */
}

static int give_list(const char *name, void *handle, unsigned kind, unsigned *n,
		     char *infos)
{
	const struct fake_handle *h = handle;
	const struct fake_nvml *f = h->fake;
	struct fake_device *v = device_of(h);
	const struct fake_list *list =
	    h->part < 0 ? &v->list[kind] : &v->part[h->part];
	size_t stride = FAKE_VERSION == 1 ? 16 : 24;
	int r = enter(((struct fake_handle *)handle)->fake, name, handle);
	unsigned room = *n;

	if (r == SUCCESS)
		r = h->part < 0 ? list->result : v->part_result;
	if (r != SUCCESS)
		return r;
	/* A part tells all of its processes as those that compute. */
	*n = h->part >= 0 && kind ? 0 : list->n;
	if (*n > room)
		return INSUFFICIENT_SIZE;
	if (FAKE_VERSION == 3 && f->long_rows)
		stride = 32;
	for (unsigned i = 0; i < *n; i++)
		put(f, infos + i * stride, &list->process[i]);
	return SUCCESS;
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#if FAKE_VERSION == 1
#define SUFFIX
#elif FAKE_VERSION == 2
#define SUFFIX _v2
#else
#define SUFFIX _v3
#endif

#define LIST(name, kind)                                                       \
	EXPORT int PASTE(name, SUFFIX)(void *handle, unsigned *n,              \
				       void *infos);                           \
	EXPORT int PASTE(name, SUFFIX)(void *handle, unsigned *n, void *infos) \
	{                                                                      \
		return give_list(#name, handle, kind, n, infos);               \
	}

LIST(nvmlDeviceGetComputeRunningProcesses, 0)
LIST(nvmlDeviceGetGraphicsRunningProcesses, 1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, 2)

EXPORT int nvmlDeviceGetProcessUtilization(void *handle,
					   struct fake_sample *samples,
					   unsigned *n,
					   unsigned long long since_us);
EXPORT int nvmlDeviceGetProcessUtilization(void *handle,
					   struct fake_sample *samples,
					   unsigned *n,
					   unsigned long long since_us)
{
	const struct fake_handle *h = handle;
	const struct fake_nvml *f = h->fake;
	struct fake_device *v = device_of(h);
	int r = enter(h->fake, "nvmlDeviceGetProcessUtilization", h);
	unsigned room = *n, said;

	v->since_us = since_us;
	if (r == SUCCESS)
		r = v->is_mig ? NOT_SUPPORTED : v->utilization_result;
	if (r != SUCCESS)
		return r;
	said = f->says_hundred ? 100 : v->n_samples;
	*n = said;
	if (said > room)
		return INSUFFICIENT_SIZE;
	memcpy(samples, v->sample, v->n_samples * sizeof(*samples));
	for (unsigned i = 0; i < v->n_samples; i++)
		if (samples[i].time_us == FAKE_NOW)
			samples[i].time_us = now_us();
	return SUCCESS;
}
