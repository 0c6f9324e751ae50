/* SPDX-License-Identifier: MIT */
#include "gpu-internal.h"

/*
 * What an engine has when it is seen first. Without `since_ns` that is a
 * baseline; else it grew since, and no more of it counts than the engine can
 * have been busy, unless it is `whole`.
 */
struct first_sight {
	uint64_t since_ns;
	bool whole;
};

static uint64_t most_since(uint64_t since_ns, uint64_t read_ns,
			   uint64_t capacity)
{
	uint64_t most;

	if (read_ns <= since_ns)
		return 0;
	return __builtin_mul_overflow(read_ns - since_ns, capacity, &most)
		   ? UINT64_MAX
		   : most;
}

/*
 * A counter may fall and has to catch up with itself, says
 * Documentation/gpu/drm-usage-stats.rst; one that stays below has begun anew.
 */
static uint64_t grow(struct gpu *g, struct gpu_counter *c, uint64_t now,
		     bool first_of_tick)
{
	uint64_t grown;

	if (now >= c->base) {
		grown = now - c->base;
		c->base = now;
		c->low = 0;
		return grown;
	}
	if (first_of_tick) {
		g->counts.n_fell++;
		if (++c->low > GPU_LOW_MAX) {
			c->base = now;
			c->low = 0;
		}
	}
	return 0;
}

static void add_grown(struct gpu_engine_state *e, uint64_t ns)
{
	if (__builtin_add_overflow(e->grown_ns, ns, &e->grown_ns))
		e->grown_ns = UINT64_MAX;
	if (__builtin_add_overflow(e->unpaid_ns, ns, &e->unpaid_ns))
		e->unpaid_ns = UINT64_MAX;
}

/* Time that so many cycles took, no more than `most`. */
static uint64_t time_of(uint64_t cycles, double ns_per_cycle, uint64_t most)
{
	double ns = (double)cycles * ns_per_cycle;

	return ns < (double)most ? (uint64_t)ns : most;
}

/* Percent of the time since the reading before this tick. */
static void set_percent(struct gpu_engine_state *e, uint64_t read_ns)
{
	e->has_percent = e->window_from_ns && read_ns > e->window_from_ns;
	if (e->has_percent)
		e->percent = 100.0 * (double)e->grown_ns /
			     (double)(read_ns - e->window_from_ns) /
			     (double)e->capacity;
}

static void take_busy(struct gpu *g, struct gpu_engine_state *e,
		      const struct gpu_engine *in, uint64_t read_ns,
		      const struct first_sight *first, bool first_of_tick)
{
	e->has_use = true;
	if (e->busy_ns.known) {
		add_grown(e, grow(g, &e->busy_ns, in->busy_ns, first_of_tick));
	} else {
		e->busy_ns.known = true;
		e->busy_ns.base = in->busy_ns;
		e->window_from_ns = first->since_ns;
		if (first->since_ns)
			add_grown(e,
				  first->whole
				      ? in->busy_ns
				      : MIN(in->busy_ns,
					    most_since(first->since_ns, read_ns,
						       e->capacity)));
	}
	set_percent(e, read_ns);
}

/* The first cycles count once it is known how long each took. */
static void pay_owed(struct gpu_engine_state *e, uint64_t cycles,
		     double ns_per_cycle, uint64_t read_ns)
{
	uint64_t most = most_since(e->owed_since_ns, read_ns, e->capacity);

	add_grown(e, time_of(cycles, ns_per_cycle, most));
	e->window_from_ns = e->owed_since_ns;
	e->owed_since_ns = 0;
	set_percent(e, read_ns);
}

static void begin_cycles(struct gpu_engine_state *e,
			 const struct gpu_engine *in, double ns_per_cycle,
			 uint64_t read_ns, const struct first_sight *first)
{
	e->cycles = (struct gpu_counter){.known = true, .base = in->cycles};
	e->total_cycles = in->total_cycles;
	e->total_ns = read_ns;
	e->owed_since_ns = first->since_ns;
	if (!e->owed_since_ns)
		return;
	if (ns_per_cycle > 0)
		pay_owed(e, in->cycles, ns_per_cycle, read_ns);
	else
		e->cycles.base = 0;
}

static void take_cycles_of_total(struct gpu *g, struct gpu_device *d,
				 struct gpu_engine_state *e,
				 const struct gpu_engine *in, uint64_t read_ns,
				 const struct first_sight *first,
				 bool first_of_tick)
{
	uint64_t cycles, total;

	if (!e->cycles.known) {
		e->has_use = true;
		begin_cycles(e, in, d->ns_per_cycle, read_ns, first);
		return;
	}
	if (in->total_cycles <= e->total_cycles) {
		/* The clock began anew (suspend, reset) or stands still. */
		if (in->total_cycles == e->total_cycles &&
		    in->cycles == e->cycles.base)
			return;
		e->cycles.base = in->cycles;
		e->total_cycles = in->total_cycles;
		e->total_ns = read_ns;
		e->owed_since_ns = 0;
		return;
	}
	e->has_use = true;
	total = in->total_cycles - e->total_cycles;
	cycles = grow(g, &e->cycles, in->cycles, first_of_tick);
	if (read_ns > e->total_ns)
		d->ns_per_cycle =
		    (double)(read_ns - e->total_ns) / (double)total;
	e->total_cycles = in->total_cycles;
	e->total_ns = read_ns;
	if (e->owed_since_ns) {
		pay_owed(e, cycles, d->ns_per_cycle, read_ns);
		return;
	}
	add_grown(e, time_of(cycles, d->ns_per_cycle, UINT64_MAX));
	e->grown_cycles += cycles;
	e->grown_total += total;
	e->has_percent = true;
	e->percent = 100.0 * (double)e->grown_cycles / (double)e->grown_total /
		     (double)e->capacity;
}

/* Cycles against the highest frequency say how much of it was used. */
static void take_cycles_of_maxfreq(struct gpu *g, struct gpu_engine_state *e,
				   const struct gpu_engine *in,
				   uint64_t read_ns, bool first_of_tick)
{
	if (!e->cycles.known) {
		e->cycles =
		    (struct gpu_counter){.known = true, .base = in->cycles};
		return;
	}
	e->grown_cycles += grow(g, &e->cycles, in->cycles, first_of_tick);
	if (!e->sample_ns || read_ns <= e->window_from_ns)
		return;
	e->has_load = true;
	e->load_percent = 100.0 * (double)e->grown_cycles /
			  ((double)in->maxfreq_hz *
			   (double)(read_ns - e->window_from_ns) / 1e9);
}

static void take_grown(struct gpu_engine_state *e, const struct gpu_engine *in)
{
	e->has_use = true;
	add_grown(e, in->busy_ns);
	e->has_percent = in->window_ns > 0;
	if (e->has_percent)
		e->percent += 100.0 * (double)in->busy_ns /
			      (double)in->window_ns / (double)e->capacity;
}

static struct gpu_engine_state *find_engine(struct gpu *g, struct gpu_client *c,
					    struct str name, unsigned guess,
					    bool *ret_is_new)
{
	struct gpu_engine_state *e;
	struct str class = gpu_engine_class(name);
	int word;

	*ret_is_new = false;
	/* Drivers print their engines in one order. */
	if (guess < c->n_engines &&
	    str_eq(str_of(g->word[c->engine[guess].word].text), name))
		return &c->engine[guess];
	word = gpu_word_number(g, name);
	for (unsigned i = 0; word >= 0 && i < c->n_engines; i++)
		if (c->engine[i].word == (unsigned)word)
			return &c->engine[i];
	if (word < 0 || c->n_engines == GPU_ENGINES_MAX) {
		g->counts.n_refused++;
		return NULL;
	}
	e = &c->engine[c->n_engines++];
	*e = (struct gpu_engine_state){
	    .word = (unsigned)word,
	    .busy = gpu_series_number(
		g, c->kind == GPU_ID_KFD ? GPU_KIND_EVICTED : GPU_KIND_BUSY,
		c->device, class),
	    .load = GPU_NO_SERIES,
	};
	*ret_is_new = true;
	return e;
}

static void take_engine(struct gpu *g, struct gpu_client *c,
			struct gpu_engine_state *e, const struct gpu_engine *in,
			uint64_t read_ns, const struct first_sight *first)
{
	struct gpu_device *d = &g->device[c->device];
	bool first_of_tick = e->tick != g->tick;

	if (first_of_tick) {
		e->tick = g->tick;
		e->has_use = e->has_percent = e->has_load = false;
		e->grown_ns = e->grown_cycles = e->grown_total = 0;
		e->percent = 0;
		e->window_from_ns = e->sample_ns;
	}
	e->capacity = MAX(in->capacity, UINT64_C(1));
	if (in->has & GPU_GROWN)
		take_grown(e, in);
	else if (in->has & GPU_BUSY)
		take_busy(g, e, in, read_ns, first, first_of_tick);
	else if (in->has & GPU_CYCLES && in->has & GPU_TOTAL)
		take_cycles_of_total(g, d, e, in, read_ns, first,
				     first_of_tick);
	if (in->has & GPU_CYCLES && in->has & GPU_MAXFREQ &&
	    !(in->has & GPU_TOTAL) && in->maxfreq_hz) {
		if (e->load < 0)
			e->load = gpu_series_number(
			    g, GPU_KIND_LOAD, c->device,
			    gpu_engine_class(str_of(g->word[e->word].text)));
		take_cycles_of_maxfreq(g, e, in, read_ns, first_of_tick);
	}
	/* It tells its frequency alone where it is not asked to measure. */
	if (in->has & GPU_MAXFREQ)
		d->is_off = !(in->has & (GPU_BUSY | GPU_TOTAL));
	e->sample_ns = read_ns;
}

void gpu_count_engines(struct gpu *g, struct gpu_client *c,
		       const struct gpu_reading *r, bool is_new,
		       uint64_t since_ns)
{
	for (unsigned i = 0; i < r->n_engines; i++) {
		struct first_sight first = {0};
		struct gpu_engine_state *e;
		bool is_new_engine;

		e = find_engine(g, c, r->engine[i].name, i, &is_new_engine);
		if (!e)
			continue;
		if (is_new)
			first.since_ns = since_ns;
		else if (is_new_engine) /* its driver does not tell zeros */
			first = (struct first_sight){c->read_ns, true};
		take_engine(g, c, e, &r->engine[i], r->read_ns, &first);
	}
}

/* What is resident; false where the driver does not say. */
static bool resident_of(const struct gpu_region *in, uint64_t *ret)
{
	static const enum gpu_size words[] = {GPU_SIZE_RESIDENT,
					      GPU_SIZE_MEMORY};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (in->has & 1u << words[i]) {
			*ret = in->bytes[words[i]];
			return true;
		}
	/* Without an object in that state its line is left out (6.14). */
	*ret = 0;
	return in->has & 1u << GPU_SIZE_TOTAL;
}

static struct gpu_region_state *find_region(struct gpu *g, struct gpu_client *c,
					    struct str name)
{
	enum gpu_region_class class = gpu_region_class(name);
	int series;

	if (class == GPU_REGION_NONE)
		return NULL;
	if (class == GPU_REGION_DEVICE)
		name = STR("device");
	else if (class == GPU_REGION_SYSTEM)
		name = STR("system");
	series = gpu_series_number(g, GPU_KIND_MEMORY, c->device, name);
	if (series < 0)
		return NULL;
	for (unsigned i = 0; i < c->n_regions; i++)
		if (c->region[i].series == series)
			return &c->region[i];
	c->region[c->n_regions] = (struct gpu_region_state){.series = series};
	return &c->region[c->n_regions++];
}

void gpu_count_regions(struct gpu *g, struct gpu_client *c,
		       const struct gpu_reading *r)
{
	c->n_regions = 0;
	for (unsigned i = 0; i < r->n_regions; i++) {
		const struct gpu_region *in = &r->region[i];
		struct gpu_region_state *state;
		uint64_t resident;

		if (!resident_of(in, &resident))
			continue;
		state = find_region(g, c, in->name);
		if (!state)
			continue;
		if (__builtin_add_overflow(state->resident, resident,
					   &state->resident))
			state->resident = UINT64_MAX;
		if (!(in->has & 1u << GPU_SIZE_SHARED))
			continue;
		state->has_shared = true;
		if (__builtin_add_overflow(state->shared,
					   in->bytes[GPU_SIZE_SHARED],
					   &state->shared))
			state->shared = UINT64_MAX;
	}
}
