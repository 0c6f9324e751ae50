/* SPDX-License-Identifier: MIT */
/*
 * What the records of a tick add to which groups: between the ledger, which
 * knows processes and no group, and the groups.
 */
#include "exitread.h"
#include "series.h"

uint64_t exitread_ns(const struct monitor *m, uint64_t ticks)
{
	uint64_t hz = (uint64_t)m->fs.scale.ticks_per_second;

	return ticks / hz * NSEC_PER_SEC + ticks % hz * NSEC_PER_SEC / hz;
}

/* In this tick: who did not run since its last look has not ended. */
static bool is_seen_to_live(const struct proc *p)
{
	return !(p->flags &
		 (PROC_EXITS | PROC_IS_GONE | PROC_HANGS | PROC_MISSED));
}

/* What is known of a process. */
static struct ledger_process known_of(const struct monitor *m,
				      const struct proc_entry *e, void *ref)
{
	const struct exitread *x = &m->exits;
	const struct proc *p = e->proc;
	struct ledger_process known = {
	    .pid = (uint32_t)e->pid,
	    .n_threads = (uint32_t)p->value[x->threads_row],
	    .start_ns = exitread_ns(m, p->start),
	    .user_ns = exitread_ns(m, p->value[x->cpu_row[0]]),
	    .system_ns = exitread_ns(m, p->value[x->cpu_row[1]]),
	    .reaped_user_ns = exitread_ns(m, p->value[x->reaped_row[0]]),
	    .reaped_system_ns = exitread_ns(m, p->value[x->reaped_row[1]]),
	    .clock_ns = e->clock,
	    .is_ending = p->flags & PROC_EXITS,
	    .ref = ref,
	};

	for (unsigned i = 0; i < EXIT_N_VALUES; i++) {
		unsigned row = x->row[i];

		if (row == METRIC_N || !(p->have & METRIC_BIT(row)) ||
		    (metrics[row].source == SOURCE_TASKS &&
		     !proctab_tasks_are_whole(p)))
			continue;
		known.value[i] = p->value[row];
		known.have |= EXIT_BIT(i);
	}
	return known;
}

void exitread_leave(struct monitor *m)
{
	struct proctab *t = &m->tab;

	for (size_t i = 0; i < t->n_left_now; i++) {
		uint32_t number = t->left_now[i];
		void *ref = (void *)(uintptr_t)(number + 1);
		struct ledger_process known =
		    known_of(m, &t->left[number], ref);

		ledger_left(&m->exits.ledger, &known);
	}
	t->n_left_now = 0;
}

static void count_in(const struct exitread *x, struct group *g,
		     const struct ledger_slice *s)
{
	if (!g)
		return;
	group_count_exited(g, s->user_ns, s->system_ns);
	for (uint32_t have = s->have; have; have &= have - 1) {
		unsigned i = (unsigned)__builtin_ctz(have);
		unsigned row = x->row[i];

		if (row < METRIC_N &&
		    g->wanted & ~x->unmeasured & METRIC_BIT(row))
			group_count(g, row, s->value[i]);
	}
	g->idle_since_ns = 0; /* it begins anew if it has no member */
}

/* The last slice of one that was counted, in its groups and series. */
static void count_slice(struct monitor *m, const struct proc *p,
			const struct ledger_slice *s)
{
	for (size_t v = 0; v < m->tab.n_views; v++) {
		count_in(&m->exits, p->place[v].group, s);
		if (p->member)
			count_in(&m->exits, p->member->in[v].series, s);
	}
}

/*
 * A kernel that does not tell threads from processes: some process with
 * threads has the same parent and user.
 */
static bool may_be_thread(const struct monitor *m, const struct exitrec *r)
{
	for (size_t i = 0; i < m->tab.n_procs; i++) {
		const struct proc *p = m->tab.entry[i].proc;

		if (p->start && (uint32_t)p->ppid == r->ppid &&
		    p->value[m->exits.threads_row] > 1 &&
		    (!(p->flags & PROC_UID_KNOWN) || p->uid == r->uid))
			return true;
	}
	return false;
}

/* Nobody counted it: what it used is in its record alone. */
static void take_whole(struct monitor *m, const struct exitrec *r, bool may_ask,
		       struct ledger_slice *ret)
{
	struct exitrec sure = *r;

	if (may_ask && may_be_thread(m, r))
		return;
	sure.flags &= ~(uint32_t)EXIT_UNSURE;
	ledger_take(&m->exits.ledger, &sure, NULL, ret);
}

const struct exitrec *exitread_record(const struct monitor *m, size_t i)
{
	const struct exitread *x = &m->exits;

	return i < x->n_held ? &x->held[i] : &x->came[i - x->n_held];
}

void exitread_take_one(struct monitor *m, size_t i)
{
	struct exitread *x = &m->exits;
	const struct exitrec *r = exitread_record(m, i);
	struct exitread_end *end = &x->end[i];
	struct proc_entry *e = proctab_find_pid(&m->tab, (pid_t)r->pid);
	struct ledger_process live;
	struct ledger_slice s;

	if (e && (!e->proc->start || e->proc->flags & PROC_ENDED))
		e = NULL;
	if (e)
		live = known_of(m, e, NULL);
	if (e && is_seen_to_live(e->proc))
		live.lived_ns = m->now.boot_ns;
	ledger_take(&x->ledger, r, e ? &live : NULL, &s);
	*end = (struct exitread_end){.was_gone = s.was_gone};
	if (s.kind == LEDGER_LAST_SLICE && s.was_gone) {
		end->left = (uint32_t)(uintptr_t)s.ref;
		count_slice(m, m->tab.left[end->left - 1].proc, &s);
	} else if (s.kind == LEDGER_LAST_SLICE && e) {
		end->entry = (uint32_t)(e - m->tab.entry) + 1;
		if (proc_is_counted(e->proc))
			count_slice(m, e->proc, &s);
		else
			take_whole(m, r, false, &s);
		e->proc->flags |= PROC_ENDED;
		e->proc->flags &= ~(uint32_t)PROC_BORN;
	} else if (s.kind == LEDGER_UNSURE) {
		take_whole(m, r, true, &s);
	}
	end->kind = s.kind;
	end->total_user_ns = s.total_user_ns;
	end->total_system_ns = s.total_system_ns;
	end->reaped_user_ns = s.reaped_user_ns;
	end->reaped_system_ns = s.reaped_system_ns;
}

struct proc *exitread_proc(const struct monitor *m, size_t i)
{
	const struct exitread_end *end = &m->exits.end[i];

	if (end->left)
		return m->tab.left[end->left - 1].proc;
	if (end->entry &&
	    !(m->tab.entry[end->entry - 1].proc->flags & PROC_NEW))
		return m->tab.entry[end->entry - 1].proc;
	return NULL;
}

const struct proc_place *exitread_places(const struct monitor *m, size_t i)
{
	const struct proc *p = exitread_proc(m, i);

	if (p)
		return p->place;
	if (m->exits.end[i].kind == LEDGER_WHOLE_LIFE && !m->exits.end[i].waits)
		return m->exits.place + m->exits.end[i].place;
	return NULL;
}

/* Groups that count the same have one number. */
static uint32_t account_of(struct monitor *m, const struct proc_place *place)
{
	struct account want = {0}, *a;
	size_t size = sizeof(want.group);

	for (size_t v = 0; v < m->tab.n_views; v++)
		want.group[v] = place[v].group;
	want.number =
	    (uint32_t)hash_bytes((struct str){(char *)want.group, size});
	for (;; want.number++) {
		want.number = MAX(want.number, UINT32_C(1));
		a = pidmap_find(&m->exits.accounts, want.number);
		if (!a)
			break;
		if (memcmp(a->group, want.group, size) == 0)
			return want.number;
	}
	a = pidmap_add(&m->exits.accounts, want.number);
	if (a)
		*a = want;
	return want.number;
}

static void count_whole(struct monitor *m, const struct exitrec *r,
			const struct exitread_end *end,
			const struct proc_place *place)
{
	struct ledger_slice s = {
	    .user_ns = end->total_user_ns,
	    .system_ns = end->total_system_ns,
	    .have = r->have,
	};

	memcpy(s.value, r->value, sizeof(s.value));
	for (size_t v = 0; v < m->tab.n_views; v++) {
		count_in(&m->exits, place[v].group, &s);
		if (place[v].group)
			group_count_birth(place[v].group);
	}
}

void exitread_settle(struct monitor *m, size_t i)
{
	struct exitread *x = &m->exits;
	const struct exitread_end *end = &x->end[i];
	const struct proc_place *place = exitread_places(m, i);
	struct ledger_slice s = {
	    .kind = end->kind,
	    .was_gone = end->was_gone,
	    .total_user_ns = end->total_user_ns,
	    .total_system_ns = end->total_system_ns,
	    .reaped_user_ns = end->reaped_user_ns,
	    .reaped_system_ns = end->reaped_system_ns,
	};

	if (end->kind == LEDGER_UNSURE || end->waits)
		return;
	if (end->kind == LEDGER_WHOLE_LIFE)
		count_whole(m, exitread_record(m, i), end, place);
	ledger_charge(&x->ledger, exitread_record(m, i), &s,
		      place ? account_of(m, place) : 0);
}

void exitread_give(void *arg, uint32_t account, uint64_t user_ns,
		   uint64_t system_ns)
{
	struct monitor *m = arg;
	const struct account *a = pidmap_find(&m->exits.accounts, account);

	for (size_t v = 0; a && v < m->tab.n_views; v++)
		if (a->group[v])
			group_count_exited(a->group[v], user_ns, system_ns);
}
