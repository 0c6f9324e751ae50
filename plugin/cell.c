/* SPDX-License-Identifier: MIT */
#include "cell.h"

#include <stdio.h>
#include <wchar.h>

void cell_percent(double v, char buf[CELL_SIZE])
{
	snprintf(buf, CELL_SIZE, v < 9999.95 ? "%.1f" : "%.0f", v);
}

/* Three digits at most and a unit, or less and one behind the point. */
static void scaled(double v, double step, const char *units, char *buf)
{
	size_t unit = 0;

	for (; v >= 999.5 && units[unit + 1]; unit++)
		v /= step;
	snprintf(buf, CELL_SIZE,
		 unit == 0 || v >= 99.95 ? "%.0f%.1s" : "%.1f%.1s", v,
		 unit ? &units[unit] : "");
}

void cell_bytes(double v, char buf[CELL_SIZE])
{
	scaled(v, 1024, " KMGTPE", buf);
}

void cell_count(double v, char buf[CELL_SIZE])
{
	if (v < 99999.5)
		snprintf(buf, CELL_SIZE, "%.0f", v);
	else
		scaled(v, 1000, " kMGTPE", buf);
}

void cell_age(double v, char buf[CELL_SIZE])
{
	unsigned long s = v < 1e12 ? (unsigned long)v : 1000000000000ul;
	unsigned long m = s / 60, h = m / 60, d = h / 24;

	if (d >= 100)
		snprintf(buf, CELL_SIZE, "%lud", d);
	else if (d)
		snprintf(buf, CELL_SIZE, "%lud%02luh", d, h % 24);
	else if (h)
		snprintf(buf, CELL_SIZE, "%luh%02lum", h, m % 60);
	else if (m)
		snprintf(buf, CELL_SIZE, "%lum%02lus", m, s % 60);
	else
		snprintf(buf, CELL_SIZE, "%lus", s);
}

struct glyph {
	const char *s;
	size_t n;    /* bytes as they are to be written */
	size_t used; /* bytes of the text that it stands for */
	int width;
};

static struct glyph next_glyph(const char *s, size_t n)
{
	static const char unknown[] = "?";
	mbstate_t state = {0};
	wchar_t c;
	size_t used = mbrtowc(&c, s, n, &state);
	int width;

	if (used == 0 || used > n) /* NUL, no character, half of one */
		return (struct glyph){unknown, 1, 1, 1};
	width = wcwidth(c);
	if (width <= 0)
		return (struct glyph){unknown, 1, used, 1};
	return (struct glyph){s, used, used, width};
}

/* As many glyphs as fit; *ret_all tells whether that was all of them. */
static int put(struct str text, int width, char *buf, size_t size,
	       bool *ret_all)
{
	int taken = 0;
	size_t n = 0;

	*ret_all = true;
	for (size_t at = 0; at < text.n;) {
		struct glyph g = next_glyph(text.s + at, text.n - at);

		if (taken + g.width > width || n + g.n >= size) {
			*ret_all = false;
			break;
		}
		memcpy(buf + n, g.s, g.n);
		n += g.n;
		at += g.used;
		taken += g.width;
	}
	buf[n] = '\0';
	return taken;
}

int cell_text(struct str text, int width, char *buf, size_t size)
{
	bool all;
	int taken = put(text, width, buf, size, &all);

	if (all || width <= 0 || size < 2)
		return taken;
	taken = put(text, width - 1, buf, size - 1, &all);
	strcat(buf, "+");
	return taken + 1;
}
