/* SPDX-License-Identifier: MIT */
/*
 * InfluxDB's line protocol. A measurement is a type of collectd: a field has
 * one kind of number within a measurement for ever, and "value" is a counter
 * in some types and a gauge in others.
 */
#include "format-internal.h"

#include <inttypes.h>

/* There is no way to write a backslash at the end of a tag. */
static void put_tag(struct outbuf *o, const char *key, const char *value)
{
	char plain[FORMAT_TEXT / 2], text[FORMAT_TEXT];

	format_replace(plain, sizeof(plain), value, "\\");
	format_escape(text, sizeof(text), plain, ", =");
	outbuf_printf(o, ",%s=%s", key, text);
}

/* The server sorts tags by their keys and likes to get them like that. */
void format_influx(struct format_writer *w, const struct value_out *v)
{
	outbuf_printf(w->out, "proctally_%s", v->type);
	put_tag(w->out, "group", v->group);
	put_tag(w->out, "host", w->host);
	if (v->instance)
		put_tag(w->out, "instance", v->instance);
	for (unsigned i = 0; i < v->n; i++) {
		outbuf_printf(w->out, "%c%s=", i ? ',' : ' ', v->ds[i]);
		if (v->derive)
			outbuf_printf(w->out, "%" PRIu64 "i", v->u[i]);
		else
			outbuf_printf(w->out, "%.15g", v->d[i]);
	}
	outbuf_printf(w->out, " %" PRIu64 "\n", w->now.real_ns);
}
