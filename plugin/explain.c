/* SPDX-License-Identifier: MIT */
#include "explain-internal.h"
#include "clocks.h"

#include <signal.h>

#define ANSWER_NS NSEC_PER_SEC	    /* that a command line is waited for */
#define POLL_NS (5 * NSEC_PER_MSEC) /* how often it is looked for */
#define PATIENCE_NS (20 * NSEC_PER_MSEC)
void explain_end(struct explain *x)
{
	if (x->line.s)
		x->fn(x->arg, x->line.s);
	textline_clear(&x->line);
}

bool monitor_is_settled(const struct monitor *m)
{
	const uint32_t given_up = PROC_IS_GONE | PROC_HANGS | PROC_IS_STALLED;

	for (size_t i = 0; m->rules && i < m->tab.n_procs; i++) {
		uint32_t flags = m->tab.entry[i].proc->flags;

		if (!(flags & given_up) &&
		    flags & (PROC_NEW | PROC_RENAMED | PROC_AWAITS))
			return false;
	}
	return true;
}

static struct proc_entry *find_entry(struct monitor *m, pid_t pid)
{
	for (size_t i = 0; i < m->tab.n_procs; i++) {
		struct proc_entry *e = &m->tab.entry[i];

		if (e->pid == pid && !(e->proc->flags & PROC_IS_GONE))
			return e;
	}
	return NULL;
}

/* Threads are not listed beside processes, but they can be opened. */
static void read_owner(void *arg, struct guard *g)
{
	struct explain *x = arg;
	struct procfs *fs = &x->m->fs;
	struct procfs_pid at;
	struct str text;
	uint64_t owner;
	const char *line;

	procfs_pid_init(&at, x->asked);
	fs->guard = g;
	if (!x->hangs && procfs_read(fs, &at, PROCFS_STATUS, &text) == 0 &&
	    (line = strstr(text.s, "\nTgid:\t"))) {
		line += strlen("\nTgid:\t");
		if (proctext_number(&line, text.s + text.n, &owner))
			x->owner = (pid_t)owner;
	}
	fs->guard = NULL;
}

/* What is left open by a thread that was given up is closed when it can. */
static bool give_up(void *arg)
{
	struct explain *x = arg;

	x->hangs = true;
	if (x->p)
		proctab_leave(&x->m->tab, x->p);
	return procfs_renew(&x->m->fs) == 0;
}

/* Of which process is it a number? */
static int find_process(struct explain *x)
{
	struct monitor *m = x->m;

	x->entry = find_entry(m, x->asked);
	if (!x->entry) {
		runner_run(&m->runner, read_owner, give_up, x, MONITOR_HANG_NS);
		if (x->owner && x->owner != x->asked)
			x->entry = find_entry(m, x->owner);
		x->hangs = false;
	}
	if (!x->entry)
		return m->fs.same_pids && !x->owner &&
			       (kill(x->asked, 0) == 0 || errno == EPERM)
			   ? EXPLAIN_HIDDEN
			   : EXPLAIN_NO_PROCESS;
	x->p = x->entry->proc;
	if (!x->p->start && !(x->p->flags & PROC_HANGS))
		return EXPLAIN_DENIED;
	return 0;
}

/* Takes ours out of the answers that are there; NULL if it is not. */
static struct answer *take_answer(struct monitor *m, struct proc *p)
{
	monitor_take_answers(m);
	for (struct answer **at = &m->answers; *at; at = &(*at)->next) {
		struct answer *a = *at;

		if (!answer_is_cmdline(a) || a->pid != p->at.pid ||
		    a->start != p->start)
			continue;
		*at = a->next;
		p->flags &= ~(uint32_t)(PROC_AWAITS | PROC_IS_STALLED);
		return a;
	}
	return NULL;
}

/* A worker that is slow counts as stuck, but it may come back all the same. */
static struct answer *wait_for_answer(struct monitor *m, struct proc *p)
{
	const struct timespec nap = {.tv_nsec = (long)POLL_NS};
	uint64_t begin = clocks_read(CLOCK_MONOTONIC);
	struct answer *a;

	while (!(a = take_answer(m, p)) && !(p->flags & PROC_IS_STALLED) &&
	       clocks_read(CLOCK_MONOTONIC) - begin < ANSWER_NS) {
		lane_wait(m->classifier.lane, POLL_NS, PATIENCE_NS);
		nanosleep(&nap, NULL);
	}
	return a;
}

/* With what is known so far, and the command line if it comes in time. */
static void begin(struct explain *x)
{
	struct classifier *c = &x->m->classifier;
	struct proc *p = x->p;

	classify_begin(c, x->entry, NULL, true);
	subject_need(&c->subject, SUBJECT_CMDLINE);
	if (!(p->flags & (PROC_AWAITS | PROC_IS_STALLED)))
		return;
	x->answer = wait_for_answer(x->m, p);
	if (x->answer)
		classify_begin(c, x->entry, x->answer, true);
}

/* Reads all that there is to know of it. */
static void read_process(void *arg, struct guard *g)
{
	struct explain *x = arg;
	struct monitor *m = x->m;
	struct str text;

	if (x->hangs)
		return;
	m->fs.guard = g;
	x->outcome = proctab_look_again(&m->tab, x->entry);
	if (x->outcome == 0) {
		begin(x);
		for (unsigned i = 0; i < SUBJECT_N; i++)
			if (i != SUBJECT_KIN)
				subject_need(&m->classifier.subject,
					     (enum subject_source)i);
		/* What is gone now may have gone before the first of these. */
		if (procfs_read(&m->fs, &x->p->at, PROCFS_STAT, &text) ==
		    PROC_GONE)
			x->outcome = PROC_GONE;
		proctab_leave(&m->tab, x->p);
	}
	m->fs.guard = NULL;
}

/* Nothing is read any more: only what the table knows may be asked. */
static void fetch_known(struct subject *s, enum subject_source source)
{
	if (source == SUBJECT_KIN)
		classify_fetch_kin(s->arg, s);
}

/* Names that no rule asks for are read for us alone. */
static void learn_names(struct monitor *m)
{
	if (m->rules->sources & SUBJECT_BIT(SUBJECT_OWNER))
		return;
	users_refresh(m->classifier.users);
	users_refresh(m->classifier.user_groups);
}

static void gather(struct explain *x)
{
	struct monitor *m = x->m;
	int r = 0;

	learn_names(m);
	classify_begin(&m->classifier, x->entry, NULL, true);
	x->hangs = x->p->flags & PROC_HANGS;
	if (!x->hangs)
		r = runner_run(&m->runner, read_process, give_up, x,
			       MONITOR_HANG_NS);
	if (r < 0)
		x->outcome = r;
	m->classifier.subject.fetch = fetch_known;
}

static bool is_wanted(const struct explain *x, const struct explain_options *o,
		      size_t view)
{
	return !o->view || strcmp(o->view, monitor_view_name(x->m, view)) == 0;
}

static void explain_briefly(struct explain *x, const struct explain_options *o)
{
	for (size_t i = 0; i < x->m->rules->n_views; i++) {
		if (!is_wanted(x, o, i))
			continue;
		textline_printf(&x->line, "%d ", (int)x->asked);
		explain_group(x, i);
	}
}

/* The next tick needs it, too: it may be the one that was waited for there. */
static void give_back(struct explain *x)
{
	struct monitor *m = x->m;

	/* What points to its texts is not to be used again. */
	m->classifier.entry = NULL;
	if (!x->answer)
		return;
	x->p->flags |= PROC_AWAITS;
	x->answer->next = m->answers;
	m->answers = x->answer;
}

static void explain_at_length(struct explain *x,
			      const struct explain_options *o)
{
	gather(x);
	explain_owner(x);
	for (size_t i = 0; i < x->m->rules->n_views; i++)
		if (is_wanted(x, o, i))
			explain_answer(x, i);
	explain_show(x);
	for (size_t i = 0; i < x->m->rules->n_views; i++) {
		if (!is_wanted(x, o, i))
			continue;
		explain_rules(x, i);
		explain_place(x, i);
		explain_group(x, i);
	}
	give_back(x);
}

int monitor_explain(struct monitor *m, const struct explain_options *o,
		    explain_fn *fn, void *arg)
{
	struct explain x = {
	    .m = m,
	    .asked = o->pid,
	    .fn = fn,
	    .arg = arg,
	};
	int r;

	if (!m->rules)
		return EXPLAIN_NO_RULES;
	r = find_process(&x);
	if (r == 0 && o->brief)
		explain_briefly(&x, o);
	else if (r == 0)
		explain_at_length(&x, o);
	if (x.line.lost)
		r = -ENOMEM;
	textline_done(&x.line);
	return r;
}
