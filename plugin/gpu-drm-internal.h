/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the DRM backend share: gpu-drm.c (reading),
 * gpu-drm-result.c (what was read), gpu-drm-table.c (devices), gpu-drm-turns.c
 * (who is looked at when), gpu-drm-look.c (descriptors of a process) and
 * gpu-drm-tasks.c (threads with descriptors of their own). Nobody else includes
 * it.
 */
#pragma once

#include "gpu-drm.h"
#include "proctext.h"

/* One descriptor of a process that is open on a device. */
struct gpu_slot {
	bool used;
	bool is_busy;	  /* a job holds `file`: it must stay open */
	bool is_dead;	  /* ends when the job is back */
	bool is_kept;	  /* `file` is of the budget */
	bool is_negative; /* of a device that answers, but not here */
	bool is_seen;	  /* in the look that is going on */
	unsigned device;
	int client; /* of the accounting; -1: not known yet */
	int file;   /* its fdinfo, or -1 */
	int fd;	    /* its number */
	pid_t tid;  /* thread whose table it is in; 0: the process's */
	struct gpu_holder holder;
	uint64_t since_ns;  /* it can have been opened then; 0: any time */
	uint32_t read_tick; /* in which it was given to a job */
};

/* One file of a job. */
struct gpu_drm_entry {
	uint32_t slot;
	int file;
	bool is_kept;
	int err;	  /* positive errno, or 0 */
	size_t at, n;	  /* its text */
	uint64_t real_ns; /* CLOCK_MONOTONIC when it was read */
};

/* Belongs to the lane while it is there. */
struct gpu_drm_job {
	struct lane_job job;
	unsigned device;
	bool no_seek;
	uint64_t now_ns, begun_ns; /* of the tick that it was made in */
	size_t n_entries, entry_cap;
	struct gpu_drm_entry *entry;
	size_t n_text, text_cap;
	char *text;
};

/* Lists the devices below /sys. */
void gpu_drm_list_devices(struct gpu_drm *d);

/* The device of that number, or -1. */
int gpu_drm_device_of(const struct gpu_drm *d, unsigned major, unsigned minor);

/* True if descriptors of that device are worth to be found. */
static inline bool gpu_drm_is_wanted(const struct gpu_drm_device *v)
{
	return v->is_listed && !v->is_mute;
}

/* Devices go, and some turn out to have nothing to tell. */
void gpu_drm_drop_unwanted(struct gpu_drm *d);

/* A job is with us again: its slots are free to go. */
void gpu_drm_end_job(struct gpu_drm *d, struct gpu_drm_job *j);

/* What is not kept is opened for each reading. */
void gpu_drm_close_file(struct gpu_drm *d, struct gpu_slot *s);

/* Lets go of a slot, now or when its job is back. */
void gpu_drm_drop_slot(struct gpu_drm *d, struct gpu_slot *s);

/* It shall be looked at in that tick. Returns 0 or -ENOMEM. */
int gpu_drm_wait(struct gpu_drm *d, pid_t pid, uint64_t start,
		 uint32_t due_tick, int64_t from);

/* What is another one than at the last look? */
bool gpu_drm_has_new_fds(const struct gpu_mark *m, const struct gpu_who *who);
bool gpu_drm_has_new_threads(const struct gpu_mark *m,
			     const struct gpu_who *who);

/* A look at that process in the next tick, whatever its mark says. */
void gpu_drm_look_soon(struct gpu_drm *d, pid_t pid, uint64_t start);

/*
 * Asks about threads that were not asked about yet: who has descriptors of
 * its own? With `again` about those that were asked once, too.
 */
void gpu_drm_ask_tasks(struct gpu_drm *d, struct gpu_mark *m, pid_t pid,
		       bool again);

/* Threads with descriptors of their own. */
size_t gpu_tasks_own(const struct gpu_mark *m, const pid_t **ret);

/* The i-th of them ended. */
void gpu_tasks_forget(struct gpu_mark *m, size_t i);
void gpu_tasks_free(struct gpu_mark *m);
