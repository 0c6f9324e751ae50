/* SPDX-License-Identifier: MIT */
/* Tests of plugin/ledger.c: single cases; all orders are in ledger-world.c. */
#include "ledger.h"

#include "tap.h"

#define MS NSEC_PER_MSEC
#define S NSEC_PER_SEC

enum {
	BOOT_S = 1000,	   /* since boot, when a test begins */
	REAL_S = 70000000, /* of the clock on the wall at boot */
	PARENT = 40,
};

struct given {
	uint64_t user_ns, system_ns;
	unsigned n, account[16];
};

static void give(void *arg, uint32_t account, uint64_t user_ns,
		 uint64_t system_ns)
{
	struct given *g = arg;

	g->user_ns += user_ns;
	g->system_ns += system_ns;
	g->account[g->n++ % ARRAY_SIZE(g->account)] = account;
}

static void count_release(void *arg, _unused_ void *ref)
{
	++*(unsigned *)arg;
}

static struct moment at(uint64_t ms)
{
	uint64_t boot = BOOT_S * S + ms * MS;

	return (struct moment){
	    .mono_ns = boot, .boot_ns = boot, .real_ns = REAL_S * S + boot};
}

static void tick(struct ledger *l, uint64_t ms)
{
	struct moment m = at(ms);

	ledger_begin(l, &m);
}

/* Two ticks long ago: the next is any. */
static void begin(struct ledger *l)
{
	ledger_init(l, NULL, NULL);
	tick(l, 0);
	ledger_end(l, give, &(struct given){0});
}

/* A process that lived from..to, in ms. */
static struct exitrec record(uint32_t pid, uint64_t from, uint64_t to,
			     uint64_t cpu_ns)
{
	struct exitrec r = {
	    .pid = pid,
	    .tid = pid,
	    .ppid = PARENT,
	    .n_threads = 1,
	    .flags = EXIT_HAS_TGID | EXIT_LAST | EXIT_LEADER,
	    .have = EXIT_BIT(EXIT_N_VALUES) - 1,
	    .began_s = REAL_S + BOOT_S + from / 1000,
	    .elapsed_us = (to - from) * 1000,
	    .run_ns = cpu_ns,
	    .cpu_ns = cpu_ns,
	    .cpu_max_ns = cpu_ns + MS,
	};

	for (unsigned i = 0; i < EXIT_N_VALUES; i++)
		r.value[i] = 10000 + i;
	r.value[EXIT_UTIME_US] = 3000;
	r.value[EXIT_STIME_US] = 1000;
	return r;
}

static struct ledger_process process(uint32_t pid, uint64_t from)
{
	return (struct ledger_process){
	    .pid = pid,
	    .n_threads = 1,
	    .start_ns = (BOOT_S * S + from * MS) / (10 * MS) * (10 * MS),
	    .user_ns = 20 * MS,
	    .system_ns = 10 * MS,
	    .clock_ns = 33 * MS,
	    .have = EXIT_BIT(EXIT_MINFLT) | EXIT_BIT(EXIT_READ_CHARS),
	    .value = {[EXIT_MINFLT] = 9000, [EXIT_READ_CHARS] = 9000},
	};
}

static void whole_life(void)
{
	struct exitrec r = record(9, 1200, 1300, 8 * MS);
	struct ledger_slice s;
	struct ledger l;

	begin(&l);
	tick(&l, 2000);
	ledger_take(&l, &r, NULL, &s);
	check_int(s.kind, LEDGER_WHOLE_LIFE);
	check_u64(s.user_ns, 6 * MS);
	check_u64(s.system_ns, 2 * MS);
	check_u64(s.value[EXIT_MINFLT], r.value[EXIT_MINFLT]);
	check_u64(s.have, r.have);
	ledger_done(&l);
}

static void check_slice(const struct ledger_slice *s)
{
	check_int(s->kind, LEDGER_LAST_SLICE);
	check_u64(s->user_ns, 10 * MS);
	check_u64(s->system_ns, 0);
	check_u64(s->value[EXIT_MINFLT], 10000 + EXIT_MINFLT - 9000);
	check_u64(s->value[EXIT_READ_CHARS], 10000 + EXIT_READ_CHARS - 9000);
	check_u64(s->value[EXIT_MAJFLT], 0);
	check_u64(s->have, EXIT_BIT(EXIT_MINFLT) | EXIT_BIT(EXIT_READ_CHARS));
}

static void last_slice(void)
{
	struct ledger_process p = process(9, 500);
	struct exitrec r = record(9, 500, 1300, 40 * MS);
	struct ledger_slice s;
	struct ledger l;
	int ref;

	begin(&l);
	p.ref = &ref;
	tick(&l, 2000);
	ledger_take(&l, &r, &p, &s);
	check_slice(&s);
	check(s.ref == &ref);
	check(!s.was_gone);

	ledger_left(&l, &p);
	ledger_take(&l, &r, NULL, &s);
	check_slice(&s);
	check(s.was_gone && s.ref == &ref);
	/* Once. */
	check_u64(l.gone.n, 0);
	ledger_done(&l);
}

static void split_moves(void)
{
	struct ledger_process p = process(9, 500);
	struct exitrec r = record(9, 500, 1300, 40 * MS);
	struct ledger_slice s;
	struct ledger l;

	begin(&l);
	tick(&l, 2000);
	r.value[EXIT_UTIME_US] = 1000; /* 10 of 40 ms; 20 were counted */
	r.value[EXIT_STIME_US] = 3000;
	ledger_take(&l, &r, &p, &s);
	check_u64(s.user_ns, 0);
	check_u64(s.system_ns, 10 * MS);
	r.value[EXIT_UTIME_US] = 9000; /* 36 and 4; 10 were counted */
	r.value[EXIT_STIME_US] = 1000;
	ledger_take(&l, &r, &p, &s);
	check_u64(s.user_ns, 10 * MS);
	check_u64(s.system_ns, 0);
	ledger_done(&l);
}

static void clock_knows_more(void)
{
	struct ledger_process p = process(9, 500);
	struct exitrec r = record(9, 500, 1300, 31 * MS);
	struct ledger_slice s;
	struct ledger l;

	begin(&l);
	tick(&l, 2000);
	r.cpu_max_ns = 35 * MS;
	ledger_take(&l, &r, &p, &s);
	check_int(s.kind, LEDGER_LAST_SLICE);
	check_u64(s.user_ns + s.system_ns, 3 * MS);
	ledger_done(&l);
}

/* Its clock was read when the record was there, and the end took long. */
static void ends_slowly(void)
{
	struct ledger_process p = process(9, 500);
	struct exitrec r = record(9, 500, 1300, 40 * MS);
	struct ledger_slice s;
	struct ledger l;

	begin(&l);
	tick(&l, 2000);
	p.user_ns = 300 * MS;
	p.clock_ns = 312 * MS;
	p.is_ending = true;
	ledger_take(&l, &r, &p, &s);
	check_int(s.kind, LEDGER_LAST_SLICE);
	check_u64(s.user_ns + s.system_ns, 2 * MS);
	ledger_done(&l);
}

static void never_negative(void)
{
	struct ledger_process p = process(9, 500);
	struct exitrec r = record(9, 500, 1300, 29 * MS);
	struct ledger_slice s;
	struct ledger l;

	begin(&l);
	tick(&l, 2000);
	p.clock_ns = 0;
	p.value[EXIT_MINFLT] = 20000;
	p.value[EXIT_READ_CHARS] = 10000 + EXIT_READ_CHARS + 1023;
	ledger_take(&l, &r, &p, &s);
	check_u64(s.user_ns + s.system_ns, 0);
	check_u64(s.value[EXIT_MINFLT], 0);
	check_u64(s.value[EXIT_READ_CHARS], 0);
	/* Fewer faults are odd; a rounded sum and an exact one are not. */
	check_u64(l.counts.n_anomalies, 1);
	r.flags |= EXIT_PARTIAL;
	ledger_take(&l, &r, &p, &s);
	check_u64(l.counts.n_anomalies, 1);
	ledger_done(&l);
}

/* What is made of a record if `p` is known; all in ms. */
static enum ledger_kind kind_of(const struct exitrec *r,
				const struct ledger_process *p, uint64_t now)
{
	struct ledger_slice s;
	struct ledger l;

	begin(&l);
	tick(&l, now - 1000);
	ledger_end(&l, give, &(struct given){0});
	tick(&l, now);
	ledger_take(&l, r, p, &s);
	ledger_done(&l);
	return s.kind;
}

static void other_process(void)
{
	struct ledger_process p = process(9, 20000);
	struct exitrec r = record(9, 20000, 29500, 40 * MS);

	check_int(kind_of(&r, &p, 30000), LEDGER_LAST_SLICE);
	/* Began and ended before: its number was given again. */
	r = record(9, 18500, 18600, 40 * MS);
	check_int(kind_of(&r, &p, 30000), LEDGER_WHOLE_LIFE);
	/* Ended too early for that life. */
	r = record(9, 20000, 21000, 40 * MS);
	check_int(kind_of(&r, &p, 30000), LEDGER_WHOLE_LIFE);
	/* Lived longer than that one is old; a tick's time is allowed. */
	r = record(9, 20000, 31500, 40 * MS);
	check_int(kind_of(&r, &p, 30000), LEDGER_LAST_SLICE);
	r = record(9, 20000, 32500, 40 * MS);
	check_int(kind_of(&r, &p, 30000), LEDGER_WHOLE_LIFE);
	/* Ended in time, but before that one was seen to live. */
	r = record(9, 20000, 29500, 40 * MS);
	p.lived_ns = at(30000).boot_ns;
	check_int(kind_of(&r, &p, 30000), LEDGER_WHOLE_LIFE);
	r = record(9, 20000, 30500, 40 * MS);
	check_int(kind_of(&r, &p, 30000), LEDGER_LAST_SLICE);
	p.lived_ns = 0;
	/* Ran less than the clock of that one says. */
	r = record(9, 20000, 29500, 31 * MS);
	check_int(kind_of(&r, &p, 30000), LEDGER_WHOLE_LIFE);
	r.flags |= EXIT_PARTIAL;
	check_int(kind_of(&r, &p, 30000), LEDGER_LAST_SLICE);
}

/* We were stopped when the tick had begun, and it ended meanwhile. */
static void taken_late(void)
{
	struct ledger_process p = process(9, 500);
	struct exitrec r = record(9, 500, 21000, 40 * MS);
	struct ledger_slice s;
	struct ledger l;

	begin(&l);
	tick(&l, 2000);
	ledger_late(&l, 20 * S);
	ledger_take(&l, &r, &p, &s);
	check_int(s.kind, LEDGER_LAST_SLICE);
	ledger_end(&l, give, &(struct given){0});

	/* In the next tick we were not. */
	tick(&l, 22000);
	r = record(9, 500, 25000, 40 * MS);
	ledger_take(&l, &r, &p, &s);
	check_int(s.kind, LEDGER_NOTHING);
	ledger_done(&l);
}

static void clock_set(void)
{
	struct ledger_process p = process(9, 500);
	struct exitrec r = record(9, 500, 1300, 40 * MS);
	struct ledger_slice s;
	struct moment m = at(2000);
	struct ledger l;

	begin(&l);
	m.real_ns += 3600 * S;
	ledger_begin(&l, &m);
	ledger_take(&l, &r, &p, &s);
	check_int(s.kind, LEDGER_LAST_SLICE);
	/* One tick later it is believed again. */
	m.boot_ns += S;
	m.mono_ns += S;
	m.real_ns += S;
	ledger_begin(&l, &m);
	ledger_take(&l, &r, &p, &s);
	check_int(s.kind, LEDGER_WHOLE_LIFE);
	ledger_done(&l);
}

static void suspended(void)
{
	struct ledger_process p = process(9, 500);
	struct exitrec r = record(9, 500, 1300, 40 * MS);
	struct ledger_slice s;
	struct moment m = at(2000 + 500000);
	struct ledger l;

	/* Slept 500 s between its begin and its end; does not age by that. */
	begin(&l);
	m.mono_ns -= 500 * S;
	ledger_begin(&l, &m);
	r.began_s += 500;
	ledger_take(&l, &r, &p, &s);
	check_int(s.kind, LEDGER_LAST_SLICE);
	ledger_done(&l);
}

static void before_us(void)
{
	struct exitrec r = record(9, 0, 100, 8 * MS);
	struct ledger_slice s;
	struct ledger l;

	ledger_init(&l, NULL, NULL);
	tick(&l, 200);
	ledger_take(&l, &r, NULL, &s);
	check_int(s.kind, LEDGER_NOTHING);
	check_u64(s.user_ns + s.system_ns, 0);
	ledger_end(&l, give, &(struct given){0});
	ledger_done(&l);

	r = record(9, 0, 29500, 8 * MS);
	r.elapsed_us = 900 * UINT64_C(1000000);
	check_int(kind_of(&r, NULL, 30000), LEDGER_NOTHING);
	r = record(9, 100, 89500, 8 * MS);
	check_int(kind_of(&r, NULL, 90000), LEDGER_NOTHING);
	r = record(9, 50000, 89500, 8 * MS);
	check_int(kind_of(&r, NULL, 90000), LEDGER_WHOLE_LIFE);
}

static void unsure(void)
{
	struct ledger_process p = process(9, 20000);
	struct exitrec r = record(9, 20000, 29500, 40 * MS);

	r.flags = EXIT_UNSURE;
	check_int(kind_of(&r, NULL, 30000), LEDGER_UNSURE);
	check_int(kind_of(&r, &p, 30000), LEDGER_LAST_SLICE);
	p.n_threads = 2;
	check_int(kind_of(&r, &p, 30000), LEDGER_NOTHING);
	r.flags |= EXIT_FORKED;
	check_int(kind_of(&r, NULL, 30000), LEDGER_WHOLE_LIFE);
	r.flags = EXIT_UNSURE;
	r.exit_code = 0x100;
	check_int(kind_of(&r, NULL, 30000), LEDGER_WHOLE_LIFE);
}

static void never_came(void)
{
	unsigned n_released = 0;
	struct ledger_process p = process(9, 500);
	struct given g = {0};
	struct ledger l;

	ledger_init(&l, count_release, &n_released);
	for (unsigned i = 0; i < 4; i++) {
		tick(&l, 1000 + 1000 * i);
		if (i == 1)
			ledger_left(&l, &p);
		ledger_end(&l, give, &g);
		check_u64(l.counts.n_unsettled, i >= 3);
		check_u64(n_released, i >= 3);
	}
	ledger_left(&l, &p);
	ledger_left(&l, &p);
	check_u64(n_released, 2);
	ledger_done(&l);
	check_u64(n_released, 3);
}

/* Ends one child in this tick; counted to that account. */
static void end_child(struct ledger *l, uint32_t pid, uint32_t ppid,
		      uint64_t ms, uint64_t cpu_ns, uint32_t account)
{
	struct exitrec r = record(pid, ms, ms + 50, cpu_ns);
	struct ledger_slice s;

	r.ppid = ppid;
	ledger_take(l, &r, NULL, &s);
	check_int(s.kind, LEDGER_WHOLE_LIFE);
	ledger_charge(l, &r, &s, account);
}

static void rest_given(void)
{
	struct given g = {0};
	struct ledger l;

	begin(&l);
	tick(&l, 2000);
	ledger_reaped(&l, PARENT, 12 * MS, 5 * MS);
	end_child(&l, 9, PARENT, 1500, 8 * MS, 3);
	end_child(&l, 10, PARENT, 1600, 8 * MS, 3);
	ledger_end(&l, give, &g);
	/* 17 ms were reaped, 16 counted: user 12, system 4. */
	check_u64(g.user_ns, 0);
	check_u64(g.system_ns, MS);
	check_u64(g.account[0], 3);
	check_u64(l.counts.given_ns, MS);
	check_u64(l.counts.unexplained_ns, 0);
	/* Once. */
	tick(&l, 3000);
	ledger_end(&l, give, &g);
	check_u64(g.system_ns, MS);
	ledger_done(&l);
}

static void rest_is_bounded(void)
{
	struct given g = {0};
	struct ledger l;

	begin(&l);
	tick(&l, 2000);
	ledger_reaped(&l, PARENT, 0, 1000 * S);
	end_child(&l, 9, PARENT, 1500, 8 * MS, 3);
	ledger_end(&l, give, &g);
	check_u64(g.user_ns + g.system_ns, MS);
	check_u64(l.counts.unexplained_ns, 1000 * S - 9 * MS);
	tick(&l, 3000);
	ledger_reaped(&l, PARENT, S, 0);
	ledger_end(&l, give, &g);
	check_u64(g.user_ns + g.system_ns, MS);
	ledger_done(&l);
}

static void reaped_later(void)
{
	struct given g = {0};
	struct ledger l;

	/* The record comes ticks before the parent waits. */
	begin(&l);
	tick(&l, 2000);
	end_child(&l, 9, PARENT, 1500, 8 * MS, 3);
	ledger_end(&l, give, &g);
	tick(&l, 3000);
	ledger_end(&l, give, &g);
	tick(&l, 4000);
	ledger_reaped(&l, PARENT, 14 * MS, 3 * MS);
	end_child(&l, 10, PARENT, 3500, 8 * MS, 4);
	ledger_end(&l, give, &g);
	check_u64(g.user_ns + g.system_ns, MS);
	check_u64(g.account[0], 4);
	ledger_done(&l);
}

static void never_reaped(void)
{
	struct given g = {0};
	struct ledger l;

	/* Nobody waits for the first: it must not hide others for ever. */
	begin(&l);
	tick(&l, 2000);
	end_child(&l, 9, PARENT, 1500, 900 * MS, 3);
	ledger_end(&l, give, &g);
	for (unsigned i = 0; i < 8; i++) {
		tick(&l, 3000 + 1000 * i);
		ledger_end(&l, give, &g);
	}
	/* But fractions that stat cuts off may still be owed. */
	tick(&l, 12000);
	ledger_reaped(&l, PARENT, 19 * MS, 10 * MS);
	end_child(&l, 10, PARENT, 11500, 8 * MS, 4);
	ledger_end(&l, give, &g);
	check_u64(g.user_ns + g.system_ns, MS);
	check_u64(l.counts.unexplained_ns, 0);
	for (unsigned i = 0; i < 60; i++) {
		tick(&l, 13000 + 1000 * i);
		ledger_end(&l, give, &g);
	}
	check_u64(l.parents.n, 0);
	ledger_done(&l);
}

static void passed_on(void)
{
	struct given g = {0};
	struct ledger_process p = process(60, 500);
	struct exitrec r = record(60, 500, 1900, 40 * MS);
	struct ledger_slice s;
	struct ledger l;

	/* A script that was sampled, its children, and who waits for it. */
	begin(&l);
	tick(&l, 1000);
	ledger_reaped(&l, 60, 5 * MS, 5 * MS);
	end_child(&l, 9, 60, 600, 9 * MS, 1);
	ledger_end(&l, give, &g);
	check_u64(g.user_ns + g.system_ns, MS);
	tick(&l, 2000);
	p.reaped_user_ns = 5 * MS;
	p.reaped_system_ns = 5 * MS;
	ledger_reaped(&l, PARENT, 40 * MS, 21 * MS);
	end_child(&l, 10, 60, 1500, 9 * MS, 1);
	ledger_take(&l, &r, &p, &s);
	check_int(s.kind, LEDGER_LAST_SLICE);
	ledger_charge(&l, &r, &s, 2);
	ledger_end(&l, give, &g);
	/* 61 were reaped; 10, 9 and 40 counted. */
	check_u64(g.user_ns + g.system_ns, MS + 2 * MS);
	check_u64(l.counts.unexplained_ns, 0);
	ledger_done(&l);
}

static void shared_out(void)
{
	struct given g = {0};
	struct ledger l;

	begin(&l);
	tick(&l, 2000);
	for (uint32_t i = 0; i < 20; i++)
		end_child(&l, 100 + i, PARENT, 1500, 4 * MS, i);
	ledger_reaped(&l, PARENT, 80 * MS + 333, 0);
	ledger_end(&l, give, &g);
	check_u64(g.user_ns + g.system_ns, 333);
	ledger_done(&l);
}

int main(void)
{
	TEST("a process that no tick saw counts whole", whole_life);
	TEST("of a known one counts what was not counted yet", last_slice);
	TEST("user and system time never fall when their shares move",
	     split_moves);
	TEST("the CPU clock at the last look counts if it says more",
	     clock_knows_more);
	TEST("an end that takes longer than its record knows counts once",
	     ends_slowly);
	TEST("a slice is never negative, and what fell is counted",
	     never_negative);
	TEST("a record of another process with that number is told apart",
	     other_process);
	TEST("who ends while we are stopped in a tick is no stranger",
	     taken_late);
	TEST("setting the clock makes nobody a stranger", clock_set);
	TEST("a suspended host makes nobody a stranger", suspended);
	TEST("who lived before us and was not known counts nothing", before_us);
	TEST("what may be but a thread is asked about", unsure);
	TEST("a process whose record never comes is released", never_came);
	TEST("what a parent reaped beyond the records is given out once",
	     rest_given);
	TEST("no more is given out than the records leave open",
	     rest_is_bounded);
	TEST("a child may be reaped ticks after its record", reaped_later);
	TEST("a child that is never reaped is forgotten", never_reaped);
	TEST("a child's children go with it to its parent", passed_on);
	TEST("nothing is lost in sharing out", shared_out);
	return tap_done();
}
