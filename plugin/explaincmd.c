/* SPDX-License-Identifier: MIT */
#include "explaincmd.h"
#include "clocks.h"
#include "events.h"
#include "explain.h"
#include "outbuf.h"

#include <signal.h>
#include <stdio.h>

#define SETTLE_NS (3 * NSEC_PER_SEC) /* then it is as good as it gets */
#define PAUSE_NS (20 * NSEC_PER_MSEC)

enum {
	EXIT_USAGE = 2,
	PID_MAX = 4194304,
};

static bool parse_pid(const char *text, pid_t *ret)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*end || *text < '1' || *text > '9' || v > PID_MAX)
		return false;
	*ret = (pid_t)v;
	return true;
}

static void no_value(void *arg _unused_, const struct value_out *v _unused_)
{
}

static void pause_ns(uint64_t ns)
{
	struct timespec ts = {.tv_nsec = (long)ns};

	nanosleep(&ts, NULL);
}

/* Reads the host until nobody waits for an answer any more. */
static int settle(struct monitor *m)
{
	uint64_t begin = clocks_read(CLOCK_MONOTONIC);

	for (;;) {
		struct moment now = clocks_now();
		int r = monitor_tick(m, &now, no_value, NULL);

		if (r < 0 || monitor_is_settled(m) ||
		    now.mono_ns - begin >= SETTLE_NS)
			return r;
		pause_ns(PAUSE_NS);
	}
}

static void print_line(void *arg, const char *line)
{
	struct outbuf *out = arg;

	outbuf_write(out, line, strlen(line));
	outbuf_write(out, "\n", 1);
}

static void say_why_not(const struct explaincmd_options *o, pid_t pid, int r)
{
	switch (r) {
	case EXPLAIN_NO_PROCESS:
		fprintf(stderr, "proctally: there is no process %d in %s\n",
			(int)pid, o->monitor.proc_path);
		break;
	case EXPLAIN_HIDDEN:
		fprintf(stderr,
			"proctally: process %d is not shown in %s, which is "
			"mounted with hidepid: ask as root\n",
			(int)pid, o->monitor.proc_path);
		break;
	case EXPLAIN_DENIED:
		fprintf(stderr,
			"proctally: the files of process %d in %s cannot be "
			"read, and it is in no group\n",
			(int)pid, o->monitor.proc_path);
		break;
	default:
		fprintf(stderr, "proctally: process %d: %s\n", (int)pid,
			strerror(-r));
	}
}

/* Returns an exit status. */
static int explain_all(struct monitor *m, const struct explaincmd_options *o,
		       char *const *pids, int n_pids)
{
	struct explain_options eo = {.view = o->view, .brief = o->brief};
	struct outbuf out;
	int status = 0, r;

	outbuf_init(&out, STDOUT_FILENO);
	for (int i = 0; i < n_pids; i++) {
		parse_pid(pids[i], &eo.pid);
		if (i > 0 && !o->brief)
			print_line(&out, "");
		r = monitor_explain(m, &eo, print_line, &out);
		if (r == 0)
			continue;
		outbuf_flush(&out);
		say_why_not(o, eo.pid, r);
		status = 1;
	}
	r = outbuf_flush(&out);
	if (r < 0 && r != -EPIPE)
		fprintf(stderr, "proctally: %s\n", strerror(-r));
	return r < 0 && r != -EPIPE ? 1 : status;
}

static bool has_view(const struct monitor *m, const char *view)
{
	const char *name;

	for (size_t i = 0; (name = monitor_view_name(m, i)); i++)
		if (strcmp(view, name) == 0)
			return true;
	return false;
}

static void list_views(const struct monitor *m)
{
	const char *name;

	fprintf(stderr, " (there are:");
	for (size_t i = 0; (name = monitor_view_name(m, i)); i++)
		fprintf(stderr, " %s", name);
	fprintf(stderr, ")\n");
}

static int explain_in(struct monitor *m, const struct explaincmd_options *o,
		      char *const *pids, int n_pids)
{
	int r = settle(m);

	events_print(m);
	if (r < 0) {
		fprintf(stderr, "proctally: %s\n", strerror(-r));
		return 1;
	}
	if (!monitor_has_rules(m))
		return 1; /* the events said what is wrong with the rules */
	if (o->view && !has_view(m, o->view)) {
		fprintf(stderr, "proctally explain: unknown view \"%s\"",
			o->view);
		list_views(m);
		return EXIT_USAGE;
	}
	return explain_all(m, o, pids, n_pids);
}

int explaincmd_run(const struct explaincmd_options *o, char *const *pids,
		   int n_pids)
{
	struct monitor *m;
	pid_t pid;
	int r;

	for (int i = 0; i < n_pids; i++)
		if (!parse_pid(pids[i], &pid)) {
			fprintf(stderr,
				"proctally explain: not the number of a "
				"process: %s\n",
				pids[i]);
			return EXIT_USAGE;
		}
	signal(SIGPIPE, SIG_IGN);
	r = monitor_open(&o->monitor, &m);
	if (r < 0) {
		fprintf(stderr, "proctally: %s is unusable: %s\n",
			o->monitor.proc_path, strerror(-r));
		return 1;
	}
	r = explain_in(m, o, pids, n_pids);
	monitor_free(m);
	return r;
}
