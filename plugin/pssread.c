/* SPDX-License-Identifier: MIT */
#include "pssread.h"
#include "clocks.h"

enum {
	FULL_SHARE = 8, /* smaps is so much dearer than smaps_rollup */
	STALL_FACTOR = 4,
	PIECE_SIZE = 4096, /* of its text; the kernel gives no more at once */
};

static bool collects(const struct group *g)
{
	return g && g->collect & (collect_mask)1 << COLLECT_PSS;
}

void pssread_open(struct monitor *m)
{
	struct pssread *pr = &m->pss;

	pssplan_init(&pr->plan, NULL);
	smaps_host_probe(&pr->host, m->fs.root_fd);
	for (unsigned i = 0; i < METRIC_N_STORED; i++) {
		if (metrics[i].source == SOURCE_STAT &&
		    metrics[i].field == STAT_FIELD_RSS)
			pr->rss_row = i;
		if (metrics[i].collect == COLLECT_SWAP)
			pr->swap_row = i;
	}
}

void pssread_close(struct monitor *m)
{
	pssplan_done(&m->pss.plan);
}

void pssread_adopt(struct monitor *m)
{
	m->pss.plan.opt.budget_ppm = m->rules->pss_budget_ppm;
}

static bool memory_of(const struct monitor *m, const struct proc *p,
		      struct pss_now *ret)
{
	const struct pssread *pr = &m->pss;

	if (p->flags & PROC_KERNEL || !(p->have & METRIC_BIT(pr->rss_row)))
		return false;
	*ret = (struct pss_now){
	    .rss = p->value[pr->rss_row] * (uint64_t)m->fs.scale.page_size,
	    .swap = p->have & METRIC_BIT(pr->swap_row)
			? p->value[pr->swap_row] * 1024
			: PSS_UNKNOWN,
	};
	return true;
}

bool pssread_now(struct monitor *m, const struct proc *p, struct pss_now *ret)
{
	const struct proc_entry *parent;
	struct pss_now of;

	if (!memory_of(m, p, ret))
		return false;
	if (p->pss.have || !p->stack)
		return true;
	/* Two that have their stacks at the same place are one by fork. */
	parent = proctab_parent(&m->tab, p);
	if (!parent || parent->proc->stack != p->stack ||
	    !memory_of(m, parent->proc, &of))
		return true;
	ret->rss_of_fork = of.rss;
	ret->swap_of_fork = of.swap == PSS_UNKNOWN ? 0 : of.swap;
	return true;
}

/*
 * What the rules of all its groups say, the most demanding of each. False if
 * none wants it.
 */
static bool policy_of(const struct monitor *m, const struct proc *p,
		      struct pss_policy *ret)
{
	bool any = false;

	for (size_t v = 0; v < m->tab.n_views; v++) {
		const struct proc_place *place = &p->place[v];
		const struct pss_policy *policy = &m->rules->view[v].pss;

		if (!collects(place->group))
			continue;
		if (place->rule)
			policy = &m->rules->rule[place->rule - 1].pss;
		if (!any)
			*ret = *policy;
		any = true;
		ret->every_ns = MIN(ret->every_ns, policy->every_ns);
		ret->max_age_ns = MIN(ret->max_age_ns, policy->max_age_ns);
		ret->max_rss = MAX(ret->max_rss, policy->max_rss);
	}
	if (m->pss.host.file == SMAPS_FULL)
		ret->max_rss /= FULL_SHARE;
	return any;
}

static uint64_t age_of(const struct monitor *m, const struct proc *p)
{
	uint64_t hz = (uint64_t)m->fs.scale.ticks_per_second;
	uint64_t start_ns =
	    p->start / hz * NSEC_PER_SEC + p->start % hz * NSEC_PER_SEC / hz;

	return m->now.boot_ns > start_ns ? m->now.boot_ns - start_ns : 0;
}

static void offer(struct monitor *m, uint32_t i)
{
	struct proc *p = m->tab.entry[i].proc;
	struct pss_policy policy;
	struct pss_facts facts;

	if (p->flags &
		(PROC_IS_GONE | PROC_IS_STALLED | PROC_HANGS | PROC_AWAITS) ||
	    !pssread_now(m, p, &facts.now) || !policy_of(m, p, &policy))
		return;
	facts.age_ns = age_of(m, p);
	facts.ran = p->ran_tick == m->tab.tick;
	m->pss.n_wanted++;
	pssplan_offer(&m->pss.plan, &p->pss, i, &facts, &policy);
}

/* In the worker. */
static void run(struct answer *a)
{
	char buf[PIECE_SIZE];
	struct smaps_ask ask = {
	    .root_fd = a->root_fd,
	    .pid = a->pid,
	    .live_tid = a->live_tid,
	    .file = a->file,
	    .buf = buf,
	    .size = sizeof(buf),
	};
	uint64_t cpu = clocks_thread_cpu();

	a->result = smaps_read(&ask, &a->smaps);
	a->cost_ns = clocks_thread_cpu() - cpu;
}

static int submit(struct monitor *m, const struct pss_ask *ask)
{
	const struct proc *p = m->tab.entry[ask->id].proc;
	struct answer *a = classifier_new_answer(&m->classifier, p);

	if (!a)
		return -ENOMEM;
	a->run = run;
	a->ask = *ask;
	a->file = m->pss.host.file;
	/* One that is dear is not stuck yet when it takes its time. */
	a->job.limit_ns = (uint64_t)(ask->cost_us * 1000 * STALL_FACTOR);
	return classifier_submit(&m->classifier, a);
}

static bool anyone_collects(const struct groups *groups)
{
	for (size_t i = 0; i < groups->n_groups; i++)
		if (collects(groups->group[i]))
			return true;
	return false;
}

void pssread_plan(struct monitor *m)
{
	struct pssread *pr = &m->pss;
	struct pss_ask ask;

	pr->n_wanted = 0;
	pr->asked = anyone_collects(&m->groups);
	m->groups.no_pss = pr->host.file == SMAPS_NONE;
	if (m->groups.no_pss)
		return;
	pssplan_begin(&pr->plan, m->now.mono_ns);
	if (!pr->asked)
		return;
	for (uint32_t i = 0; i < m->tab.n_procs; i++)
		offer(m, i);
	while (pssplan_next(&pr->plan, &ask)) {
		const struct pss_answer failed = {.outcome = PSS_FAILED};

		if (submit(m, &ask) == 0)
			continue;
		pssplan_account(&pr->plan, ask.reading, &ask, &failed);
		break;
	}
}

static enum pss_outcome outcome_of(const struct monitor *m, int r)
{
	switch (r) {
	case 0:
		return PSS_READ;
	case SMAPS_NO_MEMORY:
		return PSS_EMPTY;
	case SMAPS_NO_FILE:
		return m->pss.host.sure ? PSS_REFUSED : PSS_FAILED;
	case PROC_DENIED:
	case PROC_ABSENT:
	case SMAPS_TOO_LONG:
	case -EBADMSG:
		return PSS_REFUSED;
	default:
		return PSS_FAILED;
	}
}

void pssread_take(struct monitor *m, struct proc *p, const struct answer *a)
{
	static const struct {
		enum smaps_value from;
		enum pss_value to;
	} values[] = {
	    {SMAPS_PSS, PSS_PSS},
	    {SMAPS_USS, PSS_USS},
	    {SMAPS_SWAP_PSS, PSS_SWAP_PSS},
	};
	struct pss_answer answer = {
	    .outcome = outcome_of(m, a->result),
	    .cost_ns = a->cost_ns,
	};

	if (a->result == 0 && a->file == SMAPS_FULL) {
		answer.have |= PSS_BIT(PSS_MAPS);
		answer.value[PSS_MAPS] = a->smaps.n_mappings;
	}
	for (size_t i = 0; a->result == 0 && i < ARRAY_SIZE(values); i++) {
		if (!(a->smaps.have & SMAPS_BIT(values[i].from)))
			continue;
		answer.have |= PSS_BIT(values[i].to);
		answer.value[values[i].to] = a->smaps.value[values[i].from];
	}
	smaps_host_learn(&m->pss.host, a->file, a->result);
	pssplan_account(&m->pss.plan,
			p && a->result != PROC_GONE ? &p->pss : NULL, &a->ask,
			&answer);
}
