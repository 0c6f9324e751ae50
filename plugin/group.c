/* SPDX-License-Identifier: MIT */
#include "group.h"

#include <search.h>

void groups_init(struct groups *gs)
{
	*gs = (struct groups){0};
	memset(gs->state_row, METRIC_N, sizeof(gs->state_row));
	for (unsigned row = 0; row < METRIC_N; row++) {
		const struct metric *m = &metrics[row];

		if (m->fold == FOLD_STATE)
			for (const char *s = m->key; *s; s++)
				gs->state_row[(unsigned char)*s & 127] =
				    (uint8_t)row;
		else if (m->fold == FOLD_SUM)
			gs->summed |= METRIC_BIT(row);
		else if (m->fold == FOLD_WORST)
			gs->worst |= METRIC_BIT(row);
	}
}

static void free_nothing(_unused_ void *p)
{
}

static void group_free(struct group *g)
{
	gpusum_done(&g->gpu);
	free(g);
}

void groups_done(struct groups *gs)
{
	tdestroy(gs->by_name, free_nothing);
	for (size_t i = 0; i < gs->n_groups; i++)
		group_free(gs->group[i]);
	free(gs->group);
	gpusum_labels_done(&gs->gpu_labels);
	*gs = (struct groups){0};
}

/* The name stands at the beginning of a group, so it is its own key. */
static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

struct group *groups_find(struct groups *gs, const char *name)
{
	void *node = tfind(name, &gs->by_name, compare_names);

	return node ? *(struct group **)node : NULL;
}

struct group *groups_get(struct groups *gs, const char *name,
			 collect_mask collect)
{
	struct group *g = groups_find(gs, name);

	_Static_assert(offsetof(struct group, name) == 0, "name is the key");
	if (g) {
		g->collect = g->is_stale ? collect : g->collect | collect;
		g->is_stale = false;
		g->wanted = metric_wanted(g->collect);
		return g;
	}
	if (array_reserve(&gs->group, &gs->cap, gs->n_groups + 1,
			  sizeof(*gs->group)) < 0)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	strncpy(g->name, name, sizeof(g->name) - 1);
	g->collect = collect;
	g->wanted = metric_wanted(collect);
	/* stat can always be read, so that these counts are 0, not unknown. */
	g->have = metric_rows(SOURCE_STAT) & metric_counters();
	if (!tsearch(g, &gs->by_name, compare_names)) {
		free(g);
		return NULL;
	}
	gs->group[gs->n_groups++] = g;
	return g;
}

void groups_expire(struct groups *gs, uint64_t now_ns, uint64_t timeout_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < gs->n_groups; i++) {
		struct group *g = gs->group[i];

		if (g->is_static || g->is_awaited || !g->idle_since_ns ||
		    now_ns - g->idle_since_ns < timeout_ns) {
			gs->group[n++] = g;
			continue;
		}
		tdelete(g, &gs->by_name, compare_names);
		group_free(g);
	}
	gs->n_groups = n;
}

void group_count_birth(struct group *g)
{
	for (unsigned row = METRIC_N_STORED; row < METRIC_N; row++)
		if (metrics[row].fold == FOLD_BIRTHS)
			g->total[row]++;
}

void groups_begin(struct groups *gs)
{
	for (size_t i = 0; i < gs->n_groups; i++) {
		struct group *g = gs->group[i];

		g->n_members = 0;
		g->is_awaited = false;
		g->first_start = UINT64_MAX;
		g->last_start = 0;
		g->pss = (struct pss_sum){0};
		gpusum_begin(&g->gpu);
		for (unsigned row = 0; row < METRIC_N; row++) {
			if (metric_is_counter(&metrics[row]))
				continue;
			g->total[row] = 0;
			g->have &= ~METRIC_BIT(row);
		}
	}
}

void groups_fold(struct groups *gs, struct group *g,
		 const struct group_member *m)
{
	unsigned state_row = gs->state_row[(unsigned char)m->state & 127];

	g->n_members++;
	for (metric_mask rows = m->have & gs->summed; rows; rows &= rows - 1) {
		unsigned row = (unsigned)__builtin_ctzll(rows);

		if (__builtin_add_overflow(g->total[row], m->value[row],
					   &g->total[row]))
			g->total[row] = UINT64_MAX;
	}
	for (metric_mask rows = m->have & gs->worst; rows; rows &= rows - 1) {
		unsigned row = (unsigned)__builtin_ctzll(rows);

		g->total[row] = MAX(g->total[row], m->value[row]);
	}
	g->have |= m->have & (gs->summed | gs->worst);
	if (state_row < METRIC_N)
		g->total[state_row]++;
	if (m->pss && g->collect & (collect_mask)1 << COLLECT_PSS)
		pss_sum_add(&g->pss, m->pss, &m->pss_now);
	g->first_start = MIN(g->first_start, m->start);
	g->last_start = MAX(g->last_start, m->start);
}

void groups_end(struct groups *gs, uint64_t now_ns)
{
	for (size_t i = 0; i < gs->n_groups; i++) {
		struct group *g = gs->group[i];

		if (g->n_members)
			g->idle_since_ns = 0;
		else if (!g->idle_since_ns)
			g->idle_since_ns = now_ns;
	}
}

/* Age in seconds of a process that started so many ticks after boot. */
static double age_of(uint64_t start, const struct metric_scale *scale,
		     uint64_t boot_ns)
{
	double start_s = (double)start / (double)scale->ticks_per_second;
	double age = (double)boot_ns / 1e9 - start_s;

	return age > 0 ? age : 0;
}

/* Of a row of CPU time: what exit records told beside it, microseconds. */
static uint64_t exited_us(const struct group *g, const struct metric *m)
{
	if (m->collect != COLLECT_CPU && m->collect != COLLECT_EXITED)
		return 0;
	return g->exited_ns[m->ds[0] != 'u'] / 1000;
}

/* The value of one row; false if no member could give it. */
static bool row_value(const struct group *g, unsigned row,
		      const struct metric_scale *scale, uint64_t boot_ns,
		      struct value_out *out)
{
	const struct metric *m = &metrics[row];
	unsigned i = out->n;

	switch (m->fold) {
	case FOLD_COUNTER:
		out->u[i] = metric_scale_counter(m, scale, g->total[row]) +
			    exited_us(g, m);
		return g->have & METRIC_BIT(row);
	case FOLD_EXITED:
		out->u[i] = exited_us(g, m);
		return true;
	case FOLD_BIRTHS:
		out->u[i] = g->total[row];
		return true;
	case FOLD_SUM:
	case FOLD_WORST:
		out->d[i] = metric_scale_gauge(m, scale, g->total[row]);
		/* The sum over no members is 0 only where members count. */
		return (g->have & METRIC_BIT(row)) ||
		       (m->collect == COLLECT_COUNT && !g->n_members);
	case FOLD_MEMBERS:
		out->d[i] = (double)g->n_members;
		return true;
	case FOLD_STATE:
		out->d[i] = (double)g->total[row];
		return true;
	case FOLD_OLDEST:
		out->d[i] = age_of(g->first_start, scale, boot_ns);
		return g->n_members > 0;
	case FOLD_NEWEST:
		out->d[i] = age_of(g->last_start, scale, boot_ns);
		return g->n_members > 0;
	case FOLD_PSS:
		return pss_sum_value(&g->pss, PSS_PSS, &out->d[i]);
	case FOLD_USS:
		return pss_sum_value(&g->pss, PSS_USS, &out->d[i]);
	case FOLD_SWAP_PSS:
		return pss_sum_value(&g->pss, PSS_SWAP_PSS, &out->d[i]);
	case FOLD_MAPS:
		return pss_sum_value(&g->pss, PSS_MAPS, &out->d[i]);
	case FOLD_PSS_READ:
		out->d[i] = (double)pss_sum_covered(&g->pss);
		return true;
	case FOLD_GPU_TIME:
	case FOLD_GPU_PERCENT:
	case FOLD_GPU_MEMORY:
	case FOLD_GPU_CLIENTS:
	case FOLD_GPU_SHARED:
	case FOLD_GPU_UNSEEN:
		break; /* emit_gpu() */
	case FOLD_CGROUP:
	case FOLD_CGROUP_COUNT:
		break; /* emit_cgroup() */
	}
	return false;
}

/* A row that has one value for each device and engine. */
static void emit_gpu(const struct groups *gs, const struct group *g,
		     const struct metric *m, struct value_out *out,
		     value_fn *fn, void *arg)
{
	out->n = 1;
	out->ds[0] = m->ds;
	for (size_t at = 0;
	     gpusum_next(&g->gpu, &gs->gpu_labels, m->fold, &at, out);)
		fn(arg, out);
}

/* A row that stands for all values of its type. */
static void emit_cgroup(const struct group *g, struct value_out *out,
			value_fn *fn, void *arg)
{
	for (size_t at = 0; cgroupsum_next(&g->cgroup, out->type, &at, out);)
		fn(arg, out);
}

void groups_emit(const struct groups *gs, const struct metric_scale *scale,
		 uint64_t boot_ns, value_fn *fn, void *arg)
{
	for (size_t i = 0; i < gs->n_groups; i++) {
		const struct group *g = gs->group[i];
		unsigned n;

		/* No rule knows it any more, and nobody is in it. */
		if ((g->is_stale || g->is_silent) && !g->n_members)
			continue;
		for (unsigned row = 0; row < METRIC_N; row += n) {
			const struct metric *m = &metrics[row];
			struct value_out out = {
			    .group = g->name,
			    .type = m->type,
			    .instance = m->instance,
			    .derive = metric_is_counter(m),
			};
			bool whole = true;

			n = metric_list_length(row);
			if (!(g->collect & ((collect_mask)1 << m->collect)) ||
			    (gs->no_pss && m->collect == COLLECT_PSS) ||
			    (!gs->has_exits && m->collect == COLLECT_EXITED))
				continue;
			if (m->collect == COLLECT_GPU) {
				emit_gpu(gs, g, m, &out, fn, arg);
				continue;
			}
			if (m->collect == COLLECT_CGROUP) {
				emit_cgroup(g, &out, fn, arg);
				continue;
			}
			for (unsigned r = row; r < row + n && whole; r++) {
				whole = row_value(g, r, scale, boot_ns, &out);
				out.ds[out.n++] = metrics[r].ds;
			}
			if (whole)
				fn(arg, &out);
		}
	}
}
