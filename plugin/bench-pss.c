/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "clocks.h"
#include "events.h"

#include <inttypes.h>
#include <stdio.h>

struct pss_run {
	struct monitor *monitor;
	uint64_t begun_ns;
	uint64_t oldest_ns, unread_ns; /* in any tick */
};

static void ignore_value(_unused_ void *arg, _unused_ const struct value_out *v)
{
}

static int one_tick(struct pss_run *run)
{
	struct moment now = clocks_now();
	struct monitor_pss f;
	int r = monitor_tick(run->monitor, &now, ignore_value, NULL);

	events_print(run->monitor);
	monitor_get_pss(run->monitor, &f);
	run->oldest_ns = MAX(run->oldest_ns, f.oldest_ns);
	run->unread_ns = MAX(run->unread_ns, f.unread_ns);
	return r;
}

static int run_ticks(struct pss_run *run, const struct bench_options *o)
{
	uint64_t step = (uint64_t)(o->pause_s * 1e9);
	uint64_t due = clocks_now().mono_ns;
	int r = 0;

	run->begun_ns = due;
	for (unsigned i = 0; r == 0 && i < o->count; i++) {
		struct timespec ts;

		due += step;
		ts.tv_sec = (time_t)(due / NSEC_PER_SEC);
		ts.tv_nsec = (long)(due % NSEC_PER_SEC);
		r = one_tick(run);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
	/* What the last one asked for. */
	return r ? r : one_tick(run);
}

static void print_results(const struct pss_run *run)
{
	double ran_s = (double)(clocks_now().mono_ns - run->begun_ns) / 1e9;
	struct monitor_pss f;
	double cpu_s;

	monitor_get_pss(run->monitor, &f);
	cpu_s = (double)f.cpu_ns / 1e9;
	printf("processes %" PRIu64 "\n", f.n_wanted);
	printf("read %" PRIu64 "\n", f.n_known);
	printf("unreadable %" PRIu64 "\n", f.n_refused);
	printf("too_large %" PRIu64 "\n", f.n_large);
	printf("readings %" PRIu64 "\n", f.n_read);
	printf("readings_rss_gib %.3f\n", f.read_gib);
	printf("run_s %.1f\n", ran_s);
	printf("cpu_us %.0f\n", cpu_s * 1e6);
	if (f.n_read) {
		printf("cpu_us_per_process %.1f\n",
		       cpu_s * 1e6 / (double)f.n_read);
		printf("cpu_us_fixed %.1f\n", f.fixed_us);
		printf("cpu_us_per_gib %.0f\n", f.gib_us);
	}
	printf("cpu_percent %.4f\n", 100 * cpu_s / ran_s);
	printf("budget_percent %.4f\n", 100 * f.budget);
	if (f.budget > 0)
		printf("budget_used_percent %.1f\n",
		       100 * cpu_s / (ran_s * f.budget));
	printf("longest_wait_s %.1f\n", (double)run->unread_ns / 1e9);
	printf("oldest_reading_s %.1f\n", (double)run->oldest_ns / 1e9);
}

int bench_pss_run(const struct bench_options *o)
{
	struct monitor_options mo = o->monitor;
	struct pss_run run = {0};
	_cleanup_close_ int rules_fd = -1;
	char path[32];
	int r;

	if (!mo.rules_path)
		mo.rules_path = bench_rules(&rules_fd, path, sizeof(path));
	r = mo.rules_path ? monitor_open(&mo, &run.monitor) : -errno;
	if (r == 0)
		r = run_ticks(&run, o);
	if (r == 0)
		print_results(&run);
	else
		fprintf(stderr, "proctally: %s\n", strerror(-r));
	monitor_free(run.monitor);
	return r < 0;
}
