/* SPDX-License-Identifier: MIT */
/*
 * From the text of a template to its parts. Each token and each filter is one
 * row of a table here; what a token stands for in a process and what a filter
 * does is in name.c.
 */
#include "name-internal.h"
#include "suggest.h"

#include <stdio.h>

#define FIELD(name) offsetof(struct subject, name)
#define BIT(source) SUBJECT_BIT(SUBJECT_##source)

static const struct token tokens[] = {
    {"Comm", TOKEN_FIELD, BIT(STAT), FIELD(comm)},
    {"ExeBase", TOKEN_EXE, BIT(CMDLINE) | BIT(STAT), FIELD(exe)},
    {"ExeFull", TOKEN_EXE, BIT(CMDLINE) | BIT(STAT), FIELD(argv0)},
    {"Script", TOKEN_FIELD, BIT(CMDLINE), FIELD(script)},
    {"ExePath", TOKEN_FIELD, BIT(EXE), FIELD(exe_path)},
    {"Username", TOKEN_FIELD, BIT(OWNER), FIELD(user)},
    {"UID", TOKEN_UID, BIT(OWNER), 0},
    {"Groupname", TOKEN_FIELD, BIT(OWNER), FIELD(group)},
    {"Unit", TOKEN_FIELD, BIT(CGROUP), FIELD(unit)},
    {"Slice", TOKEN_FIELD, BIT(CGROUP), FIELD(slice)},
    {"Container", TOKEN_FIELD, BIT(CGROUP), FIELD(container)},
    {"Pod", TOKEN_FIELD, BIT(CGROUP), FIELD(pod)},
    {"Cgroup", TOKEN_FIELD, BIT(CGROUP), FIELD(cgroup)},
    {"Ancestor", TOKEN_ANCESTOR, BIT(KIN), 0},
    {"PID", TOKEN_PID, 0, 0},
    {"StartTime", TOKEN_START_TIME, 0, 0},
    {"Matches", TOKEN_MATCHES, 0, 0},
};

static const struct token exporter_tokens[] = {
    {"Comm", TOKEN_FIELD, BIT(STAT), FIELD(comm)},
    {"ExeBase", TOKEN_GO_EXE_BASE, BIT(CMDLINE) | BIT(STAT), 0},
    {"ExeFull", TOKEN_EXE, BIT(CMDLINE) | BIT(STAT), FIELD(argv0)},
    {"Username", TOKEN_FIELD, BIT(OWNER), FIELD(user)},
    {"PID", TOKEN_PID, 0, 0},
    {"StartTime", TOKEN_GO_START_TIME, 0, 0},
    {"Cgroups", TOKEN_GO_CGROUPS, BIT(CGROUP), 0},
    {"Matches", TOKEN_GO_MATCHES, 0, 0},
};

static const struct token exporter_match = {"Matches", TOKEN_MATCHES, 0, 0};

static const char *const filter_names[] = {
    [FILTER_BASE] = "base",
    [FILTER_LOWER] = "lower",
    [FILTER_TRUNC] = "trunc",
    [FILTER_DEFAULT] = "default",
};

/* What compiling needs to know; messages go to d at one place. */
struct compiler {
	struct name *name;
	char *const *captures;
	unsigned n_captures;
	struct diag *d;
	unsigned line, column;
	bool exporter; /* tokens are those of process-exporter */
};

/* Arguments for "%.*s" in a message. */
#define SHOWN(str) (int)MIN((str).n, (size_t)60), (str).s

static struct str trim(struct str s)
{
	while (s.n > 0 && s.s[0] == ' ')
		s = (struct str){s.s + 1, s.n - 1};
	while (s.n > 0 && s.s[s.n - 1] == ' ')
		s.n--;
	return s;
}

/*
 * Takes what stands before the first `c` off s, and c with it. Without a c
 * that is all of s, and the answer is false.
 */
static bool take_until(struct str *s, char c, struct str *ret)
{
	const char *end = s->n ? memchr(s->s, c, s->n) : NULL;

	*ret = *s;
	if (!end) {
		s->n = 0;
		return false;
	}
	ret->n = (size_t)(end - s->s);
	s->s = end + 1;
	s->n -= ret->n + 1;
	return true;
}

static int tell_unknown(const struct compiler *c, const char *what,
			struct str word, const char *const *known, size_t n)
{
	const char *closest = suggest_closest(word, known, n);
	char list[400];
	size_t len = 0;

	if (closest) {
		diag_add(c->d, DIAG_ERROR, c->line, c->column,
			 "unknown %s \"%.*s\" (did you mean \"%s\"?)", what,
			 SHOWN(word), closest);
		return -EINVAL;
	}
	for (size_t i = 0; i < n && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
					i == 0	     ? ""
					: i + 1 == n ? " and "
						     : ", ",
					known[i]);
	diag_add(c->d, DIAG_ERROR, c->line, c->column,
		 "unknown %s \"%.*s\"; there %s %s", what, SHOWN(word),
		 n == 1 ? "is" : "are", list);
	return -EINVAL;
}

static int set_capture(const struct compiler *c, struct part *p,
		       struct str name)
{
	for (unsigned i = 0; i < c->n_captures; i++) {
		if (!str_eq(name, str_of(c->captures[i])))
			continue;
		p->capture = name;
		return 0;
	}
	if (c->n_captures > 0)
		return tell_unknown(c, "capture", name,
				    (const char *const *)c->captures,
				    c->n_captures);
	diag_add(c->d, DIAG_ERROR, c->line, c->column,
		 "unknown capture \"%.*s\": no pattern of this rule captures "
		 "anything by name, as (?P<x>...) does; what stands below "
		 "\"not\" captures nothing",
		 SHOWN(name));
	return -EINVAL;
}

static int set_token(const struct compiler *c, struct part *p, struct str text)
{
	const char *known[ARRAY_SIZE(tokens)];
	const struct str matches = STR("Matches.");
	struct str word = text;

	if (word.n == 0 || word.s[0] != '.') {
		diag_add(c->d, DIAG_ERROR, c->line, c->column,
			 "\"{{%.*s}}\" is no token: one begins with a dot, as "
			 "{{.Comm}}",
			 SHOWN(text));
		return -EINVAL;
	}
	word = (struct str){word.s + 1, word.n - 1};
	if (str_begins(word, matches))
		word.n = matches.n - 1;
	for (size_t i = 0; i < ARRAY_SIZE(tokens); i++) {
		known[i] = tokens[i].name;
		if (str_eq(word, str_of(tokens[i].name)))
			p->token = &tokens[i];
	}
	if (!p->token)
		return tell_unknown(c, "token", word, known, ARRAY_SIZE(known));
	if (p->token->kind != TOKEN_MATCHES)
		return 0;
	if (text.n <= matches.n + 1) {
		diag_add(c->d, DIAG_ERROR, c->line, c->column,
			 "{{.Matches}} needs the name of a capture, as "
			 "{{.Matches.x}}");
		return -EINVAL;
	}
	return set_capture(
	    c, p, (struct str){text.s + 1 + matches.n, text.n - 1 - matches.n});
}

/* A capture that no pattern has is nothing in Go, and is written so. */
static void set_exporter_capture(const struct compiler *c, struct part *p,
				 struct str name)
{
	p->token = &exporter_match;
	p->capture = name;
	for (unsigned i = 0; i < c->n_captures; i++)
		if (str_eq(name, str_of(c->captures[i])))
			return;
	diag_add(c->d, DIAG_WARNING, c->line, c->column,
		 "no pattern captures \"%.*s\": it stands for \"<no value>\"",
		 SHOWN(name));
	p->token = NULL;
	p->literal = STR("<no value>");
}

static int set_exporter_token(const struct compiler *c, struct part *p,
			      struct str text)
{
	const struct str matches = STR(".Matches.");

	if (str_begins(text, matches) && text.n > matches.n) {
		set_exporter_capture(
		    c, p, (struct str){text.s + matches.n, text.n - matches.n});
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(exporter_tokens); i++)
		if (text.n > 1 && text.s[0] == '.' &&
		    str_eq((struct str){text.s + 1, text.n - 1},
			   str_of(exporter_tokens[i].name)))
			p->token = &exporter_tokens[i];
	if (p->token)
		return 0;
	for (size_t i = 1; text.n > 1 && text.s[0] == '.' && i < text.n; i++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
			    "yz0123456789_.",
			    text.s[i]))
			text.n = 0;
	if (text.n < 2 || text.s[0] != '.') {
		diag_add(c->d, DIAG_ERROR, c->line, c->column,
			 "only plain fields of templates are known, as "
			 "{{.Comm}} or {{.Matches.x}}");
		return -EINVAL;
	}
	diag_add(c->d, DIAG_WARNING, c->line, c->column,
		 "unknown field {{%.*s}}: the name ends before it",
		 SHOWN(text));
	c->name->ends = true;
	return 0;
}

static bool parse_length(struct str text, size_t *ret)
{
	size_t n = 0;

	if (text.n == 0 || text.n > 6)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.s[i] < '0' || text.s[i] > '9')
			return false;
		n = n * 10 + (size_t)(text.s[i] - '0');
	}
	*ret = n;
	return n > 0;
}

static int set_filter(const struct compiler *c, struct part *p, struct str text)
{
	struct str word;
	bool has_argument = take_until(&text, ':', &word);
	struct filter *f;
	size_t kind = 0;

	word = trim(word);
	while (kind < ARRAY_SIZE(filter_names) &&
	       !str_eq(word, str_of(filter_names[kind])))
		kind++;
	if (kind == ARRAY_SIZE(filter_names))
		return tell_unknown(c, "filter", word, filter_names,
				    ARRAY_SIZE(filter_names));

	if (array_reserve(&p->filter, &p->cap, p->n_filters + 1,
			  sizeof(p->filter[0])))
		return -ENOMEM;
	f = &p->filter[p->n_filters++];
	*f =
	    (struct filter){.kind = (enum filter_kind)kind, .text = trim(text)};
	if (f->kind == FILTER_TRUNC && !parse_length(f->text, &f->n)) {
		diag_add(c->d, DIAG_ERROR, c->line, c->column,
			 "filter trunc needs a number of bytes, as trunc:20");
		return -EINVAL;
	}
	if (f->kind == FILTER_DEFAULT && f->text.n == 0) {
		diag_add(c->d, DIAG_ERROR, c->line, c->column,
			 "filter default needs a text, as default:none");
		return -EINVAL;
	}
	if (has_argument &&
	    (f->kind == FILTER_BASE || f->kind == FILTER_LOWER)) {
		diag_add(c->d, DIAG_ERROR, c->line, c->column,
			 "filter %s takes no argument", filter_names[kind]);
		return -EINVAL;
	}
	return 0;
}

static int new_part(struct name *n, struct str source, struct part **ret)
{
	if (array_reserve(&n->part, &n->cap, n->n_parts + 1,
			  sizeof(n->part[0])))
		return -ENOMEM;
	*ret = &n->part[n->n_parts++];
	**ret = (struct part){.source = source};
	return 0;
}

/* `text` is what stands between the braces. */
static int add_token(const struct compiler *c, struct str text)
{
	struct str source = {text.s - 2, text.n + 4};
	struct name *n = c->name;
	struct str word;
	bool more = take_until(&text, '|', &word);
	struct part *p;
	int r;

	r = new_part(n, source, &p);
	if (!r && c->exporter) {
		if (more)
			word = text = (struct str){word.s, word.n + text.n + 1};
		more = false;
		r = set_exporter_token(c, p, trim(word));
	} else if (!r) {
		r = set_token(c, p, trim(word));
	}
	while (!r && more) {
		more = take_until(&text, '|', &word);
		r = set_filter(c, p, word);
	}
	if (r || !p->token)
		return r;
	n->has_token = true;
	n->has_pid |= p->token->kind == TOKEN_PID;
	n->sources |= p->token->sources;
	return 0;
}

/* How other templates write what stands for something. */
static void warn_odd_literal(const struct compiler *c, struct str text)
{
	for (size_t i = 0; i + 1 < text.n; i++) {
		char next = text.s[i + 1];
		bool digit = next >= '0' && next <= '9';

		if (!(text.s[i] == '{' && next == '.') &&
		    !(text.s[i] == '$' && (digit || next == '{')) &&
		    !(text.s[i] == '\\' && digit))
			continue;
		diag_add(c->d, DIAG_WARNING, c->line, c->column,
			 "name \"%.*s\": \"%.2s\" stands for nothing; write "
			 "{{.Comm}} or, for what (?P<x>...) captures, "
			 "{{.Matches.x}}",
			 SHOWN(text), text.s + i);
		return;
	}
}

static int add_literal(const struct compiler *c, struct str text)
{
	struct part *p;
	int r;

	if (text.n == 0)
		return 0;
	if (!c->exporter)
		warn_odd_literal(c, text);
	r = new_part(c->name, text, &p);
	if (!r)
		p->literal = text;
	return r;
}

static int compile(const struct compiler *c, struct str text)
{
	if (text.n == 0 && !c->exporter) {
		diag_add(c->d, DIAG_ERROR, c->line, c->column, "empty name");
		return -EINVAL;
	}
	if (text.n && text.s[0] == '_' && !c->exporter) {
		diag_add(c->d, DIAG_ERROR, c->line, c->column,
			 "name \"%.*s\": names that begin with \"_\" are "
			 "proctally's own",
			 SHOWN(text));
		return -EINVAL;
	}
	while (text.n > 0 && !c->name->ends) {
		const char *open = memmem(text.s, text.n, "{{", 2);
		struct str literal = text;
		const char *close;
		int r;

		if (!open)
			return add_literal(c, text);
		literal.n = (size_t)(open - text.s);
		r = add_literal(c, literal);
		if (r)
			return r;
		text.s = open + 2;
		text.n -= literal.n + 2;
		close = memmem(text.s, text.n, "}}", 2);
		if (!close) {
			diag_add(c->d, DIAG_ERROR, c->line, c->column,
				 "\"{{%.*s\" lacks its \"}}\"", SHOWN(text));
			return -EINVAL;
		}
		r = add_token(c,
			      (struct str){text.s, (size_t)(close - text.s)});
		if (r)
			return r;
		text.n -= (size_t)(close + 2 - text.s);
		text.s = close + 2;
	}
	return 0;
}

static int compile_new(struct compiler c, struct str text, struct name **ret)
{
	struct name *n = c.name = calloc(1, sizeof(*n));
	int r = -ENOMEM;

	if (n)
		n->text = malloc(text.n + 1);
	if (n && n->text) {
		memcpy(n->text, text.n ? text.s : "", text.n);
		n->text_len = text.n;
		r = compile(&c, (struct str){n->text, text.n});
	}
	if (r) {
		name_free(n);
		return r;
	}
	*ret = n;
	return 0;
}

int name_compile(struct str text, char *const *captures, unsigned n_captures,
		 struct diag *d, unsigned line, unsigned column,
		 struct name **ret)
{
	return compile_new(
	    (struct compiler){
		.captures = captures,
		.n_captures = n_captures,
		.d = d,
		.line = line,
		.column = column,
	    },
	    text, ret);
}

int name_compile_exporter(struct str text, char *const *captures,
			  unsigned n_captures, struct diag *d, unsigned line,
			  unsigned column, struct name **ret)
{
	return compile_new(
	    (struct compiler){
		.captures = captures,
		.n_captures = n_captures,
		.d = d,
		.line = line,
		.column = column,
		.exporter = true,
	    },
	    text.n ? text : STR("{{.ExeBase}}"), ret);
}

void name_free(struct name *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->n_parts; i++)
		free(n->part[i].filter);
	free(n->part);
	free(n->text);
	free(n);
}
