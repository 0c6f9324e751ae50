/* SPDX-License-Identifier: MIT */
/*
 * `proctally bench --gpu`: what it costs to look for descriptors of GPUs,
 * beside the same ticks without it, and beside a naive scan of every
 * descriptor of every process. Without --sys it is told by a sysfs of its own
 * that there is an amdgpu, of which nobody has a descriptor.
 */
#include "bench.h"
#include "clocks.h"
#include "events.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
	WARM_UP = 24, /* ticks: everybody was looked at once */
	SCAN_EVERY = 5,
};

struct gpu_run {
	struct monitor *without, *with;
	double without_us, with_us, scan_us; /* sums */
	unsigned n_ticks, n_scans;
	uint64_t n_processes, n_fds;
	struct monitor_figures before;
	char sys[64];
};

static void ignore_value(_unused_ void *arg, _unused_ const struct value_out *v)
{
}

static const char *rules(int *ret_fd, char *path, size_t size, bool gpu)
{
	int fd = memfd_create("proctally-rules", MFD_CLOEXEC);

	if (fd < 0 || dprintf(fd,
			      "defaults: {collect: {gpu: %s, pss: false}}\n"
			      "rules: [{name: all, any: true, kernel: any}]\n",
			      gpu ? "auto" : "false") < 0)
		return NULL;
	*ret_fd = fd;
	snprintf(path, size, "/proc/self/fd/%d", fd);
	return path;
}

static bool make_dir(const char *root, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return mkdir(path, 0755) == 0;
}

/* A minor of the major of GPUs that is beyond all that there are. */
static int make_sys(struct gpu_run *run)
{
	static const char *const dirs[] = {
	    "class",
	    "class/drm",
	    "class/drm/renderD65000",
	    "devices",
	    "devices/0000:ff:1f.7",
	};
	char path[128];
	FILE *f;

	strcpy(run->sys, "/tmp/proctally-bench.XXXXXX");
	if (!mkdtemp(run->sys)) {
		run->sys[0] = '\0';
		return -errno;
	}
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (!make_dir(run->sys, dirs[i]))
			return -errno;
	snprintf(path, sizeof(path), "%s/class/drm/renderD65000/dev", run->sys);
	f = fopen(path, "we");
	if (!f || fputs("226:65000\n", f) < 0 || fclose(f) != 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/class/drm/renderD65000/device",
		 run->sys);
	if (symlink("../../../devices/0000:ff:1f.7", path) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/devices/0000:ff:1f.7/driver",
		 run->sys);
	return symlink("../../bus/pci/drivers/amdgpu", path) < 0 ? -errno : 0;
}

static int remove_one(const char *path, _unused_ const struct stat *st,
		      _unused_ int type, _unused_ struct FTW *ftw)
{
	return remove(path);
}

static int tick(struct monitor *m, double *sum_us)
{
	struct moment now = clocks_now();
	uint64_t cpu = clocks_process_cpu();
	int r = monitor_tick(m, &now, ignore_value, NULL);

	*sum_us += (double)(clocks_process_cpu() - cpu) / 1e3;
	events_print(m);
	return r;
}

/* What each descriptor of a process is open on. */
static void scan_process(struct gpu_run *run, int proc_fd, const char *pid)
{
	_Alignas(struct dirent64) char buf[8192];
	_cleanup_close_ int fd = -1;
	char path[32];
	ssize_t got;

	snprintf(path, sizeof(path), "%.20s/fd", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	while ((got = getdents64(fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < got;) {
			struct dirent64 *e = (void *)(buf + at);
			struct statx sx;

			at += e->d_reclen;
			if (e->d_name[0] == '.')
				continue;
			statx(fd, e->d_name,
			      AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE,
			      &sx);
			run->n_fds++;
		}
}

static int scan(struct gpu_run *run, const char *proc_path)
{
	_Alignas(struct dirent64) char buf[32768];
	_cleanup_close_ int fd =
	    open(proc_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t cpu = clocks_process_cpu();
	ssize_t got;

	if (fd < 0)
		return -errno;
	run->n_processes = run->n_fds = 0;
	while ((got = getdents64(fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < got;) {
			struct dirent64 *e = (void *)(buf + at);

			at += e->d_reclen;
			if (e->d_name[0] < '1' || e->d_name[0] > '9')
				continue;
			scan_process(run, fd, e->d_name);
			run->n_processes++;
		}
	run->scan_us += (double)(clocks_process_cpu() - cpu) / 1e3;
	run->n_scans++;
	return 0;
}

static int run_ticks(struct gpu_run *run, const struct bench_options *o)
{
	struct timespec pause = {
	    .tv_sec = (time_t)o->pause_s,
	    .tv_nsec = (long)((o->pause_s - (double)(time_t)o->pause_s) * 1e9),
	};
	int r = 0;

	for (unsigned i = 0; r == 0 && i < WARM_UP + o->count; i++) {
		bool without_first = i % 2 == 0;

		if (i == WARM_UP) {
			run->without_us = run->with_us = 0;
			monitor_get_figures(run->with, &run->before);
		}
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		if (without_first)
			r = tick(run->without, &run->without_us);
		if (r == 0)
			r = tick(run->with, &run->with_us);
		if (r == 0 && !without_first)
			r = tick(run->without, &run->without_us);
		/* Behind both, as it spoils the caches of both. */
		if (r == 0 && i >= WARM_UP && i % SCAN_EVERY == 0)
			r = scan(run, o->monitor.proc_path);
	}
	run->n_ticks = o->count;
	return r;
}

static void print_results(const struct gpu_run *run)
{
	double n = MAX(run->n_ticks, 1u);
	double without = run->without_us / n, with = run->with_us / n;
	double naive = run->scan_us / MAX(run->n_scans, 1u);
	double added = with - without;
	struct monitor_figures f;

	monitor_get_figures(run->with, &f);
	printf("processes %" PRIu64 "\n", run->n_processes);
	printf("descriptors %" PRIu64 "\n", run->n_fds);
	printf("active %" PRIu64 "\n", f.n_looked);
	printf("ticks %u\n", run->n_ticks);
	printf("looks_before %" PRIu64 "\n", run->before.n_gpu_looks);
	printf("looks_per_tick %.2f\n",
	       (double)(f.n_gpu_looks - run->before.n_gpu_looks) / n);
	printf("descriptors_asked_per_tick %.1f\n",
	       (double)(f.n_gpu_fds - run->before.n_gpu_fds) / n);
	printf("tick_cpu_us %.1f\n", without);
	printf("tick_with_gpu_cpu_us %.1f\n", with);
	printf("gpu_adds_percent %.1f\n",
	       without > 0 ? 100 * added / without : 0);
	printf("naive_scan_cpu_us %.1f\n", naive);
	/* Less than can be measured is nothing to divide by. */
	if (added > 1)
		printf("naive_scan_to_added %.1f\n", naive / added);
}

int bench_gpu_run(const struct bench_options *o)
{
	struct monitor_options with = o->monitor, without = o->monitor;
	_cleanup_close_ int with_fd = -1, without_fd = -1;
	struct gpu_run run = {0};
	char with_path[32], without_path[32];
	int r = 0;

	with.rules_path = rules(&with_fd, with_path, sizeof(with_path), true);
	without.rules_path =
	    rules(&without_fd, without_path, sizeof(without_path), false);
	if (!with.rules_path || !without.rules_path)
		r = -errno;
	if (r == 0 && !with.sys_path) {
		r = make_sys(&run);
		with.sys_path = run.sys;
	}
	if (r == 0)
		r = monitor_open(&without, &run.without);
	if (r == 0)
		r = monitor_open(&with, &run.with);
	if (r == 0)
		r = run_ticks(&run, o);
	if (r == 0)
		print_results(&run);
	else
		fprintf(stderr, "proctally: %s\n", strerror(-r));
	monitor_free(run.without);
	monitor_free(run.with);
	if (run.sys[0])
		nftw(run.sys, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return r < 0;
}
