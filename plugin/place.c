/* SPDX-License-Identifier: MIT */
#include "monitor-internal.h"

#define PATIENCE_NS (20 * NSEC_PER_MSEC) /* then a worker is replaced */
#define STALL_NS NSEC_PER_SEC		 /* then a process counts as stuck */

void monitor_static_name(const struct name *n, struct name_result *ret)
{
	struct subject nobody = {.absent = ~0u};

	name_expand(n, &nobody, NULL, ret);
}

/* Notes that a name is one too many, and tells so once. */
static void refuse_group(struct monitor *m, const char *name,
			 const char *instead)
{
	m->self.groups_refused++;
	if (!m->told.groups)
		monitor_tell(m, MONITOR_WARNING,
			     "more than limits.groups (%u) groups: \"%s\" and "
			     "further ones are %s%s%s",
			     m->rules->limits.groups, name,
			     instead ? "counted in \"" : "not counted",
			     instead ? instead : "", instead ? "\"" : "");
	m->told.groups = true;
}

static void note_name(struct monitor *m, struct group *g, uint64_t raw_hash)
{
	if (g->raw_hash && g->raw_hash != raw_hash && !g->told_merged) {
		g->told_merged = true;
		monitor_tell(m, MONITOR_WARNING,
			     "several names become \"%s\" when they are made "
			     "safe: they are one group",
			     g->name);
	}
	g->raw_hash = raw_hash;
}

/*
 * The group of that name; *ret is NULL where there is none to be counted in.
 * Returns 0 or -ENOMEM.
 */
static int group_for(struct monitor *m, const struct placing *pl,
		     struct group **ret)
{
	const struct ruleset *rs = m->rules;
	struct name_result other;
	bool is_new;

	*ret = NULL;
	if (pl->dropped)
		return 0;
	is_new = !groups_find(&m->groups, pl->name.text);
	if (is_new && m->groups.n_groups >= rs->limits.groups) {
		if (rs->other)
			monitor_static_name(rs->other, &other);
		refuse_group(m, pl->name.text, rs->other ? other.text : NULL);
		if (!rs->other)
			return 0;
		*ret = groups_get(&m->groups, other.text, rs->collect);
		return *ret ? 0 : -ENOMEM;
	}
	*ret = groups_get(&m->groups, pl->name.text, pl->collect);
	if (!*ret)
		return -ENOMEM;
	note_name(m, *ret, pl->name.raw_hash);
	return 0;
}

/*
 * A new member: what it used since it was born counts, if that was before
 * our eyes; else what it is seen to use from now on.
 */
static void welcome(struct monitor *m, struct proc *p, struct group *g)
{
	bool born = p->flags & PROC_NEW && p->flags & PROC_BORN;
	metric_mask counters = p->have & m->tab.counters;

	for (; counters; counters &= counters - 1) {
		unsigned row = (unsigned)__builtin_ctzll(counters);

		group_count(g, row, born ? p->value[row] : 0);
	}
	if (born)
		group_count_birth(g);
}

void monitor_end_move(struct monitor *m)
{
	struct proc *p = m->reading->proc;

	p->group = m->moving_to;
	p->flags &= ~(uint32_t)(PROC_NEW | PROC_RENAMED);
	m->moving = false;
}

static void move_to(struct monitor *m, struct proc_entry *e, struct group *g)
{
	struct proc *p = e->proc;
	metric_mask wanted = g ? g->wanted : 0;

	m->moving_to = g;
	m->moving = true;
	/* What it does where it is not read is nobody's growth later. */
	proctab_forget(&m->tab, p, wanted);
	if (g && g != p->group)
		welcome(m, p, g);
	/* What was read for the group that it leaves need not be read again. */
	if (g)
		proctab_sample(&m->tab, e,
			       p->flags & PROC_NEW ? wanted : wanted & ~p->have,
			       &m->growth);
	monitor_count(g, &m->growth);
	monitor_end_move(m);
}

/* It is to be asked about again in the next tick. */
static void place_later(struct monitor *m, struct proc_entry *e, int r)
{
	e->proc->flags |= PROC_RENAMED;
	proctab_try_again(&m->tab, e, r);
}

enum when {
	NOW_IF_SURE, /* leave it if an answer may change it */
	NOW_ANYHOW,  /* with what is known */
};

/* Returns false if the process waits for an answer. */
static bool place_one(struct monitor *m, struct proc_entry *e,
		      struct answer *answer, enum when when)
{
	struct proc *p = e->proc;
	struct placing pl;
	struct group *g;
	int r;

	if (p->flags & (PROC_IS_GONE | PROC_HANGS))
		return true;
	m->reading = e;
	r = proctab_look_again(&m->tab, e);
	if (r) {
		if (r != PROC_GONE)
			place_later(m, e, r);
		return true;
	}
	classify(&m->classifier, p, answer, &pl);
	if (pl.pending && when == NOW_IF_SURE) {
		proctab_leave(&m->tab, p);
		return false;
	}
	r = group_for(m, &pl, &g);
	if (r == 0)
		move_to(m, e, g);
	if (r < 0 || pl.unsure)
		place_later(m, e, r < 0 ? r : -EAGAIN);
	proctab_leave(&m->tab, p);
	return true;
}

static void note_stall(void *arg, const struct lane_job *job)
{
	struct monitor *m = arg;
	const struct answer *a = (const struct answer *)job;

	_Static_assert(offsetof(struct answer, job) == 0, "same address");
	if (m->n_stalls < STALLS_MAX)
		m->stall[m->n_stalls++] = (struct stall){a->pid, a->start};
}

/* A process that keeps its reader waiting is asked nothing else meanwhile. */
static void watch_stalls(struct monitor *m)
{
	m->n_stalls = 0;
	lane_watch(m->classifier.lane, STALL_NS, note_stall, m);
	for (size_t i = 0; i < m->n_stalls; i++) {
		struct proc_entry *e =
		    proctab_find(&m->tab, m->stall[i].pid, m->stall[i].start);

		m->self.stalls++;
		if (!e)
			continue;
		e->proc->flags |= PROC_IS_STALLED;
		monitor_tell(m, MONITOR_WARNING,
			     "process %d (%s) keeps whoever reads its command "
			     "line waiting; it is grouped without, and its "
			     "other values go on",
			     (int)e->pid, e->proc->comm);
	}
}

/* Uses the answers that the lane has ready. */
static void take_answers(struct monitor *m)
{
	while ((m->answer = classifier_take(&m->classifier))) {
		struct proc_entry *e =
		    proctab_find(&m->tab, m->answer->pid, m->answer->start);

		if (e) {
			e->proc->flags &=
			    ~(uint32_t)(PROC_AWAITS | PROC_IS_STALLED);
			place_one(m, e, m->answer, NOW_ANYHOW);
		}
		answer_free(m->answer);
	}
}

static void place_fresh(struct monitor *m)
{
	while (m->at < m->n_fresh) {
		uint32_t i = m->fresh[m->at++];

		if (!place_one(m, &m->tab.entry[i], NULL, NOW_IF_SURE))
			m->waiting[m->n_waiting++] = i;
	}
}

/* One that has a group stays there until more is known. */
static void place_anyhow(struct monitor *m)
{
	while (m->at < m->n_waiting) {
		struct proc_entry *e = &m->tab.entry[m->waiting[m->at++]];

		if (e->proc->flags & PROC_AWAITS && e->proc->flags & PROC_NEW)
			place_one(m, e, NULL, NOW_ANYHOW);
	}
}

void monitor_place(struct monitor *m)
{
	if (m->step == STEP_PLACE) {
		m->classifier.now = m->now;
		watch_stalls(m);
		m->n_waiting = 0;
		if (array_reserve(&m->waiting, &m->waiting_cap, m->n_fresh,
				  sizeof(*m->waiting)) < 0)
			m->n_fresh = 0;
		m->step = STEP_PLACE_EARLY;
	}
	if (m->step == STEP_PLACE_EARLY) {
		take_answers(m);
		m->at = 0;
		m->step = STEP_PLACE_FRESH;
	}
	if (m->step == STEP_PLACE_FRESH) {
		place_fresh(m);
		m->step = m->n_waiting ? STEP_PLACE_WAIT : STEP_DONE;
	}
	if (m->step == STEP_PLACE_WAIT) {
		lane_wait(m->classifier.lane, MONITOR_WAIT_NS, PATIENCE_NS);
		m->step = STEP_PLACE_LATE;
	}
	if (m->step == STEP_PLACE_LATE) {
		take_answers(m);
		m->at = 0;
		m->step = STEP_PLACE_ANYHOW;
	}
	if (m->step == STEP_PLACE_ANYHOW) {
		place_anyhow(m);
		m->step = STEP_DONE;
	}
	m->reading = NULL;
}
