/* SPDX-License-Identifier: MIT */
/*
 * One pattern: what it is compared with, and how a rule file writes it.
 *
 * Invariant: what a text of the file becomes is quoted, in ASCII and without
 * control bytes, so that it can be read back whatever it was.
 */
#include "netdata-internal.h"

struct netdata_pattern netdata_pattern_of(struct str word, unsigned line)
{
	struct netdata_pattern p = {.text = word, .line = line};

	while (p.text.n && p.text.s[p.text.n - 1] == '*') {
		p.text.n--;
		p.star_after = true;
	}
	/* "*" is a prefix of no bytes, "**" is in every command line. */
	p.star_before = p.text.n == 0 && word.n > 1;
	while (p.text.n && p.text.s[0] == '*') {
		p.text.s++;
		p.text.n--;
		p.star_before = true;
	}
	p.star_inside = p.text.n && memchr(p.text.s, '*', p.text.n);
	return p;
}

/* How bytes are written that are no letters. */
enum syntax {
	SYNTAX_PLAIN,
	SYNTAX_GLOB,
	SYNTAX_REGEX,
	SYNTAX_CMDLINE, /* a regex; a rule sees control bytes as blanks */
};

static bool is_printable(char c)
{
	return c >= ' ' && c < 0x7f;
}

static bool is_printable_text(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (!is_printable(text.s[i]))
			return false;
	return true;
}

/* One byte that stands for itself, within single quotes of YAML. */
static void put_byte(struct outbuf *o, enum syntax syntax, char c)
{
	static const char *const special[] = {
	    [SYNTAX_PLAIN] = "",
	    [SYNTAX_GLOB] = "\\?*[]",
	    [SYNTAX_REGEX] = "\\^$.|?*+()[]{}",
	    [SYNTAX_CMDLINE] = "\\^$.|?*+()[]{}",
	};
	unsigned char u = (unsigned char)c;

	if (syntax == SYNTAX_CMDLINE && (u < ' ' || u == 0x7f))
		outbuf_printf(o, " ");
	else if (!is_printable(c))
		outbuf_printf(o, "\\x%02x", u);
	else if (c == '\'')
		outbuf_printf(o, "''");
	else
		outbuf_printf(o, "%s%c", strchr(special[syntax], c) ? "\\" : "",
			      c);
}

/* A backslash counts in Netdata only where there is a star inside. */
static void put_text(struct outbuf *o, enum syntax syntax,
		     const struct netdata_pattern *p)
{
	const char *star = syntax == SYNTAX_GLOB ? "*" : ".*";

	for (size_t i = 0; i < p->text.n; i++) {
		char c = p->text.s[i];

		if (p->star_inside && c == '\\' && i + 1 < p->text.n)
			c = p->text.s[++i];
		if (p->star_inside && c == '*')
			outbuf_printf(o, "%s", star);
		else
			put_byte(o, syntax, c);
	}
}

void netdata_put_word(struct outbuf *o, const struct netdata_pattern *p)
{
	outbuf_printf(o, "\"%s", p->star_before ? "*" : "");
	for (size_t i = 0; i < p->text.n; i++)
		if (is_printable(p->text.s[i]))
			outbuf_write(o, &p->text.s[i], 1);
		else
			outbuf_printf(o, "\\x%02x",
				      (unsigned char)p->text.s[i]);
	outbuf_printf(o, "%s\"", p->star_after ? "*" : "");
}

/* As if it had a prefix, or were a pattern or a token of ours. */
static bool may_mislead(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.s[i] && strchr(":|^\\[{(+", text.s[i]))
			return true;
	return false;
}

void netdata_put_name(struct outbuf *o, const struct netdata_pattern *p)
{
	bool star = p->star_before || p->star_inside || p->star_after;

	if (!is_printable_text(p->text)) {
		outbuf_printf(o, "'re:%s", p->star_before ? "" : "^");
		put_text(o, SYNTAX_REGEX, p);
		outbuf_printf(o, "%s'\n", p->star_after ? "" : "$");
	} else if (star) {
		outbuf_printf(o, "'glob:%s", p->star_before ? "*" : "");
		put_text(o, SYNTAX_GLOB, p);
		outbuf_printf(o, "%s'\n", p->star_after ? "*" : "");
	} else {
		outbuf_printf(o, "'%s", may_mislead(p->text) ? "exact:" : "");
		put_text(o, SYNTAX_PLAIN, p);
		outbuf_printf(o, "'\n");
	}
}

void netdata_put_cmdline(struct outbuf *o, const struct netdata_pattern *p)
{
	bool colon = p->text.n && memchr(p->text.s, ':', p->text.n);

	outbuf_printf(o, "'%s", colon ? "re:" : "");
	put_text(o, SYNTAX_CMDLINE, p);
	outbuf_printf(o, "%s'\n", p->text.n ? "" : ".");
}

void netdata_put_cut(struct outbuf *o, const struct netdata_pattern *p)
{
	struct netdata_pattern cut = {.text = {p->text.s, NETDATA_COMM_MAX}};

	outbuf_printf(o, "    comm: ");
	netdata_put_name(o, &cut);
	outbuf_printf(o, "    cmdline: '");
	if (memchr(p->text.s, ':', p->text.n))
		outbuf_printf(o, "re:");
	put_text(o, SYNTAX_CMDLINE, p);
	/* Suffixes that Netdata strips, and where it takes a name to end. */
	if (!p->star_after)
		outbuf_printf(o, "(\\.(sh|py|pl|js))?"
				 "(?![^\\s/\\\\\"'':)])");
	outbuf_printf(o, "'\n");
}

bool netdata_is_all(const struct netdata_pattern *p)
{
	return p->text.n == 0 && !p->star_before;
}

bool netdata_is_cmdline(const struct netdata_pattern *p)
{
	return p->star_before && p->star_after;
}

bool netdata_is_comm(const struct netdata_pattern *p)
{
	return !netdata_is_all(p) && !netdata_is_cmdline(p);
}

bool netdata_is_long(const struct netdata_pattern *p)
{
	return netdata_is_comm(p) && !p->star_before && !p->star_inside &&
	       p->text.n > NETDATA_COMM_MAX;
}

bool netdata_is_tail(const struct netdata_pattern *p)
{
	return netdata_is_comm(p) && (p->star_before || p->star_inside);
}

bool netdata_takes_comm(const struct netdata_pattern *p, struct str comm)
{
	if (!netdata_is_comm(p) || p->star_inside)
		return false;
	if (p->star_before)
		return str_ends(comm, p->text);
	if (p->star_after)
		return str_begins(comm, p->text);
	return str_eq(comm, p->text);
}
