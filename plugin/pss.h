/* SPDX-License-Identifier: MIT */
/*
 * One process's last reading of its PSS, what it stands for until the next
 * one, and the sum over a group some of whose members were not read. It does
 * not know who is read when (pssplan.h), nor how (smaps.h).
 *
 * Between readings a value moves with RSS, swap_pss with swap. A member rests
 * on a reading if it has one of its present program, however old it is and
 * whether or not it could be read anew; or if it was found to have no memory
 * and has no RSS. Others, as long as a reading is to be expected, count with
 * their RSS times the ratio of the members that rest on one; without what they
 * have from a fork, for that counts with the parent already. One that was
 * never read because it is too large or because that is not allowed is not in
 * the sum. Invariant: without a member that rests on a reading there is no
 * value, and no member is taken for 0 because it could not be read.
 */
#pragma once

#include "base.h"

enum pss_value {
	PSS_PSS,
	PSS_USS,
	PSS_SWAP_PSS,
	PSS_MAPS, /* number of mappings; those above are bytes */
	PSS_N_VALUES,
};

#define PSS_BIT(value) ((uint8_t)(1u << (value)))

/* What an attempt came to. */
enum pss_outcome {
	PSS_UNTRIED, /* or voided */
	PSS_READ,
	PSS_REFUSED, /* not allowed, or nothing that can be used: seldom tried
		      */
	PSS_EMPTY,   /* it has no memory */
	PSS_FAILED,  /* for our own want, as EMFILE: tried in the next tick */
};

enum pss_flag {
	PSS_SEEN = 1 << 0,     /* `asked` is since when it is known */
	PSS_TRIED = 1 << 1,    /* `asked` is when it was asked for last */
	PSS_ASKED = 1 << 2,    /* an answer is on its way */
	PSS_OUTDATED = 1 << 3, /* and will be of an earlier program */
	PSS_RAN = 1 << 4,      /* since it was asked for */
	PSS_TOO_LARGE = 1 << 5,
};

/*
 * All zeros: nothing known. Numbers of KiB are floats: exact up to 16 GiB, and
 * beyond that to 1 in 16 million. So is the number of mappings, in 1024s.
 */
struct pss_reading {
	float kib[PSS_N_VALUES];
	float rss, swap;       /* KiB, when it was read; swap < 0: unknown */
	float cost_us;	       /* CPU time of the last attempt; 0: none */
	uint32_t asked, taken; /* by the planner's clock */
	uint8_t have;	       /* PSS_BIT()s */
	uint8_t outcome;       /* enum pss_outcome, of the last attempt */
	uint8_t flags;	       /* enum pss_flag */
};

_Static_assert(sizeof(struct pss_reading) <= 48, "one for each process");

#define PSS_UNKNOWN UINT64_MAX

/* What is known of a process now, in bytes. */
struct pss_now {
	uint64_t rss;
	uint64_t swap;			    /* PSS_UNKNOWN if it is not read */
	uint64_t rss_of_fork, swap_of_fork; /* that it has of its parent */
};

/* What the rules say of a group's members. */
struct pss_policy {
	uint64_t every_ns;   /* at most one reading in this time */
	uint64_t max_age_ns; /* then it is read whether it ran or not */
	uint64_t max_rss;    /* bytes; above it it is not read, */
	bool large;	     /* unless a rule asks for large ones, too */
};

#define PSS_EVERY_NS (60 * NSEC_PER_SEC)
#define PSS_MAX_AGE_NS (600 * NSEC_PER_SEC)
#define PSS_MAX_RSS (UINT64_C(2) << 30)

enum {
	PSS_BUDGET_PPM = 5000, /* by default: 0.5 % */
};

/* It called exec: what was read, or is on its way, is of another program. */
void pss_void(struct pss_reading *r);

/* What the value stands at; false if it rests on no reading. */
bool pss_estimate(const struct pss_reading *r, enum pss_value value,
		  const struct pss_now *now, double *ret);

/* Of a group; all zeros to begin with. */
struct pss_sum {
	struct pss_part {
		uint64_t n;  /* members that rest on a reading */
		double sum;  /* of what they stand at */
		double base; /* their RSS; of swap_pss: swap; of maps: n */
		double rest; /* the same of those that wait for a reading */
	} part[PSS_N_VALUES];
};

/* Adds one member; r NULL: one that nobody asks for. */
void pss_sum_add(struct pss_sum *s, const struct pss_reading *r,
		 const struct pss_now *now);

/* Members that rest on a reading. */
static inline uint64_t pss_sum_covered(const struct pss_sum *s)
{
	return s->part[PSS_PSS].n;
}

/* False if there is no value. */
bool pss_sum_value(const struct pss_sum *s, enum pss_value value, double *ret);
