/* SPDX-License-Identifier: MIT */
/*
 * Rules out of an apps_groups.conf: how its lines are split, what each kind of
 * pattern becomes, what is told of it, and that a process goes where Netdata
 * puts it. Rules are read back as YAML and asked pattern by pattern; whether
 * they load as a rule file is for import-netdata.sh.
 *
 * Invariant: no point depends on the order of the points.
 */
#include "tap.h"

#include "matcher.h"
#include "netdata.h"
#include "yamltree.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
	char yaml[4 << 20];
	size_t n;
	char messages[(DIAG_MSG_MAX + 1) * 300];
	struct diag d;
} got;

/* Fills `got`; the rules are empty if the file has an error. */
static int convert(struct str text)
{
	static struct outbuf o;
	int fd = memfd_create("yaml", 0), r;
	ssize_t n;
	size_t used = 0;

	diag_done(&got.d);
	diag_init(&got.d, "f");
	outbuf_init(&o, fd);
	r = netdata_convert(text, "apps.conf", &got.d, &o);
	check_int(outbuf_flush(&o), 0);
	n = pread(fd, got.yaml, sizeof(got.yaml) - 1, 0);
	got.n = n > 0 ? (size_t)n : 0;
	got.yaml[got.n] = '\0';
	close(fd);
	got.messages[0] = '\0';
	diag_sort(&got.d);
	for (size_t i = 0; i < got.d.n_msgs; i++) {
		diag_format(&got.d, i, got.messages + used, 300);
		used += strlen(got.messages + used);
		strcpy(got.messages + used++, "\n");
	}
	return r;
}

/* What follows "rules:" is `want`, and nothing is told. */
#define check_rules(text, want)                                                \
	do {                                                                   \
		const char *rules_;                                            \
		check_int(convert(str_of(text)), 0);                           \
		check_text(got.messages, "");                                  \
		rules_ = strstr(got.yaml, "\nrules:\n");                       \
		check_text(rules_ ? rules_ + 8 : NULL,                         \
			   want "\n  # all other kernel threads\n"             \
				"  - name: 'kernel'\n    kernel: true\n");     \
	} while (0)

/* The same for a file that is told something of. */
#define check_messages(text, result, want)                                     \
	do {                                                                   \
		check_int(convert(str_of(text)), result);                      \
		check_text(got.messages, want);                                \
		check((result) == 0 || got.n == 0);                            \
	} while (0)

static void kinds(void)
{
	check_rules("g: one two* *three *four*\n",
		    "  # line 1\n"
		    "  - name: 'g'\n"
		    "    comm:\n"
		    "      - 'one'\n"
		    "      - 'glob:two*'\n"
		    "      - 'glob:*three'\n"
		    "    kernel: any\n"
		    "  # the same where the kernel cut it\n"
		    "  - name: 'g'\n"
		    "    exe: 'glob:*three'\n"
		    "    comm: 're:^.{15}$'\n"
		    "  - name: 'g'\n"
		    "    cmdline: 'four'\n");
	check_rules("g: md*_raid\ng: *a.b*c*\n",
		    "  # line 1\n"
		    "  - name: 'g'\n"
		    "    comm: 'glob:md*_raid'\n"
		    "    kernel: any\n"
		    "  # the same where the kernel cut it\n"
		    "  - name: 'g'\n"
		    "    exe: 'glob:md*_raid'\n"
		    "    comm: 're:^.{15}$'\n"
		    "  - name: 'g'\n"
		    "    cmdline: 'a\\.b.*c'\n");
	check_rules("g: **\n", "  # line 1\n"
			       "  - name: 'g'\n"
			       "    cmdline: '.'\n");
}

static void takes_all(void)
{
	convert(STR("other: a *\nlate: b\n"));
	check(strstr(got.yaml, "\nrules:\n  # line 1\n"
			       "  - name: 'other'\n"
			       "    any: true\n"
			       "    kernel: any\n"));
	check(!strstr(got.yaml, "kernel: true"));
}

static void long_names(void)
{
	check_rules("g: sixteen-bytes-of\n",
		    "  # line 1\n"
		    "  - name: 'g'\n"
		    "    comm: 'sixteen-bytes-of'\n"
		    "    kernel: any\n"
		    "  # the same where the kernel cut it\n"
		    "  - name: 'g'\n"
		    "    comm: 'sixteen-bytes-o'\n"
		    "    cmdline: 'sixteen-bytes-of"
		    "(\\.(sh|py|pl|js))?(?![^\\s/\\\\\"'':)])'\n");
	check_rules("g: 'sixteen:bytes.of*'\n",
		    "  # line 1\n"
		    "  - name: 'g'\n"
		    "    comm: 'glob:sixteen:bytes.of*'\n"
		    "    kernel: any\n"
		    "  # the same where the kernel cut it\n"
		    "  - name: 'g'\n"
		    "    comm: 'exact:sixteen:bytes.o'\n"
		    "    cmdline: 're:sixteen:bytes\\.of'\n");
	check_rules("g: fifteen-bytes-o\n", "  # line 1\n"
					    "  - name: 'g'\n"
					    "    comm: 'fifteen-bytes-o'\n"
					    "    kernel: any\n");
}

static void splitting(void)
{
	static const char want[] = "  # line 2\n"
				   "  - name: 'g'\n"
				   "    comm:\n"
				   "      - 'a'\n"
				   "      - 'b c'\n"
				   "      - 'd''e'\n"
				   "      - 'f#g'\n"
				   "    kernel: any\n";
	static const char *const texts[] = {
	    "\ng: a 'b c' d'e f#g # h i\n",
	    "# c\n  g  :\ta:\"b c\"\"d'e\" f#g\n",
	    "\r\ng:a \"\" 'b c'd'e\v\177f#g\r\n",
	    "\xef\xbb\xbf#\n:g: a 'b c' d'e f#g '#h' i",
	    "\rg: a 'b c'\rg: d'e\r'' x\rg: f#g",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *rules;

		check_int(convert(str_of(texts[i])), 0);
		rules = strstr(got.yaml, "\nrules:\n");
		check(rules && !strncmp(rules + 8, want, strlen(want)));
	}
	check_messages("\xef\xbb\xbf# x\n\xef\xbb\xbfg: a\n", 0, "");
	check(strstr(got.yaml, "\n  # line 2: \"\\xef\\xbb\\xbfg\"\n"));
}

static void quoting(void)
{
	check_rules("g: null it's 're:x' a?[b]*\n",
		    "  # line 1\n"
		    "  - name: 'g'\n"
		    "    comm:\n"
		    "      - 'null'\n"
		    "      - 'it''s'\n"
		    "      - 'exact:re:x'\n"
		    "      - 'glob:a\\?\\[b\\]*'\n"
		    "    kernel: any\n");
	check_rules("g: \xc3\xbc 'a\tb' x.\xff* '*a.\t\xfc:*'\n",
		    "  # line 1\n"
		    "  - name: 'g'\n"
		    "    comm:\n"
		    "      - 're:^\\xc3\\xbc$'\n"
		    "      - 're:^a\\x09b$'\n"
		    "      - 're:^x\\.\\xff'\n"
		    "    kernel: any\n"
		    "  - name: 'g'\n"
		    "    cmdline: 're:a\\. \\xfc:'\n");
	/* Netdata 2 takes a backslash away where there is a star inside. */
	check_rules("g: a\\.b\\\\*c* d\\.*\n", "  # line 1\n"
					       "  - name: 'g'\n"
					       "    comm:\n"
					       "      - 'glob:a.b\\\\*c*'\n"
					       "      - 'glob:d\\\\.*'\n"
					       "    kernel: any\n"
					       "  # the same where the kernel "
					       "cut it\n"
					       "  - name: 'g'\n"
					       "    exe: 'glob:a.b\\\\*c*'\n"
					       "    comm: 're:^.{15}$'\n");
}

static void names(void)
{
	check_rules("'my group': a\n_self: b\n{{.PID}}: c\n\"\xc3\xa9\": d\n",
		    "  # line 1: \"my group\"\n"
		    "  - name: 'my_group'\n"
		    "    comm: 'a'\n"
		    "    kernel: any\n"
		    "\n  # line 2: \"_self\"\n"
		    "  - name: 'x_self'\n"
		    "    comm: 'b'\n"
		    "    kernel: any\n"
		    "\n  # line 3: \"{{.PID}}\"\n"
		    "  - name: 'x__.PID__'\n"
		    "    comm: 'c'\n"
		    "    kernel: any\n"
		    "\n  # line 4: \"\\xc3\\xa9\"\n"
		    "  - name: 'x__'\n"
		    "    comm: 'd'\n"
		    "    kernel: any\n");
	check_rules("-a: +b -*c*\n",
		    "  # line 1\n"
		    "  # no equal: \"-\" (hidden) and \"+\" (traced) before "
		    "names\n"
		    "  - name: 'a'\n"
		    "    comm: 'b'\n"
		    "    kernel: any\n"
		    "  - name: 'a'\n"
		    "    cmdline: 'c'\n");
}

static void order(void)
{
	check_rules("a: 1\na: 2\nb: 3\na: 4\n", "  # line 1\n"
						"  - name: 'a'\n"
						"    comm:\n"
						"      - '1'\n"
						"      - '2'\n"
						"    kernel: any\n"
						"\n  # line 3\n"
						"  - name: 'b'\n"
						"    comm: '3'\n"
						"    kernel: any\n"
						"\n  # line 4\n"
						"  - name: 'a'\n"
						"    comm: '4'\n"
						"    kernel: any\n");
}

static void repeated(void)
{
	check_rules("a: x*\na: *x x*\n",
		    "  # line 1\n"
		    "  # \"*x\": Netdata 2 drops it, line 1 has its text\n"
		    "  # \"x*\" is left out: line 1 has it\n"
		    "  - name: 'a'\n"
		    "    comm:\n"
		    "      - 'glob:x*'\n"
		    "      - 'glob:*x'\n"
		    "    kernel: any\n"
		    "  # the same where the kernel cut it\n"
		    "  - name: 'a'\n"
		    "    exe: 'glob:*x'\n"
		    "    comm: 're:^.{15}$'\n");
	check_messages("a: x y\nb: x\nc: z y\n", 0,
		       "f:2:4: warning: \"x\" is in group \"a\" already (line "
		       "1); Netdata takes the whole line for that group, "
		       "which is not done here\n"
		       "f:3:6: warning: \"y\" is in group \"a\" already (line "
		       "1)\n");
	check(strstr(got.yaml, "\n  # line 2\n"
			       "  # \"x\" is left out: line 1 has it\n"
			       "\n  # line 3\n"));
}

static void kernel_threads(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
	    {"g: kworker\n", "kernel"},
	    {"g: *kthreadd*\n", "kernel"},
	    {"a: b\ng: kthreadd\nh: kthread*\n", "g"},
	    {"g: kth*\nh: kthreadd\n", "g"},
	    {"g: *readd\n", "g"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char want[64];

		snprintf(want, sizeof(want),
			 "threads\n  - name: '%s'\n    kernel: true\n",
			 cases[i].want);
		check_int(convert(str_of(cases[i].text)), 0);
		check_text(strstr(got.yaml, "threads\n  - name:"), want);
	}
}

static bool has(const char *text)
{
	return strstr(got.yaml, text);
}

static void lists(void)
{
	check_int(convert(STR("g: a\n")), 0);
	check(has("\nmanagers:\n  - 'init'\n  - 'systemd'\n"));
	check(!has("\ninterpreters:"));

	check_int(convert(STR("managers: x\ng: a\ninterpreters: y\n")), 0);
	check(has("  - 'spawn-plugins'\n  - 'x'\n\n"));
	check(has("\ninterpreters:\n  - 'python'\n  - 'python2'\n"
		  "  - 'python3'\n  - 'sh'\n  - 'bash'\n  - 'node'\n"
		  "  - 'perl'\n  - 'y'\n\n"));

	check_messages(
	    "managers: a\nmanagers: clear\n"
	    "managers: b* *c *d* sixteen-bytes-of *-sixteen-bytes-o\n"
	    "interpreters:clear\ng: a\n",
	    0, "");
	check(has("\nmanagers:\n  - 'glob:b*'\n  - 'glob:*c'\n"
		  "  # no equal: \"*d*\"\n"
		  "  # cut: \"sixteen-bytes-of\"\n"
		  "  - 'sixteen-bytes-o'\n"
		  "  # no equal: \"*-sixteen-bytes-o\"\n\n"));
	check(has("\ninterpreters: []\n"));

	check_messages("interpreters: clear\n"
		       "interpreters: sixteen-bytes-of *-sixteen-bytes-o *d*\n"
		       "g: a\n",
		       0, "");
	check(has("\ninterpreters:\n  - 'sixteen-bytes-of'\n"
		  "  - 'glob:*-sixteen-bytes-o'\n"
		  "  # no equal: \"*d*\"\n\n"));

	check_messages("managers: clear x\ng: a\n", 0,
		       "f:1:11: warning: \"clear\" is a name to Netdata "
		       "unless it stands alone on its line\n");
	check(has("  - 'spawn-plugins'\n  - 'clear'\n  - 'x'\n\n"));
	check_messages("managers: clear # x\ng: a\n", 0,
		       "f:1:11: warning: \"clear\" is a name to Netdata "
		       "unless it stands alone on its line\n");
}

static void warnings(void)
{
	check_messages("g a b\nh: c\n", 0,
		       "f:1:3: warning: no colon between group \"g\" and its "
		       "patterns; Netdata does without, too\n");
	check(has("      - 'a'\n      - 'b'\n"));
	check_messages("g: a\nh:\ni # b\n-: c\ng: -\n", 0,
		       "f:2:1: warning: group \"h\" has no pattern\n"
		       "f:3:1: warning: group \"i\" has no pattern\n"
		       "f:4:1: warning: the group has no name; its line is "
		       "left out\n"
		       "f:5:4: warning: nothing follows the mark\n");
	check_messages("g: a\\ b\n", 0,
		       "f:1:5: warning: a backslash keeps no blank together "
		       "in Netdata; quotes do\n");
	check_messages("# it's 'tis\n\xc3\xa4: a #\\ \"x\n", 0,
		       "f:1:8: warning: this quote is not closed; though it "
		       "is in a comment, Netdata loses the lines up to the "
		       "next one\n"
		       "f:2:9: warning: this quote is not closed; though it "
		       "is in a comment, Netdata loses the lines up to the "
		       "next one\n");
}

static void errors(void)
{
	char text[1100];

	check_messages("", -EINVAL,
		       "f: error: there is no line with a group, a colon and "
		       "a pattern\n");
	check_messages("# a: b\nmanagers: c\n", -EINVAL,
		       "f: error: there is no line with a group, a colon and "
		       "a pattern\n");
	check_messages("a b\n", -EINVAL,
		       "f: error: there is no line with a group, a colon and "
		       "a pattern\n"
		       "f:1:3: warning: no colon between group \"a\" and its "
		       "patterns; Netdata does without, too\n");
	check_messages("g: -\n", -EINVAL,
		       "f: error: there is no line with a group, a colon and "
		       "a pattern\n"
		       "f:1:4: warning: nothing follows the mark\n");
	check_messages("g: a 'b\nh: c'\n\ni: \"x\n", -EINVAL,
		       "f:1:6: error: this quote is not closed in its line\n"
		       "f:4:4: error: this quote is not closed in its line\n");
	check_int(convert((struct str){"g: a\n# b\0\n", 10}), -EINVAL);
	check_text(got.messages, "f:2:4: error: a NUL byte; this is no text\n");
	check_u64(got.n, 0);

	memset(text, 'x', sizeof(text));
	memcpy(text, "g: ", 3);
	check_int(convert((struct str){text, 1003}), 0);
	check_int(convert((struct str){text, 1004}), -EINVAL);
	check_text(got.messages, "f:1:4: error: a pattern of 1001 bytes; at "
				 "most 1000 are taken\n");
}

static void bounds(void)
{
	static char text[1024 * 1024 + 1];
	size_t n, n_lists = 0;

	memset(text, '\n', sizeof(text));
	memcpy(text, "g: a", 4);
	check_int(convert((struct str){text, 1024 * 1024}), 0);
	check_int(convert((struct str){text, sizeof(text)}), -EINVAL);
	check_text(got.messages, "f: error: larger than 1 MiB\n");

	n = (size_t)sprintf(text, "g:");
	for (unsigned i = 0; i < 4000; i++)
		n += (size_t)sprintf(text + n, " %u", i);
	check_int(convert((struct str){text, n}), 0);
	for (const char *s = got.yaml; (s = strstr(s, "comm:\n")); s++)
		n_lists++;
	check_u64(n_lists, 4);
	n += (size_t)sprintf(text + n, " x");
	check_int(convert((struct str){text, n}), -EINVAL);
	check_text(got.messages, "f:1:18894: error: more than 4000 patterns\n");

	n = 0;
	for (unsigned i = 0; i < 498; i++)
		n += (size_t)sprintf(text + n, "%u: %u\n", i, i);
	check_int(convert((struct str){text, n}), 0);
	check(!has("\nlimits:"));
	n += (size_t)sprintf(text + n, "a: b\n");
	check_int(convert((struct str){text, n}), 0);
	check(has("\nlimits:\n  groups: 501\n\n"));
}

/* Any text, from the same numbers on every host. */
static unsigned next_random(unsigned n)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

static size_t put_random(char *s, size_t max, const char *alphabet)
{
	size_t n = 1 + next_random((unsigned)max);

	for (size_t i = 0; i < n; i++)
		s[i] = alphabet[next_random((unsigned)strlen(alphabet))];
	s[n] = '\0';
	return n;
}

/* A text with stars in it takes the whole of s. */
static bool takes(const char *pattern, const char *s)
{
	if (!*pattern)
		return !*s;
	if (*pattern == '*')
		return takes(pattern + 1, s) || (*s && takes(pattern, s + 1));
	return *pattern == *s && takes(pattern + 1, s + 1);
}

/* What Netdata says, of a word without backslashes. */
static bool netdata_takes(const char *word, const char *comm,
			  const char *cmdline)
{
	size_t n = strlen(word);

	if (n > 1 && word[0] == '*' && word[n - 1] == '*')
		return *cmdline && takes(word, cmdline);
	return takes(word, comm);
}

static bool item_takes(enum matcher_kind plain, struct str item,
		       const char *value)
{
	struct matcher_scratch *scratch = matcher_scratch_new(8);
	struct matcher m;
	struct diag d;
	bool yes;

	diag_init(&d, "rules");
	check_int(matcher_init(&m, "key", plain, item, &d, 1, 1), 0);
	yes =
	    *value && matcher_match(&m, str_of(value), scratch) == MATCHER_YES;
	matcher_done(&m);
	matcher_scratch_free(scratch);
	diag_done(&d);
	return yes;
}

static bool key_takes(const struct yaml_node *rule, const char *key,
		      enum matcher_kind plain, const char *value)
{
	const struct yaml_node *list = yaml_node_get(rule, key);

	if (!list)
		return true;
	if (list->kind == YAML_SCALAR)
		return item_takes(plain, list->text, value);
	for (size_t i = 0; i < list->n_children; i++)
		if (item_takes(plain, list->child[i]->text, value))
			return true;
	return false;
}

/* The name of the first rule that holds for a process of this name. */
static struct str rules_say(const struct yaml_tree *t, const char *comm,
			    const char *cmdline)
{
	const struct yaml_node *rules =
	    yaml_node_get(yaml_tree_root(t), "rules");

	for (size_t i = 0; i < rules->n_children; i++) {
		const struct yaml_node *r = rules->child[i];
		const struct yaml_node *kernel = yaml_node_get(r, "kernel");

		if (kernel && str_eq(kernel->text, STR("true")))
			continue;
		if (key_takes(r, "comm", MATCHER_EXACT, comm) &&
		    key_takes(r, "exe", MATCHER_EXACT, cmdline) &&
		    key_takes(r, "cmdline", MATCHER_REGEX, cmdline))
			return yaml_node_get(r, "name")->text;
	}
	return STR("none");
}

static struct yaml_tree *parse(void)
{
	struct yaml_tree *t = NULL;
	struct diag d;

	diag_init(&d, "rules");
	check_int(yaml_tree_parse((struct str){got.yaml, got.n}, &d, &t), 0);
	check_u64(d.n_msgs, 0);
	diag_done(&d);
	return t;
}

static void first_match(void)
{
	static char words[20][8], text[400];

	for (unsigned round = 0; round < 200; round++) {
		struct yaml_tree *t;
		size_t n = 0;

		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			put_random(words[i], 5, "aabb.[?(^*");
			n += (size_t)sprintf(text + n, "g%zu: %s\n", i % 3 / 2,
					     words[i]);
		}
		check_int(convert((struct str){text, n}), 0);
		t = parse();
		for (unsigned i = 0; t && i < 50; i++) {
			char comm[8], cmdline[16];
			const char *want = "none";

			put_random(comm, 4, "aabb.[?(^*");
			put_random(cmdline, 10, "aabb.[?(^*\n");
			if (i % 5 == 0)
				cmdline[0] = '\0';
			for (size_t j = ARRAY_SIZE(words); j-- > 0;)
				if (netdata_takes(words[j], comm, cmdline))
					want = j % 3 / 2 ? "g1" : "g0";
			check_str(rules_say(t, comm, cmdline), want);
		}
		yaml_tree_free(t);
	}
}

static void any_bytes(void)
{
	static const char alphabet[] =
	    "ab:*'\"\\#-+ \t\n\r{}[]?\x01\x7f\x80\xc3"
	    "\xbc\xff&!|>%@`,";
	char text[200];
	unsigned n_written = 0;

	for (unsigned round = 0; round < 3000; round++) {
		size_t n = put_random(text, sizeof(text) - 1, alphabet);

		if (convert((struct str){text, n})) {
			check(got.d.n_errors > 0 && got.n == 0);
			continue;
		}
		n_written++;
		check(got.n > 0 && got.yaml[got.n - 1] == '\n');
		for (size_t i = 0; i < got.n; i++)
			check(got.yaml[i] == '\n' ||
			      (got.yaml[i] >= ' ' && got.yaml[i] < 0x7f));
		yaml_tree_free(parse());
	}
	check(n_written > 100);
}

int main(void)
{
	TEST("the stars of a pattern say what it is compared with", kinds);
	TEST("a lone star takes all processes, kernel threads too", takes_all);
	TEST("a name longer than the kernel keeps is looked for twice",
	     long_names);
	TEST("lines are split by blanks, colons and quotes", splitting);
	TEST("no byte of a pattern is taken for syntax", quoting);
	TEST("names of groups are clean, and what they were is said", names);
	TEST("lines of a group are one only if they follow each other", order);
	TEST("a pattern that stands there again is left out and told",
	     repeated);
	TEST("other kernel threads follow kthreadd, or are \"kernel\"",
	     kernel_threads);
	TEST("managers and interpreters are added to those of Netdata", lists);
	TEST("what Netdata reads in its own way is a warning", warnings);
	TEST("what cannot be meant is an error, and nothing is written",
	     errors);
	TEST("what is too much is an error, what is much fits the rules",
	     bounds);
	TEST("the first pattern that matches decides, as in the file",
	     first_match);
	TEST("any bytes become ASCII that can be read back, or an error",
	     any_bytes);
	return tap_done();
}
