/* SPDX-License-Identifier: MIT */
/*
 * Which group a process is in, by the name that the rules gave it: one that
 * is there, a new one, or another where there are too many. Nothing moves
 * here.
 */
#include "monitor-internal.h"
#include "series.h"

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
