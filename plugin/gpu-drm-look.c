/* SPDX-License-Identifier: MIT */
#include "gpu-drm-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
	LOOK_CUT = 16, /* an outcome: the budget ended first */
};

/* One table of descriptors that is being looked at. */
struct look {
	struct gpu_drm *d;
	const struct gpu_who *who;
	struct guard *guard;
	pid_t tid; /* whose it is; 0: the process's */
	int dir_fd;
	uint64_t since_ns; /* what is new in it can be as old as this */
	bool some_denied, some_told;
};

static bool is_same_table(const struct gpu_slot *s, pid_t pid, uint64_t start,
			  pid_t tid)
{
	return s->used && !s->is_dead && s->holder.pid == pid &&
	       s->holder.start == start && s->tid == tid;
}

void gpu_drm_close_file(struct gpu_drm *d, struct gpu_slot *s)
{
	if (!s->is_kept)
		return;
	keptfd_close(d->opt.kept, &s->file);
	s->is_kept = false;
	d->n_kept--;
}

void gpu_drm_drop_slot(struct gpu_drm *d, struct gpu_slot *s)
{
	if (s->is_busy) {
		s->is_dead = true;
		return;
	}
	gpu_drm_close_file(d, s);
	*s = (struct gpu_slot){.file = -1};
}

static struct gpu_slot *new_slot(struct gpu_drm *d)
{
	for (size_t i = 0; i < d->n_slots; i++)
		if (!d->slot[i].used)
			return &d->slot[i];
	if (d->n_slots == GPU_DRM_SLOTS_MAX ||
	    array_reserve(&d->slot, &d->slot_cap, d->n_slots + 1,
			  sizeof(*d->slot)) < 0) {
		d->counts.n_refused++;
		return NULL;
	}
	return &d->slot[d->n_slots++];
}

/* Pins the process: the file says ESRCH once it ended. */
static void open_file(struct look *l, struct gpu_slot *s)
{
	struct gpu_drm *d = l->d;
	char path[32];

	if (d->no_seek || d->n_kept >= GPU_DRM_KEPT_MAX ||
	    !keptfd_has_room(d->opt.kept))
		return;
	snprintf(path, sizeof(path), "../fdinfo/%d", s->fd);
	d->counts.n_calls += 3;
	s->file = openat(l->dir_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (s->file < 0)
		return;
	if (keptfd_keep(d->opt.kept, &s->file) < 0) {
		base_closep(&s->file);
		s->file = -1;
		return;
	}
	s->is_kept = true;
	d->n_kept++;
}

/* A descriptor of a device was found. */
static void found(struct look *l, int fd, unsigned device)
{
	struct gpu_drm *d = l->d;
	struct gpu_slot *s;

	for (size_t i = 0; i < d->n_slots; i++) {
		s = &d->slot[i];
		if (s->fd != fd || !is_same_table(s, l->who->holder.pid,
						  l->who->holder.start, l->tid))
			continue;
		if (s->device == device) {
			s->is_seen = true;
			s->holder = l->who->holder;
			return;
		}
		gpu_drm_drop_slot(d, s);
		break;
	}
	s = new_slot(d);
	if (!s)
		return;
	*s = (struct gpu_slot){
	    .used = true,
	    .is_seen = true,
	    .device = device,
	    .client = -1,
	    .file = -1,
	    .fd = fd,
	    .tid = l->tid,
	    .holder = l->who->holder,
	    .since_ns = l->since_ns,
	};
	open_file(l, s);
}

/*
 * What is it open on? Neither the server of a file system nor an automounter
 * is asked, so that none can keep us waiting.
 */
static void classify(struct look *l, const char *name, int fd)
{
	struct statx sx;
	int r, device, err;

	guard_enter(l->guard);
	r = statx(l->dir_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		  STATX_TYPE, &sx);
	err = errno;
	if (!guard_leave(l->guard)) {
		close(l->dir_fd);
		guard_quit(l->guard);
	}
	if (r < 0) {
		l->some_denied |= err == EACCES || err == EPERM;
		return;
	}
	l->some_told = true;
	if (!S_ISCHR(sx.stx_mode))
		return;
	device = gpu_drm_device_of(l->d, sx.stx_rdev_major, sx.stx_rdev_minor);
	if (device >= 0)
		found(l, fd, (unsigned)device);
}

static int parse_fd(const char *s)
{
	const char *at = s, *end = s + strlen(s);
	uint64_t v;

	return proctext_number(&at, end, &v) && at == end && v <= INT32_MAX
		   ? (int)v
		   : -1;
}

/*
 * Goes through the table from position *from on. Returns 0; or LOOK_CUT: then
 * *from is where to go on, and *ret_last the last descriptor.
 */
static int walk(struct look *l, int64_t *from, int *ret_last)
{
	_Alignas(struct dirent64) char buf[8192];
	struct gpu_drm *d = l->d;
	ssize_t got;

	if (*from && lseek(l->dir_fd, *from, SEEK_SET) < 0)
		return -errno;
	while (d->counts.n_calls++,
	       (got = getdents64(l->dir_fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < got;) {
			struct dirent64 *e = (void *)(buf + at);
			int fd = parse_fd(e->d_name);

			at += e->d_reclen;
			if (fd < 0)
				continue;
			classify(l, e->d_name, fd);
			d->counts.n_fds++;
			d->counts.n_calls++;
			*ret_last = fd;
			*from = e->d_off;
			if (--d->budget <= 0)
				return LOOK_CUT;
		}
	return got < 0 ? -errno : 0;
}

static void mark_table(struct look *l)
{
	struct gpu_drm *d = l->d;

	for (size_t i = 0; i < d->n_slots; i++)
		d->slot[i].is_seen = false;
}

/* What was known between these numbers and not seen again is closed. */
static void sweep_table(struct look *l, int first, int last)
{
	struct gpu_drm *d = l->d;

	for (size_t i = 0; i < d->n_slots; i++) {
		struct gpu_slot *s = &d->slot[i];

		if (!s->is_seen && s->fd >= first && s->fd <= last &&
		    is_same_table(s, l->who->holder.pid, l->who->holder.start,
				  l->tid))
			gpu_drm_drop_slot(d, s);
	}
}

/* Returns as walk(), or PROC_GONE, PROC_DENIED. */
static int look_at_table(struct look *l, int64_t *from)
{
	int first = *from > 2 ? (int)(*from - 2) : 0, last = first, r;
	char path[48];

	if (l->tid)
		snprintf(path, sizeof(path), "%d/task/%d/fd",
			 (int)l->who->holder.pid, (int)l->tid);
	else
		snprintf(path, sizeof(path), "%d/fd", (int)l->who->holder.pid);
	l->d->counts.n_calls += 2;
	l->d->counts.n_looks++;
	l->dir_fd =
	    openat(l->d->opt.proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->dir_fd < 0) {
		if (errno == ENOENT || errno == ESRCH)
			return PROC_GONE;
		return errno == EACCES || errno == EPERM ? PROC_DENIED : -errno;
	}
	mark_table(l);
	r = walk(l, from, &last);
	close(l->dir_fd);
	if (r >= 0)
		sweep_table(l, first, r == 0 ? INT32_MAX : last);
	if (r == 0 && l->some_denied && !l->some_told)
		return PROC_DENIED;
	return r;
}

static void set_denied(struct gpu_drm *d, struct gpu_mark *m, bool is_denied)
{
	if (is_denied != m->is_denied)
		d->n_denied += is_denied ? 1 : UINT64_MAX;
	m->is_denied = is_denied;
}

void gpu_drm_forget(struct gpu_drm *d, struct gpu_mark *m)
{
	set_denied(d, m, false);
	gpu_tasks_free(m);
	*m = (struct gpu_mark){0};
}

/* The rest of a look, or another try, in the next tick. */
static void go_on_later(struct gpu_drm *d, struct gpu_mark *m,
			const struct gpu_who *who, int64_t from)
{
	uint32_t due = d->tick + 1;

	if (gpu_drm_wait(d, who->holder.pid, who->holder.start, due, from) == 0)
		m->due_tick = due;
}

static bool has_slots(const struct gpu_drm *d, const struct gpu_who *who)
{
	for (size_t i = 0; i < d->n_slots; i++)
		if (d->slot[i].used && !d->slot[i].is_dead &&
		    d->slot[i].holder.pid == who->holder.pid &&
		    d->slot[i].holder.start == who->holder.start)
			return true;
	return false;
}

static void end_look(struct gpu_drm *d, struct gpu_mark *m,
		     const struct gpu_who *who)
{
	m->looked_tick = d->tick;
	m->due_tick = 0;
	m->n_fds = who->n_fds;
	if (has_slots(d, who))
		m->n_in_vain = 0;
	else if (m->n_in_vain < UINT8_MAX)
		m->n_in_vain++;
	/* Of what could not be seen it is not known since when it is there. */
	if (!m->is_denied)
		m->looked_s =
		    (uint32_t)MAX(d->now.mono_ns / NSEC_PER_SEC, UINT64_C(1));
}

/* Threads with tables of their own; what they hold is the process's. */
static void look_at_tasks(struct look *l, struct gpu_mark *m, bool again)
{
	const pid_t *own = NULL;
	size_t n;

	if (gpu_drm_has_new_threads(m, l->who) ||
	    (again && l->who->n_threads > 1))
		gpu_drm_ask_tasks(l->d, m, l->who->holder.pid, again);
	m->n_threads = l->who->n_threads;
	n = gpu_tasks_own(m, &own);
	while (n-- > 0) {
		int64_t from = 0;

		l->tid = own[n];
		if (look_at_table(l, &from) != PROC_GONE)
			continue;
		mark_table(l);
		sweep_table(l, 0, INT32_MAX);
		gpu_tasks_forget(m, n);
	}
}

int gpu_drm_look(struct gpu_drm *d, struct gpu_mark *m,
		 const struct gpu_who *who, const struct gpu_turn *turn,
		 struct guard *guard)
{
	struct look l = {
	    .d = d,
	    .who = who,
	    .guard = guard,
	    .since_ns = m->looked_s ? m->looked_s * NSEC_PER_SEC : who->born_ns,
	};
	int64_t from = turn ? turn->from : 0;
	bool has_changed = gpu_drm_has_new_fds(m, who);
	int r;

	/* It was looked at before its turn came. */
	if (turn && (m->looked_tick == d->tick ||
		     (turn->due_tick && turn->due_tick != m->due_tick)))
		return 0;
	if (!turn && m->looked_tick && !has_changed &&
	    gpu_drm_has_new_threads(m, who)) {
		look_at_tasks(&l, m, false);
		return 0;
	}
	r = look_at_table(&l, &from);
	if (r == PROC_GONE)
		return r;
	if (r == LOOK_CUT || r < 0) {
		go_on_later(d, m, who, r < 0 ? 0 : from);
		return MIN(r, 0);
	}
	set_denied(d, m, r == PROC_DENIED);
	if (r == 0)
		look_at_tasks(&l, m, !has_changed);
	end_look(d, m, who);
	return r;
}
