/* SPDX-License-Identifier: MIT */
#include "proctab-internal.h"
#include "subject.h"

enum {
	EVICT_STEPS = 32, /* entries tried for each room that is wanted */
};

/* Frees descriptors of processes that did not run in the last two ticks. */
static void make_room(struct proctab *t)
{
	for (unsigned i = 0; i < EVICT_STEPS && t->n_procs; i++) {
		struct proc *p = t->entry[t->hand++ % t->n_procs].proc;

		if (!procfs_pid_is_kept(&p->at) || p->ran_tick + 1 >= t->tick)
			continue;
		procfs_pid_close(t->fs, &p->at);
		return;
	}
}

static void take_stat(struct proctab *t, struct proc *p,
		      const struct proc_stat *st, struct growth *g)
{
	metric_mask rows = t->rows[SOURCE_STAT];
	uint64_t now[METRIC_N_STORED];

	for (metric_mask m = rows; m; m &= m - 1) {
		unsigned row = (unsigned)__builtin_ctzll(m);

		now[row] = st->field[metrics[row].field];
	}
	proc_take(t, p, rows, now, g);
}

/* A dead process has no memory; that is not the same as using 0 bytes. */
static void take_no_memory(const struct proctab *t, struct proc *p)
{
	for (metric_mask m = t->rows[SOURCE_STAT]; m; m &= m - 1) {
		unsigned row = (unsigned)__builtin_ctzll(m);

		if (metrics[row].field == STAT_FIELD_RSS ||
		    metrics[row].field == STAT_FIELD_VSIZE)
			p->have &= ~METRIC_BIT(row);
	}
}

/*
 * The leader is a zombie and other threads run on: the process lives. CPU
 * time and thread count in its stat go on; state and memory are a living
 * thread's (do_task_stat(), fs/proc/array.c, Linux 6.18).
 */
static bool borrow_from_live_task(struct proctab *t, struct proc *p,
				  struct proc_stat *st)
{
	struct proc_stat live;
	struct str text;

	for (unsigned attempt = 0; attempt < 2; attempt++) {
		if (!p->at.live_tid &&
		    procfs_find_live_task(t->fs, &p->at, &p->at.live_tid) != 0)
			return false;
		if (procfs_read_live_stat(t->fs, &p->at, &text) == 0 &&
		    proctext_parse_stat(text, &live) == 0 &&
		    live.state != 'Z' && live.state != 'X') {
			st->state = live.state;
			st->field[STAT_FIELD_VSIZE] =
			    live.field[STAT_FIELD_VSIZE];
			st->field[STAT_FIELD_RSS] = live.field[STAT_FIELD_RSS];
			return true;
		}
		p->at.live_tid = 0;
	}
	return false;
}

/* Notes the name; true if it is another one than before. */
static bool take_comm(struct proc *p, struct str comm, bool workqueue_worker)
{
	struct str stable = subject_stable_comm(comm, workqueue_worker);
	size_t n = MIN(stable.n, (size_t)PROC_COMM_SIZE - 1);

	stable.n = n;
	return !str_eq(str_of(proc_comm(p)), stable) &&
	       proc_set_comm(p, stable);
}

/*
 * A program that is exec'd gets its stack at a place of its own, by chance.
 * Source: setup_arg_pages() in fs/exec.c, Linux 6.18.
 */
static void watch_exec(struct proc *p, const struct proc_stat *st)
{
	uint64_t at = st->field[STAT_FIELD_STACK];
	uint32_t stack = (uint32_t)(at >> 32 ^ at);

	if (!stack)
		return;
	if (p->stack && p->stack != stack) {
		pss_void(&p->pss);
		if (!(p->flags & PROC_NEW))
			p->flags |= PROC_RENAMED;
	}
	p->stack = stack;
}

/* Has somebody moved it, or has it become somebody else? */
static void watch_identity(struct proctab *t, struct proc *p)
{
	uint32_t uid, gid, hash;
	struct str text;

	if (p->flags & PROC_UID_KNOWN && t->opt.owner &&
	    procfs_owner(t->fs, &p->at, &uid, &gid) == 0) {
		if (uid != p->uid || gid != p->gid)
			p->flags |= PROC_RENAMED;
		p->uid = uid;
		p->gid = gid;
	}
	if (p->flags & PROC_CGROUP_KNOWN && t->opt.cgroup &&
	    (!t->fs->has_clocks || proctab_is_turn(&t->refresh, p->at.pid)) &&
	    procfs_read(t->fs, &p->at, PROCFS_CGROUP, &text) == 0) {
		hash = (uint32_t)hash_bytes(text);
		if (hash != p->cgroup_hash)
			p->flags |= PROC_RENAMED;
		p->cgroup_hash = hash;
	}
}

/* A kept descriptor answers for the process that it was opened for. */
static int read_stat(struct proctab *t, struct proc_entry *e, struct str *text)
{
	struct proc *p = e->proc;
	bool was_kept = procfs_pid_is_kept(&p->at);
	int r = 0;

	if (p->at.keep && !was_kept && !keptfd_has_room(&t->fs->kept))
		make_room(t);
	/* Of one that did not run little more than stat is read. */
	if (!p->start || proc_has_run(t, p) || p->flags & PROC_MISSED)
		r = procfs_enter(t->fs, &p->at);
	if (r == 0)
		r = procfs_read(t->fs, &p->at, PROCFS_STAT, text);
	if (r != PROC_GONE || !was_kept)
		return r;

	/* The listing has this number all the same: another process has it. */
	p->flags |= PROC_IS_GONE;
	procfs_pid_close(t->fs, &p->at);
	r = procfs_enter(t->fs, &p->at);
	return r ? r : procfs_read(t->fs, &p->at, PROCFS_STAT, text);
}

/* The number was reused: a new process begins in this place of the table. */
static int replace(struct proctab *t, struct proc_entry *e)
{
	struct proc *p = proc_new(t, e->pid);
	struct proc_entry old = *e;

	if (!p)
		return -ENOMEM;
	p->ran_tick = t->tick;
	p->at = e->proc->at;
	p->at.live_tid = 0;
	procfs_pid_init(&e->proc->at, e->pid);
	old.clock = 0; /* it is the new one's */
	proctab_leave_table(t, &old);
	e->proc = p;
	return 0;
}

/* 0 stands for "not seen"; so early begin only the first tasks of a host. */
static uint64_t start_of(const struct proc_stat *st)
{
	return MAX(st->field[STAT_FIELD_START], UINT64_C(1));
}

/* It has ended, or is about to; maybe other threads of it run on. */
static bool leader_exits(const struct proc_stat *st)
{
	return st->state == 'Z' || st->state == 'X' ||
	       st->field[STAT_FIELD_FLAGS] & STAT_FLAG_EXITING;
}

/* No thread of it runs any more, or the last one is about to end. */
static bool is_ending(const struct proc_stat *st)
{
	return st->field[STAT_FIELD_THREADS] <= 1 && leader_exits(st);
}

/* Who is seen to live did not leave the record that was taken for its own. */
static void note_exit(struct proc *p, const struct proc_stat *st)
{
	if (leader_exits(st))
		p->flags |= PROC_EXITS;
	else
		p->flags &= ~(uint32_t)(PROC_EXITS | PROC_ENDED);
}

/* What it is, by its stat: what rules ask for may have changed with it. */
static void take_identity(struct proctab *t, struct proc *p,
			  const struct proc_stat *st)
{
	/* A helper of the kernel is a kernel thread until it execs. */
	if (st->field[STAT_FIELD_FLAGS] & STAT_FLAG_KTHREAD)
		p->flags |= PROC_KERNEL;
	else
		p->flags &= ~(uint32_t)PROC_KERNEL;
	if (take_comm(p, st->comm,
		      st->field[STAT_FIELD_FLAGS] & STAT_FLAG_WQ_WORKER) &&
	    !(p->flags & PROC_NEW)) {
		p->flags |= PROC_RENAMED;
		/* Where the stack is not told any new name is an exec. */
		if (!p->stack)
			pss_void(&p->pss);
	}
	p->ppid = (pid_t)st->field[STAT_FIELD_PPID];
	watch_exec(p, st);
	/* What it is may show only after some time: by its title, say. */
	if (p->start > t->young_start && p->flags & PROC_MAY_MOVE &&
	    proc_has_run(t, p))
		p->flags |= PROC_RENAMED;
}

int proctab_look(struct proctab *t, struct proc_entry *e,
		 struct growth *ret_growth)
{
	struct proc *p = e->proc;
	struct proc_stat st;
	struct str text;
	uint64_t start;
	int r;

	ret_growth->rows = 0;
	r = read_stat(t, e, &text);
	if (r == PROC_GONE) {
		proc_mark_gone(t, p);
		return PROC_GONE;
	}
	if (r == 0 && proctext_parse_stat(text, &st) < 0) {
		t->counts.n_bad++;
		r = PROC_ABSENT;
	}
	if (r) {
		proctab_try_again(t, e, r);
		return r < 0 ? r : PROC_ABSENT;
	}
	start = start_of(&st);
	if (p->start && (p->start != start || p->flags & PROC_IS_GONE)) {
		r = replace(t, e);
		if (r < 0)
			return r;
		p = e->proc;
	}
	if (!p->start) {
		p->start = start;
		if (t->keeps_left && is_ending(&st))
			p->flags |= PROC_ENDING;
		else if (t->tick > 1 && p->start >= t->first_tick_start)
			p->flags |= PROC_BORN;
	}
	note_exit(p, &st);
	take_identity(t, p, &st);
	/* The text is not needed any more: the scratch buffer may go. */
	if (st.state == 'Z' && st.field[STAT_FIELD_THREADS] > 1)
		borrow_from_live_task(t, p, &st);
	else
		p->at.live_tid = 0;
	p->state = st.state;
	take_stat(t, p, &st, ret_growth);
	if (proc_is_zombie(p))
		take_no_memory(t, p);
	/*
	 * Of a task that is exiting some hierarchies tell the root cgroup
	 * (proc_cgroup_show(), kernel/cgroup/cgroup.c, Linux 6.18): it stays
	 * what it was.
	 */
	if (!(p->flags & PROC_NEW) &&
	    (p->at.live_tid ||
	     !(proc_is_zombie(p) ||
	       st.field[STAT_FIELD_FLAGS] & STAT_FLAG_EXITING)))
		watch_identity(t, p);
	return 0;
}

int proctab_look_again(struct proctab *t, struct proc_entry *e)
{
	struct proc *p = e->proc;
	struct proc_stat st;
	struct str text;
	int r;

	if (p->at.dir_fd >= 0)
		return 0;
	r = procfs_enter(t->fs, &p->at);
	if (r == 0)
		r = procfs_read(t->fs, &p->at, PROCFS_STAT, &text);
	if (r == 0 && proctext_parse_stat(text, &st) < 0)
		r = PROC_ABSENT;
	if (r == 0 && start_of(&st) != p->start)
		r = PROC_GONE;
	if (r == PROC_GONE)
		proc_mark_gone(t, p);
	if (r)
		procfs_pid_close(t->fs, &p->at);
	return r;
}
