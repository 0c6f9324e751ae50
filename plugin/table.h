/* SPDX-License-Identifier: MIT */
/*
 * The table of groups as lines of text. THE list of its columns is
 * table_columns[]: a column is one row there, which says its title, its key
 * in `proctally top`, its value and how that looks. It knows no terminal.
 *
 * Invariant: head and rows that were laid out together are aligned.
 */
#pragma once

#include "base.h"
#include "board.h"
#include "cell.h"

struct table_column {
	const char *title;
	const char *what; /* for help */
	char key;	  /* sorts by it; 0: none */
	enum board_value value, sort;
	int width;
	bool always; /* or only where some group has the value */
	cell_fn *format;
};

enum {
	TABLE_N_COLUMNS = 12,
	TABLE_LINE_SIZE = CELL_TEXT_SIZE + 512,
};

extern const struct table_column table_columns[TABLE_N_COLUMNS];

struct table {
	const char *const *views; /* NULL: one, which needs no column */
	int view_width, name_width;
	bool show[TABLE_N_COLUMNS];
};

/* Which of the views, whose names end in NULL, a group is of, by its name. */
size_t table_view_of(const char *const *views, const char *group);

/*
 * Chooses columns and widths. `views` are as above; several have a column.
 * Where that is more than `width` columns, those on the right and then the ends
 * of names are left out; 0 stands for any width.
 */
void table_fit(struct table *t, const struct board *b, const char *const *views,
	       int width);

/* The title line; the title of what is sorted by is at ret_mark (or -1). */
void table_head(const struct table *t, enum board_value sorted,
		char buf[TABLE_LINE_SIZE], int *ret_mark, int *ret_mark_len);

void table_row(const struct table *t, const struct board_row *row,
	       char buf[TABLE_LINE_SIZE]);
