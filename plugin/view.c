/* SPDX-License-Identifier: MIT */
#include "view-internal.h"

#include <stdio.h>

void view_init(struct view *v)
{
	*v = (struct view){
	    .rows = 24,
	    .columns = 80,
	    .groups.order.by = BOARD_CPU,
	    .members.order.by = BOARD_CPU,
	};
}

void view_resize(struct view *v, int rows, int columns)
{
	v->rows = MAX(rows, 1);
	v->columns = MIN(MAX(columns, 1), (int)CELL_TEXT_MAX);
}

/* Rows of the screen between the head and the keys. */
static size_t page_of(const struct view *v)
{
	int rows = v->rows - view_first_row(v) - (v->rows >= ROWS_FOR_KEYS);

	return (size_t)MAX(rows, 1);
}

/* Within the list, and on the screen. */
static void bring_into_view(struct view_list *l, size_t n, size_t page)
{
	l->at = n ? MIN(l->at, n - 1) : 0;
	l->first = MIN(l->first, n > page ? n - page : 0);
	l->first = MIN(l->first, l->at);
	if (l->at >= l->first + page)
		l->first = l->at - page + 1;
}

static void find_selected(struct view *v, const struct watch *w)
{
	for (size_t i = 0; v->selected[0] && i < w->board.n_rows; i++) {
		if (strcmp(view_group(w, i)->name, v->selected) != 0)
			continue;
		v->groups.at = i;
		return;
	}
	/* It is gone: who is in its line now is as good. */
	v->selected[0] = '\0';
}

int view_update(struct view *v, struct watch *w)
{
	int r;

	board_sort(&w->board, &v->groups.order);
	find_selected(v, w);
	bring_into_view(&v->groups, w->board.n_rows, page_of(v));
	table_fit(&v->table, &w->board, w->views, v->columns);
	if (!view_shows_members(v))
		return 0;
	r = watch_show_group(w, v->shown);
	roster_sort(&w->roster, &v->members.order);
	bring_into_view(&v->members, w->roster.n_shown, page_of(v));
	return r;
}

static void copy_name(char to[VIEW_NAME_SIZE], const char *name)
{
	snprintf(to, VIEW_NAME_SIZE, "%s", name);
}

static void move(struct view *v, const struct watch *w, int key)
{
	struct view_list *l = view_shows_members(v) ? &v->members : &v->groups;
	size_t n = view_length(v, w), page = page_of(v), at = l->at;

	switch (key) {
	case VIEW_KEY_UP:
		at -= MIN(at, (size_t)1);
		break;
	case VIEW_KEY_DOWN:
		at++;
		break;
	case VIEW_KEY_PAGE_UP:
		at -= MIN(at, page);
		break;
	case VIEW_KEY_PAGE_DOWN:
		at += page;
		break;
	case VIEW_KEY_HOME:
		at = 0;
		break;
	case VIEW_KEY_END:
		at = n;
		break;
	default:
		return;
	}
	l->at = at;
	bring_into_view(l, n, page);
	if (!view_shows_members(v) && n)
		copy_name(v->selected, l->at ? view_group(w, l->at)->name : "");
}

static void sort_by(struct view *v, const struct watch *w, int key)
{
	struct board_order *o =
	    view_shows_members(v) ? &v->members.order : &v->groups.order;

	if (key == 'r')
		o->reverse = !o->reverse;
	if (key == 'n')
		*o = (struct board_order){.by = BOARD_NAME};
	for (size_t i = 0; i < TABLE_N_COLUMNS; i++) {
		const struct table_column *c = &table_columns[i];
		bool is_there =
		    view_shows_members(v)
			? c->sort == BOARD_CPU || c->sort == BOARD_RSS ||
			      (c->sort == BOARD_GPU &&
			       board_tells(&w->board, BOARD_GPU))
			: c->always || board_tells(&w->board, c->value);

		if (c->key == key && is_there)
			*o = (struct board_order){.by = c->sort};
	}
}

static void enter_group(struct view *v, const struct watch *w)
{
	if (view_shows_members(v) || !w->board.n_rows)
		return;
	copy_name(v->selected, view_group(w, v->groups.at)->name);
	copy_name(v->shown, v->selected);
	v->members.at = v->members.first = 0;
}

bool view_press(struct view *v, const struct watch *w, int key)
{
	bool had_help = v->help;

	v->status[0] = '\0';
	v->help = false;
	switch (key) {
	case 'q':
		return false;
	case 'h':
	case '?':
		v->help = !had_help;
		break;
	case ' ':
		v->paused = !v->paused;
		break;
	case VIEW_KEY_ENTER:
	case VIEW_KEY_RIGHT:
		enter_group(v, w);
		break;
	case VIEW_KEY_LEFT:
	case VIEW_KEY_ESCAPE:
		if (!had_help)
			v->shown[0] = '\0';
		break;
	default:
		move(v, w, key);
		sort_by(v, w, key);
		break;
	}
	return true;
}
