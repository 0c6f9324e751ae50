/* SPDX-License-Identifier: MIT */
/*
 * A monitor beside processes that make whoever reads their command line or
 * their memory map hang; tests/stuckfs.c makes them, and lets go of them
 * whatever happens to us.
 */
#include "clocks.h"
#include "monitor.h"
#include "ownpids.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	STUCK_SECONDS = 30, /* the longest that anything may hang */
	TICK_MAX_MS = 1000, /* 150 on a machine that has nothing else to do */
	EXIT_NO_FUSE = 77,
	STUCK_MAX = 8,
	GROWTH = 16 << 20, /* of a grower, in bytes */
	EVENTS_MAX = 64,
};

static char self[PATH_MAX], stuckfs[PATH_MAX + 16];

static void pause_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000,
			      .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

static void die_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

/* --- What hangs --- */

struct stuck {
	pid_t server; /* of stuckfs */
	int in, out;
	pid_t pid[STUCK_MAX], child[STUCK_MAX];
};

/* Says how many of them there are; 0 if there is no FUSE here. */
static unsigned read_pids(struct stuck *s)
{
	char text[512] = "";
	size_t n = 0;
	unsigned n_stuck = 0;

	while (n < sizeof(text) - 1 && !strstr(text, "ready")) {
		ssize_t got = read(s->out, text + n, sizeof(text) - 1 - n);

		if (got <= 0)
			return 0;
		n += (size_t)got;
		text[n] = '\0';
	}
	for (char *line = text; line && n_stuck < STUCK_MAX;) {
		int pid, child = 0;

		if (sscanf(line, "%d%*[ ]%d", &pid, &child) < 1)
			break;
		s->pid[n_stuck] = pid;
		s->child[n_stuck++] = child;
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return n_stuck;
}

/* False if it cannot be here: then the test is over. */
static bool stuck_new(struct stuck *s, unsigned n, const char *how)
{
	const char *ci = getenv("CI");
	char number[12], seconds[12];
	pid_t parent = getpid();
	int in[2], out[2];

	memset(s, 0, sizeof(*s));
	snprintf(number, sizeof(number), "%u", n);
	snprintf(seconds, sizeof(seconds), "%d", STUCK_SECONDS);
	check_int(pipe2(in, O_CLOEXEC), 0);
	check_int(pipe2(out, O_CLOEXEC), 0);
	s->server = fork();
	if (s->server == 0) {
		die_with_parent(parent);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execl(stuckfs, "stuckfs", number, seconds, how, NULL);
		_exit(EXIT_NO_FUSE);
	}
	close(in[0]);
	close(out[1]);
	s->in = in[1];
	s->out = out[0];
	if (read_pids(s) == n)
		return true;
	if (ci && strcmp(ci, "true") == 0)
		tap_fail(__FILE__, __LINE__, "nothing hangs, and CI=true");
	else
		tap_skip("no FUSE, or not root, or not built with fuse3");
	close(s->in);
	close(s->out);
	waitpid(s->server, NULL, 0);
	return false;
}

static void stuck_release(const struct stuck *s)
{
	check_int(write(s->in, "x", 1), 1);
}

static void stuck_end(const struct stuck *s)
{
	close(s->in);
	close(s->out);
	check_int(waitpid(s->server, NULL, 0), s->server);
}

/* --- Others --- */

/* This program again; its command line says whose bystander it is. */
static pid_t bystander_new(void)
{
	pid_t parent = getpid(), pid = fork();
	char mark[32];

	if (pid == 0) {
		die_with_parent(parent);
		snprintf(mark, sizeof(mark), "--bystander-%d", (int)parent);
		execl(self, "bystander", mark, NULL);
		_exit(1);
	}
	pause_ms(50); /* for exec, which gives it that command line */
	return pid;
}

static void grow(_unused_ int sig)
{
	char *p = mmap(NULL, GROWTH, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	memset(p, 1, GROWTH);
}

/* One that has memory of its own, and for each signal as much again. */
static pid_t grower_new(void)
{
	pid_t parent = getpid(), pid = fork();
	char name[16];

	if (pid == 0) {
		die_with_parent(parent);
		snprintf(name, sizeof(name), "grow.%d", (int)parent);
		prctl(PR_SET_NAME, name);
		signal(SIGUSR1, grow);
		grow(0);
		for (;;)
			pause();
	}
	pause_ms(100);
	return pid;
}

static void process_end(pid_t pid)
{
	kill(pid, SIGKILL);
	check_int(waitpid(pid, NULL, 0), pid);
}

/* --- The monitor --- */

struct watch {
	struct monitor *m;
	int rules_fd;
	double rss, stuck_members, others, stalled; /* -1: not told */
	double stuck_pss, stuck_read;
	double others_rss, others_pss, others_read, oldest_s;
	uint64_t cpu_us, stalls;
	uint64_t longest_ms; /* tick */
	char event[EVENTS_MAX][480];
	size_t n_events;
};

static void take(double *to, const struct value_out *v, const char *type,
		 const char *instance)
{
	if (strcmp(v->type, type) == 0 &&
	    strcmp(v->instance ? v->instance : "", instance) == 0)
		*to = v->d[0];
}

static void on_value(void *arg, const struct value_out *v)
{
	struct watch *w = arg;

	if (strcmp(v->group, "stuck") == 0) {
		take(&w->rss, v, "ps_rss", "");
		take(&w->stuck_members, v, "ps_count", "");
		take(&w->stuck_pss, v, "memory", "pss");
		take(&w->stuck_read, v, "count", "pss_read");
		if (strcmp(v->type, "ps_cputime") == 0)
			w->cpu_us = v->u[0] + v->u[1];
	} else if (strcmp(v->group, "bystanders") == 0) {
		take(&w->others, v, "ps_count", "");
		take(&w->others_rss, v, "ps_rss", "");
		take(&w->others_pss, v, "memory", "pss");
		take(&w->others_read, v, "count", "pss_read");
	} else if (strcmp(v->group, "_self") == 0) {
		take(&w->stalled, v, "count", "stalled");
		take(&w->oldest_s, v, "duration", "pss_oldest");
		if (v->instance && strcmp(v->instance, "stalls") == 0)
			w->stalls = v->u[0];
	}
}

static void watch_sys(struct watch *w, const char *rules, const char *sys)
{
	char path[32];
	struct monitor_options o = {.rules_path = path, .sys_path = sys};

	memset(w, 0, sizeof(*w));
	w->rules_fd = memfd_create("rules", MFD_CLOEXEC);
	check_int(write(w->rules_fd, rules, strlen(rules)),
		  (ssize_t)strlen(rules));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", w->rules_fd);
	check_int(monitor_open(&o, &w->m), 0);
}

static void watch_rules(struct watch *w, const char *rules)
{
	watch_sys(w, rules, NULL);
}

static void watch_open(struct watch *w, const struct stuck *s)
{
	char rules[512];

	snprintf(rules, sizeof(rules),
		 "other: {action: drop}\n"
		 "rules:\n"
		 "- {name: bystanders, cmdline: 'bystander --bystander-%d$'}\n"
		 "- {name: stuck, comm: ['glob:stuck[0-9].%d',\n"
		 "                       'glob:child[0-9].%d']}\n",
		 (int)getpid(), (int)s->server, (int)s->server);
	watch_rules(w, rules);
}

/* No rule asks for a command line here; PSS is read as often as it can be. */
static void watch_pss(struct watch *w, const struct stuck *s)
{
	char rules[512];

	snprintf(rules, sizeof(rules),
		 "defaults: {collect: {pss: {every: 1s, max_age: 1s}}}\n"
		 "other: {action: drop}\n"
		 "rules:\n"
		 "- {name: bystanders, comm: grow.%d}\n"
		 "- {name: stuck, comm: 'glob:stuck[0-9].%d'}\n",
		 (int)getpid(), (int)s->server);
	watch_rules(w, rules);
}

static void tick(struct watch *w)
{
	struct moment now = clocks_now();
	struct monitor_event e;
	uint64_t took;

	w->rss = w->stuck_members = w->others = w->stalled = -1;
	w->stuck_pss = w->stuck_read = w->oldest_s = -1;
	w->others_rss = w->others_pss = w->others_read = -1;
	check_int(monitor_tick(w->m, &now, on_value, w), 0);
	took = (clocks_now().mono_ns - now.mono_ns) / NSEC_PER_MSEC;
	w->longest_ms = MAX(w->longest_ms, took);
	while (monitor_take_event(w->m, &e))
		if (e.level != MONITOR_INFO && w->n_events < EVENTS_MAX)
			strcpy(w->event[w->n_events++], e.text);
}

static void ticks(struct watch *w, unsigned n)
{
	while (n--) {
		tick(w);
		pause_ms(200);
	}
}

/* Returns how long it took. */
static uint64_t watch_close(struct watch *w)
{
	uint64_t start = clocks_now().mono_ns;

	monitor_free(w->m);
	close(w->rules_fd);
	return (clocks_now().mono_ns - start) / NSEC_PER_MSEC;
}

/* Messages that name the process. */
static unsigned n_told(const struct watch *w, pid_t pid)
{
	char text[32];
	unsigned n = 0;

	snprintf(text, sizeof(text), "process %d ", (int)pid);
	for (size_t i = 0; i < w->n_events; i++)
		n += strstr(w->event[i], text) != NULL;
	return n;
}

/* Threads of ours that read command lines. */
static unsigned count_workers(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	unsigned n = 0;

	while (dir && (e = readdir(dir))) {
		char path[300], comm[32] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (read(fd, comm, sizeof(comm) - 1) > 0)
			n += strcmp(comm, "proctally-mm\n") == 0;
		close(fd);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* They leave as soon as they can, but for one that waits for work. */
static bool workers_fall_to(unsigned n)
{
	for (unsigned i = 0; i < 500 && count_workers() > n; i++)
		pause_ms(10);
	return count_workers() <= n;
}

/* In a process of its own, which may hang. True if it ended by itself. */
static bool ends_within(int (*fn)(void *arg), void *arg, int ms)
{
	pid_t parent = getpid(), pid;
	struct pollfd pfd = {.events = POLLIN};
	bool ended;
	int fds[2], status;

	check_int(pipe2(fds, O_CLOEXEC), 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		die_with_parent(parent);
		status = fn(arg);
		fflush(stdout);
		_exit(status);
	}
	close(fds[1]);
	pfd.fd = fds[0];
	ended = poll(&pfd, 1, ms) == 1;
	close(fds[0]);
	kill(pid, SIGKILL); /* such waiting is killable */
	check_int(waitpid(pid, &status, 0), pid);
	check(!ended || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
	return ended;
}

static int read_cmdline(void *arg)
{
	char path[32], byte;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", *(int *)arg);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || read(fd, &byte, 1) < 0;
}

static void one(void)
{
	struct stuck s;
	struct watch w;
	pid_t first, second;
	uint64_t cpu, closing;

	if (!stuck_new(&s, 1, "mmap"))
		return;
	check(!ends_within(read_cmdline, &s.pid[0], 300));
	first = bystander_new();
	watch_open(&w, &s);
	ticks(&w, 2);
	check_int((int)w.stuck_members, 1);
	check_int((int)w.others, 1);

	/* In flight for more than a second: told, but only once. */
	ticks(&w, 6);
	check_u64(n_told(&w, s.pid[0]), 1);
	check_u64(w.stalls, 1);
	check_int((int)w.stalled, 1);

	/* Its CPU and memory go on, and so does everybody else. */
	cpu = w.cpu_us;
	second = bystander_new();
	ticks(&w, 8);
	check(w.cpu_us > cpu);
	check(w.rss > 0);
	check_int((int)w.stuck_members, 1);
	check_int((int)w.others, 2);
	check_u64(n_told(&w, s.pid[0]), 1);
	check_u64(w.stalls, 1);
	check_int((int)w.stalled, 1);
	check(w.longest_ms < TICK_MAX_MS);

	/* It lets go. */
	stuck_release(&s);
	ticks(&w, 4);
	check_int((int)w.stalled, 0);
	check_int((int)w.stuck_members, 1);
	check_u64(n_told(&w, s.pid[0]), 1);
	check(workers_fall_to(1));
	process_end(first);
	process_end(second);
	closing = watch_close(&w);
	check(closing < TICK_MAX_MS);
	printf("# longest tick %" PRIu64 " ms\n", w.longest_ms);
	stuck_end(&s);
}

static void five(void)
{
	struct stuck s;
	struct watch w;
	pid_t before, after;
	unsigned told = 0;

	if (!stuck_new(&s, 5, "mmap"))
		return;
	before = bystander_new();
	watch_open(&w, &s);
	ticks(&w, 8);
	check_int((int)w.stuck_members, 5);
	check_u64(count_workers(), 4);
	check_u64(w.stalls, 4);
	for (unsigned i = 0; i < 5; i++)
		told += n_told(&w, s.pid[i]);
	check_u64(told, 4);

	/* All workers hang: new ones wait for their command line. */
	after = bystander_new();
	ticks(&w, 4);
	check(w.others <= 1);
	check_u64(count_workers(), 4);
	check(w.cpu_us > 0);
	check(w.longest_ms < TICK_MAX_MS);

	/* The lane rests no more as soon as one returns. */
	stuck_release(&s);
	ticks(&w, 6);
	check_int((int)w.others, 2);
	check_int((int)w.stuck_members, 5);
	check_int((int)w.stalled, 0);
	check(workers_fall_to(1));
	process_end(before);
	process_end(after);
	watch_close(&w);
	printf("# longest tick %" PRIu64 " ms\n", w.longest_ms);
	stuck_end(&s);
}

static void closing(void)
{
	struct stuck s;
	struct watch w;

	if (!stuck_new(&s, 2, "mmap"))
		return;
	watch_open(&w, &s);
	ticks(&w, 3);
	check(count_workers() >= 2);
	check(watch_close(&w) < TICK_MAX_MS);
	check(count_workers() >= 2); /* left behind */
	stuck_release(&s);
	check(workers_fall_to(0));
	stuck_end(&s);
}

/* Ticks until that many of the others were read, or until it is too late. */
static void ticks_until_read(struct watch *w, int n)
{
	for (unsigned i = 0; i < 50 && (int)w->others_read != n; i++)
		ticks(w, 1);
	check_int((int)w->others_read, n);
}

/*
 * They have grown, and what is told of them has, too: until it is read anew, in
 * the ratio that it had. With sanitizers much is shared with the test.
 */
static void check_growth(struct watch *w, pid_t first, pid_t second)
{
	double rss = w->others_rss, ratio = w->others_pss / rss;

	check_int(kill(first, SIGUSR1), 0);
	check_int(kill(second, SIGUSR1), 0);
	pause_ms(100);
	ticks(w, 2);
	check(w->others_rss > rss + 1.9 * GROWTH);
	check(w->others_pss > 0.95 * ratio * w->others_rss);
	check(w->others_pss <= w->others_rss);
}

static void one_map(void)
{
	struct stuck s;
	struct watch w;
	pid_t first, second;

	if (!stuck_new(&s, 1, "mmap"))
		return;
	first = grower_new();
	second = grower_new();
	watch_pss(&w, &s);
	ticks_until_read(&w, 2);
	check(w.others_pss > 1.9 * GROWTH);
	ticks(&w, 8);
	check_u64(n_told(&w, s.pid[0]), 1);

	/* Of one that was never read nothing is known; others are read on. */
	ticks(&w, 12);
	check_int((int)w.stuck_members, 1);
	check_int((int)w.stuck_read, 0);
	check(w.stuck_pss < 0);
	check(w.rss > 0);
	check(w.oldest_s >= 0 && w.oldest_s < 3);
	check_growth(&w, first, second);
	check_u64(n_told(&w, s.pid[0]), 1);
	check(count_workers() <= 2);
	check(w.longest_ms < TICK_MAX_MS);

	stuck_release(&s);
	ticks(&w, 8);
	check_int((int)w.stuck_read, 1);
	check(w.stuck_pss > 0);
	check(workers_fall_to(1));
	process_end(first);
	process_end(second);
	check(watch_close(&w) < TICK_MAX_MS);
	printf("# longest tick %" PRIu64 " ms\n", w.longest_ms);
	stuck_end(&s);
}

static void eight_maps(void)
{
	struct stuck s;
	struct watch w;
	pid_t first, second;
	unsigned told = 0;

	if (!stuck_new(&s, 8, "mmap"))
		return;
	first = grower_new();
	second = grower_new();
	watch_pss(&w, &s);
	ticks_until_read(&w, 2);
	for (unsigned i = 0; i < 50 && told < 4; i++) {
		ticks(&w, 1);
		told = 0;
		for (unsigned k = 0; k < 8; k++)
			told += n_told(&w, s.pid[k]);
		check(count_workers() <= 4);
	}
	check_u64(told, 4);
	check_u64(count_workers(), 4);

	/* Nobody is read now; what was read moves with RSS. */
	ticks(&w, 8);
	check_int((int)w.others_read, 2);
	check_int((int)w.stuck_members, 8);
	check(w.stuck_pss < 0);
	check(w.cpu_us > 0);
	check_growth(&w, first, second);
	check_u64(count_workers(), 4);
	check(w.longest_ms < TICK_MAX_MS);

	stuck_release(&s);
	ticks(&w, 12);
	check_int((int)w.stuck_read, 8);
	check(w.stuck_pss > 0);
	check(w.oldest_s >= 0 && w.oldest_s < 3);
	check(workers_fall_to(1));
	process_end(first);
	process_end(second);
	watch_close(&w);
	printf("# longest tick %" PRIu64 " ms\n", w.longest_ms);
	stuck_end(&s);
}

static void closing_maps(void)
{
	struct stuck s;
	struct watch w;
	uint64_t took;

	if (!stuck_new(&s, 8, "mmap"))
		return;
	watch_pss(&w, &s);
	for (unsigned i = 0; i < 50 && count_workers() < 4; i++)
		ticks(&w, 1);
	check_u64(count_workers(), 4);
	took = watch_close(&w);
	printf("# closing took %" PRIu64 " ms\n", took);
	check(took < TICK_MAX_MS);
	check_u64(count_workers(), 4); /* left behind */
	stuck_release(&s);
	check(workers_fall_to(0));
	stuck_end(&s);
}

static int some_ticks(void *arg)
{
	const struct stuck *s = arg;
	struct watch w;

	watch_open(&w, s);
	ticks(&w, 3);
	check(w.longest_ms < TICK_MAX_MS);
	check(watch_close(&w) < TICK_MAX_MS);
	return tap.failed;
}

/*
 * What waits in execve() holds its exec_update_lock, for which readers of io
 * wait, and on later kernels those of stat and the exe link (seen on Linux
 * 6.18.44); not those of status, statm, cgroup, limits and the fd directory.
 */
static void in_exec(void)
{
	struct stuck s;

	if (!stuck_new(&s, 1, "exec"))
		return;
	check(ends_within(some_ticks, &s, 4000));
	stuck_end(&s);
}

static void in_exec_of_child(void)
{
	struct stuck s;

	if (!stuck_new(&s, 1, "vfork"))
		return;
	check(ends_within(some_ticks, &s, 4000));
	stuck_end(&s);
}

/* Its pidfile is the command line of a process that hangs who reads it. */
static void in_pidfile(void)
{
	char rules[512], told[64];
	unsigned n = 0;
	struct stuck s;
	struct watch w;
	pid_t first;

	if (!stuck_new(&s, 1, "mmap"))
		return;
	first = bystander_new();
	snprintf(rules, sizeof(rules),
		 "rules:\n"
		 "- {name: of-file, pidfile: /proc/%d/cmdline}\n"
		 "- {name: bystanders, exe: bystander}\n"
		 "- {name: stuck, pidfile: /proc/%d/cmdline}\n",
		 (int)s.pid[0], (int)s.pid[0]);
	watch_rules(&w, rules);
	ticks(&w, 6);
	check_int((int)w.others, 1);
	snprintf(told, sizeof(told), "pidfile /proc/%d/cmdline keeps",
		 (int)s.pid[0]);
	for (size_t i = 0; i < w.n_events; i++)
		n += strstr(w.event[i], told) != NULL;
	check_u64(n, 1);
	check(w.longest_ms < TICK_MAX_MS);

	stuck_release(&s);
	ticks(&w, 2);
	process_end(first);
	check(watch_close(&w) < TICK_MAX_MS);
	stuck_end(&s);
}

/* The directory of our cgroup below a root as it would be; "" if it is none. */
static void own_cgroup(const char *root, char *ret, size_t size)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX], *path;
	bool is_v2 = false;

	*ret = '\0';
	while (f && !*ret && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		is_v2 = strncmp(line, "0::", 3) == 0;
		path = is_v2 ? line + 3 : strstr(line, ":memory:");
		if (path && !is_v2)
			path += strlen(":memory:");
		if (path && strlen(path) > 1)
			snprintf(ret, size, "%s/fs/cgroup%s%s", root,
				 is_v2 ? "" : "/memory", path);
	}
	if (f)
		fclose(f);
	if (*ret && is_v2) {
		snprintf(line, sizeof(line), "%s/fs/cgroup/cgroup.controllers",
			 root);
		f = fopen(line, "we");
		check(f && fclose(f) == 0);
	}
}

static void make_dirs(char *path)
{
	for (char *at = path; (at = strchr(at + 1, '/'));) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	mkdir(path, 0700);
}

/* What would be its file is the command line that hangs who reads it. */
static void in_cgroup(void)
{
	char root[] = "/tmp/proctally-stall.XXXXXX", dir[PATH_MAX] = "";
	char file[PATH_MAX + 32], target[64], rules[256];
	unsigned n = 0;
	struct stuck s;
	struct watch w;
	pid_t first;

	if (!stuck_new(&s, 1, "mmap"))
		return;
	check(mkdtemp(root) != NULL);
	snprintf(dir, sizeof(dir), "%s/fs/cgroup", root);
	make_dirs(dir);
	own_cgroup(root, dir, sizeof(dir));
	if (!*dir) {
		tap_skip("we are in no cgroup");
		stuck_end(&s);
		return;
	}
	make_dirs(dir);
	snprintf(target, sizeof(target), "/proc/%d/cmdline", (int)s.pid[0]);
	snprintf(file, sizeof(file), "%s/memory.current", dir);
	check_int(symlink(target, file), 0);
	snprintf(file, sizeof(file), "%s/memory.usage_in_bytes", dir);
	check_int(symlink(target, file), 0);
	first = bystander_new();
	snprintf(rules, sizeof(rules),
		 "defaults: {collect: {cgroup: true}}\n"
		 "other: {action: drop}\n"
		 "rules: [{name: bystanders, cmdline: 'bystander-%d$'}]\n",
		 (int)getpid());
	watch_sys(&w, rules, root);
	ticks(&w, 6);
	check_int((int)w.others, 1);
	for (size_t i = 0; i < w.n_events; i++)
		n += strstr(w.event[i], "the cgroup of bystanders keeps") !=
		     NULL;
	check_u64(n, 1);
	check(w.longest_ms < TICK_MAX_MS);

	stuck_release(&s);
	ticks(&w, 2);
	process_end(first);
	check(watch_close(&w) < TICK_MAX_MS);
	stuck_end(&s);
	snprintf(file, sizeof(file), "rm -rf %s", root);
	check_int(system(file), 0);
}

static int all(void)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	check(n > 0);
	self[MAX(n, (ssize_t)0)] = '\0';
	snprintf(stuckfs, sizeof(stuckfs), "%.*s/stuckfs",
		 (int)(strrchr(self, '/') - self), self);
	TEST("beside one process that hangs its reader all goes on", one);
	TEST("with five the lane rests, and goes on when they let go", five);
	TEST("closing does not wait for workers that hang", closing);
	TEST("one locked memory map holds no other's PSS up", one_map);
	TEST("with eight all goes on but readings of memory, and then these, "
	     "too",
	     eight_maps);
	TEST("closing does not wait for eight locked memory maps",
	     closing_maps);
	TEST("a pidfile that hangs its reader holds nobody up", in_pidfile);
	TEST("a cgroup that hangs its reader holds nobody up", in_cgroup);
	TEST("a process that hangs in exec holds nobody up", in_exec);
	TEST("a child that hangs in exec holds nobody up", in_exec_of_child);
	return tap_done();
}

/* Another program's hanging processes are none of our business. */
int main(int argc, char **argv)
{
	int r;

	if (argc == 2 && strncmp(argv[1], "--bystander-", 12) == 0)
		for (;;)
			pause();
	r = in_own_pids(all);
	return r == -EPERM ? all() : r < 0;
}
