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

/* What is at the path. Returns false if nothing is, or it cannot be told. */
static bool look_at(int root_fd, const char *path, struct guard *g,
		    struct stat *ret)
{
	int r;

	guard_enter(g);
	r = fstatat(root_fd, path, ret, 0);
	if (!guard_leave(g))
		guard_quit(g);
	return r == 0;
}

/* Neither a pipe nor a device is waited for; returns how many bytes. */
static ssize_t read_text(int root_fd, const char *path, struct guard *g,
			 char *buf, size_t size)
{
	struct stat st;
	ssize_t n = -1;
	int fd;

	guard_enter(g);
	fd =
	    openat(root_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = read(fd, buf, size);
	if (fd >= 0)
		close(fd);
	if (!guard_leave(g))
		guard_quit(g);
	return n;
}

bool pidfile_refresh(int root_fd, const char *path, struct file_seen *seen,
		     pid_t *pid, struct guard *g)
{
	char below[PATH_MAX], text[64];
	struct stat st;
	pid_t was = *pid;
	int n = snprintf(below, sizeof(below), "..%s", path);
	ssize_t got = 0;

	if (n < 0 || (size_t)n >= sizeof(below) ||
	    !look_at(root_fd, below, g, &st)) {
		seen->exists = false;
		*pid = 0;
		return *pid != was;
	}
	if (seen->exists && is_same(&seen->st, &st))
		return false;
	if (S_ISREG(st.st_mode))
		got = read_text(root_fd, below, g, text, sizeof(text));
	*pid = got > 0 ? parse(text, (size_t)got) : 0;
	seen->st = st;
	seen->exists = true;
	return *pid != was;
}
