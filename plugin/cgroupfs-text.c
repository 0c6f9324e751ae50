/* SPDX-License-Identifier: MIT */
#include "cgroupfs-text.h"

#include "proctext.h"

/* Takes what is before the next `c` off `rest`, which ends with it or not. */
static bool next_part(struct str *rest, char c, struct str *ret)
{
	const char *end;
	size_t n;

	if (!rest->n)
		return false;
	end = memchr(rest->s, c, rest->n);
	n = end ? (size_t)(end - rest->s) : rest->n;
	*ret = (struct str){rest->s, n};
	n += end ? 1 : 0;
	*rest = (struct str){rest->s + n, rest->n - n};
	return true;
}

/* The whole of it is a number. */
static bool is_number(struct str s, uint64_t *ret)
{
	const char *at = s.s;
	uint64_t v;

	if (!s.n || !proctext_number(&at, s.s + s.n, &v) || at != s.s + s.n)
		return false;
	*ret = v;
	return true;
}

static void add(uint64_t *sum, uint64_t v)
{
	if (__builtin_add_overflow(*sum, v, sum))
		*sum = UINT64_MAX;
}

bool cgroupfs_parse_number(struct str text, uint64_t *ret)
{
	struct str line;

	return next_part(&text, '\n', &line) && is_number(line, ret);
}

bool cgroupfs_parse_key(struct str text, const char *key, uint64_t *ret)
{
	struct str line, word;

	while (next_part(&text, '\n', &line))
		if (next_part(&line, ' ', &word) && str_eq(word, str_of(key)))
			return is_number(line, ret);
	return false;
}

bool cgroupfs_parse_regions(struct str text, uint64_t *ret)
{
	struct str line, word;
	uint64_t sum = 0, v;
	bool found = false;

	while (next_part(&text, '\n', &line)) {
		if (next_part(&line, ' ', &word) && is_number(line, &v)) {
			add(&sum, v);
			found = true;
		}
	}
	if (found)
		*ret = sum;
	return found;
}

/* The number behind "KEY=" among the words of a line. */
static bool find_word(struct str line, const char *key, uint64_t *ret)
{
	struct str word, name;

	while (next_part(&line, ' ', &word))
		if (next_part(&word, '=', &name) && str_eq(name, str_of(key)))
			return is_number(word, ret);
	return false;
}

bool cgroupfs_parse_io(struct str text, const char *key, uint64_t *ret)
{
	uint64_t sum = 0, v;
	bool found = false;
	struct str line;

	while (next_part(&text, '\n', &line)) {
		if (find_word(line, key, &v)) {
			add(&sum, v);
			found = true;
		}
	}
	if (found)
		*ret = sum;
	return found;
}

bool cgroupfs_parse_pressure(struct str text, const char *kind, uint64_t *ret)
{
	struct str line, word;

	while (next_part(&text, '\n', &line))
		if (next_part(&line, ' ', &word) && str_eq(word, str_of(kind)))
			return find_word(line, "total", ret);
	return false;
}

static bool list_has(struct str list, struct str word)
{
	struct str part;

	if (!list.n)
		return !word.n;
	while (next_part(&list, ',', &part))
		if (str_eq(part, word))
			return true;
	return false;
}

/* One that is not below the root of our cgroup namespace begins so. */
static bool leads_out(struct str path)
{
	return str_eq(path, STR("/..")) || str_begins(path, STR("/../"));
}

bool cgroupfs_parse_path(struct str text, const char *controller,
			 struct str *ret)
{
	struct str line, id, list;

	while (next_part(&text, '\n', &line)) {
		if (!next_part(&line, ':', &id) ||
		    !next_part(&line, ':', &list) ||
		    !list_has(list, str_of(controller)))
			continue;
		if (!str_begins(line, STR("/")) || leads_out(line))
			return false;
		*ret = line;
		return true;
	}
	return false;
}
