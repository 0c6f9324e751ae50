/* SPDX-License-Identifier: MIT */
#include "replace.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* ".NAME.PID" beside it: who looks for "*.prom" must not find it. */
static int make_temp_path(struct replace *f)
{
	const char *slash = strrchr(f->path, '/');
	const char *name = slash ? slash + 1 : f->path;
	int n = snprintf(f->temp, sizeof(f->temp), "%.*s.%s.%d",
			 (int)(name - f->path), f->path, name, (int)getpid());

	return n < 0 || (size_t)n >= sizeof(f->temp) ? -ENAMETOOLONG : 0;
}

/* With the rights that any new file of this process gets. */
static int open_new(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

int replace_begin(struct replace *f, const char *path)
{
	struct stat st;
	int r;

	f->path = path;
	r = make_temp_path(f);
	if (r < 0)
		return r;
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return REPLACE_NO_FILE;
	f->fd = open_new(f->temp);
	/* Left by a process that was killed and had the same number. */
	if (f->fd < 0 && errno == EEXIST && unlink(f->temp) == 0)
		f->fd = open_new(f->temp);
	return f->fd < 0 ? -errno : 0;
}

int replace_commit(struct replace *f)
{
	int r = 0;

	/* NFS tells here that there is no space. */
	if (close(f->fd) < 0 || rename(f->temp, f->path) < 0) {
		r = -errno;
		unlink(f->temp);
	}
	return r;
}

void replace_abandon(struct replace *f)
{
	close(f->fd);
	unlink(f->temp);
}
