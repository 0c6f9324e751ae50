/* SPDX-License-Identifier: MIT */
#include "proctab-internal.h"

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
		if (proctab_read_clock(t, pid, &clock) == 0)
			fs->pid_list[n++] = pid;
	fs->n_pids = n;
	procfs_sort_list(fs);
	return 0;
}

static int list(struct proctab *t, const struct moment *now)
{
	pid_t first = 1, last = 0;

	if (!proctab_uses_gate(t))
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
