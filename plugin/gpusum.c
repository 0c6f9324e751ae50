/* SPDX-License-Identifier: MIT */
#include "gpusum.h"

#include <ctype.h>
#include <stdio.h>

int gpusum_label(struct gpusum_labels *l, const char *device, const char *name,
		 const char *suffix)
{
	char text[GPUSUM_LABEL_SIZE];
	int r;

	snprintf(text, sizeof(text), "gpu-%s-%s%s", device, name, suffix);
	for (char *s = text; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("_.-", *s))
			*s = '_';
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->text[i], text) == 0)
			return (int)i;
	if (l->n == GPUSUM_LABELS_MAX)
		return -ENOSPC;
	r = array_reserve(&l->text, &l->cap, l->n + 1, sizeof(*l->text));
	if (r < 0)
		return r;
	strcpy(l->text[l->n], text);
	return (int)l->n++;
}

void gpusum_labels_done(struct gpusum_labels *l)
{
	free(l->text);
	*l = (struct gpusum_labels){0};
}

void gpusum_done(struct gpusum *s)
{
	free(s->value);
	*s = (struct gpusum){0};
}

void gpusum_begin(struct gpusum *s)
{
	s->n_clients = s->n_shared = s->n_unseen = 0;
	for (size_t i = 0; i < s->n; i++) {
		s->value[i].has_percent = s->value[i].has_bytes = false;
		s->value[i].percent = 0;
		s->value[i].bytes = 0;
	}
}

static struct gpusum_value *value_of(struct gpusum *s, int label)
{
	struct gpusum_value *v;

	if (label < 0)
		return NULL;
	for (size_t i = 0; i < s->n; i++)
		if (s->value[i].label == (unsigned)label)
			return &s->value[i];
	if (array_reserve(&s->value, &s->cap, s->n + 1, sizeof(*v)) < 0)
		return NULL;
	v = &s->value[s->n++];
	*v = (struct gpusum_value){.label = (unsigned)label};
	return v;
}

void gpusum_add_time(struct gpusum *s, int label, uint64_t grown_ns)
{
	struct gpusum_value *v = value_of(s, label);

	if (!v)
		return;
	v->has_time = true;
	if (__builtin_add_overflow(v->time_ns, grown_ns, &v->time_ns))
		v->time_ns = UINT64_MAX;
}

void gpusum_add_percent(struct gpusum *s, int label, double percent)
{
	struct gpusum_value *v = value_of(s, label);

	if (!v)
		return;
	v->has_percent = true;
	v->percent += percent;
}

void gpusum_add_bytes(struct gpusum *s, int label, uint64_t bytes)
{
	struct gpusum_value *v = value_of(s, label);

	if (!v)
		return;
	v->has_bytes = true;
	if (__builtin_add_overflow(v->bytes, bytes, &v->bytes))
		v->bytes = UINT64_MAX;
}

void gpusum_add_clients(struct gpusum *s, uint64_t n, uint64_t n_shared,
			bool has_unseen)
{
	s->has_clients = true;
	s->n_clients += n;
	s->n_shared += n_shared;
	s->n_unseen += has_unseen;
}

/* One of the numbers that have no label. */
static bool next_count(const struct gpusum *s, uint64_t n, size_t *at,
		       struct value_out *out)
{
	out->d[0] = (double)n;
	return s->has_clients && (*at)++ == 0;
}

/* True if the label has a value of that kind. */
static bool take(const struct gpusum_value *v, enum metric_fold fold,
		 struct value_out *out)
{
	switch (fold) {
	case FOLD_GPU_TIME:
		out->u[0] = v->time_ns / NSEC_PER_MSEC;
		return v->has_time;
	case FOLD_GPU_PERCENT:
		/* Databases refuse more in this type. */
		out->d[0] = MIN(v->percent, 100.0);
		return v->has_percent;
	case FOLD_GPU_MEMORY:
		out->d[0] = (double)v->bytes;
		return v->has_bytes;
	default:
		return false;
	}
}

bool gpusum_next(const struct gpusum *s, const struct gpusum_labels *l,
		 enum metric_fold fold, size_t *at, struct value_out *out)
{
	switch (fold) {
	case FOLD_GPU_CLIENTS:
		return next_count(s, s->n_clients, at, out);
	case FOLD_GPU_SHARED:
		return next_count(s, s->n_shared, at, out);
	case FOLD_GPU_UNSEEN:
		return next_count(s, s->n_unseen, at, out);
	default:
		break;
	}
	while (*at < s->n) {
		const struct gpusum_value *v = &s->value[(*at)++];

		out->instance = l->text[v->label];
		if (take(v, fold, out))
			return true;
	}
	return false;
}
