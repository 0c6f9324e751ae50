/* SPDX-License-Identifier: MIT */
/*
 * Prometheus' text exposition, as node_exporter's textfile collector takes it:
 * all samples of a family stand together below its HELP and TYPE, and none has
 * a time stamp. Values come group by group, so each family gathers its lines
 * until the tick ends; the space for them is kept.
 */
#include "format-internal.h"
#include "format-promname.h"

#include <inttypes.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>

struct family {
	char name[PROMNAME_MAX], help[PROMNAME_MAX];
	bool counter;
	char *text; /* lines of this tick */
	size_t len, cap;
};

/* One data source of a type and instance, whatever the group. */
struct source {
	char key[FORMAT_TEXT];
	struct promname is;
	bool is_self;
	struct family *family;
};

struct state {
	struct family **family; /* in the order in which they came first */
	size_t n_families, families_cap;
	void *by_key; /* struct source, of search.h */
};

_printf_(2, 3) static int add_text(struct family *f, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	r = array_reserve(&f->text, &f->cap, f->len + (size_t)n + 1, 1);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	vsnprintf(f->text + f->len, f->cap - f->len, fmt, ap);
	va_end(ap);
	f->len += (size_t)n;
	return 0;
}

static struct family *get_family(struct state *s, const struct promname *is,
				 bool counter)
{
	struct family *f;

	for (size_t i = 0; i < s->n_families; i++)
		if (strcmp(s->family[i]->name, is->name) == 0)
			return s->family[i];
	if (array_reserve(&s->family, &s->families_cap, s->n_families + 1,
			  sizeof(struct family *)) < 0)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	memcpy(f->name, is->name, sizeof(f->name));
	memcpy(f->help, is->help, sizeof(f->help));
	f->counter = counter;
	s->family[s->n_families++] = f;
	return f;
}

/* The key stands at the beginning of a source. */
static int compare_keys(const void *a, const void *b)
{
	return strcmp(a, b);
}

static struct source *get_source(struct state *s, const struct value_out *v,
				 unsigned i)
{
	_cleanup_free_ struct source *source = NULL;
	char key[FORMAT_TEXT];
	void *node;

	_Static_assert(offsetof(struct source, key) == 0, "it is the key");
	snprintf(key, sizeof(key), "%d %s %s %s", promname_is_self(v), v->type,
		 v->ds[i], v->instance ? v->instance : "");
	node = tfind(key, &s->by_key, compare_keys);
	if (node)
		return *(struct source **)node;
	source = calloc(1, sizeof(*source));
	if (!source)
		return NULL;
	memcpy(source->key, key, sizeof(key));
	source->is_self = promname_is_self(v);
	promname_make(v, i, &source->is);
	source->family = get_family(s, &source->is, v->derive);
	if (!source->family || !tsearch(source, &s->by_key, compare_keys))
		return NULL;
	return steal_ptr(source);
}

/* "{group="nginx",mode="user"}", or less. */
static void make_labels(const struct source *source, const char *group,
			char *buf, size_t size)
{
	const struct promname *is = &source->is;
	char value[FORMAT_TEXT];
	int n = 0;

	buf[0] = '\0';
	if (!source->is_self) {
		format_escape(value, sizeof(value), group, "\\\"");
		n = snprintf(buf, size, "{group=\"%s\"", value);
	}
	if (is->label) {
		format_escape(value, sizeof(value), is->label_value, "\\\"");
		n += snprintf(buf + n, size - (size_t)n, "%c%s=\"%s\"",
			      n ? ',' : '{', is->label, value);
	}
	if (n)
		snprintf(buf + n, size - (size_t)n, "}");
}

/* Counters are divided exactly, and written without rounding. */
static void make_number(const struct value_out *v, unsigned i, unsigned divisor,
			char *buf, size_t size)
{
	if (!v->derive)
		snprintf(buf, size, "%.15g", v->d[i] / divisor);
	else if (divisor == 1)
		snprintf(buf, size, "%" PRIu64, v->u[i]);
	else
		snprintf(buf, size, "%" PRIu64 ".%06" PRIu64, v->u[i] / divisor,
			 v->u[i] % divisor * (PROMNAME_PARTS / divisor));
}

void format_prometheus(struct format_writer *w, const struct value_out *v)
{
	for (unsigned i = 0; i < v->n; i++) {
		struct source *source = get_source(w->state, v, i);
		char labels[3 * FORMAT_TEXT], number[64];
		int r = -ENOMEM;

		if (source) {
			make_labels(source, v->group, labels, sizeof(labels));
			make_number(v, i, source->is.divisor, number,
				    sizeof(number));
			r = add_text(source->family, "%s%s %s\n",
				     source->is.name, labels, number);
		}
		if (r < 0)
			w->error = r;
	}
}

static void end_tick(struct format_writer *w)
{
	struct state *s = w->state;

	for (size_t i = 0; i < s->n_families; i++) {
		struct family *f = s->family[i];

		if (!f->len)
			continue;
		outbuf_printf(w->out, "# HELP %s %s\n# TYPE %s %s\n", f->name,
			      f->help, f->name,
			      f->counter ? "counter" : "gauge");
		outbuf_write(w->out, f->text, f->len);
		f->len = 0;
	}
	/* Where ticks follow each other, this is between them. */
	outbuf_write(w->out, "\n", 1);
}

static void free_state(void *state)
{
	struct state *s = state;

	tdestroy(s->by_key, free);
	for (size_t i = 0; i < s->n_families; i++) {
		free(s->family[i]->text);
		free(s->family[i]);
	}
	free(s->family);
}

const struct format_hooks format_prometheus_hooks = {
    .state_size = sizeof(struct state),
    .end = end_tick,
    .done = free_state,
};
