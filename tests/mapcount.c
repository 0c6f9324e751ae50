/* SPDX-License-Identifier: MIT */
#include "mapcount.h"

#include <stdatomic.h>
#include <sys/mman.h>

static atomic_uint_fast64_t n_calls, n_bytes;

static size_t in_pages(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) / page * page;
}

void *__real_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	void *p = __real_mmap64(at, n, prot, flags, fd, off);

	n_calls++;
	if (p != MAP_FAILED)
		n_bytes += in_pages(n);
	return p;
}

void *__real_mremap(void *at, size_t old_n, size_t n, int flags, ...);
void *__wrap_mremap(void *at, size_t old_n, size_t n, int flags, ...);
void *__wrap_mremap(void *at, size_t old_n, size_t n, int flags, ...)
{
	void *p = __real_mremap(at, old_n, n, flags);

	n_calls++;
	if (p != MAP_FAILED)
		n_bytes += in_pages(n) - in_pages(old_n);
	return p;
}

int __real_munmap(void *at, size_t n);
int __wrap_munmap(void *at, size_t n);
int __wrap_munmap(void *at, size_t n)
{
	int r = __real_munmap(at, n);

	n_calls++;
	if (r == 0)
		n_bytes -= in_pages(n);
	return r;
}

uint64_t mapcount_calls(void)
{
	return n_calls;
}

uint64_t mapcount_bytes(void)
{
	return n_bytes;
}
