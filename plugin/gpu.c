/* SPDX-License-Identifier: MIT */
#include "gpu-internal.h"

void gpu_init(struct gpu *g)
{
	*g = (struct gpu){0};
}

void gpu_done(struct gpu *g)
{
	free(g->client);
	free(g->device);
	free(g->series);
	free(g->word);
	free(g->order);
	free(g->process);
	free(g->use);
	free(g->memory);
	gpu_init(g);
}

void gpu_begin(struct gpu *g)
{
	g->tick++;
}

static bool is_same(const struct gpu_client *c, unsigned device,
		    const struct gpu_reading *r)
{
	return c->used && c->id == r->id && c->device == device &&
	       c->kind == r->kind;
}

static int find_client(const struct gpu *g, unsigned device,
		       const struct gpu_reading *r, int hint)
{
	if (hint >= 0 && is_same(&g->client[hint], device, r))
		return hint;
	for (size_t i = 0; i < g->n_clients; i++)
		if (is_same(&g->client[i], device, r))
			return (int)i;
	return -1;
}

static int new_client(struct gpu *g, unsigned device,
		      const struct gpu_reading *r)
{
	size_t i = 0;
	int err;

	while (i < g->n_clients && g->client[i].used)
		i++;
	if (i == g->n_clients) {
		if (i == GPU_CLIENTS_MAX) {
			g->counts.n_refused++;
			return -ENOSPC;
		}
		err = array_reserve(&g->client, &g->client_cap, i + 1,
				    sizeof(*g->client));
		if (err < 0)
			return err;
		g->n_clients++;
	}
	g->client[i] = (struct gpu_client){
	    .used = true,
	    .kind = r->kind,
	    .device = device,
	    .id = r->id,
	    .held_tick = g->tick,
	};
	g->n_used++;
	return (int)i;
}

int gpu_take(struct gpu *g, int hint, const struct gpu_reading *r,
	     uint64_t since_ns)
{
	int device = gpu_device_number(g, r->driver, r->device);
	struct gpu_client *c;
	bool is_new;
	int i;

	if (device < 0) {
		g->counts.n_refused++;
		return device;
	}
	i = find_client(g, (unsigned)device, r, hint);
	is_new = i < 0;
	if (is_new)
		i = new_client(g, (unsigned)device, r);
	if (i < 0)
		return i;
	c = &g->client[i];
	gpu_count_engines(g, c, r, is_new, since_ns);
	gpu_count_regions(g, c, r);
	c->only_if_alone = r->only_if_alone;
	c->has_unseen = r->has_unseen;
	c->read_ns = r->read_ns;
	c->read_tick = c->stand_tick = g->tick;
	return i;
}

/* Who of two is taken for the one that uses it? */
static bool is_better(const struct gpu_holder *a, const struct gpu_holder *b)
{
	if (a->is_broker != b->is_broker)
		return b->is_broker;
	if (a->start != b->start)
		return a->start < b->start;
	return a->pid < b->pid;
}

void gpu_hold(struct gpu *g, int client, const struct gpu_holder *h)
{
	struct gpu_client *c = &g->client[client];

	if (c->held_tick != g->tick || !c->n_holders) {
		c->held_tick = g->tick;
		c->n_holders = 0;
		c->owner_holds = false;
		c->best = *h;
	}
	/* Descriptors of one process come one after the other. */
	if (!c->n_holders || !gpu_is_same_process(&c->last, h))
		c->n_holders++;
	c->last = *h;
	if (is_better(h, &c->best))
		c->best = *h;
	if (c->has_owner && gpu_is_same_process(&c->owner, h))
		c->owner_holds = true;
}

void gpu_stands(struct gpu *g, int client)
{
	g->client[client].stand_tick = g->tick;
}

bool gpu_claim(struct gpu *g, int client, const struct gpu_holder *h,
	       bool owner)
{
	struct gpu_client *c = &g->client[client];

	if (c->claim_tick == g->tick ||
	    (owner && !(c->has_owner && gpu_is_same_process(&c->owner, h))))
		return false;
	c->claim_tick = g->tick;
	return true;
}

void gpu_unclaim(struct gpu *g, int client)
{
	g->client[client].claim_tick = g->tick - 1;
}

/* It stays with who had it, unless that one only opened it for somebody. */
static void find_owner(struct gpu_client *c)
{
	if (c->has_owner && c->owner_holds &&
	    (!c->owner.is_broker || c->best.is_broker))
		return;
	c->owner = c->best;
	c->has_owner = true;
}

static bool is_before(const struct gpu *g, uint32_t a, uint32_t b)
{
	const struct gpu_client *x = &g->client[a], *y = &g->client[b];

	if (x->owner.pid != y->owner.pid)
		return x->owner.pid < y->owner.pid;
	if (x->owner.start != y->owner.start)
		return x->owner.start < y->owner.start;
	return a < b;
}

/* Shell's sort: qsort(3) may allocate. */
static void sort_by_owner(struct gpu *g, size_t n)
{
	for (size_t gap = n / 2; gap > 0; gap /= 2)
		for (size_t i = gap; i < n; i++) {
			uint32_t client = g->order[i];
			size_t at = i;

			for (; at >= gap &&
			       is_before(g, client, g->order[at - gap]);
			     at -= gap)
				g->order[at] = g->order[at - gap];
			g->order[at] = client;
		}
}

int gpu_order_clients(struct gpu *g, size_t *ret_n)
{
	size_t n = 0;
	int r;

	r = array_reserve(&g->order, &g->order_cap, g->n_clients,
			  sizeof(*g->order));
	if (r < 0)
		return r;
	for (size_t i = 0; i < g->n_clients; i++) {
		struct gpu_client *c = &g->client[i];

		if (!c->used)
			continue;
		if (c->held_tick != g->tick || !c->n_holders) {
			/*
			 * It may be on its way through a socket: if it comes
			 * back soon it is not new.
			 */
			if (g->tick - c->held_tick > GPU_LINGER) {
				c->used = false;
				g->n_used--;
			}
			continue;
		}
		find_owner(c);
		g->order[n++] = (uint32_t)i;
	}
	sort_by_owner(g, n);
	*ret_n = n;
	return 0;
}

bool gpu_is_profiling_off(const struct gpu *g)
{
	for (size_t i = 0; i < g->n_devices; i++)
		if (g->device[i].is_off)
			return true;
	return false;
}
