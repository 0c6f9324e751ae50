/* SPDX-License-Identifier: MIT */
#include "gpu-internal.h"

/* The entry for a series behind those of earlier processes. */
static struct gpu_use *use_of(struct gpu *g, size_t first, int series)
{
	struct gpu_use *u;

	for (size_t i = first; i < g->n_uses; i++)
		if (g->use[i].series == (unsigned)series)
			return &g->use[i];
	if (array_reserve(&g->use, &g->use_cap, g->n_uses + 1, sizeof(*u)) < 0)
		return NULL;
	u = &g->use[g->n_uses++];
	*u = (struct gpu_use){.series = (unsigned)series};
	return u;
}

static int add_use(struct gpu *g, size_t first, int series, uint64_t grown_ns,
		   bool has_percent, double percent)
{
	struct gpu_use *u = use_of(g, first, series);

	if (!u)
		return -ENOMEM;
	if (__builtin_add_overflow(u->grown_ns, grown_ns, &u->grown_ns))
		u->grown_ns = UINT64_MAX;
	u->has_percent |= has_percent;
	if (has_percent)
		u->percent += percent;
	return 0;
}

/*
 * Engines of one class add up in time, but the class is as busy as the busiest
 * of them: percent is what only the first of a class in `c` adds.
 */
static bool class_percent(const struct gpu *g, const struct gpu_client *c,
			  unsigned at, double *ret)
{
	bool has = false;

	*ret = 0;
	for (unsigned i = 0; i < c->n_engines; i++) {
		const struct gpu_engine_state *e = &c->engine[i];

		if (e->busy != c->engine[at].busy || e->tick != g->tick ||
		    !e->has_use || !e->has_percent)
			continue;
		if (i < at)
			return false;
		has = true;
		*ret = MAX(*ret, e->percent);
	}
	return has;
}

static int add_engines(struct gpu *g, const struct gpu_client *c, size_t first)
{
	int r = 0;

	for (unsigned i = 0; i < c->n_engines && r == 0; i++) {
		const struct gpu_engine_state *e = &c->engine[i];
		double percent;
		bool has;

		if (e->tick != g->tick)
			continue;
		has = class_percent(g, c, i, &percent);
		if (e->has_use && e->busy >= 0)
			r = add_use(g, first, e->busy, e->unpaid_ns, has,
				    percent);
		if (r == 0 && e->has_load && e->load >= 0)
			r = add_use(g, first, e->load, 0, true,
				    e->load_percent);
	}
	return r;
}

static int add_regions(struct gpu *g, const struct gpu_client *c, size_t first)
{
	for (unsigned i = 0; i < c->n_regions; i++) {
		const struct gpu_region_state *from = &c->region[i];
		struct gpu_memory *m = NULL;

		for (size_t k = first; k < g->n_memories && !m; k++)
			if (g->memory[k].series == (unsigned)from->series)
				m = &g->memory[k];
		if (!m) {
			if (array_reserve(&g->memory, &g->memory_cap,
					  g->n_memories + 1, sizeof(*m)) < 0)
				return -ENOMEM;
			m = &g->memory[g->n_memories++];
			*m = (struct gpu_memory){.series =
						     (unsigned)from->series};
		}
		if (__builtin_add_overflow(m->resident, from->resident,
					   &m->resident))
			m->resident = UINT64_MAX;
		if (__builtin_add_overflow(m->shared, from->shared, &m->shared))
			m->shared = UINT64_MAX;
		m->has_shared |= from->has_shared;
	}
	return 0;
}

/* Is its memory told by another client of the same process and device? */
static bool is_told_elsewhere(const struct gpu *g, const struct gpu_client *c,
			      size_t from, size_t to)
{
	const char *name = g->device[c->device].name;

	if (!c->only_if_alone)
		return false;
	for (size_t i = from; i < to; i++) {
		const struct gpu_client *o = &g->client[g->order[i]];

		if (!o->only_if_alone && o->n_regions &&
		    strcmp(g->device[o->device].name, name) == 0)
			return true;
	}
	return false;
}

/* The clients of one owner, from `from` up to `to` of the order. */
static int add_process(struct gpu *g, size_t from, size_t to)
{
	const struct gpu_client *c = &g->client[g->order[from]];
	size_t first_use = g->n_uses, first_memory = g->n_memories;
	struct gpu_process *p;
	int r;

	r = array_reserve(&g->process, &g->process_cap, g->n_processes + 1,
			  sizeof(*p));
	if (r < 0)
		return r;
	p = &g->process[g->n_processes++];
	*p = (struct gpu_process){.pid = c->owner.pid, .start = c->owner.start};
	for (size_t i = from; i < to && r == 0; i++) {
		bool told;

		c = &g->client[g->order[i]];
		told = is_told_elsewhere(g, c, from, to);
		p->has_unseen |= c->has_unseen;
		p->n_clients += !told;
		p->n_shared += c->n_holders > 1;
		r = add_engines(g, c, first_use);
		/* What was not read for long is not known any more. */
		if (r == 0 && g->tick - c->stand_tick <= 1 && !told)
			r = add_regions(g, c, first_memory);
	}
	p->n_uses = g->n_uses - first_use;
	p->n_memories = g->n_memories - first_memory;
	return r;
}

/* The arrays do not move any more, and what grew is handed out. */
static void finish_results(struct gpu *g, size_t n_ordered)
{
	size_t use = 0, memory = 0;

	for (size_t i = 0; i < n_ordered; i++) {
		struct gpu_client *c = &g->client[g->order[i]];

		for (unsigned k = 0; k < c->n_engines; k++)
			if (c->engine[k].tick == g->tick)
				c->engine[k].unpaid_ns = 0;
	}

	for (size_t i = 0; i < g->n_processes; i++) {
		struct gpu_process *p = &g->process[i];

		p->use = p->n_uses ? g->use + use : NULL;
		p->memory = p->n_memories ? g->memory + memory : NULL;
		use += p->n_uses;
		memory += p->n_memories;
	}
}

int gpu_end(struct gpu *g)
{
	size_t n, from = 0;
	int r;

	g->n_processes = g->n_uses = g->n_memories = 0;
	r = gpu_order_clients(g, &n);
	while (r == 0 && from < n) {
		size_t to = from + 1;

		while (to < n &&
		       gpu_is_same_process(&g->client[g->order[to]].owner,
					   &g->client[g->order[from]].owner))
			to++;
		r = add_process(g, from, to);
		from = to;
	}
	if (r < 0)
		g->n_processes = 0;
	else
		finish_results(g, n);
	return r;
}
