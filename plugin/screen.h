/* SPDX-License-Identifier: MIT */
/*
 * The terminal in which `proctally top` draws. It knows lines and keys and
 * nothing of what they mean. screen.c is by ncurses; screen-none.c is for
 * builds without it and says so.
 *
 * No signal is handled here: whoever opens a screen blocks SIGINT, SIGTERM,
 * SIGHUP, SIGQUIT, SIGTSTP and SIGWINCH before and asks for them.
 * Invariant: after screen_close() and screen_leave() the terminal is as it was
 * before screen_open().
 */
#pragma once

#include "base.h"
#include "view.h"

struct screen;

/* Returns 0, or a negative errno and has told it on stderr. */
int screen_open(struct screen **ret);

/* NULL is accepted. */
void screen_close(struct screen *s);

/* Gives the terminal back for a while, and takes it again. */
void screen_leave(struct screen *s);
void screen_enter(struct screen *s);

/* Asks the terminal how large it is now. */
void screen_size(struct screen *s, int *ret_rows, int *ret_columns);

/* Puts one line; it is seen after screen_flush(). */
void screen_put(struct screen *s, int row, const struct view_line *line);

/* A terminal that takes nothing now (Ctrl-S) is left alone. */
void screen_flush(struct screen *s);

/* The next key that was pressed, a character or enum view_key; or -1. */
int screen_key(struct screen *s);
