/* SPDX-License-Identifier: MIT */
/*
 * The rule file as a whole: reading it, and its top level. Each mapping is a
 * table with one row per key; rows are loaded in the order of the table, so
 * that defaults are known before rules wherever they stand. One rule is in
 * rulefile-rule.c, single values are in rulefile-value.c.
 *
 * Invariant: after a mistake loading goes on, but the rule set is let go of
 * at the end.
 */
#include "rulefile.h"

#include "bulk.h"
#include "name.h"
#include "rulefile-keys.h"
#include "rulefile-exporter.h"
#include "rulefile-rule.h"
#include "rulefile-terms.h"
#include "rulefile-value.h"
#include "rulefile-view.h"
#include "rulelint.h"
#include "ruletest.h"
#include "yamltree.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
	READ_SIZE = 8192, /* most files are smaller */
};

static int load_version(struct loader *l, void *into _unused_,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	static const char *const words[] = {"1"};
	size_t i;

	return value_word(l->d, key, value, words, ARRAY_SIZE(words), "1", &i);
}

static int load_refresh(struct loader *l, void *into,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	static const struct value_range range = {
	    NSEC_PER_SEC,
	    3600 * NSEC_PER_SEC,
	    "a duration from 1s to 1h",
	};
	struct ruleset *rs = into;

	return value_duration(l->d, key, value, &range, &rs->refresh_ns);
}

static int load_default_collect(struct loader *l, void *into,
				const struct yaml_node *key,
				const struct yaml_node *value)
{
	struct ruleset *rs = into;
	const struct collect_into c = {&rs->collect, &rs->pss,
				       &rs->pss_budget_ppm};
	int r = collect_load(l, &c, key, value);

	rs->view[0].collect = rs->collect;
	rs->view[0].pss = rs->pss;
	return r;
}

static int load_recheck(struct loader *l, void *into,
			const struct yaml_node *key,
			const struct yaml_node *value)
{
	static const struct value_range range = {
	    0,
	    3600 * NSEC_PER_SEC,
	    "a duration from 0s to 1h",
	};
	struct ruleset *rs = into;

	return value_duration(l->d, key, value, &range, &rs->recheck_ns);
}

static int load_idle_timeout(struct loader *l, void *into,
			     const struct yaml_node *key,
			     const struct yaml_node *value)
{
	static const struct value_range range = {
	    NSEC_PER_SEC,
	    UINT64_C(366) * 24 * 3600 * NSEC_PER_SEC,
	    "a duration from 1s to a year",
	};
	struct ruleset *rs = into;

	return value_duration(l->d, key, value, &range, &rs->idle_ns);
}

static int load_default_children(struct loader *l, void *into,
				 const struct yaml_node *key,
				 const struct yaml_node *value)
{
	struct ruleset *rs = into;

	return children_load(l, key, value, &rs->children);
}

static int load_managers(struct loader *l, void *into,
			 const struct yaml_node *key,
			 const struct yaml_node *value)
{
	struct ruleset *rs = into;

	l->has_managers = true;
	return matchers_load(l, key, value, &rs->manager, &rs->n_managers,
			     &rs->manager_cap);
}

static int load_interpreters(struct loader *l, void *into,
			     const struct yaml_node *key,
			     const struct yaml_node *value)
{
	struct ruleset *rs = into;

	l->has_interpreters = true;
	return matchers_load(l, key, value, &rs->interpreter,
			     &rs->n_interpreters, &rs->interpreter_cap);
}

static int load_groups(struct loader *l, void *into,
		       const struct yaml_node *key,
		       const struct yaml_node *value)
{
	struct ruleset *rs = into;
	uint64_t n;
	int r = value_number(l->d, key, value, 1, 100000, &n);

	if (!r)
		rs->limits.groups = (unsigned)n;
	return r;
}

static int load_cmdline_limit(struct loader *l, void *into,
			      const struct yaml_node *key,
			      const struct yaml_node *value)
{
	static const struct value_range range = {
	    256,
	    1 << 20,
	    "a size from 256B to 1MiB",
	};
	struct ruleset *rs = into;
	uint64_t n;
	int r = value_size(l->d, key, value, &range, &n);

	if (!r)
		rs->limits.cmdline = n;
	return r;
}

static int load_kept_fds(struct loader *l, void *into,
			 const struct yaml_node *key,
			 const struct yaml_node *value)
{
	struct rule_limits *limits = &((struct ruleset *)into)->limits;
	uint64_t n = 0;
	bool is_auto =
	    value->kind == YAML_SCALAR && str_eq(value->text, STR("auto"));
	int r = 0;

	if (!is_auto)
		r = value_number(l->d, key, value, 0, 1000000, &n);
	if (r)
		return r;
	limits->kept_fds = (unsigned)n;
	limits->kept_fds_set = !is_auto;
	return 0;
}

static int load_exit_records(struct loader *l, void *into,
			     const struct yaml_node *key,
			     const struct yaml_node *value)
{
	struct ruleset *rs = into;
	bool is_auto =
	    value->kind == YAML_SCALAR && str_eq(value->text, STR("auto"));
	bool on = true;
	int r = 0;

	if (!is_auto && !value_is_bool(value, &on))
		r = value_refuse(l->d, key, value, "auto, or off");
	if (!r)
		rs->limits.no_exits = !on;
	return r;
}

static int load_gate(struct loader *l, void *into, const struct yaml_node *key,
		     const struct yaml_node *value)
{
	struct ruleset *rs = into;

	return value_bool(l->d, key, value, &rs->gate);
}

static int load_defaults(struct loader *l, void *into,
			 const struct yaml_node *key,
			 const struct yaml_node *value)
{
	static const struct key_row rows[] = {
	    {"children", load_default_children},
	    {"collect", load_default_collect},
	    {"idle_timeout", load_idle_timeout},
	    {"recheck", load_recheck},
	    {"refresh", load_refresh},
	};

	return mapping_load(l, into, key, value, rows, ARRAY_SIZE(rows));
}

static int load_limits(struct loader *l, void *into,
		       const struct yaml_node *key,
		       const struct yaml_node *value)
{
	static const struct key_row rows[] = {
	    {"groups", load_groups},
	    {"cmdline", load_cmdline_limit},
	    {"kept_fds", load_kept_fds},
	    {"exit_records", load_exit_records},
	};

	return mapping_load(l, into, key, value, rows, ARRAY_SIZE(rows));
}

static int load_sampling(struct loader *l, void *into,
			 const struct yaml_node *key,
			 const struct yaml_node *value)
{
	static const struct key_row rows[] = {
	    {"gate", load_gate},
	};

	return mapping_load(l, into, key, value, rows, ARRAY_SIZE(rows));
}

/* They are run when all rules are known. */
static int load_tests(struct loader *l, void *into _unused_,
		      const struct yaml_node *key _unused_,
		      const struct yaml_node *value)
{
	l->tests = value;
	return 0;
}

static int load_rules(struct loader *l, void *into, const struct yaml_node *key,
		      const struct yaml_node *value)
{
	struct ruleset *rs = into;

	if (l->has_app) {
		diag_add(l->d, DIAG_ERROR, key->line, key->column,
			 "a file has \"rules\" or \"process_names\", not "
			 "both");
		return -EINVAL;
	}
	l->has_app = true;
	return view_load_rules(l, &rs->view[0], key, value);
}

static int load_other(struct loader *l, void *into, const struct yaml_node *key,
		      const struct yaml_node *value)
{
	struct ruleset *rs = into;

	if (!l->has_app && rs->n_views > 1) {
		diag_add(l->d, DIAG_ERROR, key->line, key->column,
			 "\"other\" belongs to \"rules\", which are not there; "
			 "a view has one of its own");
		return -EINVAL;
	}
	return view_load_other(l, &rs->view[0], key, value);
}

/* Lists that the file does not have. */
static int add_defaults(struct loader *l)
{
	int r = 0;

	/* process-exporter knows no managers: all children inherit. */
	if (l->has_managers || !l->is_exporter)
		l->rs->init_gives = false;
	else
		l->rs->init_gives = true;
	if (!l->has_managers && !l->is_exporter)
		r = ruleset_default_managers(l->rs);
	if (!r && !l->has_interpreters)
		r = ruleset_default_interpreters(l->rs);
	return r;
}

/* Only views with names: there is no view "app" then. */
static void drop_app(struct ruleset *rs)
{
	name_free(rs->view[0].other);
	rs->n_views--;
	memmove(&rs->view[0], &rs->view[1], rs->n_views * sizeof(rs->view[0]));
	rs->view[rs->n_views] = (struct rule_view){0};
}

static int load_file(struct loader *l, const struct yaml_node *root)
{
	/* In this order: what is a default comes before what it is one of. */
	static const struct key_row rows[] = {
	    {"version", load_version},
	    {"defaults", load_defaults},
	    {"limits", load_limits},
	    {"sampling", load_sampling},
	    {"managers", load_managers},
	    {"interpreters", load_interpreters},
	    {"process_names", process_names_load},
	    {"rules", load_rules},
	    {"views", views_load},
	    {"other", load_other},
	    {"tests", load_tests},
	};
	int r;

	if (root->kind != YAML_MAPPING) {
		diag_add(l->d, DIAG_ERROR, root->line, root->column,
			 "a rule file is a mapping with the key \"rules\"%s",
			 root->kind == YAML_SEQUENCE
			     ? "; put \"rules:\" above this list"
			     : "");
		return -EINVAL;
	}
	/* Those who wrote it for process-exporter never heard of a mistake. */
	l->lenient = key_find(root, "process_names", NULL);
	r = mapping_load(l, l->rs, NULL, root, rows, ARRAY_SIZE(rows));
	if (r)
		return r;
	if (!l->has_app && l->rs->n_views == 1) {
		diag_add(l->d, DIAG_ERROR, root->line, root->column,
			 "the key \"rules\" is missing");
		return -EINVAL;
	}
	if (!l->has_app)
		drop_app(l->rs);
	r = views_check(l, root);
	return r ? r : add_defaults(l);
}

static int load_text(struct str text, struct diag *d, struct ruleset *rs)
{
	struct loader l = {.d = d, .rs = rs};
	struct yaml_tree *tree;
	int r = yaml_tree_parse(text, d, &tree);

	if (r)
		return r;
	r = load_file(&l, yaml_tree_root(tree));
	if (!r)
		r = ruleset_seal(rs);
	if (!r && l.tests)
		r = ruletest_run(rs, l.tests, d);
	if (!r && !d->n_errors)
		r = rulelint_run(rs, d);
	yaml_tree_free(tree);
	return r;
}

int rulefile_parse(struct str text, struct diag *d, struct ruleset **ret)
{
	struct ruleset *rs = ruleset_new();
	size_t n_errors = d->n_errors;
	int r;

	if (!rs)
		return -ENOMEM;
	r = load_text(text, d, rs);
	if (!r && d->n_errors > n_errors)
		r = -EINVAL;
	diag_sort(d);
	if (r)
		ruleset_free(rs);
	else
		*ret = rs;
	return r;
}

/* Whatever stands at the path: nothing here may wait for anybody. */
static int open_regular(const char *path, int *ret_fd)
{
	_cleanup_close_ int fd =
	    open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -ENODEV;
	*ret_fd = steal_fd(&fd);
	return 0;
}

/*
 * Reads all of it, but for what is beyond the one byte more than is allowed: by
 * that the parser sees that it is too large. Not into memory of malloc's: who
 * frees a large block makes it keep more of what is freed later, in the whole
 * program.
 */
static int read_whole(int fd, char **buf, size_t *cap, size_t *ret_n)
{
	const size_t most = YAMLTREE_BYTES_MAX + 1;
	size_t n = 0;
	ssize_t got = 1;

	while (got != 0 && n < most) {
		if (bulk_reserve(buf, cap, n + READ_SIZE, 1) < 0)
			return -ENOMEM;
		got = read(fd, *buf + n, MIN(*cap, most) - n);
		if (got < 0 && errno != EINTR)
			return -errno;
		n += got > 0 ? (size_t)got : 0;
	}
	*ret_n = n;
	return 0;
}

int rulefile_load(const char *path, struct diag *d, struct ruleset **ret)
{
	_cleanup_close_ int fd = -1;
	size_t cap = 0, n = 0;
	char *buf = NULL;
	int r = open_regular(path, &fd);

	if (r == -ENODEV) {
		diag_add(d, DIAG_ERROR, 0, 0, "not a regular file");
		return -EINVAL;
	}
	if (r == 0)
		r = read_whole(fd, &buf, &cap, &n);
	if (r == 0) {
		r = rulefile_parse((struct str){buf, n}, d, ret);
	} else {
		errno = -r;
		diag_add(d, DIAG_ERROR, 0, 0, "%m");
	}
	bulk_free(&buf, &cap, 1);
	return r;
}
