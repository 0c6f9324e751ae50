/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <stdio.h>

/* clang-format off */
const struct table_column table_columns[TABLE_N_COLUMNS] = {
	{ "CPU%", "CPU time, percent of one processor", 'c', BOARD_CPU, BOARD_CPU, 6, true, cell_percent },
	{ "RSS", "resident memory", 'm', BOARD_RSS, BOARD_RSS, 6, true, cell_bytes },
	{ "PSS", "memory, what is shared counted in parts", 'p', BOARD_PSS, BOARD_PSS, 6, false, cell_bytes },
	{ "PROCS", "number of processes", 'u', BOARD_PROCESSES, BOARD_PROCESSES, 6, true, cell_count },
	{ "GPU%", "time of the engine that is busiest", 'g', BOARD_GPU, BOARD_GPU, 6, false, cell_percent },
	{ "READ/s", "bytes read from storage; the key is for both", 'i', BOARD_READ, BOARD_IO, 6, true, cell_bytes },
	{ "WRITE/s", "bytes written to storage", 0, BOARD_WRITE, BOARD_IO, 7, true, cell_bytes },
	{ "FDS", "open files", 'f', BOARD_FDS, BOARD_FDS, 6, true, cell_count },
	{ "SWAP", "memory swapped out", 's', BOARD_SWAP, BOARD_SWAP, 6, true, cell_bytes },
	{ "FAULT/s", "page faults", 'v', BOARD_FAULTS, BOARD_FAULTS, 7, true, cell_count },
	{ "THRDS", "number of threads", 't', BOARD_THREADS, BOARD_THREADS, 6, true, cell_count },
	{ "AGE", "of the oldest process", 'a', BOARD_AGE, BOARD_AGE, 7, true, cell_age },
};
/* clang-format on */

enum {
	NAME_WIDTH_MIN = 20, /* rather than that, columns are left out */
};

static const char name_title[] = "GROUP";
static const char view_title[] = "VIEW";

static int width_of(const struct table *t)
{
	int width = t->name_width + (t->views ? 1 + t->view_width : 0);

	for (size_t i = 0; i < TABLE_N_COLUMNS; i++)
		if (t->show[i])
			width += 1 + table_columns[i].width;
	return width;
}

size_t table_view_of(const char *const *views, const char *group)
{
	size_t rest = 0; /* the view "app", whose groups have no prefix */

	for (size_t i = 0; views[i]; i++) {
		size_t n = strlen(views[i]);

		if (strcmp(views[i], "app") == 0)
			rest = i;
		else if (strncmp(group, views[i], n) == 0 && group[n] == '.')
			return i;
	}
	return rest;
}

static void fit_views(struct table *t, const char *const *views)
{
	t->views = views && views[0] && views[1] ? views : NULL;
	t->view_width = sizeof(view_title) - 1;
	for (size_t i = 0; t->views && views[i]; i++)
		t->view_width = MAX(t->view_width, (int)strlen(views[i]));
}

void table_fit(struct table *t, const struct board *b, const char *const *views,
	       int width)
{
	char name[CELL_TEXT_SIZE];
	int longest = sizeof(name_title) - 1;

	for (size_t i = 0; i < b->n_rows; i++)
		longest =
		    MAX(longest, cell_text(str_of(b->row[i].name),
					   CELL_TEXT_MAX, name, sizeof(name)));
	for (size_t i = 0; i < TABLE_N_COLUMNS; i++)
		t->show[i] = table_columns[i].always ||
			     board_tells(b, table_columns[i].value);
	fit_views(t, views);
	t->name_width = longest;
	if (!width)
		return;
	if (width < t->view_width + 1 + NAME_WIDTH_MIN)
		t->views = NULL;
	t->name_width = MIN(longest, (int)NAME_WIDTH_MIN);
	for (size_t i = TABLE_N_COLUMNS; i-- > 0 && width_of(t) > width;)
		t->show[i] = false;
	t->name_width =
	    MIN(longest, MAX(0, t->name_width + width - width_of(t)));
}

/* Writes the view and the name, and fills their columns. */
static int put_name(const struct table *t, const char *view, struct str name,
		    char buf[TABLE_LINE_SIZE])
{
	int n = 0, taken;

	if (t->views)
		n = sprintf(buf, "%-*s ", t->view_width, view);
	taken = cell_text(name, t->name_width, buf + n, CELL_TEXT_SIZE);
	n += (int)strlen(buf + n);
	return n + sprintf(buf + n, "%*s", t->name_width - taken, "");
}

void table_head(const struct table *t, enum board_value sorted,
		char buf[TABLE_LINE_SIZE], int *ret_mark, int *ret_mark_len)
{
	int n = put_name(t, view_title, str_of(name_title), buf);

	*ret_mark = -1;
	*ret_mark_len = 0;
	if (sorted == BOARD_NAME) {
		*ret_mark = t->views ? t->view_width + 1 : 0;
		*ret_mark_len = MIN((int)sizeof(name_title) - 1, t->name_width);
	}
	for (size_t i = 0; i < TABLE_N_COLUMNS; i++) {
		const struct table_column *c = &table_columns[i];

		if (!t->show[i])
			continue;
		n += sprintf(buf + n, " %*s", c->width, c->title);
		if (c->sort == sorted && *ret_mark < 0) {
			*ret_mark_len = (int)strlen(c->title);
			*ret_mark = n - *ret_mark_len;
		}
	}
}

void table_row(const struct table *t, const struct board_row *row,
	       char buf[TABLE_LINE_SIZE])
{
	const char *view =
	    t->views ? t->views[table_view_of(t->views, row->name)] : "";
	int n = put_name(t, view, str_of(row->name), buf);

	for (size_t i = 0; i < TABLE_N_COLUMNS; i++) {
		const struct table_column *c = &table_columns[i];
		char cell[CELL_SIZE] = "-";

		if (!t->show[i])
			continue;
		if (board_has(row, c->value))
			c->format(row->value[c->value], cell);
		n += sprintf(buf + n, " %*s", c->width, cell);
	}
}
