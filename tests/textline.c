/* SPDX-License-Identifier: MIT */
/* Lines for people, with texts of strangers in them. */
#include "textline.h"
#include "tap.h"

static void check_added(struct str text, const char *want)
{
	struct textline t = {0};

	textline_add(&t, text);
	check_text(t.s, want);
	textline_done(&t);
}

static void check_quoted(struct str text, size_t max, const char *want)
{
	struct textline t = {0};

	textline_quote(&t, text, max);
	check_text(t.s, want);
	textline_done(&t);
}

static void joining(void)
{
	struct textline t = {0};

	textline_printf(&t, "%d (", 42);
	textline_add(&t, STR("a b"));
	textline_printf(&t, ")%s", "");
	check_text(t.s, "42 (a b)");
	textline_clear(&t);
	textline_printf(&t, "new");
	check_text(t.s, "new");
	for (unsigned i = 0; i < 10000; i++)
		textline_printf(&t, "%u", i % 10);
	check_u64(t.n, 10003);
	check_u64(strlen(t.s), 10003);
	check(!t.lost);
	textline_done(&t);
}

static void printable(void)
{
	check_added(STR("plain \"text\" \\x41"), "plain \"text\" \\x41");
	check_added(STR("caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x90\xa7"),
		    "caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x90\xa7");
	check_added(STR("\xc2\xa0|\xed\x9f\xbf|\xf4\x8f\xbf\xbf"),
		    "\xc2\xa0|\xed\x9f\xbf|\xf4\x8f\xbf\xbf");
}

static void controls(void)
{
	check_added(STR("\x1b[31mred\a\n\t\0z\x7f"),
		    "\\x1b[31mred\\x07\\x0a\\x09\\x00z\\x7f");
	/* CSI in one character, right-to-left override, line separator. */
	check_added(STR("\xc2\x9b"
			"31m"),
		    "\\xc2\\x9b31m");
	check_added(STR("\xe2\x80\xae"
			"a\xe2\x80\xa8"
			"b\xe2\x81\xa6\xef\xbb\xbf"),
		    "\\xe2\\x80\\xaea\\xe2\\x80\\xa8b\\xe2\\x81\\xa6"
		    "\\xef\\xbb\\xbf");
}

static void no_characters(void)
{
	check_added(STR("caf\xe9"), "caf\\xe9");
	check_added(STR("\xe9"
			"a"),
		    "\\xe9a");
	check_added(STR("\x80\xbf"), "\\x80\\xbf");
	check_added(STR("\xe6\x97"), "\\xe6\\x97");
	check_added(STR("\xc0\xaf\xc1\xbf"), "\\xc0\\xaf\\xc1\\xbf");
	check_added(STR("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
	check_added(STR("\xf0\x80\x80\xaf"), "\\xf0\\x80\\x80\\xaf");
	check_added(STR("\xed\xa0\x80"), "\\xed\\xa0\\x80");
	check_added(STR("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
	check_added(STR("\xf8\x88\x80\x80\x80\xff"),
		    "\\xf8\\x88\\x80\\x80\\x80\\xff");
}

static void quotes(void)
{
	check_quoted(STR(""), 4, "\"\"");
	check_quoted(STR("abcd"), 4, "\"abcd\"");
	check_quoted(STR("abcde"), 4, "\"abcd...\" (5 bytes)");
	check_quoted(STR("ab\xe6\x97\xa5x"), 4, "\"ab...\" (6 bytes)");
	check_quoted(STR("a\xe6\x97\xa5x"), 4,
		     "\"a\xe6\x97\xa5...\" (5 bytes)");
	check_quoted(STR("\x80\x80\x80\x80\x80"), 4,
		     "\"\\x80\\x80\\x80\\x80...\" (5 bytes)");
	check_quoted(STR("\x80\x80"), 1, "\"\\x80...\" (2 bytes)");
}

/* Each of these lies at the very end of its memory, for sanitizers. */
static void any_bytes(void)
{
	uint64_t seed = 1;

	for (unsigned round = 0; round < 20000; round++) {
		size_t n = round % 9;
		char *text = malloc(n ? n : 1);
		struct textline t = {0};

		for (size_t i = 0; i < n; i++) {
			seed = seed * 6364136223846793005u + 1;
			text[i] = (char)(seed >> 56);
		}
		textline_quote(&t, (struct str){text, n}, 5);
		for (size_t i = 0; i < t.n; i++)
			if ((unsigned char)t.s[i] < ' ' || t.s[i] == 0x7f)
				tap_fail(__FILE__, __LINE__, "a control byte");
		textline_done(&t);
		free(text);
	}
}

int main(void)
{
	TEST("pieces join, however many there are", joining);
	TEST("characters stay as they are", printable);
	TEST("what steers a terminal is shown in hex", controls);
	TEST("bytes that are no character are shown in hex", no_characters);
	TEST("a long text is cut between characters", quotes);
	TEST("any bytes can be shown", any_bytes);
	return tap_done();
}
