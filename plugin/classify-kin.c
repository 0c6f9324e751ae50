/* SPDX-License-Identifier: MIT */
/*
 * Who a process comes from: the walk up the chain of parents, for traits that
 * rules ask for and for groups that are inherited.
 *
 * Invariant: a walk has an end. It takes INHERIT_STEPS_MAX steps at most, and
 * each leads to a process that is no younger.
 */
#include "classify-internal.h"
#include "group.h"

static bool is_lost(const struct proc *p)
{
	return p->flags & (PROC_IS_GONE | PROC_HANGS | PROC_IS_STALLED);
}

/* Not asked about yet in this tick, and there is hope that it will be. */
static bool is_undecided(const struct proc *p)
{
	return p->flags & (PROC_NEW | PROC_RENAMED) && !is_lost(p);
}

/* An answer that is on its way may give it another group, or other traits. */
static bool may_change(const struct proc *p)
{
	return p->flags & PROC_AWAITS && !is_lost(p);
}

/* Who goes without what one knows of p is asked again, then or soon. */
static void pass_by(struct classifier *c, struct proc *p)
{
	if (p->flags & PROC_AWAITS && (c->anyhow || is_lost(p)))
		p->flags |= PROC_IS_PASSED;
	else if (!is_lost(p))
		c->passed_by = true;
}

static bool is_manager(struct classifier *c, const struct proc *p)
{
	return ruleset_is_manager(c->rules, str_of(proc_comm(p)));
}

/*
 * Something of it could not be read: it is asked about again in the next tick.
 * Who asks for its traits once more would ask for ever.
 */
static bool is_put_off(const struct proc *p)
{
	return p->flags & PROC_LOOK_AGAIN &&
	       p->flags & (PROC_TRAITS_KNOWN | PROC_WANTS_TRAITS);
}

/* Has the traits learned, in a later pass of this tick if there is one. */
static void want_traits(struct classifier *c, const struct proc_entry *e)
{
	e->proc->flags |= PROC_WANTS_TRAITS;
	if (c->anyhow || array_reserve(&c->want, &c->want_cap, c->n_want + 1,
				       sizeof(*c->want)))
		return;
	c->want[c->n_want++] = (uint32_t)(e - c->tab->entry);
}

/* The traits of one; false if they are not known yet. */
static bool add_traits(struct classifier *c, const struct proc_entry *e,
		       uint64_t *traits)
{
	struct proc *p = e->proc;

	if (p->traits)
		*traits |= p->traits->holds;
	if (p->flags & PROC_IS_STALLED)
		pass_by(c, p);
	/* Who ended will not be asked any more. */
	if (p->flags & (PROC_HANGS | PROC_IS_GONE) ||
	    (p->flags & PROC_TRAITS_KNOWN && !is_undecided(p)))
		return true;
	if (!is_put_off(p))
		want_traits(c, e);
	if (c->anyhow)
		pass_by(c, p);
	return c->anyhow;
}

void classify_fetch_kin(struct classifier *c, struct subject *s)
{
	const struct proc *p = c->proc;
	bool known = true;

	for (unsigned i = 0; i < INHERIT_STEPS_MAX; i++) {
		const struct proc_entry *e = proctab_parent(c->tab, p);

		if (!e)
			break;
		known &= add_traits(c, e, &s->ancestor_traits);
		if (i == 0)
			s->parent_traits = s->ancestor_traits;
		p = e->proc;
		if (is_manager(c, p))
			break;
	}
	if (known)
		s->have |= SUBJECT_BIT(SUBJECT_KIN);
	else
		s->pending |= SUBJECT_BIT(SUBJECT_KIN);
}

bool classify_find_kin(struct subject *s, bool parent, uint64_t traits,
		       struct subject_kin *ret)
{
	struct classifier *c = s->arg;
	const struct proc *p = c->proc;

	for (unsigned i = 0; i < (parent ? 1 : INHERIT_STEPS_MAX); i++) {
		const struct proc_entry *e = proctab_parent(c->tab, p);

		if (!e)
			break;
		p = e->proc;
		if (!p->traits || !(p->traits->holds & traits))
			continue;
		*ret = (struct subject_kin){
		    .pid = e->pid,
		    .comm = str_of(proc_comm(p)),
		    .text = p->traits->text,
		    .n_texts = p->traits->n_texts,
		};
		return true;
	}
	return false;
}

static char *copy(char *to, struct str *text)
{
	if (text->n)
		memcpy(to, text->s, text->n);
	text->s = to;
	return to + text->n;
}

void classify_set_traits(struct proc *p, const struct rule_traits *traits)
{
	size_t n = traits->n_captures, size = 0;
	struct proc_traits *t = NULL;
	char *end;

	for (size_t i = 0; i < n; i++)
		size += traits->capture[i].text.name.n +
			traits->capture[i].text.value.n;
	free(p->traits);
	p->traits = NULL;
	if (!traits->holds)
		return;
	t = malloc(sizeof(*t) + n * sizeof(t->text[0]) + size);
	if (!t)
		return;
	*t = (struct proc_traits){.holds = traits->holds, .n_texts = n};
	end = (char *)&t->text[n];
	for (size_t i = 0; i < n; i++) {
		const struct trait_capture *from = &traits->capture[i];

		t->text[i] = (struct kin_text){from->trait, from->text.name,
					       from->text.value};
		end = copy(end, &t->text[i].name);
		end = copy(end, &t->text[i].value);
	}
	p->traits = t;
}

/* Who handed its group on to it, or on the way there somebody, has ended. */
static bool is_orphan(struct classifier *c, const struct proc *p,
		      const struct heritage *h)
{
	const struct proc_entry *e = proctab_find_pid(c->tab, h->from);

	return p->ppid != h->ppid || !e || e->proc->flags & PROC_IS_GONE ||
	       (uint32_t)e->proc->start != h->from_start;
}

/* Membership outlives whom it came from, but not the rule. */
static bool is_heir(const struct proc_place *place)
{
	return place->heritage.depth && place->rule;
}

static void take_from(const struct classifier *c, const struct proc *p,
		      size_t view, unsigned distance, struct placing_in *ret)
{
	const struct proc_place *from = &p->place[view];

	if (from->rule)
		ret->rule = &c->rules->rule[from->rule - 1];
	ret->heritage = inherit_take(&from->heritage, distance);
	ret->heritage.ppid = c->proc->ppid;
	ret->heritage.from = p->at.pid;
	ret->heritage.from_start = (uint32_t)p->start;
	if (from->heritage.how == HERITAGE_DROPPED) {
		ret->kind = PLACING_DROP;
		ret->heritage.how = HERITAGE_DROPPED;
		return;
	}
	ret->kind = PLACING_HEIR;
	ret->group = from->group;
}

enum kin_step classify_step_up(struct classifier *c, struct kin_walk *w)
{
	const struct proc_entry *e = proctab_parent(c->tab, w->at);

	if (!e || w->distance == INHERIT_STEPS_MAX)
		return KIN_END;
	w->at = e->proc;
	w->distance++;
	if (e->pid == 1 && !c->rules->init_gives)
		return KIN_INIT;
	return is_manager(c, w->at) ? KIN_MANAGER : KIN_ASK;
}

bool classify_inherit(struct classifier *c, size_t view, struct placing_in *ret)
{
	const struct proc *p = c->proc;
	const struct proc_place *place = &p->place[view];
	struct kin_walk walk = {.at = c->proc};

	if (is_heir(place) && is_orphan(c, p, &place->heritage)) {
		ret->kind = PLACING_KEEP;
		return true;
	}
	c->walked = true;
	while (classify_step_up(c, &walk) == KIN_ASK) {
		enum inherit_step step =
		    inherit_from(&walk.at->place[view].heritage, walk.distance);

		if (is_undecided(walk.at) || may_change(walk.at) ||
		    walk.at->flags & PROC_IS_STALLED) {
			pass_by(c, walk.at);
			if (c->passed_by && !c->anyhow)
				return false;
		}
		if (step != INHERIT_TAKE && step != INHERIT_DROP)
			continue;
		take_from(c, walk.at, view, walk.distance, ret);
		return true;
	}
	return false;
}
