/* SPDX-License-Identifier: MIT */
/* Arrays of whole pages: what is in them, and that they go back. */
#include "bulk.h"

#include <sys/mman.h>

#include "tap.h"

struct element {
	uint64_t number, rest[6];
};

static bool is_mapped(void *at)
{
	unsigned char there;

	return mincore(at, 1, &there) == 0;
}

static void growing(void)
{
	struct element *e = NULL, *before;
	size_t cap = 0, n = 0;

	for (unsigned round = 0; round < 20; round++) {
		check_int(bulk_reserve(&e, &cap, n + 100, sizeof(*e)), 0);
		check(cap >= n + 100);
		for (size_t i = n; i < cap; i++)
			if (e[i].number || e[i].rest[5])
				check(false);
		for (; n < cap; n++)
			e[n].number = n + 1;
	}
	for (size_t i = 0; i < n; i++)
		if (e[i].number != i + 1)
			check(false);
	before = e;
	check_int(bulk_reserve(&e, &cap, cap, sizeof(*e)), 0);
	check(e == before);
	bulk_free(&e, &cap, sizeof(*e));
	check(!e && !cap);
	check(!is_mapped(before));
	bulk_free(&e, &cap, sizeof(*e));
	check_int(bulk_reserve(&e, &cap, 1, sizeof(*e)), 0);
	check_u64(e[0].number, 0);
	bulk_free(&e, &cap, sizeof(*e));
}

static void too_much(void)
{
	struct element *e = NULL, *before;
	size_t cap = 0, was;

	check_int(bulk_reserve(&e, &cap, 1, sizeof(*e)), 0);
	before = e;
	was = cap;
	e[0].number = 42;
	check_int(bulk_reserve(&e, &cap, SIZE_MAX / 8, sizeof(*e)), -ENOMEM);
	check_int(bulk_reserve(&e, &cap, SIZE_MAX / sizeof(*e) / 4, sizeof(*e)),
		  -ENOMEM);
	check(e == before && cap == was && e[0].number == 42);
	bulk_free(&e, &cap, sizeof(*e));
}

/* What the size of an element does not divide a page into. */
static void odd_sizes(void)
{
	static const size_t sizes[] = {1, 3, 232, 1000, 4095, 4096};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned char *p = NULL, *end;
		size_t cap = 0;

		check_int(bulk_reserve(&p, &cap, 5, sizes[i]), 0);
		check_int(bulk_reserve(&p, &cap, 5000, sizes[i]), 0);
		memset(p, 0xff, cap * sizes[i]);
		end = p + (cap * sizes[i] - 1) / 4096 * 4096;
		check(is_mapped(end));
		bulk_free(&p, &cap, sizes[i]);
		check(!is_mapped(end));
	}
}

int main(void)
{
	TEST("an array grows, is new where it grew, and goes back", growing);
	TEST("what cannot be had changes nothing", too_much);
	TEST("elements of any size are in whole pages", odd_sizes);
	return tap_done();
}
