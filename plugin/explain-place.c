/* SPDX-License-Identifier: MIT */
/*
 * What follows from the rules: from whom a process inherits, how its name
 * comes about, and in which group it is. That last is what the monitor has;
 * the way to it is walked once more.
 */
#include "explain-internal.h"

#include "name.h"
#include "series.h"

static const struct rule *rule_of(const struct explain *x,
				  const struct proc_place *place)
{
	return place->rule ? &x->m->rules->rule[place->rule - 1] : NULL;
}

static void put_group(struct explain *x, const struct proc_place *place)
{
	if (place->group)
		textline_printf(&x->line, "\"%s\"", place->group->name);
	else
		textline_printf(&x->line, "counted nowhere");
}

/* What an ancestor has, and how it came by it. */
static void put_heritage(struct explain *x, const struct proc_place *place)
{
	const struct rule *rule = rule_of(x, place);
	const struct heritage *h = &place->heritage;

	switch ((enum heritage_how)h->how) {
	case HERITAGE_NONE:
		textline_printf(&x->line, "not decided yet");
		return;
	case HERITAGE_MATCHED:
	case HERITAGE_INHERITED:
		put_group(x, place);
		break;
	case HERITAGE_OTHER:
		put_group(x, place);
		textline_printf(&x->line, ", as nobody took it; nothing to "
					  "hand on");
		return;
	case HERITAGE_DROPPED:
		textline_printf(&x->line, "dropped");
		break;
	}
	if (rule)
		textline_printf(&x->line, " by the rule of line %u",
				rule->line);
	if (h->depth)
		textline_printf(&x->line, ", inherited over %u generation%s",
				h->depth, h->depth == 1 ? "" : "s");
}

static void put_step(struct explain *x, const struct heritage *h,
		     unsigned distance)
{
	switch (inherit_from(h, distance)) {
	case INHERIT_TAKE:
		textline_printf(&x->line, "; it hands this on");
		break;
	case INHERIT_DROP:
		textline_printf(&x->line, "; and so is what is below it");
		break;
	case INHERIT_GO_ON:
		if (h->how == HERITAGE_OTHER)
			break;
		if (h->children == CHILDREN_NONE)
			textline_printf(&x->line, "; children: none");
		else
			textline_printf(&x->line,
					"; children: %u, and this would be "
					"generation %u",
					h->children, h->depth + distance);
		break;
	case INHERIT_WAIT:
		break;
	}
}

/* Why the walk goes no further. */
static void put_end(struct explain *x, const struct kin_walk *walk)
{
	const struct proc *p = walk->at;

	if (walk->distance == INHERIT_STEPS_MAX)
		textline_printf(&x->line, "%d generations are enough",
				INHERIT_STEPS_MAX);
	else if (!p->ppid)
		textline_printf(&x->line, "there is nobody above");
	else
		textline_printf(&x->line,
				"%d, the next above, has ended or "
				"cannot be seen",
				(int)p->ppid);
}

static void show_ancestors(struct explain *x, size_t view)
{
	struct kin_walk walk = {.at = x->p};
	enum kin_step at = KIN_ASK;

	textline_printf(&x->line, "  from whom could it inherit?");
	explain_end(x);
	while (at == KIN_ASK) {
		const struct proc_place *place;

		at = classify_step_up(&x->m->classifier, &walk);
		place = &walk.at->place[view];
		textline_printf(&x->line, "    ");
		if (at == KIN_END) {
			put_end(x, &walk);
			explain_end(x);
			return;
		}
		explain_who(x, walk.at);
		textline_printf(&x->line, ": ");
		if (at == KIN_INIT) {
			textline_printf(&x->line, "process 1 hands nothing on");
		} else if (at == KIN_MANAGER) {
			textline_printf(&x->line, "a manager hands nothing on");
		} else {
			enum inherit_step step =
			    inherit_from(&place->heritage, walk.distance);

			put_heritage(x, place);
			put_step(x, &place->heritage, walk.distance);
			if (step == INHERIT_TAKE || step == INHERIT_DROP)
				at = KIN_END;
		}
		explain_end(x);
	}
}

/* A name in the making, before it is cleaned. */
struct naming {
	struct explain *x;
	char *raw;
	size_t n, cap;
	size_t part; /* where the last part of it begins */
};

static void take_byte(void *arg, char c)
{
	struct naming *n = arg;

	if (array_reserve(&n->raw, &n->cap, n->n + 1, 1))
		n->x->line.lost = true;
	else
		n->raw[n->n++] = c;
}

static void show_part(void *arg, const struct name_part *part)
{
	struct naming *n = arg;
	struct textline *line = &n->x->line;
	struct str result = {"", n->n - n->part};

	if (result.n)
		result.s = n->raw + n->part;
	n->part = n->n;
	if (!part->is_token)
		return;
	textline_printf(line, "    ");
	textline_add(line, part->source);
	textline_printf(line, " is ");
	textline_quote(line, result, EXPLAIN_VALUE_MAX);
	if (part->value.s && !str_eq(part->value, result)) {
		textline_printf(line, ", made of ");
		textline_quote(line, part->value, EXPLAIN_VALUE_MAX);
	}
	explain_end(n->x);
}

static void show_cleaning(struct explain *x, const struct naming *raw,
			  const struct name_result *clean)
{
	if (clean->cleaned) {
		textline_printf(&x->line, "    ");
		textline_quote(&x->line, (struct str){raw->raw, raw->n},
			       EXPLAIN_VALUE_MAX);
		textline_printf(&x->line, " is made safe: \"%s\"", clean->text);
		explain_end(x);
	}
	if (clean->cut) {
		textline_printf(&x->line,
				"    %zu bytes are too many: %d of them stay, "
				"and a hash of all: \"%s\"",
				raw->n, NAME_KEEP_LEN, clean->text);
		explain_end(x);
	}
}

/* How the name that the rules give comes about. */
static void show_name(struct explain *x, size_t view, struct placing_in *in)
{
	struct rule_view *v = &x->m->rules->view[view];
	const struct name *name = in->is_other ? v->other : in->rule->name;
	struct naming naming = {.x = x};
	struct name_teller teller = {take_byte, show_part, &naming};
	char before[sizeof(in->name.text)];

	textline_printf(&x->line, "  name ");
	textline_quote(&x->line, name_template(name), EXPLAIN_VALUE_MAX);
	explain_end(x);
	name_expand_told(name, explain_subject(x),
			 in->is_other ? NULL : &x->verdict, &teller, &in->name);
	show_cleaning(x, &naming, &in->name);
	free(naming.raw);

	memcpy(before, in->name.text, sizeof(before));
	monitor_keep_to_view(x->m, view, in);
	if (strcmp(before, in->name.text) != 0) {
		textline_printf(&x->line,
				"    \"%s\" would be a name of another view: "
				"\"%s\"",
				before, in->name.text);
		explain_end(x);
	}
}

/* Is there no room for one more name? */
static bool is_full(struct monitor *m, const char *name)
{
	return m->groups.n_groups >= m->rules->limits.groups &&
	       !groups_find(&m->groups, name);
}

/* What a name becomes where there are too many. */
static void show_room(struct explain *x, size_t view,
		      const struct placing_in *in)
{
	const struct proc_place *place = &x->p->place[view];
	const struct rule *rule = rule_of(x, place);

	if (place->overflow && rule)
		textline_printf(&x->line,
				"  this rule has its max_groups (%u) groups "
				"already: ",
				rule->max_groups);
	else if (is_full(x->m, in->name.text))
		textline_printf(&x->line,
				"  there are limits.groups (%u) groups "
				"already: ",
				x->m->rules->limits.groups);
	else
		return;
	put_group(x, place);
	explain_end(x);
	textline_printf(&x->line, "  (a collectd that runs already may have "
				  "made other groups first)");
	explain_end(x);
}

/* Do the rules, asked now, say what the monitor has? */
static bool agrees(const struct explain *x, const struct proc_place *place,
		   const struct placing_in *in)
{
	if (in->kind == PLACING_KEEP)
		return true;
	if (rule_of(x, place) != in->rule ||
	    place->heritage.how != in->heritage.how)
		return false;
	if (in->kind == PLACING_DROP)
		return !place->group;
	if (in->kind == PLACING_HEIR)
		return place->group == in->group;
	return place->overflow || is_full(x->m, in->name.text) ||
	       (place->group && strcmp(place->group->name, in->name.text) == 0);
}

static void say_changed(struct explain *x, const struct proc_place *place,
			const struct placing_in *in)
{
	if (place->heritage.how == HERITAGE_NONE || x->hangs || x->outcome) {
		if (place->heritage.how == HERITAGE_NONE)
			textline_printf(&x->line, "  it has no group until "
						  "more is known of it");
		else
			textline_printf(&x->line,
					"  it is where it was when more was "
					"known of it");
		explain_end(x);
		return;
	}
	textline_printf(&x->line, "  it has changed since it was placed: what "
				  "it is now leads to ");
	if (in->kind == PLACING_NAME)
		textline_printf(&x->line, "\"%s\"", in->name.text);
	else if (in->kind == PLACING_HEIR && in->group)
		textline_printf(&x->line, "\"%s\"", in->group->name);
	else
		textline_printf(&x->line, "(dropped)");
	explain_end(x);
}

static void show_more(struct explain *x, size_t view)
{
	const struct proc *p = x->p;
	const struct group *g = p->place[view].group;

	if (g && g->told_merged) {
		textline_printf(&x->line,
				"  several names become \"%s\" when they are "
				"made safe: they are one group",
				g->name);
		explain_end(x);
	}
	if (p->member && p->member->in[view].series) {
		textline_printf(&x->line,
				"  it has a series of its own: "
				"\"%s\"",
				p->member->in[view].series->name);
		explain_end(x);
	}
}

void explain_place(struct explain *x, size_t view)
{
	const struct proc_place *place = &x->p->place[view];
	struct placing pl = {0};
	struct placing_in *in = &pl.in[view];

	classify_in(&x->m->classifier, view, &pl);
	if (x->verdict.action == ACTION_LEAVE)
		show_ancestors(x, view);
	if (in->kind == PLACING_KEEP) {
		textline_printf(&x->line,
				"  it inherited from %d, which has ended or "
				"gone from it since: it stays",
				(int)place->heritage.from);
		explain_end(x);
	}
	if (in->kind == PLACING_NAME) {
		show_name(x, view, in);
		show_room(x, view, in);
	}
	if (!agrees(x, place, in))
		say_changed(x, place, in);
	show_more(x, view);
}

/* Who saw to it: a rule, of it or of an ancestor, or nobody. */
static void put_cause(struct explain *x, const struct proc_place *place)
{
	const struct rule *rule = rule_of(x, place);
	const struct heritage *h = &place->heritage;

	if (h->how == HERITAGE_NONE) {
		textline_printf(&x->line, "more has to be known of it");
		return;
	}
	if (h->how == HERITAGE_OTHER || !rule) {
		textline_printf(&x->line, "no rule takes it");
		return;
	}
	if (h->depth && h->from)
		textline_printf(&x->line, "inherited from %d, of ",
				(int)h->from);
	else if (h->depth)
		textline_printf(&x->line, "inherited, of ");
	textline_printf(&x->line, "the rule of line %u", rule->line);
	if (rule->name) {
		textline_printf(&x->line, ", ");
		textline_quote(&x->line, name_template(rule->name),
			       EXPLAIN_VALUE_MAX);
	}
}

void explain_answer(struct explain *x, size_t view)
{
	const struct proc_place *place = &x->p->place[view];
	const char *name = x->m->rules->view[view].name;

	explain_who(x, x->p);
	textline_printf(&x->line, " is ");
	if (place->group)
		textline_printf(&x->line, "in ");
	if (place->heritage.how == HERITAGE_NONE)
		textline_printf(&x->line, "in no group yet");
	else
		put_group(x, place);
	if (name)
		textline_printf(&x->line, " of the view %s", name);
	textline_printf(&x->line, ": ");
	put_cause(x, place);
	explain_end(x);
}

void explain_group(struct explain *x, size_t view)
{
	const struct proc_place *place = &x->p->place[view];
	const char *name = x->m->rules->view[view].name;

	textline_printf(&x->line, "group%s%s: %s", name ? " " : "",
			name ? name : "",
			place->group ? place->group->name
			: place->heritage.how == HERITAGE_NONE ? "(undecided)"
							       : "(dropped)");
	explain_end(x);
}
