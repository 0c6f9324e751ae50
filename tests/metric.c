/* SPDX-License-Identifier: MIT */
/* The table of values: its shape, its types in collectd, its units. */
#include "metric.h"
#include "tap.h"

#include <ctype.h>
#include <stdlib.h>

static const struct metric_scale usual = {.ticks_per_second = 100,
					  .page_size = 4096};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_list(const struct metric *a, const struct metric *b)
{
	return same_text(a->type, b->type) &&
	       same_text(a->instance, b->instance);
}

static void neighbours(void)
{
	for (unsigned i = 0; i < METRIC_N; i++) {
		for (unsigned k = i + 1; k < METRIC_N; k++) {
			if (!same_list(&metrics[i], &metrics[k]))
				continue;
			check(k - i < VALUE_LIST_MAX);
			check(same_list(&metrics[k - 1], &metrics[k]));
			check_int(metrics[i].collect, metrics[k].collect);
			check_int(metric_is_counter(&metrics[i]),
				  metric_is_counter(&metrics[k]));
			check(strcmp(metrics[i].ds, metrics[k].ds) != 0);
		}
	}
}

static void list_lengths(void)
{
	unsigned n_rows = 0;

	for (unsigned row = 0, n; row < METRIC_N; row += n) {
		n = metric_list_length(row);
		check(n >= 1 && n <= VALUE_LIST_MAX && row + n <= METRIC_N);
		for (unsigned i = 1; i < n; i++)
			check(same_list(&metrics[row], &metrics[row + i]));
		if (row + n < METRIC_N)
			check(!same_list(&metrics[row], &metrics[row + n]));
		n_rows += n;
	}
	check_u64(n_rows, METRIC_N);
}

/* The count of members is no value of a process, but stands by its list. */
static void stored_rows(void)
{
	check(METRIC_N_STORED <= 64 && METRIC_N <= 64);
	for (unsigned i = 0; i < METRIC_N; i++) {
		bool stored = i < METRIC_N_STORED;

		if (metrics[i].fold == FOLD_MEMBERS)
			continue;
		check_int(metrics[i].source != SOURCE_NONE, stored);
	}
}

static void rows_are_whole(void)
{
	for (unsigned i = 0; i < METRIC_N; i++) {
		const struct metric *m = &metrics[i];
		bool by_key =
		    m->source == SOURCE_STATUS || m->source == SOURCE_IO ||
		    m->source == SOURCE_TASKS || m->source == SOURCE_DELAY;

		check(m->collect < COLLECT_N);
		check(m->type && *m->type && m->ds && *m->ds);
		check(!m->instance || *m->instance);
		check_int(m->source == SOURCE_STAT, m->field != 0);
		check_int(by_key || m->fold == FOLD_STATE, m->key != NULL);
		if (m->unit == UNIT_TICKS)
			check_int(m->source, SOURCE_STAT);
	}
	for (unsigned i = 0; i < COLLECT_N; i++) {
		bool used = false;

		check(collect_defs[i].name && *collect_defs[i].name);
		for (unsigned k = 0; k < METRIC_N; k++)
			used |= metrics[k].collect == i;
		check(used);
		for (unsigned k = 0; k < i; k++)
			check(strcmp(collect_defs[i].name,
				     collect_defs[k].name) != 0);
	}
}

/* Every letter of a state has one row at most. */
static void state_letters(void)
{
	char seen[256] = "";

	for (unsigned i = 0; i < METRIC_N; i++) {
		if (metrics[i].fold != FOLD_STATE)
			continue;
		for (const char *s = metrics[i].key; *s; s++) {
			check(isalpha((unsigned char)*s));
			check(!strchr(seen, *s));
			seen[strlen(seen)] = *s;
		}
	}
	check(strchr(seen, 'R') && strchr(seen, 'S') && strchr(seen, 'D'));
}

static void masks(void)
{
	metric_mask all = METRIC_BIT(METRIC_N_STORED) - 1, sum = 0;

	for (unsigned s = 0; s < SOURCE_N; s++) {
		metric_mask rows = metric_rows((enum metric_source)s);

		check_u64(sum & rows, 0);
		sum |= rows;
	}
	check_u64(sum, all);
	check_u64(metric_wanted(~(collect_mask)0), all);
	check_u64(metric_wanted(0), 0);
	check_u64(metric_counters() & ~all, 0);
	for (unsigned i = 0; i < METRIC_N_STORED; i++) {
		metric_mask wanted =
		    metric_wanted((collect_mask)1 << metrics[i].collect);

		check(wanted & METRIC_BIT(i));
		check_int(!!(metric_counters() & METRIC_BIT(i)),
			  metric_is_counter(&metrics[i]));
	}
}

static void defaults(void)
{
	collect_mask on = collect_default();

	for (unsigned i = 0; i < COLLECT_N; i++)
		check_int(on >> i & 1, collect_defs[i].on);
	check(on >> COLLECT_CPU & 1 && on >> COLLECT_IO & 1);
	check(!(on >> COLLECT_REAPED & 1) && !(on >> COLLECT_CTX & 1));
}

static const char *const db_paths[] = {"/usr/share/collectd/types.db",
				       "/opt/collectd/share/collectd/types.db"};

/* The definition of a type in types.db: "name:KIND:MIN:MAX, ...", or NULL. */
static const char *find_type(FILE *f, const char *type)
{
	static char line[4096];
	size_t n = strlen(type);

	rewind(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, type, n) == 0 && isspace(line[n]))
			return line + n + strspn(line + n, " \t");
	return NULL;
}

/* One data source after the other is what the rows say. */
static void check_type(const char *def, unsigned row, unsigned n)
{
	const char *kind =
	    metric_is_counter(&metrics[row]) ? "DERIVE" : "GAUGE";

	for (unsigned i = 0; i < n; i++) {
		char name[64], is[16], min[32];
		int used = 0;

		if (sscanf(def, " %63[^:]:%15[^:]:%31[^:]:%*[^, \t\n]%n", name,
			   is, min, &used) != 3) {
			tap_fail(__FILE__, __LINE__, "%s has %u data sources",
				 metrics[row].type, i);
			return;
		}
		check_text(name, metrics[row + i].ds);
		check_text(is, kind);
		/* Else a counter that begins anew would be a negative rate. */
		if (metric_is_counter(&metrics[row]))
			check_text(min, "0");
		def += used;
		def += strspn(def, ", \t\n");
	}
	if (*def)
		tap_fail(__FILE__, __LINE__, "%s has more data sources: %s",
			 metrics[row].type, def);
}

static void types(void)
{
	FILE *f = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(db_paths) && !f; i++)
		f = fopen(db_paths[i], "re");
	if (!f) {
		tap_skip("no types.db of collectd");
		return;
	}
	for (unsigned row = 0, n; row < METRIC_N; row += n) {
		const char *def = find_type(f, metrics[row].type);

		n = metric_list_length(row);
		if (def)
			check_type(def, row, n);
		else
			tap_fail(__FILE__, __LINE__, "no type %s",
				 metrics[row].type);
	}
	fclose(f);
}

static struct metric of_unit(enum metric_unit unit)
{
	return (struct metric){.unit = unit};
}

static void scales(void)
{
	static const struct {
		enum metric_unit unit;
		long hz, page;
		uint64_t raw, want;
	} rows[] = {
	    {UNIT_NONE, 100, 4096, 7, 7},
	    {UNIT_NONE, 100, 4096, UINT64_MAX, UINT64_MAX},
	    {UNIT_NSEC, 100, 4096, 1999999, 1},
	    {UNIT_NSEC, 100, 4096, UINT64_MAX, UINT64_MAX / 1000000},
	    {UNIT_TICKS, 100, 4096, 0, 0},
	    {UNIT_TICKS, 100, 4096, 1, 10000},
	    {UNIT_TICKS, 100, 4096, 1024, 10240000},
	    {UNIT_TICKS, 1024, 4096, 1024, 1000000},
	    {UNIT_TICKS, 1024, 4096, 1, 976},
	    {UNIT_TICKS, 1024, 4096, 2047, 1999023},
	    {UNIT_TICKS, 1000000, 4096, 7, 7},
	    {UNIT_TICKS, 100, 4096, 5000000000, 50000000000000},
	    {UNIT_TICKS, 100, 4096, UINT64_C(1844674407370955),
	     UINT64_C(18446744073709550000)},
	    {UNIT_TICKS, 100, 4096, UINT64_C(1844674407370956), UINT64_MAX},
	    {UNIT_TICKS, 100, 4096, UINT64_MAX, UINT64_MAX},
	    {UNIT_TICKS, 1024, 4096, UINT64_MAX, UINT64_MAX},
	    {UNIT_TICKS, 1, 4096, UINT64_MAX, UINT64_MAX},
	    {UNIT_PAGES, 100, 4096, 360, 1474560},
	    {UNIT_PAGES, 100, 65536, 360, 23592960},
	    {UNIT_PAGES, 100, 4096, 60129542, 246290604032},
	    {UNIT_PAGES, 100, 4096, UINT64_MAX / 4096,
	     UINT64_MAX / 4096 * 4096},
	    {UNIT_PAGES, 100, 4096, UINT64_MAX / 4096 + 1, UINT64_MAX},
	    {UNIT_PAGES, 100, 65536, UINT64_MAX, UINT64_MAX},
	    {UNIT_KIB, 100, 65536, 3, 3072},
	    {UNIT_KIB, 100, 4096, UINT64_MAX / 1024 + 1, UINT64_MAX},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct metric m = of_unit(rows[i].unit);
		struct metric_scale s = {rows[i].hz, rows[i].page};
		uint64_t got = metric_scale_counter(&m, &s, rows[i].raw);

		if (got != rows[i].want)
			tap_fail(__FILE__, __LINE__,
				 "row %zu: want %" PRIu64 ", got %" PRIu64, i,
				 rows[i].want, got);
	}
}

/* Around the raw value beyond which there are no more microseconds. */
static void check_rising(const struct metric_scale *s, uint64_t from)
{
	struct metric m = of_unit(UNIT_TICKS);
	uint64_t was = 0;

	for (uint64_t k = 0; k < 4000 && from + k >= from; k++) {
		uint64_t v = metric_scale_counter(&m, s, from + k);

		if (v < was) {
			tap_fail(__FILE__, __LINE__,
				 "%ld a second: %" PRIu64 " gives %" PRIu64
				 " after %" PRIu64,
				 s->ticks_per_second, from + k, v, was);
			return;
		}
		was = v;
	}
}

static void scale_never_falls(void)
{
	static const long rates[] = {1, 100, 250, 1000, 1024};

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct metric_scale s = {rates[i], 4096};

		check_rising(&s, 0);
		check_rising(&s,
			     UINT64_MAX / 1000000 * (uint64_t)rates[i] - 1999);
		check_rising(&s, UINT64_MAX - 3999);
	}
}

static void gauges(void)
{
	struct metric pages = of_unit(UNIT_PAGES), ppm = of_unit(UNIT_PPM),
		      kib = of_unit(UNIT_KIB), none = of_unit(UNIT_NONE);

	check(metric_scale_gauge(&pages, &usual, 360) == 1474560.0);
	check(metric_scale_gauge(&kib, &usual, 3) == 3072.0);
	check(metric_scale_gauge(&none, &usual, 5) == 5.0);
	check(metric_scale_gauge(&ppm, &usual, 1000000) == 100.0);
	check(metric_scale_gauge(&ppm, &usual, 5000) == 0.5);
	check(metric_scale_gauge(&pages, &usual, UINT64_MAX) ==
	      (double)UINT64_MAX);
}

int main(void)
{
	TEST("rows of one value list are neighbours", neighbours);
	TEST("value lists are as long as their rows", list_lengths);
	TEST("rows with a value in each process come first", stored_rows);
	TEST("rows lack nothing and have nothing too much", rows_are_whole);
	TEST("a letter of a state has one row", state_letters);
	TEST("every stored row is of one source and one collect key", masks);
	TEST("what is collected by default is what the table says", defaults);
	TEST("types and data sources are those of a stock collectd", types);
	TEST("raw numbers leave in their unit, and never wrap", scales);
	TEST("more ticks are never less time", scale_never_falls);
	TEST("gauges leave in their unit", gauges);
	return tap_done();
}
