/* SPDX-License-Identifier: MIT */
/*
 * Rules out of groups. All patterns of an entry have one group, so that their
 * order among themselves says nothing, and those that are compared with the
 * same thing are one rule.
 *
 * Netdata 2 knows a process by the name that the kernel has for it and by
 * what its command line makes of that name where the kernel cut it. Source:
 * comm_from_cmdline_sanitized() in src/collectors/apps.plugin/apps_pid.c.
 */
#include "netdata-internal.h"

enum {
	GROUPS_DEFAULT = 500, /* of a rule file that gives no limit */
};

static const char head[] =
    ".\n"
    "#\n"
    "# The first rule that holds wins, as the first pattern does in Netdata.\n"
    "# What was assumed, and what has no equal:\n"
    "#\n"
    "# - Upper and lower case differ, as in Netdata up to 2.5.2. Later ones\n"
    "#   take them for the same, which iglob: and ire: do here.\n"
    "# - A star inside a pattern is any text, as in Netdata 2.\n"
    "# - The kernel keeps 15 bytes of a process's name. Netdata 2 takes the\n"
    "#   rest from the command line, and so do rules here; as kernel threads\n"
    "#   may have more, longer names stand in two rules.\n"
    "# - Netdata 2 knows a script by its own name and not by that of its\n"
    "#   interpreter. Here that takes a rule with cmdline.\n"
    "# - What no rule takes joins its nearest ancestor that is in a group, or\n"
    "#   else \"other\". Netdata 2 names the latter after their topmost\n"
    "#   ancestor, and it puts managers into no group of the file. Netdata 1\n"
    "#   put parents into the group of their children.\n"
    "# - A group without members is there, with a count of 0.\n"
    "\n"
    "version: 1\n"
    "\n"
    "defaults:\n"
    "  children: inherit\n";

struct writer {
	struct outbuf *o;
	const struct netdata_entry *entry;
	const struct netdata_pattern *pattern; /* the entry's first */
};

typedef bool question(const struct netdata_pattern *p);
typedef void put_item(struct outbuf *o, const struct netdata_pattern *p);

/* Is it so, of a pattern that can take anything? */
static bool asks(const struct writer *w, size_t i, question *is)
{
	return !w->pattern[i].same_line && is(&w->pattern[i]);
}

static size_t count(const struct writer *w, question *is)
{
	size_t n = 0;

	for (size_t i = 0; i < w->entry->n_patterns; i++)
		n += asks(w, i, is);
	return n;
}

static bool is_clean(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '.' || c == '-';
}

/* Cleaned as name.h has it, so that no brace of it makes a token. */
static void put_name(struct outbuf *o, struct str name)
{
	outbuf_printf(o, "  - name: '%s", is_clean(name.s[0]) ? "" : "x");
	for (size_t i = 0; i < name.n; i++)
		outbuf_printf(o, "%c", is_clean(name.s[i]) ? name.s[i] : '_');
	outbuf_printf(o, "'\n");
}

/* A rule's name and one key with one item or a list of them. */
static void put_rule(const struct writer *w, const char *key, question *is,
		     put_item *put)
{
	bool one = count(w, is) == 1;

	put_name(w->o, w->entry->name);
	outbuf_printf(w->o, "    %s:%s", key, one ? " " : "\n");
	for (size_t i = 0; i < w->entry->n_patterns; i++) {
		if (!asks(w, i, is))
			continue;
		outbuf_printf(w->o, "%s", one ? "" : "      - ");
		put(w->o, &w->pattern[i]);
	}
}

static void put_comm_rules(const struct writer *w)
{
	size_t n_tails = count(w, netdata_is_tail);

	put_rule(w, "comm", netdata_is_comm, netdata_put_name);
	outbuf_printf(w->o, "    kernel: any\n");
	if (n_tails + count(w, netdata_is_long))
		outbuf_printf(w->o, "  # the same where the kernel cut it\n");
	for (size_t i = 0; i < w->entry->n_patterns; i++) {
		if (!asks(w, i, netdata_is_long))
			continue;
		put_name(w->o, w->entry->name);
		netdata_put_cut(w->o, &w->pattern[i]);
	}
	if (n_tails) {
		put_rule(w, "exe", netdata_is_tail, netdata_put_name);
		outbuf_printf(w->o, "    comm: 're:^.{%d}$'\n",
			      NETDATA_COMM_MAX);
	}
}

/* Why a pattern is not what it seems. */
static void put_remark(struct outbuf *o, const struct netdata_pattern *p)
{
	if (!p->same_line && !p->similar_line)
		return;
	outbuf_printf(o, "  # ");
	netdata_put_word(o, p);
	if (p->same_line)
		outbuf_printf(o, " is left out: line %u has it\n",
			      p->same_line);
	else
		outbuf_printf(o, ": Netdata 2 drops it, line %u has its text\n",
			      p->similar_line);
}

static void put_remarks(const struct writer *w)
{
	const struct netdata_entry *e = w->entry;
	bool clean = e->name.s[0] != '_';

	for (size_t i = 0; i < e->name.n; i++)
		clean &= is_clean(e->name.s[i]) || e->name.s[i] == '_';
	outbuf_printf(w->o, "\n  # line %u", e->line);
	if (!clean) {
		outbuf_printf(w->o, ": ");
		netdata_put_word(w->o,
				 &(struct netdata_pattern){.text = e->name});
	}
	outbuf_printf(w->o, "\n");
	if (e->marked)
		outbuf_printf(w->o, "  # no equal: \"-\" (hidden) and \"+\" "
				    "(traced) before names\n");
	for (size_t i = 0; i < e->n_patterns; i++)
		put_remark(w->o, &w->pattern[i]);
}

/* Returns true if it takes all processes. */
static bool put_entry(const struct writer *w)
{
	put_remarks(w);
	if (count(w, netdata_is_all)) {
		put_name(w->o, w->entry->name);
		outbuf_printf(w->o, "    any: true\n    kernel: any\n");
		return true;
	}
	if (count(w, netdata_is_comm))
		put_comm_rules(w);
	if (count(w, netdata_is_cmdline))
		put_rule(w, "cmdline", netdata_is_cmdline, netdata_put_cmdline);
	return false;
}

/*
 * The group of kernel threads that no pattern takes. kthreadd is the parent of
 * them all, and they join its group; if it has none, Netdata 2 calls them so.
 */
static struct str kernel_group(const struct netdata_conf *conf)
{
	for (size_t i = 0; i < conf->n_entries; i++) {
		const struct netdata_entry *e = &conf->entry[i];

		for (size_t j = 0; j < e->n_patterns; j++)
			if (netdata_takes_comm(&conf->pattern[e->first + j],
					       STR("kthreadd")))
				return e->name;
	}
	return STR("kernel");
}

static void put_rules(const struct netdata_conf *conf, struct outbuf *o)
{
	bool all = false;

	outbuf_printf(o, "\nrules:");
	for (size_t i = 0; i < conf->n_entries; i++) {
		const struct netdata_entry *e = &conf->entry[i];
		struct writer w = {o, e, &conf->pattern[e->first]};

		all |= put_entry(&w);
	}
	if (all)
		return;
	outbuf_printf(o, "\n  # all other kernel threads\n");
	put_name(o, kernel_group(conf));
	outbuf_printf(o, "    kernel: true\n");
}

/* What is compared with comms sees no more of a name than the kernel keeps. */
static void put_listed(struct outbuf *o, const struct netdata_pattern *p,
		       bool of_comm)
{
	struct netdata_pattern short_name = {
	    .text = {p->text.s, NETDATA_COMM_MAX}};
	bool cut = of_comm && netdata_is_long(p);
	bool lost = netdata_is_cmdline(p) || (of_comm && netdata_is_tail(p) &&
					      p->text.n > NETDATA_COMM_MAX);

	if (cut || lost) {
		outbuf_printf(o, "  # %s: ", cut ? "cut" : "no equal");
		netdata_put_word(o, p);
		outbuf_printf(o, "\n");
	}
	if (lost)
		return;
	outbuf_printf(o, "  - ");
	netdata_put_name(o, cut ? &short_name : p);
}

static void put_list(struct outbuf *o, const char *key,
		     const struct netdata_list *list,
		     const char *const *built_in, bool of_comm)
{
	bool empty = list->n_patterns == 0 && list->cleared;

	outbuf_printf(o, "\n%s:%s\n", key, empty ? " []" : "");
	for (; *built_in && !list->cleared; built_in++) {
		struct netdata_pattern p =
		    netdata_pattern_of(str_of(*built_in), 0);

		put_listed(o, &p, of_comm);
	}
	for (size_t i = 0; i < list->n_patterns; i++)
		put_listed(o, &list->pattern[i], of_comm);
}

void netdata_write(const struct netdata_conf *conf, const char *file,
		   struct outbuf *o)
{
	/* Source: apps_managers_and_aggregators_init() in apps_targets.c. */
	static const char *const managers[] = {
	    "init",	     "systemd", "containerd-shim-runc-v2",
	    "docker-init",   "tini",	"dumb-init",
	    "openrc-run.sh", "crond",	"gnome-shell",
	    "plasmashell",   "xfwm4",	"*python3*bin/yugabyted*",
	    "spawn-plugins", NULL,
	};
	static const char *const interpreters[] = {
	    "python", "python2", "python3", "sh", "bash", "node", "perl", NULL,
	};
	struct netdata_pattern name = {.text = str_of(file)};

	outbuf_printf(o, "# Made by proctally import-netdata from ");
	netdata_put_word(o, &name);
	outbuf_printf(o, "%s", head);
	/* One more for kernel threads, one for what no rule takes. */
	if (conf->n_entries + 2 > GROUPS_DEFAULT)
		outbuf_printf(o, "\nlimits:\n  groups: %zu\n",
			      conf->n_entries + 2);
	put_list(o, "managers", &conf->managers, managers, true);
	if (conf->interpreters.given)
		put_list(o, "interpreters", &conf->interpreters, interpreters,
			 false);
	put_rules(conf, o);
}
