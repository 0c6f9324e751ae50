/* SPDX-License-Identifier: MIT */
#include "gpu-drm-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <sys/syscall.h>

enum {
	OWN_MAX = 16, /* tables of descriptors beside the leader's */
	/*
	 * A thread leaves the common table after it began: it may have been
	 * asked too early, and is asked once more. Numbers need 22 bits.
	 */
	ASKED_TWICE = 1 << 30,
	TID_MASK = ASKED_TWICE - 1,
};

struct gpu_tasks {
	pid_t own[OWN_MAX]; /* one thread of each other table */
	size_t n_own;
	size_t n, cap;
	pid_t *tid; /* ascending */
};

size_t gpu_tasks_own(const struct gpu_mark *m, const pid_t **ret)
{
	if (!m->tasks)
		return 0;
	*ret = m->tasks->own;
	return m->tasks->n_own;
}

/* Others may have used its table: all are asked anew. */
void gpu_tasks_forget(struct gpu_mark *m, size_t i)
{
	m->tasks->own[i] = m->tasks->own[--m->tasks->n_own];
	m->tasks->n = 0;
	m->n_threads = 0;
}

void gpu_tasks_free(struct gpu_mark *m)
{
	if (m->tasks)
		free(m->tasks->tid);
	free(m->tasks);
	m->tasks = NULL;
}

static pid_t parse_tid(const char *s)
{
	const char *at = s, *end = s + strlen(s);
	uint64_t v;

	return proctext_number(&at, end, &v) && at == end && v < TID_MASK
		   ? (pid_t)v
		   : 0;
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* The threads of a process, ascending, in d->tid. */
static int list_tids(struct gpu_drm *d, pid_t pid)
{
	_Alignas(struct dirent64) char buf[8192];
	char path[32];
	_cleanup_close_ int fd = -1;
	bool is_sorted = true;
	ssize_t got;
	int r;

	snprintf(path, sizeof(path), "%d/task", (int)pid);
	fd = openat(d->opt.proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d->counts.n_calls += 2;
	if (fd < 0)
		return -errno;
	d->n_tids = 0;
	while (d->counts.n_calls++,
	       (got = getdents64(fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < got;) {
			struct dirent64 *e = (void *)(buf + at);
			pid_t tid = parse_tid(e->d_name);

			at += e->d_reclen;
			if (!tid)
				continue;
			r = array_reserve(&d->tid, &d->tid_cap, d->n_tids + 1,
					  sizeof(*d->tid));
			if (r < 0)
				return r;
			if (d->n_tids && d->tid[d->n_tids - 1] > tid)
				is_sorted = false;
			d->tid[d->n_tids++] = tid;
		}
	if (!is_sorted)
		qsort(d->tid, d->n_tids, sizeof(*d->tid), compare_tids);
	return got < 0 ? -errno : 0;
}

/* What cannot be told counts as shared. */
static bool shares_files(struct gpu_drm *d, pid_t a, pid_t b)
{
	long r;

	d->counts.n_calls++;
	r = syscall(SYS_kcmp, a, b, KCMP_FILES, 0L, 0L);
	if (r < 0 && errno == ENOSYS)
		d->no_kcmp = true;
	return r <= 0;
}

static void ask(struct gpu_drm *d, struct gpu_tasks *t, pid_t pid, pid_t tid)
{
	d->counts.n_asked++;
	d->budget--;
	if (tid == pid || d->no_kcmp || shares_files(d, pid, tid))
		return;
	for (size_t i = 0; i < t->n_own; i++)
		if (t->own[i] == tid || shares_files(d, t->own[i], tid))
			return;
	if (t->n_own == OWN_MAX)
		d->counts.n_refused++;
	else
		t->own[t->n_own++] = tid;
}

/* A table is lost sight of when the thread that stood for it ended. */
static bool forget_ended(struct gpu_drm *d, struct gpu_tasks *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_own; i++)
		if (bsearch(&t->own[i], d->tid, d->n_tids, sizeof(*d->tid),
			    compare_tids))
			t->own[n++] = t->own[i];
	if (n == t->n_own)
		return false;
	t->n_own = n;
	return true;
}

void gpu_drm_ask_tasks(struct gpu_drm *d, struct gpu_mark *m, pid_t pid,
		       bool again)
{
	struct gpu_tasks *t = m->tasks;
	size_t old = 0;

	if (!d->opt.same_pids || d->no_kcmp || list_tids(d, pid) < 0)
		return;
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return;
		m->tasks = t;
	}
	/* Others may have used the table of one that ended: ask them anew. */
	if (forget_ended(d, t))
		t->n = 0;
	if (array_reserve(&t->tid, &t->cap, d->n_tids, sizeof(*t->tid)) < 0)
		return;
	for (size_t i = 0; i < d->n_tids; i++) {
		pid_t tid = d->tid[i];
		bool twice = false, known;

		while (old < t->n && (t->tid[old] & TID_MASK) < tid)
			old++;
		known = old < t->n && (t->tid[old] & TID_MASK) == tid;
		if (known)
			twice = t->tid[old] & ASKED_TWICE;
		if (!known || (again && !twice)) {
			ask(d, t, pid, tid);
			twice = known;
		}
		if (twice)
			d->tid[i] |= ASKED_TWICE;
	}
	if (d->n_tids)
		memcpy(t->tid, d->tid, d->n_tids * sizeof(*t->tid));
	t->n = d->n_tids;
}
