/* SPDX-License-Identifier: MIT */
#include "watch.h"
#include "clocks.h"

#include <stdio.h>

int watch_open(struct watch *w, const struct monitor_options *o)
{
	int r;

	*w = (struct watch){0};
	board_init(&w->board);
	roster_init(&w->roster);
	r = monitor_open(o, &w->monitor);
	if (r < 0)
		fprintf(stderr, "proctally: %s is unusable: %s\n", o->proc_path,
			strerror(-r));
	return r;
}

void watch_close(struct watch *w)
{
	monitor_free(w->monitor);
	board_done(&w->board);
	roster_done(&w->roster);
	*w = (struct watch){0};
}

/* A reload changes them. */
static void name_views(struct watch *w)
{
	size_t n = 0;

	while (n < RULE_VIEWS_MAX &&
	       (w->views[n] = monitor_view_name(w->monitor, n)))
		n++;
	w->views[n] = NULL;
}

int watch_tick(struct watch *w)
{
	uint64_t cpu = clocks_process_cpu();
	int r, result;

	w->now = clocks_now();
	board_begin(&w->board, w->now.mono_ns);
	result = monitor_tick(w->monitor, &w->now, board_take, &w->board);
	w->cost_ns = clocks_process_cpu() - cpu;
	monitor_get_figures(w->monitor, &w->figures);
	r = board_end(&w->board);
	if (result == 0)
		result = r;
	roster_begin(&w->roster, &w->now);
	monitor_each_member(w->monitor, 0, roster_take, &w->roster);
	r = roster_end(&w->roster);
	if (result == 0)
		result = r;
	name_views(w);
	w->n_ticks++;
	return result;
}

struct showing {
	struct roster *roster;
	watch_fn *wants;
	const char *group;
	int result;
};

static void show_member(void *arg, const struct monitor_member *m)
{
	struct showing *s = arg;

	if (s->result == 0 && s->wants(m, s->group))
		s->result = roster_show(s->roster, m->pid);
}

int watch_show_some(struct watch *w, size_t view, watch_fn *wants,
		    const char *group)
{
	struct showing s = {
	    .roster = &w->roster,
	    .wants = wants,
	    .group = group,
	};

	roster_show_none(&w->roster);
	monitor_each_member(w->monitor, view, show_member, &s);
	return s.result;
}

static bool is_in_group(const struct monitor_member *m, const char *group)
{
	return (m->group && strcmp(m->group, group) == 0) ||
	       (m->series && strcmp(m->series, group) == 0);
}

int watch_show_group(struct watch *w, const char *group)
{
	int r = 0;

	/* A group is of one view. */
	roster_show_none(&w->roster);
	for (size_t view = 0; r == 0 && w->roster.n_shown == 0 &&
			      monitor_view_name(w->monitor, view);
	     view++)
		r = watch_show_some(w, view, is_in_group, group);
	return r;
}
