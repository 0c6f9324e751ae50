/* SPDX-License-Identifier: MIT */
/*
 * Asking a rule set about a subject. Terms of a rule are tried in the order
 * of what it costs to learn the value, and the first that fails ends the rule:
 * most processes are told apart by comm alone, and then nothing else is read.
 *
 * It does not know where rules come from (rulefile), how they are built
 * (rule-build.c) nor how a text is compared (matcher).
 */
#include "rule.h"

#define FIELD(name) offsetof(struct subject, name)
#define TEXT(name, source, field)                                              \
	{                                                                      \
		name, source, ITEM_TEXT, MATCHER_EXACT, false, FIELD(field)    \
	}
#define REGEX(name, source, all, field)                                        \
	{                                                                      \
		name, source, ITEM_TEXT, MATCHER_REGEX, all, FIELD(field)      \
	}
#define NUMBER(name, source, field)                                            \
	{                                                                      \
		name, source, ITEM_NUMBER, MATCHER_NUMBER, false, FIELD(field) \
	}
#define OTHER(name, source, item)                                              \
	{                                                                      \
		name, source, item, MATCHER_EXACT, false, 0                    \
	}

const struct rule_key_def rule_keys[RULE_KEY_N] = {
    [RULE_COMM] = TEXT("comm", SUBJECT_STAT, comm),
    [RULE_KERNEL] = OTHER("kernel", SUBJECT_STAT, ITEM_SWITCH),
    [RULE_PIDFILE] = OTHER("pidfile", SUBJECT_STAT, ITEM_PIDFILE),
    [RULE_PARENT] = OTHER("parent", SUBJECT_KIN, ITEM_KIN),
    [RULE_ANCESTOR] = OTHER("ancestor", SUBJECT_KIN, ITEM_KIN),
    [RULE_UID] = NUMBER("uid", SUBJECT_OWNER, uid),
    [RULE_USER] = TEXT("user", SUBJECT_OWNER, user),
    [RULE_GID] = NUMBER("gid", SUBJECT_OWNER, gid),
    [RULE_GROUP] = TEXT("group", SUBJECT_OWNER, group),
    [RULE_CGROUP] = REGEX("cgroup", SUBJECT_CGROUP, false, cgroup),
    [RULE_UNIT] = TEXT("unit", SUBJECT_CGROUP, unit),
    [RULE_SLICE] = TEXT("slice", SUBJECT_CGROUP, slice),
    [RULE_CONTAINER] = TEXT("container", SUBJECT_CGROUP, container),
    [RULE_POD] = TEXT("pod", SUBJECT_CGROUP, pod),
    [RULE_EXE_PATH] = TEXT("exe_path", SUBJECT_EXE, exe_path),
    [RULE_EXE] = TEXT("exe", SUBJECT_CMDLINE, exe),
    [RULE_CMDLINE] = REGEX("cmdline", SUBJECT_CMDLINE, false, cmdline),
    [RULE_CMDLINE_ALL] = REGEX("cmdline_all", SUBJECT_CMDLINE, true, cmdline),
    [RULE_ANY] = OTHER("any", SUBJECT_STAT, ITEM_SWITCH),
};

/* One question to a rule set. */
struct asking {
	struct ruleset *rules;
	struct subject *subject;
	uint64_t *n_cut;	      /* of the rule; NULL for traits */
	struct rule_verdict *verdict; /* takes the captures; NULL below `not` */
	struct rule_reason why;	      /* of the last terms_hold() */
	bool unsure;		      /* something pending could change it */
	bool exporter;		      /* as process-exporter does it */
};

static void set_capture(struct rule_verdict *v, struct str name,
			struct str value, bool anyhow)
{
	for (unsigned i = 0; i < v->n_captures; i++) {
		if (!str_eq(v->capture[i].name, name))
			continue;
		/* (?J) gives several groups of one pattern the same name. */
		if (value.n > 0 || anyhow)
			v->capture[i].value = value;
		return;
	}
	if (v->n_captures < RULE_CAPTURES_MAX)
		v->capture[v->n_captures++] =
		    (struct rule_capture){name, value};
}

static void take_captures(const struct asking *a, const struct matcher *m,
			  struct str value)
{
	for (unsigned i = 0; a->verdict && i < m->n_names; i++)
		set_capture(a->verdict, matcher_capture_name(m, i),
			    matcher_capture(m, i, value, a->rules->scratch),
			    a->exporter);
	if (a->verdict && a->exporter && m->kind == MATCHER_REGEX)
		set_capture(a->verdict, STR(""),
			    matcher_unnamed(m, value, a->rules->scratch), true);
}

static const void *field_of(const struct subject *s, enum rule_key key)
{
	return (const char *)s + rule_keys[key].field;
}

static enum matcher_result try_item(const struct ruleset *rs, bool exporter,
				    enum rule_key key, const struct matcher *m,
				    const struct subject *s,
				    struct str *ret_value)
{
	struct str value = STR("");
	bool same;

	*ret_value = value;
	if (rule_keys[key].item == ITEM_TEXT) {
		value = *(const struct str *)field_of(s, key);
		if (key == RULE_EXE && m->has_slash)
			value = s->argv0;
		else if (key == RULE_EXE && exporter && s->cmdline.n)
			value = subject_go_base(s->argv0);
		*ret_value = value;
		if (value.n == 0 && key != RULE_COMM &&
		    !(exporter && key == RULE_CMDLINE_ALL))
			return MATCHER_NO;
		return matcher_match(m, value, rs->scratch);
	}
	if (rule_keys[key].item == ITEM_NUMBER)
		same = *(const uint32_t *)field_of(s, key) == m->number;
	else
		same = rs->pidfile[m->number].pid == s->pid;
	return same ? MATCHER_YES : MATCHER_NO;
}

static bool item_matches(const struct asking *a, enum rule_key key,
			 const struct matcher *m)
{
	struct str value;

	switch (try_item(a->rules, a->exporter, key, m, a->subject, &value)) {
	case MATCHER_YES:
		take_captures(a, m, value);
		return true;
	case MATCHER_CUT:
		a->rules->n_regex_limit++;
		if (a->n_cut)
			++*a->n_cut;
		return false;
	case MATCHER_NO:
		break;
	}
	return false;
}

/* Does its parent, or one of its ancestors, have one of these traits? */
static bool kin_holds(const struct asking *a, const struct rule_term *t)
{
	struct subject *s = a->subject;
	bool parent = t->key == RULE_PARENT;
	uint64_t met =
	    t->kin & (parent ? s->parent_traits : s->ancestor_traits);
	struct subject_kin kin;

	if (!met)
		return false;
	if (!a->verdict || !s->find_kin || !s->find_kin(s, parent, met, &kin))
		return true;
	for (size_t i = 0; i < kin.n_texts; i++)
		if (met & UINT64_C(1) << kin.text[i].trait)
			set_capture(a->verdict, kin.text[i].name,
				    kin.text[i].value, false);
	a->verdict->ancestor = kin.comm;
	return true;
}

static bool term_holds(const struct asking *a, const struct rule_term *t)
{
	bool all = rule_keys[t->key].all;

	if (rule_keys[t->key].item == ITEM_KIN)
		return kin_holds(a, t);
	for (size_t i = 0; i < t->n_items; i++)
		if (item_matches(a, t->key, &t->item[i]) != all)
			return !all;
	return all;
}

/* Asks for a source; HOLDS says that it is there. */
static enum truth need(struct subject *s, enum subject_source source)
{
	if (subject_need(s, source))
		return HOLDS;
	return s->pending & SUBJECT_BIT(source) ? HOLDS_MAYBE : HOLDS_NOT;
}

static enum truth kernel_holds(const struct asking *a, enum rule_kernel wanted)
{
	enum truth there;

	if (wanted == KERNEL_EITHER)
		return HOLDS;
	there = need(a->subject, SUBJECT_STAT);
	if (there != HOLDS)
		return there;
	return a->subject->kernel == (wanted == KERNEL_YES) ? HOLDS : HOLDS_NOT;
}

static enum truth fails(struct asking *a, enum rule_key key,
			const struct rule_term *term, bool absent)
{
	a->why = (struct rule_reason){
	    .key = key,
	    .term = term,
	    .absent = absent,
	};
	return HOLDS_NOT;
}

static enum truth terms_hold(struct asking *a, const struct rule_terms *terms)
{
	enum truth all = kernel_holds(a, terms->kernel);

	a->why = (struct rule_reason){.truth = all, .key = RULE_KERNEL};
	if (!terms->n_terms && !terms->any && terms->kernel == KERNEL_EITHER)
		return fails(a, RULE_ANY, NULL, false);
	if (all == HOLDS_NOT)
		return HOLDS_NOT;
	for (size_t i = 0; i < terms->n_terms; i++) {
		const struct rule_term *t = &terms->term[i];
		enum truth there = need(a->subject, rule_keys[t->key].source);

		if (there == HOLDS_NOT || (there == HOLDS && !term_holds(a, t)))
			return fails(a, t->key, t, there == HOLDS_NOT);
		/* One that waits is passed over: a later one may fail. */
		if (there == HOLDS_MAYBE && all != HOLDS_MAYBE) {
			all = HOLDS_MAYBE;
			a->why = (struct rule_reason){
			    .truth = all,
			    .key = t->key,
			    .term = t,
			};
		}
	}
	a->why.truth = all;
	return all;
}

/* HOLDS_MAYBE: an exception may yet turn out to apply. */
static enum truth exceptions_hold(const struct asking *a,
				  const struct rule_terms * not, size_t n_not,
				  const struct rule_terms **ret_which)
{
	struct asking below = *a;
	enum truth any = HOLDS_NOT;

	below.verdict = NULL;
	for (size_t i = 0; i < n_not; i++) {
		enum truth t = terms_hold(&below, &not [i]);

		if (t == HOLDS) {
			*ret_which = &not [i];
			return HOLDS;
		}
		if (t == HOLDS_MAYBE)
			any = HOLDS_MAYBE;
	}
	return any;
}

/*
 * Both together: an exception that is pending counts as one that does not
 * hold. What the answer hangs on is in a->why and a->unsure.
 */
static enum truth conditions_hold(struct asking *a,
				  const struct rule_terms *terms,
				  const struct rule_terms * not, size_t n_not)
{
	enum truth holds = terms_hold(a, terms), except;
	const struct rule_terms *which = NULL;

	a->unsure = false;
	if (holds == HOLDS_NOT)
		return HOLDS_NOT;
	except = exceptions_hold(a, not, n_not, &which);
	if (except == HOLDS) {
		a->why = (struct rule_reason){
		    .excepted = true,
		    .except = which,
		};
		return HOLDS_NOT;
	}
	a->unsure = holds == HOLDS_MAYBE || except == HOLDS_MAYBE;
	return holds;
}

void ruleset_match(struct ruleset *rs, size_t view, struct subject *s,
		   struct rule_verdict *ret)
{
	const struct rule_view *v = &rs->view[view];
	struct asking a = {.rules = rs, .subject = s, .verdict = ret};

	*ret = (struct rule_verdict){.action = ACTION_LEAVE};
	for (size_t i = v->first; i < v->first + v->n_rules; i++) {
		struct rule *rule = &rs->rule[i];
		enum truth holds;

		a.n_cut = &rule->n_regex_limit;
		a.exporter = rule->exporter;
		ret->n_captures = 0;
		ret->ancestor = STR("");
		holds =
		    conditions_hold(&a, &rule->terms, rule->not, rule->n_not);
		ret->pending |= a.unsure;
		if (holds != HOLDS)
			continue;
		ret->rule = rule;
		ret->action = rule->action;
		return;
	}
	ret->n_captures = 0;
}

void ruleset_explain(struct ruleset *rs, struct rule *rule, struct subject *s,
		     struct rule_reason *ret)
{
	struct rule_verdict v = {0};
	struct asking a = {
	    .rules = rs,
	    .subject = s,
	    .n_cut = &rule->n_regex_limit,
	    .exporter = rule->exporter,
	    .verdict = &v,
	};

	conditions_hold(&a, &rule->terms, rule->not, rule->n_not);
	*ret = a.why;
}

enum matcher_result ruleset_try_item(const struct ruleset *rs,
				     const struct rule *rule, enum rule_key key,
				     const struct matcher *item,
				     const struct subject *s,
				     struct str *ret_value)
{
	return try_item(rs, rule->exporter, key, item, s, ret_value);
}

void ruleset_traits(struct ruleset *rs, struct subject *s,
		    struct rule_traits *ret)
{
	*ret = (struct rule_traits){0};
	for (unsigned i = 0; i < rs->n_kin; i++) {
		const struct rule_kin *k = &rs->kin[i];
		struct rule_verdict v = {0};
		struct asking a = {.rules = rs, .subject = s, .verdict = &v};
		enum truth holds =
		    conditions_hold(&a, &k->terms, k->not, k->n_not);

		if (a.unsure)
			ret->pending |= UINT64_C(1) << i;
		if (holds != HOLDS)
			continue;
		ret->holds |= UINT64_C(1) << i;
		for (unsigned j = 0;
		     j < v.n_captures && ret->n_captures < RULE_CAPTURES_MAX;
		     j++)
			ret->capture[ret->n_captures++] =
			    (struct trait_capture){i, v.capture[j]};
	}
}

static bool any_matches(struct ruleset *rs, const struct matcher *list,
			size_t n, struct str text)
{
	for (size_t i = 0; i < n; i++)
		if (matcher_match(&list[i], text, rs->scratch) == MATCHER_YES)
			return true;
	return false;
}

const char *ruleset_view_of_name(const struct ruleset *rs, struct str name)
{
	for (size_t i = 0; i < rs->n_views; i++) {
		const char *view = rs->view[i].name;

		if (view && name.n > strlen(view) &&
		    str_begins(name, str_of(view)) &&
		    name.s[strlen(view)] == '.')
			return view;
	}
	return NULL;
}

bool ruleset_collects(const struct ruleset *rs, enum collect_key key)
{
	collect_mask all = 0;

	for (size_t i = 0; i < rs->n_rules; i++)
		all |= rs->rule[i].collect;
	for (size_t i = 0; i < rs->n_views; i++)
		all |= rs->view[i].collect;
	return all >> key & 1;
}

bool ruleset_is_manager(struct ruleset *rs, struct str comm)
{
	return any_matches(rs, rs->manager, rs->n_managers, comm);
}

void ruleset_check_script(struct ruleset *rs, struct subject *s)
{
	if (s->script.n &&
	    !any_matches(rs, rs->interpreter, rs->n_interpreters, s->exe))
		s->script = STR("");
}
