/* SPDX-License-Identifier: MIT */
/*
 * Part of procfs.h: a process's fd directory and its exe link. Neither what
 * the descriptors are of nor what is in the file is looked at.
 */
#include "procfs-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Counts the entries of an open directory but "." and "..". */
static int count_entries(struct procfs *fs, int fd, uint64_t *ret)
{
	uint64_t n = 0;

	for (;;) {
		ssize_t got = getdents64(fd, fs->buf, PROCFS_BUF_SIZE);

		fs->counts.n_calls++;
		if (got < 0)
			return procfs_outcome(errno);
		if (got == 0)
			break;
		for (ssize_t at = 0; at < got;) {
			struct dirent64 *e = (void *)(fs->buf + at);

			at += e->d_reclen;
			n += e->d_name[0] != '.';
		}
	}
	*ret = n;
	return 0;
}

/*
 * Nothing is asked of the directory but its attributes, so that O_PATH does,
 * which needs no right on it.
 */
static bool keep_fd_dir(struct procfs *fs, struct procfs_pid *p,
			const char *path)
{
	int fd;

	if (p->live_tid || !(p->keep & PROCFS_KEEP(PROCFS_FD_DIR)) ||
	    !keptfd_has_room(&fs->kept))
		return false;
	fs->counts.n_calls++;
	fd = openat(procfs_at(fs, p), path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	fs->counts.n_calls += 2;
	if (keptfd_keep(&fs->kept, &fd) == 0) {
		p->fd[PROCFS_FD_DIR] = fd;
		return true;
	}
	close(fd);
	return false;
}

/* The number of descriptors is the size of their directory. */
static int size_of_fd_dir(struct procfs *fs, struct procfs_pid *p,
			  const char *path, uint64_t *ret)
{
	struct stat st;
	int r;

	fs->counts.n_calls++;
	if ((p->fd[PROCFS_FD_DIR] >= 0 && !p->live_tid) ||
	    keep_fd_dir(fs, p, path))
		r = fstat(p->fd[PROCFS_FD_DIR], &st);
	else
		r = fstatat(procfs_at(fs, p), path, &st, 0);
	if (r < 0)
		return procfs_outcome(errno);
	*ret = (uint64_t)st.st_size;
	return 0;
}

int procfs_count_fds(struct procfs *fs, struct procfs_pid *p, uint64_t *ret)
{
	char path[PROCFS_PATH_SIZE];
	_cleanup_close_ int fd = -1;

	procfs_path(path, p, p->live_tid, "fd");
	fs->counts.n_reads++;
	if (fs->fd_dir_has_size)
		return size_of_fd_dir(fs, p, path, ret);
	fs->counts.n_calls += 2;
	fd = openat(procfs_at(fs, p), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return procfs_outcome(errno);
	return count_entries(fs, fd, ret);
}

int procfs_exe(struct procfs *fs, struct procfs_pid *p, struct str *ret)
{
	static const char suffix[] = " (deleted)";
	const size_t cut = sizeof(suffix) - 1;
	char path[PROCFS_PATH_SIZE];
	struct statx stx;
	struct guard *g = fs->guard;
	char *buf = fs->buf;
	ssize_t n;

	procfs_path(path, p, p->live_tid, "exe");
	fs->counts.n_calls++;
	guard_enter(g);
	n = readlinkat(procfs_at(fs, p), path, buf, PROCFS_BUF_SIZE);
	procfs_come_back(g, buf, -1);
	if (n < 0)
		return procfs_outcome(errno);
	*ret = (struct str){fs->buf, (size_t)n};
	if (!str_ends(*ret, (struct str){suffix, cut}))
		return 0;
	/*
	 * A file may really be called so. The link count is taken from what
	 * is cached: nothing is asked of a file system that may not answer.
	 */
	fs->counts.n_calls++;
	if (statx(procfs_at(fs, p), path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		  STATX_NLINK, &stx) < 0 ||
	    stx.stx_nlink == 0)
		ret->n -= cut;
	return 0;
}

int procfs_exe_file(struct procfs *fs, struct procfs_pid *p, uint64_t *ret_dev,
		    uint64_t *ret_inode)
{
	struct guard *g = fs->guard;
	int fd = procfs_at(fs, p), r;
	char path[PROCFS_PATH_SIZE];
	char *buf = fs->buf;
	struct statx stx;

	procfs_path(path, p, p->live_tid, "exe");
	fs->counts.n_calls++;
	guard_enter(g);
	r = statx(fd, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO,
		  &stx);
	procfs_come_back(g, buf, -1);
	if (r < 0)
		return procfs_outcome(errno);
	if (!(stx.stx_mask & STATX_INO))
		return PROC_ABSENT;
	*ret_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	*ret_inode = stx.stx_ino;
	return 0;
}
