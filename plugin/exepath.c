/* SPDX-License-Identifier: MIT */
/*
 * Two tables of half the size: when the young one is full, the old one is
 * emptied and they change places. What is found in the old one moves to the
 * young one, so what is in use stays.
 */
#include "exepath.h"

#include <limits.h>

enum {
	HALF = EXEPATH_MAX / 2,
	SLOTS = EXEPATH_MAX, /* of a half: at most half full */
};

struct slot {
	uint64_t dev, inode;
	char *path; /* NULL: free */
};

struct exepath_half {
	size_t n;
	struct slot slot[SLOTS];
};

int exepath_init(struct exepath *x)
{
	x->young = calloc(1, sizeof(*x->young));
	x->old = calloc(1, sizeof(*x->old));
	return x->young && x->old ? 0 : -ENOMEM;
}

static void empty(struct exepath_half *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		free(h->slot[i].path);
	memset(h, 0, sizeof(*h));
}

void exepath_done(struct exepath *x)
{
	empty(x->young);
	empty(x->old);
	free(x->young);
	free(x->old);
	*x = (struct exepath){0};
}

/* By inode alone, so that all devices of one are beside each other. */
static size_t home_of(uint64_t inode)
{
	return (size_t)(inode * UINT64_C(0x9e3779b97f4a7c15) >> 32) % SLOTS;
}

static bool is_name_of(const char *path, const char *comm)
{
	const char *base = strrchr(path, '/');

	return strncmp(base ? base + 1 : path, comm, EXEPATH_COMM) == 0;
}

/* The slot of that file, or the free one where it would go. */
static struct slot *slot_of(struct exepath_half *h, uint64_t dev,
			    uint64_t inode)
{
	size_t i = home_of(inode);

	while (h->slot[i].path &&
	       (h->slot[i].dev != dev || h->slot[i].inode != inode))
		i = (i + 1) % SLOTS;
	return &h->slot[i];
}

/* One of any device with that inode and that name, or NULL. */
static struct slot *like(struct exepath_half *h, uint64_t inode,
			 const char *comm)
{
	for (size_t i = home_of(inode); h->slot[i].path; i = (i + 1) % SLOTS)
		if (h->slot[i].inode == inode &&
		    is_name_of(h->slot[i].path, comm))
			return &h->slot[i];
	return NULL;
}

/* Takes the path; it must not be there yet. */
static struct slot *add(struct exepath *x, uint64_t dev, uint64_t inode,
			char *path)
{
	struct slot *s;

	if (x->young->n == HALF) {
		struct exepath_half *young = x->young;

		empty(x->old);
		x->young = x->old;
		x->old = young;
	}
	s = slot_of(x->young, dev, inode);
	*s = (struct slot){dev, inode, path};
	x->young->n++;
	return s;
}

int exepath_learn(struct exepath *x, uint64_t dev, uint64_t inode,
		  struct str path)
{
	struct slot *s = slot_of(x->young, dev, inode);
	char *copy;

	if (path.n >= PATH_MAX)
		return 0;
	if (s->path && str_eq(str_of(s->path), path))
		return 0;
	copy = strndup(path.s, path.n);
	if (!copy)
		return -ENOMEM;
	if (s->path) {
		free(s->path);
		s->path = copy;
	} else {
		add(x, dev, inode, copy);
	}
	return 0;
}

/* To the young half; it stays if there is no memory, and goes with its half. */
static const char *keep(struct exepath *x, const struct slot *s)
{
	char *path = strdup(s->path);

	return path ? add(x, s->dev, s->inode, path)->path : s->path;
}

const char *exepath_find(struct exepath *x, uint64_t dev, uint64_t inode,
			 const char *comm)
{
	struct slot *s = slot_of(x->young, dev, inode);

	if (s->path)
		return s->path;
	s = slot_of(x->old, dev, inode);
	if (s->path)
		return keep(x, s);
	s = like(x->young, inode, comm);
	if (s)
		return s->path;
	s = like(x->old, inode, comm);
	/* It may have become another one's since. */
	if (!s || slot_of(x->young, s->dev, inode)->path)
		return NULL;
	return keep(x, s);
}
