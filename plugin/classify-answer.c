/* SPDX-License-Identifier: MIT */
/*
 * Reads that go through the lane, and what comes of them: command lines, and
 * for others (pssread.c) an answer with nothing but its own room. It knows no
 * rule.
 *
 * Invariant: an answer belongs to the lane from classifier_submit() until
 * classifier_take(), and meanwhile to nobody else; nothing that its read needs
 * can go away under it.
 */
#include "classify-internal.h"

enum {
	ANSWER_SIZE = 4096, /* longer command lines take more than one read */
	SPARE_MAX = 64,	    /* answers that are kept for later */
	SPARE_BARE_MAX = 4096, /* as many as smaps are read in a tick */
};

static void push(struct answers *list, struct answer *a)
{
	a->next = list->first;
	list->first = a;
	list->n++;
}

static struct answer *pop(struct answers *list)
{
	struct answer *a = list->first;

	if (a) {
		list->first = a->next;
		list->n--;
	}
	return a;
}

static void answer_free(struct answer *a)
{
	free(a->text);
	free(a);
}

void classify_free_answers(struct classifier *c)
{
	struct answer *a;

	while ((a = pop(&c->spare)) || (a = pop(&c->spare_bare)))
		answer_free(a);
}

static struct answer *answer_of(struct lane_job *job)
{
	return (struct answer *)((char *)job - offsetof(struct answer, job));
}

static void answer_release(struct lane_job *job)
{
	answer_free(answer_of(job));
}

/* In the worker. */
static void answer_run(struct lane_job *job)
{
	struct answer *a = answer_of(job);

	a->run(a);
}

/* Room for n bytes of text; an answer that is used again may have it. */
static int answer_room(struct answer *a, size_t n)
{
	char *text;

	if (n <= a->size)
		return 0;
	text = realloc(a->text, n);
	if (!text)
		return -ENOMEM;
	a->text = text;
	a->size = n;
	return 0;
}

/* One that is longer: into a buffer that grows as far as it has to. */
static int read_long_cmdline(struct answer *a)
{
	size_t size = ANSWER_SIZE;

	do {
		int r;

		size = MIN(size * 4, a->max);
		r = answer_room(a, size);
		if (r == 0)
			r = procfs_read_cmdline(a->root_fd, a->pid, a->live_tid,
						a->text, size, &a->n);
		if (r)
			return r;
	} while (a->n == size && size < a->max);
	return 0;
}

/* In the worker. Most are short, and many may be on their way. */
static void read_cmdline(struct answer *a)
{
	char buf[ANSWER_SIZE];
	size_t size = MIN(sizeof(buf), a->max);

	a->result = procfs_read_cmdline(a->root_fd, a->pid, a->live_tid, buf,
					size, &a->n);
	if (a->result == 0 && a->n == size && size < a->max) {
		a->result = read_long_cmdline(a);
		return;
	}
	if (a->result == 0)
		a->result = answer_room(a, a->n);
	if (a->result == 0 && a->n)
		memcpy(a->text, buf, a->n);
}

bool answer_is_cmdline(const struct answer *a)
{
	return a->run == read_cmdline;
}

struct answer *classifier_take(struct classifier *c)
{
	struct lane_job *job = lane_take(c->lane);

	return job ? answer_of(job) : NULL;
}

void classifier_put(struct classifier *c, struct answer *a)
{
	if (!a)
		return;
	if (!answer_is_cmdline(a) && c->spare_bare.n < SPARE_BARE_MAX)
		push(&c->spare_bare, a);
	else if (answer_is_cmdline(a) && c->spare.n < SPARE_MAX &&
		 a->size <= ANSWER_SIZE)
		push(&c->spare, a);
	else
		answer_free(a);
}

/* One that is not used now, from this list if there is any. */
static struct answer *begin_answer(struct classifier *c, struct answers *list,
				   const struct proc *p)
{
	struct answer *a = pop(list);

	if (!a)
		a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	*a = (struct answer){
	    .job = {.run = answer_run, .release = answer_release},
	    .root_fd = c->lane_root_fd,
	    .pid = p->at.pid,
	    .live_tid = p->at.live_tid,
	    .start = p->start,
	    .text = a->text,
	    .size = a->size,
	};
	return a;
}

struct answer *classifier_new_answer(struct classifier *c, const struct proc *p)
{
	return begin_answer(c, &c->spare_bare, p);
}

int classifier_submit(struct classifier *c, struct answer *a)
{
	int r = lane_submit(c->lane, &a->job);

	if (r < 0)
		classifier_put(c, a);
	return r;
}

int classify_ask_cmdline(struct classifier *c, struct proc *p)
{
	struct answer *a = begin_answer(c, &c->spare, p);
	int r;

	if (!a)
		return -ENOMEM;
	a->run = read_cmdline;
	a->max = c->rules->limits.cmdline;
	r = classifier_submit(c, a);
	if (r == 0)
		p->flags |= PROC_AWAITS;
	return r;
}
