/* SPDX-License-Identifier: MIT */
#include "format-internal.h"

#include <ctype.h>
#include <math.h>

static const struct format formats[] = {
    {"putval", format_putval, NULL, false},
    {"influx", format_influx, NULL, false},
    {"prometheus", format_prometheus, &format_prometheus_hooks, false},
    {"graphite", format_graphite, NULL, false},
    {"netdata", format_netdata, &format_netdata_hooks, true},
};

const struct format *format_at(size_t i)
{
	return i < ARRAY_SIZE(formats) ? &formats[i] : NULL;
}

const struct format *format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

const char *format_name(const struct format *f)
{
	return f->name;
}

bool format_stands_alone(const struct format *f)
{
	return !f->goes_on;
}

int format_open(struct format_writer *w, const struct format *f,
		const char *host, double interval_s)
{
	void *state = NULL;

	if (f->hooks) {
		state = calloc(1, f->hooks->state_size);
		if (!state)
			return -ENOMEM;
	}
	*w = (struct format_writer){
	    .format = f,
	    .host = host,
	    .interval_s = interval_s,
	    .state = state,
	};
	return 0;
}

void format_close(struct format_writer *w)
{
	if (!w->state)
		return;
	w->format->hooks->done(w->state);
	free(w->state);
	w->state = NULL;
}

void format_begin(struct format_writer *w, struct outbuf *out,
		  const struct moment *now)
{
	w->out = out;
	w->now = *now;
	w->error = 0;
}

void format_value(void *arg, const struct value_out *v)
{
	struct format_writer *w = arg;
	struct value_out fit = *v;

	for (unsigned i = 0; i < v->n; i++) {
		if (v->derive)
			fit.u[i] = MIN(v->u[i], (uint64_t)INT64_MAX);
		else if (!isfinite(v->d[i]))
			return;
	}
	w->format->value(w, &fit);
}

int format_end(struct format_writer *w)
{
	if (w->format->hooks)
		w->format->hooks->end(w);
	return w->error;
}

static void make_safe(char *buf, size_t size, const char *text,
		      const char *special, bool escape)
{
	size_t n = 0;

	for (; *text && n + 2 < size; text++) {
		char c = *text;

		if (iscntrl((unsigned char)c)) {
			c = '_';
		} else if (strchr(special, c)) {
			if (escape)
				buf[n++] = '\\';
			else
				c = '_';
		}
		buf[n++] = c;
	}
	buf[n] = '\0';
}

void format_replace(char *buf, size_t size, const char *text,
		    const char *special)
{
	make_safe(buf, size, text, special, false);
}

void format_escape(char *buf, size_t size, const char *text,
		   const char *special)
{
	make_safe(buf, size, text, special, true);
}
