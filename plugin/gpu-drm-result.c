/* SPDX-License-Identifier: MIT */
#include "clocks.h"
#include "gpu-drm-internal.h"
#include "gpu-fdinfo.h"

#include <stdio.h>

/* Somebody else has to be asked what the client did. */
static void drop_unread(struct gpu_drm *d, struct gpu *g, struct gpu_slot *s)
{
	if (s->client >= 0)
		gpu_unclaim(g, s->client);
	gpu_drm_look_soon(d, s->holder.pid, s->holder.start);
	gpu_drm_drop_slot(d, s);
}

static void take_failure(struct gpu_drm *d, struct gpu *g, struct gpu_slot *s,
			 int err)
{
	d->counts.n_failed++;
	/* It ended, closed the descriptor, or is not ours to read any more. */
	if (err == ESRCH || err == ENOENT || err == EACCES || err == EPERM)
		drop_unread(d, g, s);
}

/* Nothing of a client is in the text. */
static void take_silence(struct gpu_drm *d, struct gpu_slot *s)
{
	struct gpu_drm_device *v = &d->device[s->device];

	/* Nobody is looked at for the sake of one that never answered. */
	if (!v->has_answered && ++v->n_silent == GPU_DRM_SILENT_MAX)
		v->is_mute = true;
	/* Another file may have the number; or the device was unplugged. */
	if (s->client >= 0)
		gpu_drm_look_soon(d, s->holder.pid, s->holder.start);
	s->client = -1;
	s->is_negative = true;
}

static void take_text(struct gpu_drm *d, struct gpu *g, struct gpu_slot *s,
		      struct str text, uint64_t read_ns)
{
	struct gpu_drm_device *v = &d->device[s->device];
	struct gpu_reading r;
	int client;

	if (gpu_fdinfo_parse(text, &r) == GPU_NO_CLIENT) {
		if (text.n)
			take_silence(d, s);
		return;
	}
	v->has_answered = true;
	s->is_negative = false;
	if (!r.device.n)
		r.device = str_of(v->name);
	r.read_ns = read_ns;
	client = gpu_take(g, s->client, &r, s->since_ns);
	/* Another client behind the same number: others may be new, too. */
	if (s->client >= 0 && client != s->client)
		gpu_drm_look_soon(d, s->holder.pid, s->holder.start);
	s->client = MAX(client, -1);
	s->since_ns = read_ns;
}

/* Returns true if clients are left for which nobody answered. */
static bool take_job(struct gpu_drm *d, struct gpu *g, struct gpu_drm_job *j)
{
	bool is_left = false;

	d->device[j->device].is_stuck = false;
	d->no_seek |= j->no_seek;
	for (size_t i = 0; i < j->n_entries; i++) {
		const struct gpu_drm_entry *e = &j->entry[i];
		struct gpu_slot *s = &d->slot[e->slot];
		uint64_t read_ns = j->now_ns;

		d->counts.n_reads++;
		/* Below a fake root time stands still within a tick. */
		if (d->opt.is_real)
			read_ns += e->real_ns - j->begun_ns;
		if (s->is_dead)
			continue;
		if (e->err) {
			take_failure(d, g, s, e->err);
			is_left = true;
		} else {
			take_text(d, g, s, (struct str){j->text + e->at, e->n},
				  read_ns);
		}
	}
	gpu_drm_end_job(d, j);
	return is_left;
}

static void mark_stuck(void *arg, const struct lane_job *job)
{
	struct gpu_drm *d = arg;
	const struct gpu_drm_job *j = (const struct gpu_drm_job *)job;

	d->device[j->device].is_stuck = true;
	d->counts.n_stalls++;
}

/* Returns true as take_job() does. */
static bool collect(struct gpu_drm *d, struct gpu *g, uint64_t wait_ns)
{
	size_t n = MAX(lane_pending(d->lane), (size_t)1);
	struct lane_job *job;
	bool is_left = false;

	lane_wait(d->lane, wait_ns, wait_ns / n + 1);
	while ((job = lane_take(d->lane)))
		is_left |= take_job(d, g, (struct gpu_drm_job *)job);
	return is_left;
}

/* Who holds what? Whoever is gone holds nothing. */
static void hold_all(struct gpu_drm *d, struct gpu *g)
{
	for (size_t i = 0; i < d->n_slots; i++) {
		struct gpu_slot *s = &d->slot[i];
		struct gpu_holder h;

		if (!s->used || s->is_dead)
			continue;
		if (!d->opt.find(d->opt.find_arg, s->holder.pid, &h) ||
		    h.start != s->holder.start) {
			gpu_drm_drop_slot(d, s);
			continue;
		}
		s->holder = h;
		if (s->client < 0)
			continue;
		gpu_hold(g, s->client, &h);
		if (d->device[s->device].is_asleep)
			gpu_stands(g, s->client);
	}
}

void gpu_drm_finish(struct gpu_drm *d, struct gpu *g, uint64_t wait_ns)
{
	uint64_t begun_ns = clocks_read(CLOCK_MONOTONIC), spent_ns;

	if (collect(d, g, wait_ns)) {
		spent_ns = clocks_read(CLOCK_MONOTONIC) - begun_ns;
		gpu_drm_read(d, g);
		collect(d, g, wait_ns > spent_ns ? wait_ns - spent_ns : 0);
	}
	lane_watch(d->lane, GPU_DRM_STUCK_NS, mark_stuck, d);
	gpu_drm_drop_unwanted(d);
	hold_all(d, g);
}

enum gpu_state gpu_drm_state(const struct gpu_drm *d, const struct gpu *g,
			     char *what, size_t size)
{
	size_t n_asleep = 0, n_wanted = 0;

	snprintf(what, size, "%s", "");
	for (size_t i = 0; i < d->n_devices; i++) {
		const struct gpu_drm_device *v = &d->device[i];

		if (v->is_stuck) {
			snprintf(what, size, "%s", v->name);
			return GPU_STATE_STUCK;
		}
		n_wanted += gpu_drm_is_wanted(v);
		n_asleep += gpu_drm_is_wanted(v) && v->is_asleep;
	}
	if (n_wanted == 0)
		return GPU_STATE_MISSING;
	if (d->n_denied && gpu_drm_count_slots(d) == 0)
		return GPU_STATE_DENIED;
	if (gpu_is_profiling_off(g))
		return GPU_STATE_OFF;
	return n_asleep == n_wanted ? GPU_STATE_RESTING : GPU_STATE_OK;
}

size_t gpu_drm_count_slots(const struct gpu_drm *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_slots; i++)
		n += d->slot[i].used && !d->slot[i].is_dead;
	return n;
}
