/* SPDX-License-Identifier: MIT */
/*
 * Processes that somebody made up, as a test tells them. What it does not say
 * is what is usual: a process without a command line has its comm for one.
 */
#include "ruletest-internal.h"

#include "cgroup.h"
#include "rulefile-value.h"

#include <stdio.h>

enum {
	COMM_MAX = 15,
	PID_FIRST = 1000, /* of made-up processes */
};

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
int ruletest_load_process(struct test *t, const struct yaml_node *key,
			  const struct yaml_node *node)
{
	static const char *const more[] = {"parent", "expect", "view"};
	struct loader *l = t->l;
	struct key_names names = {0};
	const struct yaml_node *parent, *parent_key;
	struct process *p;
	int r;

	if (t->n == RULETEST_GENERATIONS_MAX) {
		diag_add(l->d, DIAG_ERROR, node->line, node->column,
			 "more than %d generations", RULETEST_GENERATIONS_MAX);
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
	return parent ? ruletest_load_process(t, parent_key, parent) : 0;
}
