/* SPDX-License-Identifier: MIT */
/*
 * A world in which processes fork, run, end, become zombies and are reaped at
 * random moments, also in the middle of a tick, and numbers are given again.
 * A caller of plugin/ledger.c counts in it; what it counted is compared with
 * the truth. Times are in steps of one millisecond.
 */
#include "ledger.h"

#include "tap.h"

#define MS NSEC_PER_MSEC
#define US UINT64_C(1000)
#define S NSEC_PER_SEC

enum {
	N_PROCS = 30000, /* in the life of a world */
	N_GROUPS = 4,
	N_RECORDS = 30000,
	STEPS_PER_TICK = 1000,
	N_TICKS = 40,
	LIVING_MAX = 150,
};

enum state { NONE, ALIVE, ZOMBIE, GONE };

struct proc {
	enum state state;
	uint32_t pid, group;
	unsigned parent; /* index; 0 is init */
	uint64_t start_boot, start_mono, user, system, faults;
	uint64_t reaped_user, reaped_system;
	/* Of the caller: */
	bool known, ended, never_sampled, before_us;
	uint64_t seen_user, seen_system, seen_clock, seen_faults;
	uint64_t seen_reaped_user, seen_reaped_system;
};

/* What kind of world. */
struct rules {
	bool everybody_waits; /* no orphans, no autoreap, no lazy parents */
	bool families;	      /* children are in their parent's group */
	bool clock_jumps, suspends;
	bool frozen;
	unsigned n_pids;
	unsigned fork_ppm, end_ppm, reap_ppm; /* of a chance per step */
};

struct world {
	struct rules rules;
	uint32_t random;
	struct moment now;
	struct proc p[N_PROCS];
	unsigned n;
	unsigned living[LIVING_MAX + 1], n_living; /* zombies included */
	uint32_t last_pid;
	struct exitrec record[N_RECORDS];
	unsigned n_records, n_taken;
	struct ledger ledger;
	uint64_t cpu[N_GROUPS], faults[N_GROUPS], starts[N_GROUPS];
	uint64_t old_cpu[N_GROUPS], old_faults[N_GROUPS]; /* before us */
	uint64_t n_starts[N_GROUPS];
	uint64_t slack;
	unsigned n_slices, n_wholes;
};

static uint32_t dice(struct world *w, uint32_t sides)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 17;
	w->random ^= w->random << 5;
	return w->random % sides;
}

static bool chance(struct world *w, unsigned ppm)
{
	return dice(w, 1000000) < ppm;
}

static bool is_taken(const struct world *w, uint32_t pid)
{
	for (unsigned i = 0; i < w->n_living; i++)
		if (w->p[w->living[i]].pid == pid)
			return true;
	return false;
}

static void born(struct world *w, unsigned parent)
{
	struct proc *p = &w->p[w->n];
	const struct proc *of = &w->p[parent];

	do
		w->last_pid = w->last_pid % w->rules.n_pids + 1;
	while (is_taken(w, w->last_pid));
	*p = (struct proc){
	    .state = ALIVE,
	    .pid = w->last_pid,
	    .parent = parent,
	    .group =
		w->rules.families && parent ? of->group : dice(w, N_GROUPS),
	    .start_boot = w->now.boot_ns,
	    .start_mono = w->now.mono_ns,
	};
	w->living[w->n_living++] = w->n++;
}

static void run(struct world *w, struct proc *p)
{
	p->user += dice(w, 400) * US;
	p->system += dice(w, 300) * US;
	p->faults += dice(w, 50);
}

/* As the kernel makes it, before the end of the end. */
static void leave_record(struct world *w, const struct proc *p)
{
	struct exitrec *r = &w->record[w->n_records++];
	uint64_t cpu = p->user + p->system;

	*r = (struct exitrec){
	    .pid = p->pid,
	    .tid = p->pid,
	    .ppid = w->p[p->parent].pid,
	    .n_threads = 1,
	    .uid = p->group,
	    .flags = EXIT_HAS_TGID | EXIT_LAST | EXIT_LEADER,
	    .have = EXIT_BIT(EXIT_UTIME_US) | EXIT_BIT(EXIT_STIME_US) |
		    EXIT_BIT(EXIT_MINFLT),
	    .elapsed_us = (w->now.mono_ns - p->start_mono) / US,
	    .cpu_max_ns = cpu + MS,
	};
	r->began_s = w->now.real_ns / S - r->elapsed_us / 1000000;
	r->run_ns = cpu - MIN(cpu, dice(w, 4000) * US);
	r->cpu_ns = r->run_ns + dice(w, (uint32_t)(cpu - r->run_ns) + 1);
	r->value[EXIT_UTIME_US] = p->user / (4 * MS) * 4000;
	r->value[EXIT_STIME_US] = p->system / (4 * MS) * 4000;
	r->value[EXIT_MINFLT] = p->faults;
}

static void leave(struct world *w, unsigned i)
{
	unsigned at = 0;

	w->p[i].state = GONE;
	while (w->living[at] != i)
		at++;
	w->living[at] = w->living[--w->n_living];
}

static void reap(struct world *w, unsigned i)
{
	const struct proc *p = &w->p[i];
	struct proc *parent = &w->p[p->parent];

	parent->reaped_user += p->user + p->reaped_user;
	parent->reaped_system += p->system + p->reaped_system;
	leave(w, i);
}

static void end(struct world *w, unsigned i)
{
	struct proc *p = &w->p[i];

	leave_record(w, p);
	p->system += dice(w, 200) * US;
	for (unsigned k = w->n_living; k-- > 0;) {
		struct proc *child = &w->p[w->living[k]];

		if (child->parent != i || child == p)
			continue;
		if (w->rules.everybody_waits && child->state == ZOMBIE)
			reap(w, w->living[k]);
		else
			child->parent = 0;
	}
	p->state = ZOMBIE;
	if (!w->rules.everybody_waits && dice(w, 20) == 0)
		leave(w, i); /* nobody waits */
}

static bool has_children(const struct world *w, unsigned parent)
{
	for (unsigned i = 0; i < w->n_living; i++)
		if (w->living[i] != parent &&
		    w->p[w->living[i]].parent == parent &&
		    w->p[w->living[i]].state == ALIVE)
			return true;
	return false;
}

static void live(struct world *w, unsigned i)
{
	struct proc *p = &w->p[i];

	if (p->state == ZOMBIE && chance(w, w->rules.reap_ppm)) {
		reap(w, i);
	} else if (p->state == ALIVE) {
		if (dice(w, 3) == 0)
			run(w, p);
		if (i && chance(w, w->rules.end_ppm) &&
		    !(w->rules.everybody_waits && has_children(w, i)))
			end(w, i);
		else if (chance(w, w->rules.fork_ppm) && w->n < N_PROCS &&
			 w->n_living < LIVING_MAX)
			born(w, i);
	}
}

static void step(struct world *w)
{
	if (w->rules.frozen)
		return;
	w->now.boot_ns += MS;
	w->now.mono_ns += MS;
	w->now.real_ns += MS;
	if (w->rules.suspends && dice(w, 3000) == 0) {
		w->now.boot_ns += 5 * S;
		w->now.real_ns += 5 * S;
	}
	if (w->rules.clock_jumps && dice(w, 5000) == 0)
		w->now.real_ns += dice(w, 2) ? 600 * S : -(uint64_t)(600 * S);
	for (unsigned k = w->n_living; k-- > 0;)
		if (k < w->n_living)
			live(w, w->living[k]);
}

static void steps(struct world *w, unsigned n)
{
	while (n-- > 0)
		step(w);
}

/* From here on the caller. */

static struct ledger_process known_of(const struct proc *p)
{
	return (struct ledger_process){
	    .pid = p->pid,
	    .n_threads = 1,
	    .start_ns = p->start_boot / (10 * MS) * (10 * MS),
	    .user_ns = p->seen_user,
	    .system_ns = p->seen_system,
	    .clock_ns = p->seen_clock,
	    .reaped_user_ns = p->seen_reaped_user,
	    .reaped_system_ns = p->seen_reaped_system,
	    .have = EXIT_BIT(EXIT_MINFLT),
	    .value = {[EXIT_MINFLT] = p->seen_faults},
	    .ref = (void *)p,
	};
}

static void list(struct world *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		struct proc *p = &w->p[i];

		if (p->state == GONE && p->known) {
			struct ledger_process known = known_of(p);

			p->known = false;
			if (!p->ended && !p->never_sampled)
				ledger_left(&w->ledger, &known);
		} else if (p->state != GONE && !p->known) {
			p->known = true;
			p->never_sampled = p->state == ZOMBIE;
			if (!p->never_sampled)
				w->starts[p->group]++;
		}
	}
}

static uint64_t floored(uint64_t ns)
{
	return ns / (10 * MS) * (10 * MS);
}

static void look(struct proc *p)
{
	p->seen_user = floored(p->user);
	p->seen_system = floored(p->system);
	p->seen_clock = p->user + p->system;
	p->seen_faults = p->faults;
	p->seen_reaped_user = floored(p->reaped_user);
	p->seen_reaped_system = floored(p->reaped_system);
}

static void sample(struct world *w, struct proc *p)
{
	struct proc was = *p;

	look(p);
	w->cpu[p->group] +=
	    p->seen_user + p->seen_system - was.seen_user - was.seen_system;
	w->faults[p->group] += p->seen_faults - was.seen_faults;
	if (p->seen_reaped_user > was.seen_reaped_user ||
	    p->seen_reaped_system > was.seen_reaped_system)
		ledger_reaped(&w->ledger, p->pid,
			      p->seen_reaped_user - was.seen_reaped_user,
			      p->seen_reaped_system - was.seen_reaped_system);
}

static struct proc *known_by_pid(struct world *w, uint32_t pid)
{
	for (unsigned i = w->n; i-- > 0;)
		if (w->p[i].known && w->p[i].pid == pid && !w->p[i].ended &&
		    !w->p[i].never_sampled)
			return &w->p[i];
	return NULL;
}

static void take(struct world *w, const struct exitrec *r)
{
	struct proc *p = known_by_pid(w, r->pid);
	struct ledger_process known;
	struct ledger_slice s;
	uint32_t group = r->uid;

	if (p)
		known = known_of(p);
	ledger_take(&w->ledger, r, p ? &known : NULL, &s);
	if (s.kind == LEDGER_LAST_SLICE) {
		group = ((struct proc *)s.ref)->group;
		if (!s.was_gone)
			p->ended = true;
		w->n_slices++;
	} else if (s.kind == LEDGER_WHOLE_LIFE) {
		w->starts[group]++;
		w->n_wholes++;
	}
	w->cpu[group] += s.user_ns + s.system_ns;
	if (s.have & EXIT_BIT(EXIT_MINFLT))
		w->faults[group] += s.value[EXIT_MINFLT];
	ledger_charge(&w->ledger, r, &s, group);
}

static void receive_rest(void *arg, uint32_t group, uint64_t user_ns,
			 uint64_t system_ns)
{
	struct world *w = arg;

	w->cpu[group] += user_ns + system_ns;
}

static void tick(struct world *w)
{
	unsigned n;

	ledger_begin(&w->ledger, &w->now);
	list(w);
	steps(w, dice(w, 5));
	for (unsigned i = 0; i < w->n; i++) {
		struct proc *p = &w->p[i];

		if (!p->known || p->state == GONE || p->ended ||
		    p->never_sampled)
			continue;
		sample(w, p);
		if (dice(w, 20) == 0)
			step(w);
	}
	steps(w, dice(w, 5));
	for (n = w->n_records; w->n_taken < n; w->n_taken++)
		take(w, &w->record[w->n_taken]);
	ledger_end(&w->ledger, receive_rest, w);
}

/* Everybody is there already; half of them ended before we look. */
static void begin(struct world *w, const struct rules *rules, uint32_t seed)
{
	memset(w, 0, sizeof(*w));
	w->rules = *rules;
	w->random = seed * 2654435761u + 1;
	w->now = (struct moment){5000 * S, 5000 * S, 1700000000 * S};
	born(w, 0);
	steps(w, 3000);
	ledger_init(&w->ledger, NULL, NULL);
	w->n_records = 0;
	ledger_begin(&w->ledger, &w->now);
	for (unsigned i = 0; i < w->n; i++) {
		struct proc *p = &w->p[i];

		p->before_us = p->state == GONE;
		if (p->before_us)
			continue;
		p->known = true;
		p->never_sampled = p->state == ZOMBIE;
		look(p);
		w->old_cpu[p->group] += p->seen_user + p->seen_system;
		w->slack += 20 * MS; /* of their children before us */
		w->old_faults[p->group] += p->faults;
		w->n_starts[p->group]--; /* not by being born */
	}
	ledger_end(&w->ledger, receive_rest, w);
}

struct truth {
	uint64_t cpu[N_GROUPS], faults[N_GROUPS], starts[N_GROUPS], sum;
};

static struct truth truth_of(const struct world *w)
{
	struct truth t = {0};

	for (unsigned i = 0; i < w->n; i++) {
		const struct proc *p = &w->p[i];

		if (p->before_us)
			continue;
		t.cpu[p->group] += p->user + p->system;
		t.faults[p->group] += p->faults;
		t.starts[p->group]++;
	}
	for (unsigned g = 0; g < N_GROUPS; g++) {
		t.cpu[g] -= w->old_cpu[g];
		t.faults[g] -= w->old_faults[g];
		t.starts[g] += w->n_starts[g];
		t.sum += t.cpu[g];
	}
	return t;
}

static uint64_t sum_of(const uint64_t *v)
{
	uint64_t sum = 0;

	for (unsigned g = 0; g < N_GROUPS; g++)
		sum += v[g];
	return sum;
}

static void check_never_more(const struct world *w)
{
	struct truth t = truth_of(w);

	for (unsigned g = 0; g < N_GROUPS; g++) {
		if (w->faults[g] > t.faults[g])
			check_u64(w->faults[g], t.faults[g]);
		if (w->starts[g] > t.starts[g])
			check_u64(w->starts[g], t.starts[g]);
	}
	if (sum_of(w->cpu) > t.sum + w->slack)
		check_u64(sum_of(w->cpu), t.sum);
}

static void end_all(struct world *w)
{
	w->rules.fork_ppm = 0;
	w->rules.end_ppm = 20000;
	w->rules.reap_ppm = 100000;
	for (unsigned i = 0; i < 5; i++) {
		steps(w, STEPS_PER_TICK);
		tick(w);
		check_never_more(w);
	}
	check_u64(w->n_living, 1); /* init */
	w->rules.frozen = true;
	tick(w);
	check_never_more(w);
}

static struct world world;

static void run_world(const struct rules *rules, uint32_t seed)
{
	struct world *w = &world;
	struct truth t;

	begin(w, rules, seed);
	for (unsigned i = 0; i < N_TICKS; i++) {
		steps(w, STEPS_PER_TICK);
		tick(w);
		check_never_more(w);
	}
	end_all(w);
	t = truth_of(w);
	for (unsigned g = 0; g < N_GROUPS; g++) {
		check_u64(w->faults[g], t.faults[g]);
		check_u64(w->starts[g], t.starts[g]);
	}
	/* Init lives on: up to 20 ms of its own and 20 of its children's. */
	if (rules->everybody_waits)
		check(sum_of(w->cpu) + t.sum / 200 + 40 * MS >= t.sum);
	check_u64(w->ledger.counts.n_anomalies, 0);
	check_u64(w->ledger.counts.n_unsettled, 0);
	check(w->n_slices > 50 && w->n_wholes > 500);
	printf("# %u processes, %u slices, %u whole: %.4f of the truth\n", w->n,
	       w->n_slices, w->n_wholes,
	       (double)sum_of(w->cpu) / (double)t.sum);
	ledger_done(&w->ledger);
}

static void waiting(void)
{
	const struct rules rules = {
	    .everybody_waits = true,
	    .families = true,
	    .n_pids = 32000,
	    .fork_ppm = 20000,
	    .end_ppm = 15000,
	    .reap_ppm = 200000,
	};

	for (uint32_t seed = 1; seed <= 2; seed++)
		run_world(&rules, seed);
}

static void mixed(void)
{
	const struct rules rules = {
	    .n_pids = 32000,
	    .fork_ppm = 20000,
	    .end_ppm = 15000,
	    .reap_ppm = 2000,
	};

	for (uint32_t seed = 11; seed <= 12; seed++)
		run_world(&rules, seed);
}

static void clocks(void)
{
	const struct rules rules = {
	    .n_pids = 32000,
	    .clock_jumps = true,
	    .suspends = true,
	    .fork_ppm = 20000,
	    .end_ppm = 15000,
	    .reap_ppm = 20000,
	};

	for (uint32_t seed = 21; seed <= 22; seed++)
		run_world(&rules, seed);
}

static void few_numbers(void)
{
	const struct rules rules = {
	    .n_pids = 1500,
	    .fork_ppm = 10000,
	    .end_ppm = 8000,
	    .reap_ppm = 20000,
	};

	for (uint32_t seed = 31; seed <= 32; seed++)
		run_world(&rules, seed);
}

int main(void)
{
	TEST("where everybody waits, groups get what was used", waiting);
	TEST("orphans, zombies and the unreaped are counted once", mixed);
	TEST("they are while the clock is set and the host sleeps", clocks);
	TEST("they are while numbers are given again and again", few_numbers);
	return tap_done();
}
