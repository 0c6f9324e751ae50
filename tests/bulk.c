/* SPDX-License-Identifier: MIT */
/* Arrays of whole pages: what is in them, and that they go back. */
#include "bulk.h"

#include <sys/mman.h>

#include "mapcount.h"
#include "tap.h"

struct element {
	uint64_t number, rest[6];
};

static size_t page;

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
	const size_t sizes[] = {1, 3, 232, 1000, page - 1, page};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned char *p = NULL, *end;
		size_t cap = 0;

		check_int(bulk_reserve(&p, &cap, 5, sizes[i]), 0);
		check_int(bulk_reserve(&p, &cap, 5000, sizes[i]), 0);
		memset(p, 0xff, cap * sizes[i]);
		end = p + (cap * sizes[i] - 1) / page * page;
		check(is_mapped(end));
		bulk_free(&p, &cap, sizes[i]);
		check(!is_mapped(end));
	}
}

/* The number that was asked for will do as well as the one that was given. */
static void given_back_by_need(void)
{
	struct element *e = NULL, *before;
	size_t cap = 0, need = 1000;

	check_int(bulk_reserve(&e, &cap, need, sizeof(*e)), 0);
	before = e;
	bulk_free(&e, &need, sizeof(*e));
	check(
	    !is_mapped((char *)before + (cap * sizeof(*e) - 1) / page * page));
	check_u64(mapcount_bytes(), 0);
}

static void trimming(void)
{
	struct element *e = NULL;
	size_t cap = 0, was;
	char *end;

	check_int(bulk_reserve(&e, &cap, 100000, sizeof(*e)), 0);
	for (size_t i = 0; i < cap; i++)
		e[i].number = i + 1;
	was = cap;
	bulk_trim(&e, &cap, was, sizeof(*e));
	check_u64(cap, was);
	bulk_trim(&e, &cap, 2000, sizeof(*e));
	check(cap >= 2000 && cap < 2000 + page / sizeof(*e));
	check_u64(mapcount_bytes(),
		  (cap * sizeof(*e) + page - 1) / page * page);
	end = (char *)e + (was * sizeof(*e) - 1) / page * page;
	check(!is_mapped(end));
	for (size_t i = 0; i < 2000; i++)
		if (e[i].number != i + 1)
			check(false);
	/* What grows again is new. */
	check_int(bulk_reserve(&e, &cap, 3000, sizeof(*e)), 0);
	check_u64(e[2999].number, 0);
	bulk_trim(&e, &cap, 0, sizeof(*e));
	check(!e && !cap);
	bulk_trim(&e, &cap, 0, sizeof(*e));
	check_u64(mapcount_bytes(), 0);
}

static void spare(void)
{
	unsigned n_calm = 0, n = 0;

	while (n < 100 && !bulk_is_spare(&n_calm, 300, 4000))
		n++;
	check(n > 5 && n < 60);
	check(bulk_is_spare(&n_calm, 0, 4000));
	check(!bulk_is_spare(&n_calm, 2000, 4000));
	check(!bulk_is_spare(&n_calm, 300, 4000));
	for (n = 0; n < 100; n++)
		if (bulk_is_spare(&n_calm, 0, 100))
			check(!"so few are kept");
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	TEST("an array grows, is new where it grew, and goes back", growing);
	TEST("what cannot be had changes nothing", too_much);
	TEST("elements of any size are in whole pages", odd_sizes);
	TEST("room goes back by the number that was asked for",
	     given_back_by_need);
	TEST("what is beyond what is needed goes back", trimming);
	TEST("room is spare when little was needed for some time", spare);
	return tap_done();
}
