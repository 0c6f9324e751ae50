/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the accounting share: gpu.c (clients and owners),
 * gpu-count.c (what a client grew by), gpu-result.c (what a process used) and
 * gpu-names.c (devices, classes, series). Nobody else includes it.
 */
#pragma once

#include "gpu.h"

enum {
	GPU_WORDS_MAX = 256,
	GPU_LOW_MAX = 3,    /* ticks that a counter may stay below itself */
	GPU_LINGER = 8,	    /* ticks that a client is remembered unheld */
	GPU_NO_SERIES = -1, /* there is none, or no room for it */
};

/* A counter of the driver, and what of it was handed out. */
struct gpu_counter {
	uint64_t base;
	uint8_t low; /* ticks that it was below `base` */
	bool known;
};

/* One engine of one client. */
struct gpu_engine_state {
	unsigned word;	/* its name */
	int busy, load; /* series */
	uint64_t capacity;
	struct gpu_counter busy_ns, cycles;
	uint64_t total_cycles, total_ns; /* the clock, and when it was so */
	uint64_t sample_ns;		 /* when it was read last */
	/*
	 * The first cycles wait until their clock's speed is known; they were
	 * made since then. 0: none wait.
	 */
	uint64_t owed_since_ns;
	uint64_t unpaid_ns; /* grown and not handed out yet */

	/* Of one tick. */
	uint32_t tick; /* in which something was found */
	bool has_use, has_percent, has_load;
	uint64_t grown_ns, window_from_ns;
	uint64_t grown_cycles, grown_total;
	double percent, load_percent;
};

/* One region class of one client. */
struct gpu_region_state {
	int series;
	uint64_t resident, shared;
	bool has_shared;
};

struct gpu_client {
	bool used;
	bool only_if_alone, has_unseen;
	bool has_owner;
	enum gpu_id_kind kind;
	unsigned device;
	uint64_t id;
	uint64_t read_ns;
	struct gpu_holder owner;

	uint32_t read_tick;  /* in which it was read last */
	uint32_t held_tick;  /* in which somebody held it */
	uint32_t stand_tick; /* in which what it has stood */
	uint32_t claim_tick; /* in which its reading was promised */

	/* Of one tick. */
	bool owner_holds;
	uint32_t n_holders; /* processes */
	struct gpu_holder best, last;

	unsigned n_engines, n_regions;
	struct gpu_engine_state engine[GPU_ENGINES_MAX];
	struct gpu_region_state region[GPU_REGIONS_MAX];
};

struct gpu_device {
	char driver[GPU_WORD_SIZE];
	char name[GPU_NAME_SIZE];
	double ns_per_cycle; /* of total_cycles; 0: not known yet */
	bool is_off;	     /* an engine was seen that does not count */
};

struct gpu_word {
	char text[GPU_WORD_SIZE];
};

static inline bool gpu_is_same_process(const struct gpu_holder *a,
				       const struct gpu_holder *b)
{
	return a->pid == b->pid && a->start == b->start;
}

/*
 * Finds the owner of each client, forgets who is not held any more, and brings
 * the numbers of the others in order by owner. Returns 0 or -ENOMEM.
 */
int gpu_order_clients(struct gpu *g, size_t *ret_n);

/* The number of a device, a name, a series; or -ENOSPC, -ENOMEM. */
int gpu_device_number(struct gpu *g, struct str driver, struct str name);
int gpu_word_number(struct gpu *g, struct str word);
int gpu_series_number(struct gpu *g, enum gpu_kind kind, unsigned device,
		      struct str name);

/* Takes the engines of a reading; is_new: the client was not known before. */
void gpu_count_engines(struct gpu *g, struct gpu_client *c,
		       const struct gpu_reading *r, bool is_new,
		       uint64_t since_ns);

/* Takes the regions of a reading. */
void gpu_count_regions(struct gpu *g, struct gpu_client *c,
		       const struct gpu_reading *r);
