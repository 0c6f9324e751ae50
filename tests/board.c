/* SPDX-License-Identifier: MIT */
/* What a person reads: rates out of two ticks, what is absent, and orders. */
#include "board.h"
#include "roster.h"
#include "tap.h"

#include <stdlib.h>

static struct board b;
static uint64_t now_ns;

/* Values in the order in which the table of metrics has them. */
static void tell(const char *group, const char *type, const char *instance,
		 bool derive, uint64_t v0, uint64_t v1, unsigned n)
{
	struct value_out v = {
	    .group = group,
	    .type = type,
	    .instance = instance,
	    .derive = derive,
	    .n = n,
	    .ds = {"a", "b"},
	};

	if (derive) {
		v.u[0] = v0;
		v.u[1] = v1;
	} else {
		v.d[0] = (double)v0;
		v.d[1] = (double)v1;
	}
	board_take(&b, &v);
}

static void cpu(const char *group, uint64_t user_us, uint64_t syst_us)
{
	tell(group, "ps_cputime", NULL, true, user_us, syst_us, 2);
}

static void count(const char *group, uint64_t processes)
{
	tell(group, "ps_count", NULL, false, processes, processes, 2);
}

static void rss(const char *group, uint64_t bytes)
{
	tell(group, "ps_rss", NULL, false, bytes, 0, 1);
}

static void begin(double passed_s)
{
	now_ns += (uint64_t)(passed_s * 1e9);
	board_begin(&b, now_ns);
}

static void start(void)
{
	board_init(&b);
	now_ns = 1000 * NSEC_PER_SEC;
	begin(0);
}

static void end(void)
{
	check_int(board_end(&b), 0);
}

static const struct board_row *row(const char *group)
{
	for (size_t i = 0; i < b.n_rows; i++)
		if (strcmp(b.row[i].name, group) == 0)
			return &b.row[i];
	return NULL;
}

/* The value in thousandths, or -1 if it is absent. */
static int64_t milli(const char *group, enum board_value v)
{
	const struct board_row *r = row(group);

	return r && board_has(r, v) ? (int64_t)(r->value[v] * 1000 + 0.5) : -1;
}

static const char *sorted(enum board_value by, bool reverse)
{
	struct board_order o = {by, reverse};
	static char text[256];
	size_t n = 0;

	board_sort(&b, &o);
	text[0] = '\0';
	for (size_t i = 0; i < b.n_rows; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
				      i ? " " : "", b.row[b.order[i]].name);
	return text;
}

static void rates(void)
{
	start();
	cpu("g", 1000000, 500000);
	tell("g", "disk_octets", NULL, true, 100, 1000, 2);
	tell("g", "ps_pagefaults", NULL, true, 10, 5, 2);
	end();
	check_int(milli("g", BOARD_CPU), -1);
	check_int(milli("g", BOARD_READ), -1);
	check_int(milli("g", BOARD_FAULTS), -1);
	begin(2);
	cpu("g", 2000000, 1000000);
	tell("g", "disk_octets", NULL, true, 300, 5000, 2);
	tell("g", "ps_pagefaults", NULL, true, 14, 7, 2);
	end();
	check_int(milli("g", BOARD_CPU), 75000);
	check_int(milli("g", BOARD_READ), 100000);
	check_int(milli("g", BOARD_WRITE), 2000000);
	check_int(milli("g", BOARD_IO), 2100000);
	check_int(milli("g", BOARD_FAULTS), 3000);
	begin(0.5);
	cpu("g", 2000000, 1000000);
	end();
	check_int(milli("g", BOARD_CPU), 0);
	board_done(&b);
}

static void gauges(void)
{
	start();
	rss("g", 4096);
	tell("g", "ps_vm", NULL, false, 99, 0, 1);
	tell("g", "memory", "swap", false, 1, 0, 1);
	tell("g", "memory", "pss", false, 2, 0, 1);
	tell("g", "memory", "anon", false, 99, 0, 1);
	tell("g", "ps_count", NULL, false, 3, 4, 2);
	tell("g", "file_handles", NULL, false, 5, 0, 1);
	tell("g", "uptime", "newest", false, 99, 0, 1);
	tell("g", "uptime", "oldest", false, 6, 0, 1);
	end();
	check_int(milli("g", BOARD_RSS), 4096000);
	check_int(milli("g", BOARD_SWAP), 1000);
	check_int(milli("g", BOARD_PSS), 2000);
	check_int(milli("g", BOARD_PROCESSES), 3000);
	check_int(milli("g", BOARD_THREADS), 4000);
	check_int(milli("g", BOARD_FDS), 5000);
	check_int(milli("g", BOARD_AGE), 6000);
	check(!board_tells(&b, BOARD_GPU));
	check(board_tells(&b, BOARD_PSS));
	board_done(&b);
}

static void busiest_engine(void)
{
	start();
	tell("g", "percent", "gpu-card0-render", false, 20, 0, 1);
	tell("g", "percent", "gpu-card0-video", false, 70, 0, 1);
	tell("g", "percent", "gpu-card1-render", false, 30, 0, 1);
	tell("g", "percent", "fd_limit", false, 99, 0, 1);
	end();
	check_int(milli("g", BOARD_GPU), 70000);
	begin(1);
	tell("g", "percent", "gpu-card0-video", false, 10, 0, 1);
	end();
	check_int(milli("g", BOARD_GPU), 10000);
	board_done(&b);
}

static void absent(void)
{
	start();
	cpu("g", 0, 0);
	rss("g", 1);
	end();
	begin(1);
	cpu("g", 0, 0);
	end();
	check_int(milli("g", BOARD_CPU), 0);
	check_int(milli("g", BOARD_RSS), -1);
	check_int(milli("g", BOARD_SWAP), -1);
	check_int(milli("g", BOARD_IO), -1);
	check(!board_tells(&b, BOARD_RSS));
	board_done(&b);
}

static void counter_that_appears(void)
{
	start();
	cpu("g", 0, 0);
	end();
	begin(1);
	cpu("g", 0, 0);
	tell("g", "disk_octets", NULL, true, 5000, 0, 2);
	end();
	check_int(milli("g", BOARD_READ), -1);
	begin(1);
	cpu("g", 0, 0);
	tell("g", "disk_octets", NULL, true, 5007, 0, 2);
	end();
	check_int(milli("g", BOARD_READ), 7000);
	begin(1);
	cpu("g", 0, 0);
	end();
	check_int(milli("g", BOARD_READ), -1);
	/* It was away: what it counts from is not known. */
	begin(1);
	cpu("g", 0, 0);
	tell("g", "disk_octets", NULL, true, 9000, 0, 2);
	end();
	check_int(milli("g", BOARD_READ), -1);
	board_done(&b);
}

static void counter_that_falls(void)
{
	start();
	cpu("g", 500, 500);
	end();
	begin(1);
	cpu("g", 100, 100);
	end();
	check_int(milli("g", BOARD_CPU), -1);
	begin(1);
	cpu("g", 100, 10100);
	end();
	check_int(milli("g", BOARD_CPU), 1000);
	board_done(&b);
}

static void no_time_passed(void)
{
	start();
	cpu("g", 0, 0);
	end();
	begin(0);
	cpu("g", 100, 0);
	end();
	check_int(milli("g", BOARD_CPU), -1);
	board_done(&b);
}

static void vanishing_group(void)
{
	start();
	cpu("a", 0, 0);
	cpu("b", 0, 0);
	cpu("c", 0, 0);
	end();
	begin(1);
	cpu("a", 10000, 0);
	cpu("c", 30000, 0);
	end();
	check_u64(b.n_rows, 2);
	check(!row("b"));
	check_int(milli("a", BOARD_CPU), 1000);
	check_int(milli("c", BOARD_CPU), 3000);
	check_text(sorted(BOARD_NAME, false), "a c");
	/* It begins anew when it comes back. */
	begin(1);
	cpu("b", 90000, 0);
	cpu("c", 50000, 0);
	cpu("a", 10000, 0);
	end();
	check_u64(b.n_rows, 3);
	check_int(milli("b", BOARD_CPU), -1);
	check_int(milli("c", BOARD_CPU), 2000);
	check_int(milli("a", BOARD_CPU), 0);
	begin(1);
	end();
	check_u64(b.n_rows, 0);
	check_text(sorted(BOARD_CPU, false), "");
	board_done(&b);
}

static void many_groups(void)
{
	static const unsigned step[] = {1, 7, 333};
	char name[16];

	start();
	for (unsigned round = 0; round < ARRAY_SIZE(step); round++) {
		for (unsigned i = 0; i < 1000; i++) {
			unsigned k = i * step[round] % 1000;

			snprintf(name, sizeof(name), "g%u", k);
			cpu(name, round * k * 10000, 0);
		}
		end();
		begin(1);
	}
	for (unsigned k = 1000; k-- > 0;) {
		snprintf(name, sizeof(name), "g%u", k);
		cpu(name, 2 * k * 10000 + k * 1000, 0);
	}
	end();
	check_u64(b.n_rows, 1000);
	for (unsigned k = 0; k < 1000; k++) {
		snprintf(name, sizeof(name), "g%u", k);
		check_int(milli(name, BOARD_CPU), k * 100);
	}
	board_done(&b);
}

static void own_values(void)
{
	start();
	tell("_self", "count", "processes", false, 5, 0, 1);
	count("g", 1);
	end();
	check_u64(b.n_rows, 1);
	check(row("g") != NULL);
	board_done(&b);
}

/* A list of another kind than it has to be is not misread. */
static void odd_lists(void)
{
	start();
	tell("g", "ps_cputime", NULL, false, 1, 1, 2);
	tell("g", "ps_count", NULL, false, 7, 0, 1);
	tell("g", "ps_rss", "x", false, 1, 0, 1);
	tell("g", "ps_cputime", "reaped", true, 1, 1, 2);
	end();
	begin(1);
	tell("g", "ps_cputime", NULL, false, 1, 1, 2);
	tell("g", "ps_cputime", "reaped", true, 1000, 1, 2);
	tell("g", "ps_count", NULL, false, 7, 0, 1);
	end();
	check_int(milli("g", BOARD_CPU), -1);
	check_int(milli("g", BOARD_THREADS), -1);
	check_int(milli("g", BOARD_RSS), -1);
	check_int(milli("g", BOARD_PROCESSES), 7000);
	board_done(&b);
}

static void fill_for_orders(unsigned round)
{
	/*         CPU %  RSS
	 * busy       50    1
	 * calm        1    9
	 * even        1    9
	 * big         1   30
	 * dark        -    5   (no CPU time is collected)
	 * empty       0    -   (no member)
	 */
	cpu("empty", 0, 0);
	count("empty", 0);
	cpu("even", round * 10000, 0);
	rss("even", 9);
	count("even", 2);
	cpu("calm", round * 10000, 0);
	rss("calm", 9);
	count("calm", 5);
	rss("dark", 5);
	count("dark", 1);
	cpu("busy", round * 500000, 0);
	rss("busy", 1);
	count("busy", 1);
	cpu("big", round * 10000, 0);
	rss("big", 30);
	count("big", 9);
}

static void orders(void)
{
	start();
	fill_for_orders(0);
	end();
	begin(1);
	fill_for_orders(1);
	end();
	check_text(sorted(BOARD_CPU, false), "busy big calm even dark empty");
	check_text(sorted(BOARD_CPU, true), "big calm even busy dark empty");
	check_text(sorted(BOARD_RSS, false), "big calm even dark busy empty");
	check_text(sorted(BOARD_RSS, true), "busy dark calm even big empty");
	check_text(sorted(BOARD_PROCESSES, false),
		   "big calm even busy dark empty");
	check_text(sorted(BOARD_NAME, false), "big busy calm dark empty even");
	check_text(sorted(BOARD_NAME, true), "even empty dark calm busy big");
	/* Nobody has it: the order is that of CPU. */
	check_text(sorted(BOARD_PSS, false), "busy big calm even dark empty");
	check_text(sorted(BOARD_PSS, true), "busy big calm even dark empty");
	board_done(&b);
}

/* What just ended has used something, and comes last all the same. */
static void empty_group_that_used_most(void)
{
	start();
	cpu("gone", 0, 0);
	count("gone", 1);
	cpu("here", 0, 0);
	count("here", 1);
	end();
	begin(1);
	cpu("gone", 900000, 0);
	count("gone", 0);
	cpu("here", 100, 0);
	count("here", 1);
	end();
	check_text(sorted(BOARD_CPU, false), "here gone");
	check_int(milli("gone", BOARD_CPU), 90000);
	board_done(&b);
}

/* Processes. */

static struct roster r;
static struct moment now;

static void roster_start(void)
{
	roster_init(&r);
	now = (struct moment){.mono_ns = 500 * NSEC_PER_SEC,
			      .boot_ns = 900 * NSEC_PER_SEC};
	roster_begin(&r, &now);
}

static void roster_pass(double s)
{
	check_int(roster_end(&r), 0);
	now.mono_ns += (uint64_t)(s * 1e9);
	now.boot_ns += (uint64_t)(s * 1e9);
	roster_begin(&r, &now);
}

static void member(pid_t pid, const char *comm, uint64_t start_s,
		   uint64_t cpu_us, uint64_t rss_bytes)
{
	struct monitor_member m = {
	    .pid = pid,
	    .start_ns = start_s * NSEC_PER_SEC,
	    .comm = comm,
	    .state = 'S',
	    .has_cpu = true,
	    .has_rss = rss_bytes != 0,
	    .cpu_us = cpu_us,
	    .rss_bytes = rss_bytes,
	};

	roster_take(&r, &m);
}

static int64_t milli_of(pid_t pid)
{
	for (size_t i = 0; i < r.n_entries; i++)
		if (r.entry[i].member.pid == pid)
			return r.entry[i].has_cpu
				   ? (int64_t)(r.entry[i].cpu * 1000 + 0.5)
				   : -1;
	return -2;
}

static void member_rates(void)
{
	roster_start();
	member(10, "a", 1, 1000000, 1);
	member(20, "b", 1, 0, 1);
	member(30, "c", 1, 7, 1);
	check(!r.has_cpu);
	roster_pass(2);
	member(10, "a", 1, 2000000, 1);
	member(15, "new", 901, 500000, 1); /* born between the ticks */
	member(16, "late", 1, 500000, 1);  /* older, but not seen before */
	member(20, "again", 800, 100, 1);  /* the number was reused */
	member(30, "c", 1, 6, 1);	   /* fell */
	check_int(milli_of(10), 50000);
	check_int(milli_of(15), 25000);
	check_int(milli_of(16), -1);
	check_int(milli_of(20), -1);
	check_int(milli_of(30), -1);
	check(r.has_cpu);
	check_int((int)(r.cpu * 1000 + 0.5), 75000);
	roster_pass(1);
	member(16, "late", 1, 600000, 1);
	check_int(milli_of(16), 10000);
	check_int(milli_of(10), -2);
	check_int(roster_end(&r), 0);
	roster_done(&r);
}

static const char *shown(enum board_value by, bool reverse)
{
	struct board_order o = {by, reverse};
	static char text[128];
	size_t n = 0;

	roster_sort(&r, &o);
	text[0] = '\0';
	for (size_t i = 0; i < r.n_shown; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d",
				      i ? " " : "",
				      (int)r.entry[r.shown[i]].member.pid);
	return text;
}

static void member_orders(void)
{
	roster_start();
	for (pid_t pid = 1; pid <= 6; pid++)
		member(pid, "", 1, 0, 1);
	roster_pass(1);
	member(1, "b", 1, 100, 50);
	member(2, "a", 1, 100, 70);
	member(3, "d", 1, 300, 0);
	member(4, "c", 1, 100, 70);
	member(5, "e", 1, 999, 99);
	member(7, "f", 1, 0, 10);
	roster_show_none(&r);
	for (pid_t pid = 7; pid >= 1; pid--)
		if (pid != 5)
			check_int(roster_show(&r, pid), 0);
	check_text(shown(BOARD_CPU, false), "3 2 4 1 7");
	check_text(shown(BOARD_CPU, true), "2 4 1 3 7");
	check_text(shown(BOARD_RSS, false), "2 4 1 7 3");
	check_text(shown(BOARD_RSS, true), "7 1 2 4 3");
	check_text(shown(BOARD_NAME, false), "2 1 4 3 7");
	check_text(shown(BOARD_NAME, true), "7 3 4 1 2");
	/* There is no such value of one process. */
	check_text(shown(BOARD_FDS, false), "3 2 4 1 7");
	roster_show_none(&r);
	check_text(shown(BOARD_CPU, false), "");
	check_int(roster_end(&r), 0);
	roster_done(&r);
}

static void sums(void)
{
	struct roster_sum *sum = NULL;
	size_t n = 0;

	roster_start();
	check_int(roster_sums(&r, &sum, &n), 0);
	check_u64(n, 0);
	free(sum);
	for (pid_t pid = 1; pid <= 7; pid++)
		member(pid, "", 1, 0, 1);
	roster_pass(1);
	member(1, "sh", 1, 10000, 100);
	member(2, "mine", 1, 999999, 100);
	member(3, "big", 1, 10000, 1000);
	member(4, "sh", 1, 10000, 50);
	member(5, "twin", 1, 0, 7);
	member(6, "twim", 1, 0, 7);
	member(7, "dead", 1, 0, 0);
	member(8, "dark", 1, 0, 0);
	for (pid_t pid = 1; pid <= 8; pid++)
		if (pid != 2)
			check_int(roster_show(&r, pid), 0);
	check_int(roster_sums(&r, &sum, &n), 0);
	check_u64(n, 6);
	if (n == 6) {
		check_text(sum[0].comm, "sh");
		check_u64(sum[0].n, 2);
		check_u64(sum[0].rss_bytes, 150);
		check_int((int)(sum[0].cpu * 1000 + 0.5), 2000);
		check_text(sum[1].comm, "big");
		check_text(sum[2].comm, "twim");
		check_text(sum[3].comm, "twin");
		check_text(sum[4].comm, "dead");
		check(!sum[4].has_rss);
		check(sum[4].has_cpu);
		check_text(sum[5].comm, "dark");
		check(!sum[5].has_cpu);
	}
	free(sum);
	check_int(roster_end(&r), 0);
	roster_done(&r);
}

int main(void)
{
	TEST("rates are what counters grew by in the time between ticks",
	     rates);
	TEST("gauges are those of the last tick", gauges);
	TEST("of a GPU's engines the busiest one counts", busiest_engine);
	TEST("what was not told is absent, not 0", absent);
	TEST("a counter that appears has no rate yet", counter_that_appears);
	TEST("a counter that falls has no rate", counter_that_falls);
	TEST("there is no rate where no time has passed", no_time_passed);
	TEST("a group that vanishes leaves, and comes back as a new one",
	     vanishing_group);
	TEST("many groups in another order each time are kept apart",
	     many_groups);
	TEST("what proctally says of itself is no group", own_values);
	TEST("lists of another kind are not taken", odd_lists);
	TEST("orders: by value, then CPU, RSS and name; absent ones last",
	     orders);
	TEST("a group without members is last, whatever it has used",
	     empty_group_that_used_most);
	TEST("rates of processes, of new ones and of reused numbers",
	     member_rates);
	TEST("orders of processes", member_orders);
	TEST("sums by comm, the largest first", sums);
	return tap_done();
}
