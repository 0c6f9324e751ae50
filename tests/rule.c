/* SPDX-License-Identifier: MIT */
/* Matchers, rules over made-up subjects, and what a subject's texts become. */
#include "rule.h"
#include "name.h"
#include "tap.h"

#include <malloc.h>
#include <time.h>

/*
 * Allocations are counted by standing before malloc(), which glibc allows and
 * for which it keeps the originals; a sanitizer wants to stand there itself.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAVE_SANITIZER
#endif

static unsigned long n_allocations;

#ifndef HAVE_SANITIZER
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
	n_allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	n_allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	n_allocations++;
	return __libc_realloc(p, size);
}
#endif

enum {
	HOSTILE = 64 * 1024,
	CUT_MS_MAX = 500, /* it takes 1 to 8, more below valgrind */
};

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/*
 * Building. A rule set of a test is made of rows: one key with one item; a row
 * with a NULL text begins the next rule.
 */
struct set {
	struct ruleset *rs;
	struct diag d;
};

static void set_open(struct set *set)
{
	set->rs = ruleset_new();
	diag_init(&set->d, "rules.yaml");
	check(set->rs != NULL);
}

static void set_close(struct set *set)
{
	ruleset_free(set->rs);
	diag_done(&set->d);
}

static struct rule *add_rule(struct set *set, const char *name)
{
	struct ruleset *rs = set->rs;
	struct rule *r;

	rs->rule = reallocarray(rs->rule, rs->n_rules + 1, sizeof(*r));
	r = &rs->rule[rs->n_rules++];
	*r = (struct rule){.line = (unsigned)rs->n_rules};
	if (name)
		check_int(name_compile(str_of(name), NULL, 0, &set->d, 1, 1,
				       &r->name),
			  0);
	return r;
}

static void add(struct set *set, struct rule_terms *terms, enum rule_key key,
		const char *text)
{
	int r = rule_terms_add(terms, key, str_of(text), &set->d, 1, 1);

	check_int(r, 0);
	if (r)
		printf("# %s\n", set->d.msg[0].text);
}

static struct rule *add_simple(struct set *set, enum rule_key key,
			       const char *text)
{
	struct rule *r = add_rule(set, NULL);

	add(set, &r->terms, key, text);
	return r;
}

static struct rule_terms *add_not(struct rule *r)
{
	struct rule_terms *list;

	list = reallocarray(r->not, r->n_not + 1, sizeof(*list));
	r->not = list;
	list[r->n_not] = (struct rule_terms){.kernel = KERNEL_EITHER};
	return &list[r->n_not++];
}

static void seal(struct set *set)
{
	check_int(ruleset_seal(set->rs), 0);
}

/* A subject of which everything is known. */
static struct subject known(void)
{
	return (struct subject){
	    .have = SUBJECT_BIT(SUBJECT_N) - 1,
	    .pid = 4242,
	    .comm = STR("java"),
	    .uid = 501,
	    .gid = 20,
	    .user = STR("501"),
	    .cgroup = STR("/system.slice/app.service"),
	    .unit = STR("app.service"),
	    .slice = STR("system.slice"),
	    .exe_path = STR("/usr/lib/jvm/bin/java"),
	    .cmdline = STR("/usr/bin/java -jar /srv/shop.jar"),
	    .argv0 = STR("/usr/bin/java"),
	    .exe = STR("java"),
	};
}

/* Line of the rule that takes it; 0 if none. */
static unsigned taker(struct set *set, struct subject *s)
{
	struct rule_verdict v;

	ruleset_match(set->rs, 0, s, &v);
	check_int(v.action, v.rule ? v.rule->action : ACTION_LEAVE);
	return v.rule ? v.rule->line : 0;
}

/* Does one rule of one item take the subject? */
static bool takes(enum rule_key key, const char *text, struct subject s)
{
	struct set set;
	unsigned line;

	set_open(&set);
	add_simple(&set, key, text);
	seal(&set);
	line = taker(&set, &s);
	set_close(&set);
	return line;
}

static bool comm_takes(const char *text, const char *comm)
{
	struct subject s = known();

	s.comm = str_of(comm);
	return takes(RULE_COMM, text, s);
}

static bool cmdline_takes(const char *text, struct str cmdline)
{
	struct subject s = known();

	s.cmdline = cmdline;
	return takes(RULE_CMDLINE, text, s);
}

static void plain_text(void)
{
	struct subject s = known();

	check(comm_takes("java", "java"));
	check(!comm_takes("jav", "java"));
	check(!comm_takes("java", "javac"));
	check(!comm_takes("Java", "java"));
	check(!comm_takes("j.va", "java"));
	check(comm_takes("web: worker 1", "web: worker 1"));
	check(takes(RULE_USER, "501", s));
	check(!takes(RULE_USER, "50", s));
	check(takes(RULE_UNIT, "app.service", s));
	check(!takes(RULE_UNIT, "appxservice", s));
	check(takes(RULE_SLICE, "system.slice", s));
	check(!takes(RULE_SLICE, "system", s));
	check(takes(RULE_EXE_PATH, "/usr/lib/jvm/bin/java", s));
	check(!takes(RULE_EXE_PATH, "java", s));
	check(takes(RULE_CGROUP, "slice/app", s));
	check(takes(RULE_CGROUP, "a..\\.service$", s));
	check(takes(RULE_CMDLINE, "-jar .*\\.jar", s));
	check(!takes(RULE_CMDLINE, "-war", s));
}

static void prefixes(void)
{
	check(comm_takes("exact:java", "java"));
	check(comm_takes("exact:re:x", "re:x"));
	check(comm_takes("re:^ja", "java"));
	check(comm_takes("re:av", "java"));
	check(!comm_takes("re:^av", "java"));
	check(comm_takes("ire:^JA", "java"));
	check(!comm_takes("re:^JA", "java"));
	check(comm_takes("glob:j?v*", "java"));
	check(!comm_takes("glob:J*", "java"));
	check(comm_takes("iglob:J*", "java"));
	check(comm_takes("RE:java", "RE:java"));
	check(comm_takes("globe:java", "globe:java"));
	check(cmdline_takes("exact:a b", STR("a b")));
	check(!cmdline_takes("exact:a b", STR("a b c")));
}

static void globs(void)
{
	static const struct {
		const char *glob, *text;
		bool takes;
	} t[] = {
	    {"glob:*", "/usr/bin/x", true},
	    {"glob:*.service", "a/b.service", true},
	    {"glob:*", ".hidden", true},
	    {"glob:?hidden", ".hidden", true},
	    {"glob:/usr/**/x", "/usr/a/b/x", true},
	    {"glob:a*c", "abd", false},
	    {"glob:b", "abc", false},
	    {"glob:b*", "abc", false},
	    {"glob:*b", "abc", false},
	    {"glob:a.c", "abc", false},
	    {"glob:a+", "aa", false},
	    {"glob:a+", "a+", true},
	    {"glob:a|b", "a", false},
	    {"glob:(a)", "(a)", true},
	    {"glob:^a$", "^a$", true},
	    {"glob:[ab]x", "bx", true},
	    {"glob:[!ab]x", "bx", false},
	    {"glob:[!ab]x", "cx", true},
	    {"glob:[!b]", "s", true},
	    {"glob:[!s]", "s", false},
	    {"glob:[^s]x[!b]", "axs", true},
	    {"glob:\\[^s]", "[^s]", true},
	    {"glob:[[^s]", "^", true},
	    {"glob:[[^s]", "s", true},
	    {"glob:[[^s]", "x", false},
	    {"glob:[0-9][0-9]", "42", true},
	    {"glob:\\*", "*", true},
	    {"glob:\\*", "a", false},
	    {"glob:a\nb*", "a\nbc", true},
	    {"glob:a?b", "a\nb", true},
	    {"glob:a", "a\n", false},
	    {"glob:caf?", "caf\xe9", true},
	    {"glob:caf\xe9*", "caf\xe9s", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		bool got = comm_takes(t[i].glob, t[i].text);

		if (got != t[i].takes)
			printf("# %s on %s\n", t[i].glob, t[i].text);
		check(got == t[i].takes);
	}
}

static void bytes(void)
{
	check(cmdline_takes("--dir", STR("/usr/bin/tool --dir /data/caf\xe9/x "
					 "--title na\xc3")));
	check(cmdline_takes("caf./x", STR("caf\xe9/x")));
	check(cmdline_takes("caf\\xe9", STR("caf\xe9/x")));
	check(cmdline_takes("a.b", STR("a\nb")));
	check(cmdline_takes("a.b", STR("a\0b")));
	check(!cmdline_takes("a$", STR("a\n")));
	check(comm_takes("re:^JOBS", "JOBS - \xe8\xa1\x8c\xe8\xa1"));
	check(comm_takes("JOBS - \xe8\xa1", "JOBS - \xe8\xa1"));
}

static void uids(void)
{
	struct subject s = known();

	check(takes(RULE_UID, "501", s));
	check(!takes(RULE_UID, "50", s));
	s.uid = 4294967295u;
	check(takes(RULE_UID, "4294967295", s));
	s.have &= ~SUBJECT_BIT(SUBJECT_OWNER);
	s.uid = 0;
	check(!takes(RULE_UID, "0", s));
}

static void exe(void)
{
	struct subject s = known();

	check(takes(RULE_EXE, "java", s));
	check(takes(RULE_EXE, "glob:j*", s));
	check(!takes(RULE_EXE, "bin", s));
	check(takes(RULE_EXE, "/usr/bin/java", s));
	check(!takes(RULE_EXE, "/java", s));
	check(takes(RULE_EXE, "glob:*/java", s));
	check(takes(RULE_EXE, "re:bin/", s));
	check(!takes(RULE_EXE, "re:usr", s));
}

static void empty_values(void)
{
	struct subject s = known();

	s.cmdline = s.argv0 = s.exe = s.container = s.unit = STR("");
	check(!takes(RULE_CMDLINE, ".*", s));
	check(!takes(RULE_CMDLINE, "^$", s));
	check(!takes(RULE_CMDLINE_ALL, ".*", s));
	check(!takes(RULE_EXE, "glob:*", s));
	check(!takes(RULE_EXE, "re:/?", s));
	check(!takes(RULE_CONTAINER, "glob:*", s));
	check(!takes(RULE_UNIT, "re:", s));
	check(takes(RULE_COMM, "java", s));
	s.comm = STR("");
	check(takes(RULE_COMM, "re:^$", s));
}

/* What cmdl-05 is about: 7 KiB, and the telling text at its end. */
static void long_cmdline(void)
{
	static char text[65536];
	const char *end = "org.example.launcher.Bootstrap start";

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < sizeof(text); i += 40)
		memcpy(text + i, ":/opt/app/lib/", 14);
	memcpy(text + sizeof(text) - strlen(end), end, strlen(end));
	check(cmdline_takes("org\\.example\\.launcher\\.Bootstrap start$",
			    (struct str){text, sizeof(text)}));
	check(cmdline_takes("^:/opt.*Bootstrap ",
			    (struct str){text, sizeof(text)}));
	check(cmdline_takes("(?:[^ ]*/)*lib/.*Bootstrap",
			    (struct str){text + 58116, 7420}));
}

/* Text of the first message about a pattern that must not compile. */
static bool refused(enum rule_key key, const char *text, const char *want)
{
	struct rule_terms terms = {0};
	struct diag d;
	bool same;

	diag_init(&d, "rules.yaml");
	check_int(rule_terms_add(&terms, key, str_of(text), &d, 7, 9), -EINVAL);
	check_u64(d.n_errors, 1);
	check_u64(terms.n_terms, 0);
	same = d.n_msgs == 1 && !strcmp(d.msg[0].text, want) &&
	       d.msg[0].line == 7 && d.msg[0].column == 9;
	if (!same)
		printf("# %s\n", d.n_msgs ? d.msg[0].text : "no message");
	diag_done(&d);
	return same;
}

static void messages(void)
{
	static char big[MATCHER_PATTERN_MAX + 2];

	check(refused(RULE_CMDLINE, "-jar ([^/]+).jar)",
		      "regex \"-jar ([^/]+).jar)\": unmatched closing "
		      "parenthesis at offset 16"));
	check(refused(RULE_COMM, "re:(",
		      "regex \"(\": missing closing parenthesis at offset 1"));
	check(refused(RULE_CMDLINE, "(*UTF)x",
		      "regex \"(*UTF)x\": using UTF is disabled by the "
		      "application at offset 6"));
	check(refused(RULE_UNIT, "glob:a[b",
		      "glob \"a[b\": missing terminating ] for character class "
		      "at offset 3"));
	check(refused(RULE_UID, "wwwrun",
		      "uid: \"wwwrun\" is not a number from 0 to 4294967295"));
	check(refused(RULE_UID, "4294967296",
		      "uid: \"4294967296\" is not a number from 0 to "
		      "4294967295"));
	check(refused(RULE_UID, "-1",
		      "uid: \"-1\" is not a number from 0 to 4294967295"));
	check(refused(RULE_UID, "",
		      "uid: \"\" is not a number from 0 to 4294967295"));
	check(refused(RULE_COMM, "", "comm: empty pattern"));
	check(refused(RULE_COMM, "glob:", "comm: empty pattern"));
	check(refused(RULE_KERNEL, "maybe",
		      "kernel: \"maybe\" is not true, false or any"));
	check(refused(RULE_ANY, "false", "any: \"false\" is not true"));

	memset(big, 'a', sizeof(big) - 1);
	check(refused(RULE_CMDLINE, big,
		      "cmdline: pattern of 4097 bytes; at most 4096 are "
		      "allowed"));
	big[MATCHER_PATTERN_MAX] = '\0';
	check(cmdline_takes(big, str_of(big)));
	big[MATCHER_PATTERN_MAX - 1] = '(';
	check(
	    refused(RULE_CMDLINE, big,
		    "regex \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		    "aaaaaaaaaaaaaaaa...\": missing closing parenthesis at "
		    "offset 4096"));
}

static void first_wins(void)
{
	struct set set;
	struct subject s = known();

	set_open(&set);
	add_simple(&set, RULE_COMM, "bash");
	add_simple(&set, RULE_CMDLINE, "-jar");
	add_simple(&set, RULE_COMM, "java");
	add_rule(&set, NULL)->terms.any = true;
	seal(&set);
	check_u64(taker(&set, &s), 2);
	s.cmdline = STR("java");
	check_u64(taker(&set, &s), 3);
	s.comm = STR("sh");
	check_u64(taker(&set, &s), 4);
	s.kernel = true;
	check_u64(taker(&set, &s), 0);
	set_close(&set);
}

static void ands_and_ors(void)
{
	struct set set;
	struct subject s = known();
	struct rule *r;

	set_open(&set);
	r = add_rule(&set, NULL);
	add(&set, &r->terms, RULE_CMDLINE, "foo");
	add(&set, &r->terms, RULE_COMM, "bash");
	add(&set, &r->terms, RULE_CMDLINE, "-jar");
	add(&set, &r->terms, RULE_COMM, "java");
	r = add_rule(&set, NULL);
	add(&set, &r->terms, RULE_CMDLINE_ALL, "java");
	add(&set, &r->terms, RULE_CMDLINE_ALL, "-cp");
	seal(&set);
	check_u64(taker(&set, &s), 1);
	s.comm = STR("bash");
	check_u64(taker(&set, &s), 1);
	s.comm = STR("sh");
	check_u64(taker(&set, &s), 0);
	s.cmdline = STR("java -cp x");
	check_u64(taker(&set, &s), 2);
	s.cmdline = STR("perl -cp x");
	check_u64(taker(&set, &s), 0);
	set_close(&set);
}

static void actions(void)
{
	struct set set;
	struct subject s = known();
	struct rule_verdict v;

	set_open(&set);
	add_simple(&set, RULE_COMM, "bash")->action = ACTION_DROP;
	add_simple(&set, RULE_COMM, "java")->action = ACTION_LEAVE;
	seal(&set);
	ruleset_match(set.rs, 0, &s, &v);
	check(v.rule == &set.rs->rule[1]);
	check_int(v.action, ACTION_LEAVE);
	s.comm = STR("bash");
	ruleset_match(set.rs, 0, &s, &v);
	check_int(v.action, ACTION_DROP);
	s.comm = STR("sh");
	ruleset_match(set.rs, 0, &s, &v);
	check(!v.rule);
	check_int(v.action, ACTION_LEAVE);
	set_close(&set);
}

static void kernel_threads(void)
{
	static const struct {
		const char *kernel;
		bool user, thread;
	} t[] = {
	    {NULL, true, false},
	    {"false", true, false},
	    {"true", false, true},
	    {"any", true, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct set set;
		struct rule *r;
		struct subject s = known();

		set_open(&set);
		r = add_simple(&set, RULE_COMM, "java");
		if (t[i].kernel)
			add(&set, &r->terms, RULE_KERNEL, t[i].kernel);
		seal(&set);
		check_u64(taker(&set, &s), t[i].user);
		s.kernel = true;
		check_u64(taker(&set, &s), t[i].thread);
		set_close(&set);
	}
}

static void kernel_alone(void)
{
	struct set set;
	struct subject s = known();
	struct rule *r;

	set_open(&set);
	add(&set, &add_rule(&set, NULL)->terms, RULE_KERNEL, "true");
	r = add_rule(&set, NULL);
	add(&set, &r->terms, RULE_ANY, "true");
	add(&set, add_not(r), RULE_KERNEL, "false");
	seal(&set);
	check_u64(taker(&set, &s), 0);
	s.kernel = true;
	check_u64(taker(&set, &s), 1);
	set.rs->rule[0].terms.kernel = KERNEL_EITHER;
	check_u64(taker(&set, &s), 0);
	set_close(&set);
}

static void exceptions(void)
{
	struct set set;
	struct subject s = known();
	struct rule_terms *terms;
	struct rule *r;

	set_open(&set);
	r = add_simple(&set, RULE_COMM, "java");
	terms = add_not(r);
	add(&set, terms, RULE_USER, "ci");
	add(&set, terms, RULE_CMDLINE, "-test");
	add(&set, add_not(r), RULE_UNIT, "glob:ci-*");
	seal(&set);
	check_u64(taker(&set, &s), 1);
	s.user = STR("ci");
	check_u64(taker(&set, &s), 1);
	s.cmdline = STR("java -test");
	check_u64(taker(&set, &s), 0);
	s.user = STR("joe");
	check_u64(taker(&set, &s), 1);
	s.unit = STR("ci-7.service");
	check_u64(taker(&set, &s), 0);
	/* What cannot be read is no reason to leave a process out. */
	s.have &= ~SUBJECT_BIT(SUBJECT_CGROUP);
	s.absent = SUBJECT_BIT(SUBJECT_CGROUP);
	check_u64(taker(&set, &s), 1);
	set_close(&set);
}

/* Reading on demand: `arg` counts how often each source was asked for. */
struct reader {
	unsigned asked[SUBJECT_N];
	unsigned late, unreadable; /* SUBJECT_BIT()s */
};

static void sources_of_patterns(void)
{
	static const char *const texts[] = {
	    "java", "exact:java", "glob:j*", "iglob:J*", "re:^j", "ire:^J", "",
	};
	struct diag d;

	diag_init(&d, "rules.yaml");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct matcher m;

		check_int(matcher_init(&m, "cmdline", MATCHER_REGEX,
				       str_of(texts[i]), &d, 1, 1),
			  0);
		check_str(matcher_source(&m), texts[i]);
		matcher_done(&m);
	}
	diag_done(&d);
}

static struct rule_reason explain(struct set *set, size_t rule,
				  struct subject *s)
{
	struct rule_reason why;

	ruleset_explain(set->rs, &set->rs->rule[rule], s, &why);
	return why;
}

static void reasons(void)
{
	struct subject s = known();
	struct rule_reason why;
	struct rule *r;
	struct set set;

	set_open(&set);
	r = add_simple(&set, RULE_CMDLINE, "-war");
	add(&set, &r->terms, RULE_COMM, "java");
	add(&set, &r->terms, RULE_UNIT, "app.service");
	r = add_simple(&set, RULE_COMM, "java");
	r->terms.kernel = KERNEL_YES;
	add_simple(&set, RULE_UNIT, "glob:app*");
	seal(&set);

	why = explain(&set, 0, &s);
	check_int(why.truth, HOLDS_NOT);
	check_int(why.key, RULE_CMDLINE);
	check(why.term && why.term->key == RULE_CMDLINE && !why.absent);
	check_str(matcher_source(&why.term->item[0]), "-war");
	s.comm = STR("perl");
	why = explain(&set, 0, &s);
	check(why.term && why.term->key == RULE_COMM);
	why = explain(&set, 1, &s);
	check_int(why.key, RULE_KERNEL);
	check(!why.term && !why.excepted);
	check_int(explain(&set, 2, &s).truth, HOLDS);
	s.have &= ~SUBJECT_BIT(SUBJECT_CGROUP);
	why = explain(&set, 2, &s);
	check(why.term && why.absent && why.key == RULE_UNIT);
	s.absent &= ~SUBJECT_BIT(SUBJECT_CGROUP);
	s.pending |= SUBJECT_BIT(SUBJECT_CGROUP);
	why = explain(&set, 2, &s);
	check_int(why.truth, HOLDS_MAYBE);
	check(why.term && why.term->key == RULE_UNIT);
	set_close(&set);
}

static void reasons_of_exceptions(void)
{
	struct subject s = known();
	struct rule_reason why;
	struct rule *r;
	struct set set;

	set_open(&set);
	r = add_simple(&set, RULE_COMM, "java");
	add(&set, add_not(r), RULE_USER, "joe");
	add(&set, add_not(r), RULE_USER, "501");
	seal(&set);
	why = explain(&set, 0, &s);
	check_int(why.truth, HOLDS_NOT);
	check(why.excepted);
	check(why.except == &set.rs->rule[0].not [1]);
	s.user = STR("joe");
	check(explain(&set, 0, &s).except == &set.rs->rule[0].not [0]);
	s.user = STR("ann");
	why = explain(&set, 0, &s);
	check(why.truth == HOLDS && !why.excepted && !why.except);
	set_close(&set);
}

static void single_items(void)
{
	struct subject s = known();
	const struct rule_term *t;
	struct str value;
	struct rule *r, *exporter;
	struct set set;

	set_open(&set);
	r = add_simple(&set, RULE_EXE, "perl");
	add(&set, &r->terms, RULE_EXE, "glob:*/java");
	add_simple(&set, RULE_UID, "501");
	seal(&set);
	r = &set.rs->rule[0];
	exporter = &set.rs->rule[1];
	exporter->exporter = true;
	t = &set.rs->rule[0].terms.term[0];
	check_int(ruleset_try_item(set.rs, r, t->key, &t->item[0], &s, &value),
		  MATCHER_NO);
	check_str(value, "java");
	check_int(ruleset_try_item(set.rs, r, t->key, &t->item[1], &s, &value),
		  MATCHER_YES);
	check_str(value, "/usr/bin/java");
	t = &set.rs->rule[1].terms.term[0];
	check_int(ruleset_try_item(set.rs, r, t->key, &t->item[0], &s, &value),
		  MATCHER_YES);
	s.uid = 502;
	check_int(ruleset_try_item(set.rs, r, t->key, &t->item[0], &s, &value),
		  MATCHER_NO);
	s.argv0 = STR("/usr/bin/perl/");
	t = &set.rs->rule[0].terms.term[0];
	check_int(
	    ruleset_try_item(set.rs, exporter, t->key, &t->item[0], &s, &value),
	    MATCHER_YES);
	check_str(value, "perl");
	set_close(&set);
}

static void read_source(struct subject *s, enum subject_source source)
{
	struct reader *r = s->arg;
	struct subject all = known();

	r->asked[source]++;
	if (r->late & SUBJECT_BIT(source)) {
		s->pending |= SUBJECT_BIT(source);
		return;
	}
	if (r->unreadable & SUBJECT_BIT(source))
		return;
	all.have = s->have | SUBJECT_BIT(source);
	all.absent = s->absent;
	all.pending = s->pending;
	all.fetch = s->fetch;
	all.arg = s->arg;
	*s = all;
}

static struct subject unread(struct reader *r)
{
	return (struct subject){.fetch = read_source, .arg = r};
}

static void reads_little(void)
{
	struct set set;
	struct rule *r;
	struct reader reader = {0};
	struct subject s = unread(&reader);

	set_open(&set);
	r = add_rule(&set, NULL);
	add(&set, &r->terms, RULE_CMDLINE, "-jar");
	add(&set, &r->terms, RULE_EXE_PATH, "glob:*");
	add(&set, &r->terms, RULE_COMM, "bash");
	r = add_rule(&set, NULL);
	add(&set, &r->terms, RULE_EXE_PATH, "glob:*");
	add(&set, &r->terms, RULE_UNIT, "b.service");
	add(&set, &r->terms, RULE_USER, "501");
	r = add_rule(&set, NULL);
	add(&set, &r->terms, RULE_CGROUP, "app");
	seal(&set);
	check_u64(taker(&set, &s), 3);
	check_u64(reader.asked[SUBJECT_STAT], 1);
	check_u64(reader.asked[SUBJECT_OWNER], 1);
	check_u64(reader.asked[SUBJECT_CGROUP], 1);
	check_u64(reader.asked[SUBJECT_EXE], 0);
	check_u64(reader.asked[SUBJECT_CMDLINE], 0);
	check_u64(set.rs->sources,
		  SUBJECT_BIT(SUBJECT_STAT) | SUBJECT_BIT(SUBJECT_OWNER) |
		      SUBJECT_BIT(SUBJECT_CGROUP) | SUBJECT_BIT(SUBJECT_EXE) |
		      SUBJECT_BIT(SUBJECT_CMDLINE));
	set_close(&set);
}

static void asks_once(void)
{
	struct set set;
	struct reader reader = {.late = SUBJECT_BIT(SUBJECT_CMDLINE),
				.unreadable = SUBJECT_BIT(SUBJECT_EXE)};
	struct subject s = unread(&reader);

	set_open(&set);
	add_simple(&set, RULE_CMDLINE, "-jar");
	add_simple(&set, RULE_CMDLINE, "java");
	add_simple(&set, RULE_EXE_PATH, "glob:*");
	add_simple(&set, RULE_EXE_PATH, "re:.");
	seal(&set);
	check_u64(taker(&set, &s), 0);
	check_u64(reader.asked[SUBJECT_CMDLINE], 1);
	check_u64(reader.asked[SUBJECT_EXE], 1);
	check_u64(s.absent, SUBJECT_BIT(SUBJECT_EXE));
	s.fetch = NULL;
	s.absent = 0;
	check(!subject_need(&s, SUBJECT_EXE));
	check_u64(s.absent, SUBJECT_BIT(SUBJECT_EXE));
	set_close(&set);
}

static void sources_of_names(void)
{
	struct set set;

	set_open(&set);
	seal(&set);
	check_u64(set.rs->sources, 0);
	add_rule(&set, "{{.ExePath}}")->terms.kernel = KERNEL_EITHER;
	seal(&set);
	check_u64(set.rs->sources, SUBJECT_BIT(SUBJECT_EXE));
	name_free(set.rs->view[0].other);
	check_int(name_compile(STR("{{.Username}}"), NULL, 0, &set.d, 1, 1,
			       &set.rs->view[0].other),
		  0);
	add(&set, add_not(&set.rs->rule[0]), RULE_UNIT, "x");
	seal(&set);
	check_u64(set.rs->sources, SUBJECT_BIT(SUBJECT_EXE) |
				       SUBJECT_BIT(SUBJECT_OWNER) |
				       SUBJECT_BIT(SUBJECT_CGROUP));
	set_close(&set);
}

static struct rule_verdict late_verdict(struct set *set)
{
	struct reader reader = {.late = SUBJECT_BIT(SUBJECT_CMDLINE)};
	struct subject s = unread(&reader);
	struct rule_verdict v;

	seal(set);
	ruleset_match(set->rs, 0, &s, &v);
	set_close(set);
	set->rs = NULL;
	return v;
}

static void pending(void)
{
	struct set set;
	struct rule *r;

	set_open(&set);
	add_simple(&set, RULE_CMDLINE, "-jar");
	check(late_verdict(&set).pending);

	/* A later rule takes it for now. */
	set_open(&set);
	add_simple(&set, RULE_CMDLINE, "-jar");
	add_simple(&set, RULE_COMM, "java");
	seal(&set);
	{
		struct reader reader = {.late = SUBJECT_BIT(SUBJECT_CMDLINE)};
		struct subject s = unread(&reader);
		struct rule_verdict v;

		ruleset_match(set.rs, 0, &s, &v);
		check(v.rule == &set.rs->rule[1]);
		check(v.pending);
		s.pending = 0;
		reader.late = 0;
		ruleset_match(set.rs, 0, &s, &v);
		check(v.rule == &set.rs->rule[0]);
		check(!v.pending);
	}
	set_close(&set);

	/* An earlier rule has won already. */
	set_open(&set);
	add_simple(&set, RULE_COMM, "java");
	add_simple(&set, RULE_CMDLINE, "-jar");
	check(!late_verdict(&set).pending);

	/* The rule fails whatever the command line is. */
	set_open(&set);
	r = add_simple(&set, RULE_CMDLINE, "-jar");
	add(&set, &r->terms, RULE_EXE, "java");
	add(&set, &r->terms, RULE_USER, "ci");
	check(!late_verdict(&set).pending);

	set_open(&set);
	r = add_simple(&set, RULE_CMDLINE, "-jar");
	add(&set, add_not(r), RULE_COMM, "java");
	check(!late_verdict(&set).pending);
}

/* A late source that is not the dearest one: what follows may still fail. */
static void pending_in_the_middle(void)
{
	struct reader reader = {.late = SUBJECT_BIT(SUBJECT_CGROUP)};
	struct subject s = unread(&reader);
	struct rule_verdict v;
	struct rule *r;
	struct set set;

	set_open(&set);
	r = add_simple(&set, RULE_UNIT, "app.service");
	add(&set, &r->terms, RULE_CMDLINE, "-war");
	seal(&set);
	ruleset_match(set.rs, 0, &s, &v);
	check(!v.rule);
	check(!v.pending);
	set_close(&set);
}

static void pending_exception(void)
{
	struct reader reader = {.late = SUBJECT_BIT(SUBJECT_CMDLINE)};
	struct subject s = unread(&reader);
	struct rule_terms *terms;
	struct rule_verdict v;
	struct rule *r;
	struct set set;

	set_open(&set);
	r = add_simple(&set, RULE_COMM, "java");
	add(&set, add_not(r), RULE_CMDLINE, "-jar");
	seal(&set);
	ruleset_match(set.rs, 0, &s, &v);
	check(v.rule == r);
	check(v.pending);
	s.pending = reader.late = 0;
	ruleset_match(set.rs, 0, &s, &v);
	check(!v.rule);
	check(!v.pending);
	set_close(&set);

	/* Not if another key of the exception fails. */
	reader = (struct reader){.late = SUBJECT_BIT(SUBJECT_CMDLINE)};
	s = unread(&reader);
	set_open(&set);
	r = add_simple(&set, RULE_COMM, "java");
	terms = add_not(r);
	add(&set, terms, RULE_CMDLINE, "-jar");
	add(&set, terms, RULE_USER, "ci");
	seal(&set);
	ruleset_match(set.rs, 0, &s, &v);
	check(v.rule == r);
	check(!v.pending);
	set_close(&set);
}

static const struct rule_capture *find_capture(const struct rule_verdict *v,
					       const char *name)
{
	for (unsigned i = 0; i < v->n_captures; i++)
		if (str_eq(v->capture[i].name, str_of(name)))
			return &v->capture[i];
	return NULL;
}

static void check_capture(const struct rule_verdict *v, const char *name,
			  const char *want)
{
	const struct rule_capture *c = find_capture(v, name);

	check(c != NULL);
	if (c)
		check_str(c->value, want);
}

static void captures(void)
{
	struct rule_terms *terms;
	struct set set;
	struct subject s = known();
	struct rule_verdict v;
	struct rule *r;

	set_open(&set);
	/* This one fails late; what it caught must not stay. */
	r = add_simple(&set, RULE_COMM, "re:(?<left>.*)");
	add(&set, &r->terms, RULE_CMDLINE, "-war");
	r = add_simple(&set, RULE_CMDLINE, "(?<none>foo)");
	add(&set, &r->terms, RULE_CMDLINE, "/(?P<jar>[^/]+)\\.jar(?<opt> x)?");
	add(&set, &r->terms, RULE_CMDLINE, "(?<third>java)");
	add(&set, &r->terms, RULE_COMM, "re:^(?<first>.)(.)");
	add(&set, &r->terms, RULE_UNIT, "ire:(?<unit>APP)");
	add(&set, add_not(r), RULE_COMM, "re:(?<except>x)");
	terms = add_not(r);
	add(&set, terms, RULE_COMM, "re:(?<part>.)");
	add(&set, terms, RULE_USER, "ci");
	seal(&set);

	ruleset_match(set.rs, 0, &s, &v);
	check(v.rule == r);
	check_u64(v.n_captures, 4);
	check_capture(&v, "jar", "shop");
	check_capture(&v, "opt", "");
	check_capture(&v, "first", "j");
	check_capture(&v, "unit", "app");
	check(find_capture(&v, "jar")->value.s > s.cmdline.s &&
	      find_capture(&v, "jar")->value.s < s.cmdline.s + s.cmdline.n);

	check_u64(r->n_captures, 6);
	check_u64(set.rs->rule[0].n_captures, 1);
	check_text(r->capture[0], "first");

	/* The exception holds, after all keys did. */
	s.comm = STR("xy");
	ruleset_match(set.rs, 0, &s, &v);
	check(!v.rule);
	check_u64(v.n_captures, 0);
	set_close(&set);
}

static void captures_of_all(void)
{
	struct set set;
	struct subject s = known();
	struct rule_verdict v;
	struct rule *r;

	set_open(&set);
	r = add_simple(&set, RULE_CMDLINE_ALL, "(?<a>java)");
	add(&set, &r->terms, RULE_CMDLINE_ALL, "(?<b>-jar)(?<a> nothing)?");
	add(&set, &r->terms, RULE_CMDLINE_ALL, "(?J)(?<c>war)|(?<c>srv)");
	add(&set, &r->terms, RULE_CMDLINE_ALL, "-j(?<k>a\\Kr)|(?<l>x)");
	seal(&set);
	ruleset_match(set.rs, 0, &s, &v);
	check(v.rule == r);
	check_u64(r->n_captures, 5);
	check_capture(&v, "a", "java");
	check_capture(&v, "b", "-jar");
	check_capture(&v, "c", "srv");
	check_capture(&v, "k", "ar");
	check_capture(&v, "l", "");
	check_int(rule_collect_captures(set.rs, r), 0);
	check_u64(r->n_captures, 5);
	set_close(&set);
}

static void too_many_captures(void)
{
	struct set set;
	struct rule *r;
	char text[32];

	set_open(&set);
	r = add_rule(&set, NULL);
	for (int i = 0; i < RULE_CAPTURES_MAX; i++) {
		snprintf(text, sizeof(text), "(?<c%d>x)", i);
		add(&set, &r->terms, RULE_CMDLINE, text);
	}
	check_int(rule_collect_captures(set.rs, r), 0);
	check_u64(r->n_captures, RULE_CAPTURES_MAX);
	add(&set, &r->terms, RULE_CMDLINE, "(?<c3>y)");
	check_int(rule_collect_captures(set.rs, r), 0);
	add(&set, &r->terms, RULE_CMDLINE, "(?<more>y)");
	check_int(rule_collect_captures(set.rs, r), -E2BIG);
	check_int(ruleset_seal(set.rs), -E2BIG);
	set_close(&set);
}

/*
 * The last three come through PCRE2's match limit: bytes that one item scans
 * are not counted by it, and it counts anew at each start.
 */
static void slow_pattern(void)
{
	static const struct {
		const char *pattern;
		char byte;
	} t[] = {
	    {"(a+)+$", 'a'},
	    {"(x*)*y", 'x'},
	    {"(x*)*[yz]", 'x'},
	    {"(?:.*a){40}[bc]", 'a'},
	    {"^(?:a?){60}a{60}[bc]", 'a'},
	    {"(?:a|aa|a)*[bc]", 'a'},
	    {"(a(?1)?)+[bc]", 'a'},
	    {"a[^c]*+[cd]", 'a'},
	    {"a[^ ]*[^c]*+[cd]", 'a'},
	    {"(a*)\\1[bc]", 'a'},
	};
	static char text[HOSTILE];

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct subject s = known();
		struct set set;
		double before, took;

		memset(text, t[i].byte, sizeof(text));
		text[sizeof(text) - 1] = '!';
		s.cmdline = (struct str){text, sizeof(text)};
		set_open(&set);
		add_simple(&set, RULE_COMM, "bash");
		add_simple(&set, RULE_CMDLINE, t[i].pattern);
		add_simple(&set, RULE_COMM, "java");
		seal(&set);
		before = cpu_ms();
		check_u64(taker(&set, &s), 3);
		took = cpu_ms() - before;
		printf("# %s: %.1f ms, cut off %" PRIu64 "\n", t[i].pattern,
		       took, set.rs->n_regex_limit);
		check(took < CUT_MS_MAX);
		/* PCRE2 sees at once that there is no "y" in the text. */
		check_u64(set.rs->n_regex_limit, i != 1);
		check_u64(set.rs->rule[1].n_regex_limit, i != 1);
		check_u64(set.rs->rule[0].n_regex_limit, 0);
		set_close(&set);
	}
}

/* After one that was cut off the next starts with a full budget. */
static void budget_is_per_match(void)
{
	static char text[HOSTILE];
	struct subject s = known();
	struct set set;

	memset(text, 'a', sizeof(text));
	s.cmdline = (struct str){text, sizeof(text)};
	set_open(&set);
	add_simple(&set, RULE_CMDLINE, "a[^c]*+[cd]");
	add_simple(&set, RULE_CMDLINE, "a.*a$");
	seal(&set);
	for (unsigned i = 1; i <= 5; i++) {
		check_u64(taker(&set, &s), 2);
		check_u64(set.rs->n_regex_limit, i);
	}
	set_close(&set);
}

static void allocates_nothing(void)
{
	struct reader reader = {0};
	struct rule_verdict v;
	unsigned long before = 0;
	struct set set;
	struct rule *r;

	set_open(&set);
	r = add_simple(&set, RULE_CMDLINE, "glob:*nothing");
	add(&set, &r->terms, RULE_CMDLINE, "(?:a|b)*c");
	r = add_simple(&set, RULE_CMDLINE, "(?<jar>[^/]+)\\.jar$");
	add(&set, &r->terms, RULE_UNIT, "iglob:APP*");
	add(&set, &r->terms, RULE_UID, "501");
	add(&set, add_not(r), RULE_USER, "ci");
	seal(&set);
	/* Without JIT the first match makes room that later ones use. */
	for (unsigned i = 0; i < 100; i++) {
		struct subject s = unread(&reader);

		if (i == 1)
			before = n_allocations;
		ruleset_match(set.rs, 0, &s, &v);
		check(v.rule == r);
	}
	check_u64(n_allocations - before, 0);
	set_close(&set);
	if (n_allocations == 0)
		tap_skip("a sanitizer or valgrind stands before malloc()");
}

static void defaults(void)
{
	struct ruleset *rs = ruleset_new();

	check(rs && rs->view[0].other && name_is_static(rs->view[0].other));
	check_u64(rs->collect, collect_default());
	check_u64(rs->limits.groups, 500);
	check_u64(rs->limits.cmdline, 65536);
	check_u64(rs->limits.kept_fds, 0);
	check(!rs->limits.kept_fds_set);
	check(rs->gate);
	check_u64(rs->refresh_ns, 60 * NSEC_PER_SEC);
	ruleset_free(rs);
	ruleset_free(NULL);
}

static void key_table(void)
{
	for (size_t i = 0; i < RULE_KEY_N; i++) {
		check(rule_keys[i].name != NULL);
		check(rule_keys[i].all == (i == RULE_CMDLINE_ALL));
		for (size_t j = 0; j < i; j++)
			check(strcmp(rule_keys[i].name, rule_keys[j].name));
	}
}

/* Raw bytes of exactly that size after subject_set_cmdline(). */
struct split {
	char *raw;
	char argv0[64];
	struct subject s;
};

static struct split split;

static void set_split(const char *bytes, size_t n, size_t argv0_size)
{
	free(split.raw);
	memset(&split, 0, sizeof(split));
	split.raw = malloc(n + !n);
	memcpy(split.raw, bytes, n);
	subject_set_cmdline(&split.s, split.raw, n, split.argv0, argv0_size);
}

static void check_split(const char *bytes, size_t n, const char *cmdline,
			const char *argv0, const char *exe_name)
{
	set_split(bytes, n, sizeof(split.argv0));
	check_str(split.s.cmdline, cmdline);
	check_str(split.s.argv0, argv0);
	check_str(split.s.exe, exe_name);
}

#define SPLIT(bytes, cmdline, argv0, exe_name)                                 \
	check_split(bytes, sizeof(bytes) - 1, cmdline, argv0, exe_name)

static void cmdlines(void)
{
	SPLIT("/usr/bin/java\0-jar\0x.jar\0", "/usr/bin/java -jar x.jar",
	      "/usr/bin/java", "java");
	SPLIT("gate: master process /usr/sbin/gate -c /etc/gate.conf",
	      "gate: master process /usr/sbin/gate -c /etc/gate.conf",
	      "gate: master process /usr/sbin/gate -c /etc/gate.conf",
	      "gate: master process /usr/sbin/gate -c /etc/gate.conf");
	SPLIT("gate: worker /srv/x/y --mode fast\0",
	      "gate: worker /srv/x/y --mode fast",
	      "gate: worker /srv/x/y --mode fast",
	      "gate: worker /srv/x/y --mode fast");
	SPLIT("gate: worker\0/srv/x/y\0--mode\0fast\0",
	      "gate: worker /srv/x/y --mode fast", "gate: worker",
	      "gate: worker");
	SPLIT("/usr/sbin/gate -c /etc/x\0\0\0\0", "/usr/sbin/gate -c /etc/x",
	      "/usr/sbin/gate -c /etc/x", "gate -c /etc/x");
	SPLIT("/opt/my app/tool\0--name=a b\0c\0",
	      "/opt/my app/tool --name=a b c", "/opt/my app/tool", "tool");
	SPLIT("bash\0-c\0sleep 10;\necho two\0", "bash -c sleep 10; echo two",
	      "bash", "bash");
	SPLIT("-bash\0", "-bash", "-bash", "-bash");
	SPLIT("a\tb\x7f\0c\0", "a b  c", "a\tb\x7f", "a\tb\x7f");
	SPLIT("a\0\0b\0", "a  b", "a", "a");
	SPLIT("\0x\0", " x", "", "");
	SPLIT("/bin/caf\xe9\0", "/bin/caf\xe9", "/bin/caf\xe9", "caf\xe9");
	SPLIT("/\0", "/", "/", "");
	SPLIT("", "", "", "");
	SPLIT("\0\0\0", "", "", "");
}

static void cmdline_cut(void)
{
	const char *bytes = "/usr/bin/ja\tva\0-x";

	set_split(bytes, 17, 8);
	check_str(split.s.argv0, "/usr/bin");
	check_str(split.s.exe, "ja va");
	check(split.argv0[8] == '\0');
	set_split(bytes, 17, 0);
	check_str(split.s.argv0, "");
	check_str(split.s.exe, "ja va");
	set_split(bytes, 17, 14);
	check_str(split.s.argv0, "/usr/bin/ja\tva");
	check_str(split.s.exe, "ja\tva");
}

static void rewritten_titles(void)
{
	set_split("gate: worker /srv/x/y --mode fast", 33, 64);
	check(cmdline_takes("gate: worker .*--mode fast", split.s.cmdline));
	set_split("gate: worker\0/srv/x/y\0--mode\0fast", 33, 64);
	check(cmdline_takes("gate: worker .*--mode fast", split.s.cmdline));
	set_split("bash\0-c\0sleep 10;\necho two\0", 27, 64);
	check(cmdline_takes("echo two", split.s.cmdline));
}

static void workers(void)
{
	static const struct {
		const char *comm, *stable;
	} t[] = {
	    {"kworker/0:1H-kblockd", "kworker/0:1H"},
	    {"kworker/0:1-events", "kworker/0:1"},
	    {"kworker/3:0+events_freezable_power_", "kworker/3:0"},
	    {"kworker/u8:2-events_unbound", "kworker/u8:2"},
	    {"kworker/u512:13+some-rather_long+name", "kworker/u512:13"},
	    {"kworker/0:1H", "kworker/0:1H"},
	    {"kworker/dying", "kworker/dying"},
	    {"kworker/R-kblockd", "kworker/R-kblockd"},
	    {"kworker/R-xfs-log/sda1", "kworker/R-xfs-log/sda1"},
	    {"kworker/R-mld-mld", "kworker/R-mld"},
	    {"kworker/R-mld+mld", "kworker/R-mld"},
	    {"kworker/R-xfs-log-xfs-log", "kworker/R-xfs-log"},
	    {"kworker/R-", "kworker/R-"},
	    {"kworker/R--", "kworker/R-"},
	    {"kworker/R--a-a", "kworker/R--a-a"},
	    {"kworker/", "kworker/"},
	    {"kworker", "kworker"},
	    {"my-worker", "my-worker"},
	    {"", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		check_str(subject_stable_comm(str_of(t[i].comm), true),
			  t[i].stable);
		check_str(subject_stable_comm(str_of(t[i].comm), false),
			  t[i].comm);
	}
}

static void random_patterns(void)
{
	static const char *const pieces[] = {
	    "glob:", "re:", "ire:", "(",     ")",     "[",     "]",
	    "*",     "+",   "?",    "a",     "b",     "\\",    ".",
	    "|",     "^",   "$",    "{2,3}", "(?<n>", "\\1",   "/",
	    "\xff",  "\n",  "(?=",  "(?R)",  "\\K",   "(?C1)", "[^a]",
	};
	unsigned n_compiled = 0;
	uint64_t seed = 3;

	for (unsigned round = 0; round < 4000; round++) {
		char text[256] = "", subject[64];
		struct subject s = known();
		struct set set;
		struct rule *r;

		for (unsigned i = 0; i < 1 + round % 9; i++) {
			seed = seed * 6364136223846793005u + 1;
			strcat(text, pieces[(seed >> 33) % ARRAY_SIZE(pieces)]);
		}
		for (size_t i = 0; i < sizeof(subject); i++) {
			seed = seed * 6364136223846793005u + 1;
			subject[i] = (char)(seed >> 35 & 1 ? 'a' : seed >> 40);
		}
		s.cmdline = (struct str){subject, 1 + round % 64};
		set_open(&set);
		r = add_rule(&set, NULL);
		if (!rule_terms_add(&r->terms, RULE_CMDLINE, str_of(text),
				    &set.d, 1, 1)) {
			n_compiled++;
			check(!set.d.n_errors);
			seal(&set);
			taker(&set, &s);
		} else {
			check_u64(set.d.n_errors, 1);
		}
		set_close(&set);
	}
	check(n_compiled > 400);
}

int main(void)
{
	alarm(120); /* a pattern that runs away would run for hours */

	TEST("text without a prefix is exact, but for cmdline and cgroup",
	     plain_text);
	TEST("prefixes say how a text is compared", prefixes);
	TEST("a glob takes the whole text and its wildcards all bytes", globs);
	TEST("patterns match bytes of any encoding", bytes);
	TEST("a uid is a number, and an unknown owner is nobody", uids);
	TEST("exe is the base name unless the item has a slash", exe);
	TEST("an empty value matches nothing, but comm does", empty_values);
	TEST("text at the end of a long command line matches", long_cmdline);
	TEST("mistakes in a pattern are told with their place", messages);
	TEST("the first rule that holds wins", first_wins);
	TEST("keys are ANDed, items ORed, those of cmdline_all ANDed",
	     ands_and_ors);
	TEST("a verdict tells the action of its rule", actions);
	TEST("a rule takes kernel threads only if it says so", kernel_threads);
	TEST("kernel may be the only key, and nothing is no key", kernel_alone);
	TEST("an exception holds if all its keys do", exceptions);
	TEST("a pattern is known as it was given", sources_of_patterns);
	TEST("the reason is the first key that fails, and its items", reasons);
	TEST("the reason names the exception that holds",
	     reasons_of_exceptions);
	TEST("each item can be tried, and tells on what", single_items);
	TEST("only what a rule still needs is read, cheapest first",
	     reads_little);
	TEST("a source is asked for once", asks_once);
	TEST("the sources of names are known", sources_of_names);
	TEST("a verdict is pending only if it may change", pending);
	TEST("a rule that fails later on is not waited for",
	     pending_in_the_middle);
	TEST("an exception that is not known yet does not hold",
	     pending_exception);
	TEST("the captures are those of the rule that wins", captures);
	TEST("patterns that are ANDed share their captures", captures_of_all);
	TEST("more captures than there is room for are refused",
	     too_many_captures);
	TEST("a pattern that runs away is cut off and counted", slow_pattern);
	TEST("the budget of a match does not suffer from the one before",
	     budget_is_per_match);
	TEST("matching allocates nothing", allocates_nothing);
	TEST("a new rule set has the defaults", defaults);
	TEST("each key has a row and a name of its own", key_table);
	TEST("a command line becomes argv0, base name and one text", cmdlines);
	TEST("an argv0 that is too long is cut, its base name is not",
	     cmdline_cut);
	TEST("one pattern matches a title and the arguments it came from",
	     rewritten_titles);
	TEST("the name of a workqueue worker is stable", workers);
	TEST("random patterns compile or are refused, and do no harm",
	     random_patterns);
	free(split.raw);
	return tap_done();
}
