/* SPDX-License-Identifier: MIT */
#include "classify-internal.h"
#include "cgroup.h"

#include <fcntl.h>

enum {
	TEXT_SIZE = 16 * 1024, /* a cgroup file, an exe path, one argument */
	ANSWER_SIZE = 4096, /* longer command lines take more than one read */
	SPARE_MAX = 64,	    /* answers that are kept for later */
	SPARE_BARE_MAX = 4096, /* as many as smaps are read in a tick */
};

static void fetch(struct subject *s, enum subject_source source);

static void push(struct answers *list, struct answer *a)
{
	a->next = list->first;
	list->first = a;
	list->n++;
}

static struct answer *pop(struct answers *list)
{
	struct answer *a = list->first;

	if (a) {
		list->first = a->next;
		list->n--;
	}
	return a;
}

static void answer_free(struct answer *a)
{
	free(a->text);
	free(a);
}

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
	struct answer *a;

	/* A stuck worker may still use the root: then it stays open. */
	if (lane_close(c->lane))
		base_closep(&c->lane_root_fd);
	users_free(c->users);
	users_free(c->user_groups);
	while ((a = pop(&c->spare)) || (a = pop(&c->spare_bare)))
		answer_free(a);
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

static struct answer *answer_of(struct lane_job *job)
{
	return (struct answer *)((char *)job - offsetof(struct answer, job));
}

static void answer_release(struct lane_job *job)
{
	answer_free(answer_of(job));
}

/* In the worker. */
static void answer_run(struct lane_job *job)
{
	struct answer *a = answer_of(job);

	a->run(a);
}

/* Room for n bytes of text; an answer that is used again may have it. */
static int answer_room(struct answer *a, size_t n)
{
	char *text;

	if (n <= a->size)
		return 0;
	text = realloc(a->text, n);
	if (!text)
		return -ENOMEM;
	a->text = text;
	a->size = n;
	return 0;
}

/* One that is longer: into a buffer that grows as far as it has to. */
static int read_long_cmdline(struct answer *a)
{
	size_t size = ANSWER_SIZE;

	do {
		int r;

		size = MIN(size * 4, a->max);
		r = answer_room(a, size);
		if (r == 0)
			r = procfs_read_cmdline(a->root_fd, a->pid, a->live_tid,
						a->text, size, &a->n);
		if (r)
			return r;
	} while (a->n == size && size < a->max);
	return 0;
}

/* In the worker. Most are short, and many may be on their way. */
static void read_cmdline(struct answer *a)
{
	char buf[ANSWER_SIZE];
	size_t size = MIN(sizeof(buf), a->max);

	a->result = procfs_read_cmdline(a->root_fd, a->pid, a->live_tid, buf,
					size, &a->n);
	if (a->result == 0 && a->n == size && size < a->max) {
		a->result = read_long_cmdline(a);
		return;
	}
	if (a->result == 0)
		a->result = answer_room(a, a->n);
	if (a->result == 0 && a->n)
		memcpy(a->text, buf, a->n);
}

bool answer_is_cmdline(const struct answer *a)
{
	return a->run == read_cmdline;
}

struct answer *classifier_take(struct classifier *c)
{
	struct lane_job *job = lane_take(c->lane);

	return job ? answer_of(job) : NULL;
}

void classifier_put(struct classifier *c, struct answer *a)
{
	if (!a)
		return;
	if (!answer_is_cmdline(a) && c->spare_bare.n < SPARE_BARE_MAX)
		push(&c->spare_bare, a);
	else if (answer_is_cmdline(a) && c->spare.n < SPARE_MAX &&
		 a->size <= ANSWER_SIZE)
		push(&c->spare, a);
	else
		answer_free(a);
}

/* One that is not used now, from this list if there is any. */
static struct answer *begin_answer(struct classifier *c, struct answers *list,
				   const struct proc *p)
{
	struct answer *a = pop(list);

	if (!a)
		a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	*a = (struct answer){
	    .job = {.run = answer_run, .release = answer_release},
	    .root_fd = c->lane_root_fd,
	    .pid = p->at.pid,
	    .live_tid = p->at.live_tid,
	    .start = p->start,
	    .text = a->text,
	    .size = a->size,
	};
	return a;
}

struct answer *classifier_new_answer(struct classifier *c, const struct proc *p)
{
	return begin_answer(c, &c->spare_bare, p);
}

int classifier_submit(struct classifier *c, struct answer *a)
{
	int r = lane_submit(c->lane, &a->job);

	if (r < 0)
		classifier_put(c, a);
	return r;
}

static int ask_cmdline(struct classifier *c, struct proc *p)
{
	struct answer *a = begin_answer(c, &c->spare, p);
	int r;

	if (!a)
		return -ENOMEM;
	a->run = read_cmdline;
	a->max = c->rules->limits.cmdline;
	r = classifier_submit(c, a);
	if (r == 0)
		p->flags |= PROC_AWAITS;
	return r;
}

static void mark(struct subject *s, enum subject_source source, int r)
{
	struct classifier *c = s->arg;

	c->outcome[source] = r;
	c->unsure |= procfs_is_transient(r);
	if (r == PROC_DENIED)
		c->denied |= SUBJECT_BIT(source);
	if (r == 0)
		s->have |= SUBJECT_BIT(source);
	else
		s->absent |= SUBJECT_BIT(source);
}

/*
 * Some time has passed since the process was looked at: what is read now must
 * be of the same one.
 */
static int enter(struct classifier *c)
{
	if (!c->entered)
		c->lost = proctab_look_again(c->tab, c->entry);
	c->entered = true;
	return c->lost;
}

static void fetch_owner(struct classifier *c, struct subject *s)
{
	int r = enter(c);

	if (r == 0)
		r = procfs_owner(c->fs, &c->proc->at, &s->uid, &s->gid);
	if (r == 0) {
		s->user =
		    users_name(c->users, s->uid, c->user, sizeof(c->user));
		s->group = users_name(c->user_groups, s->gid, c->group,
				      sizeof(c->group));
		c->proc->uid = s->uid;
		c->proc->gid = s->gid;
		c->proc->flags |= PROC_UID_KNOWN;
	}
	mark(s, SUBJECT_OWNER, r);
}

/*
 * Keeps what was read while something else is: in a buffer that is there from
 * the first time on that a rule wants such a text. Returns 0 or -ENOMEM.
 */
static int keep_text(struct classifier *c, enum classify_text which,
		     size_t size, struct str *text)
{
	struct text_buffer *buf = &c->text[which];

	if (buf->size < size) {
		char *s = realloc(buf->s, size);

		if (!s)
			return -ENOMEM;
		*buf = (struct text_buffer){s, size};
	}
	text->n = MIN(text->n, size);
	if (text->n)
		memcpy(buf->s, text->s, text->n);
	text->s = buf->s;
	return 0;
}

static void fetch_cgroup(struct classifier *c, struct subject *s)
{
	struct cgroup_names names;
	struct str text;
	int r = enter(c);

	if (r == 0)
		r = procfs_read(c->fs, &c->proc->at, PROCFS_CGROUP, &text);
	if (r == 0) {
		c->proc->cgroup_hash = (uint32_t)hash_bytes(text);
		c->proc->flags |= PROC_CGROUP_KNOWN;
		r = keep_text(c, TEXT_CGROUP, TEXT_SIZE, &text);
	}
	if (r == 0) {
		s->cgroup_file = text;
		r = cgroup_parse(text, &names);
	}
	if (r == 0) {
		s->cgroup = names.path;
		s->unit = names.unit;
		s->slice = names.slice;
		s->container = names.container;
		s->pod = names.pod;
	}
	mark(s, SUBJECT_CGROUP, r);
}

static void fetch_exe(struct classifier *c, struct subject *s)
{
	uint64_t dev, inode;
	struct str text;
	int r = enter(c);

	if (r == 0)
		r = procfs_exe(c->fs, &c->proc->at, &text);
	if (r == 0)
		r = keep_text(c, TEXT_EXE, TEXT_SIZE, &text);
	if (r == 0)
		s->exe_path = text;
	if (r == 0 && c->exes &&
	    procfs_exe_file(c->fs, &c->proc->at, &dev, &inode) == 0)
		exepath_learn(c->exes, dev, inode, text);
	mark(s, SUBJECT_EXE, r);
}

static void fetch_cmdline(struct classifier *c, struct subject *s)
{
	struct proc *p = c->proc;
	int r = 0;

	/* Kernel threads and zombies have none: an empty one, not unknown. */
	if (p->flags & PROC_KERNEL || p->state == 'Z' || p->state == 'X') {
		s->cmdline = s->argv0 = s->exe = s->script = STR("");
		s->have |= SUBJECT_BIT(SUBJECT_CMDLINE);
	} else if (!(p->flags & PROC_IS_STALLED) &&
		   (p->flags & PROC_AWAITS || (r = ask_cmdline(c, p)) == 0)) {
		s->pending |= SUBJECT_BIT(SUBJECT_CMDLINE);
	} else {
		c->outcome[SUBJECT_CMDLINE] = r;
		c->unsure |= procfs_is_transient(r);
		s->absent |= SUBJECT_BIT(SUBJECT_CMDLINE);
	}
}

static void fetch(struct subject *s, enum subject_source source)
{
	struct classifier *c = s->arg;

	switch (source) {
	case SUBJECT_STAT: /* is there from the beginning */
	case SUBJECT_N:
		break;
	case SUBJECT_KIN:
		classify_fetch_kin(c, s);
		break;
	case SUBJECT_OWNER:
		fetch_owner(c, s);
		break;
	case SUBJECT_CGROUP:
		fetch_cgroup(c, s);
		break;
	case SUBJECT_EXE:
		fetch_exe(c, s);
		break;
	case SUBJECT_CMDLINE:
		fetch_cmdline(c, s);
		break;
	}
}

/* The answer stays as it is: it may have to be used again. */
static void take_answer(struct classifier *c, const struct answer *a)
{
	struct subject *s = &c->subject;
	struct str text = {a->text, a->n}, argv0 = STR("");
	int r = a->result;

	if (r == 0)
		r = keep_text(c, TEXT_CMDLINE, c->rules->limits.cmdline, &text);
	if (r == 0)
		r = keep_text(c, TEXT_ARGV0, TEXT_SIZE, &argv0);
	if (r == 0)
		subject_set_cmdline(s, c->text[TEXT_CMDLINE].s, text.n,
				    c->text[TEXT_ARGV0].s, TEXT_SIZE);
	ruleset_check_script(c->rules, s);
	mark(s, SUBJECT_CMDLINE, r);
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
	    .fetch = fetch,
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
		take_answer(c, answer);
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
