/* SPDX-License-Identifier: MIT */
#include "exits-gather.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>

#include "genl.h"

/* A process of which threads ended. */
struct process {
	uint32_t pid;
	bool has_ended;
	bool has_group;
	struct exit_group group;
	struct exitrec sum;
};

void gather_init(struct gather *g, exits_fn *fn, void *arg)
{
	*g = (struct gather){.fn = fn, .arg = arg};
	pidmap_init(&g->processes, sizeof(struct process),
		    GATHER_PROCESSES_MAX);
}

void gather_done(struct gather *g)
{
	pidmap_done(&g->processes);
	*g = (struct gather){0};
}

static void hand_on(struct gather *g, const struct exitrec *r)
{
	g->counts.n_processes++;
	g->fn(g->arg, r);
}

static void let_go(struct gather *g, unsigned i)
{
	struct process *p = pidmap_find(&g->processes, g->held[i]);

	g->n_held--;
	memmove(&g->held[i], &g->held[i + 1],
		(g->n_held - i) * sizeof(g->held[0]));
	if (p->has_group)
		exitrec_add_group(&p->sum, &p->group);
	hand_on(g, &p->sum);
	pidmap_remove(&g->processes, p);
}

void gather_flush(struct gather *g)
{
	while (g->n_held)
		let_go(g, 0);
}

static void let_go_pid(struct gather *g, uint32_t pid)
{
	for (unsigned i = 0; i < g->n_held; i++) {
		if (g->held[i] == pid) {
			let_go(g, i);
			return;
		}
	}
}

/* Children first: what they used goes with the parent. */
static void let_go_children(struct gather *g, uint32_t pid)
{
	for (unsigned i = 0; i < g->n_held;) {
		const struct process *p =
		    pidmap_find(&g->processes, g->held[i]);

		if (p->sum.ppid == pid)
			let_go(g, i);
		else
			i++;
	}
}

/* Both began at the same time, as far as can be told. */
static bool is_same(const struct process *p, const struct exitrec *r)
{
	int64_t apart = (int64_t)(r->began_s - p->sum.began_s);

	return !p->sum.n_threads || (apart >= -2 && apart <= 2);
}

/* All that is known of the others is what the kernel added up. */
static void hand_on_alone(struct gather *g, const struct exitrec *r,
			  const struct exit_group *group)
{
	struct exitrec sum = *r;

	if (group)
		exitrec_add_group(&sum, group);
	hand_on(g, &sum);
}

static void take_thread(struct gather *g, const struct exitrec *r,
			const struct exit_group *group)
{
	struct process *p = pidmap_find(&g->processes, r->pid);

	/* The number is another process's since. */
	if (p && p->has_ended && (r->flags & EXIT_LAST || !is_same(p, r))) {
		let_go_pid(g, r->pid);
		p = NULL;
	}
	if (!p)
		p = pidmap_add(&g->processes, r->pid);
	if (!p) {
		g->counts.n_no_room++;
		if (r->flags & EXIT_LAST)
			hand_on_alone(g, r, group);
		return;
	}
	if (!is_same(p, r))
		p->sum.n_threads = 0;
	exitrec_add(&p->sum, r);
	if (!(r->flags & EXIT_LAST))
		return;
	if (group) {
		p->group = *group;
		p->has_group = true;
	}
	p->has_ended = true;
	if (g->n_held == GATHER_HELD_MAX)
		let_go(g, 0);
	g->held[g->n_held++] = r->pid;
}

/*
 * Before version 12 threads cannot be added up, but the last one comes with
 * the number of its process and what all of them ran.
 */
static void take_old(struct gather *g, struct exitrec *r, uint32_t tgid,
		     const struct exit_group *group)
{
	if (tgid) {
		r->flags &= ~(uint32_t)EXIT_UNSURE;
		r->flags |= EXIT_LAST;
		r->pid = tgid;
		if (r->tid == tgid)
			r->flags |= EXIT_LEADER;
		exitrec_add_group(r, group);
	}
	hand_on(g, r);
}

static void take(struct gather *g, struct exitrec *r, uint32_t tgid,
		 const struct exit_group *group)
{
	g->counts.n_tasks++;
	if (g->n_held && (r->flags & EXIT_LAST || r->flags & EXIT_UNSURE))
		let_go_children(g, r->pid);
	if (!(r->flags & EXIT_HAS_TGID))
		take_old(g, r, tgid, group);
	else if (r->flags & EXIT_LAST && !tgid &&
		 !pidmap_find(&g->processes, r->pid))
		hand_on(g, r);
	else
		take_thread(g, r, tgid ? group : NULL);
}

/* A number and a struct taskstats. */
static bool parse_aggregate(struct str bytes, uint32_t *ret_id,
			    struct str *ret_stats)
{
	struct str payload;
	unsigned type, found = 0;

	while (genl_next_attribute(&bytes, &type, &payload)) {
		if (type == TASKSTATS_TYPE_STATS) {
			*ret_stats = payload;
			found |= 1;
		} else if ((type == TASKSTATS_TYPE_PID ||
			    type == TASKSTATS_TYPE_TGID) &&
			   payload.n == sizeof(*ret_id)) {
			memcpy(ret_id, payload.s, sizeof(*ret_id));
			found |= 2;
		}
	}
	return found == 3;
}

/* A task, and if it is the last of several their whole group. */
static void take_message(struct gather *g, struct str bytes)
{
	struct exit_group group = {0};
	struct exitrec r = {0};
	struct str payload, stats;
	uint32_t id, tgid = 0;
	bool bad = false;
	unsigned type;

	while (genl_next_attribute(&bytes, &type, &payload)) {
		if (type != TASKSTATS_TYPE_AGGR_PID &&
		    type != TASKSTATS_TYPE_AGGR_TGID)
			continue;
		if (!parse_aggregate(payload, &id, &stats)) {
			bad = true;
		} else if (type == TASKSTATS_TYPE_AGGR_PID) {
			bad |= exitrec_parse(stats, &r) < 0;
		} else if (exitrec_parse_group(stats, r.version, &group) == 0) {
			tgid = id;
		} else {
			bad = true;
		}
	}
	if (r.pid)
		take(g, &r, tgid, &group);
	g->counts.n_bad += bad || !r.pid;
}

void gather_datagram(struct gather *g, unsigned family, struct str bytes)
{
	while (bytes.n >= NLMSG_HDRLEN + GENL_HDRLEN) {
		struct nlmsghdr h;
		struct genlmsghdr gh;
		size_t step;

		memcpy(&h, bytes.s, sizeof(h));
		memcpy(&gh, bytes.s + NLMSG_HDRLEN, sizeof(gh));
		if (h.nlmsg_len < NLMSG_HDRLEN + GENL_HDRLEN ||
		    h.nlmsg_len > bytes.n) {
			g->counts.n_bad++;
			return;
		}
		if (h.nlmsg_type == family && gh.cmd == TASKSTATS_CMD_NEW)
			take_message(
			    g, (struct str){
				   bytes.s + NLMSG_HDRLEN + GENL_HDRLEN,
				   h.nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN});
		step = MIN((size_t)NLMSG_ALIGN(h.nlmsg_len), bytes.n);
		bytes.s += step;
		bytes.n -= step;
	}
}

struct sweep {
	gather_lives_fn *lives;
	void *arg;
};

static bool keep(void *arg, void *entry)
{
	const struct sweep *s = arg;
	const struct process *p = entry;

	return p->has_ended || s->lives(s->arg, p->pid);
}

void gather_sweep(struct gather *g, gather_lives_fn *lives, void *arg)
{
	struct sweep s = {lives, arg};

	pidmap_sweep(&g->processes, keep, &s);
}
