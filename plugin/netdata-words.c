/* SPDX-License-Identifier: MIT */
/*
 * Words of apps_groups.conf. Blanks, control bytes and colons separate them,
 * wherever they stand; a quote counts at the beginning of a word alone and
 * ends it; nothing escapes anything. Source: procfile_parser() in
 * src/libnetdata/procfile/procfile.c of Netdata 2.
 */
#include "netdata-internal.h"

void netdata_reader_init(struct netdata_reader *r, struct str text,
			 struct diag *d)
{
	static const struct str bom = {"\xef\xbb\xbf", 3};

	*r = (struct netdata_reader){
	    .s = text.s, .end = text.s + text.n, .line = 1, .d = d};
	if (str_begins(text, bom))
		r->s += bom.n;
	r->line_start = r->s;
}

static bool is_line_end(char c)
{
	return c == '\n' || c == '\r';
}

static bool is_separator(char c)
{
	unsigned char u = (unsigned char)c;

	return (u <= ' ' && !is_line_end(c)) || u == 0x7f || c == ':';
}

/* In characters, as an editor counts them. */
static unsigned column_of(const struct netdata_reader *r, const char *s)
{
	unsigned column = 1;

	for (const char *p = r->line_start; p < s; p++)
		column += ((unsigned char)*p & 0xc0) != 0x80;
	return column;
}

static struct str take_quoted(struct netdata_reader *r, unsigned column)
{
	char quote = *r->s++;
	const char *begin = r->s;
	size_t n;

	while (r->s < r->end && !is_line_end(*r->s) && *r->s != quote)
		r->s++;
	n = (size_t)(r->s - begin);
	if (r->s < r->end && *r->s == quote)
		r->s++;
	else if (r->in_comment)
		diag_add(r->d, DIAG_WARNING, r->line, column,
			 "this quote is not closed; though it is in a comment, "
			 "Netdata loses the lines up to the next one");
	else
		diag_add(r->d, DIAG_ERROR, r->line, column,
			 "this quote is not closed in its line");
	return (struct str){begin, n};
}

static struct str take_plain(struct netdata_reader *r)
{
	const char *begin = r->s;

	while (r->s < r->end && !is_line_end(*r->s) && !is_separator(*r->s))
		r->s++;
	if (r->s[-1] == '\\' && !r->in_comment)
		diag_add(r->d, DIAG_WARNING, r->line, column_of(r, r->s - 1),
			 "a backslash keeps no blank together in Netdata; "
			 "quotes do");
	return (struct str){begin, (size_t)(r->s - begin)};
}

bool netdata_next_word(struct netdata_reader *r, struct netdata_word *ret)
{
	struct netdata_word w = {0};

	for (; r->s < r->end && is_separator(*r->s); r->s++)
		w.after_colon |= *r->s == ':';
	if (r->s == r->end || is_line_end(*r->s))
		return false;
	w.column = column_of(r, r->s);
	r->in_comment |= *r->s == '#';
	if (*r->s == '"' || *r->s == '\'')
		w.text = take_quoted(r, w.column);
	else
		w.text = take_plain(r);
	/* Netdata looks for it when the quotes are gone. */
	r->in_comment |= w.text.n && w.text.s[0] == '#';
	*ret = w;
	return true;
}

bool netdata_next_value(struct netdata_reader *r, struct netdata_word *ret)
{
	struct netdata_word w;

	while (!r->in_comment && netdata_next_word(r, &w)) {
		if (w.text.n == 0 || r->in_comment)
			continue;
		*ret = w;
		return true;
	}
	return false;
}

/* A text has none: where there is one, most of it is something else. */
static void refuse_nul(struct netdata_reader *r)
{
	const char *nul =
	    memchr(r->line_start, '\0', (size_t)(r->s - r->line_start));

	if (nul)
		diag_add(r->d, DIAG_ERROR, r->line, column_of(r, nul),
			 "a NUL byte; this is no text");
}

bool netdata_next_line(struct netdata_reader *r)
{
	struct netdata_word w;

	while (netdata_next_word(r, &w))
		; /* comments may have open quotes */
	refuse_nul(r);
	if (r->end - r->s > 1 && r->s[0] == '\r' && r->s[1] == '\n')
		r->s++;
	if (r->s < r->end)
		r->s++;
	r->line_start = r->s;
	r->line++;
	r->in_comment = false;
	return r->s < r->end;
}
