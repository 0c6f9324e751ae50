/* SPDX-License-Identifier: MIT */
#include "exits-pump.h"

#include <signal.h>

#include "bulk.h"
#include "clocks.h"

#define PERIOD_NS (100 * NSEC_PER_MSEC)

enum {
	CALM_TICKS = 30, /* then the thread ends */
	STACK_SIZE = 128 * 1024,
};

void pump_init(struct pump *p)
{
	*p = (struct pump){.records_max = PUMP_RECORDS_MAX};
	exits_init(&p->exits);
}

/* Called with the lock held. */
static void keep(void *arg, const struct exitrec *r)
{
	struct pump *p = arg;

	if (p->n >= p->records_max ||
	    bulk_reserve(&p->record, &p->cap, p->n + 1, sizeof(*r)) < 0)
		p->n_no_room++;
	else
		p->record[p->n++] = *r;
}

int pump_open(struct pump *p, const struct exits_options *o)
{
	pthread_condattr_t attr;
	int r;

	pump_init(p);
	r = exits_open(&p->exits, o, keep, p);
	if (r != 0)
		return r;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

/* Waits until it is time, or woken. */
static void wait_a_while(struct pump *p)
{
	uint64_t until = clocks_read(CLOCK_MONOTONIC) + PERIOD_NS;
	struct timespec ts = {
	    .tv_sec = (time_t)(until / NSEC_PER_SEC),
	    .tv_nsec = (long)(until % NSEC_PER_SEC),
	};

	while (!p->stop && pthread_cond_timedwait(&p->wake, &p->lock, &ts) == 0)
		;
}

static void *pump_run(void *arg)
{
	struct pump *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		/* What is wrong the tick will see, too. */
		(void)exits_drain(&p->exits);
		wait_a_while(p);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void start_thread(struct pump *p)
{
	pthread_attr_t attr;
	sigset_t all, old;

	p->stop = false;
	p->n_calm = 0;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	/* Signals are for the threads of the program that we are in. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	p->runs = pthread_create(&p->thread, &attr, pump_run, p) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (p->runs)
		pthread_setname_np(p->thread, "proctally-exits");
}

static void stop_thread(struct pump *p)
{
	if (!p->runs)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	p->runs = false;
}

void pump_close(struct pump *p)
{
	bool is_open = p->exits.fd >= 0;

	stop_thread(p);
	exits_close(&p->exits);
	bulk_free(&p->record, &p->cap, sizeof(*p->record));
	bulk_free(&p->taken, &p->taken_cap, sizeof(*p->taken));
	if (is_open) {
		pthread_cond_destroy(&p->wake);
		pthread_mutex_destroy(&p->lock);
	}
	pump_init(p);
}

/* The buffer cannot be made larger, and something was lost. */
static void mind_thread(struct pump *p, size_t n, uint64_t n_lost, bool grows)
{
	bool lost = n_lost > p->n_lost_before;

	p->n_lost_before = n_lost;
	if (!p->runs && lost && !grows)
		start_thread(p);
	else if (p->runs && n > p->exits.buffer / EXITS_RECORD_COST / 2)
		p->n_calm = 0;
	else if (p->runs && ++p->n_calm >= CALM_TICKS)
		stop_thread(p);
}

int pump_take(struct pump *p, const struct exitrec **ret_record, size_t *ret_n)
{
	struct exitrec *taken;
	uint64_t n_lost;
	size_t cap, n, room;
	bool grows;
	int r;

	/* What was taken last is not looked at any more. */
	if (p->is_spare)
		bulk_free(&p->taken, &p->taken_cap, sizeof(*p->taken));
	taken = p->taken;
	cap = p->taken_cap;
	pthread_mutex_lock(&p->lock);
	r = exits_drain(&p->exits);
	p->taken = p->record;
	p->taken_cap = p->cap;
	n = p->n;
	p->record = taken;
	p->cap = cap;
	p->n = 0;
	room = MAX(p->cap, p->taken_cap);
	n_lost = p->exits.n_lost;
	grows = p->exits.buffer < p->exits.buffer_max;
	pthread_mutex_unlock(&p->lock);

	p->is_spare = bulk_is_spare(&p->n_spare, n, room);
	mind_thread(p, n, n_lost, grows);
	*ret_record = p->taken;
	*ret_n = n;
	return r;
}

struct pump_state pump_look(struct pump *p)
{
	struct pump_state s;

	pthread_mutex_lock(&p->lock);
	s = (struct pump_state){
	    .n_lost = p->exits.n_lost + p->n_no_room,
	    .n_bad = p->exits.gather.counts.n_bad,
	    .has_thread = p->runs,
	};
	pthread_mutex_unlock(&p->lock);
	return s;
}

void pump_sweep(struct pump *p, gather_lives_fn *lives, void *arg)
{
	pthread_mutex_lock(&p->lock);
	gather_sweep(&p->exits.gather, lives, arg);
	pthread_mutex_unlock(&p->lock);
}
