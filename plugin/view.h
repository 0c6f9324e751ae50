/* SPDX-License-Identifier: MIT */
/*
 * What `proctally top` shows, as lines of text, and what a key changes in it.
 * It knows what was watched and the size of the screen, but no terminal: the
 * lines can be drawn by anything, of any size down to one by one.
 *
 * Invariant: no line takes more columns than the screen has.
 */
#pragma once

#include "base.h"
#include "board.h"
#include "table.h"
#include "watch.h"

/* Keys that are no character. */
enum view_key {
	VIEW_KEY_UP = 256,
	VIEW_KEY_DOWN,
	VIEW_KEY_LEFT,
	VIEW_KEY_RIGHT,
	VIEW_KEY_PAGE_UP,
	VIEW_KEY_PAGE_DOWN,
	VIEW_KEY_HOME,
	VIEW_KEY_END,
	VIEW_KEY_ENTER,
	VIEW_KEY_ESCAPE,
	VIEW_KEY_OTHER,
};

enum view_style {
	VIEW_PLAIN,
	VIEW_BOLD,
	VIEW_BAR, /* the whole line stands out */
};

struct view_line {
	char text[TABLE_LINE_SIZE];
	enum view_style style;
	int mark, mark_len; /* what stands out in it; -1: nothing */
};

enum {
	VIEW_NAME_SIZE = 256,
	VIEW_STATUS_SIZE = 512,
};

/* Groups, or the members of one; each has its own place. */
struct view_list {
	size_t at, first; /* what is selected, and what is the topmost line */
	struct board_order order;
};

struct view {
	int rows, columns;
	struct view_list groups, members;
	char selected[VIEW_NAME_SIZE]; /* group; "": the line, whoever it is */
	char shown[VIEW_NAME_SIZE]; /* group whose members are shown; or "" */
	bool help, paused;
	char host[VIEW_NAME_SIZE];
	char status[VIEW_STATUS_SIZE]; /* in place of the keys; or "" */
	struct table table;
};

void view_init(struct view *v);

/* To be called when the screen has another size. */
void view_resize(struct view *v, int rows, int columns);

/*
 * After a tick or a key: sorts, and finds what was selected again. Returns 0
 * or -ENOMEM.
 */
int view_update(struct view *v, struct watch *w);

/* Returns false if the key means to quit. */
bool view_press(struct view *v, const struct watch *w, int key);

/* The line of that row of the screen. */
void view_draw(const struct view *v, const struct watch *w, int row,
	       struct view_line *ret);

/* The first line alone: when and where, and the sums. */
void view_headline(const struct view *v, const struct watch *w,
		   char buf[TABLE_LINE_SIZE]);
