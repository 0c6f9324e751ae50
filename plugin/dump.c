/* SPDX-License-Identifier: MIT */
#include "dump.h"
#include "clocks.h"
#include "events.h"
#include "outbuf.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

struct dump {
	struct outbuf out;
	char host[256];
	double interval_s;
	uint64_t real_ns; /* one stamp for all values of a tick */
};

struct format {
	const char *name;
	value_fn *value;
};

/* collectd's plain text protocol, as its exec plugin reads it. */
static void put_value(void *arg, const struct value_out *v)
{
	struct dump *d = arg;

	outbuf_printf(&d->out,
		      "PUTVAL \"%s/proctally-%s/%s%s%s\" interval=%.3f "
		      "%" PRIu64 ".%03u",
		      d->host, v->group, v->type, v->instance ? "-" : "",
		      v->instance ? v->instance : "", d->interval_s,
		      d->real_ns / NSEC_PER_SEC,
		      (unsigned)(d->real_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
	for (unsigned i = 0; i < v->n; i++) {
		if (v->derive)
			outbuf_printf(&d->out, ":%" PRIu64, v->u[i]);
		else
			outbuf_printf(&d->out, ":%.15g", v->d[i]);
	}
	outbuf_printf(&d->out, "\n");
}

static const struct format formats[] = {
    {"putval", put_value},
};

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!name || strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

bool dump_knows_format(const char *name)
{
	return find_format(name) != NULL;
}

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

static int tick(struct dump *d, struct monitor *m, const struct format *f)
{
	struct moment now = clocks_now();
	uint64_t cpu = clocks_thread_cpu();
	struct monitor_cost cost;
	int r, w;

	d->real_ns = now.real_ns;
	r = monitor_tick(m, &now, f->value, d);
	cost.wall_ns = clocks_now().mono_ns - now.mono_ns;
	cost.cpu_ns = clocks_thread_cpu() - cpu;
	monitor_set_cost(m, &cost);
	w = outbuf_flush(&d->out);
	events_print(m);
	return r < 0 ? r : w;
}

int dump_run(const struct dump_options *o)
{
	const struct format *f = find_format(o->format);
	uint64_t step = (uint64_t)(o->interval_s * 1e9), due;
	struct monitor *m = NULL;
	struct dump d = {.interval_s = o->interval_s};
	const char *host = getenv("COLLECTD_HOSTNAME");
	sigset_t signals;
	int r = monitor_open(&o->monitor, &m);

	if (r < 0) {
		fprintf(stderr, "proctally: %s is unusable: %s\n",
			o->monitor.proc_path, strerror(-r));
		return 1;
	}
	outbuf_init(&d.out, STDOUT_FILENO);
	if (host && *host)
		snprintf(d.host, sizeof(d.host), "%s", host);
	else if (gethostname(d.host, sizeof(d.host) - 1) < 0)
		strcpy(d.host, "localhost");
	block_signals(&signals);
	due = clocks_now().mono_ns;
	for (unsigned long i = 0; r == 0; i++) {
		r = tick(&d, m, f);
		if (r < 0 || (o->count && i + 1 == o->count))
			break;
		/* A late tick moves the next one: never two at once. */
		due = MAX(due + step, clocks_now().mono_ns);
		if (sleep_until(due, &signals))
			break;
	}
	monitor_free(m);
	/* A reader that went away is a way to stop, not a failure. */
	if (r < 0 && r != -EPIPE)
		fprintf(stderr, "proctally: %s\n", strerror(-r));
	return r < 0 && r != -EPIPE;
}
