/* SPDX-License-Identifier: MIT */
#include "textline.h"

#include <stdarg.h>
#include <stdio.h>

void textline_done(struct textline *t)
{
	free(t->s);
	*t = (struct textline){0};
}

static void put(struct textline *t, const char *bytes, size_t n)
{
	if (array_reserve(&t->s, &t->cap, t->n + n + 1, 1)) {
		t->lost = true;
		return;
	}
	memcpy(t->s + t->n, bytes, n);
	t->n += n;
	t->s[t->n] = '\0';
}

void textline_printf(struct textline *t, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		t->lost = true;
		return;
	}
	put(t, text, (size_t)n);
	free(text);
}

/*
 * The character that s begins with and the bytes that it takes; 0 bytes if it
 * is none: a lone or missing continuation, one that a shorter form has (RFC
 * 3629), a surrogate, or beyond Unicode.
 */
static size_t decode(struct str s, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char first = (unsigned char)s.s[0];
	size_t n = first < 0x80	  ? 1
		   : first < 0xc0 ? 0
		   : first < 0xe0 ? 2
		   : first < 0xf0 ? 3
		   : first < 0xf8 ? 4
				  : 0;
	uint32_t c = n < 2 ? first : first & (0x7fu >> n);

	if (n == 0 || n > s.n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		unsigned char more = (unsigned char)s.s[i];

		if ((more & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (more & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*ret = c;
	return n;
}

/* Controls of ASCII and of ISO 6429; ends of lines; turns of direction. */
static bool is_steering(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

void textline_add(struct textline *t, struct str text)
{
	while (text.n > 0) {
		uint32_t c = 0;
		size_t n = decode(text, &c);

		if (n > 0 && !is_steering(c)) {
			put(t, text.s, n);
		} else {
			n = MAX(n, (size_t)1);
			for (size_t i = 0; i < n; i++)
				textline_printf(t, "\\x%02x",
						(unsigned char)text.s[i]);
		}
		text.s += n;
		text.n -= n;
	}
}

/* Where to cut so that no character is torn. */
static size_t cut_at(struct str text, size_t max)
{
	size_t n = max;

	while (n > 0 && max - n < 3 && (text.s[n] & 0xc0) == 0x80)
		n--;
	return (text.s[n] & 0xc0) == 0x80 ? max : n;
}

void textline_quote(struct textline *t, struct str text, size_t max)
{
	size_t whole = text.n;

	if (whole > max)
		text.n = cut_at(text, max);
	put(t, "\"", 1);
	textline_add(t, text);
	if (text.n < whole)
		textline_printf(t, "...\" (%zu bytes)", whole);
	else
		put(t, "\"", 1);
}
