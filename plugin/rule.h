/* SPDX-License-Identifier: MIT */
/*
 * Rules over a borrowed `struct subject`. A rule set is built by the loader
 * (rulefile) and is constant from then on but for its counters. This module
 * knows neither /proc nor YAML: what a subject lacks it asks for through the
 * subject's own fetch function, cheapest source first, and only while a rule
 * that could still win needs it.
 *
 * Invariant: bytes, not characters. No input is rejected for its encoding.
 */
#pragma once

#include "base.h"
#include "diag.h"
#include "matcher.h"
#include "metric.h"
#include "pss.h"
#include "subject.h"

struct name;

/* The keys of a rule; each is one row of rule_keys[] in rule.c. */
enum rule_key {
	RULE_COMM,
	RULE_KERNEL,
	RULE_PIDFILE,
	RULE_PARENT,
	RULE_ANCESTOR,
	RULE_UID,
	RULE_USER,
	RULE_GID,
	RULE_GROUP,
	RULE_CGROUP,
	RULE_UNIT,
	RULE_SLICE,
	RULE_CONTAINER,
	RULE_POD,
	RULE_EXE_PATH,
	RULE_EXE,
	RULE_CMDLINE,
	RULE_CMDLINE_ALL,
	RULE_ANY,
	RULE_KEY_N,
};

/* What an item of a key is. */
enum rule_item {
	ITEM_TEXT,    /* a pattern for a str of the subject */
	ITEM_NUMBER,  /* a uint32_t of the subject */
	ITEM_PIDFILE, /* a path */
	ITEM_KIN,     /* a mapping of keys, about another process */
	ITEM_SWITCH,  /* no list: a word */
};

struct rule_key_def {
	const char *name;
	enum subject_source source;
	enum rule_item item;
	enum matcher_kind plain; /* what text without a prefix means */
	bool all;		 /* every item must match; else one of them */
	size_t field;		 /* offset in struct subject */
};

extern const struct rule_key_def rule_keys[RULE_KEY_N];

enum rule_action {
	ACTION_GROUP,
	ACTION_DROP,
	ACTION_LEAVE,
};

enum rule_kernel {
	KERNEL_NO,
	KERNEL_YES,
	KERNEL_EITHER,
};

/* One key with its items. */
struct rule_term {
	enum rule_key key;
	struct matcher *item;
	size_t n_items, cap;
	uint64_t kin; /* RULE_PARENT, RULE_ANCESTOR: bits of ruleset.kin[] */
};

/*
 * A conjunction of conditions, as stands in a rule or below `not`. One with
 * nothing in it (no term, any not set, KERNEL_EITHER) never holds.
 */
struct rule_terms {
	struct rule_term *term; /* sorted by cost of their source */
	size_t n_terms, cap;
	bool any;
	enum rule_kernel kernel;
};

enum {
	RULE_CAPTURES_MAX = 16, /* names that the patterns of a rule capture */
	RULE_KIN_MAX = 64,	/* mappings below parent and ancestor */
	RULE_PIDFILES_MAX = 1000, /* each is looked at in each tick */
	RULE_VIEWS_MAX = 8,

	/* Generations of children that join where no rule takes them. */
	CHILDREN_NONE = 0,
	CHILDREN_DEPTH_MAX = 254,
	CHILDREN_ALL = 255,
};

/* One series for each member beside the group's. */
enum series_by {
	SERIES_NONE,
	SERIES_SLOT, /* numbered from 0, reused */
	SERIES_PID,
};

enum series_top {
	TOP_ALL,
	TOP_CPU,
	TOP_RSS,
	TOP_PSS,
	TOP_IO,
	TOP_GPU,
	TOP_N,
};

struct series_policy {
	enum series_by by;
	enum series_top top;
	unsigned n;	  /* of the top; 0: all members */
	uint64_t min_rss; /* bytes */
	double min_cpu;	  /* percent of one CPU */
	uint64_t min_age_ns;
};

struct rule {
	struct rule_terms terms;
	struct rule_terms * not ; /* none of them may hold */
	size_t n_not;
	enum rule_action action;
	struct name *name; /* NULL unless ACTION_GROUP */
	collect_mask collect;
	struct pss_policy pss;
	bool exporter;	     /* it means what process-exporter means by it */
	uint8_t children;    /* CHILDREN_NONE, a depth, CHILDREN_ALL */
	unsigned max_groups; /* distinct names; what is beyond joins overflow */
	struct name *overflow; /* NULL for a name without tokens */
	struct series_policy series;
	unsigned line, column;
	uint64_t hash;			  /* of what stands in the file */
	char *capture[RULE_CAPTURES_MAX]; /* names of the captures */
	unsigned n_captures;

	/* Counted while matching. */
	uint64_t n_regex_limit; /* matches that were cut off */
	bool told_regex_limit;	/* the monitor said so */
	bool told_overflow;	/* the same of max_groups */
};

/*
 * What `parent` or `ancestor` wants of another process: a trait, which each
 * process has or has not. One bit per trait stands for it in masks.
 */
struct rule_kin {
	struct rule_terms terms;
	struct rule_terms * not ;
	size_t n_not;
};

/* A file that names a process; who reads it keeps `pid` up to date. */
struct rule_pidfile {
	char *path; /* below the root of the host */
	pid_t pid;  /* 0: none */
};

/* One way to divide all processes into groups. */
struct rule_view {
	char *name; /* NULL: "app", whose groups have no prefix */
	size_t first, n_rules;
	struct name *other;   /* NULL: what no rule takes is dropped */
	collect_mask collect; /* of `other` */
	struct pss_policy pss;
};

struct rule_limits {
	unsigned groups;   /* distinct groups in all */
	size_t cmdline;	   /* bytes of a command line that are matched */
	unsigned kept_fds; /* 0: auto */
	bool kept_fds_set;
	bool no_exits; /* do not ask the kernel for exit records */
};

struct ruleset {
	struct rule *rule; /* of all views, one view after the other */
	size_t n_rules, cap;
	struct rule_view view[RULE_VIEWS_MAX];
	size_t n_views;
	struct rule_kin *kin; /* those that others are made of come first */
	size_t n_kin, kin_cap;
	struct rule_pidfile *pidfile;
	size_t n_pidfiles, pidfile_cap;
	struct matcher *manager; /* of comms: nothing is inherited from these */
	size_t n_managers, manager_cap;
	struct matcher *interpreter; /* of base names: these have a script */
	size_t n_interpreters, interpreter_cap;
	bool init_gives;	 /* process 1 hands its group on like others */
	collect_mask collect;	 /* the default of rules */
	bool gpu_is_expected;	 /* somebody says gpu: true */
	struct pss_policy pss;	 /* the same */
	uint32_t pss_budget_ppm; /* of one CPU */
	uint8_t children;	 /* the default of rules */
	struct rule_limits limits;
	bool has_series; /* some rule has a series for each member */
	bool gate;
	uint64_t refresh_ns; /* how often idle processes are looked at */
	uint64_t recheck_ns; /* those younger are asked about when they ran */
	uint64_t idle_ns;    /* then a group with a templated name goes */
	unsigned sources;    /* SUBJECT_BIT()s that a rule or a name asks for */
	struct matcher_scratch *scratch; /* made once, when sealed */

	/* Counted while matching. */
	uint64_t n_regex_limit; /* matches that were cut off */
};

/*
 * An empty rule set with all defaults; NULL if out of memory. Freeing one
 * frees all that hangs from it, names and captures included, and takes NULL
 * and half-built ones.
 */
struct ruleset *ruleset_new(void);
void ruleset_free(struct ruleset *rs);

/*
 * Appends one item to a term list, compiling it. `text` may have a prefix
 * (glob:, re:, exact:, iglob:, ire:); for the key kernel it is "true", "false"
 * or "any", for the key any "true". Mistakes are added to `d` at line and
 * column. Returns 0, -EINVAL (told in d) or -ENOMEM.
 */
int rule_terms_add(struct rule_terms *terms, enum rule_key key, struct str text,
		   struct diag *d, unsigned line, unsigned column);

/* A key whose list is empty. */
int rule_terms_add_empty(struct rule_terms *terms, enum rule_key key);

/*
 * The same for pidfile, parent and ancestor: their items are in the set.
 * -E2BIG says that there are RULE_PIDFILES_MAX already.
 */
int rule_terms_add_pidfile(struct ruleset *rs, struct rule_terms *terms,
			   struct str path);
int rule_terms_add_kin(struct rule_terms *terms, enum rule_key key, size_t kin);

/* Room for one more; NULL if out of memory. */
struct rule *ruleset_add_rule(struct ruleset *rs);
struct rule_kin *ruleset_add_kin(struct ruleset *rs);

/* Puts the usual names in, where the file gives no list of its own. */
int ruleset_default_managers(struct ruleset *rs);
int ruleset_default_interpreters(struct ruleset *rs);

/*
 * Fills capture[] from the named groups of the rule's own patterns and of
 * those below parent and ancestor, not those below `not`; each name once. To
 * be called when all patterns are there and before the rule's name is
 * compiled; it may be called again. Returns 0, -E2BIG if there are more than
 * RULE_CAPTURES_MAX, or -ENOMEM.
 */
int rule_collect_captures(const struct ruleset *rs, struct rule *r);

/*
 * Last step of building: sorts terms, collects captures and sources, makes
 * the scratch space. Returns 0 or a negative errno.
 */
int ruleset_seal(struct ruleset *rs);

struct rule_capture {
	struct str name;
	struct str value;
};

/* What a rule set says of a subject. */
struct rule_verdict {
	const struct rule *rule; /* NULL: no rule took it */
	enum rule_action action; /* ACTION_LEAVE if no rule took it */
	bool pending; /* a source that is still pending could change this */
	struct rule_capture capture[RULE_CAPTURES_MAX];
	unsigned n_captures;
	struct str ancestor; /* comm of who met parent or ancestor */
};

/*
 * Finds the first rule of a view that holds. Never blocks, allocates nothing.
 *
 * What is absent or empty matches no pattern: `.*` does not take a process
 * without a command line, so that kernel threads and zombies do not land in a
 * catch-all by accident. comm alone may be empty.
 *
 * A term whose source is pending counts as one that does not hold, also below
 * `not`; the verdict is pending unless something else decides the same way.
 *
 * Captures are those of the items that matched, of several for one term the
 * first; an optional group that took no part is empty. They point into the
 * subject's strings. Where two patterns of a rule capture the same name the
 * one that is matched later wins, unless it took nothing.
 *
 * A rule of process-exporter takes an empty command line for a text like
 * others, the base name of argv[0] as Go's filepath.Base() has it, and the
 * later of two captures in any case; what has no name is captured as "".
 */
void ruleset_match(struct ruleset *rs, size_t view, struct subject *s,
		   struct rule_verdict *ret);

/* Why a rule does not hold. */
struct rule_reason {
	enum truth {
		HOLDS_NOT,
		HOLDS,
		HOLDS_MAYBE, /* a source is pending, and nothing else fails */
	} truth;
	bool excepted;	   /* all keys hold, but so do those of `not` */
	bool absent;	   /* the source of `key` could not be read */
	enum rule_key key; /* the first that does not hold */
	const struct rule_term *term;	 /* of that key; NULL for switches */
	const struct rule_terms *except; /* if excepted: the first that holds */
};

/* The same for one rule, with the reason. */
void ruleset_explain(struct ruleset *rs, struct rule *rule, struct subject *s,
		     struct rule_reason *ret);

/*
 * Compares one item of a key of a rule with the process: a text, a number or
 * a pidfile, whose source is there. *ret_value is the text that it was tried
 * on. What was captured is lost.
 */
enum matcher_result ruleset_try_item(const struct ruleset *rs,
				     const struct rule *rule, enum rule_key key,
				     const struct matcher *item,
				     const struct subject *s,
				     struct str *ret_value);

/* What can be asked of a process by others. */
struct rule_traits {
	uint64_t holds;	  /* bit per trait */
	uint64_t pending; /* these could turn out to hold */
	unsigned n_captures;
	struct trait_capture {
		unsigned trait;
		struct rule_capture text;
	} capture[RULE_CAPTURES_MAX];
};

/* Tries all traits on a process; captures as in ruleset_match(). */
void ruleset_traits(struct ruleset *rs, struct subject *s,
		    struct rule_traits *ret);

/*
 * The view that this name of a group of the view "app" would be taken for one
 * of, or NULL. Groups of other views are VIEW.GROUP.
 */
const char *ruleset_view_of_name(const struct ruleset *rs, struct str name);

/* Does any rule or view want these values? */
bool ruleset_collects(const struct ruleset *rs, enum collect_key key);

/* Does nothing pass this process to those below it? By its comm. */
bool ruleset_is_manager(struct ruleset *rs, struct str comm);

/* Forgets the script of a process whose program is no interpreter. */
void ruleset_check_script(struct ruleset *rs, struct subject *s);
