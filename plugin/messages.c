/* SPDX-License-Identifier: MIT */
#include "messages.h"

#include <stdio.h>

void messages_print(const struct diag *d)
{
	char text[1024];

	for (size_t i = 0; i < d->n_msgs; i++) {
		diag_format(d, i, text, sizeof(text));
		fprintf(stderr, "%s\n", text);
	}
	if (d->n_dropped)
		fprintf(stderr, "%s: %zu more messages\n",
			d->file ? d->file : "?", d->n_dropped);
}
