/* SPDX-License-Identifier: MIT */
/*
 * Booleans, numbers, sizes, durations, words and texts. Whether a value was
 * quoted matters for texts alone: `uid: "0"` says the same as `uid: 0`.
 *
 * It knows no key and no bound: both come from the tables of rulefile.c.
 * Invariant: a value is taken only if it can be read in one way.
 */
#include "rulefile-value.h"

#include <inttypes.h>
#include <stdio.h>

int excerpt_length(struct str text)
{
	size_t n = MIN(text.n, (size_t)EXCERPT_MAX);

	while (n > 0 && n < text.n && ((unsigned char)text.s[n] & 0xc0) == 0x80)
		n--;
	return (int)n;
}

/* For what has no text that could be shown. */
static const char *kind_of(const struct yaml_node *value)
{
	bool empty = value->n_children == 0;

	switch (value->kind) {
	case YAML_SEQUENCE:
		return empty ? "an empty list" : "a list";
	case YAML_MAPPING:
		return empty ? "an empty mapping" : "a mapping";
	default:
		return value->plain ? "nothing" : "an empty text";
	}
}

int value_refuse(struct diag *d, const struct yaml_node *key,
		 const struct yaml_node *value, const char *want)
{
	const char *quote = key ? "\"" : "";
	struct str what = key ? key->text : STR("an item of this list");

	if (value->kind == YAML_SCALAR && value->text.n > 0)
		diag_add(d, DIAG_ERROR, value->line, value->column,
			 "%s%.*s%s must be %s, not \"%.*s\"", quote,
			 EXCERPT(what), quote, want, EXCERPT(value->text));
	else
		diag_add(d, DIAG_ERROR, value->line, value->column,
			 "%s%.*s%s must be %s, not %s", quote, EXCERPT(what),
			 quote, want, kind_of(value));
	return -EINVAL;
}

/* lower, Capitalized or UPPER, as YAML 1.1 has its words. */
static bool is_word(struct str text, const char *word)
{
	struct str w = str_of(word);
	size_t n_upper = 0;

	if (text.n != w.n || strncasecmp(text.s, word, w.n))
		return false;
	for (size_t i = 0; i < w.n; i++)
		n_upper += text.s[i] != w.s[i];
	return n_upper == 0 || n_upper == w.n ||
	       (n_upper == 1 && text.s[0] != w.s[0]);
}

bool value_is_bool(const struct yaml_node *value, bool *ret)
{
	static const struct {
		const char *word;
		bool is;
	} words[] = {
	    {"true", true},   {"yes", true}, {"on", true},
	    {"false", false}, {"no", false}, {"off", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (value->kind != YAML_SCALAR ||
		    !is_word(value->text, words[i].word))
			continue;
		*ret = words[i].is;
		return true;
	}
	return false;
}

int value_bool(struct diag *d, const struct yaml_node *key,
	       const struct yaml_node *value, bool *ret)
{
	if (value_is_bool(value, ret))
		return 0;
	return value_refuse(d, key, value,
			    "true or false (or yes, no, on, off)");
}

int value_word(struct diag *d, const struct yaml_node *key,
	       const struct yaml_node *value, const char *const *words,
	       size_t n, const char *want, size_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		if (value->kind != YAML_SCALAR ||
		    !str_eq(value->text, str_of(words[i])))
			continue;
		*ret = i;
		return 0;
	}
	return value_refuse(d, key, value, want);
}

/*
 * Reads the digits that a text begins with. Returns how many bytes they are;
 * 0 if there are none, if they begin with a zero that says nothing, or if the
 * number is too large.
 */
static size_t read_digits(struct str text, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; i < text.n && text.s[i] >= '0' && text.s[i] <= '9'; i++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, text.s[i] - '0', &v))
			return 0;
	if (i > 1 && text.s[0] == '0')
		return 0;
	*ret = v;
	return i;
}

int value_number(struct diag *d, const struct yaml_node *key,
		 const struct yaml_node *value, uint64_t min, uint64_t max,
		 uint64_t *ret)
{
	char want[96];
	uint64_t v;
	size_t n = 0;

	if (value->kind == YAML_SCALAR)
		n = read_digits(value->text, &v);
	if (n > 0 && n == value->text.n && v >= min && v <= max) {
		*ret = v;
		return 0;
	}
	snprintf(want, sizeof(want),
		 "a decimal number from %" PRIu64 " to %" PRIu64, min, max);
	return value_refuse(d, key, value, want);
}

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit *find_unit(const struct unit *units, struct str name)
{
	for (; units->name; units++)
		if (str_eq(name, str_of(units->name)))
			return units;
	return NULL;
}

static bool is_letters(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') ||
		      (s[i] >= 'A' && s[i] <= 'Z')))
			return false;
	return n > 0;
}

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static int value_with_unit(struct diag *d, const struct yaml_node *key,
			   const struct yaml_node *value,
			   const struct unit *units, const char *needs,
			   const struct value_range *range, uint64_t *ret)
{
	const struct unit *u;
	struct str text = value->text;
	uint64_t v;
	size_t n;

	if (value->kind != YAML_SCALAR)
		return value_refuse(d, key, value, range->want);
	n = read_digits(text, &v);
	if (n > 0 && n == text.n) {
		diag_add(d, DIAG_ERROR, value->line, value->column,
			 "\"%.*s\" needs a unit: %s", EXCERPT(key->text),
			 needs);
		return -EINVAL;
	}
	u = n > 0 ? find_unit(units, (struct str){text.s + n, text.n - n})
		  : NULL;
	if (n > 0 && !u && is_one_of(text.s[n], " ._,")) {
		diag_add(d, DIAG_ERROR, value->line, value->column,
			 "\"%.*s\" must be a whole number with its unit right "
			 "behind it, not \"%.*s\"; use %s",
			 EXCERPT(key->text), EXCERPT(text), needs);
		return -EINVAL;
	}
	if (n > 0 && !u && is_letters(text.s + n, text.n - n)) {
		diag_add(d, DIAG_ERROR, value->line, value->column,
			 "\"%.*s\": unknown unit \"%.*s\"; use %s",
			 EXCERPT(key->text), (int)MIN(text.n - n, (size_t)20),
			 text.s + n, needs);
		return -EINVAL;
	}
	if (!u || __builtin_mul_overflow(v, u->factor, &v) || v < range->min ||
	    v > range->max)
		return value_refuse(d, key, value, range->want);
	*ret = v;
	return 0;
}

int value_size(struct diag *d, const struct yaml_node *key,
	       const struct yaml_node *value, const struct value_range *range,
	       uint64_t *ret)
{
	static const struct unit units[] = {
	    {"B", 1},
	    {"KiB", 1 << 10},
	    {"MiB", 1 << 20},
	    {"GiB", 1 << 30},
	    {"kB", 1000},
	    {"MB", 1000 * 1000},
	    {"GB", 1000 * 1000 * 1000},
	    {NULL, 0},
	};

	return value_with_unit(d, key, value, units,
			       "B, KiB, MiB, GiB, kB, MB or GB", range, ret);
}

int value_duration(struct diag *d, const struct yaml_node *key,
		   const struct yaml_node *value,
		   const struct value_range *range, uint64_t *ret)
{
	static const struct unit units[] = {
	    {"ms", NSEC_PER_MSEC},	     {"s", NSEC_PER_SEC},
	    {"m", 60 * NSEC_PER_SEC},	     {"h", 3600 * NSEC_PER_SEC},
	    {"d", 24 * 3600 * NSEC_PER_SEC}, {NULL, 0},
	};

	return value_with_unit(d, key, value, units, "ms, s, m, h or d", range,
			       ret);
}

int value_percent(struct diag *d, const struct yaml_node *key,
		  const struct yaml_node *value, double *ret)
{
	struct str text = value->text;
	uint64_t whole, part = 0;
	size_t n = 0, digits = 0;

	if (value->kind == YAML_SCALAR)
		n = read_digits(text, &whole);
	if (n > 0 && n < text.n && text.s[n] == '.') {
		for (n++; n < text.n && digits < 3 && text.s[n] >= '0' &&
			  text.s[n] <= '9';
		     n++, digits++)
			part = part * 10 + (uint64_t)(text.s[n] - '0');
		if (!digits)
			n = 0;
	}
	if (n == 0 || n + 1 != text.n || text.s[n] != '%' || whole > 100000)
		return value_refuse(d, key, value,
				    "percent of one CPU, as 5% or 0.5%");
	*ret = (double)part;
	while (digits--)
		*ret /= 10;
	*ret += (double)whole;
	return 0;
}

int value_text(struct diag *d, const struct yaml_node *key,
	       const struct yaml_node *value, const char *hint, struct str *ret)
{
	const char *trap;

	if (value->kind == YAML_SCALAR && value->text.n == 0 && !value->plain) {
		diag_add(d, DIAG_ERROR, value->line, value->column,
			 "\"%.*s\" cannot be empty", EXCERPT(key->text));
		return -EINVAL;
	}
	if (value->kind != YAML_SCALAR || value->text.n == 0)
		return value_refuse(d, key, value, "a text");
	if (memchr(value->text.s, '\0', value->text.n)) {
		diag_add(d, DIAG_ERROR, value->line, value->column,
			 "\"%.*s\" cannot hold a NUL byte", EXCERPT(key->text));
		return -EINVAL;
	}
	trap = hint ? yaml_node_trap(value) : NULL;
	if (trap) {
		bool is_number = !strcmp(trap, "a number");

		diag_add(d, DIAG_ERROR, value->line, value->column,
			 "YAML reads %.*s as %s; quote it: \"%.*s\"%s",
			 EXCERPT(value->text), trap, EXCERPT(value->text),
			 is_number ? hint : "");
		return -EINVAL;
	}
	*ret = value->text;
	return 0;
}
