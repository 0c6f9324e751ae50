/* SPDX-License-Identifier: MIT */
#include "gpuread.h"
#include "clocks.h"

void gpuread_forget_all(struct monitor *m)
{
	for (size_t i = 0; i < m->gpu.n_seen; i++)
		gpu_drm_forget(&m->gpu.host.drm, &m->gpu.seen[i].mark);
	m->gpu.n_seen = 0;
}

static bool has_place(const struct proc *p)
{
	return p->start &&
	       !(p->flags & (PROC_IS_GONE | PROC_KERNEL | PROC_NEW));
}

/* Forgets who left, and lists in fresh[] who is not known yet. */
static size_t drop_gone(struct monitor *m)
{
	struct gpuread *gr = &m->gpu;
	size_t n = 0, n_fresh = 0, at = 0;

	for (uint32_t i = 0; i < m->tab.n_procs; i++) {
		const struct proc_entry *e = &m->tab.entry[i];
		struct gpu_seen *s;

		if (!has_place(e->proc))
			continue;
		for (; at < gr->n_seen && gr->seen[at].pid < e->pid; at++)
			gpu_drm_forget(&gr->host.drm, &gr->seen[at].mark);
		s = at < gr->n_seen ? &gr->seen[at] : NULL;
		if (s && s->pid == e->pid && s->start == e->proc->start) {
			gr->seen[n++] = *s;
			at++;
		} else {
			gr->fresh[n_fresh++] = i;
		}
	}
	for (; at < gr->n_seen; at++)
		gpu_drm_forget(&gr->host.drm, &gr->seen[at].mark);
	gr->n_seen = n;
	return n_fresh;
}

/* Both are by ascending pid. */
int gpuread_follow_table(struct monitor *m)
{
	struct gpuread *gr = &m->gpu;
	size_t n_fresh, at, to;
	int r;

	gr->at = gr->entry_at = 0;
	r = array_reserve(&gr->fresh, &gr->fresh_cap, m->tab.n_procs,
			  sizeof(*gr->fresh));

	if (r == 0)
		r = array_reserve(&gr->seen, &gr->seen_cap, m->tab.n_procs,
				  sizeof(*gr->seen));
	if (r < 0)
		return r;
	n_fresh = drop_gone(m);
	at = gr->n_seen;
	to = gr->n_seen += n_fresh;
	while (n_fresh > 0) {
		const struct proc_entry *e =
		    &m->tab.entry[gr->fresh[n_fresh - 1]];

		if (at > 0 && gr->seen[at - 1].pid > e->pid) {
			gr->seen[--to] = gr->seen[--at];
			continue;
		}
		gr->seen[--to] = (struct gpu_seen){
		    .pid = e->pid,
		    .start = e->proc->start,
		};
		n_fresh--;
	}
	return 0;
}

/* CLOCK_MONOTONIC of its birth; 0 if what it did so far is not to count. */
static uint64_t born_ns(const struct monitor *m, const struct proc *p,
			const struct gpu_seen *s)
{
	uint64_t hz = (uint64_t)m->fs.scale.ticks_per_second;
	uint64_t start_ns =
	    p->start / hz * NSEC_PER_SEC + p->start % hz * NSEC_PER_SEC / hz;
	uint64_t age_ns =
	    m->now.boot_ns > start_ns ? m->now.boot_ns - start_ns : 0;

	/* To the resolution of its start it is as old as our first look. */
	if (!(p->flags & PROC_BORN) || s->was_unwanted ||
	    start_ns + NSEC_PER_SEC / hz <= m->gpu.opened_ns ||
	    age_ns >= m->now.mono_ns)
		return 0;
	return m->now.mono_ns - age_ns;
}

static struct gpu_who who_is(struct monitor *m, struct proc *p,
			     const struct gpu_seen *s)
{
	const struct gpuread *gr = &m->gpu;
	struct gpu_who who = {
	    .holder = {.pid = s->pid,
		       .start = s->start,
		       .is_broker = gpu_is_broker(str_of(proc_comm(p)))},
	    .born_ns = born_ns(m, p, s),
	    .n_fds = GPU_FDS_UNKNOWN,
	    .n_threads = 1,
	};
	uint64_t n;

	if (p->have & METRIC_BIT(gr->threads_row))
		who.n_threads =
		    (uint32_t)MIN(p->value[gr->threads_row], UINT32_MAX);
	if (p->have & METRIC_BIT(gr->fds_row))
		who.n_fds = (uint32_t)MIN(p->value[gr->fds_row],
					  (uint64_t)GPU_FDS_UNKNOWN);
	else if (procfs_count_fds(&m->fs, &p->at, &n) == 0)
		who.n_fds = (uint32_t)MIN(n, (uint64_t)GPU_FDS_UNKNOWN);
	return who;
}

/* Is something to be found out about one that is known? */
static bool is_to_be_asked(struct monitor *m, struct gpu_seen *s,
			   const struct proc *p)
{
	if (!gpuread_is_wanted(m, p)) {
		if (s->is_asked)
			gpu_drm_forget(&m->gpu.host.drm, &s->mark);
		s->is_asked = s->is_back = false;
		s->was_unwanted = true;
		return false;
	}
	if (p->flags & (PROC_IS_GONE | PROC_HANGS) || p->state == 'Z' ||
	    p->state == 'X' || (s->is_asked && p->ran_tick != m->tab.tick))
		return false;
	s->is_back |= !s->is_asked && s->was_unwanted;
	s->is_asked = true;
	return true;
}

static void look(struct monitor *m, struct proc_entry *e, struct gpu_seen *s,
		 const struct gpu_turn *turn, struct guard *g)
{
	struct gpu_drm *drm = &m->gpu.host.drm;
	struct gpu_who who;

	m->reading = e;
	who = who_is(m, e->proc, s);
	if (turn || gpu_drm_ran(drm, &s->mark, &who))
		gpu_drm_look(drm, &s->mark, &who, turn, g);
	m->reading = NULL;
}

struct gpu_seen *gpuread_find_seen(const struct monitor *m, pid_t pid,
				   uint64_t start)
{
	size_t low = 0, high = m->gpu.n_seen;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		struct gpu_seen *s = &m->gpu.seen[mid];

		if (s->pid == pid)
			return s->start == start ? s : NULL;
		if (s->pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static void take_turns(struct monitor *m, struct guard *g)
{
	struct gpu_turn turn;

	while (gpu_drm_next(&m->gpu.host.drm, &turn)) {
		struct proc_entry *e =
		    proctab_find(&m->tab, turn.pid, turn.start);
		struct gpu_seen *s = gpuread_find_seen(m, turn.pid, turn.start);

		if (e && s && s->is_asked &&
		    !(e->proc->flags & (PROC_IS_GONE | PROC_HANGS)))
			look(m, e, s, &turn, g);
	}
}

void gpuread_look_at_all(void *arg, struct guard *g)
{
	struct monitor *m = arg;
	struct gpuread *gr = &m->gpu;
	uint64_t cpu = clocks_thread_cpu();

	m->fs.guard = g;
	while (gr->at < gr->n_seen) {
		struct gpu_seen *s = &gr->seen[gr->at++];

		while (m->tab.entry[gr->entry_at].pid < s->pid)
			gr->entry_at++;
		if (is_to_be_asked(m, s, m->tab.entry[gr->entry_at].proc))
			look(m, &m->tab.entry[gr->entry_at], s, NULL, g);
	}
	take_turns(m, g);
	m->fs.guard = NULL;
	m->body_cpu_ns += clocks_thread_cpu() - cpu;
}
