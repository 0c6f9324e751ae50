/* SPDX-License-Identifier: MIT */
/*
 * GPU use of processes, whoever tells it. A backend hands in what it read of
 * each client and who holds it: a client is one open of a device, which any
 * number of descriptors and processes may share. Out comes by how much each
 * process grew. It knows no file, no library and no group.
 *
 * Invariant: a client counts with one process at a time, whoever holds it;
 * what it grew by is handed out exactly once and is never less than 0.
 */
#pragma once

#include "base.h"

enum {
	GPU_ENGINES_MAX = 16, /* of one client */
	GPU_REGIONS_MAX = 16,
	GPU_CLIENTS_MAX = 4096,
	GPU_DEVICES_MAX = 64,
	GPU_SERIES_MAX = 1024,
	GPU_NAME_SIZE = 64, /* of a device */
	GPU_WORD_SIZE = 32, /* of a driver, an engine, a region */
};

/* What is known of an engine. */
enum {
	GPU_BUSY = 1 << 0,    /* busy_ns counts from the client's beginning */
	GPU_CYCLES = 1 << 1,  /* cycles, too */
	GPU_TOTAL = 1 << 2,   /* total_cycles is the clock that cycles ran by */
	GPU_MAXFREQ = 1 << 3, /* maxfreq_hz */
	GPU_CURFREQ = 1 << 4, /* curfreq_hz */
	GPU_CAPACITY = 1 << 5, /* capacity was told */
	GPU_GROWN = 1 << 6,    /* busy_ns is what grew in the last window_ns */
};

struct gpu_engine {
	struct str name; /* as the driver calls it */
	unsigned has;
	uint64_t capacity; /* how many engines this is; at least 1 */
	uint64_t busy_ns, window_ns, cycles, total_cycles;
	uint64_t maxfreq_hz, curfreq_hz;
};

enum gpu_size {
	GPU_SIZE_TOTAL,
	GPU_SIZE_SHARED,
	GPU_SIZE_RESIDENT,
	GPU_SIZE_ACTIVE,
	GPU_SIZE_PURGEABLE,
	GPU_SIZE_MEMORY, /* older word for what is resident */
	GPU_N_SIZES,
};

struct gpu_region {
	struct str name; /* as the driver calls it */
	unsigned has;	 /* 1 << enum gpu_size */
	uint64_t bytes[GPU_N_SIZES];
};

/* What tells one client of a device from another. */
enum gpu_id_kind {
	GPU_ID_CLIENT, /* the driver's own number */
	GPU_ID_PASID,  /* address space, where there is no such number */
	GPU_ID_NVML,   /* process, as NVML tells it */
	GPU_ID_KFD,    /* process, as KFD tells it */
};

/* What one look at a client gave. Its texts are borrowed. */
struct gpu_reading {
	struct str driver, device, client_name;
	enum gpu_id_kind kind;
	uint64_t id;
	uint64_t read_ns;   /* CLOCK_MONOTONIC */
	bool only_if_alone; /* memory that another client may hold as well */
	bool has_unseen;    /* it keeps the device busy, untold how long */
	unsigned n_engines, n_regions;
	struct gpu_engine engine[GPU_ENGINES_MAX];
	struct gpu_region region[GPU_REGIONS_MAX];
};

/* A process that holds a client. */
struct gpu_holder {
	pid_t pid;
	uint64_t start; /* ticks since boot */
	bool is_broker; /* opens devices for others, see gpu_is_broker() */
};

/* The process that a number belongs to now; false if there is none. */
typedef bool gpu_find_fn(void *arg, pid_t pid, struct gpu_holder *ret);

/*
 * Identifies a process where a backend tells clients by their processes: its
 * number may be given to another one.
 */
static inline uint64_t gpu_process_id(const struct gpu_holder *h)
{
	return h->start << 22 | (uint64_t)h->pid;
}

/* What a series counts. A series is a device together with a name. */
enum gpu_kind {
	GPU_KIND_BUSY,	  /* time of an engine class */
	GPU_KIND_LOAD,	  /* part of what the engine could do at full clock */
	GPU_KIND_EVICTED, /* time that its memory was elsewhere */
	GPU_KIND_MEMORY,  /* of a region class */
};

struct gpu_series {
	enum gpu_kind kind;
	char device[GPU_NAME_SIZE]; /* PCI address or name of the platform */
	char name[GPU_WORD_SIZE];   /* class, or the driver's word for it */
};

/* A counter that grew, of kind BUSY or EVICTED; or a LOAD without one. */
struct gpu_use {
	unsigned series;
	uint64_t grown_ns;
	bool has_percent; /* not when it was seen for the first time */
	double percent;	  /* of the class; not cut off at 100 */
};

struct gpu_memory {
	unsigned series;
	uint64_t resident; /* bytes */
	uint64_t shared;   /* bytes that other clients hold as well */
	bool has_shared;
};

/* What one process used; lives until the next gpu_end(). */
struct gpu_process {
	pid_t pid;
	uint64_t start;
	uint32_t n_clients;
	uint32_t n_shared; /* clients that other processes hold as well */
	bool has_unseen;   /* it is busy in a way that nobody can measure */
	size_t n_uses, n_memories;
	const struct gpu_use *use;
	const struct gpu_memory *memory;
};

struct gpu_counts {
	uint64_t n_fell;    /* counters that went down */
	uint64_t n_refused; /* clients, names, engines beyond the bounds */
};

struct gpu_client;
struct gpu_device;
struct gpu_word;

struct gpu {
	uint32_t tick;
	struct gpu_client *client; /* by number; some are free */
	size_t n_clients, client_cap, n_used;
	struct gpu_device *device;
	size_t n_devices, device_cap;
	struct gpu_series *series;
	size_t n_series, series_cap;
	struct gpu_word *word; /* names of engines */
	size_t n_words, word_cap;
	uint32_t *order; /* clients by owner */
	size_t order_cap;
	struct gpu_counts counts;

	/* Results, by ascending pid. */
	struct gpu_process *process;
	size_t n_processes, process_cap;
	struct gpu_use *use;
	size_t n_uses, use_cap;
	struct gpu_memory *memory;
	size_t n_memories, memory_cap;
};

void gpu_init(struct gpu *g);
void gpu_done(struct gpu *g);

/* Begins a tick. */
void gpu_begin(struct gpu *g);

/*
 * Takes what was read of a client. `hint` is its number as returned last for
 * the same place, or -1. since_ns is when it can have begun at the earliest:
 * what a client has when it is seen first counts if it can have grown since;
 * with 0 it is a baseline only. Returns the client's number; or -ENOMEM, or
 * -ENOSPC beyond the bounds.
 */
int gpu_take(struct gpu *g, int hint, const struct gpu_reading *r,
	     uint64_t since_ns);

/* Says once per tick and place who holds a client. */
void gpu_hold(struct gpu *g, int client, const struct gpu_holder *h);

/* A client was not read, but what it has in memory stands. */
void gpu_stands(struct gpu *g, int client);

/*
 * True for the first who asks in this tick: one place of a client is enough
 * to read. With `owner` it is true only for its owner's place.
 */
bool gpu_claim(struct gpu *g, int client, const struct gpu_holder *h,
	       bool owner);

/* What was promised could not be read: somebody else may claim it. */
void gpu_unclaim(struct gpu *g, int client);

/*
 * Ends a tick: finds owners, forgets clients that nobody holds any more,
 * makes the results. Returns 0 or -ENOMEM; then there are no results.
 */
int gpu_end(struct gpu *g);

/* True if that device does not count since it is not asked to. */
bool gpu_is_profiling_off(const struct gpu *g);

/* What a percentage is told as: never more than 100. */
static inline double gpu_clamp(double percent)
{
	return percent > 100 ? 100 : percent;
}

/* Session managers open devices on behalf of others. */
bool gpu_is_broker(struct str comm);

/*
 * The class of an engine, in its own words if the class would be ambiguous:
 * "enc" of amdgpu encodes on some hardware and does all on other.
 */
struct str gpu_engine_class(struct str engine);

enum gpu_region_class {
	GPU_REGION_DEVICE,
	GPU_REGION_SYSTEM,
	GPU_REGION_NONE,  /* no memory, although it is counted in bytes */
	GPU_REGION_OTHER, /* told under its own name */
};

enum gpu_region_class gpu_region_class(struct str region);

/* How a backend is. */
enum gpu_state {
	GPU_STATE_MISSING, /* no such device, driver or library */
	GPU_STATE_OK,
	GPU_STATE_DENIED,   /* we may not read it */
	GPU_STATE_STUCK,    /* a call does not return */
	GPU_STATE_OFF,	    /* the driver was not asked to measure */
	GPU_STATE_MISMATCH, /* the library is of another version */
	GPU_STATE_LOST,	    /* the device fell off or wants a reset */
	GPU_STATE_RESTING,  /* suspended: it is not woken */
	GPU_STATE_FAILED,   /* anything else */
	GPU_N_STATES,
};

const char *gpu_state_name(enum gpu_state state);
