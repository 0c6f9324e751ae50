/* SPDX-License-Identifier: MIT */
/*
 * The parsers of what stands below /proc. Each text is parsed from a buffer
 * of its very size, so that a sanitizer sees a look behind its end.
 */
#include "proctext.h"
#include "tap.h"

#include <locale.h>
#include <stdlib.h>

static const char stat_text[] =
    "4242 (web: worker 1) S 17 4242 4242 0 -1 4194560 900 0 3 0 1500 250 16 17 "
    "20 0 8 0 812345 268435456 12800 18446744073709551615 94000000000000 "
    "94000000100000 140700000000000 0 0 0 0 4096 16386 0 0 0 17 1 0 0 0 0 0 "
    "94000000200000 94000000300000 94000001000000 140700000001000 "
    "140700000001100 140700000001100 140700000002000 0\n";

static const char status_text[] =
    "Name:\tVmSwap:\t1 kB\nUmask:\t0022\nState:\tS (sleeping)\n"
    "Uid:\t1000\t1000\t1000\t1000\nVmRSS:\t   51200 kB\n"
    "RssAnon:\t   50000 kB\nRssFile:\t    1200 kB\nRssShmem:\t       7 kB\n"
    "VmSwap:\t      42 kB\nThreads:\t4\nvoluntary_ctxt_switches:\t120\n"
    "nonvoluntary_ctxt_switches:\t8\n";

static const char io_text[] =
    "rchar: 18446744073709551615\nwchar: 22\nsyscr: 33\nsyscw: 44\n"
    "read_bytes: 55\nwrite_bytes: 66\ncancelled_write_bytes: 77\n";

static const char limits_text[] =
    "Limit                     Soft Limit           Hard Limit           "
    "Units     \n"
    "Max processes             30706                30706                "
    "processes \n"
    "Max open files            1024                 4096                 "
    "files     \n"
    "Max locked memory         65536                65536                "
    "bytes     \n";

/* A copy without a byte to spare. */
static struct str exactly(const char *text, size_t n)
{
	char *s = malloc(n ? n : 1);

	if (n)
		memcpy(s, text, n);
	else
		s = realloc(s, 1);
	return (struct str){s, n};
}

static void release(struct str s)
{
	free((char *)s.s);
}

static int parse_stat(const char *text, size_t n, struct proc_stat *ret)
{
	struct str s = exactly(text, n);
	int r = proctext_parse_stat(s, ret);

	/* It points into the text, which is gone now. */
	if (r == 0)
		ret->comm.s = text + (ret->comm.s - s.s);
	release(s);
	return r;
}

static metric_mask parse_keys(enum metric_source source, const char *text,
			      size_t n, uint64_t *value)
{
	struct str s = exactly(text, n);
	metric_mask found =
	    proctext_parse_keys(source, s, ~(metric_mask)0, value);

	release(s);
	return found;
}

static int parse_limit(const char *text, size_t n, uint64_t *ret)
{
	struct str s = exactly(text, n);
	int r = proctext_parse_fd_limit(s, ret);

	release(s);
	return r;
}

static unsigned row_of(enum metric_source source, const char *key)
{
	for (unsigned i = 0; i < METRIC_N_STORED; i++)
		if (metrics[i].source == source && metrics[i].key &&
		    strcmp(metrics[i].key, key) == 0)
			return i;
	return METRIC_N_STORED;
}

static void stat_fields(void)
{
	struct proc_stat st;

	check_int(parse_stat(stat_text, strlen(stat_text), &st), 0);
	check_str(st.comm, "web: worker 1");
	check_int(st.state, 'S');
	check_u64(st.field[STAT_FIELD_PPID], 17);
	check_u64(st.field[8], UINT64_MAX);
	check_u64(st.field[STAT_FIELD_FLAGS], 4194560);
	check_u64(st.field[10], 900);
	check_u64(st.field[12], 3);
	check_u64(st.field[14], 1500);
	check_u64(st.field[15], 250);
	check_u64(st.field[16], 16);
	check_u64(st.field[17], 17);
	check_u64(st.field[STAT_FIELD_THREADS], 8);
	check_u64(st.field[STAT_FIELD_START], 812345);
	check_u64(st.field[STAT_FIELD_VSIZE], 268435456);
	check_u64(st.field[STAT_FIELD_RSS], 12800);
}

static void stat_comms(void)
{
	static const char *const comms[] = {
	    "",
	    " ",
	    ")",
	    "(",
	    "()",
	    "))",
	    "a) S 1 (b",
	    "x) R 9 (y",
	    "a\nb",
	    "\xff\xe8\xa1",
	    ") Z 1 1 1 1 1 1",
	    "kworker/u512:13+some_rather_long_named_workqueue_for_testing_xy",
	};
	struct proc_stat st;
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(comms); i++) {
		int n = snprintf(text, sizeof(text), "1 (%s)%s", comms[i],
				 strstr(stat_text, " S 17"));

		check_int(parse_stat(text, (size_t)n, &st), 0);
		check_str(st.comm, comms[i]);
		check_int(st.state, 'S');
		check_u64(st.field[STAT_FIELD_PPID], 17);
		check_u64(st.field[STAT_FIELD_RSS], 12800);
	}
}

/* A text that was cut off gives an error or the values of the whole. */
static void stat_cut_anywhere(void)
{
	struct proc_stat whole, st;
	unsigned n_good = 0;

	check_int(parse_stat(stat_text, strlen(stat_text), &whole), 0);
	for (size_t n = 0; n < strlen(stat_text); n++) {
		int r = parse_stat(stat_text, n, &st);

		check(r == 0 || r == -EBADMSG);
		if (r)
			continue;
		n_good++;
		check_int(st.state, whole.state);
		for (unsigned i = STAT_FIELD_PPID; i <= STAT_FIELD_RSS; i++)
			if (st.field[i] != whole.field[i])
				tap_fail(__FILE__, __LINE__,
					 "field %u of %zu bytes: %" PRIu64, i,
					 n, st.field[i]);
	}
	check(n_good > 100);
}

static void stat_numbers(void)
{
	static const struct {
		const char *rss; /* with what is behind it */
		int r;
		uint64_t want;
	} rows[] = {
	    {"0\n", 0, 0},
	    {"12 ", 0, 12},
	    {"18446744073709551615\n", 0, UINT64_MAX},
	    {"00000000000000000000000000000007\n", 0, 7},
	    {"-1\n", 0, UINT64_MAX},
	    {"18446744073709551616\n", -EBADMSG, 0},
	    {"99999999999999999999999999\n", -EBADMSG, 0},
	    {"1x\n", -EBADMSG, 0},
	    {"x\n", -EBADMSG, 0},
	    {"-\n", -EBADMSG, 0},
	    {"--1\n", -EBADMSG, 0},
	    {"+1\n", -EBADMSG, 0},
	    {"0x10\n", -EBADMSG, 0},
	    {"1.5\n", -EBADMSG, 0},
	    {"\n", -EBADMSG, 0},
	    {"", -EBADMSG, 0},
	    {"1 2 3 4 x", 0, 1},
	    {"1 99999999999999999999999999 3\n", 0, 1},
	    {"1  2   3    4     5 uuid-0000-1111\n", 0, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[256];
		struct proc_stat st = {0};
		int n = snprintf(text, sizeof(text),
				 "1 (a) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 "
				 "0 5 4096 %s",
				 rows[i].rss);
		int r = parse_stat(text, (size_t)n, &st);

		if (r != rows[i].r)
			tap_fail(__FILE__, __LINE__, "\"%s\": want %d, got %d",
				 rows[i].rss, rows[i].r, r);
		if (r == 0)
			check_u64(st.field[STAT_FIELD_RSS], rows[i].want);
	}
}

static void stat_nonsense(void)
{
	static const char *const texts[] = {
	    "",	       "(",
	    ")",       ")(",
	    "()",      "1 ()",
	    "1 () ",   "1 () S",
	    "1 () S ", "1 ()S 1 1",
	    "1 (",     "1 (a S 1",
	    "1 a) S",  "1 (a) SS 1 1",
	    "\n\n\n",  "1 (a)  1 1 1",
	};
	struct proc_stat st;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (parse_stat(texts[i], strlen(texts[i]), &st) != -EBADMSG)
			tap_fail(__FILE__, __LINE__, "taken: \"%s\"", texts[i]);
}

static void keys(void)
{
	uint64_t v[METRIC_N_STORED] = {0};
	metric_mask found;

	found = parse_keys(SOURCE_STATUS, status_text, strlen(status_text), v);
	check_u64(found, metric_rows(SOURCE_STATUS));
	check_u64(v[row_of(SOURCE_STATUS, "RssAnon")], 50000);
	check_u64(v[row_of(SOURCE_STATUS, "RssFile")], 1200);
	check_u64(v[row_of(SOURCE_STATUS, "RssShmem")], 7);
	check_u64(v[row_of(SOURCE_STATUS, "VmSwap")], 42);
	found = parse_keys(SOURCE_TASKS, status_text, strlen(status_text), v);
	check_u64(found, metric_rows(SOURCE_TASKS));
	check_u64(v[row_of(SOURCE_TASKS, "voluntary_ctxt_switches")], 120);
	check_u64(v[row_of(SOURCE_TASKS, "nonvoluntary_ctxt_switches")], 8);
	found = parse_keys(SOURCE_IO, io_text, strlen(io_text), v);
	check_u64(found, metric_rows(SOURCE_IO));
	check_u64(v[row_of(SOURCE_IO, "rchar")], UINT64_MAX);
	check_u64(v[row_of(SOURCE_IO, "wchar")], 22);
	check_u64(v[row_of(SOURCE_IO, "syscr")], 33);
	check_u64(v[row_of(SOURCE_IO, "syscw")], 44);
	check_u64(v[row_of(SOURCE_IO, "read_bytes")], 55);
	check_u64(v[row_of(SOURCE_IO, "write_bytes")], 66);
}

static void keys_that_are_wanted(void)
{
	unsigned row = row_of(SOURCE_IO, "syscw");
	uint64_t v[METRIC_N_STORED] = {0};
	metric_mask found =
	    proctext_parse_keys(SOURCE_IO, str_of(io_text), METRIC_BIT(row), v);

	check_u64(found, METRIC_BIT(row));
	check_u64(v[row], 44);
	check_u64(v[row_of(SOURCE_IO, "wchar")], 0);
	check_u64(proctext_parse_keys(SOURCE_IO, str_of(io_text), 0, v), 0);
}

static void keys_at_line_starts(void)
{
	static const struct {
		const char *text;
		bool found;
		uint64_t want;
	} rows[] = {
	    {"wchar: 5\n", true, 5},
	    {"wchar:5\n", true, 5},
	    {"wchar:\t \t5\n", true, 5},
	    {"wchar: 5 kB\n", true, 5},
	    {"\n\nwchar: 5\n", true, 5},
	    {"x: wchar: 1\nwchar: 5\n", true, 5},
	    {"wchar: 5\nwchar: 6\n", true, 5},
	    {"wchar: x\nwchar: 6\n", true, 6},
	    {"wchar: 18446744073709551615\n", true, UINT64_MAX},
	    {"rchar: 1 wchar: 5\n", false, 0},
	    {" wchar: 5\n", false, 0},
	    {"xwchar: 5\n", false, 0},
	    {"wcharx: 5\n", false, 0},
	    {"wchar : 5\n", false, 0},
	    {"WCHAR: 5\n", false, 0},
	    {"wchar 5\n", false, 0},
	    {"wchar: \n", false, 0},
	    {"wchar:\n", false, 0},
	    {"wchar:\n5\n", false, 0},
	    {"wchar: -5\n", false, 0},
	    {"wchar: 18446744073709551616\n", false, 0},
	    {"wchar\n", false, 0},
	    {"wchar", false, 0},
	    {":", false, 0},
	    {"", false, 0},
	};
	unsigned row = row_of(SOURCE_IO, "wchar");

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t v[METRIC_N_STORED] = {0};
		metric_mask found = parse_keys(SOURCE_IO, rows[i].text,
					       strlen(rows[i].text), v) &
				    METRIC_BIT(row);

		if (!!found != rows[i].found ||
		    (found && v[row] != rows[i].want))
			tap_fail(__FILE__, __LINE__, "\"%s\": %" PRIu64,
				 rows[i].text, v[row]);
	}
}

static void keys_cut_anywhere(void)
{
	static const struct {
		enum metric_source source;
		const char *text;
	} rows[] = {
	    {SOURCE_STATUS, status_text},
	    {SOURCE_TASKS, status_text},
	    {SOURCE_IO, io_text},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t size = strlen(rows[i].text);
		uint64_t whole[METRIC_N_STORED], v[METRIC_N_STORED];

		parse_keys(rows[i].source, rows[i].text, size, whole);
		for (size_t n = 0; n < size; n++) {
			metric_mask m =
			    parse_keys(rows[i].source, rows[i].text, n, v);

			for (; m; m &= m - 1) {
				unsigned row = (unsigned)__builtin_ctzll(m);

				if (v[row] != whole[row])
					tap_fail(__FILE__, __LINE__,
						 "%s of %zu bytes: %" PRIu64,
						 metrics[row].key, n, v[row]);
			}
		}
	}
}

static void fd_limit(void)
{
	static const struct {
		const char *text;
		int r;
		uint64_t want;
	} rows[] = {
	    {limits_text, 0, 1024},
	    {"Max open files            1                    2\n", 0, 1},
	    {"Max open files 18446744073709551615 x\n", 0, UINT64_MAX},
	    {"Max open files            unlimited            unlimited\n",
	     PROC_ABSENT, 0},
	    {"Max open files            99999999999999999999 x\n", PROC_ABSENT,
	     0},
	    {"Max open files            ", PROC_ABSENT, 0},
	    {"Max open files", PROC_ABSENT, 0},
	    {"Max open file", PROC_ABSENT, 0},
	    {"x Max open files 5\n", PROC_ABSENT, 0},
	    {"x Max open files 5\nMax open files 6 7\n", 0, 6},
	    {"", PROC_ABSENT, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t v = 0;
		int r = parse_limit(rows[i].text, strlen(rows[i].text), &v);

		if (r != rows[i].r || v != rows[i].want)
			tap_fail(__FILE__, __LINE__, "\"%s\": %d, %" PRIu64,
				 rows[i].text, r, v);
	}
}

static void fd_limit_cut_anywhere(void)
{
	for (size_t n = 0; n < strlen(limits_text); n++) {
		uint64_t v = 0;

		if (parse_limit(limits_text, n, &v) == 0 && v != 1024)
			tap_fail(__FILE__, __LINE__, "%zu bytes: %" PRIu64, n,
				 v);
	}
}

static void numbers(void)
{
	static const char text[] = "18446744073709551615x";
	const char *at = text;
	uint64_t v = 3;

	check(proctext_number(&at, text + 20, &v));
	check_u64(v, UINT64_MAX);
	check_int(at - text, 20);
	at = text;
	check(proctext_number(&at, text + 3, &v));
	check_u64(v, 184);
	at = text + 20;
	check(!proctext_number(&at, text + 21, &v));
	check(at == text + 20);
	check_u64(v, 184);
	check(!proctext_number(&at, text + 20, &v));
}

/* A small generator of its own: the same bytes everywhere. */
static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

static const enum metric_source key_sources[] = {SOURCE_STATUS, SOURCE_IO,
						 SOURCE_TASKS};

static void parse_all(const char *text, size_t n)
{
	uint64_t v[METRIC_N_STORED], limit;
	struct proc_stat st;

	if (parse_stat(text, n, &st) == 0) {
		check(st.comm.n <= n);
		check(st.comm.s >= text && st.comm.s + st.comm.n <= text + n);
	}
	for (size_t i = 0; i < ARRAY_SIZE(key_sources); i++)
		check(!(parse_keys(key_sources[i], text, n, v) &
			~metric_rows(key_sources[i])));
	parse_limit(text, n, &limit);
}

static void random_bytes(void)
{
	static const char alphabet[] = "()  \n\n::019-SZkKx\t";
	uint32_t state = 20240101;
	char text[200];

	for (unsigned i = 0; i < 20000; i++) {
		size_t n = next_random(&state) % sizeof(text);

		for (size_t k = 0; k < n; k++) {
			uint32_t x = next_random(&state);

			text[k] = i & 1 ? (char)x
					: alphabet[x % (sizeof(alphabet) - 1)];
		}
		parse_all(text, n);
	}
}

static void damaged_texts(void)
{
	static const char *const texts[] = {stat_text, status_text, io_text,
					    limits_text};
	uint32_t state = 4711;
	char text[1024];

	for (unsigned i = 0; i < 20000; i++) {
		const char *from = texts[i % ARRAY_SIZE(texts)];
		size_t n = strlen(from);

		memcpy(text, from, n);
		for (unsigned k = next_random(&state) % 8; k > 0; k--)
			text[next_random(&state) % n] =
			    (char)next_random(&state);
		parse_all(text, next_random(&state) % 4
				    ? n
				    : next_random(&state) % n);
	}
}

/* Compiles one into a directory of our own, from the sources in "locales". */
static bool make_locale(void)
{
	char dir[] = "/tmp/proctally-locale-XXXXXX", command[256];

	if (!mkdtemp(dir))
		return false;
	snprintf(command, sizeof(command),
		 "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1", dir,
		 dir);
	setenv("LOCPATH", dir, 1);
	if (system(command) < 0 || !setlocale(LC_ALL, "de_DE.UTF-8"))
		dir[0] = '\0';
	unsetenv("LOCPATH");
	snprintf(command, sizeof(command), "rm -rf %.60s", dir);
	return dir[0] && system(command) == 0;
}

static void any_locale(void)
{
	static const char *const names[] = {
	    "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "tr_TR.utf8"};
	bool is_set = false;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !is_set; i++)
		is_set = setlocale(LC_ALL, names[i]);
	if (!is_set && !make_locale()) {
		tap_skip("no locale with a decimal comma");
		return;
	}
	check_text(localeconv()->decimal_point, ",");
	stat_fields();
	stat_numbers();
	keys();
	keys_at_line_starts();
	fd_limit();
	setlocale(LC_ALL, "C");
}

int main(void)
{
	TEST("the fields of stat are found", stat_fields);
	TEST("a name in stat may hold any byte", stat_comms);
	TEST("stat cut off anywhere gives no wrong value", stat_cut_anywhere);
	TEST("numbers in stat are whole and have 64 bits", stat_numbers);
	TEST("what is no stat is refused", stat_nonsense);
	TEST("keys of status and io are found", keys);
	TEST("only wanted keys are looked for", keys_that_are_wanted);
	TEST("keys are whole and stand at line starts", keys_at_line_starts);
	TEST("status and io cut off anywhere give no wrong value",
	     keys_cut_anywhere);
	TEST("the limit of descriptors is found", fd_limit);
	TEST("limits cut off anywhere give no wrong value",
	     fd_limit_cut_anywhere);
	TEST("a number ends where the text does", numbers);
	TEST("no bytes at all make a parser look outside", random_bytes);
	TEST("damaged texts do not make a parser look outside", damaged_texts);
	TEST("a locale with a decimal comma changes nothing", any_locale);
	return tap_done();
}
