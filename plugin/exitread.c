/* SPDX-License-Identifier: MIT */
#include "exitread.h"
#include "bulk.h"
#include "clocks.h"
#include "series.h"

enum {
	SWEEP_TICKS = 60,
	ACCOUNTS_MAX = 65536,
	RECORDS_MAX = 1 << 20,
};

/* Which counter of a process is which value of its record. */
static const struct {
	enum exit_value value;
	enum metric_source source;
	unsigned field;
	const char *key;
} same[] = {
    {EXIT_MINFLT, SOURCE_STAT, STAT_FIELD_MINFLT, NULL},
    {EXIT_MAJFLT, SOURCE_STAT, STAT_FIELD_MAJFLT, NULL},
    {EXIT_READ_CHARS, SOURCE_IO, 0, "rchar"},
    {EXIT_WRITE_CHARS, SOURCE_IO, 0, "wchar"},
    {EXIT_READ_CALLS, SOURCE_IO, 0, "syscr"},
    {EXIT_WRITE_CALLS, SOURCE_IO, 0, "syscw"},
    {EXIT_READ_BYTES, SOURCE_IO, 0, "read_bytes"},
    {EXIT_WRITE_BYTES, SOURCE_IO, 0, "write_bytes"},
    {EXIT_NVCSW, SOURCE_TASKS, 0, "voluntary_ctxt_switches"},
    {EXIT_NIVCSW, SOURCE_TASKS, 0, "nonvoluntary_ctxt_switches"},
    {EXIT_CPU_WAIT, SOURCE_DELAY, 0, "cpu"},
    {EXIT_BLKIO_WAIT, SOURCE_DELAY, 0, "blkio"},
    {EXIT_SWAPIN_WAIT, SOURCE_DELAY, 0, "swapin"},
};

static unsigned row_of(enum metric_source source, unsigned field,
		       const char *key)
{
	for (unsigned row = 0; row < METRIC_N_STORED; row++) {
		const struct metric *m = &metrics[row];

		if (m->source == source && m->field == field &&
		    (!key || strcmp(m->key, key) == 0))
			return row;
	}
	return METRIC_N;
}

static void find_rows(struct exitread *x)
{
	memset(x->row, METRIC_N, sizeof(x->row));
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		x->row[same[i].value] =
		    (uint8_t)row_of(same[i].source, same[i].field, same[i].key);
	for (unsigned i = 0; i < 2; i++) {
		x->cpu_row[i] = row_of(SOURCE_STAT, STAT_FIELD_UTIME + i, NULL);
		x->reaped_row[i] =
		    row_of(SOURCE_STAT, STAT_FIELD_CUTIME + i, NULL);
	}
	x->threads_row = row_of(SOURCE_STAT, STAT_FIELD_THREADS, NULL);
}

static void forget_left(void *arg, void *ref)
{
	struct monitor *m = arg;

	proctab_let_go(&m->tab, (uint32_t)((uintptr_t)ref - 1));
}

static void begin_listening(struct monitor *m)
{
	struct exitread *x = &m->exits;
	struct exits_options usual = {0};
	int r = EXITS_INSIDE;

	if (procfs_is_own(&m->fs))
		r = pump_open(&x->pump, &usual);
	x->was_tried = !procfs_is_transient(r);
	if (r != 0) {
		x->outcome = r;
		return;
	}
	x->outcome = 0;
	x->is_open = true;
	find_rows(x);
	ledger_init(&x->ledger, forget_left, m);
	pidmap_init(&x->by_pid, sizeof(uint32_t) * 2, RECORDS_MAX);
	pidmap_init(&x->accounts, sizeof(struct account), ACCOUNTS_MAX);
	m->tab.keeps_left = true;
	m->groups.has_exits = true;
}

/* Paths are learned if some rule asks for them. */
static void mind_paths(struct monitor *m)
{
	struct exitread *x = &m->exits;
	bool wanted =
	    x->is_open && m->rules->sources & SUBJECT_BIT(SUBJECT_EXE);

	if (wanted == (m->classifier.exes != NULL))
		return;
	m->classifier.exes = NULL;
	/* Out of memory: no such rule takes what was not seen. */
	if (wanted && exepath_init(&x->exes) == 0)
		m->classifier.exes = &x->exes;
	else
		exepath_done(&x->exes);
}

void exitread_close(struct monitor *m)
{
	struct exitread *x = &m->exits;

	if (!x->is_open)
		return;
	m->classifier.exes = NULL;
	m->tab.keeps_left = false;
	ledger_done(&x->ledger);
	/* Those who left since the ledger was asked last. */
	for (size_t i = 0; i < m->tab.n_left_now; i++)
		proctab_let_go(&m->tab, m->tab.left_now[i]);
	m->tab.n_left_now = 0;
	pump_close(&x->pump);
	exepath_done(&x->exes);
	pidmap_done(&x->by_pid);
	pidmap_done(&x->accounts);
	bulk_free(&x->held, &x->held_cap, sizeof(*x->held));
	bulk_free(&x->end, &x->end_cap, sizeof(*x->end));
	bulk_free(&x->place, &x->place_cap, sizeof(*x->place));
	free(x->newborn);
	*x = (struct exitread){.was_tried = true};
}

void exitread_open(struct monitor *m)
{
	struct exitread *x = &m->exits;

	if (x->was_tried)
		return;
	x->was_tried = true;
	if (m->rules->limits.no_exits)
		exitread_close(m);
	else if (!x->is_open)
		begin_listening(m);
	mind_paths(m);
}

void exitread_begin(struct monitor *m)
{
	if (m->exits.is_open)
		ledger_begin(&m->exits.ledger, &m->now);
}

void exitread_count(struct monitor *m, const struct proc *p,
		    const struct growth *growth)
{
	struct exitread *x = &m->exits;
	uint64_t ns[2] = {0};

	for (unsigned i = 0; x->is_open && i < 2; i++)
		if (growth->rows & METRIC_BIT(x->reaped_row[i]))
			ns[i] = exitread_ns(m, growth->by[x->reaped_row[i]]);
	if (ns[0] || ns[1])
		ledger_reaped(&x->ledger, (uint32_t)p->at.pid, ns[0], ns[1]);
}

/* Those who wait, and what came of their records, for the next tick. */
static void hold_back(struct monitor *m)
{
	struct exitread *x = &m->exits;
	size_t n_waiting = 0, n = 0;

	for (size_t i = 0; i < x->n; i++)
		n_waiting += x->end[i].waits;
	if (bulk_reserve(&x->held, &x->held_cap, n_waiting, sizeof(*x->held)) <
	    0) {
		x->n_lost += n_waiting;
		n_waiting = 0;
	}
	/* They waited not longer than one tick: they are of those that came. */
	for (size_t i = x->n_held; n_waiting && i < x->n; i++) {
		if (!x->end[i].waits)
			continue;
		x->held[n] = x->came[i - x->n_held];
		x->end[n] = x->end[i];
		x->end[n].entry = 0; /* numbers of the table are others then */
		x->end[n++].waits = false;
	}
	x->n_held = n;
}

/* When a storm is over: what those who wait do not need. */
static void give_back(struct exitread *x)
{
	if (!bulk_is_spare(&x->n_spare, x->n, x->end_cap))
		return;
	bulk_trim(&x->held, &x->held_cap, x->n_held, sizeof(*x->held));
	bulk_trim(&x->end, &x->end_cap, x->n_held, sizeof(*x->end));
	bulk_free(&x->place, &x->place_cap, sizeof(*x->place));
	x->n = x->n_held;
	x->n_places = 0;
}

static bool keep_none(_unused_ void *arg, _unused_ void *entry)
{
	return false;
}

static bool lives(void *arg, uint32_t pid)
{
	struct monitor *m = arg;

	return proctab_find_pid(&m->tab, (pid_t)pid) != NULL;
}

static void clean_up(struct monitor *m)
{
	struct exitread *x = &m->exits;

	for (size_t i = 0; i < x->n; i++)
		if (x->end[i].left)
			proctab_let_go(&m->tab, x->end[i].left - 1);
	hold_back(m);
	give_back(x);
	pidmap_sweep(&x->by_pid, keep_none, NULL);
	pidmap_sweep(&x->accounts, keep_none, NULL);
	if (++x->n_ticks % SWEEP_TICKS == 0)
		pump_sweep(&x->pump, lives, m);
}

void exitread_take(struct monitor *m)
{
	struct exitread *x = &m->exits;
	size_t n = 0;

	if (!x->is_open)
		return;
	exitread_leave(m);
	/* What could not be had now comes in the next tick, or is counted. */
	(void)pump_take(&x->pump, &x->came, &n);
	ledger_late(&x->ledger, clocks_read(CLOCK_BOOTTIME) - m->began_ns);
	x->n_records += n;
	if (bulk_reserve(&x->end, &x->end_cap, x->n_held + n, sizeof(*x->end)) <
	    0) {
		x->n_lost += n;
		n = 0;
	}
	x->n = x->n_held + n;
	for (size_t i = x->n_held; i < x->n; i++)
		exitread_take_one(m, i);
	exitread_place(m);
	for (size_t i = 0; i < x->n; i++)
		exitread_settle(m, i);
	ledger_end(&x->ledger, exitread_give, m);
	clean_up(m);
}

static void hold(struct monitor *m, const struct proc *p)
{
	for (size_t v = 0; v < m->tab.n_views; v++) {
		if (p->place[v].group)
			p->place[v].group->is_awaited = true;
		if (p->member && p->member->in[v].series)
			p->member->in[v].series->is_awaited = true;
	}
}

void exitread_hold(struct monitor *m)
{
	const struct proctab *t = &m->tab;

	if (!m->exits.is_open)
		return;
	for (size_t i = 0; i < t->n_left; i++)
		if (t->left[i].proc)
			hold(m, t->left[i].proc);
	for (size_t i = 0; t->n_gone && i < t->n_procs; i++)
		if (t->entry[i].proc->flags & PROC_IS_GONE)
			hold(m, t->entry[i].proc);
}

static void tell_why_not(struct monitor *m)
{
	static const char *const why[] = {
	    [EXITS_MISSING] = "this kernel has no taskstats",
	    [EXITS_DENIED] = "that takes CAP_NET_ADMIN",
	    [EXITS_INSIDE] = "it gives them in its initial namespaces alone",
	};
	int r = m->exits.outcome;

	if (m->told.no_exits || r == 0 || !m->fs.same_pids)
		return;
	m->told.no_exits = true;
	monitor_tell(m, MONITOR_INFO,
		     "no exit records from the kernel (%s): what processes use "
		     "after their last reading is not counted, nor those that "
		     "come and go between two",
		     r < 0 ? strerror(-r) : why[r]);
}

void exitread_tell(struct monitor *m)
{
	struct exitread *x = &m->exits;
	struct selfstat *self = &m->self;
	struct pump_state s;

	self->exit_records = x->is_open;
	self->exits = self->exits_lost = self->exits_unsettled =
	    SELFSTAT_ABSENT;
	if (!x->is_open) {
		tell_why_not(m);
		return;
	}
	s = pump_look(&x->pump);
	self->exits = x->n_records;
	self->exits_lost = s.n_lost + s.n_bad + x->n_lost;
	self->exits_unsettled = x->ledger.counts.n_unsettled;
	if (!self->exits_lost || m->told.exits_lost)
		return;
	m->told.exits_lost = true;
	monitor_tell(m, MONITOR_WARNING,
		     "%zu exit records were lost: more processes ended than "
		     "could be noted; _self/total_operations-exits_lost goes "
		     "on counting",
		     (size_t)self->exits_lost);
}
