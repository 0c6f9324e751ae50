/* SPDX-License-Identifier: MIT */
/*
 * Fake roots of /proc and /sys for the tests of GPUs: a directory of its own
 * with proc/ and sys/, made piece by piece. Character devices that everybody
 * has stand for those of GPUs.
 */
#pragma once

#include "base.h"
#include "gpu.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
	GPUROOT_PROCESSES_MAX = 64,
};

struct gpuroot {
	char path[64];
	int proc_fd, sys_fd;
	uint64_t now_s; /* seconds; real time, too */
	struct gpu_holder process[GPUROOT_PROCESSES_MAX];
	size_t n_processes;
};

/* /dev/null and the like by their numbers, as sysfs writes them. */
#define GPUROOT_NULL "1:3"
#define GPUROOT_ZERO "1:5"
#define GPUROOT_FULL "1:7"

_printf_(3, 4) _unused_
    static void gpuroot_path(const struct gpuroot *r, char *buf,
			     const char *fmt, ...)
{
	va_list ap;
	int n = sprintf(buf, "%s/", r->path);

	va_start(ap, fmt);
	vsprintf(buf + n, fmt, ap);
	va_end(ap);
}

/* Makes the directories above a file of that name. */
_unused_ static void gpuroot_parents(const char *path)
{
	char dir[512];

	for (const char *s = strchr(path + 1, '/'); s; s = strchr(s + 1, '/')) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(s - path), path);
		mkdir(dir, 0755);
	}
}

_unused_ static void gpuroot_write(const struct gpuroot *r, const char *name,
				   const char *text)
{
	char path[512];
	FILE *f;

	gpuroot_path(r, path, "%s", name);
	gpuroot_parents(path);
	f = fopen(path, "we");
	check(f != NULL);
	if (!f)
		return;
	fputs(text, f);
	fclose(f);
}

_unused_ static void gpuroot_dir(const struct gpuroot *r, const char *name)
{
	char path[512];

	gpuroot_path(r, path, "%s/", name);
	gpuroot_parents(path);
}

_unused_ static void gpuroot_link(const struct gpuroot *r, const char *name,
				  const char *target)
{
	char path[512];

	gpuroot_path(r, path, "%s", name);
	gpuroot_parents(path);
	unlink(path);
	check_int(symlink(target, path), 0);
}

_unused_ static void gpuroot_unlink(const struct gpuroot *r, const char *name)
{
	char path[512];

	gpuroot_path(r, path, "%s", name);
	check_int(unlink(path), 0);
}

_unused_ static int gpuroot_remove_one(const char *path,
				       const struct stat *st _unused_,
				       int type _unused_,
				       struct FTW *ftw _unused_)
{
	return remove(path);
}

_unused_ static void gpuroot_begin(struct gpuroot *r)
{
	*r = (struct gpuroot){.now_s = 1000};
	strcpy(r->path, "/tmp/gpuroot.XXXXXX");
	check(mkdtemp(r->path) != NULL);
	gpuroot_dir(r, "proc");
	gpuroot_dir(r, "sys");
	char path[512];
	gpuroot_path(r, path, "proc");
	r->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	gpuroot_path(r, path, "sys");
	r->sys_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

_unused_ static void gpuroot_end(struct gpuroot *r)
{
	close(r->proc_fd);
	close(r->sys_fd);
	nftw(r->path, gpuroot_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A device of a class ("drm/card0"), of a driver, on a bus or a platform. */
_unused_ static void gpuroot_device(const struct gpuroot *r, const char *node,
				    const char *number, const char *device,
				    const char *driver)
{
	char name[256], target[256];

	snprintf(name, sizeof(name), "sys/class/%s/dev", node);
	snprintf(target, sizeof(target), "%s\n", number);
	gpuroot_write(r, name, target);
	snprintf(name, sizeof(name), "sys/devices/%s/class", device);
	gpuroot_write(r, name, "0x030000\n");
	snprintf(name, sizeof(name), "sys/class/%s/device", node);
	snprintf(target, sizeof(target), "../../../devices/%s", device);
	gpuroot_link(r, name, target);
	if (!driver)
		return;
	snprintf(name, sizeof(name), "sys/devices/%s/driver", device);
	snprintf(target, sizeof(target), "../../bus/pci/drivers/%s", driver);
	gpuroot_link(r, name, target);
}

_unused_ static void gpuroot_power(const struct gpuroot *r, const char *device,
				   const char *status)
{
	char name[256], text[64];

	snprintf(name, sizeof(name), "sys/devices/%s/power/runtime_status",
		 device);
	snprintf(text, sizeof(text), "%s\n", status);
	gpuroot_write(r, name, text);
}

/* A descriptor of a process that is open on /dev/..., with its fdinfo. */
_unused_ static void gpuroot_fd(const struct gpuroot *r, pid_t pid, int fd,
				const char *dev, const char *fdinfo)
{
	char name[256], target[64];

	snprintf(name, sizeof(name), "proc/%d/fd/%d", (int)pid, fd);
	snprintf(target, sizeof(target), "/dev/%s", dev);
	gpuroot_link(r, name, target);
	snprintf(name, sizeof(name), "proc/%d/fdinfo/%d", (int)pid, fd);
	gpuroot_write(r, name, fdinfo);
}

_unused_ static void gpuroot_process(struct gpuroot *r, pid_t pid,
				     uint64_t start, bool is_broker)
{
	r->process[r->n_processes++] = (struct gpu_holder){
	    .pid = pid,
	    .start = start,
	    .is_broker = is_broker,
	};
}

_unused_ static void gpuroot_exit(struct gpuroot *r, pid_t pid)
{
	for (size_t i = 0; i < r->n_processes; i++)
		if (r->process[i].pid == pid) {
			r->process[i] = r->process[--r->n_processes];
			return;
		}
}

/* A gpu_find_fn. */
_unused_ static bool gpuroot_find(void *arg, pid_t pid, struct gpu_holder *ret)
{
	const struct gpuroot *r = arg;

	for (size_t i = 0; i < r->n_processes; i++)
		if (r->process[i].pid == pid) {
			*ret = r->process[i];
			return true;
		}
	return false;
}

_unused_ static struct moment gpuroot_now(const struct gpuroot *r)
{
	return (struct moment){
	    .mono_ns = r->now_s * NSEC_PER_SEC,
	    .boot_ns = r->now_s * NSEC_PER_SEC,
	    .real_ns = r->now_s * NSEC_PER_SEC,
	};
}

/* What a process has of a series, in the results. */
_unused_ static const struct gpu_process *gpuroot_result(const struct gpu *g,
							 pid_t pid)
{
	for (size_t i = 0; i < g->n_processes; i++)
		if (g->process[i].pid == pid)
			return &g->process[i];
	return NULL;
}

_unused_ static const struct gpu_use *gpuroot_use(const struct gpu *g,
						  pid_t pid, const char *name)
{
	const struct gpu_process *p = gpuroot_result(g, pid);

	for (size_t i = 0; p && i < p->n_uses; i++)
		if (strcmp(g->series[p->use[i].series].name, name) == 0)
			return &p->use[i];
	return NULL;
}

/* UINT64_MAX: there is none. */
_unused_ static uint64_t gpuroot_memory(const struct gpu *g, pid_t pid,
					const char *name)
{
	const struct gpu_process *p = gpuroot_result(g, pid);

	for (size_t i = 0; p && i < p->n_memories; i++)
		if (strcmp(g->series[p->memory[i].series].name, name) == 0)
			return p->memory[i].resident;
	return UINT64_MAX;
}
