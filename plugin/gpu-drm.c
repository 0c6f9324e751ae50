/* SPDX-License-Identifier: MIT */
#include "clocks.h"
#include "gpu-drm-internal.h"
#include "gpu-fdinfo.h"
#include "gpu-sys.h"

#include <fcntl.h>
#include <stdio.h>

enum {
	WORKERS = 4,	  /* devices that may be stuck before all rest */
	VERIFY_TICKS = 8, /* between readings of what should be a duplicate */
};

int gpu_drm_open(struct gpu_drm *d, const struct gpu_drm_options *o)
{
	*d = (struct gpu_drm){
	    .opt = *o,
	    .lane = lane_open("proctally-drm", WORKERS),
	};
	return d->lane ? 0 : -ENOMEM;
}

static void free_job(struct gpu_drm_job *j)
{
	if (!j)
		return;
	free(j->entry);
	free(j->text);
	free(j);
}

/* The backend is gone: what a late worker holds is its own. */
static void release_job(struct lane_job *job)
{
	struct gpu_drm_job *j = (struct gpu_drm_job *)job;

	for (size_t i = 0; i < j->n_entries; i++)
		close(j->entry[i].file);
	free_job(j);
}

bool gpu_drm_close(struct gpu_drm *d)
{
	bool all = lane_close(d->lane);

	for (size_t i = 0; i < d->n_slots; i++)
		if (d->slot[i].used && !d->slot[i].is_busy)
			gpu_drm_drop_slot(d, &d->slot[i]);
	for (size_t i = 0; i < d->n_devices; i++) {
		struct gpu_drm_device *v = &d->device[i];

		base_closep(&v->power_fd);
		if (!v->is_busy)
			free_job(v->job);
	}
	free(d->device);
	free(d->slot);
	free(d->turn);
	free(d->tid);
	*d = (struct gpu_drm){0};
	return all;
}

bool gpu_drm_is_capable(const struct gpu_drm *d)
{
	for (size_t i = 0; i < d->n_devices; i++)
		if (gpu_drm_is_wanted(&d->device[i]))
			return true;
	return false;
}

void gpu_drm_drop_unwanted(struct gpu_drm *d)
{
	for (size_t i = 0; i < d->n_slots; i++) {
		struct gpu_slot *s = &d->slot[i];

		if (s->used && !s->is_dead &&
		    !gpu_drm_is_wanted(&d->device[s->device]))
			gpu_drm_drop_slot(d, s);
	}
}

/* A device that sleeps cannot have advanced, and reading may wake it. */
static bool is_asleep(const struct gpu_drm_device *v)
{
	char status[32];
	ssize_t n;

	if (v->power_fd < 0)
		return false;
	n = pread(v->power_fd, status, sizeof(status) - 1, 0);
	if (n <= 0)
		return false;
	status[n] = '\0';
	status[strcspn(status, "\n")] = '\0';
	return gpu_sys_parse_power(status) != GPU_POWER_ON;
}

void gpu_drm_begin(struct gpu_drm *d, const struct moment *now)
{
	d->tick++;
	d->now = *now;
	d->begun_ns = clocks_read(CLOCK_MONOTONIC);
	d->budget = GPU_DRM_FDS_PER_TICK;
	d->turns_left = d->n_turns;
	if (d->opt.sys_fd >= 0 &&
	    (!d->is_listed ||
	     now->mono_ns - d->listed_ns >= GPU_DRM_TABLE_NS)) {
		gpu_drm_list_devices(d);
		d->is_listed = true;
		d->listed_ns = now->mono_ns;
	}
	gpu_drm_drop_unwanted(d);
}

static void read_entry(struct gpu_drm_job *j, struct gpu_drm_entry *e)
{
	uint64_t before = clocks_read(CLOCK_MONOTONIC);
	ssize_t n;

	e->err = ENOMEM;
	if (array_reserve(&j->text, &j->text_cap, j->n_text + GPU_FDINFO_SIZE,
			  1) < 0)
		return;
	do
		n = pread(e->file, j->text + j->n_text, GPU_FDINFO_SIZE, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == ESPIPE) {
		j->no_seek = true;
		n = read(e->file, j->text + j->n_text, GPU_FDINFO_SIZE);
	}
	e->err = n < 0 ? errno : n == GPU_FDINFO_SIZE ? E2BIG : 0;
	if (e->err)
		return;
	e->real_ns = before + (clocks_read(CLOCK_MONOTONIC) - before) / 2;
	e->at = j->n_text;
	e->n = (size_t)n;
	j->n_text += e->n;
}

static void run_job(struct lane_job *job)
{
	struct gpu_drm_job *j = (struct gpu_drm_job *)job;

	_Static_assert(offsetof(struct gpu_drm_job, job) == 0, "same address");
	for (size_t i = 0; i < j->n_entries; i++)
		read_entry(j, &j->entry[i]);
}

/* Without a kept descriptor the file is opened for one reading. */
static int open_once(struct gpu_drm *d, const struct gpu_slot *s)
{
	char path[64];

	if (s->tid)
		snprintf(path, sizeof(path), "%d/task/%d/fdinfo/%d",
			 (int)s->holder.pid, (int)s->tid, s->fd);
	else
		snprintf(path, sizeof(path), "%d/fdinfo/%d", (int)s->holder.pid,
			 s->fd);
	d->counts.n_calls++;
	return openat(d->opt.proc_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static bool add_entry(struct gpu_drm *d, struct gpu *g, struct gpu_drm_job *j,
		      uint32_t number)
{
	struct gpu_slot *s = &d->slot[number];
	int file = s->file >= 0 ? s->file : open_once(d, s);

	s->read_tick = d->tick;
	if (file < 0) {
		/* Another one of its places may still be readable. */
		if (s->client >= 0)
			gpu_unclaim(g, s->client);
		gpu_drm_look_soon(d, s->holder.pid, s->holder.start);
		gpu_drm_drop_slot(d, s);
		return false;
	}
	if (array_reserve(&j->entry, &j->entry_cap, j->n_entries + 1,
			  sizeof(*j->entry)) < 0) {
		if (!s->is_kept)
			close(file);
		return false;
	}
	j->entry[j->n_entries++] = (struct gpu_drm_entry){
	    .slot = number,
	    .file = file,
	    .is_kept = s->is_kept,
	};
	s->is_busy = true;
	return true;
}

static struct gpu_drm_job *job_of(struct gpu_drm *d, unsigned device)
{
	struct gpu_drm_device *v = &d->device[device];
	struct gpu_drm_job *j = v->job;

	if (!j)
		j = v->job = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	if (j->n_entries == 0) {
		j->job =
		    (struct lane_job){.run = run_job, .release = release_job};
		j->device = device;
		j->now_ns = d->now.mono_ns;
		j->begun_ns = d->begun_ns;
		j->n_text = 0;
	}
	return j;
}

/* Who is to be read? One place of a client is enough, its owner's first. */
static bool wants_reading(struct gpu_drm *d, struct gpu *g, uint32_t number,
			  bool owners)
{
	struct gpu_slot *s = &d->slot[number];
	bool is_turn = (d->tick + number) % VERIFY_TICKS == 0;
	bool claimed;

	if (s->client < 0)
		return !owners && s->read_tick != d->tick &&
		       (!s->is_negative || is_turn);
	claimed = gpu_claim(g, s->client, &s->holder, owners);
	return claimed || (!owners && is_turn && s->read_tick != d->tick);
}

/* A job is with us again: its slots are free to go. */
static void end_entry(struct gpu_drm *d, const struct gpu_drm_entry *e)
{
	struct gpu_slot *s = &d->slot[e->slot];

	s->is_busy = false;
	if (!e->is_kept)
		close(e->file);
	if (d->no_seek)
		gpu_drm_close_file(d, s);
	if (s->is_dead)
		gpu_drm_drop_slot(d, s);
}

void gpu_drm_end_job(struct gpu_drm *d, struct gpu_drm_job *j)
{
	for (size_t i = 0; i < j->n_entries; i++)
		end_entry(d, &j->entry[i]);
	j->n_entries = 0;
	d->device[j->device].is_busy = false;
}

/* Who ended, or is not asked for any more, is not read. */
static bool is_gone(struct gpu_drm *d, const struct gpu_slot *s)
{
	struct gpu_holder h;

	return !d->opt.find(d->opt.find_arg, s->holder.pid, &h) ||
	       h.start != s->holder.start;
}

static void add_all(struct gpu_drm *d, struct gpu *g, bool owners)
{
	for (size_t i = 0; i < d->n_slots; i++) {
		struct gpu_slot *s = &d->slot[i];
		const struct gpu_drm_device *v = &d->device[s->device];
		struct gpu_drm_job *j;

		if (!s->used || s->is_busy || v->is_asleep || v->is_busy ||
		    is_gone(d, s) || !wants_reading(d, g, (uint32_t)i, owners))
			continue;
		j = job_of(d, s->device);
		if (j)
			add_entry(d, g, j, (uint32_t)i);
	}
}

void gpu_drm_read(struct gpu_drm *d, struct gpu *g)
{
	for (size_t i = 0; i < d->n_devices; i++)
		d->device[i].is_asleep = gpu_drm_is_wanted(&d->device[i]) &&
					 is_asleep(&d->device[i]);
	add_all(d, g, true);
	add_all(d, g, false);
	for (size_t i = 0; i < d->n_devices; i++) {
		struct gpu_drm_device *v = &d->device[i];
		struct gpu_drm_job *j = v->job;

		if (!j || v->is_busy || j->n_entries == 0)
			continue;
		v->is_busy = true;
		if (lane_submit(d->lane, &j->job) < 0)
			gpu_drm_end_job(d, j);
	}
}
