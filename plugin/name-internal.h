/* SPDX-License-Identifier: MIT */
/*
 * What a compiled template is made of, for name.c and name-compile.c alone.
 *
 * Invariant: all strings of a template point into its own copy of the text.
 */
#pragma once

#include "name.h"

enum token_kind {
	TOKEN_FIELD, /* a str of the subject */
	TOKEN_EXE,   /* the same, with comm to fall back on */
	TOKEN_UID,
	TOKEN_ANCESTOR,
	TOKEN_PID,
	TOKEN_START_TIME,
	TOKEN_MATCHES,

	/* Of process-exporter. */
	TOKEN_GO_EXE_BASE,
	TOKEN_GO_CGROUPS,
	TOKEN_GO_START_TIME,
	TOKEN_GO_MATCHES,
};

struct token {
	const char *name;
	enum token_kind kind;
	unsigned sources;
	size_t field; /* TOKEN_FIELD, TOKEN_EXE: offset in struct subject */
};

enum filter_kind {
	FILTER_BASE,
	FILTER_LOWER,
	FILTER_TRUNC,
	FILTER_DEFAULT,
};

struct filter {
	enum filter_kind kind;
	size_t n;	 /* FILTER_TRUNC */
	struct str text; /* FILTER_DEFAULT */
};

struct part {
	struct str source;  /* as it stands in the text */
	struct str literal; /* if there is no token */
	const struct token *token;
	struct str capture; /* TOKEN_MATCHES */
	struct filter *filter;
	size_t n_filters, cap;
};

struct name {
	char *text; /* what all strings of the parts point into */
	size_t text_len;
	struct part *part;
	size_t n_parts, cap;
	unsigned sources;
	bool has_token, has_pid;
	bool ends; /* before a field that nobody knows */
};
