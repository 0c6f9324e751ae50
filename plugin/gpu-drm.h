/* SPDX-License-Identifier: MIT */
/*
 * The backend for DRM and accel devices: which devices can answer, which
 * descriptors of which processes are open on them, and what their fdinfo says.
 * It knows numbers of devices and descriptors, no process table and no group.
 *
 * A table of descriptors is looked at when its process ran and the number of
 * its descriptors is another one, and now and then anyway; fdinfo, whose
 * reading takes locks of the driver, is read in a lane, one job per device.
 * Invariant: the caller's thread never reads an fdinfo file, no device is
 * opened or woken, and without a device that can answer no call is made for any
 * process.
 */
#pragma once

#include "base.h"
#include "gpu.h"
#include "guard.h"
#include "keptfd.h"
#include "lane.h"

struct gpu_drm_options {
	int proc_fd;	     /* root of proc and of sys; they stay the */
	int sys_fd;	     /* caller's. sys may be -1 */
	struct keptfd *kept; /* budget for descriptors; stays the caller's */
	bool is_real;	/* proc is a procfs: time passes within a tick, too */
	bool same_pids; /* numbers there are ours: kcmp(2) knows them */
	gpu_find_fn *find;
	void *find_arg;
};

#define GPU_FDS_UNKNOWN UINT32_MAX

/*
 * What is remembered of a process's table of descriptors. Zeros are right for
 * one that is not known yet; gpu_drm_forget() ends it. 32 bytes.
 */
struct gpu_mark {
	struct gpu_tasks *tasks; /* threads that were asked about */
	uint32_t looked_s;	 /* CLOCK_MONOTONIC of the last look; 0: none */
	uint32_t looked_tick;
	uint32_t due_tick; /* of a look that waits; 0: none does */
	uint32_t n_fds, n_threads;
	uint8_t n_in_vain; /* looks that found nothing, one after the other */
	bool is_denied;
};

/* A look whose time has come. */
struct gpu_turn {
	pid_t pid;
	uint32_t due_tick;
	uint64_t start;
	int64_t from; /* position in the directory, where one look ended */
};

/* Who is looked at. */
struct gpu_who {
	struct gpu_holder holder;
	uint64_t born_ns;   /* CLOCK_MONOTONIC; 0: before our first tick */
	uint32_t n_fds;	    /* or GPU_FDS_UNKNOWN */
	uint32_t n_threads; /* 0 or 1: no others */
};

struct gpu_drm_counts {
	uint64_t n_calls;   /* system calls for looks */
	uint64_t n_looks;   /* tables that were looked at */
	uint64_t n_fds;	    /* descriptors that were asked what they are */
	uint64_t n_asked;   /* threads that were asked about */
	uint64_t n_reads;   /* fdinfo files read */
	uint64_t n_failed;  /* of them, those that could not be */
	uint64_t n_refused; /* descriptors beyond the bounds */
	uint64_t n_put_off; /* looks beyond the budget of a tick */
	uint64_t n_stalls;  /* devices that did not answer in time */
};

enum {
	GPU_DRM_NODES_MAX = 8, /* of one device */
	GPU_DRM_SLOTS_MAX = 4096,
	GPU_DRM_KEPT_MAX = 256,	     /* fdinfo files that are kept open */
	GPU_DRM_SILENT_MAX = 3,	     /* before a driver is taken for mute */
	GPU_DRM_FDS_PER_TICK = 8192, /* about 40 ms */
	GPU_DRM_TICKS = 6,	     /* between looks that nothing calls for */
	GPU_DRM_TICKS_MAX = 48,	     /* if they are in vain */
	GPU_DRM_TICKS_CHANGED_MAX = 8, /* and where the number changes */
};

#define GPU_DRM_TABLE_NS (60 * NSEC_PER_SEC) /* devices are listed anew */
#define GPU_DRM_STUCK_NS NSEC_PER_SEC

struct gpu_slot;
struct gpu_drm_job;

struct gpu_drm_device {
	char driver[GPU_WORD_SIZE];
	char name[GPU_NAME_SIZE]; /* PCI address or name of the platform */
	uint64_t node[GPU_DRM_NODES_MAX]; /* device numbers */
	unsigned n_nodes;
	int power_fd;		  /* power/runtime_status, kept open, or -1 */
	bool is_listed;		  /* it is there */
	bool is_mute;		  /* its driver tells nothing */
	bool has_answered;	  /* it did at least once */
	unsigned n_silent;	  /* readings that it did not answer before */
	bool is_asleep, is_stuck; /* in this tick */
	struct gpu_drm_job *job;
	bool is_busy; /* the job is in the lane: it may not be touched */
};

struct gpu_drm {
	struct gpu_drm_options opt;
	struct lane *lane;
	struct gpu_drm_device *device;
	size_t n_devices, device_cap;
	uint64_t listed_ns; /* CLOCK_MONOTONIC of the last listing */
	bool is_listed;
	struct gpu_slot *slot; /* descriptors of devices */
	size_t n_slots, slot_cap;
	struct gpu_turn *turn; /* looks that wait */
	size_t n_turns, turn_cap, turn_at, turns_left;
	pid_t *tid; /* scratch */
	size_t n_tids, tid_cap;
	uint32_t tick;
	struct moment now;
	uint64_t begun_ns; /* real CLOCK_MONOTONIC when the tick began */
	int64_t budget;	   /* descriptors that may be asked in this tick */
	unsigned n_kept;
	uint64_t n_denied; /* processes now */
	bool no_seek;	   /* pread(2) on kept descriptors said ESPIPE */
	bool no_kcmp;
	struct gpu_drm_counts counts;
};

/* Returns 0 or -ENOMEM. */
int gpu_drm_open(struct gpu_drm *d, const struct gpu_drm_options *o);

/* Never waits for a stuck read. False if one is left behind. */
bool gpu_drm_close(struct gpu_drm *d);

/* Begins a tick: lists the devices anew when it is time. */
void gpu_drm_begin(struct gpu_drm *d, const struct moment *now);

/* True if there is a device whose driver may tell something. */
bool gpu_drm_is_capable(const struct gpu_drm *d);

/*
 * A process ran. True if its table is to be looked at now; else it will be
 * its turn later.
 */
bool gpu_drm_ran(struct gpu_drm *d, struct gpu_mark *m,
		 const struct gpu_who *who);

/* The next process whose turn it is in this tick; false if there is none. */
bool gpu_drm_next(struct gpu_drm *d, struct gpu_turn *ret);

/*
 * Looks at the descriptors of a process. `turn` is what gpu_drm_next() said,
 * or NULL. `guard` is of the calling thread, or NULL. Returns 0, PROC_GONE,
 * PROC_DENIED or a negative errno.
 */
int gpu_drm_look(struct gpu_drm *d, struct gpu_mark *m,
		 const struct gpu_who *who, const struct gpu_turn *turn,
		 struct guard *guard);

/* The process is not there any more. */
void gpu_drm_forget(struct gpu_drm *d, struct gpu_mark *m);

/* Has the known descriptors read, in the lane. */
void gpu_drm_read(struct gpu_drm *d, struct gpu *g);

/*
 * Takes what was read, waiting no longer than wait_ns for it. What comes too
 * late is taken in the next tick.
 */
void gpu_drm_finish(struct gpu_drm *d, struct gpu *g, uint64_t wait_ns);

/* How it is, and in `what` of which device. */
enum gpu_state gpu_drm_state(const struct gpu_drm *d, const struct gpu *g,
			     char *what, size_t size);

/* Descriptors of devices that are known. */
size_t gpu_drm_count_slots(const struct gpu_drm *d);
