/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the view share: view.c (what is chosen) and view-draw.c
 * (how it looks). Nobody else includes it.
 */
#pragma once

#include "view.h"

enum {
	ROWS_FOR_HEAD = 3, /* of the table; lower screens have none */
	ROWS_FOR_KEYS = 4,
};

static inline bool view_shows_members(const struct view *v)
{
	return v->shown[0] != '\0';
}

/* Number of items of the list that is shown. */
static inline size_t view_length(const struct view *v, const struct watch *w)
{
	return view_shows_members(v) ? w->roster.n_shown : w->board.n_rows;
}

/* The row of the screen where the list begins. */
static inline int view_first_row(const struct view *v)
{
	return v->rows >= ROWS_FOR_HEAD ? 2 : 1;
}

/* The group in that place of the list. */
static inline const struct board_row *view_group(const struct watch *w,
						 size_t i)
{
	return &w->board.row[w->board.order[i]];
}
