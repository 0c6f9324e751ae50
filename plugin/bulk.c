/* SPDX-License-Identifier: MIT */
#include "bulk.h"

#include <sys/mman.h>

static size_t in_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

int bulk_reserve(void *arrayp, size_t *cap, size_t need, size_t size)
{
	size_t n = *cap, bytes;
	void *old = *(void **)arrayp, *p;

	if (need <= n)
		return 0;
	n += n / 4;
	n = MAX(n, need);
	if (n > SIZE_MAX / 2 / size)
		return -ENOMEM;
	bytes = in_pages(n * size);
	p = old ? mremap(old, in_pages(*cap * size), bytes, MREMAP_MAYMOVE)
		: mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	*(void **)arrayp = p;
	*cap = bytes / size;
	return 0;
}

void bulk_free(void *arrayp, size_t *cap, size_t size)
{
	if (*(void **)arrayp)
		munmap(*(void **)arrayp, in_pages(*cap * size));
	*(void **)arrayp = NULL;
	*cap = 0;
}
