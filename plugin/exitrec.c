/* SPDX-License-Identifier: MIT */
#include "exitrec.h"

#include <sys/sysmacros.h>

#define NSEC_PER_USEC UINT64_C(1000)
#define USEC_PER_SEC UINT64_C(1000000)

/*
 * The kernel looks how long a task ran at every timer interrupt, and there are
 * at least 100 a second: no more than this is missing in run_ns at a time.
 */
#define TICK_MAX_NS (10 * NSEC_PER_MSEC)

#define LAST_STRETCH_NS UINT64_C(250000)

/*
 * What leaving costs after the record is made; measured on Linux 6.18: 30 to
 * 60 us and 0.35 us for each page of 4 KiB. Three times as much for slow ones.
 */
#define LEAVE_NS UINT64_C(200000)
#define LEAVE_NS_PER_PAGE UINT64_C(1000)
#define LEAVE_PAGE 4096

/* Offsets in struct taskstats but in version 15. */
enum taskstats_at {
	AT_VERSION = 0,
	AT_EXIT_CODE = 4,
	AT_FLAG = 8,
	AT_CPU_COUNT = 16,
	AT_CPU_DELAY = 24,
	AT_BLKIO_DELAY = 40,
	AT_SWAPIN_DELAY = 56,
	AT_RUN_VIRTUAL = 72,
	AT_COMM = 80,
	AT_UID = 120,
	AT_GID = 124,
	AT_PID = 128,
	AT_PPID = 132,
	AT_BTIME = 136,
	AT_ETIME = 144,
	AT_UTIME = 152,
	AT_STIME = 160,
	AT_MINFLT = 168,
	AT_MAJFLT = 176,
	AT_COREMEM = 184,
	AT_HIWATER_RSS = 200,
	AT_READ_CHAR = 216,
	AT_WRITE_CHAR = 224,
	AT_READ_SYSCALLS = 232,
	AT_WRITE_SYSCALLS = 240,
	AT_READ_BYTES = 248,
	AT_WRITE_BYTES = 256,
	AT_NVCSW = 272,
	AT_NIVCSW = 280,
	AT_FREEPAGES_DELAY = 320,
	AT_THRASHING_DELAY = 336,
	AT_BTIME64 = 344,
	AT_COMPACT_DELAY = 360,
	AT_TGID = 368,
	AT_TGETIME = 376,
	AT_EXE_DEV = 384,
	AT_EXE_INODE = 392,
};

static const struct {
	uint8_t version; /* since which it is there */
	uint16_t at;
} values[EXIT_N_VALUES] = {
    [EXIT_UTIME_US] = {8, AT_UTIME},
    [EXIT_STIME_US] = {8, AT_STIME},
    [EXIT_MINFLT] = {8, AT_MINFLT},
    [EXIT_MAJFLT] = {8, AT_MAJFLT},
    [EXIT_READ_CHARS] = {8, AT_READ_CHAR},
    [EXIT_WRITE_CHARS] = {8, AT_WRITE_CHAR},
    [EXIT_READ_CALLS] = {8, AT_READ_SYSCALLS},
    [EXIT_WRITE_CALLS] = {8, AT_WRITE_SYSCALLS},
    [EXIT_READ_BYTES] = {8, AT_READ_BYTES},
    [EXIT_WRITE_BYTES] = {8, AT_WRITE_BYTES},
    [EXIT_NVCSW] = {8, AT_NVCSW},
    [EXIT_NIVCSW] = {8, AT_NIVCSW},
    [EXIT_COREMEM] = {8, AT_COREMEM},
    [EXIT_CPU_WAIT] = {8, AT_CPU_DELAY},
    [EXIT_BLKIO_WAIT] = {8, AT_BLKIO_DELAY},
    [EXIT_SWAPIN_WAIT] = {8, AT_SWAPIN_DELAY},
    [EXIT_RECLAIM_WAIT] = {8, AT_FREEPAGES_DELAY},
    [EXIT_THRASHING_WAIT] = {9, AT_THRASHING_DELAY},
    [EXIT_COMPACT_WAIT] = {11, AT_COMPACT_DELAY},
};

/* Length of the struct at least, from version 8 on. */
static const uint16_t lengths[] = {328, 344, 352, 368, 400, 416, 432};

enum {
	VERSION_MIN = 8,
	VERSION_BTIME64 = 10,
	VERSION_TGID = 12,
	VERSION_SPREAD = 15, /* with more fields in between */
	LENGTH_SPREAD = 560,
};

/* Bits of ac_flag, include/uapi/linux/acct.h. */
enum {
	ACCT_FORK = 0x01,
	ACCT_SIGNAL = 0x10,
	ACCT_GROUP = 0x20,
};

struct taskstats_view {
	struct str bytes;
	unsigned version;
};

/*
 * Version 15 (6.14, and 6.15 before commit 0bf2d838de1f) has a maximum and a
 * minimum behind every delay.
 */
static size_t spread(size_t at)
{
	static const uint16_t pair_ends[] = {
	    AT_CPU_DELAY + 8,	    AT_BLKIO_DELAY + 8,
	    AT_SWAPIN_DELAY + 8,    AT_FREEPAGES_DELAY + 8,
	    AT_THRASHING_DELAY + 8, AT_COMPACT_DELAY + 8};
	size_t more = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(pair_ends); i++)
		if (at >= pair_ends[i])
			more += 16;
	return at + more;
}

static void get(const struct taskstats_view *v, size_t at, void *to, size_t n)
{
	if (v->version == VERSION_SPREAD)
		at = spread(at);
	memcpy(to, v->bytes.s + at, n);
}

static uint32_t get32(const struct taskstats_view *v, size_t at)
{
	uint32_t value;

	get(v, at, &value, sizeof(value));
	return value;
}

static uint64_t get64(const struct taskstats_view *v, size_t at)
{
	uint64_t value;

	get(v, at, &value, sizeof(value));
	return value;
}

static int view_of(struct str bytes, unsigned version,
		   struct taskstats_view *ret)
{
	size_t row;

	if (version < VERSION_MIN)
		return -EBADMSG;
	row = MIN(version - VERSION_MIN, ARRAY_SIZE(lengths) - 1);
	if (bytes.n < lengths[row] ||
	    (version == VERSION_SPREAD && bytes.n < LENGTH_SPREAD))
		return -EBADMSG;
	*ret = (struct taskstats_view){bytes, version};
	return 0;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/*
 * run_ns lacks what the task ran since it was put on a CPU last or since the
 * last timer interrupt: of the shortest lives all. But a task that never slept
 * ran whenever it did not wait for a CPU, and the kernel tells how long it
 * waited; not longer than a timer interrupt or what was charged to it, or the
 * host did not run either: a VM was stopped. Of another one, half of a usual
 * stretch is missing; but after long ones the last can be any, and what is too
 * little can be made up for (ledger.h), what is too much cannot.
 */
static void estimate(const struct taskstats_view *v, struct exitrec *r)
{
	uint64_t n_stretches = get64(v, AT_CPU_COUNT);
	uint64_t lived = times(get64(v, AT_ETIME), NSEC_PER_USEC);
	uint64_t leave = plus(
	    LEAVE_NS, times(r->hiwater_rss / LEAVE_PAGE, LEAVE_NS_PER_PAGE));
	uint64_t charged =
	    times(plus(r->value[EXIT_UTIME_US], r->value[EXIT_STIME_US]),
		  NSEC_PER_USEC);
	uint64_t most, usual, unseen;

	r->run_ns = get64(v, AT_RUN_VIRTUAL);
	if (!n_stretches) { /* not told */
		r->cpu_ns = charged;
		r->run_ns = MIN(r->run_ns, r->cpu_ns);
		r->cpu_max_ns = plus(r->cpu_ns, leave + TICK_MAX_NS);
		return;
	}
	most = MAX(minus(lived, r->value[EXIT_CPU_WAIT]), r->run_ns);
	if (r->value[EXIT_NVCSW] == 0) {
		most = MIN(most, MAX(plus(r->run_ns, TICK_MAX_NS), charged));
		r->cpu_ns = most;
		r->cpu_max_ns = plus(most, leave);
		return;
	}
	usual = n_stretches > 1 ? r->run_ns / (n_stretches - 1) : UINT64_MAX;
	unseen = most - r->run_ns;
	r->cpu_ns = r->run_ns + MIN(unseen, MIN(usual / 2, LAST_STRETCH_NS));
	r->cpu_max_ns = plus(r->run_ns + MIN(unseen, TICK_MAX_NS), leave);
}

static void parse_start(const struct taskstats_view *v, struct exitrec *r)
{
	uint64_t elapsed = get64(v, AT_ETIME);
	uint64_t began = v->version >= VERSION_BTIME64 ? get64(v, AT_BTIME64)
						       : get32(v, AT_BTIME);

	r->elapsed_us = elapsed;
	r->began_s = began;
	if (v->version < VERSION_TGID)
		return;
	/* When the thread began, and how long before that its process. */
	r->elapsed_us = MAX(get64(v, AT_TGETIME), elapsed);
	r->began_s =
	    minus(began, r->elapsed_us / USEC_PER_SEC - elapsed / USEC_PER_SEC);
}

/* The kernel writes a number of its own (huge_encode_dev()). */
static uint64_t device(uint64_t encoded)
{
	return makedev(
	    (unsigned)(encoded >> 8 & 0xfff),
	    (unsigned)((encoded & 0xff) | (encoded >> 12 & 0xfff00)));
}

static void parse_identity(const struct taskstats_view *v, struct exitrec *r)
{
	uint8_t acct;

	get(v, AT_FLAG, &acct, sizeof(acct));
	r->pid = r->tid = get32(v, AT_PID);
	r->ppid = get32(v, AT_PPID);
	r->uid = get32(v, AT_UID);
	r->gid = get32(v, AT_GID);
	r->exit_code = get32(v, AT_EXIT_CODE);
	r->n_threads = 1;
	get(v, AT_COMM, r->comm, sizeof(r->comm) - 1);
	if (acct & ACCT_FORK)
		r->flags |= EXIT_FORKED;
	if (acct & ACCT_SIGNAL)
		r->flags |= EXIT_KILLED;
	if (v->version < VERSION_TGID) {
		r->flags |= EXIT_UNSURE;
		return;
	}
	r->flags |= EXIT_HAS_TGID;
	r->pid = get32(v, AT_TGID);
	if (r->pid == r->tid)
		r->flags |= EXIT_LEADER;
	if (acct & ACCT_GROUP)
		r->flags |= EXIT_LAST;
	r->exe_inode = get64(v, AT_EXE_INODE);
	if (r->exe_inode) {
		r->exe_dev = device(get64(v, AT_EXE_DEV));
		r->flags |= EXIT_HAS_EXE;
	}
}

int exitrec_parse(struct str bytes, struct exitrec *ret)
{
	struct taskstats_view v;
	uint16_t version;
	int r;

	if (bytes.n < sizeof(version))
		return -EBADMSG;
	memcpy(&version, bytes.s + AT_VERSION, sizeof(version));
	r = view_of(bytes, version, &v);
	if (r < 0)
		return r;
	*ret = (struct exitrec){.version = version};
	for (unsigned i = 0; i < EXIT_N_VALUES; i++) {
		if (v.version < values[i].version)
			continue;
		ret->value[i] = get64(&v, values[i].at);
		ret->have |= EXIT_BIT(i);
	}
	ret->hiwater_rss = times(get64(&v, AT_HIWATER_RSS), 1024);
	parse_identity(&v, ret);
	parse_start(&v, ret);
	estimate(&v, ret);
	return 0;
}

int exitrec_parse_group(struct str bytes, unsigned version,
			struct exit_group *ret)
{
	struct taskstats_view v;
	int r = view_of(bytes, version, &v);

	if (r < 0)
		return r;
	*ret = (struct exit_group){
	    .run_ns = get64(&v, AT_RUN_VIRTUAL),
	    .utime_us = get64(&v, AT_UTIME),
	    .stime_us = get64(&v, AT_STIME),
	};
	return 0;
}

static void take_identity(struct exitrec *sum, const struct exitrec *from)
{
	const uint32_t taken =
	    EXIT_FORKED | EXIT_KILLED | EXIT_LEADER | EXIT_HAS_EXE;

	sum->flags = (sum->flags & ~taken) | (from->flags & taken);
	sum->exit_code = from->exit_code;
	sum->exe_dev = from->exe_dev;
	sum->exe_inode = from->exe_inode;
	memcpy(sum->comm, from->comm, sizeof(sum->comm));
}

void exitrec_add(struct exitrec *sum, const struct exitrec *thread)
{
	if (!sum->n_threads) {
		*sum = *thread;
		return;
	}
	for (unsigned i = 0; i < EXIT_N_VALUES; i++)
		sum->value[i] = plus(sum->value[i], thread->value[i]);
	sum->run_ns = plus(sum->run_ns, thread->run_ns);
	sum->cpu_ns = plus(sum->cpu_ns, thread->cpu_ns);
	sum->cpu_max_ns = plus(sum->cpu_max_ns, thread->cpu_max_ns);
	sum->hiwater_rss = MAX(sum->hiwater_rss, thread->hiwater_rss);
	sum->n_threads += thread->n_threads;
	sum->have &= thread->have;
	if (thread->flags & EXIT_LEADER || !(sum->flags & EXIT_LEADER))
		take_identity(sum, thread);
	if (sum->flags & EXIT_LAST)
		return; /* a latecomer */
	sum->tid = thread->tid;
	sum->ppid = thread->ppid;
	sum->uid = thread->uid;
	sum->gid = thread->gid;
	sum->began_s = thread->began_s;
	sum->elapsed_us = thread->elapsed_us;
	sum->flags |= thread->flags & EXIT_LAST;
}

void exitrec_add_group(struct exitrec *sum, const struct exit_group *group)
{
	uint64_t unseen = minus(group->run_ns, sum->run_ns);

	if (unseen) {
		sum->flags |= EXIT_PARTIAL;
		sum->run_ns += unseen;
		sum->cpu_ns = plus(sum->cpu_ns, unseen);
		sum->cpu_max_ns = plus(sum->cpu_max_ns, unseen);
	}
	sum->value[EXIT_UTIME_US] =
	    MAX(sum->value[EXIT_UTIME_US], group->utime_us);
	sum->value[EXIT_STIME_US] =
	    MAX(sum->value[EXIT_STIME_US], group->stime_us);
}

void exitrec_split(const struct exitrec *r, uint64_t cpu_ns,
		   uint64_t *ret_user_ns, uint64_t *ret_system_ns)
{
	double user = (double)r->value[EXIT_UTIME_US];
	double system = (double)r->value[EXIT_STIME_US];
	double part = system > 0 ? system / (user + system) : 0;
	double ns = (double)cpu_ns * part;

	*ret_system_ns = ns < (double)cpu_ns ? (uint64_t)ns : cpu_ns;
	*ret_user_ns = cpu_ns - *ret_system_ns;
}
