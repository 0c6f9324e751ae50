/* SPDX-License-Identifier: MIT */
/*
 * Rows of tokens: making them of plain texts and globs, and comparing them.
 * Regular expressions are read in rulelint-regex.c.
 */
#include "rulelint-shape.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* ANYs come before a STAR, so that one language has one row. */
int shape_push(struct shape *s, unsigned token)
{
	bool star = s->n > 0 && s->token[s->n - 1] == SHAPE_STAR;

	if (star && token == SHAPE_STAR)
		return 0;
	if (array_reserve(&s->token, &s->cap, s->n + 1, sizeof(s->token[0])))
		return -ENOMEM;
	if (token < SHAPE_ANY && s->fold)
		token = (unsigned char)lower((char)token);
	s->token[s->n++] = (uint16_t)token;
	if (star && token == SHAPE_ANY) {
		s->token[s->n - 2] = SHAPE_ANY;
		s->token[s->n - 1] = SHAPE_STAR;
	}
	return 0;
}

/* What follows a "[" would have to be read as PCRE2 does: it is any text. */
static int read_glob(struct shape *s, struct str glob)
{
	for (size_t i = 0; i < glob.n; i++) {
		unsigned token = (unsigned char)glob.s[i];
		int r;

		if (token == '[')
			s->exact = false;
		if (token == '*' || token == '[')
			token = SHAPE_STAR;
		else if (token == '?')
			token = SHAPE_ANY;
		else if (token == '\\' && i + 1 < glob.n)
			token = (unsigned char)glob.s[++i];
		r = shape_push(s, token);
		if (r)
			return r;
		if (!s->exact)
			break;
	}
	return 0;
}

static bool is_literal(const struct shape *s)
{
	for (size_t i = 0; i < s->n; i++) {
		unsigned t = s->token[i];

		if (t >= SHAPE_ANY || (s->fold && t >= 'a' && t <= 'z'))
			return false;
	}
	return s->exact;
}

int shape_init(struct shape *s, const struct matcher *m)
{
	struct str text = {m->text, m->text_len};
	int r = 0;

	*s = (struct shape){.exact = true, .fold = m->ignore_case};
	if (m->kind == MATCHER_REGEX)
		r = shape_read_regex(s, text);
	else if (m->kind == MATCHER_GLOB)
		r = read_glob(s, text);
	for (size_t i = 0; m->kind == MATCHER_EXACT && !r && i < text.n; i++)
		r = shape_push(s, (unsigned char)text.s[i]);
	s->exact &= s->fault == SHAPE_FINE;
	s->literal = is_literal(s);
	if (r)
		shape_done(s);
	return r;
}

void shape_done(struct shape *s)
{
	free(s->token);
	*s = (struct shape){0};
}

/* Does one token of a wide shape take one of a narrow one? */
static bool takes(const struct shape *wide, unsigned w,
		  const struct shape *narrow, unsigned n)
{
	if (n == SHAPE_STAR || w == SHAPE_STAR)
		return false;
	if (w == SHAPE_ANY)
		return true;
	if (n == SHAPE_ANY)
		return false;
	if (wide->fold)
		return w == (unsigned char)lower((char)n);
	return w == n && !(narrow->fold && n >= 'a' && n <= 'z');
}

bool shape_covers(const struct shape *wide, const struct shape *narrow)
{
	size_t w = 0, n = 0, star = SIZE_MAX, resume = 0;

	/* As a glob is matched: a star takes one more whenever it fails. */
	while (n < narrow->n) {
		if (w < wide->n && wide->token[w] == SHAPE_STAR) {
			star = w++;
			resume = n;
		} else if (w < wide->n && takes(wide, wide->token[w], narrow,
						narrow->token[n])) {
			w++;
			n++;
		} else if (star != SIZE_MAX) {
			w = star + 1;
			n = ++resume;
		} else {
			return false;
		}
	}
	while (w < wide->n && wide->token[w] == SHAPE_STAR)
		w++;
	return w == wide->n;
}
