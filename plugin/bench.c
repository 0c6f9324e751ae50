/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "alloccount.h"
#include "clocks.h"
#include "events.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
	WARM_UP = 4, /* ticks that are not measured */
	COUNT_MAX = 1000,
	BUF_SIZE = 64 * 1024,
};

/* One process as the bare loop knows it. */
struct bare_proc {
	pid_t pid;
	uint64_t clock;
	int dir_fd, stat_fd, io_fd; /* -1 until it is seen to run */
};

struct bare {
	int root_fd;
	struct bare_proc *proc, *spare;
	size_t n, cap, spare_cap;
	char buf[BUF_SIZE], list[BUF_SIZE];
	bool clocks; /* skip what did not run */
	bool others; /* io and the number of descriptors, too */
	size_t n_active;
};

struct samples {
	double v[COUNT_MAX];
	unsigned n;
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(struct samples *s)
{
	if (!s->n)
		return 0;
	qsort(s->v, s->n, sizeof(s->v[0]), compare_doubles);
	return s->v[s->n / 2];
}

static int open_below(int dir_fd, const char *name)
{
	return openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
}

static void bare_read(struct bare *b, struct bare_proc *p)
{
	char path[24];
	struct stat st;

	if (p->dir_fd < 0) {
		snprintf(path, sizeof(path), "%d", (int)p->pid);
		p->dir_fd = open_below(b->root_fd, path);
		p->stat_fd = open_below(p->dir_fd, "stat");
		p->io_fd = open_below(p->dir_fd, "io");
	}
	if (pread(p->stat_fd, b->buf, BUF_SIZE, 0) < 0)
		return;
	b->n_active++;
	if (b->others && (pread(p->io_fd, b->buf, BUF_SIZE, 0) < 0 ||
			  fstatat(p->dir_fd, "fd", &st, 0) < 0))
		return;
}

static void bare_visit(struct bare *b, struct bare_proc *p)
{
	struct timespec ts = {0};
	uint64_t clock;

	if (b->clocks) {
		clock_gettime((clockid_t)((~(unsigned)p->pid << 3) | 2u), &ts);
		clock =
		    (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
		if (clock == p->clock)
			return;
		p->clock = clock;
	}
	bare_read(b, p);
}

static void bare_forget(struct bare_proc *p)
{
	base_closep(&p->dir_fd);
	base_closep(&p->stat_fd);
	base_closep(&p->io_fd);
}

/* One pass: the listing of procfs is sorted, so is our array. */
static void bare_pass(struct bare *b)
{
	size_t n = 0, old = 0;
	ssize_t got;

	b->n_active = 0;
	lseek(b->root_fd, 0, SEEK_SET);
	while ((got = getdents64(b->root_fd, b->list, BUF_SIZE)) > 0) {
		for (ssize_t at = 0; at < got;) {
			struct dirent64 *e = (void *)(b->list + at);
			pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

			at += e->d_reclen;
			if (pid <= 0 ||
			    array_reserve(&b->spare, &b->spare_cap, n + 1,
					  sizeof(*b->spare)) < 0)
				continue;
			while (old < b->n && b->proc[old].pid < pid)
				bare_forget(&b->proc[old++]);
			if (old < b->n && b->proc[old].pid == pid)
				b->spare[n] = b->proc[old++];
			else
				b->spare[n] =
				    (struct bare_proc){pid, 0, -1, -1, -1};
			bare_visit(b, &b->spare[n++]);
		}
	}
	for (; old < b->n; old++)
		bare_forget(&b->proc[old]);
	struct bare_proc *proc = b->proc;
	size_t cap = b->cap;

	b->proc = b->spare;
	b->cap = b->spare_cap;
	b->spare = proc;
	b->spare_cap = cap;
	b->n = n;
}

static double bare_cost(struct bare *b)
{
	uint64_t cpu = clocks_process_cpu();

	bare_pass(b);
	return (double)(clocks_process_cpu() - cpu) / 1e3;
}

static void bare_done(struct bare *b)
{
	for (size_t i = 0; i < b->n; i++)
		bare_forget(&b->proc[i]);
	free(b->proc);
	free(b->spare);
	base_closep(&b->root_fd);
}

static void count_value(void *arg, _unused_ const struct value_out *v)
{
	(*(uint64_t *)arg)++;
}

struct bench {
	struct monitor *monitor;
	struct bare full, stat; /* same calls; listing, clocks and stat alone */
	struct samples tick, full_cost, stat_cost;
	struct samples active, calls, idle_calls, allocations;
	uint64_t n_values;
	size_t n_processes;
};

static int one_tick(struct bench *b, bool measured)
{
	struct monitor_figures before, after;
	struct moment now = clocks_now();
	uint64_t allocations = alloccount_calls();
	uint64_t cpu = clocks_process_cpu();
	double cost;
	int r;

	monitor_get_figures(b->monitor, &before);
	b->n_values = 0;
	r = monitor_tick(b->monitor, &now, count_value, &b->n_values);
	cost = (double)(clocks_process_cpu() - cpu) / 1e3;
	allocations = alloccount_calls() - allocations;
	events_print(b->monitor);
	if (!measured || r < 0)
		return r;
	monitor_get_figures(b->monitor, &after);
	b->n_processes = after.n_processes;
	b->tick.v[b->tick.n++] = cost;
	b->active.v[b->active.n++] = (double)after.n_looked;
	b->calls.v[b->calls.n++] = (double)(after.n_calls - before.n_calls);
	b->idle_calls.v[b->idle_calls.n++] =
	    (double)(after.n_idle_calls - before.n_idle_calls);
	b->allocations.v[b->allocations.n++] = (double)allocations;
	return 0;
}

static int run_rounds(struct bench *b, const struct bench_options *o)
{
	struct timespec pause = {
	    .tv_sec = (time_t)o->pause_s,
	    .tv_nsec = (long)((o->pause_s - (double)(time_t)o->pause_s) * 1e9),
	};
	int r = 0;

	for (unsigned i = 0; r == 0 && i < WARM_UP + o->count; i++) {
		bool measured = i >= WARM_UP;
		double cost;

		/* Each has had the same time since its own last pass. */
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		r = one_tick(b, measured);
		cost = bare_cost(&b->full);
		if (measured)
			b->full_cost.v[b->full_cost.n++] = cost;
		cost = bare_cost(&b->stat);
		if (measured)
			b->stat_cost.v[b->stat_cost.n++] = cost;
	}
	return r;
}

static void print_results(struct bench *b, uint64_t heap)
{
	struct monitor_figures f;
	double n = (double)MAX(b->n_processes, (size_t)1);
	double tick = median(&b->tick), full = median(&b->full_cost);
	double stat = median(&b->stat_cost);

	monitor_get_figures(b->monitor, &f);
	printf("processes %zu\n", b->n_processes);
	printf("active %.0f\n", median(&b->active));
	printf("groups %" PRIu64 "\n", f.n_groups);
	printf("values %" PRIu64 "\n", b->n_values);
	printf("gate %s\n", f.gate ? "on" : "off");
	printf("tick_cpu_us %.1f\n", tick);
	printf("tick_cpu_us_per_process %.3f\n", tick / n);
	printf("bare_loop_cpu_us_per_process %.3f\n", full / n);
	printf("ratio %.3f\n", full > 0 ? tick / full : 0);
	printf("bare_stat_loop_cpu_us_per_process %.3f\n", stat / n);
	printf("ratio_to_stat_loop %.3f\n", stat > 0 ? tick / stat : 0);
	printf("syscalls_per_tick %.0f\n", median(&b->calls));
	printf("syscalls_per_idle_process %.3f\n", median(&b->idle_calls) / n);
	printf("heap_allocations_per_tick %.0f\n", median(&b->allocations));
	printf("heap_bytes_per_process %.0f\n", (double)heap / n);
}

const char *bench_rules(int *ret_fd, char *path, size_t size)
{
	static const char text[] =
	    "rules: [{name: all, any: true, kernel: any}]\n";
	int fd = memfd_create("proctally-rules", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, sizeof(text) - 1) < 0)
		return NULL;
	*ret_fd = fd;
	snprintf(path, size, "/proc/self/fd/%d", fd);
	return path;
}

static int bare_open(struct bare *b, const char *root, bool clocks, bool others)
{
	b->clocks = clocks;
	b->others = others;
	b->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return b->root_fd < 0 ? -errno : 0;
}

/* The bare loops keep descriptors without a budget. */
static void raise_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

int bench_run(const struct bench_options *o)
{
	_cleanup_free_ struct bench *b = calloc(1, sizeof(*b));
	struct bench_options own = *o;
	_cleanup_close_ int rules_fd = -1;
	char path[32];
	struct monitor_figures f;
	uint64_t heap;
	int r;

	if (!b)
		return 1;
	raise_limit();
	own.count = MIN(own.count, (unsigned)COUNT_MAX);
	if (!own.monitor.rules_path)
		own.monitor.rules_path =
		    bench_rules(&rules_fd, path, sizeof(path));
	b->full.root_fd = b->stat.root_fd = -1;
	heap = alloccount_bytes();
	r = own.monitor.rules_path ? monitor_open(&own.monitor, &b->monitor)
				   : -errno;
	if (r == 0)
		r = one_tick(b, false);
	heap = alloccount_bytes() - heap;
	if (r == 0) {
		monitor_get_figures(b->monitor, &f);
		r = bare_open(&b->full, own.monitor.proc_path, f.gate, true);
	}
	if (r == 0)
		r = bare_open(&b->stat, own.monitor.proc_path, f.gate, false);
	if (r == 0)
		r = run_rounds(b, &own);
	if (r == 0)
		print_results(b, heap);
	else
		fprintf(stderr, "proctally: %s\n", strerror(-r));
	bare_done(&b->full);
	bare_done(&b->stat);
	monitor_free(b->monitor);
	return r < 0;
}
