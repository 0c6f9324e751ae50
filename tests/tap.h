/* SPDX-License-Identifier: MIT */
/*
 * TAP for test programs. One point per test function; its name is a sentence.
 *
 *	static void reused_pid(void)
 *	{
 *		check_u64(sum, 3);
 *	}
 *
 *	int main(void)
 *	{
 *		TEST("a reused pid starts from zero", reused_pid);
 *		return tap_done();
 *	}
 *
 * A failed check prints file, line and both values, and the function goes on.
 * The program exits 0: TAP carries failures, the exit status carries crashes.
 */
#pragma once

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static struct {
	unsigned n, n_failed;
	bool failed;
	char skip[256];
} tap;

__attribute__((format(printf, 3, 4), unused)) static void
tap_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	tap.failed = true;
	printf("# %s:%d: ", file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

#define check(cond)                                                            \
	do {                                                                   \
		if (!(cond))                                                   \
			tap_fail(__FILE__, __LINE__, "not so: %s", #cond);     \
	} while (0)

#define check_int(got, want)                                                   \
	do {                                                                   \
		intmax_t g_ = (got), w_ = (want);                              \
		if (g_ != w_)                                                  \
			tap_fail(__FILE__, __LINE__,                           \
				 "%s: want %" PRIdMAX ", got %" PRIdMAX, #got, \
				 w_, g_);                                      \
	} while (0)

#define check_u64(got, want)                                                   \
	do {                                                                   \
		uint64_t g_ = (got), w_ = (want);                              \
		if (g_ != w_)                                                  \
			tap_fail(__FILE__, __LINE__,                           \
				 "%s: want %" PRIu64 ", got %" PRIu64, #got,   \
				 w_, g_);                                      \
	} while (0)

#define check_text(got, want)                                                  \
	do {                                                                   \
		const char *g_ = (got), *w_ = (want);                          \
		if (!g_ || !w_ || strcmp(g_, w_))                              \
			tap_fail(__FILE__, __LINE__,                           \
				 "%s: want \"%s\", got \"%s\"", #got,          \
				 w_ ? w_ : "(null)", g_ ? g_ : "(null)");      \
	} while (0)

/* For struct str of base.h. */
#define check_str(got, want)                                                   \
	do {                                                                   \
		struct str g_ = (got);                                         \
		const char *w_ = (want);                                       \
		if (g_.n != strlen(w_) || memcmp(g_.s, w_, g_.n))              \
			tap_fail(__FILE__, __LINE__,                           \
				 "%s: want \"%s\", got \"%.*s\"", #got, w_,    \
				 (int)g_.n, g_.s);                             \
	} while (0)

/* Marks the running test as skipped; return from it afterwards. */
__attribute__((format(printf, 1, 2), unused)) static void
tap_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(tap.skip, sizeof(tap.skip), fmt, ap);
	va_end(ap);
}

__attribute__((unused)) static void tap_run(const char *name, void (*fn)(void))
{
	tap.failed = false;
	tap.skip[0] = '\0';
	fn();
	tap.n++;
	tap.n_failed += tap.failed;
	printf("%sok %u - %s%s%s\n", tap.failed ? "not " : "", tap.n, name,
	       tap.skip[0] ? " # SKIP " : "", tap.skip);
	fflush(stdout);
}

#define TEST(name, fn) tap_run(name, fn)

static int tap_done(void)
{
	printf("1..%u\n", tap.n);
	return 0;
}
