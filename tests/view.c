/* SPDX-License-Identifier: MIT */
/*
 * What is shown, without a terminal: cells, the table, and the lines of a
 * screen of any size, of this host's processes. Among them is one whose name
 * would steer a terminal.
 */
#include "view.h"
#include "tap.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static const char *number(cell_fn *format, double v)
{
	static char buf[CELL_SIZE];

	format(v, buf);
	return buf;
}

static void numbers(void)
{
	check_text(number(cell_percent, 0), "0.0");
	check_text(number(cell_percent, 12.34), "12.3");
	check_text(number(cell_percent, 9999.94), "9999.9");
	check_text(number(cell_percent, 12800), "12800");
	check_text(number(cell_bytes, 0), "0");
	check_text(number(cell_bytes, 999), "999");
	check_text(number(cell_bytes, 1000), "1.0K");
	check_text(number(cell_bytes, 1536), "1.5K");
	check_text(number(cell_bytes, 99.9 * 1024), "99.9K");
	check_text(number(cell_bytes, 99.96 * 1024), "100K");
	check_text(number(cell_bytes, 5.0 * (1ull << 30)), "5.0G");
	check_text(number(cell_bytes, 5.0 * (1ull << 60)), "5.0E");
	check_text(number(cell_count, 0), "0");
	check_text(number(cell_count, 99999), "99999");
	check_text(number(cell_count, 100000), "100k");
	check_text(number(cell_count, 12345678), "12.3M");
	check_text(number(cell_age, 0.4), "0s");
	check_text(number(cell_age, 59.9), "59s");
	check_text(number(cell_age, 61), "1m01s");
	check_text(number(cell_age, 3600 * 5 + 120), "5h02m");
	check_text(number(cell_age, 86400 * 3 + 4 * 3600), "3d04h");
	check_text(number(cell_age, 86400.0 * 400), "400d");
	check(strlen(number(cell_age, 1e300)) < CELL_SIZE);
	check(strlen(number(cell_bytes, 1e300)) < CELL_SIZE);
}

static int taken;

static const char *text_of(struct str text, int width)
{
	static char buf[CELL_TEXT_SIZE];

	taken = cell_text(text, width, buf, sizeof(buf));
	return buf;
}

static void plain_texts(void)
{
	check_text(text_of(STR("nginx"), 10), "nginx");
	check_int(taken, 5);
	check_text(text_of(STR("nginx"), 5), "nginx");
	check_text(text_of(STR("nginx"), 4), "ngi+");
	check_int(taken, 4);
	check_text(text_of(STR("nginx"), 1), "+");
	check_text(text_of(STR("nginx"), 0), "");
	check_int(taken, 0);
	check_text(text_of(STR("nginx"), -3), "");
	check_int(taken, 0);
	check_text(text_of(STR(""), 5), "");
	check_text(text_of(STR("a b"), 5), "a b");
}

static void hostile_texts(void)
{
	check_text(text_of(STR("\033[2J\a\r\n\t\b\177"), 20), "?[2J??????");
	check_int(taken, 10);
	check_text(text_of(STR("a\0b"), 20), "a?b");
	check_text(text_of(STR("\xff\xfe"), 20), "??");
	/* Control characters in two bytes, and a byte that is one. */
	check_text(text_of(STR("\xc2\x9b"
			       "2J\x9b"
			       "2J"),
			   20),
		   "?2J?2J");
	/* Overlong, a surrogate, cut off. */
	check_text(text_of(STR("\xc0\xaf"), 20), "??");
	check_text(text_of(STR("\xed\xa0\x80"), 20), "???");
	check_text(text_of(STR("x\xe4\xb8"), 20), "x??");
	/* The other way round (U+202E), of no width (U+200B), a stroke on the
	 * letter before (U+0336). */
	check_text(text_of(STR("\xe2\x80\xae"
			       "a\xe2\x80\x8b"
			       "b\xcc\xb6"),
			   20),
		   "?a?b?");
	check_int(taken, 5);
}

static void wide_texts(void)
{
	check_text(text_of(STR("\xc3\xa4rger"), 20), "\xc3\xa4rger");
	check_int(taken, 5);
	check_text(text_of(STR("\xe4\xb8\xad\xe6\x96\x87"), 20),
		   "\xe4\xb8\xad\xe6\x96\x87");
	check_int(taken, 4);
	check_text(text_of(STR("\xe4\xb8\xad\xe6\x96\x87"), 3),
		   "\xe4\xb8\xad+");
	check_int(taken, 3);
	/* Half of a wide one does not fit. */
	check_text(text_of(STR("\xe4\xb8\xad\xe6\x96\x87"), 2), "+");
	check_int(taken, 1);
}

static void small_buffers(void)
{
	char buf[8];

	for (size_t size = 1; size <= sizeof(buf); size++) {
		memset(buf, 'x', sizeof(buf));
		cell_text(STR("\xe4\xb8\xad\xe6\x96\x87 abcdefgh"), 20, buf,
			  size);
		check(memchr(buf, '\0', size) != NULL);
	}
}

static void without_utf8(void)
{
	setlocale(LC_CTYPE, "C");
	check_text(text_of(STR("\xc3\xa4rger\033"), 20), "??rger?");
	setlocale(LC_CTYPE, "C.UTF-8");
}

/* The table. */

static void tell(struct board *b, const char *group, const char *type,
		 const char *instance, bool derive, uint64_t v0, uint64_t v1,
		 unsigned n)
{
	struct value_out v = {.group = group,
			      .type = type,
			      .instance = instance,
			      .derive = derive,
			      .n = n};

	if (derive) {
		v.u[0] = v0;
		v.u[1] = v1;
	} else {
		v.d[0] = (double)v0;
		v.d[1] = (double)v1;
	}
	board_take(b, &v);
}

static void fill(struct board *b, const char *long_name, bool pss)
{
	board_init(b);
	for (unsigned i = 0; i < 2; i++) {
		board_begin(b, (1 + i) * NSEC_PER_SEC);
		tell(b, long_name, "ps_cputime", NULL, true, i * 25000, 0, 2);
		tell(b, long_name, "ps_rss", NULL, false, 1536, 0, 1);
		tell(b, long_name, "ps_count", NULL, false, 2, 3, 2);
		if (pss)
			tell(b, long_name, "memory", "pss", false, 99, 0, 1);
		tell(b, "empty", "ps_count", NULL, false, 0, 0, 2);
		check_int(board_end(b), 0);
	}
	board_sort(b, &(struct board_order){.by = BOARD_CPU});
}

static void whole_table(void)
{
	static const char name[] =
	    "a-name-of-a-group-that-is-as-long-as-one-can-be-~0123456789abcd";
	char line[TABLE_LINE_SIZE], want[256];
	int mark, mark_len;
	struct table t;
	struct board b;

	fill(&b, name, false);
	table_fit(&t, &b, NULL, 0);
	table_head(&t, BOARD_CPU, line, &mark, &mark_len);
	snprintf(want, sizeof(want),
		 "%-63s   CPU%%    RSS  PROCS READ/s WRITE/s    FDS   SWAP "
		 "FAULT/s  THRDS     AGE",
		 "GROUP");
	check_text(line, want);
	check(strncmp(line + mark, "CPU%", (size_t)mark_len) == 0);
	check_int(mark_len, 4);
	table_row(&t, &b.row[b.order[0]], line);
	snprintf(want, sizeof(want),
		 "%s    2.5   1.5K      2      -       -      -      -       - "
		 "     3       -",
		 name);
	check_text(line, want);
	table_row(&t, &b.row[b.order[1]], line);
	snprintf(
	    want, sizeof(want),
	    "%-63s      -      -      0      -       -      -      -       "
	    "-      0       -",
	    "empty");
	check_text(line, want);
	board_done(&b);
}

static void column_where_told(void)
{
	char line[TABLE_LINE_SIZE];
	int mark, mark_len;
	struct table t;
	struct board b;

	fill(&b, "g", true);
	table_fit(&t, &b, NULL, 0);
	table_head(&t, BOARD_PSS, line, &mark, &mark_len);
	check(strstr(line, " PSS ") != NULL);
	check(strstr(line, "GPU%") == NULL);
	check(mark >= 0 && strncmp(line + mark, "PSS", 3) == 0);
	table_head(&t, BOARD_NAME, line, &mark, &mark_len);
	check_int(mark, 0);
	table_head(&t, BOARD_GPU, line, &mark, &mark_len);
	check_int(mark, -1);
	board_done(&b);
}

static void column_of_views(void)
{
	static const char *const one[] = {"app", NULL};
	static const char *const more[] = {"user", "app", "by-unit", NULL};
	char line[TABLE_LINE_SIZE];
	int mark, mark_len;
	struct table t;
	struct board b;

	check_u64(table_view_of(more, "user.x"), 0);
	check_u64(table_view_of(more, "user"), 1);
	check_u64(table_view_of(more, "username.x"), 1);
	check_u64(table_view_of(more, "by-unit.a.service"), 2);

	fill(&b, "by-unit.a", false);
	table_fit(&t, &b, one, 0);
	table_row(&t, &b.row[b.order[0]], line);
	check(strncmp(line, "by-unit.a  ", 11) == 0);
	table_fit(&t, &b, more, 0);
	table_head(&t, BOARD_NAME, line, &mark, &mark_len);
	check(strncmp(line, "VIEW    GROUP      ", 19) == 0);
	check_int(mark, 8);
	table_row(&t, &b.row[b.order[0]], line);
	check(strncmp(line, "by-unit by-unit.a  ", 19) == 0);
	table_row(&t, &b.row[b.order[1]], line);
	check(strncmp(line, "app     empty      ", 19) == 0);
	for (int width = 1; width < 150; width++) {
		table_fit(&t, &b, more, width);
		table_row(&t, &b.row[b.order[0]], line);
		check((int)strlen(line) <= width);
	}
	board_done(&b);
}

static void narrow_tables(void)
{
	char line[TABLE_LINE_SIZE];
	int mark, mark_len;
	struct table t;
	struct board b;

	fill(&b, "a-name-of-more-than-twenty-bytes", false);
	for (int width = 1; width < 150; width++) {
		table_fit(&t, &b, NULL, width);
		table_head(&t, BOARD_CPU, line, &mark, &mark_len);
		check((int)strlen(line) <= width);
		/* Where there is room names are whole, and columns are kept. */
		if (width >= 110)
			check(strstr(line, "AGE") && t.name_width == 32);
		if (width >= 80)
			check(strstr(line, "SWAP") && t.name_width >= 20);
		table_row(&t, &b.row[b.order[0]], line);
		check((int)strlen(line) <= width);
	}
	board_done(&b);
}

/* The screen. */

static const char hostile[] = "\033]2;\xe4\xb8\xad\xff\r\xcc\xb6";

static struct watch w;
static struct view v;
static struct view_line line;
static pid_t child;

static void make_child(void)
{
	int ready[2];
	char c;

	check_int(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, hostile);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	check(read(ready[0], &c, 1) == 1);
	close(ready[0]);
	close(ready[1]);
}

static void watch_host(const char *rules)
{
	char path[] = "/tmp/proctally-view.XXXXXX";
	int fd = mkstemp(path);

	check(fd >= 0);
	check(write(fd, rules, strlen(rules)) == (ssize_t)strlen(rules));
	check_int(watch_open(&w, &(struct monitor_options){.rules_path = path}),
		  0);
	check_int(watch_tick(&w), 0);
	check_int(watch_tick(&w), 0);
	check(monitor_has_rules(w.monitor));
	unlink(path);
	close(fd);
}

static void kill_child(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Columns that the line takes; -1 if it would steer a terminal. */
static int columns_of(const char *text)
{
	wchar_t wide[TABLE_LINE_SIZE];
	size_t n = mbstowcs(wide, text, ARRAY_SIZE(wide));

	return n == (size_t)-1 ? -1 : wcswidth(wide, n);
}

static void draw_all(int rows, int columns)
{
	view_resize(&v, rows, columns);
	check_int(view_update(&v, &w), 0);
	for (int row = 0; row < rows; row++) {
		int n;

		view_draw(&v, &w, row, &line);
		n = columns_of(line.text);
		if (n < 0 || n > columns ||
		    (line.mark >= 0 && line.mark + line.mark_len > columns))
			tap_fail(__FILE__, __LINE__,
				 "row %d of %dx%d takes %d: \"%s\"", row, rows,
				 columns, n, line.text);
	}
}

static void press(int key)
{
	check(view_press(&v, &w, key));
	check_int(view_update(&v, &w), 0);
}

/* The row of the screen in which that text is, or -1. */
static int row_with(const char *text)
{
	for (int row = 0; row < v.rows; row++) {
		view_draw(&v, &w, row, &line);
		if (strstr(line.text, text))
			return row;
	}
	return -1;
}

static void begin_view(int rows, int columns)
{
	view_init(&v);
	strcpy(v.host, "host\033c");
	view_resize(&v, rows, columns);
	check_int(view_update(&v, &w), 0);
}

static void select_group(const char *name)
{
	press(VIEW_KEY_HOME);
	for (size_t i = 0; i < w.board.n_rows; i++) {
		if (strcmp(w.board.row[w.board.order[i]].name, name) == 0)
			return;
		press(VIEW_KEY_DOWN);
	}
	check(!"there");
}

static void any_size(void)
{
	static const char *const how[] = {"", "h", "n", " "};

	begin_view(24, 80);
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		if (*how[i])
			press(*how[i]);
		for (int rows = 1; rows <= 30; rows++)
			for (int columns = 1; columns <= 100; columns += 3)
				draw_all(rows, columns);
	}
	draw_all(1000, 1);
	draw_all(1, CELL_TEXT_MAX);
	view_resize(&v, -5, 100000);
	check_int(v.rows, 1);
	check_int(v.columns, CELL_TEXT_MAX);
	for (size_t i = 0; i < 2; i++) {
		begin_view(24, 80);
		select_group(i ? "odd" : "all");
		press(VIEW_KEY_ENTER);
		for (int rows = 1; rows <= 30; rows++)
			for (int columns = 1; columns <= 100; columns += 3) {
				draw_all(rows, columns);
				press(rows % 3 ? VIEW_KEY_PAGE_DOWN
					       : VIEW_KEY_UP);
			}
	}
}

/* As if there was a GPU: the host of the tests may have none. */
static void members_with_gpus(void)
{
	begin_view(24, 80);
	select_group("odd");
	press(VIEW_KEY_RIGHT);
	press('g');
	check_int(v.members.order.by, BOARD_CPU);
	check(row_with("GPU%") < 0);
	w.board.row[0].have |= 1u << BOARD_GPU;
	for (size_t i = 0; i < w.roster.n_entries; i++) {
		w.roster.entry[i].member.has_gpu = true;
		w.roster.entry[i].member.gpu = 12.5;
	}
	check(row_with(" RSS   GPU% COMM of odd") == 1);
	check(row_with("   12.5 ?]2;") == 2);
	w.roster.entry[w.roster.shown[0]].member.has_gpu = false;
	check(row_with("      - ?]2;") == 2);
	press('g');
	check_int(v.members.order.by, BOARD_GPU);
	w.board.row[0].have &= ~(1u << BOARD_GPU);
}

static void members(void)
{
	begin_view(24, 80);
	check(row_with("GROUP") == 1);
	check(row_with("hostile") < 0);
	select_group("odd");
	press(VIEW_KEY_RIGHT);
	check(row_with("COMM of odd") == 1);
	check(row_with("?]2;\xe4\xb8\xad???") == 2);
	check(row_with("GROUP") < 0);
	check_u64(w.roster.n_shown, 1);
	/* By what processes do not have there is no order. */
	press('f');
	check_int(v.members.order.by, BOARD_CPU);
	press('m');
	check_int(v.members.order.by, BOARD_RSS);
	check_int(v.groups.order.by, BOARD_CPU);
	press(VIEW_KEY_LEFT);
	check(row_with("GROUP") == 1);
	/* The group is still the one that is selected. */
	press(VIEW_KEY_ENTER);
	check(row_with("COMM of odd") == 1);
	press(VIEW_KEY_ESCAPE);
	check(row_with("GROUP") == 1);
	select_group("nobody");
	press(VIEW_KEY_ENTER);
	check_u64(w.roster.n_shown, 0);
	press(VIEW_KEY_DOWN);
	press(VIEW_KEY_END);
	draw_all(10, 40);
}

/* What it used since it was born is known whole. */
static void born_between_ticks(void)
{
	const struct roster_entry *e = NULL;
	struct timespec cpu;
	pid_t pid;

	check_int(watch_tick(&w), 0);
	usleep(50 * 1000); /* start times are in hundredths of a second */
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		do
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
		while (cpu.tv_sec == 0 && cpu.tv_nsec < 200 * 1000 * 1000);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, NULL, WUNTRACED);
	check_int(watch_tick(&w), 0);
	for (size_t i = 0; i < w.roster.n_entries; i++)
		if (w.roster.entry[i].member.pid == pid)
			e = &w.roster.entry[i];
	check(e && e->has_cpu && e->cpu > 0);
	check(e && e->member.state == 'T');
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void members_of_other_views(void)
{
	watch_host("views:\n"
		   "  app:\n"
		   "    rules:\n"
		   "    - name: odd\n"
		   "      comm: 're:^\\x1b\\]2'\n"
		   "      per_process: {by: slot}\n"
		   "  all:\n"
		   "    rules: [{name: of-us, any: true}]\n");
	begin_view(24, 80);
	select_group("odd.0");
	press(VIEW_KEY_ENTER);
	check(row_with("COMM of odd.0") == 1);
	check_u64(w.roster.n_shown, 1);
	press(VIEW_KEY_LEFT);
	select_group("all.of-us");
	press(VIEW_KEY_ENTER);
	check(row_with("COMM of all.of-us") == 1);
	check(w.roster.n_shown > 1);
	press(VIEW_KEY_LEFT);
	watch_close(&w);
}

static void selection(void)
{
	begin_view(24, 80);
	press('n');
	check(row_with("all ") == 2);
	check(row_with("odd ") == 5);
	press(VIEW_KEY_DOWN);
	view_draw(&v, &w, 3, &line);
	check_int(line.style, VIEW_BAR);
	check(strncmp(line.text, "kernel ", 7) == 0);
	check_int(columns_of(line.text), 80);
	/* It stays with its group when that moves. */
	press('r');
	check(row_with("kernel ") == 5);
	check_int(line.style, VIEW_BAR);
	press(VIEW_KEY_END);
	check(row_with("all ") == 6);
	check_int(line.style, VIEW_BAR);
	press(VIEW_KEY_DOWN);
	check(row_with("all ") == 6);
	check_int(line.style, VIEW_BAR);
	press(VIEW_KEY_HOME);
	press(VIEW_KEY_UP);
	check(row_with("other ") == 2);
	check_int(line.style, VIEW_BAR);
	/* What is selected is scrolled to. */
	view_resize(&v, 5, 80);
	press(VIEW_KEY_END);
	check(row_with("other ") < 0);
	check(row_with("all ") == 3);
	check_int(line.style, VIEW_BAR);
}

static void keys(void)
{
	begin_view(24, 80);
	check(!view_press(&v, &w, 'q'));
	press('h');
	check(row_with("GROUP") < 0);
	check(row_with("sort by RSS") > 0);
	press('h');
	check(row_with("GROUP") == 1);
	press('?');
	press('m');
	check(row_with("GROUP") == 1);
	check_int(v.groups.order.by, BOARD_RSS);
	/* Nobody tells it, so there is no such column. */
	press('p');
	press('g');
	check_int(v.groups.order.by, BOARD_RSS);
	press('i');
	check_int(v.groups.order.by, BOARD_IO);
	press('u');
	check_int(v.groups.order.by, BOARD_PROCESSES);
	press('f');
	check_int(v.groups.order.by, BOARD_FDS);
	press('r');
	check(v.groups.order.reverse);
	press('c');
	check_int(v.groups.order.by, BOARD_CPU);
	check(!v.groups.order.reverse);
	press(' ');
	check(v.paused);
	check(row_with("paused") == 0);
	press(' ');
	check(!v.paused);
	press(VIEW_KEY_OTHER);
	press('Z');
	check_int(v.groups.order.by, BOARD_CPU);
	strcpy(v.status, "something\a to know");
	check(row_with("something? to know") == 23);
	press('Z');
	check(row_with("to know") < 0);
	check(row_with("host?c ") == 0);
}

int main(void)
{
	TEST("numbers are short", numbers);
	if (!setlocale(LC_CTYPE, "C.UTF-8")) {
		printf("Bail out! no locale C.UTF-8\n");
		return 1;
	}
	TEST("a text that is too long ends in a plus", plain_texts);
	TEST("no text steers a terminal", hostile_texts);
	TEST("wide characters take two columns", wide_texts);
	TEST("a small buffer is not written beyond", small_buffers);
	TEST("without UTF-8 only ASCII is shown", without_utf8);
	TEST("the table is aligned and shows what is absent as -", whole_table);
	TEST("PSS and GPU have a column where they are told",
	     column_where_told);
	TEST("several views have a column of their own", column_of_views);
	TEST("a narrow table leaves out columns, then parts of names",
	     narrow_tables);
	make_child();
	watch_host("defaults: {collect: {pss: off}}\n"
		   "rules:\n"
		   "- {name: kernel, kernel: true}\n"
		   "- {name: nobody, comm: no-such-comm}\n"
		   "- {name: odd, comm: 're:^\\x1b\\]2'}\n"
		   "- {name: all, any: true}\n");
	TEST("no line is too long on a screen of any size", any_size);
	TEST("members of the selected group are shown", members);
	TEST("where a GPU is used each process has what it uses",
	     members_with_gpus);
	TEST("the selection stays with its group", selection);
	TEST("keys do what the help says", keys);
	TEST("a process that was born between two ticks has its CPU time",
	     born_between_ticks);
	watch_close(&w);
	TEST("members of other views and single ones are shown",
	     members_of_other_views);
	kill_child();
	return tap_done();
}
