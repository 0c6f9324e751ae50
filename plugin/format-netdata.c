/* SPDX-License-Identifier: MIT */
/*
 * Netdata's protocol for external plugins. A chart is a group and a type, a
 * dimension is an instance and a data source. A chart is defined when it comes
 * first and again when it gets one more dimension; it is declared obsolete and
 * forgotten in the first tick without a value for it, so that there are never
 * more charts than the last tick had.
 */
#include "format-internal.h"
#include "format-chartlook.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>

enum {
	ID_MAX = 200, /* what Netdata has for the id of a chart */
};

/* Netdata takes lines apart at these. */
#define SPECIAL " '\"=\\"

struct dimension {
	char *id;
	int64_t value;
	bool is_set; /* in this tick */
};

struct chart {
	char id[ID_MAX]; /* "GROUP.TYPE": a type has no dot */
	char group[ID_MAX / 2];
	const char *type; /* the end of the id */
	struct chartlook look;
	bool derive;
	struct dimension *dimension;
	size_t n_dimensions, cap;
	size_t n_defined; /* dimensions that Netdata knows */
	size_t n_set;
	uint64_t updated_ns; /* 0: never */
};

struct state {
	struct chart **chart; /* in the order in which they came first */
	size_t n_charts, cap;
	void *by_id;
};

/* The id stands at the beginning of a chart. */
static int compare_ids(const void *a, const void *b)
{
	return strcmp(a, b);
}

static struct chart *get_chart(struct state *s, const struct value_out *v)
{
	char group[ID_MAX / 2], id[ID_MAX];
	struct chart *c;
	void *node;

	_Static_assert(offsetof(struct chart, id) == 0, "it is the key");
	format_replace(group, sizeof(group), v->group, SPECIAL);
	snprintf(id, sizeof(id), "%s.%s", group, v->type);
	node = tfind(id, &s->by_id, compare_ids);
	if (node)
		return *(struct chart **)node;
	if (array_reserve(&s->chart, &s->cap, s->n_charts + 1,
			  sizeof(struct chart *)) < 0)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	memcpy(c->id, id, sizeof(id));
	memcpy(c->group, group, sizeof(group));
	c->type = strrchr(c->id, '.') + 1;
	c->look = chartlook_of(c->type, v->derive);
	c->derive = v->derive;
	if (!tsearch(c, &s->by_id, compare_ids)) {
		free(c);
		return NULL;
	}
	s->chart[s->n_charts++] = c;
	return c;
}

/* "INSTANCE_DS", without what says nothing. */
static void make_dimension_id(const struct value_out *v, unsigned i, char *buf,
			      size_t size)
{
	bool plain = v->instance && strcmp(v->ds[i], "value") == 0;
	char text[ID_MAX];

	snprintf(text, sizeof(text), "%s%s%s", v->instance ? v->instance : "",
		 v->instance && !plain ? "_" : "", plain ? "" : v->ds[i]);
	format_replace(buf, size, text, SPECIAL ".");
}

static struct dimension *get_dimension(struct chart *c, const char *id)
{
	struct dimension *d;

	for (size_t i = 0; i < c->n_dimensions; i++)
		if (strcmp(c->dimension[i].id, id) == 0)
			return &c->dimension[i];
	if (array_reserve(&c->dimension, &c->cap, c->n_dimensions + 1,
			  sizeof(*d)) < 0)
		return NULL;
	d = &c->dimension[c->n_dimensions];
	*d = (struct dimension){.id = strdup(id)};
	if (!d->id)
		return NULL;
	c->n_dimensions++;
	return d;
}

/* Netdata takes integers only: fractions are multiplied and divided there. */
static int64_t fixed_point(double d, unsigned precision)
{
	d = d * precision + (d < 0 ? -0.5 : 0.5);
	if (d >= 0x1p63)
		return INT64_MAX;
	if (d <= -0x1p63)
		return INT64_MIN;
	return (int64_t)d;
}

void format_netdata(struct format_writer *w, const struct value_out *v)
{
	struct chart *c = get_chart(w->state, v);

	for (unsigned i = 0; c && i < v->n; i++) {
		struct dimension *d;
		char id[ID_MAX];

		make_dimension_id(v, i, id, sizeof(id));
		d = get_dimension(c, id);
		if (!d) {
			c = NULL;
			break;
		}
		d->value = v->derive ? (int64_t)v->u[i]
				     : fixed_point(v->d[i], c->look.precision);
		c->n_set += !d->is_set;
		d->is_set = true;
	}
	if (!c)
		w->error = -ENOMEM;
}

static void define_chart(struct format_writer *w, const struct chart *c,
			 const char *options)
{
	unsigned every = (unsigned)w->interval_s;

	every += every < w->interval_s;
	outbuf_printf(w->out,
		      "CHART proctally.%s '' '%s' '%s' '%s' proctally.%s %s %u "
		      "%u '%s' proctally\n",
		      c->id, c->look.title, c->look.unit, c->group, c->type,
		      c->look.shape, c->look.priority, every, options);
}

static void define_dimensions(struct format_writer *w, struct chart *c)
{
	for (size_t i = 0; i < c->n_dimensions; i++)
		outbuf_printf(w->out, "DIMENSION %s '' %s 1 %u\n",
			      c->dimension[i].id,
			      c->derive ? "incremental" : "absolute",
			      c->look.divisor * c->look.precision);
	c->n_defined = c->n_dimensions;
}

static void update_chart(struct format_writer *w, struct chart *c)
{
	uint64_t now = w->now.mono_ns;

	outbuf_printf(w->out, "BEGIN proctally.%s", c->id);
	if (c->updated_ns)
		outbuf_printf(w->out, " %" PRIu64,
			      (now - c->updated_ns) / 1000);
	outbuf_printf(w->out, "\n");
	for (size_t i = 0; i < c->n_dimensions; i++) {
		struct dimension *d = &c->dimension[i];

		if (d->is_set)
			outbuf_printf(w->out, "SET %s = %" PRId64 "\n", d->id,
				      d->value);
		d->is_set = false;
	}
	outbuf_printf(w->out, "END\n");
	c->n_set = 0;
	c->updated_ns = now;
}

static void free_chart(struct chart *c)
{
	for (size_t i = 0; i < c->n_dimensions; i++)
		free(c->dimension[i].id);
	free(c->dimension);
	free(c);
}

static void end_tick(struct format_writer *w)
{
	struct state *s = w->state;
	size_t n = 0;

	for (size_t i = 0; i < s->n_charts; i++) {
		struct chart *c = s->chart[i];

		if (!c->n_set) {
			define_chart(w, c, "obsolete");
			tdelete(c, &s->by_id, compare_ids);
			free_chart(c);
			continue;
		}
		if (c->n_defined < c->n_dimensions) {
			define_chart(w, c, "");
			define_dimensions(w, c);
		}
		update_chart(w, c);
		s->chart[n++] = c;
	}
	s->n_charts = n;
}

static void free_nothing(_unused_ void *p)
{
}

static void free_state(void *state)
{
	struct state *s = state;

	tdestroy(s->by_id, free_nothing);
	for (size_t i = 0; i < s->n_charts; i++)
		free_chart(s->chart[i]);
	free(s->chart);
}

const struct format_hooks format_netdata_hooks = {
    .state_size = sizeof(struct state),
    .end = end_tick,
    .done = free_state,
};
