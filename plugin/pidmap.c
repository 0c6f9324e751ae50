/* SPDX-License-Identifier: MIT */
#include "pidmap.h"
#include "bulk.h"

enum {
	SLOTS_MIN = 64,
	SLOTS_KEPT = 4096,  /* are never too many */
	SPARSE = 16,	    /* slots for each entry are much too many */
	SPARSE_SWEEPS = 64, /* and after so many sweeps are given back */
};

void pidmap_init(struct pidmap *m, size_t size, size_t max)
{
	*m = (struct pidmap){.size = size, .max = max};
}

void pidmap_done(struct pidmap *m)
{
	bulk_free(&m->slot, &m->cap, m->size);
	*m = (struct pidmap){0};
}

static void *slot_at(const struct pidmap *m, size_t i)
{
	return m->slot + i * m->size;
}

static uint32_t pid_at(const struct pidmap *m, size_t i)
{
	uint32_t pid;

	memcpy(&pid, slot_at(m, i), sizeof(pid));
	return pid;
}

/* Fibonacci hashing: neighbours in number are far from each other. */
static size_t home_of(const struct pidmap *m, uint32_t pid)
{
	return (size_t)(pid * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
	       (m->cap - 1);
}

/* The slot of that number, or the free one, all zeros, where it would go. */
static size_t place_of(const struct pidmap *m, uint32_t pid)
{
	size_t i = home_of(m, pid);

	while (pid_at(m, i) && pid_at(m, i) != pid)
		i = (i + 1) & (m->cap - 1);
	return i;
}

void *pidmap_find(const struct pidmap *m, uint32_t pid)
{
	size_t i;

	if (!m->n || !pid)
		return NULL;
	i = place_of(m, pid);
	return pid_at(m, i) ? slot_at(m, i) : NULL;
}

static bool resize(struct pidmap *m, size_t cap)
{
	struct pidmap new = *m;
	size_t room = 0;

	new.cap = cap;
	new.slot = NULL;
	if (bulk_reserve(&new.slot, &room, cap, m->size) < 0)
		return false;
	for (size_t i = 0; i < m->cap; i++)
		if (pid_at(m, i))
			memcpy(slot_at(&new, place_of(&new, pid_at(m, i))),
			       slot_at(m, i), m->size);
	bulk_free(&m->slot, &m->cap, m->size);
	*m = new;
	return true;
}

void *pidmap_add(struct pidmap *m, uint32_t pid)
{
	void *entry = pidmap_find(m, pid);

	if (entry)
		return entry;
	if (!pid || m->n >= m->max)
		return NULL;
	/* At most three quarters full: then a free slot is near. */
	if (m->n >= m->cap / 4 * 3 &&
	    !resize(m, MAX(2 * m->cap, (size_t)SLOTS_MIN)))
		return NULL;
	entry = slot_at(m, place_of(m, pid));
	memcpy(entry, &pid, sizeof(pid));
	m->n++;
	return entry;
}

/* Entries behind the hole that it keeps from being found move into it. */
static void remove_at(struct pidmap *m, size_t hole)
{
	size_t mask = m->cap - 1;
	size_t i = hole;

	for (;;) {
		size_t from_home;

		i = (i + 1) & mask;
		if (!pid_at(m, i))
			break;
		from_home = (i - home_of(m, pid_at(m, i))) & mask;
		if (from_home < ((i - hole) & mask))
			continue;
		memcpy(slot_at(m, hole), slot_at(m, i), m->size);
		hole = i;
	}
	memset(slot_at(m, hole), 0, m->size);
	m->n--;
}

void pidmap_remove(struct pidmap *m, void *entry)
{
	remove_at(m, (size_t)((unsigned char *)entry - m->slot) / m->size);
}

void pidmap_sweep(struct pidmap *m, pidmap_keep_fn *keep, void *arg)
{
	bool sparse = m->cap > SLOTS_KEPT && m->n < m->cap / SPARSE;

	for (size_t i = 0; m->n && i < m->cap;) {
		if (pid_at(m, i) && !keep(arg, slot_at(m, i)))
			remove_at(m, i); /* another may be here now */
		else
			i++;
	}
	m->n_sparse = sparse ? m->n_sparse + 1 : 0;
	/* Without memory it stays as it is. */
	if (m->n_sparse >= SPARSE_SWEEPS && resize(m, m->cap / SPARSE * 2))
		m->n_sparse = 0;
}
