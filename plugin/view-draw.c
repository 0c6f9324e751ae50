/* SPDX-License-Identifier: MIT */
#include "view-internal.h"

#include <stdio.h>
#include <time.h>

static const char *const help[] = {
    "Up, Down, PgUp, PgDn, Home, End   choose a group",
    "Enter, Right                      show its processes",
    "Left, Escape                      back to the groups",
    "Space                             pause",
    "r                                 the other way round",
    "n                                 sort by name",
    "h, ?                              this text; any key leaves it",
    "q                                 quit",
};

void view_headline(const struct view *v, const struct watch *w,
		   char buf[TABLE_LINE_SIZE])
{
	char host[CELL_TEXT_SIZE], cpu[CELL_SIZE] = "-", time_text[16] = "";
	time_t s = (time_t)(w->now.real_ns / NSEC_PER_SEC);
	struct tm tm;

	cell_text(str_of(v->host), 64, host, sizeof(host));
	if (localtime_r(&s, &tm))
		strftime(time_text, sizeof(time_text), "%H:%M:%S", &tm);
	if (w->roster.has_cpu)
		cell_percent(w->roster.cpu, cpu);
	snprintf(buf, TABLE_LINE_SIZE,
		 "%s  %s  %llu processes  %zu groups  CPU %s%%  tick %.1f ms%s",
		 host, time_text, (unsigned long long)w->figures.n_processes,
		 w->board.n_rows, cpu, (double)w->cost_ns / 1e6,
		 v->paused ? "  paused" : "");
}

static void draw_keys(const struct view *v, char buf[TABLE_LINE_SIZE])
{
	if (v->status[0])
		snprintf(buf, TABLE_LINE_SIZE, "%s", v->status);
	else if (view_shows_members(v))
		strcpy(buf, "q quit  h help  Left back  Space pause  c CPU  "
			    "m RSS  n name  r reverse");
	else
		strcpy(buf, "q quit  h help  Enter processes  Space pause  "
			    "c CPU  m RSS  i I/O  n name");
}

/* A GPU has its column where any group uses one. */
static const char members_head[] = "    PID STATE   CPU%    RSS COMM";
static const char members_head_gpu[] =
    "    PID STATE   CPU%    RSS   GPU% COMM";

static void draw_member(const struct roster_entry *e, bool gpu, char *buf)
{
	char cpu[CELL_SIZE] = "-", rss[CELL_SIZE] = "-", state[8];
	int n;

	if (e->has_cpu)
		cell_percent(e->cpu, cpu);
	if (e->member.has_rss)
		cell_bytes((double)e->member.rss_bytes, rss);
	cell_text((struct str){&e->member.state, 1}, 1, state, sizeof(state));
	n = sprintf(buf, "%7d %-5s %6s %6s ", (int)e->member.pid, state, cpu,
		    rss);
	if (gpu) {
		char percent[CELL_SIZE] = "-";

		if (e->member.has_gpu)
			cell_percent(e->member.gpu, percent);
		n += sprintf(buf + n, "%6s ", percent);
	}
	cell_text(str_of(e->member.comm), CELL_TEXT_MAX - n, buf + n,
		  CELL_TEXT_SIZE);
}

static void draw_members_head(const struct view *v, bool gpu,
			      struct view_line *ret)
{
	const char *head = gpu ? members_head_gpu : members_head, *at;
	static const struct {
		enum board_value by;
		const char *title;
	} marks[] = {{BOARD_CPU, "CPU%"},
		     {BOARD_RSS, "RSS"},
		     {BOARD_GPU, "GPU%"},
		     {BOARD_NAME, "COMM"}};
	char group[CELL_TEXT_SIZE];

	strcpy(ret->text, head);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		at = strstr(head, marks[i].title);
		if (marks[i].by != v->members.order.by || !at)
			continue;
		ret->mark = (int)(at - head);
		ret->mark_len = (int)strlen(marks[i].title);
	}
	cell_text(str_of(v->shown), CELL_TEXT_MAX, group, sizeof(group));
	snprintf(ret->text + strlen(head), TABLE_LINE_SIZE - strlen(head),
		 " of %s", group);
}

static void draw_help(size_t i, char buf[TABLE_LINE_SIZE])
{
	size_t n = ARRAY_SIZE(help);

	if (i < n) {
		strcpy(buf, help[i]);
		return;
	}
	for (size_t c = 0; c < TABLE_N_COLUMNS; c++) {
		if (!table_columns[c].key || i-- != n)
			continue;
		sprintf(buf, "%c     sort by %-8s %s", table_columns[c].key,
			table_columns[c].title, table_columns[c].what);
		return;
	}
}

static const struct view_list *list_of(const struct view *v)
{
	return view_shows_members(v) ? &v->members : &v->groups;
}

static void draw_item(const struct view *v, const struct watch *w, size_t i,
		      struct view_line *ret)
{
	if (i >= view_length(v, w))
		return;
	if (i == list_of(v)->at)
		ret->style = VIEW_BAR;
	if (view_shows_members(v))
		draw_member(&w->roster.entry[w->roster.shown[i]],
			    board_tells(&w->board, BOARD_GPU), ret->text);
	else
		table_row(&v->table, view_group(w, i), ret->text);
}

/* To the width of the screen, and a bar to its end. */
static void trim(const struct view *v, struct view_line *line)
{
	char text[TABLE_LINE_SIZE];
	int taken = cell_text(str_of(line->text), v->columns, text,
			      sizeof(text) - CELL_TEXT_MAX);
	size_t n = strlen(text);

	memcpy(line->text, text, n);
	line->text[n] = '\0';
	if (line->style == VIEW_BAR)
		sprintf(line->text + n, "%*s", v->columns - taken, "");
	if (line->mark >= v->columns)
		line->mark = -1;
	line->mark_len = MIN(line->mark_len, v->columns - line->mark);
}

void view_draw(const struct view *v, const struct watch *w, int row,
	       struct view_line *ret)
{
	int first = view_first_row(v);

	ret->text[0] = '\0';
	ret->style = VIEW_PLAIN;
	ret->mark = -1;
	ret->mark_len = 0;
	if (row == 0) {
		view_headline(v, w, ret->text);
		ret->style = VIEW_BOLD;
	} else if (row == v->rows - 1 && v->rows >= ROWS_FOR_KEYS) {
		draw_keys(v, ret->text);
	} else if (v->help) {
		draw_help((size_t)(row - 1), ret->text);
	} else if (row < first) {
		ret->style = VIEW_BAR;
		if (view_shows_members(v))
			draw_members_head(v, board_tells(&w->board, BOARD_GPU),
					  ret);
		else
			table_head(&v->table, v->groups.order.by, ret->text,
				   &ret->mark, &ret->mark_len);
	} else {
		draw_item(v, w, list_of(v)->first + (size_t)(row - first), ret);
	}
	trim(v, ret);
}
