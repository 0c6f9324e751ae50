/* SPDX-License-Identifier: MIT */
/* Accumulators: what is told of groups, and what stays when members go. */
#include "group.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

static const struct metric_scale scale = {.ticks_per_second = 100,
					  .page_size = 4096};

enum {
	TOLD_MAX = 1024,
};

static struct {
	char id[160];
	struct value_out v;
} told[TOLD_MAX];
static unsigned n_told;

static void take(void *arg, const struct value_out *v)
{
	check(arg == &n_told);
	if (n_told == TOLD_MAX)
		return;
	snprintf(told[n_told].id, sizeof(told[0].id), "%s.%s%s%s", v->group,
		 v->type, v->instance ? "-" : "",
		 v->instance ? v->instance : "");
	for (unsigned i = 0; i < n_told; i++)
		if (strcmp(told[i].id, told[n_told].id) == 0)
			tap_fail(__FILE__, __LINE__, "twice: %s", told[i].id);
	told[n_told++].v = *v;
}

static void emit(const struct groups *gs, uint64_t boot_ns)
{
	n_told = 0;
	groups_emit(gs, &scale, boot_ns, take, &n_told);
}

static const struct value_out *find(const char *id)
{
	for (unsigned i = 0; i < n_told; i++)
		if (strcmp(told[i].id, id) == 0)
			return &told[i].v;
	return NULL;
}

static bool is_absent(const char *id)
{
	return find(id) == NULL;
}

static uint64_t count_of(const char *id, unsigned i)
{
	const struct value_out *v = find(id);

	check(v && v->derive && i < v->n);
	return v && v->derive && i < v->n ? v->u[i] : 123456789;
}

static double gauge_of(const char *id, unsigned i)
{
	const struct value_out *v = find(id);

	check(v && !v->derive && i < v->n);
	return v && !v->derive && i < v->n ? v->d[i] : -1;
}

static unsigned row_of(const char *type, const char *ds)
{
	for (unsigned i = 0; i < METRIC_N; i++)
		if (strcmp(metrics[i].type, type) == 0 &&
		    !metrics[i].instance && strcmp(metrics[i].ds, ds) == 0)
			return i;
	check(false);
	return 0;
}

static const collect_mask everything = ((collect_mask)1 << COLLECT_N) - 1;

static struct group *add(struct groups *gs, const char *name)
{
	struct group *g = groups_get(gs, name, everything);

	check(g != NULL);
	return g;
}

static void found_and_made(void)
{
	struct groups gs;
	struct group *a, *b;

	groups_init(&gs);
	check(groups_find(&gs, "a") == NULL);
	a = groups_get(&gs, "a", 1 << COLLECT_CPU);
	b = groups_get(&gs, "b", 1 << COLLECT_CPU);
	check(a && b && a != b);
	check(groups_find(&gs, "a") == a);
	check(groups_find(&gs, "ab") == NULL);
	check(groups_find(&gs, "") == NULL);
	check(groups_get(&gs, "a", 1 << COLLECT_IO) == a);
	check_u64(a->collect, 1 << COLLECT_CPU | 1 << COLLECT_IO);
	check_u64(a->wanted, metric_wanted(a->collect));
	check_u64(b->collect, 1 << COLLECT_CPU);
	check_u64(gs.n_groups, 2);
	groups_done(&gs);
	check_u64(gs.n_groups, 0);
}

static void long_name(void)
{
	static const char name[] =
	    "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffxyz";
	struct groups gs;

	groups_init(&gs);
	check_u64(strlen(name), GROUP_NAME_SIZE - 1);
	check_text(add(&gs, name)->name, name);
	check(groups_find(&gs, name) != NULL);
	groups_done(&gs);
}

static void many_groups(void)
{
	struct groups gs;
	char name[16];

	groups_init(&gs);
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		group_count(add(&gs, name), 0, i);
	}
	check_u64(gs.n_groups, 3000);
	for (unsigned i = 0; i < 3000; i++) {
		struct group *g;

		snprintf(name, sizeof(name), "g%u", i);
		g = groups_find(&gs, name);
		check(g && g->total[0] == i);
		check(g && g == gs.group[i]);
	}
	groups_done(&gs);
}

static void absent_is_not_zero(void)
{
	struct groups gs;

	groups_init(&gs);
	add(&gs, "g")->is_static = true;
	groups_begin(&gs);
	groups_end(&gs, 1);
	emit(&gs, 0);
	check_u64(count_of("g.ps_cputime", 0), 0);
	check_u64(count_of("g.ps_cputime", 1), 0);
	check_u64(count_of("g.ps_pagefaults", 0), 0);
	check_u64(count_of("g.total_operations-starts", 0), 0);
	check(gauge_of("g.ps_count", 0) == 0);
	check(gauge_of("g.ps_count", 1) == 0);
	check(gauge_of("g.ps_state-running", 0) == 0);
	check(is_absent("g.ps_rss"));
	check(is_absent("g.ps_vm"));
	check(is_absent("g.memory-swap"));
	check(is_absent("g.file_handles"));
	check(is_absent("g.percent-fd_limit"));
	check(is_absent("g.disk_octets"));
	check(is_absent("g.io_octets"));
	check(is_absent("g.contextswitch-voluntary"));
	check(is_absent("g.uptime-oldest"));
	check(is_absent("g.uptime-newest"));
	groups_done(&gs);
}

/* A list is told only if each of its values is known. */
static void half_lists(void)
{
	unsigned read = row_of("io_octets", "rx"), write = read + 1;
	struct groups gs;
	struct group *g;

	groups_init(&gs);
	g = add(&gs, "g");
	groups_begin(&gs);
	group_count(g, read, 5);
	emit(&gs, 0);
	check(is_absent("g.io_octets"));
	group_count(g, write, 0);
	emit(&gs, 0);
	check_u64(count_of("g.io_octets", 0), 5);
	check_u64(count_of("g.io_octets", 1), 0);
	groups_done(&gs);
}

static void gauges_begin_anew(void)
{
	unsigned rss = row_of("ps_rss", "value");
	unsigned threads = row_of("ps_count", "threads");
	uint64_t value[METRIC_N_STORED] = {0};
	struct group_member m = {
	    .value = value,
	    .have = METRIC_BIT(rss) | METRIC_BIT(threads),
	    .state = 'R',
	    .start = 1000,
	};
	struct groups gs;
	struct group *g;

	groups_init(&gs);
	g = add(&gs, "g");
	for (unsigned tick = 0; tick < 3; tick++) {
		groups_begin(&gs);
		value[rss] = 10;
		value[threads] = 2;
		groups_fold(&gs, g, &m);
		m.state = 'S';
		m.start = 3000;
		value[rss] = 5;
		groups_fold(&gs, g, &m);
		m.state = 'R';
		m.start = 1000;
		groups_end(&gs, 1);
		emit(&gs, 50 * NSEC_PER_SEC);
		check(gauge_of("g.ps_rss", 0) == 15 * 4096);
		check(gauge_of("g.ps_count", 0) == 2);
		check(gauge_of("g.ps_count", 1) == 4);
		check(gauge_of("g.ps_state-running", 0) == 1);
		check(gauge_of("g.ps_state-sleeping", 0) == 1);
		check(gauge_of("g.uptime-oldest", 0) == 40);
		check(gauge_of("g.uptime-newest", 0) == 20);
	}
	groups_begin(&gs);
	groups_end(&gs, 1);
	emit(&gs, 0);
	check(is_absent("g.ps_rss"));
	check(gauge_of("g.ps_state-running", 0) == 0);
	groups_done(&gs);
}

static void odd_members(void)
{
	uint64_t value[METRIC_N_STORED] = {0};
	struct group_member m = {
	    .value = value,
	    .have = METRIC_BIT(row_of("ps_count", "threads")),
	};
	struct groups gs;
	struct group *g;

	groups_init(&gs);
	g = add(&gs, "g");
	groups_begin(&gs);
	for (unsigned c = 0; c < 256; c++) {
		m.state = (char)c;
		m.start = c ? UINT64_MAX : 0;
		groups_fold(&gs, g, &m);
	}
	groups_end(&gs, 1);
	emit(&gs, 5 * NSEC_PER_SEC);
	check(gauge_of("g.ps_count", 0) == 256);
	check(gauge_of("g.uptime-oldest", 0) == 5);
	/* A start in the future is an age of 0. */
	check(gauge_of("g.uptime-newest", 0) == 0);
	groups_done(&gs);
}

static void worst_member(void)
{
	unsigned row = 0;
	uint64_t value[METRIC_N_STORED] = {0};
	struct group_member m = {.value = value, .state = 'S'};
	struct groups gs;
	struct group *g;

	while (metrics[row].fold != FOLD_WORST)
		row++;
	m.have = METRIC_BIT(row);
	groups_init(&gs);
	g = add(&gs, "g");
	groups_begin(&gs);
	value[row] = 250000;
	groups_fold(&gs, g, &m);
	value[row] = 500000;
	groups_fold(&gs, g, &m);
	value[row] = 100000;
	groups_fold(&gs, g, &m);
	groups_end(&gs, 1);
	emit(&gs, 0);
	check(gauge_of("g.percent-fd_limit", 0) == 50);
	groups_begin(&gs);
	groups_fold(&gs, g, &m);
	groups_end(&gs, 1);
	emit(&gs, 0);
	check(gauge_of("g.percent-fd_limit", 0) == 10);
	groups_done(&gs);
}

static void never_falls(void)
{
	static const uint64_t grown[] = {
	    0, 1, 5, 0, UINT64_MAX / 2, UINT64_MAX / 2, 7, UINT64_MAX, 0, 1,
	};
	unsigned row = row_of("ps_pagefaults", "minflt");
	unsigned cpu = row_of("ps_cputime", "user");
	uint64_t was = 0, was_us = 0;
	struct groups gs;
	struct group *g;

	groups_init(&gs);
	g = add(&gs, "g");
	for (size_t i = 0; i < ARRAY_SIZE(grown); i++) {
		groups_begin(&gs);
		group_count(g, row, grown[i]);
		group_count(g, cpu, grown[i]);
		groups_end(&gs, i);
		groups_expire(&gs, i, 0);
		emit(&gs, 0);
		check(count_of("g.ps_pagefaults", 0) >= was);
		check(count_of("g.ps_cputime", 0) >= was_us);
		was = count_of("g.ps_pagefaults", 0);
		was_us = count_of("g.ps_cputime", 0);
		/* Else it is forgotten, having no members. */
		g->is_static = true;
	}
	groups_done(&gs);
}

static void counters_stay(void)
{
	unsigned io = row_of("io_octets", "rx");
	uint64_t value[METRIC_N_STORED] = {0};
	struct group_member m = {.value = value, .state = 'S'};
	struct groups gs;
	struct group *g;

	groups_init(&gs);
	g = add(&gs, "g");
	groups_begin(&gs);
	groups_fold(&gs, g, &m);
	group_count(g, io, 10);
	group_count(g, io + 1, 20);
	group_count_birth(g);
	groups_end(&gs, 1);
	for (unsigned i = 0; i < 3; i++) {
		groups_begin(&gs);
		groups_end(&gs, 2);
		emit(&gs, 0);
		check_u64(count_of("g.io_octets", 0), 10);
		check_u64(count_of("g.io_octets", 1), 20);
		check_u64(count_of("g.total_operations-starts", 0), 1);
	}
	groups_done(&gs);
}

static void expiry(void)
{
	uint64_t value[METRIC_N_STORED] = {0};
	struct group_member m = {.value = value, .state = 'S'};
	struct groups gs;
	struct group *stays, *goes, *used;

	groups_init(&gs);
	goes = add(&gs, "goes");
	stays = add(&gs, "stays");
	used = add(&gs, "used");
	stays->is_static = true;
	for (uint64_t now = 1000; now < 1100; now += 10) {
		groups_begin(&gs);
		if (now == 1000)
			groups_fold(&gs, goes, &m);
		groups_fold(&gs, used, &m);
		groups_end(&gs, now);
		groups_expire(&gs, now, 50);
		check_int(groups_find(&gs, "goes") != NULL, now < 1060);
		check(groups_find(&gs, "stays") == stays);
		check(groups_find(&gs, "used") == used);
	}
	check_u64(gs.n_groups, 2);
	check(gs.group[0] == stays && gs.group[1] == used);
	check(add(&gs, "goes")->total[0] == 0);
	groups_done(&gs);
}

static void idle_anew(void)
{
	uint64_t value[METRIC_N_STORED] = {0};
	struct group_member m = {.value = value, .state = 'S'};
	struct groups gs;
	struct group *g;

	groups_init(&gs);
	g = add(&gs, "g");
	for (uint64_t now = 1000; now < 2000; now += 10) {
		groups_begin(&gs);
		/* Each time just before it would be forgotten. */
		if (now % 50 == 0)
			groups_fold(&gs, g, &m);
		groups_end(&gs, now);
		groups_expire(&gs, now, 50);
		check(groups_find(&gs, "g") == g);
	}
	groups_done(&gs);
}

static void only_collected(void)
{
	unsigned rss = row_of("ps_rss", "value");
	uint64_t value[METRIC_N_STORED] = {0};
	struct group_member m = {
	    .value = value, .have = METRIC_BIT(rss), .state = 'S'};
	struct groups gs;
	struct group *g;

	groups_init(&gs);
	g = groups_get(&gs, "g", 1 << COLLECT_CPU);
	groups_begin(&gs);
	groups_fold(&gs, g, &m);
	groups_end(&gs, 1);
	emit(&gs, 0);
	check_u64(n_told, 1);
	check(!is_absent("g.ps_cputime"));
	groups_get(&gs, "g", 1 << COLLECT_MEMORY);
	emit(&gs, 0);
	check(!is_absent("g.ps_rss"));
	groups_done(&gs);
}

static void data_sources(void)
{
	struct groups gs;

	groups_init(&gs);
	add(&gs, "g");
	groups_begin(&gs);
	emit(&gs, 0);
	check(find("g.ps_cputime") && find("g.ps_cputime")->n == 2);
	check_text(find("g.ps_cputime")->ds[0], "user");
	check_text(find("g.ps_cputime")->ds[1], "syst");
	check(find("g.ps_cputime")->derive);
	check_text(find("g.ps_count")->ds[0], "processes");
	check_text(find("g.ps_count")->ds[1], "threads");
	check(!find("g.ps_count")->derive);
	groups_done(&gs);
}

int main(void)
{
	TEST("a name has one group, and collects what anybody wants",
	     found_and_made);
	TEST("the longest name is whole", long_name);
	TEST("thousands of groups are told apart", many_groups);
	TEST("what no member gave is absent, not 0", absent_is_not_zero);
	TEST("a list of which a value is missing is absent", half_lists);
	TEST("gauges are summed anew in each tick", gauges_begin_anew);
	TEST("odd states and starts are members all the same", odd_members);
	TEST("of a share the worst member counts", worst_member);
	TEST("counters never fall, however much they grow", never_falls);
	TEST("counters stay when the members are gone", counters_stay);
	TEST("idle groups are forgotten, but for static ones", expiry);
	TEST("a group that had a member is not idle for long", idle_anew);
	TEST("only what is collected is told", only_collected);
	TEST("values come with the names of their data sources", data_sources);
	return tap_done();
}
