/* SPDX-License-Identifier: MIT */
/*
 * What lint takes for certain is held against what matching does: shapes
 * against their patterns, over all short texts; rules that are said to take
 * nothing against processes of all kinds. What is said, and where, is in
 * tests/rules/good.
 */
#include "tap.h"

#include "rulefile.h"
#include "rulelint-shape.h"

enum {
	LENGTH_MAX = 5,
	N_TEXTS = 1 + 4 + 16 + 64 + 256 + 1024, /* of letters[] */
	N_SETS = 1500,				/* of rules made up */
};

static const char letters[] = "abB.";

static const char *const patterns[] = {
    /* texts and globs */
    "exact:ab",
    "exact:a.b",
    "exact:B",
    "glob:*",
    "glob:**",
    "glob:a*",
    "glob:*a",
    "glob:*a*",
    "glob:a*b*a",
    "glob:?",
    "glob:?*",
    "glob:*?",
    "glob:*?*?",
    "glob:a?b",
    "glob:a[ab]",
    "glob:[!a]*",
    "glob:a[.]b*",
    "glob:\\a*",
    "glob:\\.?",
    "glob:a\\.",
    "iglob:AB*",
    "iglob:b?",
    "iglob:.",
    /* anchors */
    "re:",
    "re:^",
    "re:$",
    "re:^$",
    "re:^a",
    "re:a$",
    "re:^ab$",
    "re:^^a",
    "re:a$$",
    "re:a^b",
    "re:a*^b",
    "re:(?:a)^b",
    "re:(?:a)?^b",
    "re:$a",
    "re:$a*",
    "re:a$b?",
    "re:a$.*",
    "re:a$^",
    "re:$^",
    "re:^|a",
    "re:a^|b",
    "re:b$|a",
    "re:(?:a$|b)a",
    "re:(^|a)b",
    "re:\\ba",
    "re:a\\b",
    "re:a\\Bb",
    "re:\\b",
    "re:(?m)a$",
    "re:(?=a)..$",
    "re:(?<=a)b",
    "re:(?<!a)b$",
    /* repetition */
    "re:.",
    "re:.*",
    "re:.+",
    "re:.?",
    "re:..",
    "re:^.*$",
    "re:^.+a",
    "re:a*",
    "re:^a*$",
    "re:^a+$",
    "re:^a?b",
    "re:^a*?b",
    "re:^a*+b",
    "re:^.*+b",
    "re:^.+?b$",
    "re:^a{2}$",
    "re:^a{1,2}$",
    "re:^a{2,}$",
    "re:^a{0}b",
    "re:^.{2}$",
    "re:^.{2,}b",
    "re:^.{0,2}$",
    "re:^.{70}",
    "re:^(?:ab)*$",
    "re:^(?:ab){2}",
    "re:^a{,2}$",
    "re:^a{b",
    "re:a{",
    "re:^[ab]$",
    "re:^[^a]+$",
    "re:^[]a]",
    "re:^[^]a]b",
    "re:[\\]a]b",
    "re:^[[:alpha:]]",
    "re:^[a[.]b",
    "re:[b-]*$",
    /* escapes and groups */
    "re:^\\.",
    "re:^a\\.b$",
    "re:\\x61",
    "re:^\\x{61}",
    "re:^\\x2e$",
    "re:^\\141",
    "re:^\\0",
    "re:^\\x6",
    "re:^\\w+$",
    "re:^\\W",
    "re:\\d",
    "re:^\\Qa.\\E",
    "re:^(?:\\Q)\\E|a)b",
    "re:^[\\Q]\\Ea]b",
    "re:^[\\E]a]b",
    "re:^.{70,}$",
    "re:^(?:a(?#()b)a",
    "re:^(?:[(]|a)b",
    "re:^\\Ab\\z",
    "re:\\Aa",
    "re:^(a)\\1$",
    "re:^(a|b)a",
    "re:^(?P<x>a)b",
    "re:^(?<x>a)b$",
    "re:^(?'x'a)b",
    "re:^(?|a|b)b$",
    "re:^(?>a*)b",
    "re:^(?i)ab",
    "re:^(?i:a)b",
    "re:^a(?i)b$",
    "re:^(a(?i)b)",
    "re:^((?x) a # )\n)b",
    "re:^a(?#b)b$",
    "re:^a(?!b)",
    "re:^a(*ACCEPT)b",
    "re:^(a(*ACCEPT))b",
    "re:a\\Kb",
    "re:^(\\)|[)])*a",
    "re:^((a)|(b))+$",
    "re:^(a)?(?(1)b|a)$",
    "re:^(?:a|(?R))b",
    "ire:^ab$",
    "ire:^B.?$",
    "ire:\\.b",
    "ire:^[a]",
};

struct pattern {
	const char *text;
	struct matcher matcher;
	struct shape shape;
	bool takes[N_TEXTS];
};

static struct pattern all[ARRAY_SIZE(patterns)];

/* The text of that number, shorter ones first. */
static struct str text_of(size_t number, char buf[LENGTH_MAX])
{
	size_t n = 0, count = 1;

	while (number >= count) {
		number -= count;
		count *= strlen(letters);
		n++;
	}
	for (size_t i = 0; i < n; i++, number /= strlen(letters))
		buf[i] = letters[number % strlen(letters)];
	return (struct str){buf, n};
}

static void compile(struct pattern *p, const char *text)
{
	struct matcher_scratch *scratch = matcher_scratch_new(16);
	char buf[LENGTH_MAX];
	struct diag d;

	p->text = text;
	diag_init(&d, "f");
	if (matcher_init(&p->matcher, "comm", MATCHER_EXACT, str_of(text), &d,
			 1, 1)) {
		tap_fail(__FILE__, __LINE__, "%s", d.msg[0].text);
	} else {
		check_int(shape_init(&p->shape, &p->matcher), 0);
		for (size_t k = 0; k < N_TEXTS; k++)
			p->takes[k] =
			    matcher_match(&p->matcher, text_of(k, buf),
					  scratch) == MATCHER_YES;
	}
	diag_done(&d);
	matcher_scratch_free(scratch);
}

static void compile_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		compile(&all[i], patterns[i]);
}

static void free_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		shape_done(&all[i].shape);
		matcher_done(&all[i].matcher);
	}
}

static bool is_in(const struct shape *s, struct str text)
{
	uint16_t token[LENGTH_MAX];
	struct shape narrow = {.token = token, .n = text.n};

	for (size_t i = 0; i < text.n; i++)
		token[i] = (unsigned char)text.s[i];
	return shape_covers(s, &narrow);
}

static void check_text_of(const struct pattern *p, struct str text, bool yes)
{
	bool in = is_in(&p->shape, text);

	if (yes && (p->shape.fault || matcher_min_length(&p->matcher) > text.n))
		tap_fail(__FILE__, __LINE__, "%s matches \"%.*s\"", p->text,
			 (int)text.n, text.s);
	if (yes && !in)
		tap_fail(__FILE__, __LINE__, "shape of %s lacks \"%.*s\"",
			 p->text, (int)text.n, text.s);
	if (p->shape.exact && in && !yes)
		tap_fail(__FILE__, __LINE__, "shape of %s has \"%.*s\"",
			 p->text, (int)text.n, text.s);
}

static void check_shape(const struct pattern *p)
{
	size_t n = 0;
	char buf[LENGTH_MAX];

	for (size_t k = 0; k < N_TEXTS; k++) {
		check_text_of(p, text_of(k, buf), p->takes[k]);
		n += p->takes[k];
	}
	if (p->shape.literal && n != 1)
		tap_fail(__FILE__, __LINE__, "%s takes %zu texts", p->text, n);
}

static void shapes(void)
{
	size_t n_exact = 0, n_literal = 0, n_faults = 0;

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		check_shape(&all[i]);
		n_exact += all[i].shape.exact;
		n_literal += all[i].shape.literal;
		n_faults += all[i].shape.fault != SHAPE_FINE;
	}
	check(n_exact > ARRAY_SIZE(patterns) / 4);
	check(n_literal >= 8);
	check(n_faults >= 3);
}

static void check_pair(const struct pattern *wide, const struct pattern *narrow)
{
	for (size_t k = 0; k < N_TEXTS; k++) {
		char buf[LENGTH_MAX];
		struct str text = text_of(k, buf);

		if (narrow->takes[k] && !wide->takes[k])
			tap_fail(__FILE__, __LINE__,
				 "%s takes \"%.*s\", %s does not", narrow->text,
				 (int)text.n, text.s, wide->text);
	}
}

static void coverage(void)
{
	size_t n = 0;

	for (size_t w = 0; w < ARRAY_SIZE(patterns); w++) {
		for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
			if (w == i || !all[w].shape.exact ||
			    !shape_covers(&all[w].shape, &all[i].shape))
				continue;
			check_pair(&all[w], &all[i]);
			n++;
		}
	}
	check(n > 1000);
}

static const struct pattern *find(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if (strcmp(patterns[i], text) == 0)
			return &all[i];
	tap_fail(__FILE__, __LINE__, "no pattern %s", text);
	return &all[0];
}

/* Each is covered by the one before it. */
static void found(void)
{
	static const char *const rows[][4] = {
	    {"re:.*", "re:^a", "re:^a{2}$"},
	    {"glob:*", "glob:*a*", "glob:*a", "re:^a{2}$"},
	    {"re:.+", "glob:*?", "glob:?*", "re:^[ab]$"},
	    {"iglob:AB*", "ire:^ab$", "exact:ab"},
	    {"glob:a*", "re:^a(?!b)"},
	    {"re:^a", "re:^a\\.b$", "exact:a.b"},
	    {"re:.", "re:^a{0}b", "re:^\\Ab\\z"},
	};

	for (size_t i = 0; i + 1 < ARRAY_SIZE(rows); i++)
		for (size_t j = 1; j < 4 && rows[i][j]; j++)
			if (!shape_covers(&find(rows[i][j - 1])->shape,
					  &find(rows[i][j])->shape))
				tap_fail(__FILE__, __LINE__,
					 "%s does not cover %s", rows[i][j - 1],
					 rows[i][j]);
}

/* These are longer than the texts above. */
static void many_copies(void)
{
	check(!find("re:^.{70,}$")->shape.exact);
	check(
	    shape_covers(&find("glob:?*")->shape, &find("re:^.{70,}$")->shape));
}

/* A generator of numbers that are the same each time; xorshift. */
static uint32_t draw(uint32_t n)
{
	static uint32_t x = 2463534242;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x % n;
}

static const char *one_of(const char *const *words, size_t n)
{
	return words[draw((uint32_t)n)];
}

#define ONE_OF(words) one_of(words, ARRAY_SIZE(words))

static const char *const comms[] = {
    "a",      "ab",	   "'b'",	   "'glob:a*'",	   "'re:^a'",
    "[a, b]", "'iglob:A'", "[ab, 're:b']", "'re:^(a|b)$'", "'glob:*'",
};
static const char *const cmdlines[] = {
    "x",	 "'^x'", "'x y'",	   "[x, y]",
    "'glob:x*'", "'x$'", "['^x y', '^y']", "'.'",
};
static const char *const exes[] = {
    "x", "'glob:*x'", "/bin/x", "'re:^/bin'", "[x, y]", "'re:(x|y)$'",
};

/* Keys of one process, to be put between braces. */
static size_t put_keys(char *buf, size_t size, bool kin)
{
	size_t n = 0;

	if (draw(2))
		n += (size_t)snprintf(buf + n, size - n, ", comm: %s",
				      ONE_OF(comms));
	if (!draw(3))
		n += (size_t)snprintf(buf + n, size - n, ", cmdline: %s",
				      ONE_OF(cmdlines));
	if (!draw(4))
		n += (size_t)snprintf(buf + n, size - n, ", cmdline_all: %s",
				      ONE_OF(cmdlines));
	if (!draw(3))
		n += (size_t)snprintf(buf + n, size - n, ", exe: %s",
				      ONE_OF(exes));
	if (!draw(4))
		n += (size_t)snprintf(buf + n, size - n, ", uid: %s",
				      draw(2) ? "1" : "[0, 1]");
	if (!draw(4))
		n += (size_t)snprintf(buf + n, size - n, ", kernel: %s",
				      draw(2) ? "any" : "true");
	if (kin && !draw(3)) {
		n += (size_t)snprintf(buf + n, size - n, ", %s: {any: true",
				      draw(2) ? "parent" : "ancestor");
		n += put_keys(buf + n, size - n, false);
		n += (size_t)snprintf(buf + n, size - n, "}");
	}
	return n;
}

static void put_rules(char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "rules:\n");

	for (unsigned i = 0, last = 2 + draw(4); i < last; i++) {
		n += (size_t)snprintf(buf + n, size - n,
				      "- {name: g%u, any: true", i);
		n += put_keys(buf + n, size - n, true);
		if (!draw(3)) {
			n += (size_t)snprintf(buf + n, size - n,
					      ", not: {any: true");
			n += put_keys(buf + n, size - n, false);
			n += (size_t)snprintf(buf + n, size - n, "}");
		}
		n += (size_t)snprintf(buf + n, size - n, "}\n");
	}
}

static struct subject draw_process(void)
{
	static const char *const names[] = {"", "a", "ab", "b", "A", "ba"};
	static const char *const lines[] = {
	    "", "x", "x y", "/bin/x", "/bin/x y", "y", "/bin/y x"};
	const char *line = ONE_OF(lines), *slash = strrchr(line, '/');
	struct subject s = {
	    .have = (1u << SUBJECT_N) - 1,
	    .pid = 2,
	    .comm = str_of(ONE_OF(names)),
	    .cmdline = str_of(line),
	    .argv0 = {line, strcspn(line, " ")},
	    .kernel = !draw(4),
	    .uid = draw(3),
	};

	s.exe = str_of(slash ? slash + 1 : line);
	s.exe.n = strcspn(s.exe.s, " ");
	return s;
}

/* One with a parent and a grandparent; no rule of these lines may take it. */
static void check_process(struct ruleset *rs, const unsigned *line,
			  size_t n_lines, const char *text)
{
	struct subject grand = draw_process(), parent = draw_process(),
		       s = draw_process();
	struct rule_traits of_grand, of_parent;
	struct rule_verdict v;

	ruleset_traits(rs, &grand, &of_grand);
	parent.parent_traits = parent.ancestor_traits = of_grand.holds;
	ruleset_traits(rs, &parent, &of_parent);
	s.parent_traits = of_parent.holds;
	s.ancestor_traits = of_parent.holds | of_grand.holds;
	ruleset_match(rs, 0, &s, &v);
	for (size_t i = 0; v.rule && i < n_lines; i++)
		if (v.rule->line == line[i])
			tap_fail(
			    __FILE__, __LINE__,
			    "comm \"%.*s\", cmdline \"%.*s\": taken by the "
			    "rule of line %u of\n%s",
			    (int)s.comm.n, s.comm.s, (int)s.cmdline.n,
			    s.cmdline.s, line[i], text);
}

static bool is_about_reach(const struct diag_msg *m)
{
	return str_begins(str_of(m->text), STR("the rule takes nothing"));
}

static void unreachable(void)
{
	size_t n_told = 0;

	for (unsigned i = 0; i < N_SETS && !tap.failed; i++) {
		struct ruleset *rs = NULL;
		unsigned line[DIAG_MSG_MAX];
		size_t n = 0;
		char text[4096];
		struct diag d;

		put_rules(text, sizeof(text));
		diag_init(&d, "f");
		if (rulefile_parse(str_of(text), &d, &rs))
			tap_fail(__FILE__, __LINE__, "%s: %s", d.msg[0].text,
				 text);
		for (size_t k = 0; k < d.n_msgs; k++)
			if (is_about_reach(&d.msg[k]))
				line[n++] = d.msg[k].line;
		for (unsigned k = 0; rs && n && k < 200; k++)
			check_process(rs, line, n, text);
		n_told += n;
		diag_done(&d);
		ruleset_free(rs);
	}
	check(n_told > N_SETS / 10);
	printf("# %zu of %d sets of rules have one\n", n_told, N_SETS);
}

/* The lint of one text; how many of its messages are about reach. */
static size_t count_unreachable(const char *text)
{
	struct ruleset *rs = NULL;
	struct diag d;
	size_t n = 0;

	diag_init(&d, "f");
	check_int(rulefile_parse(str_of(text), &d, &rs), 0);
	for (size_t i = 0; i < d.n_msgs; i++)
		n += is_about_reach(&d.msg[i]);
	diag_done(&d);
	ruleset_free(rs);
	return n;
}

/* n rules that have nothing in common, and then the last once more. */
static size_t unreachable_of(unsigned n_rules)
{
	size_t size = n_rules * 64 + 128;
	_cleanup_free_ char *text = malloc(size);
	size_t n = (size_t)snprintf(text, size, "rules:\n");

	for (unsigned i = 0; i <= n_rules; i++)
		n += (size_t)snprintf(text + n, size - n,
				      "- {name: \"{{.Comm}}-%u\", comm: c%u}\n",
				      i, MIN(i, n_rules - 1));
	return count_unreachable(text);
}

static void bounded(void)
{
	check_u64(unreachable_of(500), 1);
	check_u64(unreachable_of(9999), 0);
}

int main(void)
{
	TEST("patterns compile and have a shape", compile_all);
	TEST("a shape has all texts that its pattern matches, and no other if "
	     "it is exact",
	     shapes);
	TEST("a shape that covers another has all of its texts", coverage);
	TEST("one covers another where it is plain to see", found);
	TEST("of what is repeated very often not all is looked at",
	     many_copies);
	TEST("a rule that is said to take nothing takes nothing", unreachable);
	TEST("the search for such rules ends in a very large file", bounded);
	free_all();
	return tap_done();
}
