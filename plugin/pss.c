/* SPDX-License-Identifier: MIT */
#include "pss.h"

#define KIB 1024.0

void pss_void(struct pss_reading *r)
{
	r->have = 0;
	r->cost_us = 0;
	r->outcome = PSS_UNTRIED;
	if (r->flags & PSS_ASKED)
		r->flags |= PSS_OUTDATED;
}

/*
 * A part moves like the whole, but never by more. More than the whole, or
 * something of nothing, can be read because the kernel's count of RSS may be
 * off by some dozen pages for each processor (get_mm_rss(), include/linux/mm.h,
 * Linux 6.18): then it moves by as much as the whole.
 */
static double scale(double part, double whole, double whole_now)
{
	if (part < whole)
		return part / whole * whole_now;
	return part + whole_now - whole;
}

static bool is_empty(const struct pss_reading *r, const struct pss_now *now)
{
	return r->outcome == PSS_EMPTY && now->rss == 0;
}

bool pss_estimate(const struct pss_reading *r, enum pss_value value,
		  const struct pss_now *now, double *ret)
{
	double kib = (double)r->kib[value];

	if (!(r->have & PSS_BIT(value))) {
		/* That it has no mappings is not known where none are read. */
		if (!is_empty(r, now) || value == PSS_MAPS)
			return false;
		*ret = 0;
		return true;
	}
	if (value == PSS_PSS || value == PSS_USS)
		kib = scale(kib, (double)r->rss, (double)now->rss / KIB);
	else if (value == PSS_SWAP_PSS && r->swap >= 0 &&
		 now->swap != PSS_UNKNOWN)
		kib = scale(kib, (double)r->swap, (double)now->swap / KIB);
	*ret = kib * KIB;
	return true;
}

/* Will it be read, as far as we know? */
static bool is_awaited(const struct pss_reading *r, const struct pss_now *now)
{
	return r && r->outcome != PSS_REFUSED && !is_empty(r, now) &&
	       !(r->flags & PSS_TOO_LARGE);
}

/* What a value of a member is set against. */
static double base_of(enum pss_value value, const struct pss_now *now)
{
	if (value == PSS_MAPS)
		return 1;
	if (value != PSS_SWAP_PSS)
		return (double)now->rss;
	return now->swap == PSS_UNKNOWN ? 0 : (double)now->swap;
}

/* How much of that it shares with its parent, as far as we know. */
static double shared_of(enum pss_value value, const struct pss_now *now)
{
	if (value == PSS_MAPS)
		return 0;
	return (double)(value == PSS_SWAP_PSS ? now->swap_of_fork
					      : now->rss_of_fork);
}

void pss_sum_add(struct pss_sum *s, const struct pss_reading *r,
		 const struct pss_now *now)
{
	for (unsigned i = 0; i < PSS_N_VALUES; i++) {
		double base = base_of(i, now);
		struct pss_part *part = &s->part[i];
		double bytes;

		if (r && pss_estimate(r, i, now, &bytes)) {
			part->n++;
			part->sum += bytes;
			part->base += base;
		} else if (is_awaited(r, now)) {
			part->rest += MAX(base - shared_of(i, now), 0);
		}
	}
}

bool pss_sum_value(const struct pss_sum *s, enum pss_value value, double *ret)
{
	const struct pss_part *part = &s->part[value];

	if (part->n == 0)
		return false;
	*ret = part->sum + (part->sum < part->base || value == PSS_MAPS
				? part->sum / part->base * part->rest
				: part->rest);
	return true;
}
