/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as fdinfo of a descriptor, from one tick to the next: a line "%%"
 * ends what is read in one tick. What is read must be in the text, and what
 * is counted must be what a person could say of it.
 */
#include "fuzz.h"

#include "gpu-fdinfo.h"

const char fuzz_target[] = "fdinfo";

enum {
	TICKS_MAX = 12,
};

static void check_name(struct str name, struct str text)
{
	fuzz_check(name.n > 0 && name.n < GPU_WORD_SIZE);
	fuzz_check(fuzz_is_within(name, text));
	fuzz_check(!memchr(name.s, '\n', name.n));
	fuzz_check(!memchr(name.s, ':', name.n));
}

static void check_reading(const struct gpu_reading *r, struct str text,
			  bool is_old)
{
	fuzz_check(r->driver.n > 0 && r->driver.n < GPU_WORD_SIZE);
	fuzz_check(r->device.n < GPU_NAME_SIZE);
	fuzz_check(fuzz_is_within(r->device, text));
	fuzz_check(fuzz_is_within(r->client_name, text));
	fuzz_check(r->n_engines <= GPU_ENGINES_MAX);
	fuzz_check(r->n_regions <= GPU_REGIONS_MAX);
	for (unsigned i = 0; i < r->n_engines; i++) {
		const struct gpu_engine *e = &r->engine[i];

		check_name(e->name, text);
		fuzz_check(e->capacity >= 1);
		fuzz_check(e->has && !(e->has & GPU_GROWN));
		for (unsigned k = 0; k < i; k++)
			fuzz_check(!str_eq(e->name, r->engine[k].name));
	}
	for (unsigned i = 0; i < r->n_regions; i++) {
		const struct gpu_region *m = &r->region[i];

		if (!is_old)
			check_name(m->name, text);
		fuzz_check(m->has && m->has < 1u << GPU_N_SIZES);
		for (unsigned k = 0; k < i; k++)
			fuzz_check(!str_eq(m->name, r->region[k].name));
	}
}

static void check_results(const struct gpu *g)
{
	size_t n_uses = 0, n_memories = 0;

	for (size_t i = 0; i < g->n_processes; i++) {
		const struct gpu_process *p = &g->process[i];

		fuzz_check(p->n_clients > 0);
		for (size_t k = 0; k < p->n_uses; k++) {
			fuzz_check(p->use[k].series < g->n_series);
			fuzz_check(!p->use[k].has_percent ||
				   p->use[k].percent >= 0);
		}
		for (size_t k = 0; k < p->n_memories; k++)
			fuzz_check(p->memory[k].series < g->n_series);
		n_uses += p->n_uses;
		n_memories += p->n_memories;
	}
	fuzz_check(n_uses == g->n_uses && n_memories == g->n_memories);
	for (size_t i = 0; i < g->n_series; i++)
		for (const char *s = g->series[i].name; *s; s++)
			fuzz_check(strchr("_.-", *s) ||
				   (*s >= '0' && *s <= '9') ||
				   (*s >= 'a' && *s <= 'z') ||
				   (*s >= 'A' && *s <= 'Z'));
}

/* One tick; with the same again nothing may have grown. */
static void tick(struct gpu *g, struct str text, uint64_t now_ns)
{
	struct gpu_holder h = {.pid = 500, .start = 10};
	struct gpu_reading r;
	bool is_old;
	int client;

	gpu_begin(g);
	if (gpu_fdinfo_parse(text, &r) == 0) {
		is_old = !fuzz_is_within(r.driver, text);
		check_reading(&r, text, is_old);
		if (!r.device.n)
			r.device = STR("platform");
		r.read_ns = now_ns;
		client = gpu_take(g, -1, &r, now_ns - NSEC_PER_SEC);
		if (client >= 0) {
			gpu_hold(g, client, &h);
			fuzz_check(gpu_end(g) == 0);
			check_results(g);
			gpu_begin(g);
			r.read_ns += NSEC_PER_SEC;
			fuzz_check(gpu_take(g, client, &r, 0) == client);
			gpu_hold(g, client, &h);
		}
	}
	fuzz_check(gpu_end(g) == 0);
	check_results(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size};
	uint64_t now_ns = 1000 * NSEC_PER_SEC;
	struct gpu g;

	gpu_init(&g);
	for (int i = 0; i < TICKS_MAX && rest.n; i++) {
		const char *end = memmem(rest.s, rest.n, "%%\n", 3);
		struct str text = {rest.s,
				   end ? (size_t)(end - rest.s) : rest.n};

		tick(&g, text, now_ns);
		now_ns += 10 * NSEC_PER_SEC;
		if (!end)
			break;
		rest.n -= text.n + 3;
		rest.s = end + 3;
	}
	gpu_done(&g);
	return 0;
}
