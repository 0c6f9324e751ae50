/* SPDX-License-Identifier: MIT */
/*
 * Who ran, and who is to be looked at for another reason. It reads no file of
 * a process but, in its turn, the cgroup, and does not know what is looked at.
 *
 * Invariant: where clocks are asked, whoever used CPU time since the last gate
 * is due, or gone.
 */
#include "proctab-internal.h"

enum {
	HOST_LOOK_S = 5,    /* at swap and reclaim of the host, at most */
	LOOK_AGAIN_S = 600, /* at the latest, whatever happened on the host */
};

bool proctab_uses_gate(const struct proctab *t)
{
	return t->opt.gate && t->fs->has_clocks;
}

int proctab_read_clock(struct proctab *t, pid_t pid, uint64_t *ret_ns)
{
	if (pid == t->own_tid && pid != t->own_pid)
		return PROC_GONE;
	return procfs_clock(t->fs, pid, ret_ns);
}

/* Notes whether the kernel changed memory of processes that did not run. */
static void watch_host(struct proctab *t)
{
	bool first = t->host_looked_s == 0;
	uint64_t count;

	if (!first && t->now_s - t->host_looked_s < HOST_LOOK_S)
		return;
	t->host_looked_s = t->now_s;
	t->has_swap = procfs_has_swap(t->fs);
	if (procfs_reclaim_count(t->fs, &count) != 0) {
		t->reclaim_s = t->now_s; /* not told: it may always have */
		return;
	}
	if (count != t->reclaim_count && !first)
		t->reclaim_s = t->now_s;
	t->reclaim_count = count;
}

static struct proctab_turns turns_of(uint32_t now_s, uint32_t before_s,
				     uint32_t period_s)
{
	return (struct proctab_turns){
	    .period_s = period_s,
	    .into_s = now_s % period_s,
	    .passed_s = MIN(now_s - before_s, period_s),
	};
}

/* No division is left for the single process. */
static void begin_turns(struct proctab *t, uint32_t before_s)
{
	uint32_t refresh_s = (uint32_t)(t->opt.refresh_ns / NSEC_PER_SEC);

	t->refresh = turns_of(t->now_s, before_s, MAX(refresh_s, 1u));
	t->look_again = turns_of(t->now_s, before_s, LOOK_AGAIN_S);
}

/* Others may have moved it to another cgroup. */
static bool is_moved(struct proctab *t, struct proc *p)
{
	struct str text;

	return p->flags & PROC_CGROUP_KNOWN && !proc_is_zombie(p) &&
	       procfs_read(t->fs, &p->at, PROCFS_CGROUP, &text) == 0 &&
	       (uint32_t)hash_bytes(text) != p->cgroup_hash;
}

/* Can there be news of a process that did not run? */
static bool is_stale(struct proctab *t, const struct proc_entry *e)
{
	if (proctab_is_turn(&t->look_again, e->pid))
		return true;
	if (!proctab_is_turn(&t->refresh, e->pid))
		return false;
	return t->reclaim_s >= e->looked_s ||
	       (t->opt.cgroup && is_moved(t, e->proc));
}

/*
 * The clock is read before the files: what a process does between the two
 * moves its clock beyond what is noted here, and is seen in the next tick.
 */
static bool is_due(struct proctab *t, struct proc_entry *e)
{
	struct proc *p = e->proc;
	uint64_t clock;
	bool moved;

	/* Its number may be a thread's by now: nothing must be read by it. */
	if (proctab_read_clock(t, e->pid, &clock) != 0) {
		proc_mark_gone(t, p);
		return false;
	}
	moved = clock != e->clock;
	e->clock = clock;
	if (p->flags & PROC_HANGS) {
		if (!moved)
			return false;
		p->flags &= ~(uint32_t)(PROC_HANGS | PROC_HANG_TOLD);
	}
	if (!p->start)
		return true;
	if (moved) {
		/* Having run twice, it is worth descriptors. */
		p->at.keep = p->ran_tick ? p->worth : 0;
		p->ran_tick = t->tick;
		return true;
	}
	/* Most have none: what is not written to stays clean in the cache. */
	if (p->at.keep)
		p->at.keep = 0;
	if (p->flags & PROC_LOOK_AGAIN || is_stale(t, e))
		return true;
	t->counts.n_saved++;
	return false;
}

/* Without clocks each process counts as having run. */
static bool is_due_ungated(struct proctab *t, struct proc_entry *e)
{
	if (e->proc->flags & PROC_HANGS && !t->nobody_hangs)
		return false;
	e->proc->flags &= ~(uint32_t)(PROC_HANGS | PROC_HANG_TOLD);
	e->proc->at.keep = e->proc->worth;
	e->proc->ran_tick = t->tick;
	return true;
}

/* The budget may have become smaller. */
static void keep_to_budget(struct proctab *t)
{
	struct keptfd *kept = &t->fs->kept;

	for (size_t i = 0; kept->n_kept > kept->budget && i < t->n_procs; i++)
		procfs_pid_close(t->fs, &t->entry[i].proc->at);
}

int proctab_gate(struct proctab *t, const struct moment *now)
{
	bool gate = proctab_uses_gate(t);
	uint32_t before_s = t->now_s;
	int r =
	    array_reserve(&t->due, &t->due_cap, t->n_procs, sizeof(*t->due));

	if (r < 0)
		return r;
	t->now_s = (uint32_t)(now->mono_ns / NSEC_PER_SEC);
	begin_turns(t, before_s);
	watch_host(t);
	keep_to_budget(t);
	t->n_due = 0;
	for (size_t i = 0; i < t->n_procs; i++) {
		struct proc_entry *e = &t->entry[i];

		if (e->proc->flags & PROC_IS_GONE ||
		    !(gate ? is_due(t, e) : is_due_ungated(t, e)))
			continue;
		e->proc->flags &= ~(uint32_t)PROC_LOOK_AGAIN;
		e->looked_s = t->now_s;
		t->due[t->n_due++] = (uint32_t)i;
	}
	return 0;
}
