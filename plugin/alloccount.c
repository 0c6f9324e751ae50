/* SPDX-License-Identifier: MIT */
#include "alloccount.h"

#include <malloc.h>
#include <stdatomic.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
#define COUNTED 0
#endif
#endif
#if !defined(COUNTED) && defined(__GLIBC__)
#define COUNTED 1
#endif

static atomic_uint_fast64_t n_calls;

#if COUNTED

/*
 * glibc lets a program put its own functions before these ("Replacing
 * malloc" in its manual) and keeps the originals under these names.
 */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
	atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
	return __libc_realloc(p, size);
}

#endif

uint64_t alloccount_calls(void)
{
	return atomic_load_explicit(&n_calls, memory_order_relaxed);
}

uint64_t alloccount_bytes(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
#else
	return 0;
#endif
}
