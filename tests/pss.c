/* SPDX-License-Identifier: MIT */
/*
 * What a reading stands for until the next one, what a group makes of members
 * that were and were not read, and what a reading will cost.
 */
#include "pss.h"
#include "psscost.h"
#include "tap.h"

#include <math.h>

#define KIB 1024.0
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

#define check_near(got, want)                                                  \
	do {                                                                   \
		double g_ = (got), w_ = (want);                                \
		if (!(fabs(g_ - w_) <= fabs(w_) * 1e-6))                       \
			tap_fail(__FILE__, __LINE__,                           \
				 "%s: want %.9g, got %.9g", #got, w_, g_);     \
	} while (0)

static struct pss_now now_of(double rss, double swap)
{
	return (struct pss_now){
	    .rss = (uint64_t)rss,
	    .swap = swap < 0 ? PSS_UNKNOWN : (uint64_t)swap,
	};
}

/* All in bytes; swap < 0: unknown. */
static struct pss_reading reading(double rss, double pss, double uss,
				  double swap_pss, double swap)
{
	return (struct pss_reading){
	    .kib = {(float)(pss / KIB), (float)(uss / KIB),
		    (float)(swap_pss / KIB)},
	    .rss = (float)(rss / KIB),
	    .swap = swap < 0 ? -1 : (float)(swap / KIB),
	    .have = PSS_BIT(PSS_N_VALUES) - 1,
	    .outcome = PSS_READ,
	};
}

static double estimate(const struct pss_reading *r, enum pss_value v,
		       double rss, double swap)
{
	struct pss_now now = now_of(rss, swap);
	double bytes = -1;

	check(pss_estimate(r, v, &now, &bytes));
	return bytes;
}

static void moves_with_rss(void)
{
	struct pss_reading r =
	    reading(100 * MIB, 60 * MIB, 50 * MIB, 6 * MIB, 8 * MIB);

	check_near(estimate(&r, PSS_PSS, 100 * MIB, 8 * MIB), 60 * MIB);
	check_near(estimate(&r, PSS_USS, 100 * MIB, 8 * MIB), 50 * MIB);
	check_near(estimate(&r, PSS_PSS, 150 * MIB, 8 * MIB), 90 * MIB);
	check_near(estimate(&r, PSS_USS, 150 * MIB, 8 * MIB), 75 * MIB);
	check_near(estimate(&r, PSS_PSS, 10 * MIB, 8 * MIB), 6 * MIB);
	check_near(estimate(&r, PSS_PSS, 0, 8 * MIB), 0);
	/* Swap is another matter. */
	check_near(estimate(&r, PSS_SWAP_PSS, 150 * MIB, 8 * MIB), 6 * MIB);
	check_near(estimate(&r, PSS_SWAP_PSS, 100 * MIB, 4 * MIB), 3 * MIB);
	check_near(estimate(&r, PSS_SWAP_PSS, 100 * MIB, 0), 0);
	check_near(estimate(&r, PSS_SWAP_PSS, 100 * MIB, -1), 6 * MIB);
	r.swap = -1;
	check_near(estimate(&r, PSS_SWAP_PSS, 100 * MIB, 0), 6 * MIB);
}

static void odd_readings(void)
{
	/* RSS read as 0, or less than PSS. */
	struct pss_reading none = reading(0, 0, 0, 0, 0);
	struct pss_reading some = reading(0, 300 * KIB, 100 * KIB, 0, -1);
	struct pss_reading more = reading(1 * MIB, 2 * MIB, 1 * MIB, 0, -1);

	check_near(estimate(&none, PSS_PSS, 0, 0), 0);
	check_near(estimate(&none, PSS_PSS, 5 * MIB, 0), 5 * MIB);
	check_near(estimate(&some, PSS_PSS, 0, 0), 300 * KIB);
	check_near(estimate(&some, PSS_PSS, 700 * KIB, 0), 1000 * KIB);
	check_near(estimate(&more, PSS_PSS, 1 * MIB, 0), 2 * MIB);
	check_near(estimate(&more, PSS_PSS, 3 * MIB, 0), 4 * MIB);
	check_near(estimate(&more, PSS_PSS, 0, 0), 1 * MIB);
	check_near(estimate(&more, PSS_USS, 0, 0), 0);
}

static void large_values(void)
{
	struct pss_reading r =
	    reading(24 * KIB * GIB, 23 * KIB * GIB, 22 * KIB * GIB, 0, -1);
	double huge;

	check_near(estimate(&r, PSS_PSS, 24 * KIB * GIB, 0), 23 * KIB * GIB);
	check_near(estimate(&r, PSS_USS, 12 * KIB * GIB, 0), 11 * KIB * GIB);
	huge = estimate(&r, PSS_PSS, 1.8e19, 0);
	check(isfinite(huge) && huge < 1.8e19);
	/* Exact to the byte below 16 GiB. */
	r = reading(15 * GIB, 15 * GIB - 3 * KIB, 1 * KIB, 0, -1);
	check(estimate(&r, PSS_PSS, 15 * GIB, 0) == 15 * GIB - 3 * KIB);
}

static void part_and_whole(void)
{
	unsigned seed = 7;

	for (unsigned i = 0; i < 100000 && !tap.failed; i++) {
		double rss = rand_r(&seed) % 10000;
		double pss = rss ? rand_r(&seed) % (int)rss : 0;
		double uss = pss ? rand_r(&seed) % (int)pss : 0;
		double now = KIB * (rand_r(&seed) % 20000);
		struct pss_reading r =
		    reading(rss * KIB, pss * KIB, uss * KIB, 0, -1);
		double a = estimate(&r, PSS_USS, now, 0);
		double b = estimate(&r, PSS_PSS, now, 0);

		check(a >= 0 && a <= b * (1 + 1e-9));
		check(b <= now * (1 + 1e-9));
	}
}

static void nothing_known(void)
{
	struct pss_reading r = {0};
	struct pss_now now = now_of(MIB, 0);
	double bytes = 77;

	check(!pss_estimate(&r, PSS_PSS, &now, &bytes));
	r = reading(MIB, MIB, MIB, 0, 0);
	r.have = PSS_BIT(PSS_PSS);
	check(pss_estimate(&r, PSS_PSS, &now, &bytes));
	bytes = 77;
	check(!pss_estimate(&r, PSS_USS, &now, &bytes));
	pss_void(&r);
	check(!pss_estimate(&r, PSS_PSS, &now, &bytes));
	r.outcome = PSS_EMPTY;
	check(!pss_estimate(&r, PSS_PSS, &now, &bytes));
	check(bytes == 77);
	now.rss = 0;
	check(pss_estimate(&r, PSS_PSS, &now, &bytes));
	check(bytes == 0);
}

/* Groups. */

static void add(struct pss_sum *s, const struct pss_reading *r, double rss)
{
	struct pss_now now = now_of(rss, 0);

	pss_sum_add(s, r, &now);
}

static double total(const struct pss_sum *s)
{
	double bytes = -1;

	check(pss_sum_value(s, PSS_PSS, &bytes));
	return bytes;
}

static void without_readings(void)
{
	struct pss_reading refused = {.outcome = PSS_REFUSED}, fresh = {0};
	struct pss_sum s = {0};
	double bytes = 77;

	check(!pss_sum_value(&s, PSS_PSS, &bytes));
	add(&s, &refused, 16 * MIB);
	add(&s, &fresh, 16 * MIB);
	add(&s, NULL, 16 * MIB);
	for (unsigned v = 0; v < PSS_N_VALUES; v++)
		check(!pss_sum_value(&s, v, &bytes));
	check(bytes == 77);
	check_u64(pss_sum_covered(&s), 0);
}

static void refused_member(void)
{
	struct pss_reading read =
	    reading(2000 * KIB, 1000 * KIB, 1000 * KIB, 0, -1);
	struct pss_reading refused = {.outcome = PSS_REFUSED};
	struct pss_sum s = {0};

	add(&s, &read, 2000 * KIB);
	add(&s, &refused, 4000 * 4 * KIB);
	check_near(total(&s), 1000 * KIB);
	check_u64(pss_sum_covered(&s), 1);
	/* Nor is one that nobody asks for. */
	add(&s, NULL, 4000 * 4 * KIB);
	check_near(total(&s), 1000 * KIB);
}

static void newborn_member(void)
{
	struct pss_reading a = reading(10 * MIB, 4 * MIB, 2 * MIB, 0, 0);
	struct pss_reading b = reading(30 * MIB, 16 * MIB, 8 * MIB, 0, 0);
	struct pss_reading fresh = {0}, execed = b, failed = {0};
	struct pss_now now = now_of(4 * MIB, 2 * MIB);
	struct pss_sum s = {0};
	double bytes;

	failed.outcome = PSS_FAILED;
	pss_void(&execed);
	add(&s, &a, 10 * MIB);
	add(&s, &b, 30 * MIB);
	check_near(total(&s), 20 * MIB);
	pss_sum_add(&s, &fresh, &now);
	check_near(total(&s), 22 * MIB);
	add(&s, &execed, 8 * MIB);
	add(&s, &failed, 8 * MIB);
	check_near(total(&s), 30 * MIB);
	check(pss_sum_value(&s, PSS_USS, &bytes));
	check_near(bytes, 15 * MIB);
	check_u64(pss_sum_covered(&s), 2);
	/* No ratio is more than 1. */
	a = reading(MIB, 3 * MIB, MIB, 0, 0);
	s = (struct pss_sum){0};
	add(&s, &a, MIB);
	add(&s, &fresh, 5 * MIB);
	check_near(total(&s), 8 * MIB);
}

static void newborn_swap(void)
{
	struct pss_reading a = reading(10 * MIB, 4 * MIB, 2 * MIB, 0, 0);
	struct pss_reading b = reading(10 * MIB, 4 * MIB, 2 * MIB, MIB, -1);
	struct pss_reading c =
	    reading(10 * MIB, 4 * MIB, 2 * MIB, 2 * MIB, 8 * MIB);
	struct pss_reading fresh = {0};
	struct pss_now now = now_of(4 * MIB, 2 * MIB);
	struct pss_sum s = {0};
	double bytes;

	pss_sum_add(&s, &fresh, &now);
	add(&s, &a, 10 * MIB);
	/* Of swap there is nothing to go by: all of it is taken for its own. */
	check(pss_sum_value(&s, PSS_SWAP_PSS, &bytes));
	check_near(bytes, 2 * MIB);
	now = now_of(10 * MIB, 8 * MIB);
	pss_sum_add(&s, &c, &now);
	check(pss_sum_value(&s, PSS_SWAP_PSS, &bytes));
	check_near(bytes, 2.5 * MIB);
	now = now_of(10 * MIB, -1);
	pss_sum_add(&s, &b, &now);
	pss_sum_add(&s, &fresh, &now);
	check(pss_sum_value(&s, PSS_SWAP_PSS, &bytes));
	check_near(bytes, 3.75 * MIB);
}

static void forked_member(void)
{
	struct pss_reading parent = reading(64 * MIB, 64 * MIB, 64 * MIB, 0, 0);
	struct pss_reading fresh = {0}, read = parent;
	struct pss_now now = now_of(64 * MIB, 8 * MIB);
	struct pss_sum s = {0};
	double bytes;

	now.rss_of_fork = 64 << 20;
	now.swap_of_fork = 8 << 20;
	add(&s, &parent, 64 * MIB);
	pss_sum_add(&s, &fresh, &now);
	now.rss_of_fork = 80 << 20;
	pss_sum_add(&s, &fresh, &now);
	check_near(total(&s), 64 * MIB);
	check(pss_sum_value(&s, PSS_SWAP_PSS, &bytes));
	check_near(bytes, 0);
	/* What it has more than its parent is its own. */
	now.rss_of_fork = 60 << 20;
	now.swap_of_fork = 7 << 20;
	pss_sum_add(&s, &fresh, &now);
	check_near(total(&s), 68 * MIB);
	check(pss_sum_value(&s, PSS_SWAP_PSS, &bytes));
	check_near(bytes, MIB);
	/* Read it is what was read. */
	pss_sum_add(&s, &read, &now);
	check_near(total(&s), 132 * MIB);
}

static void too_large_member(void)
{
	struct pss_reading a = reading(10 * MIB, 4 * MIB, 2 * MIB, 0, 0);
	struct pss_reading large = {.flags = PSS_TOO_LARGE};
	struct pss_sum s = {0};

	add(&s, &a, 10 * MIB);
	add(&s, &large, 200 * GIB);
	check_near(total(&s), 4 * MIB);
	check_u64(pss_sum_covered(&s), 1);
	/* One that grew large goes on from its last reading. */
	large = reading(1 * GIB, 0.5 * GIB, 0, 0, 0);
	large.flags = PSS_TOO_LARGE;
	add(&s, &large, 4 * GIB);
	check_near(total(&s), 4 * MIB + 2 * GIB);
	check_u64(pss_sum_covered(&s), 2);
}

static void no_jump(void)
{
	struct pss_reading a = reading(10 * MIB, 4 * MIB, 2 * MIB, 0, 0);
	struct pss_reading b = reading(30 * MIB, 16 * MIB, 8 * MIB, 0, 0);

	for (unsigned outcome = PSS_READ; outcome <= PSS_FAILED; outcome++) {
		for (unsigned flag = 0; flag <= PSS_TOO_LARGE;
		     flag = flag ? flag * 2 : 1) {
			struct pss_sum s = {0};

			/* An answer of PSS_EMPTY takes the reading with it. */
			if (outcome == PSS_EMPTY)
				continue;
			b.outcome = (uint8_t)outcome;
			b.flags = (uint8_t)flag;
			add(&s, &a, 10 * MIB);
			add(&s, &b, 30 * MIB);
			check_near(total(&s), 20 * MIB);
			check_u64(pss_sum_covered(&s), 2);
		}
	}
}

static void dead_members(void)
{
	struct pss_reading zombie = {.outcome = PSS_EMPTY};
	struct pss_reading a = reading(10 * MIB, 4 * MIB, 2 * MIB, 0, 0);
	struct pss_reading fresh = {0};
	struct pss_sum s = {0};

	add(&s, &zombie, 0);
	check_near(total(&s), 0);
	check_u64(pss_sum_covered(&s), 1);
	/* Nothing to compare with: all of it is taken for its own. */
	add(&s, &fresh, 6 * MIB);
	check_near(total(&s), 6 * MIB);
	add(&s, &a, 10 * MIB);
	check_near(total(&s), 4 * MIB + 0.4 * 6 * MIB);
	/* Without memory for a moment only: it is in exec. */
	add(&s, &zombie, 5 * MIB);
	check_near(total(&s), 4 * MIB + 0.4 * 11 * MIB);
	check_u64(pss_sum_covered(&s), 2);
}

static void mappings(void)
{
	struct pss_reading rolled = reading(10 * MIB, 4 * MIB, 2 * MIB, 0, 0);
	struct pss_reading a = rolled, b = rolled, fresh = {0};
	struct pss_reading empty = {.outcome = PSS_EMPTY};
	struct pss_sum s = {0};
	double n = 77;

	rolled.have &= (uint8_t)~PSS_BIT(PSS_MAPS);
	a.kib[PSS_MAPS] = (float)(65530 / KIB);
	b.kib[PSS_MAPS] = (float)(20 / KIB);
	/* They do not move with memory. */
	check(estimate(&a, PSS_MAPS, 30 * MIB, 0) == 65530);
	check(estimate(&b, PSS_MAPS, 0, 0) == 20);
	add(&s, &rolled, 10 * MIB);
	add(&s, &empty, 0);
	check(!pss_sum_value(&s, PSS_MAPS, &n));
	check(n == 77);
	s = (struct pss_sum){0};
	add(&s, &a, 10 * MIB);
	add(&s, &b, 90 * MIB);
	add(&s, &empty, 0);
	check(pss_sum_value(&s, PSS_MAPS, &n));
	check(n == 65550);
	/* One that was not read yet has as many as the others. */
	add(&s, &fresh, 900 * MIB);
	check(pss_sum_value(&s, PSS_MAPS, &n));
	check(n == 98325);
}

/* Costs. */

static double usual_cost(double rss_kib)
{
	return 30 + rss_kib * 16000 / 1048576;
}

static void first_guess(void)
{
	struct psscost c;

	psscost_init(&c);
	check_near(psscost_predict(&c, 0), 30);
	check_near(psscost_predict(&c, 1048576), 16030);
}

static bool within(double got, double want, double part)
{
	return got >= want * (1 - part) && got <= want * (1 + part);
}

static void learns(double by, bool small_only)
{
	struct psscost c;
	unsigned seed = 3;

	psscost_init(&c);
	for (unsigned i = 0; i < 100; i++) {
		double rss = exp2(10 + rand_r(&seed) % 4);

		if (!small_only)
			rss = exp2(8 + rand_r(&seed) % 16);
		psscost_learn(&c, rss, by * usual_cost(rss));
	}
	for (double rss = 256; rss < (small_only ? 8192 : 4e6); rss *= 2)
		if (!within(psscost_predict(&c, rss), by * usual_cost(rss),
			    0.3))
			tap_fail(__FILE__, __LINE__, "x %g: %g for %g KiB", by,
				 psscost_predict(&c, rss), rss);
}

static void ten_times(void)
{
	learns(10, false);
	learns(0.1, false);
	learns(10, true);
	learns(0.1, true);
}

static void huge_pages(void)
{
	struct psscost c;
	unsigned seed = 3;

	psscost_init(&c);
	for (unsigned i = 0; i < 500; i++)
		psscost_learn(&c, exp2(8 + rand_r(&seed) % 16), 40);
	check(within(psscost_predict(&c, 256), 40, 0.5));
	/* A hundredth of what 4 KiB pages cost. */
	check(psscost_predict(&c, 2097152) < 1000);
}

static void odd_costs(void)
{
	static const double odd[][2] = {
	    {0, 0}, {1e12, 0}, {0, 1e9}, {1e12, 1e12}, {4096, 1e9},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(odd); i++) {
		struct psscost c;
		double last = 0;

		psscost_init(&c);
		for (unsigned j = 0; j < 3000; j++) {
			psscost_learn(&c, odd[i][0], odd[i][1]);
			last = psscost_predict(&c, 0);
			check(isfinite(last) && last >= 1);
			check(psscost_predict(&c, 1e9) >= last);
		}
		/* And it comes back from there. */
		for (unsigned j = 0; j < 30000; j++) {
			double rss = exp2(8 + j % 16);

			psscost_learn(&c, rss, usual_cost(rss));
		}
		check(within(psscost_predict(&c, 0), 30, 0.1));
		check(within(psscost_predict(&c, 1048576), 16030, 0.1));
	}
}

int main(void)
{
	TEST("PSS and USS move with RSS, the share in swap with swap",
	     moves_with_rss);
	TEST("with an RSS of 0 or less than PSS they move by as much",
	     odd_readings);
	TEST("terabytes are no trouble", large_values);
	TEST("a part never becomes more than the whole", part_and_whole);
	TEST("without a reading there is no estimate", nothing_known);
	TEST("a group without a reading has no value", without_readings);
	TEST("a member that may not be read is not taken for 0 but missing",
	     refused_member);
	TEST("a member not read yet counts in the group's ratio",
	     newborn_member);
	TEST("in swap, too", newborn_swap);
	TEST("one that was forked shares its parent's until it is read",
	     forked_member);
	TEST("a member too large to be read is missing unless it was read",
	     too_large_member);
	TEST("nothing jumps when a member cannot be read any more", no_jump);
	TEST("members without memory count as read", dead_members);
	TEST("mappings are summed where they are known, and else absent",
	     mappings);
	TEST("what is not known costs 30 us and 16 ms per GiB", first_guess);
	TEST("costs of ten times more and less are learned", ten_times);
	TEST("the fixed part is told from that of RSS", huge_pages);
	TEST("a cost stays sane whatever is measured", odd_costs);
	return tap_done();
}
