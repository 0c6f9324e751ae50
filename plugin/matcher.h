/* SPDX-License-Identifier: MIT */
/*
 * One text or number against one compiled pattern. It does not know what the
 * text is the name of, nor that there are rules. The only user of PCRE2.
 *
 * Invariant: bytes, not characters, and no pattern runs away: one that does
 * more work than its budget allows is cut off, and then it does not match.
 */
#pragma once

#include "base.h"
#include "diag.h"

/* How a text is compared. */
enum matcher_kind {
	MATCHER_EXACT,
	MATCHER_GLOB,
	MATCHER_REGEX,
	MATCHER_NUMBER,
};

enum matcher_result {
	MATCHER_NO,
	MATCHER_YES,
	MATCHER_CUT, /* given up, as if it did not match */
};

enum {
	MATCHER_PATTERN_MAX = 4096, /* bytes of one pattern */
};

struct matcher {
	enum matcher_kind kind;
	bool has_slash; /* a "/" stands in the pattern */
	bool prefixed;	/* a prefix said what it is */
	bool ignore_case;
	uint32_t number;
	char *source; /* as it was given, with its prefix; no number has one */
	size_t source_len;
	const char *text; /* the rest of it */
	size_t text_len;
	unsigned line, column;		/* where it stands */
	struct pcre2_real_code_8 *code; /* MATCHER_GLOB, MATCHER_REGEX */
	const unsigned char *names;	/* table of named groups, in code */
	unsigned n_names, name_size;
};

/* Memory that matching needs; made once, for one thread at a time. */
struct matcher_scratch;

/*
 * Compiles `text`, which may have a prefix (glob:, re:, exact:, iglob:, ire:);
 * without one `plain` says what it is. Mistakes are added to d at line and
 * column; `key` names what the pattern is for. Returns 0, -EINVAL (told in d)
 * or -ENOMEM.
 */
int matcher_init(struct matcher *m, const char *key, enum matcher_kind plain,
		 struct str text, struct diag *d, unsigned line,
		 unsigned column);
void matcher_done(struct matcher *m);

/* Number of groups, named or not, for matcher_scratch_new(). */
unsigned matcher_n_groups(const struct matcher *m);

/* No text of fewer bytes matches; not all that have as many do. */
size_t matcher_min_length(const struct matcher *m);

/* Room for patterns of up to n_groups groups; NULL if out of memory. */
struct matcher_scratch *matcher_scratch_new(unsigned n_groups);
void matcher_scratch_free(struct matcher_scratch *scratch);

/*
 * Compares a text; any kind but MATCHER_NUMBER. Allocates nothing where PCRE2
 * has a JIT compiler for the processor; elsewhere scratch may grow.
 */
enum matcher_result matcher_match(const struct matcher *m, struct str value,
				  struct matcher_scratch *scratch);

/* The pattern as it was given, with its prefix; m owns it. */
static inline struct str matcher_source(const struct matcher *m)
{
	return (struct str){m->source, m->source_len};
}

/*
 * Makes a regex of Go's RE2 one that means the same here, in a buffer of twice
 * its length; returns the new length. It is enough for what can be told apart
 * without parsing: a hyphen behind a class within brackets.
 */
size_t matcher_from_re2(struct str regex, char *buf);

/* What the last group without a name took, or else the whole pattern. */
struct str matcher_unnamed(const struct matcher *m, struct str value,
			   const struct matcher_scratch *scratch);

/* Name of named group i (below n_names), and what it took of `value` in the
 * last matcher_match(), which must have said MATCHER_YES. */
struct str matcher_capture_name(const struct matcher *m, unsigned i);
struct str matcher_capture(const struct matcher *m, unsigned i,
			   struct str value,
			   const struct matcher_scratch *scratch);
