/* SPDX-License-Identifier: MIT */
#include "proctext.h"

#include <ctype.h>

bool proctext_number(const char **s, const char *end, uint64_t *ret)
{
	const char *at = *s;
	uint64_t v = 0;

	if (at == end || *at < '0' || *at > '9')
		return false;
	for (; at < end && *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*at - '0'), &v))
			return false;
	*s = at;
	*ret = v;
	return true;
}

int proctext_parse_stat(struct str text, struct proc_stat *ret)
{
	const char *end = text.s + text.n;
	const char *open = text.n ? memchr(text.s, '(', text.n) : NULL;
	/* comm may hold ')' itself; behind it there are only numbers. */
	const char *close = text.n ? memrchr(text.s, ')', text.n) : NULL;
	const char *at;

	if (!open || !close || close < open || end - close < 4 ||
	    close[1] != ' ' || close[3] != ' ')
		return -EBADMSG;
	*ret = (struct proc_stat){
	    .comm = {open + 1, (size_t)(close - open - 1)},
	    .state = close[2],
	};
	at = close + 4;
	for (unsigned i = STAT_FIELD_PPID; i <= STAT_FIELD_LAST; i++) {
		bool negative;

		while (at < end && *at == ' ')
			at++;
		negative = at < end && *at == '-';
		if (negative)
			at++;
		if (!proctext_number(&at, end, &ret->field[i])) {
			ret->field[i] = 0;
			return i > STAT_FIELD_RSS ? 0 : -EBADMSG;
		}
		if (negative)
			ret->field[i] = -ret->field[i];
		/* One that ends with the text may have been cut off. */
		if (at == end || (*at != ' ' && *at != '\n')) {
			ret->field[i] = 0;
			return i > STAT_FIELD_RSS ? 0 : -EBADMSG;
		}
	}
	return 0;
}

metric_mask proctext_parse_keys(enum metric_source source, struct str text,
				metric_mask wanted, uint64_t *value)
{
	const char *line = text.s, *end = text.s + text.n;
	metric_mask found = 0;

	wanted &= metric_rows(source);
	while (line < end && found != wanted) {
		const char *eol = memchr(line, '\n', (size_t)(end - line));
		const char *colon;

		if (!eol)
			eol = end;
		colon = memchr(line, ':', (size_t)(eol - line));
		for (metric_mask m = colon ? wanted & ~found : 0; m;
		     m &= m - 1) {
			unsigned row = (unsigned)__builtin_ctzll(m);
			const char *at = colon + 1;

			if (!str_eq(str_of(metrics[row].key),
				    (struct str){line, (size_t)(colon - line)}))
				continue;
			while (at < eol && isblank((unsigned char)*at))
				at++;
			/* One that ends with the text may have been cut off. */
			if (proctext_number(&at, eol, &value[row]) && at < end)
				found |= METRIC_BIT(row);
			break;
		}
		line = eol + 1;
	}
	return found;
}

int proctext_parse_fd_limit(struct str text, uint64_t *ret)
{
	const struct str key = STR("Max open files ");
	const char *line = text.s, *end = text.s + text.n;

	while (line < end) {
		const char *eol = memchr(line, '\n', (size_t)(end - line));
		const char *at = line + key.n;
		uint64_t v;

		if (!eol)
			return PROC_ABSENT; /* it may have been cut off */
		if (!str_begins((struct str){line, (size_t)(eol - line)},
				key)) {
			line = eol + 1;
			continue;
		}
		while (at < eol && *at == ' ')
			at++;
		if (!proctext_number(&at, eol, &v))
			return PROC_ABSENT;
		*ret = v;
		return 0;
	}
	return PROC_ABSENT;
}
