/* SPDX-License-Identifier: MIT */
#include "screen.h"

#include <stdio.h>

int screen_open(_unused_ struct screen **ret)
{
	fprintf(stderr, "proctally top: built without ncurses: it cannot draw "
			"on a terminal; try \"proctally top --count 10 | cat\""
			"\n");
	return -ENOSYS;
}

void screen_close(_unused_ struct screen *s)
{
}

void screen_leave(_unused_ struct screen *s)
{
}

void screen_enter(_unused_ struct screen *s)
{
}

void screen_size(_unused_ struct screen *s, _unused_ int *ret_rows,
		 _unused_ int *ret_columns)
{
}

void screen_put(_unused_ struct screen *s, _unused_ int row,
		_unused_ const struct view_line *line)
{
}

void screen_flush(_unused_ struct screen *s)
{
}

int screen_key(_unused_ struct screen *s)
{
	return -1;
}
