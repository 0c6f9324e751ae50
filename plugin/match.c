/* SPDX-License-Identifier: MIT */
#include "match.h"
#include "clocks.h"
#include "events.h"
#include "outbuf.h"
#include "table.h"
#include "watch.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>

enum {
	REST_MAX = 20, /* lines of what fell to `other` */
};

/* Two ticks, for rates. Returns 0, a negative errno, or 1 without rules. */
static int tick_twice(struct watch *w, double interval_s)
{
	struct timespec due;
	uint64_t due_ns;
	int r = watch_tick(w);

	events_print(w->monitor);
	if (r == 0 && !monitor_has_rules(w->monitor))
		return 1;
	if (r < 0)
		return r;
	due_ns = w->now.mono_ns + (uint64_t)(interval_s * 1e9);
	due.tv_sec = (time_t)(due_ns / NSEC_PER_SEC);
	due.tv_nsec = (long)(due_ns % NSEC_PER_SEC);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) ==
	       EINTR)
		;
	r = watch_tick(w);
	events_print(w->monitor);
	return r;
}

/* Columns of the terminal; 0 if it is none, or does not say. */
static int terminal_width(void)
{
	struct winsize ws;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 ? ws.ws_col : 0;
}

/* Those of one view together, each view with its largest first. */
static void print_groups(struct watch *w, struct outbuf *out)
{
	static const struct board_order by_cpu = {.by = BOARD_CPU};
	char line[TABLE_LINE_SIZE];
	struct table t;
	int mark, mark_len;

	table_fit(&t, &w->board, w->views, terminal_width());
	board_sort(&w->board, &by_cpu);
	table_head(&t, BOARD_CPU, line, &mark, &mark_len);
	outbuf_printf(out, "%s\n", line);
	for (size_t view = 0; w->views[view]; view++)
		for (size_t i = 0; i < w->board.n_rows; i++) {
			const struct board_row *row =
			    &w->board.row[w->board.order[i]];

			if (table_view_of(w->views, row->name) != view)
				continue;
			table_row(&t, row, line);
			outbuf_printf(out, "%s\n", line);
		}
}

static bool is_other(const struct monitor_member *m, _unused_ const char *group)
{
	return m->other;
}

static bool is_dropped_other(const struct monitor_member *m,
			     _unused_ const char *group)
{
	return m->other && m->dropped;
}

static bool is_dropped_by_rule(const struct monitor_member *m,
			       _unused_ const char *group)
{
	return m->dropped && !m->other;
}

static void print_sum(struct outbuf *out, const struct roster_sum *s)
{
	char comm[CELL_TEXT_SIZE], cpu[CELL_SIZE] = "-", rss[CELL_SIZE] = "-";
	char n[CELL_SIZE];
	int taken =
	    cell_text(str_of(s->comm), CELL_TEXT_MAX, comm, sizeof(comm));

	if (s->has_cpu)
		cell_percent(s->cpu, cpu);
	if (s->has_rss)
		cell_bytes((double)s->rss_bytes, rss);
	cell_count((double)s->n, n);
	outbuf_printf(out, "  %s%*s %6s %6s %6s\n", comm, MAX(16 - taken, 0),
		      "", n, cpu, rss);
}

static int print_sums(const struct roster *roster, struct outbuf *out)
{
	_cleanup_free_ struct roster_sum *sum = NULL;
	size_t n;
	int r = roster_sums(roster, &sum, &n);

	if (r < 0 || n == 0)
		return r;
	outbuf_printf(out, "  %-16s %6s %6s %6s\n", "COMM", "PROCS", "CPU%",
		      "RSS");
	for (size_t i = 0; i < MIN(n, (size_t)REST_MAX); i++)
		print_sum(out, &sum[i]);
	if (n > REST_MAX)
		outbuf_printf(out, "  and %zu more\n", n - REST_MAX);
	return 0;
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "es";
}

/* Whom does no rule of a view take, and how many do its rules drop? */
static int print_rest(struct watch *w, size_t view, const char *prefix,
		      struct outbuf *out)
{
	struct roster *roster = &w->roster;
	bool dropped;
	int r = watch_show_some(w, view, is_dropped_other, NULL);

	if (r < 0)
		return r;
	dropped = roster->n_shown > 0;
	r = watch_show_some(w, view, is_other, NULL);
	if (r < 0)
		return r;
	outbuf_printf(out, "\n%sother: %zu process%s that no rule takes%s\n",
		      prefix, roster->n_shown, plural(roster->n_shown),
		      dropped ? ", counted nowhere" : "");
	r = print_sums(roster, out);
	if (r == 0)
		r = watch_show_some(w, view, is_dropped_by_rule, NULL);
	outbuf_printf(out, "\n%sdropped: %zu process%s\n", prefix,
		      roster->n_shown, plural(roster->n_shown));
	return r;
}

/* The same for each view; a single one is not named. */
static int print_rests(struct watch *w, struct outbuf *out)
{
	const char *name;
	int r = 0;

	if (!monitor_view_name(w->monitor, 1))
		return print_rest(w, 0, "", out);
	for (size_t view = 0;
	     r == 0 && (name = monitor_view_name(w->monitor, view)); view++) {
		char prefix[CELL_TEXT_SIZE];

		cell_text(str_of(name), 64, prefix, sizeof(prefix) - 8);
		strcat(prefix, ": ");
		r = print_rest(w, view, prefix, out);
	}
	return r;
}

int match_run(const struct match_options *o)
{
	struct outbuf out;
	struct watch w;
	int r;

	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_IGN);
	outbuf_init(&out, STDOUT_FILENO);
	r = watch_open(&w, &o->monitor);
	if (r < 0) {
		watch_close(&w);
		return 1;
	}
	r = tick_twice(&w, o->interval_s);
	if (r == 0) {
		print_groups(&w, &out);
		r = print_rests(&w, &out);
	}
	if (r == 0)
		r = outbuf_flush(&out);
	watch_close(&w);
	if (r < 0 && r != -EPIPE)
		fprintf(stderr, "proctally: %s\n", strerror(-r));
	return r && r != -EPIPE;
}
