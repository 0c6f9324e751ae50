/* SPDX-License-Identifier: MIT */
/*
 * Where those belong who came and went between two ticks. A record says who
 * the parent was at the end: that is the next one of that number to end, or
 * one that lives. So records are gone through backwards, and each is noted by
 * its number when it is done.
 */
#include "exitread.h"
#include "bulk.h"
#include "name.h"

struct note {
	uint32_t pid;
	uint32_t record;
};

static struct exitread_kin kin_of_proc(const struct proc *p)
{
	return (struct exitread_kin){
	    .pid = (uint32_t)p->at.pid,
	    .ppid = (uint32_t)p->ppid,
	    .start = p->start,
	    .comm = proc_comm(p),
	    .kernel = p->flags & PROC_KERNEL,
	    .traits = p->traits ? p->traits->holds : 0,
	    .place = p->place,
	};
}

/* Ticks since boot; it cannot have begun later. */
static uint64_t start_of(const struct monitor *m, const struct exitrec *r)
{
	uint64_t ns = r->elapsed_us * 1000;
	uint64_t hz = (uint64_t)m->fs.scale.ticks_per_second;

	ns = m->now.boot_ns > ns ? m->now.boot_ns - ns : 0;
	return ns / NSEC_PER_SEC * hz + ns % NSEC_PER_SEC * hz / NSEC_PER_SEC;
}

static bool kin_of_record(const struct monitor *m, size_t i,
			  struct exitread_kin *ret)
{
	const struct exitrec *r = exitread_record(m, i);
	const struct proc *p = exitread_proc(m, i);

	if (p) {
		*ret = kin_of_proc(p);
		return true;
	}
	if (m->exits.end[i].kind != LEDGER_WHOLE_LIFE || m->exits.end[i].waits)
		return false;
	*ret = (struct exitread_kin){
	    .pid = r->pid,
	    .ppid = r->ppid,
	    .start = start_of(m, r),
	    .comm = r->comm,
	    .traits = m->exits.end[i].traits,
	    .place = m->exits.place + m->exits.end[i].place,
	};
	return true;
}

bool exitread_find_kin(struct monitor *m, uint32_t pid, uint64_t start,
		       struct exitread_kin *ret)
{
	const struct note *note = pidmap_find(&m->exits.by_pid, pid);
	struct proc_entry *e;

	if (note)
		return kin_of_record(m, note->record, ret);
	e = pid ? proctab_find_pid(&m->tab, (pid_t)pid) : NULL;
	/* It was there before, but for what its ticks were rounded by. */
	if (!e || !e->proc->start || e->proc->start > start + 1)
		return false;
	if (!(e->proc->flags & PROC_TRAITS_KNOWN) && m->rules->n_kin)
		e->proc->flags |= PROC_WANTS_TRAITS;
	*ret = kin_of_proc(e->proc);
	return true;
}

/* Who is being placed. */
struct newcomer {
	struct monitor *m;
	const struct exitrec *record;
	uint64_t start;
};

static void take_from(const struct newcomer *who, size_t view,
		      const struct exitread_kin *kin, unsigned distance,
		      struct placing_in *ret)
{
	const struct proc_place *from = &kin->place[view];

	*ret = (struct placing_in){.kind = PLACING_HEIR, .group = from->group};
	if (from->rule)
		ret->rule = &who->m->rules->rule[from->rule - 1];
	ret->heritage = inherit_take(&from->heritage, distance);
	ret->heritage.ppid = (pid_t)who->record->ppid;
	ret->heritage.from = (pid_t)kin->pid;
	ret->heritage.from_start = (uint32_t)kin->start;
	if (from->heritage.how == HERITAGE_DROPPED) {
		ret->kind = PLACING_DROP;
		ret->heritage.how = HERITAGE_DROPPED;
	}
}

static bool is_manager(const struct monitor *m, const struct exitread_kin *kin)
{
	return (kin->pid == 1 && !m->rules->init_gives) ||
	       ruleset_is_manager(m->rules, str_of(kin->comm));
}

static bool inherit(void *arg, size_t view, struct placing_in *ret)
{
	const struct newcomer *who = arg;
	struct exitread_kin kin = {.ppid = who->record->ppid,
				   .start = who->start};

	for (unsigned i = 1; i <= INHERIT_STEPS_MAX; i++) {
		enum inherit_step step;

		if (!exitread_find_kin(who->m, kin.ppid, kin.start, &kin) ||
		    is_manager(who->m, &kin))
			return false;
		step = inherit_from(&kin.place[view].heritage, i);
		if (step != INHERIT_TAKE && step != INHERIT_DROP)
			continue;
		take_from(who, view, &kin, i, ret);
		return true;
	}
	return false;
}

/* Traits of those it came from; `ancestor` looks up to a manager. */
static void find_traits(const struct newcomer *who, struct classify_record *ret)
{
	struct exitread_kin kin = {.ppid = who->record->ppid,
				   .start = who->start};

	for (unsigned i = 0; i < INHERIT_STEPS_MAX; i++) {
		if (!exitread_find_kin(who->m, kin.ppid, kin.start, &kin))
			return;
		if (i == 0)
			ret->parent_traits = kin.traits;
		ret->ancestor_traits |= kin.traits;
		if (ruleset_is_manager(who->m->rules, str_of(kin.comm)))
			return;
	}
}

/* It stands for one process after the other. */
static struct proc *newborn(struct monitor *m)
{
	struct exitread *x = &m->exits;
	size_t n = m->tab.n_views;

	if (!x->newborn || x->newborn_views != n) {
		free(x->newborn);
		x->newborn =
		    malloc(sizeof(struct proc) + n * sizeof(struct proc_place));
		x->newborn_views = n;
	}
	if (x->newborn)
		memset(x->newborn, 0,
		       sizeof(struct proc) + n * sizeof(struct proc_place));
	return x->newborn;
}

/*
 * A group for each would be gone before anybody looked: they are counted
 * together where a rule's processes go that are too many.
 */
static void gather_singles(const struct monitor *m, struct placing *pl)
{
	for (size_t v = 0; v < m->tab.n_views; v++) {
		struct placing_in *in = &pl->in[v];

		if (in->kind == PLACING_NAME && in->rule && in->rule->name &&
		    in->rule->overflow && name_is_per_process(in->rule->name))
			monitor_static_name(in->rule->overflow, &in->name);
	}
}

static const char *exe_of(struct monitor *m, const struct exitrec *r)
{
	if (!(r->flags & EXIT_HAS_EXE) || !m->classifier.exes)
		return NULL;
	return exepath_find(m->classifier.exes, r->exe_dev, r->exe_inode,
			    r->comm);
}

static int place_one(struct monitor *m, size_t i)
{
	struct exitread *x = &m->exits;
	struct exitread_end *end = &x->end[i];
	const struct exitrec *r = exitread_record(m, i);
	struct newcomer who = {m, r, start_of(m, r)};
	struct classify_record record = {
	    .uid = r->uid,
	    .gid = r->gid,
	    .exe_path = exe_of(m, r),
	    .inherit = inherit,
	    .arg = &who,
	};
	struct proc *p = newborn(m);
	struct proc_entry e = {.pid = (pid_t)r->pid, .proc = p};
	struct exitread_kin parent = {0};
	bool is_known = exitread_find_kin(m, r->ppid, who.start, &parent);
	struct placing pl;

	/* It began after the processes were listed, and has not ended yet. */
	if (!is_known && r->ppid > 1 && i >= x->n_held) {
		end->waits = true;
		return 0;
	}
	if (!p ||
	    bulk_reserve(&x->place, &x->place_cap, x->n_places + m->tab.n_views,
			 sizeof(*x->place)) < 0)
		return -ENOMEM;
	procfs_pid_init(&p->at, e.pid);
	p->flags = PROC_NEW | PROC_BORN;
	p->ppid = (pid_t)r->ppid;
	p->start = MAX(who.start, UINT64_C(1));
	memcpy(p->comm.brief, r->comm, sizeof(p->comm.brief));
	/* One that never became a program of its own is what its parent is. */
	record.kernel = r->flags & EXIT_FORKED && parent.kernel;
	if (m->rules->n_kin)
		find_traits(&who, &record);
	classify_by_record(&m->classifier, &e, &record, &pl, &end->traits);
	gather_singles(m, &pl);
	end->place = (uint32_t)x->n_places;
	memset(x->place + end->place, 0, m->tab.n_views * sizeof(*x->place));
	x->n_places += m->tab.n_views;
	return monitor_find_places(m, p, &pl, x->place + end->place);
}

void exitread_place(struct monitor *m)
{
	struct exitread *x = &m->exits;

	x->n_places = 0;
	for (size_t i = x->n; i-- > 0;) {
		struct exitread_end *end = &x->end[i];
		struct note *note;

		if (end->kind == LEDGER_WHOLE_LIFE && !exitread_proc(m, i) &&
		    place_one(m, i) < 0) {
			end->kind = LEDGER_NOTHING;
			x->n_lost++;
		}
		note = pidmap_add(&x->by_pid, exitread_record(m, i)->pid);
		if (note)
			note->record = (uint32_t)i;
	}
	m->classifier.record = NULL;
}
