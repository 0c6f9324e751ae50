/* SPDX-License-Identifier: MIT */
/*
 * Inside rulefile: what a single value of a rule file can be. Each function
 * reads one value of one key, or adds one error at the value's place that
 * says what the key wants.
 *
 * All but questions return 0 or -EINVAL; *ret is untouched on failure.
 */
#pragma once

#include "base.h"
#include "diag.h"
#include "yamltree.h"

enum {
	EXCERPT_MAX = 60, /* bytes of the user's text in a message */
};

/* For "%.*s": the beginning of a text, cut between characters. */
int excerpt_length(struct str text);
#define EXCERPT(text) excerpt_length(text), (text).s

/*
 * `"KEY" must be WANT, not VALUE` at the value's place; without a key it is an
 * item of a list. Returns -EINVAL.
 */
int value_refuse(struct diag *d, const struct yaml_node *key,
		 const struct yaml_node *value, const char *want);

/* The same as a question, for keys that take other words, too. */
bool value_is_bool(const struct yaml_node *value, bool *ret);
int value_bool(struct diag *d, const struct yaml_node *key,
	       const struct yaml_node *value, bool *ret);

/* One of some words; *ret is its index. `want` lists them in English. */
int value_word(struct diag *d, const struct yaml_node *key,
	       const struct yaml_node *value, const char *const *words,
	       size_t n, const char *want, size_t *ret);

/* A decimal number without sign, leading zeros or separators. */
int value_number(struct diag *d, const struct yaml_node *key,
		 const struct yaml_node *value, uint64_t min, uint64_t max,
		 uint64_t *ret);

/* A number with a unit; `want` names the bounds in English. */
struct value_range {
	uint64_t min, max;
	const char *want;
};

/* In bytes. */
int value_size(struct diag *d, const struct yaml_node *key,
	       const struct yaml_node *value, const struct value_range *range,
	       uint64_t *ret);

/* In nanoseconds. */
int value_duration(struct diag *d, const struct yaml_node *key,
		   const struct yaml_node *value,
		   const struct value_range *range, uint64_t *ret);

/* As 5% or 0.5%. */
int value_percent(struct diag *d, const struct yaml_node *key,
		  const struct yaml_node *value, double *ret);

/*
 * A text that is not empty. If `hint` is given, a plain one that YAML reads
 * as something else is an error; the hint ends the message if it is a number.
 */
int value_text(struct diag *d, const struct yaml_node *key,
	       const struct yaml_node *value, const char *hint,
	       struct str *ret);
