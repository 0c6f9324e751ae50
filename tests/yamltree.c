/* SPDX-License-Identifier: MIT */
/*
 * YAML as such: places, quoting, aliases, limits, and files whose bytes are
 * the point (byte order marks, line ends, control bytes). What is wrong in
 * readable files stands in tests/rules/bad.
 *
 * Invariant: each text of these points is whole in the point itself.
 */
#include "tap.h"

#include "yamltree.h"

/* Parses a text that must load. */
static struct yaml_tree *tree_of(struct str text)
{
	struct yaml_tree *t = NULL;
	struct diag d;

	diag_init(&d, "f");
	check_int(yaml_tree_parse(text, &d, &t), 0);
	check_u64(d.n_msgs, 0);
	diag_done(&d);
	return t;
}

/* Parses a text that must not load; all messages, one a line. */
static const char *errors_of(struct str text)
{
	static char buf[4096];
	struct yaml_tree *t = NULL;
	struct diag d;
	size_t n = 0;

	diag_init(&d, "f");
	check_int(yaml_tree_parse(text, &d, &t), -EINVAL);
	check(!t);
	check(d.n_errors > 0);
	buf[0] = '\0';
	for (size_t i = 0; i < d.n_msgs && n < sizeof(buf); i++) {
		if (i)
			n += (size_t)snprintf(buf + n, sizeof(buf) - n, "\n");
		n += (size_t)diag_format(&d, i, buf + n, sizeof(buf) - n);
	}
	diag_done(&d);
	return buf;
}

#define ERRORS(literal) errors_of(STR(literal))

static void check_place(const struct yaml_node *n, unsigned line,
			unsigned column)
{
	check_int(n->line, line);
	check_int(n->column, column);
}

static void places(void)
{
	struct yaml_tree *t = tree_of(STR("# c\n"
					  "a: b\n"
					  "\xc3\xbc: [x, \"y\"]\n"
					  "e:\n"
					  "  - f: g\n"));
	const struct yaml_node *root, *list, *inner;

	if (!t)
		return;
	root = yaml_tree_root(t);
	check_int(root->kind, YAML_MAPPING);
	check_int((int)root->n_children, 6);
	check_place(root, 2, 1);
	check_place(root->child[0], 2, 1);
	check_place(root->child[1], 2, 4);
	check_str(root->child[2]->text, "\xc3\xbc");
	list = root->child[3];
	check_int(list->kind, YAML_SEQUENCE);
	check_place(list, 3, 4);
	check_place(list->child[1], 3, 8);
	inner = yaml_node_get(root, "e")->child[0];
	check_int(inner->kind, YAML_MAPPING);
	check_place(inner, 5, 5);
	check_place(inner->child[1], 5, 8);
	yaml_tree_free(t);
}

static void quoting(void)
{
	struct yaml_tree *t = tree_of(STR("[a, \"b\", 'c', \"x\\0y\"]\n"));
	const struct yaml_node *root;

	if (!t)
		return;
	root = yaml_tree_root(t);
	check(root->child[0]->plain);
	check(!root->child[1]->plain);
	check(!root->child[2]->plain);
	check_int((int)root->child[3]->text.n, 3);
	check_int(root->child[3]->text.s[3], 0);
	yaml_tree_free(t);

	t = tree_of(STR("a: |\n  x\n  y\n"));
	if (!t)
		return;
	check(!yaml_tree_root(t)->child[1]->plain);
	check_str(yaml_tree_root(t)->child[1]->text, "x\ny\n");
	yaml_tree_free(t);
}

static void get(void)
{
	struct yaml_tree *t = tree_of(STR("a: b\nab: c\nb: a\n"));
	const struct yaml_node *root;

	if (!t)
		return;
	root = yaml_tree_root(t);
	check_str(yaml_node_get(root, "ab")->text, "c");
	check_str(yaml_node_get(root, "b")->text, "a");
	check(!yaml_node_get(root, "c"));
	yaml_tree_free(t);
}

static void byte_order_mark(void)
{
	struct yaml_tree *t = tree_of(STR("\xef\xbb\xbf"
					  "a: b\nc: d\n"));

	if (!t)
		return;
	check_place(yaml_tree_root(t)->child[0], 1, 1);
	check_place(yaml_tree_root(t)->child[1], 1, 4);
	check_place(yaml_tree_root(t)->child[2], 2, 1);
	yaml_tree_free(t);

	check_text(ERRORS("\xef\xbb\xbf"
			  "a: \xff\n"),
		   "f:1:4: error: byte 0xff is not UTF-8; save the file as "
		   "UTF-8");
	check_text(ERRORS("\xef\xbb\xbf\ta: b\n"),
		   "f:1:1: error: a tab cannot indent in YAML; use blanks");
}

static void utf16(void)
{
	const char *want = "f:1:1: error: the file is UTF-16; save it as UTF-8";

	check_text(ERRORS("\xff\xfe"
			  "a\0:\0 \0b\0"),
		   want);
	check_text(ERRORS("\xfe\xff\0a\0:\0 \0b"), want);
	check_text(ERRORS("a\0:\0 \0b\0"),
		   "f:1:2: error: control character 0x00 is not allowed");
}

static void line_ends(void)
{
	struct yaml_tree *t = tree_of(STR("a: b\r\nc:\r\n  - d\r\n"));

	if (!t)
		return;
	check_str(yaml_tree_root(t)->child[1]->text, "b");
	check_place(yaml_tree_root(t)->child[3]->child[0], 3, 5);
	yaml_tree_free(t);

	t = tree_of(STR("a: b\rc: d\r"));
	if (t)
		check_place(yaml_tree_root(t)->child[3], 2, 4);
	yaml_tree_free(t);
}

static void bad_bytes(void)
{
	check_text(ERRORS("a: b\nc: \xc3\xbc\x01\n"),
		   "f:2:5: error: control character 0x01 is not allowed");
	check_text(ERRORS("a: b\r\nc: \x7f\r\n"),
		   "f:2:4: error: control character 0x7f is not allowed");
	check_text(ERRORS("a: b\rc: \x02\n"),
		   "f:2:4: error: control character 0x02 is not allowed");
	check_text(ERRORS("a: b\nc: x\xe4y\n"),
		   "f:2:5: error: byte 0xe4 is not UTF-8; save the file as "
		   "UTF-8");
	check_text(ERRORS("a: x\xc3"),
		   "f:1:5: error: byte 0xc3 is not UTF-8; save the file as "
		   "UTF-8");
	check_text(ERRORS("a: \xed\xa0\x80\n"),
		   "f:1:4: error: byte 0xed is not UTF-8; save the file as "
		   "UTF-8");
}

static void nothing(void)
{
	const char *want = "f:1:1: error: the file is empty: it has no rules";

	check_text(ERRORS(""), want);
	check_text(ERRORS("\n\n"), want);
	check_text(ERRORS("# a\n# b"), want);
	check_text(ERRORS("---\n"), want);
	check_text(ERRORS("--- # c\n...\n"), want);
	check_text(ERRORS("~\n"), want);
	check_text(ERRORS("null"), want);
	check_text(ERRORS("\xef\xbb\xbf"), want);
}

static void aliases(void)
{
	struct yaml_tree *t = tree_of(STR("a: &x [1, 2]\n"
					  "b: *x\n"
					  "c: &x d\n"
					  "e: *x\n"
					  "f: {*x : g}\n"));
	const struct yaml_node *root;

	if (!t)
		return;
	root = yaml_tree_root(t);
	check(yaml_node_get(root, "a") == yaml_node_get(root, "b"));
	check(yaml_node_get(root, "c") == yaml_node_get(root, "e"));
	check_str(yaml_node_get(yaml_node_get(root, "f"), "d")->text, "g");
	yaml_tree_free(t);
}

static void alias_as_key(void)
{
	check_text(ERRORS("a: &x b\n"
			  "c:\n"
			  "  b: 1\n"
			  "  *x : 2\n"),
		   "f:4:3: error: duplicate key \"b\" (lines 3 and 4)");
}

/* 10 to the power of n lists, and each has ten texts. */
static const char *bomb(unsigned n)
{
	static char buf[2048];
	size_t at;

	at = (size_t)snprintf(buf, sizeof(buf),
			      "x0: &x0 [a, a, a, a, a, a, a, a, a, a]\n");
	for (unsigned i = 1; i <= n; i++) {
		at += (size_t)snprintf(buf + at, sizeof(buf) - at,
				       "x%u: &x%u [*x%u", i, i, i - 1);
		for (int k = 1; k < 10; k++)
			at += (size_t)snprintf(buf + at, sizeof(buf) - at,
					       ", *x%u", i - 1);
		at += (size_t)snprintf(buf + at, sizeof(buf) - at, "]\n");
	}
	return buf;
}

static void expansion(void)
{
	struct yaml_tree *t = tree_of(str_of(bomb(3)));

	yaml_tree_free(t);
	check_text(errors_of(str_of(bomb(9))),
		   "f:5:45: error: more than 100000 values, aliases counted as "
		   "what they stand for");
}

static void text_expansion(void)
{
	_cleanup_free_ char *buf = malloc(512 * 1024);
	size_t n;

	memcpy(buf, "a: &x ", 6);
	memset(buf + 6, 'b', 400 * 1024);
	n = 6 + 400 * 1024;
	n += (size_t)sprintf(buf + n, "\nc: [");
	for (int i = 0; i < 9; i++)
		n += (size_t)sprintf(buf + n, "*x, ");
	yaml_tree_free(
	    tree_of((struct str){buf, n + (size_t)sprintf(buf + n, "]\n")}));
	n += (size_t)sprintf(buf + n, "*x]\n");
	check_text(errors_of((struct str){buf, n}),
		   "f:2:41: error: more than 4194304 bytes of text, aliases "
		   "counted as what they stand for");
}

static void many_values(void)
{
	_cleanup_free_ char *buf = malloc(YAMLTREE_NODES_MAX * 4 + 1);
	size_t n = 0;

	for (int i = 0; i < YAMLTREE_NODES_MAX; i++)
		n += (size_t)sprintf(buf + n, "- a\n");
	check_text(errors_of((struct str){buf, n}),
		   "f:100000:3: error: more than 100000 values, aliases "
		   "counted as what they stand for");
	yaml_tree_free(tree_of((struct str){buf, n - 4}));
}

static void too_large(void)
{
	_cleanup_free_ char *buf = malloc(YAMLTREE_BYTES_MAX + 1);

	memset(buf, ' ', YAMLTREE_BYTES_MAX + 1);
	buf[0] = 'a';
	yaml_tree_free(tree_of((struct str){buf, YAMLTREE_BYTES_MAX}));
	check_text(errors_of((struct str){buf, YAMLTREE_BYTES_MAX + 1}),
		   "f: error: larger than 1 MiB");
}

static void depth(void)
{
	/* Sixteen, seventeen, and the latter by way of an alias. */
	yaml_tree_free(tree_of(STR("[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]")));
	check_text(ERRORS("[[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]]"),
		   "f:1:17: error: nested deeper than 16");
	yaml_tree_free(tree_of(STR("- &x [[[[[[[[a]]]]]]]]\n"
				   "- [[[[[[[*x]]]]]]]\n")));
	check_text(ERRORS("- &x [[[[[[[[a]]]]]]]]\n"
			  "- [[[[[[[[*x]]]]]]]]\n"),
		   "f:2:11: error: nested deeper than 16");
	check_text(ERRORS("- &x [[[[[[[[a]]]]]]]]\n"
			  "- &y [[[[[[*x]]]]]]\n"
			  "- [*y]\n"
			  "- [[*y]]\n"),
		   "f:4:5: error: nested deeper than 16");
}

static void many_anchors(void)
{
	_cleanup_free_ char *buf = malloc(64 * 1024);
	size_t n = 0;

	for (int i = 0; i < 1001; i++)
		n += (size_t)sprintf(buf + n, "- &x%d a\n", i);
	check_text(errors_of((struct str){buf, n}),
		   "f:1001:3: error: more than 1000 anchors");
}

static void several_mistakes(void)
{
	check_text(ERRORS("a: 1\n"
			  "b: *c\n"
			  "a: 2\n"
			  "d: !e f\n"
			  "a: 3\n"
			  "g: \"\\d\"\n"),
		   "f:2:4: error: unknown alias \"*c\"; write a pattern that "
		   "begins with \"*\" as \"glob:*...\", in quotes\n"
		   "f:4:4: error: tags are not allowed; quote a text that "
		   "begins with \"!\"\n"
		   "f:6:5: error: unknown escape in double quotes; put a "
		   "pattern with backslashes into single quotes");
	check_text(ERRORS("{a: 1, b: 2, a: 3}\n"),
		   "f:1:14: error: duplicate key \"a\" (lines 1 and 1)");
	check_text(ERRORS("a: 1\na: 2\nb: 3\na: 4\n"),
		   "f:2:1: error: duplicate key \"a\" (lines 1 and 2)\n"
		   "f:4:1: error: duplicate key \"a\" (lines 1 and 4)");
}

static void traps(void)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"yes", "a boolean"},
	    {"No", "a boolean"},
	    {"ON", "a boolean"},
	    {"y", "a boolean"},
	    {"False", "a boolean"},
	    {"~", "null"},
	    {"Null", "null"},
	    {"0", "a number"},
	    {"010", "a number"},
	    {"09", "a number"},
	    {"-1", "a number"},
	    {"1_000", "a number"},
	    {"0x1F", "a number"},
	    {"0b101", "a number"},
	    {"1e3", "a number"},
	    {"1.5", "a number"},
	    {".5", "a number"},
	    {"+1.5e-3", "a number"},
	    {"10:20", "a number"},
	    {"1:30:59.5", "a number"},
	    {".inf", "a number"},
	    {"-.Inf", "a number"},
	    {".NaN", "a number"},
	    {"yEs", NULL},
	    {"truely", NULL},
	    {"nulls", NULL},
	    {"1.2.3", NULL},
	    {"7z", NULL},
	    {"0x", NULL},
	    {"0b2", NULL},
	    {"1e", NULL},
	    {".", NULL},
	    {"-", NULL},
	    {"10:99", NULL},
	    {"1:5", "a number"},
	    {"1:234", NULL},
	    {"_1", NULL},
	    {"a", NULL},
	    {"java", NULL},
	    {"\"yes\"", NULL},
	    {"'1'", NULL},
	    {"2001-01-01", NULL},
	    {"0xfg", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char buf[64];
		struct yaml_tree *t;
		const char *got;

		snprintf(buf, sizeof(buf), "[%s]", rows[i].text);
		t = tree_of(str_of(buf));
		if (!t)
			continue;
		got = yaml_node_trap(yaml_tree_root(t)->child[0]);
		if (!got != !rows[i].want || (got && strcmp(got, rows[i].want)))
			tap_fail(__FILE__, __LINE__, "%s: want %s, got %s",
				 rows[i].text,
				 rows[i].want ? rows[i].want : "a text",
				 got ? got : "a text");
		yaml_tree_free(t);
	}
}

static void cut_off(void)
{
	check_text(ERRORS("a: [b,"),
		   "f:1:7: error: a value is missing here, or a bracket is not "
		   "closed");
	check_text(ERRORS("a: [b,\n"),
		   "f:2:1: error: a value is missing here, or a bracket is not "
		   "closed");
	check_text(ERRORS("x: y\na: [b"),
		   "f:2:4: error: this bracket is never closed, or a comma is "
		   "missing in it; quote a text that begins with a bracket");
	check_text(ERRORS("x: \"y"),
		   "f:1:4: error: this quote is never closed");
}

static void tabs(void)
{
	struct yaml_tree *t =
	    tree_of(STR("a:\tb\nc: [d,\n\te]\nf: \"g\n\th\"\n"));

	yaml_tree_free(t);
	check_text(ERRORS("a: \"b\n\tc\n"),
		   "f:1:4: error: this quote is never closed");
	check_text(ERRORS("a: [b,\n\tc"),
		   "f:1:4: error: this bracket is never closed, or a comma is "
		   "missing in it; quote a text that begins with a bracket");
	check_text(ERRORS("a: b\n \tc: d\n"),
		   "f:2:2: error: a tab cannot indent in YAML; use blanks");
	check_text(ERRORS("a: |\n  b\n\tc: d\n"),
		   "f:3:1: error: a tab cannot indent in YAML; use blanks");
}

static void documents(void)
{
	yaml_tree_free(tree_of(STR("%YAML 1.1\n---\na: b\n...\n")));
	check_text(ERRORS("a: b\n---\nc: d\n"),
		   "f:2:1: error: more than one document in the file");
	check_text(ERRORS("a: b\n...\n---\n"),
		   "f:3:1: error: more than one document in the file");
}

int main(void)
{
	TEST("every node knows its line and its column", places);
	TEST("a quoted text is not plain, and may hold a NUL", quoting);
	TEST("a key is found by its whole name", get);
	TEST("a UTF-8 byte order mark moves no column", byte_order_mark);
	TEST("UTF-16 is an error in line 1", utf16);
	TEST("CR LF and CR end lines", line_ends);
	TEST("bad bytes are told with line and column", bad_bytes);
	TEST("a file with nothing in it is told to be empty", nothing);
	TEST("an alias is what it stands for, the last anchor of a name",
	     aliases);
	TEST("an alias as a key stands at its own place", alias_as_key);
	TEST("aliases of aliases are bounded", expansion);
	TEST("aliases of long texts are bounded", text_expansion);
	TEST("the number of values is bounded", many_values);
	TEST("more than 1 MiB is an error", too_large);
	TEST("nesting is bounded, through aliases too", depth);
	TEST("the number of anchors is bounded", many_anchors);
	TEST("several mistakes are told in one go", several_mistakes);
	TEST("plain booleans, nulls and numbers are known", traps);
	TEST("a file that was cut off is told within its lines", cut_off);
	TEST("tabs are blanks but where they indent", tabs);
	TEST("there is one document in a file", documents);
	return tap_done();
}
