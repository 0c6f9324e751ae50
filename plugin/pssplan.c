/* SPDX-License-Identifier: MIT */
#include "pssplan.h"

/*
 * A tick of our own clock: fine enough for an interval, and 32 bits of it are
 * eight years.
 */
#define UNIT_NS (NSEC_PER_SEC / 16)

#define NSEC_PER_USEC 1000.0

#define USUAL_TICK_NS (10 * NSEC_PER_SEC) /* until we know better */

/* Readings are spread over their interval, with some room to catch up. */
#define HASTE 1.25

static uint32_t units(uint64_t ns)
{
	return (uint32_t)MIN(ns / UNIT_NS, (uint64_t)INT32_MAX);
}

static uint32_t now_of(const struct pssplan *p)
{
	return (uint32_t)(p->clock_ns / UNIT_NS);
}

static double earned(const struct pssplan *p, uint64_t ns)
{
	return (double)ns * p->opt.budget_ppm / 1e6;
}

/*
 * What is earned in this time may be saved: in two ticks at least, so that
 * nothing is lost when one comes late.
 */
static uint64_t horizon(const struct pssplan *p)
{
	return MAX(p->opt.window_ns, 2 * p->tick_ns);
}

static void save(struct pssplan *p, double ns)
{
	p->saved_ns = MIN(p->saved_ns + ns, earned(p, horizon(p)));
}

static void repay(struct pssplan *p, double ns)
{
	p->loan_ns = MAX(p->loan_ns - ns, 0);
}

/* Half of it pays the loan back, and what cannot be saved, too. */
static void earn(struct pssplan *p, double ns)
{
	double half = MIN(ns / 2, p->loan_ns);
	double room = earned(p, horizon(p)) - p->saved_ns;

	repay(p, MAX(half, ns - room));
	save(p, ns - half);
}

static void spend(struct pssplan *p, double ns)
{
	p->saved_ns -= ns;
	if (p->saved_ns < 0) {
		p->loan_ns -= p->saved_ns;
		p->saved_ns = 0;
	}
}

/* Less was spent than was thought. */
static void refund(struct pssplan *p, double ns)
{
	double of_loan = MIN(ns, p->loan_ns);

	repay(p, of_loan);
	save(p, ns - of_loan);
}

void pssplan_init(struct pssplan *p, const struct pssplan_options *o)
{
	*p = (struct pssplan){
	    .opt = {PSS_BUDGET_PPM, PSSPLAN_WINDOW_NS},
	    .tick_ns = USUAL_TICK_NS,
	};
	if (o)
		p->opt = *o;
	psscost_init(&p->cost);
	save(p, earned(p, p->opt.window_ns));
}

void pssplan_done(struct pssplan *p)
{
	free(p->heap);
	*p = (struct pssplan){0};
}

void pssplan_begin(struct pssplan *p, uint64_t mono_ns)
{
	uint64_t dt =
	    p->begun && mono_ns > p->last_ns ? mono_ns - p->last_ns : 0;

	p->begun = true;
	p->last_ns = mono_ns;
	p->clock_ns += dt;
	/* One step that is out of the ordinary is no new interval. */
	if (dt) {
		p->tick_ns = p->dt_ns ? MIN(dt, p->dt_ns) : dt;
		p->dt_ns = dt;
	}
	p->span_ns = MIN(dt, horizon(p));
	earn(p, earned(p, p->span_ns));
	p->n = 0;
	p->ordered = false;
	p->wanted = 0;
	p->counts = (struct pssplan_counts){0};
}

/*
 * In microseconds. The last reading of the process tells most; only the part
 * of its cost that goes with RSS moves with it.
 */
static double predict(const struct pssplan *p, const struct pss_reading *r,
		      double rss_kib)
{
	double usual = psscost_predict(&p->cost, rss_kib);

	if (r->cost_us <= 0)
		return usual;
	if (!r->have)
		return (double)r->cost_us;
	return (double)r->cost_us * usual /
	       psscost_predict(&p->cost, (double)r->rss);
}

/* `waited`: since it was asked for, or since it is known. */
static bool is_due(const struct pssplan *p, const struct pss_reading *r,
		   const struct pss_facts *f, const struct pss_policy *policy,
		   uint32_t waited)
{
	uint32_t every = units(policy->every_ns);
	uint32_t max_age = MAX(every, units(policy->max_age_ns));

	if (!(r->flags & PSS_TRIED) || r->outcome == PSS_FAILED)
		return true;
	/* The caller's ticks are not that exact. */
	waited += MIN(units(p->tick_ns), every) / 16;
	if (waited >= max_age)
		return true;
	if (waited < every || r->outcome == PSS_REFUSED)
		return false;
	if (r->outcome == PSS_EMPTY)
		return f->now.rss > 0;
	return !r->have || r->flags & PSS_RAN;
}

/*
 * Who waited for longer than he should comes before all others: for max_age,
 * or for two intervals without any reading; the latest first. Others come by
 * the change of their RSS, which is all of it for those without a reading.
 */
static uint64_t rank(const struct pss_reading *r,
		     const struct pss_policy *policy, uint32_t waited,
		     float rss_kib)
{
	bool first = !r->have && r->outcome != PSS_REFUSED;
	uint64_t limit_ns = first ? 2 * policy->every_ns : policy->max_age_ns;
	uint32_t limit = MAX(units(limit_ns), 1u);
	float by = (float)waited / (float)limit;
	uint64_t late = by >= 1;
	uint32_t bits;

	if (!late)
		by = r->have ? __builtin_fabsf(rss_kib - r->rss) : rss_kib;
	/* Floats that are not negative are in the order of their bits. */
	memcpy(&bits, &by, sizeof(bits));
	return late << 63 | (uint64_t)bits << 31 | MIN(waited, (1u << 31) - 1);
}

void pssplan_offer(struct pssplan *p, struct pss_reading *r, uint32_t id,
		   const struct pss_facts *f, const struct pss_policy *policy)
{
	struct pss_ask ask = {.reading = r, .id = id};
	uint32_t now = now_of(p), waited;

	if (!(r->flags & PSS_SEEN)) {
		r->flags |= PSS_SEEN;
		r->asked = now;
	}
	if (f->ran)
		r->flags |= PSS_RAN;
	r->flags &= (uint8_t)~PSS_TOO_LARGE;
	if (r->have)
		p->counts.oldest_ns =
		    MAX(p->counts.oldest_ns, (now - r->taken) * UNIT_NS);
	p->counts.n_known += r->have || r->outcome == PSS_EMPTY;
	p->counts.n_refused += r->outcome == PSS_REFUSED;
	if (f->now.rss > policy->max_rss && !policy->large) {
		r->flags |= PSS_TOO_LARGE;
		p->counts.n_large++;
		return;
	}
	p->counts.n_untried +=
	    r->outcome == PSS_UNTRIED && f->age_ns >= p->tick_ns;
	if (r->cost_us > 0)
		p->wanted += (double)r->cost_us * NSEC_PER_USEC /
			     (double)MAX(policy->every_ns, UNIT_NS);
	waited = now - r->asked;
	if (r->outcome == PSS_UNTRIED || r->outcome == PSS_FAILED)
		p->counts.unread_ns =
		    MAX(p->counts.unread_ns, waited * UNIT_NS);
	if (r->flags & PSS_ASKED || f->age_ns < p->tick_ns ||
	    !is_due(p, r, f, policy, waited) ||
	    array_reserve(&p->heap, &p->cap, p->n + 1, sizeof(ask)) < 0)
		return;
	ask.rss = (float)((double)f->now.rss / 1024);
	ask.swap = f->now.swap == PSS_UNKNOWN
		       ? -1
		       : (float)((double)f->now.swap / 1024);
	ask.cost_us = (float)predict(p, r, (double)ask.rss);
	ask.rank = rank(r, policy, waited, ask.rss);
	p->heap[p->n++] = ask;
	p->counts.n_due++;
}

/* Lets the ask at i sink to where none below it comes before it. */
static void sink(struct pssplan *p, size_t i)
{
	struct pss_ask ask = p->heap[i];

	for (;;) {
		size_t below = 2 * i + 1;

		if (below + 1 < p->n &&
		    p->heap[below + 1].rank > p->heap[below].rank)
			below++;
		if (below >= p->n || p->heap[below].rank <= ask.rank)
			break;
		p->heap[i] = p->heap[below];
		i = below;
	}
	p->heap[i] = ask;
}

static void order(struct pssplan *p)
{
	for (size_t i = p->n / 2; i-- > 0;)
		sink(p, i);
	p->share_ns = p->wanted * (double)p->span_ns * HASTE;
	p->ordered = true;
}

static struct pss_ask take_first(struct pssplan *p)
{
	struct pss_ask ask = p->heap[0];

	p->heap[0] = p->heap[--p->n];
	if (p->n)
		sink(p, 0);
	return ask;
}

bool pssplan_next(struct pssplan *p, struct pss_ask *ret)
{
	if (!p->ordered)
		order(p);
	while (p->n && p->opt.budget_ppm &&
	       (p->saved_ns > 0 || p->loan_ns <= 0)) {
		struct pss_ask ask = take_first(p);
		struct pss_reading *r = ask.reading;
		double ns = (double)ask.cost_us * NSEC_PER_USEC;

		/* Smaller ones may still do. */
		if ((ns > p->saved_ns && p->loan_ns > 0) ||
		    (r->cost_us > 0 && p->share_ns <= 0))
			continue;
		spend(p, ns);
		if (r->cost_us > 0)
			p->share_ns -= ns;
		r->flags |= PSS_TRIED | PSS_ASKED;
		r->flags &= (uint8_t) ~(PSS_RAN | PSS_OUTDATED);
		r->asked = now_of(p);
		p->counts.n_asked++;
		*ret = ask;
		return true;
	}
	return false;
}

static void take(struct pss_reading *r, const struct pss_ask *ask,
		 const struct pss_answer *a, uint32_t now)
{
	for (unsigned i = 0; i < PSS_N_VALUES; i++)
		r->kib[i] = (float)((double)a->value[i] / 1024);
	r->have = a->have;
	r->rss = ask->rss;
	r->swap = ask->swap;
	r->taken = now;
}

void pssplan_account(struct pssplan *p, struct pss_reading *r,
		     const struct pss_ask *ask, const struct pss_answer *a)
{
	double us = (double)a->cost_ns / NSEC_PER_USEC;

	refund(p, (double)ask->cost_us * NSEC_PER_USEC);
	spend(p, (double)a->cost_ns);
	p->totals.cost_ns += a->cost_ns;
	if (a->outcome == PSS_READ) {
		psscost_learn(&p->cost, (double)ask->rss, us);
		p->totals.n_read++;
		p->totals.read_kib += (double)ask->rss;
	}
	if (!r)
		return;
	r->flags &= (uint8_t)~PSS_ASKED;
	if (r->flags & PSS_OUTDATED)
		return;
	r->outcome = (uint8_t)a->outcome;
	if (a->outcome == PSS_FAILED)
		return;
	r->cost_us = (float)MAX(us, 1);
	if (a->outcome == PSS_READ)
		take(r, ask, a, now_of(p));
	else if (a->outcome == PSS_EMPTY)
		r->have = 0;
}
