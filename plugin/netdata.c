/* SPDX-License-Identifier: MIT */
/*
 * Groups of apps_groups.conf. Source: read_apps_groups_conf() in
 * src/collectors/apps.plugin/apps_targets.c and pid_match_create() in
 * apps_pid_match.c of Netdata 2; Netdata 1.37 has the same but for managers,
 * interpreters and stars inside a pattern, and it has marks before names.
 */
#include "netdata.h"

#include "messages.h"
#include "netdata-internal.h"

#include <stdio.h>

enum {
	FILE_BYTES_MAX = 1024 * 1024,
	PATTERN_BYTES_MAX = 1000, /* four times as many in a rule file */
	PATTERNS_MAX = 4000,	  /* at most two rules each, of 10000 */
};

struct loader {
	struct netdata_reader reader;
	struct netdata_conf *conf;
	struct diag *d;
	bool has_group; /* a line as Netdata's manual has it: with a colon */
};

/* "-" hid a group, "+" traced it. */
static bool strip_marks(struct str *text)
{
	size_t n = text->n;

	while (text->n && (text->s[0] == '-' || text->s[0] == '+')) {
		text->s++;
		text->n--;
	}
	return text->n < n;
}

static int check_pattern(struct loader *l, const struct netdata_word *w)
{
	if (w->text.n > 0 && w->text.n <= PATTERN_BYTES_MAX)
		return 0;
	if (w->text.n == 0)
		diag_add(l->d, DIAG_WARNING, l->reader.line, w->column,
			 "nothing follows the mark");
	else
		diag_add(l->d, DIAG_ERROR, l->reader.line, w->column,
			 "a pattern of %zu bytes; at most %d are taken",
			 w->text.n, PATTERN_BYTES_MAX);
	return -EINVAL;
}

static const struct netdata_entry *entry_of(const struct netdata_conf *conf,
					    size_t pattern)
{
	const struct netdata_entry *e = conf->entry;

	while (pattern >= e->first + e->n_patterns)
		e++;
	return e;
}

static void warn_same(struct loader *l, const struct netdata_word *w,
		      const struct netdata_entry *entry, size_t same,
		      bool is_first)
{
	struct str name = entry_of(l->conf, same)->name;

	if (!str_eq(name, entry->name))
		diag_add(l->d, DIAG_WARNING, l->reader.line, w->column,
			 "\"%.*s\" is in group \"%.*s\" already (line %u)%s",
			 NETDATA_SHOWN(w->text), NETDATA_SHOWN(name),
			 l->conf->pattern[same].line,
			 is_first ? "; Netdata takes the whole line for that "
				    "group, which is not done here"
				  : "");
}

/* Looks for an earlier pattern that leaves nothing to this one. */
static void find_same(struct loader *l, const struct netdata_word *w,
		      const struct netdata_entry *entry, bool is_first,
		      struct netdata_pattern *p)
{
	for (size_t i = 0; i < l->conf->n_patterns; i++) {
		const struct netdata_pattern *q = &l->conf->pattern[i];

		if (!str_eq(q->text, p->text))
			continue;
		if (q->star_before == p->star_before &&
		    q->star_after == p->star_after) {
			p->same_line = q->line;
			warn_same(l, w, entry, i, is_first);
			return;
		}
		if (!p->similar_line)
			p->similar_line = q->line;
	}
}

/* The entry that a pattern of this group goes to; NULL if out of memory. */
static struct netdata_entry *want_entry(struct loader *l, struct str name)
{
	struct netdata_conf *conf = l->conf;
	struct netdata_entry *e =
	    conf->n_entries ? &conf->entry[conf->n_entries - 1] : NULL;

	if (e && str_eq(e->name, name) && e->n_patterns < NETDATA_ENTRY_MAX)
		return e;
	if (array_reserve(&conf->entry, &conf->entry_cap, conf->n_entries + 1,
			  sizeof(*e)))
		return NULL;
	e = &conf->entry[conf->n_entries++];
	*e = (struct netdata_entry){
	    .name = name,
	    .line = l->reader.line,
	    .first = conf->n_patterns,
	};
	return e;
}

static int add_pattern(struct loader *l, struct str name, bool marked,
		       bool is_first, struct netdata_word *w)
{
	struct netdata_conf *conf = l->conf;
	struct netdata_entry *e;
	struct netdata_pattern p;

	marked |= strip_marks(&w->text);
	if (check_pattern(l, w))
		return 0;
	if (conf->n_patterns == PATTERNS_MAX) {
		diag_add(l->d, DIAG_ERROR, l->reader.line, w->column,
			 "more than %d patterns", PATTERNS_MAX);
		return -EINVAL;
	}
	p = netdata_pattern_of(w->text, l->reader.line);
	e = want_entry(l, name);
	if (!e || array_reserve(&conf->pattern, &conf->pattern_cap,
				conf->n_patterns + 1, sizeof(p)))
		return -ENOMEM;
	find_same(l, w, e, is_first, &p);
	conf->pattern[conf->n_patterns++] = p;
	e->n_patterns++;
	e->marked |= marked;
	return 0;
}

static int load_group(struct loader *l, const struct netdata_word *first)
{
	struct str name = first->text;
	bool marked = strip_marks(&name);
	struct netdata_word w;
	size_t n = 0;

	if (name.n == 0) {
		diag_add(l->d, DIAG_WARNING, l->reader.line, first->column,
			 "the group has no name; its line is left out");
		return 0;
	}
	for (; netdata_next_value(&l->reader, &w); n++) {
		int r;

		if (n == 0 && !w.after_colon)
			diag_add(l->d, DIAG_WARNING, l->reader.line, w.column,
				 "no colon between group \"%.*s\" and its "
				 "patterns; Netdata does without, too",
				 NETDATA_SHOWN(name));
		r = add_pattern(l, name, marked, n == 0, &w);
		if (r)
			return r;
		l->has_group |= w.after_colon;
	}
	if (n == 0)
		diag_add(l->d, DIAG_WARNING, l->reader.line, first->column,
			 "group \"%.*s\" has no pattern", NETDATA_SHOWN(name));
	return 0;
}

static int load_list(struct loader *l, struct netdata_list *list)
{
	size_t n_before = list->n_patterns;
	unsigned clear = 0;
	struct netdata_word w;

	list->given = true;
	while (netdata_next_value(&l->reader, &w)) {
		if (check_pattern(l, &w))
			continue;
		if (str_eq(w.text, STR("clear")))
			clear = w.column;
		if (array_reserve(&list->pattern, &list->cap,
				  list->n_patterns + 1,
				  sizeof(list->pattern[0])))
			return -ENOMEM;
		list->pattern[list->n_patterns++] =
		    netdata_pattern_of(w.text, l->reader.line);
	}
	if (clear && list->n_patterns == n_before + 1 &&
	    !l->reader.in_comment) {
		list->n_patterns = 0;
		list->cleared = true;
	} else if (clear) {
		diag_add(l->d, DIAG_WARNING, l->reader.line, clear,
			 "\"clear\" is a name to Netdata unless it stands "
			 "alone on its line");
	}
	return 0;
}

static int load_line(struct loader *l)
{
	struct netdata_word first;

	if (!netdata_next_word(&l->reader, &first) || l->reader.in_comment)
		return 0;
	if (str_eq(first.text, STR("managers")))
		return load_list(l, &l->conf->managers);
	if (str_eq(first.text, STR("interpreters")))
		return load_list(l, &l->conf->interpreters);
	return load_group(l, &first);
}

static int load_text(struct loader *l, struct str text)
{
	int r;

	if (text.n > FILE_BYTES_MAX) {
		diag_add(l->d, DIAG_ERROR, 0, 0, "larger than 1 MiB");
		return -EINVAL;
	}
	netdata_reader_init(&l->reader, text, l->d);
	do {
		r = load_line(l);
	} while (r == 0 && netdata_next_line(&l->reader));
	if (r)
		return r;
	if (l->d->n_errors == 0 && (l->conf->n_patterns == 0 || !l->has_group))
		diag_add(l->d, DIAG_ERROR, 0, 0,
			 "there is no line with a group, a colon and a "
			 "pattern");
	return l->d->n_errors ? -EINVAL : 0;
}

int netdata_convert(struct str text, const char *file, struct diag *d,
		    struct outbuf *o)
{
	struct netdata_conf conf = {0};
	struct loader l = {.conf = &conf, .d = d};
	int r = load_text(&l, text);

	if (r == 0)
		netdata_write(&conf, file, o);
	free(conf.pattern);
	free(conf.entry);
	free(conf.managers.pattern);
	free(conf.interpreters.pattern);
	return r;
}

/* Reads up to `size` bytes; returns how many, or a negative errno. */
static ssize_t read_file(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	ssize_t n;

	if (!f)
		return -errno;
	n = (ssize_t)fread(buf, 1, size, f);
	if (ferror(f))
		n = -errno;
	fclose(f);
	return n;
}

int netdata_run(const char *path)
{
	/* One more than is allowed, so that what is not is seen. */
	size_t size = FILE_BYTES_MAX + 1;
	_cleanup_free_ char *buf = malloc(size);
	const char *slash = strrchr(path, '/');
	struct outbuf o;
	struct diag d;
	ssize_t n;
	int r = -ENOMEM;

	diag_init(&d, path);
	outbuf_init(&o, STDOUT_FILENO);
	n = buf ? read_file(path, buf, size) : -ENOMEM;
	if (n < 0)
		r = (int)n;
	else
		r = netdata_convert((struct str){buf, (size_t)n},
				    slash ? slash + 1 : path, &d, &o);
	diag_sort(&d);
	messages_print(&d);
	if (r == 0)
		r = outbuf_flush(&o);
	if (r < 0 && !d.n_errors)
		fprintf(stderr, "proctally: %s: %s\n", path, strerror(-r));
	diag_done(&d);
	return r < 0;
}
