/* SPDX-License-Identifier: MIT */
/*
 * Views: the same processes, divided in several ways. Each has rules, its own
 * or ready-made ones, and a group for what they do not take.
 *
 * Invariant: names of groups of different views differ by what stands in
 * front.
 */
#include "rulefile-view.h"

#include "name.h"
#include "rulefile-rule.h"
#include "rulefile-value.h"

enum {
	RULES_MAX = 10000,
	VIEW_NAME_MAX = 16,
};

static int load_other_name(struct loader *l, void *into,
			   const struct yaml_node *key,
			   const struct yaml_node *value)
{
	struct rule_view *view = into;
	struct name *name;
	struct str text;
	int r = name_text(l, key, value, &text);

	if (r)
		return r;
	r = name_load(l, text, NULL, 0, value, &name);
	if (r)
		return r;
	name_free(view->other);
	view->other = name;
	return 0;
}

static int load_other_action(struct loader *l, void *into,
			     const struct yaml_node *key,
			     const struct yaml_node *value)
{
	static const char *const words[] = {"drop"};
	struct rule_view *view = into;
	size_t i;
	int r =
	    value_word(l->d, key, value, words, ARRAY_SIZE(words), "drop", &i);

	if (r)
		return r;
	name_free(view->other);
	view->other = NULL;
	return 0;
}

int view_load_other(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value)
{
	static const struct key_row rows[] = {
	    {"name", load_other_name},
	    {"action", load_other_action},
	};
	int r = mapping_load(l, into, key, value, rows, ARRAY_SIZE(rows));
	bool has_name, has_action;

	if (r)
		return r;
	has_name = key_find(value, "name", NULL);
	has_action = key_find(value, "action", NULL);
	if (has_name != has_action)
		return 0;
	diag_add(l->d, DIAG_ERROR, key->line, key->column,
		 "\"other\" has %s; give one of them",
		 has_name ? "both a name and an action"
			  : "neither a name nor \"action: drop\"");
	return -EINVAL;
}

int view_load_rules(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value)
{
	struct rule_view *view = into;
	int result = 0;

	if (value->kind != YAML_SEQUENCE || value->n_children == 0)
		return value_refuse(l->d, key, value,
				    "a list with one rule or more, each behind "
				    "a \"- \"");
	if (value->n_children > RULES_MAX) {
		const struct yaml_node *first = value->child[RULES_MAX];

		diag_add(l->d, DIAG_ERROR, first->line, first->column,
			 "more than %d rules", RULES_MAX);
		return -EINVAL;
	}
	view->first = l->rs->n_rules;
	for (size_t i = 0; i < value->n_children; i++) {
		struct rule *rule = ruleset_add_rule(l->rs);
		int r = rule ? rule_load(l, value->child[i], rule) : -ENOMEM;

		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	view->n_rules = l->rs->n_rules - view->first;
	return result;
}

/* Views that need no rules of one's own. */
struct by {
	const char *word;
	const char *name;
	enum rule_key key; /* what its processes must have */
};

static const struct by bys[] = {
    {"user", "{{.Username}}", RULE_ANY},
    {"group", "{{.Groupname}}", RULE_ANY},
    {"unit", "{{.Unit}}", RULE_UNIT},
    {"slice", "{{.Slice}}", RULE_SLICE},
    {"container", "{{.Container|trunc:12}}", RULE_CONTAINER},
    {"pod", "{{.Pod}}", RULE_POD},
};

/* The one rule of such a view. */
static int make_by_rule(struct loader *l, const struct by *by,
			struct rule_view *view, const struct yaml_node *place)
{
	struct str item = by->key == RULE_ANY ? STR("true") : STR("glob:?*");
	struct rule *rule = ruleset_add_rule(l->rs);
	int r;

	if (!rule)
		return -ENOMEM;
	rule->terms.kernel = KERNEL_EITHER;
	rule->children = CHILDREN_NONE;
	rule->collect = view->collect;
	rule->pss = view->pss;
	rule->line = place->line;
	rule->column = place->column;
	view->first = l->rs->n_rules - 1;
	view->n_rules = 1;
	r = rule_terms_add(&rule->terms, by->key, item, l->d, place->line,
			   place->column);
	if (r)
		return r;
	/* Nothing can be left for `other`, which is loaded after this. */
	if (by->key == RULE_ANY) {
		name_free(view->other);
		view->other = NULL;
	}
	r = name_load(l, str_of(by->name), NULL, 0, place, &rule->name);
	return r ? r : rule_set_overflow(l, rule);
}

static int load_by(struct loader *l, void *into, const struct yaml_node *key,
		   const struct yaml_node *value)
{
	const char *words[ARRAY_SIZE(bys)];
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(bys); i++)
		words[i] = bys[i].word;
	r = value_word(l->d, key, value, words, ARRAY_SIZE(words),
		       "user, group, unit, slice, container or pod", &i);
	return r ? r : make_by_rule(l, &bys[i], into, value);
}

static int load_collect(struct loader *l, void *into,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	struct rule_view *view = into;
	const struct collect_into c = {&view->collect, &view->pss, NULL};
	int r = collect_load(l, &c, key, value);

	/* Until the view ends, it is the default of its rules. */
	l->rs->collect = view->collect;
	l->rs->pss = view->pss;
	return r;
}

/* Of all rules that do not say otherwise. */
static int load_max_groups(struct loader *l, void *into _unused_,
			   const struct yaml_node *key,
			   const struct yaml_node *value)
{
	uint64_t n;
	int r = value_number(l->d, key, value, 1, 100000, &n);

	if (!r)
		l->max_groups = (unsigned)n;
	return r;
}

/* What no single key of a view can say. */
static int check_view(struct loader *l, const struct yaml_node *key,
		      const struct yaml_node *value)
{
	bool has_rules, has_by;

	if (value->kind != YAML_MAPPING)
		return -EINVAL; /* it was told */
	has_rules = key_find(value, "rules", NULL);
	has_by = key_find(value, "by", NULL);
	if (has_rules != has_by)
		return 0;
	diag_add(l->d, DIAG_ERROR, key->line, key->column,
		 "view \"%.*s\" has %s; give one of them", EXCERPT(key->text),
		 has_rules ? "both \"rules\" and \"by\""
			   : "neither \"rules\" nor \"by\"");
	return -EINVAL;
}

static bool is_view_name(struct str name)
{
	if (name.n == 0 || name.n > VIEW_NAME_MAX || name.s[0] == '_')
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.s[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      (c >= '0' && c <= '9') || c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* Room for a view of that name; "app" is there from the beginning. */
static int new_view(struct loader *l, const struct yaml_node *key,
		    struct rule_view **ret)
{
	struct ruleset *rs = l->rs;
	struct rule_view *view;

	if (str_eq(key->text, STR("app"))) {
		if (l->has_app) {
			diag_add(l->d, DIAG_ERROR, key->line, key->column,
				 "view \"app\" is what stands below \"rules\" "
				 "or \"process_names\": give one of them");
			return -EINVAL;
		}
		l->has_app = true;
		l->prefix = NULL;
		*ret = &rs->view[0];
		return 0;
	}
	if (!is_view_name(key->text)) {
		diag_add(
		    l->d, DIAG_ERROR, key->line, key->column,
		    "the name of a view has 1 to %d letters, digits, \"-\" "
		    "or \"_\"",
		    VIEW_NAME_MAX);
		return -EINVAL;
	}
	if (rs->n_views == RULE_VIEWS_MAX) {
		diag_add(l->d, DIAG_ERROR, key->line, key->column,
			 "more than %d views, \"app\" among them",
			 RULE_VIEWS_MAX);
		return -EINVAL;
	}
	view = &rs->view[rs->n_views];
	*view = (struct rule_view){.collect = rs->collect, .pss = rs->pss};
	view->name = strndup(key->text.s, key->text.n);
	if (!view->name)
		return -ENOMEM;
	rs->n_views++;
	l->prefix = view->name;
	*ret = view;
	return name_load(l, STR("other"), NULL, 0, key, &view->other);
}

static int load_view(struct loader *l, const struct yaml_node *key,
		     const struct yaml_node *value)
{
	/* What stands first is a default for what follows. */
	static const struct key_row rows[] = {
	    {"collect", load_collect},	{"max_groups", load_max_groups},
	    {"rules", view_load_rules}, {"by", load_by},
	    {"other", view_load_other},
	};
	collect_mask collect = l->rs->collect;
	struct pss_policy pss = l->rs->pss;
	struct rule_view *view;
	int r, e;

	if (value->kind != YAML_MAPPING)
		return value_refuse(l->d, key, value,
				    "a mapping, as {by: user} or {rules: "
				    "[...]}");
	r = new_view(l, key, &view);
	if (r)
		return r;
	r = mapping_load(l, view, key, value, rows, ARRAY_SIZE(rows));
	if (r == -ENOMEM)
		return r;
	e = r ? 0 : check_view(l, key, value);
	l->rs->collect = collect;
	l->rs->pss = pss;
	l->max_groups = 0;
	return e ? e : r;
}

int views_load(struct loader *l, void *into _unused_,
	       const struct yaml_node *key, const struct yaml_node *value)
{
	int result = 0;

	if (value->kind != YAML_MAPPING || value->n_children == 0)
		return value_refuse(l->d, key, value,
				    "a mapping with one view or more, as "
				    "{user: {by: user}}");
	for (size_t i = 0; i + 1 < value->n_children; i += 2) {
		int r = load_view(l, value->child[i], value->child[i + 1]);

		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	l->prefix = NULL;
	return result;
}

/*
 * What stands before the first token may make it a name of another view. The
 * place is the value of the key, if the rule has it.
 */
static int check_name(struct loader *l, const struct name *name,
		      const struct yaml_node *mapping, const char *key)
{
	const struct yaml_node *place = yaml_node_get(mapping, key);
	const char *view;

	view = name ? ruleset_view_of_name(l->rs, name_prefix(name)) : NULL;
	if (!view)
		return 0;
	if (!place)
		place = mapping;
	diag_add(l->d, DIAG_ERROR, place->line, place->column,
		 "\"%.*s\" would be a group of the view \"%s\"; choose a name "
		 "that does not begin with \"%s.\"",
		 EXCERPT(name_template(name)), view, view);
	return -EINVAL;
}

/* Where the rules of the view "app" stand; each item is one rule. */
static const struct yaml_node *find_app(const struct yaml_node *root,
					const struct yaml_node **ret_other)
{
	const struct yaml_node *views = yaml_node_get(root, "views");
	const struct yaml_node *app =
	    views ? yaml_node_get(views, "app") : NULL;
	const struct yaml_node *rules = yaml_node_get(root, "rules");

	*ret_other = yaml_node_get(root, "other");
	if (!rules)
		rules = yaml_node_get(root, "process_names");
	if (rules || !app)
		return rules;
	if (!*ret_other)
		*ret_other = yaml_node_get(app, "other");
	return yaml_node_get(app, "rules");
}

/* Those of the view "app" have none in front. */
static int check_names(struct loader *l, const struct yaml_node *root)
{
	const struct rule_view *app = &l->rs->view[0];
	const struct yaml_node *other, *rules = find_app(root, &other);
	int result = 0;

	if (app->name)
		return 0;
	for (size_t i = 0; rules && i < app->n_rules; i++) {
		const struct rule *rule = &l->rs->rule[app->first + i];
		const struct yaml_node *node = rules->child[i];
		int r = check_name(l, rule->name, node, "name");

		if (!r)
			r = check_name(l, rule->overflow, node, "overflow");
		result = r ? r : result;
	}
	if (other && check_name(l, app->other, other, "name"))
		result = -EINVAL;
	return result;
}

/* The view "app" can have its own, or that of the top level. */
static int check_other(struct loader *l, const struct yaml_node *root)
{
	const struct yaml_node *views = yaml_node_get(root, "views"), *app,
			       *own;
	const struct yaml_node *other, *key;

	app = views ? yaml_node_get(views, "app") : NULL;
	own = app ? yaml_node_get(app, "other") : NULL;
	other = key_find(root, "other", &key);
	if (!own || !other)
		return 0;
	diag_add(l->d, DIAG_ERROR, key->line, key->column,
		 "\"other\" is given twice: the view \"app\" has one in line "
		 "%u",
		 own->line);
	return -EINVAL;
}

int views_check(struct loader *l, const struct yaml_node *root)
{
	int r = check_other(l, root);

	return r ? r : check_names(l, root);
}
