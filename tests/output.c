/* SPDX-License-Identifier: MIT */
/*
 * The output formats without their readers: that no value is lost, that names
 * are told apart, and what becomes of texts and numbers that do not fit.
 * tests/formats.sh has the readers.
 */
#include "format.h"
#include "tap.h"

#include "alloccount.h"
#include "selfstat.h"

#include <math.h>
#include <sys/mman.h>

enum {
	TEXT_MAX = 256 * 1024,
	SAMPLES_MAX = 512,
	GROUPS = 3,
};

static struct outbuf out;
static char text[TEXT_MAX];
static struct format_writer w;

static const struct moment first = {
    .mono_ns = 5 * NSEC_PER_SEC,
    .boot_ns = 5 * NSEC_PER_SEC,
    .real_ns = UINT64_C(1700000000123456789),
};

static struct moment later(double s)
{
	struct moment m = first;

	m.mono_ns += (uint64_t)(s * 1e9);
	m.real_ns += (uint64_t)(s * 1e9);
	return m;
}

static void open_writer(const char *format, const char *host)
{
	check_int(format_open(&w, format_find(format), host, 2.5), 0);
	outbuf_init(&out, memfd_create("output", MFD_CLOEXEC));
	check(out.fd >= 0);
}

static void close_writer(void)
{
	format_close(&w);
	close(out.fd);
}

/* What was written since it was asked for the last time. */
static const char *take_text(void)
{
	ssize_t n;

	check_int(outbuf_flush(&out), 0);
	n = pread(out.fd, text, sizeof(text) - 1, 0);
	check(n >= 0);
	text[MAX(n, 0)] = '\0';
	check_int(ftruncate(out.fd, 0), 0);
	check_int(lseek(out.fd, 0, SEEK_SET), 0);
	return text;
}

static void tell_metrics(const char *group)
{
	for (unsigned row = 0, n; row < METRIC_N; row += n) {
		struct value_out v = {
		    .group = group,
		    .type = metrics[row].type,
		    .instance = metrics[row].instance,
		    .derive = metric_is_counter(&metrics[row]),
		};

		n = metric_list_length(row);
		for (v.n = 0; v.n < n; v.n++) {
			v.ds[v.n] = metrics[row + v.n].ds;
			if (v.derive)
				v.u[v.n] = 1000000 + row;
			else
				v.d[v.n] = 1000000 + row;
		}
		format_value(&w, &v);
	}
}

static void tell_all(void)
{
	static const char *const groups[GROUPS] = {"a", "b.1", "c_1"};
	struct selfstat self;

	memset(&self, 1, sizeof(self));
	for (unsigned i = 0; i < GROUPS; i++)
		tell_metrics(groups[i]);
	selfstat_emit(&self, format_value, &w);
}

static void count_values(void *arg, const struct value_out *v)
{
	*(unsigned *)arg += v->n;
}

static unsigned n_expected(void)
{
	struct selfstat self;
	unsigned n = 0;

	memset(&self, 1, sizeof(self));
	selfstat_emit(&self, count_values, &n);
	return n + GROUPS * METRIC_N;
}

/* What tells one value from another, of each value in the text. */
static char sample[SAMPLES_MAX][256];
static unsigned n_samples;

_printf_(1, 2) static void add_sample(const char *fmt, ...)
{
	va_list ap;

	if (n_samples == SAMPLES_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(sample[n_samples++], sizeof(sample[0]), fmt, ap);
	va_end(ap);
}

static void take_putval(char *line, _unused_ char *chart)
{
	char *id = strtok(line + strlen("PUTVAL "), " ");
	char *values = strrchr(strtok(NULL, "\n"), ' ');
	unsigned n = 0;

	strtok(values, ":");
	while (strtok(NULL, ":"))
		add_sample("%s %u", id, n++);
}

static void take_influx(char *line, _unused_ char *chart)
{
	char *series = strtok(line, " ");
	char *fields = strtok(NULL, " ");

	for (char *f = strtok(fields, ","); f; f = strtok(NULL, ","))
		add_sample("%s %.*s", series, (int)strcspn(f, "="), f);
}

static void take_spaced(char *line, _unused_ char *chart)
{
	if (*line != '#')
		add_sample("%s", strtok(line, " "));
}

static void take_netdata(char *line, char *chart)
{
	char *word = strtok(line, " ");

	if (strcmp(word, "BEGIN") == 0)
		strcpy(chart, strtok(NULL, " "));
	else if (strcmp(word, "SET") == 0)
		add_sample("%s %s", chart, strtok(NULL, " "));
}

static const struct reader {
	const char *format;
	void (*take)(char *line, char *chart);
} readers[] = {
    {"putval", take_putval},	 {"influx", take_influx},
    {"prometheus", take_spaced}, {"graphite", take_spaced},
    {"netdata", take_netdata},
};

static void read_samples(const struct reader *reader, char *all)
{
	char chart[256] = "";

	n_samples = 0;
	for (char *line = all, *end; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		if (*line)
			reader->take(line, chart);
	}
}

static void nothing_is_lost(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		open_writer(readers[i].format, "db1");
		format_begin(&w, &out, &first);
		tell_all();
		check_int(format_end(&w), 0);
		take_text();
		read_samples(&readers[i], text);
		if (n_samples != n_expected())
			tap_fail(__FILE__, __LINE__, "%s: %u values, not %u",
				 readers[i].format, n_samples, n_expected());
		for (unsigned a = 0; a < n_samples; a++)
			for (unsigned b = 0; b < a; b++)
				if (strcmp(sample[a], sample[b]) == 0)
					tap_fail(__FILE__, __LINE__,
						 "%s: twice: %s",
						 readers[i].format, sample[a]);
		close_writer();
	}
}

static void table(void)
{
	size_t n = 0;

	for (; format_at(n); n++) {
		check(format_find(format_name(format_at(n))) == format_at(n));
		if (n < ARRAY_SIZE(readers))
			check(format_find(readers[n].format) != NULL);
	}
	check_u64(n, ARRAY_SIZE(readers));
	check_text(format_name(format_at(0)), "putval");
	check(!format_find("") && !format_find("put"));
	check(format_stands_alone(format_find("prometheus")));
	check(!format_stands_alone(format_find("netdata")));
}

/* InfluxDB has one kind of number for a field of a measurement. */
static struct {
	const char *type;
	bool derive;
} kinds[64];
static unsigned n_kinds;

static void note_kind(_unused_ void *arg, const struct value_out *v)
{
	for (unsigned i = 0; i < n_kinds; i++) {
		if (strcmp(kinds[i].type, v->type) != 0)
			continue;
		check_int(kinds[i].derive, v->derive);
		return;
	}
	kinds[n_kinds].type = v->type;
	kinds[n_kinds++].derive = v->derive;
}

static void one_kind(void)
{
	struct selfstat self;

	memset(&self, 1, sizeof(self));
	selfstat_emit(&self, note_kind, NULL);
	for (unsigned i = 0; i < METRIC_N; i++) {
		struct value_out v = {
		    .type = metrics[i].type,
		    .derive = metric_is_counter(&metrics[i]),
		};

		note_kind(NULL, &v);
	}
	check(n_kinds > 10);
}

/* One value list in one tick. */
static const char *written(const char *format, const char *host,
			   const struct value_out *v)
{
	open_writer(format, host);
	format_begin(&w, &out, &first);
	format_value(&w, v);
	check_int(format_end(&w), 0);
	take_text();
	close_writer();
	return text;
}

static const struct value_out cpu = {
    .group = "web.1",
    .type = "ps_cputime",
    .derive = true,
    .n = 2,
    .ds = {"user", "syst"},
    .u = {1234567, 40},
};

static const struct value_out limit = {
    .group = "web",
    .type = "percent",
    .instance = "fd_limit",
    .n = 1,
    .ds = {"value"},
    .d = {12.3456},
};

static void counters(void)
{
	check_text(written("putval", "db1", &cpu),
		   "PUTVAL \"db1/proctally-web.1/ps_cputime\" interval=2.500 "
		   "1700000000.123:1234567:40\n");
	check_text(written("influx", "db1", &cpu),
		   "proctally_ps_cputime,group=web.1,host=db1 "
		   "user=1234567i,syst=40i 1700000000123456789\n");
	check_text(written("graphite", "db1", &cpu),
		   "db1.proctally-web_1.ps_cputime.user 1234567 1700000000\n"
		   "db1.proctally-web_1.ps_cputime.syst 40 1700000000\n");
	check_text(written("prometheus", "db1", &cpu),
		   "# HELP proctally_cpu_seconds_total CPU time used.\n"
		   "# TYPE proctally_cpu_seconds_total counter\n"
		   "proctally_cpu_seconds_total"
		   "{group=\"web.1\",mode=\"user\"} 1.234567\n"
		   "proctally_cpu_seconds_total"
		   "{group=\"web.1\",mode=\"system\"} 0.000040\n\n");
	check_text(written("netdata", "db1", &cpu),
		   "CHART proctally.web.1.ps_cputime '' "
		   "'CPU time; 100% is one processor' 'percentage' 'web.1' "
		   "proctally.ps_cputime stacked 90000 3 '' proctally\n"
		   "DIMENSION user '' incremental 1 10000\n"
		   "DIMENSION syst '' incremental 1 10000\n"
		   "BEGIN proctally.web.1.ps_cputime\n"
		   "SET user = 1234567\nSET syst = 40\nEND\n");
}

static void gauges(void)
{
	check_text(written("putval", "db1", &limit),
		   "PUTVAL \"db1/proctally-web/percent-fd_limit\" "
		   "interval=2.500 1700000000.123:12.3456\n");
	check_text(written("influx", "db1", &limit),
		   "proctally_percent,group=web,host=db1,instance=fd_limit "
		   "value=12.3456 1700000000123456789\n");
	check_text(written("graphite", "db1", &limit),
		   "db1.proctally-web.percent-fd_limit 12.3456 1700000000\n");
	check(strstr(written("prometheus", "db1", &limit),
		     " gauge\nproctally_fd_limit_ratio{group=\"web\"} "
		     "0.123456\n"));
	check(strstr(written("netdata", "db1", &limit),
		     "DIMENSION fd_limit '' absolute 1 1000\n"
		     "BEGIN proctally.web.percent\nSET fd_limit = 12346\n"));
}

static bool has_all(const char *const *wanted)
{
	for (; *wanted; wanted++)
		if (!strstr(text, *wanted)) {
			tap_fail(__FILE__, __LINE__, "no \"%s\" in:\n%s",
				 *wanted, text);
			return false;
		}
	return true;
}

/* A type, an instance and data sources that no table has ever seen. */
static void without_a_row(void)
{
	static const struct value_out v = {
	    .group = "g",
	    .type = "new_Type",
	    .instance = "part-0000:01.0",
	    .derive = true,
	    .n = 2,
	    .ds = {"value", "other"},
	    .u = {7, 8},
	};
	static const struct value_out gauge = {
	    .group = "g", .type = "t", .n = 1, .ds = {"value"}, .d = {0.25}};

	written("prometheus", "h", &v);
	has_all((const char *const[]){
	    "# TYPE proctally_new_type_part_total counter\n",
	    "proctally_new_type_part_total"
	    "{group=\"g\",part=\"0000:01.0\"} 7\n",
	    "proctally_new_type_part_other_total"
	    "{group=\"g\",part=\"0000:01.0\"} 8\n",
	    NULL});
	written("netdata", "h", &v);
	has_all((const char *const[]){
	    "CHART proctally.g.new_Type '' 'new_Type' 'per second' ",
	    "DIMENSION part-0000:01_0 '' incremental 1 1\n",
	    "SET part-0000:01_0_other = 8\n", NULL});
	written("netdata", "h", &gauge);
	has_all((const char *const[]){"DIMENSION value '' absolute 1 1000\n",
				      "SET value = 250\n", NULL});
	check(strstr(written("prometheus", "h", &gauge),
		     "\nproctally_t{group=\"g\"} 0.25\n"));
}

static void instances_with_a_part(void)
{
	static const struct value_out busy = {
	    .group = "g",
	    .type = "total_time_in_ms",
	    .instance = "gpu-card0-render",
	    .derive = true,
	    .n = 1,
	    .ds = {"value"},
	    .u = {12345},
	};

	check(strstr(written("prometheus", "h", &busy),
		     "\nproctally_gpu_seconds_total"
		     "{group=\"g\",part=\"card0-render\"} 12.345000\n"));
	check(strstr(written("netdata", "h", &busy),
		     "DIMENSION gpu-card0-render '' incremental 1 10\n"));
}

static void own_values(void)
{
	struct value_out v = limit;

	v.group = SELF_GROUP;
	v.type = "count";
	v.instance = "groups";
	check(strstr(written("prometheus", "h", &v),
		     "\nproctally_self_groups 12.3456\n"));
}

static void special_numbers(void)
{
	static const double numbers[] = {NAN, -NAN, INFINITY, -INFINITY};
	struct value_out v = {
	    .group = "g", .type = "ps_count", .n = 2, .ds = {"a", "b"}};

	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		for (size_t k = 0; k < 2 * ARRAY_SIZE(numbers); k++) {
			v.d[k % 2] = numbers[k / 2];
			v.d[1 - k % 2] = 1;
			written(readers[i].format, "h", &v);
			check_int(strspn(text, "\n"), strlen(text));
		}
}

static void big_numbers(void)
{
	struct value_out v = cpu;

	v.u[0] = UINT64_MAX;
	v.u[1] = (uint64_t)INT64_MAX + 1;
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		written(readers[i].format, "h", &v);
		check(!strstr(text, "18446744073709551615"));
		check(!strstr(text, "9223372036854775808"));
		check(strstr(text, "9223372036854775807") ||
		      strstr(text, "} 9223372036854.775807\n"));
	}
	v = limit;
	v.d[0] = 1e300;
	check(strstr(written("netdata", "h", &v),
		     "SET fd_limit = 9223372036854775807\n"));
	v.d[0] = -1e300;
	check(strstr(written("netdata", "h", &v),
		     "SET fd_limit = -9223372036854775808\n"));
}

static void hostile_texts(void)
{
	struct value_out v = limit;

	v.group = "a b,c=d\"e'f\\g\nh/i";
	v.instance = "x y";
	written("putval", "h/\"\\\n1", &limit);
	check(strstr(text, "PUTVAL \"h____1/proctally-web/"));
	written("influx", "h 1,2=3\\", &v);
	has_all((const char *const[]){
	    "proctally_percent,group=a\\ b\\,c\\=d\"e'f_g_h/i,"
	    "host=h\\ 1\\,2\\=3_,instance=x\\ y value=",
	    NULL});
	written("prometheus", "h", &v);
	has_all(
	    (const char *const[]){"{group=\"a b,c=d\\\"e'f\\\\g_h/i\"}", NULL});
	written("graphite", "db.1 (x)", &v);
	has_all((const char *const[]){
	    "db_1__x_.proctally-a_b_c=d_e'f_g_h_i.percent-x_y 12.3456 ", NULL});
	written("netdata", "h", &v);
	has_all((const char *const[]){
	    "CHART proctally.a_b,c_d_e_f_g_h/i.percent '' ",
	    "' 'a_b,c_d_e_f_g_h/i' proctally.percent ",
	    "BEGIN proctally.a_b,c_d_e_f_g_h/i.percent\nSET x_y = ", NULL});
}

/* Counts how often one text is in another. */
static unsigned times(const char *needle)
{
	unsigned n = 0;

	for (const char *s = text; (s = strstr(s, needle)); s++)
		n++;
	return n;
}

static void families(void)
{
	char family[256] = "", line[512];
	unsigned n_lines = 0;

	open_writer("prometheus", "db1");
	format_begin(&w, &out, &first);
	tell_all();
	check_int(format_end(&w), 0);
	take_text();
	for (const char *s = text; sscanf(s, "%511[^\n]", line) == 1;
	     s += strcspn(s, "\n") + 1) {
		if (sscanf(line, "# HELP %255s", family) == 1) {
			snprintf(line, sizeof(line), "# HELP %s ", family);
			check_u64(times(line), 1);
			snprintf(line, sizeof(line), "# TYPE %s ", family);
			check_u64(times(line), 1);
		} else if (*line != '#') {
			n_lines++;
			check_int(strcspn(line, "{ "), strlen(family));
			check(strncmp(line, family, strlen(family)) == 0);
		}
	}
	check_u64(n_lines, n_expected());
	check_u64(times("\n\n"), 1);
	/* What is not told any more is not repeated. */
	format_begin(&w, &out, &first);
	format_value(&w, &cpu);
	check_int(format_end(&w), 0);
	take_text();
	check_u64(times("# TYPE "), 1);
	close_writer();
}

static const char *netdata_tick(double at, const struct value_out *v)
{
	struct moment now = later(at);

	format_begin(&w, &out, &now);
	if (v)
		format_value(&w, v);
	check_int(format_end(&w), 0);
	return take_text();
}

static void charts(void)
{
	struct value_out more = cpu;

	more.instance = "reaped";
	open_writer("netdata", "db1");
	netdata_tick(0, &cpu);
	check_u64(times("CHART "), 1);
	check_u64(times("BEGIN proctally.web.1.ps_cputime\n"), 1);
	netdata_tick(2.5, &cpu);
	check_u64(times("CHART ") + times("DIMENSION "), 0);
	check_u64(times("BEGIN proctally.web.1.ps_cputime 2500000\n"), 1);
	netdata_tick(5.25, &more);
	check_u64(times("CHART "), 1);
	check_u64(times("DIMENSION "), 4);
	check_u64(times("BEGIN proctally.web.1.ps_cputime 2750000\n"), 1);
	check_u64(times("SET "), 2);
	check_u64(times("SET reaped_"), 2);
	netdata_tick(7, NULL);
	check_u64(times("CHART "), 1);
	check_u64(times(" 'obsolete' "), 1);
	check_u64(times("BEGIN "), 0);
	check_text(netdata_tick(8, NULL), "");
	netdata_tick(9, &cpu);
	check_u64(times("CHART "), 1);
	check_u64(times("obsolete"), 0);
	check_u64(times("DIMENSION "), 2);
	check_u64(times("BEGIN proctally.web.1.ps_cputime\n"), 1);
	close_writer();
}

static void no_allocation(void)
{
	void *volatile p = malloc(1);

	free(p);
	if (!alloccount_calls()) {
		tap_skip("allocations are not counted in this build");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		uint64_t n = 0;

		open_writer(readers[i].format, "db1");
		for (unsigned tick = 0; tick < 4; tick++) {
			n = alloccount_calls();
			format_begin(&w, &out, &first);
			tell_all();
			check_int(format_end(&w), 0);
			n = alloccount_calls() - n;
		}
		if (n)
			tap_fail(__FILE__, __LINE__, "%s: %" PRIu64,
				 readers[i].format, n);
		close_writer();
	}
}

int main(void)
{
	TEST("formats are found by their names", table);
	TEST("every value comes out in every format, by a name of its own",
	     nothing_is_lost);
	TEST("a type is of counters or of gauges, never both", one_kind);
	TEST("counters are written whole", counters);
	TEST("gauges are written with their fractions", gauges);
	TEST("a value that no table knows comes out", without_a_row);
	TEST("the part of an instance is a label", instances_with_a_part);
	TEST("what is proctally's own has no group in Prometheus", own_values);
	TEST("what is no number is not written", special_numbers);
	TEST("numbers that are too big stay at the end of the range",
	     big_numbers);
	TEST("texts cannot break out of their place", hostile_texts);
	TEST("Prometheus families stand together", families);
	TEST("Netdata charts are defined once, until they are gone", charts);
	TEST("a steady tick allocates nothing", no_allocation);
	return tap_done();
}
