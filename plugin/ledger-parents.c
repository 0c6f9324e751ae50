/* SPDX-License-Identifier: MIT */
#include "ledger-internal.h"

enum {
	/*
	 * A child that nobody waits for is never added to its parent
	 * (SIGCHLD ignored), or to somebody else. Our sum is then too large
	 * for ever, and is put right after so many ticks.
	 */
	OWES_TICKS = 6,
	IDLE_TICKS = 60, /* then it is not there any more, or has no children */
};

/* cutime and cstime are each so much too small, as stat cuts fractions off. */
#define CUT_OFF_NS ((int64_t)(10 * NSEC_PER_MSEC))

static struct parent *parent_of(struct ledger *l, uint32_t pid)
{
	struct parent *p = pidmap_add(&l->parents, pid);

	if (p)
		p->last_tick = l->tick;
	return p;
}

void ledger_reaped(struct ledger *l, uint32_t pid, uint64_t user_ns,
		   uint64_t system_ns)
{
	struct parent *p = parent_of(l, pid);

	if (!p)
		return;
	p->user_ns += (int64_t)user_ns;
	p->system_ns += (int64_t)system_ns;
}

static void add_share(struct parent *p, uint32_t account, uint64_t cpu_ns)
{
	struct share *most = &p->share[0];

	cpu_ns = MAX(cpu_ns, UINT64_C(1));
	for (unsigned i = 0; i < p->n_shares; i++) {
		struct share *s = &p->share[i];

		if (s->account == account) {
			s->cpu_ns += cpu_ns;
			return;
		}
		if (s->cpu_ns > most->cpu_ns)
			most = s;
	}
	if (p->n_shares < PARENT_SHARES)
		p->share[p->n_shares++] = (struct share){account, cpu_ns};
	else
		most->cpu_ns += cpu_ns;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/*
 * Who waits for a process is told what that used and what it was told itself;
 * of the latter it is ours what had grown until it was looked at last, less
 * what is owed, and what we counted since.
 */
void ledger_charge(struct ledger *l, const struct exitrec *r,
		   const struct ledger_slice *slice, uint32_t account)
{
	uint64_t total = slice->total_user_ns + slice->total_system_ns;
	struct parent *to = parent_of(l, r->ppid);
	struct parent *from = pidmap_find(&l->parents, r->pid);

	if (to) {
		to->user_ns -=
		    (int64_t)(slice->total_user_ns + slice->reaped_user_ns);
		to->system_ns -=
		    (int64_t)(slice->total_system_ns + slice->reaped_system_ns);
		if (slice->kind == LEDGER_LAST_SLICE ||
		    slice->kind == LEDGER_WHOLE_LIFE) {
			to->open_ns += minus(r->cpu_max_ns, total);
			add_share(to, account, r->cpu_ns);
		}
	}
	if (!from)
		return;
	if (to) {
		to->user_ns += from->user_ns;
		to->system_ns += from->system_ns;
		to->open_ns += from->open_ns + from->was_open_ns;
		for (unsigned i = 0; i < from->n_shares; i++)
			add_share(to, from->share[i].account,
				  from->share[i].cpu_ns);
	}
	pidmap_remove(&l->parents, from);
}

struct settling {
	struct ledger *l;
	ledger_give_fn *give;
	void *arg;
};

static uint64_t part_of(uint64_t whole, uint64_t part, uint64_t sum)
{
	return (uint64_t)((double)whole * ((double)part / (double)sum));
}

static void give_to_shares(const struct settling *s, const struct parent *p,
			   uint64_t user_ns, uint64_t system_ns)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < p->n_shares; i++)
		sum += p->share[i].cpu_ns;
	for (unsigned i = 0; i < p->n_shares; i++) {
		uint64_t cpu = p->share[i].cpu_ns;
		bool last = i + 1 == p->n_shares;
		uint64_t u = last ? user_ns : part_of(user_ns, cpu, sum);
		uint64_t v = last ? system_ns : part_of(system_ns, cpu, sum);

		u = MIN(u, user_ns);
		v = MIN(v, system_ns);
		user_ns -= u;
		system_ns -= v;
		sum -= cpu;
		if (u || v)
			s->give(s->arg, p->share[i].account, u, v);
	}
}

static void give(const struct settling *s, struct parent *p, uint64_t ns)
{
	uint64_t user = (uint64_t)MAX(p->user_ns, 0);
	uint64_t system = (uint64_t)MAX(p->system_ns, 0);
	uint64_t user_ns = MIN(part_of(ns, user, user + system), ns);

	s->l->counts.given_ns += ns;
	p->user_ns -= (int64_t)user_ns;
	p->system_ns -= (int64_t)(ns - user_ns);
	give_to_shares(s, p, user_ns, ns - user_ns);
}

static void forget(struct parent *p, int64_t up_to)
{
	p->user_ns = p->system_ns = -up_to;
	p->owes_since = 0;
}

static bool settle(void *arg, void *entry)
{
	const struct settling *s = arg;
	struct parent *p = entry;
	uint64_t open = p->open_ns + p->was_open_ns;
	int64_t owed = p->user_ns + p->system_ns;

	p->was_open_ns = p->open_ns;
	p->open_ns = 0;
	if (owed > 0 && p->n_shares) {
		uint64_t ns = MIN((uint64_t)owed, open);

		give(s, p, ns);
		p->was_open_ns = MIN(p->was_open_ns, open - ns);
		owed -= (int64_t)ns;
		open -= ns;
	}
	if (owed > (int64_t)open) {
		s->l->counts.unexplained_ns += (uint64_t)owed - open;
		forget(p, 0);
	} else if (owed >= -2 * CUT_OFF_NS) {
		p->owes_since = 0;
	} else if (!p->owes_since) {
		p->owes_since = s->l->tick;
	} else if (s->l->tick - p->owes_since >= OWES_TICKS) {
		forget(p, CUT_OFF_NS);
	}
	p->n_shares = 0;
	return true;
}

static bool is_busy(void *arg, void *entry)
{
	const struct ledger *l = arg;
	const struct parent *p = entry;

	return l->tick - p->last_tick < IDLE_TICKS;
}

void parents_settle(struct ledger *l, ledger_give_fn *fn, void *arg)
{
	struct settling s = {l, fn, arg};

	pidmap_sweep(&l->parents, settle, &s);
	pidmap_sweep(&l->parents, is_busy, l);
}
