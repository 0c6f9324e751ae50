/* SPDX-License-Identifier: MIT */
/*
 * Edit distance with swaps of neighbours ("optimal string alignment"), three
 * rows at a time. It takes any bytes and no more than SUGGEST_WORD_MAX of
 * them: nobody mistypes a longer word in a way that a suggestion would help.
 */
#include "suggest.h"

enum {
	SUGGEST_WORD_MAX = 40,
};

static unsigned char fold_case(char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a')
				    : (unsigned char)c;
}

static unsigned edit_distance(struct str a, struct str b)
{
	unsigned row[3][SUGGEST_WORD_MAX + 1];
	unsigned *before = row[0], *above = row[1], *now = row[2], *spare;

	for (size_t j = 0; j <= b.n; j++)
		above[j] = (unsigned)j;
	memset(before, 0, sizeof(row[0]));

	for (size_t i = 1; i <= a.n; i++) {
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b.n; j++) {
			unsigned char x = fold_case(a.s[i - 1]);
			unsigned char y = fold_case(b.s[j - 1]);
			unsigned best = above[j - 1] + (x != y);

			best = MIN(best, above[j] + 1);
			best = MIN(best, now[j - 1] + 1);
			if (i > 1 && j > 1 && x == fold_case(b.s[j - 2]) &&
			    y == fold_case(a.s[i - 2]))
				best = MIN(best, before[j - 2] + 1);
			now[j] = best;
		}
		spare = before;
		before = above;
		above = now;
		now = spare;
	}
	return above[b.n];
}

const char *suggest_closest(struct str word, const char *const *words, size_t n)
{
	const char *closest = NULL;
	unsigned best;

	if (word.n < 2 || word.n > SUGGEST_WORD_MAX)
		return NULL;
	best = (unsigned)word.n / 3 + 1;
	if (word.n == 2)
		best = 2;
	for (size_t i = 0; i < n; i++) {
		struct str w = str_of(words[i]);
		unsigned d;

		if (w.n > SUGGEST_WORD_MAX)
			continue;
		d = edit_distance(word, w);
		if (d < best) {
			best = d;
			closest = words[i];
		}
	}
	return closest;
}
