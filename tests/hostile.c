/* SPDX-License-Identifier: MIT */
/*
 * Each call that a tick makes fails in turn, with each errno that it may fail
 * with, once and then all of its kind (faults.h). In the tick in which it
 * fails every value is absent, or what it was, or what it should be; no
 * counter steps back or counts more than there was. The tick after it says
 * again what is so, and nothing is told twice or left open.
 *
 * The processes are made here, in a namespace of their own with its own /proc,
 * so that each tick makes the same calls and what is so is known.
 */
#include <fcntl.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base.h"
#include "clocks.h"
#include "faults.h"
#include "monitor.h"
#include "ownpids.h"
#include "tap.h"

enum {
	VALUES_MAX = 1024,
	N_IDLE = 3,
	TICK_S = 10, /* as the monitor is told; no time passes */
	FINDINGS_MAX = 40,
	LANES_US = 300,	    /* are given to what is read aside */
	SETTLE_MAX = 12,    /* ticks until all is known again */
	BYTES = 4096,	    /* that a worker writes in a turn */
	LOOK_AGAIN_S = 600, /* at the latest, see proctab-gate.c */
};

struct value {
	char id[120];
	bool derive;
	uint64_t u;
	double d;
};

struct values {
	struct value v[VALUES_MAX];
	unsigned n;
};

/* What a failure says of a process. */
enum truth {
	FAULT_IS_OURS,	 /* nothing: it is to be known in the next tick */
	FAULT_IS_DENIAL, /* it may not be read: it is asked again once it runs
			  */
	FAULT_IS_A_LIE,	 /* it has ended: until the next whole listing */
};

static struct world {
	char dir[64], rules[96];
	pid_t idle[N_IDLE], worker, born;
	int to_worker, from_worker;
	struct monitor *monitor;
	struct moment now;
	struct monitor_event event[64];
	unsigned n_events, n_findings;
	struct values before, failed, after;
	struct values calm, home; /* as after and before are if nothing fails */
	char fault[64];
	int n_open;	 /* descriptors, if nothing fails */
	unsigned stride; /* through the errnos for each call */
	enum truth truth;
} w;

/* --- Processes --- */

static bool begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static void be_named(const char *name)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	/* Those of the test come and go. */
	if (begins(name, "f-born"))
		close_range(3, ~0u, 0);
}

/* Does a turn of work for each byte, and answers: then it is at rest. */
static void be_worker(int in, int out)
{
	static char bytes[BYTES];
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char c;

	while (read(in, &c, 1) == 1) {
		volatile char *p = mmap(NULL, 8 * BYTES, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (unsigned i = 0; i < 8; i++)
			p[i * BYTES] = 1;
		munmap((void *)p, 8 * BYTES);
		if (c == 'a' || c == 'b')
			prctl(PR_SET_NAME, c == 'a' ? "f-work" : "f-other");
		if (write(null, bytes, sizeof(bytes)) < 0 ||
		    write(out, &c, 1) != 1)
			break;
	}
	_exit(0);
}

static pid_t make(const char *name)
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		if (dup2(ready[1], 1) == 1)
			be_named(name);
		if (write(1, "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	if (read(ready[0], &c, 1) != 1)
		pid = -1;
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end(pid_t *pid)
{
	if (*pid <= 0)
		return;
	kill(*pid, SIGKILL);
	waitpid(*pid, NULL, 0);
	*pid = 0;
}

static void make_worker(void)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		return;
	w.worker = fork();
	if (w.worker == 0) {
		be_named("f-work");
		close(to[1]);
		be_worker(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	w.to_worker = to[1];
	w.from_worker = from[0];
}

/* What it is at rest does not change any more. */
static void await_rest(pid_t pid)
{
	char path[64], text[256], *state = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (unsigned i = 0; i < 100000 && (!state || state[2] != 'S'); i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);

		text[n < 0 ? 0 : n] = '\0';
		close(fd);
		state = strrchr(text, ')');
	}
}

static void turn(char c)
{
	if (write(w.to_worker, &c, 1) == 1 && read(w.from_worker, &c, 1) == 1)
		await_rest(w.worker);
}

/* --- Ticks --- */

static void take_value(void *arg, const struct value_out *v)
{
	struct values *to = arg;

	for (unsigned i = 0; i < v->n && to->n < VALUES_MAX; i++) {
		struct value *at = &to->v[to->n++];

		snprintf(at->id, sizeof(at->id), "%s.%s%s%s.%s", v->group,
			 v->type, v->instance ? "-" : "",
			 v->instance ? v->instance : "", v->ds[i]);
		at->derive = v->derive;
		at->u = v->derive ? v->u[i] : 0;
		at->d = v->derive ? 0 : v->d[i];
	}
}

static const struct value *find(const struct values *in, const char *id)
{
	for (unsigned i = 0; i < in->n; i++)
		if (strcmp(in->v[i].id, id) == 0)
			return &in->v[i];
	return NULL;
}

static void finding(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void finding(const char *fmt, ...)
{
	va_list ap;

	tap.failed = true;
	if (w.n_findings++ >= FINDINGS_MAX)
		return;
	printf("# %s: ", w.fault);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static int tick(struct values *to)
{
	int r;

	to->n = 0;
	w.now.mono_ns += TICK_S * NSEC_PER_SEC;
	w.now.boot_ns += TICK_S * NSEC_PER_SEC;
	w.now.real_ns += TICK_S * NSEC_PER_SEC;
	r = monitor_tick(w.monitor, &w.now, take_value, to);
	while (w.n_events < ARRAY_SIZE(w.event) &&
	       monitor_take_event(w.monitor, &w.event[w.n_events]))
		w.n_events++;
	usleep(LANES_US);
	return r;
}

/* --- What has to hold --- */

/* Depends on when it was looked at, or on other processes. */
static bool is_vague(const char *id)
{
	return strstr(id, ".uptime-") || strstr(id, "pss") ||
	       strstr(id, "-uss") || begins(id, "born.ps_rss") ||
	       begins(id, "born.ps_vm") || begins(id, "born.memory") ||
	       begins(id, "_self.") || strstr(id, ".ps_cputime") ||
	       begins(id, "me.") || strstr(id, ".contextswitch");
}

/* Resident memory is counted by each processor, and added up now and then. */
static bool is_same(const struct value *a, const struct value *b)
{
	double most, least;

	if (!a || !b)
		return false;
	most = MAX(a->d, b->d);
	least = MIN(a->d, b->d);
	if (strstr(a->id, ".ps_rss") || strstr(a->id, ".memory"))
		least += most / 8;
	return a->u == b->u && most <= least;
}

static enum truth truth_of(enum fault_call call, int err)
{
	bool denied = err == EACCES || err == EPERM || err == FAULT_SHORT;
	bool gone = err == ENOENT || err == ESRCH || err == FAULT_EMPTY;

	switch (call) {
	case FAULT_OPEN:
	case FAULT_READ:
	case FAULT_PREAD:
	case FAULT_STAT:
	case FAULT_STATX:
	case FAULT_READLINK:
		return denied ? FAULT_IS_DENIAL
		       : gone ? FAULT_IS_A_LIE
			      : FAULT_IS_OURS;
	case FAULT_GETDENTS:
	case FAULT_CLOCK:
		return FAULT_IS_A_LIE;
	default:
		return FAULT_IS_OURS;
	}
}

/* Absent, as before, or as it will be; a counter between these. */
static void check_failed(const struct value *v)
{
	const struct value *was = find(&w.before, v->id);
	const struct value *will = find(&w.after, v->id);

	if (v->derive) {
		if (was && v->u < was->u)
			finding("%s steps back from %" PRIu64 " to %" PRIu64,
				v->id, was->u, v->u);
		if (will && v->u > will->u)
			finding("%s steps back from %" PRIu64 " to %" PRIu64
				" in the tick after",
				v->id, v->u, will->u);
		return;
	}
	if (is_vague(v->id)) {
		if (was && v->d == 0 && was->d != 0 &&
		    !strstr(v->id, "pss_read") && !begins(v->id, "_self.") &&
		    !begins(v->id, "me."))
			finding("%s is 0", v->id);
		return;
	}
	/* Those that may not be read are not in the sum. */
	if (w.truth == FAULT_IS_OURS && !is_same(v, was) && !is_same(v, will))
		finding("%s is %g: was %g, will be %g", v->id, v->d,
			was ? was->d : -1, will ? will->d : -1);
}

/* How much each counter grows in a step in which nothing fails. */
static uint64_t growth_of(const char *id)
{
	return strcmp(id, "work.ps_pagefaults.minflt") == 0 ? 8 : 0;
}

static void check_after(const struct value *calm)
{
	const struct value *was = find(&w.before, calm->id);
	const struct value *v = find(&w.after, calm->id);

	if (begins(calm->id, "_self.") || begins(calm->id, "me."))
		return;
	if (!v) {
		if (w.truth == FAULT_IS_OURS && !is_vague(calm->id))
			finding("%s is not there in the tick after", calm->id);
		return;
	}
	if (!calm->derive) {
		if (w.truth == FAULT_IS_OURS && !is_vague(v->id) &&
		    !is_same(v, calm))
			finding("%s is %g in the tick after, not %g", v->id,
				v->d, calm->d);
		return;
	}
	if (was && v->u < was->u + growth_of(v->id) &&
	    w.truth != FAULT_IS_A_LIE)
		finding("%s has lost %" PRIu64, v->id,
			was->u + growth_of(v->id) - v->u);
}

static void check_told(void)
{
	for (unsigned i = 0; i < w.n_events && w.truth == FAULT_IS_OURS; i++)
		for (unsigned k = i + 1; k < w.n_events; k++)
			if (strcmp(w.event[i].text, w.event[k].text) == 0)
				finding("told twice: %s", w.event[i].text);
	w.n_events = 0;
}

static int n_entries(const char *path)
{
	char buf[4096];
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	ssize_t got;

	while ((got = getdents64(fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < got;
		     at += ((struct dirent64 *)(buf + at))->d_reclen)
			n++;
	close(fd);
	return n;
}

/* Descriptors of ours but those that are kept for processes. */
static int n_open(const struct values *v)
{
	const struct value *kept = find(v, "_self.file_handles-kept.value");

	return n_entries("/proc/self/fd") - (int)(kept ? kept->d : 0);
}

/* On a host that is busy a call may take so long that it is given up. */
static bool has_waited(const struct values *v)
{
	const struct value *stalled = find(v, "_self.count-stalled.value");

	return stalled && stalled->d > 0;
}

static void check_values(void)
{
	for (unsigned i = 0; i < w.failed.n; i++)
		check_failed(&w.failed.v[i]);
	for (unsigned i = 0; i < w.calm.n; i++)
		check_after(&w.calm.v[i]);
	check_told();
}

/* --- Situations --- */

struct situation {
	const char *name;
	void (*begin)(void);
	void (*end)(void);
	unsigned stride; /* through the errnos, unless HOSTILE_ALL is set */
};

static unsigned stride_of(unsigned stride)
{
	return getenv("HOSTILE_ALL") ? 1 : stride;
}

static void work(void)
{
	turn('w');
}

static void calm_down(void)
{
}

static void bear(void)
{
	turn('w');
	w.born = make("f-born");
	await_rest(w.born);
}

static void bury(void)
{
	turn('w');
	end(&w.born);
}

static void rename_worker(void)
{
	turn('b');
}

static void name_worker_back(void)
{
	turn('a');
}

static void touch_rules(void)
{
	struct timespec now[2] = {{.tv_nsec = UTIME_NOW},
				  {.tv_nsec = UTIME_NOW}};

	turn('w');
	utimensat(AT_FDCWD, w.rules, now, 0);
}

static const char rules[] =
    "version: 1\n"
    "defaults:\n"
    "  recheck: 0s\n"
    "  collect: {reaped: yes, rss_split: yes, swap: yes, io: yes, fds: yes,\n"
    "            fd_limit: yes, ctx: yes, uptime: yes, starts: yes,\n"
    "            pss: {every: 10s}}\n"
    "rules:\n"
    "- {name: nobody, user: no-such-user-here}\n"
    "- {name: exe, exe_path: 'glob:/no/such/*'}\n"
    "- {name: unit, unit: 'glob:no-such-*.service'}\n"
    "- {name: pidfile, pidfile: /no/such/pidfile}\n"
    "- {name: cmdline, cmdline: 'no such command line'}\n"
    "- {name: idle, comm: f-idle, per_process: {by: slot}}\n"
    "- {name: work, comm: f-work}\n"
    "- {name: other-work, comm: f-other}\n"
    "- {name: born, comm: f-born}\n"
    "- {name: me, any: true}\n";

static int open_monitor(void)
{
	const struct monitor_options o = {.rules_path = w.rules};

	w.now = clocks_now();
	return monitor_open(&o, &w.monitor);
}

static bool open_world(void)
{
	FILE *f;

	strcpy(w.dir, "/tmp/proctally-hostile.XXXXXX");
	if (!mkdtemp(w.dir))
		return false;
	snprintf(w.rules, sizeof(w.rules), "%s/rules.yaml", w.dir);
	f = fopen(w.rules, "w");
	if (!f)
		return false;
	fputs(rules, f);
	fclose(f);
	for (unsigned i = 0; i < N_IDLE; i++)
		w.idle[i] = make("f-idle");
	make_worker();
	return open_monitor() == 0;
}

static void close_world(void)
{
	monitor_free(w.monitor);
	w.monitor = NULL;
	for (unsigned i = 0; i < N_IDLE; i++)
		end(&w.idle[i]);
	end(&w.worker);
	close(w.to_worker);
	close(w.from_worker);
	unlink(w.rules);
	rmdir(w.dir);
}

/* True if all that is there when nothing fails is there. */
static bool is_whole(const struct values *v, const struct values *like)
{
	for (unsigned i = 0; i < like->n; i++)
		if (!find(v, like->v[i].id) && !is_vague(like->v[i].id))
			return false;
	return true;
}

/* Some descriptor may be open for a moment, for what is read aside. */
static void check_settled(void)
{
	int more;

	for (unsigned i = 0;
	     (more = n_open(&w.before) - w.n_open) > 0 && i < 100; i++)
		usleep(1000);
	if (more > 0)
		finding("%d descriptors more are open", more);
	for (unsigned i = 0; i < w.home.n; i++)
		if (!find(&w.before, w.home.v[i].id) &&
		    !is_vague(w.home.v[i].id))
			finding("%s does not come back", w.home.v[i].id);
}

/* Who was taken for gone or may not be read is asked again in a while. */
static void settle(void)
{
	for (unsigned i = 0; i < SETTLE_MAX; i++) {
		if (w.truth != FAULT_IS_OURS)
			turn('w');
		if (i == 2)
			w.now.mono_ns += LOOK_AGAIN_S * NSEC_PER_SEC;
		tick(&w.before);
		if (is_whole(&w.before, &w.home))
			break;
	}
}

/* One step: returns true if something failed in it. */
static bool step(const struct situation *s, enum fault_call call, unsigned nth,
		 int err)
{
	unsigned hits;
	int r;

	w.n_events = 0;
	w.truth = truth_of(call, err);
	s->begin();
	fault_arm(call, nth, err);
	tick(&w.failed);
	hits = fault_disarm();
	r = tick(&w.after);
	if (r < 0)
		finding("the tick after returns %d", r);
	if (has_waited(&w.failed) || has_waited(&w.after))
		w.truth = FAULT_IS_A_LIE;
	check_values();
	s->end();
	settle();
	check_settled();
	return hits > 0;
}

static void say_fault(const struct situation *s, enum fault_call call,
		      unsigned nth, int err)
{
	int n = snprintf(w.fault, sizeof(w.fault), "%s, %s %s ", s->name,
			 fault_err_name(err), fault_name(call));

	snprintf(w.fault + n, sizeof(w.fault) - (size_t)n, nth ? "%u" : "all",
		 nth);
}

/* All of a kind, and then one after the other. */
static unsigned each_call(const struct situation *s, enum fault_call call,
			  unsigned n_calls)
{
	unsigned n_hits = 0;
	int err;

	for (unsigned nth = 0; nth <= n_calls; nth++)
		for (unsigned i = 0; (err = fault_err(call, i)); i++) {
			if (nth && (nth + i) % w.stride)
				continue;
			say_fault(s, call, nth, err);
			n_hits += step(s, call, nth, err);
		}
	return n_hits;
}

static void each_fault(const struct situation *s)
{
	unsigned n_hits = 0, n_calls[FAULT_N];

	snprintf(w.fault, sizeof(w.fault), "%s, nothing fails", s->name);
	for (unsigned i = 0; i < 8; i++)
		tick(&w.before);
	w.n_open = n_open(&w.before);
	for (unsigned i = 0; i < 3; i++) {
		w.calm.n = w.home.n = 0;
		step(s, FAULT_N, 0, 0);
		w.calm = w.after;
		w.home = w.before;
	}
	step(s, FAULT_N, 0, 0);
	for (unsigned call = 0; call < FAULT_N; call++)
		n_calls[call] = fault_calls(call);
	for (unsigned call = 0; call < FAULT_N; call++)
		n_hits += each_call(s, call, n_calls[call]);
	printf("# %s: %u failures\n", s->name, n_hits);
	check(n_hits > 50);
}

static void in_situation(const struct situation *s)
{
	w = (struct world){.stride = stride_of(s->stride)};
	if (open_world())
		each_fault(s);
	else
		tap_fail(__FILE__, __LINE__, "%s", strerror(errno));
	close_world();
}

static void steady(void)
{
	in_situation(&(struct situation){"work", work, calm_down, 4});
}

static void births(void)
{
	in_situation(&(struct situation){"a birth", bear, bury, 5});
}

static void deaths(void)
{
	in_situation(&(struct situation){"a death", bury, bear, 5});
}

static void names(void)
{
	in_situation(&(struct situation){"a new name", rename_worker,
					 name_worker_back, 2});
}

static void reloads(void)
{
	in_situation(
	    &(struct situation){"new rules", touch_rules, calm_down, 9});
}

/* It may be readable again without having changed, as by a new policy. */
static void unreadable_rules(void)
{
	const char *id = "_self.gauge-rules_ok.value";
	unsigned n_told = 0;

	w = (struct world){.stride = 1};
	if (!open_world()) {
		tap_fail(__FILE__, __LINE__, "%s", strerror(errno));
		close_world();
		return;
	}
	tick(&w.before);
	check(find(&w.before, id) && find(&w.before, id)->d == 1);
	touch_rules();
	w.n_events = 0;
	for (unsigned i = 0; i < 4; i++) {
		fault_arm(FAULT_OPEN, 0, i % 2 ? EACCES : ENOENT);
		tick(&w.failed);
		fault_disarm();
		check(find(&w.failed, id) && find(&w.failed, id)->d == 0);
	}
	for (unsigned i = 0; i < w.n_events; i++)
		n_told += strstr(w.event[i].text, "not used") != NULL;
	check_u64(n_told, 1);
	tick(&w.after);
	check(find(&w.after, id) && find(&w.after, id)->d == 1);
	close_world();
}

/* --- The first tick --- */

static void start_once(enum fault_call call, unsigned nth, int err, bool *hit)
{
	int r;

	w.truth = truth_of(call, err);
	fault_arm(call, nth, err);
	r = open_monitor();
	if (r == 0)
		tick(&w.failed);
	*hit = fault_disarm() > 0;
	if (r < 0)
		return;
	tick(&w.after);
	tick(&w.after);
	for (unsigned i = 0; i < w.calm.n; i++) {
		const struct value *calm = &w.calm.v[i];

		/* Without memory it goes without a series. */
		if (begins(calm->id, "idle.") && calm->id[5] <= '9')
			continue;
		if (w.truth == FAULT_IS_OURS && !find(&w.after, calm->id) &&
		    !begins(calm->id, "_self.") && !begins(calm->id, "me.") &&
		    !is_vague(calm->id))
			finding("%s is not there two ticks later", calm->id);
	}
	check_told();
	monitor_free(w.monitor);
	w.monitor = NULL;
}

static void starts(void)
{
	static const struct situation s = {"the start", NULL, NULL, 9};
	unsigned n_hits = 0, n_calls[FAULT_N];
	int n, err;
	bool hit;

	w = (struct world){.stride = stride_of(s.stride)};
	if (!open_world()) {
		tap_fail(__FILE__, __LINE__, "%s", strerror(errno));
		close_world();
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		tick(&w.calm);
	monitor_free(w.monitor);
	w.monitor = NULL;
	n = n_entries("/proc/self/fd");
	w.n_events = 0;
	start_once(FAULT_N, 0, 0, &hit);
	for (unsigned call = 0; call < FAULT_N; call++)
		n_calls[call] = fault_calls(call);
	for (unsigned call = 0; call < FAULT_N; call++)
		for (unsigned nth = 0; nth <= n_calls[call]; nth++)
			for (unsigned i = 0; (err = fault_err(call, i)); i++) {
				if (nth && (nth + i) % w.stride)
					continue;
				w.n_events = 0;
				say_fault(&s, call, nth, err);
				start_once(call, nth, err, &hit);
				n_hits += hit;
			}
	check_int(n_entries("/proc/self/fd"), n);
	printf("# the start: %u failures\n", n_hits);
	check(n_hits > 50);
	close_world();
}

static int all(void)
{
	TEST("whatever fails while processes work, no value is wrong", steady);
	TEST("nor while one is born", births);
	TEST("nor while one ends", deaths);
	TEST("nor while one takes a new name", names);
	TEST("nor while rules are read again", reloads);
	TEST("a rule file that could not be read is tried again",
	     unreadable_rules);
	TEST("whatever fails at the start, it is made up for", starts);
	return tap_done();
}

int main(void)
{
	int r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	r = in_own_pids(all);
	if (r == -EPERM)
		printf("1..0 # SKIP not root, or no namespace to be had\n");
	else if (r < 0)
		printf("Bail out! ended by a signal\n");
	return r > 0;
}
