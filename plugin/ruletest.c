/* SPDX-License-Identifier: MIT */
#include "ruletest.h"

#include "cgroup.h"
#include "clocks.h"
#include "inherit.h"
#include "name.h"
#include "rulefile-keys.h"
#include "rulefile-value.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	GENERATIONS_MAX = 16,
	COMM_MAX = 15,
	PID_FIRST = 1000, /* of made-up processes */
	BUDGET_S = 3,	  /* CPU time of all tests: collectd waits for them */
};

/* When the tests began. */
struct budget {
	uint64_t begin_ns;
};

static bool budget_is_spent(const struct budget *b)
{
	return clocks_thread_cpu() - b->begin_ns >= BUDGET_S * NSEC_PER_SEC;
}

/* One made-up process; what its strings point into is its own. */
struct process {
	struct subject subject;
	char *raw, *argv0, *cgroup_text;
	struct kin_text text[RULE_CAPTURES_MAX];
	size_t n_texts;
	uint64_t traits;
	struct heritage heritage;
	struct name_result name;
	const struct rule *rule; /* that took it, or its ancestor */
};

/* A test: a process and its ancestors, [0] the one it is about. */
struct test {
	struct loader *l;
	struct process line[GENERATIONS_MAX];
	size_t n;
	size_t view;
	const struct yaml_node *expect;
};

static void test_done(struct test *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->line[i].raw);
		free(t->line[i].argv0);
		free(t->line[i].cgroup_text);
	}
}

static int load_text(struct loader *l, const struct yaml_node *key,
		     const struct yaml_node *value, struct str *ret)
{
	return value_text(l->d, key, value, NULL, ret);
}

static int load_comm(struct loader *l, void *into, const struct yaml_node *key,
		     const struct yaml_node *value)
{
	struct process *p = into;

	return value_text(l->d, key, value, "", &p->subject.comm);
}

/* Arguments with a NUL behind each. */
static int set_raw(struct process *p, const struct str *arg, size_t n)
{
	size_t size = 0;
	char *at;

	for (size_t i = 0; i < n; i++)
		size += arg[i].n + 1;
	p->raw = malloc(size + 1);
	p->argv0 = malloc(size + 1);
	if (!p->raw || !p->argv0)
		return -ENOMEM;
	at = p->raw;
	for (size_t i = 0; i < n; i++) {
		if (arg[i].n)
			memcpy(at, arg[i].s, arg[i].n);
		at += arg[i].n;
		*at++ = '\0';
	}
	subject_set_cmdline(&p->subject, p->raw, size, p->argv0, size);
	p->subject.have |= SUBJECT_BIT(SUBJECT_CMDLINE);
	return 0;
}

static int load_arguments(struct loader *l, struct process *p,
			  const struct yaml_node *key,
			  const struct yaml_node *list)
{
	_cleanup_free_ struct str *arg =
	    calloc(list->n_children + 1, sizeof(*arg));

	if (!arg)
		return -ENOMEM;
	for (size_t i = 0; i < list->n_children; i++) {
		if (list->child[i]->kind != YAML_SCALAR)
			return value_refuse(l->d, key, list->child[i],
					    "a text");
		arg[i] = list->child[i]->text;
	}
	return set_raw(p, arg, list->n_children);
}

/* A text: each blank ends an argument. */
static int split_arguments(struct process *p, struct str text)
{
	_cleanup_free_ struct str *arg = calloc(text.n + 1, sizeof(*arg));
	size_t n = 0;

	if (!arg)
		return -ENOMEM;
	for (size_t i = 0, begin = 0; i <= text.n; i++) {
		if (i < text.n && text.s[i] != ' ')
			continue;
		if (i > begin)
			arg[n++] = (struct str){text.s + begin, i - begin};
		begin = i + 1;
	}
	return set_raw(p, arg, n);
}

static int load_cmdline(struct loader *l, void *into,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	struct process *p = into;

	if (value->kind == YAML_SEQUENCE)
		return load_arguments(l, p, key, value);
	if (value->kind != YAML_SCALAR)
		return value_refuse(l->d, key, value,
				    "a text, or a list of arguments");
	return split_arguments(p, value->text);
}

static int load_exe_path(struct loader *l, void *into,
			 const struct yaml_node *key,
			 const struct yaml_node *value)
{
	struct process *p = into;

	p->subject.have |= SUBJECT_BIT(SUBJECT_EXE);
	return load_text(l, key, value, &p->subject.exe_path);
}

static int load_user(struct loader *l, void *into, const struct yaml_node *key,
		     const struct yaml_node *value)
{
	struct process *p = into;

	return value_text(l->d, key, value, ", or use uid", &p->subject.user);
}

static int load_group(struct loader *l, void *into, const struct yaml_node *key,
		      const struct yaml_node *value)
{
	struct process *p = into;

	return value_text(l->d, key, value, ", or use gid", &p->subject.group);
}

static int load_id(struct loader *l, const struct yaml_node *key,
		   const struct yaml_node *value, uint32_t *ret)
{
	uint64_t n;
	int r = value_number(l->d, key, value, 0, UINT32_MAX, &n);

	if (!r)
		*ret = (uint32_t)n;
	return r;
}

static int load_uid(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value)
{
	struct process *p = into;

	return load_id(l, key, value, &p->subject.uid);
}

static int load_gid(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value)
{
	struct process *p = into;

	return load_id(l, key, value, &p->subject.gid);
}

/* A path, or the text of the whole file. */
static int load_cgroup(struct loader *l, void *into,
		       const struct yaml_node *key,
		       const struct yaml_node *value)
{
	struct process *p = into;
	struct cgroup_names names;
	struct str text;
	int r = load_text(l, key, value, &text), n;

	if (r)
		return r;
	n = asprintf(&p->cgroup_text, "%s%.*s\n", text.s[0] == '/' ? "0::" : "",
		     (int)text.n, text.s);
	if (n < 0) {
		p->cgroup_text = NULL;
		return -ENOMEM;
	}
	if (cgroup_parse((struct str){p->cgroup_text, (size_t)n}, &names))
		return value_refuse(l->d, key, value,
				    "a path, or lines as in "
				    "/proc/PID/cgroup");
	p->subject.cgroup_file = (struct str){p->cgroup_text, (size_t)n};
	p->subject.cgroup = names.path;
	p->subject.unit = names.unit;
	p->subject.slice = names.slice;
	p->subject.container = names.container;
	p->subject.pod = names.pod;
	p->subject.have |= SUBJECT_BIT(SUBJECT_CGROUP);
	return 0;
}

static int load_kernel(struct loader *l, void *into,
		       const struct yaml_node *key,
		       const struct yaml_node *value)
{
	struct process *p = into;

	return value_bool(l->d, key, value, &p->subject.kernel);
}

static int load_pid(struct loader *l, void *into, const struct yaml_node *key,
		    const struct yaml_node *value)
{
	struct process *p = into;
	uint64_t n;
	int r = value_number(l->d, key, value, 1, 4194304, &n);

	if (!r)
		p->subject.pid = (pid_t)n;
	return r;
}

static int load_start_time(struct loader *l, void *into,
			   const struct yaml_node *key,
			   const struct yaml_node *value)
{
	struct process *p = into;

	return value_number(l->d, key, value, 0, INT64_MAX,
			    &p->subject.start_time);
}

/* It is the one that this file names. */
static int load_pidfile(struct loader *l, void *into,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	struct process *p = into;
	struct str path;
	int r = load_text(l, key, value, &path);

	for (size_t i = 0; !r && i < l->rs->n_pidfiles; i++)
		if (str_eq(str_of(l->rs->pidfile[i].path), path)) {
			l->rs->pidfile[i].pid = p->subject.pid;
			return 0;
		}
	return r ? r : value_refuse(l->d, key, value, "a pidfile of some rule");
}

/* What a file says of a process; the pid before the files that name it. */
static const struct key_row process_rows[] = {
    {"comm", load_comm},	 {"cmdline", load_cmdline},
    {"exe_path", load_exe_path}, {"user", load_user},
    {"uid", load_uid},		 {"group", load_group},
    {"gid", load_gid},		 {"cgroup", load_cgroup},
    {"kernel", load_kernel},	 {"pid", load_pid},
    {"pidfile", load_pidfile},	 {"start_time", load_start_time},
};

/* What is usual where the test says nothing. */
static int fill_in(struct loader *l, struct process *p,
		   const struct yaml_node *node)
{
	struct subject *s = &p->subject;

	if (!s->comm.n) {
		s->comm = s->exe;
		s->comm.n = MIN(s->comm.n, (size_t)COMM_MAX);
	}
	if (!s->comm.n) {
		diag_add(l->d, DIAG_ERROR, node->line, node->column,
			 "a test needs \"comm\" or \"cmdline\"");
		return -EINVAL;
	}
	if (!s->kernel && s->comm.n > COMM_MAX) {
		const struct yaml_node *comm = yaml_node_get(node, "comm");

		diag_add(l->d, DIAG_ERROR, comm->line, comm->column,
			 "comm \"%.*s\" is longer than %d bytes: no process "
			 "has such a name",
			 EXCERPT(s->comm), COMM_MAX);
		return -EINVAL;
	}
	if (s->kernel) {
		s->have |= SUBJECT_BIT(SUBJECT_CMDLINE); /* an empty one */
		s->absent |= SUBJECT_BIT(SUBJECT_EXE) & ~s->have;
	} else if (!(s->have & SUBJECT_BIT(SUBJECT_CMDLINE))) {
		int r = set_raw(p, &s->comm, 1);

		if (r)
			return r;
	}
	if (!(s->have & SUBJECT_BIT(SUBJECT_EXE)) && s->argv0.n &&
	    s->argv0.s[0] == '/') {
		s->exe_path = s->argv0;
		s->have |= SUBJECT_BIT(SUBJECT_EXE);
	}
	if (!s->user.n)
		s->user = s->uid == 0 ? STR("root") : STR("unknown");
	else if (!yaml_node_get(node, "uid"))
		s->uid = str_eq(s->user, STR("root")) ? 0 : UINT32_MAX;
	if (!s->group.n)
		s->group = s->gid == 0 ? STR("root") : STR("unknown");
	else if (!yaml_node_get(node, "gid"))
		s->gid = str_eq(s->group, STR("root")) ? 0 : UINT32_MAX;
	s->have |= SUBJECT_BIT(SUBJECT_STAT) | SUBJECT_BIT(SUBJECT_OWNER);
	ruleset_check_script(l->rs, s);
	return 0;
}

static bool find_kin(struct subject *s, bool parent, uint64_t traits,
		     struct subject_kin *ret)
{
	const struct test *t = s->arg;
	size_t i = 1;

	while (&t->line[i - 1].subject != s)
		i++;
	for (; i < t->n; i++) {
		const struct process *p = &t->line[i];

		if (p->traits & traits) {
			*ret = (struct subject_kin){
			    .comm = p->subject.comm,
			    .text = p->text,
			    .n_texts = p->n_texts,
			};
			return true;
		}
		if (parent)
			break;
	}
	return false;
}

/* The mapping of one process, and of the parent below it. */
static int load_process(struct test *t, const struct yaml_node *key,
			const struct yaml_node *node)
{
	static const char *const more[] = {"parent", "expect", "view"};
	struct loader *l = t->l;
	struct key_names names = {0};
	const struct yaml_node *parent, *parent_key;
	struct process *p;
	int r;

	if (t->n == GENERATIONS_MAX) {
		diag_add(l->d, DIAG_ERROR, node->line, node->column,
			 "more than %d generations", GENERATIONS_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(process_rows); i++)
		key_names_add(&names, process_rows[i].name);
	for (size_t i = 0; i < (t->n ? 1 : ARRAY_SIZE(more)); i++)
		key_names_add(&names, more[i]);
	p = &t->line[t->n];
	p->subject = (struct subject){
	    .arg = t,
	    .find_kin = find_kin,
	    .pid = PID_FIRST - (pid_t)t->n,
	};
	t->n++;
	r = keys_check(l, key, node, &names);
	if (r)
		return r;
	r = keys_load(l, p, node, process_rows, ARRAY_SIZE(process_rows));
	if (!r)
		r = fill_in(l, p, node);
	if (r)
		return r;
	parent = key_find(node, "parent", &parent_key);
	return parent ? load_process(t, parent_key, parent) : 0;
}

static void learn_traits(struct test *t, size_t i)
{
	struct ruleset *rs = t->l->rs;
	struct process *p = &t->line[i];
	struct rule_traits traits;

	if (i + 1 < t->n) {
		const struct process *up = &t->line[i + 1];

		p->subject.parent_traits = up->traits;
		p->subject.ancestor_traits = up->traits;
		if (!ruleset_is_manager(rs, up->subject.comm))
			p->subject.ancestor_traits |=
			    up->subject.ancestor_traits;
	}
	p->subject.have |= SUBJECT_BIT(SUBJECT_KIN);
	ruleset_traits(rs, &p->subject, &traits);
	p->traits = traits.holds;
	for (unsigned k = 0; k < traits.n_captures; k++)
		p->text[p->n_texts++] = (struct kin_text){
		    traits.capture[k].trait,
		    traits.capture[k].text.name,
		    traits.capture[k].text.value,
		};
}

/* What no rule takes. */
static void inherit(struct test *t, size_t i)
{
	struct ruleset *rs = t->l->rs;
	const struct name *other = rs->view[t->view].other;
	struct process *p = &t->line[i];

	for (size_t up = i + 1; up < t->n; up++) {
		const struct process *from = &t->line[up];
		enum inherit_step step;

		if (ruleset_is_manager(rs, from->subject.comm) ||
		    (from->subject.pid == 1 && !rs->init_gives))
			break;
		step = inherit_from(&from->heritage, (unsigned)(up - i));
		if (step == INHERIT_GO_ON)
			continue;
		p->heritage = inherit_take(&from->heritage, (unsigned)(up - i));
		if (step == INHERIT_DROP)
			p->heritage.how = HERITAGE_DROPPED;
		p->name = from->name;
		p->rule = from->rule;
		return;
	}
	p->heritage.how = HERITAGE_OTHER;
	if (other)
		name_expand(other, &p->subject, NULL, &p->name);
	else
		strcpy(p->name.text, "drop");
}

static void place(struct test *t, size_t i)
{
	struct process *p = &t->line[i];
	struct rule_verdict v;

	learn_traits(t, i);
	ruleset_match(t->l->rs, t->view, &p->subject, &v);
	p->rule = v.rule;
	p->heritage = (struct heritage){0};
	switch (v.action) {
	case ACTION_GROUP:
		p->heritage.how = HERITAGE_MATCHED;
		p->heritage.children = v.rule->children;
		name_expand(v.rule->name, &p->subject, &v, &p->name);
		break;
	case ACTION_DROP:
		p->heritage.how = HERITAGE_DROPPED;
		strcpy(p->name.text, "drop");
		break;
	case ACTION_LEAVE:
		inherit(t, i);
		break;
	}
}

static int judge(struct test *t)
{
	const struct process *p = &t->line[0];
	const struct yaml_node *e = t->expect;
	char why[64] = "no rule takes it";

	if (str_eq(e->text, str_of(p->name.text)))
		return 0;
	if (p->rule)
		snprintf(why, sizeof(why), "by the rule of line %u%s",
			 p->rule->line, p->heritage.depth ? ", inherited" : "");
	diag_add(t->l->d, DIAG_ERROR, e->line, e->column,
		 "test failed: the process comes to \"%s\" (%s), not to "
		 "\"%.*s\"",
		 p->name.text, why, EXCERPT(e->text));
	return -EINVAL;
}

static int find_view(struct loader *l, const struct yaml_node *node,
		     size_t *ret)
{
	const struct yaml_node *key, *value = key_find(node, "view", &key);
	struct str name = value ? value->text : STR("app");
	char want[256];
	size_t n = 0;

	for (size_t i = 0; i < l->rs->n_views; i++) {
		const char *own = l->rs->view[i].name;

		if (str_eq(name, str_of(own ? own : "app"))) {
			*ret = i;
			return 0;
		}
	}
	*ret = 0;
	if (!value)
		return 0;
	for (size_t i = 0; i < l->rs->n_views; i++) {
		const char *own = l->rs->view[i].name;

		n += (size_t)snprintf(want + n, sizeof(want) - n, "%s%s",
				      i ? ", " : "the name of a view (",
				      own ? own : "app");
	}
	snprintf(want + n, sizeof(want) - n, ")");
	return value_refuse(l->d, key, value, want);
}

static int load_expect(struct test *t, const struct yaml_node *node)
{
	struct loader *l = t->l;
	const struct yaml_node *key;
	struct str text;

	t->expect = key_find(node, "expect", &key);
	if (t->expect)
		return value_text(l->d, key, t->expect, "", &text);
	diag_add(l->d, DIAG_ERROR, node->line, node->column,
		 "a test needs \"expect\": the name of a group, or drop");
	return -EINVAL;
}

/* The rule whose patterns were cut off most often; NULL if none was. */
static const struct rule *find_costly(const struct ruleset *rs)
{
	const struct rule *most = NULL;

	for (size_t i = 0; i < rs->n_rules; i++)
		if (rs->rule[i].n_regex_limit >
		    (most ? most->n_regex_limit : 0))
			most = &rs->rule[i];
	return most;
}

static int tell_spent(struct loader *l, const struct yaml_node *node)
{
	const struct rule *costly = find_costly(l->rs);
	char where[96] = "";

	if (costly)
		snprintf(where, sizeof(where),
			 ": a pattern of the rule of line %u takes too many "
			 "steps",
			 costly->line);
	diag_add(l->d, DIAG_ERROR, node->line, node->column,
		 "the tests up to this one took %d s of CPU time, which is all "
		 "that they may%s",
		 BUDGET_S, where);
	return -EINVAL;
}

static int run_test(struct loader *l, const struct budget *b,
		    const struct yaml_node *node)
{
	_cleanup_(test_done) struct test t = {.l = l};
	int r = load_process(&t, NULL, node), e = 0;

	if (r == -ENOMEM || node->kind != YAML_MAPPING)
		return r;
	/* What is missing may be what was written in another way. */
	if (!r || yaml_node_get(node, "expect"))
		e = load_expect(&t, node);
	if (!r && !e)
		r = find_view(l, node, &t.view);
	if (r || e)
		return r ? r : e;
	for (size_t i = t.n; i-- > 0;) {
		if (budget_is_spent(b))
			return 0; /* the caller tells it */
		place(&t, i);
	}
	return judge(&t);
}

int ruletest_run(struct ruleset *rs, const struct yaml_node *tests,
		 struct diag *d)
{
	struct loader l = {.d = d, .rs = rs};
	const struct budget budget = {clocks_thread_cpu()};
	int result = 0;

	if (tests->kind != YAML_SEQUENCE) {
		diag_add(d, DIAG_ERROR, tests->line, tests->column,
			 "\"tests\" must be a list of mappings");
		return -EINVAL;
	}
	for (size_t i = 0; i < tests->n_children; i++) {
		const struct yaml_node *node = tests->child[i];
		int r = run_test(&l, &budget, node);

		for (size_t k = 0; k < rs->n_pidfiles; k++)
			rs->pidfile[k].pid = 0;
		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
		if (budget_is_spent(&budget)) {
			result = tell_spent(&l, node);
			break;
		}
	}
	for (size_t i = 0; i < rs->n_rules; i++)
		rs->rule[i].n_regex_limit = 0;
	rs->n_regex_limit = 0;
	return result;
}
