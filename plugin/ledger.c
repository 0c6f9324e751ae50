/* SPDX-License-Identifier: MIT */
#include "ledger-internal.h"

#define NSEC_PER_USEC UINT64_C(1000)

enum {
	GONE_MAX = 65536,
	PARENTS_MAX = 65536,
	GONE_TICKS = 2, /* after that its record was lost */
};

/* Start times are in whole ticks, at least 100 a second. */
#define START_STEP_NS (10 * NSEC_PER_MSEC)

/* A tick's own time: records are taken so much later than it began, at least.
 */
#define TICK_NS (2 * NSEC_PER_SEC)

/* began_s is less than a second off. */
#define BEGAN_NS (NSEC_PER_SEC + 10 * START_STEP_NS)

/* Somebody set the clock. */
#define CLOCK_SET_NS (NSEC_PER_SEC / 4)

/* births.h can overlook a process for so long. */
#define UNSEEN_NS (60 * NSEC_PER_SEC)

struct gone {
	uint32_t pid;
	uint32_t tick;
	struct ledger_process process;
};

void ledger_init(struct ledger *l, ledger_release_fn *release, void *arg)
{
	*l = (struct ledger){.release = release, .arg = arg};
	pidmap_init(&l->gone, sizeof(struct gone), GONE_MAX);
	pidmap_init(&l->parents, sizeof(struct parent), PARENTS_MAX);
}

static void release(struct ledger *l, void *ref)
{
	l->counts.n_unsettled++;
	if (l->release)
		l->release(l->arg, ref);
}

static bool release_all(void *arg, void *entry)
{
	const struct gone *g = entry;

	release(arg, g->process.ref);
	return false;
}

void ledger_done(struct ledger *l)
{
	pidmap_sweep(&l->gone, release_all, l);
	pidmap_done(&l->gone);
	pidmap_done(&l->parents);
}

static uint64_t clock_offset(const struct moment *m)
{
	return m->real_ns - m->boot_ns;
}

void ledger_begin(struct ledger *l, const struct moment *now)
{
	int64_t step;

	if (l->tick++ == 0) {
		l->now = *now;
		l->first_ns = now->boot_ns;
	}
	l->late_ns = TICK_NS;
	l->since = l->now;
	l->now = *now;
	step = (int64_t)(clock_offset(&l->now) - clock_offset(&l->since));
	l->clock_was_set =
	    step > (int64_t)CLOCK_SET_NS || step < -(int64_t)CLOCK_SET_NS;
}

void ledger_late(struct ledger *l, uint64_t ns)
{
	l->late_ns = MAX(ns, TICK_NS);
}

void ledger_left(struct ledger *l, const struct ledger_process *p)
{
	struct gone *g = pidmap_find(&l->gone, p->pid);

	if (g)
		release(l, g->process.ref);
	else
		g = pidmap_add(&l->gone, p->pid);
	if (!g) {
		release(l, p->ref);
		return;
	}
	g->tick = l->tick;
	g->process = *p;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/*
 * Could this process have left that record? It ended between the last tick,
 * or when it was seen since, and now, and how long it lived is known to the
 * microsecond, but not while the host was suspended. When it began is known to
 * the second, unless somebody set the clock since. And it ran no less than its
 * clock said, but for what its exit took: to free a large file in memory, say,
 * takes long.
 */
static bool is_of(const struct ledger *l, const struct exitrec *r,
		  const struct ledger_process *p)
{
	uint64_t lived = r->elapsed_us * NSEC_PER_USEC;
	uint64_t suspended = l->now.boot_ns - l->now.mono_ns;
	uint64_t since = MAX(l->since.boot_ns, p->lived_ns);
	uint64_t start = p->start_ns;
	int64_t late;

	if (start > minus(l->now.boot_ns + l->late_ns, lived))
		return false;
	if (start + START_STEP_NS < minus(since, lived + suspended))
		return false;
	if (p->clock_ns > r->cpu_max_ns && !p->is_ending &&
	    !(r->flags & EXIT_PARTIAL))
		return false;
	if (l->clock_was_set)
		return true;
	late = (int64_t)(r->began_s * NSEC_PER_SEC -
			 (start + clock_offset(&l->now)));
	return late >= -(int64_t)BEGAN_NS &&
	       late <= (int64_t)(BEGAN_NS + suspended);
}

/* What a counter grew by since it was sampled. */
static uint64_t growth(struct ledger *l, const struct exitrec *r, unsigned i,
		       uint64_t was)
{
	bool rounded = i >= EXIT_READ_CHARS && i <= EXIT_WRITE_BYTES;
	uint64_t slack = rounded ? (uint64_t)r->n_threads * EXIT_ROUNDING : 0;

	if (r->value[i] >= was)
		return r->value[i] - was;
	if (!(r->flags & EXIT_PARTIAL) && was - r->value[i] > slack)
		l->counts.n_anomalies++;
	return 0;
}

/*
 * The clock at the last look is exact, and in times of stat fractions of a
 * tick are cut off; so what was counted is never more than `total`, unless
 * the end itself was sampled.
 */
static void cut_cpu(struct ledger *l, const struct exitrec *r,
		    const struct ledger_process *p, struct ledger_slice *s)
{
	uint64_t counted = p->user_ns + p->system_ns;
	uint64_t total = MAX(r->cpu_ns, p->clock_ns);
	uint64_t rest = minus(total, counted);

	if (counted > MAX(r->cpu_max_ns, p->clock_ns) &&
	    !(r->flags & EXIT_PARTIAL))
		l->counts.n_anomalies++;
	total = MAX(total, counted);
	exitrec_split(r, total, &s->total_user_ns, &s->total_system_ns);
	/* How the two share the sum can change; neither may fall. */
	s->user_ns = MIN(minus(s->total_user_ns, p->user_ns), rest);
	s->system_ns = rest - s->user_ns;
}

static void cut_slice(struct ledger *l, const struct exitrec *r,
		      const struct ledger_process *p, struct ledger_slice *s)
{
	*s = (struct ledger_slice){
	    .kind = LEDGER_LAST_SLICE,
	    .ref = p->ref,
	    .have = r->have & p->have,
	    .reaped_user_ns = p->reaped_user_ns,
	    .reaped_system_ns = p->reaped_system_ns,
	};
	cut_cpu(l, r, p, s);
	for (unsigned i = 0; i < EXIT_N_VALUES; i++)
		if (s->have & EXIT_BIT(i))
			s->value[i] = growth(l, r, i, p->value[i]);
}

/* Nobody in the table, and nobody who was there, left this record. */
static void take_unknown(struct ledger *l, const struct exitrec *r,
			 struct ledger_slice *s)
{
	uint64_t lived = r->elapsed_us * NSEC_PER_USEC;
	uint64_t interval = l->now.boot_ns - l->since.boot_ns;

	*s = (struct ledger_slice){.kind = LEDGER_NOTHING};
	exitrec_split(r, r->cpu_ns, &s->total_user_ns, &s->total_system_ns);
	if (l->tick == 1)
		return;
	if (lived > l->now.boot_ns + l->late_ns - l->first_ns ||
	    lived > interval + UNSEEN_NS + l->late_ns) {
		l->counts.n_strangers++;
		return;
	}
	/* Only a process's own record says that it forked or how it ended. */
	if (r->flags & EXIT_UNSURE &&
	    !(r->flags & EXIT_FORKED || r->exit_code)) {
		s->kind = LEDGER_UNSURE;
		return;
	}
	s->kind = LEDGER_WHOLE_LIFE;
	s->user_ns = s->total_user_ns;
	s->system_ns = s->total_system_ns;
	s->have = r->have;
	memcpy(s->value, r->value, sizeof(s->value));
}

void ledger_take(struct ledger *l, const struct exitrec *r,
		 const struct ledger_process *live, struct ledger_slice *ret)
{
	struct gone *g = pidmap_find(&l->gone, r->pid);

	/* Records come in order: first of who had the number first. */
	if (g && is_of(l, r, &g->process)) {
		cut_slice(l, r, &g->process, ret);
		ret->was_gone = true;
		pidmap_remove(&l->gone, g);
	} else if (live && is_of(l, r, live)) {
		cut_slice(l, r, live, ret);
		/* Its leader ended, the others will tell. */
		if (r->flags & EXIT_UNSURE && live->n_threads > 1)
			*ret = (struct ledger_slice){.kind = LEDGER_NOTHING};
	} else {
		take_unknown(l, r, ret);
	}
}

static bool is_awaited(void *arg, void *entry)
{
	struct ledger *l = arg;
	const struct gone *g = entry;

	if (l->tick - g->tick < GONE_TICKS)
		return true;
	release(l, g->process.ref);
	return false;
}

void ledger_end(struct ledger *l, ledger_give_fn *give, void *arg)
{
	pidmap_sweep(&l->gone, is_awaited, l);
	parents_settle(l, give, arg);
}
