/* SPDX-License-Identifier: MIT */
/*
 * Processes that fork, exec, rename themselves, end, are killed, become
 * zombies and orphans, and get the numbers of others, while the rules change
 * under them: no counter of any group may step back from one tick to the next.
 * Every value that was ever told is kept and compared.
 *
 *	soak.t [SECONDS]
 */
#include "clocks.h"
#include "monitor.h"
#include "tap.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
	SECONDS = 20,
	TICK_MS = 100,
	TICKS_PER_RELOAD = 7,
	N_KEEPERS = 3,
	CHILDREN_MAX = 30,
	VALUES_MAX = 1 << 16,
	PAGE = 4096,
};

static const char *const names[] = {"soak-a", "soak-b", "soak-c", "soak-d"};

/* The same groups and others, by other ways. */
static const char *const rules[] = {
    "defaults: {idle_timeout: 1d, collect: {exited: true, reaped: true,\n"
    "  ctx: true, pss: false}}\n"
    "rules:\n"
    "  - {name: \"{{.Comm}}\", comm: 'glob:soak-[ab]'}\n"
    "  - {name: keeper, comm: soak-keeper, per_process: {by: slot}}\n"
    "views: {user: {by: user}}\n",

    "defaults: {idle_timeout: 1d, collect: {exited: true, reaped: true,\n"
    "  io: false, pss: false}}\n"
    "rules:\n"
    "  - {name: soak-a, comm: soak-b, children: none}\n"
    "  - {name: soak-b, comm: [soak-a, soak-c],\n"
    "     per_process: {by: slot, top: {by: cpu, n: 3}}}\n"
    "  - {name: ran, exe_path: 'glob:*/true'}\n"
    "  - {action: drop, comm: soak-d}\n",

    "defaults: {idle_timeout: 1d, children: none, collect: {ctx: true,\n"
    "  pss: false}}\n"
    "rules:\n"
    "  - {name: keeper, parent: {comm: soak-keeper}}\n"
    "  - {name: soak-d, ancestor: {comm: soak-keeper}}\n"
    "views: {user: {by: user}, all: {rules: [{name: all, any: true}]}}\n",
};

/* Below here a keeper and its children. */

static unsigned dice(unsigned n)
{
	return (unsigned)random() % n;
}

static void pause_us(unsigned us)
{
	struct timespec ts = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

static void rename_self(void)
{
	prctl(PR_SET_NAME, names[dice(ARRAY_SIZE(names))]);
}

static void spin(unsigned us)
{
	uint64_t end = clocks_process_cpu() + (uint64_t)us * 1000;

	while (clocks_process_cpu() < end)
		;
}

static void use_memory_and_files(void)
{
	size_t n = dice(200) + 1;
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char *m = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; m != MAP_FAILED && i < n; i++)
		m[i * PAGE] = 1;
	if (fd >= 0 && m != MAP_FAILED && write(fd, m, n * PAGE) < 0)
		_exit(1);
}

static void *thread(_unused_ void *arg)
{
	spin(dice(1000));
	pause_us(dice(200000));
	_exit(0);
}

static void exec_something(void)
{
	if (dice(2))
		execl("/bin/true", "true", NULL);
	else
		execl("/bin/sleep", "sleep", "0.15", NULL);
	_exit(127);
}

_Noreturn static void live(void)
{
	pthread_t t;

	srandom((unsigned)getpid() ^ (unsigned)clocks_read(CLOCK_MONOTONIC));
	for (unsigned i = dice(4); i-- > 0;) {
		rename_self();
		spin(dice(2000));
		use_memory_and_files();
		if (dice(3) == 0 && fork() == 0) {
			spin(dice(1000));
			_exit(0);
		}
		pause_us(dice(100000));
		if (dice(2))
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
	}
	if (dice(4) == 0)
		exec_something();
	/* The leader ends before its thread. */
	if (dice(4) == 0 && pthread_create(&t, NULL, thread, NULL) == 0)
		syscall(SYS_exit, 0);
	_exit(0);
}

/* A child with that number, or with any. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
	    .exit_signal = SIGCHLD,
	    .set_tid = (uint64_t)(uintptr_t)&pid,
	    .set_tid_size = 1,
	};
	pid_t child =
	    pid ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : -1;

	return child < 0 ? fork() : child;
}

_Noreturn static void keep_zoo(void)
{
	pid_t child[CHILDREN_MAX], freed = 0;
	unsigned n = 0;

	setpgid(0, 0);
	prctl(PR_SET_NAME, "soak-keeper");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srandom((unsigned)getpid());
	for (;;) {
		pause_us(dice(40000));
		if (n < CHILDREN_MAX && dice(2)) {
			child[n] = fork_as(dice(3) ? 0 : freed);
			if (child[n] == 0)
				live();
			n += child[n] > 0;
		}
		if (n && dice(10) == 0)
			kill(child[dice(n)], SIGKILL);
		if (n && dice(3) == 0) {
			unsigned i = dice(n);

			if (waitpid(child[i], NULL, WNOHANG) > 0) {
				freed = child[i];
				child[i] = child[--n];
			}
		}
	}
}

/* From here on who watches. */

struct value {
	char *id;
	uint64_t last;
};

static struct {
	char dir[64], path[96];
	struct monitor *monitor;
	struct hsearch_data by_id;
	struct value *value;
	size_t n;
	unsigned tick;
	uint64_t n_checked, n_starts, exited_us;
	bool has_records;
} t;

static struct value *value_of(char *id)
{
	ENTRY want = {.key = id}, *found;

	if (hsearch_r(want, FIND, &found, &t.by_id))
		return found->data;
	if (t.n == VALUES_MAX)
		return NULL;
	t.value[t.n] = (struct value){.id = strdup(id)};
	want.key = t.value[t.n].id;
	want.data = &t.value[t.n];
	if (!want.key || !hsearch_r(want, ENTER, &found, &t.by_id))
		return NULL;
	return &t.value[t.n++];
}

static void take(_unused_ void *arg, const struct value_out *v)
{
	if (strcmp(v->group, "_self") == 0 && v->instance &&
	    strcmp(v->instance, "exit_records") == 0)
		t.has_records = v->d[0] > 0;
	for (unsigned i = 0; v->derive && i < v->n; i++) {
		struct value *was;
		char id[256];

		snprintf(id, sizeof(id), "%s/%s-%s:%s", v->group, v->type,
			 v->instance ? v->instance : "", v->ds[i]);
		was = value_of(id);
		if (!was) {
			check(!"room for values");
			continue;
		}
		if (v->u[i] < was->last)
			tap_fail(__FILE__, __LINE__,
				 "tick %u: %s steps back from %" PRIu64
				 " to %" PRIu64,
				 t.tick, id, was->last, v->u[i]);
		was->last = v->u[i];
		t.n_checked++;
	}
}

static void write_rules(unsigned i)
{
	char beside[112];
	FILE *f;

	snprintf(beside, sizeof(beside), "%s.new", t.path);
	f = fopen(beside, "w");
	if (!f)
		return;
	fputs(rules[i % ARRAY_SIZE(rules)], f);
	fclose(f);
	rename(beside, t.path);
}

static uint64_t last_of(const char *id)
{
	for (size_t i = 0; i < t.n; i++)
		if (strcmp(t.value[i].id, id) == 0)
			return t.value[i].last;
	return 0;
}

static void tick(void)
{
	struct monitor_event e;
	struct moment now = clocks_now();

	if (t.tick % TICKS_PER_RELOAD == 0)
		write_rules(t.tick / TICKS_PER_RELOAD);
	t.tick++;
	check_int(monitor_tick(t.monitor, &now, take, NULL), 0);
	while (monitor_take_event(t.monitor, &e))
		if (e.level == MONITOR_ERROR)
			tap_fail(__FILE__, __LINE__, "%s", e.text);
}

static unsigned seconds = SECONDS;

static void watch(void)
{
	struct monitor_options o = {.rules_path = t.path};
	uint64_t end = clocks_read(CLOCK_MONOTONIC) + seconds * NSEC_PER_SEC;
	pid_t keeper[N_KEEPERS];

	/* Orphans come to us. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	write_rules(0);
	check_int(monitor_open(&o, &t.monitor), 0);
	for (unsigned i = 0; i < N_KEEPERS; i++) {
		keeper[i] = fork();
		if (keeper[i] == 0)
			keep_zoo();
		setpgid(keeper[i], keeper[i]);
	}
	while (t.monitor && clocks_read(CLOCK_MONOTONIC) < end) {
		tick();
		pause_us(TICK_MS * 1000);
		if (t.tick % 3 == 0)
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
	}
	for (unsigned i = 0; i < N_KEEPERS; i++)
		kill(-keeper[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	tick();
	printf("# %u ticks, %" PRIu64 " values of %zu counters, %s\n", t.tick,
	       t.n_checked, t.n,
	       t.has_records ? "with exit records" : "without exit records");
	/* Something happened. */
	check(last_of("keeper/total_operations-starts:value") > 0);
	check(last_of("soak-a/total_operations-starts:value") > seconds);
	/* They live so short that stat tells of no clock tick of theirs. */
	if (t.has_records) {
		check(last_of("soak-b/ps_cputime-:user") > 0);
		check(last_of("soak-b/ps_cputime-exited:user") > 0);
	}
}

static void soak(void)
{
	strcpy(t.dir, "/tmp/proctally-soak-XXXXXX");
	t.value = calloc(VALUES_MAX, sizeof(*t.value));
	if (!t.value || !hcreate_r(2 * VALUES_MAX, &t.by_id) ||
	    !mkdtemp(t.dir)) {
		check(!"begun");
		return;
	}
	snprintf(t.path, sizeof(t.path), "%s/rules.yaml", t.dir);
	watch();
	monitor_free(t.monitor);
	unlink(t.path);
	rmdir(t.dir);
	for (size_t i = 0; i < t.n; i++)
		free(t.value[i].id);
	free(t.value);
	hdestroy_r(&t.by_id);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = (unsigned)MAX(atoi(argv[1]), 1);
	TEST("no counter of any group steps back, whatever processes do", soak);
	return tap_done();
}
