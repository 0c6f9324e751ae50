/* SPDX-License-Identifier: MIT */
/*
 * Who inherits a group: a process that no rule takes joins the first of its
 * ancestors that holds a group by a match of its own and hands it on that far.
 * Pure decision, one ancestor at a time; the walk is the caller's, who knows
 * where ancestors are kept.
 *
 * Invariant: an ancestor that inherited stands for whom it inherited from, so
 * that membership outlives those in between.
 */
#pragma once

#include "base.h"
#include "rule.h"

#include <sys/types.h>

enum {
	INHERIT_STEPS_MAX = 64, /* of a walk up */
};

/* How a process came to its group, in one view. */
enum heritage_how {
	HERITAGE_NONE,	    /* not decided yet */
	HERITAGE_MATCHED,   /* a rule took it */
	HERITAGE_INHERITED, /* an ancestor's rule did */
	HERITAGE_OTHER,	    /* nobody took it */
	HERITAGE_DROPPED,   /* a rule said so, of it or of an ancestor */
};

struct heritage {
	uint8_t how;	  /* enum heritage_how */
	uint8_t children; /* how many generations the rule hands on to */
	uint8_t depth;	  /* generations below the process that matched */
	/* Of one that inherited: its parent then, and from whom it was. */
	pid_t ppid, from;
	uint32_t from_start; /* its lower half tells two of one number apart */
};

enum inherit_step {
	INHERIT_GO_ON, /* ask its parent */
	INHERIT_TAKE,  /* its group */
	INHERIT_DROP,
	INHERIT_WAIT, /* it is not decided yet */
};

/* What an ancestor `distance` generations up means; 1 is the parent. */
static inline enum inherit_step inherit_from(const struct heritage *h,
					     unsigned distance)
{
	switch ((enum heritage_how)h->how) {
	case HERITAGE_NONE:
		return INHERIT_WAIT;
	case HERITAGE_DROPPED:
		return INHERIT_DROP;
	case HERITAGE_MATCHED:
	case HERITAGE_INHERITED:
		if (h->children == CHILDREN_ALL ||
		    h->depth + distance <= h->children)
			return INHERIT_TAKE;
		return INHERIT_GO_ON;
	case HERITAGE_OTHER:
		break;
	}
	return INHERIT_GO_ON;
}

/* That of who takes it. */
static inline struct heritage inherit_take(const struct heritage *from,
					   unsigned distance)
{
	unsigned depth = from->depth + distance;

	return (struct heritage){
	    .how = HERITAGE_INHERITED,
	    .children = from->children,
	    .depth = (uint8_t)MIN(depth, (unsigned)CHILDREN_ALL),
	};
}
