/* SPDX-License-Identifier: MIT */
#include "delayread.h"
#include "pssread.h"
#include "series.h"

#include <sys/stat.h>

enum {
	TELL_MAX = 20, /* messages of one file that are told */
};

/* Returns 0; or a negative errno that says nothing of the file. */
static int look_at(const char *path, struct file_mark *ret)
{
	struct stat st;

	*ret = (struct file_mark){0};
	if (stat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES
			   ? 0
			   : -errno;
	*ret = (struct file_mark){
	    .dev = st.st_dev,
	    .ino = st.st_ino,
	    .size = st.st_size,
	    .ctime = st.st_ctim,
	    .there = true,
	};
	return 0;
}

static bool is_same_file(const struct file_mark *a, const struct file_mark *b)
{
	return a->there == b->there && a->dev == b->dev && a->ino == b->ino &&
	       a->size == b->size && a->ctime.tv_sec == b->ctime.tv_sec &&
	       a->ctime.tv_nsec == b->ctime.tv_nsec;
}

static void tell_diag(struct monitor *m, const struct diag *d)
{
	char text[sizeof(m->event[0].text)];

	for (size_t i = 0; i < d->n_msgs && i < TELL_MAX; i++) {
		enum diag_level level = d->msg[i].level;

		diag_format(d, i, text, sizeof(text));
		monitor_tell(m,
			     level == DIAG_ERROR     ? MONITOR_ERROR
			     : level == DIAG_WARNING ? MONITOR_WARNING
						     : MONITOR_INFO,
			     "%s", text);
	}
	if (d->n_msgs > TELL_MAX || d->n_dropped)
		monitor_tell(m, MONITOR_INFO,
			     "%s: and more; \"proctally check\" shows all",
			     d->file);
}

/* One that needs no member to be told of; false if memory is out. */
static bool add_static(struct monitor *m, const struct name *n,
		       collect_mask collect)
{
	struct name_result name;
	struct group *g;

	if (!n || !name_is_static(n))
		return true;
	monitor_static_name(n, &name);
	g = groups_get(&m->groups, name.text, collect);
	if (!g)
		return false;
	if (g->is_series)
		series_yield(m, g);
	g->is_static = true;
	return true;
}

/*
 * Groups with a name of their own are there before their first member; one
 * for which there was no memory is added in a later tick.
 */
static void add_static_groups(struct monitor *m)
{
	struct ruleset *rs = m->rules;
	bool all = true;

	for (size_t i = 0; i < m->groups.n_groups; i++)
		m->groups.group[i]->is_static = false;
	for (size_t i = 0; i < rs->n_rules; i++)
		all &= add_static(m, rs->rule[i].name, rs->rule[i].collect);
	for (size_t i = 0; i < rs->n_views; i++)
		all &= add_static(m, rs->view[i].other, rs->view[i].collect);
	m->lacks_groups = !all;
}

static bool is_same_rule(const struct rule *a, const struct rule *b)
{
	if (a->name && b->name)
		return str_eq(name_template(a->name), name_template(b->name));
	return a->action == b->action && a->hash == b->hash;
}

/* By the number that each old rule had, that of the same one now, or 0. */
static uint32_t *number_rules(const struct ruleset *old,
			      const struct ruleset *rs)
{
	size_t n_old = old ? old->n_rules : 0, at = 0;
	uint32_t *number = calloc(n_old + 1, sizeof(*number));

	/* Most stand where they stood: behind the one before. */
	for (size_t i = 0; number && i < n_old; i++)
		for (size_t n = 0; n < rs->n_rules; n++, at++) {
			at %= rs->n_rules;
			if (!is_same_rule(&old->rule[i], &rs->rule[at]))
				continue;
			number[i + 1] = (uint32_t)++at;
			break;
		}
	return number;
}

/*
 * What is collected of a group is what the new rules say as soon as they are
 * asked; until then it is what the old ones said.
 */
static void age_groups(struct monitor *m, const uint32_t *number)
{
	for (size_t i = 0; i < m->groups.n_groups; i++) {
		struct group *g = m->groups.group[i];

		g->is_stale = true;
		g->raw_hash = 0;
		g->rule = number[g->rule];
		g->told_merged = false;
	}
}

static bool is_same_view(const struct rule_view *a, const struct rule_view *b)
{
	return a->name && b->name ? strcmp(a->name, b->name) == 0
				  : a->name == b->name;
}

/* These are read, and take room in each process, only for who collects them. */
static bool is_kept(const struct ruleset *rs, const struct metric *row)
{
	switch (row->source) {
	case SOURCE_FDS:
	case SOURCE_LIMITS:
	case SOURCE_TASKS:
	case SOURCE_DELAY:
		return ruleset_collects(rs, row->collect);
	default:
		return true;
	}
}

static size_t rows_kept(const struct ruleset *rs)
{
	size_t n = METRIC_N_STORED;

	while (!is_kept(rs, &metrics[n - 1]))
		n--;
	return n;
}

/* Processes stay where they are in views that stay. */
static int adopt_views(struct monitor *m, const struct ruleset *rs)
{
	int from[RULE_VIEWS_MAX], r;

	for (size_t i = 0; i < rs->n_views; i++) {
		from[i] = -1;
		for (size_t j = 0; m->rules && j < m->rules->n_views; j++)
			if (is_same_view(&rs->view[i], &m->rules->view[j]))
				from[i] = (int)j;
	}
	r = proctab_set_views(&m->tab, rs->n_views, from, rows_kept(rs));
	for (size_t i = 0; r == 0 && i < m->tab.n_procs; i++)
		series_remap(m->tab.entry[i].proc, rs->n_views, from);
	for (size_t i = 0; r == 0 && i < m->tab.n_left; i++)
		if (m->tab.left[i].proc)
			series_remap(m->tab.left[i].proc, rs->n_views, from);
	return r;
}

/* What was learned of a process by the old rules. */
static void forget_rules_of(struct monitor *m, struct proc *p,
			    const uint32_t *number)
{
	p->flags &= ~(uint32_t)(PROC_TRAITS_KNOWN | PROC_WANTS_TRAITS);
	free(p->traits);
	p->traits = NULL;
	for (size_t v = 0; v < m->tab.n_views; v++) {
		p->place[v].rule = number[p->place[v].rule];
		p->place[v].overflow = false;
	}
}

static void forget_rules(struct monitor *m, const uint32_t *number)
{
	for (size_t i = 0; i < m->tab.n_procs; i++)
		forget_rules_of(m, m->tab.entry[i].proc, number);
	for (size_t i = 0; i < m->tab.n_left; i++)
		if (m->tab.left[i].proc)
			forget_rules_of(m, m->tab.left[i].proc, number);
}

/* Every process is asked about again, its counters go on. */
static int adopt(struct monitor *m, struct ruleset *rs)
{
	_cleanup_free_ uint32_t *number = number_rules(m->rules, rs);
	_cleanup_free_ struct file_seen *seen = classifier_prepare(rs);
	int r = number && seen ? adopt_views(m, rs) : -ENOMEM;

	if (r < 0)
		return r;
	classifier_adopt(&m->classifier, rs, steal_ptr(seen));
	forget_rules(m, number);
	ruleset_free(m->rules);
	m->rules = rs;
	m->tab.opt = (struct proctab_options){
	    .gate = rs->gate,
	    .refresh_ns = rs->refresh_ns,
	    .owner = rs->sources & SUBJECT_BIT(SUBJECT_OWNER),
	    .cgroup = rs->sources & SUBJECT_BIT(SUBJECT_CGROUP) ||
		      ruleset_collects(rs, COLLECT_CGROUP),
	    .recheck_ns = rs->recheck_ns,
	};
	pssread_adopt(m);
	m->exits.was_tried = false;
	cgroupread_adopt(m);
	delayread_adopt(m);
	keptfd_want(&m->fs.kept, !rs->limits.kept_fds_set, rs->limits.kept_fds);
	age_groups(m, number);
	add_static_groups(m);
	proctab_ask_again(&m->tab);
	m->told.groups = false;
	return 0;
}

/* Loads and adopts them; returns what rulefile_load() does. */
static int load(struct monitor *m, bool tells)
{
	struct ruleset *rs = NULL;
	struct diag d;
	int r;

	diag_init(&d, m->rules_path);
	r = rulefile_load(m->rules_path, &d, &rs);
	if (r == 0 || tells)
		tell_diag(m, &d);
	diag_done(&d);
	if (r == 0) {
		r = adopt(m, rs);
		if (r < 0)
			ruleset_free(rs);
	}
	return r;
}

void monitor_reload(struct monitor *m)
{
	struct file_mark mark;
	int r = look_at(m->rules_path, &mark);
	bool is_other = r == 0 && !is_same_file(&mark, &m->rules_mark), tells;

	if (m->lacks_groups)
		add_static_groups(m);
	if (m->rules_looked && !is_other)
		return;
	/* One that cannot be read is tried again, and told of once. */
	tells = is_other || !m->rules_missed;
	r = load(m, tells);
	if (is_other)
		m->rules_mark = mark;
	m->self.rules_ok = r == 0;
	m->rules_missed = r < 0 && r != -EINVAL;
	m->rules_looked = !m->rules_missed;
	if (r == 0) {
		m->self.rules_generation++;
		monitor_tell(m, MONITOR_INFO, "%s: %zu rules in use",
			     m->rules_path, m->rules->n_rules);
	} else if (tells) {
		monitor_tell(m, MONITOR_ERROR, "%s: not used%s", m->rules_path,
			     m->rules
				 ? "; the rules before it go on"
				 : "; nothing is collected until it can be");
	}
}
