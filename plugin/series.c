/* SPDX-License-Identifier: MIT */
#include "series.h"
#include "gpuread.h"
#include "pssread.h"

#include <stdio.h>
#include <stdlib.h>

/* What members are compared by. */
struct rank_rows {
	metric_mask grown; /* these counters' growth is added up */
	metric_mask held;  /* or these gauges */
};

/* A member that could have a series. */
struct candidate {
	struct group *group;
	uint64_t rank;
	uint64_t start;
	uint32_t entry, view;
	bool has_series;
};

static const struct series_policy *policy_of(const struct monitor *m,
					     const struct proc_place *place)
{
	const struct series_policy *policy;

	if (!place->rule || !place->group || place->overflow)
		return NULL;
	policy = &m->rules->rule[place->rule - 1].series;
	return policy->by == SERIES_NONE ? NULL : policy;
}

static bool is_key(const struct metric *row, const char *key)
{
	return row->key && strcmp(row->key, key) == 0;
}

static struct rank_rows rank_rows(enum series_top top)
{
	struct rank_rows rows = {0};

	for (unsigned i = 0; i < METRIC_N_STORED; i++) {
		const struct metric *row = &metrics[i];

		if (top == TOP_CPU && row->collect == COLLECT_CPU)
			rows.grown |= METRIC_BIT(i);
		if (top == TOP_IO &&
		    (is_key(row, "read_bytes") || is_key(row, "write_bytes")))
			rows.grown |= METRIC_BIT(i);
		if ((top == TOP_RSS || top == TOP_PSS) &&
		    row->source == SOURCE_STAT && row->field == STAT_FIELD_RSS)
			rows.held |= METRIC_BIT(i);
	}
	return rows;
}

static uint64_t sum(metric_mask rows, const uint64_t *values)
{
	uint64_t sum = 0;

	for (; rows; rows &= rows - 1)
		sum += values[__builtin_ctzll(rows)];
	return sum;
}

static uint64_t rank_of(const struct proc *p, enum series_top top)
{
	struct rank_rows rows = rank_rows(top);

	return sum(rows.grown & p->member->growth.rows, p->member->growth.by) +
	       sum(rows.held & p->have, p->value);
}

/* Of one that was not read: what it may have at most. */
static uint64_t pss_of(struct monitor *m, const struct proc *p)
{
	struct pss_now now;
	double bytes;

	if (!pssread_now(m, p, &now))
		return 0;
	if (pss_estimate(&p->pss, PSS_PSS, &now, &bytes))
		return (uint64_t)bytes;
	return now.rss - MIN(now.rss, now.rss_of_fork);
}

/* Percent of one CPU in the last interval. */
static double cpu_of(const struct monitor *m, const struct proc *p)
{
	double ticks = (double)rank_of(p, TOP_CPU);
	double s = (double)(m->now.mono_ns - m->last_tick_ns) / 1e9;

	return s > 0 ? 100 * ticks / (double)m->fs.scale.ticks_per_second / s
		     : 0;
}

static bool qualifies(const struct monitor *m, const struct proc *p,
		      const struct series_policy *policy)
{
	uint64_t hz = (uint64_t)m->fs.scale.ticks_per_second;
	double age_s =
	    (double)m->now.boot_ns / 1e9 - (double)p->start / (double)hz;

	return age_s >= (double)policy->min_age_ns / 1e9 &&
	       rank_of(p, TOP_RSS) * (uint64_t)m->fs.scale.page_size >=
		   policy->min_rss &&
	       (policy->min_cpu <= 0 || cpu_of(m, p) >= policy->min_cpu);
}

void series_join(struct monitor *m, struct proc *p)
{
	bool wants = false;

	for (size_t v = 0; v < m->tab.n_views; v++)
		wants |= policy_of(m, &p->place[v]) != NULL;
	if (!wants) {
		free(p->member);
		p->member = NULL;
		return;
	}
	/* Out of memory: it goes without a series. */
	if (!p->member)
		p->member = calloc(1, sizeof(*p->member));
	for (size_t v = 0; p->member && v < m->tab.n_views; v++)
		if (p->member->in[v].of != p->place[v].group)
			p->member->in[v] =
			    (struct member_series){.of = p->place[v].group};
}

void series_remap(struct proc *p, size_t n, const int *from)
{
	struct member old;

	if (!p->member)
		return;
	old = *p->member;
	for (size_t v = 0; v < RULE_VIEWS_MAX; v++)
		p->member->in[v] = v < n && from[v] >= 0
				       ? old.in[from[v]]
				       : (struct member_series){0};
}

void series_count(struct proc *p, const struct growth *growth)
{
	struct growth *own = p->member ? &p->member->growth : NULL;

	for (metric_mask rows = own ? growth->rows : 0; rows;
	     rows &= rows - 1) {
		unsigned row = (unsigned)__builtin_ctzll(rows);

		if (!(own->rows & METRIC_BIT(row)))
			own->by[row] = 0;
		own->rows |= METRIC_BIT(row);
		own->by[row] += growth->by[row];
	}
}

metric_mask series_wanted(const struct monitor *m, const struct proc *p)
{
	metric_mask wanted = 0;

	for (size_t v = 0; p->member && v < m->tab.n_views; v++) {
		const struct series_policy *policy = policy_of(m, &p->place[v]);

		if (policy) {
			struct rank_rows rows = rank_rows(policy->top);

			wanted |= rows.grown | rows.held;
		}
	}
	return wanted;
}

static int add_candidate(struct monitor *m, uint32_t entry, size_t view,
			 const struct series_policy *policy)
{
	const struct proc *p = m->tab.entry[entry].proc;

	if (array_reserve(&m->candidate, &m->candidate_cap, m->n_candidates + 1,
			  sizeof(*m->candidate)))
		return -ENOMEM;
	m->candidate[m->n_candidates++] = (struct candidate){
	    .group = p->place[view].group,
	    .rank = policy->top == TOP_PSS   ? pss_of(m, p)
		    : policy->top == TOP_GPU ? gpuread_rank(m, p)
					     : rank_of(p, policy->top),
	    .start = p->start,
	    .entry = entry,
	    .view = (uint32_t)view,
	    .has_series = p->member->in[view].series != NULL,
	};
	return 0;
}

/* The members of a group together, the best one first. */
static int by_group_and_rank(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank > b->rank ? -1 : 1;
	if (a->has_series != b->has_series)
		return a->has_series ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->entry < b->entry ? -1 : a->entry > b->entry;
}

static int by_start(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->entry < b->entry ? -1 : a->entry > b->entry;
}

static struct member_series *series_of(const struct monitor *m,
				       const struct candidate *c)
{
	return &m->tab.entry[c->entry].proc->member->in[c->view];
}

static bool is_taken(const struct monitor *m, const struct candidate *c,
		     size_t n, uint32_t number)
{
	for (size_t i = 0; i < n; i++) {
		const struct member_series *s = series_of(m, &c[i]);

		if (s->series && s->number == number)
			return true;
	}
	return false;
}

/* The rules may have changed. */
static void collect_as(struct group *g, const struct group *of)
{
	g->collect = of->collect;
	g->wanted = of->wanted;
	g->is_stale = of->is_stale;
}

static void series_name(const struct group *of, uint32_t number,
			struct name_result *ret)
{
	char text[GROUP_NAME_SIZE + 16];

	snprintf(text, sizeof(text), "%s.%u", of->name, (unsigned)number);
	name_clean(str_of(text), ret);
}

/* A rule has made a group of that name. */
static bool is_a_groups(struct monitor *m, const struct group *of,
			uint32_t number)
{
	struct name_result name;
	const struct group *g;

	series_name(of, number, &name);
	g = groups_find(&m->groups, name.text);
	return g && !g->is_series;
}

/* The group that is the series of that number; NULL if there is no room. */
static struct group *open_series(struct monitor *m, const struct group *of,
				 uint32_t number, enum series_by by)
{
	struct name_result name;
	struct group *g;

	series_name(of, number, &name);
	if (!groups_find(&m->groups, name.text) &&
	    m->groups.n_groups >= m->rules->limits.groups) {
		m->self.groups_refused++;
		return NULL;
	}
	g = groups_get(&m->groups, name.text, of->collect);
	if (!g)
		return NULL;
	g->is_series = true;
	g->is_silent = by == SERIES_PID;
	collect_as(g, of);
	return g;
}

/* Gives those who were chosen from one group a series each. */
static void give(struct monitor *m, struct candidate *c, size_t n,
		 enum series_by by)
{
	uint32_t number = 0;

	qsort(c, n, sizeof(*c), by_start);
	for (size_t i = 0; i < n; i++) {
		struct member_series *s = series_of(m, &c[i]);

		if (s->series) {
			collect_as(s->series, s->of);
			continue;
		}
		if (by == SERIES_PID)
			number = (uint32_t)m->tab.entry[c[i].entry].pid;
		else
			while (is_taken(m, c, n, number) ||
			       is_a_groups(m, c[i].group, number))
				number++;
		if (is_a_groups(m, c[i].group, number))
			continue;
		s->number = number;
		s->series = open_series(m, c[i].group, number, by);
		if (!s->series)
			return;
	}
}

/* Counts what a process did into its series. */
static void count(const struct monitor *m, const struct proc *p, size_t view)
{
	struct group *g = p->member->in[view].series;
	metric_mask known = p->have & m->tab.counters;

	for (; g && known; known &= known - 1) {
		unsigned row = (unsigned)__builtin_ctzll(known);
		bool grew = p->member->growth.rows & METRIC_BIT(row);

		group_count(g, row, grew ? p->member->growth.by[row] : 0);
	}
}

/* Chooses among the members of one group. */
static void choose(struct monitor *m, struct candidate *c, size_t n)
{
	const struct proc *first = m->tab.entry[c->entry].proc;
	const struct series_policy *policy =
	    policy_of(m, &first->place[c->view]);
	size_t n_chosen = policy->n ? MIN(n, (size_t)policy->n) : n;

	for (size_t i = n_chosen; i < n; i++)
		series_of(m, &c[i])->series = NULL;
	give(m, c, n_chosen, policy->by);
}

static void find_candidates(struct monitor *m)
{
	m->n_candidates = 0;
	for (uint32_t i = 0; i < m->tab.n_procs; i++) {
		const struct proc *p = m->tab.entry[i].proc;

		if (!p->member || p->flags & PROC_IS_GONE)
			continue;
		for (size_t v = 0; v < m->tab.n_views; v++) {
			const struct series_policy *policy =
			    policy_of(m, &p->place[v]);

			if (policy && qualifies(m, p, policy) &&
			    add_candidate(m, i, v, policy) == 0)
				continue;
			p->member->in[v].series = NULL;
		}
	}
}

static void take_from(struct proc *p, const struct group *series)
{
	for (size_t v = 0; p->member && v < RULE_VIEWS_MAX; v++)
		if (p->member->in[v].series == series)
			p->member->in[v].series = NULL;
}

void series_yield(struct monitor *m, struct group *g)
{
	g->is_series = g->is_silent = false;
	for (size_t i = 0; i < m->tab.n_procs; i++)
		take_from(m->tab.entry[i].proc, g);
	for (size_t i = 0; i < m->tab.n_left; i++)
		if (m->tab.left[i].proc)
			take_from(m->tab.left[i].proc, g);
}

void series_assign(struct monitor *m)
{
	if (!m->rules->has_series)
		return;
	find_candidates(m);
	if (m->n_candidates)
		qsort(m->candidate, m->n_candidates, sizeof(*m->candidate),
		      by_group_and_rank);
	for (size_t i = 0, n; i < m->n_candidates; i += n) {
		struct candidate *c = &m->candidate[i];

		for (n = 1; i + n < m->n_candidates && c[n].group == c->group;)
			n++;
		choose(m, c, n);
	}
	for (uint32_t i = 0; i < m->tab.n_procs; i++) {
		struct proc *p = m->tab.entry[i].proc;

		for (size_t v = 0; p->member && v < m->tab.n_views; v++)
			count(m, p, v);
		if (p->member)
			p->member->growth.rows = 0;
	}
}
