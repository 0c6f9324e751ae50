/* SPDX-License-Identifier: MIT */
/*
 * Real processes over their whole life, seen by a real monitor in the real
 * /proc: born, renamed, grown threads, moved to another user, exec'd, killed,
 * dead and not reaped, their number reused. Most are puppets: forks of this
 * program that do one thing when told and sleep in a read otherwise, so that
 * what they used can be read exactly while they do not run.
 */
#include "alloccount.h"
#include "clocks.h"
#include "monitor.h"
#include "ownpids.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <math.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
	PATIENCE_MS = 20000,
	VALUES_MAX = 1024,
	EVENTS_MAX = 32,
};

static char work_dir[] = "/tmp/proctally-lifetime.XXXXXX";

/*
 * Names are our own, so that several runs at a time do not see each other's
 * processes: every "@" in them is our pid. Returns `buf`.
 */
static char own_number[12];

static char *own(const char *text, char *buf, size_t size)
{
	size_t n = 0;

	for (; *text && n + sizeof(own_number) < size; text++)
		if (*text == '@')
			n += (size_t)snprintf(buf + n, size - n, "%s",
					      own_number);
		else
			buf[n++] = *text;
	buf[n] = '\0';
	return buf;
}

static void pause_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000,
			      .tv_nsec = ms % 1000 * 1000000};

	while (nanosleep(&ts, &ts) < 0)
		;
}

/* What cannot be had here is a skip, but not where CI=true. */
static bool can(bool possible, const char *what)
{
	const char *ci = getenv("CI");

	if (possible)
		return true;
	if (ci && strcmp(ci, "true") == 0)
		tap_fail(__FILE__, __LINE__, "%s, and CI=true", what);
	else
		tap_skip("%s", what);
	return false;
}

/* --- What /proc/PID/stat says, read by ourselves --- */

struct facts {
	char state;
	uint64_t cpu_us, threads, rss_bytes;
	bool kernel;
};

static bool read_facts(pid_t pid, struct facts *ret)
{
	char path[32], text[1024], *at;
	unsigned long long field[64] = {0};
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	at = strrchr(text, ')') + 2;
	ret->state = *at++;
	for (unsigned i = 4; i < 53; i++)
		field[i] = strtoull(at, &at, 10);
	ret->cpu_us = (field[14] + field[15]) * 1000000 /
		      (unsigned long long)sysconf(_SC_CLK_TCK);
	ret->threads = field[20];
	ret->rss_bytes = field[24] * (uint64_t)sysconf(_SC_PAGESIZE);
	ret->kernel = field[9] & 0x200000; /* PF_KTHREAD */
	return true;
}

static uint64_t cpu_us(pid_t pid)
{
	struct facts f;

	check(read_facts(pid, &f));
	return f.cpu_us;
}

static uint64_t clock_of(pid_t pid)
{
	clockid_t id;

	return clock_getcpuclockid(pid, &id) == 0 ? clocks_read(id) : 0;
}

/* Waits for a state; then no more of its CPU time is on its way. */
static bool wait_state(pid_t pid, char state)
{
	uint64_t until = clocks_now().mono_ns + PATIENCE_MS * NSEC_PER_MSEC;
	struct facts f;

	while (clocks_now().mono_ns < until) {
		uint64_t clock = clock_of(pid);

		pause_ms(1);
		if (read_facts(pid, &f) && f.state == state &&
		    clock_of(pid) == clock)
			return true;
	}
	return false;
}

/* --- Puppets --- */

enum order {
	BURN,	     /* `arg` ms of CPU time, half of it in the kernel */
	TOUCH,	     /* `arg` bytes of new memory */
	IO,	     /* writes and reads `arg` bytes */
	NAME,	     /* calls itself `text` */
	EXEC,	     /* becomes the program `text`, a puppet again */
	THREADS,     /* starts `arg` threads that sleep */
	THREAD_BURN, /* a thread burns `arg` ms and ends */
	LOSE_LEADER, /* the first thread ends, another obeys */
	BECOME_USER, /* takes the uid `arg` */
	OPEN,	     /* opens `arg` files */
};

struct command {
	enum order order;
	long arg;
	char text[96];
};

struct puppet {
	pid_t pid;
	int fd;
};

static void burn(clockid_t clock, long ms)
{
	uint64_t from = clocks_read(clock);
	uint64_t half = (uint64_t)ms * NSEC_PER_MSEC / 2;

	while (clocks_read(clock) < from + half)
		for (volatile unsigned i = 0; i < 20000; i++)
			;
	while (clocks_read(clock) < from + 2 * half)
		for (unsigned i = 0; i < 100; i++)
			syscall(SYS_getppid);
}

static void touch(size_t n)
{
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; p != MAP_FAILED && i < n; i += 4096)
		p[i] = 1;
}

static void do_io(long n)
{
	static char buf[65536];
	int to = open(".", O_TMPFILE | O_RDWR, 0600);
	int from = open("/dev/zero", O_RDONLY);

	if (to < 0)
		to = open("/dev/null", O_WRONLY);
	for (long i = 0; i < n; i += (long)sizeof(buf))
		if (read(from, buf, sizeof(buf)) < 0 ||
		    write(to, buf, sizeof(buf)) < 0)
			_exit(1);
	close(to);
	close(from);
}

static void *thread_sleep(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *thread_burn(void *arg)
{
	burn(CLOCK_THREAD_CPUTIME_ID, (long)(intptr_t)arg);
	return NULL;
}

static _Noreturn void obey(int fd);

static void *thread_obey(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct facts f;

	while (read_facts(getpid(), &f) && f.state != 'Z')
		pause_ms(1);
	send(fd, "", 1, 0);
	obey(fd);
}

static void start_threads(void *(*fn)(void *), void *arg, long n)
{
	pthread_t thread;

	while (n--)
		if (pthread_create(&thread, NULL, fn, arg) != 0)
			_exit(1);
}

static void join_burner(long ms)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_burn, (void *)(intptr_t)ms) !=
	    0)
		_exit(1);
	pthread_join(thread, NULL);
}

static void die_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

static void become_user(long uid)
{
	if (setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) < 0)
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* was taken back */
}

static void become_program(const char *path, int fd)
{
	char number[12];

	snprintf(number, sizeof(number), "%d", fd);
	execl(path, path, "--puppet", number, NULL);
	_exit(1);
}

static void follow(const struct command *c, int fd)
{
	switch (c->order) {
	case BURN:
		burn(CLOCK_PROCESS_CPUTIME_ID, c->arg);
		break;
	case TOUCH:
		touch((size_t)c->arg);
		break;
	case IO:
		do_io(c->arg);
		break;
	case NAME:
		prctl(PR_SET_NAME, c->text);
		break;
	case EXEC:
		become_program(c->text, fd);
		break;
	case THREADS:
		start_threads(thread_sleep, NULL, c->arg);
		break;
	case THREAD_BURN:
		join_burner(c->arg);
		break;
	case LOSE_LEADER:
		start_threads(thread_obey, (void *)(intptr_t)fd, 1);
		pthread_exit(NULL);
	case BECOME_USER:
		become_user(c->arg);
		break;
	case OPEN:
		for (long i = 0; i < c->arg; i++)
			if (open("/dev/null", O_RDONLY) < 0)
				_exit(1);
		break;
	}
}

static _Noreturn void obey(int fd)
{
	struct command c;

	while (recv(fd, &c, sizeof(c), 0) == sizeof(c)) {
		follow(&c, fd);
		if (send(fd, "", 1, 0) < 0)
			break;
	}
	_exit(0);
}

static void check_ack(const struct puppet *p)
{
	char byte;

	check_int(recv(p->fd, &byte, 1, 0), 1);
}

/* Returns once it has done so and sleeps. */
static void order_text(const struct puppet *p, enum order order,
		       const char *text)
{
	struct command c = {.order = order};

	own(text, c.text, sizeof(c.text));
	check(send(p->fd, &c, sizeof(c), MSG_NOSIGNAL) == sizeof(c));
	check_ack(p);
	check(wait_state(p->pid, 'S'));
}

static void order(const struct puppet *p, enum order order, long arg)
{
	struct command c = {.order = order, .arg = arg};

	check(send(p->fd, &c, sizeof(c), MSG_NOSIGNAL) == sizeof(c));
	check_ack(p);
	check(wait_state(p->pid, order == LOSE_LEADER ? 'Z' : 'S'));
}

/* As fork(), but with the number `pid`; -1 with errno if it cannot be. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
	    .exit_signal = SIGCHLD,
	    .set_tid = (uintptr_t)&pid,
	    .set_tid_size = 1,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* `pid`: its number, or 0. Returns one with pid -1 if that cannot be. */
static struct puppet puppet_new(const char *name, pid_t pid)
{
	struct puppet p = {-1, -1};
	pid_t parent = getpid();
	int fds[2];
	char buf[32];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) < 0)
		return p;
	p.pid = pid ? fork_as(pid) : fork();
	if (p.pid == 0) {
		die_with_parent(parent);
		close(fds[0]);
		prctl(PR_SET_NAME, own(name, buf, sizeof(buf)));
		send(fds[1], "", 1, 0);
		obey(fds[1]);
	}
	close(fds[1]);
	p.fd = fds[0];
	if (p.pid < 0) {
		close(p.fd);
		return p;
	}
	check_ack(&p);
	check(wait_state(p.pid, 'S'));
	return p;
}

static void reap(pid_t pid)
{
	check_int(waitpid(pid, NULL, 0), pid);
}

static void puppet_end(const struct puppet *p)
{
	close(p->fd);
	kill(p->pid, SIGKILL);
	reap(p->pid);
}

/* --- Crowds: many processes that do nothing, or next to nothing --- */

static _Noreturn void be_in_crowd(const char *name, bool active, int ready_fd)
{
	char buf[32];

	prctl(PR_SET_NAME, own(name, buf, sizeof(buf)));
	if (write(ready_fd, "", 1) != 1)
		_exit(1);
	for (;;) {
		if (!active)
			pause();
		pause_ms(20);
	}
}

static void crowd_new(const char *name, bool active, pid_t *pids, size_t n)
{
	pid_t parent = getpid();
	int fds[2];
	char byte;

	check_int(pipe2(fds, O_CLOEXEC), 0);
	for (size_t i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			die_with_parent(parent);
			be_in_crowd(name, active, fds[1]);
		}
		check(pids[i] > 0);
	}
	for (size_t i = 0; i < n; i++)
		check_int(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	close(fds[1]);
}

static void crowd_end(const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	for (size_t i = 0; i < n; i++)
		reap(pids[i]);
}

/* --- A monitor, and all that it told in its last tick --- */

struct value {
	char group[64], type[24], instance[24], ds[16];
	bool derive;
	uint64_t u;
	double d;
};

struct watch {
	struct monitor *m;
	int rules_fd;
	struct value v[VALUES_MAX];
	size_t n;
	char event[EVENTS_MAX][480];
	size_t n_events;
};

static void on_value(void *arg, const struct value_out *out)
{
	struct watch *w = arg;

	for (unsigned i = 0; i < out->n && w->n < VALUES_MAX; i++) {
		struct value *v = &w->v[w->n++];

		snprintf(v->group, sizeof(v->group), "%s", out->group);
		snprintf(v->type, sizeof(v->type), "%s", out->type);
		snprintf(v->instance, sizeof(v->instance), "%s",
			 out->instance ? out->instance : "");
		snprintf(v->ds, sizeof(v->ds), "%s", out->ds[i]);
		v->derive = out->derive;
		v->u = out->derive ? out->u[i] : 0;
		v->d = out->derive ? 0 : out->d[i];
	}
}

static void tick_at(struct watch *w, const struct moment *now)
{
	struct monitor_event e;

	w->n = 0;
	check_int(monitor_tick(w->m, now, on_value, w), 0);
	while (monitor_take_event(w->m, &e)) {
		if (e.level != MONITOR_INFO && w->n_events < EVENTS_MAX)
			strcpy(w->event[w->n_events++], e.text);
	}
}

static void tick(struct watch *w)
{
	struct moment now = clocks_now();

	tick_at(w, &now);
}

static void watch_open(struct watch *w, const char *rules)
{
	char path[32], text[1024];
	struct monitor_options o = {.rules_path = path};

	memset(w, 0, sizeof(*w));
	w->rules_fd = memfd_create("rules", MFD_CLOEXEC);
	/* Exact to the tick: without what records tell beside stat. */
	strcpy(text, "limits: {exit_records: off}\n");
	own(rules, text + strlen(text), sizeof(text) - strlen(text));
	check(write(w->rules_fd, text, strlen(text)) == (ssize_t)strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", w->rules_fd);
	check_int(monitor_open(&o, &w->m), 0);
}

static void watch_close(struct watch *w)
{
	monitor_free(w->m);
	close(w->rules_fd);
}

static const struct value *find(const struct watch *w, const char *group,
				const char *type, const char *ds)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct value *v = &w->v[i];

		if (!strcmp(v->group, group) && !strcmp(v->type, type) &&
		    !v->instance[0] && !strcmp(v->ds, ds))
			return v;
	}
	return NULL;
}

/* A gauge; NAN if it was not told. */
static double gauge(const struct watch *w, const char *group, const char *type,
		    const char *ds)
{
	const struct value *v = find(w, group, type, ds);

	return v ? v->d : (double)NAN;
}

static double in_state(const struct watch *w, const char *group,
		       const char *state)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->v[i].group, group) &&
		    !strcmp(w->v[i].type, "ps_state") &&
		    !strcmp(w->v[i].instance, state))
			return w->v[i].d;
	return (double)NAN;
}

static uint64_t starts(const struct watch *w, const char *group)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->v[i].group, group) &&
		    !strcmp(w->v[i].instance, "starts"))
			return w->v[i].u;
	return UINT64_MAX;
}

static uint64_t group_cpu(const struct watch *w, const char *group)
{
	const struct value *user = find(w, group, "ps_cputime", "user");
	const struct value *syst = find(w, group, "ps_cputime", "syst");

	return user && syst ? user->u + syst->u : 0;
}

static int members(const struct watch *w, const char *group)
{
	double n = gauge(w, group, "ps_count", "processes");

	return isnan(n) ? -1 : (int)n;
}

/* A test that changes what cannot be changed back runs in a child. */
static void in_child(void (*fn)(void))
{
	pid_t pid;
	int status = 0;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		fn();
		fflush(stdout);
		_exit(tap.failed);
	}
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
}

/*
 * The same as the first process of a namespace of its own, with its own /proc:
 * no other processes than the test's are to be seen. Skips without root.
 */
static void in_namespace(int (*fn)(void))
{
	if (can(geteuid() == 0, "not root"))
		check_int(in_own_pids(fn), 0);
}

#define RULES_AB                                                               \
	"other: {action: drop}\n"                                              \
	"rules: [{name: a, comm: lt-a@}, {name: b, comm: lt-b@}]\n"

/* --- One process --- */

static void born(void)
{
	struct watch w;
	struct puppet before = puppet_new("lt-a@", 0), after;
	uint64_t base;

	watch_open(&w, RULES_AB);
	order(&before, BURN, 60);
	tick(&w);
	check_int(members(&w, "a"), 1);
	check_u64(group_cpu(&w, "a"), 0); /* was before our time */
	check_u64(starts(&w, "a"), 0);
	base = cpu_us(before.pid);

	after = puppet_new("lt-a@", 0);
	order(&after, BURN, 60);
	order(&before, BURN, 30);
	tick(&w);
	check_int(members(&w, "a"), 2);
	check(cpu_us(after.pid) >= 50000);
	check_u64(group_cpu(&w, "a"),
		  cpu_us(after.pid) + cpu_us(before.pid) - base);
	check_u64(starts(&w, "a"), 1);
	puppet_end(&before);
	puppet_end(&after);
	watch_close(&w);
}

static void execs(void)
{
	struct watch w;
	struct puppet p;
	char path[96];
	uint64_t a, all;

	snprintf(path, sizeof(path), "%s/lt-b@", work_dir);
	watch_open(&w, RULES_AB);
	tick(&w);
	p = puppet_new("lt-a@", 0);
	order(&p, BURN, 50);
	tick(&w);
	check_u64(group_cpu(&w, "a"), cpu_us(p.pid));

	/* What it used until it is seen as another program is a's. */
	order(&p, BURN, 50);
	order_text(&p, EXEC, path);
	tick(&w);
	a = group_cpu(&w, "a");
	check_u64(a, cpu_us(p.pid));
	check(a >= 90000);
	check_int(members(&w, "a"), 0);
	check_int(members(&w, "b"), 1);
	check_u64(group_cpu(&w, "b"), 0);

	order(&p, BURN, 50);
	tick(&w);
	all = cpu_us(p.pid);
	check_u64(group_cpu(&w, "a"), a);
	check_u64(group_cpu(&w, "b"), all - a);
	check(all - a >= 40000);
	puppet_end(&p);
	watch_close(&w);
}

static void renamed(void)
{
	struct watch w;
	struct puppet p;
	uint64_t a;

	watch_open(&w, RULES_AB);
	tick(&w);
	p = puppet_new("lt-a@", 0);
	order(&p, BURN, 40);
	tick(&w);
	order_text(&p, NAME, "lt-b@");
	tick(&w);
	a = group_cpu(&w, "a");
	check_int(members(&w, "a"), 0);
	check_int(members(&w, "b"), 1);
	order(&p, BURN, 40);
	tick(&w);
	check_u64(group_cpu(&w, "a"), a);
	check_u64(group_cpu(&w, "a") + group_cpu(&w, "b"), cpu_us(p.pid));
	check(group_cpu(&w, "b") >= 30000);

	/* To a name that no rule knows, and back: what it used there is lost.
	 */
	order_text(&p, NAME, "lt-e@");
	tick(&w);
	check_int(members(&w, "b"), 0);
	order(&p, BURN, 40);
	tick(&w);
	order_text(&p, NAME, "lt-a@");
	tick(&w);
	check_int(members(&w, "a"), 1);
	check(group_cpu(&w, "a") < a + 20000);
	puppet_end(&p);
	watch_close(&w);
}

static void killed_and_reaped(void)
{
	struct watch w;
	struct puppet p, other;
	struct facts f;
	uint64_t last;

	watch_open(&w, RULES_AB);
	tick(&w);
	p = puppet_new("lt-a@", 0);
	other = puppet_new("lt-b@", 0);
	order(&p, TOUCH, 1 << 20);
	tick(&w);
	check(gauge(&w, "a", "ps_rss", "value") >= 1 << 20);
	order(&p, BURN, 50);
	kill(p.pid, SIGKILL);
	check(wait_state(p.pid, 'Z'));

	/* A zombie: its last CPU time is there, its memory is not. */
	tick(&w);
	last = cpu_us(p.pid);
	check(last >= 40000);
	check_u64(group_cpu(&w, "a"), last);
	check_int(members(&w, "a"), 1);
	check_int((int)in_state(&w, "a", "zombies"), 1);
	check(!find(&w, "a", "ps_rss", "value"));
	check(!find(&w, "a", "ps_vm", "value"));
	check(!find(&w, "a", "file_handles", "value"));
	check(gauge(&w, "b", "ps_rss", "value") > 0);
	tick(&w);
	check_int(members(&w, "a"), 1);
	check(read_facts(p.pid, &f) && f.state == 'Z');

	/* Reaped: gone at once, and its counters stay. */
	close(p.fd);
	reap(p.pid);
	tick(&w);
	check_int(members(&w, "a"), 0);
	check_u64(group_cpu(&w, "a"), last);
	check_u64(starts(&w, "a"), 1);
	tick(&w);
	check_int(members(&w, "a"), 0);
	check_u64(group_cpu(&w, "a"), last);
	puppet_end(&other);
	watch_close(&w);
}

/* `n_runs` 3: its descriptors were kept; 0: they were not. */
static bool reuse_pid(unsigned n_runs, const char *name)
{
	struct watch w;
	struct puppet p, q;
	uint64_t a, q_cpu;

	watch_open(&w, RULES_AB);
	tick(&w);
	p = puppet_new("lt-a@", 0);
	tick(&w);
	for (unsigned i = 0; i < n_runs; i++) {
		order(&p, BURN, 20);
		tick(&w);
	}
	order(&p, BURN, 30); /* of which nobody saw the end */
	a = group_cpu(&w, "a");
	puppet_end(&p);
	q = puppet_new(name, p.pid);
	if (q.pid < 0) {
		watch_close(&w);
		return false;
	}
	check_int(q.pid, p.pid);
	order(&q, BURN, 60);
	tick(&w);
	q_cpu = cpu_us(q.pid);
	check(q_cpu >= 50000);
	if (strcmp(name, "lt-a@") == 0) {
		check_u64(group_cpu(&w, "a"), a + q_cpu);
		check_int(members(&w, "a"), 1);
		check_u64(starts(&w, "a"), 2);
	} else {
		check_u64(group_cpu(&w, "a"), a);
		check_u64(group_cpu(&w, "b"), q_cpu);
		check_int(members(&w, "a"), 0);
		check_int(members(&w, "b"), 1);
		check_u64(starts(&w, "b"), 1);
	}
	tick(&w);
	check_u64(group_cpu(&w, "a") + group_cpu(&w, "b"), a + q_cpu);
	order(&q, BURN, 20);
	tick(&w);
	check_u64(group_cpu(&w, "a") + group_cpu(&w, "b"), a + cpu_us(q.pid));
	puppet_end(&q);
	watch_close(&w);
	return true;
}

static void reused_pid(void)
{
	if (!can(geteuid() == 0, "not root") ||
	    !can(reuse_pid(3, "lt-b@"), "no number can be chosen here"))
		return;
	check(reuse_pid(3, "lt-a@"));
	check(reuse_pid(0, "lt-b@"));
	check(reuse_pid(0, "lt-a@"));
}

static void dead_leader(void)
{
	static const char rules[] =
	    "other: {action: drop}\n"
	    "rules:\n"
	    "- {name: a, exe: lt-d@, exe_path: 'glob:*lifetime*',\n"
	    "   cmdline: 'lt-d@ --puppet [0-9]+$'}\n";
	struct watch w;
	struct puppet p = puppet_new("lt-a@", 0);
	char path[96];
	uint64_t before;

	snprintf(path, sizeof(path), "%s/lt-d@", work_dir);
	order_text(&p, EXEC, path);
	order(&p, TOUCH, 8 << 20);
	order(&p, LOSE_LEADER, 0);
	watch_open(&w, rules);
	tick(&w);
	check_int(members(&w, "a"), 1);
	check(gauge(&w, "a", "ps_rss", "value") >= 8 << 20);
	check(gauge(&w, "a", "ps_vm", "value") >= 8 << 20);
	check_int((int)gauge(&w, "a", "ps_count", "threads"), 2);
	check_int((int)in_state(&w, "a", "zombies"), 0);
	check_int((int)in_state(&w, "a", "sleeping"), 1);
	before = cpu_us(p.pid);
	for (unsigned i = 1; i <= 4; i++) { /* with kept descriptors, too */
		struct command c = {.order = BURN, .arg = 40};

		check(send(p.fd, &c, sizeof(c), MSG_NOSIGNAL) == sizeof(c));
		check_ack(&p);
		check(wait_state(p.pid, 'Z'));
		tick(&w);
		check_u64(group_cpu(&w, "a"), cpu_us(p.pid) - before);
		check(group_cpu(&w, "a") >= i * 30000);
		check(gauge(&w, "a", "ps_rss", "value") >= 8 << 20);
		check(gauge(&w, "a", "file_handles", "value") >= 1);
	}
	puppet_end(&p);
	watch_close(&w);
}

static void threads(void)
{
	struct watch w;
	struct puppet p = puppet_new("lt-a@", 0);
	uint64_t before;

	watch_open(&w, RULES_AB);
	tick(&w);
	check_int((int)gauge(&w, "a", "ps_count", "threads"), 1);
	before = cpu_us(p.pid);
	order(&p, THREADS, 5);
	order(&p, THREAD_BURN, 60);
	tick(&w);
	check_int((int)gauge(&w, "a", "ps_count", "threads"), 6);
	check_int(members(&w, "a"), 1);
	/* The time of a thread that ended stays in its process's. */
	check_u64(group_cpu(&w, "a"), cpu_us(p.pid) - before);
	check(group_cpu(&w, "a") >= 50000);
	puppet_end(&p);
	watch_close(&w);
}

static void descriptors(void)
{
	struct watch w;
	struct puppet p = puppet_new("lt-a@", 0);
	double before;

	watch_open(&w, RULES_AB);
	tick(&w);
	before = gauge(&w, "a", "file_handles", "value");
	order(&p, OPEN, 25);
	tick(&w);
	check_int((int)(gauge(&w, "a", "file_handles", "value") - before), 25);
	puppet_end(&p);
	watch_close(&w);
}

static void other_user(void)
{
	struct passwd *pw = getpwnam("nobody");
	char rules[256];
	struct watch w;
	struct puppet p;
	uint64_t a, all;

	if (!can(geteuid() == 0, "not root") ||
	    !can(pw && pw->pw_uid != 0, "no user \"nobody\""))
		return;
	snprintf(rules, sizeof(rules),
		 "other: {action: drop}\n"
		 "rules:\n"
		 "- {name: a, comm: lt-a@, user: root}\n"
		 "- {name: b, comm: lt-a@, user: nobody}\n"
		 "- {name: c, comm: lt-a@, uid: %u}\n",
		 (unsigned)pw->pw_uid);
	watch_open(&w, rules);
	tick(&w);
	p = puppet_new("lt-a@", 0);
	order(&p, BURN, 40);
	tick(&w);
	check_int(members(&w, "a"), 1);
	order(&p, BECOME_USER, (long)pw->pw_uid);
	tick(&w);
	check_int(members(&w, "a"), 0);
	check_int(members(&w, "b"), 1);
	check_int(members(&w, "c"), 0);
	a = group_cpu(&w, "a");
	check(a >= 30000);
	order(&p, BURN, 40);
	tick(&w);
	all = cpu_us(p.pid);
	check_u64(group_cpu(&w, "a"), a);
	check_u64(group_cpu(&w, "b"), all - a);
	puppet_end(&p);
	watch_close(&w);
}

static int count_kernel_threads(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	struct facts f;
	int n = 0;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			n += read_facts(atoi(e->d_name), &f) && f.kernel;
	if (dir)
		closedir(dir);
	return n;
}

static void kernel_threads(void)
{
	static const char rules[] =
	    "rules:\n"
	    "- {name: by-name, comm: 'glob:kthread*'}\n"
	    "- {name: no-cmdline, cmdline: '.*', comm: 'glob:k*d'}\n"
	    "- {name: users, any: true}\n"
	    "- {name: kernel, kernel: true}\n";
	struct watch w;
	int before, after, seen, n_tries = 10;

	/* A container has none, whatever is installed in it. */
	if (count_kernel_threads() == 0) {
		tap_skip("no kernel threads to be seen");
		return;
	}
	watch_open(&w, rules);
	/* Some come and go by themselves. */
	do {
		before = count_kernel_threads();
		tick(&w);
		seen = members(&w, "kernel");
		after = count_kernel_threads();
	} while ((before != after || before != seen) && --n_tries > 0);
	check_int(seen, before);
	check(members(&w, "users") > 0);
	check_int(members(&w, "by-name"), 0);
	check_int(members(&w, "no-cmdline"), 0);
	check_int(members(&w, "other"), 0);
	/* They have no memory; that is not said to be 0. */
	check(!find(&w, "kernel", "memory", "value"));
	watch_close(&w);
}

/* --- Descriptors of our own --- */

static unsigned count_own_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Takes all that is left; returns how many, their numbers in `fds`. */
static size_t take_all_fds(int *fds, size_t max)
{
	size_t n = 0;

	while (n < max && (fds[n] = open("/dev/null", O_RDONLY)) >= 0)
		n++;
	check_int(errno, EMFILE);
	return n;
}

static void few_descriptors_child(void)
{
	enum { N = 300, ROUNDS = 50 };
	struct rlimit rl = {.rlim_cur = 64, .rlim_max = 64};
	struct watch w;
	pid_t pids[N];
	unsigned most = 0, n_fds;
	int left[64];
	size_t n_left;

	check_int(setrlimit(RLIMIT_NOFILE, &rl), 0);
	crowd_new("lt-a@", true, pids, N);
	watch_open(&w, RULES_AB);
	tick(&w);
	tick(&w);
	check_int(members(&w, "a"), N);
	n_fds = count_own_fds();
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t from = i % 2 ? N / 2 : 0;

		crowd_end(pids + from, N / 2);
		crowd_new("lt-a@", true, pids + from, N / 2);
		tick(&w);
		check_int(members(&w, "a"), N);
		most = MAX(most, count_own_fds());
	}
	/* Those that ended by and by leave nothing open. */
	check(most <= n_fds + 8);
	check(most < 64);

	/* None left at all: nothing can be learned, and nobody has ended. */
	n_left = take_all_fds(left, ARRAY_SIZE(left));
	check(n_left > 0);
	tick(&w);
	check_int(members(&w, "a"), N);
	tick(&w);
	check_int(members(&w, "a"), N);
	check_u64(starts(&w, "a"), ROUNDS * N / 2);
	while (n_left)
		close(left[--n_left]);
	tick(&w);
	check_int(members(&w, "a"), N);
	check_u64(starts(&w, "a"), ROUNDS * N / 2);
	crowd_end(pids, N);
	tick(&w);
	check_int(members(&w, "a"), 0);
	watch_close(&w);
}

static void few_descriptors(void)
{
	in_child(few_descriptors_child);
}

/* New processes that nobody could look at are seen once it can be. */
static void born_unseen_child(void)
{
	struct rlimit rl = {.rlim_cur = 64, .rlim_max = 64};
	struct watch w;
	struct puppet p;
	int left[64];
	size_t n_left;

	check_int(setrlimit(RLIMIT_NOFILE, &rl), 0);
	watch_open(&w, RULES_AB);
	tick(&w);
	p = puppet_new("lt-a@", 0);
	order(&p, BURN, 40);
	n_left = take_all_fds(left, ARRAY_SIZE(left));
	tick(&w);
	check_int(members(&w, "a"), 0);
	tick(&w);
	while (n_left)
		close(left[--n_left]);
	tick(&w);
	check_int(members(&w, "a"), 1);
	check_u64(group_cpu(&w, "a"), cpu_us(p.pid));
	check_u64(starts(&w, "a"), 1);
	puppet_end(&p);
	watch_close(&w);
}

static void born_unseen(void)
{
	in_child(born_unseen_child);
}

enum {
	HIGH = 4096, /* where kept descriptors begin */
};

/* Open descriptors from `low` to `high`. */
static unsigned count_fds_between(int low, int high)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	unsigned n = 0;

	while (dir && (e = readdir(dir)))
		n += atoi(e->d_name) >= low && atoi(e->d_name) <= high;
	if (dir)
		closedir(dir);
	return n;
}

static int high_descriptors_child(void)
{
	enum { N = 1000, N_ACTIVE = 200 };
	pid_t pids[N];
	struct watch w;
	unsigned n_low = count_fds_between(1, 63), n_high;
	unsigned n_between = count_fds_between(64, HIGH - 1);
	int fd;

	crowd_new("lt-a@", true, pids, N_ACTIVE);
	crowd_new("lt-a@", false, pids + N_ACTIVE, N - N_ACTIVE);
	watch_open(&w, RULES_AB);
	for (unsigned i = 0; i < 5; i++) {
		tick(&w);
		pause_ms(50);
	}
	check_int(members(&w, "a"), N);
	fd = open("/dev/null", O_RDONLY);
	check(fd >= 0 && fd < 64);
	close(fd);
	check_u64(count_fds_between(64, HIGH - 1), n_between);
	/* Some of each that runs; none of who does not. */
	n_high = count_fds_between(HIGH, INT_MAX);
	check(n_high >= N_ACTIVE);
	check(n_high <= 5 * N_ACTIVE);
	crowd_end(pids, N);
	tick(&w);
	check_int(members(&w, "a"), 0);
	watch_close(&w);
	check_u64(count_fds_between(HIGH, INT_MAX), 0);
	check_u64(count_fds_between(1, 63), n_low);
	return tap.failed;
}

static void high_descriptors(void)
{
	struct rlimit rl;

	if (can(getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_max >= 2 * HIGH,
		"the limit on descriptors is low"))
		in_namespace(high_descriptors_child);
}

/* --- The gate, and sums --- */

#define RULES_CHURN                                                            \
	"other: {action: drop}\n"                                              \
	"rules:\n"                                                             \
	"- {name: a, comm: lt-a@}\n"                                           \
	"- {name: b, comm: lt-b@}\n"                                           \
	"- {name: c, exe: 'glob:lt-*@'}\n"                                     \
	"- {name: rest, comm: 'glob:lt-*@'}\n"                                 \
	"defaults: {collect: {ctx: true, reaped: true, rss_split: true,\n"     \
	"                     fd_limit: true, pss: false}}\n"

enum {
	CHURN_MAX = 24,
};

struct churn {
	struct puppet puppet[CHURN_MAX];
	uint64_t cpu[CHURN_MAX]; /* when last asked */
	bool zombie[CHURN_MAX];
	size_t n;
	unsigned round;
	uint64_t grown; /* by those alive at both, and those born in between */
};

static void churn_add(struct churn *c, const char *name)
{
	c->puppet[c->n] = puppet_new(name, 0);
	c->cpu[c->n] = 0;
	c->zombie[c->n] = false;
	c->n++;
}

/* What it did after the last tick is nobody's any more. */
static void churn_remove(struct churn *c, size_t i)
{
	close(c->puppet[i].fd);
	if (!c->zombie[i])
		kill(c->puppet[i].pid, SIGKILL);
	reap(c->puppet[i].pid);
	c->n--;
	c->puppet[i] = c->puppet[c->n];
	c->cpu[i] = c->cpu[c->n];
	c->zombie[i] = c->zombie[c->n];
}

static void churn_kill(struct churn *c, size_t i)
{
	struct facts f;

	kill(c->puppet[i].pid, SIGKILL);
	/* The leader is one before its threads have ended. */
	while (read_facts(c->puppet[i].pid, &f) && f.threads > 1)
		pause_ms(1);
	check(wait_state(c->puppet[i].pid, 'Z'));
	c->zombie[i] = true;
}

static void churn_order(const struct churn *c, size_t i, unsigned what)
{
	static const char *const names[] = {"lt-a@", "lt-b@", "lt-c@"};
	const struct puppet *p = &c->puppet[i];
	char path[96];

	switch (what % 9) {
	case 0:
		order(p, BURN, 33);
		break;
	case 1:
		order(p, BURN, 3);
		order_text(p, NAME, names[(c->round + i) % 3]);
		break;
	case 2:
		order(p, THREAD_BURN, 7);
		break;
	case 3:
		order(p, TOUCH, 300000);
		break;
	case 4:
		order(p, IO, 200000);
		break;
	case 5:
		snprintf(path, sizeof(path), "%s/%s", work_dir,
			 names[(c->round + i) % 3]);
		order_text(p, EXEC, path);
		order(p, BURN, 5);
		break;
	case 6:
		order(p, THREADS, 1);
		break;
	default: /* does nothing in this round */
		break;
	}
}

/* One round of births, work and deaths; all sleep or are dead afterwards. */
static void churn_go(struct churn *c)
{
	c->round++;
	while (c->n > 14)
		churn_remove(c, (c->round * 7) % c->n);
	for (size_t i = 0; i < c->n; i++)
		if (c->zombie[i] && c->round % 2)
			churn_remove(c, i);
	for (size_t i = 0; i < c->n; i++)
		if (!c->zombie[i])
			churn_order(c, i, c->round + (unsigned)i * 5);
	churn_add(c, c->round % 2 ? "lt-a@" : "lt-b@");
	churn_add(c, "lt-c@");
	order(&c->puppet[c->n - 1], BURN, 9);
	churn_add(c, "lt-b@");
	if (c->round % 3 == 0)
		churn_kill(c, c->round % c->n);
}

static void churn_measure(struct churn *c)
{
	for (size_t i = 0; i < c->n; i++) {
		uint64_t now = cpu_us(c->puppet[i].pid);

		check(now >= c->cpu[i]);
		c->grown += now - c->cpu[i];
		c->cpu[i] = now;
	}
}

static void churn_end(struct churn *c)
{
	while (c->n)
		churn_remove(c, c->n - 1);
}

static uint64_t all_cpu(const struct watch *w)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->v[i].type, "ps_cputime") && !w->v[i].instance[0])
			sum += w->v[i].u;
	return sum;
}

static void conservation(void)
{
	struct churn c = {.n = 0};
	struct watch w;
	uint64_t last = 0, in_group[4] = {0};
	static const char *const groups[] = {"a", "b", "c", "rest"};

	watch_open(&w, RULES_CHURN);
	churn_go(&c);
	tick(&w);
	churn_measure(&c); /* what was before the first tick */
	c.grown = 0;
	check_u64(all_cpu(&w), 0);
	for (unsigned i = 0; i < 24; i++) {
		churn_go(&c);
		tick(&w);
		churn_measure(&c);
		check_u64(all_cpu(&w), c.grown);
		check(all_cpu(&w) >= last);
		last = all_cpu(&w);
		for (size_t g = 0; g < 4; g++) {
			check(group_cpu(&w, groups[g]) >= in_group[g]);
			in_group[g] = group_cpu(&w, groups[g]);
		}
	}
	check(last > 500000);
	for (size_t g = 0; g < 4; g++)
		check(g == 2 || in_group[g] > 0);
	churn_end(&c);
	watch_close(&w);
}

static const struct value *same_value(const struct watch *w,
				      const struct value *v, size_t at)
{
	/* Groups are told in the order in which they came to be. */
	for (size_t i = 0; i < w->n; i++) {
		const struct value *o = &w->v[(at + i) % w->n];

		if (!strcmp(o->group, v->group) && !strcmp(o->type, v->type) &&
		    !strcmp(o->instance, v->instance) && !strcmp(o->ds, v->ds))
			return o;
	}
	return NULL;
}

static void compare(const struct watch *on, const struct watch *off)
{
	check_u64(on->n, off->n);
	for (size_t i = 0; i < on->n; i++) {
		const struct value *v = &on->v[i];
		const struct value *o = same_value(off, v, i);

		if (strcmp(v->group, "_self") == 0)
			continue;
		if (o && v->derive == o->derive && v->u == o->u && v->d == o->d)
			continue;
		tap_fail(__FILE__, __LINE__,
			 "%s/%s-%s %s: with gate %" PRIu64 " %g, "
			 "without %" PRIu64 " %g",
			 v->group, v->type, v->instance, v->ds, v->u, v->d,
			 o ? o->u : 0, o ? o->d : (double)NAN);
	}
}

static int gate_child(void)
{
	struct churn c = {.n = 0};
	struct watch on, off;
	struct monitor_figures f_on, f_off;
	uint64_t saved = 0;

	watch_open(&on, RULES_CHURN);
	watch_open(&off, RULES_CHURN "sampling: {gate: off}\n");
	churn_go(&c);
	for (unsigned i = 0; i < 24; i++) {
		struct moment now = clocks_now();

		tick_at(&on, &now);
		tick_at(&off, &now);
		compare(&on, &off);
		monitor_get_figures(on.m, &f_on);
		monitor_get_figures(off.m, &f_off);
		check_u64(f_off.n_looked, f_off.n_processes);
		check(f_on.n_looked <= f_on.n_processes);
		saved += f_on.n_processes - f_on.n_looked;
		churn_go(&c);
	}
	check(f_on.gate && !f_off.gate);
	check(saved > 0);
	check(all_cpu(&on) > 0);
	churn_end(&c);
	watch_close(&on);
	watch_close(&off);
	return tap.failed;
}

static void gate(void)
{
	in_namespace(gate_child);
}

/* --- What a tick costs --- */

static int no_allocation_child(void)
{
	enum { N = 60 };
	static const char rules[] =
	    "rules: [{name: a, exe: 'glob:*lifetime*', collect: {ctx: true,\n"
	    "         rss_split: true, fd_limit: true, reaped: true}}]\n";
	pid_t pids[N];
	struct watch w;

	crowd_new("lt-a@", true, pids, N / 2);
	crowd_new("lt-a@", false, pids + N / 2, N / 2);
	watch_open(&w, rules);
	for (unsigned i = 0; i < 20; i++) {
		struct moment now = clocks_now();
		uint64_t n = alloccount_calls();

		w.n = 0;
		check_int(monitor_tick(w.m, &now, on_value, &w), 0);
		n = alloccount_calls() - n;
		if (i > 5) /* what is kept has grown to its size by then */
			check_u64(n, 0);
		pause_ms(30);
	}
	check_int(members(&w, "a"), N + 1);
	crowd_end(pids, N);
	watch_close(&w);
	return tap.failed;
}

static void no_allocation(void)
{
	void *volatile p = malloc(1);

	free(p);
	if (alloccount_calls())
		in_namespace(no_allocation_child);
	else
		tap_skip("allocations are not counted in this build");
}

static bool is_traced(void)
{
	char text[4096];
	ssize_t n;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[MAX(n, (ssize_t)0)] = '\0';
	return n > 0 && !strstr(text, "\nTracerPid:\t0\n");
}

/* strace -c of ourselves into a file; its pid. */
static pid_t start_strace(const char *path)
{
	pid_t pid;
	unsigned i;

	pid = fork();
	if (pid == 0) {
		char target[12];
		int null = open("/dev/null", O_WRONLY);

		snprintf(target, sizeof(target), "%d", (int)getppid());
		dup2(null, STDERR_FILENO);
		execlp("strace", "strace", "-c", "-f", "-o", path, "-p", target,
		       NULL);
		_exit(1);
	}
	for (i = 0; i < 500 && !is_traced(); i++)
		pause_ms(10);
	check(i < 500);
	return pid;
}

/* Calls by strace's table: all of them, or those of one name. */
static long strace_calls(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	char line[256];
	long found = -1;

	while (f && fgets(line, sizeof(line), f)) {
		char column[6][64];
		int n = sscanf(line, "%63s %63s %63s %63s %63s %63s", column[0],
			       column[1], column[2], column[3], column[4],
			       column[5]);

		if (n >= 5 && !strcmp(column[n - 1], name))
			found = atol(column[3]);
	}
	if (f)
		fclose(f);
	return found;
}

enum {
	N_IDLE = 500,
	N_TICKS = 20,
};

static int idle_calls_child(void)
{
	pid_t pids[N_IDLE], tracer = -1;
	struct watch w;
	struct monitor_figures before, after;
	bool traced = access("/usr/bin/strace", X_OK) == 0;
	char path[96];
	uint64_t n;

	snprintf(path, sizeof(path), "%s/calls", work_dir);
	crowd_new("lt-a@", false, pids, N_IDLE);
	/* Its memory map is read in a lane, now and then. */
	watch_open(&w, "defaults: {collect: {pss: false}}\n" RULES_AB);
	for (unsigned i = 0; i < 4; i++)
		tick(&w);
	check_int(members(&w, "a"), N_IDLE);
	if (can(traced, "no strace"))
		tracer = start_strace(path);
	tick(&w);
	tick(&w);
	monitor_get_figures(w.m, &before);
	for (unsigned i = 0; i < N_TICKS; i++)
		tick(&w);
	monitor_get_figures(w.m, &after);
	n = after.n_processes;
	check(after.gate);
	check(n >= N_IDLE + 1);

	/* A clock each, and the listing: a seek and two or three reads. */
	check(after.n_idle_calls - before.n_idle_calls >= N_TICKS * n);
	check(after.n_idle_calls - before.n_idle_calls <= N_TICKS * (n + 6));
	/* Two run, ourselves and who traces us; they are looked at. */
	check(after.n_calls - before.n_calls <= N_TICKS * (n + 6 + 2 * 8));
	if (tracer > 0) {
		long clocks, all;

		kill(tracer, SIGINT);
		reap(tracer);
		clocks = strace_calls(path, "clock_gettime");
		all = strace_calls(path, "total");
		/* With the two ticks before, and no others. */
		check(clocks >= (long)(N_TICKS * n));
		check(clocks <= (long)((N_TICKS + 2) * (n + 8)));
		check(all <= (long)((N_TICKS + 2) * (n + 60)) + 200);
		printf("# strace: %.3f calls per process and tick, %.3f of "
		       "them clocks\n",
		       (double)all / (N_TICKS + 2) / (double)n,
		       (double)clocks / (N_TICKS + 2) / (double)n);
	}
	printf(
	    "# figures: %.3f calls per process and tick, %.3f of them idle\n",
	    (double)(after.n_calls - before.n_calls) / N_TICKS / (double)n,
	    (double)(after.n_idle_calls - before.n_idle_calls) / N_TICKS /
		(double)n);
	crowd_end(pids, N_IDLE);
	watch_close(&w);
	return tap.failed;
}

static void idle_calls(void)
{
	in_namespace(idle_calls_child);
}

/* Programs by names of ours: links to this one. */
static void make_programs(void)
{
	static const char *const names[] = {"lt-a@", "lt-b@", "lt-c@", "lt-d@"};
	char self[512], path[96], name[32];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0 || !mkdtemp(work_dir))
		exit(1);
	self[n] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", work_dir,
			 own(names[i], name, sizeof(name)));
		if (symlink(self, path) < 0)
			exit(1);
	}
}

static void remove_programs(void)
{
	DIR *dir = opendir(work_dir);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(work_dir);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--puppet") == 0) {
		int fd = atoi(argv[2]);

		send(fd, "", 1, 0);
		obey(fd);
	}
	snprintf(own_number, sizeof(own_number), "%d", (int)getpid());
	make_programs();
	TEST("what is born before our eyes counts whole, the rest from then on",
	     born);
	TEST("with exec it joins another group and leaves behind what it used",
	     execs);
	TEST("a new name moves it", renamed);
	TEST("a zombie has its last CPU time and no memory; reaped, it is gone",
	     killed_and_reaped);
	TEST("a reused pid starts from zero", reused_pid);
	TEST("a process without its leader lives on in all values",
	     dead_leader);
	TEST("threads are counted, and what ended ones used", threads);
	TEST("open descriptors are counted", descriptors);
	TEST("another user moves it", other_user);
	TEST("kernel threads are for rules that ask for them", kernel_threads);
	TEST("with 64 descriptors 300 processes are seen, and nothing leaks",
	     few_descriptors);
	TEST("what was born when no descriptor was left is seen later, whole",
	     born_unseen);
	TEST("kept descriptors are high, others' are low", high_descriptors);
	TEST("groups grow by just what their processes used", conservation);
	TEST("with and without the gate all values are the same", gate);
	TEST("a steady tick allocates nothing", no_allocation);
	TEST("an idle process costs one system call", idle_calls);
	remove_programs();
	return tap_done();
}
