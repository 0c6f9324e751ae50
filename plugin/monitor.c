/* SPDX-License-Identifier: MIT */
#include "gpuread.h"
#include "exitread.h"
#include "pssread.h"
#include "series.h"
#include "clocks.h"

#include <stdarg.h>
#include <stdio.h>

#define GIB_KIB 1048576.0

int monitor_open(const struct monitor_options *o, struct monitor **ret)
{
	struct procfs_options po = {.scale = o->scale};
	struct monitor *m = calloc(1, sizeof(*m));
	int r = -ENOMEM;

	if (!m)
		return -ENOMEM;
	procfs_init(&m->fs);
	m->classifier.lane_root_fd = -1;
	groups_init(&m->groups);
	delay_init(&m->delay);
	gpuread_init(m);
	m->rules_path = strdup(o->rules_path);
	m->proc_path = strdup(o->proc_path ? o->proc_path : "/proc");
	m->sys_path = strdup(o->sys_path ? o->sys_path : "/sys");
	if (m->rules_path && m->proc_path && m->sys_path) {
		po.root = m->proc_path;
		r = procfs_open(&m->fs, &po);
	}
	if (r == 0) {
		proctab_init(&m->tab, &m->fs);
		m->tab.delay = &m->delay;
		pssread_open(m);
		r = classifier_open(&m->classifier, &m->tab);
	}
	if (r == 0)
		r = runner_open(&m->runner, "proctally-tick");
	if (r < 0) {
		monitor_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

static void put_answers(struct monitor *m, struct answer *a)
{
	while (a) {
		struct answer *next = a->next;

		classifier_put(&m->classifier, a);
		a = next;
	}
}

void monitor_free(struct monitor *m)
{
	if (!m)
		return;
	runner_close(&m->runner);
	put_answers(m, m->answers);
	put_answers(m, m->held_answers);
	classifier_close(&m->classifier);
	pssread_close(m);
	gpuread_close(m);
	exitread_close(m);
	cgroupread_close(m);
	delay_close(&m->delay);
	proctab_done(&m->tab);
	procfs_close(&m->fs);
	groups_done(&m->groups);
	ruleset_free(m->rules);
	free(m->fresh);
	free(m->waiting);
	free(m->candidate);
	free(m->rules_path);
	free(m->proc_path);
	free(m->sys_path);
	free(m);
}

void monitor_tell(struct monitor *m, enum monitor_level level, const char *fmt,
		  ...)
{
	struct monitor_event *e;
	va_list ap;

	if (m->n_events == EVENTS_MAX)
		return;
	e = &m->event[(m->first_event + m->n_events++) % EVENTS_MAX];
	e->level = level;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
}

bool monitor_take_event(struct monitor *m, struct monitor_event *ret)
{
	if (!m->n_events)
		return false;
	*ret = m->event[m->first_event];
	m->first_event = (m->first_event + 1) % EVENTS_MAX;
	m->n_events--;
	return true;
}

void monitor_set_cost(struct monitor *m, const struct monitor_cost *cost)
{
	m->self.tick_wall_ns = cost->wall_ns;
	m->self.tick_cpu_ns = cost->cpu_ns + m->body_cpu_ns;
}

void monitor_count(struct monitor *m, struct proc *p, struct growth *growth)
{
	for (size_t i = 0; i < m->tab.n_views; i++) {
		struct group *g = p->place[i].group;

		for (metric_mask rows = g ? growth->rows : 0; rows;
		     rows &= rows - 1) {
			unsigned row = (unsigned)__builtin_ctzll(rows);

			group_count(g, row, growth->by[row]);
		}
	}
	series_count(p, growth);
	exitread_count(m, p, growth);
	growth->rows = 0;
}

metric_mask monitor_wanted(const struct monitor *m, const struct proc *p)
{
	metric_mask wanted = series_wanted(m, p);

	for (size_t i = 0; i < m->tab.n_views; i++)
		if (p->place[i].group)
			wanted |= p->place[i].group->wanted;
	return wanted;
}

/* What did they use? Those that have no group yet are read no further. */
static void sample(struct monitor *m)
{
	while (m->at < m->tab.n_due) {
		uint32_t i = m->tab.due[m->at++];
		struct proc_entry *e = &m->tab.entry[i];

		m->reading = e;
		if (proctab_look(&m->tab, e, &m->growth) == 0) {
			struct proc *p = e->proc;

			if (p->flags &
			    (PROC_NEW | PROC_RENAMED | PROC_WANTS_TRAITS))
				m->fresh[m->n_fresh++] = i;
			metric_mask wanted = monitor_wanted(m, p);

			monitor_count(m, p, &m->growth);
			if (wanted)
				proctab_sample(&m->tab, e, wanted, &m->growth);
			monitor_count(m, p, &m->growth);
		}
		proctab_leave(&m->tab, e->proc);
	}
	m->reading = NULL;
}

/* What reads files of processes, in a thread that may be given up. */
static void read_processes(void *arg, struct guard *g)
{
	struct monitor *m = arg;
	uint64_t cpu = clocks_thread_cpu();

	m->fs.guard = g;
	if (m->step == STEP_SAMPLE) {
		sample(m);
		m->step = STEP_PLACE;
	}
	monitor_place(m); /* which group is each in? */
	m->fs.guard = NULL;
	m->body_cpu_ns += clocks_thread_cpu() - cpu;
}

bool monitor_leave_hanging(void *arg)
{
	struct monitor *m = arg;
	struct proc_entry *e = m->reading;

	monitor_drop_answer(m, e);
	if (e) {
		e->proc->flags |= PROC_HANGS;
		if (m->moving)
			monitor_end_move(m);
		monitor_count(m, e->proc, &m->growth);
		proctab_leave(&m->tab, e->proc);
	}
	m->reading = NULL;
	return procfs_renew(&m->fs) == 0;
}

/* Those that could not be read now are due again in the next tick. */
static void put_off(struct monitor *m, int r)
{
	size_t first = m->step == STEP_SAMPLE ? m->at : m->tab.n_due;

	for (size_t i = first; i < m->tab.n_due; i++)
		proctab_try_again(&m->tab, &m->tab.entry[m->tab.due[i]], r);
	/* Some of these may have been placed; asking again does no harm. */
	for (size_t i = 0; i < m->n_fresh; i++)
		proctab_try_again(&m->tab, &m->tab.entry[m->fresh[i]], r);
	for (size_t i = 0; i < m->n_waiting; i++)
		m->tab.entry[m->waiting[i]].proc->flags &=
		    ~(uint32_t)PROC_IS_QUEUED;
}

/* What did they use, and which group is each in? */
static void sample_and_classify(struct monitor *m)
{
	int r;

	m->step = STEP_SAMPLE;
	m->at = m->n_fresh = m->n_waiting = 0;
	m->growth.rows = 0;
	m->body_cpu_ns = m->waited_ns = 0;
	r = runner_run(&m->runner, read_processes, monitor_leave_hanging, m,
		       MONITOR_HANG_NS);
	if (r < 0)
		put_off(m, r);
}

/* Whether something can be read is known only where a rule asks for it. */
static uint64_t asked(const struct monitor *m, enum subject_source source,
		      uint64_t count)
{
	return m->rules && m->rules->sources & SUBJECT_BIT(source)
		   ? count
		   : SELFSTAT_ABSENT;
}

static void emit_self(struct monitor *m, value_fn *emit, void *arg)
{
	struct selfstat *self = &m->self;

	self->processes = m->tab.n_procs - m->tab.n_gone;
	self->groups = m->groups.n_groups;
	self->kept_fds = m->fs.kept.n_kept;
	self->reads = m->fs.counts.n_reads;
	self->reads_saved = m->tab.counts.n_saved;
	self->anomalies = m->tab.counts.n_anomalies;
	self->parse_errors = m->tab.counts.n_bad;
	self->failed_reads = m->tab.counts.n_failed;
	self->unreadable_exe =
	    asked(m, SUBJECT_EXE, m->classifier.n_unreadable_exe);
	self->unreadable_cgroup =
	    asked(m, SUBJECT_CGROUP, m->classifier.n_unreadable_cgroup);
	self->unreadable_cmdline =
	    asked(m, SUBJECT_CMDLINE, m->classifier.n_unreadable_cmdline);
	self->unreadable_pss =
	    m->pss.n_wanted ? m->pss.plan.counts.n_refused : SELFSTAT_ABSENT;
	self->pss_oldest_ns = m->pss.plan.counts.oldest_ns
				  ? m->pss.plan.counts.oldest_ns
				  : SELFSTAT_ABSENT;
	gpuread_count_self(m);
	exitread_tell(m);
	selfstat_emit(self, emit, arg);
	gpuread_emit_self(m, emit, arg);
}

/* Tell the caller. */
static void emit_all(struct monitor *m, value_fn *emit, void *arg)
{
	groups_emit(&m->groups, &m->fs.scale, m->now.boot_ns, emit, arg);
	emit_self(m, emit, arg);
	residual_emit(m, emit, arg);
}

/* Files other than those of processes that rules rest on. */
static void refresh(struct monitor *m)
{
	if (classifier_refresh(&m->classifier, &m->runner))
		proctab_ask_again(&m->tab);
	if (m->classifier.look.hangs)
		monitor_tell(m, MONITOR_WARNING,
			     "pidfile %s keeps whoever reads it waiting; until "
			     "it can be read it names whom it named",
			     m->classifier.look.hangs);
}

/* Which processes exist, and which of them ran? */
static int list_and_gate(struct monitor *m)
{
	int r;

	m->tab.nobody_hangs = lane_stuck(m->runner.lane) == 0;
	r = proctab_list(&m->tab, &m->now);
	if (r == 0)
		r = array_reserve(&m->fresh, &m->fresh_cap, m->tab.n_procs,
				  sizeof(*m->fresh));
	if (r == 0)
		r = proctab_gate(&m->tab, &m->now);
	return r;
}

int monitor_tick(struct monitor *m, const struct moment *now, value_fn *emit,
		 void *arg)
{
	int r = 0;

	m->now = *now;
	m->began_ns = clocks_read(CLOCK_BOOTTIME);
	/* It went with a thread that was given up, and memory was out. */
	if (!m->fs.buf && procfs_renew(&m->fs) < 0)
		return -ENOMEM;
	monitor_reload(m);
	if (m->rules) {
		refresh(m);
		exitread_open(m);
		r = list_and_gate(m); /* which exist? which of them ran? */
	}
	if (!m->rules || r < 0) {
		emit_self(m, emit, arg);
		return r;
	}
	exitread_begin(m);
	sample_and_classify(m); /* what did they use? which group is it? */
	gpuread_begin(m);	/* who uses a GPU? */
	exitread_take(m);	/* and those who ended? */
	pssread_plan(m);	/* whose memory is read next? */
	gpuread_finish(m);
	series_assign(m);  /* whose use is told by itself? */
	cgroupread_run(m); /* what does the kernel say of all of them? */
	residual_take(m);  /* what did the host use beside that? */
	monitor_fold(m);   /* what did each group use? */
	monitor_notice(m);
	emit_all(m, emit, arg); /* tell the caller */
	m->last_tick_ns = now->mono_ns;
	return 0;
}

void monitor_get_pss(const struct monitor *m, struct monitor_pss *ret)
{
	const struct pssplan *plan = &m->pss.plan;

	*ret = (struct monitor_pss){
	    .n_wanted = m->pss.n_wanted,
	    .n_known = plan->counts.n_known,
	    .n_refused = plan->counts.n_refused,
	    .n_large = plan->counts.n_large,
	    .n_read = plan->totals.n_read,
	    .cpu_ns = plan->totals.cost_ns,
	    .read_gib = plan->totals.read_kib / GIB_KIB,
	    .fixed_us = plan->cost.fixed_us,
	    .gib_us = plan->cost.kib_us * GIB_KIB,
	    .budget = plan->opt.budget_ppm / 1e6,
	    .oldest_ns = plan->counts.oldest_ns,
	    .unread_ns = plan->counts.unread_ns,
	};
}

void monitor_get_figures(const struct monitor *m, struct monitor_figures *ret)
{
	*ret = (struct monitor_figures){
	    .n_processes = m->tab.n_procs,
	    .n_looked = m->tab.n_due,
	    .n_calls = m->fs.counts.n_calls,
	    .n_idle_calls = m->fs.counts.n_listing + m->fs.counts.n_clocks,
	    .n_groups = m->groups.n_groups,
	    .n_gpu_calls = m->gpu.host.drm.counts.n_calls,
	    .n_gpu_looks = m->gpu.host.drm.counts.n_looks,
	    .n_gpu_fds = m->gpu.host.drm.counts.n_fds,
	    .gate = m->tab.opt.gate && m->fs.has_clocks,
	};
}
