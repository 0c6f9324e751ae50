/* SPDX-License-Identifier: MIT */
#include "delay.h"
#include "proctab-internal.h"

enum {
	TASK_ROWS =
	    2, /* of SOURCE_TASKS in the table; tests/metric.c holds it */
};

struct task_count {
	pid_t tid;
	uint64_t value[TASK_ROWS];
};

struct proc_tasks {
	size_t n, cap;
	bool whole; /* counted since the process began */
	struct task_count task[];
};

static void keep_growth(struct growth *g, unsigned row, uint64_t by)
{
	g->rows |= METRIC_BIT(row);
	g->by[row] = by;
}

void proc_take(struct proctab *t, struct proc *p, metric_mask found,
	       const uint64_t *now, struct growth *g)
{
	bool born = (p->flags & PROC_NEW) && (p->flags & PROC_BORN);
	bool stands = p->flags & (PROC_ENDING | PROC_ENDED);

	for (metric_mask m = found; m; m &= m - 1) {
		unsigned row = (unsigned)__builtin_ctzll(m);
		uint64_t was = p->value[row];

		if (!(t->counters & METRIC_BIT(row))) {
			p->value[row] = now[row];
			continue;
		}
		if (!(p->have & METRIC_BIT(row)))
			was = born ? 0 : now[row];
		if (stands)
			was = now[row];
		if (now[row] < was) {
			t->counts.n_anomalies++;
			keep_growth(g, row, 0);
			continue;
		}
		keep_growth(g, row, now[row] - was);
		p->value[row] = now[row];
	}
	p->have |= found;
}

/*
 * A failure of ours says nothing of a process: for one tick what it had
 * stands, or the sum over its group would fall by that.
 */
static bool is_unknown(const struct proc *p, int r)
{
	return r >= 0 || p->flags & PROC_MISSED;
}

/* Gauges of one source that were not found again are not known any more. */
static void drop_gauges(const struct proctab *t, struct proc *p,
			metric_mask rows, metric_mask found)
{
	p->have &= ~(rows & ~found & ~t->counters);
}

static void note_denied(struct proc *p, enum metric_source source, int r)
{
	if (r == PROC_DENIED)
		p->denied |= (uint8_t)(1u << source);
	else
		p->denied &= (uint8_t) ~(1u << source);
}

static int sample_keys(struct proctab *t, struct proc *p,
		       enum metric_source source, enum procfs_file file,
		       struct growth *g)
{
	metric_mask found = 0;
	uint64_t now[METRIC_N_STORED];
	struct str text;
	int r = procfs_read(t->fs, &p->at, file, &text);

	if (r == 0) {
		found = proctext_parse_keys(source, text, t->rows[source], now);
		proc_take(t, p, found, now, g);
	}
	if (is_unknown(p, r))
		drop_gauges(t, p, t->rows[source], found);
	return r;
}

static int sample_io(struct proctab *t, struct proc *p, _unused_ metric_mask m,
		     struct growth *g)
{
	return sample_keys(t, p, SOURCE_IO, PROCFS_IO, g);
}

static int sample_status(struct proctab *t, struct proc *p, metric_mask wanted,
			 struct growth *g)
{
	/* Without a swap device nothing is swapped: nobody has to be asked. */
	if (!(wanted & ~t->swap_rows) && !t->has_swap) {
		p->have &= ~t->swap_rows;
		if (p->flags & PROC_KERNEL || proc_is_zombie(p))
			return 0;
		for (metric_mask m = t->swap_rows; m; m &= m - 1)
			p->value[__builtin_ctzll(m)] = 0;
		p->have |= t->swap_rows;
		return 0;
	}
	return sample_keys(t, p, SOURCE_STATUS, PROCFS_STATUS, g);
}

/* The one row of a source that has only one. */
static unsigned only_row(const struct proctab *t, enum metric_source source)
{
	return (unsigned)__builtin_ctzll(t->rows[source]);
}

static int sample_fds(struct proctab *t, struct proc *p, _unused_ metric_mask m,
		      _unused_ struct growth *g)
{
	unsigned row = only_row(t, SOURCE_FDS);
	uint64_t n;
	int r;

	if (proc_is_zombie(p)) {
		p->have &= ~METRIC_BIT(row);
		return 0;
	}
	r = procfs_count_fds(t->fs, &p->at, &n);
	if (is_unknown(p, r))
		p->have &= ~METRIC_BIT(row);
	if (r == 0) {
		p->value[row] = n;
		p->have |= METRIC_BIT(row);
	}
	return r;
}

/* Descriptors in millionths of their soft limit. */
static int sample_limits(struct proctab *t, struct proc *p,
			 _unused_ metric_mask m, _unused_ struct growth *g)
{
	unsigned row = only_row(t, SOURCE_LIMITS);
	struct str text;
	uint64_t n, limit;
	int r = 0;

	if (proc_is_zombie(p) || p->flags & PROC_KERNEL) {
		p->have &= ~METRIC_BIT(row);
		return 0;
	}
	/* Just counted, where the number itself is wanted, too. */
	if (p->have & t->rows[SOURCE_FDS])
		n = p->value[only_row(t, SOURCE_FDS)];
	else
		r = procfs_count_fds(t->fs, &p->at, &n);
	if (r == 0)
		r = procfs_read(t->fs, &p->at, PROCFS_LIMITS, &text);
	if (r == 0)
		r = proctext_parse_fd_limit(text, &limit);
	if (is_unknown(p, r))
		p->have &= ~METRIC_BIT(row);
	if (r == 0 && limit > 0) {
		/* A limit may have been lowered below what is open. */
		p->value[row] = MIN(n, limit) * 1000000 / limit;
		p->have |= METRIC_BIT(row);
	}
	return r;
}

struct task_walk {
	struct proctab *t;
	struct proc_tasks *old;
	size_t at; /* in old */
	struct proc_tasks *now;
	bool count_new; /* threads seen first count whole */
	uint64_t grown[TASK_ROWS];
};

static void walk_task(void *arg, pid_t tid, struct str status)
{
	struct task_walk *w = arg;
	metric_mask rows = w->t->rows[SOURCE_TASKS], found;
	uint64_t now[METRIC_N_STORED];
	const struct task_count *was = NULL;
	struct task_count *task;

	found = proctext_parse_keys(SOURCE_TASKS, status, rows, now);
	if (found != rows || w->now->n == MIN(w->now->cap, w->old->cap))
		return;
	/* Both lists are in the order of the kernel's thread list. */
	for (size_t i = 0; i < w->old->n; i++) {
		size_t k = (w->at + i) % w->old->n;

		if (w->old->task[k].tid != tid)
			continue;
		was = &w->old->task[k];
		w->at = k + 1;
		break;
	}
	task = &w->now->task[w->now->n++];
	task->tid = tid;
	for (unsigned i = 0; rows; rows &= rows - 1, i++) {
		uint64_t v = now[__builtin_ctzll(rows)];

		/* A thread's number may be reused: then it began at zero. */
		task->value[i] = v;
		if (was && v >= was->value[i])
			w->grown[i] += v - was->value[i];
		else if (was || w->count_new)
			w->grown[i] += v;
	}
}

/* Makes room for `cap` threads; what is there stays. */
static int tasks_reserve(struct proc_tasks **tasks, size_t cap)
{
	struct proc_tasks *p = *tasks;
	size_t n = p ? p->n : 0;

	if (p && p->cap >= cap)
		return 0;
	p = realloc(p, sizeof(*p) + cap * sizeof(p->task[0]));
	if (!p)
		return -ENOMEM;
	p->n = n;
	p->cap = cap;
	*tasks = p;
	return 0;
}

/*
 * Context switches are counted by thread, and a thread that ends takes its
 * count with it: the process's counter is the sum of what its threads grew.
 */
static int sample_tasks(struct proctab *t, struct proc *p,
			_unused_ metric_mask m, struct growth *g)
{
	metric_mask rows = t->rows[SOURCE_TASKS];
	uint64_t now[METRIC_N_STORED];
	size_t cap = 4; /* and some that come meanwhile */
	struct task_walk w = {.t = t, .old = p->tasks};
	bool born = p->flags & PROC_NEW && p->flags & PROC_BORN;
	bool whole = p->tasks ? p->tasks->whole : born;
	int r;

	w.count_new = p->tasks || born;
	for (metric_mask c = t->rows[SOURCE_STAT]; c; c &= c - 1)
		if (metrics[__builtin_ctzll(c)].field == STAT_FIELD_THREADS)
			cap += p->value[__builtin_ctzll(c)];
	cap = MIN(cap, (size_t)1 << 20);
	r = tasks_reserve(&t->task_scratch, cap);
	if (r == 0)
		r = tasks_reserve(&p->tasks, cap);
	if (r < 0)
		return r;
	p->tasks->whole = whole;
	w.old = p->tasks;
	w.now = t->task_scratch;
	w.now->n = 0;
	r = procfs_each_task(t->fs, &p->at, walk_task, &w);
	if (r)
		return r;
	memcpy(p->tasks->task, w.now->task, w.now->n * sizeof(w.now->task[0]));
	p->tasks->n = w.now->n;
	for (unsigned i = 0; rows; rows &= rows - 1, i++) {
		unsigned row = (unsigned)__builtin_ctzll(rows);

		now[row] = p->have & METRIC_BIT(row) ? p->value[row] : 0;
		now[row] += w.grown[i];
	}
	proc_take(t, p, t->rows[SOURCE_TASKS], now, g);
	return 0;
}

bool proctab_tasks_are_whole(const struct proc *p)
{
	return p->tasks && p->tasks->whole;
}

/* Rows of this source are in the order of enum delay_value. */
static int sample_delay(struct proctab *t, struct proc *p,
			_unused_ metric_mask m, struct growth *g)
{
	metric_mask rows = t->rows[SOURCE_DELAY], found = 0;
	uint64_t delay[DELAY_N], now[METRIC_N_STORED];
	int r;

	/* Of threads that ended the kernel has only what others left behind. */
	if (!t->delay || t->delay->fd < 0 || proc_is_zombie(p))
		return 0;
	r = delay_read(t->delay, t->fs->guard, p->at.pid, delay);
	if (r != 0)
		return r;
	for (unsigned i = 0; rows; rows &= rows - 1, i++) {
		unsigned row = (unsigned)__builtin_ctzll(rows);

		now[row] = delay[i];
		if (t->delay->have >> i & 1)
			found |= METRIC_BIT(row);
	}
	proc_take(t, p, found, now, g);
	return 0;
}

void proctab_forget(struct proctab *t, struct proc *p, metric_mask wanted)
{
	p->have &= wanted | t->rows[SOURCE_STAT];
	for (unsigned source = 0; source < SOURCE_N; source++)
		if (!(wanted & t->rows[source]))
			p->denied &= (uint8_t) ~(1u << source);
	if (!(wanted & t->rows[SOURCE_TASKS])) {
		free(p->tasks);
		p->tasks = NULL;
	}
}

typedef int sample_fn(struct proctab *t, struct proc *p, metric_mask wanted,
		      struct growth *g);

static sample_fn *const sample_fns[SOURCE_N] = {
    [SOURCE_STATUS] = sample_status, [SOURCE_IO] = sample_io,
    [SOURCE_FDS] = sample_fds,	     [SOURCE_LIMITS] = sample_limits,
    [SOURCE_TASKS] = sample_tasks,   [SOURCE_DELAY] = sample_delay,
};

/*
 * Of two descriptors for each process, stat takes one. The other is best
 * spent on io, or else on the directory, through which the rest is opened.
 * Where few enough processes run there is a third one.
 */
static uint8_t worth_keeping(const struct proctab *t, metric_mask wanted)
{
	uint8_t worth = PROCFS_KEEP(PROCFS_STAT);

	if (wanted & t->rows[SOURCE_IO])
		worth |= PROCFS_KEEP(PROCFS_IO);
	else if (wanted & ~t->rows[SOURCE_STAT])
		worth |= PROCFS_KEEP_DIR;
	if (wanted & t->rows[SOURCE_FDS] && 3 * t->n_due <= t->fs->kept.budget)
		worth |= PROCFS_KEEP(PROCFS_FD_DIR);
	if (wanted & t->rows[SOURCE_STATUS] & ~t->swap_rows ||
	    (wanted & t->swap_rows && t->has_swap))
		worth |= PROCFS_KEEP(PROCFS_STATUS);
	return worth;
}

void proctab_sample(struct proctab *t, struct proc_entry *e, metric_mask wanted,
		    struct growth *ret_growth)
{
	struct proc *p = e->proc;
	uint32_t missed = p->flags & PROC_MISSED, misses = 0;

	ret_growth->rows = 0;
	if (proc_has_run(t, p) ||
	    p->flags & (PROC_NEW | PROC_RENAMED | PROC_MISSED))
		p->worth = worth_keeping(t, wanted);
	else /* only what others can change */
		wanted &= t->rows[SOURCE_STATUS] | t->rows[SOURCE_LIMITS];
	for (unsigned source = 0; source < SOURCE_N; source++) {
		metric_mask rows = wanted & t->rows[source];
		int r;

		if (!sample_fns[source] || !rows)
			continue;
		r = sample_fns[source](t, p, rows, ret_growth);
		note_denied(p, (enum metric_source)source, r);
		if (r < 0) {
			proctab_try_again(t, e, r);
			misses = PROC_MISSED;
		}
		p->flags = (p->flags & ~(uint32_t)PROC_MISSED) | missed;
	}
	p->flags = (p->flags & ~(uint32_t)PROC_MISSED) | misses;
}
