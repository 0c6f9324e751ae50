/* SPDX-License-Identifier: MIT */
/*
 * Part of procfs.h: the threads of a process, one after the other. None of
 * their directories is kept.
 */
#include "procfs-internal.h"

#include <fcntl.h>

/* Lists the threads of a process into task_list. */
static int list_tasks(struct procfs *fs, struct procfs_pid *p)
{
	_cleanup_close_ int fd = -1;
	char path[PROCFS_PATH_SIZE];
	int r;

	fs->counts.n_calls++;
	fd = openat(procfs_at(fs, p), procfs_path(path, p, 0, "task"),
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return procfs_outcome(errno);
	r = procfs_list_numbers(fs, fd, &fs->task_list, &fs->n_tasks,
				&fs->task_cap);
	return r < 0 ? procfs_outcome(-r) : 0;
}

int procfs_each_task(struct procfs *fs, struct procfs_pid *p,
		     procfs_task_fn *fn, void *arg)
{
	struct str text;
	int r;

	r = list_tasks(fs, p);
	if (r)
		return r;
	for (size_t i = 0; i < fs->n_tasks; i++) {
		pid_t tid = fs->task_list[i];

		r = procfs_read_path(fs, p, tid, "status", NULL, &text);
		if (r == 0)
			fn(arg, tid, text);
		else if (r < 0 || r == PROC_DENIED)
			return r;
	}
	return 0;
}

int procfs_find_live_task(struct procfs *fs, struct procfs_pid *p,
			  pid_t *ret_tid)
{
	struct proc_stat st;
	struct str text;
	int r;

	r = list_tasks(fs, p);
	if (r)
		return r;
	for (size_t i = 0; i < fs->n_tasks; i++) {
		pid_t tid = fs->task_list[i];

		if (procfs_read_path(fs, p, tid, "stat", NULL, &text) == 0 &&
		    proctext_parse_stat(text, &st) == 0 && st.state != 'Z' &&
		    st.state != 'X') {
			*ret_tid = tid;
			return 0;
		}
	}
	return PROC_ABSENT;
}

int procfs_read_live_stat(struct procfs *fs, struct procfs_pid *p,
			  struct str *ret)
{
	return procfs_read_path(fs, p, p->live_tid, "stat", NULL, ret);
}
