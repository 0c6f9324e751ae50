/* SPDX-License-Identifier: MIT */
#include "explain-internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
	SHOWN_MAX = 300, /* bytes of a value */
};

void explain_who(struct explain *x, const struct proc *p)
{
	textline_printf(&x->line, "%d (", (int)p->at.pid);
	textline_add(&x->line, str_of(proc_comm(p)));
	textline_printf(&x->line, ")");
}

static const char *missing(const struct explain *x, enum subject_source source)
{
	const struct classifier *c = &x->m->classifier;
	bool asked = c->subject.absent & SUBJECT_BIT(source);
	int r = x->outcome ? x->outcome : c->outcome[source];

	if (c->subject.pending & SUBJECT_BIT(source))
		return "is not known yet";
	if (x->outcome == PROC_GONE)
		return "cannot be read: it has ended";
	if (x->hangs || (asked && r == 0))
		return "cannot be read: it keeps its readers waiting";
	if (r == PROC_DENIED)
		return "cannot be read: Permission denied";
	if (r == PROC_ABSENT)
		return "is not told";
	return r < 0 ? NULL : "does not exist";
}

void explain_put_missing(struct explain *x, enum subject_source source)
{
	const char *why = missing(x, source);
	int r = x->outcome ? x->outcome : x->m->classifier.outcome[source];

	if (why)
		textline_printf(&x->line, "%s", why);
	else
		textline_printf(&x->line, "cannot be read: %s", strerror(-r));
}

static void begin_row(struct explain *x, const char *name)
{
	textline_printf(&x->line, "  %-10s ", name);
}

static void put_text(struct explain *x, struct str text)
{
	if (text.n)
		textline_quote(&x->line, text, SHOWN_MAX);
	else
		textline_printf(&x->line, "(none)");
}

static void show_text(struct explain *x, const char *name, struct str text)
{
	begin_row(x, name);
	put_text(x, text);
	explain_end(x);
}

/* One key with its value, as rules see it. */
static void show_key(struct explain *x, const struct rule_key_def *def)
{
	struct subject *s = explain_subject(x);
	const void *field = (const char *)s + def->field;

	begin_row(x, def->name);
	if (!subject_need(s, def->source)) {
		textline_printf(&x->line, "(");
		explain_put_missing(x, def->source);
		textline_printf(&x->line, ")");
	} else if (def->item == ITEM_NUMBER) {
		textline_printf(&x->line, "%" PRIu32, *(const uint32_t *)field);
	} else {
		put_text(x, *(const struct str *)field);
	}
	explain_end(x);
}

static void show_parent(struct explain *x)
{
	const struct proc_entry *e = proctab_parent(&x->m->tab, x->p);

	begin_row(x, "parent");
	if (e)
		explain_who(x, e->proc);
	else if (!x->p->start)
		textline_printf(&x->line, "(is not known)");
	else if (x->p->ppid)
		textline_printf(&x->line, "%d (it cannot be seen)",
				(int)x->p->ppid);
	else
		textline_printf(&x->line, "(none)");
	explain_end(x);
}

static void show_start(struct explain *x)
{
	static const struct {
		uint64_t seconds;
		const char *name;
	} units[] = {{86400, "days"}, {3600, "hours"}, {60, "minutes"}};
	time_t start = (time_t)explain_subject(x)->start_time;
	uint64_t now = x->m->now.real_ns / NSEC_PER_SEC, age;
	char text[64];
	size_t i = 0;
	struct tm tm;

	if (!localtime_r(&start, &tm) ||
	    !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		return;
	age = now > (uint64_t)start ? now - (uint64_t)start : 0;
	while (i < ARRAY_SIZE(units) && age < 2 * units[i].seconds)
		i++;
	begin_row(x, "started");
	textline_printf(&x->line, "%s, %" PRIu64 " %s ago", text,
			i < ARRAY_SIZE(units) ? age / units[i].seconds : age,
			i < ARRAY_SIZE(units) ? units[i].name : "seconds");
	explain_end(x);
}

/* The other texts that a command line has in it. */
static void show_arguments(struct explain *x)
{
	struct subject *s = explain_subject(x);

	if (!subject_need(s, SUBJECT_CMDLINE))
		return;
	show_text(x, "argv[0]", s->argv0);
	if (s->script.n)
		show_text(x, "script", s->script);
}

static void say(struct explain *x, const char *what)
{
	textline_printf(&x->line, "  %s", what);
	explain_end(x);
}

/* What is out of the ordinary. */
static void show_state(struct explain *x)
{
	const struct proc *p = x->p;

	if (p->flags & PROC_KERNEL)
		say(x, "It is a kernel thread: it has no program file and no "
		       "command line.");
	if (p->state == 'Z' || p->state == 'X')
		say(x, "It has ended and waits for its parent (a zombie): its "
		       "program file and command line are gone.");
	if (p->at.live_tid)
		say(x, "Its first thread has ended; others run on.");
	if (x->outcome == PROC_GONE)
		say(x, "It has ended since it was placed: no more is known of "
		       "it.");
	else if (x->hangs)
		say(x, "It keeps whoever reads its files waiting: no more is "
		       "known of it.");
	else if (x->outcome)
		say(x, "Its files cannot be read: no more is known of it.");
}

void explain_owner(struct explain *x)
{
	if (!x->owner || x->owner == x->asked)
		return;
	textline_printf(&x->line, "%d is a thread of process %d.",
			(int)x->asked, (int)x->owner);
	explain_end(x);
}

void explain_show(struct explain *x)
{
	textline_printf(&x->line, "process ");
	explain_who(x, x->p);
	explain_end(x);
	show_state(x);
	show_parent(x);
	if (x->p->start)
		show_start(x);
	begin_row(x, rule_keys[RULE_KERNEL].name);
	textline_printf(&x->line, "%s",
			x->p->flags & PROC_KERNEL ? "true" : "false");
	explain_end(x);
	for (unsigned i = 0; i < RULE_KEY_N; i++) {
		const struct rule_key_def *def = &rule_keys[i];

		if ((def->item == ITEM_TEXT || def->item == ITEM_NUMBER) &&
		    !def->all)
			show_key(x, def);
	}
	show_arguments(x);
}
