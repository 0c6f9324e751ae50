/* SPDX-License-Identifier: MIT */
#include "gpu-sys.h"
#include "proctext.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

/* PROC_PID_INIT_INO of include/linux/proc_ns.h, Linux 6.18. */
#define FIRST_PIDNS_INO UINT64_C(0xEFFFFFFC)

int gpu_sys_read(int dir_fd, const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd =
	    openat(dir_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	ssize_t n;
	char *eol;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	eol = strchr(buf, '\n');
	if (eol)
		*eol = '\0';
	return (int)strlen(buf);
}

int gpu_sys_link(int dir_fd, const char *path, char *buf, size_t size)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, path, target, sizeof(target) - 1);
	const char *base;

	if (n < 0)
		return -errno;
	target[n] = '\0';
	base = strrchr(target, '/');
	base = base ? base + 1 : target;
	n = (ssize_t)strlen(base);
	if (n == 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	memcpy(buf, base, (size_t)n + 1);
	return (int)n;
}

int gpu_sys_number(int dir_fd, const char *path, uint64_t *ret)
{
	char text[32];
	const char *at = text;
	int n = gpu_sys_read(dir_fd, path, text, sizeof(text));
	uint64_t v;

	if (n < 0)
		return n;
	if (!proctext_number(&at, text + n, &v) || at != text + n)
		return -EBADMSG;
	*ret = v;
	return 0;
}

int gpu_sys_open_dir(int dir_fd, const char *path)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void gpu_sys_each(int dir_fd, gpu_sys_entry_fn *fn, void *arg)
{
	_Alignas(struct dirent64) char buf[4096];
	ssize_t got;

	if (dir_fd < 0)
		return;
	while ((got = getdents64(dir_fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < got;) {
			struct dirent64 *e = (void *)(buf + at);

			at += e->d_reclen;
			if (e->d_name[0] != '.')
				fn(arg, dir_fd, e->d_name);
		}
}

enum gpu_power gpu_sys_parse_power(const char *status)
{
	if (strcmp(status, "suspended") == 0)
		return GPU_POWER_ASLEEP;
	if (strcmp(status, "suspending") == 0 ||
	    strcmp(status, "resuming") == 0)
		return GPU_POWER_CHANGES;
	return GPU_POWER_ON;
}

enum gpu_power gpu_sys_power(int dir_fd, const char *dir)
{
	char path[PATH_MAX], status[32];

	snprintf(path, sizeof(path), "%s/power/runtime_status", dir);
	if (gpu_sys_read(dir_fd, path, status, sizeof(status)) < 0)
		return GPU_POWER_ON;
	return gpu_sys_parse_power(status);
}

bool gpu_sys_may_sleep(int dir_fd, const char *dir)
{
	char path[PATH_MAX], control[32];

	snprintf(path, sizeof(path), "%s/power/control", dir);
	return gpu_sys_read(dir_fd, path, control, sizeof(control)) > 0 &&
	       strcmp(control, "auto") == 0;
}

bool gpu_sys_is_first_pidns(int proc_fd, const char *process)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "%s/ns/pid", process);
	return fstatat(proc_fd, path, &st, 0) == 0 &&
	       st.st_ino == FIRST_PIDNS_INO;
}
