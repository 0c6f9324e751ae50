/* SPDX-License-Identifier: MIT */
/* Tests of plugin/exits-gather.c on messages made by hand. */
#include "exits-gather.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <stdlib.h>

#include "tap.h"

enum {
	FAMILY = 31,
	STATS_SIZE = 560,
	LAST = 0x20,
};

struct message {
	size_t n;
	char bytes[4096];
};

struct told {
	struct exitrec r[256];
	unsigned n;
};

static void tell(void *arg, const struct exitrec *r)
{
	struct told *t = arg;

	if (t->n < ARRAY_SIZE(t->r))
		t->r[t->n] = *r;
	t->n++;
}

/* A task; offsets are those of Linux 6.18. */
struct task {
	uint32_t pid, tgid, ppid;
	uint8_t flag;
	uint16_t version;
	uint64_t run_ns, minflt, btime;
};

static void write_stats(char *s, const struct task *t)
{
	uint64_t one = 1;

	memset(s, 0, STATS_SIZE);
	memcpy(s, &t->version, 2);
	memcpy(s + 8, &t->flag, 1);
	memcpy(s + 16, &one, 8);
	memcpy(s + 72, &t->run_ns, 8);
	memcpy(s + 80, "name", 4);
	memcpy(s + 128, &t->pid, 4);
	memcpy(s + 132, &t->ppid, 4);
	memcpy(s + 168, &t->minflt, 8);
	if (t->version >= 12) {
		memcpy(s + 344, &t->btime, 8);
		memcpy(s + 368, &t->tgid, 4);
	}
}

static void begin(struct message *m, unsigned family)
{
	struct nlmsghdr h = {.nlmsg_type = (uint16_t)family};
	struct genlmsghdr g = {.cmd = TASKSTATS_CMD_NEW, .version = 1};

	memcpy(m->bytes, &h, sizeof(h));
	memcpy(m->bytes + NLMSG_HDRLEN, &g, sizeof(g));
	m->n = NLMSG_HDRLEN + GENL_HDRLEN;
}

static void put(struct message *m, uint16_t type, const void *p, size_t n)
{
	struct nlattr a = {(uint16_t)(sizeof(a) + n), type};

	memcpy(m->bytes + m->n, &a, sizeof(a));
	memcpy(m->bytes + m->n + sizeof(a), p, n);
	m->n += NLA_ALIGN(sizeof(a) + n);
}

static void put_aggregate(struct message *m, bool whole, uint32_t id,
			  const struct task *t)
{
	struct message inner = {0};
	char stats[STATS_SIZE];

	write_stats(stats, t);
	put(&inner, whole ? TASKSTATS_TYPE_TGID : TASKSTATS_TYPE_PID, &id, 4);
	put(&inner, TASKSTATS_TYPE_STATS, stats, sizeof(stats));
	put(m, whole ? TASKSTATS_TYPE_AGGR_TGID : TASKSTATS_TYPE_AGGR_PID,
	    inner.bytes, inner.n);
}

static void end(struct message *m)
{
	uint32_t n = (uint32_t)m->n;

	memcpy(m->bytes, &n, sizeof(n));
}

static void send(struct gather *g, const struct message *m, size_t n)
{
	char *copy = malloc(n ? n : 1);

	memcpy(copy, m->bytes, n);
	gather_datagram(g, FAMILY, (struct str){copy, n});
	free(copy);
}

/* A task, and what its group ran if it is the last of several. */
static void leave(struct gather *g, const struct task *t, uint64_t group_ns)
{
	struct message m;

	begin(&m, FAMILY);
	put_aggregate(&m, false, t->pid, t);
	if (group_ns)
		put_aggregate(&m, true, t->tgid,
			      &(struct task){.run_ns = group_ns});
	end(&m);
	send(g, &m, m.n);
}

static struct task task(uint32_t pid, uint32_t tgid, uint32_t ppid,
			uint8_t flag)
{
	return (struct task){
	    .pid = pid,
	    .tgid = tgid,
	    .ppid = ppid,
	    .flag = flag,
	    .version = 16,
	    .run_ns = 1000,
	    .minflt = 10,
	    .btime = 1700000000,
	};
}

static void too_many(void)
{
	struct told t = {.n = 0};
	struct gather g;
	struct task last = task(50, 50, 1, LAST);

	gather_init(&g, tell, &t);
	for (unsigned i = 0; i < GATHER_PROCESSES_MAX; i++) {
		struct task a = task(2 * i + 101, 2 * i + 100, 1, 0);

		leave(&g, &a, 0);
	}
	check_u64(g.processes.n, GATHER_PROCESSES_MAX);
	leave(&g, &last, 3000);
	check_u64(t.n, 1);
	check_u64(t.r[0].run_ns, 3000);
	check(t.r[0].flags & EXIT_PARTIAL);
	check_u64(g.counts.n_no_room, 1);
	gather_done(&g);
}

static void at_once(void)
{
	struct told t = {.n = 0};
	struct gather g;
	struct task a = task(50, 50, 1, LAST);

	gather_init(&g, tell, &t);
	leave(&g, &a, 0);
	check_u64(t.n, 1);
	check_u64(t.r[0].pid, 50);
	check_u64(t.r[0].ppid, 1);
	check_text(t.r[0].comm, "name");
	check_u64(g.processes.n, 0);
	gather_done(&g);
}

static void summed(void)
{
	struct told t = {.n = 0};
	struct gather g;
	struct task a = task(51, 50, 1, 0), b = task(52, 50, 1, 0),
		    last = task(50, 50, 1, LAST);

	gather_init(&g, tell, &t);
	leave(&g, &a, 0);
	gather_flush(&g);
	leave(&g, &b, 0);
	gather_flush(&g);
	check_u64(t.n, 0);
	leave(&g, &last, 3000);
	check_u64(t.n, 0);
	gather_flush(&g);
	check_u64(t.n, 1);
	check_u64(t.r[0].n_threads, 3);
	check_u64(t.r[0].run_ns, 3000);
	check_u64(t.r[0].value[EXIT_MINFLT], 30);
	check(!(t.r[0].flags & EXIT_PARTIAL));
	check_u64(g.processes.n, 0);
	check_u64(g.counts.n_tasks, 3);
	check_u64(g.counts.n_processes, 1);
	gather_done(&g);
}

static void overtaken(void)
{
	struct told t = {.n = 0};
	struct gather g;
	struct task late = task(51, 50, 1, 0), last = task(50, 50, 1, LAST);

	/* The kernel may or may not have added it up by then. */
	for (uint64_t group_ns = 1000; group_ns <= 2000; group_ns += 1000) {
		gather_init(&g, tell, &t);
		leave(&g, &last, group_ns);
		leave(&g, &late, 0);
		gather_flush(&g);
		check_u64(t.r[t.n - 1].run_ns, 2000);
		check_u64(t.r[t.n - 1].n_threads, 2);
		check(!(t.r[t.n - 1].flags & EXIT_PARTIAL));
		check_u64(g.processes.n, 0);
		gather_done(&g);
	}
	check_u64(t.n, 2);
}

static void unheard(void)
{
	struct told t = {.n = 0};
	struct gather g;
	struct task last = task(50, 50, 1, LAST);

	gather_init(&g, tell, &t);
	leave(&g, &last, 7000);
	gather_flush(&g);
	check_u64(t.r[0].run_ns, 7000);
	check(t.r[0].flags & EXIT_PARTIAL);
	gather_done(&g);
}

static void children_first(void)
{
	struct told t = {.n = 0};
	struct gather g;
	struct task child = task(60, 60, 50, LAST),
		    other = task(61, 61, 9, LAST),
		    parent = task(50, 50, 1, LAST);

	gather_init(&g, tell, &t);
	leave(&g, &other, 1000);
	leave(&g, &child, 1000);
	leave(&g, &parent, 0);
	check_u64(t.n, 2);
	check_u64(t.r[0].pid, 60);
	check_u64(t.r[1].pid, 50);
	gather_flush(&g);
	check_u64(t.r[2].pid, 61);
	gather_done(&g);
}

static void held_are_few(void)
{
	struct told t = {.n = 0};
	struct gather g;

	gather_init(&g, tell, &t);
	for (uint32_t pid = 100; pid < 300; pid++) {
		struct task a = task(pid, pid, 1, LAST);

		leave(&g, &a, 1000);
	}
	check_u64(g.n_held, GATHER_HELD_MAX);
	gather_flush(&g);
	check_u64(t.n, 200);
	for (unsigned i = 0; i < 200; i++)
		check_u64(t.r[i].pid, 100 + i);
	gather_done(&g);
}

static void number_again(void)
{
	struct told t = {.n = 0};
	struct gather g;
	struct task a = task(51, 50, 1, 0), last = task(50, 50, 1, LAST),
		    c = task(51, 50, 1, 0);

	gather_init(&g, tell, &t);
	leave(&g, &last, 1000); /* held */
	leave(&g, &last, 1000); /* another one, held */
	check_u64(t.n, 1);
	gather_flush(&g);
	check_u64(t.n, 2);
	/* The last word of the first one was lost. */
	leave(&g, &a, 0);
	c.btime += 100;
	leave(&g, &c, 0);
	last.btime += 100;
	leave(&g, &last, 2000);
	gather_flush(&g);
	check_u64(t.r[2].n_threads, 2);
	gather_done(&g);
}

static bool lives(void *arg, uint32_t pid)
{
	return pid == *(uint32_t *)arg;
}

static void swept(void)
{
	struct told t = {.n = 0};
	struct gather g;
	struct task a = task(51, 50, 1, 0), b = task(41, 40, 1, 0),
		    last = task(50, 50, 1, LAST);
	uint32_t pid = 50;

	gather_init(&g, tell, &t);
	leave(&g, &a, 0);
	leave(&g, &b, 0);
	gather_sweep(&g, lives, &pid);
	check_u64(g.processes.n, 1);
	leave(&g, &last, 2000);
	pid = 0;
	gather_sweep(&g, lives, &pid);
	gather_flush(&g);
	check_u64(t.r[0].n_threads, 2);
	gather_done(&g);
}

static void old_kernels(void)
{
	struct told t = {.n = 0};
	struct gather g;
	struct task a = task(51, 50, 1, 0), b = task(50, 50, 1, 0);
	struct message m;

	a.version = b.version = 8;
	gather_init(&g, tell, &t);
	leave(&g, &a, 0);
	check_u64(t.n, 1);
	check_u64(t.r[0].pid, 51);
	check(t.r[0].flags & EXIT_UNSURE);

	begin(&m, FAMILY);
	put(&m, TASKSTATS_TYPE_NULL, "", 0); /* some pad it */
	put_aggregate(&m, false, 51, &a);
	put(&m, TASKSTATS_TYPE_NULL, "", 0);
	put_aggregate(&m, true, 50, &(struct task){.run_ns = 9000});
	end(&m);
	send(&g, &m, m.n);
	check_u64(t.n, 2);
	check_u64(t.r[1].pid, 50);
	check_u64(t.r[1].tid, 51);
	check_u64(t.r[1].run_ns, 9000);
	check(!(t.r[1].flags & EXIT_UNSURE));
	check(t.r[1].flags & EXIT_PARTIAL);
	check(t.r[1].flags & EXIT_LAST);
	check_u64(g.counts.n_bad, 0);
	gather_done(&g);
}

static void foreign(void)
{
	struct told t = {.n = 0};
	struct gather g;
	struct task a = task(50, 50, 1, LAST);
	struct message m;

	gather_init(&g, tell, &t);
	begin(&m, NLMSG_ERROR);
	put_aggregate(&m, false, 50, &a);
	end(&m);
	send(&g, &m, m.n);
	check_u64(t.n, 0);
	check_u64(g.counts.n_bad, 0);
	gather_done(&g);
}

static void cut_off(void)
{
	struct task a = task(50, 50, 1, LAST);
	struct message m;
	unsigned n_told = 0;

	begin(&m, FAMILY);
	put_aggregate(&m, false, 50, &a);
	end(&m);
	for (size_t n = 0; n <= m.n; n++) {
		struct told t = {.n = 0};
		struct message cut = m;
		struct gather g;

		gather_init(&g, tell, &t);
		send(&g, &m, n); /* says it is longer */
		check_u64(t.n, n == m.n);
		check_u64(g.counts.n_bad,
			  n >= NLMSG_HDRLEN + GENL_HDRLEN && n < m.n);
		if (n >= NLMSG_HDRLEN + GENL_HDRLEN) {
			cut.n = n;
			end(&cut);
			send(&g, &cut, n);
			n_told += t.n;
		}
		gather_done(&g);
	}
	check_u64(n_told, 2);
}

int main(void)
{
	TEST("a process without threads is told of at once", at_once);
	TEST("threads are added up whenever they end", summed);
	TEST("a thread that the last one overtook is in the sum", overtaken);
	TEST("threads that nobody told of make a record partial", unheard);
	TEST("where too many are known the last one tells of all", too_many);
	TEST("children are told of before their parent", children_first);
	TEST("few are held, and go in the order they came", held_are_few);
	TEST("a number given again is another process", number_again);
	TEST("processes that left unheard are forgotten", swept);
	TEST("before version 12 the last thread tells of all", old_kernels);
	TEST("messages of others are passed over", foreign);
	TEST("a message that is cut off is counted and not read", cut_off);
	return tap_done();
}
