/* SPDX-License-Identifier: MIT */
#include "roster.h"

void roster_init(struct roster *r)
{
	*r = (struct roster){0};
}

void roster_done(struct roster *r)
{
	free(r->entry);
	free(r->last);
	free(r->shown);
	*r = (struct roster){0};
}

void roster_begin(struct roster *r, const struct moment *now)
{
	struct roster_entry *entry = r->entry;
	size_t cap = r->cap;

	r->entry = r->last;
	r->cap = r->last_cap;
	r->last = entry;
	r->last_cap = cap;
	r->n_last = r->n_entries;
	r->n_entries = r->last_at = r->n_shown = 0;
	r->before = r->now;
	r->now = *now;
	r->cpu = 0;
	r->has_cpu = false;
	r->error = 0;
}

/* The same process as the last tick left it, or NULL. */
static const struct roster_entry *earlier(struct roster *r,
					  const struct monitor_member *m)
{
	const struct monitor_member *old;

	while (r->last_at < r->n_last &&
	       r->last[r->last_at].member.pid < m->pid)
		r->last_at++;
	if (r->last_at == r->n_last)
		return NULL;
	old = &r->last[r->last_at].member;
	return old->pid == m->pid && old->start_ns == m->start_ns
		   ? &r->last[r->last_at]
		   : NULL;
}

/* By how much it grew, if that can be known. */
static bool growth(struct roster *r, const struct monitor_member *m,
		   uint64_t *ret)
{
	const struct roster_entry *old = earlier(r, m);

	if (!r->before.mono_ns || r->now.mono_ns <= r->before.mono_ns ||
	    !m->has_cpu)
		return false;
	if (!old) {
		/* All of it, if it was born since then. */
		*ret = m->cpu_us;
		return m->start_ns >= r->before.boot_ns;
	}
	*ret = m->cpu_us - old->member.cpu_us;
	return old->member.has_cpu && m->cpu_us >= old->member.cpu_us;
}

void roster_take(void *arg, const struct monitor_member *m)
{
	struct roster *r = arg;
	struct roster_entry e = {.member = *m};
	uint64_t grown_us;

	if (r->error == 0)
		r->error = array_reserve(&r->entry, &r->cap, r->n_entries + 1,
					 sizeof(*r->entry));
	if (r->error < 0)
		return;
	e.has_cpu = growth(r, m, &grown_us);
	if (e.has_cpu) {
		e.cpu = (double)grown_us * 1e5 /
			(double)(r->now.mono_ns - r->before.mono_ns);
		r->cpu += e.cpu;
		r->has_cpu = true;
	}
	r->entry[r->n_entries++] = e;
}

int roster_end(struct roster *r)
{
	return r->error;
}

void roster_show_none(struct roster *r)
{
	r->n_shown = 0;
}

static int compare_pids(const void *a, const void *b)
{
	const struct roster_entry *x = a, *y = b;

	return (x->member.pid > y->member.pid) -
	       (x->member.pid < y->member.pid);
}

int roster_show(struct roster *r, pid_t pid)
{
	struct roster_entry key = {.member = {.pid = pid}};
	struct roster_entry *found;

	if (!r->n_entries)
		return 0;
	found = bsearch(&key, r->entry, r->n_entries, sizeof(*r->entry),
			compare_pids);
	if (!found)
		return 0;
	if (array_reserve(&r->shown, &r->shown_cap, r->n_shown + 1,
			  sizeof(*r->shown)) < 0)
		return -ENOMEM;
	r->shown[r->n_shown++] = (size_t)(found - r->entry);
	return 0;
}

struct sorting {
	const struct roster *roster;
	const struct board_order *order;
};

/* The larger first; those without the value last. */
static int compare_doubles(bool has_a, double a, bool has_b, double b)
{
	if (!has_a || !has_b)
		return has_b - has_a;
	return (b > a) - (b < a);
}

static int compare_by(const struct roster_entry *x,
		      const struct roster_entry *y, const struct board_order *o)
{
	int r;

	switch (o->by) {
	case BOARD_NAME:
		r = strcmp(x->member.comm, y->member.comm);
		return o->reverse ? -r : r;
	case BOARD_RSS:
		if (!x->member.has_rss || !y->member.has_rss)
			return y->member.has_rss - x->member.has_rss;
		r = (y->member.rss_bytes > x->member.rss_bytes) -
		    (y->member.rss_bytes < x->member.rss_bytes);
		return o->reverse ? -r : r;
	case BOARD_GPU:
		r = compare_doubles(x->member.has_gpu, x->member.gpu,
				    y->member.has_gpu, y->member.gpu);
		return o->reverse && x->member.has_gpu && y->member.has_gpu ? -r
									    : r;
	default:
		r = compare_doubles(x->has_cpu, x->cpu, y->has_cpu, y->cpu);
		return o->reverse && x->has_cpu && y->has_cpu ? -r : r;
	}
}

static int compare_entries(const void *a, const void *b, void *arg)
{
	static const struct board_order by_cpu = {.by = BOARD_CPU};
	static const struct board_order by_rss = {.by = BOARD_RSS};
	const struct sorting *s = arg;
	const struct roster_entry *x = &s->roster->entry[*(const size_t *)a];
	const struct roster_entry *y = &s->roster->entry[*(const size_t *)b];
	int r = compare_by(x, y, s->order);

	if (r == 0)
		r = compare_by(x, y, &by_cpu);
	if (r == 0)
		r = compare_by(x, y, &by_rss);
	return r ? r : compare_pids(x, y);
}

void roster_sort(struct roster *r, const struct board_order *o)
{
	struct sorting s = {r, o};

	if (r->n_shown)
		qsort_r(r->shown, r->n_shown, sizeof(*r->shown),
			compare_entries, &s);
}

static int compare_comms(const void *a, const void *b)
{
	const struct roster_sum *x = a, *y = b;

	return strcmp(x->comm, y->comm);
}

static int compare_sums(const void *a, const void *b)
{
	const struct roster_sum *x = a, *y = b;
	int r = compare_doubles(x->has_cpu, x->cpu, y->has_cpu, y->cpu);

	if (r == 0)
		r = compare_doubles(x->has_rss, (double)x->rss_bytes,
				    y->has_rss, (double)y->rss_bytes);
	if (r == 0)
		r = (y->n > x->n) - (y->n < x->n);
	return r ? r : compare_comms(a, b);
}

static void add_up(struct roster_sum *to, const struct roster_sum *from)
{
	to->n += from->n;
	to->cpu += from->cpu;
	to->rss_bytes += from->rss_bytes;
	to->has_cpu |= from->has_cpu;
	to->has_rss |= from->has_rss;
}

int roster_sums(const struct roster *r, struct roster_sum **ret, size_t *ret_n)
{
	struct roster_sum *sum = calloc(r->n_shown + 1, sizeof(*sum));
	size_t n_all = r->n_shown, n = 0;

	if (!sum)
		return -ENOMEM;
	for (size_t i = 0; i < n_all; i++) {
		const struct roster_entry *e = &r->entry[r->shown[i]];

		sum[i] = (struct roster_sum){
		    .comm = e->member.comm,
		    .n = 1,
		    .cpu = e->has_cpu ? e->cpu : 0,
		    .rss_bytes = e->member.has_rss ? e->member.rss_bytes : 0,
		    .has_cpu = e->has_cpu,
		    .has_rss = e->member.has_rss,
		};
	}
	qsort(sum, n_all, sizeof(*sum), compare_comms);
	for (size_t i = 0; i < n_all; i++) {
		if (n && strcmp(sum[n - 1].comm, sum[i].comm) == 0)
			add_up(&sum[n - 1], &sum[i]);
		else
			sum[n++] = sum[i];
	}
	qsort(sum, n, sizeof(*sum), compare_sums);
	*ret = sum;
	*ret_n = n;
	return 0;
}
