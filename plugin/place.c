/* SPDX-License-Identifier: MIT */
#include "clocks.h"
#include "pssread.h"
#include "series.h"

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

/* Notes that a rule makes more groups than it may, and tells so once. */
static void note_overflow(struct monitor *m, struct rule *rule,
			  const char *name, const struct group *instead)
{
	m->self.groups_refused++;
	if (!rule->told_overflow && instead)
		monitor_tell(m, MONITOR_WARNING,
			     "%s:%u:%u: more than max_groups (%u) groups from "
			     "this rule: \"%s\" and further ones are counted "
			     "in \"%s\"",
			     m->rules_path, rule->line, rule->column,
			     rule->max_groups, name, instead->name);
	rule->told_overflow = true;
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

/* Groups that a rule made, this one's overflow not among them. */
static unsigned count_groups(const struct monitor *m, uint32_t rule)
{
	unsigned n = 0;

	for (size_t i = 0; i < m->groups.n_groups; i++)
		n += m->groups.group[i]->rule == rule;
	return n;
}

/* The number of a rule as places and groups have it; 0 for none. */
static uint32_t rule_number(const struct monitor *m, const struct rule *rule)
{
	return rule ? (uint32_t)(rule - m->rules->rule) + 1 : 0;
}

/* The group with a fixed name; NULL if there is none or no memory. */
static struct group *static_group(struct monitor *m, const struct name *n,
				  collect_mask collect)
{
	struct name_result name;
	struct group *g;

	if (!n)
		return NULL;
	monitor_static_name(n, &name);
	g = groups_get(&m->groups, name.text, collect);
	if (g && g->is_series)
		series_yield(m, g);
	return g;
}

/*
 * A name that is not there yet, or is one too many: of its rule's or in all.
 * Sets *ret to what it is counted in; that is NULL where there is nothing.
 */
static int make_group(struct monitor *m, size_t view,
		      const struct placing_in *in, struct proc_place *ret)
{
	const struct ruleset *rs = m->rules;
	const struct name *other = rs->view[view].other;

	if (in->rule && in->rule->overflow &&
	    count_groups(m, ret->rule) >= in->rule->max_groups) {
		ret->overflow = true;
		ret->group = static_group(m, in->rule->overflow, in->collect);
		note_overflow(m, &m->rules->rule[ret->rule - 1], in->name.text,
			      ret->group);
		return ret->group ? 0 : -ENOMEM;
	}
	if (m->groups.n_groups >= rs->limits.groups) {
		ret->group = static_group(m, other, rs->view[view].collect);
		refuse_group(m, in->name.text,
			     ret->group ? ret->group->name : NULL);
		return other && !ret->group ? -ENOMEM : 0;
	}
	ret->group = groups_get(&m->groups, in->name.text, in->collect);
	return ret->group ? 0 : -ENOMEM;
}

void monitor_keep_to_view(const struct monitor *m, size_t view,
			  struct placing_in *in)
{
	if (in->kind != PLACING_NAME || m->rules->view[view].name ||
	    !ruleset_view_of_name(m->rules, str_of(in->name.text)))
		return;
	*strchr(in->name.text, '.') = '_';
	in->name.cleaned = true;
}

/* Nor do a group and a series, whose number is behind a dot or in a hash. */
static void keep_from_series(struct monitor *m, struct placing_in *in)
{
	const struct group *g;
	char *mark;

	if (in->kind != PLACING_NAME)
		return;
	g = groups_find(&m->groups, in->name.text);
	if (!g || !g->is_series)
		return;
	mark = strpbrk(in->name.text, ".~");
	if (mark)
		*mark = '_';
	in->name.cleaned = true;
}

/* In which group of a view a process is from now on. Returns 0 or -ENOMEM. */
static int find_place(struct monitor *m, const struct proc *p, size_t view,
		      const struct placing_in *in, struct proc_place *ret)
{
	const struct proc_place *now = &p->place[view];

	if (in->kind == PLACING_KEEP) {
		*ret = *now;
		if (now->group && now->group->is_stale)
			groups_get(&m->groups, now->group->name,
				   m->rules->rule[now->rule - 1].collect);
		return 0;
	}
	*ret = (struct proc_place){
	    .rule = rule_number(m, in->rule),
	    .heritage = in->heritage,
	};
	if (in->kind == PLACING_DROP)
		return 0;
	if (in->kind == PLACING_HEIR) {
		ret->group = in->group;
		return 0;
	}
	/* What was one too many stays where it is while it lives. */
	if (now->overflow && now->group && now->rule == ret->rule) {
		ret->group = now->group;
		ret->overflow = true;
		return 0;
	}
	if (groups_find(&m->groups, in->name.text)) {
		ret->group = groups_get(&m->groups, in->name.text, in->collect);
	} else {
		int r = make_group(m, view, in, ret);

		if (r < 0 || !ret->group ||
		    strcmp(ret->group->name, in->name.text) != 0)
			return r;
	}
	if (in->rule && in->rule->overflow && !ret->group->rule)
		ret->group->rule = ret->rule;
	note_name(m, ret->group, in->name.raw_hash);
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
	monitor_count(m, p, &m->growth);
	/* What was counted as welcome is its own, too. */
	m->growth.rows = is_born ? known : 0;
	memcpy(m->growth.by, p->value, sizeof(m->growth.by));
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

int monitor_find_places(struct monitor *m, const struct proc *p,
			struct placing *pl, struct proc_place *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->tab.n_views; i++) {
		monitor_keep_to_view(m, i, &pl->in[i]);
		keep_from_series(m, &pl->in[i]);
		r = find_place(m, p, i, &pl->in[i], &ret[i]);
	}
	return r;
}

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
