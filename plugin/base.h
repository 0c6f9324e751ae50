/* SPDX-License-Identifier: MIT */
/*
 * What every file of the project may use: attributes, cleanup helpers, a few
 * array and hash helpers. It knows no process, no rule and no collectd.
 *
 * Errors are ints: negative errno values are forwarded unchanged, positive
 * values are outcomes named by the module that returns them.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h> /* MIN, MAX */
#include <unistd.h>

#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))
#define _unused_ __attribute__((unused))
#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _cleanup_free_ _cleanup_(base_freep)
#define _cleanup_close_ _cleanup_(base_closep)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define NSEC_PER_SEC UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)

/* One moment, as the caller says: the core does not ask for the time. */
struct moment {
	uint64_t mono_ns; /* CLOCK_MONOTONIC */
	uint64_t boot_ns; /* CLOCK_BOOTTIME: counts while suspended, too */
	uint64_t real_ns; /* CLOCK_REALTIME; for texts only, never for rates */
};

/* A run of bytes that somebody else owns; not terminated, may hold any byte. */
struct str {
	const char *s;
	size_t n;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})

static inline struct str str_of(const char *s)
{
	return (struct str){s, strlen(s)};
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

static inline bool str_begins(struct str s, struct str prefix)
{
	return s.n >= prefix.n && memcmp(s.s, prefix.s, prefix.n) == 0;
}

static inline bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n &&
	       memcmp(s.s + s.n - suffix.n, suffix.s, suffix.n) == 0;
}

static inline void base_freep(void *p)
{
	free(*(void **)p);
}

static inline void base_closep(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Hands the pointer or the descriptor on and disarms its cleanup. */
#define steal_ptr(p)                                                           \
	({                                                                     \
		__typeof__(p) *pp_ = &(p);                                     \
		__typeof__(p) v_ = *pp_;                                       \
		*pp_ = NULL;                                                   \
		v_;                                                            \
	})

static inline int steal_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

/*
 * Makes room for `need` elements of `size` bytes in a heap array, a quarter
 * more at a time. Returns 0 or -ENOMEM; the array is untouched on failure.
 */
static inline int array_reserve(void *arrayp, size_t *cap, size_t need,
				size_t size)
{
	size_t n = *cap;
	void *p;

	if (need <= *cap)
		return 0;
	while (n < need)
		n += n / 4 + 8;
	p = reallocarray(*(void **)arrayp, n, size);
	if (!p)
		return -ENOMEM;
	*(void **)arrayp = p;
	*cap = n;
	return 0;
}

/*
 * FNV-1a, 64 bits (public domain, Fowler, Noll, Vo); for tables and names.
 * hash_more() goes on from the hash of what came before; HASH_NOTHING is that
 * of no bytes.
 */
#define HASH_NOTHING UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_more(uint64_t h, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.s[i]) * UINT64_C(0x100000001b3);
	return h;
}

static inline uint64_t hash_bytes(struct str s)
{
	return hash_more(HASH_NOTHING, s);
}
