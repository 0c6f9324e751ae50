/* SPDX-License-Identifier: MIT */
/*
 * Runs scenario files through monitor_tick(): rules, ticks of a fake /proc,
 * and the values that must come out. One file is one TAP point; its first
 * line is its name. tests/scenarios/README tells the format.
 *
 * Each file is run twice: as it is, and with no descriptor that can be kept.
 * Nothing else may be different then.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base.h"
#include "fakeexits.h"
#include "inject.h"
#include "lane.h"
#include "monitor.h"
#include "tap.h"

enum {
	VALUES_MAX = 4096,
	EVENTS_MAX = 64,
	STAT_FIELDS = 52,
	SLOW_MS = 10000, /* no call of the monitor may take as long */
	PATIENCE = 100,	 /* times as long lanes are waited for, and so long */
	PATIENCE_STUCK = 5, /* where somebody never answers */
	LANES_MAX = 8,
};

struct value {
	char id[200]; /* GROUP.TYPE or GROUP.TYPE-INSTANCE */
	char text[80];
};

static struct run {
	const char *file;
	unsigned line;
	char dir[64]; /* temporary; proc/ and etc/ and rules.yaml below it */
	char *rules;
	size_t rules_n;
	struct metric_scale scale;
	struct monitor *monitor;
	struct lane *lane[LANES_MAX]; /* of the monitor */
	uint64_t mono_ns, boot_ns, real_ns;
	bool ticked;
	bool is_stuck;	   /* some pipe does not answer */
	bool once;	   /* not to be run again without kept descriptors */
	bool nothing_kept; /* this is the second run */
	int result;
	struct value value[VALUES_MAX];
	unsigned n_values;
	struct monitor_event event[EVENTS_MAX];
	unsigned n_events;
} run;

__attribute__((format(printf, 1, 2))) static void wrong(const char *fmt, ...)
{
	va_list ap;

	tap.failed = true;
	printf("# %s:%u: %s", run.file, run.line,
	       run.nothing_kept ? "(nothing kept) " : "");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* "\n", "\t", "\0", "\\", "\"", "\xHH", in place; returns the length. */
static size_t unescape(char *s)
{
	char *to = s;
	const char *from = s;

	while (*from) {
		unsigned hex;

		if (*from != '\\') {
			*to++ = *from++;
			continue;
		}
		from++;
		if (*from == 'x' && sscanf(from + 1, "%2x", &hex) == 1) {
			*to++ = (char)hex;
			from += 3;
			continue;
		}
		*to++ = *from == 'n'   ? '\n'
			: *from == 't' ? '\t'
			: *from == 'r' ? '\r'
			: *from == '0' ? '\0'
				       : *from;
		if (*from)
			from++;
	}
	*to = '\0';
	return (size_t)(to - s);
}

static void path_in_proc(char *buf, size_t size, const char *name)
{
	snprintf(buf, size, "%s/proc/%s", run.dir, name);
}

static void make_parents(const char *path)
{
	char buf[512];

	snprintf(buf, sizeof(buf), "%s", path);
	for (char *s = buf + strlen(run.dir) + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		mkdir(buf, 0755);
		*s = '/';
	}
}

/* In place, so that kept descriptors see the new text. */
static void write_file(const char *name, const char *text, size_t n)
{
	char path[512];
	int fd;

	path_in_proc(path, sizeof(path), name);
	make_parents(path);
	/* A pipe answers whoever waits for it, and nobody else. */
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC,
		  0644);
	if (fd < 0 || write(fd, text, n) != (ssize_t)n)
		wrong("cannot write %s", path);
	if (fd >= 0)
		close(fd);
}

static int remove_entry(const char *path, const struct stat *st,
			_unused_ int type, _unused_ struct FTW *ftw)
{
	/* Whoever still waits for a pipe to answer may go. */
	if (S_ISFIFO(st->st_mode)) {
		int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

		if (fd >= 0)
			close(fd);
	}
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static const struct {
	const char *key;
	unsigned field;
} stat_keys[] = {
    {"ppid", 4},     {"flags", 9},  {"minflt", 10}, {"majflt", 12},
    {"utime", 14},   {"stime", 15}, {"cutime", 16}, {"cstime", 17},
    {"threads", 20}, {"start", 22}, {"vsize", 23},  {"rss", 24},
    {"stack", 28},   {"guest", 43},
};

/* PID[/task/TID] "comm" STATE key=value ... : a stat file in short. */
static void write_stat(const char *where, char *rest)
{
	uint64_t field[STAT_FIELDS + 1] = {[20] = 1, [25] = UINT64_MAX};
	char comm[256], text[2048], name[128], state;
	char *end = rest + 1, *word;
	int n;

	while (*end && *end != '"')
		end += *end == '\\' && end[1] ? 2 : 1;
	if (!*end || !end[1] || !end[2]) {
		wrong("stat line without \"comm\" and state");
		return;
	}
	*end = '\0';
	snprintf(comm, sizeof(comm), "%s", rest + 1);
	unescape(comm);
	state = end[2];
	for (word = strtok(end + 3, " \n"); word; word = strtok(NULL, " \n")) {
		char *eq = strchr(word, '=');
		bool found = false;

		if (eq)
			*eq = '\0';
		for (size_t i = 0; eq && i < ARRAY_SIZE(stat_keys); i++) {
			if (strcmp(word, stat_keys[i].key))
				continue;
			field[stat_keys[i].field] = strtoull(eq + 1, NULL, 0);
			found = true;
		}
		if (!found)
			wrong("unknown stat key \"%s\"", word);
	}
	n = snprintf(text, sizeof(text), "%d (%s) %c", atoi(where), comm,
		     state);
	for (unsigned i = 4; i <= STAT_FIELDS; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      i == 8 ? " -1" : " %" PRIu64, field[i]);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "\n");
	snprintf(name, sizeof(name), "%s/stat", where);
	write_file(name, text, (size_t)n);
}

/* "!PATH CALL ERRNO [TIMES]" */
static void change_call(const char *line)
{
	char name[128], call[12], err[16];
	unsigned times = 0;

	if (sscanf(line, "!%127s %11s %15s %u", name, call, err, &times) < 3 ||
	    inject_errno(err) == INJECT_UNKNOWN) {
		wrong("want: !PATH CALL ERRNO [TIMES]");
		return;
	}
	inject_add(name, call, inject_errno(err), times);
}

static void make_link(const char *path, char *target)
{
	unescape(target);
	unlink(path);
	if (symlink(target, path) < 0)
		wrong("cannot link %s", path);
}

/* "lost N", or what the record of a process says. */
static void take_exit(const char *line)
{
	struct moment now = {run.mono_ns, run.boot_ns, run.real_ns};
	unsigned n;

	if (sscanf(line, "lost %u", &n) == 1)
		fakeexits_lose(n);
	else if (!fakeexits_add(line, &now))
		wrong("not understood: exit %s", line);
}

/* One line of a tick: something below the fake root changes. */
static void change(char *line)
{
	char path[512];
	char *sep = line + strcspn(line, " :");

	/* Names of devices have colons, too. */
	while (*sep == ':' && sep[1] && sep[1] != ' ')
		sep += 1 + strcspn(sep + 1, " :");
	if (*line == '-') {
		path_in_proc(path, sizeof(path), line + 2);
		remove_tree(path);
		return;
	}
	if (*line == '!') {
		change_call(line);
		return;
	}
	if (strncmp(line, "exit ", 5) == 0) {
		take_exit(line + 5);
		return;
	}
	if (*sep == ':') {
		size_t n;

		*sep = '\0';
		sep += sep[1] == ' ' ? 2 : 1;
		n = unescape(sep);
		write_file(line, sep, n);
		return;
	}
	if (*sep)
		*sep++ = '\0';
	path_in_proc(path, sizeof(path), line);
	make_parents(path);
	if (*sep == '"')
		write_stat(line, sep);
	else if (strncmp(sep, "-> ", 3) == 0)
		make_link(path, sep + 3);
	else if (strcmp(sep, "fifo") == 0 && mkfifo(path, 0644) == 0)
		run.is_stuck = true;
	else if (strcmp(sep, "dir") || mkdir(path, 0755) < 0)
		wrong("not understood: %s %s", line, sep);
}

static void take_value(_unused_ void *arg, const struct value_out *v)
{
	struct value *out;
	int n = 0;

	if (run.n_values == VALUES_MAX)
		return;
	out = &run.value[run.n_values];
	snprintf(out->id, sizeof(out->id), "%s.%s%s%s", v->group, v->type,
		 v->instance ? "-" : "", v->instance ? v->instance : "");
	for (unsigned i = 0; i < run.n_values; i++)
		if (strcmp(run.value[i].id, out->id) == 0)
			wrong("%s came twice in a tick", out->id);
	for (unsigned i = 0; i < v->n; i++) {
		const char *gap = i ? " " : "";

		if (v->derive)
			n += snprintf(out->text + n,
				      sizeof(out->text) - (size_t)n,
				      "%s%" PRIu64, gap, v->u[i]);
		else
			n += snprintf(out->text + n,
				      sizeof(out->text) - (size_t)n, "%s%.15g",
				      gap, v->d[i]);
	}
	run.n_values++;
}

/* On a busy host an answer may take longer than a daemon would wait for it. */
bool __real_lane_wait(struct lane *lane, uint64_t timeout_ns,
		      uint64_t patience_ns) __attribute__((weak));
bool __wrap_lane_wait(struct lane *lane, uint64_t timeout_ns,
		      uint64_t patience_ns);

bool __wrap_lane_wait(struct lane *lane, uint64_t timeout_ns,
		      uint64_t patience_ns)
{
	unsigned times = run.is_stuck ? PATIENCE_STUCK : PATIENCE;

	return __real_lane_wait(lane, timeout_ns * times, patience_ns * times);
}

void __real_lane_watch(struct lane *lane, uint64_t limit_ns,
		       void (*fn)(void *arg, const struct lane_job *job),
		       void *arg) __attribute__((weak));
void __wrap_lane_watch(struct lane *lane, uint64_t limit_ns,
		       void (*fn)(void *arg, const struct lane_job *job),
		       void *arg);

void __wrap_lane_watch(struct lane *lane, uint64_t limit_ns,
		       void (*fn)(void *arg, const struct lane_job *job),
		       void *arg)
{
	size_t i = 0;

	while (i < LANES_MAX - 1 && run.lane[i] && run.lane[i] != lane)
		i++;
	run.lane[i] = lane;
	__real_lane_watch(lane, limit_ns, fn, arg);
}

/* What was asked for is read before anything changes again. */
static void let_lane_finish(void)
{
	for (size_t i = 0; i < LANES_MAX && run.lane[i] && !run.is_stuck; i++)
		__real_lane_wait(run.lane[i], SLOW_MS * NSEC_PER_MSEC,
				 UINT64_MAX);
}

static uint64_t real_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void check_time(const char *what, uint64_t began_ms)
{
	uint64_t ms = real_ms() - began_ms;

	if (ms >= SLOW_MS)
		wrong("%s took %" PRIu64 " ms", what, ms);
}

static void do_tick(void)
{
	struct moment now = {run.mono_ns, run.boot_ns, run.real_ns};
	uint64_t began = real_ms();

	run.n_values = run.n_events = 0;
	memset(run.lane, 0, sizeof(run.lane)); /* some end with a reload */
	inject_forget();
	run.result = monitor_tick(run.monitor, &now, take_value, NULL);
	check_time("monitor_tick()", began);
	let_lane_finish();
	while (run.n_events < EVENTS_MAX &&
	       monitor_take_event(run.monitor, &run.event[run.n_events]))
		run.n_events++;
}

static const char *value_of(const char *id)
{
	for (unsigned i = 0; i < run.n_values; i++)
		if (strcmp(run.value[i].id, id) == 0)
			return run.value[i].text;
	return NULL;
}

static void want_value(const char *id, const char *want)
{
	const char *got = value_of(id);

	if (strcmp(want, "absent") == 0) {
		if (got)
			wrong("%s: want no value, got %s", id, got);
	} else if (!got) {
		wrong("%s: want %s, got no value", id, want);
	} else if (strcmp(got, want)) {
		wrong("%s: want %s, got %s", id, want, got);
	}
}

/* What is told is told once. */
static void want_event(const char *text, bool there)
{
	unsigned n = 0;

	for (unsigned i = 0; i < run.n_events; i++)
		n += strstr(run.event[i].text, text) != NULL;
	if (n == there)
		return;
	wrong("told %u times: %s", n, text);
	for (unsigned i = 0; i < run.n_events; i++)
		printf("#   event: %s\n", run.event[i].text);
}

/* "calls CALL PATH N" */
static void want_calls(const char *line)
{
	char call[12], path[128];
	unsigned n, got;

	if (sscanf(line, "calls %11s %127s %u", call, path, &n) != 3) {
		wrong("want: calls CALL PATH NUMBER");
		return;
	}
	got = inject_calls(path, call);
	if (got != n)
		wrong("%s of %s: want %u calls, got %u", call, path, n, got);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The groups that have members, in alphabetical order. */
static void want_groups(const char *want)
{
	static char found[VALUES_MAX][72], names[sizeof(found)];
	unsigned n = 0;

	for (unsigned i = 0; i < run.n_values; i++) {
		const char *id = run.value[i].id, *end;

		end = strstr(id, ".ps_count");
		if (end && run.value[i].text[0] != '0')
			snprintf(found[n++], sizeof(found[0]), "%.*s",
				 (int)(end - id), id);
	}
	qsort(found, n, sizeof(found[0]), compare_names);
	names[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		if (i)
			strcat(names, " ");
		strcat(names, found[i]);
	}
	if (strcmp(names, want))
		wrong("want groups \"%s\", got \"%s\"", want, names);
}

static void want(char *line)
{
	char *sep = strstr(line, " = ");

	if (strncmp(line, "event ", 6) == 0)
		want_event(line + 6, true);
	else if (strncmp(line, "no event ", 9) == 0)
		want_event(line + 9, false);
	else if (strcmp(line, "no events") == 0)
		want_event("", false);
	else if (strcmp(line, "no groups") == 0)
		want_groups("");
	else if (strncmp(line, "groups ", 7) == 0)
		want_groups(line + 7);
	else if (strncmp(line, "calls ", 6) == 0)
		want_calls(line);
	else if (strncmp(line, "result ", 7) == 0) {
		if (run.result != atoi(line + 7))
			wrong("want result %s, got %d", line + 7, run.result);
	} else if (sep) {
		*sep = '\0';
		want_value(line, sep + 3);
	} else {
		wrong("not understood: %s", line);
	}
}

static void option(char *line)
{
	char *eq = strchr(line, '=');
	long v = eq ? strtol(eq + 1, NULL, 10) : 0;

	if (eq && strncmp(line, "ticks_per_second", 16) == 0)
		run.scale.ticks_per_second = v;
	else if (eq && strncmp(line, "page_size", 9) == 0)
		run.scale.page_size = v;
	else if (strcmp(line, "once") == 0)
		run.once = true;
	else if (strcmp(line, "exit_records") == 0)
		fakeexits_on();
	else
		wrong("unknown option %s", line);
}

static void write_rules(void)
{
	char path[128], beside[136];
	FILE *f;

	/* As editors do: another inode tells it from the file before. */
	snprintf(path, sizeof(path), "%s/rules.yaml", run.dir);
	snprintf(beside, sizeof(beside), "%s.new", path);
	f = fopen(beside, "w");
	if (!f || fwrite(run.rules, 1, run.rules_n, f) != run.rules_n)
		wrong("cannot write %s", beside);
	if (f)
		fclose(f);
	if (rename(beside, path) < 0)
		wrong("cannot write %s", path);
}

static void open_monitor(void)
{
	char rules[128], proc[128], sys[128];
	struct monitor_options o = {
	    .rules_path = rules,
	    .proc_path = proc,
	    .sys_path = sys,
	    .scale = run.scale,
	};

	snprintf(rules, sizeof(rules), "%s/rules.yaml", run.dir);
	snprintf(proc, sizeof(proc), "%s/proc", run.dir);
	snprintf(sys, sizeof(sys), "%s/sys", run.dir);
	mkdir(sys, 0755);
	if (monitor_open(&o, &run.monitor) < 0)
		wrong("monitor_open failed");
}

/* "--- tick", "--- tick 20s": that long after the last one (10 s). */
static void advance(const char *head)
{
	double seconds = 10;

	sscanf(head, "--- tick %lfs", &seconds);
	run.mono_ns += (uint64_t)(seconds * 1e9);
	run.boot_ns += (uint64_t)(seconds * 1e9);
	run.real_ns += (uint64_t)(seconds * 1e9);
	run.ticked = false;
}

/* "--- clock boottime=S monotonic=S realtime=S", any of them */
static void set_clock(const char *head)
{
	static const struct {
		const char *name;
		uint64_t *ns;
	} clocks[] = {
	    {"boottime=", &run.boot_ns},
	    {"monotonic=", &run.mono_ns},
	    {"realtime=", &run.real_ns},
	};

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		const char *at = strstr(head, clocks[i].name);

		if (at)
			*clocks[i].ns =
			    (uint64_t)(atof(at + strlen(clocks[i].name)) * 1e9);
	}
}

/* "--- wait 1.2s": lanes live by the real clock. */
static void wait_really(const char *head)
{
	double seconds = 0;
	struct timespec ts;

	sscanf(head, "--- wait %lfs", &seconds);
	ts.tv_sec = (time_t)seconds;
	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	nanosleep(&ts, NULL);
}

enum part {
	PART_PROSE,
	PART_OPTIONS,
	PART_RULES,
	PART_TICK,
	PART_WANT,
};

static enum part begin_part(const char *head)
{
	if (strncmp(head, "--- rules", 9) == 0) {
		run.rules_n = 0;
		return PART_RULES;
	}
	if (strncmp(head, "--- options", 11) == 0)
		return PART_OPTIONS;
	if (strncmp(head, "--- clock", 9) == 0) {
		set_clock(head);
		return PART_PROSE;
	}
	if (strncmp(head, "--- wait", 8) == 0) {
		wait_really(head);
		return PART_PROSE;
	}
	if (strncmp(head, "--- tick", 8) == 0) {
		advance(head);
		return PART_TICK;
	}
	if (strncmp(head, "--- want", 8) == 0) {
		if (!run.monitor)
			open_monitor();
		if (run.monitor && !run.ticked)
			do_tick();
		run.ticked = true;
		return PART_WANT;
	}
	wrong("unknown part %s", head);
	return PART_PROSE;
}

static void rule_line(const char *line)
{
	size_t n = strlen(line);

	run.rules = realloc(run.rules, run.rules_n + n + 2);
	memcpy(run.rules + run.rules_n, line, n);
	run.rules[run.rules_n + n] = '\n';
	run.rules_n += n + 1;
}

static void run_lines(FILE *f)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	enum part part = PART_PROSE;

	while ((n = getline(&line, &cap, f)) >= 0) {
		run.line++;
		if (n && line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (strncmp(line, "--- ", 4) == 0) {
			if (part == PART_RULES)
				write_rules();
			part = begin_part(line);
			if (!run.monitor && part == PART_WANT)
				break;
			continue;
		}
		if (part == PART_RULES)
			rule_line(line);
		if (!*line || *line == '#')
			continue;
		if (part == PART_TICK)
			change(line);
		else if (part == PART_WANT)
			want(line);
		else if (part == PART_OPTIONS)
			option(line);
	}
	free(line);
}

static void run_once(const char *file, bool nothing_kept)
{
	FILE *f = fopen(file, "r");
	char path[128];
	uint64_t began;

	memset(&run, 0, sizeof(run));
	run.file = file;
	run.nothing_kept = nothing_kept;
	run.scale =
	    (struct metric_scale){.ticks_per_second = 100, .page_size = 4096};
	strcpy(run.dir, "/tmp/proctally-scenario-XXXXXX");
	if (!f || !mkdtemp(run.dir)) {
		wrong("cannot begin");
		return;
	}
	if (nothing_kept)
		inject_add("", "keep", EMFILE, 0);
	snprintf(path, sizeof(path), "%s/proc", run.dir);
	mkdir(path, 0755);
	/* A host that has been up for a day. */
	run.mono_ns = run.boot_ns = 86400 * NSEC_PER_SEC;
	run.real_ns = UINT64_C(1700000000) * NSEC_PER_SEC;
	run_lines(f);
	fclose(f);
	if (!run.monitor)
		wrong("nothing was wanted");
	began = real_ms();
	monitor_free(run.monitor);
	check_time("monitor_free()", began);
	free(run.rules);
	fakeexits_off();
	inject_clear();
	remove_tree(run.dir);
}

static const char *scenario;

static void run_scenario(void)
{
	run_once(scenario, false);
	if (!run.once)
		run_once(scenario, true);
}

static int is_scenario(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 4 && strcmp(e->d_name + n - 4, ".txt") == 0;
}

int main(int argc, char **argv)
{
	const char *top = getenv("srcdir");
	const char *only = argc > 1 ? argv[1] : NULL;
	char dir[256];
	struct dirent **list;
	int n;

	snprintf(dir, sizeof(dir), "%s/tests/scenarios", top ? top : ".");
	n = scandir(dir, &list, is_scenario, alphasort);
	if (n <= 0) {
		printf("Bail out! no scenarios in %s\n", dir);
		return 1;
	}
	for (int i = 0; i < n; i++) {
		char path[600], name[512] = "";
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		free(list[i]);
		if (only && !strstr(path, only))
			continue;
		f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f))
			name[strcspn(name, "\n")] = '\0';
		if (f)
			fclose(f);
		scenario = path;
		tap_run(name, run_scenario);
	}
	free(list);
	return tap_done();
}
