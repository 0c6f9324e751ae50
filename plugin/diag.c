/* SPDX-License-Identifier: MIT */
/*
 * A bounded list of messages. Errors count even where their text is lost, so
 * that "is there an error" is always answered rightly; a message that stands
 * there already, word for word at the same place, is not added again (an
 * alias brings the reader to the same mistake twice).
 *
 * Invariant: a text is one line: control bytes are replaced as it comes in.
 */
#include "diag.h"

#include <stdarg.h>
#include <stdio.h>

void diag_init(struct diag *d, const char *file)
{
	*d = (struct diag){.file = strdup(file)};
}

void diag_done(struct diag *d)
{
	for (size_t i = 0; i < d->n_msgs; i++)
		free(d->msg[i].text);
	free(d->msg);
	free(d->file);
	*d = (struct diag){0};
}

static void make_one_line(char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == 0x7f)
			*text = '?';
	}
}

static bool is_known(const struct diag *d, const struct diag_msg *m)
{
	for (size_t i = 0; i < d->n_msgs; i++) {
		const struct diag_msg *o = &d->msg[i];

		if (o->level == m->level && o->line == m->line &&
		    o->column == m->column && !strcmp(o->text, m->text))
			return true;
	}
	return false;
}

/* Lets go of the last message of less weight; false if there is none. */
static bool make_room(struct diag *d, enum diag_level level)
{
	for (size_t i = d->n_msgs; i-- > 0;) {
		if (d->msg[i].level <= level)
			continue;
		free(d->msg[i].text);
		d->n_msgs--;
		memmove(&d->msg[i], &d->msg[i + 1],
			(d->n_msgs - i) * sizeof(d->msg[0]));
		d->n_dropped++;
		return true;
	}
	return false;
}

static bool append(struct diag *d, const struct diag_msg *m)
{
	if (d->n_msgs == DIAG_MSG_MAX && !make_room(d, m->level))
		return false;
	if (array_reserve(&d->msg, &d->cap, d->n_msgs + 1, sizeof(d->msg[0])))
		return false;
	d->msg[d->n_msgs++] = *m;
	return true;
}

void diag_add(struct diag *d, enum diag_level level, unsigned line,
	      unsigned column, const char *fmt, ...)
{
	struct diag_msg m = {level, line, column, NULL};
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&m.text, fmt, ap);
	va_end(ap);
	if (n < 0)
		m.text = NULL;
	if (m.text) {
		make_one_line(m.text);
		if (is_known(d, &m)) {
			free(m.text);
			return;
		}
	}

	d->n_errors += level == DIAG_ERROR;
	d->n_warnings += level == DIAG_WARNING;
	if (!m.text || !append(d, &m)) {
		free(m.text);
		d->n_dropped++;
	}
}

static bool is_before(const struct diag_msg *a, const struct diag_msg *b)
{
	if (a->line != b->line)
		return a->line < b->line;
	return a->column < b->column;
}

/* By insertion: stable, and there are DIAG_MSG_MAX of them at most. */
void diag_sort(struct diag *d)
{
	for (size_t i = 1; i < d->n_msgs; i++) {
		struct diag_msg m = d->msg[i];
		size_t j = i;

		for (; j > 0 && is_before(&m, &d->msg[j - 1]); j--)
			d->msg[j] = d->msg[j - 1];
		d->msg[j] = m;
	}
}

int diag_format(const struct diag *d, size_t i, char *buf, size_t size)
{
	static const char *const levels[] = {
	    [DIAG_ERROR] = "error",
	    [DIAG_WARNING] = "warning",
	    [DIAG_NOTE] = "note",
	};
	const struct diag_msg *m = &d->msg[i];
	const char *file = d->file ? d->file : "?";

	if (!m->line)
		return snprintf(buf, size, "%s: %s: %s", file, levels[m->level],
				m->text);
	if (!m->column)
		return snprintf(buf, size, "%s:%u: %s: %s", file, m->line,
				levels[m->level], m->text);
	return snprintf(buf, size, "%s:%u:%u: %s: %s", file, m->line, m->column,
			levels[m->level], m->text);
}
