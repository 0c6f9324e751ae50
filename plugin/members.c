/* SPDX-License-Identifier: MIT */
#include "gpuread.h"
#include "series.h"

/* The stored rows that a member tells of. */
struct told_rows {
	metric_mask cpu, rss;
};

static struct told_rows told_rows(void)
{
	struct told_rows rows = {0};

	for (unsigned row = 0; row < METRIC_N_STORED; row++) {
		const struct metric *m = &metrics[row];

		if (m->source != SOURCE_STAT)
			continue;
		if (m->collect == COLLECT_CPU)
			rows.cpu |= METRIC_BIT(row);
		if (m->field == STAT_FIELD_RSS)
			rows.rss |= METRIC_BIT(row);
	}
	return rows;
}

/* The sum of these rows in the unit in which they leave. */
static uint64_t sum_of(const struct monitor *m, const struct proc *p,
		       metric_mask rows)
{
	uint64_t sum = 0;

	for (; rows; rows &= rows - 1) {
		unsigned row = (unsigned)__builtin_ctzll(rows);

		sum += metric_scale_counter(&metrics[row], &m->fs.scale,
					    p->value[row]);
	}
	return sum;
}

static uint64_t start_ns(const struct monitor *m, const struct proc *p)
{
	uint64_t hz = (uint64_t)m->fs.scale.ticks_per_second;

	return p->start / hz * NSEC_PER_SEC + p->start % hz * NSEC_PER_SEC / hz;
}

bool monitor_has_rules(const struct monitor *m)
{
	return m->rules != NULL;
}

const char *monitor_view_name(const struct monitor *m, size_t view)
{
	if (!m->rules || view >= m->rules->n_views)
		return NULL;
	return m->rules->view[view].name ? m->rules->view[view].name : "app";
}

bool monitor_each_member(const struct monitor *m, size_t view, member_fn *fn,
			 void *arg)
{
	struct told_rows rows = told_rows();

	if (view >= m->tab.n_views)
		return false;
	for (size_t i = 0; i < m->tab.n_procs; i++) {
		const struct proc *p = m->tab.entry[i].proc;
		const struct proc_place *place = &p->place[view];
		const struct group *series =
		    p->member ? p->member->in[view].series : NULL;
		struct monitor_member member = {
		    .pid = m->tab.entry[i].pid,
		    .start_ns = start_ns(m, p),
		    .comm = proc_comm(p),
		    .group = place->group ? place->group->name : NULL,
		    .series = series ? series->name : NULL,
		    .dropped = !(p->flags & PROC_NEW) && !place->group,
		    .other = place->heritage.how == HERITAGE_OTHER,
		    .state = p->state,
		    .has_cpu = (p->have & rows.cpu) == rows.cpu,
		    .has_rss = (p->have & rows.rss) == rows.rss,
		    .cpu_us = sum_of(m, p, rows.cpu),
		    .rss_bytes = sum_of(m, p, rows.rss),
		};

		if (p->flags & PROC_IS_GONE || !p->start)
			continue;
		member.has_gpu = gpuread_percent(m, p, &member.gpu);
		fn(arg, &member);
	}
	return true;
}
