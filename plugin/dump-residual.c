/* SPDX-License-Identifier: MIT */
#include "dump-residual.h"

/* Seconds: in user mode, in the system, together. */
struct line {
	double user, system;
};

static struct line host_of(const struct monitor_cpu *c)
{
	return (struct line){(double)c->host_user / 1e6,
			     (double)c->host_system / 1e6};
}

static struct line groups_of(const struct monitor_cpu *c)
{
	return (struct line){(double)c->groups_user / 1e6,
			     (double)c->groups_system / 1e6};
}

static struct line residual_of(const struct monitor_cpu *c)
{
	struct line host = host_of(c), groups = groups_of(c);

	return (struct line){host.user - groups.user,
			     host.system - groups.system};
}

static void put_line(struct outbuf *out, struct line l)
{
	outbuf_printf(out, " %10.2f %10.2f %10.2f", l.user, l.system,
		      l.user + l.system);
}

static void put_share(struct outbuf *out, double part, double whole)
{
	if (whole > 0)
		outbuf_printf(out, " %10.2f", 100 * part / whole);
	else
		outbuf_printf(out, " %10s", "-");
}

static void put_percent(struct outbuf *out, const struct monitor_cpu *c)
{
	struct line host = host_of(c), rest = residual_of(c);

	put_share(out, rest.user, host.user);
	put_share(out, rest.system, host.system);
	put_share(out, rest.user + rest.system, host.user + host.system);
}

void dump_residual(struct outbuf *out, double tick_s, double total_s,
		   const struct monitor_cpu *tick,
		   const struct monitor_cpu *total)
{
	static const struct {
		const char *name;
		struct line (*of)(const struct monitor_cpu *c);
	} rows[] = {
	    {"host", host_of},
	    {"groups", groups_of},
	    {"residual", residual_of},
	};

	outbuf_printf(out, "%-10s %10s %10s %9.2fs %10s %10s %9.2fs\n",
		      "CPU time", "user", "system", tick_s, "user", "system",
		      total_s);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		outbuf_printf(out, "%-10s", rows[i].name);
		put_line(out, rows[i].of(tick));
		put_line(out, rows[i].of(total));
		outbuf_printf(out, "\n");
	}
	outbuf_printf(out, "%-10s", "percent");
	put_percent(out, tick);
	put_percent(out, total);
	outbuf_printf(out, "\n%-10s %21.2f %32.2f\n", "interrupts",
		      (double)tick->interrupts / 1e6,
		      (double)total->interrupts / 1e6);
	outbuf_printf(out, "%-10s %32.2f %32.2f\n\n", "steal",
		      (double)tick->steal / 1e6, (double)total->steal / 1e6);
}
