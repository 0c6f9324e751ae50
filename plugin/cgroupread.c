/* SPDX-License-Identifier: MIT */
#include "cgroupread.h"

#include "clocks.h"
#include "monitor-internal.h"

#include <limits.h>
#include <stdio.h>

enum {
	ATTEMPTS = 3, /* in a tick, at a cgroup that goes away meanwhile */
	HANG_MAX = 4, /* threads that may be lost in cgroups */
};

#define ALL_VALUES (CGROUPFS_BIT(CGROUPFS_N_VALUES) - 1)

static bool collects(collect_mask keys)
{
	return keys >> COLLECT_CGROUP & 1;
}

static bool is_dead(const struct proc *p)
{
	return p->state == 'Z' || p->state == 'X';
}

static bool is_wanted_of(const struct monitor *m, const struct proc *p)
{
	for (size_t v = 0; v < m->tab.n_views; v++)
		if (p->place[v].group && collects(p->place[v].group->collect))
			return true;
	return false;
}

void cgroupread_join(struct monitor *m, struct proc_entry *e)
{
	struct proc *p = e->proc;
	struct str text;
	int r;

	if (p->flags & PROC_CGROUP_KNOWN || is_dead(p) || !is_wanted_of(m, p))
		return;
	r = proctab_look_again(&m->tab, e);
	if (r == 0)
		r = procfs_read(&m->fs, &p->at, PROCFS_CGROUP, &text);
	if (r == 0) {
		p->cgroup_hash = (uint32_t)hash_bytes(text);
		p->flags |= PROC_CGROUP_KNOWN;
	} else if (procfs_is_transient(r)) {
		p->flags |= PROC_RENAMED;
		proctab_try_again(&m->tab, e, r);
	}
}

static void use_free(struct cgroupread *cr, struct cgroup_use *use)
{
	cgroupfs_leave(&cr->fs, &use->at);
	free(use);
}

/* What no group has any more. */
static void sweep(struct cgroupread *cr)
{
	size_t n = 0;

	for (size_t i = 0; i < cr->n_used; i++) {
		if (cr->use[i]->is_needed)
			cr->use[n++] = cr->use[i];
		else
			use_free(cr, cr->use[i]);
	}
	cr->n_used = n;
}

static struct cgroup_use *use_new(struct cgroupread *cr)
{
	struct cgroup_use *use;

	if (array_reserve(&cr->use, &cr->cap, cr->n_used + 1,
			  sizeof(*cr->use)) < 0)
		return NULL;
	use = calloc(1, sizeof(*use));
	if (use)
		cr->use[cr->n_used++] = use;
	return use;
}

/* One for each group that wants it, without members so far. */
static void begin(struct monitor *m)
{
	struct cgroupread *cr = &m->cgroups;

	for (size_t i = 0; i < cr->n_used; i++)
		cr->use[i]->is_needed = false;
	for (size_t i = 0; i < m->groups.n_groups; i++) {
		struct group *g = m->groups.group[i];

		g->cgroup.have = 0;
		if (!collects(g->collect) || g->is_series || cr->is_missing) {
			g->cgroup_use = NULL;
			continue;
		}
		if (!g->cgroup_use)
			g->cgroup_use = use_new(cr);
		if (!g->cgroup_use)
			continue;
		g->cgroup_use->is_needed = true;
		g->cgroup_use->is_several = false;
		g->cgroup_use->member = UINT32_MAX;
	}
	sweep(cr);
}

static void take_member(struct cgroup_use *use, uint32_t entry,
			const struct proc *p)
{
	if (!(p->flags & PROC_CGROUP_KNOWN))
		use->is_several = true;
	else if (use->member == UINT32_MAX)
		use->hash = p->cgroup_hash;
	else if (use->hash != p->cgroup_hash)
		use->is_several = true;
	use->member = entry;
}

/* The kernel tells the root of whoever is dead: that is no place. */
static void take_members(struct monitor *m)
{
	for (uint32_t i = 0; i < m->tab.n_procs; i++) {
		const struct proc *p = m->tab.entry[i].proc;

		if (p->flags & PROC_IS_GONE || is_dead(p))
			continue;
		for (size_t v = 0; v < m->tab.n_views; v++) {
			const struct group *g = p->place[v].group;

			if (g && g->cgroup_use)
				take_member(g->cgroup_use, i, p);
		}
	}
}

static void leave(struct monitor *m, struct cgroup_use *use)
{
	cgroupfs_leave(&m->cgroups.fs, &use->at);
	use->is_entered = false;
}

/* The cgroup of the member that was noted. Returns false if it has none. */
static bool enter(struct monitor *m, struct cgroup_use *use)
{
	struct proc_entry *e = &m->tab.entry[use->member];
	struct proc *p = e->proc;
	struct str text;

	if (procfs_read(&m->fs, &p->at, PROCFS_CGROUP, &text) != 0)
		return false;
	/* It was moved since it was looked at: it is asked about again. */
	if ((uint32_t)hash_bytes(text) != use->hash) {
		p->cgroup_hash = (uint32_t)hash_bytes(text);
		p->flags |= PROC_RENAMED;
		proctab_try_again(&m->tab, e, 0);
		return false;
	}
	if (cgroupfs_enter(&m->cgroups.fs, &use->at, text) != 0)
		return false;
	/* It cannot be told from another one. */
	if (!use->at.id) {
		leave(m, use);
		return false;
	}
	use->is_entered = true;
	use->whose = use->of_hash != use->hash ? CGROUPSUM_FIRST
		     : use->id == use->at.id   ? CGROUPSUM_SAME
					       : CGROUPSUM_RENEWED;
	use->of_hash = use->hash;
	use->id = use->at.id;
	return true;
}

static void read_one(struct monitor *m, struct group *g)
{
	struct cgroup_use *use = g->cgroup_use;
	struct cgroupfs_values now;
	int r = PROC_GONE;

	if (use->hangs && !m->tab.nobody_hangs)
		return;
	use->hangs = false;
	if (use->member == UINT32_MAX || use->is_several) {
		leave(m, use);
		return;
	}
	if (use->is_entered && use->of_hash != use->hash)
		leave(m, use);
	/* One that was made anew under its name is entered again. */
	for (unsigned i = 0; r == PROC_GONE && i < ATTEMPTS; i++) {
		if (!use->is_entered && !enter(m, use))
			return;
		r = cgroupfs_read(&m->cgroups.fs, &use->at, ALL_VALUES, &now);
		if (r == PROC_GONE)
			leave(m, use);
	}
	if (r != 0)
		return;
	cgroupsum_take(&g->cgroup, use->whose, &now, &use->last);
	use->whose = CGROUPSUM_SAME;
}

/* In a thread that may be given up. */
static void read_all(void *arg, struct guard *g)
{
	struct monitor *m = arg;
	uint64_t cpu = clocks_thread_cpu();

	m->fs.guard = m->cgroups.fs.guard = g;
	for (; m->cgroups.at < m->groups.n_groups; m->cgroups.at++)
		if (m->groups.group[m->cgroups.at]->cgroup_use)
			read_one(m, m->groups.group[m->cgroups.at]);
	m->fs.guard = m->cgroups.fs.guard = NULL;
	m->body_cpu_ns += clocks_thread_cpu() - cpu;
}

/* Left alone until every thread that was lost is back. */
static bool pass_over(void *arg)
{
	struct monitor *m = arg;
	struct group *g = m->groups.group[m->cgroups.at++];

	m->cgroups.fs.guard = NULL;
	g->cgroup_use->hangs = true;
	leave(m, g->cgroup_use);
	monitor_tell(m, MONITOR_WARNING,
		     "the cgroup of %s keeps whoever reads it waiting; it is "
		     "left alone until it answers",
		     g->name);
	return procfs_renew(&m->fs) == 0 && ++m->cgroups.n_hang < HANG_MAX;
}

static bool open_once(struct monitor *m)
{
	struct cgroupread *cr = &m->cgroups;
	char path[PATH_MAX];

	if (cr->is_open || cr->is_missing)
		return cr->is_open;
	snprintf(path, sizeof(path), "%s/fs/cgroup", m->sys_path);
	cr->is_open = cgroupfs_open(&cr->fs, path, &m->fs.kept) == 0;
	cr->is_missing = !cr->is_open;
	if (cr->is_missing && !cr->told_missing)
		monitor_tell(m, MONITOR_WARNING,
			     "%s has no control groups: cgroup has no values",
			     path);
	cr->told_missing |= cr->is_missing;
	return cr->is_open;
}

void cgroupread_run(struct monitor *m)
{
	struct cgroupread *cr = &m->cgroups;
	bool wanted = false;

	for (size_t i = 0; i < m->groups.n_groups && !wanted; i++)
		wanted = collects(m->groups.group[i]->collect);
	if (!wanted && !cr->n_used)
		return;
	if (wanted)
		open_once(m);
	begin(m);
	take_members(m);
	if (m->tab.nobody_hangs)
		cr->n_hang = 0;
	cr->at = 0;
	/* Threads are few, and those who read processes need them, too. */
	if (cr->n_used && cr->n_hang < HANG_MAX)
		runner_run(&m->runner, read_all, pass_over, m, MONITOR_HANG_NS);
	if (!wanted && cr->is_open) {
		cgroupfs_close(&cr->fs);
		cr->is_open = false;
	}
}

void cgroupread_adopt(struct monitor *m)
{
	m->cgroups.is_missing = false;
}

void cgroupread_close(struct monitor *m)
{
	struct cgroupread *cr = &m->cgroups;

	for (size_t i = 0; i < cr->n_used; i++)
		use_free(cr, cr->use[i]);
	free(cr->use);
	if (cr->is_open)
		cgroupfs_close(&cr->fs);
	*cr = (struct cgroupread){0};
}
