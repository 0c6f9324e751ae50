/* SPDX-License-Identifier: MIT */
#include "gpuread.h"

/*
 * Who may open what: fs/proc/base.c and fs/proc/fd.c of Linux 6.18. What takes
 * no capability is refused by security modules alone; fds is that, too, since
 * 6.2, where its directory need not be listed.
 */
const struct monitor_refusable monitor_refusable[MONITOR_N_REFUSABLE] = {
    {SOURCE_IO, offsetof(struct selfstat, unreadable_io), "io",
     ": needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"},
    {SOURCE_FDS, offsetof(struct selfstat, unreadable_fds), "fds",
     ": needs CAP_DAC_READ_SEARCH"},
    {SOURCE_LIMITS, offsetof(struct selfstat, unreadable_limits), "fd_limit",
     ""},
    {SOURCE_STATUS, offsetof(struct selfstat, unreadable_status), "status", ""},
    {SOURCE_TASKS, offsetof(struct selfstat, unreadable_tasks), "ctx", ""},
};

static void notice_refusals(struct monitor *m)
{
	for (size_t i = 0; i < MONITOR_N_REFUSABLE; i++) {
		uint32_t bit = 1u << monitor_refusable[i].source;
		uint64_t n = *monitor_refusals(&m->self, i);

		if (n == SELFSTAT_ABSENT)
			n = 0;
		if (n && !(m->told.denied & bit))
			monitor_tell(
			    m, MONITOR_WARNING,
			    "%s unreadable for %zu of %zu processes%s; "
			    "there it has no value",
			    monitor_refusable[i].what, (size_t)n,
			    m->tab.n_procs, monitor_refusable[i].needs);
		if (n)
			m->told.denied |= bit;
	}
	if (m->classifier.n_unreadable_exe && !m->told.exe) {
		m->told.exe = true;
		monitor_tell(m, MONITOR_WARNING,
			     "the exe link of some processes is unreadable: "
			     "rules on exe_path do not match them (needs "
			     "CAP_SYS_PTRACE)");
	}
}

/*
 * Readings are spread over time. The number is told when all were tried; who
 * is always on the way may not keep it back for long.
 */
static void notice_pss_refusals(struct monitor *m)
{
	const struct pssplan_counts *counts = &m->pss.plan.counts;

	if (m->told.pss || !counts->n_refused)
		return;
	if (!m->told.pss_refused_ns)
		m->told.pss_refused_ns = m->now.mono_ns;
	if (counts->n_untried &&
	    m->now.mono_ns - m->told.pss_refused_ns < PSS_EVERY_NS)
		return;
	m->told.pss = true;
	monitor_tell(m, MONITOR_WARNING,
		     "pss unreadable for %zu of %zu processes: needs "
		     "CAP_SYS_PTRACE; there it has no value",
		     counts->n_refused, m->pss.n_wanted);
}

static void notice_no_pss(struct monitor *m)
{
	bool wanted = false;

	for (size_t i = 0; i < m->groups.n_groups; i++)
		wanted |= m->groups.group[i]->collect >> COLLECT_PSS & 1;
	if (m->told.no_pss || !m->groups.no_pss || !m->pss.host.sure || !wanted)
		return;
	m->told.no_pss = true;
	monitor_tell(m, MONITOR_WARNING,
		     "this kernel has neither smaps_rollup nor smaps: pss has "
		     "no values");
}

/* With hidepid, foreign processes are not even listed. */
static void notice_hidepid(struct monitor *m)
{
	bool hidden = m->fs.is_procfs &&
		      (m->tab.n_procs == 0 || m->tab.entry[0].pid != 1);

	if (hidden && !m->told.hidepid)
		monitor_tell(m, MONITOR_WARNING,
			     "%s does not show process 1: it is mounted with "
			     "hidepid, and only some processes are seen; "
			     "mount it with gid= of our group, or run with "
			     "CAP_SYS_PTRACE",
			     m->proc_path);
	m->told.hidepid = hidden;
}

static void notice_regex(struct monitor *m)
{
	struct ruleset *rs = m->rules;

	m->self.regex_limits += rs->n_regex_limit;
	rs->n_regex_limit = 0;
	for (size_t i = 0; i < rs->n_rules; i++) {
		struct rule *rule = &rs->rule[i];

		if (!rule->n_regex_limit || rule->told_regex_limit)
			continue;
		rule->told_regex_limit = true;
		monitor_tell(m, MONITOR_WARNING,
			     "%s:%u:%u: a pattern of this rule takes too many "
			     "steps on some process; it was cut off and does "
			     "not match there",
			     m->rules_path, rule->line, rule->column);
	}
}

static void notice_descriptors(struct monitor *m)
{
	if (m->fs.kept.full && m->fs.kept.budget && !m->told.kept_full) {
		m->told.kept_full = true;
		monitor_tell(m, MONITOR_INFO,
			     "all %u descriptors of the budget are kept open; "
			     "further files are opened for each read",
			     m->fs.kept.budget);
	}
	if (m->tab.counts.n_failed && !m->told.failed_reads) {
		m->told.failed_reads = true;
		monitor_tell(m, MONITOR_WARNING,
			     "some reads failed for want of descriptors or "
			     "memory; they are tried again");
	}
}

void monitor_notice(struct monitor *m)
{
	notice_hidepid(m);
	notice_refusals(m);
	notice_pss_refusals(m);
	notice_no_pss(m);
	notice_regex(m);
	notice_descriptors(m);
	gpuread_notice(m);
}
