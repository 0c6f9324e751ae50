/* SPDX-License-Identifier: MIT */
/*
 * Who is read next, so that PSS costs no more than a share of one CPU. It has
 * no clock, reads nothing and knows no process but by a number of the
 * caller's: each tick every process is offered, then asks are taken as long
 * as there are any, and what each came to is accounted later.
 *
 *	pssplan_begin(), pssplan_offer() for each process,
 *	while (pssplan_next()) read it in a lane
 *	pssplan_account() for each that came back, in this tick or a later one
 *
 * CPU time is earned by the clock and spent in advance, as predicted; the
 * account puts it right. What is earned in `window`, or in two ticks if that
 * is more, may be saved. An ask that costs more than what is saved takes the
 * rest as a loan, one at a time; while there is one, half of what is earned
 * pays it back and half serves the others.
 *
 * Invariant: in any time T no more is spent than what T earns, what was saved
 * and one loan; what was predicted too low is paid back before the next loan.
 */
#pragma once

#include "base.h"
#include "pss.h"
#include "psscost.h"

struct pssplan_options {
	uint32_t budget_ppm; /* of one CPU; 0: read nothing */
	uint64_t window_ns;
};

#define PSSPLAN_WINDOW_NS (10 * NSEC_PER_SEC)

/* What the tick knows of a process. */
struct pss_facts {
	struct pss_now now;
	uint64_t age_ns; /* since it was started */
	bool ran;	 /* its clock moved since the last tick */
};

/* One process to be read. To be kept until it is accounted. */
struct pss_ask {
	uint64_t rank; /* for the planner only, like the floats */
	struct pss_reading *reading;
	uint32_t id; /* as it was offered */
	float rss, swap, cost_us;
};

/* What came of it. */
struct pss_answer {
	enum pss_outcome outcome;
	uint8_t have;		      /* PSS_BIT()s; with PSS_READ only */
	uint64_t value[PSS_N_VALUES]; /* bytes, or a number */
	uint64_t cost_ns;	      /* CPU time of the thread that read */
};

/* Of the processes that were offered in this tick. */
struct pssplan_counts {
	size_t n_large;	  /* not read because of max_rss */
	size_t n_refused; /* last attempt was refused */
	size_t n_known;	  /* stand for what was read */
	size_t n_untried; /* no attempt came to an end yet, but for newborns */
	size_t n_due;	  /* to be read, if the budget allows */
	size_t n_asked;	  /* of them: handed out */
	uint64_t oldest_ns; /* age of the oldest reading */
	uint64_t unread_ns; /* longest that one waits for its first reading */
};

/* Since the beginning. */
struct pssplan_totals {
	uint64_t n_read;
	uint64_t cost_ns; /* of all attempts */
	double read_kib;  /* RSS of those that were read */
};

struct pssplan {
	struct pssplan_options opt;
	struct psscost cost;
	bool begun, ordered;
	uint64_t last_ns;	  /* as the caller said */
	uint64_t dt_ns;		  /* last step of the caller's clock */
	uint64_t tick_ns;	  /* the usual step */
	uint64_t span_ns;	  /* what this tick earns for */
	uint64_t clock_ns;	  /* our own clock: it never goes back */
	double saved_ns, loan_ns; /* CPU time */
	double wanted;	      /* ns of CPU time per ns, for those read before */
	double share_ns;      /* what may be read again in this tick */
	struct pss_ask *heap; /* the first is read first */
	size_t n, cap;
	struct pssplan_counts counts;
	struct pssplan_totals totals;
};

/* Nothing is allocated yet. `o` NULL: defaults. */
void pssplan_init(struct pssplan *p, const struct pssplan_options *o);
void pssplan_done(struct pssplan *p);

/* A tick begins; CLOCK_MONOTONIC. What was offered before is forgotten. */
void pssplan_begin(struct pssplan *p, uint64_t mono_ns);

/*
 * Tells of one process, to be read or not. Leave out kernel threads, and one
 * that hangs until it runs again. `r` has to stay where it is until the last
 * pssplan_next() of the tick.
 */
void pssplan_offer(struct pssplan *p, struct pss_reading *r, uint32_t id,
		   const struct pss_facts *facts,
		   const struct pss_policy *policy);

/* The next one to be read; false if there is none in this tick. */
bool pssplan_next(struct pssplan *p, struct pss_ask *ret);

/*
 * What came of an ask. `r` NULL: the process ended. If an ask cannot be passed
 * on, account it as PSS_FAILED without cost and take no more in this tick. As
 * long as none comes back, the process is not asked for again, and what was
 * predicted stays spent.
 */
void pssplan_account(struct pssplan *p, struct pss_reading *r,
		     const struct pss_ask *ask,
		     const struct pss_answer *answer);
