/* SPDX-License-Identifier: MIT */
#include "delayread.h"

#include "monitor-internal.h"

/* A record of a process's end has 0 where nobody measured. */
static void note_unmeasured(struct monitor *m)
{
	metric_mask rows = metric_rows(SOURCE_DELAY);

	m->exits.unmeasured = 0;
	for (unsigned i = 0; rows; rows &= rows - 1, i++)
		if (!(m->delay.have >> i & 1))
			m->exits.unmeasured |= rows & -rows;
}

static void tell(struct monitor *m, const char *why)
{
	monitor_tell(m, MONITOR_WARNING, "delay has no values: %s", why);
}

static void tell_missing(struct monitor *m)
{
	uint32_t io = 1u << DELAY_BLKIO | 1u << DELAY_SWAPIN;

	if (!(m->delay.have & io))
		monitor_tell(m, MONITOR_WARNING,
			     "delay has no block I/O and no swap-in: the "
			     "kernel measures them with "
			     "kernel.task_delayacct=1 only");
	if (!(m->delay.have & 1u << DELAY_CPU))
		monitor_tell(m, MONITOR_WARNING,
			     "delay has no CPU: this kernel does not count "
			     "how long a process waits for one");
}

static void open_delay(struct monitor *m)
{
	int r;

	if (!m->fs.same_pids) {
		tell(m, "the processes are not those of our own PID namespace");
		return;
	}
	r = delay_open(&m->delay);
	if (r == 0)
		tell_missing(m);
	else
		tell(m, r == DELAY_DENIED    ? "it takes CAP_NET_ADMIN"
			: r == DELAY_MISSING ? "no taskstats here; they "
					       "are in the initial namespaces "
					       "of a kernel that has them"
					     : strerror(-r));
}

void delayread_adopt(struct monitor *m)
{
	bool wanted = ruleset_collects(m->rules, COLLECT_DELAY);

	if (wanted && !m->delay_wanted)
		open_delay(m);
	if (!wanted)
		delay_close(&m->delay);
	m->delay_wanted = wanted;
	note_unmeasured(m);
}
