/* SPDX-License-Identifier: MIT */
#include "bulk.h"

#include <sys/mman.h>

enum {
	FEW = 1024, /* elements that are never too many */
	PART = 4,   /* where that part of the room would have done */
	CALM = 12,  /* so many times, the storm is over */
};

static size_t in_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* Returns NULL if there is no memory; `old` may be NULL. */
static void *map_again(void *old, size_t old_bytes, size_t bytes)
{
	void *p = old ? mremap(old, old_bytes, bytes, MREMAP_MAYMOVE)
		      : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int bulk_reserve(void *arrayp, size_t *cap, size_t need, size_t size)
{
	size_t n = *cap, bytes;
	void *p;

	if (need <= n)
		return 0;
	n += n / 4;
	n = MAX(n, need);
	if (n > SIZE_MAX / 2 / size)
		return -ENOMEM;
	bytes = in_pages(n * size);
	p = map_again(*(void **)arrayp, in_pages(*cap * size), bytes);
	if (!p)
		return -ENOMEM;
	*(void **)arrayp = p;
	*cap = bytes / size;
	return 0;
}

void bulk_trim(void *arrayp, size_t *cap, size_t need, size_t size)
{
	size_t bytes = in_pages(need * size);
	void *p;

	if (!need) {
		bulk_free(arrayp, cap, size);
		return;
	}
	if (need >= *cap || bytes >= in_pages(*cap * size))
		return;
	p = map_again(*(void **)arrayp, in_pages(*cap * size), bytes);
	if (!p)
		return;
	*(void **)arrayp = p;
	*cap = bytes / size;
}

void bulk_free(void *arrayp, size_t *cap, size_t size)
{
	if (*(void **)arrayp)
		munmap(*(void **)arrayp, in_pages(*cap * size));
	*(void **)arrayp = NULL;
	*cap = 0;
}

bool bulk_is_spare(unsigned *n_calm, size_t used, size_t cap)
{
	*n_calm = used <= cap / PART ? *n_calm + 1 : 0;
	return *n_calm >= CALM && cap > FEW;
}
