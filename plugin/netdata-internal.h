/* SPDX-License-Identifier: MIT */
/*
 * Between the files of netdata: netdata-words.c splits the text into words,
 * netdata.c makes groups of them, netdata-yaml.c makes rules of groups and
 * netdata-item.c knows a single pattern. All texts are slices of the file.
 *
 * Invariant: patterns stand in the order of the file, so those of one entry
 * stand together; no entry has more than a list of a rule file may have.
 */
#pragma once

#include "base.h"
#include "diag.h"
#include "outbuf.h"

enum {
	NETDATA_COMM_MAX = 15, /* TASK_COMM_LEN - 1 */
	NETDATA_ENTRY_MAX = 1000,
	NETDATA_SHOWN_MAX = 60, /* bytes of a word that a message repeats */
};

#define NETDATA_SHOWN(text)                                                    \
	(int)MIN((text).n, (size_t)NETDATA_SHOWN_MAX), (text).s

struct netdata_reader {
	const char *s, *end; /* what is left */
	const char *line_start;
	unsigned line;
	bool in_comment;
	struct diag *d;
};

struct netdata_word {
	struct str text; /* without its quotes */
	unsigned column;
	bool after_colon;
};

void netdata_reader_init(struct netdata_reader *r, struct str text,
			 struct diag *d);

/*
 * Takes the next word of the line, which may be empty; false at the end of
 * the line. From a word that begins with "#" on it is all comment.
 */
bool netdata_next_word(struct netdata_reader *r, struct netdata_word *ret);

/* The same, but neither an empty word nor one of a comment. */
bool netdata_next_value(struct netdata_reader *r, struct netdata_word *ret);

/* Goes on to the next line, whatever is left of this one; false at the end. */
bool netdata_next_line(struct netdata_reader *r);

/* "*text*": the stars at the ends decide what is compared, and how. */
struct netdata_pattern {
	struct str text; /* between them; may be empty */
	bool star_before, star_after;
	bool star_inside;
	unsigned line;
	unsigned same_line;    /* where it stands already; or 0 */
	unsigned similar_line; /* the same text with other stars; or 0 */
};

/* `word` is not empty. */
struct netdata_pattern netdata_pattern_of(struct str word, unsigned line);

/* Each pattern is one of these: it takes all, or a name, or a command line. */
bool netdata_is_all(const struct netdata_pattern *p);
bool netdata_is_comm(const struct netdata_pattern *p);
bool netdata_is_cmdline(const struct netdata_pattern *p);

/* Of names: it begins with more than the kernel keeps of a name; or it says
 * how a name ends, which the kernel may have cut. */
bool netdata_is_long(const struct netdata_pattern *p);
bool netdata_is_tail(const struct netdata_pattern *p);

/* False for patterns with a star inside, too. */
bool netdata_takes_comm(const struct netdata_pattern *p, struct str comm);

/* One item of a rule, and the line feed; netdata_put_cut() two keys, for one
 * that is long. */
void netdata_put_name(struct outbuf *o, const struct netdata_pattern *p);
void netdata_put_cmdline(struct outbuf *o, const struct netdata_pattern *p);
void netdata_put_cut(struct outbuf *o, const struct netdata_pattern *p);

/* As it stands in the file, for comments. */
void netdata_put_word(struct outbuf *o, const struct netdata_pattern *p);

/* The lines of one group with no other group between them. */
struct netdata_entry {
	struct str name;
	unsigned line;
	size_t first, n_patterns;
	bool marked; /* a "-" or a "+" stood before a name */
};

/* What stands behind "managers" or "interpreters". */
struct netdata_list {
	struct netdata_pattern *pattern;
	size_t n_patterns, cap;
	bool given;
	bool cleared; /* without those that Netdata has built in */
};

struct netdata_conf {
	struct netdata_pattern *pattern;
	size_t n_patterns, pattern_cap;
	struct netdata_entry *entry;
	size_t n_entries, entry_cap;
	struct netdata_list managers, interpreters;
};

/* `file` is the name that the comments give the file. */
void netdata_write(const struct netdata_conf *conf, const char *file,
		   struct outbuf *o);
