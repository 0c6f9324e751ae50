/* SPDX-License-Identifier: MIT */
/*
 * The second half of yamltree: why libyaml refused a text, in words that say
 * what to do. libyaml names the state of its scanner, which helps those who
 * know it; rules are full of regexes and globs, so the mistake behind it is
 * nearly always a missing pair of quotes, a tab or an indentation.
 *
 * libyaml counts lines and columns from 0 and in characters. A byte offset is
 * all that it knows of bytes that it cannot read.
 *
 * Invariant: each call adds one message.
 */
#include "yamltree-explain.h"

#include <stdio.h>

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t after_bom(struct str text)
{
	return str_begins(text, STR("\xef\xbb\xbf")) ? 3 : 0;
}

static yaml_mark_t mark_of_offset(struct str text, size_t offset)
{
	yaml_mark_t mark = {0};

	for (size_t i = after_bom(text); i < MIN(offset, text.n); i++) {
		char c = text.s[i];

		mark.index += !is_continuation(c);
		if (c == '\n' ||
		    (c == '\r' && i + 1 < text.n && text.s[i + 1] != '\n')) {
			mark.line++;
			mark.column = 0;
		} else if (!is_continuation(c) && c != '\r') {
			mark.column++;
		}
	}
	return mark;
}

/* libyaml puts the end of a text into a line of its own. */
static yaml_mark_t mark_within(struct str text, yaml_mark_t mark)
{
	yaml_mark_t end = mark_of_offset(text, text.n);

	return mark.line > end.line ? end : mark;
}

static size_t offset_of_mark(struct str text, yaml_mark_t mark)
{
	size_t n = 0, i = after_bom(text);

	for (; i < text.n; i++)
		if (!is_continuation(text.s[i]) && n++ == mark.index)
			break;
	return i;
}

#define complain(d, mark, ...)                                                 \
	diag_add(d, DIAG_ERROR, (unsigned)(mark).line + 1,                     \
		 (unsigned)(mark).column + 1, __VA_ARGS__)

/* What libyaml says of a mistake, and what we say. */
struct complaint {
	const char *context, *problem; /* beginnings; NULL: any */
	bool at_context; /* the place is where the context began */
	const char *text;
};

static const struct complaint complaints[] = {
    {"while scanning an alias", NULL, true,
     "a \"*\" at the beginning means an alias in YAML; write a pattern that "
     "begins with it as \"glob:*...\", in quotes"},
    {"while scanning an anchor", NULL, true,
     "a \"&\" at the beginning means an anchor in YAML; quote a text that "
     "begins with it"},
    {"while scanning a tag", NULL, true,
     "a \"!\" at the beginning means a tag in YAML; quote a text that "
     "begins with it"},
    {"while parsing a node", "found undefined tag handle", true,
     "a \"!\" at the beginning means a tag in YAML; quote a text that "
     "begins with it"},
    {"while parsing a quoted scalar", NULL, false,
     "unknown escape in double quotes; put a pattern with backslashes "
     "into single quotes"},
    {"while scanning a quoted scalar", NULL, true,
     "this quote is never closed"},
    {"while scanning a block scalar", NULL, true,
     "a \"|\" or \">\" at the beginning means a block of lines in YAML; "
     "quote a text that begins with it"},
    {"while scanning a plain scalar", "found unexpected ':'", false,
     "a \":\" within brackets needs a blank behind it; quote a text that "
     "holds one"},
    {"while scanning a simple key", NULL, true, "a \":\" is missing here"},
    {"while scanning for the next token", NULL, false,
     "a text cannot begin with this character; quote it"},
    {NULL, "mapping values are not allowed", false,
     "a \":\" cannot stand here; quote a text that holds one, or check "
     "the indentation"},
    {"while parsing a flow node", NULL, false,
     "a value is missing here, or a bracket is not closed"},
    {"while parsing a block node", NULL, false, "a value is missing here"},
    {"while parsing a block", NULL, false,
     "this does not fit the lines above; check the indentation, and "
     "quote a text that has quotes or brackets at its beginning"},
    {"while parsing a flow", NULL, true,
     "this bracket is never closed, or a comma is missing in it; quote a "
     "text that begins with a bracket"},
    {NULL, "did not find expected <document start>", false,
     "nothing can follow here; check the indentation, and whether a line "
     "\"...\" ends the document above"},
};

static bool begins(const char *s, const char *beginning)
{
	return !beginning || (s && !strncmp(s, beginning, strlen(beginning)));
}

/* Tabs are blanks to YAML within quotes and brackets. */
static bool may_hold_tabs(const char *context)
{
	return context && (begins(context, "while scanning a quoted") ||
			   begins(context, "while parsing a flow"));
}

/* Moves the mark to a tab in the indentation of its line, if there is one. */
static bool find_tab(struct str text, yaml_mark_t *mark)
{
	size_t here = offset_of_mark(text, *mark), i = here;

	while (i > 0 && text.s[i - 1] != '\n' && text.s[i - 1] != '\r')
		i--;
	if (i == 0)
		i = after_bom(text);
	for (size_t column = 0; i < text.n; i++, column++) {
		if (text.s[i] == '\t') {
			mark->column = column;
			return true;
		}
		if (text.s[i] != ' ')
			break;
	}
	return here < text.n && text.s[here] == '\t';
}

/* How many lines from there on have a tab in their indentation? */
static size_t count_tabbed(struct str text, size_t offset)
{
	size_t n = 0;
	bool indents = false; /* nothing but blanks since the line began */

	for (size_t i = offset; i < text.n; i++) {
		char c = text.s[i];

		if (c == '\n' || c == '\r') {
			indents = true;
		} else if (indents && c == '\t') {
			n++;
			indents = false;
		} else if (c != ' ') {
			indents = false;
		}
	}
	return n;
}

/* libyaml stops at the first: those below are told with it. */
static void tell_tab(struct str text, yaml_mark_t mark, struct diag *d)
{
	size_t more = count_tabbed(text, offset_of_mark(text, mark));

	if (more)
		complain(d, mark,
			 "a tab cannot indent in YAML; use blanks, here and in "
			 "%zu line%s below",
			 more, more == 1 ? "" : "s");
	else
		complain(d, mark, "a tab cannot indent in YAML; use blanks");
}

static void explain_bytes(const yaml_parser_t *p, struct str text,
			  struct diag *d)
{
	size_t offset = p->problem_offset;
	yaml_mark_t mark;

	/* An ISO 8859-1 letter shows by what follows it; it is the mistake. */
	if (begins(p->problem, "invalid trailing")) {
		do {
			offset--;
		} while (offset > 0 && is_continuation(text.s[offset]));
	}

	mark = mark_of_offset(text, offset);
	if (begins(p->problem, "control characters"))
		complain(d, mark, "control character 0x%02x is not allowed",
			 (unsigned)p->problem_value);
	else
		complain(d, mark,
			 "byte 0x%02x is not UTF-8; save the file as UTF-8",
			 offset < text.n ? (unsigned char)text.s[offset] : 0u);
}

/* Is there an unquoted "{{" between two places? Moves the first mark to it. */
static bool find_template(struct str text, yaml_mark_t *mark, yaml_mark_t end)
{
	size_t i = offset_of_mark(text, *mark);
	size_t n = MIN(offset_of_mark(text, end) + 2, text.n);
	yaml_mark_t at;
	char quote = '\0';

	for (; i + 1 < n; i++) {
		char c = text.s[i];

		if (quote)
			quote = c == quote ? '\0' : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else if (c == '{' && text.s[i + 1] == '{')
			break;
	}
	if (i + 1 >= n)
		return false;
	at = mark_of_offset(text, i);
	mark->line = at.line;
	mark->column = at.column;
	return true;
}

/* A line before some place that begins with a comment of a template. */
static bool find_comment(struct str text, size_t end, size_t *ret)
{
	bool begins_line = true;

	for (size_t i = 0; i + 1 < end; i++) {
		char c = text.s[i];

		if (begins_line && c == '{' && text.s[i + 1] == '#') {
			*ret = i;
			return true;
		}
		begins_line = c == '\n' || (begins_line && c == ' ');
	}
	return false;
}

/* What a template was made of, or is to be made of. */
static bool explain_template(const yaml_parser_t *p, struct str text,
			     yaml_mark_t mark, yaml_mark_t context,
			     struct diag *d)
{
	size_t here = offset_of_mark(text, mark);
	size_t comment;

	if (here > 0 && here < text.n && text.s[here - 1] == '{' &&
	    text.s[here] == '%') {
		complain(
		    d, mark,
		    "\"{%%\" is of a template, as Ansible has them: load the "
		    "file that is made of it");
		return true;
	}
	if (begins(p->context, "while parsing a flow node") &&
	    find_comment(text, here, &comment)) {
		mark = mark_of_offset(text, comment);
		complain(d, mark,
			 "\"{#\" is of a template, as Ansible has them: load "
			 "the file that is made of it");
		return true;
	}
	if (!p->context || !begins(p->context, "while parsing a flow") ||
	    !find_template(text, &context, mark))
		return false;
	complain(d, context,
		 "quote a text with {{...}}, as in name: \"{{.Comm}}\"");
	return true;
}

/* Is there a letter right behind a quote, as in 'it's'? */
static bool ends_early(const yaml_parser_t *p, struct str text,
		       yaml_mark_t mark)
{
	size_t here = offset_of_mark(text, mark);

	return p->context && begins(p->context, "while parsing a block") &&
	       here > 0 && here < text.n && text.s[here - 1] == '\'';
}

static void explain_syntax(const yaml_parser_t *p, struct str text,
			   struct diag *d)
{
	yaml_mark_t mark = mark_within(text, p->problem_mark);
	yaml_mark_t context = mark_within(text, p->context_mark);

	if (!may_hold_tabs(p->context) && find_tab(text, &mark)) {
		tell_tab(text, mark, d);
		return;
	}
	if (explain_template(p, text, mark, context, d))
		return;
	if (ends_early(p, text, mark)) {
		complain(d, mark,
			 "a quote ends before this; one within single quotes "
			 "is written twice, as in 'it''s'");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(complaints); i++) {
		const struct complaint *c = &complaints[i];

		if (!begins(p->context, c->context) ||
		    !begins(p->problem, c->problem))
			continue;
		complain(d, c->at_context ? context : mark, "%s", c->text);
		return;
	}
	complain(d, mark, "not YAML: %s%s%s", p->problem, p->context ? " " : "",
		 p->context ? p->context : "");
}

void yamltree_explain(const yaml_parser_t *p, struct str text, struct diag *d)
{
	if (p->error == YAML_READER_ERROR)
		explain_bytes(p, text, d);
	else
		explain_syntax(p, text, d);
}
