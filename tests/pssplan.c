/* SPDX-License-Identifier: MIT */
/*
 * Who is read when: single rules, and then hosts of thousands of processes in
 * virtual time, with true costs that the planner does not know.
 */
#include "pssplan.h"
#include "tap.h"

#include <math.h>

#define SEC NSEC_PER_SEC
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define DAY (86400 * SEC)
#define BUDGET 0.005

static const struct pss_policy usual = {
    .every_ns = PSS_EVERY_NS,
    .max_age_ns = PSS_MAX_AGE_NS,
    .max_rss = PSS_MAX_RSS,
};

/* One process and what became of it. */
struct proc {
	struct pss_reading r;
	const struct pss_policy *policy;
	uint64_t rss, base_rss;
	double fixed_us, gib_us;    /* true cost; 0: the usual one */
	uint64_t born_ns, first_ns; /* first_ns: of the first reading */
	uint64_t read_ns;	    /* last attempt */
	uint64_t worst_ns;	    /* longest time without one */
	double busy;		    /* how likely it is to run in a tick */
	enum pss_outcome outcome;   /* of an attempt; PSS_UNTRIED: PSS_READ */
	unsigned n_read;
	bool ends; /* never comes back */
};

struct tick {
	uint64_t at_ns;
	double spent_ns;
	unsigned n_asked;
};

enum {
	TICKS_MAX = 4000,
	LATE_MAX = 10000,
};

struct host {
	struct pssplan plan;
	struct proc *proc;
	size_t n, cap;
	uint64_t now_ns, begin_ns;
	unsigned seed;
	unsigned delay; /* ticks until an answer is accounted */
	struct tick tick[TICKS_MAX];
	size_t n_ticks;
	struct late {
		struct pss_ask ask;
		struct pss_answer answer;
		size_t tick;
	} late[LATE_MAX];
	size_t n_late;
	double worst_ns; /* dearest reading */
	bool too_soon;	 /* something was read twice within `every` */
};

static double chance(struct host *h)
{
	return rand_r(&h->seed) / (RAND_MAX + 1.0);
}

static struct host *new_host(const struct pssplan_options *o)
{
	struct host *h = calloc(1, sizeof(*h));

	pssplan_init(&h->plan, o);
	h->begin_ns = h->now_ns = 10 * DAY;
	h->seed = 1;
	return h;
}

static void free_host(struct host *h)
{
	pssplan_done(&h->plan);
	free(h->proc);
	free(h);
}

/* Not while asks are on their way: the processes may move. */
static struct proc *add(struct host *h, uint64_t rss, uint64_t age_ns)
{
	struct proc *p;

	if (array_reserve(&h->proc, &h->cap, h->n + 1, sizeof(*p)) < 0)
		abort();
	p = &h->proc[h->n++];
	*p = (struct proc){
	    .policy = &usual,
	    .rss = rss,
	    .base_rss = rss,
	    .born_ns = h->now_ns - age_ns,
	    .read_ns = h->now_ns,
	};
	return p;
}

static double true_cost_ns(const struct proc *p)
{
	double fixed = p->fixed_us > 0 ? p->fixed_us : 30;
	double gib = p->gib_us > 0 ? p->gib_us : 16000;

	return 1000 * (fixed + gib * (double)p->rss / (double)GIB);
}

static void account(struct host *h, const struct late *l)
{
	struct proc *p = &h->proc[l->ask.id];

	pssplan_account(&h->plan, p->ends ? NULL : &p->r, &l->ask, &l->answer);
	if (l->answer.outcome == PSS_READ && !p->first_ns)
		p->first_ns = h->now_ns;
}

static void do_ask(struct host *h, const struct pss_ask *ask)
{
	struct proc *p = &h->proc[ask->id];
	struct tick *t = &h->tick[h->n_ticks - 1];
	struct late l = {.ask = *ask, .tick = h->n_ticks};
	uint64_t pss = p->rss / 2;
	/* As far as ticks of 10 s are exact. */
	uint64_t least = p->policy->every_ns - p->policy->every_ns / 64;

	if (p->n_read && h->now_ns - p->read_ns < least)
		h->too_soon = true;
	p->worst_ns = MAX(p->worst_ns, h->now_ns - p->read_ns);
	p->read_ns = h->now_ns;
	p->n_read++;
	l.answer = (struct pss_answer){
	    .outcome = p->outcome ? p->outcome : PSS_READ,
	    .have = PSS_BIT(PSS_N_VALUES) - 1,
	    .value = {pss, pss, 0},
	    .cost_ns = (uint64_t)true_cost_ns(p),
	};
	if (p->outcome > PSS_READ)
		l.answer.cost_ns = 5000;
	t->spent_ns += (double)l.answer.cost_ns;
	t->n_asked++;
	h->worst_ns = MAX(h->worst_ns, (double)l.answer.cost_ns);
	if (h->delay && h->n_late < LATE_MAX)
		h->late[h->n_late++] = l;
	else
		account(h, &l);
}

static void take_late(struct host *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_late; i++) {
		if (h->late[i].tick + h->delay <= h->n_ticks)
			account(h, &h->late[i]);
		else
			h->late[n++] = h->late[i];
	}
	h->n_late = n;
}

static void begin(struct host *h, uint64_t step_ns)
{
	h->now_ns += step_ns;
	if (h->n_ticks == TICKS_MAX)
		abort();
	h->tick[h->n_ticks++] = (struct tick){.at_ns = h->now_ns};
	take_late(h);
	pssplan_begin(&h->plan, h->now_ns);
}

static void offer(struct host *h, size_t i, bool ran)
{
	struct proc *p = &h->proc[i];
	struct pss_facts f = {
	    .now = {.rss = p->rss, .swap = PSS_UNKNOWN},
	    .age_ns = h->now_ns - p->born_ns,
	    .ran = ran,
	};

	if (!p->ends)
		pssplan_offer(&h->plan, &p->r, (uint32_t)i, &f, p->policy);
}

static unsigned ask_all(struct host *h)
{
	unsigned n = 0;
	struct pss_ask ask;

	for (; pssplan_next(&h->plan, &ask); n++)
		do_ask(h, &ask);
	return n;
}

/* One tick in which those run that are busy. Returns how many were read. */
static unsigned tick(struct host *h, uint64_t step_ns)
{
	begin(h, step_ns);
	for (size_t i = 0; i < h->n; i++) {
		struct proc *p = &h->proc[i];
		bool ran = p->busy > 0 && chance(h) < p->busy;

		if (ran && p->busy < 1)
			p->rss = (uint64_t)((0.9 + 0.2 * chance(h)) *
					    (double)p->base_rss);
		offer(h, i, ran);
	}
	return ask_all(h);
}

static unsigned run(struct host *h, uint64_t step_ns, uint64_t for_ns)
{
	unsigned n = 0;

	for (uint64_t t = 0; t < for_ns; t += step_ns)
		n += tick(h, step_ns);
	return n;
}

static double spent_ns(const struct host *h)
{
	double sum = 0;

	for (size_t i = 0; i < h->n_ticks; i++)
		sum += h->tick[i].spent_ns;
	return sum;
}

/*
 * No minute costs more than it may, beyond what was saved and what is owed,
 * and neither does the whole of it.
 */
static void check_budget(const struct host *h, double over_ns)
{
	double budget = BUDGET, whole, worst = 0;
	double saved = (double)MAX(h->plan.opt.window_ns, 2 * h->plan.tick_ns);

	for (size_t i = 0; i < h->n_ticks; i++) {
		double sum = 0;

		for (size_t j = i; j < h->n_ticks; j++) {
			if (h->tick[j].at_ns >= h->tick[i].at_ns + 60 * SEC)
				break;
			sum += h->tick[j].spent_ns;
		}
		worst = MAX(worst, sum);
	}
	if (worst > budget * (60e9 + saved) + over_ns)
		tap_fail(__FILE__, __LINE__, "a minute cost %.0f ms",
			 worst / 1e6);
	whole = budget * ((double)(h->now_ns - h->begin_ns) + saved) + over_ns;
	if (spent_ns(h) > whole)
		tap_fail(__FILE__, __LINE__, "all of it cost %.0f ms, not %.0f",
			 spent_ns(h) / 1e6, whole / 1e6);
}

/* Longest time without a reading of those that are there since the start. */
static double worst_age(const struct host *h, size_t from, size_t to)
{
	uint64_t worst = 0;

	for (size_t i = from; i < to; i++) {
		const struct proc *p = &h->proc[i];

		worst = MAX(worst, p->worst_ns);
		worst = MAX(worst, h->now_ns - p->read_ns);
	}
	return (double)worst / 1e9;
}

/* Single rules. */

static void one_tick_old(void)
{
	struct host *h = new_host(NULL);

	add(h, 10 * MIB, 9 * SEC);
	add(h, 10 * MIB, 3600 * SEC);
	check_int(tick(h, 0), 1);
	check_int(h->proc[1].n_read, 1);
	check_int(tick(h, 20 * SEC), 1);
	check_int(h->proc[0].n_read, 1);
	h->now_ns += 15 * SEC;
	add(h, 10 * MIB, 0);
	h->now_ns -= 15 * SEC;
	check_int(tick(h, 20 * SEC), 0);
	check_int(tick(h, 20 * SEC), 1);
	check_int(h->proc[2].n_read, 1);
	free_host(h);
}

static void once_in_interval(void)
{
	struct host *busy = new_host(NULL), *idle = new_host(NULL);

	add(busy, 10 * MIB, 3600 * SEC)->busy = 1;
	add(idle, 10 * MIB, 3600 * SEC);
	for (unsigned i = 0; i <= 60; i++) {
		/* A few ms less are no other interval. */
		uint64_t step = 10 * SEC - 2 * NSEC_PER_MSEC;

		tick(busy, i ? step : 0);
		check_int(busy->proc[0].n_read, i / 6 + 1);
		tick(idle, i ? step : 0);
		check_int(idle->proc[0].n_read, i < 60 ? 1 : 2);
	}
	/* That it ran once is remembered. */
	idle->proc[0].busy = 1;
	check_int(tick(idle, 10 * SEC), 0);
	idle->proc[0].busy = 0;
	check_int(run(idle, 10 * SEC, 40 * SEC), 0);
	check_int(tick(idle, 10 * SEC), 1);
	check_int(run(idle, 10 * SEC, 590 * SEC), 0);
	check_int(tick(idle, 10 * SEC), 1);
	free_host(busy);
	free_host(idle);
}

static void dearest_first(void)
{
	static const uint64_t rss[] = {30, 10, 50, 20, 40};
	static const uint64_t then[] = {31, 60, 20, 20, 40};
	struct host *h = new_host(NULL);
	struct pss_ask ask;

	run(h, 60 * SEC, 300 * SEC);
	for (size_t i = 0; i < 5; i++)
		add(h, rss[i] * MIB, 3600 * SEC)->busy = 1;
	begin(h, 0);
	for (size_t i = 0; i < 5; i++)
		offer(h, i, true);
	for (unsigned i = 0; i < 5; i++) {
		check(pssplan_next(&h->plan, &ask));
		check_int(ask.id, ((unsigned[]){2, 4, 0, 3, 1})[i]);
		do_ask(h, &ask);
	}
	check(!pssplan_next(&h->plan, &ask));
	/* By change; and somebody new is all change. */
	for (size_t i = 0; i < 5; i++)
		h->proc[i].rss = then[i] * MIB;
	add(h, 25 * MIB, 3600 * SEC);
	begin(h, 60 * SEC);
	for (size_t i = 0; i < 6; i++)
		offer(h, i, true);
	for (unsigned i = 0; i < 4; i++) {
		check(pssplan_next(&h->plan, &ask));
		check_int(ask.id, ((unsigned[]){1, 2, 5, 0})[i]);
		do_ask(h, &ask);
	}
	free_host(h);
}

static void late_first(void)
{
	struct host *h = new_host(NULL);
	struct pss_ask ask;

	for (size_t i = 0; i < 4; i++) {
		add(h, 10 * MIB, 3600 * SEC);
		tick(h, 10 * SEC);
	}
	h->proc[2].rss = 200 * MIB;
	begin(h, 575 * SEC);
	for (size_t i = 4; i-- > 0;)
		offer(h, i, true);
	/* 0 and 1 were read 605 and 595 s ago. */
	check(pssplan_next(&h->plan, &ask));
	check_int(ask.id, 0);
	do_ask(h, &ask);
	check(pssplan_next(&h->plan, &ask));
	check_int(ask.id, 2);
	do_ask(h, &ask);
	begin(h, 30 * SEC);
	for (size_t i = 0; i < 4; i++)
		offer(h, i, true);
	for (unsigned i = 1; i <= 3; i += 2) {
		check(pssplan_next(&h->plan, &ask));
		check_int(ask.id, i);
		do_ask(h, &ask);
	}
	free_host(h);
}

static void new_one_late(void)
{
	struct host *h = new_host(NULL);
	struct pss_ask ask;

	add(h, 100 * MIB, 3600 * SEC);
	tick(h, 0);
	add(h, MIB, 3600 * SEC);
	h->proc[0].rss = 200 * MIB;
	for (unsigned i = 0; i <= 12; i++) {
		begin(h, 10 * SEC);
		offer(h, 0, true);
		offer(h, 1, true);
		if (i < 11)
			continue;
		check(pssplan_next(&h->plan, &ask));
		check_int(ask.id, i < 12 ? 0 : 1);
		pssplan_account(&h->plan, ask.reading, &ask,
				&(struct pss_answer){.outcome = PSS_FAILED});
	}
	free_host(h);
}

static void large_ones(void)
{
	struct pss_policy asked = usual;
	struct host *h = new_host(NULL);

	asked.large = true;
	add(h, 2 * GIB, 3600 * SEC);
	add(h, 2 * GIB + 4096, 3600 * SEC);
	add(h, 3 * GIB, 3600 * SEC)->policy = &asked;
	for (size_t i = 0; i < 3; i++)
		h->proc[i].busy = 1;
	run(h, 10 * SEC, 1200 * SEC);
	check(h->proc[0].n_read >= 10);
	check_int(h->proc[1].n_read, 0);
	check(h->proc[1].r.flags & PSS_TOO_LARGE);
	check(h->proc[2].n_read >= 10);
	check_int(h->plan.counts.n_large, 1);
	h->proc[1].rss = GIB;
	run(h, 10 * SEC, 120 * SEC);
	check(h->proc[1].n_read >= 1);
	check(!(h->proc[1].r.flags & PSS_TOO_LARGE));
	check_int(h->plan.counts.n_large, 0);
	free_host(h);
}

static void refused_ones(void)
{
	struct host *h = new_host(NULL);
	struct pss_now now = {.rss = 10 * MIB, .swap = PSS_UNKNOWN};
	struct pss_ask ask;
	double bytes;

	add(h, 10 * MIB, 3600 * SEC)->outcome = PSS_REFUSED;
	add(h, 10 * MIB, 3600 * SEC);
	h->proc[0].busy = h->proc[1].busy = 1;
	tick(h, 0);
	h->proc[1].outcome = PSS_REFUSED;
	run(h, 10 * SEC, 1200 * SEC);
	check_int(h->proc[0].n_read, 3);
	check_int(h->plan.counts.n_refused, 2);
	/* What was read before goes on to stand for it. */
	check(pss_estimate(&h->proc[1].r, PSS_PSS, &now, &bytes));
	check(!pss_estimate(&h->proc[0].r, PSS_PSS, &now, &bytes));
	/* A refusal costs the same whatever the size. */
	h->proc[0].rss = GIB;
	begin(h, 600 * SEC);
	offer(h, 0, true);
	check(pssplan_next(&h->plan, &ask));
	check(ask.cost_us < 10);
	do_ask(h, &ask);
	h->proc[0].rss = 10 * MIB;
	/* A program that may be read. */
	h->proc[0].outcome = PSS_READ;
	pss_void(&h->proc[0].r);
	run(h, 10 * SEC, 60 * SEC);
	check(pss_estimate(&h->proc[0].r, PSS_PSS, &now, &bytes));
	free_host(h);
}

static void failed_ones(void)
{
	struct host *h = new_host(NULL);

	for (size_t i = 0; i < 50; i++)
		add(h, 10 * MIB, 3600 * SEC)->outcome = PSS_FAILED;
	for (unsigned i = 0; i < 5; i++)
		check_int(tick(h, 10 * SEC), 50);
	for (size_t i = 0; i < 50; i++)
		h->proc[i].outcome = PSS_READ;
	check_int(tick(h, 10 * SEC), 50);
	check_int(tick(h, 10 * SEC), 0);
	free_host(h);
}

static void empty_ones(void)
{
	struct host *h = new_host(NULL);

	add(h, 0, 3600 * SEC)->outcome = PSS_EMPTY;
	add(h, 10 * MIB, 3600 * SEC)->outcome = PSS_EMPTY;
	h->proc[0].busy = 1;
	check_int(tick(h, 0), 2);
	check_int(run(h, 10 * SEC, 50 * SEC), 0);
	/* The second one was in exec. */
	h->proc[1].outcome = PSS_READ;
	check_int(tick(h, 10 * SEC), 1);
	check(h->proc[1].r.have);
	check_int(run(h, 10 * SEC, 530 * SEC), 0);
	check_int(tick(h, 10 * SEC), 1);
	check_int(h->proc[0].n_read, 2);
	/* It has less to say than what it had before. */
	h->proc[1].outcome = PSS_EMPTY;
	h->proc[1].busy = 1;
	run(h, 10 * SEC, 60 * SEC);
	check(!h->proc[1].r.have);
	free_host(h);
}

static void exec_voids(void)
{
	struct host *h = new_host(NULL);
	struct pss_now now = {.rss = 10 * MIB, .swap = PSS_UNKNOWN};
	double bytes, saved;

	add(h, 10 * MIB, 3600 * SEC);
	tick(h, 0);
	check(pss_estimate(&h->proc[0].r, PSS_PSS, &now, &bytes));
	pss_void(&h->proc[0].r);
	check(!pss_estimate(&h->proc[0].r, PSS_PSS, &now, &bytes));
	/* It is read anew, whether it runs or not, but not too soon. */
	check_int(run(h, 10 * SEC, 50 * SEC), 0);
	h->delay = 1;
	check_int(tick(h, 10 * SEC), 1);
	/* Exec while the answer is on its way: it is of the program before. */
	pss_void(&h->proc[0].r);
	saved = h->plan.saved_ns;
	begin(h, 1);
	check(h->plan.saved_ns != saved);
	check(!pss_estimate(&h->proc[0].r, PSS_PSS, &now, &bytes));
	check_int(run(h, 10 * SEC, 50 * SEC), 0);
	check_int(tick(h, 10 * SEC), 1);
	begin(h, 10 * SEC);
	check(pss_estimate(&h->proc[0].r, PSS_PSS, &now, &bytes));
	check(bytes == 5 * MIB);
	free_host(h);
}

static void no_answer(void)
{
	struct host *h = new_host(NULL);
	struct pss_ask ask;
	double saved;

	add(h, GIB, 3600 * SEC)->busy = 1;
	begin(h, 0);
	offer(h, 0, true);
	saved = h->plan.saved_ns;
	check(pssplan_next(&h->plan, &ask));
	check(h->plan.saved_ns < saved - 15e6);
	check_int(run(h, 10 * SEC, 1800 * SEC), 0);
	/* It comes after all, but the process is gone. */
	saved = h->plan.saved_ns;
	pssplan_account(&h->plan, NULL, &ask,
			&(struct pss_answer){.cost_ns = 40000000});
	check(h->plan.saved_ns + 20e6 < saved);
	free_host(h);
}

static void takes_reading(void)
{
	struct host *h = new_host(NULL);
	struct pss_answer a = {
	    .outcome = PSS_READ,
	    .have = PSS_BIT(PSS_PSS) | PSS_BIT(PSS_SWAP_PSS),
	    .value = {6 * MIB, 5 * MIB, MIB},
	    .cost_ns = 1862500, /* ten times the usual */
	};
	struct pss_facts f = {
	    .now = {.rss = 10 * MIB, .swap = 2 * MIB},
	    .age_ns = 3600 * SEC,
	};
	struct pss_reading r = {0};
	struct pss_ask ask;
	double bytes;

	for (unsigned i = 0; i < 1000; i++)
		psscost_learn(&h->plan.cost, i * 100, 30 + i * 1.5259);
	pssplan_begin(&h->plan, 900 * SEC);
	pssplan_begin(&h->plan, 1000 * SEC);
	pssplan_offer(&h->plan, &r, 4711, &f, &usual);
	check_int(h->plan.counts.n_due, 1);
	check(pssplan_next(&h->plan, &ask));
	check_int(ask.id, 4711);
	check(ask.reading == &r);
	pssplan_account(&h->plan, &r, &ask, &a);
	check_int(h->plan.counts.n_asked, 1);
	/* It is of the time when it was asked for. */
	f.now = (struct pss_now){.rss = 20 * MIB, .swap = MIB};
	check(pss_estimate(&r, PSS_PSS, &f.now, &bytes));
	check(bytes == 12 * MIB);
	check(pss_estimate(&r, PSS_SWAP_PSS, &f.now, &bytes));
	check(bytes == MIB / 2);
	check(!pss_estimate(&r, PSS_USS, &f.now, &bytes));
	pssplan_begin(&h->plan, 1030 * SEC);
	pssplan_offer(&h->plan, &r, 4711, &f, &usual);
	check_u64(h->plan.counts.oldest_ns, 30 * SEC);
	/* As dear as it was, and now of twice the size. */
	pssplan_begin(&h->plan, 1660 * SEC);
	pssplan_offer(&h->plan, &r, 4711, &f, &usual);
	check(pssplan_next(&h->plan, &ask));
	check(ask.cost_us > 3300 && ask.cost_us < 3500);
	free_host(h);
}

static void nothing_to_spend(void)
{
	struct host *h = new_host(&(struct pssplan_options){0, 10 * SEC});

	add(h, 10 * MIB, 3600 * SEC)->busy = 1;
	check_int(run(h, 10 * SEC, 1200 * SEC), 0);
	free_host(h);
}

/* Hosts. */

/* Most are small; 2 of 100 run in a tick. */
static void populate(struct host *h, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double rss = exp2(19 + 8 * chance(h) * chance(h));
		struct proc *p = add(h, (uint64_t)rss, 3600 * SEC);

		p->busy = i % 50 == 0 ? 0.9 : 0.02;
		p->fixed_us = 20 + 20 * chance(h);
		p->gib_us = 12000 + 8000 * chance(h);
	}
}

/* What all of them cost, each read once. */
static double round_cost(const struct host *h)
{
	double ns = 0;

	for (size_t i = 0; i < h->n; i++)
		ns += true_cost_ns(&h->proc[i]);
	return ns;
}

static void busy_host(uint64_t step_ns, unsigned delay)
{
	struct host *h = new_host(NULL);
	double most = 0, mean = 0;
	unsigned settled;
	size_t cap;
	struct pss_ask *heap;

	populate(h, 2000);
	for (size_t i = 0; i < h->n; i++)
		h->proc[i].busy = 0.99;
	h->delay = delay;
	check(round_cost(h) < BUDGET * 60e9);
	run(h, step_ns, 240 * SEC);
	cap = h->plan.cap;
	heap = h->plan.heap;
	settled = (unsigned)h->n_ticks;
	run(h, step_ns, 360 * SEC);
	check_u64(h->plan.cap, cap);
	check(h->plan.heap == heap);
	check_budget(h, h->worst_ns);
	check(!h->too_soon);
	if (worst_age(h, 0, h->n) > 180)
		tap_fail(__FILE__, __LINE__, "read after %.0f s",
			 worst_age(h, 0, h->n));
	/* Spread over the interval. */
	for (size_t i = settled; i < h->n_ticks; i++) {
		most = MAX(most, h->tick[i].spent_ns);
		mean += h->tick[i].spent_ns;
	}
	mean /= (double)(h->n_ticks - settled);
	if (most > 1.5 * mean + h->worst_ns)
		tap_fail(__FILE__, __LINE__, "%.1f ms in a tick, not %.1f",
			 most / 1e6, mean / 1e6);
	printf("# ticks of %g s: %.0f ms in 10 min, oldest %.0f s\n",
	       (double)step_ns / 1e9, spent_ns(h) / 1e6, worst_age(h, 0, h->n));
	free_host(h);
}

static void enough_budget(void)
{
	busy_host(10 * SEC, 0);
	busy_host(10 * SEC, 1);
	busy_host(1 * SEC, 0);
	busy_host(1 * SEC, 3);
	busy_host(60 * SEC, 0);
}

static void idle_host(void)
{
	struct host *h = new_host(NULL);
	double most = 0;

	populate(h, 2000);
	for (size_t i = 0; i < h->n; i++)
		h->proc[i].busy = 0;
	check_int(run(h, 10 * SEC, 120 * SEC), 2000);
	check_int(run(h, 10 * SEC, 470 * SEC), 0);
	h->n_ticks = 0;
	h->begin_ns = h->now_ns;
	check_int(run(h, 10 * SEC, 600 * SEC), 2000);
	for (size_t i = 0; i < h->n_ticks; i++)
		most = MAX(most, h->tick[i].spent_ns);
	/* As if all had to be read within their interval, not max_age. */
	check(most < 1.3 * round_cost(h) / 6 + h->worst_ns);
	check(worst_age(h, 0, h->n) < 720);
	check_budget(h, h->worst_ns);
	free_host(h);
}

/* Four times as much as there is. */
static void too_little_budget(void)
{
	struct host *h = new_host(NULL);
	double cost;

	populate(h, 2000);
	for (size_t i = 0; i < h->n; i++) {
		h->proc[i].base_rss *= 8;
		h->proc[i].busy = 0.99;
	}
	for (size_t i = 0; i < h->n; i++)
		h->proc[i].rss = h->proc[i].base_rss;
	cost = round_cost(h);
	check(cost > 3 * BUDGET * 60e9 && cost < BUDGET * 600e9);
	run(h, 10 * SEC, 3000 * SEC);
	check_budget(h, h->worst_ns);
	check(!h->too_soon);
	/* All of the budget is used. */
	check(spent_ns(h) > 0.9 * BUDGET * 3000e9);
	if (worst_age(h, 0, h->n) > 1.2 * 600)
		tap_fail(__FILE__, __LINE__, "read after %.0f s",
			 worst_age(h, 0, h->n));
	free_host(h);
}

/* Not even within max_age: then all are read as often as can be. */
static void far_too_little(void)
{
	struct host *h = new_host(NULL);
	double round_s;

	populate(h, 3000);
	for (size_t i = 0; i < h->n; i++) {
		h->proc[i].rss = h->proc[i].base_rss *= 15;
		h->proc[i].busy = i % 3 ? 0.99 : 0;
	}
	round_s = round_cost(h) / BUDGET / 1e9;
	check(round_s > 700);
	run(h, 10 * SEC, 10000 * SEC);
	check_budget(h, h->worst_ns);
	if (worst_age(h, 0, h->n) > 1.6 * round_s)
		tap_fail(__FILE__, __LINE__, "read after %.0f s of %.0f",
			 worst_age(h, 0, h->n), round_s);
	free_host(h);
}

/* One that costs five windows: read, but not at the others' expense. */
static void giant(void)
{
	struct pss_policy asked = usual;
	struct host *h = new_host(NULL);
	double worst;

	asked.large = true;
	populate(h, 2000);
	add(h, 100 * GIB, 3600 * SEC)->policy = &asked;
	add(h, 80 * GIB, 3600 * SEC)->policy = &asked;
	h->proc[2000].busy = h->proc[2001].busy = 0.99;
	run(h, 10 * SEC, 3600 * SEC);
	check(h->proc[2000].n_read >= 2);
	check(h->proc[2001].n_read >= 2);
	check_budget(h, 2 * h->worst_ns);
	check(!h->too_soon);
	worst = worst_age(h, 0, 2000);
	if (worst > 1.1 * 600)
		tap_fail(__FILE__, __LINE__, "the others after %.0f s", worst);
	printf("# giants read %u and %u times in an hour, others after %.0f s "
	       "at most\n",
	       h->proc[2000].n_read, h->proc[2001].n_read, worst);
	free_host(h);
}

static void lone_giant(void)
{
	struct pss_policy asked = usual;
	struct host *h = new_host(NULL);
	double cost_s = 0.005 * 320;

	asked.large = true;
	add(h, 100 * GIB, 3600 * SEC)->policy = &asked;
	h->proc[0].busy = 1;
	run(h, 10 * SEC, 3600 * SEC);
	/* Nobody else wants the other half. */
	check(h->proc[0].n_read >= (unsigned)(3600 * BUDGET / cost_s) - 1);
	check_budget(h, h->worst_ns);
	/* A day in one step pays nothing back but what two ticks earn. */
	while (h->plan.loan_ns < 1.5e9)
		tick(h, 10 * SEC);
	pssplan_begin(&h->plan, h->now_ns + DAY);
	check(h->plan.loan_ns > 1.4e9);
	free_host(h);

	/* It was thought to be dear, and was not. */
	h = new_host(NULL);
	add(h, 100 * GIB, 3600 * SEC)->policy = &asked;
	h->proc[0].gib_us = 1;
	check_int(tick(h, 10 * SEC), 1);
	check(h->plan.loan_ns <= 0);
	free_host(h);
}

/* 32 ms each in ticks that earn 5 ms, and small ones that want all of it. */
static void short_ticks(void)
{
	struct host *h = new_host(NULL);

	for (size_t i = 0; i < 4; i++)
		add(h, 2 * GIB, 3600 * SEC)->busy = 1;
	for (size_t i = 0; i < 8000; i++)
		add(h, MIB, 3600 * SEC)->busy = 1;
	run(h, 1 * SEC, 1800 * SEC);
	check_budget(h, 2 * h->worst_ns);
	for (size_t i = 0; i < 4; i++)
		check(h->proc[i].n_read >= 3);
	check(worst_age(h, 0, h->n) < 720);
	free_host(h);
}

static void mispredicted(double by)
{
	struct host *h = new_host(NULL);
	double error = 0, excess;
	size_t n = 0;

	populate(h, 2000);
	for (size_t i = 0; i < h->n; i++) {
		h->proc[i].fixed_us *= by;
		h->proc[i].gib_us *= by;
		h->proc[i].busy = 0.99;
	}
	excess = by > 1 ? (by - 1) * BUDGET * 10e9 : 0;
	run(h, 10 * SEC, 600 * SEC);
	check_budget(h, excess + h->worst_ns);
	for (size_t i = 0; i < 100; i++)
		add(h, (1 + i) * MIB, 3600 * SEC);
	begin(h, 10 * SEC);
	for (size_t i = 0; i < h->n; i++)
		offer(h, i, true);
	for (size_t i = 0; i < h->plan.n; i++) {
		const struct pss_ask *ask = &h->plan.heap[i];
		struct proc *p = &h->proc[ask->id];

		if (ask->id < 2000)
			continue;
		p->fixed_us = 30 * by;
		p->gib_us = 16000 * by;
		error += fabs(log(ask->cost_us * 1000.0 / true_cost_ns(p)));
		n++;
	}
	check_u64(n, 100);
	if (error / 100 > log(1.3))
		tap_fail(__FILE__, __LINE__, "x %g: off by %.2f", by,
			 exp(error / 100));
	if (by < 1)
		check(worst_age(h, 0, 2000) < 180);
	free_host(h);
}

static void wrong_costs(void)
{
	mispredicted(10);
	mispredicted(0.1);
}

static void burst(void)
{
	struct host *h = new_host(NULL);
	uint64_t born, worst = 0;

	populate(h, 1000);
	run(h, 10 * SEC, 300 * SEC);
	born = h->now_ns;
	for (size_t i = 0; i < 5000; i++)
		add(h, 3 * MIB, 0)->busy = 0.5;
	run(h, 10 * SEC, 300 * SEC);
	check_budget(h, h->worst_ns);
	for (size_t i = 1000; i < h->n; i++) {
		check(h->proc[i].first_ns > 0);
		worst = MAX(worst, h->proc[i].first_ns - born);
	}
	check(worst <= 180 * SEC);
	/* They end all at once, with readings on their way. */
	h->delay = 2;
	tick(h, 10 * SEC);
	for (size_t i = 1000; i < h->n; i++)
		h->proc[i].ends = true;
	h->delay = 0;
	run(h, 10 * SEC, 100 * SEC);
	check_u64(h->n_late, 0);
	check_budget(h, h->worst_ns);
	free_host(h);
}

static void figures(void)
{
	struct host *h = new_host(NULL);
	const struct pssplan_counts *c = &h->plan.counts;

	add(h, GIB, 3600 * SEC);
	add(h, GIB, 3600 * SEC)->outcome = PSS_REFUSED;
	add(h, 0, 3600 * SEC)->outcome = PSS_EMPTY;
	add(h, 3 * GIB, 3600 * SEC);
	tick(h, 0);
	check_u64(c->n_untried, 3);
	check_u64(c->unread_ns, 0);
	h->proc[0].busy = h->proc[1].busy = 1;
	run(h, 10 * SEC, 60 * SEC);
	check_u64(c->n_known, 2);
	check_u64(c->n_refused, 1);
	check_u64(c->n_large, 1);
	check_u64(c->n_untried, 0);
	check_u64(h->plan.totals.n_read, 2);
	check(h->plan.totals.read_kib == 2 * 1048576.0);
	check_u64(h->plan.totals.cost_ns, 2 * 16030000 + 2 * 5000);
	/* Without an answer it waits on. */
	h->delay = 1000;
	add(h, GIB, 3600 * SEC);
	run(h, 10 * SEC, 50 * SEC);
	check_u64(c->n_untried, 1);
	check_u64(c->unread_ns, 40 * SEC);
	check(c->oldest_ns >= 50 * SEC);
	free_host(h);
}

static void odd_clock(void)
{
	struct host *h = new_host(NULL);
	size_t n_before = 0, n_after = 0;

	populate(h, 2000);
	for (size_t i = 0; i < h->n; i++)
		h->proc[i].busy = 1;
	run(h, 10 * SEC, 300 * SEC);
	/* Back by a day: nobody is read twice, and it goes on as before. */
	h->now_ns -= DAY;
	for (size_t i = 0; i < h->n; i++) {
		struct proc *p = &h->proc[i];

		p->read_ns -= DAY;
		p->born_ns -= DAY;
		n_before += p->n_read;
	}
	h->n_ticks = 0;
	h->begin_ns = h->now_ns;
	run(h, 10 * SEC, 180 * SEC);
	check(!h->too_soon);
	check_budget(h, h->worst_ns);
	for (size_t i = 0; i < h->n; i++)
		n_after += h->proc[i].n_read;
	check(n_after >= n_before + 2 * h->n);

	/* A day ahead: all are late, and that is no reason to read them all. */
	h->n_ticks = 0;
	h->begin_ns = h->now_ns + DAY;
	add(h, MIB, 0)->born_ns += DAY - 15 * SEC;
	tick(h, DAY);
	check_int(h->proc[h->n - 1].n_read, 1);
	run(h, 10 * SEC, 300 * SEC);
	check_budget(h, h->worst_ns);
	for (size_t i = 0; i < h->n; i++)
		h->proc[i].worst_ns = 0;
	run(h, 10 * SEC, 300 * SEC);
	check(worst_age(h, 0, 2000) < 180);
	free_host(h);
}

static void clock_back(void)
{
	struct host *h = new_host(NULL);

	add(h, 10 * MIB, 3600 * SEC)->busy = 1;
	check_int(tick(h, 10 * SEC), 1);
	h->now_ns -= DAY;
	h->proc[0].read_ns -= DAY;
	h->proc[0].born_ns -= DAY;
	/* One tick is lost. */
	check_int(run(h, 10 * SEC, 60 * SEC), 0);
	check_int(tick(h, 10 * SEC), 1);
	free_host(h);
}

int main(void)
{
	TEST("nobody is read before it is one tick old", one_tick_old);
	TEST("one is read once in an interval, if it ran, or when it is old",
	     once_in_interval);
	TEST("the largest change of RSS comes first", dearest_first);
	TEST("who waited for too long comes before, the longest first",
	     late_first);
	TEST("somebody new waits for two intervals at most, if it can be",
	     new_one_late);
	TEST("a large one is read only if a rule asks for it", large_ones);
	TEST("one that may not be read is tried seldom and keeps its reading",
	     refused_ones);
	TEST("what failed for our own want is tried again at once",
	     failed_ones);
	TEST("one without memory is tried seldom", empty_ones);
	TEST("exec voids a reading, and the one on its way", exec_voids);
	TEST("without an answer it is not asked for again", no_answer);
	TEST("an answer is taken with what was known when it was asked for",
	     takes_reading);
	TEST("without a budget nothing is read", nothing_to_spend);
	TEST("within the budget all are read, spread over the interval",
	     enough_budget);
	TEST("idle ones are read once, and when they are old", idle_host);
	TEST("with too little budget nobody is older than max_age",
	     too_little_budget);
	TEST("with far too little all grow old alike", far_too_little);
	TEST("what a window cannot pay is read at times, beside the others",
	     giant);
	TEST("a loan is paid back by what nobody else wants", lone_giant);
	TEST("in short ticks the dear ones are not starved by the cheap ones",
	     short_ticks);
	TEST("costs ten times off are learned within the budget", wrong_costs);
	TEST("five thousand newborn ones are read within the budget", burst);
	TEST("what was read, and who was not, is counted", figures);
	TEST("a clock that steps back is taken to stand still", clock_back);
	TEST("a clock that steps back or ahead does no harm", odd_clock);
	return tap_done();
}
