/* SPDX-License-Identifier: MIT */
/*
 * Single patterns: those that match nothing of what their key can be, and
 * those that are compared in another way than they look. Each check is a row
 * of a table; the first that finds something speaks, and no other does.
 */
#include "rulelint-internal.h"

#include "cgroup.h"
#include "rulefile-value.h"

enum {
	COMM_MAX = 15,	    /* TASK_COMM_LEN - 1; kernel threads have more */
	DIR_NAME_MAX = 255, /* units, slices, containers and pods are such */
	SUFFIX_MAX = 5,	    /* of a file's name */
};

static struct str text_of(const struct lint_item *i)
{
	return (struct str){i->m->text, i->m->text_len};
}

static bool has(struct str text, struct str part)
{
	return text.n && memmem(text.s, text.n, part.s, part.n);
}

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool is_cmdline(const struct lint_item *i)
{
	return i->key == RULE_CMDLINE || i->key == RULE_CMDLINE_ALL;
}

/* The byte that each text begins with which is taken; -1 if there is none. */
static int first_byte(const struct lint_item *i)
{
	const struct shape *s = i->shape;

	return s->n && s->token[0] < SHAPE_ANY ? s->token[0] : -1;
}

static bool has_late_begin(const struct lint *l _unused_,
			   const struct lint_item *i)
{
	return i->shape->fault == SHAPE_LATE_BEGIN;
}

static bool has_early_end(const struct lint *l _unused_,
			  const struct lint_item *i)
{
	return i->shape->fault == SHAPE_EARLY_END;
}

static bool takes_empty_alone(const struct lint *l _unused_,
			      const struct lint_item *i)
{
	return i->shape->n == 0 && i->key != RULE_COMM && !i->exporter;
}

static bool needs_control_byte(const struct lint *l _unused_,
			       const struct lint_item *i)
{
	for (size_t k = 0; k < i->shape->n && is_cmdline(i); k++)
		if (i->shape->token[k] < ' ' || i->shape->token[k] == 0x7f)
			return true;
	return false;
}

static bool is_relative_exe_path(const struct lint *l _unused_,
				 const struct lint_item *i)
{
	return i->key == RULE_EXE_PATH && first_byte(i) >= 0 &&
	       first_byte(i) != '/';
}

static bool is_relative_cgroup(const struct lint *l _unused_,
			       const struct lint_item *i)
{
	return i->key == RULE_CGROUP && first_byte(i) >= 0 &&
	       first_byte(i) != '/';
}

static bool begins_with_blank(const struct lint *l _unused_,
			      const struct lint_item *i)
{
	return is_cmdline(i) && first_byte(i) == ' ';
}

static struct str literal_text(const struct shape *s,
			       char buf[MATCHER_PATTERN_MAX])
{
	for (size_t i = 0; i < s->n; i++)
		buf[i] = (char)s->token[i];
	return (struct str){buf, s->n};
}

static bool is_no_unit(const struct lint *l _unused_, const struct lint_item *i)
{
	char buf[MATCHER_PATTERN_MAX];

	return i->key == RULE_UNIT && i->shape->literal &&
	       !cgroup_is_unit(literal_text(i->shape, buf));
}

static bool is_no_slice(const struct lint *l _unused_,
			const struct lint_item *i)
{
	char buf[MATCHER_PATTERN_MAX];

	return i->key == RULE_SLICE && i->shape->literal &&
	       !cgroup_is_slice(literal_text(i->shape, buf));
}

static bool is_for_no_kernel_thread(const struct lint *l _unused_,
				    const struct lint_item *i)
{
	return i->kernel == KERNEL_YES &&
	       (is_cmdline(i) || i->key == RULE_EXE || i->key == RULE_EXE_PATH);
}

/* A plain text that is too long is told of when it is loaded. */
static bool is_long_comm(const struct lint *l _unused_,
			 const struct lint_item *i)
{
	return i->key == RULE_COMM && i->kernel == KERNEL_NO &&
	       i->m->kind != MATCHER_EXACT &&
	       matcher_min_length(i->m) > COMM_MAX;
}

static bool is_long_dir_name(const struct lint *l _unused_,
			     const struct lint_item *i)
{
	return (i->key == RULE_UNIT || i->key == RULE_SLICE ||
		i->key == RULE_CONTAINER || i->key == RULE_POD) &&
	       matcher_min_length(i->m) > DIR_NAME_MAX;
}

static bool is_long_cmdline(const struct lint *l, const struct lint_item *i)
{
	return is_cmdline(i) &&
	       matcher_min_length(i->m) > l->rs->limits.cmdline;
}

/* "\d", but not in "C:\data", which is an argument of Wine's. */
static bool has_class(struct str text, const char *letters)
{
	if (has(text, STR(":\\")))
		return false;
	for (size_t i = 0; i + 1 < text.n; i++) {
		if (text.s[i] != '\\')
			continue;
		if (is_one_of(text.s[++i], letters))
			return true;
	}
	return false;
}

/* "nginx|httpd" */
static bool is_alternation(struct str text)
{
	bool bar = false;

	for (size_t i = 0; i < text.n; i++) {
		if (text.s[i] == '|')
			bar = i > 0 && i + 1 < text.n;
		else if (!is_word(text.s[i]) && text.s[i] != '.')
			return false;
	}
	return bar;
}

/* What no glob and no name has. */
static bool looks_like_regex(struct str text, const char *classes)
{
	return (text.n && text.s[0] == '^') || has(text, STR("(?")) ||
	       has_class(text, classes) || is_alternation(text);
}

static bool is_plain(const struct lint_item *i)
{
	return i->m->kind == MATCHER_EXACT && !i->m->prefixed;
}

/* As templates have it, for names or for tools that render them. */
static bool has_token(const struct lint *l _unused_, const struct lint_item *i)
{
	return !i->m->prefixed && has(text_of(i), STR("{{"));
}

/* A word of others for what we call re:, glob: or exact:. */
static bool has_odd_prefix(const struct lint *l _unused_,
			   const struct lint_item *i)
{
	static const char *const words[] = {
	    "regex:",	"regexp:",  "pcre:",   "re2:",	    "wildcard:",
	    "fnmatch:", "literal:", "plain:",  "string:",   "text:",
	    "equals:",	"prefix:",  "suffix:", "contains:", "re:",
	    "glob:",	"exact:",   "iglob:",  "ire:",
	};
	struct str t = text_of(i);

	for (size_t k = 0; k < ARRAY_SIZE(words) && !i->m->prefixed; k++)
		if (t.n > strlen(words[k]) &&
		    strncasecmp(t.s, words[k], strlen(words[k])) == 0)
			return true;
	return false;
}

static bool has_blank_behind_prefix(const struct lint *l _unused_,
				    const struct lint_item *i)
{
	return i->m->prefixed && !i->exporter && !is_cmdline(i) &&
	       i->m->kind != MATCHER_REGEX && first_byte(i) == ' ';
}

static bool is_plain_regex(const struct lint *l _unused_,
			   const struct lint_item *i)
{
	return is_plain(i) && (looks_like_regex(text_of(i), "dDsSwW.") ||
			       has(text_of(i), STR(".+")));
}

static bool is_plain_either(const struct lint *l _unused_,
			    const struct lint_item *i)
{
	struct str t = text_of(i);

	return is_plain(i) && (has(t, STR(".*")) || has(t, STR("[0-9]")) ||
			       has(t, STR("[a-z]")) || has(t, STR("[A-Z]")));
}

static bool is_plain_glob(const struct lint *l _unused_,
			  const struct lint_item *i)
{
	return is_plain(i) && has(text_of(i), STR("*"));
}

static bool is_glob_regex(const struct lint *l _unused_,
			  const struct lint_item *i)
{
	return i->m->kind == MATCHER_GLOB &&
	       looks_like_regex(text_of(i), "dDsSwW");
}

/* ".jar" or the like, and nothing behind it. */
static bool is_suffix(struct str text)
{
	if (text.n < 2 || text.n > 1 + SUFFIX_MAX || text.s[0] != '.')
		return false;
	for (size_t i = 1; i < text.n; i++)
		if (!is_word(text.s[i]))
			return false;
	return true;
}

/*
 * A star that a regular expression has no use for: "x*" at its end, which
 * adds nothing to what is found, "/" and "*" before a "/", or "x*" before what
 * looks like the suffix of a file. But "xx*" is a way to write "x+".
 */
static bool is_glob_star(struct str t, size_t i)
{
	struct str rest = {t.s + i + 1, t.n - i - 1};
	char repeated = i > 0 ? t.s[i - 1] : '\0';

	if (!(is_word(repeated) || repeated == '/') ||
	    (i > 1 && t.s[i - 2] == repeated))
		return false;
	return rest.n == 0 || (repeated == '/' && rest.s[0] == '/') ||
	       is_suffix(rest);
}

static bool is_regex_glob(const struct lint *l _unused_,
			  const struct lint_item *i)
{
	struct str t = text_of(i);
	bool found = false;

	if (i->m->kind != MATCHER_REGEX || i->exporter)
		return false;
	for (size_t k = 0; k < t.n; k++) {
		if (t.s[k] == '*'
			? !is_glob_star(t, k)
			: !is_word(t.s[k]) && !is_one_of(t.s[k], "/.:=@, "))
			return false;
		found |= t.s[k] == '*';
	}
	return found;
}

/* Would it be told of if it stood there without a prefix, or not be read? */
static bool is_odd_text(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.s[i] < ' ' || is_one_of(text.s[i], "*[:\x7f"))
			return true;
	return looks_like_regex(text, "dDsSwW.");
}

/* One text alone is taken, and without a prefix it would be the same. */
static bool is_needless(const struct lint_item *i, enum matcher_kind plain)
{
	char buf[MATCHER_PATTERN_MAX];
	struct str t;

	if (!i->m->prefixed || i->m->kind == MATCHER_EXACT || i->exporter ||
	    !i->shape->literal || rule_keys[i->key].plain != plain)
		return false;
	t = literal_text(i->shape, buf);
	return t.n && i->m->has_slash == has(t, STR("/")) && !is_odd_text(t);
}

static bool is_plain_text(const struct lint *l _unused_,
			  const struct lint_item *i)
{
	return is_needless(i, MATCHER_EXACT);
}

static bool is_exact_text(const struct lint *l _unused_,
			  const struct lint_item *i)
{
	return is_needless(i, MATCHER_REGEX);
}

struct check {
	bool (*finds)(const struct lint *l, const struct lint_item *i);
	enum diag_level level;
	const char *says;
};

static const struct check checks[] = {
    {has_token, DIAG_WARNING,
     "is compared as it stands: {{...}} means something in names alone"},
    {has_odd_prefix, DIAG_WARNING,
     "has no prefix that means anything: those are re:, glob:, exact:, ire: "
     "and "
     "iglob:; write \"exact:\" before it if it is to stand as it is"},
    {has_blank_behind_prefix, DIAG_WARNING,
     "begins with a blank, as nothing does; leave it out behind the prefix"},
    {is_plain_regex, DIAG_WARNING,
     "is compared as it stands; put \"re:\" before it to make it a regular "
     "expression, or \"exact:\" if it is none"},
    {is_plain_either, DIAG_WARNING,
     "is compared as it stands; put \"re:\" or \"glob:\" before it to make it "
     "a pattern, or \"exact:\" if it is none"},
    {is_plain_glob, DIAG_WARNING,
     "is compared as it stands; put \"glob:\" before it to make it a pattern, "
     "or \"exact:\" if it is none"},
    {is_glob_regex, DIAG_WARNING,
     "is a glob that looks like a regular expression; write \"re:\" before it "
     "if it is one"},
    {is_regex_glob, DIAG_WARNING,
     "is a regular expression that looks like a glob; write \"glob:\" before "
     "it if it is one, or \".*\" where any text may stand"},
    {has_late_begin, DIAG_WARNING,
     "matches nothing: \"^\" stands behind text; write \"\\^\" for the "
     "character"},
    {has_early_end, DIAG_WARNING,
     "matches nothing: \"$\" stands before text; write \"\\$\" for the "
     "character"},
    {takes_empty_alone, DIAG_WARNING,
     "matches nothing: what is empty or missing matches no pattern; use "
     "another key"},
    {is_for_no_kernel_thread, DIAG_WARNING,
     "matches nothing: kernel threads have no command line and no program "
     "file; use comm"},
    {needs_control_byte, DIAG_WARNING,
     "matches nothing: there is no control byte in a command line; write a "
     "blank, which stands between arguments, too"},
    {is_relative_exe_path, DIAG_WARNING,
     "matches nothing: such a path begins with \"/\"; use exe for the base "
     "name"},
    {is_relative_cgroup, DIAG_WARNING,
     "matches nothing: such a path begins with \"/\"; put one before it"},
    {is_no_unit, DIAG_WARNING,
     "matches nothing: a unit's name ends in its type; put \".service\" or "
     "another behind it"},
    {is_no_slice, DIAG_WARNING,
     "matches nothing: a slice's name ends in \".slice\"; put that behind it"},
    {is_long_comm, DIAG_WARNING,
     "matches nothing: it needs more than the 15 bytes that a comm has; use "
     "exe or cmdline"},
    {is_long_dir_name, DIAG_WARNING,
     "matches nothing: it needs more than the 255 bytes that such a name has; "
     "shorten it"},
    {is_long_cmdline, DIAG_WARNING,
     "matches nothing: it needs more bytes than limits.cmdline lets in; raise "
     "that"},
    {begins_with_blank, DIAG_WARNING,
     "matches only where the first argument is empty or begins with a blank; "
     "leave the blank out"},
    {is_plain_text, DIAG_NOTE,
     "takes one text alone; write that text without a prefix, which is the "
     "same and cheaper"},
    {is_exact_text, DIAG_NOTE,
     "takes one text alone; write that text with \"exact:\", which is the "
     "same and cheaper"},
};

static const char *prefix_of(const struct lint_item *i)
{
	const struct matcher *m = i->m;

	if (!m->prefixed || i->exporter)
		return "";
	if (m->kind == MATCHER_EXACT)
		return "exact:";
	if (m->kind == MATCHER_GLOB)
		return m->ignore_case ? "iglob:" : "glob:";
	return m->ignore_case ? "ire:" : "re:";
}

void lint_pattern(struct lint *l, const struct lint_item *item)
{
	const struct matcher *m = item->m;
	size_t i = 0;

	while (i < ARRAY_SIZE(checks) && !checks[i].finds(l, item))
		i++;
	if (i < ARRAY_SIZE(checks))
		diag_add(l->d, checks[i].level, m->line, m->column,
			 "%s: \"%s%.*s\" %s", item->name, prefix_of(item),
			 EXCERPT(text_of(item)), checks[i].says);
}
