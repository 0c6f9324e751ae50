/* SPDX-License-Identifier: MIT */
#include "gpuread.h"
#include "series.h"

#include <fcntl.h>

enum {
	RANK_MEMORY_BITS = 24, /* of MiB, behind the time */
};

static bool collects(const struct group *g)
{
	return g && g->collect & (collect_mask)1 << COLLECT_GPU;
}

bool gpuread_is_wanted(const struct monitor *m, const struct proc *p)
{
	for (size_t v = 0; v < m->tab.n_views; v++)
		if (collects(p->place[v].group))
			return true;
	return false;
}

void gpuread_init(struct monitor *m)
{
	m->gpu.sys_fd = -1;
	for (unsigned i = 0; i < METRIC_N_STORED; i++) {
		if (metrics[i].source == SOURCE_FDS)
			m->gpu.fds_row = i;
		if (metrics[i].source == SOURCE_STAT &&
		    metrics[i].field == STAT_FIELD_THREADS)
			m->gpu.threads_row = i;
	}
}

static void close_host(struct monitor *m)
{
	if (!m->gpu.is_open)
		return;
	gpuread_forget_all(m);
	m->gpu.n_stalls +=
	    m->gpu.host.drm.counts.n_stalls + m->gpu.host.nvml.counts.n_stalls;
	gpu_host_close(&m->gpu.host);
	base_closep(&m->gpu.sys_fd);
	m->gpu.is_open = false;
}

void gpuread_close(struct monitor *m)
{
	close_host(m);
	free(m->gpu.seen);
	free(m->gpu.fresh);
	m->gpu.seen = NULL;
	m->gpu.fresh = NULL;
}

/* A gpu_find_fn: only whose use is wanted is there for the backends. */
static bool find_process(void *arg, pid_t pid, struct gpu_holder *ret)
{
	struct monitor *m = arg;
	const struct proc_entry *e = proctab_find_pid(&m->tab, pid);
	const struct proc *p = e ? e->proc : NULL;

	if (!p || !p->start || p->flags & (PROC_IS_GONE | PROC_NEW) ||
	    !gpuread_is_wanted(m, p))
		return false;
	*ret = (struct gpu_holder){
	    .pid = pid,
	    .start = p->start,
	    .is_broker = gpu_is_broker(str_of(proc_comm(p))),
	};
	return true;
}

static void open_host(struct monitor *m)
{
	struct gpuread *gr = &m->gpu;
	struct gpu_host_options o = {
	    .proc_fd = m->fs.root_fd,
	    .kept = &m->fs.kept,
	    .is_real = m->fs.is_procfs,
	    .same_pids = m->fs.has_clocks,
	    .find = find_process,
	    .find_arg = m,
	};

	gr->sys_fd = open(m->sys_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	keptfd_park(&gr->sys_fd);
	o.sys_fd = gr->sys_fd;
	if (gpu_host_open(&gr->host, &o) < 0) {
		base_closep(&gr->sys_fd);
		return;
	}
	gr->is_open = true;
	gr->opened_ns = m->now.boot_ns;
	for (size_t i = 0; i < ARRAY_SIZE(gr->label); i++)
		gr->label[i] = (struct gpuread_label){-1, -1};
	gr->n_labelled = 0;
}

static bool is_any_wanted(const struct monitor *m)
{
	for (size_t i = 0; i < m->groups.n_groups; i++)
		if (collects(m->groups.group[i]))
			return true;
	return false;
}

void gpuread_begin(struct monitor *m)
{
	struct gpuread *gr = &m->gpu;

	gr->has_results = false;
	if (!is_any_wanted(m)) {
		close_host(m);
		return;
	}
	if (!gr->is_open)
		open_host(m);
	if (!gr->is_open)
		return;
	gpu_host_begin(&gr->host, &m->now);
	if (!gpu_drm_is_capable(&gr->host.drm))
		gpuread_forget_all(m);
	else if (gpuread_follow_table(m) == 0) {
		m->growth.rows = 0;
		runner_run(&m->runner, gpuread_look_at_all,
			   monitor_leave_hanging, m, MONITOR_HANG_NS);
	}
	gpu_host_read(&gr->host);
}

void gpuread_finish(struct monitor *m)
{
	struct gpuread *gr = &m->gpu;

	if (gr->is_open)
		gr->has_results =
		    gpu_host_finish(
			&gr->host, MONITOR_WAIT_NS -
				       MIN(m->waited_ns, MONITOR_WAIT_NS)) == 0;
}

/* The labels of what backends number, made when it is met first. */
static const struct gpuread_label *label_of(struct monitor *m, unsigned series)
{
	struct gpuread *gr = &m->gpu;
	struct gpusum_labels *labels = &m->groups.gpu_labels;

	for (; gr->n_labelled <= series; gr->n_labelled++) {
		const struct gpu_series *s =
		    &gr->host.use.series[gr->n_labelled];
		struct gpuread_label *l = &gr->label[gr->n_labelled];

		l->main = gpusum_label(labels, s->device, s->name,
				       s->kind == GPU_KIND_LOAD ? "_load" : "");
		if (s->kind == GPU_KIND_MEMORY)
			l->shared =
			    gpusum_label(labels, s->device, s->name, "_shared");
	}
	return &gr->label[series];
}

/* `grown` says whether what it did in this tick was done in this group. */
static void add_use(struct monitor *m, struct gpusum *to,
		    const struct gpu_use *u, bool grown)
{
	enum gpu_kind kind = m->gpu.host.use.series[u->series].kind;
	int label = label_of(m, u->series)->main;

	if (kind != GPU_KIND_LOAD)
		gpusum_add_time(to, label, grown ? u->grown_ns : 0);
	if (kind != GPU_KIND_EVICTED && u->has_percent)
		gpusum_add_percent(to, label, u->percent);
}

static void add_process(struct monitor *m, struct group *g,
			const struct gpu_process *gp, bool grown)
{
	if (!collects(g))
		return;
	gpusum_add_clients(&g->gpu, gp->n_clients, gp->n_shared,
			   gp->has_unseen);
	for (size_t i = 0; i < gp->n_uses; i++)
		add_use(m, &g->gpu, &gp->use[i], grown);
	for (size_t i = 0; i < gp->n_memories; i++) {
		const struct gpu_memory *mem = &gp->memory[i];
		const struct gpuread_label *l = label_of(m, mem->series);

		gpusum_add_bytes(&g->gpu, l->main, mem->resident);
		if (mem->has_shared)
			gpusum_add_bytes(&g->gpu, l->shared, mem->shared);
	}
}

void gpuread_fold(struct monitor *m)
{
	const struct gpu *use = &m->gpu.host.use;

	m->gpu.n_clients = 0;
	for (size_t i = 0; m->gpu.has_results && i < use->n_processes; i++) {
		const struct gpu_process *gp = &use->process[i];
		struct proc_entry *e =
		    proctab_find(&m->tab, gp->pid, gp->start);
		struct gpu_seen *s = gpuread_find_seen(m, gp->pid, gp->start);
		const struct proc *p = e ? e->proc : NULL;

		if (!p)
			continue;
		m->gpu.n_clients += gp->n_clients;
		for (size_t v = 0; v < m->tab.n_views; v++) {
			bool grown = !s || !s->is_back;

			add_process(m, p->place[v].group, gp, grown);
			if (p->member)
				add_process(m, p->member->in[v].series, gp,
					    grown);
		}
		if (s)
			s->is_back = false;
	}
}

static const struct gpu_process *result_of(const struct monitor *m,
					   const struct proc *p)
{
	const struct gpu *use = &m->gpu.host.use;
	size_t low = 0, high = m->gpu.has_results ? use->n_processes : 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct gpu_process *gp = &use->process[mid];

		if (gp->pid == p->at.pid && gp->start == p->start)
			return gp;
		if (gp->pid < p->at.pid ||
		    (gp->pid == p->at.pid && gp->start < p->start))
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* Time first; where it cannot be told memory decides. */
uint64_t gpuread_rank(const struct monitor *m, const struct proc *p)
{
	const struct gpu_process *gp = result_of(m, p);
	uint64_t us = 0, mib = 0;

	for (size_t i = 0; gp && i < gp->n_uses; i++)
		if (m->gpu.host.use.series[gp->use[i].series].kind ==
		    GPU_KIND_BUSY)
			us += gp->use[i].grown_ns / 1000;
	for (size_t i = 0; gp && i < gp->n_memories; i++)
		mib += gp->memory[i].resident >> 20;
	us = MIN(us, UINT64_MAX >> RANK_MEMORY_BITS);
	mib = MIN(mib, (UINT64_C(1) << RANK_MEMORY_BITS) - 1);
	return us << RANK_MEMORY_BITS | mib;
}

bool gpuread_percent(const struct monitor *m, const struct proc *p, double *ret)
{
	const struct gpu_process *gp = result_of(m, p);
	double most = -1;

	for (size_t i = 0; gp && i < gp->n_uses; i++)
		if (gp->use[i].has_percent &&
		    m->gpu.host.use.series[gp->use[i].series].kind !=
			GPU_KIND_EVICTED)
			most = MAX(most, gp->use[i].percent);
	if (most < 0)
		return false;
	*ret = gpu_clamp(most);
	return true;
}
