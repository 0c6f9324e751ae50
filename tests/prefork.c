/* SPDX-License-Identifier: MIT */
/*
 * PSS of real processes: a parent and children that share its memory copy on
 * write, and many small ones. The monitor is given a clock of its own, so that
 * nobody waits.
 *
 * PREFORK_MIB says how much they share, 96 MiB without it.
 */
#include "alloccount.h"
#include "clocks.h"
#include "monitor.h"
#include "tap.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	N_CHILDREN = 50,
	OWN_KIB = 256,	 /* that each child changes */
	N_MANY = 150,	 /* read in one tick */
	TICKS_MAX = 200, /* of 10 s */
};

#define MIB (1024.0 * 1024)

static size_t shared_size(void)
{
	const char *mib = getenv("PREFORK_MIB");

	return (mib ? strtoul(mib, NULL, 10) : 96) << 20;
}

static void pause_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000,
			      .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

/* --- The processes --- */

struct prefork {
	pid_t parent;
	int to, from; /* pipes */
};

static void die_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

static void be_child(char *memory, unsigned number, int out)
{
	die_with_parent(getppid());
	memset(memory + (size_t)number * OWN_KIB * 1024, 2, OWN_KIB * 1024);
	if (write(out, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* Tells when it is ready, and for each byte that it gets has children. */
static void be_parent(pid_t tester, int in, int out)
{
	size_t size = shared_size();
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[16], byte;

	die_with_parent(tester);
	snprintf(name, sizeof(name), "pf.%d", (int)tester);
	prctl(PR_SET_NAME, name);
	if (memory == MAP_FAILED)
		_exit(1);
	madvise(memory, size, MADV_NOHUGEPAGE);
	memset(memory, 1, size);
	if (write(out, "", 1) != 1)
		_exit(1);
	while (read(in, &byte, 1) == 1)
		for (unsigned i = 0; i < N_CHILDREN; i++)
			if (fork() == 0)
				be_child(memory, i, out);
	_exit(0);
}

static void wait_ready(const struct prefork *f, unsigned n)
{
	char byte;

	while (n--)
		check_int(read(f->from, &byte, 1), 1);
}

static void prefork_new(struct prefork *f)
{
	pid_t tester = getpid();
	int in[2], out[2];

	check_int(pipe2(in, O_CLOEXEC), 0);
	check_int(pipe2(out, O_CLOEXEC), 0);
	f->parent = fork();
	if (f->parent == 0) {
		close(in[1]);
		be_parent(tester, in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	f->to = in[1];
	f->from = out[0];
	wait_ready(f, 1);
}

static void prefork_fork(const struct prefork *f)
{
	check_int(write(f->to, "f", 1), 1);
	wait_ready(f, N_CHILDREN);
}

/* Its children go with it. */
static void prefork_end(const struct prefork *f)
{
	kill(f->parent, SIGKILL);
	check_int(waitpid(f->parent, NULL, 0), f->parent);
	close(f->to);
	close(f->from);
}

/* In bytes; that of the process with key "Pss:" or "Rss:". */
static double read_directly(pid_t pid, const char *key)
{
	char path[64], line[256];
	double kib = NAN;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			kib = atof(line + strlen(key));
	if (f)
		fclose(f);
	return kib * 1024;
}

static double sum_directly(const struct prefork *f, const char *key)
{
	double sum = read_directly(f->parent, key);
	char path[64];
	FILE *list;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
		 (int)f->parent, (int)f->parent);
	list = fopen(path, "re");
	while (list && fscanf(list, "%d", &pid) == 1)
		sum += read_directly(pid, key);
	if (list)
		fclose(list);
	return sum;
}

static bool is_possible(void)
{
	double free_kib = 0;
	char line[256];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "MemAvailable: %lf", &free_kib);
	if (f)
		fclose(f);
	if (isnan(read_directly(getpid(), "Pss:"))) {
		tap_skip("no smaps_rollup");
		return false;
	}
	if (free_kib * 1024 < 2.0 * (double)shared_size()) {
		tap_skip("not enough memory");
		return false;
	}
	return true;
}

/* --- The monitor --- */

struct watch {
	struct monitor *m;
	int rules_fd;
	struct moment now;
	double processes, rss, pss, uss, pss_read; /* NAN: not told */
	double most_pss;			   /* in all ticks */
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

	if (strcmp(v->group, "prefork") != 0)
		return;
	take(&w->processes, v, "ps_count", "");
	take(&w->rss, v, "ps_rss", "");
	take(&w->pss, v, "memory", "pss");
	take(&w->uss, v, "memory", "uss");
	take(&w->pss_read, v, "count", "pss_read");
}

static void watch_open(struct watch *w)
{
	char path[32], rules[256];
	struct monitor_options o = {.rules_path = path};

	memset(w, 0, sizeof(*w));
	w->now = clocks_now();
	snprintf(rules, sizeof(rules),
		 "defaults: {collect: {pss: {every: 1s, max_age: 1s}}}\n"
		 "other: {action: drop}\n"
		 "rules: [{name: prefork, comm: pf.%d}]\n",
		 (int)getpid());
	w->rules_fd = memfd_create("rules", MFD_CLOEXEC);
	check_int(write(w->rules_fd, rules, strlen(rules)),
		  (ssize_t)strlen(rules));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", w->rules_fd);
	check_int(monitor_open(&o, &w->m), 0);
}

static void watch_close(struct watch *w)
{
	monitor_free(w->m);
	close(w->rules_fd);
}

/* 10 s later, as the monitor sees it; what it has read aside is ready then. */
static void tick(struct watch *w)
{
	w->processes = w->rss = w->pss = w->uss = w->pss_read = (double)NAN;
	w->now.mono_ns += 10 * NSEC_PER_SEC;
	w->now.boot_ns += 10 * NSEC_PER_SEC;
	w->now.real_ns += 10 * NSEC_PER_SEC;
	check_int(monitor_tick(w->m, &w->now, on_value, w), 0);
	if (w->pss > w->most_pss)
		w->most_pss = w->pss;
	pause_ms(50);
}

static void tick_until_read(struct watch *w, unsigned n)
{
	unsigned ticks = 0;

	do
		tick(w);
	while (!(w->pss_read >= n) && ++ticks < TICKS_MAX);
	check_int((int)w->pss_read, (int)n);
}

static bool is_near(double a, double b, double percent)
{
	return fabs(a - b) <= fabs(b) * percent / 100;
}

static void shared_once(void)
{
	struct prefork f;
	struct watch w;
	double pss, uss, size = (double)shared_size();

	if (!is_possible())
		return;
	prefork_new(&f);
	prefork_fork(&f);
	watch_open(&w);
	tick_until_read(&w, N_CHILDREN + 1);
	pss = sum_directly(&f, "Pss:");
	uss = sum_directly(&f, "Private_Dirty:") +
	      sum_directly(&f, "Private_Clean:");
	printf("# shared %.0f MiB: RSS %.0f, PSS %.1f, read directly %.1f\n",
	       size / MIB, w.rss / MIB, w.pss / MIB, pss / MIB);
	check_int((int)w.processes, N_CHILDREN + 1);
	check(w.rss >= N_CHILDREN * size);
	check(is_near(w.pss, pss, 5));
	check(is_near(w.uss, uss, 5));
	check(w.pss < 1.5 * size);
	/* Nor was it more while some of them were not read yet. */
	check(is_near(w.most_pss, pss, 10));
	watch_close(&w);
	prefork_end(&f);
}

static void no_jump_by_fork(void)
{
	struct prefork f;
	struct watch w;
	double size = (double)shared_size();

	if (!is_possible())
		return;
	prefork_new(&f);
	watch_open(&w);
	tick_until_read(&w, 1);
	check(is_near(w.pss, size, 10));
	prefork_fork(&f);
	tick_until_read(&w, N_CHILDREN + 1);
	printf("# at most %.1f MiB\n", w.most_pss / MIB);
	check(w.rss >= N_CHILDREN * size);
	/* What it had alone counts until it is read again, but only once. */
	check(w.most_pss < 2.5 * size);
	for (unsigned i = 0; i < 8; i++)
		tick(&w);
	check(is_near(w.pss, sum_directly(&f, "Pss:"), 5));
	watch_close(&w);
	prefork_end(&f);
}

static void read_without_heap(void)
{
	pid_t tester = getpid(), pid[N_MANY];
	uint64_t least = UINT64_MAX;
	char name[16];
	struct watch w;

	free(malloc(1));
	if (!alloccount_calls() || isnan(read_directly(tester, "Pss:"))) {
		tap_skip("allocations are not counted, or no smaps_rollup");
		return;
	}
	snprintf(name, sizeof(name), "pf.%d", (int)tester);
	for (unsigned i = 0; i < N_MANY; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			die_with_parent(tester);
			prctl(PR_SET_NAME, name);
			for (;;)
				pause();
		}
	}
	pause_ms(100);
	watch_open(&w);
	tick_until_read(&w, N_MANY);
	for (unsigned i = 0; i < 12; i++) {
		uint64_t n = alloccount_calls();

		tick(&w);
		n = alloccount_calls() - n;
		least = MIN(least, n);
		check_int((int)w.pss_read, N_MANY);
	}
	/* Who is born elsewhere on the host takes some. */
	check(least < N_MANY / 4);
	watch_close(&w);
	for (unsigned i = 0; i < N_MANY; i++) {
		kill(pid[i], SIGKILL);
		check_int(waitpid(pid[i], NULL, 0), pid[i]);
	}
}

int main(void)
{
	TEST("what fifty children share with their parent counts once",
	     shared_once);
	TEST(
	    "who forks fifty children does not seem to use fifty times as much",
	    no_jump_by_fork);
	TEST("reading more than a hundred in a tick takes no memory for them",
	     read_without_heap);
	return tap_done();
}
