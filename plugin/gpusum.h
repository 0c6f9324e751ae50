/* SPDX-License-Identifier: MIT */
/*
 * What the members of one group use of GPUs, added up. Time accumulates like
 * any counter of a group; percentages, memory and clients are summed anew in
 * each tick. Which devices and engines there are shows while it runs, so each
 * has a label here, made once. It knows no process, no driver and no file.
 *
 * Invariant: the time of a label never falls while its group lives, and two
 * labels never have the same text: no identifier is told twice.
 */
#pragma once

#include "base.h"
#include "metric.h"

enum {
	GPUSUM_LABELS_MAX = 4096,
	GPUSUM_LABEL_SIZE = 120, /* as instance of a type */
};

/* Of all groups. */
struct gpusum_labels {
	char (*text)[GPUSUM_LABEL_SIZE];
	size_t n, cap;
};

/* What stands under one label in one group. */
struct gpusum_value {
	unsigned label;
	bool has_time, has_percent, has_bytes;
	uint64_t time_ns; /* so far */
	double percent;	  /* sum over members, not cut off */
	uint64_t bytes;
};

/* Zeros are right for a new group. */
struct gpusum {
	struct gpusum_value *value; /* in the order in which they came */
	size_t n, cap;
	bool has_clients; /* ever; then 0 is told, too */
	uint64_t n_clients, n_shared, n_unseen;
};

/*
 * The number of the label "gpu-DEVICE-NAME", with bytes that a writer might
 * not keep made safe. Returns -ENOSPC or -ENOMEM without room.
 */
int gpusum_label(struct gpusum_labels *l, const char *device, const char *name,
		 const char *suffix);
void gpusum_labels_done(struct gpusum_labels *l);

void gpusum_done(struct gpusum *s);

/* A tick begins: what is not counted is nothing again. */
void gpusum_begin(struct gpusum *s);

/* Without memory these lose what they add. Negative labels are ignored. */
void gpusum_add_time(struct gpusum *s, int label, uint64_t grown_ns);
void gpusum_add_percent(struct gpusum *s, int label, double percent);
void gpusum_add_bytes(struct gpusum *s, int label, uint64_t bytes);

/* Clients of one member, and those of them that others hold as well. */
void gpusum_add_clients(struct gpusum *s, uint64_t n, uint64_t n_shared,
			bool has_unseen);

/*
 * The next value of a row of COLLECT_GPU from *at on, which begins with 0:
 * its instance, if it has labels, and its number. False if there are no more.
 */
bool gpusum_next(const struct gpusum *s, const struct gpusum_labels *l,
		 enum metric_fold fold, size_t *at, struct value_out *out);
