/* SPDX-License-Identifier: MIT */
#include "residual.h"

#include "monitor-internal.h"

static unsigned row_of(unsigned mode)
{
	unsigned field =
	    mode == RESIDUAL_USER ? STAT_FIELD_UTIME : STAT_FIELD_STIME;
	unsigned row = 0;

	while (metrics[row].source != SOURCE_STAT ||
	       metrics[row].field != field)
		row++;
	return row;
}

/* The view whose sum is told: each process is in one group of it at most. */
static const char *view_name(const struct ruleset *rs)
{
	for (size_t i = 0; i < rs->n_views; i++)
		if (!rs->view[i].name)
			return NULL;
	return rs->view[0].name;
}

static bool is_in_view(const struct ruleset *rs, const struct group *g,
		       const char *view)
{
	struct str name = str_of(g->name);

	if (!view)
		return !ruleset_view_of_name(rs, name);
	return str_begins(name, str_of(view)) && name.s[strlen(view)] == '.';
}

/*
 * Totals are noted of all groups: views change, and what was is not growth.
 * What was counted before the rules changed counts as by the old ones.
 */
static void take_groups(struct monitor *m, struct residual_span *ret)
{
	const unsigned row[] = {row_of(RESIDUAL_USER), row_of(RESIDUAL_SYSTEM)};
	const char *view = view_name(m->rules);

	for (size_t i = 0; i < m->groups.n_groups; i++) {
		struct group *g = m->groups.group[i];
		bool counted = g->sum.counts;

		g->sum.counts = !g->is_series && is_in_view(m->rules, g, view);
		for (unsigned k = 0; k < RESIDUAL_N; k++) {
			uint64_t total = g->total[row[k]];

			if (counted || g->sum.counts) {
				ret->groups[k] += total - g->sum.seen[k];
				ret->exited_ns[k] +=
				    g->exited_ns[k] - g->sum.seen_ns[k];
			}
			g->sum.seen[k] = total;
			g->sum.seen_ns[k] = g->exited_ns[k];
		}
	}
}

/* What the kernel says less than before, it says of no time that passed. */
static uint64_t growth_of(uint64_t now, uint64_t was)
{
	return now > was ? now - was : 0;
}

static void add_span(struct residual_span *sum, const struct residual_span *s)
{
	sum->host.user += s->host.user;
	sum->host.system += s->host.system;
	sum->host.interrupts += s->host.interrupts;
	sum->host.steal += s->host.steal;
	for (unsigned k = 0; k < RESIDUAL_N; k++) {
		sum->groups[k] += s->groups[k];
		sum->exited_ns[k] += s->exited_ns[k];
	}
}

void residual_take(struct monitor *m)
{
	struct residual *r = &m->residual;
	struct procfs_host_cpu now;

	/* If the host does not tell, groups wait: both are of the same time. */
	r->has_tick = procfs_host_cpu(&m->fs, &now) == 0;
	if (!r->has_tick)
		return;
	r->tick = (struct residual_span){
	    .host = {.user = growth_of(now.user, r->last.user),
		     .system = growth_of(now.system, r->last.system),
		     .interrupts =
			 growth_of(now.interrupts, r->last.interrupts),
		     .steal = growth_of(now.steal, r->last.steal)},
	};
	r->last = now;
	take_groups(m, &r->tick);
	if (r->has_begun) {
		add_span(&r->total, &r->tick);
		return;
	}
	r->has_begun = true;
	r->has_tick = false;
}

static struct monitor_cpu in_us(const struct monitor *m,
				const struct residual_span *s)
{
	static const struct metric ticks = {.unit = UNIT_TICKS};
	const struct metric_scale *scale = &m->fs.scale;
	const struct metric *user = &metrics[row_of(RESIDUAL_USER)];
	const struct metric *syst = &metrics[row_of(RESIDUAL_SYSTEM)];

	return (struct monitor_cpu){
	    .host_user = metric_scale_counter(&ticks, scale, s->host.user),
	    .host_system = metric_scale_counter(&ticks, scale, s->host.system),
	    .interrupts =
		metric_scale_counter(&ticks, scale, s->host.interrupts),
	    .steal = metric_scale_counter(&ticks, scale, s->host.steal),
	    .groups_user =
		metric_scale_counter(user, scale, s->groups[RESIDUAL_USER]) +
		s->exited_ns[RESIDUAL_USER] / 1000,
	    .groups_system =
		metric_scale_counter(syst, scale, s->groups[RESIDUAL_SYSTEM]) +
		s->exited_ns[RESIDUAL_SYSTEM] / 1000,
	};
}

bool monitor_get_cpu(const struct monitor *m, struct monitor_cpu *ret_tick,
		     struct monitor_cpu *ret_total)
{
	if (!m->residual.has_tick)
		return false;
	*ret_tick = in_us(m, &m->residual.tick);
	*ret_total = in_us(m, &m->residual.total);
	return true;
}

static void emit_pair(const char *instance, uint64_t user, uint64_t syst,
		      value_fn *fn, void *arg)
{
	struct value_out out = {
	    .group = SELF_GROUP,
	    .type = "ps_cputime",
	    .instance = instance,
	    .derive = true,
	    .n = 2,
	    .ds = {"user", "syst"},
	    .u = {user, syst},
	};

	fn(arg, &out);
}

/* It may be below 0, which of the stock types "gauge" alone allows. */
static void emit_difference(const char *instance, const struct monitor_cpu *cpu,
			    value_fn *fn, void *arg)
{
	struct value_out out = {
	    .group = SELF_GROUP,
	    .type = "gauge",
	    .instance = instance,
	    .n = 1,
	    .ds = {"value"},
	    .d = {(double)monitor_cpu_residual(cpu) / 1e6},
	};

	fn(arg, &out);
}

void residual_emit(const struct monitor *m, value_fn *fn, void *arg)
{
	const struct residual *r = &m->residual;
	struct monitor_cpu tick, total;

	if (!r->has_begun)
		return;
	total = in_us(m, &r->total);
	emit_pair("host", total.host_user, total.host_system, fn, arg);
	emit_pair("groups", total.groups_user, total.groups_system, fn, arg);
	emit_difference("cpu_residual_all", &total, fn, arg);
	if (!r->has_tick)
		return;
	tick = in_us(m, &r->tick);
	emit_difference("cpu_residual", &tick, fn, arg);
}
