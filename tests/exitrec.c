/* SPDX-License-Identifier: MIT */
/*
 * Tests of plugin/exitrec.c. Structs are written field by field in the order
 * of the kernel's header, so that each version gets its own layout.
 */
#include "exitrec.h"

#include <stdlib.h>
#include <sys/sysmacros.h>

#include "tap.h"

struct writer {
	unsigned version;
	size_t n;
	char bytes[1024];
};

/* What the fields of a test are, as the kernel names them. */
struct fields {
	uint32_t exit_code, uid, gid, pid, ppid, btime, tgid;
	uint8_t flag;
	uint64_t cpu_count, cpu_delay, run_virtual, etime, utime, stime, minflt;
	uint64_t nvcsw, hiwater_rss, btime64, tgetime, exe_dev, exe_inode;
	const char *comm;
};

static const struct fields usual = {
    .exit_code = 0x0300,
    .uid = 1000,
    .gid = 100,
    .pid = 77,
    .ppid = 5,
    .btime = 1700000000,
    .tgid = 70,
    .flag = 0x21,
    .cpu_count = 3,
    .cpu_delay = 4000000,
    .run_virtual = 2000000,
    .etime = 9000000,
    .utime = 4000,
    .stime = 8000,
    .minflt = 123,
    .nvcsw = 2,
    .hiwater_rss = 4096,
    .btime64 = UINT64_C(1700000000),
    .tgetime = 19500000,
    .exe_dev = 0x12345fe67,
    .exe_inode = 4711,
    .comm = "worker",
};

static void put(struct writer *w, const void *p, size_t n, size_t align)
{
	w->n = (w->n + align - 1) & ~(align - 1);
	memcpy(w->bytes + w->n, p, n);
	w->n += n;
}

static void put32(struct writer *w, uint32_t v)
{
	put(w, &v, sizeof(v), 4);
}

static void put64(struct writer *w, uint64_t v)
{
	put(w, &v, sizeof(v), 8);
}

/* How often and how long; between 6.14 and 6.15 the longest and shortest. */
static void put_delay(struct writer *w, uint64_t count, uint64_t total)
{
	put64(w, count);
	put64(w, total);
	if (w->version == 15) {
		put64(w, 0xbad1);
		put64(w, 0xbad2);
	}
}

static void put_head(struct writer *w, const struct fields *f)
{
	uint16_t version = (uint16_t)w->version;
	char comm[32] = "";

	put(w, &version, sizeof(version), 2);
	put32(w, f->exit_code);
	put(w, &f->flag, 1, 1);
	put(w, "\x14", 1, 1); /* nice */
	put_delay(w, f->cpu_count, f->cpu_delay);
	put_delay(w, 1, 501);
	put_delay(w, 1, 502);
	put64(w, 0xbad3); /* real total */
	put64(w, f->run_virtual);
	memcpy(comm, f->comm, strlen(f->comm));
	put(w, comm, sizeof(comm), 1);
	put64(w, 0); /* sched, padding */
	put32(w, f->uid);
	put32(w, f->gid);
	put32(w, f->pid);
	put32(w, f->ppid);
	put32(w, f->btime);
	put64(w, f->etime);
	put64(w, f->utime);
	put64(w, f->stime);
	put64(w, f->minflt);
	put64(w, 201); /* majflt */
	put64(w, 202); /* coremem */
	put64(w, 0xbad4);
	put64(w, f->hiwater_rss);
	put64(w, 0xbad5);
	for (unsigned i = 0; i < 6; i++)
		put64(w, 301 + i); /* chars, calls, bytes */
	put64(w, 0xbad6);
	put64(w, f->nvcsw);
	put64(w, 402); /* nivcsw */
	for (unsigned i = 0; i < 3; i++)
		put64(w, 0xbad7);
	put_delay(w, 1, 503);
}

static struct str write_stats(struct writer *w, unsigned version,
			      const struct fields *f)
{
	*w = (struct writer){.version = version};
	put_head(w, f);
	if (version >= 9)
		put_delay(w, 1, 504);
	if (version >= 10)
		put64(w, f->btime64);
	if (version >= 11)
		put_delay(w, 1, 505);
	if (version >= 12) {
		put32(w, f->tgid);
		put64(w, f->tgetime);
		put64(w, f->exe_dev);
		put64(w, f->exe_inode);
	}
	if (version >= 13)
		put_delay(w, 1, 506);
	if (version >= 14)
		put_delay(w, 1, 507);
	for (unsigned i = 0; version >= 16 && i < 16; i++)
		put64(w, 0xbad8);
	for (unsigned i = 0; version >= 17 && i < 3; i++)
		put64(w, 0xbad9);
	return (struct str){w->bytes, w->n};
}

/* Copied to the heap, so that a sanitizer sees what is behind its end. */
static int parse(struct str bytes, struct exitrec *ret)
{
	char *copy = malloc(bytes.n ? bytes.n : 1);
	int r;

	memcpy(copy, bytes.s, bytes.n);
	r = exitrec_parse((struct str){copy, bytes.n}, ret);
	free(copy);
	return r;
}

static void check_common(const struct exitrec *r)
{
	static const uint64_t want[] = {
	    [EXIT_UTIME_US] = 4000,    [EXIT_STIME_US] = 8000,
	    [EXIT_MINFLT] = 123,       [EXIT_MAJFLT] = 201,
	    [EXIT_READ_CHARS] = 301,   [EXIT_WRITE_CHARS] = 302,
	    [EXIT_READ_CALLS] = 303,   [EXIT_WRITE_CALLS] = 304,
	    [EXIT_READ_BYTES] = 305,   [EXIT_WRITE_BYTES] = 306,
	    [EXIT_NVCSW] = 2,	       [EXIT_NIVCSW] = 402,
	    [EXIT_COREMEM] = 202,      [EXIT_CPU_WAIT] = 4000000,
	    [EXIT_BLKIO_WAIT] = 501,   [EXIT_SWAPIN_WAIT] = 502,
	    [EXIT_RECLAIM_WAIT] = 503,
	};

	for (unsigned i = 0; i < ARRAY_SIZE(want); i++)
		check_u64(r->value[i], want[i]);
	check_u64(r->tid, 77);
	check_u64(r->ppid, 5);
	check_u64(r->uid, 1000);
	check_u64(r->gid, 100);
	check_u64(r->exit_code, 0x300);
	check_u64(r->hiwater_rss, 4096 * 1024);
	check_u64(r->run_ns, 2000000);
	check_text(r->comm, "worker");
	check(r->flags & EXIT_FORKED);
	check(!(r->flags & EXIT_KILLED));
}

static void every_version(void)
{
	static const size_t length[] = {328, 344, 352, 368, 400,
					416, 432, 560, 560, 584};

	for (unsigned version = 8; version <= 17; version++) {
		struct writer w;
		struct exitrec r;
		struct str bytes = write_stats(&w, version, &usual);

		check_u64(bytes.n, length[version - 8]);
		check_int(parse(bytes, &r), 0);
		check_u64(r.version, version);
		check_common(&r);
		check_u64(r.value[EXIT_THRASHING_WAIT], version >= 9 ? 504 : 0);
		check_u64(r.value[EXIT_COMPACT_WAIT], version >= 11 ? 505 : 0);
		check_int(!!(r.have & EXIT_BIT(EXIT_COMPACT_WAIT)),
			  version >= 11);
		check_int(!!(r.flags & EXIT_HAS_TGID), version >= 12);
		check_int(!!(r.flags & EXIT_UNSURE), version < 12);
		check_int(!!(r.flags & EXIT_LAST), version >= 12);
		check_u64(r.pid, version >= 12 ? 70 : 77);
		check_u64(r.exe_inode, version >= 12 ? 4711 : 0);
	}
}

static void too_short(void)
{
	for (unsigned version = 8; version <= 17; version++) {
		struct writer w;
		struct exitrec r = {.pid = 1};
		struct str bytes = write_stats(&w, version, &usual);
		size_t known =
		    MIN(bytes.n, (size_t)(version == 15 ? 560 : 432));

		bytes.n = known - 1;
		check_int(parse(bytes, &r), -EBADMSG);
		check_u64(r.pid, 1);
		bytes.n = 0;
		check_int(parse(bytes, &r), -EBADMSG);
	}
}

static void too_old(void)
{
	struct writer w;
	struct exitrec r;
	struct str bytes = write_stats(&w, 8, &usual);

	w.bytes[0] = 7;
	w.bytes[1] = 0;
	check_int(parse(bytes, &r), -EBADMSG);
}

static void begin_of_process(void)
{
	struct writer w;
	struct exitrec r;

	/* The thread began at 1700000000.9 - 9 s, its process 10.5 s before. */
	check_int(parse(write_stats(&w, 16, &usual), &r), 0);
	check_u64(r.elapsed_us, 19500000);
	check_u64(r.began_s, 1700000000 - 10);
	check_int(parse(write_stats(&w, 8, &usual), &r), 0);
	check_u64(r.elapsed_us, 9000000);
	check_u64(r.began_s, 1700000000);
}

static void device_number(void)
{
	struct fields f = usual;
	struct writer w;
	struct exitrec r;

	f.exe_dev = 0x12300045 | 0x800 << 8;
	check_int(parse(write_stats(&w, 16, &f), &r), 0);
	check_u64(r.exe_dev, makedev(0x800, 0x12345));
	check(r.flags & EXIT_HAS_EXE);
	f.exe_dev = f.exe_inode = 0;
	check_int(parse(write_stats(&w, 16, &f), &r), 0);
	check(!(r.flags & EXIT_HAS_EXE));
}

static void estimate_of(uint64_t n_runs, uint64_t nvcsw, uint64_t run,
			uint64_t lived_us, uint64_t waited, uint64_t want)
{
	struct fields f = usual;
	struct writer w;
	struct exitrec r;

	f.cpu_count = n_runs;
	f.nvcsw = nvcsw;
	f.run_virtual = run;
	f.etime = lived_us;
	f.cpu_delay = waited;
	check_int(parse(write_stats(&w, 16, &f), &r), 0);
	check_u64(r.cpu_ns, want);
	check(r.run_ns <= r.cpu_ns && r.cpu_ns <= r.cpu_max_ns);
}

static void estimates(void)
{
	/* Never slept: whatever was not waiting was running. */
	estimate_of(1, 0, 0, 53, 12000, 41000);
	estimate_of(4, 0, 900000, 1000, 50000, 950000);
	estimate_of(1, 0, 0, 3000, 50000, 2950000);
	/* But for the time in which a whole VM was stopped, or given less. */
	estimate_of(1, 0, 0, 5003000, 50000, 12000000);
	estimate_of(9, 0, 40000000, 5003000, 50000, 50000000);
	/* Slept: half a usual stretch is missing, but no more than there is. */
	estimate_of(5, 1, 800000, 100000, 0, 900000);
	estimate_of(5, 1, 800000, 850, 20000, 830000);
	estimate_of(2, 1, 90000000, 500000, 0, 90250000);
	estimate_of(1, 1, 0, 500000, 0, 250000);
	/* Waited longer than it lived: rounding. */
	estimate_of(1, 0, 7000, 5, 6000, 7000);
	/* A kernel that tells neither. */
	estimate_of(0, 0, 0, 500000, 0, 12000000);
	estimate_of(0, 3, UINT64_MAX, 500000, 0, 12000000);
	/* Whatever they are, no sum wraps. */
	estimate_of(2, 0, UINT64_MAX, UINT64_MAX, 0, UINT64_MAX);
}

static struct exitrec thread(uint32_t tid, uint64_t run_ns)
{
	struct exitrec r = {
	    .pid = 70,
	    .tid = tid,
	    .ppid = 5,
	    .n_threads = 1,
	    .flags = EXIT_HAS_TGID | (tid == 70 ? EXIT_LEADER : 0),
	    .have = EXIT_BIT(EXIT_N_VALUES) - 1,
	    .exit_code = tid,
	    .run_ns = run_ns,
	    .cpu_ns = run_ns + 5,
	    .cpu_max_ns = run_ns + 100,
	    .hiwater_rss = tid,
	};

	snprintf(r.comm, sizeof(r.comm), "t%u", tid);
	for (unsigned i = 0; i < EXIT_N_VALUES; i++)
		r.value[i] = i + tid;
	return r;
}

static void threads(void)
{
	struct exitrec sum = {0}, a = thread(71, 10), b = thread(70, 20),
		       c = thread(72, 30);

	exitrec_add(&sum, &a);
	check_text(sum.comm, "t71");
	exitrec_add(&sum, &b);
	c.flags |= EXIT_LAST;
	c.elapsed_us = 9;
	exitrec_add(&sum, &c);
	check_text(sum.comm, "t70");
	check_u64(sum.exit_code, 70);
	check(sum.flags & EXIT_LAST);
	check_u64(sum.elapsed_us, 9);
	check_u64(sum.n_threads, 3);
	check_u64(sum.run_ns, 60);
	check_u64(sum.cpu_ns, 75);
	check_u64(sum.cpu_max_ns, 360);
	check_u64(sum.hiwater_rss, 72);
	for (unsigned i = 0; i < EXIT_N_VALUES; i++)
		check_u64(sum.value[i], 3 * i + 70 + 71 + 72);
}

static void latecomer(void)
{
	struct exitrec sum = {0}, last = thread(71, 10), late = thread(70, 20);

	last.flags |= EXIT_LAST;
	last.elapsed_us = 50;
	late.elapsed_us = 40;
	exitrec_add(&sum, &last);
	exitrec_add(&sum, &late);
	check_u64(sum.run_ns, 30);
	check_u64(sum.elapsed_us, 50);
	check_u64(sum.tid, 71);
	check_text(sum.comm, "t70");
	check(sum.flags & EXIT_LAST);
}

static void group_sum(void)
{
	struct exitrec sum = {0}, a = thread(70, 1000);
	struct exit_group g;
	struct writer w;

	/* Its version is 0 in many kernels. */
	write_stats(&w, 16, &usual);
	memset(w.bytes, 0, 2);
	check_int(exitrec_parse_group((struct str){w.bytes, w.n}, 16, &g), 0);
	check_u64(g.run_ns, 2000000);
	check_u64(g.utime_us, 4000);
	check_u64(g.stime_us, 8000);
	check_int(exitrec_parse_group((struct str){w.bytes, 300}, 16, &g),
		  -EBADMSG);

	exitrec_add(&sum, &a);
	exitrec_add_group(&sum, &(struct exit_group){.run_ns = 900});
	check_u64(sum.run_ns, 1000);
	check(!(sum.flags & EXIT_PARTIAL));
	exitrec_add_group(&sum, &g);
	check_u64(sum.run_ns, 2000000);
	check_u64(sum.cpu_ns, 2000005);
	check_u64(sum.cpu_max_ns, 2000100);
	check_u64(sum.value[EXIT_STIME_US], 8000);
	check(sum.flags & EXIT_PARTIAL);
}

static void split_of(uint64_t utime, uint64_t stime, uint64_t ns, uint64_t want)
{
	struct exitrec r = {0};
	uint64_t user, system;

	r.value[EXIT_UTIME_US] = utime;
	r.value[EXIT_STIME_US] = stime;
	exitrec_split(&r, ns, &user, &system);
	check_u64(user, want);
	check_u64(user + system, ns);
}

static void splits(void)
{
	split_of(0, 0, 900, 900);
	split_of(4000, 0, 900, 900);
	split_of(0, 4000, 900, 0);
	split_of(8000, 4000, 900, 600);
	split_of(8000, 4000, 0, 0);
	split_of(1, UINT64_MAX, UINT64_MAX, 0);
}

int main(void)
{
	TEST("a struct of each version is read by its own layout",
	     every_version);
	TEST("a struct that is shorter than its version says is refused",
	     too_short);
	TEST("a version before 8 is refused", too_old);
	TEST("the begin is that of the process where the kernel tells",
	     begin_of_process);
	TEST("the device is numbered as stat(2) does", device_number);
	TEST("CPU time is told from what ran, lived and waited", estimates);
	TEST("threads add up and the leader gives the name", threads);
	TEST("a thread that is late adds up and changes nothing else",
	     latecomer);
	TEST("what the kernel added up covers threads nobody told of",
	     group_sum);
	TEST("CPU time is split as the kernel splits it", splits);
	return tap_done();
}
