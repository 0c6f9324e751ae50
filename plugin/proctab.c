/* SPDX-License-Identifier: MIT */
#include "proctab-internal.h"

enum {
	HOST_LOOK_S = 5,    /* at swap and reclaim of the host, at most */
	LOOK_AGAIN_S = 600, /* at the latest, whatever happened on the host */
};

void proctab_init(struct proctab *t, struct procfs *fs)
{
	*t = (struct proctab){
	    .fs = fs,
	    .opt = {.gate = true, .refresh_ns = 60 * NSEC_PER_SEC},
	    .n_views = 1,
	    .n_values = METRIC_N_STORED,
	    .counters = metric_counters(),
	};
	for (unsigned i = 0; i < SOURCE_N; i++)
		t->rows[i] = metric_rows((enum metric_source)i);
	for (unsigned row = 0; row < METRIC_N_STORED; row++)
		if (metrics[row].collect == COLLECT_SWAP)
			t->swap_rows |= METRIC_BIT(row);
}

void proc_free(struct proctab *t, struct proc *p)
{
	if (!p)
		return;
	procfs_pid_close(t->fs, &p->at);
	if (p->flags & PROC_COMM_IS_LONG)
		free(p->comm.whole);
	free(p->tasks);
	free(p->traits);
	free(p->member);
	free(p);
}

void proctab_done(struct proctab *t)
{
	for (size_t i = 0; i < t->n_procs; i++)
		proc_free(t, t->entry[i].proc);
	proctab_free_left(t);
	free(t->entry);
	free(t->spare);
	free(t->due);
	free(t->task_scratch);
	*t = (struct proctab){0};
}

/* Places, and behind them values. */
static struct proc *allocate(size_t n_views, size_t n_values)
{
	struct proc *p = calloc(1, sizeof(*p) + n_views * sizeof(p->place[0]) +
				       n_values * sizeof(p->value[0]));

	if (p)
		p->value = (uint64_t *)(void *)&p->place[n_views];
	return p;
}

struct proc *proc_new(const struct proctab *t, pid_t pid)
{
	struct proc *p = allocate(t->n_views, t->n_values);

	if (!p)
		return NULL;
	procfs_pid_init(&p->at, pid);
	p->flags = PROC_NEW;
	p->worth = PROCFS_KEEP(PROCFS_STAT);
	return p;
}

bool proc_set_comm(struct proc *p, struct str comm)
{
	char *whole = NULL;

	if (comm.n >= PROC_COMM_SHORT) {
		whole = malloc(comm.n + 1);
		if (!whole)
			return false;
	}
	if (p->flags & PROC_COMM_IS_LONG)
		free(p->comm.whole);
	p->flags &= ~(uint32_t)PROC_COMM_IS_LONG;
	if (whole) {
		p->comm.whole = whole;
		p->flags |= PROC_COMM_IS_LONG;
	} else {
		whole = p->comm.brief;
	}
	memcpy(whole, comm.s, comm.n);
	whole[comm.n] = '\0';
	return true;
}

/* The same process with places for n views and n_values values, no fewer. */
static struct proc *with_views(const struct proctab *t, const struct proc *p,
			       size_t n, const int *from, size_t n_values)
{
	struct proc *q = allocate(n, n_values);
	uint64_t *value;

	if (!q)
		return NULL;
	value = q->value;
	memcpy(q, p, sizeof(*q));
	q->value = value;
	memcpy(value, p->value, t->n_values * sizeof(*value));
	for (size_t i = 0; i < n; i++)
		q->place[i] =
		    from[i] < 0 ? (struct proc_place){0} : p->place[from[i]];
	return q;
}

/* Those who are there, and then those who left. */
static struct proc_entry *nth(struct proctab *t, size_t i)
{
	return i < t->n_procs ? &t->entry[i] : &t->left[i - t->n_procs];
}

int proctab_set_views(struct proctab *t, size_t n, const int *from,
		      size_t n_values)
{
	size_t n_all = t->n_procs + t->n_left, i;
	_cleanup_free_ struct proc **procs = calloc(n_all + 1, sizeof(*procs));

	if (!procs)
		return -ENOMEM;
	if (n_all)
		n_values = MAX(n_values, t->n_values);
	for (i = 0; i < n_all; i++) {
		const struct proc *p = nth(t, i)->proc;

		procs[i] = p ? with_views(t, p, n, from, n_values) : NULL;
		if (p && !procs[i])
			break;
	}
	if (i < n_all) {
		while (i-- > 0)
			free(procs[i]);
		return -ENOMEM;
	}
	for (i = 0; i < n_all; i++) {
		free(nth(t, i)->proc);
		nth(t, i)->proc = procs[i];
	}
	t->n_views = n;
	t->n_values = n_values;
	return 0;
}

static bool is_same_list(const struct proctab *t)
{
	const pid_t *pid = t->fs->pid_list;

	if (t->n_procs != t->fs->n_pids || t->n_gone)
		return false;
	for (size_t i = 0; i < t->n_procs; i++)
		if (t->entry[i].pid != pid[i])
			return false;
	return true;
}

static int add_entry(struct proctab *t, size_t n, pid_t pid)
{
	struct proc *p = proc_new(t, pid);

	if (!p)
		return -ENOMEM;
	t->spare[n] = (struct proc_entry){
	    .pid = pid,
	    .proc = p,
	};
	return 0;
}

static void swap_arrays(struct proctab *t)
{
	struct proc_entry *entry = t->entry;
	size_t cap = t->cap;

	t->entry = t->spare;
	t->cap = t->spare_cap;
	t->spare = entry;
	t->spare_cap = cap;
}

/* Merges the sorted listing with the sorted table, into the spare array. */
static int merge(struct proctab *t)
{
	const pid_t *pid = t->fs->pid_list;
	size_t n_pids = t->fs->n_pids, n = 0, old = 0, i = 0;
	int r = array_reserve(&t->spare, &t->spare_cap, MAX(n_pids, t->n_procs),
			      sizeof(*t->spare));

	if (r < 0)
		return r;
	while (i < n_pids) {
		struct proc_entry *e = old < t->n_procs ? &t->entry[old] : NULL;

		if (e && (e->pid < pid[i] || e->proc->flags & PROC_IS_GONE)) {
			proctab_leave_table(t, e);
			old++;
		} else if (e && e->pid == pid[i]) {
			t->spare[n++] = *e;
			old++;
			i++;
		} else {
			/* Out of memory: it is seen after a later listing. */
			if (add_entry(t, n, pid[i]) == 0)
				n++;
			i++;
		}
	}
	for (; old < t->n_procs; old++)
		proctab_leave_table(t, &t->entry[old]);
	swap_arrays(t);
	t->n_procs = n;
	t->n_gone = 0;
	return 0;
}

static bool uses_gate(const struct proctab *t)
{
	return t->opt.gate && t->fs->has_clocks;
}

/*
 * A thread's number has no process clock, but for our own thread: its number
 * is taken for the process's (pid_for_clock(), kernel/time/posix-cpu-timers.c,
 * Linux 6.18).
 */
static int read_clock(struct proctab *t, pid_t pid, uint64_t *ret_ns)
{
	if (pid == t->own_tid && pid != t->own_pid)
		return PROC_GONE;
	return procfs_clock(t->fs, pid, ret_ns);
}

/*
 * Instead of a listing: who was there and has not left, and who now answers
 * by one of the numbers given since.
 */
static int list_births(struct proctab *t, pid_t first, pid_t last)
{
	struct procfs *fs = t->fs;
	size_t n_more = (size_t)(last - first) + 1;
	uint64_t clock;
	size_t n = 0;
	int r = array_reserve(&fs->pid_list, &fs->pid_cap, t->n_procs + n_more,
			      sizeof(*fs->pid_list));

	if (r < 0)
		return r;
	for (size_t i = 0; i < t->n_procs; i++)
		if (!(t->entry[i].proc->flags & PROC_IS_GONE))
			fs->pid_list[n++] = t->entry[i].pid;
	for (pid_t pid = first; pid <= last; pid++)
		if (read_clock(t, pid, &clock) == 0)
			fs->pid_list[n++] = pid;
	fs->n_pids = n;
	procfs_sort_list(fs);
	return 0;
}

static int list(struct proctab *t, const struct moment *now)
{
	pid_t first = 1, last = 0;

	if (!uses_gate(t))
		return procfs_list(t->fs);
	switch (births_look(&t->births, t->fs, now->mono_ns,
			    (unsigned)t->n_procs, &first, &last)) {
	case BIRTHS_UNKNOWN:
		return procfs_list(t->fs);
	case BIRTHS_NONE:
		return t->n_gone ? list_births(t, 1, 0) : 0;
	case BIRTHS_AMONG:
		return list_births(t, first, last);
	}
	return 0;
}

/* Nanoseconds since boot in the unit of start times. */
static uint64_t in_ticks(const struct proctab *t, uint64_t ns)
{
	uint64_t hz = (uint64_t)t->fs->scale.ticks_per_second;

	return ns / NSEC_PER_SEC * hz + ns % NSEC_PER_SEC * hz / NSEC_PER_SEC;
}

int proctab_list(struct proctab *t, const struct moment *now)
{
	uint64_t recheck = MIN(t->opt.recheck_ns, now->boot_ns);
	int r;

	t->tick++;
	if (t->tick == 1)
		t->first_tick_start = in_ticks(t, now->boot_ns);
	t->young_start = in_ticks(t, now->boot_ns - recheck);
	t->own_pid = getpid();
	t->own_tid = gettid();
	r = list(t, now);
	if (r == 0 && !is_same_list(t))
		r = merge(t);
	/* What is not known whole is listed anew the next time. */
	if (r < 0)
		t->births.known = false;
	keptfd_provide(&t->fs->kept, (unsigned)t->n_procs);
	return r;
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

bool proctab_is_turn(const struct proctab *t, pid_t pid, uint32_t period_s)
{
	uint32_t phase = (uint32_t)pid * 2654435761u % period_s;

	return (t->now_s + phase) / period_s !=
	       (t->last_tick_s + phase) / period_s;
}

bool proctab_is_refresh(const struct proctab *t, pid_t pid)
{
	uint32_t refresh_s = (uint32_t)(t->opt.refresh_ns / NSEC_PER_SEC);

	return proctab_is_turn(t, pid, MAX(refresh_s, 1u));
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
	if (proctab_is_turn(t, e->pid, LOOK_AGAIN_S))
		return true;
	if (!proctab_is_refresh(t, e->pid))
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
	if (read_clock(t, e->pid, &clock) != 0) {
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
	bool gate = uses_gate(t);
	int r =
	    array_reserve(&t->due, &t->due_cap, t->n_procs, sizeof(*t->due));

	if (r < 0)
		return r;
	t->last_tick_s = t->now_s;
	t->now_s = (uint32_t)(now->mono_ns / NSEC_PER_SEC);
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

void proc_mark_gone(struct proctab *t, struct proc *p)
{
	p->flags |= PROC_IS_GONE;
	t->n_gone++;
}

void proctab_try_again(struct proctab *t, struct proc_entry *e, int r)
{
	e->proc->flags |= PROC_LOOK_AGAIN | PROC_MISSED;
	t->counts.n_failed += procfs_is_transient(r);
}

void proctab_leave(struct proctab *t, struct proc *p)
{
	procfs_leave(t->fs, &p->at);
}

struct proc_entry *proctab_find_pid(struct proctab *t, pid_t pid)
{
	size_t low = 0, high = t->n_procs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		struct proc_entry *e = &t->entry[mid];

		if (e->pid == pid)
			return e;
		if (e->pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

struct proc_entry *proctab_find(struct proctab *t, pid_t pid, uint64_t start)
{
	struct proc_entry *e = proctab_find_pid(t, pid);

	return e && e->proc->start == start ? e : NULL;
}

struct proc_entry *proctab_parent(struct proctab *t, const struct proc *p)
{
	struct proc_entry *e =
	    p->ppid > 0 ? proctab_find_pid(t, p->ppid) : NULL;

	if (!e || e->proc == p || !e->proc->start || e->proc->start > p->start)
		return NULL;
	return e;
}

void proctab_ask_again(struct proctab *t)
{
	for (size_t i = 0; i < t->n_procs; i++) {
		struct proc_entry *e = &t->entry[i];

		e->proc->flags |= PROC_RENAMED | PROC_LOOK_AGAIN;
	}
}
