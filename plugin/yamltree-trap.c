/* SPDX-License-Identifier: MIT */
/*
 * What a YAML reader makes of an unquoted word: the part of yamltree that
 * needs no parser. Source: https://yaml.org/type/ (bool, null, int, float of
 * YAML 1.1). Digits with a leading zero and an exponent without a point are
 * numbers to YAML 1.2 and to other readers of the same file, so they are
 * numbers here.
 *
 * Invariant: what is quoted is a text, whatever it looks like.
 */
#include "yamltree.h"

static bool is_one_of(const char *s, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(s, *words))
			return true;
	return false;
}

static bool is_boolean(const char *s)
{
	static const char *const words[] = {
	    "y",   "Y",	  "n",	  "N",	   "yes",   "Yes",   "YES", "no",
	    "No",  "NO",  "true", "True",  "TRUE",  "on",    "On",  "ON",
	    "off", "Off", "OFF",  "false", "False", "FALSE", NULL,
	};

	return is_one_of(s, words);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Skips ":59" again and again: numbers to the base of 60. */
static const char *skip_sixties(const char *s)
{
	while (s[0] == ':' && is_digit(s[1])) {
		if (!is_digit(s[2]))
			s += 2;
		else if (s[1] <= '5' && !is_digit(s[3]))
			s += 3;
		else
			break;
	}
	return s;
}

static bool is_number(const char *s)
{
	static const char *const words[] = {
	    ".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN", NULL,
	};
	static const char digits[] = "0123456789_";

	s += *s == '+' || *s == '-';
	if (is_one_of(s, words))
		return true;
	if (s[0] == '0' && s[1] == 'x')
		return s[2] && !s[2 + strspn(s + 2, "0123456789abcdefABCDEF_")];
	if (s[0] == '0' && s[1] == 'b')
		return s[2] && !s[2 + strspn(s + 2, "01_")];
	if (!is_digit(s[0]) && !(s[0] == '.' && is_digit(s[1])))
		return false;
	s = skip_sixties(s + strspn(s, digits));
	if (*s == '.')
		s += 1 + strspn(s + 1, digits);
	if (*s == 'e' || *s == 'E') {
		s += 1 + (s[1] == '+' || s[1] == '-');
		if (!is_digit(*s))
			return false;
		s += strspn(s, digits);
	}
	return !*s;
}

const char *yaml_node_trap(const struct yaml_node *scalar)
{
	static const char *const nulls[] = {"",	    "~",    "null",
					    "Null", "NULL", NULL};
	const char *s = scalar->text.s;

	if (!scalar->plain || strlen(s) != scalar->text.n)
		return NULL;
	if (is_one_of(s, nulls))
		return "null";
	if (is_boolean(s))
		return "a boolean";
	return is_number(s) ? "a number" : NULL;
}
