/* SPDX-License-Identifier: MIT */
#include "gpuread.h"

#include <stdio.h>

void gpuread_count_self(struct monitor *m)
{
	const struct gpu_host *h = &m->gpu.host;
	struct selfstat *self = &m->self;

	self->unreadable_gpu = self->gpu_clients = self->gpu_stalls =
	    SELFSTAT_ABSENT;
	if (!m->gpu.is_open)
		return;
	self->gpu_stalls =
	    m->gpu.n_stalls + h->drm.counts.n_stalls + h->nvml.counts.n_stalls;
	self->gpu_clients = m->gpu.n_clients;
	if (gpu_drm_is_capable(&h->drm))
		self->unreadable_gpu = h->drm.n_denied;
}

/* The number of each state is part of proctally(5): they never change. */
_Static_assert(GPU_STATE_MISSING == 0 && GPU_STATE_OK == 1 &&
		   GPU_STATE_DENIED == 2 && GPU_STATE_STUCK == 3 &&
		   GPU_STATE_OFF == 4 && GPU_STATE_MISMATCH == 5 &&
		   GPU_STATE_LOST == 6 && GPU_STATE_RESTING == 7 &&
		   GPU_STATE_FAILED == 8,
	       "as documented");

void gpuread_emit_self(const struct monitor *m, value_fn *emit, void *arg)
{
	struct gpu_health health;
	char instance[32];

	if (!m->gpu.is_open)
		return;
	for (size_t i = 0; gpu_host_health(&m->gpu.host, i, &health); i++) {
		struct value_out out = {
		    .group = SELF_GROUP,
		    .type = "gauge",
		    .instance = instance,
		    .n = 1,
		    .ds = {"value"},
		    .d = {health.state},
		};

		snprintf(instance, sizeof(instance), "gpu_%s", health.backend);
		emit(arg, &out);
	}
}

/* For people; NULL where there is nothing to tell. */
static const char *what_it_means(enum gpu_state state)
{
	switch (state) {
	case GPU_STATE_DENIED:
		return "may not be read: it has no values; see GPU in "
		       "proctally(5) for the rights that it takes";
	case GPU_STATE_STUCK:
		return "does not answer; it is left alone until it does, and "
		       "the others go on";
	case GPU_STATE_OFF:
		return "does not measure how busy it is until its "
		       "\"profiling\" "
		       "is switched on; see GPU in proctally(5)";
	case GPU_STATE_MISMATCH:
		return "is of another version than the driver: it has no "
		       "values until they match";
	case GPU_STATE_LOST:
		return "is lost or has to be reset";
	case GPU_STATE_FAILED:
		return "failed; it is tried again";
	case GPU_STATE_MISSING:
	case GPU_STATE_OK:
	case GPU_STATE_RESTING:
	case GPU_N_STATES:
		break;
	}
	return NULL;
}

static void notice_health(struct monitor *m, size_t i,
			  const struct gpu_health *health)
{
	const char *means = what_it_means(health->state);
	uint32_t bit = 1u << health->state;

	if (!means || i >= ARRAY_SIZE(m->gpu.told) || m->gpu.told[i] & bit)
		return;
	m->gpu.told[i] |= bit;
	monitor_tell(
	    m, health->state == GPU_STATE_OFF ? MONITOR_INFO : MONITOR_WARNING,
	    "gpu: %s%s%s %s", health->backend, health->what[0] ? ": " : "",
	    health->what, means);
}

static void notice_refusals(struct monitor *m)
{
	uint64_t n = m->gpu.host.drm.n_denied;

	if (!n || m->gpu.told_denied)
		return;
	m->gpu.told_denied = true;
	monitor_tell(m, MONITOR_WARNING,
		     "gpu unreadable for %zu of %zu processes: needs "
		     "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH; there it has no "
		     "value",
		     (size_t)n, m->tab.n_procs);
}

void gpuread_notice(struct monitor *m)
{
	struct gpu_health health;
	bool any = false;

	if (!m->gpu.is_open)
		return;
	for (size_t i = 0; gpu_host_health(&m->gpu.host, i, &health); i++) {
		notice_health(m, i, &health);
		any |= health.state != GPU_STATE_MISSING;
	}
	notice_refusals(m);
	if (any || !m->rules->gpu_is_expected || m->gpu.told_missing)
		return;
	m->gpu.told_missing = true;
	monitor_tell(m, MONITOR_WARNING,
		     "gpu: true, but no driver here tells what processes use "
		     "of a GPU");
}
