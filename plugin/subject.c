/* SPDX-License-Identifier: MIT */
/*
 * Asking a subject for its sources, and the two texts of the kernel that are
 * not what they seem: a command line that may be one rewritten title, and the
 * name of a worker that tells what it worked on last.
 */
#include "subject.h"

#include "subject-script.h"

bool subject_need(struct subject *s, enum subject_source source)
{
	unsigned bit = SUBJECT_BIT(source);

	if (s->have & bit)
		return true;
	if ((s->absent | s->pending) & bit)
		return false;
	if (s->fetch)
		s->fetch(s, source);
	if (!((s->have | s->absent | s->pending) & bit))
		s->absent |= bit;
	return s->have & bit;
}

static size_t exe_offset(struct str argv0, bool alone)
{
	const char *blank = alone ? memchr(argv0.s, ' ', argv0.n) : NULL;
	size_t end = blank ? (size_t)(blank - argv0.s) : argv0.n;
	const char *slash = memrchr(argv0.s, '/', end);

	return slash ? (size_t)(slash - argv0.s) + 1 : 0;
}

void subject_set_cmdline(struct subject *s, char *raw, size_t n,
			 char *argv0_buf, size_t argv0_size)
{
	struct str first;
	size_t offset, kept;

	while (n > 0 && raw[n - 1] == '\0')
		n--;
	if (n == 0) {
		s->cmdline = s->argv0 = s->exe = s->script = STR("");
		return;
	}

	first = (struct str){raw, strnlen(raw, n)};
	offset = exe_offset(first, first.n == n);
	kept = MIN(first.n, argv0_size);
	if (kept > 0)
		memcpy(argv0_buf, raw, kept);
	s->argv0 = (struct str){argv0_buf, kept};

	/* A cut copy has lost its end, which is what the base name is. */
	s->exe.s = kept == first.n ? argv0_buf + offset : raw + offset;
	s->exe.n = first.n - offset;

	s->script = STR("");
	if (first.n < n)
		s->script = script_find(
		    s->exe, (struct str){raw + first.n + 1, n - first.n - 1});

	/* NULs, too: that joins the arguments. */
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)raw[i] < 0x20 || raw[i] == 0x7f)
			raw[i] = ' ';
	s->cmdline = (struct str){raw, n};
}

struct str subject_go_base(struct str path)
{
	const char *slash;

	if (path.n == 0)
		return STR(".");
	while (path.n > 0 && path.s[path.n - 1] == '/')
		path.n--;
	if (path.n == 0)
		return STR("/");
	slash = memrchr(path.s, '/', path.n);
	if (slash) {
		path.n -= (size_t)(slash + 1 - path.s);
		path.s = slash + 1;
	}
	return path;
}

/*
 * format_worker_id() names workers "kworker/CPU:ID", the same with "H", and
 * "kworker/uPOOL:ID"; a rescuer is "kworker/R-QUEUE". wq_worker_comm() adds
 * "+WORK" while it works on something and "-WORK" afterwards.
 */
struct str subject_stable_comm(struct str comm, bool workqueue_worker)
{
	const struct str worker = STR("kworker/"), rescuer = STR("kworker/R-");
	const char *plus;
	size_t rest;

	if (!workqueue_worker || !str_begins(comm, worker))
		return comm;

	if (!str_begins(comm, rescuer)) {
		for (size_t i = worker.n; i < comm.n; i++)
			if (comm.s[i] == '+' || comm.s[i] == '-')
				return (struct str){comm.s, i};
		return comm;
	}

	plus = memchr(comm.s + rescuer.n, '+', comm.n - rescuer.n);
	if (plus)
		return (struct str){comm.s, (size_t)(plus - comm.s)};

	/*
	 * A queue's name may have dashes of its own; what a rescuer adds after
	 * one is that name again.
	 */
	rest = comm.n - rescuer.n;
	if (rest % 2 == 1 && comm.s[rescuer.n + rest / 2] == '-' &&
	    memcmp(comm.s + rescuer.n, comm.s + comm.n - rest / 2, rest / 2) ==
		0)
		comm.n -= rest / 2 + 1;
	return comm;
}
