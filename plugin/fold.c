/* SPDX-License-Identifier: MIT */
/*
 * The fold of one interval: what each process holds, and where it may not be
 * read, is added up by group. It reads no file. What processes grew by is in
 * the groups already; see monitor_count().
 */
#include "gpuread.h"
#include "exitread.h"
#include "pssread.h"
#include "series.h"

enum {
	HANG_TELL_S = 1, /* then its process is told of */
};

/* Of files that no group wants nothing is known. */
static void begin_denied(struct monitor *m)
{
	metric_mask wanted = 0;

	for (size_t i = 0; i < m->groups.n_groups; i++)
		wanted |= m->groups.group[i]->wanted;
	for (size_t i = 0; i < MONITOR_N_REFUSABLE; i++)
		*monitor_refusals(&m->self, i) =
		    wanted & m->tab.rows[monitor_refusable[i].source]
			? 0
			: SELFSTAT_ABSENT;
}

/*
 * A host that is busy may keep a process from ending its exec for longer than
 * we wait. One that has not run a second later hangs.
 */
static void tell_hanging(struct monitor *m, const struct proc_entry *e)
{
	struct proc *p = e->proc;
	const char *comm = proc_comm(p); /* none if it hung from the first */

	if (p->flags & PROC_HANG_TOLD ||
	    m->tab.now_s - e->looked_s < HANG_TELL_S)
		return;
	p->flags |= PROC_HANG_TOLD;
	m->self.stalls++;
	monitor_tell(m, MONITOR_WARNING,
		     "process %d%s%s%s keeps whoever reads its files waiting; "
		     "it is left alone until it runs again",
		     (int)e->pid, *comm ? " (" : "", comm, *comm ? ")" : "");
}

/* Counts the processes of which a source was refused. */
static void count_denied(struct selfstat *self, const struct proc *p)
{
	for (size_t i = 0; i < MONITOR_N_REFUSABLE; i++)
		if (p->denied & 1u << monitor_refusable[i].source &&
		    *monitor_refusals(self, i) != SELFSTAT_ABSENT)
			++*monitor_refusals(self, i);
}

void monitor_fold(struct monitor *m)
{
	struct selfstat *self = &m->self;

	self->unreadable_stat = self->stalled = 0;
	begin_denied(m);
	groups_begin(&m->groups);
	for (size_t i = 0; i < m->tab.n_procs; i++) {
		const struct proc *p = m->tab.entry[i].proc;
		struct group_member member = {
		    .value = p->value,
		    .have = p->have,
		    .state = p->state,
		    .start = p->start,
		};

		if (p->flags & PROC_IS_GONE)
			continue;
		if (m->pss.asked && pssread_now(m, p, &member.pss_now))
			member.pss = &p->pss;
		for (size_t v = 0; v < m->tab.n_views; v++) {
			if (p->place[v].group)
				groups_fold(&m->groups, p->place[v].group,
					    &member);
			if (p->member && p->member->in[v].series)
				groups_fold(&m->groups, p->member->in[v].series,
					    &member);
		}
		if (p->denied)
			count_denied(self, p);
		self->unreadable_stat += p->start == 0;
		self->stalled += !!(p->flags & (PROC_IS_STALLED | PROC_HANGS));
		if (p->flags & PROC_HANGS)
			tell_hanging(m, &m->tab.entry[i]);
	}
	gpuread_fold(m);
	exitread_hold(m);
	groups_end(&m->groups, m->now.mono_ns);
	groups_expire(&m->groups, m->now.mono_ns, m->rules->idle_ns);
}
