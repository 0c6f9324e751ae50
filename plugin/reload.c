/* SPDX-License-Identifier: MIT */
#include "monitor-internal.h"

#include <sys/stat.h>

enum {
	TELL_MAX = 20, /* messages of one file that are told */
};

static struct file_mark look_at(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return (struct file_mark){0};
	return (struct file_mark){
	    .dev = st.st_dev,
	    .ino = st.st_ino,
	    .size = st.st_size,
	    .ctime = st.st_ctim,
	    .there = true,
	};
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

/* Groups with a name of their own are there before their first member. */
static void add_static_groups(struct monitor *m)
{
	struct ruleset *rs = m->rules;
	struct name_result name;
	struct group *g;

	for (size_t i = 0; i < m->groups.n_groups; i++)
		m->groups.group[i]->is_static = false;
	for (size_t i = 0; i <= rs->n_rules; i++) {
		const struct name *n =
		    i < rs->n_rules ? rs->rule[i].name : rs->other;

		if (!n || !name_is_static(n))
			continue;
		monitor_static_name(n, &name);
		g = groups_get(&m->groups, name.text,
			       i < rs->n_rules ? rs->rule[i].collect
					       : rs->collect);
		if (g)
			g->is_static = true;
	}
}

/*
 * What is collected of a group is what the new rules say as soon as they are
 * asked; until then it is what the old ones said.
 */
static void age_groups(struct monitor *m)
{
	for (size_t i = 0; i < m->groups.n_groups; i++) {
		struct group *g = m->groups.group[i];

		g->is_stale = true;
		g->raw_hash = 0;
		g->told_merged = false;
	}
}

/* Every process is asked about again, its counters go on. */
static void adopt(struct monitor *m, struct ruleset *rs)
{
	ruleset_free(m->rules);
	m->rules = rs;
	m->classifier.rules = rs;
	m->tab.opt = (struct proctab_options){
	    .gate = rs->gate,
	    .refresh_ns = rs->refresh_ns,
	    .owner = rs->sources & SUBJECT_BIT(SUBJECT_OWNER),
	    .cgroup = rs->sources & SUBJECT_BIT(SUBJECT_CGROUP),
	};
	keptfd_want(&m->fs.kept, !rs->limits.kept_fds_set, rs->limits.kept_fds);
	age_groups(m);
	add_static_groups(m);
	proctab_ask_again(&m->tab);
	m->told.groups = false;
}

void monitor_reload(struct monitor *m)
{
	struct file_mark mark = look_at(m->rules_path);
	struct ruleset *rs = NULL;
	struct diag d;
	int r;

	if (m->rules_looked && is_same_file(&mark, &m->rules_mark))
		return;
	m->rules_looked = true;
	m->rules_mark = mark;
	diag_init(&d, m->rules_path);
	r = rulefile_load(m->rules_path, &d, &rs);
	tell_diag(m, &d);
	diag_done(&d);
	m->self.rules_ok = r == 0;
	if (r == 0) {
		m->self.rules_generation++;
		adopt(m, rs);
		monitor_tell(m, MONITOR_INFO, "%s: %zu rules in use",
			     m->rules_path, rs->n_rules);
	} else {
		monitor_tell(m, MONITOR_ERROR, "%s: not used%s", m->rules_path,
			     m->rules
				 ? "; the rules before it go on"
				 : "; nothing is collected until it can be");
	}
}
