/* SPDX-License-Identifier: MIT */
#include "classify-internal.h"

#include <fcntl.h>

int classifier_open(struct classifier *c, struct proctab *tab)
{
	struct procfs *fs = tab->fs;

	*c = (struct classifier){.fs = fs, .tab = tab, .lane_root_fd = -1};
	/* The users of the host whose /proc this is: beside it. */
	c->users = users_new(USERS_PASSWD, fs->root_fd, "../etc/passwd");
	c->user_groups = users_new(USERS_GROUP, fs->root_fd, "../etc/group");
	c->lane = lane_open("proctally-mm", LANE_STUCK_MAX);
	c->lane_root_fd = fcntl(fs->root_fd, F_DUPFD_CLOEXEC, 0);
	keptfd_park(&c->lane_root_fd);
	if (c->users && c->user_groups && c->lane && c->lane_root_fd >= 0)
		return 0;
	classifier_close(c);
	return -ENOMEM;
}

void classifier_close(struct classifier *c)
{
	/* A stuck worker may still use the root: then it stays open. */
	if (lane_close(c->lane))
		base_closep(&c->lane_root_fd);
	users_free(c->users);
	users_free(c->user_groups);
	classify_free_answers(c);
	free(c->pidfile_seen);
	free(c->want);
	for (size_t i = 0; i < TEXT_N; i++)
		free(c->text[i].s);
	*c = (struct classifier){.lane_root_fd = -1};
}

struct file_seen *classifier_prepare(const struct ruleset *rules)
{
	return calloc(rules->n_pidfiles + 1, sizeof(struct file_seen));
}

void classifier_adopt(struct classifier *c, struct ruleset *rules,
		      struct file_seen *prepared)
{
	free(c->pidfile_seen);
	c->pidfile_seen = prepared;
	c->rules = rules;
}

bool classifier_refresh(struct classifier *c, struct runner *runner)
{
	bool changed = classify_refresh_pidfiles(c, runner);

	if (c->rules->sources & SUBJECT_BIT(SUBJECT_OWNER)) {
		changed |= users_refresh(c->users) > 0;
		changed |= users_refresh(c->user_groups) > 0;
	}
	return changed;
}

/*
 * Seconds since the epoch at which a process started. The wall clock and the
 * time since boot are slewed alike and read one after the other, so that a
 * small difference is none, and a large one is a clock that was set.
 */
static uint64_t start_time(struct classifier *c, const struct proc *p)
{
	uint64_t hz = (uint64_t)c->fs->scale.ticks_per_second;
	int64_t ns = (int64_t)(p->start % hz * NSEC_PER_SEC / hz), s;
	int64_t booted = (int64_t)c->now.real_ns - (int64_t)c->now.boot_ns;

	if (llabs(booted - c->booted_ns) > (int64_t)NSEC_PER_SEC / 2)
		c->booted_ns = booted;
	s = (int64_t)(p->start / hz) +
	    (c->booted_ns + ns) / (int64_t)NSEC_PER_SEC;
	/* The wall clock may be behind the time since boot. */
	return s > 0 ? (uint64_t)s : 0;
}

static uint32_t start_ns(const struct classifier *c, const struct proc *p)
{
	uint64_t hz = (uint64_t)c->fs->scale.ticks_per_second;

	return (uint32_t)(p->start % hz * NSEC_PER_SEC / hz);
}

/* Counts what was refused, once for each process. */
static void count_denied(struct classifier *c)
{
	unsigned more = c->denied & ~(unsigned)c->proc->refused;

	c->proc->refused |= (uint8_t)more;
	c->n_unreadable_exe += !!(more & SUBJECT_BIT(SUBJECT_EXE));
	c->n_unreadable_cgroup += !!(more & SUBJECT_BIT(SUBJECT_CGROUP));
	c->n_unreadable_cmdline += !!(more & SUBJECT_BIT(SUBJECT_CMDLINE));
}

void classify_begin(struct classifier *c, struct proc_entry *e,
		    const struct answer *answer, bool anyhow)
{
	const struct proc *p = e->proc;

	c->subject = (struct subject){
	    .fetch = classify_fetch,
	    .arg = c,
	    .have = SUBJECT_BIT(SUBJECT_STAT),
	    .pid = p->at.pid,
	    .start_time = start_time(c, p),
	    .start_ns = start_ns(c, p),
	    .comm = str_of(proc_comm(p)),
	    .kernel = p->flags & PROC_KERNEL,
	    .find_kin = classify_find_kin,
	};
	c->entry = e;
	c->proc = e->proc;
	c->entered = false;
	c->lost = 0;
	c->unsure = c->passed_by = c->walked = false;
	c->anyhow = anyhow;
	c->record = NULL;
	c->denied = 0;
	if (answer)
		classify_take_answer(c, answer);
}

static bool inherit(struct classifier *c, size_t view, struct placing_in *ret)
{
	if (c->record)
		return c->record->inherit(c->record->arg, view, ret);
	return classify_inherit(c, view, ret);
}

/* Is something in the name that the record does not say? */
static bool is_nameless(const struct classifier *c, const struct name *name)
{
	return c->record && name_sources(name) & c->subject.absent;
}

void classify_in(struct classifier *c, size_t view, struct placing *placing)
{
	struct placing_in *ret = &placing->in[view];
	struct subject *s = &c->subject;
	const struct name *name;
	struct rule_verdict v;

	ruleset_match(c->rules, view, s, &v);
	placing->pending |= v.pending;
	*ret = (struct placing_in){.kind = PLACING_NAME, .rule = v.rule};
	if (v.action == ACTION_DROP) {
		ret->kind = PLACING_DROP;
		ret->heritage.how = HERITAGE_DROPPED;
		return;
	}
	if (v.action == ACTION_LEAVE) {
		ret->rule = NULL;
		if (inherit(c, view, ret))
			return;
	}
	if (v.action == ACTION_GROUP && is_nameless(c, v.rule->name)) {
		struct placing_in heir = {0};

		if (inherit(c, view, &heir)) {
			*ret = heir;
			return;
		}
	}
	name = v.action == ACTION_GROUP ? v.rule->name
					: c->rules->view[view].other;
	ret->heritage.how = HERITAGE_OTHER;
	ret->collect = c->rules->view[view].collect;
	ret->is_other = true;
	if (v.action == ACTION_GROUP) {
		ret->heritage.how = HERITAGE_MATCHED;
		ret->heritage.children = v.rule->children;
		ret->collect = v.rule->collect;
		ret->is_other = false;
	}
	if (!name) {
		ret->kind = PLACING_DROP;
		return;
	}
	name_expand(name, s, &v, &ret->name);
	placing->pending |= (s->pending & name_sources(name)) != 0;
}

void classify(struct classifier *c, struct proc_entry *e,
	      const struct answer *answer, bool anyhow, struct placing *ret)
{
	const unsigned told =
	    SUBJECT_BIT(SUBJECT_STAT) | SUBJECT_BIT(SUBJECT_OWNER);
	const struct subject *s = &c->subject;

	classify_begin(c, e, answer, anyhow);
	ret->pending = false;
	for (size_t i = 0; i < c->rules->n_views; i++)
		classify_in(c, i, ret);
	ret->lost = c->lost;
	ret->may_move = c->walked || (s->have | s->absent | s->pending) & ~told;
	ret->unsure = c->unsure || c->passed_by;
	ret->pending |= c->passed_by;
	if (!ret->pending)
		count_denied(c);
}

bool classify_traits(struct classifier *c, struct proc_entry *e, bool anyhow)
{
	struct rule_traits traits;
	bool sure;

	if (c->entry != e)
		classify_begin(c, e, NULL, anyhow);
	c->anyhow = anyhow;
	ruleset_traits(c->rules, &c->subject, &traits);
	sure = !traits.pending && !c->passed_by;
	if (!sure && !anyhow)
		return false;
	if (c->lost)
		return true;
	classify_set_traits(e->proc, &traits);
	if (sure) {
		e->proc->flags |= PROC_TRAITS_KNOWN;
		e->proc->flags &= ~(uint32_t)PROC_WANTS_TRAITS;
	}
	return true;
}

void classify_by_record(struct classifier *c, struct proc_entry *e,
			const struct classify_record *record,
			struct placing *ret, uint64_t *ret_traits)
{
	struct subject *s = &c->subject;
	struct rule_traits traits = {0};

	classify_begin(c, e, NULL, true);
	c->record = record;
	s->kernel = record->kernel;
	s->uid = record->uid;
	s->gid = record->gid;
	s->user = users_name(c->users, s->uid, c->user, sizeof(c->user));
	s->group =
	    users_name(c->user_groups, s->gid, c->group, sizeof(c->group));
	s->parent_traits = record->parent_traits;
	s->ancestor_traits = record->ancestor_traits;
	s->have |= SUBJECT_BIT(SUBJECT_OWNER) | SUBJECT_BIT(SUBJECT_KIN);
	s->absent |= SUBJECT_BIT(SUBJECT_CGROUP) | SUBJECT_BIT(SUBJECT_CMDLINE);
	if (record->exe_path) {
		s->exe_path = str_of(record->exe_path);
		s->have |= SUBJECT_BIT(SUBJECT_EXE);
	} else {
		s->absent |= SUBJECT_BIT(SUBJECT_EXE);
	}
	*ret = (struct placing){0};
	for (size_t i = 0; i < c->rules->n_views; i++)
		classify_in(c, i, ret);
	if (c->rules->n_kin)
		ruleset_traits(c->rules, s, &traits);
	*ret_traits = traits.holds;
}
