/* SPDX-License-Identifier: MIT */
/*
 * What exit records cost a monitor: a fake /proc in which nothing happens, and
 * in each tick the same records of processes that came and went.
 */
#include "alloccount.h"
#include "clocks.h"
#include "fakeexits.h"
#include "mapcount.h"
#include "monitor.h"
#include "tap.h"

#include <stdio.h>
#include <sys/stat.h>

enum {
	WARM = 4,
	TICKS = 10,
	RECORDS = 60,
	STORM = 3000,
	CALM_TICKS = 20,
};

static struct {
	char dir[64], proc[96], rules[96];
	uint64_t starts, n_exits, path_us;
} t;

static const char rules[] =
    "defaults: {collect: {exited: true, ctx: true, pss: false}}\n"
    "rules:\n"
    "  - {name: make, comm: make}\n"
    "  - {name: \"c-{{.Comm}}\", comm: 'glob:c*'}\n"
    "  - {name: tool, parent: {comm: make}, comm: as}\n"
    "  - {name: path, exe_path: 'glob:*/tool'}\n"
    "views: {user: {by: user}}\n";

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	check(f && fputs(text, f) >= 0);
	if (f)
		fclose(f);
}

static void add_process(unsigned pid, const char *comm)
{
	char path[160], text[256];

	snprintf(path, sizeof(path), "%s/%u", t.proc, pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%u/stat", t.proc, pid);
	snprintf(text, sizeof(text),
		 "%u (%s) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 50 0 0 0\n",
		 pid, comm);
	write_file(path, text);
}

static void make_host(void)
{
	strcpy(t.dir, "/tmp/proctally-exitread-XXXXXX");
	check(mkdtemp(t.dir) != NULL);
	snprintf(t.proc, sizeof(t.proc), "%s/proc", t.dir);
	snprintf(t.rules, sizeof(t.rules), "%s/rules.yaml", t.dir);
	mkdir(t.proc, 0755);
	add_process(1, "systemd");
	add_process(100, "make");
	write_file(t.rules, rules);
}

static void remove_host(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf '%s'", t.dir);
	check_int(system(command), 0);
}

static void take(_unused_ void *arg, const struct value_out *v)
{
	if (strcmp(v->group, "make") == 0 && v->instance &&
	    strcmp(v->instance, "starts") == 0)
		t.starts = v->u[0];
	if (strcmp(v->group, "path") == 0 && strcmp(v->type, "ps_cputime") == 0)
		t.path_us = v->u[0];
	if (strcmp(v->group, "_self") == 0 && v->instance &&
	    strcmp(v->instance, "exits") == 0)
		t.n_exits = v->u[0];
}

/* Generations below a process, and orphans. */
static void add_records(const struct moment *now, unsigned tick, unsigned n)
{
	static const char *const comms[] = {"sh", "cc1", "as", "cat"};
	uint64_t start = now->boot_ns / NSEC_PER_MSEC / 10 - 50;

	for (unsigned i = 0; i < n; i++) {
		unsigned pid = 1000 + (tick * RECORDS + i) % 20000;
		unsigned parent = i % 3 == 2 ? 100 : i % 10 ? pid + 1 : 1;
		char line[128];

		snprintf(line, sizeof(line),
			 "%u \"%s\" ppid=%u start=%llu user=1000 sys=100", pid,
			 comms[i % ARRAY_SIZE(comms)], parent,
			 (unsigned long long)start);
		check(fakeexits_add(line, now));
	}
}

static void go_on(struct moment *now)
{
	now->mono_ns += 10 * NSEC_PER_SEC;
	now->boot_ns += 10 * NSEC_PER_SEC;
	now->real_ns += 10 * NSEC_PER_SEC;
}

static void run_ticks(struct monitor *m)
{
	struct moment now = {86400 * NSEC_PER_SEC, 86400 * NSEC_PER_SEC,
			     1700000000 * NSEC_PER_SEC};

	for (unsigned i = 0; i < WARM + TICKS; i++) {
		uint64_t n;

		go_on(&now);
		add_records(&now, i, RECORDS);
		n = alloccount_calls() + mapcount_calls();
		check_int(monitor_tick(m, &now, take, NULL), 0);
		if (i >= WARM)
			check_u64(alloccount_calls() + mapcount_calls() - n, 0);
	}
}

static void no_allocation(void)
{
	struct monitor_options o = {.rules_path = t.rules, .proc_path = t.proc};
	void *volatile p = malloc(1);
	struct monitor *m;

	free(p);
	if (!alloccount_calls()) {
		tap_skip("allocations are not counted in this build");
		return;
	}
	make_host();
	fakeexits_on();
	check_int(monitor_open(&o, &m), 0);
	run_ticks(m);
	/* Of the first tick is known what it was before. */
	check_u64(t.n_exits, (WARM + TICKS) * RECORDS);
	check(t.starts >= (WARM + TICKS - 1) * RECORDS / 12);
	monitor_free(m);
	fakeexits_off();
	remove_host();
}

/* Some go on to wait for their parents meanwhile. */
static void room_of_a_storm(void)
{
	struct monitor_options o = {.rules_path = t.rules, .proc_path = t.proc};
	struct moment now = {86400 * NSEC_PER_SEC, 86400 * NSEC_PER_SEC,
			     1700000000 * NSEC_PER_SEC};
	uint64_t few, most, n_exits;
	struct monitor *m;

	make_host();
	fakeexits_on();
	check_int(monitor_open(&o, &m), 0);
	for (unsigned i = 0; i < WARM; i++) {
		go_on(&now);
		add_records(&now, i, RECORDS);
		check_int(monitor_tick(m, &now, take, NULL), 0);
	}
	few = mapcount_bytes();
	n_exits = t.n_exits;
	go_on(&now);
	add_records(&now, 0, STORM);
	check_int(monitor_tick(m, &now, take, NULL), 0);
	check_u64(t.n_exits - n_exits, STORM);
	most = mapcount_bytes();
	for (unsigned i = 0; i < CALM_TICKS; i++) {
		go_on(&now);
		add_records(&now, i, RECORDS);
		check_int(monitor_tick(m, &now, take, NULL), 0);
	}
	printf("# %llu KiB, then %llu, at last %llu\n",
	       (unsigned long long)few / 1024, (unsigned long long)most / 1024,
	       (unsigned long long)mapcount_bytes() / 1024);
	/* Tables by number are given back later. */
	check(mapcount_bytes() < few + (most - few) / 3);
	monitor_free(m);
	check_u64(mapcount_bytes(), 0);
	fakeexits_off();
	remove_host();
}

/* It ran the same file as one that lives, which is called otherwise. */
static void path_of_file(void)
{
	struct monitor_options o = {.rules_path = t.rules, .proc_path = t.proc};
	struct moment now = {86400 * NSEC_PER_SEC, 86400 * NSEC_PER_SEC,
			     1700000000 * NSEC_PER_SEC};
	char tool[96], link[128], line[128];
	struct monitor *m;
	struct stat st;

	make_host();
	snprintf(tool, sizeof(tool), "%s/tool", t.dir);
	snprintf(link, sizeof(link), "%s/100/exe", t.proc);
	write_file(tool, "");
	check(symlink(tool, link) == 0 && stat(tool, &st) == 0);
	add_process(100, "busy");
	fakeexits_on();
	check_int(monitor_open(&o, &m), 0);
	check_int(monitor_tick(m, &now, take, NULL), 0);
	go_on(&now);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(line, sizeof(line),
			 "%u \"x\" ppid=1 start=8640500 user=%u exe=%llu "
			 "dev=%llu",
			 200 + i, i ? 70000 : 5000,
			 (unsigned long long)st.st_ino + i,
			 (unsigned long long)st.st_dev);
		check(fakeexits_add(line, &now));
	}
	check_int(monitor_tick(m, &now, take, NULL), 0);
	check_u64(t.path_us, 5000);
	monitor_free(m);
	fakeexits_off();
	remove_host();
}

int main(void)
{
	TEST("exit records allocate nothing in a steady tick", no_allocation);
	TEST("room of a storm of exits goes back", room_of_a_storm);
	TEST("who ran the file of one that lives has its path", path_of_file);
	return tap_done();
}
