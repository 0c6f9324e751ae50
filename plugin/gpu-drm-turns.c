/* SPDX-License-Identifier: MIT */
#include "gpu-drm-internal.h"

int gpu_drm_wait(struct gpu_drm *d, pid_t pid, uint64_t start,
		 uint32_t due_tick, int64_t from)
{
	int r = array_reserve(&d->turn, &d->turn_cap, d->n_turns + 1,
			      sizeof(*d->turn));

	if (r == 0)
		d->turn[d->n_turns++] =
		    (struct gpu_turn){pid, due_tick, start, from};
	return r;
}

void gpu_drm_look_soon(struct gpu_drm *d, pid_t pid, uint64_t start)
{
	gpu_drm_wait(d, pid, start, 0, 0);
}

/*
 * The tick of the next look: looks that were in vain make them rarer, and
 * where nothing but time calls for one the process's number spreads them.
 */
static uint32_t due_tick(const struct gpu_mark *m, pid_t pid, bool has_changed)
{
	unsigned doublings = MIN(m->n_in_vain, 6u);
	uint32_t period, next;

	if (!m->looked_tick)
		return 0;
	if (has_changed) {
		period = doublings < 2 ? 1 : 1u << (doublings - 1);
		return m->looked_tick +
		       MIN(period, (uint32_t)GPU_DRM_TICKS_CHANGED_MAX);
	}
	period = MIN((uint32_t)GPU_DRM_TICKS << doublings,
		     (uint32_t)GPU_DRM_TICKS_MAX);
	next = m->looked_tick + 1;
	return next + (period - (next + (uint32_t)pid) % period) % period;
}

bool gpu_drm_has_new_threads(const struct gpu_mark *m,
			     const struct gpu_who *who)
{
	return who->n_threads > 1 && who->n_threads != m->n_threads;
}

bool gpu_drm_has_new_fds(const struct gpu_mark *m, const struct gpu_who *who)
{
	const pid_t *own;

	/* How many a thread's own table has is not known. */
	return who->n_fds == GPU_FDS_UNKNOWN || who->n_fds != m->n_fds ||
	       gpu_tasks_own(m, &own) > 0;
}

bool gpu_drm_ran(struct gpu_drm *d, struct gpu_mark *m,
		 const struct gpu_who *who)
{
	bool has_changed;
	uint32_t due;

	if (!gpu_drm_is_capable(d) || m->looked_tick == d->tick)
		return false;
	has_changed = gpu_drm_has_new_fds(m, who);
	if (!has_changed && gpu_drm_has_new_threads(m, who) && d->budget > 0)
		return true;
	due = due_tick(m, who->holder.pid, has_changed);
	if (due <= d->tick && d->budget > 0)
		return true;
	if (due <= d->tick) {
		d->counts.n_put_off++;
		due = d->tick + 1;
	}
	if (m->due_tick > d->tick && m->due_tick <= due)
		return false; /* its turn comes */
	if (gpu_drm_wait(d, who->holder.pid, who->holder.start, due, 0) == 0)
		m->due_tick = due;
	return false;
}

bool gpu_drm_next(struct gpu_drm *d, struct gpu_turn *ret)
{
	while (d->turns_left > 0 && d->n_turns > 0 && d->budget > 0) {
		struct gpu_turn *t;

		if (d->turn_at >= d->n_turns)
			d->turn_at = 0;
		t = &d->turn[d->turn_at];
		d->turns_left--;
		if (t->due_tick > d->tick) {
			d->turn_at++;
			continue;
		}
		*ret = *t;
		*t = d->turn[--d->n_turns];
		return true;
	}
	return false;
}
