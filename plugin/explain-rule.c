/* SPDX-License-Identifier: MIT */
/*
 * Why rules hold or do not: the key that decides, the value that it was tried
 * on, and the items of the rule file that it was compared with.
 */
#include "explain-internal.h"

#include <inttypes.h>

#include "name.h"

static enum matcher_result try_item(struct explain *x,
				    const struct rule_term *t, size_t i,
				    struct str *ret_value)
{
	return ruleset_try_item(x->m->rules, x->rule, t->key, &t->item[i],
				explain_subject(x), ret_value);
}

/* What its items are tried on: all on the same, but for those of exe. */
static void put_value(struct explain *x, const struct rule_term *t)
{
	const struct subject *s = explain_subject(x);
	const struct rule_key_def *def = &rule_keys[t->key];
	const void *field = (const char *)s + def->field;
	struct str value = STR("");
	bool has_slash = false;

	textline_printf(&x->line, "%s ", explain_key(x, t->key));
	if (def->item == ITEM_NUMBER) {
		textline_printf(&x->line, "%" PRIu32, *(const uint32_t *)field);
		return;
	}
	try_item(x, t, 0, &value);
	for (size_t i = 0; t->key == RULE_EXE && i < t->n_items; i++)
		has_slash |= t->item[i].has_slash;
	if (has_slash)
		value = s->exe;
	textline_quote(&x->line, value, EXPLAIN_VALUE_MAX);
	if (!has_slash)
		return;
	textline_printf(&x->line, " (argv[0] ");
	textline_quote(&x->line, s->argv0, EXPLAIN_VALUE_MAX);
	textline_printf(&x->line, ")");
}

/* Of `cmdline_all`: that which does not match. */
static size_t find_unmatched(struct explain *x, const struct rule_term *t)
{
	struct str value;
	size_t i = 0;

	while (i + 1 < t->n_items && try_item(x, t, i, &value) == MATCHER_YES)
		i++;
	return i;
}

static void put_cut_items(struct explain *x, const struct rule_term *t)
{
	struct str value;

	for (size_t i = 0; i < t->n_items; i++) {
		if (try_item(x, t, i, &value) != MATCHER_CUT)
			continue;
		textline_printf(&x->line, "; cut off, as it takes too many "
					  "steps: ");
		explain_put_item(x, t, i);
	}
}

static void put_mismatch(struct explain *x, const struct rule_term *t)
{
	const struct rule_key_def *def = &rule_keys[t->key];
	bool is_number = def->item == ITEM_NUMBER;
	bool is_one = t->n_items == 1 || def->all;
	bool may_be_empty =
	    t->key == RULE_COMM || (def->all && x->rule->exporter);
	struct str value;

	if (t->n_items == 0) {
		textline_printf(&x->line, "the list of %s is empty",
				explain_key(x, t->key));
		return;
	}
	try_item(x, t, 0, &value);
	if (!is_number && value.n == 0 && !may_be_empty) {
		textline_printf(&x->line, "it has no %s to match ",
				explain_key(x, t->key));
	} else {
		put_value(x, t);
		textline_printf(&x->line, "%s",
				is_number
				    ? (is_one ? " is not " : " is none of ")
				: is_one ? " does not match "
					 : " matches none of ");
	}
	if (def->all)
		explain_put_item(x, t, find_unmatched(x, t));
	else
		explain_put_items(x, t);
	if (!is_number)
		put_cut_items(x, t);
}

static void put_pidfiles(struct explain *x, const struct rule_term *t)
{
	for (size_t i = 0; i < t->n_items; i++) {
		pid_t pid = x->m->rules->pidfile[t->item[i].number].pid;

		textline_printf(&x->line, "%s", i ? ", " : "pidfile ");
		explain_put_item(x, t, i);
		if (pid)
			textline_printf(&x->line, " names process %d",
					(int)pid);
		else
			textline_printf(&x->line, " names no process");
	}
}

/* Those who were asked, up to a manager. */
static void put_asked(struct explain *x, bool parent)
{
	struct monitor *m = x->m;
	const struct proc_entry *e = proctab_parent(&m->tab, x->p);
	size_t i = 0;

	for (; e && i < (parent ? 1 : INHERIT_STEPS_MAX); i++) {
		if (i < EXPLAIN_LIST_MAX) {
			textline_printf(&x->line, "%s", i ? ", " : "");
			explain_who(x, e->proc);
		}
		if (ruleset_is_manager(m->rules, str_of(proc_comm(e->proc))))
			e = NULL;
		else
			e = proctab_parent(&m->tab, e->proc);
	}
	if (i > EXPLAIN_LIST_MAX)
		textline_printf(&x->line, " and %zu more",
				i - EXPLAIN_LIST_MAX);
}

static void put_no_kin(struct explain *x, const struct rule_term *t)
{
	bool parent = t->key == RULE_PARENT;

	if (!proctab_parent(&x->m->tab, x->p)) {
		textline_printf(&x->line, "no parent is to be seen that is ");
	} else if (parent) {
		textline_printf(&x->line, "parent ");
		put_asked(x, true);
		textline_printf(&x->line, " is not ");
	} else {
		textline_printf(&x->line, "ancestor ");
		put_asked(x, false);
		textline_printf(&x->line, ": none is ");
	}
	explain_put_kin(x, t, 0);
}

static void put_reason(struct explain *x, const struct rule_reason *why)
{
	enum subject_source source = rule_keys[why->key].source;
	bool is_kernel = x->p->flags & PROC_KERNEL;

	if (why->excepted) {
		textline_printf(&x->line,
				"its keys hold, but it is excepted: not ");
		explain_put_mapping(x, why->except, NULL, 0, 0);
	} else if (why->absent || why->truth == HOLDS_MAYBE) {
		textline_printf(&x->line, "%s ", explain_key(x, why->key));
		explain_put_missing(x, source);
	} else if (why->key == RULE_KERNEL) {
		textline_printf(
		    &x->line, "kernel is %s: it is %s kernel thread",
		    is_kernel ? "true" : "false", is_kernel ? "a" : "no");
	} else if (why->key == RULE_PIDFILE) {
		put_pidfiles(x, why->term);
	} else if (explain_is_kin(why->term)) {
		put_no_kin(x, why->term);
	} else {
		put_mismatch(x, why->term);
	}
}

static void put_label(struct explain *x, const struct rule *rule)
{
	textline_printf(&x->line, "  line %u, ", rule->line);
	if (rule->action == ACTION_GROUP)
		textline_quote(&x->line, name_template(rule->name),
			       EXPLAIN_VALUE_MAX);
	else
		textline_printf(&x->line, "%s",
				rule->action == ACTION_DROP ? "drop" : "leave");
	textline_printf(&x->line, ": ");
}

static void put_match(struct explain *x, const struct rule_term *t)
{
	bool is_number = rule_keys[t->key].item == ITEM_NUMBER;
	const char *between = is_number ? " is " : " matches ";
	struct str value;

	put_value(x, t);
	for (size_t i = 0; i < t->n_items; i++) {
		if (try_item(x, t, i, &value) != MATCHER_YES)
			continue;
		textline_printf(&x->line, "%s", between);
		explain_put_item(x, t, i);
		between = ", ";
		if (!rule_keys[t->key].all)
			break;
	}
}

static void show_holding_kin(struct explain *x, const struct rule_term *t)
{
	struct subject *s = explain_subject(x);
	bool parent = t->key == RULE_PARENT;
	uint64_t met =
	    t->kin & (parent ? s->parent_traits : s->ancestor_traits);
	struct subject_kin kin;

	textline_printf(&x->line, "%s ", explain_key(x, t->key));
	if (s->find_kin(s, parent, met, &kin)) {
		textline_printf(&x->line, "%d (", (int)kin.pid);
		textline_add(&x->line, kin.comm);
		textline_printf(&x->line, ") ");
	}
	textline_printf(&x->line, "is ");
	explain_put_kin(x, t, 0);
}

/* Each key of the rule that holds, in a line of its own. */
static void show_holding(struct explain *x, const struct rule *rule)
{
	const struct rule_terms *terms = &rule->terms;

	if (terms->any || terms->kernel == KERNEL_YES) {
		textline_printf(&x->line, "    %s",
				terms->kernel == KERNEL_YES
				    ? "it is a kernel thread"
				    : "any process will do");
		explain_end(x);
	}
	for (size_t i = 0; i < terms->n_terms; i++) {
		const struct rule_term *t = &terms->term[i];

		textline_printf(&x->line, "    ");
		if (!explain_is_kin(t) && t->n_items == 0)
			textline_printf(&x->line, "the list of %s is empty",
					explain_key(x, t->key));
		else if (explain_is_kin(t))
			show_holding_kin(x, t);
		else if (t->key == RULE_PIDFILE)
			put_pidfiles(x, t);
		else
			put_match(x, t);
		explain_end(x);
	}
	for (size_t i = 0; i < rule->n_not; i++) {
		textline_printf(&x->line, "    not ");
		explain_put_mapping(x, &rule->not [i], NULL, 0, 0);
		textline_printf(&x->line, " does not hold");
		explain_end(x);
	}
}

static void say_rest(struct explain *x, size_t n)
{
	if (n > 0) {
		textline_printf(&x->line, "  %zu rule%s below %s not reached",
				n, n == 1 ? "" : "s", n == 1 ? "is" : "are");
		explain_end(x);
	}
}

void explain_rules(struct explain *x, size_t view)
{
	struct ruleset *rs = x->m->rules;
	const struct rule_view *v = &rs->view[view];

	textline_printf(&x->line, "view %s, %zu rule%s of ",
			monitor_view_name(x->m, view), v->n_rules,
			v->n_rules == 1 ? "" : "s");
	textline_add(&x->line, str_of(x->m->rules_path));
	explain_end(x);
	ruleset_match(rs, view, explain_subject(x), &x->verdict);
	for (size_t i = 0; i < v->n_rules; i++) {
		struct rule *rule = &rs->rule[v->first + i];
		struct rule_reason why;

		x->rule = rule;
		put_label(x, rule);
		ruleset_explain(rs, rule, explain_subject(x), &why);
		if (why.truth != HOLDS) {
			put_reason(x, &why);
			explain_end(x);
			continue;
		}
		textline_printf(&x->line, "holds%s",
				rule->action == ACTION_GROUP ? ""
				: rule->action == ACTION_DROP
				    ? ": it is counted nowhere"
				    : ": as if no rule did");
		explain_end(x);
		show_holding(x, rule);
		say_rest(x, v->n_rules - i - 1);
		return;
	}
	textline_printf(&x->line, "  no rule holds");
	explain_end(x);
}
