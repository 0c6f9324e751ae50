/* SPDX-License-Identifier: MIT */
#include "clocks.h"
#include "pssread.h"
#include "series.h"

#define PATIENCE_NS (20 * NSEC_PER_MSEC) /* then a worker is replaced */
#define STALL_NS NSEC_PER_SEC		 /* then a process counts as stuck */

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

	for (size_t i = 0; i < m->tab.n_views; i++)
		p->place[i] = m->moving_to[i];
	series_join(m, p);
	p->flags &= ~(uint32_t)(PROC_NEW | PROC_RENAMED);
	m->moving = false;
}

/* What it does there is read from now on. */
static void sample_for(struct monitor *m, struct proc_entry *e,
		       metric_mask wanted)
{
	const struct proc *p = e->proc;

	/* What was read for the groups that it leaves need not be again. */
	if (!(p->flags & PROC_NEW))
		wanted &= ~p->have;
	if (wanted && proctab_look_again(&m->tab, e) == 0)
		proctab_sample(&m->tab, e, wanted, &m->growth);
}

/* To the places that m->moving_to says. */
static void move(struct monitor *m, struct proc_entry *e)
{
	struct proc *p = e->proc;
	bool is_new = p->flags & PROC_NEW;
	bool is_born = is_new && p->flags & PROC_BORN;
	metric_mask known, wanted = 0;

	m->moving = true;
	for (size_t i = 0; i < m->tab.n_views; i++)
		if (m->moving_to[i].group)
			wanted |= m->moving_to[i].group->wanted;
	/* What it does where it is not read is nobody's growth later. */
	proctab_forget(&m->tab, p, wanted);
	for (size_t i = 0; i < m->tab.n_views; i++) {
		struct group *g = m->moving_to[i].group;

		if (g && g != p->place[i].group)
			welcome(m, p, g);
	}
	sample_for(m, e, wanted);
	known = p->have & m->tab.counters & ~m->growth.rows;
	monitor_end_move(m);
	cgroupread_join(m, e);
	monitor_count(m, p, &m->growth);
	/* What was counted as welcome is its own, too. */
	m->growth.rows = is_born ? known : 0;
	memcpy(m->growth.by, p->value,
	       m->tab.n_values * sizeof(m->growth.by[0]));
	series_count(p, &m->growth);
	m->growth.rows = 0;
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

/* Asks the rules about one that has to be asked about, and moves it. */
static bool ask_rules(struct monitor *m, struct proc_entry *e,
		      const struct answer *answer, enum when when)
{
	struct proc *p = e->proc;
	struct placing pl;
	int r;

	classify(&m->classifier, e, answer, when == NOW_ANYHOW, &pl);
	if (pl.lost) {
		if (pl.lost != PROC_GONE)
			place_later(m, e, pl.lost);
		return true;
	}
	if (pl.pending && when == NOW_IF_SURE)
		return false;
	r = monitor_find_places(m, p, &pl, m->moving_to);
	p->flags &= ~(uint32_t)PROC_MAY_MOVE;
	if (pl.may_move)
		p->flags |= PROC_MAY_MOVE;
	if (r == 0)
		move(m, e);
	if (r < 0 || pl.unsure)
		place_later(m, e, r < 0 ? r : 0);
	return true;
}

/* Returns false if the process waits for an answer, or for an ancestor. */
static bool place_one(struct monitor *m, struct proc_entry *e,
		      const struct answer *answer, enum when when)
{
	struct proc *p = e->proc;
	bool done = true;

	if (p->flags & (PROC_IS_GONE | PROC_HANGS))
		return true;
	m->reading = e;
	m->classifier.entry = NULL;
	if (answer || p->flags & (PROC_NEW | PROC_RENAMED)) {
		p->flags &= ~(uint32_t)PROC_TRAITS_KNOWN;
		done = ask_rules(m, e, answer, when);
	}
	/* A command line that was joined once must not be joined again. */
	if (p->flags & PROC_WANTS_TRAITS ||
	    (p->traits && !(p->flags & PROC_TRAITS_KNOWN))) {
		done &= classify_traits(&m->classifier, e, when == NOW_ANYHOW);
		if (m->classifier.lost && m->classifier.lost != PROC_GONE)
			proctab_try_again(&m->tab, e, m->classifier.lost);
	}
	proctab_leave(&m->tab, p);
	return done;
}

static void note_stall(void *arg, const struct lane_job *job)
{
	struct monitor *m = arg;
	const struct answer *a = (const struct answer *)job;

	_Static_assert(offsetof(struct answer, job) == 0, "same address");
	if (m->n_stalls < STALLS_MAX)
		m->stall[m->n_stalls++] =
		    (struct stall){a->pid, a->start, answer_is_cmdline(a)};
}

/* A process that keeps its reader waiting is asked nothing else meanwhile. */
static void watch_stalls(struct monitor *m)
{
	m->n_stalls = 0;
	lane_watch(m->classifier.lane, STALL_NS, note_stall, m);
	for (size_t i = 0; i < m->n_stalls; i++) {
		struct proc_entry *e =
		    proctab_find(&m->tab, m->stall[i].pid, m->stall[i].start);

		/* It is one that is stuck, however many read of it. */
		if (e && e->proc->flags & PROC_IS_STALLED)
			continue;
		m->self.stalls++;
		if (!e)
			continue;
		e->proc->flags |= PROC_IS_STALLED;
		monitor_tell(m, MONITOR_WARNING,
			     "process %d (%s) keeps whoever reads its %s "
			     "waiting; it %s, and its other values go on",
			     (int)e->pid, proc_comm(e->proc),
			     m->stall[i].cmdline ? "command line"
						 : "memory map",
			     m->stall[i].cmdline ? "is grouped without"
						 : "has the PSS that it had");
	}
}

void monitor_take_answers(struct monitor *m)
{
	struct answer **last = &m->answers, *a;

	while (*last)
		last = &(*last)->next;
	while ((a = classifier_take(&m->classifier))) {
		struct proc_entry *e = proctab_find(&m->tab, a->pid, a->start);

		/* Its memory map is free: all that is asked is answered. */
		if (e)
			e->proc->flags &= ~(uint32_t)PROC_IS_STALLED;
		if (e && answer_is_cmdline(a))
			e->proc->flags |= PROC_IS_ANSWERED;
		a->next = NULL;
		*last = a;
		last = &a->next;
	}
}

/* Each is on the list once at most; so there is room for all. */
static void queue(struct monitor *m, uint32_t i)
{
	struct proc *p = m->tab.entry[i].proc;

	if (p->flags & PROC_IS_QUEUED || m->n_waiting == m->waiting_cap)
		return;
	p->flags |= PROC_IS_QUEUED;
	m->waiting[m->n_waiting++] = i;
}

static uint32_t unqueue(struct monitor *m)
{
	uint32_t i = m->waiting[m->at++];

	m->tab.entry[i].proc->flags &= ~(uint32_t)PROC_IS_QUEUED;
	return i;
}

/* Those whose traits somebody asked for meanwhile: they come behind. */
static void queue_wanted(struct monitor *m)
{
	struct classifier *c = &m->classifier;

	for (size_t i = 0; i < c->n_want; i++)
		queue(m, c->want[i]);
	c->n_want = 0;
}

void monitor_drop_answer(struct monitor *m, struct proc_entry *e)
{
	if (e && m->answer)
		e->proc->flags &= ~(uint32_t)(PROC_AWAITS | PROC_IS_ANSWERED);
	classifier_put(&m->classifier, m->answer);
	m->answer = NULL;
}

/* Those whose answers came. Returns whether anybody was placed. */
static bool place_answered(struct monitor *m, enum when when)
{
	bool further = false;

	while ((m->answer = m->answers)) {
		struct proc_entry *e =
		    proctab_find(&m->tab, m->answer->pid, m->answer->start);

		m->answers = m->answer->next;
		if (!answer_is_cmdline(m->answer)) {
			pssread_take(m, e ? e->proc : NULL, m->answer);
			classifier_put(&m->classifier, m->answer);
			m->answer = NULL;
			continue;
		}
		if (e && !place_one(m, e, m->answer, when)) {
			m->answer->next = m->held_answers;
			m->held_answers = m->answer;
		} else {
			further = true;
			m->is_passed |= e && e->proc->flags & PROC_IS_PASSED;
			monitor_drop_answer(m, e);
		}
		m->answer = NULL;
		queue_wanted(m);
	}
	m->answers = m->held_answers;
	m->held_answers = NULL;
	return further;
}

static bool was_passed(const struct proc *p)
{
	return p->flags & PROC_IS_PASSED && !(p->flags & PROC_AWAITS);
}

/* Is one whose answer came among those it comes from? */
static bool is_below_passed(struct monitor *m, const struct proc *p)
{
	for (unsigned i = 0; i < INHERIT_STEPS_MAX; i++) {
		const struct proc_entry *e = proctab_parent(&m->tab, p);

		if (!e)
			return false;
		p = e->proc;
		if (was_passed(p))
			return true;
	}
	return false;
}

/* Who went without an answer that has come is asked again. */
static void ask_passers(struct monitor *m, enum when when)
{
	if (!m->is_passed)
		return;
	m->is_passed = false;
	for (size_t i = 0; i < m->tab.n_procs; i++) {
		struct proc_entry *e = &m->tab.entry[i];

		if (!is_below_passed(m, e->proc))
			continue;
		e->proc->flags |= PROC_RENAMED;
		if (when == NOW_ANYHOW)
			proctab_try_again(&m->tab, e, 0);
		else
			queue(m, (uint32_t)i);
	}
	for (size_t i = 0; i < m->tab.n_procs; i++)
		if (was_passed(m->tab.entry[i].proc))
			m->tab.entry[i].proc->flags &=
			    ~(uint32_t)PROC_IS_PASSED;
}

static void place_fresh(struct monitor *m)
{
	while (m->at < m->n_fresh) {
		uint32_t i = m->fresh[m->at++];

		if (!place_one(m, &m->tab.entry[i], NULL, NOW_IF_SURE))
			queue(m, i);
		queue_wanted(m);
	}
}

/* Those who waited for somebody else. Returns whether anybody was placed. */
static bool place_waiting(struct monitor *m)
{
	bool further = false;

	while (m->at < m->n_waiting) {
		uint32_t i = unqueue(m);
		struct proc_entry *e = &m->tab.entry[i];

		if (!(e->proc->flags & PROC_AWAITS) &&
		    place_one(m, e, NULL, NOW_IF_SURE)) {
			further = true;
		} else {
			e->proc->flags |= PROC_IS_QUEUED;
			m->waiting[m->n_kept++] = i;
		}
		queue_wanted(m);
	}
	m->n_waiting = m->n_kept;
	m->at = m->n_kept = 0;
	return further;
}

/* Until nobody gets any further. */
static void place_again(struct monitor *m)
{
	bool further;

	do {
		further = place_answered(m, NOW_IF_SURE);
		ask_passers(m, NOW_IF_SURE);
		further |= place_waiting(m);
	} while (further && (m->n_waiting || m->answers));
}

/*
 * One that has a group stays there until its answer comes. Those whose answers
 * are there still wait for one of the others.
 */
static void place_anyhow(struct monitor *m)
{
	while (m->at < m->n_waiting) {
		struct proc_entry *e = &m->tab.entry[unqueue(m)];

		if (!(e->proc->flags & PROC_AWAITS) ||
		    (e->proc->flags & PROC_NEW &&
		     !(e->proc->flags & PROC_IS_ANSWERED)))
			place_one(m, e, NULL, NOW_ANYHOW);
	}
	place_answered(m, NOW_ANYHOW);
	ask_passers(m, NOW_ANYHOW);
}

static void begin_placing(struct monitor *m)
{
	m->classifier.now = m->now;
	m->classifier.n_want = 0;
	watch_stalls(m);
	m->n_waiting = 0;
	if (array_reserve(&m->waiting, &m->waiting_cap, m->tab.n_procs,
			  sizeof(*m->waiting)) == 0)
		return;
	for (size_t i = 0; i < m->n_fresh; i++)
		place_later(m, &m->tab.entry[m->fresh[i]], -ENOMEM);
	m->n_fresh = 0;
}

void monitor_place(struct monitor *m)
{
	if (m->step == STEP_PLACE) {
		begin_placing(m);
		m->step = STEP_PLACE_EARLY;
	}
	if (m->step == STEP_PLACE_EARLY) {
		monitor_take_answers(m);
		m->at = 0;
		m->step = STEP_PLACE_FRESH;
	}
	if (m->step == STEP_PLACE_FRESH) {
		place_fresh(m);
		m->at = m->n_kept = 0;
		m->step = STEP_PLACE_AGAIN;
	}
	if (m->step == STEP_PLACE_AGAIN) {
		place_again(m);
		m->step = m->n_waiting ? STEP_PLACE_WAIT : STEP_PLACE_ANYHOW;
	}
	if (m->step == STEP_PLACE_WAIT) {
		uint64_t begun_ns = clocks_read(CLOCK_MONOTONIC);

		lane_wait(m->classifier.lane, MONITOR_WAIT_NS, PATIENCE_NS);
		m->waited_ns += clocks_read(CLOCK_MONOTONIC) - begun_ns;
		monitor_take_answers(m);
		m->step = STEP_PLACE_LAST;
	}
	if (m->step == STEP_PLACE_LAST) {
		place_again(m);
		m->step = STEP_PLACE_ANYHOW;
	}
	if (m->step == STEP_PLACE_ANYHOW) {
		place_anyhow(m);
		m->step = STEP_DONE;
	}
	m->reading = NULL;
}
