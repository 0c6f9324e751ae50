/* SPDX-License-Identifier: MIT */
#include "screen.h"

#include <curses.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>

enum {
	ESCAPE_MS = 50, /* after that an Escape is no longer key's beginning */
	CTRL_L = 12,
};

struct screen {
	SCREEN *curses;
};

/* Ctrl-S would hold up our writing, and with it the answer to SIGTERM. */
static void leave_flow_alone(void)
{
	struct termios t;

	if (tcgetattr(STDIN_FILENO, &t) < 0)
		return;
	t.c_iflag &= ~(tcflag_t)IXON;
	tcsetattr(STDIN_FILENO, TCSANOW, &t);
	def_prog_mode();
}

/* Whether a cursor can be sent anywhere at all. */
static bool can_draw(const char *term)
{
	int error;
	const char *cup;
	bool can;

	if (setupterm(term, STDOUT_FILENO, &error) != OK)
		return false;
	cup = tigetstr("cup");
	can = cup && cup != (const char *)-1;
	del_curterm(cur_term);
	return can;
}

int screen_open(struct screen **ret)
{
	_cleanup_free_ struct screen *s = calloc(1, sizeof(*s));
	const char *term = getenv("TERM");

	if (!s)
		return -ENOMEM;
	if (!term || !*term) {
		fprintf(stderr, "proctally top: TERM is not set: it has to "
				"name the terminal\n");
		return -EINVAL;
	}
	if (!can_draw(term) || !(s->curses = newterm(term, stdout, stdin))) {
		fprintf(stderr,
			"proctally top: the terminal \"%s\" is unknown or "
			"cannot be drawn on: set TERM to one that can\n",
			term);
		return -EINVAL;
	}
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	leave_flow_alone();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	leaveok(stdscr, TRUE);
	curs_set(0);
	*ret = steal_ptr(s);
	return 0;
}

void screen_close(struct screen *s)
{
	if (!s)
		return;
	endwin();
	delscreen(s->curses);
	free(s);
}

void screen_leave(_unused_ struct screen *s)
{
	endwin();
}

void screen_enter(_unused_ struct screen *s)
{
	reset_prog_mode();
	clearok(curscr, TRUE);
}

void screen_size(_unused_ struct screen *s, int *ret_rows, int *ret_columns)
{
	struct winsize ws;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row &&
	    ws.ws_col && (ws.ws_row != LINES || ws.ws_col != COLS))
		resizeterm(ws.ws_row, ws.ws_col);
	*ret_rows = LINES;
	*ret_columns = COLS;
}

void screen_put(_unused_ struct screen *s, int row,
		const struct view_line *line)
{
	static const attr_t styles[] = {[VIEW_PLAIN] = A_NORMAL,
					[VIEW_BOLD] = A_BOLD,
					[VIEW_BAR] = A_REVERSE};

	wmove(stdscr, row, 0);
	wclrtoeol(stdscr);
	wattrset(stdscr, (int)styles[line->style]);
	waddstr(stdscr, line->text);
	wattrset(stdscr, A_NORMAL);
	if (line->mark >= 0)
		mvwchgat(stdscr, row, line->mark, line->mark_len,
			 A_BOLD | A_UNDERLINE, 0, NULL);
}

void screen_flush(_unused_ struct screen *s)
{
	struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};

	if (poll(&p, 1, 0) == 1)
		refresh();
}

int screen_key(_unused_ struct screen *s)
{
	static const struct {
		int curses, key;
	} keys[] = {
	    {KEY_UP, VIEW_KEY_UP},	   {KEY_DOWN, VIEW_KEY_DOWN},
	    {KEY_LEFT, VIEW_KEY_LEFT},	   {KEY_RIGHT, VIEW_KEY_RIGHT},
	    {KEY_PPAGE, VIEW_KEY_PAGE_UP}, {KEY_NPAGE, VIEW_KEY_PAGE_DOWN},
	    {KEY_HOME, VIEW_KEY_HOME},	   {KEY_END, VIEW_KEY_END},
	    {KEY_ENTER, VIEW_KEY_ENTER},   {'\n', VIEW_KEY_ENTER},
	    {'\r', VIEW_KEY_ENTER},	   {KEY_BACKSPACE, VIEW_KEY_LEFT},
	    {27, VIEW_KEY_ESCAPE},
	};
	int c;

	do
		c = wgetch(stdscr);
	while (c == KEY_RESIZE); /* from resizeterm() */
	if (c == ERR)
		return -1;
	if (c == CTRL_L)
		clearok(curscr, TRUE);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].curses == c)
			return keys[i].key;
	return c < 128 ? c : VIEW_KEY_OTHER;
}
