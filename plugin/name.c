/* SPDX-License-Identifier: MIT */
/*
 * Expanding templates, and clean names. A value is a view of somebody else's
 * text all the way, and its bytes are cleaned, counted and hashed as they are
 * put out, so that a name of any length is made without a buffer for the
 * whole of it.
 */
#include "name-internal.h"

#include <stdio.h>
#include <time.h>

unsigned name_sources(const struct name *n)
{
	return n->sources;
}

bool name_is_static(const struct name *n)
{
	return !n->has_token;
}

struct str name_template(const struct name *n)
{
	return (struct str){n->text, n->text_len};
}

bool name_uses_capture(const struct name *n, struct str name)
{
	for (size_t i = 0; i < n->n_parts; i++) {
		const struct part *p = &n->part[i];

		if (p->token && (p->token->kind == TOKEN_GO_MATCHES ||
				 (p->token->kind == TOKEN_MATCHES &&
				  str_eq(p->capture, name))))
			return true;
	}
	return false;
}

struct str name_prefix(const struct name *n)
{
	return n->n_parts && !n->part[0].token ? n->part[0].literal : STR("");
}

bool name_is_per_process(const struct name *n)
{
	return n->has_pid;
}

/* A name in the making. */
struct sink {
	char text[NAME_MAX_LEN];
	size_t n; /* bytes put in, whether they had room or not */
	uint64_t hash, raw_hash;
	bool cleaned;
	bool other_than_dots;
	const struct name_teller *teller; /* or NULL */
};

static const struct sink sink_empty = {
    .hash = HASH_NOTHING,
    .raw_hash = HASH_NOTHING,
};

static bool is_clean(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

static void sink_put_clean(struct sink *sink, char c)
{
	sink->hash = hash_more(sink->hash, (struct str){&c, 1});
	if (sink->n < sizeof(sink->text))
		sink->text[sink->n] = c;
	sink->n++;
	sink->other_than_dots |= c != '.';
}

static void sink_put(struct sink *sink, struct str text, bool lower)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.s[i];

		if (lower && c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (sink->teller)
			sink->teller->byte(sink->teller->arg, c);
		sink->raw_hash = hash_more(sink->raw_hash, (struct str){&c, 1});
		if (!is_clean(c)) {
			c = '_';
			sink->cleaned = true;
		}
		if (c == '_' && sink->n == 0) {
			sink_put_clean(sink, 'x');
			sink->cleaned = true;
		}
		sink_put_clean(sink, c);
	}
}

/* The same name with an x before its dots. */
static void sink_mark_dots(struct sink *sink)
{
	size_t n = sink->n;

	sink->hash = HASH_NOTHING;
	sink->n = 0;
	sink_put_clean(sink, 'x');
	while (n-- > 0)
		sink_put_clean(sink, '.');
	sink->cleaned = true;
}

static void sink_finish(struct sink *sink, struct name_result *ret)
{
	size_t n;

	if (sink->n == 0) {
		sink_put(sink, STR("unknown"), false);
		sink->raw_hash = HASH_NOTHING;
		sink->cleaned = true;
	}
	if (!sink->other_than_dots)
		sink_mark_dots(sink);

	ret->cleaned = sink->cleaned;
	ret->raw_hash = sink->raw_hash;
	ret->cut = sink->n > NAME_MAX_LEN;
	n = ret->cut ? (size_t)NAME_KEEP_LEN : sink->n;
	memcpy(ret->text, sink->text, n);
	ret->text[n] = '\0';
	if (ret->cut)
		snprintf(
		    ret->text + n, sizeof(ret->text) - n, "~%08x",
		    (unsigned)((sink->hash >> 32) ^ (sink->hash & UINT32_MAX)));
}

/* Digits of a number, at the end of buf. */
static struct str decimal(uint64_t v, char buf[20])
{
	size_t i = 20;

	do {
		buf[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	return (struct str){buf + i, 20 - i};
}

static struct str captured(const struct rule_verdict *v, struct str name)
{
	for (unsigned i = 0; v && i < v->n_captures; i++)
		if (str_eq(v->capture[i].name, name))
			return v->capture[i].value;
	return STR("");
}

/* The subject's own text, or an empty one where its source is absent. */
static struct str field(struct subject *s, enum subject_source source,
			size_t offset)
{
	if (!subject_need(s, source))
		return STR("");
	return *(const struct str *)((const char *)s + offset);
}

static struct str token_value(const struct part *p, struct subject *s,
			      const struct rule_verdict *v, char buf[20])
{
	const struct token *t = p->token;
	struct str value;

	switch (t->kind) {
	case TOKEN_FIELD:
		return field(s, (enum subject_source)__builtin_ctz(t->sources),
			     t->field);
	case TOKEN_EXE:
		value = field(s, SUBJECT_CMDLINE, t->field);
		return value.n ? value
			       : field(s, SUBJECT_STAT,
				       offsetof(struct subject, comm));
	case TOKEN_UID:
		if (!subject_need(s, SUBJECT_OWNER))
			return STR("");
		return decimal(s->uid, buf);
	case TOKEN_ANCESTOR:
		return v ? v->ancestor : STR("");
	case TOKEN_PID:
		return decimal((uint64_t)s->pid, buf);
	case TOKEN_START_TIME:
		return decimal(s->start_time, buf);
	case TOKEN_GO_EXE_BASE:
		value =
		    field(s, SUBJECT_CMDLINE, offsetof(struct subject, argv0));
		return s->cmdline.n ? subject_go_base(value) : s->comm;
	case TOKEN_MATCHES:
	case TOKEN_GO_CGROUPS:
	case TOKEN_GO_START_TIME:
	case TOKEN_GO_MATCHES:
		break;
	}
	return captured(v, p->capture);
}

static int by_capture_name(const void *pa, const void *pb)
{
	const struct rule_capture *a = *(struct rule_capture *const *)pa;
	const struct rule_capture *b = *(struct rule_capture *const *)pb;
	int r = memcmp(a->name.s, b->name.s, MIN(a->name.n, b->name.n));

	if (r)
		return r;
	return a->name.n < b->name.n ? -1 : a->name.n > b->name.n;
}

/* A map as Go prints it: its keys in order. */
static void put_matches(struct sink *sink, const struct rule_verdict *v)
{
	const struct rule_capture *by_name[RULE_CAPTURES_MAX];
	unsigned n = v ? v->n_captures : 0;

	for (unsigned i = 0; i < n; i++)
		by_name[i] = &v->capture[i];
	if (n)
		qsort(by_name, n, sizeof(by_name[0]), by_capture_name);
	sink_put(sink, STR("map["), false);
	for (unsigned i = 0; i < n; i++) {
		if (i)
			sink_put(sink, STR(" "), false);
		sink_put(sink, by_name[i]->name, false);
		sink_put(sink, STR(":"), false);
		sink_put(sink, by_name[i]->value, false);
	}
	sink_put(sink, STR("]"), false);
}

/* The paths of all hierarchies, as Go prints a list. */
static void put_cgroups(struct sink *sink, struct subject *s)
{
	struct str rest =
	    field(s, SUBJECT_CGROUP, offsetof(struct subject, cgroup_file));
	bool first = true;

	sink_put(sink, STR("["), false);
	while (rest.n > 0) {
		const char *end = memchr(rest.s, '\n', rest.n);
		size_t n = end ? (size_t)(end - rest.s) : rest.n;
		const char *colon = memchr(rest.s, ':', n);

		if (colon)
			colon = memchr(colon + 1, ':',
				       n - (size_t)(colon + 1 - rest.s));
		if (colon) {
			if (!first)
				sink_put(sink, STR(" "), false);
			first = false;
			sink_put(sink,
				 (struct str){colon + 1,
					      n - (size_t)(colon + 1 - rest.s)},
				 false);
		}
		n += end != NULL;
		rest.s += n;
		rest.n -= n;
	}
	sink_put(sink, STR("]"), false);
}

/* A time in UTC as Go prints it: without the zeros of its fraction. */
static void put_start_time(struct sink *sink, const struct subject *s)
{
	time_t at = (time_t)s->start_time;
	char text[64], fraction[16] = "";
	struct tm tm;
	size_t n;

	if (s->start_ns) {
		n = (size_t)snprintf(fraction, sizeof(fraction), ".%09u",
				     (unsigned)s->start_ns);
		while (fraction[n - 1] == '0')
			fraction[--n] = '\0';
	}
	if (!gmtime_r(&at, &tm))
		return;
	n = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	sink_put(sink, (struct str){text, n}, false);
	sink_put(sink, str_of(fraction), false);
	sink_put(sink, STR(" +0000 UTC"), false);
}

/* Values that are more than a piece of some text; false if it is none. */
static bool put_made(struct sink *sink, const struct token *t,
		     struct subject *s, const struct rule_verdict *v)
{
	switch (t->kind) {
	case TOKEN_GO_MATCHES:
		put_matches(sink, v);
		return true;
	case TOKEN_GO_CGROUPS:
		put_cgroups(sink, s);
		return true;
	case TOKEN_GO_START_TIME:
		put_start_time(sink, s);
		return true;
	default:
		return false;
	}
}

static struct str filter_apply(const struct filter *f, struct str value,
			       bool *lower)
{
	const char *slash;

	switch (f->kind) {
	case FILTER_BASE:
		slash = value.n ? memrchr(value.s, '/', value.n) : NULL;
		if (slash)
			value = (struct str){
			    slash + 1, value.n - (size_t)(slash + 1 - value.s)};
		break;
	case FILTER_LOWER:
		*lower = true;
		break;
	case FILTER_TRUNC:
		value.n = MIN(value.n, f->n);
		break;
	case FILTER_DEFAULT:
		if (value.n > 0)
			break;
		value = f->text;
		*lower = false;
		break;
	}
	return value;
}

/* Puts one part; *ret is its value before the filters. */
static void put_part(struct sink *sink, const struct part *p, struct subject *s,
		     const struct rule_verdict *v, char buf[20],
		     struct str *ret)
{
	struct str value = p->literal;
	bool lower = false;

	*ret = (struct str){0};
	if (p->token && put_made(sink, p->token, s, v))
		return;
	if (p->token)
		value = token_value(p, s, v, buf);
	*ret = value;
	for (size_t j = 0; j < p->n_filters; j++)
		value = filter_apply(&p->filter[j], value, &lower);
	sink_put(sink, value, lower);
}

void name_expand_told(const struct name *n, struct subject *s,
		      const struct rule_verdict *v,
		      const struct name_teller *teller, struct name_result *ret)
{
	struct sink sink = sink_empty;

	sink.teller = teller;
	for (size_t i = 0; i < n->n_parts; i++) {
		const struct part *p = &n->part[i];
		struct name_part out = {
		    .source = p->source,
		    .is_token = p->source.s != p->literal.s,
		};
		char buf[20];

		put_part(&sink, p, s, v, buf, &out.value);
		if (teller)
			teller->part(teller->arg, &out);
	}
	sink.teller = NULL;
	sink_finish(&sink, ret);
}

void name_expand(const struct name *n, struct subject *s,
		 const struct rule_verdict *v, struct name_result *ret)
{
	name_expand_told(n, s, v, NULL, ret);
}

void name_clean(struct str text, struct name_result *ret)
{
	struct sink sink = sink_empty;

	sink_put(&sink, text, false);
	sink_finish(&sink, ret);
}
