/* SPDX-License-Identifier: MIT */
#include "dump.h"
#include "clocks.h"
#include "dump-residual.h"
#include "events.h"
#include "replace.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

struct dump {
	struct monitor *monitor;
	struct format_writer writer;
	struct outbuf out;
	const char *path; /* NULL: standard output */
	struct replace file;
	bool residual;
	uint64_t first_ns, last_ns; /* of it: CLOCK_MONOTONIC of ticks */
	char host[256];
};

/* Signals that end a program politely are waited for between ticks. */
static void block_signals(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGINT);
	sigaddset(ret_set, SIGTERM);
	sigaddset(ret_set, SIGHUP);
	sigprocmask(SIG_BLOCK, ret_set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Returns true if a signal came before that time. */
static bool sleep_until(uint64_t mono_ns, const sigset_t *set)
{
	for (;;) {
		uint64_t now = clocks_now().mono_ns;
		uint64_t rest = mono_ns > now ? mono_ns - now : 0;
		struct timespec ts = {.tv_sec = (time_t)(rest / NSEC_PER_SEC),
				      .tv_nsec = (long)(rest % NSEC_PER_SEC)};

		if (sigtimedwait(set, NULL, &ts) > 0)
			return true;
		if (errno == EAGAIN)
			return false;
	}
}

static int begin_output(struct dump *d)
{
	int r = 0;

	if (d->path)
		r = replace_begin(&d->file, d->path);
	if (r == 0)
		outbuf_init(&d->out, d->path ? d->file.fd : STDOUT_FILENO);
	return r;
}

/* What is not whole does not take the place of what is. */
static int end_output(struct dump *d, int r)
{
	int w = format_end(&d->writer);
	int flushed = outbuf_flush(&d->out);

	if (r == 0)
		r = w < 0 ? w : flushed;
	if (!d->path)
		return r;
	if (r == 0)
		return replace_commit(&d->file);
	replace_abandon(&d->file);
	return r;
}

static void take_nothing(_unused_ void *arg, _unused_ const struct value_out *v)
{
}

/* Two readings make one table. */
static int residual_tick(struct dump *d)
{
	struct moment now = clocks_now();
	struct monitor_cpu cpu, total;
	int r = begin_output(d);

	if (r != 0)
		return r;
	r = monitor_tick(d->monitor, &now, take_nothing, NULL);
	if (monitor_get_cpu(d->monitor, &cpu, &total))
		dump_residual(&d->out, (double)(now.mono_ns - d->last_ns) / 1e9,
			      (double)(now.mono_ns - d->first_ns) / 1e9, &cpu,
			      &total);
	else
		d->first_ns = d->first_ns ? d->first_ns : now.mono_ns;
	d->last_ns = now.mono_ns;
	events_print(d->monitor);
	return r == 0 ? outbuf_flush(&d->out) : r;
}

static int tick(struct dump *d)
{
	struct moment now = clocks_now();
	uint64_t cpu = clocks_thread_cpu();
	struct monitor_cost cost;
	int r = begin_output(d);

	if (r != 0)
		return r;
	format_begin(&d->writer, &d->out, &now);
	r = monitor_tick(d->monitor, &now, format_value, &d->writer);
	cost.wall_ns = clocks_now().mono_ns - now.mono_ns;
	cost.cpu_ns = clocks_thread_cpu() - cpu;
	monitor_set_cost(d->monitor, &cost);
	r = end_output(d, r);
	events_print(d->monitor);
	return r;
}

static int run(struct dump *d, uint64_t step, unsigned long count)
{
	uint64_t due = clocks_now().mono_ns;
	sigset_t signals;

	block_signals(&signals);
	for (unsigned long i = 0;; i++) {
		int r = d->residual ? residual_tick(d) : tick(d);

		if (r != 0 || (count && i + 1 == count))
			return r;
		/* A late tick moves the next one: never two at once. */
		due = MAX(due + step, clocks_now().mono_ns);
		if (sleep_until(due, &signals))
			return 0;
	}
}

static void find_host(char *buf, size_t size)
{
	const char *host = getenv("COLLECTD_HOSTNAME");

	if (host && *host)
		snprintf(buf, size, "%s", host);
	else if (gethostname(buf, size - 1) < 0)
		snprintf(buf, size, "localhost");
}

/* Returns the exit status. */
static int tell_end(const struct dump *d, int r)
{
	/* A reader that went away is a way to stop, not a failure. */
	if (r == 0 || r == -EPIPE)
		return 0;
	if (r == REPLACE_NO_FILE)
		fprintf(stderr, "proctally: %s is not a regular file\n",
			d->path);
	else
		fprintf(stderr, "proctally: %s%s%s\n", d->path ? d->path : "",
			d->path ? ": " : "", strerror(-r));
	return 1;
}

int dump_run(const struct dump_options *o)
{
	struct dump d = {.path = o->output, .residual = o->residual};
	int r = monitor_open(&o->monitor, &d.monitor);

	if (r < 0) {
		fprintf(stderr, "proctally: %s is unusable: %s\n",
			o->monitor.proc_path, strerror(-r));
		return 1;
	}
	find_host(d.host, sizeof(d.host));
	r = format_open(&d.writer, o->format, d.host, o->interval_s);
	if (r == 0)
		r = run(&d, (uint64_t)(o->interval_s * 1e9), o->count);
	format_close(&d.writer);
	monitor_free(d.monitor);
	return tell_end(&d, r);
}
