/* SPDX-License-Identifier: MIT */
/*
 * Rule files. tests/rules/good/ holds files that load, tests/rules/bad/ files
 * that do not; the lines "# want LINE:COLUMN: LEVEL: TEXT" at the beginning of
 * a file are all messages that are wanted, word for word. A new case is a new
 * file. What loads is looked into here.
 *
 * Invariant: a file is compared with the whole list of its messages.
 */
#include "tap.h"

#include "name.h"
#include "rulefile.h"

#include <dirent.h>
#include <sys/stat.h>

static char path[1024]; /* of the file that is looked at */

static const char *rules_dir(const char *sub)
{
	static char dir[768];
	const char *srcdir = getenv("srcdir");

	snprintf(dir, sizeof(dir), "%s/tests/rules/%s", srcdir ? srcdir : ".",
		 sub);
	return dir;
}

/* The messages that the head of a file wants, one a line. */
static void read_wanted(char *buf, size_t size)
{
	static const char mark[] = "# want ";
	FILE *f = fopen(path, "re");
	char line[512];
	size_t n = 0;

	buf[0] = '\0';
	if (!f) {
		tap_fail(__FILE__, __LINE__, "cannot open %s", path);
		return;
	}
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, mark, strlen(mark)))
			break;
		n += (size_t)snprintf(buf + n, size - n, "%s",
				      line + strlen(mark));
	}
	fclose(f);
}

/* The messages that are there, without the name of the file. */
static void list_messages(const struct diag *d, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < d->n_msgs && n < size; i++) {
		char msg[768];

		diag_format(d, i, msg, sizeof(msg));
		n += (size_t)snprintf(buf + n, size - n, "%s\n",
				      msg + strlen(d->file) + 1);
	}
}

static void check_file(int want)
{
	static char wanted[8192], got[8192];
	struct ruleset *rs = NULL;
	struct diag d;

	read_wanted(wanted, sizeof(wanted));
	diag_init(&d, "f");
	check_int(rulefile_load(path, &d, &rs), want);
	check(!rs == (want != 0));
	list_messages(&d, got, sizeof(got));
	if (strcmp(got, wanted))
		tap_fail(__FILE__, __LINE__, "want\n%sgot\n%s", wanted, got);
	check_u64(d.n_dropped, 0);
	diag_done(&d);
	ruleset_free(rs);
}

static void check_good(void)
{
	check_file(0);
}

static void check_bad(void)
{
	check_file(-EINVAL);
}

/* Loads, whatever is said of it beside that. */
static void check_loads(void)
{
	struct ruleset *rs = NULL;
	struct diag d;
	char msg[768];

	diag_init(&d, "f");
	check_int(rulefile_load(path, &d, &rs), 0);
	for (size_t i = 0; d.n_errors && i < d.n_msgs; i++) {
		diag_format(&d, i, msg, sizeof(msg));
		printf("# %s\n", msg);
	}
	diag_done(&d);
	ruleset_free(rs);
}

static int is_yaml(const struct dirent *e)
{
	struct str ext = STR(".yaml"), name = str_of(e->d_name);

	return str_ends(name, ext);
}

static void no_files(void)
{
	tap_fail(__FILE__, __LINE__, "no files in %s", path);
}

static void test_dir(const char *sub, const char *what, void (*fn)(void))
{
	const char *dir = rules_dir(sub);
	struct dirent **entry;
	int n = scandir(dir, &entry, is_yaml, alphasort);

	if (n <= 0) {
		snprintf(path, sizeof(path), "%s", dir);
		TEST("there are rule files", no_files);
		return;
	}
	for (int i = 0; i < n; i++) {
		char name[512];

		snprintf(path, sizeof(path), "%s/%s", dir, entry[i]->d_name);
		snprintf(name, sizeof(name), "%s/%s %s", sub, entry[i]->d_name,
			 what);
		TEST(name, fn);
		free(entry[i]);
	}
	free(entry);
}

/* A rule set out of a text that must load, or NULL. */
static struct ruleset *rules_of(const char *text)
{
	struct ruleset *rs = NULL;
	struct diag d;
	char got[2048];

	diag_init(&d, "f");
	check_int(rulefile_parse(str_of(text), &d, &rs), 0);
	list_messages(&d, got, sizeof(got));
	check_text(got, "");
	diag_done(&d);
	return rs;
}

/* The messages of a text that must not load. */
static const char *errors_of(struct str text)
{
	static char got[2048];
	struct ruleset *rs = NULL;
	struct diag d;

	diag_init(&d, "f");
	check_int(rulefile_parse(text, &d, &rs), -EINVAL);
	check(!rs);
	list_messages(&d, got, sizeof(got));
	diag_done(&d);
	return got;
}

static bool collects(const struct rule *r, enum collect_key key)
{
	return r->collect & (collect_mask)1 << key;
}

static void limits(void)
{
	struct ruleset *rs = rules_of("limits: {groups: 100000, cmdline: 1MiB,"
				      " kept_fds: 0}\n"
				      "defaults: {refresh: 1h}\n"
				      "sampling: {gate: off}\n"
				      "rules: [{name: a, any: true}]\n");

	if (!rs)
		return;
	check_u64(rs->limits.groups, 100000);
	check_u64(rs->limits.cmdline, 1024 * 1024);
	check_u64(rs->limits.kept_fds, 0);
	check(rs->limits.kept_fds_set);
	check_u64(rs->refresh_ns, 3600 * NSEC_PER_SEC);
	check(!rs->gate);
	ruleset_free(rs);

	rs = rules_of("limits: {groups: 1, cmdline: 256B, kept_fds: auto}\n"
		      "defaults: {refresh: 1s}\n"
		      "sampling: {gate: on}\n"
		      "rules: [{name: a, any: true}]\n");
	if (!rs)
		return;
	check_u64(rs->limits.groups, 1);
	check_u64(rs->limits.cmdline, 256);
	check(!rs->limits.kept_fds_set);
	check_u64(rs->refresh_ns, NSEC_PER_SEC);
	check(rs->gate);
	ruleset_free(rs);
}

static void own_defaults(void)
{
	struct ruleset *rs = rules_of("rules: [{name: a, any: true}]\n");
	struct ruleset *fresh = ruleset_new();

	if (rs && fresh) {
		check_u64(rs->limits.groups, fresh->limits.groups);
		check_u64(rs->limits.cmdline, fresh->limits.cmdline);
		check_u64(rs->refresh_ns, fresh->refresh_ns);
		check_u64(rs->collect, fresh->collect);
		check_u64(rs->rule[0].collect, collect_default());
		check_int(rs->gate, fresh->gate);
		check(rs->view[0].other);
	}
	ruleset_free(rs);
	ruleset_free(fresh);
}

static void units(void)
{
	static const struct {
		const char *size, *duration;
		uint64_t bytes, ns;
	} rows[] = {
	    {"4096B", "1000ms", 4096, NSEC_PER_SEC},
	    {"4KiB", "90s", 4096, 90 * NSEC_PER_SEC},
	    {"\"64KiB\"", "'10m'", 65536, 600 * NSEC_PER_SEC},
	    {"64kB", "1h", 64000, 3600 * NSEC_PER_SEC},
	    {"1MiB", "60m", 1048576, 3600 * NSEC_PER_SEC},
	    {"1MB", "1s", 1000000, NSEC_PER_SEC},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[256];
		struct ruleset *rs;

		snprintf(text, sizeof(text),
			 "limits: {cmdline: %s}\n"
			 "defaults: {refresh: %s}\n"
			 "rules: [{name: a, any: true}]\n",
			 rows[i].size, rows[i].duration);
		rs = rules_of(text);
		if (!rs)
			continue;
		check_u64(rs->limits.cmdline, rows[i].bytes);
		check_u64(rs->refresh_ns, rows[i].ns);
		ruleset_free(rs);
	}
}

static void no_units(void)
{
	static const char *const sizes[] = {
	    "064KiB",
	    "+64KiB",
	    "0x10KiB",
	    "KiB",
	    "-1B",
	    "99999999999999999999B",
	    "18446744073709551615GiB",
	    /* Both are 4096 modulo 2^64. */
	    "18446744073709555712B",
	    "1733993942928697856kB",
	    "2MiB",
	    "1GB",
	};
	static const char *const no_whole[] = {"64 KiB", "1.5MiB", "1_024B"};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		char text[256], want[256];

		snprintf(text, sizeof(text),
			 "limits: {cmdline: %s}\n"
			 "rules: [{name: a, any: true}]\n",
			 sizes[i]);
		snprintf(want, sizeof(want),
			 "1:19: error: \"cmdline\" must be a size from 256B to "
			 "1MiB, not \"%s\"\n",
			 sizes[i]);
		check_text(errors_of(str_of(text)), want);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no_whole); i++) {
		char text[256], want[256];

		snprintf(text, sizeof(text),
			 "limits: {cmdline: %s}\n"
			 "rules: [{name: a, any: true}]\n",
			 no_whole[i]);
		snprintf(want, sizeof(want),
			 "1:19: error: \"cmdline\" must be a whole number with "
			 "its unit right behind it, not \"%s\"; use B, KiB, "
			 "MiB, GiB, kB, MB or GB\n",
			 no_whole[i]);
		check_text(errors_of(str_of(text)), want);
	}
	check_text(
	    errors_of(STR("limits: {cmdline: 64kib}\n"
			  "rules: [{name: a, any: true}]\n")),
	    "1:19: error: \"cmdline\": unknown unit \"kib\"; use B, KiB, "
	    "MiB, GiB, kB, MB or GB\n");
	check_text(
	    errors_of(STR("defaults: {recheck: 1w}\n"
			  "rules: [{name: a, any: true}]\n")),
	    "1:21: error: \"recheck\": unknown unit \"w\"; use ms, s, m, "
	    "h or d\n");
}

static void collect(void)
{
	struct ruleset *rs = rules_of("rules:\n"
				      "  - {name: a, comm: a}\n"
				      "  - name: b\n"
				      "    comm: b\n"
				      "    collect: {io: true, cpu: NO}\n"
				      "defaults: {collect: {io: off, fds: no,"
				      " swap: yes}}\n");

	if (!rs)
		return;
	check(!collects(&rs->rule[0], COLLECT_IO));
	check(!collects(&rs->rule[0], COLLECT_FDS));
	check(collects(&rs->rule[0], COLLECT_SWAP));
	check(collects(&rs->rule[0], COLLECT_CPU));
	check(collects(&rs->rule[1], COLLECT_IO));
	check(!collects(&rs->rule[1], COLLECT_FDS));
	check(!collects(&rs->rule[1], COLLECT_CPU));
	check_u64(rs->collect, rs->rule[0].collect);
	ruleset_free(rs);
}

static void rule_parts(void)
{
	struct ruleset *rs = rules_of("rules:\n"
				      "  - {action: drop, comm: a}\n"
				      "  - {action: leave, comm: l}\n"
				      "  - name: b\n"
				      "    kernel: true\n"
				      "    not: [{comm: c}, {kernel: no}]\n"
				      "  - {name: d, any: on, kernel: any}\n");
	const struct rule_terms *except;

	if (!rs)
		return;
	except = rs->rule[2].not ;
	check_int((int)rs->n_rules, 4);
	check_int(rs->rule[0].action, ACTION_DROP);
	check(!rs->rule[0].name);
	check_int(rs->rule[0].terms.kernel, KERNEL_NO);
	check_int(rs->rule[1].action, ACTION_LEAVE);
	check(!rs->rule[1].name);
	check_int(rs->rule[2].action, ACTION_GROUP);
	check(rs->rule[2].name);
	check_int(rs->rule[2].terms.kernel, KERNEL_YES);
	check_int((int)rs->rule[2].n_not, 2);
	check_int(except[0].kernel, KERNEL_EITHER);
	check_int(except[1].kernel, KERNEL_NO);
	check_int(rs->rule[2].line, 4);
	check_int(rs->rule[2].column, 5);
	check(rs->rule[3].terms.any);
	check_int(rs->rule[3].terms.kernel, KERNEL_EITHER);
	ruleset_free(rs);
}

/* The name of the group that takes a process; "drop" or "-" if none does. */
static const char *group_of(struct ruleset *rs, const char *comm,
			    const char *cmdline, const char *user)
{
	static struct name_result name;
	struct rule_verdict v;
	struct subject s = {
	    .have = (1u << SUBJECT_N) - 1,
	    .pid = 1,
	    .comm = str_of(comm),
	    .user = str_of(user),
	    .cmdline = str_of(cmdline),
	    .argv0 = str_of(comm),
	    .exe = str_of(comm),
	};

	ruleset_match(rs, 0, &s, &v);
	if (v.action == ACTION_DROP)
		return "drop";
	if (v.action == ACTION_LEAVE || !v.rule)
		return "-";
	name_expand(v.rule->name, &s, &v, &name);
	return name.text;
}

static void whole_way(void)
{
	struct ruleset *rs = rules_of(
	    "rules:\n"
	    "  - {action: drop, comm: \"glob:docker-*\"}\n"
	    "  - name: \"pg-{{.Matches.role|default:backend}}\"\n"
	    "    comm: [postgres, postmaster]\n"
	    "    cmdline: '^postgres: (?P<role>checkpointer|walwriter)?'\n"
	    "    not: {user: ci}\n"
	    "  - name: both\n"
	    "    cmdline_all: [ab, bc]\n"
	    "  - {action: leave, user: root}\n"
	    "  - {name: \"{{.Username}}\", any: true}\n");

	if (!rs)
		return;
	check_text(group_of(rs, "docker-proxy", "x", "u"), "drop");
	check_text(group_of(rs, "postgres", "postgres: walwriter", "u"),
		   "pg-walwriter");
	check_text(group_of(rs, "postmaster", "postgres: u db", "u"),
		   "pg-backend");
	check_text(group_of(rs, "postgres", "postgres: walwriter", "ci"), "ci");
	check_text(group_of(rs, "sh", "xabcx", "u"), "both");
	check_text(group_of(rs, "sh", "ab", "u"), "u");
	check_text(group_of(rs, "sh", "x", "root"), "-");
	ruleset_free(rs);
}

static void other(void)
{
	struct ruleset *rs = rules_of("rules: [{name: a, any: true}]\n"
				      "other: {action: drop}\n");

	if (rs)
		check(!rs->view[0].other);
	ruleset_free(rs);
}

static void byte_order_mark(void)
{
	check_text(errors_of(STR("\xef\xbb\xbf"
				 "rulse: a\n")),
		   "1:1: error: unknown key \"rulse\" (did you mean "
		   "\"rules\"?)\n");
}

static void line_ends(void)
{
	struct ruleset *rs = rules_of("rules:\r\n"
				      "  - name: a\r\n"
				      "    comm: b\r\n");

	ruleset_free(rs);
	check_text(errors_of(STR("rules:\r\n"
				 "  - name: a\r\n"
				 "    com: b\r\n")),
		   "3:5: error: unknown key \"com\" (did you mean "
		   "\"comm\"?)\n");
}

static void empty(void)
{
	check_text(errors_of(STR("")),
		   "1:1: error: the file is empty: it has no rules\n");
}

/* A list of n times the same item, between two texts. */
static char *repeat(const char *before, const char *item, size_t n,
		    const char *after)
{
	size_t size = strlen(before) + n * strlen(item) + strlen(after) + 1;
	char *buf = malloc(size), *p = stpcpy(buf, before);

	for (size_t i = 0; i < n; i++)
		p = stpcpy(p, item);
	strcpy(p, after);
	return buf;
}

static void many_rules(void)
{
	_cleanup_free_ char *most = repeat(
	    "a: &a {name: a, any: true}\nrules:\n", "  - *a\n", 10000, "");
	_cleanup_free_ char *more =
	    repeat("rules:\n", "  - {name: a, any: true}\n", 10001, "");

	check_text(errors_of(str_of(most)),
		   "1:1: error: unknown key \"a\"; known here: version, "
		   "defaults, limits, sampling, managers, interpreters, "
		   "process_names, rules, views, other and tests\n");
	check_text(errors_of(str_of(more)),
		   "10002:5: error: more than 10000 rules\n");
}

static void many_items(void)
{
	_cleanup_free_ char *most =
	    repeat("rules:\n- name: a\n  comm:\n", "  - a\n", 1000, "");
	_cleanup_free_ char *more =
	    repeat("rules:\n- name: a\n  comm:\n", "  - a\n", 1001, "");
	_cleanup_free_ char *nots = repeat("rules:\n- name: a\n  any: true\n"
					   "  not:\n",
					   "  - {comm: a}\n", 1001, "");

	ruleset_free(rules_of(most));
	check_text(errors_of(str_of(more)),
		   "1004:5: error: more than 1000 items\n");
	check_text(errors_of(str_of(nots)),
		   "1005:5: error: more than 1000 items\n");
}

/* An alias is short, and what it stands for is not. */
static void many_patterns(void)
{
	_cleanup_free_ char *first =
	    repeat("rules:\n- name: a\n  comm: &l\n", "  - a\n", 1000, "");
	_cleanup_free_ char *most =
	    repeat(first, "- {name: a, comm: *l}\n", 19, "");
	_cleanup_free_ char *more =
	    repeat(first, "- {name: a, comm: *l}\n", 21, "");
	struct ruleset *rs = NULL;
	struct diag d;

	diag_init(&d, "f");
	check_int(rulefile_parse(str_of(most), &d, &rs), 0);
	ruleset_free(rs);
	diag_done(&d);
	check_text(errors_of(str_of(more)),
		   "4:5: error: more than 20000 patterns in all rules\n");
}

/* Of the names of programs each is compared with all others. */
static void many_items_of_process_exporter(void)
{
	_cleanup_free_ char *most =
	    repeat("process_names:\n- comm:\n", "  - a\n", 1000, "");
	_cleanup_free_ char *more =
	    repeat("process_names:\n- exe:\n", "  - a\n", 1001, "");

	ruleset_free(rules_of(most));
	check_text(errors_of(str_of(more)),
		   "1003:5: error: more than 1000 items\n");
}

static void many_pidfiles(void)
{
	char text[64 * 1024];
	size_t n = (size_t)snprintf(text, sizeof(text), "rules:\n");

	for (int i = 0; i <= 1000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%s  - /run/%d.pid\n  - /run/0.pid\n",
				      i % 400 ? "" : "- name: a\n  pidfile:\n",
				      i);
	check_text(errors_of((struct str){text, n}),
		   "2008:5: error: more than 1000 pidfiles in all rules\n");
}

/* One message, whichever test it was that took the rest. */
static void costly_tests(void)
{
	_cleanup_free_ char *rules =
	    repeat("rules:\n", "  - {name: a, cmdline: '^(a+)+[b1]$'}\n", 40,
		   "tests:\n");
	_cleanup_free_ char *text =
	    repeat(rules,
		   "  - {cmdline: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!, "
		   "expect: other}\n",
		   9000, "");
	const char *got = errors_of(str_of(text)), *end = strchr(got, '\n');

	check(strstr(got,
		     "took 3 s of CPU time, which is all that they may: a "
		     "pattern of the rule of line 2 takes too many steps"));
	check(end && !end[1]);
}

static void many_errors(void)
{
	_cleanup_free_ char *text =
	    repeat("rules:\n", "  - {nam: a}\n", 300, "");
	struct ruleset *rs = NULL;
	struct diag d;

	diag_init(&d, "f");
	check_int(rulefile_parse(str_of(text), &d, &rs), -EINVAL);
	check_u64(d.n_msgs, DIAG_MSG_MAX);
	check_u64(d.n_errors, 300);
	check_u64(d.n_dropped, 250);
	diag_done(&d);
}

/* Loads what stands at a path and must not load; its only message. */
static const char *load_error(const char *file, int want)
{
	static char buf[1024];
	struct ruleset *rs = NULL;
	struct diag d;

	diag_init(&d, "f");
	check_int(rulefile_load(file, &d, &rs), want);
	check(!rs);
	list_messages(&d, buf, sizeof(buf));
	diag_done(&d);
	return buf;
}

static void no_regular_file(void)
{
	char dir[] = "/tmp/proctally-test-XXXXXX", file[128];

	if (!mkdtemp(dir)) {
		tap_skip("no temporary directory");
		return;
	}
	check_text(load_error(dir, -EISDIR), " error: Is a directory\n");

	snprintf(file, sizeof(file), "%s/none", dir);
	check_text(load_error(file, -ENOENT),
		   " error: No such file or directory\n");

	snprintf(file, sizeof(file), "%s/fifo", dir);
	check_int(mkfifo(file, 0600), 0);
	check_text(load_error(file, -EINVAL), " error: not a regular file\n");
	unlink(file);
	rmdir(dir);
}

static void large_file(void)
{
	char file[] = "/tmp/proctally-test-XXXXXX";
	int fd = mkstemp(file);

	if (fd < 0) {
		tap_skip("no temporary file");
		return;
	}
	check_int(ftruncate(fd, 1024 * 1024 + 1), 0);
	close(fd);
	check_text(load_error(file, -EINVAL), " error: larger than 1 MiB\n");
	unlink(file);
}

int main(void)
{
	test_dir("good", "loads", check_good);
	test_dir("bad", "says what is wrong, and where", check_bad);
	test_dir("../process-names", "means what process-exporter means",
		 check_loads);
	test_dir("../../config/examples", "passes its own tests", check_good);

	TEST("limits and sampling are taken at both ends", limits);
	TEST("what a file leaves out has its default", own_defaults);
	TEST("sizes and durations have units", units);
	TEST("other ways to write a size are errors", no_units);
	TEST("collect of a rule goes over defaults, wherever they stand",
	     collect);
	TEST("rules come out as they stand in the file", rule_parts);
	TEST("a process goes where the file says", whole_way);
	TEST("what no rule takes can be dropped", other);
	TEST("a UTF-8 byte order mark moves no column", byte_order_mark);
	TEST("CR LF ends lines", line_ends);
	TEST("an empty file is told to be empty", empty);
	TEST("the number of rules is bounded", many_rules);
	TEST("the number of items of one key is bounded", many_items);
	TEST("so it is below process_names", many_items_of_process_exporter);
	TEST("the number of pidfiles is bounded", many_pidfiles);
	TEST("the number of patterns in all rules is bounded", many_patterns);
	TEST("tests that take too long end, and are told", costly_tests);
	TEST("a file full of mistakes is told up to a limit", many_errors);
	TEST("a directory, a FIFO and no file at all are told and do not block",
	     no_regular_file);
	TEST("a file of more than 1 MiB is told as a whole", large_file);
	return tap_done();
}
