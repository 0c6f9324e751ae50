/* SPDX-License-Identifier: MIT */
/*
 * Messages of a text file: their form, their order and what happens when
 * there are too many of them. It knows diag alone.
 *
 * Invariant: no point depends on the order of the points.
 */
#include "tap.h"

#include "diag.h"

static const char *format(const struct diag *d, size_t i)
{
	static char buf[256];

	diag_format(d, i, buf, sizeof(buf));
	return buf;
}

static void form(void)
{
	struct diag d;

	diag_init(&d, "a.yaml");
	diag_add(&d, DIAG_ERROR, 3, 5, "no %s", "good");
	diag_add(&d, DIAG_WARNING, 4, 1, "hm");
	diag_add(&d, DIAG_NOTE, 5, 0, "by the way");
	diag_add(&d, DIAG_ERROR, 0, 0, "gone");
	check_text(format(&d, 0), "a.yaml:3:5: error: no good");
	check_text(format(&d, 1), "a.yaml:4:1: warning: hm");
	check_text(format(&d, 2), "a.yaml:5: note: by the way");
	check_text(format(&d, 3), "a.yaml: error: gone");
	check_u64(d.n_errors, 2);
	check_u64(d.n_warnings, 1);
	diag_done(&d);
}

static void short_buffer(void)
{
	struct diag d;
	char buf[8];

	diag_init(&d, "f");
	diag_add(&d, DIAG_ERROR, 1, 1, "x");
	check_int(diag_format(&d, 0, buf, sizeof(buf)), 15);
	check_text(buf, "f:1:1: ");
	diag_done(&d);
}

static void own_name(void)
{
	char file[] = "a";
	struct diag d;

	diag_init(&d, file);
	file[0] = 'b';
	diag_add(&d, DIAG_ERROR, 1, 1, "x");
	check_text(format(&d, 0), "a:1:1: error: x");
	diag_done(&d);
}

static void order(void)
{
	struct diag d;

	diag_init(&d, "f");
	diag_add(&d, DIAG_ERROR, 9, 1, "e");
	diag_add(&d, DIAG_ERROR, 2, 7, "c");
	diag_add(&d, DIAG_NOTE, 2, 7, "b");
	diag_add(&d, DIAG_ERROR, 2, 3, "d");
	diag_add(&d, DIAG_ERROR, 0, 0, "whole");
	diag_sort(&d);
	check_text(d.msg[0].text, "whole");
	check_text(d.msg[1].text, "d");
	check_text(d.msg[2].text, "c");
	check_text(d.msg[3].text, "b");
	check_text(d.msg[4].text, "e");
	diag_done(&d);
}

static void too_many(void)
{
	struct diag d;

	diag_init(&d, "f");
	for (unsigned i = 1; i <= DIAG_MSG_MAX + 3; i++)
		diag_add(&d, DIAG_ERROR, i, 1, "x");
	diag_add(&d, DIAG_WARNING, 1, 2, "y");
	check_u64(d.n_msgs, DIAG_MSG_MAX);
	check_u64(d.n_dropped, 4);
	check_u64(d.n_errors, DIAG_MSG_MAX + 3);
	check_u64(d.n_warnings, 1);
	diag_done(&d);
}

static void errors_first(void)
{
	struct diag d;

	diag_init(&d, "f");
	for (unsigned i = 1; i <= DIAG_MSG_MAX; i++)
		diag_add(&d, i == 7 ? DIAG_ERROR : DIAG_WARNING, i, 1, "x");
	diag_add(&d, DIAG_ERROR, 99, 1, "late");
	check_u64(d.n_msgs, DIAG_MSG_MAX);
	check_u64(d.n_dropped, 1);
	check_text(d.msg[DIAG_MSG_MAX - 1].text, "late");
	check_int(d.msg[DIAG_MSG_MAX - 2].line, DIAG_MSG_MAX - 1);
	check_int(d.msg[6].level, DIAG_ERROR);
	diag_done(&d);
}

static void warnings_before_notes(void)
{
	struct diag d;

	diag_init(&d, "f");
	for (unsigned i = 1; i <= DIAG_MSG_MAX; i++)
		diag_add(&d, i == 7 ? DIAG_NOTE : DIAG_WARNING, i, 1, "x");
	diag_add(&d, DIAG_WARNING, 99, 1, "late");
	diag_add(&d, DIAG_WARNING, 99, 1, "later");
	check_u64(d.n_msgs, DIAG_MSG_MAX);
	check_u64(d.n_dropped, 2);
	check_text(d.msg[DIAG_MSG_MAX - 1].text, "late");
	check_int(d.msg[6].line, 8);
	diag_done(&d);
}

static void said_once(void)
{
	struct diag d;

	diag_init(&d, "f");
	diag_add(&d, DIAG_ERROR, 1, 1, "x");
	diag_add(&d, DIAG_ERROR, 1, 1, "x");
	diag_add(&d, DIAG_ERROR, 1, 2, "x");
	diag_add(&d, DIAG_ERROR, 1, 1, "y");
	check_u64(d.n_msgs, 3);
	check_u64(d.n_errors, 3);
	check_u64(d.n_dropped, 0);
	diag_done(&d);
}

static void one_line(void)
{
	struct diag d;

	diag_init(&d, "f");
	diag_add(&d, DIAG_ERROR, 1, 1, "a\nb\x1b[0mc\x7f \xc3\xbc");
	check_text(d.msg[0].text, "a?b?[0mc? \xc3\xbc");
	diag_done(&d);
}

int main(void)
{
	TEST("a message is file, line, column, level and text", form);
	TEST("a short buffer takes what snprintf would put there",
	     short_buffer);
	TEST("the name of the file is a copy", own_name);
	TEST("messages are sorted by place and keep their order at one place",
	     order);
	TEST("what goes beyond the limit is counted", too_many);
	TEST("an error takes the place of a warning when it is full",
	     errors_first);
	TEST("a warning takes the place of a note, and of nothing else",
	     warnings_before_notes);
	TEST("the same message at the same place is said once", said_once);
	TEST("control bytes cannot break a message into lines", one_line);
	return tap_done();
}
