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

#include "name.h"
#include "rulefile-keys.h"
#include "rulefile-rule.h"
#include "rulefile-value.h"
#include "yamltree.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
	RULES_MAX = 10000,
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

	return collect_load(l, &rs->collect, key, value);
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
	    {"collect", load_default_collect},
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

static int load_other_name(struct loader *l, void *into,
			   const struct yaml_node *key,
			   const struct yaml_node *value)
{
	struct ruleset *rs = into;
	struct name *name;
	struct str text;
	int r = name_text(l, key, value, &text);

	if (r)
		return r;
	r = name_compile(text, NULL, 0, l->d, value->line, value->column,
			 &name);
	if (r)
		return r;
	name_free(rs->other);
	rs->other = name;
	return 0;
}

static int load_other_action(struct loader *l, void *into,
			     const struct yaml_node *key,
			     const struct yaml_node *value)
{
	static const char *const words[] = {"drop"};
	struct ruleset *rs = into;
	size_t i;
	int r =
	    value_word(l->d, key, value, words, ARRAY_SIZE(words), "drop", &i);

	if (r)
		return r;
	name_free(rs->other);
	rs->other = NULL;
	return 0;
}

static int load_other(struct loader *l, void *into, const struct yaml_node *key,
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

static int load_rules(struct loader *l, void *into, const struct yaml_node *key,
		      const struct yaml_node *value)
{
	struct ruleset *rs = into;
	int result = 0;

	if (value->kind != YAML_SEQUENCE || value->n_children == 0)
		return value_refuse(l->d, key, value,
				    "a list with one rule or more");
	if (value->n_children > RULES_MAX) {
		const struct yaml_node *first = value->child[RULES_MAX];

		diag_add(l->d, DIAG_ERROR, first->line, first->column,
			 "more than %d rules", RULES_MAX);
		return -EINVAL;
	}
	rs->rule = calloc(value->n_children, sizeof(rs->rule[0]));
	if (!rs->rule)
		return -ENOMEM;
	for (size_t i = 0; i < value->n_children; i++) {
		int r = rule_load(l, value->child[i], &rs->rule[rs->n_rules++]);

		if (r == -ENOMEM)
			return r;
		if (r)
			result = r;
	}
	return result;
}

static int load_file(struct loader *l, const struct yaml_node *root)
{
	static const struct key_row rows[] = {
	    {"version", load_version}, {"defaults", load_defaults},
	    {"limits", load_limits},   {"sampling", load_sampling},
	    {"rules", load_rules},     {"other", load_other},
	};
	int r;

	if (root->kind != YAML_MAPPING) {
		diag_add(l->d, DIAG_ERROR, root->line, root->column,
			 "a rule file is a mapping with the key \"rules\"");
		return -EINVAL;
	}
	r = mapping_load(l, l->rs, NULL, root, rows, ARRAY_SIZE(rows));
	if (r)
		return r;
	if (key_find(root, "rules", NULL))
		return 0;
	diag_add(l->d, DIAG_ERROR, root->line, root->column,
		 "the key \"rules\" is missing");
	return -EINVAL;
}

static int load_text(struct str text, struct diag *d, struct ruleset *rs)
{
	struct loader l = {d, rs};
	struct yaml_tree *tree;
	int r = yaml_tree_parse(text, d, &tree);

	if (r)
		return r;
	r = load_file(&l, yaml_tree_root(tree));
	yaml_tree_free(tree);
	return r ? r : ruleset_seal(rs);
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

/* Reads up to `size` bytes; a file that grows meanwhile is read so far. */
static ssize_t read_whole(int fd, char *buf, size_t size)
{
	size_t n = 0;

	while (n < size) {
		ssize_t got = read(fd, buf + n, size - n);

		if (got == 0)
			break;
		if (got > 0)
			n += (size_t)got;
		else if (errno != EINTR)
			return -errno;
	}
	return (ssize_t)n;
}

int rulefile_load(const char *path, struct diag *d, struct ruleset **ret)
{
	/* One more than is allowed, so that the parser sees what is not. */
	size_t size = YAMLTREE_BYTES_MAX + 1;
	_cleanup_free_ char *buf = malloc(size);
	_cleanup_close_ int fd = -1;
	ssize_t n;
	int r;

	if (!buf)
		return -ENOMEM;
	r = open_regular(path, &fd);
	if (r == -ENODEV) {
		diag_add(d, DIAG_ERROR, 0, 0, "not a regular file");
		return -EINVAL;
	}
	n = r ? r : read_whole(fd, buf, size);
	if (n < 0) {
		errno = (int)-n;
		diag_add(d, DIAG_ERROR, 0, 0, "%m");
		return -EINVAL;
	}
	return rulefile_parse((struct str){buf, (size_t)n}, d, ret);
}
