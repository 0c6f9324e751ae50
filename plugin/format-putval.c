/* SPDX-License-Identifier: MIT */
/* collectd's plain text protocol, as its exec plugin reads it. */
#include "format-internal.h"

#include <inttypes.h>

void format_putval(struct format_writer *w, const struct value_out *v)
{
	uint64_t real_ns = w->now.real_ns;
	char host[FORMAT_TEXT];

	format_replace(host, sizeof(host), w->host, "/\"\\");
	outbuf_printf(w->out,
		      "PUTVAL \"%s/proctally-%s/%s%s%s\" interval=%.3f "
		      "%" PRIu64 ".%03u",
		      host, v->group, v->type, v->instance ? "-" : "",
		      v->instance ? v->instance : "", w->interval_s,
		      real_ns / NSEC_PER_SEC,
		      (unsigned)(real_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
	for (unsigned i = 0; i < v->n; i++) {
		if (v->derive)
			outbuf_printf(w->out, ":%" PRIu64, v->u[i]);
		else
			outbuf_printf(w->out, ":%.15g", v->d[i]);
	}
	outbuf_printf(w->out, "\n");
}
