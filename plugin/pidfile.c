/* SPDX-License-Identifier: MIT */
#include "pidfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

enum {
	PID_MAX = 4194304, /* PID_MAX_LIMIT of include/linux/threads.h */
};

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
	       a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The number that a text begins with; some daemons write more behind it. */
static pid_t parse(const char *text, size_t n)
{
	pid_t pid = 0;
	size_t i = 0;

	while (i < n && (text[i] == ' ' || text[i] == '\n'))
		i++;
	for (; i < n && text[i] >= '0' && text[i] <= '9'; i++) {
		pid = pid * 10 + (text[i] - '0');
		if (pid > PID_MAX)
			return 0;
	}
	return i == n || text[i] == '\n' || text[i] == ' ' ? pid : 0;
}

/* Nothing here may wait for anybody: neither a pipe nor a device. */
static pid_t read_pid(int root_fd, const char *path)
{
	_cleanup_close_ int fd =
	    openat(root_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	char text[64];
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	n = read(fd, text, sizeof(text));
	return n > 0 ? parse(text, (size_t)n) : 0;
}

bool pidfile_refresh(int root_fd, const char *path, struct file_seen *seen,
		     pid_t *pid)
{
	char below[PATH_MAX];
	struct stat st;
	pid_t was = *pid;
	int n = snprintf(below, sizeof(below), "..%s", path);

	if (n < 0 || (size_t)n >= sizeof(below) ||
	    fstatat(root_fd, below, &st, 0) < 0) {
		seen->exists = false;
		*pid = 0;
		return *pid != was;
	}
	if (seen->exists && is_same(&seen->st, &st))
		return false;
	*pid = S_ISREG(st.st_mode) ? read_pid(root_fd, below) : 0;
	seen->st = st;
	seen->exists = true;
	return *pid != was;
}
