/* SPDX-License-Identifier: MIT */
/*
 * Reading regular expressions. A sequence of plain pieces is understood:
 * bytes, dots, classes, groups, each with a quantifier, and anchors. A group
 * is taken for any text. Whatever could change the meaning of the rest
 * (alternatives, options, verbs, references) makes the whole a shape that
 * takes everything.
 *
 * Source of the syntax: pcre2pattern(3), PCRE2 10.42.
 */
#include "rulelint-shape.h"

enum {
	COPIES_MAX = 64, /* of what stands before {n}; more are any text */
};

/* A regular expression that is being read. */
struct reader {
	struct shape *shape;
	const char *at, *end;
	bool ended; /* a "$" was read */
};

enum atom_kind {
	ATOM_BYTE,
	ATOM_DOT,
	ATOM_CLASS,
	ATOM_GROUP,
	ATOM_ANCHOR, /* takes no byte and has no quantifier */
	ATOM_UNKNOWN,
};

/* What a quantifier can follow. */
struct atom {
	enum atom_kind kind;
	unsigned char byte;
};

struct quantifier {
	size_t min;
	bool more; /* than min are allowed */
	bool open; /* any number of them */
	bool possessive;
};

/* Nothing is known of the pattern. */
static int give_up(struct shape *s)
{
	s->n = 0;
	s->exact = false;
	s->fault = SHAPE_FINE;
	return shape_push(s, SHAPE_STAR);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The byte at the reader, or NUL; what follows is always asked first. */
static char peek(const struct reader *r, size_t offset)
{
	return offset < (size_t)(r->end - r->at) ? r->at[offset] : '\0';
}

static bool skip_class(struct reader *r)
{
	r->at++;
	if (peek(r, 0) == '^')
		r->at++;
	if (peek(r, 0) == ']')
		r->at++;
	while (r->at < r->end) {
		char c = *r->at++, next = peek(r, 0);

		if (c == ']')
			return true;
		if (c == '[' && (next == ':' || next == '.' || next == '='))
			return false;
		if (c == '\\')
			r->at++;
	}
	return false;
}

/* After a "(": is it a group, and not an option, a verb or a reference? */
static bool is_group(const struct reader *r)
{
	if (peek(r, 1) != '?')
		return peek(r, 1) != '*';
	if (peek(r, 2) == 'P')
		return peek(r, 3) == '<';
	return peek(r, 2) && strchr(":|>=!<'", peek(r, 2));
}

static bool skip_group(struct reader *r)
{
	unsigned depth = 0;

	while (r->at < r->end) {
		char c = *r->at;

		if (c == '[') {
			if (!skip_class(r))
				return false;
			continue;
		}
		if (c == '(') {
			if (!is_group(r))
				return false;
			depth++;
		}
		r->at += c == '\\' ? 2 : 1;
		if (c == ')' && --depth == 0)
			return true;
	}
	return false;
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* \xH and \xHH; \0, \0O and \0OO */
static struct atom read_number(struct reader *r, bool hex)
{
	unsigned value = 0;

	for (int i = 0; i < 2; i++) {
		int digit = hex_digit(peek(r, 0));

		if (digit < 0 || (!hex && digit > 7))
			break;
		value = value * (hex ? 16 : 8) + (unsigned)digit;
		r->at++;
	}
	return (struct atom){ATOM_BYTE, (unsigned char)value};
}

static struct atom read_escape(struct reader *r)
{
	static const char controls[] = "a\ae\033f\fn\nr\rt\t";
	char c = peek(r, 1);

	r->at += 2;
	if (c == '0' || (c == 'x' && peek(r, 0) != '{'))
		return read_number(r, c == 'x');
	if (!c)
		return (struct atom){.kind = ATOM_UNKNOWN};
	for (size_t i = 0; i + 1 < sizeof(controls); i += 2)
		if (c == controls[i])
			return (struct atom){ATOM_BYTE,
					     (unsigned char)controls[i + 1]};
	if (strchr("dDsSwWhHvVN", c))
		return (struct atom){.kind = ATOM_CLASS};
	if (c == 'b' || c == 'B') {
		r->shape->exact = false;
		return (struct atom){.kind = ATOM_ANCHOR};
	}
	if (is_alnum(c))
		return (struct atom){.kind = ATOM_UNKNOWN};
	return (struct atom){ATOM_BYTE, (unsigned char)c};
}

/* What stands before it can only have been empty. */
static void anchor_begin(struct reader *r)
{
	struct shape *s = r->shape;

	for (size_t i = 0; i < s->n; i++)
		if (s->token[i] != SHAPE_STAR)
			s->fault = SHAPE_LATE_BEGIN;
	s->n = 0;
}

/* A "{" that can begin no quantifier, in no version of PCRE2. */
static bool is_brace(const struct reader *r)
{
	return !peek(r, 1) || !strchr("0123456789, \t", peek(r, 1));
}

static struct atom read_atom(struct reader *r)
{
	struct atom atom = {ATOM_BYTE, (unsigned char)*r->at};

	switch (*r->at) {
	case '\\':
		return read_escape(r);
	case '[':
		atom.kind = skip_class(r) ? ATOM_CLASS : ATOM_UNKNOWN;
		return atom;
	case '(':
		atom.kind = skip_group(r) ? ATOM_GROUP : ATOM_UNKNOWN;
		return atom;
	case '^':
		anchor_begin(r);
		atom.kind = ATOM_ANCHOR;
		break;
	case '$':
		r->ended = true;
		atom.kind = ATOM_ANCHOR;
		break;
	case '.':
		atom.kind = ATOM_DOT;
		break;
	case '{':
		if (!is_brace(r))
			atom.kind = ATOM_UNKNOWN;
		break;
	case '|':
	case '*':
	case '+':
	case '?':
		atom.kind = ATOM_UNKNOWN;
		break;
	}
	r->at++;
	return atom;
}

static bool read_count(struct reader *r, size_t *ret)
{
	const char *begin = r->at;

	*ret = 0;
	while (is_digit(peek(r, 0)) && r->at - begin < 6)
		*ret = *ret * 10 + (size_t)(*r->at++ - '0');
	return r->at > begin;
}

/* {n}, {n,} and {n,m}; what is none of these may be one in a later PCRE2. */
static bool read_braces(struct reader *r, struct quantifier *q)
{
	size_t max;

	r->at++;
	if (!read_count(r, &q->min))
		return false;
	if (peek(r, 0) == ',') {
		r->at++;
		q->more = true;
		q->open = !read_count(r, &max);
	}
	return peek(r, 0) == '}';
}

/* False if it cannot be told whether there is one. */
static bool read_quantifier(struct reader *r, struct quantifier *q)
{
	char c = peek(r, 0);

	*q = (struct quantifier){.min = 1};
	if (c == '{') {
		if (is_brace(r))
			return true;
		if (!read_braces(r, q))
			return false;
	} else if (c == '*' || c == '+') {
		q->min = c == '+';
		q->more = q->open = true;
	} else if (c == '?') {
		q->min = 0;
		q->more = true;
	} else {
		return true;
	}
	r->at++;
	c = peek(r, 0);
	q->possessive = c == '+';
	if (c == '+' || c == '?')
		r->at++;
	return true;
}

static int put(struct reader *r, unsigned token)
{
	if (r->ended) {
		if (token != SHAPE_STAR)
			r->shape->fault = SHAPE_EARLY_END;
		return 0;
	}
	return shape_push(r->shape, token);
}

static int put_atom(struct reader *r, const struct atom *atom,
		    const struct quantifier *q)
{
	struct shape *s = r->shape;
	unsigned token = atom->kind == ATOM_BYTE ? atom->byte : SHAPE_ANY;
	size_t copies = MIN(q->min, (size_t)COPIES_MAX);
	bool more = q->more || q->min > copies;

	if (atom->kind == ATOM_GROUP) {
		s->exact = false;
		return put(r, SHAPE_STAR);
	}
	/* Of what is exact, ".*" and ".{3,}" are all that is repeated. */
	if (atom->kind == ATOM_CLASS || q->possessive || copies < q->min ||
	    (more && !(atom->kind == ATOM_DOT && q->open)))
		s->exact = false;
	for (size_t i = 0; i < copies; i++)
		if (put(r, token))
			return -ENOMEM;
	return more ? put(r, SHAPE_STAR) : 0;
}

int shape_read_regex(struct shape *s, struct str regex)
{
	struct reader r = {s, regex.s, regex.s + regex.n, false};

	/* What ends a quotation, which may stand within a group or a class. */
	if (regex.n && memmem(regex.s, regex.n, "\\E", 2))
		return give_up(s);
	if (shape_push(s, SHAPE_STAR))
		return -ENOMEM;
	while (r.at < r.end) {
		struct atom atom = read_atom(&r);
		struct quantifier q;

		if (atom.kind == ATOM_ANCHOR)
			continue;
		if (atom.kind == ATOM_UNKNOWN || !read_quantifier(&r, &q))
			return give_up(s);
		if (put_atom(&r, &atom, &q))
			return -ENOMEM;
	}
	return put(&r, SHAPE_STAR);
}
