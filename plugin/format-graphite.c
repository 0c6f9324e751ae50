/* SPDX-License-Identifier: MIT */
/*
 * Graphite's plaintext protocol, with the names that collectd's own
 * write_graphite gives by default; counters as with its StoreRates false.
 */
#include "format-internal.h"

#include <inttypes.h>

/* A dot would be one more level of the tree. */
#define SPECIAL ". \"\\:!,/()"

void format_graphite(struct format_writer *w, const struct value_out *v)
{
	char host[FORMAT_TEXT], group[FORMAT_TEXT], instance[FORMAT_TEXT];

	format_replace(host, sizeof(host), w->host, SPECIAL);
	format_replace(group, sizeof(group), v->group, SPECIAL);
	format_replace(instance, sizeof(instance),
		       v->instance ? v->instance : "", SPECIAL);
	for (unsigned i = 0; i < v->n; i++) {
		outbuf_printf(w->out, "%s.proctally-%s.%s%s%s", host, group,
			      v->type, v->instance ? "-" : "", instance);
		if (v->n > 1)
			outbuf_printf(w->out, ".%s", v->ds[i]);
		if (v->derive)
			outbuf_printf(w->out, " %" PRIu64, v->u[i]);
		else
			outbuf_printf(w->out, " %.15g", v->d[i]);
		outbuf_printf(w->out, " %" PRIu64 "\n",
			      w->now.real_ns / NSEC_PER_SEC);
	}
}
