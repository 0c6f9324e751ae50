/* SPDX-License-Identifier: MIT */
/*
 * Compiling and running patterns. Globs become regular expressions, so that
 * there is one engine and one guard against runaway patterns.
 *
 * PCRE2's match limit alone is no such guard: it counts backtracking points,
 * not the bytes that are scanned between them, and it counts anew at each
 * place where a match may start. On n bytes "a" the pattern
 * "a[^ ]*[^c]*+[cd]" scans n^3/6 bytes, hours for 64 KiB, and never counts
 * more than n. So each pattern is compiled with a callout before every item,
 * and the callout adds up how far the match moved.
 */
#include "matcher.h"

#include <inttypes.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
	/* What one match may cost; measured, 1 to 8 ms. */
	STEPS_MAX = 4000000,
	STEPS_PER_ITEM = 8, /* beside one for each byte moved */

	MATCH_LIMIT = 100000, /* "x.*y" takes one per byte */
	DEPTH_LIMIT = 20000,
	HEAP_LIMIT_KIB = 4096,
	JIT_STACK_MIN = 32 * 1024,
	JIT_STACK_MAX = 1024 * 1024,

	QUOTE_MAX = 120, /* bytes of a pattern that a message repeats */
};

struct matcher_scratch {
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	uint64_t steps;
	size_t position;
};

struct prefix {
	struct str text;
	enum matcher_kind kind;
	bool ignore_case;
};

static const struct prefix prefixes[] = {
    {{"glob:", 5}, MATCHER_GLOB, false},   {{"re:", 3}, MATCHER_REGEX, false},
    {{"exact:", 6}, MATCHER_EXACT, false}, {{"iglob:", 6}, MATCHER_GLOB, true},
    {{"ire:", 4}, MATCHER_REGEX, true},
};

static struct prefix take_prefix(struct str *text, enum matcher_kind plain)
{
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (!str_begins(*text, prefixes[i].text))
			continue;
		text->s += prefixes[i].text.n;
		text->n -= prefixes[i].text.n;
		return prefixes[i];
	}
	return (struct prefix){.kind = plain};
}

static void tell_pattern(struct diag *d, unsigned line, unsigned column,
			 const char *what, struct str text, int code,
			 size_t offset)
{
	PCRE2_UCHAR why[256];
	int shown = (int)MIN(text.n, (size_t)QUOTE_MAX);

	if (pcre2_get_error_message(code, why, sizeof(why)) < 0)
		strcpy((char *)why, "unknown error");
	diag_add(d, DIAG_ERROR, line, column,
		 "%s \"%.*s%s\": %s at offset %zu%s", what, shown, text.s,
		 (size_t)shown < text.n ? "..." : "", (const char *)why, offset,
		 text.s[0] == '*' ? "; put \"glob:\" before it if it is a glob"
				  : "");
}

/* Returns 0, -ENOMEM, or -EINVAL with what went wrong and where. */
static int compile(struct matcher *m, struct str regex, bool ignore_case,
		   int *ret_code, size_t *ret_offset)
{
	uint32_t options = PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY |
			   PCRE2_NEVER_UTF | PCRE2_AUTO_CALLOUT |
			   PCRE2_DUPNAMES;
	uint32_t n_names = 0, name_size = 0;
	int code;
	PCRE2_SIZE offset;

	if (ignore_case)
		options |= PCRE2_CASELESS;
	m->code = pcre2_compile((PCRE2_SPTR)regex.s, regex.n, options, &code,
				&offset, NULL);
	if (!m->code) {
		if (code == PCRE2_ERROR_NOMEMORY ||
		    code == PCRE2_ERROR_HEAP_FAILED)
			return -ENOMEM;
		*ret_code = code;
		*ret_offset = offset;
		return -EINVAL;
	}
	/* Without JIT, or with a pattern too big for it, it is only slower. */
	(void)pcre2_jit_compile(m->code, PCRE2_JIT_COMPLETE);

	pcre2_pattern_info(m->code, PCRE2_INFO_NAMETABLE, &m->names);
	pcre2_pattern_info(m->code, PCRE2_INFO_NAMECOUNT, &n_names);
	pcre2_pattern_info(m->code, PCRE2_INFO_NAMEENTRYSIZE, &name_size);
	m->n_names = n_names;
	m->name_size = name_size;
	return 0;
}

static int convert_glob(struct str glob, PCRE2_UCHAR **regex, PCRE2_SIZE *n)
{
	*regex = NULL;
	*n = 0;
	return pcre2_pattern_convert((PCRE2_SPTR)glob.s, glob.n,
				     PCRE2_CONVERT_GLOB_NO_WILD_SEPARATOR |
					 PCRE2_CONVERT_GLOB_NO_STARSTAR,
				     regex, n, NULL);
}

/*
 * Some releases put an "s" into sets of what must not be there, instead of no
 * separator: of "[!b]" they make "[^sb]" (10.42 does).
 */
static bool has_stray_s(void)
{
	PCRE2_UCHAR *regex;
	PCRE2_SIZE n;
	bool stray = convert_glob(STR("[!b]"), &regex, &n) == 0 &&
		     memmem(regex, n, "[^s", 3);

	pcre2_converted_pattern_free(regex);
	return stray;
}

/* A "[^" that is not escaped is the beginning of such a set. */
static size_t drop_stray_s(PCRE2_UCHAR *regex, size_t n)
{
	size_t to = 0;

	for (size_t from = 0; from < n; from++) {
		regex[to++] = regex[from];
		if (regex[from] == '\\' && from + 1 < n)
			regex[to++] = regex[++from];
		else if (regex[from] == '[' && from + 2 < n &&
			 regex[from + 1] == '^' && regex[from + 2] == 's') {
			regex[to++] = '^';
			from += 2;
		}
	}
	return to;
}

static int compile_glob(struct matcher *m, struct str glob, bool ignore_case,
			int *ret_code, size_t *ret_offset)
{
	PCRE2_UCHAR *regex;
	PCRE2_SIZE n;
	int code = convert_glob(glob, &regex, &n), r;

	if (code == PCRE2_ERROR_NOMEMORY)
		return -ENOMEM;
	if (code) {
		*ret_code = code;
		*ret_offset = n;
		return -EINVAL;
	}
	if (memmem(regex, n, "[^s", 3) && has_stray_s())
		n = drop_stray_s(regex, n);
	r = compile(m, (struct str){(const char *)regex, n}, ignore_case,
		    ret_code, ret_offset);
	pcre2_converted_pattern_free(regex);
	return r;
}

static bool parse_number(struct str text, uint32_t *ret)
{
	uint64_t v = 0;

	if (text.n == 0)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.s[i] < '0' || text.s[i] > '9')
			return false;
		v = v * 10 + (unsigned)(text.s[i] - '0');
		if (v > UINT32_MAX)
			return false;
	}
	*ret = (uint32_t)v;
	return true;
}

/* Compiles what stands behind the prefix; it points into m->source. */
static int init_pattern(struct matcher *m, const char *key,
			struct prefix prefix, struct str text, struct diag *d,
			unsigned line, unsigned column)
{
	int code = 0, r = 0;
	size_t offset = 0;

	m->kind = prefix.kind;
	m->prefixed = prefix.text.n > 0;
	m->ignore_case = prefix.ignore_case;
	m->has_slash = text.n && memchr(text.s, '/', text.n);
	m->text = text.s;
	m->text_len = text.n;
	if (text.n == 0 && m->kind != MATCHER_REGEX) {
		diag_add(d, DIAG_ERROR, line, column, "%s: empty pattern", key);
		return -EINVAL;
	}
	if (text.n > MATCHER_PATTERN_MAX) {
		diag_add(d, DIAG_ERROR, line, column,
			 "%s: pattern of %zu bytes; at most %d are allowed",
			 key, text.n, MATCHER_PATTERN_MAX);
		return -EINVAL;
	}

	if (m->kind == MATCHER_GLOB)
		r = compile_glob(m, text, prefix.ignore_case, &code, &offset);
	else if (m->kind == MATCHER_REGEX)
		r = compile(m, text, prefix.ignore_case, &code, &offset);
	if (r == -EINVAL)
		tell_pattern(d, line, column,
			     m->kind == MATCHER_GLOB ? "glob" : "regex", text,
			     code, offset);
	return r;
}

int matcher_init(struct matcher *m, const char *key, enum matcher_kind plain,
		 struct str text, struct diag *d, unsigned line,
		 unsigned column)
{
	struct prefix prefix;
	int r;

	*m = (struct matcher){.kind = plain, .line = line, .column = column};
	if (plain == MATCHER_NUMBER) {
		if (parse_number(text, &m->number))
			return 0;
		diag_add(d, DIAG_ERROR, line, column,
			 "%s: \"%.*s\" is not a number from 0 to %" PRIu32, key,
			 (int)MIN(text.n, (size_t)QUOTE_MAX), text.s,
			 UINT32_MAX);
		return -EINVAL;
	}

	m->source = malloc(text.n + 1);
	if (!m->source)
		return -ENOMEM;
	m->source_len = text.n;
	if (text.n)
		memcpy(m->source, text.s, text.n);
	text.s = m->source;
	prefix = take_prefix(&text, plain);
	r = init_pattern(m, key, prefix, text, d, line, column);
	if (r)
		matcher_done(m);
	return r;
}

void matcher_done(struct matcher *m)
{
	free(m->source);
	pcre2_code_free(m->code);
	*m = (struct matcher){0};
}

unsigned matcher_n_groups(const struct matcher *m)
{
	uint32_t n = 0;

	if (m->code)
		pcre2_pattern_info(m->code, PCRE2_INFO_CAPTURECOUNT, &n);
	return n;
}

size_t matcher_min_length(const struct matcher *m)
{
	uint32_t n = 0;

	if (!m->code)
		return m->text_len;
	pcre2_pattern_info(m->code, PCRE2_INFO_MINLENGTH, &n);
	return n;
}

static int count_steps(pcre2_callout_block *block, void *arg)
{
	struct matcher_scratch *sc = arg;
	size_t now = block->current_position;

	sc->steps += STEPS_PER_ITEM;
	sc->steps +=
	    now > sc->position ? now - sc->position : sc->position - now;
	sc->position = now;
	return sc->steps > STEPS_MAX ? PCRE2_ERROR_CALLOUT : 0;
}

struct matcher_scratch *matcher_scratch_new(unsigned n_groups)
{
	struct matcher_scratch *sc = calloc(1, sizeof(*sc));

	if (!sc)
		return NULL;
	sc->data = pcre2_match_data_create(n_groups + 1, NULL);
	sc->context = pcre2_match_context_create(NULL);
	if (!sc->data || !sc->context) {
		matcher_scratch_free(sc);
		return NULL;
	}
	pcre2_set_match_limit(sc->context, MATCH_LIMIT);
	pcre2_set_depth_limit(sc->context, DEPTH_LIMIT);
	pcre2_set_heap_limit(sc->context, HEAP_LIMIT_KIB);
	pcre2_set_callout(sc->context, count_steps, sc);

	/* Without one (no JIT, no memory) the machine stack has to do. */
	sc->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, NULL);
	if (sc->stack)
		pcre2_jit_stack_assign(sc->context, NULL, sc->stack);
	return sc;
}

void matcher_scratch_free(struct matcher_scratch *scratch)
{
	if (!scratch)
		return;
	pcre2_match_data_free(scratch->data);
	pcre2_match_context_free(scratch->context);
	pcre2_jit_stack_free(scratch->stack);
	free(scratch);
}

enum matcher_result matcher_match(const struct matcher *m, struct str value,
				  struct matcher_scratch *scratch)
{
	int n;

	if (m->kind == MATCHER_EXACT)
		return str_eq(value, (struct str){m->text, m->text_len})
			   ? MATCHER_YES
			   : MATCHER_NO;

	scratch->steps = 0;
	scratch->position = 0;
	n = pcre2_match(m->code, (PCRE2_SPTR)(value.n ? value.s : ""), value.n,
			0, 0, scratch->data, scratch->context);
	if (n == PCRE2_ERROR_NOMATCH)
		return MATCHER_NO;
	return n > 0 ? MATCHER_YES : MATCHER_CUT;
}

/* An entry is the group's number, most significant byte first, and its name. */
static const unsigned char *name_entry(const struct matcher *m, unsigned i)
{
	return m->names + (size_t)i * m->name_size;
}

static unsigned group_number(const struct matcher *m, unsigned i)
{
	const unsigned char *entry = name_entry(m, i);

	return (unsigned)entry[0] << 8 | entry[1];
}

struct str matcher_capture_name(const struct matcher *m, unsigned i)
{
	return str_of((const char *)name_entry(m, i) + 2);
}

struct str matcher_capture(const struct matcher *m, unsigned i,
			   struct str value,
			   const struct matcher_scratch *scratch)
{
	const PCRE2_SIZE *range = pcre2_get_ovector_pointer(scratch->data);

	range += 2 * (size_t)group_number(m, i);
	if (range[0] == PCRE2_UNSET || value.n == 0)
		return STR("");
	return (struct str){value.s + range[0], range[1] - range[0]};
}

struct str matcher_unnamed(const struct matcher *m, struct str value,
			   const struct matcher_scratch *scratch)
{
	const PCRE2_SIZE *range = pcre2_get_ovector_pointer(scratch->data);
	unsigned group = matcher_n_groups(m);

	if (!m->code)
		return value;
	for (; group > 0; group--) {
		unsigned i = 0;

		while (i < m->n_names && group_number(m, i) != group)
			i++;
		if (i == m->n_names)
			break;
	}
	range += 2 * (size_t)group;
	if (range[0] == PCRE2_UNSET || value.n == 0)
		return STR("");
	return (struct str){value.s + range[0], range[1] - range[0]};
}

/* Bytes of a class within brackets that stands at s: \w, [:alpha:]; or 0. */
static size_t class_length(struct str s)
{
	const char *end;

	if (s.n >= 2 && s.s[0] == '\\' && strchr("dDsSwW", s.s[1]))
		return 2;
	if (s.n < 4 || s.s[0] != '[' || s.s[1] != ':')
		return 0;
	end = memmem(s.s + 2, s.n - 2, ":]", 2);
	return end ? (size_t)(end + 2 - s.s) : 0;
}

size_t matcher_from_re2(struct str regex, char *buf)
{
	bool in_brackets = false, quoted = false;
	size_t n = 0;

	for (size_t i = 0; i < regex.n;) {
		struct str rest = {regex.s + i, regex.n - i};
		size_t length = in_brackets ? class_length(rest) : 0;
		bool is_class = length > 0;

		if (!length)
			length = rest.s[0] == '\\' && rest.n > 1 ? 2 : 1;
		if (length == 2 && !in_brackets)
			quoted =
			    rest.s[1] == 'Q' || (quoted && rest.s[1] != 'E');
		memcpy(buf + n, rest.s, length);
		n += length;
		i += length;
		if (quoted || length > 1) {
			if (is_class && i + 1 < regex.n && regex.s[i] == '-' &&
			    regex.s[i + 1] != ']')
				buf[n++] = '\\';
			continue;
		}
		if (rest.s[0] == '[' && !in_brackets) {
			in_brackets = true;
			/* A bracket that comes first closes nothing. */
			if (i < regex.n && regex.s[i] == '^')
				buf[n++] = regex.s[i++];
			if (i < regex.n && regex.s[i] == ']')
				buf[n++] = regex.s[i++];
		} else if (rest.s[0] == ']') {
			in_brackets = false;
		}
	}
	return n;
}
