/* SPDX-License-Identifier: MIT */
/*
 * What the rules want to know of a process, read when one asks for it. It does
 * not know which rule asks.
 *
 * Invariant: a source that was asked is in exactly one of the subject's `have`,
 * `absent` and `pending`, and its text stays until the next process.
 */
#include "classify-internal.h"
#include "cgroup.h"

enum {
	TEXT_SIZE = 16 * 1024, /* a cgroup file, an exe path, one argument */
};

static void mark(struct subject *s, enum subject_source source, int r)
{
	struct classifier *c = s->arg;

	c->outcome[source] = r;
	c->unsure |= procfs_is_transient(r);
	if (r == PROC_DENIED)
		c->denied |= SUBJECT_BIT(source);
	if (r == 0)
		s->have |= SUBJECT_BIT(source);
	else
		s->absent |= SUBJECT_BIT(source);
}

/*
 * Some time has passed since the process was looked at: what is read now must
 * be of the same one.
 */
static int enter(struct classifier *c)
{
	if (!c->entered)
		c->lost = proctab_look_again(c->tab, c->entry);
	c->entered = true;
	return c->lost;
}

static void fetch_owner(struct classifier *c, struct subject *s)
{
	int r = enter(c);

	if (r == 0)
		r = procfs_owner(c->fs, &c->proc->at, &s->uid, &s->gid);
	if (r == 0) {
		s->user =
		    users_name(c->users, s->uid, c->user, sizeof(c->user));
		s->group = users_name(c->user_groups, s->gid, c->group,
				      sizeof(c->group));
		c->proc->uid = s->uid;
		c->proc->gid = s->gid;
		c->proc->flags |= PROC_UID_KNOWN;
	}
	mark(s, SUBJECT_OWNER, r);
}

/*
 * Keeps what was read while something else is: in a buffer that is there from
 * the first time on that a rule wants such a text. Returns 0 or -ENOMEM.
 */
static int keep_text(struct classifier *c, enum classify_text which,
		     size_t size, struct str *text)
{
	struct text_buffer *buf = &c->text[which];

	if (buf->size < size) {
		char *s = realloc(buf->s, size);

		if (!s)
			return -ENOMEM;
		*buf = (struct text_buffer){s, size};
	}
	text->n = MIN(text->n, size);
	if (text->n)
		memcpy(buf->s, text->s, text->n);
	text->s = buf->s;
	return 0;
}

static void fetch_cgroup(struct classifier *c, struct subject *s)
{
	struct cgroup_names names;
	struct str text;
	int r = enter(c);

	if (r == 0)
		r = procfs_read(c->fs, &c->proc->at, PROCFS_CGROUP, &text);
	if (r == 0) {
		c->proc->cgroup_hash = (uint32_t)hash_bytes(text);
		c->proc->flags |= PROC_CGROUP_KNOWN;
		r = keep_text(c, TEXT_CGROUP, TEXT_SIZE, &text);
	}
	if (r == 0) {
		s->cgroup_file = text;
		r = cgroup_parse(text, &names);
	}
	if (r == 0) {
		s->cgroup = names.path;
		s->unit = names.unit;
		s->slice = names.slice;
		s->container = names.container;
		s->pod = names.pod;
	}
	mark(s, SUBJECT_CGROUP, r);
}

static void fetch_exe(struct classifier *c, struct subject *s)
{
	uint64_t dev, inode;
	struct str text;
	int r = enter(c);

	if (r == 0)
		r = procfs_exe(c->fs, &c->proc->at, &text);
	if (r == 0)
		r = keep_text(c, TEXT_EXE, TEXT_SIZE, &text);
	if (r == 0)
		s->exe_path = text;
	if (r == 0 && c->exes &&
	    procfs_exe_file(c->fs, &c->proc->at, &dev, &inode) == 0)
		exepath_learn(c->exes, dev, inode, text);
	mark(s, SUBJECT_EXE, r);
}

static void fetch_cmdline(struct classifier *c, struct subject *s)
{
	struct proc *p = c->proc;
	int r = 0;

	/* Kernel threads and zombies have none: an empty one, not unknown. */
	if (p->flags & PROC_KERNEL || p->state == 'Z' || p->state == 'X') {
		s->cmdline = s->argv0 = s->exe = s->script = STR("");
		s->have |= SUBJECT_BIT(SUBJECT_CMDLINE);
	} else if (!(p->flags & PROC_IS_STALLED) &&
		   (p->flags & PROC_AWAITS ||
		    (r = classify_ask_cmdline(c, p)) == 0)) {
		s->pending |= SUBJECT_BIT(SUBJECT_CMDLINE);
	} else {
		c->outcome[SUBJECT_CMDLINE] = r;
		c->unsure |= procfs_is_transient(r);
		s->absent |= SUBJECT_BIT(SUBJECT_CMDLINE);
	}
}

void classify_fetch(struct subject *s, enum subject_source source)
{
	struct classifier *c = s->arg;

	switch (source) {
	case SUBJECT_STAT: /* is there from the beginning */
	case SUBJECT_N:
		break;
	case SUBJECT_KIN:
		classify_fetch_kin(c, s);
		break;
	case SUBJECT_OWNER:
		fetch_owner(c, s);
		break;
	case SUBJECT_CGROUP:
		fetch_cgroup(c, s);
		break;
	case SUBJECT_EXE:
		fetch_exe(c, s);
		break;
	case SUBJECT_CMDLINE:
		fetch_cmdline(c, s);
		break;
	}
}

void classify_take_answer(struct classifier *c, const struct answer *a)
{
	struct subject *s = &c->subject;
	struct str text = {a->text, a->n}, argv0 = STR("");
	int r = a->result;

	if (r == 0)
		r = keep_text(c, TEXT_CMDLINE, c->rules->limits.cmdline, &text);
	if (r == 0)
		r = keep_text(c, TEXT_ARGV0, TEXT_SIZE, &argv0);
	if (r == 0)
		subject_set_cmdline(s, c->text[TEXT_CMDLINE].s, text.n,
				    c->text[TEXT_ARGV0].s, TEXT_SIZE);
	ruleset_check_script(c->rules, s);
	mark(s, SUBJECT_CMDLINE, r);
}
