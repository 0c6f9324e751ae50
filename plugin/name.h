/* SPDX-License-Identifier: MIT */
/*
 * Name templates: "pg-{{.Matches.role|default:backend}}". A template is
 * compiled once and expanded for each process that joins; the result is
 * clean: every writer of collectd keeps it as it is.
 *
 * It knows a subject and a verdict, no process and no file.
 * Invariant: a name that leaves name_expand() has 1 to NAME_MAX_LEN bytes out
 * of [A-Za-z0-9_.-], or is 54 of them, a "~" and 8 hex digits. It does not
 * begin with "_" (such names are ours) and is not made of dots alone (writers
 * make directories of it): either gets an "x" in front.
 */
#pragma once

#include "base.h"
#include "diag.h"
#include "rule.h"

enum {
	NAME_MAX_LEN = 63,  /* bytes of a finished name */
	NAME_KEEP_LEN = 54, /* bytes that stay of a longer one */
};

struct name_result {
	char text[NAME_MAX_LEN + 1];
	uint64_t raw_hash; /* hash_bytes() of the text before it was cleaned */
	bool cleaned;	   /* it was not clean, or empty */
	bool cut;	   /* it was too long */
};

/*
 * Compiles a template. Mistakes (unknown token, filter, capture; a name of
 * our own, beginning with "_") are added to d at line and column. `captures`
 * are the names that the rule's patterns capture. Returns 0, -EINVAL or
 * -ENOMEM.
 *
 * Filters apply from left to right: base (what follows the last "/"), lower
 * (ASCII), trunc:N (the first N bytes), default:TEXT (in place of an empty
 * value; blanks at its ends do not count).
 */
int name_compile(struct str text, char *const *captures, unsigned n_captures,
		 struct diag *d, unsigned line, unsigned column,
		 struct name **ret);
/*
 * The same for a template of process-exporter: fields of its own and no
 * filters. What it does not know it warns of, and takes as Go's templates do:
 * an unknown capture stands for "<no value>", a name ends before an unknown
 * field. An empty text is {{.ExeBase}}.
 */
int name_compile_exporter(struct str text, char *const *captures,
			  unsigned n_captures, struct diag *d, unsigned line,
			  unsigned column, struct name **ret);
void name_free(struct name *n);

/* SUBJECT_BIT()s of the sources that the tokens need. */
unsigned name_sources(const struct name *n);

/* True if there is no token in it: the group exists without members. */
bool name_is_static(const struct name *n);

/* The template as it was given. */
struct str name_template(const struct name *n);

/* True if {{.Matches.NAME}} is in it, or all of them are. */
bool name_uses_capture(const struct name *n, struct str name);

/* The text before the first token. */
struct str name_prefix(const struct name *n);

/* True if {{.PID}} is in it: one series per process. */
bool name_is_per_process(const struct name *n);

/*
 * Expands for one process, asking the subject for what is missing. A value
 * whose source is absent, and a capture that v (may be NULL) does not have,
 * is empty. A process without a command line has its comm for {{.ExeBase}}
 * and {{.ExeFull}}.
 */
void name_expand(const struct name *n, struct subject *s,
		 const struct rule_verdict *v, struct name_result *ret);

/* A part of a template and its value. */
struct name_part {
	struct str source; /* of the template, with the braces of a token */
	bool is_token;
	struct str value; /* before the filters; NULL: it is put together */
};

/*
 * Who is told how a name comes about: each byte of the parts as they are
 * joined, before anything is cleaned or cut, and each part after its bytes.
 */
struct name_teller {
	void (*byte)(void *arg, char c);
	void (*part)(void *arg, const struct name_part *part);
	void *arg;
};

/* As name_expand(). */
void name_expand_told(const struct name *n, struct subject *s,
		      const struct rule_verdict *v,
		      const struct name_teller *teller,
		      struct name_result *ret);

/* The cleaning and cutting alone. */
void name_clean(struct str text, struct name_result *ret);
