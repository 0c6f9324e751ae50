/* SPDX-License-Identifier: MIT */
/* Values of cgroups as a group has them, without any file. */
#include "cgroupsum.h"
#include "tap.h"

static struct cgroupfs_values reading(uint64_t memory, uint64_t cpu_us,
				      uint64_t periods)
{
	return (struct cgroupfs_values){
	    .value = {[CGROUPFS_MEMORY] = memory,
		      [CGROUPFS_CPU_US] = cpu_us,
		      [CGROUPFS_PERIODS] = periods},
	    .have = CGROUPFS_BIT(CGROUPFS_MEMORY) |
		    CGROUPFS_BIT(CGROUPFS_CPU_US) |
		    CGROUPFS_BIT(CGROUPFS_PERIODS),
	};
}

static void take(struct cgroupsum *s, enum cgroupsum_whose whose,
		 struct cgroupfs_values now, struct cgroupfs_values *last)
{
	cgroupsum_take(s, whose, &now, last);
}

static void growth(void)
{
	struct cgroupfs_values last = {.have = 0};
	struct cgroupsum s = {.have = 0};

	take(&s, CGROUPSUM_FIRST, reading(100, 5000, 50), &last);
	check_u64(s.value[CGROUPFS_MEMORY], 100);
	check_u64(s.value[CGROUPFS_CPU_US], 0);
	take(&s, CGROUPSUM_SAME, reading(80, 5600, 51), &last);
	check_u64(s.value[CGROUPFS_MEMORY], 80);
	check_u64(s.value[CGROUPFS_CPU_US], 600);
	check_u64(s.value[CGROUPFS_PERIODS], 1);
	/* A part of it went: no growth, and growth from there. */
	take(&s, CGROUPSUM_SAME, reading(80, 100, 52), &last);
	check_u64(s.value[CGROUPFS_CPU_US], 600);
	check_u64(s.value[CGROUPFS_PERIODS], 2);
	take(&s, CGROUPSUM_SAME, reading(80, 150, 52), &last);
	check_u64(s.value[CGROUPFS_CPU_US], 650);
}

static void others(void)
{
	struct cgroupfs_values last = {.have = 0};
	struct cgroupsum s = {.have = 0};

	take(&s, CGROUPSUM_FIRST, reading(1, 1000, 10), &last);
	take(&s, CGROUPSUM_SAME, reading(1, 1500, 12), &last);
	/* Made anew; one of its counters is beyond the old one by now. */
	take(&s, CGROUPSUM_RENEWED, reading(1, 300, 15), &last);
	check_u64(s.value[CGROUPFS_CPU_US], 800);
	check_u64(s.value[CGROUPFS_PERIODS], 17);
	/* Another one, which had used much before. */
	take(&s, CGROUPSUM_FIRST, reading(1, 1000000, 9), &last);
	check_u64(s.value[CGROUPFS_CPU_US], 800);
	take(&s, CGROUPSUM_SAME, reading(1, 1000001, 10), &last);
	check_u64(s.value[CGROUPFS_CPU_US], 801);
	check_u64(s.value[CGROUPFS_PERIODS], 18);
}

static void parts(void)
{
	struct cgroupfs_values last = {.have = 0}, now = reading(1, 1000, 10);
	struct cgroupsum s = {.have = 0};

	take(&s, CGROUPSUM_FIRST, now, &last);
	now.have = CGROUPFS_BIT(CGROUPFS_MEMORY);
	take(&s, CGROUPSUM_SAME, now, &last);
	check_u64(s.have, CGROUPFS_BIT(CGROUPFS_MEMORY));
	/* It was missing once: its growth was not. */
	take(&s, CGROUPSUM_SAME, reading(1, 1400, 10), &last);
	check_u64(s.value[CGROUPFS_CPU_US], 400);
	/* The last cgroup's that this one lacks are nobody's later. */
	take(&s, CGROUPSUM_FIRST, now, &last);
	take(&s, CGROUPSUM_SAME, reading(1, 9000, 10), &last);
	check_u64(s.value[CGROUPFS_CPU_US], 400);
}

/* The rows of metrics[] stand for the types, one for each of its lists. */
static void lists(void)
{
	struct cgroupsum s = {.have = CGROUPFS_BIT(CGROUPFS_N_VALUES) - 1};
	unsigned n_values = 0;
	char seen[4096] = " ";

	for (unsigned row = 0; row < METRIC_N; row += metric_list_length(row)) {
		struct value_out v = {.type = metrics[row].type};

		if (metrics[row].collect != COLLECT_CGROUP)
			continue;
		for (size_t at = 0; cgroupsum_next(&s, v.type, &at, &v);) {
			char id[200];

			snprintf(id, sizeof(id), " %s-%s ", v.type, v.instance);
			check(!strstr(seen, id));
			strcat(seen, id);
			n_values += v.n;
			check_u64(v.n, metric_list_length(row));
			check_int(v.derive, metric_is_counter(&metrics[row]));
			for (unsigned i = 0; i < v.n; i++)
				check(strcmp(v.ds[i], metrics[row + i].ds) ==
				      0);
		}
	}
	check_u64(n_values, CGROUPFS_N_VALUES);
}

static void half_a_list(void)
{
	struct cgroupsum s = {.have = CGROUPFS_BIT(CGROUPFS_READ_BYTES)};
	struct value_out v;
	size_t at = 0;

	check(!cgroupsum_next(&s, "disk_octets", &at, &v));
	s.have |= CGROUPFS_BIT(CGROUPFS_WRITE_BYTES);
	at = 0;
	check(cgroupsum_next(&s, "disk_octets", &at, &v));
	check(!cgroupsum_next(&s, "disk_octets", &at, &v));
}

int main(void)
{
	TEST("counters take growth, gauges the value", growth);
	TEST("another cgroup goes on where the one before was", others);
	TEST("a value that is missing for a while loses nothing", parts);
	TEST("each value leaves once, by a type of the table", lists);
	TEST("a list is told whole or not", half_a_list);
	return tap_done();
}
